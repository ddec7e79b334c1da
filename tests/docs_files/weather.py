"""The tool that commands of the docs ask for the weather."""

from __future__ import annotations


async def weather(city: str) -> str:
    """The weather in a city, now.

    Args:
        city: Its name.
    """
    return f"{city}: 7 degrees, dry"

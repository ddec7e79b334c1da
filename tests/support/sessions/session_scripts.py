"""Scripts of the simulator and tools for the tests of sessions."""

from __future__ import annotations

from typing import Any

from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.tools.toolbox import tool

OPENAI, CLAUDE = "openai/gpt-4.1", "anthropic/claude-opus-5"


FINE: dict[str, Any] = {"rules": [{"reply": {"text": "Fine."}}]}
ASK_ONCE = SessionLimits(retries=0)


@tool(side_effects=False)
async def look_up(n: int) -> str:
    """Look something up."""
    return f"found {n}."


def calling(*numbers: int, name: str = "look_up", **when: Any) -> dict[str, Any]:
    return {"when": when, "reply": {"calls": [{"name": name, "arguments": {"n": n}} for n in numbers]}}

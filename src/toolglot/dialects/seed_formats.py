"""Which format an answer is in, by the first sign of one that is found.

An answer that is JSON is parsed first, since its prose may hold a sign (trap T4); in text, signs inside a code fence do
not count. `toolglot.detect` is more precise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from toolglot import jsontext
from toolglot.errors import InputError, quote

SeedFormat = Literal["xai", "xml", "openai", "anthropic", "google"]

_FENCE: Final = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n(?:(?![ ]{0,3}\1)[^\n]*(?:\n|\Z))*+(?:[ ]{0,3}\1[^\n]*)?", re.MULTILINE
)
_LIST: Final = re.compile(r'"tool_calls":\s*+\[')


def _has_tool_element(response: str) -> bool:
    """Whether a closer follows an opener, on whichever line."""
    start = response.find("<tool>")
    return start >= 0 and response.find("</tool>", start) >= 0


_SIGNS: Final[tuple[tuple[SeedFormat, Callable[[str], object]], ...]] = (
    ("xai", lambda response: "<x.ai:tool_call>" in response),
    ("xml", _has_tool_element),
    ("openai", _LIST.search),
    ("anthropic", lambda response: '"tool_use"' in response),
)
"""In the order in which they are tried."""


def detect_format(response: str) -> SeedFormat:
    """The format of an answer; `InputError` if it has none of the signs.

    response: what a model wrote.
    """
    if not isinstance(response, str):
        raise InputError(f"expected text, got {quote(response)}", path="response")
    found = _format_of_json(response)
    if found is not None:
        return found
    text = _FENCE.sub("", response)
    for name, is_there in _SIGNS:
        if is_there(text):
            return name
    raise InputError("unknown tool call format", path="response")


def _format_of_json(response: str) -> SeedFormat | None:
    """The format of an answer that is a JSON object with calls in it; None for any other."""
    if response.lstrip()[:1] != "{":
        return None
    try:
        value = jsontext.parse(response).value
    except InputError:
        return None
    messages = [value, value.get("message"), *(choice.get("message") for choice in _objects(value.get("choices")))]
    if any(_objects(message.get("tool_calls")) for message in messages if isinstance(message, dict)):
        return "openai"
    if any(block.get("type") == "tool_use" for block in (value, *_objects(value.get("content")))):
        return "anthropic"
    contents = [value, *(candidate.get("content") for candidate in _objects(value.get("candidates")))]
    parts = [part for content in contents if isinstance(content, dict) for part in _objects(content.get("parts"))]
    return "google" if any("functionCall" in part for part in (value, *parts)) else None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []

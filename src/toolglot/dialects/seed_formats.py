"""Which of four formats an answer is in, as seed 003 tells them apart: by the first of its patterns that is found.

Kept as it is there. `toolglot.detect` looks closer.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from toolglot.errors import InputError, quote

SeedFormat = Literal["xai", "xml", "openai", "anthropic"]

_PATTERNS: Final[tuple[tuple[SeedFormat, re.Pattern[str]], ...]] = (
    ("xai", re.compile(r"<x\.ai:tool_call>")),
    ("openai", re.compile(r'"tool_calls":\s*+\[')),
    ("anthropic", re.compile(r'"tool_use"')),
)


def detect_format(response: str) -> SeedFormat:
    """The format of an answer; `InputError` where none of the patterns is found."""
    if not isinstance(response, str):
        raise InputError(f"expected text, got {quote(response)}", path="response")
    for name, pattern in _PATTERNS:
        if name == "xml":
            start = response.find("<tool>")
            if start >= 0 and response.find("</tool>", start) >= 0:
                return name
        elif pattern.search(response):
            return name
    raise InputError("unknown tool call format", path="response")

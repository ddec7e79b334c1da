"""Which of four formats an answer is in, as seed 003 tells them apart: by the first of its signs that is found.

Kept as it is there. `toolglot.detect` looks closer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from toolglot.errors import InputError, quote

SeedFormat = Literal["xai", "xml", "openai", "anthropic"]

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
    """The format of an answer; `InputError` where there is none of the signs.

    response: what a model wrote.
    """
    if not isinstance(response, str):
        raise InputError(f"expected text, got {quote(response)}", path="response")
    for name, is_there in _SIGNS:
        if is_there(response):
            return name
    raise InputError("unknown tool call format", path="response")

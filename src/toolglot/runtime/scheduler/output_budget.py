"""How much of what the tools of one turn said is given to the model.

One budget for the whole turn, in characters, shared fairly: everybody gets the same, and what short results leave is
the long ones'. Text is cut in its middle, with a note of how much is gone; an image or a document cannot be cut, so
it is left out, with a note, where it does not fit.

Law: a result that fits is untouched. The order of results changes nothing. Each text that is cut may be longer than
its share by no more than the note in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Media, Opaque, Text, ToolResult
from toolglot.conversation.completion import completion_key
from toolglot.history.compression import shorten

MEDIA_CHARACTERS: Final = 6_000
"""What an image, a document or a sound counts: about what a model pays for an image, as text. Its bytes say nothing
of that."""

Part = Text | Media | Opaque


def share(sizes: Sequence[int], budget: int) -> list[int]:
    """How much each may have of a budget: the same for all, but no more than its size."""
    if sum(sizes) <= budget:
        return list(sizes)
    allowed = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = budget
    for count, place in enumerate(order):
        allowed[place] = min(sizes[place], left // (len(order) - count))
        left -= allowed[place]
    return allowed


def size(result: ToolResult) -> int:
    """What a result counts."""
    if not isinstance(result.content, tuple):
        return len(result.content or "")
    return sum(map(_part_size, result.content))


def fitted(results: Sequence[ToolResult], budget: int) -> list[ToolResult]:
    """The results of one turn, within its budget."""
    sizes = [size(result) for result in results]
    if sum(sizes) <= budget:
        return list(results)
    return [within(result, allowed) for result, allowed in zip(results, share(sizes, budget), strict=True)]


def within(result: ToolResult, allowed: int) -> ToolResult:
    """The result with no more than it is allowed."""
    if size(result) <= allowed:
        return result
    if isinstance(result.content, tuple):
        shares = share([_part_size(part) for part in result.content], allowed)
        content: str | tuple[Part, ...] = tuple(map(_part_within, result.content, shares))
    else:
        content = shorten(result.content or "", allowed)
    if content == result.content:
        return result
    return replace(result, content=content, shortened_from=completion_key(result))


def _part_size(part: Part) -> int:
    if isinstance(part, Text):
        return len(part.text)
    return MEDIA_CHARACTERS if isinstance(part, Media) else len(msgspec.json.encode(part.value))


def _part_within(part: Part, allowed: int) -> Part:
    if _part_size(part) <= allowed:
        return part
    if isinstance(part, Text):
        return replace(part, text=shorten(part.text, allowed))
    what = f"{part.kind} {part.media_type}".strip() if isinstance(part, Media) else part.kind or "part"
    return Text(f"[… {what[:80]} left out: the results of this turn are too large …]")

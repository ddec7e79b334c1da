"""How much tool output of one turn is sent to the model.

The whole turn has one budget in characters. Each result gets the same share, and what short results leave unused goes
to the long ones. Text is cut in the middle, with a note of how much is missing. An image or a document cannot be cut:
if it does not fit, a note replaces it.

Law: a result that fits is unchanged. The order of results does not matter. A text that was cut exceeds its share by at
most the length of the note.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Media, ResultPart, Text, ToolReference, ToolResult
from toolglot.conversation.completion import completion_key
from toolglot.history.compression import shorten

MEDIA_CHARACTERS: Final = 6_000
"""What an image, a document or audio counts: roughly the tokens of an image, as characters of text. The number of bytes
says nothing about that."""


def divide(sizes: Sequence[int], budget: int) -> list[int]:
    """Divide a budget: the same share for all, but none larger than its size."""
    if sum(sizes) <= budget:
        return list(sizes)
    allowed = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = budget
    for count, index in enumerate(order):
        allowed[index] = min(sizes[index], left // (len(order) - count))
        left -= allowed[index]
    return allowed


def size(result: ToolResult) -> int:
    """What a result counts towards the budget."""
    if not isinstance(result.content, tuple):
        return len(result.content or "")
    return sum(map(_part_size, result.content))


def fit_results(results: Sequence[ToolResult], budget: int) -> list[ToolResult]:
    """The results of one turn, within its budget."""
    sizes = [size(result) for result in results]
    if sum(sizes) <= budget:
        return list(results)
    return [fit_result(result, allowed) for result, allowed in zip(results, divide(sizes, budget), strict=True)]


def fit_result(result: ToolResult, allowed: int) -> ToolResult:
    """The result, shortened to what it is allowed."""
    if size(result) <= allowed:
        return result
    if isinstance(result.content, tuple):
        shares = divide([_part_size(part) for part in result.content], allowed)
        content: str | tuple[ResultPart, ...] = tuple(map(_fit_part, result.content, shares))
    else:
        content = shorten(result.content or "", allowed)
    if content == result.content:
        return result
    return replace(result, content=content, shortened_from=completion_key(result))


def _part_size(part: ResultPart) -> int:
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, ToolReference):
        return len(part.name)
    return MEDIA_CHARACTERS if isinstance(part, Media) else len(msgspec.json.encode(part.value))


def _fit_part(part: ResultPart, allowed: int) -> ResultPart:
    if _part_size(part) <= allowed:
        return part
    if isinstance(part, Text):
        return replace(part, text=shorten(part.text, allowed))
    if isinstance(part, ToolReference):
        return part
    what = f"{part.kind} {part.media_type}".strip() if isinstance(part, Media) else part.kind or "part"
    return Text(f"[… {what[:80]} left out: the results of this turn are too large …]")

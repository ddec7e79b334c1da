"""Shortens results that are too large to be written.

    for results, cut in shorter_versions(results): …      # unchanged first; then more of the largest are shortened

Law: a result that was cut says so and keeps its status. Small results are cut last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import ToolResult
from toolglot.conversation.completion import completion_key
from toolglot.history.compression import shorten
from toolglot.runtime.scheduler import output_budget
from toolglot.runtime.scheduler.known_calls import size_of

SHORT: Final = 4_000
"""Characters that remain of a result that is too large; images and documents are removed."""
BARE: Final = 160
"""Characters that remain if that is still too much."""
TOO_LARGE: Final = "[This result is too large to be kept as it was.]"


def shorter_versions(results: Sequence[ToolResult]) -> Iterator[tuple[list[ToolResult], tuple[str, ...]]]:
    """Versions of the results, each with the ids that were cut: none; the 1, 2, 4 … largest; all, to almost nothing."""
    yield list(results), ()
    order = sorted(range(len(results)), key=lambda index: -size_of(results[index]))
    for power in range(len(results).bit_length() + 1 if results else 0):
        cut = set(order[: 2**power])
        yield [_shorten(result) if n in cut else result for n, result in enumerate(results)], _ids(results, cut)
        if len(cut) == len(results):
            yield [_reduce_to_note(result) for result in results], _ids(results, cut)
            return


def _ids(results: Sequence[ToolResult], indexes: set[int]) -> tuple[str, ...]:
    return tuple(result.call_id for n, result in enumerate(results) if n in indexes)


def _shorten(result: ToolResult) -> ToolResult:
    short = output_budget.fit_result(result, SHORT)
    if short.result is None:
        return short
    return replace(short, result=None, shortened_from=completion_key(result))


def _reduce_to_note(result: ToolResult) -> ToolResult:
    text = shorten(result.text, BARE)
    if text == result.content and result.executed_arguments is None and result.result is None:
        return result
    content = f"{TOO_LARGE} {text}".rstrip()
    key = completion_key(result)
    return replace(result, content=content, result=None, executed_arguments=None, shortened_from=key)

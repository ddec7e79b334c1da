"""Results that are too large to be kept, made to fit.

    for results, cut in fits(results): …      # as they are; then the largest ones shortened, more each time

Law: a result that is cut says so, keeps its status, and takes no other with it: what is small is cut last.
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
"""Characters that are left of a result which is too large; no image or document is."""
BARE: Final = 160
"""What is left where that is too much as well."""
TOO_LARGE: Final = "[This result is too large to be kept as it was.]"


def fits(results: Sequence[ToolResult]) -> Iterator[tuple[list[ToolResult], tuple[str, ...]]]:
    """The results, and which of them were cut: none; the 1, 2, 4 … largest; all of them to almost nothing."""
    yield list(results), ()
    order = sorted(range(len(results)), key=lambda place: -size_of(results[place]))
    for power in range(len(results).bit_length() + 1 if results else 0):
        cut = set(order[: 2**power])
        yield [_short(result) if n in cut else result for n, result in enumerate(results)], _ids(results, cut)
        if len(cut) == len(results):
            yield [_bare(result) for result in results], _ids(results, cut)
            return


def _ids(results: Sequence[ToolResult], places: set[int]) -> tuple[str, ...]:
    return tuple(result.call_id for n, result in enumerate(results) if n in places)


def _short(result: ToolResult) -> ToolResult:
    short = output_budget.fit_result(result, SHORT)
    if short.result is None:
        return short
    return replace(short, result=None, shortened_from=completion_key(result))


def _bare(result: ToolResult) -> ToolResult:
    text = shorten(result.text, BARE)
    if text == result.content and result.executed_arguments is None and result.result is None:
        return result
    content = f"{TOO_LARGE} {text}".rstrip()
    key = completion_key(result)
    return replace(result, content=content, result=None, executed_arguments=None, shortened_from=key)

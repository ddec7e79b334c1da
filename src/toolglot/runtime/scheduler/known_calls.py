"""The calls that a scheduler has run, so that none is run twice, and what is still known of their results.

Whole results are kept while there is room for them; of older ones it is known that they were run, and how they ended.

Law: memory is bounded, by the number of calls and by the bytes of their results together. What is forgotten first is
what is oldest.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Media, Text, ToolResult
from toolglot.conversation.completion import completion_key

RUN_BEFORE: Final = "[This call was run before, and is not run again. Its result was given then: see above.]"


class KeptResults(NamedTuple):
    """How much a scheduler keeps of what is over."""

    calls: int = 10_000
    result_bytes: int = 16 * 1024 * 1024
    """Of whole results, together."""
    entries: int = 10_000
    """Of the report."""


class KnownCalls:
    """The newest calls that are over, by their ids."""

    __slots__ = ("_bytes", "_kept", "_results", "_whole")

    def __init__(self, kept: KeptResults) -> None:
        self._kept = kept
        self._results: OrderedDict[str, ToolResult] = OrderedDict()
        self._whole: OrderedDict[str, int] = OrderedDict()
        """The sizes of the results that are still there as they were."""
        self._bytes = 0

    def __iter__(self) -> Iterator[str]:
        """The ids, oldest first."""
        return iter(self._results)

    def get(self, call_id: str) -> ToolResult | None:
        return self._results.get(call_id)

    def add(self, result: ToolResult) -> None:
        """Keep a result; the first of a call counts."""
        call_id = result.call_id
        if call_id in self._results:
            return
        self._results[call_id] = result
        self._whole[call_id] = size = size_of(result)
        self._bytes += size
        while self._bytes > self._kept.result_bytes:
            oldest, size = self._whole.popitem(last=False)
            self._bytes -= size
            self._results[oldest] = _shortened(self._results[oldest])
        while len(self._results) > self._kept.calls:
            oldest, _ = self._results.popitem(last=False)
            self._bytes -= self._whole.pop(oldest, 0)

    def forget(self, call_ids: Iterable[str]) -> None:
        """These may be run again."""
        for call_id in call_ids:
            self._results.pop(call_id, None)
            self._bytes -= self._whole.pop(call_id, 0)


def size_of(result: ToolResult) -> int:
    """About how many bytes a result takes."""
    content = result.content
    size = sys.getsizeof(content) if not isinstance(content, tuple) else sum(map(_part_size, content))
    for value in (result.result, result.executed_arguments):
        if value is not None:
            size += _written(value)
    return size


def _part_size(part: Any) -> int:
    if isinstance(part, Text):
        return sys.getsizeof(part.text)
    return sys.getsizeof(part.data) if isinstance(part, Media) else _written(part.value)


def _written(value: object) -> int:
    return len(msgspec.json.encode(value))


def _shortened(result: ToolResult) -> ToolResult:
    """That a call was run and how it ended; the same completion as the whole result."""
    key = completion_key(result)
    return replace(result, content=RUN_BEFORE, result=None, executed_arguments=None, shortened_from=key)

"""The calls that a scheduler has run, so that none runs twice, and what is kept of their results.

Whole results are kept up to a limit. Of older calls only the fact that they ran, and how they ended, is kept.

Law: memory is bounded, by the number of calls and by the total size of their results. The oldest are forgotten first.
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

RUN_BEFORE: Final = "[This call was run before, and is not run again. Its result is above.]"


class KnownCallLimits(NamedTuple):
    """How much a scheduler remembers of finished calls."""

    calls: int = 10_000
    result_bytes: int = 16 * 1024 * 1024
    """The total size of whole results."""
    entries: int = 10_000
    """The entries of the report."""


class KnownCalls:
    """The newest finished calls, by id."""

    __slots__ = ("_bytes", "_limits", "_results", "_whole")

    def __init__(self, limits: KnownCallLimits) -> None:
        self._limits = limits
        self._results: OrderedDict[str, ToolResult] = OrderedDict()
        self._whole: OrderedDict[str, int] = OrderedDict()
        """The sizes of the results that are still whole."""
        self._bytes = 0

    def __iter__(self) -> Iterator[str]:
        """The ids, oldest first."""
        return iter(self._results)

    def get(self, call_id: str) -> ToolResult | None:
        return self._results.get(call_id)

    def add(self, result: ToolResult) -> None:
        """Remember a result. The first result of a call wins."""
        call_id = result.call_id
        if call_id in self._results:
            return
        self._results[call_id] = result
        self._whole[call_id] = size = size_of(result)
        self._bytes += size
        while self._bytes > self._limits.result_bytes:
            oldest, size = self._whole.popitem(last=False)
            self._bytes -= size
            self._results[oldest] = _shorten(self._results[oldest])
        while len(self._results) > self._limits.calls:
            oldest, _ = self._results.popitem(last=False)
            self._bytes -= self._whole.pop(oldest, 0)

    def forget(self, call_ids: Iterable[str]) -> None:
        """Forget these calls: they may run again."""
        for call_id in call_ids:
            self._results.pop(call_id, None)
            self._bytes -= self._whole.pop(call_id, 0)


def size_of(result: ToolResult) -> int:
    """The approximate size of a result in bytes."""
    content = result.content
    size = sys.getsizeof(content) if not isinstance(content, tuple) else sum(map(_part_size, content))
    for value in (result.result, result.executed_arguments):
        if value is not None:
            size += _json_size(value)
    return size


def _part_size(part: Any) -> int:
    if isinstance(part, Text):
        return sys.getsizeof(part.text)
    return sys.getsizeof(part.data) if isinstance(part, Media) else _json_size(part.value)


def _json_size(value: object) -> int:
    return len(msgspec.json.encode(value))


def _shorten(result: ToolResult) -> ToolResult:
    """A result that only says that the call ran and how it ended. It is the same completion as the whole one."""
    key = completion_key(result)
    return replace(result, content=RUN_BEFORE, result=None, executed_arguments=None, shortened_from=key)

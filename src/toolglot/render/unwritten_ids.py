"""Calls and results that are sent without their ids: where the target refuses ids, and where its own client wrote none.

A value keeps its id here, by which everything else knows it; the note `no_id` tells the codec not to write it. Law: an
id is left out only where order and name alone give every result of the exchange to its call, so that nobody is
answered with what was meant for another (laws 2 and 6), and whether it is depends on the exchange alone (law 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from toolglot.conversation import ToolCall, ToolResult, Turn
from toolglot.render.job import Job

NO_ID: Final = "~no_id"
ABSENT: Final = "absent"
REFUSED: Final = "refused"

Carrier = TypeVar("Carrier", ToolCall, ToolResult)


class Hidden:
    """Which calls and results are sent without an id, by the ids of the calls."""

    def __init__(self, turns: Iterable[Turn], job: Job) -> None:
        self._protocol = job.profile.protocol
        self._mark = ABSENT if job.profile.ids.written else REFUSED
        self._are_named = job.profile.results.name == "required"
        self._calls: set[str] = set()
        self._results: set[str] = set()
        if job.goes_home and job.profile.ids.written and not job.profile.ids.required:
            self._look_at(turns)

    def call(self, call: ToolCall, key: str) -> ToolCall:
        """A call, known here by the key, as it is to be written."""
        return self._marked(call, is_hidden=key in self._calls)

    def result(self, result: ToolResult, key: str) -> ToolResult:
        return self._marked(result, is_hidden=key in self._results)

    def has_call(self, key: str) -> bool:
        return self._mark == REFUSED or key in self._calls

    def _marked(self, block: Carrier, *, is_hidden: bool) -> Carrier:
        if block.extra is None and not is_hidden and self._mark == ABSENT:
            return block  # as nearly all
        mark = self._mark if is_hidden or self._mark == REFUSED else None
        extra = block.extra or {}
        own = extra.get(self._protocol, {})
        if own.get(NO_ID) == mark:
            return block
        kept = {key: value for key, value in own.items() if key != NO_ID}
        if mark is not None:
            kept[NO_ID] = mark
        return replace(block, extra={**extra, self._protocol: kept})

    # --- as the client wrote it -----------------------------------------------------------------

    def _look_at(self, turns: Iterable[Turn]) -> None:
        calls: Sequence[ToolCall] = ()
        results: list[ToolResult] = []
        for turn in turns:
            if turn.calls:
                self._hide(calls, results)
                calls, results = turn.calls, []
            results += turn.results
        self._hide(calls, results)

    def _hide(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Leave out the ids that an exchange did not have, if it is understood without them."""
        nameless = {call.id for call in calls if self._has_none(call, call.id)}
        hidden = {result.call_id for result in results if self._is_left_out(result, nameless)}
        if (nameless or hidden) and nameless <= hidden and self._is_clear(calls, results, hidden):
            self._calls |= nameless
            self._results |= hidden

    def _has_none(self, block: ToolCall | ToolResult, id: str) -> bool:
        if (block.extra or {}).get(self._protocol, {}).get(NO_ID) is not None:
            return True
        native = block.metadata.raw_id if block.metadata is not None else id
        return not native

    def _is_left_out(self, result: ToolResult, nameless: set[str]) -> bool:
        """Whether a result has no id. One that nobody wrote has what its call has."""
        if result.metadata is None and result.synthetic is not None:
            return result.call_id in nameless
        return self._has_none(result, result.call_id)

    def _is_clear(self, calls: Sequence[ToolCall], results: Sequence[ToolResult], hidden: set[str]) -> bool:
        """Whether the results without an id are those of the first open calls of their names."""
        names = {call.id: call.name for call in calls}
        in_order = deque(names)
        by_name: dict[str, deque[str]] = {}
        for id, name in names.items():
            by_name.setdefault(name, deque()).append(id)
        answered: set[str] = set()
        for result in results:
            if result.call_id in hidden:
                is_named = self._are_named or result.name != ""
                waiting = by_name[names[result.call_id]] if is_named else in_order
                while waiting[0] in answered:
                    waiting.popleft()
                if waiting[0] != result.call_id:
                    return False
            answered.add(result.call_id)
        return True

"""Calls and results that are sent without their ids: where the target refuses ids, and where its own client wrote none.

A value keeps its id here, by which everything else knows it; the note `no_id` tells the codec not to write it, and the
note `own_id` of a result what to write instead: the id that the client wrote, to a call without one. Law: an id is left
out only where order and name alone give every result of the exchange to its call, so that nobody is answered with what
was meant for another (laws 2 and 6), and whether it is depends on the exchange alone (law 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from toolglot.conversation import ToolCall, ToolResult, Turn
from toolglot.render.context import RenderContext

NO_ID: Final = "~no_id"
OWN_ID: Final = "~own_id"
ABSENT: Final = "absent"
REFUSED: Final = "refused"

Carrier = TypeVar("Carrier", ToolCall, ToolResult)


class OmittedIds:
    """Which calls and results are sent without an id, by the ids of the calls."""

    def __init__(self, turns: Iterable[Turn], ctx: RenderContext) -> None:
        self._protocol = ctx.profile.protocol
        self._mark = ABSENT if ctx.profile.ids.written else REFUSED
        self._are_named = ctx.profile.results.name == "required"
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._own_ids: dict[str, str] = {}
        """The ids of results whose calls have none."""
        if ctx.is_native and ctx.profile.ids.written and not ctx.profile.ids.required:
            self._collect(turns)

    def call(self, call: ToolCall, key: str) -> ToolCall:
        """A call, known here by the key, as it is to be written."""
        return self._with_marks(call, self._mark_of(is_omitted=key in self._calls))

    def result(self, result: ToolResult, key: str) -> ToolResult:
        return self._with_marks(result, self._mark_of(is_omitted=key in self._results), self._own_ids.get(key))

    def has_call(self, key: str) -> bool:
        return self._mark == REFUSED or key in self._calls

    def _mark_of(self, *, is_omitted: bool) -> str | None:
        return self._mark if is_omitted or self._mark == REFUSED else None

    def _with_marks(self, block: Carrier, mark: str | None, own_id: str | None = None) -> Carrier:
        if block.extra is None and mark is None and own_id is None:
            return block  # as nearly all
        extra = block.extra or {}
        own = extra.get(self._protocol, {})
        if own.get(NO_ID) == mark and own.get(OWN_ID) == own_id:
            return block
        kept = {key: value for key, value in own.items() if key not in (NO_ID, OWN_ID)}
        kept |= {key: note for key, note in ((NO_ID, mark), (OWN_ID, own_id)) if note is not None}
        return replace(block, extra={**extra, self._protocol: kept})

    # --- as the client wrote it -----------------------------------------------------------------

    def _collect(self, turns: Iterable[Turn]) -> None:
        calls: Sequence[ToolCall] = ()
        results: list[ToolResult] = []
        for turn in turns:
            if turn.calls:
                self._omit(calls, results)
                calls, results = turn.calls, []
            results += turn.results
        self._omit(calls, results)

    def _omit(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Leave out the ids that an exchange did not have, if it is understood without them."""
        nameless = {call.id for call in calls if self._has_no_id(call, call.id)}
        omitted = {result.call_id for result in results if self._is_omitted(result, nameless)}
        own = {result.call_id: id for result in results if (id := self._own_id_of(result, nameless, omitted))}
        unnamed = omitted | own.keys()
        if (nameless or omitted) and nameless <= unnamed and self._is_clear(calls, results, unnamed):
            self._calls |= nameless
            self._results |= omitted
            self._own_ids |= own

    def _own_id_of(self, result: ToolResult, nameless: set[str], omitted: set[str]) -> str | None:
        """The id of a result that names no call, since its call has none."""
        if result.call_id not in nameless or result.call_id in omitted or result.metadata is None:
            return None
        return result.metadata.raw_id

    def _has_no_id(self, block: ToolCall | ToolResult, id: str) -> bool:
        if (block.extra or {}).get(self._protocol, {}).get(NO_ID) is not None:
            return True
        native = block.metadata.raw_id if block.metadata is not None else id
        return not native

    def _is_omitted(self, result: ToolResult, nameless: set[str]) -> bool:
        """Whether a result has no id. One that nobody wrote has what its call has."""
        if result.metadata is None and result.synthetic is not None:
            return result.call_id in nameless
        return self._has_no_id(result, result.call_id)

    def _is_clear(self, calls: Sequence[ToolCall], results: Sequence[ToolResult], omitted: set[str]) -> bool:
        """Whether the results without an id are those of the first open calls of their names."""
        names = {call.id: call.name for call in calls}
        in_order = deque(names)
        by_name: dict[str, deque[str]] = {}
        for id, name in names.items():
            by_name.setdefault(name, deque()).append(id)
        answered: set[str] = set()
        for result in results:
            if result.call_id in omitted:
                is_named = self._are_named or result.name != ""
                waiting = by_name[names[result.call_id]] if is_named else in_order
                while waiting[0] in answered:
                    waiting.popleft()
                if waiting[0] != result.call_id:
                    return False
            answered.add(result.call_id)
        return True

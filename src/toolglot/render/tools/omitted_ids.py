"""Calls and results that are sent without their ids: the target refuses ids, or its own client wrote none.

A value keeps its id in the conversation; with `id_omitted` the codec does not write it, and writes the `written_id` of
a result instead: the id that the client wrote, for a call without one. Law: an id is omitted only if order and name
alone assign every result of the exchange to its call (laws 2 and 6), which depends on the exchange alone (law 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from toolglot.conversation import ToolCall, ToolResult, Turn
from toolglot.render.context import RenderContext

ABSENT: Final = "absent"
REFUSED: Final = "refused"
Reason = Literal["absent", "refused"]


class OmittedIds:
    """Which calls and results are sent without an id, by the ids of the calls."""

    def __init__(self, turns: Iterable[Turn], ctx: RenderContext) -> None:
        self._mark: Reason = ABSENT if ctx.profile.ids.written else REFUSED
        self._are_named = ctx.profile.results.name == "required"
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._own_ids: dict[str, str] = {}
        """The ids of results whose calls have no id."""
        if ctx.is_native and ctx.profile.ids.written and not ctx.profile.ids.required:
            self._collect(turns)

    def call(self, call: ToolCall, key: str) -> ToolCall:
        """The call with this key, as it is to be written."""
        reason = self._reason(is_omitted=key in self._calls)
        return call if call.id_omitted == reason else replace(call, id_omitted=reason)

    def result(self, result: ToolResult, key: str) -> ToolResult:
        reason, own_id = self._reason(is_omitted=key in self._results), self._own_ids.get(key)
        if result.id_omitted == reason and result.written_id == own_id:
            return result
        return replace(result, id_omitted=reason, written_id=own_id)

    def has_call(self, key: str) -> bool:
        return self._mark == REFUSED or key in self._calls

    def _reason(self, *, is_omitted: bool) -> Reason | None:
        return self._mark if is_omitted or self._mark == REFUSED else None

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
        """Omit the ids that an exchange did not have, if it is unambiguous without them."""
        nameless = {call.id for call in calls if self._has_no_id(call, call.id)}
        omitted = {result.call_id for result in results if self._is_omitted(result, nameless)}
        own = {result.call_id: id for result in results if (id := self._own_id_of(result, nameless, omitted))}
        unnamed = omitted | own.keys()
        if (nameless or omitted) and nameless <= unnamed and self._is_clear(calls, results, unnamed):
            self._calls |= nameless
            self._results |= omitted
            self._own_ids |= own

    def _own_id_of(self, result: ToolResult, nameless: set[str], omitted: set[str]) -> str | None:
        """The id of a result that matches no call, since its call has no id."""
        if result.call_id not in nameless or result.call_id in omitted or result.metadata is None:
            return None
        return result.metadata.raw_id

    def _has_no_id(self, block: ToolCall | ToolResult, id: str) -> bool:
        if block.id_omitted is not None:
            return True
        native = block.metadata.raw_id if block.metadata is not None else id
        return not native

    def _is_omitted(self, result: ToolResult, nameless: set[str]) -> bool:
        """Whether a result has no id. A synthetic one follows its call."""
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

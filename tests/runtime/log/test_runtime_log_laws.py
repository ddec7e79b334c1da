"""Whatever happens to a session, its log gives it back: the same turns, keys, ids, ledger, report and sums."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.conversations.strategies import transcripts, turns
from toolglot import History, Text, ToolglotError, ToolResult, Turn, Usage
from toolglot.conversation.report import Entry
from toolglot.runtime.log.entries import ToolFinished, ToolStarted
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.log.sessions import read_session
from toolglot.store import SqliteStore

T = TypeVar("T")
picks = st.integers(0, 50)
EVERY_TOOL = ("read", "write", "", "in no toolbox")


class Sessions(RuleBasedStateMachine):
    """Random operations on a session, reopened at random points; in between it is read without being taken."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.runner.run(_in_memory())
        self.log = self.run(SessionLog.create(self.store, model="openai/gpt-5"))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.log.close())
        self.run(self.store.close())
        self.runner.close()

    def _key(self, pick: int) -> str | None:
        history = self.log.history
        return history.turns[pick % len(history)].key if len(history) else None

    @rule(turn=turns)
    def say(self, turn: Turn) -> None:
        self.run(self.log.add_turn(turn))

    @rule(several=transcripts, tokens=st.integers(0, 9))
    def say_several(self, several: list[Turn], tokens: int) -> None:
        spent = Usage(input_tokens=tokens)
        self.run(self.log.change(lambda history: history.extend(several), usage=spent, cost=Decimal(tokens)))

    @rule(pick=picks)
    def say_again(self, pick: int) -> None:
        if (key := self._key(pick)) is not None:
            self.run(self.log.add_turn(self.log.history.turn(key)))

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        found = list(self.log.history.ledger)
        if found:
            self.run(self.log.change(lambda history: history.cancel(found[pick % len(found)].id)))

    @rule(pick=picks)
    def publish(self, pick: int) -> None:
        pending = self.log.history.ledger.pending
        if pending:
            self.run(self.log.publish([ToolResult(pending[pick % len(pending)].id, "a result")]))

    @rule(pick=picks)
    def start(self, pick: int) -> None:
        pending = self.log.history.ledger.pending
        if pending:
            self.run(self.log.record_start(pending[pick % len(pending)].call, {"edited": pick}))

    @rule(pick=picks)
    def finish(self, pick: int) -> None:
        pending = self.log.history.ledger.pending
        if pending:
            self.run(self.log.record_result(ToolResult(pending[pick % len(pending)].id, "what it gave")))

    @rule(pick=picks, short=st.none() | st.integers(0, 60))
    def compress(self, pick: int, short: int | None) -> None:
        key = self._key(pick)
        self.run(
            self.log.change(lambda h: h.compress(summary="so far", before=key, max_result_characters=short)),
        )

    @rule(pick=picks)
    def shorten(self, pick: int) -> None:
        key = self._key(pick)
        self.run(self.log.change(lambda history: history.shorten_results(max_characters=40, before=key)))

    @rule(pick=picks)
    def prune(self, pick: int) -> None:
        key, before = self._key(pick), self.log.history.turns
        if key is not None:
            try:
                self.run(self.log.change(lambda history: history.prune(key)))
            except ToolglotError:
                assert self.log.history.turns == before

    @rule(pick=picks)
    def rewind(self, pick: int) -> None:
        key = self._key(pick)
        self.run(self.log.change(lambda history: history.rewind(key)))

    @rule()
    def tell(self) -> None:
        self.log.history.add_entry(Entry(action="dropped", reason="a try failed", fault="policy"))

    @rule(model=st.sampled_from(["a/b", "c/d"]))
    def switch(self, model: str) -> None:
        self.run(self.log.record_model(model))

    @rule()
    def an_operation_that_fails_half_way_is_undone(self) -> None:
        before = _state(self.log.history)

        def half(history: History) -> None:
            history.append(Turn("user", (Text("half"),)))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.run(self.log.change(half))
        assert _state(self.log.history) == before

    @rule()
    def reopen(self) -> None:
        before, sums = _state(self.log.history), (self.log.usage, self.log.cost, self.log.model)
        self.run(self.log.close())
        runs = dict(self.log._state.runs)
        self.log = self.run(SessionLog.open(self.store, self.log.id, keep_open=EVERY_TOOL))
        assert (self.log.usage, self.log.cost, self.log.model) == sums
        if not runs.keys() & {found.id for found in self.log.history.ledger}:
            assert _state(self.log.history) == before

    @rule()
    def crash(self) -> None:
        """Another process takes over; every call then has a result, and the right one."""
        left, before = self.log, _state(self.log.history)
        runs = dict(left._state.runs)
        pending = {found.id for found in left.history.ledger.pending}
        self.run(left._claim.release())
        self.log = self.run(SessionLog.open(self.store, left.id))
        ledger = self.log.history.ledger
        assert ledger.pending == ()
        for call_id in pending:
            result, run = ledger[call_id].result, runs.get(call_id)
            assert result is not None
            if isinstance(run, ToolFinished):
                assert result.text == "what it gave"
            elif isinstance(run, ToolStarted):
                assert "outcome is unknown" in result.text
                assert ledger[call_id].executed_arguments == run.arguments
            else:
                assert "never started" in result.text
        with pytest.raises(ToolglotError):
            self.run(left.add_turn(Turn("user", (Text("late"),))))
        assert _state(left.history)[:2] == before[:2]
        self.run(left.close())

    @invariant()
    def the_log_gives_the_session_back(self) -> None:
        info, standing = self.run(read_session(self.store, self.log.id))
        kept = standing.history()
        assert _state(kept)[:2] == _state(self.log.history)[:2]
        known = self.log.history.report.entries
        assert known[: len(standing.report)] == tuple(standing.report)
        assert kept.report.entries == (*standing.report, *self.log.history.ledger.entries)
        assert info.model == self.log.model
        assert info.turns == len(self.log.history)


def _state(history: History) -> tuple[object, ...]:
    """All that must be the same; a ledger is compared by what it holds."""
    return history.turns, list(history.ledger), history.report.entries


async def _in_memory() -> SqliteStore:
    return SqliteStore(":memory:")


TestSessions = pytest.mark.law(Sessions.TestCase)
TestSessions.settings = settings(stateful_step_count=25)

"""Any sequence of operations on a history, with any turns, keeps the laws."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.conversations.strategies import transcripts, turns
from toolglot import History, Interaction, Ledger, ToolglotError, Turn, dump, load
from toolglot.conversation import ids
from toolglot.conversation.completion import is_explicit_cancel, is_guess, status_of


class Operations(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.history = History(provider="openai")

    def _key(self, pick: int) -> str | None:
        return self.history.turns[pick % len(self.history)].key if len(self.history) else None

    def _states(self) -> dict[str, Interaction]:
        return {found.id: found for found in self.history.ledger}

    @rule(turn=turns)
    def append(self, turn: Turn) -> None:
        before = self._states()
        self.history.append(turn)
        self._check_that_terminal_states_stayed(before)

    @rule(several=transcripts)
    def extend(self, several: list[Turn]) -> None:
        before = self._states()
        self.history.extend(several)
        self._check_that_terminal_states_stayed(before)

    def _check_that_terminal_states_stayed(self, before: dict[str, Interaction]) -> None:
        now = self._states()
        assert before.keys() <= now.keys()
        for call_id, found in before.items():
            if found.result is not None and not is_guess(found.result) and found.status != "pending":
                assert now[call_id].status != "pending"
                if is_explicit_cancel(found.result):
                    assert now[call_id].result == found.result

    @rule(pick=st.integers(0, 50))
    def cancel(self, pick: int) -> None:
        found = list(self.history.ledger)
        if found:
            self.history.cancel(found[pick % len(found)].id)

    @rule(pick=st.integers(0, 50), short=st.none() | st.integers(0, 60))
    def compress(self, pick: int, short: int | None) -> None:
        before = self._states()
        self.history.compress(summary="so far", before=self._key(pick), max_result_characters=short)
        assert {id: found.status for id, found in self._states().items()} == {
            id: found.status for id, found in before.items()
        }

    @rule(pick=st.integers(0, 50))
    def shorten(self, pick: int) -> None:
        before = {id: found.status for id, found in self._states().items()}
        self.history.shorten_results(max_characters=40, before=self._key(pick))
        assert {id: found.status for id, found in self._states().items()} == before

    @rule(pick=st.integers(0, 50))
    def prune(self, pick: int) -> None:
        key, before, turns_before = self._key(pick), self._states(), self.history.turns
        if key is not None:
            try:
                self.history.prune(key)
            except ToolglotError:
                assert self.history.turns == turns_before
            assert self._states() == before

    @rule(pick=st.integers(0, 50))
    def rewind(self, pick: int) -> None:
        self.history.rewind(self._key(pick))

    @rule(pick=st.integers(0, 50))
    def fork(self, pick: int) -> None:
        branch = self.history.fork(at=self._key(pick))
        assert branch.ledger == Ledger.of(branch.turns)

    @rule()
    def reload(self) -> None:
        self.history = History(load(dump(self.history.conversation)), provider="openai")

    @rule(pick=st.integers(0, 50))
    def add_again(self, pick: int) -> None:
        key, before = self._key(pick), self.history.turns
        if key is not None:
            self.history.append(self.history.turn(key))
            assert self.history.turns == before

    @invariant()
    def the_ledger_is_a_function_of_the_turns(self) -> None:
        assert self.history.ledger == Ledger.of(self.history.turns)

    @invariant()
    def a_reload_is_the_same(self) -> None:
        data = dump(self.history.conversation)
        again = History(load(data))
        assert again.turns == self.history.turns
        assert again.ledger == self.history.ledger
        assert dump(again.conversation) == data

    @invariant()
    def ids_and_keys_are_canonical_and_distinct(self) -> None:
        kept = self.history.turns
        calls = [call.id for turn in kept for call in turn.calls]
        assert len(set(calls)) == len(calls)
        assert len({turn.key for turn in kept}) == len(kept)
        held = [result.call_id for turn in kept for result in turn.results]
        assert all(ids.is_canonical(id) for id in (*calls, *held))

    @invariant()
    def a_call_has_one_guess_at_most_and_none_beside_a_sure_result(self) -> None:
        results = [r for turn in self.history.turns for r in turn.results if status_of(r) != "pending"]
        guessed = Counter(result.call_id for result in results if is_guess(result))
        sure = {result.call_id for result in results if result.metadata and result.metadata.matched_by == "id"}
        assert all(count == 1 for count in guessed.values())
        assert not sure & guessed.keys()
        orphans = {r.call_id for r in results if r.metadata and r.metadata.matched_by == "orphan"}
        assert not orphans & {found.id for found in self.history.ledger}


TestOperations = pytest.mark.law(Operations.TestCase)
TestOperations.settings = settings(stateful_step_count=25)

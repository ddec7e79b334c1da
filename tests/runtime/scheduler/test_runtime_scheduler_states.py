"""The states of a call: what may follow what, and that a final state is final."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from toolglot.conversation import ToolCall, ToolResult
from toolglot.errors import ToolglotError
from toolglot.runtime.scheduler.call_states import (
    CHANGES,
    FINAL,
    CallChange,
    CallState,
    IllegalChangeError,
    State,
    final_state,
)

CALL = ToolCall("c1", "tool", {})
RESULTS: dict[State, ToolResult] = {
    "success": ToolResult("c1", "fine", status="complete"),
    "error": ToolResult("c1", "bad", is_error=True, status="error"),
    "cancelled": ToolResult("c1", "stopped", status="cancelled"),
}


class Lifecycle(RuleBasedStateMachine):
    """Whatever is tried: only the table's changes happen, each is reported, and an illegal one changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[CallChange] = []
        self.state = CallState(CALL, self.changes.append)
        self.path: list[State] = ["validating"]

    @rule(wanted=st.sampled_from(sorted(CHANGES.keys() - FINAL)))
    def go_on(self, wanted: State) -> None:
        self._try(wanted, lambda: self.state.become(wanted))

    @rule(wanted=st.sampled_from(sorted(FINAL)))
    def end(self, wanted: State) -> None:
        self._try(wanted, lambda: self.state.end(RESULTS[wanted]))

    @rule(wanted=st.sampled_from(sorted(FINAL)))
    def become_final_without_a_result(self, wanted: State) -> None:
        with pytest.raises(IllegalChangeError):
            self.state.become(wanted)

    @rule(text=st.text(min_size=1, max_size=3))
    def say(self, text: str) -> None:
        changes_before = len(self.changes)
        self.state.report_progress(text)
        assert len(self.changes) == changes_before + (self.path[-1] == "executing")
        if self.path[-1] == "executing":
            assert self.changes.pop() == CallChange(
                CALL, "executing", progress=text, attempt=self.path.count("executing")
            )

    def _try(self, wanted: State, change: object) -> None:
        assert callable(change)
        if wanted in CHANGES[self.path[-1]]:
            change()
            self.path.append(wanted)
        else:
            with pytest.raises(IllegalChangeError) as caught:
                change()
            assert (caught.value.state, caught.value.wanted) == (self.path[-1], wanted)

    @invariant()
    def watchers_saw_what_happened(self) -> None:
        assert [change.state for change in self.changes] == self.path
        assert self.state.state == self.path[-1]
        assert self.state.is_final == (self.path[-1] in FINAL)
        assert self.state.result == RESULTS.get(self.path[-1])
        assert [change.result is not None for change in self.changes] == [state in FINAL for state in self.path]
        assert self.changes[-1].attempt == max(1, self.path.count("executing"))


TestLifecycle = pytest.mark.law(Lifecycle.TestCase)


def test_an_illegal_change_is_a_failed_assertion_and_one_of_toolglots_errors() -> None:
    state = CallState(CALL)
    state.end(RESULTS["cancelled"])
    with pytest.raises(AssertionError, match="'c1' is cancelled and cannot become success") as caught:
        state.end(RESULTS["success"])
    assert isinstance(caught.value, ToolglotError)
    assert state.result == RESULTS["cancelled"]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_the_final_state_follows_from_the_result(state: State) -> None:
    assert final_state(RESULTS[state]) == state
    assert CHANGES[state] == frozenset()

"""The states of a tool call inside a scheduler, and the one class that may change them.

    validating ──▶ awaiting_approval ──▶ scheduled ──▶ executing ──▶ success | error | cancelled
        ▲                 │                                │ ▲
        └── edited ───────┘                    tried again └─┘

Each state may also lead directly to `error` or `cancelled`; a call that needs no approval skips that state.

Law: a final state is final. A change that is not in the table is a bug in toolglot: it raises `IllegalChangeError`
and changes nothing. The final state follows from the result alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from toolglot.conversation import ToolCall, ToolResult
from toolglot.conversation.completion import status_of
from toolglot.errors import ToolglotError

State = Literal["validating", "awaiting_approval", "scheduled", "executing", "success", "error", "cancelled"]
"""The state of a call. The last three are final."""

FINAL: Final[frozenset[State]] = frozenset(("success", "error", "cancelled"))

CHANGES: Final[dict[State, frozenset[State]]] = {
    "validating": frozenset(("awaiting_approval", "scheduled", "error", "cancelled")),
    "awaiting_approval": frozenset(("validating", "scheduled", "error", "cancelled")),
    "scheduled": frozenset(("executing", "error", "cancelled")),
    "executing": frozenset(("executing", "success", "error", "cancelled")),
    "success": frozenset(),
    "error": frozenset(),
    "cancelled": frozenset(),
}
"""The states that may follow each state. `executing` follows itself when a call is retried."""


class CallChange(Struct, frozen=True):
    """What a scheduler reports about a call: its new state, or the progress of a running tool."""

    call: ToolCall
    state: State
    result: ToolResult | None = None
    """Set if and only if the state is final."""
    progress: str = ""
    """The progress that the tool reports. Shown live, never part of a history."""
    attempt: int = 1


class IllegalChangeError(ToolglotError, AssertionError):
    """A call was to enter a state that cannot follow its current one."""

    def __init__(self, call_id: str, state: State, wanted: State) -> None:
        super().__init__(f"call {call_id[:80]!r} is {state} and cannot become {wanted}")
        self.state = state
        self.wanted = wanted


class CallState:
    """The state of one call. `notify` is called with every change, in order."""

    __slots__ = ("_notify", "attempt", "call", "result", "state")

    def __init__(self, call: ToolCall, notify: Callable[[CallChange], None] | None = None) -> None:
        self.call: ToolCall = call
        self.state: State = "validating"
        self.attempt: int = 1
        self.result: ToolResult | None = None
        self._notify = notify
        if notify is not None:
            notify(CallChange(call, "validating"))

    @property
    def is_final(self) -> bool:
        return self.result is not None

    def become(self, state: State) -> None:
        """Enter a state that is not final. `executing` again is the next attempt."""
        if state in FINAL or state not in CHANGES[self.state]:
            raise IllegalChangeError(self.call.id, self.state, state)
        if state == "executing" and self.state == "executing":
            self.attempt += 1
        self.state = state
        if self._notify is not None:
            self._notify(CallChange(self.call, state, attempt=self.attempt))

    def end(self, result: ToolResult) -> None:
        """Enter the final state of a result."""
        state = final_state(result)
        if state not in CHANGES[self.state]:
            raise IllegalChangeError(self.call.id, self.state, state)
        self.state = state
        self.result = result
        if self._notify is not None:
            self._notify(CallChange(self.call, state, result, attempt=self.attempt))

    def report_progress(self, progress: str) -> None:
        """Pass on the progress of a running tool. Progress before or after that is ignored."""
        if self.state == "executing" and self._notify is not None:
            self._notify(CallChange(self.call, "executing", progress=progress, attempt=self.attempt))


def final_state(result: ToolResult) -> State:
    """The final state that a result leads to."""
    status = status_of(result)
    if status == "cancelled":
        return "cancelled"
    return "error" if status == "error" else "success"

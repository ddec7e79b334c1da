"""The states of a tool call while a scheduler has it, and the one object that may change them.

    validating ──▶ awaiting_approval ──▶ scheduled ──▶ executing ──▶ success | error | cancelled
        ▲                 │                                │ ▲
        └── edited ───────┘                    tried again └─┘

Each state may also lead to `error` or `cancelled` at once; a call that needs no approval skips it.

Law: a final state is final. A change that the table does not have is a fault of toolglot's own, raises
`IllegalChangeError` and changes nothing. The final state follows from the result and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from toolglot.conversation import ToolCall, ToolResult
from toolglot.conversation.completion import status_of
from toolglot.errors import ToolglotError

State = Literal["validating", "awaiting_approval", "scheduled", "executing", "success", "error", "cancelled"]
"""Where a call is. The last three are final."""

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
"""What each state may become. `executing` follows itself when a call is tried again."""


class CallChange(Struct, frozen=True):
    """What a scheduler tells of a call: its new state, or that a tool which runs has something to say."""

    call: ToolCall
    state: State
    result: ToolResult | None = None
    """There iff the state is final."""
    progress: str = ""
    """What the tool says of how far it is. Shown live, never part of a history."""
    attempt: int = 1


class IllegalChangeError(ToolglotError, AssertionError):
    """A call was to go from one state to another that does not follow it."""

    def __init__(self, call_id: str, state: State, wanted: State) -> None:
        super().__init__(f"call {call_id[:80]!r} is {state} and cannot become {wanted}")
        self.state = state
        self.wanted = wanted


class CallState:
    """One call's state. `tell` hears of every change, in the order in which they happen."""

    __slots__ = ("_tell", "attempt", "call", "result", "state")

    def __init__(self, call: ToolCall, tell: Callable[[CallChange], None] | None = None) -> None:
        self.call: ToolCall = call
        self.state: State = "validating"
        self.attempt: int = 1
        self.result: ToolResult | None = None
        self._tell = tell
        if tell is not None:
            tell(CallChange(call, "validating"))

    @property
    def is_final(self) -> bool:
        return self.result is not None

    def become(self, state: State) -> None:
        """Go on to a state that is not final; `executing` once more is the next attempt."""
        if state in FINAL or state not in CHANGES[self.state]:
            raise IllegalChangeError(self.call.id, self.state, state)
        if state == "executing" and self.state == "executing":
            self.attempt += 1
        self.state = state
        if self._tell is not None:
            self._tell(CallChange(self.call, state, attempt=self.attempt))

    def end(self, result: ToolResult) -> None:
        """Come to the final state that a result says."""
        state = final_state(result)
        if state not in CHANGES[self.state]:
            raise IllegalChangeError(self.call.id, self.state, state)
        self.state = state
        self.result = result
        if self._tell is not None:
            self._tell(CallChange(self.call, state, result, attempt=self.attempt))

    def say(self, progress: str) -> None:
        """Pass on what the tool says while it runs; what it says before or after that goes nowhere."""
        if self.state == "executing" and self._tell is not None:
            self._tell(CallChange(self.call, "executing", progress=progress, attempt=self.attempt))


def final_state(result: ToolResult) -> State:
    """The final state that a result stands for."""
    status = status_of(result)
    if status == "cancelled":
        return "cancelled"
    return "error" if status == "error" else "success"

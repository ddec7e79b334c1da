"""The write boundary of a session: every write to its history goes through one of these, and nothing else does.

`MemoryLog` keeps nothing but the history itself; `session_log.SessionLog` does the same and is safe on disk before it
returns. A session never asks which one it has.

    say(turn)          the user, or the system, said something
    commit(attempt)    a model's answer became part of the conversation
    publish(results)   the results of its calls did
    land(reason)       the turn in flight is over; calls without a result are cancelled, for this reason

Laws: a write happens whole or not at all: one that failed leaves the turn in flight as it was too. What is written is
in the order in which it happened, calls before their results. What is known of a call is written before anything is
made up in its place. `started` and `finished` are the scheduler's journal: a tool with side effects is in it before it
starts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar, runtime_checkable

from toolglot.conversation import Conversation, ToolCall, ToolResult, Turn, Usage
from toolglot.history.attempts import Attempt
from toolglot.history.history import History

T = TypeVar("T")


class Log(Protocol):
    """What a session writes to."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def history(self) -> History: ...

    async def add_turn(self, turn: Turn) -> Turn:
        """Write what was said; the turn as it is kept."""
        ...

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        """Write a model's answer, and what was spent until now and is not written yet: `usage`, or what the answer
        says, and `cost`. Calls in it that were cut are cancelled by the attempt, as one more turn."""
        ...

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        """Write results of calls as one turn, in this order; None where there are none."""
        ...

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        """End the turn in flight, if there is one. Calls that have no result get the one that is known of them; the
        others are cancelled for good."""
        ...

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        """Do what replaces turns: compress, shorten, rewind, prune. What stays is written anew, and what was spent."""
        ...

    async def record_model(self, model: str) -> None:
        """From now on this model is asked."""
        ...

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """A tool with side effects is about to start."""
        ...

    async def record_result(self, result: ToolResult) -> None:
        """A tool with side effects ended."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class SpendingLog(Protocol):
    """A log that knows what its session has taken until now: one that was opened again."""

    @property
    def usage(self) -> Usage: ...

    @property
    def cost(self) -> Decimal | None: ...


class MemoryLog:
    """A write boundary that keeps nothing beyond its process."""

    def __init__(self, history: History | None = None, *, id: str = "") -> None:
        self.id: str = id or new_id()
        self.history: History = history if history is not None else History(Conversation())

    async def add_turn(self, turn: Turn) -> Turn:
        return self.history.append(turn)

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:  # noqa: ARG002 - not kept
        return attempt.commit()

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        return self.history.record(*results) if results else None

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        end_turn(self.history, reason, known)

    async def change(
        self,
        change: Callable[[History], T],
        *,
        usage: Usage | None = None,  # noqa: ARG002 - not kept
        cost: Decimal | None = None,  # noqa: ARG002 - not kept
    ) -> T:
        return change(self.history)

    async def record_model(self, model: str) -> None:
        """Nobody asks for it later."""

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """Nothing outlives this process."""

    async def record_result(self, result: ToolResult) -> None:
        """Nothing outlives this process."""

    async def close(self) -> None:
        """There is nothing to close."""


def new_id() -> str:
    """An id for a session."""
    return f"ses_{secrets.token_hex(12)}"


def end_turn(history: History, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
    """End the turn in flight of a history, if there is one."""
    flight = history.in_flight
    if flight is None:
        return
    pending = {found.id for found in flight.pending}
    results = [result for result in known if result.call_id in pending]
    if results:
        history.record(*results)
    if flight.pending:
        flight.cancel(reason or "Cancelled by the user.")
    else:
        flight.finish()


def resume(history: History) -> None:
    """Have the turn in flight whose calls are open, in a history that comes from elsewhere: of another process, say."""
    if history.in_flight is not None or not (pending := {found.id for found in history.ledger.pending}):
        return
    turns = history.turns
    place = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), None)
    if place is None or not any(call.id in pending for call in turns[place].calls):
        return  # what is older stays as it is: nobody waits for it
    issuer = turns[place].issuer
    if issuer is None and history.target is None:
        return
    flight = history.begin_turn(issuer.provider if issuer is not None else None)
    flight._start = place  # noqa: SLF001 - as if it had begun before the turn with the calls

"""The write boundary of a session: every write to its history goes through a `Log`.

`MemoryLog` keeps only the history itself. `session_log.SessionLog` also writes to a store before each method returns.
A session does not know which one it has.

    add_turn(turn)     a message of the user or the system
    commit(attempt)    the reply of a model
    publish(results)   the results of its calls
    end_turn(reason)   the open turn ends; calls without a result are cancelled for this reason

Laws: a write happens completely or not at all: after a failure the open turn is unchanged too. Writes keep the order
of what happened, calls before their results. A known result of a call is always written rather than a made-up one.
`record_start` and `record_result` are the scheduler's journal: a tool with side effects is recorded before it starts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar, runtime_checkable

from toolglot.conversation import Conversation, ToolCall, ToolResult, Turn, Usage
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.runtime.scheduler import outcomes

T = TypeVar("T")


class Log(Protocol):
    """The interface that a session writes to."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def history(self) -> History: ...

    async def add_turn(self, turn: Turn) -> Turn:
        """Write a message; the turn as it is kept."""
        ...

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        """Write the reply of a model, and what was spent and not written yet: `usage`, or what the reply reports, and
        `cost`. The attempt cancels truncated calls in it, with one more turn."""
        ...

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        """Write results of calls as one turn, in this order; None without results."""
        ...

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        """End the open turn, if there is one. Calls without a result get the known one; the others are cancelled."""
        ...

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        """Replace turns: compress, shorten, rewind, prune. Writes the new state, and what was spent."""
        ...

    async def record_model(self, model: str) -> None:
        """This model is called from now on."""
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
    """A log that knows what its session has spent so far: one that was reopened."""

    @property
    def usage(self) -> Usage: ...

    @property
    def cost(self) -> Decimal | None: ...


class MemoryLog:
    """A log in memory, which ends with its process."""

    def __init__(self, history: History | None = None, *, id: str = "") -> None:
        self.id: str = id or new_memory_id()
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
        """Not kept."""

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """Not kept."""

    async def record_result(self, result: ToolResult) -> None:
        """Not kept."""

    async def close(self) -> None:
        """Nothing to close."""


def new_memory_id() -> str:
    """An id for a session in memory."""
    return f"ses_{secrets.token_hex(12)}"


def end_turn(history: History, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
    """End the open turn of a history, if there is one."""
    open_turn = history.in_flight
    if open_turn is None:
        return
    pending = {found.id for found in open_turn.pending}
    results = [result for result in known if result.call_id in pending]
    if results:
        history.record(*results)
    if open_turn.pending:
        open_turn.cancel(reason or outcomes.CANCELLED)
    else:
        open_turn.finish()


def reopen_turn(history: History) -> None:
    """Reopen the last turn of a history from elsewhere, such as another process, if its calls have no results."""
    if history.in_flight is not None or not (pending := {found.id for found in history.ledger.pending}):
        return
    turns = history.turns
    index = next((n for n in range(len(turns) - 1, -1, -1) if turns[n].role == "assistant"), None)
    if index is None or not any(call.id in pending for call in turns[index].calls):
        return  # older open calls stay as they are: nothing waits for them
    issuer = turns[index].issuer
    if issuer is None and history.target is None:
        return
    open_turn = history.begin_turn(issuer.provider if issuer is not None else None)
    open_turn._start = index  # noqa: SLF001 - as if it had begun before the turn with the calls

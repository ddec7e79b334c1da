"""The write boundary of a session: every write to its history goes through one of these, and nothing else does.

`MemoryLog` keeps nothing but the history itself; `session_log.SessionLog` does the same and is safe on disk before it
returns. A session never asks which one it has.

    say(turn)          the user, or the system, said something
    commit(attempt)    a model's answer became part of the conversation
    publish(results)   the results of its calls did
    land(reason)       the turn in flight is over; calls without a result are cancelled, for this reason

Law: a write happens whole or not at all. What is written is in the order in which it happened, calls before their
results. `started` and `finished` are the scheduler's journal: a tool with side effects is in it before it starts.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar, runtime_checkable

from toolglot.attempts import Attempt
from toolglot.conversation import Conversation, ToolCall, ToolResult, Turn, Usage
from toolglot.history import History

T = TypeVar("T")


class Log(Protocol):
    """What a session writes to."""

    @property
    def id(self) -> str:
        """The session's id."""
        ...

    @property
    def history(self) -> History: ...

    async def say(self, turn: Turn) -> Turn:
        """Write what was said; the turn as it is kept."""
        ...

    async def commit(self, attempt: Attempt, *, cost: Decimal | None = None) -> Turn:
        """Write a model's answer. Calls in it that were cut are cancelled by the attempt, as one more turn."""
        ...

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        """Write results of calls as one turn, in this order; None where there are none."""
        ...

    async def land(self, reason: str = "") -> None:
        """End the turn in flight, if there is one. Calls that have no result are cancelled for good."""
        ...

    async def change(self, change: Callable[[History], T]) -> T:
        """Do what replaces turns: compress, shorten, rewind, prune. What stays is written anew."""
        ...

    async def switched(self, model: str) -> None:
        """From now on this model is asked."""
        ...

    async def started(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """A tool with side effects is about to start."""
        ...

    async def finished(self, result: ToolResult) -> None:
        """A tool with side effects ended."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Spent(Protocol):
    """A log that knows what its session has taken until now: one that was opened again."""

    @property
    def usage(self) -> Usage: ...

    @property
    def cost(self) -> Decimal | None: ...


class MemoryLog:
    """A write boundary that keeps nothing beyond its process."""

    def __init__(self, history: History | None = None, *, id: str = "") -> None:
        self.id = id or new_id()
        self.history = history if history is not None else History(Conversation())

    async def say(self, turn: Turn) -> Turn:
        return self.history.append(turn)

    async def commit(self, attempt: Attempt, *, cost: Decimal | None = None) -> Turn:  # noqa: ARG002 - not kept
        return attempt.commit()

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        return self.history.record(*results) if results else None

    async def land(self, reason: str = "") -> None:
        land(self.history, reason)

    async def change(self, change: Callable[[History], T]) -> T:
        return change(self.history)

    async def switched(self, model: str) -> None:
        """Nobody asks for it later."""

    async def started(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """Nothing outlives this process."""

    async def finished(self, result: ToolResult) -> None:
        """Nothing outlives this process."""

    async def close(self) -> None:
        """There is nothing to close."""


def new_id() -> str:
    """An id for a session."""
    return f"ses_{secrets.token_hex(12)}"


def land(history: History, reason: str = "") -> None:
    """End the turn in flight of a history, if there is one."""
    flight = history.in_flight
    if flight is None:
        return
    if flight.pending:
        flight.cancel(reason or "Cancelled by the user.")
    else:
        flight.finish()

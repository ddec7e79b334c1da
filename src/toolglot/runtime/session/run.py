"""One run of a session: its events, why it was stopped, what it cost, and how it ended.

    running ──stop(reason)──▶ stopping ──▶ ended        a stopped run ends at the next step that can be
            ───────────────────────────▶ ended          cancelled, in a consistent state

Law: a run is cancelled only where nothing is half done. A call of a model can be cancelled at any moment; writes are
never cancelled; only the scheduler stops tools. A slow listener makes the model wait, never the tools.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
from anyio import CancelScope

from toolglot.conversation import Usage
from toolglot.runtime.log.usage import add_usage
from toolglot.runtime.session.events import RunResult, SessionEvent

T = TypeVar("T")

MAX_QUEUED_EVENTS: Final = 1_000
"""Events that may wait for a listener before the model has to wait too."""


class UsageTotal:
    """The sum of tokens and money."""

    __slots__ = ("_cost", "_is_known", "usage")

    def __init__(self) -> None:
        self.usage: Usage = Usage()
        self._cost = Decimal(0)
        self._is_known = True

    def add(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Count a reply. If its price is unknown, so is the total cost."""
        if usage is not None:
            self.usage = add_usage(self.usage, usage)
        if cost is None:
            self._is_known = False
        else:
            self._cost += cost

    @property
    def tokens(self) -> int:
        return (self.usage.input_tokens or 0) + (self.usage.output_tokens or 0)

    @property
    def known_cost(self) -> Decimal:
        """The known part of the cost."""
        return self._cost

    @property
    def cost(self) -> Decimal | None:
        return self._cost if self._is_known else None


class SessionRun:
    """A run, from a message to its result."""

    def __init__(self, *, has_listener: bool = False) -> None:
        self.total: UsageTotal = UsageTotal()
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        """An error that is not part of a result: a mistake of the caller, a store that failed."""
        self.reason: str | None = None
        """Why the run was stopped; None if it was not."""
        self.ended: anyio.Event = anyio.Event()
        self._scope: CancelScope | None = None
        self._events: deque[SessionEvent] | None = deque() if has_listener else None
        self._event_added: anyio.Event | None = None
        self._event_taken: anyio.Event | None = None

    @property
    def is_stopping(self) -> bool:
        return self.reason is not None

    def stop(self, reason: str) -> None:
        """Stop the run at the next step that can be cancelled. The first reason wins."""
        if self.reason is None:
            self.reason = reason
        if self._scope is not None:
            self._scope.cancel()

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """A block that is cancelled when the run is stopped. A run that is stopping must not enter it."""
        with CancelScope() as scope:
            self._scope = scope
            try:
                yield
            finally:
                self._scope = None

    # --- events -------------------------------------------------------------------------------------

    def emit(self, event: SessionEvent) -> None:
        if self._events is None:
            return
        self._events.append(event)
        if self._event_added is not None:
            self._event_added.set()

    async def wait_for_listener(self) -> None:
        """Wait until the listener, if there is one, is not far behind. A stopped run is cancelled here even if its
        reads never have to wait."""
        if self.reason is not None:
            await anyio.lowlevel.checkpoint()
        while self._events is not None and len(self._events) > MAX_QUEUED_EVENTS:
            self._event_taken = anyio.Event()
            await self._event_taken.wait()

    async def events(self) -> AsyncIterator[SessionEvent]:
        """The events, until the run has ended."""
        waiting = self._events
        while waiting is not None:
            while waiting:
                event = waiting.popleft()
                if self._event_taken is not None and len(waiting) <= MAX_QUEUED_EVENTS:
                    self._event_taken.set()
                yield event
            if self.ended.is_set():
                return
            self._event_added = anyio.Event()
            await self._event_added.wait()

    def drop_listener(self) -> None:
        """The listener is gone: drop the events."""
        self._events = None
        if self._event_taken is not None:
            self._event_taken.set()

    def end(self) -> None:
        self.ended.set()
        if self._event_added is not None:
            self._event_added.set()


async def finish_write(write: Awaitable[T]) -> T:
    """Finish a write, even if this task is cancelled."""
    written: list[T] = []
    with CancelScope(shield=True):
        written.append(await write)
    return written[0]

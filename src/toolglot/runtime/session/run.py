"""One run of a session: what it told, what stopped it, what it cost, and how it ended.

    under way ──stop(reason)──▶ stopping ──▶ over        a run that is stopped ends at the next step that can
              ─────────────────────────────▶ over        be left, with everything in order

Law: a run is left only where nothing is half done. While a model is asked it can be left at any moment; writes are
never left; tools are stopped by their scheduler and by nothing else. A listener that is slow makes the model wait,
never the tools.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Final

import anyio
import anyio.lowlevel
from anyio import CancelScope

from toolglot.conversation import Usage
from toolglot.runtime.session.events import RunResult, SessionEvent

MOST_WAITING: Final = 1_000
"""Events that a listener may be behind before the model is made to wait."""

_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))


class UsageTotal:
    """Tokens and money, summed."""

    __slots__ = ("_cost", "_is_known", "usage")

    def __init__(self) -> None:
        self.usage: Usage = Usage()
        self._cost = Decimal(0)
        self._is_known = True

    def add(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Count an answer. One whose price is not known makes the sum unknown."""
        if usage is not None:
            self.usage = added(self.usage, usage)
        if cost is None:
            self._is_known = False
        else:
            self._cost += cost

    @property
    def tokens(self) -> int:
        return (self.usage.input_tokens or 0) + (self.usage.output_tokens or 0)

    @property
    def known_cost(self) -> Decimal:
        """What is known of the cost."""
        return self._cost

    @property
    def cost(self) -> Decimal | None:
        return self._cost if self._is_known else None


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two counts; what neither says stays unsaid."""
    sums = {}
    for name in _COUNTS:
        given = [count for count in (getattr(one, name), getattr(other, name)) if count is not None]
        sums[name] = sum(given) if given else None
    return Usage(**sums)


class SessionRun:
    """A run, from what was said to its answer."""

    def __init__(self, *, listens: bool = False) -> None:
        self.sum: UsageTotal = UsageTotal()
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        """What no answer can tell: a mistake of the caller's, a store that failed."""
        self.reason: str | None = None
        """Why it is to stop; None: it is not."""
        self.over: anyio.Event = anyio.Event()
        self._scope: CancelScope | None = None
        self._events: deque[SessionEvent] | None = deque() if listens else None
        self._came: anyio.Event | None = None
        self._taken: anyio.Event | None = None

    @property
    def is_stopping(self) -> bool:
        return self.reason is not None

    def stop(self, reason: str) -> None:
        """End it as soon as it can be left. The first reason counts."""
        if self.reason is None:
            self.reason = reason
        if self._scope is not None:
            self._scope.cancel()

    @contextmanager
    def leavable(self) -> Iterator[None]:
        """A part that is left at once when the run is stopped. One that is stopping already does not begin it."""
        with CancelScope() as scope:
            self._scope = scope
            try:
                yield
            finally:
                self._scope = None

    # --- what it tells ------------------------------------------------------------------------------

    def tell(self, event: SessionEvent) -> None:
        if self._events is None:
            return
        self._events.append(event)
        if self._came is not None:
            self._came.set()

    async def heard(self) -> None:
        """Wait until the listener, if there is one, is not far behind. A run that is stopped is left here, also where
        what it reads is always there already and never lets it wait."""
        if self.reason is not None:
            await anyio.lowlevel.checkpoint()
        while self._events is not None and len(self._events) > MOST_WAITING:
            self._taken = anyio.Event()
            await self._taken.wait()

    async def events(self) -> AsyncIterator[SessionEvent]:
        """What it tells, until it is over."""
        waiting = self._events
        while waiting is not None:
            while waiting:
                event = waiting.popleft()
                if self._taken is not None and len(waiting) <= MOST_WAITING:
                    self._taken.set()
                yield event
            if self.over.is_set():
                return
            self._came = anyio.Event()
            await self._came.wait()

    def unheard(self) -> None:
        """Nobody listens any more."""
        self._events = None
        if self._taken is not None:
            self._taken.set()

    def end(self) -> None:
        self.over.set()
        if self._came is not None:
            self._came.set()

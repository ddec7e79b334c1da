"""A session's place among those that spawned it and those that it spawned.

Law: what a session uses is counted in all those above it; what stops one stops all those below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from toolglot.conversation import Usage
from toolglot.errors import InputError
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.run import SessionRun, UsageTotal, added

Spent = tuple[Usage | None, Decimal | None]


class SessionFamily:
    """What sessions of one family know of each other."""

    def __init__(self, limits: SessionLimits) -> None:
        self.limits = limits
        self.parent: SessionFamily | None = None
        self.depth: int = 0
        self.sum: UsageTotal = UsageTotal()
        self._unwritten: Spent = (None, None)
        self.flight: SessionRun | None = None
        self._stop_own: Callable[[SessionRun, str], None] | None = None
        self._running: dict[int, SessionFamily] = {}
        """Those below that run, however deep."""

    def grow_from(self, parent: SessionFamily) -> None:
        """Become a child of another one."""
        if parent.depth >= parent.limits.max_depth:
            raise InputError(
                f"sessions are spawned at most {parent.limits.max_depth} deep", path="spawn", hint="limits.max_depth"
            )
        self.parent, self.depth = parent, parent.depth + 1

    def take_off(self, flight: SessionRun, stop: Callable[[SessionRun, str], None]) -> None:
        """A run begins; `stop` stops it."""
        self.flight, self._stop_own = flight, stop
        for above in self._above():
            above._running[id(self)] = self  # noqa: SLF001 - one of its own kind

    def land(self) -> None:
        """The run is over."""
        self.flight = None
        for above in self._above():
            above._running.pop(id(self), None)  # noqa: SLF001 - one of its own kind

    def _above(self) -> Iterator[SessionFamily]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def flights(self) -> list[SessionRun]:
        """The runs that are under way, below and here."""
        own = [branch.flight for branch in (*self._running.values(), self)]
        return [flight for flight in own if flight is not None]

    def stop(self, reason: str) -> None:
        """Stop what runs, below and here."""
        for branch in (*self._running.values(), self):
            if branch.flight is not None and branch._stop_own is not None:  # noqa: SLF001 - one of its own kind
                branch._stop_own(branch.flight, reason)  # noqa: SLF001 - one of its own kind

    def count(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Count what an answer took."""
        self.sum.add(usage, cost)
        self.owe(usage, cost)
        if self.flight is not None:
            self.flight.sum.add(usage, cost)
        if self.parent is not None:
            self.parent.count(usage, cost)

    def owe(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Keep in mind what is not in the session's log yet."""
        before, known = self._unwritten
        usage = usage if before is None else before if usage is None else added(before, usage)
        self._unwritten = usage, known if cost is None else cost + (known or 0)

    def take_unwritten(self) -> Spent:
        """What was spent, here and below, and is not in the session's log yet: whoever takes it writes it."""
        spent, self._unwritten = self._unwritten, (None, None)
        return spent

    def is_overspent(self) -> bool:
        """Whether this session, or one above it, has used up what it may use."""
        most, spent = self.limits, self.sum
        if most.max_tokens is not None and spent.tokens >= most.max_tokens:
            return True
        if most.max_cost is not None and spent.known_cost >= most.max_cost:
            return True
        return self.parent is not None and self.parent.is_overspent()

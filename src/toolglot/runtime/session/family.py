"""The tree of sessions that spawned each other.

Law: what a session uses counts in all its ancestors; stopping a session stops all its descendants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

from toolglot.conversation import Usage
from toolglot.errors import InputError
from toolglot.runtime.log.usage import add_cost, add_usage
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.run import SessionRun, UsageTotal

Spent = tuple[Usage | None, Decimal | None]


class SessionFamily:
    """The position of a session in its tree: its parent, its running descendants, and what all of them spent."""

    def __init__(self, limits: SessionLimits) -> None:
        self.limits = limits
        self.parent: SessionFamily | None = None
        self.depth: int = 0
        self.total: UsageTotal = UsageTotal()
        self._unwritten: Spent = (None, None)
        self.run: SessionRun | None = None
        self._stop_own: Callable[[SessionRun, str], None] | None = None
        self._running: dict[int, SessionFamily] = {}
        """The descendants that run now, at any depth."""

    def attach_to(self, parent: SessionFamily) -> None:
        """Become a child of another session."""
        if parent.depth >= parent.limits.max_depth:
            raise InputError(
                f"sessions can be nested at most {parent.limits.max_depth} deep", path="spawn", hint="limits.max_depth"
            )
        self.parent, self.depth = parent, parent.depth + 1

    def start_run(self, run: SessionRun, stop: Callable[[SessionRun, str], None]) -> None:
        """A run begins. `stop` is the function that stops it."""
        self.run, self._stop_own = run, stop
        for above in self._above():
            above._running[id(self)] = self  # noqa: SLF001 - the same class

    def finish_run(self) -> None:
        """The run has ended."""
        self.run = None
        for above in self._above():
            above._running.pop(id(self), None)  # noqa: SLF001 - the same class

    def _above(self) -> Iterator[SessionFamily]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def active_runs(self) -> list[SessionRun]:
        """The current runs of this session and its descendants."""
        own = [family.run for family in (*self._running.values(), self)]
        return [run for run in own if run is not None]

    def stop(self, reason: str) -> None:
        """Stop the runs of this session and its descendants."""
        for family in (*self._running.values(), self):
            if family.run is not None and family._stop_own is not None:  # noqa: SLF001 - the same class
                family._stop_own(family.run, reason)  # noqa: SLF001 - the same class

    def add_usage(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Count what a reply cost, here and in all ancestors."""
        self.total.add(usage, cost)
        self.add_unwritten(usage, cost)
        if self.run is not None:
            self.run.total.add(usage, cost)
        if self.parent is not None:
            self.parent.add_usage(usage, cost)

    def add_unwritten(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Remember what is not in the session's log yet."""
        before, known_cost = self._unwritten
        self._unwritten = usage if before is None else add_usage(before, usage), add_cost(known_cost, cost)

    def take_unwritten(self) -> Spent:
        """What was spent, here and below, and is not in the session's log yet. The caller writes it."""
        spent, self._unwritten = self._unwritten, (None, None)
        return spent

    def is_overspent(self) -> bool:
        """Whether this session or an ancestor has reached its limit of tokens or money."""
        limits, spent = self.limits, self.total
        if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
            return True
        if limits.max_cost is not None and spent.known_cost >= limits.max_cost:
            return True
        return self.parent is not None and self.parent.is_overspent()

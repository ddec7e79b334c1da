"""Which calls of a batch may start now: at most so many at once, and one at a time on each resource.

Every call has its place in the batch. Those that use the same resource take their turns by place, and one that is
not ready yet (somebody is still asked about it) keeps its place before those that come after.

Law: whoever has the lowest place of all that are not over can always start as soon as it is ready and those that run
have ended. So no two calls ever wait for each other, whichever resources they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from toolglot.errors import InputError, quote

MOST_RESOURCES: Final = 1_000
"""Of one call."""


def _nobody(_place: int) -> None:
    """Is told of a call that may start when the batch is over."""


class Admission:
    """Slots and resources of one batch. `start` hears the place of each call that may start."""

    def __init__(self, parallel: int, start: Callable[[int], None]) -> None:
        self._free = parallel
        self._start = start
        self._users: dict[str, set[int]] = {}
        """Who uses, or waits for, a resource."""
        self._holders: dict[str, int] = {}
        self._resources: dict[int, frozenset[str]] = {}
        self._ready: dict[int, None] = {}
        self._running: set[int] = set()

    def join(self, place: int, resources: frozenset[str]) -> None:
        """Keep a place in line for these resources; joining again is for others than before."""
        self._forget(place)
        self._resources[place] = resources
        for name in resources:
            self._users.setdefault(name, set()).add(place)

    def ready(self, place: int) -> None:
        """It may start whenever there is room. Only those that have joined can."""
        self._ready[place] = None
        self._admit()

    def leave(self, place: int) -> None:
        """It is over, or will never start."""
        self._ready.pop(place, None)
        self._forget(place)
        if place in self._running:
            self._running.discard(place)
            self._free += 1
        self._admit()

    def close(self) -> None:
        """Nobody starts any more. Who was told of it is let go: it holds this."""
        self._start = _nobody

    def _forget(self, place: int) -> None:
        for name in self._resources.pop(place, frozenset()):
            self._users[name].discard(place)
            if self._holders.get(name) == place:
                del self._holders[name]

    def _admit(self) -> None:
        if not self._free or not self._ready:
            return
        for place in sorted(self._ready):
            if not self._free:
                return
            resources = self._resources[place]
            if not all(self._is_next(place, name) for name in resources):
                continue
            for name in resources:
                self._holders[name] = place
            del self._ready[place]
            self._running.add(place)
            self._free -= 1
            self._start(place)

    def _is_next(self, place: int, name: str) -> bool:
        return name not in self._holders and min(self._users[name]) == place


def resource_names(told: Iterable[str]) -> frozenset[str]:
    """The resources that a tool says it uses; a single text is one resource, not its letters."""
    if isinstance(told, str):
        return frozenset((told,))
    names = list(islice(told, MOST_RESOURCES + 1))
    if len(names) > MOST_RESOURCES:
        raise InputError(f"a call cannot use more than {MOST_RESOURCES} resources", path="resources")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"expected a string, got {quote(name)}", path="resources")
    return frozenset(names)

"""Which calls of a batch may start now: a limited number at once, and one at a time on each resource.

Calls are known by their index in the batch. Calls that use the same resource run in index order. A call that is not
ready yet, because it awaits approval, still goes before those with a higher index.

Law: the unfinished call with the lowest index can always start once it is ready and the running ones have ended. So
no two calls ever wait for each other, whichever resources they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from toolglot.errors import InputError, quote

MAX_RESOURCES: Final = 1_000
"""The resources that one call may use."""


def _ignore_start(_index: int) -> None:
    """Used after the batch has ended: no call may start any more."""


class Admission:
    """The slots and resources of one batch. `start` is called with the index of each call that may start."""

    def __init__(self, parallel: int, start: Callable[[int], None]) -> None:
        self._free = parallel
        self._start = start
        self._users: dict[str, set[int]] = {}
        """The calls that use a resource or wait for it."""
        self._holders: dict[str, int] = {}
        self._resources: dict[int, frozenset[str]] = {}
        self._ready: dict[int, None] = {}
        self._running: set[int] = set()

    def reserve(self, index: int, resources: frozenset[str]) -> None:
        """Queue a call for its resources. A second reservation replaces the first."""
        self._forget(index)
        self._resources[index] = resources
        for name in resources:
            self._users.setdefault(name, set()).add(index)

    def mark_ready(self, index: int) -> None:
        """Let a call start as soon as a slot and its resources are free. It must have a reservation."""
        self._ready[index] = None
        self._admit()

    def release(self, index: int) -> None:
        """Free what a call holds: it has ended, or will never start."""
        self._ready.pop(index, None)
        self._forget(index)
        if index in self._running:
            self._running.discard(index)
            self._free += 1
        self._admit()

    def close(self) -> None:
        """Start no more calls. Drops the callback, which holds a reference to this object."""
        self._start = _ignore_start

    def _forget(self, index: int) -> None:
        for name in self._resources.pop(index, frozenset()):
            self._users[name].discard(index)
            if self._holders.get(name) == index:
                del self._holders[name]

    def _admit(self) -> None:
        if not self._free or not self._ready:
            return
        for index in sorted(self._ready):
            if not self._free:
                return
            resources = self._resources[index]
            if not all(self._is_next(index, name) for name in resources):
                continue
            for name in resources:
                self._holders[name] = index
            del self._ready[index]
            self._running.add(index)
            self._free -= 1
            self._start(index)

    def _is_next(self, index: int, name: str) -> bool:
        return name not in self._holders and min(self._users[name]) == index


def read_resources(value: Iterable[str]) -> frozenset[str]:
    """The resource names that a tool returned. A single string is one name, not a sequence of letters."""
    if isinstance(value, str):
        return frozenset((value,))
    names = list(islice(value, MAX_RESOURCES + 1))
    if len(names) > MAX_RESOURCES:
        raise InputError(f"a call cannot use more than {MAX_RESOURCES} resources", path="resources")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"expected a string, got {quote(name)}", path="resources")
    return frozenset(names)

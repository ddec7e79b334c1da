"""Collects what is sent in one turn of an event loop, and sends it at the end of the turn.

A write wakes its receiver, which may take the processor at once. Without writes in between, a process handles all
requests of a turn without interruption, which saves a sixth of the time of each. A single request is sent as soon as
before, because the turn ends with it.

Law: what is sent to one transport arrives in its order, as long as code that writes to it directly, or closes it, calls
`flush` before.
"""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary


class Outbox:
    """What is sent at the end of the turn of one event loop."""

    __slots__ = ("__weakref__", "_call_soon", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._waiting: list[tuple[asyncio.WriteTransport, bytes]] = []

    def send(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        if not self._waiting:
            self._call_soon(self.flush)
        self._waiting.append((transport, data))

    def flush(self) -> None:
        """Send everything, except to transports that have closed meanwhile."""
        waiting = self._waiting
        if waiting:
            self._waiting = []
            for transport, data in waiting:
                if not transport.is_closing():
                    transport.write(data)


_boxes: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Outbox]] = WeakKeyDictionary()


def outbox_of(loop: asyncio.AbstractEventLoop) -> Outbox:
    """The outbox of an event loop."""
    found = _boxes.get(loop)
    if found is None:
        found = _boxes[loop] = Outbox(loop)
    return found

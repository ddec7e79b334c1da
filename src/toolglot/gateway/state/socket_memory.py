"""What the WebSockets of the Responses protocol remember: the responses that are stored nowhere else.

    memory = SocketMemory(lambda: max_bytes)             # of the whole gateway
    connection = memory.connection()
    connection.remember("main", "resp_2", continued, input, output)
    connection.find("resp_2")

A client may continue the latest response of each of its lanes with `previous_response_id`, also with `store: false`:
the items are in memory only, and are gone with the connection. They are held as the JSON that was exchanged, so that
continuing is joining bytes.

Laws: no connection finds anything of another. All of them together hold no more than `max_bytes`: the response that was
not used for the longest time is forgotten first, and its client gets `previous_response_not_found`, for which it sends
the whole conversation again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

OVERHEAD: Final = 200
"""Bytes that a piece takes besides its text."""


class RememberedResponse(Struct, frozen=True, eq=False):
    """A response with everything before it."""

    id: str
    lane: str
    pieces: tuple[bytes, ...]
    """Items in their order: each piece is items, separated by commas."""
    stored_before: str
    """The stored response that the first of the items continue; empty: there is none."""
    size: int


class SocketMemory:
    """The responses of all connections."""

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self._used: OrderedDict[RememberedResponse, ConnectionMemory] = OrderedDict()
        """The one that was used last is the last."""
        self.size: int = 0

    def connection(self) -> ConnectionMemory:
        return ConnectionMemory(self)

    def add(self, response: RememberedResponse, owner: ConnectionMemory) -> bool:
        """Whether there is memory for it."""
        limit = self._max_bytes()
        if response.size > limit:
            return False
        self._used[response] = owner
        self.size += response.size
        while self.size > limit:
            oldest, owner = next(iter(self._used.items()))
            owner.forget(oldest.id)
        return True

    def use(self, response: RememberedResponse) -> None:
        self._used.move_to_end(response)

    def remove(self, response: RememberedResponse) -> None:
        del self._used[response]
        self.size -= response.size


class ConnectionMemory:
    """The responses of one connection: the latest of each lane."""

    def __init__(self, memory: SocketMemory) -> None:
        self._memory = memory
        self._responses: dict[str, RememberedResponse] = {}
        self._latest: dict[str, str] = {}
        """By lane."""

    def find(self, id: str) -> RememberedResponse | None:
        found = self._responses.get(id)
        if found is not None:
            self._memory.use(found)
        return found

    def remember(
        self,
        lane: str,
        id: str,
        continued: RememberedResponse | None,
        pieces: Sequence[bytes],
        *,
        stored_before: str = "",
    ) -> None:
        """Remember a response, in place of the one before it in its lane."""
        self.advance(lane)
        before = continued.pieces if continued is not None else ()
        whole = (*before, *(piece for piece in pieces if piece))
        size = sum(map(len, whole)) + OVERHEAD * (len(whole) + 1)
        first = continued.stored_before if continued is not None else stored_before
        response = RememberedResponse(id, lane, whole, first, size)
        self.forget(id)
        if self._memory.add(response, self):
            self._responses[id] = response
            self._latest[lane] = id

    def advance(self, lane: str) -> None:
        """Forget the latest response of a lane, which has a new one."""
        latest = self._latest.pop(lane, None)
        if latest is not None:
            self.forget(latest)

    def forget(self, id: str) -> None:
        response = self._responses.pop(id, None)
        if response is not None:
            self._memory.remove(response)
            if self._latest.get(response.lane) == id:
                del self._latest[response.lane]

    def close(self) -> None:
        """Forget everything: the connection is over."""
        for id in [*self._responses]:
            self.forget(id)

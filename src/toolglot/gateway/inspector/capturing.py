"""The bytes of a reply, as the upstream sent them and as the client got them, with the time of each piece.

    captured = CapturedReply(budget, began)
    request.channel = CapturingChannel(request.channel, captured)      # what the client gets
    captured.receive(piece)                                            # what the upstream sends

Laws: while a reply runs, a piece costs two appends, and its bytes are not copied; when it is over, they are joined, if
there are many.
What is kept of one reply is bounded in pieces, and of all replies in progress in bytes; `is_cut` says that there was
more.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Coroutine, Iterator
from heapq import merge
from time import perf_counter
from typing import Any, Final, Literal, NamedTuple

from toolglot.gateway.http.requests import Headers, Hold, ResponseChannel, ignore_size

MAX_PIECES: Final = 20_000
"""Pieces of one reply, both ways together."""
_PIECE_BYTES: Final = 72
"""About what a piece takes besides its bytes, while its reply runs."""
_FEW: Final = 8
"""Pieces that are kept as they are: to join them takes longer than it saves."""
_RESERVED: Final = 16 * 1024
"""Bytes that a reply takes from the budget at a time."""

Direction = Literal["received", "sent"]


class CapturedPiece(NamedTuple):
    """A piece of a reply: from the upstream (`received`), or to the client (`sent`)."""

    at: float
    """Seconds since the request began."""
    direction: Direction
    size: int
    """In bytes."""


class CaptureBudget:
    """The bytes that are captured of replies in progress."""

    __slots__ = ("_max_bytes", "used")

    def __init__(self, max_bytes: Callable[[], int]) -> None:
        self._max_bytes = max_bytes
        self.used = 0

    def take(self, size: int) -> bool:
        """Use so many bytes more. Returns whether there are as many."""
        if self.used + size > self._max_bytes():
            return False
        self.used += size
        return True


class CapturedReply:
    """What the upstream sent and what the client got, for one request.

    began: when the request began, by `time.perf_counter`.
    """

    __slots__ = (
        *("_began", "_budget", "_is_over", "_left", "_received", "_reserved", "_sent", "_times", "_unused", "is_cut"),
        "size",
    )

    def __init__(self, budget: CaptureBudget, began: float) -> None:
        self._began = began
        self._budget = budget
        self._received: list[Any] = []
        """Times and pieces in turn; all bytes, when it is over and there were many."""
        self._sent: list[Any] = []
        self._times: tuple[array[float], array[float]] | None = None
        """When it is over and there were many: times and sizes in turn, of what was received and of what was sent."""
        self._is_over = False
        self._left = MAX_PIECES
        self._reserved = 0
        self._unused = 0
        """Bytes that are reserved and not used."""
        self.size = 0
        """Bytes that it takes to keep it, once it is over."""
        self.is_cut = False
        """There was more than is kept."""

    def receive(self, data: bytes) -> None:
        """The upstream sent something."""
        self._unused -= len(data) + _PIECE_BYTES
        self._left -= 1
        if (self._unused < 0 or self._left < 0) and not self._reserve():
            return
        kept = self._received
        kept.append(perf_counter())
        kept.append(data)

    def send(self, data: bytes) -> None:
        """The client gets something."""
        if not data:
            return
        self._unused -= len(data) + _PIECE_BYTES
        self._left -= 1
        if (self._unused < 0 or self._left < 0) and not self._reserve():
            return
        kept = self._sent
        kept.append(perf_counter())
        kept.append(data)

    def _reserve(self) -> bool:
        """Reserve what is missing. Returns whether the piece can be kept."""
        if self.is_cut or self._left < 0:
            self.is_cut = True
            return False
        missing = -self._unused
        for wanted in (max(missing, _RESERVED), missing):
            if self._budget.take(wanted):
                self._reserved += wanted
                self._unused += wanted
                return True
        self.is_cut = True
        return False

    def watch(self, feed: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """A function that captures what the upstream sent, and feeds it on."""
        receive = self.receive

        def receive_and_feed(data: bytes) -> bytes:
            receive(data)
            return feed(data)

        return receive_and_feed

    def restart(self) -> None:
        """Another upstream is called: what the first one sent is dropped."""
        self._received = []

    def end(self) -> None:
        """The request is over: its bytes are no longer those of a reply in progress."""
        if self._is_over:
            return
        self._is_over = True
        self._budget.used -= self._reserved
        count = (len(self._received) + len(self._sent)) // 2
        if count <= _FEW:
            self.size = count * _PIECE_BYTES + sum(map(len, self._received[1::2])) + sum(map(len, self._sent[1::2]))
            return
        joined = [self.data("received")], [self.data("sent")]
        self._times = self._numbers(self._received), self._numbers(self._sent)
        self._received, self._sent = joined
        self.size = sum(len(each[0]) for each in (self._received, self._sent))
        self.size += sum(8 * len(numbers) for numbers in self._times)

    def _numbers(self, kept: list[Any]) -> array[float]:
        numbers = array("d", kept[::2])
        result = array("d", bytes(16 * len(numbers)))
        result[::2] = numbers
        result[1::2] = array("d", map(len, kept[1::2]))
        return result

    def data(self, direction: Direction) -> bytes:
        """All bytes of one direction."""
        kept = self._received if direction == "received" else self._sent
        return b"".join(kept[1::2] if self._times is None else kept)

    def sent_since(self, index: int) -> list[bytes]:
        """The pieces that the client got after the first ones, while the reply runs."""
        return [] if self._is_over else self._sent[2 * index + 1 :: 2]

    def pieces(self) -> Iterator[CapturedPiece]:
        """All pieces, in the order of time."""
        received, sent = self._times or (self._numbers(self._received), self._numbers(self._sent))
        yield from merge(self._list(received, "received"), self._list(sent, "sent"), key=lambda piece: piece.at)

    def _list(self, numbers: array[float], direction: Direction) -> Iterator[CapturedPiece]:
        for at, size in zip(numbers[::2], numbers[1::2], strict=True):
            yield CapturedPiece(at - self._began, direction, int(size))


class CapturingChannel:
    """A channel that captures what the client gets."""

    __slots__ = ("_captured", "_channel")

    def __init__(self, channel: ResponseChannel, captured: CapturedReply) -> None:
        self._channel = channel
        self._captured = captured

    @property
    def is_gone(self) -> bool:
        return self._channel.is_gone

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._channel.task

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._channel.watch(on_disconnect)

    def stop_watching(self) -> None:
        self._channel.stop_watching()

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        return await self._channel.read(max_bytes, hold)

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        self._captured.send(data)
        await self._channel.respond(status, headers, data)

    async def begin(self, status: int, headers: Headers) -> None:
        await self._channel.begin(status, headers)

    def write(
        self, data: bytes
    ) -> Coroutine[Any, Any, None]:  # not a coroutine of its own: it is called for each event
        self._captured.send(data)
        return self._channel.write(data)

    async def end(self) -> None:
        await self._channel.end()

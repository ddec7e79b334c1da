"""The body of an upstream's reply, read within the limits of the gateway.

Law: what is held in memory counts against `max_bytes_in_flight`, and no reply is longer than `max_answer_bytes`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.conversation import Failure
from toolglot.gateway.http.requests import ClientRequest, Hold
from toolglot.protocols.errors.failures import REPLY_LIMIT, ProviderError
from toolglot.upstream import HttpResponse

MAX_ON_LOOP: Final = 32 * 1024
"""Bytes of a stream that are translated on the event loop at once."""
_FEW_DIGITS: Final = 5
"""Digits of the content-length of a reply that is read at once."""


async def read_upstream_body(response: HttpResponse, upstream: str, max_bytes: int, hold: Hold) -> bytes:
    """A whole reply; `hold` counts its bytes. `upstream` is the name of the one that sends it."""
    announced = response.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) <= _FEW_DIGITS and "content-encoding" not in response.headers:
        data = await _read_all(response, max_bytes)
        hold(len(data))
        return data
    return await _read_counted(response, upstream, max_bytes, hold)


async def _read_all(response: HttpResponse, max_bytes: int) -> bytes:
    """A whole reply. One that is too long is the provider's failure, and the message names the setting."""
    try:
        return await response.whole(max_bytes)
    except ProviderError as error:
        failure = error.failure
        if failure.code != REPLY_LIMIT:
            raise
        message = f"{failure.message} (max_answer_bytes of the gateway)"
        raise ProviderError(msgspec.structs.replace(failure, message=message)) from None


async def _read_counted(response: HttpResponse, upstream: str, max_bytes: int, hold: Hold) -> bytes:
    """The same; each piece counts against the memory for bodies as it comes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.pieces():
        size += len(piece)
        if size > max_bytes:
            message = f"{upstream} sent a response of more than {max_bytes} bytes (max_answer_bytes of the gateway)"
            raise ProviderError(Failure("server", message, code=REPLY_LIMIT))
        hold(len(piece))
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class PendingBytes:
    """The bytes of a stream since the client last got something: a part of an event, or a whole reply."""

    __slots__ = ("_held", "_request", "_size")

    def __init__(self, request: ClientRequest) -> None:
        self._request = request
        self._size = 0
        self._held = 0

    @property
    def is_much(self) -> bool:
        return self._size > MAX_ON_LOOP

    def add(self, piece: bytes) -> bool:
        """Whether so much has come that it is translated in a thread; then it counts like a body."""
        self._size += len(piece)
        if self._size <= MAX_ON_LOOP:
            return False
        more = self._size - self._held
        self._request.hold(more)
        self._held += more
        return True

    def clear(self) -> None:
        """The client gets something, so what came has been read, except for the start of another event."""
        if self._held and self._request.share is not None:
            self._request.share.release(self._held)
        self._size = self._held = 0

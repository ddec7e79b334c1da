"""The limit on the memory of all request and response bodies at the same time (`max_bytes_in_flight`).

    share = budget.share()          # of one request
    share.hold(len(piece))          # for each piece that is held; a refusal (503) if the limit is reached
    share.release()                 # at the end of the request, however it ends

A body counts by its bytes, and by `VALUE_BYTES` for each JSON value in it: a short text of many values takes more
memory than a long one of few. So the memory of a gateway is bounded by its configuration, as docs/operations.md#memory
says.

Laws: no request waits for memory, so none can wait forever. A body of any size is accepted if it is the only one.
Everything is released at the end of its request. Threads that decompress bodies count here too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from toolglot.conversation import Failure
from toolglot.gateway.http.requests import GatewayRefusal, GoneError

VALUE_BYTES: Final = 64
RETRY_SECONDS: Final = 2


class BodyBudget:
    """The bytes of all bodies."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.used: int = 0
        self.refused: int = 0
        """Requests that were refused since the start."""

    def share(self) -> BodyShare:
        return BodyShare(self)

    def add(self, share: BodyShare, size: int) -> None:
        """Add to what a request holds."""
        with self._lock:
            self.check(share, size)
            self.used += size
            share.size += size

    def take_back(self, share: BodyShare, size: int | None) -> None:
        with self._lock:
            released = share.size if size is None else size
            share.size -= released
            self.used -= released
            share.is_over = size is None

    def check(self, share: BodyShare, size: int) -> None:
        """Refuse a body beyond the limit, unless it is the only one."""
        if share.is_over:
            raise GoneError
        if self.used + size <= self._limit() or self.used == share.size:
            return
        self.refused += 1
        message = "the gateway has reached its limit for bytes of requests and replies (max_bytes_in_flight); try again"
        raise GatewayRefusal(Failure("overloaded", message, 503, "too_many_bytes", retry_after=RETRY_SECONDS))


class BodyShare:
    """The bytes of one request."""

    __slots__ = ("_budget", "is_over", "size")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self.size: int = 0
        self.is_over: bool = False
        """The request has ended: a thread that still works for it holds nothing more."""

    def hold(self, size: int) -> None:
        self._budget.add(self, size)

    def refuse_announced(self, size: int) -> None:
        """Refuse a body before it is read, if it is beyond the limit now."""
        self._budget.check(self, size)

    def release(self, size: int | None = None) -> None:
        """Release so many bytes; without a number, all of them, for good."""
        self._budget.take_back(self, size)

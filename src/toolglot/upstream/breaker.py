"""A circuit breaker and a limit on concurrent requests: an upstream that is down is not called, and one that is slow is
not overloaded.

    closed ──failures in a row──▶ open ──after a while──▶ half open ──a success──▶ closed
                                   ▲                          │
                                   └──────────a failure───────┘

Law: only failures of the upstream count. A request that was refused because of its content is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Literal

from toolglot.conversation import Failure, FailureKind

State = Literal["closed", "open", "half open"]

OUTAGES: Final[frozenset[FailureKind]] = frozenset({"overloaded", "timeout", "unreachable", "server"})
"""Failures of the upstream, and not of the request. A rate limit is none: it says when to come back."""


class Breaker:
    """The state of one upstream."""

    def __init__(
        self,
        *,
        failures: int,
        seconds: float,
        max_concurrent: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = failures
        self._seconds = seconds
        self._max_concurrent = max_concurrent
        """0: any number."""
        self._clock = clock
        self._failures = 0
        self._opened: float | None = None
        self._is_probing = False
        self.running: int = 0

    @property
    def state(self) -> State:
        if self._opened is None:
            return "closed"
        return "half open" if self._clock() - self._opened >= self._seconds else "open"

    @property
    def wait(self) -> float:
        """Seconds until it may be called again."""
        return max(0.0, self._seconds - (self._clock() - self._opened)) if self._opened is not None else 0.0

    @property
    def failures(self) -> int:
        """Failures in a row."""
        return self._failures

    def refusal(self) -> str:
        """Why it must not be called now; empty: it may be called."""
        if self._opened is not None:
            state = self.state
            if state == "open" or (state == "half open" and self._is_probing):
                return "it failed too often just now"
        if self._max_concurrent and self.running >= self._max_concurrent:
            return f"{self.running} requests to it are running (max_concurrent)"
        return ""

    def begin(self) -> None:
        """A request is sent to it."""
        self.running += 1
        if self._opened is not None:
            self._is_probing = self._is_probing or self.state == "half open"

    def end(self) -> None:
        """A request to it is over, however it went."""
        self.running -= 1

    def succeeded(self) -> None:
        self._failures = 0
        self._opened = None
        self._is_probing = False

    def failed(self, failure: Failure) -> None:
        """A request to it failed."""
        was_probing, self._is_probing = self._is_probing, False
        if failure.kind not in OUTAGES:
            return
        self._failures += 1
        if was_probing or self._failures >= self._limit:
            self._opened = self._clock()

    def gave_up(self) -> None:
        """The request was cancelled, so that its outcome is unknown."""
        self._is_probing = False

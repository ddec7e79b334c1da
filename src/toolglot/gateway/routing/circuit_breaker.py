"""A circuit breaker, and a limit of how much is asked at once: so that who is down is not asked, and who is slow not
drowned.

    closed ──failures in a row──▶ open ──after a while──▶ half open ──a success──▶ closed
                                   ▲                          │
                                   └──────────a failure───────┘

Law: one upstream's trouble is counted where it is an upstream's: a request that was refused for what it says is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Literal

from toolglot.conversation import Failure, FailureKind

State = Literal["closed", "open", "half open"]

TROUBLE: Final[frozenset[FailureKind]] = frozenset({"overloaded", "timeout", "unreachable", "server"})
"""Failures that say that the upstream, and not the request, is in trouble. A rate limit is no trouble: it says when."""


class Breaker:
    """The state of one upstream."""

    def __init__(
        self,
        *,
        failures: int,
        seconds: float,
        most: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = failures
        self._seconds = seconds
        self._most = most
        """Requests at once; 0: any number."""
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
        """Seconds until it may be asked again."""
        return max(0.0, self._seconds - (self._clock() - self._opened)) if self._opened is not None else 0.0

    def why_not(self) -> str:
        """Why it is not to be asked now; empty: it may be."""
        if self._opened is not None:
            state = self.state
            if state == "open" or (state == "half open" and self._is_probing):
                return "it failed too often just now"
        if self._most and self.running >= self._most:
            return f"{self.running} requests to it are running (max_concurrent)"
        return ""

    def begin(self) -> None:
        """It is asked."""
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
        """It did not answer as it should."""
        was_probing, self._is_probing = self._is_probing, False
        if failure.kind not in TROUBLE:
            return
        self._failures += 1
        if was_probing or self._failures >= self._limit:
            self._opened = self._clock()

    def gave_up(self) -> None:
        """Nobody waits for its answer any more, so that nothing is known of it."""
        self._is_probing = False

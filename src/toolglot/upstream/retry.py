"""Whether a request is sent again: all rules, for the gateway, sessions and transports.

1. A provider that is busy, down or silent gets the same request again: as often as `retries` allows, and after the wait
   that the provider requests or an exponential backoff. A wait longer than `max_wait` ends it (`Retries.wait`).
2. A provider that does not recognise thinking or a signature as its own gets the request once more without them
   (`Retries.may_strip`).
3. A model whose context is too small gets the conversation once more, shortened. Sessions do that, not the gateway,
   whose clients hold the history (`Retries.may_shorten`).
4. A transport sends a request again by itself if a reused connection was closed and the method may be repeated
   (`REPEATABLE`). POST may not: the provider may have taken the request.

Law: a request that was refused because of its content is never sent again unchanged (`Retries.was_refused`).

Which upstream comes next is in `failover.py`, and when an upstream is not called at all in `breaker.py`.
"""

from __future__ import annotations

import random
import re
from typing import Final

from toolglot.conversation import Failure

FIRST_WAIT: Final = 0.5
"""Seconds before the first retry if the provider does not say; twice as many before each further one."""

REPEATABLE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"})
"""Methods that do the same once and twice (RFC 9110, 9.2.2). POST is none."""

OPAQUE_REFUSED: Final = re.compile(
    r"signature|encrypted[_ ]content|bound to a different conversation|blocks?\b.{0,80}cannot be modified"
    r"|without its required 'reasoning' item|item with id 'rs_",
    re.IGNORECASE | re.DOTALL,
)
"""How providers refuse thinking or a signature that they do not recognise as their own (D2, D3, D9)."""


class Retries:
    """What was tried for one request at one upstream. Made when the first attempt has failed.

    retries: how often the same request may be sent again.
    max_wait: the maximum wait before that, in seconds.
    """

    __slots__ = ("_count", "_has_shortened", "_has_stripped", "_limit", "_max_wait", "_refused")

    def __init__(self, retries: int, max_wait: float) -> None:
        self._limit = retries
        self._max_wait = max_wait
        self._count = 0
        self._has_stripped = False
        self._has_shortened = False
        self._refused: bytes | None = None

    def add(self, failure: Failure, sent: bytes) -> None:
        """Note an attempt that failed, and the body that was sent."""
        if not failure.retryable or is_opaque_refused(failure):
            self._refused = sent

    def was_refused(self, body: bytes) -> bool:
        """Whether the provider refused exactly this body in the last attempt."""
        return body == self._refused

    def may_strip(self, failure: Failure) -> bool:
        """Whether to try once more without thinking and signatures; True at most once."""
        if self._has_stripped or not is_opaque_refused(failure):
            return False
        self._has_stripped = True
        return True

    def may_shorten(self, failure: Failure) -> bool:
        """Whether to try once more with a shorter conversation; True at most once."""
        if self._has_shortened or failure.kind != "context_overflow":
            return False
        self._has_shortened = True
        return True

    def wait(self, failure: Failure) -> float | None:
        """Seconds to wait before the same request is sent again; None: it is not."""
        if self._count >= self._limit:
            return None
        self._count += 1
        jitter = random.random()  # noqa: S311 - so that not all clients come back at once
        return wait_before(failure, self._count, self._max_wait, jitter)


def is_opaque_refused(failure: Failure) -> bool:
    """Whether a provider does not recognise thinking or a signature as its own."""
    return failure.status in (400, 404) and bool(OPAQUE_REFUSED.search(f"{failure.message} {failure.code}"))


def wait_before(failure: Failure, retry: int, max_wait: float, jitter: float) -> float | None:
    """Seconds to wait before a retry, counted from 1; None: there is none, or the wait would be too long."""
    if not failure.retryable:
        return None
    wait = backoff(failure.retry_after, retry, jitter=jitter)
    return wait if wait <= max_wait else None


def backoff(retry_after: float | None, retry: int, *, first: float = FIRST_WAIT, jitter: float = 1.0) -> float:
    """Seconds to wait before a retry, counted from 1: what the provider requests, else twice as long each time.

    `jitter`, from 0 to 1, spreads the waits from a half to the whole.
    """
    if retry_after is not None:
        return retry_after
    return first * 2.0 ** min(retry - 1, 16) * (0.5 + jitter / 2)

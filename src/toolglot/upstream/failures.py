"""Why a provider did not answer, and what of that can be helped by whoever asked.

Law: what was refused for what it says is never sent again as it was. A provider that is busy, down or silent may be
asked again, as late as it says itself.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Failure
from toolglot.protocols.base import codec
from toolglot.translate.requests import ConvertedRequest
from toolglot.upstream.transport import HttpResponse

MOST_ERROR: Final = 1024 * 1024
"""Bytes of an answer that says why there is none."""
FIRST_WAIT: Final = 0.5
"""Seconds before a second try, where the provider does not say; twice as many before each further one."""

OPAQUE_REFUSED: Final = re.compile(
    r"signature|encrypted[_ ]content|bound to a different conversation|blocks?\b.{0,80}cannot be modified"
    r"|without its required 'reasoning' item|item with id 'rs_",
    re.IGNORECASE | re.DOTALL,
)
"""How providers say that they do not know what came back as their own (D2, D3, D9)."""


async def failure_of(answer: HttpResponse, out: ConvertedRequest, most: int = MOST_ERROR) -> Failure:
    """Why a provider did not answer. Its own body is for its own clients: others of the protocol write another one."""
    target = out.target
    try:
        data = await answer.whole(most)
    finally:
        await answer.close()
    failure = codec(target.protocol).errors.decode(answer.status, data, answer.headers, target=target.name)
    if failure is None:
        return Failure("server", f"the provider answered with status {answer.status}", answer.status)
    return failure if out.source.name == target.name else replace(failure, extra=None)


def is_opaque_refused(failure: Failure) -> bool:
    """Whether a provider does not know what came back to it as its own."""
    return failure.status in (400, 404) and bool(OPAQUE_REFUSED.search(f"{failure.message} {failure.code}"))


def wait_before(failure: Failure, tried: int, longest: float, spread: float) -> float | None:
    """Seconds to wait before another try; None: there is none, or it would be too long.

    `tried` is how often it was tried already, `spread` a number from 0 to 1, so that not all come back at once.
    """
    if not failure.retryable:
        return None
    wait = failure.retry_after
    if wait is None:
        wait = FIRST_WAIT * 2 ** min(tried - 1, 16) * (0.5 + spread / 2)
    return wait if wait <= longest else None

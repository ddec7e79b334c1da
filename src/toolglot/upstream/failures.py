"""Reading why a provider failed."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Failure
from toolglot.profiles import Profile
from toolglot.protocols.base import codec
from toolglot.translate.requests import ConvertedRequest
from toolglot.upstream.http.transport import HttpResponse

MAX_ERROR_BYTES: Final = 1024 * 1024
"""The largest error response that is read."""


async def failure_of(response: HttpResponse, out: ConvertedRequest, max_bytes: int = MAX_ERROR_BYTES) -> Failure:
    """Why a provider failed. Only clients of the same provider get its body as it is."""
    return await read_failure(response, out.target, out.source, max_bytes)


async def read_failure(
    response: HttpResponse, target: Profile, source: Profile, max_bytes: int = MAX_ERROR_BYTES
) -> Failure:
    """The same, of any request of a client of `source` to `target`."""
    try:
        data = await response.whole(max_bytes)
    finally:
        await response.close()
    failure = codec(target.protocol).errors.decode(response.status, data, response.headers, target=target.name)
    if failure is None:
        return Failure("server", f"the provider responded with status {response.status}", response.status)
    return failure if source.name == target.name else replace(failure, extra=None)

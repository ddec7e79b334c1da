"""Paths that are not the gateway's own: passed through, as they are, to the one upstream that has them.

Files, batches, images: they are not translated. A request goes to the only upstream of the client's
protocol; if there is none, or more than one, the client gets an error.

Laws: the client's key is not sent on, not even one in the query. A path stays under the upstream's address. With
several client keys, only requests that store nothing at the provider are passed through: the keys share its account,
and one could list, read and delete the files of another.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Final
from urllib.parse import unquote, unquote_plus

from toolglot import profiles
from toolglot.gateway.endpoints.table import client_protocol
from toolglot.gateway.http.compressed_bodies import read_body
from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.observability.request_record import RecordedRendering, RecordedRoute, RequestRecord
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.masking import KnownSecrets
from toolglot.protocols.base import Protocol, records
from toolglot.upstream import HttpResponse, Upstream

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"})
_SENT: Final = ("content-type", "accept", "range")
"""Headers of a client that are forwarded, besides those of its protocol."""
_RETURNED: Final = ("content-type", "content-disposition", "retry-after", "request-id", "x-request-id")
MAX_ERROR: Final = 4 * 1024 * 1024
"""Bytes of an error, which is read before it is forwarded: it may repeat the gateway's key."""

_STORES_NOTHING: Final = re.compile(
    r"/v1(?:beta)?/(?:moderations|completions|rerank|images/(?:generations|edits|variations)"
    r"|audio/(?:speech|transcriptions|translations)|(?:models/)?[^/]+:predict)"
    r"|/api/generate"
)
_UNSAFE: Final = re.compile(r"(?:^|[/\\])\.{1,2}(?:$|[/\\;])|[\x00-\x1f\x7f\\]")
"""In a path: what leads elsewhere, or is invalid."""


class PassThrough:
    """Passes requests through.

    is_shared: several clients use the same upstreams, and know nothing of each other.
    """

    def __init__(self, upstreams: Upstreams, secrets: KnownSecrets, *, is_shared: Callable[[], bool]) -> None:
        self._upstreams = upstreams
        self._secrets = secrets
        self._is_shared = is_shared

    async def run(self, request: ClientRequest, record: RequestRecord, max_bytes: int) -> None:
        protocol = client_protocol(request.path, request.headers)
        upstream = self._choose(protocol, request)
        body = await read_body(request, max_bytes)
        record.route, record.sent = RecordedRoute(upstream.name), RecordedRendering(upstream.target)
        path = request.raw_path + forwarded_query(request)
        sent = (*_SENT, *protocol.forwarded_headers)
        headers = {name: request.headers[name] for name in sent if name in request.headers}
        headers |= record.begin_call(upstream)
        response = await upstream.send(path, body, headers=headers, method=request.method)
        try:
            pieces = await self._pieces(response)
            mask = self._secrets.mask
            returned = {name: mask(response.headers[name]) for name in _RETURNED if name in response.headers}
            returned |= {"x-toolglot-request": record.id, "x-toolglot-upstream": upstream.name}
            status = response.status if 200 <= response.status <= 599 else 502
            record.response.begin(status)
            await request.channel.begin(status, returned)
            async for piece in pieces:
                await request.channel.write(piece)
            record.response.complete()
            await request.channel.end()
        finally:
            await response.close()

    async def _pieces(self, response: HttpResponse) -> AsyncIterator[bytes]:
        """The body as it is forwarded."""
        if response.status < 400:
            return response.pieces()
        return _one_piece(self._secrets.mask_bytes(await response.whole(MAX_ERROR)))

    def _choose(self, protocol: Protocol, request: ClientRequest) -> Upstream:
        """The upstream that has a path of this protocol."""
        prefix = protocol.service_prefix
        known = bool(prefix) and request.path.startswith(prefix) and request.method in _METHODS
        known = known and _is_safe(request.raw_path)
        if known and self._is_shared() and (request.method != "POST" or not _STORES_NOTHING.fullmatch(request.path)):
            message = f"{request.path[:200]} is not passed through: data at the provider is not separated by client key"
            raise refusal("not_found", message, 404)
        chosen, of_kind = upstreams_of(protocol, self._upstreams)
        if known and len(chosen) == 1:
            return chosen[0]
        where = f"{request.method} {request.path[:200]}"
        if not known or not of_kind:
            raise refusal("not_found", f"unknown path: {where}; neither the gateway nor an upstream has it", 404)
        names = ", ".join(upstream.name for upstream in of_kind)
        raise refusal("not_found", f"unknown path: {where}; several upstreams could have it: {names}", 404)


def upstreams_of(protocol: Protocol, upstreams: Upstreams) -> tuple[list[Upstream], list[Upstream]]:
    """The upstreams that a path of a protocol most likely means, and all that could have it."""
    family = {protocol.name, *(record.name for record in records() if record.sdk and record.sdk == protocol.sdk)}
    of_kind = [
        upstream for upstream in upstreams.configured_upstreams() if profiles.get(upstream.target).protocol in family
    ]
    named = [upstream for upstream in of_kind if upstream.target == protocol.provider]
    return named if len(named) == 1 else of_kind, of_kind


def forwarded_query(request: ClientRequest) -> str:
    """The query of a client, with its question mark, as a provider gets it: without the client's key."""
    query = "&".join([part for part in request.raw_query.split("&") if part and not _is_key(part)])
    return f"?{query}" if query else ""


def _is_key(part: str) -> bool:
    """Whether a part of a query is the client's key."""
    return unquote_plus(part.partition("=")[0]) == "key"


def _is_safe(path: str) -> bool:
    """Whether a path stays below the address that it is appended to, however often it is unquoted."""
    for _ in range(4):
        if _UNSAFE.search(path):
            return False
        before, path = path, unquote(path)
        if path == before:
            return True
    return False


async def _one_piece(data: bytes) -> AsyncIterator[bytes]:
    yield data

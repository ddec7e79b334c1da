"""Addresses that are not the gateway's own: passed on, as they are, to the one upstream that has them.

Embeddings, files, batches, images: nothing in them is translated. A request goes to the only
upstream of the client's protocol; where there is none, or more than one, the client is told.
"""

from __future__ import annotations

from typing import Final

from toolglot import profiles
from toolglot.gateway.doors import spoken_at
from toolglot.gateway.requests import ClientRequest, Send, header_pairs, refusal, send_piece
from toolglot.gateway.telling import Told
from toolglot.gateway.upstreams import Upstreams
from toolglot.upstream import Upstream

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"})
_PREFIXES: Final = {"openai": "/v1/", "anthropic": "/v1/", "gemini": "/v1beta/", "ollama": "/api/"}
_FAMILY: Final = {
    "openai": ("openai_chat", "openai_responses"),
    "anthropic": ("anthropic",),
    "gemini": ("gemini",),
    "ollama": ("ollama",),
}
_SENT: Final = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta", "range")
_KEPT: Final = ("content-type", "content-disposition", "retry-after", "request-id", "x-request-id")


class Passing:
    """Hands requests on."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    async def run(self, request: ClientRequest, send: Send, told: Told, most: int) -> None:
        source = spoken_at(request.path, request.headers)
        upstream = self._one(source, request)
        body = await request.read(most)
        told.upstream, told.target = upstream.name, upstream.target
        path = request.path + (f"?{request.raw_query}" if request.raw_query else "")
        headers = {str(name): request.headers[name] for name in _SENT if name in request.headers}
        answer = await upstream.send(path, body, headers=headers, method=request.method)
        try:
            told.status = answer.status
            kept = header_pairs({name: answer.headers[name] for name in _KEPT if name in answer.headers})
            kept += header_pairs({"x-toolglot-request": told.id, "x-toolglot-upstream": upstream.name})
            await send({"type": "http.response.start", "status": answer.status, "headers": kept})
            async for piece in answer.pieces():
                await send_piece(send, piece)
            told.is_answered = True
            await send_piece(send, b"", more=False)
        finally:
            await answer.close()

    def _one(self, source: str, request: ClientRequest) -> Upstream:
        """The upstream that has an address of this protocol."""
        known = request.path.startswith(_PREFIXES[source]) and request.method in _METHODS and ".." not in request.path
        of_kind = [
            upstream for upstream in self._upstreams.real() if profiles.get(upstream.target).protocol in _FAMILY[source]
        ]
        named = [upstream for upstream in of_kind if upstream.target == source]
        chosen = named if len(named) == 1 else of_kind
        if known and len(chosen) == 1:
            return chosen[0]
        where = f"{request.method} {request.path[:200]}"
        if not known or not of_kind:
            raise refusal(
                "not_found", f"there is nothing at {where}: the gateway does not have it, nor an upstream", 404
            )
        names = ", ".join(upstream.name for upstream in of_kind)
        raise refusal(
            "not_found", f"{where} is not the gateway's own, and several upstreams could have it: {names}", 404
        )

"""The addresses that clients know, and what each of them asks for.

    find("POST", "/v1beta/models/gemini-3-pro:generateContent")
    # GatewayEndpoint(source="gemini", action="generate", …)

Law: a table and a look into it. The path is untrusted; names in it are unquoted here, once, and only looked up later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from toolglot.protocols.base import ClientAction, ClientRoute, Protocol, records

Action = Literal[
    ClientAction,
    "root",
    "health",
    "ready",
    "metrics",
    "requests",
    "request",
    "openapi",
]


class GatewayEndpoint(Struct, frozen=True):
    """What one address is for."""

    source: str
    """The provider whose client uses it: the shape of what comes and of every answer, errors included."""
    action: Action
    methods: tuple[str, ...] = ("POST",)
    model: str = ""
    stream: bool | None = None
    """What the address says of streaming; None: nothing."""
    streams_unless_told: bool = False
    is_array: bool = False
    """A stream is one JSON array, not events."""
    name: str = ""
    """The id of what is looked at."""


_READ: Final = ("GET", "HEAD")

_OWN: Final = {
    "/": GatewayEndpoint("openai", "root", _READ),
    "/health": GatewayEndpoint("openai", "health", _READ),
    "/ready": GatewayEndpoint("openai", "ready", _READ),
    "/metrics": GatewayEndpoint("openai", "metrics", _READ),
    "/toolglot/requests": GatewayEndpoint("openai", "requests", _READ),
    "/openapi.json": GatewayEndpoint("openai", "openapi", _READ),
}
"""What is the gateway's, and no provider's."""
_OWN_PATTERNS: Final = ((r"/toolglot/requests/(?P<name>[^/]+)", GatewayEndpoint("openai", "request", _READ)),)


def _endpoint(protocol: Protocol, route: ClientRoute) -> GatewayEndpoint:
    return GatewayEndpoint(
        protocol.provider,
        route.action,
        _METHODS[route.action],
        stream=route.stream,
        streams_unless_told=route.streams_by_default,
        is_array=route.is_array,
    )


_METHODS: Final[dict[ClientAction, tuple[str, ...]]] = {
    "generate": ("POST",),
    "count": ("POST",),
    "models": _READ,
    "model": _READ,
    "response": ("GET", "DELETE"),
    "input_items": _READ,
    "cancel": ("POST",),
    "show": ("POST",),
    "version": _READ,
}

_ROUTES: Final = [(route, _endpoint(protocol, route)) for protocol in records() for route in protocol.routes]
_ROUTES.sort(key=lambda entry: entry[0].action == "model")  # its name may be anything: whoever knows more is first
_EXACT: Final[dict[str, GatewayEndpoint]] = {
    **{path: endpoint for route, endpoint in _ROUTES if not route.is_pattern for path in route.paths},
    **_OWN,
}
_PATTERNS: Final = tuple(
    (re.compile(path, re.DOTALL), endpoint)  # a name may hold anything, once it is unquoted
    for path, endpoint in (
        *((path, endpoint) for route, endpoint in _ROUTES if route.is_pattern for path in route.paths),
        *_OWN_PATTERNS,
    )
)
_KNOWN_BY: Final = [protocol for protocol in records() if protocol.client_header or protocol.client_prefixes]
"""The protocols whose clients are known by a header, or by how their paths begin."""
LONGEST_PATH: Final = 2_000


def addresses() -> list[tuple[str, GatewayEndpoint]]:
    """Every door with its address, or the pattern of its addresses."""
    return [*_EXACT.items(), *((pattern.pattern, endpoint) for pattern, endpoint in _PATTERNS)]


def find(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> GatewayEndpoint | None:
    """The door at an address; None where there is none."""
    endpoint = _EXACT.get(path) or _matching(path)
    if endpoint is None or (endpoint.action == "model" and method not in endpoint.methods):
        return None  # what is done with a model besides looking at it is its provider's own
    if endpoint.is_array and query.get("alt") == "sse":
        return replace(endpoint, is_array=False)
    if endpoint.action in ("models", "model") and endpoint.source == "openai":
        endpoint = replace(endpoint, source=_listed_for(headers))
    if endpoint.source == "openai" and "mistral" in headers.get("user-agent", "").lower():
        return replace(endpoint, source="mistral")  # its SDK reads no call that comes in pieces, and other lists
    return endpoint


def _listed_for(headers: Mapping[str, str]) -> str:
    """Whose list of models is asked for: three providers have theirs at the same address."""
    return next((protocol.provider for protocol in _KNOWN_BY if protocol.client_header in headers), "openai")


def _matching(path: str) -> GatewayEndpoint | None:
    if len(path) > LONGEST_PATH:
        return None
    for pattern, endpoint in _PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            named = {key: unquote(value) for key, value in found.groupdict().items()}
            return GatewayEndpoint(
                endpoint.source,
                endpoint.action,
                endpoint.methods,
                named.get("model", ""),
                endpoint.stream,
                is_array=endpoint.is_array,
                name=named.get("name", ""),
            )
    return None


def spoken_at(path: str, headers: Mapping[str, str]) -> str:
    """The protocol that a client at an unknown address most likely speaks, so that it understands the answer."""
    for protocol in _KNOWN_BY:
        if protocol.client_header in headers or path.startswith(protocol.client_prefixes):
            return protocol.provider
    return "openai"

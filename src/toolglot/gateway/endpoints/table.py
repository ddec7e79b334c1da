"""The paths that clients use, and the endpoint of each.

    find("POST", "/v1beta/models/gemini-3-pro:generateContent", {}, {})
    # GatewayEndpoint(source="gemini", action="generate", …)

Law: a table and its look-up. The routes are those of the registered protocols, also of one that is registered while the
gateway runs. The path is untrusted; names in it are unquoted here, once, and only looked up later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from toolglot.protocols.base import ClientAction, ClientRoute, Protocol, get, names

Action = Literal[
    ClientAction,
    "root",
    "health",
    "ready",
    "metrics",
    "requests",
    "request",
    "openapi",
    "inspector",
    "inspector_file",
    "inspector_info",
    "inspector_requests",
    "inspector_events",
    "inspector_fleet",
    "inspector_request",
    "inspector_view",
    "inspector_target",
    "inspector_media",
    "inspector_body",
    "inspector_replay",
    "inspector_conversation",
]


class GatewayEndpoint(Struct, frozen=True):
    """The endpoint of one path."""

    source: str
    """The target whose client uses it: the form of its requests, and of all replies, errors included."""
    action: Action
    methods: tuple[str, ...] = ("POST",)
    protocol: str = "openai_chat"
    model: str = ""
    stream: bool | None = None
    """Whether the path requests a stream; None: the body decides."""
    streams_by_default: bool = False
    is_array: bool = False
    """A stream is one JSON array, not events."""
    has_socket: bool = False
    """Clients may use it over a WebSocket too."""
    is_hosted: bool = False
    """The request is one for a cloud that hosts the protocol."""
    error_protocol: str = ""
    """The protocol whose errors, and whose frames of a stream, the client reads, if it is not `protocol`."""
    provider_path: str = ""
    """The path at the protocol's own provider, if it is not the one that the record names for the action."""
    name: str = ""
    """The id of the object, such as a stored response."""
    part: str = ""
    """The id of a part of it, such as an item of a conversation."""


class KnownPath(NamedTuple):
    """A path, or a regular expression for paths, with its endpoint and the protocol's route that it is from."""

    path: str
    endpoint: GatewayEndpoint
    route: ClientRoute | None
    """None: it is the gateway's own."""


INSPECTOR: Final = "inspector"
"""How the actions of the inspector begin."""
_READ: Final = ("GET", "HEAD")
DEFAULT: Final = "openai_chat"
"""The protocol of clients that are not recognised as those of another."""
DEFAULT_SOURCE: Final = "openai"
MAX_PATH: Final = 2_000

_OWN: Final = {
    "/": GatewayEndpoint(DEFAULT_SOURCE, "root", _READ),
    "/health": GatewayEndpoint(DEFAULT_SOURCE, "health", _READ),
    "/ready": GatewayEndpoint(DEFAULT_SOURCE, "ready", _READ),
    "/metrics": GatewayEndpoint(DEFAULT_SOURCE, "metrics", _READ),
    "/toolglot/requests": GatewayEndpoint(DEFAULT_SOURCE, "requests", (*_READ, "DELETE")),
    "/openapi.json": GatewayEndpoint(DEFAULT_SOURCE, "openapi", _READ),
    "/inspector": GatewayEndpoint(DEFAULT_SOURCE, "inspector", _READ),
    "/inspector/api/info": GatewayEndpoint(DEFAULT_SOURCE, "inspector_info", _READ),
    "/inspector/api/requests": GatewayEndpoint(DEFAULT_SOURCE, "inspector_requests", (*_READ, "DELETE")),
    "/inspector/api/events": GatewayEndpoint(DEFAULT_SOURCE, "inspector_events", ("GET",)),
    "/inspector/api/fleet": GatewayEndpoint(DEFAULT_SOURCE, "inspector_fleet", _READ),
}
"""The gateway's own paths."""
_OWN_PATTERNS: Final = {
    r"/toolglot/requests/(?P<name>[^/]+)": GatewayEndpoint(DEFAULT_SOURCE, "request", _READ),
    r"/inspector/static/(?P<name>.+)": GatewayEndpoint(DEFAULT_SOURCE, "inspector_file", _READ),
    r"/inspector/api/requests/(?P<name>[^/]+)": GatewayEndpoint(DEFAULT_SOURCE, "inspector_request", _READ),
    r"/inspector/api/requests/(?P<name>[^/]+)/replay": GatewayEndpoint(DEFAULT_SOURCE, "inspector_replay"),
    **{
        rf"/inspector/api/requests/(?P<name>[^/]+)/{view}": GatewayEndpoint(
            DEFAULT_SOURCE, "inspector_view", _READ, part=view
        )
        for view in ("explain", "diff", "timeline", "targets", "code", "export")
    },
    r"/inspector/api/requests/(?P<name>[^/]+)/targets/(?P<part>[^/]+)": GatewayEndpoint(
        DEFAULT_SOURCE, "inspector_target", _READ
    ),
    r"/inspector/api/requests/(?P<name>[^/]+)/body/(?P<part>[^/]+)": GatewayEndpoint(
        DEFAULT_SOURCE, "inspector_body", _READ
    ),
    r"/inspector/api/requests/(?P<name>[^/]+)/media/(?P<part>[^/]+)": GatewayEndpoint(
        DEFAULT_SOURCE, "inspector_media", _READ
    ),
    r"/inspector/api/conversations/(?P<name>[^/]+)/export": GatewayEndpoint(
        DEFAULT_SOURCE, "inspector_conversation", _READ
    ),
}

_METHODS: Final[dict[ClientAction, tuple[str, ...]]] = {
    "generate": ("POST",),
    "compact": ("POST",),
    "embed": ("POST",),
    "count": ("POST",),
    "models": _READ,
    "model": _READ,
    "response": ("GET", "DELETE"),
    "input_items": _READ,
    "cancel": ("POST",),
    "conversations": ("POST",),
    "conversation": ("GET", "POST", "DELETE"),
    "conversation_items": ("GET", "POST"),
    "conversation_item": ("GET", "DELETE"),
    "show": ("POST",),
    "version": _READ,
    "telemetry": ("POST",),
}


def _endpoint(protocol: Protocol, route: ClientRoute) -> GatewayEndpoint:
    return GatewayEndpoint(
        protocol.provider,
        route.action,
        _METHODS[route.action],
        protocol.name,
        stream=route.stream,
        streams_by_default=route.streams_by_default,
        is_array=route.is_array,
        has_socket=route.has_socket,
        is_hosted=route.is_hosted,
        error_protocol=route.error_protocol,
        provider_path=route.provider_path,
    )


class _Table:
    """The paths of some protocols."""

    def __init__(self, protocols: tuple[str, ...]) -> None:
        self.protocols = protocols
        records = [get(name) for name in protocols]
        routes = [(route, _endpoint(record, route)) for record in records for route in record.routes]
        # Embedding models have names of their own, and the name of a model can be anything: other paths match first.
        routes.sort(key=lambda entry: (entry[0].action == "model", entry[0].action != "embed"))
        fixed = {path: (endpoint, route) for route, endpoint in routes if not route.is_pattern for path in route.paths}
        patterns = [(path, endpoint, route) for route, endpoint in routes if route.is_pattern for path in route.paths]
        self.known: list[KnownPath] = [
            *(KnownPath(path, *found) for path, found in fixed.items() if path not in _OWN),
            *(KnownPath(path, endpoint, None) for path, endpoint in _OWN.items()),
            *(KnownPath(*entry) for entry in patterns),
            *(KnownPath(path, endpoint, None) for path, endpoint in _OWN_PATTERNS.items()),
        ]
        self.fixed: dict[str, GatewayEndpoint] = {path: endpoint for path, (endpoint, _) in fixed.items()} | _OWN
        paths = [*((path, endpoint) for path, endpoint, _ in patterns), *_OWN_PATTERNS.items()]
        self.patterns = [(re.compile(path, re.DOTALL), endpoint) for path, endpoint in paths]
        """A name can be anything, once it is unquoted."""
        self.recognizable = [record for record in records if record.client_header or record.client_prefixes]
        """The protocols whose clients are known by a header, or by how their paths begin."""


_table = _Table(names())


def _current() -> _Table:
    """The table of all protocols that are registered now."""
    global _table  # noqa: PLW0603 - as the registry, one for the process
    if _table.protocols is not names():
        _table = _Table(names())
    return _table


def known_paths() -> list[KnownPath]:
    """All paths, and all patterns of paths."""
    return _current().known


def sharing_model_lists() -> list[Protocol]:
    """The protocols whose clients list models at the same path: the default one, and those with a header."""
    return [get(DEFAULT), *(record for record in _current().recognizable if record.client_header)]


def find(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> GatewayEndpoint | None:
    """The endpoint at a path; None: there is none."""
    table = _current()
    endpoint = table.fixed.get(path)
    if endpoint is None:
        path = _without_repetition(path)
        endpoint = table.fixed.get(path) or _match(table, path)
    if endpoint is None or (endpoint.action == "model" and method not in endpoint.methods):
        return None  # other actions on a model are its provider's own
    if endpoint.is_array and query.get("alt") == "sse":
        return replace(endpoint, is_array=False)
    if endpoint.protocol == DEFAULT:
        if endpoint.action in ("models", "model"):
            endpoint = _for_client(endpoint, table, headers)
        if endpoint.protocol == DEFAULT and "mistral" in headers.get("user-agent", "").lower():
            return replace(endpoint, source="mistral")  # its SDK reads no call that comes in pieces, and other lists
    return endpoint


_REPEATED: Final = re.compile(r"(/v1(?:beta|alpha)?)(?:/v1(?:beta|alpha)?)*(?=/)")


def _without_repetition(path: str) -> str:
    """The path that is meant, where a base URL ends with a version or a slash that the client adds too."""
    if len(path) > MAX_PATH:
        return path
    found = _REPEATED.match(path)
    return (found[1] + path[found.end() :] if found is not None else path).rstrip("/")


def _for_client(endpoint: GatewayEndpoint, table: _Table, headers: Mapping[str, str]) -> GatewayEndpoint:
    """The endpoint in the client's protocol: several protocols list models at the same path."""
    for record in table.recognizable:
        if record.client_header in headers:
            return replace(endpoint, source=record.provider, protocol=record.name)
    return endpoint


def _match(table: _Table, path: str) -> GatewayEndpoint | None:
    if len(path) > MAX_PATH:
        return None
    for pattern, endpoint in table.patterns:
        found = pattern.fullmatch(path)
        if found is not None:
            groups = {key: unquote(value) for key, value in found.groupdict("").items()}
            part = groups.get("part", endpoint.part)
            return replace(endpoint, model=groups.get("model", ""), name=groups.get("name", ""), part=part)
    return None


def client_protocol(path: str, headers: Mapping[str, str]) -> Protocol:
    """The protocol that a client at an unknown path most likely speaks, so that it understands the reply."""
    for record in _current().recognizable:
        if record.client_header in headers or path.startswith(record.client_prefixes):
            return record
    return get(DEFAULT)

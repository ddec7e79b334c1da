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

Action = Literal[
    "generate",
    "count",
    "models",
    "model",
    "response",
    "input_items",
    "cancel",
    "show",
    "version",
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

_EXACT: Final[dict[str, GatewayEndpoint]] = {
    "/v1/messages": GatewayEndpoint("anthropic", "generate"),
    "/v1/messages/count_tokens": GatewayEndpoint("anthropic", "count"),
    "/v1/chat/completions": GatewayEndpoint("openai", "generate"),
    "/v1/responses": GatewayEndpoint("openai_responses", "generate"),
    "/v1/responses/input_tokens": GatewayEndpoint("openai_responses", "count"),
    "/v1/models": GatewayEndpoint("openai", "models", _READ),
    "/v1beta/models": GatewayEndpoint("gemini", "models", _READ),
    "/v2/chat": GatewayEndpoint("cohere", "generate"),
    "/api/chat": GatewayEndpoint("ollama", "generate", streams_unless_told=True),
    "/api/tags": GatewayEndpoint("ollama", "models", _READ),
    "/api/show": GatewayEndpoint("ollama", "show"),
    "/api/version": GatewayEndpoint("ollama", "version", _READ),
    "/": GatewayEndpoint("openai", "root", _READ),
    "/health": GatewayEndpoint("openai", "health", _READ),
    "/ready": GatewayEndpoint("openai", "ready", _READ),
    "/metrics": GatewayEndpoint("openai", "metrics", _READ),
    "/toolglot/requests": GatewayEndpoint("openai", "requests", _READ),
    "/openapi.json": GatewayEndpoint("openai", "openapi", _READ),
}
for _path in (
    "/messages",
    "/messages/count_tokens",
    "/chat/completions",
    "/responses",
    "/responses/input_tokens",
    "/models",
):
    _EXACT[_path] = _EXACT[f"/v1{_path}"]


def _all_of(pattern: str) -> re.Pattern[str]:
    """A name may hold anything, once it is unquoted."""
    return re.compile(pattern, re.DOTALL)


_PATTERNS: Final[tuple[tuple[re.Pattern[str], GatewayEndpoint], ...]] = (
    (
        _all_of(r"/v1(?:beta|alpha)?/(?:models/)?(?P<model>.+):generateContent"),
        GatewayEndpoint("gemini", "generate", stream=False),
    ),
    (
        _all_of(r"/v1(?:beta|alpha)?/(?:models/)?(?P<model>.+):streamGenerateContent"),
        GatewayEndpoint("gemini", "generate", stream=True, is_array=True),
    ),
    (_all_of(r"/v1(?:beta|alpha)?/(?:models/)?(?P<model>.+):countTokens"), GatewayEndpoint("gemini", "count")),
    (_all_of(r"/v1(?:beta|alpha)/models/(?P<model>.+)"), GatewayEndpoint("gemini", "model", _READ)),
    (_all_of(r"/(?:v1/)?models/(?P<model>.+)"), GatewayEndpoint("openai", "model", _READ)),
    (_all_of(r"/model/(?P<model>.+)/converse"), GatewayEndpoint("bedrock", "generate", stream=False)),
    (_all_of(r"/model/(?P<model>.+)/converse-stream"), GatewayEndpoint("bedrock", "generate", stream=True)),
    (
        _all_of(r"/(?:v1/)?responses/(?P<name>[^/]+)"),
        GatewayEndpoint("openai_responses", "response", ("GET", "DELETE")),
    ),
    (
        _all_of(r"/(?:v1/)?responses/(?P<name>[^/]+)/input_items"),
        GatewayEndpoint("openai_responses", "input_items", _READ),
    ),
    (_all_of(r"/(?:v1/)?responses/(?P<name>[^/]+)/cancel"), GatewayEndpoint("openai_responses", "cancel")),
    (_all_of(r"/toolglot/requests/(?P<name>[^/]+)"), GatewayEndpoint("openai", "request", _READ)),
)
LONGEST_PATH: Final = 2_000


def addresses() -> list[tuple[str, GatewayEndpoint]]:
    """Every door with its address, or the pattern of its addresses."""
    return [*_EXACT.items(), *((pattern.pattern, door) for pattern, door in _PATTERNS)]


def find(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> GatewayEndpoint | None:
    """The door at an address; None where there is none."""
    door = _EXACT.get(path) or _matching(path)
    if door is None or (door.action == "model" and method not in door.methods):
        return None  # what is done with a model besides looking at it is its provider's own
    if door.is_array and query.get("alt") == "sse":
        return GatewayEndpoint("gemini", "generate", model=door.model, stream=True)
    if door.action in ("models", "model") and door.source == "openai":
        door = replace(door, source=_listed_for(headers))
    if door.source == "openai" and "mistral" in headers.get("user-agent", "").lower():
        return replace(door, source="mistral")  # its SDK reads no call that comes in pieces, and other lists
    return door


def _listed_for(headers: Mapping[str, str]) -> str:
    """Whose list of models is asked for: three providers have theirs at the same address."""
    if "anthropic-version" in headers:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in headers else "openai"


def _matching(path: str) -> GatewayEndpoint | None:
    if len(path) > LONGEST_PATH:
        return None
    for pattern, door in _PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None:
            named = {key: unquote(value) for key, value in found.groupdict().items()}
            return GatewayEndpoint(
                door.source,
                door.action,
                door.methods,
                named.get("model", ""),
                door.stream,
                is_array=door.is_array,
                name=named.get("name", ""),
            )
    return None


def spoken_at(path: str, headers: Mapping[str, str]) -> str:
    """The protocol that a client at an unknown address most likely speaks, so that it understands the answer."""
    if "anthropic-version" in headers or path.startswith("/v1/messages"):
        return "anthropic"
    if "x-goog-api-key" in headers or path.startswith(("/v1beta", "/v1alpha")):
        return "gemini"
    if path.startswith("/api/"):
        return "ollama"
    return "openai"

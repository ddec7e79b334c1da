"""The gateway's own OpenAPI document: every endpoint, the fields that it requires, and its responses.

    document(is_demanded=True)["paths"]["/v1/messages"]["post"]

It is made from the table of endpoints and the records of the protocols. Bodies are open objects: fields of a provider's
protocol beyond those that are named here are accepted too.

Law: pure; an endpoint that is not in this document cannot be added without a test that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from toolglot import __version__
from toolglot.gateway.endpoints.table import (
    DEFAULT,
    INSPECTOR,
    Action,
    GatewayEndpoint,
    KnownPath,
    known_paths,
    sharing_model_lists,
)
from toolglot.protocols.base import ClientRoute, get, names, records
from toolglot.protocols.fields.body_schemas import TEXT, object_schema

Fields = dict[str, Any]

OPEN: Final = frozenset({"root", "health", "ready", "openapi", "inspector", "inspector_file"})
"""Actions without a client key."""
JSON: Final = "application/json"
METRICS: Final = "text/plain"

# --- paths ------------------------------------------------------------------------------------------

_GROUP: Final = re.compile(r"\(\?P<(\w+)>[^()]*\)")
_CHOICE: Final = re.compile(r"\(\?:([^()]*)\)(\??)")


def templates(pattern: str) -> list[str]:
    """The paths of a pattern of the table, with the names of its groups in braces."""
    return [*_expand(_GROUP.sub(r"{\1}", pattern))]


def _expand(text: str) -> Iterator[str]:
    """A string for each choice."""
    found = _CHOICE.search(text)
    if found is None:
        yield text
        return
    for word in (*found[1].split("|"), *([""] if found[2] else [])):
        yield from _expand(text[: found.start()] + word + text[found.end() :])


# --- requests ---------------------------------------------------------------------------------------

_SUMMARIES: Final[dict[Action, str]] = {
    "generate": "a reply of a model, whole or as a stream",
    "compact": "a conversation in short: the messages of users, and a summary of the rest",
    "embed": "vectors of texts",
    "count": "the number of tokens of a request",
    "models": "the models that clients can use",
    "model": "one of them",
    "response": "a stored response",
    "input_items": "the input of a stored response",
    "cancel": "the end of a response that runs in the background",
    "conversations": "a new conversation",
    "conversation": "a conversation",
    "conversation_items": "the items of a conversation",
    "conversation_item": "one of them",
    "show": "one model, in the form of Ollama",
    "version": "the version of Ollama's API",
    "telemetry": "telemetry of a client, which is dropped",
    "root": "name and version of the gateway",
    "health": "whether the process responds; `simulated` if nothing is configured and no real model answers, `store` "
    "if its store fails",
    "ready": "whether it can serve: 503 if its store cannot be written, and while it drains",
    "metrics": "metrics in the format of Prometheus",
    "requests": "the last requests of this client key",
    "request": "everything about one of them",
    "openapi": "this document",
    "inspector": "the inspector's page, which holds nothing of any request",
    "inspector_file": "a script or a style of it",
    "inspector_info": "what the inspector shows, and what this client key may do there",
    "inspector_requests": "the last requests of this client key, of all keys with an admin key; DELETE drops them",
    "inspector_events": "the same while they run, as server-sent events",
    "inspector_fleet": "requests, tokens, cost and times of the last hours, and the state of upstreams and keys",
    "inspector_request": "one request: its conversation, as the client wrote it and as the provider was sent it",
    "inspector_view": "a part of what is known of one request",
    "inspector_target": "the request as another target would be sent it",
    "inspector_media": "a picture of a request",
    "inspector_body": "one of the bodies of a request, as text: `request`, `rendered`, `reply` or `response`",
    "inspector_replay": "the request once more, to any model",
    "inspector_conversation": "all requests of a conversation, as a file",
}


def _body(route: ClientRoute) -> Fields:
    properties = {**route.required, **route.optional}
    schema: Fields = {"type": "object", "properties": properties, "additionalProperties": True}
    if route.required:
        schema["required"] = [*route.required]
    return {"required": bool(route.required), "content": {JSON: {"schema": schema}}}


def _parameters(path: str, known: KnownPath) -> list[Fields]:
    parameters: list[Fields] = [
        {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    parameters += [{"name": name, "in": "query", "schema": TEXT} for name in _query(known)]
    if known.endpoint.is_array:
        parameters.append({"name": "alt", "in": "query", "schema": {"enum": ["sse", "json"], **TEXT}})
    return parameters


_INSPECTOR_QUERY: Final[dict[str, tuple[str, ...]]] = {
    "inspector_requests": ("limit", "before"),
    "inspector_events": ("request",),
    "inspector_fleet": ("hours",),
    "inspector_request": ("from", "to", "texts"),
    "inspector_target": ("model",),
    "inspector_conversation": ("form",),
    "explain": ("rule",),
    "code": ("as",),
    "export": ("form",),
}
"""By action, or by the view of a request."""


def _query(known: KnownPath) -> tuple[str, ...]:
    endpoint = known.endpoint
    if endpoint.action.startswith(INSPECTOR):
        return _INSPECTOR_QUERY.get(endpoint.part, ()) or _INSPECTOR_QUERY.get(endpoint.action, ())
    if known.route is None or known.endpoint.action != "models":
        return known.route.query if known.route is not None else ()
    if known.endpoint.protocol != DEFAULT:
        return get(known.endpoint.protocol).models.query
    sharing = [record.models for record in sharing_model_lists() if record.models.path in known.route.paths]
    return tuple(name for models in sharing for name in models.query)


# --- responses --------------------------------------------------------------------------------------

_REASONS: Final = {
    "400": "the request is invalid, or cannot be made acceptable to the provider",
    "401": "the client key is missing or not valid",
    "403": "a web page sent the request, or the client key may not use this model",
    "404": "unknown model or path",
    "405": "the path does not allow this method",
    "408": "the request took too long to arrive",
    "413": "the request is too large",
    "415": "unknown content-encoding",
    "429": "too many requests or tokens; Retry-After says when to try again",
    "431": "the headers are too large",
    "4XX": "other refusals of the provider",
    "500": "internal error of the gateway; its log has the reason",
    "502": "the provider cannot be reached",
    "503": "the gateway is overloaded or stopping",
    "504": "the provider took too long",
    "5XX": "other failures of the provider",
}


def _errors(endpoint: GatewayEndpoint) -> Fields:
    is_shared = endpoint.action in ("models", "model") and endpoint.protocol == DEFAULT
    name = "shared" if is_shared else endpoint.error_protocol or endpoint.protocol
    return {status: {"$ref": f"#/components/responses/{name}_{status}"} for status in _REASONS}


def _error_responses() -> Fields:
    """By protocol and status; `shared` is for paths that clients of several protocols use."""
    shapes: Fields = {name: {"$ref": f"#/components/schemas/{name}_error"} for name in names()}
    shapes["shared"] = {"anyOf": [shapes[record.name] for record in sharing_model_lists()]}
    return {
        f"{name}_{status}": {"description": why, "content": {JSON: {"schema": shape}}}
        for name, shape in shapes.items()
        for status, why in _REASONS.items()
    }


_INSPECTOR_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "inspector": ("text/html",),
    "inspector_file": ("text/html", "text/javascript", "text/css", "text/plain", "image/svg+xml", "image/png", JSON),
    "inspector_events": ("text/event-stream",),
    "inspector_media": ("image/png", "image/jpeg", "image/gif", "image/webp", "application/octet-stream"),
    "inspector_body": ("text/plain",),
    "inspector_conversation": ("text/html", "application/x-ndjson"),
    "export": ("text/html", "application/x-ndjson"),
}
"""What is not JSON, by action, or by the view of a request."""


def _content(endpoint: GatewayEndpoint) -> Fields:
    if endpoint.action == "metrics":
        return {METRICS: {"schema": TEXT}}
    if endpoint.action.startswith(INSPECTOR):
        types = _INSPECTOR_TYPES.get(endpoint.part) or _INSPECTOR_TYPES.get(endpoint.action, (JSON,))
        return {name: {"schema": {"type": "object"} if name == JSON else TEXT} for name in types}
    whole: Fields = {JSON: {"schema": {"type": "array" if endpoint.is_array else "object"}}}
    stream: Fields = {get(endpoint.error_protocol or endpoint.protocol).stream_type: {}}
    if endpoint.action != "generate" or (endpoint.stream is False):
        return whole
    if endpoint.stream and not endpoint.is_array:
        return stream
    return {**whole, **stream}


def _responses(endpoint: GatewayEndpoint) -> Fields:
    headers = {"x-toolglot-request": {"description": "the id of the request", "schema": TEXT}}
    found: Fields = {"200": {"description": "the response", "headers": headers, "content": _content(endpoint)}}
    if endpoint.action == "telemetry":
        found = {"204": {"description": "it is dropped", "headers": headers}}
    if endpoint.action in OPEN:
        known = ("403", "404", "405", "431", "500")
        found |= {status: error for status, error in _errors(endpoint).items() if status in known}
        if endpoint.action == "root":
            found["302"] = {"description": "a browser is led to the inspector", "headers": headers}
        if endpoint.action.startswith(INSPECTOR):
            found["304"] = {"description": "the file has not changed", "headers": headers}
        if endpoint.action == "ready":
            state = object_schema(status={"enum": ["not ready", "draining"]})
            found["503"] = {"description": "not ready", "content": {JSON: {"schema": state}}}
        return found
    return found | _errors(endpoint)


# --- the document -----------------------------------------------------------------------------------

_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    **{name: {"type": "apiKey", "in": "header", "name": name} for name in ("x-api-key", "x-goog-api-key", "api-key")},
    "key": {"type": "apiKey", "in": "query", "name": "key"},
}
"""Where a client can send its key."""


def _operation(path: str, method: str, known: KnownPath, *, is_demanded: bool) -> Fields:
    endpoint = known.endpoint
    words = re.sub(r"[^a-z0-9]+", "_", path.lower()).strip("_")
    found: Fields = {
        "operationId": f"{method.lower()}_{words}".rstrip("_"),
        "summary": _SUMMARIES[endpoint.action],
        "tags": [endpoint.protocol if endpoint.methods == ("POST",) else endpoint.action],
        "responses": _responses(endpoint),
    }
    if parameters := _parameters(path, known):
        found["parameters"] = parameters
    if method == "POST" and known.route is not None:
        found["requestBody"] = _body(known.route)
    if endpoint.action == "inspector_replay":
        wish = {"type": "object", "properties": {"model": TEXT, "stream": {"type": "boolean"}}, "required": ["model"]}
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": wish}}}
    if method == "HEAD":
        found["responses"] = {status: {"description": "as for GET, without a body"} for status in found["responses"]}
    if endpoint.action in OPEN or not is_demanded:
        found["security"] = [] if endpoint.action in OPEN else [{}, *({name: []} for name in _SCHEMES)]
    return found


def document(*, is_demanded: bool) -> Fields:
    """All of it. `is_demanded`: clients must have a key."""
    paths: dict[str, Fields] = {}
    for known in known_paths():
        for path in templates(known.path):
            paths[path] = {
                method.lower(): _operation(path, method, known, is_demanded=is_demanded)
                for method in known.endpoint.methods
            }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "toolglot gateway",
            "version": __version__,
            "summary": "Any client of several providers, on any model of any of them.",
            "description": "Bodies are those of the providers' own APIs. Other paths are passed through to the one "
            "upstream that has them.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {f"{record.name}_error": record.error_schema for record in records()},
            "responses": _error_responses(),
            "securitySchemes": _SCHEMES,
        },
        "security": [{name: []} for name in _SCHEMES],
    }


def document_bytes(*, is_demanded: bool) -> bytes:
    """The document as it is sent."""
    return _document_bytes(names(), is_demanded)


@lru_cache(maxsize=2)
def _document_bytes(_protocols: tuple[str, ...], is_demanded: bool) -> bytes:
    return msgspec.json.encode(document(is_demanded=is_demanded))

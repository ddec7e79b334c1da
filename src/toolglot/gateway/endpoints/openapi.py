"""The gateway's own OpenAPI document: every endpoint, the least that it needs, and its responses.

    document(is_demanded=True)["paths"]["/v1/messages"]["post"]

It is made from the table of endpoints and the records of the protocols. Bodies are open objects: fields of a provider's
protocol beyond those that are named here are accepted too, and none of them is described a second time.

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
    Action,
    GatewayEndpoint,
    KnownPath,
    known_paths,
    sharing_model_lists,
)
from toolglot.protocols.base import ClientRoute, get, names, records
from toolglot.protocols.fields.body_schemas import TEXT, object_schema

Fields = dict[str, Any]

OPEN: Final = frozenset({"root", "health", "ready", "openapi"})
"""Actions without a client key."""
JSON: Final = "application/json"
METRICS: Final = "text/plain"

# --- paths ------------------------------------------------------------------------------------------

_GROUP: Final = re.compile(r"\(\?P<(\w+)>[^()]*\)")
_CHOICE: Final = re.compile(r"\(\?:([^()]*)\)(\??)")


def templates(pattern: str) -> list[str]:
    """The paths that a pattern of the table stands for, with the names of its groups in braces."""
    return [*_spread(_GROUP.sub(r"{\1}", pattern))]


def _spread(text: str) -> Iterator[str]:
    """A string for each way to choose."""
    found = _CHOICE.search(text)
    if found is None:
        yield text
        return
    for word in (*found[1].split("|"), *([""] if found[2] else [])):
        yield from _spread(text[: found.start()] + word + text[found.end() :])


# --- requests ---------------------------------------------------------------------------------------

_SUMMARIES: Final[dict[Action, str]] = {
    "generate": "an answer of a model, whole or as a stream",
    "count": "how many tokens a request has",
    "models": "the models that can be asked for",
    "model": "one of them",
    "response": "an answer that was stored",
    "input_items": "what it was an answer to",
    "cancel": "refused, in OpenAI's words: what is stored is finished",
    "show": "one model, as Ollama tells it",
    "version": "the version of Ollama's API",
    "telemetry": "what a client reports of itself; it is neither forwarded nor kept",
    "root": "who is there",
    "health": "whether the process answers; `simulated` where nothing is configured and no real model does, `store` "
    "where its store fails",
    "ready": "whether it can serve: 503 where its store takes no writes, and while it drains",
    "metrics": "what Prometheus reads",
    "requests": "the last requests of this client key",
    "request": "everything about one of them",
    "openapi": "this document",
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


def _query(known: KnownPath) -> tuple[str, ...]:
    if known.route is None or known.endpoint.action != "models":
        return known.route.query if known.route is not None else ()
    if known.endpoint.protocol != DEFAULT:
        return get(known.endpoint.protocol).models.query
    sharing = [record.models for record in sharing_model_lists() if record.models.path in known.route.paths]
    return tuple(name for models in sharing for name in models.query)


# --- responses --------------------------------------------------------------------------------------

_REASONS: Final = {
    "400": "the request makes no sense, or no change could make the provider accept it",
    "401": "no client key, or not one that counts",
    "403": "a web page asks, or the client key may not use this model",
    "404": "there is no such model, or nothing at this address",
    "405": "another method is meant",
    "408": "the request took too long to arrive",
    "413": "the request is too large",
    "415": "the request is compressed in a way that is not known",
    "429": "too many requests or tokens; Retry-After says when to come again",
    "431": "the headers are too large",
    "4XX": "what else the provider refuses",
    "500": "the gateway failed; its log says why",
    "502": "the provider cannot be reached",
    "503": "the gateway has too much to do, or stops",
    "504": "the provider took too long",
    "5XX": "what else the provider fails with",
}


def _errors(endpoint: GatewayEndpoint) -> Fields:
    is_shared = endpoint.action in ("models", "model") and endpoint.protocol == DEFAULT
    name = "shared" if is_shared else endpoint.protocol
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


def _content(endpoint: GatewayEndpoint) -> Fields:
    if endpoint.action == "metrics":
        return {METRICS: {"schema": TEXT}}
    whole: Fields = {JSON: {"schema": {"type": "array" if endpoint.is_array else "object"}}}
    stream: Fields = {get(endpoint.protocol).stream_type: {}}
    if endpoint.action != "generate" or (endpoint.stream is False):
        return whole
    if endpoint.stream and not endpoint.is_array:
        return stream
    return {**whole, **stream}


def _responses(endpoint: GatewayEndpoint) -> Fields:
    headers = {"x-toolglot-request": {"description": "the id of the request", "schema": TEXT}}
    found: Fields = {"200": {"description": "the answer", "headers": headers, "content": _content(endpoint)}}
    if endpoint.action == "telemetry":
        found = {"204": {"description": "it is dropped", "headers": headers}}
    if endpoint.action in OPEN:
        known = ("403", "405", "431", "500")
        found |= {status: error for status, error in _errors(endpoint).items() if status in known}
        if endpoint.action == "ready":
            state = object_schema(status={"enum": ["not ready", "draining"]})
            found["503"] = {"description": "not now", "content": {JSON: {"schema": state}}}
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
    if method == "HEAD":
        found["responses"] = {status: {"description": "as with GET, and no body"} for status in found["responses"]}
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
            "summary": "Clients of several providers, on any model of any of them.",
            "description": "Bodies are those of the providers' own APIs. What is at none of these addresses is passed "
            "on to the one upstream that has it.",
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

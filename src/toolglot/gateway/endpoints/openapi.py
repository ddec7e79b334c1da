"""The gateway's own OpenAPI document: every door, what it wants at least, and what it answers.

    document(is_demanded=True)["paths"]["/v1/messages"]["post"]

It is made from the table of the doors. Bodies are open objects: what a provider's protocol knows beyond the fields that
are named here is taken too, and none of it is described a second time.

Law: pure; a door that has no place in this document cannot be added without a test that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from toolglot import __version__, profiles
from toolglot.gateway.endpoints.table import Action, GatewayEndpoint, addresses
from toolglot.protocols.base import get

Fields = dict[str, Any]

OPEN: Final = frozenset({"root", "health", "ready", "openapi"})
"""What everybody may ask."""
JSON: Final = "application/json"
METRICS: Final = "text/plain"

# --- addresses --------------------------------------------------------------------------------------

_GROUP: Final = re.compile(r"\(\?P<(\w+)>[^()]*\)")
_CHOICE: Final = re.compile(r"\(\?:([^()]*)\)(\??)")


def templates(pattern: str) -> list[str]:
    """The addresses that a pattern of the table stands for, with the names of its groups in braces."""
    return [*_spread(_GROUP.sub(r"{\1}", pattern))]


def _spread(text: str) -> Iterator[str]:
    """A text for each way to choose."""
    found = _CHOICE.search(text)
    if found is None:
        yield text
        return
    for word in (*found[1].split("|"), *([""] if found[2] else [])):
        yield from _spread(text[: found.start()] + word + text[found.end() :])


# --- what is asked for ------------------------------------------------------------------------------

_TEXT: Final = {"type": "string"}
_TURNS: Final = {"type": "array", "items": {"type": "object"}, "minItems": 1}
_TOKENS: Final = {"type": "integer", "minimum": 1}
_MODEL: Final = {**_TEXT, "minLength": 1, "description": "a model, as `GET /v1/models` lists it"}
_INPUT: Final = {"description": "a text, or a list of items", "type": ["string", "array"], "items": {"type": "object"}}

_BODIES: Final[dict[tuple[str, Action], Fields]] = {
    ("anthropic", "generate"): {"model": _MODEL, "messages": _TURNS, "max_tokens": _TOKENS},
    ("anthropic", "count"): {"model": _MODEL, "messages": _TURNS},
    ("openai", "generate"): {"model": _MODEL, "messages": _TURNS},
    ("openai_responses", "generate"): {"model": _MODEL, "input": _INPUT},
    ("openai_responses", "count"): {"model": _MODEL, "input": _INPUT},
    ("openai_responses", "cancel"): {},
    ("gemini", "generate"): {"contents": _TURNS},
    ("gemini", "count"): {},
    ("bedrock", "generate"): {"messages": _TURNS},
    ("cohere", "generate"): {"model": _MODEL, "messages": _TURNS},
    ("ollama", "generate"): {"model": _MODEL, "messages": _TURNS},
    ("ollama", "show"): {"model": _MODEL},
}
"""The fields that a body must have, by the client and what it asks for."""
_OPTIONAL: Final[dict[tuple[str, Action], Fields]] = {
    ("anthropic", "generate"): {"stream": {"type": "boolean"}, "tools": _TURNS},
    ("openai", "generate"): {"stream": {"type": "boolean"}, "tools": _TURNS, "max_tokens": _TOKENS},
    ("openai_responses", "generate"): {
        "stream": {"type": "boolean"},
        "store": {"type": "boolean"},
        "previous_response_id": _TEXT,
        "max_output_tokens": _TOKENS,
    },
    ("gemini", "count"): {"contents": _TURNS, "generateContentRequest": {"type": "object"}},
    ("cohere", "generate"): {"stream": {"type": "boolean"}},
    ("ollama", "generate"): {"stream": {"type": "boolean", "default": True}},
}
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
    "root": "who is there",
    "health": "whether the process answers; `simulated` where nothing is configured and no real model does, `store` "
    "where its store fails",
    "ready": "whether it can serve: 503 where its store takes no writes, and while it drains",
    "metrics": "what Prometheus reads",
    "requests": "the last requests of this client key",
    "request": "everything about one of them",
    "openapi": "this document",
}
_QUERIES: Final[dict[tuple[str, Action], tuple[str, ...]]] = {
    ("openai", "models"): ("limit", "after_id", "before_id"),
    ("gemini", "models"): ("pageSize", "pageToken"),
    ("openai_responses", "input_items"): ("limit", "order", "after"),
}


def _body(endpoint: GatewayEndpoint) -> Fields:
    required, more = _BODIES[endpoint.source, endpoint.action], _OPTIONAL.get((endpoint.source, endpoint.action), {})
    schema = {"type": "object", "properties": {**required, **more}, "additionalProperties": True}
    if required:
        schema["required"] = [*required]
    return {"required": bool(required), "content": {JSON: {"schema": schema}}}


def _parameters(path: str, endpoint: GatewayEndpoint) -> list[Fields]:
    named: list[Fields] = [
        {"name": name, "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    named += [
        {"name": name, "in": "query", "schema": _TEXT} for name in _QUERIES.get((endpoint.source, endpoint.action), ())
    ]
    if endpoint.is_array:
        named.append({"name": "alt", "in": "query", "schema": {"enum": ["sse", "json"], **_TEXT}})
    return named


# --- what is answered -------------------------------------------------------------------------------


def _shape(**fields: Fields) -> Fields:
    return {"type": "object", "properties": fields, "required": [*fields]}


_CHAT_ERROR: Final = _shape(
    error={
        **_shape(message=_TEXT, type=_TEXT),
        "properties": {"message": _TEXT, "type": _TEXT, "param": {}, "code": {}},
    }
)
ERRORS: Final[dict[str, Fields]] = {
    "anthropic": _shape(type={"const": "error"}, error=_shape(type=_TEXT, message=_TEXT)),
    "openai_chat": _CHAT_ERROR,
    "openai_responses": _CHAT_ERROR,
    "gemini": _shape(error=_shape(code={"type": "integer"}, message=_TEXT, status=_TEXT)),
    "cohere": _shape(message=_TEXT),
    "ollama": _shape(error=_TEXT),
    "bedrock": _shape(message=_TEXT),
}
"""How each protocol's clients read an error."""

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
    protocol = profiles.get(endpoint.source).protocol
    is_shared = endpoint.action in ("models", "model") and protocol == "openai_chat"
    name = "shared" if is_shared else protocol
    return {status: {"$ref": f"#/components/responses/{name}_{status}"} for status in _REASONS}


def _error_responses() -> Fields:
    """By protocol and status; `shared` is where three providers have theirs at one address."""
    shapes: Fields = {name: {"$ref": f"#/components/schemas/{name}_error"} for name in ERRORS}
    shapes["shared"] = {"anyOf": [shapes[name] for name in ("openai_chat", "anthropic", "gemini")]}
    return {
        f"{name}_{status}": {"description": why, "content": {JSON: {"schema": shape}}}
        for name, shape in shapes.items()
        for status, why in _REASONS.items()
    }


def _content(endpoint: GatewayEndpoint) -> Fields:
    if endpoint.action == "metrics":
        return {METRICS: {"schema": _TEXT}}
    whole: Fields = {JSON: {"schema": {"type": "array" if endpoint.is_array else "object"}}}
    stream: Fields = {get(profiles.get(endpoint.source).protocol).stream_type: {}}
    if endpoint.action != "generate" or (endpoint.stream is False):
        return whole
    if endpoint.stream and not endpoint.is_array:
        return stream
    return {**whole, **stream}


def _responses(endpoint: GatewayEndpoint) -> Fields:
    headers = {"x-toolglot-request": {"description": "the id of the request", "schema": _TEXT}}
    found: Fields = {"200": {"description": "the answer", "headers": headers, "content": _content(endpoint)}}
    if endpoint.action in OPEN:
        known = ("403", "405", "431", "500")
        found |= {status: said for status, said in _errors(endpoint).items() if status in known}
        if endpoint.action == "ready":
            state = _shape(status={"enum": ["not ready", "draining"]})
            found["503"] = {"description": "not now", "content": {JSON: {"schema": state}}}
        return found
    return found | _errors(endpoint)


# --- the document -----------------------------------------------------------------------------------

_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer"},
    **{name: {"type": "apiKey", "in": "header", "name": name} for name in ("x-api-key", "x-goog-api-key", "api-key")},
    "key": {"type": "apiKey", "in": "query", "name": "key"},
}
"""Where a client's key may stand."""


def _operation(path: str, method: str, endpoint: GatewayEndpoint, *, is_demanded: bool) -> Fields:
    words = re.sub(r"[^a-z0-9]+", "_", path.lower()).strip("_")
    found: Fields = {
        "operationId": f"{method.lower()}_{words}".rstrip("_"),
        "summary": _SUMMARIES[endpoint.action],
        "tags": [
            profiles.get(endpoint.source).protocol if (endpoint.source, endpoint.action) in _BODIES else endpoint.action
        ],
        "responses": _responses(endpoint),
    }
    if parameters := _parameters(path, endpoint):
        found["parameters"] = parameters
    if method == "POST":
        found["requestBody"] = _body(endpoint)
    if method == "HEAD":
        found["responses"] = {status: {"description": "as with GET, and no body"} for status in found["responses"]}
    if endpoint.action in OPEN or not is_demanded:
        found["security"] = [] if endpoint.action in OPEN else [{}, *({name: []} for name in _SCHEMES)]
    return found


def document(*, is_demanded: bool) -> Fields:
    """All of it. `is_demanded`: clients must have a key."""
    paths: dict[str, Fields] = {}
    for pattern, endpoint in addresses():
        for path in templates(pattern):
            paths[path] = {
                method.lower(): _operation(path, method, endpoint, is_demanded=is_demanded)
                for method in endpoint.methods
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
            "schemas": {f"{name}_error": schema for name, schema in ERRORS.items()},
            "responses": _error_responses(),
            "securitySchemes": _SCHEMES,
        },
        "security": [{name: []} for name in _SCHEMES],
    }


@lru_cache(maxsize=2)
def document_bytes(*, is_demanded: bool) -> bytes:
    """The document as it is sent."""
    return msgspec.json.encode(document(is_demanded=is_demanded))

"""Embeddings of Cohere: version 2 of its endpoint, and the body that its models have on Bedrock."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest, EmbeddingTask, Truncation
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    leftover,
    optional,
    optional_texts,
    required,
    with_extra,
)
from toolglot.protocols.fields.vectors import base64_of, read_reply, texts_of

PROTOCOL: Final = "cohere"
_READ: Final = frozenset({"model", "texts", "inputs", "input_type", "embedding_types", "output_dimension", "truncate"})
_TASKS: Final[dict[str, EmbeddingTask]] = {
    "search_query": "query",
    "search_document": "document",
    "classification": "classification",
    "clustering": "clustering",
}
_TASK_NAMES: Final = {task: name for name, task in _TASKS.items()}
_TRUNCATIONS: Final[dict[str, Truncation]] = {"NONE": "none", "START": "start", "END": "end"}
_TRUNCATION_NAMES: Final = {truncation: name for name, truncation in _TRUNCATIONS.items()}
_BASE64: Final = "base64"


@from_root
def decode_request(body: Fields) -> EmbeddingRequest:
    types = optional_texts(body, "embedding_types")
    return EmbeddingRequest(
        _read_texts(body),
        optional(body, "model", str) or "",
        task=_TASKS.get(optional(body, "input_type", str) or ""),
        dimensions=optional(body, "output_dimension", int),
        truncation=_TRUNCATIONS.get(optional(body, "truncate", str) or ""),
        number_types=tuple([kind for kind in types if kind != _BASE64]) or ("float",),
        is_base64=_BASE64 in types,
        form="" if types else "floats",
        extra=leftover(body, _READ, PROTOCOL),
    )


def _read_texts(body: Fields) -> tuple[str, ...]:
    texts = optional_texts(body, "texts")
    if not texts and body.get("inputs") is not None:
        texts = tuple(each(required(body, "inputs", list), _read_input, ".inputs"))
    if not texts:
        raise InputError("expected at least one text", path=".texts", hint="send the texts to embed")
    return texts


def _read_input(item: Fields) -> str:
    return "".join(each(required(item, "content", list), _read_part, ".content"))


def _read_part(part: Fields) -> str:
    if part.get("type") != "text":
        raise InputError("only texts can be embedded by another provider", hint="send the text of this part")
    return required(part, "text", str)


def encode_request(request: EmbeddingRequest, _profile: Profile) -> Fields:
    return {"model": request.model, **encode_body(request)}


def encode_body(request: EmbeddingRequest) -> Fields:
    """The body of a request, except for the model, which is in the path on Bedrock."""
    fields: Fields = {"texts": texts_of(request.inputs), "embedding_types": ["float"]}
    if request.task is not None:
        fields["input_type"] = _TASK_NAMES[request.task]
    if request.dimensions is not None:
        fields["output_dimension"] = request.dimensions
    if request.truncation is not None:
        fields["truncate"] = _TRUNCATION_NAMES[request.truncation]
    return with_extra(fields, request.extra, PROTOCOL)


def with_model(body: Fields, model: str) -> Fields:
    return body if body.get("model") == model else {**body, "model": model}


class _ByType(Struct):
    floats: list[list[float]] | None = field(name="float", default=None)


class _Units(Struct):
    input_tokens: float | None = None


class _Meta(Struct):
    billed_units: _Units | None = None


class _Reply(Struct):
    embeddings: list[list[float]] | _ByType
    meta: _Meta | None = None


def decode_reply(data: bytes, _profile: Profile) -> EmbeddingReply:
    reply = read_reply(data, _Reply)
    found = reply.embeddings
    vectors = (found.floats or []) if isinstance(found, _ByType) else found
    units = reply.meta.billed_units if reply.meta is not None else None
    counted = units.input_tokens if units is not None else None
    return EmbeddingReply(tuple(vectors), input_tokens=int(counted) if counted is not None else None)


def encode_reply(reply: EmbeddingReply, request: EmbeddingRequest) -> Fields:
    by_type: dict[str, Any] = {"float": list(reply.vectors)}
    if request.is_base64:
        by_type[_BASE64] = [base64_of(vector) for vector in reply.vectors]
    return {
        "id": reply.id,
        "response_type": "embeddings_by_type",
        "embeddings": by_type,
        "texts": texts_of(request.inputs),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": reply.input_tokens or 0}},
    }

"""Embeddings on Bedrock, which go through `invoke`: each family of models has a body of its own.

The profile says which one a model has (`embeddings.form`); the fields of a client's body show which one it wrote.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest, EmbeddingTask, Truncation
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.cohere import embeddings as cohere
from toolglot.protocols.fields.reading import Fields, from_root, leftover, optional, read_required, required, with_extra
from toolglot.protocols.fields.vectors import read_reply, texts_of

PROTOCOL: Final = "bedrock"
TITAN: Final = "titan"
COHERE: Final = "cohere"
NOVA: Final = "nova"
_TITAN_READ: Final = frozenset({"inputText", "dimensions"})
_NOVA_READ: Final = frozenset({"taskType", "singleEmbeddingParams"})
_PURPOSES: Final[dict[str, EmbeddingTask]] = {
    "GENERIC_INDEX": "document",
    "TEXT_RETRIEVAL": "query",
    "GENERIC_RETRIEVAL": "query",
    "CLASSIFICATION": "classification",
    "CLUSTERING": "clustering",
}
_PURPOSE_NAMES: Final[dict[EmbeddingTask, str]] = {
    "document": "GENERIC_INDEX",
    "query": "TEXT_RETRIEVAL",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}
_TRUNCATIONS: Final[dict[str, Truncation]] = {"NONE": "none", "START": "start", "END": "end"}
_TRUNCATION_NAMES: Final = {truncation: name for name, truncation in _TRUNCATIONS.items()}


@from_root
def decode_request(body: Fields) -> EmbeddingRequest:
    if "inputText" in body:
        return EmbeddingRequest(
            (required(body, "inputText", str),),
            is_list=False,
            dimensions=optional(body, "dimensions", int),
            form=TITAN,
            extra=leftover(body, _TITAN_READ, PROTOCOL),
        )
    if "singleEmbeddingParams" in body:
        request = read_required(body, "singleEmbeddingParams", _read_nova)
        return replace(request, extra=leftover(body, _NOVA_READ, PROTOCOL))
    if "texts" in body or "inputs" in body:
        request = cohere.decode_request(body)
        extra = request.extra
        return replace(
            request,
            form=f"{COHERE} {request.form}".strip(),
            extra={PROTOCOL: extra[cohere.PROTOCOL]} if extra is not None else None,
        )
    raise InputError(
        "expected inputText, texts or singleEmbeddingParams", hint="send the body of a Titan, Cohere or Nova model"
    )


def _read_nova(fields: Fields) -> EmbeddingRequest:
    if "text" not in fields:
        raise InputError("only texts can be embedded by another provider", hint="send a text")
    text = read_required(fields, "text", lambda inner: inner)
    return EmbeddingRequest(
        (required(text, "value", str),),
        is_list=False,
        task=_PURPOSES.get(optional(fields, "embeddingPurpose", str) or ""),
        dimensions=optional(fields, "embeddingDimension", int),
        truncation=_TRUNCATIONS.get(optional(text, "truncationMode", str) or ""),
        form=NOVA,
    )


def encode_request(request: EmbeddingRequest, profile: Profile) -> Fields:
    form = profile.embeddings.form
    if form == COHERE:
        return with_extra(cohere.encode_body(request), request.extra, PROTOCOL)
    text = texts_of(request.inputs)[0]
    if form == NOVA:
        return with_extra(_write_nova(text, request), request.extra, PROTOCOL)
    fields: Fields = {"inputText": text}
    if request.dimensions is not None:
        fields["dimensions"] = request.dimensions
    return with_extra(fields, request.extra, PROTOCOL)


def _write_nova(text: str, request: EmbeddingRequest) -> Fields:
    parameters: Fields = {
        "embeddingPurpose": _PURPOSE_NAMES[request.task or "document"],
        "text": {"truncationMode": _TRUNCATION_NAMES[request.truncation or "none"], "value": text},
    }
    if request.dimensions is not None:
        parameters["embeddingDimension"] = request.dimensions
    return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": parameters}


def with_model(body: Fields, _model: str) -> Fields:
    return body  # the model is in the path


class _NovaEmbedding(Struct):
    embedding: list[float]


class _NovaReply(Struct):
    embeddings: list[_NovaEmbedding]
    input_tokens: int | None = field(name="inputTextTokenCount", default=None)


class _TitanReply(Struct):
    embedding: list[float]
    input_tokens: int | None = field(name="inputTextTokenCount", default=None)


def decode_reply(data: bytes, profile: Profile) -> EmbeddingReply:
    form = profile.embeddings.form
    if form == COHERE:
        return cohere.decode_reply(data, profile)
    if form == NOVA:
        nova = read_reply(data, _NovaReply)
        return EmbeddingReply(tuple([one.embedding for one in nova.embeddings]), input_tokens=nova.input_tokens)
    titan = read_reply(data, _TitanReply)
    return EmbeddingReply((titan.embedding,), input_tokens=titan.input_tokens)


def encode_reply(reply: EmbeddingReply, request: EmbeddingRequest) -> Fields:
    family, _, floats = request.form.partition(" ")
    if family == COHERE:
        body = cohere.encode_reply(reply, request)
        if floats:
            body |= {"response_type": "embeddings_floats", "embeddings": list(reply.vectors)}
        return {key: value for key, value in body.items() if key != "meta"}
    tokens = reply.input_tokens or 0
    if family == NOVA:
        return {
            "embeddings": [{"embeddingType": "TEXT", "embedding": reply.vectors[0]}],
            "inputTextTokenCount": tokens,
        }
    vector = reply.vectors[0]
    return {"embedding": vector, "embeddingsByType": {"float": vector}, "inputTextTokenCount": tokens}

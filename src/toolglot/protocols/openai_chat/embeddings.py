"""Embeddings of OpenAI, and of the hosts that have the same endpoint."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest, EmbeddingTask
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields, from_root, leftover, optional, required, with_extra
from toolglot.protocols.fields.vectors import base64_of, read_inputs, read_reply, vector_of

PROTOCOL: Final = "openai_chat"
_DIMENSIONS: Final = ("dimensions", "output_dimension")
"""The field of OpenAI, and that of Mistral."""
_READ: Final = frozenset({"model", "input", "encoding_format", *_DIMENSIONS})
_TASKS: Final[dict[str, EmbeddingTask]] = {
    "query": "query",
    "passage": "document",
    "search_query": "query",
    "search_document": "document",
    "classification": "classification",
    "clustering": "clustering",
}
"""The values of `input_type`, a field that some hosts have and OpenAI has not."""


@from_root
def decode_request(body: Fields) -> EmbeddingRequest:
    inputs, is_list = read_inputs(body, "input")
    number_type = optional(body, "output_dtype", str)
    return EmbeddingRequest(
        inputs,
        required(body, "model", str),
        is_list=is_list,
        task=_TASKS.get(optional(body, "input_type", str) or ""),
        dimensions=next((size for name in _DIMENSIONS if (size := optional(body, name, int)) is not None), None),
        number_types=(number_type or "float",),
        is_base64=optional(body, "encoding_format", str) == "base64",
        extra=leftover(body, _READ, PROTOCOL),
    )


def encode_request(request: EmbeddingRequest, profile: Profile) -> Fields:
    inputs = [item if isinstance(item, str) else list(item) for item in request.inputs]
    fields: Fields = {"model": request.model, "input": inputs if request.is_list or len(inputs) > 1 else inputs[0]}
    if request.dimensions is not None:
        fields[profile.embeddings.dimensions_field] = request.dimensions
    return with_extra(fields, request.extra, PROTOCOL)


def with_model(body: Fields, model: str) -> Fields:
    return body if body.get("model") == model else {**body, "model": model}


class _Embedding(Struct):
    embedding: list[float] | str
    index: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None


class _Reply(Struct):
    data: list[_Embedding]
    model: str | None = None
    usage: _Usage | None = None


def decode_reply(data: bytes, _profile: Profile) -> EmbeddingReply:
    reply = read_reply(data, _Reply)
    order = reply.data
    if all(item.index is not None for item in order):
        order = sorted(order, key=lambda item: item.index or 0)
    return EmbeddingReply(
        tuple([vector_of(item.embedding, f"$.data[{index}].embedding") for index, item in enumerate(order)]),
        reply.model or "",
        reply.usage.prompt_tokens if reply.usage is not None else None,
    )


def encode_reply(reply: EmbeddingReply, request: EmbeddingRequest) -> Fields:
    tokens = reply.input_tokens or 0
    return {
        **({"id": reply.id} if reply.id else {}),  # OpenAI has none, and Mistral's SDK demands one
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": base64_of(vector) if request.is_base64 else vector}
            for index, vector in enumerate(reply.vectors)
        ],
        "model": reply.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }

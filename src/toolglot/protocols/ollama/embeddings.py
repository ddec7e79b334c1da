"""Embeddings of Ollama: `/api/embed`, and the older `/api/embeddings`, which has one text."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields, from_root, leftover, optional, required, with_extra
from toolglot.protocols.fields.vectors import read_inputs, read_reply, texts_of

PROTOCOL: Final = "ollama"
_READ: Final = frozenset({"model", "input", "prompt", "truncate", "dimensions"})
_OLD: Final = "prompt"
"""The form of `/api/embeddings`."""


@from_root
def decode_request(body: Fields) -> EmbeddingRequest:
    is_old = "input" not in body and "prompt" in body
    inputs, is_list = ((required(body, "prompt", str),), False) if is_old else read_inputs(body, "input")
    truncate = optional(body, "truncate", bool)
    return EmbeddingRequest(
        inputs,
        required(body, "model", str),
        is_list=is_list,
        dimensions=optional(body, "dimensions", int),
        truncation=None if truncate is None else "end" if truncate else "none",
        form=_OLD if is_old else "",
        extra=leftover(body, _READ, PROTOCOL),
    )


def encode_request(request: EmbeddingRequest, _profile: Profile) -> Fields:
    fields: Fields = {"model": request.model, "input": texts_of(request.inputs)}
    if request.truncation is not None:
        fields["truncate"] = request.truncation != "none"
    if request.dimensions is not None:
        fields["dimensions"] = request.dimensions
    return with_extra(fields, request.extra, PROTOCOL)


def with_model(body: Fields, model: str) -> Fields:
    return body if body.get("model") == model else {**body, "model": model}


class _Reply(Struct):
    embeddings: list[list[float]]
    model: str | None = None
    prompt_eval_count: int | None = None


def decode_reply(data: bytes, _profile: Profile) -> EmbeddingReply:
    reply = read_reply(data, _Reply)
    return EmbeddingReply(tuple(reply.embeddings), reply.model or "", reply.prompt_eval_count)


def encode_reply(reply: EmbeddingReply, request: EmbeddingRequest) -> Fields:
    if request.form == _OLD:
        return {"embedding": reply.vectors[0]}
    return {
        "model": reply.model,
        "embeddings": list(reply.vectors),
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": reply.input_tokens or 0,
    }

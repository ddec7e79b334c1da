"""Embeddings of the Gemini API (`embedContent`, `batchEmbedContents`) and of Vertex AI (`embedContent`, `predict`).

Clients of the Gemini API send one input, or a list of requests. Upstreams of the Gemini API get lists. Vertex AI has no
lists: the profile says that a request has one input, and which of the two forms its model takes.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from toolglot.conversation.embeddings import EmbeddingReply, EmbeddingRequest, EmbeddingTask
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    leftover,
    optional,
    present,
    read_required,
    required,
    with_extra,
)
from toolglot.protocols.fields.vectors import read_reply, texts_of

PROTOCOL: Final = "gemini"
_READ: Final = frozenset({"model", "content", "taskType", "title", "outputDimensionality"})
_TASKS: Final[dict[str, EmbeddingTask]] = {
    "RETRIEVAL_QUERY": "query",
    "RETRIEVAL_DOCUMENT": "document",
    "SEMANTIC_SIMILARITY": "similarity",
    "CLASSIFICATION": "classification",
    "CLUSTERING": "clustering",
    "QUESTION_ANSWERING": "question_answering",
    "FACT_VERIFICATION": "fact_verification",
    "CODE_RETRIEVAL_QUERY": "code_query",
}
_TASK_NAMES: Final = {task: name for name, task in _TASKS.items()}
PREDICT: Final = "predict"
"""The form of older models of Vertex AI."""
SINGLE: Final = "single"
"""The form of newer ones, which have one input."""


@from_root
def decode_request(body: Fields) -> EmbeddingRequest:
    if "requests" not in body:
        return _read_one(body)
    requests = each(required(body, "requests", list), _read_one, ".requests")
    if not requests:
        raise InputError("expected at least one request", path=".requests", hint="send the texts to embed")
    first = requests[0]
    for index, other in enumerate(requests):
        if _settings(other) != _settings(first):
            raise InputError(
                "its task, title or dimensions are not those of the first request",
                path=f".requests[{index}]",
                hint="send one batch for each combination of them",
            )
    return EmbeddingRequest(
        tuple([item for request in requests for item in request.inputs]),
        first.model,
        task=first.task,
        title=first.title,
        dimensions=first.dimensions,
        extra=first.extra,
    )


def _settings(request: EmbeddingRequest) -> tuple[Any, ...]:
    return request.task, request.title, request.dimensions, request.extra


def _read_one(fields: Fields) -> EmbeddingRequest:
    texts = read_required(
        fields, "content", lambda content: each(required(content, "parts", list), _read_text, ".parts")
    )
    model = optional(fields, "model", str) or ""
    return EmbeddingRequest(
        ("".join(texts),),
        model.removeprefix("models/"),
        is_list=False,
        task=_TASKS.get(optional(fields, "taskType", str) or ""),
        title=optional(fields, "title", str),
        dimensions=optional(fields, "outputDimensionality", int),
        extra=leftover(fields, _READ, PROTOCOL),
    )


def _read_text(part: Fields) -> str:
    if "text" not in part:
        raise InputError("only texts can be embedded by another provider", hint="send the text of this part")
    return required(part, "text", str)


def encode_request(request: EmbeddingRequest, profile: Profile) -> Fields:
    form = profile.embeddings.form
    if form == PREDICT:
        return _encode_predict(request)
    requests = [_write_one(text, request) for text in texts_of(request.inputs)]
    if form == SINGLE:
        return requests[0]
    name = _resource_name(request.model)
    return {"requests": [{"model": name, **one} for one in requests]}


def _write_one(text: str, request: EmbeddingRequest) -> Fields:
    fields: Fields = {"content": {"parts": [{"text": text}]}}
    if request.task is not None:
        fields["taskType"] = _TASK_NAMES[request.task]
    if request.title is not None:
        fields["title"] = request.title
    if request.dimensions is not None:
        fields["outputDimensionality"] = request.dimensions
    return with_extra(fields, request.extra, PROTOCOL)


def _encode_predict(request: EmbeddingRequest) -> Fields:
    task = _TASK_NAMES[request.task] if request.task is not None else None
    instances = [
        present({"content": text, "task_type": task, "title": request.title}) for text in texts_of(request.inputs)
    ]
    parameters = {"outputDimensionality": request.dimensions} if request.dimensions is not None else {}
    return {"instances": instances, "parameters": parameters}


def with_model(body: Fields, model: str) -> Fields:
    name = _resource_name(model)
    if body.get("model") not in (None, name):
        body = {**body, "model": name}
    requests = body.get("requests")
    if not isinstance(requests, list) or all(one.get("model") == name for one in requests):
        return body
    return {**body, "requests": [{**one, "model": name} for one in requests]}


def _resource_name(model: str) -> str:
    return model if "/" in model else f"models/{model}"


class _Values(Struct):
    values: list[float]


class _UsageMetadata(Struct):
    prompt_tokens: int | None = field(name="promptTokenCount", default=None)


class _Statistics(Struct):
    token_count: float | None = None


class _PredictedValues(_Values):
    statistics: _Statistics | None = None


class _Prediction(Struct):
    embeddings: _PredictedValues


class _Reply(Struct):
    embedding: _Values | None = None
    embeddings: list[_Values] | None = None
    predictions: list[_Prediction] | None = None
    usage: _UsageMetadata | None = field(name="usageMetadata", default=None)


def decode_reply(data: bytes, _profile: Profile) -> EmbeddingReply:
    reply = read_reply(data, _Reply)
    if reply.predictions is not None:
        found = [prediction.embeddings for prediction in reply.predictions]
        counts = [int(one.statistics.token_count or 0) for one in found if one.statistics is not None]
        return EmbeddingReply(tuple([one.values for one in found]), input_tokens=sum(counts) if counts else None)
    vectors = reply.embeddings if reply.embeddings is not None else [reply.embedding] if reply.embedding else []
    tokens = reply.usage.prompt_tokens if reply.usage is not None else None
    return EmbeddingReply(tuple([one.values for one in vectors]), input_tokens=tokens)


def encode_reply(reply: EmbeddingReply, request: EmbeddingRequest) -> Fields:
    vectors = [{"values": vector} for vector in reply.vectors]
    body: Fields = {"embeddings": vectors} if request.is_list else {"embedding": vectors[0]}
    if reply.input_tokens is not None:
        body["usageMetadata"] = {"promptTokenCount": reply.input_tokens, "totalTokenCount": reply.input_tokens}
    return body

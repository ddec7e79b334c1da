"""Embeddings: a client's request for another provider, and the replies as one for the client.

    request = read_embeddings(body, source, model="text-embedding-3-small")
    sent = request_embeddings(request, target, source)       # bodies, and a report of what was changed
    body = reply_embeddings([data], request, target, source)

Laws: vectors are never changed and stay in the order of their inputs. A request that the target has no words for is
refused by name; what only describes the inputs (a task, a title) is left out and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Usage
from toolglot.conversation.embeddings import FLOAT, EmbeddingReply, EmbeddingRequest, EmbeddingTask
from toolglot.conversation.plausible_usage import plausible_usage
from toolglot.conversation.report import Action, Entry
from toolglot.errors import InputError, LimitError, RefusedError
from toolglot.jsontext import parse
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.profiles import Profile
from toolglot.protocols.base import EmbeddingCodec, codec
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.vectors import NOT_FINITE

_NEAREST: Final[dict[EmbeddingTask, EmbeddingTask]] = {
    "question_answering": "query",
    "fact_verification": "query",
    "code_query": "query",
    "similarity": "document",
}
"""The task that comes closest to one that a target does not have."""
DEFAULT_TASK: Final[EmbeddingTask] = "document"
MAX_REQUESTS: Final = 256
"""The maximum number of requests into which one is divided."""


class ReceivedEmbeddings(Struct, frozen=True):
    """A client's request."""

    request: EmbeddingRequest
    fields: Fields
    """The body as the client sent it."""


class ConvertedEmbeddings(Struct, frozen=True):
    """A request for a target: several bodies if it has more inputs than the target takes at once."""

    bodies: tuple[Fields, ...]
    entries: tuple[Entry, ...]


def read_embeddings(
    body: bytes, source: Profile, *, model: str = "", limits: Limits = DEFAULT_LIMITS
) -> ReceivedEmbeddings:
    """A client's request. The model in the path of a request counts, if there is one."""
    fields = parse(body, limits=limits).value
    if not isinstance(fields, dict):
        raise InputError("expected an object", hint="send a request for embeddings")
    request = _codec(source).decode_request(fields)
    model = model or request.model
    if not model:
        raise InputError("expected the name of a model", path="$.model")
    return ReceivedEmbeddings(replace(request, model=model), fields)


def request_embeddings(request: EmbeddingRequest, target: Profile, source: Profile) -> ConvertedEmbeddings:
    """The request as the target takes it, with the model that is in it."""
    report = _Report(target)
    _check_inputs(request, target)
    keeps_fields = source.protocol == target.protocol and target.as_known().request.unknown_fields != "refused"
    fitted = request if keeps_fields else _without_foreign_fields(request, report)
    fitted = _fit_task(fitted, target, report, keeps_fields=keeps_fields)
    fitted = _fit_settings(fitted, target, report)
    limit = target.embeddings.max_inputs or len(fitted.inputs)
    parts = range(0, len(fitted.inputs), limit)
    if len(parts) > MAX_REQUESTS:
        raise LimitError(
            f"{target.title} takes {limit} inputs at once, and more than {MAX_REQUESTS} requests would be needed",
            path="$",
            hint=f"send at most {MAX_REQUESTS * limit} inputs",
        )
    if len(parts) > 1:
        report.add("converted", f"{target.title} takes {limit} of the inputs at once: {len(parts)} requests are sent")
    encode = _codec(target).encode_request
    bodies = [encode(replace(fitted, inputs=fitted.inputs[start : start + limit]), target) for start in parts]
    return ConvertedEmbeddings(tuple(bodies), tuple(report.entries))


def rename_model(received: ReceivedEmbeddings, source: Profile, model: str) -> Fields:
    """The body as the client sent it, for another model of its own provider; the same object if nothing changes."""
    return _codec(source).with_model(received.fields, model)


def reply_embeddings(
    replies: Sequence[bytes], request: EmbeddingRequest, target: Profile, source: Profile, *, reply_id: str = ""
) -> tuple[Fields, EmbeddingReply]:
    """The body for the client, and the reply that it was made of."""
    decode = _codec(target).decode_reply
    parts = [decode(data, target) for data in replies]
    vectors = tuple([vector for part in parts for vector in part.vectors])
    if len(vectors) != len(request.inputs):
        raise _wrong_number(vectors, request)
    counts = [count for part in parts if (count := _possible(part.input_tokens)) is not None]
    reply = EmbeddingReply(vectors, request.model or parts[0].model, sum(counts) if counts else None, reply_id)
    return _codec(source).encode_reply(reply, request), reply


def checked_tokens(data: bytes, request: EmbeddingRequest, target: Profile) -> int | None:
    """The tokens that a reply of the client's own provider reports; None: it reports none.

    Raises an InputError if it is not one vector of finite numbers for each input. Vectors of other numbers, and replies
    to older endpoints and to requests with fields that are not known here, are the provider's own: they must only be
    JSON, and floats finite.
    """
    is_known = request.number_types == (FLOAT,) and not request.extra and not request.form
    try:
        reply = _codec(target).decode_reply(data, target)
    except InputError as error:
        is_float = request.number_types == (FLOAT,)
        if is_known or (is_float and error.message == NOT_FINITE) or not _is_json(data):
            raise
        return None
    if is_known and len(reply.vectors) != len(request.inputs):
        raise _wrong_number(reply.vectors, request)
    return _possible(reply.input_tokens)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _wrong_number(vectors: Sequence[object], request: EmbeddingRequest) -> InputError:
    return InputError(f"the reply has {len(vectors)} vectors for {len(request.inputs)} inputs")


def _possible(count: int | None) -> int | None:
    """A count of tokens, if it can be true."""
    usage = plausible_usage(Usage(input_tokens=count))
    return usage.input_tokens if usage is not None else None


def _codec(profile: Profile) -> EmbeddingCodec:
    found = codec(profile.protocol).embeddings
    if found is None:
        raise RefusedError(
            f"{profile.title} has no embeddings", path="$.model", hint="name an embedding model of another provider"
        )
    return found


# --- what a target takes ----------------------------------------------------------------------------


class _Report:
    def __init__(self, target: Profile) -> None:
        self._target = target
        self.entries: list[Entry] = []

    def add(self, action: Action, reason: str) -> None:
        self.entries.append(Entry(action=action, reason=reason, fault="loss", target=self._target.name))


def _check_inputs(request: EmbeddingRequest, target: Profile) -> None:
    if "tokens" not in target.embeddings.settings and any(not isinstance(item, str) for item in request.inputs):
        raise RefusedError(
            f"{target.title} embeds texts, not ids of tokens", path="$.input", hint="send the text of the input"
        )
    if request.number_types != (FLOAT,):
        wanted = ", ".join(request.number_types)[:80]
        raise RefusedError(
            f"vectors of {wanted} are converted for no other provider",
            path="$",
            hint="request vectors of floats, or send the request to the provider itself",
        )


def _without_foreign_fields(request: EmbeddingRequest, report: _Report) -> EmbeddingRequest:
    """The request without the fields that only the client's own provider knows."""
    for fields in (request.extra or {}).values():
        names = [name for name, value in fields.items() if value is not None]
        if names:
            report.add("dropped", f"only the client's own provider knows {', '.join(names)[:200]}")
    return replace(request, extra=None) if request.extra else request


def _fit_task(request: EmbeddingRequest, target: Profile, report: _Report, *, keeps_fields: bool) -> EmbeddingRequest:
    tasks = target.embeddings.tasks
    task = request.task
    if task is None:
        if not target.embeddings.task_required:
            return request
        report.add(
            "assumed", f"{target.title} must know what the vectors are for; {DEFAULT_TASK!r} was assumed, not 'query'"
        )
        return replace(request, task=DEFAULT_TASK)
    if not tasks:
        if not keeps_fields:  # otherwise the field is among those that are forwarded as they are
            report.add("dropped", f"{target.title} has no field for the task of the vectors, {task!r}")
        return replace(request, task=None)
    if task in tasks:
        return request
    nearest = _NEAREST.get(task, DEFAULT_TASK)
    report.add("converted", f"{target.title} does not have the task {task!r}; {nearest!r} is sent")
    return replace(request, task=nearest)


def _fit_settings(request: EmbeddingRequest, target: Profile, report: _Report) -> EmbeddingRequest:
    """The request without settings that the target has no field for."""
    accepted = target.embeddings.settings
    unset: dict[str, None] = {}
    if request.dimensions is not None and "dimensions" not in accepted:
        raise RefusedError(
            f"{target.title} makes vectors of one length only", path="$.dimensions", hint="leave out the length"
        )
    if request.title is not None and "title" not in accepted:
        report.add("dropped", f"{target.title} has no field for a title")
        unset["title"] = None
    if request.truncation is not None and "truncation" not in accepted:
        if request.truncation != "none":
            report.add("dropped", f"{target.title} has no field for the truncation of inputs that are too long")
        unset["truncation"] = None
    return replace(request, **unset) if unset else request

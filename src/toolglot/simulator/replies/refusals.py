"""Refusals in the provider's own form: status, headers, body, message.

The protocol's error codec writes the body. Providers with a form of their own (Mistral's flat object, DeepSeek's types)
change it: `edit` and `fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from toolglot.conversation import Failure, FailureKind
from toolglot.masking import mask
from toolglot.protocols.base import codec
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.replies.wordings import Wording, message_of, path_of


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is refused."""

    kind: FailureKind
    message: str
    param: str = ""
    code: str = ""
    rule: str = ""
    """The id of the rule that was broken."""
    status: int | None = None
    retry_after: float | None = None
    fields: dict[str, Any] = {}
    """Fields of the error object that are the provider's own."""


ErrorEdit = Callable[[Refusal, int, Fields], tuple[int, Fields]]
"""Changes the status and the body of an error."""


class WholeResponse(Struct, frozen=True, kw_only=True):
    """An HTTP response that is not streamed."""

    status: int
    body: Fields | bytes
    headers: dict[str, str] = {}


def refusal_for(
    violations: Sequence[Violation],
    body: Fields,
    wordings: Mapping[tuple[str, str], Wording],
    codes: Mapping[tuple[str, str], str],
) -> Refusal:
    """The violation that the provider would report: first one whose message is known, then one of the body's shape."""
    first = min(violations, key=lambda found: 0 if found.wording == "provider" else 1 if found.rule == "shape" else 2)
    message = message_of(first, body, wordings)
    code = codes.get((first.target, first.key), "")
    return Refusal(kind="bad_request", message=message, param=path_of(first), code=code, rule=first.rule)


def write_refusal(
    protocol: str, refusal: Refusal, request_id: str, *, names_param: bool = True, edit: ErrorEdit | None = None
) -> WholeResponse:
    """The refusal as an HTTP response."""
    errors = codec(protocol).errors
    failure = Failure(
        refusal.kind,
        refusal.message,
        param=refusal.param if names_param else "",
        request_id=request_id,
        retry_after=refusal.retry_after,
    )
    status, body = errors.encode(failure)
    headers = {"content-type": "application/json", **errors.headers_of(failure)}
    _set_message(body, refusal)
    if edit is not None:
        status, body = edit(refusal, status, body)
    return WholeResponse(status=refusal.status or status, body=body, headers=headers)


def _set_message(body: Fields, refusal: Refusal) -> None:
    """Put in the exact message: the codec may have put words in front of it, for clients that look for them."""
    inner = body.get("error")
    holder = inner if isinstance(inner, dict) else body
    key = "error" if isinstance(inner, str) else "message"
    written = holder.get(key)
    message = " ".join(refusal.message.split())
    # The message for a missing key shows how to send a key. That is not a secret, although it looks like one.
    masked = mask(message) if refusal.kind == "auth" else message
    if isinstance(written, str) and message and (message in written or masked in written):
        holder[key] = refusal.message
    if refusal.code and "code" in holder and isinstance(inner, dict):
        holder["code"] = refusal.code
    holder.update(refusal.fields)

"""Refusals in the provider's own form: status, headers, body, words.

The body is the one that the protocol's error codec writes; where a provider has a form of its own beside its protocol
(Mistral's flat object, DeepSeek's types), it is laid over it here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Failure, FailureKind
from toolglot.masking import mask
from toolglot.protocols.base import codec
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.providers import SimulatedProvider
from toolglot.simulator.replies import wordings


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is not answered."""

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


class WholeResponse(Struct, frozen=True, kw_only=True):
    """An HTTP answer that is whole."""

    status: int
    body: Fields | bytes
    headers: dict[str, str] = {}


def refused_by(violations: Sequence[Violation], body: Fields) -> Refusal:
    """What is wrong, as the provider would say it: first that for which its own words are known, then a wrong form."""
    first = min(violations, key=lambda found: 0 if found.wording == "provider" else 1 if found.rule == "shape" else 2)
    message = wordings.of(first, body)
    code = wordings.CODES.get((first.target, first.key), "")
    return Refusal(kind="bad_request", message=message, param=wordings.place_of(first), code=code, rule=first.rule)


def write(provider: SimulatedProvider, protocol: str, refusal: Refusal, request_id: str) -> WholeResponse:
    """The answer that tells it."""
    errors = codec(protocol).errors
    failure = Failure(
        refusal.kind,
        refusal.message,
        param="" if protocol == "gemini" else refusal.param,
        request_id=request_id,
        retry_after=refusal.retry_after,
    )
    status, body = errors.encode(failure)
    headers = {"content-type": "application/json", **errors.headers_of(failure)}
    _set_words(body, refusal)
    own = _OWN.get(provider.name)
    if own is not None:
        status, body = own(refusal, status, body)
    return WholeResponse(status=refusal.status or status, body=body, headers=headers)


def _set_words(body: Fields, refusal: Refusal) -> None:
    """The words as they are: the codec may put others in front, for clients that look for them."""
    inner = body.get("error")
    holder = inner if isinstance(inner, dict) else body
    key = "error" if isinstance(inner, str) else "message"
    said = holder.get(key)
    words = " ".join(refusal.message.split())
    # What is said of a missing key shows how a key is sent: that is no secret, although it looks like one.
    seen = mask(words) if refusal.kind == "auth" else words
    if isinstance(said, str) and words and said.endswith((words, seen)):
        holder[key] = refusal.message
    if refusal.code and "code" in holder and isinstance(inner, dict):
        holder["code"] = refusal.code
    holder.update(refusal.fields)


_ORDER_WORDS: Final = re.compile(r"Unexpected role|Expected last role|Not the same number|Unexpected tool call id")


def _mistral(refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    if refusal.rule == "shape":
        steps: list[str | int] = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", refusal.param)]
        return 422, {"detail": [{"type": "value_error", "loc": ["body", *steps], "msg": refusal.message}]}
    if refusal.kind == "auth":
        return 401, {"detail": refusal.message}
    is_order = _ORDER_WORDS.match(refusal.message) is not None
    kinds: dict[str, tuple[str, str | None]] = {
        "bad_request": ("invalid_request_message_order", "3230") if is_order else ("invalid_request_error", "3051"),
        "rate_limit": ("rate_limited", "1300"),
        "not_found": ("invalid_model", "1500"),
    }
    type, code = kinds.get(refusal.kind, ("internal_server_error", "3000"))
    said: Any = body["error"]["message"]
    return status, {"object": "error", "message": said, "type": type, "param": None, "code": code}


def _cohere(refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    return 422 if refusal.message.startswith("unknown field") else status, body


def _kimi(_refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    error = body["error"]
    return status, {"error": {"message": error["message"], "type": error["type"]}}


_OWN: Final[dict[str, Callable[[Refusal, int, Fields], tuple[int, Fields]]]] = {
    "mistral": _mistral,
    "cohere": _cohere,
    "kimi": _kimi,
}
"""Providers whose errors have a form of their own."""

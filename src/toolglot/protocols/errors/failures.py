"""Errors of all protocols: from a status and a body to a `Failure`, and back into any client's own shape.

    failure = openai_chat.errors.decode(429, body, headers)
    status, body = anthropic.errors.encode(failure)

A protocol's `errors.py` is an `ErrorShape`: where a reply can hold an error, the status and words of each kind of
failure, and how they are written. Everything else is here.

Laws: decoding never raises. For a client of the same protocol, a JSON object comes back equal, except for masked
secrets, unless the failure was changed since. Other clients get its kind, its message and the time to wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Failure, FailureKind
from toolglot.errors import InputError, LimitError, ProfileError, StoredHistoryError, ToolglotError, cut
from toolglot.protocols.errors import retry_after
from toolglot.protocols.errors.bodies import (
    ParsedError,
    error_in,
    mask_document,
    message_of,
    message_of_page,
    read_document,
    read_error,
    word_of,
)
from toolglot.protocols.errors.kinds import PHRASES, kind_of
from toolglot.protocols.errors.known_messages import recognise
from toolglot.protocols.errors.overflow import counts_of, reply_counts_of
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.stored_history import UNSUPPORTED_THREAD

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
MAX_HEADERS: Final = 200
REQUEST_IDS: Final = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-debug-trace-id")
ERROR_TYPE: Final = "x-amzn-errortype"


class ProviderError(ToolglotError):
    """A provider sent an error instead of a reply: `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return cut(f"{self.failure.kind}: {self.failure.message}")


class ErrorSpelling(Struct, frozen=True):
    """How a protocol writes one kind of failure."""

    status: int
    type: str = ""
    code: str = ""
    phrase: str = ""
    """Words that clients of the protocol look for in the message."""
    counted: str = ""
    """How the provider names `{tokens}` and `{window}` of a prompt that is too long: its clients read the numbers."""
    reply_counted: str = ""
    """The same of a prompt that fits, but not together with the reply: `{input}`, `{reply}` and `{window}`."""


STATUSES: Final[dict[FailureKind, ErrorSpelling]] = {
    "bad_request": ErrorSpelling(400),
    "auth": ErrorSpelling(401),
    "permission": ErrorSpelling(403),
    "billing": ErrorSpelling(402),
    "not_found": ErrorSpelling(404),
    "too_large": ErrorSpelling(413),
    "context_overflow": ErrorSpelling(400),
    "rate_limit": ErrorSpelling(429),
    "overloaded": ErrorSpelling(503),
    "content_filter": ErrorSpelling(400),
    "timeout": ErrorSpelling(504),
    "unreachable": ErrorSpelling(502),
    "server": ErrorSpelling(500),
    "bad_output": ErrorSpelling(500),
}
"""For a protocol whose errors have a status and a message, and no names."""


class ErrorShape(Struct, frozen=True):
    """The errors of one protocol."""

    protocol: str
    in_band: Callable[[Fields], object]
    """Returns the error inside a reply of status 200; None if there is none."""
    write: Callable[[Failure, ErrorSpelling, str], Fields]
    spellings: dict[FailureKind, ErrorSpelling]
    request_id: str = "x-request-id"
    """The header that names the request."""
    names_exception: bool = False
    """Whether a header names the exception that the client raises."""

    def decode(
        self,
        status: int,
        body: bytes | Fields | str | None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        target: str = "",
    ) -> Failure | None:
        """The failure of a response; None if it is a reply. The rules of the target are searched first."""
        if 200 <= status <= 299 and type(body) is dict and self.in_band(body) is None:
            return None  # nearly all replies
        return _decode(self, status, body, _plain(headers), target)

    def encode(self, failure: Failure) -> tuple[int, dict[str, Any]]:
        """A failure as the status and the body that a client of the protocol understands."""
        original = _original(self, failure)
        if original is not None:
            return failure.status or 0, original
        spelling = self.spellings[failure.kind]
        return spelling.status, self.write(failure, spelling, _full_message(spelling, failure))

    def headers_of(self, failure: Failure) -> dict[str, str]:
        """The headers of an encoded failure: the time to wait, the request, the exception."""
        headers = {}
        if self.names_exception:
            spelled = self.spellings[failure.kind].type
            headers[ERROR_TYPE] = spelled if _original(self, failure) is None else failure.code or spelled
        if failure.retry_after is not None and 0 <= failure.retry_after <= retry_after.MAX_SECONDS:
            headers["retry-after"] = str(math.ceil(failure.retry_after))
            headers["retry-after-ms"] = str(round(failure.retry_after * 1000))
        if not failure.retryable:
            # The SDKs of OpenAI and Anthropic obey it. Without it they repeat every 429, also for unpaid bills.
            headers["x-should-retry"] = "false"
        if failure.request_id and failure.request_id.isascii():
            headers[self.request_id] = word_of(failure.request_id)
        return headers


# --- from a provider --------------------------------------------------------------------------------


def _decode(shape: ErrorShape, status: int, body: object, headers: Mapping[str, str], target: str) -> Failure | None:
    document, text = read_document(body)
    succeeded = 200 <= status <= 299
    error = _in_band(shape, document)
    if succeeded and error is None:
        return None
    original = mask_document(document) if document is not None else None
    if original is not None:
        document, error = original, _in_band(shape, original)
    found = _parse_error(error, document, text)
    return _failure(shape, status, found, headers, target=target, original=original, in_band=succeeded)


def _in_band(shape: ErrorShape, document: object) -> object:
    single = document[0] if isinstance(document, list) and document else document
    return shape.in_band(single) if isinstance(single, dict) else None


def _parse_error(error: object, document: object, text: str) -> ParsedError:
    if document is None:
        return ParsedError(message_of_page(text))
    return read_error(error if error is not None else error_in(document), document)


def _failure(
    shape: ErrorShape,
    status: int,
    found: ParsedError,
    headers: Mapping[str, str],
    *,
    target: str,
    original: object,
    in_band: bool,
) -> Failure:
    codes = found.codes
    if ERROR_TYPE in headers:
        codes = (_exception(headers[ERROR_TYPE]), *codes)
    message = found.message or _default_message(status, codes)
    kind = kind_of(_clearest_status(status, found), codes, message)
    rules = recognise(" ".join((message, *codes)), target=target, protocol=shape.protocol)
    document = original[0] if isinstance(original, list) and original else original
    return Failure(
        kind,
        message,
        status,
        codes[0] if codes else "",
        _wait(kind, found, headers, message),
        found.request_id or next((word_of(headers[name]) for name in REQUEST_IDS if headers.get(name)), ""),
        found.param,
        rules[0] if rules else "",
        in_band,
        {shape.protocol: document} if isinstance(document, dict) else None,
    )


def _clearest_status(status: int, found: ParsedError) -> int:
    """The status of the response, or that of its body if the response itself is no error."""
    return status if 400 <= status <= 599 or found.status is None else found.status


def _exception(value: str) -> str:
    """An AWS exception without namespace and address."""
    return word_of(value.split(":", 1)[0].rsplit("#", 1)[-1])


def _default_message(status: int, codes: tuple[str, ...]) -> str:
    return f"status {status}: {codes[0]}" if codes else f"status {status} without a message"


def _wait(kind: FailureKind, found: ParsedError, headers: Mapping[str, str], message: str) -> float | None:
    """The time to wait: from headers and fields first, then from the text of the message."""
    seconds = retry_after.from_headers(headers)
    if seconds is None:
        seconds = found.retry_after
    if seconds is None and Failure(kind).retryable:
        seconds = retry_after.from_text(message)
        if seconds is None and kind == "rate_limit":
            seconds = retry_after.from_limits(headers)
    return seconds


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their lowercase names."""
    plain: dict[str, str] = {}
    if not headers:
        return plain
    for _, (name, value) in zip(range(MAX_HEADERS), headers.items(), strict=False):
        if isinstance(name, str) and isinstance(value, str):
            plain[name.lower()] = value
    return plain


def from_input_error(error: InputError) -> Failure:
    """The failure of a request that is invalid before it is sent."""
    kind: FailureKind = "too_large" if isinstance(error, LimitError) else "bad_request"
    if isinstance(error, ProfileError):
        kind = "server"  # a mistake in the configuration is not the client's
    is_thread = isinstance(error, StoredHistoryError) and error.path == "$.thread"
    code = UNSUPPORTED_THREAD if is_thread else ""
    return Failure(kind, message_of(str(error)), code=code, param=word_of(error.path))


REPLY_LIMIT: Final = "answer_limit"
"""The code of a failure: the reply is larger, deeper or longer than toolglot reads."""


def from_reply_limit(error: LimitError) -> Failure:
    """The failure of a reply that exceeds a limit. It is the provider's: the client could not have made it smaller."""
    named = next((name for name in ("max_bytes", "max_nodes", "max_depth") if name in error.message), "")
    setting = f" (Limits.{named}{', max_answer_bytes of the gateway' if named == 'max_bytes' else ''})" if named else ""
    return Failure("server", f"the provider's reply exceeds a limit: {error.message}{setting}", code=REPLY_LIMIT)


# --- to a client ------------------------------------------------------------------------------------


def _original(shape: ErrorShape, failure: Failure) -> Fields | None:
    """The document that a failure was read from, if it is of this protocol and still matches the failure."""
    original = (failure.extra or {}).get(shape.protocol)
    return (
        original
        if original is not None and failure.status is not None and _still_matches(shape, original, failure)
        else None
    )


def _still_matches(shape: ErrorShape, original: Fields, failure: Failure) -> bool:
    """Whether the document that a failure was read from still matches it."""
    status = failure.status or 0
    found = _parse_error(_in_band(shape, original), original, "")
    codes = (failure.code, *found.codes) if failure.code else found.codes
    message = found.message or _default_message(status, codes)
    return message == failure.message and kind_of(_clearest_status(status, found), codes, message) == failure.kind


def _full_message(spelling: ErrorSpelling, failure: Failure) -> str:
    """The message, with the words in front that clients look for, if it lacks them."""
    text = message_of(failure.message) or PHRASES[failure.kind]
    reply = reply_counts_of(text) if spelling.reply_counted else None
    if reply is not None:
        counted = spelling.reply_counted.format(**reply._asdict())
        return message_of(text if counted.lower() in text.lower() else f"{counted} ({text})")
    counts = counts_of(text) if spelling.counted else None
    if counts is not None:
        counted = spelling.counted.format(tokens=counts.tokens, window=counts.window)
        text = text if counted.lower() in text.lower() else f"{counted} ({text})"
    if spelling.phrase and spelling.phrase.lower() not in text.lower():
        text = f"{spelling.phrase}: {text}"
    if kind_of(spelling.status, (spelling.code, spelling.type), message_of(text)) != failure.kind:
        text = f"{spelling.phrase or PHRASES[failure.kind]}: {text}"
    return message_of(text)

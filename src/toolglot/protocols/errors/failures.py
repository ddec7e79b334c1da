"""Errors of all protocols: from a status and a body to a `Failure`, and back into any client's own shape.

    failure = openai_chat.errors.decode(429, body, headers)
    status, body = anthropic.errors.encode(failure)

A protocol's `errors.py` is a `ErrorShape` and its three methods: where an error can stand inside an answer, which
status and words each kind of failure has, and how they are written. The rest is here, once.

Laws: decoding never raises. At home a JSON object comes back equal, but for masked secrets, unless the failure was
changed since. Abroad its kind, its message and the time to wait come through.
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
    kept,
    message_of,
    message_of_page,
    read_document,
    read_error,
    word_of,
)
from toolglot.protocols.errors.kinds import PHRASES, kind_of
from toolglot.protocols.errors.known_messages import recognise
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.stored_history import UNSUPPORTED_THREAD

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
MAX_HEADERS: Final = 200
REQUEST_IDS: Final = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-debug-trace-id")
ERROR_TYPE: Final = "x-amzn-errortype"


class ProviderError(ToolglotError):
    """A provider answered with an error instead of a reply; `failure` says which."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return cut(f"{self.failure.kind}: {self.failure.message}")


class ErrorSpelling(Struct, frozen=True):
    """How a protocol says one kind of failure."""

    status: int
    type: str = ""
    code: str = ""
    said: str = ""
    """Words that the protocol's clients look for in the message."""


class ErrorShape(Struct, frozen=True):
    """What one protocol has of its own."""

    protocol: str
    in_band: Callable[[Fields], object]
    """The error inside an answer of status 200; None if there is none."""
    write: Callable[[Failure, ErrorSpelling, str], Fields]
    spellings: dict[FailureKind, ErrorSpelling]
    request_id: str = "x-request-id"
    """The header that names the request."""
    names_exception: bool = False
    """A header names the exception that the client is to raise."""

    def decode(
        self,
        status: int,
        body: bytes | Fields | str | None,
        headers: Mapping[str, str] = NO_HEADERS,
        *,
        target: str = "",
    ) -> Failure | None:
        """The failure that an answer is; None if it is none. The target says whose rules are looked at first."""
        if 200 <= status <= 299 and type(body) is dict and self.in_band(body) is None:
            return None  # as nearly all answers
        return _decode(self, status, body, _plain(headers), target)

    def encode(self, failure: Failure) -> tuple[int, dict[str, Any]]:
        """A failure as the status and the body that a client of the protocol understands."""
        home = _home(self, failure)
        if home is not None:
            return failure.status or 0, home
        spelling = self.spellings[failure.kind]
        return spelling.status, self.write(failure, spelling, _worded(spelling, failure))

    def headers_of(self, failure: Failure) -> dict[str, str]:
        """The headers that go with an encoded failure: when to come back, which request, which exception."""
        headers = {}
        if self.names_exception:
            spelled = self.spellings[failure.kind].type
            headers[ERROR_TYPE] = spelled if _home(self, failure) is None else failure.code or spelled
        if failure.retry_after is not None and 0 <= failure.retry_after <= retry_after.LONGEST:
            headers["retry-after"] = str(math.ceil(failure.retry_after))
            headers["retry-after-ms"] = str(round(failure.retry_after * 1000))
        if not failure.retryable:
            # The SDKs of OpenAI and Anthropic obey it; otherwise they repeat every 429, the unpaid ones too.
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
    home = kept(document) if document is not None else None
    if home is not None:
        document, error = home, _in_band(shape, home)
    found = _found(error, document, text)
    return _failure(shape, status, found, headers, target=target, home=home, in_band=succeeded)


def _in_band(shape: ErrorShape, document: object) -> object:
    single = document[0] if isinstance(document, list) and document else document
    return shape.in_band(single) if isinstance(single, dict) else None


def _found(error: object, document: object, text: str) -> ParsedError:
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
    home: object,
    in_band: bool,
) -> Failure:
    codes = found.codes
    if ERROR_TYPE in headers:
        codes = (_exception(headers[ERROR_TYPE]), *codes)
    message = found.message or _unsaid(status, codes)
    kind = kind_of(_telling_status(status, found), codes, message)
    rules = recognise(" ".join((message, *codes)), target=target, protocol=shape.protocol)
    document = home[0] if isinstance(home, list) and home else home
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


def _telling_status(status: int, found: ParsedError) -> int:
    """The status that says most: the body's own, where the answer as a whole says that all is well."""
    return status if 400 <= status <= 599 or found.status is None else found.status


def _exception(value: str) -> str:
    """An AWS exception without namespace and address."""
    return word_of(value.split(":", 1)[0].rsplit("#", 1)[-1])


def _unsaid(status: int, codes: tuple[str, ...]) -> str:
    return f"status {status}: {codes[0]}" if codes else f"status {status}, and no reason given"


def _wait(kind: FailureKind, found: ParsedError, headers: Mapping[str, str], message: str) -> float | None:
    """The time to wait: what is said to programs before what is said to people."""
    said = retry_after.from_headers(headers)
    if said is None:
        said = found.retry_after
    if said is None and Failure(kind).retryable:
        said = retry_after.from_text(message)
        if said is None and kind == "rate_limit":
            said = retry_after.from_limits(headers)
    return said


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in lower case."""
    plain: dict[str, str] = {}
    if not headers:
        return plain
    for _, (name, value) in zip(range(MAX_HEADERS), headers.items(), strict=False):
        if isinstance(name, str) and isinstance(value, str):
            plain[name.lower()] = value
    return plain


def from_input_error(error: InputError) -> Failure:
    """A mistake in what a client sent, found before any provider saw it."""
    kind: FailureKind = "too_large" if isinstance(error, LimitError) else "bad_request"
    if isinstance(error, ProfileError):
        kind = "server"  # a mistake in the configuration is not the client's
    is_thread = isinstance(error, StoredHistoryError) and error.path == "$.thread"
    code = UNSUPPORTED_THREAD if is_thread else ""
    return Failure(kind, message_of(str(error)), code=code, param=word_of(error.path))


ANSWER_LIMIT: Final = "answer_limit"
"""The code of a failure that is an answer larger, deeper or longer than toolglot reads."""


def from_answer_limit(error: LimitError) -> Failure:
    """An answer that breaks a limit: its provider's failure. Whoever asked could not have made it smaller."""
    named = next((name for name in ("max_bytes", "max_nodes", "max_depth") if name in error.message), "")
    setting = f" (Limits.{named}{', max_answer_bytes of the gateway' if named == 'max_bytes' else ''})" if named else ""
    return Failure("server", f"the provider's answer breaks a limit: {error.message}{setting}", code=ANSWER_LIMIT)


# --- to a client ------------------------------------------------------------------------------------


def _home(shape: ErrorShape, failure: Failure) -> Fields | None:
    """The document that a failure was read from, if that was in this protocol and still says the same."""
    home = (failure.extra or {}).get(shape.protocol)
    return home if home is not None and failure.status is not None and _still_says(shape, home, failure) else None


def _still_says(shape: ErrorShape, home: Fields, failure: Failure) -> bool:
    """Whether the document that a failure was read from says what the failure says now."""
    status = failure.status or 0
    found = _found(_in_band(shape, home), home, "")
    codes = (failure.code, *found.codes) if failure.code else found.codes
    message = found.message or _unsaid(status, codes)
    return message == failure.message and kind_of(_telling_status(status, found), codes, message) == failure.kind


def _worded(spelling: ErrorSpelling, failure: Failure) -> str:
    """The message, with the words that make it understood in front where they are missing."""
    text = message_of(failure.message) or PHRASES[failure.kind]
    if spelling.said and spelling.said.lower() not in text.lower():
        text = f"{spelling.said}: {text}"
    if kind_of(spelling.status, (spelling.code, spelling.type), message_of(text)) != failure.kind:
        text = f"{spelling.said or PHRASES[failure.kind]}: {text}"
    return message_of(text)

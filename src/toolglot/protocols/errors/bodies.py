"""Reads error bodies, in any of the many shapes that servers use.

Providers, the servers that imitate them and the proxies in between mix their shapes: a Chat endpoint may send FastAPI's
`detail`, AWS's `message` or a page of HTML. So every protocol reads all of them here, and its own file only says where
a reply of status 200 can hold an error.

Law: nothing is refused and nothing raises. Untrusted text comes out short, printable and without secrets.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from toolglot.errors import InputError
from toolglot.jsontext import clone, fix_surrogates, parse
from toolglot.limits import Limits
from toolglot.masking import mask
from toolglot.protocols.errors.retry_after import from_fields
from toolglot.protocols.fields.reading import Fields

MESSAGE_CHARACTERS: Final = 2_000
PAGE_CHARACTERS: Final = 300
"""The maximum length of a message that comes from an HTML page."""
WORD_CHARACTERS: Final = 200
"""The maximum length of a code, field name or request id."""
MAX_CHARACTERS: Final = 1024 * 1024
"""Characters of a body that are read. A longer one is not an error message."""
BODY_LIMITS: Final = Limits(max_bytes=256 * 1024, max_depth=64, max_nodes=20_000)
"""A larger error is read in part, and not kept."""

_MAX_SCANNED: Final = 4 * MESSAGE_CHARACTERS
_LEVELS: Final = 4
_ITEMS: Final = 5
"""Entries of a list of errors that are read."""

_MESSAGES: Final = (
    *("message", "msg", "Message", "status_msg", "error_description", "detail", "error", "errors", "originalMessage"),
    *("description", "title"),
)
_CODES: Final = ("error_code", "code", "__type", "error_type", "type", "status", "reason", "blockReason", "status_code")
_SHAPE_WORDS: Final = frozenset({"error", "failed", "message", "about:blank", "fail", "response.failed"})
"""Values of `type` and `status` that mark an error without naming it."""
_IDS: Final = ("request_id", "requestId", "RequestId")

_MARKUP: Final = re.compile(r"<(?:!doctype|html|head|body|title|h1|p|div|pre)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^<>]{0,200}>([^<]{1,400})", re.IGNORECASE)
_UNSEEN: Final = re.compile(r"<(script|style)\b.*?(?:</\1>?|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAG: Final = re.compile(r"<[^<>]*>?")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\s]+")
_CUT_MESSAGE: Final = re.compile(r'"(?:message|msg|error|detail)"\s{0,20}:\s{0,20}"((?:[^"\\]|\\.){1,4000})')
_EVENT_DATA: Final = re.compile(r"^data:[ ]{0,4}(\{.*)$", re.MULTILINE)


class ParsedError(Struct, frozen=True):
    """The contents of an error object."""

    message: str = ""
    codes: tuple[str, ...] = ()
    """The most specific first."""
    status: int | None = None
    """An HTTP status that the body itself names."""
    param: str = ""
    request_id: str = ""
    retry_after: float | None = None


# --- from bytes to a document -----------------------------------------------------------------------


def read_document(body: object) -> tuple[object, str]:
    """The JSON value of a body (None if it is not JSON), and its text if it came as bytes or a string."""
    if not isinstance(body, bytes | bytearray | str):
        return body, ""
    text = body[:MAX_CHARACTERS] if isinstance(body, str) else bytes(body[:MAX_CHARACTERS]).decode(errors="replace")
    inner = text.lstrip("\ufeff \t\r\n")
    if inner.startswith(("data:", "event:", ":")):
        data = _EVENT_DATA.search(inner)
        inner = data[1] if data else inner
    return parse_object(inner), text


def parse_object(text: str, limits: Limits | None = None) -> object:
    """The object or array of a JSON string; None for any other string."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return parse(text, limits=limits or Limits()).value
    except InputError:
        return None


def mask_document(document: object) -> object:
    """The document without secrets, for clients of the same protocol; None if it is too large to keep."""
    try:
        return clone(document, limits=BODY_LIMITS, text=_without_secrets).value
    except InputError:
        return None


def _without_secrets(text: str) -> str:
    return mask(fix_surrogates(text))


# --- from text to a message -------------------------------------------------------------------------


def message_of(text: str, max_length: int = MESSAGE_CHARACTERS) -> str:
    """The text on one line, printable, without tags and secrets, of bounded length."""
    short = fix_surrogates(text[:_MAX_SCANNED])
    if _MARKUP.search(short):
        short, max_length = _without_tags(short), min(max_length, PAGE_CHARACTERS)
    line = _UNPRINTABLE.sub(" ", mask(short)).strip()
    return line if len(line) <= max_length else f"{line[: max_length - 1].rstrip()}…"


def word_of(value: object) -> str:
    """A code, a field name or an id as a short string; empty if it is none."""
    if type(value) is int:
        return str(value) if abs(value) < 10**18 else ""
    return message_of(value, WORD_CHARACTERS) if isinstance(value, str) else ""


def message_of_page(text: str) -> str:
    """The message of a body that is not JSON, or is cut-off JSON."""
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        found = _CUT_MESSAGE.search(text[:_MAX_SCANNED])
        if found:
            value = parse_object(f'["{found[1]}"]', BODY_LIMITS)
            return message_of(value[0] if isinstance(value, list) else found[1])
    return message_of(text, PAGE_CHARACTERS)


def _without_tags(page: str) -> str:
    title = _TITLE.search(page)
    text = title[1] if title and title[1].strip() else _TAG.sub(" ", _UNSEEN.sub(" ", page))
    return html.unescape(text)


# --- from a document to an error --------------------------------------------------------------------


def own_error(body: Fields) -> object:
    """The field `error` of a body; the whole body if that is a string, since other fields may explain it."""
    inner = body.get("error")
    return (inner if isinstance(inner, dict) else body) if inner else None


def error_in(document: object) -> object:
    """The part of a document that holds the error, in the shapes that all servers share."""
    if isinstance(document, list):
        return error_in(document[0]) if document and not isinstance(document[0], list) else None
    if isinstance(document, dict):
        return own_error(document) or document
    return document


def read_error(error: object, document: object) -> ParsedError:
    """Read an error object. The document around it may name the request."""
    outer = document[0] if isinstance(document, list) and document else document
    around = outer if isinstance(outer, dict) else {}
    if not isinstance(error, dict):
        return ParsedError(message_of(_message_text(error)), request_id=_first(around, _IDS))
    upstream = _upstream(error)
    message = message_of(
        ": ".join(part for part in (_message_text(error), upstream.message if upstream else "") if part)
    )
    parts = [error, *_details(error)]
    return ParsedError(
        message,
        tuple(dict.fromkeys((*_codes(parts), *(upstream.codes if upstream else ())))),
        _status(error),
        next((found for found in map(_param, parts) if found), ""),
        _first(around, _IDS) or _first(error, _IDS),
        next((wait for wait in map(from_fields, [*parts, around]) if wait is not None), None),
    )


def _message_text(value: object, level: int = 0) -> str:
    """The text of a message: a string, or the strings of the object or list that a server sent instead."""
    if isinstance(value, str):
        return value
    if level >= _LEVELS:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_message_text(item, level + 1) for item in value[:_ITEMS])))
    if not isinstance(value, dict):
        return ""
    text = next(filter(None, (_message_text(value.get(key), level + 1) for key in _MESSAGES)), "")
    location = _location(value)
    return f"{location}: {text}" if location and text else text


def _location(fields: Fields) -> str:
    """Where a validator found a mistake."""
    steps = fields.get("loc")
    return ".".join(word_of(step) for step in steps[:16]) if isinstance(steps, list) else ""


def _details(error: Fields) -> list[Fields]:
    """The objects with details of a message: Google's list, Anthropic's object, Azure's inner error."""
    found: list[object] = [error.get("innererror"), error.get("metadata")]
    for key in ("details", "detail"):
        value = error.get(key)
        found += value[:_ITEMS] if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, dict)]


def _codes(parts: list[Fields]) -> Iterator[str]:
    """Codes of the details first: they are more specific. Numbers last: they repeat the status."""
    words = [part.get(key) for part in (*parts[1:], parts[0]) for key in _CODES]
    named = [word_of(word) for word in words if isinstance(word, str) and word.lower() not in _SHAPE_WORDS]
    yield from filter(None, named)
    yield from filter(None, (word_of(word) for word in words if type(word) is int))


def _status(error: Fields) -> int | None:
    for key in ("code", "status", "status_code", "http_code", "statusCode"):
        value = error.get(key)
        if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
            value = int(value)
        if type(value) is int and 400 <= value <= 599:
            return value
    return None


def _param(fields: Fields) -> str:
    violations = fields.get("fieldViolations")
    first: Any = violations[0] if isinstance(violations, list) and violations else None
    if isinstance(first, dict):
        return word_of(first.get("field"))
    return word_of(fields.get("param")) or _location(fields)


def _upstream(error: Fields) -> ParsedError | None:
    """The error of a router's provider, which the router passes on as a string (`metadata.raw` of OpenRouter)."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    document = parse_object(raw, BODY_LIMITS) if isinstance(raw, str) else raw
    if isinstance(document, dict):
        inner = error_in(document)
        plain = {key: value for key, value in inner.items() if key != "metadata"} if isinstance(inner, dict) else inner
        return read_error(plain, document)
    return ParsedError(message_of(raw, PAGE_CHARACTERS)) if isinstance(raw, str) else None


def _first(fields: Fields, keys: tuple[str, ...]) -> str:
    return next((found for found in (word_of(fields.get(key)) for key in keys) if found), "")

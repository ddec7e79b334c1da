"""The events of the Responses protocol over a WebSocket: what a client sends, and the errors that it gets.

    {"type": "response.create", "stream_id": "main", …}     the body of POST /v1/responses, without `stream`
    {"type": "error", "status": 400, "stream_id": "main", "error": {"type": …, "code": …, "message": …, "param": …}}

`stream_id` names a *lane*: the responses of one lane come one after the other, those of different lanes at once.
Names, codes and texts are those of OpenAI's documentation.

Law: pure. The values of a request stay the bytes that the client wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from toolglot.gateway.endpoints.body_fields import join_fields
from toolglot.gateway.endpoints.steering import SteerEvent, read_steer
from toolglot.gateway.state.response_items import is_bare_reasoning
from toolglot.gateway.state.socket_memory import RememberedResponse

MAX_STREAM_IDS: Final = 32
DEFAULT_LANE: Final = ""
_STREAM_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
_OWN_FIELDS: Final = frozenset({"type", "stream_id", "generate", "stream", "background", "previous_response_id"})
"""Fields of the event that are not passed on as they are."""
_IGNORED: Final = frozenset({"response.processed"})
"""Events that need no answer: older versions of Codex confirm what they have read."""

Fields = dict[str, Raw]

_read_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_read_items: Final = msgspec.json.Decoder(list[Raw]).decode
_read_value: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


class SocketError(Exception):
    """The answer to an event that cannot be served."""

    def __init__(self, message: str, code: str = "", param: str | None = None, *, lane: str = "", status: int = 400):
        super().__init__(message)
        self.event: bytes = error_event(
            status, {"type": "invalid_request_error", "code": code or None, "message": message, "param": param}, lane
        )


class CreateEvent(Struct, frozen=True):
    """`response.create`."""

    lane: str
    fields: Fields
    """As the client wrote them."""
    previous: str
    """The response that it continues; empty: none."""
    is_warm_up: bool
    size: int
    steers: tuple[SteerEvent, ...] = ()
    """What was steered into it."""

    @property
    def has_conversation(self) -> bool:
        return _value(self.fields.get("conversation")) is not None

    @property
    def wants_stored(self) -> bool:
        return _value(self.fields.get("store")) is not False

    @property
    def items(self) -> bytes:
        """Its input as items, separated by commas."""
        return items_text(self.fields.get("input"))

    def body(self, continued: RememberedResponse | None) -> bytes:
        """The body of the request that it is. What it continues, if that is remembered, is a part of the input."""
        values = {name: bytes(value) for name, value in self.fields.items() if name not in _OWN_FIELDS}
        previous = self.previous
        if continued is not None:
            previous = continued.stored_before
            values["input"] = b"[%b]" % b",".join([*continued.pieces, *filter(None, [self.items])])
        if previous:
            values["previous_response_id"] = _encode(previous)
        values["stream"] = b"true"
        return join_fields(values)


def read_event(data: bytes) -> CreateEvent | SteerEvent | None:
    """The event of a message; None: it needs no answer."""
    try:
        fields = _read_fields(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SocketError(f"the message is not a JSON object: {error}", "invalid_json") from None
    kind = _value(fields.get("type"))
    if kind == "response.steer":
        return read_steer(fields)
    lane = _lane(fields.get("stream_id"))
    if type(kind) is str and kind in _IGNORED:
        return None
    if kind != "response.create":
        shown = repr(kind)[:100] if kind is not None else "none"
        raise SocketError(f"unknown type of event: {shown}; send response.create", "unknown_event", "type", lane=lane)
    if _value(fields.get("background")) is True:
        message = "background responses are not supported over WebSocket: send POST /v1/responses"
        raise SocketError(message, "unsupported_parameter", "background", lane=lane)
    previous = _value(fields.get("previous_response_id"))
    if previous is not None and type(previous) is not str:
        message = "previous_response_id is not a string"
        raise SocketError(message, "invalid_type", "previous_response_id", lane=lane)
    is_warm_up = _value(fields.get("generate")) is False
    return CreateEvent(lane, fields, previous or "", is_warm_up, len(data))


def _lane(value: Raw | None) -> str:
    if value is None:
        return DEFAULT_LANE
    name = _value(value)
    if name is None:
        return DEFAULT_LANE
    if type(name) is not str or not _STREAM_ID.fullmatch(name):
        message = (
            "The 'stream_id' field must be a non-empty string with at most 256 characters and may only contain letters,"
            " numbers, underscores, hyphens, and periods."
        )
        raise SocketError(message, "invalid_stream_id", "stream_id")
    return name


def too_many_lanes(lane: str) -> SocketError:
    message = (
        f"This WebSocket connection has reached its maximum number of distinct stream IDs ({MAX_STREAM_IDS}). Reuse an "
        "existing stream_id or open a new WebSocket connection."
    )
    return SocketError(message, "websocket_stream_limit_reached", "stream_id", lane=lane)


def too_old(minutes: float, lane: str = "") -> SocketError:
    message = (
        f"Responses websocket connection limit reached ({minutes:g} minutes). Create a new websocket connection to "
        "continue."
    )
    return SocketError(message, "websocket_connection_limit_reached", lane=lane)


# --- what the client gets ---------------------------------------------------------------------------


def error_event(status: int, error: Mapping[str, Any], lane: str, headers: Mapping[str, str] | None = None) -> bytes:
    """An error. Headers are in two places: OpenAI's SDK reads one, and Codex the other."""
    event: dict[str, Any] = {"type": "error", "status": status}
    if lane:
        event["stream_id"] = lane
    if headers:
        error, event["headers"] = {**error, "headers": headers}, headers
    event["error"] = error
    return _encode(event)


def with_lane(event: bytes, lane: str) -> bytes:
    """An event of a stream as an event of a lane."""
    if not lane or len(event) < len(b"{}"):
        return event
    return b'{"stream_id":%b,%b' % (_encode(lane), event[1:])


class FinalResponse(Struct, frozen=True):
    """The response at the end of a stream."""

    id: str
    status: str
    is_stored: bool
    items: bytes
    """Its output, separated by commas."""


def final_response(event: bytes) -> FinalResponse | None:
    """The response of the last event of a stream; None: it is not one."""
    try:
        response = _read_fields(_read_fields(event)["response"])
    except (msgspec.DecodeError, KeyError, RecursionError):
        return None
    id, status = _value(response.get("id")), _value(response.get("status"))
    if type(id) is not str or type(status) is not str:
        return None
    is_stored = _value(response.get("store")) is not False
    return FinalResponse(id, status, is_stored, items_text(response.get("output")))


class _Typed(Struct):
    type: str = ""


_read_type: Final = msgspec.json.Decoder(_Typed).decode


def type_of(event: bytes) -> str:
    """The type of an event; empty: it has none."""
    try:
        return _read_type(event).type
    except (msgspec.DecodeError, RecursionError):
        return ""


def item_of(event: bytes) -> bytes:
    """The item that an event shows, as a list of items; empty: none."""
    try:
        return items_text(Raw(b"[%b]" % bytes(_read_fields(event)["item"])))
    except (msgspec.DecodeError, KeyError, RecursionError):
        return b""


def items_text(value: Raw | None) -> bytes:
    """Items, separated by commas. Reasoning that has only an id is left out: no provider can look it up by that."""
    if value is None:
        return b""
    text = bytes(value).strip()
    if text[:1] == b'"':
        return b'{"type":"message","role":"user","content":%b}' % text
    if text[:1] != b"[":
        return b"" if text == b"null" else text  # which is refused as what it is
    if b'"reasoning"' not in text:
        return text[1:-1].strip()
    return b",".join([bytes(item) for item in _read_items(text) if not _is_bare(item)])


def _is_bare(item: Raw) -> bool:
    return b'"reasoning"' in bytes(item) and is_bare_reasoning(_read_value(item))


def _value(value: Raw | None) -> Any:
    """A value of a field; None: it has none, or one that is too deep to be read."""
    if value is None:
        return None
    try:
        return _read_value(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def successor(event: CreateEvent, previous: str, steers: Sequence[SteerEvent]) -> CreateEvent:
    """The same settings for a response that continues another with what was steered into it."""
    items = [steer.items for steer in steers]
    fields = {**event.fields, "input": Raw(b"[%b]" % b",".join(items))}
    size = sum(map(len, items))
    return replace(event, fields=fields, previous=previous, is_warm_up=False, size=size, steers=tuple(steers))


def with_steers(event: CreateEvent, steers: Sequence[SteerEvent]) -> CreateEvent:
    """A request with what was steered into the response that it continues, before its own input."""
    items = b",".join([*(steer.items for steer in steers), *filter(None, [event.items])])
    fields = {**event.fields, "input": Raw(b"[%b]" % items)}
    return replace(event, fields=fields, steers=tuple(steers))

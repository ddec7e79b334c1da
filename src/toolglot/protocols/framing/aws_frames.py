"""Frames of the AWS event stream: binary messages with headers, a payload and two checksums.

    length of all (4)  length of headers (4)  CRC32 of these (4)  headers  payload  CRC32 of all before (4)

Law: however the bytes are cut, the frames are the same, and each byte is copied a bounded number of times. At most one
message is kept, and its size is bounded. Bytes that are not an event stream end it with an `InputError`, after all
frames before them were returned.
"""

from __future__ import annotations

import functools
import struct
import uuid
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toolglot.errors import InputError, LimitError
from toolglot.protocols.framing.text_frames import MAX_FRAME_BYTES, Frame

EXCEPTION: Final = "!"
"""The first character of the name of a frame that ends the stream with an error: `!throttlingException`."""

MAX_HEADER_BYTES: Final = 128 * 1024
_MAX_CACHED_HEADERS: Final = 64
_AROUND: Final = 16
"""Bytes of a message without headers and payload."""

_PRELUDE: Final = struct.Struct(">II")
_CHECKED_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_NUMBERS: Final = {2: struct.Struct(">b"), 3: struct.Struct(">h"), 4: struct.Struct(">i"), 5: struct.Struct(">q")}
_TIMESTAMP: Final = 8
"""Milliseconds since 1970, as a number of eight bytes."""
_BYTES: Final = 6
_STRING: Final = 7
_UUID: Final = 9

HeaderValue = bool | int | bytes | str | uuid.UUID


class AwsFramer:
    """Makes frames of messages. The name of a frame is the type of its event, or of its exception."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._needed = 0
        """The length of the message that the rest begins with; 0 while that is not known."""
        self._headers = 0
        """The length of its headers."""
        self._error: InputError | None = None
        self._names: dict[bytes, tuple[str, str]] = {}

    def feed(self, data: bytes) -> list[Frame]:
        if self._error is not None:
            raise _copy_error(self._error)
        self._rest += data
        frames: list[Frame] = []
        try:
            while (message := self._next()) is not None:
                frames.append(self._frame(message))
        except InputError as error:
            self._error = _copy_error(error)
            if not frames:
                raise
        return frames

    def finish(self) -> list[Frame]:
        """No frames: an incomplete message is ignored."""
        if self._error is not None:
            raise _copy_error(self._error)
        return []

    def _next(self) -> bytes | None:
        """The next message, if it is complete."""
        if not self._needed:
            if len(self._rest) < _CHECKED_PRELUDE.size:
                return None
            self._needed = self._length()
        if len(self._rest) < self._needed:
            return None
        message = bytes(self._rest[: self._needed])
        del self._rest[: self._needed]
        self._needed = 0
        return message

    def _length(self) -> int:
        length, headers, expected_crc = _CHECKED_PRELUDE.unpack_from(self._rest)
        if zlib.crc32(self._rest[:8]) != expected_crc:
            raise InputError("this is not an AWS event stream: the CRC of a message's lengths is wrong", path="")
        if length < _AROUND or headers > length - _AROUND:
            raise InputError("the lengths in a message of the AWS event stream make no sense", path="")
        if length > self._max_bytes or headers > MAX_HEADER_BYTES:
            raise LimitError(
                f"a message of the AWS event stream is longer than the limit of {self._max_bytes} bytes, "
                f"or its headers are longer than {MAX_HEADER_BYTES}",
                path="",
                hint="raise the limit",
            )
        self._headers = headers
        return int(length)

    def _frame(self, message: bytes) -> Frame:
        if zlib.crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
            raise InputError("the CRC of a message of the AWS event stream is wrong", path="")
        end = _CHECKED_PRELUDE.size + self._headers
        headers = message[_CHECKED_PRELUDE.size : end]
        known = self._names.get(headers)
        if known is None:
            known = _frame_name(read_headers(headers))
            if len(self._names) < _MAX_CACHED_HEADERS:
                self._names[headers] = known
        name, message_without_payload = known
        payload = message[end:-4]
        if not payload and name.startswith(EXCEPTION):
            payload = msgspec.json.encode({"message": message_without_payload})
        return Frame(payload, name, message)


def _copy_error(error: InputError) -> InputError:
    """The same error without its traceback, which would keep the frames of the call alive."""
    return type(error)(error.message, path=error.path, hint=error.hint)


def _frame_name(headers: Mapping[str, HeaderValue]) -> tuple[str, str]:
    """The name of a frame, and the message of an error without a payload."""

    def text(name: str) -> str:
        value = headers.get(name, "")
        return value if isinstance(value, str) else ""

    kind = text(":message-type")
    if kind == "exception":
        return EXCEPTION + text(":exception-type"), text(":exception-type")
    if kind == "error":
        return EXCEPTION + text(":error-code"), text(":error-message")
    return text(":event-type"), ""


# --- headers ----------------------------------------------------------------------------------------


def read_headers(data: bytes) -> dict[str, HeaderValue]:
    """The headers of a message: a name, a type and a value each. Of one that comes twice, the first counts."""
    headers: dict[str, HeaderValue] = {}
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            name = data[at + 1 : name_end].decode("utf-8", "replace")
            value, at = _read_value(data, data[name_end], name_end + 1)
            headers.setdefault(name, value)
    except (IndexError, struct.error):
        at = len(data) + 1
    if at != len(data):
        raise InputError("a message of the AWS event stream ends inside its headers", path="")
    return headers


def _read_value(data: bytes, kind: int, at: int) -> tuple[HeaderValue, int]:
    """A value of this type at this position, and where it ends."""
    if kind <= 1:
        return kind == 0, at
    if kind in _NUMBERS or kind == _TIMESTAMP:
        number = _NUMBERS[5 if kind == _TIMESTAMP else kind]
        return number.unpack_from(data, at)[0], at + number.size
    if kind == _UUID:
        if at + 16 > len(data):
            raise IndexError
        return uuid.UUID(bytes=data[at : at + 16]), at + 16
    if kind not in (_BYTES, _STRING):
        raise InputError(f"a header of the AWS event stream has the unknown type {kind}", path="")
    start = at + 2
    end = start + int.from_bytes(data[at:start], "big")
    if end > len(data) or start > len(data):
        raise IndexError
    value = data[start:end]
    return (value.decode("utf-8", "replace") if kind == _STRING else value), end


# --- writing ----------------------------------------------------------------------------------------


def text_headers(headers: Mapping[str, str]) -> bytes:
    """Headers whose values are all strings."""
    event_message = bytearray()
    for name, value in headers.items():
        key, text = name.encode(), value.encode()
        event_message += b"%c%b%c%b%b" % (len(key), key, _STRING, len(text).to_bytes(2, "big"), text)
    return bytes(event_message)


@functools.lru_cache(maxsize=1024)
def _message_start(headers: bytes, payload: int) -> tuple[bytes, int]:
    """A message up to its payload, and its checksum up to there: the same for all payloads of a length."""
    lengths = _PRELUDE.pack(_AROUND + len(headers) + payload, len(headers))
    start = lengths + _CRC.pack(zlib.crc32(lengths)) + headers
    return start, zlib.crc32(start)


def message(headers: bytes, payload: bytes) -> bytes:
    """One message, with headers that are encoded already."""
    start, checksum = _message_start(headers, len(payload))
    return b"".join((start, payload, zlib.crc32(payload, checksum).to_bytes(4, "big")))


def event_headers(kind: str, *, is_exception: bool = False) -> bytes:
    """The headers of an event of this type, or of an exception."""
    what = "exception" if is_exception else "event"
    return text_headers({f":{what}-type": kind, ":content-type": "application/json", ":message-type": what})


def event_message(kind: str, fields: Mapping[str, Any], *, is_exception: bool = False) -> bytes:
    """A whole message of an event."""
    return message(event_headers(kind, is_exception=is_exception), msgspec.json.encode(fields))

"""Splits bytes that come in arbitrary pieces into events: server-sent events, and JSON lines.

Law: however the bytes are cut, the frames are the same, and each byte is read a bounded number of times. At most one
frame is kept, and its size is bounded: one that is too long is a `LimitError`, which is raised after all frames before
it were returned.

Server-sent events are read as the standard says (CR, LF or CRLF, with or without a space after the colon, data over
several lines, comments, a byte order mark), with two exceptions. An event at the end counts without the empty line
after it, since many servers leave that out. And a line `error: …`, which the standard does not know and llama.cpp and
similar servers write when they fail, is an event of that name. The raw bytes of all frames are the bytes that came,
except for the mark and for the missing end of such a last event: blank lines are frames too, without data.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from toolglot.errors import LimitError

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""The largest frame: an event can hold a whole response with images."""

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n?|\n")
_EVENT_END: Final = re.compile(rb"(?:\r\n|\r(?!\n)|\n)(?:\r\n|\r|\n)")


class Frame(Struct, frozen=True, gc=False):
    """One event of a stream, as it came."""

    data: bytes
    """Empty for a frame that only keeps the connection alive."""
    name: str = ""
    """The type of an event, where the framing has one."""
    raw: bytes = b""
    """All of its bytes, with those that end it."""


class Framer(Protocol):
    """Splits bytes into frames."""

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now."""
        ...

    def finish(self) -> list[Frame]:
        """The frame that the end of the bytes completes."""
        ...


class _PartialFrame:
    """The bytes of an incomplete frame, in pieces, so that a long one is not copied again and again."""

    __slots__ = ("_pieces", "_size", "error", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self.error: LimitError | None = None

    def keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.max_bytes:
            raise self.too_long()
        self._pieces.append(piece)

    def too_long(self) -> LimitError:
        return LimitError(
            f"an event of the stream is longer than the limit of {self.max_bytes} bytes", hint="raise the limit"
        )

    def take_frames(self, frames: list[Frame], rest: bytes) -> list[Frame]:
        """The frames before the first that is too long; keeps the rest. The error is raised by the next call, if there
        are frames to return first."""
        for number, frame in enumerate(frames):
            if len(frame.raw) > self.max_bytes:
                frames, self.error = frames[:number], self.too_long()
                break
        else:
            try:
                if rest:
                    self.keep(rest)
            except LimitError as error:
                self.error = error
        if self.error is not None and not frames:
            raise self.error
        return frames

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    @property
    def has_bytes(self) -> bool:
        return bool(self._pieces)

    @property
    def last_byte(self) -> bytes:
        """The last byte."""
        return self._pieces[-1][-1:] if self._pieces else b""

    def join(self, piece: bytes) -> bytes:
        """All bytes with this piece. Nothing is kept after that."""
        if not self._pieces:
            return piece
        self._pieces.append(piece)
        whole = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return whole


class SseFramer:
    """Frames of server-sent events."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._partial = _PartialFrame(max_bytes)
        self._is_first = True
        self._has_cr = False
        """Whether the stream has a CR: lines may end in other ways than LF."""
        self._cr = b""
        """A CR at the end of the bytes. It may be half of a line end, so it waits for the next byte."""
        self._is_at_frame_start = False
        """Whether the next byte begins an event."""
        self.had_byte_order_mark: bool = False
        """Whether the stream began with a byte order mark."""

    def feed(self, data: bytes) -> list[Frame]:
        # A single event of one line, which is common when a model is slow.
        if self._is_at_frame_start and data[:6] == b"data: " and data[-2:] == b"\n\n":
            payload = data[6:-2]
            if 10 not in payload and 13 not in payload and len(data) <= self._partial.max_bytes:
                return [Frame(payload, "", data)]
        self._partial.check()
        frames = self._feed(data)
        self._is_at_frame_start = not (
            self._is_first or self._cr or self._partial.has_bytes or self._partial.error is not None
        )
        return frames

    def _feed(self, data: bytes) -> list[Frame]:
        if self._is_first:
            data = self._strip_byte_order_mark(data)
        if not data:
            return []
        if self._cr or b"\r" in data:
            data = self._cr + data
            self._has_cr = True
            self._cr = data[-1:] if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r")
            if not data:
                return []
        is_end_split = data[0] in b"\r\n" and self._partial.last_byte == b"\n"
        if self._has_cr:
            return self._split_any(data, is_end_split=is_end_split)
        if b"\n\n" not in data and not is_end_split:
            self._partial.keep(data)
            return []
        *events, rest = self._partial.join(data).split(b"\n\n")
        return self._partial.take_frames(
            [frame for event in events for frame in _sse_frames(event, event + b"\n\n")], rest
        )

    def _split_any(self, data: bytes, *, is_end_split: bool) -> list[Frame]:
        """The frames of bytes whose lines end in any way."""
        if not is_end_split and _EVENT_END.search(data) is None:
            self._partial.keep(data)
            return []
        return self._partial.take_frames(*_split(self._partial.join(data)))

    def finish(self) -> list[Frame]:
        self._partial.check()
        frames, rest = _split(self._partial.join(self._cr))
        self._cr = b""
        event = rest.strip(b"\r\n")
        if not rest or self._is_first:
            return frames
        if not event:
            return [*frames, Frame(b"", "", rest)]
        ended = _LINE_END.search(rest)
        line_end = ended[0] if ended is not None else b"\n"
        return [*frames, *_sse_frames(event, rest.rstrip(b"\r\n") + line_end + line_end)]

    def _strip_byte_order_mark(self, data: bytes) -> bytes:
        """The bytes without a byte order mark at their beginning, as soon as that is clear."""
        data = self._partial.join(data)
        if len(data) < len(_BOM) and _BOM.startswith(data):
            if data:
                self._partial.keep(data)
            return b""
        self._is_first = False
        self.had_byte_order_mark = data.startswith(_BOM)
        return data.removeprefix(_BOM)


def _split(data: bytes) -> tuple[list[Frame], bytes]:
    """The frames of bytes whose lines end in any way, and what is left."""
    frames: list[Frame] = []
    start = 0
    for end in _EVENT_END.finditer(data):
        frames += _sse_frames(data[start : end.start()], data[start : end.end()])
        start = end.end()
    return frames, data[start:]


def _sse_frames(event: bytes, raw: bytes) -> list[Frame]:
    """The frames of an event, without and with the bytes that end it.

    It is one frame, unless each of its lines is a JSON object of its own: then the server left out the empty lines.
    """
    if event.startswith(b"data: ") and b"\n" not in event and b"\r" not in event:
        return [Frame(event[6:], "", raw)]
    name, data = "", []
    error: bytes | None = None
    for line in _LINE_END.split(event) if b"\r" in event else event.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"error":
            error = value
    if error is not None:
        name, data = "error", [_error_event(error)]
    if len(data) > 1 and not name and all(map(_is_whole_line, data)):
        return [Frame(line, "", b"data: " + line + b"\n\n") for line in data]
    return [Frame(b"\n".join(data), name, raw)]


def _is_whole_line(line: bytes) -> bool:
    return (line[:1] == b"{" and line.rstrip()[-1:] == b"}") or line.strip() == b"[DONE]"


def _error_event(value: bytes) -> bytes:
    """An `error:` line as the error event that every protocol has."""
    try:
        parsed = msgspec.json.decode(value)
    except (ValueError, RecursionError):
        parsed = value.decode("utf-8", "replace")
    fields = parsed if isinstance(parsed, dict) else {"message": parsed if isinstance(parsed, str) else value.decode()}
    inner = fields.get("error", fields)
    inner = inner if isinstance(inner, dict) else {"message": str(inner)}
    return msgspec.json.encode({"type": "error", "error": {"type": "api_error", **inner}})


class LineFramer:
    """Frames of one line each, as in JSON lines."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES) -> None:
        self._partial = _PartialFrame(max_bytes)

    def feed(self, data: bytes) -> list[Frame]:
        self._partial.check()
        if b"\n" not in data:
            if data:
                self._partial.keep(data)
            return []
        *lines, rest = self._partial.join(data).split(b"\n")
        return self._partial.take_frames([frame for line in lines if (frame := _line_frame(line)) is not None], rest)

    def finish(self) -> list[Frame]:
        self._partial.check()
        frame = _line_frame(self._partial.join(b""))
        return [frame] if frame is not None else []


def _line_frame(line: bytes) -> Frame | None:
    data = line.strip()
    return Frame(data.removeprefix(_BOM), "", line + b"\n") if data else None

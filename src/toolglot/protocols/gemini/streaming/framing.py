"""The two forms of a Gemini stream: server-sent events, and one JSON array that grows, `[{…},\r\n{…}]`.

The first byte that is not white space decides. Each object of an array is a frame, as soon as it is complete. A single
object outside an array is one frame, since errors come like that.

Law: as in `framing/text_frames.py`: however the bytes are cut, the frames are the same, each byte is read a bounded
number of times, and what is kept is bounded.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.errors import LimitError
from toolglot.protocols.framing.text_frames import MAX_FRAME_BYTES, Frame, Framer, SseFramer

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
"""What may come before the first byte that decides: white space and a byte order mark."""

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_DATA_FIELD: Final = b"data:"
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")


class GeminiFramer:
    """Frames of whichever form the bytes have."""

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES, *, keeps_array: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keeps_array = keeps_array
        self._framer: Framer | None = None
        self.is_array = False
        """Whether the frames are pieces of an array, to be forwarded as such."""

    def feed(self, data: bytes) -> list[Frame]:
        if self._framer is not None:
            return self._framer.feed(data)
        begun = data.lstrip(_BLANK)
        if not begun:
            return []
        self.is_array = self._keeps_array and begun[:1] == b"["
        is_json = begun[:1] in b"[{"
        self._framer = (
            ArrayFramer(self._max_bytes, keeps_array=self.is_array) if is_json else SseFramer(self._max_bytes)
        )
        return self._framer.feed(begun)

    def finish(self) -> list[Frame]:
        return self._framer.finish() if self._framer is not None else []


class ArrayFramer:
    """Frames of the values of an array, or of one object.

    The `raw` bytes of a frame are those of a server-sent event, or, with `keeps_array`, all bytes since the last frame.
    Then the end of the array is a frame too, without data.
    """

    def __init__(self, max_bytes: int = MAX_FRAME_BYTES, *, keeps_array: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keeps_array = keeps_array
        self._pieces: list[bytes] = []
        """The bytes since the last frame."""
        self._size = 0
        self._start = -1
        """Where in them the value begins; -1 before it does."""
        self._depth = -1
        """The nesting inside the array; -1 before and after it."""
        self._in_string = False
        self._escaped = False
        self._is_begun = False
        self._has_followed = False
        """Whether something came after the end."""

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        position = taken = 0
        if not self._is_begun and data:
            self._is_begun = True
            self._depth = 0
            position = 1 if data[:1] == b"[" else 0
        while self._depth >= 0 and position < len(data):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(data, position)
            if found is None:
                break
            position = found.end()
            before = self._depth
            self._step(found[0])
            if before == 0 and self._depth == 1:
                self._start = self._size + position - 1 - taken
            elif before == 1 and self._depth == 0:
                frames.append(self._frame(data[taken:position]))
                taken = position
        if self._depth < 0:
            self._keep_end(data[taken:position], data[position:])
        elif self._depth > 0 or self._keeps_array:
            self._keep(data[taken:])
        else:
            self._drop()
        return frames

    def finish(self) -> list[Frame]:
        """An incomplete value is a frame too; its reader reports it."""
        if self._start >= 0:
            return [self._frame(b"")]
        end = b"".join(self._pieces)
        self._drop()
        return [Frame(b"", "", end)] if end and self._keeps_array else []

    def _step(self, mark: bytes) -> None:
        if mark == b"\\":
            self._escaped = True
        elif mark == b'"':
            self._in_string = not self._in_string
        else:
            self._depth += 1 if mark in b"{[" else -1

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max_bytes:
            raise LimitError(
                f"a part of the stream is longer than the limit of {self._max_bytes} bytes", hint="raise the limit"
            )
        self._pieces.append(piece)

    def _keep_end(self, end: bytes, rest: bytes) -> None:
        """Keep the end of the array and the white space after it. Anything else is left out."""
        if self._keeps_array and not self._has_followed:
            blanks = rest[: len(rest) - len(rest.lstrip())]
            self._has_followed = blanks != rest
            self._keep(end + blanks)

    def _drop(self) -> None:
        self._pieces.clear()
        self._size = 0
        self._start = -1

    def _frame(self, piece: bytes) -> Frame:
        self._keep(piece)
        raw = b"".join(self._pieces)
        data = raw[self._start :]
        self._drop()
        return Frame(data, "", raw if self._keeps_array else b"data: " + data.translate(_LINE_ENDS) + b"\n\n")


class JsonArrayWriter:
    """Writes whole events as pieces of an array, for clients that do not ask for server-sent events."""

    CONTENT_TYPE = "application/json"

    def __init__(self) -> None:
        self._is_begun = False

    def begin(self) -> None:
        """Note that the beginning of the array has been written elsewhere."""
        self._is_begun = True

    def add(self, events: bytes) -> bytes:
        """These events as a piece of the array."""
        pieces: list[bytes] = []
        for line in events.splitlines():
            if line.startswith(_DATA_FIELD):
                pieces.append((b",\r\n" if self._is_begun else b"[") + line[len(_DATA_FIELD) :].strip())
                self._is_begun = True
        return b"".join(pieces)

    def end(self) -> bytes:
        return b"]" if self._is_begun else b"[]"

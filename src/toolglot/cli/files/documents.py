"""Input files and stdin, JSON or JSONL, as records: one for each request.

A file is JSONL if its name ends in `.jsonl` or `.ndjson`, or if its first line is a complete object and more lines
follow. Of a capture of the gateway, the client's request is read.

Of the session file of a coding agent, the request that the agent would send is read.

Laws: JSONL is read line by line, so its size does not matter. Everything else is limited to `Limits.max_bytes`. Errors
have file, line and column.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.cli.files import json_layout
from toolglot.cli.files.session_requests import SessionRequest, in_database, session_request
from toolglot.conversation.captures import captured_request, read_captured
from toolglot.errors import InputError, JSONError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS

STDIN: Final = "-"
_LINES: Final = (".jsonl", ".ndjson")
_ONE_OBJECT: Final = "a request is one JSON object; JSONL has one per line"
_BOM: Final = b"\xef\xbb\xbf"
_HEAD: Final = 64 * 1024
_MAX: Final = DEFAULT_LIMITS.max_bytes


class Record(Struct, frozen=True, kw_only=True):
    """One request in its file."""

    file: str
    data: bytes
    line: int = 1
    """The line on which it starts."""
    is_line: bool = False
    """It is a line of a JSONL file."""
    protocol: str = ""
    """The protocol of a capture; empty: it is not one."""
    blank: bytes = b""
    """The blank lines before it, in a JSONL file."""
    is_session: bool = False
    """It was made of the session file of a coding agent, which holds more than the request."""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.is_line else self.file

    @property
    def text(self) -> str:
        """The text that positions refer to."""
        return self.data.removeprefix(_BOM).decode(errors="replace")

    @property
    def is_compact(self) -> bool:
        """Whether it is on one line. The output is too, then."""
        return self.is_line or b"\n" not in self.data.strip()

    def parse(self) -> dict[str, Any]:
        """Parse the body. The path of an error is the position in the file."""
        captured_request(self.data, self.where)  # raises for a capture that has no request
        try:
            value = _value_of(self.data)
        except JSONError as error:
            raise located_error(error, self.text, self.file, first_line=self.line, hint=_ONE_OBJECT) from None
        except InputError as error:
            raise InputError(error.message, path=self.where, hint=error.hint) from None
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else quote(value)
            hint = "write one request per line (JSONL)" if isinstance(value, list) else ""
            raise InputError(f"expected a JSON object, got {kind}", path=self.where, hint=hint)
        return value

    def encode_body(self, body: dict[str, Any]) -> bytes:
        """Encode a body: on one line if this record is, else indented."""
        return compact(body) if self.is_compact else pretty(body)

    def rewrite_body(self, before: dict[str, Any], body: dict[str, Any]) -> bytes:
        """Encode a changed body. Parts that are equal in both keep their layout."""
        head = _BOM if self.data.startswith(_BOM) else b""
        try:
            text = json_layout.rewrite(self.data.removeprefix(_BOM).decode(), before, body)
            return self.encode_body(body) if text is None else head + text.encode()
        except UnicodeError:  # invalid bytes or escapes, which were replaced when they were parsed
            return self.encode_body(body)


class InputDocument(Struct, frozen=True, kw_only=True):
    """An input file while it is read."""

    file: str
    size: int
    """In bytes; 0 if unknown, as for a pipe."""
    records: Iterator[Record]
    trailing: bytearray
    """The blank lines at the end of a JSONL file, after all records are read."""


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """The line and column of a character, both from 1."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def located_error(error: JSONError, text: str, file: str, *, first_line: int = 1, hint: str) -> InputError:
    """A JSON error with its line and column in a file."""
    line, column = line_and_column(text, error.position)
    reason = error.message.rpartition(" at character ")[0].rstrip(",") or error.message
    return InputError(reason, path=f"{file}:{line + first_line - 1}:{column}", hint=hint)


def read_whole(name: str, max_bytes: int, *, hint: str) -> bytes:
    """All bytes of a file; `-` is stdin. `hint`: what to do about a file that is too large."""
    try:
        if name == STDIN:
            data = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with Path(name).open("rb") as stream:
                data = stream.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    if len(data) > max_bytes:
        raise InputError(f"larger than {max_bytes} bytes", path=name, hint=hint)
    return data


def compact(body: Any) -> bytes:
    return jsontext.compact(body).encode(errors="replace") + b"\n"


def pretty(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, indent=2).encode(errors="replace") + b"\n"


@contextlib.contextmanager
def open_document(name: str, *, next_prompt: str = "") -> Iterator[InputDocument]:
    """Open a file; `-` is stdin. `next_prompt`: what follows a session that ends with an answer of the model."""
    if name == STDIN:
        if sys.stdin is None:
            raise InputError("stdin is closed", path="<stdin>", hint="pass a file")
        yield _document("<stdin>", sys.stdin.buffer, 0)
        return
    if in_database(name):
        session = session_request(name, b"", next_prompt=next_prompt)
        if session is not None:
            yield _session_document(name, session, 0)
            return
    try:
        size = os.stat(name).st_size  # noqa: PTH116 - a name with a null byte is a ValueError here as in open
        stream = open(name, "rb")  # noqa: PTH123, SIM115 - closed below
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None
    with stream:
        try:
            session = _session_in(name, stream, next_prompt)
        except OSError as error:  # some files can be opened, and not read
            raise _unreadable(name, error) from None
        if session is None:
            yield _document(name, stream, size)
        else:
            yield _session_document(name, session, size)


def _session_in(name: str, stream: BinaryIO, next_prompt: str) -> SessionRequest | None:
    """The request of a session file of a coding agent; None for any other file. What follows is read from its start."""
    if not stream.seekable():
        return None
    head = stream.read(_HEAD)
    stream.seek(0)
    return session_request(name, head, next_prompt=next_prompt)


def _session_document(name: str, session: SessionRequest, size: int) -> InputDocument:
    record = Record(file=name, data=compact(session.body), is_session=True)
    return InputDocument(file=name, size=size, records=iter([record]), trailing=bytearray())


def check_name(name: str) -> None:
    """Raise if a file does not exist, without reading it: a pipe can be read only once."""
    if name == STDIN or in_database(name):
        return
    try:
        if stat.S_ISDIR(os.stat(name).st_mode):  # noqa: PTH116 - as above
            raise IsADirectoryError
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError | ValueError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", path=name, hint="check the path; '-' reads stdin")
    if isinstance(error, IsADirectoryError):
        return InputError("is a directory", path=name, hint="pass the files in it")
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(f"cannot read file: {reason}", path=name, hint="check the path and its permissions")


def _document(name: str, stream: BinaryIO, size: int) -> InputDocument:
    try:
        return _read_document(name, stream, size)
    except OSError as error:
        raise _unreadable(name, error) from None


def _read_document(name: str, stream: BinaryIO, size: int) -> InputDocument:
    blank, head = _first_line(stream)
    if not head.strip():
        raise InputError("file is empty", path=name, hint=_ONE_OBJECT)
    line = blank.count(b"\n") + 1
    trailing = bytearray()
    if Path(name).suffix.lower() in _LINES:
        records = _lines(name, stream, head, line, blank, trailing)
        return InputDocument(file=name, size=size, records=records, trailing=trailing)
    if _is_object(head):
        more, following = _first_line(stream)
        if not following.strip():
            return _single_record(name, size, blank + head + more)
        skipped = line + more.count(b"\n") + 1
        first = _record(name, head, line=line, is_line=True, blank=blank)
        records = _chain(first, _lines(name, stream, following, skipped, more, trailing))
        return InputDocument(file=name, size=size, records=records, trailing=trailing)
    data = blank + head + stream.read(_MAX + 1)
    jsontext.refuse_large(data, DEFAULT_LIMITS, name)
    return _single_record(name, size, data)


def _single_record(name: str, size: int, data: bytes) -> InputDocument:
    records = iter([_record(name, data)])
    return InputDocument(file=name, size=size, records=records, trailing=bytearray())


def _record(name: str, data: bytes, *, line: int = 1, is_line: bool = False, blank: bytes = b"") -> Record:
    """A record; of a capture, the request in it. A capture without one stays as it is: `Record.parse` reports it."""
    protocol = ""
    with contextlib.suppress(InputError):
        data, protocol = read_captured(data)
    return Record(file=name, data=data, protocol=protocol, line=line, is_line=is_line, blank=blank)


def _chain(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from rest


def _first_line(stream: BinaryIO) -> tuple[bytes, bytes]:
    """The blank lines at the start, and the first line that is not blank."""
    blank = bytearray()
    while True:
        line = stream.readline(_MAX + 1)
        if line.strip() or not line or len(blank) > _MAX:
            return bytes(blank), line
        blank += line


def _value_of(data: bytes) -> Any:
    """The value of a JSON text. The fast parser reads what it can; the careful one fixes or explains the rest."""
    try:
        return jsontext.parse_plain(data)
    except LimitError:
        raise
    except (ValueError, RecursionError):
        return jsontext.parse(data).value


class _Object(Struct):
    """Any object, of which nothing is read."""


def _is_object(line: bytes) -> bool:
    try:
        msgspec.json.decode(line.removeprefix(_BOM), type=_Object)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(
    name: str, stream: BinaryIO, head: bytes, number: int, before: bytes, trailing: bytearray
) -> Iterator[Record]:
    line, blank = head, bytearray(before)
    while line:
        if len(line) > _MAX or len(blank) > _MAX:
            raise jsontext.limit_error("max_bytes", _MAX, f"{name}:{number}")
        if line.strip():
            yield _record(name, line, line=number, is_line=True, blank=bytes(blank))
            blank.clear()
        else:
            blank += line
        number += 1
        line = stream.readline(_MAX + 1)
    trailing += blank

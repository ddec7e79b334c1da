"""A file of JSON objects, one on each line, read as agents leave it behind: cut, interrupted, with NUL bytes.

Law: nothing is raised for what a line holds; a line that cannot be read says why. Time is linear in the file, memory in
its longest line, and both are bounded. Only a line feed ends a line: U+2028 does not.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.errors import InputError, JSONError, how_to_install
from toolglot.limits import Limits

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
MAX_FILE_BYTES: Final = 1024 * 1024 * 1024
LINE_LIMITS: Final = Limits(max_bytes=MAX_LINE_BYTES)


class FileLine(Struct, frozen=True, kw_only=True):
    """A line of a file.

    number: from 1.
    data: its bytes, with the line feed.
    value: the object; None if it cannot be read.
    problem: why it cannot be read, or what had to be replaced to read it.
    """

    number: int
    data: bytes
    value: dict[str, Any] | None = None
    problem: str = ""
    origin: int = 0
    """The line of the original file that it comes from, where lines were removed or split."""
    is_cut: bool = False
    """It ends in the middle: the last line of a file whose writer was stopped."""

    is_skipped: bool = False
    """It is too long, so its bytes are not here."""

    @property
    def is_blank(self) -> bool:
        return not self.data.strip() and not self.is_skipped


def read_lines(path: Path) -> Iterator[FileLine]:
    """The lines of a file. Raises for a file that cannot be opened or is too large."""
    refuse_special(path)
    try:
        with path.open("rb") as stream:
            yield from lines_of(_unpacked(stream, path), str(path))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the session: {reason}", path=str(path), hint="check the path") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"cannot decompress the session: {error}", path=str(path)) from None


def refuse_special(path: Path) -> None:
    """Raise for a folder, a pipe or a device, also behind a link: reading it might never end."""
    if path.exists() and not path.is_file():
        raise InputError("this is not a file", path=str(path), hint="a session is a file")


def _unpacked(stream: BinaryIO, path: Path) -> BinaryIO:
    """A file that is compressed with zstd, as Codex keeps old ones, is read through its decompressor."""
    if path.suffix != ".zst":
        return stream
    zstd = _zstd(path)
    unpacked: BinaryIO = zstd.open(stream, "rb", options={zstd.DecompressionParameter.window_log_max: 27})
    return unpacked


def pack(path: Path, data: bytes) -> bytes:
    """The bytes of a file, compressed where its name says so."""
    if path.suffix != ".zst":
        return data
    packed: bytes = _zstd(path).compress(data)
    return packed


def _zstd(path: Path) -> Any:
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        try:
            return importlib.import_module("backports.zstd")
        except ImportError:
            hint = how_to_install("gateway")
            raise InputError(
                "the file is compressed with zstd, which is not installed", path=str(path), hint=hint
            ) from None


def lines_of(stream: BinaryIO, name: str) -> Iterator[FileLine]:
    number, total = 0, 0
    while data := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        total += len(data)
        if total > MAX_FILE_BYTES:
            raise InputError(f"larger than {MAX_FILE_BYTES} bytes", path=name, hint="this is too large for a session")
        if len(data) > MAX_LINE_BYTES:
            while data and not data.endswith(b"\n"):
                data = stream.readline(MAX_LINE_BYTES)
                total += len(data)
            problem = f"the line is longer than {MAX_LINE_BYTES} bytes"
            yield FileLine(number=number, data=b"\n", problem=problem, is_skipped=True)
            continue
        yield parse_line(number, data)


def parse_line(number: int, data: bytes) -> FileLine:
    """A line, with its object or with what is wrong."""
    text = data.strip()
    if not text:
        return FileLine(number=number, data=data)
    try:
        value = jsontext.parse_plain(text, limits=LINE_LIMITS)
        problem = ""
    except InputError as error:
        return FileLine(number=number, data=data, problem=error.message)
    except (ValueError, RecursionError):
        return _parse_liberally(number, data)
    if not isinstance(value, dict):
        return FileLine(number=number, data=data, problem="it is not a JSON object")
    return FileLine(number=number, data=data, value=value, problem=problem)


def _parse_liberally(number: int, data: bytes) -> FileLine:
    """A line that the fast parser refuses: half a surrogate pair, bytes that are not UTF-8, or not JSON at all."""
    text = data.strip().removeprefix(b"\xef\xbb\xbf")
    problem = ""
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode("utf-8", "replace").encode()
        problem = "bytes that are not UTF-8"
    try:
        parsed = jsontext.parse(text, limits=LINE_LIMITS)
    except JSONError as error:
        is_cut = not data.endswith(b"\n")
        problem = "NUL bytes" if b"\0" in text else "it ends in the middle" if is_cut else error.message
        return FileLine(number=number, data=data, problem=problem, is_cut=is_cut)
    except InputError as error:
        return FileLine(number=number, data=data, problem=error.message)
    if not isinstance(parsed.value, dict):
        return FileLine(number=number, data=data, problem="it is not a JSON object")
    return FileLine(number=number, data=data, value=parsed.value, problem=problem or "; ".join(parsed.repairs))


def encode_line(value: dict[str, Any]) -> bytes:
    """An object as a line. U+2028 and U+2029 are escaped: some readers take them for the end of a line."""
    data = msgspec.json.encode(value)
    for raw, escaped in ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029")):
        data = data.replace(raw, escaped)
    return data + b"\n"


def text_of(value: Any, name: str) -> str:
    """A field of an object that is a string; empty for anything else."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def object_of(value: Any, name: str) -> dict[str, Any]:
    """A field of an object that is an object; empty for anything else."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_of(value: Any, name: str) -> list[Any]:
    """A field of an object that is a list; empty for anything else."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []

"""Files of rows: what they are by their names, opening them, and the rows of a part of one.

JSONL (plain, gzip, zstd), JSON lists, Parquet and Arrow; local paths, and addresses that fsspec opens (`s3://…`).

Law: memory does not grow with a file. A line belongs to the shard in which it begins.
"""

from __future__ import annotations

import gzip
import importlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

from toolglot.errors import InputError, how_to_install
from toolglot.limits import DEFAULT_LIMITS

Kind = Literal["lines", "gzip", "zstd", "list", "parquet", "arrow"]

_SUFFIXES: Final[dict[str, Kind]] = {
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".json": "lines",
    ".gz": "gzip",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
SUFFIXES: Final = tuple(_SUFFIXES)
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_ROWS: Final = 1_000
READ_BYTES: Final = 1024 * 1024
_MAX_LINE: Final = DEFAULT_LIMITS.max_bytes
_BRACKETS: Final = re.compile(rb'[{}\[\]"]')
_STRING_END: Final = re.compile(rb'["\\]')

InputRow = bytes | dict[str, Any]
Batch = tuple[list[InputRow], int]
"""Rows, and how many bytes of the file they are."""


def kind_of(path: str) -> Kind:
    """What a file holds, by its name; what begins with a bracket is a JSON list."""
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - it may be an address
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        hint = f"name it with one of {', '.join(SUFFIXES)}"
        raise InputError("cannot tell what the file holds", path=path, hint=hint)
    if kind == "lines" and suffix == ".json":
        with open_file(path) as stream:
            if stream.read(4096).lstrip()[:1] == b"[":
                return "list"
    return kind


def is_remote(path: str) -> bool:
    return "://" in path


def open_file(path: str) -> BinaryIO:
    """A file for reading, here or where fsspec finds it."""
    try:
        if is_remote(path):
            return cast("BinaryIO", extra("fsspec").open(path, "rb").open())
        return Path(path).open("rb", buffering=READ_BYTES)
    except (OSError, ValueError, ImportError) as error:
        raise _unreadable(path, error) from None


def size_of(path: str) -> int:
    """The size of a file in bytes."""
    try:
        if is_remote(path):
            filesystem, name = extra("fsspec").core.url_to_fs(path)
            return int(filesystem.size(name) or 0)
        return Path(path).stat().st_size
    except (OSError, ValueError, ImportError) as error:
        raise _unreadable(path, error) from None


def expand(paths: list[str]) -> list[str]:
    """The files that are meant: those themselves, and all files of rows in folders, by name."""
    found: list[str] = []
    for path in paths:
        if is_remote(path) or not Path(path).is_dir():
            found.append(path)
            continue
        inner = sorted(str(each) for each in Path(path).rglob("*") if each.is_file() and each.suffix in _SUFFIXES)
        if not inner:
            raise InputError("the folder has no files of rows", path=path, hint=f"such as {', '.join(SUFFIXES)}")
        found += inner
    return found


def extra(name: str) -> Any:
    """A package of the extra `bulk`."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{name} is not installed", path="", hint=how_to_install("bulk")) from None


def zstd_module() -> Any:
    """The zstd of Python 3.14, or the package that brings it to older ones."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return extra("backports.zstd")


def _unreadable(path: str, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(f"cannot read file: {reason}", path=path, hint="check the path and its permissions")


# --- units: what a file can be cut into -------------------------------------------------------------


def units_of(path: str, kind: Kind) -> tuple[int, list[int]]:
    """The length of a file in units that it can be cut at, and the bytes of each unit; one unit for a file that cannot
    be cut. Bytes are units by themselves: for these the list is empty."""
    if kind == "lines":
        return size_of(path), []
    if kind == "parquet":
        with open_file(path) as stream:
            metadata = extra("pyarrow.parquet").ParquetFile(stream).metadata
            sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
            return len(sizes), sizes
    return 1, [size_of(path)]


# --- rows -------------------------------------------------------------------------------------------


def batches(path: str, kind: Kind, start: int, end: int, *, framing: str = "row") -> Iterator[Batch]:
    """The rows of a part of a file, in batches."""
    try:
        if kind in ("parquet", "arrow"):
            yield from _table_batches(path, kind, start, end)
        elif kind == "list":
            yield from _grouped((item, len(item)) for item in _list_items(path))
        elif framing == "trace":
            yield from _grouped(_traces(path, kind, start, end))
        else:
            yield from _grouped(_rows(path, kind, start, end))
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None
    except Exception as error:
        if type(error).__module__.startswith(("pyarrow", "zlib", "backports", "compression", "botocore")):
            raise _unreadable(path, error) from None
        raise


def _grouped(rows: Iterator[tuple[InputRow, int]]) -> Iterator[Batch]:
    batch: list[InputRow] = []
    size = 0
    for row, length in rows:
        size += length
        if row:
            batch.append(row)
        if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch, size
            batch, size = [], 0
    if batch or size:
        yield batch, size


def _rows(path: str, kind: Kind, start: int, end: int) -> Iterator[tuple[InputRow, int]]:
    """The lines that begin in a range of bytes; blank ones count with their bytes only."""
    for line in _lines(path, kind, start, end):
        yield (line if line.strip() else b""), len(line)


def _lines(path: str, kind: Kind, start: int, end: int) -> Iterator[bytes]:
    for line, at in _positions(path, kind, start):
        if kind == "lines" and at >= end:
            return
        yield line


def _positions(path: str, kind: Kind, start: int) -> Iterator[tuple[bytes, int]]:
    """Every line that begins at `start` or later, with its position."""
    with open_file(path) as raw, _decompressed(raw, kind) as stream:
        at = 0
        if kind == "lines" and start:
            stream.seek(start - 1)
            at = start - 1 + len(_line(stream, path))
        while line := _line(stream, path):
            yield line, at
            at += len(line)


def _line(stream: BinaryIO, path: str) -> bytes:
    line = stream.readline(_MAX_LINE + 1)
    if len(line) > _MAX_LINE:
        raise InputError(f"a line is longer than {_MAX_LINE} bytes", path=path, hint="is it JSONL?")
    return line


def _decompressed(stream: BinaryIO, kind: Kind) -> BinaryIO:
    if kind == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if kind == "zstd":
        return cast("BinaryIO", io.BufferedReader(zstd_module().ZstdFile(stream), READ_BYTES))
    return stream


def _traces(path: str, kind: Kind, start: int, end: int) -> Iterator[tuple[InputRow, int]]:
    """Lines from a header to the next one, as one row. A trace belongs to the shard in which its header is."""
    lines: list[bytes] = []
    size = 0
    for line, at in _positions(path, kind, start):
        if is_trace_header(line):
            if lines:
                yield _trace(lines), size
            lines, size = [], 0
            if kind == "lines" and at >= end:
                return
            lines.append(line)
        elif lines and line.strip():
            lines.append(line)
        elif line.strip() and start == 0 and at < end:
            yield line, len(line)  # before the first header: set aside as it is
        size += len(line)
        if size > _MAX_LINE:
            raise InputError(f"a trace is longer than {_MAX_LINE} bytes", path=path)
    if lines:
        yield _trace(lines), size


def is_trace_header(line: bytes) -> bool:
    """Whether a line begins a session trace."""
    head = line[:200].replace(b" ", b"")
    return head.startswith(b"{") and b'"type":"session"' in head


def _trace(lines: list[bytes]) -> bytes:
    return b'{"trace":[' + b",".join(line.strip() for line in lines) + b"]}"


def _list_items(path: str) -> Iterator[bytes]:
    """The items of a JSON list, as they are written."""
    with open_file(path) as stream:
        yield from split_list(iter(lambda: stream.read(READ_BYTES), b""), path)


def split_list(pieces: Iterator[bytes], path: str = "") -> Iterator[bytes]:
    """The items of a JSON list that comes in pieces. Each byte is looked at a bounded number of times."""
    splitter = _ListSplitter(path)
    for piece in pieces:
        yield from splitter.feed(piece)
    splitter.finish()


class _ListSplitter:
    """Where the items of a list begin and end: how deep the brackets are, and whether a string is open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._data = b""
        self._at = 0
        self._item = 0
        """Where the item begins that is not complete."""
        self._depth = 0
        self._in_string = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._data, self._at, self._item = self._data[self._item :] + piece, self._at - self._item, 0
        while (found := (_STRING_END if self._in_string else _BRACKETS).search(self._data, self._at)) is not None:
            mark = found[0]
            if mark == b"\\":
                if found.end() == len(self._data):
                    self._at = found.start()  # what it escapes comes with the next piece
                    return
                self._at = found.end() + 1
                continue
            self._at = found.end()
            if mark == b'"':
                self._in_string = not self._in_string
            elif self._move(mark, found.start()):
                yield self._data[self._item : self._at]
                self._item = self._at
        self._at = len(self._data)
        if self._depth <= 1 and not self._in_string:
            self._item = self._at
        if self._at - self._item > _MAX_LINE:
            raise InputError(f"an item of the list is longer than {_MAX_LINE} bytes", path=self._path)

    def _move(self, mark: bytes, at: int) -> bool:
        """Count a bracket; whether an item ends with it."""
        if mark in (b"{", b"["):
            if self._depth == 1:
                self._item = at
            self._depth += 1
            return False
        self._depth -= 1
        return self._depth == 1

    def finish(self) -> None:
        if self._depth != 0 or self._in_string:
            hint = "it was cut off; write all of it"
            raise InputError("the JSON list ends before it is complete", path=self._path, hint=hint)


def _table_batches(path: str, kind: Kind, start: int, end: int) -> Iterator[Batch]:
    with open_file(path) as stream:
        if kind == "parquet":
            file = extra("pyarrow.parquet").ParquetFile(stream)
            groups = range(start, end)
            found: Iterator[Any] = (
                each for group in groups for each in file.iter_batches(BATCH_ROWS, row_groups=[group])
            )
        else:
            found = _arrow_batches(stream)
        for batch in found:
            each = max(batch.nbytes // max(batch.num_rows, 1), 1)
            step = max(min(BATCH_ROWS, BATCH_BYTES // each), 1)
            for first in range(0, batch.num_rows, step):
                part = batch.slice(first, step)
                yield part.to_pylist(), each * part.num_rows


def _arrow_batches(stream: BinaryIO) -> Iterator[Any]:
    """The batches of an Arrow file, or of an Arrow stream."""
    ipc = extra("pyarrow").ipc
    if stream.read(6) == b"ARROW1":
        stream.seek(0)
        reader = ipc.open_file(stream)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        stream.seek(0)
        yield from ipc.open_stream(stream)

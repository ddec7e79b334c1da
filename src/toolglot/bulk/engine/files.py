"""Files of rows: what they are by their names, opening them, and the rows of a part of one.

JSONL and JSON lists (plain, gzip, zstd), Parquet and Arrow; local paths, and addresses that fsspec opens (`s3://…`).
A session file of a coding agent is one row.

Law: memory does not grow with a file. A line belongs to the shard in which it begins.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

from toolglot import agent_files
from toolglot.agent_files.base import get as agent_format
from toolglot.agent_files.base import home_of_user
from toolglot.bulk.engine.json_values import split_values
from toolglot.bulk.example import UnreadableRow
from toolglot.bulk.formats.agent_session import session_document
from toolglot.errors import InputError, how_to_install
from toolglot.jsontext import parse_plain
from toolglot.limits import DEFAULT_LIMITS

Kind = Literal["lines", "gzip", "zstd", "list", "parquet", "arrow", "session"]

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
_HEAD_BYTES: Final = 65_536
_READERS: Final = ("pyarrow", "zlib", "backports", "compression", "_zstd", "botocore")
"""The modules of packages that read files: what they raise is about the file."""
_PACKED: Final = (".gz", ".zst", ".zstd")
AGENT: Final = "agent:"
"""An input that begins so is all sessions of an agent."""
MARK: Final = "#"
"""Between a database and the id of a session in it."""
PLAN: Final = "plan.json"
DONE: Final = "done"
SUMMARY: Final = "summary.json"
SIDE_FILES: Final = (SUMMARY, "set-aside.jsonl", "changes.jsonl")
_SUMMARY_HEAD: Final = 200
WORK: Final = ".work"
"""The ending of the folder of an unfinished run."""
_MAX_LINE: Final = DEFAULT_LIMITS.max_bytes

InputRow = bytes | dict[str, Any] | UnreadableRow
Batch = tuple[list[InputRow], int]
"""Rows, and how many bytes of the file they are."""


def kind_of(path: str) -> Kind:
    """What a file holds, by its name, and by its beginning: what begins with a bracket is a JSON list."""
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - it may be an address
    kind = _SUFFIXES.get(suffix)
    if kind is None:
        size_of(path)  # raises if there is no such file
        hint = f"name it with one of {', '.join(SUFFIXES)}"
        raise InputError("cannot tell what the file holds", path=path, hint=hint)
    if kind in ("lines", "gzip", "zstd") and _is_list(_head(path), is_json=".json" in _inner_suffixes(path)):
        return "list"
    return kind


def compression_of(path: str) -> Kind:
    """How a file is compressed, by its name."""
    return _SUFFIXES.get(os.path.splitext(path)[1].lower(), "lines")  # noqa: PTH122 - it may be an address


def _inner_suffixes(path: str) -> tuple[str, ...]:
    stem, suffix = os.path.splitext(path)  # noqa: PTH122 - it may be an address
    return suffix.lower(), os.path.splitext(stem)[1].lower() if suffix.lower() in _PACKED else ""  # noqa: PTH122


def _head(path: str) -> bytes:
    with _errors_of(path), open_file(path) as raw, _decompressed(raw, compression_of(path)) as stream:
        return stream.read(_HEAD_BYTES).lstrip(b" \t\r\n\xef\xbb\xbf")


def _is_list(head: bytes, *, is_json: bool) -> bool:
    """Whether a file is a list, or documents of several lines, and not one row to a line."""
    if head.startswith(b"["):
        return is_json or head[1:].lstrip()[:1] == b"{"
    line, end, _ = head.partition(b"\n")
    if not is_json or not end or not line.startswith(b"{"):
        return False
    try:
        parse_plain(line)
    except (ValueError, RecursionError):
        return True
    return False


def is_remote(path: str) -> bool:
    return "://" in path


def open_file(path: str) -> BinaryIO:
    """A file for reading, here or where fsspec finds it."""
    try:
        if is_remote(path):
            return cast("BinaryIO", extra("fsspec").open(path, "rb").open())
        return _file_of(path).open("rb", buffering=READ_BYTES)
    except (OSError, ValueError, ImportError) as error:
        raise _unreadable(path, error) from None


def size_of(path: str) -> int:
    """The size of a file in bytes."""
    try:
        if is_remote(path):
            filesystem, name = extra("fsspec").core.url_to_fs(path)
            return int(filesystem.size(name) or 0)
        return _file_of(path).stat().st_size
    except (OSError, ValueError, ImportError) as error:
        raise _unreadable(path, error) from None


def _file_of(path: str) -> Path:
    """The file of a path; that of a session within a database is the database."""
    file = Path(path)
    return file if MARK not in path or file.exists() else file.with_name(file.name.partition(MARK)[0])


def expand(paths: list[str]) -> list[str]:
    """The files that are meant: those themselves, all files of rows in folders, by name, and the sessions of an agent
    (`agent:claude`, `agent:all`). Hidden files of a folder, and what a run wrote besides its rows, are none of them."""
    found: list[str] = []
    for path in paths:
        if path.startswith(AGENT):
            found += _sessions_of(path.removeprefix(AGENT))
            continue
        if is_remote(path) or not Path(path).is_dir():
            found.append(path)
            continue
        if (Path(path) / PLAN).is_file() and (Path(path) / DONE).is_dir():
            hint = "start that run again, so that it ends"
            raise InputError("the folder is the output of a run that is not complete", path=path, hint=hint)
        files = (each for each in Path(path).rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())
        inner = sorted(str(each) for each in files if not _is_hidden(each.relative_to(path)) and not _is_side(each))
        if not inner:
            raise InputError("the folder has no files of rows", path=path, hint=f"such as {', '.join(SUFFIXES)}")
        found += inner
    return found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts) or any(part.endswith(WORK) for part in path.parts[:-1])


def _is_side(path: Path) -> bool:
    """Whether a file is what a run wrote besides its rows: there is a summary of that run with it."""
    for side in SIDE_FILES:
        if path.name.endswith(side) and path.name.removesuffix(side)[-1:] in ("", "."):
            try:
                with path.with_name(path.name.removesuffix(side) + SUMMARY).open("rb") as stream:
                    return b'"plan": "' in stream.read(_SUMMARY_HEAD)
            except OSError:
                return False
    return False


def _sessions_of(name: str) -> list[str]:
    """The files of all sessions of an agent on this machine."""
    home = home_of_user()
    names = agent_files.names() if name == "all" else (name,)
    found = [str(path) for each in names for path in agent_format(each, path=f"{AGENT}{name}").find(home)]
    if not found:
        raise InputError("no sessions", path=f"{AGENT}{name}", hint="`toolglot sessions list --agent all` lists them")
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
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", path=path, hint="check the path")
    reason = getattr(error, "strerror", None)
    if reason or is_remote(path):
        return InputError(f"cannot read file: {reason or error}", path=path, hint="check the path and its permissions")
    hint = "it is damaged, incomplete or of another kind than its name says: copy or write it again"
    return InputError(f"cannot read file: {error}", path=path, hint=hint)


# --- units: what a file can be cut into -------------------------------------------------------------


def units_of(path: str, kind: Kind) -> tuple[int, list[int]]:
    """The length of a file in units that it can be cut at, and the bytes of each unit; one unit for a file that cannot
    be cut. Bytes are units by themselves: for these the list is empty."""
    if kind == "lines":
        return size_of(path), []
    if kind == "parquet":
        with _errors_of(path), open_file(path) as stream:
            metadata = extra("pyarrow.parquet").ParquetFile(stream).metadata
            sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
            return len(sizes), sizes
    return 1, [size_of(path)]


# --- rows -------------------------------------------------------------------------------------------


def batches(path: str, kind: Kind, start: int, end: int, *, framing: str = "row") -> Iterator[Batch]:
    """The rows of a part of a file, in batches."""
    meter = _Meter()
    with _errors_of(path):
        if kind in ("parquet", "arrow"):
            yield from _table_batches(path, kind, start, end)
        elif kind == "session":
            yield [session_row(path)], size_of(path)
        elif kind == "list":
            yield from _grouped(((item, len(item)) for item in _values(path, meter)), meter)
        elif framing == "trace":
            yield from _grouped(_traces(path, kind, start, end, meter), meter)
        else:
            yield from _grouped(_rows(path, kind, start, end, meter), meter)


@contextlib.contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """What is raised for what a file holds, as an `InputError`."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None
    except Exception as error:
        if type(error).__module__.startswith(_READERS):
            raise _unreadable(path, error) from None
        raise


class _Meter:
    """How far a file was read. Of a compressed file that is not how much came out of it."""

    def __init__(self) -> None:
        self.compressed: BinaryIO | None = None
        self._at = 0

    def advance(self, size: int) -> int:
        """The bytes of the file that a batch of this size was."""
        if self.compressed is None:
            return size
        at = self._at if self.compressed.closed else self.compressed.tell()
        size, self._at = at - self._at, at
        return size


def _grouped(rows: Iterator[tuple[InputRow, int]], meter: _Meter) -> Iterator[Batch]:
    batch: list[InputRow] = []
    size = 0
    for row, length in rows:
        size += length
        if row:
            batch.append(row)
        if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield batch, meter.advance(size)
            batch, size = [], 0
    if batch or size:
        yield batch, meter.advance(size)


def _rows(path: str, kind: Kind, start: int, end: int, meter: _Meter) -> Iterator[tuple[InputRow, int]]:
    """The lines that begin in a range of bytes; blank ones count with their bytes only."""
    for line, at, size in _positions(path, kind, start, meter):
        if kind == "lines" and at >= end:
            return
        if size > _MAX_LINE:
            yield _too_long("line", at, size), size
        else:
            yield (line if line.strip() else b""), size


def _too_long(what: str, at: int, size: int) -> UnreadableRow:
    reason = f"a {what} of {size} bytes at byte {at} is longer than {_MAX_LINE} bytes"
    return UnreadableRow(reason, "is it JSONL?" if what == "line" else "")


def _positions(path: str, kind: Kind, start: int, meter: _Meter) -> Iterator[tuple[bytes, int, int]]:
    """Every line that begins at `start` or later, with its position and size; one that is too long is empty."""
    with open_file(path) as raw, _decompressed(raw, kind, meter) as stream:
        at = 0
        if kind == "lines" and start:
            stream.seek(start - 1)
            at = start - 1 + _line(stream)[1]
        while True:
            line, size = _line(stream)
            if not size:
                return
            yield line, at, size
            at += size


def _line(stream: BinaryIO) -> tuple[bytes, int]:
    """A line, and its size. What is longer than a line may be is passed over."""
    line = stream.readline(_MAX_LINE + 1)
    size = len(line)
    if size <= _MAX_LINE or line.endswith(b"\n"):
        return line, size
    while piece := stream.readline(READ_BYTES):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return b"", size


def _decompressed(stream: BinaryIO, kind: Kind, meter: _Meter | None = None) -> BinaryIO:
    if meter is not None and kind in ("gzip", "zstd"):
        meter.compressed = stream
    if kind == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if kind == "zstd":
        return cast("BinaryIO", io.BufferedReader(zstd_module().ZstdFile(stream), READ_BYTES))
    return stream


def _traces(path: str, kind: Kind, start: int, end: int, meter: _Meter) -> Iterator[tuple[InputRow, int]]:
    """Lines from a header to the next one, as one row. A trace belongs to the shard in which its header is."""
    lines: list[bytes] = []
    size = began = 0
    for line, at, length in _positions(path, kind, start, meter):
        if is_trace_header(line):
            if size:
                yield _trace(lines, began, size), size
            lines, size, began = [], 0, at
            if kind == "lines" and at >= end:
                return
            lines.append(line)
        elif size and size + length <= _MAX_LINE:
            lines.append(line)
        elif size:
            lines = []  # it is too long
        elif start == 0 and at < end and length > _MAX_LINE:
            yield _too_long("line", at, length), length
            continue
        elif start == 0 and at < end and line.strip():
            yield line, length  # before the first header: set aside as it is
            continue
        else:
            continue
        size += length
    if size:
        yield _trace(lines, began, size), size


def row_lines(path: str, kind: Kind, *, framing: str = "row") -> Iterator[int]:
    """The line of each row, from 1; nothing for files whose rows are no lines."""
    if kind not in ("lines", "gzip", "zstd") or framing != "row":
        return
    with _errors_of(path):
        for number, (line, _, size) in enumerate(_positions(path, kind, 0, _Meter()), 1):
            if line.strip() or size > _MAX_LINE:
                yield number


def is_trace_header(line: bytes) -> bool:
    """Whether a line begins a session trace."""
    head = line[:200].replace(b" ", b"")
    return head.startswith(b"{") and b'"type":"session"' in head


def _trace(lines: list[bytes], at: int, size: int) -> InputRow:
    if size > _MAX_LINE:
        return _too_long("trace", at, size)
    return b'{"trace":[' + b",".join(line.strip() for line in lines if line.strip()) + b"]}"


def _values(path: str, meter: _Meter) -> Iterator[bytes]:
    """The values of a JSON list, or the documents of a file, as they are written."""
    with open_file(path) as raw, _decompressed(raw, compression_of(path), meter) as stream:
        yield from split_values(iter(lambda: stream.read(READ_BYTES), b""), path)


def session_row(path: str) -> InputRow:
    """A session file of a coding agent as a row, or why it cannot be read."""
    try:
        return session_document(agent_files.read(path))
    except InputError as error:
        return UnreadableRow(error.message, error.hint)


def is_session(path: str) -> bool:
    """Whether a file is a session file of a coding agent."""
    if is_remote(path):
        return False
    try:
        agent_files.detect(path)
    except InputError:
        return False
    return True


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

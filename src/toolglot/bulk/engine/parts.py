"""Writing the part of one shard: to a name of its own first, with a checksum, and renamed when it is complete.

Law: the same rows give the same bytes: no time, no name and no thread decides any of them. A part that has its own name
is complete.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from toolglot.bulk.engine.files import extra, zstd_module
from toolglot.bulk.engine.tables import Columns, schema_of, table_of
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.session_trace import TRACE
from toolglot.bulk.report import OutputRow, encode_row
from toolglot.errors import InputError

OutputKind = Literal["lines", "gzip", "zstd", "parquet", "arrow"]
SUFFIXES: Final[dict[OutputKind, str]] = {
    "lines": ".jsonl",
    "gzip": ".jsonl.gz",
    "zstd": ".jsonl.zst",
    "parquet": ".parquet",
    "arrow": ".arrow",
}
_LEVEL: Final = {"gzip": 6, "zstd": 3}


def output_kind(path: str) -> OutputKind:
    """What is written, by the name of the output; a folder gets JSONL."""
    name = path.lower().rstrip("/")
    if path.endswith("/") or Path(path).is_dir():
        return "lines"
    for ending, kind in (
        (".jsonl", "lines"),
        (".ndjson", "lines"),
        (".json", "lines"),
        (".gz", "gzip"),
        (".zst", "zstd"),
        (".zstd", "zstd"),
        (".parquet", "parquet"),
        (".arrow", "arrow"),
    ):
        if name.endswith(ending):
            return kind  # type: ignore[return-value]
    hint = "out.jsonl, out.jsonl.zst, out.parquet, out.arrow, or a folder: out/"
    raise InputError("cannot tell what to write", path=path, hint=hint)


class _Hashed(io.RawIOBase):
    """A file that is hashed as it is written. It cannot seek, so that what is written once stays."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.hash = sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.hash.update(data)
        self._stream.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size


def temporary_path(path: Path) -> Path:
    """A name that no other process uses, on this machine or another one that sees the folder."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")


class PartWriter:
    """Writes the rows of one shard."""

    def __init__(self, path: Path, kind: OutputKind, target: Format, columns: Columns) -> None:
        self._path = path
        self._temporary = temporary_path(path)
        self._file = self._temporary.open("wb")
        self._hashed = _Hashed(self._file)
        self._target = target
        self._is_trace = target.framing == "trace"
        self._columns = columns
        self.used: set[str] = set()
        """The columns of the table that have a value in some row."""
        self._close: Callable[[], object] = lambda: None
        if kind in ("parquet", "arrow"):
            self._schema = schema_of(target, columns)
            self._table = open_table(self._hashed, kind, self._schema)
            self._write = self._write_table
        else:
            self._stream = _compressed(self._hashed, kind)
            self._write = self._write_lines

    def write(self, outputs: list[OutputRow]) -> None:
        if outputs:
            self._write(outputs)

    def _write_lines(self, outputs: list[OutputRow]) -> None:
        if self._is_trace:
            lines = [encode_row(line) for output in outputs for line in output.as_row()[TRACE]]
        else:
            lines = [output.as_line() for output in outputs]
        self._stream.write(b"\n".join(lines) + b"\n")

    def _write_table(self, outputs: list[OutputRow]) -> None:
        rows = [output.as_row() for output in outputs]
        table = table_of(rows, self._target, self._columns, self._schema)
        self.used.update(name for name in table.column_names if table.column(name).null_count < table.num_rows)
        self._table.write_table(table)

    def finish(self) -> tuple[int, str]:
        """Complete the part under its own name; its size and its checksum."""
        if hasattr(self, "_table"):
            self._table.close()
        elif self._stream is not self._hashed:
            self._stream.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        return self._hashed.size, self._hashed.hash.hexdigest()

    def abandon(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: what is buffered cannot be written either
            self._file.close()
        self._temporary.unlink(missing_ok=True)


def open_table(stream: Any, kind: str, schema: Any) -> Any:
    """A writer of tables."""
    if kind == "parquet":
        return extra("pyarrow.parquet").ParquetWriter(stream, schema, compression="zstd")
    return extra("pyarrow").ipc.new_file(stream, schema)


def _compressed(stream: Any, kind: OutputKind) -> Any:
    if kind == "gzip":
        return gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0, compresslevel=_LEVEL["gzip"])
    if kind == "zstd":
        return zstd_module().ZstdFile(stream, "wb", level=_LEVEL["zstd"])
    return stream

"""The plan of a run: what is read, what is written, and the shards, decided once and written down.

Law: a plan is frozen. A run that goes on after a kill reads it again and refuses inputs that are no longer the same.
The number of workers is not in it, so it cannot decide a byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from toolglot import __version__
from toolglot.bulk import formats
from toolglot.bulk.batch import AUTO
from toolglot.bulk.engine import files
from toolglot.bulk.engine.files import Kind
from toolglot.bulk.engine.parts import OutputKind
from toolglot.bulk.engine.tables import Columns, read_batches
from toolglot.bulk.example import Row, UnreadableRow
from toolglot.bulk.formats import agent_session
from toolglot.bulk.options import BulkOptions
from toolglot.errors import InputError
from toolglot.jsontext import parse_plain

SHARD_BYTES: Final = 32 * 1024 * 1024
_SAMPLE: Final = 65_536
_LOOKED_AT: Final = 8
"""How many files are looked at to find out whether they are session files of agents."""


class InputFile(Struct, frozen=True, kw_only=True):
    """A file that is read: its size, and a hash of its beginning and its end."""

    path: str
    kind: Kind
    size: int
    sample: str


class Shard(Struct, frozen=True, kw_only=True):
    """A part of a file: bytes, row groups, or all of it."""

    index: int
    file: int
    start: int
    end: int
    size: int


class Plan(Struct, frozen=True, kw_only=True):
    """All that decides the output."""

    version: str
    inputs: tuple[InputFile, ...]
    shards: tuple[Shard, ...]
    source: str
    target: str
    options: BulkOptions
    output: OutputKind
    detected: formats.DetectedFormat | None = None
    """How the format of the rows was found; None: it was named."""
    columns: Columns = "json"
    limit: int | None = None

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def fingerprint(self) -> str:
        return sha256(self.encoded()).hexdigest()

    @property
    def bytes(self) -> int:
        return sum(shard.size for shard in self.shards)


def make_plan(
    paths: list[str],
    *,
    source: str,
    target: str,
    options: BulkOptions,
    output: OutputKind,
    columns: Columns = "json",
    limit: int | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> Plan:
    """Look at the files, detect their format if it is not named, and cut them into shards."""
    inputs = input_files(paths, source)
    detected = detect_files(inputs, options) if source == AUTO else None
    from_ = detected.name if detected is not None else formats.get(source).name
    if formats.get(from_).read is None:
        raise InputError(f"rows of the format {from_!r} cannot be read", path="source")
    shards: list[Shard] = []
    for number, file in enumerate(inputs):
        for start, end, size in _cuts(file, shard_bytes):
            shards.append(Shard(index=len(shards), file=number, start=start, end=end, size=size))
    return Plan(
        version=__version__,
        inputs=inputs,
        shards=tuple(shards),
        source=from_,
        target=formats.get(target).name,
        options=options,
        output=output,
        detected=detected,
        columns=columns,
        limit=limit,
    )


def input_files(paths: list[str], source: str = AUTO) -> tuple[InputFile, ...]:
    """The files of a run, in order. They are session files of agents if that is said, or if one of the first is."""
    expanded = files.expand(paths)
    if source == AUTO:
        are_sessions = any(map(files.is_session, expanded[:_LOOKED_AT]))
    else:
        are_sessions = formats.get(source).name == agent_session.NAME
    return tuple(_input_file(path, "session" if are_sessions else files.kind_of(path)) for path in expanded)


def whole_file_batches(file: InputFile, framing: str) -> Iterator[list[files.InputRow]]:
    """All rows of a file, in batches."""
    length, _ = files.units_of(file.path, file.kind)
    for batch, _ in read_batches(file.path, file.kind, 0, length, framing=framing):
        yield batch


def read_plan(folder: Path) -> Plan | None:
    """The plan of an unfinished run; None if there is none."""
    try:
        return msgspec.json.decode((folder / files.PLAN).read_bytes(), type=Plan)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the plan: {error}", path=str(folder / files.PLAN), hint="--force begins anew"
        ) from None


def detect_files(inputs: tuple[InputFile, ...], options: BulkOptions) -> formats.DetectedFormat:
    """The format of the files, by the first rows of the first file that has some."""
    if inputs and inputs[0].kind == "session":
        return formats.DetectedFormat(name=agent_session.NAME, confidence=1.0)
    rows = first_rows(inputs, options)
    found = formats.detect(rows)
    if found.name:
        return found
    if inputs and not any(file.size for file in inputs):
        what = "file is empty" if len(inputs) == 1 else "all files are empty"
        raise InputError(what, path=inputs[0].path, hint="there are no rows to read")
    others = ", ".join(f"{name} ({sure:.0%})" for name, sure in found.others)
    raise InputError(
        "the format of the rows is not clear" if rows else "the input has no rows that are JSON objects",
        path=inputs[0].path if inputs else "",
        hint=f"name it with --from; it might be {others}"
        if others
        else "name it with --from, or map its columns with --column NAME=KNOWN",
    )


def first_rows(inputs: tuple[InputFile, ...], options: BulkOptions, count: int = formats.DETECTED_ROWS) -> list[Row]:
    """The first rows that are objects."""
    renamed = dict(options.columns)
    for file in inputs:
        framing = "trace" if _begins_trace(file) else "row"
        for batch in whole_file_batches(file, framing):
            rows = [row for row in map(_object, batch[:count]) if row is not None]
            if rows:
                return [{renamed.get(name, name): held for name, held in row.items()} for row in rows]
    return []


def _begins_trace(file: InputFile) -> bool:
    if file.kind not in ("lines", "gzip", "zstd"):
        return False
    for batch in whole_file_batches(file, "row"):
        return bool(batch) and isinstance(batch[0], bytes) and files.is_trace_header(batch[0])
    return False


def _object(row: files.InputRow) -> Row | None:
    if isinstance(row, UnreadableRow):
        return None
    if isinstance(row, bytes):
        try:
            value = parse_plain(row)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None
    return row


def _input_file(path: str, kind: Kind) -> InputFile:
    size = files.size_of(path)
    with files.open_file(path) as stream:
        state = sha256(stream.read(_SAMPLE))
        if size > _SAMPLE:
            stream.seek(max(size - _SAMPLE, _SAMPLE))
            state.update(stream.read(_SAMPLE))
    return InputFile(path=path, kind=kind, size=size, sample=state.hexdigest())


def _cuts(file: InputFile, shard_bytes: int) -> list[tuple[int, int, int]]:
    """The parts of a file: start, end and bytes of each."""
    length, sizes = files.units_of(file.path, file.kind)
    if not sizes:
        starts = range(0, length, shard_bytes)
        return [(start, min(start + shard_bytes, length), min(shard_bytes, length - start)) for start in starts]
    if file.kind != "parquet":
        return [(0, 1, file.size)]
    cuts: list[tuple[int, int, int]] = []
    start = held = 0
    for number, size in enumerate(sizes, 1):
        held += size
        if held >= shard_bytes or number == length:
            cuts.append((start, number, held))
            start, held = number, 0
    return cuts

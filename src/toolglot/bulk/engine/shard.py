"""Converting one shard: the unit of work of every engine, the same wherever it runs.

It reads its part of a file in batches, converts each, and writes a part, its side files and, last of all, a record of
what it did. Law: the shard and the plan decide the bytes. A shard with a record whose parts have their checksums is
done.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from toolglot.bulk import formats
from toolglot.bulk.batch import convert_batch
from toolglot.bulk.engine import files
from toolglot.bulk.engine.parts import SUFFIXES, PartWriter, temporary_path
from toolglot.bulk.engine.plan import Plan
from toolglot.bulk.engine.tables import read_batches
from toolglot.bulk.example import UnreadableRow
from toolglot.bulk.options import BulkOptions
from toolglot.bulk.plain_values import plain_value
from toolglot.bulk.report import ConvertedBatch, RowReport, check_totals, encode_row
from toolglot.errors import InputError
from toolglot.masking import mask

Progress = Callable[[int, int], object]
"""Called with the rows and the bytes that were done since the last time."""
_COPY: Final = 1024 * 1024
_SPLIT_BYTES: Final = 128 * 1024
"""The bytes of rows that are converted at a time with `split=turns`."""
SIDES: Final = ("set_aside", "changes")


class _Left:
    """The bytes of a shard that were not reported yet, so that those of a run are as many as the plan says. Of a table,
    a batch in memory has another size than in the file."""

    def __init__(self, size: int) -> None:
        self._size = size

    def take(self, size: int) -> int:
        size = min(size, self._size)
        self._size -= size
        return size


class ShardRecord(Struct, frozen=True, kw_only=True):
    """What was done for a shard.

    index: its number.
    rows: how many rows it had.
    counts: how many had each fate, and how many were made.
    reasons: why rows were merged, dropped or set aside, and how often.
    faults: what was changed, and how often.
    sizes, hashes: of its part and its side files, by name.
    used: the columns of its table that have a value in some row.
    """

    index: int
    plan: str
    rows: int
    counts: dict[str, int]
    reasons: dict[str, int]
    faults: dict[str, int]
    sizes: dict[str, int]
    hashes: dict[str, str]
    used: tuple[str, ...]


def part_name(plan: Plan, index: int) -> str:
    """The name of the part of a shard."""
    return f"part-{index:05}-of-{len(plan.shards):05}{SUFFIXES[plan.output]}"


def side_name(side: str, index: int) -> str:
    return f".{side}-{index:05}.jsonl"


def record_path(folder: Path, index: int) -> Path:
    return folder / files.DONE / f"{index:05}.json"


def convert_shard(
    plan: Plan,
    index: int,
    folder: Path,
    *,
    progress: Progress = lambda _rows, _bytes: None,
    merged: Mapping[int, str] | None = None,
    limit: int | None = None,
) -> ShardRecord:
    """Convert a shard, and write what comes of it into a folder."""
    shard = plan.shards[index]
    file = plan.inputs[shard.file]
    source, target = formats.get(plan.source), formats.get(plan.target)
    writer = PartWriter(folder / part_name(plan, index), plan.output, target, plan.columns)
    sides = _SideFiles(folder, index, file.path)
    totals, reasons, faults = Counter[str](), Counter[str](), Counter[str]()
    has_column = plan.options.changes == "column" or (plan.options.changes == "auto" and target.takes_columns)
    rows, left = 0, _Left(shard.size)
    try:
        for read, size in read_batches(file.path, file.kind, shard.start, shard.end, framing=source.framing):
            before = rows
            for batch in _pieces(read if limit is None else read[: max(limit - rows, 0)], plan.options):
                known = None if merged is None else _slice(merged, rows, len(batch))
                made = convert_batch(batch, source=plan.source, target=plan.target, options=plan.options, merged=known)
                writer.write(made.outputs)
                _write_files(made, folder)
                for report in made.reports:
                    sides.add(rows, report, batch[report.row], has_column=has_column)
                    _tally(report, reasons, faults)
                totals.update(made.counts)
                rows += len(batch)
            progress(rows - before, left.take(size))
            if limit is not None and rows >= limit:
                break
        if file.kind != "lines":  # its rows are not the bytes that were counted
            progress(0, left.take(shard.size))
        check_totals(totals.items(), rows)
        sizes, hashes = sides.finish()
        sizes[part_name(plan, index)], hashes[part_name(plan, index)] = writer.finish()
    except OSError as error:
        writer.abandon()
        sides.abandon()
        raise unwritable(error, folder) from None
    except BaseException:
        writer.abandon()
        sides.abandon()
        raise
    record = ShardRecord(
        index=index,
        plan=plan.fingerprint,
        rows=rows,
        counts=dict(sorted(totals.items())),
        reasons=dict(sorted(reasons.items())),
        faults=dict(sorted(faults.items())),
        sizes=sizes,
        hashes=hashes,
        used=tuple(sorted(writer.used)),
    )
    write_atomically(record_path(folder, index), msgspec.json.encode(record))
    return record


def done_record(index: int, folder: Path, fingerprint: str, *, is_new: bool = False) -> ShardRecord | None:
    """The record of a shard that is done: its files are there, with their checksums. Those of a shard that this run has
    made are not read again (`is_new`)."""
    try:
        record = msgspec.json.decode(record_path(folder, index).read_bytes(), type=ShardRecord)
    except (OSError, ValueError):
        return None
    if record.plan != fingerprint or record.index != index:
        return None
    for name, expected in record.hashes.items():
        path = folder / name
        try:
            if path.stat().st_size != record.sizes[name] or not (is_new or hash_file(path) == expected):
                return None
        except OSError:
            return None
    return record


def unwritable(error: OSError, path: Path) -> InputError:
    """That something could not be written, as an error for the user."""
    hint = "what is done is kept: make room, and start the same command again to go on"
    return InputError(f"cannot write: {error.strerror or error}", path=str(error.filename or path), hint=hint)


def hash_file(path: Path) -> str:
    state = sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_COPY):
            state.update(piece)
    return state.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """A file that is there as a whole or not at all."""
    temporary = temporary_path(path)
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def _pieces(batch: list[files.InputRow], options: BulkOptions) -> Iterator[list[files.InputRow]]:
    """The rows that are converted at a time: few, if each becomes as many rows as it has turns of the model."""
    if options.split != "turns":
        yield batch
        return
    piece: list[files.InputRow] = []
    size = 0
    for row in batch:
        piece.append(row)
        size += len(row) if isinstance(row, bytes) else _SPLIT_BYTES // 16
        if size >= _SPLIT_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _slice(merged: Mapping[int, str], start: int, count: int) -> dict[int, str]:
    return {row - start: merged[row] for row in range(start, start + count) if row in merged}


def _write_files(made: ConvertedBatch, folder: Path) -> None:
    for name, data in made.files.items():
        path = folder / "images" / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, data)


def _tally(report: RowReport, reasons: Counter[str], faults: Counter[str]) -> None:
    if report.fate != "converted":
        reasons[f"{report.fate}: {report.reason[:200]}"] += 1
    for entry in report.entries:
        if entry.gravity != "housekeeping":
            faults[f"{entry.gravity}: {entry.reason[:200]}"] += 1


class _SideFiles:
    """The rows of a shard that were set aside, and what was changed in the others if no column says so.

    Rows are numbered within the shard; the numbers of a run are known when all shards are done.
    """

    def __init__(self, folder: Path, index: int, file: str) -> None:
        self._paths = {side: folder / side_name(side, index) for side in SIDES}
        self._streams: dict[str, tuple[Path, BinaryIO]] = {}
        self._hashes = {side: sha256() for side in SIDES}
        self._sizes = dict.fromkeys(SIDES, 0)
        self._file = file

    def add(self, first: int, report: RowReport, row: files.InputRow, *, has_column: bool) -> None:
        number = first + report.row
        entries = [str(entry) for entry in report.entries if entry.gravity != "housekeeping"]
        if report.fate == "set_aside":
            line = {"row": number, "file": self._file, "reason": mask(report.reason), "path": report.path}
            self._write("set_aside", {**line, "changes": entries, "line": _as_it_was(row)})
        elif report.fate == "converted" and not has_column and (entries or report.violations):
            held = {"row": number, "changes": entries, "violations": list(report.violations)}
            self._write("changes", held)

    def _write(self, side: str, line: dict[str, object]) -> None:
        if side not in self._streams:
            path = temporary_path(self._paths[side])
            self._streams[side] = path, path.open("wb")
        data = encode_row(line) + b"\n"
        self._streams[side][1].write(data)
        self._hashes[side].update(data)
        self._sizes[side] += len(data)

    def finish(self) -> tuple[dict[str, int], dict[str, str]]:
        sizes: dict[str, int] = {}
        hashes: dict[str, str] = {}
        for side, (path, stream) in self._streams.items():
            stream.flush()
            os.fsync(stream.fileno())
            stream.close()
            path.replace(self._paths[side])
            name = self._paths[side].name
            sizes[name], hashes[name] = self._sizes[side], self._hashes[side].hexdigest()
        return sizes, hashes

    def abandon(self) -> None:
        for path, stream in self._streams.values():
            with contextlib.suppress(OSError):
                stream.close()
            path.unlink(missing_ok=True)


def _as_it_was(row: files.InputRow) -> object:
    """A row that is set aside, as far as it can be written down."""
    if isinstance(row, UnreadableRow):
        return None
    return row.decode(errors="replace").strip() if isinstance(row, bytes) else plain_value(row, lambda _reason: None)


def refuse_changed_inputs(plan: Plan) -> None:
    """Raise if a file has another size than when the plan was made."""
    for file in plan.inputs:
        if files.size_of(file.path) != file.size:
            hint = "--force begins anew with the file as it is now"
            raise InputError("the file has changed since the run began", path=file.path, hint=hint)

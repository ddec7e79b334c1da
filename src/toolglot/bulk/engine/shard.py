"""Converting one shard: the unit of work of every engine, the same wherever it runs.

It reads its part of a file in batches, converts each, and writes a part, its side files and, last of all, a record of
what it did. Law: the shard and the plan decide the bytes. A shard with a record whose parts have their checksums is
done.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from toolglot.bulk import formats
from toolglot.bulk.batch import convert_batch
from toolglot.bulk.engine import files
from toolglot.bulk.engine.parts import SUFFIXES, PartWriter
from toolglot.bulk.engine.plan import Plan
from toolglot.bulk.engine.tables import read_batches
from toolglot.bulk.report import ConvertedBatch, RowReport, check_totals, encode_row
from toolglot.errors import InputError
from toolglot.masking import mask

Progress = Callable[[int, int], object]
"""Called with the rows and the bytes that were done since the last time."""
_COPY: Final = 1024 * 1024
SIDES: Final = ("set_aside", "changes")


class ShardRecord(Struct, frozen=True, kw_only=True):
    """What was done for a shard.

    index: its number.
    rows: how many rows it had.
    counts: how many had each fate, and how many were made.
    reasons: why rows were merged, dropped or set aside, and how often.
    faults: what was changed, and how often.
    sizes, hashes: of its part and its side files, by name.
    """

    index: int
    plan: str
    rows: int
    counts: dict[str, int]
    reasons: dict[str, int]
    faults: dict[str, int]
    sizes: dict[str, int]
    hashes: dict[str, str]


def part_name(plan: Plan, index: int) -> str:
    """The name of the part of a shard."""
    return f"part-{index:05}-of-{len(plan.shards):05}{SUFFIXES[plan.output]}"


def side_name(side: str, index: int) -> str:
    return f".{side}-{index:05}.jsonl"


def record_path(folder: Path, index: int) -> Path:
    return folder / "done" / f"{index:05}.json"


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
    rows = 0
    try:
        for read, size in read_batches(file.path, file.kind, shard.start, shard.end, framing=source.framing):
            batch = read if limit is None else read[: max(limit - rows, 0)]
            known = None if merged is None else _slice(merged, rows, len(batch))
            made = convert_batch(batch, source=plan.source, target=plan.target, options=plan.options, merged=known)
            writer.write(made.outputs)
            _write_files(made, folder)
            for report in made.reports:
                sides.add(rows, report, batch[report.row], has_column=has_column)
                _tally(report, reasons, faults)
            totals.update(made.counts)
            rows += len(batch)
            progress(len(batch), size)
            if limit is not None and rows >= limit:
                break
        check_totals(totals.items(), rows)
        sizes, hashes = sides.finish()
        sizes[part_name(plan, index)], hashes[part_name(plan, index)] = writer.finish()
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


def hash_file(path: Path) -> str:
    state = sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_COPY):
            state.update(piece)
    return state.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """A file that is there as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


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
            text = row.decode(errors="replace").strip() if isinstance(row, bytes) else None
            self._write("set_aside", {**line, "changes": entries, "line": text if text is not None else row})
        elif report.fate == "converted" and not has_column and (entries or report.violations):
            held = {"row": number, "changes": entries, "violations": list(report.violations)}
            self._write("changes", held)

    def _write(self, side: str, line: dict[str, object]) -> None:
        if side not in self._streams:
            path = self._paths[side].with_name(f"{self._paths[side].name}.{os.getpid()}.tmp")
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
            stream.close()
            path.unlink(missing_ok=True)


def refuse_changed_inputs(plan: Plan) -> None:
    """Raise if a file has another size than when the plan was made."""
    for file in plan.inputs:
        if files.size_of(file.path) != file.size:
            hint = "--force begins anew with the file as it is now"
            raise InputError("the file has changed since the run began", path=file.path, hint=hint)

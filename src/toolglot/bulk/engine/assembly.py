"""What stands at the end of a run: one file or a folder of parts, the side files with the numbers of rows, a summary.

    out.jsonl   out.jsonl.set-aside.jsonl   out.jsonl.changes.jsonl   out.jsonl.summary.json
    out/part-00000-of-00064.jsonl …         out/set-aside.jsonl …     out/summary.json

Law: parts are put together in the order of the shards, so the bytes are those of a run with one worker.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.bulk import formats
from toolglot.bulk.engine.files import DONE, PLAN, SUMMARY, WORK, extra
from toolglot.bulk.engine.parts import open_table
from toolglot.bulk.engine.plan import Plan
from toolglot.bulk.engine.shard import SIDES, ShardRecord, hash_file, part_name, side_name, write_atomically
from toolglot.bulk.engine.tables import schema_of
from toolglot.bulk.report import FATES, check_totals, encode_row
from toolglot.jsontext import parse_plain

_COPY: Final = 1024 * 1024
_JOINED: Final = ".joined.tmp"
_MAX_LISTED: Final = 200


class RunSummary(Struct, frozen=True, kw_only=True):
    """The account of a run.

    detected: how sure it is that the rows are of that format, and which others were likely; None: it was named.
    rows: how many rows were read.
    counts: how many had each fate, how many were made, and how many of them were changed.
    reasons: why rows were merged, dropped or set aside, the most frequent first.
    faults: what was changed or lost, the most frequent first.
    outputs: the files that were written, with their size and checksum.
    """

    version: str
    plan: str
    source: str
    target: str
    detected: formats.DetectedFormat | None
    rows: int
    counts: dict[str, int]
    reasons: dict[str, int]
    faults: dict[str, int]
    outputs: dict[str, dict[str, Any]]

    @property
    def lost(self) -> int:
        """How many rows were set aside."""
        return self.counts.get("set_aside", 0)


class OutputPaths(Struct, frozen=True):
    """Where the results of a run are."""

    output: Path
    work: Path
    is_folder: bool

    def side(self, name: str) -> Path:
        file = name.replace("_", "-")
        return self.output / f"{file}.jsonl" if self.is_folder else _beside(self.output, f"{file}.jsonl")

    @property
    def summary(self) -> Path:
        return self.output / SUMMARY if self.is_folder else _beside(self.output, SUMMARY)

    @property
    def images(self) -> Path:
        return (self.output if self.is_folder else self.output.parent) / "images"


def output_paths(out: str) -> OutputPaths:
    """The paths of a run that writes to this file, or to this folder."""
    path = Path(out)
    is_folder = out.endswith("/") or path.is_dir()
    return OutputPaths(path, path if is_folder else path.with_name(f"{path.name}{WORK}"), is_folder)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")


def assemble(plan: Plan, records: Sequence[ShardRecord], paths: OutputPaths) -> RunSummary:
    """Put the parts together, and write the side files and the summary; the work folder is removed."""
    outputs: dict[str, dict[str, Any]] = {}
    if paths.is_folder:
        for record in records:
            name = part_name(plan, record.index)
            outputs[name] = {"bytes": record.sizes[name], "sha256": record.hashes[name], **_rows_of(record)}
    else:
        outputs[paths.output.name] = _join(plan, records, paths.work, paths.work / _JOINED)
    for side in SIDES:
        if _write_side(side, records, paths):
            outputs[paths.side(side).name] = _described(paths.side(side))
    _move_images(paths)
    summary = _summarise(plan, records, outputs)
    write_atomically(paths.summary, msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    if not paths.is_folder:  # last of all: a run whose output is there is over
        (paths.work / _JOINED).replace(paths.output)
    remove_work(paths, keep_parts=True)
    return summary


def remove_work(paths: OutputPaths, *, keep_parts: bool) -> None:
    """Remove what a run needs while it is not over; of a folder, only what a run has written."""
    if not paths.is_folder:
        shutil.rmtree(paths.work, ignore_errors=True)
        return
    shutil.rmtree(paths.work / DONE, ignore_errors=True)
    shutil.rmtree(paths.work / "prefixes", ignore_errors=True)
    patterns = [PLAN, ".set_aside*", ".changes*", ".part-*.tmp", f".{PLAN}.*.tmp", f".{SUMMARY}.*.tmp"]
    if not keep_parts:
        patterns += ["part-*-of-*", "set-aside.jsonl", "changes.jsonl", SUMMARY]
    for pattern in patterns:
        for path in paths.work.glob(pattern):
            path.unlink(missing_ok=True)


def _rows_of(record: ShardRecord) -> dict[str, int]:
    return {"rows": record.counts.get("outputs", 0)}


def _described(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": hash_file(path)}


def _join(plan: Plan, records: Sequence[ShardRecord], work: Path, output: Path) -> dict[str, Any]:
    """Write all parts into one file; its size and checksum. A table has no columns that are null in every row."""
    parts = [work / part_name(plan, record.index) for record in records]
    is_table = plan.output in ("parquet", "arrow")
    schema = _used_schema(plan, records) if is_table else None
    if len(records) == 1 and (schema is None or len(schema) == len(_schema(plan))):  # it is the part
        parts[0].replace(output)
        name = part_name(plan, records[0].index)
        return {"bytes": records[0].sizes[name], "sha256": records[0].hashes[name]}
    if schema is None:
        state = sha256()
        with output.open("wb") as stream:
            for part in parts:
                with part.open("rb") as held:
                    while piece := held.read(_COPY):
                        state.update(piece)
                        stream.write(piece)
        return {"bytes": output.stat().st_size, "sha256": state.hexdigest()}
    with output.open("wb") as stream:
        table = open_table(stream, plan.output, schema)
        for part in parts:
            for batch in _tables(part, plan.output):
                table.write_table(batch.select(schema.names))
        table.close()
    return _described(output)


def _schema(plan: Plan) -> Any:
    return schema_of(formats.get(plan.target), plan.columns)


def _used_schema(plan: Plan, records: Sequence[ShardRecord]) -> Any:
    """The schema without the columns that no row uses; all of it if there are no rows."""
    schema, used = _schema(plan), {name for record in records for name in record.used}
    return extra("pyarrow").schema([field for field in schema if field.name in used]) if used else schema


def _tables(part: Path, kind: str) -> Any:
    if kind == "parquet":
        with extra("pyarrow.parquet").ParquetFile(part) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)
        return
    arrow = extra("pyarrow")
    with part.open("rb") as stream:
        reader = arrow.ipc.open_file(stream)
        for number in range(reader.num_record_batches):
            yield arrow.Table.from_batches([reader.get_batch(number)])


def _write_side(side: str, records: Sequence[ShardRecord], paths: OutputPaths) -> bool:
    """Join the side files of the shards, with rows numbered in the whole input; whether there is anything."""
    target = paths.side(side)
    temporary = paths.work / f".{side}.tmp"
    base = written = 0
    with temporary.open("wb") as stream:
        for record in records:
            name = side_name(side, record.index)
            if name in record.sizes:
                with (paths.work / name).open("rb") as held:
                    for line in held:
                        entry = parse_plain(line)
                        entry["row"] += base
                        stream.write(encode_row(entry) + b"\n")
                        written += 1
            base += record.rows
    if written:
        temporary.replace(target)
    else:
        temporary.unlink()
        target.unlink(missing_ok=True)
    return written > 0


def _move_images(paths: OutputPaths) -> None:
    held = paths.work / "images"
    if paths.is_folder or not held.is_dir():
        return
    paths.images.mkdir(exist_ok=True)
    for image in sorted(held.iterdir()):
        image.replace(paths.images / image.name)


def _summarise(plan: Plan, records: Sequence[ShardRecord], outputs: dict[str, dict[str, Any]]) -> RunSummary:
    totals, reasons, faults = Counter[str](), Counter[str](), Counter[str]()
    for record in records:
        totals.update(record.counts)
        reasons.update(record.reasons)
        faults.update(record.faults)
    rows = sum(record.rows for record in records)
    check_totals(totals.items(), rows)
    names = ("rows", *FATES, "outputs", "changed", "refused")
    return RunSummary(
        version=plan.version,
        plan=plan.fingerprint,
        source=plan.source,
        target=plan.target,
        detected=plan.detected,
        rows=rows,
        counts={name: totals.get(name, 0) for name in names},
        reasons=_most(reasons),
        faults=_most(faults),
        outputs=outputs,
    )


def _most(counts: Counter[str]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return dict(ordered[:_MAX_LISTED])

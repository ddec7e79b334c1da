"""A run from files to files: plan it, or go on with one that was stopped; run its shards; put the parts together.

    summary = convert_files(["a.jsonl", "b.parquet"], "out.jsonl", target="openai", processes=8)

Law: what is finished is not done again, and nothing that exists is overwritten without `force`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

from toolglot.bulk import formats
from toolglot.bulk.batch import AUTO, check_target, writable
from toolglot.bulk.engine.assembly import OutputPaths, RunSummary, assemble, output_paths, remove_work
from toolglot.bulk.engine.files import DONE, PLAN, expand, is_remote
from toolglot.bulk.engine.local import run_tasks
from toolglot.bulk.engine.parts import output_kind
from toolglot.bulk.engine.plan import SHARD_BYTES, Plan, make_plan, read_plan
from toolglot.bulk.engine.prefixes import find_merged, hash_shard, merged_rows
from toolglot.bulk.engine.shard import (
    SIDES,
    Progress,
    ShardRecord,
    convert_shard,
    done_record,
    refuse_changed_inputs,
    unwritable,
    write_atomically,
)
from toolglot.bulk.engine.tables import Columns
from toolglot.bulk.options import DEFAULT_OPTIONS, BulkOptions
from toolglot.errors import InputError

Engine = Literal["local", "ray"]
_CHOOSE: Final = "choose another name, or overwrite it with --force"
NO_PROGRESS: Final[Progress] = lambda _rows, _bytes: None  # noqa: E731


def convert_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    target: str,
    source: str = AUTO,
    options: BulkOptions = DEFAULT_OPTIONS,
    columns: Columns = "json",
    limit: int | None = None,
    processes: int | None = None,
    engine: Engine = "local",
    shard_bytes: int = SHARD_BYTES,
    force: bool = False,
    progress: Progress = NO_PROGRESS,
    started: Callable[[Plan, int], object] = lambda _plan, _bytes: None,
) -> RunSummary:
    """Convert files of rows to one file, or to a folder of parts.

    inputs: files, folders of files, or addresses that fsspec opens.
    output: a file, whose ending says what is written, or a folder (with `/` at its end).
    target, source: the formats of the rows; `auto` detects that of the input.
    options: settings (`BulkOptions`).
    columns: how objects are written into Parquet and Arrow: as `json`, or messages as `struct`.
    limit: how many rows are read.
    processes: how many processes work; by default one for each core.
    engine: `local` processes, or `ray`.
    shard_bytes: about how large a shard is.
    force: whether existing output is overwritten, and a stopped run begun anew.
    progress: called with the rows and bytes that were done.
    started: called with the plan, and the bytes that will be gone through, when what an earlier run did is known.
    """
    if formats.get(target).write is None:
        raise InputError(f"rows of the format {target!r} cannot be written", path="--to", hint=writable())
    if options.validate:
        check_target(options.validate)
    out = os.fspath(output) + ("/" if str(output).endswith("/") and not os.fspath(output).endswith("/") else "")
    paths = output_paths(out)
    plan = _begin(
        [os.fspath(each) for each in inputs],
        out,
        paths,
        {"target": target, "source": source, "columns": columns, "limit": limit, "shard_bytes": shard_bytes},
        options,
        force=force,
    )
    fingerprint = plan.fingerprint
    known = {shard.index: done_record(shard.index, paths.work, fingerprint) for shard in plan.shards}
    for index, record in known.items():
        if record is not None:
            progress(record.rows, plan.shards[index].size)
    waiting = [index for index, record in known.items() if record is None]
    passes = 2 if options.dedupe_prefix else 1
    started(plan, 0 if limit is not None else passes * sum(plan.shards[index].size for index in waiting))
    if plan.limit is not None:
        records = _run_limited(plan, paths, progress)
    else:
        _run(plan, waiting, paths, processes or os.cpu_count() or 1, engine, progress)
        records = [_required(shard.index, paths, fingerprint, known) for shard in plan.shards]
    try:
        return assemble(plan, records, paths)
    except OSError as error:
        raise unwritable(error, paths.output) from None


def _begin(
    inputs: list[str],
    out: str,
    paths: OutputPaths,
    settings: dict[str, object],
    options: BulkOptions,
    *,
    force: bool,
) -> Plan:
    """The plan of this run: that of a run that was stopped, if it was the same; otherwise a new one."""
    _refuse_same_files(inputs, paths)
    exists = paths.summary if paths.is_folder else paths.output
    if not force and os.path.lexists(exists):
        raise InputError("output already exists", path=str(paths.output), hint=_CHOOSE)
    plan = make_plan(inputs, options=options, output=output_kind(out), **settings)  # type: ignore[arg-type]
    if force:
        remove_work(paths, keep_parts=False)
    stopped = read_plan(paths.work)
    if stopped is not None and stopped.fingerprint != plan.fingerprint:
        hint = "run it with the same inputs and options to go on, or begin anew with --force"
        raise InputError("another run was stopped here", path=str(paths.work), hint=hint)
    if stopped is None and not force:
        mine = [paths.summary, *(paths.side(side) for side in SIDES), *paths.output.glob("part-*-of-*")]
        for path in mine:
            if os.path.lexists(path):
                raise InputError("output already exists", path=str(path), hint=_CHOOSE)
    (paths.work / DONE).mkdir(parents=True, exist_ok=True)
    if stopped is None:
        write_atomically(paths.work / PLAN, plan.encoded())
    refuse_changed_inputs(plan)
    return plan


def _refuse_same_files(inputs: list[str], paths: OutputPaths) -> None:
    """Raise if the output is one of the inputs, or a folder with one: it would be overwritten while it is read."""
    output = paths.output.resolve()
    for name in expand(inputs):
        if is_remote(name):
            continue
        path = Path(name).resolve()
        if path == output or (paths.is_folder and output in path.parents):
            raise InputError("the output is also the input", path=name, hint="write somewhere else")


def _run(
    plan: Plan, waiting: list[int], paths: OutputPaths, processes: int, engine: Engine, progress: Progress
) -> None:
    if not waiting:
        return
    if plan.options.dedupe_prefix and any(merged_rows(paths.work, shard.index) is None for shard in plan.shards):
        everything = [shard.index for shard in plan.shards]
        run_tasks(plan, "hash", everything, paths.work, processes, progress)
        find_merged(plan, paths.work)
    if engine == "ray":
        from toolglot.bulk.engine.on_ray import run_on_ray  # noqa: PLC0415 - only for this engine

        run_on_ray(waiting, paths.work, progress)
        return
    run_tasks(plan, "convert", waiting, paths.work, processes, progress)


def _run_limited(plan: Plan, paths: OutputPaths, progress: Progress) -> list[ShardRecord]:
    """The first rows only: shard by shard, until there are enough."""
    records: list[ShardRecord] = []
    left = plan.limit or 0
    if plan.options.dedupe_prefix:
        _find_merged_within(plan, paths, left)
    for shard in plan.shards:
        if left <= 0:
            break
        merged = merged_rows(paths.work, shard.index) if plan.options.dedupe_prefix else None
        record = convert_shard(plan, shard.index, paths.work, progress=progress, limit=left, merged=merged)
        left -= record.rows
        records.append(record)
    return records


def _find_merged_within(plan: Plan, paths: OutputPaths, limit: int) -> None:
    """Find the rows that are merged into others of the first rows."""
    hashed: list[int] = []
    for shard in plan.shards:
        if limit <= 0:
            break
        limit -= hash_shard(plan, shard.index, paths.work, limit=limit)
        hashed.append(shard.index)
    find_merged(plan, paths.work, hashed)


def _required(index: int, paths: OutputPaths, fingerprint: str, known: dict[int, ShardRecord | None]) -> ShardRecord:
    record = known.get(index) or done_record(index, paths.work, fingerprint, is_new=True)
    if record is None:
        raise InputError(f"shard {index} is not complete", path=str(Path(paths.work)), hint="run it again to go on")
    return record

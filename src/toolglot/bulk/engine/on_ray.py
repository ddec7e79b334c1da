"""The engine on Ray: Ray Data's `map_batches` over the shards of a plan, on a cluster or on this machine.

A row of the dataset is the number of a shard, and the function is `convert_shard`. Ray starts a task again whose worker
or node died; a shard that is done already is not done again. All nodes must see the input and the work folder under the
same paths: a shared file system, or one machine.

Law: Ray decides who works and when, the plan decides the bytes.
"""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

from toolglot.bulk.engine.plan import read_plan
from toolglot.bulk.engine.prefixes import merged_rows
from toolglot.bulk.engine.shard import Progress, convert_shard, done_record
from toolglot.errors import InputError, how_to_install


def run_on_ray(waiting: list[int], folder: Path, progress: Progress) -> None:
    """Convert shards on Ray: on the cluster that is connected, or one that `RAY_ADDRESS` names, or a local one."""
    try:
        ray = importlib.import_module("ray")
        data = importlib.import_module("ray.data")
    except ImportError:
        raise InputError("Ray is not installed", path="--engine", hint=how_to_install("ray")) from None
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(include_dashboard=False, logging_level=logging.WARNING, log_to_driver=False)
    log = logging.getLogger("ray.data")
    level = log.level
    log.setLevel(logging.ERROR)  # its plan and its progress are not those of the user
    try:
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = False
        rows = data.from_items([{"index": index} for index in waiting], override_num_blocks=len(waiting))
        done = rows.map_batches(
            _ShardTask(str(folder.resolve())),
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
        )
        for row in done.iter_rows():
            progress(int(row["rows"]), int(row["bytes"]))
    finally:
        log.setLevel(level)
        if is_ours:
            ray.shutdown()


class _ShardTask:
    """What a task of Ray runs. It carries the path of the plan, which every worker reads itself."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        folder = Path(self._folder)
        plan = read_plan(folder)
        if plan is None:
            raise InputError("the run has no plan", path=self._folder, hint="do all nodes see this folder?")
        fingerprint = plan.fingerprint
        rows: list[int] = []
        sizes: list[int] = []
        for index in map(int, batch["index"]):
            record = done_record(index, folder, fingerprint)
            if record is None:
                record = convert_shard(plan, index, folder, merged=merged_rows(folder, index))
            rows.append(record.rows)
            sizes.append(plan.shards[index].size)
        numpy = importlib.import_module("numpy")
        return {"rows": numpy.array(rows), "bytes": numpy.array(sizes)}

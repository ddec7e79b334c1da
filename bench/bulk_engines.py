"""The same conversion of small rows by local processes, on Ray, and as people write it by hand for `datasets.map`.

What is installed is measured, each in turn, from file to file: CPU of all processes that belong to it, and the time on
the clock. Ray is started once, before, and its start is printed apart. `BULK_ROWS` is the number of rows of 2 kB
(default: 30,000).

`datasets.map` is the usual script: `load_dataset("json")`, a function that moves calls and results with `json.loads`,
and `to_json`. It checks nothing, pairs by order, and reports nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bulk import cpu, small_row
from timing import in_turn
from toolglot.bulk.engine.run import convert_files

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "3"))
PROCESSES: Final = 2


def by_hand(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows of ms-swift as rows of OpenAI, as scripts do it."""
    made = []
    for messages in batch["messages"]:
        out: list[dict[str, Any]] = []
        ids: list[str] = []
        for message in messages:
            if message["role"] == "tool_call":
                call = json.loads(message["content"])
                ids.append(f"call_{len(ids)}")
                function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
                if not out or "tool_calls" not in out[-1]:
                    out.append({"role": "assistant", "content": None, "tool_calls": []})
                out[-1]["tool_calls"].append({"id": ids[-1], "type": "function", "function": function})
            elif message["role"] == "tool_response":
                out.append({"role": "tool", "tool_call_id": ids.pop(0), "content": message["content"]})
            else:
                out.append(dict(message))
        made.append(json.dumps(out))
    return {"messages": made}


def with_datasets(path: Path, processes: int) -> None:
    datasets = importlib.import_module("datasets")
    folder = Path(tempfile.mkdtemp(prefix="bench-datasets"))
    try:
        datasets.disable_progress_bars()
        rows = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder))
        made = rows.map(by_hand, batched=True, num_proc=processes if processes > 1 else None)
        made.to_json(str(folder / "out.jsonl"))
    finally:
        shutil.rmtree(folder)


def tree_cpu() -> float:
    """CPU seconds of this process and all below it, also those that nobody has waited for."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / ticks
    found = [os.getpid()]
    for known in found:
        found += [pid for pid, parent in parents.items() if parent == known]
    return sum(used.get(pid, 0.0) for pid in found[1:]) + cpu()


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="bench-engines"))
    count = int(os.environ.get("BULK_ROWS", "30000"))
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(small_row(number) + b"\n" for number in range(count)))
    size = path.stat().st_size
    shard = size // 8 + 1

    def converted(engine: Any, processes: int) -> Callable[[], object]:
        out = folder / f"{engine}.{processes}.jsonl"
        return lambda: convert_files(
            [path],
            out,
            source="swift",
            target="openai",
            processes=processes,
            engine=engine,
            shard_bytes=shard,
            force=True,
        )

    runs: dict[str, Callable[[], object]] = {
        "local, 1 process": converted("local", 1),
        f"local, {PROCESSES} processes": converted("local", PROCESSES),
    }
    if importlib.util.find_spec("ray") is not None:
        ray = importlib.import_module("ray")
        began, used = time.monotonic(), tree_cpu()
        ray.init(num_cpus=PROCESSES, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        print(f"start of Ray: {time.monotonic() - began:.1f} s, {tree_cpu() - used:.1f} s of CPU")
        runs[f"ray, {PROCESSES} CPUs"] = converted("ray", PROCESSES)
    if importlib.util.find_spec("datasets") is not None:
        runs["datasets.map with json, by hand"] = lambda: with_datasets(path, 1)
        runs[f"datasets.map with json, {PROCESSES} processes"] = lambda: with_datasets(path, PROCESSES)

    clock: dict[str, list[float]] = {name: [] for name in runs}

    def measured(name: str, run: Callable[[], object]) -> Callable[[], float]:
        def once() -> float:
            began, used = time.monotonic(), tree_cpu()
            run()
            clock[name].append(time.monotonic() - began)
            return tree_cpu() - used

        return once

    try:
        times = in_turn(ROUNDS, {name: measured(name, run) for name, run in runs.items()})
    finally:
        shutil.rmtree(folder)
    print(f"{count:,} rows, {size / 1e6:.0f} MB, best of {ROUNDS}\n{'':<38}{'CPU s':>8}{'µs a row':>10}{'clock s':>9}")
    for name, each in times.items():
        print(f"{name:<38}{min(each):>8.2f}{1e6 * min(each) / count:>10.0f}{min(clock[name]):>9.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

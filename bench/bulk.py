"""What a conversion in bulk costs, next to reading and writing the same JSON.

Rows of about 100 kB (a coding agent's session) and of about 2 kB (a short dialogue with two calls), from file to file
in one process, and on two processes. The floor is an untyped read and write of the same lines. Exits with 1 when a
limit is broken. `BULK_ROWS=1000000` converts so many rows of 2 kB once, from end to end, and prints what it took.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from agent_body import agent_body
from timing import in_turn
from toolglot.bulk import convert_batch
from toolglot.bulk.engine.run import convert_files

ROUNDS: Final = 5
LARGE_ROWS: Final = 300
SMALL_ROWS: Final = 15_000
LARGE_MB: Final = 60.0
"""Megabytes a second and core at least, for large rows with the full render."""
SAME_MB: Final = 120.0
"""The same where nothing has to change."""
SMALL_PER_SECOND: Final = 5_000.0
SPREAD: Final = 1.10
"""CPU a row with two processes, as a ratio to one."""

write = msgspec.json.Encoder().encode
read = msgspec.json.decode

TOOL: Final = {
    "type": "function",
    "function": {
        "name": "search_files",
        "description": "Searches files for a text and lists the lines in which it occurs, with their numbers.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path", "text"],
        },
    },
}


def small_row(number: int) -> bytes:
    """A dialogue of about 2 kB with two calls, in the form of ms-swift."""
    words = f"Where is the function number {number} that reads the configuration, and who calls it? " * 3
    call = {"name": "search_files", "arguments": {"path": f"src/module_{number}", "text": "read_config", "limit": 20}}
    result = "\n".join(f"src/module_{number}/file_{line}.py:{line}: config = read_config(path)" for line in range(8))
    messages = [
        {"role": "system", "content": "You answer questions about a repository. Say where things are."},
        {"role": "user", "content": words},
        {"role": "tool_call", "content": write(call).decode()},
        {
            "role": "tool_call",
            "content": write({**call, "arguments": {"path": "tests", "text": "read_config"}}).decode(),
        },
        {"role": "tool_response", "content": result},
        {"role": "tool_response", "content": result[:200]},
        {"role": "assistant", "content": f"It is in src/module_{number}/file_3.py, and seven others call it."},
    ]
    return write({"tools": write([TOOL]).decode(), "messages": messages})


def large_rows() -> tuple[list[bytes], list[bytes]]:
    """Sessions of a coding agent of about 100 kB: as requests of Anthropic, and as rows that need no change."""
    bodies = [agent_body(34 + number % 4) for number in range(12)]
    same = [made.as_line() for made in convert_batch(bodies, source="request:anthropic", target="openai").outputs]
    return [bodies[n % 12] for n in range(LARGE_ROWS)], [same[n % 12] for n in range(LARGE_ROWS)]


def file_of(folder: Path, name: str, lines: list[bytes]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(run: Callable[[], Any]) -> Callable[[], float]:
    def once() -> float:
        start = cpu()
        run()
        return cpu() - start

    return once


def floor(path: Path, out: Path) -> None:
    with path.open("rb") as source, out.open("wb") as target:
        for line in source:
            target.write(write(read(line)) + b"\n")


def conversion(path: Path, source: str, target: str, processes: int = 1) -> Callable[[], object]:
    out = path.with_name(f"{path.stem}.{processes}.out.jsonl")
    size = path.stat().st_size // 4 + 1
    return lambda: convert_files(
        [path], out, source=source, target=target, processes=processes, force=True, shard_bytes=size
    )


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="bench-bulk"))
    try:
        rows = int(os.environ.get("BULK_ROWS", "0"))
        return end_to_end(folder, rows) if rows else ratios(folder)
    finally:
        shutil.rmtree(folder)


def ratios(folder: Path) -> int:
    foreign, same = large_rows()
    files = {
        "large": file_of(folder, "large", foreign),
        "same": file_of(folder, "same", same),
        "small": file_of(folder, "small", [small_row(number) for number in range(SMALL_ROWS)]),
    }
    idle = cpu()
    convert_files([file_of(folder, "one", [small_row(0)])], folder / "one.out.jsonl", target="openai", processes=1)
    print(f"first run in this process: {cpu() - idle:.2f} s of CPU\n")
    runs: dict[str, tuple[str, Callable[[], object]]] = {
        "large: json only": ("large", lambda: floor(files["large"], folder / "floor.jsonl")),
        "large: anthropic -> openai, full render": ("large", conversion(files["large"], "request:anthropic", "openai")),
        "large: anthropic -> messages": ("large", conversion(files["large"], "request:anthropic", "messages")),
        "same: json only": ("same", lambda: floor(files["same"], folder / "floor.jsonl")),
        "same: openai -> openai, nothing changes": ("same", conversion(files["same"], "openai", "openai")),
        "small: json only": ("small", lambda: floor(files["small"], folder / "floor.jsonl")),
        "small: swift -> openai": ("small", conversion(files["small"], "swift", "openai")),
        "small: swift -> openai, 2 processes": ("small", conversion(files["small"], "swift", "openai", 2)),
        "small: swift -> sharegpt (read back)": ("small", conversion(files["small"], "swift", "sharegpt")),
    }
    times = in_turn(ROUNDS, {name: measured(run) for name, (_, run) in runs.items()})
    print(f"{'from file to file, CPU of all processes':<44}{'MB/s':>8}{'rows/s':>10}{'x json':>8}")
    rate: dict[str, tuple[float, float]] = {}
    counts = {"large": LARGE_ROWS, "same": LARGE_ROWS, "small": SMALL_ROWS}
    for name, (file, _) in runs.items():
        best = min(times[name])
        rate[name] = files[file].stat().st_size / best / 1e6, counts[file] / best
        ratio = best / min(times[f"{file}: json only"])
        print(f"{name:<44}{rate[name][0]:>8.0f}{rate[name][1]:>10,.0f}{ratio:>8.2f}")
    start = min(
        measured(conversion(file_of(folder, "none", [small_row(0)] * 4), "swift", "openai", 2))() for _ in range(3)
    )
    one, two = min(times["small: swift -> openai"]), min(times["small: swift -> openai, 2 processes"]) - start
    print(f"\nCPU a row with 2 processes, without their start ({start:.2f} s): {two / one:.2f} times that of 1")
    checks = {
        f"large rows, full render: >= {LARGE_MB:.0f} MB/s": rate["large: anthropic -> openai, full render"][0]
        >= LARGE_MB,
        f"nothing changes: >= {SAME_MB:.0f} MB/s": rate["same: openai -> openai, nothing changes"][0] >= SAME_MB,
        f"small rows: >= {SMALL_PER_SECOND:,.0f} a second": rate["small: swift -> openai"][1] >= SMALL_PER_SECOND,
        f"2 processes: <= {SPREAD:.2f} times the CPU": two / one <= SPREAD,
    }
    for text, kept in checks.items():
        print(f"{'yes' if kept else 'NO':<4}{text}")
    return 0 if all(checks.values()) else 1


def end_to_end(folder: Path, rows: int) -> int:
    """Convert many small rows once, with all cores."""
    path = folder / "rows.jsonl"
    with path.open("wb") as stream:
        for number in range(rows):
            stream.write(small_row(number) + b"\n")
    size = path.stat().st_size
    processes = int(os.environ.get("BULK_PROCESSES", str(os.cpu_count() or 1)))
    began, used = time.monotonic(), cpu()
    summary = convert_files([path], folder / "out.jsonl", source="swift", target="openai", processes=processes)
    seconds, used = time.monotonic() - began, cpu() - used
    largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(f"{summary.rows:,} rows, {size / 1e6:,.0f} MB, {processes} processes: {seconds:.1f} s, {used:.1f} s of CPU")
    print(f"{rows / seconds:,.0f} rows/s, {size / seconds / 1e6:.0f} MB/s; a core: {rows / used:,.0f} rows/s, ", end="")
    print(f"{size / used / 1e6:.0f} MB/s; largest process {largest:.0f} MB")
    print(f"counts: {summary.counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A conversion on a local Ray cluster whose workers are killed while it runs: `python -m support.bulk.ray_run …`.

    ray_run.py IN OUT TEMP KILLS SHARD_BYTES

Writes how many workers were killed, as JSON. A worker is killed whenever a few more shards are done: which one, is
random with a seed. Only descendants of this process are killed.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes below one, as /proc shows them."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found[1:]


def ray_workers() -> list[int]:
    """The workers of Ray that run tasks of the conversion."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if name.startswith(b"ray::") and b"_ShardTask" in name:
            found.append(pid)
    return found


class Killer(threading.Thread):
    """Kills a worker each time that more shards are done."""

    def __init__(self, done: Path, kills: int) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self.over = threading.Event()
        self._done = done
        self._kills = kills

    def run(self) -> None:
        draw = random.Random(7)  # noqa: S311 - which worker
        seen = -1
        while len(self.killed) < self._kills and not self.over.wait(0.01):
            count = len(list(self._done.glob("*.json"))) if self._done.is_dir() else 0
            workers = ray_workers() if count > seen else []
            if not workers:
                continue
            pid = draw.choice(workers)
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
            self.killed.append(pid)
            seen = count + draw.randint(0, 2)


def main() -> None:
    source, output, temp, kills, shard_bytes = sys.argv[1:]
    import ray  # noqa: PLC0415 - it takes seconds

    from toolglot.bulk.engine.run import convert_files  # noqa: PLC0415

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False, _temp_dir=temp)
    killer = Killer(Path(f"{output}.work/done"), int(kills))
    killer.start()
    summary = convert_files([source], output, target="openai", engine="ray", shard_bytes=int(shard_bytes))
    killer.over.set()
    killer.join()
    ray.shutdown()
    sys.stdout.write(json.dumps({"killed": len(set(killer.killed)), "rows": summary.rows}) + "\n")


if __name__ == "__main__":
    main()

"""The local engine: worker processes over the shards of a plan.

States of a shard: waiting → running in one worker → done; back to waiting when its worker dies, at most `MAX_DEATHS`
times. Law: a dead worker costs its shard's time and nothing else; an error of a shard ends the run with that error.
"""

from __future__ import annotations

import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from toolglot.bulk.engine.plan import Plan
from toolglot.bulk.engine.prefixes import hash_shard, merged_rows
from toolglot.bulk.engine.shard import Progress, convert_shard
from toolglot.errors import InputError

MAX_DEATHS: Final = 8


def run_tasks(plan: Plan, task: str, indexes: Sequence[int], folder: Path, processes: int, progress: Progress) -> None:
    """Do a task for shards, in this process or in several others."""
    count = min(processes, len(indexes))
    if count <= 1:
        for index in indexes:
            run_task(plan, task, index, folder, progress)
        return
    pool = _Pool(plan, task, folder, progress)
    try:
        pool.run(list(indexes), count)
    finally:
        pool.close()


def run_task(plan: Plan, task: str, index: int, folder: Path, progress: Progress) -> None:
    """Do one task of a run in this process."""
    if task == "hash":
        hash_shard(plan, index, folder, progress=progress)
    else:
        convert_shard(plan, index, folder, progress=progress, merged=merged_rows(folder, index))


class _Worker:
    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "toolglot.bulk.engine.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.index: int | None = None
        """The shard that it works on."""
        self.rest = b""

    @property
    def output(self) -> IO[bytes]:
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        return self.process.stdout

    def start(self, task: str, index: int, folder: Path) -> None:
        self.index = index
        line = msgspec.json.encode({"task": task, "index": index, "folder": str(folder)})
        assert self.process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self.process.stdin.write(line + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return  # its end is seen at its output

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """The events that came, and whether the process is still there."""
        data = self.output.read1(1 << 16)  # type: ignore[attr-defined]
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [msgspec.json.decode(line) for line in lines if line], bool(data)


class _Pool:
    def __init__(self, plan: Plan, task: str, folder: Path, progress: Progress) -> None:
        self._plan = plan
        self._task = task
        self._folder = folder
        self._progress = progress
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._deaths: Counter[int] = Counter()
        self._waiting: list[int] = []
        self._left = 0

    def run(self, indexes: list[int], count: int) -> None:
        self._waiting = indexes[::-1]
        self._left = len(indexes)
        for _ in range(count):
            self._begin()
        while self._left:
            for key, _ in self._selector.select():
                self._take(key.data)

    def close(self) -> None:
        """End the workers. One that is busy is not waited for: its temporary files are never read."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.communicate()
        self._selector.close()

    def _begin(self) -> None:
        worker = _Worker()
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        worker.index = None
        if self._waiting:
            worker.start(self._task, self._waiting.pop(), self._folder)

    def _take(self, worker: _Worker) -> None:
        events, is_alive = worker.read()
        for event in events:
            if "done" in event:
                self._left -= 1
                self._feed(worker)
            elif "error" in event:
                raise InputError(event["error"], path=event["path"], hint=event["hint"])
            else:
                self._progress(event["rows"], event["bytes"])
        if not is_alive:
            self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        """A worker died: its shard waits again, and another worker takes its place."""
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.communicate()
        if worker.index is None:
            return
        self._deaths[worker.index] += 1
        if self._deaths[worker.index] >= MAX_DEATHS:
            file = self._plan.inputs[self._plan.shards[worker.index].file]
            raise InputError(
                f"the worker of shard {worker.index} died {MAX_DEATHS} times",
                path=file.path,
                hint="is there enough memory? fewer --processes need less; what is done is not done again",
            )
        self._waiting.insert(0, worker.index)  # the others first: it may be the shard that kills workers
        self._begin()

"""Ends what a test run has started and removes its folders, once the run is over in whatever way.

    python run_watcher.py PID FOLDER...

The run is over when a byte or the end of the input comes, or when the process PID has ended: that is seen after a kill
too. A process is of the run if the folder stands in its environment as TOOLGLOT_TEST_RUN, if it works inside one of the
folders (servers that write over their environment do), or if its parent is one of the run. They are sent
SIGTERM, then killed. Without /proc only the folders are removed.

Imports nothing but the standard library: it starts with every run.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

MARK: Final = "TOOLGLOT_TEST_RUN"
PROCESSES: Final = Path("/proc")
GRACE: Final = 5.0
"""Seconds for a process to end after each way of asking."""
WAYS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
"""Postgres waits for its clients after the first and does not after the second; after the third it leaves shared memory
behind."""


def processes_of_run(folders: Sequence[str], spared: Iterable[int] = ()) -> set[int]:
    """The ids of the processes of a run that are there now; of those that are spared, only what they have started."""
    spared = {*spared}
    parents: dict[int, int] = {}
    found: set[int] = set()
    for entry in PROCESSES.iterdir() if PROCESSES.is_dir() else ():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            with contextlib.suppress(OSError):
                if _is_marked((entry / "environ").read_bytes(), folders) or _is_inside(entry / "cwd", folders):
                    found.add(int(entry.name))
    while more := {pid for pid, parent in parents.items() if parent in found | spared and pid not in found}:
        found |= more
    return found - spared - {os.getpid()}


def _is_marked(environment: bytes, folders: Sequence[str]) -> bool:
    marks = [part for part in environment.split(b"\0") if part.startswith(f"{MARK}=".encode())]
    paths = [os.fsdecode(mark.partition(b"=")[2]) for mark in marks]
    return any(_is_under(path, folder) for path in paths for folder in folders)


def _is_inside(link: Path, folders: Sequence[str]) -> bool:
    path = os.readlink(link)  # noqa: PTH115 - a name that may end with " (deleted)"
    return any(_is_under(path, folder) for folder in folders)


def _is_under(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def end_processes(folders: Sequence[str], spared: Iterable[int] = ()) -> None:
    """Ask, and then kill, until none is left."""
    for way in WAYS:
        end = time.monotonic() + GRACE
        signalled: set[int] = set()
        while left := processes_of_run(folders, spared):
            for pid in left - signalled:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, way)
            signalled |= left
            if time.monotonic() > end:
                break
            time.sleep(0.02)


def wait_for_end(pid: int) -> None:
    """Wait for input, for its end, or for the end of the process."""
    watched: list[int] = [sys.stdin.fileno()]
    if hasattr(os, "pidfd_open"):
        try:
            watched.append(os.pidfd_open(pid))
        except ProcessLookupError:
            return
        except OSError:  # a kernel without it
            pass
    select.select(watched, [], [])


def main() -> None:
    pid, folders = int(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wait_for_end(pid)
    end_processes(folders, spared=[pid])
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

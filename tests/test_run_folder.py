"""What a test run starts ends with it, however it ends: servers, gateways, folders."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.runs.run_watcher import processes_of_run

HERE = Path(__file__).parent
HANG_SECONDS = 300.0

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are found as Linux shows them")


class Run:
    """A run of pytest that has started one of everything and waits."""

    def __init__(self, *words: str, **environment: str) -> None:
        command = [sys.executable, "-m", "pytest", "-q", *words, str(HERE / "support" / "runs" / "interrupted_run.py")]
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(HANG_SECONDS)
            self.pytest = subprocess.Popen(
                command,
                cwd=HERE.parent,
                env={**os.environ, "PORT": str(server.getsockname()[1]), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # as a shell does it: a group of its own, which gets what Ctrl-C sends
            )
            self._connection, _ = server.accept()
        self._connection.settimeout(HANG_SECONDS)
        self.message: dict[str, Any] = json.loads(self._connection.makefile().readline())
        self.folders = [self.message["run"], *self.message["folders"]]
        watchers = [pid for pid in self._children() if b"run_watcher.py" in _words(pid)]
        self._watcher = os.pidfd_open(watchers[0])

    def _children(self) -> list[int]:
        return [
            int(pid) for pid in Path(f"/proc/{self.pytest.pid}/task/{self.pytest.pid}/children").read_text().split()
        ]

    def processes(self) -> set[int]:
        """All that there are now, found by the folder and by the message of the run."""
        return processes_of_run(self.folders) | {pid for pid in self.message["started"].values() if _words(pid)}

    def go_on(self) -> None:
        self._connection.close()

    def output(self) -> str:
        return self.pytest.communicate(timeout=HANG_SECONDS)[0].decode()

    def wait_for_the_watcher(self) -> None:
        assert select.select([self._watcher], [], [], HANG_SECONDS)[0], "the watcher hangs"

    def close(self) -> None:
        self._connection.close()
        os.close(self._watcher)
        if self.pytest.poll() is None:
            self.pytest.kill()
        self.pytest.communicate()


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


ALONE: tuple[str, ...] = ()
WITH_WORKERS = ("-n", "1")


def assert_nothing_is_left(run: Run) -> None:
    run.wait_for_the_watcher()
    assert run.processes() == set()
    assert [folder for folder in run.folders if Path(folder).exists()] == []


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (ALONE, signal.SIGKILL),
        (ALONE, signal.SIGINT),
        (WITH_WORKERS, signal.SIGKILL),
        (WITH_WORKERS, signal.SIGTERM),
        (WITH_WORKERS, signal.SIGINT),
    ],
)
def test_a_run_that_is_ended_half_way_leaves_no_process_and_no_folder(
    words: tuple[str, ...], how: signal.Signals
) -> None:
    with contextlib.closing(Run(*words)) as run:
        assert run.processes() >= {*run.message["started"].values()}
        assert all(Path(folder).is_dir() for folder in run.folders)
        if how == signal.SIGINT:
            os.killpg(run.pytest.pid, how)
        else:
            run.pytest.send_signal(how)
        run.output()
        assert_nothing_is_left(run)


def test_a_run_that_fails_has_ended_everything_when_it_ends() -> None:
    with contextlib.closing(Run(*WITH_WORKERS)) as run:
        run.go_on()
        assert "1 failed" in run.output()
        assert run.processes() == set()
        assert_nothing_is_left(run)


def test_a_run_whose_worker_is_killed_leaves_no_process_and_no_folder() -> None:
    with contextlib.closing(Run(*WITH_WORKERS, IS_DEAF="yes")) as run:
        os.kill(run.message["worker"], signal.SIGKILL)
        assert "1 failed" in run.output()
        assert_nothing_is_left(run)

"""One folder for a whole test run, and nothing left of the run when it is over.

A plugin of pytest. Every temporary file of the run is in one folder (the tests', their fixtures', and those of the
processes that they start). When the run ends, and also when it is killed, `run_watcher.py` ends all processes of the
run and removes the folder. To look at the files of a failed test, give them another folder: `pytest --basetemp=look`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from support.runs import run_watcher

MEMORY: Final = Path("/dev/shm")  # noqa: S108
_WATCHER: Final = pytest.StashKey[subprocess.Popen[bytes]]()


def memory_folder() -> Path:
    """A folder of the run in memory where that can be, for what writes much and often; otherwise on the disk."""
    folder = _in_memory(os.environ[run_watcher.MARK]) if MEMORY.is_dir() else Path(os.environ[run_watcher.MARK])
    folder.mkdir(exist_ok=True)
    return folder


def _in_memory(folder: str) -> Path:
    return MEMORY / Path(folder).name


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # a worker of a run, which has the folder
        return
    environment = {name: value for name, value in os.environ.items() if name != run_watcher.MARK}
    folder = tempfile.mkdtemp(prefix="toolglot-tests-")
    Path(folder).chmod(0o711)  # Postgres runs as another user
    config.stash[_WATCHER] = subprocess.Popen(
        [sys.executable, "-I", "-S", run_watcher.__file__, str(os.getpid()), folder, str(_in_memory(folder))],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,  # Ctrl-C is not for it
    )
    os.environ |= {run_watcher.MARK: folder, "TMPDIR": folder}
    tempfile.tempdir = folder
    if config.option.basetemp is None:
        config.option.basetemp = f"{folder}/pytest"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    watcher = config.stash.get(_WATCHER, None)
    if watcher is not None:
        watcher.communicate(b"over")

"""Sessions in processes that are killed, and what is left of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hostile.kill_target import STORE_FAILED, Outcome, lines_of
from support.runs.run_folder import memory_folder

HERE = Path(__file__).parent
TESTS = HERE.parents[1]


class Forks:
    """A process that forks those that are killed."""

    def __init__(self) -> None:
        path = os.pathsep.join(map(str, (TESTS.parent / "src", TESTS)))
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "kill_target.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._line() == "ready"
        self.kills = 0

    def run(self, folder: Path, **order: Any) -> Outcome:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), **order}) + "\n")
        self._process.stdin.flush()
        outcome = Outcome(*json.loads(self._line()))
        wrong = folder / "wrong"
        assert not wrong.exists(), wrong.read_text()
        assert outcome.was_killed or outcome.code == 0 or (order.get("may_fail") and outcome.code == STORE_FAILED)
        effects = lines_of(folder / "effects")
        assert len(set(effects)) == len(effects), "a call ran twice"
        self.kills += outcome.was_killed
        return outcome

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


MOST_RUNS = 40
"""Of one session: each gets a little further."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that can be: what a process has written outlives it there as well, and the disk is slow."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        yield Path(name)


@pytest.fixture
def forks() -> Iterator[Forks]:
    started = Forks()
    try:
        yield started
    finally:
        started.end()

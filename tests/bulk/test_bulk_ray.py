"""A real local Ray cluster: the same bytes as the local engine, with workers and the driver killed.

The long form, which is a part of the soak, kills twenty workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.bulk.made_files import hash_of, sharegpt_rows, write_lines
from support.long_form import IS_LONG
from support.runs.soak_counts import KILLS as KILLED
from support.waiting import wait_until
from toolglot.bulk.engine.run import convert_files

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")
pytest.importorskip("pandas", reason="Ray Data needs pandas: pip install '.[ray]'")
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks for processes in /proc")

TESTS = Path(__file__).parents[1]
KILLS = 20 if IS_LONG else 2
HALF = 500 if IS_LONG else 200
"""Rows before and behind the broken one."""
SHARD = 4_000


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """A short path, since Ray's sockets are in it. What Ray leaves running there is ended."""
    folder = Path(tempfile.mkdtemp(prefix="ry", dir="/tmp"))
    yield folder
    end_ray(folder)
    shutil.rmtree(folder, ignore_errors=True)


def end_ray(folder: Path) -> None:
    """Kill all processes of the cluster whose files are in a folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def start(source: Path, output: Path, folder: Path, kills: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-W", "ignore", "-m", "support.bulk.ray_run"]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.Popen(
        [*words, str(source), str(output), str(folder), str(kills), str(SHARD)],
        cwd=TESTS,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def test_ray_gives_the_bytes_of_the_local_engine_whatever_is_killed(
    tmp_path: Path, ray_folder: Path, record_property: Callable[[str, object], None]
) -> None:
    source = write_lines(tmp_path / "in.jsonl", [*sharegpt_rows(HALF), "{", *sharegpt_rows(HALF)])
    convert_files([source], tmp_path / "whole.jsonl", target="openai", processes=1, shard_bytes=SHARD)
    out = tmp_path / "out.jsonl"
    done = tmp_path / "out.jsonl.work" / "done"
    for number, everything in enumerate((False, True) if IS_LONG else (False,), 1):
        driver = start(source, out, ray_folder, 0)
        wait_until(lambda number=number: done.is_dir() and len(list(done.iterdir())) >= 3 * number)  # type: ignore[misc]
        os.kill(driver.pid, signal.SIGKILL)
        if everything:
            end_ray(ray_folder)
        driver.communicate()
    finished = {path.name for path in done.glob("*.json")}
    assert not out.exists()
    driver = start(source, out, ray_folder, KILLS)
    printed, _ = driver.communicate(timeout=900)
    assert driver.returncode == 0
    found = json.loads(printed.splitlines()[-1])
    assert found["rows"] == 2 * HALF + 1
    assert found["killed"] >= KILLS
    record_property(KILLED, found["killed"] + 1)
    assert finished
    assert hash_of(out) == hash_of(tmp_path / "whole.jsonl")
    sides = [path.with_name(f"{path.name}.set-aside.jsonl") for path in (out, tmp_path / "whole.jsonl")]
    assert hash_of(sides[0]) == hash_of(sides[1])

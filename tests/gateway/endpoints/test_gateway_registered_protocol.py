"""A protocol that is registered after the gateway was imported is served too: its paths, and its description."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import toolglot

TESTS = Path(__file__).parents[2]
TOY = TESTS / "protocols" / "toy_lines"
SOURCE = Path(toolglot.__file__).parents[1]


def test_a_protocol_that_is_registered_later_is_served(tmp_path: Path) -> None:
    shutil.copytree(TOY, tmp_path / "toy_lines", ignore=shutil.ignore_patterns("__pycache__"))
    ran = subprocess.run(
        [sys.executable, str(TESTS / "support" / "gateway" / "toy_gateway.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join((str(tmp_path), str(SOURCE))), "PATH": ""},
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert (found["before"], found["after"], found["described"]) == (404, 200, True)
    assert found["reply"]["line"]["who"] == "model"
    assert found["reply"]["line"]["text"]
    assert found["unconfigured"] == 400, "without a profile for its clients"
    assert "unknown provider 'toys'" in found["error"]["error"]["message"]

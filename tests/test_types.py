"""The types that users get: examples and the whole public surface are clean under pyright's strict mode.

mypy's strict mode is part of `make check`, for the same files. Pyright comes with its own Node.js, from PyPI.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import toolglot

ROOT = Path(__file__).parents[1]
SURFACE = ROOT / "tests" / "support" / "public_surface.py"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_examples_and_the_public_surface_are_clean_under_pyright_strict() -> None:
    """The files are listed in pyrightconfig.json."""
    checked = check(ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 errors, 0 warnings" in checked.stdout


def test_the_file_that_is_checked_uses_every_public_name() -> None:
    used = {*re.findall(r"\b\w+\b", SURFACE.read_text(encoding="utf-8").partition('"""\n')[2])}
    assert {*toolglot.__all__} <= used


def test_pyright_notices_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "strict", "include": ["wrong.py"], "extraPaths": ["{ROOT / "src"}"]}}'
    )
    (tmp_path / "wrong.py").write_text(
        "import toolglot\n\n\n@toolglot.tool\ndef double(number: int) -> int:\n    return number * 2\n\n\n"
        'double("four")\nshown: str = double(4)\n'
    )
    checked = check(tmp_path)
    assert checked.returncode == 1
    assert "2 errors" in checked.stdout, checked.stdout

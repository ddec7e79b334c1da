"""docs/architecture.md names every folder, the layers of the linter, and functions that exist."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import reduce
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "toolglot"
PAGE: Final = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS: Final = re.findall(r"^\| (\d+) \| `([\w/]+)\.py` \| `([\w.]+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("number", "file", "function"), STEPS, ids=[f"{file}:{name}" for _, file, name in STEPS])
def test_a_step_of_the_request_names_a_function_that_exists(number: str, file: str, function: str) -> None:
    module = importlib.import_module("toolglot." + file.replace("/", "."))
    assert callable(reduce(getattr, function.split("."), module)), number


def test_the_steps_are_numbered_in_order() -> None:
    assert [int(number) for number, _, _ in STEPS] == [*range(1, len(STEPS) + 1)]
    assert len(STEPS) == len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE))


def test_every_file_and_folder_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+(?:\w+\.(?:py|toml))?)`", PAGE)
    gateways = {path.name for path in (SOURCE / "gateway").iterdir()}
    runtimes = {path.name for path in (SOURCE / "runtime").iterdir()}
    missing = [name for name in named if not (SOURCE / name).exists()]
    assert [name for name in missing if name.strip("/") not in gateways | runtimes | {"framing", "src"}] == []


def test_every_folder_of_the_source_is_on_the_page() -> None:
    for parent in (SOURCE, SOURCE / "gateway"):
        folders = [path.name for path in parent.iterdir() if (path / "__init__.py").exists()]
        assert [name for name in folders if f"| `{name}/` |" not in PAGE] == []


def test_the_layers_are_those_of_the_linter() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    names = [[name.strip(" ()") for name in layer.split("|")] for layer in layers]
    existing = [
        [name for name in layer if (SOURCE / name).exists() or (SOURCE / f"{name}.py").exists()] for layer in names
    ]
    shown = PAGE.partition("## Layers")[2].partition("```\n")[2].partition("```")[0]
    drawn = [re.split(r"\s{2,}", line)[0].split(" · ") for line in shown.splitlines()]
    assert drawn == existing

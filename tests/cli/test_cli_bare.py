"""The command line of a bare install: help needs no extra; a command that needs one says which and how to get it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolglot.cli.main import COMMANDS, build_parser

BARE = """
import json, sys
ALLOWED = {*sys.stdlib_module_names, "toolglot", "msgspec", "jiter", "jsonschema_rs"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
for name in [name for name in sys.modules if name.partition(".")[0] not in ALLOWED and name != "__main__"]:
    del sys.modules[name]
from toolglot.cli.main import main
sys.exit([main(words) for words in json.loads(sys.argv[1])][-1])
"""
"""Runs command lines where nothing is installed but what `pip install .` installs."""


def bare(folder: Path, *lines: list[str]) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}
    environ = {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.run(
        [sys.executable, "-c", BARE, json.dumps(lines)], cwd=folder, env=environ, capture_output=True, text=True
    )


def subcommands(parser: argparse.ArgumentParser, words: list[str]) -> list[list[str]]:
    """Every command line that leads to a parser below this one."""
    found = [words]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                found += subcommands(below, [*words, name])
    return found


def test_every_help_works_without_any_extra(tmp_path: Path) -> None:
    lines = subcommands(build_parser(tuple(COMMANDS)), [])
    assert ["serve"] in lines
    assert ["keys", "add"] in lines
    ended = bare(tmp_path, *([*words, "--help"] for words in lines))
    assert (ended.returncode, ended.stderr) == (0, "")
    for words in lines:
        assert f"usage: {' '.join(['toolglot', *words])} " in ended.stdout, words


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["serve"], "gateway"),
        (["simulate"], "simulator"),
        (["chat"], "runtime"),
        (["run", "Hello"], "runtime"),
        (["sessions", "list"], "runtime"),
        (["probe", "http://127.0.0.1:1/v1"], "gateway"),
        (["doctor"], "gateway"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_a_command_without_its_extra_says_how_to_install_it_from_a_clone(
    tmp_path: Path, words: list[str], extra: str
) -> None:
    ended = bare(tmp_path, words)
    assert ended.returncode in (1, 2)
    assert f"pip install '.[{extra}]' in a clone of toolglot" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "words", [["explain", "mistral-id-nine"], ["init"], ["completion", "bash"], ["keys", "list"], ["usage"]], ids=str
)
def test_what_needs_no_extra_runs_without_one(tmp_path: Path, words: list[str]) -> None:
    ended = bare(tmp_path, words)
    assert ended.returncode in (0, 1), ended.stderr
    assert "not installed" not in ended.stdout + ended.stderr


def test_simulate_does_not_speak_of_the_gateways_port_as_its_own(tmp_path: Path) -> None:
    printed = bare(tmp_path, ["simulate", "--help"]).stdout
    assert "simulate --port 8080" in printed
    assert "127.0.0.1:8080/anthropic" in printed
    assert "127.0.0.1:8400" not in printed

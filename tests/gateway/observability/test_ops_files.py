"""What is in ops/: the unit of systemd and the container, as far as that can be looked at without running them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from toolglot.cli.main import build_parser

ROOT = Path(__file__).parents[3]
OPS = ROOT / "ops"
UNIT = (OPS / "toolglot.service").read_text("utf-8")
CONTAINER = (OPS / "Containerfile").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def settings_of(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"(?m)^(\w+)=(.*)$", unit):
        found.setdefault(name, []).append(value)
    return found


def instructions(name: str) -> list[str]:
    """The instructions of this name, each in one line."""
    joined = re.sub(r"\\\n\s*", "", CONTAINER)
    return re.findall(rf"(?m)^{name} (.*)$", joined)


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    (program,) = re.findall(r"(?m)^ExecStart=(\S+)", UNIT)
    file = tmp_path / "toolglot.service"
    file.write_text(UNIT.replace(program, "/bin/true"))  # where it is installed is nothing that this machine has
    done = subprocess.run([analyze, "verify", str(file)], capture_output=True, text=True, timeout=120, check=False)
    reported = [line for line in done.stderr.splitlines() if "toolglot" in line]
    assert (done.returncode, reported) == (0, [])


def test_the_unit_gives_open_answers_the_time_that_the_gateway_gives_them() -> None:
    found = settings_of(UNIT)
    assert found["KillMode"] == ["mixed"]
    assert int(found["TimeoutStopSec"][0]) > 30
    assert found["EnvironmentFile"] == ["-/etc/toolglot/keys.env"]
    assert found["StateDirectory"] == ["toolglot"]
    assert "XDG_STATE_HOME=/var/lib" in found["Environment"]


@pytest.mark.parametrize("words", [*(line.split()[1:] for line in settings_of(UNIT)["ExecStart"])])
def test_the_command_line_of_the_unit_is_one(words: list[str]) -> None:
    assert build_parser([words[0]]).parse_args(words).log == "json"


def test_the_command_line_of_the_container_is_one() -> None:
    (command,) = instructions("CMD")
    words = re.findall(r'"([^"]*)"', command)
    assert instructions("ENTRYPOINT") == ['["toolglot"]']
    assert build_parser([words[0]]).parse_args(words).host == "0.0.0.0"  # noqa: S104 - inside of a container


def test_the_container_has_a_python_that_toolglot_runs_on_and_all_that_it_copies() -> None:
    versions = {re.search(r"python:(\d+)\.(\d+)", line) for line in instructions("FROM")}
    needed = re.search(r"(\d+)\.(\d+)", PROJECT["requires-python"])
    assert needed is not None
    for version in versions:
        assert version is not None
        assert tuple(map(int, version.groups())) >= tuple(map(int, needed.groups()))
    ignored = (OPS / "Containerfile.dockerignore").read_text().split()
    copied = [word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]]
    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name}" for name in copied} <= set(ignored)
    extras = re.search(r"\[([a-z,]+)\]", instructions("RUN")[0])
    assert extras is not None
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_container_runs_as_a_user_of_its_own() -> None:
    (user,) = instructions("USER")
    assert all(int(number) > 0 for number in user.split(":"))
    assert instructions("VOLUME") == ["/var/lib/toolglot"]
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert "/ready" in CONTAINER

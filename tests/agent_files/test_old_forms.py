"""Old forms of session files: Gemini CLI's files of one object, and compressed rollouts of Codex."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agent_files.faults import FAULTS, FileFault
from support.agent_files.sessions import (
    IDS,
    codex_lines,
    gemini_call,
    gemini_header,
    gemini_lines,
    home_in,
    place,
    results_by_call,
)
from toolglot import agent_files


def old_gemini_file(home: Path, *, indent: int | None = 2, **changes: object) -> Path:
    header, *messages = gemini_lines()
    path = place("gemini_cli", home_in(home)).with_suffix(".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {**header, "messages": messages, **changes}
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_an_old_file_of_gemini_cli_is_found_read_and_sound(indent: int | None, tmp_path: Path) -> None:
    path = old_gemini_file(tmp_path, indent=indent)
    (row,) = agent_files.find("gemini", home=home_in(tmp_path))
    assert (row.id, row.turns) == (IDS["gemini_cli"], 1)
    assert [text for _, text in results_by_call(agent_files.read(path).conversation)] == ["a.txt", "/x"]
    healed = agent_files.heal_file(path)
    assert (healed.faults, healed.is_changed) == ((), False)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_old_file_of_gemini_cli_is_healed(indent: int | None, tmp_path: Path) -> None:
    messages = gemini_lines()[1:]
    messages[1]["toolCalls"][1] = gemini_call("c2", "pwd", None)
    path = old_gemini_file(tmp_path, indent=indent, messages=messages)
    assert [fault.kind for fault in agent_files.check(path)] == ["dangling-call"]
    healed = agent_files.heal_file(path)
    assert healed.left == ()
    path.write_bytes(b"".join(healed.after))
    assert not agent_files.heal_file(path).is_changed
    results = [text for _, text in results_by_call(agent_files.read(path).conversation)]
    assert (results[0], results[1].startswith("[No result")) == ("a.txt", True)
    value = json.loads(path.read_bytes())
    assert {name: value[name] for name in gemini_header()} == gemini_header()


def test_an_old_file_without_a_header_or_with_nothing_in_it_is_said(tmp_path: Path) -> None:
    path = old_gemini_file(tmp_path, projectHash="")
    assert [fault.kind for fault in agent_files.check(path)] == ["bad-header"]
    path.write_bytes(b"".join(agent_files.heal_file(path).after))
    assert agent_files.check(path) == ()
    for data in (
        b"",
        b"{",
        b"[]",
        b'{"messages": 7}',
        b'{"messages": [[]]}',
        b'{"sessionId": "x", "messages": [{"type": []}]}',
    ):
        path.write_bytes(data)
        assert {fault.kind for fault in agent_files.check(path, agent="gemini")} <= {"broken-file", "no-messages"}
        agent_files.read(path, agent="gemini")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.agent == "codex"], ids=lambda fault: fault.id)
def test_a_fault_in_a_compressed_rollout_is_found_and_healed(fault: FileFault, tmp_path: Path) -> None:
    zstd = pytest.importorskip("backports.zstd")
    home = home_in(tmp_path)
    path = place("codex", home)
    path = path.with_name(f"{path.name}.zst")
    path.parent.mkdir(parents=True)
    whole = b"".join(json.dumps(line).encode() + b"\n" for line in codex_lines())
    path.write_bytes(zstd.compress(whole))
    assert agent_files.check(path) == ()
    lines = [each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n" for each in fault.lines()]
    path.write_bytes(zstd.compress(b"".join(lines)))
    found = {each.kind for each in agent_files.check(path, agent="codex")}
    assert fault.kind in found or fault.kind == "unknown-provider"
    agent_files.heal_file(path, agent="codex")

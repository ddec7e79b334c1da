"""Every fault of the table is found, healed, and then gone; a healthy file keeps its bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agent_files.faults import FAULTS, FileFault
from support.agent_files.sessions import IDS, home_in, minimal, place, results_by_call, texts_of, write_file
from toolglot import agent_files


def made(fault: FileFault, folder: Path) -> Path:
    home = home_in(folder)
    config = folder / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('model_provider = "mine"\n[model_providers.mine]\nname = "mine"\n', encoding="utf-8")
    return write_file(place(fault.agent, home), fault.lines())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_is_found_healed_and_gone(fault: FileFault, tmp_path: Path) -> None:
    path = made(fault, tmp_path)
    before = path.read_bytes()
    found = agent_files.check(path, agent=fault.agent)
    assert fault.kind in {each.kind for each in found}, found
    assert all(each.message and each.line >= 0 for each in found)
    healed = agent_files.heal_file(path, agent=fault.agent, closes_holes=fault.is_asked)
    assert path.read_bytes() == before
    assert healed.is_changed
    if fault.is_asked:
        asked = agent_files.heal_file(path, agent=fault.agent)
        assert not asked.is_changed
        assert all(each.only_if_asked for each in asked.left)
    assert "not-healed" not in {each.kind for each in healed.left}
    assert [each for each in healed.left if each.fix and not each.only_if_asked] == []
    path.write_bytes(b"".join(healed.after))
    again = agent_files.heal_file(path, agent=fault.agent, closes_holes=fault.is_asked)
    assert not again.is_changed
    session = agent_files.read(path, agent=fault.agent)
    got = [text for _, text in results_by_call(session.conversation)]
    assert [text[: len(start)] for text, start in zip(got, fault.results, strict=True)] == list(fault.results)
    assert "What is here?" in texts_of(session.conversation)
    if "lost words" in json.dumps([str(each) for each in fault.lines()]):
        assert "lost words" in texts_of(session.conversation)


@pytest.mark.parametrize("agent", IDS)
def test_a_healthy_file_is_left_byte_for_byte(agent: str, tmp_path: Path) -> None:
    path = write_file(place(agent, home_in(tmp_path)), minimal(agent))
    healed = agent_files.heal_file(path)
    assert (healed.faults, healed.left, healed.is_changed) == ((), (), False)
    assert b"".join(healed.after) == path.read_bytes()

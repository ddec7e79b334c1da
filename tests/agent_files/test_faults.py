"""Every fault of the table is found, healed, and then gone; a healthy file keeps its bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agent_files.faults import ACCEPTED, FAULTS, FileFault
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


@pytest.mark.parametrize("healthy", ACCEPTED, ids=lambda healthy: healthy.id)
def test_what_the_provider_of_the_session_accepts_is_no_fault(healthy: FileFault, tmp_path: Path) -> None:
    path = made(healthy, tmp_path)
    assert agent_files.check(path, agent=healthy.agent) == ()
    assert not agent_files.heal_file(path, agent=healthy.agent).is_changed


def test_names_that_the_provider_refuses_are_shortened_to_what_it_accepts(tmp_path: Path) -> None:
    name = "mcp__server__" + "n" * 120
    path = write_file(place("claude_code", home_in(tmp_path)), minimal("claude_code"))
    path.write_bytes(path.read_bytes().replace(b'"name": "Bash"', f'"name": "{name}"'.encode(), 1))
    assert [fault.kind for fault in agent_files.check(path)] == ["illegal-name"]
    path.write_bytes(b"".join(agent_files.heal_file(path).after))
    (first, second) = [call.name for turn in agent_files.read(path).conversation.turns for call in turn.calls]
    assert (first, second) == (name[:128], "Bash")
    assert agent_files.check(path) == ()


def test_a_call_and_its_result_are_renamed_together_wherever_they_are(tmp_path: Path) -> None:
    lines = minimal("copilot_cli")
    lines[2]["data"]["model"] = "claude-sonnet-4-5"
    text = json.dumps(lines).replace("toolu_1", "functions.bash:0")
    path = write_file(place("copilot_cli", home_in(tmp_path)), json.loads(text))
    after = b"".join(agent_files.heal_file(path, agent="copilot_cli").after).decode()
    ids = {each["data"]["toolCallId"] for each in map(json.loads, after.splitlines()) if "toolCallId" in each["data"]}
    (new,) = ids - {"toolu_2"}
    assert after.count(new) == 3  # the call, its start and its result
    assert "functions.bash:0" not in after

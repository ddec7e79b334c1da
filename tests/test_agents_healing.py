"""Real coding agents resume sessions that were broken and healed: every fault of the table.

Law: the fault is found; once it is healed, the real agent goes on with a tool call, no request is refused by the strict
simulator, and every result that the healed session has is in the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import toolglot
from support.agent_files.faults import FAULTS, FileFault
from support.agent_files.opencode_faults import OPENCODE_FAULTS, OpencodeFault, exported
from support.agent_files.sessions import FOLDER, IDS, full_conversation, place, write_file
from support.long_form import IS_LONG
from test_agents_handoff import DONE, TARGETS, home_for, log_of, of_session, script, sent
from toolglot import Conversation, Text, agent_files
from toolglot.agent_files import WrittenSession
from toolglot.agent_files.base import get
from toolglot.agent_files.json_lines import parse_line
from toolglot.simulator import Server, serve

pytestmark = pytest.mark.agents

ONE_OF_EACH = list({(fault.agent, fault.kind): fault for fault in reversed(FAULTS)}.values())[::-1]
"""A fault of each kind, for each agent; in the long form all faults."""


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def results_of(conversation: Conversation) -> list[str]:
    return [result.text for turn in conversation.turns for result in turn.results]


def texts_of_results(conversation: Conversation) -> list[str]:
    """The texts in the results, one by one: agents join those of one result in their own way."""
    results = [result for turn in conversation.turns for result in turn.results]
    return [part.text for result in results for part in result.content or () if isinstance(part, Text)]


def goes_on(name: str, written: WrittenSession, simulated: Server, work: Path) -> None:
    """The agent resumes the session, writes a file, and is refused nothing."""
    agent = TARGETS[name]
    expected = texts_of_results(agent_files.read(written.path).conversation)
    simulated.script(script(agent))
    run = agent.resume(simulated.url(agent.provider), "Write one.", work, written, agent.model)
    log = log_of(simulated, run)
    assert (run.text, run.exit) == (DONE, 0), log
    assert [path.name for path in work.iterdir()] == ["one"], log
    assert {request.status for request in simulated.requests if request.method == "POST"} == {200}, log
    requests = of_session(simulated)
    assert len(requests) == 2, log
    for request in requests:
        target = "openai_responses" if request.path.endswith("/responses") else request.provider
        assert toolglot.lint(request.body, target=target, model=request.model) == (), log
    last = sent(requests[-1])
    found = results_of(last)
    for text in expected:
        assert any(text.removeprefix("Error: ") in each for each in found), log
    assert "What is here?" in "\n".join(turn.text for turn in last.turns), log


@pytest.mark.parametrize("fault", FAULTS if IS_LONG else ONE_OF_EACH, ids=lambda fault: fault.id)
def test_a_session_goes_on_in_the_real_agent_once_its_fault_is_healed(
    fault: FileFault, simulated: Server, work: Path
) -> None:
    home = home_for(work)
    (home.folder / "config.toml").write_text('model_provider = "tested"\n[model_providers.tested]\nname = "tested"\n')
    path = write_file(place(fault.agent, home, str(work)), fault.lines())
    data = path.read_bytes().replace(FOLDER.encode(), str(work).encode())
    path.write_bytes(data.replace(b'"cwd": "/"', f'"cwd": "{work}"'.encode()))
    assert fault.kind in {each.kind for each in agent_files.check(path, agent=fault.agent)}
    healed = agent_files.heal_file(path, agent=fault.agent, closes_holes=fault.is_asked)
    path.write_bytes(b"".join(healed.after))
    as_written = agent_files.write(
        full_conversation(), fault.agent, home=home, directory=str(work), id=IDS[fault.agent], dry_run=True
    )
    id = agent_files.read(path, agent=fault.agent).id
    command = tuple(
        each.replace(str(as_written.path), str(path)).replace(IDS[fault.agent], id) for each in as_written.command
    )
    goes_on(fault.agent, replace(as_written, path=path, command=command), simulated, work)


@pytest.mark.parametrize("fault", OPENCODE_FAULTS, ids=lambda fault: fault.name)
def test_opencode_goes_on_with_the_healed_copy_of_a_session(
    fault: OpencodeFault, simulated: Server, work: Path
) -> None:
    path = work.parent / "exported.json"
    path.write_text(json.dumps(fault.make(exported(str(work)))), encoding="utf-8")
    assert fault.kind in {each.kind for each in agent_files.check(path)}
    healed = agent_files.heal_file(path)
    copy = get("opencode").copy
    assert copy is not None
    lines = [parse_line(number, data) for number, data in enumerate(healed.after, 1)]
    written = copy(lines, home_for(work), 1_794_736_800.0)
    written.path.parent.mkdir(parents=True)
    written.path.write_bytes(written.data)
    goes_on("opencode", written, simulated, work)

"""Real coding agents resume sessions that were handed over to them, and go on for two turns with tool calls.

Law: the request that the agent sends passes the strict simulator, and has every call and every result of the session
in it, the error, the image and the summary of the compaction too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import toolglot
from support.agent_files.sessions import PNG, SUMMARY, full_conversation
from support.coding_agents import AgentRun, Runner, home_of, run_claude, run_codex, run_gemini
from support.long_form import IS_LONG
from support.more_agents import import_opencode, run_copilot, run_newest_qwen, run_opencode, run_pi
from toolglot import Conversation, Media, agent_files
from toolglot.agent_files import AgentHome, AgentSession, WrittenSession
from toolglot.simulator import RecordedRequest, Server, serve

pytestmark = pytest.mark.agents

DONE: Final = "It is written."
SOURCES: Final = ("claude_code", "codex", "gemini_cli")


class HandoffAgent(NamedTuple):
    """An agent that continues a session: how it is run, and whose protocol it speaks."""

    name: str
    provider: str
    base: str
    model: str
    shell: str
    command: Callable[[str], dict[str, Any]]
    resume: Callable[[str, str, Path, WrittenSession, str], AgentRun]
    """Runs a turn of a session: the address, the prompt, the folder, the session and the model."""
    heals: bool = False
    """Whether its own sessions must be healed before they can go on. It may still refuse to: then one turn is what is
    handed over, and the second is in the long form only."""


def _claude(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    return run_claude(address, prompt, cwd, model=model, extra=written.command[1:])


def _codex(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    return run_codex(address, prompt, cwd, model=model, extra=written.command[1:])


def _gemini(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    return run_gemini(address, prompt, cwd, model=model, extra=written.command[1:])


def _opencode(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    if written.preparation:
        import_opencode(cwd, written.preparation[2:])
    return run_opencode(address, prompt, cwd, model=model, extra=[*written.command[1:], "--model", f"tested/{model}"])


def _qwen(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    file = home_of(cwd) / ".qwen" / "settings.json"
    settings = {"model": {"generationConfig": {"modalities": {"image": True}}}}  # otherwise an image is a note
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings), encoding="utf-8")
    return run_newest_qwen(address, prompt, cwd, model=model, extra=written.command[1:])


def _pi(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    extra = [*written.command[1:], "--thinking", "off"]
    return run_pi(address, prompt, cwd, model=model, extra=extra, sees_images=True)


def _copilot(address: str, prompt: str, cwd: Path, written: WrittenSession, model: str) -> AgentRun:
    return run_copilot(address, prompt, cwd, model=model, extra=written.command[1:])


def _command(line: str) -> dict[str, Any]:
    return {"command": line}


def _described(line: str) -> dict[str, Any]:
    return {"command": line, "description": "writes a file", "is_background": False}


def _told(line: str) -> dict[str, Any]:
    return {"command": line, "description": "writes a file"}


TARGETS: Final = {
    agent.name: agent
    for agent in (
        HandoffAgent("claude_code", "anthropic", "", "claude-opus-5", "Bash", _command, _claude),
        HandoffAgent("codex", "openai", "/v1", "gpt-5.5", "exec_command", lambda line: {"cmd": line}, _codex),
        HandoffAgent("gemini_cli", "gemini", "", "gemini-3-pro", "run_shell_command", _command, _gemini, heals=True),
        HandoffAgent("qwen_code", "qwen", "/v1", "qwen3-vl-plus", "run_shell_command", _described, _qwen),
        HandoffAgent("pi", "openai", "/v1", "gpt-4.1", "bash", _command, _pi),
        HandoffAgent("opencode", "openai", "/v1", "gpt-4.1", "bash", _told, _opencode),
        HandoffAgent("copilot_cli", "anthropic", "", "claude-sonnet-4-5", "bash", _told, _copilot),
    )
}
IDENTITIES: Final = [(name, name) for name in TARGETS]
RING: Final = list(zip(TARGETS, [*list(TARGETS)[1:], next(iter(TARGETS))], strict=True))
REST: Final = [(one, other) for one in TARGETS for other in TARGETS if (one, other) not in (*IDENTITIES, *RING)]
PAIRS: Final = [*IDENTITIES, *RING, *(REST if IS_LONG else [])]
"""The identities and a ring; in the long form all pairs."""


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def home_for(cwd: Path) -> AgentHome:
    """Where the agents of a run look for their sessions."""
    home = home_of(cwd)
    return AgentHome(folder=home, environ={"CODEX_HOME": str(home)})


def script(agent: HandoffAgent) -> dict[str, Any]:
    """Each turn writes a file, and says so."""
    calls = [{"name": agent.shell, "arguments": agent.command(f"echo proof > {name}")} for name in ("one", "two")]
    replies = [{"text": "I write.", "calls": [calls[0]]}, {"text": DONE}, {"calls": [calls[1]]}, {"text": DONE}]
    return {
        "rules": [{"when": {"tool": agent.shell}, "times": len(replies), "replies": replies}, {"reply": {"text": "-"}}]
    }


def of_session(simulated: Server) -> list[RecordedRequest]:
    """The requests of the session itself: those that the script's first rule answered."""
    return [request for request in simulated.requests if request.answered_by.startswith("rules[0]")]


def sent(request: RecordedRequest) -> Conversation:
    source = "openai_responses" if request.path.endswith("/responses") else request.provider
    return toolglot.read_request(json.dumps(request.body), source=source).conversation


def pairs_of(conversation: Conversation) -> list[tuple[str, str, str]]:
    """Every call with the words of its result."""
    results = {result.call_id: result.text for turn in conversation.turns for result in turn.results}
    by_name = [result for turn in conversation.turns for result in turn.results]
    found: list[tuple[str, str, str]] = []
    for index, call in enumerate(call for turn in conversation.turns for call in turn.calls):
        text = results.get(call.id) if call.id else by_name[index].text
        found.append((call.name, json.dumps(call.arguments, sort_keys=True, ensure_ascii=False), text or ""))
    return found


def images_of(conversation: Conversation) -> list[str | None]:
    parts = [block for turn in conversation.turns for block in turn.blocks]
    inside = [part for turn in conversation.turns for result in turn.results for part in result.content or ()]
    return [part.data for part in (*parts, *inside) if isinstance(part, Media)]


def log_of(simulated: Server, *runs: AgentRun) -> str:
    lines = [f"{each.status} {each.path} {each.answered_by} {each.error}" for each in simulated.requests]
    return "\n".join([*lines, *(run.output() for run in runs)])


def go_on(agent: HandoffAgent, written: WrittenSession, simulated: Server, work: Path) -> tuple[Conversation, str]:
    """Two turns in the real agent, or one. What the last request held, and a log for the message of a failure."""
    simulated.script(script(agent))
    address = simulated.url(agent.provider)
    runs = [agent.resume(address, "Write one.", work, written, agent.model)]
    files = ["one", "two"]
    if agent.heals and not IS_LONG:
        files = ["one"]
    elif agent.heals:
        # Gemini CLI records each result twice, and sends both when it resumes its own session: a fault of its own.
        # Once the minute in its name is over, it goes on in another file.
        rows = [row for row in agent_files.find(agent.name, home=home_for(work)) if row.id == written.id]
        path = Path(max(rows, key=lambda row: (row.updated, row.path)).path)
        healed = agent_files.heal_file(path)
        assert {fault.kind for fault in healed.faults} == {"repeated-result"}
        path.write_bytes(b"".join(healed.after))
        assert agent_files.check(path) == ()
    if "two" in files:
        runs.append(agent.resume(address, "Write two.", work, written, agent.model))
    log = log_of(simulated, *runs)
    assert [(run.text, run.exit) for run in runs] == [(DONE, 0)] * len(files), log
    assert sorted(path.name for path in work.iterdir()) == files, log
    requests = of_session(simulated)
    assert {request.status for request in simulated.requests if request.method == "POST"} == {200}, log
    assert len(requests) == 2 * len(files), log
    for request in requests:
        target = "openai_responses" if request.path.endswith("/responses") else request.provider
        assert toolglot.lint(request.body, target=target, model=request.model) == (), log
    return sent(requests[-1]), log


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_session_is_handed_over_and_goes_on_in_the_real_agent(
    source: str, target: str, simulated: Server, work: Path
) -> None:
    agent, home = TARGETS[target], home_for(work)
    elsewhere = AgentHome(folder=work.parent / "elsewhere", environ={})
    first = agent_files.write(full_conversation(), source, home=elsewhere, directory=str(work), title="Grüße")
    session = agent_files.read(first.path)
    written = agent_files.write(
        session.conversation, target, home=home, directory=str(work), title=session.title, source=source
    )
    expected = pairs_of(agent_files.read(written.path).conversation)
    assert len(expected) == 3
    last, log = go_on(agent, written, simulated, work)
    found = pairs_of(last)
    assert [pair[:2] for pair in found[:3]] == [pair[:2] for pair in expected], log
    for (_, _, got), (_, _, wanted) in zip(found, expected, strict=False):
        assert wanted.removeprefix("Error: ") in got, log
    assert [json.loads(arguments) for _, arguments, _ in found[3:]] != [], log
    assert PNG in images_of(last), log
    words = "\n".join(turn.text for turn in last.turns)
    for text in (
        SUMMARY,
        "What is in größe.txt? Grüße, 你好",
        "Stop, do not do that.",
        "One file was found.",
        "Write one.",
    ):
        assert text in words, log


def _shell_reply(agent: HandoffAgent) -> Mapping[str, Any]:
    parallel = [{"name": agent.shell, "arguments": agent.command(f"echo {word}")} for word in ("alpha", "beta")]
    failing = [{"name": agent.shell, "arguments": agent.command("ls /does/not/exist")}]
    replies = [{"text": "Both.", "calls": parallel}, {"calls": failing}, {"text": "That was it."}]
    return {"rules": [{"when": {"tool": agent.shell}, "times": 3, "replies": replies}, {"reply": {"text": "-"}}]}


@pytest.mark.parametrize(("source", "target"), RING)
def test_a_session_of_the_real_agent_goes_on_in_another_real_agent(
    source: str, target: str, simulated: Server, work: Path
) -> None:
    first, second = TARGETS[source], TARGETS[target]
    simulated.script(_shell_reply(first))
    runners: dict[str, Runner] = {
        "claude_code": run_claude,
        "codex": run_codex,
        "gemini_cli": run_gemini,
        "qwen_code": run_newest_qwen,
        "pi": lambda *words, **named: run_pi(*words, **named, extra=("--thinking", "off")),
        "opencode": run_opencode,
        "copilot_cli": run_copilot,
    }
    runner = runners[source]
    begun = runner(simulated.url(first.provider), "Say alpha and beta.", work, model=first.model)
    assert begun.text == "That was it.", log_of(simulated, begun)
    (row,) = agent_files.find(source, home=home_for(work))
    assert {fault.kind for fault in agent_files.check(row.path)} == ({"repeated-result"} if first.heals else set())
    session: AgentSession = agent_files.read(row.path)
    assert session.report == ()
    expected = pairs_of(session.conversation)
    assert len(expected) == 3
    assert ["alpha" in text for _, _, text in expected] == [True, False, False], expected
    assert "beta" in expected[1][2]
    written = agent_files.write(session.conversation, target, home=home_for(work), directory=str(work), source=source)
    simulated.simulator.reset()
    last, log = go_on(second, written, simulated, work)
    found = pairs_of(last)
    assert [pair[:2] for pair in found[:3]] == [pair[:2] for pair in expected], log
    assert ["alpha" in text for _, _, text in found[:3]] == [True, False, False], log
    assert "Say alpha and beta." in json.dumps([turn.text for turn in last.turns]), log

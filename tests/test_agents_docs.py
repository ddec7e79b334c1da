"""What docs/agents.md says of single agents and the other files of tests with agents do not show.

Law: as in `test_agents.py`: the agent's own tools write the files, and the strict simulator refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from support.coding_agents import AgentRun, run_claude, run_gemini
from support.gateway.served_gateway import gateway
from support.more_agents import run_copilot, run_opencode, run_pi
from toolglot.simulator import Server, serve

pytestmark = pytest.mark.agents

PROMPT: Final = "Write the proof files."
DONE: Final = "All files are written."
UPSTREAMS: Final = {
    "anthropic": "claude-opus-5",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def to_upstream(upstream: str) -> dict[str, str]:
    return dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), f"{upstream}/{UPSTREAMS[upstream]}")


def check(simulated: Server, run: AgentRun, work: Path, names: set[str]) -> None:
    requests = [request for request in simulated.requests if request.method == "POST"]
    assert [(request.path, request.error) for request in requests if request.status != 200] == [], run.output()
    assert simulated.unused() == [], run.output()
    assert {path.name for path in work.iterdir()} >= names, run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()


OTHER_PROTOCOLS: Final = {
    "copilot-openai": (partial(run_copilot, kind="openai"), "/v1"),
    "opencode-anthropic": (partial(run_opencode, package="@ai-sdk/anthropic"), "/v1"),
    "opencode-openai": (partial(run_opencode, package="@ai-sdk/openai"), "/v1"),
    "pi-anthropic-messages": (partial(run_pi, api="anthropic-messages"), ""),
    "pi-openai-responses": (partial(run_pi, api="openai-responses"), "/v1"),
}
"""How Copilot CLI speaks Chat Completions, and opencode and pi Anthropic's and OpenAI's own protocols, and the end of
the address for that."""


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("variant", OTHER_PROTOCOLS)
def test_an_agent_speaks_another_protocol_than_its_usual_one(
    variant: str, upstream: str, simulated: Server, work: Path
) -> None:
    def write(name: str) -> dict[str, Any]:
        return {"name": "bash", "arguments": {"command": f"echo proof > {name}", "description": "writes a file"}}

    begin = {"thinking": "First the first.", "calls": [write("one.txt")]}
    go_on = {"thinking": "Now both at once.", "calls": [write("two.txt"), write("three.txt")]}
    rules = [
        {"when": {"tool": "bash", "results": results}, "reply": reply}
        for results, reply in ((0, begin), (1, go_on), (3, {"text": DONE}))
    ]
    simulated.script(rules=rules)
    runner, base = OTHER_PROTOCOLS[variant]
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = runner(served.url + base, PROMPT, work)
        paths = {record.request.path for record in served.records if record.request.action == "generate"}
    check(simulated, run, work, {"one.txt", "two.txt", "three.txt"})
    chat = "/v1/chat/completions" if "copilot" in variant else "/v1/responses"
    assert paths == {"/v1/messages" if "anthropic" in variant else chat}, run.output()


CHILD: Final = "Write the file of the child."


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_claude_code_starts_a_subagent(upstream: str, simulated: Server, work: Path) -> None:
    task = {"description": "writes", "prompt": CHILD, "subagent_type": "general-purpose", "run_in_background": False}
    write = {"name": "Bash", "arguments": {"command": "echo proof > child.txt"}}
    replies = [  # it waits for the subagent, so that there is one order
        {"calls": [{"name": "Agent", "arguments": task}]},
        {"calls": [write]},
        {"text": "The child is done."},
        {"text": DONE},
    ]
    simulated.script(rules=[{"when": {"tool": "Bash"}, "times": len(replies), "replies": replies}])
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = run_claude(served.url, PROMPT, work)
    check(simulated, run, work, {"child.txt"})
    asked = [request for request in simulated.requests if CHILD in str(request.body)]
    assert len(asked) >= 3, run.output()


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_gemini_cli_compresses_when_it_is_told_to(upstream: str, simulated: Server, work: Path) -> None:
    simulated.script(rules=[{"reply": {"text": " ".join(map(str, range(3_000)))}}])
    with gateway(simulated, models=to_upstream(upstream)) as served:
        for number, prompt in enumerate(("Begin.", "Go on.")):
            run = run_gemini(served.url, prompt, work, extra=["--resume", "latest"] * bool(number))
            assert run.exit == 0, run.output()
        run = run_gemini(served.url, "/compress", work, extra=["--resume", "latest"])
    assert run.exit == 0, run.output()
    assert "state_snapshot" in str([request.body for request in simulated.requests]), run.output()

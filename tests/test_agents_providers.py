"""Seven coding agents on eight providers, which speak all seven protocols, and on all of them in one session.

The model is scripted, the agent is not: its own tools write the files. Law: whichever provider answers, the tools
really run, parallel calls too, the last words arrive, and the strict simulator refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.coding_agents import AgentRun
from support.gateway.served_gateway import gateway
from support.more_agents import ALL_AGENTS, COPILOT, AnyAgent
from toolglot.simulator import Server, serve

pytestmark = pytest.mark.agents

PROMPT: Final = "Write the proof files."
DONE: Final = "All files are written."
MODELS: Final = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "bedrock": "anthropic.claude-opus-5-v1:0",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
}
PROOFS: Final = ("one.txt", "two.txt", "three.txt")


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def write_call(agent: AnyAgent, name: str) -> dict[str, Any]:
    return {"name": agent.shell, "arguments": agent.arguments(f"echo proof > {name}")}


def rule(agent: AnyAgent, results: int, **reply: Any) -> dict[str, Any]:
    return {"when": {"tool": agent.shell, "results": results}, "reply": reply}


def check(simulated: Server, run: AgentRun, work: Path, names: set[str]) -> None:
    requests = [request for request in simulated.requests if request.method == "POST"]
    refused = [(request.path, request.rule, request.error) for request in requests if request.status != 200]
    assert refused == [], run.output()
    assert simulated.unused() == [], run.output()
    assert {path.name for path in work.iterdir()} >= names, run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()


def name_of(agent: AnyAgent) -> str:
    return agent.name.replace(" ", "")


@pytest.mark.parametrize("upstream", MODELS)
@pytest.mark.parametrize("agent", [*ALL_AGENTS, COPILOT], ids=name_of)
def test_an_agent_thinks_and_runs_parallel_calls_on_every_provider(
    agent: AnyAgent, upstream: str, simulated: Server, work: Path
) -> None:
    one, two, three = (write_call(agent, name) for name in PROOFS)
    rules = [
        rule(agent, 0, thinking="First the first.", calls=[one]),
        rule(agent, 1, thinking="Now both at once.", calls=[two, three]),
        rule(agent, 3, text=DONE),
    ]
    simulated.script(rules=rules)
    destination = f"{upstream}/{MODELS[upstream]}"
    with gateway(simulated, models=dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), destination)) as served:
        run = agent.run(served.url + agent.base, PROMPT, work)
    check(simulated, run, work, set(PROOFS))


@pytest.mark.parametrize("agent", [*ALL_AGENTS, COPILOT], ids=name_of)
def test_an_agent_gets_each_reply_of_one_session_from_another_provider(
    agent: AnyAgent, simulated: Server, work: Path
) -> None:
    names = [f"{number}.txt" for number in range(len(MODELS))]
    replies = [{"thinking": f"Now {name}.", "calls": [write_call(agent, name)]} for name in names]
    simulated.script(rules=[{"when": {"tool": agent.shell}, "replies": [*replies, {"text": DONE}]}])
    all_upstreams = [f"{upstream}/{model}" for upstream, model in MODELS.items()]
    chain = "{ to = [" + ", ".join(f'"{name}"' for name in all_upstreams) + '], each = "request" }'
    with gateway(simulated, models=dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), chain)) as served:
        run = agent.run(served.url + agent.base, PROMPT, work)
        used = {record.route.upstream for record in served.records if record.request.action == "generate"}
    check(simulated, run, work, set(names))
    assert used == set(MODELS), run.output()

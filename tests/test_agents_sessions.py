"""One session of each of six coding agents on each of eight providers, through `toolglot serve`.

The session finds a deferred tool and uses it (an agent without tool search: a tool of an MCP server), runs parallel
calls, thinks, is compacted by the agent and goes on at another provider. Law: the referee accepts every request that
the gateway sends, what the agent loaded stays declared, every call is run, and the last words arrive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import toolglot
from support.agent_sessions import FULL, SESSION_AGENTS, SessionAgent
from support.coding_agents import AgentRun
from support.gateway.gateway_process import Process, process
from support.gateway.served_gateway import upstream_lines
from toolglot.simulator import RecordedRequest, Server, serve

pytestmark = pytest.mark.agents

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
NEXT: Final = dict(zip(MODELS, [*list(MODELS)[1:], next(iter(MODELS))], strict=True))
"""The provider at which each session goes on."""
SIGNATURES: Final = {
    "anthropic": "signature",
    "bedrock": "signature",
    "openai_responses": "encrypted_content",
    "gemini": "thoughtSignature",
}
"""The field of signed thinking, for those who sign it."""
LONGEST_STAND_IN: Final = 40
"""Characters: signatures are longer."""
BEGIN: Final = "Write the first files."
GO_ON: Final = "Write the other files."
HALF: Final = "Half of it is done. " + " ".join(map(str, range(8_000)))
"""Long enough that an agent that counts by itself compacts; the numbers are not a repetition."""
SEARCHING: Final = "I look for a tool."
SUMMARY: Final = "The first files are written; the others are next."
DONE: Final = "All files are written."
FIRST: Final = {"record.txt", "two.txt", "three.txt"}
LAST: Final = {"second.txt", "four.txt"}


class Stage(NamedTuple):
    """The simulator, and a gateway in a process of its own in front of it."""

    simulated: Server
    served: Process


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with serve() as simulated:
        lines = [*upstream_lines(simulated), "[models]"]
        for family in sorted({agent.family for agent in SESSION_AGENTS}):
            lines += [f'"{family}-on-{upstream}" = "{upstream}/{model}"' for upstream, model in MODELS.items()]
        lines.append('"gemini-*" = "gemini/gemini-3-pro"')  # Gemini CLI has a model of its own for summaries
        with process(tmp_path_factory.mktemp("served"), simulated, config_lines=lines) as served:
            yield Stage(simulated, served)


def name_of(agent: SessionAgent) -> str:
    return agent.agent.name.replace(" ", "")


def script_of(agent: SessionAgent, upstream: str, work: Path) -> dict[str, Any]:
    """What the models reply: those with the recording tool go on, those without it search for it."""

    def write(name: str) -> dict[str, Any]:
        return {"name": agent.agent.shell, "arguments": agent.agent.arguments(f"echo proof > {name}")}

    def record(upstream: str, name: str) -> dict[str, Any]:
        return {"name": agent.record_on(upstream), "arguments": {"path": str(work / name), "text": "recorded"}}

    last = NEXT[upstream]
    begin = [
        {"thinking": "First the record.", "calls": [record(upstream, "record.txt")]},
        {"thinking": "Now both at once.", "calls": [write("two.txt"), write("three.txt")]},
        {"text": HALF, "usage": {"input_tokens": FULL, "output_tokens": 10}},
    ]
    go_on = [
        {"thinking": "These at once.", "calls": [record(last, "second.txt"), write("four.txt")]},
        {"text": DONE},
    ]
    rules: list[dict[str, Any]] = [
        {"when": {"tool": agent.record_on(upstream)}, "times": len(begin), "replies": begin},
        {"when": {"tool": agent.record_on(last)}, "times": len(go_on), "replies": go_on},
    ]
    if agent.search is not None:
        search = {"thinking": SEARCHING, "calls": [agent.search]}
        rules.append({"when": {"tool": agent.search["name"]}, "times": agent.searches, "reply": search})
    summary = {"reply": {"text": f"<summary>{SUMMARY}</summary>"}}
    if agent.summary_prompt:
        return {"chunk": 4000, "rules": [{"when": {"contains": agent.summary_prompt}, **summary}, *rules]}
    return {"chunk": 4000, "rules": [*rules, summary]}


def search_rule(script: dict[str, Any]) -> str:
    """The name of the rule that replies with a search; of none if there is none."""
    searches = [rule.get("reply", {}).get("thinking") == SEARCHING for rule in script["rules"]]
    return f"rules[{searches.index(True)}]" if True in searches else ""


def sent_to_models(simulated: Server) -> list[RecordedRequest]:
    return [request for request in simulated.requests if request.answered_by not in ("listing", "count")]


def violations(request: RecordedRequest) -> tuple[Any, ...]:
    target = "openai_responses" if request.path.endswith("/responses") else request.provider
    return toolglot.lint(request.body, target=target, model=request.model)


def signatures(value: Any, field: str) -> int:
    if isinstance(value, list):
        return sum(signatures(part, field) for part in value)
    if not isinstance(value, Mapping):
        return 0
    own = value.get(field)
    return (isinstance(own, str) and len(own) > LONGEST_STAND_IN) + sum(
        signatures(part, field) for part in value.values()
    )


def story(simulated: Server, *runs: AgentRun) -> str:
    """For the message of a test that fails: what the gateway sent, and what the agent wrote."""
    lines = [
        f"{request.status} {request.provider} {request.answered_by} {request.error}" for request in simulated.requests
    ]
    return "\n".join([*lines, *(run.output() for run in runs)])


@pytest.mark.parametrize("upstream", MODELS)
@pytest.mark.parametrize("agent", SESSION_AGENTS, ids=name_of)
def test_a_session_searches_thinks_compacts_and_switches_its_provider(
    agent: SessionAgent, upstream: str, stage: Stage, tmp_path: Path
) -> None:
    simulated, served = stage
    work = tmp_path / "work"
    work.mkdir()
    simulated.simulator.reset()
    script = script_of(agent, upstream, work)
    simulated.script(script)
    last = NEXT[upstream]
    address = served.url + agent.agent.base

    begun = agent.turn(address, BEGIN, work, f"{agent.family}-on-{upstream}", False)
    log = story(simulated, begun)
    assert (begun.text, begun.exit) == (HALF, 0), log
    assert {path.name for path in work.iterdir()} >= FIRST, log
    half = [request for request in sent_to_models(simulated) if request.answered_by.endswith("replies[2]")][-1]
    if upstream in SIGNATURES:
        assert signatures(half.body, SIGNATURES[upstream]) >= 2 + (agent.searches > 0), log

    ended = agent.turn(address, GO_ON, work, f"{agent.family}-on-{last}", True)
    log = story(simulated, begun, ended)
    assert (ended.text, ended.exit) == (DONE, 0), log
    assert {path.name for path in work.iterdir()} >= FIRST | LAST, log
    requests = sent_to_models(simulated)
    assert [(request.path, violations(request)) for request in requests if violations(request)] == [], log
    assert {request.status for request in requests} == {200}, log
    assert simulated.unused() == [], log
    assert SUMMARY in json.dumps(requests[-1].body), log
    assert {request.model for request in (half, requests[-1])} == {MODELS[upstream], MODELS[last]}, log
    if last in SIGNATURES:
        assert signatures(requests[-1].body, SIGNATURES[last]) >= 1, log
    # The tool was declared once it was found, and stayed declared: each search was needed, and there was no other.
    assert [request.answered_by for request in requests].count(search_rule(script)) == agent.searches, log

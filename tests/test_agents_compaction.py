"""Coding agents that compact: Codex lets its provider do it, Claude Code asks the model itself.

Law: whoever stands behind the gateway, the agent goes on after it, also at another provider, and what was summarised
reaches the model in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import coding_agents
from support.coding_agents import run_claude, run_codex
from support.gateway.served_gateway import Served, gateway
from toolglot.simulator import Server, serve

pytestmark = pytest.mark.agents

SUMMARY = "one.txt is written; two.txt is next."
MODELS = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-4.1",
    "gemini": "gemini-3-pro",
    "openai_responses": "gpt-5.5",
}
FOREIGN = [name for name in MODELS if name != "openai_responses"]
NEXT = {"anthropic": "gemini", "openai_chat": "anthropic", "gemini": "openai_chat"}
"""The provider that each conversation is switched to."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Codex that takes its provider for OpenAI, which compacts, and that compacts early."""
    config = coding_agents.CODEX_CONFIG.replace('name = "tested"', 'name = "OpenAI"')
    assert config != coding_agents.CODEX_CONFIG
    monkeypatch.setattr(coding_agents, "CODEX_CONFIG", "model_auto_compact_token_limit = 60000\n" + config)


def writes(name: str) -> dict[str, Any]:
    return {"name": "exec_command", "arguments": {"cmd": f"echo proof > {name}"}}


CODEX_SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"contains": "Summarise the conversation"}, "reply": {"text": SUMMARY}},
        {
            "when": {"tool": "exec_command", "results": 0},
            "times": 1,
            "reply": {
                "text": "One.",
                "calls": [writes("one.txt")],
                "usage": {"input_tokens": 90_000, "output_tokens": 10},
            },
        },
        {"when": {"tool": "exec_command"}, "times": 1, "reply": {"text": "Two.", "calls": [writes("two.txt")]}},
        {"reply": {"text": "Done."}},
    ]
}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(CODEX_SCRIPT) as server:
        yield server


def bodies(simulated: Server) -> list[str]:
    return [json.dumps(request.body) for request in simulated.requests if request.method == "POST"]


def check_statuses(simulated: Server, served: Served) -> None:
    assert [(request.path, request.error) for request in simulated.requests if request.status != 200] == []
    assert {record.response.status for record in served.records} == {200}


@pytest.mark.usefixtures("remote")
@pytest.mark.parametrize("upstream", FOREIGN)
def test_codex_compacts_on_any_upstream_and_goes_on_there_and_at_another(
    upstream: str, simulated: Server, work: Path
) -> None:
    other = NEXT[upstream]
    models = {"gpt-5.5": f"{upstream}/{MODELS[upstream]}", "gpt-5.4": f"{other}/{MODELS[other]}"}
    with gateway(simulated, models=models) as served:
        run = run_codex(f"{served.url}/v1", "Write the proof files.", work)
        assert (run.text, run.exit) == ("Done.", 0), run.output()
        assert {path.name for path in work.iterdir()} == {"one.txt", "two.txt"}, run.output()
        assert [SUMMARY in body for body in bodies(simulated)] == [False, False, True, True]
        resumed = run_codex(f"{served.url}/v1", "Is it done?", work, model="gpt-5.4", extra=("resume", "--last"))
        assert (resumed.text, resumed.exit) == ("Done.", 0), resumed.output()
        assert SUMMARY in bodies(simulated)[-1]
        assert served.records[-1].route.upstream == other
        check_statuses(simulated, served)


@pytest.mark.usefixtures("remote")
def test_codex_compacts_over_a_websocket(simulated: Server, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = coding_agents.CODEX_CONFIG.replace("wire_api =", "supports_websockets = true\nwire_api =")
    monkeypatch.setattr(coding_agents, "CODEX_CONFIG", config)
    with gateway(simulated, models={"gpt-5.5": "gemini/gemini-3-pro"}) as served:
        run = run_codex(f"{served.url}/v1", "Write the proof files.", work)
        assert (run.text, run.exit) == ("Done.", 0), run.output()
        assert [SUMMARY in body for body in bodies(simulated)] == [False, False, True, True]
        assert 101 in {record.response.status for record in served.records}, run.output()


@pytest.mark.usefixtures("remote")
def test_openai_compacts_for_codex_itself(simulated: Server, work: Path) -> None:
    with gateway(simulated, models={"gpt-5.5": "openai_responses/gpt-5.5"}) as served:
        run = run_codex(f"{served.url}/v1", "Write the proof files.", work)
        assert (run.text, run.exit) == ("Done.", 0), run.output()
        kinds = [[item["type"] for item in json.loads(body)["input"]] for body in bodies(simulated)]
        assert (kinds[1][-1], kinds[2][-1]) == ("compaction_trigger", "compaction"), run.output()
        assert SUMMARY not in "".join(bodies(simulated))
        check_statuses(simulated, served)


@pytest.mark.parametrize("upstream", FOREIGN)
def test_claude_code_compacts_and_goes_on(upstream: str, work: Path) -> None:
    script = {
        "rules": [
            {"when": {"contains": "create a detailed summary"}, "reply": {"text": f"<summary>{SUMMARY}</summary>"}},
            {"reply": {"text": "Done."}},
        ]
    }
    with (
        serve(script) as simulated,
        gateway(simulated, models={"claude-opus-5": f"{upstream}/{MODELS[upstream]}"}) as served,
    ):
        for prompt, extra in (("Begin.", ()), ("/compact", ("--continue",)), ("Go on.", ("--continue",))):
            run = run_claude(served.url, prompt, work, model="claude-opus-5", extra=extra)
            assert run.exit == 0, run.output()
        assert run.text == "Done.", run.output()
        assert SUMMARY in bodies(simulated)[-1]
        check_statuses(simulated, served)

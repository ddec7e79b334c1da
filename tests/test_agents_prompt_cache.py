"""Long sessions of Claude Code and Codex read nearly all of their input from the provider's prompt cache."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.coding_agents import AgentRun, run_claude, run_codex
from support.gateway.served_gateway import Served, gateway
from toolglot import simulator
from toolglot.simulator.app import RecordedRequest
from toolglot.simulator.serving import Server

pytestmark = pytest.mark.agents

REQUESTS = 50
SHARE = 0.95
TARGETS = {
    "anthropic": "anthropic/claude-opus-5",
    "vertex_claude": "vertex_claude/claude-opus-5",
    "bedrock": "bedrock/anthropic.claude-opus-5-v1:0",
    "openrouter": "openrouter/anthropic/claude-opus-5",
    "openai_chat": "openai_chat/gpt-4.1",
    "openai_responses": "openai_responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-pro",
}
CELLS = [(agent, target) for agent in ("claude", "codex") for target in TARGETS]
"""Claude Code sets cache markers, which are carried; for Codex they are placed."""
OPENROUTER = '[upstreams.openrouter]\nurl = "{url}"\nkey_env = "SIMULATED_KEY"'


def script(agent: str, folder: Path) -> dict[str, Any]:
    """A model that reads one file after the other, and then is done."""
    name = "Read" if agent == "claude" else "exec_command"
    replies: list[dict[str, Any]] = []
    for number in range(REQUESTS - 1):
        path = folder / f"{number}.txt"
        path.write_text(f"This is file {number}. " * 20, encoding="utf-8")
        arguments = {"file_path": str(path)} if agent == "claude" else {"cmd": f"cat {path.name}"}
        replies.append({"calls": [{"name": name, "arguments": arguments}]})
    return {"rules": [{"when": {"tool": name}, "replies": [*replies, {"text": "Done"}]}]}


def run_agent(agent: str, served: Served, model: str, cwd: Path) -> AgentRun:
    if agent == "claude":
        return run_claude(served.url, "Read all files.", cwd, model=model)
    return run_codex(f"{served.url}/v1", "Read all files.", cwd, model=model)


def too_small(simulated: Server) -> dict[int, float]:
    """The requests from the third on that read too little of the input of the one before, by number from 1."""
    answered = [request for request in simulated.requests if request.answered_by.startswith("rules")]
    assert len(answered) == REQUESTS
    return small_shares(answered)


def small_shares(answered: list[RecordedRequest]) -> dict[int, float]:
    """The requests from the third on that read too little, by number from 1."""
    found: dict[int, float] = {}
    for number, (before, now) in enumerate(pairwise([request.usage for request in answered]), start=2):
        assert before is not None
        assert now is not None
        found[number] = (now.cache_read_tokens or 0) / (before.input_tokens or 1)
    return {number: share for number, share in found.items() if share < SHARE and number > 2}


@pytest.mark.parametrize(("agent", "target"), CELLS)
def test_a_long_session_of_an_agent_reads_from_the_cache(tmp_path: Path, agent: str, target: str) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    with simulator.serve(script(agent, cwd)) as simulated:
        upstreams = OPENROUTER.format(url=simulated.url("openrouter"))
        with gateway(simulated, upstreams=upstreams) as served:
            done = run_agent(agent, served, TARGETS[target], cwd)
        assert done.text == "Done", done.output()
        assert too_small(simulated) == {}


CHAINS = {
    "claude": ("anthropic/claude-opus-5", "openai_responses/gpt-5.5"),
    "codex": ("bedrock/anthropic.claude-opus-5-v1:0", "openai_chat/gpt-4.1"),
}
"""The upstream that fails once, and the one that takes over."""
FAILED = 9
"""The number of replies before the one that fails."""


@pytest.mark.parametrize("agent", CHAINS)
def test_a_failover_in_a_session_of_an_agent_costs_one_turn(tmp_path: Path, agent: str) -> None:
    """Both read from their own caches again after it: the second upstream once, the first one where it was."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    plan = script(agent, cwd)
    [rule] = plan["rules"]
    first, second = CHAINS[agent]
    rules = [
        {**rule, "replies": rule["replies"][:FAILED], "times": FAILED},
        {"when": {**rule["when"], "provider": first.partition("/")[0]}, "times": 1, "fault": 503},
        {**rule, "replies": rule["replies"][FAILED:20] + rule["replies"][-1:]},
    ]
    with simulator.serve({"rules": rules}) as simulated:
        with gateway(simulated, models={"m": json.dumps([first, second])}) as served:
            done = run_agent(agent, served, "m", cwd)
            costs = [record.reply.cache_loss for record in served.records]
        assert done.text == "Done", done.output()
        answered = [each for each in simulated.requests if each.answered_by.startswith("rules") and each.usage]
        assert len(answered) > 20
        models = [each.model for each in answered]
        assert models.count(second.partition("/")[2]) == 1, "only the request that failed went elsewhere"
        failed = models.index(second.partition("/")[2]) + 1
        assert set(small_shares(answered)) <= {failed}
        lost = [loss for loss in costs if loss is not None]
        assert [loss.cause for loss in lost] == ["upstream"]


NOTES = Path(__file__).parent / "mcp_servers" / "notes.py"
RECORD = "mcp__notes__record"
"""A tool that Claude Code defers: the model has to find it first."""


@pytest.mark.parametrize(
    ("model", "is_kept"), [("openai_responses/gpt-5.5", True), ("openai_responses/gpt-4.1", False)]
)
def test_a_tool_that_claude_code_loads_leaves_the_cache_of_newer_models_alone(
    tmp_path: Path, model: str, is_kept: bool
) -> None:
    """They take it behind what was said so far. Older ones have it in the list of tools, where the prompt begins."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": {"command": sys.executable, "args": [str(NOTES)]}}}))
    search = {"name": "ToolSearch", "arguments": {"query": f"select:{RECORD}", "max_results": 5}}
    record = {"name": RECORD, "arguments": {"path": "proof.txt", "text": "recorded"}}
    plan = [
        {"when": {"tool": "ToolSearch"}, "times": 1, "reply": {"calls": [search]}},
        {"when": {"tool": RECORD}, "times": 1, "reply": {"calls": [record]}},
        {"when": {"tool": RECORD}, "reply": {"text": "Done"}},
    ]
    with simulator.serve({"rules": plan}) as simulated, gateway(simulated) as served:
        extra = ("--mcp-config", str(config), "--dangerously-skip-permissions")
        done = run_claude(served.url, "Record it.", cwd, model=model, extra=extra)
        assert done.text == "Done", done.output()
        assert (cwd / "proof.txt").read_text() == "recorded", done.output()
        begun, loaded, last = [request for request in simulated.requests if request.answered_by.startswith("rules")]
        assert begun.usage is not None
        assert loaded.usage is not None
        assert last.usage is not None
        share = (loaded.usage.cache_read_tokens or 0) / (begun.usage.input_tokens or 1)
        assert (share > SHARE) == is_kept, (share, done.output())
        assert (last.usage.cache_read_tokens or 0) > SHARE * (loaded.usage.input_tokens or 1)

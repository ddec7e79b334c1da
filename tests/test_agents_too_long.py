"""Real coding agents whose conversation is too long for the model behind the gateway.

Law: whoever refuses it, the provider or the gateway beforehand, the agent understands it as its own provider's refusal:
it compacts and goes on, or says in its own words that the conversation is too long. With the settings that `toolglot
doctor` prints, it compacts before that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.coding_agents import run_claude, run_codex, run_gemini
from support.gateway.served_gateway import Served, gateway
from support.more_agents import run_opencode
from toolglot.gateway.config.agent_limits import agent_settings
from toolglot.profiles.rules import ContextRules
from toolglot.simulator import RecordedRequest, Server, serve

pytestmark = pytest.mark.agents

MODELS: Final = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "bedrock": "anthropic.claude-opus-5-v1:0",
}
DONE: Final = "Done at last."
REFUSED_ONCE: Final = [
    {"when": {"contains": "list the files"}, "times": 1, "fault": "context_overflow"},
    {"reply": {"text": DONE}},
]
"""The model refuses one prompt as too long, and answers everything else."""
SUMMARY: Final = "This session is being continued from a previous conversation"
"""How Claude Code begins a conversation that it has compacted."""


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def to_upstream(upstream: str) -> dict[str, str]:
    return dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), f"{upstream}/{MODELS[upstream]}")


def requests_to(simulated: Server) -> list[RecordedRequest]:
    return [request for request in simulated.requests if request.method == "POST"]


def first_words(request: RecordedRequest) -> str:
    """The beginning of a conversation, without what its system says."""
    body: Any = request.body
    turns = body.get("messages") or body.get("input") or body.get("contents")
    return json.dumps(next(turn for turn in turns if turn.get("role") == "user"))


def statuses(served: Served) -> list[int | None]:
    return [record.response.status for record in served.records if record.request.method == "POST"]


# --- the provider refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize("upstream", MODELS)
def test_claude_code_compacts_when_the_provider_refuses(upstream: str, simulated: Server, work: Path) -> None:
    with gateway(simulated, models=to_upstream(upstream)) as served:
        assert run_claude(served.url, "Say hello.", work).text == "Hello."
        simulated.script(rules=REFUSED_ONCE)
        run = run_claude(served.url, "Now list the files.", work, extra=["--continue"])
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert statuses(served).count(400) == 1, run.output()
    assert SUMMARY in first_words(requests_to(simulated)[-1]), run.output()


def test_claude_code_asks_for_a_shorter_reply_when_only_that_does_not_fit(simulated: Server, work: Path) -> None:
    simulated.script(windows={"*": 60_000}, rules=[{"reply": {"text": DONE}}])
    with gateway(simulated, models={"claude-*": "vllm/some-model"}) as served:
        run = run_claude(served.url, "Say hello.", work)
    assert (run.text, run.exit) == (DONE, 0), run.output()
    first, second = requests_to(simulated)
    assert (first.status, second.status) == (400, 200), run.output()
    assert second.body["messages"] == first.body["messages"]
    assert second.body["max_tokens"] < 60_000 < first.body["max_tokens"]


@pytest.mark.parametrize("upstream", ["openai_responses", "openai_chat", "anthropic", "gemini"])
def test_codex_says_that_the_context_is_full_when_the_provider_refuses(
    upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=REFUSED_ONCE)
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = run_codex(served.url + "/v1", "Now list the files.", work)
    assert run.exit != 0, run.output()
    assert "ran out of room in the model's context window" in run.stdout, run.output()
    assert statuses(served) == [400], run.output()  # it does not try again


@pytest.mark.parametrize("upstream", ["openai_responses", "openai_chat", "anthropic", "gemini"])
def test_codex_compacts_before_the_turn_after_a_refusal(upstream: str, simulated: Server, work: Path) -> None:
    go_on = ["resume", "--last"]
    with gateway(simulated, models=to_upstream(upstream)) as served:
        assert run_codex(served.url + "/v1", "Say hello.", work).text == "Hello."
        simulated.script(rules=REFUSED_ONCE)
        assert run_codex(served.url + "/v1", "Now list the files.", work, extra=go_on).exit != 0
        sent = len(requests_to(simulated))
        run = run_codex(served.url + "/v1", "Go on.", work, extra=go_on)
    assert (run.text, run.exit) == (DONE, 0), run.output()
    later = [json.dumps(request.body) for request in requests_to(simulated)[sent:]]
    assert "CONTEXT CHECKPOINT COMPACTION" in later[0], run.output()
    assert "Another language model" in later[-1], run.output()


@pytest.mark.parametrize("upstream", MODELS)
def test_opencode_compacts_when_the_provider_refuses(upstream: str, simulated: Server, work: Path) -> None:
    """It goes on by itself, and remembers the error in its exit code, as it does without the gateway."""
    with gateway(simulated, models=to_upstream(upstream)) as served:
        assert run_opencode(served.url + "/v1", "Say hello.", work).text == "Hello."
        simulated.script(rules=REFUSED_ONCE)
        run = run_opencode(served.url + "/v1", "Now list the files.", work, extra=["--continue"])
    assert (run.text, run.exit) == (DONE, 1), run.output()
    assert "context summarization agent" in json.dumps(requests_to(simulated)[-2].body), run.output()
    assert statuses(served).count(400) == 1, run.output()


@pytest.mark.parametrize("upstream", ["gemini", "anthropic", "openai_chat"])
def test_gemini_cli_shows_the_refusal_as_that_of_gemini(upstream: str, simulated: Server, work: Path) -> None:
    simulated.script(rules=REFUSED_ONCE)
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = run_gemini(served.url, "Now list the files.", work)
    assert run.exit != 0, run.output()
    assert "exceeds the maximum number of tokens allowed" in run.stdout + run.stderr, run.output()
    assert statuses(served).count(400) == 1, run.output()


# --- the gateway refuses ----------------------------------------------------------------------------

LONG_REPLY: Final = "word " * 6_000


def test_claude_code_compacts_when_the_gateway_refuses_beforehand(simulated: Server, work: Path) -> None:
    """Each reply adds 6,000 words. The fourth request cannot fit any more, and a part of it can."""
    own = '[profiles.openai.rules]\n"context.window" = 12_500\n'
    simulated.script(rules=[{"reply": {"text": LONG_REPLY}}])
    with gateway(simulated, models=to_upstream("openai_chat"), upstreams=own) as served:
        for part in range(3):
            run = run_claude(served.url, f"Write part {part}.", work, extra=["--continue"] * bool(part))
            assert run.exit == 0, run.output()
        sent = len(requests_to(simulated))
        simulated.script(rules=[{"reply": {"text": DONE}}])
        run = run_claude(served.url, "Write the end.", work, extra=["--continue"])
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert 400 in statuses(served), run.output()
    assert all(request.status == 200 for request in requests_to(simulated)), run.output()
    assert len(requests_to(simulated)) > sent
    assert SUMMARY in first_words(requests_to(simulated)[-1]), run.output()


# --- with the settings of `toolglot doctor` ---------------------------------------------------------


def settings_of(agent: str, window: int) -> str:
    lines = agent_settings(ContextRules(window=window, output=8_000), "m")
    return next(line for line in lines if line.startswith(agent)).removeprefix(agent).strip()


def test_claude_code_takes_the_window_that_the_doctor_prints(simulated: Server, work: Path) -> None:
    """It knows no model of this name: without the setting it would assume a window of its own."""
    variables = dict(each.split("=") for each in settings_of("Claude Code", 60_000).split())
    with gateway(simulated, models={"local": "openai_chat/gpt-4.1"}) as served:
        place = {"ANTHROPIC_BASE_URL": served.url, **variables}
        run = run_claude("", "Say hello.", work, model="local", cloud=place)
    assert json.loads(run.stdout)["modelUsage"]["local"]["contextWindow"] == 60_000, run.output()
    (request,) = requests_to(simulated)
    assert request.body["max_completion_tokens"] == 8_000, run.output()


def test_codex_compacts_in_time_with_what_the_doctor_prints(simulated: Server, work: Path) -> None:
    """The first turn is longer than nine tenths of the window, so that the second one begins with a summary."""
    options = [part.strip() for part in settings_of("Codex", 9_000).split(",")]
    extra = [word for option in options for word in ("-c", option.replace(" ", ""))]
    with gateway(simulated, models=to_upstream("openai_chat")) as served:
        assert run_codex(served.url + "/v1", "Say hello.", work, extra=extra).text == "Hello."
        sent = len(requests_to(simulated))
        simulated.script(rules=[{"reply": {"text": DONE}}])
        run = run_codex(served.url + "/v1", "Go on.", work, extra=[*extra, "resume", "--last"])
    assert (run.text, run.exit) == (DONE, 0), run.output()
    later = [json.dumps(request.body) for request in requests_to(simulated)[sent:]]
    assert "CONTEXT CHECKPOINT COMPACTION" in later[0], run.output()
    assert "Another language model" in later[-1], run.output()


def test_gemini_cli_compresses_in_time_with_what_the_doctor_prints(simulated: Server, work: Path) -> None:
    """The first turns are longer than the setting allows, so that the last one begins with a summary."""
    settings = json.loads(f"{{{settings_of('Gemini CLI', 9_000)}}}")
    simulated.script(rules=[{"reply": {"text": " ".join(map(str, range(8_000)))}}])  # it stops at repetitions
    with gateway(simulated, models=to_upstream("openai_chat")) as served:
        for part in range(2):
            extra = ["--resume", "latest"] * bool(part)
            run = run_gemini(served.url, f"Write part {part}.", work, settings=settings, extra=extra)
            assert run.exit == 0, run.output()
        simulated.script(rules=[{"reply": {"text": DONE}}])
        run = run_gemini(served.url, "Write the end.", work, settings=settings, extra=["--resume", "latest"])
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert any("state_snapshot" in json.dumps(request.body) for request in requests_to(simulated)), run.output()

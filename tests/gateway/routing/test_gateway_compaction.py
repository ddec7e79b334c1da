"""Compaction on upstreams that have none: the model itself summarises, and the summary stays readable.

The clients are the providers' own SDKs, the upstreams the strict simulator.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

import toolglot
from support.gateway.served_gateway import Served, gateway
from support.javascript_clients import FOLDER, why_not
from toolglot.gateway.routing.compaction import INSTRUCTIONS
from toolglot.simulator import Server, serve

SUMMARY = "They read main.py and want it renamed."
SCRIPT = {
    "rules": [
        {"when": {"contains": "Summarise the conversation"}, "reply": {"text": SUMMARY, "calls": []}},
        {"when": {"contains": "In a haiku"}, "reply": {"text": "Short old pond summary", "calls": []}},
        {"reply": {"text": "Going on.", "calls": []}},
    ]
}
MODELS = {
    "anthropic": "claude-opus-4-6",
    "openai_chat": "gpt-4.1",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "cohere": "command-a-03-2025",
    "ollama": "llama3.2",
    "bedrock": "amazon.nova-pro-v1:0",
}
NATIVE = {"openai_responses": "gpt-5.5"}
CHAIN = '["openai_chat/gpt-4.1", "gemini/gemini-3-pro"]'
HISTORY: list[Any] = [
    {"role": "user", "content": "Read main.py"},
    {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path": "main.py"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "print(1)"},
    {"role": "assistant", "content": "It prints 1."},
    {"role": "user", "content": "Rename it."},
]
TOOL: Any = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


@pytest.fixture
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated, models={name: f"{name}/{model}" for name, model in (MODELS | NATIVE).items()}) as running:
        yield running


def client(served: Served, key: str = "k") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0)


def bodies(simulated: Server) -> list[str]:
    return [json.dumps(request.body, ensure_ascii=False) for request in simulated.requests]


@pytest.mark.parametrize("upstream", MODELS)
def test_a_trigger_compacts_on_every_upstream_and_the_summary_survives_a_switch(
    upstream: str, served: Served, simulated: Server
) -> None:
    """As Codex does it: a stream with one compaction item, which later requests hold."""
    sdk = client(served)
    with sdk.responses.stream(
        model=upstream, input=[*HISTORY, {"type": "compaction_trigger"}], tools=[TOOL], store=False
    ) as stream:
        kinds = [event.type for event in stream]
        reply = stream.get_final_response()
    assert reply.status == "completed"
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    (item,) = reply.output
    assert item.type == "compaction"
    assert SUMMARY not in item.encrypted_content
    assert reply.usage is not None
    assert reply.usage.output_tokens > 0
    (asked,) = bodies(simulated)
    assert INSTRUCTIONS[:40] in asked
    assert "print(1)" in asked
    assert "compaction_trigger" not in asked
    for other in MODELS:
        kept = [HISTORY[0], HISTORY[-1], item.model_dump(exclude_none=True), {"role": "user", "content": "Go on"}]
        again = sdk.responses.create(model=other, input=kept, store=False)
        assert again.output_text == "Going on."
        sent = bodies(simulated)[-1]
        assert SUMMARY in sent
        assert "Rename it." in sent
        assert item.encrypted_content not in sent
    assert {record.response.status for record in served.records} == {200}


@pytest.mark.parametrize("upstream", ["anthropic", "openai_chat", "gemini"])
def test_the_path_that_only_compacts_is_served_on_every_upstream(
    upstream: str, served: Served, simulated: Server
) -> None:
    sdk = client(served)
    compacted = sdk.responses.compact(model=upstream, input=HISTORY, instructions="Be brief.")
    assert compacted.object == "response.compaction"
    assert compacted.created_at > 0
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    assert compacted.usage.total_tokens > 0
    following: list[Any] = [item.model_dump(exclude_none=True, warnings=False) for item in compacted.output]
    sdk.responses.create(model=upstream, input=[*following, {"role": "user", "content": "Go on"}])
    sent = bodies(simulated)[-1]
    assert SUMMARY in sent
    assert "Read main.py" in sent
    assert "print(1)" not in sent


def test_what_one_key_compacted_another_cannot_read(simulated: Server) -> None:
    with gateway(simulated, models={"m": "openai_chat/gpt-4.1"}) as served:
        compacted = client(served, "one").responses.compact(model="m", input=HISTORY)
        item: Any = compacted.output[-1].model_dump(exclude_none=True)
        bad: Any
        for bad in (item, {**item, "encrypted_content": "toolglot.compaction.\x00"}):
            with pytest.raises(openai.BadRequestError) as caught:
                client(served, "two").responses.create(model="m", input=[bad, HISTORY[0]])
            assert caught.value.code == "compaction_not_found"
            assert "Send the conversation without that item" in str(caught.value)


def test_a_threshold_of_openais_compacts_before_the_answer(served: Served, simulated: Server) -> None:
    sdk = client(served)
    wanted: Any = [{"type": "compaction", "compact_threshold": 20}]
    reply = sdk.responses.create(model="gemini", input=HISTORY, context_management=wanted, tools=[TOOL])
    assert [item.type for item in reply.output] == ["compaction", "message"]
    first, second = bodies(simulated)
    assert "print(1)" in first
    assert SUMMARY in second
    assert "print(1)" not in second
    more = [*HISTORY, *(item.model_dump(exclude_none=True) for item in reply.output), {"role": "user", "content": "?"}]
    sdk.responses.create(model="gemini", input=more, context_management=[{"type": "compaction"}])
    assert len(bodies(simulated)) == 3
    assert SUMMARY in bodies(simulated)[-1]
    assert "print(1)" not in bodies(simulated)[-1]
    continued = sdk.responses.create(model="anthropic", input="?", previous_response_id=reply.id)
    assert continued.output_text == "Going on."
    assert SUMMARY in bodies(simulated)[-1]


def test_below_the_threshold_nothing_is_summarised(served: Served, simulated: Server) -> None:
    wanted: Any = [{"type": "compaction", "compact_threshold": 100_000}]
    reply = client(served).responses.create(model="gemini", input=HISTORY, context_management=wanted)
    assert [item.type for item in reply.output] == ["message"]
    assert len(bodies(simulated)) == 1
    assert "context_management" not in bodies(simulated)[0]


# --- providers that compact themselves --------------------------------------------------------------


def test_openai_compacts_itself_and_reads_only_its_own(served: Served, simulated: Server) -> None:
    sdk = client(served)
    compacted = sdk.responses.compact(model="openai_responses", input=HISTORY)
    assert simulated.requests[-1].path.endswith("/responses/compact")
    assert simulated.requests[-1].status == 200
    assert served.records[-1].reply.usage is not None
    reply = sdk.responses.create(
        model="openai_responses", input=[*HISTORY, {"type": "compaction_trigger"}], tools=[TOOL], store=False
    )
    (item,) = reply.output
    assert item.type == "compaction"
    assert item.encrypted_content.startswith("gAAAA")
    assert bodies(simulated)[-1].count("compaction_trigger") == 1
    own: Any = [HISTORY[0], item.model_dump(exclude_none=True), {"role": "user", "content": "Go on"}]
    again = sdk.responses.create(model="openai_responses", input=own, store=False)
    assert again.output_text == "Going on."
    assert item.encrypted_content in bodies(simulated)[-1]
    elsewhere = sdk.responses.create(model="gemini", input=own, store=False)
    assert elsewhere.output_text == "Going on."
    assert "Read main.py" in bodies(simulated)[-1]
    lost = [entry for entry in served.records[-1].sent.entries if "only its provider can read" in entry.reason]
    assert [entry.gravity for entry in lost] == ["loss"]
    ours: Any = sdk.responses.compact(model="gemini", input=HISTORY).output[-1].model_dump(exclude_none=True)
    back = sdk.responses.create(model="openai_responses", input=[ours, HISTORY[-1]], store=False)
    assert back.output_text == "Going on."
    assert SUMMARY in bodies(simulated)[-1]
    assert compacted.object == "response.compaction"


def test_anthropic_compacts_itself_and_its_summary_is_readable_elsewhere(served: Served, simulated: Server) -> None:
    asked: Any = {"max_tokens": 500, "betas": BETA, "context_management": edits()}
    made = claude(served).beta.messages.create(model="anthropic", messages=MESSAGES, **asked)
    assert [block.type for block in made.content] == ["compaction", "text"]
    assert len(simulated.requests) == 1
    kept: Any = [*MESSAGES, {"role": "assistant", "content": made.model_dump(exclude_none=True)["content"]}]
    kept.append({"role": "user", "content": "And?"})
    claude(served).beta.messages.create(model="anthropic", messages=kept, **asked)
    assert json.loads(bodies(simulated)[-1])["messages"] == kept
    claude(served).beta.messages.create(model="gemini", messages=kept, max_tokens=500)
    assert "A summary of 5 messages" in bodies(simulated)[-1]
    assert "print(1)" not in bodies(simulated)[-1]


# --- Anthropic --------------------------------------------------------------------------------------

MESSAGES: list[Any] = [
    {"role": "user", "content": "Read main.py"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "print(1) " * 40}]},
    {"role": "assistant", "content": "It prints 1."},
    {"role": "user", "content": "Rename it to app.py."},
]
BETA = ["compact-2026-01-12"]


def claude(served: Served) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=0)


def edits(**more: Any) -> Any:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50}, **more}
    return {"edits": [edit]}


@pytest.mark.parametrize("upstream", ["openai_chat", "gemini", "cohere"])
def test_anthropics_compaction_block_comes_before_the_answer(upstream: str, served: Served, simulated: Server) -> None:
    asked: Any = {"model": upstream, "max_tokens": 500, "betas": BETA, "context_management": edits()}
    whole = claude(served).beta.messages.create(messages=MESSAGES, **asked)
    with claude(served).beta.messages.stream(messages=MESSAGES, **asked) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert "compaction" in kinds
    reply: Any
    for reply in (whole, streamed):
        assert [block.type for block in reply.content] == ["compaction", "text"]
        assert reply.content[0].type == "compaction"
        assert SUMMARY in (reply.content[0].content or "")
        assert "Rename it to app.py." in (reply.content[0].content or "")
        assert reply.stop_reason == "end_turn"
        assert [entry.type for entry in reply.usage.iterations or ()] == ["compaction", "message"]
    assert "print(1)" not in bodies(simulated)[1]
    assert SUMMARY in bodies(simulated)[1]
    kept: Any = [*MESSAGES, {"role": "assistant", "content": whole.model_dump(exclude_none=True)["content"]}]
    claude(served).beta.messages.create(messages=[*kept, {"role": "user", "content": "And?"}], **asked)
    assert SUMMARY in bodies(simulated)[-1]
    assert "print(1)" not in bodies(simulated)[-1]
    tokens = served.records[0].reply.usage
    assert tokens is not None
    assert tokens["input_tokens"] > whole.usage.input_tokens


def test_a_pause_after_the_compaction_ends_the_reply(served: Served, simulated: Server) -> None:
    asked: Any = {"model": "openai_chat", "max_tokens": 500, "betas": BETA, "messages": MESSAGES}
    wanted = edits(pause_after_compaction=True, instructions="In a haiku, please.")
    reply = claude(served).beta.messages.create(context_management=wanted, **asked)
    assert [block.type for block in reply.content] == ["compaction"]
    assert reply.stop_reason == "compaction"
    assert reply.content[0].type == "compaction"
    assert "old pond" in (reply.content[0].content or "")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (0, 0)
    assert reply.context_management is not None
    assert reply.context_management.applied_edits == []
    assert len(bodies(simulated)) == 1
    assert INSTRUCTIONS[:40] not in bodies(simulated)[0]
    with claude(served).beta.messages.stream(context_management=wanted, **asked) as stream:
        assert stream.get_final_message().stop_reason == "compaction"
    alone = claude(served).beta.messages.create(compaction={"type": "summarize"}, **asked)
    assert [block.type for block in alone.content] == ["compaction"]
    assert alone.stop_reason == "compaction"


def test_a_compaction_of_ours_is_text_for_anthropic_itself(served: Served, simulated: Server) -> None:
    asked: Any = {"max_tokens": 500, "betas": BETA, "context_management": edits()}
    made = claude(served).beta.messages.create(model="gemini", messages=MESSAGES, **asked)
    kept: Any = [*MESSAGES, {"role": "assistant", "content": made.model_dump(exclude_none=True)["content"]}]
    claude(served).beta.messages.create(
        model="anthropic", messages=[*kept, {"role": "user", "content": "And?"}], max_tokens=500
    )
    sent = bodies(simulated)[-1]
    assert SUMMARY in sent
    assert "toolglot" not in sent
    assert "print(1)" not in sent


def test_a_model_that_writes_no_summary_is_reported_and_the_request_goes_on(simulated: Server) -> None:
    silent = {"rules": [{"when": {"contains": "Summarise"}, "reply": {"text": "", "calls": []}}, *SCRIPT["rules"][2:]]}
    with serve(silent) as mute, gateway(mute, models={"m": "openai_chat/gpt-4.1"}) as served:
        reply = claude(served).beta.messages.create(
            model="m", max_tokens=500, messages=MESSAGES, betas=BETA, context_management=edits()
        )
        assert [block.type for block in reply.content] == ["text"]
        assert any("not summarised" in entry.reason for entry in served.records[-1].sent.entries)
        with pytest.raises(openai.APIStatusError) as caught:
            client(served).responses.compact(model="m", input=HISTORY)
        assert "wrote no summary" in str(caught.value)


# --- middleware -------------------------------------------------------------------------------------


class Step:
    """Notes the replies that it sees."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def process_request(self, request: toolglot.Request) -> None:
        assert "Read main.py" in str(request.messages)

    def process_response(self, response: toolglot.Response) -> None:
        self.bodies.append(str(response.body))


@pytest.mark.parametrize("stream", [False, True])
def test_middleware_sees_a_reply_that_is_a_compaction(simulated: Server, stream: bool) -> None:
    step = Step()
    with gateway(simulated, models={"m": "gemini/gemini-3-pro"}, middleware=[step]) as served:
        asked: Any = {"model": "m", "input": [*HISTORY, {"type": "compaction_trigger"}], "stream": stream}
        list(client(served).responses.create(**asked))
        assert served.records[-1].response.error == ""
    (body,) = step.bodies
    assert "compaction" in body


# --- JavaScript -------------------------------------------------------------------------------------


def test_the_javascript_sdks_compact_and_go_on(served: Served) -> None:
    missing, node = why_not(), shutil.which("node")
    assert missing is None, missing
    assert node is not None
    command = [node, "compact.mjs", served.url, "gemini"]
    done = subprocess.run(command, cwd=FOLDER, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["openai"] == {"streamed": ["compaction"], "whole": ["message", "compaction"], "text": "Going on."}
    assert found["anthropic"]["streamed"] == ["compaction", "text"]
    assert found["anthropic"]["summary"].startswith(SUMMARY)
    assert found["anthropic"]["iterations"] == ["compaction", "message"]
    assert found["anthropic"]["text"] == "Going on."


# --- what it costs ----------------------------------------------------------------------------------


def test_a_summary_is_counted_and_its_key_limited(simulated: Server) -> None:
    digest = hashlib.sha256(b"sk-a-small-client-key").hexdigest()
    keys = f'[keys.small]\nkey = "sha256:{digest}"\ntokens_per_day = 1'
    with gateway(simulated, models={"m": "openai_chat/gpt-4.1"}, upstreams=keys) as served:
        sdk = client(served, "sk-a-small-client-key")
        sdk.responses.compact(model="m", input=HISTORY)
        usage = served.records[-1].reply.usage
        assert usage is not None
        assert usage["input_tokens"] > 1
        with pytest.raises(openai.RateLimitError):
            sdk.responses.compact(model="m", input=HISTORY)
        assert len(simulated.requests) == 1


def test_a_summary_outlives_the_gateway_that_made_it(simulated: Server, tmp_path: Path) -> None:
    settings = f'store = "{tmp_path / "store.db"}"'
    models = {"m": "openai_chat/gpt-4.1"}
    with gateway(simulated, models=models, settings=settings) as served:
        item: Any = client(served).responses.compact(model="m", input=HISTORY).output[-1].model_dump(exclude_none=True)
    with gateway(simulated, models=models, settings=settings) as served:
        reply = client(served).responses.create(model="m", input=[item, HISTORY[-1]])
    assert reply.output_text == "Going on."
    assert SUMMARY in bodies(simulated)[-1]


def test_a_summary_that_was_made_is_used_again_if_another_upstream_answers() -> None:
    failing = {"when": {"provider": "openai"}, "fault": "500"}
    script = {"rules": [SCRIPT["rules"][0], failing, *SCRIPT["rules"][2:]]}
    with serve(script) as simulated, gateway(simulated, models={"m": CHAIN}) as served:
        wanted: Any = [{"type": "compaction", "compact_threshold": 20}]
        reply = client(served).responses.create(model="m", input=HISTORY, context_management=wanted)
    assert [item.type for item in reply.output] == ["compaction", "message"]
    assert [request.provider for request in simulated.requests] == ["openai", "openai", "gemini"]
    assert SUMMARY in bodies(simulated)[-1]


# --- context edits ----------------------------------------------------------------------------------


def test_old_results_are_cleared_and_the_reply_says_so(served: Served, simulated: Server) -> None:
    turns: list[Any] = []
    for number in range(5):
        turns += [
            {"role": "user", "content": f"Read {number}"} if not number else None,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"content-{number} " * 9}
                ],
            },
        ]
    messages: Any = [turn for turn in turns if turn is not None]
    edit: Any = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "tool_uses", "value": 3},
        "keep": {"type": "tool_uses", "value": 2},
    }
    asked: Any = {
        "model": "gemini",
        "max_tokens": 500,
        "messages": messages,
        "betas": ["context-management-2025-06-27"],
    }
    reply = claude(served).beta.messages.create(context_management={"edits": [edit]}, **asked)
    sent = bodies(simulated)[-1]
    assert [f"content-{number} " in sent for number in range(5)] == [False, False, False, True, True]
    assert reply.context_management is not None
    (applied,) = reply.context_management.applied_edits
    assert applied.type == "clear_tool_uses_20250919"
    assert applied.cleared_tool_uses == 3
    assert applied.cleared_input_tokens > 0
    with claude(served).beta.messages.stream(context_management={"edits": [edit]}, **asked) as stream:
        final = stream.get_final_message()
    assert final.context_management is not None
    assert len(final.context_management.applied_edits) == 1
    assert any("3 results of tools" in entry.reason for entry in served.records[-1].sent.entries)


def test_edits_that_clear_nothing_are_answered_as_anthropic_answers_them(served: Served, simulated: Server) -> None:
    """What Claude Code sends with every request."""
    body = {
        "model": "gemini",
        "max_tokens": 10,
        "messages": MESSAGES[:1],
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }
    reply = httpx.post(f"{served.url}/v1/messages", json=body, headers={"x-api-key": "k"}).json()
    assert reply["context_management"] == {"applied_edits": []}
    assert not [entry for entry in served.records[-1].sent.entries if "context_management" in entry.path]

"""Requests that real providers refused for their shape: lint names each, repair fixes and reports it, and the simulated
provider refuses it with the same status. The bodies are our own; the rules name the recordings of the refusals."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

import toolglot
from support.simulator.asgi_client import ask
from toolglot.simulator import Simulator

Fields = dict[str, Any]

CLAUDE = "claude-sonnet-4-6"
GPT = "gpt-4.1"
TOOL: Fields = {"name": "look", "input_schema": {"type": "object", "properties": {}}}


def claude(*messages: Fields, **fields: Any) -> Fields:
    return {
        "model": CLAUDE,
        "max_tokens": 100,
        "messages": list(messages) or [{"role": "user", "content": "Go."}],
        **fields,
    }


def chat(**fields: Any) -> Fields:
    return {"model": GPT, "messages": [{"role": "user", "content": "Go."}], **fields}


def responses(**fields: Any) -> Fields:
    return {"model": GPT, "input": [{"role": "user", "content": "Go."}], **fields}


def strict_tool(name: str, count: int, prop: Any, *, required: bool) -> Fields:
    names = [f"p{number}" for number in range(count)]
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, prop),
        "required": names if required else [],
        "additionalProperties": False,
    }
    return {"name": name, "input_schema": schema, "strict": True}


def output(schema: Fields) -> Fields:
    return {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PARTIAL = {**OPEN, "required": [], "additionalProperties": False}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "required": ["next"],
    "additionalProperties": False,
}
NULLABLE = {"type": ["string", "null"]}
STRING = {"type": "string"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}


USER_MESSAGE = {"role": "user", "content": "Go."}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "EqkB"}
ITEM_IDS = "openai-responses-item-id-prefix"


def message_item(id: str) -> Fields:
    parts = [{"type": "output_text", "text": "Yes.", "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": parts}


def signed_call() -> Fields:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": "s"}}}
    answered = {"role": "tool", "tool_call_id": "call_1", "content": "seen"}
    return chat(messages=[USER_MESSAGE, {"role": "assistant", "content": None, "tool_calls": [signed]}, answered])


class Refused(NamedTuple):
    target: str
    body: Fields
    rule: str


def claude_with_call(*blocks: Fields) -> Fields:
    return claude(
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": list(blocks)},
        {"role": "user", "content": [RESULT]},
        tools=[TOOL],
    )


def text(content: str) -> Fields:
    return {"type": "text", "text": content}


REFUSED = {
    "text after a call": Refused("anthropic", claude_with_call(CALL, text("There.")), "anthropic-call-text-after"),
    "negative temperature (Claude)": Refused("anthropic", claude(temperature=-5.0), "anthropic-temperature-min"),
    "negative temperature (Chat)": Refused("openai", chat(temperature=-0.1), "openai-temperature-min"),
    "negative temperature (Responses)": Refused(
        "openai_responses", responses(temperature=-1), "openai-responses-temperature-min"
    ),
    "a switch for parallel calls beside none": Refused(
        "anthropic",
        claude(tools=[TOOL], tool_choice={"type": "none", "disable_parallel_tool_use": True}),
        "anthropic-choice-none-parallel",
    ),
    "too many strict tools": Refused(
        "anthropic",
        claude(tools=[strict_tool(f"t{number}", 0, STRING, required=True) for number in range(21)]),
        "anthropic-schema-strict-tools",
    ),
    "too many optional properties in all": Refused(
        "anthropic",
        claude(tools=[strict_tool(f"t{number}", 5, STRING, required=False) for number in range(5)]),
        "anthropic-schema-strict-optional",
    ),
    "too many optional properties in one schema": Refused(
        "anthropic",
        claude(tools=[strict_tool("t", 24, STRING, required=False)]),
        "anthropic-schema-strict-optional-one",
    ),
    "too many unions in all": Refused(
        "anthropic",
        claude(tools=[strict_tool(f"t{number}", 3, NULLABLE, required=True) for number in range(6)]),
        "anthropic-schema-strict-unions",
    ),
    "too many unions in one schema": Refused(
        "anthropic",
        claude(tools=[strict_tool("t", 16, NULLABLE, required=True)]),
        "anthropic-schema-strict-unions-one",
    ),
    "a strict schema that refers to itself": Refused(
        "anthropic",
        claude(tools=[{"name": "t", "strict": True, "input_schema": {**NODE, "$defs": {"Node": NODE}}}]),
        "anthropic-schema-strict-recursion",
    ),
    "a strict property that is true": Refused(
        "anthropic", claude(tools=[strict_tool("t", 1, True, required=True)]), "anthropic-schema-strict-booleans"
    ),
    "an open object as output (Claude)": Refused(
        "anthropic",
        claude(output_config={"format": {"type": "json_schema", "schema": OPEN}}),
        "anthropic-output-closed",
    ),
    "an open object as strict output (Chat)": Refused(
        "openai",
        chat(response_format={"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": OPEN}}),
        "openai-output-closed",
    ),
    "an open object as strict output (Responses)": Refused(
        "openai_responses", responses(text={"format": output(OPEN)}), "openai-responses-output-closed"
    ),
    "an optional property in a strict output": Refused(
        "openai_responses", responses(text={"format": output(PARTIAL)}), "openai-responses-output-closed"
    ),
    "a reasoning item whose follower is the user": Refused(
        "openai_responses",
        {"model": "gpt-5", "input": [USER_MESSAGE, REASONING, USER_MESSAGE]},
        "openai-responses-reasoning-ends-turn",
    ),
    "a reasoning item at the end": Refused(
        "openai_responses",
        {"model": "gpt-5", "input": [USER_MESSAGE, REASONING]},
        "openai-responses-reasoning-ends-turn",
    ),
    "a reasoning item before a result": Refused(
        "openai_responses",
        {
            "model": "gpt-5",
            "input": [
                USER_MESSAGE,
                {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
                REASONING,
                {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
            ],
        },
        "openai-responses-reasoning-ends-turn",
    ),
    "a message with the id of a reasoning item": Refused(
        "openai_responses", {"model": "gpt-5", "input": [USER_MESSAGE, message_item("rs_1"), USER_MESSAGE]}, ITEM_IDS
    ),
    "a reasoning item with the id of a message": Refused(
        "openai_responses",
        {"model": "gpt-5", "input": [USER_MESSAGE, {**REASONING, "id": "msg_1"}, message_item("msg_2"), USER_MESSAGE]},
        ITEM_IDS,
    ),
    "a reasoning item of another kind that holds nothing": Refused(
        "openai_responses",
        {
            "model": "gpt-5",
            "input": [
                USER_MESSAGE,
                {"type": "reasoning", "id": "item_1", "summary": []},
                message_item("msg_2"),
                USER_MESSAGE,
            ],
        },
        ITEM_IDS,
    ),
    "a free-text call with the id of a function call": Refused(
        "openai_responses",
        {
            "model": "gpt-5",
            "input": [
                USER_MESSAGE,
                {"type": "custom_tool_call", "id": "fc_1", "call_id": "call_1", "name": "run", "input": "ls"},
                {"type": "custom_tool_call_output", "call_id": "call_1", "output": "seen"},
            ],
        },
        ITEM_IDS,
    ),
    "audio for a model that takes none": Refused(
        "openai",
        chat(messages=[{"role": "user", "content": [{"type": "text", "text": "What is said?"}, AUDIO]}]),
        "openai-without-audio",
    ),
    "logprobs at Mistral": Refused(
        "mistral",
        {**chat(logprobs=True, top_logprobs=2), "model": "mistral-small-latest"},
        "mistral-no-logprobs",
    ),
    "a signature of Gemini in a Chat call": Refused("openai", signed_call(), "openai-signature-fields"),
    "thinking of Claude in a Chat message": Refused(
        "openai",
        chat(
            messages=[
                USER_MESSAGE,
                {"role": "assistant", "content": "Yes.", "thinking_blocks": [THOUGHT]},
                USER_MESSAGE,
            ]
        ),
        "openai-signature-fields",
    ),
    "a signature of Gemini on a tool_use": Refused(
        "anthropic",
        claude_with_call({**CALL, "extra_content": {"google": {"thought_signature": "s"}}}),
        "anthropic-signature-fields",
    ),
    "a signature of OpenAI on thinking": Refused(
        "anthropic", claude_with_call({**THOUGHT, "signature": "gAAAAABo"}, CALL), "anthropic-foreign-marks"
    ),
    "a map as strict output": Refused(
        "openai_responses", responses(text={"format": output(MAP)}), "openai-responses-output-closed"
    ),
}

every_refusal = pytest.mark.parametrize("refused", REFUSED.values(), ids=list(REFUSED))


@every_refusal
def test_lint_names_what_was_refused(refused: Refused) -> None:
    assert refused.rule in [violation.rule for violation in toolglot.lint(refused.body, refused.target)]


@every_refusal
def test_repair_fixes_and_reports_what_was_refused(refused: Refused) -> None:
    before = copy.deepcopy(refused.body)
    out = toolglot.repair(refused.body, target=refused.target)
    assert refused.body == before
    assert [str(violation) for violation in toolglot.lint(out.body, refused.target)] == []
    assert len(out.report.entries) > 0
    again = toolglot.repair(out.body, target=refused.target)
    assert again.body == out.body
    assert [entry for entry in again.report.entries if entry.gravity != "housekeeping"] == []


@every_refusal
def test_the_simulated_provider_refuses_it_too(refused: Refused) -> None:
    assert ask(Simulator(), refused.target, refused.body).status == 400


# --- how each is fixed ------------------------------------------------------------------------------------------


def block_types(body: Fields) -> list[str]:
    return [block["type"] for block in body["messages"][1]["content"]]


def test_text_after_calls_moves_before_the_first_and_keeps_its_order() -> None:
    second = {**CALL, "id": "toolu_2"}
    body = claude_with_call(text("One."), CALL, text("Two."), second, text("Three."))
    body["messages"][2]["content"].append({**RESULT, "tool_use_id": "toolu_2"})
    blocks = toolglot.repair(body, target="anthropic").body["messages"][1]["content"]
    assert blocks == [text("One."), text("Two."), text("Three."), CALL, second]


def test_text_after_the_block_of_a_server_tool_stays() -> None:
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    body = claude(
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [server, found, text("Found.")]},
        {"role": "user", "content": "And?"},
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    )
    assert toolglot.lint(body, "anthropic") == ()
    assert toolglot.repair(body, target="anthropic").body == body


@pytest.mark.parametrize("source", ["openai_responses", "gemini"])
def test_a_text_after_a_call_of_another_provider_never_follows_a_tool_use(source: str) -> None:
    if source == "gemini":
        body: Fields = {
            "contents": [
                {"role": "user", "parts": [{"text": "Go."}]},
                {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}, {"text": "There."}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
            ]
        }
    else:
        body = responses()
        body["input"] += [
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There."}]},
            {"type": "function_call_output", "call_id": "call_1", "output": "seen"},
        ]
    out = toolglot.convert(body, source=source, target="anthropic", model=CLAUDE)
    assert block_types(out.body) == ["text", "tool_use"]
    assert "anthropic-call-text-after" in str(out.report)


def test_strict_stays_on_the_tools_that_fit_and_the_report_names_the_others() -> None:
    tools = [strict_tool(f"t{number}", 5, STRING, required=False) for number in range(5)]
    out = toolglot.repair(claude(tools=tools), target="anthropic")
    assert [tool["strict"] for tool in out.body["tools"]] == [True, True, True, True, False]
    assert "t4 was sent without strict" in str(out.report)


def test_what_just_fits_is_left_alone() -> None:
    for tools in (
        [strict_tool(f"t{number}", 0, STRING, required=True) for number in range(20)],
        [strict_tool(f"t{number}", 2, STRING, required=False) for number in range(12)],
        [strict_tool(f"t{number}", 1, NULLABLE, required=True) for number in range(16)],
    ):
        body = claude(tools=tools)
        assert toolglot.lint(body, "anthropic") == ()
        assert toolglot.repair(body, target="anthropic").body == body


def test_an_open_output_is_closed_and_an_optional_property_becomes_one_that_may_be_null() -> None:
    closed = toolglot.repair(responses(text={"format": output(OPEN)}), target="openai_responses").body
    assert closed["text"]["format"]["schema"] == {**OPEN, "additionalProperties": False}
    assert closed["text"]["format"]["strict"] is True
    whole = toolglot.repair(responses(text={"format": output(PARTIAL)}), target="openai_responses").body
    schema = whole["text"]["format"]["schema"]
    assert schema["required"] == ["a"]
    assert schema["properties"]["a"]["type"] == ["string", "null"]


def test_a_map_cannot_be_strict_and_strict_is_dropped() -> None:
    out = toolglot.repair(responses(text={"format": output(MAP)}), target="openai_responses")
    assert out.body["text"]["format"]["strict"] is False
    assert "openai-responses-output-closed" in str(out.report)


def test_an_output_that_is_not_strict_may_be_open() -> None:
    body = responses(text={"format": {**output(OPEN), "strict": False}})
    assert toolglot.lint(body, "openai_responses") == ()
    assert toolglot.repair(body, target="openai_responses").body == body


def test_items_keep_their_content_when_their_ids_are_dropped() -> None:
    body = {
        "model": "gpt-5",
        "input": [USER_MESSAGE, {**REASONING, "id": "msg_1"}, message_item("item_1"), USER_MESSAGE],
    }
    items = toolglot.repair(body, target="openai_responses").body["input"]
    assert [item.get("id") for item in items] == [None] * 4
    assert items[1]["encrypted_content"] == "gAAAAABo"
    assert items[2]["content"][0]["text"] == "Yes."


def test_xai_has_item_ids_of_its_own() -> None:
    reasoning = {**REASONING, "id": "tco_1", "encrypted_content": "x"}
    body = {"model": "grok-4", "store": False, "input": [USER_MESSAGE, reasoning, message_item("msg_1"), USER_MESSAGE]}
    assert toolglot.lint(body, "openai_responses") == ()
    assert toolglot.repair(body, target="openai_responses").body == body


@pytest.mark.parametrize("model", ["gpt-audio", "gpt-4o-audio-preview", "gpt-audio-mini"])
def test_audio_goes_to_the_models_that_take_it(model: str) -> None:
    body = {**chat(messages=[{"role": "user", "content": [AUDIO]}]), "model": model}
    assert toolglot.lint(body, "openai") == ()
    assert toolglot.repair(body, target="openai").body == body


@pytest.mark.parametrize("host", ["openai_compatible", "openrouter", "vllm", "llamacpp"])
def test_a_host_of_many_models_gets_the_signatures_that_a_client_sends(host: str) -> None:
    body = {**signed_call(), "model": "gemini-3-pro"}
    call = toolglot.repair(body, target=host).body["messages"][1]["tool_calls"][0]
    assert call["extra_content"] == {"google": {"thought_signature": "s"}}

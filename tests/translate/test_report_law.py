"""Law 10, reported: what the target reads otherwise than the client wrote it is in the report.

The two bodies are read by `request_view`, which shares no code with what is judged. Held over small bodies of every
class, over bodies to which something happened, and over whatever else the laws make.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from support.conversations.broken_conversations import SOURCES, TARGETS, conversations
from support.law_examples import MANY
from support.translate.broken_bodies import Fields, broken_bodies
from support.translate.request_differences import differences, listed, unreported
from support.translate.request_views import view_of
from toolglot import Conversation, InputError, Policy, RefusedError, convert, profiles
from toolglot.protocols.base import codec

PNG = "iVBORw0KGgo="
USER = {"role": "user", "content": "Read a.txt"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
CHAT_TOOLS: list[Fields] = [
    {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": SCHEMA}}
    for name in ("read", "write", "list")
]
CLAUDE_TOOLS = [{"name": name, "description": f"To {name}.", "input_schema": SCHEMA} for name in ("read", "write")]
GEMINI_TOOLS = [{"functionDeclarations": [{"name": name, "parameters": SCHEMA} for name in ("read", "write", "list")]}]


def chat(*messages: Fields, **fields: Any) -> Fields:
    return {"model": "m", "messages": [USER, *messages], "tools": CHAT_TOOLS, **fields}


def claude(*messages: Fields, **fields: Any) -> Fields:
    return {"model": "m", "max_tokens": 100, "messages": [USER, *messages], "tools": CLAUDE_TOOLS, **fields}


def chat_call(id: str = "call_abc", arguments: Any = '{"path": "a.txt"}', name: str = "read") -> Fields:
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def chat_result(id: str = "call_abc", content: Any = "hello", **more: Any) -> Fields:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def tool_use_message(*blocks: Fields, id: str = "toolu_abc") -> Fields:
    call = {"type": "tool_use", "id": id, "name": "read", "input": {"path": "a.txt"}}
    return {"role": "assistant", "content": [*blocks, call]}


def result(content: Any = "hello", id: str = "toolu_abc", **more: Any) -> Fields:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": content, **more}]}


def allowed(mode: str) -> Fields:
    tools = [{"type": "function", "function": {"name": name}} for name in ("read", "write")]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
URL = f"data:image/png;base64,{PNG}"
PICTURE = {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}
INPUT_PICTURE = {"type": "input_image", "image_url": URL, "detail": "low"}
MADE = {"id": "c1", "name": "read", "args": {}}
GOT = {"id": "c1", "name": "read", "response": {"result": "hello"}}
DESCRIBED = {"name": "x", "description": "The answer.", "schema": json.dumps(SCHEMA)}
NEXT = {"role": "user", "content": "And now?"}

BODIES: dict[str, tuple[str, Fields]] = {
    "plain": ("openai", {"model": "m", "messages": [USER]}),
    "system prompts": ("openai", chat({"role": "system", "content": "Be brief."}, NEXT)),
    "sampling": ("openai", chat(temperature=1.7, top_p=0.3, seed=7, stop=["a", "b", "c"], max_completion_tokens=9)),
    "penalties": ("openai", chat(presence_penalty=0.5, frequency_penalty=-0.5)),
    "sampling of claude": ("anthropic", claude(temperature=0.3, top_k=5, stop_sequences=["x"])),
    "unknown fields": ("openai", chat(brand_new={"a": 1}, logit_bias={"1": 2}, n=2, verbosity="low")),
    "unknown fields of a message": ("openai", chat({"role": "user", "content": "x", "name": "ann", "mood": "good"})),
    "unknown fields of a block": (
        "anthropic",
        claude({"role": "user", "content": [{"type": "text", "text": "x", "new": 1}]}),
    ),
    "unknown fields of a tool": ("anthropic", claude(tools=[{**CLAUDE_TOOLS[0], "input_examples": [{"path": "x"}]}])),
    "unknown fields of a function": (
        "openai",
        chat(tools=[{**CHAT_TOOLS[0], "brand_new": 1, "function": {**CHAT_TOOLS[0]["function"], "newer": {"a": 1}}}]),
    ),
    "unknown fields of settings": (
        "openai",
        chat(
            stream=True,
            stream_options={"include_usage": True, "brand_new": 1},
            tool_choice={"type": "function", "function": {"name": "read", "newer": 1}, "newest": 2},
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "description": "The answer."},
                "loose": 1,
            },
        ),
    ),
    "unknown fields of claude's settings": (
        "anthropic",
        claude(
            metadata={"user_id": "u1", "team": "x"},
            tool_choice={"type": "auto", "newer": 1},
            thinking={"type": "enabled", "budget_tokens": 2000, "shown": "always"},
            output_config={"effort": "high", "newest": 1},
            max_tokens=9000,
        ),
    ),
    "unknown fields of settings of responses": (
        "openai_responses",
        {
            "model": "m",
            "input": "Hi",
            "reasoning": {"effort": "low", "summary": "auto", "newer": 1},
            "text": {"verbosity": "low", "format": {"type": "text", "newest": 1}},
        },
    ),
    "unknown fields of gemini's settings": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "tools": [{"functionDeclarations": [{"name": "read", "parameters": SCHEMA, "behavior": "NON_BLOCKING"}]}],
            "generationConfig": {
                "responseModalities": ["TEXT"],
                "brandNew": 1,
                "thinkingConfig": {"thinkingBudget": 2000, "includeThoughts": True, "newer": 1},
            },
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        },
    ),
    "output of an unknown kind": ("openai", chat(response_format={"type": "brand_new", "newer": 1})),
    "effort": ("openai", chat(reasoning_effort="high")),
    "no effort": ("openai", chat(reasoning_effort="none")),
    "an unknown effort": ("openai", chat(reasoning_effort="gigantic")),
    "effort of responses": (
        "openai_responses",
        {"model": "m", "input": "Hi", "reasoning": {"effort": "xhigh", "summary": "auto"}},
    ),
    "thinking with a budget": (
        "anthropic",
        claude(thinking={"type": "enabled", "budget_tokens": 3000}, max_tokens=9000),
    ),
    "no thinking": ("anthropic", claude(thinking={"type": "disabled"})),
    "adaptive thinking with effort": (
        "anthropic",
        claude(thinking={"type": "adaptive"}, output_config={"effort": "max"}),
    ),
    "thinking of an unknown kind": ("anthropic", claude(thinking={"type": "brand_new"})),
    "a budget of gemini": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 500}},
        },
    ),
    "a budget of nothing": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}},
        },
    ),
    "a budget without an end": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": -1}},
        },
    ),
    "a level of gemini": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}},
        },
    ),
    "a budget of bedrock": (
        "bedrock",
        {
            "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 3000}, "brand_new": 1},
        },
    ),
    "the switch of qwen": (
        "qwen",
        {"model": "m", "messages": [USER], "enable_thinking": True, "thinking_budget": 900},
    ),
    "the switch of qwen, off": ("qwen", {"model": "m", "messages": [USER], "enable_thinking": False}),
    "the switch of deepseek": ("deepseek", {"model": "m", "messages": [USER], "thinking": {"type": "disabled"}}),
    "the switch of openrouter": (
        "openrouter",
        {"model": "m", "messages": [USER], "reasoning": {"max_tokens": 2000, "exclude": True}},
    ),
    "the switch of ollama": ("ollama", {"model": "m", "messages": [USER], "think": "low", "options": {"num_ctx": 9}}),
    "fields that begin like a note of a codec": (
        "anthropic",
        claude({"role": "user", "content": [{"type": "text", "text": "x", "~inner": {"a": 1}}]}, **{"~odd": 1}),
    ),
    "such fields of a chat": (
        "openai",
        chat({"role": "user", "content": "x", "~content": "parts"}, **{"~limit": "max_tokens", "~options": {"a": 1}}),
    ),
    "such fields of a thinking switch": (
        "openrouter",
        {"model": "m", "messages": [USER], "reasoning": {"max_tokens": 2000, "~new": 1}, "~switch": {"a": 1}},
    ),
    "how closely to look": ("openai", chat({"role": "user", "content": [PICTURE]})),
    "how closely to look, cohere": ("cohere", {"model": "m", "messages": [{"role": "user", "content": [PICTURE]}]}),
    "how closely to look, responses": (
        "openai_responses",
        {"model": "m", "input": [{"role": "user", "content": [INPUT_PICTURE]}]},
    ),
    "unknown fields of gemini's calls and results": (
        "gemini",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [{"functionCall": {**MADE, "willContinue": True, "partialArgs": [1]}}]},
                {"role": "user", "parts": [{"functionResponse": {**GOT, "scheduling": "SILENT", "~odd": 1}}]},
            ]
        },
    ),
    "words that are guarded": (
        "bedrock",
        {
            "messages": [
                {"role": "user", "content": [{"guardContent": {"text": {"text": "x", "qualifiers": ["query"]}}}]}
            ]
        },
    ),
    "unknown fields of a prompt in the middle": ("anthropic", claude({"role": "system", "content": "Hurry.", "zz": 1})),
    "unknown fields of two prompts": (
        "openai",
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief.", "zz": 1},
                {"role": "system", "content": "Be kind."},
                USER,
            ],
        },
    ),
    "what the output is for, bedrock": (
        "bedrock",
        {
            "messages": [{"role": "user", "content": [{"text": "x"}]}],
            "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": DESCRIBED}}},
        },
    ),
    "what the output is for, responses": (
        "openai_responses",
        {
            "model": "m",
            "input": "x",
            "text": {"format": {"type": "json_schema", "name": "x", "description": "The answer.", "schema": SCHEMA}},
        },
    ),
    "storage": (
        "openai_responses",
        {
            "model": "m",
            "input": "Hi",
            "store": False,
            "metadata": {"a": "b"},
            "include": ["reasoning.encrypted_content"],
        },
    ),
    "call and result": ("openai", chat(chat_call(), chat_result())),
    "call and result of claude": ("anthropic", claude(tool_use_message(), result())),
    "an odd id": ("openai", chat(chat_call("functions.read:0"), chat_result("functions.read:0"))),
    "no result": ("openai", chat(chat_call(), NEXT)),
    "no call": ("openai", chat(chat_result(), NEXT)),
    "two results": ("openai", chat(chat_call(), chat_result(), chat_result(content="other"), NEXT)),
    "two calls with one id": (
        "openai",
        chat(chat_call(), chat_result(), chat_call(), chat_result(content="again"), NEXT),
    ),
    "double-encoded arguments": ("openai", chat(chat_call(arguments=json.dumps('{"path": "a.txt"}')), chat_result())),
    "arguments that are no object": ("openai", chat(chat_call(arguments="[1, 2]"), chat_result())),
    "broken arguments": ("openai", chat(chat_call(arguments='{"path": "a.t'), chat_result())),
    "empty arguments": ("openai", chat(chat_call(arguments=""), chat_result())),
    "half a character in arguments": ("openai", chat(chat_call(arguments='{"path": "\\ud83d"}'), chat_result())),
    "a result under another name": ("openai", chat(chat_call(), chat_result(name="other_name"), NEXT)),
    "a failed result": ("anthropic", claude(tool_use_message(), result("no such file", is_error=True))),
    "an image in a result": ("anthropic", claude(tool_use_message(), result([{"type": "text", "text": "see"}, IMAGE]))),
    "an empty result": ("anthropic", claude(tool_use_message(), result(""))),
    "an image": ("anthropic", claude({"role": "user", "content": [IMAGE, {"type": "text", "text": "What is it?"}]})),
    "thinking": (
        "anthropic",
        claude(tool_use_message({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}), result()),
    ),
    "redacted thinking": (
        "anthropic",
        claude(tool_use_message({"type": "redacted_thinking", "data": "c2VjcmV0"}), result()),
    ),
    "thinking as text": ("deepseek", chat({**chat_call(), "reasoning_content": "Hm."}, chat_result())),
    "cache markers": (
        "anthropic",
        claude({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}),
    ),
    "a cached tool": (
        "anthropic",
        claude(tools=[*CLAUDE_TOOLS, {**CLAUDE_TOOLS[0], "name": "last", "cache_control": {"type": "ephemeral"}}]),
    ),
    "a tool with a bad name": ("anthropic", claude(tools=[{**CLAUDE_TOOLS[0], "name": "files/read me"}])),
    "a schema with demands": (
        "openai",
        chat(
            tools=[
                {
                    "type": "function",
                    "function": {
                        "name": "f",
                        "parameters": {
                            "type": "object",
                            "properties": {
                                "a": {"type": "string", "pattern": "^x", "format": "email"},
                                "b": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                            },
                        },
                    },
                }
            ]
        ),
    ),
    "a strict schema": (
        "openai",
        chat(
            tools=[
                {
                    "type": "function",
                    "function": {"name": "f", "strict": True, "parameters": {**SCHEMA, "additionalProperties": False}},
                }
            ]
        ),
    ),
    "tool choice none": ("openai", chat(tool_choice="none")),
    "tool choice required": ("openai", chat(tool_choice="required")),
    "tool choice named": ("openai", chat(tool_choice={"type": "function", "function": {"name": "read"}})),
    "tool choice of an unknown kind": ("openai", chat(tool_choice={"type": "brand_new"})),
    "tool choice among some": ("openai", chat(tool_choice=allowed("auto"))),
    "forced choice among some": ("openai", chat(tool_choice=allowed("required"))),
    "forced choice among some, gemini": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "tools": GEMINI_TOOLS,
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read", "write"]}},
        },
    ),
    "one call at a time": ("openai", chat(parallel_tool_calls=False)),
    "JSON output": ("openai", chat(response_format={"type": "json_object"})),
    "output by a schema": (
        "openai",
        {
            "model": "m",
            "messages": [USER],
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        },
    ),
    "a switch of a host": (
        "openai_compatible",
        {"model": "m", "messages": [USER], "enable_thinking": False, "chat_template_kwargs": {"x": 1}},
    ),
    "two users in a row": ("anthropic", claude(NEXT, NEXT)),
    "the model speaks last": ("anthropic", claude({"role": "assistant", "content": "It says "})),
    "a user": ("anthropic", claude(metadata={"user_id": "u1"})),
}
"""Small requests, one for each way in which something may be lost or changed."""


def protocol_of(name: str) -> str:
    return profiles.get(name).protocol


def assert_reported(source: str, body: Fields, target: tuple[str, str]) -> None:
    name, model = target
    out = convert(body, source=source, target=name, model=model, policy=Policy(server_tools="drop"))
    found = unreported(protocol_of(source), body, protocol_of(name), out.body, out.report)
    assert not found, f"{source} → {name}: {listed(found, out.report)}"


@pytest.mark.parametrize("name", BODIES)
def test_every_difference_of_a_small_body_is_reported(name: str) -> None:
    source, body = BODIES[name]
    for target in TARGETS:
        try:
            assert_reported(source, body, target)
        except RefusedError:
            continue


@pytest.mark.law
@MANY
@given(broken_bodies(), st.sampled_from(TARGETS))
def test_law_10_whatever_happened_to_a_body_every_difference_is_reported(
    example: tuple[str, Fields], target: tuple[str, str]
) -> None:
    source, body = example
    read = msgspec.json.decode(msgspec.json.encode(body))
    try:
        assert_reported(source, read, target)
    except InputError as refused:
        event(f"refused: {type(refused).__name__}")


@pytest.mark.law
@MANY
@given(conversations, st.sampled_from(SOURCES), st.sampled_from(TARGETS))
def test_law_10_whatever_is_in_a_conversation_every_difference_is_reported(
    conversation: Conversation, source: str, target: tuple[str, str]
) -> None:
    profile = profiles.get(source)
    try:
        body = codec(profile.protocol).request.encode(conversation, profile)
        assert_reported(source, msgspec.json.decode(msgspec.json.encode(body)), target)
    except InputError as refused:
        event(f"refused: {type(refused).__name__}")


# --- the reading itself -------------------------------------------------------------------------------


def _without_text(body: Fields) -> None:
    body["messages"][0]["content"] = "Something else"


def _without_result(body: Fields) -> None:
    body["messages"][2]["content"][0]["content"] = "other words"


def _without_error(body: Fields) -> None:
    del body["messages"][2]["content"][0]["is_error"]


def _other_arguments(body: Fields) -> None:
    body["messages"][1]["content"][1]["input"] = {}


def _other_id(body: Fields) -> None:
    body["messages"][1]["content"][1]["id"] = "toolu_xyz"


def _without_call(body: Fields) -> None:
    del body["messages"][1]["content"][1]


def _without_thinking(body: Fields) -> None:
    body["messages"][1]["content"][0]["thinking"] = ""


def _other_signature(body: Fields) -> None:
    body["messages"][1]["content"][0]["signature"] = "other"


def _without_media(body: Fields) -> None:
    del body["messages"][3]["content"][0]


def _without_tool(body: Fields) -> None:
    del body["tools"][1]


def _other_schema(body: Fields) -> None:
    body["tools"][0]["input_schema"] = {"type": "object", "properties": {"path": {"type": "integer"}}}


def _other_description(body: Fields) -> None:
    body["tools"][0]["description"] = ""


def _other_choice(body: Fields) -> None:
    body["tool_choice"] = {"type": "auto"}


def _other_option(body: Fields) -> None:
    body["temperature"] = 1.0


def _added(body: Fields) -> None:
    body["messages"].append({"role": "user", "content": "Please go on."})


def _other_effort(body: Fields) -> None:
    body["output_config"]["effort"] = "low"


def _without_thinking_setting(body: Fields) -> None:
    body["thinking"] = {"type": "disabled"}


def _other_budget(body: Fields) -> None:
    body["thinking"]["budget_tokens"] = 1024


def _without_field_of_a_tool(body: Fields) -> None:
    del body["tools"][0]["newer"]


def _without_field_of_a_setting(body: Fields) -> None:
    del body["thinking"]["newest"]


def _without_field(body: Fields) -> None:
    del body["brand_new"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (_without_text, "text"),
        (_without_result, "text of a result"),
        (_without_error, "error of a result"),
        (_other_arguments, "arguments"),
        (_other_id, "id of a call"),
        (_without_call, "number of calls"),
        (_without_thinking, "thinking"),
        (_other_signature, "signature"),
        (_without_media, "media"),
        (_without_tool, "tool"),
        (_other_schema, "schema of a tool"),
        (_other_description, "description of a tool"),
        (_other_choice, "tool choice"),
        (_other_option, "option temperature"),
        (_added, "invented text"),
        (_without_field, "unknown field"),
        (_without_field_of_a_tool, "unknown field"),
        (_without_field_of_a_setting, "unknown field"),
        (_other_effort, "effort of thinking"),
        (_without_thinking_setting, "state of thinking"),
        (_other_budget, "budget of thinking"),
    ],
)
def test_the_reading_sees_a_difference_of_every_kind(change: Callable[[Fields], None], kind: str) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    body = claude(
        tool_use_message(thinking),
        result("no such file", is_error=True),
        {"role": "user", "content": [IMAGE, {"type": "text", "text": "What is it?"}]},
        tool_choice={"type": "any"},
        temperature=0.5,
        brand_new=1,
        tools=[{**CLAUDE_TOOLS[0], "newer": 1}, CLAUDE_TOOLS[1]],
        thinking={"type": "enabled", "budget_tokens": 2000, "newest": 1},
        output_config={"effort": "high"},
    )
    assert [*differences(view_of("anthropic", body), view_of("anthropic", body))] == []
    changed = copy.deepcopy(body)
    change(changed)
    assert kind in {found.kind for found in differences(view_of("anthropic", body), view_of("anthropic", changed))}

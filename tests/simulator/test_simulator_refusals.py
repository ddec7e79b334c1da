"""Each planted violation is refused with the provider's own status, body and words."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from anthropic import Anthropic, BadRequestError
from openai import OpenAI

from support.referee.good_bodies import rich
from support.referee.planted_anthropic_faults import CLAUDE_PLANTS
from support.referee.planted_chat_faults import CHAT_PLANTS
from support.simulator.asgi_client import Answered, ask, request
from toolglot import lint, profiles
from toolglot.simulator import Server, Simulator
from toolglot.simulator.protocols.base import simulated_protocol
from toolglot.simulator.replies.refusals import refusal_for

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

Body = dict[str, Any]
CHATS = ("openai", "mistral", "deepseek", "kimi")
MODELS = {
    "gemini": "gemini-3-pro",
    "bedrock": "anthropic.claude-opus-5-v1:0",
    "anthropic": "claude-opus-5",
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def message_of(provider: str, answered: Answered) -> str:
    """The words of an error, where each provider has them."""
    body = answered.json
    if provider == "mistral":
        return str(body["detail"][0]["msg"] if "detail" in body else body["message"])
    if provider in ("bedrock", "cohere"):
        return str(body["message"])
    return str(body["error"] if provider == "ollama" else body["error"]["message"])


def planted() -> Iterator[tuple[str, str, Body]]:
    """A broken body for each demand that a target makes."""
    for target in ("anthropic", *CHATS):
        plants = CLAUDE_PLANTS if target == "anthropic" else CHAT_PLANTS
        for key, plant in plants.items():
            body = plant(copy.deepcopy(rich(target)), profiles.get(target).as_known())
            if body is not None and lint(body, target):
                yield target, key, body


PLANTED = list(planted())


def test_many_faults_are_planted() -> None:
    assert all(len([1 for target, _, _ in PLANTED if target == name]) > 20 for name in ("anthropic", *CHATS))


@pytest.mark.parametrize(("target", "key", "body"), PLANTED, ids=[f"{target}-{key}" for target, key, _ in PLANTED])
def test_every_fault_of_the_referees_own_tests_is_refused_in_its_words(target: str, key: str, body: Body) -> None:
    found = lint(body, target)
    answered = ask(Simulator(), target, body)
    assert answered.status in (400, 422)
    rules = simulated_protocol(profiles.get(target).protocol)
    assert message_of(target, answered) == refusal_for(found, body, rules.wordings, rules.codes).message


# --- words written down -----------------------------------------------------------------------------


def claude(*messages: Any, **more: Any) -> Body:
    turns = [{"role": "assistant" if n % 2 else "user", "content": content} for n, content in enumerate(messages)]
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    return {"model": "claude-opus-5", "max_tokens": 100, "messages": turns, "tools": tools, **more}


USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bonn"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}


def call(id: str, arguments: str = "{}") -> Body:
    return {"id": id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def chat(*messages: Body, model: str = "gpt-4.1", **more: Any) -> Body:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    return {"model": model, "messages": [{"role": "user", "content": "Weather?"}, *messages], "tools": tools, **more}


def called(id: str = "call_1", **more: Any) -> Body:
    return {"role": "assistant", "content": "", "tool_calls": [call(id)], **more}


def two_called() -> Body:
    return {"role": "assistant", "content": "", "tool_calls": [call("abcdefghi"), call("abcdefghj")]}


def tool_message(id: str = "call_1", **more: Any) -> Body:
    return {"role": "tool", "tool_call_id": id, "content": "7", **more}


QUESTION = {"role": "user", "parts": [{"text": "Weather?"}]}
FUNCTION = {"functionCall": {"name": "get_weather", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"}
RESPONSE = {"functionResponse": {"name": "get_weather", "response": {"output": "7"}}}


def gemini(*contents: Body, **more: Any) -> Body:
    declared = {"name": "get_weather", "parametersJsonSchema": SCHEMA}
    return {"contents": [QUESTION, *contents], "tools": [{"functionDeclarations": [declared]}], **more}


def model(*parts: Body) -> Body:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Body) -> Body:
    return {"role": "user", "parts": list(parts)}


def declaring(parameters: Body) -> Body:
    return {"contents": [QUESTION], "tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]}


def converse(*contents: Any, tools: bool = True) -> Body:
    messages = [{"role": "assistant" if n % 2 else "user", "content": content} for n, content in enumerate(contents)]
    spec = {"toolSpec": {"name": "get_weather", "inputSchema": {"json": SCHEMA}}}
    return {"messages": messages, "toolConfig": {"tools": [spec]}} if tools else {"messages": messages}


TEXT = [{"text": "Weather?"}]
TOOL_USE = {"toolUse": {"toolUseId": "t1", "name": "get_weather", "input": {}}}
TOOL_RESULT = {"toolResult": {"toolUseId": "t1", "content": [{"text": "7"}]}}


def responses(*items: Any, **more: Any) -> Body:
    return {"model": "gpt-5.5", "input": [{"role": "user", "content": "Weather?"}, *items], **more}


CALLED = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "7"}

WORDS: list[tuple[str, Body, str]] = [
    # Anthropic
    ("anthropic", claude("?", [USE], "And?"), "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    ("anthropic", claude([RESULT]), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks"),
    ("anthropic", claude("?", [USE], [RESULT, RESULT]), "each tool_use must have a single result"),
    ("anthropic", claude("?", [{**USE, "id": "a:b"}], [{**RESULT, "tool_use_id": "a:b"}]), "should match pattern"),
    ("anthropic", claude("?", [{**USE, "input": "{}"}], [RESULT]), "Input should be a valid dictionary"),
    ("anthropic", claude([{"type": "text", "text": ""}]), "messages: text content blocks must be non-empty"),
    ("anthropic", claude("?", "It is"), "This model does not support assistant message prefill"),
    ("anthropic", claude("?", temperature=0.5), "temperature"),
    ("anthropic", claude("?", tools=[{"name": "f", "input_schema": {"anyOf": []}}]), "at the top level"),
    ("anthropic", claude("?", surprise=1), "surprise: Extra inputs are not permitted"),
    ("anthropic", claude("?", [USE], [{"type": "text", "text": "So"}, RESULT]), "Did not find 1 tool_result block(s)"),
    # OpenAI
    (
        "openai",
        chat(called(), tool_message("call_2")),
        "must be followed by tool messages responding to each 'tool_call_id'",
    ),
    (
        "openai",
        chat(tool_message()),
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
    (
        "openai",
        chat(called("a" * 41), tool_message("a" * 41)),
        "with maximum length 40, but got a string with length 41",
    ),
    ("openai", chat(called()), "The following tool_call_ids did not have response messages: call_1"),
    ("openai", {**chat(), "tools": chat()["tools"] * 129}, "Expected an array with maximum length 128"),
    (
        "openai",
        {"model": "gpt-4.1", "messages": chat()["messages"], "parallel_tool_calls": True},
        "parallel_tool_calls",
    ),
    ("openai", chat(model="gpt-5.6-terra"), "use /v1/responses"),
    (
        "openai",
        chat(
            called(), tool_message(content=[{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])
        ),
        "Image URLs are only allowed for messages with role 'user'",
    ),
    # Gemini
    ("gemini", gemini(model(FUNCTION), user({"text": "And?"})), "number of function response parts is equal"),
    ("gemini", gemini(model(FUNCTION, FUNCTION), user(RESPONSE)), "number of function response parts is equal"),
    ("gemini", gemini(user(RESPONSE)), "Please ensure that function response turn comes immediately after"),
    (
        "gemini",
        gemini(model({"functionCall": {"name": "get_weather"}}), user(RESPONSE)),
        "Function call is missing a thought_signature in functionCall parts.",
    ),
    (
        "gemini",
        declaring({"type": "object", "properties": {"a": {"type": "string"}}, "$schema": "x"}),
        "Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
    ),
    ("gemini", gemini(surprise=1), 'Unknown name "surprise": Cannot find field.'),
    ("gemini", declaring({"type": "array"}), "items: missing field"),
    ("gemini", declaring({"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}), "enum"),
    (
        "gemini",
        {"contents": [QUESTION], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        "Function calling config is set without function_declarations",
    ),
    (
        "gemini",
        gemini(model({"text": "Hi"}), model(FUNCTION), user(RESPONSE)),
        "function call turn comes immediately after a user turn or after a function response turn.",
    ),
    # Mistral
    (
        "mistral",
        chat(called("call_abcd"), tool_message("call_abcd"), model="m"),
        "Tool call id was call_abcd but must be",
    ),
    (
        "mistral",
        chat(two_called(), tool_message("abcdefghi"), model="m"),
        "Not the same number of function calls and responses",
    ),
    ("mistral", chat(tool_message("abcdefghi"), model="m"), "Unexpected"),
    ("mistral", chat({"role": "assistant", "content": "Hi"}, model="m"), "Expected last role User or Tool"),
    (
        "mistral",
        chat(called("abcdefghi"), tool_message("abcdefghi"), tool_message("abcdefghi"), model="m"),
        "uplicate tool call id",
    ),
    ("mistral", {"model": "m", "messages": [{"role": "nobody", "content": ""}]}, "role"),
    ("mistral", {"model": "m"}, "messages"),
    # DeepSeek, Kimi
    (
        "deepseek",
        chat(called(), tool_message(), model="deepseek-reasoner"),
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ),
    (
        "deepseek",
        chat(tool_message(), model="deepseek-chat"),
        "must be a response to a preceding message with 'tool_calls'",
    ),
    ("deepseek", chat(called(), model="deepseek-chat"), "(insufficient tool messages following tool_calls message)"),
    (
        "deepseek",
        chat(model="deepseek-reasoner", tool_choice="required"),
        "Thinking mode does not support this tool_choice",
    ),
    ("kimi", chat(model="kimi-k2.5", tool_choice="required"), "is incompatible with thinking enabled"),
    (
        "kimi",
        chat(
            called("functions.get_weather:0"),
            tool_message("functions.get_weather:0", name="get_weather"),
            model="kimi-k2.5",
        ),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ),
    ("kimi", chat({"role": "assistant", "content": ""}, chat()["messages"][0], model="kimi-k2.5"), "must not be empty"),
    # Bedrock
    ("bedrock", converse(TEXT, [TOOL_USE], [TOOL_RESULT], tools=False), "The toolConfig field must be defined"),
    ("bedrock", converse(TEXT, [TOOL_USE], TEXT), "Expected toolResult blocks at messages.2.content for the following"),
    (
        "bedrock",
        converse([{"text": " "}]),
        "The text field in the ContentBlock object at messages.0.content.0 is blank",
    ),
    ("bedrock", converse([TOOL_RESULT]), "exceeds the number of toolUse blocks of previous turn."),
    # Cohere
    (
        "cohere",
        {**chat(model="command-a-03-2025"), "surprise": 1},
        "unknown field: parameter 'surprise' is not a valid",
    ),
    ("cohere", chat(called(), model="command-a-03-2025"), ""),
    ("cohere", {"model": "command-a-03-2025"}, "messages"),
    # Ollama
    ("ollama", {"model": "qwen3"}, "messages"),
    (
        "ollama",
        chat(
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": []}}]},
            {"role": "tool", "tool_name": "f", "content": "7"},
        ),
        "invalid tool call arguments",
    ),
    ("ollama", {"model": "qwen3", "messages": [{"role": "nobody", "content": ""}]}, "role"),
    # Responses
    ("openai_responses", responses(CALLED), "No tool output found for function call call_1"),
    ("openai_responses", responses(OUTPUT), "No tool call found for function call output with call_id call_1"),
    (
        "openai_responses",
        responses({**CALLED, "id": "call_1"}, OUTPUT),
        "'call_1'. Expected an ID that begins with 'fc'",
    ),
    ("openai_responses", responses({**CALLED, "id": r"\g<x>"}, OUTPUT), r"'\g<x>'. Expected an ID that begins with"),
    (
        "openai_responses",
        responses({**CALLED, "call_id": "a" * 65}, {**OUTPUT, "call_id": "a" * 65}),
        "Expected a string with maximum length 64",
    ),
]


@pytest.mark.parametrize(("provider", "body", "words"), WORDS)
def test_a_violation_is_refused_in_the_providers_words(provider: str, body: Body, words: str) -> None:
    answered = ask(Simulator(), provider, body, model=MODELS.get(provider, ""))
    assert answered.status in (400, 422), answered.data
    assert words in message_of(provider, answered)


def test_the_bodies_of_refusals_are_the_providers_own() -> None:
    simulator = Simulator()
    refused = {provider: ask(simulator, provider, body, model=MODELS.get(provider, "")) for provider, body, _ in WORDS}
    assert refused["anthropic"].json["type"] == "error"
    assert refused["anthropic"].json["error"]["type"] == "invalid_request_error"
    assert refused["anthropic"].json["request_id"].startswith("req_")
    assert set(refused["openai"].json["error"]) == {"message", "type", "param", "code"}
    assert refused["gemini"].json["error"]["status"] == "INVALID_ARGUMENT"
    assert refused["mistral"].status == 422
    assert set(refused["kimi"].json["error"]) == {"message", "type"}
    assert refused["bedrock"].headers["x-amzn-errortype"] == "ValidationException"
    order = ask(simulator, "mistral", chat(two_called(), tool_message("abcdefghi"), model="m"))
    assert order.json["object"] == "error"
    assert (order.json["type"], order.json["code"]) == ("invalid_request_message_order", "3230")
    shape = ask(simulator, "mistral", {"model": "m"})
    assert shape.json["detail"][0]["loc"][0] == "body"
    unknown = ask(simulator, "cohere", {**chat(model="command-a-03-2025"), "surprise": 1})
    assert unknown.status == 422


DEFERRED: Body = {"name": "mail", "input_schema": {"type": "object"}, "defer_loading": True}
FINDER: Body = {"name": "find", "input_schema": {"type": "object"}}
FOUND: list[Body] = [
    {"role": "user", "content": "Send it."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}}]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "tool_reference", "tool_name": "mail"}],
            }
        ],
    },
]


def test_anthropic_refuses_tools_that_are_all_deferred_and_references_to_tools_that_are_not_there() -> None:
    body = {"model": "claude-opus-5", "max_tokens": 10, "messages": FOUND[:1], "tools": [DEFERRED]}
    refused = ask(Simulator(), "anthropic", body)
    assert refused.status == 400
    assert message_of("anthropic", refused).startswith("All tools have defer_loading set.")
    refused = ask(Simulator(), "anthropic", {**body, "messages": FOUND, "tools": [FINDER]})
    assert refused.status == 400
    assert message_of("anthropic", refused) == "Tool reference 'mail' has no corresponding tool definition"


def test_a_simulated_model_sees_a_deferred_tool_once_it_is_loaded() -> None:
    rules = [
        {"when": {"tool": "mail"}, "reply": {"calls": [{"name": "mail", "arguments": {}}]}},
        {"reply": {"calls": [{"name": "find", "arguments": {}}]}},
    ]
    body = {"model": "claude-opus-5", "max_tokens": 10, "messages": FOUND[:1], "tools": [FINDER, DEFERRED]}
    before = ask(Simulator({"rules": rules}), "anthropic", body)
    after = ask(Simulator({"rules": rules}), "anthropic", {**body, "messages": FOUND})
    assert [answered.json["content"][-1]["name"] for answered in (before, after)] == ["find", "mail"]


def test_openai_has_codes_for_what_is_too_long() -> None:
    simulator = Simulator()
    codes = {
        "string_above_max_length": ask(simulator, "openai", chat(called("a" * 41), tool_message("a" * 41))),
        "array_above_max_length": ask(simulator, "openai", {**chat(), "tools": chat()["tools"] * 129}),
        "invalid_id_prefix": ask(simulator, "openai_responses", responses({**CALLED, "id": "call_1"}, OUTPUT)),
    }
    assert {answered.json["error"]["code"] for answered in codes.values()} == set(codes)


def test_a_name_that_is_too_long_is_reported_with_its_length() -> None:
    body = chat()
    body["tools"] = [{"type": "function", "function": {"name": "a" * 65, "parameters": SCHEMA}}]
    message = message_of("openai", ask(Simulator(), "openai", body))
    assert "maximum length 64, but got a string with length 65 instead." in message


def test_the_real_sdks_raise_their_own_errors(toolglot_simulator: Server) -> None:
    with Anthropic(api_key="key", base_url=toolglot_simulator.url("anthropic"), max_retries=0) as client:
        with pytest.raises(BadRequestError, match="unexpected `tool_use_id`") as found:
            client.messages.create(**claude([RESULT]))
        assert found.value.status_code == 400
    with (
        OpenAI(api_key="key", base_url=toolglot_simulator.url("openai"), max_retries=0) as other,
        pytest.raises(openai.BadRequestError, match="preceeding message"),
    ):
        other.chat.completions.create(**chat(tool_message()))
    assert [recorded.rule for recorded in toolglot_simulator.requests] == [
        "anthropic-result-paired",
        "openai-result-paired",
    ]


# --- keys, JSON, paths, sizes -----------------------------------------------------------------------

NO_KEY = {
    "/anthropic/v1/messages": (401, "x-api-key header is required"),
    "/openai/v1/chat/completions": (401, "You didn't provide an API key."),
    "/openai/v1/responses": (401, "You didn't provide an API key."),
    "/gemini/v1beta/models/gemini-3-pro:generateContent": (403, "unregistered callers"),
    "/mistral/v1/chat/completions": (401, "Unauthorized"),
    "/deepseek/chat/completions": (401, "Authentication Fails"),
    "/kimi/v1/chat/completions": (401, "Invalid Authentication"),
    "/bedrock/model/m/converse": (403, "Missing Authentication Token"),
    "/cohere/v2/chat": (401, "no api key supplied"),
}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer "}, {"x-api-key": "", "x-goog-api-key": " "}])
@pytest.mark.parametrize("path", NO_KEY)
def test_a_request_without_a_key_is_refused(path: str, headers: dict[str, str]) -> None:
    status, words = NO_KEY[path]
    answered = request(Simulator(), path, {}, headers=headers)
    assert answered.status == status
    assert words in answered.data.decode()


def test_only_the_keys_of_the_script_are_accepted_where_it_names_some() -> None:
    simulator = Simulator({"keys": ["right"]})
    body = {"contents": [QUESTION]}
    path = "/gemini/v1beta/models/gemini-2.5-pro:generateContent"
    assert request(simulator, path, body, headers={"x-goog-api-key": "right"}).status == 200
    assert request(simulator, f"{path}?key=right", body).status == 200
    wrong = request(simulator, path, body, headers={"x-goog-api-key": "wrong"})
    assert (wrong.status, wrong.json["error"]["message"][:21]) == (400, "API key not valid. Pl")
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=right/20260131/us-east-1/bedrock/aws4_request"}
    assert request(simulator, "/bedrock/model/m/converse", converse(TEXT, tools=False), headers=signed).status == 200
    deepseek = request(simulator, "/deepseek/chat/completions", chat(), headers={"authorization": "Bearer wrong"})
    assert deepseek.json["error"]["type"] == "authentication_error"
    assert request(simulator, "/ollama/api/chat", {}).status == 401


def test_ollama_needs_no_key() -> None:
    assert request(Simulator(), "/ollama/api/tags", method="GET").status == 200


def test_anthropic_wants_its_version() -> None:
    answered = request(Simulator(), "/anthropic/v1/messages", claude("?"), headers={"x-api-key": "key"})
    assert answered.json["error"]["message"] == "anthropic-version: header is required"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}'])
@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "mistral", "bedrock", "cohere", "ollama"])
def test_what_is_not_a_json_object_is_refused(provider: str, data: bytes) -> None:
    answered = ask(Simulator(), provider, data, model="m")
    assert answered.status == 400
    assert isinstance(answered.json, dict)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/anthropic/v2/messages", "not_found_error"),
        ("/openai/v1/nothing", "Invalid URL (POST /openai/v1/nothing)"),
        ("/nothing", "Invalid URL (POST /nothing)"),
        ("/gemini/v1beta/models/m:nothing", "NOT_FOUND"),
        ("/mistral/", "Not Found"),
        ("/bedrock/model/m/nothing", "ResourceNotFoundException"),
        ("/ollama/api/nothing", "404 page not found"),
    ],
)
def test_a_path_that_is_not_there_is_not_found(path: str, words: str) -> None:
    answered = request(Simulator(), path, {})
    assert answered.status == 404
    assert words in answered.data.decode()


def test_a_body_beyond_the_limit_is_too_large() -> None:
    simulator = Simulator(max_bytes=1000)
    answered = ask(simulator, "anthropic", claude("a" * 1000))
    assert answered.status == 413
    assert answered.json["error"]["type"] == "request_too_large"
    assert ask(simulator, "anthropic", {**claude("a"), "tools": []}).status != 413


def test_a_body_that_only_the_codec_refuses_is_refused_too() -> None:
    answered = ask(Simulator(), "ollama", {"model": "qwen3", "messages": [], "think": 7})
    assert answered.status == 400


def test_a_model_name_of_any_length_does_no_harm() -> None:
    assert ask(Simulator(), "openai", chat(model="m" * 10_000)).status == 200
    assert ask(Simulator(), "openai", {**chat(), "model": 7}).status == 400


def test_refusals_are_json_and_name_the_request() -> None:
    answered = ask(Simulator(), "openai", chat(tool_message()))
    assert answered.headers["content-type"] == "application/json"
    assert int(answered.headers["content-length"]) == len(answered.data)
    assert answered.headers["x-request-id"].startswith("req_")
    assert answered.headers["x-should-retry"] == "false"
    assert json.loads(answered.data)

"""The vault: what a client's protocol cannot carry comes back to its issuer, in every turn and across a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from toolglot.protocols.anthropic.form import UNSIGNED
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
CALLS = [{"name": "read_file", "arguments": {"path": "a.txt"}}]
BOTH = [*CALLS, {"name": "read_file", "arguments": {"path": "b.txt"}}]
SCRIPT = {
    "rules": [
        {
            "when": {"contains": "both", "results": 0},
            "reply": {"thinking": "Both of them.", "text": "I look.", "calls": BOTH},
        },
        {"when": {"contains": "read", "results": 0}, "reply": {"thinking": "I read it.", "calls": CALLS}},
        {"reply": {"thinking": "Now I know.", "text": "It says hello."}},
    ]
}
MODELS = {
    "signed thinking": "anthropic/claude-sonnet-4-5",
    "thinking bound to its prefix": "anthropic/claude-opus-5-5",
    "thought signatures": "gemini/gemini-3-pro-preview",
    "encrypted reasoning": "openai_responses/gpt-5.5",
    "reasoning_content": "deepseek/deepseek-reasoner",
    "thinking of kimi": "kimi/kimi-k2-thinking",
}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


def chat(served: Served, messages: list[Any], model: str, *, stream: bool) -> list[Any]:
    """One request of the real SDK; the messages with its answer."""
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="a client's key", max_retries=0)
    request: dict[str, Any] = {"model": model, "messages": messages, "tools": [TOOL], "reasoning_effort": "high"}
    if not stream:
        message = client.chat.completions.create(**request).choices[0].message
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in message.tool_calls or ()
        ]
        return [*messages, _answer(message.content, calls)]
    text: list[str] = []
    gathered: dict[int, dict[str, Any]] = {}
    for chunk in client.chat.completions.create(**request, stream=True):
        for choice in chunk.choices:
            text.append(choice.delta.content or "")
            for call in choice.delta.tool_calls or ():
                one = gathered.setdefault(
                    call.index,
                    {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": ""}},
                )
                one["function"]["arguments"] += call.function.arguments or ""
    return [*messages, _answer("".join(text), [*gathered.values()])]


def _answer(content: str | None, calls: list[Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": content or None, **({"tool_calls": calls} if calls else {})}


def turn(served: Served, messages: list[Any], words: str, model: str, *, stream: bool) -> list[Any]:
    """The user speaks, the model calls, the tools answer, the model answers."""
    messages = chat(served, [*messages, {"role": "user", "content": words}], model, stream=stream)
    calls = messages[-1].get("tool_calls", [])
    for call in calls:
        messages = [*messages, {"role": "tool", "tool_call_id": call["id"], "content": "hello"}]
    return chat(served, messages, model, stream=stream) if calls else messages


def opaque_in(body: Any) -> int:
    """How many signed, encrypted or thought things a request holds."""
    text = json.dumps(body)
    names = ('"signature": ', '"thoughtSignature": ', '"encrypted_content": ', '"reasoning_content": ')
    return sum(text.count(name) for name in names)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_chat_client_runs_ten_turns_with_tools_and_everything_goes_home(
    simulated: Server, tmp_path: Path, model: str, stream: bool
) -> None:
    store = f'store = "{tmp_path / "gateway.db"}"'
    messages: list[Any] = [{"role": "system", "content": "Be short."}]
    for number in range(10):
        with gateway(simulated, settings=store) as served:  # a restart before every turn
            words = ("read a.txt", "read both", "say something")[number % 3]
            messages = turn(served, messages, words, model, stream=stream)
        assert messages[-1]["content"] == "It says hello."
    assert {request.status for request in simulated.requests} == {200}
    sent = [opaque_in(request.body) for request in simulated.requests]
    issued = 7 if model.startswith("gemini") else 16  # Gemini signs the first call of a turn, and no words
    assert sent[-1] >= issued, sent
    assert sent == sorted(sent), "what came back once comes back always"
    stand_ins = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
    assert not any(word in json.dumps(simulated.requests[-1].body) for word in stand_ins)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MODELS["signed thinking"], "what the provider signed or encrypted was put back into 1 of its turns"),
        (MODELS["reasoning_content"], "the model's own thinking was put back into 1 of its turns"),
    ],
)
def test_the_report_says_what_was_put_back(simulated: Server, model: str, words: str) -> None:
    with gateway(simulated) as served:
        turn(served, [], "read a.txt", model, stream=False)
        reasons = [entry.reason for entry in served.records[-1].sent.entries if "put back" in entry.reason]
    assert reasons == [words]


# --- whose it is ------------------------------------------------------------------------------------


def test_another_client_key_gets_nothing_back(simulated: Server) -> None:
    with gateway(simulated) as served:
        messages = chat(served, [{"role": "user", "content": "read a.txt"}], MODELS["signed thinking"], stream=False)
        (call,) = messages[-1]["tool_calls"]
        messages = [*messages, {"role": "tool", "tool_call_id": call["id"], "content": "hello"}]
        for key, found in (("another key", 0), ("a client's key", 1)):
            client = openai.OpenAI(base_url=f"{served.url}/v1", api_key=key, max_retries=0)
            request: Any = {"messages": messages, "tools": [TOOL], "reasoning_effort": "high"}
            client.chat.completions.create(model=MODELS["signed thinking"], **request)
            assert opaque_in(simulated.requests[-1].body) == found


def test_what_was_signed_goes_to_no_other_model_and_no_other_account(simulated: Server) -> None:
    other = f"""
[upstreams.second]
provider = "anthropic"
url = "{simulated.url("anthropic")}"
key_env = "SECOND"
"""
    with gateway(simulated, upstreams=other, environ={"SECOND": "another-account"}) as served:
        messages = turn(served, [], "read a.txt", MODELS["signed thinking"], stream=False)
        for model in ("anthropic/claude-opus-4-5", "gemini/gemini-3-pro-preview", "openai_responses/gpt-5.5"):
            turn(served, messages, "say something", model, stream=False)
            assert simulated.requests[-1].status == 200
            assert "I read it." not in json.dumps(simulated.requests[-1].body), model
        turn(served, messages, "say something", MODELS["signed thinking"], stream=False)
        assert "I read it." in json.dumps(simulated.requests[-1].body)


def test_two_providers_that_say_the_same_keep_their_own(simulated: Server) -> None:
    with gateway(simulated) as served:
        content = [{"role": "user", "content": "say something"}]
        for model in (MODELS["signed thinking"], MODELS["thought signatures"], MODELS["encrypted reasoning"]):
            chat(served, content, model, stream=False)
        messages = chat(served, content, MODELS["signed thinking"], stream=False)
        chat(served, [*messages, {"role": "user", "content": "more"}], MODELS["signed thinking"], stream=False)
        assert opaque_in(simulated.requests[-1].body) == 1
        chat(served, [*messages, {"role": "user", "content": "more"}], MODELS["encrypted reasoning"], stream=False)
        assert opaque_in(simulated.requests[-1].body) == 1


def test_a_turn_that_the_client_changed_goes_without_its_thinking(simulated: Server) -> None:
    with gateway(simulated) as served:
        messages = turn(served, [], "read both", MODELS["signed thinking"], stream=False)
        changed = json.loads(json.dumps(messages))
        changed[1]["content"] = "I look elsewhere."
        turn(served, changed, "say something", MODELS["signed thinking"], stream=False)
        assert simulated.requests[-1].status == 200
        assert "Both of them." not in json.dumps(simulated.requests[-1].body)


def test_what_is_kept_has_a_time_to_live(simulated: Server, tmp_path: Path) -> None:
    store = f'store = "{tmp_path / "gateway.db"}"\nretention_hours = 0.0000001'
    with gateway(simulated, settings=store) as served:
        messages = turn(served, [], "read a.txt", MODELS["signed thinking"], stream=False)
    with gateway(simulated, settings=store) as served:
        turn(served, messages, "say something", MODELS["signed thinking"], stream=False)
    assert simulated.requests[-1].status == 200
    assert opaque_in(simulated.requests[-1].body) == 0


def test_without_a_store_what_is_kept_lasts_as_long_as_the_process(simulated: Server) -> None:
    with gateway(simulated, settings='store = "off"') as served:
        turn(served, [], "read a.txt", MODELS["signed thinking"], stream=True)
        assert opaque_in(simulated.requests[-1].body) == 1


# --- what a provider refuses ------------------------------------------------------------------------


def forged(protocol: str) -> tuple[str, dict[str, Any]]:
    """A path, and a request whose history holds thinking that its provider did not make."""
    if protocol == "anthropic":
        tool = {"name": "read_file", "input_schema": TOOL["function"]["parameters"]}
        content = [
            {"type": "thinking", "thinking": "I read it.", "signature": "Zm9yZ2Vk"},
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.txt"}},
        ]
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello"}
        messages = [
            {"role": "user", "content": "read a.txt"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result]},
        ]
        thinking = {"type": "enabled", "budget_tokens": 2000}
        body = {"model": "claude-sonnet-4-5", "max_tokens": 4000, "thinking": thinking, "tools": [tool]}
        return "/v1/messages", {**body, "messages": messages}
    items = [
        {"role": "user", "content": "read a.txt"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABforged"},
        {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": '{"path": "a.txt"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "hello"},
    ]
    tool = {"type": "function", "strict": False, **TOOL["function"]}
    return "/v1/responses", {"model": "gpt-5.5", "store": False, "input": items, "tools": [tool]}


@pytest.mark.parametrize("protocol", ["anthropic", "openai_responses"])
def test_D2_thinking_that_its_provider_does_not_know_is_left_out_and_that_is_remembered(
    simulated: Server, protocol: str
) -> None:
    path, body = forged(protocol)
    with gateway(simulated) as served:
        first = ask(served, path, body)
        assert first.status == 200, first.data
        assert [request.status for request in simulated.requests] == [400, 200]
        assert served.records[-1].calls.retry_reason
        again = ask(served, path, body)
        assert again.status == 200
        assert [request.status for request in simulated.requests] == [400, 200, 200]
        assert "left out" in again.headers["x-toolglot-report"]


def test_a_refusal_about_anything_else_is_not_tried_again(simulated: Server) -> None:
    path, body = forged("anthropic")
    del body["messages"][1]["content"][0], body["thinking"]
    simulated.fault(400)
    with gateway(simulated) as served:
        assert ask(served, path, body).status == 400
    assert len(simulated.requests) == 1


# --- clients that send back less ----------------------------------------------------------------------


DECLARATION = {"name": "read_file", "parameters": TOOL["function"]["parameters"]}


@pytest.mark.parametrize("words", ["read a.txt", "read both"])
def test_a_gemini_client_that_sends_no_ids_gets_its_thinking_back(simulated: Server, words: str) -> None:
    with gateway(simulated) as served:
        contents: list[Any] = [{"role": "user", "parts": [{"text": words}]}]
        request: dict[str, Any] = {
            "tools": [{"functionDeclarations": [DECLARATION]}],
            "generationConfig": {"thinkingConfig": {"thinkingBudget": 2000, "includeThoughts": True}},
        }
        path = f"/v1beta/models/{MODELS['signed thinking']}:generateContent"
        reply = ask(served, path, {**request, "contents": contents}).body
        parts = reply["candidates"][0]["content"]["parts"]
        made = [part["functionCall"] for part in parts if "functionCall" in part]
        calls = [{"name": call["name"], "args": call["args"]} for call in made]
        kept = [{"text": part["text"]} for part in parts if "text" in part and not part.get("thought")]
        contents += [
            {"role": "model", "parts": [*kept, *({"functionCall": call} for call in calls)]},
            {"role": "user", "parts": [_response(call) for call in calls]},
        ]
        answered = ask(served, path, {**request, "contents": contents})
    assert answered.status == 200
    assert opaque_in(simulated.requests[-1].body) == 1
    blocks = [block for message in simulated.requests[-1].body["messages"] for block in message["content"]]
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == ids
    assert len(set(ids)) == len(calls)


SIGNATURES = {"gemini": "thoughtSignature", "anthropic": "signature", "openai_responses": "encrypted_content"}
RENAMED = {
    "mine-gemini": "gemini/gemini-3-pro-preview",
    "mine-anthropic": "anthropic/claude-sonnet-4-5",
    "mine-openai_responses": "openai_responses/gpt-5.5",
}


def signed_request(protocol: str, context: str, reply: Any) -> tuple[str, dict[str, Any]]:
    """A request with the client's own name for the model: the first one, or the one after a reply."""
    if protocol == "gemini":
        contents: list[Any] = [{"role": "user", "parts": [{"text": f"{context}: read both"}]}]
        if reply is not None:
            parts = reply["candidates"][0]["content"]["parts"]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": [*map(_response, calls)]}]
        body: dict[str, Any] = {"contents": contents, "tools": [{"functionDeclarations": [DECLARATION]}]}
        body["generationConfig"] = {"thinkingConfig": {"includeThoughts": True}}
        return "/v1beta/models/mine-gemini:generateContent", body
    messages: list[Any] = [{"role": "user", "content": f"{context}: hello"}]
    body = {"model": f"mine-{protocol}"}
    go_on = {"role": "user", "content": "And now?"}
    if protocol == "anthropic":
        messages += [{"role": "assistant", "content": reply["content"]}, go_on] if reply is not None else []
        thinking = {"type": "enabled", "budget_tokens": 2000}
        return "/v1/messages", {**body, "max_tokens": 4000, "thinking": thinking, "messages": messages}
    messages += [*reply["output"], go_on] if reply is not None else []
    included = ["reasoning.encrypted_content"]
    return "/v1/responses", {**body, "input": messages, "store": False, "include": included}


@pytest.mark.parametrize("protocol", SIGNATURES)
def test_a_signature_that_a_client_carries_survives_a_rewritten_context(simulated: Server, protocol: str) -> None:
    with gateway(simulated, models=RENAMED) as served:
        reply = ask(served, *signed_request(protocol, "Two files", None)).body
        assert ask(served, *signed_request(protocol, "Three files", reply)).status == 200
        # A client of another key does not show that its signature came from this provider.
        strange = ask(served, *signed_request(protocol, "Three files", reply), key="another key")
    assert strange.status == 200
    field = SIGNATURES[protocol]
    signature = next(find_values(reply, field))
    assert [signature in find_values(request.body, field) for request in simulated.requests] == [False, True, False]


def find_values(value: Any, field: str) -> Iterator[Any]:
    """The values of a field, however deep."""
    if isinstance(value, list):
        for part in value:
            yield from find_values(part, field)
    elif isinstance(value, dict):
        yield from [value[field]] if field in value else []
        for part in value.values():
            yield from find_values(part, field)


def _response(call: dict[str, Any]) -> dict[str, Any]:
    return {"functionResponse": {"name": call["name"], "response": {"output": "hello"}}}


@pytest.mark.parametrize("keeps", [True, False], ids=["with its thinking", "without"])
@pytest.mark.parametrize("model", ["kimi/kimi-k2-thinking", "deepseek/deepseek-reasoner"])
def test_an_anthropic_client_sees_a_signature_that_no_provider_gets(simulated: Server, model: str, keeps: bool) -> None:
    tool = {"name": "read_file", "input_schema": TOOL["function"]["parameters"]}
    with gateway(simulated) as served:
        messages: list[Any] = [{"role": "user", "content": "read a.txt"}]
        request_body: dict[str, Any] = {
            "model": model,
            "max_tokens": 4000,
            "tools": [tool],
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        }
        content = ask(served, "/v1/messages", {**request_body, "messages": messages}).body["content"]
        thoughts = [block for block in content if block["type"] == "thinking"]
        assert all(block["signature"] == UNSIGNED for block in thoughts)
        assert thoughts
        (call,) = [block for block in content if block["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "hello"}
        messages += [
            {
                "role": "assistant",
                "content": content if keeps else [block for block in content if block not in thoughts],
            },
            {"role": "user", "content": [result]},
        ]
        assert ask(served, "/v1/messages", {**request_body, "messages": messages}).status == 200
        assert opaque_in(simulated.requests[-1].body) == 1
        home = {**request_body, "model": MODELS["signed thinking"], "messages": messages}
        assert ask(served, "/v1/messages", home).status == 200
    assert not any(UNSIGNED in json.dumps(request.body) for request in simulated.requests)

"""A real llama.cpp server as upstream, on the three protocols that it speaks, for clients of all of them.

Its model is tiny and made: it calls `get_weather` with arguments that its grammar holds to the schema, and answers
when it has a result. What is messy here is messy in the world: ids without a prefix, streams that leave fields out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from llama.server import LlamaServer
from llama.test_llama_server import ANSWER, BEFORE, MESSAGES_TOOL, QUESTION, SCHEMA, fits
from sdk import simulated as sdk
from sdk.simulated import genai_client
from support.gateway.served_gateway import Served, gateway

CONFIG: Final = """
[upstreams.llama_chat]
provider = "llamacpp"
url = "{url}/v1"
auth = "none"

[upstreams.llama_responses]
target = "openai_responses"
url = "{url}/v1"
auth = "none"

[upstreams.llama_messages]
target = "anthropic"
url = "{url}"
auth = "none"
"""
"""The three protocols of one server. A version that ends the address and begins the path is written once, so that `/v1`
at the end is free for Messages and needed for the other two."""

PATHS: Final = {
    "llama_chat": "openai_chat",
    "llama_responses": "openai_responses",
    "llama_messages": "anthropic",
}
MODEL: Final = "toolglot-tiny"


@pytest.fixture(scope="module")
def served(llama_server: LlamaServer) -> Iterator[Served]:
    with gateway(None, upstreams=CONFIG.format(url=llama_server.url)) as running:
        yield running


streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
upstreams = pytest.mark.parametrize("upstream", PATHS)


@streams
@upstreams
def test_openais_sdk_calls_and_answers_over_chat(served: Served, upstream: str, stream: bool) -> None:
    tool: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with sdk.openai_client(f"{served.url}/v1") as client:
        request: dict[str, Any] = {"model": f"{upstream}/{MODEL}", "tools": [tool], "max_tokens": 300}

        def chat() -> Any:
            if not stream:
                return client.chat.completions.create(messages=messages, **request).choices[0]
            with client.chat.completions.stream(messages=messages, **request) as events:
                return events.get_final_completion().choices[0]

        first = chat()
        assert (first.finish_reason, first.message.content) == ("tool_calls", BEFORE)
        (call,) = first.message.tool_calls
        assert fits(json.loads(call.function.arguments))
        function = {"name": call.function.name, "arguments": call.function.arguments}
        calls = [{"id": call.id, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": first.message.content, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "7 °C"})
        second = chat()
    assert (second.finish_reason, second.message.content) == ("stop", ANSWER)


@streams
@upstreams
def test_openais_sdk_calls_and_answers_over_responses(served: Served, upstream: str, stream: bool) -> None:
    tool: Any = {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}
    with sdk.openai_client(f"{served.url}/v1") as client:
        request: dict[str, Any] = {"model": f"{upstream}/{MODEL}", "tools": [tool], "max_output_tokens": 300}

        def respond(items: list[Any]) -> Any:
            if not stream:
                return client.responses.create(input=items, **request)
            with client.responses.stream(input=items, **request) as events:
                return events.get_final_response()

        items: list[Any] = [{"role": "user", "content": QUESTION}]
        first = respond(items)
        assert first.output_text == BEFORE
        call = first.output[-1]
        assert fits(json.loads(call.arguments))
        items.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "7 °C"})
        assert respond(items).output_text == ANSWER


@streams
@upstreams
def test_anthropics_sdk_calls_and_answers(served: Served, upstream: str, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with sdk.anthropic_client(served.url) as client:
        request: dict[str, Any] = {"model": f"{upstream}/{MODEL}", "tools": [MESSAGES_TOOL], "max_tokens": 300}

        def message() -> Any:
            if not stream:
                return client.messages.create(messages=messages, **request)
            with client.messages.stream(messages=messages, **request) as events:
                return events.get_final_message()

        first = message()
        text, call = first.content
        assert (first.stop_reason, text.text) == ("tool_use", BEFORE)
        assert fits(call.input)
        messages.append({"role": "assistant", "content": [block.model_dump() for block in first.content]})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "7 °C"}
        messages.append({"role": "user", "content": [result]})
        second = message()
    assert (second.stop_reason, second.content[0].text) == ("end_turn", ANSWER)


@streams
@upstreams
def test_googles_sdk_calls_and_answers(served: Served, upstream: str, stream: bool) -> None:
    contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    declared = {"name": "get_weather", "description": "The weather", "parameters_json_schema": SCHEMA}
    config: Any = {"tools": [{"function_declarations": [declared]}], "max_output_tokens": 300}
    with genai_client(served.url) as client:

        def generate() -> list[Any]:
            request: dict[str, Any] = {"model": f"{upstream}/{MODEL}", "contents": contents, "config": config}
            generate_content = client.models.generate_content_stream if stream else client.models.generate_content
            reply: Any = generate_content(**request)
            return [
                part for chunk in (reply if stream else [reply]) for part in chunk.candidates[0].content.parts or ()
            ]

        parts = generate()
        (call,) = [part.function_call for part in parts if part.function_call]
        assert "".join(part.text or "" for part in parts) == BEFORE
        assert fits(call.args)
        contents.append({"role": "model", "parts": [part.model_dump(exclude_none=True) for part in parts]})
        response = {"id": call.id, "name": call.name, "response": {"output": "7 °C"}}
        contents.append({"role": "user", "parts": [{"function_response": response}]})
        assert "".join(part.text or "" for part in generate()) == ANSWER


@pytest.mark.parametrize(("upstream", "protocol"), PATHS.items())
def test_the_engine_is_really_called_in_its_protocol(served: Served, upstream: str, protocol: str) -> None:
    with sdk.anthropic_client(served.url) as client:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        client.messages.create(model=f"{upstream}/{MODEL}", max_tokens=50, messages=messages)
    record = served.records[-1]
    assert (record.route.upstream, record.response.status) == (upstream, 200)
    rendered = json.loads(record.sent.body or b"{}")
    assert ("input" in rendered) == (protocol == "openai_responses")
    assert ("max_tokens" in rendered) == (protocol != "openai_responses")


def test_its_models_are_listed(served: Served) -> None:
    with sdk.openai_client(f"{served.url}/v1") as client:
        names = {model.id for model in client.models.list()}
    assert {f"{upstream}/{MODEL}" for upstream in PATHS} <= names

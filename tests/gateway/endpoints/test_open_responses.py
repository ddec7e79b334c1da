"""The published compliance cases of Open Responses, on simulated providers of all seven protocols, whole and streamed.

Every response and every event is checked against a schema of our own (`support.open_responses`), and the official SDK
parses each. The cases are those of openresponses.org: text, streaming, a system prompt, tools, the round trip of a
call, an image, a file, several turns, and a response that is continued by its id.
"""

from __future__ import annotations

from typing import Any, Final

import openai
import pytest
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from support.gateway.http_client import KEY, ask
from support.gateway.served_gateway import Served
from support.gateway.socket_client import socket_to
from support.open_responses import SETTINGS, CompactedResponse, Response, check_response, check_stream
from support.waiting import wait_until

PATH: Final = "/v1/responses"
MODELS: Final = {
    "anthropic": "anthropic/claude-haiku-4-5",
    "chat": "openai_chat/gpt-4.1",
    "responses": "openai_responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-flash",
    "bedrock": "bedrock/anthropic.claude-sonnet-4-5-v1:0",
    "cohere": "cohere/command-a-03-2025",
    "ollama": "ollama/qwen3",
}
SCRIPT: Final = {
    "rules": [
        {
            "when": {"contains": "weather", "results": 0},
            "reply": {"calls": [{"name": "get_weather", "arguments": {"location": "San Francisco, CA"}}]},
        },
        {"when": {"contains": "Think"}, "reply": {"thinking": "Which one?", "text": "This one."}},
        {"when": {"contains": "Be cut"}, "reply": {"text": "One two three", "stop": "length"}},
        {"reply": {"text": "Hello to you."}},
    ],
    "chunk": 5,
}
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
PDF: Final = "data:application/pdf;base64,JVBERi0xLjEKMSAwIG9iago8PCAvVHlwZSAvQ2F0YWxvZyA+PgplbmRvYmoKJSVFT0Y="


def said(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def shown(part: dict[str, Any]) -> list[Any]:
    return [said("user", [{"type": "input_text", "text": "What is this?"}, part])]


CASES: Final[dict[str, dict[str, Any]]] = {
    "text": {"input": [said("user", "Say hello in three words.")]},
    "string": {"input": "Say hello."},
    "system prompt": {"input": [said("system", "You are a pirate."), said("user", "Say hello.")]},
    "instructions": {"input": "Say hello.", "instructions": "You are a pirate."},
    "image": {"input": shown({"type": "input_image", "image_url": PIXEL})},
    "turns": {
        "input": [said("user", "I am Alice."), said("assistant", "Hello Alice!"), said("user", "Who am I?")],
    },
    "thinking": {"input": "Think, please.", "reasoning": {"effort": "low", "summary": "auto"}},
}
_parse_event: Final = TypeAdapter[Any](ResponseStreamEvent).validate_python
either: Final = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
everywhere: Final = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def create(served: Served, model: str, *, stream: bool = False, **body: Any) -> tuple[Response, list[Any]]:
    """A response that was checked, and the events of its stream."""
    got = ask(served, PATH, {"model": model, **body, **({"stream": True} if stream else {})})
    assert got.status == 200, got.body
    if not stream:
        SdkResponse.model_validate(got.body)
        return check_response(got.body), []
    for event in got.events:
        _parse_event(event)
        if "response" in event:
            SdkResponse.model_validate(event["response"])
    return check_stream(got.events), got.events


def text_of(response: Response) -> str:
    texts = [part["text"] for item in response.model_dump()["output"] for part in item.get("content") or ()]
    return "".join(texts)


# --- the published cases ----------------------------------------------------------------------------


@either
@everywhere
@pytest.mark.parametrize("case", CASES)
def test_a_published_case_gets_a_complete_response(served: Served, case: str, model: str, stream: bool) -> None:
    response, _ = create(served, model, stream=stream, **CASES[case])
    assert (response.status, response.usage is not None) == ("completed", True)
    assert text_of(response) == ("This one." if case == "thinking" else "Hello to you.")


@either
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("cohere", "ollama")])
def test_a_file_is_taken(served: Served, name: str, stream: bool) -> None:
    file = {"type": "input_file", "filename": "a.pdf", "file_data": PDF}
    response, _ = create(served, MODELS[name], stream=stream, input=shown(file))
    assert (response.status, text_of(response)) == ("completed", "Hello to you.")


@either
@everywhere
def test_a_call_makes_its_round_trip(served: Served, model: str, stream: bool) -> None:
    asked = said("user", "What is the weather in San Francisco?")
    first, events = create(served, model, stream=stream, input=[asked], tools=[TOOL])
    (call,) = [item for item in first.model_dump()["output"] if item["type"] == "function_call"]
    assert (call["name"], call["status"]) == ("get_weather", "completed")
    assert first.tools[0].name == "get_weather"
    kinds = [event["type"] for event in events]
    if stream:
        for step in ("output_item.added", "function_call_arguments.delta", "function_call_arguments.done"):
            assert f"response.{step}" in kinds
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": '{"degrees": 18}'}
    items = [asked, *(item.model_dump(exclude_unset=True) for item in first.output), result]
    second, _ = create(served, model, stream=stream, input=items, tools=[TOOL])
    assert (second.status, text_of(second)) == ("completed", "Hello to you.")


@either
@everywhere
def test_a_response_is_continued_by_its_id(served: Served, model: str, stream: bool) -> None:
    first, _ = create(served, model, input="The word is papaya.")
    second, _ = create(served, model, stream=stream, input="Which word?", previous_response_id=first.id)
    stored = ask(served, f"{PATH}/{second.id}").body
    assert check_response(stored).previous_response_id == first.id
    assert second.previous_response_id in (first.id, None if "responses" in model else first.id)


@either
@everywhere
def test_a_response_that_was_cut_is_incomplete(served: Served, model: str, stream: bool) -> None:
    response, _ = create(served, model, stream=stream, input="Be cut.", max_output_tokens=50)
    assert (response.status, response.max_output_tokens) == ("incomplete", 50)
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


# --- what a response repeats ------------------------------------------------------------------------

ASKED: Final[dict[str, Any]] = {
    "instructions": "Be brief.",
    "tools": [TOOL],
    "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "get_weather"}]},
    "truncation": "disabled",
    "parallel_tool_calls": False,
    "text": {"format": {"type": "json_schema", "name": "reply", "schema": {"type": "object", "properties": {}}}},
    "temperature": 0.5,
    "max_output_tokens": 4000,
    "store": False,
    "metadata": {"ticket": "7"},
    "safety_identifier": "user-1",
    "prompt_cache_key": "key-1",
    "service_tier": "default",
    "reasoning": {"effort": "low"},
}


@either
@pytest.mark.parametrize("name", [name for name in MODELS if name != "responses"])
def test_a_response_repeats_the_settings_of_its_request(served: Served, name: str, stream: bool) -> None:
    asked = {key: value for key, value in ASKED.items() if key != "reasoning" or name in ("anthropic", "gemini")}
    if name == "anthropic":
        del asked["temperature"]
    response, _ = create(served, MODELS[name], stream=stream, input="Hello.", **asked)
    found = response.model_dump()
    plain = ("tools", "tool_choice", "text", "reasoning")
    assert {key: found[key] for key in asked if key not in plain} == {
        key: value for key, value in asked.items() if key not in plain
    }
    assert found["tools"] == [{**TOOL, "strict": None}]
    assert found["tool_choice"] == {**ASKED["tool_choice"], "mode": "auto"}
    format = {**ASKED["text"]["format"], "description": None, "strict": False}
    assert {key: found["text"]["format"][key] for key in format} == format
    if "reasoning" in asked:
        assert found["reasoning"] == {"effort": "low", "summary": None}


@either
@everywhere
def test_a_request_that_sets_nothing_gets_the_defaults(served: Served, model: str, stream: bool) -> None:
    response, _ = create(served, model, stream=stream, input="Hello.")
    found = response.model_dump()
    assert {key: found[key] for key in SETTINGS if key != "reasoning"} == {
        "previous_response_id": None,
        "instructions": None,
        "tools": [],
        "tool_choice": "auto",
        "truncation": "disabled",
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "top_p": 1.0,
        "temperature": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "store": True,
        "background": False,
        "service_tier": "default",
        "metadata": {},
        "safety_identifier": None,
        "prompt_cache_key": None,
    }


# --- other ways to a response -----------------------------------------------------------------------


@everywhere
def test_responses_of_a_socket_are_complete(served: Served, model: str) -> None:
    with socket_to(served) as client:
        client.create(model, "Hello.", store=False, tools=[TOOL])
        assert check_stream(client.until_end()).status == "completed"
        client.create(model, "Hello.", generate=False, store=False, tools=[TOOL])
        warm = check_stream(client.until_end())
    assert (warm.status, warm.output, warm.store) == ("completed", [], False)
    assert warm.tools[0].name == "get_weather"


@everywhere
def test_responses_in_the_background_are_complete(served: Served, model: str) -> None:
    begun = check_response(ask(served, PATH, {"model": model, "input": "Hello.", "background": True}).body)
    assert begun.background is True
    found: list[Any] = []

    def is_over() -> bool:
        found.append(ask(served, f"{PATH}/{begun.id}").body)
        return bool(found[-1]["status"] == "completed")

    wait_until(is_over)
    for body in found:
        assert check_response(body).background is True


@either
@everywhere
def test_responses_that_are_a_compaction_are_complete(served: Served, model: str, stream: bool) -> None:
    items = [said("user", "I am Alice."), said("assistant", "Hello!"), {"type": "compaction_trigger"}]
    response, _ = create(served, model, stream=stream, input=items, store=False)
    assert [item.type for item in response.output] == ["compaction"]
    got = ask(served, f"{PATH}/compact", {"model": model, "input": items[:2]}).body
    assert CompactedResponse.model_validate(got).id


def test_the_official_sdk_reads_a_stream_to_its_end(served: Served) -> None:
    with (
        openai.OpenAI(base_url=served.url + "/v1", api_key=KEY) as client,
        client.responses.stream(model=MODELS["anthropic"], input="Hello.") as stream,
    ):
        for _ in stream:
            pass
        assert stream.get_final_response().output_text == "Hello to you."


def test_an_error_names_the_field_that_the_client_wrote(served: Served) -> None:
    got = ask(served, PATH, {"model": MODELS["anthropic"], "input": []})
    assert got.status == 400
    assert "messages" not in str(got.body)
    assert "input" in str(got.body)

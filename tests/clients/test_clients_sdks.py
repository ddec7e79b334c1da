"""The Python SDKs on a gateway in their own process: tool loops on any upstream, waiting in a thread or in a loop.

Each loop is written once, as a generator of requests that is sent the replies; four ways of asking drive it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, NamedTuple

import anthropic
import cohere
import openai
import pytest
from google import genai
from google.genai import errors as google_errors
from google.genai import types

import toolglot
from sdk.samples import WEATHER
from support.gateway.sdk_script import SCRIPT, SETTINGS
from toolglot.gateway import Config, Upstreams
from toolglot.gateway.config.settings import GatewaySettings
from toolglot.simulator import Simulator

SONNET: Final = "simulated/anthropic/claude-sonnet-4-5"
GPT: Final = "simulated/openai/gpt-4.1"
GEMINI: Final = "simulated/gemini/gemini-3-pro-preview"
MISTRAL: Final = "simulated/mistral/mistral-large-latest"
CONFIG: Final = Config(gateway=GatewaySettings(store=":memory:"))
FUNCTION: Final[dict[str, Any]] = {"name": "get_weather", "description": "The weather", "parameters": WEATHER}
QUESTION: Final = "What is the weather?"
MOST_STEPS: Final = 5

Loop = Callable[[str, Callable[[str], str]], Generator[dict[str, Any], Any, str]]


class Sdk(NamedTuple):
    """How an SDK is made and called, and the loop that its users write."""

    loop: Loop
    client: Callable[..., Any]
    ask: Callable[..., Any]
    async_client: Callable[..., Any]
    async_ask: Callable[..., Any]
    models: tuple[str, str, str]
    busy: type[Exception]


# --- loops ------------------------------------------------------------------------------------------


def chat_loop(model: str, run: Callable[[str], str]) -> Generator[dict[str, Any], Any, str]:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        tools = [{"type": "function", "function": FUNCTION}]
        message = yield {"model": model, "messages": messages, "tools": tools}
        if not message.tool_calls:
            return str(message.content)
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}
            for call in message.tool_calls
            for arguments in [call.function.arguments]
        ]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        messages += [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": run(json.loads(call.function.arguments)["city"]),
            }
            for call in message.tool_calls
        ]


def responses_loop(model: str, run: Callable[[str], str]) -> Generator[dict[str, Any], Any, str]:
    fields: dict[str, Any] = {"input": QUESTION}
    while True:
        reply = yield {"model": model, "tools": [{"type": "function", **FUNCTION, "strict": False}], **fields}
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return str(reply.output_text)
        results = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": run(json.loads(call.arguments)["city"]),
            }
            for call in calls
        ]
        fields = {"input": results, "previous_response_id": reply.id}


def messages_loop(model: str, run: Callable[[str], str]) -> Generator[dict[str, Any], Any, str]:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tool = {"name": "get_weather", "description": "The weather", "input_schema": WEATHER}
    while True:
        reply = yield {"model": model, "max_tokens": 4000, "messages": messages, "tools": [tool]}
        messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": run(call.input["city"])} for call in calls
        ]
        messages.append({"role": "user", "content": results})


def gemini_loop(model: str, run: Callable[[str], str]) -> Generator[dict[str, Any], Any, str]:
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    declared = types.FunctionDeclaration(name="get_weather", description="The weather", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    while True:
        parts = yield {"model": model, "contents": contents, "config": config}
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts if not part.thought)
        results = [
            types.FunctionResponse(id=call.id, name=call.name, response={"output": run(call.args["city"])})
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=[types.Part(function_response=result) for result in results]))


# --- four ways of asking ----------------------------------------------------------------------------


def ask_chat(client: openai.OpenAI, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return client.chat.completions.create(**fields).choices[0].message
    with client.chat.completions.stream(**fields) as events:
        return events.get_final_completion().choices[0].message


async def ask_chat_async(client: openai.AsyncOpenAI, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return (await client.chat.completions.create(**fields)).choices[0].message
    async with client.chat.completions.stream(**fields) as events:
        return (await events.get_final_completion()).choices[0].message


def ask_responses(client: openai.OpenAI, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return client.responses.create(**fields)
    with client.responses.stream(**fields) as events:
        return events.get_final_response()


async def ask_responses_async(client: openai.AsyncOpenAI, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return await client.responses.create(**fields)
    async with client.responses.stream(**fields) as events:
        return await events.get_final_response()


def ask_messages(client: anthropic.Anthropic, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return client.messages.create(**fields)
    with client.messages.stream(**fields) as events:
        return events.get_final_message()


async def ask_messages_async(client: anthropic.AsyncAnthropic, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return await client.messages.create(**fields)
    async with client.messages.stream(**fields) as events:
        return await events.get_final_message()


def ask_gemini(client: genai.Client, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return parts_of(client.models.generate_content(**fields))
    return [part for chunk in client.models.generate_content_stream(**fields) for part in parts_of(chunk)]


async def ask_gemini_async(client: genai.Client, fields: dict[str, Any], *, stream: bool) -> Any:
    if not stream:
        return parts_of(await client.aio.models.generate_content(**fields))
    chunks = await client.aio.models.generate_content_stream(**fields)
    return [part async for chunk in chunks for part in parts_of(chunk)]


def parts_of(reply: types.GenerateContentResponse) -> list[types.Part]:
    content = reply.candidates[0].content if reply.candidates else None
    return (content.parts or []) if content else []


def genai_client(*, http_client: Any) -> genai.Client:
    return genai.Client(api_key="any", http_options=types.HttpOptions(httpx_client=http_client))


def genai_async_client(*, http_client: Any) -> genai.Client:
    return genai.Client(api_key="any", http_options=types.HttpOptions(httpx_async_client=http_client))


def openai_client(*, http_client: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="any", base_url="http://toolglot/v1", max_retries=0, http_client=http_client)


def openai_async_client(*, http_client: Any) -> openai.AsyncOpenAI:
    """At its default address: the path decides, not the host."""
    return openai.AsyncOpenAI(api_key="any", max_retries=0, http_client=http_client)


def anthropic_client(*, http_client: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="any", max_retries=0, http_client=http_client)


def anthropic_async_client(*, http_client: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="any", max_retries=0, http_client=http_client)


SDKS: Final = {
    "openai chat": Sdk(
        chat_loop,
        openai_client,
        ask_chat,
        openai_async_client,
        ask_chat_async,
        (GPT, SONNET, GEMINI),
        openai.RateLimitError,
    ),
    "openai responses": Sdk(
        responses_loop,
        openai_client,
        ask_responses,
        openai_async_client,
        ask_responses_async,
        ("simulated/openai/gpt-5.5", SONNET, MISTRAL),
        openai.RateLimitError,
    ),
    "anthropic": Sdk(
        messages_loop,
        anthropic_client,
        ask_messages,
        anthropic_async_client,
        ask_messages_async,
        (SONNET, GPT, GEMINI),
        anthropic.RateLimitError,
    ),
    "google-genai": Sdk(
        gemini_loop,
        genai_client,
        ask_gemini,
        genai_async_client,
        ask_gemini_async,
        (GEMINI, SONNET, MISTRAL),
        google_errors.ClientError,
    ),
}
LOOPS: Final = [(name, model) for name, sdk in SDKS.items() for model in sdk.models]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDKs know only what the test sets."""
    for name in list(os.environ):
        if name.upper().startswith(SETTINGS) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    made = Simulator(SCRIPT)
    yield made
    assert made.requests, "no request was made"


def drive(sdk: Sdk, model: str, run: Callable[[str], str], http_client: Any, *, stream: bool) -> str:
    loop = sdk.loop(model, run)
    client = sdk.client(http_client=http_client)
    fields = next(loop)
    for _ in range(MOST_STEPS):
        reply = sdk.ask(client, fields, stream=stream)
        try:
            fields = loop.send(reply)
        except StopIteration as answer:
            return str(answer.value)
    raise AssertionError("no answer")


async def drive_async(sdk: Sdk, model: str, run: Callable[[str], str], http_client: Any, *, stream: bool) -> str:
    loop = sdk.loop(model, run)
    client = sdk.async_client(http_client=http_client)
    fields = next(loop)
    for _ in range(MOST_STEPS):
        reply = await sdk.async_ask(client, fields, stream=stream)
        try:
            fields = loop.send(reply)
        except StopIteration as answer:
            return str(answer.value)
    raise AssertionError("no answer")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("waits", ["in a thread", "in a loop"])
@pytest.mark.parametrize(("name", "model"), LOOPS)
def test_an_sdk_completes_a_tool_loop_without_a_server(
    simulator: Simulator, name: str, model: str, waits: str, stream: bool
) -> None:
    ran: list[str] = []

    def run(city: str) -> str:
        ran.append(city)
        return f"7 degrees in {city}"

    async def in_a_loop() -> str:
        async with toolglot.async_client(CONFIG, upstreams=Upstreams(CONFIG, simulator=simulator)) as http_client:
            return await drive_async(SDKS[name], model, run, http_client, stream=stream)

    if waits == "in a loop":
        text = asyncio.run(in_a_loop())
    else:
        with toolglot.client(CONFIG, upstreams=Upstreams(CONFIG, simulator=simulator)) as http_client:
            text = drive(SDKS[name], model, run, http_client, stream=stream)
    assert ran == ["Bonn", "Köln", "Oslo"]
    for city in ran:
        assert f"7 degrees in {city}" in text
    assert [request.status for request in simulator.requests] == [200, 200, 200]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", SDKS)
def test_a_busy_provider_is_the_sdks_own_exception_with_the_time_to_wait(
    simulator: Simulator, name: str, stream: bool
) -> None:
    sdk = SDKS[name]
    simulator.fault("429,retry_after=7", times=2)

    async def in_a_loop() -> None:
        async with toolglot.async_client(CONFIG, upstreams=Upstreams(CONFIG, simulator=simulator)) as http_client:
            await drive_async(sdk, sdk.models[1], str, http_client, stream=stream)

    upstreams = Upstreams(CONFIG, simulator=simulator)
    with toolglot.client(CONFIG, upstreams=upstreams) as http_client, pytest.raises(sdk.busy) as raised:
        drive(sdk, sdk.models[1], str, http_client, stream=stream)
    assert raised.value.response.headers["retry-after"] == "7"  # type: ignore[attr-defined]
    with pytest.raises(sdk.busy) as raised:
        asyncio.run(in_a_loop())
    assert raised.value.response.headers["retry-after"] == "7"  # type: ignore[attr-defined]


def test_the_gateway_refuses_in_the_shape_that_each_sdk_reads() -> None:
    config = Config(gateway=GatewaySettings(store=":memory:"))
    hello: Any = [{"role": "user", "content": "Hello"}]
    with toolglot.client(config) as http_client:
        with pytest.raises(openai.NotFoundError, match="nothing"):
            openai_client(http_client=http_client).chat.completions.create(model="nothing", messages=hello)
        with pytest.raises(anthropic.NotFoundError, match="nothing"):
            anthropic_client(http_client=http_client).messages.create(model="nothing", max_tokens=9, messages=hello)
        with pytest.raises(google_errors.ClientError, match="nothing"):
            genai_client(http_client=http_client).models.generate_content(model="nothing", contents="Hello")


def test_a_stream_that_breaks_off_is_the_sdks_own_exception(simulator: Simulator) -> None:
    simulator.fault("error_event,after=2")
    with toolglot.client(CONFIG, upstreams=Upstreams(CONFIG, simulator=simulator)) as http_client:
        loop = SDKS["openai chat"]
        with pytest.raises(openai.APIError, match="verloaded"):
            drive(loop, SONNET, str, http_client, stream=True)


def test_sdks_that_use_httpx_are_served_too(simulator: Simulator) -> None:
    hello: Any = [{"role": "user", "content": "Some words."}]
    with toolglot.client(CONFIG, upstreams=Upstreams(CONFIG, simulator=simulator), library="httpx") as http_client:
        legacy: Any = http_client
        client = openai.OpenAI(api_key="any", http_client=legacy)
        fields = client.chat.completions.create(model=SONNET, messages=hello)
        chunks = list(client.chat.completions.create(model=SONNET, messages=hello, stream=True))
        commander = cohere.ClientV2(api_key="any", httpx_client=http_client, log_warning_experimental_features=False)
        answer = commander.chat(model=SONNET, messages=hello)
    text = "These are some words, and then a few more."
    assert fields.choices[0].message.content == text
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
    assert [getattr(part, "text", "") for part in answer.message.content or ()] == [text]

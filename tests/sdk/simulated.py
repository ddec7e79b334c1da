"""A tool loop with each SDK, as its users write it: ask, run the calls, send the results, until there is an answer.

Streams are put together by the SDK's own accumulator where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import boto3
import cohere
import httpx
import ollama
from anthropic import Anthropic
from botocore.config import Config
from google import genai
from google.genai import types
from mistralai.client import Mistral
from openai import OpenAI

from sdk.samples import WEATHER

QUESTION: Final = "What is the weather in Bonn?"
WEATHER_RESULT: Final = "7 degrees"
MOST_STEPS: Final = 5

Steps = list[tuple[str, dict[str, Any]]]
Loop = Callable[..., tuple[Steps, str]]
Run = Callable[[str, dict[str, Any]], str]
"""The tools: a name and arguments, and what comes of them."""


def weather_tool(_name: str, _arguments: dict[str, Any]) -> str:
    """The default tool of loops."""
    return WEATHER_RESULT


_FUNCTION: Final[dict[str, Any]] = {"name": "get_weather", "description": "The weather", "parameters": WEATHER}
_CHAT_TOOL: Final[dict[str, Any]] = {"type": "function", "function": _FUNCTION}


@contextmanager
def anthropic_client(url: str) -> Iterator[Anthropic]:
    with Anthropic(api_key="key", base_url=url, max_retries=0) as client:
        yield client


@contextmanager
def openai_client(url: str) -> Iterator[OpenAI]:
    with OpenAI(api_key="key", base_url=url, max_retries=0) as client:
        yield client


@contextmanager
def genai_client(url: str) -> Iterator[genai.Client]:
    client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=url))
    try:
        yield client
    finally:
        client.close()


@contextmanager
def mistral_client(url: str) -> Iterator[Mistral]:
    with Mistral(api_key="key", server_url=url) as client:
        yield client


@contextmanager
def cohere_client(url: str) -> Iterator[cohere.ClientV2]:
    with httpx.Client() as connection:
        yield cohere.ClientV2(
            api_key="key", base_url=url, httpx_client=connection, log_warning_experimental_features=False
        )


@contextmanager
def ollama_client(url: str) -> Iterator[ollama.Client]:
    client = ollama.Client(url)
    with client._client:
        yield client


@contextmanager
def bedrock_client(url: str) -> Iterator[Any]:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="id",
        aws_secret_access_key="key",  # noqa: S106
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    try:
        yield client
    finally:
        client.close()


# --- loops ------------------------------------------------------------------------------------------


def anthropic(
    url: str, *, stream: bool, model: str = "claude-opus-5", run: Run = weather_tool, **more: Any
) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tool: Any = {"name": "get_weather", "description": "The weather", "input_schema": WEATHER}
    with anthropic_client(url) as client:
        for _ in range(MOST_STEPS):
            request: dict[str, Any] = {
                "model": model,
                "max_tokens": 4000,
                "messages": messages,
                "tools": [tool],
                **more,
            }
            if stream:
                with client.messages.stream(**request) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**request)
            messages.append({"role": "assistant", "content": [block.model_dump() for block in reply.content]})
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return steps, "".join(block.text for block in reply.content if block.type == "text")
            assert reply.stop_reason == "tool_use"
            steps += [(call.name, dict(call.input)) for call in calls]
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": run(call.name, dict(call.input))}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
    raise AssertionError("no answer")


def openai(
    url: str, *, stream: bool, model: str = "gpt-4.1", names_results: bool = False, run: Run = weather_tool, **more: Any
) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with openai_client(url) as client:
        for _ in range(MOST_STEPS):
            request: dict[str, Any] = {"model": model, "messages": messages, "tools": [_CHAT_TOOL], **more}
            if stream:
                with client.chat.completions.stream(**request) as events:
                    choice: Any = events.get_final_completion().choices[0]
            else:
                choice = client.chat.completions.create(**request).choices[0]
            calls = choice.message.tool_calls or []
            messages.append(_chat_message(choice.message))
            if not calls:
                return steps, choice.message.content or ""
            assert choice.finish_reason == "tool_calls"
            steps += [(call.function.name, json.loads(call.function.arguments)) for call in calls]
            messages += [_chat_result(call, run, named=names_results) for call in calls]
    raise AssertionError("no answer")


def _chat_result(call: Any, run: Run, *, named: bool) -> dict[str, Any]:
    result = run(call.function.name, json.loads(call.function.arguments))
    fields = {"role": "tool", "tool_call_id": call.id, "content": result}
    return {**fields, "name": call.function.name} if named else fields


def _chat_message(message: Any) -> dict[str, Any]:
    """What is sent back: the model's text, thinking and calls."""
    fields = message.model_dump(exclude_none=True, include={"role", "content", "reasoning_content"})
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls or ()
    ]
    return {**fields, "tool_calls": calls} if calls else fields


def responses(
    url: str, *, stream: bool, model: str = "gpt-5.5", run: Run = weather_tool, **more: Any
) -> tuple[Steps, str]:
    steps: Steps = []
    items: list[Any] = [{"role": "user", "content": QUESTION}]
    tool: Any = {"type": "function", **_FUNCTION, "strict": False}
    with openai_client(url) as client:
        for _ in range(MOST_STEPS):
            request: dict[str, Any] = {"model": model, "input": items, "tools": [tool], **more}
            if stream:
                with client.responses.stream(**request) as events:
                    reply: Any = events.get_final_response()
            else:
                reply = client.responses.create(**request)
            items_of_reply = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return steps, reply.output_text
            steps += [(call.name, json.loads(call.arguments)) for call in calls]
            results = [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": run(call.name, json.loads(call.arguments)),
                }
                for call in calls
            ]
            if more.get("store") is False:
                items += [*items_of_reply, *results]
            else:
                items, more = results, {**more, "previous_response_id": reply.id}
    raise AssertionError("no answer")


def gemini(url: str, *, stream: bool, model: str = "gemini-3-pro", run: Run = weather_tool) -> tuple[Steps, str]:
    steps: Steps = []
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    declared = types.FunctionDeclaration(name="get_weather", description="The weather", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    with genai_client(url) as client:
        for _ in range(MOST_STEPS):
            if stream:
                chunks = client.models.generate_content_stream(model=model, contents=contents, config=config)
                parts = [part for chunk in chunks for part in _parts(chunk)]
            else:
                parts = _parts(client.models.generate_content(model=model, contents=contents, config=config))
            contents.append(types.Content(role="model", parts=parts))
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return steps, "".join(part.text or "" for part in parts if not part.thought)
            steps += [(call.name or "", dict(call.args or {})) for call in calls]
            results = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=call.id, name=call.name, response={"output": run(call.name or "", dict(call.args or {}))}
                    )
                )
                for call in calls
            ]
            contents.append(types.Content(role="user", parts=results))
    raise AssertionError("no answer")


def _parts(reply: types.GenerateContentResponse) -> list[types.Part]:
    content = reply.candidates[0].content if reply.candidates else None
    return (content.parts or []) if content else []


def mistral(
    url: str, *, stream: bool, model: str = "mistral-large-latest", run: Run = weather_tool
) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tools: Any = [_CHAT_TOOL]
    with mistral_client(url) as client:
        for _ in range(MOST_STEPS):
            if stream:
                text, calls = _mistral_stream(client.chat.stream(model=model, messages=messages, tools=tools))
            else:
                message = client.chat.complete(model=model, messages=messages, tools=tools).choices[0].message
                assert message is not None
                text, calls = str(message.content or ""), list(message.tool_calls or [])
            if not calls:
                return steps, text
            steps += [(call.function.name, json.loads(str(call.function.arguments))) for call in calls]
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            messages += [_chat_result(call, run, named=True) for call in calls]
    raise AssertionError("no answer")


def _mistral_stream(events: Any) -> tuple[str, list[Any]]:
    text = ""
    calls: list[Any] = []
    for event in events:
        delta = event.data.choices[0].delta
        text += str(delta.content or "")
        calls += delta.tool_calls or []
    return text, calls


def cohere_chat(
    url: str, *, stream: bool, model: str = "command-a-03-2025", run: Run = weather_tool, **more: Any
) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    tools: Any = [_CHAT_TOOL]
    with cohere_client(url) as client:
        for _ in range(MOST_STEPS):
            if stream:
                text, calls = _cohere_stream(client.chat_stream(model=model, messages=messages, tools=tools, **more))
            else:
                message = client.chat(model=model, messages=messages, tools=tools, **more).message
                text = "".join(getattr(part, "text", "") for part in message.content or ())
                calls = [call.model_dump() for call in message.tool_calls or ()]
            if not calls:
                return steps, text
            steps += [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
            messages.append({"role": "assistant", "tool_plan": "I look.", "tool_calls": calls})
            messages += [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": run(call["function"]["name"], json.loads(call["function"]["arguments"])),
                }
                for call in calls
            ]
    raise AssertionError("no answer")


def _cohere_stream(events: Any) -> tuple[str, list[dict[str, Any]]]:
    text = ""
    calls: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.type == "content-delta":
            text += event.delta.message.content.text or ""
        elif event.type == "tool-call-start":
            calls[event.index] = event.delta.message.tool_calls.model_dump()
        elif event.type == "tool-call-delta":
            calls[event.index]["function"]["arguments"] += event.delta.message.tool_calls.function.arguments
    return text, list(calls.values())


def ollama_chat(url: str, *, stream: bool, model: str = "qwen3", run: Run = weather_tool) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with ollama_client(url) as client:
        for _ in range(MOST_STEPS):
            if stream:
                chunks = list(client.chat(model, messages, tools=[_CHAT_TOOL], stream=True))
                text = "".join(chunk.message.content or "" for chunk in chunks)
                calls = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
            else:
                message = client.chat(model, messages, tools=[_CHAT_TOOL]).message
                text, calls = message.content or "", list(message.tool_calls or ())
            if not calls:
                return steps, text
            steps += [(call.function.name, dict(call.function.arguments)) for call in calls]
            messages.append(ollama.Message(role="assistant", content=text, tool_calls=calls))
            messages += [
                {
                    "role": "tool",
                    "content": run(call.function.name, dict(call.function.arguments)),
                    "tool_name": call.function.name,
                }
                for call in calls
            ]
    raise AssertionError("no answer")


def bedrock(
    url: str, *, stream: bool, model: str = "anthropic.claude-opus-5-v1:0", run: Run = weather_tool
) -> tuple[Steps, str]:
    steps: Steps = []
    messages: list[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]
    spec = {"name": "get_weather", "description": "The weather", "inputSchema": {"json": WEATHER}}
    with bedrock_client(url) as client:
        for _ in range(MOST_STEPS):
            request: dict[str, Any] = {
                "modelId": model,
                "messages": messages,
                "toolConfig": {"tools": [{"toolSpec": spec}]},
            }
            if stream:
                with closing(client.converse_stream(**request)["stream"]) as events:
                    content = _converse_stream(events)
            else:
                content = client.converse(**request)["output"]["message"]["content"]
            messages.append({"role": "assistant", "content": content})
            calls = [block["toolUse"] for block in content if "toolUse" in block]
            if not calls:
                return steps, "".join(block.get("text", "") for block in content)
            steps += [(call["name"], call["input"]) for call in calls]
            results = [
                {
                    "toolResult": {
                        "toolUseId": call["toolUseId"],
                        "content": [{"text": run(call["name"], call["input"])}],
                    }
                }
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
    raise AssertionError("no answer")


def _converse_stream(events: Any) -> list[dict[str, Any]]:
    """The content of a stream: boto3 has no accumulator of its own."""
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        start, delta = event.get("contentBlockStart"), event.get("contentBlockDelta")
        if start is not None and "toolUse" in start["start"]:
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        if delta is not None:
            _add(blocks.setdefault(delta["contentBlockIndex"], {}), delta["delta"])
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return [block for _, block in sorted(blocks.items())]


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if "text" in delta:
        block["text"] = block.get("text", "") + delta["text"]
    if "toolUse" in delta:
        block["toolUse"]["input"] += delta["toolUse"]["input"]
    if "reasoningContent" in delta:
        shown = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
        shown["text"] += delta["reasoningContent"].get("text", "")
        if "signature" in delta["reasoningContent"]:
            shown["signature"] = delta["reasoningContent"]["signature"]


LOOPS: Final[dict[str, tuple[str, Loop]]] = {
    "anthropic": ("anthropic", anthropic),
    "openai": ("openai", openai),
    "responses": ("openai", responses),
    "gemini": ("gemini", gemini),
    "mistral": ("mistral", mistral),
    "deepseek": ("deepseek", lambda url, **how: openai(url, model="deepseek-reasoner", **how)),
    "kimi": ("kimi", lambda url, **how: openai(url, model="kimi-k2.5", names_results=True, **how)),
    "bedrock": ("bedrock", bedrock),
    "cohere": ("cohere", cohere_chat),
    "ollama": ("ollama", ollama_chat),
}
"""The provider and the loop of each."""

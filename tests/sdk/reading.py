"""How each SDK reads a reply: what its user sees of it, and what its own type definitions say to the body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from anthropic.types import Message
from botocore.validate import ParamValidator
from cohere import V2ChatResponse
from google.genai.types import GenerateContentResponse
from mistralai.client.models import ChatCompletionResponse
from ollama import ChatResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import TypeAdapter

from sdk.census import written
from toolglot.conversation import Reply, Thinking, Usage

Call = tuple[str, str, str]
"""Id, name, arguments."""


@dataclass(frozen=True)
class Seen:
    """What a user of an SDK sees of a reply."""

    text: str
    calls: tuple[Call, ...]
    tokens: tuple[int, int] | None
    """Of the prompt, caches included, and of the answer, thinking included; None if it does not say."""
    stop: str | None = None
    """Why it ended, in the SDK's own word."""
    thinking: str = ""


def expected_of(reply: Reply) -> Seen:
    """What the user of any SDK should see."""
    calls = tuple(
        (call.id, call.name, written(call.raw_input if call.arguments is None else call.arguments))
        for call in reply.turn.calls
    )
    thinking = _joined(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    return Seen(reply.turn.text, calls, _tokens(reply.usage), reply.stop, thinking)


def _tokens(usage: Usage | None) -> tuple[int, int] | None:
    return None if usage is None else (usage.input_tokens or 0, usage.output_tokens or 0)


def _joined(texts: Iterable[str | None]) -> str:
    return "".join(text or "" for text in texts)


# --- what is seen -----------------------------------------------------------------------------------


def _anthropic(message: Message) -> Seen:
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return Seen(
        _joined(block.text for block in message.content if block.type == "text"),
        tuple((block.id, block.name, written(block.input)) for block in message.content if block.type == "tool_use"),
        (usage.input_tokens + cached, usage.output_tokens),
        message.stop_reason,
        _joined(block.thinking for block in message.content if block.type == "thinking"),
    )


def _chat(completion: ChatCompletion) -> Seen:
    message, usage = completion.choices[0].message, completion.usage
    return Seen(
        message.content or "",
        tuple(
            (call.id, call.function.name, written(call.function.arguments))
            if call.type == "function"
            else (call.id, call.custom.name, written(call.custom.input))
            for call in message.tool_calls or ()
        ),
        (usage.prompt_tokens, usage.completion_tokens) if usage else None,
        completion.choices[0].finish_reason,
    )


def _mistral(completion: ChatCompletionResponse) -> Seen:
    message, usage = completion.choices[0].message, completion.usage
    assert message is not None
    content: Any = message.content
    parts = content if isinstance(content, list) else []
    return Seen(
        content if isinstance(content, str) else _joined(part.text for part in parts if part.type == "text"),
        tuple(
            (call.id or "", call.function.name, written(call.function.arguments)) for call in message.tool_calls or ()
        ),
        (usage.prompt_tokens or 0, usage.completion_tokens or 0),
        completion.choices[0].finish_reason,
    )


def _responses(response: Response) -> Seen:
    usage = response.usage
    calls = [item for item in response.output if item.type in ("function_call", "custom_tool_call")]
    return Seen(
        response.output_text,
        tuple(
            (call.call_id, call.name, written(call.arguments if call.type == "function_call" else call.input))
            for call in calls
        ),
        (usage.input_tokens, usage.output_tokens) if usage else None,
        (response.incomplete_details.reason if response.incomplete_details else None) or response.status,
    )


def _genai(response: GenerateContentResponse) -> Seen:
    content = response.candidates[0].content if response.candidates else None
    parts = (content.parts if content else None) or []
    usage = response.usage_metadata
    return Seen(
        _joined(part.text for part in parts if not part.thought),
        tuple((call.id or "", call.name or "", written(call.args)) for part in parts if (call := part.function_call)),
        (usage.prompt_token_count or 0, (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0))
        if usage
        else None,
        reason.name if (reason := response.candidates[0].finish_reason if response.candidates else None) else None,
        _joined(part.text for part in parts if part.thought),
    )


def _boto3(answer: dict[str, Any]) -> Seen:
    content, usage = answer["output"]["message"]["content"], answer.get("usage")
    calls = [block["toolUse"] for block in content if "toolUse" in block]
    cached = (usage.get("cacheReadInputTokens") or 0) + (usage.get("cacheWriteInputTokens") or 0) if usage else 0
    return Seen(
        _joined(block.get("text") for block in content),
        tuple(
            (call["toolUseId"], call["name"], written(call["input"]))
            for call in calls
            if call.get("type") != "server_tool_use"
        ),
        (usage.get("inputTokens", 0) + cached, usage.get("outputTokens", 0)) if usage else None,
        answer.get("stopReason"),
    )


def _cohere(answer: V2ChatResponse) -> Seen:
    usage = answer.usage.tokens if answer.usage else None
    calls = [(call.id, call.function) for call in answer.message.tool_calls or () if call.function is not None]
    return Seen(
        _joined(part.text for part in answer.message.content or () if part.type == "text"),
        tuple((id, function.name or "", written(function.arguments)) for id, function in calls),
        (int(usage.input_tokens or 0), int(usage.output_tokens or 0)) if usage else None,
        answer.finish_reason,
    )


def _ollama(answer: ChatResponse) -> Seen:
    calls = answer.message.tool_calls or ()
    read, made = answer.prompt_eval_count, answer.eval_count
    return Seen(
        answer.message.content or "",
        tuple(("", call.function.name, written(dict(call.function.arguments))) for call in calls),
        None if read is None and made is None else (read or 0, made or 0),
        answer.done_reason,
        answer.message.thinking or "",
    )


SEEN: Final[dict[str, Callable[[Any], Seen]]] = {
    "anthropic": _anthropic,
    "boto3": _boto3,
    "cohere": _cohere,
    "genai": _genai,
    "mistral": _mistral,
    "ollama": _ollama,
    "openai": _chat,
    "responses": _responses,
}

STOPS: Final[dict[str, dict[str, str]]] = {
    "anthropic": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "filter": "refusal"},
    "boto3": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "filter": "content_filtered"},
    "cohere": {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS"},
    "genai": {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"},
    "mistral": {"stop": "stop", "tool_calls": "tool_calls", "length": "length"},
    "ollama": {"stop": "stop", "tool_calls": "stop", "length": "length"},
    "openai": {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "filter": "content_filter"},
    "responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "length": "max_output_tokens",
        "filter": "content_filter",
    },
}
"""The SDK's word for why a reply of another provider ended, where it has one."""

SHOWS_THINKING: Final = frozenset({"anthropic", "genai", "ollama"})
"""SDKs whose user sees what another provider's model thought."""

HAS_CALL_IDS: Final = frozenset(SEEN) - {"ollama"}

_ENVELOPE: Final[dict[str, dict[str, Any]]] = {
    "boto3": {"metrics": {"latencyMs": 0}},
    "responses": {"created_at": 0, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
}
"""What a definition demands and only the one who serves the reply knows: the time, and the request's own settings."""


def completed(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """A body as it is served, with what the codec of a reply cannot know."""
    whole = {**_ENVELOPE.get(name, {}), **body}
    if name == "responses" and whole.get("usage"):
        details = {"cache_write_tokens": 0, **whole["usage"]["input_tokens_details"]}
        whole["usage"] = {**whole["usage"], "input_tokens_details": details}
    return whole


# --- what the type definitions say ------------------------------------------------------------------

_TYPES: Final[dict[str, TypeAdapter[Any]]] = {
    "anthropic": TypeAdapter(Message),
    "cohere": TypeAdapter(V2ChatResponse),
    "genai": TypeAdapter(GenerateContentResponse),
    "mistral": TypeAdapter(ChatCompletionResponse),
    "ollama": TypeAdapter(ChatResponse),
    "openai": TypeAdapter(ChatCompletion),
    "responses": TypeAdapter(Response),
}


def refuse_invalid(name: str, body: dict[str, Any], answer: Any, client: Any) -> None:
    """Raise if the body is not what the SDK's own definitions allow."""
    if name == "boto3":
        shape = client.meta.service_model.operation_model("Converse").output_shape
        found = ParamValidator().validate({key: answer[key] for key in answer if key != "ResponseMetadata"}, shape)
        assert not found.has_errors(), found.generate_report()
        assert answer["stopReason"] in shape.members["stopReason"].enum
        return
    _TYPES[name].validate_json(json.dumps(body))

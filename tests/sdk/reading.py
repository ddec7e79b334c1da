"""How each SDK reads a reply: what its user sees of it, and what its own type definitions say to the body."""

from __future__ import annotations

import json
import re
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
from toolglot.conversation import Reply, Thinking, ToolCall, Usage

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


def expected_of(reply: Reply, *, free_text: bool = True) -> Seen:
    """What the user of any SDK should see. Without `free_text` the text of a call is its one argument."""
    calls = tuple((call.id, call.name, _arguments(call, free_text)) for call in reply.turn.calls)
    thinking = _joined(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    return Seen(reply.turn.text, calls, _tokens(reply.usage), reply.stop, thinking)


def _arguments(call: ToolCall, free_text: bool) -> str:
    if call.type == "custom" and not free_text:
        return written({"input": call.raw_input})
    return written(call.raw_input if call.arguments is None else call.arguments)


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
    old = message.function_call
    calls = [
        (call.id, call.function.name, written(call.function.arguments))
        if call.type == "function"
        else (call.id, call.custom.name, written(call.custom.input))
        for call in message.tool_calls or ()
    ]
    return Seen(
        _joined((message.content, message.refusal)),
        (*calls, *([("", old.name, written(old.arguments))] if old is not None else [])),
        (usage.prompt_tokens, usage.completion_tokens) if usage else None,
        completion.choices[0].finish_reason,
        (message.model_extra or {}).get("reasoning_content") or "",
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
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    thoughts = [item for item in response.output if item.type == "reasoning"]
    return Seen(
        _joined(part.refusal if part.type == "refusal" else part.text for part in parts),
        tuple(
            (call.call_id, call.name, written(call.arguments if call.type == "function_call" else call.input))
            for call in calls
        ),
        (usage.input_tokens, usage.output_tokens) if usage else None,
        (response.incomplete_details.reason if response.incomplete_details else None) or response.status,
        _joined(summary.text for item in thoughts for summary in item.summary),
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
        _joined(map(_converse_text, content)),
        tuple(
            (_MADE_UP_ID.sub("", call["toolUseId"]), call["name"], written(call["input"]))
            for call in calls
            if call.get("type") != "server_tool_use"
        ),
        (usage.get("inputTokens", 0) + cached, usage.get("outputTokens", 0)) if usage else None,
        answer.get("stopReason"),
        _joined(block.get("reasoningContent", {}).get("reasoningText", {}).get("text") for block in content),
    )


_MADE_UP_ID: Final = re.compile(r"^tooluse_\d+$")
"""An id that a call has because Converse wants one; the provider that made the call gave it none."""


def _converse_text(block: dict[str, Any]) -> str:
    """Plain text, an answer with its citations, or words for a guardrail."""
    cited = block.get("citationsContent", {}).get("content", ())
    guarded = block.get("guardContent", {}).get("text", {})
    return _joined(part.get("text") for part in (block, *cited, guarded))


def _cohere(answer: V2ChatResponse) -> Seen:
    usage = answer.usage.tokens if answer.usage else None
    calls = [(call.id, call.function) for call in answer.message.tool_calls or () if call.function is not None]
    return Seen(
        _joined(part.text for part in answer.message.content or () if part.type == "text")
        + (answer.message.tool_plan or ""),
        tuple((id, function.name or "", written(function.arguments)) for id, function in calls),
        (int(usage.input_tokens or 0), int(usage.output_tokens or 0)) if usage else None,
        answer.finish_reason,
        _joined(part.thinking for part in answer.message.content or () if part.type == "thinking"),
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
    "anthropic": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
        "pause": "pause_turn",
        "error": "max_tokens",
    },
    "boto3": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "content_filtered",
        "error": "malformed_model_output",
    },
    "cohere": {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS", "error": "ERROR"},
    "genai": {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "error": "OTHER"},
    "mistral": {"stop": "stop", "tool_calls": "tool_calls", "length": "length"},
    "ollama": {"stop": "stop", "tool_calls": "stop", "length": "length"},
    "openai": {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
        "filter": "content_filter",
        "error": "length",
    },
    "responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "length": "max_output_tokens",
        "filter": "content_filter",
        "error": "failed",
    },
}
"""The SDK's word for why a reply of another provider ended, where it has one."""

SHOWS_THINKING: Final = frozenset({"anthropic", "boto3", "cohere", "genai", "ollama", "openai", "responses"})
"""SDKs whose user sees what another provider's model thought."""

HAS_CALL_IDS: Final = frozenset(SEEN) - {"ollama"}

HAS_FREE_TEXT: Final = frozenset({"openai", "responses"})
"""SDKs that know calls whose input is no object."""

HAS_ALWAYS_USAGE: Final = frozenset({"anthropic", "boto3", "mistral", "openai"})
"""SDKs whose user is promised counts: where there are none, they are 0."""

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

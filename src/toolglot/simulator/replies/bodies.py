"""A plan as the body that its provider would answer with: native ids, fields and words, signed where it signs.

They are written by hand, after each provider's own description, and not by the codecs: what the simulator says is
read by these in tests, and must be able to find them wrong.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import StopReason
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.ask import AcceptedRequest
from toolglot.simulator.replies.made_ids import call_id, hexadecimal, letters, reply_id
from toolglot.simulator.replies.returned import ENCRYPTED, anthropic_prefix, bedrock_prefix, gemini_content
from toolglot.simulator.replies.seals import Sealer
from toolglot.simulator.scripts.plan import PlannedCall, ReplyPlan

STOPS: Final[dict[str, dict[StopReason, str]]] = {
    "anthropic": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "refusal",
        "pause": "pause_turn",
        "error": "refusal",
    },
    "openai_chat": {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
        "filter": "content_filter",
        "pause": "stop",
        "error": "error",
    },
    "openai_responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "length": "incomplete",
        "filter": "incomplete",
        "pause": "in_progress",
        "error": "failed",
    },
    "gemini": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "filter": "SAFETY",
        "pause": "STOP",
        "error": "OTHER",
    },
    "bedrock": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "content_filtered",
        "pause": "end_turn",
        "error": "malformed_model_output",
    },
    "cohere": {
        "stop": "COMPLETE",
        "tool_calls": "TOOL_CALL",
        "length": "MAX_TOKENS",
        "filter": "ERROR",
        "pause": "COMPLETE",
        "error": "ERROR",
    },
    "ollama": {
        "stop": "stop",
        "tool_calls": "stop",
        "length": "length",
        "filter": "stop",
        "pause": "stop",
        "error": "stop",
    },
}
"""Why an answer ended, in each protocol's words."""


class Pen(Struct, frozen=True):
    """What a writer needs besides the plan."""

    ask: AcceptedRequest
    sealer: Sealer
    now: int
    """Seconds since 1970."""


def write(ask: AcceptedRequest, plan: ReplyPlan, sealer: Sealer, now: int) -> Fields:
    """The body of the answer."""
    return _WRITERS[ask.protocol](Pen(ask, sealer, now), plan)


def _stop(pen: Pen, plan: ReplyPlan) -> str:
    return STOPS[pen.ask.protocol][plan.stop]


def _anthropic(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, usage = pen.ask, plan.usage
    content: list[Fields] = []
    if plan.thinking:
        prefix = anthropic_prefix(ask.body, len(ask.body["messages"]))
        signature = pen.sealer.seal("thinking", model=ask.model, content=plan.thinking, prefix=prefix)
        content.append({"type": "thinking", "thinking": plan.thinking, "signature": signature})
    if plan.text:
        content.append({"type": "text", "text": plan.text})
    for index, call in enumerate(plan.calls):
        id = call_id(ask, index, call.name)
        content.append({"type": "tool_use", "id": id, "name": call.name, "input": call.input})
    return {
        "id": reply_id(ask),
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": content,
        "stop_reason": _stop(pen, plan),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens or 0,
            "cache_creation_input_tokens": usage.cache_write_tokens or 0,
            "cache_read_input_tokens": usage.cache_read_tokens or 0,
            "output_tokens": usage.output_tokens or 0,
            "service_tier": "standard",
        },
    }


# --- Chat Completions -------------------------------------------------------------------------------


def _chat(pen: Pen, plan: ReplyPlan) -> Fields:
    ask = pen.ask
    message: Fields = {"role": "assistant", "content": _chat_content(ask, plan)}
    if ask.provider == "openai":
        message |= {"refusal": None, "annotations": []}
    own = ask.profile.reasoning.carrier
    if plan.thinking and own not in ("thinking_chunks", "think_tags"):
        message["reasoning_content" if own == "reasoning_content" else "reasoning"] = plan.thinking
    if plan.calls:
        message["tool_calls"] = [_chat_call(ask, index, call) for index, call in enumerate(plan.calls)]
    choice: Fields = {"index": 0, "message": message, "finish_reason": _stop(pen, plan)}
    body: Fields = {
        "id": reply_id(ask),
        "object": "chat.completion",
        "created": pen.now,
        "model": ask.model,
        "choices": [choice],
        "usage": _chat_usage(ask, plan),
    }
    if ask.provider == "openai":
        choice["logprobs"] = None
        body |= {"service_tier": "default", "system_fingerprint": f"fp_{hexadecimal(ask.model, 'system', 10)}"}
    return body


def _chat_content(ask: AcceptedRequest, plan: ReplyPlan) -> Any:
    if plan.thinking and ask.profile.reasoning.carrier == "thinking_chunks":
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": plan.thinking}]}
        return [thought, {"type": "text", "text": plan.text}] if plan.text else [thought]
    if plan.thinking and ask.profile.reasoning.carrier == "think_tags":
        return f"<think>\n{plan.thinking}\n</think>\n\n{plan.text}"
    return plan.text or (None if plan.calls and ask.provider not in ("mistral", "deepseek") else "")


def _chat_call(ask: AcceptedRequest, index: int, call: PlannedCall) -> Fields:
    id = call_id(ask, index, call.name)
    if call.is_custom:
        return {"id": id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    fields: Fields = {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
    return fields if ask.provider == "openai" else {**fields, "index": index}


def _chat_usage(ask: AcceptedRequest, plan: ReplyPlan) -> Fields:
    usage = plan.usage
    counts: Fields = {"prompt_tokens": usage.input_tokens or 0, "completion_tokens": usage.output_tokens or 0}
    counts["total_tokens"] = sum(counts.values())
    if ask.provider != "mistral":
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens or 0}
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens or 0}
    return counts


# --- Responses --------------------------------------------------------------------------------------


def _responses(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, body = pen.ask, pen.ask.body
    reasoning = body.get("reasoning") if isinstance(body.get("reasoning"), dict) else {}
    status = _stop(pen, plan)
    cut_by = {"length": "max_output_tokens", "filter": "content_filter"}.get(plan.stop)
    return {
        "id": reply_id(ask),
        "object": "response",
        "created_at": pen.now,
        "status": status,
        "background": False,
        "error": {"code": "server_error", "message": "The model failed."} if status == "failed" else None,
        "incomplete_details": {"reason": cut_by} if cut_by is not None else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": ask.model,
        "output": list(_items(pen, plan, status)),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "reasoning": {"effort": (reasoning or {}).get("effort"), "summary": (reasoning or {}).get("summary")},
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text", {"format": {"type": "text"}}),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": _responses_usage(plan),
        "user": body.get("user"),
        "metadata": body.get("metadata", {}),
    }


def _responses_usage(plan: ReplyPlan) -> Fields:
    usage = plan.usage
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens or 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": read + written,
    }


def _items(pen: Pen, plan: ReplyPlan, status: str) -> list[Fields]:
    ask, stem = pen.ask, hexadecimal(pen.ask.stem, "items", 40)
    items: list[Fields] = []
    if plan.thinking:
        asked = ask.conversation.options.reasoning
        is_shown = asked is not None and asked.summary is not None
        sealed = pen.sealer.seal("reasoning", model=ask.model, content=f"rs_{stem}", prefix=ask.account)
        items.append(
            {
                "id": f"rs_{stem}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": plan.thinking}] if is_shown else [],
                "encrypted_content": ENCRYPTED + sealed,
            }
        )
    last = "completed" if status == "completed" else "incomplete"
    if plan.text:
        part = {"type": "output_text", "text": plan.text, "annotations": [], "logprobs": []}
        said = "completed" if plan.calls else last
        items.append({"id": f"msg_{stem}", "type": "message", "role": "assistant", "status": said, "content": [part]})
    for index, call in enumerate(plan.calls):
        # The id of a call that came with reasoning tells so, that the reasoning may be asked for when it comes back.
        own = f"{stem}{index:02x}"
        mark = pen.sealer.mark(own) if plan.thinking else ""
        done = last if index == len(plan.calls) - 1 else "completed"
        items.append(_item(ask, index, call, f"{own}{mark}", done))
    return items


def _item(ask: AcceptedRequest, index: int, call: PlannedCall, stem: str, status: str) -> Fields:
    id = call_id(ask, index, call.name)
    own: Fields = {"namespace": call.namespace} if call.namespace is not None else {}
    fields: Fields = {"call_id": id, "name": call.name, "status": status, **own}
    if call.is_custom:
        return {"id": f"ctc_{stem}", "type": "custom_tool_call", "input": call.text, **fields}
    return {"id": f"fc_{stem}", "type": "function_call", "arguments": call.text, **fields}


# --- Gemini, Bedrock --------------------------------------------------------------------------------


def _gemini(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, usage = pen.ask, plan.usage
    asked = ask.conversation.options.reasoning
    parts: list[Fields] = []
    if plan.thinking and asked is not None and asked.summary is not None:
        parts.append({"text": plan.thinking, "thought": True})
    if plan.text:
        parts.append({"text": plan.text})
    for index, call in enumerate(plan.calls):
        part: Fields = {"functionCall": {"name": call.name, "args": call.input}}
        if index == 0 and (plan.thinking or ask.profile.reasoning.placeholder_on == "first_call"):
            part["thoughtSignature"] = pen.sealer.seal("thought", model=ask.model, content=gemini_content(part))
        parts.append(part)
    thought = usage.reasoning_tokens or 0
    counts = {"promptTokenCount": usage.input_tokens or 0, "candidatesTokenCount": (usage.output_tokens or 0) - thought}
    if thought:
        counts["thoughtsTokenCount"] = thought
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": _stop(pen, plan), "index": 0}],
        "usageMetadata": {**counts, "totalTokenCount": sum(counts.values())},
        "modelVersion": ask.model,
        "responseId": reply_id(ask),
    }


def _bedrock(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, usage = pen.ask, plan.usage
    content: list[Fields] = []
    if plan.thinking:
        prefix = bedrock_prefix(ask.body, len(ask.body["messages"]))
        signature = pen.sealer.seal("bedrock thinking", model=ask.model, content=plan.thinking, prefix=prefix)
        content.append({"reasoningContent": {"reasoningText": {"text": plan.thinking, "signature": signature}}})
    if plan.text:
        content.append({"text": plan.text})
    for index, call in enumerate(plan.calls):
        id = call_id(ask, index, call.name)
        content.append({"toolUse": {"toolUseId": id, "name": call.name, "input": call.input}})
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _stop(pen, plan),
        "usage": {"inputTokens": read, "outputTokens": written, "totalTokens": read + written},
        "metrics": {"latencyMs": 1},
    }


# --- Cohere, Ollama ---------------------------------------------------------------------------------


def _cohere(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, usage = pen.ask, plan.usage
    message: Fields = {"role": "assistant"}
    content: list[Fields] = [{"type": "thinking", "thinking": plan.thinking}] if plan.thinking else []
    if plan.calls:
        message["tool_plan"] = plan.text or f"I will use {plan.calls[0].name}."
        message["tool_calls"] = [
            {
                "id": f"{call.name}_{letters(ask.stem, f'call {index}', 12)}",
                "type": "function",
                "function": {"name": call.name, "arguments": call.text},
            }
            for index, call in enumerate(plan.calls)
        ]
    elif plan.text:
        content.append({"type": "text", "text": plan.text})
    if content:
        message["content"] = content
    counts = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
    return {
        "id": reply_id(ask),
        "finish_reason": _stop(pen, plan),
        "message": message,
        "usage": {"billed_units": dict(counts), "tokens": counts},
    }


def _ollama(pen: Pen, plan: ReplyPlan) -> Fields:
    ask, usage = pen.ask, plan.usage
    message: Fields = {"role": "assistant", "content": plan.text}
    if plan.thinking:
        message["thinking"] = plan.thinking
    if plan.calls:
        message["tool_calls"] = [
            {
                "id": call_id(ask, index, call.name),
                "function": {"index": index, "name": call.name, "arguments": call.input},
            }
            for index, call in enumerate(plan.calls)
        ]
    when = datetime.datetime.fromtimestamp(pen.now, datetime.UTC)
    return {
        "model": ask.model,
        "created_at": when.isoformat().replace("+00:00", "Z"),
        "message": message,
        "done": True,
        "done_reason": _stop(pen, plan),
        "total_duration": 1_000_000,
        "load_duration": 1_000,
        "prompt_eval_count": usage.input_tokens or 0,
        "prompt_eval_duration": 1_000,
        "eval_count": usage.output_tokens or 0,
        "eval_duration": 1_000,
    }


_WRITERS: Final[dict[str, Callable[[Pen, ReplyPlan], Fields]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "ollama": _ollama,
}

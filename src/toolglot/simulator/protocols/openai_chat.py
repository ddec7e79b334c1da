"""OpenAI's Chat Completions, as the simulator serves it for OpenAI and for the many providers that speak it.

Where the streams of a provider differ from what the encoder writes (one chunk for a whole call, usage beside the finish
reason), `StreamStyle` says so, and the chunks are changed here.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Usage
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.prompt_cache import PromptBlock, Section, as_list, marked_block, plain_block
from toolglot.simulator.protocols.base import ReplyContext, SimulatedProtocol, SimulatedRoute, objects
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.replies.ids import call_id, hexadecimal, letters
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.streams import StreamJob, encoder_frames, sse_event
from toolglot.simulator.replies.vectors import EmbeddingCheck, check_texts, simulated_tokens, simulated_vector
from toolglot.simulator.replies.wordings import too_long
from toolglot.simulator.scripts.plan import PlannedCall, ReplyPlan

_NAME: Final = "openai_chat"
_OPENAI: Final = "openai"
_DONE: Final = b"data: [DONE]\n\n"


# --- the prompt cache -------------------------------------------------------------------------------

_SECTIONS: Final[dict[Any, Section]] = {"system": "system", "developer": "system", "tool": "results"}


def _prompt_blocks(body: Fields) -> list[PromptBlock]:
    """Tools, the schema of the output, messages. A part of the content is a block; the rest of a message is one too."""
    blocks = [marked_block("tools", tool) for _, tool in objects(body.get("tools"))]
    blocks += [plain_block("tools", form) for form in as_list(body.get("response_format"))]
    for _, message in objects(body.get("messages")):
        section = _SECTIONS.get(message.get("role"), "messages")
        parts = [
            part if isinstance(part, dict) else {"type": "text", "text": part}
            for part in as_list(message.get("content"))
        ]
        rest = {key: value for key, value in message.items() if key != "content"}
        whole = marked_block(section, rest)
        blocks.append(replace(whole, marker=None) if parts else whole)
        blocks += [marked_block(section, part) for part in parts]
        if whole.marker is not None and parts:
            blocks[-1] = replace(blocks[-1], marker=whole.marker)
    return blocks


# --- replies ----------------------------------------------------------------------------------------


def _reply_id(request: AcceptedRequest) -> str:
    if request.provider in ("mistral", "deepseek"):
        return hexadecimal(request.id_seed, "reply", 32)
    return f"chatcmpl-{letters(request.id_seed, 'reply', 29)}"


def _content(request: AcceptedRequest, plan: ReplyPlan) -> Any:
    if plan.thinking and request.profile.reasoning.carrier == "thinking_chunks":
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": plan.thinking}]}
        return [thought, {"type": "text", "text": plan.text}] if plan.text else [thought]
    if plan.thinking and request.profile.reasoning.carrier == "think_tags":
        return f"<think>\n{plan.thinking}\n</think>\n\n{plan.text}"
    return plan.text or (None if plan.calls and request.provider not in ("mistral", "deepseek") else "")


def _call(request: AcceptedRequest, index: int, call: PlannedCall) -> Fields:
    id = call_id(request, index, call.name)
    if call.is_custom:
        return {"id": id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    fields: Fields = {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
    return fields if request.provider == _OPENAI else {**fields, "index": index}


def _usage(request: AcceptedRequest, plan: ReplyPlan) -> Fields:
    usage = plan.usage
    counts: Fields = {"prompt_tokens": usage.input_tokens or 0, "completion_tokens": usage.output_tokens or 0}
    counts["total_tokens"] = sum(counts.values())
    if request.provider == "mistral":
        if usage.cache_read_tokens:
            counts["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens}
    else:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens or 0}
        counts |= _cached_beside(request.provider, usage)
        if usage.cache_write_tokens:
            counts["prompt_tokens_details"]["cache_write_tokens"] = usage.cache_write_tokens
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens or 0}
    return counts


def _cached_beside(provider: str, usage: Usage) -> Fields:
    """The fields of their own in which DeepSeek and Moonshot count cached tokens."""
    read = usage.cache_read_tokens or 0
    if provider == "deepseek":
        return {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": (usage.input_tokens or 0) - read}
    return {"cached_tokens": read} if provider == "kimi" and read else {}


def _clear_ids(body: Fields) -> None:
    for call in body["choices"][0]["message"]["tool_calls"]:
        call["id"] = ""


# --- the chunks of a stream -------------------------------------------------------------------------


def _move_usage_to_end(chunks: list[Fields]) -> list[Fields]:
    """Put the usage into the chunk with the finish reason."""
    last = chunks[-1] if chunks else {}
    if len(chunks) < 2 or last.get("choices") or not last.get("usage"):
        return chunks
    return [*chunks[:-2], {**chunks[-2], "usage": last["usage"]}]


def _join_calls(chunks: list[Fields]) -> list[Fields]:
    """Put all calls, whole, into the chunk with the finish reason."""
    whole: dict[int, Fields] = {}
    kept: list[Fields] = []
    for chunk in chunks:
        pieces = _delta(chunk).pop("tool_calls", None) or ()
        for piece in pieces:
            _add(whole.setdefault(piece["index"], {}), piece)
        if not pieces or _delta(chunk).get("content") or _finish_reason(chunk):
            kept.append(chunk)
    if whole and kept:
        _delta(kept[-1])["tool_calls"] = list(whole.values())
    return kept


def _delta(chunk: Fields) -> Fields:
    choices = chunk.get("choices")
    found: Fields = choices[0]["delta"] if choices else {}
    return found


def _finish_reason(chunk: Fields) -> Any:
    choices = chunk.get("choices")
    return choices[0].get("finish_reason") if choices else None


def _add(call: Fields, piece: Fields) -> None:
    function = call.get("function", {})
    text = function.get("arguments", "") + (piece.get("function", {}).get("arguments") or "")
    call.update({key: value for key, value in piece.items() if key != "function" and value is not None})
    call["function"] = {**function, **(piece.get("function") or {}), "arguments": text}


# --- the faults of a stream -------------------------------------------------------------------------


def _apply_fault(chunks: list[Fields], fault: Fault | None) -> None:
    """Change the calls of the chunks as a careless server writes them."""
    edit = _CHUNK_FAULTS.get(fault.name) if fault is not None else None
    if edit is not None:
        known: dict[int, Fields] = {}
        for call in _calls_in(chunks):
            edit(call, known.setdefault(call.get("index", 0), {}))


def _calls_in(chunks: Iterable[Fields]) -> Iterator[Fields]:
    """Every piece of a call."""
    for chunk in chunks:
        for choice in chunk.get("choices") or ():
            yield from choice.get("delta", {}).get("tool_calls") or ()


def _zero_index(call: Fields, _known: Fields) -> None:
    call["index"] = 0


def _drop_index(call: Fields, _known: Fields) -> None:
    call.pop("index", None)


def _clear_id(call: Fields, _known: Fields) -> None:
    call["id"] = ""


def _repeat_name(call: Fields, known: Fields) -> None:
    function = call.setdefault("function", {})
    known.update({"id": call["id"], "name": function["name"]} if call.get("id") else {})
    call["id"], function["name"] = known.get("id"), known.get("name")


_CHUNK_FAULTS: Final[dict[str, Callable[[Fields, Fields], None]]] = {
    "index_zero": _zero_index,
    "no_index": _drop_index,
    "empty_ids": _clear_id,
    "repeated_names": _repeat_name,
}


class _Chat(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"(?:/v1)?/chat/completions", _NAME),
        SimulatedRoute(r"(?:/v1)?/embeddings", _NAME, "embed"),
        SimulatedRoute(r"(?:/v1)?/models", _NAME, "models", "GET"),
        SimulatedRoute(r"(?:/v1)?/models/(?P<model>.+)", _NAME, "model", "GET"),
    )
    stop_reasons = {
        "stop": "stop",
        "tool_calls": "tool_calls",
        "length": "length",
        "filter": "content_filter",
        "pause": "stop",
        "error": "error",
    }
    wordings = {(_OPENAI, "ids.max_length"): too_long, (_OPENAI, "names.max_length"): too_long}
    codes = {
        (_OPENAI, "ids.max_length"): "string_above_max_length",
        (_OPENAI, "names.max_length"): "string_above_max_length",
        (_OPENAI, "tools.max_count"): "array_above_max_length",
    }
    body_faults = {"empty_ids": _clear_ids}
    has_chat_faults = True

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        return _prompt_blocks(body)

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request = context.request
        message: Fields = {"role": "assistant", "content": _content(request, plan)}
        if request.provider == _OPENAI:
            message |= {"refusal": None, "annotations": []}
        carrier = request.profile.reasoning.carrier
        if plan.thinking and carrier not in ("thinking_chunks", "think_tags"):
            message["reasoning_content" if carrier == "reasoning_content" else "reasoning"] = plan.thinking
        if plan.calls:
            message["tool_calls"] = [_call(request, index, call) for index, call in enumerate(plan.calls)]
        choice: Fields = {"index": 0, "message": message, "finish_reason": self.stop_reasons[plan.stop]}
        body: Fields = {
            "id": _reply_id(request),
            "object": "chat.completion",
            "created": context.now,
            "model": request.model,
            "choices": [choice],
            "usage": _usage(request, plan),
        }
        if request.provider == _OPENAI:
            choice["logprobs"] = None
            fingerprint = f"fp_{hexadecimal(request.model, 'system', 10)}"
            body |= {"service_tier": "default", "system_fingerprint": fingerprint}
        return body

    def stream_frames(self, job: StreamJob) -> list[bytes]:
        data = [frame.data for frame in encoder_frames(job)]
        chunks: list[Fields] = [msgspec.json.decode(item) for item in data if item != b"[DONE]" and item]
        if job.style.usage_at_end:
            chunks = _move_usage_to_end(chunks)
        if job.style.whole_calls:
            chunks = _join_calls(chunks)
        _apply_fault(chunks, job.fault)
        return [*map(sse_event, chunks), *([_DONE] if b"[DONE]" in data else [])]

    def not_embedding(self, model: str) -> Refusal:
        message = "You are not allowed to generate embeddings from this model"
        return Refusal(kind="bad_request", message=message, status=403)

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        size_field = profile.embeddings.dimensions_field
        check = EmbeddingCheck(fields={*_EMBEDDING_FIELDS, size_field}, required=("model", "input"))
        refusal = check.refusal(body)
        if refusal is not None:
            return refusal
        inputs = body["input"]
        if "tokens" in profile.embeddings.settings:
            inputs = _token_texts(inputs)
        texts = [inputs] if isinstance(inputs, str) else inputs
        refusal = check_texts(texts, profile.embeddings.max_inputs, "input")
        if refusal is not None:
            return refusal
        vectors: list[Any] = [simulated_vector(text, body.get(size_field)) for text in texts]
        if body.get("encoding_format") == "base64":
            packed = [struct.pack(f"<{len(vector)}f", *vector) for vector in vectors]
            vectors = [base64.b64encode(floats).decode() for floats in packed]
        tokens = simulated_tokens(texts)
        return {
            "id": hexadecimal("embedding", str(body["model"])[:200], 32),  # hosts have one, OpenAI has none
            "object": "list",
            "data": [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)],
            "model": body["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }


_EMBEDDING_FIELDS: Final = ("model", "input", "encoding_format", "user", "metadata", "output_dtype")


def _token_texts(inputs: Any) -> Any:
    """Inputs with the ids of tokens as texts, one for each list of ids."""
    if isinstance(inputs, list) and inputs and all(type(item) is int for item in inputs):
        return str(inputs)
    if not isinstance(inputs, list):
        return inputs
    return [str(item) if isinstance(item, list) and item else item for item in inputs]


SIMULATED: Final = _Chat()

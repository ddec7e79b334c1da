"""Gemini's generateContent, as the simulator serves it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.prompt_cache import PromptBlock, as_list, plain_block
from toolglot.simulator.protocols.base import (
    ReplyContext,
    SimulatedProtocol,
    SimulatedRoute,
    objects,
    returned_refusal,
)
from toolglot.simulator.replies.ids import hexadecimal
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer, digest
from toolglot.simulator.replies.streams import StreamJob, sse_event
from toolglot.simulator.replies.vectors import MAX_INPUTS, EmbeddingCheck, refused, simulated_tokens, simulated_vector
from toolglot.simulator.replies.wordings import first_field, path_of
from toolglot.simulator.scripts.plan import ReplyPlan, SimulatedPage

_NAME: Final = "gemini"
_MODEL: Final = r"/v1(?:beta|alpha)?/models/(?P<model>[^:]+)"
SKIPPED: Final = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Placeholders that Gemini accepts instead of a signature."""


# --- signatures that come back ----------------------------------------------------------------------


def _signed_content(part: Fields) -> Any:
    """What a thought signature signs: its part without the signature."""
    call = part.get("functionCall") or part.get("function_call")
    if isinstance(call, dict):
        return [call.get("name"), call.get("args") or {}]
    return part.get("text")


def _is_prompt(content: Fields) -> bool:
    """Whether the user speaks: the current turn begins with the last prompt."""
    parts = [part for _, part in objects(content.get("parts"))]
    has_results = any("functionResponse" in part or "function_response" in part for part in parts)
    return content.get("role") in (None, "user") and bool(parts) and not has_results


def _check_signature(text: str, part: Fields, model: str, signer: Signer) -> str | None:
    if text in SKIPPED or _decode_placeholder(text) in SKIPPED:
        return None
    signature = signer.read("thought", text)
    if signature is None:
        return "Corrupted thought signature."
    is_own = signature.model == digest(model) and signature.content == digest(_signed_content(part))
    return None if is_own else "Invalid thought signature."


def _decode_placeholder(signature: str) -> str:
    try:
        return base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


# --- error messages ---------------------------------------------------------------------------------


def _missing_signature(part: Any, violation: Violation) -> str:
    call = first_field(part, "functionCall", "function_call")
    position = int((re.findall(r"\d+", violation.path) or ["0"])[0]) + 1
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{first_field(call, 'name')}` , position {position}."
    )


def _unknown_keyword(_value: Any, violation: Violation) -> str:
    """A keyword of a schema that Gemini does not know. The path is that of the schema."""
    return _unknown_name(path_of(violation), violation.message)


def _unknown_field(_value: Any, violation: Violation) -> str:
    return _unknown_name(re.sub(r"(?:^\w+|\.\w+|\['[^']*'\])$", "", path_of(violation)), violation.message)


def _unknown_name(parent: str, message: str) -> str:
    """Gemini names the object that has the unknown field, in snake case."""
    snake = re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", parent)
    where = f" at '{snake}'" if snake else ""
    return re.sub(r"(?: at '[^']*')?(?: …)?(?=: Cannot find field)", lambda _: where, message, count=1)


# --- faults -----------------------------------------------------------------------------------------


def _drop_last_part(body: Fields) -> None:
    body["candidates"][0]["content"]["parts"].pop()


def _end_malformed(body: Fields) -> None:
    candidate = body["candidates"][0]
    candidate["content"] = {"parts": [], "role": "model"}
    candidate |= {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call"}


def _grounding(plan: ReplyPlan) -> Fields:
    page = SimulatedPage(plan.search)
    segment = {"startIndex": 0, "endIndex": len(plan.text.encode()), "text": plan.text}
    return {
        "webSearchQueries": [plan.search],
        "groundingChunks": [{"web": {"uri": page.url, "title": page.title}}],
        "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
    }


class _Gemini(SimulatedProtocol):
    routes = (
        SimulatedRoute(rf"{_MODEL}:generateContent", _NAME),
        SimulatedRoute(rf"{_MODEL}:(?P<stream>streamGenerateContent)", _NAME),
        SimulatedRoute(rf"{_MODEL}:(?:embedContent|batchEmbedContents|predict)", _NAME, "embed"),
        SimulatedRoute(rf"{_MODEL}:countTokens", _NAME, "count"),
        SimulatedRoute(r"/v1(?:beta|alpha)?/models", _NAME, "models", "GET"),
        SimulatedRoute(_MODEL, _NAME, "model", "GET"),
    )
    stop_reasons = {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "filter": "SAFETY",
        "pause": "STOP",
        "error": "OTHER",
    }
    wordings = {
        (_NAME, "reasoning.placeholder_on"): _missing_signature,
        (_NAME, "schema.keywords"): _unknown_keyword,
        (_NAME, "schema.refused"): _unknown_keyword,
        (_NAME, "request.unknown_fields"): _unknown_field,
    }
    body_faults = {"truncated_call": _drop_last_part, "malformed_arguments": _end_malformed}
    names_param = False

    def check_returned(
        self, body: Fields, profile: Profile, signer: Signer, headers: Mapping[str, str]
    ) -> Refusal | None:
        contents = list(objects(body.get("contents")))
        start = max((index for index, content in contents if _is_prompt(content)), default=-1)
        for index, content in contents:
            for at, part in objects(content.get("parts")) if index > start else ():
                signature = part.get("thoughtSignature") or part.get("thought_signature")
                if not isinstance(signature, str):
                    continue
                problem = _check_signature(signature, part, profile.model, signer)
                if problem is not None:
                    return returned_refusal(problem, f"contents[{index}].parts[{at}].thoughtSignature")
        return None

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        instruction = body.get("systemInstruction") or body.get("system_instruction")
        blocks = [plain_block("system", part) for part in as_list(instruction)]
        blocks += [plain_block("tools", tool) for tool in as_list(body.get("tools"))]
        return [*blocks, *(plain_block("messages", content) for content in as_list(body.get("contents")))]

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, usage = context.request, plan.usage
        parts: list[Fields] = []
        if plan.thinking and request.wants_summary:
            parts.append({"text": plan.thinking, "thought": True})
        if plan.text:
            parts.append({"text": plan.text})
        for index, call in enumerate(plan.calls):
            part: Fields = {"functionCall": {"name": call.name, "args": call.input}}
            if index == 0 and (plan.thinking or request.profile.reasoning.placeholder_on == "first_call"):
                signature = context.signer.sign("thought", model=request.model, content=_signed_content(part))
                part["thoughtSignature"] = signature
            parts.append(part)
        thought = usage.reasoning_tokens or 0
        written = (usage.output_tokens or 0) - thought
        counts = {"promptTokenCount": usage.input_tokens or 0, "candidatesTokenCount": written}
        if thought:
            counts["thoughtsTokenCount"] = thought
        total = sum(counts.values())
        if usage.cache_read_tokens:
            counts["cachedContentTokenCount"] = usage.cache_read_tokens
        content = {"parts": parts, "role": "model"}
        candidate: Fields = {"content": content, "finishReason": self.stop_reasons[plan.stop], "index": 0}
        if plan.search:
            candidate["groundingMetadata"] = _grounding(plan)
        return {
            "candidates": [candidate],
            "usageMetadata": {**counts, "totalTokenCount": total},
            "modelVersion": request.model,
            "responseId": hexadecimal(request.id_seed, "reply", 22),
        }

    def stream_frames(self, job: StreamJob) -> list[bytes]:
        return [sse_event(job.body)] if job.has_malformed_arguments else super().stream_frames(job)

    def array_frames(self, frames: list[bytes], query: Mapping[str, str]) -> list[bytes] | None:
        """For clients that do not request server-sent events: one array, with an entry for each event."""
        if query.get("alt") == "sse":
            return None
        entries = [frame.removeprefix(b"data: ").rstrip() for frame in frames]
        return [*((b",\r\n" if index else b"[") + entry for index, entry in enumerate(entries)), b"]"]

    def model_entry(self, name: str, now: int) -> Fields:
        methods = ["generateContent", "countTokens"]
        return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"models": entries}

    def token_count(self, count: int) -> Fields:
        return {"totalTokens": count}

    def not_embedding(self, model: str) -> Refusal:
        message = f"models/{model} is not found for API version v1beta, or is not supported for embedContent."
        return Refusal(kind="not_found", message=f"{message} Call ListModels to see the models and their methods.")

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        is_batch = "requests" in body
        requests = body["requests"] if is_batch else [body]
        if not isinstance(requests, list) or not requests:
            return refused("requests: expected a list with at least one request")
        if len(requests) > (profile.embeddings.max_inputs or MAX_INPUTS):
            return refused(
                f"BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch: {len(requests)}"
            )
        vectors, texts = [], []
        for index, request in enumerate(requests):
            where = f"requests[{index}]"
            if not isinstance(request, dict):
                return refused(f"Invalid value at '{where}'")
            refusal = _EMBEDDING.refusal(request)
            if refusal is not None:
                return refusal
            if is_batch and request.get("model") != f"models/{profile.model}":
                return refused(f"{where}.model: must match the model of the batch request")
            if request.get("taskType") is not None and request["taskType"] not in _EMBEDDING_TASKS:
                return refused(f"Invalid value at '{where}.task_type': {request['taskType']!r}"[:200])
            content = request["content"]
            parts = content.get("parts") if isinstance(content, dict) else None
            found = [part.get("text") for part in parts or [] if isinstance(part, dict)]
            text = "".join(str(words) for words in found if words)
            if not text or not all(isinstance(words, str) for words in found):
                return refused(f"{where}.content: must not be empty")
            texts.append(text)
            vectors.append({"values": simulated_vector(text, request.get("outputDimensionality"))})
        tokens = simulated_tokens(texts)
        usage = {"usageMetadata": {"promptTokenCount": tokens, "totalTokenCount": tokens}}
        return {"embeddings": vectors, **usage} if is_batch else {"embedding": vectors[0], **usage}


_EMBEDDING: Final = EmbeddingCheck(
    fields=("model", "content", "taskType", "title", "outputDimensionality"),
    required=("content",),
    unknown='Invalid JSON payload received. Unknown name "{name}": Cannot find field.',
    missing="{name}: is required",
)
_EMBEDDING_TASKS: Final = (
    "RETRIEVAL_QUERY",
    "RETRIEVAL_DOCUMENT",
    "SEMANTIC_SIMILARITY",
    "CLASSIFICATION",
    "CLUSTERING",
    "QUESTION_ANSWERING",
    "FACT_VERIFICATION",
    "CODE_RETRIEVAL_QUERY",
)


SIMULATED: Final = _Gemini()

"""Bedrock's Converse, as the simulator serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation
from toolglot.simulator.prompt_cache import PromptBlock, Section, as_list, in_message, plain_block, ttl_of
from toolglot.simulator.protocols import cohere
from toolglot.simulator.protocols.base import (
    BOUND_ELSEWHERE,
    ReplyContext,
    SimulatedProtocol,
    SimulatedRoute,
    objects,
    returned_refusal,
)
from toolglot.simulator.replies.ids import call_id
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.signatures import Signer, digest
from toolglot.simulator.replies.vectors import EmbeddingCheck, check_texts, refused, simulated_tokens, simulated_vector
from toolglot.simulator.scripts.plan import ReplyPlan, uncached_tokens

_NAME: Final = "bedrock"
_PURPOSE: Final = "bedrock thinking"


def _prefix(body: Fields, end: int) -> Any:
    """What thinking of Claude on Bedrock can be bound to."""
    messages = body.get("messages")
    return [body.get("system"), body.get("toolConfig"), messages[:end] if isinstance(messages, list) else []]


def _check_reasoning(reasoning: Any, prefix: Any, profile: Profile, signer: Signer) -> str | None:
    if not isinstance(reasoning, dict):
        return None
    signature = signer.read(_PURPOSE, str(reasoning.get("signature")))
    if signature is None or signature.content != digest(reasoning.get("text")):
        return "Invalid `signature` in `thinking` block"
    is_bound = "prefix" in profile.reasoning.bound_to and signature.model == digest(profile.model)
    return BOUND_ELSEWHERE if is_bound and signature.prefix != digest(prefix) else None


def _add_blocks(blocks: list[PromptBlock], section: Section, items: Any, context: str = "") -> None:
    """Add content; a `cachePoint` marks the block before it."""
    for item in as_list(items):
        if isinstance(item, dict) and item.get("cachePoint") is not None:
            if blocks:
                blocks[-1] = replace(blocks[-1], marker=ttl_of(item["cachePoint"]))
        else:
            is_result = isinstance(item, dict) and "toolResult" in item
            blocks.append(plain_block("results" if is_result else section, item, context))


def _next_message(_message: Any, violation: Violation) -> str:
    """Bedrock names the message that lacks the results, not the one that calls."""
    return re.sub(r"(?<=at messages\.)\d+", lambda index: str(int(index[0]) + 1), violation.message)


def _end_malformed(body: Fields) -> None:
    body["output"]["message"]["content"].pop()
    body["stopReason"] = "malformed_tool_use"


class _Bedrock(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"/model/(?P<model>.+)/converse", _NAME),
        SimulatedRoute(r"/model/(?P<model>.+)/(?P<stream>converse-stream)", _NAME),
        SimulatedRoute(r"/model/(?P<model>.*embed.*)/invoke", _NAME, "embed"),
        SimulatedRoute(r"/model/(?P<model>.+)/count-tokens", _NAME, "count"),
    )
    stop_reasons = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "filter": "content_filtered",
        "pause": "end_turn",
        "error": "malformed_model_output",
    }
    wordings = {(_NAME, "results.complete"): _next_message, (_NAME, "results.adjacent"): _next_message}
    body_faults = {"malformed_arguments": _end_malformed}

    def check_returned(
        self, body: Fields, profile: Profile, signer: Signer, headers: Mapping[str, str]
    ) -> Refusal | None:
        for index, message in objects(body.get("messages")):
            for at, block in objects(message.get("content")):
                reasoning = block.get("reasoningContent")
                shown = reasoning.get("reasoningText") if isinstance(reasoning, dict) else None
                problem = _check_reasoning(shown, _prefix(body, index), profile, signer)
                if problem is not None:
                    where = f"messages.{index}.content.{at}"
                    return returned_refusal(f"The model returned the following errors: {where}: {problem}")
        return None

    def prompt_blocks(self, body: Fields) -> list[PromptBlock]:
        blocks: list[PromptBlock] = []
        config, more = body.get("toolConfig") or {}, body.get("additionalModelRequestFields")
        _add_blocks(blocks, "tools", config.get("tools"))
        _add_blocks(blocks, "system", body.get("system"))
        thinking = more.get("thinking") if isinstance(more, dict) else None
        settings = digest([config.get("toolChoice"), thinking]).hex()
        for _, message in objects(body.get("messages")):
            first = len(blocks)
            _add_blocks(blocks, "messages", message.get("content"), f"{message.get('role')} {settings}")
            blocks[first:] = in_message(message, blocks[first:])
        return blocks

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, usage = context.request, plan.usage
        content: list[Fields] = []
        if plan.thinking:
            prefix = _prefix(request.body, len(request.body["messages"]))
            signature = context.signer.sign(_PURPOSE, model=request.model, content=plan.thinking, prefix=prefix)
            content.append({"reasoningContent": {"reasoningText": {"text": plan.thinking, "signature": signature}}})
        if plan.text:
            content.append({"text": plan.text})
        for index, call in enumerate(plan.calls):
            id = call_id(request, index, call.name, "tooluse_", 22)
            content.append({"toolUse": {"toolUseId": id, "name": call.name, "input": call.input}})
        read, written = usage.input_tokens or 0, usage.output_tokens or 0
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self.stop_reasons[plan.stop],
            "usage": {
                "inputTokens": uncached_tokens(usage),
                "outputTokens": written,
                "totalTokens": read + written,
                "cacheReadInputTokens": usage.cache_read_tokens or 0,
                "cacheWriteInputTokens": usage.cache_write_tokens or 0,
            },
            "metrics": {"latencyMs": 1},
        }

    def token_count(self, count: int) -> Fields:
        return {"inputTokens": count}

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        if profile.embeddings.form == "cohere":
            return cohere.embeddings_of(body, profile)
        if profile.embeddings.form == "nova":
            return _nova_embedding(body)
        fields = ("inputText", "dimensions", "normalize", "embeddingTypes") if profile.embeddings.settings else ()
        malformed = "Malformed input request: #: extraneous key [{name}] is not permitted, please reformat your input"
        check = EmbeddingCheck(
            fields=fields or ("inputText",),
            required=("inputText",),
            unknown=malformed,
            missing="Malformed input request: #: required key [{name}] not found, please reformat your input",
        )
        refusal = check.refusal(body) or check_texts([body["inputText"]], 1, "inputText")
        if refusal is not None:
            return refusal
        vector = simulated_vector(body["inputText"], body.get("dimensions"))
        tokens = simulated_tokens([body["inputText"]])
        return {"embedding": vector, "inputTextTokenCount": tokens, "embeddingsByType": {"float": vector}}


_PURPOSES: Final = ("GENERIC_INDEX", "GENERIC_RETRIEVAL", "TEXT_RETRIEVAL", "CLASSIFICATION", "CLUSTERING")


def _nova_embedding(body: Fields) -> Fields | Refusal:
    parameters = body.get("singleEmbeddingParams")
    text = parameters.get("text") if isinstance(parameters, dict) else None
    if body.get("taskType") != "SINGLE_EMBEDDING" or not isinstance(parameters, dict) or not isinstance(text, dict):
        return refused("Malformed input request: expected taskType SINGLE_EMBEDDING and singleEmbeddingParams.text")
    if parameters.get("embeddingPurpose") not in _PURPOSES or text.get("truncationMode") not in (
        "NONE",
        "START",
        "END",
    ):
        return refused("Malformed input request: embeddingPurpose and text.truncationMode are required")
    value = text.get("value")
    if not isinstance(value, str) or not value:
        return refused("Malformed input request: text.value is required")
    vector = simulated_vector(value, parameters.get("embeddingDimension"))
    return {
        "embeddings": [{"embeddingType": "TEXT", "embedding": vector}],
        "inputTextTokenCount": simulated_tokens([value]),
    }


SIMULATED: Final = _Bedrock()

"""Cohere's Chat v2, as the simulator serves it."""

from __future__ import annotations

from typing import Final

from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.protocols.base import ReplyContext, SimulatedProtocol, SimulatedRoute
from toolglot.simulator.replies.ids import hexadecimal, letters
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.vectors import EmbeddingCheck, check_texts, refused, simulated_tokens, simulated_vector
from toolglot.simulator.scripts.plan import ReplyPlan

_NAME: Final = "cohere"


class _Cohere(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"/v2/chat", _NAME),
        SimulatedRoute(r"/v2/embed", _NAME, "embed"),
        SimulatedRoute(r"/v1/models", _NAME, "models", "GET"),
    )
    stop_reasons = {
        "stop": "COMPLETE",
        "tool_calls": "TOOL_CALL",
        "length": "MAX_TOKENS",
        "filter": "ERROR",
        "pause": "COMPLETE",
        "error": "ERROR",
    }

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, usage = context.request, plan.usage
        message: Fields = {"role": "assistant"}
        content: list[Fields] = [{"type": "thinking", "thinking": plan.thinking}] if plan.thinking else []
        if plan.calls:
            message["tool_plan"] = plan.text or f"I will use {plan.calls[0].name}."
            message["tool_calls"] = [
                {
                    "id": f"{call.name}_{letters(request.id_seed, f'call {index}', 12)}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.text},
                }
                for index, call in enumerate(plan.calls)
            ]
        elif plan.text:
            content.append({"type": "text", "text": plan.text})
        if content:
            message["content"] = content
        cached = {"cached_tokens": usage.cache_read_tokens} if usage.cache_read_tokens else {}
        counts = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
        return {
            "id": hexadecimal(request.id_seed, "reply", 32),
            "finish_reason": self.stop_reasons[plan.stop],
            "message": message,
            "usage": {"billed_units": dict(counts), "tokens": counts, **cached},
        }

    def model_entry(self, name: str, now: int) -> Fields:
        return {"name": name, "endpoints": ["chat"]}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"models": entries}

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        if body.get("model") is None:
            return refused("model is required", "model")
        return embeddings_of({key: value for key, value in body.items() if key != "model"}, profile)


_EMBEDDING: Final = EmbeddingCheck(
    fields=(
        *("texts", "images", "inputs", "input_type", "embedding_types", "output_dimension", "truncate"),
        *("max_tokens", "priority"),
    ),
    required=("texts", "input_type"),
    unknown="unknown field: parameter '{name}' is not a valid field",
    missing="{name} must be provided",
)
_INPUT_TYPES: Final = ("search_query", "search_document", "classification", "clustering", "image")


def embeddings_of(body: Fields, profile: Profile) -> Fields | Refusal:
    """The reply to a body without the model, which is how Cohere's models are called on Bedrock."""
    refusal = _EMBEDDING.refusal(body)
    if refusal is None:
        refusal = check_texts(body["texts"], profile.embeddings.max_inputs, "texts", too_many="too many texts")
    if refusal is not None:
        return refusal
    if body["input_type"] not in _INPUT_TYPES:
        return refused("invalid input_type: must be one of " + ", ".join(_INPUT_TYPES))
    texts = body["texts"]
    vectors = [simulated_vector(text, body.get("output_dimension")) for text in texts]
    types = body.get("embedding_types")
    return {
        "id": hexadecimal("embedding", "".join(texts)[:200], 32),
        "response_type": "embeddings_by_type" if types else "embeddings_floats",
        "embeddings": {"float": vectors} if types else vectors,
        "texts": texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": simulated_tokens(texts)}},
    }


SIMULATED: Final = _Cohere()

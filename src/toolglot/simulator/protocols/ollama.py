"""Ollama's chat, as the simulator serves it."""

from __future__ import annotations

import datetime
from typing import Final

from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.protocols.base import ReplyContext, SimulatedProtocol, SimulatedRoute
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.replies.ids import call_id
from toolglot.simulator.replies.refusals import Refusal
from toolglot.simulator.replies.vectors import check_texts, refused, simulated_tokens, simulated_vector
from toolglot.simulator.scripts.plan import ReplyPlan

_NAME: Final = "ollama"
_MODIFIED: Final = "2026-01-31T00:00:00Z"


def _drop_last_call(body: Fields) -> None:
    body["message"]["tool_calls"].pop()


class _Ollama(SimulatedProtocol):
    routes = (
        SimulatedRoute(r"/api/chat", _NAME),
        SimulatedRoute(r"/api/(?:embed|embeddings)", _NAME, "embed"),
        SimulatedRoute(r"/api/tags", _NAME, "models", "GET"),
        SimulatedRoute(r"/api/version", _NAME, "version", "GET"),
        SimulatedRoute(r"/api/show", _NAME, "show"),
    )
    stop_reasons = {
        "stop": "stop",
        "tool_calls": "stop",
        "length": "length",
        "filter": "stop",
        "pause": "stop",
        "error": "stop",
    }
    body_faults = {"truncated_call": _drop_last_call, "malformed_arguments": _drop_last_call}
    pages = {
        "version": {"version": "0.12.6"},
        "show": {"capabilities": ["completion", "tools", "thinking"], "details": {"family": "simulated"}},
    }

    def check_plan(self, plan: ReplyPlan, fault: Fault | None) -> Refusal | None:
        if fault is None or fault.name != "malformed_arguments" or not plan.calls:
            return None
        message = f"error parsing tool call: raw='{plan.calls[-1].text}', err=invalid character"
        return Refusal(kind="server", message=message)

    def reply_body(self, context: ReplyContext, plan: ReplyPlan) -> Fields:
        request, usage = context.request, plan.usage
        message: Fields = {"role": "assistant", "content": plan.text}
        if plan.thinking:
            message["thinking"] = plan.thinking
        if plan.calls:
            message["tool_calls"] = [
                {
                    "id": call_id(request, index, call.name, "call_", 8),
                    "function": {"index": index, "name": call.name, "arguments": call.input},
                }
                for index, call in enumerate(plan.calls)
            ]
        created = datetime.datetime.fromtimestamp(context.now, datetime.UTC)
        return {
            "model": request.model,
            "created_at": created.isoformat().replace("+00:00", "Z"),
            "message": message,
            "done": True,
            "done_reason": self.stop_reasons[plan.stop],
            "total_duration": 1_000_000,
            "load_duration": 1_000,
            "prompt_eval_count": usage.input_tokens or 0,
            "prompt_eval_duration": 1_000,
            "eval_count": usage.output_tokens or 0,
            "eval_duration": 1_000,
        }

    def model_entry(self, name: str, now: int) -> Fields:
        return {"name": name, "model": name, "modified_at": _MODIFIED, "size": 1, "digest": "0" * 64}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"models": entries}

    def embeddings(self, body: Fields, profile: Profile) -> Fields | Refusal:
        if not body.get("model"):
            return refused("model is required")
        if "prompt" in body:
            return {"embedding": simulated_vector(str(body["prompt"]))}
        inputs = body.get("input")
        texts = [inputs] if isinstance(inputs, str) else inputs
        refusal = check_texts(texts, None, "input")
        if refusal is not None:
            return refusal
        vectors = [simulated_vector(text, body.get("dimensions")) for text in texts or []]
        tokens = simulated_tokens(texts or [])
        return {
            "model": body["model"],
            "embeddings": vectors,
            "total_duration": 1_000_000,
            "load_duration": 1_000,
            "prompt_eval_count": tokens,
        }


SIMULATED: Final = _Ollama()

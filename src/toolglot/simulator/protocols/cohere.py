"""Cohere's Chat v2, as the simulator serves it."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.protocols.base import ReplyContext, SimulatedProtocol, SimulatedRoute
from toolglot.simulator.replies.ids import hexadecimal, letters
from toolglot.simulator.scripts.plan import ReplyPlan

_NAME: Final = "cohere"


class _Cohere(SimulatedProtocol):
    routes = (SimulatedRoute(r"/v2/chat", _NAME), SimulatedRoute(r"/v1/models", _NAME, "models", "GET"))
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
        counts = {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
        return {
            "id": hexadecimal(request.id_seed, "reply", 32),
            "finish_reason": self.stop_reasons[plan.stop],
            "message": message,
            "usage": {"billed_units": dict(counts), "tokens": counts},
        }

    def model_entry(self, name: str, now: int) -> Fields:
        return {"name": name, "endpoints": ["chat"]}

    def model_list(self, entries: list[Fields]) -> Fields:
        return {"models": entries}


SIMULATED: Final = _Cohere()

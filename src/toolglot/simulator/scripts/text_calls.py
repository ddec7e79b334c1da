"""Tool calls as models write them in text, for the fault `text_dialect`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from toolglot.jsontext import compact


class TextCall(Protocol):
    """What the text of a call needs."""

    @property
    def name(self) -> str: ...

    @property
    def input(self) -> dict[str, Any]: ...


Dialect = Callable[[Iterable[TextCall]], str]


def _hermes(calls: Iterable[TextCall]) -> str:
    each = ({"name": call.name, "arguments": call.input} for call in calls)
    return "\n".join(f"<tool_call>\n{compact(fields)}\n</tool_call>" for fields in each)


def _llama3(calls: Iterable[TextCall]) -> str:
    each = ({"name": call.name, "parameters": call.input} for call in calls)
    return "; ".join(f"<|python_tag|>{compact(fields)}" for fields in each)


def _mistral(calls: Iterable[TextCall]) -> str:
    return "".join(f"[TOOL_CALLS]{call.name}[ARGS]{compact(call.input)}" for call in calls)


def _qwen_coder(calls: Iterable[TextCall]) -> str:
    return "\n".join(
        f"<tool_call>\n<function={call.name}>\n{_parameters(call)}</function>\n</tool_call>" for call in calls
    )


def _parameters(call: TextCall) -> str:
    texts = ((key, value if isinstance(value, str) else compact(value)) for key, value in call.input.items())
    return "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in texts)


def _kimi(calls: Iterable[TextCall]) -> str:
    each = (
        f"<|tool_call_begin|>functions.{call.name}:{index}<|tool_call_argument_begin|>{compact(call.input)}"
        "<|tool_call_end|>"
        for index, call in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{''.join(each)}<|tool_calls_section_end|>"


def _deepseek(calls: Iterable[TextCall]) -> str:
    each = (f"{_mark('call▁begin')}{call.name}{_mark('sep')}{compact(call.input)}{_mark('call▁end')}" for call in calls)
    return f"{_mark('calls▁begin')}{''.join(each)}{_mark('calls▁end')}"


def _mark(name: str) -> str:
    """A special token of DeepSeek's, between bars of full width."""
    return f"<\uff5ctool▁{name}\uff5c>"


DIALECTS: Final[dict[str, Dialect]] = {
    "hermes": _hermes,
    "llama3_json": _llama3,
    "mistral": _mistral,
    "qwen3_coder": _qwen_coder,
    "kimi_k2": _kimi,
    "deepseek_v31": _deepseek,
}
"""Ways in which a model writes its calls as text."""

"""Dialects: the ways in which models write tool calls as text.

    toolglot.dialects.names()                                  # 'anthropic_json', …, 'hermes', …
    toolglot.parse_text(answer, dialect="auto", tools=tools)

Most programs never see a call in text, so the readers are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolglot.dialects.detection import Detection, detect
    from toolglot.dialects.dialect import Dialect
    from toolglot.dialects.registry import get, names, register_dialect, register_writing
    from toolglot.dialects.reply_reader import CallsInText, with_calls, with_leading_thought
    from toolglot.dialects.seed_formats import detect_format
    from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text
    from toolglot.dialects.writers.prompt import Prompt, to_prompt
    from toolglot.dialects.writers.writing import write_calls
    from toolglot.dialects.writers.writing_forms import Writing

__all__ = [
    "CallsInText",
    "Detection",
    "Dialect",
    "ParsedText",
    "Prompt",
    "TextToolStream",
    "Writing",
    "detect",
    "detect_format",
    "get",
    "names",
    "parse_text",
    "register_dialect",
    "register_writing",
    "to_prompt",
    "with_calls",
    "with_leading_thought",
    "write_calls",
]

_MODULES: Final = {
    "CallsInText": "reply_reader",
    "Detection": "detection",
    "Dialect": "dialect",
    "Prompt": "writers.prompt",
    "ParsedText": "text_stream",
    "TextToolStream": "text_stream",
    "Writing": "writers.writing_forms",
    "detect": "detection",
    "detect_format": "seed_formats",
    "get": "registry",
    "names": "registry",
    "parse_text": "text_stream",
    "register_dialect": "registry",
    "register_writing": "registry",
    "to_prompt": "writers.prompt",
    "with_calls": "reply_reader",
    "with_leading_thought": "reply_reader",
    "write_calls": "writers.writing",
}
"""The module of each name."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

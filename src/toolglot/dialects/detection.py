"""Which dialect the calls of a text are written in, and how certain that is.

    detect("<tool_call>{\\"name\\": \\"ls\\", \\"arguments\\": {}}</tool_call>")   Detection("hermes", "marked")

Law: a `TextToolStream` of the dialect that is found finds calls in the text.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from toolglot.dialects import registry
from toolglot.dialects.offered_tools import Tools, tool_list
from toolglot.dialects.text_stream import TextToolStream, parse_text
from toolglot.errors import InputError, quote

Sure = Literal["marked", "likely", "none"]
"""Whether the calls have marks that nothing else has, only look like calls, as ordinary text may, or are missing."""


class Detection(Struct, frozen=True):
    """The dialect of a text.

    dialect: its name, or None.
    sure: how sure it is: `marked` if the calls have marks of the dialect's own.
    """

    dialect: str | None
    sure: Sure


def detect(text: str, tools: Tools = (), model: str = "") -> Detection:
    """The dialect of the first call in a text.

    If tools were offered, a call without marks counts only if it is of one of them. If none were, a text that is
    nothing but such a call is likely one.

    text: what a model wrote.
    tools: the tools that were offered.
    model: the model's name, whose dialects are tried first.
    """
    if not isinstance(text, str):
        raise InputError(f"expected text, got {quote(text)}", path="text")
    tools = tool_list(tools)
    stream = TextToolStream(tools=tools, model=model)
    stream.feed(text)
    stream.finish()
    if stream.found:
        return Detection(stream.found[0], "marked" if stream.is_marked else "likely")
    likely = None if tools else next((each for each in _weak_dialects(model) if _is_only_calls(text, each)), None)
    return Detection(likely, "likely" if likely else "none")


def _weak_dialects(model: str) -> list[str]:
    return [each.name for each in registry.select_dialects("auto", model) if each.is_weak]


def _is_only_calls(text: str, dialect: str) -> bool:
    found = parse_text(text, dialect=dialect)
    return bool(found.calls) and not found.text

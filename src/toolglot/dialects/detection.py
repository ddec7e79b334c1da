"""Which dialect the calls of a text are written in, and how sure that is.

    detect("<tool_call>{\\"name\\": \\"ls\\", \\"arguments\\": {}}</tool_call>")   Detection("hermes", "marked")

Law: what is found is what reads the text: a `TextToolStream` of that dialect finds calls in it.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from toolglot.dialects import registry
from toolglot.dialects.offered_tools import Tools, listed
from toolglot.dialects.text_stream import TextToolStream, parse_text
from toolglot.errors import InputError, quote

Sure = Literal["marked", "likely", "none"]
"""The calls have marks that nothing else has; they look like calls, as ordinary text may; there are none."""


class Detection(Struct, frozen=True):
    """What was found out.

    dialect: its name, or None.
    sure: how sure it is: `marked` where marks of its own say so.
    """

    dialect: str | None
    sure: Sure


def detect(text: str, tools: Tools = (), model: str = "") -> Detection:
    """The dialect of the first call in a text.

    Where tools were offered, only their calls count among what ordinary text looks like. Where none were, a text that
    is nothing but such a call is likely one.

    text: what a model wrote.
    tools: the tools that were offered.
    model: the model's name, whose dialects are tried first.
    """
    if not isinstance(text, str):
        raise InputError(f"expected text, got {quote(text)}", path="text")
    tools = listed(tools)
    stream = TextToolStream(tools=tools, model=model)
    stream.feed(text)
    stream.finish()
    if stream.found:
        return Detection(stream.found[0], "marked" if stream.is_marked else "likely")
    likely = None if tools else next((each for each in _weak(model) if _is_only_calls(text, each)), None)
    return Detection(likely, "likely" if likely else "none")


def _weak(model: str) -> list[str]:
    return [each.name for each in registry.chosen("auto", model) if each.is_weak]


def _is_only_calls(text: str, dialect: str) -> bool:
    found = parse_text(text, dialect=dialect)
    return bool(found.calls) and not found.text

"""The words for a violation in full: what a text with gaps cannot name is taken from the request.

The profiles keep the words of providers as they were seen, sometimes in part, with an ellipsis for what differs. Here
they are made whole, so that a client that looks for an id, a length or a place in them finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation

_PARTS: Final = {
    "…that function response turn comes": "Please ensure that function response turn comes",
    "…must contain non-whitespace text": "messages: text content blocks must contain non-whitespace text",
    "…properties: should be non-empty": "{place}.properties: should be non-empty",
    "…enum: only allowed": "{place}.enum: only allowed",
    "…items: missing field": "{place}.items: missing field",
    "…format: only": "{place}.format: only",
    "…parameters.required": "{place}.required",
    "'…thought_signature'": "'{bare}'",
    "a thinking block…": (
        "a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this "
        "requirement, disable `thinking`."
    ),
}
"""Words that are known in part, as they read in full."""

CODES: Final = {
    **{
        (target, key): "string_above_max_length"
        for target in ("openai", "openai_responses")
        for key in ("ids.max_length", "names.max_length")
    },
    ("openai", "tools.max_count"): "array_above_max_length",
    ("openai_responses", "tools.max_count"): "array_above_max_length",
    ("openai_responses", "ids.item_id_prefix"): "invalid_id_prefix",
}
"""Codes that go with the words."""


def of(violation: Violation, body: Fields) -> str:
    """The words for a violation of this body."""
    place = place_of(violation)
    own = _BY_KEY.get((violation.target, violation.key))
    if own is not None:
        return own(_at(body, violation.path), violation)
    if violation.wording != "provider":
        return f"{place}: {violation.message}" if place else violation.message
    message = violation.message
    for part, full in _PARTS.items():
        message = message.replace(part, full.format(place=f"GenerateContentRequest.{place}", bare=place))
    return message


def place_of(violation: Violation) -> str:
    """Where, as providers write it."""
    return violation.path.removeprefix("$").removeprefix(".")


def _at(body: Any, path: str) -> Any:
    """The value that a path names; what holds it, where the path goes on beyond it."""
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        if name and isinstance(body, dict) and name in body:
            body = body[name]
        elif index and isinstance(body, list) and int(index) < len(body):
            body = body[int(index)]
    return body


def _field(value: Any, *names: str) -> Any:
    """The first of some fields that an object has."""
    return next((value[name] for name in names if isinstance(value, dict) and name in value), None)


def _unsigned(part: Any, violation: Violation) -> str:
    called = _field(part, "functionCall", "function_call")
    position = int((re.findall(r"\d+", violation.path) or ["0"])[0]) + 1
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{_field(called, 'name')}` , position {position}."
    )


def _unknown_keyword(_value: Any, violation: Violation) -> str:
    """A keyword of a schema that Gemini does not know; the schema is what holds it."""
    return _unknown_name(place_of(violation), violation.message)


def _unknown_field(_value: Any, violation: Violation) -> str:
    return _unknown_name(re.sub(r"(?:^\w+|\.\w+|\['[^']*'\])$", "", place_of(violation)), violation.message)


def _unknown_name(holder: str, message: str) -> str:
    """Gemini names what holds the field, in its own spelling."""
    snake = re.sub(r"(?<=[a-z])[A-Z]", lambda letter: f"_{letter[0].lower()}", holder)
    where = f" at '{snake}'" if snake else ""
    return re.sub(r"(?: at '[^']*')?(?: …)?(?=: Cannot find field)", lambda _: where, message, count=1)


def _unanswered(item: Any, _violation: Violation) -> str:
    return f"No tool output found for function call {_field(item, 'call_id')}."


def _without_follower(item: Any, _violation: Violation) -> str:
    return f"Item '{_field(item, 'id')}' of type 'reasoning' was provided without its required following item."


def _wrong_prefix(item: Any, violation: Violation) -> str:
    id = item if isinstance(item, str) else _field(item, "id")
    return re.sub(r": '[^']*'", lambda _: f": '{id}'", violation.message, count=1)


def _too_long(value: Any, violation: Violation) -> str:
    """An id or a name that is longer than OpenAI takes, with its own place and length."""
    most = (re.findall(r"maximum length (\d+)", violation.message) or ["64"])[0]
    names: tuple[str, ...] = ("call_id", "tool_call_id", "id")
    place = place_of(violation)
    if violation.key == "names.max_length":
        inner = _field(value, "function")
        place, value, names = (
            (f"{place}.function", inner, ("name",)) if inner is not None else (place, value, ("name",))
        )
    text = str(_field(value, *names))
    name = next((name for name in names if _field(value, name) is not None), names[0])
    wanted = f"Expected a string with maximum length {most}, but got a string with length {len(text)} instead."
    return f"Invalid '{place}.{name}': string too long. {wanted}"


def _one_later(_message: Any, violation: Violation) -> str:
    """Bedrock names the message where results are missed, not the one that calls."""
    return re.sub(r"(?<=at messages\.)\d+", lambda place: str(int(place[0]) + 1), violation.message)


_BY_KEY: Final[dict[tuple[str, str], Callable[[Any, Violation], str]]] = {
    ("gemini", "reasoning.placeholder_on"): _unsigned,
    ("gemini", "schema.keywords"): _unknown_keyword,
    ("gemini", "schema.refused"): _unknown_keyword,
    ("gemini", "request.unknown_fields"): _unknown_field,
    ("openai", "ids.max_length"): _too_long,
    ("openai", "names.max_length"): _too_long,
    ("openai_responses", "ids.max_length"): _too_long,
    ("openai_responses", "ids.item_id_prefix"): _wrong_prefix,
    ("openai_responses", "results.complete"): _unanswered,
    ("openai_responses", "reasoning.grouped"): _without_follower,
    ("openai_responses", "reasoning.may_end_turn"): _without_follower,
    ("bedrock", "results.complete"): _one_later,
    ("bedrock", "results.adjacent"): _one_later,
}
"""Words that name more of the request than a text with gaps does."""

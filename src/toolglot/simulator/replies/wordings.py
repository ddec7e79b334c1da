"""The full message for a violation: what the profile's text cannot name is taken from the request.

The profiles quote the providers' messages as they were seen, sometimes in part, with an ellipsis for what differs. Here
they are completed, so that a client that looks for an id, a length or a path in them finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolglot.protocols.fields.reading import Fields
from toolglot.referee import Violation

Wording = Callable[[Any, Violation], str]
"""Makes a message from the value at the path of a violation."""

_PARTS: Final = {
    "…that function response turn comes": "Please ensure that function response turn comes",
    "…must contain non-whitespace text": "messages: text content blocks must contain non-whitespace text",
    "…properties: should be non-empty": "{path}.properties: should be non-empty",
    "…enum: only allowed": "{path}.enum: only allowed",
    "…items: missing field": "{path}.items: missing field",
    "…format: only": "{path}.format: only",
    "…parameters.required": "{path}.required",
    "'…thought_signature'": "'{plain}'",
    "a thinking block…": (
        "a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this "
        "requirement, disable `thinking`."
    ),
}
"""Parts of messages that the profiles have with an ellipsis, and the same in full."""


def message_of(violation: Violation, body: Fields, wordings: Mapping[tuple[str, str], Wording]) -> str:
    """The message for a violation of this body."""
    path = path_of(violation)
    wording = wordings.get((violation.target, violation.key))
    if wording is not None:
        return wording(_value_at(body, violation.path), violation)
    if violation.wording != "provider":
        return f"{path}: {violation.message}" if path else violation.message
    message = violation.message
    for part, full in _PARTS.items():
        message = message.replace(part, full.format(path=f"GenerateContentRequest.{path}", plain=path))
    return message


def path_of(violation: Violation) -> str:
    """The path, as providers write it."""
    return violation.path.removeprefix("$").removeprefix(".")


def _value_at(body: Any, path: str) -> Any:
    """The value at a path; the deepest that exists, if the path goes on beyond it."""
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        if name and isinstance(body, dict) and name in body:
            body = body[name]
        elif index and isinstance(body, list) and int(index) < len(body):
            body = body[int(index)]
    return body


def first_field(value: Any, *names: str) -> Any:
    """The first of these fields that an object has."""
    return next((value[name] for name in names if isinstance(value, dict) and name in value), None)


def too_long(value: Any, violation: Violation) -> str:
    """An id or a name that is too long for OpenAI, with its path and length."""
    maximum = (re.findall(r"maximum length (\d+)", violation.message) or ["64"])[0]
    names: tuple[str, ...] = ("call_id", "tool_call_id", "id")
    path = path_of(violation)
    if violation.key == "names.max_length":
        names = ("name",)
        function = first_field(value, "function")
        if function is not None:
            path, value = f"{path}.function", function
    text = str(first_field(value, *names))
    name = next((name for name in names if first_field(value, name) is not None), names[0])
    expected = f"Expected a string with maximum length {maximum}, but got a string with length {len(text)} instead."
    return f"Invalid '{path}.{name}': string too long. {expected}"

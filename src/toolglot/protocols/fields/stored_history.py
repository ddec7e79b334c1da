"""Requests that continue a conversation which only their provider has: the body holds what is new, and no more."""

from __future__ import annotations

from typing import Any, Final

from toolglot.protocols.base import get
from toolglot.protocols.fields.reading import Fields

UNSUPPORTED_THREAD: Final = "thread_unsupported_request"
"""The code that makes Anthropic's own clients send the whole history instead."""


def continued_by(body: Fields, protocol: str) -> str | None:
    """The field that says so, as a path within the body; None where the body is all there is."""
    field = next((field for field in get(protocol).stored_history if body.get(field) is not None), None)
    if field is not None or protocol != "openai_responses":
        return field
    items = body.get("input")
    if items is None and body.get("prompt") is not None:
        return "prompt"  # a stored prompt holds all that is said
    if type(items) is not list:
        return None
    return next((f"input[{index}]" for index, item in enumerate(items) if _is_reference(item)), None)


def _is_reference(item: Any) -> bool:
    """Whether an item of the Responses protocol only names one that is stored; such a one may leave out its type."""
    if type(item) is not dict:
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and type(item.get("id")) is str)

"""Requests that continue a conversation which only their provider has: the body holds what is new, and no more."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import get
from toolglot.protocols.fields.reading import Fields

UNSUPPORTED_THREAD: Final = "thread_unsupported_request"
"""The code that makes Anthropic's own clients send the whole history instead."""


def continued_by(body: Fields, protocol: str) -> str | None:
    """The field that says so, as a path within the body; None where the body is all there is."""
    record = get(protocol)
    field = next((field for field in record.stored_history if body.get(field) is not None), None)
    return field if field is not None or record.stored_item is None else record.stored_item(body)

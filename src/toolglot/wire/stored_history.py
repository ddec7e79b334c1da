"""Requests that continue a conversation which only their provider has: the body holds what is new, and no more."""

from __future__ import annotations

from typing import Final

from toolglot.wire.reading import Fields

_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "openai_responses": ("previous_response_id", "conversation"),
    "anthropic": ("thread",),
}

UNSUPPORTED_THREAD: Final = "thread_unsupported_request"
"""The code that makes Anthropic's own clients send the whole history instead."""


def continued_by(body: Fields, protocol: str) -> str | None:
    """The field that says so; None where the body is all there is."""
    return next((field for field in _FIELDS.get(protocol, ()) if body.get(field) is not None), None)

"""The status of a tool result, and whether two results are the same completion.

Law: pure functions of one result's fields. Where a result came from never matters.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation.values import Media, ResultPart, Status, Text, ToolResult


def status_of(result: ToolResult) -> Status:
    """The status of a call, from all fields of its result.

    An explicit cancel comes first, then an error, then `is_complete`, then any value but null: it may be
    empty, zero or false. A result with none of these leaves its call pending.
    """
    if result.status == "cancelled":
        return "cancelled"
    if result.error is not None or result.is_error or result.status == "error":
        return "error"
    if result.is_complete or result.status == "complete":
        return "complete"
    if result.result is not None or result.content is not None:
        return "complete"
    return "pending"


CANCELLED: Final = "The call was cancelled."
"""The text of a cancel without a reason."""


def is_explicit_cancel(result: ToolResult) -> bool:
    """Whether a call was really cancelled, and the result was not made up to fill a gap."""
    return result.status == "cancelled" and result.synthetic is None


def is_guess(result: ToolResult) -> bool:
    """Whether a result was matched with its call by name or position, for lack of an id."""
    return result.metadata is not None and result.metadata.matched_by in ("name", "position")


def _plain(block: ResultPart) -> ResultPart:
    """A block without the fields of its protocol."""
    plain = replace(block, extra=None, form=None)
    return replace(plain, detail=None) if isinstance(plain, Media) else plain


def completion_key(result: ToolResult) -> str:
    """Equal for results that are the same completion, also after one of them was shortened."""
    if result.shortened_from is not None:
        return result.shortened_from
    content: object = result.content
    if isinstance(result.content, tuple):
        if all(isinstance(block, Text) for block in result.content):
            content = result.text
        else:
            content = tuple([_plain(block) for block in result.content])
    compared = (
        status_of(result),
        content,
        result.result,
        result.error,
        result.synthetic,
        result.is_complete is False,
    )
    return sha256(msgspec.json.encode(compared, order="deterministic")).hexdigest()

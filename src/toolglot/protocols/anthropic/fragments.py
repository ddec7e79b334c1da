"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolglot.conversation import Block
from toolglot.errors import InputError
from toolglot.protocols.anthropic.blocks import read_content
from toolglot.protocols.fields.reading import Fields, unknown_fragment


def read_fragment(fields: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    if fields.get("type") not in (None, "message"):
        try:
            return read_content([_fill_call(fields)], "")
        except InputError as error:
            error.path = error.path.removeprefix("[0]")
            raise
    if "content" not in fields:
        raise unknown_fragment("a reply or message with content, or a content block")
    content = fields["content"]
    return read_content([_fill_call(block) for block in content] if isinstance(content, list) else content, ".content")


def _fill_call(block: Any) -> Any:
    """A call with what servers that imitate the protocol leave out because it is empty."""
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return block
    return {**block, "id": block.get("id") or "", "input": {} if block.get("input") is None else block["input"]}

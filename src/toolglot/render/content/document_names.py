"""Names of documents, if the target restricts them: legal ones, and each once in a request.

A legal name stays; another becomes the nearest legal one, and a repeated name gets a number. Names are assigned in the
order of the conversation, and none depends on what comes after it (laws 4 and 5).

Besides media, a document may be text. Then its name is in its form, and the first line of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, Opaque, ResultPart, Text, ToolReference, ToolResult, Turn
from toolglot.render.context import RenderContext, unless_same

UNNAMED: Final = "document"
MAX_LENGTH: Final = 200

_DOCUMENTS: Final = ("document", "file")
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9_()\[\] -]+")
_SPACES: Final = re.compile(r"\s+")
_compile = lru_cache(maxsize=64)(re.compile)


def name_documents(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with every document under a name that the target accepts."""
    if ctx.profile.turns.document_name is None:
        return turns
    names = _Names(ctx.profile.turns.document_name, ctx)
    return unless_same(tuple([names.rename_in_turn(turn) for turn in turns]), turns)


def is_document(block: Block, protocol: str) -> bool:
    """Whether a block has the name of a document that may have to change."""
    return isinstance(block, Media | Opaque | Text) and _document_name(block, protocol) is not None


def _document_name(block: Media | Opaque | Text, protocol: str) -> str | None:
    """The name of a document, empty if it has none; None for anything else."""
    if isinstance(block, Media):
        return (block.name or "") if block.kind in _DOCUMENTS else None
    if isinstance(block, Text):
        return block.form.document_name if block.form is not None and block.form.protocol == protocol else None
    fields = block.value if block.protocol == protocol else None
    document = fields.get("document") if type(fields) is dict else None
    if type(document) is not dict:
        return None
    name = document.get("name")
    return name if type(name) is str else "" if name is None else None


class _Names:
    """The names that were assigned so far."""

    def __init__(self, pattern: str, ctx: RenderContext) -> None:
        self._legal = _compile(pattern)
        self._ctx = ctx
        self._protocol = ctx.profile.protocol
        self._used_names: dict[str, int] = {}
        """How often each name was wanted."""

    def rename_in_turn(self, turn: Turn) -> Turn:
        blocks = tuple([self._rename_in_block(block, turn) for block in turn.blocks])
        kept = unless_same(blocks, turn.blocks)
        return turn if kept is turn.blocks else replace(turn, blocks=kept)

    def _rename_in_block(self, block: Block, turn: Turn) -> Block:
        if isinstance(block, Media | Opaque | Text | ToolReference):
            return self._rename_document(block, turn)
        if not isinstance(block, ToolResult) or not isinstance(block.content, tuple):
            return block
        parts = unless_same(tuple([self._rename_document(part, turn) for part in block.content]), block.content)
        return block if parts is block.content else replace(block, content=parts)

    def _rename_document(self, block: ResultPart, turn: Turn) -> ResultPart:
        name_before = None if isinstance(block, ToolReference) else _document_name(block, self._protocol)
        if isinstance(block, ToolReference) or name_before is None:
            return block
        name = self._free_name(name_before if self._is_legal(name_before) else _nearest_legal_name(name_before))
        if name == name_before:
            return block
        rule = self._ctx.rule("turns.document_name")
        if name_before:
            reason = f"the document name {name_before[:80]!r} is refused or taken {rule}; renamed to {name[:80]!r}"
            self._ctx.report("renamed", reason, "projection", turn_key=turn.key)
        elif self._ctx.is_native:
            self._ctx.report("added", f"a document must have a name {rule}; one was added", turn_key=turn.key)
        return _with_name(block, name_before, name)

    def _is_legal(self, name: str) -> bool:
        return len(name) <= MAX_LENGTH and self._legal.fullmatch(name) is not None

    def _free_name(self, name: str) -> str:
        """A name that was not assigned yet: itself, or with a number."""
        free = name
        while free in self._used_names:
            self._used_names[name] = self._used_names.get(name, 0) + 1
            count = f" ({self._used_names[name]})"
            free = f"{name[: MAX_LENGTH - len(count)].rstrip()}{count}"
        self._used_names[free] = 1
        return free


def _nearest_legal_name(name: str) -> str:
    """The nearest name of letters, digits, single spaces and a few marks."""
    spaced = _SPACES.sub(" ", name[: MAX_LENGTH * 4])
    plain = _UNUSUAL.sub("-", spaced).strip(" -")[:MAX_LENGTH].rstrip()
    return plain if any(sign.isalnum() for sign in plain) else UNNAMED


def _with_name(block: Media | Opaque | Text, name_before: str, name: str) -> Media | Opaque | Text:
    if isinstance(block, Media):
        return replace(block, name=name)
    if isinstance(block, Opaque):
        return replace(block, value={**block.value, "document": {**block.value["document"], "name": name}})
    text = block.text.removeprefix(f"{name_before}\n") if name_before else block.text
    form = block.form.with_document_name(name) if block.form is not None else None
    return replace(block, text=f"{name}\n{text}", form=form)

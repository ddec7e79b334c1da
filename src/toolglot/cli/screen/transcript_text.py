"""A conversation as Markdown: messages, calls and results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from toolglot.cli.screen.transcript_view import arguments_of, text_of
from toolglot.conversation import Block, Media, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.completion import status_of

MAX_RESULT: Final = 20_000
"""Characters of a result that are shown."""
_TITLES: Final = {"user": "User", "assistant": "Assistant", "system": "System", "developer": "System", "tool": "Tools"}


def markdown_of(turns: Iterable[Turn], *, keys: bool = False) -> str:
    """The turns as Markdown. `keys`: with the key of each turn."""
    return "\n".join(_lines(turns, keys=keys)).strip() + "\n"


def _lines(turns: Iterable[Turn], *, keys: bool) -> Iterator[str]:
    for turn in turns:
        who = _TITLES.get(turn.role, turn.role)
        model = f" ({turn.issuer.model})" if turn.issuer is not None and turn.issuer.model else ""
        yield f"## {who}{model}{f'  [{turn.key}]' if keys else ''}"
        yield ""
        for block in turn.blocks:
            yield from _block(block)
            yield ""
        if turn.metadata.interrupted:
            yield from (f"[interrupted: {turn.metadata.interrupted}]", "")


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield block.text
        case Thinking():
            yield from (f"> {line}" for line in (block.text or "(not shown)").split("\n"))
        case ToolCall():
            yield f"→ `{block.name}` {arguments_of(block)}".rstrip()
        case ToolResult():
            text = text_of(block)
            yield f"← `{block.name}` {status_of(block)}"
            yield from _fence_text(text[:MAX_RESULT] + ("\n…" if len(text) > MAX_RESULT else ""))
        case Media():
            yield f"[{block.kind}]"
        case _:
            yield f"[{type(block).__name__}]"


def _fence_text(text: str) -> Iterator[str]:
    """The text as a code block. The fence is longer than any in the text."""
    if text:
        fence = "```"
        while fence in text:
            fence += "`"
        yield from (fence, text, fence)

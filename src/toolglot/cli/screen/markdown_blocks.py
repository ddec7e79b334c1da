"""Splits streamed Markdown into blocks that can be rendered as soon as they are complete.

    blocks = MarkdownBlocks()
    blocks.feed("# Title\\n\\nSome *te")      # [Piece("block", "# Title\\n")]
    blocks.feed("xt*.\\n\\n")                 # [Piece("block", "Some *text*.\\n")]

A block is a heading, a paragraph, a table, a quote, or one list item with its content. Each line of a fenced code block
is a piece of its own, so that long code appears line by line.

Laws: the pieces are the same however the text is split, only blank lines between blocks are lost, and the work is
linear. A block that is too long to render is passed on as raw text.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

MAX_BLOCK: Final = 8_000
"""Characters of a block that is rendered. Longer ones are shown as raw text."""
TAIL: Final = 400
"""Characters of incomplete text that can be previewed."""

Kind = Literal["block", "item", "raw", "code_start", "code", "code_end"]

_FENCE: Final = re.compile(r"^( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_INNER_FENCE: Final = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6}(\s|$)")
_RULE: Final = re.compile(r"^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*$")
_UNDERLINE: Final = re.compile(r"^ {0,3}(-+|=+)[ \t]*$")
_ITEM: Final = re.compile(r"^( {0,3})([-*+]|\d{1,9}[.)])( +)\S")


class MarkdownPiece(NamedTuple):
    """A piece that can be shown."""

    kind: Kind
    text: str = ""
    """With line breaks. For `code_start`: the language."""


class MarkdownBlocks:
    """Splits text into pieces.

    between blocks ──▶ paragraph, quote, item ──blank line, another block──▶ between blocks
                   ──▶ code ──closing fence──▶ between blocks
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        """Parts of the incomplete line."""
        self._tail = ""
        self._block: list[str] = []
        self._size = 0
        self._kind: Literal["", "text", "quote", "item"] = ""
        self._fence = ""
        """The opening fence of the current code block."""
        self._inner_fence = ""
        """The same, inside a list item."""
        self._indent = 0
        """The column of the item's text."""
        self._is_raw = False
        """Whether the start of the block was passed on already, because it is too long."""

    @property
    def pending(self) -> str:
        """The end of the text that is not in a piece yet."""
        return self._tail

    def feed(self, text: str) -> list[MarkdownPiece]:
        """The pieces that are complete now."""
        out: list[MarkdownPiece] = []
        *lines, rest = text.split("\n")
        for line in lines:
            whole = "".join((*self._parts, line))
            self._parts.clear()
            self._line(whole, out)
            self._tail = self._block[-1].rstrip("\n")[-TAIL:] if self._block else ""
        if rest:
            self._parts.append(rest)
            self._tail = (self._tail + rest)[-TAIL:] if not lines else rest[-TAIL:]
        return out

    def flush(self) -> list[MarkdownPiece]:
        """The rest."""
        out: list[MarkdownPiece] = []
        if self._parts:
            whole = "".join(self._parts)
            self._parts.clear()
            self._line(whole, out)
        self._end(out)
        if self._fence:
            out.append(MarkdownPiece("code_end"))
            self._fence = ""
        self._tail = ""
        return out

    # --- lines --------------------------------------------------------------------------------------

    def _line(self, line: str, out: list[MarkdownPiece]) -> None:
        if self._fence:
            if _closes(line, self._fence):
                self._fence = ""
                out.append(MarkdownPiece("code_end"))
            else:
                out.append(MarkdownPiece("code", line))
        elif self._kind == "item" and self._is_inside_item(line):
            self._add(line, out)
            self._follow_inner_fence(line)
        elif not line.strip():
            if self._kind == "item":
                self._add(line, out)  # the next line shows whether the item continues
            else:
                self._end(out)
        else:
            self._begin_or_continue(line, out)

    def _is_inside_item(self, line: str) -> bool:
        if self._inner_fence:
            return True
        if not line.strip():
            return False
        indent = len(line) - len(line.lstrip(" "))
        if indent >= min(self._indent, 4):
            return True
        is_lazy = bool(self._block) and bool(self._block[-1].strip())
        return is_lazy and indent >= 2 and not _ITEM.match(line)

    def _follow_inner_fence(self, line: str) -> None:
        if self._inner_fence:
            if _closes(line.strip(), self._inner_fence):
                self._inner_fence = ""
        elif found := _INNER_FENCE.match(line):
            self._inner_fence = found[1]

    def _begin_or_continue(self, line: str, out: list[MarkdownPiece]) -> None:
        """Handle a line that is not blank, and not inside an item or code."""
        if fence := _FENCE.match(line):
            self._end(out)
            self._fence = fence[2]
            out.append(MarkdownPiece("code_start", fence[3].strip()))
        elif _HEADING.match(line):
            self._end(out)
            out.append(MarkdownPiece("block" if len(line) <= MAX_BLOCK else "raw", f"{line}\n"))
        elif self._kind == "text" and _UNDERLINE.match(line):
            self._add(line, out)  # it makes the paragraph a heading
            self._end(out)
        elif _RULE.match(line):
            self._end(out)
            out.append(MarkdownPiece("block", f"{line}\n"))
        elif item := _ITEM.match(line):
            self._end(out)
            self._kind, self._indent = "item", item.end(3)
            self._add(line, out)
            self._follow_inner_fence(line[item.end(3) :])
        elif line.lstrip().startswith(">") and self._kind != "quote":
            self._end(out)
            self._kind = "quote"
            self._add(line, out)
        else:
            if self._kind == "item" and self._block and not self._block[-1].strip():
                self._end(out)
            self._kind = self._kind or "text"
            self._add(line, out)

    # --- blocks -------------------------------------------------------------------------------------

    def _add(self, line: str, out: list[MarkdownPiece]) -> None:
        self._block.append(f"{line}\n")
        self._size += len(line) + 1
        if self._size > MAX_BLOCK:
            self._pass_on(out)

    def _pass_on(self, out: list[MarkdownPiece]) -> None:
        out.append(MarkdownPiece("raw", "".join(self._block)))
        self._block, self._size, self._is_raw = [], 0, True

    def _end(self, out: list[MarkdownPiece]) -> None:
        text = "".join(self._block)
        if text.strip():
            kind: Kind = "raw" if self._is_raw else "item" if self._kind == "item" else "block"
            out.append(MarkdownPiece(kind, f"{text.rstrip()}\n"))
        self._block, self._size, self._kind = [], 0, ""
        self._inner_fence, self._is_raw = "", False


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0]) and len(line) - len(line.lstrip()) < 4

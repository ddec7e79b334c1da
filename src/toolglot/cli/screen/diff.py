"""A unified diff of two bodies, as indented JSON.

Law: the work is bounded. Equal lines at both ends are skipped; a remainder that is still too large is not compared,
and long lines are truncated.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from toolglot.cli.files.json_layout import equal_prefix
from toolglot.cli.screen.terminal import TerminalPage, clean

MAX_LINES: Final = 3_000
"""Lines of each side that are compared."""
MAX_SHOWN: Final = 400
MAX_WIDTH: Final = 160
CONTEXT: Final = 3

_STYLES: Final = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


def diff_lines(before: Any, after: Any, name: str) -> list[str]:
    """The lines of a unified diff; empty if nothing differs."""
    old, new = _lines(before), _lines(after)
    if old == new:
        return []
    head = equal_prefix(old, new)
    tail = equal_prefix(old[head:][::-1], new[head:][::-1])
    skipped = max(head - CONTEXT, 0)
    old_middle = old[skipped : len(old) - max(tail - CONTEXT, 0)]
    new_middle = new[skipped : len(new) - max(tail - CONTEXT, 0)]
    if max(len(old_middle), len(new_middle)) > MAX_LINES:
        return [f"(the bodies differ in {len(old_middle)} and {len(new_middle)} lines: too many to compare here)"]
    lines = list(_unified_diff(old_middle, new_middle, name, skipped))
    if len(lines) > MAX_SHOWN:
        lines = [*lines[:MAX_SHOWN], f"(… {len(lines) - MAX_SHOWN} more lines)"]
    return lines


def show_diff(before: Any, after: Any, name: str, page: TerminalPage) -> None:
    for line in diff_lines(before, after, name):
        short = line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}…"
        styles = ("bold",) if line.startswith(("---", "+++")) else _STYLES.get(line[:1], ())
        page.line(page.paint(clean(short), *styles) if styles else clean(short))


def _lines(body: Any) -> list[str]:
    return json.dumps(body, ensure_ascii=False, indent=2).split("\n")


def _unified_diff(old: list[str], new: list[str], name: str, skipped: int) -> Iterator[str]:
    for line in difflib.unified_diff(old, new, name, f"{name} (repaired)", n=CONTEXT, lineterm=""):
        yield _shift_hunk(line, skipped) if line.startswith("@@") else line


def _shift_hunk(line: str, skipped: int) -> str:
    """A hunk header with the line numbers of the whole document."""
    words = line.split(" ")
    for index in (1, 2):
        start, comma, length = words[index][1:].partition(",")
        words[index] = f"{words[index][0]}{int(start) + skipped}{comma}{length}"
    return " ".join(words)

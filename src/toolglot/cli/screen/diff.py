"""Two bodies side by side, as a unified diff of their pretty JSON.

Law: bounded. What is equal at both ends is taken off first; a middle that is still too large is not compared line by
line, and long lines are cut.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

from toolglot.cli.screen.terminal import TerminalPage, clean

MOST_LINES: Final = 3_000
"""Lines of either side that are compared."""
MOST_SHOWN: Final = 400
LONGEST: Final = 160
CONTEXT: Final = 3

_STYLES: Final = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


def diff_lines(before: Any, after: Any, name: str) -> list[str]:
    """The lines of a unified diff; empty where nothing differs."""
    old, new = _lines(before), _lines(after)
    if old == new:
        return []
    head = _equal(old, new)
    tail = _equal(old[head:][::-1], new[head:][::-1])
    skipped = max(head - CONTEXT, 0)
    old_middle = old[skipped : len(old) - max(tail - CONTEXT, 0)]
    new_middle = new[skipped : len(new) - max(tail - CONTEXT, 0)]
    if max(len(old_middle), len(new_middle)) > MOST_LINES:
        return [f"(the bodies differ in {len(old_middle)} and {len(new_middle)} lines: too many to compare here)"]
    lines = list(_unified(old_middle, new_middle, name, skipped))
    if len(lines) > MOST_SHOWN:
        lines = [*lines[:MOST_SHOWN], f"(… {len(lines) - MOST_SHOWN} more lines)"]
    return lines


def show_diff(before: Any, after: Any, name: str, page: TerminalPage) -> None:
    for line in diff_lines(before, after, name):
        short = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
        styles = ("bold",) if line.startswith(("---", "+++")) else _STYLES.get(line[:1], ())
        page.line(page.paint(clean(short), *styles) if styles else clean(short))


def _lines(body: Any) -> list[str]:
    return json.dumps(body, ensure_ascii=False, indent=2).split("\n")


def _equal(old: list[str], new: list[str]) -> int:
    """How many lines are equal from the start."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _unified(old: list[str], new: list[str], name: str, skipped: int) -> Iterator[str]:
    for line in difflib.unified_diff(old, new, name, f"{name} (repaired)", n=CONTEXT, lineterm=""):
        yield _shifted(line, skipped) if line.startswith("@@") else line


def _shifted(line: str, skipped: int) -> str:
    """A hunk's head with the line numbers of the whole."""
    words = line.split(" ")
    for index in (1, 2):
        start, comma, length = words[index][1:].partition(",")
        words[index] = f"{words[index][0]}{int(start) + skipped}{comma}{length}"
    return " ".join(words)

"""A diff of the lines of two files whose lines are long: only what differs in a line is shown.

Law: the work is bounded. Equal lines at both ends are skipped, and a remainder that is too large is only counted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.cli.screen.terminal import TerminalPage, clean

MAX_COMPARED: Final = 5_000
MAX_SHOWN: Final = 200
WIDTH: Final = 150
BEFORE: Final = 40
"""Characters that are shown before the first that differs."""


def line_diff(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[str]:
    """`- 7: …` for a line that goes, `+ 7: …` for one that comes."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = list(before[head : len(before) - tail]), list(after[head : len(after) - tail])
    if max(len(old), len(new)) > MAX_COMPARED:
        yield f"  ({len(old)} lines become {len(new)}: too many to compare here)"
        return
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for step in range(max(j - i, m - k)):
            gone = old[i + step] if i + step < j else None
            come = new[k + step] if k + step < m else None
            at = _first_difference(gone or b"", come or b"") if gone is not None and come is not None else 0
            if gone is not None:
                yield f"- {head + i + step + 1}: {_excerpt(gone, at)}"
            if come is not None:
                yield f"+ {head + k + step + 1}: {_excerpt(come, at)}"


def show_line_diff(before: Sequence[bytes], after: Sequence[bytes], page: TerminalPage) -> None:
    """Write the diff."""
    styles = {"-": "red", "+": "green"}
    for number, line in enumerate(line_diff(before, after)):
        if number >= MAX_SHOWN:
            page.line("  … and more")
            return
        page.line(page.paint(f"  {clean(line)}", styles.get(line[:1], "dim")))


def _first_difference(one: bytes, other: bytes) -> int:
    at, step = 0, 1 << 16
    while step:
        while one[at : at + step] == other[at : at + step] and at + step <= min(len(one), len(other)):
            at += step
        step //= 16
    return at


def _excerpt(line: bytes, at: int) -> str:
    start = max(at - BEFORE, 0)
    text = line[start : start + WIDTH].decode("utf-8", "replace").rstrip("\n")
    return ("…" if start else "") + text + ("…" if len(line) > start + WIDTH else "")

"""A diff of the lines of two files whose lines are long: only what differs in a line is shown. Of a line of JSON, these
are the fields that changed.

Law: the work is bounded. Equal lines at both ends are skipped, and a remainder that is too large is only counted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from toolglot import jsontext
from toolglot.cli.screen.terminal import TerminalPage, clean

MAX_COMPARED: Final = 5_000
MAX_SHOWN: Final = 200
WIDTH: Final = 150
LONE_WIDTH: Final = 800
"""Characters of a line that only one file has."""
MAX_FIELDS: Final = 20
"""Fields of a line that are shown."""
MAX_ALIGNED: Final = 50
"""Lines of a changed part that are compared with each other, to find out which became which."""
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
        for gone, come in _pairs(old[i:j], new[k:m]):
            before_ = "" if gone is None else f"- {head + i + gone + 1}: "
            after_ = "" if come is None else f"+ {head + k + come + 1}: "
            if gone is None or come is None:
                line = old[i + gone] if gone is not None else new[k + (come or 0)]
                yield f"{before_ or after_}{_excerpt(line, 0, LONE_WIDTH)}"
                continue
            for field, one, other in _changes(old[i + gone], new[k + come]):
                at = _first_difference(one or b"", other or b"") if one is not None and other is not None else 0
                width = WIDTH if at else LONE_WIDTH
                if one is not None:
                    yield f"{before_}{field}{_excerpt(one, at, width)}"
                if other is not None:
                    yield f"{after_}{field}{_excerpt(other, at, width)}"


def show_line_diff(before: Sequence[bytes], after: Sequence[bytes], page: TerminalPage) -> None:
    """Write the diff."""
    styles = {"-": "red", "+": "green"}
    for number, line in enumerate(line_diff(before, after)):
        if number >= MAX_SHOWN:
            page.line("  … and more")
            return
        page.line(page.paint(f"  {clean(line)}", styles.get(line[:1], "dim")))


def _pairs(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int | None, int | None]]:
    """Which line became which, by their positions: the one that is most like it, where there are few."""
    position = 0
    for index, line in enumerate(old):
        rest = range(position, len(new))
        match = index if index in rest else None
        if len(old) != len(new):
            match = next((n for n in rest[:MAX_ALIGNED] if _are_alike(line, new[n])), None)
        if match is None:
            yield index, None
            continue
        yield from ((None, n) for n in range(position, match))
        yield index, match
        position = match + 1
    yield from ((None, n) for n in range(position, len(new)))


def _are_alike(one: bytes, other: bytes) -> bool:
    """Whether more than half of a line is the same at both ends."""
    start = _first_difference(one, other)
    end = _first_difference(one[start:][::-1], other[start:][::-1])
    return 2 * (start + end) > max(len(one), len(other))


def _changes(one: bytes, other: bytes) -> Iterator[tuple[str, bytes | None, bytes | None]]:
    """What differs in a line: fields with their values in both, or all of it if it is not JSON."""
    try:
        found = list(islice(_fields(jsontext.parse_plain(one), jsontext.parse_plain(other), ""), MAX_FIELDS))
    except (ValueError, RecursionError):  # also an `InputError`: it is too large
        found = []
    if not found:
        yield "", one, other
    for path, old, new in found:
        yield f"{path} = ", _value_text(old), _value_text(new)


_NOTHING: Final = object()


def _value_text(value: Any) -> bytes | None:
    return None if value is _NOTHING else jsontext.compact(value).encode(errors="replace")


def _fields(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The values that differ, with their paths."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _fields(old.get(name, _NOTHING), new.get(name, _NOTHING), f"{path}.{name}")
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            one, other = (value[number] if number < len(value) else _NOTHING for value in (old, new))
            yield from _fields(one, other, f"{path}[{number}]")
    elif type(old) is not type(new) or old != new:
        yield path or ".", old, new


def _first_difference(one: bytes, other: bytes) -> int:
    at, step = 0, 1 << 16
    while step:
        while one[at : at + step] == other[at : at + step] and at + step <= min(len(one), len(other)):
            at += step
        step //= 16
    return at


def _excerpt(line: bytes, at: int, width: int) -> str:
    start = max(at - BEFORE, 0)
    text = line[start : start + width].decode("utf-8", "replace").rstrip("\n")
    return ("…" if start else "") + text + ("…" if len(line) > start + width else "")

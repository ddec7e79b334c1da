"""Looks at what follows without reading it: a closer counts only where something follows that can follow it.

Nothing is read unless the wanted mark is there, so that everything else stays text, white space included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, cast

from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Marks, Scanner, Steps, marks

SPACES: Final = re.compile(r"\s*+")
WRITTEN_SPACES: Final = re.compile(r"(?:\s|\\n)*+")
r"""White space, and line breaks that a model wrote as `\n`."""
_MAX_OPTION: Final = 64
MAX_GAP: Final = 512
"""White space that may separate two marks."""


def ahead(scanner: Scanner, options: Iterable[str], spaces: re.Pattern[str] = SPACES) -> Steps[tuple[str | None, int]]:
    """Which of the options follows white space, and where it ends: empty where the text ends, which may be inside an
    option; None for anything else."""
    listed = options if type(options) is tuple else tuple(options)
    match = _behind(listed, spaces)
    gap = 0
    while True:
        found = match(scanner.text, scanner.at + gap)
        gap = found.start(1) - scanner.at
        if found[1]:
            return found[1], found.end() - scanner.at
        start = scanner.at + gap
        rest = scanner.text[start : start + _MAX_OPTION]
        may_follow = gap <= MAX_GAP and len(rest) < _MAX_OPTION and _may_become(rest, listed, spaces)
        if scanner.is_over or not may_follow:
            return ("" if scanner.is_over and (not rest or may_follow) else None), gap
        yield from scanner.more()


@lru_cache(maxsize=4096)
def _behind(options: tuple[str, ...], spaces: re.Pattern[str]) -> Callable[[str, int], re.Match[str]]:
    """A matcher of white space, with the first of the options that follows as its group; empty if none does."""
    pattern = re.compile(f"{spaces.pattern}({'|'.join((*map(re.escape, options), ''))})")
    return cast("Callable[[str, int], re.Match[str]]", pattern.match)  # its group may be empty


def _may_become(rest: str, options: tuple[str, ...], spaces: re.Pattern[str]) -> bool:
    return any(each.startswith(rest) for each in options) or (rest == "\\" and spaces is WRITTEN_SPACES)


def next_of(scanner: Scanner, options: Iterable[str], spaces: re.Pattern[str] = SPACES) -> Steps[str | None]:
    """Read whichever of the options follows white space. Empty at the end of the text; None, with nothing read, if
    anything else follows."""
    found, reach = yield from ahead(scanner, options, spaces)
    if found:
        scanner.at += reach
    return found


def read_up_to(scanner: Scanner, ends: Marks, max_length: int) -> Steps[tuple[str, str] | None]:
    """Read up to the first of some marks, and the mark. Returns both; None, with nothing read, if there is none, or it
    is too far away."""
    while True:
        near = scanner.text[scanner.at : scanner.at + max_length + ends.max_length]
        found = ends.find(near, 0)
        if found is not None:
            scanner.at += found.end()
            return near[: found.start()], found[0]
        if len(near) == max_length + ends.max_length or not (yield from scanner.more()):
            return None


def is_followed(scanner: Scanner, options: Iterable[str], spaces: re.Pattern[str] = SPACES) -> Steps[bool]:
    """Whether one of the options, or the end of the text, follows white space."""
    found, _ = yield from ahead(scanner, options, spaces)
    return found is not None


def skip_gap(scanner: Scanner, spaces: re.Pattern[str] = SPACES) -> Steps[None]:
    """Read white space that matches the pattern."""
    while True:
        found = spaces.match(scanner.text, scanner.at)
        scanner.at = found.end() if found is not None else scanner.at
        rest = scanner.text[scanner.at : scanner.at + 2]
        if (rest and not (rest == "\\" and spaces is WRITTEN_SPACES)) or not (yield from scanner.more()):
            return


def give_back(scanner: Scanner, read: str) -> None:
    """Put back what was read last, for another reader. There must be no mark."""
    start = scanner.at - len(read)
    if start >= 0 and scanner.text.startswith(read, start):
        scanner.at = start
    else:  # text came since, and what was read is forgotten
        scanner.text = read + scanner.text[scanner.at :]
        scanner.at = 0


def is_beginning(scanner: Scanner, options: Iterable[str]) -> bool:
    """Whether the text ends inside one of the options."""
    rest = scanner.text[scanner.at : scanner.at + _MAX_OPTION]
    return bool(rest) and any(option.startswith(rest) for option in options)


def drop_rest(scanner: Scanner) -> None:
    """If the text ends inside a tag of a call that is open, what there is of the tag belonged to the call."""
    if scanner.is_over:
        scanner.at = len(scanner.text)


def close_broken(reader: DialectReader, closers: tuple[str, ...], outer: str = "") -> Steps[Outcome]:
    """End an open call whose arguments cannot continue with what follows. Everything up to a closer, which stays
    unread, belongs to the arguments, so that the call cannot be run; except for one bracket of what surrounds them. If
    nothing follows, the arguments only lack their end."""
    scanner = reader.scanner
    held = ""
    is_cut = True

    def keep(piece: str) -> None:
        nonlocal held, is_cut
        is_cut = is_cut and piece.isspace()
        text = held + piece
        end = len(text.rstrip().removesuffix(outer))
        end = end if outer and len(text) - end < _MAX_OPTION else len(text)
        reader.input(text[:end])
        held = text[end:]

    found = (yield from scanner.until(marks(*closers), keep)) if closers else None
    if found is None:
        reader.input(held)
        return reader.close(cut=True)
    scanner.at -= len(found)
    return reader.close(cut=is_cut)


def cut_off(reader: DialectReader) -> Outcome:
    """A call that is open breaks off inside a tag, or where the text ends."""
    drop_rest(reader.scanner)
    return reader.close(cut=True)

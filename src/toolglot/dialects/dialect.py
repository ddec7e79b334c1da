"""What a dialect is: the marks that its calls begin with, its reader and its writer.

    HERMES = Dialect(name="hermes", openers=("<tool_call>",), read=json_in("</tool_call>"), inside=r"\\s*\\{")

`read` is a generator function. It is called behind the opener, reads with `reader.scanner`, reports calls with
`reader.open`, `input` and `close`, and returns an `Outcome`. Until it has opened a call, it may return that there is
none: then what it read is text again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from toolglot.dialects.families.json_calls import KEYS, CallKeys, call_list
from toolglot.dialects.lookahead import drop_rest, is_beginning
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.writers.writing_forms import Writing

Read = Callable[[DialectReader, str], Steps[Outcome]]
"""(reader, opener) → reads what follows the opener."""

THINK: Final = (("<think>", "</think>"),)
"""How most models mark their thinking."""


class Dialect(Struct, frozen=True, kw_only=True):
    """A way in which models write tool calls as text.

    name: what it is called.
    read: reads one call, as a generator.
    thinking: the pairs of marks around thinking.
    """

    name: str
    openers: tuple[str, ...]
    """What a call, or a section of calls, begins with. One that starts with a line break counts only at the start of a
    line."""
    read: Read
    inside: str = ""
    """A pattern for what follows the opener. It distinguishes dialects with the same opener, and sees the next 64
    characters."""
    thinking: tuple[tuple[str, str], ...] = THINK
    models: tuple[str, ...] = ()
    """Names of models that write in it, as shell patterns."""
    is_variant: bool = False
    """Whether a better known dialect has the same marks, which is tried first."""
    is_weak: bool = False
    """Whether ordinary text looks like it, so that only calls of offered tools count."""
    strong: tuple[str, ...] = ()
    """Openers of a weak dialect that no ordinary text has. Behind them, calls of any tool count."""
    prompted: tuple[str, ...] = ()
    """Openers that the text may start without, because the prompt ends with them."""
    closers: tuple[str, ...] = ()
    """What ends a call or a section. A closer that closes nothing is dropped, and so is an empty section; under `auto`
    only if it is a special token, which no ordinary text has."""
    thought_ends: tuple[str, ...] = ()
    """Openers that never occur in thinking: they end it."""
    named: Dialect | None = None
    """The dialect to read instead if the user chose this one by name: it may be more lenient, as no other is meant."""
    writing: Writing | None = None
    """How calls and results are written. Without it the dialect can only be read."""


def json_in(*closers: str, keys: CallKeys = KEYS) -> Read:
    """A reader of an object, or a list of them, up to one of the closers, which may be missing."""

    def read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
        outcome = yield from call_list(reader, keys, closers=closers)
        if closers and outcome in ("call", "cut", "passed"):
            yield from skip_closer(reader, *closers, stray="}]")
        return outcome

    return read


def skip_closer(reader: DialectReader, *closers: str, stray: str = "") -> Steps[str | None]:
    """Read a closer behind white space and stray brackets, if there is one; otherwise read nothing."""
    scanner = reader.scanner
    scanner.mark()
    mark = yield from scanner.skip_spaces()
    while mark and mark in stray:
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
    found = yield from scanner.one_of(closers)
    if found is None and mark and scanner.is_over and is_beginning(scanner, closers):
        drop_rest(scanner)
        scanner.unmark()
    elif found is None:
        scanner.go_back()
    else:
        scanner.unmark()
    return found


is_special: Final = re.compile(
    r"<[|\uff5c].*|.*[|\uff5c]>|</[|\uff5c\u2016].*|\]<\].*|<end_function_call>", re.DOTALL
).fullmatch
"""Matches marks that are special tokens of a model, such as `<|tool_call_end|>`."""


@lru_cache(maxsize=1024)
def any_inside(*patterns: str) -> Callable[[str], object] | None:
    """A matcher of what any of these dialects has behind an opener; None if one of them takes anything."""
    return re.compile("|".join(f"(?:{each})" for each in patterns)).match if all(patterns) else None


def inside_of(dialect: Dialect) -> Callable[[str], object] | None:
    """A matcher of what the dialect has behind an opener; None if it takes anything."""
    return any_inside(dialect.inside)


__all__ = ["THINK", "Dialect", "Read", "any_inside", "inside_of", "is_special", "json_in", "marks", "skip_closer"]

"""What a dialect is: the marks that its calls begin with, and what reads them from there.

    HERMES = Dialect("hermes", openers=("<tool_call>",), read=json_in("</tool_call>"), inside=r"\\s*\\{")

`read` is a generator function: it reads with `reader.scanner`, tells what it finds with `reader.open`, `input` and
`close`, and says how it ended. It is called behind the opener. As long as it has not opened a call, it may say that
there is none: then what it read is text again.
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
"""Reads what follows an opener, which it is given."""

THINK: Final = (("<think>", "</think>"),)
"""How most models mark what they think."""


class Dialect(Struct, frozen=True, kw_only=True):
    """A way in which models write tool calls as text.

    name: what it is called.
    read: reads one call, as a generator.
    thinking: the pairs of marks around thinking.
    """

    name: str
    openers: tuple[str, ...]
    """What a call, or a section of calls, begins with. In front of a line break, it counts only at the start of a
    line."""
    read: Read
    inside: str = ""
    """What must follow the opener, as a pattern, for this dialect and not another one with the same opener to be meant;
    it is tried on the first 64 characters."""
    thinking: tuple[tuple[str, str], ...] = THINK
    models: tuple[str, ...] = ()
    """Names of models that write so, as shell patterns."""
    is_variant: bool = False
    """Whether another dialect has the same marks and is the better known one, so that it is looked for first."""
    is_weak: bool = False
    """Whether ordinary text looks like this, so that only calls of tools that were offered count."""
    strong: tuple[str, ...] = ()
    """Openers of a weak dialect that no ordinary text has: behind them, calls of any tool count."""
    prompted: tuple[str, ...] = ()
    """Openers that may be missing at the start of the text, since the prompt ends with them."""
    closers: tuple[str, ...] = ()
    """What ends a call or a section. One that ends nothing is dropped, and so is a section with nothing in it; under
    `auto` only where it is a special token, which no ordinary text has."""
    thought_ends: tuple[str, ...] = ()
    """Openers that no thought holds: one of them ends it."""
    named: Dialect | None = None
    """The dialect to read instead if the user chose this one by name: it may be more lenient, as no other is meant."""
    writing: Writing | None = None
    """How calls and results are written. Without it the dialect can only be read."""


def json_in(*closers: str, keys: CallKeys = KEYS) -> Read:
    """Reads an object, or a list of them, up to one of the closers, which may be missing."""

    def read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
        outcome = yield from call_list(reader, keys, closers=closers)
        if closers and outcome in ("call", "cut", "passed"):
            yield from skip_closer(reader, *closers, stray="}]")
        return outcome

    return read


def skip_closer(reader: DialectReader, *closers: str, stray: str = "") -> Steps[str | None]:
    """Read a closer behind white space and stray brackets, if there is one; otherwise nothing is read."""
    scanner = reader.scanner
    scanner.mark()
    mark = yield from scanner.skip_spaces()
    while mark and mark in stray:
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
    found = yield from scanner.one_of(closers)
    if found is None and mark and scanner.is_over and is_beginning(scanner, closers):
        drop_rest(scanner)
        scanner.let_go()
    elif found is None:
        scanner.go_back()
    else:
        scanner.let_go()
    return found


is_special: Final = re.compile(
    r"<[|\uff5c].*|.*[|\uff5c]>|</[|\uff5c\u2016].*|\]<\].*|<end_function_call>", re.DOTALL
).fullmatch
"""Knows the marks that models have as tokens of their own, such as `<|tool_call_end|>`."""
_COMPILED: Final[dict[str, re.Pattern[str]]] = {}


@lru_cache(maxsize=1024)
def any_inside(*patterns: str) -> Callable[[str], object] | None:
    """Knows what one of several dialects has behind an opener; None where one of them takes anything."""
    return re.compile("|".join(f"(?:{each})" for each in patterns)).match if all(patterns) else None


def fits(dialect: Dialect, ahead: str) -> bool:
    """Whether what follows an opener is what the dialect has there."""
    if not dialect.inside:
        return True
    pattern = _COMPILED.setdefault(dialect.inside, re.compile(dialect.inside))
    return pattern.match(ahead) is not None


__all__ = ["THINK", "Dialect", "Read", "any_inside", "fits", "is_special", "json_in", "marks", "skip_closer"]

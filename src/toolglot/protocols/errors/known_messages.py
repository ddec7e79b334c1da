"""Recognises the rule that a provider's error message is about.

The profiles hold the provider's error message for each rule and fact. Here those messages become patterns: numbers
count as equal, `…`, `N`, `X` and `<id>` match anything, and if nothing matches exactly, quoted names count as equal
too. A pattern is a tuple of strings that must follow one another, so that the search takes linear time, however
hostile the message is.

Law: each of these messages is recognised as its own rule, or as one with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from msgspec import Struct

from toolglot import profiles
from toolglot.profiles import loader
from toolglot.profiles.loader import ProfileFile
from toolglot.profiles.target_names import resolve
from toolglot.protocols.errors.bodies import error_in, parse_object, read_error

MESSAGE_CHARACTERS: Final = 8_000
LETTERS: Final = 16
"""Letters that a pattern must have without its quoted names."""

MAX_NEAR: Final = 8
"""Profiles that extend one another."""

_GAP: Final = "\0"
_NUMBER: Final = re.compile(r"[0-9]+")
_QUOTED: Final = re.compile(r"(['\"`])[\w.:$/\0-]{0,80}\1")
_SPACE: Final = re.compile(r"\s+")
_SAMPLES: Final = (
    (re.compile(r"<n>|\b[NM]\b"), "0"),
    (re.compile(r"<id>|\bX\b|\bgpt-[\w.-]+\w|\w*_(?:…|\.\.\.)|…|\.\.\."), _GAP),
)
"""How the profiles mark what differs from case to case."""


class Pattern(Struct, frozen=True):
    """The error message of one rule or fact."""

    rule: str
    target: str
    protocol: str
    exact: tuple[str, ...]
    loose: tuple[str, ...]
    """The same with all quoted names equal; empty if too little is left."""


def recognise(message: str, *, target: str = "", protocol: str = "") -> tuple[str, ...]:
    """The ids of the rules and facts that a message is about: the target's own first, then the most exact."""
    text = _normalise(message[:MESSAGE_CHARACTERS])
    near = _near(resolve(target)) if target else ()
    for seen, kind in ((text, "exact"), (_QUOTED.sub("''", text), "loose")):
        found = [pattern for pattern in _patterns() if _contains_in_order(getattr(pattern, kind), seen)]
        if found:
            found.sort(key=lambda pattern: (_distance(pattern, near, protocol), -sum(map(len, pattern.exact))))
            return tuple(dict.fromkeys(pattern.rule for pattern in found))
    return ()


def _distance(pattern: Pattern, near: tuple[str, ...], protocol: str) -> int:
    """How far a pattern's target is from that of the message."""
    if pattern.target in near:
        return near.index(pattern.target)
    return MAX_NEAR if pattern.protocol == protocol else MAX_NEAR + 1


def _near(target: str) -> tuple[str, ...]:
    """A target and those that it extends."""
    names: list[str] = []
    while target in _files() and len(names) < MAX_NEAR:
        names.append(target)
        target = _files()[target].extends or ""
    return tuple(names)


def _contains_in_order(pieces: tuple[str, ...], text: str) -> bool:
    """Whether the text contains all pieces, one after the other."""
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return bool(pieces)


@cache
def _files() -> dict[str, ProfileFile]:
    return {name: loader.read_builtin(name) for name in profiles.names()}


@cache
def _patterns() -> tuple[Pattern, ...]:
    found = []
    for file in _files().values():
        protocol = next((p for p in (_files()[name].protocol for name in _near(file.name)) if p), "")
        for rule, words in dict.fromkeys(_known_errors(file)):
            exact, loose = _pieces(words)
            if exact:
                found.append(Pattern(rule, file.name, protocol, exact, loose))
    return tuple(found)


def _known_errors(file: ProfileFile) -> Iterator[tuple[str, str]]:
    """The ids of a profile's rules and facts, with the provider's messages."""
    for rules in (file.rules, *(model.rules for model in file.models)):
        # An unknown model is refused in the same words, whosever it is.
        yield from ((rule.id, rule.error) for rule in rules.values() if rule.key != "request.foreign_models")
    yield from ((fact.id, fact.error) for fact in file.facts)


def _pieces(words: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pieces of a pattern, exact and loose; none if the words are not a message but a shape or a comment."""
    if words.startswith("{"):
        document = parse_object(words.replace("{…}", "{}"))
        error = read_error(error_in(document), document)
        words = error.message or " ".join(error.codes)
    if words.startswith(":"):
        return (), ()
    for sample, stand_in in _SAMPLES:
        words = sample.sub(stand_in, words)
    text = _normalise(words)
    loose = _QUOTED.sub("''", text)
    says_enough = loose != text and sum(map(str.isalpha, loose)) >= LETTERS
    return _split(text), _split(loose) if says_enough else ()


def _split(text: str) -> tuple[str, ...]:
    return tuple(piece for piece in (part.strip() for part in text.split(_GAP)) if piece)


def _normalise(text: str) -> str:
    """A text in which numbers, white space and capitals make no difference."""
    return _SPACE.sub(" ", _NUMBER.sub("0", text)).lower()

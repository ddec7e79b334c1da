"""Names of tools: a map into names that a target accepts, and a choice where there are too many tools.

MCP servers and clients name tools as they like (`a.b/c`, 65 characters, emoji). Most targets refuse that,
and plain sanitising makes two tools one. So each illegal name becomes a readable legal one with
a mark: a short hash of the original. A name that is too long loses its beginning: the end says what the tool does, and
the beginning is often the same for all tools of a server.

Laws: the map is injective and can be undone. A legal name stays as it is, at any position in the request. The
new name of an illegal one depends only on that name and the profile, so that it is the same in every request of
a conversation; only a collision, which the mark makes next to impossible, gives a longer mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from toolglot.errors import InputError, ProfileError, quote
from toolglot.profiles import Profile

__all__ = ["Chosen", "NameMap", "Rename", "choose_tools"]

Digest = Callable[[bytes], bytes]

MARK_LETTERS: Final = "bcdfghjklmnpqrstvwxz"
"""Legal in the names of every known target, and without vowels, so that a hash spells no word."""

MARK: Final = 8
LONG_MARK: Final = 16

MAX_STEPS: Final = 100_000
"""How far marks are counted up; only a pattern that hardly any name matches needs more."""

PLAIN: Final = re.compile(r"[^A-Za-z0-9_-]+")
SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Rename(Struct, frozen=True):
    """A name that the target does not accept, its replacement, and the rule that it broke."""

    original: str
    emitted: str
    reason: str


class Chosen(Struct, frozen=True):
    """The tools that a request declares, and those beyond the limit; both in their original order."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]


def _sha256(data: bytes) -> bytes:
    return sha256(data).digest()


def _letters(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(MARK_LETTERS))
        letters.append(MARK_LETTERS[letter])
    return "".join(letters)


class NameMap:
    """The names of one request: original → a name that the target accepts, and back.

    `names` are all of the request: those of declared tools in their order, then those that only calls of
    the history or the tool choice use. A name that comes twice is one tool.
    """

    def __init__(self, profile: Profile, names: Sequence[str], *, digest: Digest = _sha256) -> None:
        if not isinstance(profile, Profile):
            raise InputError(f"expected a Profile, got {quote(profile)}", path="profile", hint="profiles.get(name)")
        self._profile = profile
        self._max_length = profile.names.max_length
        self._legal = re.compile(profile.names.pattern)
        self._digest = digest
        self._emitted: dict[str, str] = {}
        self._originals: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        reasons = {name: self._objection(name) for name in _check_names(names, "names")}
        for name, reason in reasons.items():
            if reason is None:
                self._assign(name, name)
        for name, reason in reasons.items():
            if reason is not None:
                self._assign(name, self._new_name(name))
        self.renamed: tuple[Rename, ...] = tuple(
            Rename(name, self._emitted[name], reason) for name, reason in reasons.items() if reason is not None
        )
        """What was changed, in the order of the names."""

    def __getitem__(self, original: str) -> str:
        return self._emitted[original]

    def __contains__(self, original: object) -> bool:
        return original in self._emitted

    def __len__(self) -> int:
        return len(self._emitted)

    def original(self, emitted: str) -> str:
        """The tool that a reply means. A name that this map did not assign comes back as it is: the model made it
        up, or wrote the original, and the client must see what it wrote."""
        return self._originals.get(emitted, emitted)

    def _assign(self, original: str, emitted: str) -> None:
        self._emitted[original] = emitted
        self._originals[emitted] = original

    def _objection(self, name: str) -> str | None:
        """Why the target refuses a name, with the id of the rule; None if the name is legal."""
        if len(name) > self._max_length:
            return f"longer than {self._max_length} characters ({self._profile.origin('names.max_length').id})"
        if SURROGATE.search(name):
            return "half a character, which no request can hold"
        if not self._is_legal(name):
            return f"does not match {self._legal.pattern} ({self._profile.origin('names.pattern').id})"
        return None

    def _is_legal(self, name: str) -> bool:
        return len(name) <= self._max_length and self._legal.fullmatch(name) is not None

    def _new_name(self, name: str) -> str:
        number = int.from_bytes(self._digest(name.encode("utf-8", "surrogatepass")), "big")
        stems = _stems(name, self._max_length)
        any_legal = False
        for length in (MARK, LONG_MARK):
            found = self._marked_name(stems, _letters(number, min(length, self._max_length)))
            any_legal = any_legal or found is not None
            if found is not None and found not in self._originals:
                return found
        if not any_legal:
            raise self._no_legal_name()
        return self._count_up(stems, number)

    def _marked_name(self, stems: tuple[str, ...], mark: str) -> str | None:
        """The most readable legal name that ends with a mark."""
        shapes = _shapes(stems, mark, self._max_length)
        return next((shape for shape in shapes if self._is_legal(shape)), None)

    def _count_up(self, stems: tuple[str, ...], number: int) -> str:
        """A free name whose mark ends with a count. Counts that were tried are not tried again."""
        length = min(LONG_MARK, self._max_length)
        head = _letters(number, max(0, length - MARK))
        width = length - len(head)
        key = self._marked_name(stems, head + _letters(0, width)) or ""
        start = self._counts.get(key, 0)
        for count in range(start, min(start + MAX_STEPS, len(MARK_LETTERS) ** width)):
            found = self._marked_name(stems, head + _letters(count, width))
            if found is not None and found not in self._originals:
                self._counts[key] = count + 1
                return found
        raise self._no_legal_name()

    def _no_legal_name(self) -> ProfileError:
        return ProfileError(
            f"no free name of at most {self._max_length} characters matches {self._legal.pattern!r}",
            path=f"{self._profile.name}: names.pattern",
            hint="change names.pattern or names.max_length",
        )


def _stems(name: str, max_length: int) -> tuple[str, ...]:
    """The readable part of a name: first with all characters that targets usually allow, then ever plainer."""
    # Cut first, so that a name of any length costs no more than one of maximal length.
    stem = PLAIN.sub("_", name[-max_length:]).strip("_-")
    plain = stem.replace("-", "_")
    return (stem, plain, plain.lower())


def _shapes(stems: tuple[str, ...], mark: str, max_length: int) -> Iterator[str]:
    for stem in stems:
        for prefix in ("", "tool_"):
            end = _end_of(stem, max_length - len(prefix) - 1 - len(mark))
            if end:
                yield f"{prefix}{end}_{mark}"
    yield from (f"tool_{mark}", f"tool{mark}", mark)


def _end_of(stem: str, max_length: int) -> str:
    """The end of a stem, from the beginning of a word where that costs less than half of it."""
    if len(stem) <= max_length:
        return stem
    end = stem[len(stem) - max(0, max_length) :].lstrip("_-")
    words = end.partition("_")[2].lstrip("_-")
    return words if len(words) * 2 > max_length else end


def choose_tools(names: Sequence[str], used: Sequence[str], profile: Profile) -> Chosen:
    """The tools to declare if the target accepts fewer than there are.

    `used` are the tools that must stay, the most important first: the one that the tool choice names, then
    those that the history calls. After them the first tools of the request stay, up to the limit.
    """
    distinct = dict.fromkeys(_check_names(names, "names"))
    wanted = [name for name in dict.fromkeys(_check_names(used, "used")) if name in distinct]
    limit = profile.tools.max_count
    if limit is None or len(distinct) <= limit:
        return Chosen(tuple(distinct), ())
    by_importance = tuple(dict.fromkeys((*wanted, *distinct)))
    kept = frozenset(by_importance[: max(0, limit)])
    return Chosen(
        tuple(name for name in distinct if name in kept),
        tuple(name for name in distinct if name not in kept),
    )


def _check_names(names: Sequence[str], path: str) -> Sequence[str]:
    # A set has no fixed order: it would give another result in another process.
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(f"expected a list of names, got {quote(names)}", path=path)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"expected a name, got {quote(name)}", path=f"{path}[{position}]")
    return names

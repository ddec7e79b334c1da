"""What was changed, guessed or lost, and why: data, not log lines.

Law 10 (told): every repair, downgrade, rename, drop and guess is an `Entry`. A report with no entries
says that nothing was changed. Any layer may add to a report; none reads one to decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

Fault = Literal["canonical", "renderer", "projection", "policy", "loss"]
"""Whose fault a change answers: the conversation was corrupt, rendering or id projection could not keep
it, a policy decided, or the target has no place for it."""

Action = Literal[
    "canonicalised",
    "matched",
    "rematched",
    "orphaned",
    "set-aside",
    "superseded",
    "ignored",
    "cloned",
    "converted",
    "moved",
    "compressed",
    "deferred",
    "renamed",
    "filtered",
    "lowered",
    "replaced",
    "added",
    "assumed",
    "dropped",
    "mismatched",
]


SHOWN_IDS: Final = 6
"""How many ids the text of an entry lists; the entry has them all."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One change and its reason."""

    action: Action
    reason: str
    fault: Fault
    path: str = ""
    turn_key: str = ""
    turn: int | None = None
    """The turn's number in the conversation as it was given, from 0; a system prompt in a field of its own counts."""
    call_ids: tuple[str, ...] = ()
    """Canonical ids."""
    native_ids: tuple[str, ...] = ()
    """The same as the client wrote them, where it did."""
    target: str = ""

    def __str__(self) -> str:
        where = f" at {self.path}" if self.path else f" in turn {self.turn}" if self.turn is not None else ""
        ids_ = self.native_ids or self.call_ids
        about = ids_[:SHOWN_IDS] or ((self.turn_key,) if self.turn_key and not where else ())
        more = ("…",) if len(ids_) > SHOWN_IDS else ()
        ids = f" [{', '.join((*about, *more))}]" if about else ""
        return f"{self.action}{where}: {self.reason}{ids}"


class Ids(Struct, frozen=True, gc=False):
    """The ids of a render: those of the calls as a history knows them, and as the target sees calls and results."""

    canonical: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    format: str = ""


class Report:
    """An append-only list of entries, and the ids that were seen and emitted."""

    __slots__ = ("_entries", "_ids")

    def __init__(self, entries: tuple[Entry, ...] = (), *, ids: Callable[[], Ids] = Ids) -> None:
        self._entries = list(entries)
        self._ids = ids

    @property
    def ids(self) -> Ids:
        """The ids, also where nothing was changed. They are gathered when asked for."""
        return self._ids()

    @property
    def summary(self) -> str:
        """One line: how many changes of which kind."""
        counts: dict[str, int] = {}
        for entry in self._entries:
            counts[entry.action] = counts.get(entry.action, 0) + 1
        return ", ".join(f"{count} {action}" for action, count in counts.items()) or "nothing was changed"

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)

    def extend(self, entries: list[Entry]) -> None:
        self._entries.extend(entries)

    def to_json(self) -> bytes:
        return msgspec.json.encode({"entries": self._entries, "ids": self.ids})

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def __str__(self) -> str:
        return "\n".join(map(str, self._entries)) if self._entries else "nothing was changed"

    def __repr__(self) -> str:
        return f"<Report: {len(self._entries)} entries>"

"""What was changed, guessed or lost, and why: data, not log lines.

Law 10 (reported): every repair, downgrade, rename, drop and guess is an `Entry` and has a gravity. A report with
no entries means that nothing was changed. Any layer may add to a report; none reads one to decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

Fault = Literal["canonical", "renderer", "projection", "policy", "loss"]
"""Whose fault a change answers: the conversation was corrupt, rendering or id projection could not keep
it, a policy decided, or the target has no field for it."""

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
    "uncached",
]

Gravity = Literal["loss", "change", "housekeeping"]
"""How grave an entry is.

loss: the model or the client will not see part of the conversation, or a demand is not honoured.
change: something has another form, and means the same as far as the target allows.
housekeeping: the meaning is the same: settings that mean nothing to the target, ids that are mapped back.
"""

GRAVITIES: Final[tuple[Gravity, ...]] = ("loss", "change", "housekeeping")
"""The gravest first."""

_DERIVED: Final[dict[Action, Gravity]] = {
    "dropped": "loss",
    "compressed": "loss",
    "canonicalised": "housekeeping",
    "matched": "housekeeping",
    "deferred": "housekeeping",
}
"""The default gravity by action; every other action is a change."""


def gravity_of(action: Action) -> Gravity:
    """The default gravity of an action."""
    return _DERIVED.get(action, "change")


_PLURALS: Final[dict[Gravity, str]] = {"loss": "losses", "change": "changes", "housekeeping": "housekeeping"}

SHOWN_PATHS: Final = 20
"""How many paths an entry for several of them lists."""
SHOWN_IDS: Final = 6
"""How many ids the text of an entry lists; the entry has them all."""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One change and its reason.

    action: what was done.
    fault: what was wrong.
    path: where, as a JSON path.
    turn_key: the turn that it is about.
    target: the provider that demanded it.
    """

    action: Action
    reason: str
    fault: Fault
    path: str = ""
    turn_key: str = ""
    turn: int | None = None
    """The turn's index in the original conversation, from 0; a system prompt in a field of its own counts."""
    call_ids: tuple[str, ...] = ()
    """Canonical ids."""
    native_ids: tuple[str, ...] = ()
    """The same as the client wrote them, where it did."""
    target: str = ""
    gravity: Gravity = cast("Gravity", "")
    """By default, it follows from the action."""

    def __post_init__(self) -> None:
        if not self.gravity:
            force_setattr(self, "gravity", gravity_of(self.action))

    def __str__(self) -> str:
        where = f" at {self.path}" if self.path else f" in turn {self.turn}" if self.turn is not None else ""
        ids_ = self.native_ids or self.call_ids
        about = ids_[:SHOWN_IDS] or ((self.turn_key,) if self.turn_key and not where else ())
        more = ("…",) if len(ids_) > SHOWN_IDS else ()
        ids = f" [{', '.join((*about, *more))}]" if about else ""
        return f"{self.action}{where}: {self.reason}{ids}"


def join_alike(entries: Iterable[Entry], path: str) -> list[Entry]:
    """The entries, with those that differ in their paths only as one at `path`, which lists where it applies."""
    alike: dict[Entry, list[str]] = {}
    for entry in entries:
        alike.setdefault(replace(entry, path=""), []).append(entry.path)
    return [
        replace(entry, path=paths[0])
        if len(paths) == 1
        else replace(entry, path=path, reason=f"{entry.reason} ({len(paths)} times: {_listed(paths)})")
        for entry, paths in alike.items()
    ]


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    return ", ".join(paths[:SHOWN_PATHS]) + more


def count_gravities(entries: Iterable[Entry]) -> dict[Gravity, int]:
    """The number of entries of each gravity, the gravest first; zeros are left out."""
    counts: dict[Gravity, int] = dict.fromkeys(GRAVITIES, 0)
    for entry in entries:
        counts[entry.gravity] += 1
    return {gravity: count for gravity, count in counts.items() if count}


def summarise(entries: Iterable[Entry]) -> str:
    """One line: "1 loss, 2 changes, 9 housekeeping"; empty where there are no entries."""
    return describe_counts(count_gravities(entries))


def describe_counts(counts: Mapping[Gravity, int] | Mapping[str, int]) -> str:
    """The same line from counts; empty where all are zero."""
    by_gravity: Mapping[Any, int] = counts
    found = ((gravity, by_gravity.get(gravity, 0)) for gravity in GRAVITIES)
    return ", ".join([f"{count} {gravity if count == 1 else _PLURALS[gravity]}" for gravity, count in found if count])


def order_by_gravity(entries: Iterable[Entry]) -> list[Entry]:
    """The entries, the gravest first, otherwise in their order."""
    return sorted(entries, key=lambda entry: GRAVITIES.index(entry.gravity))


class Ids(Struct, frozen=True, gc=False):
    """The ids of a render: those of the calls as a history knows them, and as the target sees calls and results."""

    canonical: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    format: str = ""


class Report:
    """An append-only list of entries, and the ids that were seen and emitted.

    entries: what is known at once.
    ids: collects the ids; called when they are read.
    more: finds entries that take time to find; called once, when the report is read.
    """

    __slots__ = ("_found", "_ids", "_more")

    def __init__(
        self,
        entries: tuple[Entry, ...] = (),
        *,
        ids: Callable[[], Ids] = Ids,
        more: Callable[[], Iterable[Entry]] | None = None,
    ) -> None:
        self._found = list(entries)
        self._ids = ids
        self._more = more

    @property
    def _entries(self) -> list[Entry]:
        if self._more is not None:
            more, self._more = self._more, None
            self._found += more()
        return self._found

    @property
    def ids(self) -> Ids:
        """The ids, also where nothing was changed. They are collected on access."""
        return self._ids()

    @property
    def summary(self) -> str:
        """One line: how many losses, changes and housekeeping entries."""
        return summarise(self._entries) or "nothing was changed"

    @property
    def losses(self) -> tuple[Entry, ...]:
        """What the target does not see, or a demand that it does not honour."""
        return tuple(entry for entry in self._entries if entry.gravity == "loss")

    @property
    def changes(self) -> tuple[Entry, ...]:
        """What has another form."""
        return tuple(entry for entry in self._entries if entry.gravity == "change")

    @property
    def housekeeping(self) -> tuple[Entry, ...]:
        """What changes no meaning."""
        return tuple(entry for entry in self._entries if entry.gravity == "housekeeping")

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
        """Every entry in a line, losses first."""
        return "\n".join(map(str, order_by_gravity(self._entries))) if self._entries else "nothing was changed"

    def __repr__(self) -> str:
        return f"<Report: {len(self._entries)} entries>"

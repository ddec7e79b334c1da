"""The entries of a report, counted once: a request that is full of faults has tens of thousands of them.

    entries = count_entries(out.report.entries)     # where they are made, which is a thread if there are many
    entry_counts(entries).gravities                 # wherever they are reported: at no cost

Law: what the event loop does with a report takes the same time however many entries it has.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.conversation.report import GRAVITIES, Entry, Gravity

MANY: Final = 200
"""Entries that are worth counting ahead."""
SHOWN: Final = 3
"""Entries that a header shows."""
MAX_KINDS: Final = 500
"""Kinds of changes that are counted apart."""
MAX_REASON: Final = 1_000

_RULE: Final = re.compile(r"\(((?:default:)?[a-z0-9][a-z0-9_.-]{1,80})\)")

Kind = tuple[str, str, tuple[str, ...]]
"""An action, its gravity, and what may be the rule that demands it."""


class EntryCounts:
    """What is reported of entries."""

    __slots__ = ("gravest", "gravities", "kinds")

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        by_gravity: dict[Gravity, list[Entry]] = {gravity: [] for gravity in GRAVITIES}
        self.gravities: dict[Gravity, int] = {}
        """How many there are of each gravity, the gravest first."""
        self.kinds: dict[Kind, int] = {}
        for entry in entries:
            by_gravity[entry.gravity].append(entry)
            kind = (entry.action, entry.gravity, rules_in(entry.reason))
            if kind not in self.kinds and len(self.kinds) >= MAX_KINDS:
                kind = (entry.action, entry.gravity, ())
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.gravities = {gravity: len(found) for gravity, found in by_gravity.items() if found}
        self.gravest: list[Entry] = [entry for found in by_gravity.values() for entry in found[:SHOWN]][:SHOWN]


class CountedEntries(tuple[Entry, ...]):  # noqa: SLOT001 - it has to hold something
    """Entries that were counted."""

    counts: EntryCounts


def rules_in(reason: str) -> tuple[str, ...]:
    """What may be the name of a rule in the reason of a change."""
    return tuple(_RULE.findall(reason[:MAX_REASON])) if "(" in reason else ()


def count_entries(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The entries, counted if they are many."""
    if len(entries) <= MANY:
        return entries
    counted = CountedEntries(entries)
    counted.counts = EntryCounts(entries)
    return counted


def entry_counts(entries: tuple[Entry, ...]) -> EntryCounts:
    return entries.counts if type(entries) is CountedEntries else EntryCounts(entries)

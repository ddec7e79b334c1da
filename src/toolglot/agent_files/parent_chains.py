"""Records that name their parent: the chain from the last one to the first, as Claude Code, Qwen Code and pi walk it.

Law: linear, whatever the records say: a cycle ends the walk.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.agent_files.edits import Examination

MAX_STEPS: Final = 1000
"""Records before one in the file that are tried as its parent."""


class ChainRecord(Struct, frozen=True):
    """A record of a chain.

    line: its line in the file.
    id: its own id.
    parent: the id of the record before it; None for the first.
    value: the object.
    """

    line: int
    id: str
    parent: str | None
    value: dict[str, Any]
    is_root: bool = False
    """It begins a chain on purpose: the boundary of a compaction."""


def path_to(last: ChainRecord, records: Sequence[ChainRecord]) -> list[ChainRecord]:
    """The records from the first to `last`. An id that several have means the nearest before, or else the first."""
    places: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        places.setdefault(record.id, []).append(index)
    at = next(index for index in range(len(records) - 1, -1, -1) if records[index].line == last.line)
    path, seen = [last], {at}
    while (parent := records[at].parent) in places and parent is not None:
        found = places[parent]
        at = found[max(bisect.bisect_left(found, at) - 1, 0)]
        if at in seen:
            break
        seen.add(at)
        path.append(records[at])
    return path[::-1]


class ChainFields(Struct, frozen=True):
    """How an agent writes a chain.

    id: the field of a record's id.
    parent: the field of its parent's id.
    make_id: a new id, the same for the same text.
    """

    id: str
    parent: str
    make_id: Callable[[str], str]


def examine_chain(examination: Examination, records: Sequence[ChainRecord], fields: ChainFields) -> list[ChainRecord]:
    """Note what is wrong in the chain, and fix it. The records as they are after that."""
    return _examine_parents(examination, _examine_ids(examination, records, fields), fields)


def _examine_ids(examination: Examination, records: Sequence[ChainRecord], fields: ChainFields) -> list[ChainRecord]:
    """Every id once. Records behind a repeated id that name it mean the nearest record before them."""
    first: dict[str, ChainRecord] = {}
    meant: dict[str, str] = {}
    taken = {record.id for record in records}
    values: dict[str, dict[str, Any]] = {}
    ambiguous = {record.id for record in records if values.setdefault(record.id, record.value) != record.value}
    kept: list[ChainRecord] = []
    for record in records:
        parent = meant.get(record.parent, record.parent) if record.parent is not None else None
        before = first.get(record.id)
        if before is not None and before.value == record.value and record.parent not in ambiguous:
            examination.add(
                "duplicate-record",
                f"the record of line {before.line} is here again",
                record.line,
                "remove the second",
            )
            examination.remove(record.line)
            meant.pop(record.id, None)
            continue
        changed = ChainRecord(record.line, record.id, parent, record.value, record.is_root)
        if before is not None:
            new, salt = record.id, 0
            while new in taken:
                salt += 1
                new = fields.make_id(f"{record.id}|{record.line}|{salt}")
            taken.add(new)
            message = f"the id {record.id[:40]!r} is that of line {before.line} too: one of the two is never sent"
            examination.add("duplicate-id", message, record.line, "give the second an id of its own")
            meant[record.id] = new
            if parent == record.id:
                parent = before.id
            changed = ChainRecord(record.line, new, parent, record.value, record.is_root)
        else:
            first[record.id] = record
        if changed.id != record.id or changed.parent != record.parent:
            value = examination.value(record.line, record.value)
            examination.set_value(record.line, {**value, fields.id: changed.id, fields.parent: changed.parent})
        kept.append(changed)
    return kept


def _examine_parents(
    examination: Examination, records: Sequence[ChainRecord], fields: ChainFields
) -> list[ChainRecord]:
    """Every parent exists, and no record is its own ancestor."""
    trees = _Trees(records)
    out: list[ChainRecord] = []
    for index, record in enumerate(records):
        new = record.parent
        before = records[index - 1] if index else None
        if record.parent is not None and record.parent not in trees.index_by_id:
            # Nothing follows the record before this one, so this one was meant to; otherwise it may be a rewind.
            follows = trees.nearest_before(index)
            is_plain = before is None or not trees.has_children(before.id)
            at = f"to line {records[follows].line}" if follows is not None else "to nothing: it is the first"
            message = f"its parent {record.parent[:40]!r} is not in the file: everything before it is lost"
            if examination.add("dangling-parent", message, record.line, f"connect it {at}", only_if_asked=not is_plain):
                new = trees.connect(index, follows)
        elif index in trees.cut:
            fix = "connect it to a record before it in the file"
            examination.add("cycle", "it is its own ancestor", record.line, fix)
            new = trees.connect(index, trees.nearest_before(index))
        elif record.parent is None and not record.is_root:
            follows = trees.nearest_before(index)
            message = f"it begins a second chain: the {index} records before it are not sent (so it is after a rewind)"
            if follows is not None and examination.add(
                "second-start", message, record.line, f"connect it to line {records[follows].line}", only_if_asked=True
            ):
                new = trees.connect(index, follows)
        if new != record.parent:
            value = examination.value(record.line, record.value)
            examination.set_value(record.line, {**value, fields.parent: new})
            record = ChainRecord(record.line, record.id, new, record.value, record.is_root)  # noqa: PLW2901
        out.append(record)
    return out


class _Trees:
    """Which record belongs to which tree: a record may only follow one that does not come from it.

    cut: the records at which a walk from the last record of the file would go round in a circle.
    """

    def __init__(self, records: Sequence[ChainRecord]) -> None:
        self._records = records
        self.index_by_id = {record.id: index for index, record in enumerate(records)}
        self._parents = [
            self.index_by_id.get(record.parent) if record.parent is not None else None for record in records
        ]
        self._with_children = {record.parent for record in records}
        self.cut: set[int] = set()
        self._cut_cycles()
        self._up = [index if parent is None else parent for index, parent in enumerate(self._parents)]

    def _cut_cycles(self) -> None:
        state = [0] * len(self._parents)  # 0: not seen, 1: on the current walk, 2: done
        for start in range(len(self._parents) - 1, -1, -1):
            walk: list[int] = []
            at: int | None = start
            while at is not None and not state[at]:
                state[at] = 1
                walk.append(at)
                at = self._parents[at]
            if at is not None and state[at] == 1:
                self.cut.add(walk[-1])
                self._parents[walk[-1]] = None
            for index in walk:
                state[index] = 2

    def has_children(self, id: str) -> bool:
        return id in self._with_children

    def _root(self, index: int) -> int:
        path = [index]
        while self._up[path[-1]] != path[-1]:
            path.append(self._up[path[-1]])
        for each in path:
            self._up[each] = path[-1]
        return path[-1]

    def nearest_before(self, index: int) -> int | None:
        """The nearest record before this one that does not come from it."""
        for number in range(index - 1, max(index - 1 - MAX_STEPS, -1), -1):
            if self._root(number) != index:
                return number
        return None

    def connect(self, index: int, parent: int | None) -> str | None:
        """Let a record follow another, or none. Returns the id of the parent."""
        if parent is None:
            return None
        self._up[index] = parent
        return self._records[parent].id

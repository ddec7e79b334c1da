"""What a set of rows holds, and what is wrong with them: turns, calls by tool, failures, lengths, faults by class.

    stats = RowStats()
    for row in rows: stats.add(row, source="messages")
    stats.merge(other)

Law: pure and mergeable: the order of rows and parts changes nothing. What is counted by name is bounded.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from toolglot.bulk.batch import InputRow, read_example
from toolglot.bulk.example import Example
from toolglot.bulk.options import DEFAULT_OPTIONS, BulkOptions
from toolglot.bulk.shaping import has_failed_call, is_failed
from toolglot.conversation import Block, Media, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.errors import InputError

MAX_NAMES: Final = 10_000
"""How many different names are counted; the calls of others are counted together."""
OTHERS: Final = "(others)"
SCALE: Final = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Lengths of rows, in characters: the upper ends of the groups but the last."""

TURNS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Numbers of turns of rows: the same."""


class RowStats:
    """The counts of rows."""

    def __init__(self) -> None:
        self.rows = Counter[str]()
        """Rows: `read`, `set_aside`, `with_tools`, `with_calls`, `with_failures`, `preferences`."""
        self.turns = Counter[str]()
        self.blocks = Counter[str]()
        self.calls = Counter[str]()
        self.failures = Counter[str]()
        self.models = Counter[str]()
        self.providers = Counter[str]()
        """For whom the rows were written, where a row says so."""
        self.lengths = Counter[int]()
        self.turn_counts = Counter[int]()
        self.faults = Counter[str]()
        self.fault_classes = Counter[str]()
        self.characters = 0

    def add(self, row: InputRow, source: str, options: BulkOptions = DEFAULT_OPTIONS) -> None:
        """Count a row."""
        self.rows["rows"] += 1
        try:
            example, entries = read_example(row, source, options)
        except (InputError, RecursionError) as error:
            self.rows["set_aside"] += 1
            reason = error.message if isinstance(error, InputError) else "nests too deeply"
            self._count(self.faults, f"set aside: {reason[:160]}")
            self.fault_classes["set aside"] += 1
            return
        self.rows["read"] += 1
        for entry in entries:
            self._count(self.faults, f"{entry.gravity}: {entry.reason[:160]}")
            self.fault_classes[f"{entry.gravity}: {entry.action}"] += 1
        self._add_example(example)

    def _add_example(self, example: Example) -> None:
        conversation = example.conversation
        length = 0
        names: dict[str, str] = {}
        self.rows["preferences"] += example.is_preference
        self.rows["with_tools"] += bool(conversation.tools)
        if conversation.model:
            self._count(self.models, conversation.model[:100])
        if example.source:
            self._count(self.providers, example.source)
        for turn in conversation.turns:
            self.turns[turn.role] += 1
            length += self._add_turn(turn, names)
        self.rows["with_calls"] += any(turn.calls for turn in conversation.turns)
        self.rows["with_failures"] += has_failed_call(example)
        self.characters += length
        self.lengths[_group(length, SCALE)] += 1
        self.turn_counts[_group(len(conversation.turns), TURNS)] += 1

    def _add_turn(self, turn: Turn, names: dict[str, str]) -> int:
        length = 0
        for block in turn.blocks:
            self.blocks[type(block).__name__] += 1
            length += _length(block)
            if isinstance(block, ToolCall):
                names[block.id] = block.name
                self._count(self.calls, block.name[:100])
            elif isinstance(block, ToolResult) and is_failed(block):
                self._count(self.failures, (block.name or names.get(block.call_id, ""))[:100])
        return length

    def _count(self, counts: Counter[str], name: str) -> None:
        counts[name if name in counts or len(counts) < MAX_NAMES else OTHERS] += 1

    def merge(self, other: RowStats) -> None:
        """Add the counts of other rows."""
        for name, counts in vars(other).items():
            if isinstance(counts, Counter):
                getattr(self, name).update(counts)
        self.characters += other.characters

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": dict(sorted(self.rows.items())),
            "characters": self.characters,
            "turns": dict(self.turns.most_common()),
            "blocks": dict(self.blocks.most_common()),
            "calls": [
                {"tool": name, "calls": count, "failures": self.failures.get(name, 0)}
                for name, count in _ordered(self.calls)
            ],
            "providers": dict(_ordered(self.providers)),
            "models": dict(_ordered(self.models)),
            "lengths": _groups(self.lengths, SCALE),
            "turns_of_rows": _groups(self.turn_counts, TURNS),
            "fault_classes": dict(_ordered(self.fault_classes)),
            "faults": dict(_ordered(self.faults)),
        }


def _group(value: int, scale: tuple[int, ...]) -> int:
    """The upper end of the group of a value; 0 for the last one, which has none."""
    return next((end for end in scale if value <= end), 0)


def _groups(counts: Counter[int], scale: tuple[int, ...]) -> list[dict[str, int | None]]:
    return [{"up_to": end or None, "rows": counts.get(end, 0)} for end in (*scale, 0)]


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _length(block: Block) -> int:
    if isinstance(block, Text | Thinking):
        return len(block.text)
    if isinstance(block, ToolCall):
        return len(block.name) + len(str(block.arguments or block.raw_input or ""))
    if isinstance(block, ToolResult):
        return len(block.text)
    return len(block.data or block.url or "") if isinstance(block, Media) else 0

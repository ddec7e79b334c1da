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
from toolglot.bulk.shaping import has_failed_call
from toolglot.conversation import Block, Media, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.errors import InputError

MAX_NAMES: Final = 10_000
"""How many different names are counted; the calls of others are counted together."""
OTHERS: Final = "(others)"
SCALE: Final = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Lengths of rows, in characters: the upper ends of the groups but the last."""


class RowStats:
    """The counts of rows."""

    def __init__(self) -> None:
        self.rows = Counter[str]()
        """Rows: `read`, `set_aside`, `with_calls`, `with_failures`, `preferences`, `trained`."""
        self.turns = Counter[str]()
        self.blocks = Counter[str]()
        self.calls = Counter[str]()
        self.failures = Counter[str]()
        self.providers = Counter[str]()
        self.lengths = Counter[int]()
        self.faults = Counter[str]()
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
            return
        self.rows["read"] += 1
        for entry in entries:
            self._count(self.faults, f"{entry.gravity}: {entry.reason[:160]}")
        self._add_example(example)

    def _add_example(self, example: Example) -> None:
        conversation = example.conversation
        length = 0
        names: dict[str, str] = {}
        self.rows["preferences"] += example.is_preference
        self.rows["with_tools"] += bool(conversation.tools)
        if conversation.model:
            self._count(self.providers, conversation.model[:100])
        for turn in conversation.turns:
            self.turns[turn.role] += 1
            length += self._add_turn(turn, names)
        self.rows["with_calls"] += any(turn.calls for turn in conversation.turns)
        self.rows["with_failures"] += has_failed_call(example)
        self.characters += length
        self.lengths[next((end for end in SCALE if length <= end), 0)] += 1

    def _add_turn(self, turn: Turn, names: dict[str, str]) -> int:
        length = 0
        for block in turn.blocks:
            self.blocks[type(block).__name__] += 1
            length += _length(block)
            if isinstance(block, ToolCall):
                names[block.id] = block.name
                self._count(self.calls, block.name[:100])
            elif isinstance(block, ToolResult) and (block.is_error or block.text.lstrip()[:6].lower() == "error:"):
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
            "models": dict(_ordered(self.providers)),
            "lengths": [{"up_to": end or None, "rows": self.lengths.get(end, 0)} for end in (*SCALE, 0)],
            "faults": dict(_ordered(self.faults)),
        }


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

"""What an example means, apart from how it is written: two rows that say the same have equal meanings.

Ids count only as far as they pair calls and results; texts of a turn are one text; white space around it does not
count. It is used to check what a format in text reads back, and to find rows that are the beginning of others.

Law: pure, and linear in the size of the example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from toolglot.bulk.example import Example
from toolglot.conversation import Block, Media, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.jsontext import compact

Meaning = tuple[Any, ...]


def meaning(example: Example) -> Meaning:
    """The meaning of an example."""
    answers = (turns_meaning(answer) for answer in (example.preferred, example.rejected) if answer is not None)
    tools = tuple(sorted(map(_tool, example.conversation.tools)))
    return (tools, tuple(turns_meaning(example.conversation.turns)), *map(tuple, answers))


def turns_meaning(turns: Iterable[Turn]) -> Iterator[Meaning]:
    """The meaning of each speaker's part, one after the other; turns of one speaker in a row are one part."""
    calls = _Calls()
    role, parts = "", list[Meaning]()
    for turn in turns:
        blocks = list(_blocks(turn, calls))
        speaker = _speaker(turn, blocks)
        if all(block[0] in ("text", "thinking") and not block[1].strip() for block in blocks):
            continue
        if role and speaker != role:
            yield (role, *_joined(parts))
            parts = []
        role = speaker
        parts += blocks
    if role:
        yield (role, *_joined(parts))


def prefix_hashes(example: Example) -> list[bytes]:
    """A hash of the example's beginning after each part; the last one is that of all of it."""
    state = blake2b(digest_size=16)
    state.update(msgspec.json.encode(sorted(tool.name for tool in example.conversation.tools)))
    found = []
    for part in turns_meaning(example.conversation.turns):
        state.update(msgspec.json.encode(part))
        found.append(state.copy().digest())
    return found


def _speaker(turn: Turn, blocks: list[Meaning]) -> str:
    if blocks and all(block[0] == "result" for block in blocks):
        return "tool"
    return "system" if turn.role == "developer" else turn.role


def _joined(parts: list[Meaning]) -> Iterator[Meaning]:
    """The parts of a turn: thinking, text, the rest in order."""
    for kind in ("thinking", "text"):
        said = "".join(part[1] for part in parts if part[0] == kind).strip()
        if said:
            yield (kind, said)
    yield from (part for part in parts if part[0] not in ("thinking", "text"))


class _Calls:
    """The calls so far: which of them a result answers. Without an id, that is the first open call of its name, or
    else the first."""

    def __init__(self) -> None:
        self._count = 0
        self._by_id: dict[str, int] = {}
        self._open: dict[int, str] = {}

    def add(self, call: ToolCall) -> None:
        if call.id:
            self._by_id[call.id] = self._count
        self._open[self._count] = call.name
        self._count += 1

    def answered_by(self, result: ToolResult) -> int:
        number = self._by_id.get(result.call_id) if result.call_id else None
        if number is None:
            named = (number for number, name in self._open.items() if name == result.name)
            number = next(named, next(iter(self._open), -1))
        self._open.pop(number, None)
        return number


def _blocks(turn: Turn, calls: _Calls) -> Iterator[Meaning]:
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            calls.add(block)
            yield ("call", block.name, _arguments(block))
        elif isinstance(block, ToolResult):
            yield ("result", calls.answered_by(block), _result_text(block))
        else:
            yield from _other(block)


def _other(block: Block) -> Iterator[Meaning]:
    if isinstance(block, Text):
        if block.text:
            yield ("text", block.text)
    elif isinstance(block, Thinking):
        if block.text:
            yield ("thinking", block.text)
    elif isinstance(block, Media):
        yield ("media", block.kind, block.data or block.url or block.file_id or "")


def _result_text(result: ToolResult) -> str:
    return str(result.to_openai()["content"])


def _arguments(call: ToolCall) -> str:
    if call.arguments is None:
        return call.raw_input or "{}"
    return _sorted_json(call.arguments)


def _tool(tool: ToolSpec) -> tuple[str, str, str]:
    parameters = tool.parameters
    if not parameters or (parameters.get("type") == "object" and not parameters.get("properties")):
        parameters = {}
    return (tool.name, tool.description or "", _sorted_json(parameters))


def _sorted_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except (TypeError, ValueError, RecursionError):  # half a surrogate pair, which a text may hold
        return compact(value)

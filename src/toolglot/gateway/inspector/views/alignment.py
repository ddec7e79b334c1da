"""Which messages of a body each canonical turn stands in.

    places = align(anchors_of_turns, items)          # [(0, 0), (1, 2), (3, 3), None]: first and last message

A turn is recognised by what it says: its texts, its ids, the strings of its arguments. Turns and messages come in the
same order, but a target may join turns, or split them. Where a body has one message for each turn, nothing has to be
compared.

Law: linear in the strings of both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolglot.conversation import Media, Text, Thinking, ToolCall, ToolResult, Turn

STRONG: Final = 16
"""Characters of a string that is hardly in two messages by chance."""
NEAR: Final = 8
"""Turns ahead that a message may be of by its weak strings alone."""
_MAX_STRINGS: Final = 200_000
"""Strings of a body that are looked at."""
_MAX_HOLDERS: Final = 4
"""Turns that have the same string, and are considered for one message."""
_MAX_ANCHORS: Final = 64
"""Strings of a turn that are looked for."""


def turn_anchors(turn: Turn, sent_ids: dict[str, str]) -> list[str]:
    """Strings that a message has if it holds the turn. `sent_ids`: the ids of calls, as they were sent."""
    found: list[str] = []
    for block in turn.blocks[:_MAX_ANCHORS]:
        if isinstance(block, Text | Thinking):
            found.append(block.text)
        elif isinstance(block, ToolCall):
            found += [sent_ids.get(block.id, ""), block.id, block.name, block.raw_input or ""]
            found += [*_strings(block.arguments)][:4]
        elif isinstance(block, ToolResult):
            found += [sent_ids.get(block.call_id, ""), block.call_id]
            found += [block.content] if isinstance(block.content, str) else _texts(block.content or ())
        elif isinstance(block, Media):
            found += [block.data or "", block.url or ""]
    return [anchor for anchor in found if anchor][:_MAX_ANCHORS]


def _texts(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        text = getattr(part, "text", None)
        if isinstance(text, str):
            yield text


def _strings(value: Any) -> Iterator[str]:
    """The strings in a JSON value, but for the keys of objects."""
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, str):
            yield held
        elif isinstance(held, dict):
            waiting.extend(reversed(list(held.values())))
        elif isinstance(held, list | tuple):
            waiting.extend(reversed(held))


Place = tuple[int, int]
"""The first and the last message."""


def one_to_one(turns: Sequence[Turn], items: int) -> list[Place | None] | None:
    """The places, if a body has one message for each turn but for a system prompt at the head; None: it has not."""
    lead = len(turns) - items
    if lead not in (0, 1) or (lead and turns[0].role != "system"):
        return None
    return [*([None] * lead), *((index, index) for index in range(items))]


def align(turns: Sequence[list[str]], items: Sequence[Any]) -> list[Place | None]:
    """The messages that hold each turn, by the anchors of the turns; None: none was found."""
    holders: dict[str, list[int]] = {}
    for index, anchors in enumerate(turns):
        for anchor in dict.fromkeys(anchors):
            holders.setdefault(anchor, []).append(index)
    places: list[Place | None] = [None] * len(turns)
    current, left = 0, _MAX_STRINGS
    seen: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        strings = {*_strings(item)}
        left -= len(strings)
        if left < 0:
            break
        for text in strings & holders.keys():
            seen.setdefault(text, []).append(index)
        turn = _turn_of(strings, holders, current)
        if turn is not None:
            known = places[turn]
            places[turn] = (index, index) if known is None else (known[0], index)
            current = turn
    _find_joined(turns, places, seen)
    return places


def _turn_of(strings: set[str], holders: dict[str, list[int]], current: int) -> int | None:
    """The turn that a message is most likely of: the current one, or one that comes soon."""
    scores: dict[int, int] = {}
    for text in strings:
        known = holders.get(text)
        if known is None:
            continue
        position = bisect_left(known, current)
        for turn in known[position : position + _MAX_HOLDERS]:
            if len(text) >= STRONG or turn <= current + NEAR:
                scores[turn] = scores.get(turn, 0) + 1
    return min(scores, key=lambda turn: (-scores[turn], turn), default=None)


def _find_joined(turns: Sequence[list[str]], places: list[Place | None], seen: dict[str, list[int]]) -> None:
    """Find the turns that share a message with the turn before or after them."""
    last = 0
    for index, anchors in enumerate(turns):
        place = places[index]
        if place is not None:
            last = place[1]
            continue
        for anchor in anchors:
            known = seen.get(anchor, [])
            position = bisect_left(known, last)
            if position < len(known) and known[position] <= last + 1:
                places[index] = (known[position], known[position])
                break

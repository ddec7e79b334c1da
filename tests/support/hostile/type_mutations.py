"""JSON documents with one thing wrong: each value replaced by every type of JSON, removed, repeated, wrapped.

    for slot in slots(body):                          # every value of the document, and the document itself
        for change in CHANGES:
            data = mutated(body, slot, change)        # the JSON text with that change

The document itself is not changed. `shape_of` names a slot without its positions, so that a value that stands in many
places is changed in one of them.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

Slot = tuple[str | int, ...]
"""The keys and indices that lead to a value from the root."""
Change = tuple[str, Callable[[Any], Any]]
"""What is done to a value, and the value that it becomes."""

HALF_A_PAIR: Final = "\ud83d"
"""The first half of a surrogate pair: a string of Python's may hold it, a text in UTF-8 may not."""
SURROGATE: Final = f"half a pair {HALF_A_PAIR}"
_TWICE: Final = "~twice~"
"""Ends a key that is written without it: the object has the key twice then."""


class _Removed:
    """Instead of a value: its key or index is taken out."""


class _Twice:
    """Instead of a value: it stands there a second time."""


REMOVED: Final = _Removed()
TWICE: Final = _Twice()


def nested(depth: int, *, in_objects: bool = False) -> Any:
    """A value that deep."""
    value: Any = "end"
    for _ in range(depth):
        value = {"type": "object", "content": value} if in_objects else [value]
    return value


VALUES: Final[dict[str, Any]] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "minus one": -1,
    "a fraction": 0.5,
    "1e308": 1e308,
    "infinity": float("inf"),
    "a huge number": 10**4000,
    "a number that Python does not print": 10**5000,
    "2**63": 2**63,
    "an empty string": "",
    "a string": "x",
    "a string with NUL": "a\x00b",
    "half a surrogate pair": SURROGATE,
    "a long string": "x" * 3000,
    "a string of an object": '{"a": 1}',
    "an empty array": [],
    "an array of null": [None],
    "an array of a string": ["x"],
    "an array of an array": [[]],
    "an array of an object": [{}],
    "an array of a block": [{"type": "text", "text": None}],
    "an empty object": {},
    "an object": {"a": None, "name": 7, "id": [], "role": {}},
    "a type of null": {"type": None},
    "a type of an array": {"type": ["string", 7]},
    "a text": {"type": "text", "text": 7},
    "an old call": {"type": "function_call", "name": {}, "arguments": [], "function_call": True},
    "a call": {"type": "function", "function": None, "id": {}},
    "a use": {"type": "tool_use", "input": "x", "toolUse": [], "functionCall": 7},
    "a result": {"type": "tool_result", "content": {}, "tool_use_id": None, "functionResponse": None},
    "90 arrays": nested(90),
    "90 objects": nested(90, in_objects=True),
    "5,000 arrays": nested(5000),
}
"""A value of each type of JSON, at the edges of the type, and objects that look like blocks."""


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


CHANGES: Final[tuple[Change, ...]] = (
    *((name, _constant(value)) for name, value in VALUES.items()),
    ("removed", _constant(REMOVED)),
    ("twice", _constant(TWICE)),
    ("in an array", lambda value: [value]),
    ("in an object", lambda value: {"type": "object", "value": value}),
    ("as JSON in a string", lambda value: _encode(value)),  # noqa: PLW0108 - it is defined below
)


def slots(body: Any, steps: Slot = ()) -> Iterator[Slot]:
    """Where the values of a document are, the document itself first."""
    yield steps
    if isinstance(body, dict):
        for key, value in body.items():
            yield from slots(value, (*steps, key))
    elif isinstance(body, list):
        for index, value in enumerate(body):
            yield from slots(value, (*steps, index))


def shape_of(body: Any, slot: Slot) -> str:
    """A slot without positions, and with the kinds of the blocks that hold it."""
    words, value = [], body
    for step in slot:
        kind = value.get("type") or value.get("role") if isinstance(value, dict) else None
        words.append(f"({kind})" if isinstance(kind, str) else "")
        words.append("[]" if isinstance(step, int) else f".{step}")
        value = value[step]
    return "".join(words)


def distinct_slots(bodies: list[Any]) -> list[tuple[Any, Slot]]:
    """The slots of some documents, each shape once."""
    found: dict[str, tuple[Any, Slot]] = {}
    for body in bodies:
        for slot in slots(body):
            found.setdefault(shape_of(body, slot), (body, slot))
    return list(found.values())


def changed(body: Any, slot: Slot, change: Change) -> Any:
    """The document with a change: containers on the way are copied, the rest is shared."""
    if not slot:
        value = change[1](body)
        return {} if isinstance(value, _Removed | _Twice) else value
    step, rest = slot[0], slot[1:]
    copied = body.copy()
    if rest:
        copied[step] = changed(body[step], rest, change)
        return copied
    value = change[1](body[step])
    if isinstance(value, _Removed):
        del copied[step]
    elif not isinstance(value, _Twice):
        copied[step] = value
    elif isinstance(copied, list):
        copied.insert(int(step), body[step])
    else:
        copied[f"{step}{_TWICE}"] = body[step]
    return copied


def json_text(value: Any) -> bytes:
    """A document as JSON. What is twice is written twice, and a number that JSON does not have as a large one."""
    text = _encode(value).replace(f'{_TWICE}"', '"')
    return text.replace("Infinity", "1e999").encode()


def _encode(value: Any) -> str:
    try:
        return json.dumps(value)
    except (RecursionError, ValueError):
        text = json.dumps(_shallow(value)).replace('"~huge~"', "1" + "0" * 5000)
        return re.sub(r'"~(\d+) deep~"', lambda found: "[" * int(found[1]) + '"end"' + "]" * int(found[1]), text)


def _shallow(value: Any) -> Any:
    """The document with words instead of what Python's own writer does not write: deep arrays, and a huge number."""
    if isinstance(value, int) and value > 10**4290:
        return "~huge~"
    depth, inner = 0, value
    while isinstance(inner, list) and len(inner) == 1:
        depth, inner = depth + 1, inner[0]
    if depth > 500:
        return f"~{depth} deep~"
    if isinstance(value, dict):
        return {key: _shallow(inner) for key, inner in value.items()}
    return [_shallow(inner) for inner in value] if isinstance(value, list) else value


def mutated(body: Any, slot: Slot, change: Change) -> bytes:
    return json_text(changed(body, slot, change))


def random_mutation(body: Any, draw: random.Random, others: list[Any]) -> tuple[Any, str]:
    """A document with one to three changes, also a part of another document instead of a value, and what was done."""
    done = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        all_slots = list(slots(body))
        slot = draw.choice(all_slots)
        if others and draw.random() < 0.2:
            other = draw.choice(others)
            part = _at(other, draw.choice(list(slots(other))))
            change: Change = ("a part of another", _constant(part))
        else:
            change = draw.choice(CHANGES)
        done.append(f"{path_of(slot)}: {change[0]}")
        body = changed(body, slot, change)
        if not isinstance(body, dict | list) or not body or "5,000 arrays" in change[0]:
            break
    return body, "; ".join(done)


def path_of(slot: Slot) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in slot)


def _at(body: Any, slot: Slot) -> Any:
    for step in slot:
        body = body[step]
    return body

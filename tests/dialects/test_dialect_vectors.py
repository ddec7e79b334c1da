"""What every dialect reads: written examples, each read whole and in every way that it can be cut."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dialect_cases import streamed, vectors
from event_grammar import check
from toolglot.conversation.events import Finished, Started
from toolglot.dialects import registry
from toolglot.dialects.text_stream import Said, parse_text, said

FEWEST = 15


def plain(found: Said) -> tuple[Any, ...]:
    calls = [(call.name, call.arguments) for call in found.calls]
    return found.text, found.thinking, calls, [call.name for call in found.cut]


CASES = [pytest.param(dialect, vector, tools, id=f"{dialect}-{vector['name']}") for dialect, vector, tools in vectors()]


@pytest.mark.parametrize(("dialect", "vector", "tools"), CASES)
def test_a_dialect_is_read_as_it_is_meant_however_it_is_cut(
    dialect: str, vector: dict[str, Any], tools: list[Any]
) -> None:
    text, tools = vector["text"], vector.get("tools", tools)
    whole = parse_text(text, dialect=dialect, tools=tools)
    wanted = vector["said"]
    assert plain(whole) == (
        wanted.get("text", ""),
        wanted.get("thinking", ""),
        [(call["name"], call["arguments"]) for call in wanted.get("calls", [])],
        [call["name"] for call in wanted.get("cut", [])],
    )
    ids = [call["id"] for call in wanted.get("calls", []) if "id" in call]
    if ids:
        assert [call.id for call in whole.calls] == ids
    chance = random.Random(text)  # noqa: S311 - the same cuts each time
    cuts = [list(range(0, len(text), step)) for step in (1, 3, 7)]
    cuts += [sorted(chance.sample(range(len(text) + 1), min(len(text), 5))) for _ in range(10)]
    for each in cuts:
        events = streamed(text, each, dialect, tools)
        check([Started(), *events, Finished("stop")])
        assert said(events) == whole, each


def test_every_dialect_has_its_examples() -> None:
    counts = dict.fromkeys(
        (name for name in registry.names() if not name.startswith("own_")), 0
    )  # others are of other tests
    for dialect, _, _ in vectors():
        counts[dialect] += 1
    assert {name: count for name, count in counts.items() if count < FEWEST} == {}

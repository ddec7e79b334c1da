"""`max_nodes` and `max_depth` hold for every body, whatever reads it, and refuse nothing that is within them."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from support.conversations.strategies import json_values
from support.counted_work import steps_of
from toolglot import LimitError, Limits, jsontext
from toolglot.conversation.tool_memory import ToolMemory
from toolglot.translate.requests import read_request

TOOLS = [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}]


def body(value: Any, tools: Any = TOOLS) -> dict[str, Any]:
    """A request with a call whose argument is the value."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": value}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}]
    messages = [*turns, {"role": "user", "content": [result]}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, "tools": tools}


def reply(value: Any) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": value}}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    return {**head, "content": [call], "usage": {"input_tokens": 1, "output_tokens": 1}}


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


def read_all_ways(value: Any, limits: Limits) -> None:
    """Read a request and a reply that hold the value: by the library, and by a gateway that knows the tools or not."""
    data = written(body(value))
    toolglot.convert(data, source="anthropic", target="anthropic", limits=limits)
    memory = ToolMemory()
    read_request(written(body("x")), source="anthropic", memory=memory)
    for known in (ToolMemory(), memory):
        read_request(data, source="anthropic", limits=limits, memory=known)
    toolglot.convert_reply(written(reply(value)), source="anthropic", target="anthropic", limits=limits)


def ways_that_refuse(value: Any, limits: Limits, match: str) -> None:
    data, memory = written(body(value)), ToolMemory()
    read_request(written(body("x")), source="anthropic", memory=memory)
    for known in (None, ToolMemory(), memory):
        with pytest.raises(LimitError, match=match):
            read_request(data, source="anthropic", limits=limits, memory=known)
    with pytest.raises(LimitError, match=match):
        read_request(data.decode(), source="anthropic", limits=limits)
    with pytest.raises(LimitError, match=match):
        toolglot.convert_reply(written(reply(value)), source="anthropic", target="anthropic", limits=limits)


AROUND, AROUND_REPLY = 7, 5
"""Objects and lists around the innermost value, of a request and of a reply."""


@pytest.mark.parametrize("beside", [0, 30_000])
def test_max_depth_holds_for_bodies_that_are_in_order(beside: int) -> None:
    padding = "x" * beside
    read_all_ways([padding, nested(200 - AROUND)], Limits())
    with pytest.raises(LimitError, match="max_depth=200"):
        read_request(written(body([padding, nested(201 - AROUND)])), source="anthropic")
    ways_that_refuse([padding, nested(201 - AROUND_REPLY)], Limits(), "max_depth=200")


def test_tools_are_no_way_around_max_depth() -> None:
    deep = [{"name": "f", "input_schema": {"type": "object", "properties": {}, "examples": nested(200)}}]
    memory = ToolMemory()
    for _ in range(2):
        with pytest.raises(LimitError, match="max_depth=200"):
            read_request(written(body("x", deep)), source="anthropic", memory=memory)


def test_max_nodes_holds_for_bodies_that_are_in_order() -> None:
    limits = Limits(max_nodes=1000)
    read_all_ways([0] * 900, limits)
    ways_that_refuse([0] * 1100, limits, "max_nodes=1000")
    ways_that_refuse({f"k{number}": "" for number in range(1100)}, limits, "max_nodes=1000")


def test_what_looks_like_values_within_a_string_is_not_counted() -> None:
    read_all_ways('a,b,[c],{"d":"e\\"}' * 2000, Limits(max_nodes=1000))


def test_default_limits_refuse_millions_of_values_before_they_are_read() -> None:
    values = b",".join([b"0"] * 2_100_000)
    data = written(body("?")).replace(b'"?"', b"[" + values + b"]")

    def refuse() -> None:
        with pytest.raises(LimitError, match="max_nodes=2000000"):
            read_request(data, source="anthropic")

    assert steps_of(refuse) < 10_000


@pytest.mark.parametrize("target", ["anthropic", "openai"])
def test_one_event_of_a_stream_has_no_more_values_than_a_body_may_have(target: str) -> None:
    def read(count: int) -> toolglot.StreamTranslator:
        start = {"type": "message_start", "message": {**reply(""), "content": [], "odd": [0] * count}}
        translator = toolglot.StreamTranslator(source="anthropic", target=target, limits=Limits(max_nodes=1000))
        translator.feed(b"event: message_start\ndata: " + written(start) + b"\n\n")
        return translator

    assert read(900).failure is None
    failure = read(1100).failure
    assert failure is not None
    assert "max_nodes=1000" in failure.message


FIRST_EVENTS: dict[str, Callable[[Any], bytes]] = {
    "anthropic": lambda odd: sse({"type": "message_start", "message": {**reply(""), "content": [], "odd": odd}}),
    "openai_chat": lambda odd: sse({"choices": [{"index": 0, "delta": {"role": "assistant", "odd": odd}}]}),
    "openai_responses": lambda odd: sse({"type": "response.created", "response": {"id": "resp_1", "odd": odd}}),
    "gemini": lambda odd: sse(
        {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": odd}}]}}]}
    ),
    "ollama": lambda odd: written({"message": {"role": "assistant", "content": "", "odd": odd}}) + b"\n",
}
"""The first event of a stream, with a value that may be anything."""


def sse(event: dict[str, Any]) -> bytes:
    return b"data: " + written(event) + b"\n\n"


@pytest.mark.parametrize("beside", ["", "[{" * 500, "\\ud800"], ids=["alone", "brackets in a string", "half a pair"])
@pytest.mark.parametrize("source", FIRST_EVENTS)
@pytest.mark.parametrize("target", ["anthropic", "openai"])
def test_one_event_of_a_stream_nests_no_deeper_than_a_body_may(source: str, target: str, beside: str) -> None:
    def failure_of(depth: int, pieces: int) -> toolglot.Failure | None:
        """What comes of an event of this depth, which comes in so many pieces."""
        event = FIRST_EVENTS[source]({"beside": beside, "a": "?"}).replace(b"\\\\ud800", b"\\ud800")
        around = depth_of(json.loads(event.removeprefix(b"data: ")))
        event = event.replace(b'"?"', written(nested(depth - around)))
        translator = toolglot.StreamTranslator(source=source, target=target)
        for start in range(0, len(event), size := -(-len(event) // pieces)):
            translator.feed(event[start : start + size])
        return translator.failure

    assert failure_of(200, 1) is None
    for pieces in (1, 3):
        failure = failure_of(201, pieces)
        assert failure is not None
        assert "max_depth=200" in failure.message


def depth_of(value: Any) -> int:
    """How deep a value nests, as anybody would write it."""
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


def wrapped(inner: Any, around: list[tuple[str, Any]]) -> Any:
    """A value within lists and objects, each with another value before or after it."""
    for kind, other in around:
        inner = {"list": [other, inner], "last": [inner, other], "only": [inner], "object": {"a": other, "b": inner}}[
            kind
        ]
    return inner


LAYERS = st.lists(st.tuples(st.sampled_from(["list", "last", "only", "object"]), json_values), max_size=12)


@given(st.builds(wrapped, json_values, LAYERS), st.integers(1, 16), st.booleans())
def test_depths_are_those_of_a_plain_recursion(value: Any, allowed: int, is_spaced: bool) -> None:
    text = json.dumps(value, indent=1 if is_spaced else None, ensure_ascii=is_spaced).encode()
    limits, fits = Limits(max_depth=allowed), depth_of(value) <= allowed
    for check in (
        lambda: jsontext.refuse_deep(text, value, limits, "$"),
        lambda: jsontext.refuse_deep_text(text, limits, "$"),
        lambda: jsontext.parse(text, limits=limits),
        lambda: jsontext.parse_plain(text, limits=limits),
    ):
        with contextlib.nullcontext() if fits else pytest.raises(LimitError, match=f"max_depth={allowed} at"):
            check()


@given(json_values)
def test_levels_hold_every_value_once(value: Any) -> None:
    assert sum(map(len, jsontext.levels(value))) == jsontext.clone(value).nodes
    assert len(list(jsontext.levels(value))) - depth_of(value) in (0, 1)


def drawn(chance: random.Random, depth: int) -> Any:
    """A value with everything in it that a count could stumble over."""
    kind = chance.random()
    if depth == 0 or kind < 0.3:
        odd = ["", "a,[{]}", '"', "\\", '\\"' * chance.randrange(9), "\u20ac\n", "x" * chance.randrange(300)]
        return chance.choice([*odd, 1, None, 0.5, [], {}])
    if kind < 0.65:
        return [drawn(chance, depth - 1) for _ in range(chance.randrange(7))]
    return {f'{chance.choice(",[x")}{number}"': drawn(chance, depth - 1) for number in range(chance.randrange(7))}


@pytest.mark.parametrize("seed", range(6))
def test_values_are_counted_exactly_in_texts_of_many_slices(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same values every time
    value = [drawn(chance, 6) for _ in range(600)]
    value.append("\\" * (300_000 + seed))
    text = json.dumps(value, indent=chance.choice([None, 1]), ensure_ascii=bool(seed % 2)).encode()
    nodes = jsontext.clone(value).nodes
    assert len(text) > 600_000
    assert jsontext.parse(text, limits=Limits(max_nodes=nodes)).value == value
    with pytest.raises(LimitError, match="max_nodes"):
        jsontext.refuse_many_values(text, Limits(max_nodes=nodes - 1), "$")

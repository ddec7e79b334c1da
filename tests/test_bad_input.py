"""Hostile input: a toolglot error with a path, in bounded time and memory, and no partial write."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import (
    Conversation,
    History,
    InputError,
    Issuer,
    LimitError,
    Media,
    Opaque,
    Text,
    ToolCall,
    ToolglotError,
    ToolResult,
    ToolSpec,
    Turn,
    TurnMetadata,
    arguments,
    dump,
    load,
)


def deep(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: dict[str, Any] = {}
CIRCLE["me"] = CIRCLE
HUGE = "x" * 100_000_000

BAD_TURNS: dict[str, tuple[Any, str]] = {
    "not a turn": ({"role": "user"}, r"^\$: expected a Turn, got a dict"),
    "unknown role": (Turn("robot"), r"^\$\.role: Invalid enum value 'robot' \(one of system, developer, user"),  # type: ignore[arg-type]
    "role of the wrong type": (Turn(7), r"^\$\.role: "),  # type: ignore[arg-type]
    "blocks not a list": (Turn("user", "hello"), r"^\$\.blocks: Expected `array`, got `str`"),  # type: ignore[arg-type]
    "blocks an endless generator": (Turn("user", iter(int, 1)), r"^\$\.blocks: "),  # type: ignore[arg-type]
    "a block that is none": (Turn("user", ("hello",)), r"^\$\.blocks\[0\]: Expected `object`, got `str`"),  # type: ignore[arg-type]
    "a turn inside a turn": (Turn("user", (Turn("user"),)), r"^\$\.blocks\[0\]: "),  # type: ignore[arg-type]
    "text that is bytes": (Turn("user", (Text(b"\xff"),)), r"^\$\.blocks\[0\]\.text: Expected `str`"),  # type: ignore[arg-type]
    "text that is circular": (Turn("user", (Text([]),)), r"^\$\.blocks\[0\]\.text: "),  # type: ignore[arg-type]
    "name missing": (Turn("assistant", (ToolCall("a", None),)), r"^\$\.blocks\[0\]\.name: Expected `str`, got `null`"),  # type: ignore[arg-type]
    "arguments a string": (Turn("assistant", (ToolCall("a", "f", "{}"),)), r"^\$\.blocks\[0\]\.arguments: "),  # type: ignore[arg-type]
    "arguments that were only parsed": (
        Turn("assistant", (ToolCall("a", "f", arguments.parse("{}")),)),  # type: ignore[arg-type]
        r"^\$\.blocks\[0\]\.arguments: expected an object, got a ParsedArguments",
    ),
    "arguments a list": (Turn("assistant", (ToolCall("a", "f", [1]),)), r"^\$\.blocks\[0\]\.arguments: "),  # type: ignore[arg-type]
    "an id that is a list": (Turn("assistant", (ToolCall(["a"], "f"),)), r"^\$\.blocks\[0\]\.id: "),  # type: ignore[arg-type]
    "an id that is a bool": (Turn("assistant", (ToolCall(True, "f"),)), r"^\$\.blocks\[0\]\.id: "),  # type: ignore[arg-type]
    "an error flag that is text": (Turn("tool", (ToolResult("a", "x", "no"),)), r"^\$\.blocks\[0\]\.is_error: "),  # type: ignore[arg-type]
    "an unknown status": (Turn("tool", (ToolResult("a", status="lost"),)), r"\.status: Invalid enum value 'lost'"),  # type: ignore[arg-type]
    "content of the wrong kind": (Turn("tool", (ToolResult("a", (ToolCall("a", "f"),)),)), r"\.content\[0\]"),  # type: ignore[arg-type]
    "an unknown kind of media": (Turn("user", (Media("smell"),)), r"^\$\.blocks\[0\]\.kind: "),  # type: ignore[arg-type]
    "an issuer that is text": (Turn("user", issuer="openai"), r"^\$\.issuer: Expected `object \| null`"),  # type: ignore[arg-type]
    "a provider that is none": (Turn("assistant", issuer=Issuer(None)), r"^\$\.issuer\.provider: "),  # type: ignore[arg-type]
    "a key that is a number": (Turn("user", key=3), r"^\$\.key: "),  # type: ignore[arg-type]
    "metadata of another kind": (Turn("user", metadata={"x": 1}), r"^\$\.metadata"),  # type: ignore[arg-type]
    "removed of another kind": (Turn("user", metadata=TurnMetadata(removed=(3,))), r"^\$\.metadata\.removed"),  # type: ignore[arg-type]
    "a circle where a value should be": (Turn("user", metadata=CIRCLE), r"^\$\.metadata\.me: a circular reference"),  # type: ignore[arg-type]
    "a circle where a block should be": (Turn("user", (CIRCLE,)), r"^\$\.blocks\[0\]\.me: a circular reference"),  # type: ignore[arg-type]
    "extra of another kind": (Turn("user", extra={"anthropic": 3}), r"^\$\.extra\["),  # type: ignore[dict-item]
    "arguments 10,000 deep": (Turn("assistant", (ToolCall("a", "f", {"x": deep(10_000)}),)), r"exceeds max_depth=200"),
    "an opaque value 10,000 deep": (Turn("user", (Opaque("p", deep(10_000)),)), r"exceeds max_depth=200"),
    "a text of 100 MB": (Turn("user", (Text(HUGE),)), r"^\$\.blocks\[0\]\.text: exceeds max_bytes="),
    "a name of 100 MB": (Turn("assistant", (ToolCall("a", HUGE),)), r"^\$\.blocks\[0\]\.name: exceeds max_bytes="),
    "arguments of 100 MB": (Turn("assistant", (ToolCall("a", "f", {"x": HUGE}),)), r"arguments\.x: exceeds max_bytes="),
    "many texts of 100 MB in all": (Turn("user", (Text("x" * 1_000_000),) * 100), r"exceeds max_bytes="),
    "ten million values": (Turn("assistant", (ToolCall("a", "f", {"x": [0] * 10_000_000}),)), r"exceeds max_nodes="),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TURNS)
def test_a_bad_turn_is_refused_with_its_path_and_nothing_is_written(name: str) -> None:
    turn, message = BAD_TURNS[name]
    history = History(provider="openai")
    history.append(Turn("user", (Text("before"),)))
    before = (history.turns, len(history.report), history.ledger)
    tracemalloc.start()
    with pytest.raises(InputError, match=message):
        history.append(turn)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000
    with pytest.raises(InputError):
        history.extend([Turn("user", (Text("good"),)), turn])
    assert (history.turns, len(history.report), history.ledger) == before
    history.append(Turn("user", (Text("before"),)))
    assert history.turns[1].key == history.turns[0].key.removesuffix("0") + "1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"format": "\xff"}', r"^\$: byte 12 is not UTF-8"),
        (b"[" * 10_000 + b"]" * 10_000, r"^\$: exceeds max_depth=200 at character 200"),
        (b'{"format": "' + b"x" * 100_000_000, r"^\$: exceeds max_bytes="),
        (b'{"a": ', r"^\$: the JSON text ends before it is complete, at character 6"),
        (b"{'a': 1}", r"^\$: not JSON: .* at character 1"),
        (b"", r"^\$: the JSON text ends"),
        (b'{"a": 1e999}', r"^\$\.a: a number is too large"),
        (b"[" + b"0," * 3_000_000 + b"0]", r"^\$: exceeds max_nodes="),
        (7, r"^\$: expected JSON text, got 7"),
    ],
    ids=["not UTF-8", "deep", "huge", "cut", "not JSON", "empty", "overflow", "many", "no text"],
)
def test_a_bad_document_is_refused_with_its_place(body: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(body)


def test_shared_values_that_would_be_exponential_when_written_are_refused() -> None:
    shared: list[Any] = []
    for _ in range(60):
        shared = [shared, shared]
    with pytest.raises(LimitError, match="max_nodes"):
        History(provider="openai").append(Turn("assistant", (ToolCall("a", "f", {"x": shared}),)))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=3) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
        | st.builds(Text, inner)
        | st.builds(ToolCall, inner, inner, inner)
        | st.builds(ToolResult, inner, inner, inner)
        | st.builds(Turn, st.sampled_from(["user", "assistant", "tool", 3]), inner, key=inner, issuer=inner)
    ),
    max_leaves=8,
)


@pytest.mark.law
@given(anything)
def test_whatever_is_appended_is_taken_whole_or_refused_by_a_toolglot_error(value: Any) -> None:
    history = History(provider="openai")
    try:
        history.append(value)
    except ToolglotError:
        assert len(history) == 0
    else:
        assert len(history) == 1
        History(history.conversation)


@pytest.mark.law
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_whatever_is_loaded_is_read_or_refused_by_a_toolglot_error(data: bytes | str) -> None:
    with pytest.raises(InputError):
        load(data)


def test_a_long_history_costs_linear_time_to_write() -> None:
    """Counted, not timed: a turn looks at its own blocks, however many turns there are."""
    history = History(provider="openai")
    for n in range(3_000):
        history.append(Turn("assistant", (ToolCall("call_0", "f", {"n": n}), ToolCall("", "f"))))
        history.append(Turn("tool", (ToolResult("call_0", str(n)), ToolResult("", "x"), ToolResult("zzz", "lost"))))
    assert len(history.ledger) == 6_000
    assert not history.ledger.pending
    assert [int(found.result.text) for found in list(history.ledger)[::2] if found.result] == list(range(3_000))


def test_a_conversation_that_is_not_one_is_refused() -> None:
    with pytest.raises(InputError, match="expected a Conversation, got str"):
        History("hello")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"\$\.tools"):
        History(Conversation(tools=(3,)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a Conversation, got str"):
        dump("hello")  # type: ignore[arg-type]
    circular: Any = Conversation(tools=(ToolSpec("f", parameters=CIRCLE),))
    history = History(circular)
    assert history.conversation.tools[0].parameters == {"me": "[circular]"}
    assert [entry.path for entry in history.report] == ["$.tools[0].parameters.me"]

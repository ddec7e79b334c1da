"""Hostile input: a toolglot error with a path, in bounded time and memory, and no partial write."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import (
    Conversation,
    History,
    HistoryError,
    InputError,
    Issuer,
    LimitError,
    Limits,
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
    "arguments 10,000 deep": (Turn("assistant", (ToolCall("a", "f", {"x": deep(10_000)}),)), r"exceeds max_depth=180"),
    "an opaque value 10,000 deep": (Turn("user", (Opaque("p", deep(10_000)),)), r"exceeds max_depth=180"),
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
        (b"[" + b"0," * 20_000_000 + b"0]", r"^\$: exceeds max_nodes="),
        (7, r"^\$: expected JSON text, got 7"),
    ],
    ids=["not UTF-8", "deep", "huge", "cut", "not JSON", "empty", "overflow", "many", "no text"],
)
def test_a_bad_document_is_refused_with_its_path(body: Any, message: str) -> None:
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
    with pytest.raises(InputError, match=r"expected a Conversation, got (str|'hello')"):
        History("hello")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"\$\.tools"):
        History(Conversation(tools=(3,)))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected a Conversation, got (str|'hello')"):
        dump("hello")  # type: ignore[arg-type]
    circular: Any = Conversation(tools=(ToolSpec("f", parameters=CIRCLE),))
    history = History(circular)
    assert history.conversation.tools[0].parameters == {"me": "[circular]"}
    assert [entry.path for entry in history.report] == ["$.tools[0].parameters.me"]


def test_canonical_values_inside_each_other_are_bounded() -> None:
    nested: Any = Opaque("p", None)
    for _ in range(40):
        nested = ToolResult("x", (nested, nested))
    with pytest.raises(InputError, match="a ToolResult is nested too deeply"):
        History().append(Turn("user", (nested,)))
    opaque: Any = None
    for _ in range(5_000):
        opaque = Opaque("p", opaque)
    with pytest.raises(InputError, match=r"\$\.blocks\[0\]\.value: expected JSON, got a Opaque"):
        History().append(Turn("user", (opaque,)))


def test_all_values_of_a_turn_share_one_budget() -> None:
    tight = Limits(max_bytes=1_000, max_nodes=100)
    many = tuple(ToolCall(str(n), "f", {"x": "y" * 90}) for n in range(50))
    with pytest.raises(LimitError, match="max_bytes=1000"):
        History(provider="openai", limits=tight).append(Turn("assistant", many))
    with pytest.raises(LimitError, match="max_nodes=100"):
        History(provider="openai", limits=tight).append(Turn("assistant", (ToolCall("a", "f", {"x": [0] * 90}),) * 2))


def test_what_a_history_accepts_can_be_dumped_and_loaded() -> None:
    value: Any = {}
    for _ in range(179):
        value = {"a": value}
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("a", "f", value),)))
    history.append(Turn("tool", (ToolResult("a", result=value, executed_arguments=value, extra={"p": {}}),)))
    assert load(dump(history.conversation)) == history.conversation
    history.compress(summary="s")
    assert load(dump(history.conversation)) == history.conversation
    with pytest.raises(LimitError, match="max_depth=180"):
        history.append(Turn("assistant", (ToolCall("a", "f", {"a": value}),)))


def test_a_history_accepts_its_own_conversation_under_its_own_limits() -> None:
    tight = Limits(max_bytes=1_000)
    history = History(provider="openai", limits=tight)
    for n in range(5):
        history.append(Turn("assistant", (ToolCall("x__thought__" + "s" * 400, "f"),)))
        history.append(Turn("tool", (ToolResult("x__thought__" + "s" * 400, str(n) * 500),)))
    assert History(history.conversation, limits=tight).turns == history.turns
    history.compress(summary="s")
    assert History(history.conversation, limits=tight).turns == history.turns


def test_dump_refuses_what_load_would() -> None:
    history = History(provider="openai")
    history.append(Turn("user", (Text("x" * 2_000),)))
    with pytest.raises(LimitError, match="max_bytes=1000"):
        dump(history.conversation, limits=Limits(max_bytes=1_000))
    with pytest.raises(LimitError, match="max_nodes=5"):
        dump(history.conversation, limits=Limits(max_nodes=5))


class Liar(str):
    """A text whose methods do not tell the truth."""

    __slots__ = ()

    def isascii(self) -> bool:
        return True

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


def test_texts_that_lie_are_taken_for_what_they_are() -> None:
    history = History(provider="openai")
    kept = history.append(
        Turn("assistant", (Text(Liar("\ud83d")), ToolCall(Liar("a"), Liar("f"), {Liar("k"): Liar("v")})))
    )
    assert type(kept.text) is str
    assert kept.text == "\ufffd"
    assert load(dump(history.conversation)) == history.conversation
    with pytest.raises(LimitError):
        History(limits=Limits(max_bytes=10)).append(Turn("user", (Text(Liar("x" * 11)),)))
    with pytest.raises(InputError, match="no turn has the key"):
        history.turn(Liar("nope"))


SECRET = "S" * 600_000


@pytest.mark.parametrize(
    "write",
    [
        lambda: History().append(Turn(SECRET)),  # type: ignore[arg-type]
        lambda: History().append(Turn("assistant"), provider=SECRET),
        lambda: History().turn(SECRET),
        lambda: load('{"format": "toolglot.conversation", "version": 1, "conversation": {"' + SECRET + '": 1}}'),
    ],
    ids=["role", "provider", "key", "field"],
)
def test_errors_never_quote_much(write: Callable[[], object]) -> None:
    with pytest.raises(ToolglotError) as caught:
        write()
    assert len(str(caught.value)) < 2_000


def test_a_list_of_open_calls_in_an_error_is_short() -> None:
    history = History(provider="openai")
    flight = history.begin_turn()
    flight.append(Turn("assistant", tuple(ToolCall("", "f") for _ in range(2_000))))
    with pytest.raises(HistoryError) as caught:
        flight.finish()
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("bad", ["\ud800", "x" * 600])
def test_a_provider_is_a_name_that_can_be_written(bad: str) -> None:
    for write in (lambda: History(provider=bad), lambda: History().append(Turn("assistant"), provider=bad)):
        with pytest.raises(InputError, match="expected the name of a provider"):
            write()


def test_a_key_with_half_a_character_is_fixed() -> None:
    history = History()
    assert history.append(Turn("user"), key="a\ud800").key == "a\ufffd"
    assert load(dump(history.conversation)) == history.conversation


@pytest.mark.parametrize("odd", [[], {}, 3, None])
def test_what_is_no_id_or_key_is_refused(odd: Any) -> None:
    other: Any = 3 if odd is None else odd
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("a", "f"),)))
    for call in (
        lambda: history.cancel(odd),
        lambda: history.record(ToolResult(odd, "x")),
        lambda: history.turn(odd),
        lambda: history.prune(odd),
        lambda: history.fork(at=other),
        lambda: history.compress(summary="s", before=other),
    ):
        with pytest.raises(InputError):
            call()
    assert history.ledger.get(odd) is None

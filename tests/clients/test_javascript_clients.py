"""The streams that toolglot writes are read by the JavaScript SDKs, with their own accumulators.

`javascript/read_stream.mjs` holds the SDKs; it is started once and called over its standard input. Law: whatever the
protocol, the SDK and the pieces that the bytes come in, the client gets the calls, the text and the stop reason of
the reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.event_grammar import check
from support.javascript_clients import (
    CUSTOM_READERS,
    READERS,
    JavaScript,
    Reader,
    call,
)
from toolglot.conversation import (
    FREE_TEXT,
    Block,
    Failure,
    Reply,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
)
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, Failed, Finished, InputDelta, Started
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.protocols.base import codec
from toolglot.protocols.framing.event_builder import call_from_text

KEEPS_CUT_CALLS: Final = {"anthropic", "openai/chat"}
"""SDKs that list a call as far as it came and leave it to the stop reason to say that it is not whole."""

SEES_CUT_CALLS: Final = {"ai/anthropic", "ai/openai.chat", "ai/openai.responses"}
"""SDKs that hear of such a call too, find that its input is no JSON, and call it invalid instead of running it."""


# --- replies ----------------------------------------------------------------------------------------

WEIRD: Final[dict[str, Any]] = {
    'key "quoted" \\ / \b\f\n\r\t': 'back\\slash, "quotes", \u0000\u001f\u007f, </script>, line\u2028and\u2029ends',
    "ключ": [
        "naïve",
        "日本語",
        "👩‍👩‍👧‍👦",
        "e\u0301",
        "\ufeffmark",
        "\u200bzero",
        "data: [DONE]\n\ndata: {}\n\nevent: error\n\n",
    ],
    "": {"": None, "deep": [[[{"n": -0.5, "big": 9007199254740991, "small": 1e-7}]], True, False, [], {}]},
    "json": '{"not": "parsed"}',
}
LONG: Final[dict[str, Any]] = {
    "content": "".join(f'line {number}: ünïcode \\ and "quotes"\n' for number in range(1500)),
    "lines": list(range(500)),
}
FREE: Final = '*** Begin Patch\n+ "quoted" \\ back {not json}\n+ 日本語\n*** End Patch'
TEXT: Final = Text('Let me look, naïvely: 日本語 👩‍👩‍👧‍👦.\n\nThen "quote" it.')
THOUGHT: Final = Thinking('First the weather,\nthen "the" wind — 風.')
COST: Final = Usage(input_tokens=120, output_tokens=45)


def reply(*blocks: Block, stop: StopReason | None = None) -> Reply:
    calls = any(isinstance(block, ToolCall) for block in blocks)
    return Reply(
        Turn("assistant", blocks), stop or ("tool_calls" if calls else "stop"), COST, "reply_77", "some-model-1"
    )


LOOK: Final = call("look", {"city": "Zürich", "days": 3})
CUSTOM: Final = ToolCall("call_patch_1", "patch", type="custom", raw_input=FREE)
THREE: Final = (
    call("look", {"city": "Oslo"}, "call_first00001"),
    call("look", {"city": "Łódź"}, "call_second0002"),
    call("count", {"of": [1, 2, {"three": 3}]}, "call_third00003"),
)

REPLIES: Final = {
    "text": reply(TEXT),
    "thinking and text": reply(THOUGHT, TEXT),
    "one call": reply(LOOK),
    "text and three calls": reply(TEXT, *THREE),
    "thinking, text and a call": reply(THOUGHT, TEXT, LOOK),
    "text between calls": reply(Text("First. "), THREE[0], Text("Second."), THREE[1]),
    "a call without arguments": reply(call("now", {})),
    "calls without arguments": reply(call("now", {}, "call_now_00001"), call("now", {}, "call_now_00002")),
    "strange arguments": reply(TEXT, call("write", WEIRD)),
    "long arguments": reply(call("write", LONG)),
    "length": reply(TEXT, stop="length"),
    "filter": reply(TEXT, stop="filter"),
}


class Signed(NamedTuple):
    """A reply as its provider wrote it, and what of it is for that provider alone."""

    body: dict[str, Any]
    values: list[str]


SIGNED: Final = {
    "anthropic": Signed(
        {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "claude-any",
            "content": [
                {"type": "thinking", "thinking": "Hm. ", "signature": "c2lnbmVk+/=="},
                {"type": "redacted_thinking", "data": "aGlkZGVu"},
                {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {"city": "Oslo"}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 120, "output_tokens": 45},
        },
        ["c2lnbmVk+/==", "aGlkZGVu"],
    ),
    "openai_responses": Signed(
        {
            "id": "resp_01",
            "object": "response",
            "created_at": 1,
            "model": "gpt-any",
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "output": [
                {
                    "type": "reasoning",
                    "id": "rs_01",
                    "summary": [{"type": "summary_text", "text": "Hm. "}],
                    "encrypted_content": "ZW5jcnlwdGVk",
                },
                {
                    "type": "function_call",
                    "id": "fc_01",
                    "call_id": "call_01",
                    "name": "look",
                    "arguments": '{"city": "Oslo"}',
                    "status": "completed",
                },
            ],
            "usage": {
                "input_tokens": 120,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 45,
                "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 165,
            },
        },
        ["ZW5jcnlwdGVk"],
    ),
    "gemini": Signed(
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "Hm. ", "thought": True},
                            {"text": "I look.", "thoughtSignature": "dGV4dA=="},
                            {
                                "functionCall": {"id": "fc-1", "name": "look", "args": {"city": "Oslo"}},
                                "thoughtSignature": "Y2FsbA==",
                            },
                        ],
                    },
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 120,
                "candidatesTokenCount": 40,
                "thoughtsTokenCount": 5,
                "totalTokenCount": 165,
            },
            "modelVersion": "gemini-any",
            "responseId": "g01",
        },
        ["dGV4dA==", "Y2FsbA=="],
    ),
}
SIGNED_READERS: Final = [name for name, reader in READERS.items() if reader.protocol in SIGNED]


# --- the SDKs ---------------------------------------------------------------------------------------


def written(protocol: str, events: Iterable[Event]) -> bytes:
    listed = list(events)
    check(listed)
    return codec(protocol).stream.Encoder().write(listed)


def agree(got: dict[str, Any], reply: Reply, reader: Reader) -> None:
    """Fail where the SDK got something else than the reply."""
    thought = "".join(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    assert got["error"] is None
    assert [(call["id"], call["name"], call["input"]) for call in got["calls"]] == [
        (call.id, call.name, call.arguments) for call in reply.turn.calls
    ]
    assert [json.loads(call["pieces"] or "{}") for call in got["calls"] if "pieces" in call] in (
        [],
        [call.arguments for call in reply.turn.calls],
    )
    assert got["text"] == reply.turn.text
    assert got["reasoning"] == (thought if reader.shows_thinking else "")
    assert reply.stop is not None
    assert got["finish"] == reader.stops[reply.stop]
    assert got["usage"] == {"input": COST.input_tokens, "output": COST.output_tokens}


# --- tests ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("reader", READERS)
def test_every_javascript_client_gets_the_reply(javascript: JavaScript, reader: str, name: str) -> None:
    found = REPLIES[name]
    body = written(READERS[reader].protocol, of_reply(found))
    agree(javascript.read(reader, body, found.turn.calls), found, READERS[reader])


@pytest.mark.parametrize("piece", [1, 3, 100_000])
@pytest.mark.parametrize("reader", READERS)
def test_the_size_of_the_deltas_makes_no_difference_to_a_javascript_client(
    javascript: JavaScript, reader: str, piece: int
) -> None:
    found = reply(THOUGHT, TEXT, call("write", WEIRD), replace(LOOK, id="call_another001"))
    body = written(READERS[reader].protocol, of_reply(found, piece=piece))
    agree(javascript.read(reader, body, found.turn.calls), found, READERS[reader])


@pytest.mark.parametrize("byte_by_byte", [False, True])
@pytest.mark.parametrize("reader", READERS)
def test_a_javascript_client_takes_no_notice_of_pings(
    javascript: JavaScript, reader: str, *, byte_by_byte: bool
) -> None:
    found = REPLIES["thinking, text and a call"]
    encoder = codec(READERS[reader].protocol).stream.Encoder()
    *events, end = of_reply(found)
    pieces = [piece for event in events for piece in (encoder.write([event]), encoder.ping(), encoder.ping())]
    body = b"".join([*pieces, encoder.write([end])])
    cuts = range(1, len(body)) if byte_by_byte else [*accumulate(map(len, pieces))]
    agree(javascript.read(reader, body, found.turn.calls, cuts), found, READERS[reader])


@pytest.mark.parametrize("reader", READERS)
def test_one_byte_at_a_time_makes_no_difference_to_a_javascript_client(javascript: JavaScript, reader: str) -> None:
    found = reply(THOUGHT, TEXT, call("write", WEIRD))
    body = written(READERS[reader].protocol, of_reply(found))
    got = javascript.read(reader, body, found.turn.calls, range(1, len(body)))
    agree(got, found, READERS[reader])


@pytest.mark.law
@given(
    reader=st.sampled_from(sorted(READERS)),
    name=st.sampled_from(sorted(REPLIES.keys() - {"long arguments"})),
    positions=st.lists(st.floats(0, 1, exclude_max=True), max_size=40),
)
def test_law_cuts_anywhere_make_no_difference_to_a_javascript_client(
    javascript: JavaScript, reader: str, name: str, positions: list[float]
) -> None:
    found = REPLIES[name]
    body = written(READERS[reader].protocol, of_reply(found))
    cuts = sorted(int(position * len(body)) for position in positions)
    agree(javascript.read(reader, body, found.turn.calls, cuts), found, READERS[reader])


# What JavaScript itself does not carry is left out: whole numbers beyond 53 bits, halves of surrogate pairs. The key
# `__proto__` is refused by Vercel's reader of JSON, wherever it comes from.
CHARACTERS = st.characters(exclude_categories=["Cs"])
KEYS = st.text(CHARACTERS, max_size=8).filter(lambda key: key != "__proto__")
SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9) | st.text(CHARACTERS)
ARGUMENTS = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
    ),
    max_size=4,
)


@pytest.mark.law
@given(
    reader=st.sampled_from(sorted(READERS)),
    text=st.text(CHARACTERS, min_size=1),
    arguments=st.lists(ARGUMENTS, min_size=1, max_size=3),
    piece=st.integers(1, 30),
)
def test_law_any_text_and_any_arguments_reach_a_javascript_client(
    javascript: JavaScript, reader: str, text: str, arguments: list[dict[str, Any]], piece: int
) -> None:
    calls = [call("write", value, f"call_{index:08}") for index, value in enumerate(arguments)]
    found = reply(Text(text), *calls)
    body = written(READERS[reader].protocol, of_reply(found, piece=piece))
    agree(javascript.read(reader, body, calls), found, READERS[reader])


@pytest.mark.parametrize("reader", SIGNED_READERS)
def test_a_javascript_client_gets_what_only_its_own_provider_can_read(javascript: JavaScript, reader: str) -> None:
    wire, opaque = codec(READERS[reader].protocol), SIGNED[READERS[reader].protocol]
    found = wire.reply.decode(opaque.body)
    got = javascript.read(reader, written(wire.protocol, of_reply(found)), found.turn.calls)
    assert got["opaque"] == opaque.values
    agree(got, found, READERS[reader])


@pytest.mark.parametrize("reader", CUSTOM_READERS)
def test_a_free_text_call_reaches_a_javascript_client_as_free_text(javascript: JavaScript, reader: str) -> None:
    found = reply(TEXT, CUSTOM, replace(CUSTOM, id="call_patch_2", raw_input=""))
    body = written(CUSTOM_READERS[reader].protocol, of_reply(found))
    got = javascript.read(reader, body, found.turn.calls)
    assert got["error"] is None
    assert got["text"] == TEXT.text
    assert [(call["id"], call["name"], call["input"]) for call in got["calls"]] == [
        ("call_patch_1", "patch", FREE),
        ("call_patch_2", "patch", ""),
    ]
    assert got["finish"] == CUSTOM_READERS[reader].stops["tool_calls"]


@pytest.mark.parametrize("reader", ["ai/anthropic", "anthropic", "ai/google", "google/genai"])
def test_a_free_text_call_is_an_object_where_there_are_only_objects_E8(javascript: JavaScript, reader: str) -> None:
    found = reply(TEXT, CUSTOM, LOOK)
    body = written(READERS[reader].protocol, of_reply(found))
    as_object = replace(CUSTOM, type="function", raw_input=None, arguments={FREE_TEXT: FREE})
    agree(javascript.read(reader, body, found.turn.calls), reply(TEXT, as_object, LOOK), READERS[reader])


class Break(NamedTuple):
    """A call, and how much of its input came."""

    call: ToolCall
    part: str


BREAKS: Final = {
    "inside the arguments": Break(LOOK, '{"city":"Zü'),
    "before the arguments": Break(LOOK, ""),
    "after a space": Break(LOOK, " "),
    "in what is no object": Break(LOOK, 'city: "Zü'),
    "inside free text": Break(CUSTOM, "*** Begin Pa"),
    "before free text": Break(CUSTOM, ""),
}
BROKEN: Final = [
    (reader, where)
    for where, found in BREAKS.items()
    for reader in READERS
    if found.call.type != "custom" or READERS[reader].protocol != "openai_chat"
]
"""The helpers of both chat SDKs refuse every free-text call, so that they show nothing of one that was cut."""


def broken_off(where: str, end: Event) -> list[Event]:
    """A reply that ends inside a call."""
    whole, part = BREAKS[where]
    opened = replace(whole, arguments=None, raw_input=None)
    start = [Started("reply_77", "some-model-1"), *of_block(TEXT), BlockStarted(opened)]
    return [*start, *([InputDelta(part)] if part else []), BlockEnded(call_from_text(opened, part), cut=True), end]


@pytest.mark.parametrize(("reader", "where"), BROKEN)
def test_a_failure_in_the_middle_is_an_error_of_a_javascript_client_and_no_call(
    javascript: JavaScript, reader: str, where: str
) -> None:
    failure = Failure("overloaded", "the model is resting", 529, in_band=True)
    body = written(READERS[reader].protocol, broken_off(where, Failed(failure)))
    got = javascript.read(reader, body, [BREAKS[where].call])
    assert got["error"] is not None
    assert "the model is resting" in got["error"]
    assert got["calls"] == []


@pytest.mark.parametrize("reader", READERS)
def test_a_failure_at_the_start_is_an_error_of_a_javascript_client(javascript: JavaScript, reader: str) -> None:
    failure = Failure("rate_limit", "too many wishes", 429, in_band=True)
    body = written(READERS[reader].protocol, [Started("reply_77", "some-model-1"), Failed(failure)])
    got = javascript.read(reader, body)
    assert got["error"] is not None
    assert "too many wishes" in got["error"]
    assert got["calls"] == []


@pytest.mark.parametrize(("reader", "where"), BROKEN)
def test_a_call_cut_by_length_is_no_whole_call_of_a_javascript_client(
    javascript: JavaScript, reader: str, where: str
) -> None:
    body = written(READERS[reader].protocol, broken_off(where, Finished("length")))
    got = javascript.read(reader, body, [BREAKS[where].call])
    assert got["text"] == TEXT.text
    assert got["finish"] == READERS[reader].stops["length"]
    assert got["calls"] == [] or reader in KEEPS_CUT_CALLS
    assert got["error"] is None or reader in SEES_CUT_CALLS


@pytest.mark.parametrize("reader", READERS)
def test_a_javascript_client_is_really_called(javascript: JavaScript, reader: str) -> None:
    """The harness can fail: a stream that stops before its end is no reply of the SDK."""
    found = REPLIES["one call"]
    body = written(READERS[reader].protocol, of_reply(found))
    got = javascript.read(reader, body[: len(body) // 3], found.turn.calls)
    assert got["calls"] == []
    assert got["finish"] not in (READERS[reader].stops["stop"], READERS[reader].stops["tool_calls"])

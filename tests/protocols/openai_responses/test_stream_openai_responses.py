"""Streams of the OpenAI Responses protocol, read: what they add up to, and what servers do to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.event_grammar import check
from support.conversations.strategies import json_values
from support.protocols.body_laws import malformed
from support.protocols.streams.openai_responses import (
    CALL,
    EVERYTHING,
    MESSAGE,
    REASONING,
    RECORDED,
    SECOND,
    Fields,
    ReadEvents,
    body_of,
    item_events,
    read_bytes,
    responses,
    sse,
    streamed,
)
from toolglot.conversation import ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import Accumulator, BlockStarted, InputDelta, TextDelta, ThinkingDelta
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_responses import reply
from toolglot.protocols.openai_responses.form import ResponsesText, message_fields
from toolglot.protocols.openai_responses.stream_reader import Decoder, framer

# --- what a provider sends --------------------------------------------------------------------------


# --- the whole answer -------------------------------------------------------------------------------


def test_a_stream_adds_up_to_the_reply_that_the_last_response_is() -> None:
    read = ReadEvents(*streamed(EVERYTHING))
    assert read.problems == []
    assert read.reply == reply.decode(EVERYTHING)
    assert reply.encode(read.reply) == EVERYTHING


def test_each_block_begins_with_its_own_ids_and_goes_on_in_pieces() -> None:
    read = ReadEvents(*streamed(EVERYTHING))
    started = [event.block for event in read.events if isinstance(event, BlockStarted)]
    thinking, first, second, search, call, *_ = started
    assert isinstance(thinking, Thinking)
    assert thinking.id == "rs_1"
    assert isinstance(first, Text)
    assert message_fields(first)["id"] == "msg_1"
    assert isinstance(second, Text)
    assert isinstance(second.form, ResponsesText)
    assert second.form.is_joined
    assert isinstance(search, ServerTool)
    assert search.value["status"] == "completed"
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.arguments) == ("call_A", "get_weather", None)
    assert [event.text for event in read.events if isinstance(event, TextDelta)][:2] == ["Let me", " look,"]
    assert "".join(event.text for event in read.events if isinstance(event, ThinkingDelta)) == (
        "**Two** cities.\n\nLook."
    )
    assert "".join(event.text for event in read.events if isinstance(event, InputDelta)).startswith(CALL["arguments"])


def test_law_8_the_events_are_the_same_wherever_the_bytes_are_cut() -> None:
    data = sse(*streamed(body_of({**MESSAGE, "content": [MESSAGE["content"][0]]}, CALL, metadata={})))
    whole = read_bytes(data)
    check(whole)
    for cut in range(1, len(data), 11):
        assert read_bytes(data[:cut], data[cut:]) == whole
    assert read_bytes(*[data[at : at + 1] for at in range(len(data))]) == whole


@pytest.mark.law
@given(responses, st.integers(1, 9))
def test_law_8_any_response_streamed_adds_up_to_itself(body: Fields, piece: int) -> None:
    read = ReadEvents(*streamed(body, piece))
    assert read.problems == []
    assert read.reply == reply.decode(body)


@pytest.mark.law
@given(responses)
def test_any_response_that_comes_only_at_the_end_is_read_from_there(body: Fields) -> None:
    events = streamed(body)
    read = ReadEvents(events[0], events[-1])
    assert read.reply == reply.decode(body)
    assert bool(read.problems) is bool(body["output"])


@pytest.mark.law
@given(responses)
def test_any_response_whose_items_come_only_when_they_end_is_read_from_them(body: Fields) -> None:
    events = [event for event in streamed(body) if event["type"].endswith((".created", "item.done"))]
    last = streamed(body)[-1]
    read = ReadEvents(*events, {**last, "response": {**last["response"], "output": []}})
    assert read.reply == reply.decode(body)


# --- whatever comes ---------------------------------------------------------------------------------

SCRAPS = [*streamed(EVERYTHING), *item_events(MESSAGE, 0), *item_events(REASONING, 0), {"type": "error"}]


@pytest.mark.law
@given(st.lists(st.sampled_from(SCRAPS), max_size=30))
def test_events_in_any_order_are_read(events: list[Fields]) -> None:
    ReadEvents(*events)


@pytest.mark.law
@given(st.lists(malformed(st.sampled_from(SCRAPS)), max_size=12), st.data())
def test_malformed_events_are_read(events: list[Fields], data: st.DataObject) -> None:
    ReadEvents(*events)
    ReadEvents(*(data.draw(malformed(st.just(event))) for event in SCRAPS[2:20]))


@pytest.mark.law
@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from([event["type"] for event in SCRAPS])},
            optional={
                key: json_values | st.sampled_from([CALL, MESSAGE, REASONING, 0, 1, "fc_1", "msg_1", "x"])
                for key in ("item", "item_id", "part", "delta", "text", "arguments", "response", "output_index")
            },
        ),
        max_size=12,
    )
)
def test_events_with_anything_in_their_fields_are_read(events: list[Fields]) -> None:
    ReadEvents(*events)


@pytest.mark.law
@given(st.lists(st.binary(max_size=40) | json_values.map(lambda value: json.dumps(value).encode()), max_size=8))
def test_any_bytes_are_read(pieces: list[bytes]) -> None:
    decoder = Decoder()
    events = [event for piece in pieces for event in decoder.read(Frame(piece, "response.output_item.added"))]
    check(events + decoder.finish())


def test_what_is_nested_too_deeply_is_refused_as_a_limit() -> None:
    with pytest.raises(LimitError):
        Decoder().read(Frame(b'{"type":"error","a":' + b"[" * 5_000 + b"]" * 5_000 + b"}"))


def test_items_and_text_are_bounded() -> None:
    with pytest.raises(LimitError, match="max_bytes"):
        ReadEvents(*streamed(body_of(CALL, SECOND, CALL)), limits=Limits(max_bytes=300))
    with pytest.raises(LimitError, match="max_bytes"):
        ReadEvents(
            *streamed(body_of(*({**CALL, "id": f"fc_{number}"} for number in range(40)))), limits=Limits(max_bytes=3000)
        )


LARGE = "x" * 1000


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.annotation.added", "item_id": "m", "annotation": {"a": {"b": LARGE}}},
        {"type": "response.output_item.done", "item": {"type": "web_search_call", "action": {"query": LARGE}}},
        {"type": "response.content_part.added", "item_id": "m", "part": {"type": "output_text", "more": {"a": LARGE}}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": LARGE},
    ],
    ids=["annotations", "items", "parts", "calls without a name"],
)
def test_all_that_is_kept_until_the_end_is_bounded(event: Fields) -> None:
    decoder = Decoder(limits=Limits(max_bytes=20_000))
    begun = {"type": "response.output_item.added", "item": {"type": "message", "id": "m", "role": "assistant"}}
    decoder.read(Frame(json.dumps(begun).encode()))
    frames = [Frame(json.dumps({**event, "content_index": number}).encode()) for number in range(40)]
    with pytest.raises(LimitError, match="max_bytes"):
        list(map(decoder.read, frames))


# --- what a real server sent --------------------------------------------------------------------------


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_real_server_streamed_agrees_with_its_last_response(path: Path) -> None:
    data = path.read_bytes()
    events = read_bytes(data)
    check(events)
    added = Accumulator()
    added.add(events)
    last = json.loads(framer().feed(data)[-1].data)["response"]
    assert added.reply.turn == reply.decode(last).turn
    assert added.reply.usage == reply.decode(last).usage
    is_cut = path.stem in ("responses_length_in_call", "responses_length_in_second_call")
    assert bool(added.cut) is is_cut
    if is_cut:
        assert added.reply.stop == "length"


def test_there_are_recordings() -> None:
    assert len(RECORDED) > 10

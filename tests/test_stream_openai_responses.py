"""Streams of the OpenAI Responses protocol, read: what they add up to, and what servers do to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event_grammar import check
from sdk.recording import FOLDER
from strategies import json_objects, json_values, texts
from toolglot.conversation import Reply, ServerTool, Text, Thinking, ToolCall
from toolglot.conversation.events import (
    Accumulator,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    TextDelta,
    ThinkingDelta,
)
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.fields.reading import note
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_responses import reply
from toolglot.protocols.openai_responses.stream import Decoder, framer
from wire_laws import damaged
from wire_openai_responses_strategies import server_items

Fields = dict[str, Any]

USAGE: Fields = {
    "input_tokens": 121,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 133,
}
RESPONSE: Fields = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "completed_at": 1_700_000_001,
    "error": None,
    "incomplete_details": None,
    "model": "gpt-5.5",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": USAGE,
    "metadata": {},
}
REASONING: Fields = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "**Two** cities."}, {"type": "summary_text", "text": "Look."}],
    "encrypted_content": "gAAAAenc",
}
CITATION = {"type": "url_citation", "start_index": 0, "end_index": 3, "title": "t", "url": "https://example.com"}
MESSAGE: Fields = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "phase": "commentary",
    "content": [
        {"type": "output_text", "text": "Let me look, 七 °C.", "annotations": [CITATION], "logprobs": []},
        {"type": "output_text", "text": "Now.", "annotations": [], "logprobs": []},
    ],
}
SEARCH: Fields = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}
CALL: Fields = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_A",
    "name": "get_weather",
    "arguments": '{"city": "K\\u00f6ln"}',
}
SECOND: Fields = {**CALL, "id": "fc_2", "call_id": "call_B", "arguments": '{"days":9007199254740993}'}
PATCH: Fields = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_C",
    "name": "apply_patch",
    "input": '{"no": object',
}
EVERYTHING: Fields = {**RESPONSE, "output": [REASONING, MESSAGE, SEARCH, CALL, SECOND, PATCH]}


# --- what a provider sends --------------------------------------------------------------------------


def streamed(body: Fields, piece: int = 6) -> list[Fields]:
    """A response, streamed as the provider does it."""
    begun = {**body, "status": "in_progress", "output": []}
    for key in ("usage", "completed_at", "incomplete_details"):
        if key in body:
            begun[key] = None
    events = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(body["output"]):
        events += item_events(item, index, piece)
    events.append({"type": f"response.{body['status']}", "response": body})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def item_events(item: Fields, index: int = 0, piece: int = 6) -> list[Fields]:
    place = {"item_id": item.get("id", ""), "output_index": index}
    kind = item["type"]
    begun = {**item, "status": "in_progress"} if "status" in item else dict(item)
    inner: list[Fields] = []
    if kind == "message":
        begun["content"] = []
        for at, part in enumerate(item["content"]):
            inner += part_events(part, {**place, "content_index": at}, piece)
    elif kind == "reasoning":
        begun |= {key: [] for key in ("summary", "content") if key in item}
        for at, part in enumerate(item.get("summary", [])):
            inner += thought_events(part, {**place, "summary_index": at}, piece)
        for at, part in enumerate(item.get("content", [])):
            inner += text_events("reasoning_text", "text", part["text"], {**place, "content_index": at}, piece)
    elif kind in ("function_call", "custom_tool_call"):
        key, name = ("arguments", "function_call_arguments"), ("input", "custom_tool_call_input")
        field, event = key if kind == "function_call" else name
        begun[field] = ""
        inner = text_events(event, field, item[field], place, piece)
    elif kind == "web_search_call":
        inner = [{"type": f"response.web_search_call.{step}", **place} for step in ("in_progress", "searching")]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]


def text_events(name: str, field: str, text: str, place: Fields, piece: int) -> list[Fields]:
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    deltas = [{"type": f"response.{name}.delta", **place, "delta": one} for one in pieces]
    return [*deltas, {"type": f"response.{name}.done", **place, field: text}]


def part_events(part: Fields, place: Fields, piece: int) -> Iterator[Fields]:
    field = "refusal" if part["type"] == "refusal" else "text"
    begun = {**part, field: "", **({"annotations": []} if "annotations" in part else {})}
    yield {"type": "response.content_part.added", **place, "part": begun}
    *deltas, done = text_events(part["type"], field, part[field], place, piece)
    yield from deltas
    for at, annotation in enumerate(part.get("annotations", [])):
        found = {"annotation_index": at, "annotation": annotation}
        yield {"type": "response.output_text.annotation.added", **place, **found}
    yield done
    yield {"type": "response.content_part.done", **place, "part": part}


def thought_events(part: Fields, place: Fields, piece: int) -> Iterator[Fields]:
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    yield from text_events("reasoning_summary_text", "text", part["text"], place, piece)
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def sse(*events: Fields) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


class Read:
    """A stream, read to its end."""

    def __init__(self, *events: Fields, limits: Limits = Limits(), ends: bool = True) -> None:  # noqa: B008
        self.decoder = Decoder(limits=limits)
        self.events: list[Event] = []
        for event in events:
            self.events += self.decoder.read(Frame(json.dumps(event).encode()))
        if ends:
            self.events += self.decoder.finish()
        check(self.events, is_over=ends)
        self.added = Accumulator()
        self.added.add(self.events)

    @property
    def told(self) -> list[str]:
        return self.decoder.sequence.told

    @property
    def reply(self) -> Reply:
        return self.added.reply

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """Those that an agent may run."""
        return [(call.id, call.name, call.arguments) for call in self.added.calls]

    @property
    def failure(self) -> Failed:
        assert isinstance(self.events[-1], Failed)
        return self.events[-1]

    @property
    def finished(self) -> Finished:
        assert isinstance(self.events[-1], Finished)
        return self.events[-1]


def body_of(*items: Fields, **more: Any) -> Fields:
    return {**RESPONSE, **more, "output": list(items)}


# --- the whole answer -------------------------------------------------------------------------------


def test_a_stream_adds_up_to_the_reply_that_the_last_response_is() -> None:
    read = Read(*streamed(EVERYTHING))
    assert read.told == []
    assert read.reply == reply.decode(EVERYTHING)
    assert reply.encode(read.reply) == EVERYTHING


def test_each_block_begins_with_its_own_ids_and_goes_on_in_pieces() -> None:
    read = Read(*streamed(EVERYTHING))
    started = [event.block for event in read.events if isinstance(event, BlockStarted)]
    thinking, first, second, search, call, *_ = started
    assert isinstance(thinking, Thinking)
    assert thinking.id == "rs_1"
    assert isinstance(first, Text)
    assert note(first.extra, "openai_responses", "message")["id"] == "msg_1"
    assert isinstance(second, Text)
    assert note(second.extra, "openai_responses", "joined")
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


def read_bytes(*pieces: bytes) -> list[Event]:
    frames, decoder = framer(), Decoder()
    events: list[Event] = []
    for piece in pieces:
        for frame in frames.feed(piece):
            events += decoder.read(frame)
    for frame in frames.finish():
        events += decoder.read(frame)
    return events + decoder.finish()


def kept(*names: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Fields]:
    """Objects with these fields always, and with a field that nobody has heard of at times."""
    later = {"later": json_values}
    return st.fixed_dictionaries(fields, optional={**later, **dict.fromkeys(names, json_values)})


said_parts = st.one_of(
    kept("logprobs", type=st.just("output_text"), text=texts, annotations=st.lists(json_objects, max_size=1)),
    kept(type=st.just("refusal"), refusal=texts),
)
done = st.just("completed")
model_items = st.one_of(
    kept(
        "phase",
        type=st.just("message"),
        role=st.just("assistant"),
        status=done,
        content=st.lists(said_parts, min_size=1, max_size=3),
    ),
    kept(
        "status",
        type=st.just("reasoning"),
        encrypted_content=texts,
        summary=st.lists(kept(type=st.just("summary_text"), text=texts), max_size=3),
    ),
    kept(type=st.just("reasoning"), content=st.lists(kept(type=st.just("reasoning_text"), text=texts), max_size=3)),
    kept(
        type=st.just("function_call"),
        status=done,
        call_id=st.sampled_from(["call_1", "call_2"]),
        name=st.sampled_from(["read", "write"]),
        arguments=json_objects.map(json.dumps) | st.sampled_from(['{"a":1,"a":2}', '{"a":1.50}', "{ }", "[]"]),
    ),
    kept(type=st.just("custom_tool_call"), call_id=st.just("call_3"), name=st.just("patch"), input=texts),
    server_items.filter(lambda item: "role" not in item),
)
responses = st.builds(
    lambda items, more, end: {
        **RESPONSE,
        **more,
        **end,
        "output": [{**item, "id": f"item_{index}"} for index, item in enumerate(items)],
    },
    st.lists(model_items, max_size=4),
    st.fixed_dictionaries({}, optional={"later": json_values, "usage": st.none()}),
    st.sampled_from(
        [
            {},
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        ]
    ),
)


@pytest.mark.law
@given(responses, st.integers(1, 9))
def test_law_8_any_response_streamed_adds_up_to_itself(body: Fields, piece: int) -> None:
    read = Read(*streamed(body, piece))
    assert read.told == []
    assert read.reply == reply.decode(body)


@pytest.mark.law
@given(responses)
def test_any_response_that_comes_only_at_the_end_is_read_from_there(body: Fields) -> None:
    events = streamed(body)
    read = Read(events[0], events[-1])
    assert read.reply == reply.decode(body)
    assert bool(read.told) is bool(body["output"])


@pytest.mark.law
@given(responses)
def test_any_response_whose_items_come_only_when_they_end_is_read_from_them(body: Fields) -> None:
    events = [event for event in streamed(body) if event["type"].endswith((".created", "item.done"))]
    last = streamed(body)[-1]
    read = Read(*events, {**last, "response": {**last["response"], "output": []}})
    assert read.reply == reply.decode(body)


# --- whatever comes ---------------------------------------------------------------------------------

SCRAPS = [*streamed(EVERYTHING), *item_events(MESSAGE, 0), *item_events(REASONING, 0), {"type": "error"}]


@pytest.mark.law
@given(st.lists(st.sampled_from(SCRAPS), max_size=30))
def test_events_in_any_order_are_read(events: list[Fields]) -> None:
    Read(*events)


@pytest.mark.law
@given(st.lists(damaged(st.sampled_from(SCRAPS)), max_size=12), st.data())
def test_events_with_any_damage_are_read(events: list[Fields], data: st.DataObject) -> None:
    Read(*events)
    Read(*(data.draw(damaged(st.just(event))) for event in SCRAPS[2:20]))


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
    Read(*events)


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
        Read(*streamed(body_of(CALL, SECOND, CALL)), limits=Limits(max_bytes=300))
    with pytest.raises(LimitError, match="max_bytes"):
        Read(
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
    told = [Frame(json.dumps({**event, "content_index": number}).encode()) for number in range(40)]
    with pytest.raises(LimitError, match="max_bytes"):
        list(map(decoder.read, told))


# --- what a real server sent --------------------------------------------------------------------------

RECORDED = sorted((FOLDER / "streams" / "llama_cpp").glob("responses_*.sse"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_real_server_streamed_is_what_its_last_response_says(path: Path) -> None:
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

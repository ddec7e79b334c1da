"""Streams of the OpenAI Responses protocol, written: legal for every client, and the reply when put together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai import OpenAI
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from sdk.loopback import Loopback, serving
from sdk.made_replies import CALL, REPLIES
from support.conversations.event_grammar import check
from support.conversations.strategies import calls, media_blocks, opaque_blocks, text_blocks, texts
from support.protocols.streams.openai_responses import (
    EVERYTHING,
    MESSAGE,
    REASONING,
    RECORDED,
    ReadEvents,
    body_of,
    read_bytes,
    responses,
    sse,
    streamed,
)
from toolglot.conversation import (
    Block,
    Failure,
    FailureKind,
    Opaque,
    Reply,
    ServerTool,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
)
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    MediaDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.protocols.base import StreamOptions, get
from toolglot.protocols.openai_responses import errors, reply
from toolglot.protocols.openai_responses.form import ResponsesReply
from toolglot.protocols.openai_responses.stream_reader import framer
from toolglot.protocols.openai_responses.stream_writer import Encoder

Fields = dict[str, Any]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
CALLS = ("function_call", "custom_tool_call")


def parsed(data: bytes) -> list[Fields]:
    """The data of each event; its name is its type, and they are counted from 0."""
    frames = framer().feed(data)
    events = [json.loads(frame.data) for frame in frames]
    assert [frame.name for frame in frames] == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def written(*events: Event, options: StreamOptions = StreamOptions()) -> list[Fields]:  # noqa: B008
    return parsed(Encoder(options).write(events))


def of_blocks(*blocks: Block, stop: StopReason = "stop") -> list[Event]:
    return list(of_reply(Reply(Turn("assistant", blocks), stop, Usage(1, 2), "resp_1", "m")))


def kinds(events: Iterable[Fields]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def final(events: list[Fields]) -> Fields:
    response: Fields = events[-1]["response"]
    return response


def check_whole(events: list[Fields]) -> None:
    """What a client that puts the events together itself gets is what the last one holds."""
    assert kinds(events)[:2] == ["created", "in_progress"]
    assert all(event["response"]["output"] == [] for event in events[:2])
    items: dict[int, Fields] = {}
    texts_of: dict[tuple[Any, Any], str] = {}
    done: dict[int, Fields] = {}
    for event in events[2:-1]:
        kind, index = event["type"].removeprefix("response."), event["output_index"]
        if kind == "output_item.added":
            assert index == len(items)
            items[index] = event["item"]
        elif kind.endswith(".delta"):
            position = index, event.get("content_index", event.get("summary_index", 0))
            texts_of[position] = texts_of.get(position, "") + event["delta"]
        elif kind == "output_item.done":
            assert event["item"].get("id") == items[index].get("id")
            done[index] = event["item"]
        elif kind.endswith((".text.done", "_text.done", "refusal.done", "arguments.done", "input.done")):
            position = index, event.get("content_index", event.get("summary_index", 0))
            text = next(event[key] for key in ("text", "refusal", "arguments", "input") if key in event)
            assert texts_of.get(position, "") == text
        assert "item_id" not in event or event["item_id"] == items[index].get("id", event["item_id"])
    free = [item for item in final(events)["output"] if item["type"] == "custom_tool_call"]
    cut = [item for item in free if item.get("status") == "incomplete"]
    assert [item for item in final(events)["output"] if item not in cut] == [done[index] for index in sorted(done)]
    for index, item in done.items():
        if item["type"] in CALLS:
            assert texts_of.get((index, 0), "") == item.get("arguments", item.get("input"))


def alike(response: Fields) -> Fields:
    """A response without what differs in a stream: ids of foreign reasoning, and what was complete before a cut."""
    output = []
    for item in response["output"]:
        lost = {"status"} if response["status"] == "incomplete" else set()
        lost |= {"id"} if item["type"] == "reasoning" else set()
        output.append({key: value for key, value in item.items() if key not in lost})
    return {"usage": None, **response, "output": output}


# --- what clients get -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPLIES)
def test_a_client_gets_from_the_stream_what_it_gets_from_the_whole_reply(name: str) -> None:
    events = written(*of_reply(REPLIES[name]))
    check_whole(events)
    for event in events:
        EVENT.validate_python(event)
    expected = reply.encode(REPLIES[name])
    if name == "pause":
        expected["status"] = "incomplete"
    assert alike(final(events)) == alike(expected)


@pytest.fixture(scope="module")
def provider() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


@pytest.fixture
def client(provider: Loopback) -> Iterator[OpenAI]:
    with OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as opened:
        yield opened


COMPLETE = [name for name, made in REPLIES.items() if made.stop in ("stop", "tool_calls")]


@pytest.mark.parametrize("name", COMPLETE)
def test_the_sdk_puts_the_stream_together_to_the_same_reply(name: str, provider: Loopback, client: OpenAI) -> None:
    made = REPLIES[name]
    provider.give(Encoder().write(of_reply(made)), get("openai_responses").stream_type)
    with client.responses.stream(model="m", input="Go") as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        response = stream.get_final_response()
    assert text == made.turn.text == response.output_text
    found = [
        (item.call_id, item.name, item.input if item.type == "custom_tool_call" else json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call" or item.type == "custom_tool_call"
    ]
    assert found == [
        (call.id, call.name, call.raw_input if call.arguments is None else call.arguments) for call in made.turn.calls
    ]
    assert [item.summary[0].text for item in response.output if item.type == "reasoning"] == [
        block.text for block in made.turn.blocks if isinstance(block, Thinking) and block.text
    ]


@pytest.mark.parametrize("name", REPLIES)
def test_the_sdk_reads_every_event(name: str, provider: Loopback, client: OpenAI) -> None:
    data = Encoder().write(of_reply(REPLIES[name]))
    provider.give(data, get("openai_responses").stream_type)
    found = [event.type for event in client.responses.create(model="m", input="Go", stream=True)]
    assert found == [event["type"] for event in parsed(data)]


def test_f1_the_sdk_reads_a_call_that_was_cut_as_incomplete(provider: Loopback, client: OpenAI) -> None:
    provider.give(
        Encoder().write([Started("resp_1", "m"), *cut_call(), Finished("length")]), get("openai_responses").stream_type
    )
    with client.responses.stream(model="m", input="Go") as stream:
        last = list(stream)[-1]
    assert last.type == "response.incomplete"
    assert [item.status for item in last.response.output if item.type == "function_call"] == ["incomplete"]


def test_the_whole_sequence_of_a_reply() -> None:
    events = written(*of_blocks(Thinking("Hm."), Text("One, "), Text("two."), CALL, stop="tool_calls"))
    assert list(dict.fromkeys(kinds(events))) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "completed",
    ]
    assert [(event["output_index"], event["item"].get("status")) for event in events if "item" in event][2:] == [
        (1, "in_progress"),
        (1, "completed"),
        (2, "in_progress"),
        (2, "completed"),
    ]
    assert [event["content_index"] for event in events if event["type"] == "response.content_part.added"] == [0, 1]
    assert [item["type"] for item in final(events)["output"]] == ["reasoning", "message", "function_call"]


def test_a_free_text_call_has_events_of_its_own() -> None:
    events = written(*of_blocks(ToolCall("call_1", "patch", type="custom", raw_input="*** +ä"), stop="tool_calls"))
    assert kinds(events)[2:-1] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert events[2]["item"]["input"] == ""
    assert events[2]["item"]["id"].startswith("ctc_")


def test_thinking_without_text_is_left_out_as_in_a_whole_reply() -> None:
    assert kinds(written(*of_blocks(Thinking(redacted="x"), Text("7"))))[2:4] == [
        "output_item.added",
        "content_part.added",
    ]


def test_blocks_of_other_protocols_are_left_out_as_in_a_whole_reply() -> None:
    alien = (Opaque("anthropic", {"type": "x"}), ServerTool("anthropic", "call", {}))
    assert kinds(written(*of_blocks(*alien))) == ["created", "in_progress", "completed"]


def test_thinking_and_calls_that_came_without_pieces_are_written_in_one() -> None:
    started = [Started("resp_1", "m")]
    for block in (Thinking("Hm."), ToolCall("call_1", "ping", {}), Text("")):
        events = written(*started, BlockStarted(block), BlockEnded(block), Finished("stop"))
        check_whole(events)
        assert len(final(events)["output"]) == 1
        assert final(written(*started, BlockEnded(block), Finished("stop"))) == final(events)


@pytest.mark.parametrize("pieces", [['{"a": 1}'], ['{"a"', ": 1", "}"], [" ", '{ "a":1 }'], []])
def test_the_arguments_of_a_call_are_the_sum_of_their_deltas_to_the_character(pieces: list[str]) -> None:
    whole = ToolCall("call_1", "f", {"a": 1})
    deltas = [InputDelta(piece) for piece in pieces]
    events = written(
        Started("resp_1"), BlockStarted(ToolCall("call_1", "f")), *deltas, BlockEnded(whole), Finished("stop")
    )
    check_whole(events)
    assert final(events)["output"][0]["arguments"] == ("".join(pieces) or '{"a":1}')


def test_a_call_without_arguments_has_an_empty_object() -> None:
    for pieces in ([], [InputDelta("")], [InputDelta(" ")]):
        call = ToolCall("call_1", "f", {})
        events = written(
            Started("resp_1"), BlockStarted(ToolCall("call_1", "f")), *pieces, BlockEnded(call), Finished("stop")
        )
        check_whole(events)
        assert final(events)["output"][0]["arguments"].strip() == "{}"


def test_the_server_sets_the_creation_time_and_the_requested_model() -> None:
    options = StreamOptions(created=1_700_000_000, model="requested")
    events = written(*of_reply(replace(REPLIES["text"], model="")), options=options)
    for event in (events[0], events[-1]):
        assert (event["response"]["created_at"], event["response"]["model"]) == (1_700_000_000, "requested")
    own = written(*of_reply(reply.decode(EVERYTHING)), options=options)
    assert final(own)["created_at"] == EVERYTHING["created_at"]


def test_a_ping_is_a_comment() -> None:
    assert [frame.data for frame in framer().feed(Encoder().ping())] == [b""]


def test_half_a_surrogate_pair_is_written_as_its_replacement() -> None:
    assert "\ufffd".encode() in Encoder().write(of_blocks(Text("\ud83d")))


def test_a_stream_that_was_never_started_is_started_all_the_same() -> None:
    assert (
        kinds(written(BlockStarted(Text("")), TextDelta("a"), BlockEnded(Text("a")), Finished("stop")))[0] == "created"
    )
    assert kinds(written(Finished("stop"))) == ["created", "in_progress", "completed"]


def test_nothing_is_written_after_the_end_and_no_piece_without_its_block() -> None:
    encoder = Encoder()
    encoder.write([*of_reply(REPLIES["text"])])
    assert encoder.write(of_reply(REPLIES["call"])) == b""
    assert kinds(written(Started(), TextDelta("a"), MediaDelta("b"), InputDelta("c"), Finished("stop"))) == [
        "created",
        "in_progress",
        "completed",
    ]


# --- what is not whole ------------------------------------------------------------------------------


def cut_call(*, custom: bool = False) -> list[Event]:
    if custom:
        return list(of_block(ToolCall("call_1", "f", type="custom", raw_input="*** Be"), cut=True))
    return list(of_block(ToolCall("call_1", "f", raw_input='{"a":["ls","pwd"'), cut=True))


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("stop", ["length", "filter", "pause", "stop", "tool_calls"])
def test_f1_a_call_that_was_cut_ends_incomplete_and_done_only_if_no_client_can_run_it(
    stop: StopReason, custom: bool
) -> None:
    events = written(Started("resp_1", "m"), *of_block(Text("I")), *cut_call(custom=custom), Finished(stop))
    check_whole(events)
    *_, last = [event["item"] for event in events if event["type"].endswith("item.done")]
    assert (last["type"], last["status"]) == (("message", "completed") if custom else ("function_call", "incomplete"))
    assert not any(kind.endswith(("arguments.done", "input.done")) for kind in kinds(events))
    assert kinds(events)[-1] == "incomplete"
    assert final(events)["status"] == "incomplete"
    assert final(events)["output"][1]["status"] == "incomplete"
    for event in events:
        EVENT.validate_python(event)


@pytest.mark.parametrize("end", [Finished("error"), Failed(Failure("server", "gone"))])
def test_f1_a_call_that_was_cut_is_incomplete_in_a_response_that_failed(end: Event) -> None:
    events = written(Started("resp_1", "m"), *of_block(Text("I")), *cut_call(), end)
    assert kinds(events)[-1] == "failed"
    assert [(item["type"], item["status"]) for item in final(events)["output"]][1:] == [("function_call", "incomplete")]
    check_whole(events)


def test_a_text_that_was_cut_is_incomplete() -> None:
    cut = [Started("resp_1"), *of_block(Text("I"), cut=True)]
    assert final(written(*cut, Finished("length")))["output"][0]["status"] == "incomplete"
    assert final(written(*cut, *of_block(CALL), Finished("length")))["output"][0]["status"] == "incomplete"
    assert final(written(Started(), *of_block(Text("I")), Finished("length")))["output"][0]["status"] == "incomplete"


@pytest.mark.parametrize(("stop", "reason"), [("length", "max_output_tokens"), ("filter", "content_filter")])
def test_a_cut_reply_has_its_reason(stop: StopReason, reason: str) -> None:
    response = final(written(*of_blocks(Text("I"), stop=stop)))
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})


def test_a_status_that_was_read_yields_to_the_present_stop_reason() -> None:
    own = reply.decode(body_of(MESSAGE))
    response = final(written(*of_reply(replace(own, stop="length"))))
    assert (response["status"], response["incomplete_details"]["reason"]) == ("incomplete", "max_output_tokens")
    assert final(written(*of_reply(replace(own, stop="tool_calls"))))["status"] == "completed"


# --- failures ---------------------------------------------------------------------------------------

STRICT_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")


@pytest.mark.parametrize("kind", sorted(errors.SHAPE.spellings))
def test_a_failure_is_a_response_that_failed(kind: FailureKind) -> None:
    failure = Failure(kind, "Some reason")
    events = written(Failed(failure))
    assert kinds(events) == ["created", "in_progress", "failed"]
    assert final(events)["status"] == "failed"
    error = final(events)["error"]
    assert "Some reason" in error["message"]
    if error["code"] not in STRICT_CODES:
        error["code"] = "server_error"
    for event in events:
        EVENT.validate_python(event)
    read = ReadEvents(*written(Failed(failure)))
    assert (read.failure.failure.kind, read.failure.failure.in_band) == (kind, True)


def test_a_failure_has_the_time_to_retry_in_its_message() -> None:
    error = final(written(Failed(Failure("rate_limit", "Slow down.", retry_after=1.5))))["error"]
    assert error == {"code": "rate_limit_exceeded", "message": "Slow down. Please try again in 1.5s."}
    read = ReadEvents(*written(Failed(Failure("rate_limit", "Slow down.", retry_after=1.5))))
    assert read.failure.failure.retry_after == 1.5


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "insufficient_quota", "message": "Pay.", "param": None},
        {"type": "response.failed", "response": {"error": {"code": "insufficient_quota", "message": "Pay."}}},
        {"error": {"code": "insufficient_quota", "message": "Pay."}},
    ],
)
def test_a_native_failure_keeps_its_code(event: Fields) -> None:
    events = written(*ReadEvents(*streamed(body_of(MESSAGE))[:6], event).events)
    assert final(events)["error"] == {"code": "insufficient_quota", "message": "Pay."}
    assert final(events)["output"][0]["id"] == "msg_1"
    check_whole(events)


# --- native streams ---------------------------------------------------------------------------------


def test_a_response_comes_back_as_it_was() -> None:
    events = written(*of_reply(reply.decode(EVERYTHING)))
    check_whole(events)
    assert final(events) == EVERYTHING
    assert ReadEvents(*events).reply == reply.decode(EVERYTHING)
    assert ReadEvents(*events).problems == []
    for event in events:
        EVENT.validate_python(event)
    begun = {**EVERYTHING, "status": "in_progress", "output": [], "completed_at": None}
    del begun["usage"]
    assert events[0]["response"] == events[1]["response"] == begun


def test_a_native_stream_is_written_as_it_came_event_by_event() -> None:
    read = ReadEvents(*streamed(EVERYTHING))
    encoder = Encoder()
    single = b"".join(encoder.write([event]) for event in read.events)
    assert single == Encoder().write(read.events)
    assert final(parsed(single)) == EVERYTHING
    assert {event["item"].get("id") for event in parsed(single) if "item" in event} == {
        item["id"] for item in EVERYTHING["output"]
    }


def test_reasoning_that_was_shown_in_full_is_written_so() -> None:
    shown = {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hmm."}]}
    events = written(*of_reply(reply.decode(body_of(shown))))
    assert kinds(events)[2:-1] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert final(events) == body_of(shown)
    for event in events:
        EVENT.validate_python(event)


def test_reasoning_that_only_its_issuer_reads_and_other_items_are_written_at_once() -> None:
    hidden = {**REASONING, "summary": []}
    body = body_of(hidden, {"id": "x", "type": "later", "a": [1]})
    events = written(*of_reply(reply.decode(body)))
    assert kinds(events)[2:-1] == ["output_item.added", "output_item.done"] * 2
    assert final(events) == body


def test_a_message_with_odd_content_comes_back_as_it_was() -> None:
    for content in (
        "plain",
        [{"type": "later", "x": 1}],
        [*MESSAGE["content"], {"type": "input_image", "file_id": "f"}],
    ):
        body = body_of({**MESSAGE, "content": content}, {**MESSAGE, "id": "msg_2"})
        events = written(*of_reply(reply.decode(body)))
        assert final(events) == body


def test_native_ids_that_come_too_late_do_not_change_those_that_were_sent(provider: Loopback, client: OpenAI) -> None:
    own = reply.decode(body_of(REASONING, MESSAGE))
    encoder = Encoder()
    data = b"".join(encoder.write([event]) for event in of_reply(own))
    check_whole(parsed(data))
    provider.give(data, get("openai_responses").stream_type)
    with client.responses.stream(model="m", input="Go") as stream:
        assert stream.get_final_response().output_text == own.turn.text


def test_items_without_ids_have_events_that_name_them_all_the_same() -> None:
    bare = [{key: value for key, value in item.items() if key != "id"} for item in EVERYTHING["output"]]
    events = written(*of_reply(reply.decode(body_of(*bare))))
    assert final(events)["output"] == bare
    assert all(event["item_id"] for event in events if "item_id" in event)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_a_real_server_left_out_is_there_for_a_strict_client(path: Path) -> None:
    events = written(*read_bytes(path.read_bytes()), options=StreamOptions(created=1, model="requested"))
    check_whole(events)
    for event in events:
        response = event.get("response", {})
        if response.get("usage"):
            response["usage"] = None  # it does not have all counts
        EVENT.validate_python(event)
    assert events[0]["response"]["model"] == "requested"


@pytest.mark.law
@given(responses)
def test_law_8_any_response_comes_back_through_the_stream(body: Fields) -> None:
    whole = reply.decode(body)
    events = written(*of_reply(whole))
    check_whole(events)
    read = ReadEvents(*events)
    assert read.reply == whole
    assert read.problems == []
    assert final(events) == body


blocks = st.one_of(
    text_blocks,
    calls.map(
        lambda call: replace(
            call, name=call.name or "ping", metadata=None, raw_input=None, arguments=call.arguments or {}
        )
    ),
    st.builds(Thinking, texts, st.none() | texts, st.none() | texts, st.none() | texts),
    st.builds(ToolCall, st.just("call_9"), st.just("patch"), type=st.just("custom"), raw_input=texts),
    media_blocks,
    opaque_blocks,
)
stops = st.sampled_from(["stop", "tool_calls", "length", "filter", "pause", "error"])


@pytest.mark.law
@given(st.lists(blocks, max_size=5), stops, st.none() | st.builds(Usage, st.integers(0, 9)), st.integers(1, 30))
def test_any_reply_of_another_protocol_is_a_legal_stream_that_reads_as_the_whole_reply(
    made: list[Block], stop: StopReason, usage: Usage | None, piece: int
) -> None:
    whole = Reply(Turn("assistant", tuple(made)), stop, usage, "resp_1", "m")
    events = list(of_reply(whole, piece=piece))
    check(events)
    encoder = Encoder()
    data = b"".join(encoder.write([event]) for event in events)
    assert data == Encoder().write(events)
    found = parsed(data)
    check_whole(found)
    expected = reply.decode(reply.encode(whole))
    read = ReadEvents(*found)
    assert read.problems == []
    assert [comparable(block) for block in read.reply.turn.blocks] == [
        comparable(block) for block in expected.turn.blocks
    ]


def comparable(block: Block) -> object:
    if isinstance(block, ToolCall):
        return block.id, block.name, block.type, block.arguments, block.raw_input if block.arguments is None else None
    return (type(block), block.text) if isinstance(block, Text | Thinking) else block


def test_bytes_of_a_provider_and_bytes_of_ours_are_understood_alike() -> None:
    ours = Encoder().write(ReadEvents(*streamed(EVERYTHING)).events)
    theirs = sse(*streamed(EVERYTHING))
    assert ReadEvents(*parsed(ours)).reply == ReadEvents(*parsed(theirs)).reply
    assert ReadEvents(*parsed(ours)).reply.form == ResponsesReply("completed")


def test_usage_comes_with_the_end() -> None:
    events = written(Started("resp_1"), Used(Usage(1, 2)), ThinkingDelta(""), Used(Usage(3, 4)), Finished("stop"))
    assert final(events)["usage"]["total_tokens"] == 7
    assert events[0]["response"]["usage"] is None

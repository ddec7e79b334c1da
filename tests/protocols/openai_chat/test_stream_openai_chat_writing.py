"""Chat Completions streams, written: the strictest clients read from them what a whole body has."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, texts
from support.protocols.streams.openai_chat import Fields, ReadChunks, call, calls, chunk, frames
from support.protocols.streams.openai_sdk import QUESTION, client_of
from toolglot.conversation import Failure, Media, Opaque, Reply, Text, Thinking, ToolCall, ToolResult, Turn, Usage
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
    Used,
)
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.openai_chat import reply, stream_writer

USAGE = Usage(5, 2, 3, None, 1)
CALLING = Reply(
    Turn(
        "assistant",
        (
            Thinking("hm", "signature"),
            Text("Hällo 😀"),
            ToolCall("call_a", "get_weather", {"city": "Köln", "days": [1, 2]}),
            ToolCall("call_b", "get_time", {}),
        ),
    ),
    "tool_calls",
    USAGE,
    "msg_1",
    "model-1",
)


def written(events: Iterable[Event], **options: Any) -> list[Any]:
    """The data of each event, parsed where it is JSON."""
    data = stream_writer.Encoder(StreamOptions(**options)).write(events)
    return [frame.data.decode() if frame.data == b"[DONE]" else json.loads(frame.data) for frame in frames(data)]


def put_together(chunks: list[Any]) -> Fields:
    """The message that a simple client makes of chunks: texts are joined, calls are kept by their index."""
    message: Fields = {}
    for one in chunks:
        for choice in one["choices"] if isinstance(one, dict) else ():
            for key, value in choice["delta"].items():
                if key == "tool_calls":
                    for piece in value:
                        _add_call(message.setdefault("tool_calls", []), piece)
                elif isinstance(message.get(key), str) and value is not None:
                    message[key] += value
                else:
                    message[key] = value
    return message


def _add_call(listed: list[Fields], piece: Fields) -> None:
    index = piece["index"]
    if index == len(listed):
        listed.append({key: value for key, value in piece.items() if key != "index"})
        return
    key, inner = next((key, piece[key]) for key in ("function", "custom") if key in piece)
    for name, value in inner.items():
        listed[index][key][name] += value


# --- what is written --------------------------------------------------------------------------------


def test_a_reply_as_openai_writes_it() -> None:
    head = {"id": "msg_1", "object": "chat.completion.chunk", "created": 9, "model": "model-1"}

    def one(delta: Fields, finish: str | None = None) -> Fields:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    made = Reply(Turn("assistant", (Text("Hi"), ToolCall("a", "f", {"x": 1}))), "tool_calls", USAGE, "msg_1", "model-1")
    assert written(of_reply(made), created=9) == [
        one({"role": "assistant", "content": None}),
        one({"content": "Hi"}),
        one({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
        one({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":1}'}}]}),
        one({}, "tool_calls"),
        {
            **head,
            "choices": [],
            "usage": {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 7,
                "prompt_tokens_details": {"cached_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        },
        "[DONE]",
    ]


def test_counts_only_for_a_client_that_requested_them() -> None:
    assert "usage" not in str(written(of_reply(CALLING), usage=False))
    assert written(of_reply(CALLING), usage=False)[-1] == "[DONE]"


def test_the_requested_model_is_named_if_the_provider_named_none() -> None:
    chunks = written([Started(), Finished("stop")], model="requested")
    assert chunks[0]["model"] == "requested"


def test_events_without_a_start_get_one() -> None:
    chunks = written([*of_block(Text("a")), Finished("stop")])
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert put_together(chunks) == {"role": "assistant", "content": "a"}


def test_a_call_without_an_id_gets_one() -> None:
    events: list[Event] = [
        Started("m1"),
        *of_block(ToolCall("", "f", {})),
        *of_block(ToolCall("", "f", {})),
        Finished("tool_calls"),
    ]
    assert [one["id"] for one in put_together(written(events))["tool_calls"]] == ["call_m1_0", "call_m1_1"]


@pytest.mark.parametrize("deltas", [[], ["", " "], ["\n"]])
def test_a_call_without_arguments_has_an_empty_object(deltas: list[str]) -> None:
    call_begun: list[Event] = [Started(), BlockStarted(ToolCall("a", "f")), *map(InputDelta, deltas)]
    events: list[Event] = [*call_begun, BlockEnded(ToolCall("a", "f", {})), Finished("tool_calls")]
    (one,) = put_together(written(events))["tool_calls"]
    assert one["function"]["arguments"] == "{}"


def test_F1_a_call_that_was_cut_is_not_finished() -> None:
    cut = ToolCall("a", "f", None, raw_input='{"x')
    begun: list[Event] = [Started("m"), BlockStarted(ToolCall("a", "f")), InputDelta('{"x'), BlockEnded(cut, cut=True)]
    chunks = written([*begun, Finished("length")])
    assert put_together(chunks)["tool_calls"][0]["function"]["arguments"] == '{"x'
    assert [one["choices"][0]["finish_reason"] for one in chunks[:-2]] == [None, None, None, "length"]
    empty: list[Event] = [Started("m"), BlockStarted(ToolCall("a", "f")), BlockEnded(ToolCall("a", "f", {}), cut=True)]
    assert "tool_calls" not in put_together(written([*empty, Finished("length")]))


def test_after_a_failure_there_is_its_error_and_nothing_else() -> None:
    failure = Failure("rate_limit", "slow down", 429)
    events: list[Event] = [
        Started("m"),
        BlockStarted(Text("")),
        TextDelta("a"),
        BlockEnded(Text("a"), cut=True),
        Failed(failure),
    ]
    encoder = stream_writer.Encoder()
    data = encoder.write(events)
    assert encoder.write([Finished("stop")]) == b""
    *_, last = [json.loads(frame.data) for frame in frames(data)]
    assert last["error"]["code"] == "rate_limit_exceeded"
    assert b"[DONE]" not in data


def test_an_error_in_another_shape_is_written_in_the_one_that_clients_know() -> None:
    flat = {"object": "error", "message": "slow down", "type": "rate_limit", "code": "429"}
    stream = ReadChunks([chunk({"content": "a"}), flat])
    *_, last = written(stream.events)
    assert "slow down" in last["error"]["message"]


def test_a_ping_is_a_comment() -> None:
    stream = ReadChunks(stream_writer.Encoder().ping() + stream_writer.Encoder().write(of_reply(CALLING)))
    assert stream.problems == []
    assert stream.calls == [("get_weather", {"city": "Köln", "days": [1, 2]}), ("get_time", {})]


def test_what_the_protocol_cannot_carry_is_left_out() -> None:
    blocks = (
        Media("image", "image/png", data="aGk="),
        Opaque("anthropic", {"type": "x"}, "x"),
        ToolResult("a", "b"),
        Thinking("", "signature", "hidden"),
    )
    made = Reply(Turn("assistant", blocks), "stop")
    assert put_together(written(of_reply(made))) == reply.encode(made)["choices"][0]["message"]


def test_native_fields_are_written_where_they_were() -> None:
    stream = ReadChunks(
        [
            chunk({"refusal": "no"}),
            chunk({"content": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "b", "x": 1}]}),
            chunk({"content": [{"type": "image_url", "image_url": "data:image/png;base64,aGk="}]}),
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "c"}], "signature": "s"}]}),
            chunk({"annotations": [1]}),
            calls(call(0, "x", "f", "{}", extra_content={"y": 1})),
            calls({"index": 1, "id": "z", "type": "later", "later": 1}),
            chunk({}, "stop"),
        ]
    )
    again = ReadChunks(stream_writer.Encoder(StreamOptions(thinking_parts=True)).write(stream.events))
    assert again.reply.turn == stream.reply.turn
    assert again.reply.turn.extra == {"openai_chat": {"annotations": [1]}}


def test_a_free_text_call() -> None:
    patch = ToolCall("a", "patch", type="custom", raw_input=" {}\n")
    made = Reply(Turn("assistant", (patch,)), "tool_calls")
    assert put_together(written(of_reply(made)))["tool_calls"] == [
        {"id": "a", "type": "custom", "custom": {"name": "patch", "input": " {}\n"}}
    ]


def test_deltas_that_no_chunk_can_hold_are_left_out() -> None:
    image = Media("image", "image/png", data="aGk=")
    events: list[Event] = [Started(), BlockStarted(Media("image", "image/png")), MediaDelta("aGk="), BlockEnded(image)]
    assert put_together(written([*events, Used(Usage()), Finished("stop")])) == {"role": "assistant", "content": ""}


def test_half_a_character_is_written_as_its_replacement() -> None:
    events: list[Event] = [
        Started(),
        BlockStarted(Text("")),
        TextDelta("\ud83d"),
        BlockEnded(Text("\ud83d")),
        Finished("stop"),
    ]
    assert put_together(written(events))["content"] == "\ufffd"


def test_probabilities_and_details_come_with_the_end() -> None:
    made = chunk({"content": "a"})
    made["choices"][0]["logprobs"] = {"content": [{"token": "a"}]}
    stream = ReadChunks([made, chunk({"reasoning_details": [{"type": "x"}]}), chunk({}, "stop")])
    end = written(stream.events)[-2]["choices"][0]
    assert end["logprobs"] == {"content": [{"token": "a"}]}
    assert end["delta"] == {"reasoning_details": [{"type": "x"}]}


# --- laws -------------------------------------------------------------------------------------------

ids = st.text("abc_1", min_size=1, max_size=6)
blocks = st.lists(
    st.builds(Text, texts.filter(bool))
    | st.builds(Thinking, texts.filter(bool))
    | st.builds(ToolCall, ids, st.sampled_from(["f", "g"]), json_objects)
    | st.builds(lambda id, text: ToolCall(id, "p", type="custom", raw_input=text), ids, texts),
    max_size=5,
    unique_by=lambda block: block.id if isinstance(block, ToolCall) else id(block),
)
replies = st.builds(
    lambda made, usage, id, model: Reply(
        Turn("assistant", tuple(made)),
        "tool_calls" if any(isinstance(block, ToolCall) for block in made) else "stop",
        usage,
        id,
        model,
    ),
    blocks,
    st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    ids,
    ids,
)


@pytest.mark.law
@given(replies, st.integers(1, 30))
def test_a_client_puts_together_what_a_whole_body_has(made: Reply, piece: int) -> None:
    chunks = written(of_reply(made, piece=piece))
    body = reply.encode(made)
    assert put_together(chunks) == body["choices"][0]["message"]
    assert chunks[-2]["usage"] == body["usage"]
    assert chunks[-3]["choices"][0]["finish_reason"] == body["choices"][0]["finish_reason"]


@pytest.mark.law
@given(replies, st.integers(1, 30))
def test_a_written_stream_is_read_again(made: Reply, piece: int) -> None:
    stream = ReadChunks(stream_writer.Encoder().write(of_reply(made, piece=piece)), ("f", "g", "p"))
    assert stream.problems == []
    assert (stream.reply.id, stream.reply.model, stream.reply.stop) == (made.id, made.model, made.stop)
    assert [_comparable(block) for block in _joined(stream.reply)] == [_comparable(block) for block in _joined(made)]


def _comparable(block: Any) -> Any:
    if isinstance(block, ToolCall):
        return block.id, block.name, block.type, block.arguments, block.type == "custom" and block.raw_input
    return type(block), block.text


def _joined(made: Reply) -> list[Any]:
    """Texts that follow each other are one text in this protocol, and so is thinking."""
    listed: list[Any] = []
    for block in made.turn.blocks:
        if isinstance(block, Text | Thinking) and listed and type(listed[-1]) is type(block):
            listed[-1] = type(block)(listed[-1].text + block.text)
        else:
            listed.append(block)
    return listed


# --- the SDK of OpenAI ------------------------------------------------------------------------------


def test_the_sdk_reads_each_chunk() -> None:
    with client_of(stream_writer.Encoder().write(of_reply(CALLING, piece=3))) as client:
        chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "Hällo 😀"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 7


def test_the_sdk_puts_the_stream_together() -> None:
    data = stream_writer.Encoder().ping() + stream_writer.Encoder().write(of_reply(CALLING, piece=3))
    with client_of(data) as client, client.chat.completions.stream(model="m", messages=QUESTION) as events:
        done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        final = events.get_final_completion()
    assert [(event.name, json.loads(event.arguments)) for event in done] == [
        ("get_weather", {"city": "Köln", "days": [1, 2]}),
        ("get_time", {}),
    ]
    message = final.choices[0].message
    assert message.content == "Hällo 😀"
    assert [(one.id, one.function.name) for one in message.tool_calls or ()] == [
        ("call_a", "get_weather"),
        ("call_b", "get_time"),
    ]
    assert message.to_dict()["reasoning_content"] == "hm"
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.usage is not None


def test_the_sdk_gets_null_content_where_there_are_only_calls() -> None:
    data = stream_writer.Encoder().write(of_reply(Reply(Turn("assistant", (ToolCall("a", "f", {}),)), "tool_calls")))
    with client_of(data) as client, client.chat.completions.stream(model="m", messages=QUESTION) as events:
        assert events.get_final_completion().choices[0].message.content is None


def test_the_sdk_puts_a_free_text_call_together() -> None:
    patch = ToolCall("a", "patch", type="custom", raw_input="*** Begin")
    data = stream_writer.Encoder().write(of_reply(Reply(Turn("assistant", (patch,)), "tool_calls"), piece=3))
    with client_of(data) as client:
        chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert put_together([one.to_dict() for one in chunks])["tool_calls"][0]["custom"]["input"] == "*** Begin"


def test_the_sdk_raises_what_failed() -> None:
    data = stream_writer.Encoder().write(
        [Started("m"), *of_block(Text("a")), Failed(Failure("overloaded", "too busy", 529))]
    )
    with client_of(data) as client, pytest.raises(openai.APIError, match="too busy"):
        list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))


def test_the_sdk_knows_that_an_answer_was_cut() -> None:
    cut = ToolCall("a", "f", None, raw_input='{"x')
    begun: list[Event] = [Started("m"), BlockStarted(ToolCall("a", "f")), InputDelta('{"x'), BlockEnded(cut, cut=True)]
    with client_of(stream_writer.Encoder().write([*begun, Finished("length")])) as client:
        chunks = list(client.chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "length"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thinking_stays_in_its_field_unless_the_client_reads_parts(field: str) -> None:
    stream = ReadChunks([chunk({field: "a"}), chunk({"content": "b"}), chunk({}, "stop")])
    again = ReadChunks(stream_writer.Encoder(StreamOptions()).write(stream.events))
    assert again.reply.turn == stream.reply.turn
    parts = ReadChunks(stream_writer.Encoder(StreamOptions(thinking_parts=True)).write(stream.events))
    assert [(type(block), block.text) for block in parts.reply.turn.blocks if isinstance(block, Text | Thinking)] == [
        (Thinking, "a"),
        (Text, "b"),
    ]
    assert parts.reply.turn != stream.reply.turn

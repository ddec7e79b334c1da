"""Chat Completions streams, read: what they add up to, how they end, and what hosts do to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.event_grammar import check
from support.conversations.strategies import json_values
from support.protocols.streams.openai_chat import DONE, Fields, ReadChunks, call, calls, chunk, frames, sse
from toolglot.conversation import Media, Opaque, Text, Thinking, ToolCall, Usage
from toolglot.conversation.events import Accumulator, BlockStarted, Event, Finished, Started, TextDelta, Used
from toolglot.protocols.framing.event_builder import PARTS_IN_CONTENT, STOP_WITH_CALLS
from toolglot.protocols.openai_chat import reply, stream_reader
from toolglot.protocols.openai_chat.form import BARE, REFUSAL_FIELD, ChatReply, ChatThinking, ChatUsage

RECORDINGS = sorted((Path(__file__).parents[2] / "recordings" / "streams" / "llama_cpp").glob("chat_*.sse"))
STOP = (chunk({}, "stop"), DONE)
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def read_to_stop(*chunks: Any, tools: tuple[str, ...] = ()) -> ReadChunks:
    return ReadChunks([*chunks, *STOP], tools)


# --- a plain stream ---------------------------------------------------------------------------------


def test_text_comes_piece_by_piece() -> None:
    stream = read_to_stop(
        chunk({"role": "assistant", "content": ""}), chunk({"content": "Hel"}), chunk({"content": "lo"})
    )
    assert stream.events[1:] == [
        BlockStarted(Text("")),
        TextDelta("Hel"),
        TextDelta("lo"),
        stream.events[4],
        Finished("stop", form=ChatReply({"index": 0, "logprobs": None}, finish_reason="stop")),
    ]
    assert stream.events[0] == Started(
        "chatcmpl-1",
        "m",
        {"openai_chat": {"object": "chat.completion", "created": 7}},
        ChatReply({"index": 0, "logprobs": None}),
    )
    assert stream.problems == []


def test_the_reply_starts_with_the_first_chunk_that_names_it() -> None:
    decoder = stream_reader.Decoder()
    (frame,) = frames(sse([chunk({"role": "assistant"})]))
    assert [type(event) for event in decoder.read(frame)] == [Started]


def test_id_and_model_are_those_of_the_first_chunk_that_has_them() -> None:
    azure = {"id": "", "model": "", "object": "", "created": 0, "choices": [], "prompt_filter_results": [{"x": 1}]}
    stream = read_to_stop(
        azure, chunk({"role": "assistant"}, id="", model=""), chunk({"content": "a"}), chunk({}, id="other")
    )
    assert (stream.reply.id, stream.reply.model) == ("chatcmpl-1", "m")
    assert stream.reply.extra is not None
    assert stream.reply.extra["openai_chat"]["prompt_filter_results"] == [{"x": 1}]
    assert stream.reply.extra["openai_chat"]["created"] == 7
    assert stream.problems == []


def test_what_a_stream_adds_up_to_is_the_whole_body() -> None:
    stream = ReadChunks(
        [
            chunk({"role": "assistant", "content": None}, system_fingerprint="fp"),
            chunk({"reasoning_content": "hm"}, system_fingerprint="fp"),
            chunk({"content": "Hi"}, system_fingerprint="fp"),
            calls(call(0, "a", "f", '{"x":1}', type="function")),
            chunk({}, "tool_calls", service_tier="default"),
            {**chunk({}), "choices": [], "usage": USAGE},
            DONE,
        ]
    )
    assert reply.encode(stream.reply) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "system_fingerprint": "fp",
        "service_tier": "default",
        "choices": [
            {
                "index": 0,
                "logprobs": None,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "reasoning_content": "hm",
                    "content": "Hi",
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}],
                },
            }
        ],
        "usage": USAGE,
    }


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_stream_is_the_recorded_reply(path: Path) -> None:
    stream = ReadChunks(path.read_bytes())
    whole = reply.decode(json.loads(path.with_suffix(".json").read_text()))
    blocks = [block for block in whole.turn.blocks if not (isinstance(block, Text) and not block.text)]
    if "length_in" not in path.stem:
        assert [_unnamed(block) for block in stream.reply.turn.blocks] == [_unnamed(block) for block in blocks]
    assert [type(block) for block in stream.reply.turn.blocks] == [type(block) for block in blocks]
    assert stream.reply.stop == whole.stop
    assert stream.problems == [] or "two_choices" in path.stem


def _unnamed(block: Any) -> Any:
    return (block.name, block.arguments) if isinstance(block, ToolCall) else block


# --- thinking, refusals, parts ----------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_comes_back_in_the_field_that_it_was_in(field: str) -> None:
    stream = read_to_stop(chunk({field: "a", "content": None}), chunk({field: "b"}), chunk({"content": "c"}))
    assert stream.reply.turn.blocks == (Thinking("ab", form=ChatThinking(field)), Text("c"))
    assert stream.problems == []


def test_thinking_in_two_fields_comes_once() -> None:
    stream = read_to_stop(
        chunk({"reasoning_content": "a", "reasoning": "a"}), chunk({"reasoning_content": "b", "reasoning": "b"})
    )
    assert stream.thoughts == ["ab"]


def test_thinking_in_another_field_is_another_block() -> None:
    stream = read_to_stop(chunk({"reasoning_content": "a"}), chunk({"reasoning": "b"}), chunk({"reasoning": "c"}))
    assert stream.thoughts == ["a", "bc"]


def test_H7_thinking_inside_of_arguments_waits() -> None:
    stream = read_to_stop(
        calls(call(0, "a", "f", '{"x":')),
        chunk({"reasoning_content": "hm"}),
        chunk({"reasoning": "m"}),
        calls(call(0, arguments="1}")),
        chunk({"content": "done"}),
    )
    assert stream.calls == [("f", {"x": 1})]
    assert stream.thoughts == ["hmm"]
    assert stream.texts == ["done"]
    assert [type(block) for block in stream.reply.turn.blocks] == [ToolCall, Thinking, Text]


def test_text_after_calls_and_calls_after_text() -> None:
    stream = read_to_stop(calls(call(0, "a", "f", "{}")), chunk({"content": "and"}), calls(call(1, "b", "g", "{}")))
    assert [type(block) for block in stream.reply.turn.blocks] == [ToolCall, Text, ToolCall]
    assert stream.problems == [STOP_WITH_CALLS]
    assert stream.reply.stop == "tool_calls"


def test_details_of_reasoning_are_put_together() -> None:
    stream = read_to_stop(
        chunk({"reasoning": "a", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]}),
        chunk({"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]}),
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s"}, 7]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "d"}]}),
        chunk({"content": "c", "annotations": [1]}),
        chunk({"annotations": [2], "audio": {"id": "x", "data": "aa"}}),
        chunk({"audio": {"data": "bb", "id": None, "expires_at": 9}}),
    )
    assert stream.thoughts == ["ab"]
    assert stream.texts == ["c"]
    assert stream.reply.turn.extra is not None
    assert stream.reply.turn.extra["openai_chat"] == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
            7,
            {"type": "reasoning.encrypted", "index": 1, "data": "d"},
        ],
        "annotations": [1, 2],
        "audio": {"id": "x", "data": "aabb", "expires_at": 9},
    }


def test_a_refusal_is_a_text_and_the_reply_was_filtered() -> None:
    stream = read_to_stop(
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"refusal": "I "}),
        chunk({"refusal": "can't"}),
    )
    assert stream.reply.turn.blocks == (Text("I can't", form=REFUSAL_FIELD, is_refusal=True),)
    assert stream.reply.stop == "filter"
    assert stream.problems == []


def test_an_empty_list_of_calls_interrupts_nothing() -> None:
    stream = read_to_stop(chunk({"refusal": "a"}), chunk({"tool_calls": [], "audio": 1}), chunk({"refusal": "b"}))
    assert stream.texts == ["ab"]


def test_a_refusal_between_texts() -> None:
    stream = read_to_stop(
        chunk({"content": "a"}), chunk({"refusal": "b"}), chunk({"content": "c"}), calls(call(0, "x", "f", "{}"))
    )
    assert stream.texts == ["a", "b", "c"]
    assert stream.reply.stop == "tool_calls"
    assert stream.problems == [STOP_WITH_CALLS]


def test_content_in_parts_as_mistral_writes_it() -> None:
    def thought(*texts: str, **others: Any) -> Fields:
        parts = [{"type": "text", "text": text} for text in texts]
        return chunk({"content": [{"type": "thinking", "thinking": parts, **others}]})

    stream = read_to_stop(
        thought("a"),
        thought("b", "c"),
        thought(signature="s"),
        chunk({"content": [{"type": "text", "text": "d"}, {"type": "reference", "reference_ids": [1]}]}),
        chunk({"content": [{"type": "text", "text": "e", "annotations": []}]}),
        chunk({"content": "f"}),
        chunk(
            {
                "content": [
                    {"type": "text", "text": "g"},
                    {"type": "image_url", "image_url": "data:image/png;base64,aGk="},
                ]
            }
        ),
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "tool_reference", "x": 1}, {"text": "y"}]}]}),
    )
    assert stream.reply.turn.blocks == (
        Thinking("abc", "s", form=ChatThinking(chunk=[])),
        Text("d"),
        Opaque("openai_chat", {"type": "reference", "reference_ids": [1]}, "reference"),
        Text("e", extra={"openai_chat": {"annotations": []}}),
        Text("fg"),
        Media("image", "image/png", data="aGk=", form=BARE),
        Thinking("y", form=ChatThinking(chunk=[{"type": "tool_reference", "x": 1}, {"text": "y"}])),
    )
    assert stream.problems == [PARTS_IN_CONTENT]


@pytest.mark.parametrize("content", [7, {"a": 1}, [7], [{}], [{"type": "text"}], True])
def test_content_of_another_type_is_left_out_and_reported(content: Any) -> None:
    stream = read_to_stop(chunk({"content": "a"}), chunk({"content": content}))
    assert stream.texts == ["a"]
    assert len([reason for reason in stream.problems if reason != PARTS_IN_CONTENT]) == 1


def test_a_call_as_it_was_before_there_were_tools() -> None:
    stream = read_to_stop(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"x":'}}),
        chunk({"function_call": {"arguments": "1}"}}),
    )
    whole = reply.decode(
        {
            "choices": [
                {
                    "message": {"role": "assistant", "function_call": {"name": "f", "arguments": '{"x":1}'}},
                    "finish_reason": "function_call",
                }
            ]
        }
    )
    assert stream.reply.turn.blocks == whole.turn.blocks
    assert stream.reply.stop == whole.stop


# --- choices, counts, probabilities -----------------------------------------------------------------


def test_only_the_first_choice_is_the_reply() -> None:
    def choices(*texts: str) -> Fields:
        listed = [{"index": at, "delta": {"content": text}, "finish_reason": None} for at, text in enumerate(texts)]
        return {**chunk({}), "choices": listed}

    stream = read_to_stop(
        choices("a", "x"), choices("b"), {**chunk({}), "choices": [{"index": 1, "delta": {"content": "y"}}, 7]}
    )
    assert stream.texts == ["ab"]
    assert stream.problems == ["a choice is not an object; it was left out"]


@pytest.mark.parametrize("choices", [[], None, {}, "x"])
def test_chunks_without_choices_add_nothing_and_are_reported_where_there_is_no_list(choices: Any) -> None:
    stream = read_to_stop(chunk({"content": "a"}), {**chunk({}), "choices": choices}, chunk({"content": "b"}))
    assert stream.texts == ["ab"]
    assert stream.problems == ([] if choices == [] else ["an event has no choices"])


def test_an_event_that_is_no_chunk_is_reported() -> None:
    assert read_to_stop(chunk({"content": "a"}), {"type": "ping"}).problems == ["an event has no choices"]
    assert read_to_stop(chunk({"content": "a"}), [1]).problems == ["an event is not an object; it was left out"]
    assert read_to_stop(chunk({"content": "a"}), "oops").problems == ["an event is not JSON; it was left out"]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk({}, "stop"), {**chunk({}), "choices": [], "usage": USAGE}],
        [{**chunk({}), "choices": [], "usage": USAGE}, chunk({}, "stop")],
        [chunk({"content": ""}, usage={"prompt_tokens": 1, "completion_tokens": 1}), chunk({}, "stop", usage=USAGE)],
        [{**chunk({}), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}],
        [chunk({}, "stop", x_groq={"id": "r", "usage": USAGE})],
        [{**chunk({}, "stop"), "usage": USAGE}, {"usage": None, "choices": []}],
    ],
)
def test_counts_in_any_chunk(chunks: list[Fields]) -> None:
    stream = ReadChunks([chunk({"content": "a"}), *chunks, DONE])
    assert stream.reply.usage is not None
    assert (stream.reply.usage.input_tokens, stream.reply.usage.output_tokens) == (5, 2)
    assert stream.problems == []
    assert sum(isinstance(event, Used) for event in stream.events) == 1


def test_counts_after_the_reason_end_the_reply_at_once() -> None:
    decoder = stream_reader.Decoder()
    events: list[Event] = []
    for frame in frames(
        sse([chunk({"content": "a"}), chunk({}, "stop"), {**chunk({}), "choices": [], "usage": USAGE}])
    ):
        events += decoder.read(frame)
    assert isinstance(events[-1], Finished)
    assert decoder.builder.is_end_announced


@pytest.mark.parametrize("usage", [{"prompt_tokens": "5"}, {"completion_tokens_details": 7}])
def test_counts_that_cannot_be_read_are_left_out(usage: Fields) -> None:
    stream = read_to_stop(chunk({"content": "a"}), chunk({}, usage=usage))
    assert stream.reply.usage is None
    assert stream.problems == ["the usage cannot be read; it was left out"]


def test_counts_have_their_details() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 3}, "cost": 0.1}
    stream = read_to_stop(chunk({"content": "a"}), chunk({}, usage=usage))
    assert stream.reply.usage == Usage(
        5, 2, 3, extra={"openai_chat": {"cost": 0.1, "total_tokens": 7}}, form=ChatUsage(prompt_details_rest={})
    )


def test_probabilities_are_put_together() -> None:
    def with_logprobs(text: str) -> Fields:
        made = chunk({"content": text})
        made["choices"][0]["logprobs"] = {"content": [{"token": text}], "refusal": None}
        return made

    stream = read_to_stop(with_logprobs("a"), with_logprobs("b"))
    body = reply.encode(stream.reply)
    assert body["choices"][0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}
    started = stream.events[0]
    assert isinstance(started, Started)
    assert started.extra == {"openai_chat": {"object": "chat.completion", "created": 7}}
    assert started.form == ChatReply({"index": 0})


# --- a message in a chunk ---------------------------------------------------------------------------


def test_a_whole_completion_in_a_stream() -> None:
    message = {
        "role": "assistant",
        "content": "Hi",
        "reasoning": "hm",
        "tool_calls": [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ("a", "b")],
    }
    whole = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": USAGE,
    }
    stream = ReadChunks([whole, DONE])
    assert stream.texts == ["Hi"]
    assert stream.thoughts == ["hm"]
    assert stream.calls == [("f", {}), ("f", {})]
    assert stream.reply.stop == "tool_calls"
    assert stream.reply.usage is not None


def test_a_whole_message_after_its_deltas_does_not_come_again() -> None:
    last = chunk({}, "stop")
    last["choices"][0]["message"] = {"role": "assistant", "content": "ab"}
    stream = ReadChunks([chunk({"content": "a"}), chunk({"content": "b"}), last, DONE])
    assert stream.texts == ["ab"]
    assert stream.problems == ["a chunk holds a whole message"]


# --- laws -------------------------------------------------------------------------------------------

RICH = sse(
    [
        chunk({"role": "assistant", "content": None}),
        chunk({"reasoning_content": "hm 😀"}),
        chunk({"content": "Hällo"}),
        calls(call(0, "a", "f", '{"x"')),
        calls(call(0, "a", "f", ":1}"), call(0, "b", "g", '{"y":"\\ud83d\\ude00"}{"y":2}')),
        chunk({}, "stop"),
        {**chunk({}), "choices": [], "usage": USAGE},
        DONE,
    ]
).replace(b"\n\n", b"\r\n\r\n", 2)


def test_however_the_bytes_are_cut_the_events_are_the_same() -> None:
    expected = ReadChunks(RICH).events
    for cut in range(len(RICH)):
        framer, decoder = stream_reader.framer(), stream_reader.Decoder()
        events: list[Event] = []
        for part in (RICH[:cut], RICH[cut:]):
            for frame in framer.feed(part):
                events += decoder.read(frame)
        for frame in framer.finish():
            events += decoder.read(frame)
        assert events + decoder.finish() == expected, cut


odd = json_values | st.sampled_from(["", "f", "{}", '{"a":1}', 0, 1, "0", [], {}])
odd_calls = st.fixed_dictionaries(
    {},
    optional={
        "index": odd,
        "id": odd,
        "type": odd | st.sampled_from(["function", "custom"]),
        "function": odd | st.fixed_dictionaries({}, optional={"name": odd, "arguments": odd}),
        "custom": odd | st.fixed_dictionaries({}, optional={"name": odd, "input": odd}),
    },
)
odd_deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": odd
        | st.lists(
            st.fixed_dictionaries(
                {"type": odd | st.sampled_from(["text", "thinking"])}, optional={"text": odd, "thinking": odd}
            )
        ),
        "reasoning_content": odd,
        "reasoning": odd,
        "reasoning_details": odd | st.lists(odd),
        "refusal": odd,
        "function_call": odd | st.fixed_dictionaries({}, optional={"name": odd, "arguments": odd}),
        "tool_calls": odd | st.lists(odd_calls | odd, max_size=3),
        "audio": odd,
    },
)
odd_choices = st.fixed_dictionaries(
    {},
    optional={
        "index": odd,
        "delta": odd | odd_deltas,
        "message": odd | odd_deltas,
        "finish_reason": odd | st.sampled_from(["stop", "length"]),
        "logprobs": odd,
        "usage": odd,
    },
)
odd_chunks = st.fixed_dictionaries(
    {"choices": odd | st.lists(odd_choices, min_size=1, max_size=2)},
    optional={"id": odd, "model": odd, "usage": odd | st.just(USAGE), "x_groq": odd, "base_resp": odd},
)


@pytest.mark.law
@given(st.lists(odd_chunks | odd.filter(lambda value: not isinstance(value, str)), max_size=8))
def test_whatever_json_a_server_sends_nothing_is_raised(chunks: list[Any]) -> None:
    ReadChunks([chunk({"content": "a"}), *chunks, *STOP], ("f", "ff"))


@pytest.mark.law
@given(
    st.lists(
        st.binary(max_size=30) | st.sampled_from([b"data: ", b"\n\n", b'{"choices":[{"delta":{"content":"a"}}]}']),
        max_size=12,
    )
)
def test_whatever_bytes_a_server_sends_nothing_is_raised(parts: list[bytes]) -> None:
    check(ReadChunks(b"".join(parts)).events)


@pytest.mark.law
@given(st.lists(odd_deltas, max_size=6))
def test_typed_and_careful_reading_agree(deltas: list[Fields]) -> None:
    """A field that the typed reading refuses makes it careful, and must not change the events."""
    plain = ReadChunks([chunk({"content": "a"}), *[chunk(delta) for delta in deltas], *STOP])
    careful = ReadChunks([chunk({"content": "a"}), *[chunk({**delta, "role": 7}) for delta in deltas], *STOP])
    assert careful.events == plain.events


def test_a_reply_that_was_read_is_never_changed_later() -> None:
    stream = read_to_stop(chunk({"content": "a"}, timings={"n": 1}), chunk({"content": "b"}, timings={"n": 2}))
    again = Accumulator()
    again.add(stream.events)
    assert again.reply == stream.reply

"""Gemini streams, read: events of the protocol, what providers do beside it, framing, and laws."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from support.conversations import event_grammar
from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.gemini import gemini_parts, gemini_replies
from support.protocols.streams.gemini import COUNTS, HEAD, TALK, Fields, array, chunk, read, sse
from support.protocols.streams.reading import accumulate
from toolglot.conversation import Failure, Media, Opaque, Reply, ServerTool, StopReason, Text, Thinking, ToolCall
from toolglot.conversation.events import (
    Accumulator,
    BlockEnded,
    BlockStarted,
    Finished,
    InputDelta,
    MediaDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.errors import InputError, LimitError
from toolglot.limits import Limits
from toolglot.protocols.framing.event_builder import CUT_OFF
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.gemini import reply as one_shot
from toolglot.protocols.gemini.form import THOUGHT
from toolglot.protocols.gemini.stream_reader import Decoder, framer
from toolglot.protocols.gemini.streaming.candidates import plain_text
from toolglot.protocols.gemini.streaming.framing import ArrayFramer


def reply_of(*chunks: Any) -> Reply:
    events, decoder = read(sse(*chunks))
    assert decoder.builder.problems == []
    return accumulate(events).reply


def failure_of(*chunks: Any) -> tuple[Failure, Accumulator]:
    total = accumulate(read(sse(*chunks))[0])
    assert total.failure is not None
    return total.failure, total


WHOLE = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hmm.", "thought": True},
                    {"text": "Köln"},
                    {"functionCall": {"name": "f", "args": {"a": 1.0, "b": [10**30]}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"id": "c2", "name": "g"}},
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": COUNTS,
    "createTime": "now",
    **HEAD,
}


# --- reading ----------------------------------------------------------------------------------------


def test_a_stream_adds_up_to_the_one_shot_reply() -> None:
    assert reply_of(*TALK) == one_shot.decode(WHOLE)
    assert one_shot.encode(reply_of(*TALK)) == WHOLE


def test_events_come_with_the_chunks() -> None:
    decoder = Decoder()
    seen = [decoder.read(Frame(json.dumps(value).encode())) for value in TALK]
    assert [type(event) for event in seen[0]] == [Started, Used, BlockStarted, ThinkingDelta]
    assert seen[1] == [ThinkingDelta("m.")]
    assert seen[2][0] == BlockEnded(Thinking("Hmm.", form=THOUGHT))
    assert seen[3] == [TextDelta("ln")]
    assert [type(event) for event in seen[5]] == [BlockStarted, InputDelta, BlockEnded]
    assert seen[6] == []
    assert decoder.builder.is_settled
    assert decoder.builder.is_end_announced
    assert [type(event) for event in decoder.finish()] == [Used, Finished]


@pytest.mark.parametrize("write", [sse, array])
def test_every_cut_of_the_bytes_gives_the_same_events(write: Any) -> None:
    data = write(*TALK)
    whole, _ = read(data)
    assert accumulate(whole).reply == one_shot.decode(WHOLE)
    for position in range(0, len(data), 1 if write is sse else 3):
        assert read(data[:position], data[position:])[0] == whole
    assert read(*(data[position : position + 1] for position in range(len(data))))[0] == whole


def test_words_with_a_signature_continue_the_text_and_the_signature_is_a_block_of_its_own() -> None:
    found = reply_of(
        chunk({"text": "a"}),
        chunk({"text": "b", "thoughtSignature": "s1"}),
        chunk({"text": "c"}),
        chunk({"text": "t", "thought": True, "thoughtSignature": "s2"}),
        chunk({"text": "", "thoughtSignature": "s3"}, reason="STOP"),
    )
    assert found.turn.blocks == (
        Text("ab"),
        Text("", "s1"),
        Text("c"),
        Thinking("t", "s2", form=THOUGHT),
        Text("", "s3"),
    )


def test_signed_words_with_no_text_before_them_keep_their_signature() -> None:
    found = reply_of(chunk({"text": "a", "thoughtSignature": "s1"}), chunk({"text": "", "thoughtSignature": "s2"}))
    assert found.turn.blocks == (Text("a", "s1"), Text("", "s2"))


def test_texts_of_one_chunk_are_blocks_as_in_the_one_shot_form() -> None:
    found = reply_of(chunk({"text": "a"}, {"text": "b"}), chunk({"text": "c"}, reason="STOP"))
    assert found.turn.blocks == (Text("a"), Text("bc"))


def test_empty_fields_do_not_split_a_text() -> None:
    part = {"thought": False, "thoughtSignature": "", "partMetadata": None}
    found = reply_of(chunk({"text": "a"}), chunk({"text": "b", **part}), chunk({"text": "c"}, reason="STOP"))
    assert found.turn.blocks == (Text("abc"),)


def test_other_parts_are_read_as_in_the_one_shot_form() -> None:
    parts = (
        {"inlineData": {"mimeType": "image/png", "data": "aGk"}},
        {"inlineData": {"mimeType": "image/png", "data": ""}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"fileData": {"fileUri": "gs://a"}},
        {"later": 1},
        {"functionResponse": {"name": "f", "response": {"output": "x"}}},
    )
    found = reply_of(chunk({"text": "a"}), *(chunk(part) for part in parts), chunk(reason="STOP"))
    assert found.turn.blocks[1:] == one_shot.decode(chunk(*parts)).turn.blocks
    kinds = [type(block) for block in found.turn.blocks[1:6]]
    assert kinds == [Media, Media, ServerTool, ServerTool, Media]
    assert isinstance(found.turn.blocks[6], Opaque)


def test_inline_data_comes_as_a_delta() -> None:
    events, _ = read(sse(chunk({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, reason="STOP")))
    assert BlockStarted(Media("image", "image/png", data="")) in events
    assert MediaDelta("aGk=") in events


def test_snake_case_is_read() -> None:
    found = reply_of(
        {
            "candidates": [{"content": {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]}}],
            "model_version": "m",
            "response_id": "i",
        },
        {"candidates": [{"finish_reason": "MAX_TOKENS"}], "usage_metadata": {"prompt_token_count": 3}},
    )
    assert (found.id, found.model, found.stop) == ("i", "m", "length")
    assert found.usage is not None
    assert found.usage.input_tokens == 3
    assert found.turn.calls[0].name == "f"


def test_counts_of_the_last_chunk_count_however_it_is_spelled() -> None:
    found = reply_of(
        chunk({"text": "a"}, usage_metadata={"prompt_token_count": 3}),
        chunk({"text": "b"}, usageMetadata={"promptTokenCount": 4}),
        chunk(reason="STOP"),
    )
    assert found.usage is not None
    assert found.usage.input_tokens == 4


def test_a_reason_in_every_chunk_ends_nothing() -> None:
    found = reply_of(
        chunk({"text": "a"}, reason="STOP"),
        chunk({"text": "b"}, reason="STOP"),
        {"usageMetadata": {"promptTokenCount": 1}},
    )
    assert found.turn.blocks == (Text("ab"),)
    assert found.stop == "stop"
    assert found.usage is not None


@pytest.mark.parametrize("key", ["promptFeedback", "prompt_feedback"])
def test_a_blocked_prompt_is_a_filter_as_in_the_one_shot_form(key: str) -> None:
    body = {key: {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}, **HEAD}
    assert reply_of(body) == one_shot.decode(body)
    assert reply_of(body).stop == "filter"


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
@pytest.mark.parametrize("parts", [[], [{"text": "I look."}]])
def test_j3_an_unusable_call_is_a_failure_to_try_again(reason: str, parts: list[Any]) -> None:
    end = {"candidates": [{"content": {}, "finishReason": reason, "finishMessage": "bad call"}], **HEAD}
    failure, total = failure_of(*([chunk(*parts)] if parts else []), end)
    assert (failure.kind, failure.retryable, failure.in_band) == ("bad_output", True, True)
    assert failure.message == "bad call"
    assert total.calls == ()
    assert total.reply.stop is None


def test_j3_a_call_beside_the_reason_is_never_run() -> None:
    failure, total = failure_of(chunk({"functionCall": {"name": "f", "args": {}}}, reason="UNEXPECTED_TOOL_CALL"))
    assert failure.kind == "bad_output"
    assert total.calls == ()
    assert [type(block) for block in total.cut] == [ToolCall]


def test_d5_a_signature_stays_on_its_call() -> None:
    found = reply_of(
        chunk({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}),
        chunk({"functionCall": {"name": "g", "args": {}}}, reason="STOP"),
    )
    assert [call.signature for call in found.turn.calls] == ["s", None]
    assert found.stop == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "call", "stop"),
    [
        ("STOP", True, "tool_calls"),
        ("STOP", False, "stop"),
        ("MAX_TOKENS", False, "length"),
        ("MAX_TOKENS", True, "length"),
        ("SAFETY", False, "filter"),
        ("OTHER", False, "error"),
        ("LATER", True, "tool_calls"),
    ],
)
def test_j1_j2_the_reason_is_derived(reason: str, call: bool, stop: StopReason) -> None:
    part = {"functionCall": {"name": "f", "args": {}}} if call else {"text": "a"}
    assert reply_of(chunk(part), chunk(reason=reason)).stop == stop


def test_an_error_in_the_stream_is_a_failure() -> None:
    error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
    failure, total = failure_of(chunk({"text": "a"}), error, chunk({"text": "ignored"}))
    assert (failure.kind, failure.in_band) == ("rate_limit", True)
    assert total.reply.turn.text == "a"
    assert failure_of([error])[0].kind == "rate_limit"
    assert accumulate(read(json.dumps(error, indent=2).encode())[0]).failure == failure_of(error)[0]


def test_several_candidates_are_put_together_and_the_first_is_the_reply() -> None:
    def other(*parts: Any, **fields: Any) -> Fields:
        return {"content": {"role": "model", "parts": list(parts)}, "index": 1, **fields}

    first, second = chunk({"text": "a"}), chunk({"text": "b"}, reason="STOP")
    call = {"functionCall": {"name": "f", "args": {}}}
    first["candidates"].append(other({"text": "x"}, {"text": "y"}))
    second["candidates"].insert(0, other({"text": "z"}, call, {"text": "t", "thought": True}, finishReason="STOP"))
    later = {"candidates": [{"index": 2, "finishReason": "SAFETY"}]}
    found = reply_of(first, second, later)
    assert found.turn.blocks == (Text("ab"),)
    assert one_shot.encode(found)["candidates"][1:] == [
        other({"text": "x"}, {"text": "yz"}, call, {"text": "t", "thought": True}, finishReason="STOP"),
        {"index": 2, "finishReason": "SAFETY"},
    ]


def test_what_is_kept_of_a_stream_is_bounded() -> None:
    decoder = Decoder(limits=Limits(max_bytes=400))
    body = json.dumps({"candidates": [{"index": 0}, {"index": 1, "content": {"parts": {"text": "a" * 100}}}]}).encode()
    decoder.read(Frame(body))
    decoder.read(Frame(body))
    with pytest.raises(LimitError):
        decoder.read(Frame(body))


PARTIAL = (
    chunk({"functionCall": {"name": "f", "id": "i", "willContinue": True}, "thoughtSignature": "s"}),
    chunk(
        {
            "functionCall": {
                "partialArgs": [{"jsonPath": "$.city", "stringValue": "Kö", "willContinue": True}],
                "willContinue": True,
            }
        }
    ),
    chunk(
        {
            "functionCall": {
                "partialArgs": [
                    {"jsonPath": "$.city", "stringValue": "ln", "willContinue": True},
                    {"jsonPath": "$.city", "willContinue": False},
                    {"jsonPath": "$.list[0].n", "numberValue": 2},
                    {"jsonPath": "$.list[1]['a b']", "boolValue": False},
                    {"jsonPath": '$["x"].y', "nullValue": "NULL_VALUE"},
                    {"jsonPath": "$.list[0].n", "numberValue": 3},
                    {"jsonPath": "$.list[2]", "stringValue": "a"},
                    {"jsonPath": "$.list[2]", "stringValue": "b"},
                ],
                "willContinue": True,
            }
        }
    ),
)


def test_arguments_in_parts_are_put_together() -> None:
    found = reply_of(*PARTIAL, chunk({"functionCall": {}}), chunk(reason="STOP"))
    arguments = {"city": "Köln", "list": [{"n": 3}, {"a b": False}, "b"], "x": {"y": None}}
    assert found.turn.blocks == (ToolCall("i", "f", arguments, signature="s"),)
    assert found.stop == "tool_calls"


def test_arguments_in_parts_wait_and_are_cut_if_they_do_not_end() -> None:
    decoder = Decoder()
    for value in PARTIAL:
        decoder.read(Frame(json.dumps(value).encode()))
    assert not decoder.builder.is_settled
    total = accumulate([*read(sse(*PARTIAL, chunk(reason="STOP")))[0]])
    assert total.calls == ()
    assert total.reply.stop == "length"
    second = chunk({"functionCall": {"name": "g", "args": {"a": 1}, "partial_args": []}}, reason="STOP")
    total = accumulate(read(sse(PARTIAL[0], second))[0])
    assert [call.name for call in total.calls] == ["g"]
    assert len(total.cut) == 1


@pytest.mark.parametrize(
    "call",
    [
        {"willContinue": True},
        {"name": "f", "partialArgs": "x"},
        {"name": "f", "partialArgs": [1]},
        {"name": "f", "partialArgs": [{"jsonPath": 1}]},
        {"name": "f", "partialArgs": [{"jsonPath": "$"}]},
        {"name": "f", "partialArgs": [{"jsonPath": "$.a..b"}]},
        {"name": "f", "partialArgs": [{"jsonPath": "$" + ".a" * 101, "stringValue": "x"}]},
        {"name": "f", "partialArgs": [{"jsonPath": "$.a[7]", "stringValue": "x"}]},
        {"name": "f", "partialArgs": [{"jsonPath": "$[0]", "stringValue": "x"}]},
        {"name": 7, "args": {}},
        {"name": "f", "args": 7},
        "f",
    ],
)
def test_a_call_that_cannot_be_read_is_a_failure_and_not_an_empty_success(call: Any) -> None:
    failure, total = failure_of(chunk({"functionCall": call}), chunk(reason="STOP"))
    assert failure.kind == "bad_output"
    assert total.calls == ()


@pytest.mark.parametrize(
    ("written", "arguments", "raw"), [('{"a":1}', {"a": 1}, None), (" ", {}, None), ("[1]", None, "[1]")]
)
def test_f3_arguments_that_came_as_text_are_reported(written: str, arguments: Any, raw: str | None) -> None:
    events, decoder = read(sse(chunk({"functionCall": {"name": "f", "args": written}}, reason="STOP")))
    (call,) = accumulate(events).reply.turn.calls
    assert (call.arguments, call.raw_input) == (arguments, raw)
    assert decoder.builder.problems


@pytest.mark.parametrize(
    "odd",
    [
        b"data: nonsense\n\n",
        b"data: 7\n\n",
        b'data: {"candidates":7}\n\n',
        b'data: {"candidates":[7]}\n\n',
        sse({"candidates": [{"content": 7}]}),
        sse(chunk(7)),
        sse(chunk({"text": 7})),
        b'data: {"a":1,"a":2}\n\n',
        b'data: {"usageMetadata":{"promptTokenCount":"7"}}\n\n',
    ],
)
def test_what_the_protocol_does_not_allow_is_reported_and_left_out(odd: bytes) -> None:
    events, decoder = read(sse(chunk({"text": "a"})), odd, sse(chunk({"text": "b"}, reason="STOP")))
    found = accumulate(events).reply
    assert (found.turn.blocks, found.stop) == ((Text("ab"),), "stop")
    assert len(decoder.builder.problems) == 1


def test_keep_alives_add_nothing() -> None:
    events, decoder = read(b": ping\n\n", sse(*TALK[:1]), b"\n\n: ping\n\n", sse(*TALK[1:]))
    assert events == read(sse(*TALK))[0]
    assert decoder.builder.problems == []


def test_the_end_of_the_bytes_without_a_reason() -> None:
    events, _ = read(sse(chunk({"text": "a"})))
    assert accumulate(events).failure == CUT_OFF
    data = sse(chunk({"text": "a"}), chunk({"functionCall": {"name": "f", "args": {}}}))
    failure = accumulate(read(data[:-20])[0]).failure
    assert failure is not None
    assert failure.kind == "server"
    assert accumulate(read(b"")[0]).failure is not None
    assert accumulate(read(b" \n ", b"\n")[0]).failure is not None


@pytest.mark.parametrize(("number", "stop"), [(1, "stop"), (2, "length"), (3, "filter"), (99, "error")])
def test_a_reason_may_be_a_number_as_for_older_libraries(number: int, stop: StopReason) -> None:
    events, decoder = read(sse(chunk({"text": "a"}, reason=0), chunk({"text": "b"}, reason=number)))
    assert accumulate(events).reply.stop == stop
    assert decoder.builder.problems == []


def test_the_number_of_no_reason_is_none() -> None:
    events, _ = read(sse(chunk({"text": "a"}, reason=0)))
    assert accumulate(events).failure == CUT_OFF


def test_the_number_of_a_malformed_call_is_a_failure() -> None:
    failure, _ = failure_of({"candidates": [{"finishReason": 10, "index": 0}]})
    assert failure.kind == "bad_output"


def test_what_follows_a_call_that_cannot_be_read_is_left_out() -> None:
    failure, total = failure_of(
        chunk({"functionCall": {"name": 7}}, {"functionCall": {"name": "f", "args": {}}}, reason="STOP")
    )
    assert failure.kind == "bad_output"
    assert total.calls == ()


def test_nothing_follows_the_end() -> None:
    decoder = Decoder()
    decoder.read(Frame(json.dumps(chunk({"text": "a"}, reason="STOP")).encode()))
    decoder.finish()
    assert decoder.read(Frame(json.dumps(chunk({"text": "b"})).encode())) == []
    assert decoder.finish() == []


# --- framing ----------------------------------------------------------------------------------------


def test_objects_are_cut_out_of_an_array() -> None:
    data = b'\xef\xbb\xbf [ {"a":"}]\\"{"} ,\n{"b":[{}]}, "x{" , 7, [1] ] trailing {"c":1}'
    frames = framer()
    assert [frame.data for frame in frames.feed(data)] == [b'{"a":"}]\\"{"}', b'{"b":[{}]}', b"[1]"]
    assert frames.finish() == []


def test_a_frame_of_an_array_can_be_forwarded_as_an_event() -> None:
    (frame,) = framer().feed(b'[{\r\n"a":1}]')
    assert frame.raw == b'data: {  "a":1}\n\n'


def test_a_frame_of_an_array_is_bounded() -> None:
    frames = ArrayFramer(10)
    frames.feed(b'[{"a":1234')
    with pytest.raises(LimitError):
        frames.feed(b"567")


@pytest.mark.law
@given(st.lists(json_objects, max_size=4), st.lists(st.integers(0, 200), max_size=6))
def test_an_array_gives_the_same_frames_however_it_is_cut(objects: list[Fields], cuts: list[int]) -> None:
    data = array(*objects)
    frames = framer()
    found, start = [], 0
    for cut in [*sorted(cuts), len(data)]:
        found += frames.feed(data[start:cut])
        start = max(start, cut)
    assert [json.loads(frame.data) for frame in [*found, *frames.finish()]] == objects


# --- laws -------------------------------------------------------------------------------------------


def streamed(body: Fields) -> list[Fields]:
    """A whole body as chunks: a part each, but that texts which would run together share one."""
    candidate = body["candidates"][0]
    groups: list[list[Fields]] = []
    for part in candidate["content"]["parts"]:
        plain = plain_text(part)
        before = plain_text(groups[-1][-1]) if groups else None
        if plain is not None and before is not None and plain[1] == before[1]:
            groups[-1].append(part)
        else:
            groups.append([part])
    names = {key: body[key] for key in (*HEAD, "model_version", "response_id") if key in body}
    chunks = [{"candidates": [{"content": {"role": "model", "parts": group}}], **names} for group in groups]
    last = {**candidate, "content": {"role": "model"}}
    return [*chunks, {**body, "candidates": [last, *body["candidates"][1:]]}]


def cleaned(part: Fields) -> Fields | None:
    """A part as a stream has it: a text without empty fields, and none without words."""
    plain = plain_text(part)
    if plain is None:
        return part
    return {"text": plain[0], **({"thought": True} if plain[1] else {})} if plain[0] else None


@pytest.mark.law
@given(gemini_replies, st.lists(gemini_parts, max_size=4), st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "LATER"]))
def test_a_streamed_body_adds_up_to_what_the_whole_one_is(body: Fields, parts: list[Fields], reason: str) -> None:
    rest = {"safetyRatings": [{"a": 1}], "finishReason": reason}
    body = {**body, "candidates": [{"content": {"role": "model", "parts": parts}, **rest}]}
    chunks = streamed(body)
    body["candidates"][0]["content"]["parts"] = [part for original in parts if (part := cleaned(original)) is not None]
    try:
        expected = one_shot.decode(body)
    except InputError:
        assume(False)
    total = accumulate(read(sse(*chunks))[0])
    assert total.reply == expected
    assert total.failure is None


@pytest.mark.law
@given(st.lists(json_values | gemini_replies | st.builds(chunk, json_values, reason=st.none() | texts), max_size=4))
def test_nothing_that_is_json_breaks_the_reader(values: list[Any]) -> None:
    for data in (sse(*values), array(*values)):
        event_grammar.check(read(data)[0])


@pytest.mark.law
@given(st.binary(max_size=80) | texts.map(lambda text: b'data: {"candidates":[' + text.encode() + b"\n\n"))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for variant in (data, sse(chunk({"text": "a"})) + data, b"[" + data):
        event_grammar.check(read(variant)[0])

"""Gemini streams, written: as server-sent events and as arrays, and read by Google's SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from google.genai import errors as genai_errors
from hypothesis import assume, given
from hypothesis import strategies as st

from sdk.loopback import EVENT_STREAM, serving
from sdk.made_replies import REPLIES
from sdk.recording import load
from support.protocols.strategies.gemini import gemini_parts, gemini_replies
from support.protocols.streams.gemini import HEAD, TALK, Fields, array, chunk, read, sse
from support.protocols.streams.reading import accumulate
from toolglot.conversation import Block, Failure, Media, Opaque, Reply, Text, Thinking, ToolCall, Turn, Usage
from toolglot.conversation.events import BlockEnded, BlockStarted, Failed, Finished, Started, TextDelta
from toolglot.conversation.reply_events import of_reply
from toolglot.errors import InputError
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.gemini import reply as one_shot
from toolglot.protocols.gemini.stream_writer import Encoder
from toolglot.translate.streams import StreamTranslator

# --- writing ----------------------------------------------------------------------------------------


def written(reply: Reply) -> bytes:
    return Encoder().write(of_reply(reply))


def joined(blocks: Iterable[Block]) -> list[Block]:
    """Blocks as a stream keeps them apart: texts of one kind run together, and a signature is on the last of them."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else None
        if isinstance(block, Text) and isinstance(last, Text) and last.signature is None:
            found[-1] = Text(last.text + block.text, block.signature)
        elif isinstance(block, Thinking) and isinstance(last, Thinking) and last.signature is None:
            found[-1] = Thinking(last.text + block.text, block.signature, extra=block.extra)
        else:
            found.append(block)
    return [block for block in found if not isinstance(block, Text | Thinking) or block.text or block.signature]


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_written_is_read_as_what_the_one_shot_form_is(name: str) -> None:
    events, decoder = read(written(REPLIES[name]))
    found = accumulate(events).reply
    expected = one_shot.decode(one_shot.encode(REPLIES[name]))
    assert joined(found.turn.blocks) == joined(expected.turn.blocks)
    assert (found.id, found.model, found.stop, found.usage) == (
        expected.id,
        expected.model,
        expected.stop,
        expected.usage,
    )
    assert decoder.builder.problems == []


@pytest.mark.law
@given(gemini_replies, st.lists(gemini_parts, max_size=4), st.sampled_from(["STOP", "MAX_TOKENS", "LATER"]))
def test_a_reply_comes_back_from_its_stream(body: Fields, parts: list[Fields], reason: str) -> None:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": reason, "avgLogprobs": 1}
    try:
        reply = one_shot.decode({**body, "candidates": [candidate]})
    except InputError:
        assume(False)
    found = accumulate(read(written(reply))[0]).reply
    assert (found.stop, found.usage, found.id, found.model, found.extra) == (
        reply.stop,
        reply.usage,
        reply.id,
        reply.model,
        reply.extra,
    )
    assert found.turn.text == reply.turn.text
    assert found.turn.calls == reply.turn.calls
    others = [block for block in reply.turn.blocks if not isinstance(block, Text | Thinking)]
    assert [block for block in found.turn.blocks if not isinstance(block, Text | Thinking)] == others
    signatures = [block.signature for block in reply.turn.blocks if isinstance(block, Text | Thinking)]
    came_back = [block.signature for block in found.turn.blocks if isinstance(block, Text | Thinking)]
    assert list(filter(None, came_back)) == list(filter(None, signatures))


def test_chunks_are_as_gemini_writes_them() -> None:
    out = Encoder().write([Started("r", "m"), BlockStarted(Text("")), TextDelta("ä"), BlockEnded(Text("ä", "s"))])
    part = b'"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}\n\n'
    assert out == (
        b'data: {"candidates":[{"content":{"parts":[{"text":"\xc3\xa4"}],'
        + part
        + b'data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"}],'
        + part
    )


def test_the_requested_model_is_named_if_no_other_is() -> None:
    assert b'"modelVersion":"requested"' in Encoder(StreamOptions(model="requested")).write([Started(), TextDelta("a")])
    assert b'"modelVersion":"own"' in Encoder(StreamOptions(model="requested")).write(
        [Started(model="own"), TextDelta("a")]
    )


def test_a_call_that_was_cut_is_not_written() -> None:
    call = ToolCall("c", "f", {"a": 1})
    out = Encoder().write([Started(), BlockStarted(call), BlockEnded(call, cut=True), Finished("length")])
    assert b"functionCall" not in out
    assert b"MAX_TOKENS" in out


def test_a_failure_is_an_error_and_the_last_thing_that_is_written() -> None:
    out = Encoder().write([Started(), TextDelta("a"), Failed(Failure("overloaded", "full"))])
    assert json.loads(out.split(b"\n\n")[1].removeprefix(b"data: ")) == {
        "error": {"code": 503, "message": "full", "status": "UNAVAILABLE"}
    }


def test_j3_a_failure_of_geminis_own_is_written_as_it_came() -> None:
    end = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "bad call", "index": 0}]}
    out = Encoder().write(read(sse(chunk({"text": "a"}), end))[0])
    assert json.loads(out.split(b"\n\n")[-2].removeprefix(b"data: ")) == end


def test_a_blocked_prompt_is_written_as_it_came() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, **HEAD}
    out = Encoder().write(read(sse(body))[0])
    assert json.loads(out.removeprefix(b"data: ")) == body


def test_a_candidate_without_content_is_written_so() -> None:
    body = {"candidates": [{"finishReason": "SAFETY", "index": 0}], **HEAD}
    assert json.loads(Encoder().write(read(sse(body))[0]).removeprefix(b"data: ")) == body


@pytest.mark.parametrize("mark", ["\u0085", "\u2028", "\u2029"])
def test_no_line_ends_inside_of_a_chunk_for_any_reader(mark: str) -> None:
    out = Encoder().write([Started(mark), TextDelta(f"ä{mark}")])
    assert len(out.decode().splitlines()) == 2
    assert read(out)[0][2] == TextDelta(f"ä{mark}")


def test_calls_and_media_of_others_are_written_whole() -> None:
    blocks = (Media("image", "image/png", data="aGk="), Opaque("anthropic", {"a": 1}), ToolCall("c", "f", {"a": 1}))
    found = accumulate(read(written(Reply(Turn("assistant", blocks), "tool_calls", Usage(1, 2))))[0]).reply
    assert found.turn.blocks == (blocks[0], blocks[2])


# --- Google's SDK -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPLIES)
def test_google_reads_what_is_written(name: str) -> None:
    reply, encoder = REPLIES[name], Encoder()
    events = list(of_reply(reply))
    sdk = load("genai")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(
            encoder.ping() + encoder.write(events[:2]) + encoder.ping() + encoder.write(events[2:]), EVENT_STREAM
        )
        chunks = list(client.models.generate_content_stream(model="m", contents="hi"))
    parts = [part for found in chunks for part in (found.candidates[0].content.parts or ())]
    assert "".join(part.text or "" for part in parts if not part.thought) == reply.turn.text
    thought = "".join(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    assert "".join(part.text or "" for part in parts if part.thought) == thought
    calls = [(part.function_call.id, part.function_call.name) for part in parts if part.function_call]
    assert calls == [(call.id, call.name) for call in reply.turn.calls]
    arguments = [part.function_call.args for part in parts if part.function_call]
    assert arguments == [
        call.arguments or {"input": call.raw_input} if call.arguments != {} else {} for call in reply.turn.calls
    ]
    assert [bool(found.candidates[0].finish_reason) for found in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(found.model_version == "some-model" for found in chunks)
    assert (chunks[-1].usage_metadata is not None) == (reply.usage is not None)


def test_google_reads_a_failure() -> None:
    out = Encoder().write([Started(), TextDelta("a"), Failed(Failure("rate_limit", "slow down", retry_after=3.0))])
    sdk = load("genai")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(out, EVENT_STREAM)
        with pytest.raises(genai_errors.APIError) as raised:
            list(client.models.generate_content_stream(model="m", contents="hi"))
    assert raised.value.code == 429


@pytest.mark.parametrize("body", [{"candidates": None}, {"candidates": []}, {"candidates": [{}]}, {}])
def test_a_reply_without_candidates_is_written(body: dict[str, Any]) -> None:
    out = Encoder().write(of_reply(one_shot.decode(body)))
    assert json.loads(out.removeprefix(b"data: ")).keys() == body.keys()


def test_half_a_surrogate_pair_is_written_as_its_replacement() -> None:
    out = Encoder().write([Started(), BlockStarted(Text("")), TextDelta("a\ud83db")])
    assert json.loads(out.removeprefix(b"data: "))["candidates"][0]["content"]["parts"] == [{"text": "a\ufffdb"}]


# --- arrays that stay arrays --------------------------------------------------------------------------

ARRAY = array(*TALK)


def forwarded(data: bytes, size: int = 100_000, **options: Any) -> tuple[bytes, StreamTranslator]:
    """A stream that comes in pieces of a size, as a Gemini client gets it."""
    translator = StreamTranslator(source="gemini", target="gemini", **options)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(map(translator.feed, pieces)) + translator.finish(), translator


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_an_array_stays_an_array_byte_for_byte_where_it_keeps_its_protocol(size: int) -> None:
    for data in (ARRAY, ARRAY.rstrip(), ARRAY.replace(b"\n", b"\r\n"), ARRAY.replace(b"\n", b"")):
        out, translator = forwarded(data, size)
        assert out == data
        assert translator.content_type == "application/json"
        assert len(translator.report) == 0


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_an_array_becomes_events_where_the_client_wants_events(size: int) -> None:
    out, translator = forwarded(ARRAY, size, as_events=True)
    assert accumulate(read(out)[0]).reply == accumulate(read(ARRAY)[0]).reply
    assert out.startswith(b"data: {")
    assert translator.content_type == "text/event-stream"


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("kept", range(len(TALK)))
def test_an_array_that_was_cut_ends_as_an_array_with_an_error(kept: int, size: int) -> None:
    cut = [chunk for chunk in TALK if "finishReason" not in json.dumps(chunk)][:kept]
    for data in (array(*cut), array(*cut).rstrip(b"\n]"), b"[" if not cut else array(*cut)[:-9]):
        out, translator = forwarded(data, size)
        *before, last = json.loads(out)
        assert "error" in last
        assert before == cut[: len(before)]
        assert translator.failure is not None


def test_an_array_that_must_be_changed_goes_on_as_an_array() -> None:
    odd = {"candidates": "none"}
    out, translator = forwarded(array(TALK[0], odd, *TALK[1:]))
    assert accumulate(read(out)[0]).reply == accumulate(read(ARRAY)[0]).reply
    assert json.loads(out)[0] == TALK[0]
    assert odd not in json.loads(out)
    assert len(translator.report) > 0


def test_what_follows_an_array_is_left_out_of_it() -> None:
    for size in (1, 7, 100_000):
        assert forwarded(ARRAY + b' {"candidates":[]}', size)[0] == ARRAY + b" "


def test_a_connection_that_is_lost_ends_the_array() -> None:
    translator = StreamTranslator(source="gemini", target="gemini")
    out = translator.feed(array(TALK[0]).rstrip(b"\n]")) + translator.fail() + translator.finish()
    assert [*json.loads(out)[1]] == ["error"]

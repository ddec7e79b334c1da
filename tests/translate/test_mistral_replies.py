"""Replies of Mistral for clients of OpenAI and for its own, whole and streamed, and replies of others for its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.law_examples import MANY
from toolglot import StreamTranslator, convert_reply

Fields = dict[str, Any]
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CALL = {"id": "abcdefghi", "function": {"name": "f", "arguments": '{"a": 1}'}, "index": 0}


def thinking(text: str = "Hm.", **more: Any) -> Fields:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def words(text: str = "Hi.") -> Fields:
    return {"type": "text", "text": text}


def whole(*messages: Fields) -> Fields:
    choices = [
        {"index": index, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        for index, message in enumerate(messages)
    ]
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "magistral",
        "choices": choices,
        "usage": USAGE,
    }


def chunk(delta: Fields, reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "magistral", "choices": [choice]}
    return b"data: " + json.dumps({**body, **more}).encode() + b"\n\n"


def deltas(stream: bytes) -> list[Fields]:
    lines = [line.removeprefix(b"data: ") for line in stream.split(b"\n\n") if line and line != b"data: [DONE]"]
    return [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]


def joined(stream: bytes) -> Fields:
    """What a client of OpenAI puts together from a stream: strings only."""
    message: Fields = {"content": "", "reasoning_content": "", "calls": {}}
    for delta in deltas(stream):
        for field in ("content", "reasoning_content"):
            message[field] += delta.get(field) or ""
        for call in delta.get("tool_calls") or ():
            known = message["calls"].setdefault(call["index"], {"arguments": ""})
            known |= {key: call[key] for key in ("id", "type") if key in call}
            known["arguments"] += call["function"].get("arguments") or ""
    return message


def translate(stream: bytes, source: str, target: str) -> bytes:
    translator = StreamTranslator(source=source, target=target)
    return translator.feed(stream) + translator.finish()


STREAM = (
    chunk({"role": "assistant", "content": ""})
    + chunk({"content": [thinking("H")]})
    + chunk({"content": [thinking("m.")]})
    + chunk({"content": [thinking(""), words("Hi")]})
    + chunk({"content": "."})
    + chunk({"content": "", "tool_calls": [CALL]}, "tool_calls", usage=USAGE)
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("target", ["openai", "openai_compatible"])
def test_thinking_in_the_content_reaches_a_client_of_openai_as_a_field(target: str) -> None:
    out = convert_reply(whole({"content": [thinking(closed=True), words()]}), source="mistral", target=target)
    message = out.body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Hi.", "Hm.")
    assert "content" in str(out.report)


def test_a_call_without_a_type_gets_one() -> None:
    out = convert_reply(whole({"content": "", "tool_calls": [CALL]}), source="mistral", target="openai")
    (call,) = out.body["choices"][0]["message"]["tool_calls"]
    assert call == {**CALL, "type": "function"}
    assert "type" in str(out.report)


def test_arguments_that_are_an_object_become_a_string() -> None:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    out = convert_reply(whole({"content": "", "tool_calls": [call]}), source="mistral", target="openai")
    (written,) = out.body["choices"][0]["message"]["tool_calls"]
    assert json.loads(written["function"]["arguments"]) == {"a": 1}


def test_content_of_thinking_and_calls_alone_is_null() -> None:
    message = {"content": [thinking()], "tool_calls": [{**CALL, "type": "function"}]}
    out = convert_reply(whole(message), source="mistral", target="openai")
    written = out.body["choices"][0]["message"]
    assert (written.get("content"), written["reasoning_content"]) == (None, "Hm.")


def test_parts_that_cannot_be_a_string_are_left_out_and_reported() -> None:
    parts = [words("See "), {"type": "reference", "reference_ids": [1]}, words("this.")]
    out = convert_reply(whole({"content": parts}), source="mistral", target="openai")
    assert out.body["choices"][0]["message"]["content"] == "See this."
    assert "reference" in str(out.report)


def test_other_choices_are_converted_too() -> None:
    message = {"content": [thinking(), words()]}
    out = convert_reply(whole({"content": "Hello."}, message), source="mistral", target="openai")
    first, second = (choice["message"] for choice in out.body["choices"])
    assert first["content"] == "Hello."
    assert (second["content"], second["reasoning_content"]) == ("Hi.", "Hm.")


@pytest.mark.parametrize(
    "message",
    [
        {"content": [thinking(closed=True, signature="s"), words()]},
        {"content": "", "tool_calls": [CALL]},
        {"content": [words("See "), {"type": "reference", "reference_ids": [1]}]},
    ],
)
def test_a_client_of_mistral_gets_what_mistral_wrote(message: Fields) -> None:
    raw = json.dumps(whole(message, message)).encode()
    out = convert_reply(raw, source="mistral", target="mistral")
    assert (out.data, str(out.report)) == (raw, "nothing was changed")


def test_a_plain_reply_reaches_a_client_of_openai_as_it_came() -> None:
    raw = json.dumps(whole({"content": "Hi.", "tool_calls": [{**CALL, "type": "function"}]})).encode()
    out = convert_reply(raw, source="mistral", target="openai")
    assert out.data == raw


def test_thinking_of_others_reaches_a_client_of_mistral_in_chunks() -> None:
    chunks = [thinking("Hm."), words("Hi.")]
    body = whole({"content": "Hi.", "reasoning_content": "Hm."})
    assert convert_reply(body, source="deepseek", target="mistral").body["choices"][0]["message"]["content"] == chunks
    claude = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Hi."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    assert (
        convert_reply(claude, source="anthropic", target="mistral").body["choices"][0]["message"]["content"] == chunks
    )


def test_a_stream_reaches_a_client_of_openai_as_strings() -> None:
    out = translate(STREAM, "mistral", "openai")
    call = {"id": "abcdefghi", "type": "function", "arguments": '{"a": 1}'}
    assert joined(out) == {"content": "Hi.", "reasoning_content": "Hm.", "calls": {0: call}}


def test_a_stream_reaches_a_client_of_mistral_as_it_came() -> None:
    assert translate(STREAM, "mistral", "mistral") == STREAM


@pytest.mark.parametrize("source", ["deepseek", "groq"])
def test_a_stream_of_others_reaches_a_client_of_mistral_in_chunks(source: str) -> None:
    field = "reasoning" if source == "groq" else "reasoning_content"
    stream = chunk({"role": "assistant", "content": "", field: "Hm."}) + chunk({"content": "Hi."})
    out = deltas(translate(stream + chunk({}, "stop") + b"data: [DONE]\n\n", source, "mistral"))
    assert [delta["content"] for delta in out if delta.get("content")] == [[thinking()], "Hi."]
    assert not any(field in delta for delta in out)


PARTS = st.lists(
    st.one_of(
        st.builds(words, st.text(max_size=3)),
        st.builds(thinking, st.text(max_size=3)),
        st.just({"type": "reference", "reference_ids": [1]}),
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.law
@MANY
@given(PARTS, st.booleans())
def test_law_13_whatever_parts_mistral_writes_a_client_of_openai_reads_strings(
    parts: list[Fields], has_call: bool
) -> None:
    body = whole({"content": parts, **({"tool_calls": [CALL]} if has_call else {})})
    message = convert_reply(body, source="mistral", target="openai").body["choices"][0]["message"]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    thought = "".join(part["thinking"][0]["text"] for part in parts if part["type"] == "thinking")
    assert (message.get("content") or "", message.get("reasoning_content", "")) == (text, thought)
    assert all(call["type"] == "function" for call in message.get("tool_calls", ()))
    assert convert_reply(body, source="mistral", target="mistral").body == body

"""Streams that are read liberally: errors as lines, parts by their item, unreadable calls, native finish reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import StreamTranslator, convert_reply
from toolglot.conversation import Text

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chat_stream(*deltas: dict[str, Any], finish: str = "tool_calls") -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks = [
        {**HEAD, "choices": [choice]} for choice in (*choices, {"index": 0, "delta": {}, "finish_reason": finish})
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def call_deltas(*pieces: str) -> list[dict[str, Any]]:
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}}
    rest = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    return [{"role": "assistant", "content": None, "tool_calls": [first]}, *rest]


def translate(raw: bytes, source: str, target: str, step: int = 1 << 20) -> tuple[bytes, StreamTranslator]:
    translator = StreamTranslator(source=source, target=target)
    output = b"".join(translator.feed(raw[start : start + step]) for start in range(0, len(raw), step))
    return output + translator.finish(), translator


# --- errors as lines --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 1 << 20])
@pytest.mark.parametrize("source", ["openai", "llamacpp", "anthropic", "openai_responses", "gemini", "cohere"])
@pytest.mark.parametrize(
    "line", ['{"code":500,"message":"the slot is gone"}', "the slot is gone", '"the slot is gone"']
)
def test_a_line_that_is_an_error_ends_the_answer_as_one(source: str, line: str, step: int) -> None:
    output, translator = translate(f"error: {line}\n\n".encode(), source, "anthropic", step)
    assert translator.failure is not None
    assert translator.failure.message == "the slot is gone"
    assert b"event: error" in output


def test_an_error_line_for_a_full_context_is_understood() -> None:
    _, translator = translate(b'error: {"error":{"message":"prompt is too long"}}\n\n', "llamacpp", "anthropic")
    assert translator.failure is not None
    assert translator.failure.kind == "context_overflow"


# --- calls that cannot be read ----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["anthropic", "bedrock", "ollama"])
@pytest.mark.parametrize("written", ["[1, 2]", '"just words"'])
def test_arguments_that_are_no_object_are_reported_as_in_a_whole_reply(target: str, written: str) -> None:
    _, translator = translate(chat_stream(*call_deltas(*written)), "openai", target)
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": written}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    whole = convert_reply(
        {**HEAD, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]},
        source="openai",
        target=target,
    )
    assert translator.reply.turn.text == whole.reply.turn.text != ""
    assert (translator.calls, translator.reply.stop) == ((), "stop")


def test_an_object_in_a_text_is_the_call_that_it_means() -> None:
    _, translator = translate(chat_stream(*call_deltas(*json.dumps('{"a":1}'))), "openai", "anthropic")
    assert [call.arguments for call in translator.calls] == [{"a": 1}]


def test_a_call_that_was_shown_and_cannot_be_read_is_explained() -> None:
    _, translator = translate(chat_stream(*call_deltas('{"a"', ": oops}")), "openai", "anthropic")
    assert [type(block) for block in translator.reply.turn.blocks][-1] is Text
    assert '{"a": oops}' in translator.reply.turn.text
    assert (translator.calls, translator.reply.stop) == ((), "length")


def test_a_call_that_was_cut_before_its_arguments_is_reported_and_not_shown() -> None:
    for target in ("anthropic", "bedrock"):
        output, translator = translate(chat_stream(*call_deltas(), finish="length"), "openai", target)
        assert b"look" not in output
        assert any("look" in entry.reason for entry in translator.report.entries)
        assert (translator.calls, translator.reply.stop) == ((), "length")


@pytest.mark.parametrize(("finish", "reason"), [("tool_calls", "MALFORMED_FUNCTION_CALL"), ("length", "MAX_TOKENS")])
def test_a_gemini_client_gets_its_own_finish_reason_for_an_unreadable_call(finish: str, reason: str) -> None:
    output, translator = translate(chat_stream(*call_deltas("[1, 2]"), finish=finish), "openai", "gemini")
    last = json.loads(output.strip().rsplit(b"data: ", 1)[1])["candidates"][0]
    assert last["finishReason"] == reason
    assert translator.reply.turn.text == ""
    assert b"cannot be read" not in output
    assert any("cannot be run" in entry.reason for entry in translator.report.entries)


UNREADABLE = ["[1, 2]", "[1, 2", "nonsense", '{"a":', '{"a":tru}', '"x"']


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("written", UNREADABLE)
@pytest.mark.parametrize("target", ["openai_responses", "gemini", "anthropic"])
def test_law_8_arguments_that_cannot_be_read_end_a_stream_as_they_end_the_whole_reply(
    target: str, written: str, finish: str
) -> None:
    called = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": written}}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "tool_calls": [called]}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    whole = convert_reply(body, source="openai", target=target).reply.stop
    _, translator = translate(chat_stream(*call_deltas(written[:3], written[3:]), finish=finish), "openai", target)
    if written in ("[1, 2", '{"a":') or (target, written) == ("anthropic", '{"a":tru}'):
        assert translator.reply.stop == "length", "it was cut (J4), or its pieces were shown"
    else:
        assert translator.reply.stop == whole
    assert all(call.arguments is None for call in translator.calls)


def test_J4_a_native_cut_call_marked_as_whole_is_forwarded_and_reported() -> None:
    raw = chat_stream(*call_deltas('{"a":'), finish="tool_calls")
    output, translator = translate(raw, "openai", "openai")
    assert output == raw
    assert translator.calls == ()
    assert any("cannot be run" in entry.reason for entry in translator.report.entries)


def test_text_before_a_lone_end_of_a_thought_is_thinking_whole_and_was_shown_in_a_stream() -> None:
    text = "Let me think.\n</think>\n\nFour."
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    whole = convert_reply(body, source="vllm", target="anthropic")
    assert [block["type"] for block in whole.body["content"]] == ["thinking", "text"]
    raw = chat_stream({"role": "assistant", "content": text[:9]}, {"content": text[9:]}, finish="stop")
    _, translator = translate(raw, "vllm", "anthropic")
    assert translator.reply.turn.text == text, "docs/streams.md says so"


# --- Gemini's own reasons ---------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL"])
def test_a_gemini_client_gets_geminis_own_reason_with_its_counts(reason: str) -> None:
    body = {"candidates": [{"finishReason": reason, "index": 0}], "usageMetadata": {"promptTokenCount": 50}}
    raw = b"data: " + json.dumps(body).encode() + b"\n\n"
    output, _ = translate(raw, "gemini", "gemini")
    assert output == raw
    native = convert_reply(body, source="gemini", target="gemini")
    assert (native.body, native.report.entries) == (body, ())


@pytest.mark.parametrize("reason", ["UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL"])
def test_J3_the_usage_of_an_unusable_reply_comes_before_its_error(reason: str) -> None:
    candidates = {"candidates": [{"content": {"role": "model", "parts": [{"text": "I look."}]}, "index": 0}]}
    first = {**candidates, "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 1}}
    counts = {"promptTokenCount": 50, "candidatesTokenCount": 7}
    last = {"candidates": [{"finishReason": reason, "index": 0}], "usageMetadata": counts}
    raw = b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in (first, last))
    output, translator = translate(raw, "gemini", "openai")
    assert translator.failure is not None
    assert translator.failure.retryable
    usage = translator.reply.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (50, 7)
    *_, cost, error = [json.loads(line[6:]) for line in output.decode().split("\n\n") if line.startswith("data: {")]
    assert (cost["choices"], cost["usage"]["total_tokens"], "error" in error) == ([], 57, True)
    output, _ = translate(raw, "gemini", "openai_responses")
    final = json.loads(output.decode().rsplit("data: ", 1)[1])
    assert (final["type"], final["response"]["usage"]["total_tokens"]) == ("response.failed", 57)


# --- parts of a Responses stream --------------------------------------------------------------------


def test_a_part_is_found_by_its_item_where_a_server_counts_the_parts_of_all_items() -> None:
    base = {"object": "response", "created_at": 1, "id": "resp_1", "model": "m", "error": None, "tools": []}
    base |= {"incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "instructions": None}
    thought = {"id": "rs_1", "type": "reasoning", "summary": []}
    part, message = {"type": "output_text", "annotations": []}, {"id": "msg_1", "type": "message", "role": "assistant"}
    where: dict[str, Any] = {"item_id": "msg_1", "output_index": 1, "content_index": 1}
    in_thought: dict[str, Any] = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    thinking = {"type": "reasoning_text", "text": "Hm."}
    done = {**message, "status": "completed", "content": [{**part, "text": "Hello"}]}
    ended = {**thought, "content": [thinking]}
    counts = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    events: list[tuple[str, dict[str, Any]]] = [
        ("created", {"response": {**base, "status": "in_progress", "output": []}}),
        ("output_item.added", {"output_index": 0, "item": thought}),
        ("reasoning_part.added", {**in_thought, "part": {**thinking, "text": ""}}),
        ("reasoning_text.delta", {**in_thought, "delta": "Hm."}),
        ("reasoning_text.done", {**in_thought, "text": "Hm."}),
        ("reasoning_part.done", {**in_thought, "part": thinking}),
        ("output_item.done", {"output_index": 0, "item": ended}),
        ("output_item.added", {"output_index": 1, "item": {**message, "status": "in_progress", "content": []}}),
        ("content_part.added", {**where, "part": {**part, "text": ""}}),
        ("output_text.delta", {**where, "delta": "Hel"}),
        ("output_text.delta", {**where, "delta": "lo"}),
        ("output_text.done", {**where, "text": "Hello"}),
        ("content_part.done", {**where, "part": {**part, "text": "Hello"}}),
        ("output_item.done", {"output_index": 1, "item": done}),
        ("completed", {"response": {**base, "status": "completed", "output": [ended, done], "usage": counts}}),
    ]
    raw = b"".join(
        b"data: " + json.dumps({"type": f"response.{kind}", "sequence_number": number, **fields}).encode() + b"\n\n"
        for number, (kind, fields) in enumerate(events)
    )
    _, translator = translate(raw, "openai_responses", "anthropic")
    assert translator.reply.turn.text == "Hello"
    native, forwarded = translate(raw, "openai_responses", "openai_responses")
    assert native == raw
    assert not forwarded.report.entries


# --- snapshots --------------------------------------------------------------------------------------


def snapshots(*choices: dict[str, Any]) -> bytes:
    chunks = [{**HEAD, "choices": [{"index": 0, "finish_reason": None, **choice}]} for choice in choices]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_messages_that_repeat_the_text_so_far_come_once(step: int) -> None:
    texts = ["He", "Hello", "Hello, world"]
    raw = snapshots(
        *({"message": {"role": "assistant", "content": text}} for text in texts),
        {"message": {"role": "assistant", "content": texts[-1]}, "finish_reason": "stop"},
    )
    _, translator = translate(raw, "openai_compatible", "anthropic", step)
    assert (translator.reply.turn.text, translator.reply.stop) == ("Hello, world", "stop")
    assert any("whole message" in entry.reason for entry in translator.report.entries)


def test_snapshots_beside_deltas_count_for_nothing_and_are_left_out() -> None:
    pieces = [("He", "He"), ("llo", "Hello"), ("", "Hello")]
    raw = snapshots(
        *(
            {"delta": {"role": "assistant", "content": piece}, "message": {"role": "assistant", "content": whole}}
            for piece, whole in pieces
        ),
        {"delta": {}, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"},
    ).replace(b'"delta": {}, ', b'"delta": {"content": ""}, ')
    _, translator = translate(raw, "openai_compatible", "anthropic")
    assert translator.reply.turn.text == "Hello"
    native, forwarded = translate(raw, "openai_compatible", "openai")
    assert b'"message"' not in native, "the SDK for JavaScript would read both"
    assert any("besides its delta" in entry.reason for entry in forwarded.report.entries)


# --- thoughts in text, native streams ---------------------------------------------------------------

THOUGHT = ["<think>", "Let me ", "think.", "\n</think>", "\n\nFour", "."]


@pytest.mark.parametrize("pieces", [THOUGHT, ["Well.</think>", "Four."]])
def test_marks_of_thinking_in_text_go_to_the_providers_own_clients_as_they_came(pieces: list[str]) -> None:
    raw = chat_stream({"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces), finish="stop")
    output, translator = translate(raw, "openai_compatible", "openai")
    assert (output, translator.report.entries) == (raw, ())
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "".join(pieces)}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    whole = convert_reply(body, source="openai_compatible", target="openai")
    assert (whole.body, whole.report.entries) == (body, ())


def test_a_thought_in_text_is_forwarded_while_it_comes() -> None:
    translator = StreamTranslator(source="openai_compatible", target="openai")
    head, *rest = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in THOUGHT)]
    parts = [chat_stream(delta).split(b"\n\n")[0] + b"\n\n" for delta in (head, *rest)]
    sent = [translator.feed(part) for part in parts]
    assert b"think." in sent[3], "the client need not wait for the end of the thought"


def test_thinking_in_text_is_reported_to_clients_of_another_protocol() -> None:
    raw = chat_stream({"role": "assistant"}, *({"content": piece} for piece in THOUGHT), finish="stop")
    _, translator = translate(raw, "openai_compatible", "anthropic")
    assert any("thinking as text between marks" in entry.reason for entry in translator.report.entries)
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "".join(THOUGHT)}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    whole = convert_reply(body, source="openai_compatible", target="anthropic")
    assert any("thinking as text between marks" in entry.reason for entry in whole.report.entries)


# --- a whole reply instead of a stream --------------------------------------------------------------


@pytest.mark.parametrize("name", [{}, {"name": "look"}])
def test_the_old_call_of_a_whole_reply_reaches_a_stream_of_chat_without_notes_of_ours(name: dict[str, str]) -> None:
    called = {"role": "assistant", "content": None, "function_call": {**name, "arguments": "{}"}}
    choice = {"index": 0, "finish_reason": "function_call", "message": called}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    output, _ = translate(json.dumps(body).encode(), "openai", "openai")
    chunks = [json.loads(line[6:]) for line in output.decode().split("\n\n") if line.startswith("data: {")]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    if name:
        names = [call["function"].get("name") for delta in deltas for call in delta.get("tool_calls", ())]
        assert "look" in names
    else:
        assert {"function_call": {"arguments": "{}"}} in deltas, "what is no call stays what it is"
    assert b'"~' not in output

"""A call without a name cannot be run: no client gets one, whole or streamed, and the stop reason agrees."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from support.translate.reply_bodies import BODIES, PROTOCOLS, stream_of
from support.translate.reply_reading import ReadReply, read_reply, read_stream
from toolglot import StreamReader, StreamTranslator, convert, convert_reply
from toolglot.conversation.report import Report

PAIRS = list(itertools.product(PROTOCOLS, PROTOCOLS))


def target_of(protocol: str) -> str:
    return {"openai_chat": "openai"}.get(protocol, protocol)


def without_name(value: Any, name: str, put: str | None) -> Any:
    """A body in which one tool's name is another one, or missing."""
    if isinstance(value, dict):
        found = {key: without_name(inner, name, put) for key, inner in value.items()}
        if found.get("name") == name:
            found["name"] = put
            return found if put is not None else {key: inner for key, inner in found.items() if key != "name"}
        return found
    return [without_name(inner, name, put) for inner in value] if isinstance(value, list) else value


def bodies(protocol: str, put: str | None) -> tuple[Any, Any]:
    """A reply that calls `read` without naming it and `list`; and one in which neither has a name."""
    one = without_name(BODIES["calls"][protocol], "read", put)
    return one, without_name(one, "list", put)


def check(one: ReadReply, none: ReadReply, reports: tuple[Report, Report]) -> None:
    assert [call.name for call in one.calls] == ["list"]
    assert one.stop == "tool_calls"
    assert none.calls == ()
    assert none.stop == "stop"
    for found in (one, none):
        assert "without naming it" in found.text
        assert '"path"' in found.text
    for report in reports:
        assert any("has no name" in entry.reason and entry.fault == "loss" for entry in report), report


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("put", ["", " ", None], ids=["empty", "blank", "missing"])
def test_a_call_without_a_name_reaches_no_client_as_a_call(source: str, target: str, put: str | None) -> None:
    outs = [convert_reply(body, source=target_of(source), target=target_of(target)) for body in bodies(source, put)]
    assert not any('"name":""' in out.data.decode() for out in outs)
    one, none = (read_reply(target, out.body) for out in outs)
    check(one, none, (outs[0].report, outs[1].report))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_same_in_streams_however_they_are_cut(source: str, target: str) -> None:
    found, reports = [], []
    for body in bodies(source, ""):
        data = stream_of(source, body)
        outputs = []
        for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
            translator = StreamTranslator(source=target_of(source), target=target_of(target))
            written = b"".join([translator.feed(piece) for piece in pieces]) + translator.finish()
            outputs.append(written)
        assert outputs[0] == outputs[1]
        assert b'"name":""' not in outputs[0]
        found.append(read_stream(target, outputs[0]))
        reports.append(translator.report)
    check(found[0], found[1], (reports[0], reports[1]))


def test_a_stream_that_leaves_out_the_name_is_read_as_one_whose_name_is_empty() -> None:
    gemini = {"candidates": [{"content": {"parts": [{"functionCall": {"args": {"path": 1}}}]}, "finishReason": "STOP"}]}
    ollama = {"message": {"role": "assistant", "tool_calls": [{"function": {"arguments": {"path": 1}}}]}, "done": True}
    for source, data in (
        ("gemini", b"data: %b\n\n" % json.dumps(gemini).encode()),
        ("ollama", json.dumps({"model": "m", **ollama}).encode() + b"\n"),
    ):
        reader = StreamReader(source=source, target="anthropic")
        reader.feed(data)
        reader.finish()
        assert reader.failure is None
        assert reader.calls == ()
        assert reader.reply.stop == "stop"
        assert '{"path":1}' in reader.reply.turn.text


def test_where_one_tool_was_forced_it_is_the_one_that_is_meant() -> None:
    tools = [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in ("read", "list")]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    forced = convert(
        {**body, "tool_choice": {"type": "tool", "name": "read"}}, source="anthropic", target="openai", model="gpt-4.1"
    )
    free = convert(body, source="anthropic", target="openai", model="gpt-4.1")
    reply = without_name(BODIES["calls"]["openai_chat"], "read", "")
    out = convert_reply(reply, source="openai", target="anthropic", request=forced)
    assert [block["name"] for block in out.body["content"] if block["type"] == "tool_use"] == ["read", "list"]
    assert any(entry.action == "assumed" and "'read'" in entry.reason for entry in out.report)
    out = convert_reply(reply, source="openai", target="anthropic", request=free)
    assert [block["name"] for block in out.body["content"] if block["type"] == "tool_use"] == ["list"]

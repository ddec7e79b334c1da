"""Streams of Cohere's protocol, written by hand."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, texts
from support.protocols.strategies.cohere import cohere_replies, part, text_parts
from support.protocols.strategies.wire_objects import wire_object
from support.protocols.streams.reading import accumulate, read_pieces
from toolglot.conversation import Reply
from toolglot.conversation.events import Event
from toolglot.protocols.cohere.stream_reader import Decoder, framer

Fields = dict[str, Any]


def event(kind: str, message: Any = None, **fields: Any) -> Fields:
    delta = {} if message is None else {"delta": {"message": message}}
    return {"type": kind, **fields, **delta}


def content(kind: str, text: str, index: int = 0) -> list[Fields]:
    """All events of one content, in two pieces."""
    pieces = (text[:2], text[2:])
    return [
        event("content-start", {"content": {"type": kind, kind: ""}}, index=index),
        *(event("content-delta", {"content": {kind: piece}}, index=index) for piece in pieces),
        event("content-end", index=index),
    ]


def call_start(name: str = "f", index: int = 0, id: Any = "c1", arguments: Any = "") -> Fields:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return event("tool-call-start", {"tool_calls": call}, index=index)


def call_delta(piece: Any, index: int = 0) -> Fields:
    return event("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}}, index=index)


def plan_delta(text: Any) -> Fields:
    return event("tool-plan-delta", {"tool_plan": text})


def end(reason: str = "COMPLETE", **delta: Any) -> Fields:
    return {"type": "message-end", "delta": {"finish_reason": reason, **delta}}


BEGIN = {
    "id": "r1",
    "type": "message-start",
    "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}},
}
CALL_END = event("tool-call-end", index=0)
USAGE = {"billed_units": {"input_tokens": 3}, "tokens": {"input_tokens": 7, "output_tokens": 5}, "cached_tokens": 2}


def sse(*events: Any) -> bytes:
    return b"".join(
        b"event: " + str(value["type"]).encode() + b"\ndata: " + json.dumps(value).encode() + b"\n\n"
        if type(value) is dict and type(value.get("type")) is str
        else b"data: " + json.dumps(value).encode() + b"\n\n"
        for value in events
    )


def read(*pieces: bytes) -> tuple[list[Event], Decoder]:
    decoder = Decoder()
    return read_pieces(framer(), decoder, pieces), decoder


def reply_of(*events: Any) -> Reply:
    found, decoder = read(sse(*events))
    assert decoder.builder.problems == []
    return accumulate(found).reply


TALK = (
    BEGIN,
    *content("thinking", "Hmm."),
    plan_delta("I "),
    plan_delta("look."),
    call_start(),
    call_delta('{"a":'),
    call_delta("1}"),
    CALL_END,
    call_start("g", 1, "c2"),
    call_delta("{}", 1),
    event("tool-call-end", index=1),
    end("TOOL_CALL", usage=USAGE),
)


whole_calls = wire_object(
    {"id": texts, "function": wire_object({"name": texts, "arguments": json_objects.map(json.dumps)}, {})},
    {"type": st.sampled_from(["function", "later", ""])},
)


def bodies(**planned: Any) -> st.SearchStrategy[Fields]:
    """Replies that a stream can express in full."""
    thoughts = part("thinking", {"thinking": texts})
    fields = {
        "content": st.lists(text_parts | thoughts, max_size=3),
        "tool_calls": st.lists(whole_calls, max_size=2),
        **planned,
    }
    return wire_object(
        {
            "id": texts,
            "message": wire_object({"role": st.just("assistant")}, fields),
            "finish_reason": st.sampled_from(
                ["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "LATER"]
            ),
        },
        {"usage": cohere_replies.map(lambda body: body.get("usage"))},
    )

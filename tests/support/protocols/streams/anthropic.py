"""Streams of Anthropic's protocol, written by hand."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_values, texts
from support.protocols.streams.reading import ReadStream, pieces_of
from toolglot.limits import Limits
from toolglot.protocols.anthropic.stream_reader import Decoder, framer
from toolglot.protocols.framing.text_frames import Frame

Fields = dict[str, Any]


USAGE = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1, "service_tier": "standard"}


MESSAGE: Fields = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": USAGE,
}


def sse(*events: Fields) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events)


def start(**more: Any) -> Fields:
    return {"type": "message_start", "message": {**MESSAGE, **more}}


def begin(index: int, **block: Any) -> Fields:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> Fields:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def text_delta(index: int, text: str) -> Fields:
    return delta(index, "text_delta", text=text)


def input_delta(index: int, text: str) -> Fields:
    return delta(index, "input_json_delta", partial_json=text)


def stop(index: int) -> Fields:
    return {"type": "content_block_stop", "index": index}


def read_bytes(data: bytes, *, piece: int = 0, limits: Limits | None = None) -> ReadStream:
    decoder = Decoder(limits=limits) if limits else Decoder()
    return ReadStream(framer(), decoder, pieces_of(data, piece))


FOUND = {
    "type": "web_search_result",
    "url": "https://example.com",
    "title": "Köln",
    "encrypted_content": "RW5j",
    "page_age": None,
}


CITED = {
    "type": "char_location",
    "document_index": 0,
    "document_title": None,
    "file_id": None,
    "start_char_index": 0,
    "end_char_index": 1,
}


EVERYTHING = [
    start(),
    {"type": "ping"},
    begin(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="Hm"),
    delta(0, "thinking_delta", thinking=", so."),
    delta(0, "signature_delta", signature="c2ln"),
    stop(0),
    begin(1, type="redacted_thinking", data="cmVk"),
    stop(1),
    begin(2, type="text", text="", citations=[]),
    text_delta(2, "7 °"),
    delta(2, "citations_delta", citation={**CITED, "cited_text": "7"}),
    text_delta(2, "C 😀"),
    delta(2, "citations_delta", citation={**CITED, "cited_text": "C"}),
    stop(2),
    begin(3, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    input_delta(3, '{"query":'),
    input_delta(3, ' "Köln"}'),
    stop(3),
    begin(4, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[FOUND]),
    stop(4),
    begin(5, type="compaction", content="", parts=[1], note=None),
    delta(5, "compaction_delta", content="so ", parts=[2]),
    delta(5, "compaction_delta", content="far", parts=[3], note="n", other=1),
    stop(5),
    begin(6, type="tool_use", id="toolu_1", name="f", input={}, caller={"type": "direct"}),
    input_delta(6, ""),
    input_delta(6, '{"a": [1.0, '),
    input_delta(6, "12345678901234567890]}"),
    stop(6),
    begin(7, type="tool_use", id="toolu_2", name="g", input={}),
    stop(7),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None, "container": {"id": "c"}},
        "usage": {
            "input_tokens": 12,
            "output_tokens": 20,
            "cache_read_input_tokens": None,
            "server_tool_use": {"n": 1},
        },
        "context_management": {"applied_edits": []},
    },
    {"type": "message_stop"},
]


WHOLE: Fields = {
    **MESSAGE,
    "content": [
        {"type": "thinking", "thinking": "Hm, so.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "cmVk"},
        {
            "type": "text",
            "text": "7 °C 😀",
            "citations": [
                {**CITED, "cited_text": "7"},
                {**CITED, "cited_text": "C"},
            ],
        },
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Köln"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [FOUND]},
        {"type": "compaction", "content": "so far", "parts": [1, 2, 3], "note": "n", "other": 1},
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "f",
            "input": {"a": [1.0, 12345678901234567890]},
            "caller": {"type": "direct"},
        },
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {**USAGE, "input_tokens": 12, "output_tokens": 20, "server_tool_use": {"n": 1}},
    "container": {"id": "c"},
    "context_management": {"applied_edits": []},
}


kinds = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        "message_delta",
        "error",
        "",
    ]
)


blocks = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["text", "thinking", "tool_use", "server_tool_use", "x_tool_result", "later"])
        | json_values
    },
    optional=dict.fromkeys(("text", "thinking", "id", "name", "input", "signature", "citations"), json_values),
)


deltas = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta", "later"]
        )
        | json_values
    },
    optional=dict.fromkeys(("text", "thinking", "partial_json", "signature", "citation"), texts | json_values),
)


events = st.fixed_dictionaries(
    {"type": kinds | json_values},
    optional={
        "index": st.integers(-1, 3) | json_values,
        "content_block": blocks | json_values,
        "delta": deltas | json_values,
        "message": st.dictionaries(st.sampled_from(["id", "model", "content", "usage"]), json_values) | json_values,
        "usage": json_values,
        "error": json_values,
    },
)


def frame(event: Fields) -> Frame:
    name = event["type"] if isinstance(event["type"], str) else ""
    return Frame(json.dumps(event).encode(), name)

"""Streams of Bedrock's protocol, written by hand."""

from __future__ import annotations

from typing import Any

from support.protocols.streams.reading import ReadStream, pieces_of
from toolglot.limits import Limits
from toolglot.protocols.bedrock.stream_reader import Decoder, framer
from toolglot.protocols.framing.aws_frames import event_message

Fields = dict[str, Any]
NamedEvent = tuple[str, Fields]
START: NamedEvent = ("messageStart", {"role": "assistant", "p": "abcdef"})


def begin(index: int, **start: Any) -> NamedEvent:
    return "contentBlockStart", {"contentBlockIndex": index, "start": start, "p": "abc"}


def call(index: int, id: str = "tooluse_1", name: str = "f", **more: Any) -> NamedEvent:
    return begin(index, toolUse={"toolUseId": id, "name": name, **more})


def delta(index: int, **fields: Any) -> NamedEvent:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": fields, "p": "abcdefghijk"}


def text_delta(index: int, text: str) -> NamedEvent:
    return delta(index, text=text)


def input_delta(index: int, text: Any) -> NamedEvent:
    return delta(index, toolUse={"input": text})


def reasoning_delta(index: int, **fields: Any) -> NamedEvent:
    return delta(index, reasoningContent=fields)


def stop(index: int) -> NamedEvent:
    return "contentBlockStop", {"contentBlockIndex": index, "p": "a"}


def end_events(reason: str = "end_turn") -> list[NamedEvent]:
    metadata = {
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        "metrics": {"latencyMs": 5},
        "p": "ab",
    }
    return [("messageStop", {"stopReason": reason, "p": "a"}), ("metadata", metadata)]


CALL_EVENTS = [call(0), input_delta(0, ""), input_delta(0, '{"a"'), input_delta(0, ":1}"), stop(0)]


def aws(*events: NamedEvent) -> bytes:
    return b"".join(event_message(name, fields) for name, fields in events)


def read_bytes(data: bytes, *, piece: int = 0, limits: Limits | None = None) -> ReadStream:
    decoder = Decoder(limits=limits) if limits else Decoder()
    return ReadStream(framer(), decoder, pieces_of(data, piece))


def read(*events: NamedEvent) -> ReadStream:
    return read_bytes(aws(*events))


CITATION = {"title": "Report", "sourceContent": [{"text": "7"}], "location": {"web": {"url": "https://example.com"}}}
SERVER_RESULT = {"toolUseId": "s", "type": "nova_grounding_result", "status": "success"}
EVERYTHING: list[NamedEvent] = [
    START,
    reasoning_delta(0, text="Hm"),
    reasoning_delta(0, text=", so."),
    reasoning_delta(0, text="."),
    reasoning_delta(0, signature="c2ln"),
    stop(0),
    reasoning_delta(1, redactedContent="cmVk"),
    stop(1),
    text_delta(2, "7 °"),
    text_delta(2, "C 😀"),
    stop(2),
    text_delta(3, "cited"),
    delta(3, citation=CITATION),
    delta(3, citation={**CITATION, "title": "Other"}),
    stop(3),
    call(4, "s", "nova_grounding", type="server_tool_use"),
    input_delta(4, '{"query": '),
    input_delta(4, '"Köln"}'),
    stop(4),
    begin(5, toolResult=SERVER_RESULT),
    delta(5, toolResult=[{"text": "a"}]),
    delta(5, toolResult=[{"json": {"b": 1}}]),
    stop(5),
    begin(6, image={"format": "png"}),
    delta(6, image={"source": {"bytes": "aGk="}}),
    stop(6),
    call(7),
    input_delta(7, '{"a": [1.0, '),
    input_delta(7, "12345678901234567890]}"),
    stop(7),
    call(8, "tooluse_2", "g"),
    stop(8),
    ("messageStop", {"stopReason": "tool_use", "additionalModelResponseFields": {"x": 1}}),
    (
        "metadata",
        {
            "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2},
            "metrics": {"latencyMs": 5},
            "performanceConfig": {"latency": "standard"},
        },
    ),
]
WHOLE: Fields = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm, so..", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "cmVk"}},
                {"text": "7 °C 😀"},
                {
                    "citationsContent": {
                        "content": [{"text": "cited"}],
                        "citations": [CITATION, {**CITATION, "title": "Other"}],
                    }
                },
                {
                    "toolUse": {
                        "toolUseId": "s",
                        "name": "nova_grounding",
                        "type": "server_tool_use",
                        "input": {"query": "Köln"},
                    }
                },
                {"toolResult": {**SERVER_RESULT, "content": [{"text": "a"}, {"json": {"b": 1}}]}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"a": [1.0, 12345678901234567890]}}},
                {"toolUse": {"toolUseId": "tooluse_2", "name": "g", "input": {}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "additionalModelResponseFields": {"x": 1},
    "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2},
    "metrics": {"latencyMs": 5},
    "performanceConfig": {"latency": "standard"},
}

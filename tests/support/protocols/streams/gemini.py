"""Streams of Gemini's protocol, written by hand."""

from __future__ import annotations

import json
from typing import Any

from support.protocols.streams.reading import read_pieces
from toolglot.conversation.events import Event
from toolglot.protocols.gemini.stream_reader import Decoder, framer

Fields = dict[str, Any]
HEAD = {"modelVersion": "gemini-3", "responseId": "r1"}


def chunk(*parts: Any, reason: str | int | None = None, **fields: Any) -> Fields:
    candidate: Fields = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **HEAD, **fields}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(value).encode() + b"\r\n\r\n" for value in chunks)


def array(*chunks: Any) -> bytes:
    return b"[" + b"\n,\r\n".join(json.dumps(value, indent=1).encode() for value in chunks) + b"\n]\n"


def read(*pieces: bytes) -> tuple[list[Event], Decoder]:
    decoder = Decoder()
    return read_pieces(framer(), decoder, pieces), decoder


COUNTS = {"promptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 14}
TALK = (
    chunk({"text": "Hm", "thought": True}, usageMetadata={"promptTokenCount": 7, "totalTokenCount": 7}),
    chunk({"text": "m.", "thought": True}, usageMetadata={"promptTokenCount": 7, "totalTokenCount": 8}),
    chunk({"text": "Kö"}),
    chunk({"text": "ln"}, usageMetadata={"promptTokenCount": 7, "totalTokenCount": 9}),
    chunk({"functionCall": {"name": "f", "args": {"a": 1.0, "b": [10**30]}}, "thoughtSignature": "c2ln"}),
    chunk({"functionCall": {"id": "c2", "name": "g"}}),
    chunk({"text": ""}, reason="STOP", usageMetadata=COUNTS, createTime="now"),
)

"""llm-rosetta's translation of a Chat stream into a Messages stream, with orjson at both ends, in its environment."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import orjson
from llm_rosetta import ConversionPipeline

from peers import answer, stream_census

REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 1000,
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": "write_file", "description": "Writes.", "input_schema": {"type": "object"}}],
}


def translate(body: bytes) -> bytes:
    pipeline = ConversionPipeline("anthropic", "openai_chat")
    pipeline.convert_request(REQUEST)
    processor = pipeline.create_stream_processor()
    written: list[bytes] = []
    for event in body.split(b"\n\n"):
        data = event[6:]
        if data and data != b"[DONE]":
            for made in processor.process_chunk(orjson.loads(data)):
                written += (b"event: ", made["type"].encode(), b"\ndata: ", orjson.dumps(made), b"\n\n")
    return b"".join(written)


if __name__ == "__main__":
    answer(f"llm-rosetta {version('llm-rosetta')}", translate, sys.argv[1], stream_census)

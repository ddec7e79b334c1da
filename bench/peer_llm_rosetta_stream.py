"""llm-rosetta's translation of a Chat stream into a Messages stream, as its gateway does it, in its environment.

Its stream processor between its own reading of events, which is json, and its own writing of them.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

from llm_rosetta import ConversionPipeline
from llm_rosetta.gateway.transport.sse_format import SSE_FORMATTERS

from peers import run_peer, stream_census

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
    write = SSE_FORMATTERS["anthropic"]
    written: list[str] = []
    for event in body.split(b"\n\n"):
        data = event[6:]
        if data and data != b"[DONE]":
            written += map(write, processor.process_chunk(json.loads(data)))
    return "".join(written).encode()


if __name__ == "__main__":
    run_peer(f"llm-rosetta {version('llm-rosetta')}", translate, sys.argv[1], stream_census)

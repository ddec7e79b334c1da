"""llm-rosetta's translation of a Messages request into a Chat request, with orjson at both ends, in its environment.

Its pipeline serves one request only, so that making it is part of each call; its caches for tools stay warm.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import orjson
from llm_rosetta import ConversionPipeline

from peers import run_peer


def translate(body: bytes) -> bytes:
    pipeline = ConversionPipeline("anthropic", "openai_chat")
    written: bytes = orjson.dumps(pipeline.convert_request(orjson.loads(body)))
    return written


if __name__ == "__main__":
    run_peer(f"llm-rosetta {version('llm-rosetta')}", translate, sys.argv[1])

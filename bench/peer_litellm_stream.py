"""litellm's translation of a Chat stream into a Messages stream, with orjson for reading. Runs in its environment.

Calls the wrapper itself, as its proxy does, without the handler, the logging and the routing around it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version

import orjson
from litellm.llms.anthropic.pass_through.adapters.streaming_iterator import AnthropicStreamWrapper
from litellm.types.utils import ModelResponseStream

from peers import run_peer, stream_census


def chunks(body: bytes) -> Iterator[ModelResponseStream]:
    for event in body.split(b"\n\n"):
        data = event[6:]
        if data and data != b"[DONE]":
            yield ModelResponseStream(**orjson.loads(data))


def translate(body: bytes) -> bytes:
    wrapper = AnthropicStreamWrapper(chunks(body), "gpt-4.1")
    return b"".join(wrapper.anthropic_sse_wrapper())


if __name__ == "__main__":
    run_peer(f"litellm {version('litellm')}", translate, sys.argv[1], stream_census)

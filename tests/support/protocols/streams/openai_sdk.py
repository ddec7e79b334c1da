"""What a client of Chat Completions makes of a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from sdk.loopback import serving
from toolglot.protocols.base import get

QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "?"}]


@contextlib.contextmanager
def client_of(data: bytes) -> Iterator[OpenAI]:
    """The SDK, whose requests are answered with these bytes."""
    with serving() as loopback:
        loopback.give(data, get("openai_chat").stream_type)
        with OpenAI(api_key="key", base_url=f"{loopback.url}/v1", max_retries=0) as client:
            yield client

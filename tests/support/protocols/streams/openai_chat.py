"""Chunks of Chat Completions streams, and what a decoder makes of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from support.protocols.streams.reading import ReadStream
from toolglot.conversation import Text, Thinking
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_chat import stream_reader

Fields = dict[str, Any]
DONE = "[DONE]"
NO_ROLE = "no delta names the role"


def chunk(delta: Any, finish: str | None = None, **others: Any) -> Fields:
    """A chunk as OpenAI writes it."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    return {**head, "choices": [choice], **others}


def call(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None, **others: Any) -> Fields:
    """A piece of a call, with the fields that are not None. One with an id and a name is the first: it has a type."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    first = {"type": "function"} if id is not None and name is not None else {}
    fields = {"index": index, "id": id, **first, "function": function, **others}
    return {key: value for key, value in fields.items() if value is not None}


def calls(*pieces: Fields) -> Fields:
    return chunk({"tool_calls": list(pieces)})


def sse(chunks: Iterable[Any]) -> bytes:
    """The bytes of a stream. What is text already goes as it is."""
    return b"".join(
        b"data: "
        + (item.encode() if isinstance(item, str) else json.dumps(item, ensure_ascii=False).encode())
        + b"\n\n"
        for item in chunks
    )


class ReadChunks(ReadStream):
    """A stream of chunks, or of bytes, that was read to its end."""

    def __init__(self, chunks: Iterable[Any] | bytes, tools: Collection[str] = ()) -> None:
        data = chunks if isinstance(chunks, bytes) else sse(chunks)
        super().__init__(stream_reader.framer(), stream_reader.Decoder(tools=tools), [data])

    @property
    def problems(self) -> list[str]:
        """What was reported, except for the role, which most streams of the tests leave out."""
        return [reason for reason in super().problems if reason != NO_ROLE]

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Name and arguments of each call that is whole."""
        return [(call.name, call.arguments) for call in self.accumulator.calls]

    @property
    def ids(self) -> list[str]:
        return [call.id for call in self.accumulator.calls]

    @property
    def texts(self) -> list[str]:
        return [block.text for block in self.blocks if isinstance(block, Text)]

    @property
    def thoughts(self) -> list[str]:
        return [block.text for block in self.blocks if isinstance(block, Thinking)]


def frames(data: bytes) -> list[Frame]:
    framer = stream_reader.framer()
    return framer.feed(data) + framer.finish()

"""Streams of every protocol, made from replies, translated and read back."""

from __future__ import annotations

from typing import Any

from support.conversations.event_grammar import check
from toolglot import (
    Reply,
    StreamReader,
    StreamTranslator,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
)
from toolglot.conversation.events import Event
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec

PROTOCOLS = ("anthropic", "openai_chat", "openai_responses", "gemini", "ollama", "bedrock", "cohere")


def stream_bytes(reply: Reply, protocol: str, piece: int = 7) -> bytes:
    """A reply as the stream of a provider of this protocol."""
    return codec(protocol).stream.Encoder().write(list(of_reply(reply, piece=piece)))


def translate(data: bytes, source: str, target: str, cuts: list[int] | None = None, **options: Any) -> bytes:
    return feed_through(StreamTranslator(source=source, target=target, **options), data, cuts)


def feed_through(translator: StreamTranslator, data: bytes, cuts: list[int] | None = None) -> bytes:
    output, start = [], 0
    for end in (*sorted(cuts or []), len(data)):
        output.append(translator.feed(data[start:end]))
        start = end
    return b"".join(output) + translator.finish()


def events_of(data: bytes, source: str, cuts: list[int] | None = None) -> list[Event]:
    reader = StreamReader(source=source)
    events: list[Event] = []
    start = 0
    for end in (*sorted(cuts or []), len(data)):
        events += reader.feed(data[start:end])
        start = end
    return events + reader.finish()


def plain(reply: Reply) -> tuple[Any, ...]:
    """The content of a reply, without the spelling of its protocol."""
    blocks: list[tuple[Any, ...]] = []
    for block in reply.turn.blocks:
        if isinstance(block, ToolCall):
            blocks.append((block.id, block.name, block.arguments, block.type))
        elif isinstance(block, Text | Thinking):
            blocks.append((type(block).__name__, block.text))
        else:
            blocks.append((type(block).__name__,))
    counts = None if reply.usage is None else (reply.usage.input_tokens or 0, reply.usage.output_tokens or 0)
    return tuple(blocks), reply.stop, counts if counts != (0, 0) else None


def read_reply(data: bytes, protocol: str) -> Reply:
    """The reply that a client reads from a stream."""
    reader = StreamReader(source=protocol)
    check([*reader.feed(data), *reader.finish()])
    assert reader.failure is None
    return reader.reply


ANSWER = Reply(
    Turn(
        "assistant",
        (Thinking("hm 😀"), Text("é "), ToolCall("call_1", "run", {"a": "ü"}), ToolCall("call_2", "run", {})),
    ),
    "tool_calls",
    Usage(3, 4),
    "id_1",
    "model-1",
)
CUT = Reply(Turn("assistant", (Text("ok"),)), "length", None, "id_1", "model-1")

"""Replies with calls written as text, as servers send them and as clients read them."""

from __future__ import annotations

from typing import Any

from support.conversations.event_grammar import check
from toolglot import Policy, Reply, StreamReader, Text, Thinking, ToolCall, Turn, profiles
from toolglot.conversation import StopReason
from toolglot.conversation.events import Event
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec

CLIENTS = ("anthropic", "openai", "openai_responses", "gemini", "bedrock", "cohere", "ollama")
ALWAYS, NEVER = Policy(calls_in_text="always"), Policy(calls_in_text="never")
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Bonn"}}\n</tool_call>'


def reply(text: str, stop: StopReason = "stop") -> Reply:
    return Reply(Turn("assistant", (Text(text),)), stop, None, "id_1", "some-model")


def protocol_of(name: str) -> str:
    return profiles.get(name).protocol


def reply_body(answer: Reply, server: str) -> dict[str, Any]:
    """A reply as the body that the server sends without streaming."""
    body: dict[str, Any] = codec(protocol_of(server)).reply.encode(answer)
    return body


def stream_bytes(answer: Reply, server: str, piece: int = 5) -> bytes:
    return codec(protocol_of(server)).stream.Encoder().write(list(of_reply(answer, piece=piece)))


def read_stream(data: bytes, client: str) -> tuple[list[Event], Reply]:
    """The events and the reply that a client reads from a stream. It looks for no calls in text itself."""
    reader = StreamReader(source=client, policy=NEVER)
    events = [*reader.feed(data), *reader.finish()]
    check(events)
    return events, reader.reply


def summary(answer: Reply) -> list[tuple[Any, ...]]:
    """The parts of a reply that matter here, as plain tuples."""
    blocks: list[tuple[Any, ...]] = []
    for block in answer.turn.blocks:
        if isinstance(block, ToolCall):
            blocks.append(("call", block.id, block.name, block.arguments, block.type))
        elif isinstance(block, Text | Thinking):
            blocks.append((type(block).__name__, block.text))
    return [*blocks, ("stop", answer.stop)]

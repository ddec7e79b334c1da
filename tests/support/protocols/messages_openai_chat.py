"""Messages of the Chat Completions protocol, decoded and encoded."""

from __future__ import annotations

from typing import Any

from support.protocols.strategies.wire_objects import Fields
from toolglot import Turn
from toolglot.conversation import Conversation
from toolglot.protocols.openai_chat import request

BASE: Fields = {"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}


def call(arguments: Any, id: str = "c1", name: str = "f") -> Fields:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def blocks_of(message: Fields) -> tuple[Any, ...]:
    return request.decode({"messages": [message]}).turns[0].blocks


def messages_of(*turns: Turn) -> list[Fields]:
    messages: list[Fields] = request.encode(Conversation(turns))["messages"]
    return messages

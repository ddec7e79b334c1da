"""The record of Cohere's chat protocol, version 2: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol

PROTOCOL: Final = Protocol(
    name="cohere",
    package=__package__,
    provider="cohere",
    sdk="cohere",
    path="/v2/chat",
    models=ModelList(path="/v1/models", name_field="name", needs=("endpoints", "chat")),
    routes=(ClientRoute(action="generate", paths=("/v2/chat",)),),
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "tool"}),
        part_types=frozenset({"text", "image_url", "document", "thinking"}),
        has_call_list=True,
    ),
    reply_marks={"message": dict, "finish_reason": str},
    reply_rank=7,
)

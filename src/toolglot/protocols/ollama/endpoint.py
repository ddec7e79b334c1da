"""The record of Ollama's native chat protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol

PROTOCOL: Final = Protocol(
    name="ollama",
    package=__package__,
    provider="ollama",
    sdk="ollama",
    path="/api/chat",
    stream_type="application/x-ndjson",
    models=ModelList(path="/api/tags", name_field="model"),
    routes=(
        ClientRoute(action="generate", paths=("/api/chat",), streams_by_default=True),
        ClientRoute(action="models", paths=("/api/tags",)),
        ClientRoute(action="show", paths=("/api/show",)),
        ClientRoute(action="version", paths=("/api/version",)),
    ),
    client_prefixes=("/api/",),
    turns="messages",
    messages=MessageForm(roles=frozenset({"user", "assistant", "system", "tool"}), has_call_list=True),
    reply_marks={"done": bool, "eval_count": int, "done_reason": str},
    reply_rank=6,
)

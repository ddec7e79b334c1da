"""The record of the toy protocol."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol

PROTOCOL: Final = Protocol(
    name="toy_lines",
    package=__package__,
    provider="toys",
    path="/say",
    stream_type="application/x-ndjson",
    models=ModelList(path="/models"),
    routes=(ClientRoute(action="generate", paths=("/say",)),),
    turns="lines",
    messages=MessageForm(roles=frozenset({"user", "model", "tool", "system"})),
    reply_marks={"line": dict},
)

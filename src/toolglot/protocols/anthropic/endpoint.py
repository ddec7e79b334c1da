"""The record of the Anthropic Messages protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import ClientRoute, MessageForm, ModelList, Protocol, TokenCount
from toolglot.protocols.fields.reading import Fields

_COUNTED: Final = ("model", "messages", "system", "tools", "tool_choice", "thinking", "mcp_servers")
"""The fields of a request that the count takes."""


def _count_request(body: Fields, _model: str) -> Fields:
    return {key: body[key] for key in _COUNTED if key in body}


PROTOCOL: Final = Protocol(
    name="anthropic",
    package=__package__,
    provider="anthropic",
    sdk="anthropic",
    path="/v1/messages",
    auth="x-api-key",
    headers={"anthropic-version": "2023-06-01"},
    forwarded_headers=("anthropic-version", "anthropic-beta"),
    request_id_header="request-id",
    client_request_id_header="request-id",
    models=ModelList(path="/v1/models"),
    counts=TokenCount(request=_count_request, reply_field="input_tokens"),
    routes=(
        ClientRoute(action="generate", paths=("/v1/messages", "/messages")),
        ClientRoute(action="count", paths=("/v1/messages/count_tokens", "/messages/count_tokens")),
    ),
    client_header="anthropic-version",
    client_prefixes=("/v1/messages",),
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system"}),
        part_types=frozenset({"text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"}),
        part_rank=1,
    ),
    stored_history=("thread",),
    returns_opaque=True,
    reply_marks={"stop_reason": str, "content": list, "completion": str},
    reply_rank=5,
)

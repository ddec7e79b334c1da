"""Requests of the toy protocol."""

from __future__ import annotations

from typing import Any

from toolglot.conversation import Conversation, Options, ToolSpec
from toolglot.profiles import Profile

from .lines import read_line, write_lines


def decode(body: dict[str, Any]) -> Conversation:
    return Conversation(
        turns=tuple(read_line(line) for line in body["lines"]),
        tools=tuple(ToolSpec(tool["name"], tool.get("about"), tool.get("input")) for tool in body.get("tools", ())),
        options=Options(stream=body.get("stream")),
        model=body.get("model", ""),
    )


def encode(conversation: Conversation, profile: Profile | None = None) -> dict[str, Any]:
    del profile
    body: dict[str, Any] = {"model": conversation.model}
    body["lines"] = [line for turn in conversation.turns for line in write_lines(turn)]
    if conversation.tools:
        body["tools"] = [
            {"name": tool.name, "about": tool.description, "input": tool.parameters} for tool in conversation.tools
        ]
    if conversation.options.stream is not None:
        body["stream"] = conversation.options.stream
    return body

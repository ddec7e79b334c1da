"""Requests of the toy protocol."""

from __future__ import annotations

from typing import Any

from toolglot.conversation import Conversation, Options, ToolSpec
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import each, from_root, optional, required

from .lines import read_line, write_lines


@from_root
def decode(body: dict[str, Any]) -> Conversation:
    return Conversation(
        turns=tuple(each(required(body, "lines", list), read_line, ".lines")),
        tools=tuple(each(optional(body, "tools", list) or (), _read_tool, ".tools")),
        options=Options(stream=optional(body, "stream", bool)),
        model=optional(body, "model", str) or "",
    )


def _read_tool(tool: dict[str, Any]) -> ToolSpec:
    return ToolSpec(required(tool, "name", str), optional(tool, "about", str), optional(tool, "input", dict))


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

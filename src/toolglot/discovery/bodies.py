"""The bodies of the requests that probes send: written by the codecs, then changed where a probe needs it.

    style = RequestStyle(protocol="openai_chat", target="openai_compatible", model="m")
    body = style.body(user("Hello"), calls(ID), result(ID), tools=(WEATHER,))

A style is what every request to the endpoint depends on: the field that limits the reply, the content of a turn with
only calls, a placeholder for thinking. `baseline.py` finds it.

Law: pure. Whatever is sent to an endpoint is made here or in a probe, and is harmless: a question about the weather.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    Options,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.protocols.base import Feature, codec, get, records

Body = dict[str, Any]

ID: Final = "Ab3dE6gH9"
"""An id that every provider accepts: nine letters and digits."""
ID_2: Final = "Xy7zW4vU2"
TOOL: Final = "get_weather"
QUESTION: Final = "What is the weather in Bonn? Use the tool."
TWO_CITIES: Final = "What is the weather in Bonn and in Rome? Call the tool once for each city, at the same time."
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "A city"}},
    "required": ["city"],
}
WEATHER: Final = ToolSpec(TOOL, "The weather in a city.", SCHEMA)
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""An image of one pixel, as PNG."""
IMAGE: Final = Media("image", "image/png", PIXEL)
PLACEHOLDER: Final = " "
"""Replaces thinking that was lost."""
SIGNATURE: Final = "skip_thought_signature_validator"
"""Gemini's placeholder for a signature that was lost."""


def user(text: str = QUESTION) -> Turn:
    return Turn("user", (Text(text),))


def assistant(text: str = "It is cold.") -> Turn:
    return Turn("assistant", (Text(text),))


def call(id: str = ID, city: str = "Bonn", name: str = TOOL) -> ToolCall:
    return ToolCall(id, name, {"city": city})


def calls(*ids: str) -> Turn:
    return Turn("assistant", tuple(call(id) for id in ids or (ID,)))


def result(id: str = ID, text: str = "7 degrees", *, is_error: bool = False) -> Turn:
    return Turn("tool", (ToolResult(id, text, is_error=is_error, name=TOOL),))


def results(*ids: str) -> Turn:
    return Turn("tool", tuple(ToolResult(id, "7 degrees", name=TOOL) for id in ids))


def tool(name: str = TOOL, schema: dict[str, Any] | None = None, **fields: Any) -> ToolSpec:
    return ToolSpec(
        name, fields.pop("description", "The weather in a city."), SCHEMA if schema is None else schema, **fields
    )


class RequestStyle(Struct, frozen=True, kw_only=True):
    """How a request must be written to be accepted at all."""

    protocol: str
    target: str
    model: str
    limit_field: str = "max_tokens"
    """Chat Completions: the field that limits the reply; empty: none."""
    empty_content: Literal["empty", "null", "omit"] = "empty"
    """Chat Completions: the content of a turn with only calls."""
    thinking: Literal["", "calls", "assistant"] = ""
    """Which turns need a placeholder for thinking."""
    thinking_field: str = "reasoning_content"
    result_name: bool = False
    """Chat Completions: a result names its tool."""
    strict: bool = True
    """Responses: whether tools have the field `strict`, which is true by default."""
    ids: Literal["plain", "ordinal"] = "plain"
    """How the ids of calls are made: letters and digits, or the tool's name and a number."""

    def body(
        self,
        *turns: Turn,
        tools: tuple[ToolSpec, ...] | None = (WEATHER,),
        choice: ToolChoice | None = None,
        limit: int | None = 16,
        options: Options | None = None,
        stream: bool = False,
    ) -> Body:
        """The request with these turns. Nothing is repaired."""
        settings = msgspec.structs.replace(
            options or Options(),
            sampling=msgspec.structs.replace((options or Options()).sampling, max_tokens=limit),
            tool_choice=choice,
            stream=True if stream else None,
        )
        conversation = Conversation(
            _with_style_ids(_with_signatures(turns, self), self), tools or (), settings, self.model
        )
        # A codec that writes signatures also reads in the profile which kind of schema the model takes.
        profile = profiles.get(self.target, self.model) if self.has("call_signatures") else None
        # A copy: the codec may return parts of the samples themselves, and probes change bodies.
        body: Body = msgspec.json.decode(
            msgspec.json.encode(codec(self.protocol).request.encode(conversation, profile))
        )
        if self.is_chat:
            self._chat(body)
        body.pop("modelId", None)  # it is in the path
        if not self.strict:
            for item in body.get("tools", ()):
                item.pop("strict", None)
        return body

    @property
    def is_chat(self) -> bool:
        """Whether it is Chat Completions, whose many hosts differ from each other."""
        return self.protocol == "openai_chat"

    def has(self, feature: Feature) -> bool:
        return feature in get(self.protocol).features

    def _chat(self, body: Body) -> None:
        limit = body.pop("max_completion_tokens", None)
        if limit is not None and self.limit_field:
            body[self.limit_field] = limit
        for message in body["messages"]:
            if message["role"] == "tool" and not self.result_name:
                message.pop("name", None)
            if message.get("tool_calls") and message.get("content") is None:
                _set_empty_content(message, self.empty_content)
            is_bound = message.get("tool_calls") if self.thinking == "calls" else self.thinking
            if message["role"] == "assistant" and is_bound:
                message[self.thinking_field] = PLACEHOLDER

    def with_limit(self, body: Body, limit: int | None) -> Body:
        """The same request with another limit of the reply; None: without one."""
        field, holder = limit_holder(self, body)
        holder.pop(field, None)
        if limit is not None:
            holder[field] = limit
        return body


def limit_holder(style: RequestStyle, body: Body) -> tuple[str, Body]:
    """The field that limits the reply, and the object that has it."""
    *outer, field = get(style.protocol).limit_path
    for name in outer:
        body = body.setdefault(name, {})
    return style.limit_field if style.is_chat else field, body


def _set_empty_content(message: Body, empty_content: str) -> None:
    if empty_content == "omit":
        message.pop("content", None)
    else:
        message["content"] = "" if empty_content == "empty" else None


def _with_signatures(turns: tuple[Turn, ...], style: RequestStyle) -> tuple[Turn, ...]:
    """Gemini: each first call with the placeholder for its signature."""
    if not style.thinking or not style.has("call_signatures"):
        return turns
    return tuple(_with_signature(turn) for turn in turns)


ORDINALS: Final = {ID: f"functions.{TOOL}:0", ID_2: f"functions.{TOOL}:1"}


def _with_style_ids(turns: tuple[Turn, ...], style: RequestStyle) -> tuple[Turn, ...]:
    """The turns with ids in the form that the style has."""
    if style.ids == "plain":
        return turns
    return tuple(
        msgspec.structs.replace(turn, blocks=tuple(_with_ordinal_id(block) for block in turn.blocks)) for turn in turns
    )


def _with_ordinal_id(block: Block) -> Block:
    if isinstance(block, ToolCall):
        return msgspec.structs.replace(block, id=ORDINALS.get(block.id, block.id))
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, call_id=ORDINALS.get(block.call_id, block.call_id))
    return block


def _with_signature(turn: Turn) -> Turn:
    index = next((index for index, block in enumerate(turn.blocks) if isinstance(block, ToolCall)), None)
    if index is None:
        return turn
    call = msgspec.structs.replace(turn.blocks[index], signature=SIGNATURE)
    return msgspec.structs.replace(turn, blocks=(*turn.blocks[:index], call, *turn.blocks[index + 1 :]))


def messages_of(body: Body) -> list[Body]:
    """The list of turns of a request, whatever its protocol calls it."""
    for name in {protocol.turns: None for protocol in records()}:
        if isinstance(body.get(name), list):
            found: list[Body] = body[name]
            return found
    return []


def raw_message(style: RequestStyle, role: str, text: str) -> Body:
    """A message of a role that the codec would not write there."""
    return {**messages_of(style.body(user(text), tools=None))[0], "role": role}


def first_tool(body: Body) -> Body:
    """The object that describes the first tool of a request."""
    listed = body.get("tools") or body.get("toolConfig", {}).get("tools") or []
    found: Body = listed[0]
    for inner in ("function", "toolSpec"):
        found = found.get(inner, found)
    declared = found.get("functionDeclarations")
    return declared[0] if declared else found


_ID_FIELDS: Final = ("tool_call_id", "tool_use_id", "toolUseId", "call_id")


def without_ids(value: Any) -> Any:
    """A request whose calls and results have no ids."""
    if isinstance(value, list):
        return [without_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_call = (
        "function" in value
        or value.get("type") == "tool_use"
        or ("name" in value and ("args" in value or "response" in value))
    )
    dropped = (*_ID_FIELDS, "id") if is_call else _ID_FIELDS
    return {name: without_ids(item) for name, item in value.items() if name not in dropped}

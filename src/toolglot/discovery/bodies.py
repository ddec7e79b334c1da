"""Requests to try, in any protocol: written with our own codecs, then changed by hand where a probe wants it odd.

    style = Style(protocol="openai_chat", model="m")
    body = style.body(user("Hello"), calls(ID), result(ID), tools=(WEATHER,))

A style is how the endpoint wants what no probe can do without: the field that limits the answer, the content of a turn
that only calls, whatever must stand for thinking. `baseline.py` finds it.

Law: pure; whatever is sent to an endpoint is made here or in a probe, and is harmless: it asks for the weather.
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
"""An id that every provider takes: nine letters and digits."""
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
"""A picture of one point, as PNG."""
IMAGE: Final = Media("image", "image/png", PIXEL)
PLACEHOLDER: Final = " "
"""What stands for thinking that was lost."""
SIGNATURE: Final = "skip_thought_signature_validator"
"""Gemini's own word for a signature that was lost."""


def user(text: str = QUESTION) -> Turn:
    return Turn("user", (Text(text),))


def says(text: str = "It is cold.") -> Turn:
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
    """Chat Completions: the field that limits the answer; empty: none."""
    nothing: Literal["empty", "null", "omit"] = "empty"
    """Chat Completions: the content of a turn that only calls."""
    thinking: Literal["", "calls", "assistant"] = ""
    """On which turns something must stand for thinking."""
    thinking_field: str = "reasoning_content"
    result_name: bool = False
    """Chat Completions: a result names its tool."""
    strict: bool = True
    """Responses: a tool says that it is not strict, which it would be otherwise; false: it says nothing of it."""
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
        shown = Conversation(_numbered(_marked(turns, self), self), tools or (), settings, self.model)
        # A codec that writes signatures also asks the profile which kind of schema the model takes.
        profile = profiles.get(self.target, self.model) if self.has("call_signatures") else None
        # The codec may hand out parts of the samples themselves; what a probe changes must be its own.
        body: Body = msgspec.json.decode(msgspec.json.encode(codec(self.protocol).request.encode(shown, profile)))
        if self.is_chat:
            self._chat(body)
        body.pop("modelId", None)  # it is in the path
        if not self.strict:
            for item in body.get("tools", ()):
                item.pop("strict", None)
        return body

    @property
    def is_chat(self) -> bool:
        """Whether it is Chat Completions, whose many hosts differ most."""
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
                _set_nothing(message, self.nothing)
            is_bound = message.get("tool_calls") if self.thinking == "calls" else self.thinking
            if message["role"] == "assistant" and is_bound:
                message[self.thinking_field] = PLACEHOLDER

    def with_limit(self, body: Body, limit: int | None) -> Body:
        """The same request with another limit of its answer; None: with none."""
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


def _set_nothing(message: Body, nothing: str) -> None:
    if nothing == "omit":
        message.pop("content", None)
    else:
        message["content"] = "" if nothing == "empty" else None


def _marked(turns: tuple[Turn, ...], style: RequestStyle) -> tuple[Turn, ...]:
    """Gemini: each first call with what stands for its signature."""
    if not style.thinking or not style.has("call_signatures"):
        return turns
    return tuple(_with_signature(turn) for turn in turns)


ORDINALS: Final = {ID: f"functions.{TOOL}:0", ID_2: f"functions.{TOOL}:1"}


def _numbered(turns: tuple[Turn, ...], style: RequestStyle) -> tuple[Turn, ...]:
    """Ids as the style has them."""
    if style.ids == "plain":
        return turns
    return tuple(
        msgspec.structs.replace(turn, blocks=tuple(_renumbered(block) for block in turn.blocks)) for turn in turns
    )


def _renumbered(block: Block) -> Block:
    if isinstance(block, ToolCall):
        return msgspec.structs.replace(block, id=ORDINALS.get(block.id, block.id))
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, call_id=ORDINALS.get(block.call_id, block.call_id))
    return block


def _with_signature(turn: Turn) -> Turn:
    place = next((place for place, block in enumerate(turn.blocks) if isinstance(block, ToolCall)), None)
    if place is None:
        return turn
    marked = msgspec.structs.replace(turn.blocks[place], signature=SIGNATURE)
    return msgspec.structs.replace(turn, blocks=(*turn.blocks[:place], marked, *turn.blocks[place + 1 :]))


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

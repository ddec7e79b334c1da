"""A request body as the referee sees it: one neutral view for all protocols.

Each protocol has a reader (`readers/<protocol>.py`) that builds the view from the JSON as it is, with the path of each
part. The checks (`checks/<group>.py`) work on the view, so that each demand is checked in one way for all protocols.
The referee shares nothing with codecs and renderer: it must be able to find them wrong.

A reader never raises: what has the wrong shape is a `MalformedPart`, and the rest is read as far as possible.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

Kind = Literal["text", "call", "result", "media", "thinking", "server", "other"]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Section = Literal["tools", "system", "messages", "results"]
"""The part of a prompt that a cache marker is in."""


OLD_FORMS: Final = ("function_call", "function")
"""The types of the items in which the first Chat API wrote a call and a result: they have no id and are not paired."""


class MalformedPart(Struct, frozen=True):
    """A part of the body that does not have the form of the protocol."""

    path: str
    message: str
    rule: str = ""
    """The id of a rule, if a profile has one for it."""


class PartView(Struct, frozen=True, kw_only=True):
    """A part of a message."""

    kind: Kind
    path: str
    type: str = ""
    """As the protocol calls it: `tool_use`, `image_url`, `reasoning`, …"""
    text: str | None = None
    """Of text and thinking; None if it is not a string."""
    id: str | None = None
    """Of a call or result: the id that pairs it; None if there is none."""
    has_empty_id: bool = False
    """Whether there is an empty id, in a protocol that reads it as none."""
    item_id: str | None = None
    """The separate id of an item (OpenAI Responses); of a message, on its first part."""
    name: str | None = None
    arguments: Any = None
    """Of a call: as written, a string or an object."""
    is_custom: bool = False
    """Whether it is a call or result of a free-text tool."""
    content: tuple[PartView, ...] = ()
    """Of a result: its parts; a plain string is one text item."""
    has_content: bool = True
    """False: a result whose content is missing or null."""
    is_error: bool | None = None
    """The error flag, if there is one."""
    media: str = ""
    """Of media: image, document, audio, video, file."""
    source: Literal["", "data", "url", "file"] = ""
    signature: str | None = None
    is_redacted: bool = False
    tool_change: Literal["", "referenced", "added", "removed"] = ""
    """How it changes which tools the model sees; `name` is the tool."""
    is_definition: bool = False
    """Whether a tool that is added is defined here."""
    extra_fields: tuple[str, ...] = ()
    """Fields that the protocol does not have here."""


class Message(Struct, frozen=True, kw_only=True):
    """One message, content or run of items that the protocol counts as one turn."""

    role: Role
    path: str
    items: tuple[PartView, ...] = ()
    has_content: bool = True
    """False: there is no content field, or it is null."""
    is_empty_string: bool = False
    has_settings: bool = False
    """It changes a setting of the request, and may have no content."""
    name: str | None = None
    is_prefill: bool = False
    """Whether it is marked as the start of the answer, if the protocol has such a mark."""
    fields: tuple[str, ...] = ()
    """The names of all its fields, where hosts of the protocol differ in them."""
    extra_fields: tuple[str, ...] = ()
    """Fields that the protocol does not have."""


class ToolView(Struct, frozen=True, kw_only=True):
    path: str
    name: str | None
    kind: Literal["function", "custom", "namespace", "server"] = "function"
    type: str = ""
    description: str | None = None
    schema: Any = None
    """As written; None if there is none."""
    schema_path: str = ""
    schema_field: str = ""
    strict: bool | None = None
    is_deferred: bool = False
    """Whether the model does not see it until it is loaded."""
    extra_fields: tuple[str, ...] = ()
    """Fields that the protocol does not have here."""
    members: tuple[ToolView, ...] = ()
    """Of a namespace: its tools."""


class ChoiceView(Struct, frozen=True, kw_only=True):
    path: str
    mode: Literal["auto", "none", "required", "named", "allowed", "other"]
    names: tuple[str, ...] = ()


class Setting(Struct, frozen=True):
    """A setting of a request and its path."""

    path: str
    value: Any


class MarkerView(Struct, frozen=True):
    """A cache marker."""

    path: str
    section: Section
    ttl: str | None = None
    """How long it asks for; None: it does not say."""


class View(Struct, kw_only=True):
    """A whole request."""

    system: Message | None = None
    """The system prompt, if it has a field of its own."""
    messages: tuple[Message, ...] = ()
    messages_path: str = "$.messages"
    tools: tuple[ToolView, ...] | None = None
    """None: there is no such field."""
    tools_path: str = "$.tools"
    later_tools: tuple[ToolView, ...] = ()
    """Tools that messages define, for what comes after them."""
    choice: ChoiceView | None = None
    parallel: Setting | None = None
    """Whether parallel calls are allowed, if the request sets it."""
    max_tokens: Setting | None = None
    max_tokens_field: str = ""
    seed_field: str = ""
    """The field with the seed, if hosts of the protocol differ in it."""
    sampling: dict[str, Setting] = {}
    """By canonical name: temperature, top_p, top_k, stop, seed, presence_penalty, frequency_penalty."""
    thinking_mode: Setting | None = None
    """off, on, adaptive, between_tools; other values as written."""
    thinking_switch: str = ""
    """The field that sets the mode, if hosts of the protocol differ in it."""
    effort: Setting | None = None
    budget: Setting | None = None
    summary: Setting | None = None
    """The setting for a summary of the thinking, if the protocol has one."""
    output: Setting | None = None
    """json or json_schema, if the request has structured output."""
    output_schema: ToolView | None = None
    """The schema of the output, if there is one, with its `strict`."""
    user: Setting | None = None
    cache_key: Setting | None = None
    """The key of a conversation for the prompt cache."""
    version: Setting | None = None
    """The version of the protocol, where a cloud that hosts it wants that in the body."""
    extra_fields: tuple[str, ...] = ()
    """Top-level fields that the protocol does not have."""
    fields: tuple[str, ...] = ()
    """Top-level fields that are set."""
    named_fields: tuple[str, ...] = ()
    """The names of all top-level fields, where hosts of the protocol differ in them."""
    signature_fields: tuple[str, ...] = ()
    """Paths of fields that may hold a signature of another host."""
    cache_markers: tuple[MarkerView, ...] = ()
    """The cache markers in the order of the prompt: tools, system prompt, messages."""
    shapes: tuple[MalformedPart, ...] = ()
    extra_paths: tuple[str, ...] = ()
    """Paths of unknown fields in parts that the view does not have."""
    keeps_items: bool = False
    """Whether the provider stores its replies, so that an item can be sent by its id alone."""
    is_continued: bool = False
    """Whether the server has stored earlier turns: a result may answer a call that is not in the request."""

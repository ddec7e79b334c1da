"""What a request body says, seen by the referee: one neutral picture for every protocol.

Each protocol has a reader (`read_<protocol>.py`) that draws this picture from the JSON as it is, with the path of
everything. Demands are checked on the picture (`checks_<group>.py`), so that a demand is checked in one way for all
protocols. The referee shares nothing with codecs and renderer: it must be able to find them wrong.

A reader never raises on a body: what has the wrong shape is a `MalformedPart` finding, and the rest is read as far as
it goes.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

Kind = Literal["text", "call", "result", "media", "thinking", "server", "other"]
Role = Literal["system", "developer", "user", "assistant", "tool"]


OLD_FORMS: Final = ("function_call", "function")
"""The types of the items in which the first Chat API wrote a call and a result: they have no id and are not paired."""


class MalformedPart(Struct, frozen=True):
    """A part of the body that is not of the form that the protocol has."""

    path: str
    message: str
    rule: str = ""
    """The id of a rule, where a profile has one for it."""


class PartView(Struct, frozen=True, kw_only=True):
    """A part of a message."""

    kind: Kind
    path: str
    type: str = ""
    """As the protocol calls it: `tool_use`, `image_url`, `reasoning`, …"""
    text: str | None = None
    """Of text and thinking; None where it is not a string."""
    id: str | None = None
    """Of a call or result: the id that pairs it; None where there is none."""
    has_empty_id: bool = False
    """There is an id that says nothing, where such a one is read as none."""
    item_id: str | None = None
    """The separate id of an item (OpenAI Responses); of a message, on its first part."""
    name: str | None = None
    arguments: Any = None
    """Of a call: as written, a string or an object."""
    is_custom: bool = False
    """A call or result of a free-text tool."""
    content: tuple[PartView, ...] = ()
    """Of a result: its parts; a plain string is one text item."""
    has_content: bool = True
    """False: a result whose content is missing or null."""
    is_error: bool | None = None
    """The error flag, where one is written."""
    media: str = ""
    """Of media: image, document, audio, video, file."""
    source: Literal["", "data", "url", "file"] = ""
    signature: str | None = None
    is_redacted: bool = False
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
    name: str | None = None
    is_prefill: bool = False
    """Marked as the start of the answer, where the protocol has such a mark."""
    extra_fields: tuple[str, ...] = ()
    """Fields that the protocol does not have."""


class ToolView(Struct, frozen=True, kw_only=True):
    path: str
    name: str | None
    kind: Literal["function", "custom", "namespace", "server"] = "function"
    type: str = ""
    description: str | None = None
    schema: Any = None
    """As written; None where there is none."""
    schema_path: str = ""
    schema_field: str = ""
    strict: bool | None = None
    extra_fields: tuple[str, ...] = ()
    """Fields that the protocol does not have here."""
    members: tuple[ToolView, ...] = ()
    """Of a namespace: its tools."""


class ChoiceView(Struct, frozen=True, kw_only=True):
    path: str
    mode: Literal["auto", "none", "required", "named", "allowed", "other"]
    names: tuple[str, ...] = ()


class Setting(Struct, frozen=True):
    """A number, a text or a switch of a request, and where it stands."""

    path: str
    value: Any


class View(Struct, kw_only=True):
    """A whole request."""

    system: Message | None = None
    """The system prompt that stands in a field of its own."""
    messages: tuple[Message, ...] = ()
    messages_path: str = "$.messages"
    tools: tuple[ToolView, ...] | None = None
    """None: there is no such field."""
    tools_path: str = "$.tools"
    choice: ChoiceView | None = None
    parallel: Setting | None = None
    """Whether several calls at once are allowed, where it is said."""
    max_tokens: Setting | None = None
    max_tokens_field: str = ""
    sampling: dict[str, Setting] = {}
    """By canonical name: temperature, top_p, top_k, stop, seed, presence_penalty, frequency_penalty."""
    thinking_mode: Setting | None = None
    """off, on, adaptive, between_tools; other values as written."""
    effort: Setting | None = None
    budget: Setting | None = None
    summary: Setting | None = None
    """Asks for a summary of the thinking, where the protocol has such a field."""
    output: Setting | None = None
    """json or json_schema, where structured output is asked for."""
    output_schema: ToolView | None = None
    """The schema of the output, where there is one, with the switch `strict` beside it."""
    user: Setting | None = None
    extra_fields: tuple[str, ...] = ()
    """Top-level fields that the protocol does not have."""
    fields: tuple[str, ...] = ()
    """Top-level fields that ask for something."""
    signature_fields: tuple[str, ...] = ()
    """Where fields stand that may hold a signature of another host's."""
    cache_markers: tuple[str, ...] = ()
    """Where cache markers stand."""
    shapes: tuple[MalformedPart, ...] = ()
    extra_paths: tuple[str, ...] = ()
    """Unknown fields deeper inside, where no part of this picture stands: whole paths."""
    keeps_items: bool = False
    """The provider keeps what it answered, so that an item can be sent by its id alone."""
    is_continued: bool = False
    """Turns before these are held by the server: a result may answer a call that is not in the request."""

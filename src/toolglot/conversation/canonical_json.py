"""The serialised conversation: a published, versioned form.

    {"format": "toolglot.conversation", "version": 2, "conversation": {…}}

`docs/conversation.schema.json` describes it; it is generated from the types of `values.py`. Unknown fields are refused,
so that nothing is lost silently, and so is a newer version. Version 1 had the codecs' notes in `extra` instead of
`form`; `load` reads it (`version_1.py`).

A history calls `validate` on values that a caller made by hand: every field must have its type, and every free JSON
value must be plain, finite and bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation.forms import Form, FormStruct, read_form, schema_definitions, schema_reference
from toolglot.conversation.values import (
    Conversation,
    Interaction,
    Role,
    SetAside,
    Status,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Turn,
    Value,
)
from toolglot.conversation.version_1 import upgrade
from toolglot.errors import InputError, VersionError, quote
from toolglot.jsontext import Change
from toolglot.limits import DEFAULT_LIMITS, MAX_DEPTH, MAX_NUMERIC_ID, Limits

FORMAT: Final = "toolglot.conversation"
VERSION: Final = 2

DOCUMENT_LIMITS: Final = Limits(max_nodes=20_000_000)
"""The default limits of `dump` and `load`, for a long conversation as a whole."""

ENVELOPE_DEPTH: Final = 20
"""How deep in a document a free value may be. Its own depth is limited to what the parser allows below that."""

MAX_NESTING: Final = 12
"""The maximum depth of canonical values inside each other."""

FREE_FIELDS: Final = frozenset(
    {"arguments", "executed_arguments", "extra", "format", "notes"} | {"parameters", "result", "schema", "value"}
)
"""Fields that hold arbitrary JSON; all others have a type of their own."""

V = TypeVar("V", bound=Value)


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """The outermost object of a serialised conversation."""

    format: Literal["toolglot.conversation"]
    version: Literal[2]
    conversation: Conversation


def dump(conversation: Conversation, *, limits: Limits | None = None) -> bytes:
    """A conversation as bytes that `load` gives back equal, under the same limits.

    conversation: the conversation to write.
    """
    limits = limits or DOCUMENT_LIMITS
    if not isinstance(conversation, Conversation):
        raise InputError(f"expected a Conversation, got {quote(conversation)}")
    plain, changes = _to_plain(conversation, limits)
    if changes:
        raise InputError(f"cannot be written as JSON: {changes[0].reason}", path=changes[0].path)
    data = msgspec.json.encode(Document(FORMAT, VERSION, _convert(plain, Conversation, "$")))
    jsontext.refuse_large(data, limits, "$")
    jsontext.refuse_many_values(data, limits, "$")
    return data


def load(data: bytes | str, *, limits: Limits | None = None) -> Conversation:
    """The conversation that `dump` wrote.

    data: what `dump` returned.
    limits: how large and how deep it may be.
    """
    document = jsontext.parse(data, limits=limits or DOCUMENT_LIMITS).value
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f'expected an object with "format": "{FORMAT}"', hint="load() reads what dump() wrote")
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise VersionError(
            f"written in version {version} of the form; this toolglot reads up to {VERSION}",
            path="$.version",
            hint="upgrade toolglot",
        )
    if type(version) is int and version == 1:
        return upgrade(_convert({**document, "version": VERSION}, Document, "$").conversation)
    return _convert(document, Document, "$").conversation


def schema() -> dict[str, Any]:
    """The JSON Schema of the serialised form."""
    described = msgspec.json.schema(Document, schema_hook=schema_reference)
    described["$defs"] |= schema_definitions()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}


def validate(value: V, *, limits: Limits = DEFAULT_LIMITS, path: str = "$") -> tuple[V, tuple[Change, ...]]:
    """Return the value with every field of its type, and the changes to its free JSON values.

    Circular and unserialisable parts of free values are replaced and listed. A field of the wrong type,
    or a value beyond the limits, is an error.
    """
    plain, changes = _to_plain(value, limits, path)
    return _convert(plain, type(value), path), changes


T = TypeVar("T")

_CLOSED: Final = {"role": get_args(Role), "status": get_args(Status)}
"""Fields whose few values an error lists."""


def _convert(plain: Any, kind: type[T], path: str) -> T:
    try:
        return msgspec.convert(plain, kind, dec_hook=read_form)
    except msgspec.ValidationError as error:
        message, _, where = str(error).replace("`NoneType`", "`null`").partition(" - at `")
        where = where.removesuffix("`").removeprefix("$")
        allowed = _CLOSED.get(where.rpartition(".")[2], ()) if "enum" in message else ()
        raise InputError(message, path=path + where, hint=f"one of {', '.join(allowed)}" if allowed else "") from None


def _to_plain(value: Value, limits: Limits, path: str = "$") -> tuple[Any, tuple[Change, ...]]:
    writer = _PlainWriter(limits)
    return writer.struct(value, path), tuple(writer.changes)


class _PlainWriter:
    """Structs to dictionaries, free values to plain JSON.

    Each turn, each interaction that a turn carries and each piece of metadata has a budget of its own, so
    that a conversation that was added turn by turn can be loaded again.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free_limits = replace(limits, max_depth=max(min(limits.max_depth, MAX_DEPTH) - ENVELOPE_DEPTH, 1))
        self._characters = 0
        self._nodes = 0
        self._nesting = 0
        self.changes: list[Change] = []

    def struct(self, value: Value, path: str) -> dict[str, Any]:
        if self._nesting == MAX_NESTING:
            raise InputError(f"a {type(value).__name__} is nested too deeply", path=path)
        spent = (self._characters, self._nodes)
        if isinstance(value, Turn | Interaction | ToolMetadata):
            self._characters = self._nodes = 0
        self._nesting += 1
        self._count(1, 0, path)
        config = value.__struct_config__
        plain: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
        for field in value.__struct_fields__:
            plain[field] = self._field(value, field, getattr(value, field), f"{path}.{field}")
        self._nesting -= 1
        if isinstance(value, Turn | Interaction | ToolMetadata):
            self._characters, self._nodes = spent
        return plain

    def _count(self, nodes: int, characters: int, path: str) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > self._limits.max_nodes:
            raise jsontext.limit_error("max_nodes", self._limits.max_nodes, path)
        if self._characters > self._limits.max_bytes:
            raise jsontext.limit_error("max_bytes", self._limits.max_bytes, path)

    def _field(self, owner: Value, field: str, content: Any, path: str) -> Any:
        if isinstance(content, ToolResult) and isinstance(owner, Interaction | SetAside):
            return self.struct(content, path)
        if isinstance(content, Form):
            return self._form(content, path)
        if field in FREE_FIELDS and not isinstance(content, str):
            return self._free(field, content, path)
        if isinstance(content, tuple | list):
            return [self._item(item, f"{path}[{index}]") for index, item in enumerate(content)]
        if _is_id(owner, field) and (content is None or (type(content) is int and abs(content) <= MAX_NUMERIC_ID)):
            self.changes.append(Change(path, "an id that was not a string was written as one"))
            return "" if content is None else str(content)
        if isinstance(content, str) and (_is_id(owner, field) or field == "raw_id"):
            return self._text(content, path, jsontext.fix_surrogates_in_id)
        return self._item(content, path)

    def _form(self, form: Form, path: str) -> Any:
        if not isinstance(form, FormStruct):
            raise InputError(f"expected a form, got {quote(form)}", path=path)
        config = form.__struct_config__
        plain: dict[str, Any] = {str(config.tag_field): config.tag}
        for field in form.__struct_fields__:
            plain[field] = self._free("value", getattr(form, field), f"{path}.{field}")
        return plain

    def _item(self, content: Any, path: str) -> Any:
        """A part that has a type of its own. A value of another type is left to the type check, which refuses it."""
        if isinstance(content, Value):
            return self.struct(content, path)
        if isinstance(content, str):
            return self._text(content, path)
        if isinstance(content, dict | list | tuple):
            for change in jsontext.clone(content, limits=self._limits, path=path).changes:
                raise InputError(change.reason, path=change.path)
        return content

    def _text(self, content: str, path: str, fix: Callable[[str], str] = jsontext.fix_surrogates) -> str:
        plain = content if type(content) is str else str.__str__(content)
        self._count(0, len(plain), path)
        fixed = fix(plain)
        if fixed is not plain:
            self.changes.append(Change(path, "half surrogate pairs became U+FFFD"))
        return fixed

    def _free(self, field: str, content: Any, path: str) -> Any:
        is_object = isinstance(content, dict) or content is None
        if isinstance(content, Value) or not (is_object or field in ("result", "value")):
            raise InputError(
                f"expected {'JSON' if field in ('result', 'value') else 'an object'}, got {quote(content)}", path=path
            )
        cloned = jsontext.clone(content, limits=self._free_limits, path=path)
        self._count(cloned.nodes, cloned.characters, path)
        self.changes.extend(cloned.changes)
        return msgspec.to_builtins(cloned.value)  # a copy, so that the caller cannot change it through the original


def _is_id(owner: Value, field: str) -> bool:
    return (isinstance(owner, ToolCall) and field == "id") or (isinstance(owner, ToolResult) and field == "call_id")

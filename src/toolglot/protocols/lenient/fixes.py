"""Fixes that several protocols share, for bodies that a strict reading or the provider refuses although it is plain
what they mean: ids that are null or numbers, arguments of the wrong type, a lone block instead of a list (B7, F3, A6).

What a protocol's own bodies need is in `lenient.py` of its folder, as a `Leniency`. Each fix is listed with its path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from toolglot.conversation import RAW_ARGUMENTS, Conversation, Turn
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields

Fixes = list[tuple[str, str]]
"""Paths, and what was fixed there."""


BESIDE_CONTENT: Final = ("tool_calls", "function_call", "reasoning_content")
"""What stands beside the content of a Chat message."""
MESSAGE_FIELDS: Final = frozenset(
    {*BESIDE_CONTENT, "content", "parts", "tool_call_id", "call_id", "output", "arguments"}
)
"""Fields that a message of another form has; left over, they say that it was not understood."""


class CallForm(NamedTuple):
    """How a protocol writes a call: the field of its arguments, and their type."""

    arguments: str
    type: type


TEXT_FORM: Final = CallForm("arguments", str)
ReplyCalls = Iterator[tuple[str, Fields, CallForm]]
"""The calls of a reply: their paths, their fields and how they are written."""


def _lacks_content(turn: Turn) -> bool:
    return turn.role != "assistant"


def _is_within_limits(_conversation: Conversation, _extras: int) -> bool:
    return True


class Leniency(Struct, frozen=True, kw_only=True):
    """How malformed bodies of one protocol are read."""

    fix_request: Callable[[Fields, Fixes], None] | None = None
    """Fixes a request in place."""
    fix_reply: Callable[[Fields, Fixes], ReplyCalls] | None = None
    """Fixes a reply in place, and yields its calls, whose names and arguments are fixed for all protocols alike."""
    optional_reply_fields: tuple[tuple[str, str], ...] = ()
    """Fields of every reply that its codec does not demand, since many hosts leave them out, and what they name."""
    lacks_content: Callable[[Turn], bool] = _lacks_content
    """Whether a turn without blocks lacks what its message must have."""
    has_foreign_parts: Callable[[Turn], bool] | None = None
    """Whether a turn that was decoded holds something that its protocol writes otherwise, besides unknown fields."""
    modernise: Callable[[Conversation, Profile, Profile], tuple[Conversation, list[str]]] | None = None
    """Replaces old forms in a request of the first profile's client that the second's target does not accept; returns
    what was done, too."""
    is_within_limits: Callable[[Conversation, int], bool] = _is_within_limits
    """Whether a request that was decoded has no more of something than the provider accepts. The number is that of the
    blocks that hold more than their canonical fields."""


# --- requests and replies ---------------------------------------------------------------------------


def objects_of(value: Any, path: str) -> Iterator[tuple[str, Fields]]:
    for index, member in enumerate(value if isinstance(value, list) else ()):
        if isinstance(member, dict):
            yield f"{path}[{index}]", member


def fix_id(fields: Fields, key: str, path: str, fixes: Fixes) -> None:
    id = fields.get(key)
    if isinstance(id, str):
        return
    is_number = isinstance(id, int) and not isinstance(id, bool)
    fields[key] = str(id) if is_number else ""
    fixes.append((f"{path}.{key}", "an id that is a number was read as a string" if is_number else "an id is missing"))


def fix_name(fields: Fields, path: str, fixes: Fixes) -> None:
    if not isinstance(fields.get("name"), str):
        fields["name"] = ""
        fixes.append((f"{path}.name", "a name is missing"))


def fix_object(fields: Fields, key: str, path: str, fixes: Fixes) -> None:
    """Make arguments an object."""
    value = fields.get(key)
    if isinstance(value, dict):
        return
    fields[key] = argument_object(value)
    fixes.append((f"{path}.{key}", "arguments that are not an object were made one"))


def argument_object(value: Any) -> Fields:
    """Arguments as an object: parsed if they are a JSON object, else kept as raw text."""
    if value in (None, "", []):
        return {}
    if isinstance(value, str):
        try:
            parsed = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return {RAW_ARGUMENTS: value}
        return parsed if isinstance(parsed, dict) else {RAW_ARGUMENTS: value}
    return {RAW_ARGUMENTS: value}


def fix_text(fields: Fields, key: str, path: str, fixes: Fixes) -> None:
    """Make arguments a string."""
    value = fields.get(key)
    if isinstance(value, str):
        return
    fields[key] = "" if value is None else msgspec.json.encode(value).decode()
    fixes.append((f"{path}.{key}", "arguments that are not a string were written as one"))


def fix_call(call: Fields, path: str, fixes: Fixes) -> None:
    """A call that says its name and arguments itself, as agents write it, where it should hold a function."""
    if isinstance(call.get("function"), dict) or not isinstance(call.get("name"), str):
        return
    if call.get("type") == "custom":
        return
    value: Any = next((call[key] for key in ("arguments", "args", "input") if key in call), {})
    written = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    call["function"] = {"name": call["name"], "arguments": written}
    for key in ("name", "arguments", "args", "input", "type"):
        call.pop(key, None)
    call["type"] = "function"
    fixes.append((path, "a call without a function of its own was read as one"))


def fix_content(fields: Fields, path: str, fixes: Fixes) -> None:
    """Content of a message that is null, or one block where a list belongs."""
    content = fields.get("content")
    if content is None:
        fields["content"] = ""
        fixes.append((f"{path}.content", "content that is missing was read as empty"))
    elif isinstance(content, dict) and isinstance(content.get("type"), str):
        fields["content"] = [content]
        fixes.append((f"{path}.content", "a lone block was read as a list of one"))


def fix_result(fields: Fields, path: str, fixes: Fixes) -> None:
    """Content of a result, which is whatever a tool gave."""
    content = fields.get("content")
    if content is not None and not isinstance(content, str | list):
        fields["content"] = msgspec.json.encode(content).decode()
        fixes.append((f"{path}.content", "a tool's value that is not a string was written as one"))


def drop_empty_parts(fields: Fields, key: str, path: str, fixes: Fixes) -> None:
    """A list of parts without those that hold nothing."""
    parts = fields.get(key)
    if isinstance(parts, list) and {} in parts:
        fields[key] = [part for part in parts if part != {}]
        fixes.append((f"{path}.{key}", "empty parts were left out"))


# --- replies ------------------------------------------------------------------------------------------


def set_field(fields: Fields, key: str, value: Any, path: str, reason: str, fixes: Fixes) -> None:
    fields[key] = value
    fixes.append((f"{path}.{key}", reason))


def fix_role(message: Fields, path: str, fixes: Fixes) -> None:
    if message.get("role") != "assistant":
        reason = "a reply without a role was read as the assistant's"
        set_field(message, "role", "assistant", path, reason, fixes)


def fix_reply_id(body: Fields, prefix: str, fixes: Fixes) -> None:
    """An answer without an id gets one that is made of what it says: the same for the same answer."""
    if not isinstance(body.get("id"), str):
        made = prefix + hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()[:24]
        set_field(body, "id", made, "$", f"the reply has no id; the client gets {made!r}", fixes)


def fix_model(body: Fields, fixes: Fixes) -> None:
    if not isinstance(body.get("model"), str):
        set_field(body, "model", "", "$", "the reply does not name its model", fixes)


def fix_reason(fields: Fields, key: str, path: str, fixes: Fixes) -> None:
    if fields.get(key) is not None and not isinstance(fields[key], str):
        del fields[key]
        fixes.append((f"{path}.{key}", "a finish reason that is not a string was left out"))


def fix_counts(holder: Fields, key: str, path: str, fixes: Fixes) -> None:
    """Fix token counts: numbers like 3.0 and numeric strings are read as integers."""
    counts: Any = holder.get(key)
    if counts is None:
        return
    if not isinstance(counts, dict):
        set_field(holder, key, None, path, "token counts that are not an object were left out", fixes)
        return
    for name, value in counts.items():
        if isinstance(value, dict):
            fix_counts(counts, name, f"{path}.{key}", fixes)
        elif isinstance(value, float) and value.is_integer():
            set_field(
                counts, name, int(value), f"{path}.{key}", "a count with a fraction was read as an integer", fixes
            )
        elif isinstance(value, str) and len(value) < 16 and value.isascii() and value.isdigit():
            set_field(counts, name, int(value), f"{path}.{key}", "a count that is a string was read as a number", fixes)


def fix_list(holder: Fields, key: str, path: str, fixes: Fixes) -> None:
    """A list: one object where a list belongs is a list of one, and null is none."""
    if key not in holder:
        return
    value: Any = holder[key]
    if isinstance(value, dict):
        set_field(holder, key, [value], path, "a lone object was read as a list of one", fixes)
    elif value is None:
        set_field(holder, key, [], path, "null instead of a list was read as an empty one", fixes)
    elif isinstance(value, list) and None in value:
        set_field(holder, key, [member for member in value if member is not None], path, "nulls were left out", fixes)


def fix_type(fields: Fields, types: tuple[tuple[str, str], ...], path: str, fixes: Fixes) -> None:
    """The type of a block that does not say it, by the first of some fields that only such a block has."""
    if fields.get("type") is None:
        kind = next((kind for key, kind in types if key in fields), None)
        if kind is not None:
            set_field(fields, "type", kind, path, f"a part without a type was read as {kind}", fixes)


def listed_calls(message: Fields, path: str, fixes: Fixes, *, needs_id: bool, form: CallForm = TEXT_FORM) -> ReplyCalls:
    if isinstance(message.get("tool_calls"), dict):
        fix_list(message, "tool_calls", path, fixes)
    for call_path, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
        fix_call(call, call_path, fixes)
        if needs_id or not isinstance(call.get("id"), str | None):
            fix_id(call, "id", call_path, fixes)
        function = call.get("function")
        if isinstance(function, dict):
            yield f"{call_path}.function", function, form

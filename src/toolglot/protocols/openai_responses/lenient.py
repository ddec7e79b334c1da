"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Block, Text, ToolCall, Turn
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    MESSAGE_FIELDS,
    TEXT_FORM,
    Fixes,
    Leniency,
    ReplyCalls,
    fix_content,
    fix_counts,
    fix_id,
    fix_list,
    fix_model,
    fix_name,
    fix_reason,
    fix_reply_id,
    fix_role,
    fix_text,
    fix_type,
    objects_of,
    set_field,
)
from toolglot.protocols.openai_responses.client_tools import BY_TYPE
from toolglot.protocols.openai_responses.form import PROTOCOL, call_form, has_type_of_other_side, message_fields

_ITEM_IDS: Final = {"function_call": "fc", "custom_tool_call": "ctc", "message": "msg"}
"""How the ids of items begin that are calls or messages."""


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, tool in objects_of(body.get("tools"), "$.tools"):
        _lift_function(tool, path, "a tool", fixes)
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        _lift_function(choice, "$.tool_choice", "a choice of a tool", fixes)
    items = body.get("input")
    if isinstance(items, list) and any(map(_says_nothing, items)):
        body["input"] = [item for item in items if not _says_nothing(item)]
        fixes.append(("$.input", "empty messages of the assistant were left out"))
    for path, item in objects_of(body.get("input"), "$.input"):
        kind = item.get("type")
        if kind in (None, "message") and isinstance(item.get("role"), str):
            _drop_foreign_item_id(item, path, fixes)
            fix_content(item, path, fixes)
            _fix_text_type(item, path, fixes)
        if kind in ("function_call", "custom_tool_call"):
            _drop_foreign_item_id(item, path, fixes)
            if item.get("call_id") is not None or not isinstance(item.get("id"), str):
                fix_id(item, "call_id", path, fixes)
            fix_name(item, path, fixes)
            if kind == "function_call" and item.get("arguments") is None:
                item["arguments"] = "{}"
                fixes.append((f"{path}.arguments", "a call without arguments was given none"))
            fix_text(item, "arguments" if kind == "function_call" else "input", path, fixes)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            fix_id(item, "call_id", path, fixes)
            if item.get("output") is not None and not isinstance(item["output"], str | list):
                fix_text(item, "output", path, fixes)


def _lift_function(fields: Fields, path: str, what: str, fixes: Fixes) -> None:
    """A tool, or the choice of one, that holds a `function` as Chat writes it, where the protocol has its fields."""
    function = fields.get("function")
    if fields.get("type") != "function" or "name" in fields or not isinstance(function, dict):
        return
    del fields["function"]
    for key, value in function.items():
        fields.setdefault(key, value)
    fixes.append((f"{path}.function", f"{what} in the form of Chat was read as one"))


def _fix_text_type(message: Fields, path: str, fixes: Fixes) -> None:
    """Texts of the assistant are an output's, those of everybody else an input's."""
    strange, own = "input_text", "output_text"
    if message["role"] != "assistant":
        strange, own = own, strange
    for part_path, part in objects_of(message.get("content"), f"{path}.content"):
        if part.get("type") == strange:
            part["type"] = own
            fixes.append((f"{part_path}.type", f"a text of the {message['role'][:40]} was read as {own}"))


def _drop_foreign_item_id(item: Fields, path: str, fixes: Fixes) -> None:
    """A call or message without the id of its item, where that is another kind of id (B5). It may be absent."""
    id, kind = item.get("id"), item.get("type") or "message"
    has_other = kind == "message" or isinstance(item.get("call_id"), str)
    if isinstance(id, str) and has_other and not id.startswith(_ITEM_IDS[kind]):
        del item["id"]
        fixes.append((f"{path}.id", f"the item's id {id[:80]!r} is of another kind; it was left out"))


def _says_nothing(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "assistant" and item.get("content") == []


_ITEM_TYPES: Final = (
    ("arguments", "function_call"),
    ("input", "custom_tool_call"),
    ("summary", "reasoning"),
    ("encrypted_content", "reasoning"),
    ("content", "message"),
)


_PART_TYPES: Final = (("text", "output_text"), ("refusal", "refusal"))


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    fix_reply_id(body, "resp_", fixes)
    fix_model(body, fixes)
    fix_reason(body, "status", "$", fixes)
    fix_counts(body, "usage", "$", fixes)
    fix_list(body, "output", "$", fixes)
    for path, item in objects_of(body.get("output"), "$.output"):
        fix_type(item, _ITEM_TYPES, path, fixes)
        kind = item.get("type")
        if kind == "message":
            fix_role(item, path, fixes)
            if not isinstance(item.get("content"), str):
                fix_list(item, "content", path, fixes)
            for part_path, part in objects_of(item.get("content"), f"{path}.content"):
                fix_type(part, _PART_TYPES, part_path, fixes)
        elif kind == "function_call":
            if not isinstance(item.get("id"), str):
                fix_id(item, "call_id", path, fixes)
            if item.get("arguments") is None:
                set_field(item, "arguments", "", path, "a call without arguments was given none", fixes)
            yield path, item, TEXT_FORM


def _has_foreign_parts(turn: Turn) -> bool:
    if turn.extra is not None and _has_foreign_id(turn.extra.get(PROTOCOL)):
        return True
    return any(_is_misnamed(block) for block in turn.blocks)


def _has_foreign_id(message: Mapping[str, Any] | None) -> bool:
    """Whether a message has an id of another kind of item."""
    id = message.get("id") if message else None
    return type(id) is str and not id.startswith(_ITEM_IDS["message"])


def _is_misnamed(block: Block) -> bool:
    """Whether a text is of the other side's type or keeps fields of another form, or the item of a call has an id of
    another kind."""
    if type(block) is Text:
        fields = message_fields(block)
        return has_type_of_other_side(block) or _has_foreign_id(fields) or not MESSAGE_FIELDS.isdisjoint(fields)
    if type(block) is not ToolCall or block.extra is None or call_form(block).has_item_id_only:
        return False
    id = block.extra.get(PROTOCOL, {}).get("id")
    prefix = _ITEM_IDS["custom_tool_call" if block.type == "custom" else "function_call"]
    return type(id) is str and not id.startswith(prefix) and block.type not in BY_TYPE


LENIENCY: Final = Leniency(
    fix_request=_fix_request,
    fix_reply=_fix_reply,
    lacks_content=lambda _turn: False,
    has_foreign_parts=_has_foreign_parts,
)

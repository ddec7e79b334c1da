"""Messages that are written as another protocol writes them, in whole or in part (B6).

Proxies and agents that speak several protocols write a call as a `tool_use` block and as one of `tool_calls`, hand a
result back in the form of the provider that they used before, or keep a turn of Gemini's between those of Chat. Each
piece is read by the codec of the protocol that it is written in, and a message stays one turn; a call that stands there
twice is one.

Only a body that its own codec refused, or that has something of the kind left over, comes here, so that a body in
order costs a glance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Conversation,
    Opaque,
    Role,
    ServerTool,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from toolglot.protocols.base import Protocol, get, names, records
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import BESIDE_CONTENT, MESSAGE_FIELDS, Fixes
from toolglot.protocols.openai_chat.legacy_functions import with_tools_for_functions

PROMPTS: Final = ("system", "developer")
Decode = Callable[[str, Fields], tuple[Conversation, Fixes]]
"""Reads a body of a protocol, and lists what had to be fixed in it."""
Piece = tuple[str, Fields]
"""A protocol, and a message in its form."""

_CHAT: Final = "openai_chat"
"""The protocol whose messages and results agents mix into those of others."""
_CONTENT: Final = "content"
_PLACE: Final = re.compile(r"\$\.\w+\[(\d+)\]")
_MEANINGS: Final[dict[str, Role]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
}
"""The roles of all protocols, and the names that agents have for them."""
_RESULT_PARTS: Final = frozenset({"toolResult", "functionResponse", "function_response"})
_PLAIN: Final = frozenset({Text, ToolCall})
"""Blocks that hold nothing of another protocol's apart from their unknown fields."""
_KINDS: Final = frozenset({"function", "type", "message", ""})
"""Kinds of a part that no protocol has, and that are written for one."""


def has_mixed_forms(conversation: Conversation, protocol: str) -> bool:
    """Whether something was left over that may be another protocol's, or that the body's own does not take."""
    record = get(protocol)
    leniency, keeps_fields = record.codec.leniency, record.messages.text_keeps_fields
    has_foreign_parts = leniency.has_foreign_parts
    extras = 0
    for turn in conversation.turns:
        blocks = turn.blocks
        if turn.extra is not None and _has_frame(turn.extra.get(protocol)):
            return True
        if not blocks and leniency.lacks_content(turn):
            return True
        if has_foreign_parts is not None and has_foreign_parts(turn):
            return True
        for block in blocks:
            if block.extra is not None:
                extras += 1
                if keeps_fields and _has_stray_type(block, protocol):
                    return True
            if type(block) in _PLAIN or (type(block) is ToolResult and type(block.content) is str):
                continue
            inside = _count_extras(block)
            if inside < 0:
                return True
            extras += inside
    return not leniency.is_within_limits(conversation, extras)


def _has_frame(own: Fields | None) -> bool:
    """Whether a field is left over that a message of another form has; null says nothing."""
    if not own or MESSAGE_FIELDS.isdisjoint(own):
        return False
    return any(own.get(field) is not None for field in MESSAGE_FIELDS)


def _count_extras(block: Block) -> int:
    """How many values of a block hold more than their canonical fields, apart from the block's own; less than 0 if one
    may be another protocol's."""
    if type(block) is ServerTool:
        return 1
    if type(block) is Opaque:
        return -1 if _may_be_elsewheres(block) else 1
    if type(block) is not ToolResult or type(block.content) is not tuple:
        return 0
    extras = 0
    for part in block.content:
        inside = _count_extras(part) if type(part) is not Text else 0
        if inside < 0:
            return -1
        extras += inside + (part.extra is not None)
    return extras


def _may_be_elsewheres(block: Opaque) -> bool:
    if block.kind == "message" and block.value.get("content") == []:
        return False  # a message without parts has the same form everywhere
    return block.kind in _part_kinds(names()) or "function" in block.value or "name" in block.value


def _has_stray_type(block: Block, protocol: str) -> bool:
    """Whether a text keeps the type of a part of another form."""
    return type(block) is Text and block.extra is not None and "type" in block.extra.get(protocol, {})


def read_mixed(body: Fields, protocol: str, decode: Decode) -> tuple[Conversation, Fixes] | None:
    """The conversation, and what was read as what; None where every message is of the body's own form."""
    key = get(protocol).turns
    messages = body.get(key)
    if not isinstance(messages, list):
        return None
    fixes: Fixes = []
    split = [list(_pieces(message, protocol, f"$.{key}[{index}]", fixes)) for index, message in enumerate(messages)]
    if not fixes:
        return None

    def read(form: str, messages: list[Fields], numbers: list[int]) -> tuple[Turn, ...]:
        found, more = decode(form, {get(form).turns: messages})
        fixes.extend((_in_body(path, key, numbers), reason) for path, reason in more)
        return found.turns

    head, more = decode(protocol, {**body, key: []})
    fixes += more
    turns = list(head.turns)
    own: list[Fields] = []
    numbers: list[int] = []
    for index, pieces in enumerate(split):
        if len(pieces) == 1 and pieces[0][0] == protocol:
            own.append(pieces[0][1])  # together, since some protocols write a turn as several
            numbers.append(index)
            continue
        turns += read(protocol, own, numbers)
        own, numbers = [], []
        read_pieces = [turn for form, piece in pieces for turn in read(form, [piece], [index])]
        turns += _joined(read_pieces, _role_of(messages[index]), f"$.{key}[{index}]", fixes)
    turns += read(protocol, own, numbers)
    conversation = replace(head, turns=tuple(turns))
    return conversation if protocol == _CHAT else with_tools_for_functions(conversation), fixes


def _in_body(path: str, key: str, numbers: list[int]) -> str:
    """The paths of fixes of some messages, in the whole body."""
    found = _PLACE.match(path)
    return f"$.{key}[{numbers[int(found[1])]}]{path[found.end() :]}" if found is not None else path


def _joined(turns: list[Turn], role: Role | None, path: str, fixes: Fixes) -> list[Turn]:
    """The pieces of one message as one turn."""
    turns = turns if role not in PROMPTS else [replace(turn, role=role) for turn in turns]
    if len(turns) < 2:
        return turns
    blocks: list[Block] = []
    known: set[str] = set()
    for turn in turns:
        for block in turn.blocks:
            if type(block) is ToolCall and block.id in known:
                fixes.append((path, f"the call {block.id[:80]!r} stood in the content too; it is one call"))
                names = [name for fields in (block.extra or {}).values() for name in fields]
                fixes += [(path, f"{name[:80]} of the call that is left out is left out with it") for name in names]
            else:
                blocks.append(block)
        known.update(call.id for call in turn.calls if call.id)
    return [replace(turns[0], blocks=tuple(blocks), extra=None, form=None)]


# --- the protocol of a message ----------------------------------------------------------------------


def _pieces(message: Any, own: str, path: str, fixes: Fixes) -> Iterator[Piece]:
    """A message as pieces of one form each. `fixes` grows where it is not as its protocol writes it."""
    if not isinstance(message, dict):
        yield own, message
        return
    items = _protocol_of_item(message)
    if items is not None:
        if own != items:
            fixes.append((path, f"an item {message['type']!r} of {items} was read as one"))
        yield items, message
        return
    role = _role_of(message)
    if role is None:
        yield own, message
        return
    parts = None if isinstance(message.get("content"), str | list) else _protocol_of_parts(message)
    if parts is not None:
        yield _of_parts(message, role, parts, own, path, fixes)
        return
    if role == "tool" and _holds_results(message.get("content")):
        fixes.append((f"{path}.role", "results that are parts of a message were read as a user's"))
        message, role = {**message, "role": "user"}, "user"
    if role == "tool" and not _is_own_result(message, own):
        yield _of_chat_result(message, own, path, fixes)
        return
    yield from _of_message(message, role, own, path, fixes)


def _protocol_of_item(message: Fields) -> str | None:
    """The protocol whose list of messages holds such an item; None for a message."""
    kind = message.get("type")
    if not isinstance(kind, str) or "content" in message:
        return None
    return _item_types(names()).get(kind)


@cache
def _item_types(known: tuple[str, ...]) -> dict[str, str]:
    return {kind: name for name in known for kind in get(name).messages.item_types}


def _protocol_of_parts(message: Fields) -> str | None:
    """The protocol whose content is in another field than `content`, if this message has that field."""
    for field, protocol in _content_fields(names()).items():
        if isinstance(message.get(field), list | dict):
            return protocol
    return None


@cache
def _content_fields(known: tuple[str, ...]) -> dict[str, str]:
    fields = {get(name).messages.content_field: name for name in known}
    return {field: name for field, name in fields.items() if field != _CONTENT}


def _role_of(message: Fields) -> Role | None:
    """Who speaks: by what a message holds that only one side can say, otherwise by its role."""
    if isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
        return "assistant"
    if isinstance(message.get("tool_call_id"), str):
        return "tool"
    role = message.get("role")
    return _MEANINGS.get(role.lower()) if isinstance(role, str) else None


def _of_parts(message: Fields, role: Role, form: str, own: str, path: str, fixes: Fixes) -> Piece:
    if own != form:
        fixes.append((path, f"a message in the form of {form} was read as one"))
    elif _has_role_of(message, own):
        return own, message
    else:
        _report_role(message, role, path, fixes)
    return form, _with_parts(form, role, message[get(form).messages.content_field])


def _of_chat_result(message: Fields, own: str, path: str, fixes: Fixes) -> Piece:
    """A message of Chat's that is the result of a call."""
    is_legacy = message.get("role") == "function" and isinstance(message.get("name"), str)
    if own == _CHAT and is_legacy and "tool_call_id" not in message:
        return own, message
    if (
        get(own).messages.content_field != _CONTENT
        and message.keys().isdisjoint(_content_fields(names()))
        and _CONTENT not in message
    ):
        return own, message
    fixes.append((path, "a message that is the result of a call was read as one"))
    content = message.get("content")
    if isinstance(content, list):
        content = [_as_chat_part(part) for part in content]
    is_own = own == _CHAT or (get(own).messages.has_call_list and "name" not in message)
    return own if is_own else _CHAT, {**message, "role": "tool", "content": content}


def _is_own_result(message: Fields, own: str) -> bool:
    """Whether a tool's message is as its protocol writes it."""
    if not get(own).messages.has_call_list or message.get("role") != "tool":
        return False
    content = message.get("content")
    return not isinstance(content, list) or all(_form_of(part, own) == own for part in content)


def _as_chat_part(part: Any) -> Any:
    """Words and images in Chat's form; any other part as it is."""
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    source, address = part.get("source"), part.get("image_url")
    if part.get("type") == "image" and isinstance(source, dict):
        if isinstance(source.get("data"), str):
            address = f"data:{source.get('media_type') or 'image/png'};base64,{source['data']}"
        elif isinstance(source.get("url"), str):
            address = source["url"]
    return {"type": "image_url", "image_url": {"url": address}} if isinstance(address, str) else part


def _holds_results(content: Any) -> bool:
    """Whether parts of content are results, which in a tool's message are its text."""
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else ()
    return any(part.get("type") == "tool_result" or not _RESULT_PARTS.isdisjoint(part) for part in parts)


def _of_message(message: Fields, role: Role, own: str, path: str, fixes: Fixes) -> Iterator[Piece]:
    content = message.get("content")
    runs = list(_runs(content, own)) if isinstance(content, list) else []
    beside = {key: message[key] for key in _beside(own) if message.get(key) is not None}
    has_own_role = _has_role_of(message, own)
    if has_own_role and not beside and _is_own_content(message, runs, own):
        yield own, message
        return
    if not has_own_role:
        _report_role(message, role, path, fixes)
    rest = {key: value for key, value in message.items() if key not in ("content", *beside)}
    if not runs:
        form = own if not get(own).messages.content_is_list and role in get(own).messages.roles else _CHAT
        if form != own or content == []:
            fixes.append((f"{path}.content", "content was read as the text that it is"))
        yield form, {**(rest if form == own else {}), "role": role, "content": content or ""}
    for form, parts in runs:
        if form != own:
            fixes.append((f"{path}.content", f"parts of the form of {form} were read as such"))
        yield form, _with_parts(form, role, parts)
    if get(own).messages.has_call_list and runs:
        yield own, {**rest, "role": role, "content": None}
    if beside:
        fixes.append((path, "what stands beside the content of a Chat message was read as such"))
        if any(beside.values()):
            yield _CHAT, {"role": "assistant", "content": None, **beside}


def _beside(own: str) -> tuple[str, ...]:
    """The fields of a Chat message that a message of this protocol does not have."""
    return () if own == _CHAT else BESIDE_CONTENT[1:] if get(own).messages.has_call_list else BESIDE_CONTENT


def _is_own_content(message: Fields, runs: list[tuple[str, list[Any]]], own: str) -> bool:
    form = get(own).messages
    if form.content_field != _CONTENT:
        return _CONTENT not in message
    if isinstance(message.get("content"), list):
        return all(run == own for run, _ in runs) and (bool(runs) or not form.content_is_string)
    return not form.content_is_list


def _has_role_of(message: Fields, own: str) -> bool:
    role = message.get("role")
    return isinstance(role, str) and role in get(own).messages.roles


def _report_role(message: Fields, role: Role, path: str, fixes: Fixes) -> None:
    fixes.append((f"{path}.role", f"the role {str(message.get('role'))[:40]!r} was read as {role}"))


def _with_parts(form: str, role: Role, parts: Any) -> Fields:
    """A message with these parts, as a protocol writes it."""
    written = get(form).messages
    message: Fields = {"role": written.role_names.get(role, role), written.content_field: parts}
    return {"type": written.message_type, **message} if written.message_type else message


def _runs(parts: list[Any], own: str) -> Iterator[tuple[str, list[Any]]]:
    """Content by the form of its parts: each form, and the parts in a row that have it."""
    run: list[Any] = []
    last = own
    for part in parts:
        form = _form_of(part, own)
        if run and form != last:
            yield last, run
            run = []
        last = form
        run.append(part)
    if run:
        yield last, run


def _form_of(part: Any, own: str) -> str:
    if not isinstance(part, dict):
        return own
    kind = part.get("type")
    if not isinstance(kind, str):
        if get(own).messages.part_fields.isdisjoint(part):
            return next((other.name for other in records() if not other.messages.part_fields.isdisjoint(part)), own)
        return own
    if kind in get(own).messages.part_types and not _is_thought_elsewhere(part, own):
        return own
    return next((other.name for other in _by_part_rank(names()) if kind in other.messages.part_types), own)


@cache
def _by_part_rank(known: tuple[str, ...]) -> tuple[Protocol, ...]:
    return tuple(sorted(map(get, known), key=lambda protocol: protocol.messages.part_rank))


@cache
def _part_kinds(known: tuple[str, ...]) -> frozenset[str]:
    """What a part of any protocol may be."""
    forms = [get(name).messages for name in known]
    return frozenset[str]().union(*(form.part_types | form.part_fields for form in forms)) | _KINDS


def _is_thought_elsewhere(part: Fields, own: str) -> bool:
    """Mistral's thinking, which is Chat's, is a list of parts; Anthropic's is a text."""
    return get(own).messages.thinking_is_list and part["type"] == "thinking" and isinstance(part.get("thinking"), str)

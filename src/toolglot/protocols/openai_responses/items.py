"""Items of the OpenAI Responses protocol, both ways. Requests (`input`) and replies (`output`) share them.

Items of the model's side (its messages, reasoning, calls, and the tools that the provider ran) become
blocks; a run of them is one assistant turn. Notes on the blocks keep where one item ended: the first block
of an assistant message carries the message's own fields (`~message`), those after it are `~joined`.
Every other item is a turn of its own.

What another model thought is shown as a summary; what it said, as plain text where a request asks for that.

Calls and outputs pair by `call_id` only. The item's own `id` is another thing (B5): it stays in `extra`,
returns to this protocol, and is never invented.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from toolglot.conversation import (
    FREE_TEXT,
    Block,
    Extra,
    Media,
    Opaque,
    Role,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.failed_result import text_of, told_content
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    note,
    noted,
    one_of,
    optional,
    own_value,
    required,
    restored,
)
from toolglot.protocols.openai_responses.parts import INPUT, OUTPUT, PROTOCOL, Part, is_part, read_content, write_part

_MESSAGE = frozenset({"type", "role", "content"})
_REASONING = frozenset({"type", "id", "encrypted_content"})
_FUNCTION_CALL = frozenset({"type", "call_id", "name", "arguments", "namespace"})
_CUSTOM_CALL = frozenset({"type", "call_id", "name", "input", "namespace"})
_PLAIN = frozenset({"type", "text"})
_OUTPUT_ITEM = frozenset({"type", "call_id", "output"})
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_SERVER_CALLS: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
    | {"tool_search_call"}
)
_MODEL_ITEMS: Final = _SERVER_CALLS | {"message", "reasoning", "function_call", "custom_tool_call"}


# --- reading ----------------------------------------------------------------------------------------


def read_item(fields: Fields) -> Turn:
    """An item of a request as a turn."""
    kind = _kind(fields)
    if kind == "message":
        role = one_of(fields, "role", _ROLES)
        if role != "assistant":
            content = fields.get("content")
            extra = noted(_message_extra(fields), PROTOCOL, system="message" if role == "system" else None)
            return Turn(role, read_content(content, INPUT), extra=extra)
    if kind in _OUTPUTS:
        return Turn("tool", (_read_output(fields, kind),))
    return Turn(_side(fields, kind), _model_blocks(fields, kind))


def read_model_item(fields: Fields) -> tuple[Block, ...]:
    """An item of the model's side as blocks; what is not of that side is carried as it came."""
    return _model_blocks(fields, _kind(fields))


def _model_blocks(fields: Fields, kind: str) -> tuple[Block, ...]:
    if kind == "message" and one_of(fields, "role", _ROLES) == "assistant":
        return _read_said(fields)
    if kind == "reasoning":
        return (_read_reasoning(fields),)
    if kind == "function_call":
        return (_read_function_call(fields),)
    if kind == "custom_tool_call":
        return (_read_custom_call(fields),)
    if kind in _SERVER_CALLS:
        return (ServerTool(PROTOCOL, "call", fields, kind, _server_id(fields)),)
    if kind == "tool_search_output":
        return (ServerTool(PROTOCOL, "result", fields, kind, _server_id(fields)),)
    return (Opaque(PROTOCOL, fields, kind),)


def _kind(fields: Fields) -> str:
    """The type of an item. A message and a reference may leave it out."""
    if fields.get("type") is None:
        if "role" in fields:
            return "message"
        if type(fields.get("id")) is str:
            return "item_reference"
    return required(fields, "type", str)


def _side(fields: Fields, kind: str) -> Role:
    """Who speaks in an item that is neither a message nor the output of a called tool."""
    role = fields.get("role")
    if kind in _MODEL_ITEMS:
        return "assistant"
    if type(role) is str and role in _ROLES:
        return _ROLES[role]
    if kind.endswith("_call_output") or (kind == "tool_search_output" and fields.get("execution") == "client"):
        return "tool"
    return "user" if kind.endswith("_response") else "assistant"


def _server_id(fields: Fields) -> str:
    return next((fields[key] for key in ("call_id", "id") if type(fields.get(key)) is str), "")


def _message_extra(fields: Fields) -> Extra | None:
    form = "text" if type(fields.get("content")) is str else None
    untyped = True if fields.get("type") is None else None
    return noted(leftover(fields, _MESSAGE, PROTOCOL), PROTOCOL, content=form, untyped=untyped)


def _read_said(fields: Fields) -> tuple[Block, ...]:
    parts = read_content(fields.get("content"), OUTPUT)
    if not parts:
        return (Opaque(PROTOCOL, fields, "message"),)
    extra = _message_extra(fields)
    first, *rest = parts
    return (
        _with_notes(first, message=extra[PROTOCOL] if extra else {}),
        *(_with_notes(part, joined=True) for part in rest),
    )


def _with_notes(part: Part, **notes: Any) -> Part:
    return msgspec.structs.replace(part, extra=noted(part.extra, PROTOCOL, **notes))


def _read_reasoning(fields: Fields) -> Thinking:
    return Thinking(
        _joined_texts(fields, "summary") or _joined_texts(fields, "content"),
        redacted=optional(fields, "encrypted_content", str),
        id=optional(fields, "id", str),
        extra=noted(leftover(fields, _REASONING, PROTOCOL), PROTOCOL, reasoning=True),
    )


def _joined_texts(fields: Fields, key: str) -> str:
    parts = each(optional(fields, key, list) or (), lambda part: optional(part, "text", str), f".{key}")
    return "\n\n".join(part for part in parts if part is not None)


def _read_function_call(fields: Fields) -> ToolCall:
    id, extra = _call_id(fields, _FUNCTION_CALL)
    arguments, raw, done = read_arguments(required(fields, "arguments", str))
    extra = extra if raw is None else noted(extra, PROTOCOL, arguments="raw")
    return ToolCall(
        id,
        required(fields, "name", str),
        arguments,
        raw_input=raw,
        namespace=optional(fields, "namespace", str),
        extra=extra,
        argument_fixes=() if raw is None else done,
    )


def _read_custom_call(fields: Fields) -> ToolCall:
    id, extra = _call_id(fields, _CUSTOM_CALL)
    return ToolCall(
        id,
        required(fields, "name", str),
        type="custom",
        raw_input=required(fields, "input", str),
        namespace=optional(fields, "namespace", str),
        extra=extra,
    )


def _call_id(fields: Fields, known: frozenset[str]) -> tuple[str, Extra | None]:
    """The id that pairs a call, and what is left over. Only a call without one is known by its item's id."""
    extra = leftover(fields, known, PROTOCOL)
    if fields.get("call_id") is None and type(fields.get("id")) is str:
        return fields["id"], noted(extra, PROTOCOL, call_id="item")
    return required(fields, "call_id", str), extra


def _read_output(fields: Fields, kind: str) -> ToolResult:
    output: Any = fields.get("output")
    content: Any = None if output is None else read_content(output, INPUT, ".output")
    if type(output) is str:
        content = output
    form = "absent" if output is None else None if type(output) is str else "parts"
    extra = noted(leftover(fields, _OUTPUT_ITEM, PROTOCOL), PROTOCOL, item=kind, output=form)
    return ToolResult(required(fields, "call_id", str), content, is_complete=True, extra=extra)


def joined_runs(turns: Iterable[Turn]) -> list[Turn]:
    """The turns of items, with each run of the model's side as one; but two messages in a row are two turns."""
    joined: list[Turn] = []
    for is_run, run in itertools.groupby(turns, lambda turn: turn.role == "assistant"):
        if not is_run:
            joined += run
            continue
        blocks: list[Block] = []
        for turn in run:
            if blocks and _is_said(blocks[-1]) and _is_said(turn.blocks[0]):
                joined.append(Turn("assistant", tuple(blocks)))
                blocks = []
            blocks += turn.blocks
        joined.append(Turn("assistant", tuple(blocks)))
    return joined


def _is_said(block: Block) -> bool:
    """Whether a block is a part of a message."""
    return any(note(block.extra, PROTOCOL, key) is not None for key in ("message", "joined"))


# --- writing ----------------------------------------------------------------------------------------


class ItemWriter:
    """Writes turns as items. Parts are gathered in an open message until another item closes it.

    In a request, an assistant's text from elsewhere is a string: parts are for messages that have an id.
    """

    def __init__(self, turns: Iterable[Turn], *, for_reply: bool = False) -> None:
        self._for_reply = for_reply
        self._plain: list[tuple[Fields, list[str]]] = []
        """Messages whose content is a string, and what it will be made of."""
        self._items: list[Fields] = []
        self._custom = {call.id for turn in turns for call in turn.calls if call.type == "custom"}
        self._open: Fields | None = None
        self._open_extra: Extra | None = None

    @property
    def items(self) -> list[Fields]:
        for message, texts in self._plain:
            message["content"] = "".join(texts)
        return self._items

    def write(self, turn: Turn) -> None:
        self._open = None
        for block in turn.blocks:
            if isinstance(block, Text | Media) or (isinstance(block, Opaque) and is_part(block)):
                self._part(turn, block)
            else:
                item = self._item(block)
                if item is not None:
                    self._open = None
                    self._items.append(item)
        if not turn.blocks and turn.role not in ("assistant", "tool"):
            self._start(turn.role, turn.extra)

    def _start(self, role: str, extra: Extra | None) -> Fields:
        """A new message of a role, with the fields it had."""
        fields: Fields = {"role": role} if note(extra, PROTOCOL, "untyped") else {"type": "message", "role": role}
        fields["content"] = []
        self._open, self._open_extra = restored(fields, extra, PROTOCOL), extra
        self._items.append(self._open)
        return self._open

    def _part(self, turn: Turn, block: Text | Media | Opaque) -> None:
        if turn.role == "assistant":
            self._said(block)
            return
        part = write_part(block, INPUT)
        if part is not None:
            message = self._open or self._start("user" if turn.role == "tool" else turn.role, turn.extra)
            text_only = len(turn.blocks) == 1 and note(turn.extra, PROTOCOL, "content") == "text"
            _add(message, part, as_text=text_only and isinstance(block, Text))

    def _said(self, block: Text | Media | Opaque) -> None:
        """A part of an assistant message. Of what came from elsewhere, only text has a place in one."""
        own = note(block.extra, PROTOCOL, "message")
        joined = note(block.extra, PROTOCOL, "joined") is not None
        part = write_part(block, OUTPUT) if own is not None or joined or not isinstance(block, Media) else None
        if part is None:
            return
        if own is not None:
            extra: Extra | None = {PROTOCOL: own}
            as_text = note(extra, PROTOCOL, "content") == "text" and isinstance(block, Text)
            _add(self._start("assistant", extra), part, as_text=as_text)
            return
        message = self._open if joined or self._open_extra is None else None
        if message is not None and type(message["content"]) is list:
            message["content"].append(part)
        elif self._for_reply or joined or part.keys() != _PLAIN:
            self._start("assistant", None)["content"].append(part)
        elif message is not None and self._plain and self._plain[-1][0] is message:
            self._plain[-1][1].append(part["text"])
        else:
            # Without its type some servers of this protocol cannot tell what the item is (llama.cpp).
            self._open, self._open_extra = {"type": "message", "role": "assistant", "content": ""}, None
            self._plain.append((self._open, [part["text"]]))
            self._items.append(self._open)

    def _item(self, block: Block) -> Fields | None:
        if isinstance(block, ToolCall):
            return _write_call(block)
        if isinstance(block, ToolResult):
            return self._result(block)
        if isinstance(block, Thinking):
            return _write_reasoning(block)
        return own_value(block, PROTOCOL)

    def _result(self, result: ToolResult) -> Fields:
        kind = note(result.extra, PROTOCOL, "item")
        if kind is None:
            kind = "custom_tool_call_output" if result.call_id in self._custom else "function_call_output"
        fields: Fields = {"type": kind, "call_id": result.call_id}
        content = told_content(result)
        if content is not None or note(result.extra, PROTOCOL, "output") != "absent":
            fields["output"] = _write_output(result.error or "" if content is None else content, result.extra)
        return restored(fields, result.extra, PROTOCOL)


def _add(message: Fields, part: Fields, *, as_text: bool) -> None:
    if as_text:
        message["content"] = part["text"]
    else:
        message["content"].append(part)


def _write_call(call: ToolCall) -> Fields:
    if call.type == "custom":
        fields: Fields = {"type": "custom_tool_call", "name": call.name, "input": _free_text(call)}
    else:
        fields = {"type": "function_call", "name": call.name, "arguments": _written_arguments(call)}
    if call.namespace is not None:
        fields["namespace"] = call.namespace
    own = (call.extra or {}).get(PROTOCOL, {})
    if "~call_id" not in own or own.get("id") != call.id:
        fields["call_id"] = call.id
    return restored(fields, call.extra, PROTOCOL)


def _written_arguments(call: ToolCall) -> str:
    """Arguments as this protocol's model wrote them; those of another as the object that they mean."""
    is_own = note(call.extra, PROTOCOL, "arguments") is not None
    if call.raw_input is not None and (is_own or call.arguments is None):
        return call.raw_input
    return compact(call.arguments or {})


def _free_text(call: ToolCall) -> str:
    """The text of a custom call, also of one that stood elsewhere as a function of one `input` (E8)."""
    if call.raw_input is not None:
        return call.raw_input
    wrapped = (call.arguments or {}).get(FREE_TEXT, "")
    return wrapped if type(wrapped) is str else compact(wrapped)


def _write_reasoning(block: Thinking) -> Fields | None:
    """Reasoning as it was here; of that from elsewhere its text, under an id that is made from it."""
    if note(block.extra, PROTOCOL, "reasoning") is None:
        if not block.text:
            return None
        digest = hashlib.sha256(block.text.encode("utf-8", "surrogatepass")).hexdigest()
        return {
            "type": "reasoning",
            "id": f"rs_{digest[:40]}",
            "summary": [{"type": "summary_text", "text": block.text}],
        }
    fields: Fields = {"type": "reasoning"}
    if block.id is not None:
        fields["id"] = block.id
    if block.redacted is not None:
        fields["encrypted_content"] = block.redacted
    return restored(fields, block.extra, PROTOCOL)


def _write_output(content: str | tuple[Part, ...], extra: Extra | None) -> str | list[Fields]:
    """What a tool gave, as text unless it holds more."""
    as_parts = note(extra, PROTOCOL, "output") == "parts"
    if isinstance(content, str) or not (as_parts or any(isinstance(part, Media) for part in content)):
        return text_of(content)
    return [part for part in (write_part(block, INPUT) for block in content) if part is not None]

"""Items of the OpenAI Responses protocol, both ways. Requests (`input`) and replies (`output`) share them.

Items of the model's side (its messages, reasoning, calls, and the tools that the provider ran) become
blocks; a run of them is one assistant turn. The forms of the blocks keep where one item ended: that of the first
block of an assistant message holds the message's own fields, those after it are joined.
Every other item is a turn of its own.

The thinking of another model is written as a summary; its text, as plain text if a request needs that.

Tools that join in the midst of a conversation (`additional_tools`) are a turn of the developer, with a `ToolChange`.
Messages between agents (`agent_message`) are turns of the user: the model did not write them.

Calls and outputs pair by `call_id` only. The item's own `id` is another thing (B5): it stays in `extra`,
returns to this protocol, and is never invented.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from toolglot.conversation import (
    FREE_TEXT,
    Block,
    Compaction,
    Media,
    Opaque,
    ResultPart,
    Role,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    Turn,
)
from toolglot.errors import InputError
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.failed_result import content_with_error, text_of
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    one_of,
    optional,
    own_value,
    required,
    rest_of,
    with_extra,
    with_rest,
)
from toolglot.protocols.openai_responses import agent_messages, client_calls
from toolglot.protocols.openai_responses.client_tools import BY_CALL, BY_OUTPUT, BY_TYPE, LOCAL_SHELL
from toolglot.protocols.openai_responses.form import (
    ADDITIONAL_TOOLS,
    PLAIN_RESULT,
    PROTOCOL,
    REASONING,
    ResponsesCall,
    ResponsesMedia,
    ResponsesMessage,
    ResponsesOpaque,
    ResponsesPart,
    ResponsesResult,
    ResponsesText,
    ResponsesThinking,
    ResponsesToolChange,
    call_form,
    part_form,
    with_arguments,
)
from toolglot.protocols.openai_responses.parts import INPUT, OUTPUT, Part, is_part, read_content, write_part
from toolglot.protocols.openai_responses.tools import read_entries, write_tools
from toolglot.protocols.openai_responses.web_search import issuer_of

_MESSAGE = frozenset({"type", "role", "content"})
_ENCRYPTED = frozenset({"type", "id", "encrypted_content"})
_FUNCTION_CALL = frozenset({"type", "call_id", "name", "arguments", "namespace"})
_CUSTOM_CALL = frozenset({"type", "call_id", "name", "input", "namespace"})
_PLAIN = frozenset({"type", "text"})
_OUTPUT_ITEM = frozenset({"type", "call_id", "output"})
_ADDITIONAL: Final = "additional_tools"
_ADDITIONAL_ITEM = frozenset({"type", "tools"})
_AGENT_MESSAGE: Final = "agent_message"
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
_MESSAGES: Final = {
    (is_string, is_untyped, is_system): ResponsesMessage(is_string, is_untyped, "message" if is_system else None)
    if is_string or is_untyped or is_system
    else None
    for is_string, is_untyped, is_system in itertools.product((False, True), repeat=3)
}
"""The forms of messages, by whether their content is a string, their type is missing, and they are prompts."""
_PARTS: Final[dict[type[Part], ResponsesPart]] = {
    Text: ResponsesText(),
    Media: ResponsesMedia(),
    Opaque: ResponsesOpaque(),
}
_TYPED: Final = frozenset({"local_shell_call_output", *BY_CALL})
_KNOWN_BY_ITEM: Final = ResponsesCall(has_item_id_only=True)
_MODEL_ITEMS: Final = frozenset({*_SERVER_CALLS, *BY_CALL, "message", "reasoning", "function_call", "custom_tool_call"})


# --- reading ----------------------------------------------------------------------------------------


def read_items(items: list[Any]) -> list[Turn]:
    """The items of a request as turns."""
    turns = each(items, _read_item, ".input")
    if not _TYPED.isdisjoint([item.get("type") for item in items]):
        turns = _match_typed_outputs(turns, items)
    return _joined_runs(turns)


def split_items(items: Sequence[Fields], turns: Sequence[Turn]) -> list[tuple[int, int]] | None:
    """Parts of a list of items that are read alike by themselves: each ends with an item that is not of the model's
    side. None where items depend on others (`_match_typed_outputs`)."""
    if not _TYPED.isdisjoint([item.get("type") for item in items]):
        return None
    item_ends = [index for index, fields in enumerate(items, 1) if _speaker(fields) != "assistant"]
    turn_ends = [index for index, turn in enumerate(turns, 1) if turn.role != "assistant"]
    if len(item_ends) != len(turn_ends):
        return None
    starts = zip((0, *item_ends), (0, *turn_ends), strict=True)
    ends = zip(item_ends, turn_ends, strict=True)
    return [(item - begun, turn - spoken) for (begun, spoken), (item, turn) in zip(starts, ends, strict=False)]


def _speaker(fields: Fields) -> Role:
    kind = _kind(fields)
    if kind == "message":
        return one_of(fields, "role", _ROLES)
    if kind in _OUTPUTS:
        return "tool"
    if kind == _ADDITIONAL and type(fields.get("tools")) is list:
        return "developer"
    return "user" if kind == _AGENT_MESSAGE else _side(fields, kind)


def _match_typed_outputs(turns: list[Turn], items: list[Fields]) -> list[Turn]:
    """The turns, with outputs of calls that OpenAI ran itself as they came, and each `local_shell_call_output` with the
    id of its call: it has an `id` only, which can be that of the call, of the call's item, or its own."""
    hosted: set[str] = set()
    calls: dict[Any, str] = {}
    """The calls of local shells, by their ids and by the ids of their items."""
    last: str | None = None
    matched: list[Turn] = []
    for turn, fields in zip(turns, items, strict=True):
        block = turn.blocks[0] if turn.blocks else None
        new = turn
        if isinstance(block, ToolCall) and block.type == LOCAL_SHELL.type:
            last = calls[block.id] = block.id
            calls.setdefault(str(fields.get("id")), block.id)
        elif isinstance(block, ToolResult) and block.call_id in hosted:
            new = Turn(turn.role, (Opaque(PROTOCOL, fields, _kind(fields)),))
        elif isinstance(block, ToolResult) and type(block.form) is ResponsesResult and block.form.has_item_id_only:
            id = calls.get(block.call_id, last)
            if id is not None and id != block.call_id:
                form = replace(block.form, written=block.call_id)
                new = Turn(turn.role, (replace(block, call_id=id, form=form),))
            last = None
        elif isinstance(block, Opaque | ServerTool) and fields.get("type") in BY_CALL:
            hosted.add(_server_id(fields))
        matched.append(new)
    return matched


def _read_item(fields: Fields) -> Turn:
    """An item of a request as a turn."""
    kind = _kind(fields)
    if kind == "message":
        role = one_of(fields, "role", _ROLES)
        if role != "assistant":
            content = fields.get("content")
            form = _MESSAGES[type(content) is str, fields.get("type") is None, role == "system"]
            extra = leftover(fields, _MESSAGE, PROTOCOL)
            return Turn(role, read_content(content, INPUT), extra=extra, form=form)
    if kind in _OUTPUTS:
        return Turn("tool", (_read_output(fields, kind),))
    if kind in BY_OUTPUT:
        output = client_calls.read_output(fields, BY_OUTPUT[kind])
        if output is not None:
            return Turn("tool", (output,))
    if kind == _ADDITIONAL and type(fields.get("tools")) is list:
        return Turn("developer", (_read_additional_tools(fields),))
    if kind == _AGENT_MESSAGE:
        return Turn("user", (Opaque(PROTOCOL, fields, kind, text=agent_messages.text_of(fields)),))
    return Turn(_side(fields, kind), _model_blocks(fields, kind))


def _read_additional_tools(fields: Fields) -> ToolChange:
    added = client_calls.references(read_entries(fields["tools"]))
    return ToolChange(added, extra=leftover(fields, _ADDITIONAL_ITEM, PROTOCOL), form=ADDITIONAL_TOOLS)


def read_model_item(fields: Fields) -> tuple[Block, ...]:
    """An item of the model's side as blocks; what is not of that side is carried as it came."""
    return _model_blocks(fields, _kind(fields))


def _model_blocks(fields: Fields, kind: str) -> tuple[Block, ...]:
    if kind == "message" and one_of(fields, "role", _ROLES) == "assistant":
        return _read_assistant_message(fields)
    if kind == "reasoning":
        return (_read_reasoning(fields),)
    if kind == "function_call":
        return (_read_function_call(fields),)
    if kind == "custom_tool_call":
        return (_read_custom_call(fields),)
    if kind == "compaction":
        return (_read_compaction(fields),)
    if kind in BY_CALL:
        call = client_calls.read_call(fields, BY_CALL[kind])
        if call is not None:
            return (call,)
    if kind in _SERVER_CALLS:
        id = _server_id(fields)
        return (ServerTool(issuer_of(id), "call", fields, kind, id),)
    if kind == "tool_search_output":
        return (ServerTool(PROTOCOL, "result", fields, kind, _server_id(fields), loaded=_found_tools(fields)),)
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


def _found_tools(fields: Fields) -> tuple[ToolReference, ...]:
    """The tools that a search of OpenAI found, as far as they can be read."""
    tools = fields.get("tools")
    try:
        return client_calls.references(read_entries(tools)) if type(tools) is list else ()
    except InputError:
        return ()


def _server_id(fields: Fields) -> str:
    return next((fields[key] for key in ("call_id", "id") if type(fields.get(key)) is str), "")


def _read_assistant_message(fields: Fields) -> tuple[Block, ...]:
    content = fields.get("content")
    parts = read_content(content, OUTPUT)
    if not parts:
        return (Opaque(PROTOCOL, fields, "message"),)
    first, *rest = parts
    begun = replace(
        _form_of_part(first),
        message_rest=rest_of(fields, _MESSAGE) or {},
        is_string=type(content) is str,
        is_untyped=fields.get("type") is None,
    )
    return (
        replace(first, form=begun),
        *[replace(part, form=replace(_form_of_part(part), is_joined=True)) for part in rest],
    )


def _form_of_part(part: Part) -> ResponsesPart:
    return part_form(part) or _PARTS[type(part)]


def _read_reasoning(fields: Fields) -> Thinking:
    return Thinking(
        _joined_texts(fields, "summary") or _joined_texts(fields, "content"),
        redacted=optional(fields, "encrypted_content", str),
        id=optional(fields, "id", str),
        extra=leftover(fields, _ENCRYPTED, PROTOCOL),
        form=REASONING,
    )


def _read_compaction(fields: Fields) -> Compaction | Opaque:
    data = fields.get("encrypted_content")
    if type(data) is not str:
        return Opaque(PROTOCOL, fields, "compaction")
    id, extra = optional(fields, "id", str), leftover(fields, _ENCRYPTED, PROTOCOL)
    return Compaction(None, data, PROTOCOL, id, keeps_prompts=True, extra=extra)


def _joined_texts(fields: Fields, key: str) -> str:
    parts = each(optional(fields, key, list) or (), lambda part: optional(part, "text", str), f".{key}")
    return "\n\n".join(part for part in parts if part is not None)


def _read_function_call(fields: Fields) -> ToolCall:
    id, form = _call_id(fields)
    arguments, raw, done = read_arguments(required(fields, "arguments", str))
    return ToolCall(
        id,
        required(fields, "name", str),
        arguments,
        raw_input=raw,
        namespace=optional(fields, "namespace", str),
        extra=leftover(fields, _FUNCTION_CALL, PROTOCOL),
        form=form if raw is None else with_arguments(form, are_own=True),
        argument_fixes=() if raw is None else done,
    )


def _read_custom_call(fields: Fields) -> ToolCall:
    id, form = _call_id(fields)
    return ToolCall(
        id,
        required(fields, "name", str),
        type="custom",
        raw_input=required(fields, "input", str),
        namespace=optional(fields, "namespace", str),
        extra=leftover(fields, _CUSTOM_CALL, PROTOCOL),
        form=form,
    )


def _call_id(fields: Fields) -> tuple[str, ResponsesCall | None]:
    """The id that pairs a call, and its form. Only a call without one is known by its item's id."""
    if fields.get("call_id") is None and type(fields.get("id")) is str:
        return fields["id"], _KNOWN_BY_ITEM
    return required(fields, "call_id", str), None


def _read_output(fields: Fields, kind: str) -> ToolResult:
    output: Any = fields.get("output")
    content: Any = None if output is None else read_content(output, INPUT, ".output")
    if type(output) is str:
        content = output
    form = PLAIN_RESULT
    if type(output) is not str or kind != "function_call_output":
        way: Literal["absent", "parts"] | None = "absent" if output is None else "parts"
        form = ResponsesResult(kind != "function_call_output", None if type(output) is str else way)
    extra = leftover(fields, _OUTPUT_ITEM, PROTOCOL)
    return ToolResult(required(fields, "call_id", str), content, is_complete=True, extra=extra, form=form)


def _joined_runs(turns: Iterable[Turn]) -> list[Turn]:
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
    form = part_form(block)
    return form is not None and (form.message_rest is not None or form.is_joined)


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
        self._types = {call.id: call.type for turn in turns for call in turn.calls if call.type != "function"}
        self._open: Fields | None = None
        self._is_open_own = False
        """Whether the open message was one of this protocol."""

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
            self._start_turn(turn)

    def _start_turn(self, turn: Turn) -> Fields:
        """A new message that is a turn of its own."""
        form = turn.form if type(turn.form) is ResponsesMessage else None
        rest = turn.extra.get(PROTOCOL) if turn.extra else None
        return self._start("user" if turn.role == "tool" else turn.role, rest, form)

    def _start(self, role: str, rest: Fields | None, form: ResponsesMessage | ResponsesPart | None) -> Fields:
        """A new message of a role, with the fields it had."""
        is_untyped = form is not None and form.is_untyped
        fields: Fields = {"role": role} if is_untyped else {"type": "message", "role": role}
        fields["content"] = []
        self._open, self._is_open_own = with_rest(fields, rest), form is not None
        self._items.append(self._open)
        return self._open

    def _part(self, turn: Turn, block: Text | Media | Opaque) -> None:
        if turn.role == "assistant":
            self._said(block)
            return
        part = write_part(block, INPUT)
        if part is not None:
            message = self._open or self._start_turn(turn)
            is_string = type(turn.form) is ResponsesMessage and turn.form.is_string
            _add(message, part, as_text=is_string and len(turn.blocks) == 1 and isinstance(block, Text))

    def _said(self, block: Text | Media | Opaque) -> None:
        """A part of an assistant message. Of other protocols' parts, only text can be written."""
        form = part_form(block)
        begins = form is not None and form.message_rest is not None
        joined = form is not None and form.is_joined
        part = write_part(block, OUTPUT) if begins or joined or not isinstance(block, Media) else None
        if part is None:
            return
        if form is not None and form.message_rest is not None:
            as_text = form.is_string and isinstance(block, Text)
            _add(self._start("assistant", form.message_rest, form), part, as_text=as_text)
            return
        message = self._open if joined or not self._is_open_own else None
        if message is not None and type(message["content"]) is list:
            message["content"].append(part)
        elif self._for_reply or joined or part.keys() != _PLAIN:
            self._start("assistant", None, None)["content"].append(part)
        elif message is not None and self._plain and self._plain[-1][0] is message:
            self._plain[-1][1].append(part["text"])
        else:
            # Without its type some servers of this protocol cannot read the item (llama.cpp).
            self._open, self._is_open_own = {"type": "message", "role": "assistant", "content": ""}, False
            self._plain.append((self._open, [part["text"]]))
            self._items.append(self._open)

    def _item(self, block: Block) -> Fields | None:
        if isinstance(block, ToolCall):
            tool = BY_TYPE.get(block.type)
            return (
                _write_call(block) if tool is None else client_calls.write_call(block, tool, for_reply=self._for_reply)
            )
        if isinstance(block, ToolResult):
            return self._result(block)
        if isinstance(block, Thinking):
            return _write_reasoning(block)
        if isinstance(block, Compaction):
            return write_compaction(block)
        if isinstance(block, ToolChange):
            return _write_additional_tools(block)
        return own_value(block, PROTOCOL)

    def _result(self, result: ToolResult) -> Fields:
        form = result.form if type(result.form) is ResponsesResult else None
        type_of_call = self._types.get(result.call_id)
        tool = BY_TYPE.get((type_of_call if form is None else form.tool) or "")
        if tool is not None:
            return client_calls.write_output(result, tool, form)
        is_custom = type_of_call == "custom" if form is None else form.is_custom
        kind = "custom_tool_call_output" if is_custom else "function_call_output"
        fields: Fields = {"type": kind, "call_id": result.call_id}
        content = content_with_error(result)
        way = None if form is None else form.output
        if content is not None or way != "absent":
            text = result.error or "" if content is None else content
            fields["output"] = _write_output(text, as_parts=way == "parts")
        return with_extra(fields, result.extra, PROTOCOL)


def _add(message: Fields, part: Fields, *, as_text: bool) -> None:
    if as_text:
        message["content"] = part["text"]
    else:
        message["content"].append(part)


def _write_additional_tools(change: ToolChange) -> Fields | None:
    """The item of tools that join. The protocol has none for tools that leave."""
    tools = write_tools(tool.definition for tool in change.added if tool.definition is not None)
    if not tools and change.form is None:
        return None
    fields: Fields = {"type": _ADDITIONAL, "tools": tools}
    if type(change.form) is not ResponsesToolChange:
        fields["role"] = "developer"
    return with_extra(fields, change.extra, PROTOCOL)


def _write_call(call: ToolCall) -> Fields:
    if call.type == "custom":
        fields: Fields = {"type": "custom_tool_call", "name": call.name, "input": _free_text(call)}
    else:
        fields = {"type": "function_call", "name": call.name, "arguments": _written_arguments(call)}
    if call.namespace is not None:
        fields["namespace"] = call.namespace
    if not call_form(call).has_item_id_only or (call.extra or {}).get(PROTOCOL, {}).get("id") != call.id:
        fields["call_id"] = call.id
    return with_extra(fields, call.extra, PROTOCOL)


def _written_arguments(call: ToolCall) -> str:
    """Arguments as this protocol's model wrote them; those of another as the object that they mean."""
    if call.raw_input is not None and (call_form(call).has_own_arguments or call.arguments is None):
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
    if type(block.form) is not ResponsesThinking:
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
    return with_extra(fields, block.extra, PROTOCOL)


def write_compaction(block: Compaction) -> Fields | None:
    """Its encrypted form; a summary that can be read has no field here."""
    if block.protocol != PROTOCOL or block.data is None:
        return None
    fields: Fields = {"type": "compaction"}
    if block.id is not None:
        fields["id"] = block.id
    return with_extra({**fields, "encrypted_content": block.data}, block.extra, PROTOCOL)


def _write_output(content: str | tuple[ResultPart, ...], *, as_parts: bool) -> str | list[Fields]:
    """What a tool gave, as text unless it holds more."""
    if isinstance(content, str) or not (as_parts or any(isinstance(part, Media) for part in content)):
        return text_of(content)
    return [part for part in (write_part(block, INPUT) for block in content) if part is not None]

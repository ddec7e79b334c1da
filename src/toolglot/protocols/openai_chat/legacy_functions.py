"""Legacy forms of calls in the Chat Completions protocol: functions, and arguments as an object.

The predecessors of tools are functions: an assistant's `function_call`, a message of the role `function` and a list of
`functions`. A provider that accepts them (`turns.function_role`) gets them from its own clients as they came. For
others they become calls, results and tools.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Opaque, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.errors import InputError
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields, inside, optional, required, rest_of, type_error
from toolglot.protocols.openai_chat.blocks import FUNCTION_CALL
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatCall

_CALLED: Final = frozenset({"name", "arguments"})


def read_function_call(fields: Fields) -> ToolCall:
    """The legacy call of a reply. A client of this protocol gets it in the same form."""
    name, written = fields.get("name"), fields.get("arguments")
    name = name if isinstance(name, str) else ""
    arguments, raw, done = read_arguments(written) if isinstance(written, str) else (written or {}, None, ())
    if not isinstance(arguments, dict | None):
        arguments, raw = None, compact(written)
    form = ChatCall(
        "raw" if raw is not None else None if isinstance(written, str) else "object",
        function_call_rest=rest_of(fields, _CALLED) or {},
    )
    return ToolCall("", name, arguments, raw_input=raw, form=form, argument_fixes=done)


def with_text_arguments(conversation: Conversation) -> Conversation:
    """The conversation with all arguments as strings, not as an object or null; the same object if nothing changes."""
    turns = [_with_text(turn) for turn in conversation.turns]
    is_same = all(turn is before for turn, before in zip(turns, conversation.turns, strict=True))
    return conversation if is_same else replace(conversation, turns=tuple(turns))


def _with_text(turn: Turn) -> Turn:
    if turn.role != "assistant" or not any(_is_object(block) for block in turn.blocks):
        return turn
    return replace(turn, blocks=tuple([_as_text(block) for block in turn.blocks]))


def _as_text(block: Block) -> Block:
    """A call whose arguments are written as a string; any other block unchanged."""
    form = block.form
    return replace(block, form=replace(form, arguments=None)) if _is_object(block) and type(form) is ChatCall else block


def _is_object(block: Block) -> bool:
    form = block.form
    return type(block) is ToolCall and type(form) is ChatCall and form.arguments in ("object", "none")


def with_tools_for_functions(conversation: Conversation) -> Conversation:
    """The conversation with tools instead of functions; the same object if nothing changes."""
    turns = [_with_calls(turn) for turn in conversation.turns]
    own = (conversation.extra or {}).get(PROTOCOL, {})
    tools = _tools(own["functions"]) if own.get("functions") is not None else []
    is_same = all(turn is before for turn, before in zip(turns, conversation.turns, strict=True))
    if is_same and not tools:
        return conversation
    rest = {key: value for key, value in own.items() if key != "functions"}
    return replace(
        conversation,
        turns=tuple(turns),
        tools=(*conversation.tools, *tools),
        extra={**(conversation.extra or {}), PROTOCOL: rest},
    )


def _with_calls(turn: Turn) -> Turn:
    for block in turn.blocks:
        if type(block) is Opaque and block.protocol == PROTOCOL and block.kind in ("function_call", "function"):
            return replace(turn, blocks=tuple(map(_call_or_result, turn.blocks)))
    return turn


def _call_or_result(block: Block) -> Block:
    if type(block) is not Opaque or block.protocol != PROTOCOL:
        return block
    called = function_call_in(block)
    if called is not None:
        return replace(read_function_call(called), form=None, argument_fixes=())
    if block.kind != "function" or not isinstance(block.value, dict):
        return block
    content, name = block.value.get("content"), block.value.get("name")
    if content is None or isinstance(content, str):
        return ToolResult("", content, name=name if isinstance(name, str) else "", is_complete=True)
    return block


def function_call_in(block: Block) -> Fields | None:
    """The `function_call` of a block; None for another block, or a part of that type that a client invented."""
    if type(block) is not Opaque or block.kind != FUNCTION_CALL or not isinstance(block.value, dict):
        return None
    called = block.value.get(FUNCTION_CALL)
    return called if isinstance(called, dict) else None


def _tools(functions: object) -> list[ToolSpec]:
    if not isinstance(functions, list):
        raise type_error("an array", functions, "$.functions", hint="a list of functions, or use tools instead")
    return [_read_function(fields, f"$.functions[{index}]") for index, fields in enumerate(functions)]


def _read_function(fields: object, path: str) -> ToolSpec:
    if not isinstance(fields, dict):
        raise type_error("an object", fields, path)
    try:
        return ToolSpec(
            required(fields, "name", str), optional(fields, "description", str), optional(fields, "parameters", dict)
        )
    except InputError as error:
        raise inside(error, path) from None

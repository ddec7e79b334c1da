"""Tools by prompt: the text that lets a model without a tool API call tools.

    prompt = to_prompt(conversation.tools, conversation, "hermes")
    prompt.system                   # the tools, and how to write a call
    prompt.turns                    # the history, with calls and results as text
    parse_text(answer, dialect="hermes", tools=conversation.tools)

Laws: the calls in the turns are read back as they were. Every result says which call it belongs to: by the id in the
text of the call, or by the tool's name and the call's position in its turn. What is neither call nor result stays as it
is. The turns of a history are the first turns of every longer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, takewhile
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import (
    FREE_TEXT,
    Block,
    Conversation,
    Media,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.dialects.offered_tools import Tools, tool_list, tool_schemas
from toolglot.dialects.writers.writing import sample, write_calls_with_ids, write_result, writing_of
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

_INSTRUCTIONS: Final = ("system", "developer")


@runtime_checkable
class HasConversation(Protocol):
    """An object that holds a conversation: a `History`."""

    @property
    def conversation(self) -> Conversation: ...


_FREE_TEXT_SCHEMA: Final = {
    "type": "object",
    "properties": {FREE_TEXT: {"type": "string"}},
    "required": [FREE_TEXT],
}

_TEXT: Final = """\
You can use the tools that are listed below. To call a tool, write the call in exactly this form:

{one}

Several calls at once look like this:

{two}

The arguments must fit the schema of the tool. When you have written your calls, stop: the results come with the next \
message, each in this form, with {paired}:

{result}

Never write a result yourself. Where no tool is needed, answer without a call.

The tools, one on each line, with the JSON Schema of their arguments:

{tools}"""


class Prompt(Struct, frozen=True):
    """What the model gets instead of tools, calls and results."""

    system: str
    """The instructions that the history began with, the tools, and how to call them."""
    turns: tuple[Turn, ...]
    """The other turns. None of them holds a call or a result."""

    @property
    def conversation(self) -> Conversation:
        """Both as a conversation without tools."""
        first = (Turn("system", (Text(self.system),)),) if self.system else ()
        return Conversation((*first, *self.turns))


class _WrittenCall(NamedTuple):
    """What is known of a call when its result comes."""

    name: str
    id: str
    position: int


def to_prompt(tools: Tools, history: Conversation | HasConversation | Iterable[Turn], dialect: str) -> Prompt:
    """Tool definitions, calls and results as text in a dialect.

    tools: what is offered; empty if nothing is, then only the history is written.
    history: a conversation, a `History`, or turns.
    """
    all_tools = tool_list(tools)
    turns = _turns(history)
    instructions = [turn.text for turn in _leading_instructions(turns)]
    described = describe_tools(all_tools, dialect)
    writer = _Writer(all_tools, dialect)
    rest = tuple(writer.turn(turn, index) for index, turn in enumerate(turns) if index >= len(instructions))
    return Prompt("\n\n".join(text for text in (*instructions, described) if text), rest)


def describe_tools(tools: Tools, dialect: str) -> str:
    """What a model has to know to call these tools; empty if there are none."""
    writing = writing_of(dialect)
    lines = [compact(_tool_entry(spec)) for spec in _specs(tools)]
    if not lines:
        return ""
    answer = ToolResult("", "what the tool returned")
    name, _ = writing.sample
    if writing.has_ids:
        paired, result = "the id of its call", write_result(answer, dialect, name=name, id="the id")
    else:
        paired, result = "the number of its call", write_result(answer, dialect, name=name, call=1)
    return _TEXT.format(
        one=sample(dialect), two=sample(dialect, 2), paired=paired, result=result, tools="\n".join(lines)
    )


class _Writer:
    """Writes turns as text, one after the other."""

    def __init__(self, tools: Tools, dialect: str) -> None:
        self._tools = list(tools)
        self._dialect = dialect
        self._has_ids = writing_of(dialect).has_ids
        self._written: dict[str, _WrittenCall] = {}
        self._count = 0

    def turn(self, turn: Turn, index: int) -> Turn:
        if turn.role != "tool" and not turn.calls and not turn.results:
            return turn
        blocks: list[Block] = []
        position = 0
        for kind, group in groupby(turn.blocks, type):
            if kind is ToolCall:
                calls = [block for block in group if isinstance(block, ToolCall)]
                blocks.append(Text(_on_new_line(blocks) + self._calls(calls, position, index)))
                position += len(calls)
            else:
                for block in group:
                    blocks += self._result(block, blocks) if isinstance(block, ToolResult) else (block,)
        return replace(turn, role="user" if turn.role == "tool" else turn.role, blocks=tuple(blocks))

    def _calls(self, calls: list[ToolCall], position: int, index: int) -> str:
        path = f"turns[{index}].calls"
        text, ids = write_calls_with_ids(calls, self._dialect, tools=self._tools, first=self._count, path=path)
        self._count += len(calls)
        for number, (call, id) in enumerate(zip(calls, ids, strict=True), position + 1):
            self._written[call.id] = _WrittenCall(call.name, id, number)
        return text

    def _result(self, result: ToolResult, before: list[Block]) -> list[Block]:
        written = self._written.get(result.call_id)
        text = write_result(
            result,
            self._dialect,
            name=written.name if written is not None else result.name,
            id=written.id if written is not None and self._has_ids else "",
            call=written.position if written is not None and not self._has_ids else None,
        )
        content = result.content if isinstance(result.content, tuple) else ()
        others: list[Block] = [block for block in content if isinstance(block, Media | Opaque)]
        return [Text(_on_new_line(before) + text), *others]


def _on_new_line(before: list[Block]) -> str:
    """What makes the next text begin a line, which some dialects need."""
    last = before[-1] if before else None
    return "\n" if isinstance(last, Text) and last.text and not last.text.endswith("\n") else ""


def _turns(history: Conversation | HasConversation | Iterable[Turn]) -> tuple[Turn, ...]:
    if isinstance(history, HasConversation):
        history = history.conversation
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Conversation | Iterable):
        hint = "a Conversation, a History, or a list of turns"
        raise InputError(f"expected a conversation, got {quote(history)}", path="history", hint=hint)
    turns = history.turns if isinstance(history, Conversation) else tuple(history)
    for index, turn in enumerate(turns):
        if not isinstance(turn, Turn):
            raise InputError(f"expected a turn, got {quote(turn)}", path=f"history[{index}]")
    return turns


def _leading_instructions(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The instructions that a conversation begins with."""
    return tuple(takewhile(_is_instruction, turns))


def _is_instruction(turn: Turn) -> bool:
    return turn.role in _INSTRUCTIONS and all(isinstance(block, Text) for block in turn.blocks)


# --- tools ------------------------------------------------------------------------------------------


def _specs(tools: Tools) -> list[ToolSpec]:
    return [tool if isinstance(tool, ToolSpec) else _spec(tool) for tool in tool_list(tools)]


def _spec(tool: Mapping[str, Any] | str) -> ToolSpec:
    ((name, schema),) = tool_schemas([tool]).items()
    if isinstance(tool, str):
        return ToolSpec(name)
    nested = tool.get("function")
    text = (nested if isinstance(nested, Mapping) else tool).get("description")
    return ToolSpec(name, text if isinstance(text, str) else None, schema)


def _tool_entry(spec: ToolSpec) -> dict[str, Any]:
    body: dict[str, Any] = {"name": spec.name}
    if spec.description:
        body["description"] = spec.description
    if spec.type == "custom":
        return {**body, "parameters": _FREE_TEXT_SCHEMA}
    return {**body, "parameters": spec.parameters or {"type": "object", "properties": {}}}

"""Session traces of the Hugging Face Hub: a file is a header and one message to a line. A trace is one row.

    {"type": "session", "harness": "toolglot", "id": "…"}
    {"type": "message", "message": {"role": "user", "content": "…"}}
    {"type": "message", "message": {"role": "assistant", "content": "…", "toolCalls": [{"id", "name", "arguments"}]}}
    {"type": "message", "message": {"role": "tool", "toolCallId": "…", "content": "…"}}

As a row it is `{"trace": [the lines]}`; files with several traces are read too. There are no definitions of tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import call_of
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.turns import note_training, result_text
from toolglot.conversation import Block, Conversation, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of

TRACE: Final = "trace"
HARNESS: Final = "toolglot"


def is_header(line: Any) -> bool:
    """Whether a line begins a trace."""
    return isinstance(line, dict) and line.get("type") == "session"


def _detect(row: Row) -> float:
    trace = row.get(TRACE)
    if isinstance(trace, list) and trace and is_header(trace[0]):
        return 1.0
    return 0.97 if row.get("type") == "session" and "harness" in row else 0.0


def _read(row: Row, notes: Notes) -> Example:
    trace = row.get(TRACE)
    if not isinstance(trace, list) or not trace or not is_header(trace[0]):
        raise InputError("expected a trace that begins with a session", path="$.trace")
    turns: list[Turn] = []
    for number, line in enumerate(trace[1:], 1):
        path = f"$.trace[{number}]"
        kind = line.get("type") if isinstance(line, dict) else None
        if kind == "message":
            turns.append(_turn(line.get("message"), f"{path}.message"))
        elif isinstance(kind, str):
            notes.add("dropped", f"a line of the kind {kind[:40]!r} is not part of the conversation", path)
        else:
            raise InputError(f"expected a line with a type, got {quote(line)}", path=path)
    if not turns:
        raise InputError("the trace has no messages", path="$.trace")
    id = trace[0].get("id")
    name = id if isinstance(id, str) else ""
    return Example(conversation=Conversation(tuple(turns)), id=name, session=name)


def _turn(message: Any, path: str) -> Turn:
    role = message.get("role") if isinstance(message, dict) else None
    if role in ("tool", "toolResult"):
        id, name = message.get("toolCallId"), message.get("toolName", message.get("name"))
        result = ToolResult(
            id if isinstance(id, str) else "",
            "".join(block.text for block in _content(message.get("content"), path) if isinstance(block, Text)),
            message.get("isError") is True,
            name=name if isinstance(name, str) else "",
            is_complete=True,
        )
        return Turn("tool", (result,))
    if role not in ("system", "developer", "user", "assistant"):
        raise InputError(f"unknown role {quote(role)}", path=f"{path}.role")
    blocks = _content(message.get("content"), path)
    thinking = message.get("thinking", message.get("reasoning"))
    if isinstance(thinking, str) and thinking:
        blocks.insert(0, Thinking(thinking))
    calls = message.get("toolCalls") or []
    if not isinstance(calls, list):
        raise InputError(f"expected a list of calls, got {quote(calls)}", path=f"{path}.toolCalls")
    for number, call in enumerate(calls):
        id = call.get("id") if isinstance(call, dict) else None
        blocks.append(call_of(call, f"{path}.toolCalls[{number}]").as_call(id if isinstance(id, str) else ""))
    return Turn(role, tuple(blocks))


def _content(value: Any, path: str) -> list[Block]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, list):
        return [Text(compact(value))]
    blocks: list[Block] = []
    for number, part in enumerate(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("thinking", "reasoning") and isinstance(part.get(kind, part.get("text")), str):
            blocks.append(Thinking(part.get(kind, part.get("text"))))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            blocks.append(Text(part["text"]))
        elif kind in ("toolCall", "tool_call"):
            id = part.get("id")
            blocks.append(call_of(part, f"{path}.content[{number}]").as_call(id if isinstance(id, str) else ""))
        else:
            blocks.append(Text(compact(part)))
    return blocks


# --- writing ----------------------------------------------------------------------------------------


def _write(example: Example, notes: Notes) -> Row:
    if example.conversation.tools:
        notes.add("dropped", "the format has no place for definitions of tools")
    note_training(example.conversation.turns, notes)
    header: Row = {"type": "session", "harness": HARNESS, "id": example.session or example.id or "session"}
    lines: list[Row] = [header]
    for turn in example.conversation.turns:
        for result in turn.results:
            message: Row = {"role": "tool", "toolCallId": result.call_id}
            if result.name:
                message["toolName"] = result.name
            lines.append({"type": "message", "message": {**message, "content": result_text(result, notes)}})
        said = [block for block in turn.blocks if not isinstance(block, ToolResult)]
        if said or not turn.results:
            lines.append({"type": "message", "message": _message(turn, said, notes)})
    return {TRACE: lines}


def _message(turn: Turn, blocks: Sequence[Block], notes: Notes) -> Row:
    message: Row = {
        "role": "user" if turn.role == "tool" else turn.role,
        "content": "".join(block.text for block in blocks if isinstance(block, Text)),
    }
    thinking = "".join(block.text for block in blocks if isinstance(block, Thinking))
    if thinking:
        message["thinking"] = thinking
    if turn.calls:
        message["toolCalls"] = [
            {"id": call.id, "name": call.name, "arguments": _arguments(call)} for call in turn.calls
        ]
    if any(not isinstance(block, Text | Thinking | ToolCall) for block in blocks):
        notes.add("dropped", "the format has no place for what is neither text nor a call")
    return message


def _arguments(call: ToolCall) -> Any:
    return call.raw_input if call.arguments is None and call.raw_input and call.type != "custom" else object_of(call)


FORMATS: Final = (
    Format(
        name="session-trace",
        title="Session traces of the Hugging Face Hub",
        columns=frozenset({TRACE}),
        detect=_detect,
        read=_read,
        write=_write,
        takes_columns=False,
        framing="trace",
        json_columns=frozenset({TRACE}),
    ),
)

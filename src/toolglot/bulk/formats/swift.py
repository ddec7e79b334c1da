"""ms-swift: messages with the roles `tool_call` and `tool_response`, and tools as a JSON string.

    {"tools": "[…]", "messages": [{"role": "tool_call", "content": "{\\"name\\": …}"},
                                  {"role": "tool_response", "content": "…"}]}

Consecutive `tool_call` messages are one turn; text beside calls is a message of its own before them. `<image>` in a
text stands for the next one of `images`. `loss` of a message says whether it is trained on.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import parse_value, read_calls_json
from toolglot.bulk.formats.chat import has_messages, write_tools
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.tool_definitions import read_tools
from toolglot.bulk.formats.turns import ImageColumn, TurnBuilder, call_text, parts_of, split_thinking, with_thinking
from toolglot.conversation import Conversation
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

_COLUMNS: Final = frozenset({"messages", "tools", "images"})


def _detect(row: Row) -> float:
    if not has_messages(row):
        return 0.0
    roles = {
        entry.get("role") for entry in row["messages"] if isinstance(entry, dict) and isinstance(entry.get("role"), str)
    }
    return 0.97 if roles & {"tool_call", "tool_response"} else 0.0


def _read(row: Row, notes: Notes) -> Example:
    value: Any = row.get("messages")
    if isinstance(value, str):
        value = parse_value(value, "$.messages")
    if not isinstance(value, list) or not value:
        raise InputError(f"expected a list of messages, got {quote(value)}", path="$.messages")
    images = ImageColumn(row.get("images"), "$.images") if row.get("images") else None
    turns = TurnBuilder(notes)
    results: list[tuple[str, str]] = []
    before = ""
    for number, message in enumerate(value):
        path = f"$.messages[{number}]"
        role, content, train = _message(message, path)
        if role in ("tool_response", "tool"):
            results.append(("", content))
        elif results:
            turns.results(results)
            results = []
        if role == "tool_call":
            calls = read_calls_json(content, f"{path}.content")
            turns.model("", calls=calls, is_continued=before in ("tool_call", "assistant"))
        elif role == "assistant":
            thinking, text = split_thinking(content)
            turns.model(text, thinking=thinking, train=train)
        elif role in ("user", "system"):
            turns.say("user" if role == "user" else "system", content, images if role == "user" else None)
        elif role not in ("tool_response", "tool"):
            raise InputError(f"unknown role {quote(role)}", path=f"{path}.role")
        before = role
    if results:
        turns.results(results)
    made = turns.turns if images is None else images.with_rest(turns.turns, notes)
    return Example(conversation=Conversation(tuple(made), read_tools(row.get("tools"), notes)))


def _message(message: Any, path: str) -> tuple[str, str, bool | None]:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise InputError(f"expected a message with a role, got {quote(message)}", path=path)
    content, loss = message.get("content"), message.get("loss")
    if content is None:
        content = ""
    if isinstance(content, dict | list):
        content = compact(content)
    if not isinstance(content, str):
        raise InputError(f"expected text, got {quote(content)}", path=f"{path}.content")
    return role, content, loss if isinstance(loss, bool) else None


def _write(example: Example, notes: Notes) -> Row:
    images: list[str] = []
    messages: list[Row] = []
    for part in parts_of(example.conversation.turns, notes, images):
        if part.role == "tool":
            messages += [{"role": "tool_response", "content": content} for _, content in part.results]
            continue
        words = with_thinking(part.thinking, part.text) if part.role == "assistant" else part.text
        if words or not part.calls:
            message: Row = {"role": part.role, "content": words}
            if part.train is not None and part.role == "assistant":
                message["loss"] = part.train
            messages.append(message)
        messages += [{"role": "tool_call", "content": call_text(call)} for call in part.calls]
    row: Row = {"messages": messages}
    if example.conversation.tools:
        row = {"tools": compact(write_tools(example.conversation.tools)), **row}
    if images:
        row["images"] = images
    return row


FORMATS: Final = (
    Format(
        name="swift",
        title="ms-swift",
        columns=_COLUMNS,
        detect=_detect,
        read=_read,
        write=_write,
        is_text=True,
        json_columns=frozenset({"messages", "images"}),
    ),
)

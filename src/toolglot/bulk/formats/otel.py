"""Spans of OpenTelemetry's conventions for generative AI: the messages that a span recorded. Read only.

    {"attributes": {"gen_ai.input.messages": […], "gen_ai.output.messages": […], "gen_ai.system_instructions": […],
                    "gen_ai.tool.definitions": […]}}

Attributes are an object, or OTLP's list of keys and values; a value is JSON or a string that holds it. Parts of a
message are `text`, `reasoning`, `tool_call` and `tool_call_response`.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import call_of, parse_value
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.tool_definitions import read_tools
from toolglot.conversation import Block, Conversation, Role, Text, Thinking, ToolResult, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

_INPUT: Final = "gen_ai.input.messages"
_OUTPUT: Final = "gen_ai.output.messages"
_SYSTEM: Final = "gen_ai.system_instructions"
_TOOLS: Final = "gen_ai.tool.definitions"
_SESSION: Final = "gen_ai.conversation.id"
_VALUES: Final = ("stringValue", "intValue", "boolValue", "doubleValue")


def _attributes(row: Row) -> dict[str, Any]:
    held = row.get("attributes")
    if isinstance(held, dict):
        return held
    if isinstance(held, list):
        found: dict[str, Any] = {}
        for entry in held:
            if isinstance(entry, dict) and isinstance(entry.get("key"), str) and isinstance(entry.get("value"), dict):
                value = entry["value"]
                found[entry["key"]] = next((value[kind] for kind in _VALUES if kind in value), _otlp(value))
        return found
    return row


def _otlp(value: Any, level: int = 0) -> Any:
    """A value of OTLP as plain JSON."""
    if not isinstance(value, dict) or level > 100:
        return value
    for kind in _VALUES:
        if kind in value:
            return value[kind]
    listed, table = value.get("arrayValue"), value.get("kvlistValue")
    if isinstance(listed, dict):
        return [_otlp(entry, level + 1) for entry in listed.get("values") or ()]
    if isinstance(table, dict):
        entries = [entry for entry in table.get("values") or () if isinstance(entry, dict)]
        return {str(entry.get("key")): _otlp(entry.get("value"), level + 1) for entry in entries}
    return value


def _detect(row: Row) -> float:
    found = _attributes(row)
    return 0.97 if _INPUT in found or _OUTPUT in found else 0.0


def _json(attributes: dict[str, Any], key: str) -> Any:
    value = attributes.get(key)
    return parse_value(value, f"$.attributes['{key}']") if isinstance(value, str) and value.strip() else value


def _read(row: Row, notes: Notes) -> Example:
    attributes = _attributes(row)
    turns: list[Turn] = []
    instructions = _json(attributes, _SYSTEM)
    if instructions:
        texts = [part for part in _parts(instructions, f"$.attributes['{_SYSTEM}']") if isinstance(part, Text)]
        turns.append(Turn("system", tuple(texts)))
    for key in (_INPUT, _OUTPUT):
        messages = _json(attributes, key)
        if messages is None:
            continue
        if not isinstance(messages, list):
            raise InputError(f"expected a list of messages, got {quote(messages)}", path=f"$.attributes['{key}']")
        if key == _OUTPUT and len(messages) > 1:
            notes.add("dropped", "the span has several answers; the first one is used", f"$.attributes['{key}']")
            messages = messages[:1]
        turns += [_turn(message, f"$.attributes['{key}'][{number}]") for number, message in enumerate(messages)]
    if not turns:
        raise InputError("the span has no messages", path="$.attributes", hint="the exporter must record content")
    session, model = attributes.get(_SESSION), attributes.get("gen_ai.request.model")
    return Example(
        conversation=Conversation(
            tuple(turns),
            read_tools(_json(attributes, _TOOLS), notes, f"$.attributes['{_TOOLS}']"),
            model=model if isinstance(model, str) else "",
        ),
        session=session if isinstance(session, str) else "",
    )


def _turn(message: Any, path: str) -> Turn:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise InputError(f"unknown role {quote(role)}", path=f"{path}.role")
    blocks = _parts(message.get("parts", message.get("content")), path)
    known: Role = role
    if known == "user" and blocks and all(isinstance(block, ToolResult) for block in blocks):
        known = "tool"
    return Turn(known, tuple(blocks))


def _parts(value: Any, path: str) -> list[Block]:
    if isinstance(value, str):
        return [Text(value)]
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"expected a list of parts, got {quote(value)}", path=path)
    return [_part(part, f"{path}.parts[{number}]") for number, part in enumerate(value)]


def _part(part: Any, path: str) -> Block:
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        raise InputError(f"expected a part, got {quote(part)}", path=path)
    kind = part.get("type")
    content = part.get("content")
    if kind in ("text", "reasoning"):
        said = content if isinstance(content, str) else compact(content)
        return Text(said) if kind == "text" else Thinking(said)
    id = part.get("id")
    name = id if isinstance(id, str) else ""
    if kind == "tool_call":
        return call_of(part, path).as_call(name)
    if kind == "tool_call_response":
        result = part.get("result", part.get("response"))
        return ToolResult(name, result if isinstance(result, str) else compact(result), is_complete=True)
    return Text(compact(part))


FORMATS: Final = (
    Format(
        name="otel",
        title="OpenTelemetry GenAI spans",
        columns=frozenset({"attributes"}),
        detect=_detect,
        read=_read,
    ),
)

"""Definitions of tools as datasets write them, as JSON Schema.

Datasets write `{"p": {"type": "str, optional"}}`, `"type": "dict"`, a JSON string of a list, one object behind another,
or a single bare function. All become `ToolSpec`; what had to be changed is reported once for each kind of change.

Law: never raises anything but `InputError`; a definition without a name is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from toolglot import jsontext
from toolglot.bulk.example import Notes
from toolglot.conversation import ToolSpec
from toolglot.conversation.report import Entry
from toolglot.dialects.values.python_text import literal
from toolglot.errors import InputError, quote
from toolglot.limits import MAX_DEPTH

TYPES: Final = {
    "str": "string",
    "text": "string",
    "char": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "hashmap": "object",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "arraylist": "array",
    "none": "null",
    "nonetype": "null",
}
"""Types that are not of JSON Schema, in lowercase, and what they mean there."""
_STANDARD: Final = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
_ANY: Final = frozenset({"any", "object | any", "*", ""})
_OPTIONAL: Final = re.compile(r"\s*,\s*optional\s*$", re.IGNORECASE)
_HOLDERS: Final = ("properties", "$defs", "definitions", "patternProperties")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not")
_MAX_LEVELS: Final = 64
_NAMED: Final = ("name", "parameters", "description", "arguments", "required")


def read_tools(value: Any, notes: Notes, path: str = "$.tools") -> tuple[ToolSpec, ...]:
    """The tools of a row: a list, JSON of one, or one tool; none if the value is empty.

    Rows of a dataset often have the same tools: what was read of those is remembered. Law: that changes nothing."""
    if not value:
        return ()
    try:
        written = value if isinstance(value, str) else msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _read_tools(value, notes, path)
    key = (path, written)
    known = _known.get(key)
    if known is None:
        own = Notes()
        known = _read_tools(value, own, path), own.entries
        if len(written) <= _MAX_REMEMBERED:
            if len(_known) >= _MOST_REMEMBERED:
                _known.clear()
            _known[key] = known
    tools, entries = known
    notes.entries += entries
    return tools


_known: Final[dict[tuple[str, str | bytes], tuple[tuple[ToolSpec, ...], list[Entry]]]] = {}
_MOST_REMEMBERED: Final = 128
_MAX_REMEMBERED: Final = 128 * 1024


def _read_tools(value: Any, notes: Notes, path: str) -> tuple[ToolSpec, ...]:
    if isinstance(value, str):
        value = parse_json(value, path)
    if value is None or value == "" or value == {}:
        return ()
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        raise InputError(f"expected a list of tools, got {quote(value)}", path=path)
    tools = tuple(_tool(entry, notes, f"{path}[{number}]") for number, entry in enumerate(value) if entry is not None)
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        notes.add("dropped", "a tool is defined more than once; its first definition is used", path, gravity="change")
        tools = tuple({tool.name: tool for tool in reversed(tools)}.values())[::-1]
    return tools


def parse_json(text: str, path: str) -> Any:
    """A value that is JSON in text, or written as Python; None for blank text."""
    if not text.strip():
        return None
    try:
        return jsontext.parse(text, path=path).value
    except InputError:
        found = literal(text) if len(text) <= 1_000_000 else None
        if found is None:
            raise
        return found[0]


def objects_in(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, one after the other; text between them is passed over."""
    decoder = json.JSONDecoder()
    at = 0
    failures = 0
    while failures < 100:
        starts = [found for found in (text.find("{", at), text.find("[", at)) if found >= 0]
        if not starts:
            return
        start = min(starts)
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            failures += 1
            continue
        yield value


def _tool(entry: Any, notes: Notes, path: str) -> ToolSpec:
    if isinstance(entry, str):
        entry = parse_json(entry, path)
    if not isinstance(entry, dict):
        raise InputError(f"expected a tool, got {quote(entry)}", path=path)
    inner = entry.get("function")
    definition: dict[str, Any] = inner if isinstance(inner, dict) else entry
    name = definition.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InputError("the tool has no name", path=path)
    description = definition.get("description")
    parameters = next(
        (definition[key] for key in ("parameters", "input_schema", "arguments") if key in definition), None
    )
    if isinstance(parameters, str):
        parameters = parse_json(parameters, f"{path}.parameters")
    strict = definition.get("strict")
    return ToolSpec(
        name,
        description if isinstance(description, str) else None,
        _parameters(parameters, definition, notes, f"{path}.parameters"),
        strict=strict if isinstance(strict, bool) else None,
    )


def _parameters(value: Any, definition: dict[str, Any], notes: Notes, path: str) -> dict[str, Any] | None:
    if value is None or value == [] or value == "":
        return None
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON Schema, got {quote(value)}", path=path)
    if not value:
        return value
    is_schema = isinstance(value.get("properties"), dict) or value.get("type") in ("object", "dict", ["object"])
    is_schema = is_schema or any(key in value for key in ("$ref", "anyOf", "allOf", "oneOf"))
    if not is_schema and all(isinstance(held, dict) for held in value.values()):
        value = _from_bare(value, definition, notes, path)
    changed: set[str] = set()
    fixed = _schema(value, changed, 0)
    if changed:
        listed = ", ".join(sorted(changed)[:8])
        notes.add("lowered", f"types that are not of JSON Schema were replaced: {listed}", path)
    return fixed if isinstance(fixed, dict) else None


def _from_bare(value: dict[str, Any], definition: dict[str, Any], notes: Notes, path: str) -> dict[str, Any]:
    """Parameters by name without a schema around them. One with a default or an optional type is not required."""
    notes.add("lowered", "the parameters were not a JSON Schema; one was put around them", path)
    listed = definition.get("required")
    required = [name for name in listed if name in value] if isinstance(listed, list) else None
    if required is None:
        required = [name for name, held in value.items() if "default" not in held and not _is_optional(held)]
    schema: dict[str, Any] = {"type": "object", "properties": value}
    return {**schema, "required": required} if required else schema


def _is_optional(held: dict[str, Any]) -> bool:
    kind = held.get("type")
    return isinstance(kind, str) and _OPTIONAL.search(kind[-40:]) is not None


def _schema(value: Any, changed: set[str], level: int) -> Any:
    """A schema with types of JSON Schema; the same object if nothing has to change."""
    if not isinstance(value, dict):
        return value
    if level > min(_MAX_LEVELS, MAX_DEPTH):
        return value
    out = dict(value)
    if "type" in out:
        _fix_type(out, changed)
    for key in _HOLDERS:
        held = out.get(key)
        if isinstance(held, dict):
            out[key] = {name: _schema(inner, changed, level + 1) for name, inner in held.items()}
    for key in _LISTS:
        held = out.get(key)
        if isinstance(held, list):
            out[key] = [_schema(inner, changed, level + 1) for inner in held]
    for key in _SINGLE:
        if isinstance(out.get(key), dict):
            out[key] = _schema(out[key], changed, level + 1)
    if "required" in out and out["required"] is None:
        del out["required"]
    return value if out == value else out


def _fix_type(schema: dict[str, Any], changed: set[str]) -> None:
    kind = schema["type"]
    if isinstance(kind, list):
        schema["type"] = [TYPES.get(each.lower(), each) if isinstance(each, str) else each for each in kind]
        return
    if kind is None:
        del schema["type"]
        return
    if not isinstance(kind, str) or kind in _STANDARD:
        return
    changed.add(kind[:40])
    plain = _OPTIONAL.sub("", kind[:200]).strip().lower()
    known = TYPES.get(plain, plain)
    if known in _STANDARD:
        schema["type"] = known
        return
    outer = re.split(r"[\[<( ]", plain, maxsplit=1)[0]
    del schema["type"]
    if TYPES.get(outer, outer) in _STANDARD:
        schema["type"] = TYPES.get(outer, outer)
    if plain not in _ANY:
        words = schema.get("description")
        schema["description"] = f"{words} ({kind[:80]})" if isinstance(words, str) and words else kind[:80]

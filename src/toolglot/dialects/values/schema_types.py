"""Values of formats without types: the tool's schema says what a text means.

One rule for all dialects, whole or streamed. Where a schema allows nothing but a string, the text is one. Otherwise the
text is read as JSON, or as Python where that fails, or, where an object or a list is wanted, as either of them escaped
once more; the first reading that the schema allows counts. What fits nothing is a string, but for a fraction where an
integer is wanted: that stays a number. Without a schema the dialect's own default applies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from toolglot.dialects.values.json_text import json_string
from toolglot.dialects.values.python_text import literal
from toolglot.jsontext import compact, local_reference

Untyped = Literal["string", "json"]
"""What a value is that no schema describes: a string, or whatever it can be read as."""

_MAX_PARTS: Final = 256
"""Schemas that one schema may consist of. Any beyond that are ignored."""
_INTEGER: Final = re.compile(r"([+-]?)(\d{1,300})")
_DECIMAL: Final = re.compile(r"([+-]?)(\d{0,300})(?:\.(\d{0,300}))?(?:[eE]([+-]?\d{1,3}))?")
_STRUCTURES: Final = frozenset({"array", "object"})
_NAMES: Final = {
    **dict.fromkeys(("string", "str", "text", "varchar", "char", "enum"), "string"),
    **dict.fromkeys(("integer", "int", "int32", "int64", "uint", "long", "short"), "integer"),
    **dict.fromkeys(("number", "num", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("boolean", "bool", "binary"), "boolean"),
    **dict.fromkeys(("object", "dict", "map"), "object"),
    **dict.fromkeys(("array", "list", "tuple"), "array"),
    **dict.fromkeys(("null", "none"), "null"),
}
"""The names of types. Any other name is ignored."""


# --- schemas ----------------------------------------------------------------------------------------


def property_schema(schema: Any, name: str, root: dict[str, Any] | None = None) -> Any:
    """What a schema says of one field, in all of its branches; None if it says nothing."""
    found: list[Any] = []
    others: Any = None
    for part in _parts(schema, root if root is not None else schema):
        properties = part.get("properties")
        if isinstance(properties, dict) and name in properties:
            found.append(properties[name])
        if others is None and isinstance(part.get("additionalProperties"), dict):
            others = part["additionalProperties"]
    return {"anyOf": found} if len(found) > 1 else found[0] if found else others


def items_schema(schema: Any, root: dict[str, Any] | None) -> Any:
    """What a schema says of the items of a list; None if it says nothing."""
    return next((part["items"] for part in _parts(schema, root) if isinstance(part.get("items"), dict)), None)


def allowed_types(schema: Any, root: dict[str, Any] | None) -> frozenset[str]:
    """The types that a schema allows; empty if it names none."""
    found: set[str] = set()
    for part in _parts(schema, root):
        found |= named_types(part.get("type"))
        if part.get("nullable") is True:
            found.add("null")
        if not part.get("type"):
            found.update(_implied_types(part))
    return frozenset(found)


def allowed_words(schema: Any, root: dict[str, Any] | None) -> frozenset[str]:
    """The strings among the values that a schema lists: such a text is one of them, whatever it looks like."""
    listed = (part.get("enum") for part in _parts(schema, root))
    return frozenset(value for values in listed if isinstance(values, list) for value in values if type(value) is str)


def named_types(type_names: object) -> frozenset[str]:
    """The types that a `type` names, one or a list."""
    listed = type_names if isinstance(type_names, list) else [type_names]
    names = (_NAMES.get(each.lower()) for each in listed if isinstance(each, str))
    return frozenset(name for name in names if name is not None)


def _implied_types(part: dict[str, Any]) -> Iterator[str]:
    """The types that follow from the rest of a schema that has no `type`."""
    values = part.get("enum")
    if isinstance(values, list):
        yield from map(type_of, values)
    elif "const" in part:
        yield type_of(part["const"])
    elif isinstance(part.get("properties"), dict):
        yield "object"
    elif isinstance(part.get("items"), dict):
        yield "array"


def _parts(schema: Any, root: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A schema and everything that it consists of, each once, in written order."""
    seen: set[int] = set()
    waiting = [schema]
    while waiting and len(seen) < _MAX_PARTS:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        for keyword in ("allOf", "oneOf", "anyOf"):
            branches = part.get(keyword)
            waiting += reversed(branches[:_MAX_PARTS]) if isinstance(branches, list) else ()
        reference = part.get("$ref")
        if isinstance(reference, str) and root is not None:
            waiting.append(local_reference(root, reference))


# --- values -----------------------------------------------------------------------------------------


def is_string_only(types: frozenset[str], untyped: Untyped) -> bool:
    """Whether a value can be passed on as it arrives, because it is a string in any case."""
    return types == {"string"} or (not types and untyped == "string")


def typed_json(text: str, types: frozenset[str], untyped: Untyped) -> str:
    """The JSON of what a text means."""
    if is_string_only(types, untyped):
        return json_string(text)
    stripped = text.strip()
    if not stripped and "string" not in types and types & {"array", "object"}:
        return "[]" if "array" in types else "{}"
    if types and "string" not in types:
        stripped = _unquote(stripped)
    elif types and untyped == "json" and stripped[:1] == '"' and _is_json(stripped):
        return stripped
    found = _number(stripped, types) or _word(stripped, types) or _structure(stripped, types)
    return found if found is not None else json_string(text)


def _unquote(text: str) -> str:
    """Remove the quotes around a value that cannot be a string."""
    for quote in ('"', '\\"'):
        if len(text) > 2 * len(quote) and text.startswith(quote) and text.endswith(quote):
            return text[len(quote) : -len(quote)]
    return text


def _number(text: str, types: frozenset[str]) -> str | None:
    """A number, as JSON writes it. If other types are allowed too, only a JSON number counts."""
    if types and not types & {"integer", "number"}:
        return None
    written = _integer(text) or _decimal(text)
    if written is None or ((not types or "string" in types) and written != text):
        return None
    if types and "number" not in types and not _INTEGER.fullmatch(text):
        return _whole_number(written) or (written if "string" not in types else None)
    return written


def _integer(text: str) -> str | None:
    found = _INTEGER.fullmatch(text)
    return ("-" if found[1] == "-" else "") + (found[2].lstrip("0") or "0") if found is not None else None


def _decimal(text: str) -> str | None:
    found = _DECIMAL.fullmatch(text)
    if found is None or not (found[2] or found[3]) or abs(float(text)) == float("inf"):
        return None
    fraction = "" if found[3] is None else f".{found[3] or '0'}"
    power = text[found.end(2 if found[3] is None else 3) :]
    return ("-" if found[1] == "-" else "") + (found[2].lstrip("0") or "0") + fraction + power


def _whole_number(text: str) -> str | None:
    """An integer that is written as a decimal."""
    value = float(text)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else None


def _word(text: str, types: frozenset[str]) -> str | None:
    """A boolean or null. Only `null` is null, and Python's `None` if it cannot be a string."""
    if text == "null" or (text == "None" and types and "string" not in types):
        return "null" if not types or "null" in types else None
    word = text.lower() if types else text
    return word if word in ("true", "false") and (not types or "boolean" in types) else None


def _structure(text: str, types: frozenset[str]) -> str | None:
    """An object or a list, if the schema accepts it; or, without a schema, a string in quotes."""
    if not types:
        return text if text[:1] in ("{", "[", '"') and _is_json(text) else None
    wanted = types & _STRUCTURES
    found = _structure_of(text, wanted) if wanted else None
    if found is None and wanted and "string" not in types and "\\" in text:
        found = _structure_of(_unescape(text), wanted)
    return found


def _structure_of(text: str, wanted: frozenset[str]) -> str | None:
    """The JSON of a text that is an object or a list, as JSON or as Python writes it."""
    if text[:1] not in ("{", "[", "("):
        return None
    try:
        return text if type_of(msgspec.json.decode(text)) in wanted else None
    except (ValueError, RecursionError):
        found = literal(text)
    written = compact(found[0]) if found is not None and type_of(found[0]) in wanted else ""
    return written if _is_json(written) else None


def _unescape(text: str) -> str:
    """Undo the escapes of a text that was escaped like the inside of a string."""
    try:
        return str(json.loads(f'"{text}"', strict=False)).strip()
    except ValueError:
        return ""


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def type_of(value: object) -> str:
    """What JSON Schema calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"

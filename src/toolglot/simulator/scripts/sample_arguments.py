"""Arguments that satisfy a tool's schema, made without a model.

Law: arguments are validated against the schema before they are returned; the same schema gives the same arguments; work
is bounded. If no value is found, the result is None and the tool is not called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from toolglot.arguments import Validator
from toolglot.errors import InputError
from toolglot.jsontext import local_reference

MAX_VALUES: Final = 2_000
"""Values that are made for one schema."""
MAX_DEPTH: Final = 24
MAX_LENGTH: Final = 10_000
"""Characters of a string, items of an array."""

Schema = dict[str, Any]

_FORMATS: Final = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "ana@example.com",
    "idn-email": "ana@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "uri-reference": "/a",
    "iri": "https://example.com/a",
    "uuid": "3f2b8c1e-5d4a-4e6b-9c7d-0a1b2c3d4e5f",
    "regex": "a+",
    "json-pointer": "/a",
    "byte": "YQ==",
}
_CANDIDATES: Final = (
    *("a", "A", "0", "1", "abc", "ABC", "Bonn", "a1", "A1", "a-b", "a_b", "a.b", "a/b", "abc-123", "ABC-123"),
    *(
        "2026-01-31",
        "2026-01",
        "2026",
        "12:00",
        "12:00:00",
        "2026-01-31T12:00:00Z",
        "1.0",
        "1.0.0",
        "v1.0.0",
        "#aabbcc",
    ),
    *(
        "/home/a.txt",
        "a.txt",
        "https://example.com/a",
        "ana@example.com",
        "+4922112345",
        "12345",
        "00000",
        "en",
        "en-US",
    ),
    *("DE", "EUR", "3f2b8c1e-5d4a-4e6b-9c7d-0a1b2c3d4e5f", "192.0.2.1", "0x1f", "deadbeef", "true", "-1", "A1B2C3"),
)
"""Strings that are tried on a pattern."""
_CLASSES: Final = re.compile(
    r"\^?((?:[\w .:/#@+-]|\\[.\-/+])*)(\[[^\[\]]+\]|\\[dw])(?:\{(\d+)(?:,\d*)?\}|[+*])?((?:[\w .:/#@+-]|\\[.\-/+])*)\$?"
)
"""A pattern of one class of characters, with literal text around it."""
_LETTERS: Final = "abc0123456789ABCdefghijklmnopqrstuvwxyzDEFGHIJKLMNOPQRSTUVWXYZ_-./: "


def sample(schema: Schema | None) -> dict[str, Any] | None:
    """Arguments for a schema: the required ones, or all if those are not enough; None if none are found."""
    root: Schema = schema if schema is not None else {}
    try:
        validator = Validator(root)
    except InputError:
        return None
    for is_whole in (False, True):
        try:
            made = _ValueMaker(root, is_whole=is_whole).value({"type": "object", **root})
            if isinstance(made, dict) and not validator.mismatches(made):
                return made
        except (_NothingFoundError, InputError, OverflowError):  # the last: a number that is too large for arithmetic
            continue
    return None


def sample_value(schema: Schema) -> Any:
    """Any value that satisfies a schema; None if none is found."""
    wrapped = sample(
        {"type": "object", "properties": {"value": schema}, "required": ["value"], **_shared_definitions(schema)}
    )
    return wrapped["value"] if wrapped is not None else None


def _shared_definitions(schema: Schema) -> Schema:
    """The definitions of a schema, which its references name from the root."""
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


class _NothingFoundError(Exception):
    """No value is known."""


class _ValueMaker:
    def __init__(self, root: Schema, *, is_whole: bool) -> None:
        self.root = root
        self.is_whole = is_whole
        self.left = MAX_VALUES

    def value(self, schema: Any, depth: int = 0) -> Any:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH or schema is False:
            raise _NothingFoundError
        if not isinstance(schema, dict):
            return "a"
        plain = self._resolve(schema, depth)
        for value in _named_values(plain):
            return value
        for keyword in ("anyOf", "oneOf"):
            if isinstance(plain.get(keyword), list):
                return self._branch(plain, keyword, depth)
        return self._value_of_type(plain, depth)

    def _resolve(self, schema: Schema, depth: int) -> Schema:
        """The schema with its references and `allOf` merged into it."""
        plain = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        parts = list(schema.get("allOf") or ()) if isinstance(schema.get("allOf"), list) else []
        if "$ref" in schema:
            parts.insert(0, local_reference(self.root, schema["$ref"]))
        for part in parts:
            if not isinstance(part, dict) or depth > MAX_DEPTH:
                raise _NothingFoundError
            plain = _merge(self._resolve(part, depth + 1), plain)
        return plain

    def _branch(self, schema: Schema, keyword: str, depth: int) -> Any:
        """A value of the first branch that has one; null comes last."""
        base = {key: value for key, value in schema.items() if key != keyword}
        for branch in sorted((branch for branch in schema[keyword] if branch is not False), key=_is_null):
            try:
                return self.value(_merge(base, branch if isinstance(branch, dict) else {}), depth + 1)
            except _NothingFoundError:
                continue
        raise _NothingFoundError

    def _value_of_type(self, schema: Schema, depth: int) -> Any:
        kind = kind_of(schema)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            return _text(schema)
        if kind in ("integer", "number"):
            return _number(schema, is_whole=kind == "integer")
        if kind == "boolean":
            return True
        return None

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = _table(schema, "properties")
        wanted = [key for key in schema.get("required") or () if isinstance(key, str)]
        minimum = schema.get("minProperties")
        others = [key for key in properties if key not in wanted]
        count = len(others) if self.is_whole else max(minimum - len(wanted), 0) if isinstance(minimum, int) else 0
        names = list(dict.fromkeys([*wanted, *others[:count]]))
        rest = schema.get("additionalProperties", True)
        made = {}
        for name in names[:MAX_LENGTH]:
            try:
                made[name] = self.value(properties.get(name, rest), depth + 1)
            except _NothingFoundError:
                if name in wanted:
                    raise
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        firsts = schema.get("prefixItems")
        firsts = firsts if isinstance(firsts, list) else []
        minimum = schema.get("minItems")
        count = max(minimum if isinstance(minimum, int) else 0, 1 if self.is_whole else 0)
        if count > MAX_LENGTH:
            raise _NothingFoundError
        kinds = [*firsts[:count], *[schema.get("items", True)] * (count - len(firsts))]
        items = [self.value(kind, depth + 1) for kind in kinds]
        return [_vary(item, index) for index, item in enumerate(items)] if schema.get("uniqueItems") else items


def _named_values(schema: Schema) -> Iterator[Any]:
    """Values that the schema itself has."""
    if "const" in schema:
        yield schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        yield next((value for value in schema["enum"] if value is not None), None)
    if "default" in schema and schema["default"] is not None:
        yield schema["default"]
    if isinstance(schema.get("examples"), list) and schema["examples"]:
        yield schema["examples"][0]


def _merge(first: Schema, second: Schema) -> Schema:
    """Both schemas in one, in simple cases."""
    joined = {**first, **second}
    if "properties" in first and "properties" in second:
        table, other = _table(first, "properties"), _table(second, "properties")
        both = {
            key: {**table[key], **other[key]} for key in table if _is_table(table[key]) and _is_table(other.get(key))
        }
        joined["properties"] = {**table, **other, **both}
    if isinstance(first.get("required"), list) and isinstance(second.get("required"), list):
        joined["required"] = [*first["required"], *second["required"]]
    return joined


def _table(schema: Schema, keyword: str) -> Schema:
    found = schema.get(keyword)
    return found if isinstance(found, dict) else {}


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_null(branch: Any) -> bool:
    return isinstance(branch, dict) and branch.get("type") == "null"


_HINTS: Final = (
    ("object", ("properties", "required", "additionalProperties", "minProperties")),
    ("array", ("items", "prefixItems", "minItems", "uniqueItems")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


def kind_of(schema: Schema) -> str:
    type = schema.get("type")
    if isinstance(type, list):
        type = next((kind for kind in type if kind != "null"), "null")
    if isinstance(type, str):
        return type.lower()
    return next((kind for kind, words in _HINTS if any(word in schema for word in words)), "string")


def _text(schema: Schema) -> str:
    minimum, maximum = schema.get("minLength"), schema.get("maxLength")
    low = minimum if isinstance(minimum, int) else 0
    high = maximum if isinstance(maximum, int) else MAX_LENGTH
    if low > MAX_LENGTH:
        raise _NothingFoundError
    pattern, format = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str):
        return _matching_text(pattern, low, high)
    if isinstance(format, str) and format in _FORMATS:
        return _FORMATS[format]
    return ("Bonn" + "a" * low)[: max(low, min(4, high))]


def _matching_text(pattern: str, low: int, high: int) -> str:
    """A string that matches a pattern: one that a simple pattern spells out, or one of a list."""
    # The validator's patterns take bounded time, which Python's do not.
    wanted = Validator({"properties": {"text": {"pattern": pattern}}})
    for text in (*_spell_out(pattern, low), *_CANDIDATES, *((text * low)[:low] for text in _CANDIDATES if low)):
        if low <= len(text) <= high and not wanted.mismatches({"text": text}):
            return text
    raise _NothingFoundError


def _spell_out(pattern: str, low: int) -> Iterator[str]:
    simple = _CLASSES.fullmatch(pattern[:200])
    if simple is None:
        return
    before, letters, count, after = (part or "" for part in simple.groups())
    letter = next((letter for letter in _LETTERS if re.fullmatch(letters, letter)), "")
    around = [text.replace("\\", "") for text in (before, after)]
    for size in (int(count or 1), low - sum(map(len, around))):
        yield around[0] + letter * min(max(size, 0), MAX_LENGTH) + around[1]


def _number(schema: Schema, *, is_whole: bool) -> int | float:
    bounds = [schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")]
    low, over, high, under = (value if isinstance(value, int | float) else None for value in bounds)
    step = schema.get("multipleOf")
    tried: list[int | float] = [1, 0, *[value for value in (low, high) if value is not None]]
    for edge, away in ((over, 1), (under, -1)):
        tried += [] if edge is None else [edge + away, edge + away / 2, edge + away / 1_000]
    if None not in (low if low is not None else over, high if high is not None else under):
        tried.append(((low if low is not None else over or 0) + (high if high is not None else under or 0)) / 2)
    if isinstance(step, int | float) and step > 0:
        tried += [(value // step) * step for value in list(tried)] + [(value // step + 1) * step for value in tried]
    for value in tried:
        number = int(value) if float(value).is_integer() else value
        is_step = not isinstance(step, int | float) or step <= 0 or number % step == 0
        if is_step and (isinstance(number, int) or not is_whole) and _is_within(number, low, over, high, under):
            return number
    raise _NothingFoundError


def _is_within(value: float, low: float | None, over: float | None, high: float | None, under: float | None) -> bool:
    return (
        (low is None or value >= low)
        and (over is None or value > over)
        and (high is None or value <= high)
        and (under is None or value < under)
    )


def _vary(item: Any, index: int) -> Any:
    """An item that differs from the others of its array."""
    if isinstance(item, str):
        return f"{item}{index}" if index else item
    return item + index if isinstance(item, int | float) and not isinstance(item, bool) else item

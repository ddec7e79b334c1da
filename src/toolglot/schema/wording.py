"""What a target cannot express in a schema, in words.

Law: short, bounded, and the same for the same schema: prompt caches see these texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from toolglot.schema.keywords import Schema, types_of

NOTE_CHARACTERS: Final = 200
NOTES_CHARACTERS: Final = 600
_JSON_CHARACTERS: Final = 120
_VALUES_CHARACTERS: Final = 160


def value_text(value: Any) -> str:
    """A JSON value as text."""
    return msgspec.json.encode(value).decode()


def value_list(values: list[Any]) -> str:
    """Values, up to a limit of characters."""
    shown: list[str] = []
    room = _VALUES_CHARACTERS
    for value in values:
        text = value if isinstance(value, str) and value else value_text(value)
        room -= len(text) + 2
        if room < 0:
            return ", ".join([*shown, f"… {len(values)} in all"])
        shown.append(text)
    return ", ".join(shown)


def kind(schema: Any) -> str:
    """A schema in a word or two."""
    if type(schema) is not dict:
        return "any value"
    if type(schema.get("$ref")) is str:
        return str(schema["$ref"]).rsplit("/", 1)[-1][:40]
    if type(schema.get("enum")) is list:
        return f"one of {value_list(schema['enum'])}"
    types = types_of(schema) if isinstance(schema.get("type"), str | list) else ()
    return " or ".join(map(str, types)) or ("one of several" if "anyOf" in schema or "oneOf" in schema else "any value")


def _json(keyword: str) -> Callable[[Any], str | None]:
    def say(value: Any) -> str | None:
        text = value_text(value)
        return f"{keyword}: {text}" if len(text) <= _JSON_CHARACTERS else None

    return say


def _one(lead: str, value: Any) -> str | None:
    text = value if isinstance(value, str) and value else value_text(value)
    return f"{lead}: {text}" if len(text) <= _JSON_CHARACTERS else None


def _keys(value: Any) -> str | None:
    return f"other keys: {kind(value)}" if type(value) is dict else None


def _patterns(value: Any) -> str | None:
    return "; ".join(f"keys matching {pattern}: {kind(schema)}" for pattern, schema in list(value.items())[:4])


def _needs(value: Any) -> str | None:
    pairs = [(name, names) for name, names in value.items() if type(names) is list]
    return "; ".join(f"{name} needs {value_list(names)}" for name, names in pairs[:8]) or None


SENTENCES: Final[dict[str, Callable[[Any], str | None]]] = {
    "const": lambda value: f"always {value_text(value)}",
    "enum": lambda values: f"one of: {value_list(values)}",
    "format": lambda value: f"format: {value}",
    "pattern": lambda value: f"matches pattern {value}",
    "minimum": lambda value: f"at least {value_text(value)}",
    "maximum": lambda value: f"at most {value_text(value)}",
    "exclusiveMinimum": lambda value: f"greater than {value_text(value)}",
    "exclusiveMaximum": lambda value: f"less than {value_text(value)}",
    "multipleOf": lambda value: f"a multiple of {value_text(value)}",
    "minLength": lambda value: f"at least {value} characters",
    "maxLength": lambda value: f"at most {value} characters",
    "minItems": lambda value: f"at least {value} items",
    "maxItems": lambda value: f"at most {value} items",
    "minProperties": lambda value: f"at least {value} keys",
    "maxProperties": lambda value: f"at most {value} keys",
    "uniqueItems": lambda value: "no item twice" if value else None,
    "default": lambda value: None if value is None else _one("default", value),
    "examples": lambda values: f"for example: {value_list(values)}" if values else None,
    "example": lambda value: _one("for example", value),
    "additionalProperties": _keys,
    "patternProperties": _patterns,
    "dependentRequired": _needs,
    "dependencies": _needs,
}


def sentence(keyword: str, value: Any) -> str | None:
    """What a keyword means, in words; None if there are none, or too many."""
    text = SENTENCES.get(keyword, _json(keyword))(value)
    return text if text is not None and len(text) <= NOTE_CHARACTERS else None


BOUNDS: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)


def between(low: Any, high: Any, unit: str) -> str:
    return f"between {value_text(low)} and {value_text(high)}{unit}"


def describe(description: str, notes: list[str]) -> tuple[str, int]:
    """A description with notes appended, and how many of them fit."""
    room, used = NOTES_CHARACTERS, 0
    parts = [description] if description else []
    for note in notes:
        room -= len(note) + 3
        if room < 0:
            break
        used += 1
        if f"({note})" not in description:
            parts.append(f"({note})")
    return " ".join(parts), used


def alternatives(branches: list[Schema]) -> str | None:
    """What the branches of a union each require."""
    groups = [", ".join(branch.get("required", ())) for branch in branches]
    distinct = list(dict.fromkeys(group for group in groups if group))
    text = f"needs {' | '.join(distinct)}"
    return text if len(distinct) > 1 and len(text) <= NOTE_CHARACTERS else None

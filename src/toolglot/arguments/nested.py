"""JSON strings inside arguments, decoded where the schema does not accept a string.

A model that should write `{"todos": […]}` and wrote `{"todos": "[…]"}` meant the list. If the schema allows a
string as well, or the text is not of the type that it wants, the string stays.

Law: bounded depth and branching, whatever the schema refers to; nothing outside of it is ever fetched.
"""

from __future__ import annotations

import operator
from typing import Any, Final

import msgspec

from toolglot import jsontext
from toolglot.errors import InputError
from toolglot.jsontext import ChangeLog
from toolglot.limits import Limits

MAX_SCHEMA_DEPTH: Final = 32
"""How far into arguments and schema nested JSON text is looked for."""
MAX_BRANCHES: Final = 64
"""How many alternatives of a schema are considered for one value."""

_ANY: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


class NestedDecoder:
    """Walks arguments and schema together and decodes strings that the schema does not accept."""

    def __init__(self, root: dict[str, Any], limits: Limits, path: str) -> None:
        self.root = root
        self.limits = limits
        self.log: ChangeLog = ChangeLog(path)
        self.referred_to: dict[str, Any] = {}
        self.allowed: dict[int, frozenset[str]] = {}
        self.flat: dict[tuple[int, ...], list[dict[str, Any]]] = {}

    def decode(self, value: Any, schemas: list[dict[str, Any]], steps: tuple[str | int, ...]) -> Any:
        """The object or array with what is in it decoded; itself if nothing is."""
        if not schemas or len(steps) > MAX_SCHEMA_DEPTH:
            return value
        if type(value) is dict:
            tables = [held for schema in schemas if type(held := schema.get("properties")) is dict]
            fresh = [
                self._decode_child(child, [table[key] for table in tables if key in table], (*steps, key))
                for key, child in value.items()
            ]
            same = map(operator.is_, fresh, value.values())
            return value if all(same) else dict(zip(value, fresh, strict=True))
        inner = [schema["items"] for schema in schemas if "items" in schema]
        fresh = [self._decode_child(child, inner, (*steps, at)) for at, child in enumerate(value)]
        return value if all(map(operator.is_, fresh, value)) else fresh

    def _decode_child(self, value: Any, schemas: list[Any], steps: tuple[str | int, ...]) -> Any:
        if not schemas:
            return value
        if type(value) is str and value.lstrip()[:1] in {"[", "{"}:
            value = self._decode_string(value, schemas, steps)
        return self.decode(value, self.branches(schemas), steps) if type(value) in {dict, list} else value

    def _decode_string(self, text: str, schemas: list[Any], steps: tuple[str | int, ...]) -> Any:
        allowed = frozenset().union(*(self.types(schema, 0) for schema in schemas))
        wanted = "object" if text.lstrip()[0] == "{" else "array"
        if "string" in allowed or wanted not in allowed:
            return text
        try:
            room = msgspec.structs.replace(self.limits, max_depth=self.limits.max_depth - len(steps))
            parsed = jsontext.parse(text, limits=room)
        except InputError:
            return text
        for reason in (f"the schema wants an {wanted}, and the string was JSON text of one", *parsed.repairs):
            self.log.add(steps, reason)
        return parsed.value

    def _resolve_reference(self, reference: Any) -> Any:
        if type(reference) is not str:
            return None
        if reference not in self.referred_to:
            self.referred_to[reference] = jsontext.local_reference(self.root, reference)
        return self.referred_to[reference]

    def types(self, schema: Any, depth: int) -> frozenset[str]:
        """The JSON types that a schema allows; where it does not say, all of them."""
        if type(schema) is not dict or depth > MAX_SCHEMA_DEPTH:
            return _ANY
        if (known := self.allowed.get(id(schema))) is not None:
            return known
        self.allowed[id(schema)] = _ANY  # what a schema that refers to itself adds
        declared = schema.get("type")
        allowed = frozenset({declared}) if type(declared) is str else _ANY
        if type(declared) is list:
            allowed = frozenset(name for name in declared if type(name) is str)
        if "$ref" in schema:
            allowed &= self.types(self._resolve_reference(schema["$ref"]), depth + 1)
        for branch in _list_in(schema, "allOf"):
            allowed &= self.types(branch, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if branches := _list_in(schema, keyword):
                allowed &= frozenset().union(*(self.types(branch, depth + 1) for branch in branches))
        self.allowed[id(schema)] = allowed
        return allowed

    def branches(self, schemas: list[Any]) -> list[dict[str, Any]]:
        """The schemas, what they refer to, and their alternatives."""
        cache_key = tuple(map(id, schemas))
        if cache_key in self.flat:
            return self.flat[cache_key]
        found: list[dict[str, Any]] = self.flat.setdefault(cache_key, [])
        seen: set[int] = set()
        pending = list(schemas)
        while pending and len(found) < MAX_BRANCHES:
            schema = pending.pop()
            if type(schema) is not dict or id(schema) in seen:
                continue
            seen.add(id(schema))
            found.append(schema)
            if "$ref" in schema:
                pending.append(self._resolve_reference(schema["$ref"]))
            for keyword in ("allOf", "anyOf", "oneOf"):
                pending += _list_in(schema, keyword)
        if pending:
            found.clear()  # too many to consider all of them, so none counts
        return found


def _list_in(schema: dict[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if type(found) is list else []

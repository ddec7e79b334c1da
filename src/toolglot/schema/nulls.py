"""The nulls that strict mode introduces: a model that must name every property writes null for one it leaves out.

Law: a null is removed only if the original schema declares the property, does not require it and does not allow
null. Every other value stays. The arguments passed in are not modified.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.jsontext import local_reference
from toolglot.limits import MAX_DEPTH
from toolglot.schema.keywords import Schema, key_of, type_of, types_of

MAX_PARTS: Final = 500
"""Schemas that are looked at for one value."""


def without_introduced_nulls(arguments: dict[str, Any], original: Schema | None) -> dict[str, Any]:
    """Arguments as they would be without strict mode; the same object if nothing is removed."""
    if type(original) is not dict:
        return arguments
    found: dict[str, Any] = _Removal(original).clean(arguments, [original], 0)
    return found


class _Removal:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._asked = 0

    def clean(self, value: Any, schemas: list[Any], depth: int) -> Any:
        if depth > MAX_DEPTH or type(value) not in (dict, list):
            return value
        parts = self._parts(schemas, value)
        if type(value) is list:
            items = [self.clean(held, _item_schemas(parts, at), depth + 1) for at, held in enumerate(value)]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        out = {}
        for name, held in value.items():
            declared = _property_schemas(parts, name)
            if held is None and declared and self._is_introduced(parts, name, declared):
                continue
            out[name] = self.clean(held, declared, depth + 1)
        is_same = len(out) == len(value) and all(out[name] is held for name, held in value.items())
        return value if is_same else out

    def _is_introduced(self, parts: list[Schema], name: str, declared: list[Any]) -> bool:
        self._asked = 0
        is_required = any(name in _list(part.get("required")) for part in parts)
        return not is_required and not any(self._takes_null(schema, 0) for schema in declared)

    def _parts(self, schemas: list[Any], value: Any) -> list[Schema]:
        """Every schema that applies to a value, through references and unions."""
        found: dict[int, Schema] = {}
        waiting = schemas[::-1]
        while waiting and len(found) < MAX_PARTS:
            part = waiting.pop()
            if type(part) is not dict or id(part) in found:
                continue
            found[id(part)] = part
            waiting += _list(part.get("allOf"))
            for keyword in ("anyOf", "oneOf"):
                waiting += [branch for branch in _list(part.get(keyword)) if self._is_plausible(branch, value)]
            waiting += [part[keyword] for keyword in ("then", "else") if keyword in part]
            if "$ref" in part:
                waiting.append(local_reference(self._root, part["$ref"]))
        return list(found.values())

    def _is_plausible(self, branch: Any, value: Any) -> bool:
        """Whether a branch can be the one that a value was written for: its type and its tags agree."""
        for _ in range(8):
            if type(branch) is not dict or "$ref" not in branch:
                break
            branch = local_reference(self._root, branch["$ref"])
        if type(branch) is not dict:
            return False
        types = branch.get("type")
        if isinstance(types, str | list) and type_of(value) not in types_of(branch):
            return False
        properties = branch.get("properties")
        if type(value) is not dict or type(properties) is not dict:
            return True
        return all(_may_be(schema, value[name]) for name, schema in properties.items() if name in value)

    def _takes_null(self, schema: Any, depth: int) -> bool:
        self._asked += 1
        # What cannot be decided in bounded time counts as allowed: then the null stays.
        if type(schema) is not dict or depth > 32 or self._asked > MAX_PARTS:
            return schema is not False
        if "$ref" in schema:
            target = local_reference(self._root, schema["$ref"])
            if target is not None and not self._takes_null(target, depth + 1):
                return False
        if schema.get("nullable") is True:
            return True
        if not all(self._takes_null(member, depth + 1) for member in _list(schema.get("allOf"))):
            return False
        for keyword in ("anyOf", "oneOf"):
            branches = _list(schema.get(keyword))
            if branches and not any(self._takes_null(branch, depth + 1) for branch in branches):
                return False
        types = schema.get("type")
        named = isinstance(types, str | list) and "null" not in types_of(schema)
        return not named and _may_be(schema, None)


def _may_be(schema: Any, value: Any) -> bool:
    """Whether the listed values include this one. A null may mean a property that is left out."""
    if type(schema) is not dict:
        return True
    if "const" in schema:
        return bool(key_of(schema["const"]) == key_of(value))
    values = schema.get("enum")
    return type(values) is not list or any(key_of(listed) == key_of(value) for listed in values)


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _property_schemas(parts: list[Schema], name: str) -> list[Any]:
    found = []
    for part in parts:
        properties, rest = part.get("properties"), part.get("additionalProperties")
        if type(properties) is dict and name in properties:
            found.append(properties[name])
        elif type(rest) is dict:
            found.append(rest)
    return found


def _item_schemas(parts: list[Schema], at: int) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        items = part.get("items")
        prefix = _list(part.get("prefixItems")) or _list(items)
        if at < len(prefix):
            found.append(prefix[at])
        else:
            found.append(part.get("additionalItems") if type(items) is list else items)
    return found

"""Strict mode: a schema that the provider enforces while the model writes.

Law: strict or not, the tool accepts the same calls. Every object is closed and every property required, an
optional one nullable. If that cannot be expressed without loss (an open map, a default, a keyword that strict
mode refuses), there is no strict form. `without_introduced_nulls` removes the nulls again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

from toolglot.jsontext import local_reference
from toolglot.profiles.rules import SchemaRules
from toolglot.schema.fitness import DEFINED
from toolglot.schema.keywords import DEFINITIONS, LISTS, MAPS, SHAPES, SINGLES, Schema, key_of, type_of, types_of
from toolglot.schema.merging import merge
from toolglot.schema.node_repair import repair_node

LOOK_AROUND: Final = re.compile(r"\(\?<?[=!]")
MAX_UNIONS: Final = 50
"""Unions inside each other."""
MAX_STRICT_DEPTH: Final = 100
REMARKS: Final = frozenset({"$schema", "$id", "$comment", "examples", "example", "deprecated", "readOnly", "writeOnly"})
"""Keywords that do not constrain values, and are better not sent."""
TUPLES: Final = frozenset({"prefixItems", "additionalItems"})
UNKNOWN_TO_STRICT: Final = frozenset(
    {
        "dependencies",
        "unevaluatedProperties",
        "unevaluatedItems",
        "minContains",
        "maxContains",
        "$dynamicRef",
        "nullable",
    }
)


class _LossyError(Exception):
    """Strict mode would lose something."""


def strict_form(schema: Schema, rules: SchemaRules) -> Schema | None:
    """An equivalent schema for strict mode; None if there is none."""
    try:
        out = _Strict(schema, rules).root()
    except _LossyError:
        return None
    if not rules.strict_recursion and refers_to_itself(out):
        return None
    if rules.strict_schema_optional is not None or rules.strict_schema_unions is not None:
        optional, unions = strict_cost(out)
        if optional > _limit(rules.strict_schema_optional) or unions > _limit(rules.strict_schema_unions):
            return None
    return schema if out == schema else out


def _limit(limit: int | None) -> float:
    return math.inf if limit is None else limit


def strict_cost(schema: Schema) -> tuple[int, int]:
    """How many properties of a schema are optional, and how many have several types: both are expensive to compile."""
    optional = unions = 0
    for node in _nodes(schema):
        properties, required = node.get("properties"), node.get("required")
        if type(properties) is dict:
            named = set(filter(_is_text, required)) if type(required) is list else set()
            optional += sum(name not in named for name in properties)
            held = (value for value in properties.values() if type(value) is dict)
            unions += sum("anyOf" in value or type(value.get("type")) is list for value in held)
    return optional, unions


def _is_text(value: Any) -> bool:
    return type(value) is str


def refers_to_itself(schema: Schema) -> bool:
    """Whether a reference leads back to itself."""
    held = {f"#/{table}/{name}": inner for table in DEFINITIONS for name, inner in _members(schema.get(table))}
    left = {
        pointer: {node["$ref"] for node in _nodes(inner) if _is_text(node.get("$ref"))}
        for pointer, inner in held.items()
    }
    if any(node.get("$ref") == "#" for node in _nodes(schema)):
        return True
    # Definitions without references are removed until none is left, or the rest refer to each other.
    users: dict[str, list[str]] = {}
    for pointer, named in left.items():
        named.intersection_update(left)
        for reference in named:
            users.setdefault(reference, []).append(pointer)
    ends = [pointer for pointer, named in left.items() if not named]
    for pointer in ends:
        for user in users.get(pointer, ()):
            left[user].discard(pointer)
            if not left[user]:
                ends.append(user)
    return len(ends) < len(left)


def _members(table: Any) -> list[tuple[str, Any]]:
    return list(table.items()) if type(table) is dict else []


def closed_form(schema: Schema) -> Schema | None:
    """A schema whose objects accept no further keys; None if one of them is a map, which accepts any."""
    root: Schema = {}
    stack: list[tuple[Schema, Schema]] = [(schema, root)]
    while stack:
        node, out = stack.pop()
        for keyword, value in node.items():
            if keyword in SINGLES and type(value) is dict:
                out[keyword] = _placeholder(value, stack)
            elif keyword in (*LISTS, "items") and type(value) is list:
                out[keyword] = [_placeholder(member, stack) for member in value]
            elif keyword in MAPS and type(value) is dict:
                out[keyword] = {name: _placeholder(member, stack) for name, member in value.items()}
            else:
                out[keyword] = value
        if "object" in types_of(node) and node.get("additionalProperties") is not False:
            if not node.get("properties") or node.get("additionalProperties", True) is not True:
                return None
            out["additionalProperties"] = False
    return schema if root == schema else root


def _placeholder(value: Any, stack: list[tuple[Schema, Schema]]) -> Any:
    """A placeholder for the result of a schema; other values stay."""
    if type(value) is not dict:
        return value
    out: Schema = {}
    stack.append((value, out))
    return out


def _nodes(schema: Any) -> Iterator[Schema]:
    """A schema and all schemas in it. It is a tree: nothing occurs in it twice."""
    stack = [schema]
    while stack:
        node = stack.pop()
        if type(node) is not dict:
            continue
        yield node
        for keyword, value in node.items():
            if keyword in MAPS and type(value) is dict:
                stack += value.values()
            elif type(value) is list and keyword in (*LISTS, "items"):
                stack += value
            elif keyword in SINGLES:
                stack.append(value)


def _lossy(*_: str) -> None:
    raise _LossyError


class _Strict:
    def __init__(self, root: Schema, rules: SchemaRules) -> None:
        self._root = root
        self._rules = rules
        self._refused = frozenset(rules.strict_refused)
        self._properties = 0
        self._unions = 0

    def root(self) -> Schema:
        if "$ref" in self._root or "anyOf" in self._root or self._root.get("type") != "object":
            raise _LossyError
        out = self._node(self._root, 1, is_root=True)
        tables = [out.pop(keyword) for keyword in DEFINITIONS if keyword in out]
        definitions = {name: self._node(held, 2) for table in tables for name, held in table.items()}
        if len(definitions) < sum(map(len, tables)):
            raise _LossyError
        return {**out, "$defs": definitions} if definitions else out

    def _node(self, schema: Any, depth: int, *, is_root: bool = False) -> Schema:
        if type(schema) is not dict or depth > (self._rules.strict_max_depth or MAX_STRICT_DEPTH):
            raise _LossyError
        if any(keyword in SHAPES and not SHAPES[keyword](value) for keyword, value in schema.items()):
            raise _LossyError  # the schema of an output for the client's own provider is as the client wrote it
        node = {keyword: value for keyword, value in schema.items() if keyword not in REMARKS}
        node = self._open_node(node)
        if "$ref" in node:
            return _reference(node["$ref"])
        if "oneOf" in node and "oneOf" in self._refused and "anyOf" not in node and are_distinct(node["oneOf"]):
            node["anyOf"] = node.pop("oneOf")
        self._refuse(node, is_root)
        if "anyOf" in node:
            return self._union(node, depth)
        types = _types(node)
        if "object" in types:
            self._object(node, depth, is_root)
        if "array" in types:
            node["items"] = self._node(node.get("items"), depth + 1)
        return node

    def _open_node(self, node: Schema) -> Schema:
        """A reference without keywords beside it, or no reference; no `allOf` with one member."""
        for _ in range(MAX_STRICT_DEPTH):
            members = node.get("allOf")
            if members is not None and len(members) == 1 and "allOf" in self._refused and type(members[0]) is dict:
                rest = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
                node = {**members[0], **rest} if not set(rest) & set(members[0]) - {"description", "title"} else {}
                if not node:
                    raise _LossyError
            elif "$ref" not in node or len(node) == 1 or DEFINED.fullmatch(node["$ref"]) is None:
                return node
            else:
                target = repair_node(local_reference(self._root, node.pop("$ref")), _lossy)
                if "$ref" in target or "allOf" in target:
                    raise _LossyError
                node = merge(node, target, _lossy)
        raise _LossyError

    def _refuse(self, node: Schema, is_root: bool) -> None:
        kept = {keyword for keyword in node if not (is_root and keyword in DEFINITIONS)}
        if kept & (self._refused | TUPLES | UNKNOWN_TO_STRICT | {*DEFINITIONS, "$ref"}):
            raise _LossyError
        if "format" in node and node["format"] not in self._rules.strict_formats:
            raise _LossyError
        if "pattern" in node and LOOK_AROUND.search(node["pattern"]):
            raise _LossyError

    def _union(self, node: Schema, depth: int) -> Schema:
        if any(keyword not in ("anyOf", "description", "title") for keyword in node):
            raise _LossyError
        self._unions += 1
        if self._unions > MAX_UNIONS:
            raise _LossyError
        node["anyOf"] = [self._node(branch, depth) for branch in node["anyOf"]]
        self._unions -= 1
        return node

    def _object(self, node: Schema, depth: int, is_root: bool) -> None:
        properties = node.get("properties", {})
        # An object that names no keys is a map. One that names some, and does not mention others, has only these.
        is_open = "additionalProperties" not in node and not properties and not is_root
        if is_open or node.get("additionalProperties", False) is not False:
            raise _LossyError
        required = node.get("required", [])
        if any(name not in properties for name in required):
            raise _LossyError
        self._properties += len(properties)
        if self._properties > (self._rules.strict_max_properties or self._properties):
            raise _LossyError
        node["properties"] = {
            name: self._property(held, depth + 1, is_optional=name not in required) for name, held in properties.items()
        }
        if self._rules.strict_all_required:
            node["required"] = [*required, *(name for name in properties if name not in required)]
        node["additionalProperties"] = False

    def _property(self, schema: Any, depth: int, *, is_optional: bool) -> Schema:
        if not is_optional or type(schema) is not dict or not self._rules.strict_all_required:
            return self._node(schema, depth)
        # Null means that a property is left out, which is what a default of null means.
        has_null_default = "default" in schema and schema["default"] is None
        plain = {key: held for key, held in schema.items() if key != "default"} if has_null_default else schema
        return _nullable(self._node(plain, depth))


def _reference(reference: str) -> Schema:
    """A reference as strict mode has it: alone, and to the root or `$defs`."""
    if DEFINED.fullmatch(reference) is None:
        raise _LossyError
    return {"$ref": reference.replace("#/definitions/", "#/$defs/", 1)}


def _types(node: Schema) -> tuple[str, ...]:
    """The types of a node. They are added if the listed values imply them."""
    if "type" not in node:
        values = [node["const"]] if "const" in node else node.get("enum")
        if not values:
            raise _LossyError
        types = list(dict.fromkeys(type_of(value) for value in values))
        node["type"] = types[0] if len(types) == 1 else types
    return types_of(node)


def _nullable(node: Schema) -> Schema:
    """A node that accepts null as well."""
    if "$ref" in node:
        return {"anyOf": [node, {"type": "null"}]}
    if "anyOf" in node:
        is_there = any("null" in types_of(branch) for branch in node["anyOf"])
        return node if is_there else {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
    types = types_of(node)
    out = dict(node) if "null" in types else {**node, "type": [*types, "null"]}
    if "const" in out and out["const"] is not None:
        out["enum"] = [out.pop("const")]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    return out


def are_distinct(branches: list[Any]) -> bool:
    """Whether it is plain that no value is accepted by two branches: by type, or by the values of a property."""
    if not all(type(branch) is dict for branch in branches):
        return False
    types = [name for branch in branches for name in types_of(branch) or ("any",)]
    if len(set(types)) == len(types) and "any" not in types and not {"number", "integer"} <= set(types):
        return True
    tags = [_tags(branch) for branch in branches]
    for name in tags[0]:
        values = [value for tag in tags for value in tag.get(name, (None, None))]
        if len(set(values)) == len(values):
            return True
    return False


def _tags(branch: Schema) -> dict[str, tuple[Any, ...]]:
    """The values that each required property of an object is limited to."""
    if branch.get("type") != "object" or type(branch.get("properties")) is not dict:
        return {}
    found = {}
    for name in branch.get("required", ()):
        held = branch["properties"].get(name)
        values = [held["const"]] if type(held) is dict and "const" in held else None
        values = values or (held.get("enum") if type(held) is dict else None)
        if values:
            found[name] = tuple(dict.fromkeys(key_of(value) for value in values))
    return found

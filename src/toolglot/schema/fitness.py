"""Whether a target accepts a schema unchanged: one walk that only checks.

Law: what lowering returns fits, and what fits is not lowered. So the two agree on every rule, and lowering
twice is the same as lowering once.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.jsontext import local_reference
from toolglot.profiles.rules import SchemaRules
from toolglot.schema.keywords import (
    ANNOTATIONS,
    DEFINITIONS,
    LISTS,
    MAPS,
    NUMBERED,
    OPEN_ENDED,
    RIGID,
    SHAPES,
    SINGLES,
    TYPES,
    Schema,
    numbered_type,
    types_of,
)

__all__ = ["NOT_AT_ROOT", "Fitness"]

NOT_AT_ROOT: Final = ("anyOf", "oneOf", "allOf", "enum", "const", "not")
"""What a root that must be a plain object may not have."""
MAX_FIT_DEPTH: Final = 120
"""Schemas inside each other. Deeper ones are lowered, which means cut."""
NUMBER_FORMATS: Final = frozenset({"int32", "int64", "float", "double"})
DEFINED: Final = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
"""The root, or one of its definitions: what a reference still names when everything else has moved."""
LEGACY: Final = re.compile(r"draft-0[3-7]")
_WORDS: Final = frozenset({"title", "description", "format", "pattern", "default"})
_SUBSCHEMAS: Final = frozenset((*SINGLES, *LISTS, *MAPS, "dependencies"))


class Fitness:
    """The fitness of one schema and its parts for one target.

    `moving` is for a root that does not fit: parts of it will move and widen, so a part fits only if it
    names nothing by its position, and if nothing in it may become narrower when a definition becomes wider.
    """

    def __init__(self, rules: SchemaRules, root: Any, *, moving: bool = False) -> None:
        self.rules = rules
        self.refs: bool = rules.refs and "$ref" not in rules.refused
        self.legacy: bool = is_legacy(root)
        self.refers_to_root: bool = moving and _has_reference(root, "#")
        self._root = root
        self._allowed = None if rules.keywords is None else frozenset(rules.keywords)
        self._refused = frozenset(rules.refused)
        self._property = None if rules.property_pattern is None else re.compile(rules.property_pattern)
        self._formats = None if rules.formats is None else frozenset(rules.formats)
        self._known: dict[int, tuple[Any, int]] = {}
        self._max_depth = min(MAX_FIT_DEPTH, rules.max_depth or MAX_FIT_DEPTH)
        self._moving = moving
        self._steady = not moving or self._has_steady_definitions()

    def accepts(self, keyword: str) -> bool:
        return keyword not in self._refused and (self._allowed is None or keyword in self._allowed)

    def is_legal(self, name: str) -> bool:
        return self._property is None or self._property.fullmatch(name) is not None

    def takes_format(self, format: str, types: tuple[str, ...]) -> bool:
        if self._formats is None:
            return True
        is_for_numbers = any(type in ("number", "integer") for type in types)
        return format in self._formats and is_for_numbers == (format in NUMBER_FORMATS)

    def takes_root(self, root: Any) -> bool:
        """Whether a whole schema can be sent as it is."""
        if type(root) is not dict or root.get("type") not in self._spellings("object") or "$ref" in root:
            return False
        if not self.rules.root_union and any(keyword in root for keyword in NOT_AT_ROOT):
            return False
        return self.size(root) > 0

    def is_rigid(self, schema: Any, depth: int = 0) -> bool:
        """Whether a part stays as it is, and so does everything it refers to."""
        return self.size(schema, depth) > 0 and (self._steady or not _has_reference(schema))

    def size(self, node: Any, depth: int = 0) -> int:
        """How many schemas a part holds, itself included; 0: it does not fit."""
        if type(node) is not dict or depth > self._max_depth:
            return 0
        known = self._known.get(id(node))
        # If depth is limited, a part may fit at one depth and not at another.
        if known is not None and self.rules.max_depth is None:
            return known[1]
        size = self._measure(node, depth)
        # The part is kept with its size, so that no other object can get the same identity.
        self._known[id(node)] = (node, size)
        return size

    def _measure(self, node: Schema, depth: int) -> int:
        size = 1
        below = []
        for keyword, value in node.items():
            if keyword in self._refused or (self._allowed is not None and keyword not in self._allowed):
                return 0
            shape = SHAPES.get(keyword)
            if shape is not None and not shape(value) and not self._is_passed(keyword, value):
                return 0
            if keyword in _SUBSCHEMAS:
                below.append(keyword)
        if not self._fits_together(node):
            return 0
        for keyword in below:
            held = self._below(keyword, node[keyword], depth + 1)
            if not held:
                return 0
            size += held
        return size

    def _below(self, keyword: str, value: Any, depth: int) -> int:
        """The sizes of all schemas under a keyword, and one."""
        if type(value) is bool:
            return 1 if keyword in OPEN_ENDED else 0
        if self._moving and keyword in RIGID:
            return 1 + self.size(value, depth) if self.is_rigid(value, depth) else 0
        if keyword in SINGLES and type(value) is dict:
            held = self.size(value, depth)
            return 1 + held if held else 0
        if self._moving and keyword == "oneOf" and not all(self.is_rigid(part, depth) for part in value):
            return 0
        parts = list(value.values()) if type(value) is dict else value
        total = 1
        for part in parts:
            if keyword == "dependencies" and type(part) is list:
                continue
            held = self.size(part, depth)
            if not held:
                return 0
            total += held
        return total

    # --- keywords that have to agree ----------------------------------------------------------------

    def _fits_together(self, node: Schema) -> bool:
        return (
            self._fits_reference(node)
            and self._fits_union(node)
            and self._fits_type(node)
            and self._fits_value(node)
            and self._fits_tuple(node)
            and self._fits_object(node)
        )

    def _fits_reference(self, node: Schema) -> bool:
        if "$dynamicRef" in node or "$recursiveRef" in node:
            return False
        if self._moving and not self._steady and ("unevaluatedProperties" in node or "unevaluatedItems" in node):
            return False
        if "$ref" not in node:
            return True
        reference = node["$ref"]
        if not self.refs or type(local_reference(self._root, reference)) is not dict:
            return False
        if not self._moving:
            return True
        return self.keeps(reference) and not (self.legacy and has_constraint(node, "$ref"))

    def keeps(self, reference: str) -> bool:
        """Whether a reference still names the same when everything but the definitions has moved."""
        if not self.refs or DEFINED.fullmatch(reference) is None:
            return False
        return "/" not in reference or self.accepts(reference.split("/")[1])

    def _fits_union(self, node: Schema) -> bool:
        if "anyOf" not in node:
            return True
        if self.rules.union_alone and len(node) > 1:
            return False
        if not self.rules.union_with_type and "type" in node:
            return False
        if self.rules.type_required and has_constraint(node, "anyOf"):
            return False
        return not self.rules.nullable or not any(is_null(branch) for branch in node["anyOf"])

    def _fits_type(self, node: Schema) -> bool:
        if node.get("nullable") is True and not self.rules.nullable:
            return False
        types = node.get("type")
        if types is None:
            return not self.rules.type_required or "anyOf" in node or "$ref" in node
        if type(types) is list and not self.rules.type_lists:
            return False
        if self.rules.nullable and types in ("null", "NULL"):
            return False
        if self.rules.items_required and "items" not in node and "prefixItems" not in node:
            return not self._may_be(types, "array")
        return True

    def _fits_value(self, node: Schema) -> bool:
        types = types_of(node)
        if "enum" in node and self.rules.enum_types == "string":
            are_strings = all(type(value) is str for value in node["enum"])
            if not are_strings or types not in (("string",), ("STRING",)):
                return False
        return "format" not in node or self.takes_format(node["format"], tuple(map(str.lower, types)))

    def _fits_tuple(self, node: Schema) -> bool:
        written = self.rules.tuple_items
        if "prefixItems" in node and written != "prefixItems":
            return False
        if type(node.get("items")) is list:
            return written == "items"
        return True

    def _fits_object(self, node: Schema) -> bool:
        rules, properties = self.rules, node.get("properties")
        is_object = rules.properties_required and self._may_be(node.get("type"), "object")
        if is_object and (properties is None or (rules.properties_non_empty and not properties)):
            return False
        if self._property is not None and properties and not all(map(self._property.fullmatch, properties)):
            return False
        if rules.required_defined and "required" in node:
            return all(name in (properties or ()) for name in node["required"])
        return True

    def _spellings(self, type: str) -> tuple[str | int, ...]:
        return (type, type.upper(), NUMBERED.index(type)) if self.rules.nullable else (type,)

    def _is_passed(self, keyword: str, value: Any) -> bool:
        """Whether a value that is not JSON Schema is accepted nevertheless.

        Gemini's own schemas write STRING, or its number, where JSON Schema has string; there all are accepted. A target
        that does not check whether a schema is well-formed accepts any name of a type, and null instead of a string.
        """
        is_type = keyword == "type"
        if is_type and self.rules.nullable and (numbered_type(value) or str(value).lower() in TYPES):
            return type(value) in (str, int)
        return not self.rules.well_formed and (type(value) is str if is_type else value is None and keyword in _WORDS)

    def _may_be(self, types: Any, type: str) -> bool:
        return type in types if isinstance(types, list) else types in self._spellings(type)

    def _has_steady_definitions(self) -> bool:
        """Whether no reference can come to name something wider than it did."""
        root = self._root
        if type(root) is not dict or self.refers_to_root:
            return False
        tables = [root[keyword] for keyword in DEFINITIONS if type(root.get(keyword)) is dict]
        self._steady = True
        fit = all(self.size(schema) for table in tables for schema in table.values())
        self._known.clear()
        return fit


def is_legacy(root: Any) -> bool:
    """Whether a schema declares a draft in which keywords beside `$ref` are ignored."""
    named = root.get("$schema") if type(root) is dict else None
    return type(named) is str and LEGACY.search(named) is not None


def has_constraint(node: Schema, *apart: str) -> bool:
    return any(keyword not in ANNOTATIONS and keyword not in apart for keyword in node)


def is_null(schema: Any) -> bool:
    """Whether a schema plainly accepts null and nothing else."""
    if type(schema) is not dict:
        return False
    return (
        schema.get("type") in ("null", "NULL", ["null"])
        or ("const" in schema and schema["const"] is None)
        or schema.get("enum") == [None]
    )


def _has_reference(schema: Any, named: str | None = None) -> bool:
    stack = [schema]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            if "$ref" in part and named in (None, part["$ref"]):
                return True
            stack += part.values()
        elif type(part) is list:
            stack += part
    return False

"""The required filter: `required` lists only what a call really needs.

Clients mark parameters as required that their own descriptions call optional. A parameter stays required
iff it was, has no default, may not be null, and its description does not say that it may be left out.

Laws: the filtered schema is the original without some names in `required`, and arguments are checked against it.
It accepts everything that the original accepts: names stay where removing them could make a schema stricter (`not`,
`if`, `contains`, a `oneOf` whose branches differ only in their required names). The input is not changed, and is
returned if nothing is removed. Filtering twice is the same as filtering once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeGuard

from msgspec import Struct

from toolglot.jsontext import json_path, local_reference
from toolglot.limits import MAX_DEPTH

__all__ = ["Filtered", "Removed", "filter_required"]

Step = str | int
Schema = dict[str, Any]

PHRASES: Final = ("optional", "defaults to", "if not specified", "only provide if")
"""What a description says of a parameter that may be left out. `(optional)` is within `optional`."""

AGGRESSIVE_PHRASES: Final = (
    *PHRASES,
    *("if provided", "when provided", "can be omitted", "not required", "set to true", "set to false"),
)

NEGATION: Final = (
    r"(?P<negation>\bnon[-\s]?|(?:\bnot|n['\u2019]t|\bnever|\bno\s+longer|\bcannot)[*_`\"]*"
    r"(?:-|\s+(?:(?:an?|be|at\s+all|considered)\s+){0,3})[*_`\"]*)?"
)
"""`not optional`, `non-optional`, `isn't optional`, `never optional`; but not `wait or not (optional)`."""


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(phrases).replace(" ", r"\s+")
    return re.compile(f"{NEGATION}(?P<phrase>{words})", re.IGNORECASE)


PHRASE_PATTERN: Final = _pattern(PHRASES)
AGGRESSIVE_PHRASE_PATTERN: Final = _pattern(AGGRESSIVE_PHRASES)

MAPS: Final = ("properties", "patternProperties", "$defs", "definitions")
LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
SINGLES: Final = ("items", "additionalProperties")
STRICTER_WHEN_LOOSENED: Final = ("not", "if", "contains")
DEFINITIONS: Final = ("$defs", "definitions")
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
MAX_REFERENCES: Final = 32
MAX_BRANCHES: Final = 64
"""How far references are followed to find out whether a parameter may be null."""
LOCAL: Final = re.compile(r"#/(\$defs|definitions)/([^/]+)")


class Removed(Struct, frozen=True):
    """A name that is no longer required: the JSON path of the object's schema, the name, and why."""

    path: str
    name: str
    reason: str


class Filtered(Struct, frozen=True):
    """A schema, and the required names that were removed from it."""

    schema: Schema
    removed: tuple[Removed, ...] = ()


class _Position(NamedTuple):
    """Where a schema is, as a chain up to the root: a path is only built if it is needed."""

    above: _Position | None = None
    steps: tuple[Step, ...] = ()
    depth: int = 0
    in_definitions: bool = False

    def below(self, *steps: Step) -> _Position:
        return _Position(self, steps, self.depth + 1, self.in_definitions or steps[0] in DEFINITIONS)

    def path(self) -> tuple[Step, ...]:
        parts: list[tuple[Step, ...]] = []
        position: _Position | None = self
        while position is not None:
            parts.append(position.steps)
            position = position.above
        return tuple(step for steps in reversed(parts) for step in steps)


class _Cut(NamedTuple):
    """The names to remove from one schema, with the reasons."""

    position: _Position
    reasons: dict[str, str]


def filter_required(schema: Schema, *, aggressive: bool = False) -> Filtered:
    """The schema with `required` cut down to what really is (R-002-3).

    `aggressive` believes more phrases and removes every boolean, as some translators do (R-002 T1).
    """
    cuts = _Walk(schema, aggressive).cuts()
    if not cuts:
        return Filtered(schema)
    removed: list[Removed] = []
    copies: dict[int, Any] = {}
    root: Schema = _own(schema, copies)
    for cut in cuts:
        path = cut.position.path()
        _cut(_copy_at(root, path, copies), cut.reasons)
        where = json_path("$", path)
        removed += [Removed(where, name, reason) for name, reason in cut.reasons.items()]
    return Filtered(root, tuple(removed))


def _copy_at(root: Schema, path: tuple[Step, ...], copies: dict[int, Any]) -> Schema:
    """The schema at a path, in a copy that shares with the original whatever is not on such a path."""
    node: Any = root
    for step in path:
        node[step] = _own(node[step], copies)
        node = node[step]
    found: Schema = node
    return found


def _own(node: Any, copies: dict[int, Any]) -> Any:
    """A container that may be changed: itself if it is already a copy."""
    if id(node) in copies:
        return node
    copy = node.copy()
    copies[id(copy)] = copy
    return copy


def _cut(node: Schema, names: dict[str, str]) -> None:
    kept = [name for name in node["required"] if name not in names]
    if kept:
        node["required"] = kept
    else:
        del node["required"]


class _Walk:
    """One pass over a schema that finds what to remove. It looks only where the grammar has schemas."""

    def __init__(self, root: Schema, aggressive: bool) -> None:
        self._root = root
        self._aggressive = aggressive
        self._phrase_pattern = AGGRESSIVE_PHRASE_PATTERN if aggressive else PHRASE_PATTERN
        self._untouched: list[Any] = []
        self._null_references: dict[str, bool] = {}

    def cuts(self) -> list[_Cut]:
        found: list[_Cut] = []
        stack: list[tuple[Any, _Position]] = [(self._root, _Position())]
        while stack:
            node, position = stack.pop()
            if not isinstance(node, dict) or position.depth > MAX_DEPTH:
                continue
            reasons = self._optional_names(node)
            if reasons:
                found.append(_Cut(position, reasons))
            stack += reversed([(below, position.below(*steps)) for steps, below in self._subschemas(node)])
        return self._safe(found)

    def _subschemas(self, node: Schema) -> Iterator[tuple[tuple[Step, ...], Any]]:
        self._untouched += [node[keyword] for keyword in STRICTER_WHEN_LOOSENED if keyword in node]
        for keyword in MAPS:
            if isinstance(below := node.get(keyword), dict):
                yield from (((keyword, name), schema) for name, schema in below.items())
        for keyword in LISTS:
            if isinstance(below := node.get(keyword), list) and self._may_loosen(keyword, below):
                yield from (((keyword, index), schema) for index, schema in enumerate(below))
        yield from (((keyword,), node[keyword]) for keyword in SINGLES if isinstance(node.get(keyword), dict))

    def _safe(self, cuts: list[_Cut]) -> list[_Cut]:
        """The cuts, except those that a schema which may not be loosened would reach through a reference."""
        if not cuts or not any(_references(self._untouched)):
            return cuts
        if all(LOCAL.match(reference) for reference in _references(self._root)):
            return [cut for cut in cuts if not cut.position.in_definitions]
        return []

    # --- one parameter ------------------------------------------------------------------------------

    def _optional_names(self, node: Schema) -> dict[str, str]:
        """The required names of an object that may be left out, with the reasons."""
        required, properties = node.get("required"), node.get("properties")
        if not isinstance(properties, dict) or not _is_names(required):
            return {}
        reasons = {name: self._reason(properties.get(name)) for name in required}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _reason(self, parameter: Any) -> str | None:
        """Why a parameter may be left out; None if it may not."""
        if not isinstance(parameter, dict):
            return None
        if "default" in parameter:
            return "has a default"
        if self._is_nullable(parameter):
            return "may be null"
        if self._aggressive and parameter.get("type") == "boolean":
            return "is a boolean"
        description = parameter.get("description")
        phrase = self._phrase(description) if isinstance(description, str) else None
        return None if phrase is None else f'its description says "{phrase}"'

    def _is_nullable(self, parameter: Schema) -> bool:
        """Whether a parameter may be null: it says so itself, in a branch, or in what one of them refers to."""
        schemas = [parameter, *_branches(parameter)]
        if any(_says_null(schema) for schema in schemas):
            return True
        return any(self._refers_to_null(schema["$ref"]) for schema in schemas if isinstance(schema.get("$ref"), str))

    def _refers_to_null(self, reference: str) -> bool:
        if reference not in self._null_references:
            self._null_references[reference] = self._reaches_null(reference)
        return self._null_references[reference]

    def _reaches_null(self, reference: str) -> bool:
        """Whether a definition may be null, through the references of its own too. Long chains are not followed."""
        seen: set[str] = set()
        waiting = [reference]
        while waiting and len(seen) < MAX_REFERENCES:
            name = waiting.pop()
            target = local_reference(self._root, name) if name not in seen else None
            seen.add(name)
            if not isinstance(target, dict):
                continue
            schemas = [target, *itertools.islice(_branches(target), MAX_BRANCHES)]
            if any(_says_null(schema) for schema in schemas):
                return True
            waiting += [schema["$ref"] for schema in schemas if isinstance(schema.get("$ref"), str)]
        return False

    def _phrase(self, description: str) -> str | None:
        for match in self._phrase_pattern.finditer(description):
            if match["negation"] is None:
                return " ".join(match["phrase"].lower().split())
        return None

    # --- unions -------------------------------------------------------------------------------------

    def _may_loosen(self, keyword: str, branches: list[Any]) -> bool:
        """Whether branches may accept more: always but in a `oneOf`, where two could come to accept the same."""
        if keyword != "oneOf" or self._are_distinct([self._target(branch) for branch in branches]):
            return True
        self._untouched += branches
        return False

    def _are_distinct(self, branches: list[Any]) -> bool:
        """Whether no two branches accept the same array or object, whatever they require."""
        # `required` applies only to objects.
        if sum(_may_be(branch, "array") for branch in branches) > 1:
            return False
        objects = [branch for branch in branches if _may_be(branch, "object")]
        return len(objects) < 2 or self._has_discriminator(objects)

    def _has_discriminator(self, branches: list[Any]) -> bool:
        """Whether some property stays required in every branch, with values that no two of them share."""
        tags = [self._tags(branch) for branch in branches]
        for name in tags[0]:
            if not all(name in tag for tag in tags):
                continue
            values = [value for tag in tags for value in tag[name]]
            if len(set(values)) == len(values):
                return True
        return False

    def _tags(self, branch: Any) -> dict[str, frozenset[str]]:
        """The strings that each property may be, for those that stay required and say so."""
        properties = branch.get("properties") if isinstance(branch, dict) else None
        if not isinstance(properties, dict) or not _is_names(branch.get("required")):
            return {}
        optional = self._optional_names(branch)
        required = [name for name in branch["required"] if name not in optional]
        tags = {name: _strings(properties.get(name)) for name in required}
        return {name: values for name, values in tags.items() if values}

    def _target(self, branch: Any) -> Any:
        """What a branch says, where it is a reference to a definition of the root."""
        reference = branch.get("$ref") if isinstance(branch, dict) else None
        local = LOCAL.fullmatch(reference) if isinstance(reference, str) else None
        definitions = self._root.get(local[1]) if local is not None else None
        return definitions.get(local[2]) if local is not None and isinstance(definitions, dict) else branch


def _is_names(required: Any) -> TypeGuard[list[str]]:
    return isinstance(required, list) and all(isinstance(name, str) for name in required)


def _branches(schema: Schema) -> Iterator[Schema]:
    """The schemas of which a value need fit only one; and the one of an `allOf` that has no other."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and (keyword != "allOf" or len(branches) == 1):
            yield from (branch for branch in branches if isinstance(branch, dict))


def _says_null(schema: Schema) -> bool:
    types = schema.get("type")
    return (
        schema.get("nullable") is True
        or types == "null"
        or (isinstance(types, list) and "null" in types)
        or ("const" in schema and schema["const"] is None)
        or (isinstance(schema.get("enum"), list) and any(value is None for value in schema["enum"]))
    )


def _may_be(branch: Any, type: str) -> bool:
    """Whether a schema could accept a value of a type, judged by `type`."""
    types = branch.get("type") if isinstance(branch, dict) else None
    return type in types if isinstance(types, list) else types in (None, type)


def _strings(parameter: Any) -> frozenset[str]:
    """The only values of a parameter, where all of them are strings."""
    if not isinstance(parameter, dict):
        return frozenset()
    values = [parameter["const"]] if "const" in parameter else parameter.get("enum")
    are_strings = isinstance(values, list) and all(isinstance(value, str) for value in values)
    return frozenset(values) if are_strings and values else frozenset()


def _references(root: Any) -> Iterator[str]:
    """Every reference in a document."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield from (node[key] for key in REFERENCES if isinstance(node.get(key), str))
            stack += node.values()
        elif isinstance(node, list):
            stack += node

"""Arguments against the JSON Schema of their tool.

Law: nothing is fetched, no pattern and no schema makes it slow, and a mismatch never quotes the arguments.
The validator tries every branch of a union, so a schema that branches again and again costs exponential
time on arguments of moderate depth. The steps are counted first, and such a pair is refused.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.errors import InputError, LimitError
from toolglot.jsontext import json_path
from toolglot.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    import jsonschema_rs

MAX_MISMATCHES: Final = 20
MISMATCH_CHARACTERS: Final = 200
BACKTRACKING: Final = 1_000
"""Steps that a pattern with look-around may take back; all other patterns run in linear time."""
MAX_VISITS: Final = 20_000
"""How often a schema that branches may be entered for one value."""
MAX_SCHEMA_NODES: Final = 20_000
MAX_COST: Final = 5_000_000
"""The largest list of a schema (an enum, required names, branches) times the values to check against it."""
LISTED_COST: Final = 100_000
"""Beyond this cost only the first mismatch is listed: each could be as long as the list."""
MAX_FLAT: Final = 100
_NAMES: Final = frozenset({str})
_SCALARS: Final = frozenset({str, bool, type(None)})
CACHED_BYTES: Final = 65_536
"""Larger schemas are compiled anew each time, not kept."""


class Mismatch(Struct, frozen=True):
    """Where arguments and schema disagree. The message never quotes a value of the arguments."""

    path: str
    message: str
    keyword: str
    schema_path: str


class _CompiledSchema(NamedTuple):
    validator: jsonschema_rs.Validator
    schema: Any
    branches: bool
    """Whether it may be entered too often, so that the visits must be counted first."""
    weight: int
    """The size of its largest list."""


def validate(
    arguments: dict[str, Any],
    schema: dict[str, Any] | bool,
    *,
    limits: Limits = DEFAULT_LIMITS,
    path: str = "$",
) -> tuple[Mismatch, ...]:
    """Where arguments and their JSON Schema disagree: the first 20 mismatches, none if they agree."""
    return Validator(schema, limits=limits).mismatches(arguments, path=path)


class Validator:
    """A JSON Schema, compiled once to check many arguments."""

    def __init__(self, schema: dict[str, Any] | bool, *, limits: Limits = DEFAULT_LIMITS) -> None:
        # The validator recurses, so that no limit of the caller may let it go deeper than a parser does.
        self._limits = msgspec.structs.replace(limits, max_depth=min(limits.max_depth, jsontext.PARSER_DEPTH))
        plain = jsontext.clone(schema, limits=self._limits, path="$")
        if plain.nodes > MAX_SCHEMA_NODES:
            raise LimitError(f"the schema has more than {MAX_SCHEMA_NODES} values", hint="simplify it")
        encoded = msgspec.json.encode(plain.value)
        self._compiled = _compile_cached(encoded) if len(encoded) <= CACHED_BYTES else _compile(encoded)

    def mismatches(self, arguments: dict[str, Any], *, path: str = "$") -> tuple[Mismatch, ...]:
        """Where arguments and the schema disagree: the first 20 mismatches, none if they agree."""
        compiled = self._compiled
        instance = _flat_clone(arguments, self._limits) or jsontext.clone(arguments, limits=self._limits, path=path)
        cost = compiled.weight * instance.nodes
        if cost > MAX_COST:
            raise LimitError("the arguments are too large for a schema with such long lists", path=path)
        if compiled.branches and _Counter(compiled.schema).visits(instance.value) > MAX_VISITS:
            raise LimitError("the schema branches too often to be checked", path=path, hint="simplify its unions")
        try:
            compiled.validator.validate(instance.value)
        except ValueError as first:
            found = compiled.validator.iter_errors(instance.value) if cost <= LISTED_COST else (first,)
            return tuple(_mismatch(error, path) for error in itertools.islice(found, MAX_MISMATCHES))
        return ()


def _flat_clone(arguments: dict[str, Any], limits: Limits) -> jsontext.Cloned | None:
    """The clone of arguments that are plain JSON without nesting, as most are; None if they may be more than that."""
    if type(arguments) is not dict or not _SCALARS.issuperset(map(type, arguments.values())):
        return None
    if not _NAMES.issuperset(map(type, arguments)) or len(arguments) >= min(limits.max_nodes, MAX_FLAT):
        return None
    strings = "".join([*arguments, *[value for value in arguments.values() if type(value) is str]])
    if not strings.isascii() or len(strings) > limits.max_bytes:
        return None
    return jsontext.Cloned(arguments, (), 1 + len(arguments), len(strings))


def _weight(schema: Any) -> int:
    """The size of the largest list in a schema, with what its entries hold."""
    heaviest = 1
    stack = [schema]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            stack += part.values()
        elif type(part) is list:
            heaviest = max(heaviest, jsontext.clone(part).nodes)
    return heaviest


def _compile(encoded: bytes) -> _CompiledSchema:
    """A compiled schema that fetches nothing: neither over a network nor from a file."""
    import jsonschema_rs  # noqa: PLC0415 - most conversations never need it

    schema = jsontext.parse(encoded).value
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKING)
    try:
        validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns, mask="the value")
    except ValueError as error:
        where = json_path("$", getattr(error, "instance_path", ()))
        message = f"the schema is invalid: {getattr(error, 'message', error)!s:.{MISMATCH_CHARACTERS}}"
        hint = "only references inside it are followed" if "Resource" in message else "see its JSON Schema draft"
        raise InputError(message, path=where, hint=hint) from None
    return _CompiledSchema(validator, schema, _Counter(schema).visits() > MAX_VISITS, _weight(schema))


_compile_cached = functools.lru_cache(maxsize=256)(_compile)


def _mismatch(error: Any, path: str) -> Mismatch:
    message = f"{error.message:.{MISMATCH_CHARACTERS}}"
    schema_pointer = json_path("$", error.schema_path)
    return Mismatch(json_path(path, error.instance_path), message, error.kind.name, schema_pointer)


# --- counting ---------------------------------------------------------------------------------------

_HERE: Final = ("not", "if", "then", "else")
_HERE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_HERE_TABLES: Final = ("dependentSchemas", "dependencies")
_INSIDE: Final = (
    "items",
    "contains",
    "additionalItems",
    "unevaluatedItems",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
)
_INSIDE_LISTS: Final = ("items", "prefixItems")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")

_ANYTHING: Final = object()
"""Means every possible value."""
_UNKNOWN: Final = object()
"""The target of a reference that cannot be followed here: its cost is unknown."""


class _Counter:
    """How often schemas are entered to check a value, at most. Beyond `MAX_VISITS` it stops counting."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._anchors = dict(_anchors(root))
        self._referred_to: dict[str, Any] = {}

    def visits(self, value: Any = _ANYTHING) -> int:
        """The visits for a value; for any value, a schema that comes back to itself counts as too many."""
        if type(self._root) is not dict:
            return 1
        counts: dict[tuple[int, int], int] = {}
        entered: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
        stack: list[tuple[Any, Any, bool]] = [(self._root, value, False)]
        while stack and len(counts) <= MAX_VISITS:
            schema, held, is_done = stack.pop()
            visit = (id(schema), id(held))
            if is_done:
                inner = sum(counts[id(part), id(child)] for part, child in entered.pop(visit))
                counts[visit] = min(1 + inner, MAX_VISITS + 1)
            elif schema is _UNKNOWN or (visit in entered and value is _ANYTHING):
                break
            elif visit not in counts:
                counts[visit] = 0
                entered[visit] = [pair for pair in self._entered_schemas(schema, held) if type(pair[0]) is not bool]
                stack.append((schema, held, True))
                stack += [(part, child, False) for part, child in entered[visit]]
        else:
            return counts[id(self._root), id(value)] if not stack else MAX_VISITS + 1
        return MAX_VISITS + 1

    def _entered_schemas(self, schema: Any, value: Any) -> Iterator[tuple[Any, Any]]:
        """The schemas that are entered from this one, with the values that they are entered for."""
        for keyword in _REFERENCES:
            if keyword in schema:
                yield self._resolve_reference(schema[keyword]), value
        here = [schema[keyword] for keyword in _HERE if keyword in schema]
        here += [branch for keyword in _HERE_LISTS for branch in _list(schema, keyword)]
        here += [branch for keyword in _HERE_TABLES for branch in _table(schema, keyword).values()]
        yield from ((part, value) for part in here)
        inside = [schema[keyword] for keyword in _INSIDE if type(schema.get(keyword)) is dict]
        inside += [part for keyword in _INSIDE_LISTS for part in _list(schema, keyword)]
        inside += _table(schema, "patternProperties").values()
        properties = _table(schema, "properties")
        if value is _ANYTHING:
            yield from ((part, value) for part in (*inside, *properties.values()))
        elif type(value) is dict:
            yield from ((properties[key], child) for key, child in value.items() if key in properties)
            yield from ((part, child) for child in value.values() for part in inside)
        elif type(value) is list:
            yield from ((part, child) for child in value for part in inside)

    def _resolve_reference(self, reference: object) -> Any:
        name = str(reference)
        if name not in self._referred_to:
            found = jsontext.local_reference(self._root, reference)
            self._referred_to[name] = self._anchors.get(name, _UNKNOWN) if found is None else found
        return self._referred_to[name]


def _anchors(root: Any) -> Iterator[tuple[str, Any]]:
    """Every part of a schema that has an anchor."""
    stack = [root]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            yield from ((f"#{part[keyword]}", part) for keyword in _ANCHORS if keyword in part)
            stack += part.values()
        elif type(part) is list:
            stack += part


def _list(schema: dict[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if type(found) is list else []


def _table(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    found = schema.get(keyword)
    return found if type(found) is dict else {}

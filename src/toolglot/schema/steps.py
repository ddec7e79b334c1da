"""How one schema node becomes one that the target accepts: ordered steps, each for one demand of a profile.

First the rewrites, until none applies: they express the same in other keywords, and one may enable another.
Then, once each: values, bounds, tuples, objects; what is still refused moves into the description; what must not
be missing is added; the schemas inside come last.

Law: every step widens the schema or keeps its meaning, and none narrows it. There is one exception, which is
reported: if the target demands a type and there is none, the type is assumed from the keywords beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from toolglot.profiles.rules import SchemaRules
from toolglot.schema.fitness import NOT_AT_ROOT, has_constraint, is_null
from toolglot.schema.keywords import (
    ANNOTATIONS,
    DEFINITIONS,
    OF_TYPE,
    RIGID,
    SILENT,
    Schema,
    of_type,
    type_of,
    types_of,
)
from toolglot.schema.merging import LOST, Conjunction, merge, product
from toolglot.schema.node_repair import repair_node
from toolglot.schema.references import LEAVE_OUT, LEFT_OUT, NEVER, TOO_LARGE, OpenedSchema, ReferenceChain, Work
from toolglot.schema.unions import is_object, unite
from toolglot.schema.wording import BOUNDS, alternatives, between, describe, kind, sentence

PLACEHOLDER: Final = "any_key"
"""The name of the property that is added to an object that must have one and has none."""

PLACEHOLDER_SCHEMA: Final = {"type": "string", "description": "Stands for any key; leave it out."}

MAX_REWRITES: Final = 100
MAX_UNIONS: Final = 8
"""Unions inside each other at the root."""


def lower_node(work: Work, schema: Any, node: OpenedSchema) -> Schema:
    """The schema, lowered to one that the target accepts."""
    size = 0 if node.is_root else work.fit.size(schema, node.depth)
    if size and work.spend(size):
        found: Schema = schema
        return found
    if node.depth > work.deepest or not work.spend():
        node.drop("", TOO_LARGE, LEFT_OUT)
        node.out = widest(work.rules) if work.rules.type_required else {}
        return _finish(work, node)
    if schema is False:
        node.drop("false", NEVER, LEAVE_OUT)
    elif schema is not True:
        node.folds = isinstance(schema, Conjunction)
        node.out = repair_node(schema, lambda keyword, reason: work.lose((*node.path, keyword), keyword, reason))
    _rewrite(work, node)
    for step in _STEPS:
        step(work, node)
    return _finish(work, node)


# --- rewrites -----------------------------------------------------------------------------------------


def _rewrite(work: Work, node: OpenedSchema) -> None:
    for _ in range(MAX_REWRITES):
        if not any(rewrite(work, node) for rewrite in _REWRITES):
            return
    node.out = {}
    node.drop("", TOO_LARGE, LEFT_OUT)


def _open_references(work: Work, node: OpenedSchema) -> bool:
    """`$ref` and `allOf` where they are not understood."""
    out = node.out
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if out.pop(keyword, None) is not None:
            node.drop(keyword, "only plain references can be followed")
    plain_root = node.is_root and not work.rules.root_union
    folds = "allOf" in out and (plain_root or node.folds or not work.fit.accepts("allOf"))
    follows = "$ref" in out and (node.is_root or folds or not work.keeps_reference(out))
    if not folds and not follows:
        return False
    rest = {} if folds else {"allOf": out.pop("allOf")} if "allOf" in out else {}
    node.out = work.open_schema(out, node, node.path)
    if rest:
        node.out["allOf"] = [*rest["allOf"], *node.out.pop("allOf", ())]
    return True


def _one_of(work: Work, node: OpenedSchema) -> bool:
    """`oneOf` where it is not understood, or where its branches would no longer exclude each other."""
    out = node.out
    if "oneOf" not in out or (
        work.fit.accepts("oneOf") and all(work.fit.is_rigid(branch, node.depth + 1) for branch in out["oneOf"])
    ):
        return False
    branches = out.pop("oneOf")
    node.drop("oneOf", "became anyOf")
    merged = product(out["anyOf"], branches) if "anyOf" in out else branches
    if merged is LOST:
        node.drop("oneOf", "two unions cannot be merged; the first was kept")
    else:
        out["anyOf"] = merged
    return True


def _plain_root(work: Work, node: OpenedSchema) -> bool:
    """A root that must be a plain object: its unions merged."""
    out = node.out
    if not node.is_root or work.rules.root_union or not any(keyword in out for keyword in NOT_AT_ROOT):
        return False
    for keyword in ("enum", "const", "not"):
        if keyword in out:
            node.drop(keyword, "not allowed at the root", sentence(keyword, out.pop(keyword)))
    for keyword in ("anyOf", "oneOf"):
        if keyword in out:
            opened = [_flatten(work, node, branch, 0) for branch in out.pop(keyword) if branch is not False]
            branches = [branch for branch in opened if is_object(branch)]
            note = alternatives(branches)
            node.drop(keyword, "the root may not be a union; its branches were merged", note)
            if branches:
                out = merge(out, unite(branches), node.drop)
    node.out = out
    return True


def _flatten(work: Work, node: OpenedSchema, branch: Any, depth: int) -> Schema:
    """A branch of a root union without unions of its own."""
    out = work.open_schema(branch, node, node.path, chain=ReferenceChain(is_aside=True))
    for keyword in ("anyOf", "oneOf"):
        inner = [below for below in out.pop(keyword, ()) if below is not False]
        if depth < MAX_UNIONS:
            branches = [flat for flat in (_flatten(work, node, below, depth + 1) for below in inner) if is_object(flat)]
            if branches:
                out = merge(out, unite(branches), node.drop)
    return out


def _constant(work: Work, node: OpenedSchema) -> bool:
    out = node.out
    if "const" not in out or (work.fit.accepts("const") and work.rules.enum_types == "any"):
        return False
    node.out = merge(out, {}, node.drop)
    return True


def _typed_values(work: Work, node: OpenedSchema) -> bool:
    """Where only strings can be listed, or a type is demanded: what a list of values says of the type."""
    out, rules = node.out, work.rules
    if "enum" not in out or (rules.enum_types == "any" and not rules.type_required):
        return False
    changed = "type" not in out
    if changed:
        types = list(dict.fromkeys(type_of(value) for value in out["enum"]))
        out["type"] = types[0] if len(types) == 1 else types
    plain = [value for value in out["enum"] if value is not None]
    are_strings = bool(plain) and "string" in types_of(out) and all(type(value) is str for value in plain)
    if rules.enum_types == "any" or are_strings:
        return changed
    node.drop("enum", "only strings can be listed", sentence("enum", out.pop("enum")))
    return True


def _null(work: Work, node: OpenedSchema) -> bool:
    """Null as a type, where `nullable` is the way to allow it."""
    out = node.out
    if not work.rules.nullable:
        return False
    types = types_of(out)
    changed = False
    if len(types) > 1 and "null" in types:
        rest = [name for name in types if name != "null"]
        out["type"] = rest[0] if len(rest) == 1 else rest
        out["nullable"] = changed = True
    if None in out.get("enum", ()):
        out["enum"] = [value for value in out["enum"] if value is not None] or [None]
        changed = out["enum"] != [None]
    if any(map(is_null, out.get("anyOf", ()))):
        rest_of = [branch for branch in out.pop("anyOf") if not is_null(branch)]
        if rest_of:
            out["anyOf"] = rest_of
            out["nullable"] = True
        elif not types:
            out["type"] = "null"
        changed = True
    return changed


def _split_types(work: Work, node: OpenedSchema) -> bool:
    """A list of types, where it is refused, as a union."""
    out, types = node.out, types_of(node.out)
    if type(out.get("type")) is not list or (work.rules.type_lists and len(types) > 1):
        return False
    types = tuple(name for name in types if name != "integer" or "number" not in types)
    if len(types) == 1:
        out["type"] = types[0]
        return True
    common = {keyword: value for keyword, value in out.items() if keyword in ANNOTATIONS}
    own = {keyword: value for keyword, value in out.items() if keyword not in ANNOTATIONS}
    branches = [branch for branch in (_of_one_type(own, name) for name in types) if branch is not None]
    node.out = {**common, "anyOf": branches or [{"type": name} for name in types]}
    return True


def _of_one_type(own: Schema, name: str) -> Schema | None:
    """What a schema says of the values of one type; None: none of its listed values has it."""
    out = {keyword: value for keyword, value in own.items() if of_type(keyword, name)}
    out["type"] = name
    if "enum" in out:
        out["enum"] = [
            value for value in out["enum"] if type_of(value) in ("integer" if name == "number" else name, name)
        ]
        return out if out["enum"] else None
    return out


def _union(work: Work, node: OpenedSchema) -> bool:
    """A union of one; a union beside keywords that must be in its branches."""
    out, rules = node.out, work.rules
    if "anyOf" not in out:
        return False
    if not work.fit.accepts("anyOf"):
        node.drop(
            "anyOf", "unions are not understood", f"one of: {' | '.join(kind(b) for b in out.pop('anyOf')[:8])}"[:200]
        )
        return True
    restrained = rules.nullable or rules.type_required or not rules.union_with_type
    branches = out["anyOf"]
    if restrained and len(branches) == 1:
        del out["anyOf"]
        node.out = merge(out, work.open_schema(branches[0], node, (*node.path, "anyOf", 0)), node.drop)
        return True
    if not has_constraint(out, "anyOf") or not (rules.type_required or ("type" in out and not rules.union_with_type)):
        return False
    own = {keyword: value for keyword, value in out.items() if keyword not in ANNOTATIONS and keyword != "anyOf"}
    node.out = {keyword: value for keyword, value in out.items() if keyword in ANNOTATIONS}
    node.out["anyOf"] = [Conjunction(allOf=[own, branch]) for branch in branches if branch is not False] or [own]
    return True


_REWRITES: Final[tuple[Callable[[Work, OpenedSchema], bool], ...]] = (
    _open_references,
    _plain_root,
    _one_of,
    _constant,
    _typed_values,
    _null,
    _split_types,
    _union,
)


# --- steps --------------------------------------------------------------------------------------------


def _rigid_parts(work: Work, node: OpenedSchema) -> None:
    """What may not be widened stays as it is, or goes."""
    out = node.out
    for keyword in RIGID:
        if out.get(keyword) is True:
            out[keyword] = {}
        if keyword in out and not work.fit.is_rigid(out[keyword], node.depth + 1):
            node.drop(keyword, "it cannot be kept as it is", sentence(keyword, out.pop(keyword)))
    if "if" not in out:
        for keyword in ("then", "else"):
            out.pop(keyword, None)
    if "contains" not in out:
        for keyword in ("minContains", "maxContains"):
            out.pop(keyword, None)
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        # What counts as evaluated changes with almost every other step.
        if keyword in out:
            node.drop(keyword, "it cannot be kept where a schema is rewritten", sentence(keyword, out.pop(keyword)))


def _bounds(work: Work, node: OpenedSchema) -> None:
    """Exclusive bounds as inclusive ones: exact for integers, wider for other numbers."""
    out = node.out
    is_whole = types_of(out) == ("integer",)
    for exclusive, plain, pick, sign in (
        ("exclusiveMinimum", "minimum", max, 1),
        ("exclusiveMaximum", "maximum", min, -1),
    ):
        if exclusive not in out or work.fit.accepts(exclusive) or not work.fit.accepts(plain):
            continue
        value = out.pop(exclusive)
        if is_whole:
            bound = sign * (math.floor(sign * value) + 1)
        else:
            bound = value
            node.drop(exclusive, f"became {plain}", sentence(exclusive, value))
        out[plain] = pick(out.get(plain, bound), bound)


def _format(work: Work, node: OpenedSchema) -> None:
    value = node.out.get("format")
    if value is not None and not work.fit.takes_format(value, types_of(node.out)):
        del node.out["format"]
        node.drop("format", "this format is not accepted", sentence("format", value))


def _tuple(work: Work, node: OpenedSchema) -> None:
    """`prefixItems`, or `items` as a list: written as the target has it, or as a list of any of them."""
    out, written = node.out, work.rules.tuple_items
    is_old = type(out.get("items")) is list
    if not is_old and "prefixItems" not in out:
        if out.pop("additionalItems", None) is not None:
            node.drop("additionalItems", "it means nothing without a list of items")
        return
    positions = out.pop("items") if is_old else out.pop("prefixItems")
    rest = out.pop("additionalItems", True) if is_old else out.pop("items", True)
    if written == "no":
        note = f"in this order: {', '.join(kind(each) for each in positions[:12])}"
        node.drop("items", "a type for each position of a list cannot be expressed", note if len(note) <= 200 else None)
        if rest is False:
            out["maxItems"] = min(out.get("maxItems", len(positions)), len(positions))
        options = [*positions, *([] if rest is False else [rest])]
        is_open = any(option is True or option == {} for option in options)
        out["items"] = {} if is_open else options[0] if len(options) == 1 else {"anyOf": options}
        return
    out["items" if written == "items" else "prefixItems"] = positions
    if rest is not True:
        _limit_rest(work, node, rest, len(positions))


def _limit_rest(work: Work, node: OpenedSchema, rest: Any, positions: int) -> None:
    """What may come after the fixed positions."""
    if work.rules.tuple_items == "items":
        node.out["additionalItems"] = rest
    elif rest is False:
        node.out["maxItems"] = min(node.out.get("maxItems", positions), positions)
    else:
        node.out["items"] = rest


def _properties(work: Work, node: OpenedSchema) -> None:
    """Names that the target refuses, keys by pattern, and required names that nothing describes."""
    out = node.out
    properties = out.get("properties", {})
    illegal = [name for name in properties if not work.fit.is_legal(name)]
    never = [name for name, held in properties.items() if held is False and name not in out.get("required", ())]
    if illegal or never:
        gone = {*illegal, *never}
        out["properties"] = {name: held for name, held in properties.items() if name not in gone}
        if "propertyOrdering" in out:
            out["propertyOrdering"] = [name for name in out["propertyOrdering"] if name not in gone]
        for name in illegal:
            note = f"also takes {name}: {kind(properties[name])}"
            node.drop("properties", f"the name {name[:80]!a} is not accepted", note if len(note) <= 200 else None)
    for name in never:
        node.drop("properties", f"{name[:80]!a} must not be present, which cannot be expressed")
    if "required" in out and (illegal or work.rules.required_defined):
        _define_required(work, node, illegal)
    open_for = "patternProperties" if _has_lost_patterns(work, out) else "properties" if illegal else ""
    if open_for and out.pop("additionalProperties", True) is not True:
        node.drop("additionalProperties", f"it would forbid what {open_for} allowed")


def _has_lost_patterns(work: Work, out: Schema) -> bool:
    return "patternProperties" in out and not work.fit.accepts("patternProperties")


def _define_required(work: Work, node: OpenedSchema, illegal: list[str]) -> None:
    out = node.out
    out["required"] = [name for name in out["required"] if name not in illegal]
    if not work.rules.required_defined:
        return
    out["required"] = [name for name in out["required"] if work.fit.is_legal(name)]
    missing = [name for name in out["required"] if name not in out.get("properties", ())]
    if missing:
        out["properties"] = {**out.get("properties", {}), **{name: {} for name in missing}}
    if not out["required"]:
        del out["required"]


def _drop_refused(work: Work, node: OpenedSchema) -> None:
    """Drop what the target does not accept, and describe it in words where possible."""
    out = node.out
    for low, high, unit in BOUNDS:
        if low in out and high in out and not work.fit.accepts(low) and not work.fit.accepts(high):
            note = between(out.pop(low), out.pop(high), unit)
            node.drop(low, "this keyword is not accepted", note)
            node.drop(high, "this keyword is not accepted", note)
    for keyword in [keyword for keyword in out if not _stays(work, node, keyword)]:
        value = out.pop(keyword)
        if keyword in DEFINITIONS or (keyword == "additionalProperties" and value is True):
            continue
        words = None if keyword in SILENT else sentence(keyword, value)
        node.drop(keyword, "this keyword is not accepted", words)


def _stays(work: Work, node: OpenedSchema, keyword: str) -> bool:
    if keyword in DEFINITIONS:
        return node.is_root and work.fit.refs and work.fit.accepts(keyword)
    # A schema that was rewritten is written for the target, whatever draft it was written for.
    return work.fit.accepts(keyword) and keyword != "$schema"


def _type(work: Work, node: OpenedSchema) -> None:
    """The type, where one is demanded."""
    out = node.out
    if node.is_root and types_of(out) != ("object",):
        if not is_object(out):
            node.drop("type", "arguments are an object", sentence("type", out["type"]))
        if work.fit.refs and work.fit.refers_to_root:
            node.drop("type", "it was missing; object was assumed, also where the root is referred to")
        out["type"] = "object"
    if not work.rules.type_required or any(keyword in out for keyword in ("type", "anyOf", "$ref")):
        return
    for name, keywords in OF_TYPE.items():
        if any(keyword in out for keyword in keywords):
            out["type"] = name
            node.drop("type", f"it was missing; {name} was assumed")
            return
    node.drop("type", "it was missing; the widest schema that can be expressed was used")
    out.update(widest(work.rules))


def widest(rules: SchemaRules) -> Schema:
    """A schema for any value, as far as a target that demands a type can express it."""
    scalars: list[Schema] = [{"type": name} for name in ("string", "number", "boolean")]
    properties = {PLACEHOLDER: dict(PLACEHOLDER_SCHEMA)} if rules.properties_non_empty else {}
    array, table = {"type": "array", "items": {"anyOf": scalars}}, {"type": "object", "properties": properties}
    if rules.nullable:
        return {"anyOf": [*scalars, array, table], "nullable": True}
    return {"anyOf": [*scalars, array, table, {"type": "null"}]}


def _shape(work: Work, node: OpenedSchema) -> None:
    """`properties` and `items`, where they must not be missing."""
    out, rules = node.out, work.rules
    types = types_of(out)
    if "object" in types and rules.properties_required:
        properties = out.setdefault("properties", {})
        if rules.properties_non_empty and not properties and not (node.is_root and work.omits_empty):
            out["properties"] = {PLACEHOLDER: dict(PLACEHOLDER_SCHEMA)}
            node.drop("properties", f"an object must have some; {PLACEHOLDER} was added")
    if "array" in types and rules.items_required and "items" not in out and "prefixItems" not in out:
        out["items"] = {}


def _inside(work: Work, node: OpenedSchema) -> None:
    """The schemas inside."""
    out = node.out
    for keyword in ("properties", "patternProperties", "dependentSchemas", *DEFINITIONS):
        if keyword in out:
            out[keyword] = {name: _below(work, node, held, keyword, name) for name, held in out[keyword].items()}
    for keyword in ("anyOf", "allOf", "prefixItems", "items"):
        if type(out.get(keyword)) is list:
            out[keyword] = [_below(work, node, held, keyword, index) for index, held in enumerate(out[keyword])]
    for keyword in ("items", "propertyNames", "then", "else", "additionalProperties", "additionalItems"):
        held = out.get(keyword)
        if type(held) is dict or (type(held) is bool and not keyword.startswith("additional")):
            out[keyword] = _below(work, node, held, keyword)
    if "dependencies" in out:
        out["dependencies"] = {
            name: held if type(held) is list else _below(work, node, held, "dependencies", name)
            for name, held in out["dependencies"].items()
        }


def _below(work: Work, node: OpenedSchema, schema: Any, *steps: str | int) -> Schema:
    return lower_node(work, schema, OpenedSchema((*node.path, *steps), node.depth + 1, node.active))


_STEPS: Final[tuple[Callable[[Work, OpenedSchema], None], ...]] = (
    _rigid_parts,
    _bounds,
    _tuple,
    _properties,
    _type,
    _format,
    _drop_refused,
    _shape,
    _inside,
)


# --- the end ------------------------------------------------------------------------------------------


def _finish(work: Work, node: OpenedSchema) -> Schema:
    """The node with its notes; losses are reported."""
    out = node.out
    if work.rules.nullable and any(map(is_null, out.get("anyOf", ()))):
        # Only now is it known that a branch accepts nothing but null.
        rest = [branch for branch in out.pop("anyOf") if not is_null(branch)]
        out.update({"anyOf": rest, "nullable": True} if rest else {"type": "null"})
    if work.rules.nullable and types_of(out) in (("null",), ("NULL",)) and node.path[-2:-1] != ("anyOf",):
        out.update({"type": "string", "nullable": True})  # for a branch, the union has it
        node.drop("type", "null is not a type of its own here", "always null")
    notes = list(dict.fromkeys(note for _, _, note in node.dropped if note))
    text, used = describe(out.get("description", ""), notes if work.fit.accepts("description") else [])
    if notes and text:
        out["description"] = text
    kept = set(notes[:used])
    for keyword, reason, note in node.dropped:
        work.lose((*node.path, keyword) if keyword else node.path, keyword, reason, described=note in kept)
    return _alone(out) if work.rules.union_alone and "anyOf" in out and len(out) > 1 else out


def _alone(out: Schema) -> Schema:
    """A union that may have no keywords beside it: the description moves into the first branch."""
    branches: list[Schema] = []
    waiting = out["anyOf"][::-1]
    while waiting:
        branch = waiting.pop()
        if "anyOf" in branch:
            waiting += branch["anyOf"][::-1]
        else:
            branches.append(branch)
    first = dict(branches[0])
    text = " ".join(part for part in (out.get("description"), first.get("description")) if part)
    if text:
        first["description"] = text
    if out.get("nullable"):
        first["nullable"] = True
    return {"anyOf": [first, *branches[1:]]}

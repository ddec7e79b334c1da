"""Two well-formed schema nodes as one that accepts what both accept.

Law: the merged node never forbids a value that both accept. If one node cannot express both, the first stays and the
second is reported as lost: half of a conjunction is wider than all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from toolglot.schema.keywords import ANNOTATIONS, GROUPS, Schema, key_of, types_of
from toolglot.schema.node_repair import ReportLoss

MAX_BRANCHES: Final = 64
"""The maximal number of branches of two unions that are multiplied out."""

LOST: Final = object()
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")


class Conjunction(dict[str, Any]):
    """An `allOf` that is to be merged where it is visited, also for a target that understands `allOf`."""


def both(first: Any, second: Any) -> Any:
    """A schema for what two schemas accept, to be merged when it is visited."""
    if first is False or second is False:
        return False
    if second is True or second == {} or first == second:
        return first
    return second if first is True or first == {} else {"allOf": [first, second]}


def merge(first: Schema, second: Schema, report: ReportLoss) -> Schema:
    """One node for two; neither may have `$ref` or `allOf`."""
    left, right = _with_enum(first), _with_enum(second)
    out = dict(left)
    for keyword in _UNEVALUATED:
        if (out.pop(keyword, None), right.pop(keyword, None)) != (None, None):
            report(keyword, "cannot be kept where schemas are merged")
    _merge_groups(out, right, report)
    for keyword, value in right.items():
        if keyword not in out:
            out[keyword] = value
        elif keyword not in ANNOTATIONS and out[keyword] != value:
            merged = _MERGERS.get(keyword, _neither)(out[keyword], value)
            if merged is LOST:
                report(keyword, "two of them cannot be merged; the first was kept")
            else:
                out[keyword] = merged
    return out


def _with_enum(node: Schema) -> Schema:
    out = dict(node)
    if "const" in out:
        constant = out.pop("const")
        merged = _shared_values(out["enum"], [constant]) if "enum" in out else [constant]
        out["enum"] = [constant] if merged is LOST else merged
    return out


def _merge_groups(out: Schema, right: Schema, report: ReportLoss) -> None:
    """Keywords that mean something only together are taken together, from one side."""
    for group in GROUPS:
        theirs = [keyword for keyword in group if keyword in right]
        ours = [keyword for keyword in group if keyword in out]
        if not theirs or not ours or all(out.get(keyword) == right.get(keyword) for keyword in group):
            continue
        if theirs == ours == ["items"] and type(out["items"]) is not list and type(right["items"]) is not list:
            out["items"] = both(out["items"], right.pop("items"))
            continue
        for keyword in theirs:
            del right[keyword]
        report(theirs[0], "two of them cannot be merged; the first was kept")


def _neither(_: Any, __: Any) -> Any:
    return LOST


def _shared_types(first: Any, second: Any) -> Any:
    ours, theirs = types_of({"type": first}), types_of({"type": second})
    shared = [name for name in ours if name in theirs or (name == "integer" and "number" in theirs)]
    if "number" in ours and "number" not in theirs and "integer" in theirs and "integer" not in ours:
        shared.append("integer")
    return (shared[0] if len(shared) == 1 else shared) if shared else LOST


def _shared_values(first: list[Any], second: list[Any]) -> Any:
    theirs = {key_of(value) for value in second}
    return [value for value in first if key_of(value) in theirs] or LOST


def _names(first: list[str], second: list[str]) -> list[str]:
    return list(dict.fromkeys((*first, *second)))


def _tables(first: Schema, second: Schema) -> Schema:
    out = dict(first)
    for name, schema in second.items():
        out[name] = both(out[name], schema) if name in out else schema
    return out


def _name_tables(first: dict[str, list[str]], second: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: _names(first.get(name, []), second.get(name, [])) for name in _names([*first], [*second])}


def _multiple(first: Any, second: Any) -> Any:
    return math.lcm(first, second) if type(first) is int and type(second) is int else LOST


def product(first: list[Any], second: list[Any]) -> Any:
    """A value that two unions accept is accepted by a branch of each."""
    if len(first) * len(second) > MAX_BRANCHES:
        return LOST
    branches = [both(one, other) for one in first for other in second]
    return [branch for branch in branches if branch is not False] or LOST


_MERGERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "type": _shared_types,
    "enum": _shared_values,
    "required": _names,
    "additionalProperties": both,
    "propertyNames": both,
    "dependentRequired": _name_tables,
    "multipleOf": _multiple,
    "anyOf": product,
    "uniqueItems": lambda first, second: first or second,
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _tables),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}

"""The branches of a union as one object: for a root that has to be a plain object.

Law: the object accepts whatever some branch accepts. A property is required if every branch requires it; it
has the schemas that the branches give it, and any value where a branch leaves it open.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.schema.keywords import Schema, types_of
from toolglot.schema.wording import value_text

MAX_PAIRS: Final = 50_000
"""Properties times branches. Beyond this, a property that some branch does not name accepts what any other key does."""


def is_object(schema: Schema) -> bool:
    """Whether a schema accepts objects, judged by `type`."""
    return not types_of(schema) or "object" in types_of(schema)


def unite(branches: list[Schema]) -> Schema:
    """One object for several, each well-formed and without references, `allOf` or unions."""
    rests = [_rest(branch) for branch in branches]
    declared: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in branch.get("properties", {}).items():
            declared.setdefault(name, []).append(schema)
    is_small = len(declared) * len(branches) <= MAX_PAIRS
    properties = {}
    for name, schemas in declared.items():
        others = _others(name, branches, rests) if is_small else rests
        properties[name] = _any([*schemas, *others]) if len(schemas) < len(branches) else _any(schemas)
    out: Schema = {"type": "object", "properties": properties}
    shared = frozenset.intersection(*(frozenset(branch.get("required", ())) for branch in branches))
    if shared:
        out["required"] = [name for name in branches[0]["required"] if name in shared]
    if True not in rests:
        kept = [rest for rest in rests if rest is not False]
        out["additionalProperties"] = _any(kept) if kept else False
    return out


def _others(name: str, branches: list[Schema], rests: list[Any]) -> list[Any]:
    """The schemas that branches which do not name a property have for it."""
    return [rest for branch, rest in zip(branches, rests, strict=True) if name not in branch.get("properties", ())]


def _rest(branch: Schema) -> Any:
    """What a branch accepts for keys that it does not name: a schema, or whether they are allowed."""
    if "patternProperties" in branch:
        return True
    rest = branch.get("additionalProperties", True)
    return True if rest == {} else rest


def _any(options: list[Any]) -> Any:
    """A schema for what any of several accept. An open one comes last: the model reads the others first."""
    closed = [option for option in options if type(option) is not bool and option != {}]
    distinct = list({value_text(option): option for option in closed}.values())
    if any(option is True or option == {} for option in options):
        distinct.append({})
    if not distinct:
        return False
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}

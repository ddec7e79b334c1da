"""The work on one schema: its budget and what was lost; and schemas opened up, references and `allOf` gone.

Law: the result is bounded whatever the references say. A reference to what is being written out already is
cut, and so is everything once the budget is spent; what is cut stays open, so nothing becomes forbidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct

from toolglot.jsontext import json_path, local_reference
from toolglot.profiles.rules import SchemaRules
from toolglot.schema.fitness import Fitness
from toolglot.schema.keywords import ANNOTATIONS, Schema, is_types
from toolglot.schema.merging import merge
from toolglot.schema.node_repair import repair_node

MAX_NODES: Final = 4_000
"""Schemas in one lowered schema."""
MAX_SCHEMA_DEPTH: Final = 48
"""Schemas inside each other, where something has to be lowered."""
MAX_CHAIN: Final = 64
"""References and members of `allOf` from one to the next."""

TOO_LARGE: Final = "the schema is too large; this part was left open"
LEFT_OUT: Final = "details left out"
NEVER: Final = "no value is allowed here, which cannot be expressed"
LEAVE_OUT: Final = "leave this out"

Step = str | int
Path = tuple[Step, ...]


class ReferenceChain(NamedTuple):
    """How a schema is being opened: the references followed so far, and from where."""

    references: tuple[str, ...] = ()
    length: int = 0
    is_member: bool = False
    is_aside: bool = False
    """Whether the opened schema is temporary, so that schemas inside it may name the same definitions again."""

    def follow(self, reference: str) -> ReferenceChain:
        return self._replace(references=(*self.references, reference), length=self.length + 1)

    def into_member(self) -> ReferenceChain:
        return self._replace(length=self.length + 1, is_member=True)


START: Final = ReferenceChain()


class Loss(Struct, frozen=True):
    """What the target cannot express: the path in the original schema, the keyword, the reason, and whether the
    description has it instead."""

    path: str
    keyword: str
    reason: str
    described: bool = False


class OpenedSchema:
    """A schema in progress: its new form, its origin, and its notes."""

    __slots__ = ("active", "depth", "dropped", "folds", "is_root", "out", "path")

    def __init__(self, path: Path, depth: int, active: tuple[str, ...], *, is_root: bool = False) -> None:
        self.path: Path = path
        self.depth: int = depth
        self.active: tuple[str, ...] = active
        self.is_root: bool = is_root
        self.folds: bool = False
        """Whether its `allOf` was put there to be merged, even if the target accepts `allOf`."""
        self.out: Schema = {}
        self.dropped: list[tuple[str, str, str | None]] = []
        """Keyword, reason, and the note that replaces it."""

    def drop(self, keyword: str, reason: str, note: str | None = None) -> None:
        self.dropped.append((keyword, reason, note))


class Work:
    """One schema for one target."""

    def __init__(self, rules: SchemaRules, root: Any, *, omits_empty: bool = False) -> None:
        self.rules = rules
        self.omits_empty = omits_empty
        self.root = root
        self.fit: Fitness = Fitness(rules, root, moving=True)
        self.deepest: int = min(MAX_SCHEMA_DEPTH, rules.max_depth or MAX_SCHEMA_DEPTH)
        self._losses: dict[tuple[str, str, str], bool] = {}
        self._left = MAX_NODES

    def spend(self, nodes: int = 1) -> bool:
        """Spend this many schemas of the budget; False if it is exhausted."""
        if nodes > self._left:
            return False
        self._left -= nodes
        return True

    def lose(self, path: Path, keyword: str, reason: str, *, described: bool = False) -> None:
        key = (json_path("$", path), keyword, reason)
        self._losses[key] = self._losses.get(key, False) or described

    def losses(self) -> tuple[Loss, ...]:
        return tuple(Loss(*key, described) for key, described in self._losses.items())

    def open_schema(self, schema: Any, node: OpenedSchema, path: Path, *, chain: ReferenceChain = START) -> Schema:
        """A schema, repaired, without references and `allOf`: one node that accepts at least the same."""

        def report(keyword: str, reason: str) -> None:
            self.lose((*path, keyword) if keyword else path, keyword, reason)

        if schema is True:
            return {}
        if chain.length > MAX_CHAIN or not self.spend():
            node.drop("", TOO_LARGE, LEFT_OUT)
            return {}
        if schema is False:
            node.drop("false", NEVER, LEAVE_OUT)
            return {}
        out = repair_node(schema, report)
        if "$ref" in out:
            out = self._resolve_reference(out, node, path, chain)
        for index, member in enumerate(out.pop("allOf", ())):
            below = chain.into_member()
            out = merge(out, self.open_schema(member, node, (*path, "allOf", index), chain=below), report)
        return out

    def _resolve_reference(self, out: Schema, node: OpenedSchema, path: Path, chain: ReferenceChain) -> Schema:
        reference = out.pop("$ref")
        own = {keyword: value for keyword, value in out.items() if keyword in ANNOTATIONS} if self.fit.legacy else out
        target = local_reference(self.root, reference)
        if type(target) not in (dict, bool):
            node.drop("$ref", "it names nothing in this schema")
            return own
        if reference in node.active or reference in chain.references:
            node.drop("$ref", "it comes back to itself; the recursion was cut", f"recursive: {_name(reference)}")
            types = target.get("type") if type(target) is dict else None
            return own if "type" in own or not is_types(types) else {"type": types, **own}
        found = self.open_schema(target, node, tuple(_steps(reference)), chain=chain.follow(reference))
        if chain == START:
            node.path = tuple(_steps(reference))
        if not chain.is_aside:
            # Two members of an `allOf` may name each other's definitions; only the second time is a recursion.
            once = f"once:{reference}"
            node.active = (*node.active, once if chain.is_member and once not in node.active else reference)
        return merge(own, found, lambda keyword, reason: self.lose((*path, keyword), keyword, reason))

    def keeps_reference(self, out: Schema) -> bool:
        """Whether a reference can stay: it names a definition that stays, too."""
        reference = out["$ref"]
        return (
            self.fit.keeps(reference)
            and type(local_reference(self.root, reference)) is dict
            and not (self.fit.legacy and any(keyword not in ANNOTATIONS for keyword in out if keyword != "$ref"))
        )


def _name(reference: str) -> str:
    return re.sub(r"[^\w .-]", "_", reference.rsplit("/", 1)[-1])[:60] if "/" in reference else "the whole"


def _steps(reference: str) -> Iterator[Step]:
    for step in reference.split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")

"""What a check looks at, and what it finds.

A check is a function of a `RequestCase` (the view of a request and the profile it is judged by) that yields findings.
Law: a check reads the view once, so that all of them together take time in proportion to the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from toolglot.errors import QUOTED_CHARACTERS, quote
from toolglot.profiles import Profile
from toolglot.referee.paths import step
from toolglot.referee.rounds import Pairing, pair
from toolglot.referee.schema_nodes import SchemaNode, schema_nodes
from toolglot.referee.view import Message, PartView, View


class RuleBreach(Struct, frozen=True):
    """One thing that a target would refuse."""

    path: str
    message: str
    """In our own words; the provider's are used if the profile has them."""
    hint: str = ""
    shown: str = ""
    """The value for a gap in the provider's words: an id, a name, a number."""
    is_aside: bool = False
    """Whether the provider's words are about another breach of the same rule, so that ours are used."""


def short(value: object) -> str:
    """A value of any type as a finding shows it; it may nest deeper than Python can print."""
    return value[:QUOTED_CHARACTERS] if isinstance(value, str) else quote(value)


class RequestCase(Struct, frozen=True, kw_only=True):
    """A request and what it is judged by."""

    view: View
    profile: Profile
    pairing: Pairing
    thinking: str
    """The thinking mode in force: the request's, or the target's default."""
    schemas: tuple[tuple[SchemaNode, ...], ...]
    """For each tool, all schemas in its schema."""

    @property
    def ignores_fields(self) -> bool:
        """Whether the target ignores settings that it does not know."""
        return self.profile.request.unknown_fields == "ignored"

    def ignores(self, key: str) -> bool:
        """Whether the target ignores a setting that a rule refuses: it ignores what it does not know, and if that is
        only assumed, no rule states that it refuses this one."""
        if not self.ignores_fields:
            return False
        origins = self.profile.origins
        is_known = "request.unknown_fields" in origins and not origins["request.unknown_fields"].assumed
        return is_known or key not in origins or origins[key].assumed

    def has_fact(self, ending: str) -> bool:
        """Whether the profile has a fact whose id ends with this."""
        return any(fact.id.endswith(ending) for fact in self.profile.facts)

    @property
    def has_tools(self) -> bool:
        return bool(self.view.tools)


__all__ = [
    "Check",
    "Checks",
    "Findings",
    "RequestCase",
    "RuleBreach",
    "calls_of",
    "messages_with_items",
    "open_case",
    "step",
]

Findings = Iterator[RuleBreach]
Check = Callable[[RequestCase], Findings]
Checks = Mapping[str, Check]


def open_case(view: View, profile: Profile) -> RequestCase:
    return RequestCase(
        view=view,
        profile=profile,
        pairing=pair(view.messages, merges=profile.results.carrier == "block"),
        thinking=_thinking(view, profile),
        schemas=tuple(tuple(schema_nodes(tool)) for tool in view.tools or ()),
    )


def _thinking(view: View, profile: Profile) -> str:
    if view.thinking_mode is not None and isinstance(view.thinking_mode.value, str):
        return view.thinking_mode.value
    if view.effort is not None and view.effort.value == "none":
        return "off"
    return profile.reasoning.default


def messages_with_items(case: RequestCase) -> Iterator[tuple[Message, PartView]]:
    """Every part of every message, the system field first."""
    if case.view.system is not None:
        yield from ((case.view.system, item) for item in case.view.system.items)
    for message in case.view.messages:
        for item in message.items:
            yield message, item


def calls_of(message: Message) -> list[PartView]:
    return [item for item in message.items if item.kind == "call"]

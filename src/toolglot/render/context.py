"""What every pass gets besides the conversation: the target, the policies, and where to report changes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, TypeVar

from toolglot.conversation import Extra, Form, Issuer, ToolSpec, Turn
from toolglot.conversation.cache_markers import marker_fields, why_no_markers
from toolglot.conversation.field_gravity import gravity_of_field, unknown_fields
from toolglot.conversation.report import Action, Entry, Fault, Gravity, gravity_of
from toolglot.conversation.turn_memo import TurnMemo
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.turn_facts import TurnFacts

if TYPE_CHECKING:
    from toolglot.render.tools.loading import ToolLoading

T = TypeVar("T")


def unless_same(new: tuple[T, ...], old: tuple[T, ...]) -> tuple[T, ...]:
    """The new values, or the old tuple itself if every one of them is the same object."""
    if new is old or (len(new) == len(old) and all(map(operator.is_, new, old))):
        return old
    return new


class RenderContext:
    """The target, the policies and the report of one render."""

    __slots__ = (
        "_facts",
        "cache_markers",
        "destination",
        "entries",
        "has_errors",
        "has_new_ids",
        "has_placed_markers",
        "is_continued",
        "is_native",
        "keeps_items",
        "loading",
        "memo",
        "policy",
        "profile",
        "source",
        "tools",
    )

    def __init__(
        self, profile: Profile, policy: Policy, source: Profile | None, destination: Issuer | None = None
    ) -> None:
        self.is_native: bool = source is not None and source.name == profile.name
        """Whether the request goes to the provider that it was written for."""
        self.profile: Profile = profile.as_known() if self.is_native else profile
        self.policy: Policy = policy
        self.source: Profile | None = source
        """The provider for which the conversation was written, if there is one."""
        self.destination: Issuer | None = destination
        """The endpoint and account that the request goes to, as far as known."""
        self.entries: list[Entry] = []
        self.has_errors: bool = False
        """Whether a failed result was sent."""
        self.has_new_ids: bool = False
        """Whether a call is sent under another id than a client of another provider wrote."""
        self.keeps_items: bool = False
        """Whether the provider has stored its replies, so that an item can be sent by its id alone."""
        self.is_continued: bool = False
        """Whether the provider has stored the turns before these."""
        self.tools: tuple[ToolSpec, ...] = ()
        """The tools of the conversation."""
        self.loading: ToolLoading | None = None
        """The tools that are loaded later, if there are any."""
        self.cache_markers: int = 0
        """How many cache markers the conversation has, if they are carried to a target that has them."""
        self.has_placed_markers: bool = False
        """Whether cache markers were added that the client did not set."""
        self.memo: TurnMemo | None = None
        """What became of the turns in earlier requests of the same session, if that is remembered."""
        self._facts: TurnFacts | None = None

    def facts(self, turns: tuple[Turn, ...]) -> TurnFacts:
        """What the turns hold. Collected once for all passes that leave the turns as they are."""
        facts = self._facts
        if facts is None or facts.turns is not turns:
            facts = self._facts = TurnFacts(turns)
        return facts

    def use_facts(self, facts: TurnFacts) -> None:
        """Use facts that were collected already."""
        self._facts = facts

    def report(
        self,
        action: Action,
        reason: str,
        fault: Fault = "loss",
        *,
        path: str = "",
        turn_key: str = "",
        call_ids: tuple[str, ...] = (),
        gravity: Gravity | None = None,
    ) -> None:
        """Report a change. Its gravity follows from the action, unless the caller names one."""
        self.entries.append(
            Entry(
                action=action,
                reason=reason,
                fault=fault,
                path=path,
                turn_key=turn_key,
                call_ids=call_ids,
                target=self.profile.name,
                gravity=gravity or gravity_of(action),
            )
        )

    def report_fields(self, extra: Extra | None, form: Form | None, where: str, turn_key: str = "") -> None:
        """Report the unknown fields of a value that cannot be kept; `where` is what cannot carry them. Empty fields are
        not reported."""
        for field, value in unknown_fields(extra, form):
            reason = f"{where} cannot carry {field[:80]}"
            if field in marker_fields() and self.profile.cache.style != "markers":
                reason = f"{why_no_markers(self.profile)}; {field} was dropped"
            self.report(
                "dropped",
                reason,
                path=f"$.{field[:80]}",
                turn_key=turn_key,
                gravity=gravity_of_field(field, value),
            )

    def rule(self, key: str) -> str:
        """The id of a rule of the target, in brackets, for a reason."""
        return f"({self.profile.origin(key).id})"

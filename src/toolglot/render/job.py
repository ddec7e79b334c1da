"""What every pass is given besides the conversation: the target, the policies, and where to tell changes."""

from __future__ import annotations

import operator
from typing import TypeVar

from toolglot.conversation import Extra, Issuer, Turn
from toolglot.conversation.field_gravity import gravity_of_field, written_fields
from toolglot.conversation.report import Action, Entry, Fault, Gravity, gravity_of
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.survey import Survey

T = TypeVar("T")


def unless_same(new: tuple[T, ...], old: tuple[T, ...]) -> tuple[T, ...]:
    """The new values, or the old tuple itself where every one of them is the same object."""
    if new is old or (len(new) == len(old) and all(map(operator.is_, new, old))):
        return old
    return new


class RenderJob:
    """One render."""

    __slots__ = (
        "_survey",
        "entries",
        "goes_home",
        "has_errors",
        "has_new_ids",
        "home",
        "is_continued",
        "keeps_items",
        "policy",
        "profile",
        "source",
    )

    def __init__(self, profile: Profile, policy: Policy, source: Profile | None, home: Issuer | None = None) -> None:
        self.goes_home: bool = source is not None and source.name == profile.name
        """Whether the request goes to the provider that it was written for."""
        self.profile: Profile = profile.as_told() if self.goes_home else profile
        self.policy: Policy = policy
        self.source: Profile | None = source
        """Whose conversation this is, where one provider's client wrote all of it."""
        self.home: Issuer | None = home
        """The endpoint and the account that the request goes to, as far as they are known."""
        self.entries: list[Entry] = []
        self.has_errors: bool = False
        """A result that failed is sent."""
        self.has_new_ids: bool = False
        """A call of another provider's client is sent under another id than that client wrote."""
        self.keeps_items: bool = False
        """The provider has stored what it answered, so that an item goes home by its id alone."""
        self.is_continued: bool = False
        """The provider has stored what was said before."""
        self._survey: Survey | None = None

    def survey(self, turns: tuple[Turn, ...]) -> Survey:
        """What the turns hold; looked at once for all passes that leave them as they are."""
        survey = self._survey
        if survey is None or survey.turns is not turns:
            survey = self._survey = Survey(turns)
        return survey

    def know(self, survey: Survey) -> None:
        """Take a survey for that of the turns that it is of."""
        self._survey = survey

    def tell(
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
        """Report a change; its gravity follows from the action unless it is given."""
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

    def tell_fields(self, extra: Extra | None, where: str, turn_key: str = "") -> None:
        """Report the fields of a value that cannot stay on what it becomes; empty ones and a codec's notes are not."""
        for fields in (extra or {}).values():
            for field, value in written_fields(fields):
                self.tell(
                    "dropped",
                    f"{field[:80]} has no place on {where}",
                    path=f"$.{field[:80]}",
                    turn_key=turn_key,
                    gravity=gravity_of_field(field, value),
                )

    def rule(self, key: str) -> str:
        """A rule of the target for a reason: its id in brackets."""
        return f"({self.profile.origin(key).id})"

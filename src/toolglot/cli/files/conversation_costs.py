"""What it costs once to move the conversations of a file to another provider, for `switch-report`.

Laws: of several requests of one conversation only the last counts: a switch happens once. A model that the target does
not have has no price there.
"""

from __future__ import annotations

import hashlib
from typing import Final

from toolglot import profiles
from toolglot.cli.files.conversion import ConversionOutcome
from toolglot.gateway.endpoints.token_counts import estimate
from toolglot.profiles import Overrides
from toolglot.translate.requests import is_foreign_model
from toolglot.upstream.routing.load_balancing import first_message
from toolglot.upstream.switch_costs import CachePlace, SwitchCost, switch_cost

MAX_CONVERSATIONS: Final = 100_000
"""Conversations that are told apart; the requests of further ones count as one conversation each."""
_MAX_TEXT: Final = 2_000


class ConversationCosts:
    """Adds up what it costs to move conversations."""

    def __init__(self, overrides: Overrides | None = None) -> None:
        self._overrides = overrides
        self._last: dict[bytes, SwitchCost] = {}
        self._further: SwitchCost | None = None
        self._further_count = 0
        self.foreign: set[str] = set()
        """Models that were asked for, and belong to another provider than the target."""

    def __len__(self) -> int:
        return len(self._last) + self._further_count

    @property
    def total(self) -> SwitchCost | None:
        """The sum; None: nothing moves to another place."""
        total = self._further
        for cost in self._last.values():
            total = cost if total is None else total + cost
        return total

    def add(self, outcome: ConversionOutcome) -> None:
        """Add a converted request, unless it stays where it is."""
        out, before = outcome.out, outcome.before
        if out is None or before is None:
            return
        conversation, named = out.rendered.conversation, before.get("model")
        model = named[: profiles.MAX_NAME] if isinstance(named, str) else ""
        if out.source.name == out.target.name and (out.model == model or not model):
            return
        source = profiles.get(out.source.name, model, overrides=self._overrides)
        now = CachePlace(source, model, estimate(conversation, model=model))
        named_there = out.model
        if is_foreign_model(out.target):
            self.foreign.add(out.model)
            named_there = ""
        cost = switch_cost(now, CachePlace(out.target, named_there, estimate(conversation, model=out.model)))
        text = first_message(conversation)[:_MAX_TEXT].encode("utf-8", "surrogatepass")
        key = hashlib.blake2b(text, digest_size=12).digest()
        if key in self._last or len(self._last) < MAX_CONVERSATIONS:
            self._last[key] = cost
        else:
            self._further = cost if self._further is None else self._further + cost
            self._further_count += 1

"""What replies cost: their tokens, as the provider reports them or as an estimate, and the money.

Laws: no count is negative or impossibly large, and a reply that is not empty has a count. Counts that were ignored or
estimated are reported. What was reported once is not reported again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Conversation, Reply, ToolSpec, Turn, Usage
from toolglot.conversation.plausible_usage import IMPLAUSIBLE, plausible_usage, with_cached_input
from toolglot.conversation.report import Entry
from toolglot.conversation.token_estimates import estimate_input, estimate_tokens
from toolglot.errors import InputError
from toolglot.runtime.session.events import ChangeReported
from toolglot.runtime.session.family import SessionFamily
from toolglot.runtime.session.models import ModelChoice
from toolglot.runtime.session.run import SessionRun
from toolglot.upstream import prices

ESTIMATED: Final = "the provider does not report the tokens of a reply: they are estimated"
MAX_REPORT_ENTRIES: Final = 500
"""Report entries that a session keeps, besides those of its history."""


class SessionAccounts:
    """Counts what the replies of a session cost, and reports changes, each once."""

    def __init__(self, family: SessionFamily) -> None:
        self._family = family
        self._reported: dict[tuple[str, str, str], Entry] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was reported."""
        return tuple(self._reported.values())

    def report(self, run: SessionRun, entries: Sequence[Entry]) -> None:
        """Report changes that were not reported yet."""
        for entry in entries:
            key = (entry.action, entry.reason, entry.target)
            if key not in self._reported and len(self._reported) < MAX_REPORT_ENTRIES:
                self._reported[key] = entry
                run.emit(ChangeReported(entry))

    def count(
        self, run: SessionRun, choice: ModelChoice, reply: Reply, sent: Conversation, *, is_answer: bool = True
    ) -> tuple[Reply, Decimal | None]:
        """Count what a reply cost. Returns the reply without implausible counts, and the cost."""
        spent = measure_reply(reply, sent.turns, sent.tools, is_answer=is_answer)
        target = choice.upstream.target
        self.report(run, [Entry(action="assumed", reason=note, fault="loss", target=target) for note in spent.notes])
        reply = replace(reply, usage=spent.reported)
        if spent.counted is None:
            return reply, None
        cost = _cost(choice, spent.counted)
        self._family.add_usage(spent.counted, cost)
        return reply, cost


def _cost(choice: ModelChoice, usage: Usage) -> Decimal | None:
    """US dollars; None if unknown. A simulated model costs nothing."""
    if choice.upstream.is_simulated:
        return Decimal(0)
    return prices.LISTED.cost(choice.model, usage, choice.upstream.name)


def refuse_unpriced(choice: ModelChoice, max_cost: Decimal | None) -> None:
    """Refuse a model without a known price if the session has a cost limit."""
    is_priced = choice.upstream.is_simulated or prices.LISTED.of(choice.model, choice.upstream.name) is not None
    if max_cost is not None and not is_priced:
        raise InputError(
            f"the price of {choice.name} is unknown, and the session has a cost limit",
            path="limits.max_cost",
            hint="set max_tokens instead",
        )


# --- tokens -----------------------------------------------------------------------------------------


class ReplyCost(NamedTuple):
    """The tokens of a reply."""

    reported: Usage | None
    """What its provider reports, without implausible counts."""
    counted: Usage | None
    """What is counted; None if nothing is known and the reply is empty."""
    notes: tuple[str, ...] = ()


def measure_reply(
    reply: Reply, turns: Iterable[Turn], tools: Iterable[ToolSpec] = (), *, is_answer: bool = True
) -> ReplyCost:
    """The tokens of a reply to these turns. A failed one counts what its provider reports, or what it contains."""
    reported = plausible_usage(reply.usage)
    notes = (IMPLAUSIBLE,) if reported != reply.usage else ()
    if reported is not None:
        reported = with_cached_input(reported)
    known = reported if reported is not None else Usage()
    is_whole = bool(known.input_tokens) and (bool(known.output_tokens) or not reply.turn.blocks)
    if is_whole or not (is_answer or reply.turn.blocks):
        return ReplyCost(reported, reported, notes)
    read = known.input_tokens or estimate_input(turns, tools)
    written = known.output_tokens or estimate_tokens([reply.turn])
    return ReplyCost(reported, replace(known, input_tokens=read, output_tokens=written), (*notes, ESTIMATED))

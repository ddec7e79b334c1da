"""`toolglot switch-report`: what a switch to another provider would change, lose and cost."""

from __future__ import annotations

import argparse
from collections import Counter
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from toolglot.cli.files.conversation_costs import ConversationCosts
from toolglot.cli.files.conversion import (
    FAULTS,
    ConversionOutcome,
    add_conversion,
    convert_files,
    read_converters,
)
from toolglot.cli.files.documents import pretty
from toolglot.cli.options import add_all, add_profiles, add_quiet
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean, plural
from toolglot.conversation.report import GRAVITIES, Gravity, describe_counts
from toolglot.errors import quote
from toolglot.masking import mask
from toolglot.upstream.prices import dollars

MAX_REASONS: Final = 200
"""Different reasons that are stored for each group; the rest are only counted."""
SHOWN_REASONS: Final = 3

FAULT_ORDER: Final = ("loss", "policy", "canonical", "renderer", "projection")
"""Fault classes, in the order of the report."""

_FAULT_NAMES: Final = {"loss": "target"}
"""The names of fault classes in the table, where they differ: `loss` is a gravity there."""

_COST_LEGEND: Final = (
    ("READ AGAIN", "estimated tokens that the target must read"),
    ("UNCACHED", "what they cost there"),
    ("WRITTEN", "the same with its cache; - if writing to it is not dearer"),
    ("CACHED NOW", "what they cost where the conversation is now; (uncached): it is in no cache there"),
    ("MORE", "the difference, once; with a minus, the switch is cheaper at once"),
)

_DESCRIPTION: Final = """\
Show what would change if these requests went to another provider: what is lost, what a policy decides, what was
broken before, and what is only written differently; and what the switch costs once, because the conversation is not in
the prompt cache there. Only the report is written."""

_EPILOG: Final = """\
gravity:
  loss          the model will not see part of the conversation, or a setting is ignored
  change        the same content in another form
  housekeeping  changes that do not affect the meaning; listed with --all

fault classes:
  loss        the target cannot represent it: it is dropped, or kept as text; the table calls it 'target'
  policy      a setting of toolglot.Policy decided
  canonical   the conversation was already broken
  renderer    the target has another form for it; nothing is lost
  projection  the target requires other ids or names

cost, for the last request of each conversation (requests with the same first message):
  READ AGAIN    estimated tokens that the target reads
  UNCACHED      what they cost there
  WRITTEN       what they cost there with its cache, where writing to it is dearer
  CACHED NOW    what they cost from the cache where the conversation is now; (uncached): it is in no cache there
  MORE          the difference, once; with a minus, the switch is cheaper at once
Prices are those of the built-in list, which does not know every model. A model that the target does not have has none.

examples:
  toolglot switch-report request.json --to mistral
  toolglot switch-report request.json --to openai@gpt-5.5,gemini@gemini-2.5-pro
  toolglot switch-report sessions.jsonl --from anthropic --to gemini@gemini-2.5-pro
  toolglot switch-report sessions.jsonl --to openai --format json | jq '.groups[] | select(.gravity == "loss")'

exit codes: 0 every request can move; 1 some cannot; 2 unreadable input or wrong usage
"""


class ChangeGroup(Struct, kw_only=True):
    """Changes of one gravity, kind and fault class."""

    gravity: Gravity
    fault: str
    action: str
    count: int = 0
    requests: int = 0
    reasons: Counter[str]


class Summary(Struct, kw_only=True):
    """The changes of all requests, grouped."""

    requests: int = 0
    unchanged: int = 0
    groups: dict[tuple[Gravity, str, str], ChangeGroup]
    refused: list[tuple[str, str]]
    costs: ConversationCosts
    moved: Counter[tuple[str, str]]
    """Requests that go to another target of the provider, by its name and why."""

    def add(self, outcome: ConversionOutcome) -> None:
        self.requests += 1
        if outcome.error is not None:
            self.refused.append((outcome.record.where, str(outcome.error)))
            return
        self.costs.add(outcome)
        if outcome.moved and outcome.out is not None:
            self.moved[outcome.out.target.name, outcome.moved] += 1
        self.unchanged += not outcome.entries
        seen: set[tuple[Gravity, str, str]] = set()
        for entry in outcome.entries:
            key = (entry.gravity, entry.fault, entry.action)
            new = ChangeGroup(gravity=entry.gravity, fault=entry.fault, action=entry.action, reasons=Counter())
            group = self.groups.setdefault(key, new)
            group.count += 1
            group.requests += key not in seen
            seen.add(key)
            if entry.reason in group.reasons or len(group.reasons) < MAX_REASONS:
                group.reasons[entry.reason] += 1

    @property
    def ordered(self) -> list[ChangeGroup]:
        return sorted(self.groups.values(), key=_weight)

    @property
    def gravities(self) -> dict[str, int]:
        """The number of changes of each gravity."""
        counts: dict[str, int] = dict.fromkeys(GRAVITIES, 0)
        for group in self.groups.values():
            counts[group.gravity] += group.count
        return counts


def _weight(group: ChangeGroup) -> tuple[int, int, int, str]:
    return GRAVITIES.index(group.gravity), FAULT_ORDER.index(group.fault), -group.count, group.action


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("file", metavar="FILE", help="a request, or JSONL of requests; '-' is stdin")
    add_conversion(parser, several=True)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    add_profiles(parser)
    add_all(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    converters = read_converters(arguments, terminal)
    summaries = [
        Summary(groups={}, refused=[], costs=ConversationCosts(each.overrides), moved=Counter()) for each in converters
    ]
    for outcome in convert_files([arguments.file], converters[0], terminal, "switch-report"):
        summaries[0].add(outcome)
        for converter, summary in zip(converters[1:], summaries[1:], strict=True):
            summary.add(converter.outcome(outcome.record))
    found = {str(converter.target): summary for converter, summary in zip(converters, summaries, strict=True)}
    if arguments.format == "json":
        reports = [_as_json(summary, target) for target, summary in found.items()]
        terminal.write_data(pretty(reports[0] if len(reports) == 1 else {"targets": reports}))
    else:
        for target, summary in found.items():
            _show(summary, target, terminal.out, is_all=arguments.all)
            if len(found) > 1:
                terminal.out.line()
        _show_costs(found, terminal.out)
    return int(any(summary.refused for summary in summaries))


def _as_json(summary: Summary, target: str) -> dict[str, Any]:
    return {
        "target": target,
        "requests": summary.requests,
        "unchanged": summary.unchanged,
        "gravities": summary.gravities,
        "sent_as": [
            {"target": name, "requests": count, "reason": mask(reason)}
            for (name, reason), count in summary.moved.most_common()
        ],
        "refused": [{"where": where, "message": mask(message)} for where, message in summary.refused],
        "groups": [
            {
                "gravity": group.gravity,
                "fault": group.fault,
                "action": group.action,
                "count": group.count,
                "requests": group.requests,
                "reasons": {mask(reason): count for reason, count in group.reasons.most_common()},
            }
            for group in summary.ordered
        ],
        "cost": _cost_json(summary.costs),
    }


def _cost_json(costs: ConversationCosts) -> dict[str, Any] | None:
    """What the switch costs once, in dollars; null: nothing moves."""
    cost = costs.total
    if cost is None:
        return None
    amounts = {"uncached": cost.uncached, "written": cost.written, "cached_now": cost.cached, "more": cost.more}
    return {
        "conversations": len(costs),
        "estimated_tokens_read_again": cost.tokens,
        "is_cached_now": cost.is_cached,
        **{f"{name}_usd": None if amount is None else float(amount) for name, amount in amounts.items()},
    }


def _show(summary: Summary, target: str, page: TerminalPage, *, is_all: bool) -> None:
    page.line(page.paint(f"Moving {plural(summary.requests, 'request')} to {target}", "bold"))
    page.line()
    for where, message in summary.refused:
        page.line(page.paint(f"refused: {clean(where)}", "bold", "red"))
        page.paragraph(clean(message), indent="  ")
        page.line()
    for (name, reason), count in summary.moved.most_common():
        text = f"{plural(count, 'request')} shown for {name}, which the gateway would use too: {clean(reason)}"
        page.paragraph(text, indent="")
        page.line()
    shown = [group for group in summary.ordered if is_all or group.gravity != "housekeeping"]
    if shown:
        page.table([_row(group) for group in shown], heading=("GRAVITY", "FAULT", "KIND", "COUNT", "WHAT"))
        page.line()
        for fault in dict.fromkeys(group.fault for group in shown):
            page.line(f"{page.paint(_FAULT_NAMES.get(fault, fault), 'bold')}: {FAULTS[fault]}")
        page.line()
    counts = summary.gravities
    if any(counts.values()):
        folded = " (--all lists the housekeeping)" if counts["housekeeping"] and not is_all else ""
        page.line(f"{describe_counts(counts)}{folded}")
    lost = counts["loss"]
    movable = summary.requests - len(summary.refused)
    text = f"{movable} of {plural(summary.requests, 'request')} can move, {summary.unchanged} without any change"
    text += f"; {lost} things are lost" if lost != 1 else "; 1 thing is lost"
    page.line(page.paint(text, "bold", "red" if summary.refused else "yellow" if lost else "green"))


def _show_costs(found: dict[str, Summary], page: TerminalPage) -> None:
    """What each switch costs once; nothing if no conversation changes its provider or model."""
    rows = []
    for target, summary in found.items():
        cost = summary.costs.total
        if cost is not None:
            cached = _amount(cost.cached) if cost.is_cached else f"{_amount(cost.cached)} (uncached)"
            written = "-" if cost.written is None else _amount(cost.written)
            rows.append(
                (target, f"~{cost.tokens:,}", _amount(cost.uncached), written, cached, _amount(cost.more, sign=True))
            )
    if not rows:
        return
    count = max(len(summary.costs) for summary in found.values())
    page.line()
    page.line(page.paint(f"What it costs once, for {plural(count, 'conversation')} (estimates)", "bold"))
    page.line()
    page.table(rows, heading=("TARGET", *(column for column, _ in _COST_LEGEND)))
    page.line()
    for column, meaning in _COST_LEGEND:
        page.line(f"{page.paint(column, 'bold')}: {meaning}")
    for target, summary in found.items():
        foreign = sorted(summary.costs.foreign)
        if foreign:
            page.line()
            name = target.partition("@")[0]
            text = f"{name} does not have the model {quote(foreign[0])}, which belongs to another provider"
            page.paragraph(f"{text}: choose one of its models with --to {name}@NAME", indent="")


def _amount(amount: Decimal | None, *, sign: bool = False) -> str:
    if amount is None:
        return "unknown"
    mark = "-" if amount < 0 else "+" if sign and amount else ""
    return f"{mark}{dollars(abs(amount))}"


def _row(group: ChangeGroup) -> tuple[str, str, str, str, str]:
    common = group.reasons.most_common(SHOWN_REASONS)
    reasons = "; ".join(clean(reason) + (f" ({count} times)" if count > 1 else "") for reason, count in common)
    more = len(group.reasons) - SHOWN_REASONS
    reasons += f"; {more} more reasons" if more > 0 else ""
    fault = _FAULT_NAMES.get(group.fault, group.fault)
    return group.gravity, fault, group.action, str(group.count), reasons

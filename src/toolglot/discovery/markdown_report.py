"""The report in Markdown: what works, what does not, and what toolglot does about it.

Law: text from the endpoint is in code spans, which Markdown does not interpret.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import msgspec

from toolglot.discovery.comparison import Departure
from toolglot.discovery.findings import MESSAGE, DiscoveryResult, Exchange, Finding
from toolglot.discovery.found_profile import entries_of
from toolglot.discovery.remedies import remedy
from toolglot.discovery.secret_masking import one_line

_SHOWN: Final = 160


def report(
    result: DiscoveryResult, *, differences: tuple[Departure, ...] = (), against: str = "", day: str = ""
) -> str:
    """The text of the report."""
    parts = [
        _head(result, day),
        _tooling(result),
        _departures(differences, against),
        _refusals(result),
        _works(result),
        _others(result),
        _left_out(result),
        _opinion(result),
        _evidence(result),
    ]
    return "\n".join(part for part in parts if part)


def code(text: str, max_length: int = _SHOWN) -> str:
    """A text as a code span within a line or a cell."""
    plain = one_line(text, max_length).replace("`", "'").replace("|", "/")
    return f"`{plain}`" if plain else ""


def value_text(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "no limit found", True: "yes", False: "no"}[value]
    return str(value) or "none"


def finding_text(found: Finding) -> str:
    """The value of a finding in a line."""
    is_nothing = found.value is None or found.value == ""
    return "not seen" if is_nothing and not found.key else value_text(found.value)


def _head(result: DiscoveryResult, day: str) -> str:
    provider, sdk, spent = result.provider, result.sdk, result.spent
    tokens = f"{spent.input_tokens + spent.output_tokens:,} tokens" + ("" if spent.counted else " (estimated)")
    rows = {
        "base URL": code(sdk.base_url),
        "protocols": ", ".join(provider.protocols) or "none",
        "probed": sdk.protocol or "none",
        "model": code(provider.model) + (f", of {len(provider.models)} listed" if provider.models else ", none listed"),
        "key": {"none": "none sent", "": "none sent"}.get(sdk.auth, sdk.auth),
        "server": code(provider.server),
        "context": f"{provider.context_tokens:,} tokens, by its list" if provider.context_tokens else "not listed",
        "errors": provider.error_shape or "not seen",
        "rate limits": ", ".join(map(code, provider.rate_headers)) or "none in headers",
        "cost": f"{spent.requests} requests, {tokens}, {spent.seconds:.1f} s" + (f", {day}" if day else ""),
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items() if value)
    stopped = f"\n**Not complete:** {code(result.stopped, 400)}\n" if not result.complete else ""
    return f"# {code(provider.name)}\n{stopped}\n| | |\n|---|---|\n{table}\n"


def _tooling(result: DiscoveryResult) -> str:
    tooling = result.tooling
    way = {True: "in the protocol's own fields", False: "as text", None: "not seen"}[tooling.native]
    several = {True: "yes", False: "no", None: "not seen"}[tooling.parallel]
    streams = {True: "yes", False: "no", None: "not seen"}[result.sdk.streaming]
    example = f"\n```\n{one_line(tooling.example, 400).replace('```', '')}\n```\n" if tooling.example else ""
    return (
        f"## Tools\nCalls: {way}; several at once: {several}; streams: {streams}; format: {tooling.format}; "
        f"read by: {tooling.parser or 'nothing yet'}; schemas: {tooling.schema_style} style.\n{example}"
    )


def _departures(differences: tuple[Departure, ...], against: str) -> str:
    if not against:
        return ""
    if not differences:
        return f"## Against {code(against)}\nNo difference from its profile was found.\n"
    rows = "\n".join(
        f"| `{one.key}` | {code(value_text(one.expected), 80)} | {code(value_text(one.found), 80)} "
        f"| {', '.join(one.evidence[:4])} |"
        for one in differences
    )
    return f"## Against {code(against)}\n| entry | profile | found | evidence |\n|---|---|---|---|\n{rows}\n"


def _refusals(result: DiscoveryResult) -> str:
    """What does not work, and what toolglot does about it."""
    questions = {probed.probe: probed.question for probed in result.probes}
    rows = []
    for key, found in sorted(entries_of(result).items()):
        todo = remedy(found)
        if todo:
            message = f"<br>{code(found.note.removeprefix(MESSAGE))}" if found.note else ""
            question = questions.get(found.probe, found.probe)
            entry = f"`{key}` = {code(value_text(found.value), 80)}"
            rows.append(f"| {question}{message} | {todo} | {entry} | {', '.join(found.evidence[:3])} |")
    plain = [found for found in result.findings if found.quirk and not (found.key and remedy(found))]
    quirks = "\n".join(f"- {code(found.quirk)} ({', '.join(found.evidence[:3])})" for found in plain)
    if not rows and not quirks:
        return ""
    head = ("| question, and its message | what toolglot does | entry of the profile | evidence |", "|---|---|---|---|")
    table = "\n".join((*head, *rows)) if rows else ""
    also = f"\n\nNote:\n\n{quirks}" if quirks else ""
    return f"## What it refuses, and what toolglot does about it\n{table}{also}\n"


def _works(result: DiscoveryResult) -> str:
    by_group: dict[str, list[str]] = defaultdict(list)
    for key, found in sorted(entries_of(result).items()):
        if not remedy(found):
            by_group[key.split(".")[0]].append(f"`{key}` {code(value_text(found.value), 60)}")
    rows = "\n".join(f"- **{group}**: {'; '.join(entries)}" for group, entries in by_group.items())
    return f"## What works\n{rows}\n" if rows else ""


def _others(result: DiscoveryResult) -> str:
    """What is not an entry of a profile, or does not settle one."""
    seen = [found for found in result.findings if not found.quirk and (not found.key or not found.settles)]
    rows = "\n".join(f"- {_seen(found)}" for found in seen if found.probe != "replies.example")
    return f"## Also seen\n{rows}\n" if rows else ""


def _seen(found: Finding) -> str:
    note = f": {code(found.note)}" if found.note else ""
    unsure = "" if found.settles and found.confidence == "observed" else " (not settled)"
    return f"`{found.key or found.probe}` {code(finding_text(found), 80)}{unsure}{note}"


def _left_out(result: DiscoveryResult) -> str:
    reasons: dict[str, list[str]] = defaultdict(list)
    for probed in result.probes:
        if probed.outcome != "found" and not probed.reason.startswith("not for "):
            reasons[f"{probed.outcome}: {probed.reason}"].append(probed.probe)
    rows = "\n".join(f"- {code(reason, 300)}: {', '.join(names)}" for reason, names in reasons.items())
    return f"## Unknown\n{rows}\n" if rows else ""


def _opinion(result: DiscoveryResult) -> str:
    opinion = result.opinion
    if opinion is None:
        return ""
    if opinion.problem:
        return f"## Opinion\n{code(opinion.by)} gave none: {code(opinion.problem, 300)}\n"
    lines = [
        f"What {code(opinion.by)} thinks of the evidence. It is an opinion: nothing above depends on it.",
        "",
        f"- format: {code(opinion.format)}; example: {code(opinion.example, 300)}",
        *(f"- schema: {code(line, 300)}" for line in opinion.schema_requirements),
        *(f"- quirk: {code(line, 300)}" for line in opinion.quirks),
        *(f"- **against the evidence**: {code(line, 300)}" for line in opinion.disagrees),
    ]
    return "## Opinion\n" + "\n".join(lines) + "\n"


def _evidence(result: DiscoveryResult) -> str:
    rows = "\n".join(map(_exchange, result.evidence))
    head = "| | probe | request | response |\n|---|---|---|---|"
    return f"## Evidence\nThe full requests and responses are in the JSON output.\n\n{head}\n{rows}\n" if rows else ""


def _exchange(one: Exchange) -> str:
    message = one.problem or ("" if one.verdict == "accepted" else _short(one.reply))
    response = f"{one.status or 'none'} {one.verdict} {code(message, 120)}"
    return f"| {one.name} | {one.probe} | {code(one.about, 100)} | {response} |"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

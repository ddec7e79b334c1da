"""`toolglot lint`: what a provider would refuse of a request, in its own words, with the place in the file."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from toolglot import lint, profiles
from toolglot.cli import targets
from toolglot.cli.files.documents import Record, open_document, pretty
from toolglot.cli.files.locations import LineIndex, TextSpan, locate
from toolglot.cli.options import add_profiles, add_quiet
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean, plural
from toolglot.cli.targets import Target
from toolglot.errors import InputError
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.protocols.base import get
from toolglot.protocols.request_detection import examine
from toolglot.referee import Violation

MOST_KEPT: Final = 50_000
"""Findings that a JSON or SARIF answer lists; more are only counted."""

_SHOWN: Final = 100
"""Characters of a line that are shown."""
_MARKS: Final = 40
"""Characters of a value that are marked."""

_DESCRIPTION: Final = """\
Check a request body for what a provider would reject, before the provider does: in its own words where they are
known, with the JSON path and the line and column of the value.

FILE is JSON, or JSONL with one request per line. The model is the body's own, or the one after '@'."""

_EPILOG: Final = """\
--for:
  Without it the protocol is found from the body, and the provider that the protocol is named after is asked.
  '--for all' asks every provider that speaks the body's own protocol.

examples:
  toolglot lint request.json
  toolglot lint request.json --for mistral,groq
  toolglot lint contents.json --for gemini@gemini-2.5-pro
  toolglot lint logs/*.jsonl --for all --format sarif > findings.sarif
  pbpaste | toolglot lint - --for anthropic

exit codes: 0 nothing is refused; 1 something is, or a line of a JSONL file cannot be judged; 2 unreadable input
"""


class FoundViolation(Struct, frozen=True, kw_only=True):
    """A violation and its place in a file."""

    record: Record
    violation: Violation
    place: TextSpan
    excerpt: str = ""
    """The line of the file."""

    def as_json(self) -> dict[str, Any]:
        said = self.violation
        return {
            "file": self.record.file,
            "line": self.place.line,
            "column": self.place.column,
            "end_line": self.place.end_line,
            "end_column": self.place.end_column,
            **{name: mask(str(getattr(said, name))) for name in said.__struct_fields__},
        }


class LintTotals(Struct, kw_only=True):
    """What was seen so far."""

    requests: int = 0
    refused: int = 0
    by_target: Counter[str]
    failed_lines: list[tuple[str, str]]
    unreadable: int = 0
    kept: list[FoundViolation]

    @property
    def violations(self) -> int:
        return sum(self.by_target.values())

    @property
    def exit_code(self) -> int:
        return 2 if self.unreadable else int(bool(self.violations or self.failed_lines))


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("files", nargs="+", metavar="FILE", help="a request, or JSONL of requests; '-' is stdin")
    parser.add_argument(
        "--for",
        dest="targets",
        metavar="TARGET[@MODEL],…",
        help="the target that would get the request: anthropic, openai, mistral, …; 'all': every target "
        "that speaks its protocol",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "sarif"), default="text", help="output format (default: text)"
    )
    parser.add_argument(
        "--defaults",
        action="store_true",
        help="also apply the conservative defaults where nothing is known about the provider",
    )
    add_profiles(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    overrides = targets.read_overrides(arguments)
    asked = arguments.targets
    wanted = None if asked in (None, targets.ALL) else targets.many_targets(asked, "--for", overrides)
    judge = _Judge(wanted, overrides, arguments, terminal)
    tally = LintTotals(by_target=Counter(), failed_lines=[], kept=[])
    for file in arguments.files:
        try:
            _lint_file(file, judge, tally, arguments.format, terminal)
        except InputError as error:
            terminal.error(error)
            tally.unreadable += 1
    _answer(tally, [*judge.noted.values()], arguments, overrides, terminal)
    return tally.exit_code


class _Judge:
    """Asks the referee about records, for the targets that are meant."""

    def __init__(
        self,
        wanted: tuple[Target, ...] | None,
        overrides: Overrides | None,
        arguments: argparse.Namespace,
        terminal: Terminal,
    ) -> None:
        self.wanted = wanted
        self.overrides = overrides
        self.wants_all = arguments.targets == targets.ALL
        self.defaults: bool = arguments.defaults
        self.terminal = terminal
        self.is_quiet: bool = arguments.quiet
        self.noted: dict[str, str] = {}
        """What was noted once, by its subject."""

    def findings(self, record: Record) -> list[FoundViolation]:
        body = record.parse()
        violations: list[Violation] = []
        for target in self._targets(body, record):
            found = lint(body, target.name, target.model, self.overrides, defaults=self.defaults)
            violations += found
            if self.wanted is not None:
                self._note_foreign(body, record, target, is_refused=bool(found))
        return list(_placed(record, violations)) if violations else []

    def _targets(self, body: dict[str, Any], record: Record) -> tuple[Target, ...]:
        if self.wanted is not None:
            return self.wanted
        found = targets.protocol_of(body, record.where, "--for")
        assert found.protocol is not None  # noqa: S101 - protocol_of raises otherwise
        if found.by == "model":
            self._note(found.protocol, targets.told(found, record.where))
        if self.wants_all:
            return targets.of_protocol(found.protocol, self.overrides)
        return (Target(get(found.protocol).provider),)

    def _note_foreign(self, body: dict[str, Any], record: Record, target: Target, *, is_refused: bool) -> None:
        """A body of another protocol is refused for every field; say why, once.

        Where only the model's name speaks for another protocol, it must be refused for something as well.
        """
        if target.name in self.noted:
            return
        found, spoken = examine(body), profiles.get(target.name, overrides=self.overrides).protocol
        is_certain = found.by == "structure" or spoken not in found.candidates
        if found.protocol in (None, spoken) or not (is_certain or is_refused):
            return
        text = f"{record.where} looks like a request of {found.protocol}; {target.name} speaks {spoken}"
        self._note(target.name, f"{text}: toolglot convert --to {target.name} makes one that it accepts")

    def _note(self, subject: str, text: str) -> None:
        if subject in self.noted:
            return
        self.noted[subject] = text
        if not self.is_quiet:
            self.terminal.note(text)


def _placed(record: Record, violations: list[Violation]) -> Iterator[FoundViolation]:
    text = record.text
    spans = locate(text, (violation.path for violation in violations))
    lines = LineIndex(text)
    for violation in violations:
        place = lines.place(*spans[violation.path])
        excerpt = lines.line(place.line)
        moved = TextSpan(place.line + record.line - 1, place.column, place.end_line + record.line - 1, place.end_column)
        yield FoundViolation(record=record, violation=violation, place=moved, excerpt=_window(excerpt, place.column))


def _window(line: str, column: int) -> str:
    """As much of a line as its excerpt needs."""
    start = _window_start(column)
    return line[start : start + 2 * _SHOWN]


def _window_start(column: int) -> int:
    return 0 if column <= _SHOWN // 2 else column - 1 - _SHOWN // 4


def _lint_file(file: str, judge: _Judge, tally: LintTotals, format: str, terminal: Terminal) -> None:
    with (
        open_document(file) as document,
        terminal.progress(document.size, f"lint {file}", quiet=judge.is_quiet) as advance,
    ):
        for record in document.records:
            advance(len(record.data))
            try:
                findings = judge.findings(record)
            except InputError as error:
                if not record.is_line:
                    raise
                tally.failed_lines.append((record.where, str(error)))
                terminal.error(error, where=error.path)
                continue
            tally.requests += 1
            tally.refused += bool(findings)
            tally.by_target.update(found.violation.target for found in findings)
            if format == "text":
                for same in _together(findings):
                    _show(same, terminal.out)
            elif len(tally.kept) < MOST_KEPT:
                tally.kept += findings[: MOST_KEPT - len(tally.kept)]


def _together(findings: list[FoundViolation]) -> list[list[FoundViolation]]:
    """Findings that say the same of the same value, by several rules, as one."""
    groups: dict[tuple[object, ...], list[FoundViolation]] = {}
    for found in findings:
        said = found.violation
        groups.setdefault((said.target, said.path, said.message), []).append(found)
    return list(groups.values())


def _show(same: list[FoundViolation], page: TerminalPage) -> None:
    found = same[0]
    said, place = found.violation, found.place
    where = clean(f"{found.record.file}:{place.line}:{place.column}")
    page.line(
        page.paint(f"{where}: ", "bold")
        + page.paint(f"{said.target} refuses", "bold", "red")
        + f": {clean(said.message)}"
    )
    words = "its own words" if said.wording == "provider" else "our words"
    rules = ", ".join(dict.fromkeys(found.violation.rule for found in same))
    about = f"[{rules}] {said.confidence}, {words}"
    page.line(f"  {page.paint(clean(said.path), 'cyan')}  {page.paint(about, 'dim')}")
    _show_excerpt(found, page)
    if said.hint:
        page.line(f"  {page.paint('hint:', 'green')} {clean(said.hint)}")
    page.line()


def _show_excerpt(found: FoundViolation, page: TerminalPage) -> None:
    start = _window_start(found.place.column)
    before = clean(found.excerpt[: found.place.column - 1 - start])
    width = found.place.end_column - found.place.column if found.place.end_line == found.place.line else 1
    after = clean(found.excerpt[found.place.column - 1 - start :])
    lead = "…" if start else ""
    shown = f"{lead}{before}{after}"
    number = str(found.place.line)
    room = max(len(before) + len(lead) + 20, _SHOWN)
    tail = "…" if len(shown) > room else ""
    marks = "^" * max(1, min(width, len(after), room - len(before) - len(lead), _MARKS))
    gutter = page.paint(f"{number} |", "blue")
    page.line(f"  {gutter} {shown[:room]}{tail}")
    page.line(
        f"  {page.paint(' ' * len(number) + ' |', 'blue')} "
        f"{' ' * (len(before) + len(lead))}{page.paint(marks, 'bold', 'red')}"
    )


def _answer(
    tally: LintTotals, notes: list[str], arguments: argparse.Namespace, overrides: Overrides | None, terminal: Terminal
) -> None:
    if arguments.format == "json":
        terminal.write_data(pretty(_as_json(tally) | {"notes": notes}))
    elif arguments.format == "sarif":
        from toolglot.cli.files.sarif import as_sarif  # noqa: PLC0415 - for this format only

        terminal.write_data(pretty(as_sarif(tally.kept, overrides=overrides)))
    if not arguments.quiet:
        _summarise(tally, terminal.err)


def _as_json(tally: LintTotals) -> dict[str, Any]:
    return {
        "violations": [found.as_json() for found in tally.kept],
        "failed": [{"where": where, "message": mask(message)} for where, message in tally.failed_lines],
        "summary": {
            "requests": tally.requests,
            "refused": tally.refused,
            "violations": tally.violations,
            "listed": len(tally.kept),
            "by_target": dict(sorted(tally.by_target.items())),
        },
    }


def _summarise(tally: LintTotals, page: TerminalPage) -> None:
    requests = plural(tally.requests, "request")
    if tally.failed_lines:
        page.line(page.paint(f"{plural(len(tally.failed_lines), 'line')} could not be judged", "yellow"))
    if tally.violations:
        who = ", ".join(f"{name} {count}" for name, count in sorted(tally.by_target.items()))
        text = f"{plural(tally.violations, 'refusal')} in {tally.refused} of {requests} ({who})"
        page.line(page.paint(text, "bold", "red"))
    elif tally.requests:
        page.line(page.paint(f"nothing is refused: {requests}", "bold", "green"))

"""`toolglot lint`: check what a provider would refuse in a request, with the position in the file."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

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

MAX_KEPT: Final = 50_000
"""Findings that JSON and SARIF output list; the rest are only counted."""

_EXCERPT_WIDTH: Final = 100
"""Characters of a line that are printed."""
_NEXT_PROMPT: Final = "Continue."
"""A session that ends with an answer of the model is judged as the request that the next prompt makes of it."""
_MARKS: Final = 40
"""Characters of a value that are underlined."""

_DESCRIPTION: Final = """\
Check a request body for what a provider would reject, before the provider does: in its own words where they are
known, with the JSON path and the line and column of the value.

FILE is JSON, or JSONL with one request per line. The model is the body's own, or the one after '@'."""

_EPILOG: Final = """\
--for:
  By default the protocol is detected from the body, and the target is the provider that it is named after.
  '--for all' checks every target that speaks the detected protocol.

examples:
  toolglot lint request.json
  toolglot lint request.json --for mistral,groq
  toolglot lint contents.json --for gemini@gemini-2.5-pro
  toolglot lint logs/*.jsonl --for all --format sarif > findings.sarif
  pbpaste | toolglot lint - --for anthropic

exit codes: 0 no refusals; 1 something is refused, or a line of a JSONL file cannot be checked; 2 unreadable input
"""


class FoundViolation(Struct, frozen=True, kw_only=True):
    """A violation and its position in a file."""

    record: Record
    violation: Violation
    span: TextSpan
    excerpt: str = ""
    """The line of the file."""

    def as_json(self) -> dict[str, Any]:
        violation = self.violation
        span = asdict(self.span)
        return {
            "file": self.record.file,
            **(dict.fromkeys(span) if self.record.is_session else span),
            **{name: mask(str(getattr(violation, name))) for name in violation.__struct_fields__},
        }


class LintTotals(Struct, kw_only=True):
    """The totals of all files."""

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
    names = arguments.targets
    wanted = None if names in (None, targets.ALL) else targets.parse_targets(names, "--for", overrides)
    judge = _Judge(wanted, overrides, arguments, terminal)
    tally = LintTotals(by_target=Counter(), failed_lines=[], kept=[])
    for file in arguments.files:
        try:
            _lint_file(file, judge, tally, arguments.format, terminal)
        except InputError as error:
            terminal.error(error)
            tally.unreadable += 1
    _write_results(tally, [*judge.noted.values()], arguments, overrides, terminal)
    return tally.exit_code


class _Judge:
    """Checks records against the requested targets."""

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
        """Notes by subject: each is printed once."""

    def findings(self, record: Record) -> list[FoundViolation]:
        body = record.parse()
        violations: list[Violation] = []
        for target in self._targets(body, record):
            found = lint(body, target.name, target.model, self.overrides, defaults=self.defaults)
            violations += found
            if self.wanted is not None:
                self._note_foreign(body, record, target, is_refused=bool(found))
        return list(_locate_violations(record, violations)) if violations else []

    def _targets(self, body: dict[str, Any], record: Record) -> tuple[Target, ...]:
        if self.wanted is not None:
            return self.wanted
        if record.protocol:
            target = Target(profiles.find(record.protocol, overrides=self.overrides, kind="target", path=record.where))
            protocol = profiles.get(target.name, overrides=self.overrides).protocol
            return targets.targets_of_protocol(protocol, self.overrides) if self.wants_all else (target,)
        found = targets.detect_protocol(body, record.where, "--for")
        assert found.protocol is not None  # noqa: S101 - detect_protocol raises otherwise
        if found.by == "model":
            self._note(found.protocol, targets.detection_note(found, record.where))
        if self.wants_all:
            return targets.targets_of_protocol(found.protocol, self.overrides)
        return (Target(get(found.protocol).provider),)

    def _note_foreign(self, body: dict[str, Any], record: Record, target: Target, *, is_refused: bool) -> None:
        """Note once that the body looks like another protocol, which explains why all of it is refused.

        If only the model's name suggests another protocol, the note needs a refusal as well.
        """
        if target.name in self.noted:
            return
        found, spoken = examine(body), profiles.get(target.name, overrides=self.overrides).protocol
        is_certain = found.by == "structure" or spoken not in found.candidates
        if found.protocol in (None, spoken) or not (is_certain or is_refused):
            return
        text = f"{record.where} looks like {found.protocol}, but {target.name} speaks {spoken}"
        self._note(target.name, f"{text}; convert it with toolglot convert --to {target.name}")

    def _note(self, subject: str, text: str) -> None:
        if subject in self.noted:
            return
        self.noted[subject] = text
        if not self.is_quiet:
            self.terminal.note(text)


def _locate_violations(record: Record, violations: list[Violation]) -> Iterator[FoundViolation]:
    text = record.text
    spans = locate(text, (violation.path for violation in violations))
    lines = LineIndex(text)
    for violation in violations:
        span = lines.span(*spans[violation.path])
        excerpt = lines.line(span.line)
        moved = TextSpan(span.line + record.line - 1, span.column, span.end_line + record.line - 1, span.end_column)
        yield FoundViolation(record=record, violation=violation, span=moved, excerpt=_window(excerpt, span.column))


def _window(line: str, column: int) -> str:
    """The part of a line that the excerpt needs."""
    start = _window_start(column)
    return line[start : start + 2 * _EXCERPT_WIDTH]


def _window_start(column: int) -> int:
    return 0 if column <= _EXCERPT_WIDTH // 2 else column - 1 - _EXCERPT_WIDTH // 4


def _lint_file(file: str, judge: _Judge, tally: LintTotals, format: str, terminal: Terminal) -> None:
    with (
        open_document(file, next_prompt=_NEXT_PROMPT) as document,
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
                for same in _group_equal(findings):
                    _show(same, terminal.out)
            elif len(tally.kept) < MAX_KEPT:
                tally.kept += findings[: MAX_KEPT - len(tally.kept)]


def _group_equal(findings: list[FoundViolation]) -> list[list[FoundViolation]]:
    """Group findings with the same message for the same value, from several rules."""
    groups: dict[tuple[object, ...], list[FoundViolation]] = {}
    for found in findings:
        violation = found.violation
        groups.setdefault((violation.target, violation.path, violation.message), []).append(found)
    return list(groups.values())


def _show(same: list[FoundViolation], page: TerminalPage) -> None:
    found = same[0]
    violation, span = found.violation, found.span
    # The request of a session is made of its file: its lines are not those of the file.
    is_session = found.record.is_session
    where = clean(found.record.file if is_session else f"{found.record.file}:{span.line}:{span.column}")
    page.line(
        page.paint(f"{where}: ", "bold")
        + page.paint(f"{violation.target} refuses", "bold", "red")
        + f": {clean(violation.message)}"
    )
    words = "provider's wording" if violation.wording == "provider" else "toolglot's wording"
    rules = ", ".join(dict.fromkeys(found.violation.rule for found in same))
    about = f"[{rules}] {violation.confidence}, {words}"
    page.line(f"  {page.paint(clean(violation.path), 'cyan')}  {page.paint(about, 'dim')}")
    if not is_session:
        _print_excerpt(found, page)
    if violation.hint:
        page.line(f"  {page.paint('hint:', 'green')} {clean(violation.hint)}")
    page.line()


def _print_excerpt(found: FoundViolation, page: TerminalPage) -> None:
    start = _window_start(found.span.column)
    before = clean(found.excerpt[: found.span.column - 1 - start])
    width = found.span.end_column - found.span.column if found.span.end_line == found.span.line else 1
    after = clean(found.excerpt[found.span.column - 1 - start :])
    lead = "…" if start else ""
    shown = f"{lead}{before}{after}"
    number = str(found.span.line)
    room = max(len(before) + len(lead) + 20, _EXCERPT_WIDTH)
    tail = "…" if len(shown) > room else ""
    marks = "^" * max(1, min(width, len(after), room - len(before) - len(lead), _MARKS))
    gutter = page.paint(f"{number} |", "blue")
    page.line(f"  {gutter} {shown[:room]}{tail}")
    page.line(
        f"  {page.paint(' ' * len(number) + ' |', 'blue')} "
        f"{' ' * (len(before) + len(lead))}{page.paint(marks, 'bold', 'red')}"
    )


def _write_results(
    tally: LintTotals, notes: list[str], arguments: argparse.Namespace, overrides: Overrides | None, terminal: Terminal
) -> None:
    if arguments.format == "json":
        terminal.write_data(pretty(_as_json(tally) | {"notes": notes}))
    elif arguments.format == "sarif":
        from toolglot.cli.files.sarif import as_sarif  # noqa: PLC0415 - only for this format

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
        page.line(page.paint(f"{plural(len(tally.failed_lines), 'line')} could not be checked", "yellow"))
    if tally.violations:
        who = ", ".join(f"{name} {count}" for name, count in sorted(tally.by_target.items()))
        text = f"{plural(tally.violations, 'refusal')} in {tally.refused} of {requests} ({who})"
        page.line(page.paint(text, "bold", "red"))
    elif tally.requests:
        page.line(page.paint(f"no refusals in {requests}", "bold", "green"))

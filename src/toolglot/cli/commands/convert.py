"""`toolglot convert`: convert requests from one protocol to another, and report every change."""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from toolglot.cli.files.conversion import (
    ConversionOutcome,
    Converter,
    add_conversion,
    convert_files,
    read_converter,
    show_failure,
)
from toolglot.cli.files.documents import check_name, compact
from toolglot.cli.files.output import STDOUT, Write, open_output
from toolglot.cli.options import add_output, add_profiles, add_quiet
from toolglot.cli.screen.terminal import Terminal, clean, plural
from toolglot.conversation.report import Entry, count_gravities, describe_counts
from toolglot.errors import InputError

MAX_LISTED: Final = 20
"""Failed requests that the summary lists. The report has all of them."""

MAX_LOSSES: Final = 5
"""Different losses that the summary lists. The report has all of them."""

_DESCRIPTION: Final = """\
Convert requests from one protocol to another, so that the target accepts them: messages, tools, schemas, ids,
settings. --report and 'toolglot switch-report' show what was changed or could not be carried over.

FILE is JSON, or JSONL with one request per line. One JSON file gives JSON with the same layout; JSONL and several
files give JSONL. A line that cannot be converted is reported and left out; the others are still converted."""

_EPILOG: Final = """\
--from:
  By default the protocol is detected from the structure of the body. The simplest requests look the same in several
  protocols; if the model's name does not decide either, --from is required.

examples:
  toolglot convert request.json --to openai
  toolglot convert request.json --from anthropic --to mistral@mistral-large-latest -o mistral.json
  toolglot convert sessions.jsonl --to gemini --model gemini-2.5-pro -o gemini.jsonl --report changes.json
  cat request.json | toolglot convert - --to anthropic | curl -d @- …

exit codes: 0 everything was converted; 1 some requests could not be; 2 unreadable input, wrong usage, or a model that
the target does not have (--model names one that it has)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("files", nargs="+", metavar="FILE", help="a request, or JSONL of requests; '-' is stdin")
    add_conversion(parser)
    add_output(parser)
    parser.add_argument("--report", metavar="FILE", help="write a report of all changes and losses to FILE, as JSON")
    add_profiles(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.report == STDOUT:
        raise InputError("cannot write the report to stdout", path="--report", hint="--report changes.json")
    converter = read_converter(arguments, terminal, refuses_foreign_models=True)
    for file in arguments.files:
        check_name(file)
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    failed: list[str] = []
    is_single = len(arguments.files) == 1
    with (
        open_output(arguments.output, terminal, force=arguments.force) as output,
        _open_report(arguments, terminal) as write_report,
    ):
        for outcome in convert_files(arguments.files, converter, terminal, "convert"):
            write_report(outcome)
            counts["requests"] += 1
            if outcome.error is not None:
                failed.append(outcome.record.where)
                show_failure(outcome, terminal)
                if is_single and not outcome.record.is_line:
                    output.abandon()
                continue
            output.write(outcome.data if is_single else outcome.line)
            counts["changed"] += outcome.is_changed
            counts.update(count_gravities(outcome.entries))
            lost.update(_describe_loss(entry) for entry in outcome.entries if entry.gravity == "loss")
    if not arguments.quiet:
        _summarise(counts, lost, failed, converter, terminal, has_report=bool(arguments.report))
    return int(bool(failed))


@contextlib.contextmanager
def _open_report(arguments: argparse.Namespace, terminal: Terminal) -> Iterator[_ReportWriter]:
    if not arguments.report:
        yield _ReportWriter(None)
        return
    with open_output(arguments.report, terminal, force=arguments.force) as output:
        writer = _ReportWriter(output.write)
        yield writer
        output.write(b"\n]\n" if writer.count else b"[]\n")


class _ReportWriter:
    """Writes the reports of the outcomes, one by one, as a JSON list."""

    def __init__(self, write: Write | None) -> None:
        self.write = write
        self.count = 0

    def __call__(self, outcome: ConversionOutcome) -> None:
        if self.write is not None:
            self.write((b",\n" if self.count else b"[\n") + compact(outcome.as_json()).rstrip())
            self.count += 1


def _describe_loss(entry: Entry) -> str:
    return f"{entry.path}: {entry.reason}" if entry.path else entry.reason


def _summarise(
    counts: Counter[str],
    lost: Counter[str],
    failed: list[str],
    converter: Converter,
    terminal: Terminal,
    *,
    has_report: bool,
) -> None:
    page = terminal.err
    done = counts["requests"] - len(failed)
    summary = describe_counts(counts)
    hint = " (--report FILE lists them)" if summary and not has_report else ""
    text = f"{plural(done, 'request')} converted to {converter.target}: {summary or 'nothing changed'}{hint}"
    same = done - counts["changed"]
    if same:
        text += f", {same} left as {'it was' if same == 1 else 'they were'}"
    page.line(page.paint(text, "bold", "green" if not failed and not lost else "yellow"))
    for reason, count in lost.most_common(MAX_LOSSES):
        page.paragraph(f"lost: {clean(reason)}" + (f" ({count} times)" if count > 1 else ""), indent="  ")
    if len(lost) > MAX_LOSSES:
        page.line(f"  … and {len(lost) - MAX_LOSSES} more; --report lists all of them")
    if failed:
        more = f" and {len(failed) - MAX_LISTED} more" if len(failed) > MAX_LISTED else ""
        text = f"{plural(len(failed), 'request')} could not be converted: {', '.join(failed[:MAX_LISTED])}{more}"
        page.line(page.paint(text, "bold", "red"))

"""`toolglot repair`: fix a request so that its provider accepts it; show the changes as a diff, with reasons."""

from __future__ import annotations

import argparse
import json
from typing import Final

from toolglot.cli import targets
from toolglot.cli.files.conversion import FAULTS, ConversionOutcome, Converter, convert_files, show_failure
from toolglot.cli.files.documents import STDIN
from toolglot.cli.files.output import STDOUT, Write, back_up, open_output, refuse_existing, replace_file
from toolglot.cli.options import add_all, add_output, add_profiles, add_quiet
from toolglot.cli.screen.diff import show_diff
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean, plural
from toolglot.cli.targets import Target
from toolglot.conversation.report import Entry, order_by_gravity, summarise
from toolglot.errors import InputError
from toolglot.policy import DEFAULT_POLICY

MAX_DIFFS: Final = 20
"""Requests of one file whose diff is printed."""

_COLOURS: Final = {"loss": ("bold", "red"), "change": ("yellow",), "housekeeping": ("dim",)}

_DESCRIPTION: Final = """\
Fix a request so that its provider accepts it: every call gets its result, ids and names become legal, turns get a
valid order, and schemas contain only what the provider supports. A valid request is not changed.

The repaired request goes to stdout or OUT; the changes and their reasons go to stderr."""

_EPILOG: Final = """\
Only repaired parts are rewritten. Everything else keeps its layout, so that a diff shows the repair alone.
JSONL: each line is repaired. A line that needs no repair, or cannot be repaired, is copied unchanged.

examples:
  toolglot repair request.json --for anthropic -o repaired.json
  toolglot repair request.json --for mistral@mistral-large-latest --in-place    (keeps request.json.bak)
  toolglot repair request.json --check && echo fine
  toolglot repair broken.json --quiet | curl -d @- …

exit codes: 0 done, or nothing to do; 1 something could not be repaired, or with --check: something would change;
            2 unreadable input or wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("file", metavar="FILE", help="a request, or JSONL of requests; '-' is stdin")
    parser.add_argument(
        "--for",
        dest="target",
        metavar="TARGET[@MODEL]",
        help="the target that must accept it (default: the provider that its protocol is named after)",
    )
    add_output(parser)
    parser.add_argument("--in-place", action="store_true", help="replace FILE; the original is kept as FILE.bak")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something would change")
    add_profiles(parser)
    add_all(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _refuse_contradictions(arguments)
    overrides = targets.read_overrides(arguments)
    target = targets.parse_target(arguments.target, "--for", overrides) if arguments.target else None
    converter = Converter(
        source=Target(target.name) if target else None,
        target=target,
        overrides=overrides,
        policy=DEFAULT_POLICY,
        terminal=terminal,
        is_quiet=arguments.quiet,
        option="--for",
        refuses_foreign_models=True,
    )
    work = _RepairRun(arguments, terminal)
    if arguments.check:
        work.do(converter, lambda _: None)
        return int(bool(work.changed or work.failed))
    if arguments.in_place:
        return _in_place(arguments, converter, work, terminal)
    with open_output(arguments.output, terminal, force=arguments.force) as output:
        work.do(converter, output.write)
        if work.has_nothing:
            output.abandon()
    return int(bool(work.failed))


def _refuse_contradictions(arguments: argparse.Namespace) -> None:
    if arguments.in_place and arguments.output != STDOUT:
        raise InputError("cannot be used with --output", path="--in-place", hint="remove one of them")
    if arguments.in_place and arguments.file == STDIN:
        raise InputError("stdin cannot be replaced", path="--in-place", hint="use a file, or remove --in-place")


def _in_place(arguments: argparse.Namespace, converter: Converter, work: _RepairRun, terminal: Terminal) -> int:
    """Replace the file if something changed, after its backup is written."""
    with replace_file(arguments.file) as output:
        work.do(converter, output.write)
        if not work.changed:
            output.abandon()
            return int(bool(work.failed))
        backup = back_up(arguments.file, force=arguments.force)
    if not arguments.quiet:
        terminal.err.line(f"replaced {clean(arguments.file)}; the original is {clean(backup)}")
    return int(bool(work.failed))


class _RepairRun:
    """Repairs the requests of a file, writes them, and prints the changes."""

    def __init__(self, arguments: argparse.Namespace, terminal: Terminal) -> None:
        self.file: str = arguments.file
        self.is_quiet: bool = arguments.quiet
        self.is_check: bool = arguments.check
        self.is_in_place: bool = arguments.in_place
        self.is_all: bool = arguments.all
        self.backup = f"{arguments.file}.bak" if arguments.in_place and not arguments.force else ""
        """The backup file, which must not exist yet if something changes."""
        self.terminal = terminal
        self.requests = self.changed = self.failed = self.shown = 0
        self.has_nothing = False
        """The only request could not be repaired, so there is nothing to write."""

    def do(self, converter: Converter, write: Write) -> None:
        for outcome in convert_files([self.file], converter, self.terminal, "repair", write):
            if outcome.record.is_session and self.is_in_place:
                hint = f"toolglot doctor {self.file} --fix"
                raise InputError("a session file cannot be replaced by a request", path=self.file, hint=hint)
            self.requests += 1
            if outcome.error is not None:
                self.failed += 1
                show_failure(outcome, self.terminal)
                self.has_nothing = not outcome.record.is_line
                if outcome.record.is_line:
                    write(outcome.record.blank + outcome.record.data)
                continue
            if outcome.is_changed and self.backup and not self.is_check:
                refuse_existing(self.backup, force=False)
            write(outcome.repaired_data)
            self.changed += outcome.is_changed
            if outcome.is_changed and not self.is_quiet:
                self._show(outcome)
        if not self.is_quiet:
            self._summarise()

    def _show(self, outcome: ConversionOutcome) -> None:
        page = self.terminal.err
        self.shown += 1
        if self.shown > MAX_DIFFS:
            return
        assert outcome.out is not None  # noqa: S101 - it changed
        # What is written, whose fields are in the order of the file's.
        written = json.loads(outcome.repaired_data.decode("utf-8-sig"))
        show_diff(outcome.before, written, outcome.record.where, page)
        page.line()
        folded = 0
        for entry in order_by_gravity(outcome.entries):
            if entry.gravity == "housekeeping" and not self.is_all:
                folded += 1
            else:
                show_entry(entry, page)
        if folded:
            page.line(page.paint(f"{folded} housekeeping (use --all to show)", "dim"))
        page.line(summarise(outcome.entries))

    def _summarise(self) -> None:
        page = self.terminal.err
        if self.shown > MAX_DIFFS:
            page.line(f"… and {plural(self.shown - MAX_DIFFS, 'more request')}")
        would = "would be " if self.is_check else ""
        text = f"{would}repaired: {self.changed} of {plural(self.requests, 'request')}"
        if not self.changed:
            text = "nothing to repair" if not self.failed else ""
        if text:
            page.line(page.paint(text, "bold", "yellow" if self.changed else "green"))
        if self.failed:
            page.line(page.paint(f"not repaired: {plural(self.failed, 'request')}", "bold", "red"))


def show_entry(entry: Entry, page: TerminalPage) -> None:
    """Print one change: what, where, why, and its fault class."""
    where = f" {page.paint(clean(entry.path), 'cyan')}" if entry.path else ""
    gravity = page.paint(f"{entry.gravity}:", *_COLOURS[entry.gravity])
    page.line(f"{gravity} {page.paint(entry.action, 'bold')}{where}")
    page.paragraph(clean(entry.reason), indent="  ")
    page.line(page.paint(f"  {entry.fault}: {FAULTS[entry.fault]}", "dim"))

"""`toolglot bulk`: convert, count and check many transcripts: rows of training data, captures, session traces."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolglot.cli.options import Formatter, add_quiet, parse_count
from toolglot.cli.screen.terminal import Terminal, clean, plural
from toolglot.errors import InputError

if TYPE_CHECKING:
    from toolglot.bulk import BulkOptions, DetectedFormat
    from toolglot.bulk.engine.assembly import RunSummary
    from toolglot.bulk.engine.plan import InputFile
    from toolglot.bulk.stats import RowStats

MAX_LISTED: Final = 8
PREVIEWED: Final = 3
_BAR: Final = 40
_EVERY: Final = 0.25
"""Seconds between two lines of progress."""

_DESCRIPTION: Final = """\
Convert many transcripts from any form to any form, on all cores of this machine or on Ray: files for fine-tuning,
public datasets, requests, captures of the gateway, session traces. Each row is counted once: converted, merged, dropped
by an option, or set aside with its reason."""

_EPILOG: Final = """\
examples:
  toolglot bulk convert glaive.jsonl --to openai -o train.jsonl
  toolglot bulk convert captures.jsonl --to messages --dedupe prefix --redact -o train.parquet
  toolglot bulk convert data/ --to sharegpt --split turns --reasoning last -o out/
  toolglot bulk stats train.parquet
  toolglot bulk lint train.jsonl --for openai@gpt-4.1
  toolglot bulk formats

exit codes: 0 everything was converted; 1 rows were set aside (--allow-lost accepts that), or lint found something;
2 unreadable input or wrong usage
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    parsers = {
        name: actions.add_parser(name, help=summary, formatter_class=Formatter)
        for name, (summary, _) in _ACTIONS.items()
    }
    for name, each in parsers.items():
        each.description = f"{_ACTIONS[name][0][0].upper()}{_ACTIONS[name][0][1:]}."
        each.epilog = _EPILOG
        if name != "formats":
            _add_input(each)
    _add_convert(parsers["convert"])
    parsers["stats"].add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parsers["stats"].add_argument("--plot", metavar="FILE.svg", help="also draw the counts into this file")
    parsers["stats"].add_argument("--force", action="store_true", help="overwrite that file")
    parsers["lint"].add_argument(
        "--for", dest="validate", metavar="TARGET[@MODEL]", required=True, help="the target that would get the rows"
    )
    parsers["lint"].add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="IN",
        help="JSONL, a JSON list, Parquet or Arrow, also .gz and .zst; a folder of them; or an address for fsspec",
    )
    parser.add_argument("--from", dest="source", metavar="FORMAT", default="auto", help="the format of the rows")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME=KNOWN",
        help="the column NAME is what the format calls KNOWN; may be repeated",
    )
    parser.add_argument("--strip-nulls", action="store_true", help="leave out fields that are null")
    parser.add_argument("--limit", type=parse_count, metavar="N", help="read only the first N rows")
    add_quiet(parser)


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", dest="target", metavar="FORMAT", required=True, help="the format to write")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="a file (.jsonl, .jsonl.gz, .jsonl.zst, .parquet, .arrow) or a folder/"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing output; begin a stopped run anew")
    parser.add_argument("--preview", action="store_true", help=f"show the first {PREVIEWED} rows, and write nothing")
    parser.add_argument(
        "--split", choices=("conversation", "turns"), default="conversation", help="a row for each conversation or turn"
    )
    parser.add_argument(
        "--reasoning", choices=("keep", "last", "drop"), default="keep", help="what becomes of thinking"
    )
    parser.add_argument("--drop-failed", action="store_true", help="leave out rows in which a tool call failed")
    parser.add_argument("--images", choices=("keep", "file", "drop"), default="keep", help="what becomes of images")
    parser.add_argument("--redact", action="store_true", help="mask keys, tokens and names of home directories")
    parser.add_argument("--dedupe", choices=("prefix",), help="merge rows that a longer row begins with")
    parser.add_argument(
        "--dangling",
        choices=("keep", "result", "reject"),
        default="keep",
        help="what becomes of calls without a result",
    )
    parser.add_argument("--validate", metavar="TARGET[@MODEL]", help="add a column with what this target would refuse")
    parser.add_argument(
        "--changes", choices=("auto", "column", "file"), default="auto", help="where to say what was changed"
    )
    parser.add_argument(
        "--columns", choices=("json", "struct"), default="json", help="how Parquet and Arrow hold objects"
    )
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="what runs it (default: local)")
    parser.add_argument("--processes", type=parse_count, metavar="N", help="default: one for each core")
    parser.add_argument(
        "--shard-bytes", type=parse_count, metavar="N", help="about how large a shard is (default: 32M)"
    )
    parser.add_argument("--allow-lost", action="store_true", help="exit code 0 although rows were set aside")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.bulk import formats  # noqa: PLC0415 - only for this command

    for option, name in (("--from", "source"), ("--to", "target")):
        if getattr(arguments, name, "auto") != "auto":
            formats.get(getattr(arguments, name), path=option)
    return _ACTIONS[arguments.action][1](arguments, terminal)


def _options(arguments: argparse.Namespace, **others: Any) -> BulkOptions:
    from toolglot.bulk import BulkOptions  # noqa: PLC0415 - only for this command

    pairs: list[tuple[str, str]] = []
    for text in arguments.column:
        name, mark, known = text.partition("=")
        if not mark or not name or not known:
            raise InputError(f"expected NAME=KNOWN, got {text[:60]!r}", path="--column", hint="--column turns=messages")
        pairs.append((name, known))
    return BulkOptions(columns=tuple(pairs), strip_nulls=arguments.strip_nulls, **others)


# --- convert ----------------------------------------------------------------------------------------


def _convert(arguments: argparse.Namespace, terminal: Terminal) -> int:
    options = _options(
        arguments,
        split=arguments.split,
        reasoning=arguments.reasoning,
        drop_failed=arguments.drop_failed,
        images=arguments.images,
        redact=arguments.redact,
        dedupe_prefix=arguments.dedupe == "prefix",
        dangling=arguments.dangling,
        validate=arguments.validate or "",
        changes=arguments.changes,
    )
    if arguments.preview:
        return _preview(arguments, options, terminal)
    if not arguments.output:
        raise InputError("where should it go?", path="-o", hint="-o out.jsonl, or --preview to look at some rows")
    from toolglot.bulk.engine.plan import SHARD_BYTES  # noqa: PLC0415 - only for this command
    from toolglot.bulk.engine.run import convert_files  # noqa: PLC0415

    with_progress = _Progress(terminal, quiet=arguments.quiet)
    try:
        summary = convert_files(
            arguments.files,
            arguments.output,
            target=arguments.target,
            source=arguments.source,
            options=options,
            columns=arguments.columns,
            limit=arguments.limit,
            processes=arguments.processes,
            engine=arguments.engine,
            shard_bytes=arguments.shard_bytes or SHARD_BYTES,
            force=arguments.force,
            progress=with_progress.advance,
            started=lambda _plan, total: with_progress.begin(total),
        )
    except KeyboardInterrupt:
        with_progress.clear()
        terminal.note("interrupted; start the same command again to go on")
        raise
    finally:
        with_progress.clear()
    if not arguments.quiet:
        _summarise(summary, arguments.output, terminal)
    return int(bool(summary.lost) and not arguments.allow_lost)


class _Progress:
    """A line on a terminal: rows, rate, share of the input and time left."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._page = terminal.err
        self._is_shown = not quiet and terminal.err.is_live
        self._shown_at = 0.0
        self._rows = 0
        self.begin(0)

    def begin(self, total: int) -> None:
        """Measure from here: what an earlier run did is in none of the rates."""
        self._total = total
        self._bytes = 0
        self._began = time.monotonic()

    def advance(self, rows: int, size: int) -> None:
        self._rows += rows
        self._bytes += size
        now = time.monotonic()
        if not self._is_shown or now - self._shown_at < _EVERY:
            return
        self._shown_at = now
        self._page.stream.write(f"\r\x1b[K{progress_line(self._rows, self._bytes, self._total, now - self._began)}")
        self._page.stream.flush()

    def clear(self) -> None:
        if self._is_shown and self._shown_at:
            self._page.stream.write("\r\x1b[K")
            self._page.stream.flush()


def progress_line(rows: int, done: int, total: int, seconds: float) -> str:
    """`1,200,000 rows · 82 MB/s · 43 % · 0:01:12 left`."""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [rows_text(rows), f"{rate / 1e6:.0f} MB/s"]
    if 0 < done <= total:
        parts.append(f"{100 * done // total} %")
        if rate > 0:
            minutes, left = divmod(int((total - done) / rate), 60)
            parts.append(f"{minutes // 60}:{minutes % 60:02}:{left:02} left")
    return " · ".join(parts)


def rows_text(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def detection_text(found: DetectedFormat) -> str:
    """`format detected: sharegpt (95 % sure), then hermes (30 %)`."""
    others = ", ".join(f"{name} ({100 * sure:.0f} %)" for name, sure in found.others)
    return f"format detected: {found.name} ({100 * found.confidence:.0f} % sure){', then ' if others else ''}{others}"


def _summarise(summary: RunSummary, output: str, terminal: Terminal) -> None:
    page, counts = terminal.err, summary.counts
    color = "yellow" if summary.lost else "green"
    read, made = rows_text(summary.rows), rows_text(counts["outputs"])
    page.line(page.paint(clean(f"{read} of {summary.source} → {made} of {summary.target} in {output}"), "bold", color))
    if summary.detected is not None:
        page.line(f"  {detection_text(summary.detected)}")
    shown = ("converted", "merged", "dropped", "set_aside", "changed", "refused")
    fates = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in shown if counts.get(name))
    page.line(f"  {fates or 'the input has no rows'}")
    for found in (summary.reasons, summary.faults):
        for reason, count in list(found.items())[:MAX_LISTED]:
            times = "once" if count == 1 else f"{count:,} times"
            page.paragraph(clean(f"{times}: {reason.replace('_', ' ', 1)}"), indent="    ", first="  ")
        if len(found) > MAX_LISTED:
            page.line(f"  … and {len(found) - MAX_LISTED} more; the summary file lists them")
    for name in summary.outputs:
        if name.endswith(("set-aside.jsonl", "changes.jsonl")):
            folder = output if os.path.isdir(output) else os.path.dirname(output)  # noqa: PTH112, PTH120
            page.line(f"  see {clean(os.path.join(folder, name))}")  # noqa: PTH118 - as the user writes it


def _preview(arguments: argparse.Namespace, options: BulkOptions, terminal: Terminal) -> int:
    from toolglot.bulk import convert_batch  # noqa: PLC0415 - only for this command

    rows: list[Any] = []
    source = "auto"
    for found, _, batch in _batches(arguments, options, terminal):
        source = found
        rows += batch[: PREVIEWED - len(rows)]
        if len(rows) >= PREVIEWED:
            break
    made = convert_batch(rows, source=source, target=arguments.target, options=options)
    for output in made.outputs:
        terminal.write_json(output.as_row())
    for report in made.reports:
        for entry in report.entries:
            terminal.note(f"row {report.row}: {entry}")
        if report.reason:
            terminal.note(f"row {report.row} {report.fate.replace('_', ' ')}: {report.reason}")
    return 0


def _batches(
    arguments: argparse.Namespace, options: BulkOptions, terminal: Terminal
) -> Iterator[tuple[str, InputFile, list[Any]]]:
    """The rows of all files in batches, with their format and file, up to the limit."""
    from toolglot.bulk import formats  # noqa: PLC0415 - only for this command
    from toolglot.bulk.engine.plan import input_files, whole_file_batches  # noqa: PLC0415

    inputs: tuple[InputFile, ...] = input_files(arguments.files, arguments.source)
    source = formats.get(_source(arguments, inputs, options, terminal))
    left = arguments.limit
    for file in inputs:
        for batch in whole_file_batches(file, source.framing):
            taken = batch if left is None else batch[:left]
            yield source.name, file, taken
            left = None if left is None else left - len(taken)
            if left == 0:
                return


def _source(
    arguments: argparse.Namespace, inputs: tuple[InputFile, ...], options: BulkOptions, terminal: Terminal
) -> str:
    from toolglot.bulk.engine.plan import detect_files  # noqa: PLC0415 - only for this command

    name: str = arguments.source
    if name != "auto":
        return name
    found = detect_files(inputs, options)
    if not arguments.quiet:
        terminal.err.line(detection_text(found))
    return found.name


# --- stats and lint ---------------------------------------------------------------------------------


def _stats(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.bulk.stats import RowStats  # noqa: PLC0415 - only for this command
    from toolglot.bulk.stats_plot import draw  # noqa: PLC0415

    options = _options(arguments)
    stats = RowStats()
    source = ""
    if arguments.plot and not arguments.force and os.path.lexists(arguments.plot):
        raise InputError("output already exists", path=arguments.plot, hint="overwrite it with --force")
    for found, _, batch in _batches(arguments, options, terminal):
        source = found
        for row in batch:
            stats.add(row, source, options)
    if arguments.plot:
        title = f"{rows_text(stats.rows['rows'])} of {source}, {stats.characters:,} characters"
        Path(arguments.plot).write_text(draw(stats.as_json(), title), encoding="utf-8")
    if arguments.format == "json":
        terminal.write_json({"format": source, **stats.as_json()})
    else:
        _show_stats(source, stats, terminal)
    return 0


def _show_stats(source: str, stats: RowStats, terminal: Terminal) -> None:
    page, found = terminal.out, stats.as_json()
    rows = found["rows"]
    page.line(page.paint(f"{rows_text(rows.get('rows', 0))} of {source}, {stats.characters:,} characters", "bold"))
    kinds = ("set_aside", "with_tools", "with_calls", "with_failures", "preferences")
    page.line("  " + ", ".join(f"{rows[kind]:,} {kind.replace('_', ' ')}" for kind in kinds if rows.get(kind)))
    page.line()
    page.table([(role, f"{count:,}") for role, count in found["turns"].items()], heading=("TURNS OF", "NUMBER"))
    if found["calls"]:
        page.line()
        calls = [
            (clean(each["tool"])[:60], f"{each['calls']:,}", f"{100 * each['failures'] / each['calls']:.1f} %")
            for each in found["calls"][:20]
        ]
        page.table(calls, heading=("TOOL", "CALLS", "FAILED"))
    for name in ("providers", "models"):
        if found[name]:
            page.line()
            listed = [(clean(each)[:60], f"{count:,}") for each, count in list(found[name].items())[:20]]
            page.table(listed, heading=(name.upper(), "ROWS"))
    for heading, groups in (("CHARACTERS", found["lengths"]), ("TURNS", found["turns_of_rows"])):
        if not any(each["rows"] for each in groups):
            continue
        page.line()
        page.table(_bars(groups), heading=(heading, "ROWS", ""))
    if found["faults"]:
        page.line()
        classes = [(name, f"{count:,}") for name, count in found["fault_classes"].items()]
        page.table(classes, heading=("CLASS OF FAULT", "NUMBER"))
        page.line()
        faults = [(f"{count:,}", clean(reason)) for reason, count in list(found["faults"].items())[:20]]
        page.table(faults, heading=("ROWS", "FAULT"))


def _bars(groups: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """The groups as a drawing, without the empty ones at both ends."""
    used = [number for number, each in enumerate(groups) if each["rows"]]
    groups = groups[used[0] : used[-1] + 1] if used else []
    most = max((each["rows"] for each in groups), default=0) or 1
    return [
        (
            f"up to {each['up_to']:,}" if each["up_to"] else "more",
            f"{each['rows']:,}",
            "█" * round(_BAR * each["rows"] / most),
        )
        for each in groups
    ]


def _lint(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.bulk import formats  # noqa: PLC0415 - only for this command
    from toolglot.bulk.batch import check_target, lint_row  # noqa: PLC0415
    from toolglot.bulk.engine.files import row_lines  # noqa: PLC0415

    options = _options(arguments)
    check_target(arguments.validate)
    number = refused = unread = 0
    path = ""
    lines: Iterator[int] = iter(())
    for source, file, batch in _batches(arguments, options, terminal):
        if file.path != path:
            path, in_file = file.path, 0
            lines = row_lines(path, file.kind, framing=formats.get(source).framing)
        for row in batch:
            try:
                found = lint_row(row, source, arguments.validate, options)
                refused += bool(found)
            except InputError as error:
                found = (f"{error.path}: {error.message}",)
                unread += 1
            position = RowPosition(number, path, in_file, next(lines, None))
            _show_findings(position, found, arguments.format, terminal)
            number, in_file = number + 1, in_file + 1
    if not arguments.quiet:
        page = terminal.err
        text = f"{plural(number, 'row')}: {refused} would be refused, {unread} cannot be read"
        page.line(page.paint(text, "bold", "red" if refused or unread else "green"))
    return int(bool(refused or unread))


class RowPosition(NamedTuple):
    """Where a row is: its number in all files and in its own, from 0, and its line, if it is one."""

    row: int
    file: str
    row_in_file: int
    line: int | None


def _show_findings(at: RowPosition, found: tuple[str, ...], format: str, terminal: Terminal) -> None:
    if found and format == "json":
        terminal.out.line(clean_json({**at._asdict(), "found": list(found)}))
        return
    where = f"{at.file}:{at.line}" if at.line is not None else f"{at.file}: row {at.row_in_file}"
    for line in found[:MAX_LISTED]:
        terminal.out.line(f"{clean(where)}: {clean(line)}")


def clean_json(value: Any) -> str:
    """A value as JSON on a line that is safe on a terminal."""
    from toolglot.jsontext import compact  # noqa: PLC0415 - only here

    return clean(compact(value))


# --- formats ----------------------------------------------------------------------------------------


def _formats(_: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.bulk import known_formats  # noqa: PLC0415 - only for this command

    rows = [
        (found.name, "yes" if found.read else "", "yes" if found.write else "", found.title)
        for found in known_formats().values()
    ]
    rows += [
        ("request:PROVIDER", "yes", "yes", "Requests of a protocol or provider: request:anthropic"),
        ("text:DIALECT", "", "yes", "Text in a model's dialect, with a loss mask: text:hermes"),
    ]
    terminal.out.table(rows, heading=("FORMAT", "READ", "WRITTEN", ""))
    return 0


_ACTIONS: Final[dict[str, tuple[str, Callable[[argparse.Namespace, Terminal], int]]]] = {
    "convert": ("convert rows from one format to another", _convert),
    "stats": ("count turns, calls by tool, failures, lengths and faults", _stats),
    "lint": ("list what a target would refuse, row by row", _lint),
    "formats": ("list the formats", _formats),
}

"""One batch of rows, from any form to any form: a pure function, for whatever runs it.

    batch = toolglot.bulk.convert_batch(rows, source="sharegpt", target="openai")
    batch.rows, batch.reports, batch.counts

It keeps no state, does no I/O and can be sent to another process, so a pool, Ray, `datasets.map` and Spark all run the
same thing. Law: each row is counted once (`report.py`), whatever it holds; rows, options and version decide the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from toolglot import jsontext, lint, profiles
from toolglot.bulk import formats
from toolglot.bulk.example import Example, Notes, Row, UnreadableRow
from toolglot.bulk.formats.format import Format
from toolglot.bulk.meaning import meaning, prefix_hashes
from toolglot.bulk.options import DEFAULT_OPTIONS, BulkOptions
from toolglot.bulk.plain_values import plain_value
from toolglot.bulk.rendering import render_example, tail_of
from toolglot.bulk.report import ConvertedBatch, OutputRow, RowReport, check_account
from toolglot.bulk.row_profiles import row_profile
from toolglot.bulk.shaping import has_failed_call, shape, split, strip_nulls
from toolglot.conversation.report import Entry
from toolglot.errors import InputError, ToolglotError, quote
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.base import codec

CHANGES: Final = "toolglot_changes"
"""The column that says what was changed."""
VIOLATIONS: Final = "toolglot_violations"
"""The column with what the target of `validate` would refuse."""
AUTO: Final = "auto"
MAX_COLUMNS: Final = 200
"""The most characters of the names of columns in an error."""
_COLUMN: Final = re.compile(r"\$\.(\w+)")
MAX_ENTRIES: Final = 200
"""The most entries in the report of a row."""

InputRow = Mapping[str, Any] | bytes | str | UnreadableRow


def convert_batch(
    rows: Sequence[InputRow],
    *,
    source: str = AUTO,
    target: str,
    options: BulkOptions = DEFAULT_OPTIONS,
    limits: Limits = DEFAULT_LIMITS,
    merged: Mapping[int, str] | None = None,
) -> ConvertedBatch:
    """Convert rows of one format to another.

    rows: the rows, as objects or as lines of JSON.
    source: the format of the rows; `auto` detects it from the first of them.
    target: the format to write.
    options: settings (`BulkOptions`).
    limits: how large and how deep a row may be.
    merged: rows that are known to be merged into others, with the reason.

    Raises `UnknownNameError` for an unknown format, and `InputError` if the format cannot be detected. What is wrong
    with a row is in its report.
    """
    to = formats.get(target)
    if to.write is None:
        raise InputError(f"rows of the format {to.name!r} cannot be written", path="target", hint=writable())
    reader = _Reader(options, limits)
    notes = [Notes() for _ in rows]
    parsed = [reader.parse(row, each) for row, each in zip(rows, notes, strict=True)]
    from_ = _source(source, [value for value in parsed if isinstance(value, dict)])
    converter = _Converter(from_, to, options)
    examples = [reader.read(value, from_, each) for value, each in zip(parsed, notes, strict=True)]
    known = dict(merged or {})
    if options.dedupe_prefix and merged is None:
        known = find_prefixes([None if isinstance(found, InputError) else found for found in examples])
    outputs: list[OutputRow] = []
    reports: list[RowReport] = []
    files: dict[str, bytes] = {}
    for number, found in enumerate(examples):
        if isinstance(found, InputError):
            reports.append(_set_aside(number, found))
        elif number in known:
            reports.append(RowReport(row=number, fate="merged", reason=known[number]))
        else:
            line = rows[number]
            written = Written(line, parsed[number]) if isinstance(line, bytes) else None
            report, made = converter.convert(number, found, notes[number], written, files)
            reports.append(report)
            outputs += made
    batch = ConvertedBatch(outputs=outputs, reports=reports, files=files)
    check_account(batch, len(rows))
    return batch


def writable() -> str:
    """The formats that can be written, for a hint."""
    return (
        "one of " + ", ".join(name for name, found in formats.known_formats().items() if found.write) + ", text:DIALECT"
    )


def read_example(row: InputRow, source: str, options: BulkOptions = DEFAULT_OPTIONS) -> tuple[Example, list[Entry]]:
    """What one row means, and what had to be changed to read it. Raises `InputError`."""
    reader, notes = _Reader(options, DEFAULT_LIMITS), Notes()
    found = reader.read(reader.parse(row, notes), formats.get(source), notes)
    if isinstance(found, InputError):
        raise found
    return found, notes.entries


def check_target(name: str) -> None:
    """Raise `UnknownNameError` for an unknown target (`TARGET` or `TARGET@MODEL`) that rows are checked against."""
    _judge(name)


def lint_row(row: InputRow, source: str, target: str, options: BulkOptions = DEFAULT_OPTIONS) -> tuple[str, ...]:
    """What a target (`TARGET` or `TARGET@MODEL`) would refuse of a row as it is. Raises `InputError` for a row that
    cannot be read."""
    example, _ = read_example(row, source, options)
    return _judge(target)(example)


def find_prefixes(examples: Sequence[Example | None]) -> dict[int, str]:
    """The examples that are the beginning of a longer one, or the same as an earlier one."""
    hashes = [prefix_hashes(example) if example is not None else [] for example in examples]
    begins: dict[bytes, int] = {}
    for number, found in enumerate(hashes):
        for each in found[:-1]:
            begins.setdefault(each, number)
    known: dict[int, str] = {}
    first: dict[bytes, int] = {}
    for number, found in enumerate(hashes):
        if not found:
            continue
        if found[-1] in begins:
            known[number] = PREFIX_REASON
        elif first.setdefault(found[-1], number) != number:
            known[number] = SAME_REASON
    return known


PREFIX_REASON: Final = "a longer row begins with all of its turns"
SAME_REASON: Final = "an earlier row has the same turns"


def _source(name: str, rows: list[Row]) -> Format:
    if name != AUTO:
        found = formats.get(name)
        if found.read is None:
            raise InputError(f"rows of the format {found.name!r} cannot be read", path="source")
        return found
    if not rows:
        return formats.get("messages")  # every row is set aside, or there is none
    detected = formats.detect(rows)
    if not detected.name:
        others = ", ".join(f"{other} ({sure:.0%})" for other, sure in detected.others)
        hint = f"name it; it might be {others}" if others else "name it, or map its columns (`BulkOptions.columns`)"
        raise InputError("the format of the rows is not clear", path="source", hint=hint)
    return formats.get(detected.name)


def _explained(error: InputError, row: Row, source: Format) -> InputError:
    """Why a row cannot be read, with the column that it lacks and the format that it seems to be of."""
    message, hint = error.message, error.hint
    column = _COLUMN.fullmatch(error.path)
    if column is not None and row.get(column[1]) is None:
        listed = ", ".join(map(str, row))[:MAX_COLUMNS] or "none"
        message = f"the column {column[1]!r} is missing; the row has: {listed}"
        hint = f"--column NAME={column[1]} names it"
    found = formats.detect([row])
    if found.name and found.name != source.name:
        hint = f"the row looks like {found.name}"
    return InputError(message, path=error.path, hint=hint)


def _set_aside(number: int, error: InputError, entries: Sequence[Entry] = ()) -> RowReport:
    reason = f"{error.message} ({error.hint})" if error.hint else error.message
    return RowReport(row=number, fate="set_aside", reason=reason, path=error.path, entries=tuple(entries))


class Written(NamedTuple):
    """A row as a line of a file, and what was read of it."""

    line: bytes
    row: Any


class _Reader:
    """Rows as examples; what cannot be read, as the error."""

    def __init__(self, options: BulkOptions, limits: Limits) -> None:
        self._options = options
        self._limits = limits
        self._renamed = dict(options.columns)

    def parse(self, row: InputRow, notes: Notes) -> Row | InputError:
        try:
            value = self._value(row, notes)
        except InputError as error:
            return error
        if not isinstance(value, dict):
            return InputError(f"expected a JSON object, got {quote(value)}", hint="one object on each line")
        if self._options.strip_nulls:
            value = strip_nulls(value)
        if self._renamed:
            renamed = {self._renamed.get(name, name): held for name, held in value.items()}
            if len(renamed) < len(value):
                hint = "map the one that is meant"
                return InputError("two columns of the row have the same name after --column", path="$", hint=hint)
            value = renamed
        plain: Row = value
        return plain

    def _value(self, row: InputRow, notes: Notes) -> Any:
        if isinstance(row, UnreadableRow):
            raise InputError(row.reason, hint=row.hint)
        if isinstance(row, bytes | str):
            try:
                return jsontext.parse_plain(row, limits=self._limits)
            except InputError:
                raise
            except (ValueError, RecursionError):
                parsed = jsontext.parse(row, limits=self._limits)
                for repair in parsed.repairs:
                    notes.add("converted", repair)
                return parsed.value
        cloned = jsontext.clone(
            plain_value(dict(row), lambda reason: notes.add("converted", reason)), limits=self._limits
        )
        for change in cloned.changes:
            notes.add("converted", change.reason, change.path)
        return cloned.value

    def read(self, row: Row | InputError, source: Format, notes: Notes) -> Example | InputError:
        if isinstance(row, InputError):
            return row
        assert source.read is not None  # noqa: S101 - `_source` has checked it
        try:
            example = source.read(row, notes)
        except InputError as error:
            return _explained(error, row, source)
        except RecursionError:
            return InputError("nests too deeply", hint="flatten it")
        if not example.conversation.turns:
            return InputError("the row has no turns", path="$")
        if source.columns and not row.keys() <= source.columns:
            columns = {name: held for name, held in row.items() if name not in source.columns}
            columns.pop(CHANGES, None)
            columns.pop(VIOLATIONS, None)
            example = replace(example, columns=columns)
        return example


class _Converter:
    """Examples as rows of a format."""

    def __init__(self, source: Format, target: Format, options: BulkOptions) -> None:
        self._source = source
        self._target = target
        self._options = options
        self._profile = row_profile(target.profile)
        self._is_same_form = source.name == target.name and not options.columns and not options.strip_nulls
        self._has_column = options.changes == "column" or (options.changes == "auto" and target.takes_columns)
        self._judge = _judge(options.validate) if options.validate else None

    def convert(
        self, number: int, example: Example, notes: Notes, written: Written | None, files: dict[str, bytes]
    ) -> tuple[RowReport, list[OutputRow]]:
        """What a row became, and the rows that it became."""
        options = self._options
        notes.target = self._target.name
        if options.drop_failed and has_failed_call(example):
            return RowReport(row=number, fate="dropped", reason="a tool call failed (drop_failed)"), []
        violations: tuple[str, ...] = ()
        made: list[OutputRow] = []
        try:
            self._refuse_other_kind(example)
            shaped = shape(example, options, notes, files)
            for part in split(shaped, options):
                output, found = self._write(part, example, notes, written)
                violations += found
                made.append(OutputRow(number, *output))
        except InputError as error:
            return _set_aside(number, error, notes.entries[:MAX_ENTRIES]), []
        except RecursionError:
            return _set_aside(number, InputError("nests too deeply", hint="flatten it")), []
        except ToolglotError as error:  # a render that would break a law of its own
            return _set_aside(number, InputError(str(error))), []
        if not made:
            return RowReport(row=number, fate="dropped", reason="no turn of the model to learn (split=turns)"), []
        entries = tuple(notes.entries[:MAX_ENTRIES])
        report = RowReport(
            row=number, fate="converted", outputs=len(made), entries=entries, violations=violations[:MAX_ENTRIES]
        )
        return report, made

    def _refuse_other_kind(self, example: Example) -> None:
        if example.is_preference and not self._target.takes_preferences:
            raise InputError(f"{self._target.name} cannot hold a preference", hint="choose a format for preferences")
        if self._target.takes_preferences and not example.is_preference:
            raise InputError("the row is no preference", hint="it needs a better and a worse answer")

    def _write(
        self, example: Example, original: Example, notes: Notes, written: Written | None
    ) -> tuple[tuple[Row | None, bytes | None], tuple[str, ...]]:
        name = example.source or self._source.source
        source = row_profile(name) if name else None
        rendered = render_example(example, self._profile, source, self._options, notes)
        violations = self._judge(rendered) if self._judge is not None else ()
        if written is not None:
            if rendered is original and self._is_same_form and not notes.entries and not violations:
                return (None, written.line.strip()), ()
            if not notes.has_duplicates and jsontext.has_duplicate_keys(*written):
                notes.has_duplicates = True
                notes.add("converted", jsontext.DUPLICATE_KEY)
        assert self._target.write is not None  # noqa: S101 - `convert_batch` has checked it
        row = self._target.write(rendered, notes)
        if self._target.is_text:
            self._read_back(row, rendered, notes)
        return (self._with_columns(row, example, notes, violations), None), violations

    def _read_back(self, row: Row, rendered: Example, notes: Notes) -> None:
        """Report what the row, read again, does not say in the same way."""
        again = _Reader(DEFAULT_OPTIONS, DEFAULT_LIMITS).read(row, self._target, Notes())
        if isinstance(again, InputError):
            raise InputError(f"the row could not be read back: {again.message}", path=again.path)
        if meaning(again) != meaning(rendered):
            reason = (
                "what the format holds in text reads back differently: a role, a call, a result or a mark in a text"
            )
            notes.add("converted", reason, gravity="loss")

    def _with_columns(self, row: Row, example: Example, notes: Notes, violations: tuple[str, ...]) -> Row:
        if example.columns:
            if self._target.takes_columns:
                carried = {name: held for name, held in example.columns.items() if name not in self._target.columns}
                row = {**row, **carried}
                lost = {*example.columns} - {*carried}
            else:
                lost = {*example.columns}
            if lost:
                listed = ", ".join(sorted(lost)[:10])
                notes.add("dropped", f"the format has no place for the columns {listed[:200]}", gravity="change")
        if not self._has_column:
            return row
        changes = [f"{entry} [{entry.gravity}]" for entry in notes.entries if entry.gravity != "housekeeping"]
        if changes:
            row = {**row, CHANGES: list(dict.fromkeys(changes))[:MAX_ENTRIES]}
        return {**row, VIOLATIONS: list(violations)} if violations else row


@lru_cache(maxsize=64)
def _judge(name: str) -> Callable[[Example], tuple[str, ...]]:
    """What says what a target would refuse of a row. A row ends with the model's turn, a request does not: it is judged
    with a turn behind it."""
    target, _, model = name.partition("@")
    profile = profiles.get(target, kind="target")

    def judge(example: Example) -> tuple[str, ...]:
        turns = example.conversation.turns
        asked = replace(example.conversation, turns=(*turns, *tail_of(turns)))
        body = codec(profile.protocol).request.encode(asked, profile)
        if model:
            body["model"] = model
        return tuple(f"{found.path}: {found.message} [{found.rule}]" for found in lint(body, profile.name, model))

    return judge

"""What became of the rows of a batch, and the account that must balance.

Law: each input row is counted once: converted into one or more rows, merged into another, dropped by an option, or set
aside with its reason. Each output row comes from a row that was converted. `check` raises if that is not so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.bulk.example import Row
from toolglot.conversation.report import Entry
from toolglot.errors import RenderError
from toolglot.jsontext import compact, parse_plain

Fate = Literal["converted", "merged", "dropped", "set_aside"]
FATES: Final[tuple[Fate, ...]] = ("converted", "merged", "dropped", "set_aside")


class RowReport(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What became of one row.

    row: its index in the batch.
    fate: whether it was converted, merged, dropped or set aside.
    outputs: how many rows it became.
    reason: why it was merged, dropped or set aside.
    path: where in the row that was seen.
    entries: what was changed.
    violations: what the target of `validate` would refuse.
    """

    row: int
    fate: Fate
    outputs: int = 0
    reason: str = ""
    path: str = ""
    entries: tuple[Entry, ...] = ()
    violations: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether something was changed or lost that means something."""
        return any(entry.gravity != "housekeeping" for entry in self.entries)


class OutputRow(Struct, frozen=True, gc=False):
    """A row that was made, as an object or as the bytes of a line.

    origin: the index of the input row that it comes from.
    """

    origin: int
    row: Row | None = None
    line: bytes | None = None

    def as_row(self) -> Row:
        return self.row if self.row is not None else parse_plain(self.line or b"{}")

    def as_line(self) -> bytes:
        """The row as JSON, without an end of line."""
        return self.line if self.line is not None else encode_row(self.row)


def encode_row(row: Any) -> bytes:
    """A row as JSON on one line."""
    return compact(row).encode(errors="replace")


class ConvertedBatch(Struct, frozen=True, kw_only=True):
    """The rows that a batch became, and what became of each row of it.

    outputs: the rows that were made, in the order of the rows that they come from.
    reports: one for each input row, in order.
    files: images that became files, by name (`images=file`).
    """

    outputs: list[OutputRow]
    reports: list[RowReport]
    files: dict[str, bytes] = {}

    @property
    def rows(self) -> list[Row]:
        """The rows that were made, as objects."""
        return [output.as_row() for output in self.outputs]

    @property
    def counts(self) -> Counter[str]:
        """How many rows had each fate, how many were made, and how many were changed."""
        counts: Counter[str] = Counter(dict.fromkeys(FATES, 0))
        counts.update(report.fate for report in self.reports)
        counts["rows"] = len(self.reports)
        counts["outputs"] = len(self.outputs)
        counts["changed"] = sum(report.fate == "converted" and report.is_changed for report in self.reports)
        counts["refused"] = sum(bool(report.violations) for report in self.reports)
        return counts


def check_account(batch: ConvertedBatch, rows: int) -> None:
    """Raise if a row of a batch is not counted, is counted twice, or has other outputs than its report says."""
    made = Counter(output.origin for output in batch.outputs)
    is_right = (
        [report.row for report in batch.reports] == list(range(rows))
        and all(made[report.row] == report.outputs for report in batch.reports)
        and all((report.fate == "converted") == (report.outputs > 0) for report in batch.reports)
        and made.total() == sum(report.outputs for report in batch.reports)
        and all(report.reason for report in batch.reports if report.fate != "converted")
    )
    if not is_right:
        raise RenderError("the rows of a batch do not add up", f"{rows} rows, {batch.counts}")


def check_totals(counts: Iterable[tuple[str, int]], rows: int) -> None:
    """The same for the totals of a run."""
    known = dict(counts)
    if sum(known.get(fate, 0) for fate in FATES) != rows:
        raise RenderError("the rows of a run do not add up", f"{rows} rows, {known}")

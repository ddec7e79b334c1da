"""What a format is: its name, how a row of it is recognised, read and written.

    FORMAT = Format(name="swift", title="ms-swift", columns=…, detect=…, read=…, write=…)

Law: a reader raises only `InputError`, whatever a row holds, and reports what it had to guess. A writer reports what
the format cannot hold. Neither does I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from toolglot.bulk.example import Example, Notes, Row

Reader = Callable[[Row, Notes], Example]
Writer = Callable[[Example, Notes], Row]
Framing = Literal["row", "trace"]


class Format(Struct, frozen=True, kw_only=True):
    """A form that a row of training data may have."""

    name: str
    title: str
    columns: frozenset[str] = frozenset()
    """The columns that it defines. A row's others are carried along where the target allows it."""
    detect: Callable[[Row], float]
    """How sure it is, from 0 to 1, that a row is of this format."""
    read: Reader | None = None
    write: Writer | None = None
    source: str = "rows"
    """The profile that its conversations are written for."""
    profile: str = "rows"
    """The profile that a conversation is rendered for before it is written: one of `rows.toml`, or of toolglot."""
    takes_columns: bool = True
    """Whether a row may have columns that the format does not define."""
    is_text: bool = False
    """Whether calls, results or roles are written into text. Such a row is read again, and what does not come back the
    same is reported."""
    framing: Framing = "row"
    """`trace`: a row is a list of lines in a file, the first of which begins it."""
    json_columns: frozenset[str] = frozenset()
    """Columns that hold objects or lists. In Parquet and Arrow they are JSON in strings, since these merge the fields
    of all rows otherwise."""
    takes_preferences: bool = False
    """Whether a row may hold a prompt with two answers."""


def text_column(row: Row, name: str) -> str:
    """A column that holds text; empty if it is not there."""
    value: Any = row.get(name)
    return value if isinstance(value, str) else ""

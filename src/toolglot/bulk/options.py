"""The settings of a conversion in bulk, each with its default.

Law: the same rows, settings and version give the same bytes. Every setting is plain data, so that it can be sent to
another process and written into the plan of a run.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Struct

from toolglot.errors import InputError, quote

Split = Literal["conversation", "turns"]
KeepReasoning = Literal["keep", "last", "drop"]
Images = Literal["keep", "file", "drop"]
Dangling = Literal["keep", "result", "reject"]
Changes = Literal["auto", "column", "file"]

_CHOICES: Final = {
    "split": get_args(Split),
    "reasoning": get_args(KeepReasoning),
    "images": get_args(Images),
    "dangling": get_args(Dangling),
    "changes": get_args(Changes),
}


class BulkOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of `convert_batch` and of `toolglot bulk convert`."""

    split: Split = "conversation"
    """`conversation`: one row for each conversation. `turns`: one row for each turn of the model, with what came before
    it, so that the last turn is what is learned."""
    reasoning: KeepReasoning = "keep"
    """Thinking: keep all of it, only that of the last turn of the model, or none."""
    drop_failed: bool = False
    """Leave out rows in which a tool call failed."""
    images: Images = "keep"
    """Images within rows: keep them, put them into files and refer to these, or leave them out."""
    redact: bool = False
    """Mask what looks like a key or a token, and the names of home directories."""
    dedupe_prefix: bool = False
    """Merge a row into a longer one that begins with all of its turns: a capture of a growing conversation."""
    dangling: Dangling = "keep"
    """A call without a result. `keep`: at the end of a conversation it stays, elsewhere it gets a result that says that
    there was none. `result`: it always gets one. `reject`: the row is set aside."""
    validate: str = ""
    """Check rows against this target, as `TARGET` or `TARGET@MODEL`; a column has what it would refuse."""
    changes: Changes = "auto"
    """Where to say what was changed: in a column of the row, or in a file beside the rows. `auto`: in a column if the
    format may have columns of its own."""
    columns: tuple[tuple[str, str], ...] = ()
    """Other names of columns, as pairs: the name in the rows, and the name that the format knows."""
    strip_nulls: bool = False
    """Leave out fields that are null, which Arrow adds where rows with different fields are in one column."""

    def __post_init__(self) -> None:
        for field, allowed in _CHOICES.items():
            if getattr(self, field) not in allowed:
                raise InputError(
                    f"expected one of {', '.join(allowed)}, got {quote(getattr(self, field))}", path=f"options.{field}"
                )


DEFAULT_OPTIONS: Final = BulkOptions()

"""An example: what a row of training data means, whatever its form.

A reader of a format makes an `Example` of a row, a writer makes a row of an `Example`. Between them there is nothing
else, so n formats need n readers and n writers.

Law: values only. `notes` of a turn say what a trainer may learn from it (`TRAIN`).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, Turn
from toolglot.conversation.report import Action, Entry, Gravity, gravity_of

Row = dict[str, Any]

TRAIN: Final = "train"
"""The note of a turn that says whether it is trained on."""


class UnreadableRow(Struct, frozen=True):
    """A row that there is, and that cannot be read: a line that is too long, a file that is damaged.

    reason: why.
    hint: what to do.
    """

    reason: str
    hint: str = ""


class Example(Struct, frozen=True, kw_only=True):
    """A conversation to learn from, or a prompt with a better and a worse answer.

    conversation: the turns, or the prompt.
    preferred, rejected: the answers of a preference; None: it is none.
    columns: the columns of the row that its format does not define.
    id: how the row is called where it came from.
    session: the session that the row is a part of.
    source: the profile that the conversation was written for, where the row says so; else that of its format counts.
    """

    conversation: Conversation
    preferred: tuple[Turn, ...] | None = None
    rejected: tuple[Turn, ...] | None = None
    columns: Row = {}
    id: str = ""
    session: str = ""
    source: str = ""

    @property
    def is_preference(self) -> bool:
        return self.preferred is not None and self.rejected is not None


class Notes:
    """Collects what was changed while a row was read, shaped and written."""

    __slots__ = ("entries", "has_duplicates", "target")

    def __init__(self, target: str = "") -> None:
        self.entries: list[Entry] = []
        self.target = target
        self.has_duplicates = False
        """Whether an object of the row was found that names a key twice."""

    def add(self, action: Action, reason: str, path: str = "", *, gravity: Gravity | None = None) -> None:
        entry = Entry(
            action=action,
            reason=reason,
            fault="loss" if action == "dropped" else "canonical",
            path=path,
            target=self.target,
            gravity=gravity or gravity_of(action),
        )
        self.entries.append(entry)


def is_trained(turn: Turn) -> bool | None:
    """What a row says about training on a turn; None: nothing."""
    notes = turn.metadata.notes
    found = notes.get(TRAIN) if notes else None
    return found if isinstance(found, bool) else None


def with_training(turn: Turn, train: bool) -> Turn:
    """The turn with a note that says whether it is trained on."""
    notes = {**(turn.metadata.notes or {}), TRAIN: train}
    return replace(turn, metadata=replace(turn.metadata, notes=notes))

"""What stands in the log of a session: one entry a row, JSON with its kind in the field `entry`.

    Opened · TurnsSaid · RunStarted · RunFinished · Reset · Switched · Told

Read in order, the entries from the last `Reset` on give the turns exactly as they were kept, the tool runs that have
no result in a turn yet, the report and what was spent. `Opened` stands where a process took the session over: it is
the fence that an older holder's next write runs into.

Law: an entry that was released is read for ever. What this release cannot read is refused with the name of the
session and the number of the entry, never skipped.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import ToolResult, Turn, Usage
from toolglot.conversation.report import Entry as Told_
from toolglot.errors import InputError, ToolglotError, VersionError, cut, quote

DIGITS: Final = 12
"""Of a sequence number as the key of a row: as texts they stand in the order of the numbers."""

LAST_NUMBER: Final = 10**DIGITS - 1


class SessionTakenError(ToolglotError, RuntimeError):
    """Another process has the session. Nothing was written; `host` and `pid` say who has it, where that is known."""

    def __init__(self, message: str, *, session: str, host: str = "", pid: int = 0) -> None:
        super().__init__(cut(message))
        self.session = session
        self.host = host
        self.pid = pid


class SessionMissingError(InputError):
    """No session has this id, or it is another owner's."""


class SessionDamagedError(InputError):
    """An entry of a session's log is missing or cannot be read. Nothing was changed."""


class LogEntry(
    Struct, frozen=True, kw_only=True, tag_field="entry", tag=str.lower, omit_defaults=True, forbid_unknown_fields=True
):
    """One row of a log."""


class Opened(LogEntry, frozen=True, tag="opened"):
    """A process took the session. Whoever held it before cannot write any more."""

    holder: str
    at: float = 0.0
    new: bool = False
    """Whether the session begins here. What has a smaller number was that of a removed one."""


class TurnsSaid(LogEntry, frozen=True, tag="turns"):
    """The turns that one write added, as they are kept: with their keys and canonical ids."""

    turns: tuple[Turn, ...]
    told: tuple[Told_, ...] = ()
    """What the history told since the last entry."""
    usage: Usage | None = None
    cost: Decimal | None = None


class RunStarted(LogEntry, frozen=True, tag="started"):
    """A tool with side effects is about to run."""

    call_id: str
    arguments: dict[str, Any] | None = None
    """What it gets; None where that is what the model wrote."""


class RunFinished(LogEntry, frozen=True, tag="finished"):
    """What came of a run. It is not yet part of a turn."""

    result: ToolResult


Run = RunStarted | RunFinished


class Reset(LogEntry, frozen=True, tag="reset"):
    """All that stands: what a compression, a rewind, a prune or a fork left. What is before it counts no more."""

    turns: tuple[Turn, ...] = ()
    runs: tuple[Run, ...] = ()
    """Of calls that have no result yet."""
    told: tuple[Told_, ...] = ()
    usage: Usage | None = None
    cost: Decimal | None = None


class Switched(LogEntry, frozen=True, tag="switched"):
    """The model that the next turns go to."""

    model: str


class Told(LogEntry, frozen=True, tag="told"):
    """What the history told without a turn being written."""

    entries: tuple[Told_, ...]


Entry = Opened | TurnsSaid | RunStarted | RunFinished | Reset | Switched | Told

_KNOWN: Final = frozenset(
    str(kind.__struct_config__.tag) for kind in (Opened, TurnsSaid, RunStarted, RunFinished, Reset, Switched, Told)
)
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Entry)
_OPENED: Final = b'{"entry":"opened"'


def key_of(number: int) -> str:
    """The key of the entry with this number."""
    return f"{number:0{DIGITS}}"


def encode(entry: Entry) -> bytes:
    return _encoder.encode(entry)


def encode_turn(turn: Turn) -> bytes:
    return _encoder.encode(turn)


def opening(data: bytes) -> Opened | None:
    """The entry, if it is one with which a process took the session; None for any other, also one that is damaged."""
    if not data.startswith(_OPENED):
        return None
    try:
        entry: Entry = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return entry if isinstance(entry, Opened) else None


def is_beginning(entry: Entry, number: int) -> bool:
    """Whether nothing before it matters."""
    return number == 0 or isinstance(entry, Reset) or (isinstance(entry, Opened) and entry.new)


def decode(data: bytes, *, session: str, number: int) -> Entry:
    """The entry that `encode` wrote."""
    try:
        entry: Entry = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(data, session, number, str(error)) from None
    return entry


def damaged(session: str, number: int, what: str) -> SessionDamagedError:
    """The error for an entry that is not as it was written."""
    return SessionDamagedError(
        f"session {quote(session)}: entry {number} {what}",
        path=f"$.turns[{number}]",
        hint=f"restore the store from a backup, or go on with what is before: recover_session(store, {session!r})",
    )


def _unreadable(data: bytes, session: str, number: int, why: str) -> InputError:
    """Damage, or the work of a newer release: what it is decides what to do."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return damaged(session, number, f"is damaged ({why})")
    kind = value.get("entry") if isinstance(value, dict) else None
    if isinstance(kind, str) and (kind not in _KNOWN or "unknown field" in why):
        return VersionError(
            f"session {quote(session)}: entry {number} is of a kind that this toolglot does not know ({why})",
            path=f"$.turns[{number}]",
            hint="upgrade toolglot: a newer one has written it",
        )
    return damaged(session, number, f"is not as it was written ({why})")

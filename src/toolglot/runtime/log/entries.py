"""The entries of a session's log: one per row, as JSON with its kind in the field `entry`.

    LogOpened · TurnsAdded · ToolStarted · ToolFinished · LogReset · ModelChosen · ReportAdded

Read in order, the entries since the last `LogReset` give the turns exactly as they were kept, the tool runs that have
no result in a turn yet, the report and what was spent. A process writes `LogOpened` when it opens the session: the
next write of an older holder conflicts with it.

Law: every kind of entry that was ever released can be read. An entry that this release cannot read is refused with the
session's id and the entry's number, and never skipped. Kinds and field names are stored: they do not change with the
names of classes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolglot.conversation import ToolResult, Turn, Usage
from toolglot.conversation.canonical_json import VERSION
from toolglot.conversation.forms import read_form
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.conversation.version_1 import upgrade
from toolglot.errors import InputError, ToolglotError, VersionError, cut, quote

DIGITS: Final = 12
"""Digits of an entry's number as a row key: the keys sort in the order of the numbers."""

LAST_NUMBER: Final = 10**DIGITS - 1


class SessionTakenError(ToolglotError, RuntimeError):
    """Another process has the session. Nothing was written. `host` and `pid` say which one, if known."""

    def __init__(self, message: str, *, session: str, host: str = "", pid: int = 0) -> None:
        super().__init__(cut(message))
        self.session = session
        self.host = host
        self.pid = pid


class SessionMissingError(InputError):
    """No session has this id, or it belongs to another owner."""


class SessionDamagedError(InputError):
    """An entry of a session's log is missing or cannot be read. Nothing was changed."""


class _EntryBase(
    Struct, frozen=True, kw_only=True, tag_field="entry", tag=str.lower, omit_defaults=True, forbid_unknown_fields=True
):
    """One row of a log."""

    version: int = 1
    """The version of the serialised form (`canonical_json.VERSION`) that its turns and results are in."""


class LogOpened(_EntryBase, frozen=True, tag="opened"):
    """A process opened the session. An earlier holder cannot write any more."""

    holder: str
    at: float = 0.0
    new: bool = False
    """Whether the session begins here. Entries with smaller numbers belonged to a removed session."""


class TurnsAdded(_EntryBase, frozen=True, tag="turns"):
    """The turns that one write added, as they are kept: with their keys and canonical ids."""

    turns: tuple[Turn, ...]
    report: tuple[ReportEntry, ...] = field(default=(), name="told")
    """The report entries of the history since the last log entry."""
    usage: Usage | None = None
    cost: Decimal | None = None


class ToolStarted(_EntryBase, frozen=True, tag="started"):
    """A tool with side effects is about to run."""

    call_id: str
    arguments: dict[str, Any] | None = None
    """The arguments that it gets; None if they are what the model wrote."""


class ToolFinished(_EntryBase, frozen=True, tag="finished"):
    """The result of a tool. It is not part of a turn yet."""

    result: ToolResult


ToolRun = ToolStarted | ToolFinished


class LogReset(_EntryBase, frozen=True, tag="reset"):
    """The whole state after a compression, a rewind, a prune or a fork. Entries before it no longer count."""

    turns: tuple[Turn, ...] = ()
    runs: tuple[ToolRun, ...] = ()
    """The runs of calls that have no result yet."""
    report: tuple[ReportEntry, ...] = field(default=(), name="told")
    usage: Usage | None = None
    cost: Decimal | None = None


class ModelChosen(_EntryBase, frozen=True, tag="switched"):
    """The model for the next turns."""

    model: str


class ReportAdded(_EntryBase, frozen=True, tag="told"):
    """Report entries that came without a turn."""

    entries: tuple[ReportEntry, ...]


LogEntry = LogOpened | TurnsAdded | ToolStarted | ToolFinished | LogReset | ModelChosen | ReportAdded

_KNOWN: Final = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (LogOpened, TurnsAdded, ToolStarted, ToolFinished, LogReset, ModelChosen, ReportAdded)
)
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(LogEntry, dec_hook=read_form)
_PLAIN: Final = (LogOpened, ModelChosen, ToolStarted, ReportAdded)
"""Entries that hold no canonical values."""
_OPENED: Final = b'{"entry":"opened"'


def row_key(number: int) -> str:
    """The key of the entry with this number."""
    return f"{number:0{DIGITS}}"


def encode(entry: LogEntry) -> bytes:
    return _encoder.encode(entry if isinstance(entry, _PLAIN) else replace(entry, version=VERSION))


def encode_turn(turn: Turn) -> bytes:
    return _encoder.encode(turn)


def decode_opened(data: bytes) -> LogOpened | None:
    """The entry, if it is a `LogOpened`; None for any other, also for a damaged one."""
    if not data.startswith(_OPENED):
        return None
    try:
        entry: LogEntry = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return entry if isinstance(entry, LogOpened) else None


def is_beginning(entry: LogEntry, number: int) -> bool:
    """Whether no earlier entry matters."""
    return number == 0 or isinstance(entry, LogReset) or (isinstance(entry, LogOpened) and entry.new)


def decode(data: bytes, *, session: str, number: int) -> LogEntry:
    """The entry that `encode` wrote."""
    try:
        entry: LogEntry = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable_error(data, session, number, str(error)) from None
    if entry.version >= VERSION or isinstance(entry, _PLAIN):
        return entry
    return replace(upgrade(entry), version=VERSION)


def damaged_error(session: str, number: int, what: str) -> SessionDamagedError:
    """The error for an entry that is missing or unreadable."""
    return SessionDamagedError(
        f"session {quote(session)}: entry {number} {what}",
        path=f"$.turns[{number}]",
        hint=f"restore the store from a backup, or keep what is before it: recover_session(store, {session!r})",
    )


def _unreadable_error(data: bytes, session: str, number: int, why: str) -> InputError:
    """The error for an entry that cannot be decoded: it is damaged, or a newer release wrote it."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return damaged_error(session, number, f"is damaged ({why})")
    kind = value.get("entry") if isinstance(value, dict) else None
    if isinstance(kind, str) and (kind not in _KNOWN or "unknown field" in why):
        return VersionError(
            f"session {quote(session)}: entry {number} is of a kind that this toolglot does not know ({why})",
            path=f"$.turns[{number}]",
            hint="upgrade toolglot: a newer one has written it",
        )
    return damaged_error(session, number, f"is not as it was written ({why})")


def split_turns(turns: tuple[Turn, ...], max_bytes: int) -> list[tuple[Turn, ...]]:
    """Split turns into groups of at most `max_bytes`, or of one turn; at least one group."""
    parts: list[list[Turn]] = [[]]
    size = 0
    for turn in turns:
        more = len(encode_turn(turn))
        if parts[-1] and size + more > max_bytes:
            parts.append([])
            size = 0
        parts[-1].append(turn)
        size += more
    return [tuple(part) for part in parts]

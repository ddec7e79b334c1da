"""The list of sessions: one row per session, next to its log.

The row is written shortly after the log, so a process that was killed may leave it slightly behind. Opening the
session corrects it. Only the entry where reading begins depends on it: a number that is too small means more to read,
and one without an entry is ignored.

There are also marks, one for each process that may still assume that it holds a session, although another process has
opened or removed it: `id/number`, with the number of the entry with which that process had opened the session. Marks
are kept for a day.

Law: a process writes the row only if its mark does not exist. So if two processes write it, the one that opened the
session later wins, however long the other slept.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import Turn
from toolglot.errors import InputError, quote
from toolglot.runtime.log.entries import SessionDamagedError, SessionMissingError, row_key
from toolglot.runtime.log.rows import PAGE_ROWS, chunks, row_number
from toolglot.store import Store

KIND: Final = "sessions"
FENCE_SECONDS: Final = 24 * 3600.0
"""Seconds for which marks and fences keep a process that lost a session from writing. A process that slept longer
checks the log before it writes."""
TITLE_CHARACTERS: Final = 80
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
"""Control characters and those that change the writing direction, without white space."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class SessionInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session without its turns. Unknown fields, from newer releases, are ignored."""

    id: str
    title: str = ""
    model: str = ""
    created: float = 0.0
    """Seconds since 1970, as `updated`."""
    updated: float = 0.0
    turns: int = 0
    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The number of the entry where reading begins: that of the last reset."""
    last: int = -1
    """The number of an entry that must exist; there may be later ones."""
    opened: int = -1
    """The number of the entry with which the writer of this row opened the session. After it has closed, the number of
    the next entry."""
    forked_from: str = ""
    tokens: int = 0
    cost: Decimal | None = None


_decoder: Final = msgspec.json.Decoder(SessionInfo)


def new_session_id(now: float) -> str:
    """A session id: the time, and a random part."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(4)}"


def check_id(id: str) -> str:
    if not isinstance(id, str) or _ID.fullmatch(id) is None:
        hint = "letters, digits, dots, hyphens and underscores, 128 at most"
        raise InputError(f"{quote(id)} cannot be the id of a session", path="$.id", hint=hint)
    return id


def title_of(text: str) -> str:
    """A string as a title: one line, cut."""
    line = one_line(text[: TITLE_CHARACTERS * 8])
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1].rstrip()}…"


def one_line(text: str) -> str:
    """A string in one line, without control characters."""
    return " ".join(_UNPRINTABLE.sub("", text).split())


def title_from_turns(turns: tuple[Turn, ...] | list[Turn]) -> str:
    """The default title: the first message of the user."""
    return next((title for turn in turns if turn.role == "user" and (title := title_of(turn.text))), "")


async def find_info(store: Store, id: str, *, owner: str = "") -> SessionInfo:
    """The row of a session."""
    data = (await store.find(KIND, owner, [check_id(id)])).get(id)
    if data is None:
        hint = "list_sessions(store) lists them"
        raise SessionMissingError(f"no session {quote(id)}", path="$.id", hint=hint)
    return read_info(data, id)


def read_info(data: bytes, id: str) -> SessionInfo:
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SessionDamagedError(
            f"session {quote(id)}: its row in the list is damaged ({error})",
            path="$.sessions",
            hint=f"recover_session(store, {id!r}) makes a session of what its log holds",
        ) from None


async def write_info(store: Store, info: SessionInfo, *, owner: str = "", unless: str) -> None:
    """Write the row. Raises `StoreConflictError` if the key `unless` exists: the writer's mark, or another row."""
    rows = {info.id: msgspec.json.encode(info)}
    await store.keep(KIND, owner, rows, until=float("inf"), unless=(unless,))


def lost_mark(id: str, opened: int) -> str:
    """The key that keeps the process that opened a session with this entry from writing its row."""
    return f"{id}/{row_key(opened)}"


def is_lost_mark(key: str) -> bool:
    return "/" in key  # no id contains one


async def mark_lost(store: Store, id: str, openings: Iterable[int], *, owner: str = "", until: float) -> None:
    """Keep the processes that opened a session with these entries from writing its row."""
    for part in chunks(sorted(set(openings)), PAGE_ROWS):
        await store.keep(KIND, owner, {lost_mark(id, opened): b"over" for opened in part}, until=until)


async def last_marked_entry(store: Store, id: str, *, owner: str = "") -> int:
    """The largest number that has a mark; -1 without any."""
    position, last = "", -1
    while rows := await store.scan(KIND, client=owner, prefix=f"{id}/", after=position, limit=PAGE_ROWS):
        position = rows[-1].cursor
        last = max(last, *(row_number(row.key.rpartition("/")[2]) for row in rows))
    return last


async def remove_info(store: Store, id: str, *, owner: str = "") -> None:
    await store.remove(KIND, owner, [id])

"""What a list of sessions shows of each: one row a session, beside its log.

The row is written after the log, and a little later: it may be behind by the last moments of a process that was
killed. Opening the session puts it right. Nothing depends on it but where reading begins, and a smaller number there
only means more to read; one that points nowhere is not believed.

Beside the rows there are marks, one for each process that may still believe to hold a session which another has taken
over, or removed: `id/number`, the number of the entry with which it had taken the session. It is there for a day.

Law: a process writes the row unless its mark is there. So of two that write it, the one that came later has the last
word, however long the other slept.
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
from toolglot.runtime.log.entries import SessionDamagedError, SessionMissingError, key_of
from toolglot.runtime.log.replay import PAGE_ROWS, batched, number_of
from toolglot.store import Store

KIND: Final = "sessions"
FENCED: Final = 24 * 3600.0
"""Seconds for which a process that lost a session is kept from writing by what others left for it. One that slept for
longer looks for itself, before it writes, what became of the session."""
TITLE_CHARACTERS: Final = 80
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]"
)
"""Control characters, which a terminal obeys, and those that turn the direction of what follows. Those that are space
are not among them."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class SessionInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session, without its turns. Fields of newer releases are not refused: they do not matter here."""

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
    """An entry that there must be; there may be more."""
    opened: int = -1
    """The entry with which the process took the session that wrote this row and may do so again. Once it has closed,
    the entry that comes next: whoever writes that may."""
    forked_from: str = ""
    tokens: int = 0
    cost: Decimal | None = None


_decoder: Final = msgspec.json.Decoder(SessionInfo)


def new_id(now: float) -> str:
    """An id for a session: when it began, and what makes it unlike others of that second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(4)}"


def check_id(id: str) -> str:
    if not isinstance(id, str) or _ID.fullmatch(id) is None:
        hint = "letters, digits, dots, hyphens and underscores, 128 at most"
        raise InputError(f"{quote(id)} cannot be the id of a session", path="$.id", hint=hint)
    return id


def title_of(text: str) -> str:
    """A text as a title: one line, cut."""
    line = one_line(text[: TITLE_CHARACTERS * 8])
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1].rstrip()}…"


def one_line(text: str) -> str:
    """A text that can be shown in a list: one line, without anything that a terminal would take for a command."""
    return " ".join(_UNSEEN.sub("", text).split())


def first_words(turns: tuple[Turn, ...] | list[Turn]) -> str:
    """The title that turns give: what the user said first."""
    return next((title for turn in turns if turn.role == "user" and (title := title_of(turn.text))), "")


async def find_info(store: Store, id: str, *, owner: str = "") -> SessionInfo:
    """The row of a session."""
    data = (await store.find(KIND, owner, [check_id(id)])).get(id)
    if data is None:
        hint = "list_sessions(store) tells those that there are"
        raise SessionMissingError(f"there is no session {quote(id)}", path="$.id", hint=hint)
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


async def keep_info(store: Store, info: SessionInfo, *, owner: str = "", unless: str) -> None:
    """Write the row; a `StoreConflictError` where this key is there: the mark of who writes, or another row."""
    rows = {info.id: msgspec.json.encode(info)}
    await store.keep(KIND, owner, rows, until=float("inf"), unless=(unless,))


def mark_of(id: str, opened: int) -> str:
    """The key that keeps the process that took a session with this entry from writing its row."""
    return f"{id}/{key_of(opened)}"


def is_mark(key: str) -> bool:
    return "/" in key  # no id holds one


async def mark_over(store: Store, id: str, openings: Iterable[int], *, owner: str = "", until: float) -> None:
    """Keep the processes that took a session with these entries from writing its row."""
    for part in batched(sorted(set(openings)), PAGE_ROWS):
        await store.keep(KIND, owner, {mark_of(id, opened): b"over" for opened in part}, until=until)


async def last_mark(store: Store, id: str, *, owner: str = "") -> int:
    """The largest number that has a mark; -1 where there is none."""
    place, last = "", -1
    while rows := await store.scan(KIND, client=owner, prefix=f"{id}/", after=place, limit=PAGE_ROWS):
        place = rows[-1].place
        last = max(last, *(number_of(row.key.rpartition("/")[2]) for row in rows))
    return last


async def remove_info(store: Store, id: str, *, owner: str = "") -> None:
    await store.remove(KIND, owner, [id])

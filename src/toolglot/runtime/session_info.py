"""What a list of sessions shows of each: one row a session, beside its log.

The row is written after the log, and a little later: it may be behind by the last moments of a process that was
killed. Opening the session puts it right. Nothing depends on it but where reading begins, and a smaller number there
only means more to read.
"""

from __future__ import annotations

import re
import secrets
import time
from decimal import Decimal
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import Turn
from toolglot.errors import InputError, quote
from toolglot.runtime.log_entries import SessionDamagedError, SessionMissingError
from toolglot.store import Store

KIND: Final = "sessions"
TITLE_CHARACTERS: Final = 80
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
    line = " ".join(text[: TITLE_CHARACTERS * 8].split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[: TITLE_CHARACTERS - 1].rstrip()}…"


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


async def keep_info(store: Store, info: SessionInfo, *, owner: str = "", is_new: bool = False) -> None:
    """Write the row; a `StoreConflictError` where a new one is there already."""
    rows = {info.id: msgspec.json.encode(info)}
    await store.keep(KIND, owner, rows, until=float("inf"), unless=(info.id,) if is_new else ())


async def remove_info(store: Store, id: str, *, owner: str = "") -> None:
    await store.remove(KIND, owner, [id])

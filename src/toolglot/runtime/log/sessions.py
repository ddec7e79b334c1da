"""What can be done with the sessions of a store without talking to a model: list, read, fork, rewind, remove.

    page = await list_sessions(store)                     # newest first
    info = await fork_session(store, page.sessions[0].id, at=turn.key)
    await remove_session(store, info.id)

Reading needs no claim: it sees the session as of one moment, also while another process works on it. What changes a
session takes it first, and says who has it otherwise. An owner sees his own sessions and no other's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.errors import InputError, LimitError
from toolglot.history.history import History
from toolglot.runtime.log.claim import LEASE, SessionClaim
from toolglot.runtime.log.entries import Opened, Reset, SessionDamagedError, damaged, encode, is_beginning
from toolglot.runtime.log.info import (
    FENCED,
    KIND,
    SessionInfo,
    check_id,
    find_info,
    first_words,
    is_mark,
    mark_over,
    read_info,
    remove_info,
)
from toolglot.runtime.log.replay import DEFAULT_LOG_LIMITS, LogLimits, LogRows, Standing, rows_of
from toolglot.runtime.log.session_log import SessionLog, read_standing
from toolglot.store import Store, StoreError

MAX_SESSIONS: Final = 100_000
"""More of one owner are not listed at once."""


class Page(Struct, frozen=True):
    """A part of a list."""

    sessions: tuple[SessionInfo, ...]
    next: str = ""
    """Where the next page begins; empty after the last one."""
    damaged: tuple[str, ...] = ()
    """Ids of sessions whose row cannot be read."""


async def list_sessions(store: Store, *, owner: str = "", after: str = "", limit: int = 50) -> Page:
    """The sessions of an owner, those first that were written to last. `after` is the `next` of the page before."""
    if type(limit) is not int or limit < 1:
        raise InputError("expected a whole number from 1", path="$.limit")
    found, damaged = await all_infos(store, owner=owner)
    found.sort(key=_newest_first)
    if after:
        place = _place_of(after)
        found = [info for info in found if _newest_first(info) > place]
    shown = tuple(found[:limit])
    return Page(shown, _mark_of(shown[-1]) if len(found) > limit else "", tuple(damaged))


async def all_infos(store: Store, *, owner: str = "") -> tuple[list[SessionInfo], list[str]]:
    """Every session of an owner, in the order of their ids; and those whose row is damaged."""
    found: list[SessionInfo] = []
    damaged: list[str] = []
    async for row in rows_of(store, KIND, owner):
        if row.value is None or is_mark(row.key):
            continue
        try:
            found.append(read_info(row.value, row.key))
        except SessionDamagedError:
            damaged.append(row.key)
        if len(found) > MAX_SESSIONS:
            raise LimitError(f"there are more than {MAX_SESSIONS} sessions", path="$.sessions", hint="remove some")
    return found, damaged


def _newest_first(info: SessionInfo) -> tuple[float, str]:
    return (-info.updated, info.id)


def _mark_of(info: SessionInfo) -> str:
    return f"{info.updated!r} {info.id}"


def _place_of(mark: str) -> tuple[float, str]:
    time, _, id = mark.partition(" ") if isinstance(mark, str) else ("", "", "")
    try:
        return (-float(time), id)
    except ValueError:
        raise InputError("expected the next of a page", path="$.after") from None


async def read_session(
    store: Store, id: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> tuple[SessionInfo, Standing]:
    """A session as it stands now, without taking it."""
    rows = LogRows(store, check_id(id), owner=owner, limits=limits)
    info = await find_info(store, id, owner=owner)
    while True:
        try:
            standing = await read_standing(rows, info)
            break
        except SessionDamagedError:
            again = await find_info(store, id, owner=owner)
            if again.first == info.first:
                raise
            info = again  # what was before a reset has been taken away meanwhile
    title = info.title or first_words(standing.turns)
    return replace(info, title=title, turns=len(standing.turns), model=standing.model), standing


async def fork_session(
    store: Store, id: str, *, at: str | None = None, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> SessionInfo:
    """A session of its own with the same turns, up to and with the turn `at`. What was spent stays with the first."""
    info, standing = await read_session(store, id, owner=owner, limits=limits)
    branch = standing.history().fork(at)
    like = replace(info, forked_from=id, tokens=0, cost=None)
    return await make_session(store, like, start_of(branch, standing), owner=owner, limits=limits)


async def make_session(
    store: Store,
    like: SessionInfo,
    start: Reset,
    *,
    id: str | None = None,
    owner: str = "",
    limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> SessionInfo:
    """A session that begins with what is there already."""
    log = await SessionLog.create(store, id=id, like=like, start=start, owner=owner, limits=limits)
    async with log:
        return log.info


def start_of(history: History, standing: Standing) -> Reset:
    """What a session begins with that goes on from a history; calls that have no result keep what is known of them."""
    pending = {found.id for found in history.ledger.pending}
    runs = tuple(run for call_id, run in standing.runs.items() if call_id in pending)
    return Reset(turns=history.turns, runs=runs, told=tuple(standing.told))


async def rewind_session(
    store: Store, id: str, to: str | None, *, owner: str = "", wait: float = 0.0, limits: LogLimits = DEFAULT_LOG_LIMITS
) -> SessionInfo:
    """Forget everything after a turn, or everything; the session as it is then."""
    async with await SessionLog.open(store, id, owner=owner, wait=wait, limits=limits) as log:
        await log.change(lambda history: history.rewind(to))
        return log.info


async def shrink_session(store: Store, id: str, *, owner: str = "", clock: Callable[[], float] = time.time) -> int:
    """Take away what stands before the last reset, for good: how many entries.

    They are kept until then, although nothing reads them: a backup of what was compressed or rewound. Those that keep
    an older holder from writing stay for a day.
    """
    info = await find_info(store, id, owner=owner)
    return await LogRows(store, id, owner=owner).clear(before=info.first, until=clock() + FENCED)


async def remove_session(
    store: Store,
    id: str,
    *,
    owner: str = "",
    wait: float = 0.0,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
) -> None:
    """Take a session away, for good. One that another process holds is refused."""
    opened = -1
    with suppress(SessionDamagedError):
        opened = (await find_info(store, id, owner=owner)).opened
    claim = SessionClaim(store, id, owner=owner, lease=lease, clock=clock)
    await claim.take(wait=wait)
    try:
        with suppress(SessionDamagedError):
            opened = (await find_info(store, id, owner=owner)).opened  # as its last holder left it
        until = clock() + FENCED
        fence = encode(Opened(holder=claim.holder, at=clock()))
        openings = await LogRows(store, id, owner=owner).bury(fence, until=until)
        over = [number for number in (opened, *openings) if number >= max(opened, 0)]
        await mark_over(store, id, over, owner=owner, until=until)
        await remove_info(store, id, owner=owner)
    finally:
        with suppress(StoreError):
            await claim.give_back()


async def recover_session(
    store: Store, id: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> tuple[SessionInfo, tuple[str, ...]]:
    """A new session of what can be read of a damaged one, and what could not be. That one stays as it is."""
    problems: list[str] = []
    info = SessionInfo(id="")
    first: int | None = None
    try:
        info = await find_info(store, id, owner=owner)
        first = info.first
    except SessionDamagedError as error:
        problems.append(str(error))
    rows = LogRows(store, id, owner=owner, limits=limits)
    if first is not None and not await rows.has(first):
        first = None
    standing = Standing()
    standing.model = info.model
    is_begun = False
    try:
        async for number, entry in rows.read(first, last=info.last):
            is_begun = is_begun or is_beginning(entry, number)
            if not is_begun and not isinstance(entry, Opened):
                problems.append(str(damaged(id, info.first, "is missing")))
                is_begun = True
            standing.next = number
            standing.take(entry)
    except InputError as error:
        problems.append(str(error))
    like = replace(info, model=standing.model, forked_from=id, tokens=0, cost=None)
    start = start_of(standing.history(), standing)
    return await make_session(store, like, start, owner=owner, limits=limits), tuple(problems)


def conversation_of(info: SessionInfo, standing: Standing) -> Conversation:
    """The conversation of a session."""
    return Conversation(turns=tuple(standing.turns), model=info.model)

"""Operations on the sessions of a store: list, read, fork, rewind, shrink, remove, recover.

    page = await list_sessions(store)                     # newest first
    info = await fork_session(store, page.sessions[0].id, at=turn.key)
    await remove_session(store, info.id)

Reading needs no claim: it sees a consistent state, even while another process works on the session. Operations that
change a session claim it first, and raise an error if another process has it. Each owner sees only its own sessions.
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
from toolglot.runtime.log.entries import LogOpened, LogReset, SessionDamagedError, damaged_error, encode, is_beginning
from toolglot.runtime.log.info import (
    FENCE_SECONDS,
    KIND,
    SessionInfo,
    check_id,
    find_info,
    is_lost_mark,
    mark_lost,
    read_info,
    remove_info,
    title_from_turns,
)
from toolglot.runtime.log.replay import SessionState, read_state
from toolglot.runtime.log.rows import DEFAULT_LOG_LIMITS, LogLimits, LogRows, scan_rows
from toolglot.runtime.log.session_log import SessionLog
from toolglot.store import Store, StoreError

MAX_SESSIONS: Final = 100_000
"""The sessions of one owner that can be listed."""


class Page(Struct, frozen=True):
    """One page of a list of sessions."""

    sessions: tuple[SessionInfo, ...]
    next: str = ""
    """Pass this as `after` to get the next page; empty on the last one."""
    damaged: tuple[str, ...] = ()
    """Ids of sessions whose row cannot be read."""


async def list_sessions(store: Store, *, owner: str = "", after: str = "", limit: int = 50) -> Page:
    """List the sessions of an owner, newest first. `after`: the `next` of the page before."""
    if type(limit) is not int or limit < 1:
        raise InputError("expected a whole number from 1", path="$.limit")
    found, damaged = await all_infos(store, owner=owner)
    found.sort(key=_newest_first)
    if after:
        position = _read_page_token(after)
        found = [info for info in found if _newest_first(info) > position]
    shown = tuple(found[:limit])
    return Page(shown, _page_token(shown[-1]) if len(found) > limit else "", tuple(damaged))


async def all_infos(store: Store, *, owner: str = "") -> tuple[list[SessionInfo], list[str]]:
    """All sessions of an owner, by id; and the ids whose row is damaged."""
    found: list[SessionInfo] = []
    damaged: list[str] = []
    async for row in scan_rows(store, KIND, owner):
        if row.value is None or is_lost_mark(row.key):
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


def _page_token(info: SessionInfo) -> str:
    return f"{info.updated!r} {info.id}"


def _read_page_token(mark: str) -> tuple[float, str]:
    time, _, id = mark.partition(" ") if isinstance(mark, str) else ("", "", "")
    try:
        return (-float(time), id)
    except ValueError:
        raise InputError("expected the next of a page", path="$.after") from None


async def read_session(
    store: Store, id: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> tuple[SessionInfo, SessionState]:
    """Read the current state of a session, without claiming it."""
    rows = LogRows(store, check_id(id), owner=owner, limits=limits)
    info = await find_info(store, id, owner=owner)
    while True:
        try:
            state = await read_state(rows, info)
            break
        except SessionDamagedError:
            again = await find_info(store, id, owner=owner)
            if again.first == info.first:
                raise
            info = again  # the entries before a reset have been removed meanwhile
    title = info.title or title_from_turns(state.turns)
    return replace(info, title=title, turns=len(state.turns), model=state.model), state


async def fork_session(
    store: Store, id: str, *, at: str | None = None, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> SessionInfo:
    """Create a session with the same turns, up to and including the turn `at`. Usage and cost start at zero."""
    info, state = await read_session(store, id, owner=owner, limits=limits)
    branch = state.history().fork(at)
    like = replace(info, forked_from=id, tokens=0, cost=None)
    return await make_session(store, like, reset_of(branch, state), owner=owner, limits=limits)


async def make_session(
    store: Store,
    like: SessionInfo,
    start: LogReset,
    *,
    id: str | None = None,
    owner: str = "",
    limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> SessionInfo:
    """Create a session with a first state."""
    log = await SessionLog.create(store, id=id, like=like, start=start, owner=owner, limits=limits)
    async with log:
        return log.info


def reset_of(history: History, state: SessionState) -> LogReset:
    """The first state of a session that continues a history. Open calls keep their runs."""
    pending = {found.id for found in history.ledger.pending}
    runs = tuple(run for call_id, run in state.runs.items() if call_id in pending)
    return LogReset(turns=history.turns, runs=runs, report=tuple(state.report))


async def rewind_session(
    store: Store, id: str, to: str | None, *, owner: str = "", wait: float = 0.0, limits: LogLimits = DEFAULT_LOG_LIMITS
) -> SessionInfo:
    """Remove everything after the turn `to`, or everything if it is None."""
    async with await SessionLog.open(store, id, owner=owner, wait=wait, limits=limits) as log:
        await log.change(lambda history: history.rewind(to))
        return log.info


async def shrink_session(store: Store, id: str, *, owner: str = "", clock: Callable[[], float] = time.time) -> int:
    """Delete the entries before the last reset; how many.

    They are kept until then as a backup of what was compressed or rewound. Entries that keep an earlier holder from
    writing stay for a day.
    """
    info = await find_info(store, id, owner=owner)
    return await LogRows(store, id, owner=owner).clear(before=info.first, until=clock() + FENCE_SECONDS)


async def remove_session(
    store: Store,
    id: str,
    *,
    owner: str = "",
    wait: float = 0.0,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
) -> None:
    """Delete a session. Refused if another process holds it."""
    opened = -1
    with suppress(SessionDamagedError):
        opened = (await find_info(store, id, owner=owner)).opened
    claim = SessionClaim(store, id, owner=owner, lease=lease, clock=clock)
    await claim.take(wait=wait)
    try:
        with suppress(SessionDamagedError):
            opened = (await find_info(store, id, owner=owner)).opened  # as its last holder left it
        until = clock() + FENCE_SECONDS
        fence = encode(LogOpened(holder=claim.holder, at=clock()))
        openings = await LogRows(store, id, owner=owner).remove_all(fence, until=until)
        over = [number for number in (opened, *openings) if number >= max(opened, 0)]
        await mark_lost(store, id, over, owner=owner, until=until)
        await remove_info(store, id, owner=owner)
    finally:
        with suppress(StoreError):
            await claim.release()


async def recover_session(
    store: Store, id: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS
) -> tuple[SessionInfo, tuple[str, ...]]:
    """Create a session from the readable part of a damaged one; also returns the problems. The old one stays."""
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
    state = SessionState()
    state.model = info.model
    is_begun = False
    try:
        async for number, entry in rows.read(first, last=info.last):
            is_begun = is_begun or is_beginning(entry, number)
            if not is_begun and not isinstance(entry, LogOpened):
                problems.append(str(damaged_error(id, info.first, "is missing")))
                is_begun = True
            state.next = number
            state.apply(entry)
    except InputError as error:
        problems.append(str(error))
    like = replace(info, model=state.model, forked_from=id, tokens=0, cost=None)
    start = reset_of(state.history(), state)
    return await make_session(store, like, start, owner=owner, limits=limits), tuple(problems)


def conversation_of(info: SessionInfo, state: SessionState) -> Conversation:
    """The conversation of a session."""
    return Conversation(turns=tuple(state.turns), model=info.model)

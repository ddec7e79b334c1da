"""Claims on sessions: one process at a time holds a session, as long as it renews its claim.

A claim expires. Its holder renews it after a third of that time. A process that died lets it expire; if it is known to
be dead (same machine, no process with its id) it loses the claim at once. A process that slept too long finds its claim
taken, or free: then it checks that no other process has written to the log before it continues. In any case the log
refuses the next write of a process that lost its session.

Law: a claim keeps two processes from working on a session at once. The consistency of the session depends on the log,
not on the claim.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.runtime.log.entries import SessionTakenError
from toolglot.store import StoreError

LEASE: Final = 30.0
"""Seconds until a claim expires if it is not renewed."""

KIND: Final = "sessions"
POLLS: Final = 20
"""How often per lease a waiting process tries to take a session."""


class Claims(Protocol):
    """The part of a store that a claim needs."""

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str: ...


class Holder(Struct, frozen=True):
    """A process, as a claim names it."""

    host: str
    pid: int
    machine: str = ""
    """Identifies this machine since its last boot, among others of the same name; empty if that is not possible."""
    nonce: str = ""

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.machine}/{self.nonce}"


def this_process() -> Holder:
    """A new holder for a log that this process opens."""
    host = socket.gethostname().replace("/", "-")[:200] or "localhost"
    return Holder(host, os.getpid(), this_machine(), secrets.token_hex(8))


def this_machine(proc: Path = Path("/proc")) -> str:
    """Identifies the boot and the process namespace on Linux; empty elsewhere."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot[:13]}-{(proc / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def read_holder(text: str) -> Holder | None:
    """The process that a claim names; None for a name that the caller chose."""
    parts = text.split("/")
    if len(parts) != 4 or not parts[1].isascii() or not parts[1].isdigit() or len(parts[1]) > 10:
        return None
    return Holder(parts[0], int(parts[1]), parts[2], parts[3])


def is_dead(holder: Holder) -> bool:
    """Whether this process has certainly ended."""
    if not holder.machine or holder.machine != this_machine() or holder.pid < 1:
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        pass
    return False


def taken_error(session: str, holder: str) -> SessionTakenError:
    """The error that says which process has a session."""
    found = read_holder(holder)
    if found is None:
        return SessionTakenError(f"session {quote(session)} is held by {quote(holder)}: {_ADVICE}", session=session)
    if found.host == socket.gethostname() and found.pid == os.getpid():
        message = f"session {quote(session)} is open in this process already (process {found.pid} on {found.host})"
        return SessionTakenError(
            f"{message}: use that log, or close it first", session=session, host=found.host, pid=found.pid
        )
    message = f"session {quote(session)} is held by process {found.pid} on {found.host}: {_ADVICE}"
    return SessionTakenError(message, session=session, host=found.host, pid=found.pid)


_ADVICE: Final = "close it there, or wait until its claim expires; a fork of it can be used at once"


class SessionClaim:
    """A claim on one session, renewed by a task from `take` to `release`.

    free ──take()──▶ held ──release()──▶ free
                      └──a renewal finds another holder, or is late and finds another's writes──▶ lost
    """

    def __init__(
        self,
        store: Claims,
        session: str,
        *,
        owner: str = "",
        holder: str | None = None,
        lease: float = LEASE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(lease, int | float) or not 0 < lease < 1e9:
            raise InputError("expected a positive number of seconds", path="lease")
        self.holder: str = holder or str(this_process())
        self.lost_to: str | None = None
        self._store = store
        self._session = session
        self._owner = owner
        self._lease = lease
        self._clock = clock
        self._until = 0.0
        self._may_be_lost = False
        """It expired before it was renewed, and the log has not been checked for writes of others yet."""
        self._is_unchanged: Callable[[], Awaitable[bool]] | None = None
        self._renewal: asyncio.Task[None] | None = None

    def watch(self, is_unchanged: Callable[[], Awaitable[bool]]) -> None:
        """Use this callback to check that no other process has written to the session."""
        self._is_unchanged = is_unchanged

    async def take(self, *, wait: float = 0.0) -> None:
        """Take the session, or raise who has it. `wait`: how many seconds to keep trying."""
        end = self._clock() + wait
        released = ""
        while (held_by := await self._claim()) != self.holder:
            if not held_by:
                raise StoreError("the clock of this machine is behind that of the store by more than a claim lasts")
            found = read_holder(held_by)
            if found is not None and held_by != released and is_dead(found):
                released = held_by
                await self._store.claim(KIND, self._owner, self._session, held_by, until=0.0)
                continue
            if self._clock() >= end:
                raise taken_error(self._session, held_by)
            await asyncio.sleep(self._lease / POLLS)
        self._renewal = asyncio.create_task(self._renew(), name=f"toolglot claim: {self._session}")

    async def release(self) -> None:
        """Give the session up at once."""
        await self.stop()
        if self.lost_to is None:
            await self._store.claim(KIND, self._owner, self._session, self.holder, until=0.0)

    async def stop(self) -> None:
        """Stop renewing."""
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
            self._renewal = None

    async def confirm(self) -> bool:
        """Whether this holder still has the session. Queries the store only if the claim may have expired."""
        if self.lost_to is not None:
            return False
        return (self._clock() < self._until and not self._may_be_lost) or await self._renew_now()

    async def current_holder(self) -> str:
        """The other holder of the session, or "". This holder gives up its own claim, if it still has one."""
        if self.lost_to is None:
            self.lost_to = await self._store.claim(KIND, self._owner, self._session, self.holder, until=0.0)
        return self.lost_to

    async def _claim(self) -> str:
        until = self._clock() + self._lease
        held_by = await self._store.claim(KIND, self._owner, self._session, self.holder, until=until)
        if held_by == self.holder:
            self._until = until
        return held_by

    async def _renew_now(self) -> bool:
        """Renew the claim. If it had expired, another process may have had it meanwhile: the log knows."""
        if self._clock() >= self._until:
            self._may_be_lost = True
        held_by = await self._claim()
        if held_by != self.holder:
            self.lost_to = held_by
        elif self._may_be_lost and self._is_unchanged is not None:
            if not await self._is_unchanged():
                await self.current_holder()
            else:
                self._may_be_lost = False
        return self.lost_to is None

    async def _renew(self) -> None:
        """Renew the claim for ever. A store that fails now may work again before the claim expires."""
        while self.lost_to is None:
            await asyncio.sleep(self._lease / 3)
            with suppress(Exception):
                await self._renew_now()

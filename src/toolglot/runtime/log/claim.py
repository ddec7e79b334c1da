"""Who has a session: one process at a time, for as long as it renews its claim.

A claim has an end. Whoever holds it renews it three times as often as it would run out; a process that died lets it
run out, and one that is known to be dead (the same machine, and no process has its id) loses it at once. A process
that slept too long finds its claim gone, or finds it free: then it asks the log whether another has written meanwhile,
before it goes on. The fence in the log refuses its next write in any case, whatever it believes.

Law: a claim keeps two processes from working on a session at once; it is the log, not the claim, that keeps the
session whole.
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
"""Seconds that a claim lasts when nobody renews it."""

KIND: Final = "sessions"
POLLS: Final = 20
"""How often in a lease one who waits for a session asks for it."""


class Claims(Protocol):
    """The part of a store that a claim needs."""

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str: ...


class Holder(Struct, frozen=True):
    """A process, as it writes itself into a claim."""

    host: str
    pid: int
    machine: str = ""
    """What tells this machine, since it was started, from others of its name; empty where nothing does."""
    nonce: str = ""

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.machine}/{self.nonce}"


def this_process() -> Holder:
    """A holder of its own for every log that this process opens."""
    host = socket.gethostname().replace("/", "-")[:200] or "localhost"
    return Holder(host, os.getpid(), this_machine(), secrets.token_hex(8))


def this_machine(proc: Path = Path("/proc")) -> str:
    """Linux tells one start of a machine from another, and one container's process ids from another's."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot[:13]}-{(proc / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def read_holder(text: str) -> Holder | None:
    """The process that a claim names; None for a name that a caller chose himself."""
    parts = text.split("/")
    if len(parts) != 4 or not parts[1].isascii() or not parts[1].isdigit() or len(parts[1]) > 10:
        return None
    return Holder(parts[0], int(parts[1]), parts[2], parts[3])


def is_dead(holder: Holder) -> bool:
    """Whether it is sure that this process is no more."""
    if not holder.machine or holder.machine != this_machine() or holder.pid < 1:
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # there is one, and it is another user's
        pass
    return False


def taken(session: str, holder: str) -> SessionTakenError:
    """The error that says who has a session."""
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


_ADVICE: Final = "close it there, or wait until its claim runs out; a fork of it can be used at once"


class SessionClaim:
    """A claim on one session, renewed by a task from `take` to `give_back`.

    free ──take()──▶ held ──give_back()──▶ free
                      └──a renewal finds another holder, or comes too late and finds what another did──▶ lost
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
            raise InputError("expected seconds, more than none", path="lease")
        self.holder: str = holder or str(this_process())
        self.lost_to: str | None = None
        self._store = store
        self._session = session
        self._owner = owner
        self._lease = lease
        self._clock = clock
        self._until = 0.0
        self._is_doubtful = False
        """It had run out before it was renewed, and nobody has looked yet what others did meanwhile."""
        self._is_untouched: Callable[[], Awaitable[bool]] | None = None
        self._renewal: asyncio.Task[None] | None = None

    def watch(self, is_untouched: Callable[[], Awaitable[bool]]) -> None:
        """From now on this tells whether anybody else has written to the session."""
        self._is_untouched = is_untouched

    async def take(self, *, wait: float = 0.0) -> None:
        """Take the session, or say who has it. `wait` is how many seconds to ask again."""
        end = self._clock() + wait
        freed = ""
        while (held_by := await self._ask()) != self.holder:
            if not held_by:
                raise StoreError("the clock of this machine is behind that of the store by more than a claim lasts")
            found = read_holder(held_by)
            if found is not None and held_by != freed and is_dead(found):
                freed = held_by
                await self._store.claim(KIND, self._owner, self._session, held_by, until=0.0)
                continue
            if self._clock() >= end:
                raise taken(self._session, held_by)
            await asyncio.sleep(self._lease / POLLS)
        self._renewal = asyncio.create_task(self._renew(), name=f"toolglot claim: {self._session}")

    async def give_back(self) -> None:
        """Let others have it at once."""
        await self.stop()
        if self.lost_to is None:
            await self._store.claim(KIND, self._owner, self._session, self.holder, until=0.0)

    async def stop(self) -> None:
        """Renew no more."""
        if self._renewal is not None:
            self._renewal.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewal
            self._renewal = None

    async def confirm(self) -> bool:
        """Whether the session is still this holder's. It is asked for only when the claim may have run out."""
        if self.lost_to is not None:
            return False
        return (self._clock() < self._until and not self._is_doubtful) or await self._renewed()

    async def held_by(self) -> str:
        """Who else has it, "" for nobody: this holder gives up what he may still have."""
        if self.lost_to is None:
            self.lost_to = await self._store.claim(KIND, self._owner, self._session, self.holder, until=0.0)
        return self.lost_to

    async def _ask(self) -> str:
        until = self._clock() + self._lease
        held_by = await self._store.claim(KIND, self._owner, self._session, self.holder, until=until)
        if held_by == self.holder:
            self._until = until
        return held_by

    async def _renewed(self) -> bool:
        """Ask for it again. One that had run out may have been another's, and free again since: the log knows."""
        if self._clock() >= self._until:
            self._is_doubtful = True
        held_by = await self._ask()
        if held_by != self.holder:
            self.lost_to = held_by
        elif self._is_doubtful and self._is_untouched is not None:
            if not await self._is_untouched():
                await self.held_by()
            else:
                self._is_doubtful = False
        return self.lost_to is None

    async def _renew(self) -> None:
        """A store that fails now may answer before the claim has run out; the fence holds if it does not."""
        while self.lost_to is None:
            await asyncio.sleep(self._lease / 3)
            with suppress(Exception):
                await self._renewed()

"""What the gateways of a store may still use of the limits of a client, so that together they do not exceed them.

    await reservations.take(client, cost, count)      # or raises the limit that is reached, as `ReachedError`

A process holds in the store what its requests in progress will probably use and what it has not yet added to the
totals, and a little more, so that most requests wait for no store. To hold more, it says so in the store, sees what all
hold, and then reads the totals: whoever lowers a hold has added to the totals before. So

    totals + what all hold, before a request ≤ limit

is true for each request that is admitted, and a limit is exceeded by one request, or by what estimates were too low.
A process that dies holds nothing any more after `LEASE_SECONDS`.

    free ── a request does not fit ──▶ a round: hold, read ──▶ it fits, or waits a moment for others, or is refused

Laws: one round at a time for each client, for all requests that wait. What was lowered is not used any more before the
store knows it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from toolglot.store import Store, StoreError

HOLDS: Final = "use"
"""The kind of the holds in the store."""
LEASE_SECONDS: Final = 20.0
"""How long the store keeps a hold that is not renewed."""
USE_SECONDS: Final = 10.0
"""How long it is used here: clocks of gateways may differ by the rest."""
SHARE: Final = 32
"""What a process holds at most beyond what it needs: this part of what is left."""
TRIES: Final = 6
WAIT_SECONDS: Final = 0.05
"""How long a request waits, `TRIES` times, for what other gateways hold and may just have stopped to use."""

Unit = Literal["requests", "tokens", "spend"]
UNITS: Final[tuple[Unit, ...]] = ("requests", "tokens", "spend")
Cost = Mapping[Unit, float]
NO_COST: Final[Cost] = {}


class LimitUse(Struct, frozen=True):
    """A limit of a client, and how much of it is used, as far as it is known here."""

    name: str
    unit: Unit
    limit: float
    used: float
    """With what this process has not sent to the store."""


class ReachedError(Exception):
    """A request would exceed a limit, with what requests in progress use."""

    def __init__(self, reached: LimitUse) -> None:
        super().__init__(reached.name)
        self.reached = reached


class ClientHold:
    """What this process holds of the limits of one client."""

    __slots__ = ("active", "begun", "done", "is_settling", "is_used", "lock", "others", "stored", "until", "waiting")

    def __init__(self) -> None:
        self.active: dict[Unit, float] = dict.fromkeys(UNITS, 0.0)
        """Estimates of requests in progress."""
        self.stored: dict[Unit, float] = dict.fromkeys(UNITS, 0.0)
        """What the store holds for this process."""
        self.others: dict[Unit, float] = dict.fromkeys(UNITS, 0.0)
        self.waiting: dict[Unit, float] = dict.fromkeys(UNITS, 0.0)
        """Estimates of requests that wait for a round."""
        self.until: float = -math.inf
        """When what is held may not be used any more."""
        self.begun: int = 0
        self.done: int = 0
        """Rounds."""
        self.lock = asyncio.Lock()
        self.is_settling = False
        self.is_used = False
        """A request was admitted since it was renewed."""

    @property
    def is_empty(self) -> bool:
        return not any(map(any, (self.active.values(), self.stored.values(), self.waiting.values())))


class Reservations:
    """The holds of a process.

    uses: the limits of a client, with what is used of them now.
    unsent: what this process has not added to the totals in the store.
    load: reads the totals of a client.
    """

    def __init__(
        self,
        store: Store | None,
        holder: str,
        *,
        uses: Callable[[str], Sequence[LimitUse]],
        unsent: Callable[[str, Unit], float],
        load: Callable[[str], Awaitable[None]],
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._holder = holder
        self._uses = uses
        self._unsent = unsent
        self._load = load
        self._clock = clock
        self._monotonic = monotonic
        self.clients: dict[str, ClientHold] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # --- requests -----------------------------------------------------------------------------------

    async def take(self, client: str, cost: Cost, count: Callable[[], None]) -> None:
        """Take what a request will probably use, and `count` it; or raise why not. Errors of the store are raised."""
        hold = self._of(client)
        for left in reversed(range(TRIES)):
            if self._store is not None and not self._fits(hold, client, cost):
                await self._wait_for_round(self._store, hold, client, cost)
            reached = self._reached(hold, client)
            if reached is None and (self._store is None or self._covers(hold, client, cost)):
                self._begin(hold, cost, count)
                return
            if reached is not None and (not left or not hold.others[reached.unit]):
                self._settle_soon(hold, client)
                raise ReachedError(reached)
            if reached is not None:
                await asyncio.sleep(WAIT_SECONDS)
        self._begin(hold, cost, count)  # others here were faster each time, and no limit is reached

    def take_known(self, client: str, cost: Cost, count: Callable[[], None]) -> None:
        """The same with what is known here, because the store fails."""
        hold = self._of(client)
        reached = self._reached(hold, client)
        if reached is not None:
            raise ReachedError(reached)
        self._begin(hold, cost, count)

    def end(self, client: str, cost: Cost) -> None:
        """A request has ended, and what it used is counted."""
        hold = self._of(client)
        for unit, amount in cost.items():
            hold.active[unit] = max(0.0, hold.active[unit] - amount)
        self._settle_soon(hold, client)

    def _begin(self, hold: ClientHold, cost: Cost, count: Callable[[], None]) -> None:
        hold.is_used = True
        for unit, amount in cost.items():
            if unit != "requests":  # it is counted as used at once
                hold.active[unit] += amount
        count()

    def _of(self, client: str) -> ClientHold:
        found = self.clients.get(client)
        if found is None:
            found = self.clients[client] = ClientHold()
        return found

    # --- what is held -------------------------------------------------------------------------------

    def _needed(self, hold: ClientHold, client: str, unit: Unit) -> float:
        return hold.active[unit] + self._unsent(client, unit)

    def _covers(self, hold: ClientHold, client: str, cost: Cost) -> bool:
        """Whether the store holds enough for a request more."""
        return self._monotonic() < hold.until and all(
            self._needed(hold, client, unit) + amount <= hold.stored[unit] for unit, amount in cost.items()
        )

    def _fits(self, hold: ClientHold, client: str, cost: Cost) -> bool:
        return self._covers(hold, client, cost) and self._reached(hold, client) is None

    def _reached(self, hold: ClientHold, client: str) -> LimitUse | None:
        """The first limit that is reached before a request more."""
        for use in self._uses(client):
            if use.used + hold.active[use.unit] + hold.others[use.unit] >= use.limit:
                return use
        return None

    def _wanted(self, hold: ClientHold, client: str) -> dict[Unit, float]:
        """What is needed now, and a part of what is left."""
        spare: dict[Unit, float] = {}
        for use in self._uses(client):
            left = use.limit - use.used - hold.active[use.unit] - hold.waiting[use.unit] - hold.others[use.unit]
            part = float(max(0, int(left) // SHARE)) if hold.is_used or any(hold.waiting.values()) else 0.0
            spare[use.unit] = min(part, spare.get(use.unit, part))
        return {
            unit: self._needed(hold, client, unit) + hold.waiting[unit] + spare[unit] for unit in UNITS if unit in spare
        }

    # --- the store ----------------------------------------------------------------------------------

    async def _wait_for_round(self, store: Store, hold: ClientHold, client: str, cost: Cost) -> None:
        """Wait until a round that began after this call has ended."""
        before = hold.begun
        for unit, amount in cost.items():
            hold.waiting[unit] += amount
        try:
            async with hold.lock:
                if hold.done <= before and not self._fits(hold, client, cost):
                    hold.begun += 1
                    await self._run_round(store, hold, client)
                    hold.done = hold.begun
        finally:
            for unit, amount in cost.items():
                hold.waiting[unit] -= amount

    async def _run_round(self, store: Store, hold: ClientHold, client: str) -> None:
        await self._hold(store, hold, client, is_round=True)
        await self._load(client)

    async def _hold(self, store: Store, hold: ClientHold, client: str, *, is_round: bool) -> None:
        """Say in the store what this process holds."""
        wanted, begun = self._wanted(hold, client), self._monotonic()
        for unit in UNITS:  # what becomes less is not used any more
            hold.stored[unit] = min(hold.stored[unit], wanted.get(unit, 0.0))
        amounts: dict[str, float] = {unit: amount for unit, amount in wanted.items() if amount}
        sums = await store.hold(HOLDS, client, self._holder, amounts, until=self._clock() + LEASE_SECONDS)
        for unit in UNITS:
            hold.stored[unit] = wanted.get(unit, 0.0)
            if is_round:
                # Only with the totals that are read after it: what others do not hold any more is in those.
                hold.others[unit] = max(0.0, sums.get(unit, 0.0) - hold.stored[unit])
        hold.until = begun + USE_SECONDS

    def _settle_soon(self, hold: ClientHold, client: str) -> None:
        """Let others have what is held and not needed, if that is much."""
        if self._store is None or hold.is_settling:
            return
        wanted = self._wanted(hold, client)
        if all(
            hold.stored[unit] - amount <= max(wanted[unit] - self._needed(hold, client, unit), 0.0)
            for unit, amount in wanted.items()
        ):
            return
        hold.is_settling = True
        task = asyncio.get_running_loop().create_task(self._settle(self._store, hold, client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, store: Store, hold: ClientHold, client: str) -> None:
        try:
            async with hold.lock:
                hold.is_settling = False
                if not any(hold.waiting.values()):
                    await self._hold(store, hold, client, is_round=False)
        except StoreError:  # it expires by itself
            hold.until = -math.inf

    async def renew(self) -> None:
        """Hold what is needed now, for longer; after the totals were sent."""
        for client, hold in [*self.clients.items()]:
            if hold.is_empty and not hold.lock.locked():
                del self.clients[client]
            elif self._store is not None:
                await self._settle(self._store, hold, client)
                hold.is_used = False

    async def close(self) -> None:
        """Hold nothing any more."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for hold in self.clients.values():
            hold.active = dict.fromkeys(UNITS, 0.0)
        await self.renew()

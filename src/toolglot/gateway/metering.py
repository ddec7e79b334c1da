"""How much each client uses, and whether it may use more.

    ticket = await meter.admit(client, told, size)      # raises what the client is told where it may not
    meter.record(ticket, told)                          # at the end, however it ended

Everything is counted in memory, and added to the store in one batch a second; what the store answers are the totals of
all processes. So a request reads no disk, after a client's first one. Processes know of each other's use one or two
seconds later, and what an answer costs is known when it ends: a limit can be overshot by what the other processes serve
in those seconds, and by the answers that are under way. Against bursts, a request under way counts as many tokens as
its length suggests.

Laws: no use is counted twice, or lost but by a process that dies within the second. A limit that was reached is told
with its name, its size and when there is more. What has no known price is never spent from a budget of money.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from toolglot.conversation import Failure, Usage
from toolglot.gateway.keys import BUDGETS, ClientKey, KeyRing, Period, Unit
from toolglot.gateway.model_names import matches, spellings
from toolglot.gateway.prices import Prices
from toolglot.gateway.requests import refusal
from toolglot.gateway.telling import Told
from toolglot.store import Store, StoreError
from toolglot.wire.failures import ProviderError
from toolglot.wire.masking import mask

USAGE: Final = "usage"
SPENT: Final = "spent"
RATES: Final = "rates"
ANYONE: Final = "anyone"
"""Under which name is counted what is used without a key."""
OTHERS: Final = "(others)"
PASSED_ON: Final = "(passed on)"
MOST_MODELS: Final = 200
"""Of one client and day that are counted by name."""
LONGEST_MODEL: Final = 200

BATCH_SECONDS: Final = 1.0
STALE: Final = 10.0
"""Seconds after which the totals of a client that was not here are read again."""
IDLE: Final = 120.0
"""Seconds after which a client's totals are not kept up to date any more."""
SLOT: Final = 6
SLOTS: Final = 11
"""A minute is the last eleven pieces of six seconds, the one that has begun included: never less than a minute."""
DAY: Final = 86_400
NANO: Final = 1_000_000_000
"""Money is counted in whole billionths of a dollar, which add up exactly."""
BYTES_PER_TOKEN: Final = 4
MOST_SUPPOSED: Final = 32_000
"""Tokens that a request under way counts at most: a long body may be a picture."""
_AT_ONCE: Final = 1000

Name = tuple[str, str, str]


class Total:
    """Totals under one name of the store: what all have added, as last heard, and what this process has since."""

    __slots__ = ("_heard", "_pending", "_sending", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self._heard: Mapping[str, float] = {}
        self._sending: dict[str, float] = {}
        self._pending: dict[str, float] = {}

    def of(self, name: str) -> float:
        return self._heard.get(name, 0.0) + self._sending.get(name, 0.0) + self._pending.get(name, 0.0)

    def add(self, amounts: Mapping[str, float]) -> None:
        for name, amount in amounts.items():
            self._pending[name] = self._pending.get(name, 0.0) + amount

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to tell the store."""
        return bool(self._pending) and not self._sending

    @property
    def is_sending(self) -> bool:
        return bool(self._sending)

    def hear(self, amounts: Mapping[str, float]) -> None:
        """What the store has; while it is being told something, nobody knows whether that is in it."""
        if not self._sending:
            self._heard = amounts

    async def send(self, store: Store, name: Name) -> None:
        self._sending, self._pending = self._pending, {}
        sent = self._sending
        try:
            self._heard = await store.add(*name, sent, until=self.until)
            self._sending = {}
        except StoreError:
            self._sending, later = {}, self._pending
            self._pending = sent
            self.add(later)
            raise


class Ticket:
    """A request that was admitted."""

    __slots__ = ("client", "is_over", "key", "supposed")

    def __init__(self, client: str, key: ClientKey | None, supposed: int) -> None:
        self.client = client
        self.key = key
        self.supposed = supposed
        """Tokens that it counts until it is over."""
        self.is_over = False


class Meter:
    """Admits requests, and counts what they use."""

    def __init__(
        self,
        store: Store | None,
        ring: KeyRing,
        prices: Prices,
        *,
        usage_seconds: float = 400 * DAY,
        clock: Callable[[], float] = time.time,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._ring = ring
        self._prices = prices
        self._usage_seconds = usage_seconds
        self._clock = clock
        self._tell = tell
        self._totals: dict[Name, Total] = {}
        self._models: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
        self._supposed: dict[str, int] = {}
        self._loaded: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._is_failing = False

    # --- before -------------------------------------------------------------------------------------

    def permit(self, client: str, model: str) -> None:
        """Refuse a model that a key may not ask for."""
        key = self._ring.key_of(client)
        if key is None or not key.models or any(matches(name, key.models) for name in spellings(model.strip())):
            return
        allowed = ", ".join(key.models)
        raise refusal(
            "permission", f"the key {key.name!r} may not use {mask(model)[:200]!r}; it may use {allowed}", 403
        )

    async def admit(self, client: str, told: Told, size: int = 0) -> Ticket:
        """Let a request of so many bytes pass, or raise why not."""
        key = self._ring.key_of(client)
        if key is None or not key.is_limited:
            return Ticket(client, key, 0)
        await self._known(client)
        now = self._clock()
        self._refuse_unpriced(key, told)
        self._refuse_overdrawn(key, client, now)
        self._refuse_hasty(key, client, now)
        ticket = Ticket(client, key, min(size // BYTES_PER_TOKEN, MOST_SUPPOSED))
        self._supposed[client] = self._supposed.get(client, 0) + ticket.supposed
        self._slot(client, now).add({"requests": 1})
        return ticket

    async def passing(self, client: str, told: Told) -> AbstractContextManager[None]:
        """While a request is passed on that is not translated: nobody counts its tokens, or knows its model."""
        key = self._ring.key_of(client)
        if key is not None and (key.models or key.budgets or key.tokens_per_minute is not None):
            message = f"the key {key.name!r} has limits that cannot be kept at this address: its use is not counted"
            raise refusal("permission", message, 403)
        ticket = await self.admit(client, told)
        return self._recorded(ticket, told)

    @contextmanager
    def _recorded(self, ticket: Ticket, told: Told) -> Iterator[None]:
        try:
            yield
        finally:
            self.record(ticket, told)

    async def _known(self, client: str) -> None:
        """See to it that the totals of a client are known."""
        now = self._seen[client] = self._clock()
        if self._store is None or now - self._loaded.get(client, -math.inf) < STALE:
            return
        async with self._loading.setdefault(client, asyncio.Lock()):
            if self._clock() - self._loaded.get(client, -math.inf) < STALE:
                return
            try:
                await self._load(self._store, client)
            except StoreError as error:
                said = "what this key has used cannot be read just now"
                self._tell(f"{said}: {error}")
                raise ProviderError(Failure("overloaded", said, retry_after=BATCH_SECONDS)) from None

    async def _load(self, store: Store, client: str) -> None:
        begun = self._clock()
        for kind in (SPENT, RATES):
            for row in await store.scan(kind, client=client, limit=_AT_ONCE):
                self._total(kind, client, row.key, _end_of(kind, row.key)).hear(row.amounts)
        self._loaded[client] = begun

    def _refuse_unpriced(self, key: ClientKey, told: Told) -> None:
        has_money = any(BUDGETS[name][0] == "spend" for name in key.budgets)
        if has_money and not told.is_simulated and self._prices.of(told.sent_model, told.upstream) is None:
            model = mask(f"{told.upstream}/{told.sent_model}")[:200]
            message = (
                f"the price of {model!r} is not known, and the key {key.name!r} has a budget of money; who runs this "
                f'gateway can write it into toolglot.toml: [prices."{model}"]'
            )
            raise refusal("billing", message, code="unknown_price")

    def _refuse_overdrawn(self, key: ClientKey, client: str, now: float) -> None:
        for name, limit in key.budgets.items():
            unit, period = BUDGETS[name]
            start = period_of(now)[period]
            used = self._total(SPENT, client, start, _end_of(SPENT, start)).of(unit)
            supposed = self._supposed.get(client, 0) if unit == "tokens" else 0
            if used + supposed >= (float(limit) if unit == "tokens" else float(limit * NANO)):
                raise refusal("billing", _overdrawn(key, unit, period, used, limit, now), code="budget_exceeded")

    def _refuse_hasty(self, key: ClientKey, client: str, now: float) -> None:
        supposed = self._supposed.get(client, 0)
        for unit, limit, begun in (
            ("requests", key.requests_per_minute, 0),
            ("tokens", key.tokens_per_minute, supposed),
        ):
            if limit is None:
                continue
            slots = self._slots(client, now)
            used = sum(slot.of(unit) for _, slot in slots) + begun
            if used < limit:
                continue
            seconds = _seconds_until(slots, unit, used - limit, now)
            message = f"the key {key.name!r} may use {limit:,} {unit} a minute, and has used {used:,.0f}"
            raise ProviderError(Failure("rate_limit", message, 429, retry_after=seconds))

    # --- after --------------------------------------------------------------------------------------

    def record(self, ticket: Ticket, told: Told) -> None:
        """Count what a request has used, as far as its provider said; once."""
        if ticket.is_over:
            return
        ticket.is_over = True
        client, key, now = ticket.client, ticket.key, self._clock()
        if ticket.supposed:
            self._supposed[client] -= ticket.supposed
        usage = Usage(**told.usage) if told.usage else None
        if usage is None and _is_answered(told) and ticket.supposed:
            usage = Usage(input_tokens=ticket.supposed)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage is not None else 0
        cost = self._cost(told, usage)
        if key is not None and key.is_limited and tokens:
            self._spend(key, client, tokens, cost or 0, now)
        if self._store is not None:
            self._count(client, told, usage, cost, now)

    def _cost(self, told: Told, usage: Usage | None) -> int | None:
        """In billionths of a dollar; None: not known. A stand-in costs nothing."""
        if usage is None or told.is_simulated:
            return 0
        cost = self._prices.cost(told.sent_model, usage, told.upstream)
        return None if cost is None else round(cost * NANO)

    def _spend(self, key: ClientKey, client: str, tokens: int, cost: int, now: float) -> None:
        for period in dict.fromkeys(BUDGETS[name][1] for name in key.budgets):
            start = period_of(now)[period]
            self._total(SPENT, client, start, _end_of(SPENT, start)).add({"tokens": tokens, "spend": cost})
        if key.tokens_per_minute is not None:
            self._slot(client, now).add({"tokens": tokens})

    def _count(self, client: str, told: Told, usage: Usage | None, cost: int | None, now: float) -> None:
        owner = client if self._ring.is_demanded else ANYONE
        amounts: dict[str, float] = {"requests": 1}
        if not _is_answered(told) or told.error:
            amounts["failed"] = 1
        if usage is not None:
            amounts |= {
                "input": usage.input_tokens or 0,
                "output": usage.output_tokens or 0,
                "cache_read": usage.cache_read_tokens or 0,
                "cache_write": usage.cache_write_tokens or 0,
                "cost": cost or 0,
            }
        if cost is None:
            amounts["unpriced"] = 1
        if _is_answered(told) and not told.usage:
            amounts["uncounted"] = 1
        day = period_of(now)["day"]
        until = now + self._usage_seconds
        self._total(USAGE, owner, self._usage_name(owner, day, told), until).add(
            {name: amount for name, amount in amounts.items() if amount}
        )

    def _usage_name(self, owner: str, day: str, told: Told) -> str:
        """The key of a row of usage; a client that makes up names does not make up rows."""
        known = self._models.setdefault((owner, day), {})
        pair = (told.upstream, told.sent_model)
        found = known.get(pair)
        if found is None:
            model = (mask(told.sent_model)[:LONGEST_MODEL] or PASSED_ON) if len(known) < MOST_MODELS else OTHERS
            found = usage_key(day, told.upstream, model)
            if len(known) < MOST_MODELS:
                known[pair] = found
        return found

    # --- totals -------------------------------------------------------------------------------------

    def _total(self, kind: str, client: str, key: str, until: float) -> Total:
        name = (kind, client, key)
        found = self._totals.get(name)
        if found is None:
            found = self._totals[name] = Total(until)
        return found

    def _slot(self, client: str, now: float) -> Total:
        key = _slot_key(int(now // SLOT))
        return self._total(RATES, client, key, _end_of(RATES, key))

    def _slots(self, client: str, now: float) -> list[tuple[int, Total]]:
        """The last minute, the oldest first."""
        latest = int(now // SLOT)
        found = (
            (slot, self._totals.get((RATES, client, _slot_key(slot)))) for slot in range(latest - SLOTS + 1, latest + 1)
        )
        return [(slot, total) for slot, total in found if total is not None]

    # --- the store ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the store, and what is known of it, up to date, until cancelled."""
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Tell the store what was used, hear what others have used, and forget what is past."""
        await self._ring.fresh(2 * BATCH_SECONDS)
        if self._store is not None:
            failures = await self._send(self._store)
            failures += await self._hear(self._store)
            if failures and not self._is_failing:
                self._tell(f"usage is not stored just now, and will be later: {failures[0]}")
            self._is_failing = bool(failures)
        self._forget(self._clock())

    async def _send(self, store: Store) -> list[BaseException]:
        waiting = [(name, total) for name, total in self._totals.items() if total.is_waiting]
        failures: list[BaseException] = []
        for start in range(0, len(waiting), _AT_ONCE):
            some = waiting[start : start + _AT_ONCE]
            ended = await asyncio.gather(*(total.send(store, name) for name, total in some), return_exceptions=True)
            failures += [error for error in ended if error is not None]
        return failures

    async def _hear(self, store: Store) -> list[BaseException]:
        """What other processes have counted for the clients that are here."""
        try:
            for client in list(self._seen):
                await self._load(store, client)
        except StoreError as error:
            return [error]
        return []

    def _forget(self, now: float) -> None:
        idle = [client for client, seen in self._seen.items() if now - seen > IDLE]
        for client in idle:
            del self._seen[client]
            self._loaded.pop(client, None)
            self._loading.pop(client, None)
            if not self._supposed.get(client, 0):
                self._supposed.pop(client, None)
        today = period_of(now)["day"]
        self._models = {name: known for name, known in self._models.items() if name[1] == today}
        self._totals = {name: total for name, total in self._totals.items() if self._is_needed(name, total, now)}

    def _is_needed(self, name: Name, total: Total, now: float) -> bool:
        if self._store is None:
            return total.until > now
        kind, client, _ = name
        is_current = kind != USAGE and client in self._seen and total.until > now
        return total.is_waiting or total.is_sending or is_current

    async def close(self) -> None:
        """The last batch."""
        await self.flush()


# --- names of rows, and time ------------------------------------------------------------------------


def _is_answered(told: Told) -> bool:
    return 200 <= told.status < 300


def usage_key(day: str, upstream: str, model: str) -> str:
    return f"{day}\n{upstream}\n{model}"


def _slot_key(slot: int) -> str:
    return f"{slot:012d}"


def _end_of(kind: str, key: str) -> float:
    """When the totals under a key do not matter any more: a day later than they could."""
    if kind == RATES:
        return (int(key) + SLOTS + 1) * SLOT + 60.0
    if key == "total":
        return math.inf
    return _ends(key) + DAY


@lru_cache(maxsize=64)
def _ends(start: str) -> float:
    """The first moment after a day, `2026-11-15`, or a month, `2026-11`."""
    parts = [int(part) for part in start.split("-")]
    if len(parts) == 3:
        return datetime(parts[0], parts[1], parts[2], tzinfo=UTC).timestamp() + DAY
    year, month = divmod(parts[0] * 12 + parts[1], 12)
    return datetime(year, month + 1, 1, tzinfo=UTC).timestamp()


def period_of(now: float) -> dict[Period, str]:
    return _periods(int(now // DAY))


@lru_cache(maxsize=8)
def _periods(day: int) -> dict[Period, str]:
    date = datetime.fromtimestamp(day * DAY, UTC)
    return {"day": f"{date:%Y-%m-%d}", "month": f"{date:%Y-%m}", "total": "total"}


# --- words ------------------------------------------------------------------------------------------


def _seconds_until(slots: Iterable[tuple[int, Total]], unit: str, excess: float, now: float) -> float:
    """How long it takes until so much, and a little, is more than a minute ago."""
    for slot, total in slots:
        excess -= total.of(unit)
        if excess < 0:
            return math.ceil((slot + SLOTS) * SLOT - now)
    return SLOT


def _overdrawn(key: ClientKey, unit: Unit, period: Period, used: float, limit: float | Decimal, now: float) -> str:
    spent, whole = (
        (f"{used:,.0f}", f"{limit:,} tokens") if unit == "tokens" else (f"${used / NANO:,.4f}", f"${limit:,f}")
    )
    each = "in total" if period == "total" else f"a {period}"
    if period == "total":
        renews = "it does not renew"
    else:
        renews = f"it renews at {datetime.fromtimestamp(_ends(period_of(now)[period]), UTC):%Y-%m-%dT%H:%M:%SZ}"
    return f"the budget of the key {key.name!r} is used up: {spent} of {whole} {each}; {renews}"

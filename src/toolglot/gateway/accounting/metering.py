"""Metering: how much each client uses, and whether it may use more.

    ticket = await meter.admit(client, record, size)    # raises the refusal that the client gets
    meter.record(ticket, record)                        # at the end, however it ended

Everything is counted in memory, and added to the store in one batch a second. What a request will probably use is
reserved in the store before it begins, a little more at a time than is needed (`reservations.py`): so several processes
together exceed a limit by one request, or by what an estimate was too low (`estimates.py`).

Laws: no use is counted twice, even if the store's response is lost; none is lost, unless a process dies within the
second, or its store cannot be written when it ends. A refusal names the limit, its size and when there is more. A model
without a known price is never charged to a budget of money.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from toolglot.conversation import Failure
from toolglot.errors import InputError
from toolglot.gateway.accounting.client_keys import BUDGETS, ClientKey, KeyRing, Period
from toolglot.gateway.accounting.client_keys import Unit as BudgetUnit
from toolglot.gateway.accounting.estimates import BYTES_PER_TOKEN, MAX_ESTIMATED, CostEstimates
from toolglot.gateway.accounting.prices import ConfiguredPrices
from toolglot.gateway.accounting.reservations import NO_COST, Cost, LimitUse, ReachedError, Reservations, Unit
from toolglot.gateway.http.requests import refusal
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.state.bounded_store import STORE_SECONDS
from toolglot.masking import mask
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import Store, StoreError
from toolglot.upstream.routing.model_names import matches, spellings

USAGE: Final = "usage"
SPENT: Final = "spent"
RATES: Final = "rates"
ANYONE: Final = "anyone"
"""The client of usage without a key."""
OTHERS: Final = "(others)"
PASSED_THROUGH: Final = "(passed on)"
"""The model of requests that are passed through, under the name that stores have."""
MAX_MODELS: Final = 200
"""Models of one client and day that are counted by name."""
MAX_MODEL_LENGTH: Final = 200

BATCH_SECONDS: Final = 1.0
READ_SECONDS: Final = 1.5
"""Totals of other processes that are older are read again: in every second batch."""
STALE: Final = 10.0
"""Seconds after which the totals of a client that sent nothing are read again."""
IDLE: Final = 120.0
"""Seconds without a request after which a client's totals are not updated any more."""
SLOT: Final = 6
SLOTS: Final = 11
"""A minute is the last eleven pieces of six seconds, the one that has begun included: never less than a minute."""
DAY: Final = 86_400
NANO: Final = 1_000_000_000
"""Money is counted in whole billionths of a dollar, which add up exactly."""
_MAX_ROWS: Final = 1000
_COUNTED: Final = {f"{name}_tokens": name for name in ("input", "output", "cache_read", "cache_write")}
"""The tokens of a reply that are counted, and their names in a row."""

RESERVED_SECONDS: Final = 1.0
"""When a request is to be sent again that was refused because of others in progress."""
UNREADABLE: Final = "the gateway's store cannot be read now, so the usage of this key is unknown; try again"

REPLAYED: Final = "(replay)"
"""Marks the upstream of requests that the inspector repeated."""
_NO_COUNTS: Final[Mapping[str, int]] = {}

RowName = tuple[str, str, str]


class Total:
    """The totals of one row: what all processes have added, as last read, and what this one has added since."""

    __slots__ = ("_addition", "_pending", "_sending", "_stored", "is_sending", "until")

    def __init__(self, until: float) -> None:
        self.until: float = until
        self._stored: Mapping[str, float] = {}
        self._sending: dict[str, float] = {}
        """What was sent and not confirmed: it is sent again, and the store knows it by the name of the addition."""
        self._addition = ""
        self._pending: dict[str, float] = {}
        self.is_sending: bool = False

    def of(self, name: str) -> float:
        return self._stored.get(name, 0.0) + self._sending.get(name, 0.0) + self._pending.get(name, 0.0)

    def unsent(self, name: str) -> float:
        """What the store has not confirmed."""
        return self._sending.get(name, 0.0) + self._pending.get(name, 0.0)

    def add(self, amounts: Mapping[str, float]) -> None:
        for name, amount in amounts.items():
            self._pending[name] = self._pending.get(name, 0.0) + amount

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to send to the store."""
        return bool(self._pending or self._sending) and not self.is_sending

    def update(self, amounts: Mapping[str, float]) -> None:
        """Take over what the store has. What is being sent may be in it, and then counts twice for a moment: what
        others have added must not count too late."""
        self._stored = amounts

    async def send(self, store: Store, name: RowName, writer: str, addition: str) -> None:
        """Send what was not confirmed again, under the same name, and then what is new."""
        self.is_sending = True
        try:
            if self._sending:
                await self._record(store, name, writer)
            if self._pending:
                self._sending, self._pending, self._addition = self._pending, {}, addition
                await self._record(store, name, writer)
        finally:
            self.is_sending = False

    async def send_last(self, store: Store, name: RowName, writer: str, addition: str) -> None:
        """Send what is new without waiting for what was sent before. Nothing may be sent after it: it is not known
        whether the store has both."""
        last, self._pending = self._pending, {}
        if last:
            await store.add(*name, last, until=self.until, once=(writer, addition))

    async def _record(self, store: Store, name: RowName, writer: str) -> None:
        try:
            self._stored = await store.add(*name, self._sending, until=self.until, once=(writer, self._addition))
        except InputError:  # the store will never take it
            self._sending = {}
            raise
        self._sending = {}


class KeyLimits:
    """The limits of a key, in the form that each request needs."""

    __slots__ = ("budgets", "has_money", "has_tokens", "is_limited", "key", "periods", "rates")

    def __init__(self, key: ClientKey) -> None:
        self.key: ClientKey = key
        found = [(*BUDGETS[name], limit) for name, limit in key.budgets.items()]
        self.budgets: list[tuple[BudgetUnit, Period, float]] = [
            (unit, period, float(limit * (1 if unit == "tokens" else NANO))) for unit, period, limit in found
        ]
        self.periods: tuple[Period, ...] = tuple(dict.fromkeys(period for _, period, _ in found))
        self.has_money: bool = any(unit == "spend" for unit, _, _ in found)
        rates: tuple[tuple[Literal["requests", "tokens"], int | None], ...] = (
            ("requests", key.requests_per_minute),
            ("tokens", key.tokens_per_minute),
        )
        self.rates: list[tuple[Literal["requests", "tokens"], int]] = [
            (unit, limit) for unit, limit in rates if limit is not None
        ]
        self.has_tokens: bool = "tokens" in {name for name, *_ in (*found, *self.rates)}
        self.is_limited: bool = bool(self.budgets or self.rates)


class Ticket:
    """A request that was admitted."""

    __slots__ = ("client", "cost", "estimated", "is_over", "limits", "size")

    def __init__(
        self, client: str, limits: KeyLimits | None, estimated: int, *, size: int = 0, cost: Cost = NO_COST
    ) -> None:
        self.client: str = client
        self.limits: KeyLimits | None = limits
        """Its limits; None: it has none."""
        self.estimated: int = estimated
        """Tokens of its prompt, as far as its length shows."""
        self.size: int = size
        self.cost: Cost = cost
        """What it will probably use, and reserves while it is in progress."""
        self.is_over: bool = False


class Meter:
    """Admits requests, and counts what they use."""

    def __init__(
        self,
        store: Store | None,
        ring: KeyRing,
        prices: ConfiguredPrices,
        *,
        usage_seconds: float = 400 * DAY,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        report: Callable[[str], None] = lambda _: None,
        store_seconds: float = STORE_SECONDS,
        count: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._count_failure = count
        self._store_seconds = store_seconds
        self._writer = uuid.uuid4().hex
        self._additions = itertools.count(1)
        self._late: set[asyncio.Future[None]] = set()
        self._ring = ring
        self.prices: ConfiguredPrices = prices
        self._usage_seconds = usage_seconds
        self._clock = clock
        self._monotonic = monotonic
        self._report = report
        self._limits: dict[str, KeyLimits] = {}
        self._totals: dict[RowName, Total] = {}
        self._minutes: dict[str, dict[int, Total]] = {}
        """The totals of each client's last minutes, by slot."""
        self._models: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
        self._estimates = CostEstimates()
        self._reservations = Reservations(
            store,
            self._writer,
            uses=self._uses,
            unsent=self._unsent,
            load=self._load_now,
            clock=clock,
            monotonic=monotonic,
        )
        self._loaded: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._is_failing = False
        self._is_unreadable = False
        self._flushing: asyncio.Future[None] | None = None

    # --- admission ----------------------------------------------------------------------------------

    def check_model(self, client: str, model: str) -> None:
        """Refuse a model that a key may not use."""
        key = self._ring.key_of(client)
        if key is None or not key.models or any(matches(name, key.models) for name in spellings(model.strip())):
            return
        allowed = ", ".join(key.models)
        raise refusal(
            "permission", f"the key {key.name!r} may not use {mask(model)[:200]!r}; it may use {allowed}", 403
        )

    async def admit(
        self,
        client: str,
        record: RequestRecord,
        size: int = 0,
        *,
        runs_model: bool = True,
        max_output: int | None = None,
    ) -> Ticket:
        """Admit a request of so many bytes, or raise why not. `max_output`: the tokens that its reply may have."""
        limits = self._limits_of(client)
        if limits is None:
            return Ticket(client, None, 0)
        if limits.has_money and runs_model:
            self._refuse_unpriced(limits.key, record)
        cost = self._cost_of(limits, client, record, size, max_output if runs_model else 0)
        ticket = Ticket(client, limits, min(size // BYTES_PER_TOKEN, MAX_ESTIMATED), size=size, cost=cost)
        self._seen[client] = self._monotonic()
        if self._is_known(client):
            self._refuse_used_up(limits, client)

        def count() -> None:
            self._slot(client, self._clock()).add({"requests": 1})

        try:
            await self._reservations.take(client, cost, count)
        except ReachedError as error:
            self._refuse_used_up(limits, client)
            raise _reserved(limits.key, error.reached) from None
        except StoreError as error:
            self._count_failure()
            if not self._is_known(client):
                self._note_unreadable(error)
                raise ProviderError(Failure("overloaded", UNREADABLE, retry_after=BATCH_SECONDS)) from None
            try:
                self._reservations.take_known(client, cost, count)
            except ReachedError as reached:
                raise _reserved(limits.key, reached.reached) from None
        return ticket

    def _cost_of(
        self, limits: KeyLimits, client: str, record: RequestRecord, size: int, max_output: int | None
    ) -> Cost:
        """What a request will probably use of what is limited."""
        model = record.route.model
        prompt, reply = self._estimates.of(client, model, size, max_output)
        cost: dict[Unit, float] = {"requests": 1} if limits.key.requests_per_minute is not None else {}
        if limits.has_tokens:
            cost["tokens"] = prompt + reply
        if limits.has_money and not record.route.is_simulated:
            counts = {"input_tokens": prompt, "output_tokens": reply}
            cost["spend"] = self.prices.billionths(model, counts, record.route.upstream) or 0
        return cost

    def counted_apart(self, client: str) -> Ticket:
        """A ticket for what a client used earlier, such as a batch that has ended."""
        return Ticket(client, self._limits_of(client), 0)

    def check_price(self, client: str, record: RequestRecord) -> None:
        """Refuse a model without a price to a key with a budget of money; for the upstream that is called now."""
        limits = self._limits_of(client)
        if limits is not None and limits.has_money:
            self._refuse_unpriced(limits.key, record)

    def take_over(self, other: Meter) -> None:
        """Go on with the totals of another meter, if there is no store."""
        if self._store is None:
            self._totals, self._minutes = other._totals, other._minutes
            self._reservations.clients = other._reservations.clients
            self._estimates = other._estimates

    def _limits_of(self, client: str) -> KeyLimits | None:
        key = self._ring.key_of(client)
        if key is None:
            return None
        limits = self._limits.get(client)
        if limits is None or limits.key is not key:
            limits = self._limits[client] = KeyLimits(key)
        return limits if limits.is_limited else None

    def _is_known(self, client: str) -> bool:
        """Whether the totals of a client were read not long ago."""
        return self._store is None or self._monotonic() - self._loaded.get(client, -math.inf) < STALE

    def _note_unreadable(self, error: StoreError) -> None:
        if not self._is_unreadable:  # once, until it can be read again
            self._report(f"{UNREADABLE}: {error}")
        self._is_unreadable = True

    async def _load_now(self, client: str) -> None:
        if self._store is not None:
            await self._load(self._store, client)

    async def _load(self, store: Store, client: str) -> None:
        begun = self._monotonic()
        found = await asyncio.gather(*(store.scan(kind, client=client, limit=_MAX_ROWS) for kind in (SPENT, RATES)))
        for kind, rows in zip((SPENT, RATES), found, strict=True):
            for row in rows:
                total = self._total(kind, client, row.key, _expiry(kind, row.key))
                total.update(row.amounts)
                if kind == RATES:
                    self._minutes.setdefault(client, {})[int(row.key)] = total
        self._loaded[client] = begun
        self._is_unreadable = False

    def _refuse_unpriced(self, key: ClientKey, record: RequestRecord) -> None:
        if not record.route.is_simulated and self.prices.of(record.route.model, record.route.upstream) is None:
            model = mask(f"{record.route.upstream}/{record.route.model}")[:200]
            message = (
                f"the price of {model!r} is unknown, and the key {key.name!r} has a budget of money; the "
                f'operator can add it to toolglot.toml: [prices."{model}"]'
            )
            raise refusal("billing", message, code="unknown_price")

    def _uses(self, client: str) -> list[LimitUse]:
        """The limits of a client, and what is used of them now."""
        limits, now = self._limits_of(client), self._clock()
        if limits is None:
            return []
        starts, found = period_of(now), []
        for budget, period, limit in limits.budgets:
            total = self._totals.get((SPENT, client, starts[period]))
            used = total.of(budget) if total is not None else 0.0
            found.append(LimitUse(period, budget, limit, used))
        minute = self._minute(client, now).values() if limits.rates else ()
        for unit, rate in limits.rates:
            found.append(LimitUse("minute", unit, rate, sum(total.of(unit) for total in minute)))
        return found

    def _unsent(self, client: str, unit: Unit) -> float:
        """What this process has counted and not yet added to the totals in the store."""
        found = sum(total.unsent(unit) for total in self._minutes.get(client, {}).values())
        limits = self._limits_of(client)
        starts = period_of(self._clock())
        for period in limits.periods if limits is not None else ():
            total = self._totals.get((SPENT, client, starts[period]))
            found = max(found, total.unsent(unit) if total is not None else 0.0)
        return found

    def _minute(self, client: str, now: float) -> dict[int, Total]:
        """The last minute, by slot."""
        # The clocks of others may be ahead by a minute: what is later was counted before this clock was set back.
        current = int(now // SLOT)
        slots = self._minutes.get(client, {})
        return {slot: total for slot, total in slots.items() if current - SLOTS < slot <= current + SLOTS}

    def _refuse_used_up(self, limits: KeyLimits, client: str) -> None:
        """Refuse what is over a limit, whatever requests in progress will use."""
        now = self._clock()
        starts = period_of(now)
        for budget, period, size in limits.budgets:
            total = self._totals.get((SPENT, client, starts[period]))
            used = total.of(budget) if total is not None else 0.0
            if used >= size:
                raise refusal(
                    "billing", _budget_message(limits.key, budget, period, used, size, now), code="budget_exceeded"
                )
        minute = self._minute(client, now) if limits.rates else {}
        for unit, limit in limits.rates:
            used = sum(total.of(unit) for total in minute.values())
            if used < limit:
                continue
            slots = sorted((slot, total.of(unit)) for slot, total in minute.items())
            message = f"the key {limits.key.name!r} may use {limit:,} {unit} per minute, and has used {used:,.0f}"
            raise ProviderError(
                Failure("rate_limit", message, 429, retry_after=_seconds_until(slots, used - limit, now))
            )

    # --- counting -----------------------------------------------------------------------------------

    def record(self, ticket: Ticket, record: RequestRecord) -> None:
        """Count what a request has used, as its provider reports it; once."""
        if ticket.is_over:
            return
        ticket.is_over = True
        client, limits, now = ticket.client, ticket.limits, self._clock()
        counts: Mapping[str, int] = record.reply.usage or _NO_COUNTS
        if limits is not None:
            self._estimates.learn(client, record.route.model, ticket.size, counts)
        if not counts and _has_reply(record) and ticket.estimated:
            counts = {"input_tokens": ticket.estimated}
        # In billionths of a dollar; None: not known. A simulated model costs nothing.
        cost: int | None = 0
        if counts and not record.route.is_simulated:
            cost = self.prices.billionths(record.route.model, counts, record.route.upstream)
        if limits is not None:
            tokens = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
            if tokens:
                self._spend(limits, client, tokens, cost or 0, now)
            self._reservations.end(client, ticket.cost)
        record.reply.price(cost)
        if self._store is not None:
            self._count(client, record, counts, cost, now)

    def _spend(self, limits: KeyLimits, client: str, tokens: int, cost: int, now: float) -> None:
        starts = period_of(now)
        for period in limits.periods:
            self._total(SPENT, client, starts[period], _expiry(SPENT, starts[period])).add(
                {"tokens": tokens, "spend": cost}
            )
        if limits.rates:
            self._slot(client, now).add({"tokens": tokens})

    def _count(
        self, client: str, record: RequestRecord, counts: Mapping[str, int], cost: int | None, now: float
    ) -> None:
        owner = client if self._ring.is_demanded else ANYONE
        amounts: dict[str, float] = {"requests": 1}
        has_reply = _has_reply(record)
        if not has_reply or record.response.error:
            amounts["failed"] = 1
        for name, count in counts.items():
            if count and name in _COUNTED:
                amounts[_COUNTED[name]] = count
        if cost:
            amounts["cost"] = cost
        if cost is None:
            amounts["unpriced"] = 1
        loss = record.reply.cache_loss
        if loss is not None:
            amounts["cache_lost"] = loss.tokens
            if loss.extra:
                amounts["cache_lost_cost"] = loss.extra
        if has_reply and not record.reply.usage:
            amounts["uncounted"] = 1
        name = self._usage_name(owner, period_of(now)["day"], record)
        self._total(USAGE, owner, name, now + self._usage_seconds).add(amounts)

    def spent(self, client: str) -> dict[str, float]:
        """What a client has used of each budget of its key, as far as it is known here: tokens, or US dollars."""
        key = self._ring.key_of(client)
        starts, found = period_of(self._clock()), {}
        for name in key.budgets if key is not None else ():
            unit, period = BUDGETS[name]
            total = self._totals.get((SPENT, client, starts[period]))
            used = total.of(unit) if total is not None else 0.0
            found[name] = used if unit == "tokens" else used / NANO
        return found

    def _usage_name(self, owner: str, day: str, record: RequestRecord) -> str:
        """The key of a row of usage. Invented model names do not make new rows without limit."""
        known = self._models.get((owner, day))
        if known is None:
            known = self._models[owner, day] = {}
        upstream = f"{record.route.upstream} (simulated)" if record.route.is_simulated else record.route.upstream
        if record.request.replay_of:
            upstream = f"{upstream} {REPLAYED}"
        pair = (upstream, record.route.model)
        found = known.get(pair)
        if found is None:
            model = (
                (mask(record.route.model)[:MAX_MODEL_LENGTH] or PASSED_THROUGH) if len(known) < MAX_MODELS else OTHERS
            )
            found = usage_key(day, upstream, model)
            if len(known) < MAX_MODELS:
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
        """The slot of this moment."""
        slot = int(now // SLOT)
        minute = self._minutes.setdefault(client, {})
        found = minute.get(slot)
        if found is None:
            key = f"{slot:012d}"
            found = minute[slot] = self._total(RATES, client, key, _expiry(RATES, key))
        return found

    # --- the store ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Update the store and the totals, until cancelled."""
        while True:
            await asyncio.sleep(BATCH_SECONDS)
            self._flushing = asyncio.ensure_future(self.flush())
            # Not cut off in the middle: then it would not be known what the store has.
            await asyncio.shield(self._flushing)

    @property
    def is_waiting(self) -> bool:
        """Whether the store has not confirmed everything."""
        return self._store is not None and any(total.is_waiting or total.is_sending for total in self._totals.values())

    async def flush(self) -> None:
        """Send to the store what was used, read what others have used, and drop what is past."""
        await self._ring.ensure_fresh(2 * BATCH_SECONDS)
        if self._store is not None:
            failures = await self._send(self._store)
            failures += await self._read_others(self._store)
            for _ in failures:
                self._count_failure()
            if failures and not self._is_failing:
                self._report(f"cannot store usage now, and will try again: {failures[0]}")
            self._is_failing = bool(failures)
        await self._reservations.renew()
        self._forget(self._clock())

    async def _send(self, store: Store) -> list[BaseException]:
        waiting = [(name, total) for name, total in self._totals.items() if total.is_waiting]
        failures: list[BaseException] = []
        for start in range(0, len(waiting), _MAX_ROWS):
            some = waiting[start : start + _MAX_ROWS]
            sending = [
                asyncio.ensure_future(total.send(store, name, self._writer, f"{next(self._additions)}"))
                for name, total in some
            ]
            ended, late = await asyncio.wait(sending, timeout=self._store_seconds)
            failures += [error for task in ended if (error := task.exception()) is not None]
            if late:  # not cut off: then it would not be known what the store has
                failures.append(StoreError(f"the store has not responded within {self._store_seconds:g} s"))
                self._late |= late
                for task in late:
                    task.add_done_callback(self._end_late)
        return failures

    def _end_late(self, task: asyncio.Future[None]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # it is sent again

    async def _read_others(self, store: Store) -> list[BaseException]:
        """Read what other processes have counted for the clients of this one."""
        now = self._monotonic()
        old = [client for client in self._seen if now - self._loaded.get(client, -math.inf) >= READ_SECONDS]
        failures: list[BaseException] = []
        for start in range(0, len(old), _MAX_ROWS):
            some = old[start : start + _MAX_ROWS]
            ended = await asyncio.gather(*(self._load(store, client) for client in some), return_exceptions=True)
            failures += [error for error in ended if error is not None]
        return failures

    def _forget(self, now: float) -> None:
        idle = [client for client, seen in self._seen.items() if self._monotonic() - seen > IDLE]
        for client in idle:
            del self._seen[client]
            self._loaded.pop(client, None)
            self._limits.pop(client, None)
        today = period_of(now)["day"]
        self._models = {name: known for name, known in self._models.items() if name[1] == today}
        self._totals = {name: total for name, total in self._totals.items() if self._is_needed(name, total, now)}
        self._minutes = {}
        for (kind, client, key), total in self._totals.items():
            if kind == RATES:
                self._minutes.setdefault(client, {})[int(key)] = total

    def _is_needed(self, name: RowName, total: Total, now: float) -> bool:
        if self._store is None:
            return total.until > now
        kind, client, _ = name
        is_current = kind != USAGE and client in self._seen and total.until > now
        return total.is_waiting or total.is_sending or is_current

    async def close(self) -> None:
        """Send the last batch; `run` is over. What the store does not confirm in time is in its queue, and is written
        when it closes."""
        if self._flushing is not None:
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self.flush()
        await self._reservations.close()
        if self._store is None:
            return
        lost = sum(total.is_waiting for total in self._totals.values())
        late, self._late = self._late, set()
        last = [
            asyncio.ensure_future(total.send_last(self._store, name, self._writer, f"{next(self._additions)}"))
            for name, total in self._totals.items()
            if total.is_sending
        ]
        await asyncio.sleep(0)  # a call puts its job into the store's queue before it waits for the first time
        for task in (*late, *last):
            task.cancel()
        lost += sum(isinstance(error, Exception) for error in await asyncio.gather(*last, return_exceptions=True))
        if lost:
            self._report(f"cannot store usage: {lost} rows are lost")


# --- names of rows, and time ------------------------------------------------------------------------


def _has_reply(record: RequestRecord) -> bool:
    return 200 <= record.response.status < 300


def usage_key(day: str, upstream: str, model: str) -> str:
    return f"{day}\n{upstream}\n{model}"


def _expiry(kind: str, key: str) -> float:
    """When the totals of a key expire: a day after the end of their period."""
    if kind == RATES:
        return (int(key) + SLOTS + 1) * SLOT + 60.0
    if key == "total":
        return math.inf
    return _period_end(key) + DAY


@lru_cache(maxsize=64)
def _period_end(start: str) -> float:
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


# --- messages ---------------------------------------------------------------------------------------


def _seconds_until(slots: Iterable[tuple[int, float]], excess: float, now: float) -> float:
    """Seconds until so much, and a little more, is older than a minute."""
    for slot, amount in slots:
        excess -= amount
        if excess < 0:
            return math.ceil((slot + SLOTS) * SLOT - now)
    return SLOT


def _reserved(key: ClientKey, reached: LimitUse) -> ProviderError:
    """The refusal of a request for which requests in progress leave nothing of a limit."""
    scale = NANO if reached.unit == "spend" else 1
    sign = "$" if reached.unit == "spend" else ""
    share = f"{sign}{reached.used / scale:,.10g} of {sign}{reached.limit / scale:,.10g}"
    noun = "dollars" if reached.unit == "spend" else reached.unit
    every = {"minute": "per minute", "total": "in total"}.get(reached.name, f"a {reached.name}")
    message = f"the key {key.name!r} may use {sign}{reached.limit / scale:,.10g} {noun} {every}"
    message = f"{message}, and has used {share}; requests in progress may use the rest: try again"
    return ProviderError(Failure("rate_limit", message, 429, retry_after=RESERVED_SECONDS))


def _budget_message(key: ClientKey, unit: BudgetUnit, period: Period, used: float, limit: float, now: float) -> str:
    if unit == "tokens":
        share = f"{used:,.0f} of {limit:,.0f} tokens"
    else:
        share = f"${used / NANO:,.4f} of ${(Decimal(limit) / NANO).normalize():,f}"
    if period == "total":
        renews = "in total; it does not renew"
    else:
        end = datetime.fromtimestamp(_period_end(period_of(now)[period]), UTC)
        renews = f"a {period}; it renews at {end:%Y-%m-%dT%H:%M:%SZ}"
    return f"the budget of the key {key.name!r} is used up: {share} {renews}"

"""Client keys: who may use a gateway, which models, how fast and how much.

    key, secret = new_key("ci", now=time.time(), models=("gpt-5*",))   # the secret is shown once, and kept nowhere
    await save(store, key)
    ring = KeyRing(store, config.gateway.client_keys)
    client = await ring.admit(secret)                                 # its hash; a refusal where it is none

Keys come from `toolglot keys`, in the store, and from the configuration: `client_keys`, without limits, and `[keys]`.
As soon as there is one, revoked ones included, a key is demanded: to revoke the last one opens nothing.

Laws: only SHA-256 of a key is kept. A look-up takes a time that tells nothing of a key: what is looked up and compared
is its hash, which nobody can steer towards that of another key, and a made key has 256 bits that nobody can guess, so
that no slower hash is needed. What was revoked is refused everywhere `FRESH` seconds later, wherever the clock of the
machine is set to meanwhile: how old something is, is measured by a clock that only runs forward.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.errors import InputError, quote
from toolglot.gateway.config.key_table import MAX_NAME_LENGTH, STORED_KEYS, KeySettings, digest
from toolglot.gateway.http.requests import refusal
from toolglot.store import Row, Store, StoreError
from toolglot.upstream.routing.model_names import matches, spellings

KIND: Final = "keys"
GATEWAYS_OWN: Final = ""
"""Under which client the rows are: keys are no client's."""
PREFIX: Final = "tgk_"
SHOWN: Final = len(PREFIX) + 4
"""Characters of a key that lists show."""
ID_LENGTH: Final = 12
"""Of the hash: the log tells clients by it."""
MAX_KEYS: Final = 100_000

FRESH: Final = 3.0
"""Seconds for which what was read of the store holds."""
EAGER: Final = 1.0
"""Seconds after which an unknown key is reason to look again: it may be new."""
MOMENT: Final = 0.25
"""Seconds that a request waits for keys while the store fails."""
_PAGE: Final = 1000

State = Literal["active", "revoked", "expired"]
Period = Literal["day", "month", "total"]
Unit = Literal["tokens", "spend"]

BUDGETS: Final[dict[str, tuple[Unit, Period]]] = {
    "tokens_per_day": ("tokens", "day"),
    "tokens_per_month": ("tokens", "month"),
    "tokens_total": ("tokens", "total"),
    "spend_per_day": ("spend", "day"),
    "spend_per_month": ("spend", "month"),
    "spend_total": ("spend", "total"),
}
"""The budgets that a key can have."""


class ClientKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key without its secret. Times are seconds since 1970, spending is in US dollars, None is without limit."""

    id: str
    name: str
    hashed: str
    """SHA-256 of the key, in hexadecimal digits."""
    shown: str
    """How the key begins."""
    created: float
    expires: float | None = None
    revoked: float | None = None
    models: tuple[str, ...] = ()
    """Patterns of the models that it may ask for; none: all."""
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    tokens_total: int | None = None
    spend_per_day: Decimal | None = None
    spend_per_month: Decimal | None = None
    spend_total: Decimal | None = None

    def state(self, now: float) -> State:
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"

    @property
    def budgets(self) -> dict[str, float | Decimal]:
        """Those that it has, by the names of `BUDGETS`."""
        found = {name: getattr(self, name) for name in BUDGETS}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def is_limited(self) -> bool:
        """Whether its use has to be known before it is used again."""
        rates = (self.requests_per_minute, self.tokens_per_minute)
        return any(rate is not None for rate in rates) or bool(self.budgets)


def new_key(name: str, *, now: float, secret: str = "", **limits: Any) -> tuple[ClientKey, str]:
    """A key of this name, and its secret, which is nowhere else."""
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InputError(f"a name has 1 to {MAX_NAME_LENGTH} printable characters", path="name")
    secret = secret or PREFIX + secrets.token_urlsafe(32)
    hashed = digest(secret)
    key = ClientKey(id=hashed[:ID_LENGTH], name=name, hashed=hashed, shown=f"{secret[:SHOWN]}…", created=now, **limits)
    return key, secret


def configured_keys(tables: Mapping[str, KeySettings]) -> list[ClientKey]:
    """The keys of a configuration's `[keys]`."""
    return [
        ClientKey(id=each.key[:ID_LENGTH], name=name, hashed=each.key, shown="", created=0.0, **each.limits())
        for name, each in tables.items()
    ]


# --- in the store -----------------------------------------------------------------------------------


async def save(store: Store, key: ClientKey) -> None:
    """Keep a key, for ever: who forgets that there were keys demands none."""
    await store.keep(KIND, GATEWAYS_OWN, {key.hashed: msgspec.json.encode(key)}, until=math.inf)


async def saved_keys(store: Store) -> list[ClientKey]:
    """All keys of a store, the oldest first."""
    found: list[ClientKey] = []
    after = ""
    while rows := await store.scan(KIND, client=GATEWAYS_OWN, after=after, limit=_PAGE):
        found += map(_read, rows)
        after = rows[-1].place
        if len(found) > MAX_KEYS:
            raise StoreError(f"the store has more than {MAX_KEYS} client keys")
    return sorted(found, key=lambda key: (key.created, key.id))


def _read(row: Row) -> ClientKey:
    try:
        return msgspec.json.decode(row.value or b"", type=ClientKey)
    except (ValueError, RecursionError):  # never a reason to let somebody in, nor to forget that a key was there
        return ClientKey(
            id=row.key[:ID_LENGTH], name="(unreadable)", hashed=row.key, shown="", created=0.0, revoked=0.0
        )


def named(keys: Iterable[ClientKey], name: str) -> list[ClientKey]:
    """The keys of a name or an id; an active one hides those of the same name that were before it."""
    fitting = [key for key in keys if name in (key.name, key.id)]
    return [key for key in fitting if key.revoked is None] or fitting


async def revoke(store: Store, name: str, now: float) -> ClientKey:
    """Revoke the key of a name or an id."""
    found = named(await saved_keys(store), name)
    if not found:
        raise InputError(f"there is no key {quote(name)}", path="keys", hint="see `toolglot keys list --all`")
    if len(found) > 1:
        ids = ", ".join(key.id for key in found)
        raise InputError(f"several keys are called {quote(name)}", path="keys", hint=f"name one by its id: {ids}")
    (key,) = found
    if key.revoked is None:
        key = replace(key, revoked=now)
        await save(store, key)
    return key


# --- who asks ---------------------------------------------------------------------------------------


class KeyRing:
    """Knows all keys of a gateway. What it has read of the store it reads again when that is old."""

    def __init__(
        self,
        store: Store | None,
        configured: Iterable[str] = (),
        named: Mapping[str, KeySettings] | None = None,
        *,
        metrics_key: str = "",
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        given = tuple(configured)
        self._configured = frozenset(given) - {STORED_KEYS}
        self._is_always_demanded = bool(given)
        self._named = {key.hashed: key for key in configured_keys(named or {})}
        self._metrics_key = metrics_key
        self._clock = clock
        self._monotonic = monotonic
        self._tell = tell
        self._keys: Mapping[str, ClientKey] = {}
        self._read_at = -math.inf
        self._reading = asyncio.Lock()
        self._is_failing = False
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_demanded(self) -> bool:
        """Whether clients must have a key."""
        return self._is_always_demanded or bool(self._keys)

    @property
    def is_shared(self) -> bool:
        """Whether several clients, who know nothing of each other, may use the gateway."""
        return len(self._configured) + len(self._keys) > 1

    def key_of(self, client: str) -> ClientKey | None:
        """The key of a client that was admitted; None: it has no limits."""
        return self._named.get(client) or self._keys.get(client)

    def may_use(self, client: str, model: str) -> bool:
        """Whether a client that was admitted may ask for a model by this name."""
        key = self.key_of(client)
        return key is None or not key.models or any(matches(name, key.models) for name in spellings(model.strip()))

    async def start(self) -> None:
        """Read the keys for the first time: what goes wrong is the caller's to hear."""
        await self._read()

    async def refresh(self, older_than: float = 0.0) -> None:
        """Read the keys anew, unless somebody has just done so. What was known stays while the store fails."""
        async with self._reading:
            if self._monotonic() - self._read_at < older_than:
                return
            try:
                await self._read()
                self._is_failing = False
            except StoreError as error:
                self._read_at = self._monotonic()
                if not self._is_failing:
                    self._tell(f"the client keys cannot be read, so the last ones known count: {error}")
                self._is_failing = True

    async def _read(self) -> None:
        if self._store is not None:
            begun = self._monotonic()
            self._keys = {key.hashed: key for key in await saved_keys(self._store)}
            self._read_at = begun

    async def admit(self, secret: str) -> str:
        """The hash by which a client is known; raises a refusal where a key is demanded and this is none."""
        if self._store is not None and self._monotonic() - self._read_at >= FRESH:
            await self._look_again()
        client = digest(secret)
        if not self.is_demanded or self._has(client):
            return client
        await self.fresh(EAGER)
        if self._has(client):
            return client
        raise refusal("auth", self._why_not(secret, client), 401)

    async def admit_to_metrics(self, secret: str) -> str:
        """The same for who wants to see the sums over all clients: the key that is made for it, or, where none is, the
        only client that there is."""
        if not self._metrics_key:
            client = await self.admit(secret)
            if not self.is_demanded or not self.is_shared:
                return client
            told = "these are sums over all clients, and a client sees its own only; who runs this gateway can set"
            raise refusal("permission", f'{told} metrics_key or metrics = "open" in [gateway]', 403)
        client = digest(secret)
        if hmac.compare_digest(self._metrics_key, client):
            return client
        raise refusal("auth", "the metrics of this gateway have a key of their own (metrics_key)", 401)

    async def _look_again(self) -> None:
        """Read what is old; while the store fails, nobody waits for it longer than a moment."""
        if not self._is_failing:
            await self.refresh(FRESH)
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.refresh(FRESH))
        await asyncio.wait([self._looking], timeout=MOMENT)

    async def fresh(self, seconds: float) -> None:
        """See to it that what is known is not older than that."""
        if self._store is not None and self._monotonic() - self._read_at >= seconds:
            await self.refresh(seconds)

    def _has(self, client: str) -> bool:
        key = self._keys.get(client)
        if key is not None:
            return hmac.compare_digest(key.hashed, client) and key.state(self._clock()) == "active"
        return client in self._configured

    def _why_not(self, secret: str, client: str) -> str:
        hint = "send a key of this gateway as x-api-key, x-goog-api-key or Authorization: Bearer"
        if not secret:
            return f"no client key; {hint}"
        key = self._keys.get(client)
        if key is None:
            return f"an unknown client key; {hint}"
        return f"the client key {key.name!r} is {key.state(self._clock())}; ask who runs this gateway for another"

"""Client keys: which clients may use a gateway, which models, how fast and how much.

    key, secret = new_key("ci", now=time.time(), models=("gpt-5*",))   # the secret is shown once, and stored nowhere
    await save(store, key)
    ring = KeyRing(store, config.gateway.client_keys)
    client = await ring.admit(secret)                                 # its hash; raises a refusal if it is not a key

Keys come from `toolglot keys`, in the store, and from the configuration: `client_keys`, without limits, and `[keys]`.
As soon as there is one, even a revoked one, clients need a key: revoking the last one does not open the gateway. So a
gateway that starts while its store is down admits only keys of the configuration, until it has read the others.

Laws: only the SHA-256 of a key is stored. The time of a look-up reveals nothing about a key: its hash is looked up and
compared, which cannot be steered towards that of another key. A generated key has 256 random bits, so that no slower
hash is needed. A revoked key is refused everywhere `FRESH_SECONDS` later, also if the clock of the machine is set: ages
are measured by a monotonic clock.
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

from toolglot.conversation import Failure
from toolglot.errors import InputError, quote
from toolglot.gateway.config.key_table import MAX_NAME_LENGTH, STORED_KEYS, KeySettings, digest
from toolglot.gateway.http.requests import refusal
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import Row, Store, StoreError
from toolglot.upstream.routing.model_names import matches, spellings

KIND: Final = "keys"
NO_CLIENT: Final = ""
"""The client of the rows: keys belong to none."""
PREFIX: Final = "tgk_"
SHOWN: Final = len(PREFIX) + 4
"""Characters of a key that lists show."""
ID_LENGTH: Final = 12
"""Characters of the hash, with which the log names clients."""
MAX_KEYS: Final = 100_000

FRESH_SECONDS: Final = 3.0
"""Seconds for which keys that were read are valid."""
UNKNOWN_KEY_SECONDS: Final = 1.0
"""Seconds after which an unknown key makes the gateway read again: it may be new."""
KNOWN_KEY_SECONDS: Final = 0.25
"""Seconds that a request waits while old keys are read again; after that, the known ones are used."""
_PAGE: Final = 1000

UNREAD: Final = (
    "the gateway's store, which has the client keys, cannot be read yet; try again in a few seconds (the gateway's log "
    "has the reason)"
)

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
    """Patterns of the models that it may use; none: all."""
    admin: bool = False
    """It sees the requests of all clients."""
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
        """Whether its use must be known before it is used again."""
        rates = (self.requests_per_minute, self.tokens_per_minute)
        return any(rate is not None for rate in rates) or bool(self.budgets)


def new_key(name: str, *, now: float, secret: str = "", **limits: Any) -> tuple[ClientKey, str]:
    """A key of this name, and its secret, which is stored nowhere."""
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name != name.strip():
        raise InputError(f"expected a name of 1 to {MAX_NAME_LENGTH} printable characters", path="name")
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
    """Store a key, for ever: without any key in the store, clients need none."""
    await store.keep(KIND, NO_CLIENT, {key.hashed: msgspec.json.encode(key)}, until=math.inf)


async def saved_keys(store: Store) -> list[ClientKey]:
    """All keys of a store, the oldest first."""
    found: list[ClientKey] = []
    after = ""
    while rows := await store.scan(KIND, client=NO_CLIENT, after=after, limit=_PAGE):
        found += map(_read, rows)
        after = rows[-1].cursor
        if len(found) > MAX_KEYS:
            raise StoreError(f"the store has more than {MAX_KEYS} client keys")
    return sorted(found, key=lambda key: (key.created, key.id))


def _read(row: Row) -> ClientKey:
    try:
        return msgspec.json.decode(row.value or b"", type=ClientKey)
    except (ValueError, RecursionError):  # it admits no client, and still counts as a key
        return ClientKey(
            id=row.key[:ID_LENGTH], name="(unreadable)", hashed=row.key, shown="", created=0.0, revoked=0.0
        )


def keys_named(keys: Iterable[ClientKey], name: str) -> list[ClientKey]:
    """The keys with a name or an id; an active one hides older ones of the same name."""
    fitting = [key for key in keys if name in (key.name, key.id)]
    return [key for key in fitting if key.revoked is None] or fitting


async def revoke(store: Store, name: str, now: float) -> ClientKey:
    """Revoke the key of a name or an id."""
    found = keys_named(await saved_keys(store), name)
    if not found:
        raise InputError(f"unknown key {quote(name)}", path="keys", hint="`toolglot keys list --all` shows all keys")
    if len(found) > 1:
        ids = ", ".join(key.id for key in found)
        raise InputError(f"several keys have the name {quote(name)}", path="keys", hint=f"use the id of one: {ids}")
    (key,) = found
    if key.revoked is None:
        key = replace(key, revoked=now)
        await save(store, key)
    return key


# --- admission --------------------------------------------------------------------------------------


class KeyRing:
    """All keys of a gateway. Those of the store are read again when they are old."""

    def __init__(
        self,
        store: Store | None,
        configured: Iterable[str] = (),
        named: Mapping[str, KeySettings] | None = None,
        *,
        metrics_key: str = "",
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        report: Callable[[str], None] = lambda _: None,
        count: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._count = count
        all_keys = tuple(configured)
        self._configured = frozenset(all_keys) - {STORED_KEYS}
        self._is_always_demanded = bool(all_keys)
        self._named = {key.hashed: key for key in configured_keys(named or {})}
        self._metrics_key = metrics_key
        self._clock = clock
        self._monotonic = monotonic
        self._report = report
        self._keys: Mapping[str, ClientKey] = {}
        self._is_unread = False
        """The store could not be read since the start: nobody knows whether it has keys."""
        self._read_at = -math.inf
        self._reading = asyncio.Lock()
        self._is_failing = False
        self._rereading: asyncio.Task[None] | None = None

    @property
    def is_demanded(self) -> bool:
        """Whether clients must have a key."""
        return self._is_always_demanded or bool(self._keys) or self._is_unread

    @property
    def is_shared(self) -> bool:
        """Whether several separate clients may use the gateway."""
        return len(self._configured) + len(self._keys) > 1

    def key_of(self, client: str) -> ClientKey | None:
        """The key of a client that was admitted; None: it has no limits."""
        return self._named.get(client) or self._keys.get(client)

    def may_use(self, client: str, model: str) -> bool:
        """Whether a client that was admitted may use a model by this name."""
        key = self.key_of(client)
        return key is None or not key.models or any(matches(name, key.models) for name in spellings(model.strip()))

    def visible_client(self, client: str) -> str | None:
        """The client whose requests one that was admitted may see: itself; None: all, without keys or with an admin
        key."""
        if not self.is_demanded:
            return None
        key = self.key_of(client)
        return None if key is not None and key.admin else client

    def clients(self) -> dict[str, ClientKey | None]:
        """The clients whose keys are valid now, with their keys; None: a key without a name and limits."""
        named = {**self._keys, **self._named}
        found: dict[str, ClientKey | None] = dict.fromkeys(self._configured)
        return {**found, **{id: key for id, key in named.items() if key.state(self._clock()) == "active"}}

    async def start(self) -> None:
        """Read the keys for the first time. Errors are raised."""
        await self._read()

    async def start_without(self, error: StoreError) -> None:
        """Begin while the store cannot be read; it is tried again in the background."""
        self._is_unread, self._is_failing = True, True
        self._count()
        self._report(f"the store cannot be read: {error}; until it can, only keys of the configuration are admitted")

    async def refresh(self, older_than: float = 0.0) -> None:
        """Read the keys again, unless that has just been done. While the store fails, the old ones stay."""
        async with self._reading:
            if self._monotonic() - self._read_at < older_than:
                return
            try:
                await self._read()
                self._is_failing = False
            except StoreError as error:
                self._read_at = self._monotonic()
                self._count()
                if not self._is_failing:
                    self._report(f"cannot read the client keys, so the last known ones stay valid: {error}")
                self._is_failing = True

    async def _read(self) -> None:
        if self._store is not None:
            begun = self._monotonic()
            self._keys = {key.hashed: key for key in await saved_keys(self._store)}
            self._read_at = begun
            self._is_unread = False

    async def admit(self, secret: str) -> str:
        """The hash that identifies a client. Raises a refusal if a key is needed and this is not one."""
        if self._store is not None and self._monotonic() - self._read_at >= FRESH_SECONDS:
            await self._reread()
        client = digest(secret)
        if not self.is_demanded or self._has(client):
            return client
        await self.ensure_fresh(UNKNOWN_KEY_SECONDS)
        if self._has(client):
            return client
        if self._is_unread:
            raise ProviderError(Failure("overloaded", UNREAD, 503, retry_after=1))
        raise refusal("auth", self._refusal_message(secret, client), 401)

    async def admit_to_metrics(self, secret: str) -> str:
        """The same for metrics, which are sums over all clients: by `metrics_key`, or else by the only client key."""
        if not self._metrics_key:
            client = await self.admit(secret)
            if not self.is_demanded or not self.is_shared:
                return client
            message = "these are totals of all clients, and this key may see its own only; the operator can set"
            raise refusal("permission", f'{message} metrics_key or metrics = "open" in [gateway]', 403)
        client = digest(secret)
        if hmac.compare_digest(self._metrics_key, client):
            return client
        raise refusal("auth", "the metrics of this gateway need their own key (metrics_key)", 401)

    async def _reread(self) -> None:
        """Read old keys again in the background, without a long wait for a store that is slow or silent: then the
        known ones are used once more."""
        if self._rereading is None or self._rereading.done():
            self._rereading = asyncio.create_task(self.refresh(FRESH_SECONDS))
        await asyncio.wait([self._rereading], timeout=KNOWN_KEY_SECONDS)

    async def ensure_fresh(self, seconds: float) -> None:
        """Read the keys again if they are older."""
        if self._store is not None and self._monotonic() - self._read_at >= seconds:
            await self.refresh(seconds)

    def _has(self, client: str) -> bool:
        key = self._keys.get(client)
        if key is not None:
            return hmac.compare_digest(key.hashed, client) and key.state(self._clock()) == "active"
        return client in self._configured

    def _refusal_message(self, secret: str, client: str) -> str:
        hint = "send a key of this gateway as x-api-key, x-goog-api-key or Authorization: Bearer"
        if not secret:
            return f"missing client key; {hint}"
        key = self._keys.get(client)
        if key is None:
            return f"unknown client key; {hint}"
        return f"the client key {key.name!r} is {key.state(self._clock())}; ask the gateway's operator for another"

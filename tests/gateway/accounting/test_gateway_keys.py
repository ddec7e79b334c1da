"""Client keys: who is admitted, and what is refused with which message."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from support.gateway.metered_gateway import DAY, NOW, Clock, FailingStore, Worker, added, refused, with_store
from toolglot import InputError
from toolglot.gateway.accounting.client_keys import (
    FRESH_SECONDS,
    KIND,
    PREFIX,
    UNKNOWN_KEY_SECONDS,
    KeyRing,
    new_key,
    revoke,
    saved_keys,
)
from toolglot.gateway.accounting.metering import (
    READ_SECONDS,
)
from toolglot.gateway.config.key_table import digest
from toolglot.masking import mask
from toolglot.store import StoreError

# --- keys -----------------------------------------------------------------------------------------


def test_a_key_is_long_random_and_kept_only_as_its_hash(tmp_path: Path) -> None:
    secrets = {new_key("a", now=NOW)[1] for _ in range(50)}
    assert len(secrets) == 50
    assert all(secret.startswith(PREFIX) and len(secret) >= 47 and secret.isascii() for secret in secrets)

    async def act(store: FailingStore, _: Clock) -> None:
        client, secret = await added(store, "ci")
        assert client == digest(secret)
        (key,) = await saved_keys(store)
        assert (key.name, key.hashed, key.id) == ("ci", client, client[:12])
        assert secret.startswith(key.shown.removesuffix("…"))
        assert secret[12:] not in str(key)
        assert mask(f"the key is {secret}.") == "the key is tgk_***."
        await store.close()
        for file in tmp_path.iterdir():
            assert secret.encode()[12:] not in file.read_bytes()

    with_store(act, tmp_path / "store.db")


@pytest.mark.parametrize("name", ["", " a", "a" * 65, "a\nb", "\x1b[2J"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="1 to 64 printable"):
        new_key(name, now=NOW)


def test_a_key_is_revoked_by_its_name_or_its_id_and_stays_known() -> None:
    async def act(store: FailingStore, _clock: Clock) -> None:
        first, _ = await added(store, "ci")
        assert (await revoke(store, "ci", NOW + 1)).revoked == NOW + 1
        assert (await revoke(store, "ci", NOW + 2)).revoked == NOW + 1, "it stays revoked when it was"
        second, _ = await added(store, "ci")
        assert (await revoke(store, "ci", NOW + 3)).hashed == second, "the one that is active is meant"
        with pytest.raises(InputError, match="several keys") as several:
            await revoke(store, "ci", NOW + 4)
        assert first[:12] in several.value.hint
        assert (await revoke(store, first[:12], NOW + 4)).hashed == first
        with pytest.raises(InputError, match="unknown key 'nobody'"):
            await revoke(store, "nobody", NOW)
        assert [key.state(NOW + 9) for key in await saved_keys(store)] == ["revoked", "revoked"]

    with_store(act)


def test_all_keys_are_read_however_many() -> None:
    async def act(store: FailingStore, _: Clock) -> None:
        await asyncio.gather(*(added(store, f"k{number}") for number in range(2100)))
        assert len(await saved_keys(store)) == 2100

    with_store(act)


def test_a_key_that_cannot_be_read_admits_no_client_and_still_demands_one() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        await store.keep(KIND, "", {digest("s"): b"not a key"}, until=math.inf)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await refused(ring.admit("s"), "auth", "(unreadable)")
        await refused(ring.admit("t"), "auth", "unknown")

    with_store(act)


# --- the ring -------------------------------------------------------------------------------------


def test_without_any_key_every_client_is_admitted_and_distinguished() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        for ring in (
            KeyRing(store, clock=clock, monotonic=clock.monotonic),
            KeyRing(None, clock=clock, monotonic=clock.monotonic),
        ):
            assert await ring.admit("a") != await ring.admit("b")
            assert await ring.admit("") == digest("")
            assert not ring.is_demanded
            assert not ring.is_shared

    with_store(act)


def test_from_the_first_key_on_one_is_demanded_also_when_the_last_was_revoked() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await ring.admit("anything")
        client, secret = await added(store)
        clock.now += FRESH_SECONDS
        await refused(ring.admit("anything"), "auth", "unknown client key", "x-api-key")
        await refused(ring.admit(""), "auth", "missing client key")
        assert await ring.admit(secret) == client
        assert ring.is_demanded
        assert not ring.is_shared
        await revoke(store, "ci", clock.now)
        clock.now += FRESH_SECONDS
        await refused(ring.admit(secret), "auth", "'ci' is revoked")
        await refused(ring.admit("anything"), "auth", "unknown")

    with_store(act)


@pytest.mark.parametrize("ahead", [-DAY, -3600.0, 3600.0])
def test_a_revocation_counts_also_when_the_clock_is_set(ahead: float) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store)
        worker = Worker(store, clock)
        assert await worker.ring.admit(secret) == client
        clock.ahead = ahead
        await revoke(store, "ci", clock())
        clock.now += FRESH_SECONDS
        await refused(worker.ring.admit(secret), "auth", "'ci' is revoked")

    with_store(act)


def test_what_others_use_is_counted_and_a_minute_ends_also_when_the_clock_is_set_back() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, requests_per_minute=3)
        worker, other = Worker(store, clock), Worker(store, clock)
        for each in (worker, other):
            await each.ring.admit(secret)
        for _ in range(3):
            await worker.use(client)
        await refused(worker.use(client), "rate_limit", "3 requests per minute")
        clock.ahead = -3600.0
        for _ in range(3):
            await worker.use(client)
        await worker.meter.flush()
        clock.now += READ_SECONDS
        await other.meter.flush()
        await refused(other.use(client), "rate_limit", "3 requests per minute")

    with_store(act)


def test_a_revocation_counts_in_every_process_within_five_seconds() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        rings = [KeyRing(store, clock=clock, monotonic=clock.monotonic) for _ in range(3)]
        for number, ring in enumerate(rings):
            await ring.admit(secret)
            clock.now += number * 0.7
        await revoke(store, "ci", clock.now)
        clock.now += 4.9
        for ring in rings:
            await refused(ring.admit(secret), "auth", "revoked")

    with_store(act)
    assert FRESH_SECONDS < 5


def test_a_new_key_is_known_at_once_and_wrong_ones_do_not_make_the_store_work() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        await added(store, "first")
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await refused(ring.admit("wrong"), "auth")
        client, secret = await added(store, "second")
        clock.now += UNKNOWN_KEY_SECONDS
        assert await ring.admit(secret) == client
        assert ring.is_shared
        before = store.scans
        for number in range(100):
            await refused(ring.admit(f"wrong {number}"), "auth")
        assert store.scans == before
        for _ in range(100):
            await ring.admit(secret)
        assert store.scans == before

    with_store(act)


def test_a_key_ends_at_its_time() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, expires=NOW + 10)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        clock.now = NOW + 9.9
        assert await ring.admit(secret) == client
        clock.now = NOW + 10
        await refused(ring.admit(secret), "auth", "'ci' is expired")

    with_store(act)


def test_keys_of_the_configuration_count_beside_those_of_the_store() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        ring = KeyRing(store, [digest("configured")], clock=clock, monotonic=clock.monotonic)
        assert await ring.admit("configured") == digest("configured")
        assert ring.key_of(digest("configured")) is None
        assert await ring.admit(secret)
        assert ring.is_shared
        alone = KeyRing(None, [digest("configured")], clock=clock, monotonic=clock.monotonic)
        await refused(alone.admit(secret), "auth", "unknown")
        assert not alone.is_shared

    with_store(act)


def test_where_the_configuration_says_store_a_key_is_demanded_also_while_there_is_none() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        ring = KeyRing(store, ["store"], clock=clock, monotonic=clock.monotonic)
        assert ring.is_demanded
        for wrong in ("", "store", digest("store")):
            await refused(ring.admit(wrong), "auth")
        _, secret = await added(store)
        clock.now += FRESH_SECONDS
        assert await ring.admit(secret)

    with_store(act)


def test_while_the_store_fails_the_last_keys_known_count_and_that_is_logged_once() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store)
        worker = Worker(store, clock)
        await worker.ring.start()
        store.is_failing = True
        for _ in range(3):
            clock.now += FRESH_SECONDS
            assert await worker.ring.admit(secret) == client
        assert len(worker.logged) == 1
        assert "on fire" in worker.logged[0]
        store.is_failing = False
        await revoke(store, "ci", clock.now)
        clock.now += FRESH_SECONDS
        await refused(worker.ring.admit(secret), "auth", "revoked")
        store.is_failing = True
        with pytest.raises(StoreError):
            await KeyRing(store, clock=clock, monotonic=clock.monotonic).start()

    with_store(act)


def test_many_who_ask_at_once_make_one_look_into_the_store() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await asyncio.gather(*(ring.admit(secret) for _ in range(50)))
        assert store.scans == 2, "one page, and the end"

    with_store(act)

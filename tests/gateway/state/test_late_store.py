"""Rows that the store did not take wait in memory, bounded, and are written when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolglot.gateway.state.late_store import ROW_BYTES, LateStore
from toolglot.store import SqliteStore, StoreConflictError, StoreError

LATER = 4e9


class BrokenStore(SqliteStore):
    """A store that fails while a test says so."""

    is_broken = False
    keeps = 0

    def _check(self) -> None:
        if self.is_broken:
            raise StoreError("the server cannot be reached")

    async def keep(self, *values: Any, **named: Any) -> None:
        self.keeps += 1
        self._check()
        await super().keep(*values, **named)

    async def find(self, *values: Any, **named: Any) -> dict[str, bytes]:
        self._check()
        return await super().find(*values, **named)

    async def remove(self, *values: Any, **named: Any) -> int:
        self._check()
        return await super().remove(*values, **named)


def with_late(act: Callable[[BrokenStore, LateStore], Awaitable[None]], **limits: Any) -> list[str]:
    """What the operator was told."""
    told: list[str] = []

    async def run() -> None:
        store = BrokenStore(":memory:")
        try:
            await act(
                store, LateStore(store, report=told.append, failed=lambda error: told.append(str(error)), **limits)
            )
        finally:
            await store.close()

    asyncio.run(run())
    return told


def test_rows_wait_while_the_store_fails_are_served_and_are_written_when_it_is_back() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        await late.keep("responses", "ann", {"old": b"0"}, until=LATER)
        store.is_broken = True
        await late.keep("responses", "ann", {"a": b"1", "b": b"2"}, until=LATER)
        await late.keep("vault", "bob", {"a": b"3"}, until=LATER)
        assert late.is_waiting("responses", "ann", "a")
        assert not late.is_waiting("responses", "ann", "old")
        assert late.is_waiting("vault", "bob")
        assert not late.is_waiting("vault", "ann")
        assert await late.find("responses", "ann", ["b", "a"]) == {"b": b"2", "a": b"1"}
        with pytest.raises(StoreError):
            await late.find("responses", "ann", ["a", "old"])
        with pytest.raises(StoreError):
            await late.find("responses", "bob", ["a"])
        assert not await late.flush()
        store.is_broken = False
        assert await store.find("responses", "ann", ["a"]) == {}
        assert await late.find("responses", "ann", ["old", "a"]) == {"old": b"0", "a": b"1"}
        assert await late.flush()
        assert late.size == 0
        assert not late.is_waiting("vault", "bob")
        assert await store.find("responses", "ann", ["a", "b"]) == {"a": b"1", "b": b"2"}
        assert await store.find("vault", "bob", ["a"]) == {"a": b"3"}
        keeps = store.keeps
        assert await late.flush()
        assert store.keeps == keeps, "what is confirmed is not written again"

    told = with_late(act)
    assert told == ["the server cannot be reached"] * 3 + ["what could not be stored during the outage is stored now"]


def test_it_writes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolglot.gateway.state.late_store.RETRY_SECONDS", 0.001)

    async def act(store: BrokenStore, late: LateStore) -> None:
        running = asyncio.create_task(late.run())
        store.is_broken = True
        await late.keep("vault", "ann", {"a": b"1"}, until=LATER)
        store.is_broken = False
        while late.size:
            await asyncio.sleep(0.001)
        assert await store.find("vault", "ann", ["a"]) == {"a": b"1"}
        running.cancel()
        await late.close()

    with_late(act)


def test_no_more_waits_than_is_allowed_and_none_of_a_call_that_is_too_large() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        store.is_broken = True
        await late.keep("vault", "ann", {"a": bytes(500)}, until=LATER)
        with pytest.raises(StoreError):
            await late.keep("vault", "ann", {"b": bytes(10), "c": bytes(1000)}, until=LATER)
        assert not late.is_waiting("vault", "ann", "b")
        await late.keep("vault", "ann", {"a": bytes(510)}, until=LATER)  # it takes the place of the first
        assert late.size == 510 + len("vaultanna") + ROW_BYTES

    with_late(act, max_bytes=1000)


def test_a_row_that_is_removed_is_not_written_later() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        store.is_broken = True
        await late.keep("responses", "ann", {"a": b"1", "b": b"2"}, until=LATER)
        with pytest.raises(StoreError):
            await late.remove("responses", "ann", ["a"])
        assert late.is_waiting("responses", "ann", "a"), "the client was told that it is still there"
        store.is_broken = False
        assert await late.remove("responses", "ann", ["a"]) == 1
        assert await late.flush()
        assert await store.find("responses", "ann", ["a", "b"]) == {"b": b"2"}

    with_late(act)


def test_what_has_expired_is_neither_served_nor_written() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        store.is_broken = True
        await late.keep("vault", "ann", {"a": b"1"}, until=1.0)
        store.is_broken = False
        assert await late.find("vault", "ann", ["a"]) == {}
        assert await late.flush()
        assert late.size == 0

    with_late(act)


def test_what_the_store_must_decide_does_not_wait() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        await late.keep("sessions", "", {"a": b"1"}, until=LATER, unless=["a"])
        with pytest.raises(StoreConflictError):
            await late.keep("sessions", "", {"a": b"2"}, until=LATER, unless=["a"])
        store.is_broken = True
        with pytest.raises(StoreError):
            await late.keep("sessions", "", {"b": b"2"}, until=LATER, unless=["b"])
        assert late.size == 0

    with_late(act)


def test_a_row_that_the_store_never_takes_is_reported_and_does_not_hold_up_others() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        store.is_broken = True
        await late.keep("vault", "ann", {"x" * 1000: b"1"}, until=LATER)
        await late.keep("vault", "bob", {"b": b"2"}, until=LATER)
        store.is_broken = False
        assert await late.flush()
        assert await store.find("vault", "bob", ["b"]) == {"b": b"2"}

    assert any("cannot store 1 rows" in text for text in with_late(act))


def test_what_still_waits_at_the_end_is_reported_as_lost() -> None:
    async def act(store: BrokenStore, late: LateStore) -> None:
        store.is_broken = True
        await late.keep("vault", "ann", {"a": b"1", "b": b"2"}, until=LATER)
        await late.close()

    assert with_late(act)[-1] == "cannot store what was kept in memory during the outage: 2 rows are lost"


class SlowStore(BrokenStore):
    """A store that takes its time to write, on another connection than it removes."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.has_begun = asyncio.Event()

    async def keep(self, *values: Any, **named: Any) -> None:
        self._check()
        self.has_begun.set()
        await self.may_write.wait()
        await super().keep(*values, **named)


def test_a_row_that_is_removed_while_it_is_written_stays_removed() -> None:
    async def run() -> None:
        store = SlowStore(":memory:")
        late = LateStore(store)
        try:
            store.is_broken = True
            await late.keep("responses", "ann", {"a": b"1"}, until=LATER)
            store.is_broken = False
            store.may_write.clear()
            writing = asyncio.create_task(late.flush())
            await store.has_begun.wait()
            removing = asyncio.create_task(late.remove("responses", "ann", ["a"]))
            await asyncio.sleep(0)
            store.may_write.set()
            assert await writing
            assert await removing == 1
            assert await late.find("responses", "ann", ["a"]) == {}
        finally:
            await store.close()

    asyncio.run(run())

"""Holds of every store: what several holders hold of the same thing."""

from __future__ import annotations

import asyncio

import pytest

from support.store.opened_stores import LATER, NOW, Use
from toolglot.errors import InputError
from toolglot.store import Store


def test_each_holder_sees_what_all_of_them_hold(use: Use) -> None:
    async def act(store: Store) -> None:
        assert await store.hold("k", "ann", "one", {"tokens": 5, "spend": 0.5}, until=LATER) == {
            "tokens": 5,
            "spend": 0.5,
        }
        assert await store.hold("k", "ann", "two", {"tokens": 7}, until=LATER) == {"tokens": 12, "spend": 0.5}
        assert await store.hold("k", "ann", "one", {"tokens": 1}, until=LATER) == {"tokens": 8}, "it replaces"
        assert await store.hold("k", "ann", "one", {"tokens": 1}, until=LATER) == {"tokens": 8}, "a repeat is harmless"
        assert await store.hold("k", "bob", "one", {"tokens": 2}, until=LATER) == {"tokens": 2}
        assert await store.hold("other", "ann", "one", {"tokens": 3}, until=LATER) == {"tokens": 3}
        assert await store.hold("k", "ann", "two", {}, until=LATER) == {"tokens": 1}, "it is released"
        assert await store.hold("k", "ann", "one", {}, until=LATER) == {}
        assert await store.hold("k", "ann", "nobody", {}, until=LATER) == {}

    use(act)


def test_what_has_expired_is_not_held_and_is_pruned(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.hold("k", "ann", "one", {"tokens": 5}, until=NOW + 10)
        await store.hold("k", "ann", "two", {"tokens": 7}, until=LATER)
        use.clock.now = NOW + 10
        assert await store.hold("k", "ann", "three", {}, until=LATER) == {"tokens": 7}
        use.clock.now = LATER
        await store.prune(use.clock.now)
        assert await store.hold("k", "ann", "three", {"tokens": 1}, until=LATER + 1) == {"tokens": 1}

    use(act)


def test_holds_claims_totals_and_rows_do_not_see_each_other(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("k", "ann", {"one": b"row"}, until=LATER)
        await store.claim("k", "ann", "one", "holder", until=LATER)
        await store.add("k", "ann", "one", {"tokens": 1}, until=LATER)
        assert await store.hold("k", "ann", "one", {"tokens": 5}, until=LATER) == {"tokens": 5}
        assert await store.claim("k", "ann", "one", "other", until=LATER) == "holder"
        assert await store.add("k", "ann", "one", {"tokens": 1}, until=LATER) == {"tokens": 2}
        assert await store.find("k", "ann", ["one"]) == {"one": b"row"}

    use(act)


def test_of_many_that_hold_at_once_each_sees_those_before_it(use: Use) -> None:
    async def act(store: Store) -> None:
        seen = await asyncio.gather(*(store.hold("k", "ann", f"h{n}", {"tokens": 1}, until=LATER) for n in range(40)))
        assert sorted(each["tokens"] for each in seen) == [*range(1, 41)]

    use(act)


def test_wrong_holds_are_refused(use: Use) -> None:
    async def act(store: Store) -> None:
        for holder, amounts in (("", {"a": 1.0}), ("h\0", {"a": 1.0}), ("h", {"a": float("nan")}), ("h", {"a": 1e16})):
            with pytest.raises(InputError):
                await store.hold("k", "ann", holder, amounts, until=LATER)
        with pytest.raises(InputError):
            await store.hold("k", "ann", "h", {"a": 1.0}, until=float("nan"))

    use(act)

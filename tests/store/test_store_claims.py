"""Keeping a row unless another is there, and claiming a name: what every store does when several want the same."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from support.store.opened_stores import LATER, NOW, Use
from toolglot import InputError
from toolglot.store import Store, StoreConflictError, StoreError, StoreLimits

SMALL = StoreLimits(max_value_bytes=100, max_name_bytes=20, max_rows=5, max_call_bytes=250)


# --- unless -----------------------------------------------------------------------------------------


def test_nothing_is_kept_when_one_of_the_keys_is_there(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("turns", "s", {"1": b"one"}, until=math.inf, unless=["1"])
        with pytest.raises(StoreConflictError, match="'1' already exists"):
            await store.keep("turns", "s", {"1": b"other", "2": b"two"}, until=math.inf, unless=["2", "1"])
        assert await store.find("turns", "s", ["1", "2"]) == {"1": b"one"}
        await store.keep("turns", "s", {"2": b"two"}, until=math.inf, unless=["2", "3"])
        await store.keep("turns", "s", {"1": b"again"}, until=math.inf, unless=["3"])
        assert await store.find("turns", "s", ["1", "2"]) == {"1": b"again", "2": b"two"}

    use(act)


def test_a_conflict_is_a_store_error() -> None:
    assert issubclass(StoreConflictError, StoreError)


def test_what_is_another_s_past_its_time_removed_or_a_total_is_no_conflict(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("turns", "other", {"1": b""}, until=LATER)
        await store.keep("other", "s", {"1": b""}, until=LATER)
        await store.add("turns", "s", "1", {"n": 1}, until=LATER)
        await store.claim("turns", "s", "1", "me", until=LATER)
        await store.keep("turns", "s", {"1": b"first"}, until=NOW + 1, unless=["1"])
        use.clock.now = NOW + 1
        await store.keep("turns", "s", {"1": b"second"}, until=LATER, unless=["1"])
        assert await store.remove("turns", "s", ["1"]) == 1
        await store.keep("turns", "s", {"1": b"third"}, until=LATER, unless=["1"])
        assert await store.find("turns", "s", ["1"]) == {"1": b"third"}

    use(act)


def test_of_many_that_keep_the_same_key_at_once_one_does(use: Use) -> None:
    async def act(store: Store) -> None:
        asks = [store.keep("t", "s", {"1": b"%d" % n}, until=LATER, unless=["1"]) for n in range(50)]
        ended = await asyncio.gather(*asks, return_exceptions=True)
        kept = [number for number, one in enumerate(ended) if one is None]
        assert len(kept) == 1
        assert {type(one) for one in ended} == {type(None), StoreConflictError}
        assert await store.find("t", "s", ["1"]) == {"1": b"%d" % kept[0]}

    use(act)


def test_a_conflict_is_one_s_own(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("t", "s", {"there": b""}, until=LATER)
        unless = [["there"] if n % 3 == 0 else [] for n in range(30)]
        asks = [store.keep("t", "s", {str(n): b"x"}, until=LATER, unless=unless[n]) for n in range(30)]
        ended = await asyncio.gather(*asks, return_exceptions=True)
        assert [type(one) is StoreConflictError for one in ended] == [bool(keys) for keys in unless]
        assert list(await store.find("t", "s", list(map(str, range(30))))) == [str(n) for n in range(30) if n % 3]

    use(act)


def test_a_row_kept_twice_while_both_wait_is_the_later_one(use: Use) -> None:
    async def act(store: Store) -> None:
        await asyncio.gather(*(store.keep("t", "s", {"1": b"%d" % n, "2": b""}, until=LATER) for n in range(20)))
        assert await store.find("t", "s", ["1"]) == {"1": b"19"}

    use(act)


@pytest.mark.parametrize(
    ("unless", "path"),
    [("ab", "$.unless"), (["a"] * 6, "$.unless"), (["a", "\0"], "$.unless[1]"), ([1], "$.unless[0]")],
)
def test_keys_that_cannot_be_there_are_refused(use: Use, unless: Any, path: str) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError) as refused:
            await store.keep("v", "a", {"k": b"1"}, until=LATER, unless=unless)
        assert refused.value.path == path
        assert await store.find("v", "a", ["k"]) == {}

    use(act, SMALL)


# --- claims -----------------------------------------------------------------------------------------


def test_a_name_has_one_holder_until_his_time_or_until_he_gives_it_back(use: Use) -> None:
    async def act(store: Store) -> None:
        assert await store.claim("s", "", "1", "me", until=NOW + 10) == "me"
        assert await store.claim("s", "", "1", "you", until=NOW + 99) == "me"
        assert await store.claim("s", "", "1", "you", until=NOW) == "me", "no claim is released by another holder"
        assert await store.claim("s", "", "1", "me", until=NOW + 20) == "me"
        use.clock.now = NOW + 15
        assert await store.claim("s", "", "1", "you", until=NOW + 99) == "me"
        use.clock.now = NOW + 20
        assert await store.claim("s", "", "1", "you", until=NOW + 99) == "you"
        assert await store.claim("s", "", "1", "me", until=NOW + 99) == "you"
        assert await store.claim("s", "", "1", "you", until=0) == ""
        assert await store.claim("s", "", "1", "nobody", until=0) == ""
        assert await store.claim("s", "", "1", "me", until=math.inf) == "me"

    use(act)


def test_claims_are_by_kind_client_and_key_and_seen_by_nothing_else(use: Use) -> None:
    async def act(store: Store) -> None:
        names = [("s", "a", "1"), ("s", "a", "2"), ("s", "b", "1"), ("t", "a", "1")]
        for number, name in enumerate(names):
            assert await store.claim(*name, f"holder {number}", until=LATER) == f"holder {number}"
        for number, name in enumerate(names):
            assert await store.claim(*name, "late", until=LATER) == f"holder {number}"
        assert await store.scan("s", limit=9) == []
        assert await store.find("s", "a", ["1"]) == {}
        assert await store.remove("s", "a", ["1"]) == 0
        assert await store.add("s", "a", "1", {"n": 1}, until=LATER) == {"n": 1}
        assert await store.claim("s", "a", "1", "late", until=LATER) == "holder 0"

    use(act)


def test_prune_takes_claims_that_ended_no_others_and_counts_none(use: Use) -> None:
    async def act(store: Store) -> None:
        for number in range(3):
            await store.claim("s", "", str(number), "me", until=NOW + 1 + number)
        assert await store.prune(NOW + 2) == 0
        use.clock.now = 0
        held = [await store.claim("s", "", str(number), "you", until=LATER) for number in range(3)]
        assert held == ["you", "you", "me"]

    use(act, StoreLimits(max_bytes=1))


def test_of_many_that_claim_at_once_one_holds_and_all_hear_who(use: Use) -> None:
    async def act(store: Store) -> None:
        holders = await asyncio.gather(*(store.claim("s", "", "1", f"holder {n}", until=LATER) for n in range(50)))
        assert len(set(holders)) == 1

    use(act)


def test_a_claim_is_there_when_the_store_is_opened_again(use_lasting: Use) -> None:
    holders: list[str] = []

    async def act(store: Store) -> None:
        holders.append(await store.claim("s", "", "1", f"holder {len(holders)}", until=LATER))

    for _ in range(2):
        use_lasting(act)
    assert holders == ["holder 0"] * 2


@pytest.mark.parametrize(
    ("name", "holder", "until", "path"),
    [
        (("s" * 21, "", "1"), "me", LATER, "$.kind"),
        (("s", "\0", "1"), "me", LATER, "$.client"),
        (("s", "", "\ud800"), "me", LATER, "$.key"),
        (("s", "", "1"), "", LATER, "$.holder"),
        (("s", "", "1"), "m" * 21, LATER, "$.holder"),
        (("s", "", "1"), 7, LATER, "$.holder"),
        (("s", "", "1"), "me", math.nan, "$.until"),
    ],
)
def test_what_cannot_be_claimed_is_refused(use: Use, name: Any, holder: Any, until: float, path: str) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError) as refused:
            await store.claim(name[0], name[1], name[2], holder, until=until)
        assert refused.value.path == path
        assert await store.claim("s", "", "1", "free", until=LATER) == "free"

    use(act, SMALL)

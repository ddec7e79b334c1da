"""What every store does, whatever it is made of. A further store is a further line of `store_use.STORES`."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.store.opened_stores import LATER, NOW, STORES, Clock, Use
from toolglot import InputError, LimitError
from toolglot.store import Row, Store, StoreConflictError, StoreError, StoreLimits, open_store
from toolglot.store.interface import ONCE_SECONDS

SMALL = StoreLimits(max_value_bytes=100, max_name_bytes=20, max_rows=5, max_call_bytes=250)


# --- keep, find, remove -----------------------------------------------------------------------------


def test_what_is_stored_is_found_in_the_order_of_the_keys_and_what_is_not_is_left_out(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("vault", "a", {"one": b"1", "two": b"\0\xff" * 5000, "": b""}, until=LATER)
        found = await store.find("vault", "a", ["two", "none", "one", "two", ""])
        assert found == {"two": b"\0\xff" * 5000, "one": b"1", "": b""}
        assert list(found) == ["two", "one", ""]
        assert await store.find("vault", "a", []) == {}
        assert store.warnings == ()

    use(act)


def test_a_row_kept_again_is_replaced_with_its_time(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("vault", "a", {"one": b"old", "two": b"2"}, until=NOW + 10)
        await store.keep("vault", "a", {"one": b"new"}, until=NOW + 20)
        assert await store.find("vault", "a", ["one", "two"]) == {"one": b"new", "two": b"2"}
        use.clock.now = NOW + 15
        assert await store.find("vault", "a", ["one", "two"]) == {"one": b"new"}
        await store.keep("vault", "a", {"one": b"gone"}, until=NOW)
        assert await store.find("vault", "a", ["one"]) == {}

    use(act)


def test_removed_rows_are_gone_and_counted_once(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("vault", "a", {"one": b"1", "two": b"2", "three": b"3"}, until=LATER)
        assert await store.remove("vault", "a", ["one", "two", "one", "none"]) == 2
        assert await store.remove("vault", "a", ["one"]) == 0
        assert await store.remove("vault", "a", []) == 0
        assert await store.find("vault", "a", ["one", "two", "three"]) == {"three": b"3"}

    use(act)


def test_neither_another_client_nor_another_kind_sees_a_row(use: Use) -> None:
    async def act(store: Store) -> None:
        owners = [("vault", "a"), ("vault", "b"), ("responses", "a"), ("a", "vault"), ("vaul", "ta"), ("VAULT", "a")]
        for number, (kind, client) in enumerate(owners):
            assert await store.find(kind, client, ["key"]) == {}
            assert await store.remove(kind, client, ["key"]) == 0
            await store.keep(kind, client, {"key": b"%d" % number}, until=LATER)
        for number, (kind, client) in enumerate(owners):
            assert await store.find(kind, client, ["key", "KEY", "key "]) == {"key": b"%d" % number}
        assert await store.remove("vault", "a", ["key"]) == 1
        assert [len(await store.find(kind, client, ["key"])) for kind, client in owners] == [0, 1, 1, 1, 1, 1]

    use(act)


@pytest.mark.parametrize("key", ["é", "e\u0301", "%", "_", "'", '"; DROP TABLE kept; --', "😀", " ", "\n", "a" * 512])
def test_a_key_is_taken_letter_by_letter(use: Use, key: str) -> None:
    async def act(store: Store) -> None:
        await store.keep("vault", "a", {key: b"1", "x": b"2"}, until=LATER)
        assert await store.find("vault", "a", [key, "é", "a"]) == {key: b"1"}
        assert await store.remove("vault", "a", [key]) == 1
        assert await store.find("vault", "a", ["x"]) == {"x": b"2"}

    use(act)


def test_a_mapping_changed_while_it_is_kept_is_kept_as_it_was(use: Use) -> None:
    async def act(store: Store) -> None:
        rows = {"one": b"1"}
        kept = asyncio.ensure_future(store.keep("vault", "a", rows, until=LATER))
        await asyncio.sleep(0)
        rows["one"] = b"2"
        rows["two"] = b"2"
        await kept
        assert await store.find("vault", "a", ["one", "two"]) == {"one": b"1"}

    use(act)


# --- add and scan -----------------------------------------------------------------------------------


def test_additions_are_totalled_by_name_and_by_key(use: Use) -> None:
    async def act(store: Store) -> None:
        assert await store.add("usage", "a", "day", {"tokens": 3, "cost": 0.5}, until=LATER) == {
            "tokens": 3,
            "cost": 0.5,
        }
        assert await store.add("usage", "a", "day", {"tokens": 4, "new": -1}, until=LATER) == {
            "tokens": 7,
            "cost": 0.5,
            "new": -1,
        }
        assert await store.add("usage", "b", "day", {"tokens": 1}, until=LATER) == {"tokens": 1}
        assert await store.add("usage", "a", "night", {"tokens": 1}, until=LATER) == {"tokens": 1}
        assert await store.add("spent", "a", "day", {}, until=LATER) == {}
        assert await store.find("usage", "a", ["day"]) == {}
        assert await store.remove("usage", "a", ["day"]) == 0

    use(act)


def test_a_total_lasts_until_the_latest_time_and_begins_anew_after_it(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.add("usage", "a", "day", {"n": 1}, until=NOW + 10)
        await store.add("usage", "a", "day", {"n": 1}, until=NOW + 5)
        use.clock.now = NOW + 9
        assert [row.amounts for row in await store.scan("usage", limit=5)] == [{"n": 2}]
        use.clock.now = NOW + 10
        assert await store.scan("usage", limit=5) == []
        assert await store.add("usage", "a", "day", {"n": 5}, until=NOW + 20) == {"n": 5}
        await store.prune(NOW + 20)
        use.clock.now = 0
        assert await store.scan("usage", limit=5) == []

    use(act)


def test_an_addition_that_its_writer_repeats_counts_once(use: Use) -> None:
    async def act(store: Store) -> None:
        async def add(key: str, amount: float, once: tuple[str, str] | None) -> dict[str, float]:
            return await store.add("u", "a", key, {"n": amount}, until=LATER + 10 * ONCE_SECONDS, once=once)

        assert await add("k", 1, ("w", "1")) == {"n": 1}
        assert await add("k", 1, ("w", "1")) == {"n": 1}
        assert await add("k", 1, ("other writer", "1")) == {"n": 2}
        assert await add("k", 1, ("w", "2")) == {"n": 3}
        assert await add("k", 1, ("w", "2")) == {"n": 3}
        assert await add("other key", 1, ("w", "2")) == {"n": 1}
        assert await add("k", 1, None) == {"n": 4}
        twice = await asyncio.gather(*(add("k", 1, ("w", "3")) for _ in range(5)))
        assert twice == [{"n": 5}] * 5
        use.clock.now += ONCE_SECONDS
        await store.prune(use.clock.now)
        assert await add("k", 1, ("w", "3")) == {"n": 6}, "after a day it is not known any more"
        for once, path in ((("", "1"), "$.once[0]"), (("w", ""), "$.once[1]")):
            with pytest.raises(InputError) as refused:
                await add("k", 1, once)
            assert refused.value.path == path

    use(act)


def test_many_additions_at_once_lose_nothing(use: Use) -> None:
    async def act(store: Store) -> None:
        totals = await asyncio.gather(*(store.add("u", "a", "k", {"n": 1}, until=LATER) for _ in range(200)))
        assert sorted(total["n"] for total in totals) == list(range(1, 201))

    use(act)


@pytest.mark.parametrize(
    ("key", "amounts", "path"),
    [
        ("k" * 21, {"n": 1}, "$.key"),
        ("k", {"n" * 21: 1}, "$.amounts[0]"),
        ("k", {"n": 1, "m": math.nan}, "$.amounts[1]"),
        ("k", {"n": math.inf}, "$.amounts[0]"),
        ("k", {"n": True}, "$.amounts[0]"),
        ("k", {"n": "1"}, "$.amounts[0]"),
        ("k", {"n": 10**400}, "$.amounts[0]"),
        ("k", dict.fromkeys("abcdef", 1), "$.amounts"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(use: Use, key: str, amounts: Any, path: str) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError) as refused:
            await store.add("v", "a", key, amounts, until=LATER)
        assert refused.value.path == path
        assert await store.scan("v", limit=5) == []

    use(act, SMALL)


def test_a_scan_goes_through_all_rows_of_a_kind_in_order_page_by_page(use: Use) -> None:
    async def act(store: Store) -> None:
        names = [(client, key) for client in ("", "a", "b", "ä") for key in ("", "1", "10", "2", "é", "😀")]
        for client, key in reversed(names):
            await store.keep("k", client, {key: f"{client}|{key}".encode()}, until=LATER)
        await store.keep("other", "a", {"1": b""}, until=LATER)
        for limit in (1, 5, 24, 100):
            found, after = [], ""
            while rows := await store.scan("k", after=after, limit=limit):
                assert len(rows) <= limit
                found += rows
                after = rows[-1].cursor
            assert [(row.client, row.key) for row in found] == names
            assert all(row.value == f"{row.client}|{row.key}".encode() and row.amounts == {} for row in found)

    use(act)


def test_a_scan_may_be_of_one_client_and_of_keys_that_begin_so(use: Use) -> None:
    async def act(store: Store) -> None:
        for client in "abc":
            await store.keep("k", client, {"1": b"", "10": b"", "2": b"", "1%": b"", "1_": b""}, until=LATER)
        own = await store.scan("k", client="b", prefix="1", limit=100)
        assert [(row.client, row.key) for row in own] == [("b", "1"), ("b", "1%"), ("b", "10"), ("b", "1_")]
        assert [row.key for row in await store.scan("k", client="b", prefix="1%", limit=9)] == ["1%"]
        assert [row.client for row in await store.scan("k", prefix="2", limit=9)] == ["a", "b", "c"]
        after_a, after_c = Row("a", "2").cursor, Row("c", "2").cursor
        assert len(await store.scan("k", client="b", after=after_a, limit=100)) == 5
        assert await store.scan("k", client="b", after=after_c, limit=100) == []
        assert await store.scan("k", client="", limit=100) == []

    use(act)


def test_bytes_and_totals_of_one_name_are_one_row(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("k", "a", {"1": b"one", "3": b"three"}, until=LATER)
        await store.add("k", "a", "1", {"n": 1}, until=LATER)
        await store.add("k", "a", "2", {"n": 2}, until=LATER)
        rows = [Row("a", "1", b"one", {"n": 1}), Row("a", "2", None, {"n": 2}), Row("a", "3", b"three")]
        assert await store.scan("k", limit=9) == rows
        assert await store.scan("k", limit=2) == rows[:2]
        assert await store.scan("k", after=rows[0].cursor, limit=1) == rows[1:2]

    use(act)


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"limit": 0}, "$.limit"),
        ({"limit": True}, "$.limit"),
        ({"limit": 6}, "$.limit"),
        ({"limit": 1, "after": "no place"}, "$.after"),
        ({"limit": 1, "after": 7}, "$.after"),
        ({"limit": 1, "after": "a\0b\0c"}, "$.after"),
        ({"limit": 1, "prefix": "k" * 21}, "$.prefix"),
        ({"limit": 1, "client": "k" * 21}, "$.client"),
    ],
)
def test_what_cannot_be_scanned_is_refused(use: Use, wanted: Any, path: str) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError) as refused:
            await store.scan("k", **wanted)
        assert refused.value.path == path

    use(act, SMALL)


def test_no_more_is_scanned_in_one_call_than_is_allowed(use: Use) -> None:
    async def act(store: Store) -> None:
        for key in "abc":
            await store.keep("v", "a", {key: b"x" * 100}, until=LATER)
        with pytest.raises(LimitError, match="max_call_bytes"):
            await store.scan("v", limit=5)
        assert len(await store.scan("v", limit=2)) == 2

    use(act, SMALL)


def test_totals_are_there_when_the_store_is_opened_again(use_lasting: Use) -> None:
    totals = []

    async def act(store: Store) -> None:
        totals.append(await store.add("u", "a", "k", {"n": 1}, until=LATER))

    for _ in range(3):
        use_lasting(act)
    assert totals == [{"n": 1}, {"n": 2}, {"n": 3}]


# --- time -------------------------------------------------------------------------------------------


def test_a_row_is_found_until_its_time_and_not_from_then_on(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("vault", "a", {"one": b"1"}, until=NOW + 1)
        await store.keep("vault", "a", {"for ever": b"2"}, until=math.inf)
        use.clock.now = NOW + 0.999
        assert len(await store.find("vault", "a", ["one", "for ever"])) == 2
        use.clock.now = NOW + 1
        assert await store.find("vault", "a", ["one", "for ever"]) == {"for ever": b"2"}
        assert await store.remove("vault", "a", ["one"]) == 0

    use(act)


def test_prune_takes_what_is_past_its_time_and_nothing_else(use: Use) -> None:
    async def act(store: Store) -> None:
        for number in range(4):
            await store.keep("vault", str(number), {"one": b"1"}, until=NOW + number)
        await store.prune(NOW + 1)
        use.clock.now = 0
        assert [len(await store.find("vault", str(number), ["one"])) for number in range(4)] == [0, 0, 1, 1]

    use(act)


def test_prune_takes_the_oldest_when_there_is_too_much_and_a_row_kept_again_is_young(use: Use) -> None:
    async def act(store: Store) -> None:
        for number in range(10):
            await store.keep("vault", "a", {str(number): b"x" * 1000}, until=LATER)
        await store.keep("vault", "a", {"0": b"y" * 1000}, until=LATER)
        await store.prune(NOW)
        assert list(await store.find("vault", "a", list("0123456789"))) == list("06789")
        await store.prune(NOW)
        assert list(await store.find("vault", "a", list("0123456789"))) == list("06789")

    use(act, StoreLimits(max_bytes=5100))


def test_what_is_kept_for_ever_and_totals_are_never_too_much_and_nothing_goes_in_vain(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.keep("keys", "", {"k": b"x" * 1500}, until=math.inf)
        await store.add("usage", "a", "day", {"n": 1}, until=LATER)
        for number in range(5):
            await store.keep("vault", "a", {str(number): b"x" * 1000}, until=LATER)
        assert await store.prune(NOW) == 5
        await store.keep("vault", "a", {"last": b"x"}, until=LATER)
        await store.keep("keys", "", {"m": b"x" * 1500}, until=math.inf)
        assert await store.prune(NOW) == 0, "what is kept for ever is too much by itself"
        assert list(await store.find("keys", "", ["k", "m"])) == ["k", "m"]
        await store.keep("keys", "", {"m": b"x" * 1500}, until=LATER)
        assert await store.prune(NOW) == 2, "the last one, and what is no more kept for ever"
        assert await store.add("usage", "a", "day", {"n": 1}, until=LATER) == {"n": 2}

    use(act, StoreLimits(max_bytes=2000))


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "client", "rows", "until", "path"),
    [
        ("v" * 21, "a", {"k": b""}, LATER, "$.kind"),
        ("v", "ä" * 11, {"k": b""}, LATER, "$.client"),
        ("v", "a\0", {"k": b""}, LATER, "$.client"),
        ("v", "a", {"k": b"", "k" * 21: b""}, LATER, "$.rows[1]"),
        ("v", "a", {"\ud800": b""}, LATER, "$.rows[0]"),
        ("v", "a", {3: b""}, LATER, "$.rows[0]"),
        ("v", "a", {"k": b"x" * 101}, LATER, "$.rows[0]"),
        ("v", "a", {"k": "text"}, LATER, "$.rows[0]"),
        ("v", "a", {str(n): b"" for n in range(6)}, LATER, "$.rows"),
        ("v", "a", {str(n): b"x" * 90 for n in range(3)}, LATER, "$.rows"),
        ("v", "a", {"k": b""}, math.nan, "$.until"),
        ("v", "a", {"k": b""}, "1", "$.until"),
        ("v", "a", {"k": b""}, None, "$.until"),
        ("v", "a", {"k": b""}, 10**400, "$.until"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(
    use: Use, kind: str, client: str, rows: Any, until: Any, path: str
) -> None:
    async def act(store: Store) -> None:
        await store.keep("v", "a", {"k": b"before"}, until=LATER)
        with pytest.raises(InputError) as refused:
            await store.keep(kind, client, rows, until=until)
        assert refused.value.path == path
        assert await store.find("v", "a", ["k"]) == {"k": b"before"}

    use(act, SMALL)


@pytest.mark.parametrize(
    ("keys", "path"),
    [(["a"] * 6, "$.keys"), (["a", "a" * 21], "$.keys[1]"), ("ab", "$.keys"), ([b"a"], "$.keys[0]")],
)
def test_keys_that_cannot_be_are_refused(use: Use, keys: Any, path: str) -> None:
    async def act(store: Store) -> None:
        for ask in (store.find, store.remove):
            with pytest.raises(InputError) as refused:
                await ask("v", "a", keys)
            assert refused.value.path == path

    use(act, SMALL)


def test_no_more_is_found_in_one_call_than_is_allowed(use: Use) -> None:
    async def act(store: Store) -> None:
        for key in "abc":
            await store.keep("v", "a", {key: b"x" * 100}, until=LATER)
        with pytest.raises(LimitError, match="max_call_bytes"):
            await store.find("v", "a", ["a", "b", "c"])
        assert len(await store.find("v", "a", ["a", "b"])) == 2

    use(act, SMALL)


def test_a_time_that_is_none_prunes_nothing(use: Use) -> None:
    async def act(store: Store) -> None:
        with pytest.raises(InputError, match="seconds since 1970"):
            await store.prune(math.nan)

    use(act)


@pytest.mark.parametrize("limit", ["max_bytes", "max_value_bytes", "max_name_bytes", "max_rows", "max_waiting_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_a_limit_is_a_whole_number(limit: str, value: Any) -> None:
    with pytest.raises(InputError, match="whole number"):
        StoreLimits(**{limit: value})


# --- many at once, and the end ----------------------------------------------------------------------


def test_many_keepers_and_finders_at_once_do_not_mix_their_rows(use: Use) -> None:
    async def one(store: Store, number: int) -> None:
        client = f"client {number % 7}"
        for step in range(5):
            rows = {f"{number} {step} {part}": b"%d %d %d" % (number, step, part) for part in range(3)}
            await store.keep("vault", client, rows, until=LATER)
            assert await store.find("vault", client, list(rows)) == rows
        assert await store.remove("vault", client, [f"{number} 0 0"]) == 1

    async def act(store: Store) -> None:
        await asyncio.gather(*(one(store, number) for number in range(40)))

    use(act)


def test_who_stops_waiting_breaks_nothing(use: Use) -> None:
    async def act(store: Store) -> None:
        tasks = [asyncio.ensure_future(store.keep("v", "a", {str(n): b"x"}, until=LATER)) for n in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(one) for one in ended[1::2]} == {type(None)}
        assert {type(one) for one in ended[::2]} <= {type(None), asyncio.CancelledError}
        assert set(await store.find("v", "a", [str(n) for n in range(50)])) >= {str(n) for n in range(1, 50, 2)}

    use(act)


def test_one_store_serves_one_event_loop_after_another(use: Use) -> None:
    store = use.make(use.folder, use.clock, StoreLimits())
    asyncio.run(store.keep("v", "a", {"k": b"1"}, until=LATER))
    assert asyncio.run(store.find("v", "a", ["k"])) == {"k": b"1"}
    asyncio.run(store.close())


def test_close_waits_for_what_was_requested_before(use_lasting: Use) -> None:
    kept = []

    async def one(store: Store, key: str) -> None:
        await store.keep("v", "a", {key: b"x" * 5000}, until=LATER)
        kept.append(key)

    async def act(store: Store) -> None:
        tasks = [asyncio.ensure_future(one(store, str(n))) for n in range(100)]
        await asyncio.sleep(0)
        await asyncio.gather(store.close(), store.close())
        await asyncio.gather(*tasks)
        assert len(kept) == 100

    async def look(store: Store) -> None:
        assert len(await store.find("v", "a", kept)) == 100

    use_lasting(act)
    use_lasting(look)


def test_a_closed_store_says_so(use: Use) -> None:
    async def act(store: Store) -> None:
        await store.close()
        wanted: list[Awaitable[object]] = [
            store.keep("v", "a", {"k": b"1"}, until=LATER),
            store.find("v", "a", ["k"]),
            store.remove("v", "a", ["k"]),
            store.add("v", "a", "k", {"n": 1}, until=LATER),
            store.claim("v", "a", "k", "me", until=LATER),
            store.scan("v", limit=1),
            store.prune(NOW),
        ]
        for one in wanted:
            with pytest.raises(StoreError, match="the store is closed"):
                await one
        await store.close()

    use(act)


# --- the law ----------------------------------------------------------------------------------------

KINDS = st.sampled_from(["vault", "responses"])
CLIENTS = st.sampled_from(["a", "b"])
KEYS = st.sampled_from(["1", "2", "3"])
STEPS = st.one_of(
    st.tuples(st.just("keep"), KINDS, CLIENTS, st.dictionaries(KEYS, st.binary(max_size=3)), st.integers(-1, 4)),
    st.tuples(
        st.just("keep unless"), KINDS, CLIENTS, st.dictionaries(KEYS, st.binary(max_size=3)), st.lists(KEYS, max_size=2)
    ),
    st.tuples(st.just("claim"), KINDS, CLIENTS, KEYS, st.sampled_from(["me", "you"]), st.integers(-1, 4)),
    st.tuples(st.just("find"), KINDS, CLIENTS, st.lists(KEYS)),
    st.tuples(st.just("remove"), KINDS, CLIENTS, st.lists(KEYS)),
    st.tuples(st.just("add"), KINDS, CLIENTS, KEYS, st.integers(-3, 3), st.integers(-1, 4)),
    st.tuples(st.just("wait"), st.integers(0, 3)),
    st.tuples(st.just("prune")),
)


class Model:
    """A store as a dict."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.rows: dict[tuple[str, str, str], tuple[bytes, float]] = {}
        self.totals: dict[tuple[str, str, str], tuple[float, float]] = {}
        self.claims: dict[tuple[str, str, str], tuple[str, float]] = {}

    def keep(self, kind: str, client: str, rows: dict[str, bytes], until: float) -> None:
        self.rows.update({(kind, client, key): (value, until) for key, value in rows.items()})

    def find(self, kind: str, client: str, keys: list[str]) -> dict[str, bytes]:
        found = {key: self.rows.get((kind, client, key), (b"", 0)) for key in keys}
        return {key: value for key, (value, until) in found.items() if until > self.clock()}

    def remove(self, kind: str, client: str, keys: list[str]) -> int:
        gone = self.find(kind, client, keys)
        for key in gone:
            del self.rows[kind, client, key]
        return len(gone)

    def add(self, kind: str, client: str, key: str, amount: int, until: float) -> float:
        total, end = self.totals.get((kind, client, key), (0, 0))
        total, end = (total, end) if end > self.clock() else (0, until)
        self.totals[kind, client, key] = (total + amount, max(end, until))
        return total + amount

    def claim(self, kind: str, client: str, key: str, holder: str, until: float) -> str:
        held, end = self.claims.get((kind, client, key), ("", 0))
        if end > self.clock() and held != holder:
            return held
        self.claims[kind, client, key] = (holder, until)
        return holder if until > self.clock() else ""

    def scan(self, kind: str) -> list[Row]:
        rows = {name: Row(*name[1:], value) for name, (value, end) in self.rows.items() if end > self.clock()}
        for name, (total, end) in self.totals.items():
            if end > self.clock():
                rows[name] = Row(*name[1:], rows[name].value if name in rows else None, {"n": total})
        return [rows[name] for name in sorted(rows) if name[0] == kind]


async def same_step(store: Store, model: Model, clock: Clock, name: str, values: list[Any]) -> None:
    """One step of each, with the same answer."""
    if name == "keep":
        kind, client, rows, seconds = values
        await store.keep(kind, client, rows, until=clock() + seconds)
        model.keep(kind, client, rows, clock() + seconds)
    elif name == "keep unless":
        kind, client, rows, unless = values
        if model.find(kind, client, unless):
            with pytest.raises(StoreConflictError):
                await store.keep(kind, client, rows, until=clock() + 2, unless=unless)
        else:
            await store.keep(kind, client, rows, until=clock() + 2, unless=unless)
            model.keep(kind, client, rows, clock() + 2)
    elif name == "claim":
        kind, client, key, holder, seconds = values
        current_holder = await store.claim(kind, client, key, holder, until=clock() + seconds)
        assert current_holder == model.claim(kind, client, key, holder, clock() + seconds)
    elif name == "add":
        kind, client, key, amount, seconds = values
        totals = await store.add(kind, client, key, {"n": amount}, until=clock() + seconds)
        assert totals == {"n": model.add(kind, client, key, amount, clock() + seconds)}
    elif name == "find":
        assert list((await store.find(*values)).items()) == list(model.find(*values).items())
    elif name == "remove":
        assert await store.remove(*values) == model.remove(*values)
    elif name == "wait":
        clock.now += values[0]
    else:
        await store.prune(clock())


async def same_as_model(store: Store, clock: Clock, steps: list[Any]) -> None:
    model = Model(clock)
    for name, *values in steps:
        await same_step(store, model, clock, name, values)
    for kind in ("vault", "responses"):
        assert await store.scan(kind, limit=100) == model.scan(kind)
    for kind, client in [("vault", "a"), ("vault", "b"), ("responses", "a"), ("responses", "b")]:
        assert await store.find(kind, client, ["1", "2", "3"]) == model.find(kind, client, ["1", "2", "3"])


@pytest.mark.law
@pytest.mark.parametrize("name", STORES)
@given(steps=st.lists(STEPS, max_size=20))
def test_a_store_is_a_dict_with_owners_and_times(name: str, steps: list[Any]) -> None:
    async def act(store: Store) -> None:
        await same_as_model(store, made.clock, steps)

    with tempfile.TemporaryDirectory() as folder:
        made = Use(STORES[name], Path(folder))
        made(act)


# --- addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("postgres://me:hunter2@db:port/toolglot", "not the address of a store"),
        ("PostgreSQL://me:hun/ter2@db/toolglot", "not the address of a store"),
        ("postgres://me:hunter2@[db/toolglot", "not the address of a store"),
        ("postgres://me:hunter2@db/toolglot?schema=a-b", "expected lowercase letters, digits and _ in schema"),
        ("redis://:hunter2@cache:6379/0?prefix=", "expected lowercase letters, digits and _ in prefix"),
        ("rediss://:hunter2@cache:99999/0", "not the address of a store"),
        ("redis://:hunter2@cache /0", "not the address of a store"),
        ("redis://:hunter2@cac\nhe/0", "not the address of a store"),
        ("mysql://me:hunter2@db", "unknown kind of store 'mysql'"),
        ("", "expected the path of a file"),
        ("a\0b", "expected the path of a file"),
        ("~nobody-of-this-name/store.db", "not a path"),
    ],
)
def test_an_address_that_is_no_file_is_refused_without_its_password(where: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        open_store(where)
    assert "hunter2" not in str(refused.value)
    assert "ter2" not in str(refused.value)


@pytest.mark.parametrize("where", [":memory:", "made/for/it/store.db"])
def test_a_path_is_a_store(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def act() -> None:
        store = open_store(where, clock=lambda: NOW, limits=SMALL)
        await store.keep("v", "a", {"k": b"1"}, until=LATER)
        assert await store.find("v", "a", ["k"]) == {"k": b"1"}
        await store.close()

    asyncio.run(act())
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db")] == [where] * (where != ":memory:")

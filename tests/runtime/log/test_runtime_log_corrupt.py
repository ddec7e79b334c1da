"""A damaged log is an error with its session, its entry and what to do. What earlier releases wrote can be read."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from toolglot import InputError, LimitError, Text, ToolglotError, Turn, VersionError
from toolglot.runtime.log.entries import LAST_NUMBER, LogReset, TurnsAdded, decode, encode, row_key
from toolglot.runtime.log.rows import LogRows
from toolglot.runtime.log.search import search_sessions
from toolglot.runtime.log.session_log import SessionDamagedError, SessionLog
from toolglot.runtime.log.sessions import list_sessions, recover_session, remove_session
from toolglot.store import SqliteStore, StoreLimits

ID = "damaged"


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def on_a_session(test: Callable[[SqliteStore], Coroutine[Any, Any, None]]) -> None:
    """A session with five turns, in entries 1 to 5."""

    async def whole() -> None:
        store = SqliteStore(":memory:")
        async with await SessionLog.create(store, id=ID) as log:
            for text in ("one", "two", "three", "four", "five"):
                await log.add_turn(user(text))
        await test(store)
        await store.close()

    asyncio.run(whole())


async def put(store: SqliteStore, number: int, value: bytes) -> None:
    await store.keep("turns", ID, {row_key(number): value}, until=math.inf)


async def entry(store: SqliteStore, number: int) -> bytes:
    return (await store.find("turns", ID, [row_key(number)]))[row_key(number)]


async def refused(store: SqliteStore, kind: type[ToolglotError], *words: str) -> None:
    """Opening says what is wrong, and changes nothing."""
    before = await store.scan("turns", limit=100)
    with pytest.raises(kind) as caught:
        await SessionLog.open(store, ID)
    for word in (f"'{ID}'", *words):
        assert word in str(caught.value)
    assert await store.scan("turns", limit=100) == before


@pytest.mark.parametrize("length", [0, 1, 10, -1])
def test_a_row_that_was_cut_is_reported(length: int) -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 3, (await entry(store, 3))[:length])
        await refused(store, SessionDamagedError, "entry 3 is damaged", "backup", "recover_session")

    on_a_session(test)


@pytest.mark.parametrize(
    "value",
    [b"[]", b"3", b"{}", b'{"entry":7}', b'{"entry":"turns"}', b'{"entry":"turns","turns":[{"role":"nobody"}]}'],
)
def test_a_row_that_is_no_entry_is_reported(value: bytes) -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 3, value)
        await refused(store, SessionDamagedError, "entry 3 is not as it was written")

    on_a_session(test)


@pytest.mark.parametrize("value", [b"\xff\xfe", b'{"entry":"told","entries":"\xff"}', b"[" * 100_000])
def test_bytes_that_are_no_text_are_reported(value: bytes) -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 3, value)
        await refused(store, SessionDamagedError, "entry 3 is damaged")

    on_a_session(test)


@pytest.mark.parametrize("value", [b'{"entry":"dreamt","of":"sheep"}', b'{"entry":"switched","model":"a","mood":1}'])
def test_an_entry_of_a_newer_toolglot_is_reported_as_such(value: bytes) -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 3, value)
        await refused(store, VersionError, "entry 3", "upgrade toolglot")

    on_a_session(test)


def test_a_missing_entry_is_reported() -> None:
    async def test(store: SqliteStore) -> None:
        await store.remove("turns", ID, [row_key(3)])
        await refused(store, SessionDamagedError, "entry 3 is missing")

    on_a_session(test)


def test_missing_entries_at_the_end_are_reported() -> None:
    async def test(store: SqliteStore) -> None:
        await store.remove("turns", ID, [row_key(4), row_key(5)])
        await refused(store, SessionDamagedError, "entry 4 is missing, and all up to 5")

    on_a_session(test)


def test_a_log_that_does_not_begin_with_its_reset_is_reported() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.open(store, ID) as log:
            await log.change(lambda history: history.rewind(history.turns[1].key))
            first = log.info.first
        await put(store, first, msgspec.json.encode(TurnsAdded(turns=())))
        await refused(store, SessionDamagedError, f"entry {first} is not the reset")

    on_a_session(test)


def test_a_corrupt_row_in_the_list_is_reported_and_the_others_are_listed() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="other"):
            pass
        await store.keep("sessions", "", {ID: b"{"}, until=math.inf)
        await refused(store, SessionDamagedError, "its row in the list is damaged", "recover_session")
        page = await list_sessions(store)
        assert [info.id for info in page.sessions] == ["other"]
        assert page.damaged == (ID,)

    on_a_session(test)


def test_what_is_before_the_damage_can_be_gone_on_with() -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 4, b"{")
        info, problems = await recover_session(store, ID)
        assert (info.id != ID, info.forked_from, info.turns, len(problems)) == (True, ID, 3, 1)
        assert "entry 4" in problems[0]
        async with await SessionLog.open(store, info.id) as log:
            assert [turn.text for turn in log.history.turns] == ["one", "two", "three"]
        await refused(store, SessionDamagedError, "entry 4")

    on_a_session(test)


def test_a_session_whose_row_is_damaged_is_recovered_whole() -> None:
    async def test(store: SqliteStore) -> None:
        await store.keep("sessions", "", {ID: b"{"}, until=math.inf)
        info, problems = await recover_session(store, ID)
        assert (info.turns, len(problems)) == (5, 1)

    on_a_session(test)


def test_a_session_whose_first_entry_is_damaged_can_be_removed() -> None:
    async def test(store: SqliteStore) -> None:
        await put(store, 0, b'{"entry":"opened","holder')
        await remove_session(store, ID)
        assert (await list_sessions(store)).sessions == ()

    on_a_session(test)


def test_a_key_that_is_no_number_is_reported() -> None:
    async def test(store: SqliteStore) -> None:
        await store.keep("turns", ID, {"!": b"{}"}, until=math.inf)
        await store.keep("sessions", "", {ID: b"{"}, until=math.inf)
        _, problems = await recover_session(store, ID)
        assert "entry 0 is missing" in problems[1]

    on_a_session(test)


def test_totals_beside_the_entries_do_not_matter() -> None:
    async def test(store: SqliteStore) -> None:
        await store.add("turns", ID, "anything", {"n": 1.0}, until=math.inf)
        await store.add("sessions", "", "anything", {"n": 1.0}, until=math.inf)
        async with await SessionLog.open(store, ID) as log:
            assert len(log.history) == 5
        assert len((await list_sessions(store)).sessions) == 1

    on_a_session(test)


def test_a_search_reports_a_corrupt_session_and_goes_on() -> None:
    async def test(store: SqliteStore) -> None:
        async with await SessionLog.create(store, id="whole") as log:
            await log.add_turn(user("needle"))
            await log.rename("a title")
        await put(store, 3, b"{")
        found = {hit.session.id: hit for hit in await search_sessions(store, "NEEDLE")}
        assert found["whole"].snippet == "needle"
        assert "entry 3" in found[ID].problem

    on_a_session(test)


async def test_rows_that_are_large_are_read_a_few_at_a_time() -> None:
    store = SqliteStore(":memory:", limits=StoreLimits(max_call_bytes=4000))
    async with await SessionLog.create(store, id=ID) as log:
        for n in range(40):
            await log.add_turn(user(f"{n} " * 300))
    async with await SessionLog.open(store, ID) as again:
        assert again.history.turns == log.history.turns
    await store.close()


async def test_one_row_that_is_larger_than_a_call_may_be_is_refused() -> None:
    store = SqliteStore(":memory:")
    async with await SessionLog.create(store, id=ID) as log:
        await log.add_turn(user("x" * 5000))
    values = [row.value for row in await store.scan("turns", client=ID, limit=10)]
    infos = await store.find("sessions", "", [ID])
    narrow = SqliteStore(":memory:", limits=StoreLimits(max_call_bytes=4000))
    wide = LogRows(store, ID)
    assert await wide.contains(0, [value for value in values if value is not None])
    await narrow.keep("sessions", "", infos, until=math.inf)
    with pytest.raises(InputError):
        await SessionLog.open(narrow, ID)
    await narrow.close()
    await store.close()


def test_numbers_come_to_an_end() -> None:
    async def test(store: SqliteStore) -> None:
        with pytest.raises(LimitError, match="too many entries"):
            await LogRows(store, ID).append(LAST_NUMBER, [b"{}"])

    on_a_session(test)


# --- what earlier releases wrote --------------------------------------------------------------------

NOTE = b'{"action":"dropped","reason":"a note","fault":"loss"}'
STORED: list[bytes] = [
    b'{"entry":"opened","holder":"h/1/m/n","at":1.5,"new":true}',
    b'{"entry":"turns","turns":[{"role":"user","blocks":[]}],"told":[%s]}' % NOTE,
    b'{"entry":"started","call_id":"c1","arguments":{"n":1}}',
    b'{"entry":"finished","result":{"call_id":"c1","content":"done"}}',
    b'{"entry":"reset","turns":[{"role":"user","blocks":[]}],"runs":[{"entry":"started","call_id":"c2"}],"told":[%s]}'
    % NOTE,
    b'{"entry":"switched","model":"openai/gpt-5"}',
    b'{"entry":"told","entries":[%s]}' % NOTE,
]


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: json.loads(stored)["entry"])
def test_entries_keep_their_stored_names(stored: bytes) -> None:
    entry = decode(stored, session=ID, number=0)
    assert json.loads(encode(entry)).keys() - {"version"} == json.loads(stored).keys()
    assert decode(encode(entry), session=ID, number=0) == entry
    if isinstance(entry, TurnsAdded | LogReset):
        assert [found.reason for found in entry.report] == ["a note"]

"""The log of a session: whole after a crash, bounded, and given up when it is closed."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from support.sessions.session_logs import Failing, calling, on_a_store, session, user
from support.store.faulty_store import HookedStore
from toolglot import (
    Attempt,
    HistoryError,
    InputError,
    Issuer,
    LimitError,
    Reply,
    Text,
    ToolResult,
    Turn,
    Usage,
)
from toolglot.conversation.events import BlockStarted
from toolglot.conversation.report import Entry
from toolglot.runtime.log.entries import LogReset, ToolStarted
from toolglot.runtime.log.memory_log import Log
from toolglot.runtime.log.session_log import LogLimits, SessionLog, SessionMissingError
from toolglot.runtime.log.sessions import read_session, shrink_session
from toolglot.store import StoreError


def test_a_session_is_opened_as_it_was_closed() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, model="openai/gpt-5") as log:
            boundary: Log = log  # what a session writes to
            await boundary.add_turn(user("hello"))
            await boundary.add_turn(Turn("assistant", (Text("hi"),), issuer=Issuer("openai")))
            log.history.add_entry(Entry(action="dropped", reason="a try failed", fault="policy"))
        async with await SessionLog.open(store, log.id) as again:
            assert again.history.turns == log.history.turns
            assert again.history.report.entries == log.history.report.entries
            assert again.model == "openai/gpt-5"
            assert again.info.title == "hello"
            assert again.info.turns == 2

    on_a_store(test)


def test_a_started_tool_is_in_the_store_before_the_scheduler_hears_of_it() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            turn = await log.add_turn(calling("write"))
            await log.record_start(turn.calls[0], {"n": 0})
            _, standing = await read_session(store, log.id)
            assert standing.runs == {turn.calls[0].id: ToolStarted(call_id=turn.calls[0].id)}

    on_a_store(test)


def test_what_comes_while_the_store_is_busy_goes_with_the_next_commit() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            turn = await log.add_turn(calling(*["write"] * 8))
            store.moments.clear()
            await asyncio.gather(*(log.record_start(call, {}) for call in turn.calls))
            assert store.moments.count("after keep turns") == 1
            _, standing = await read_session(store, log.id)
            assert standing.runs.keys() == {call.id for call in turn.calls}

    on_a_store(test)


def test_a_commit_takes_only_so_much() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            turn = await log.add_turn(calling("write"))
            store.moments.clear()
            await asyncio.gather(*(log.record_start(turn.calls[0], {"n": n}) for n in range(1500)))
            assert store.moments.count("after keep turns") == 2

    on_a_store(test)


def test_what_a_reset_leaves_is_written_in_parts_of_bounded_size() -> None:
    async def test(store: HookedStore) -> None:
        limits = LogLimits(max_entry_bytes=2000)
        async with session(store, limits=limits) as log:
            for n in range(20):
                await log.add_turn(user(f"{n} " * 100))
            await log.change(lambda history: history.rewind(history.turns[14].key))
        rows = await store.scan("turns", client=log.id, limit=1000)
        assert all(len(row.value or b"") <= 2000 for row in rows)
        async with await SessionLog.open(store, log.id, limits=limits) as again:
            assert again.history.turns == log.history.turns
            assert len(again.history) == 15

    on_a_store(test)


def test_a_turn_that_is_too_large_is_refused_and_undone() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, limits=LogLimits(max_entry_bytes=2000)) as log:
            with pytest.raises(LimitError, match="max_entry_bytes"):
                await log.add_turn(user("x" * 3000))
            await log.add_turn(user("short"))
            assert len(log.history) == 1

    on_a_store(test)


def test_a_limit_is_a_whole_number() -> None:
    with pytest.raises(InputError, match="whole number"):
        LogLimits(max_report_entries=0)


def test_a_session_larger_than_its_limit_is_refused() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            await log.add_turn(user("x" * 3000))
        with pytest.raises(LimitError, match="max_session_bytes"):
            await SessionLog.open(store, log.id, limits=LogLimits(max_session_bytes=2000))
        async with await SessionLog.open(store, log.id):
            pass  # the claim was released

    on_a_store(test)


def test_a_reset_takes_the_newest_of_the_report_along() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, limits=LogLimits(max_report_entries=3)) as log:
            await log.add_turn(user("one"))
            for n in range(10):
                log.history.add_entry(Entry(action="dropped", reason=f"try {n}", fault="policy"))
            await log.change(lambda history: history.rewind(None))
        async with await SessionLog.open(store, log.id) as again:
            assert [entry.reason for entry in again.history.report] == ["try 7", "try 8", "try 9"]

    on_a_store(test)


def test_opening_reads_only_what_stands_from_the_last_reset_on() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            for n in range(300):
                await log.add_turn(user(f"turn {n}"))
            await log.change(lambda history: history.compress(summary="so far", before=history.turns[-2].key))
            await log.add_turn(user("after"))
        store.rows_read = 0
        async with await SessionLog.open(store, log.id) as again:
            assert again.history.turns == log.history.turns
        assert store.rows_read == 2
        assert await shrink_session(store, log.id) == 301
        async with await SessionLog.open(store, log.id) as again:
            assert again.history.turns == log.history.turns

    on_a_store(test)


def test_runs_that_a_reset_finds_open_are_known_after_it() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            await log.add_turn(user("hello"))
            turn = await log.add_turn(calling("write", "write", "write"))
            one, two, _ = turn.calls
            await log.record_start(one, {"n": 0})
            first = log.record_start(two, {"n": 1})
            then = log.change(lambda history: history.prune(history.turns[0].key))
            await asyncio.gather(first, then)
            await log._claim.release()
            async with await SessionLog.open(store, log.id) as again:
                texts = [result.text for result in again.history.turns[-1].results]
                assert ["unknown" in text for text in texts] == [True, True, False]
                assert "never started" in texts[2]
                assert "without side effects and was interrupted" in texts[2]  # such runs are not in the log

    on_a_store(test)


def test_the_result_of_a_run_that_ended_is_not_lost_with_its_process() -> None:
    async def test(store: HookedStore) -> None:
        log = await SessionLog.create(store)
        turn = await log.add_turn(calling("write"))
        await log.record_start(turn.calls[0], {"n": 0})
        await log.record_result(ToolResult(turn.calls[0].id, "written", result={"bytes": 7}))
        await log._claim.release()
        async with await SessionLog.open(store, log.id) as again:
            (found,) = again.history.ledger
            assert found.result is not None
            assert (found.status, found.result.text, found.result.result) == ("complete", "written", {"bytes": 7})
        await log.close()

    on_a_store(test)


def test_calls_that_the_caller_answers_stay_open() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            await log.add_turn(calling("ask_user", "write"))
        async with await SessionLog.open(store, log.id, keep_open=["ask_user"]) as again:
            (open_call,) = again.history.ledger.pending
            assert open_call.name == "ask_user"
            await again.publish([ToolResult(open_call.id, "yes")])
            assert again.history.ledger.pending == ()

    on_a_store(test)


def test_an_answer_is_written_with_what_it_took_and_its_cut_calls() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            whole = Attempt(log.history, provider="openai")
            whole.add_reply(Reply(Turn("assistant", (Text("hi"),)), "stop", Usage(input_tokens=5, output_tokens=2)))
            await log.commit(whole, cost=Decimal("0.5"))
            silent = Attempt(log.history, provider="openai")
            silent.add_reply(Reply(Turn("assistant", (Text("hi again"),)), "stop"))
            await log.commit(silent)
            more = Attempt(log.history, provider="openai")
            more.add_reply(Reply(Turn("assistant", (Text("bye"),)), "stop", Usage(input_tokens=6)))
            await log.commit(more, cost=Decimal("0.25"))
        async with await SessionLog.open(store, log.id) as again:
            assert again.usage == Usage(input_tokens=11, output_tokens=2)
            assert again.cost == Decimal("0.75")
            assert again.info.tokens == 13
            await again.change(lambda history: history.rewind(None))
        async with await SessionLog.open(store, log.id) as again:
            assert (again.usage.input_tokens, again.cost) == (11, Decimal("0.75"))

    on_a_store(test)


def test_an_answer_that_cannot_be_committed_changes_nothing() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            attempt = Attempt(log.history, provider="openai")
            attempt.add([BlockStarted(Text(""))])
            with pytest.raises(HistoryError):
                await log.commit(attempt)
            assert log.history.turns == ()

    on_a_store(test)


def test_a_turn_in_flight_is_ended_and_its_open_calls_are_cancelled_in_the_log_too() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            log.history.begin_turn("openai")
            await log.add_turn(calling("write"))
            await log.end_turn("The user left.")
            assert log.history.in_flight is None
            await log.end_turn()
        async with await SessionLog.open(store, log.id) as again:
            assert again.history.turns[-1].results[0].text == "The user left."

    on_a_store(test)


def test_publishing_nothing_writes_nothing() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            store.moments.clear()
            assert await log.publish([]) is None
            await log.change(lambda history: history.rewind(None))
            assert store.moments == []

    on_a_store(test)


def test_a_closed_log_refuses_writes_and_is_closed_once() -> None:
    async def test(store: HookedStore) -> None:
        log = await SessionLog.create(store)
        await log.close()
        await log.close()
        with pytest.raises(HistoryError, match="closed"):
            await log.add_turn(user("late"))

    on_a_store(test)


def test_close_gives_the_session_back_although_the_store_fails() -> None:
    async def test(store: HookedStore) -> None:
        log = await SessionLog.create(store)
        log.history.add_entry(Entry(action="dropped", reason="a try failed", fault="policy"))
        store.hook = Failing("before keep turns", StoreError("the disk is full"))
        with pytest.raises(StoreError):
            await log.close()
        async with await SessionLog.open(store, log.id):
            pass

    on_a_store(test)


def test_a_session_that_cannot_begin_leaves_nothing() -> None:
    async def test(store: HookedStore) -> None:
        large = LogReset(turns=(user("x" * 3000),))
        with pytest.raises(LimitError):
            await SessionLog.create(store, id="large", start=large, limits=LogLimits(max_entry_bytes=2000))
        assert await store.scan("turns", limit=10) == await store.scan("sessions", limit=10) == []
        async with session(store, id="large"):
            pass

    on_a_store(test)


def test_a_session_whose_open_calls_cannot_be_settled_is_released() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            await log.add_turn(calling("write"))

        seen = 0

        async def second(moment: str) -> None:
            nonlocal seen
            seen += moment == "before keep turns"
            if moment == "before keep turns" and seen == 2:
                raise StoreError("the disk is full")

        store.hook = second
        with pytest.raises(StoreError):
            await SessionLog.open(store, log.id)
        async with await SessionLog.open(store, log.id) as again:
            assert again.history.ledger.pending == ()

    on_a_store(test)


def test_an_id_that_is_taken_is_reported_and_its_session_stays_free() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, id="mine"):
            pass
        with pytest.raises(InputError, match="already"):
            await SessionLog.create(store, id="mine")
        async with await SessionLog.open(store, "mine"):
            pass

    on_a_store(test)


@pytest.mark.parametrize("id", ["", "a/b", "../x", "a b", "x" * 129, "a\0"])
def test_what_cannot_be_an_id_is_refused(id: str) -> None:
    async def test(store: HookedStore) -> None:
        with pytest.raises(InputError, match="cannot be the id"):
            await SessionLog.create(store, id=id)
        with pytest.raises(InputError, match="cannot be the id"):
            await SessionLog.open(store, id)

    on_a_store(test)


def test_a_session_that_is_not_there_is_reported_with_what_to_do() -> None:
    async def test(store: HookedStore) -> None:
        with pytest.raises(SessionMissingError, match="list_sessions"):
            await SessionLog.open(store, "nowhere")

    on_a_store(test)


def test_one_owner_s_session_is_nowhere_for_another() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, id="same", owner="ann") as hers, session(store, id="same", owner="bob") as his:
            await hers.add_turn(user("ann's"))
            await his.add_turn(user("bob's"))
        async with await SessionLog.open(store, "same", owner="ann") as again:
            assert again.history.turns[0].text == "ann's"
        for owner in ("", "eve"):
            with pytest.raises(SessionMissingError):
                await SessionLog.open(store, "same", owner=owner)

    on_a_store(test)


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Fix the bug", "Fix the bug"),
        ("  two\n\n lines ", "two lines"),
        ("word " * 40, "word " * 15 + "word…"),
        ("", ""),
    ],
)
def test_a_session_s_title_is_the_first_message_of_the_user(message: str, title: str) -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            await log.add_turn(Turn("system", (Text("You are helpful"),)))
            await log.add_turn(user(message))
            assert log.info.title == title
            assert len(title) <= 80

    on_a_store(test)


def test_a_title_that_was_set_stays() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store, title="Given") as log:
            await log.add_turn(user("said"))
            assert log.info.title == "Given"
            await log.rename("Renamed")
        info, _ = await read_session(store, log.id)
        assert info.title == "Renamed"

    on_a_store(test)


def test_the_row_in_the_list_follows_by_itself_also_when_the_store_fails_meanwhile() -> None:
    async def test(store: HookedStore) -> None:
        written = asyncio.Event()
        failed = False

        async def watch(moment: str) -> None:
            nonlocal failed
            if moment == "before keep sessions" and not failed:
                failed = True
                raise StoreError("busy")
            if moment == "after keep sessions":
                written.set()

        async with session(store) as log:
            store.hook = watch
            await log.add_turn(user("one"))
            assert log._info_writer is not None
            await log._info_writer
            assert failed
            await log.add_turn(user("two"))
            await written.wait()
            rows = await store.find("sessions", "", [log.id])
            assert b'"turns":2' in rows[log.id]

    on_a_store(test)


def test_a_write_that_comes_while_the_row_in_the_list_is_written_is_in_it_soon_too() -> None:
    async def test(store: HookedStore) -> None:
        rows: list[bytes] = []
        second = asyncio.Event()

        async def watch(moment: str) -> None:
            if moment == "before keep sessions" and not rows:
                await log.add_turn(user("two"))  # the row that is written says one turn
            if moment == "after keep sessions":
                rows.append((await store.store.find("sessions", "", [log.id]))[log.id])
                if len(rows) == 2:
                    second.set()

        async with session(store) as log:
            store.hook = watch
            await log.add_turn(user("one"))
            await second.wait()
            assert b'"turns":2' in rows[1]

    on_a_store(test)

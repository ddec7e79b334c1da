"""Writes of a session's log: committed before they count, undone when they are not, ended before a cancellation."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from support.sessions.session_logs import Failing, on_a_store, session, user
from support.store.faulty_store import HookedStore, nothing
from toolglot import (
    ToolCall,
)
from toolglot.runtime.log.session_log import SessionLog, SessionTakenError
from toolglot.runtime.log.sessions import read_session
from toolglot.store import SqliteStore, StoreError


def test_what_the_store_refuses_is_undone_and_the_next_write_goes_on() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            kept = await log.add_turn(user("one"))
            store.hook = Failing("before keep turns", StoreError("the disk is full"))
            with pytest.raises(StoreError, match="full"):
                await log.add_turn(user("two"))
            assert log.history.turns == (kept,)
            await log.add_turn(user("three"))
            _, standing = await read_session(store, log.id)
            assert [turn.text for turn in standing.turns] == ["one", "three"]

    on_a_store(test)


def test_what_is_written_while_an_earlier_write_fails_is_undone_with_it() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            store.hook = Failing("before keep turns", StoreError("the disk is full"))
            writes = [log.add_turn(user("one")), log.add_turn(user("two")), log.record_model("a/b")]
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [StoreError, StoreError, StoreError]
            assert log.history.turns == ()
            assert log.model == ""

    on_a_store(test)


def test_a_commit_whose_answer_was_lost_counts() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            store.hook = Failing("after keep turns", StoreError("the connection broke"))
            await log.add_turn(user("one"))
            await log.add_turn(user("two"))
            _, standing = await read_session(store, log.id)
            assert [turn.text for turn in standing.turns] == ["one", "two"]

    on_a_store(test)


def test_a_commit_that_cannot_be_looked_up_is_undone_and_no_later_one_is_doubled() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:

            async def broken(moment: str) -> None:
                if moment in ("after keep turns", "before find turns"):
                    raise StoreError("the connection broke")

            store.hook = broken
            with pytest.raises(StoreError):
                await log.add_turn(user("one"))
            assert log.history.turns == ()
            store.hook = nothing
            with pytest.raises(SessionTakenError, match="open it again"):
                await log.add_turn(user("two"))
            assert log.history.turns == ()
        async with await SessionLog.open(store, log.id) as again:
            assert [turn.text for turn in again.history.turns] == ["one"]

    on_a_store(test)


def test_an_error_that_is_no_store_s_own_reaches_the_writer() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            store.hook = Failing("before keep turns", ZeroDivisionError())
            with pytest.raises(ZeroDivisionError):
                await log.add_turn(user("one"))
            assert log.history.turns == ()

    on_a_store(test)


def test_a_holder_that_lost_a_session_learns_who_has_it_and_changes_nothing() -> None:
    async def test(store: HookedStore) -> None:
        first = await SessionLog.create(store, holder="one/1//a")
        await first.add_turn(user("one"))
        await first._claim.release()
        async with await SessionLog.open(store, first.id, holder="two/2//b") as second:
            turns = first.history.turns
            with pytest.raises(SessionTakenError, match="held by process 2 on two") as caught:
                await first.add_turn(user("late"))
            assert (caught.value.host, caught.value.pid, caught.value.session) == ("two", 2, first.id)
            assert first.history.turns == turns
            with pytest.raises(SessionTakenError, match="process 2 on two"):
                await first.record_start(ToolCall("x", "y", {}), {})
            await second.add_turn(user("two"))
            await first.close()
            assert [turn.text for turn in second.history.turns] == ["one", "two"]

    on_a_store(test)


def test_an_old_holder_who_writes_while_the_session_is_taken_is_read() -> None:
    async def test(store: HookedStore) -> None:
        first = await SessionLog.create(store)
        await first._claim.release()

        async def just_in_time(moment: str) -> None:
            if moment == "before keep turns":
                store.hook = nothing
                await first.add_turn(user("just in time"))

        store.hook = just_in_time
        async with await SessionLog.open(store, first.id) as second:
            assert [turn.text for turn in second.history.turns] == ["just in time"]
            with pytest.raises(SessionTakenError):
                await first.add_turn(user("late"))
        await first.close()

    on_a_store(test)


def test_an_old_holder_who_never_stops_writing_is_reported() -> None:
    async def test(store: HookedStore) -> None:
        first = await SessionLog.create(store)
        await first._claim.release()
        writing = False

        async def always(moment: str) -> None:
            nonlocal writing
            if moment == "before keep turns" and not writing:
                writing = True
                await first.add_turn(user("again"))
                writing = False

        store.hook = always
        with pytest.raises(StoreError, match="keeps writing"):
            await SessionLog.open(store, first.id)
        await first.close()

    on_a_store(test)


@pytest.mark.parametrize("with_anyio", [False, True])
def test_a_write_under_way_is_ended_before_a_cancellation_goes_on(with_anyio: bool) -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            under_way, go_on = asyncio.Event(), asyncio.Event()

            async def slowly(moment: str) -> None:
                if moment == "before keep turns":
                    under_way.set()
                    await go_on.wait()

            store.hook = slowly
            scope = anyio.CancelScope()

            async def say() -> None:
                with scope:
                    await log.add_turn(user("one"))
                    if with_anyio:
                        await anyio.lowlevel.checkpoint()

            task = asyncio.create_task(say())
            await under_way.wait()
            if with_anyio:
                scope.cancel()
            else:
                task.cancel()
            asyncio.get_running_loop().call_later(0.01, go_on.set)
            await asyncio.wait([task])
            assert task.cancelled() is not with_anyio
            assert scope.cancelled_caught is with_anyio
            _, standing = await read_session(store, log.id)
            assert standing.turns == list(log.history.turns) != []

    on_a_store(test)


def test_a_cancelled_writer_does_not_hide_that_the_write_failed() -> None:
    async def test(store: HookedStore) -> None:
        async with session(store) as log:
            under_way, go_on = asyncio.Event(), asyncio.Event()

            async def slowly(moment: str) -> None:
                if moment == "before keep turns":
                    under_way.set()
                    await go_on.wait()
                    raise StoreError("the disk is full")

            store.hook = slowly
            task = asyncio.create_task(log.add_turn(user("one")))
            await under_way.wait()
            task.cancel()
            asyncio.get_running_loop().call_later(0.01, go_on.set)
            await asyncio.wait([task])
            assert task.cancelled()
            assert log.history.turns == ()

    on_a_store(test)


def test_a_loop_that_ends_in_the_middle_of_a_write_does_not_hang() -> None:
    async def abandoned() -> None:
        store = HookedStore(SqliteStore(":memory:"))
        log = await SessionLog.create(store)
        under_way = asyncio.Event()

        async def never(moment: str) -> None:
            if moment == "before keep turns":
                under_way.set()
                await asyncio.Event().wait()

        store.hook = never
        task = asyncio.create_task(log.add_turn(user("one")))
        await under_way.wait()
        assert not task.done()
        await store.close()

    asyncio.run(asyncio.wait_for(abandoned(), 120))

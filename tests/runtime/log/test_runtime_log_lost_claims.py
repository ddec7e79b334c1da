"""A process that slept through the end of its claim: what others did meanwhile stays, in the log and in the list."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.store.faulty_store import HookedStore
from toolglot import Issuer, Text, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry
from toolglot.runtime.log.claim import SessionClaim
from toolglot.runtime.log.documents import export_session, import_session
from toolglot.runtime.log.entries import row_key
from toolglot.runtime.log.info import FENCE_SECONDS, SessionInfo
from toolglot.runtime.log.session_log import SessionDamagedError, SessionLog, SessionMissingError, SessionTakenError
from toolglot.runtime.log.sessions import (
    list_sessions,
    recover_session,
    remove_session,
    rewind_session,
    shrink_session,
)
from toolglot.store import SqliteStore, StoreConflictError

ID = "s"
SLEEP = 60.0


class LogSetup:
    """A store with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.kept = SqliteStore(":memory:", clock=self.clock)
        self.store = HookedStore(self.kept)

    def clock(self) -> float:
        return self.now

    async def sleeper(self, *texts: str) -> SessionLog:
        """A log that holds a session, and whose process goes to sleep now."""
        log = await SessionLog.create(self.store, id=ID, clock=self.clock)
        for text in texts or ("a0", "a1", "a2"):
            await log.add_turn(user(text))
        return log

    async def open(self) -> SessionLog:
        return await SessionLog.open(self.store, ID, clock=self.clock)

    async def rows(self) -> dict[str, bytes]:
        return await self.kept.find("sessions", "", [ID])

    async def texts(self) -> list[str]:
        async with await self.open() as log:
            return [turn.text for turn in log.history.turns]

    async def listed(self) -> list[str]:
        page = await list_sessions(self.store)
        assert page.damaged == ()
        return [info.id for info in page.sessions]


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def with_setup(test: Callable[[LogSetup], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        setup = LogSetup()
        await test(setup)
        await setup.store.close()

    asyncio.run(asyncio.wait_for(whole(), 120))


async def rewound_elsewhere(setup: LogSetup, *, shrink: bool = True) -> None:
    """Another process takes the session over, writes, rewinds and lets go; what it left behind is taken away."""
    async with await setup.open() as other:
        for n in range(4):
            await other.add_turn(user(f"b{n}"))
        await other.change(lambda history: history.rewind(history.turns[4].key))
    if shrink:
        await shrink_session(setup.store, ID, clock=setup.clock)


REWOUND = ["a0", "a1", "a2", "b0", "b1"]


def test_a_sleeper_that_closes_leaves_the_row_of_the_list_as_a_later_process_wrote_it() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += SLEEP
        await rewound_elsewhere(setup)
        row = await setup.rows()
        await sleeper.close()
        assert await setup.rows() == row
        assert await setup.texts() == REWOUND
        assert await setup.listed() == [ID]

    with_setup(test)


def test_a_sleeper_whose_clock_stood_still_does_not_write_the_row_either() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await SessionLog.create(setup.store, id=ID, clock=lambda: 1_000_000.0)
        for text in ("a0", "a1", "a2"):
            await sleeper.add_turn(user(text))
        setup.now += SLEEP
        await rewound_elsewhere(setup)
        row = await setup.rows()
        with pytest.raises(SessionTakenError):
            await sleeper.rename("the sleeper's")
        await sleeper.close()
        assert await setup.rows() == row
        assert await setup.texts() == REWOUND

    with_setup(test)


def test_a_row_that_was_under_way_when_the_process_fell_asleep_does_not_come_late() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        seen: list[dict[str, bytes]] = []

        async def hook(moment: str) -> None:
            if moment == "before keep sessions" and not seen:
                seen.append({})
                setup.now += SLEEP
                await rewound_elsewhere(setup)
                seen.append(await setup.rows())

        setup.store.hook = hook
        await sleeper.close()
        assert await setup.rows() == seen[1]
        assert await setup.texts() == REWOUND

    with_setup(test)


def test_a_process_that_opened_but_never_wrote_its_row_does_not_come_late() -> None:
    async def test(setup: LogSetup) -> None:
        async with await setup.sleeper():
            pass
        second = await setup.open()  # its row is only written later
        setup.now += SLEEP
        await rewound_elsewhere(setup)
        row = await setup.rows()
        await second.close()
        assert await setup.rows() == row

    with_setup(test)


def test_a_process_that_slept_while_it_closed_does_not_come_late() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        sleeper.history.add_entry(Entry(action="dropped", reason="a try failed", fault="policy"))
        rows: list[dict[str, bytes]] = []

        async def hook(moment: str) -> None:
            if moment == "before keep turns" and not rows:  # closing, and its row is written once more before the end
                rows.append({})
                await sleeper._write_info()
            elif moment == "before keep sessions" and len(rows) == 1 and b"told" in await last_entry(setup):
                rows.append({})
                setup.now += SLEEP
                await rewound_elsewhere(setup)
                rows.append(await setup.rows())

        setup.store.hook = hook
        await sleeper.close()
        assert await setup.rows() == rows[2]
        assert await setup.texts() == REWOUND

    async def last_entry(setup: LogSetup) -> bytes:
        return (await setup.kept.scan("turns", client=ID, limit=100))[-1].value or b""

    with_setup(test)


def test_a_sleeper_does_not_bring_back_a_session_that_was_removed() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += SLEEP
        await remove_session(setup.store, ID, clock=setup.clock)
        await sleeper.close()
        assert await setup.listed() == []
        with pytest.raises(SessionMissingError):
            await setup.open()

    with_setup(test)


@pytest.mark.parametrize("held_again", [False, True])
def test_a_sleeper_is_refused_by_a_session_that_was_removed_and_imported(held_again: bool) -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += SLEEP
        if held_again:
            async with await setup.open() as other:
                await other.add_turn(user("b"))
        document = await export_session(setup.store, ID)
        await remove_session(setup.store, ID, clock=setup.clock)
        assert (await import_session(setup.store, document)).id == ID
        row = await setup.rows()
        with pytest.raises(SessionTakenError):
            await sleeper.add_turn(user("stale"))
        await sleeper.close()
        assert await setup.rows() == row
        texts = await setup.texts()
        assert texts == ["a0", "a1", "a2", *(["b"] if held_again else [])]
        async with await setup.open() as log:
            for n in range(6):
                await log.add_turn(user(f"c{n}"))
        assert len(await setup.texts()) == len(texts) + 6

    with_setup(test)


def test_what_a_removed_session_leaves_is_gone_a_day_later() -> None:
    async def test(setup: LogSetup) -> None:
        async with await setup.sleeper():
            pass
        sleeper = await setup.open()
        setup.now += SLEEP
        async with await setup.open():
            pass
        await sleeper.close()
        await remove_session(setup.store, ID, clock=setup.clock)
        assert await setup.store.scan("turns", limit=10) != []
        setup.now += FENCE_SECONDS + 1
        assert await setup.store.scan("turns", limit=10) == await setup.store.scan("sessions", limit=10) == []

    with_setup(test)


@pytest.mark.parametrize("clock_stands", [False, True])
def test_the_fence_outlives_a_shrink(clock_stands: bool) -> None:
    async def test(setup: LogSetup) -> None:
        began = setup.now
        sleeper = await SessionLog.create(setup.store, id=ID, clock=lambda: began if clock_stands else setup.now)
        for text in ("a0", "a1", "a2"):
            await sleeper.add_turn(user(text))
        setup.now += SLEEP
        await rewound_elsewhere(setup)
        with pytest.raises(SessionTakenError):
            await sleeper.add_turn(user("into a hole"))
        await sleeper.close()
        assert await setup.texts() == REWOUND

    with_setup(test)


@pytest.mark.parametrize("removed", [False, True])
def test_a_sleep_longer_than_any_fence_is_noticed_by_its_length(removed: bool) -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += SLEEP
        await rewound_elsewhere(setup)
        if removed:
            await remove_session(setup.store, ID, clock=setup.clock)
        setup.now += FENCE_SECONDS * 2
        row = await setup.rows()
        with pytest.raises(SessionTakenError, match="another process"):
            await sleeper.add_turn(user("into a hole"))
        await sleeper.close()
        assert await setup.rows() == row
        assert await setup.listed() == ([] if removed else [ID])

    with_setup(test)


def test_who_slept_and_was_not_missed_goes_on() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += FENCE_SECONDS * 2
        await sleeper.add_turn(user("awake"))
        await sleeper.rename("still mine")
        with pytest.raises(SessionTakenError):
            await setup.open()
        await sleeper.close()
        assert await setup.texts() == ["a0", "a1", "a2", "awake"]
        assert (await list_sessions(setup.store)).sessions[0].title == "still mine"

    with_setup(test)


def test_who_slept_while_his_write_was_under_way_goes_on() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        checks: list[bool] = []

        async def hook(moment: str) -> None:
            if moment == "after keep turns" and not checks:  # it is in the store, and he does not know yet
                checks.append(True)
                setup.now += SLEEP
                renewal = asyncio.create_task(sleeper._claim.confirm())
                await asyncio.sleep(0)
                waiting.append(renewal)

        waiting: list[asyncio.Task[bool]] = []
        setup.store.hook = hook
        await sleeper.add_turn(user("one more"))
        assert await waiting[0]
        await sleeper.add_turn(user("and another"))
        await sleeper.close()
        assert await setup.texts() == ["a0", "a1", "a2", "one more", "and another"]

    with_setup(test)


def test_a_renewal_that_comes_too_late_gives_back_what_was_another_s_meanwhile() -> None:
    async def test(setup: LogSetup) -> None:
        untouched: list[bool] = []

        async def is_untouched() -> bool:
            untouched.append(False)
            return False

        claim = SessionClaim(setup.store, ID, lease=0.03, clock=setup.clock)
        await claim.take()
        claim.watch(is_untouched)
        setup.now += SLEEP
        while claim.lost_to is None:
            await asyncio.sleep(0.005)
        assert claim.lost_to == ""
        assert untouched == [False]
        assert await setup.kept.claim("sessions", "", ID, "other", until=setup.now + 60) == "other"
        assert not await claim.confirm()
        await claim.release()

    with_setup(test)


def test_a_lost_session_is_not_claimed_by_looking_up_its_holder() -> None:
    async def test(setup: LogSetup) -> None:
        sleeper = await setup.sleeper()
        setup.now += SLEEP
        await rewound_elsewhere(setup, shrink=False)
        with pytest.raises(SessionTakenError):
            await sleeper.add_turn(user("stale"))
        assert await setup.texts() == REWOUND  # the sleeper is not closed, and holds nothing

    with_setup(test)


@pytest.mark.parametrize("removed_before", [False, True])
def test_a_creator_that_slept_does_not_unmake_the_session_that_another_opened(removed_before: bool) -> None:
    async def test(setup: LogSetup) -> None:
        async def hook(moment: str) -> None:
            if moment == "before keep turns":
                setup.store.hook = nothing
                setup.now += SLEEP
                async with await setup.open() as other:
                    await other.add_turn(user("mine now"))

        async def nothing(moment: str) -> None:
            pass

        if removed_before:
            async with await setup.sleeper():
                pass
            await remove_session(setup.store, ID, clock=setup.clock)
        setup.store.hook = hook
        with pytest.raises(SessionTakenError):
            await SessionLog.create(setup.store, id=ID, clock=setup.clock)
        assert await setup.texts() == ["mine now"]
        assert await setup.texts() == ["mine now"]

    with_setup(test)


# --- a row that points nowhere ------------------------------------------------------------------


async def point(setup: LogSetup, first: int) -> None:
    """Make the row say that reading begins there."""
    info = msgspec.json.decode((await setup.rows())[ID], type=SessionInfo)
    changed = msgspec.structs.replace(info, first=first)
    await setup.kept.keep("sessions", "", {ID: msgspec.json.encode(changed)}, until=math.inf)


@pytest.mark.parametrize("first", [0, 1, 3, 8])
def test_a_row_that_points_nowhere_does_not_keep_a_session_closed(first: int) -> None:
    async def test(setup: LogSetup) -> None:
        async with await setup.sleeper():
            pass
        await rewound_elsewhere(setup)
        await point(setup, first)
        assert await setup.texts() == REWOUND
        await point(setup, first)
        info, problems = await recover_session(setup.store, ID)
        assert (info.turns, problems) == (len(REWOUND), ())

    with_setup(test)


def test_a_log_that_has_lost_its_beginning_is_still_damaged() -> None:
    async def test(setup: LogSetup) -> None:
        async with await setup.sleeper():
            pass
        await setup.kept.remove("turns", ID, [row_key(0), row_key(1)])
        with pytest.raises(SessionDamagedError, match="entry 0 is missing"):
            await setup.open()
        info, problems = await recover_session(setup.store, ID)
        assert info.turns == 2
        assert "entry 0 is missing" in problems[0]

    with_setup(test)


def test_a_session_is_made_behind_whatever_its_id_has_left() -> None:
    async def test(setup: LogSetup) -> None:
        await setup.kept.keep("turns", ID, {row_key(7): b"anything"}, until=math.inf)
        await setup.kept.keep("sessions", "", {f"{ID}/{row_key(9)}": b""}, until=math.inf)
        async with await setup.sleeper("one") as log:
            assert log.info.first == 10
        assert await setup.texts() == ["one"]
        assert await setup.kept.find("turns", ID, [row_key(7)]) == {}
        assert (await rewind_session(setup.store, ID, None)).turns == 0
        with pytest.raises(StoreConflictError):
            await setup.kept.keep("turns", ID, {row_key(10): b""}, until=math.inf, unless=[row_key(10)])

    with_setup(test)


# --- clocks that do not agree -------------------------------------------------------------------

HOUR = 3600.0


async def test_a_process_whose_clock_is_behind_loses_its_session_and_damages_nothing(tmp_path: Path) -> None:
    now = 1_000_000.0
    behind, right = (SqliteStore(tmp_path / "s.db", clock=clock) for clock in (lambda: now - HOUR, lambda: now))
    slow = await SessionLog.create(behind, id=ID, clock=lambda: now - HOUR)
    await slow.add_turn(user("slow"))
    async with await SessionLog.open(right, ID, clock=lambda: now) as other:  # its claim has run out, for others
        await other.add_turn(user("right"))
        await other.change(lambda history: history.rewind(None))
        await other.add_turn(user("anew"))
    await shrink_session(right, ID, clock=lambda: now)
    row = await right.find("sessions", "", [ID])
    with pytest.raises(SessionTakenError):
        await slow.add_turn(user("late"))
    await slow.close()
    assert await right.find("sessions", "", [ID]) == row
    async with await SessionLog.open(right, ID, clock=lambda: now) as again:
        assert [turn.text for turn in again.history.turns] == ["anew"]
    await behind.close()
    await right.close()


async def test_a_process_whose_clock_is_ahead_keeps_its_session_for_so_much_longer(tmp_path: Path) -> None:
    now = 1_000_000.0
    ahead, right = (SqliteStore(tmp_path / "s.db", clock=clock) for clock in (lambda: now + HOUR, lambda: now))
    fast = await SessionLog.create(ahead, id=ID, clock=lambda: now + HOUR)
    await fast.add_turn(user("fast"))
    with pytest.raises(SessionTakenError):
        await SessionLog.open(right, ID, clock=lambda: now + HOUR - 1)
    await fast.add_turn(user("still here"))
    await fast.close()  # a released claim stays released, whatever the time
    async with await SessionLog.open(right, ID, clock=lambda: now) as log:
        await log.add_turn(user("right"))
    async with await SessionLog.open(ahead, ID, clock=lambda: now + HOUR) as log:
        assert [turn.text for turn in log.history.turns] == ["fast", "still here", "right"]
    await ahead.close()
    await right.close()


# --- what opening costs -------------------------------------------------------------------------


def test_opening_takes_steps_in_proportion_to_the_turns() -> None:
    async def steps(turns: int) -> int:
        setup = LogSetup()
        log = await setup.sleeper("begin")
        for n in range(turns // 2):
            turn = await log.add_turn(Turn("assistant", (ToolCall("call_0", "f", {"n": n}),), issuer=Issuer("openai")))
            log.history.add_entry(Entry(action="dropped", reason="a try failed", fault="policy"))
            await log.publish([ToolResult(turn.calls[0].id, "result")])
        await log.close()
        setup.store.rows_read = count = 0

        def counted(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event.endswith("call")

        sys.setprofile(counted)
        again = await setup.open()
        sys.setprofile(None)
        assert setup.store.rows_read <= turns + 10
        assert len(again.history) == turns + 1
        await again.close()
        await setup.store.close()
        return count

    few, many = asyncio.run(steps(300)), asyncio.run(steps(1200))
    assert many < few * 5

"""Two processes on one session: the second learns who has it, a holder that lost it is refused, nothing is corrupt."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.sessions.claim_holder import ID
from support.store.faulty_store import HookedStore, nothing
from toolglot import InputError, Text, Turn
from toolglot.runtime.log.claim import Holder, SessionClaim, is_dead, read_holder, this_machine, this_process
from toolglot.runtime.log.session_log import SessionLog, SessionTakenError
from toolglot.store import SqliteStore, Store, StoreError

HERE = Path(__file__).parents[2]
LEASE = 0.6
PATIENCE = 120.0


class Holding:
    """Another process that holds the session."""

    def __init__(self, file: Path, *holder: str, lease: float = LEASE) -> None:
        path = os.pathsep.join([str(HERE.parent / "src"), str(HERE)])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "support" / "sessions" / "claim_holder.py"), str(file), str(lease), *holder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def say(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def holding(file: Path, *holder: str, lease: float = LEASE) -> Iterator[Holding]:
    held = Holding(file, *holder, lease=lease)
    try:
        assert held.line() == "held"
        yield held
    finally:
        held.kill()
        assert held.process.stdin is not None
        assert held.process.stdout is not None
        held.process.stdin.close()
        held.process.stdout.close()


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


async def texts(store: Store) -> list[str]:
    async with await SessionLog.open(store, ID) as log:
        return [turn.text for turn in log.history.turns]


def test_the_second_process_learns_by_host_and_pid_who_has_the_session(tmp_path: Path) -> None:
    async def test() -> None:
        store = SqliteStore(tmp_path / "store.db")
        with pytest.raises(SessionTakenError, match="close it there") as caught:
            await SessionLog.open(store, ID)
        assert (caught.value.host, caught.value.pid) == (socket.gethostname(), held.process.pid)
        assert held.say("still here") == "written"
        await store.close()

    with holding(tmp_path / "store.db", lease=PATIENCE) as held:
        asyncio.run(test())


def test_a_killed_process_of_this_machine_loses_the_session_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        store = SqliteStore(tmp_path / "store.db")
        assert await texts(store) == ["one"]
        await store.close()

    with holding(tmp_path / "store.db", lease=3600) as held:
        held.say("one")
        held.kill()
        asyncio.run(test())


def test_a_killed_process_of_another_machine_loses_the_session_when_its_claim_runs_out(tmp_path: Path) -> None:
    async def test() -> None:
        now = [time.time()]

        def next_minute() -> float:
            now[0] += 60
            return now[0]

        store = SqliteStore(tmp_path / "store.db", clock=lambda: now[0])
        with pytest.raises(SessionTakenError, match="process 77 on elsewhere"):
            await SessionLog.open(store, ID)
        async with asyncio.timeout(PATIENCE):
            log = await SessionLog.open(store, ID, wait=7200, lease=LEASE, clock=next_minute)
        assert now[0] - time.time() > 3000
        await log.close()
        await store.close()

    with holding(tmp_path / "store.db", "elsewhere/77//x", lease=3600) as held:
        held.say("one")
        held.kill()
        asyncio.run(test())


def test_the_late_write_of_a_process_that_slept_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        store = SqliteStore(tmp_path / "store.db")
        log = await SessionLog.open(store, ID, wait=PATIENCE, lease=PATIENCE)
        held.process.send_signal(signal.SIGCONT)
        assert held.say("late") == f"taken {socket.gethostname()} {os.getpid()} 1"
        assert held.say("later") == f"taken {socket.gethostname()} {os.getpid()} 1"
        await log.add_turn(user("two"))
        await log.close()
        assert await texts(store) == ["one", "two"]
        await store.close()

    with holding(tmp_path / "store.db") as held:
        assert held.say("one") == "written"
        held.process.send_signal(signal.SIGSTOP)
        asyncio.run(test())


def test_a_new_session_whose_claim_runs_out_before_its_first_entry_is_still_its_own() -> None:
    async def test() -> None:
        now = [time.time()]

        async def be_slow(moment: str) -> None:
            if moment == "after keep sessions":
                now[0] += 2 * LEASE

        store = HookedStore(SqliteStore(":memory:", clock=lambda: now[0]), be_slow)
        log = await SessionLog.create(store, id=ID, lease=LEASE, clock=lambda: now[0])
        store.hook = nothing
        await log.add_turn(user("one"))
        await log.close()
        assert await texts(store) == ["one"]
        await store.close()

    asyncio.run(asyncio.wait_for(test(), PATIENCE))


def test_a_claim_is_renewed_and_its_loss_is_noticed() -> None:
    async def test() -> None:
        now = time.time()
        store = HookedStore(SqliteStore(":memory:", clock=lambda: now))
        renewals: asyncio.Queue[None] = asyncio.Queue()

        async def watch(moment: str) -> None:
            if moment == "after claim":
                renewals.put_nowait(None)

        renewed_again, may_go_on = asyncio.Event(), asyncio.Event()

        async def hold(moment: str) -> None:
            if moment == "before claim":
                await may_go_on.wait()
            await watch(moment)

        async def watch_once(moment: str) -> None:
            if moment == "after claim":
                store.hook = hold
                renewed_again.set()

        first = SessionClaim(store, "s", lease=0.03, clock=lambda: now)
        await first.take()
        store.hook = watch
        await renewals.get()  # renewed
        store.hook = fail
        await asyncio.sleep(0)
        store.hook = watch_once
        await renewed_again.wait()  # after the store had failed; the next time it waits
        await store.store.claim("sessions", "", "s", first.holder, until=0.0)
        assert await store.store.claim("sessions", "", "s", "other", until=now + 60) == "other"
        may_go_on.set()
        while first.lost_to is None:
            await renewals.get()
            await asyncio.sleep(0)
        assert first.lost_to == await first.current_holder() == "other"
        await first.release()  # takes nothing from the other
        with pytest.raises(SessionTakenError, match="held by 'other'"):
            await SessionClaim(store, "s", clock=lambda: now).take()
        await store.close()

    async def fail(moment: str) -> None:
        raise StoreError("locked")

    asyncio.run(asyncio.wait_for(test(), PATIENCE))


async def test_a_log_that_lost_its_claim_writes_nothing_into_the_list() -> None:
    store = HookedStore(SqliteStore(":memory:"))
    log = await SessionLog.create(store)
    await log.add_turn(user("one"))
    log._claim.lost_to = "other"
    store.moments.clear()
    await log.close()
    assert store.moments == []
    await store.close()


async def test_a_session_that_this_process_has_open_is_reported_as_such() -> None:
    store = SqliteStore(":memory:")
    async with await SessionLog.create(store, id="mine"):
        with pytest.raises(SessionTakenError, match="in this process already"):
            await SessionLog.open(store, "mine")
    await store.close()


@pytest.mark.parametrize("lease", [0, -1, float("inf"), float("nan"), "30"])
async def test_a_lease_is_a_time(lease: float) -> None:
    store = SqliteStore(":memory:")
    with pytest.raises(InputError, match="seconds"):
        await SessionLog.create(store, lease=lease)
    await store.close()


async def test_a_clock_that_is_far_behind_the_store_s_is_reported() -> None:
    store = SqliteStore(":memory:")
    with pytest.raises(StoreError, match="clock"):
        await SessionLog.create(store, clock=lambda: 1.0)
    await store.close()


def test_a_process_writes_itself_down_so_that_it_can_be_read() -> None:
    me = this_process()
    assert read_holder(str(me)) == me
    assert me.pid == os.getpid()
    assert this_process() != me
    for text in ("", "me", "a/b/c/d", "a/12345678901/c/d", "a/1/c"):
        assert read_holder(text) is None


def test_only_what_is_surely_dead_is_dead(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    machine = this_machine()
    assert is_dead(Holder("h", ended.pid, machine)) is bool(machine)
    assert not is_dead(Holder("h", ended.pid, "another"))
    assert not is_dead(Holder("h", ended.pid, ""))
    assert not is_dead(Holder("h", 0, machine))
    assert not is_dead(Holder("h", os.getpid(), machine))
    assert not is_dead(Holder("h", 1, machine))
    assert this_machine(tmp_path) == ""

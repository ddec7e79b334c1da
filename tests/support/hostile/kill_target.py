"""A process that makes processes to be killed: each runs a session on a store, from wherever the last one was left.

    python kill_target.py          reads orders, one JSON object a line; tells what became of each, one a line

Everything is imported, and one session was run, before the first process is forked, so that one takes as long as its
work. A forked process takes over the session, checks that nothing is missing and nothing too much, and goes on until
the work is done, or until it is killed: after a time, or by itself at a certain moment.

What is on the disk besides the store, all of it synchronised before anything goes on:
- `effects`: a line for each time that the tool did something, with the id of its call
- `commits`: the keys of the turns that the log reported as committed
- `wrong`: what should not be
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import select
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from msgspec import Struct

from support.store.faulty_store import HookedStore
from toolglot.conversation import ToolCall, ToolResult, Turn, Usage
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.runtime.log.session_log import SessionLog, SessionMissingError
from toolglot.runtime.session.models import UpstreamModels
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import ToolContext, tool
from toolglot.simulator import Simulator, url_of
from toolglot.store import SqliteStore, Store, StoreError, open_store
from toolglot.upstream import AsgiTransport, Upstream

T = TypeVar("T")

ID = "the-session"
WORDS = ("Do the first half.", "Do the second half.")
"""What the user says; older turns are compressed in between."""
STEPS = 2
"""Turns with calls in each half."""
CALLS = 2
"""Calls in each of them, run side by side."""
DONE = "All of it is done."
STORE_FAILED = 3
"""The exit code of a process whose store failed, where that may be."""


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """What a forked process does, and when it is killed."""

    folder: str
    store: str = ""
    """An address; otherwise a file in the folder."""
    kill_after: float | None = None
    """Seconds after which it is killed from outside."""
    may_fail: bool = False
    """Whether the store may fail: then the process ends with `STORE_FAILED`, and the next one takes over."""
    die_at: int | None = None
    """The moment at which it kills itself, counted from 1: before and after each commit and each thing a tool does."""


class Outcome(Struct, frozen=True):
    """What became of it."""

    was_killed: bool
    code: int
    seconds: float
    moments: int = 0
    """How many moments there were; only of one that was not killed."""


SCRIPT = {
    "rules": [
        {
            "when": {"results": step * CALLS},
            "reply": {"calls": [{"name": "append", "arguments": {"n": step * CALLS + n}} for n in range(CALLS)]},
        }
        for step in range(STEPS)
    ]
    + [{"reply": {"text": DONE}}]
}


def write_line(file: Path, line: str) -> None:
    """On the disk when it returns."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{line}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def lines_of(file: Path) -> list[str]:
    """Whole lines: a process may have been killed in the middle of one."""
    return file.read_text().split("\n")[:-1] if file.exists() else []


class Moments:
    """Counts moments, and kills this process at one of them."""

    def __init__(self, die_at: int | None) -> None:
        self.die_at = die_at
        self.count = 0

    def pass_by(self, moment: str) -> None:
        if "find" in moment:
            return
        self.count += 1
        if self.count == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

    async def at(self, moment: str) -> None:
        self.pass_by(moment)


class CommitLog:
    """The log of a session, that writes down every turn that it reported as committed."""

    def __init__(self, log: SessionLog, file: Path) -> None:
        self._log = log
        self._file = file

    @property
    def id(self) -> str:
        return self._log.id

    @property
    def history(self) -> History:
        return self._log.history

    def _note_commit(self, turn: Turn | None) -> None:
        if turn is not None:
            write_line(self._file, f"turn {turn.key}")

    async def add_turn(self, turn: Turn) -> Turn:
        kept = await self._log.add_turn(turn)
        self._note_commit(kept)
        return kept

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        kept = await self._log.commit(attempt, usage=usage, cost=cost)
        self._note_commit(kept)
        return kept

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        kept = await self._log.publish(results)
        self._note_commit(kept)
        return kept

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        await self._log.end_turn(reason, known)

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        write_line(self._file, "resetting")
        return await self._log.change(change, usage=usage, cost=cost)

    async def record_model(self, model: str) -> None:
        await self._log.record_model(model)

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        await self._log.record_start(call, arguments)

    async def record_result(self, result: ToolResult) -> None:
        await self._log.record_result(result)

    async def close(self) -> None:
        await self._log.close()


class Wrong(Exception):  # noqa: N818 - it is no error of this process
    """Something that must not be."""


def check(history: History, folder: Path) -> None:
    """Nothing that was committed is missing, nothing ran twice, and the log tells the truth of every call."""
    commits = lines_of(folder / "commits")
    last_reset = max((n for n, line in enumerate(commits) if line == "resetting"), default=-1)
    keys = {turn.key for turn in history.turns}
    missing = [line for line in commits[last_reset + 1 :] if line.removeprefix("turn ") not in keys]
    if missing:
        raise Wrong(f"committed turns are missing: {missing}")
    effects = lines_of(folder / "effects")
    if len(set(effects)) != len(effects):
        raise Wrong(f"a call ran twice: {effects}")
    unknown = [call_id for call_id in effects if call_id not in history.ledger]
    if unknown:
        raise Wrong(f"the ledger does not know calls that ran: {unknown}")
    if history.ledger.pending:
        raise Wrong(f"calls are pending: {history.ledger.pending}")
    for found in history.ledger:
        text = found.result.text if found.result is not None else ""
        if "never started" in text and found.id in effects:
            raise Wrong(f"{found.id} ran, and its result says that it never started")
        if text.startswith("appended") and (text != f"appended {found.id}" or found.id not in effects):
            raise Wrong(f"{found.id} did not run, or has not its own result: {text}")


async def opened(store: Store) -> SessionLog:
    try:
        return await SessionLog.open(store, ID)
    except SessionMissingError:
        return await SessionLog.create(store, id=ID, model="openai/gpt-5")


async def work(order: Order) -> int:
    """Take the session over and go on until all is done; how many moments there were."""
    folder = Path(order.folder)
    moments = Moments(order.die_at)
    kept = open_store(order.store) if order.store else SqliteStore(folder / "store.db", durable=True)
    store = HookedStore(kept, moments.at)
    log = await opened(store)
    check(log.history, folder)

    @tool
    async def append(n: int, context: ToolContext) -> str:
        """Append a line.

        Args:
            n: The number of the line.
        """
        moments.pass_by("before a tool")
        write_line(folder / "effects", context.call_id)
        moments.pass_by("after a tool")
        return f"appended {context.call_id}"

    simulator = Simulator(SCRIPT)
    upstream = Upstream(
        name="openai",
        target="openai",
        url=url_of("http://simulator", "openai"),
        transport=AsgiTransport(simulator),
        auth="bearer",
        key="any",
    )
    models = UpstreamModels({"openai": upstream})
    async with Session(
        model="openai/gpt-5", tools=[append], models=models, log=CommitLog(log, folder / "commits")
    ) as session:
        await go_on(session)
    refused = [f"{seen.status} {seen.error}" for seen in simulator.requests if seen.status != 200]
    if refused:
        raise Wrong(f"requests were refused: {refused}")
    check(log.history, folder)
    await log.close()
    await models.close()
    await store.close()
    return moments.count


def summarise(history: History) -> None:
    history.compress(summary="The first half is done.", before=history.turns[-1].key)


async def go_on(session: Session) -> None:
    """Do what is left of the work."""
    while True:
        history = session.history
        prompts = [turn.text for turn in history.turns if turn.role == "user" and turn.text in WORDS]
        is_answered = bool(history) and history.turns[-1].role == "assistant" and not history.turns[-1].calls
        if prompts and not is_answered:
            answer = await session.run()
        elif not prompts and not history:
            answer = await session.run(WORDS[0])
        elif prompts == [WORDS[0]]:
            await session._log.change(summarise)
            continue
        elif not prompts:
            answer = await session.run(WORDS[1])
        else:
            return
        if answer.failure is not None or answer.text != DONE:
            raise Wrong(f"no answer: {answer.stop} {answer.text!r} {answer.failure}")


# --- forking ----------------------------------------------------------------------------------------


def run_child(order: Order, written: int) -> NoReturn:
    """In the forked process: no way leads back into the parent's code."""
    code = 1
    try:
        faulthandler.enable()
        count = asyncio.run(work(order))
        os.write(written, str(count).encode())
        code = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is reported, and the process ends
        if order.may_fail and isinstance(error, StoreError):
            os._exit(STORE_FAILED)
        write_line(Path(order.folder) / "wrong", traceback.format_exc())
    os._exit(code)


def carry_out(order: Order) -> Outcome:
    """Fork, wait or kill, and tell."""
    if threading.active_count() != 1:
        raise RuntimeError(f"a process with threads cannot be forked: {threading.enumerate()}")
    read, written = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        run_child(order, written)
    os.close(written)
    handle = os.pidfd_open(pid)
    ended, _, _ = select.select([handle], [], [], order.kill_after)
    if not ended:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    seconds = time.monotonic() - begun
    os.close(handle)
    moments = os.read(read, 20)
    os.close(read)
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code == -signal.SIGKILL, code, seconds, int(moments or b"0"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(work(Order(folder)))
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        outcome = carry_out(Order(**json.loads(line)))
        print(json.dumps([outcome.was_killed, outcome.code, outcome.seconds, outcome.moments]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

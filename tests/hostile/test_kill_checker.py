"""The checker of killed sessions (`kill_target.check`) finds what must not be: each thing is planted, one at a time."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.hostile.kill_target import CALLS, ID, STEPS, WORDS, Order, Wrong, check, lines_of, work
from support.runs.run_folder import memory_folder
from toolglot.conversation import Text, ToolCall, ToolResult, Turn
from toolglot.history.history import History
from toolglot.runtime.log.session_log import SessionLog
from toolglot.store import SqliteStore


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        asyncio.run(work(Order(name)))
        yield Path(name)


def _history(folder: Path) -> History:
    """As the next process finds it."""

    async def steps() -> History:
        store = SqliteStore(folder / "store.db", durable=True)
        log = await SessionLog.open(store, ID)
        try:
            return log.history
        finally:
            await log.close()
            await store.close()

    return asyncio.run(steps())


def test_a_session_that_was_left_alone_is_right(folder: Path) -> None:
    check(_history(folder), folder)
    assert len(lines_of(folder / "effects")) == len(WORDS) * STEPS * CALLS


def _write(file: Path, lines: list[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))


def _plant_lost_turn(folder: Path) -> None:
    _write(folder / "commits", [*lines_of(folder / "commits"), "turn that-the-log-reported-as-committed"])


def _plant_second_run(folder: Path) -> None:
    effects = lines_of(folder / "effects")
    _write(folder / "effects", [*effects, effects[0]])


def _plant_unknown_run(folder: Path) -> None:
    _write(folder / "effects", [*lines_of(folder / "effects"), "a-call-that-no-model-made"])


def _plant_result_without_run(folder: Path) -> None:
    _write(folder / "effects", lines_of(folder / "effects")[:-1])


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (_plant_lost_turn, "committed turns are missing"),
        (_plant_second_run, "a call ran twice"),
        (_plant_unknown_run, "the ledger does not know"),
        (_plant_result_without_run, "did not run, or has not its own result"),
    ],
)
def test_what_is_wrong_on_the_disk_is_found(folder: Path, plant: Callable[[Path], None], words: str) -> None:
    history = _history(folder)
    check(history, folder)
    plant(folder)
    with pytest.raises(Wrong, match=words):
        check(history, folder)


def _with_call(*results: str) -> tuple[History, str]:
    """A history with one call and its results, and the id that the call has there."""
    history = History()
    history.append(Turn(role="user", blocks=(Text("Go."),)))
    call = ToolCall(id="call_1", name="append", arguments={"n": 1})
    history.append(Turn(role="assistant", blocks=(call,)), provider="openai")
    (found,) = history.ledger
    for text in results:
        history.record(ToolResult(call_id=found.id, content=text))
    return history, found.id


@pytest.mark.parametrize(
    ("results", "ran", "words"),
    [
        ((), False, "calls are pending"),
        (("it never started",), True, "says that it never started"),
        (("appended of-another-call",), True, "has not its own result"),
    ],
)
def test_what_is_wrong_in_the_history_is_found(tmp_path: Path, results: tuple[str, ...], ran: bool, words: str) -> None:
    history, id = _with_call(*results)
    _write(tmp_path / "effects", [id] * ran)
    with pytest.raises(Wrong, match=words):
        check(history, tmp_path)

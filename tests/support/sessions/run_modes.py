"""The ways in which a session can be run, as a table: whatever holds for one of them has to hold for all.

A mode says which session runs, and how it gets a message until it answers. Who adds a way to run sessions
adds a line to `MODES`; `test_runtime_modes.py` and `test_runtime_cancellation.py` hold it to what holds for the rest.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import pytest

from toolglot.cli.screen.foreground import Foreground
from toolglot.cli.screen.line_input import PipedLines
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.session.chat_session import Chat
from toolglot.cli.session.run_once import RunOnce
from toolglot.cli.session.session_options import SessionSettings
from toolglot.runtime.log.memory_log import Log
from toolglot.runtime.session.events import RunFinished, RunResult
from toolglot.runtime.session.session import Session


class Mode(NamedTuple):
    """A way to run a session."""

    of: Callable[[Session, Log | None], Session]
    """The session that is run, where another one is open; what it writes to, if any."""
    run: Callable[[Session, str], Awaitable[RunResult]]
    """Say something to it, and wait for its answer."""


async def to_the_end(session: Session, prompt: str) -> RunResult:
    return await session.run(prompt)


async def streamed_run(session: Session, prompt: str) -> RunResult:
    events = [event async for event in session.stream(prompt)]
    ended = [event for event in events if isinstance(event, RunFinished)]
    assert ended == events[-1:], "it ends once, and nothing follows"
    return ended[0].result


def _unattended_terminal() -> tuple[Terminal, Foreground]:
    """A terminal without a user."""
    return Terminal(io.StringIO(), io.StringIO()), Foreground(PipedLines(io.StringIO()))


async def as_chat(session: Session, prompt: str) -> RunResult:
    return await Chat(session, None, *_unattended_terminal()).send(prompt)


async def as_run(session: Session, prompt: str) -> RunResult:
    return (await RunOnce(SessionSettings(), *_unattended_terminal()).answer(session, prompt)).answer


MODES: Final[dict[str, Mode]] = {
    "run": Mode(lambda session, _: session, to_the_end),
    "stream": Mode(lambda session, _: session, streamed_run),
    "spawn": Mode(lambda session, log: session.spawn(log=log), to_the_end),
    "toolglot chat": Mode(lambda session, _: session, as_chat),
    "toolglot run": Mode(lambda session, _: session, as_run),
}

every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)

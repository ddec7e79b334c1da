"""A conversation at the terminal: what `toolglot chat` does when its options are read.

    read a message ──▶ a command: do it
                   ──▶ anything else: say it, and show what comes

Law: everything that changes the session is done by the session. Whatever happens to an answer, the prompt comes back.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Final, TextIO, cast

from toolglot.cli.screen.answer_problem import problem_of
from toolglot.cli.screen.foreground import Foreground, InterruptedReadingError
from toolglot.cli.screen.history_view import show_recent
from toolglot.cli.screen.line_input import TypedLines, quiet_controls, reader_of, visible
from toolglot.cli.screen.status_line import SharedStream
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.cli.screen.transcript_view import TranscriptView, footer
from toolglot.cli.session.approval import Approvals, AskedApproval, tell_denied
from toolglot.cli.session.chat_commands import COMMANDS, Leave, Next, do
from toolglot.cli.session.session_host import SessionHost, Wanted, as_input_error
from toolglot.cli.session.session_options import SessionSettings, state_folder
from toolglot.cli.session.session_turn import say
from toolglot.errors import InputError, ToolglotError
from toolglot.runtime.log.session_log import SessionTakenError
from toolglot.runtime.session.events import Answer
from toolglot.runtime.session.session import Session

PROMPT: Final = "> "
MORE: Final = ". "
FAILED: Final = 1


def chat(settings: SessionSettings, terminal: Terminal) -> int:
    """Talk until somebody leaves; the exit code."""
    completion = Completion()
    memory = state_folder() / "chat_input.jsonl" if settings.store else None
    foreground = Foreground(reader_of(memory=memory, complete=completion.of))
    hall = ChatSessions(settings, terminal, foreground, completion)
    try:
        with quiet_controls(), hall.streams():
            return foreground.run(hall.run)
    except ToolglotError as error:
        raise as_input_error(error) from None


class Completion:
    """The words that may follow, at the prompt."""

    def __init__(self) -> None:
        self.models: Sequence[str] = ()
        self.sessions: Sequence[str] = ()

    def of(self, line: str) -> Sequence[str]:
        command, has_more, _ = line.partition(" ")
        if not line.startswith("/"):
            return ()
        if not has_more:
            return [f"/{name}" for name in COMMANDS]
        return {"/model": self.models, "/resume": self.sessions}.get(command, ())


class ChatSessions:
    """One session after the other, until somebody leaves."""

    def __init__(
        self,
        settings: SessionSettings,
        terminal: Terminal,
        foreground: Foreground,
        completion: Completion | None = None,
    ) -> None:
        self._settings = settings
        self._terminal = terminal
        self._foreground = foreground
        self._completion = completion or Completion()
        self._is_person = foreground.reader.is_person
        # What other programs read is the answers; everything about them is for people.
        self._view = (
            TranscriptView(terminal.out, plain=settings.plain)
            if self._is_person
            else TranscriptView(terminal.err, terminal.out)
        )

    @contextmanager
    def streams(self) -> Iterator[None]:
        """What tools print goes around the status line; where a program reads the answers, not among them."""
        if not self._is_person:
            with redirect_stdout(sys.stderr):
                yield
            return
        line = self._view.status
        out, err = cast("TextIO", SharedStream(sys.stdout, line)), cast("TextIO", SharedStream(sys.stderr, line))
        with redirect_stdout(out), redirect_stderr(err):
            yield

    async def run(self) -> int:
        ask = AskedApproval(self._foreground, self._view) if self._is_person else None
        approvals = Approvals(self._settings.allow, ask)
        async with SessionHost(self._settings, approve=approvals) as host:
            code = await self._talk(host)
        tell_denied(approvals, self._terminal)
        return code

    async def _talk(self, host: SessionHost) -> int:
        following: Wanted | None = host.wanted
        model, failed, is_shown = "", False, True
        self._completion.models = host.models.names()
        self._foreground.interrupted = _too_late
        while following is not None:
            async with host.open(following, model=model) as session:
                self._completion.sessions = [info.id for info in await host.sessions()]
                room = Chat(session, host, self._terminal, self._foreground, self._view)
                self._greet(host, session, is_shown=is_shown)
                ended = await room.talk()
                following, model, is_shown = ended.wanted, ended.model, ended.is_shown
                failed = failed or room.has_failed
        if self._foreground.is_ending:
            return 128 + self._foreground.signal
        return FAILED if failed and not self._is_person else 0

    def _greet(self, host: SessionHost, session: Session, *, is_shown: bool) -> None:
        """Who is there. `is_shown`: with what was said last."""
        page = self._terminal.out if self._is_person else self._terminal.err
        kept = f"session {session.id}" if host.store is not None else "nothing is kept"
        page.line(f"{page.paint(clean(session.model), 'bold')} · {kept}{_count(session)}")
        if host.models.is_simulated(session.model):
            page.line(page.paint("simulated: no real model answers. Set a key, or see toolglot init.", "yellow"))
        for note in host.notes(session):
            self._terminal.note(note)
        if self._is_person:
            page.line(page.paint("/help tells what there is, Ctrl-D leaves", "dim"))
            if is_shown and len(session.history):
                show_recent(self._view, session.history.turns)
                page.line()
        page.stream.flush()
        for note in host.recovery_notes():
            self._terminal.note(note)


class Chat:
    """The talk in one session."""

    def __init__(
        self,
        session: Session,
        host: SessionHost | None,
        terminal: Terminal,
        foreground: Foreground,
        view: TranscriptView | None = None,
    ) -> None:
        self.session = session
        self.host = host
        self.terminal = terminal
        self.foreground = foreground
        self.view: TranscriptView = view or TranscriptView(terminal.out)
        self.has_failed: bool = False
        self.prefill: str = ""
        """What stands at the next prompt already."""

    @property
    def page(self) -> TerminalPage:
        """Where commands write. stdout has nothing but answers, where no person reads it."""
        return self.terminal.out if self.foreground.reader.is_person else self.terminal.err

    def is_simulated(self, model: str) -> bool:
        return self.host is not None and self.host.models.is_simulated(model)

    # --- reading ------------------------------------------------------------------------------------

    async def talk(self) -> Next:
        """Until somebody leaves this session."""
        while True:
            try:
                said = await self._message()
            except EOFError:
                self._end_prompt()
                return Leave
            except InputError as error:
                self.terminal.error(error)
                continue
            if not said.strip():
                continue
            self._remember(said)
            following = await self._heard(said)
            if following is not None:
                return following

    async def _heard(self, said: str) -> Next | None:
        """Do what was said; what follows, where this session is left."""
        try:
            if said.startswith("/"):
                return await do(self, said)
            await self.say(said)
        except SessionTakenError:
            raise
        except ToolglotError as error:
            self.view.end_line()
            self.has_failed = True
            self.terminal.error(as_input_error(error))
        return Leave if self.foreground.is_ending else None

    async def _message(self) -> str:
        """What is said next: lines, as long as they end in a backslash. The second Ctrl-C is the end."""
        interrupted = False
        while True:
            prefill, self.prefill = self.prefill, ""
            try:
                return await self._lines(prefill)
            except InterruptedReadingError:
                self._end_prompt()
                if interrupted:
                    raise EOFError from None
                interrupted = True
                self.view.note("once more, or Ctrl-D, to leave")

    async def _lines(self, prefill: str) -> str:
        page = self.terminal.out
        lines = [await self.foreground.line(visible(page.paint(PROMPT, "bold", "green")), prefill)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self.foreground.line(visible(page.paint(MORE, "green"))))
        return "\n".join(lines)

    def _end_prompt(self) -> None:
        if self.foreground.reader.is_person:
            self.terminal.out.line()

    def _remember(self, said: str) -> None:
        reader = self.foreground.reader
        if isinstance(reader, TypedLines):
            reader.remember(said)

    # --- saying -------------------------------------------------------------------------------------

    async def say(self, said: str | None) -> Answer:
        """Say it, and show what comes of it."""
        began = time.monotonic()
        timeout = self.host.settings.timeout if self.host is not None else None
        try:
            turned = await say(
                self.session,
                said,
                self.view.show,
                foreground=self.foreground,
                timeout=timeout,
                again=self._interrupted_again,
                stopped=self.view.stopping,
            )
        finally:
            self.view.rest()
        answer = turned.answer
        problem = problem_of(answer, at_prompt=self.foreground.reader.is_person)
        if problem is not None:
            self.has_failed = True
            self.terminal.out.stream.flush()
            self.terminal.error(problem)
        elif answer.stop == "cancelled":
            self.view.note(_stopped(answer, is_late=turned.is_late))
        if self.foreground.reader.is_person and answer.stop != "cancelled":
            took = time.monotonic() - began
            self.view.note(footer(answer, took, simulated=self.is_simulated(answer.model)))
        if self.foreground.reader.is_person:
            self.terminal.out.line()
        self.terminal.out.stream.flush()
        return answer

    def _interrupted_again(self, _: int) -> None:
        """Whoever interrupts twice does not want to wait for a tool that does not end."""
        self.session.scheduler.stop_waiting()


def _stopped(answer: Answer, *, is_late: bool) -> str:
    """That an answer was stopped, and what is kept of it."""
    why = "stopped: the time is over" if is_late else "stopped"
    is_kept = answer.turn is not None and answer.turn.metadata.interrupted
    return f"{why}; the answer is kept up to here, marked as interrupted" if is_kept else why


def _too_late(_: int) -> None:
    """Ctrl-C that comes when an answer is over already stops nothing; whoever is told to end reads no more lines."""


def _count(session: Session) -> str:
    count = len(session.history)
    return f" · {count} turn{'s' if count != 1 else ''}" if count else ""

"""Runs `toolglot chat`.

    read a line ──▶ a command: run it
                ──▶ a message: send it, and show the reply

Law: only `Session` changes the session. Whatever happens to a reply, the prompt comes back.
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
from toolglot.cli.screen.line_input import TypedLines, hide_control_echo, line_reader, readline_prompt
from toolglot.cli.screen.status_line import SharedStream
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean, plural
from toolglot.cli.screen.transcript_view import TranscriptView, footer
from toolglot.cli.session.approval import Approvals, PromptedApproval, note_denied
from toolglot.cli.session.chat_commands import COMMANDS, LEAVE, NextSession, run_command
from toolglot.cli.session.session_host import SessionChoice, SessionHost, as_input_error
from toolglot.cli.session.session_options import SessionSettings, state_folder
from toolglot.cli.session.session_turn import send_message
from toolglot.errors import InputError, ToolglotError
from toolglot.runtime.log.session_log import SessionTakenError
from toolglot.runtime.session.events import RunResult
from toolglot.runtime.session.session import Session

PROMPT: Final = "> "
CONTINUATION: Final = ". "
FAILED: Final = 1


def chat(settings: SessionSettings, terminal: Terminal) -> int:
    """Run the chat, and return its exit code."""
    completion = Completion()
    history_file = state_folder() / "chat_input.jsonl" if settings.store else None
    foreground = Foreground(line_reader(history_file=history_file, complete=completion.of))
    sessions = ChatSessions(settings, terminal, foreground, completion)
    try:
        with hide_control_echo(), sessions.streams():
            return foreground.run(sessions.run)
    except ToolglotError as error:
        raise as_input_error(error) from None


class Completion:
    """Completions at the prompt."""

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
    """Runs one session after the other, until the user leaves."""

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
        self._is_interactive = foreground.reader.is_interactive
        # In a pipe, stdout gets the replies, and stderr everything else.
        self._view = (
            TranscriptView(terminal.out, plain=settings.plain)
            if self._is_interactive
            else TranscriptView(terminal.err, terminal.out)
        )

    @contextmanager
    def streams(self) -> Iterator[None]:
        """Redirect the output of tools: around the status line, or to stderr in a pipe."""
        if not self._is_interactive:
            with redirect_stdout(sys.stderr):
                yield
            return
        line = self._view.status
        out, err = cast("TextIO", SharedStream(sys.stdout, line)), cast("TextIO", SharedStream(sys.stderr, line))
        with redirect_stdout(out), redirect_stderr(err):
            yield

    async def run(self) -> int:
        ask = PromptedApproval(self._foreground, self._view) if self._is_interactive else None
        approvals = Approvals(self._settings.allow, ask)
        async with SessionHost(self._settings, approve=approvals) as host:
            code = await self._run_sessions(host)
        note_denied(approvals, self._terminal)
        return code

    async def _run_sessions(self, host: SessionHost) -> int:
        following: SessionChoice | None = host.wanted
        model, failed, is_shown = "", False, True
        self._completion.models = host.models.names()
        self._foreground.interrupted = _ignore_signal
        while following is not None:
            async with host.open(following, model=model) as session:
                self._completion.sessions = [info.id for info in await host.sessions()]
                chat = Chat(session, host, self._terminal, self._foreground, self._view)
                self._greet(host, session, is_shown=is_shown)
                ended = await chat.talk()
                following, model, is_shown = ended.wanted, ended.model, ended.is_shown
                failed = failed or chat.has_failed
        if self._foreground.is_ending:
            return 128 + self._foreground.signal
        return FAILED if failed and not self._is_interactive else 0

    def _greet(self, host: SessionHost, session: Session, *, is_shown: bool) -> None:
        """Print the model, the session and notes. `is_shown`: also the end of the conversation."""
        page = self._terminal.out if self._is_interactive else self._terminal.err
        kept = f"session {session.id}" if host.store is not None else "not stored"
        page.line(f"{page.paint(clean(session.model), 'bold')} · {kept}{_count(session)}")
        if host.models.is_simulated(session.model):
            page.line(page.paint("simulated: no real model answers. Set a key, or run toolglot init.", "yellow"))
        for note in host.notes(session):
            self._terminal.note(note)
        if self._is_interactive:
            page.line(page.paint("/help lists the commands, Ctrl-D leaves", "dim"))
            if is_shown and len(session.history):
                show_recent(self._view, session.history.turns)
                page.line()
        page.stream.flush()
        for note in host.recovery_notes():
            self._terminal.note(note)


class Chat:
    """The chat in one session."""

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
        """Text that the next prompt is prefilled with."""

    @property
    def page(self) -> TerminalPage:
        """Where commands write. In a pipe, stdout has only replies."""
        return self.terminal.out if self.foreground.reader.is_interactive else self.terminal.err

    def is_simulated(self, model: str) -> bool:
        return self.host is not None and self.host.models.is_simulated(model)

    # --- reading ------------------------------------------------------------------------------------

    async def talk(self) -> NextSession:
        """Read and handle lines until the user leaves this session."""
        while True:
            try:
                message = await self._message()
            except EOFError:
                self._end_prompt()
                return LEAVE
            except InputError as error:
                self.terminal.error(error)
                continue
            if not message.strip():
                continue
            self._remember(message)
            following = await self._handle(message)
            if following is not None:
                return following

    async def _handle(self, message: str) -> NextSession | None:
        """Run a command or send a message. Returns the next session, if the user leaves this one."""
        try:
            if message.startswith("/"):
                return await run_command(self, message)
            await self.send(message)
        except SessionTakenError:
            raise
        except ToolglotError as error:
            self.view.end_line()
            self.has_failed = True
            self.terminal.error(as_input_error(error))
        return LEAVE if self.foreground.is_ending else None

    async def _message(self) -> str:
        """The next message; a backslash at the end of a line continues it. A second Ctrl-C raises `EOFError`."""
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
                self.view.note("press Ctrl-C again, or Ctrl-D, to leave")

    async def _lines(self, prefill: str) -> str:
        page = self.terminal.out
        lines = [await self.foreground.line(readline_prompt(page.paint(PROMPT, "bold", "green")), prefill)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(await self.foreground.line(readline_prompt(page.paint(CONTINUATION, "green"))))
        return "\n".join(lines)

    def _end_prompt(self) -> None:
        if self.foreground.reader.is_interactive:
            self.terminal.out.line()

    def _remember(self, message: str) -> None:
        reader = self.foreground.reader
        if isinstance(reader, TypedLines):
            reader.remember(message)

    # --- sending -------------------------------------------------------------------------------------

    async def send(self, message: str | None) -> RunResult:
        """Send a message, and show the reply."""
        began = time.monotonic()
        timeout = self.host.settings.timeout if self.host is not None else None
        try:
            result = await send_message(
                self.session,
                message,
                self.view.show,
                foreground=self.foreground,
                timeout=timeout,
                on_second_signal=self._interrupted_again,
                on_stop=self.view.stopping,
            )
        finally:
            self.view.rest()
        answer = result.answer
        problem = problem_of(answer, in_chat=self.foreground.reader.is_interactive)
        if problem is not None:
            self.has_failed = True
            self.terminal.out.stream.flush()
            self.terminal.error(problem)
        elif answer.stop == "cancelled":
            self.view.note(_stop_note(answer, timed_out=result.timed_out))
        if self.foreground.reader.is_interactive and answer.stop != "cancelled":
            took = time.monotonic() - began
            self.view.note(footer(answer, took, simulated=self.is_simulated(answer.model)))
        if self.foreground.reader.is_interactive:
            self.terminal.out.line()
        self.terminal.out.stream.flush()
        return answer

    def _interrupted_again(self, _: int) -> None:
        """On a second Ctrl-C, stop waiting for a tool that does not end."""
        self.session.scheduler.stop_waiting()


def _stop_note(answer: RunResult, *, timed_out: bool) -> str:
    """The note that a reply was stopped, and what is kept of it."""
    why = "stopped: timeout" if timed_out else "stopped"
    is_kept = answer.turn is not None and answer.turn.metadata.interrupted
    return f"{why}; the reply so far is kept, marked as interrupted" if is_kept else why


def _ignore_signal(_: int) -> None:
    """Ignore a Ctrl-C that comes after the end of a reply. After SIGTERM, no more lines are read anyway."""


def _count(session: Session) -> str:
    count = len(session.history)
    return f" · {plural(count, 'turn')}" if count else ""

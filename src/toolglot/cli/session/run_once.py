"""Runs `toolglot run`: one prompt, one reply.

Law: stdout has only the reply, or the requested JSON, whatever tools print.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Final

from toolglot.cli.screen.answer_problem import problem_of
from toolglot.cli.screen.foreground import Foreground
from toolglot.cli.screen.line_input import StderrLines, hide_control_echo
from toolglot.cli.screen.terminal import Terminal, clean_lines
from toolglot.cli.screen.transcript_view import TranscriptView, footer
from toolglot.cli.session.approval import Approvals, PromptedApproval, note_denied
from toolglot.cli.session.run_record import RunRecord, encode_json, event_line
from toolglot.cli.session.session_host import SessionHost, as_input_error
from toolglot.cli.session.session_options import SessionSettings
from toolglot.cli.session.session_turn import TurnResult, send_message
from toolglot.errors import ToolglotError
from toolglot.runtime.log.session_log import SessionTakenError
from toolglot.runtime.session.events import SessionEvent
from toolglot.runtime.session.session import Session

FAILED: Final = 1
INTERRUPTED: Final = 130


def run_once(
    settings: SessionSettings, prompt: str, terminal: Terminal, *, output_format: str = "text", quiet: bool = False
) -> int:
    """Send the prompt, print the reply, and return the exit code."""
    foreground = Foreground(StderrLines(sys.stdin, sys.stderr))
    once = RunOnce(settings, terminal, foreground, output_format=output_format, quiet=quiet)
    try:
        with (
            hide_control_echo(),
            contextlib.redirect_stdout(sys.stderr),
        ):  # the output of tools is not the reply
            return foreground.run(lambda: once.run(prompt))
    except ToolglotError as error:
        raise as_input_error(error) from None


def exit_at_once(number: int) -> None:
    """Exit on a second signal without waiting. What was committed is kept."""
    os._exit(128 + number)


class RunOnce:
    """A run and its output."""

    def __init__(
        self,
        settings: SessionSettings,
        terminal: Terminal,
        foreground: Foreground,
        *,
        output_format: str = "text",
        quiet: bool = False,
    ) -> None:
        self._settings = settings
        self._terminal = terminal
        self._foreground = foreground
        self._output_format = output_format
        self._is_quiet = quiet
        self._is_shown = terminal.err.is_terminal and not quiet
        self._view = TranscriptView(terminal.err, shows_words=False)
        self._record = RunRecord()

    async def run(self, prompt: str) -> int:
        can_ask = self._foreground.reader.is_interactive
        approvals = Approvals(self._settings.allow, PromptedApproval(self._foreground, self._view) if can_ask else None)
        began = time.monotonic()
        host = SessionHost(self._settings, approve=approvals, only_by_name=True)
        async with host, host.open(host.wanted) as session:
            self._begin(host, session)
            try:
                result = await self.answer(session, prompt)
            except SessionTakenError as error:
                self._terminal.error(as_input_error(error))
                return FAILED
            code = self._end(host, session, result, time.monotonic() - began)
        if not self._is_quiet:
            note_denied(approvals, self._terminal)
        return code

    async def answer(self, session: Session, prompt: str) -> TurnResult:
        """Send the prompt to a session, and show what happens."""
        try:
            return await send_message(
                session,
                prompt,
                self._show,
                foreground=self._foreground,
                timeout=self._settings.timeout,
                on_second_signal=exit_at_once,
            )
        finally:
            self._view.rest()

    def _show(self, event: SessionEvent) -> None:
        self._record.add(event)
        if self._is_shown:
            self._view.show(event)
        if self._output_format == "stream-json":
            line = event_line(event)
            if line is not None:
                self._terminal.write_data(encode_json(line))

    def _begin(self, host: SessionHost, session: Session) -> None:
        if self._is_quiet:
            return
        if host.models.is_simulated(session.model):
            self._terminal.note(
                f"{session.model} is simulated: no real model answers. Set a provider key, or run toolglot init."
            )
        for note in (*host.notes(session), *host.recovery_notes()):
            self._terminal.note(note)
        self._terminal.err.stream.flush()

    def _end(self, host: SessionHost, session: Session, result: TurnResult, took: float) -> int:
        answer = result.answer
        simulated = host.models.is_simulated(answer.model or session.model)
        kept = session.id if self._settings.store else None
        reason, code = self._reason_and_code(result)
        if self._output_format == "text":
            self._print(answer.text)
        else:
            document = self._record.document(answer, session=kept, simulated=simulated, reason=reason)
            if self._output_format == "stream-json":
                self._terminal.write_data(encode_json({"event": "ended", **document}))
            else:
                self._terminal.write_data(encode_json(document, pretty=True))
        problem = problem_of(answer)
        if problem is not None:
            self._terminal.error(problem)
        elif answer.stop == "cancelled" and not self._is_quiet:
            self._terminal.note(f"stopped: {reason}; the session is stored" if kept else f"stopped: {reason}")
        if self._is_shown:
            self._view.note(f"{footer(answer, took, simulated=simulated)}{f' · session {kept}' if kept else ''}")
        return code

    def _reason_and_code(self, result: TurnResult) -> tuple[str, int]:
        """Why it ended, and the exit code."""
        answer = result.answer
        if answer.stop == "stop":
            return "", 0
        if answer.stop != "cancelled":
            problem = problem_of(answer)
            return (problem.message if problem is not None else ""), FAILED
        if result.timed_out:
            return f"timeout of {self._settings.timeout:g} s (--timeout)", FAILED
        return "interrupted", 128 + self._foreground.signal if self._foreground.signal else INTERRUPTED

    def _print(self, text: str) -> None:
        page = self._terminal.out
        if not text.strip():
            return
        if page.is_terminal:
            page.stream.write(clean_lines(text).rstrip("\n") + "\n")
            page.stream.flush()
        else:
            self._terminal.write_data(text.encode("utf-8", "surrogatepass") + (b"" if text.endswith("\n") else b"\n"))

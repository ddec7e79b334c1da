"""Shows a session live: streamed text, dimmed thinking, calls with their state, time and result.

    → weather {"city": "Bonn"}
    ✓ weather 0.2 s: 7 degrees

Markdown is rendered block by block if the page supports it. A status line shows what the session is waiting for.

Laws: no control character of a model or a tool reaches a terminal. What was written is final; if an attempt fails, a
note says which text is discarded. While a question is open, everything else waits.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import msgspec

from toolglot.cli.screen.markdown_view import MarkdownView
from toolglot.cli.screen.status_line import Status, StatusLine, fit_end
from toolglot.cli.screen.terminal import TerminalPage, clean, clean_lines, plural
from toolglot.cli.screen.word_wrap import WordWrap
from toolglot.conversation import Text, ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.completion import status_of
from toolglot.runtime.scheduler.call_states import FINAL, CallChange
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    CallChanged,
    CallReceived,
    ChangeReported,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
    RunFinished,
    RunResult,
    SessionEvent,
    TextReceived,
    ThinkingReceived,
    TurnCommitted,
)
from toolglot.runtime.session.model_call import RUN_STOPPED

RESULT_LINES: Final = 4
AGAIN: Final = "press Ctrl-C again to continue without it"
PREVIEW_MARGIN: Final = 16
"""Columns that the preview of a block leaves for the elapsed time."""

_REMOVING_ACTIONS: Final = frozenset(("dropped", "filtered", "compressed", "ignored", "superseded"))
"""Actions that remove something. Other losses, such as a narrower schema, are shown as changes."""
_MARKS: Final = {"start": "→", "success": "✓", "error": "✗", "cancelled": "⊘", "more": "…", "back": "⌫"}
_PLAIN: Final = {"start": "->", "success": "ok", "error": "!!", "cancelled": "--", "more": "...", "back": "<<"}
_COLORS: Final = {"success": "green", "error": "red", "cancelled": "yellow"}


def safe_line(text: str, max_characters: int = 0) -> str:
    """Text that is safe on a terminal, in one line of at most `max_characters`; 0: no limit."""
    line = clean(" ".join(text[: 4 * max_characters if max_characters else None].split()))
    return line if not max_characters or len(line) <= max_characters else f"{line[: max_characters - 1].rstrip()}…"


def arguments_of(call: ToolCall) -> str:
    """The arguments of a call, in one line."""
    if call.arguments is None:
        return call.raw_input or ""
    return msgspec.json.encode(call.arguments).decode() if call.arguments else ""


def text_of(result: ToolResult) -> str:
    """The text of a result, one line or more for each block."""
    if isinstance(result.content, str):
        return result.content
    return "\n".join(block.text for block in result.content or () if isinstance(block, Text))


class RunningTool:
    """A running tool call."""

    __slots__ = ("began", "name", "progress")

    def __init__(self, name: str, began: float) -> None:
        self.name = name
        self.began = began
        self.progress = ""


class TranscriptView:
    """Shows the events of a session on a page."""

    def __init__(
        self,
        page: TerminalPage,
        answers: TerminalPage | None = None,
        *,
        shows_words: bool = True,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answers`: where to write complete replies, separate from everything else. `shows_words`: whether to show the
        model's text. `plain`: no Markdown rendering, and no status line."""
        self.page = page
        self._answers = answers
        self._held: list[str] = []
        """Text of the current turn, until it is known whether it is the reply or precedes calls."""
        self._shows_words = shows_words
        self._is_plain = plain
        self._clock = clock
        self._marks = _MARKS if page.can_write("".join(_MARKS.values())) else _PLAIN
        self._markdown = None if plain or not shows_words or answers is not None else MarkdownView.of(page)
        self._kind = ""
        """What is being written: text, thinking, or markdown, which writes whole lines only. Empty: nothing."""
        self._is_ended = True
        """Whether the last text of the model ended its line."""
        self._running: dict[str, RunningTool] = {}
        self._awaited: Status | None = None
        """The model that is called, or the tool call that it is writing."""
        self._stopping: float | None = None
        """When stopping began; None: it has not."""
        self.status = StatusLine(page, self._status_now, clock, is_on=not plain)
        self._waiting: list[Callable[[], None]] | None = None
        self._wrap = WordWrap(lambda: self.page.width)

    # --- events -------------------------------------------------------------------------------------

    def show(self, event: SessionEvent) -> None:
        if self._waiting is not None:
            self._waiting.append(lambda: self._show(event))
        else:
            self._show(event)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold back all output while a question is open."""
        self.end_line()
        self._waiting = []
        try:
            with self.status.hold():
                yield
        finally:
            waiting, self._waiting = self._waiting, None
            for show in waiting:
                show()

    def _show(self, event: SessionEvent) -> None:
        match event:
            case TextReceived():
                self._show_words(event.text)
            case ThinkingReceived():
                self._write(event.text, "thinking")
            case RequestStarted():
                self._show_model_call(event)
            case CallReceived():
                self.end_line()
                self._await(f"calling {safe_line(event.call.name, 60)}")
            case CallChanged():
                self._show_call_change(event.change)
            case AttemptDiscarded():
                self._show_dropped(event)
            case ModelSwitched():
                self.note(f"{event.before} {self._marks['start']} {event.after}: {event.reason}")
            case HistoryCompressed():
                self.note(f"replaced {plural(event.turns, 'turn')} by a summary")
            case ChangeReported() if event.entry.fault == "loss":
                self.note(f"{'lost' if event.entry.action in _REMOVING_ACTIONS else 'changed'}: {event.entry.reason}")
            case TurnCommitted():
                self._show_turn(event.turn)
            case RunFinished():
                self.rest()
                self._write_answer(event.result)
            case _:
                pass
        self.status.refresh()
        self.page.stream.flush()

    def _show_model_call(self, event: RequestStarted) -> None:
        self.end_line()
        again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
        self._await(f"{safe_line(event.model, 80)}{again}")

    # --- waiting -------------------------------------------------------------------------

    def _await(self, label: str) -> None:
        if self.page.is_live:
            self._awaited = Status(label, self._clock())

    def _status_now(self) -> Status | None:
        if self._waiting is not None or self._kind not in ("", "markdown"):
            return None
        if self._stopping is not None:
            names = ", ".join(dict.fromkeys(tool.name for tool in self._running.values()))
            return Status(f"cancelling {names}" if names else "stopping", self._stopping, AGAIN if names else "")
        if self._running:
            tool = next(iter(self._running.values()))
            others = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
            return Status(f"{tool.name}{others}", tool.began, tool.progress)
        if self._markdown is not None and self._awaited is not None and (coming := self._markdown.pending):
            coming = fit_end(safe_line(coming), self.page.width - PREVIEW_MARGIN)
            return Status(coming, self._awaited.began)
        return self._awaited

    def stopping(self) -> None:
        """Show that the session is stopping, and how to stop waiting for a tool."""
        if self._stopping is not None:
            return
        self._stopping = self._clock()
        if self.page.is_live and not self._is_plain:
            if self._kind != "markdown":
                self.end_line()
            self.status.draw()
        elif self._running:
            names = ", ".join(dict.fromkeys(tool.name for tool in self._running.values()))
            self.note(f"cancelling {names}; {AGAIN}")

    @contextmanager
    def busy(self, label: str) -> Iterator[None]:
        """Show a status line while the block runs."""
        self._await(label)
        self.status.draw()
        try:
            yield
        finally:
            self.rest()

    def rest(self) -> None:
        """Clear the status line: nothing is running."""
        self.end_line()
        self._running.clear()
        self._awaited = self._stopping = None

    def _show_words(self, text: str) -> None:
        if self._answers is None:
            self._write(text, "text")
        else:
            self._held.append(text)

    def _show_turn(self, turn: Turn) -> None:
        text, self._held = "".join(self._held), []
        if turn.calls or turn.metadata.interrupted:
            self._write(text, "text")

    def _write_answer(self, answer: RunResult) -> None:
        """Write the reply to the page for replies."""
        page, self._held = self._answers, []
        if page is None or not answer.text.strip() or answer.stop == "cancelled":
            return
        if answer.turn is not None and answer.turn.calls:
            return
        page.stream.write(clean_lines(answer.text).strip("\n") + "\n")
        page.stream.flush()

    def _show_dropped(self, event: AttemptDiscarded) -> None:
        self.end_line()
        self._held = []
        is_above = self._shows_words and self._answers is None
        if not is_above and not event.shown.calls:
            return
        what = "the text above" if is_above else "a call"
        words = safe_line(event.shown.text, 40)
        since = f" from “{words}” on" if words and is_above else ""
        reason = f" ({safe_line(event.reason, 160)})" if event.reason not in ("", RUN_STOPPED) else ""
        self._line(f"{self._marks['back']} discarded: {what}{since}{reason}", "yellow")

    # --- calls --------------------------------------------------------------------------------------

    def _show_call_change(self, change: CallChange) -> None:
        call = change.call
        if change.state == "executing":
            if change.progress:
                if call.id in self._running:
                    self._running[call.id].progress = safe_line(change.progress, 200)
            elif change.attempt > 1:
                self._line(f"{self._marks['start']} {safe_line(call.name, 60)} (attempt {change.attempt})", "cyan")
            else:
                self._awaited = None
                self._running[call.id] = RunningTool(safe_line(call.name, 60), self._clock())
                self._line(self._call_line(call), "cyan")
        elif change.state in FINAL:
            self._show_call_end(change)

    def _call_line(self, call: ToolCall) -> str:
        name = safe_line(call.name, 60)
        room = max(self.page.width - len(name) - 4, 20)
        arguments = safe_line(arguments_of(call), room)
        return f"{self._marks['start']} {name} {arguments}".rstrip()

    def _show_call_end(self, change: CallChange) -> None:
        call, result = change.call, change.result
        ran = self._running.pop(call.id, None)
        took = f" {seconds(self._clock() - ran.began)}" if ran is not None else ""
        name = safe_line(call.name, 60)
        if ran is None:  # it never ran, so the call is not shown yet
            self._line(self._call_line(call), "dim")
        self._result(name, change.state, text_of(result) if result is not None else "", took)

    def _result(self, name: str, state: str, text: str, took: str = "") -> None:
        mark = self.page.paint(self._marks[state], _COLORS[state])
        lines = [line for line in clean_lines(text[:20_000]).split("\n") if line.strip()]
        head = f"{mark} {name}{took}"
        room = max(self.page.width - len(name) - len(took) - 4, 20)
        if len(lines) == 1 and len(lines[0]) <= room:
            self._line(f"{head}: {self.page.paint(lines[0], 'dim')}")
            return
        self._line(f"{head}{':' if lines else ''}")
        lines = [part for line in lines for part in textwrap.wrap(line, max(self.page.width - 4, 20))]
        for line in lines[:RESULT_LINES]:
            self._line(f"    {line}", "dim")
        if len(lines) > RESULT_LINES:
            self._line(f"    {self._marks['more']} {len(lines) - RESULT_LINES} more lines", "dim")

    def show_text(self, text: str) -> None:
        """Show an earlier text of the model."""
        self.end_line()
        self._write(text, "text")
        self.end_line()

    def show_call(self, call: ToolCall) -> None:
        """Show an earlier call."""
        self._line(self._call_line(call), "cyan")

    def show_result(self, result: ToolResult) -> None:
        """Show an earlier result."""
        state = {"complete": "success", "cancelled": "cancelled"}.get(status_of(result), "error")
        self._result(safe_line(result.name, 60), state, text_of(result))

    def question(self, name: str, arguments: dict[str, Any]) -> None:
        """Show the call that needs approval, with all its arguments."""
        self.end_line()
        self._line(f"? {safe_line(name, 60)} wants to run", "bold", "yellow")
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode() if arguments else "{}"
        for line in clean_lines(shown).split("\n"):
            self._line(f"    {line}")
        self.page.stream.flush()

    # --- lines --------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Show a note about the session, on a line of its own."""
        self.end_line()
        line = safe_line(text)
        parts = [line]
        if self.page.is_terminal:  # do not wrap inside the parts between dots
            kept = " ·\xa0".join(part.replace(" ", "\xa0") for part in line.split(" · ")) if " · " in line else line
            parts = textwrap.wrap(kept, max(self.page.width - 2, 20))
        for part in parts:
            self.page.line(self.page.paint(f"  {part}".replace("\xa0", " "), "dim"))
        self.page.stream.flush()

    def _line(self, text: str, *styles: str) -> None:
        self.end_line()
        self.page.line(self.page.paint(text, *styles) if styles else text)

    def end_line(self) -> None:
        """End the current line, if there is one."""
        self.status.erase()
        if self._kind == "markdown" and self._markdown is not None:
            self.page.stream.write(self._markdown.flush())
        elif self._kind:
            rest = self._paint(self._wrap.flush(), self._kind)
            self.page.stream.write(rest if self._is_ended and not rest else f"{rest}\n")
        self._kind = ""

    def _write(self, text: str, kind: str) -> None:
        if not self._shows_words or not text:
            return
        if kind == "text" and self._markdown is not None:
            self._write_markdown(text, self._markdown)
            return
        if self._kind != kind:
            self.end_line()
            text = text.lstrip("\n")
        if not text:
            return
        self._kind = kind
        shown = clean_lines(text)
        self._is_ended = shown.endswith("\n")
        self.page.stream.write(self._paint(self._wrap.feed(shown) if self.page.is_terminal else shown, kind))

    def _write_markdown(self, text: str, markdown: MarkdownView) -> None:
        if self._kind != "markdown":
            self.end_line()
            self._kind = "markdown"
        shown = markdown.feed(text)
        if shown:
            self.status.erase()
            self.page.stream.write(shown)

    def _paint(self, text: str, kind: str) -> str:
        if kind != "thinking":
            return text
        return "\n".join(self.page.paint(line, "dim") for line in text.split("\n"))


def footer(answer: RunResult, took: float, *, simulated: bool) -> str:
    """Tokens, cost and time of a reply, in one line."""
    parts = [answer.model, *tokens(answer.usage)]
    parts.append("simulated" if simulated else money(answer.cost))
    return " · ".join(part for part in (*parts, seconds(took)) if part)


def tokens(usage: Usage) -> list[str]:
    named = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
    return [f"{count:,} {what}" for count, what in named if count is not None]


def money(cost: Decimal | None) -> str:
    """US dollars, with two or four decimals; empty if unknown."""
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def seconds(took: float) -> str:
    if took >= 60:
        return f"{int(took) // 60} min {int(took) % 60} s"
    return f"{took:.1f} s" if took >= 0.095 else f"{took * 1000:.0f} ms"

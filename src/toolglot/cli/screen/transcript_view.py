"""A session as it happens, for people: text as it comes, thinking dimmed, calls with their state, time and result.

    → weather {"city": "Bonn"}
    ✓ weather 0.2 s: 7 degrees

Markdown is rendered block by block where the page can show it. While nothing comes, a line that is erased again says
what is waited for.

Laws: nothing that a model or a tool wrote reaches a terminal with its control characters. What was written is final;
what a try showed that failed is said to be taken back. While somebody is asked something, everything else waits.
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
from toolglot.cli.screen.status_line import Status, StatusLine, fitted_end
from toolglot.cli.screen.terminal import TerminalPage, clean
from toolglot.cli.screen.word_wrap import WordWrap
from toolglot.conversation import Text, ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.completion import status_of
from toolglot.runtime.scheduler.call_states import FINAL, CallChange
from toolglot.runtime.session.events import (
    Answer,
    Asking,
    CallChanged,
    CallSeen,
    Compressed,
    Dropped,
    Ended,
    Event,
    Said,
    Switched,
    Thought,
    Told,
    TurnKept,
)
from toolglot.runtime.session.model_call import LEFT

RESULT_LINES: Final = 4
AGAIN: Final = "Ctrl-C again goes on without it"
PREVIEW_MARGIN: Final = 16
"""Columns that the preview of a block leaves to the elapsed time."""

_TAKING: Final = frozenset(("dropped", "filtered", "compressed", "ignored", "superseded"))
"""What is done to things that are gone afterwards. Other losses, such as a narrower schema, are changes."""
_MARKS: Final = {"start": "→", "success": "✓", "error": "✗", "cancelled": "⊘", "more": "…", "back": "⌫"}
_PLAIN: Final = {"start": "->", "success": "ok", "error": "!!", "cancelled": "--", "more": "...", "back": "<<"}
_COLORS: Final = {"success": "green", "error": "red", "cancelled": "yellow"}


def safe_text(text: str) -> str:
    """Text of several lines that is safe on a terminal."""
    lines = text.replace("\r", "").replace("\t", "    ").split("\n")
    return "\n".join(clean(line) if line else line for line in lines)


def safe_line(text: str, most: int = 0) -> str:
    """The same in one line, cut to so many characters."""
    line = clean(" ".join(text[: 4 * most if most else None].split()))
    return line if not most or len(line) <= most else f"{line[: most - 1].rstrip()}…"


def arguments_of(call: ToolCall) -> str:
    """What a call was given, in one line."""
    if call.arguments is None:
        return call.raw_input or ""
    return msgspec.json.encode(call.arguments).decode() if call.arguments else ""


def text_of(result: ToolResult) -> str:
    """The text of a result; each of its blocks begins a line."""
    if isinstance(result.content, str):
        return result.content
    return "\n".join(block.text for block in result.content or () if isinstance(block, Text))


def turns(count: int) -> str:
    return f"{count} turn{'s' if count != 1 else ''}"


class RunningTool:
    """A call whose tool runs."""

    __slots__ = ("began", "name", "progress")

    def __init__(self, name: str, began: float) -> None:
        self.name = name
        self.began = began
        self.progress = ""


class TranscriptView:
    """Shows events on a page."""

    def __init__(
        self,
        page: TerminalPage,
        answers: TerminalPage | None = None,
        *,
        says: bool = True,
        plain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answers`: where the answers go, whole, if they are to be apart from everything else. `says`: whether the
        model's own words are shown, too. `plain`: nothing is rendered, and nothing is shown that is erased again."""
        self.page = page
        self._answers = answers
        self._held: list[str] = []
        """What is said, until it is known whether it is the answer or goes before calls."""
        self._says = says
        self._is_plain = plain
        self._clock = clock
        self._marks = _MARKS if page.can_write("".join(_MARKS.values())) else _PLAIN
        self._markdown = None if plain or not says or answers is not None else MarkdownView.of(page)
        self._kind = ""
        """What is being written: text, thinking, markdown, which writes whole lines only; empty: nothing."""
        self._is_ended = True
        """Whether what a model said last ended its line."""
        self._running: dict[str, RunningTool] = {}
        self._awaited: Status | None = None
        """The model that is asked, or the call that it writes."""
        self._stopping: float | None = None
        """When what runs was told to stop."""
        self.status = StatusLine(page, self._status_now, clock, is_on=not plain)
        self._waiting: list[Callable[[], None]] | None = None
        self._wrap = WordWrap(lambda: self.page.width)

    # --- events -------------------------------------------------------------------------------------

    def show(self, event: Event) -> None:
        if self._waiting is not None:
            self._waiting.append(lambda: self._show(event))
        else:
            self._show(event)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While somebody is asked something."""
        self.end_line()
        self._waiting = []
        try:
            with self.status.held():
                yield
        finally:
            waiting, self._waiting = self._waiting, None
            for show in waiting:
                show()

    def _show(self, event: Event) -> None:
        match event:
            case Said():
                self._say(event.text)
            case Thought():
                self._write(event.text, "thinking")
            case Asking():
                self._asking(event)
            case CallSeen():
                self.end_line()
                self._await(f"calling {safe_line(event.call.name, 60)}")
            case CallChanged():
                self._changed(event.change)
            case Dropped():
                self._dropped(event)
            case Switched():
                self.note(f"{event.before} {self._marks['start']} {event.after}: {event.reason}")
            case Compressed():
                self.note(f"a summary took the place of {turns(event.turns)}")
            case Told() if event.entry.fault == "loss":
                self.note(f"{'lost' if event.entry.action in _TAKING else 'changed'}: {event.entry.reason}")
            case TurnKept():
                self._kept(event.turn)
            case Ended():
                self.rest()
                self._answer(event.answer)
            case _:
                pass
        self.status.refresh()
        self.page.stream.flush()

    def _asking(self, event: Asking) -> None:
        self.end_line()
        again = f" once more ({event.attempt})" if event.attempt > 1 else ""
        self._await(f"{safe_line(event.model, 80)}{again}")

    # --- what is waited for -------------------------------------------------------------------------

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
            coming = fitted_end(safe_line(coming), self.page.width - PREVIEW_MARGIN)
            return Status(coming, self._awaited.began)
        return self._awaited

    def stopping(self) -> None:
        """What runs was told to stop: say so at once, and what can be done where it does not."""
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
        """Something that tells nothing while it is under way."""
        self._await(label)
        self.status.draw()
        try:
            yield
        finally:
            self.rest()

    def rest(self) -> None:
        """Nothing is waited for any more."""
        self.end_line()
        self._running.clear()
        self._awaited = self._stopping = None

    def _say(self, text: str) -> None:
        if self._answers is None:
            self._write(text, "text")
        else:
            self._held.append(text)

    def _kept(self, turn: Turn) -> None:
        said, self._held = "".join(self._held), []
        if turn.calls or turn.metadata.interrupted:
            self._write(said, "text")

    def _answer(self, answer: Answer) -> None:
        """The answer, apart from how it came about."""
        page, self._held = self._answers, []
        if page is None or not answer.text.strip() or answer.stop == "cancelled":
            return
        if answer.turn is not None and answer.turn.calls:
            return
        page.stream.write(safe_text(answer.text).strip("\n") + "\n")
        page.stream.flush()

    def _dropped(self, event: Dropped) -> None:
        self.end_line()
        self._held = []
        is_above = self._says and self._answers is None
        if not is_above and not event.shown.calls:
            return
        what = "what stands above" if is_above else "a call"
        words = safe_line(event.shown.text, 40)
        since = f" from “{words}” on" if words and is_above else ""
        reason = f" ({safe_line(event.reason, 160)})" if event.reason not in ("", LEFT) else ""
        self._line(f"{self._marks['back']} taken back: {what}{since} is not kept{reason}", "yellow")

    # --- calls --------------------------------------------------------------------------------------

    def _changed(self, change: CallChange) -> None:
        call = change.call
        if change.state == "executing":
            if change.progress:
                if call.id in self._running:
                    self._running[call.id].progress = safe_line(change.progress, 200)
            elif change.attempt > 1:
                self._line(f"{self._marks['start']} {safe_line(call.name, 60)} once more ({change.attempt})", "cyan")
            else:
                self._awaited = None
                self._running[call.id] = RunningTool(safe_line(call.name, 60), self._clock())
                self._line(self._called(call), "cyan")
        elif change.state in FINAL:
            self._ended(change)

    def _called(self, call: ToolCall) -> str:
        name = safe_line(call.name, 60)
        room = max(self.page.width - len(name) - 4, 20)
        given = safe_line(arguments_of(call), room)
        return f"{self._marks['start']} {name} {given}".rstrip()

    def _ended(self, change: CallChange) -> None:
        call, result = change.call, change.result
        ran = self._running.pop(call.id, None)
        took = f" {seconds(self._clock() - ran.began)}" if ran is not None else ""
        name = safe_line(call.name, 60)
        if ran is None:  # it never ran: what was to run is not shown yet
            self._line(self._called(call), "dim")
        self._result(name, change.state, text_of(result) if result is not None else "", took)

    def _result(self, name: str, state: str, text: str, took: str = "") -> None:
        mark = self.page.paint(self._marks[state], _COLORS[state])
        lines = [line for line in safe_text(text[:20_000]).split("\n") if line.strip()]
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
        """Something that a model said earlier, whole."""
        self.end_line()
        self._write(text, "text")
        self.end_line()

    def show_call(self, call: ToolCall) -> None:
        """A call that was made earlier."""
        self._line(self._called(call), "cyan")

    def show_result(self, result: ToolResult) -> None:
        """What came of it."""
        state = {"complete": "success", "cancelled": "cancelled"}.get(status_of(result), "error")
        self._result(safe_line(result.name, 60), state, text_of(result))

    def question(self, name: str, arguments: dict[str, Any]) -> None:
        """What somebody is asked about: the whole of it."""
        self.end_line()
        self._line(f"? {safe_line(name, 60)} wants to run", "bold", "yellow")
        shown = msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode() if arguments else "{}"
        for line in safe_text(shown).split("\n"):
            self._line(f"    {line}")
        self.page.stream.flush()

    # --- lines --------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Something about the session, in a line of its own."""
        self.end_line()
        line = safe_line(text)
        parts = [line]
        if self.page.is_terminal:  # what stands between dots stays together
            kept = " ·\xa0".join(part.replace(" ", "\xa0") for part in line.split(" · ")) if " · " in line else line
            parts = textwrap.wrap(kept, max(self.page.width - 2, 20))
        for part in parts:
            self.page.line(self.page.paint(f"  {part}".replace("\xa0", " "), "dim"))
        self.page.stream.flush()

    def _line(self, text: str, *styles: str) -> None:
        self.end_line()
        self.page.line(self.page.paint(text, *styles) if styles else text)

    def end_line(self) -> None:
        """Begin a new line, unless one is begun."""
        self.status.erase()
        if self._kind == "markdown" and self._markdown is not None:
            self.page.stream.write(self._markdown.flush())
        elif self._kind:
            rest = self._painted(self._wrap.flush(), self._kind)
            self.page.stream.write(rest if self._is_ended and not rest else f"{rest}\n")
        self._kind = ""

    def _write(self, text: str, kind: str) -> None:
        if not self._says or not text:
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
        shown = safe_text(text)
        self._is_ended = shown.endswith("\n")
        self.page.stream.write(self._painted(self._wrap.feed(shown) if self.page.is_terminal else shown, kind))

    def _write_markdown(self, text: str, markdown: MarkdownView) -> None:
        if self._kind != "markdown":
            self.end_line()
            self._kind = "markdown"
        shown = markdown.feed(text)
        if shown:
            self.status.erase()
            self.page.stream.write(shown)

    def _painted(self, text: str, kind: str) -> str:
        if kind != "thinking":
            return text
        return "\n".join(self.page.paint(line, "dim") for line in text.split("\n"))


def footer(answer: Answer, took: float, *, simulated: bool) -> str:
    """What an answer took, in one line."""
    parts = [answer.model, *tokens(answer.usage)]
    parts.append("simulated" if simulated else money(answer.cost))
    return " · ".join(part for part in (*parts, seconds(took)) if part)


def tokens(usage: Usage) -> list[str]:
    named = ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
    return [f"{count:,} {what}" for count, what in named if count is not None]


def money(cost: Decimal | None) -> str:
    """US dollars, as few digits as tell something; empty: not known."""
    if cost is None:
        return ""
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def seconds(took: float) -> str:
    if took >= 60:
        return f"{int(took) // 60} min {int(took) % 60} s"
    return f"{took:.1f} s" if took >= 0.095 else f"{took * 1000:.0f} ms"

"""A session as it happens, for people: text as it comes, thinking dimmed, calls with their state, time and result.

    → weather {"city": "Bonn"}
    ✓ weather 0.2 s: 7 degrees

Laws: nothing that a model or a tool wrote reaches a terminal with its control characters. What a try showed that
failed is said to be taken back. While somebody is asked something, everything else waits.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import msgspec

from toolglot.cli.terminal import Page, clean
from toolglot.cli.word_wrap import WordWrap
from toolglot.conversation import Text, ToolCall, ToolResult, Turn, Usage
from toolglot.runtime.asking import LEFT
from toolglot.runtime.call_states import FINAL, CallChange
from toolglot.runtime.session_events import (
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

RESULT_LINES: Final = 4
PROGRESS_SECONDS: Final = 0.2
"""A tool's words on how far it is are shown this often at the most."""

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


class TranscriptView:
    """Shows events on a page."""

    def __init__(
        self,
        page: Page,
        answers: Page | None = None,
        *,
        says: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answers`: where the answers go, whole, if they are to be apart from everything else. `says`: whether the
        model's own words are shown, too."""
        self.page = page
        self._answers = answers
        self._held: list[str] = []
        """What is said, until it is known whether it is the answer or goes before calls."""
        self._says = says
        self._clock = clock
        self._marks = _MARKS if _can_write(page, "".join(_MARKS.values())) else _PLAIN
        self._kind = ""
        """What stands in the line that is not yet ended: text, thinking, waiting; empty: it is ended."""
        self._is_ended = True
        """Whether what a model said last ended its line."""
        self._began: dict[str, float] = {}
        self._told_progress: dict[str, float] = {}
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
                self._wait(f"{self._marks['more']} {safe_line(event.call.name, 60)}")
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
                self.end_line()
                self._answer(event.answer)
            case _:
                pass
        self.page.stream.flush()

    def _asking(self, event: Asking) -> None:
        self.end_line()
        if event.attempt == 1:
            self._wait(f"{self._marks['more']} {safe_line(event.model, 80)}")
        else:
            self._wait(f"{self._marks['more']} {safe_line(event.model, 80)} once more ({event.attempt})")

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
                self._progress(change)
            elif change.attempt > 1:
                self._line(f"{self._marks['start']} {safe_line(call.name, 60)} once more ({change.attempt})", "cyan")
            else:
                self._began[call.id] = self._clock()
                self._line(self._called(call), "cyan")
        elif change.state in FINAL:
            self._ended(change)

    def _called(self, call: ToolCall) -> str:
        name = safe_line(call.name, 60)
        room = max(self.page.width - len(name) - 4, 20)
        given = safe_line(arguments_of(call), room)
        return f"{self._marks['start']} {name} {given}".rstrip()

    def _progress(self, change: CallChange) -> None:
        now = self._clock()
        if now - self._told_progress.get(change.call.id, -1.0) >= PROGRESS_SECONDS:
            self._told_progress[change.call.id] = now
            said = safe_line(f"{change.call.name}: {change.progress}", max(self.page.width - 4, 20))
            self._wait(f"{self._marks['more']} {said}")

    def _ended(self, change: CallChange) -> None:
        call, result = change.call, change.result
        began = self._began.pop(call.id, None)
        self._told_progress.pop(call.id, None)
        took = f" {seconds(self._clock() - began)}" if began is not None else ""
        name = safe_line(call.name, 60)
        if began is None:  # it never ran: what was to run is not shown yet
            self._line(self._called(call), "dim")
        mark = self.page.paint(self._marks[change.state], _COLORS[change.state])
        text = text_of(result) if result is not None else ""
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
        self.page.line(self.page.paint(f"  {safe_line(text)}", "dim"))
        self.page.stream.flush()

    def _line(self, text: str, *styles: str) -> None:
        self.end_line()
        self.page.line(self.page.paint(text, *styles) if styles else text)

    def end_line(self) -> None:
        """Begin a new line, unless one is begun."""
        if self._kind == "waiting":
            self.page.stream.write("\r\x1b[K")
        elif self._kind:
            rest = self._painted(self._wrap.flush(), self._kind)
            self.page.stream.write(rest if self._is_ended and not rest else f"{rest}\n")
        self._kind = ""

    def _wait(self, text: str) -> None:
        """Say what is waited for, until something comes."""
        if self.page.is_terminal and self._kind in ("", "waiting"):
            self.end_line()
            self.page.stream.write(self.page.paint(text, "dim"))
            self._kind = "waiting"

    def _write(self, text: str, kind: str) -> None:
        if not self._says or not text:
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


def _can_write(page: Page, text: str) -> bool:
    try:
        text.encode(getattr(page.stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

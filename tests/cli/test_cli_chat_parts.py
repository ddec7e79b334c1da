"""What `toolglot chat` shows: wrapping, safe text, the view, history, input lines."""

from __future__ import annotations

import io
import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.chat_screen import CALL, Encoded, Tty, changed, shown
from toolglot import Entry, Shown, ToolCall, ToolResult, Turn
from toolglot.cli.screen.history_view import recent_turns, recovery_note, show_recent, show_turns
from toolglot.cli.screen.line_input import (
    PipedLines,
    StderrLines,
    TypedLines,
    line_reader,
    read_input_history,
    readline_prompt,
)
from toolglot.cli.screen.status_line import SharedStream
from toolglot.cli.screen.terminal import TerminalPage, clean_lines
from toolglot.cli.screen.transcript_view import TranscriptView, money, safe_line, seconds
from toolglot.cli.screen.word_wrap import WordWrap, cells
from toolglot.cli.session.chat_session import Completion
from toolglot.conversation import Text, TurnMetadata
from toolglot.errors import LimitError
from toolglot.runtime.log.session_log import RecoveredCall
from toolglot.runtime.scheduler.call_states import CallChange
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
    TextReceived,
    ThinkingReceived,
    TurnCommitted,
)

# --- wrapping -------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(st.text(alphabet="ab \n界", max_size=12), max_size=12), st.integers(1, 20))
def test_wrapping_only_replaces_blanks_by_line_breaks(pieces: list[str], width: int) -> None:
    wrap = WordWrap(lambda: width)
    shown = "".join(wrap.feed(piece) for piece in pieces) + wrap.flush()
    text = "".join(pieces)
    assert shown.split() == text.split()
    whole = WordWrap(lambda: width)
    assert whole.feed(text) + whole.flush() == shown, "however it came"
    for line in shown.split("\n"):
        assert cells(line.rstrip()) <= width or len(line.split()) == 1


def test_a_word_without_end_is_not_held_back() -> None:
    wrap = WordWrap(lambda: 10)
    assert wrap.feed("x" * 500)


# --- safe text ------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.text())
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    assert all(letter == "\n" or letter.isprintable() or ord(letter) > 0x9F for letter in clean_lines(text))
    assert "\n" not in safe_line(text)


def test_lines_are_cut_and_amounts_are_short() -> None:
    assert safe_line("a b\nc" * 50, 10) == "a b ca b…"
    assert [money(None), money(Decimal("1.234")), money(Decimal("0.00123"))] == ["", "$1.23", "$0.0012"]
    assert [seconds(0.0123), seconds(1.26), seconds(75)] == ["12 ms", "1.3 s", "1 min 15 s"]


# --- the view -------------------------------------------------------------------------------------


def test_the_view_shows_a_whole_run() -> None:
    text = shown(
        RequestStarted("a/b", "anthropic"),
        ThinkingReceived("\nI think"),
        TextReceived("Hello\nthere"),
        CallReceived(CALL),
        changed("validating"),
        changed("executing"),
        changed("executing", progress="half"),
        changed("executing", attempt=2),
        changed("success", ToolResult("id", "\n".join(f"line {n}" for n in range(9)))),
        TurnCommitted(Turn("assistant")),
        RequestStarted("a/b", "anthropic", 2),
        ModelSwitched("a/b", "c/d", "a/b did not answer"),
        HistoryCompressed(4),
        ChangeReported(Entry(action="dropped", reason="an image", fault="loss")),
        ChangeReported(Entry(action="added", reason="a limit", fault="policy")),
        AttemptDiscarded(Shown(text="Half an answer"), "it broke", "a/b"),
        TextReceived("Done.\n"),
        RunFinished(RunResult()),
        tty=False,
    )
    assert text == (
        "I think\nHello\nthere\n"
        '→ look {"at":"it"}\n→ look (attempt 2)\n'
        "✓ look 1.0 s:\n    line 0\n    line 1\n    line 2\n    line 3\n    … 5 more lines\n"
        "  a/b → c/d: a/b did not answer\n  replaced 4 turns by a summary\n  lost: an image\n"
        "⌫ discarded: the text above from “Half an answer” on (it broke)\n"
        "Done.\n"
    )


def test_a_call_that_never_ran_is_shown_with_what_it_was_to_run() -> None:
    text = shown(changed("error", ToolResult("id", "not so", is_error=True)), tty=False)
    assert text == '→ look {"at":"it"}\n✗ look: not so\n'
    assert shown(changed("cancelled", ToolResult("id", None)), tty=False).endswith("⊘ look\n")


def test_a_terminal_that_lacks_marks_gets_plain_ones() -> None:
    text = shown(changed("executing"), changed("success", ToolResult("id", "x")), encoding="ascii")
    assert text == '-> look {"at":"it"}\nok look 1.0 s: x\n'


def test_where_words_are_not_shown_only_calls_are_taken_back() -> None:
    assert shown(TextReceived("x"), AttemptDiscarded(Shown(text="x"), "r", "m"), tty=False, shows_words=False) == ""
    assert "discarded: a call" in shown(AttemptDiscarded(Shown(calls=("look",)), "", "m"), tty=False, shows_words=False)


def test_what_happens_while_a_question_is_open_is_shown_later() -> None:
    stream = io.StringIO()
    view = TranscriptView(TerminalPage(stream, "never"))
    with view.hold():
        view.show(TextReceived("later"))
        view.question("look", {})
        before = stream.getvalue()
    assert "later" not in before
    assert stream.getvalue().endswith("later")


# --- what is waited for ---------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def live(stream: io.StringIO, clock: Clock, **more: Any) -> TranscriptView:
    return TranscriptView(TerminalPage(stream, "never"), clock=clock, **more)


def drawn(view: TranscriptView, stream: io.StringIO) -> str:
    """The line as it is now."""
    view.status.draw()
    found = re.fullmatch(r"(?s).*\r\x1b\[K. ([^\n]*)", stream.getvalue())
    return found[1] if found else ""


def test_the_status_line_says_what_is_waited_for_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, clock = Tty(), Clock()
    view = live(stream, clock)
    view.show(RequestStarted("a/b", "anthropic"))
    assert drawn(view, stream) == "a/b"
    clock.now = 3.7
    assert drawn(view, stream) == "a/b · 3 s"
    view.show(CallReceived(CALL))
    assert drawn(view, stream) == "calling look"
    view.show(changed("executing"))
    clock.now = 70
    assert drawn(view, stream) == "look · 1 min 6 s"
    view.show(changed("executing", progress="page 2\nof 9"))
    assert drawn(view, stream) == "look: page 2 of 9 · 1 min 6 s"
    view.show(CallChanged(CallChange(ToolCall("id2", "wait", {}), "executing")))
    assert drawn(view, stream) == "look and 1 more: page 2 of 9 · 1 min 6 s"
    view.stopping()
    assert drawn(view, stream) == "cancelling look, wait: press Ctrl-C again to continue without it"
    view.show(RunFinished(RunResult()))
    view.status.draw()
    assert stream.getvalue().endswith("\r\x1b[K"), "nothing of it is left"


def test_the_status_line_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "24")
    for name in ("x" * 200, "界" * 100):
        stream, clock = Tty(), Clock()
        view = live(stream, clock)
        view.show(CallChanged(CallChange(ToolCall("id", name, {}), "executing", progress="")))
        view.show(CallChanged(CallChange(ToolCall("id", name, {}), "executing", progress="y" * 300)))
        clock.now = 5
        assert cells(drawn(view, stream)) <= 21
        assert drawn(view, stream).endswith(" · 5 s")


def test_the_status_line_is_not_drawn_while_a_question_is_open_or_text_is_being_written() -> None:
    stream = Tty()
    view = live(stream, Clock(), plain=False)
    view.show(RequestStarted("a/b", "anthropic"))
    with view.hold():
        before = stream.getvalue()
        view.status.draw()
        view.status.refresh()
        assert stream.getvalue() == before
    view.show(ThinkingReceived("hm"))
    before = stream.getvalue()
    view.status.draw()
    assert stream.getvalue() == before


@pytest.mark.parametrize("how", ["pipe", "dumb", "plain"])
def test_there_is_no_status_line_where_it_could_not_be_erased(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("TERM", "dumb" if how == "dumb" else "xterm")
    stream = io.StringIO() if how == "pipe" else Tty()
    view = live(stream, Clock(), plain=how == "plain")
    view.show(RequestStarted("a/b", "anthropic"))
    view.show(changed("executing"))
    view.status.draw()
    assert stream.getvalue() == '→ look {"at":"it"}\n'


def test_what_a_tool_prints_does_not_mix_with_the_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Tty()
    view = live(stream, Clock())
    view.show(changed("executing"))
    shared = SharedStream(stream, view.status)
    print("printed", file=shared)
    assert stream.getvalue().endswith("look\r\x1b[Kprinted\n")
    shared.write("half")
    view.status.draw()
    assert stream.getvalue().endswith("half"), "a line that is not ended is not drawn over"
    view.note("more")
    assert stream.getvalue().endswith("half\n  more\n")
    assert shared.isatty()


def test_a_terminal_that_lacks_characters_gets_a_plain_status_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    class AsciiTty(Encoded):
        def isatty(self) -> bool:
            return True

    stream, clock = AsciiTty("ascii"), Clock()
    view = live(stream, clock)
    view.show(RequestStarted("a" * 300, "anthropic"))
    clock.now = 9
    view.status.draw()
    assert stream.getvalue().isascii()
    assert stream.getvalue().endswith(", 9 s")


# --- earlier turns --------------------------------------------------------------------------------


def test_what_became_of_a_call_that_a_crash_left_open_is_reported_by_what_is_known_of_it() -> None:
    result = ToolResult("id", "x")
    notes = [recovery_note(RecoveredCall(CALL, how, result)) for how in ("finished", "unknown", "not_run")]
    assert all("look" in note and "not run again" in note for note in notes)
    assert "its result is kept" in notes[0]
    assert "outcome is unknown" in notes[1]
    assert "can call it again" in notes[2]


def test_the_end_of_a_long_conversation_is_shown_in_short() -> None:
    turns = [Turn("user" if n % 2 == 0 else "assistant", (Text(f"turn {n}"),)) for n in range(20)]
    turns[-1] = Turn(
        "assistant", (Text("\n".join(f"line {n}" for n in range(50))),), metadata=TurnMetadata(interrupted="No.")
    )
    stream = io.StringIO()
    view = TranscriptView(TerminalPage(stream, "never"))
    show_recent(view, turns)
    assert stream.getvalue().startswith(
        "  … 16 turns before this; /history shows them\n\n> turn 16\nturn 17\n\n> turn 18\n"
    )
    assert stream.getvalue().endswith("line 19\n  … 30 more lines\n  interrupted here: No.\n")
    show_recent(view, [])
    many = [Turn("user", (Text("go"),)), *(Turn("assistant", (Text(f"x{n}"),)) for n in range(500))]
    assert len(recent_turns(many)) == 16
    stream.truncate(0)
    show_turns(
        view,
        [
            Turn("system", (Text("Be\x1b[2J brief."),)),
            Turn("user", (Text("a\nb"),)),
            Turn("tool", (ToolResult("i", "no", name="f", is_error=True),)),
        ],
    )
    assert stream.getvalue().replace("\x00", "") == "  system: Be\\x1b[2J brief.\n\n> a\n  b\n✗ f: no\n"


# --- lines ----------------------------------------------------------------------------------------


def test_piped_lines_end_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\r\ntwo"))
    reader = line_reader()
    assert isinstance(reader, PipedLines)
    assert [reader.read(""), reader.read("")] == ["one", "two"]
    with pytest.raises(EOFError):
        reader.read("")
    with pytest.raises(LimitError):
        PipedLines(io.StringIO("x" * 5_000_000)).read("")


def test_answers_are_requested_on_another_page() -> None:
    page = Tty()
    lines = StderrLines(Tty("yes\n"), page)
    assert lines.is_interactive
    assert lines.read(readline_prompt("\x1b[1msure? \x1b[0m"), "old") == "yes"
    assert page.getvalue() == "  now: old\n\x1b[1msure? \x1b[0m"
    with pytest.raises(EOFError):
        lines.read("")
    assert not StderrLines(io.StringIO(), page).is_interactive


def test_what_was_typed_is_read_again_and_kept_short(tmp_path: Path) -> None:
    history_file = tmp_path / "typed.jsonl"
    assert read_input_history(None) == []
    assert read_input_history(history_file) == []
    history_file.write_text("not json\n3\n" + "".join(f"{json.dumps(str(n))}\n" for n in range(3000)))
    assert read_input_history(history_file)[-1] == "2999"
    assert len(history_file.read_text().splitlines()) == 1000


def test_typed_lines_complete_words_and_remember(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history_file = tmp_path / "new" / "typed.jsonl"
    completion = Completion()
    completion.models = ["a/one", "a/two"]
    completion.sessions = ["s1"]
    lines = TypedLines(history_file=history_file, complete=completion.of)
    lines.remember("hello\nyou")
    lines.remember("  ")
    assert read_input_history(history_file) == ["hello\nyou"]
    assert {"/model", "/undo", "/quit"} < set(completion.of("/mo"))
    assert completion.of("/model a") == ["a/one", "a/two"]
    assert completion.of("/resume ") == ["s1"]
    assert completion.of("hello") == ()
    monkeypatch.setattr(sys, "stdin", io.StringIO("typed\n"))
    assert lines.read("> ", "prefilled") == "typed"
    assert lines._completion("a/t", 5) is None

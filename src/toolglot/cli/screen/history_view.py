"""Shows earlier turns when a session is continued.

Law: `TranscriptView` shows them, so the same rules hold: no control characters, and nothing that was written is
changed later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolglot.cli.screen.terminal import clean_lines, plural
from toolglot.cli.screen.transcript_view import TranscriptView, safe_line
from toolglot.conversation import Text, ToolCall, ToolResult, Turn
from toolglot.runtime.log.session_log import RecoveredCall

RECENT_EXCHANGES: Final = 2
"""User messages that are shown, with their replies, when a session is continued."""
RECENT_TURNS: Final = 16
RECENT_LINES: Final = 20
"""Lines of each text that are shown then."""
_MAX_SYSTEM: Final = 200


def recent_turns(history: Sequence[Turn]) -> Sequence[Turn]:
    """The turns to show when a session is continued."""
    starts = [index for index, turn in enumerate(history) if turn.role == "user"]
    start = starts[-RECENT_EXCHANGES] if len(starts) >= RECENT_EXCHANGES else 0
    return history[max(start, len(history) - RECENT_TURNS) :]


def show_recent(view: TranscriptView, history: Sequence[Turn]) -> None:
    """Show the end of a conversation, and how to see the rest."""
    if not history:
        return
    shown = recent_turns(history)
    left = len(history) - len(shown)
    if left:
        view.note(f"… {plural(left, 'turn')} before this; /history shows them")
    show_turns(view, shown, max_lines=RECENT_LINES)
    if history[-1].role in ("user", "tool"):
        view.note("the model has not replied yet; /go continues")


def show_turns(view: TranscriptView, history: Sequence[Turn], *, max_lines: int = 0) -> None:
    """Show turns as they were shown live. `max_lines`: lines of each text; 0: all of it."""
    for turn in history:
        for block in turn.blocks:
            if isinstance(block, Text) and block.text.strip():
                _show_text(view, turn, *_first_lines(block.text, max_lines))
            elif isinstance(block, ToolCall):
                view.show_call(block)
            elif isinstance(block, ToolResult):
                view.show_result(block)
        if turn.metadata.interrupted:
            view.note(f"interrupted here: {turn.metadata.interrupted}")
    view.end_line()


def _show_text(view: TranscriptView, turn: Turn, text: str, left: int) -> None:
    page = view.page
    if turn.role == "assistant":
        view.show_text(text)
    elif turn.role == "user":
        first, *more = clean_lines(text).strip("\n").split("\n")
        view.end_line()
        page.line()
        page.line(f"{page.paint('> ', 'bold', 'green')}{first}")
        for line in more:
            page.line(f"  {line}")
    else:
        view.note(f"{turn.role}: {safe_line(text, _MAX_SYSTEM)}")
    if left:
        view.note(f"… {plural(left, 'more line')}")


def _first_lines(text: str, max_lines: int) -> tuple[str, int]:
    """The first lines, and the number of lines left out."""
    lines = text.strip("\n").split("\n")
    if not max_lines or len(lines) <= max_lines + 1:
        return text, 0
    return "\n".join(lines[:max_lines]), len(lines) - max_lines


def recovery_note(found: RecoveredCall) -> str:
    """What happened to a call that had no result when its process ended."""
    name = found.call.name
    match found.how:
        case "finished":
            return f"{name} had finished when the last process ended; its result is kept, and it is not run again"
        case "unknown":
            return (
                f"{name} was running when the last process ended. Its outcome is unknown. It is not run again, and the"
                " model learns this"
            )
        case _:
            return (
                f"{name} had not finished when the last process ended, and has no side effects. It is not run again"
                " automatically; the model learns that it can call it again"
            )

"""What was said earlier in a session, shown as it was when it happened: for a session that is gone on with.

Law: it is shown by the view that shows everything else, so the same holds of it: no control characters, what was
written is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolglot.cli.screen.transcript_view import TranscriptView, safe_line, safe_text, turns
from toolglot.conversation import Text, ToolCall, ToolResult, Turn
from toolglot.runtime.log.session_log import RecoveredCall

RECENT_EXCHANGES: Final = 2
"""What the user said last, so many times, with what came of it, is shown where a session is gone on with."""
RECENT_TURNS: Final = 16
RECENT_LINES: Final = 20
"""Lines that are shown of each text there."""
_MAX_SYSTEM: Final = 200


def recent(said: Sequence[Turn]) -> Sequence[Turn]:
    """The turns that are worth showing where a session is gone on with."""
    asked = [place for place, turn in enumerate(said) if turn.role == "user"]
    start = asked[-RECENT_EXCHANGES] if len(asked) >= RECENT_EXCHANGES else 0
    return said[max(start, len(said) - RECENT_TURNS) :]


def show_recent(view: TranscriptView, said: Sequence[Turn]) -> None:
    """The end of a conversation, and how to see the rest."""
    if not said:
        return
    shown = recent(said)
    left = len(said) - len(shown)
    if left:
        view.note(f"… {turns(left)} before this: /history shows them")
    show_turns(view, shown, max_lines=RECENT_LINES)
    if said[-1].role in ("user", "tool"):
        view.note("the model has not answered this yet: /go asks it")


def show_turns(view: TranscriptView, said: Sequence[Turn], *, max_lines: int = 0) -> None:
    """Turns as they were shown when they were said. `max_lines`: of each text; 0: all of it."""
    for turn in said:
        for block in turn.blocks:
            if isinstance(block, Text) and block.text.strip():
                _show_text(view, turn, *_cut(block.text, max_lines))
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
        first, *more = safe_text(text).strip("\n").split("\n")
        view.end_line()
        page.line()
        page.line(f"{page.paint('> ', 'bold', 'green')}{first}")
        for line in more:
            page.line(f"  {line}")
    else:
        view.note(f"{turn.role}: {safe_line(text, _MAX_SYSTEM)}")
    if left:
        view.note(f"… {left} more line{'s' if left != 1 else ''}")


def _cut(text: str, most: int) -> tuple[str, int]:
    """The first lines, and how many are left out."""
    lines = text.strip("\n").split("\n")
    if not most or len(lines) <= most + 1:
        return text, 0
    return "\n".join(lines[:most]), len(lines) - most


def recovery_note(found: RecoveredCall) -> str:
    """What became of a call that had no result when the process that ran it ended."""
    name = found.call.name
    match found.how:
        case "finished":
            return f"{name} had finished when the last process ended: its result is kept, and it is not run again"
        case "unknown":
            return (
                f"{name} was running when the last process ended, and nobody knows how far it came: it is not run"
                " again, and the model is told so"
            )
        case _:
            return (
                f"{name} had not finished when the last process ended, and has no side effects on record: it is not run"
                " again by itself, and the model is told that it can call it again"
            )

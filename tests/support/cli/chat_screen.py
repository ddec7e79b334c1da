"""A screen and sessions for the parts of the commands that run sessions."""

from __future__ import annotations

import io
from typing import Any

from toolglot import ToolCall, ToolResult
from toolglot.cli.screen.terminal import TerminalPage
from toolglot.cli.screen.transcript_view import TranscriptView
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.session.events import (
    CallChanged,
)

CALL = ToolCall("id", "look", {"at": "it"})


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(*events: Any, tty: bool = True, shows_words: bool = True, encoding: str = "") -> str:
    stream: io.StringIO = Tty() if tty else io.StringIO()
    if encoding:
        stream = Encoded(encoding)
    view = TranscriptView(TerminalPage(stream, "never"), shows_words=shows_words, clock=iter(range(1000)).__next__)
    for event in events:
        view.show(event)
    view.end_line()
    return stream.getvalue()


class Encoded(io.StringIO):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def changed(state: Any, result: ToolResult | None = None, **more: Any) -> CallChanged:
    return CallChanged(CallChange(CALL, state, result, **more))

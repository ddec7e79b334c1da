"""What a session tells while it runs, and what it answers in the end.

    Asking  Said* Thought* CallSeen*  TurnKept  CallChanged*  Asking …  Ended

Law: events are told, never asked back: whoever listens changes nothing by listening slowly, or not at all. What was
told of a try that failed is taken back by `Dropped`; only what `TurnKept` tells is part of the history.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from msgspec import Struct

from toolglot.conversation import Failure, ToolCall, Turn, Usage
from toolglot.conversation.report import Entry
from toolglot.history.attempts import Shown
from toolglot.runtime.scheduler.call_states import CallChange

Stop = Literal["stop", "length", "filter", "calls_open", "cancelled", "loop_limit", "failed", "budget"]
"""Why a run ended. `calls_open`: tools that the caller runs itself; `session.answer` goes on."""


class Answer(Struct, frozen=True, kw_only=True):
    """What came of a run."""

    text: str = ""
    """The text of the model's last turn."""
    turn: Turn | None = None
    """The last turn that the model gave in this run; None: it gave none."""
    stop: Stop = "stop"
    calls: tuple[ToolCall, ...] = ()
    """Calls that are open: whoever asked runs them."""
    usage: Usage = Usage()
    """Tokens of this run, those of subagents included."""
    cost: Decimal | None = None
    """US dollars of this run; None: the price of some of it is not known."""
    failure: Failure | None = None
    """Why the run failed, where it did."""
    model: str = ""
    """Who was asked last."""


class SessionEvent(Struct, frozen=True):
    """Something that happened in a session."""


class Asking(SessionEvent, frozen=True):
    """A model is asked."""

    model: str
    target: str
    attempt: int = 1


class Said(SessionEvent, frozen=True):
    """More of the model's text."""

    text: str


class Thought(SessionEvent, frozen=True):
    """More of what the model thinks."""

    text: str


class CallSeen(SessionEvent, frozen=True):
    """The model calls a tool: its name is known, its arguments may still come."""

    call: ToolCall


class CallChanged(SessionEvent, frozen=True):
    """The scheduler tells of a call."""

    change: CallChange


class Dropped(SessionEvent, frozen=True):
    """A try failed after it had shown something: what was shown is not part of the history."""

    shown: Shown
    reason: str
    model: str


class TurnKept(SessionEvent, frozen=True):
    """A turn became part of the history: the model's, or the results of its calls."""

    turn: Turn
    usage: Usage | None = None
    cost: Decimal | None = None


class Switched(SessionEvent, frozen=True):
    """Another model is asked from now on."""

    before: str
    after: str
    reason: str


class Compressed(SessionEvent, frozen=True):
    """A summary took the place of so many turns."""

    turns: int


class Told(SessionEvent, frozen=True):
    """Something was changed, guessed or lost on the way to or from a provider."""

    entry: Entry


class Ended(SessionEvent, frozen=True):
    """The run is over."""

    answer: Answer


Event = Asking | Said | Thought | CallSeen | CallChanged | Dropped | TurnKept | Switched | Compressed | Told | Ended

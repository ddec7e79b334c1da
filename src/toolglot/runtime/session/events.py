"""The events of a running session, and the result of a run.

    RequestStarted  (TextReceived | ThinkingReceived | CallReceived)*  TurnCommitted  CallChanged*  …  RunFinished

Law: events only report. A slow listener, or none at all, changes nothing in the run. `AttemptDiscarded` withdraws what
a failed attempt has shown; only turns in `TurnCommitted` are part of the history.
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
"""Why a run ended. `calls_open`: the caller runs these tools; `session.answer` continues."""


class RunResult(Struct, frozen=True, kw_only=True):
    """The result of a run."""

    text: str = ""
    """The text of the model's last turn."""
    turn: Turn | None = None
    """The model's last turn in this run; None if there is none."""
    stop: Stop = "stop"
    calls: tuple[ToolCall, ...] = ()
    """Open calls, which the caller runs."""
    usage: Usage = Usage()
    """Tokens of this run, including its subagents."""
    cost: Decimal | None = None
    """US dollars of this run; None if the price of any part is unknown."""
    failure: Failure | None = None
    """Why the run failed, if it did."""
    model: str = ""
    """The model that was called last."""


class _EventBase(Struct, frozen=True):
    """Something that happened in a session."""


class RequestStarted(_EventBase, frozen=True):
    """A model is called."""

    model: str
    target: str
    attempt: int = 1


class TextReceived(_EventBase, frozen=True):
    """More of the model's text."""

    text: str


class ThinkingReceived(_EventBase, frozen=True):
    """More of the model's thinking."""

    text: str


class CallReceived(_EventBase, frozen=True):
    """The model calls a tool. Its name is known; its arguments may still arrive."""

    call: ToolCall


class CallChanged(_EventBase, frozen=True):
    """The scheduler reports a change of a call."""

    change: CallChange


class AttemptDiscarded(_EventBase, frozen=True):
    """An attempt failed after it had shown something, which is not part of the history."""

    shown: Shown
    reason: str
    model: str


class TurnCommitted(_EventBase, frozen=True):
    """A turn became part of the history: the model's, or the results of its calls."""

    turn: Turn
    usage: Usage | None = None
    cost: Decimal | None = None


class ModelSwitched(_EventBase, frozen=True):
    """Another model is called from now on."""

    before: str
    after: str
    reason: str


class HistoryCompressed(_EventBase, frozen=True):
    """A summary replaced this many turns."""

    turns: int


class ChangeReported(_EventBase, frozen=True):
    """Something was changed, guessed or lost on the way to or from a provider."""

    entry: Entry


class RunFinished(_EventBase, frozen=True):
    """The run has ended. This is the last event."""

    result: RunResult


SessionEvent = (
    RequestStarted
    | TextReceived
    | ThinkingReceived
    | CallReceived
    | CallChanged
    | AttemptDiscarded
    | TurnCommitted
    | ModelSwitched
    | HistoryCompressed
    | ChangeReported
    | RunFinished
)
"""An event of `Session.stream`."""

"""Replays the entries of a log: turns, tool runs without a result, the report, what was spent.

Law: entries are applied in order, each once, and none is skipped. Their numbers have no gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import NamedTuple

from toolglot.conversation import Turn, Usage
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.history.history import History, TurnInFlight
from toolglot.runtime.log.entries import (
    LogEntry,
    LogOpened,
    LogReset,
    ModelChosen,
    ReportAdded,
    SessionDamagedError,
    ToolFinished,
    ToolRun,
    ToolStarted,
    TurnsAdded,
    damaged_error,
    is_beginning,
)
from toolglot.runtime.log.info import SessionInfo
from toolglot.runtime.log.rows import LogRows
from toolglot.runtime.log.usage import add_cost, add_usage


class SessionState:
    """The state of a session after the entries that were applied so far."""

    def __init__(self, number: int = 0) -> None:
        self.next: int = number
        """The number of the next entry."""
        self.first: int = number
        """The number of the last reset, or of the entry with which the session began."""
        self.openings: list[int] = []
        """The numbers of the entries with which processes opened the session."""
        self.turns: list[Turn] = []
        self.runs: dict[str, ToolRun] = {}
        self.report: list[ReportEntry] = []
        self.usage: Usage = Usage()
        self.cost: Decimal | None = None
        self.model: str = ""

    def apply(self, entry: LogEntry) -> None:
        """Apply the next entry."""
        number = self.next
        self.next += 1
        match entry:
            case LogReset():
                self.first = number
                self.turns, self.report = list(entry.turns), list(entry.report)
                self.runs = {}
                self.add_runs(entry.runs)
                self.usage, self.cost = entry.usage or Usage(), entry.cost
            case TurnsAdded():
                self.turns += entry.turns
                self.report += entry.report
                self.remove_answered(entry.turns)
                self.usage, self.cost = add_usage(self.usage, entry.usage), add_cost(self.cost, entry.cost)
            case ToolStarted() | ToolFinished():
                self.add_runs((entry,))
            case ModelChosen():
                self.model = entry.model
            case ReportAdded():
                self.report += entry.entries
            case LogOpened():
                self.openings.append(number)
                if entry.new:
                    self.first = number

    def add_runs(self, runs: Iterable[ToolRun]) -> None:
        for run in runs:
            call_id = run.call_id if isinstance(run, ToolStarted) else run.result.call_id
            if isinstance(run, ToolFinished) or call_id not in self.runs:
                self.runs[call_id] = run

    def remove_answered(self, turns: Iterable[Turn]) -> None:
        """Remove the runs whose results are in a turn."""
        for turn in turns:
            for result in turn.results:
                self.runs.pop(result.call_id, None)

    def history(self) -> History:
        """The history of these turns, and its report."""
        history = History()
        restore_turns(history, self.turns, 0)
        for entry in self.report:
            history.add_entry(entry)
        return history


def restore_turns(history: History, turns: Sequence[Turn], report_count: int) -> None:
    """Set the turns of a history, which it had before, and cut its report to this many entries."""
    # As the history itself does after a write that failed. The turns were checked when they were added.
    if history.turns != tuple(turns):
        history._intake = history._intake.rebuild(turns)  # noqa: SLF001
    del history._intake.entries[report_count:]  # noqa: SLF001


class TurnBinding(NamedTuple):
    """The open turn of a history, and the providers of this and the next turn."""

    in_flight: TurnInFlight | None
    provider: str | None
    next_provider: str | None

    @classmethod
    def of(cls, history: History) -> TurnBinding:
        return cls(history._in_flight, history._provider, history._next_provider)  # noqa: SLF001

    def restore(self, history: History) -> None:
        """Reopen a turn that was ended by a write that failed."""
        history._in_flight, history._provider, history._next_provider = self  # noqa: SLF001


async def read_state(rows: LogRows, info: SessionInfo) -> SessionState:
    """Replay a log from its last reset; from its beginning if the entry that the row names is missing."""
    try:
        return await _replay_from(rows, info, info.first)
    except SessionDamagedError as error:
        if await rows.has(info.first):
            raise
        with suppress(SessionDamagedError):
            return await _replay_from(rows, info, None)
        raise error from None


async def _replay_from(rows: LogRows, info: SessionInfo, first: int | None) -> SessionState:
    state = SessionState(info.first)
    state.model = info.model
    is_begun = False
    async for number, entry in rows.read(first, last=info.last):
        is_begun = is_begun or is_beginning(entry, number)
        if not is_begun and (first is not None or not isinstance(entry, LogOpened)):
            raise damaged_error(info.id, number, "is not the reset that the list of sessions names")
        state.next = number
        state.apply(entry)
    return state

"""The calls that a crash left without a result, and the results that they get.

Law: a call that was recorded as started never runs again.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from toolglot.conversation import Interaction, ToolCall, ToolResult
from toolglot.runtime.log.entries import ToolFinished, ToolRun
from toolglot.runtime.scheduler import outcomes

CRASHED: Final = "The process that ran this session ended before the call did."
NOT_RECORDED: Final = (
    "The tool was never started, or it is one without side effects and was interrupted: nothing was done, and it can be"
    " called again."
)
"""The text for a call without a record: the log records only tools with side effects."""


class RecoveredCall(NamedTuple):
    """A call that had no result when its process ended, and what is known about it."""

    call: ToolCall
    how: Literal["finished", "unknown", "not_run"]
    """`unknown`: a tool with side effects was started. `not_run`: it was not, or it has no side effects."""
    result: ToolResult
    """What the model reads."""


def recover_call(found: Interaction, run: ToolRun | None) -> RecoveredCall:
    how: Literal["finished", "unknown", "not_run"] = "not_run" if run is None else "unknown"
    if isinstance(run, ToolFinished):
        how = "finished"
    return RecoveredCall(found.call, how, logged_result(found, run, CRASHED))


def logged_result(found: Interaction, run: ToolRun | None, reason: str) -> ToolResult:
    """The result that the log has for a call without one."""
    if isinstance(run, ToolFinished):
        return run.result
    if run is not None:
        unknown = outcomes.unknown_outcome(found.call, reason)
        return unknown if run.arguments is None else outcomes.with_executed_arguments(unknown, run.arguments)
    text = f"{reason} {NOT_RECORDED}"
    return ToolResult(found.id, text, is_error=True, name=found.name, status="cancelled")

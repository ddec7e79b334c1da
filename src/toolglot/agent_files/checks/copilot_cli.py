"""What can be wrong in a session of Copilot CLI: lines split by raw line breaks, NUL bytes after a power loss,
and results without calls.

It answers a call without a result itself, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.checks.shared_checks import ORPHAN, examine_lines
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of

_SPOKEN: Final = frozenset({"user.message", "assistant.message"})


def is_of_subagent(value: dict[str, Any]) -> bool:
    """Whether an event belongs to a call of a subagent."""
    return bool(text_of(object_of(value, "data"), "parentToolCallId") or text_of(value, "agentId"))


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = examine_lines(examination, lines)
    if not any(value.get("type") in _SPOKEN for _, value in values):
        examination.add("no-messages", f"the session {path.parent.name} has no messages")
        return examination
    _examine_start(examination, path, values)
    _examine_results(examination, [pair for pair in values if not is_of_subagent(pair[1])])
    return examination


def _examine_start(examination: Examination, path: Path, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    found = next(((number, value) for number, value in values if value.get("type") == "session.start"), None)
    if found is None:
        examination.add("no-header", "the first event, session.start, is missing", 1, "write a new one")
        time = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
        start = {"sessionId": path.parent.name, "version": 1, "producer": "copilot-agent", "copilotVersion": "0.0.0"}
        data = {**start, "startTime": time, "context": {"cwd": "/"}}
        event = {"type": "session.start", "data": data, "id": "start", "timestamp": time, "parentId": None}
        examination.insert_after(0, event)
        return
    number, value = found
    data = object_of(value, "data")
    if text_of(data, "sessionId") != path.parent.name:
        message = f"the id {text_of(data, 'sessionId')[:60]!r} is not that of the folder"
        examination.add("wrong-id", message, number, "take that of the folder")
        examination.set_value(number, {**value, "data": {**data, "sessionId": path.parent.name}})


def _examine_results(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Every result is behind its call."""
    open_calls: dict[str, int] = {}
    unmatched: list[tuple[int, dict[str, Any]]] = []
    for number, value in values:
        data = object_of(value, "data")
        if value.get("type") == "assistant.message":
            open_calls |= {text_of(each, "toolCallId"): number for each in list_of(data, "toolRequests")}
        elif value.get("type") == "tool.execution_complete":
            id = text_of(data, "toolCallId")
            if id in open_calls:
                del open_calls[id]
            else:
                unmatched.append((number, value))
    for number, value in unmatched:
        data = object_of(value, "data")
        id = text_of(data, "toolCallId")
        at = open_calls.pop(id, 0)
        if at:
            message = f"the result of {id[:60]!r} is before its call"
            examination.add("misplaced-result", message, number, "move it behind")
            examination.remove(number)
            examination.insert_after(at, value)
            continue
        message = f"a result for {id[:60]!r}, which no call before it has, or which has one already"
        examination.add("orphan-result", message, number, "keep it as a message")
        words = text_of(object_of(data, "result"), "content") or text_of(object_of(data, "error"), "message")
        text = f"{ORPHAN}\n{words}".rstrip()
        changed = {**value, "type": "user.message", "data": {"content": text, "transformedContent": text}}
        examination.set_value(number, changed)

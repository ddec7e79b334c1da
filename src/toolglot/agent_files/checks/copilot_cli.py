"""What can be wrong in a session of Copilot CLI: lines split by raw line breaks, NUL bytes after a power loss, events
that lack a field, and results without calls.

It answers a call without a result itself, and says so.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.agent_files.checks.refused_calls import CallRenames, ProviderLimits, limits_for, refused_image
from toolglot.agent_files.checks.shared_checks import ORPHAN, examine_lines
from toolglot.agent_files.edits import Examination, differs
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of

_SPOKEN: Final = frozenset({"user.message", "assistant.message"})
_START: Final = {"version": 1, "producer": "copilot-agent", "copilotVersion": "0.0.0"}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_TIME: Final = "1970-01-01T00:00:00.000Z"
_MISSING: Final = "(missing)"


def is_of_subagent(value: dict[str, Any]) -> bool:
    """Whether an event belongs to a call of a subagent."""
    return bool(text_of(object_of(value, "data"), "parentToolCallId") or text_of(value, "agentId"))


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = _examine_events(examination, examine_lines(examination, lines))
    if not any(text_of(value, "type") in _SPOKEN for _, value in values):
        examination.add("no-messages", f"the session {path.parent.name} has no messages")
        return examination
    _examine_start(examination, path, values)
    _examine_calls(examination, values)
    _examine_results(
        examination,
        [(number, examination.value(number, value)) for number, value in values if not is_of_subagent(value)],
    )
    return examination


def _examine_events(
    examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    """Events with all that Copilot CLI wants of each: it refuses the whole session for one that lacks it."""
    found: list[tuple[int, dict[str, Any]]] = []
    time = next((text for _, value in values if _has_offset(text := text_of(value, "timestamp"))), _NO_TIME)
    before: str | None = None
    for number, value in values:
        if not text_of(value, "type") or not isinstance(value.get("data"), dict):
            examination.add(
                "broken-line", "the event has no type or no data: the session is refused", number, "remove it"
            )
            examination.remove(number)
            continue
        new = dict(value)
        if not _UUID.fullmatch(text_of(value, "id")):
            new["id"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{text_of(value, 'id')}/{number}"))
        if "parentId" not in value or not (value["parentId"] is None or _UUID.fullmatch(text_of(value, "parentId"))):
            new["parentId"] = before
        if _has_offset(text_of(value, "timestamp")):
            time = text_of(value, "timestamp")
        else:
            new["timestamp"] = time
        new["data"] = _fit_data(value, number)
        missing = [name for name, each in new.items() if differs(value.get(name, _MISSING), each)]
        if missing:
            message = f"the event lacks {', '.join(missing)}: the whole session is refused"
            examination.add("bad-event", message, number, "add it")
            examination.set_value(number, new)
        before = new["id"]
        found.append((number, new))
    return found


def _has_offset(timestamp: str) -> bool:
    try:
        return datetime.fromisoformat(timestamp).tzinfo is not None
    except ValueError:
        return False


def _fit_data(value: dict[str, Any], number: int) -> dict[str, Any]:
    """The data of an event, with the fields that its kind must have."""
    data = dict(value["data"])
    wanted: dict[str, Any] = {}
    match value["type"]:
        case "session.start":
            wanted = {**_START, "startTime": text_of(value, "timestamp") or _NO_TIME}
        case "assistant.message":
            wanted = {"messageId": f"message-{number}", "content": ""}
            if "toolRequests" in data:
                data["toolRequests"] = [_fit_request(each) for each in list_of(data, "toolRequests") if _is_call(each)]
        case "user.message":
            wanted = {"content": text_of(data, "transformedContent")}
        case "tool.execution_start":
            wanted = {"toolCallId": "", "toolName": "unnamed_tool"}
        case "tool.execution_complete":
            wanted = {"toolCallId": "", "success": "error" not in data}
            for name, field in (("result", "content"), ("error", "message")):
                if name in data and not isinstance(data[name], dict):
                    words = data[name] if isinstance(data[name], str) else msgspec.json.encode(data[name]).decode()
                    data[name] = {field: words}
    return {**data, **{name: each for name, each in wanted.items() if type(data.get(name)) is not type(each)}}


def _is_call(request: Any) -> bool:
    return bool(text_of(request, "toolCallId"))


def _fit_request(request: dict[str, Any]) -> dict[str, Any]:
    return request if isinstance(request.get("name"), str) else {**request, "name": "unnamed_tool"}


def _examine_start(examination: Examination, path: Path, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    found = next(((number, value) for number, value in values if value.get("type") == "session.start"), None)
    if found is None:
        examination.add("no-header", "the first event, session.start, is missing", 1, "write a new one")
        time = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
        data = {"sessionId": path.parent.name, **_START, "startTime": time, "context": {"cwd": "/"}}
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, path.parent.name))
        event = {"type": "session.start", "data": data, "id": id, "timestamp": time, "parentId": None}
        examination.insert_after(0, event)
        return
    number, value = found
    data = object_of(value, "data")
    if text_of(data, "sessionId") != path.parent.name:
        message = f"the id {text_of(data, 'sessionId')[:60]!r} is not that of the folder"
        examination.add("wrong-id", message, number, "take that of the folder")
        examination.set_value(number, {**value, "data": {**data, "sessionId": path.parent.name}})


def _examine_calls(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Ids, names and images that the provider refuses."""
    models = (
        text_of(data, "model") or text_of(data, "newModel") or text_of(data, "selectedModel")
        for data in (object_of(value, "data") for _, value in reversed(values))
    )
    limits = limits_for("copilot_cli", next((model for model in models if model), ""))
    renames = CallRenames(examination)
    for number, value in values:
        for call in list_of(object_of(value, "data"), "toolRequests"):
            renames.examine(number, text_of(call, "toolCallId"), text_of(call, "name"), limits)
    for number, value in values:
        current = examination.value(number, value)
        data = object_of(current, "data")
        new = renames.rename(renames.rename(data, "toolCallId", "toolName"), "parentToolCallId")
        if isinstance(data.get("toolRequests"), list):
            calls = [
                renames.rename(each, "toolCallId", "name") if isinstance(each, dict) else each
                for each in data["toolRequests"]
            ]
            new = {**new, "toolRequests": calls}
        if isinstance(data.get("attachments"), list):
            new = _with_accepted_images(examination, number, new, limits)
        if new != data:
            examination.set_value(number, {**current, "data": new})


def _with_accepted_images(
    examination: Examination, number: int, data: dict[str, Any], limits: ProviderLimits
) -> dict[str, Any]:
    """What was said, with a note in the place of each attached image that is too large."""
    kept: list[Any] = []
    notes: list[str] = []
    for each in data["attachments"]:
        is_image = text_of(each, "mimeType").startswith("image/")
        note = refused_image(examination, number, len(text_of(each, "data")), limits) if is_image else ""
        if note:
            notes.append(note)
        else:
            kept.append(each)
    if not notes:
        return data
    texts = {
        name: "\n".join([data[name], *notes])
        for name in ("content", "transformedContent")
        if isinstance(data.get(name), str)
    }
    return {**data, **texts, "attachments": kept}


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

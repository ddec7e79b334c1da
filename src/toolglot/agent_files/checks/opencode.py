"""What can be wrong in a session of opencode, whose lines here are its own row and then its messages.

opencode answers calls without results itself. It stops at records that lack a field of its schema, sends ids and names
as they are, and loses a session whose row is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.checks.refused_calls import limits_of, refused_image
from toolglot.agent_files.checks.shared_checks import INTERRUPTED, LEGAL_ID, LEGAL_NAME, legal_id, legal_name
from toolglot.agent_files.edits import Examination, differs
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, text_of

_STRICTEST: Final = "anthropic"
"""A session goes to any provider: an image must be fit for the one that accepts least."""
_CACHE: Final = {"read": 0, "write": 0}
TOKENS: Final = {"input": 0, "output": 0, "reasoning": 0, "cache": _CACHE}
_ROLES: Final = frozenset({"user", "assistant"})
_TEXTS: Final = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool": (),
    "file": ("mime", "url"),
    "agent": ("name",),
    "subtask": ("prompt", "description", "agent"),
    "snapshot": ("snapshot",),
    "patch": ("hash",),
}
"""The kinds of parts that are checked, and their fields that must be strings."""
_OTHERS: Final = frozenset({"step-start", "step-finish", "compaction", "retry"})


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a session, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    for line in lines:
        if line.value is None:
            examination.add("broken-file", f"it cannot be read: {line.problem}", line.number)
            return examination
        if line.problem:
            examination.add("bad-characters", f"it has {line.problem}", line.number, "replace them with U+FFFD")
            examination.put(line.number, encode_line(line.value))
    messages = [(line.number, line.value) for line in lines[1:] if line.value is not None]
    if not any(text_of(object_of(value, "info"), "role") in _ROLES for _, value in messages):
        examination.add("no-messages", f"the session {path.name} has no messages")
        return examination
    if lines[0].value is not None:
        _examine_row(examination, lines[0].value, messages)
    _MessageExamination(examination).examine(messages)
    return examination


def _examine_row(
    examination: Examination, value: dict[str, Any], messages: Sequence[tuple[int, dict[str, Any]]]
) -> None:
    """The session's own row, which names its folder and its title."""
    info = object_of(value, "info")
    made = [object_of(message, "info") for _, message in messages]
    folders = [text_of(object_of(each, "path"), "cwd") for each in made]
    times = [each for about in made if isinstance(each := object_of(about, "time").get("created"), int | float)]
    known = {
        "id": next((text_of(about, "sessionID") for about in made if text_of(about, "sessionID")), "ses_unknown"),
        "slug": "session",
        "projectID": "global",
        "directory": next((folder for folder in folders if folder), "/"),
        "title": "a session whose row was lost",
        "version": "0.0.0",
    }
    missing = [name for name in known if not text_of(info, name)]
    time = object_of(info, "time")
    has_times = all(isinstance(time.get(name), int | float) for name in ("created", "updated"))
    if not missing and has_times:
        return
    if not info:
        examination.add("no-header", "the session's own row is gone: opencode does not list it", 1, "write a new one")
    else:
        what = ", ".join([*missing, *(() if has_times else ("time",))])
        examination.add("bad-header", f"the session's own row lacks {what}: opencode stops at it", 1, "add it")
    start, end = (min(times), max(times)) if times else (0, 0)
    whole = {**info, **{name: known[name] for name in missing}}
    examination.set_value(1, {**value, "info": {**whole, "time": {"created": start, "updated": end, **_numbers(time)}}})


def _numbers(time: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in time.items() if isinstance(each, int | float)}


class _MessageExamination:
    """Goes through the messages in their order."""

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._ids: set[str] = set()
        self._calls: set[str] = set()
        self._last_user = ""
        self._time = 0.0
        self._folder = "/"

    def _add(self, kind: str, message: str, line: int, fix: str) -> None:
        self._examination.add(kind, message, line, fix)

    def examine(self, messages: Sequence[tuple[int, dict[str, Any]]]) -> None:
        users = {
            text_of(info, "id") for _, value in messages if (info := object_of(value, "info")).get("role") == "user"
        }
        for line, value in messages:
            info = object_of(value, "info")
            if text_of(info, "role") not in _ROLES:
                self._add("broken-line", "the message has no role that opencode knows", line, "remove it")
                self._examination.remove(line)
                continue
            fixed = self._fit_info(info, users, line)
            parts = [part for each in list_of(value, "parts") if (part := self._fit_part(each, line)) is not None]
            if differs(fixed, info) or differs(parts, value.get("parts")):
                self._examination.set_value(line, {**value, "info": fixed, "parts": parts})

    def _fit_info(self, info: dict[str, Any], users: set[str], line: int) -> dict[str, Any]:
        """What is said of a message, with all that the schema wants."""
        new = dict(info)
        id = text_of(info, "id")
        if not id or id in self._ids:
            self._add("duplicate-id" if id else "no-id", "the message has no id of its own", line, "give it one")
            new["id"] = legal_id(id, str(line), self._ids).replace("toolu_", "msg_")
        self._ids.add(new["id"])
        time = object_of(info, "time").get("created")
        self._time = float(time) if isinstance(time, int | float) else self._time
        self._folder = text_of(object_of(info, "path"), "cwd") or self._folder
        if info["role"] == "user":
            self._last_user = new["id"]
            wanted: dict[str, Any] = {"agent": "build", "model": {"providerID": "anthropic", "modelID": "unknown"}}
        else:
            wanted = {
                "parentID": self._last_user or new["id"],
                "modelID": "unknown",
                "providerID": "unknown",
                "mode": "build",
                "agent": "build",
                "cost": 0,
                "tokens": TOKENS,
                "path": {"cwd": self._folder, "root": self._folder},
            }
            parent = text_of(info, "parentID")
            if parent and parent not in users and self._last_user and parent != self._last_user:
                message = f"it answers {parent[:40]!r}, which is not in the session"
                self._add("dangling-parent", message, line, "connect it to the prompt before it")
                new["parentID"] = self._last_user
        wanted["time"] = {"created": int(self._time)}
        missing = [name for name, default in wanted.items() if not _is_like(info.get(name), default)]
        if missing:
            self._add("bad-message", f"the message lacks {', '.join(missing)}: opencode stops at it", line, "add it")
            new |= {name: wanted[name] for name in missing}
        return new

    def _fit_part(self, part: Any, line: int) -> dict[str, Any] | None:
        """A part as the schema wants it; None for one that says nothing."""
        kind = text_of(part, "type")
        names = _TEXTS.get(kind, ())
        if (kind not in _TEXTS and kind not in _OTHERS) or any(not isinstance(part.get(name), str) for name in names):
            self._add("broken-part", f"a part of the kind {kind[:40]!r} cannot be read", line, "remove it")
            return None
        if kind == "tool":
            return self._fit_call(part, line)
        is_image = kind == "file" and part["url"].startswith("data:image/")
        note = refused_image(self._examination, line, len(part["url"]), limits_of(_STRICTEST)) if is_image else ""
        if note:
            kept = {name: each for name, each in part.items() if name in ("id", "sessionID", "messageID")}
            return {**kept, "type": "text", "text": note}
        return dict(part)

    def _fit_call(self, part: dict[str, Any], line: int) -> dict[str, Any]:
        new = dict(part)
        id, name = text_of(part, "callID"), text_of(part, "tool")
        if id in self._calls or not LEGAL_ID.fullmatch(id):
            what = "another call has it too" if id in self._calls else "providers refuse it"
            kind = "repeated-call-id" if id in self._calls else "illegal-id"
            self._add(kind, f"the id of the call {id[:60]!r}: {what}", line, "rename call and result")
            id = new["callID"] = legal_id(id, str(line), self._calls)
        self._calls.add(id)
        if not LEGAL_NAME.fullmatch(name):
            self._add("illegal-name", f"the name {name[:60]!r} is refused", line, "replace what is not allowed")
            new["tool"] = legal_name(name)
        state = object_of(part, "state")
        wanted = self._state_of(state)
        if differs(state, wanted):
            self._add("bad-call", f"what is known of the call {id[:60]!r} is not complete", line, "add what is missing")
            new["state"] = wanted
        return new

    def _state_of(self, state: dict[str, Any]) -> dict[str, Any]:
        """A state with all that its kind wants."""
        status = text_of(state, "status")
        arguments = state.get("input") if isinstance(state.get("input"), dict) else {}
        time = object_of(state, "time")
        start = time.get("start") if isinstance(time.get("start"), int | float) else int(self._time)
        end = time.get("end") if isinstance(time.get("end"), int | float) else start
        span = {**time, "start": start, "end": end}
        output = state.get("output")
        if status == "completed" and isinstance(output, str):
            title = state["title"] if isinstance(state.get("title"), str) else ""
            whole = {"input": arguments, "title": title, "metadata": object_of(state, "metadata"), "time": span}
            return {**state, **whole}
        if status == "error" and isinstance(state.get("error"), str):
            return {**state, "input": arguments, "time": span}
        if status == "pending":
            return {**state, "input": arguments, "raw": text_of(state, "raw")}
        if status == "running":
            return {**state, "input": arguments, "time": {**time, "start": start}}
        error = output if isinstance(output, str) and output else INTERRUPTED
        return {"status": "error", "input": arguments, "error": error, "time": span}


def _is_like(value: Any, default: Any) -> bool:
    """Whether a field has the type of its default; an object, its fields too."""
    if isinstance(default, dict):
        return isinstance(value, dict) and all(_is_like(value.get(name), each) for name, each in default.items())
    if isinstance(default, int):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, type(default)) and bool(value)

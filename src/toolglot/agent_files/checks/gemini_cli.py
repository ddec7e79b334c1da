"""What can be wrong in a session of Gemini CLI.

It repairs nothing: a call without a result is sent as it is, and the session is refused for ever. One fault it makes
itself: a result is in the message of the model, and again in a message of its own, and a resumed session has both.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.agent_files.checks.refused_calls import CallRenames, ProviderLimits, examine_part, fixed_part, limits_for
from toolglot.agent_files.checks.shared_checks import INTERRUPTED, ORPHAN, examine_lines
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import LINE_LIMITS, FileLine, list_of, text_of
from toolglot.errors import InputError

_SPOKEN: Final = frozenset({"user", "gemini"})
_SESSION: Final = re.compile(r"-([0-9a-f]{8})\.jsonl$")


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    if path.suffix != ".jsonl":
        _examine_old_file(examination, path, lines)
        return examination
    values = examine_lines(examination, lines)
    if not any(text_of(value, "type") in _SPOKEN or "$set" in value for _, value in values):
        examination.add("no-messages", f"{path.name} has no messages: Gemini CLI does not list it")
        return examination
    _examine_header(examination, path, values)
    for number, value in values:
        if text_of(value, "type") in _SPOKEN and not text_of(value, "id"):
            message = "the message has no id, so it is not read"
            examination.add("no-id", message, number, "give it one")
            examination.set_value(number, {**value, "id": f"message-{number}"})
    _examine_messages(examination, [(number, examination.value(number, value)) for number, value in values])
    return examination


def _examine_old_file(examination: Examination, path: Path, lines: Sequence[FileLine]) -> None:
    """A file of one object, as before 2026: as a line that sets all messages."""
    data = b"".join(line.data for line in lines)
    try:
        parsed = jsontext.parse(data, limits=LINE_LIMITS)
    except InputError as error:
        examination.add("broken-file", f"it cannot be read: {error.message}")
        return
    value = parsed.value if isinstance(parsed.value, dict) else {}
    messages = [message for message in list_of(value, "messages") if isinstance(message, dict)]
    if not any(text_of(message, "type") in _SPOKEN for message in messages):
        examination.add("no-messages", f"{path.name} has no messages: Gemini CLI does not list it")
        return
    if parsed.repairs:
        examination.add("bad-characters", f"it has {'; '.join(parsed.repairs)}", 1, "replace them with U+FFFD")
    inner = Examination(includes_holes=examination.includes_holes)
    head = {name: field for name, field in value.items() if name != "messages"}
    _examine_header(inner, path, [(1, head)] if "sessionId" in head else [])
    messages = [
        message if text_of(message, "id") else {**message, "id": f"message-{number}"}
        for number, message in enumerate(messages, 1)
    ]
    if messages != value["messages"]:
        inner.add("no-id", "a message has no id, so it is not read", 1, "give it one")
    _examine_messages(inner, [(2, {"$set": {"messages": messages}})])
    for fault in inner.faults:
        examination.add(fault.kind, fault.message, 1, fault.fix)
    if not examination.faults:
        return
    made = inner.inserted(0) or inner.value(1, head)
    healed = inner.value(2, {"$set": {"messages": messages}})["$set"]["messages"]
    new = msgspec.json.format(msgspec.json.encode({**head, **made, "messages": healed}), indent=2)
    for line in lines:
        examination.remove(line.number)
    examination.put(lines[0].number, *new.splitlines(keepends=True))


class _Place(Struct):
    """A message that counts: its line, and its index if the line replaces all messages."""

    line: int
    index: int | None
    message: dict[str, Any]


def _examine_messages(examination: Examination, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """The messages that are sent: behind the last line that replaced all of them, the last of each id."""
    places = _places(values)
    fixed = _fix_messages(examination, places)
    by_line = dict(values)
    inside: dict[int, dict[int, dict[str, Any] | None]] = {}
    for place, message in zip(places, fixed, strict=True):
        if message == place.message:
            continue
        if place.index is not None:
            inside.setdefault(place.line, {})[place.index] = message
        elif message is None:
            examination.remove(place.line)
        else:
            examination.set_value(place.line, message)
    for line, changes in inside.items():
        change = by_line[line]["$set"]
        kept = [changes.get(index, message) for index, message in enumerate(change["messages"])]
        messages = [message for message in kept if message is not None]
        examination.set_value(line, {**by_line[line], "$set": {**change, "messages": messages}})


def remove_from(messages: dict[str, Any], id: object) -> None:
    """Take back a message and those behind it; all of them if it is not known."""
    while messages and messages.popitem()[0] != id:
        pass


def _places(values: Sequence[tuple[int, dict[str, Any]]]) -> list[_Place]:
    found: dict[str, _Place] = {}
    for line, value in values:
        change = value.get("$set")
        if "$rewindTo" in value:
            remove_from(found, value["$rewindTo"])
        elif isinstance(change, dict) and isinstance(change.get("messages"), list):
            found = {
                text_of(message, "id") or f"#{index}": _Place(line, index, message)
                for index, message in enumerate(change["messages"])
                if isinstance(message, dict)
            }
        elif text_of(value, "id") and text_of(value, "type") in _SPOKEN:
            found[text_of(value, "id")] = _Place(line, None, value)
    return list(found.values())


def _examine_header(examination: Examination, path: Path, values: Sequence[tuple[int, dict[str, Any]]]) -> None:
    heads = [(number, value) for number, value in values if "sessionId" in value and value.get("type") is None]
    named = _SESSION.search(path.name)
    hash_ = hashlib.sha256(str(path.parent.parent).encode()).hexdigest()
    if not heads:
        message = "the header is missing: Gemini CLI does not find the session"
        examination.add("no-header", message, 1, "write a new one")
        time = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
        digest = hashlib.sha256(path.name.encode()).hexdigest()
        start = named[1] if named else digest[:8]
        id = f"{start}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
        times = {"startTime": time or "1970-01-01T00:00:00.000Z", "lastUpdated": time or "1970-01-01T00:00:00.000Z"}
        examination.insert_after(0, {"sessionId": id, "projectHash": hash_, **times, "kind": "main"})
        return
    number, head = heads[0]
    if not text_of(head, "projectHash"):
        message = "the header has no projectHash: Gemini CLI does not find the session"
        examination.add("bad-header", message, number, "add one; its value is not compared")
        examination.set_value(number, {**head, "projectHash": hash_})


def _fix_messages(examination: Examination, places: Sequence[_Place]) -> list[dict[str, Any] | None]:
    """The messages with one result for each call; None for one that has nothing else than what was removed."""
    fixed: list[dict[str, Any] | None] = []
    missing: dict[str, bool] = {}
    """Of the last message of the model, by the key of a call: whether its result is still to come."""
    known: set[str] = set()
    places = _accepted_places(examination, places)
    for index, place in enumerate(places):
        message = place.message
        if message.get("type") == "gemini":
            following = places[index + 1].message if index + 1 < len(places) else {}
            message, missing = _fit_reply(examination, place, _responses(following))
            known |= set(missing)
            fixed.append(message)
        elif _responses(message):
            fixed.append(_fit_results(examination, place, missing, known))
        else:
            fixed.append(message)
    return fixed


def _accepted_places(examination: Examination, places: Sequence[_Place]) -> list[_Place]:
    """The messages with ids, names and images that the provider accepts."""
    limits = limits_for("gemini_cli")
    renames = CallRenames(examination)
    for place in places:
        for call in list_of(place.message, "toolCalls"):
            renames.examine(place.line, text_of(call, "id"), text_of(call, "name"), limits)
        for part in list_of(place.message, "content"):
            examine_part(renames, place.line, part, limits)
    return [replace(place, message=_accepted(examination, renames, place, limits)) for place in places]


def _accepted(examination: Examination, renames: CallRenames, place: _Place, limits: ProviderLimits) -> dict[str, Any]:
    def fixed(parts: list[Any]) -> list[Any]:
        return [fixed_part(examination, renames, place.line, part, limits) for part in parts]

    new = dict(place.message)
    if isinstance(new.get("content"), list):
        new["content"] = fixed(new["content"])
    if isinstance(new.get("toolCalls"), list):
        calls = [renames.rename(call, "id", "name") if isinstance(call, dict) else call for call in new["toolCalls"]]
        new["toolCalls"] = [
            {**call, "result": fixed(call["result"])}
            if isinstance(call, dict) and isinstance(call.get("result"), list)
            else call
            for call in calls
        ]
    return new


def _responses(message: dict[str, Any]) -> set[str]:
    """The keys of the results in the content of a user's message."""
    content = message.get("content")
    parts = content if isinstance(content, list) and message.get("type") == "user" else []
    return {_key(part["functionResponse"]) for part in parts if _is_response(part)}


def _is_response(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("functionResponse"), dict)


def _key(call: dict[str, Any]) -> str:
    return text_of(call, "id") or text_of(call, "name")


def _fit_reply(examination: Examination, place: _Place, following: set[str]) -> tuple[dict[str, Any], dict[str, bool]]:
    """A message of the model with a result for each of its calls, and which are in the next message."""
    message = place.message
    calls = [call for call in list_of(message, "toolCalls") if isinstance(call, dict)]
    content = message.get("content")
    called = [
        part["functionCall"]
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and isinstance(part.get("functionCall"), dict)
    ]
    missing: dict[str, bool] = {}
    fixed: list[dict[str, Any]] = []
    for call in calls:
        missing[_key(call)] = not _has_result(call)
        fixed.append(
            _answered(examination, place, call) if missing[_key(call)] and _key(call) not in following else call
        )
    for call in called:
        if _key(call) not in missing:
            missing[_key(call)] = True
            if _key(call) not in following:
                time = text_of(message, "timestamp")
                fixed.append(_answered(examination, place, {**call, "timestamp": time}))
    missing = {key: is_missing and key in following for key, is_missing in missing.items()}
    same = fixed == list_of(message, "toolCalls") or (not fixed and "toolCalls" not in message)
    return (message if same else {**message, "toolCalls": fixed}), missing


def _answered(examination: Examination, place: _Place, call: dict[str, Any]) -> dict[str, Any]:
    text = f"the call {_key(call)[:60]!r} has no result: the whole session is refused"
    examination.add("dangling-call", text, place.line, "add an error result")
    named = {name: call[name] for name in ("id", "name") if isinstance(call.get(name), str)}
    result = {"functionResponse": {**named, "response": {"error": INTERRUPTED}}}
    return {**call, "status": "error", "result": [result]}


def _fit_results(
    examination: Examination, place: _Place, missing: dict[str, bool], known: set[str]
) -> dict[str, Any] | None:
    """A message of the user whose results each answer a call that has no other."""
    kept: list[Any] = []
    for part in place.message["content"]:
        if not _is_response(part):
            kept.append(part)
            continue
        key = _key(part["functionResponse"])
        if missing.get(key):
            missing[key] = False
            kept.append(part)
        elif key in known:
            message = f"the result of {key[:60]!r} is here twice: the whole session is refused"
            examination.add("repeated-result", message, place.line, "remove the second")
        else:
            message = f"a result for {key[:60]!r}, which no call before it has: the whole session is refused"
            examination.add("orphan-result", message, place.line, "keep it as text")
            response = json.dumps(part["functionResponse"].get("response"), ensure_ascii=False)
            kept.append({"text": f"{ORPHAN}\n{response}"})
    if len(kept) == len(place.message["content"]) and kept == place.message["content"]:
        return place.message
    return {**place.message, "content": kept} if kept else None


def _has_result(call: dict[str, Any]) -> bool:
    result = call.get("result")
    if isinstance(result, list):
        return any(isinstance(part, dict) and "functionResponse" in part for part in result)
    return isinstance(result, str) or (isinstance(result, dict) and "functionResponse" in result)

"""What can be wrong in a session of pi.

It crashes where an answer has no usage, treats a file without a header as empty, and sends results without calls, also
those whose call it left out itself because the answer was aborted; the provider then refuses the session for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.checks.refused_calls import (
    NO_LIMITS,
    CallRenames,
    ProviderLimits,
    limits_for,
    limits_of,
    refused_image,
)
from toolglot.agent_files.checks.shared_checks import ORPHAN, examine_lines
from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of
from toolglot.agent_files.parent_chains import ChainFields, ChainRecord, examine_chain, path_to

MAX_FOLDERS: Final = 200
"""Folders that are tried to find out where a session without a header belongs."""
_COST: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
ZERO_USAGE: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": _COST}
_FIELDS: Final = ChainFields("id", "parentId", lambda text: hashlib.sha256(text.encode()).hexdigest()[:8])


def texts_in(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(text_of(part, "text") for part in content) if isinstance(content, list) else ""


def chain_record(line: int, value: dict[str, Any], before: str | None = None) -> ChainRecord | None:
    """An entry with a parent; of the first version, which has no ids, the one before it."""
    id = text_of(value, "id") or (f"line-{line}" if before is not None or "parentId" not in value else "")
    if not id:
        return None
    parent = value.get("parentId", before)
    return ChainRecord(line, id, parent if isinstance(parent, str) else None, value)


def examine(path: Path, lines: Sequence[FileLine], includes_holes: bool) -> Examination:
    """What is wrong in a file, and the edits that fix it."""
    examination = Examination(includes_holes=includes_holes)
    values = examine_lines(examination, lines)
    entries = [(number, value) for number, value in values if value.get("type") != "session"]
    if not any(value.get("type") == "message" for _, value in entries):
        examination.add("no-messages", f"{path.name} has no messages")
        return examination
    header = _examine_header(examination, path, values)
    _examine_messages(examination, entries)
    _examine_calls(examination, entries)
    if header.get("version", 1) == 1:
        return examination
    records = [
        ChainRecord(number, text_of(value, "id"), parent if isinstance(parent, str) else None, value)
        for number, value in ((number, examination.value(number, value)) for number, value in entries)
        if text_of(value, "id")
        for parent in (value.get("parentId"),)
    ]
    records = examine_chain(examination, records, _FIELDS)
    if records:
        _examine_results(examination, path_to(records[-1], records))
    return examination


def _examine_header(
    examination: Examination, path: Path, values: Sequence[tuple[int, dict[str, Any]]]
) -> dict[str, Any]:
    found = next(((number, value) for number, value in values if value.get("type") == "session"), None)
    time = next((text_of(value, "timestamp") for _, value in values if text_of(value, "timestamp")), "")
    id = path.stem.rpartition("_")[2]
    if found is None:
        examination.add("no-header", "the header is missing: pi takes the session for empty", 1, "write a new one")
        version = 3 if any("parentId" in value for _, value in values) else 1
        folder = _folder_of(path.parent.name)
        header: dict[str, Any] = {"type": "session", "version": version, "id": id, "timestamp": time, "cwd": folder}
        examination.insert_after(0, header)
        return header
    number, header = found
    if number != values[0][0]:
        examination.add("no-header", "the header is not the first line", number, "move it to the front")
        examination.remove(number)
        examination.insert_after(0, header)
    elif not text_of(header, "id"):
        examination.add("bad-header", "the header has no id", number, "take that of the file name")
        header = {**header, "id": id}
        examination.set_value(number, header)
    folder = text_of(header, "cwd")
    if folder and not Path(folder).is_dir():
        message = f"the folder {folder[:200]!r} does not exist: pi refuses the session there"
        examination.add("missing-folder", message, number, only_if_asked=True)
    return header


def _folder_of(name: str) -> str:
    """The working directory that a folder of sessions is named after, `--home-me-proj--`: of those that would have that
    name, one that is there; or else `/`."""
    words = name.removeprefix("--").removesuffix("--").split("-")
    open_: list[tuple[Path, int]] = [(Path("/"), 0)]
    for _ in range(MAX_FOLDERS):
        if not open_:
            break
        folder, used = open_.pop()
        if used == len(words):
            return str(folder)
        for end in range(len(words), used, -1):
            inner = folder / "-".join(words[used:end])
            if ".." not in inner.parts and inner.is_dir():
                open_.append((inner, end))
    return "/"


def _examine_messages(examination: Examination, entries: Sequence[tuple[int, dict[str, Any]]]) -> None:
    before: str | None = None
    for number, value in entries:
        new = dict(value)
        message = object_of(value, "message")
        if "parentId" in value and not text_of(value, "id"):
            examination.add("no-id", "the entry has no id", number, "give it one, behind the entry before")
            new |= {"id": _FIELDS.make_id(f"{number}|{before}"), "parentId": before}
        if message.get("role") == "assistant" and not isinstance(message.get("usage"), dict):
            examination.add("no-usage", "the answer has no usage: pi crashes", number, "add one of zeros")
            new["message"] = {**message, "usage": ZERO_USAGE}
        if new != value:
            examination.set_value(number, new)
        before = text_of(new, "id") or before


def _limits_of(message: dict[str, Any]) -> ProviderLimits:
    """What is refused where an answer came from. pi itself renames the ids of an answer for another provider."""
    match text_of(message, "api"), text_of(message, "provider"):
        case ("anthropic-messages", "anthropic"):
            return limits_of("anthropic")
        case ("google-generative-ai", _):
            return limits_of("gemini")
        case ("openai-completions", "openai"):
            return limits_for("pi")
    return NO_LIMITS


def _examine_calls(examination: Examination, entries: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Ids, names and images that the provider refuses."""
    renames = CallRenames(examination)
    limits = NO_LIMITS
    for number, value in entries:
        message = object_of(value, "message")
        if message.get("role") == "assistant":
            limits = _limits_of(message)
            for part in list_of(message, "content"):
                if text_of(part, "type") == "toolCall":
                    renames.examine(number, text_of(part, "id"), text_of(part, "name"), limits)
    for number, value in entries:
        current = examination.value(number, value)
        message = object_of(current, "message")
        new = renames.rename(message, "toolCallId", "toolName")
        if isinstance(message.get("content"), list):
            parts = [_accepted(examination, renames, (number, part), limits) for part in message["content"]]
            new = {**new, "content": parts}
        if new != message:
            examination.set_value(number, {**current, "message": new})


def _accepted(examination: Examination, renames: CallRenames, part_of: tuple[int, Any], limits: ProviderLimits) -> Any:
    """A part of a message with what the provider accepts."""
    line, part = part_of
    kind = text_of(part, "type")
    if kind == "toolCall":
        return renames.rename(part, "id", "name")
    if kind == "image":
        note = refused_image(examination, line, len(text_of(part, "data")), limits)
        return {"type": "text", "text": note} if note else part
    return part


def _examine_results(examination: Examination, chain: Sequence[ChainRecord]) -> None:
    """Every result has a call before it that is sent."""
    open_calls: dict[str, ChainRecord] = {}
    answered = {
        text_of(object_of(record.value, "message"), "toolCallId")
        for record in chain
        if object_of(record.value, "message").get("role") == "toolResult"
    }
    taken: set[str] = set()
    called: dict[str, ChainRecord] = {}
    answered_behind: set[str] = set()
    for record in chain:
        message = object_of(record.value, "message")
        if message.get("role") == "assistant":
            called |= {
                text_of(part, "id"): record
                for part in list_of(message, "content")
                if text_of(part, "type") == "toolCall"
            }
        elif text_of(message, "toolCallId") in called:
            answered_behind.add(text_of(message, "toolCallId"))
    for record in chain:
        value = examination.value(record.line, record.value)
        message = object_of(value, "message")
        if message.get("role") == "assistant":
            ids = {text_of(part, "id") for part in list_of(message, "content") if text_of(part, "type") == "toolCall"}
            if ids & answered and message.get("stopReason") in ("aborted", "error"):
                text = "the answer was aborted, so its calls are not sent, but their results are: this is refused"
                examination.add("aborted-answer", text, record.line, "let the calls be sent")
                examination.set_value(record.line, {**value, "message": {**message, "stopReason": "toolUse"}})
            open_calls |= dict.fromkeys(ids, record)
        elif message.get("role") == "toolResult":
            id = text_of(message, "toolCallId")
            if id in open_calls and id not in taken:
                taken.add(id)
                continue
            later = called.get(id)
            if later is not None and id not in answered_behind:
                text = f"the result of {id[:60]!r} is before its call: this is refused"
                examination.add("misplaced-result", text, record.line, "move it behind its call")
                _move(examination, record, later, chain)
                answered_behind.add(id)
                continue
            text = f"a result for {id[:60]!r}, which no call before it has: this is refused"
            examination.add("orphan-result", text, record.line, "keep it as a message")
            parts = [part for part in list_of(message, "content") if isinstance(part, dict)]
            user = {"role": "user", "content": [{"type": "text", "text": ORPHAN}, *parts]}
            user |= {"timestamp": message["timestamp"]} if "timestamp" in message else {}
            examination.set_value(record.line, {**value, "message": user})


def _move(examination: Examination, record: ChainRecord, call: ChainRecord, chain: Sequence[ChainRecord]) -> None:
    """Put a result behind its call: a copy with an id of its own there, a note in its place."""
    value = examination.value(record.line, record.value)
    note = {"role": "user", "content": [{"type": "text", "text": "[A result was moved behind its call.]"}]}
    time = object_of(value, "message").get("timestamp")
    moved = {**value, "id": _FIELDS.make_id(f"{record.id}|{record.line}|moved"), "parentId": call.id}
    for each in chain:
        if each.parent == call.id:
            child = examination.value(each.line, each.value)
            examination.set_value(each.line, {**child, "parentId": moved["id"]})
    examination.insert_after(call.line, moved)
    examination.set_value(record.line, {**value, "message": {**note, **({"timestamp": time} if time else {})}})

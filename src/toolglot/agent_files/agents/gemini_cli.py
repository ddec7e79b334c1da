"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`; before 2026 one object in a `.json` file.

A line is the header, a message, or a change: a message with the same `id` replaces the earlier one, `$set` replaces
fields of the header or all messages, `$rewindTo` removes a message and what is behind it.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from toolglot import jsontext
from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.gemini_cli import examine, remove_from
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, read_lines, text_of
from toolglot.agent_files.reading import ReadingLog, decode_messages, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import Conversation, Turn
from toolglot.conversation.report import Entry
from toolglot.errors import InputError

NAME: Final = "gemini_cli"
MODEL: Final = "gemini-3-pro"
"""A model that wants placeholders for signatures; the others accept them."""
SNAPSHOT: Final = "<state_snapshot>"
"""How the summary of a compressed session begins."""
_OWN_PROMPTS: Final = ("<session_context>", "<hook_context>")
_SKIPPED: Final = ("/", "?", *_OWN_PROMPTS)
"""How messages begin that Gemini CLI leaves out of the history when it resumes a session."""
_QUOTED: Final = "[prompt] "
_SPOKEN: Final = frozenset({"user", "gemini"})
_SLUG: Final = re.compile(r"[^a-z0-9]+")


# --- where the files are ----------------------------------------------------------------------------


def root_of(home: AgentHome) -> Path:
    return home.root("GEMINI_DIR", ".gemini")


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home) / "tmp"
    return iter(sorted(root.glob("*/chats/session-*.json*"))) if root.is_dir() else iter(())


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether the first object is a header."""
    first = next((line.value for line in lines if line.value is not None), None)
    if first is not None:
        return ("projectHash" in first and "sessionId" in first) or (
            path.name.startswith("session-") and text_of(first, "type") in _SPOKEN and "content" in first
        )
    return path.suffix == ".json" and any(b'"projectHash"' in line.data for line in lines)


def project_folder(home: AgentHome, directory: str) -> Path:
    """The folder of a project: as Gemini CLI has registered it, or as it would name it."""
    root = root_of(home)
    try:
        known = jsontext.parse((root / "projects.json").read_bytes()).value
    except (OSError, InputError):
        known = {}
    named = text_of(object_of(known, "projects"), directory)
    if named and "/" not in named and named not in (".", ".."):
        return root / "tmp" / named
    slug = _SLUG.sub("-", Path(directory).name.lower()).strip("-") or "project"
    number = 0
    while True:
        folder = root / "tmp" / (f"{slug}-{number}" if number else slug)
        if _root_in(folder) in ("", directory):
            return folder
        number += 1


def _root_in(folder: Path) -> str:
    try:
        return (folder / ".project_root").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


# --- reading ----------------------------------------------------------------------------------------


class _Log(Struct):
    """The messages that the lines so far make."""

    head: dict[str, Any]
    messages: dict[str, tuple[int, dict[str, Any]]]
    rewound: int = 0


def _replay(path: Path, log: ReadingLog) -> _Log:
    found = _Log({}, {})
    lines = list(read_lines(path))
    if path.suffix == ".json":
        return _old_file(lines, log)
    for line in lines:
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
        elif "$rewindTo" in value:
            before = len(found.messages)
            remove_from(found.messages, value["$rewindTo"])
            found.rewound += before - len(found.messages)
        elif "$set" in value:
            changed = object_of(value, "$set")
            if isinstance(changed.get("messages"), list):
                found.messages = {}
                _add_all(found, changed["messages"], line.number)
            found.head |= {name: field for name, field in changed.items() if name != "messages"}
        elif text_of(value, "id") and "type" in value:
            found.messages[text_of(value, "id")] = (line.number, value)
        elif "sessionId" in value:
            found.head |= value
    return found


def _old_file(lines: Sequence[FileLine], log: ReadingLog) -> _Log:
    found = _Log({}, {})
    try:
        value = jsontext.parse(b"".join(line.data for line in lines)).value
    except InputError as error:
        log.add(f"the file cannot be read: {error.message}")
        return found
    if isinstance(value, dict):
        found.head = {name: field for name, field in value.items() if name != "messages"}
        _add_all(found, list_of(value, "messages"), 1)
    return found


def _add_all(found: _Log, messages: Sequence[Any], line: int) -> None:
    for index, message in enumerate(messages):
        if isinstance(message, dict):
            found.messages[text_of(message, "id") or f"#{index}"] = (line, message)


def read(path: Path) -> AgentSession:
    """The session that `gemini --resume` would continue."""
    log = ReadingLog(path)
    found = _replay(path, log)
    turns: list[Turn] = []
    prompts: list[OwnPrompt] = []
    model = ""
    compactions = 0
    answered: set[str] = set()
    for line, message in found.messages.values():
        kind, parts = text_of(message, "type"), parts_of(message.get("content"))
        if kind == "user":
            text = _text_in(parts)
            if text.lstrip().startswith(_OWN_PROMPTS):
                prompts.append(OwnPrompt(kind="context", text=text, line=line))
            elif SNAPSHOT in text[:200] and not turns:
                turns.append(summary_turn(text))
                compactions = 1
            else:
                # Gemini CLI writes each result twice: into the message of the model, and here.
                parts = [part for part in parts if text_of(object_of(part, "functionResponse"), "id") not in answered]

                user = [(line, {"role": "user", "parts": parts})] if parts else []
                turns += decode_messages(user, "gemini", None, log)
        elif kind == "gemini":
            model = text_of(message, "model") or model
            answered |= {
                text_of(call, "id")
                for call in list_of(message, "toolCalls")
                if object_of({"call": call}, "call").get("result") is not None
            } - {""}
            contents = [(line, content) for content in contents_of(message, parts)]
            turns += decode_messages(contents, "gemini", issuer_of("gemini", text_of(message, "model")), log)
    return AgentSession(
        agent=NAME,
        id=text_of(found.head, "sessionId"),
        path=str(path),
        title=title_from(text_of(found.head, "summary")) or first_prompt(turns),
        directory=_root_in(path.parent.parent),
        model=model,
        created=seconds_of(found.head.get("startTime")),
        updated=seconds_of(found.head.get("lastUpdated")),
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=compactions,
        rewound=found.rewound,
        subagents=_subagents(path, text_of(found.head, "sessionId")),
        report=log.report(),
    )


def _subagents(path: Path, id: str) -> tuple[str, ...]:
    folder = path.parent / id if id and "/" not in id and id not in (".", "..") else None
    return tuple(str(each) for each in sorted(folder.glob("*.jsonl"))) if folder is not None else ()


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The parts of a content, which can be a text, a part, or a list of both."""
    listed = content if isinstance(content, list) else [content]
    found: list[dict[str, Any]] = []
    for part in listed:
        if isinstance(part, str) and part:
            found.append({"text": part})
        elif isinstance(part, dict):
            found.append(part)
    return found


def _text_in(parts: Sequence[dict[str, Any]]) -> str:
    return "".join(text_of(part, "text") for part in parts if not part.get("thought"))


def contents_of(message: dict[str, Any], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The turn of the model, and the turn with the results of its calls, as Gemini CLI makes them."""
    calls = [call for call in list_of(message, "toolCalls") if isinstance(call, dict)]
    sent = list(parts)
    if not any("functionCall" in part or part.get("thought") for part in parts):
        thoughts = [
            {"text": f"**{text_of(each, 'subject')}** {text_of(each, 'description')}".strip(), "thought": True}
            for each in list_of(message, "thoughts")
        ]
        named = [
            {
                "functionCall": {
                    "id": text_of(call, "id"),
                    "name": text_of(call, "name"),
                    "args": object_of(call, "args"),
                }
            }
            for call in calls
        ]
        sent = [*thoughts, *parts, *named]
    results: list[dict[str, Any]] = []
    for call in calls:
        result = call.get("result")
        if isinstance(result, str):
            response = {"id": text_of(call, "id"), "name": text_of(call, "name"), "response": {"output": result}}
            results.append({"functionResponse": response})
        else:
            results += parts_of(result) if result is not None else []
    contents = [{"role": "model", "parts": sent}] if sent else []
    return [*contents, *([{"role": "user", "parts": results}] if results else [])]


def describe(path: Path) -> SessionRow:
    """A row for a list."""
    found = _replay(path, ReadingLog(path))
    title = title_from(text_of(found.head, "summary"))
    model = ""
    turns = 0
    for _, message in found.messages.values():
        model = text_of(message, "model") or model
        if message.get("type") == "user":
            text = _text_in(parts_of(message.get("content")))
            if text.strip() and not text.lstrip().startswith(_OWN_PROMPTS):
                turns += 1
                title = title or title_from(text)
    status = path.stat()
    return SessionRow(
        agent=NAME,
        id=text_of(found.head, "sessionId") or path.stem,
        path=str(path),
        title=title,
        directory=_root_in(path.parent.parent),
        model=model,
        turns=turns,
        size=status.st_size,
        updated=status.st_mtime,
    )


def prompts(lines: Sequence[FileLine]) -> list[int]:
    """The lines on which the prompts of the user begin."""
    found: dict[str, int] = {}
    for line in lines:
        value = line.value or {}
        if value.get("type") == "user" and not _text_in(parts_of(value.get("content"))).lstrip().startswith(
            _OWN_PROMPTS
        ):
            found.setdefault(text_of(value, "id"), line.number)
    return sorted(found.values())


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `gemini --resume` continues."""
    made = render_turns(request.conversation, "gemini", model=request.model or MODEL, keeps_thinking=request.is_native)
    time = timestamp_of(request.now)
    entries = list(made.entries)
    header = {
        "sessionId": request.id,
        "projectHash": hashlib.sha256(request.directory.encode()).hexdigest(),
        "startTime": time,
        "lastUpdated": time,
        "kind": "main",
        **({"summary": request.title} if request.title else {}),
    }
    lines = [encode_line(header)]
    if made.summary:
        text = made.summary if SNAPSHOT in made.summary[:200] else f"{SNAPSHOT}\n{made.summary}\n</state_snapshot>"
        first = {"id": _id(request, "summary"), "timestamp": time, "type": "user", "content": [{"text": text}]}
        lines.append(encode_line({"$set": {"messages": [first]}}))
    models = [turn.issuer.model if turn.issuer is not None else "" for turn in made.turns]
    aligned = len(models) == len(made.messages)
    messages = _messages_of(made.messages, models if aligned else [], entries)
    lines += [
        encode_line({"id": _id(request, str(number)), "timestamp": time, **message})
        for number, message in enumerate(messages)
    ]
    folder = project_folder(request.home, request.directory) / "chats"
    name = f"session-{datetime.fromtimestamp(request.now, UTC):%Y-%m-%dT%H-%M}-{request.id[:8]}.jsonl"
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=folder / name,
        command=("gemini", "--resume", request.id),
        directory=request.directory,
        data=b"".join(lines),
        report=tuple(entries),
        calls=made.calls,
        results=made.results,
    )


def _id(request: WriteRequest, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{request.id}/{name}"))


def _messages_of(
    contents: Sequence[dict[str, Any]], models: Sequence[str], entries: list[Entry]
) -> list[dict[str, Any]]:
    """Messages of the contents: the results of calls are put into the message of the model."""
    messages: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for index, content in enumerate(contents):
        parts = parts_of(content.get("parts"))
        if content.get("role") == "model":
            waiting = [
                {**part["functionCall"], "status": "success", "timestamp": ""}
                for part in parts
                if "functionCall" in part
            ]
            named = models[index] if index < len(models) and models[index] else "unknown"
            calls = {"toolCalls": waiting} if waiting else {}
            messages.append({"type": "gemini", "model": named, "content": parts, **calls})
            continue
        rest = [part for part in parts if not _take_result(part, waiting)]
        if rest:
            text = _text_in(rest)
            if text.lstrip().startswith(_SKIPPED):
                reason = "a message begins as a command of Gemini CLI, which would leave it out; it was marked"
                entries.append(Entry(action="converted", reason=reason, fault="renderer", turn=index))
                rest = [{"text": _QUOTED.rstrip()}, *rest]
            messages.append({"type": "user", "content": rest})
    for message in messages:
        for call in message.get("toolCalls", ()):
            call["timestamp"] = "1970-01-01T00:00:00.000Z"
    return messages


def _take_result(part: dict[str, Any], waiting: Sequence[dict[str, Any]]) -> bool:
    """Put a result into its call; false for any other part."""
    response = part.get("functionResponse")
    if not isinstance(response, dict):
        return False
    for call in waiting:
        same = call.get("id") == response.get("id") if response.get("id") else call.get("name") == response.get("name")
        if same and "result" not in call:
            call["result"] = [part]
            if "error" in object_of(response, "response"):
                call["status"] = "error"
            return True
    return False


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Gemini CLI",
    aliases=("gemini",),
    find=find,
    provider="gemini",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
)

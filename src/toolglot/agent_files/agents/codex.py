"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl`, or the same compressed with zstd.

The first line says whose session it is; `response_item` lines are what is sent, in the form of OpenAI's Responses.
`compacted` replaces what was before it, `thread_rolled_back` removes the last turns of the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.codex import examine
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, read_lines, text_of
from toolglot.agent_files.reading import ReadingLog, decode_messages, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import Conversation, Turn

NAME: Final = "codex"
VERSION: Final = "0.166.0"
"""Written into new sessions: the version whose sessions were last compared with these."""
KINDS: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
_OWN_PROMPTS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
)
"""How messages begin that Codex writes in the name of the user."""
SUMMARY_PREFIX: Final = "Another language model started to solve this problem"
_THREAD: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOCK: Final = "thread-writer-locks"


# --- where the files are ----------------------------------------------------------------------------


def root_of(home: AgentHome) -> Path:
    return home.root("CODEX_HOME", ".codex") / "sessions"


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home)
    found = [*root.glob("*/*/*/rollout-*.jsonl"), *root.glob("*/*/*/rollout-*.jsonl.zst")] if root.is_dir() else []
    return iter(sorted(found))


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether a line is one of a rollout."""
    named = path.name.startswith("rollout-")
    return any(
        line.value is not None
        and text_of(line.value, "type") in KINDS
        and (isinstance(line.value.get("payload"), dict) or named)
        for line in lines
    )


def thread_of(path: Path) -> str:
    """The id of the thread in the name of a file."""
    found = _THREAD.findall(path.name)
    return found[0] if found else path.name.removeprefix("rollout-").partition(".jsonl")[0]


# --- reading ----------------------------------------------------------------------------------------


class _Replay(Struct):
    """The history that the lines so far make."""

    items: list[tuple[int, dict[str, Any]]]
    summary: str = ""
    compactions: int = 0
    rolled_back: int = 0


def read(path: Path) -> AgentSession:
    """The session that `codex resume` would continue."""
    log = ReadingLog(path)
    replay = _Replay([])
    meta: dict[str, Any] = {}
    model = title = ""
    updated = 0.0
    for line in read_lines(path):
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
            continue
        kind, payload = text_of(value, "type"), object_of(value, "payload")
        updated = seconds_of(value.get("timestamp")) or updated
        if kind == "session_meta" and not meta:
            meta = payload
        elif kind == "response_item":
            replay.items.append((line.number, payload))
        elif kind == "turn_context":
            model = text_of(payload, "model") or model
        elif kind == "compacted":
            _compact(replay, payload, line.number)
        elif kind == "event_msg":
            if text_of(payload, "type") == "thread_rolled_back":
                _roll_back(replay, payload.get("num_turns"))
            elif text_of(payload, "type") == "user_message":
                title = title or title_from(text_of(payload, "message"))
    turns, prompts = _turns_of(replay, model, log)
    return AgentSession(
        agent=NAME,
        id=text_of(meta, "id") or thread_of(path),
        path=str(path),
        title=title or first_prompt(turns),
        directory=text_of(meta, "cwd"),
        branch=text_of(object_of(meta, "git"), "branch"),
        version=text_of(meta, "cli_version"),
        model=model,
        created=seconds_of(meta.get("timestamp")),
        updated=updated,
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(_base_prompt(meta) + prompts),
        compactions=replay.compactions,
        rewound=replay.rolled_back,
        report=log.report(),
    )


def _base_prompt(meta: dict[str, Any]) -> list[OwnPrompt]:
    text = text_of(object_of(meta, "base_instructions"), "text")
    return [OwnPrompt(kind="base_instructions", text=text, line=1)] if text else []


def _compact(replay: _Replay, payload: dict[str, Any], line: int) -> None:
    """What was before is replaced. Old files name only the summary; the user's messages stay with it."""
    replay.compactions += 1
    items = [item for item in list_of(payload, "replacement_history") if isinstance(item, dict)]
    summary = text_of(payload, "message")
    if items:
        replay.items = [(line, item) for item in items]
        last = text_in(items[-1])
        replay.summary = last if items[-1].get("role") == "user" and last.startswith(SUMMARY_PREFIX) else summary
        if replay.summary and last != replay.summary and all(text_in(item) != replay.summary for item in items):
            replay.summary = ""
        return
    kept = [(number, item) for number, item in replay.items if is_of_user(item)]
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}
    replay.items = [*kept, *([(line, message)] if summary else [])]
    replay.summary = summary


def _roll_back(replay: _Replay, count: object) -> None:
    """Without the last turns of the user, and what followed them."""
    places = [index for index, (_, item) in enumerate(replay.items) if is_of_user(item)]
    if isinstance(count, int) and count > 0 and places:
        cut = places[-min(count, len(places))]
        replay.rolled_back += len(replay.items) - cut
        del replay.items[cut:]


def text_in(item: dict[str, Any]) -> str:
    """The text of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(text_of(part, "text") for part in list_of(item, "content"))


def is_of_user(item: dict[str, Any]) -> bool:
    """Whether an item is a message that the user wrote."""
    return item.get("role") == "user" and not text_in(item).lstrip().startswith(_OWN_PROMPTS)


def _turns_of(replay: _Replay, model: str, log: ReadingLog) -> tuple[list[Turn], list[OwnPrompt]]:
    prompts: list[OwnPrompt] = []
    kept: list[tuple[int, dict[str, Any]]] = []
    turns: list[Turn] = []
    issuer = issuer_of("openai_responses", model)
    for line, item in replay.items:
        if item.get("role") in ("developer", "system") or (item.get("role") == "user" and not is_of_user(item)):
            prompts.append(OwnPrompt(kind=str(item.get("role")), text=text_in(item), line=line))
        elif replay.summary and item.get("role") == "user" and text_in(item) == replay.summary:
            turns += decode_messages(kept, "openai_responses", issuer, log)
            kept = []
            turns = [*turns, summary_turn(replay.summary)]
        else:
            kept.append((line, item))
    return turns + decode_messages(kept, "openai_responses", issuer, log), prompts


def describe(path: Path) -> SessionRow:
    """A row for a list."""
    title = directory = model = id = ""
    turns = 0
    for line in read_lines(path):
        if line.value is None:
            continue
        kind, payload = text_of(line.value, "type"), object_of(line.value, "payload")
        if kind == "session_meta":
            id = id or text_of(payload, "id")
            directory = directory or text_of(payload, "cwd")
        elif kind == "turn_context":
            model = text_of(payload, "model") or model
        elif kind == "response_item" and is_of_user(payload):
            turns += 1
            title = title or title_from(text_in(payload))
    status = path.stat()
    return SessionRow(
        agent=NAME,
        id=id or thread_of(path),
        path=str(path),
        title=title,
        directory=directory,
        model=model,
        turns=turns,
        size=status.st_size,
        updated=status.st_mtime,
    )


def prompts(lines: Sequence[FileLine]) -> list[int]:
    """The lines on which the prompts of the user begin, with what Codex notes right before them."""
    found: list[int] = []
    start = 0
    for line in lines:
        value = line.value or {}
        if value.get("type") in ("event_msg", "turn_context"):
            start = start or line.number
            continue
        if value.get("type") == "response_item" and is_of_user(object_of(value, "payload")):
            found.append(start or line.number)
        start = 0
    return found


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `codex resume` continues."""
    made = render_turns(request.conversation, "openai_responses", model=request.model, keeps_thinking=request.is_native)
    time = timestamp_of(request.now)
    lines: list[bytes] = []

    def add(kind: str, payload: dict[str, Any]) -> None:
        lines.append(encode_line({"timestamp": time, "type": kind, "payload": payload}))

    meta = {"id": request.id, "timestamp": time, "cwd": request.directory, "originator": "toolglot"}
    git = {"git": {"branch": request.branch}} if request.branch else {}
    add("session_meta", {**meta, "cli_version": VERSION, "source": "cli", **git})
    if made.summary:
        text = made.summary if made.summary.startswith(SUMMARY_PREFIX) else f"{SUMMARY_PREFIX}: {made.summary}"
        history = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        add("compacted", {"message": text, "replacement_history": [history]})
    is_first = True
    for item in made.messages:
        if item.get("type") == "message" and item.get("role") == "user":
            title = request.title if is_first and request.title else text_in(item)
            add("event_msg", {"type": "user_message", "message": title or "(an image)"})
            is_first = False
        add("response_item", _listed(item))
    if is_first:
        add("event_msg", {"type": "user_message", "message": request.title or "(a session of another agent)"})
    local = datetime.fromtimestamp(request.now, UTC).astimezone()
    folder = root_of(request.home) / f"{local:%Y}" / f"{local:%m}" / f"{local:%d}"
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=folder / f"rollout-{local:%Y-%m-%dT%H-%M-%S}-{request.id}.jsonl",
        command=("codex", "resume", request.id),
        directory=request.directory,
        data=b"".join(lines),
        report=made.entries,
        calls=made.calls,
        results=made.results,
    )


def _listed(item: dict[str, Any]) -> dict[str, Any]:
    """An item with its content as a list of parts, and arguments as text: Codex reads no other form."""
    if item.get("type") == "message" and isinstance(item.get("content"), str):
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        return {**item, "content": [{"type": kind, "text": item["content"]}]}
    if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
        return {**item, "arguments": json.dumps(item.get("arguments") or {})}
    if item.get("type") == "reasoning" and "summary" not in item:
        return {**item, "summary": []}
    return item


def lock(path: Path) -> str:
    """Whether Codex has the thread open, by its lock."""
    for folder in path.parents:
        file = folder / _LOCK / f"{thread_of(path)}.lock"
        if file.is_file():
            return _lock_state(file)
    return ""


def _lock_state(file: Path) -> str:
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return ""
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(stream, fcntl.LOCK_UN)
    except BlockingIOError:
        return f"Codex holds its lock {file}"
    except OSError:
        return ""
    return ""


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Codex",
    aliases=("codex", "codex_cli"),
    find=find,
    provider="openai_responses",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
    lock=lock,
)

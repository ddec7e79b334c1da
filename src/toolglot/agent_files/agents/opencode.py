"""opencode: SQLite in `~/.local/share/opencode/opencode.db`, or the JSON of `opencode export`.

A message has parts; the result of a call is inside the part of the call. A session is written as a file for
`opencode import`, which gives it the project and the folder of where it is run; the database is only read.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot import jsontext
from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.json_lines import MAX_FILE_BYTES, FileLine, list_of, object_of, text_of
from toolglot.agent_files.reading import ReadingLog, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import Block, Conversation, Media, ResultPart, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.limits import Limits

NAME: Final = "opencode"
VERSION: Final = "1.18.33"
_LIMITS: Final = Limits(max_bytes=MAX_FILE_BYTES, max_nodes=20_000_000)
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_INTERRUPTED: Final = "[Tool execution was interrupted]"
MARK: Final = "#"
"""Between the path of the database and the id of a session in it."""


# --- where the sessions are -------------------------------------------------------------------------


def database_of(home: AgentHome) -> Path:
    named = home.environ.get("OPENCODE_DB", "")
    return Path(named) if named else home.root("XDG_DATA_HOME", ".local", "share") / "opencode" / "opencode.db"


def find(home: AgentHome) -> Iterator[Path]:
    database = database_of(home)
    if not database.is_file():
        return
    with _opened(database) as rows:
        ids = [str(row["id"]) for row in rows("SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated")]
    yield from (database.with_name(f"{database.name}{MARK}{id}") for id in ids)


@contextlib.contextmanager
def _opened(database: Path) -> Iterator[Any]:
    """A function that runs a query. The database is opened for reading only."""
    try:
        with contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            yield lambda query, *values: connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        hint = "opencode itself may be able to: opencode export"
        raise InputError(f"the database cannot be read: {error}", path=str(database), hint=hint) from None


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it is an exported session, or one in the database."""
    if MARK in path.name:
        return True
    return path.suffix == ".json" and any(b'"projectID"' in line.data or b'"sessionID"' in line.data for line in lines)


# --- reading ----------------------------------------------------------------------------------------


def _document(path: Path) -> dict[str, Any]:
    """A session in the form of `opencode export`."""
    if MARK in path.name:
        database, _, id = path.name.rpartition(MARK)
        return _exported(path.with_name(database), id)
    try:
        value = jsontext.parse(path.read_bytes(), limits=_LIMITS, path=str(path)).value
    except OSError as error:
        raise InputError(f"cannot read the session: {error.strerror}", path=str(path), hint="check the path") from None
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        raise InputError("this is not an exported session", path=str(path), hint="opencode export ID > FILE")
    return value


def _exported(database: Path, id: str) -> dict[str, Any]:
    with _opened(database) as rows:
        found = rows("SELECT * FROM session WHERE id = ?", id)
        if not found:
            raise InputError("there is no such session", path=f"{database}{MARK}{id}", hint="opencode session list")
        row = dict(found[0])
        messages = rows("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", id)
        parts = rows("SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id", id)
        children = rows("SELECT id FROM session WHERE parent_id = ?", id)
    by_message: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        by_message.setdefault(str(part["message_id"]), []).append(_parsed(part["data"]))
    times = {"created": row.get("time_created"), "updated": row.get("time_updated")}
    info: dict[str, Any] = {name: row.get(name) for name in ("id", "title", "directory", "version")}
    info["time"] = times
    listed = [
        {"info": _parsed(message["data"]), "parts": by_message.get(str(message["id"]), [])} for message in messages
    ]
    return {"info": info, "messages": listed, "subagents": [str(child["id"]) for child in children]}


def _parsed(data: object) -> dict[str, Any]:
    try:
        value = jsontext.parse(data, limits=_LIMITS).value if isinstance(data, str | bytes) else None
    except InputError:
        value = None
    return value if isinstance(value, dict) else {}


def read(path: Path) -> AgentSession:
    """The session that opencode would continue."""
    log = ReadingLog(path)
    document = _document(path)
    info = object_of(document, "info")
    turns: list[Turn] = []
    prompts: list[OwnPrompt] = []
    model = ""
    compactions = 0
    for message in list_of(document, "messages"):
        about = object_of(message, "info")
        parts = [part for part in list_of(message, "parts") if isinstance(part, dict)]
        if text_of(about, "role") == "user":
            if text_of(about, "system"):
                prompts.append(OwnPrompt(kind="system", text=text_of(about, "system")))
            if any(part.get("type") == "compaction" for part in parts):
                compactions += 1
            blocks = tuple(block for part in parts if (block := _user_block(part)) is not None)
            turns += [Turn("user", blocks)] if blocks else []
        elif text_of(about, "role") == "assistant":
            if about.get("error") is not None and text_of(object_of(about, "error"), "name") != "MessageAbortedError":
                log.add("an answer that failed is not sent", gravity="change")
                continue
            model = text_of(about, "modelID") or model
            made = _answer_turns(parts, issuer_of(text_of(about, "providerID") or NAME, text_of(about, "modelID")))
            if about.get("summary") and made:
                turns = [summary_turn("".join(turn.text for turn in made))]
            else:
                turns += made
    return AgentSession(
        agent=NAME,
        id=text_of(info, "id"),
        path=str(path),
        title=title_from(text_of(info, "title")) or first_prompt(turns),
        directory=text_of(info, "directory"),
        version=text_of(info, "version"),
        model=model,
        created=seconds_of(object_of(info, "time").get("created")),
        updated=seconds_of(object_of(info, "time").get("updated")),
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=compactions,
        subagents=tuple(document.get("subagents", ())),
        report=log.report(),
    )


def _user_block(part: dict[str, Any]) -> Text | Media | None:
    kind = part.get("type")
    if kind == "text" and not part.get("ignored"):
        return Text(text_of(part, "text"))
    return _file_block(part) if kind == "file" else None


def _file_block(part: dict[str, Any]) -> Media:
    url, type_ = text_of(part, "url"), text_of(part, "mime")
    kind = "image" if type_.startswith("image/") else "document"
    data = url.partition(";base64,")[2] if url.startswith("data:") else ""
    name = text_of(part, "filename") or None
    if kind == "image":
        return Media("image", type_, data=data or None, url=None if data else url, name=name)
    return Media("document", type_, data=data or None, url=None if data else url, name=name)


def _answer_turns(parts: Sequence[dict[str, Any]], issuer: Any) -> list[Turn]:
    """The turns of an answer: a step that calls tools is followed by their results."""
    turns: list[Turn] = []
    blocks: list[Block] = []
    results: list[Block] = []

    def finish() -> None:
        if blocks:
            turns.append(Turn("assistant", tuple(blocks), issuer=issuer))
        if results:
            turns.append(Turn("user", tuple(results)))
        blocks.clear()
        results.clear()

    for part in parts:
        kind = part.get("type")
        if kind == "step-start":
            finish()
        elif kind == "text":
            blocks.append(Text(text_of(part, "text")))
        elif kind == "reasoning":
            blocks.append(Thinking(text_of(part, "text")))
        elif kind == "tool":
            state = object_of(part, "state")
            id = text_of(part, "callID")
            blocks.append(ToolCall(id, text_of(part, "tool"), object_of(state, "input")))
            results.append(_result_of(id, state))
    finish()
    return turns


def _result_of(id: str, state: dict[str, Any]) -> ToolResult:
    if state.get("status") == "completed":
        files = [_file_block(each) for each in list_of(state, "attachments") if isinstance(each, dict)]
        content: tuple[ResultPart, ...] = (Text(text_of(state, "output")), *files)
        return ToolResult(id, content)
    return ToolResult(id, text_of(state, "error") or _INTERRUPTED, is_error=True)


def describe(path: Path) -> SessionRow:
    """A row for a list; of the database, only what the row itself and counting say."""
    if MARK in path.name:
        database, _, id = path.name.rpartition(MARK)
        with _opened(path.with_name(database)) as rows:
            row = dict(rows("SELECT * FROM session WHERE id = ?", id)[0])
            query = "SELECT COUNT(*) AS n, COALESCE(SUM(LENGTH(data)), 0) AS size FROM part WHERE session_id = ?"
            size = int(rows(query, id)[0]["size"])
            query = "SELECT COUNT(*) AS n FROM message WHERE session_id = ? AND json_extract(data, '$.role') = 'user'"
            turns = int(rows(query, id)[0]["n"])
        model = text_of(_parsed(row.get("model")), "id")
        title, directory, updated = row.get("title"), row.get("directory"), seconds_of(row.get("time_updated"))
    else:
        session = read(path)
        id, model, title, directory = session.id, session.model, session.title, session.directory
        turns = sum(turn.role == "user" and not turn.results for turn in session.conversation.turns)
        size, updated = path.stat().st_size, path.stat().st_mtime
    return SessionRow(
        agent=NAME,
        id=id,
        path=str(path),
        title=title_from(str(title or "")),
        directory=str(directory or ""),
        model=model,
        turns=turns,
        size=size,
        updated=updated,
    )


# --- writing ----------------------------------------------------------------------------------------


class _Ids:
    """Ids that ascend: the time in milliseconds times 4096 and a counter, as 12 hex digits, and 14 characters."""

    def __init__(self, seed: str, milliseconds: int) -> None:
        self._seed = seed
        self._number = milliseconds * 4096

    def next(self, prefix: str, *, descending: bool = False) -> str:
        self._number += 1
        number = (~self._number if descending else self._number) & 0xFFFFFFFFFFFF
        digest = hashlib.sha256(f"{self._seed}/{self._number}".encode()).digest()
        return f"{prefix}_{number:012x}{''.join(_DIGITS[byte % len(_DIGITS)] for byte in digest[:14])}"


def write(request: WriteRequest) -> WrittenSession:
    """A file for `opencode import`. Thinking is left out: opencode would send another model's as plain text."""
    made = render_turns(request.conversation, "anthropic", keeps_thinking=False)
    now = int(request.now * 1000)
    ids = _Ids(request.id, now)
    session = ids.next("ses", descending=True)
    writer = _MessageWriter(ids, session, request, now)
    if made.summary:
        writer.add_summary(made.summary)
    results = {result.call_id: result for turn in made.turns for result in turn.results}
    for turn in made.turns:
        writer.add_turn(turn, results)
    info = {
        "id": session,
        "slug": session[-10:].lower(),
        "projectID": "global",
        "directory": request.directory,
        "title": request.title or "a session of another agent",
        "version": VERSION,
        "time": {"created": now, "updated": now},
    }
    entries = made.entries
    if not _model_of(request.home):
        reason = "opencode's configuration names no model: it goes on with anthropic/claude-sonnet-4-5, or --model"
        entries = (*entries, Entry(action="assumed", reason=reason, fault="policy"))
    data = msgspec.json.encode({"info": info, "messages": writer.messages}) + b"\n"
    path = request.home.root("XDG_STATE_HOME", ".local", "state") / "toolglot" / "handoff" / f"{session}.json"
    return WrittenSession(
        agent=NAME,
        id=session,
        path=path,
        preparation=("opencode", "import", str(path)),
        command=("opencode", "--session", session),
        directory=request.directory,
        data=data,
        report=entries,
        calls=made.calls,
        results=made.results,
    )


def _model_of(home: AgentHome) -> dict[str, str]:
    """The model of the configuration: opencode goes on with that of the last message, and fails if it has it not."""
    named = home.environ.get("OPENCODE_CONFIG", "")
    file = Path(named) if named else home.root("XDG_CONFIG_HOME", ".config") / "opencode" / "opencode.json"
    try:
        provider, _, model = text_of(jsontext.parse(file.read_bytes()).value, "model").partition("/")
    except (OSError, InputError):
        provider = model = ""
    return {"providerID": provider, "modelID": model} if provider and model else {}


class _MessageWriter:
    """Messages with their parts."""

    def __init__(self, ids: _Ids, session: str, request: WriteRequest, now: int) -> None:
        self._model = _model_of(request.home) or {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
        self._ids, self._session, self._request, self._now = ids, session, request, now
        self.messages: list[dict[str, Any]] = []
        self._last_user = ""

    def _add(self, role: str, parts: Sequence[dict[str, Any]], **more: Any) -> str:
        id = self._ids.next("msg")
        self._now += 1
        about = {"id": id, "sessionID": self._session, "role": role, "agent": "build"}
        named = {"sessionID": self._session, "messageID": id}
        listed = [{"id": self._ids.next("prt"), **named, **part} for part in parts]
        self.messages.append({"info": {**about, **more}, "parts": listed})
        return id

    def _add_user(self, parts: Sequence[dict[str, Any]]) -> None:
        self._last_user = self._add("user", parts, time={"created": self._now}, model=self._model)

    def _add_answer(self, parts: Sequence[dict[str, Any]], model: str, *, has_calls: bool = False, **more: Any) -> None:
        if not self._last_user:
            self._add_user([{"type": "text", "text": "[The session begins with an answer.]", "synthetic": True}])
        finish = "tool-calls" if has_calls else "stop"
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        end = {"type": "step-finish", "reason": finish, "cost": 0, "tokens": tokens}
        self._add(
            "assistant",
            [{"type": "step-start"}, *parts, end],
            time={"created": self._now, "completed": self._now},
            parentID=self._last_user,
            modelID=model or "unknown",
            providerID="anthropic",
            mode="build",
            path={"cwd": self._request.directory, "root": self._request.directory},
            cost=0,
            tokens=tokens,
            finish=finish,
            **more,
        )

    def add_summary(self, summary: str) -> None:
        """As opencode writes one: a message that asks for it, and an answer that is it."""
        self._add_user([{"type": "compaction", "auto": False}])
        self._add_answer([{"type": "text", "text": summary}], "", summary=True)

    def add_turn(self, turn: Turn, results: dict[str, ToolResult]) -> None:
        if turn.role != "assistant":
            parts = [part for block in turn.blocks if (part := _part_of(block)) is not None]
            if parts:
                self._add_user(parts)
            return
        parts = []
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                parts.append(self._tool_part(block, results.get(block.id)))
            elif (part := _part_of(block)) is not None:
                parts.append(part)
        model = turn.issuer.model if turn.issuer is not None else ""
        self._add_answer(parts, model, has_calls=bool(turn.calls))

    def _tool_part(self, call: ToolCall, result: ToolResult | None) -> dict[str, Any]:
        state: dict[str, Any]
        arguments = call.arguments if call.arguments is not None else {"_raw": call.raw_input or ""}
        time = {"start": self._now, "end": self._now}
        if result is None or result.is_error:
            error = (result.text if result is not None else "") or _INTERRUPTED
            state = {"status": "error", "input": arguments, "error": error, "time": time}
        else:
            state = {"status": "completed", "input": arguments, "output": result.text, "title": "", "metadata": {}}
            files = [_part_of(block) for block in result.content or () if isinstance(block, Media)]
            named: dict[str, Any] = {"sessionID": self._session, "messageID": self._ids.next("msg")}
            attached = [{"id": self._ids.next("prt"), **named, **part} for part in files if part is not None]
            state |= {"time": time, **({"attachments": attached} if attached else {})}
        return {"type": "tool", "callID": call.id, "tool": call.name, "state": state}


def _part_of(block: Block) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Media):
        url = f"data:{block.media_type};base64,{block.data}" if block.data is not None else block.url or ""
        if url:
            return {"type": "file", "mime": block.media_type, "url": url, "filename": block.name or f"{block.kind}"}
        return {"type": "text", "text": f"[{block.kind}: {block.name or block.media_type}]"}
    return None


FORMAT: Final = AgentFormat(
    name=NAME,
    title="opencode",
    aliases=("opencode",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
)

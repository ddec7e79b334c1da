"""opencode: SQLite in `~/.local/share/opencode/opencode.db`, or the JSON of `opencode export`.

A message has parts; the result of a call is inside the part of the call. A session is written as a file for
`opencode import`, which gives it the project and the folder of where it is run; the database is only read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot import jsontext
from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.opencode import TOKENS, examine
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, text_of
from toolglot.agent_files.reading import ReadingLog, first_prompt, row_of, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.agent_files.whole_files import (
    database_of,
    opened,
    parse_or_none,
    read_parsed,
    row_id,
    session_path,
)
from toolglot.conversation import Block, Conversation, Media, ResultPart, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry
from toolglot.errors import InputError

NAME: Final = "opencode"
VERSION: Final = "1.18.33"
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_INTERRUPTED: Final = "[Tool execution was interrupted]"
_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    *(("slug", "slug"), ("projectID", "project_id"), ("directory", "directory")),
    *(("title", "title"), ("version", "version")),
)
"""Fields of an exported session, and the columns of the database that they are from."""
_LOST: Final = "SELECT DISTINCT session_id AS id FROM message WHERE session_id NOT IN (SELECT id FROM session)"
"""Sessions whose own row is gone while their messages are there."""


# --- where the sessions are -------------------------------------------------------------------------


def find(home: AgentHome) -> Iterator[Path]:
    named = home.environ.get("OPENCODE_DB", "")
    database = Path(named) if named else home.root("XDG_DATA_HOME", ".local", "share") / "opencode" / "opencode.db"
    if not database.is_file():
        return
    with opened(database) as rows:
        ids = [row["id"] for row in rows("SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated")]
        ids += [row["id"] for row in rows(_LOST)]
    yield from (path for id in ids if (path := session_path(database, id)) is not None)


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it is an exported session, or one in the database."""
    if database_of(path) is not None:
        return row_id(path).startswith("ses")
    return path.suffix == ".json" and any(b'"projectID"' in line.data or b'"sessionID"' in line.data for line in lines)


# --- reading ----------------------------------------------------------------------------------------


def document_of(path: Path) -> tuple[dict[str, Any], str]:
    """A session in the form of `opencode export`, and what had to be replaced to read it."""
    database = database_of(path)
    if database is not None:
        return _exported(database, row_id(path)), ""
    parsed = read_parsed(path)
    if not isinstance(parsed.value, dict) or not isinstance(parsed.value.get("info"), dict):
        raise InputError("this is not an exported session", path=str(path), hint="opencode export ID > FILE")
    return parsed.value, "; ".join(parsed.repairs)


def _exported(database: Path, id: str) -> dict[str, Any]:
    with opened(database) as rows:
        found = rows("SELECT * FROM session WHERE id = ?", id)
        messages = rows("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", id)
        if not found and not messages:
            path = str(session_path(database, id) or database)
            raise InputError("there is no such session", path=path, hint="opencode session list")
        row = dict(found[0]) if found else {}
        parts = rows("SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id", id)
        children = rows("SELECT id FROM session WHERE parent_id = ?", id)
    by_message: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        named = {"id": part["id"], "sessionID": id, "messageID": part["message_id"]}
        by_message.setdefault(str(part["message_id"]), []).append({**_parsed(part["data"]), **named})
    info: dict[str, Any] = {name: row[column] for name, column in _COLUMNS if row.get(column) is not None}
    if row:
        info["id"] = id
        info["time"] = {"created": row.get("time_created"), "updated": row.get("time_updated")}
    listed: list[dict[str, Any]] = [
        {
            "info": {**_parsed(message["data"]), "id": message["id"], "sessionID": id},
            "parts": by_message.get(str(message["id"]), []),
        }
        for message in messages
    ]
    return {"info": info, "messages": listed, "subagents": [str(child["id"]) for child in children]}


def _parsed(data: object) -> dict[str, Any]:
    value = parse_or_none(data)
    return value if isinstance(value, dict) else {}


def lines_of(path: Path) -> Iterator[FileLine]:
    """The session's own row as a line, and each message as one: what the doctor looks at."""
    try:
        document, problem = document_of(path)
    except InputError as error:
        yield FileLine(number=1, data=b"", problem=error.message)
        return
    messages = [message if isinstance(message, dict) else {} for message in list_of(document, "messages")]
    for number, value in enumerate(({"info": object_of(document, "info")}, *messages), 1):
        yield FileLine(number=number, data=encode_line(value), value=value, problem=problem if number == 1 else "")


def prompts(lines: Sequence[FileLine]) -> list[int]:
    """The lines on which the prompts of the user begin."""
    return [line.number for line in lines if text_of(object_of(line.value, "info"), "role") == "user"]


def read(path: Path) -> AgentSession:
    """The session that opencode would continue."""
    log = ReadingLog(path)
    document, _ = document_of(path)
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
        id=text_of(info, "id") or (row_id(path) if database_of(path) is not None else path.stem),
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
    kind = text_of(part, "type")
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
        kind = text_of(part, "type")
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
    database = database_of(path)
    if database is None:
        status = path.stat()
        return row_of(read(path), status.st_size, status.st_mtime)
    id = row_id(path)
    with opened(database) as rows:
        found = rows("SELECT * FROM session WHERE id = ?", id)
        query = "SELECT COALESCE(SUM(LENGTH(data)), 0) AS size FROM part WHERE session_id = ?"
        size = int(rows(query, id)[0]["size"])
        role = "CASE WHEN json_valid(data) THEN json_extract(data, '$.role') END"
        query = f"SELECT COUNT(*) AS n FROM message WHERE session_id = ? AND {role} = 'user'"  # noqa: S608 - a constant
        turns = int(rows(query, id)[0]["n"])
    row = dict(found[0]) if found else {}
    return SessionRow(
        agent=NAME,
        id=id,
        path=str(path),
        title=title_from(str(row.get("title") or "")),
        directory=str(row.get("directory") or ""),
        model=text_of(_parsed(row.get("model")), "id"),
        turns=turns,
        size=size,
        updated=seconds_of(row.get("time_updated")),
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
    path = _import_path(request.home, session)
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


def copy(lines: Sequence[FileLine], home: AgentHome, now: float) -> WrittenSession:
    """The lines as a file for `opencode import`, with ids of its own: opencode keeps what it has under the old ones."""
    values = [line.value for line in lines if line.value is not None]
    info = object_of(values[0], "info")
    ids = _Ids(f"{text_of(info, 'id')}/{now}", int(now * 1000))
    session = ids.next("ses", descending=True)
    messages = values[1:]
    new = {text_of(object_of(each, "info"), "id"): ids.next("msg") for each in messages}
    listed: list[dict[str, Any]] = []
    calls = results = 0
    for message in messages:
        about = object_of(message, "info")
        id = new[text_of(about, "id")]
        parts = [part for part in list_of(message, "parts") if isinstance(part, dict)]
        named = {"sessionID": session, "messageID": id}
        listed.append(
            {
                "info": {**_renamed(about, new), "id": id, "sessionID": session},
                "parts": [{**part, **named, "id": ids.next("prt")} for part in parts],
            }
        )
        states = [text_of(object_of(part, "state"), "status") for part in parts if part.get("type") == "tool"]
        calls += len(states)
        results += sum(state in ("completed", "error") for state in states)
    directory = text_of(info, "directory")
    return WrittenSession(
        agent=NAME,
        id=session,
        path=(path := _import_path(home, session)),
        preparation=("opencode", "import", str(path)),
        command=("opencode", "--session", session),
        directory=directory,
        data=msgspec.json.encode({"info": {**info, "id": session}, "messages": listed}) + b"\n",
        calls=calls,
        results=results,
    )


def _renamed(about: dict[str, Any], new: dict[str, str]) -> dict[str, Any]:
    parent = text_of(about, "parentID")
    return {**about, "parentID": new.get(parent, parent)} if parent else about


def _import_path(home: AgentHome, session: str) -> Path:
    return home.root("XDG_STATE_HOME", ".local", "state") / "toolglot" / "handoff" / f"{session}.json"


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
        end = {"type": "step-finish", "reason": finish, "cost": 0, "tokens": TOKENS}
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
            tokens=TOKENS,
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
    examine=examine,
    prompts=prompts,
    lines=lines_of,
    copy=copy,
)

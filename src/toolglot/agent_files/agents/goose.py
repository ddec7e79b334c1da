"""Goose: SQLite in `~/.local/share/goose/sessions/sessions.db`, or the JSON of `goose session export`; before, JSONL.

A message has a list of contents; calls and results name each other by id. Compacted messages stay in the session, and
are no longer visible to the model. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome
from toolglot.agent_files.checks.read_only import examine_with
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, read_lines, text_of
from toolglot.agent_files.reading import ReadingLog, call_of, first_prompt, row_of, title_from
from toolglot.agent_files.rendered_turns import issuer_of
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession, SessionRow
from toolglot.agent_files.whole_files import (
    database_of,
    no_lines,
    opened,
    parse_or_none,
    read_document,
    row_id,
    session_path,
)
from toolglot.conversation import Block, Conversation, Media, ResultPart, Text, Thinking, ToolResult, Turn
from toolglot.errors import InputError

NAME: Final = "goose"
_FOLDERS: Final = (
    (".local", "share", "goose"),
    ("Library", "Application Support", "Block", "goose"),
    ("AppData", "Roaming", "Block", "goose", "data"),
)
_SILENT: Final = frozenset({"toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted"})
"""Contents that are for the user only."""


# --- where the sessions are -------------------------------------------------------------------------


def find(home: AgentHome) -> Iterator[Path]:
    for root in _roots(home):
        folder = root / "sessions"
        database = folder / "sessions.db"
        if database.is_file():
            with opened(database) as rows:
                ids = [row["id"] for row in rows("SELECT id FROM sessions ORDER BY updated_at")]
            yield from (path for id in ids if (path := session_path(database, id)) is not None)
        else:
            yield from sorted(folder.glob("*.jsonl"))


def _roots(home: AgentHome) -> list[Path]:
    named = home.environ.get("GOOSE_PATH_ROOT", "")
    data = home.environ.get("XDG_DATA_HOME", "")
    if named:
        return [Path(named) / "data"]
    moved = [Path(data) / "goose"] if data else []
    return [*moved, *(home.folder.joinpath(*folder) for folder in _FOLDERS)]


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it is in the database, an export, or a file of messages with lists of contents."""
    if database_of(path) is not None:
        return not row_id(path).startswith("ses_")
    if path.suffix == ".json":
        head = b"".join(line.data[:4096] for line in lines)
        return b'"working_dir"' in head and (b'"extension_data"' in head or b'"conversation"' in head)
    return any(
        line.value is not None
        and ({"working_dir", "message_count"} <= {*line.value} or {"role", "created", "content"} <= {*line.value})
        for line in lines
    )


# --- reading ----------------------------------------------------------------------------------------


def _session_of(path: Path, log: ReadingLog) -> tuple[dict[str, Any], list[Any]]:
    """What is known of a session, and its messages."""
    database = database_of(path)
    if database is not None:
        return _in_database(path, database)
    if path.suffix == ".json":
        value = read_document(path)
        if not isinstance(value, dict) or not isinstance(value.get("conversation"), list):
            raise InputError("this is not an exported session", path=str(path), hint="goose session export")
        return value, value["conversation"]
    about: dict[str, Any] = {}
    messages: list[Any] = []
    for line in read_lines(path):
        if line.value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
        elif "role" in line.value:
            messages.append(line.value)
        else:
            about = about or line.value
    return about, messages


def _in_database(path: Path, database: Path) -> tuple[dict[str, Any], list[Any]]:
    id = row_id(path)
    with opened(database) as rows:
        found = rows("SELECT * FROM sessions WHERE id = ?", id)
        if not found:
            raise InputError("there is no such session", path=str(path), hint="goose session list")
        # Newer databases have more columns; of those that are read, the first ones lacked the metadata.
        listed = [dict(row) for row in rows("SELECT * FROM messages WHERE session_id = ? ORDER BY rowid", id)]
    messages = [
        {
            "role": row.get("role"),
            "created": row.get("created_timestamp"),
            "content": parse_or_none(row.get("content_json")),
            "metadata": parse_or_none(row.get("metadata_json")),
        }
        for row in listed
    ]
    messages.sort(key=lambda message: message["created"] if isinstance(message["created"], int) else 0)
    return dict(found[0]), messages


def read(path: Path) -> AgentSession:
    """The session that `goose session --resume` would continue."""
    log = ReadingLog(path)
    about, messages = _session_of(path, log)
    model = _model_of(about)
    turns: list[Turn] = []
    hidden = 0
    for number, message in enumerate(messages, 1):
        role = text_of(message, "role")
        if object_of(message, "metadata").get("agentVisible") is False:
            hidden += 1
        elif role not in ("user", "assistant") or not isinstance(message.get("content"), list):
            log.add(f"message {number} cannot be read")
        else:
            turns += _turns_of(role, message["content"], model, number, log)
    if hidden:
        log.add(f"{hidden} messages that the model no longer sees are left out (compacted)", gravity="change")
    return AgentSession(
        agent=NAME,
        id=text_of(about, "id") or path.stem,
        path=str(path),
        title=title_from(text_of(about, "name") or text_of(about, "description")) or first_prompt(turns),
        directory=text_of(about, "working_dir"),
        model=model,
        created=seconds_of(about.get("created_at")),
        updated=seconds_of(about.get("updated_at")),
        conversation=Conversation(tuple(turns), model=model),
        compactions=1 if hidden else 0,
        report=log.report(),
    )


def _model_of(about: dict[str, Any]) -> str:
    found = about.get("model_config") or parse_or_none(about.get("model_config_json"))
    return text_of(found, "model_name")


def _turns_of(role: str, content: list[Any], model: str, number: int, log: ReadingLog) -> list[Turn]:
    """The turns of a message. What the model asked for and what came of it may be in messages of either role."""
    said: list[Block] = []
    results: list[Block] = []
    for part in content:
        kind = text_of(part, "type")
        if kind == "toolResponse":
            results.append(_result_of(part))
        elif kind in ("toolRequest", "frontendToolRequest"):
            call = object_of(object_of(part, "toolCall"), "value")
            signature = text_of(part, "thoughtSignature")
            said.append(
                call_of(text_of(part, "id"), text_of(call, "name"), call.get("arguments") or {}, signature=signature)
            )
        elif kind == "thinking":
            said.append(Thinking(text_of(part, "thinking"), signature=text_of(part, "signature") or None))
        elif kind == "redactedThinking":
            said.append(Thinking("", redacted=text_of(part, "data") or None))
        elif (block := _plain_block(part)) is not None:
            said.append(block)
        elif kind not in _SILENT and kind != "text":
            log.add(f"a content of the kind {kind[:40]!r} in message {number} is not known")
    turns = [Turn("user", tuple(results))] if results else []
    if said and role == "assistant":
        return [*turns, Turn("assistant", tuple(said), issuer=issuer_of(NAME, model))]
    return [Turn("user", (*results, *said))] if said or results else []


def _result_of(part: dict[str, Any]) -> ToolResult:
    result = object_of(part, "toolResult")
    id = text_of(part, "id")
    value = result.get("value")
    if text_of(result, "status") == "error" or value is None:
        return ToolResult(id, text_of(result, "error") or "[The call failed.]", is_error=True)
    contents = value if isinstance(value, list) else list_of(value, "content")
    failed = isinstance(value, dict) and value.get("isError") is True
    found: list[ResultPart] = [
        block for each in contents if _is_for_model(each) and (block := _plain_block(each)) is not None
    ]
    return ToolResult(id, tuple(found), is_error=failed)


def _is_for_model(content: Any) -> bool:
    """A content may be for the user alone."""
    audience = list_of(object_of(content, "annotations"), "audience")
    return not audience or "assistant" in audience


def _plain_block(part: Any) -> Text | Media | None:
    kind = text_of(part, "type")
    if kind == "text" and text_of(part, "text"):
        return Text(text_of(part, "text"))
    if kind == "image":
        return Media("image", text_of(part, "mimeType") or "image/png", data=text_of(part, "data"))
    if kind == "resource":
        return Text(text_of(object_of(part, "resource"), "text") or "[a resource]")
    return None


def describe(path: Path) -> SessionRow:
    """A row for a list; of the database, only what the row itself and counting say."""
    database = database_of(path)
    if database is None:
        status = path.stat()
        return row_of(read(path), status.st_size, status.st_mtime)
    id = row_id(path)
    with opened(database) as rows:
        row = dict(rows("SELECT * FROM sessions WHERE id = ?", id)[0])
        query = "SELECT COALESCE(SUM(LENGTH(content_json)), 0) AS size FROM messages WHERE session_id = ?"
        size = int(rows(query, id)[0]["size"])
        query = "SELECT COUNT(*) AS n FROM messages WHERE session_id = ? AND role = 'user' AND content_json NOT LIKE ?"
        turns = int(rows(query, id, '%"toolResponse"%')[0]["n"])
    return SessionRow(
        agent=NAME,
        id=id,
        path=str(path),
        title=title_from(str(row.get("name") or row.get("description") or "")),
        directory=str(row.get("working_dir") or ""),
        model=_model_of(row),
        turns=turns,
        size=size,
        updated=seconds_of(row.get("updated_at")),
    )


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Goose",
    aliases=("goose",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe,
    read=read,
    examine=examine_with(read),
    lines=no_lines,
)

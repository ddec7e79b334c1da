"""Session files of coding agents as rows: Claude Code, Codex, Gemini CLI, Qwen Code, pi, opencode, Copilot CLI.

    {"format": "toolglot.agent-session", "agent": "codex", "id": "…", "conversation": {…}, "report": […]}

A file is one row: the conversation as its agent would continue it, behind the last compaction. The engine makes the row
(`agent_files` reads the file), so that the batch function does no I/O. There are no definitions of tools.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolglot.agent_files.values import AgentSession
from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.format import Format
from toolglot.conversation.canonical_json import DOCUMENT_LIMITS, dump, load
from toolglot.conversation.canonical_json import FORMAT as CONVERSATION
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.jsontext import compact

NAME: Final = "agent-session"
FORMAT: Final = "toolglot.agent-session"


def session_document(session: AgentSession) -> Row:
    """A session as a row."""
    document: Row = msgspec.json.decode(dump(session.conversation))
    prompts = len(session.own_prompts)
    return {
        "format": FORMAT,
        "agent": session.agent,
        "id": session.id,
        "model": session.model,
        "version": document["version"],
        "conversation": document["conversation"],
        "own_prompts": prompts,
        "report": [msgspec.to_builtins(entry) for entry in session.report],
    }


def _detect(row: Row) -> float:
    return 1.0 if row.get("format") == FORMAT else 0.0


def _read(row: Row, notes: Notes) -> Example:
    if row.get("format") != FORMAT:
        hint = "give the session file itself; each is one row"
        raise InputError(f'expected "format": "{FORMAT}"', path="$.format", hint=hint)
    document = {"format": CONVERSATION, "version": row.get("version"), "conversation": row.get("conversation")}
    conversation = load(compact(document), limits=DOCUMENT_LIMITS)
    try:
        notes.entries += msgspec.convert(row.get("report") or [], list[Entry])
    except msgspec.ValidationError as error:
        raise InputError(str(error), path="$.report") from None
    prompts: Any = row.get("own_prompts")
    if prompts:
        reason = "texts that the agent itself put before the model are not in the row"
        notes.add("dropped", reason, gravity="change")
    id = row.get("id")
    name = id if isinstance(id, str) else ""
    return Example(conversation=conversation, id=name, session=name)


FORMATS: Final = (
    Format(
        name=NAME,
        title="Session files of coding agents",
        columns=frozenset({"format", "agent", "id", "model", "version", "conversation", "own_prompts", "report"}),
        detect=_detect,
        read=_read,
        source="",
        takes_columns=False,
    ),
)

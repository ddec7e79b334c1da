"""Copilot CLI: `~/.copilot/session-state/<session id>/events.jsonl`.

The file is a log of events. An answer names its calls; that a call was run, and how it ended, are events of their own.
Events of subagents may stand between them; they name the call that they belong to.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.copilot_cli import examine, is_of_subagent
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, read_lines, text_of
from toolglot.agent_files.reading import ReadingLog, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import Block, Conversation, Media, Text, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry

NAME: Final = "copilot_cli"
VERSION: Final = "1.0.102"
"""Written into new sessions: the version whose sessions were last compared with these."""


def root_of(home: AgentHome) -> Path:
    return home.root("COPILOT_HOME", ".copilot") / "session-state"


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home)
    return iter(sorted(root.glob("*/events.jsonl"))) if root.is_dir() else iter(())


def recognises(_path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether a line is an event."""
    return any(
        line.value is not None
        and text_of(line.value, "type").partition(".")[0] in ("session", "user", "assistant", "tool")
        and "data" in line.value
        and "parentId" in line.value
        for line in lines
    )


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that `copilot --resume` would continue."""
    log = ReadingLog(path)
    turns: list[Turn] = []
    prompts: list[OwnPrompt] = []
    head: dict[str, Any] = {}
    model = ""
    compactions, subagents, updated = 0, 0, 0.0
    for line in read_lines(path):
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
            continue
        kind, data = text_of(value, "type"), object_of(value, "data")
        updated = seconds_of(value.get("timestamp")) or updated
        if is_of_subagent(value):
            subagents += 1
        elif kind == "session.start":
            head = head or data
        elif kind == "system.message":
            prompts.append(OwnPrompt(kind="system", text=text_of(data, "content"), line=line.number))
        elif kind == "session.compaction_complete" and text_of(data, "summaryContent"):
            compactions += 1
            turns = [summary_turn(text_of(data, "summaryContent"))]
        else:
            model = text_of(data, "model") or model
            turns += _turns_of(kind, data, model)
    if subagents:
        log.add(f"{subagents} events of subagents are not part of the conversation", gravity="change")
    context = object_of(head, "context")
    return AgentSession(
        agent=NAME,
        id=text_of(head, "sessionId") or path.parent.name,
        path=str(path),
        title=first_prompt(turns),
        directory=text_of(context, "cwd"),
        branch=text_of(context, "branch"),
        version=text_of(head, "copilotVersion"),
        model=model or text_of(head, "selectedModel"),
        created=seconds_of(head.get("startTime")),
        updated=updated,
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=compactions,
        report=log.report(),
    )


def _turns_of(kind: str, data: dict[str, Any], model: str) -> list[Turn]:
    """What an event says to the model, or what the model said."""
    if kind == "user.message":
        text = text_of(data, "transformedContent") or text_of(data, "content")
        blocks: list[Block] = [Text(text)] if text else []
        blocks += [block for part in list_of(data, "attachments") if (block := _attachment(part)) is not None]
        return [Turn("user", tuple(blocks))] if blocks else []
    if kind == "assistant.message":
        text = text_of(data, "content")
        answer: list[Block] = [Text(text)] if text else []
        answer += [_call_of(each) for each in list_of(data, "toolRequests") if isinstance(each, dict)]
        return [Turn("assistant", tuple(answer), issuer=issuer_of(NAME, model))] if answer else []
    if kind == "tool.execution_complete":
        result, error = object_of(data, "result"), object_of(data, "error")
        text = text_of(result, "content") or text_of(error, "message")
        failed = data.get("success") is False
        return [Turn("tool", (ToolResult(text_of(data, "toolCallId"), text, is_error=failed),))]
    return []


def _attachment(part: Any) -> Block | None:
    data, kind = text_of(part, "data"), text_of(part, "mimeType")
    if data and kind.startswith("image/"):
        return Media("image", kind, data=data, name=text_of(part, "displayName") or None)
    return None


def _call_of(request: dict[str, Any]) -> ToolCall:
    arguments = request.get("arguments")
    raw = None if isinstance(arguments, dict) else arguments if isinstance(arguments, str) else json.dumps(arguments)
    parsed = arguments if isinstance(arguments, dict) else None
    return ToolCall(text_of(request, "toolCallId"), text_of(request, "name"), parsed, raw_input=raw)


def describe(path: Path) -> SessionRow:
    """A row for a list."""
    id = title = directory = model = ""
    turns = 0
    for line in read_lines(path):
        value = line.value
        if value is None:
            continue
        data = object_of(value, "data")
        model = text_of(data, "model") or text_of(data, "selectedModel") or model
        if value.get("type") == "session.start":
            id, directory = text_of(data, "sessionId"), text_of(object_of(data, "context"), "cwd")
        elif value.get("type") == "user.message" and not is_of_subagent(value):
            turns += 1
            title = title or title_from(text_of(data, "content"))
    status = path.stat()
    return SessionRow(
        agent=NAME,
        id=id or path.parent.name,
        path=str(path),
        title=title,
        directory=directory,
        model=model,
        turns=turns,
        size=status.st_size,
        updated=status.st_mtime,
    )


def prompts(lines: Sequence[FileLine]) -> list[int]:
    """The lines on which the prompts of the user begin."""
    return [
        line.number
        for line in lines
        if line.value is not None and line.value.get("type") == "user.message" and not is_of_subagent(line.value)
    ]


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `copilot --resume` continues."""
    made = render_turns(request.conversation, "anthropic", keeps_thinking=False)
    writer = _EventWriter(request)
    context = {"cwd": request.directory, **({"branch": request.branch} if request.branch else {})}
    time = timestamp_of(request.now)
    start = {"sessionId": request.id, "version": 1, "producer": "copilot-agent", "copilotVersion": VERSION}
    writer.add("session.start", {**start, "startTime": time, "context": context})
    if made.summary:
        writer.add_prompt([Text(f"Summary of the conversation so far:\n\n{made.summary}")])
    names = {call.id: call for turn in made.turns for call in turn.calls}
    for turn in made.turns:
        if turn.role == "assistant":
            writer.add_answer(turn)
            continue
        for result in turn.results:
            writer.add_result(result, names.get(result.call_id))
        writer.add_prompt([block for block in turn.blocks if not isinstance(block, ToolResult)])
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=root_of(request.home) / request.id / "events.jsonl",
        command=("copilot", f"--resume={request.id}"),
        directory=request.directory,
        data=b"".join(writer.lines),
        report=(*made.entries, *writer.entries),
        calls=made.calls,
        results=made.results,
    )


class _EventWriter:
    """Writes events that name the one before them."""

    def __init__(self, request: WriteRequest) -> None:
        self._request = request
        self._parent: str | None = None
        self.lines: list[bytes] = []
        self.entries: list[Entry] = []

    def add(self, kind: str, data: dict[str, Any]) -> None:
        number = len(self.lines)
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._request.id}/{number}"))
        time = timestamp_of(self._request.now + number / 1000)
        event = {"type": kind, "data": data, "id": id, "timestamp": time, "parentId": self._parent}
        self.lines.append(encode_line(event))
        self._parent = id

    def add_prompt(self, blocks: Sequence[Block]) -> None:
        text = "\n\n".join(block.text for block in blocks if isinstance(block, Text))
        images = [block for block in blocks if isinstance(block, Media)]
        attached = [
            {"type": "blob", "data": image.data, "mimeType": image.media_type, "displayName": image.name or "image"}
            for image in images
            if image.data is not None
        ]
        if text or attached:
            more = {"attachments": attached} if attached else {}
            self.add("user.message", {"content": text, "transformedContent": text, **more})

    def add_answer(self, turn: Turn) -> None:
        calls = [
            {
                "toolCallId": call.id,
                "name": call.name,
                "arguments": call.arguments if call.arguments is not None else {"_raw": call.raw_input or ""},
                "type": "function",
            }
            for call in turn.calls
        ]
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._request.id}/message/{len(self.lines)}"))
        self.add("assistant.message", {"messageId": id, "content": turn.text, "toolRequests": calls})
        for call in calls:
            named = {"toolCallId": call["toolCallId"], "toolName": call["name"], "arguments": call["arguments"]}
            self.add("tool.execution_start", named)

    def add_result(self, result: ToolResult, call: ToolCall | None) -> None:
        if call is None:
            return
        if any(isinstance(block, Media) for block in result.content or () if not isinstance(block, str)):
            reason = "an image in a result was left out: the session has no place for it"
            self.entries.append(Entry(action="dropped", reason=reason, fault="loss", call_ids=(result.call_id,)))
        done: dict[str, Any] = {"toolCallId": result.call_id, "success": not result.is_error}
        words = {"message": result.text} if result.is_error else {"content": result.text}
        self.add("tool.execution_complete", {**done, ("error" if result.is_error else "result"): words})


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Copilot CLI",
    aliases=("copilot",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
)

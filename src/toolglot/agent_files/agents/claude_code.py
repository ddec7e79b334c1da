"""Claude Code: `~/.claude/projects/<slug of the folder>/<session id>.jsonl`.

A record names its parent; what is sent is the chain from the last record to the first. A reply is one record for each
of its blocks, with one `message.id`; results are records of the user. `compact_boundary` ends the chain: its summary
stands for what was before.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.claude_code import examine
from toolglot.agent_files.json_lines import FileLine, encode_line, object_of, read_lines, text_of
from toolglot.agent_files.parent_chains import ChainRecord, path_to
from toolglot.agent_files.reading import ReadingLog, decode_messages, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.reply_groups import (
    SPOKEN,
    blocks_of,
    chain_record,
    group_replies,
    plain_text,
    result_ids,
)
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import Conversation, Turn

NAME: Final = "claude_code"
VERSION: Final = "2.1.325"
"""Written into new sessions: the version whose sessions were last compared with these."""
MAX_SLUG: Final = 200
_OTHER_RECORDS: Final = frozenset({"summary", "custom-title", "mode", "last-prompt", "queue-operation"})
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Za-z0-9]")


# --- where the files are ----------------------------------------------------------------------------


def root_of(home: AgentHome) -> Path:
    return home.root("CLAUDE_CONFIG_DIR", ".claude") / "projects"


def slug_of(directory: str) -> str:
    """The name of the folder for a working directory."""
    return _NOT_ALPHANUMERIC.sub("-", directory)


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home)
    return iter(sorted(root.glob("*/*.jsonl"))) if root.is_dir() else iter(())


def recognises(_path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether a record is of Claude Code: Qwen Code's have the same ids, and messages of parts."""
    for line in lines:
        value = line.value or {}
        message = object_of(value, "message")
        if "parts" in message:
            return False
        if text_of(value, "type") in SPOKEN and "role" in message and ("uuid" in value or "sessionId" in value):
            return True
        if text_of(value, "type") in _OTHER_RECORDS and ("leafUuid" in value or "sessionId" in value):
            return True
    return False


# --- reading ----------------------------------------------------------------------------------------


class _File(Struct):
    """What is in a file, before the chain is followed."""

    records: list[ChainRecord]
    titles: dict[str, str]
    head: dict[str, Any]


def _load(path: Path, log: ReadingLog) -> _File:
    records: list[ChainRecord] = []
    titles: dict[str, str] = {}
    head: dict[str, Any] = {}
    for line in read_lines(path):
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
            continue
        kind = text_of(value, "type")
        for field in ("customTitle", "aiTitle", "summary"):
            if kind in ("custom-title", "ai-title", "summary") and text_of(value, field):
                titles[field] = text_of(value, field)
        record = chain_record(line.number, value)
        if record is not None:
            records.append(record)
            if kind in SPOKEN and not value.get("isSidechain"):
                head = {**head, **{name: value[name] for name in ("cwd", "gitBranch", "version") if name in value}}
    return _File(records, titles, head)


def read(path: Path) -> AgentSession:
    """The session that `claude --resume` would continue."""
    log = ReadingLog(path)
    loaded = _load(path, log)
    records = loaded.records
    # The file of a subagent has nothing but its side chain.
    own = [record for record in records if not record.value.get("isSidechain")] or records
    spoken = [record for record in own if text_of(record.value, "type") in SPOKEN]
    chain = path_to(spoken[-1], own) if spoken else []
    groups = group_replies(chain, own)
    turns, prompts, model = _turns_of(groups, log)
    on_chain = {record.id for record in chain}
    left = [record for record in spoken if record.id not in on_chain]
    used = {record.line for group in groups for record in group}
    left = [record for record in left if record.line not in used]
    boundaries = [record for record in records if record.value.get("subtype") == "compact_boundary"]
    left = [record for record in left if not boundaries or record.line > boundaries[-1].line]
    if left:
        log.add(f"{len(left)} records are on no path to the last one (rewinds, or a broken chain)", left[0].line)
    side = path.with_suffix("") / "subagents"
    subagents = tuple(str(each) for each in sorted(side.glob("*.jsonl"))) if side.is_dir() else ()
    times = [seconds_of(record.value.get("timestamp")) for record in spoken]
    titles = loaded.titles
    title = titles.get("customTitle") or titles.get("aiTitle") or titles.get("summary") or first_prompt(turns)
    return AgentSession(
        agent=NAME,
        id=path.stem,
        path=str(path),
        title=title_from(title),
        directory=text_of(loaded.head, "cwd"),
        branch=text_of(loaded.head, "gitBranch"),
        version=text_of(loaded.head, "version"),
        model=model,
        created=times[0] if times else 0.0,
        updated=times[-1] if times else 0.0,
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=len(boundaries),
        rewound=len(left),
        subagents=subagents,
        report=log.report(),
    )


def _turns_of(groups: Iterable[Sequence[ChainRecord]], log: ReadingLog) -> tuple[list[Turn], list[OwnPrompt], str]:
    turns: list[Turn] = []
    prompts: list[OwnPrompt] = []
    model = ""
    for group in groups:
        first = group[0]
        kind, message = text_of(first.value, "type"), object_of(first.value, "message")
        if kind == "attachment":
            attachment = object_of(first.value, "attachment")
            rendered = attachment.get("rendered")
            text = rendered if isinstance(rendered, str) else json.dumps(attachment, ensure_ascii=False)[:2000]
            prompts.append(OwnPrompt(kind=text_of(attachment, "type") or "attachment", text=text, line=first.line))
        elif kind == "user" and first.value.get("isCompactSummary"):
            turns.append(summary_turn(plain_text(message.get("content"))))
        elif kind == "user":
            turns += decode_messages(
                [(first.line, {"role": "user", "content": message.get("content")})], "anthropic", None, log
            )
        elif kind == "assistant" and not any(each.value.get("isApiErrorMessage") for each in group):
            blocks = [block for each in group for block in blocks_of(object_of(each.value, "message").get("content"))]
            written_by = text_of(message, "model")
            model = written_by or model
            turns += decode_messages(
                [(first.line, {"role": "assistant", "content": blocks})],
                "anthropic",
                issuer_of("anthropic", written_by),
                log,
            )
    return turns, prompts, model


def describe(path: Path) -> SessionRow:
    """A row for a list: one pass, nothing is decoded twice."""
    titles: dict[str, str] = {}
    prompt = directory = model = ""
    turns = 0
    for line in read_lines(path):
        value = line.value
        if value is None:
            continue
        kind = text_of(value, "type")
        if kind in ("custom-title", "ai-title", "summary"):
            for field in ("customTitle", "aiTitle", "summary"):
                titles[field] = text_of(value, field) or titles.get(field, "")
        elif kind == "user" and not value.get("isSidechain"):
            message = object_of(value, "message")
            directory = text_of(value, "cwd") or directory
            if not result_ids(message) and not value.get("isMeta"):
                turns += 1
                prompt = prompt or title_from(plain_text(message.get("content")))
        elif kind == "assistant":
            model = text_of(object_of(value, "message"), "model") or model
    status = path.stat()
    title = titles.get("customTitle") or titles.get("aiTitle") or titles.get("summary") or prompt
    return SessionRow(
        agent=NAME,
        id=path.stem,
        path=str(path),
        title=title_from(title),
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
        if line.value is not None
        and line.value.get("type") == "user"
        and not any(line.value.get(name) for name in ("isSidechain", "isMeta", "isCompactSummary"))
        and not result_ids(object_of(line.value, "message"))
    ]


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `claude --resume` continues."""
    made = render_turns(request.conversation, "anthropic", model=request.model, keeps_thinking=request.is_native)
    writer = _RecordWriter(request)
    if made.summary:
        writer.add_summary(made.summary)
    models = [turn.issuer.model if turn.issuer is not None else "" for turn in made.turns]
    aligned = len(models) == len(made.messages)
    for index, message in enumerate(made.messages):
        writer.add_message(message, models[index] if aligned else "")
    if request.title:
        writer.add({"type": "custom-title", "customTitle": request.title, "sessionId": request.id})
    slug = slug_of(request.directory)
    path = root_of(request.home) / slug[:MAX_SLUG] / f"{request.id}.jsonl"
    # Of a longer folder Claude Code hashes the path; it resumes a file by its path from everywhere.
    known = request.id if len(slug) <= MAX_SLUG else str(path)
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=path,
        command=("claude", "--resume", known),
        directory=request.directory,
        data=b"".join(writer.lines),
        report=made.entries,
        calls=made.calls,
        results=made.results,
    )


class _RecordWriter:
    """Writes records that name each other."""

    def __init__(self, request: WriteRequest) -> None:
        self._request = request
        self._parent: str | None = None
        self._count = itertools.count()
        self.lines: list[bytes] = []

    def add(self, value: dict[str, Any]) -> None:
        self.lines.append(encode_line(value))

    def _link(self, value: dict[str, Any]) -> None:
        number = next(self._count)
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._request.id}/{number}"))
        about = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._request.directory,
            "sessionId": self._request.id,
            "version": VERSION,
            "gitBranch": self._request.branch,
            "uuid": id,
            "timestamp": timestamp_of(self._request.now + number / 1000),
        }
        self.add({**about, **value})
        self._parent = id

    def add_summary(self, summary: str) -> None:
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "level": "info"}
        metadata = {"trigger": "manual", "preTokens": 0}
        self._link({"type": "system", **boundary, "isMeta": False, "compactMetadata": metadata})
        shown = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        self._link({"type": "user", **shown, "message": {"role": "user", "content": summary}})

    def add_message(self, message: dict[str, Any], model: str) -> None:
        if message.get("role") != "assistant":
            self._link({"type": "user", "message": {"role": "user", "content": message.get("content")}})
            return
        content = blocks_of(message.get("content"))
        has_calls = any(text_of(block, "type") == "tool_use" for block in content)
        number = next(self._count)
        whole = {
            "id": f"msg_{uuid.uuid5(uuid.NAMESPACE_OID, f'{self._request.id}/message/{number}').hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": model or self._request.model or "unknown",
            "content": content,
            "stop_reason": "tool_use" if has_calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._link({"type": "assistant", "message": whole})


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Claude Code",
    aliases=("claude", "claudecode", "cc"),
    find=find,
    provider="anthropic",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
)

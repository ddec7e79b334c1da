"""Qwen Code: `~/.qwen/projects/<slug of the folder>/chats/<session id>.jsonl`.

A record names its parent; messages are in Gemini's form, whatever the model. The result of each call is a record of its
own. `chat_compression` replaces what was before it; several records with one id are one message.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.qwen_code import SPOKEN, chain_record, examine
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, read_lines, text_of
from toolglot.agent_files.parent_chains import ChainRecord, path_to
from toolglot.agent_files.reading import ReadingLog, decode_messages, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, SessionRow, WrittenSession
from toolglot.conversation import Conversation, Turn

NAME: Final = "qwen_code"
VERSION: Final = "0.15.10"
"""Written into new sessions: the version whose sessions were last compared with these."""
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Za-z0-9]")
_SNAPSHOT: Final = "<state_snapshot>"
_UNDERSTOOD: Final = "Got it. Thanks for the additional context!"


def root_of(home: AgentHome) -> Path:
    named = home.environ.get("QWEN_RUNTIME_DIR") or home.environ.get("QWEN_HOME")
    return Path(named).expanduser() if named else home.folder / ".qwen"


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home) / "projects"
    found = sorted(root.glob("*/chats/*.jsonl")) if root.is_dir() else []
    return (path for path in found if not path.name.endswith(".ledger.jsonl"))


def recognises(_path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether a record has parts, as only those of Qwen Code do among those with parents."""
    return any(
        line.value is not None
        and "parentUuid" in line.value
        and ("parts" in object_of(line.value, "message") or "systemPayload" in line.value)
        for line in lines
    )


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that `qwen --resume` would continue."""
    log = ReadingLog(path)
    records: list[ChainRecord] = []
    title = ""
    for line in read_lines(path):
        if line.value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
            continue
        record = chain_record(line.number, line.value)
        if record is not None:
            records.append(record)
        if line.value.get("subtype") == "custom_title":
            title = text_of(object_of(line.value, "systemPayload"), "customTitle") or title
    spoken = [record for record in records if text_of(record.value, "type") in SPOKEN]
    chain = path_to(spoken[-1], records) if spoken else []
    turns, model, compactions = _turns_of(chain, log)
    on_chain = {record.line for record in chain}
    left = [record for record in spoken if record.line not in on_chain]
    if left:
        log.add(f"{len(left)} records are on no path to the last one (rewinds, or a broken chain)", left[0].line)
    head = records[0].value if records else {}
    return AgentSession(
        agent=NAME,
        id=path.stem,
        path=str(path),
        title=title_from(title) or first_prompt(turns),
        directory=text_of(head, "cwd"),
        branch=text_of(head, "gitBranch"),
        version=text_of(head, "version"),
        model=model,
        created=seconds_of(head.get("timestamp")),
        updated=seconds_of(spoken[-1].value.get("timestamp")) if spoken else 0.0,
        conversation=Conversation(tuple(turns), model=model),
        compactions=compactions,
        rewound=len(left),
        report=log.report(),
    )


def _turns_of(chain: Sequence[ChainRecord], log: ReadingLog) -> tuple[list[Turn], str, int]:
    turns: list[Turn] = []
    model = ""
    compactions = 0
    for record in chain:
        value = record.value
        if value.get("subtype") == "chat_compression":
            history = list_of(object_of(value, "systemPayload"), "compressedHistory")
            turns = _compressed(history, record.line, log)
            compactions += 1
            continue
        parts = [part for part in list_of(object_of(value, "message"), "parts") if isinstance(part, dict)]
        if text_of(value, "type") not in SPOKEN or not parts:
            continue
        if value["type"] == "assistant":
            model = text_of(value, "model") or model
            content = {"role": "model", "parts": parts}
            turns += decode_messages([(record.line, content)], "gemini", issuer_of(NAME, text_of(value, "model")), log)
        else:
            turns += decode_messages([(record.line, {"role": "user", "parts": parts})], "gemini", None, log)
    return turns, model, compactions


def _compressed(history: Sequence[Any], line: int, log: ReadingLog) -> list[Turn]:
    """The turns of a compressed history: a summary, that it was understood, and what was kept."""
    contents = [content for content in history if isinstance(content, dict)]
    text = "".join(text_of(part, "text") for part in list_of(contents[0], "parts")) if contents else ""
    if _SNAPSHOT not in text[:200]:
        return decode_messages([(line, content) for content in contents], "gemini", None, log)
    rest = contents[1:]
    if rest and "".join(text_of(part, "text") for part in list_of(rest[0], "parts")) == _UNDERSTOOD:
        rest = rest[1:]
    return [summary_turn(text), *decode_messages([(line, content) for content in rest], "gemini", None, log)]


def describe(path: Path) -> SessionRow:
    """A row for a list."""
    title = directory = model = named = ""
    turns = 0
    for line in read_lines(path):
        value = line.value
        if value is None:
            continue
        directory = directory or text_of(value, "cwd")
        model = text_of(value, "model") or model
        if value.get("subtype") == "custom_title":
            named = text_of(object_of(value, "systemPayload"), "customTitle") or named
        if value.get("type") == "user":
            turns += 1
            parts = list_of(object_of(value, "message"), "parts")
            title = title or title_from("".join(text_of(part, "text") for part in parts))
    status = path.stat()
    return SessionRow(
        agent=NAME,
        id=path.stem,
        path=str(path),
        title=title_from(named) or title,
        directory=directory,
        model=model,
        turns=turns,
        size=status.st_size,
        updated=status.st_mtime,
    )


def prompts(lines: Sequence[FileLine]) -> list[int]:
    """The lines on which the prompts of the user begin."""
    return [line.number for line in lines if line.value is not None and line.value.get("type") == "user"]


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `qwen --resume` continues. Signatures of Gemini are of no use to it: its models are others."""
    made = render_turns(request.conversation, "gemini", model="gemini-2.5-flash", keeps_thinking=False)
    lines: list[bytes] = []
    parent: str | None = None

    def add(kind: str, **more: Any) -> None:
        nonlocal parent
        id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{request.id}/{len(lines)}"))
        record = {
            "uuid": id,
            "parentUuid": parent,
            "sessionId": request.id,
            "timestamp": timestamp_of(request.now + len(lines) / 1000),
            "type": kind,
            "cwd": request.directory,
            "version": VERSION,
            **({"gitBranch": request.branch} if request.branch else {}),
        }
        lines.append(encode_line({**record, **more}))
        parent = id

    if made.summary:
        text = made.summary if _SNAPSHOT in made.summary[:200] else f"{_SNAPSHOT}\n{made.summary}\n</state_snapshot>"
        add("user", message={"role": "user", "parts": [{"text": text}]})
        history = [{"role": "user", "parts": [{"text": text}]}, {"role": "model", "parts": [{"text": _UNDERSTOOD}]}]
        add("system", subtype="chat_compression", systemPayload={"info": {}, "compressedHistory": history})
    for content in made.messages:
        parts = [part for part in list_of(content, "parts") if isinstance(part, dict)]
        if content.get("role") == "model":
            add("assistant", message={"role": "model", "parts": parts}, model=request.model or "unknown")
            continue
        for part in parts:
            if "functionResponse" in part:
                add("tool_result", message={"role": "user", "parts": [part]})
        rest = [part for part in parts if "functionResponse" not in part]
        if rest:
            add("user", message={"role": "user", "parts": rest})
    if request.title:
        add("system", subtype="custom_title", systemPayload={"customTitle": request.title, "titleSource": "manual"})
    slug = _NOT_ALPHANUMERIC.sub("-", request.directory)
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=root_of(request.home) / "projects" / slug / "chats" / f"{request.id}.jsonl",
        command=("qwen", "--resume", request.id),
        directory=request.directory,
        data=b"".join(lines),
        report=made.entries,
        calls=made.calls,
        results=made.results,
    )


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Qwen Code",
    aliases=("qwen",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
)

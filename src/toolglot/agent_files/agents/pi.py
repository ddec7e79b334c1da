"""pi: `~/.pi/agent/sessions/--<folder>--/<time>_<id>.jsonl`.

The first line is a header; the others name their parent. What is sent is the path from the last line to the first;
`compaction` replaces what was before the line that it names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest
from toolglot.agent_files.checks.pi import ZERO_USAGE, chain_record, examine, texts_in
from toolglot.agent_files.json_lines import FileLine, encode_line, list_of, object_of, read_lines, text_of
from toolglot.agent_files.parent_chains import ChainRecord, path_to
from toolglot.agent_files.reading import ReadingLog, first_prompt, summary_turn, title_from
from toolglot.agent_files.rendered_turns import issuer_of, render_turns
from toolglot.agent_files.times import seconds_of, timestamp_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionRow, WrittenSession
from toolglot.conversation import (
    Block,
    Conversation,
    Media,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)

NAME: Final = "pi"
_SEPARATORS: Final = re.compile(r"[/\\:]")


def root_of(home: AgentHome) -> Path:
    return home.root("PI_CODING_AGENT_SESSION_DIR", ".pi", "agent", "sessions")


def find(home: AgentHome) -> Iterator[Path]:
    root = root_of(home)
    return iter(sorted({*root.glob("*/*.jsonl"), *root.glob("*.jsonl")})) if root.is_dir() else iter(())


def recognises(_path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether there is a header, or an entry with a parent."""
    return any(
        line.value is not None
        and (
            (line.value.get("type") == "session" and "cwd" in line.value)
            or (
                line.value.get("type") == "message"
                and "parentId" in line.value
                and "role" in object_of(line.value, "message")
            )
        )
        for line in lines
    )


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that `pi --session` would continue."""
    log = ReadingLog(path)
    header: dict[str, Any] = {}
    records: list[ChainRecord] = []
    title = ""
    before: str | None = None
    for line in read_lines(path):
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
        elif value.get("type") == "session":
            header = header or value
        else:
            record = chain_record(line.number, value, before if header.get("version", 1) == 1 else None)
            if record is not None:
                records.append(record)
                before = record.id
            title = text_of(value, "name") or title if value.get("type") == "session_info" else title
    chain = path_to(records[-1], records) if records else []
    turns, prompts, model, compactions = _turns_of(chain, log)
    left = len(records) - len(chain)
    if left:
        log.add(f"{left} entries are on no path to the last one (branches, or a broken chain)")
    return AgentSession(
        agent=NAME,
        id=text_of(header, "id") or path.stem.rpartition("_")[2],
        path=str(path),
        title=title_from(title) or first_prompt(turns),
        directory=text_of(header, "cwd"),
        model=model,
        created=seconds_of(header.get("timestamp")),
        updated=seconds_of(records[-1].value.get("timestamp")) if records else 0.0,
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=compactions,
        rewound=left,
        report=log.report(),
    )


def _turns_of(chain: Sequence[ChainRecord], log: ReadingLog) -> tuple[list[Turn], list[OwnPrompt], str, int]:
    """What is sent: the last summary, what it keeps of those before it, and what is behind it."""
    places = [index for index, record in enumerate(chain) if record.value.get("type") == "compaction"]
    turns: list[Turn] = []
    first, last = 0, -1
    if places:
        last = places[-1]
        value = chain[last].value
        kept = text_of(value, "firstKeptEntryId")
        first = next((index for index in range(last) if chain[index].id == kept), last)
        turns.append(summary_turn(text_of(value, "summary")))
    prompts: list[OwnPrompt] = []
    model = ""
    for index, record in enumerate(chain):
        value, message = record.value, object_of(record.value, "message")
        if value.get("type") == "message" and message.get("role") == "system":
            prompts.append(OwnPrompt(kind="system", text=texts_in(message.get("content")), line=record.line))
        elif index < first:
            continue
        elif value.get("type") == "branch_summary" and text_of(value, "summary"):
            turns.append(Turn("user", (Text(text_of(value, "summary")),)))
        elif value.get("type") == "message":
            model = text_of(message, "model") or model
            turn = _turn_of(message, record.line, log)
            turns += [turn] if turn is not None else []
    return turns, prompts, model, len(places)


def _turn_of(message: dict[str, Any], line: int, log: ReadingLog) -> Turn | None:
    role, content = text_of(message, "role"), message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(message, "content")
    if role == "assistant":
        if message.get("stopReason") in ("aborted", "error"):
            log.add("an answer that was aborted is not sent", line, gravity="change")
            return None
        issuer = issuer_of(text_of(message, "provider") or NAME, text_of(message, "model"))
        return Turn(
            "assistant", tuple(block for part in parts if (block := _answer_block(part)) is not None), issuer=issuer
        )
    if role == "toolResult":
        found: list[ResultPart] = [block for part in parts if (block := _plain_block(part)) is not None]
        id, failed = text_of(message, "toolCallId"), message.get("isError") is True
        name = text_of(message, "toolName")
        return Turn("tool", (ToolResult(id, tuple(found), is_error=failed, name=name),))
    if role == "bashExecution":
        text = f"Ran `{text_of(message, 'command')}`\n{text_of(message, 'output')}"
        return None if message.get("excludeFromContext") else Turn("user", (Text(text),))
    if role in ("user", "custom"):
        return Turn("user", tuple(block for part in parts if (block := _plain_block(part)) is not None))
    log.add(f"a message of the role {role[:40]!r} is not known", line)
    return None


def _plain_block(part: Any) -> Text | Media | None:
    kind = text_of(part, "type")
    if kind == "text":
        return Text(text_of(part, "text"))
    if kind == "image":
        return Media("image", text_of(part, "mimeType") or "image/png", data=text_of(part, "data"))
    return None


def _answer_block(part: Any) -> Block | None:
    kind = text_of(part, "type")
    if kind == "thinking":
        return Thinking(text_of(part, "thinking"), signature=text_of(part, "thinkingSignature") or None)
    if kind == "toolCall":
        arguments = part.get("arguments")
        return ToolCall(
            text_of(part, "id"),
            text_of(part, "name"),
            arguments if isinstance(arguments, dict) else None,
            raw_input=None if isinstance(arguments, dict) else json.dumps(arguments),
            signature=text_of(part, "thoughtSignature") or None,
        )
    return _plain_block(part)


def describe(path: Path) -> SessionRow:
    """A row for a list."""
    id = title = directory = model = named = ""
    turns = 0
    for line in read_lines(path):
        value = line.value
        if value is None:
            continue
        message = object_of(value, "message")
        if value.get("type") == "session":
            id, directory = text_of(value, "id"), text_of(value, "cwd")
        elif value.get("type") == "session_info":
            named = text_of(value, "name")
        elif message.get("role") == "user":
            turns += 1
            title = title or title_from(texts_in(message.get("content")))
        model = text_of(message, "model") or model
    status = path.stat()
    return SessionRow(
        agent=NAME,
        id=id or path.stem.rpartition("_")[2],
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
    return [
        line.number
        for line in lines
        if line.value is not None and object_of(line.value, "message").get("role") == "user"
    ]


# --- writing ----------------------------------------------------------------------------------------


def write(request: WriteRequest) -> WrittenSession:
    """A session that `pi --session` continues. Thinking is left out: pi would write another model's as plain text."""
    made = render_turns(request.conversation, "anthropic", keeps_thinking=False)
    time = timestamp_of(request.now)
    milliseconds = int(request.now * 1000)
    header = {"type": "session", "version": 3, "id": request.id, "timestamp": time, "cwd": request.directory}
    lines = [encode_line(header)]
    parent: str | None = None

    def add(kind: str, **more: Any) -> None:
        nonlocal parent
        id = hashlib.sha256(f"{request.id}/{len(lines)}".encode()).hexdigest()[:8]
        lines.append(encode_line({"type": kind, "id": id, "parentId": parent, "timestamp": time, **more}))
        parent = id

    if made.summary:
        add("compaction", summary=made.summary, firstKeptEntryId="", tokensBefore=0)
    names = {call.id: call.name for turn in made.turns for call in turn.calls}
    for turn in made.turns:
        for message in _messages_of(turn, names):
            add("message", message={**message, "timestamp": milliseconds})
    if request.title:
        add("session_info", name=request.title)
    safe = _SEPARATORS.sub("-", request.directory.removeprefix("/"))
    name = f"{re.sub(r'[:.]', '-', time)}_{request.id}.jsonl"
    path = root_of(request.home) / f"--{safe}--" / name
    return WrittenSession(
        agent=NAME,
        id=request.id,
        path=path,
        command=("pi", "--session", str(path)),
        directory=request.directory,
        data=b"".join(lines),
        report=made.entries,
        calls=made.calls,
        results=made.results,
    )


def _messages_of(turn: Turn, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The messages of a turn: each result is one."""
    if turn.role == "assistant":
        content = [part for block in turn.blocks if (part := _part_of(block)) is not None]
        about = {"api": "anthropic-messages", "provider": "anthropic"}
        model = turn.issuer.model if turn.issuer is not None and turn.issuer.model else "unknown"
        reason = "toolUse" if turn.calls else "stop"
        yield {
            "role": "assistant",
            "content": content,
            **about,
            "model": model,
            "usage": ZERO_USAGE,
            "stopReason": reason,
        }
        return
    rest: list[dict[str, Any]] = []
    for block in turn.blocks:
        if isinstance(block, ToolResult):
            inner = (Text(block.content),) if isinstance(block.content, str) else block.content or ()
            content = [part for each in inner if (part := _part_of(each)) is not None]
            yield {
                "role": "toolResult",
                "toolCallId": block.call_id,
                "toolName": names.get(block.call_id, ""),
                "content": content,
                "isError": block.is_error,
            }
        elif (part := _part_of(block)) is not None:
            rest.append(part)
    if rest:
        yield {"role": "user", "content": rest}


def _part_of(block: Block) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Media):
        if block.kind == "image" and block.data is not None:
            return {"type": "image", "data": block.data, "mimeType": block.media_type}
        return {"type": "text", "text": f"[{block.kind}: {block.name or block.url or block.media_type}]"}
    if isinstance(block, ToolCall):
        arguments = block.arguments if block.arguments is not None else {"_raw": block.raw_input or ""}
        return {"type": "toolCall", "id": block.id, "name": block.name, "arguments": arguments}
    return None


FORMAT: Final = AgentFormat(
    name=NAME,
    title="pi",
    aliases=("pi",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe,
    read=read,
    write=write,
    examine=examine,
    prompts=prompts,
)

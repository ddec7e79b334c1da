"""llxprt: `~/.llxprt/tmp/<hash>/chats/session-<time>-<id>.jsonl`, or the same below its folder of logs.

A line is an event with a number: a content that was said, a summary that replaces those before it, or a rewind of so
many. Read only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome
from toolglot.agent_files.checks.read_only import examine_with
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, read_lines, text_of
from toolglot.agent_files.reading import ReadingLog, call_of, describe_with, first_prompt, image_of, summary_turn
from toolglot.agent_files.rendered_turns import issuer_of
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession
from toolglot.agent_files.whole_files import no_lines
from toolglot.conversation import Block, Conversation, Media, Text, Thinking, ToolResult, Turn

NAME: Final = "llxprt"
_EVENTS: Final = frozenset({"session_start", "content", "compressed", "rewind", "provider_switch"})
_ROOTS: Final = (
    (".llxprt",),
    (".local", "state", "llxprt-code"),
    (".local", "state", "llxprt-code-nodejs"),
    ("Library", "Logs", "llxprt-code"),
)


def find(home: AgentHome) -> Iterator[Path]:
    named = home.environ.get("LLXPRT_LOG_HOME", "")
    roots = [Path(named)] if named else [home.folder.joinpath(*each) for each in _ROOTS]
    for root in roots:
        yield from sorted((root / "tmp").glob("*/chats/session-*.jsonl"))


def recognises(_path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether a line is an event."""
    return any(
        line.value is not None and text_of(line.value, "type") in _EVENTS and {"seq", "payload"} <= {*line.value}
        for line in lines
    )


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that `llxprt --continue` would continue."""
    log = ReadingLog(path)
    head: dict[str, Any] = {}
    contents: list[Turn | None] = []
    model = provider = ""
    updated = 0.0
    compactions = rewound = 0
    for line in read_lines(path):
        value = line.value
        if value is None:
            if not line.is_blank:
                log.add(f"the line cannot be read: {line.problem}", line.number)
            continue
        kind, payload = text_of(value, "type"), object_of(value, "payload")
        updated = seconds_of(value.get("ts")) or updated
        if kind in ("session_start", "provider_switch"):
            head = head or (payload if kind == "session_start" else {})
            model, provider = text_of(payload, "model") or model, text_of(payload, "provider") or provider
        elif kind == "content":
            contents.append(_turn_of(object_of(payload, "content"), provider, model, line.number, log))
        elif kind == "compressed":
            compactions += 1
            contents = [summary_turn(_text_in(object_of(payload, "summary")))]
        elif kind == "rewind":
            count = payload.get("itemsRemoved")
            gone = min(count, len(contents)) if isinstance(count, int) and count > 0 else 0
            rewound += gone
            del contents[len(contents) - gone :]
    turns = [turn for turn in contents if turn is not None]
    return AgentSession(
        agent=NAME,
        id=text_of(head, "sessionId") or path.stem.rpartition("-")[2],
        path=str(path),
        title=first_prompt(turns),
        directory=next((each for each in list_of(head, "workspaceDirs") if isinstance(each, str)), ""),
        model=model,
        created=seconds_of(head.get("startTime")),
        updated=updated,
        conversation=Conversation(tuple(turns), model=model),
        compactions=compactions,
        rewound=rewound,
        report=log.report(),
    )


def _text_in(content: dict[str, Any]) -> str:
    return "\n\n".join(text_of(block, "text") for block in list_of(content, "blocks") if text_of(block, "text"))


def _turn_of(content: dict[str, Any], provider: str, model: str, line: int, log: ReadingLog) -> Turn | None:
    """What was said by one of the three."""
    speaker = text_of(content, "speaker")
    if speaker not in ("human", "ai", "tool"):
        log.add(f"a content of the speaker {speaker[:40]!r} is not known", line)
        return None
    blocks: list[Block] = []
    for part in list_of(content, "blocks"):
        block = _block_of(part)
        if block is not None:
            blocks.append(block)
        elif text_of(part, "type") != "text":
            log.add(f"a block of the kind {text_of(part, 'type')[:40]!r} is not known", line)
    if not blocks:
        return None
    if speaker == "ai":
        about = object_of(content, "metadata")
        issuer = issuer_of(text_of(about, "provider") or provider or NAME, text_of(about, "model") or model)
        return Turn("assistant", tuple(blocks), issuer=issuer)
    return Turn("tool" if speaker == "tool" else "user", tuple(blocks))


def _block_of(part: Any) -> Block | None:
    kind = text_of(part, "type")
    if kind == "text" and text_of(part, "text"):
        return Text(text_of(part, "text"))
    if kind == "code":
        return Text(f"```{text_of(part, 'language')}\n{text_of(part, 'code')}\n```")
    if kind == "tool_call":
        return call_of(text_of(part, "id"), text_of(part, "name"), part.get("parameters"))
    if kind == "tool_response":
        result, error = part.get("result"), text_of(part, "error")
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        shown = error if error and result is None else text
        return ToolResult(text_of(part, "callId"), shown, is_error=bool(error), name=text_of(part, "toolName"))
    if kind == "thinking":
        encrypted = text_of(part, "encryptedContent")
        return Thinking(
            text_of(part, "thought"), signature=text_of(part, "signature") or None, redacted=encrypted or None
        )
    if kind == "media":
        return _media_of(part)
    return None


def _media_of(part: dict[str, Any]) -> Media:
    data, type_ = text_of(part, "data"), text_of(part, "mimeType")
    name = text_of(part, "filename")
    if text_of(part, "encoding") == "url":
        return image_of(data, type_, name)
    kind = type_.partition("/")[0]
    if kind == "image":
        return Media("image", type_, data=data, name=name or None)
    return Media("document", type_, data=data, name=name or None)


FORMAT: Final = AgentFormat(
    name=NAME,
    title="llxprt",
    aliases=("llxprt",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe_with(read),
    read=read,
    examine=examine_with(read),
    lines=no_lines,
)

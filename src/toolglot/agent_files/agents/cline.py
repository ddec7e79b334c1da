"""Cline: `tasks/<id>/api_conversation_history.json` in the storage of the editor, or `~/.cline/data/sessions/<id>/`.

The extension keeps the messages of a task as Anthropic's; what it cut off is in the list of tasks. The command line
keeps a manifest, the messages, and once it has compacted them, those that it goes on with. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot.agent_files.base import AgentFormat, AgentHome
from toolglot.agent_files.checks.read_only import examine_with
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of
from toolglot.agent_files.reading import ReadingLog, call_of, describe_with, first_prompt, image_of, title_from
from toolglot.agent_files.rendered_turns import issuer_of
from toolglot.agent_files.times import seconds_of
from toolglot.agent_files.values import AgentSession, OwnPrompt
from toolglot.agent_files.whole_files import no_lines, read_document
from toolglot.conversation import Block, Conversation, Media, ResultPart, Text, Thinking, ToolResult, Turn
from toolglot.errors import InputError

NAME: Final = "cline"
_TASK: Final = "api_conversation_history.json"
_MESSAGES: Final = ".messages.json"
_EXTENSION: Final = "saoudrizwan.claude-dev"
_EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_CONFIGURATIONS: Final = (".config", "Library/Application Support", "AppData/Roaming")
_SERVERS: Final = (".vscode-server", ".vscode-server-insiders", ".cursor-server")
_OWN_PROMPTS: Final = ("<environment_details>", "# TODO LIST", "<explicit_instructions")
"""How texts begin that Cline itself adds to what the user wrote."""


# --- where the sessions are -------------------------------------------------------------------------


def find(home: AgentHome) -> Iterator[Path]:
    for storage in _storages(home):
        yield from sorted((storage / _EXTENSION / "tasks").glob(f"*/{_TASK}"))
    root = _data_of(home) / "sessions"
    named = home.environ.get("CLINE_SESSION_DATA_DIR", "")
    for folder in {root, Path(named)} if named else {root}:
        for path in sorted(folder.glob(f"*/*{_MESSAGES}")):
            if path.name == f"{path.parent.name}{_MESSAGES}":  # the others are of its subagents
                yield path


def _data_of(home: AgentHome) -> Path:
    named = home.environ.get("CLINE_DATA_DIR", "")
    return Path(named).expanduser() if named else home.root("CLINE_DIR", ".cline") / "data"


def _storages(home: AgentHome) -> Iterator[Path]:
    """Where editors keep the data of their extensions."""
    for configuration in _CONFIGURATIONS:
        for editor in _EDITORS:
            yield home.folder / configuration / editor / "User" / "globalStorage"
    for server in _SERVERS:
        yield home.folder / server / "data" / "User" / "globalStorage"


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it has the name of one."""
    return bool(lines) and (path.name == _TASK or path.name.endswith(_MESSAGES))


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that Cline would continue."""
    log = ReadingLog(path)
    about = _task_of(path) if path.name == _TASK else _manifest_of(path)
    value = read_document(path)
    messages = value if isinstance(value, list) else list_of(value, "messages")
    if not isinstance(value, list) and not isinstance(object_of({"": value}, "").get("messages"), list):
        raise InputError("this is not a list of messages", path=str(path), hint=f"{_TASK} of a task of Cline")
    messages, compactions = _sent(path, messages, about, log)
    turns: list[Turn] = []
    prompts: list[OwnPrompt] = []
    model = text_of(about, "modelId") or text_of(about, "model")
    for number, message in enumerate(messages, 1):
        model = (
            text_of(object_of(message, "modelInfo"), "id")
            or text_of(object_of(message, "modelInfo"), "modelId")
            or model
        )
        turn = _turn_of(message, model, number, prompts, log)
        if turn is not None:
            turns.append(turn)
    metadata = object_of(about, "metadata")
    return AgentSession(
        agent=NAME,
        id=text_of(about, "session_id") or path.parent.name,
        path=str(path),
        title=title_from(text_of(about, "task") or text_of(metadata, "title")) or first_prompt(turns),
        directory=text_of(about, "cwdOnTaskInitialization") or text_of(about, "cwd"),
        model=model,
        created=seconds_of(about.get("started_at")),
        updated=seconds_of(about.get("ts")) or seconds_of(about.get("ended_at")),
        conversation=Conversation(tuple(turns), model=model),
        own_prompts=tuple(prompts),
        compactions=compactions,
        subagents=tuple(
            str(each) for each in sorted(path.parent.glob(f"*{_MESSAGES}")) if each != path and path.name != _TASK
        ),
        report=log.report(),
    )


def _task_of(path: Path) -> dict[str, Any]:
    """The entry of a task in the list of tasks."""
    listed = _optional(path.parent.parent.parent / "state" / "taskHistory.json")
    entries = listed if isinstance(listed, list) else []
    return next(
        (each for each in entries if isinstance(each, dict) and str(each.get("id")) == path.parent.name),
        {},
    )


def _manifest_of(path: Path) -> dict[str, Any]:
    found = _optional(path.with_name(path.name.removesuffix(_MESSAGES) + ".json"))
    return found if isinstance(found, dict) else {}


def _optional(path: Path) -> Any:
    """A file beside the session, which need not be there."""
    try:
        return read_document(path) if path.is_file() else None
    except InputError:
        return None


def _sent(path: Path, messages: list[Any], about: dict[str, Any], log: ReadingLog) -> tuple[list[Any], int]:
    """The messages that are still sent, and how often the session was compacted."""
    if path.name == _TASK:
        cut = about.get("conversationHistoryDeletedRange")
        if isinstance(cut, list) and len(cut) == 2 and all(isinstance(each, int) for each in cut):
            first, last = cut
            kept = [*messages[: max(first, 0)], *messages[max(last, first - 1, -1) + 1 :]]
            log.add(f"{len(messages) - len(kept)} messages that Cline has cut off are left out", gravity="change")
            return kept, 1
        return messages, 0
    state = _optional(path.with_name(path.name.removesuffix(_MESSAGES) + ".compaction.json"))
    count = state.get("source_message_count") if isinstance(state, dict) else None
    if isinstance(count, int) and 0 <= count <= len(messages) and isinstance(state.get("messages"), list):
        return [*state["messages"], *messages[count:]], 1
    return messages, 0


def _turn_of(message: Any, model: str, number: int, prompts: list[OwnPrompt], log: ReadingLog) -> Turn | None:
    role, content = text_of(message, "role"), message.get("content") if isinstance(message, dict) else None
    if role not in ("user", "assistant"):
        log.add(f"message {number} has no known role")
        return None
    blocks: list[Block] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else list_of(message, "content"):
        text = text_of(part, "text")
        if role == "user" and text.lstrip().startswith(_OWN_PROMPTS):
            prompts.append(OwnPrompt(kind="environment", text=text, line=0))
            continue
        block = _block_of(part, role)
        if block is not None:
            blocks.append(block)
        elif text_of(part, "type") not in ("text", "redacted_thinking"):
            log.add(f"a block of the kind {text_of(part, 'type')[:40]!r} in message {number} is not known")
    if not blocks:
        return None
    if role == "assistant":
        return Turn("assistant", tuple(blocks), issuer=issuer_of(NAME, model))
    return Turn("user", tuple(blocks))


def _block_of(part: Any, role: str) -> Block | None:
    kind = text_of(part, "type")
    if kind == "tool_use":
        return call_of(
            text_of(part, "id"), text_of(part, "name"), part.get("input"), signature=text_of(part, "signature")
        )
    if kind == "tool_result":
        inner = part.get("content")
        failed = part.get("is_error") is True
        if isinstance(inner, str):
            return ToolResult(text_of(part, "tool_use_id"), inner, is_error=failed)
        found: list[ResultPart] = [
            block for each in list_of(part, "content") if (block := _plain_block(each)) is not None
        ]
        return ToolResult(text_of(part, "tool_use_id"), tuple(found), is_error=failed)
    if kind == "thinking" and role == "assistant":
        return Thinking(text_of(part, "thinking"), signature=text_of(part, "signature") or None)
    return _plain_block(part)


def _plain_block(part: Any) -> Text | Media | None:
    kind = text_of(part, "type")
    if kind == "text" and text_of(part, "text"):
        return Text(_unwrapped(text_of(part, "text")))
    if kind == "file":
        return Text(f"{text_of(part, 'path')}\n{text_of(part, 'content')}")
    source = object_of(part, "source")
    if kind == "image":
        data = text_of(part, "data") or text_of(source, "data")
        type_ = text_of(part, "mediaType") or text_of(source, "media_type") or "image/png"
        return Media("image", type_, data=data) if data else image_of(text_of(source, "url"), type_)
    return None


def _unwrapped(text: str) -> str:
    """The words of the user, without the tags that Cline puts around them."""
    for tag in ("task", "user_message", "feedback", "user_input"):
        head, tail = f"<{tag}>", f"</{tag}>"
        if text.startswith(head) and text.rstrip().endswith(tail):
            return text.rstrip()[len(head) : -len(tail)].strip("\n")
    return text


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Cline",
    aliases=("cline",),
    find=find,
    provider="anthropic",
    recognises=recognises,
    describe=describe_with(read),
    read=read,
    examine=examine_with(read),
    lines=no_lines,
)

"""Continue: `~/.continue/sessions/<id>.json`.

An item of the history is a message with what was attached to it; results are in the item of the calls. System messages
are not saved. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from toolglot import jsontext
from toolglot.agent_files.base import AgentFormat, AgentHome
from toolglot.agent_files.checks.read_only import examine_with
from toolglot.agent_files.json_lines import FileLine, list_of, object_of, text_of
from toolglot.agent_files.reading import (
    ReadingLog,
    call_of,
    describe_with,
    first_prompt,
    image_of,
    summary_turn,
    title_from,
)
from toolglot.agent_files.rendered_turns import issuer_of
from toolglot.agent_files.values import AgentSession
from toolglot.agent_files.whole_files import no_lines, read_document
from toolglot.conversation import Block, Conversation, Text, Thinking, ToolResult, Turn
from toolglot.errors import InputError

NAME: Final = "continue_dev"
_LIST: Final = "sessions.json"
_CANCELLED: Final = "[The call was cancelled.]"


def find(home: AgentHome) -> Iterator[Path]:
    root = home.root("CONTINUE_GLOBAL_DIR", ".continue") / "sessions"
    return (path for path in sorted(root.glob("*.json")) if path.name != _LIST)


def recognises(path: Path, lines: Sequence[FileLine]) -> bool:
    """Whether it is an object with a history."""
    if path.suffix != ".json" or path.name == _LIST:
        return False
    head = b"".join(line.data[:4096] + line.data[-4096:] for line in lines)
    return b'"sessionId"' in head and b'"workspaceDirectory"' in head


# --- reading ----------------------------------------------------------------------------------------


def read(path: Path) -> AgentSession:
    """The session that `cn --resume` would continue."""
    log = ReadingLog(path)
    value = read_document(path)
    if not isinstance(value, dict) or not isinstance(value.get("history"), list):
        raise InputError("this is not a session of Continue", path=str(path), hint="it has no history")
    model = text_of(value, "chatModelTitle")
    turns: list[Turn] = []
    compactions = 0
    for number, item in enumerate(value["history"], 1):
        summary = text_of(item, "conversationSummary")
        made = _turns_of(object_of(item, "message"), item, model, number, log)
        if summary:  # it stands for this item too
            compactions += 1
            turns = [summary_turn(summary)]
        else:
            turns += made
    return AgentSession(
        agent=NAME,
        id=text_of(value, "sessionId") or path.stem,
        path=str(path),
        title=title_from(text_of(value, "title")) or first_prompt(turns),
        directory=text_of(value, "workspaceDirectory").removeprefix("file://"),
        model=model,
        conversation=Conversation(tuple(turns), model=model),
        compactions=compactions,
        report=log.report(),
    )


def _turns_of(message: dict[str, Any], item: Any, model: str, number: int, log: ReadingLog) -> list[Turn]:
    """The turns of an item: a message, and the results of its calls."""
    role = text_of(message, "role")
    if role == "user":
        attached = [_context(each) for each in list_of(item, "contextItems")]
        blocks = (*(Text(text) for text in attached if text), *_blocks_of(message.get("content")))
        return [Turn("user", blocks)] if blocks else []
    if role == "tool":
        text = "".join(block.text for block in _blocks_of(message.get("content")) if isinstance(block, Text))
        return [Turn("tool", (ToolResult(text_of(message, "toolCallId"), text),))]
    if role in ("assistant", "thinking"):
        return _answer_turns(message, item, model)
    if role != "system":
        log.add(f"a message of the role {role[:40]!r} in item {number} is not known")
    return []


def _answer_turns(message: dict[str, Any], item: Any, model: str) -> list[Turn]:
    if message.get("role") == "thinking":
        thinking = Thinking(
            "".join(block.text for block in _blocks_of(message.get("content")) if isinstance(block, Text)),
            signature=text_of(message, "signature") or None,
            redacted=text_of(message, "redactedThinking") or None,
        )
        return [Turn("assistant", (thinking,), issuer=issuer_of(NAME, model))]
    states = [state for state in list_of(item, "toolCallStates") if isinstance(state, dict)]
    by_id = {text_of(state, "toolCallId"): state for state in states}
    called = [call for call in list_of(message, "toolCalls") if isinstance(call, dict)]
    known = {text_of(call, "id") for call in called}
    called += [object_of(state, "toolCall") for id, state in by_id.items() if id not in known]
    reasoning = text_of(object_of(item, "reasoning"), "text")
    blocks: list[Block] = [Thinking(reasoning)] if reasoning else []
    blocks += _blocks_of(message.get("content"))
    results: list[Block] = []
    for call in called:
        id, function = text_of(call, "id"), object_of(call, "function")
        state = by_id.get(id, {})
        blocks.append(call_of(id, text_of(function, "name"), _arguments(function, state)))
        result = _result_of(id, state)
        if result is not None:
            results.append(result)
    turns = [Turn("assistant", tuple(blocks), issuer=issuer_of(NAME, model))] if blocks else []
    return [*turns, Turn("user", tuple(results))] if results else turns


def _arguments(function: dict[str, Any], state: dict[str, Any]) -> Any:
    """The arguments as an object, where they are one."""
    if isinstance(state.get("parsedArgs"), dict):
        return state["parsedArgs"]
    raw = text_of(function, "arguments")
    try:
        return jsontext.parse(raw or "{}").value
    except InputError:
        return raw


def _result_of(id: str, state: dict[str, Any]) -> ToolResult | None:
    status, output = text_of(state, "status"), state.get("output")
    text = "\n\n".join(text_of(each, "content") for each in list_of(state, "output"))
    if isinstance(output, list) and (output or status == "done"):
        return ToolResult(id, text, is_error=status in ("errored", "canceled"))
    if status in ("errored", "canceled"):
        return ToolResult(id, _CANCELLED if status == "canceled" else "[The call failed.]", is_error=True)
    return None


def _context(item: Any) -> str:
    """What the user attached to a prompt."""
    name, content = text_of(item, "name") or text_of(item, "description"), text_of(item, "content")
    return f"{name}\n{content}" if name and content else content


def _blocks_of(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    blocks: list[Block] = []
    for part in content if isinstance(content, list) else ():
        if text_of(part, "type") == "text" and text_of(part, "text"):
            blocks.append(Text(text_of(part, "text")))
        elif text_of(part, "type") == "imageUrl":
            blocks.append(image_of(text_of(object_of(part, "imageUrl"), "url")))
    return blocks


FORMAT: Final = AgentFormat(
    name=NAME,
    title="Continue",
    aliases=("continue",),
    find=find,
    provider="openai",
    recognises=recognises,
    describe=describe_with(read),
    read=read,
    examine=examine_with(read),
    lines=no_lines,
)

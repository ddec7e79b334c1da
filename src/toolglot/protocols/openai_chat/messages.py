"""Messages of the Chat Completions protocol, both ways. Requests and replies share them.

One message is one turn. Its blocks are in this order: thinking, content, what stands in fields of its own,
calls. A turn made elsewhere may need several messages, since every tool result is one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from toolglot.conversation import Block, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields, each, leftover, one_of, optional, required, with_extra
from toolglot.protocols.fields.refusals import REFUSAL
from toolglot.protocols.openai_chat.blocks import (
    FUNCTION_CALL,
    read_assistant_content,
    read_call,
    read_content,
    read_result,
    write_call,
    write_chunk,
    write_content,
    write_function_call,
    write_part,
    write_result,
)
from toolglot.protocols.openai_chat.form import (
    MESSAGES,
    PROTOCOL,
    REFUSAL_FIELD,
    ChatMessage,
    ChatOpaque,
    ChatText,
    ChatThinking,
    ContentForm,
)

_MESSAGE = frozenset({"role", "content"})
_REASONING: Final = ("reasoning_content", "reasoning")
_REASONING_FIELDS: Final = frozenset(_REASONING)
THINKING_FIELDS: Final = {field: ChatThinking(field) for field in _REASONING}
_ASSISTANT = _MESSAGE | {"tool_calls", "refusal", "function_call"}


class HostStyle(NamedTuple):
    """How hosts of this protocol differ in what they want written."""

    thinking: str = "reasoning_content"
    """Where thinking from elsewhere goes: a field, or, as `thinking_chunks` or `think_tags`, the content."""
    developer: Role = "developer"
    """The role of a developer's turn."""
    media: bool = True
    """Whether an assistant's content may hold media."""
    nothing: Literal["null", "empty", "omit"] = "null"
    """What stands for the content of a message that only calls."""
    refusals: bool = False
    """Whether a refusal from elsewhere has a field of its own."""
    documents: Literal["file", "document_url"] = "file"
    """The part that holds a document from elsewhere."""


PLAIN: Final = HostStyle()
_CARRIERS: Final = frozenset({"reasoning_content", "reasoning", "thinking_chunks", "think_tags"})


def style_of(profile: Profile | None) -> HostStyle:
    """What a target's profile says about the form of its messages."""
    if profile is None:
        return PLAIN
    turns = profile.turns
    return _style(profile.reasoning.carrier, turns.developer_role, profile.calls.empty_content, turns.document_part)


@lru_cache(maxsize=64)
def _style(
    carrier: str,
    has_developer: bool,
    nothing: Literal["null", "empty", "omit"],
    documents: Literal["file", "document_url"] | None,
) -> HostStyle:
    thinking = "reasoning" if carrier == "reasoning_details" else carrier if carrier in _CARRIERS else PLAIN.thinking
    developer: Role = "developer" if has_developer else "system"
    return HostStyle(thinking, developer, nothing=nothing, documents=documents or PLAIN.documents)


def read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", _ROLES)(fields)


def read_assistant(fields: Fields) -> Turn:
    blocks: list[Block] = []
    thoughts: list[str] = []
    if not _REASONING_FIELDS.isdisjoint(fields):
        thoughts = [key for key in _REASONING if type(fields.get(key)) is str]
        blocks += [Thinking(fields[key], form=THINKING_FIELDS[key]) for key in thoughts]
    if type(fields.get("content")) is str:
        blocks.append(Text(fields["content"]))
        form: ContentForm = "text"
    else:
        parts, form = read_assistant_content(fields)
        blocks += parts
    if fields.get("refusal") is not None:
        blocks.append(Text(required(fields, "refusal", str), form=REFUSAL_FIELD, is_refusal=True))
    if fields.get("function_call") is not None:
        called = required(fields, "function_call", dict)
        value = {"type": "function_call", "function_call": called}
        blocks.append(Opaque(PROTOCOL, value, "function_call", form=ChatOpaque("function_call")))
    calls = fields.get("tool_calls")
    if calls is not None and type(calls) is not list:
        calls = optional(fields, "tool_calls", list)
    if calls:
        blocks += each(calls, read_call, ".tool_calls")
    extra = leftover(fields, _ASSISTANT.union(thoughts) if thoughts else _ASSISTANT, PROTOCOL)
    message = MESSAGES[form] if calls != [] else ChatMessage(form, has_empty_calls=True)
    return Turn("assistant", tuple(blocks), extra=extra, form=message)


def _plain(role: Role) -> Callable[[Fields], Turn]:
    def read(fields: Fields) -> Turn:
        parts, form = read_content(fields)
        return Turn(role, parts, extra=leftover(fields, _MESSAGE, PROTOCOL), form=MESSAGES[form])

    return read


def _tool(fields: Fields) -> Turn:
    return Turn("tool", (read_result(fields),))


def _function(fields: Fields) -> Turn:
    """The result of a call as it was before there were tools: it has no id, and stays as it is."""
    return Turn("tool", (Opaque(PROTOCOL, fields, "function", form=ChatOpaque("message")),))


_ROLES: Final[dict[str, Callable[[Fields], Turn]]] = {
    "system": _plain("system"),
    "developer": _plain("developer"),
    "user": _plain("user"),
    "assistant": read_assistant,
    "tool": _tool,
    "function": _function,
}


# --- writing ----------------------------------------------------------------------------------------


def write_turn(turn: Turn, messages: list[Fields], style: HostStyle = PLAIN) -> None:
    """Add a turn's messages: its results one each, and one for the rest if there is any."""
    if turn.role == "assistant":
        message: Fields = {"role": "assistant"}
        messages.append(message)
        _write_assistant(turn, message, messages, style)
        if style.nothing != "null" and message.get("content", "") is None and "tool_calls" in message:
            _write_nothing(message, style)
        return
    text = _plain_text(turn)
    if text is not None:
        messages.append({"role": turn.role, "content": text})
        return
    before = len(messages)
    parts: list[str | Fields] = []
    for block in turn.blocks:
        if type(block) is ToolResult:
            messages.append(write_result(block))
        elif type(block) is Opaque and position_of(block) == "message":
            messages.append(block.value)
        elif (part := write_part(block, style.documents)) is not None:
            parts.append(part)
    if parts or not (len(messages) > before or turn.role == "tool"):
        form = turn.form.content if type(turn.form) is ChatMessage else None
        fields: Fields = {"role": _written_role(turn.role, style)}
        if parts or form != "none":
            fields["content"] = write_content(parts, form)
        messages.append(with_extra(fields, turn.extra, PROTOCOL))


def _plain_text(turn: Turn) -> str | None:
    """What a user or a system prompt says, where it is one text and nothing else; None for any other turn."""
    if len(turn.blocks) != 1 or (turn.role != "user" and turn.role != "system"):
        return None
    (block,) = turn.blocks
    if type(block) is not Text or type(block.form) is ChatText or (block.extra is not None and PROTOCOL in block.extra):
        return None
    if type(turn.form) is ChatMessage and turn.form.content == "parts":
        return None
    return block.text if turn.extra is None or PROTOCOL not in turn.extra else None


def _write_nothing(fields: Fields, style: HostStyle) -> None:
    if style.nothing == "empty":
        fields["content"] = ""
    else:
        del fields["content"]


def _written_role(role: Role, style: HostStyle) -> Role:
    return "user" if role == "tool" else style.developer if role == "developer" else role


def position_of(block: Block) -> str | None:
    """Where in its message something is that is not part of the content; None for anything else."""
    form = block.form
    if type(form) is ChatText:
        return REFUSAL if form.position == "field" else None
    return form.position if type(form) is ChatOpaque else None


def write_assistant(turn: Turn, style: HostStyle = PLAIN) -> Fields:
    """The message of a model's turn, without results, which would be messages of their own."""
    message: Fields = {"role": "assistant"}
    _write_assistant(turn, message, [], style)
    return message


def _write_assistant(turn: Turn, fields: Fields, apart: list[Fields], style: HostStyle) -> None:
    """Fill the message of a model's turn. What is a message of its own is put into `apart`."""
    calls: list[Fields] = []
    parts: list[str | Fields] = []
    for block in turn.blocks:
        if type(block) is ToolCall:
            old = write_function_call(block) if not block.id else None
            if old is None:
                calls.append(write_call(block))
            else:
                fields[FUNCTION_CALL] = old
        elif type(block) is Text and block.extra is None and block.form is None and not block.is_refusal:
            parts.append(block.text)
        elif type(block) is Thinking:
            _write_thinking(block, fields, parts, style)
        elif type(block) is ToolResult:
            apart.append(write_result(block))
        elif not (type(block) is Media and not style.media) and not _write_placed(block, fields, calls, apart, style):
            part = write_part(block)
            if part is not None:
                parts.append(part)
    if len(fields) > 1:
        _join_texts(fields)
    form = turn.form if type(turn.form) is ChatMessage else None
    if form is not None or (turn.extra is not None and PROTOCOL in turn.extra):
        _write_as_it_was(fields, parts, calls, turn, form or _NO_FORM)
        return
    is_silent = not parts and (bool(calls) or (style.refusals and REFUSAL in fields))
    fields["content"] = None if is_silent else write_content(parts, None, joined=True)
    if calls:
        fields["tool_calls"] = calls


def _join_texts(fields: Fields) -> None:
    """Texts of one field, which were gathered since there may be many, as one."""
    for key, value in fields.items():
        if type(value) is list:
            fields[key] = "".join(value)


def _write_thinking(block: Thinking, fields: Fields, parts: list[str | Fields], style: HostStyle) -> None:
    """Thinking where it was; that from elsewhere where the host wants it, if it has words."""
    form = block.form if type(block.form) is ChatThinking else None
    field = form.field if form is not None else None
    if field is None:
        if form is not None and form.chunk is not None:
            parts.append(write_chunk(block))
            return
        if not block.text:
            return
        field = style.thinking
    if field == "thinking_chunks":
        parts.append(write_chunk(Thinking(block.text)))
    elif field == "think_tags":
        parts.append(f"<think>{block.text}</think>")
    else:
        fields.setdefault(field, []).append(block.text)


def _write_placed(block: Block, fields: Fields, calls: list[Fields], apart: list[Fields], style: HostStyle) -> bool:
    """Write what is not part of the content, or is not for this client; whether it was written."""
    position = position_of(block)
    if position is None and style.refusals and isinstance(block, Text) and block.is_refusal:
        position = REFUSAL
    if position is None:
        return False
    if isinstance(block, Text):
        fields.setdefault(position, []).append(block.text)
    elif isinstance(block, Opaque):
        if position == "tool_calls":
            calls.append(block.value)
        elif position == "function_call":
            fields[position] = block.value.get(position) if isinstance(block.value, dict) else None
        else:
            apart.append(block.value)
    return True


_NO_FORM: Final = ChatMessage()


def _write_as_it_was(
    fields: Fields, parts: list[str | Fields], calls: list[Fields], turn: Turn, form: ChatMessage
) -> None:
    """Content and calls in the form that they had; a message that has calls alone has null for content."""
    if parts or form.content != "none":
        has_nothing = not parts and bool(calls or FUNCTION_CALL in fields) and form.content != "parts"
        fields["content"] = None if has_nothing else write_content(parts, form.content, joined=True)
    if calls or form.has_empty_calls:
        fields["tool_calls"] = calls
    with_extra(fields, turn.extra, PROTOCOL)

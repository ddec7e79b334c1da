"""Token counts: an estimate of our own for a conversation, and the count replies of the protocols.

If the upstream counts tokens itself, its number is used; `estimate` is for all others. A reply with an estimate is
marked in a header, because the body must stay in the client's format.

Counted are texts, the thinking that a provider still reads, calls, results, tools with their schemas, unless they are
deferred and not loaded, media, and what
the templates of models put around each of these; not ids, signatures and fields of one protocol.
The bounds that tests/gateway/endpoints/test_token_counting.py holds it to are in docs/decisions/0005-token-counting.md.

Law: the work is linear and bounded, and no conversation makes it raise. `estimate` is for a thread or a command
line; in an event loop use `estimate_async`, which never counts in the loop itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.conversation import (
    Block,
    Compaction,
    Conversation,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation.visible_tools import visible_tools
from toolglot.errors import InputError
from toolglot.gateway.endpoints.image_tokens import media_tokens
from toolglot.gateway.endpoints.text_tokens import count_texts
from toolglot.protocols.base import get

PER_REQUEST: Final = 3
"""The first token, and what begins the reply."""
PER_TURN: Final = 4
"""The marks for the beginning, the role and the end of a turn."""
PER_CALL: Final = 8
"""The marks around a call, and its id if the template writes one."""
PER_RESULT: Final = 8
PER_TOOL: Final = 2
TOOLS_HEAD: Final = 20
"""What introduces the tools: from two tokens (Mistral) to about a hundred (Qwen)."""
ENCRYPTED_CHARACTERS_PER_TOKEN: Final = 6
"""Encrypted thinking: four characters of base64 are three bytes, a token is about four bytes."""

UNKNOWN_VALUE_NODES: Final = 200_000
"""How many nodes of a value that is not JSON are read."""

ESTIMATE_HEADER: Final = "x-toolglot-estimate"


def estimate(conversation: Conversation, *, model: str = "", earlier_thinking: bool = False) -> int:
    """About how many tokens a model reads when it is sent this conversation.

    `model` is the upstream's (default: the conversation's own): its vocabulary is used, if it is public.
    Thinking counts from the last message of the user on, because providers drop older thinking;
    `earlier_thinking=True` counts all of it.
    """
    model = model or conversation.model
    parts = _CountedParts(model)
    since = 0 if earlier_thinking else _last_user_turn(conversation.turns)
    for number, turn in enumerate(conversation.turns):
        parts.fixed += PER_TURN
        for block in turn.blocks:
            if number >= since or not isinstance(block, Thinking):
                parts.add(block)
    for tool in visible_tools(conversation):
        parts.add_tool(tool)
    output = conversation.options.output
    if output is not None and output.schema:
        parts.texts.append(_json_text(output.schema))
    heads = PER_REQUEST + (TOOLS_HEAD if conversation.tools else 0)
    return heads + parts.fixed + count_texts(parts.texts, model)


async def estimate_async(conversation: Conversation, *, model: str = "", earlier_thinking: bool = False) -> int:
    """`estimate` in a thread, however small: a hop costs less than finding out the size."""
    return await asyncio.to_thread(estimate, conversation, model=model, earlier_thinking=earlier_thinking)


def _last_user_turn(turns: tuple[Turn, ...]) -> int:
    """The index of the last turn of the user that has more than tool results."""
    for number in range(len(turns) - 1, -1, -1):
        turn = turns[number]
        if turn.role == "user" and not all(isinstance(block, ToolResult) for block in turn.blocks):
            return number
    return 0


class _CountedParts:
    """The parts of a conversation: texts to count, and tokens that are known already."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.texts: list[str] = []
        self.fixed = 0

    def add(self, block: Block) -> None:
        match block:
            case Text():
                self.texts.append(block.text)
            case Thinking():
                self._add_thinking(block)
            case ToolCall():
                self.fixed += PER_CALL
                written = block.raw_input if block.raw_input is not None else _json_text(block.arguments or {})
                self.texts.append(f'{{"name": "{_full_name(block)}", "arguments": {written}}}')
            case ToolResult():
                self._add_result(block)
            case Media():
                self.fixed += media_tokens(block, self.model)
            case ToolReference():
                self.texts.append(block.name)
            case ToolChange():
                for tool in (*block.added, *block.removed):
                    self.add(tool)
            case Compaction():
                self._add_value([block.summary or block.data or ""])
            case _:
                self._add_value(block.value)

    def add_tool(self, tool: ToolSpec) -> None:
        """As JSON, the way in which most templates write it."""
        self.fixed += PER_TOOL
        described = {"name": _full_name(tool), "description": tool.description or ""}
        parameters = tool.parameters if tool.parameters is not None else tool.format
        self.texts.append(_json_text({"type": "function", "function": {**described, "parameters": parameters or {}}}))

    def _add_thinking(self, block: Thinking) -> None:
        if block.text:
            self.texts.append(block.text)
        else:
            encrypted = max(len(block.redacted or ""), len(block.signature or ""))
            self.fixed += encrypted // ENCRYPTED_CHARACTERS_PER_TOKEN

    def _add_result(self, block: ToolResult) -> None:
        self.fixed += PER_RESULT
        if isinstance(block.content, str):
            self.texts.append(block.content)
        elif block.content is not None:
            for part in block.content:
                self.add(part)
        elif block.error is not None:
            self.texts.append(block.error)
        elif block.result is not None:
            self.texts.append(_json_text(block.result))

    def _add_value(self, value: Any) -> None:
        """A value of one provider: its strings, and encrypted ones by their length."""
        for text in _strings(value):
            if len(text) >= _MIN_ENCRYPTED and _ENCRYPTED.fullmatch(text):
                self.fixed += len(text) // ENCRYPTED_CHARACTERS_PER_TOKEN
            else:
                self.texts.append(text)


_ENCRYPTED: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_MIN_ENCRYPTED: Final = 400


def _full_name(named: ToolCall | ToolSpec) -> str:
    return f"{named.namespace}.{named.name}" if named.namespace else named.name


def _json_text(value: Any) -> str:
    """The value as JSON with spaces, as templates write it; if it is not JSON, the strings in it."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    except (ValueError, TypeError, RecursionError, OverflowError, msgspec.MsgspecError):
        return " ".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    """The keys, texts and numbers in a value, without recursion, up to `UNKNOWN_VALUE_NODES`."""
    stack = [value]
    for _ in range(UNKNOWN_VALUE_NODES):
        if not stack:
            return
        item = stack.pop()
        if isinstance(item, dict):
            for key, inner in item.items():
                stack += (inner, key)
        elif isinstance(item, list | tuple):
            stack += reversed(item)
        elif isinstance(item, str):
            yield item
        elif isinstance(item, float) or (isinstance(item, int) and item.bit_length() <= 128):
            yield str(item)


# --- replies ------------------------------------------------------------------------------------------


class CountReply(Struct, frozen=True):
    """A count in the form of a client's protocol."""

    body: bytes
    headers: dict[str, str]
    """Besides the content type: the mark of an estimate."""


def encode_count(protocol: str, count: int, estimated: bool) -> CountReply:
    """The reply of a client's count endpoint."""
    form = get(protocol).counts
    if not form.reply_field:
        raise InputError("this protocol has no reply that counts tokens", path="protocol")
    return CountReply(
        body=msgspec.json.encode({**form.reply_extra, form.reply_field: count}),
        headers={ESTIMATE_HEADER: "true"} if estimated else {},
    )


def decode_count(protocol: str, body: bytes) -> int | None:
    """An upstream's own count; None: the body has none."""
    try:
        reply = msgspec.json.decode(body)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    form = get(protocol).counts
    own = ((form.reply_field,),) if form.reply_field else ()
    found = (_at(reply, path) for path in (*own, *form.reply_paths))
    return next((count for count in found if type(count) is int and count >= 0), None)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value

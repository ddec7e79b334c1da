"""Token counts: an estimate of our own for a conversation, and the count replies of the protocols.

Where the upstream counts itself, its number is the answer; `estimate` is for all others, and every reply made
from one is marked as such in a header, because the body has to stay in the client's shape.

What is counted: texts, the thinking that a provider still reads, calls, results, tools with their schemas, media,
and what the templates of models put around each of these. What is not: ids, signatures, fields of one protocol.
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
    Conversation,
    Media,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.errors import InputError
from toolglot.gateway.endpoints.image_tokens import media_tokens
from toolglot.gateway.endpoints.text_tokens import count_texts
from toolglot.protocols.base import get

PER_REQUEST: Final = 3
"""The first token, and what begins the reply."""
PER_TURN: Final = 4
"""What says that a turn begins, whose it is, and that it ends."""
PER_CALL: Final = 8
"""The marks around a call, and its id where the template writes one."""
PER_RESULT: Final = 8
PER_TOOL: Final = 2
TOOLS_HEAD: Final = 20
"""What introduces the tools: from two tokens (Mistral) to about a hundred (Qwen)."""
SEALED_CHARACTERS_A_TOKEN: Final = 6
"""Encrypted thinking: four characters of base64 are three bytes, a token is about four bytes."""

UNKNOWN_VALUE_NODES: Final = 200_000
"""How far a value that has no JSON is looked into."""

ESTIMATE_HEADER: Final = "x-toolglot-estimate"


def estimate(conversation: Conversation, *, model: str = "", earlier_thinking: bool = False) -> int:
    """About how many tokens a model reads when it is sent this conversation.

    `model` is the upstream's (otherwise the conversation's own): its vocabulary counts, where it is public.
    Thinking counts from the last words of the user on: what is older, providers drop; `earlier_thinking=True`
    counts it all, for one that keeps it.
    """
    model = model or conversation.model
    heap = _Heap(model)
    since = 0 if earlier_thinking else _last_words(conversation.turns)
    for number, turn in enumerate(conversation.turns):
        heap.fixed += PER_TURN
        for block in turn.blocks:
            if number >= since or not isinstance(block, Thinking):
                heap.add(block)
    for tool in conversation.tools:
        heap.add_tool(tool)
    output = conversation.options.output
    if output is not None and output.schema:
        heap.texts.append(_written(output.schema))
    heads = PER_REQUEST + (TOOLS_HEAD if conversation.tools else 0)
    return heads + heap.fixed + count_texts(heap.texts, model)


async def estimate_async(conversation: Conversation, *, model: str = "", earlier_thinking: bool = False) -> int:
    """`estimate` in a thread, however small: a hop costs less than finding out the size."""
    return await asyncio.to_thread(estimate, conversation, model=model, earlier_thinking=earlier_thinking)


def _last_words(turns: tuple[Turn, ...]) -> int:
    """The place of the last turn in which the user says something, more than the results of tools."""
    for number in range(len(turns) - 1, -1, -1):
        turn = turns[number]
        if turn.role == "user" and not all(isinstance(block, ToolResult) for block in turn.blocks):
            return number
    return 0


class _Heap:
    """What is gathered from a conversation: texts to be counted, and tokens that are known already."""

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
                written = block.raw_input if block.raw_input is not None else _written(block.arguments or {})
                self.texts.append(f'{{"name": "{_full_name(block)}", "arguments": {written}}}')
            case ToolResult():
                self._add_result(block)
            case Media():
                self.fixed += media_tokens(block, self.model)
            case _:
                self._add_value(block.value)

    def add_tool(self, tool: ToolSpec) -> None:
        """As JSON, the way in which most templates write it."""
        self.fixed += PER_TOOL
        described = {"name": _full_name(tool), "description": tool.description or ""}
        parameters = tool.parameters if tool.parameters is not None else tool.format
        self.texts.append(_written({"type": "function", "function": {**described, "parameters": parameters or {}}}))

    def _add_thinking(self, block: Thinking) -> None:
        if block.text:
            self.texts.append(block.text)
        else:
            sealed = max(len(block.redacted or ""), len(block.signature or ""))
            self.fixed += sealed // SEALED_CHARACTERS_A_TOKEN

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
            self.texts.append(_written(block.result))

    def _add_value(self, value: Any) -> None:
        """Something of one provider's own: its words, and what is sealed in it by its length."""
        for text in _strings(value):
            if len(text) >= _SEALED_FROM and _SEALED.fullmatch(text):
                self.fixed += len(text) // SEALED_CHARACTERS_A_TOKEN
            else:
                self.texts.append(text)


_SEALED: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_SEALED_FROM: Final = 400


def _full_name(named: ToolCall | ToolSpec) -> str:
    return f"{named.namespace}.{named.name}" if named.namespace else named.name


def _written(value: Any) -> str:
    """The value as JSON with blanks, as templates write it; what JSON cannot say, as the strings in it."""
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
    """A count as a client's protocol says it."""

    body: bytes
    headers: dict[str, str]
    """What belongs to it besides the content type: the mark of an estimate."""


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
    """An upstream's own count; None where the body does not say one, and an estimate has to do."""
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

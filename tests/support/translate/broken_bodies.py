"""Request bodies as clients send them after something went wrong, in the words of every protocol.

A body in order is made first, by a conversation in Anthropic's words that is converted; what goes wrong then goes wrong
in the client's own JSON: messages and blocks are lost, doubled, moved and cut off, ids are lost and used again, and
messages come in between that another protocol wrote. Every question, text and result has a word of its own.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from hypothesis import strategies as st

from toolglot import convert

Fields = dict[str, Any]

SOURCES: Final = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai", "gpt-4.1"),
    ("openai_responses", "gpt-5.2"),
    ("gemini", "gemini-2.5-pro"),
    ("gemini", "gemini-3-pro"),
    ("bedrock", "anthropic.claude-sonnet-4-5"),
    ("mistral", "mistral-large-latest"),
    ("kimi", "kimi-k2-0905-preview"),
    ("cohere", "command-a-03-2025"),
    ("ollama", "qwen3"),
    ("deepseek", "deepseek-reasoner"),
]
TOOLS: Final = ("read", "write", "list_files")
IMAGE: Final = "iVBORw0KGgo="


def _chat_call(id: str) -> Fields:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}


def _block(id: str) -> Fields:
    return {"type": "tool_use", "id": id, "name": "read", "input": {"path": "f"}}


def _block_result(word: str) -> Fields:
    return {"type": "tool_result", "tool_use_id": "toolu_f", "content": f"out <r_{word}>"}


STRANGERS: Final[list[Fields]] = [
    {"role": "assistant", "content": [_block("toolu_f")]},
    {"role": "user", "content": [_block_result("anthropic")]},
    {"role": "tool", "content": [_block_result("of_a_tool")]},
    {
        "role": "user",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}],
    },
    {"role": "assistant", "content": None, "tool_calls": [_chat_call("call_f")]},
    {"role": "assistant", "content": "x <t_empty_calls>", "tool_calls": []},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_l", "name": "read", "args": {"path": "l"}, "type": "tool_call"}],
    },
    {"role": "tool", "tool_call_id": "call_f", "content": "out <r_chat>"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}]},
    {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
    {"role": "function", "name": "read", "content": "out <r_function>"},
    {"type": "function_call", "call_id": "call_f", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_f", "output": "out <r_responses>"},
    {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"result": "out <r_gemini>"}}}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "tooluse_f", "name": "read", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "tooluse_f", "content": [{"text": "out <r_bedrock>"}]}}]},
    {"role": "assistant", "content": [_block("call_h")], "tool_calls": [_chat_call("call_h")]},
    {"role": "human", "content": "hello <q_human>"},
    {"role": "ai", "content": "hello <t_ai>"},
    {"role": "system", "content": "note <s_system>"},
    {"role": "developer", "content": "note <s_developer>"},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": []},
    {"role": "user"},
]
"""Messages as every protocol writes them, and some that none does."""

JUNK: Final[list[Any]] = [
    *(None, "", " ", 7, [], {}, "x", True, [None], ["x"], {"a": 1}, -1, 1.5, "call_0", "user", "tool", [{}]),
    *([{"type": "text", "text": "hi"}], [{"type": "text", "text": ""}], '{"path": ', '{"a":1}', '"{}"', "null"),
]
_IDS: Final = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId")
_SIGNATURES: Final = ("thoughtSignature", "signature", "encrypted_content")
_LISTS: Final = ("messages", "contents", "input")
_WORD: Final = re.compile(r"<[a-z]+_[a-z_0-9]+>")


def words_of(body: str) -> set[str]:
    """The words that say where they are from."""
    return set(_WORD.findall(body))


# --- in order ---------------------------------------------------------------------------------------


def good_body(chance: random.Random, source: tuple[str, str]) -> Fields:
    """A body of a source that nothing is wrong with."""
    messages: list[Fields] = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        messages.append({"role": "user", "content": f"question <q_{len(messages)}>"})
        for _ in range(chance.randint(0, 2)):
            messages += _exchange(chance, len(messages))
        if chance.random() < 0.8:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": f"answer <t_{len(messages)}>"}]})
    if messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": f"and now <q_{len(messages)}>"})
    body: Fields = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "messages": messages}
    if chance.random() < 0.6:
        body["system"] = "You help."
    if chance.random() < 0.6:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        body["tools"] = [{"name": name, "description": "d", "input_schema": schema} for name in TOOLS]
        if chance.random() < 0.3:
            body["tool_choice"] = {"type": chance.choice(["auto", "any", "none"])}
    made: Fields = json.loads(convert(body, source="anthropic", target=source[0], model=source[1]).data)
    return made


def _exchange(chance: random.Random, number: int) -> list[Fields]:
    content: list[Fields] = []
    if chance.random() < 0.3:
        content.append({"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    if chance.random() < 0.5:
        content.append({"type": "text", "text": f"let me <t_{number}>"})
    ids = [f"toolu_{number:02}{index}" for index in range(chance.choice([1, 1, 2, 6]))]
    calls = [{"type": "tool_use", "id": id, "name": chance.choice(TOOLS), "input": {"path": f"/a/{id}"}} for id in ids]
    results = [_result(chance, id) for id in ids]
    return [{"role": "assistant", "content": content + calls}, {"role": "user", "content": results}]


def _result(chance: random.Random, id: str) -> Fields:
    text = f"out <r_{id}>"
    content: Any = chance.choice([text, [{"type": "text", "text": text}]])
    failed = {"is_error": True} if chance.random() < 0.2 else {}
    return {"type": "tool_result", "tool_use_id": id, "content": content, **failed}


# --- gone wrong -------------------------------------------------------------------------------------

Messages = list[Any]


def _messages(body: Fields) -> Messages:
    return next((body[key] for key in _LISTS if isinstance(body.get(key), list)), [])


def _objects(value: Any) -> Iterator[Fields]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _blocks(messages: Messages) -> list[list[Any]]:
    """The lists of blocks that messages have for their content."""
    fields = [message for message in messages if isinstance(message, dict)]
    found = [message.get(key) for message in fields for key in ("content", "parts", "tool_calls")]
    return [blocks for blocks in found if isinstance(blocks, list) and blocks]


def _lose(chance: random.Random, messages: Messages) -> None:
    del messages[chance.randrange(len(messages))]


def _double(chance: random.Random, messages: Messages) -> None:
    messages.insert(chance.randrange(len(messages) + 1), copy.deepcopy(chance.choice(messages)))


def _move(chance: random.Random, messages: Messages) -> None:
    moved = messages.pop(chance.randrange(len(messages)))
    messages.insert(chance.randrange(len(messages) + 1), moved)


def _cut_off(chance: random.Random, messages: Messages) -> None:
    del messages[max(1, chance.randrange(len(messages))) :]


def _come_between(chance: random.Random, messages: Messages) -> None:
    messages.insert(chance.randrange(len(messages) + 1), copy.deepcopy(chance.choice(STRANGERS)))


def _lose_block(chance: random.Random, messages: Messages) -> None:
    for blocks in _chosen(chance, _blocks(messages)):
        del blocks[chance.randrange(len(blocks))]


def _double_block(chance: random.Random, messages: Messages) -> None:
    for blocks in _chosen(chance, _blocks(messages)):
        blocks.insert(chance.randrange(len(blocks) + 1), copy.deepcopy(chance.choice(blocks)))


def _mix_blocks(chance: random.Random, messages: Messages) -> None:
    for blocks in _chosen(chance, _blocks(messages)):
        chance.shuffle(blocks)


def _confuse_ids(chance: random.Random, messages: Messages) -> None:
    ids = [(fields, key) for fields in _objects(messages) for key in _IDS if key in fields]
    for fields, key in _chosen(chance, ids):
        other, its_key = chance.choice(ids)
        fields[key] = chance.choice(
            [other[its_key], other[its_key], "", "unknown", "call_" + "x" * 80, "functions.read:0"]
        )


def _chosen(chance: random.Random, found: list[Any]) -> list[Any]:
    return [chance.choice(found)] if found else []


def _lose_signature(chance: random.Random, messages: Messages) -> None:
    signed = [(fields, key) for fields in _objects(messages) for key in _SIGNATURES if key in fields]
    for fields, key in _chosen(chance, signed):
        del fields[key]


def _damage(chance: random.Random, messages: Messages) -> None:
    for fields in _chosen(chance, [found for found in _objects(messages) if found]):
        key = chance.choice(list(fields))
        if chance.random() < 0.3:
            del fields[key]
        else:
            fields[key] = copy.deepcopy(chance.choice(JUNK))


MARKERS: Final = {
    "bedrock": {"cachePoint": {"type": "default"}},
    **{
        name: {"cache_control": {"type": "ephemeral"}}
        for name in ("anthropic", "openai", "mistral", "kimi", "deepseek")
    },
}
"""What agents mark prompts with, for models that cache them."""


def _mark(chance: random.Random, marker: Fields, messages: Messages) -> None:
    """Mark a block; where a marker is a block of its own, it stands at the end, behind what it marks."""
    for blocks in _chosen(chance, _blocks(messages)):
        block = chance.choice(blocks)
        if "cachePoint" not in marker and isinstance(block, dict) and "type" in block:
            block.update(copy.deepcopy(marker))
        elif "cachePoint" in marker and all(isinstance(one, dict) and "text" in one for one in blocks):
            blocks.append(copy.deepcopy(marker))


MISHAPS: Final[list[Callable[[random.Random, Messages], None]]] = [
    *(_lose, _double, _move, _cut_off, _come_between, _come_between),
    *(_lose_block, _double_block, _mix_blocks, _confuse_ids, _lose_signature),
]


def after_a_mishap(chance: random.Random, body: Fields) -> Fields:
    """A copy of a body to which one thing happened."""
    broken = copy.deepcopy(body)
    messages = _messages(broken)
    if messages:
        chance.choice(MISHAPS)(chance, messages)
    return broken


def model_of(source: str, body: Fields, sources: list[tuple[str, str]] = SOURCES) -> str:
    """The model that a body was made for, which may stand in the address."""
    named = body.get("model") or body.get("modelId")
    return named if isinstance(named, str) else next(model for name, model in sources if name == source)


@st.composite
def broken_bodies(
    draw: st.DrawFn, *, damaged: bool = False, sources: list[tuple[str, str]] = SOURCES
) -> tuple[str, Fields]:
    """A source, and a body of its protocol to which something happened; or one that is damaged besides."""
    chance = draw(st.randoms(use_true_random=False))
    source = chance.choice(sources)
    body = good_body(chance, source)
    messages = _messages(body)
    mishaps = [*MISHAPS, *[_damage] * len(MISHAPS)] if damaged else MISHAPS
    for _ in range(chance.choice([1, 1, 1, 2, 3, 4])):
        if messages:
            chance.choice(mishaps)(chance, messages)
    if source[0] in MARKERS and chance.random() < 0.2:
        _mark(chance, MARKERS[source[0]], messages)
    return source[0], body

"""What the fuzzer starts from, and how it changes it: seeds for every decoder, and mutations that keep JSON legal.

A mutation takes a document apart at random paths (replace, delete, duplicate, rename, wrap, swap in a part of a
seed), with the words that the decoder itself looks for. Law: the same seed number gives the same mutation.
"""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

import toolglot
from toolglot import (
    Conversation,
    Issuer,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation import Reply, Usage

ROOT: Final = Path(__file__).resolve().parent.parent
RECORDINGS: Final = ROOT / "tests" / "recordings"
LARGEST_SEED: Final = 64 * 1024
OPERATIONS: Final = 4
"""The largest number of changes at once."""

SCALARS: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**63, -(2**63) - 1, 2**200, 0.5, -0.0, 1e308, 5e-324),
    *("", " ", "a", "é", "\x00", "\ud7ff", "😀", "a" * 300, "null", "{}", "[]", '{"a":1}', '{"a":', '"x"', "[1]", "1"),
    *("data:image/png;base64,iVBORw0KGgo=", "data:,", "data:;base64", "https://example.com/a.png", "call_1"),
)
"""Values at the edges of types, and texts that are read a second time somewhere."""

SCHEMA: Final = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PICTURE: Final = Media("image", "image/png", "iVBORw0KGgo=")


def _conversation() -> Conversation:
    """A conversation with every kind of canonical value."""
    return Conversation(
        (
            Turn("system", (Text("Be brief."),)),
            Turn("user", (Text("Read it."), PICTURE, Media("document", "application/pdf", url="https://a.b/c.pdf"))),
            Turn(
                "assistant",
                (
                    Thinking("Two files.", "sig"),
                    Text("I will."),
                    ToolCall("call_1", "read", {"path": "a"}),
                    ToolCall("call_2", "patch", None, "custom", raw_input="*** Begin"),
                    ToolCall("call_3", "read", None, raw_input='{"path": "b'),
                ),
            ),
            Turn(
                "tool",
                (
                    ToolResult("call_1", "line 1\nline 2", name="read"),
                    ToolResult("call_2", (Text("done"), PICTURE), name="patch"),
                    ToolResult("call_3", "no such file", is_error=True, name="read"),
                ),
            ),
            Turn("assistant", (Thinking(redacted="b64"), Text("Done."))),
            Turn("user", (Text("Thanks."),)),
        ),
        (
            ToolSpec("read", "Reads a file.", dict(SCHEMA), strict=True),
            ToolSpec("patch", "Applies a patch.", type="custom", format={"type": "text"}),
        ),
        Options(
            Sampling(100, 0.5, 0.9, 40, ("END",), 7, 0.1, 0.2),
            Reasoning("on", "high", 1024),
            ToolChoice("named", ("read",), False),
            OutputFormat("json_schema", "answer", dict(SCHEMA), True),
            True,
            "me",
        ),
        "some-model",
    )


def _replies() -> list[Reply]:
    usage = Usage(10, 20, 5, 3, 7)
    calls = (Thinking("Hm.", "sig"), Text("See."), ToolCall("call_1", "read", {"path": "a"}))
    return [
        Reply(Turn("assistant", calls), "tool_calls", usage, "msg_1", "some-model"),
        Reply(Turn("assistant", (Text("Done."),)), "stop", usage, "msg_2", "some-model"),
        Reply(Turn("assistant", (Thinking(redacted="b64"),)), "length", None, "msg_3", "some-model"),
    ]


def request_seeds(protocol: str, encode: Callable[[Conversation], dict[str, Any]]) -> list[bytes]:
    made = [encode(_conversation()), encode(Conversation((Turn("user", (Text("Hello"),)),)))]
    return [msgspec.json.encode(body) for body in (*made, *_native(protocol, "request"))] + recorded_bodies(
        protocol, "request"
    )


def reply_seeds(protocol: str, encode: Callable[[Reply], dict[str, Any]]) -> list[bytes]:
    made = [encode(reply) for reply in _replies()]
    return [msgspec.json.encode(body) for body in (*made, *_native(protocol, "reply"))] + recorded_bodies(
        protocol, "reply"
    )


def canonical_seeds() -> list[bytes]:
    blocks = (Opaque("anthropic", {"type": "new"}), ServerTool("openai_responses", "call", {"type": "web_search_call"}))
    strange = Conversation((Turn("assistant", blocks, "k", Issuer("openai", model="m")),))
    return [toolglot.dump(_conversation()), toolglot.dump(strange)]


ARGUMENT_SEEDS: Final = [
    b'{"text": "{\\"path\\": \\"a\\"}", "schema": {"type": "object", "properties": {"path": {"type": "string"}}}}',
    b'{"text": "{\\"list\\": \\"[1, 2]\\"}", "schema": {"properties": {"list": {"items": {"$ref": "#"}}}}}',
    b'{"text": "<path>a</path><n>1</n>", "schema": {"anyOf": [{"type": "object"}, {"$ref": "#/$defs/a"}]}}',
    b'{"text": "{\\"path\\": \\"a", "schema": true}',
    b'"{\\"a\\": 1}"',
]

OVERRIDE_SEEDS: Final = [
    b'[profiles.mistral.rules]\n"results.user_after" = true\n"ids.max_length" = 12\n',
    (
        b'[profiles.box]\nextends = "vllm"\ntitle = "Box"\n[profiles.box.models.tuned]\nmatch = "^tuned-"\n'
        b'[profiles.box.models.tuned.rules."ids.max_length"]\nvalue = 64\nsource = "me"\nconfidence = "guess"\n'
    ),
]

_NATIVE: Final[dict[tuple[str, str], list[dict[str, Any]]]] = {
    ("openai_responses", "request"): [
        {
            "model": "m",
            "input": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}]},
                {"type": "item_reference", "id": "msg_1"},
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
                {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
            ],
            "previous_response_id": "resp_1",
            "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "a", "server_url": "https://a.b"}],
        }
    ],
    ("gemini", "request"): [
        {
            "contents": [
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "AA=="}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": 1}}}]},
                {
                    "parts": [
                        {"executableCode": {"language": "PYTHON", "code": "1"}},
                        {"fileData": {"fileUri": "gs://a"}},
                    ]
                },
            ],
            "tools": [{"google_search": {}, "functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        }
    ],
    ("anthropic", "request"): [
        {
            "model": "m",
            "max_tokens": 1,
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    ],
                }
            ],
            "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
        }
    ],
    ("openai_chat", "request"): [
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
                },
                {
                    "role": "assistant",
                    "content": None,
                    "refusal": "no",
                    "function_call": {"name": "f", "arguments": "{}"},
                },
                {"role": "function", "name": "f", "content": "1"},
            ],
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        }
    ],
}


def _native(protocol: str, kind: str) -> list[dict[str, Any]]:
    """Bodies with what only this protocol has."""
    return _NATIVE.get((protocol, kind), [])


def recorded_bodies(protocol: str, kind: str) -> list[bytes]:
    """The recorded bodies of a protocol that are not too large to be changed at random."""
    paths = sorted((RECORDINGS / protocol).glob(f"*.{kind}.json"))
    return [path.read_bytes() for path in paths if path.stat().st_size <= LARGEST_SEED]


def words_of(*packages: Path) -> list[str]:
    """The short strings that the sources under `packages` contain: keys and values that a decoder looks for."""
    words: set[str] = set()
    for package in packages:
        for source in sorted(package.rglob("*.py")) if package.is_dir() else [package]:
            for node in ast.walk(ast.parse(source.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) <= 40:
                    words.add(node.value)
    return sorted(words)


# --- mutation ---------------------------------------------------------------------------------------

Slot = tuple[Any, Any]
"""A container and the key or index of one value in it."""


def slots(document: Any) -> Iterator[Slot]:
    """Every value of a document, by its container. Not recursive, because documents may be deep."""
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if type(holder) is dict else range(len(holder)) if type(holder) is list else ()
        for key in keys:
            yield holder, key
            waiting.append(holder[key])


class Mutator:
    """Changes documents of one decoder."""

    def __init__(self, seeds: list[bytes], words: list[str]) -> None:
        self._words = words or ["a"]
        self._parts = [holder[key] for seed in seeds for holder, key in slots(_json_or_none(seed))] or [None]

    def mutate(self, data: bytes, seed: int) -> bytes | None:
        """A changed document; None if `data` is not one."""
        draw = random.Random(seed)  # noqa: S311 - not for a secret
        document = _json_or_none(data)
        if type(document) not in (dict, list):
            return None
        holder = [document]
        for _ in range(draw.randint(1, OPERATIONS)):
            self._change(draw, *_choose_slot(draw, holder))
            if not holder:
                return b"{}"
        return json.dumps(holder[0], ensure_ascii=draw.random() < 0.5).encode(errors="replace")

    def mutate_lines(self, data: bytes, seed: int) -> bytes:
        """The same for text of lines: TOML."""
        draw = random.Random(seed)  # noqa: S311 - as above
        lines = data.decode(errors="replace").split("\n")
        for _ in range(draw.randint(1, OPERATIONS)):
            index = draw.randrange(len(lines))
            key, equals, _ = lines[index].partition("=")
            lines[index : index + 1] = draw.choice(
                [
                    [],
                    [lines[index]] * 2,
                    [lines[index], draw.choice(lines)],
                    [f"{key}= {json.dumps(self._value(draw))}"] if equals else [f"[{draw.choice(self._words)}]"],
                    [lines[index], f'"{draw.choice(self._words)}" = {json.dumps(self._value(draw))}'],
                    [lines[index].replace(".", "]"), ""],
                ]
            ) or [""]
        return "\n".join(lines).encode(errors="replace")

    def _value(self, draw: random.Random) -> Any:
        kind = draw.randrange(8)
        if kind < 3:
            return draw.choice(SCALARS)
        if kind < 5:
            return draw.choice(self._words)
        if kind < 7:
            return copy.deepcopy(draw.choice(self._parts))
        return draw.choice([[], {}, [{}], [[]], {"type": draw.choice(self._words)}, [draw.choice(SCALARS)]])

    def _change(self, draw: random.Random, holder: Any, key: Any) -> None:
        value = holder[key]
        operation = draw.choice((self._replace, self._replace, self._replace, self._remove, self._repeat, self._wrap))
        if type(value) is dict and draw.random() < 0.4:
            value[draw.choice(self._words)] = self._value(draw)
        else:
            operation(draw, holder, key)

    def _replace(self, draw: random.Random, holder: Any, key: Any) -> None:
        holder[key] = self._value(draw)

    def _remove(self, draw: random.Random, holder: Any, key: Any) -> None:
        value = holder.pop(key)
        if type(holder) is dict and draw.random() < 0.5:
            holder[draw.choice(self._words)] = value  # renamed

    def _repeat(self, draw: random.Random, holder: Any, key: Any) -> None:
        value = copy.deepcopy(holder[key])
        if type(holder) is list:
            holder.insert(draw.randint(0, len(holder)), value)
        else:
            holder[draw.choice(self._words)] = value

    def _wrap(self, draw: random.Random, holder: Any, key: Any) -> None:
        value = holder[key]
        unwrapped = list(value.values()) if type(value) is dict else value if type(value) is list else []
        holder[key] = draw.choice([[value], {draw.choice(self._words): value}, json.dumps(value), *unwrapped[:1]])


def _choose_slot(draw: random.Random, document: list[Any]) -> Slot:
    """A slot: by a walk from the root, which finds the few fields at the top, or any, which finds the many below."""
    if draw.random() < 0.3:
        return draw.choice(list(slots(document)))
    holder: Any = document
    while True:
        key = draw.choice(list(holder)) if type(holder) is dict else draw.randrange(len(holder))
        if type(holder[key]) not in (dict, list) or not holder[key] or draw.random() < 0.15:
            return holder, key
        holder = holder[key]


def _json_or_none(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None

"""Short scripts of a conversation, written out as raw wire JSON in the protocol of each client.

    body = written("anthropic", U("go"), A(call("c1"), call("c2")), R("c1", "printed 1"), U("and?"))

Nothing of toolglot is used: these are what clients send, mistakes included, so a script may leave out a result, repeat
one, or put it anywhere. A result after a result joins it where clients of the protocol join them (blocks).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS: Final = ("read", "write", "search")
SCHEMA: Final[Fields] = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Call(NamedTuple):
    id: Any
    name: str = "read"
    arguments: Any = None


class Step(NamedTuple):
    """One step of a role: `user`, `assistant`, `system`, or a `result`."""

    who: str
    text: str | None = None
    calls: tuple[Call, ...] = ()
    id: Any = ""
    name: str = ""
    failed: bool = False


def call(id: Any, name: str = "read", arguments: Any = None) -> Call:
    return Call(id, name, {"n": 1} if arguments is None else arguments)


def U(text: str = "go on") -> Step:
    return Step("user", text)


def S(text: str = "be brief") -> Step:
    return Step("system", text)


def A(*calls: Call, text: str | None = None) -> Step:
    return Step("assistant", text, calls)


def R(id: Any, text: str | None = "printed", *, name: str = "read", failed: bool = False) -> Step:
    return Step("result", text, id=id, name=name, failed=failed)


def exchange(count: int, first: int = 0, prefix: str = "c") -> list[Step]:
    """So many parallel calls, and their results."""
    ids = [f"{prefix}{number}" for number in range(first, first + count)]
    return [
        A(*(call(id, arguments={"n": int(id[len(prefix) :])}) for id in ids)),
        *(R(id, f"printed {id}") for id in ids),
    ]


def request_body(protocol: str, *steps: Step, model: str = "", tools: Sequence[str] = TOOLS, **fields: Any) -> Fields:
    """The body of a request in a protocol."""
    body = _WRITERS[protocol](steps, tools)
    named = {} if protocol == "gemini" or not model else {"modelId" if protocol == "bedrock" else "model": model}
    return {**named, **body, **fields}


# --- OpenAI Chat --------------------------------------------------------------------------------------


def _chat(steps: Sequence[Step], tools: Sequence[str]) -> Fields:
    messages: list[Fields] = []
    for step in steps:
        if step.who == "result":
            messages.append({"role": "tool", "tool_call_id": step.id, "content": step.text})
        elif step.calls:
            messages.append(
                {"role": "assistant", "content": step.text, "tool_calls": list(map(_chat_call, step.calls))}
            )
        else:
            messages.append({"role": step.who, "content": step.text})
    body: Fields = {"messages": messages}
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
    return body


def _text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _chat_call(made: Call) -> Fields:
    function = {"name": made.name, "arguments": _text_of(made.arguments)}
    return {"id": made.id, "type": "function", "function": function}


# --- OpenAI Responses ---------------------------------------------------------------------------------


def _responses(steps: Sequence[Step], tools: Sequence[str]) -> Fields:
    items: list[Fields] = []
    for step in steps:
        if step.who == "result":
            items.append({"type": "function_call_output", "call_id": step.id, "output": step.text})
            continue
        if step.text is not None:
            items.append({"role": step.who, "content": step.text})
        for made in step.calls:
            arguments = _text_of(made.arguments)
            items.append({"type": "function_call", "call_id": made.id, "name": made.name, "arguments": arguments})
    body: Fields = {"input": items}
    if tools:
        body["tools"] = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in tools]
    return body


# --- Anthropic ----------------------------------------------------------------------------------------


def _anthropic(steps: Sequence[Step], tools: Sequence[str]) -> Fields:
    messages: list[Fields] = []
    system = "\n".join(step.text or "" for step in steps if step.who == "system")
    before = ""
    for step in steps:
        if step.who == "result":
            block: Fields = {"type": "tool_result", "tool_use_id": step.id, "content": step.text}
            _add_block(messages, {**block, **({"is_error": True} if step.failed else {})}, joins=before == "result")
        elif step.calls:
            text = [{"type": "text", "text": step.text}] if step.text is not None else []
            calls = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in step.calls]
            messages.append({"role": "assistant", "content": text + calls})
        elif step.who == "user" and before == "result":
            messages[-1]["content"].append({"type": "text", "text": step.text})
        elif step.who != "system":
            messages.append({"role": step.who, "content": step.text})
        before = step.who
    body: Fields = {"max_tokens": 1000, "messages": messages}
    if system:
        body["system"] = system
    if tools:
        body["tools"] = [{"name": name, "input_schema": SCHEMA} for name in tools]
    return body


def _add_block(messages: list[Fields], block: Fields, *, joins: bool, key: str = "content") -> None:
    if joins:
        messages[-1][key].append(block)
    else:
        messages.append({"role": "user", key: [block]})


# --- Gemini -------------------------------------------------------------------------------------------


def _gemini(steps: Sequence[Step], tools: Sequence[str]) -> Fields:
    contents: list[Fields] = []
    system = [{"text": step.text} for step in steps if step.who == "system"]
    before = ""
    for step in steps:
        if step.who == "result":
            response = {"error" if step.failed else "output": step.text}
            part = {
                "functionResponse": {**({"id": step.id} if step.id else {}), "name": step.name, "response": response}
            }
            _add_block(contents, part, joins=before == "result", key="parts")
        elif step.who != "system":
            parts: list[Fields] = [{"text": step.text}] if step.text is not None else []
            for c in step.calls:
                known = {"id": c.id} if c.id else {}
                parts.append({"functionCall": {**known, "name": c.name, "args": c.arguments}})
            contents.append({"role": "model" if step.who == "assistant" else "user", "parts": parts})
        before = step.who
    body: Fields = {"contents": contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    if tools:
        schema = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}
        body["tools"] = [{"functionDeclarations": [{"name": name, "parameters": schema} for name in tools]}]
    return body


# --- Bedrock ------------------------------------------------------------------------------------------


def _bedrock(steps: Sequence[Step], tools: Sequence[str]) -> Fields:
    messages: list[Fields] = []
    system = [{"text": step.text} for step in steps if step.who == "system"]
    before = ""
    for step in steps:
        if step.who == "result":
            content = [{"text": step.text}] if step.text is not None else []
            result: Fields = {"toolUseId": step.id, "content": content}
            failed = {"status": "error"} if step.failed else {}
            _add_block(messages, {"toolResult": {**result, **failed}}, joins=before == "result")
        elif step.who == "user" and before == "result":
            messages[-1]["content"].append({"text": step.text})
        elif step.who != "system":
            blocks: list[Fields] = [{"text": step.text}] if step.text is not None else []
            blocks += [{"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.arguments}} for c in step.calls]
            messages.append({"role": step.who, "content": blocks})
        before = step.who
    body: Fields = {"messages": messages}
    if system:
        body["system"] = system
    if tools:
        specs = [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in tools]
        body["toolConfig"] = {"tools": specs}
    return body


_WRITERS: Final[dict[str, Callable[[Sequence[Step], Sequence[str]], Fields]]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
PROTOCOLS: Final = tuple(_WRITERS)

"""The parts of a request body: texts, calls, results and media with their roles, read from the raw JSON.

A reader of its own for each protocol, so that a test of what is sent shares no code with what sends it. Where a
protocol gives calls no ids (Ollama, Gemini without them), results answer calls in order, and get ids from that.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]


class RequestPart(NamedTuple):
    """One part of a request: `text`, `thinking`, `call`, `result` or `media`, and the role of its message."""

    kind: str
    speaker: str
    message: int
    """The number of the message (Responses: of the item)."""
    text: str = ""
    id: str = ""
    name: str = ""
    value: Any = None
    """Arguments of a call; the raw block of anything else."""


class RequestParts(tuple[RequestPart, ...]):
    """All parts of a request, in order."""

    __slots__ = ()

    def of(self, *kinds: str) -> list[RequestPart]:
        return [part for part in self if part.kind in kinds]

    @property
    def calls(self) -> list[RequestPart]:
        return self.of("call")

    @property
    def results(self) -> list[RequestPart]:
        return self.of("result")

    @property
    def shape(self) -> list[str]:
        """The parts as letters: `U` and `T` texts, `C` calls, `R` results, `K` thinking, `M` media."""
        return [_letter(part) for part in self]

    @property
    def everything(self) -> str:
        return "\n".join(part.text for part in self)

    def result_of(self, call: RequestPart) -> RequestPart:
        (found,) = [result for result in self.results if result.id == call.id]
        return found

    def answers(self) -> dict[Any, str]:
        """The argument `n` of every call, with the text of its result."""
        return {(call.value or {}).get("n"): self.result_of(call).text for call in self.calls}


def _letter(part: RequestPart) -> str:
    letters = {"call": "C", "result": "R", "thinking": "K", "media": "M"}
    by_role = {"assistant": "T", "system": "S", "developer": "S"}
    return letters.get(part.kind) or by_role.get(part.speaker, "U")


def read_parts(protocol: str, body: Fields) -> RequestParts:
    return RequestParts(_with_ids(_READERS[protocol](body)))


def _with_ids(parts: Iterable[RequestPart]) -> Iterator[RequestPart]:
    """Ids by name and order, where there are none: a result without one answers the first open call of its name."""
    waiting: dict[str, str] = {}
    """The names of open calls."""
    for count, one in enumerate(parts):
        if one.kind == "call":
            one = one if one.id else one._replace(id=f"#{count}")  # noqa: PLW2901 - with an id
            waiting[one.id] = one.name
        elif one.kind == "result":
            named = (id for id, name in waiting.items() if one.name in ("", name))
            one = one if one.id else one._replace(id=next(named, "#none"))  # noqa: PLW2901 - with an id
            waiting.pop(one.id, None)
        yield one


# --- messages of the Chat kind: OpenAI Chat, Cohere, Ollama -----------------------------------------


def _chat(body: Fields) -> Iterator[RequestPart]:
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        for field in ("reasoning_content", "reasoning", "thinking", "tool_plan"):
            if isinstance(message.get(field), str):
                yield RequestPart("thinking" if field != "tool_plan" else "text", role, number, message[field])
        if role == "tool":
            text = "".join(part.text for part in _parts(message.get("content"), role, number))
            id = message.get("tool_call_id") or ""
            yield RequestPart(
                "result", role, number, text, id, message.get("name") or message.get("tool_name") or "", message
            )
            continue
        is_stand_in = message.get("content") == "" and bool(message.get("tool_calls"))  # for the missing text of calls
        yield from () if is_stand_in else _parts(message.get("content"), role, number)
        for image in message.get("images") or ():
            yield RequestPart("media", role, number, value=image)
        for made in message.get("tool_calls") or ():
            yield _chat_call(made, role, number)


def _chat_call(made: Fields, role: str, number: int) -> RequestPart:
    if "custom" in made:
        return RequestPart("call", role, number, "", made["id"], made["custom"]["name"], made["custom"]["input"])
    arguments = made["function"]["arguments"]
    value = arguments
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):  # OpenAI takes what is not JSON from its own clients: it stays a text
            value = json.loads(arguments)
    return RequestPart("call", role, number, "", made.get("id") or "", made["function"]["name"], value)


def _parts(content: Any, role: str, number: int) -> Iterator[RequestPart]:
    if isinstance(content, str):
        yield RequestPart("text", role, number, content)
        return
    for part in content or ():
        kind = part["type"]
        if kind == "thinking":
            inner = part["thinking"]
            text = inner if isinstance(inner, str) else "".join(chunk.get("text", "") for chunk in inner)
            yield RequestPart("thinking", role, number, text, value=part)
        elif kind in ("text", "input_text", "output_text", "refusal"):
            yield RequestPart("text", role, number, part.get("text") or part.get("refusal") or "", value=part)
        elif kind == "document":  # Cohere wraps the parts of a result
            yield RequestPart("text", role, number, json.dumps(part["document"]), value=part)
        else:
            yield RequestPart("media", role, number, value=part)


# --- Responses --------------------------------------------------------------------------------------


def _responses(body: Fields) -> Iterator[RequestPart]:
    if body.get("instructions"):
        yield RequestPart("text", "system", -1, body["instructions"])
    items = body["input"]
    for number, item in enumerate([{"role": "user", "content": items}] if isinstance(items, str) else items):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            value = json.loads(item["arguments"]) if kind == "function_call" else item["input"]
            yield RequestPart("call", "assistant", number, "", item["call_id"], item["name"], value)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            text = "".join(part.text for part in _parts(item["output"], "tool", number))
            yield RequestPart("result", "tool", number, text, item["call_id"], "", item)
        elif kind == "reasoning":
            yield RequestPart("thinking", "assistant", number, "".join(s["text"] for s in item["summary"]), value=item)
        else:
            yield from _parts(item["content"], item["role"], number)


# --- Anthropic --------------------------------------------------------------------------------------


def _anthropic(body: Fields) -> Iterator[RequestPart]:
    yield from _anthropic_blocks(body.get("system"), "system", -1)
    for number, message in enumerate(body["messages"]):
        yield from _anthropic_blocks(message["content"], message["role"], number)


def _anthropic_blocks(content: Any, role: str, number: int) -> Iterator[RequestPart]:
    if isinstance(content, str):
        yield RequestPart("text", role, number, content)
        return
    for block in content or ():
        kind = block["type"]
        if kind == "tool_use":
            yield RequestPart("call", role, number, "", block["id"], block["name"], block["input"])
        elif kind == "tool_result":
            text = "".join(part.text for part in _anthropic_blocks(block.get("content"), role, number))
            yield RequestPart("result", role, number, text, block["tool_use_id"], "", block)
        elif kind in ("thinking", "redacted_thinking"):
            yield RequestPart("thinking", role, number, block.get("thinking", ""), value=block)
        elif kind == "text":
            yield RequestPart("text", role, number, block["text"], value=block)
        else:
            yield RequestPart("media", role, number, value=block)


# --- Gemini -----------------------------------------------------------------------------------------


def _gemini(body: Fields) -> Iterator[RequestPart]:
    for part in (body.get("systemInstruction") or {}).get("parts", ()):
        yield RequestPart("text", "system", -1, part["text"])
    for number, content in enumerate(body["contents"]):
        role = "assistant" if content["role"] == "model" else "user"
        for part in content["parts"]:
            yield _gemini_part(part, role, number)


def _gemini_part(part: Fields, role: str, number: int) -> RequestPart:
    if "functionCall" in part:
        made = part["functionCall"]
        return RequestPart("call", role, number, "", made.get("id") or "", made["name"], made.get("args"))
    if "functionResponse" in part:
        answer = part["functionResponse"]
        text = "".join(value if isinstance(value, str) else json.dumps(value) for value in answer["response"].values())
        return RequestPart("result", role, number, text, answer.get("id") or "", answer["name"], part)
    if "text" in part:
        return RequestPart("thinking" if part.get("thought") else "text", role, number, part["text"], value=part)
    return RequestPart("media", role, number, value=part)


# --- Bedrock ----------------------------------------------------------------------------------------


def _bedrock(body: Fields) -> Iterator[RequestPart]:
    for block in body.get("system") or ():
        if "cachePoint" not in block:
            yield RequestPart("text", "system", -1, block["text"])
    for number, message in enumerate(body["messages"]):
        for block in message["content"]:
            if "cachePoint" in block:  # it marks what is before it, and is no part of the conversation
                continue
            yield _bedrock_block(block, message["role"], number)


def _bedrock_block(block: Fields, role: str, number: int) -> RequestPart:
    if "toolUse" in block:
        made = block["toolUse"]
        return RequestPart("call", role, number, "", made["toolUseId"], made["name"], made["input"])
    if "toolResult" in block:
        answer = block["toolResult"]
        text = "".join(part.get("text", "") for part in answer["content"])
        return RequestPart("result", role, number, text, answer["toolUseId"], "", block)
    if "reasoningContent" in block:
        inner = block["reasoningContent"].get("reasoningText") or {}
        return RequestPart("thinking", role, number, inner.get("text", ""), value=block)
    if "text" in block:
        return RequestPart("text", role, number, block["text"], value=block)
    return RequestPart("media", role, number, value=block)


_READERS: Final[dict[str, Callable[[Fields], Iterator[RequestPart]]]] = {
    "openai_chat": _chat,
    "cohere": _chat,
    "ollama": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}

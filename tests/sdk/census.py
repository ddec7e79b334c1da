"""What is in a body, counted over its raw JSON by one who does not know the codecs.

`of_body` finds calls, results, media, thinking, server tools and texts by the provider's own description of its
format; `of_turns` counts the same in canonical turns. Both must agree for every recording: a codec that carried
everything verbatim would come back equal, and be caught here. `VERBATIM` lists what may be carried as it came.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from toolglot.conversation import (
    Compaction,
    Media,
    Opaque,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolReference,
    ToolResult,
    Turn,
)

Found = tuple[str, ...]
"""A kind (call, result, tool, media, thinking, server, compaction, text, verbatim) and what identifies it."""

VERBATIM: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(),
    "openai_chat": frozenset({"function_call", "function", "reference"}),
    "openai_responses": frozenset(
        {"item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"}
    ),
    "gemini": frozenset(),
    "bedrock": frozenset({"cachePoint", "guarded image"}),
    "cohere": frozenset(),
    "ollama": frozenset(),
}
"""Parts that a protocol has and the canonical form has no block for."""


def of_turns(turns: Iterable[Turn]) -> Counter[Found]:
    """What the codec found."""
    return Counter(found for turn in turns for block in turn.blocks for found in _of_block(block))


def _of_block(block: Any) -> Iterator[Found]:
    match block:
        case Text():
            yield "text", block.text
        case ToolCall():
            yield "call", block.id, block.name, written(block.raw_input if block.arguments is None else block.arguments)
        case ToolResult():
            yield "result", block.call_id, block.text, "error" if block.is_error else "fine"
            if isinstance(block.content, tuple):
                yield from (found for part in block.content for found in _of_block(part) if found[0] != "text")
        case ToolReference():
            yield "tool", block.name
        case Media() | Thinking() | ServerTool() | Compaction() | Opaque():
            yield (_NAMES[type(block)],)


_NAMES: Final = {
    Media: "media",
    Thinking: "thinking",
    ServerTool: "server",
    Compaction: "compaction",
    Opaque: "verbatim",
}


def of_body(protocol: str, body: dict[str, Any]) -> Counter[Found]:
    """What the provider's description says is there. Something that it does not know is an error of the census."""
    return Counter(_READERS[protocol](body))


def written(arguments: Any) -> str:
    """Arguments in one form: an object, or the text of one, as JSON; any other text as it is. No text means none."""
    if isinstance(arguments, str) and arguments:
        try:
            parsed = json.loads(arguments)
        except ValueError:
            return arguments
        return written(parsed) if isinstance(parsed, dict | str) else arguments
    return json.dumps(arguments or {}, sort_keys=True)


def _compact(value: Any) -> str:
    """A JSON value as the text that it is for a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _verbatim(protocol: str, kind: str) -> Iterator[Found]:
    assert kind in VERBATIM[protocol], f"{protocol} has an unexpected {kind}"
    yield ("verbatim",)


def _listed(content: Any, text: str = "text") -> list[dict[str, Any]]:
    """Content as a list, where a string is one text part."""
    return [{"type": text, "text": content}] if isinstance(content, str) else content or []


# --- Anthropic --------------------------------------------------------------------------------------


def _anthropic(body: dict[str, Any]) -> Iterator[Found]:
    contents = [body.get("system"), body.get("content"), *(message["content"] for message in body.get("messages", ()))]
    for content in contents:
        for block in _listed(content):
            yield from _anthropic_block(block)


def _anthropic_block(block: dict[str, Any]) -> Iterator[Found]:
    kind = block["type"]
    if kind == "text":
        yield "text", block["text"]
    elif kind == "tool_use":
        yield "call", block["id"], block["name"], written(block["input"])
    elif kind == "tool_result":
        inner = [found for part in _listed(block.get("content")) for found in _anthropic_block(part)]
        text = "".join(found[1] for found in inner if found[0] == "text")
        yield "result", block["tool_use_id"], text, "error" if block.get("is_error") else "fine"
        yield from (found for found in inner if found[0] != "text")
    elif kind == "tool_reference":
        yield "tool", block["tool_name"]
    elif kind in ("thinking", "redacted_thinking"):
        yield ("thinking",)
    elif kind == "server_tool_use" or kind.endswith("_tool_result"):
        yield ("server",)
    elif kind == "compaction":
        yield ("compaction",)
    elif kind in ("image", "document") and block["source"]["type"] in ("base64", "url", "file"):
        yield ("media",)
    elif kind in ("document", "search_result"):
        yield "text", "\n".join(_anthropic_words(block))
    else:
        yield from _verbatim("anthropic", kind)


def _anthropic_words(block: dict[str, Any]) -> Iterator[str]:
    """A text document or a search result: its title, its address, its text."""
    source = block["source"]
    if block.get("title"):
        yield block["title"]
    if isinstance(source, str):
        yield source
    content = block["content"] if isinstance(source, str) else source.get("data", source.get("content"))
    yield from (part["text"] for part in _listed(content))


# --- Chat Completions -------------------------------------------------------------------------------


def _openai_chat(body: dict[str, Any]) -> Iterator[Found]:
    for message in body.get("messages", ()):
        yield from _chat_message(message, is_reply=False)
    for choice in body.get("choices", ()):
        yield from _chat_message(choice["message"], is_reply=True)


def _chat_message(message: dict[str, Any], *, is_reply: bool) -> Iterator[Found]:
    if message["role"] == "function":
        yield from _verbatim("openai_chat", "function")
        return
    parts = [found for part in _listed(message.get("content")) for found in _chat_part(part)]
    if message["role"] == "tool":
        yield "result", message["tool_call_id"], "".join(found[1] for found in parts), "fine"
        return
    yield from parts
    if message.get("reasoning_content"):
        yield ("thinking",)
    if message.get("refusal") is not None:
        yield "text", message["refusal"]
    called = message.get("function_call")
    if called is not None and is_reply:  # a call of old times; in a request it goes back as it came
        yield "call", "", called["name"], written(called["arguments"])
    elif called is not None:
        yield from _verbatim("openai_chat", "function_call")
    for call in message.get("tool_calls") or ():
        made = call.get("function") or call["custom"]
        yield "call", call["id"], made["name"], written(made["arguments"] if "arguments" in made else made["input"])


def _chat_part(part: dict[str, Any]) -> Iterator[Found]:
    if part["type"] in ("text", "refusal"):
        yield "text", part[part["type"]]
    elif part["type"] in ("image_url", "input_audio", "file", "document_url"):
        yield ("media",)
    elif part["type"] == "thinking":
        yield ("thinking",)
    else:
        yield from _verbatim("openai_chat", part["type"])


# --- Responses --------------------------------------------------------------------------------------


def _openai_responses(body: dict[str, Any]) -> Iterator[Found]:
    """What was sent, or what was answered: a reply repeats the instructions, which are no part of it."""
    items = body.get("output", body.get("input", ()))
    if "output" not in body and body.get("instructions") is not None:
        yield "text", body["instructions"]
    if isinstance(items, str):
        yield "text", items
        return
    shells: list[str] = []
    for item in items:
        if item.get("type") == "local_shell_call":
            shells.append(item["call_id"])
            action = {name: value for name, value in item["action"].items() if name != "type"}
            yield "call", item["call_id"], "local_shell", written(action)
        elif item.get("type") == "local_shell_call_output":
            yield "result", shells[-1], item["output"], "fine"
        else:
            yield from _responses_item(item)


def _responses_item(item: dict[str, Any]) -> Iterator[Found]:
    kind = item.get("type", "message")
    if kind == "message":
        for part in _listed(item["content"], "input_text"):
            yield from _responses_part(part)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item["arguments"] if kind == "function_call" else item["input"]
        yield "call", item["call_id"], item["name"], written(arguments)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        inner = [found for part in _listed(item["output"], "input_text") for found in _responses_part(part)]
        yield "result", item["call_id"], "".join(found[1] for found in inner if found[0] == "text"), "fine"
        yield from (found for found in inner if found[0] != "text")
    elif kind == "reasoning":
        yield ("thinking",)
    elif kind in ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"):
        yield ("server",)
    elif kind == "compaction":
        yield ("compaction",)
    else:
        yield from _verbatim("openai_responses", kind)


def _responses_part(part: dict[str, Any]) -> Iterator[Found]:
    if part["type"] in ("input_text", "output_text", "refusal"):
        yield "text", part["refusal" if part["type"] == "refusal" else "text"]
    elif part["type"] in ("input_image", "input_file"):
        yield ("media",)
    else:
        yield from _verbatim("openai_responses", part["type"])


# --- Gemini -----------------------------------------------------------------------------------------


def _gemini(body: dict[str, Any]) -> Iterator[Found]:
    answers = [candidate.get("content", {}) for candidate in body.get("candidates", ())]
    for content in (body.get("systemInstruction", {}), *body.get("contents", answers)):
        for part in content.get("parts", ()):
            yield from _gemini_part(part)


def _gemini_part(part: dict[str, Any]) -> Iterator[Found]:
    if "functionCall" in part:
        call = part["functionCall"]
        yield "call", call.get("id", ""), call["name"], written(call.get("args"))
    elif "functionResponse" in part:
        result = part["functionResponse"]
        response = result["response"]
        words = [response[key] for key in ("output", "result", "error") if response.keys() == {key}]
        text = words[0] if words and isinstance(words[0], str) else _compact(response)
        yield "result", result.get("id", ""), text, "error" if response.keys() == {"error"} else "fine"
        yield from (("media",) for _ in result.get("parts", ()))
    elif part.keys() & {"inlineData", "fileData", "inline_data", "file_data"}:
        yield ("media",)
    elif part.keys() & {"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}:
        yield ("server",)
    else:
        yield ("thinking",) if part.get("thought") else ("text", part["text"])


# --- Bedrock ----------------------------------------------------------------------------------------


def _bedrock(body: dict[str, Any]) -> Iterator[Found]:
    answer = [body["output"]["message"]] if "output" in body else []
    for content in (body.get("system", ()), *(message["content"] for message in body.get("messages", answer))):
        for block in content:
            yield from _bedrock_block(block)


def _bedrock_block(block: dict[str, Any]) -> Iterator[Found]:
    ((kind, value),) = block.items()
    if kind in ("text", "json"):
        yield "text", value if kind == "text" else _compact(value)
    elif kind in ("toolUse", "toolResult") and value.get("type") is not None:
        yield ("server",)
    elif kind == "toolUse":
        yield "call", value["toolUseId"], value["name"], written(value["input"])
    elif kind == "toolResult":
        inner = [found for part in value["content"] for found in _bedrock_block(part)]
        text = "".join(found[1] for found in inner if found[0] == "text")
        yield "result", value["toolUseId"], text, "error" if value.get("status") == "error" else "fine"
        yield from (found for found in inner if found[0] != "text")
    elif kind == "reasoningContent":
        yield ("thinking",)
    elif kind in ("image", "document", "video", "audio") and value["source"].keys() & {"bytes", "s3Location"}:
        yield ("media",)
    elif kind in ("document", "searchResult", "citationsContent") or (kind == "guardContent" and "text" in value):
        yield "text", _bedrock_words(kind, value)
    else:
        yield from _verbatim("bedrock", "guarded image" if kind == "guardContent" else kind)


def _bedrock_words(kind: str, value: dict[str, Any]) -> str:
    """The text of a block that holds words beside data about them."""
    if kind == "guardContent":
        return str(value["text"]["text"])
    holder = value["source"] if kind == "document" else value
    texts = [holder["text"]] if "text" in holder else [part["text"] for part in holder["content"]]
    if kind == "citationsContent":
        return "".join(texts)
    head = [value["name"]] if kind == "document" else [value["title"], value["source"]]
    return "\n".join([*head, *texts])


# --- Cohere and Ollama ------------------------------------------------------------------------------


def _cohere(body: dict[str, Any]) -> Iterator[Found]:
    for message in body.get("messages") or [body["message"]]:
        parts = [found for part in _listed(message.get("content")) for found in _cohere_part(part)]
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], "".join(found[1] for found in parts), "fine"
        else:
            yield from parts
        if message.get("tool_plan") is not None:
            yield "text", message["tool_plan"]
        for call in message.get("tool_calls") or ():
            yield "call", call["id"], call["function"]["name"], written(call["function"]["arguments"])


def _cohere_part(part: dict[str, Any]) -> Iterator[Found]:
    if part["type"] == "image_url":
        yield ("media",)
    elif part["type"] == "thinking":
        yield ("thinking",)
    else:
        yield "text", part["text"] if part["type"] == "text" else _compact(part["document"]["data"])


def _ollama(body: dict[str, Any]) -> Iterator[Found]:
    for message in body.get("messages") or [body["message"]]:
        yield from (("media",) for _ in message.get("images", ()))
        if message["role"] == "tool":
            yield "result", message.get("tool_call_id", ""), message["content"], "fine"
        elif message.get("content"):
            yield "text", message["content"]
        if message.get("thinking"):
            yield ("thinking",)
        for call in message.get("tool_calls") or ():
            yield "call", call.get("id", ""), call["function"]["name"], written(call["function"]["arguments"])


_READERS: Final = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
}

"""Bodies that a strict reading or the provider refuses although it is plain what they mean: ids that are null or
numbers, arguments that are no object, a lone block where a list belongs, a part of the other side's type (B7, F3, A6).

Only a body that its codec refused, or that has something strange left over, comes here, so that a body in order costs
nothing. What is mended is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from toolglot.conversation import RAW_ARGUMENTS
from toolglot.protocols.fields.reading import Fields

CACHE_MARKER: Final = "cache_control"
MOST_CACHE_MARKERS: Final = 4
"""How many of them a request may have (Anthropic)."""
ITEM_IDS: Final = {"function_call": "fc", "custom_tool_call": "ctc", "message": "msg"}
"""How the ids of items begin that are calls or messages (Responses)."""

Told = list[tuple[str, str]]
"""Paths, and what was mended there."""


def mend(body: Fields, protocol: str) -> tuple[Fields, Told]:
    """The body as it is meant, and what was mended; the body itself where nothing could be."""
    mender = _MENDERS.get(protocol)
    if mender is None:
        return body, []
    copied = msgspec.json.decode(msgspec.json.encode(body))
    told: Told = []
    mender(copied, told)
    return (copied, told) if told else (body, [])


# --- parts ------------------------------------------------------------------------------------------


def objects_of(value: Any, path: str) -> Iterator[tuple[str, Fields]]:
    for index, member in enumerate(value if isinstance(value, list) else ()):
        if isinstance(member, dict):
            yield f"{path}[{index}]", member


def mend_id(fields: Fields, key: str, path: str, told: Told) -> None:
    id = fields.get(key)
    if isinstance(id, str):
        return
    is_number = isinstance(id, int) and not isinstance(id, bool)
    fields[key] = str(id) if is_number else ""
    told.append((f"{path}.{key}", "an id that is a number was read as text" if is_number else "an id is missing"))


def mend_name(fields: Fields, path: str, told: Told) -> None:
    if not isinstance(fields.get("name"), str):
        fields["name"] = ""
        told.append((f"{path}.name", "a name is missing"))


def _mend_object(fields: Fields, key: str, path: str, told: Told) -> None:
    """Arguments that must be an object."""
    given = fields.get(key)
    if isinstance(given, dict):
        return
    fields[key] = object_meant(given)
    told.append((f"{path}.{key}", "arguments that are no object were made one"))


def object_meant(given: Any) -> Fields:
    if given in (None, "", []):
        return {}
    if isinstance(given, str):
        try:
            parsed = msgspec.json.decode(given)
        except (ValueError, RecursionError):
            return {RAW_ARGUMENTS: given}
        return parsed if isinstance(parsed, dict) else {RAW_ARGUMENTS: given}
    return {RAW_ARGUMENTS: given}


def mend_text(fields: Fields, key: str, path: str, told: Told) -> None:
    """Arguments that must be text."""
    given = fields.get(key)
    if isinstance(given, str):
        return
    fields[key] = "" if given is None else msgspec.json.encode(given).decode()
    told.append((f"{path}.{key}", "arguments that are no text were written as one"))


def mend_call(call: Fields, path: str, told: Told) -> None:
    """A call that says its name and arguments itself, as agents write it, where it should hold a function."""
    if isinstance(call.get("function"), dict) or not isinstance(call.get("name"), str):
        return
    if call.get("type") == "custom":
        return
    given: Any = next((call[key] for key in ("arguments", "args", "input") if key in call), {})
    written = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    call["function"] = {"name": call["name"], "arguments": written}
    for key in ("name", "arguments", "args", "input", "type"):
        call.pop(key, None)
    call["type"] = "function"
    told.append((path, "a call without a function of its own was read as one"))


def _mend_content(fields: Fields, path: str, told: Told) -> None:
    """Content of a message that is null, or one block where a list belongs."""
    content = fields.get("content")
    if content is None:
        fields["content"] = ""
        told.append((f"{path}.content", "content that is missing was read as empty"))
    elif isinstance(content, dict) and isinstance(content.get("type"), str):
        fields["content"] = [content]
        told.append((f"{path}.content", "a lone block was read as a list of one"))


def _mend_result(fields: Fields, path: str, told: Told) -> None:
    """Content of a result, which is whatever a tool gave."""
    content = fields.get("content")
    if content is not None and not isinstance(content, str | list):
        fields["content"] = msgspec.json.encode(content).decode()
        told.append((f"{path}.content", "a value that a tool gave was written as text"))


# --- protocols --------------------------------------------------------------------------------------


def _anthropic(body: Fields, told: Told) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        _mend_content(message, path, told)
        for place, block in objects_of(message.get("content"), f"{path}.content"):
            if block.get("type") == "tool_use":
                mend_id(block, "id", place, told)
                mend_name(block, place, told)
                _mend_object(block, "input", place, told)
            elif block.get("type") == "tool_result":
                mend_id(block, "tool_use_id", place, told)
                _mend_result(block, place, told)
    _limit_markers(body, told)


def _limit_markers(body: Fields, told: Told) -> None:
    """A body with the last of its cache markers, as many as are accepted: they reach furthest."""
    marked = [(path, holder) for path, holder in _markable(body) if holder.get(CACHE_MARKER) is not None]
    accepted = MOST_CACHE_MARKERS - (body.get(CACHE_MARKER) is not None)
    for path, holder in marked[: max(len(marked) - accepted, 0)]:
        del holder[CACHE_MARKER]
        reason = f"at most {MOST_CACHE_MARKERS} cache markers are accepted; one before the last was left out"
        told.append((f"{path}.{CACHE_MARKER}", reason))


def _markable(body: Fields) -> Iterator[tuple[str, Fields]]:
    """What may carry a cache marker, in the order in which the model reads it."""
    yield from objects_of(body.get("tools"), "$.tools")
    yield from objects_of(body.get("system"), "$.system")
    for path, message in objects_of(body.get("messages"), "$.messages"):
        for place, block in objects_of(message.get("content"), f"{path}.content"):
            if block.get("type") == "tool_result":
                yield from objects_of(block.get("content"), f"{place}.content")
            yield place, block


def _bedrock(body: Fields, told: Told) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        _without_empty(message, "content", path, told)
        for place, block in objects_of(message.get("content"), f"{path}.content"):
            call, result = block.get("toolUse"), block.get("toolResult")
            if isinstance(call, dict):
                mend_id(call, "toolUseId", f"{place}.toolUse", told)
                mend_name(call, f"{place}.toolUse", told)
                _mend_object(call, "input", f"{place}.toolUse", told)
            if isinstance(result, dict):
                mend_id(result, "toolUseId", f"{place}.toolResult", told)
                if not isinstance(result.get("content"), list):
                    given = result.get("content")
                    text = (
                        given
                        if isinstance(given, str)
                        else ""
                        if given is None
                        else msgspec.json.encode(given).decode()
                    )
                    result["content"] = [{"text": text}] if text else []
                    told.append((f"{place}.toolResult.content", "content that is no list was made one"))


def _mend_parts(result: Fields, path: str, told: Told) -> None:
    """Content of a result that must be a list."""
    given = result.get("content")
    if isinstance(given, list):
        return
    text = given if isinstance(given, str) else "" if given is None else msgspec.json.encode(given).decode()
    result["content"] = [{"text": text}] if text else []
    told.append((f"{path}.content", "content that is no list was made one"))


def _openai_chat(body: Fields, told: Told) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if message.get("role") == "tool":
            _mend_result(message, path, told)
            if message.get("tool_call_id") is not None:
                mend_id(message, "tool_call_id", path, told)
        else:
            _mend_said(message, path, told)
        for place, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            mend_call(call, place, told)
            if call.get("id") is not None:
                mend_id(call, "id", place, told)
            function = call.get("function")
            if isinstance(function, dict):
                mend_name(function, f"{place}.function", told)
                if function.get("arguments") is not None and not isinstance(function["arguments"], dict):
                    mend_text(function, "arguments", f"{place}.function", told)
                if call.get("type") not in (None, "function"):
                    call["type"] = "function"
                    told.append((f"{place}.type", "a call of a function was read as one"))


def _mend_said(message: Fields, path: str, told: Told) -> None:
    """Content of a Chat message: a text, be it an empty one, unless an assistant says something beside it (C8)."""
    says_more = message.get("role") == "assistant" and any(message.get(key) for key in _SAID_BESIDE)
    if message.get("content") is not None or not says_more:
        _mend_content(message, path, told)


_SAID_BESIDE: Final = frozenset(
    {"tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning", "reasoning_details"}
)
"""What an assistant may say beside the content of its message."""


def _openai_responses(body: Fields, told: Told) -> None:
    for path, tool in objects_of(body.get("tools"), "$.tools"):
        _lift_function(tool, path, "a tool", told)
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        _lift_function(choice, "$.tool_choice", "a choice of a tool", told)
    items = body.get("input")
    if isinstance(items, list) and any(map(_says_nothing, items)):
        body["input"] = [item for item in items if not _says_nothing(item)]
        told.append(("$.input", "messages of the assistant that say nothing were left out"))
    for path, item in objects_of(body.get("input"), "$.input"):
        kind = item.get("type")
        if kind in (None, "message") and isinstance(item.get("role"), str):
            _without_strange_id(item, path, told)
            _mend_content(item, path, told)
            _mend_text_type(item, path, told)
        if kind in ("function_call", "custom_tool_call"):
            _without_strange_id(item, path, told)
            if item.get("call_id") is not None or not isinstance(item.get("id"), str):
                mend_id(item, "call_id", path, told)
            mend_name(item, path, told)
            if kind == "function_call" and item.get("arguments") is None:
                item["arguments"] = "{}"
                told.append((f"{path}.arguments", "a call without arguments was given none"))
            mend_text(item, "arguments" if kind == "function_call" else "input", path, told)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            mend_id(item, "call_id", path, told)
            if item.get("output") is not None and not isinstance(item["output"], str | list):
                mend_text(item, "output", path, told)


def _lift_function(fields: Fields, path: str, what: str, told: Told) -> None:
    """A tool, or the choice of one, that holds a `function` as Chat writes it, where the protocol has its fields."""
    function = fields.get("function")
    if fields.get("type") != "function" or "name" in fields or not isinstance(function, dict):
        return
    del fields["function"]
    for key, value in function.items():
        fields.setdefault(key, value)
    told.append((f"{path}.function", f"{what} in the form of Chat was read as one"))


def _mend_text_type(message: Fields, path: str, told: Told) -> None:
    """Texts of the assistant are an output's, those of everybody else an input's."""
    strange, own = "input_text", "output_text"
    if message["role"] != "assistant":
        strange, own = own, strange
    for place, part in objects_of(message.get("content"), f"{path}.content"):
        if part.get("type") == strange:
            part["type"] = own
            told.append((f"{place}.type", f"a text of the {message['role'][:40]} was read as {own}"))


def _without_strange_id(item: Fields, path: str, told: Told) -> None:
    """A call or message without the id of its item, where that is another kind of id (B5). It may be absent."""
    id, kind = item.get("id"), item.get("type") or "message"
    has_other = kind == "message" or isinstance(item.get("call_id"), str)
    if isinstance(id, str) and has_other and not id.startswith(ITEM_IDS[kind]):
        del item["id"]
        told.append((f"{path}.id", f"the item's id {id[:80]!r} is of another kind; it was left out"))


def _without_empty(fields: Fields, key: str, path: str, told: Told) -> None:
    """A list of parts without those that hold nothing."""
    parts = fields.get(key)
    if isinstance(parts, list) and {} in parts:
        fields[key] = [part for part in parts if part != {}]
        told.append((f"{path}.{key}", "parts that hold nothing were left out"))


def _says_nothing(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "assistant" and item.get("content") == []


def _gemini(body: Fields, told: Told) -> None:
    for path, content in objects_of(body.get("contents"), "$.contents"):
        _without_empty(content, "parts", path, told)
        for place, part in objects_of(content.get("parts"), f"{path}.parts"):
            for key in ("functionCall", "function_call"):
                call = part.get(key)
                if isinstance(call, dict):
                    mend_name(call, f"{place}.{key}", told)
                    if call.get("id") is not None:
                        mend_id(call, "id", f"{place}.{key}", told)
                    if call.get("args") is not None:
                        _mend_object(call, "args", f"{place}.{key}", told)
            for key in ("functionResponse", "function_response"):
                given = part.get(key)
                if isinstance(given, dict):
                    mend_name(given, f"{place}.{key}", told)
                    if given.get("id") is not None:
                        mend_id(given, "id", f"{place}.{key}", told)
                    if not isinstance(given.get("response"), dict):
                        given["response"] = {"output": given.get("response")}
                        told.append((f"{place}.{key}.response", "a response that is no object was made one"))


def _cohere(body: Fields, told: Told) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if message.get("role") == "tool":
            _mend_result(message, path, told)
            mend_id(message, "tool_call_id", path, told)
        elif message.get("content") is not None:
            _mend_content(message, path, told)
        for place, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            mend_call(call, place, told)
            mend_id(call, "id", place, told)
            function = call.get("function")
            if isinstance(function, dict):
                mend_name(function, f"{place}.function", told)
                if function.get("arguments") is not None:
                    mend_text(function, "arguments", f"{place}.function", told)


def _ollama(body: Fields, told: Told) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if "content" in message and message["content"] is None:
            _mend_content(message, path, told)
        if message.get("role") == "tool":
            _mend_result(message, path, told)
            if message.get("tool_call_id") is not None:
                mend_id(message, "tool_call_id", path, told)
        for place, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            mend_call(call, place, told)
            if call.get("id") is not None:
                mend_id(call, "id", place, told)
            function = call.get("function")
            if isinstance(function, dict):
                mend_name(function, f"{place}.function", told)
                _mend_object(function, "arguments", f"{place}.function", told)


_MENDERS: Final[dict[str, Callable[[Fields, Told], None]]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
}

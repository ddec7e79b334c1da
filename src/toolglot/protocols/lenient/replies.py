"""Whole replies that a strict reading refuses although it is plain what they mean (B7, F3, H5).

A role, an id, a type, a model that is left out, arguments as an object where text belongs, a lone block where a list
belongs, a count that is written as text: each is read as what it can only be, and reported. Only a reply that its codec
refused comes here, so that a reply in order costs nothing. What has no meaning stays as it is, and is refused.

Law: arguments that cannot be read are left alone, since such a call is never run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from toolglot.conversation import RAW_ARGUMENTS
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.malformed_bodies import (
    Told,
    mend_call,
    mend_id,
    mend_name,
    mend_text,
    object_meant,
    objects_of,
)


def read_as_meant(body: Fields, protocol: str) -> tuple[Fields, Told]:
    """The reply as it is meant, and what was done to it; the body itself where nothing could be done."""
    calls_of = _CALLS.get(protocol)
    if calls_of is None:
        return body, []
    copied = msgspec.json.decode(msgspec.json.encode(body))
    told: Told = []
    for path, call, form in calls_of(copied, told):
        _mend_call_fields(call, path, form, told)
    return (copied, told) if told else (body, [])


def missing_fields(body: Fields, protocol: str) -> Told:
    """What a client of another protocol is told although the reply does not say it."""
    return [
        (f"$.{key}", f"the answer does not say its {what}")
        for key, what in _UNDEMANDED.get(protocol, ())
        if body.get(key) is None
    ]


_UNDEMANDED: Final = {"openai_chat": (("id", "id"), ("created", "time"), ("model", "model"))}
"""Fields of every reply that its codec does not demand, since many hosts leave them out."""


class _CallForm(NamedTuple):
    """How a protocol writes a call: the field of its arguments, and their type."""

    arguments: str
    type: type


_Calls = Iterator[tuple[str, Fields, _CallForm]]
_TEXT_FORM: Final = _CallForm("arguments", str)


def _mend_call_fields(call: Fields, path: str, form: _CallForm, told: Told) -> None:
    if call.get("name") is None:
        mend_name(call, path, told)
    given: Any = call.get(form.arguments)
    if type(given) is form.type:
        return
    if form.type is str:
        if given is not None:
            mend_text(call, form.arguments, path, told)
        return
    meant = object_meant(given)
    if RAW_ARGUMENTS not in meant:
        call[form.arguments] = meant
        told.append((f"{path}.{form.arguments}", "arguments that are no object were read as the one that they say"))


# --- fields that every reply has --------------------------------------------------------------------


def _set(fields: Fields, key: str, value: Any, path: str, reason: str, told: Told) -> None:
    fields[key] = value
    told.append((f"{path}.{key}", reason))


def _mend_role(message: Fields, path: str, told: Told) -> None:
    if message.get("role") != "assistant":
        reason = "an answer that does not say its role was read as the assistant's"
        _set(message, "role", "assistant", path, reason, told)


def _mend_reply_id(body: Fields, prefix: str, told: Told) -> None:
    """An answer without an id gets one that is made of what it says: the same for the same answer."""
    if not isinstance(body.get("id"), str):
        made = prefix + hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()[:24]
        _set(body, "id", made, "$", f"the answer has no id; it is {made!r} for the client", told)


def _mend_model(body: Fields, told: Told) -> None:
    if not isinstance(body.get("model"), str):
        _set(body, "model", "", "$", "the answer does not say its model", told)


def _mend_reason(fields: Fields, key: str, path: str, told: Told) -> None:
    if fields.get(key) is not None and not isinstance(fields[key], str):
        del fields[key]
        told.append((f"{path}.{key}", "a reason for the end that is no text was left out"))


def _mend_counts(holder: Fields, key: str, path: str, told: Told) -> None:
    """Counts of tokens: numbers with a fraction of nothing, or as text, are read; others are left out."""
    counts: Any = holder.get(key)
    if counts is None:
        return
    if not isinstance(counts, dict):
        _set(holder, key, None, path, "counts that are no object were left out", told)
        return
    for name, value in counts.items():
        if isinstance(value, dict):
            _mend_counts(counts, name, f"{path}.{key}", told)
        elif isinstance(value, float) and value.is_integer():
            _set(counts, name, int(value), f"{path}.{key}", "a count with a fraction was read as a whole number", told)
        elif isinstance(value, str) and len(value) < 16 and value.isascii() and value.isdigit():
            _set(counts, name, int(value), f"{path}.{key}", "a count that is text was read as a number", told)


def _mend_list(holder: Fields, key: str, path: str, told: Told) -> None:
    """A list: one object where a list belongs is a list of one, and null is none."""
    if key not in holder:
        return
    given: Any = holder[key]
    if isinstance(given, dict):
        _set(holder, key, [given], path, "a lone object was read as a list of one", told)
    elif given is None:
        _set(holder, key, [], path, "null where a list belongs was read as an empty one", told)
    elif isinstance(given, list) and None in given:
        _set(holder, key, [member for member in given if member is not None], path, "nulls were left out", told)


def _mend_type(fields: Fields, types: tuple[tuple[str, str], ...], path: str, told: Told) -> None:
    """The type of a block that does not say it, by the first of some fields that only such a block has."""
    if fields.get("type") is None:
        kind = next((kind for key, kind in types if key in fields), None)
        if kind is not None:
            _set(fields, "type", kind, path, f"what does not say its type was read as {kind}", told)


# --- protocols --------------------------------------------------------------------------------------


def _chat(body: Fields, told: Told) -> _Calls:
    _mend_counts(body, "usage", "$", told)
    for path, choice in objects_of(body.get("choices"), "$.choices"):
        _mend_reason(choice, "finish_reason", path, told)
        message = choice.get("message")
        if not isinstance(message, dict):
            message = _message_meant(choice, path, told)
        if message is not None:
            _mend_role(message, f"{path}.message", told)
            if isinstance(message.get("content"), dict):
                _mend_list(message, "content", f"{path}.message", told)
            yield from _listed_calls(message, f"{path}.message", told, needs_id=False)


def _message_meant(choice: Fields, path: str, told: Told) -> Fields | None:
    """The message of a choice that has the delta of a stream or a bare text in its place."""
    if isinstance(choice.get("delta"), dict):
        reason = "a delta where a message belongs was read as the message"
        message: Fields = choice.pop("delta")
    elif isinstance(choice.get("text"), str):
        reason = "a text where a message belongs was read as the message"
        message = {"role": "assistant", "content": choice.pop("text")}
    else:
        return None
    _set(choice, "message", message, path, reason, told)
    return message


def _listed_calls(message: Fields, path: str, told: Told, *, needs_id: bool, form: _CallForm = _TEXT_FORM) -> _Calls:
    if isinstance(message.get("tool_calls"), dict):
        _mend_list(message, "tool_calls", path, told)
    for place, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
        mend_call(call, place, told)
        if needs_id or not isinstance(call.get("id"), str | None):
            mend_id(call, "id", place, told)
        function = call.get("function")
        if isinstance(function, dict):
            yield f"{place}.function", function, form


def _cohere(body: Fields, told: Told) -> _Calls:
    _mend_reply_id(body, "", told)
    _mend_reason(body, "finish_reason", "$", told)
    message = body.get("message")
    if isinstance(message, dict):
        _mend_role(message, "$.message", told)
        yield from _listed_calls(message, "$.message", told, needs_id=True)


def _ollama(body: Fields, told: Told) -> _Calls:
    _mend_model(body, told)
    if not isinstance(body.get("done"), bool):
        _set(body, "done", True, "$", "an answer that does not say whether it is done was read as done", told)
    message = body.get("message")
    if isinstance(message, dict):
        _mend_role(message, "$.message", told)
        yield from _listed_calls(message, "$.message", told, needs_id=False, form=_CallForm("arguments", dict))


_ITEM_TYPES: Final = (
    ("arguments", "function_call"),
    ("input", "custom_tool_call"),
    ("summary", "reasoning"),
    ("encrypted_content", "reasoning"),
    ("content", "message"),
)
_PART_TYPES: Final = (("text", "output_text"), ("refusal", "refusal"))


def _responses(body: Fields, told: Told) -> _Calls:
    _mend_reply_id(body, "resp_", told)
    _mend_model(body, told)
    _mend_reason(body, "status", "$", told)
    _mend_counts(body, "usage", "$", told)
    _mend_list(body, "output", "$", told)
    for path, item in objects_of(body.get("output"), "$.output"):
        _mend_type(item, _ITEM_TYPES, path, told)
        kind = item.get("type")
        if kind == "message":
            _mend_role(item, path, told)
            if not isinstance(item.get("content"), str):
                _mend_list(item, "content", path, told)
            for place, part in objects_of(item.get("content"), f"{path}.content"):
                _mend_type(part, _PART_TYPES, place, told)
        elif kind == "function_call":
            if not isinstance(item.get("id"), str):
                mend_id(item, "call_id", path, told)
            if item.get("arguments") is None:
                _set(item, "arguments", "", path, "a call without arguments was given none", told)
            yield path, item, _TEXT_FORM


_BLOCK_TYPES: Final = (("text", "text"), ("thinking", "thinking"), ("input", "tool_use"), ("data", "redacted_thinking"))


def _anthropic(body: Fields, told: Told) -> _Calls:
    _mend_completion(body, told)
    if not isinstance(body.get("content"), list | dict | str):
        return
    if body.get("type") is None:
        _set(body, "type", "message", "$", "an answer that does not say its type was read as a message", told)
    _mend_role(body, "$", told)
    _mend_reply_id(body, "msg_", told)
    _mend_model(body, told)
    _mend_reason(body, "stop_reason", "$", told)
    _mend_counts(body, "usage", "$", told)
    content = body["content"]
    if isinstance(content, str):
        _set(body, "content", [{"type": "text", "text": content}], "$", "a text was read as a block of text", told)
    else:
        _mend_list(body, "content", "$", told)
    for path, block in objects_of(body.get("content"), "$.content"):
        _mend_type(block, _BLOCK_TYPES, path, told)
        if block.get("type") == "tool_use":
            mend_id(block, "id", path, told)
            yield path, block, _CallForm("input", dict)


def _mend_completion(body: Fields, told: Told) -> None:
    """An answer of the API that was before messages, as Bedrock's older models of Claude give it."""
    if isinstance(body.get("completion"), str) and "content" not in body:
        content = [{"type": "text", "text": body.pop("completion")}]
        body["type"] = "message"
        _set(body, "content", content, "$", "a completion was read as a message that says its text", told)


def _gemini(body: Fields, told: Told) -> _Calls:
    for key in ("usageMetadata", "usage_metadata"):
        _mend_counts(body, key, "$", told)
    for path, candidate in objects_of(body.get("candidates"), "$.candidates"):
        for key in ("finishReason", "finish_reason"):
            _mend_reason(candidate, key, path, told)
        content = candidate.get("content")
        for place, part in objects_of(
            content.get("parts") if isinstance(content, dict) else (), f"{path}.content.parts"
        ):
            for key in ("functionCall", "function_call"):
                call = part.get(key)
                if isinstance(call, dict):
                    yield f"{place}.{key}", call, _CallForm("args", dict)


def _bedrock(body: Fields, told: Told) -> _Calls:
    _mend_reason(body, "stopReason", "$", told)
    _mend_counts(body, "usage", "$", told)
    output: Any = body.get("output")
    message: Any = output.get("message") if isinstance(output, dict) else None
    if not isinstance(message, dict):
        return
    _mend_role(message, "$.output.message", told)
    _mend_list(message, "content", "$.output.message", told)
    for path, block in objects_of(message.get("content"), "$.output.message.content"):
        call = block.get("toolUse")
        if isinstance(call, dict):
            mend_id(call, "toolUseId", f"{path}.toolUse", told)
            yield f"{path}.toolUse", call, _CallForm("input", dict)


_CALLS: Final[dict[str, Callable[[Fields, Told], _Calls]]] = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai_chat": _chat,
    "openai_responses": _responses,
}
"""What is done to a reply of each protocol, and where it has its calls."""

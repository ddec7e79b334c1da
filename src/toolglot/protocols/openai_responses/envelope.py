"""What a response of the OpenAI Responses protocol has besides its output: the settings of its request, and its end.

Law: every response has every field of the table. A field has the value of the client's request, in the form in which
responses repeat it, and otherwise the protocol's default. What a provider of this protocol wrote itself stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolglot.protocols.fields.reading import Fields

_TEXT: Final = "text"
_PLAIN: Final[Fields] = {"type": "text"}

SETTINGS: Final[Fields] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    _TEXT: {"format": _PLAIN},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""Fields of a request that a response repeats, with their defaults."""

_ENDS: Final[Fields] = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}
"""Fields that say how a response ended; all are null until then."""

_DEMANDED: Final = ("object", "created_at", *_ENDS, *(key for key in SETTINGS if key != "user"))
"""Fields that clients demand of every response, besides those without which it is none."""


def settings_of(request: Mapping[str, Any] | None) -> Fields:
    """The settings of a request as a response repeats them. None: a request that is not known, or has none."""
    settings = dict(SETTINGS)
    for key in SETTINGS if request is not None else ():
        if request is not None and (value := request.get(key)) is not None:
            settings[key] = _REPEATED[key](value) if key in _REPEATED else value
    return settings


def with_settings(settings: Fields, response: Mapping[str, Any]) -> Fields:
    """A response with every field that a response has. One that differs from the default is the provider's own."""
    body: Fields = {**_ENDS, **response}
    for key, value in settings.items():
        if body.get(key) is None or body[key] == SETTINGS[key]:
            body[key] = value
    return body


def fill_missing(settings: Fields, response: Fields, now: int | None = None) -> Fields:
    """The response of a provider of this protocol, with what it leaves out; the same object if that is nothing.

    settings: the request's, as `settings_of` returns them.
    now: when the response was read, in seconds since 1970, if that is known.
    """
    missing = [key for key in _DEMANDED if key not in response]
    output, usage = response.get("output"), response.get("usage")
    items = [fill_item(item) for item in output] if type(output) is list else []
    is_filled = type(output) is list and any(new is not old for new, old in zip(items, output, strict=True))
    counts = _whole_usage(usage)
    if not missing and not is_filled and counts is usage:
        return response
    known: Fields = {**_ENDS, **settings, "object": "response"}
    if now is not None:
        known |= {"created_at": now, "completed_at": now if response.get("status") == "completed" else None}
    filled = {**response, **{key: known[key] for key in missing if key in known}}
    if is_filled:
        filled["output"] = items
    if usage is not None:
        filled["usage"] = counts
    return filled


def fill_item(item: Any, status: str = "completed") -> Any:
    """An output item with the fields that clients demand of its type; the same object if it has them."""
    kind = item.get("type") if type(item) is dict else None
    if kind == "message":
        content = item.get("content")
        parts = [fill_part(part) for part in content] if type(content) is list else []
        is_filled = bool(parts) and any(new is not old for new, old in zip(parts, content, strict=True))
        whole = _with_missing(item, {"status": status, "role": "assistant"})
        return {**whole, "content": parts} if is_filled else whole
    if kind in ("function_call", "custom_tool_call"):
        return _with_missing(item, {"status": status})
    return _with_missing(item, {"summary": []}) if kind == "reasoning" else item


def fill_part(part: Any) -> Any:
    """A part of an output message with the fields that clients demand; the same object if it has them."""
    is_text = type(part) is dict and part.get("type") == "output_text"
    return _with_missing(part, {"annotations": [], "logprobs": []}) if is_text else part


def _with_missing(fields: Fields, defaults: Fields) -> Fields:
    missing = {key: value for key, value in defaults.items() if key not in fields}
    return {**fields, **missing} if missing else fields


def _whole_usage(usage: Any) -> Any:
    if type(usage) is not dict:
        return usage
    whole = usage
    for key, count in (("input_tokens_details", "cached_tokens"), ("output_tokens_details", "reasoning_tokens")):
        details = usage.get(key)
        if type(details) is not dict or count not in details:
            whole = {**whole, key: {count: 0, **(details if type(details) is dict else {})}}
    counts = [usage.get(key) for key in ("input_tokens", "output_tokens")]
    if "total_tokens" not in usage and all(type(count) is int for count in counts):
        whole = {**whole, "total_tokens": sum(count for count in counts if type(count) is int)}
    return whole


def _with_defaults(defaults: Fields) -> Callable[[Any], Any]:
    return lambda value: {**defaults, **value} if type(value) is dict else value


_whole_tool: Final = _with_defaults({"description": None, "parameters": None, "strict": None})
_whole_schema: Final = _with_defaults({"description": None, "strict": False})


def _whole_tools(tools: Any) -> Any:
    if type(tools) is not list:
        return tools
    return [
        _whole_tool(tool) if type(tool) is dict and tool.get("type", "function") == "function" else tool
        for tool in tools
    ]


def _whole_text(text: Any) -> Any:
    if type(text) is not dict:
        return text
    format = text.get("format") or _PLAIN
    if type(format) is dict and format.get("type") == "json_schema":
        format = {key: value for key, value in _whole_schema(format).items() if key != "strict" or value is not None}
        format.setdefault("strict", False)
    return {**text, "format": format}


def _whole_choice(choice: Any) -> Any:
    is_allowed = type(choice) is dict and choice.get("type") == "allowed_tools"
    return {"mode": "auto", **choice} if is_allowed else choice


_REPEATED: Final[dict[str, Callable[[Any], Any]]] = {
    "reasoning": _with_defaults({"effort": None, "summary": None}),
    _TEXT: _whole_text,
    "tool_choice": _whole_choice,
    "tools": _whole_tools,
}
"""Settings whose form in a response has fields that a request may leave out."""

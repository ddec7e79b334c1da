"""Items of stored responses: the input of a request, what it refers to, and how items are listed.

Law: pure. An item that a client sent stays as it is; what a list needs besides (an id, parts) is added to a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from toolglot.gateway.endpoints.response_errors import invalid, missing_item
from toolglot.protocols.framing.text_frames import Frame, SseFramer
from toolglot.protocols.openai_responses.envelope import SETTINGS, fill_missing, settings_of, with_settings

Item = dict[str, Any]

MAX_LISTED: Final = 100
_DEFAULT_LISTED: Final = 20
_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_NOT_SENT: Final = frozenset({"background", "metadata", "parallel_tool_calls", "store", "tool_choice", "tools"})
"""Settings that the gateway may serve itself, so that a provider's default says nothing about them."""


def input_of(fields: Mapping[str, Any]) -> list[Any] | None:
    """The input of a request as items; None: it is neither a string nor a list."""
    value = fields.get("input")
    if value is None:
        return []
    if type(value) is str:
        return [{"type": "message", "role": "user", "content": value}]
    return value if type(value) is list else None


def id_of(item: Any) -> str:
    """The item's own id; empty: it has none."""
    id = item.get("id") if type(item) is dict else None
    return id if type(id) is str else ""


def without_id(item: Any) -> Any:
    """The item without its id."""
    return {key: value for key, value in item.items() if key != "id"} if id_of(item) else item


def is_reference(item: Any) -> bool:
    """Whether an item only refers to another. One without a type is a reference unless it has a role."""
    if type(item) is not dict:
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and bool(id_of(item)))


def is_bare_reasoning(item: Any) -> bool:
    """Whether an item is reasoning that has only its id."""
    if type(item) is not dict or item.get("type") != "reasoning" or not id_of(item):
        return False
    return not any(item.get(key) for key in ("encrypted_content", "summary", "content"))


def referenced_ids(items: Iterable[Any]) -> list[str]:
    """The ids that items refer to, each once."""
    return list(dict.fromkeys(id_of(item) for item in items if is_reference(item) or is_bare_reasoning(item)))


def with_request(request: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """A response that the gateway made, with the settings that it repeats of its request, and its conversation."""
    return _with_conversation(request, with_settings(settings_of(request), response))


def complete_response(request: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """A response as its client got it, with what it leaves out of its request. Its own sampling settings stay."""
    settings = settings_of(request)
    body = fill_missing(settings, dict(response))
    unset = {
        key: value
        for key, value in settings.items()
        if value is not None and (body.get(key) is None or (key in _NOT_SENT and body[key] == SETTINGS[key]))
    }
    return _with_conversation(request, {**body, **unset})


def _with_conversation(request: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    conversation = request.get("conversation")
    if type(conversation) is str and body.get("conversation") is None:
        body["conversation"] = {"id": conversation}
    elif type(conversation) is dict and body.get("conversation") is None:
        body["conversation"] = conversation
    return body


def wants_stored(request: Mapping[str, Any]) -> bool:
    """Whether a request wants a response that can be continued by its id."""
    return request.get("store") is not False and request.get("conversation") is None


def unstored_events(data: bytes) -> bytes:
    """The last events of a stream, which say that the response was not stored."""
    framer = SseFramer(len(data) + 1)
    return b"".join(_unstored(frame) for frame in [*framer.feed(data), *framer.finish()])


def _unstored(frame: Frame) -> bytes:
    if b'"response.completed"' not in frame.data and b'"response.incomplete"' not in frame.data:
        return frame.raw
    event = msgspec.json.decode(frame.data)
    event["response"]["store"] = False
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))


# --- lists ------------------------------------------------------------------------------------------


def with_listed_ids(items: Sequence[Any], stem: str) -> list[Item]:
    """Items for a list of them, each with an id. References stay as they are."""
    return [
        item if is_reference(item) else _with_listed_id(item, f"{stem}{index}")
        for index, item in enumerate(items)
        if type(item) is dict
    ]


def _with_listed_id(item: Item, stem: str) -> Item:
    kind = item.get("type") or "message"
    prefix = _PREFIXES.get(kind, "item") if type(kind) is str else "item"
    whole = {**item, "type": kind, "id": id_of(item) or f"{prefix}_{stem}"}
    if kind != "message":
        return {"status": "completed", **whole} if prefix in ("fc", "fco") else whole
    part: Item = {"type": "input_text"}
    if item.get("role") == "assistant":
        part = {"type": "output_text", "annotations": []}
    if type(item.get("content")) is str:
        whole["content"] = [{**part, "text": item["content"]}]
    return {"status": "completed", **whole}


def page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """One page of a list, the newest item first unless the query says otherwise."""
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", f"Invalid value: '{order[:40]}'. Supported values are: 'asc' and 'desc'.")
    limit = _limit(query.get("limit", ""))
    ordered = list(items) if order == "asc" else list(reversed(items))
    after = query.get("after", "")
    begin = 0
    if after:
        begin = next((index for index, item in enumerate(ordered, 1) if item["id"] == after), 0)
        if not begin:
            raise missing_item(after, "after")
    shown = ordered[begin : begin + limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": begin + limit < len(ordered),
    }


def _limit(value: str) -> int:
    if not value:
        return _DEFAULT_LISTED
    if not value.isascii() or not value.isdigit() or not 1 <= (limit := int(value[:9])) <= MAX_LISTED:
        raise invalid("limit", f"Invalid 'limit': expected a whole number from 1 to {MAX_LISTED}.")
    return limit

"""Items of stored responses: what a request gives, what it refers to, and how they are listed afterwards.

Law: pure. An item that a client sent stays as it is; what a listing needs besides (an id, parts) is put into a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from toolglot.gateway.endpoints.response_errors import invalid, missing_item
from toolglot.protocols.framing.text_frames import Frame, SseFramer

Item = dict[str, Any]

MOST_LISTED: Final = 100
_LISTED: Final = 20
_PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
}
_ECHOED: Final[dict[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": None,
    "store": True,
    "temperature": None,
    "text": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": None,
    "user": None,
}
"""What a response repeats of its request, and what it says where nothing was asked for."""


def input_of(fields: Mapping[str, Any]) -> list[Any] | None:
    """The input of a request as items; None where it is nothing that can be one."""
    given = fields.get("input")
    if given is None:
        return []
    if type(given) is str:
        return [{"type": "message", "role": "user", "content": given}]
    return given if type(given) is list else None


def id_of(item: Any) -> str:
    """The item's own id; empty: it has none."""
    id = item.get("id") if type(item) is dict else None
    return id if type(id) is str else ""


def without_id(item: Any) -> Any:
    """The item under no name of its own."""
    return {key: value for key, value in item.items() if key != "id"} if id_of(item) else item


def is_reference(item: Any) -> bool:
    """Whether an item only names another. One without a type is a reference unless somebody speaks in it."""
    if type(item) is not dict:
        return False
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item and bool(id_of(item)))


def is_bare(item: Any) -> bool:
    """Whether an item is reasoning of which only the name came."""
    if type(item) is not dict or item.get("type") != "reasoning" or not id_of(item):
        return False
    return not any(item.get(key) for key in ("encrypted_content", "summary", "content"))


def referred(items: Iterable[Any]) -> list[str]:
    """The ids that items refer to, each once."""
    return list(dict.fromkeys(id_of(item) for item in items if is_reference(item) or is_bare(item)))


def with_request(asked: Mapping[str, Any], answered: Mapping[str, Any]) -> dict[str, Any]:
    """A response with what such an object repeats of its request, where it does not say it itself."""
    body = dict(answered)
    for key, unsaid in _ECHOED.items():
        if asked.get(key) is not None and (body.get(key) is None or body[key] == unsaid):
            body[key] = asked[key]
    return body


def wants_stored(asked: Mapping[str, Any]) -> bool:
    """Whether a request asks for a response that can be continued by its id."""
    return asked.get("store") is not False and asked.get("conversation") is None


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


# --- listings ---------------------------------------------------------------------------------------


def listed(items: Sequence[Any], stem: str) -> list[Item]:
    """Items as they are shown, each with an id. References stay what they are."""
    return [
        item if is_reference(item) else _listed(item, f"{stem}{place}")
        for place, item in enumerate(items)
        if type(item) is dict
    ]


def _listed(item: Item, stem: str) -> Item:
    kind = item.get("type") or "message"
    prefix = _PREFIXES.get(kind, "item") if type(kind) is str else "item"
    whole = {**item, "type": kind, "id": id_of(item) or f"{prefix}_{stem}"}
    if kind != "message":
        return {"status": "completed", **whole} if prefix in ("fc", "fco") else whole
    said: Item = {"type": "input_text"}
    if item.get("role") == "assistant":
        said = {"type": "output_text", "annotations": []}
    if type(item.get("content")) is str:
        whole["content"] = [{**said, "text": item["content"]}]
    return {"status": "completed", **whole}


def page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """One page of a listing, the newest item first unless it is asked for otherwise."""
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", f"Invalid value: '{order[:40]}'. Supported values are: 'asc' and 'desc'.")
    limit = _limit(query.get("limit", ""))
    ordered = list(items) if order == "asc" else list(reversed(items))
    after = query.get("after", "")
    begin = 0
    if after:
        begin = next((place for place, item in enumerate(ordered, 1) if item["id"] == after), 0)
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


def _limit(said: str) -> int:
    if not said:
        return _LISTED
    if not said.isascii() or not said.isdigit() or not 1 <= (limit := int(said[:9])) <= MOST_LISTED:
        raise invalid("limit", f"Invalid 'limit': expected a whole number from 1 to {MOST_LISTED}.")
    return limit

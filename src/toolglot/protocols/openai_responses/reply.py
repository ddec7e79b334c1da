"""Replies of the OpenAI Responses protocol, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    optional,
    present,
    required,
    with_extra,
)
from toolglot.protocols.fields.refusals import only_refuses
from toolglot.protocols.fields.token_counts import read_details, write_details
from toolglot.protocols.openai_responses.client_tools import BY_CALL
from toolglot.protocols.openai_responses.envelope import SETTINGS, fill_part, with_settings
from toolglot.protocols.openai_responses.form import PROTOCOL, ResponsesReply, ResponsesUsage
from toolglot.protocols.openai_responses.items import ItemWriter, read_model_item

_BODY = frozenset({"id", "model", "output", "status", "usage"})
_INPUT: Final = "input_tokens_details"
_OUTPUT: Final = "output_tokens_details"
_USAGE = frozenset({"input_tokens", "output_tokens", _INPUT, _OUTPUT})
_HEAD: Final[Fields] = {"object": "response", "created_at": 0}
"""What every response begins with. When it was made is known only to the one who serves it."""

_ITEM_PREFIXES: Final = {
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    **{kind: tool.prefix for kind, tool in BY_CALL.items()},
}

_STOPS: Final[dict[str, StopReason]] = {
    "completed": "stop",
    "incomplete": "length",
    "failed": "error",
    "cancelled": "error",
    "queued": "pause",
    "in_progress": "pause",
}
_CUT: Final[dict[str, StopReason]] = {"max_output_tokens": "length", "content_filter": "filter"}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "completed",
    "tool_calls": "completed",
    "length": "incomplete",
    "filter": "incomplete",
    "pause": "in_progress",
    "error": "failed",
}
_CUT_BACK: Final = {reason: written for written, reason in _CUT.items()}
MEANINGS: Final[dict[str, tuple[StopReason, ...]]] = {
    "completed": ("stop", "tool_calls", "filter"),
    "incomplete": ("length", "filter"),
    "failed": ("error",),
    "cancelled": ("error",),
}
"""What the status of a response that is over can mean; a refusal is a `filter` that is complete."""


@from_root
def decode(body: Fields) -> Reply:
    """A response object. The stop reason is derived from the calls in it; the form keeps the original."""
    items = each(required(body, "output", list), read_model_item, ".output")
    turn = Turn("assistant", tuple(block for blocks in items for block in blocks))
    status = optional(body, "status", str)
    cut_by = held_or_none(body, "incomplete_details", lambda details: optional(details, "reason", str))
    return Reply(
        turn,
        stop_of(status, cut_by, turn),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        required(body, "model", str),
        leftover(body, _BODY, PROTOCOL),
        ResponsesReply(status),
    )


def stop_of(status: str | None, cut_by: str | None, turn: Turn) -> StopReason | None:
    """The stop reason, by the content of the reply rather than by its status. No status stands for calls."""
    if status is None:
        return None
    reason = _STOPS.get(status, "stop")
    if reason == "length":
        return _CUT.get(cut_by or "", reason)
    if reason != "stop":
        return reason
    if turn.calls:
        return "tool_calls"
    return "filter" if only_refuses(turn.blocks) else "stop"


def _read_usage(fields: Fields) -> Usage:
    (cached, written), input_rest = read_details(fields, _INPUT, "cached_tokens", "cache_write_tokens")
    (thought,), output_rest = read_details(fields, _OUTPUT, "reasoning_tokens")
    return Usage(
        optional(fields, "input_tokens", int),
        optional(fields, "output_tokens", int),
        cached,
        written,
        thought,
        leftover(fields, _USAGE, PROTOCOL),
        ResponsesUsage(input_rest, output_rest),
    )


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a response object that a client of this protocol reads."""
    writer = ItemWriter((reply.turn,), for_reply=True)
    writer.write(reply.turn)
    body: Fields = {"id": reply.id, "model": reply.model, "output": writer.items}
    status = _STOPS_BACK[reply.stop] if reply.stop is not None else None
    cut_by = _CUT_BACK.get(reply.stop) if reply.stop is not None else None
    changed: Fields = {}
    if type(reply.form) is ResponsesReply:
        own = reply.form.status
        if own is not None and _can_mean(own, reply.stop):
            status = own
        elif own is not None:
            changed = {"incomplete_details": None if cut_by is None else {"reason": cut_by}}
            if status != "completed" and "completed_at" in (reply.extra or {}).get(PROTOCOL, {}):
                changed["completed_at"] = None
    else:
        body = {**_HEAD, **with_settings(SETTINGS, body)}
        body["completed_at"] = 0 if status == "completed" else None
        body["incomplete_details"] = None if cut_by is None else {"reason": cut_by}
        body["output"] = _completed(reply, writer.items, "incomplete" if cut_by is not None else "completed")
    if status is not None:
        body["status"] = status
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return {**with_extra(body, reply.extra, PROTOCOL), **changed}


def _can_mean(status: str, stop: StopReason | None) -> bool:
    """Whether a provider's status still says how the reply ended."""
    return stop is None or stop == _STOPS.get(status) or stop in MEANINGS.get(status, MEANINGS["completed"])


def _completed(reply: Reply, items: list[Fields], status: str) -> list[Fields]:
    """The items with what clients expect of them in a reply made elsewhere. Only the last of them can be cut."""
    stem, last = reply.id.removeprefix("resp_"), len(items) - 1
    return [
        _completed_item(item, f"{stem}_{index}", status if index == last else "completed")
        for index, item in enumerate(items)
    ]


def _completed_item(item: Fields, stem: str, status: str) -> Fields:
    kind = item.get("type", "")
    prefix = _ITEM_PREFIXES.get(kind)
    if prefix is None:
        return item
    if kind in BY_CALL:  # they are shown when they are complete, or never
        status = "completed"
    whole = {"id": f"{prefix}_{stem}", "status": status, **item}
    content = item.get("content")
    if prefix == "msg" and type(content) is list:
        whole["content"] = [fill_part(part) for part in content]
    return whole


def _write_usage(usage: Usage) -> Fields:
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    cached = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    thought = {"reasoning_tokens": usage.reasoning_tokens}
    form = usage.form
    if type(form) is not ResponsesUsage:
        # The protocol always has these counts: what the provider did not say is 0.
        fields: Fields = _counted(counts)
        fields["total_tokens"] = sum(fields.values())
        return {**fields, _INPUT: _counted(cached), _OUTPUT: _counted(thought)}
    details = {
        _INPUT: write_details(cached, form.input_details_rest),
        _OUTPUT: write_details(thought, form.output_details_rest),
    }
    return with_extra(present({**counts, **details}), usage.extra, PROTOCOL)


def _counted(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {name: count or 0 for name, count in counts.items()}

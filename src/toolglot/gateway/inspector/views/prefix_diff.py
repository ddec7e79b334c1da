"""A request against the one that it continues: what is new, and whether the provider finds its prompt cache again.

    diff_of(captured, previous, price=prices.of(model))

A provider caches the beginning of a prompt: tools, system prompt, messages. The next request is cheap as long as that
beginning is byte for byte the same. Cache markers are no part of the prompt: they may move.

Laws: pure and linear. Tokens and money are estimates, from the number of bytes; `counted` is what the provider
reported, where it did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolglot.conversation import Turn
from toolglot.conversation.cache_markers import marking_of
from toolglot.errors import ToolglotError
from toolglot.gateway.inspector.conversation_index import turn_bytes
from toolglot.gateway.inspector.views.blocks import BlockWriter, CallNames
from toolglot.gateway.inspector.views.json_spans import JsonSpans, spans_of
from toolglot.gateway.inspector.views.reading import receive, text_of
from toolglot.profiles import Overrides
from toolglot.profiles import get as get_profile
from toolglot.protocols.base import get as get_protocol
from toolglot.upstream.prices import MILLION, Price

BYTES_PER_TOKEN: Final = 4
MAX_TURNS: Final = 200
"""Turns that are shown as new, or as gone."""
EXCERPT: Final = 120
_STEP: Final = 64 * 1024
_OUTSIDE: Final = frozenset({"model", "stream", "metadata", "max_tokens", "max_completion_tokens", "stream_options"})
"""Fields that are no part of a prompt."""

Fields = dict[str, Any]


def diff_of(
    captured: Mapping[str, Any],
    previous: Mapping[str, Any] | None,
    overrides: Overrides | None = None,
    price: Price | None = None,
) -> Fields:
    """What is new in a request, and what of the one before it stayed.

    price: of the model that it was sent to.
    """
    found: Fields = {
        "previous": None,
        "prefix_kept": True,
        "common_bytes": 0,
        "first_difference": None,
        "prefix_bytes": 0,
        "lost_tokens": 0,
        "lost_usd": 0.0 if price is not None else None,
        "same_target": True,
        "added": [],
        "removed": [],
        "changed": [],
        "counted": captured.get("cache_lost") if isinstance(captured.get("cache_lost"), dict) else None,
    }
    if previous is None:
        return found
    found["previous"] = text_of(previous, "id")
    found["same_target"] = text_of(previous, "target") == text_of(captured, "target")
    found |= _turns(captured, previous, overrides)
    before, after = (text_of(each, "rendered") or text_of(each, "request") for each in (previous, captured))
    if before and after and found["same_target"]:
        found |= _prefix(before, after, _protocol(captured, overrides), price)
    return found


def _protocol(captured: Mapping[str, Any], overrides: Overrides | None) -> str:
    try:
        name = text_of(captured, "target") or text_of(captured, "protocol")
        return get_profile(name, overrides=overrides).protocol
    except ToolglotError:
        return ""


# --- turns ------------------------------------------------------------------------------------------


def _turns(captured: Mapping[str, Any], previous: Mapping[str, Any], overrides: Overrides | None) -> Fields:
    """The turns that are new, and those that are gone."""
    new, old = receive(captured, overrides), receive(previous, overrides)
    if new is None or old is None:
        return {}
    after, before = new.conversation.turns, old.conversation.turns
    both = min(len(before), len(after))
    changed = [index for index in range(both) if _is_other(before[index], after[index])]
    if changed and len(changed) == both - changed[0]:  # all that follows is another, or stands elsewhere
        tail = _equal_tail(before, after, both - changed[0])
        added, removed = range(changed[0], len(after) - tail), range(changed[0], len(before) - tail)
        return {"added": _shown(after, added), "removed": _shown(before, removed)}
    added_at, removed_at = [*changed, *range(both, len(after))], [*changed, *range(both, len(before))]
    return {"added": _shown(after, added_at), "removed": _shown(before, removed_at)}


def _is_other(one: Turn, other: Turn) -> bool:
    """Whether two turns say something else."""
    return one != other and turn_bytes(one) != turn_bytes(other)


def _equal_tail(before: Sequence[Turn], after: Sequence[Turn], most: int) -> int:
    """The number of equal turns at the end."""
    count = 0
    while count < most and not _is_other(before[-1 - count], after[-1 - count]):
        count += 1
    return count


def _shown(turns: Sequence[Turn], indexes: Sequence[int]) -> list[Fields]:
    writer = BlockWriter(CallNames())
    return [
        {"index": index, "role": turns[index].role, "blocks": writer.turn(turns[index]), "marks": []}
        for index in indexes[:MAX_TURNS]
    ]


# --- bytes ------------------------------------------------------------------------------------------


def common_length(before: str, after: str) -> int:
    """The number of equal characters at the head."""
    end, position = min(len(before), len(after)), 0
    while position < end and before[position : position + _STEP] == after[position : position + _STEP]:
        position += _STEP
    for index in range(position, min(position + _STEP, end)):
        if before[index] != after[index]:
            return index
    return end


def _prefix(before: str, after: str, protocol: str, price: Price | None) -> Fields:
    """Whether the prompt of one body is the beginning of that of another."""
    if not protocol:
        return {"common_bytes": len(before[: common_length(before, after)].encode("utf-8", "replace"))}
    record = get_protocol(protocol)
    old, new = spans_of(before, record.turns), spans_of(after, record.turns)
    marking = marking_of(protocol)
    markers = frozenset(filter(None, (marking.field, marking.block))) if marking is not None else frozenset[str]()
    prompt = [record.tools_path[0], *(name for name in old.others if name not in _OUTSIDE)]
    names = [*dict.fromkeys(name for name in prompt if name in old.others or name in new.others)]
    changed = [name for name in names if _differs(old.others.get(name), new.others.get(name), markers)]
    tools = record.tools_path[0]
    first = next((name for name in sorted(changed, key=lambda name: name != tools) if _is_read(name, tools)), None)
    index = _first_item(old, new, markers)
    sizes = [end - start for start, end in old.items]
    head = sum(end - start for name, (start, end) in old.fields.items() if _is_read(name, tools))
    whole = head + sum(sizes)
    kept = 0 if first is not None else whole if index is None else head + sum(sizes[:index])
    lost = (whole - kept) // BYTES_PER_TOKEN
    found: Fields = {
        "common_bytes": len(before[: common_length(before, after)].encode("utf-8", "replace")),
        "prefix_bytes": whole,
        "prefix_kept": kept == whole,
        "lost_tokens": lost,
        "lost_usd": None if price is None else float(_extra_cost(price) * lost / MILLION),
        "changed": [f"$.{name}" for name in changed],
    }
    if first is not None:
        places = old.fields.get(first), new.fields.get(first)
        found["first_difference"] = _difference(before, after, *places, f"$.{first}")
    elif index is not None:
        spans = old.items[index], new.items[index] if index < len(new.items) else None
        found["first_difference"] = _difference(before, after, *spans, f"$.{record.turns}[{index}]")
        found["changed"].append(f"$.{record.turns}[{index}]")
    return found


def _is_read(name: str, tools: str) -> bool:
    """Whether a field is a part of the prompt that stands before the messages."""
    return name == tools or "system" in name.lower() or name in ("instructions", "preamble")


def _extra_cost(price: Price) -> Any:
    """What a million tokens cost more that are not read from a cache."""
    return price.input - (price.input if price.cache_read is None else price.cache_read)


def _first_item(old: JsonSpans, new: JsonSpans, markers: frozenset[str]) -> int | None:
    """The first message that did not stay; None: all did."""
    for index, value in enumerate(old.values):
        if index >= len(new.values) or _differs(value, new.values[index], markers):
            is_last = index == len(old.values) - 1 and index < len(new.values)
            return None if is_last and _goes_on(value, new.values[index], markers) else index
    return None


def _goes_on(one: Any, other: Any, markers: frozenset[str]) -> bool:
    """Whether the last message is the same with more behind it, as where a text joins the results of calls."""
    one, other = _unmarked(one, markers), _unmarked(other, markers)
    if not (isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()):
        return False
    changed = [key for key in one if _encode(one[key]) != _encode(other[key])]
    if len(changed) != 1 or not all(isinstance(each[changed[0]], list) for each in (one, other)):
        return False
    before, after = one[changed[0]], other[changed[0]]
    return bool(before) and _encode(before) == _encode(after[: len(before)])


def _differs(one: Any, other: Any, markers: frozenset[str]) -> bool:
    """Whether two values differ in more than their cache markers."""
    if _encode(one) == _encode(other):
        return False
    return not markers or _encode(_unmarked(one, markers)) != _encode(_unmarked(other, markers))


def _encode(value: Any) -> str:
    """The value as the provider reads it: the order of keys counts."""
    return json.dumps(value, ensure_ascii=True)


def _unmarked(value: Any, markers: frozenset[str]) -> Any:
    """A value without cache markers; a text in a list of one block is the text."""
    if isinstance(value, dict):
        found = {key: _unmarked(each, markers) for key, each in value.items() if key not in markers}
        content = found.get("content")
        if isinstance(content, str):
            found["content"] = [{"type": "text", "text": content}]
        return found
    if isinstance(value, list):
        kept = [_unmarked(each, markers) for each in value]
        return [each for each in kept if each != {}]
    return value


def _difference(before: str, after: str, old: tuple[int, int] | None, new: tuple[int, int] | None, path: str) -> Fields:
    """Where two values begin to differ."""
    start, end = old or (0, 0)
    other_start, other_end = new or (0, 0)
    common = common_length(before[start:end], after[other_start:other_end])
    lead = min(common, EXCERPT // 3)
    return {
        "offset": len(before[: start + common].encode("utf-8", "replace")),
        "path": path,
        "before": before[start:end][common - lead : common - lead + EXCERPT],
        "after": after[other_start:other_end][common - lead : common - lead + EXCERPT],
        "at": lead,
    }

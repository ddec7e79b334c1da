"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolglot.conversation import Block, Conversation, Opaque, ServerTool, ToolResult, ToolSpec
from toolglot.protocols.anthropic.form import CACHE_MARKING, PROTOCOL
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    CallForm,
    Fixes,
    Leniency,
    ReplyCalls,
    fix_content,
    fix_counts,
    fix_id,
    fix_list,
    fix_model,
    fix_name,
    fix_object,
    fix_reason,
    fix_reply_id,
    fix_result,
    fix_role,
    fix_type,
    objects_of,
    set_field,
)

_CACHE_MARKER: Final = CACHE_MARKING.field
_MAX_CACHE_MARKERS: Final = 4
_PARTS: Final = ("$.messages", "$.system", "$.tools")
"""The parts of a request, by how much a marker at their end saves."""


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        fix_content(message, path, fixes)
        for block_path, block in objects_of(message.get("content"), f"{path}.content"):
            if block.get("type") == "tool_use":
                fix_id(block, "id", block_path, fixes)
                fix_name(block, block_path, fixes)
                fix_object(block, "input", block_path, fixes)
            elif block.get("type") == "tool_result":
                fix_id(block, "tool_use_id", block_path, fixes)
                fix_result(block, block_path, fixes)
    _limit_cache_markers(body, fixes)


def _limit_cache_markers(body: Fields, fixes: Fixes) -> None:
    """A body with as many of its cache markers as are accepted: the last of the messages, of the system prompt and of
    the tools, which other conversations share, and then the others from the end."""
    marked = [(path, holder) for path, holder in _markable(body) if holder.get(_CACHE_MARKER) is not None]
    has_own = body.get(_CACHE_MARKER) is not None  # that one is at the end of the messages
    accepted = _MAX_CACHE_MARKERS - has_own
    if len(marked) <= accepted:
        return
    last = {path.partition("[")[0]: path for path, _ in marked}
    first = [last[part] for part in _PARTS[has_own:] if part in last]
    kept = frozenset([*first, *[path for path, _ in reversed(marked) if path not in first]][:accepted])
    for path, holder in marked:
        if path not in kept:
            del holder[_CACHE_MARKER]
            reason = f"at most {_MAX_CACHE_MARKERS} cache markers are accepted; one that saves less was left out"
            fixes.append((f"{path}.{_CACHE_MARKER}", reason))


def _markable(body: Fields) -> Iterator[tuple[str, Fields]]:
    """What may carry a cache marker, in the order in which the model reads it."""
    yield from objects_of(body.get("tools"), "$.tools")
    yield from objects_of(body.get("system"), "$.system")
    for path, message in objects_of(body.get("messages"), "$.messages"):
        for block_path, block in objects_of(message.get("content"), f"{path}.content"):
            if block.get("type") == "tool_result":
                yield from objects_of(block.get("content"), f"{block_path}.content")
            yield block_path, block


def _is_within_limits(conversation: Conversation, extras: int) -> bool:
    """Whether there are no more cache markers than are accepted; few values mean few markers."""
    extras += sum([tool.extra is not None for tool in conversation.tools])
    return extras < _MAX_CACHE_MARKERS or _count_markers(conversation) <= _MAX_CACHE_MARKERS


def _count_markers(conversation: Conversation) -> int:
    count = int(_CACHE_MARKER in (conversation.extra or {}).get(PROTOCOL, {}))
    count += sum(map(_is_marked, conversation.tools))
    for turn in conversation.turns:
        for block in turn.blocks:
            if block.extra is not None or type(block) in (Opaque, ServerTool):
                count += _is_marked(block)
            if type(block) is ToolResult and type(block.content) is tuple:
                count += sum(map(_is_marked, block.content))
    return count


def _is_marked(value: Block | ToolSpec) -> bool:
    if isinstance(value, Opaque | ServerTool):
        return isinstance(value.value, dict) and value.value.get(_CACHE_MARKER) is not None
    if isinstance(value, ToolSpec) and value.opaque is not None:
        return _is_marked(value.opaque)
    own = (value.extra or {}).get(PROTOCOL, {})
    return any(kept.get(_CACHE_MARKER) is not None for kept in (own, *own.values()) if isinstance(kept, dict))


_BLOCK_TYPES: Final = (("text", "text"), ("thinking", "thinking"), ("input", "tool_use"), ("data", "redacted_thinking"))


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    _fix_completion(body, fixes)
    if not isinstance(body.get("content"), list | dict | str):
        return
    if body.get("type") is None:
        set_field(body, "type", "message", "$", "a reply without a type was read as a message", fixes)
    fix_role(body, "$", fixes)
    fix_reply_id(body, "msg_", fixes)
    fix_model(body, fixes)
    fix_reason(body, "stop_reason", "$", fixes)
    fix_counts(body, "usage", "$", fixes)
    content = body["content"]
    if isinstance(content, str):
        set_field(body, "content", [{"type": "text", "text": content}], "$", "a string was read as a text block", fixes)
    else:
        fix_list(body, "content", "$", fixes)
    for path, block in objects_of(body.get("content"), "$.content"):
        fix_type(block, _BLOCK_TYPES, path, fixes)
        if block.get("type") == "tool_use":
            fix_id(block, "id", path, fixes)
            yield path, block, CallForm("input", dict)


def _fix_completion(body: Fields, fixes: Fixes) -> None:
    """An answer of the API that was before messages, as Bedrock's older models of Claude give it."""
    if isinstance(body.get("completion"), str) and "content" not in body:
        content = [{"type": "text", "text": body.pop("completion")}]
        body["type"] = "message"
        set_field(body, "content", content, "$", "a completion was read as a message with its text", fixes)


LENIENCY: Final = Leniency(fix_request=_fix_request, fix_reply=_fix_reply, is_within_limits=_is_within_limits)

"""Cache markers: how far a prompt is to be cached, however a protocol writes that.

    markers_of(block)                          # (CacheMarker(ttl="1h"),)
    without_markers(block, "anthropic")        # the block without those of one protocol
    marked(block, CacheMarker("1h"), "bedrock")  # the block, and a block that marks it

A marker is a field of what it marks (`cache_control`), a block of its own (`cachePoint`), or part of a form. The
`form.py` of a protocol says which in its `CACHE_MARKING`. The bytes stay where the codec put them: in `extra`, or in
the form.
Law: no other module knows the names of these fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from toolglot.conversation.forms import CacheMarker, CacheMarking, library, protocols
from toolglot.conversation.values import (
    Block,
    Conversation,
    Extra,
    Media,
    Opaque,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.profiles import Profile

Markable = Block | ToolSpec | Turn | Conversation
M = TypeVar("M", bound=Markable)


_FIELDS: Final = ("type", "ttl")


def marking_of(protocol: str) -> CacheMarking | None:
    """How a protocol marks values; None: it has no markers."""
    return library(protocol).cache_marking


def why_no_markers(profile: Profile) -> str:
    """Why a target gets no cache markers."""
    rule, model = profile.origin("cache.style").id, profile.model or profile.name
    if profile.cache.style == "automatic":
        return f"{profile.name} caches prompts by itself, without cache markers ({rule})"
    if profile.cache.style == "none":
        return f"no prompt cache of {model[:80]} is known, so there are no cache markers ({rule})"
    return f"cache markers are not accepted here ({profile.origin('cache.positions').id})"


def is_marker(block: Block) -> bool:
    """Whether a block is nothing but a cache marker."""
    if type(block) is not Opaque:
        return False
    marking = marking_of(block.protocol)
    return marking is not None and bool(marking.block) and block.kind == marking.block


def markers_of(value: Markable, protocol: str = "") -> tuple[CacheMarker, ...]:
    """The markers on a value: those of one protocol, or of all. The content of a result has its own."""
    form = value.form
    in_form = form.cache_markers if form is not None and protocol in ("", form.protocol) else ()
    if value.extra is None:
        return in_form
    names: Iterable[str] = (protocol,) if protocol else value.extra
    return (*in_form, *[marker for name in names for marker in _in_fields(value.extra, name)])


def _in_fields(extra: Extra, protocol: str) -> tuple[CacheMarker, ...]:
    marking = marking_of(protocol)
    fields: dict[str, Any] = extra.get(protocol, {})
    written = fields.get(marking.field) if marking is not None else None
    return () if marking is None or written is None else (read_marker(written, marking),)


def read_marker(written: Any, marking: CacheMarking) -> CacheMarker:
    """A marker as all protocols write it: an object with a type, which may have a `ttl`."""
    if not isinstance(written, dict):
        return CacheMarker(is_malformed=True)
    ttl = written.get("ttl")
    more = tuple([name for name, value in written.items() if name not in _FIELDS and value is not None])
    is_malformed = written.get("type") != marking.type or not (ttl is None or isinstance(ttl, str))
    return CacheMarker(ttl if isinstance(ttl, str) else None, more, is_malformed)


def may_have_markers(turns: Iterable[Turn], tools: Iterable[ToolSpec], protocol: str) -> bool:
    """A quick check before the thorough one; most requests have no markers."""
    for tool in tools:
        if (tool.extra is not None or tool.form is not None) and markers_of(tool, protocol):
            return True
    for turn in turns:
        if (turn.extra is not None or turn.form is not None) and markers_of(turn, protocol):
            return True
        for block in turn.blocks:
            kind = type(block)
            if block.extra is not None and protocol in block.extra:
                return True
            if kind is Text or kind is ToolCall:
                continue
            if kind is Opaque or (type(block) is ToolResult and _hold_fields(block.content, protocol)):
                return True
    return False


def _hold_fields(content: str | tuple[ResultPart, ...] | None, protocol: str) -> bool:
    """Whether parts of a result may be marked."""
    if type(content) is tuple:
        for part in content:
            if type(part) is Opaque or (part.extra is not None and protocol in part.extra):
                return True
    return False


def without_markers(value: M, protocol: str) -> M:
    """A value without a protocol's markers; itself if it has none."""
    if not markers_of(value, protocol):
        return value
    form, extra, marking = value.form, value.extra, marking_of(protocol)
    if form is not None and form.protocol == protocol and form.cache_markers:
        value = replace(value, form=form.without_cache_markers())
    own = extra.get(protocol) if extra is not None else None
    if marking is None or extra is None or own is None or marking.field not in own:
        return value
    unmarked = {field: written for field, written in own.items() if field != marking.field}
    rest: Extra = {**extra, protocol: unmarked}
    return replace(value, extra=rest if unmarked or len(rest) > 1 else None)


def marker_fields() -> frozenset[str]:
    """The fields that hold the markers of all protocols."""
    return frozenset([marking.field for name in protocols() if (marking := marking_of(name)) is not None])


# --- marker blocks ----------------------------------------------------------------------------------


def marker_in(block: Opaque) -> Any:
    """What a block that is nothing but a marker holds."""
    marking = marking_of(block.protocol)
    value: Any = block.value
    return value.get(marking.field) if marking is not None and isinstance(value, dict) else None


def markers_in_block(block: Opaque) -> tuple[CacheMarker, ...]:
    """The marker that such a block is."""
    marking = marking_of(block.protocol)
    return () if marking is None else (read_marker(marker_in(block), marking),)


def unmarked_value(value: Any) -> Any:
    """What a protocol's own block holds, without its markers and those on its content."""
    if not isinstance(value, dict):
        return value
    fields = marker_fields()
    content = value.get("content")
    if isinstance(content, list) and any(isinstance(part, dict) and not fields.isdisjoint(part) for part in content):
        value = {**value, "content": [unmarked_value(part) for part in content]}
    if fields.isdisjoint(value):
        return value
    return {name: item for name, item in value.items() if name not in fields}


def with_field(value: M, written: Any, protocol: str) -> M:
    """A value with the marker of a protocol as a field."""
    marking = marking_of(protocol)
    if marking is None:
        return value
    extra = value.extra or {}
    own: dict[str, Any] = extra.get(protocol, {})
    return replace(value, extra={**extra, protocol: {**own, marking.field: written}})


def with_markers_of(value: M, others: Iterable[Markable]) -> M:
    """A value with the markers of others, in whose place it is; of several, the last."""
    for other in others:
        for protocol, fields in (other.extra or {}).items():
            marking = marking_of(protocol)
            if marking is not None and fields.get(marking.field) is not None:
                value = with_field(value, fields[marking.field], protocol)
    return value


def without_any_markers(value: M) -> M:
    """A value without the markers of any protocol; itself if it has none."""
    if value.extra is None and value.form is None:
        return value
    for name in {*(value.extra or ()), *((value.form.protocol,) if value.form is not None else ())}:
        value = without_markers(value, name)
    return value


# --- writing ----------------------------------------------------------------------------------------


def takes_marker(block: Block, protocol: str) -> bool:
    """Whether a protocol can mark a block. No provider takes markers on empty text or on thinking."""
    marking, kind = marking_of(protocol), type(block)
    if marking is None:
        return False
    if kind is Text:
        assert isinstance(block, Text)  # noqa: S101 - for the type checker
        return bool(block.text.strip()) and not (marking.marks_parts and block.is_refusal)
    if kind is ToolCall:
        return marking.marks_calls
    if isinstance(block, ToolResult):
        return not marking.marks_parts or _last_part(block, protocol) is not None
    return kind is Media


def _last_part(result: ToolResult, protocol: str) -> ResultPart | None:
    """The part of a result that can be marked for the whole of it."""
    content = result.content
    if isinstance(content, str):
        return Text(content) if content.strip() else None
    last = content[-1] if content else None
    return last if last is not None and takes_marker(last, protocol) else None


def takes_tool_marker(tool: ToolSpec) -> bool:
    """Whether a tool can be marked. What only its provider knows is sent as it came, and a deferred tool is no part of
    the prompt."""
    return tool.issuer is None and tool.opaque is None and not tool.deferred


def marked(block: Block, marker: CacheMarker, protocol: str) -> tuple[Block, ...]:
    """A block with a marker, as a protocol writes it: the block alone, or with the marker behind it."""
    marking = marking_of(protocol)
    if marking is None:
        return (block,)
    written = _written(marker, marking)
    if marking.block:
        return block, Opaque(protocol, {marking.field: written}, marking.block)
    last = _last_part(block, protocol) if marking.marks_parts and isinstance(block, ToolResult) else None
    if last is not None and isinstance(block, ToolResult):
        before = block.content[:-1] if isinstance(block.content, tuple) else ()
        return (replace(block, content=(*before, with_field(last, written, protocol))),)
    return (with_field(block, written, protocol),)


def marked_tool(tool: ToolSpec, marker: CacheMarker, protocol: str) -> ToolSpec:
    """A tool with a marker, as a protocol writes it."""
    marking = marking_of(protocol)
    if marking is None:
        return tool
    written = _written(marker, marking)
    if marking.mark_tool is None:
        return with_field(tool, written, protocol)
    return replace(tool, form=marking.mark_tool(tool.form, {marking.field: written}))


def _written(marker: CacheMarker, marking: CacheMarking) -> dict[str, Any]:
    return {"type": marking.type} if marker.ttl is None else {"type": marking.type, "ttl": marker.ttl}

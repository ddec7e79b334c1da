"""Cache markers: how far a prompt is to be cached, however a protocol writes that.

    markers_of(block)                    # (CacheMarker(ttl="1h"),)
    without_markers(block, "anthropic")  # the block without those of one protocol

A marker is a field of what it marks (`cache_control`), a block of its own (`cachePoint`), or part of a form. The
`form.py` of a protocol says which in its `CACHE_MARKING`. The bytes stay where the codec put them: in `extra`, or in
the form.
Law: no other module knows the names of these fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from toolglot.conversation.forms import CacheMarker, CacheMarking, library
from toolglot.conversation.values import Block, Extra, Opaque, ResultPart, ToolResult, ToolSpec, Turn

Markable = Block | ToolSpec | Turn
M = TypeVar("M", bound=Markable)


def marking_of(protocol: str) -> CacheMarking | None:
    """How a protocol marks values; None: it has no markers."""
    return library(protocol).cache_marking


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
    return (read_marker(fields[marking.field]),) if marking is not None and marking.field in fields else ()


def read_marker(written: Any) -> CacheMarker:
    """A marker as all protocols write it: an object that may have a `ttl`."""
    ttl = written.get("ttl") if isinstance(written, dict) else None
    return CacheMarker(ttl if isinstance(ttl, str) else None)


def may_have_markers(turns: Iterable[Turn], tools: Iterable[ToolSpec], protocol: str) -> bool:
    """A quick check before the thorough one; most requests have no markers."""
    values: list[Turn | ToolSpec] = [*turns, *tools]
    for value in values:
        if (value.extra is not None or value.form is not None) and markers_of(value, protocol):
            return True
    for turn in turns:
        for block in turn.blocks:
            if block.extra is not None and protocol in block.extra:
                return True
            if type(block) is Opaque or (type(block) is ToolResult and _hold_fields(block.content, protocol)):
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

"""Removes what only another issuer can read: signatures, encrypted thinking, a provider's own blocks.

Law 12: opaque things return only to their issuer. For other targets, thinking keeps its text if the target accepts it,
a server tool's block becomes plain text, an unknown block keeps the text it holds, and the rest is dropped. Each kind
of loss is reported once, with how often and where first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Compaction,
    Issuer,
    Media,
    Opaque,
    ResultPart,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    Turn,
)
from toolglot.conversation.cache_markers import is_marker, marking_of, why_no_markers, with_field, with_markers_of
from toolglot.profiles import resolve
from toolglot.render.content.cache_markers import report_lost_marker
from toolglot.render.content.marker_carrying import carries_markers
from toolglot.render.content.reasoning import forget_item_ids
from toolglot.render.context import RenderContext, unless_same

_TEXT_FIELDS: Final = ("text", "refusal", "content", "output")
"""Fields of an unknown block that may hold text."""

_ENCRYPTED: Final = ("encrypted_content", "encrypted_index", "encrypted_stdout", "signature")

SIGNATURE_LEFT_OUT: Final = "a signature or encrypted value that only its issuer can read was dropped"
_UNREADABLE: Final = f"housekeeping: {SIGNATURE_LEFT_OUT}"

_ISSUE: Final = re.compile(r"[-@](?:latest|\d{6,8}|20\d\d-\d\d-\d\d|[01]\d-20\d\d|00\d)$")
"""The end of a model name that says which release is meant."""
_VERSION: Final = re.compile(r"-v\d:\d$")
"""What Bedrock appends to it."""
_WAY: Final = re.compile(
    r"(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/)?models/|google/|(?:us|eu|apac|global|jp|au)\."
)
"""The beginning of a model name that says where it is hosted, not which model it is."""


_SIGNATURE: Final = "housekeeping: a signature that only its issuer can read was dropped"
_THINKING_SIGNATURE: Final = "housekeeping: the signature of thinking was dropped; its text was kept"


class _Tally:
    """What is dropped or rewritten, one entry for each kind: "dropped: …", "converted: …"; "housekeeping: …" is dropped
    too, but the target could not have read it."""

    def __init__(self, ctx: RenderContext) -> None:
        self._ctx = ctx
        self._seen: dict[str, tuple[int, str]] = {}

    def add(self, what: str, turn: Turn) -> None:
        count, first = self._seen.get(what, (0, turn.key))
        self._seen[what] = (count + 1, first)

    def report_all(self) -> None:
        for what, (count, first) in self._seen.items():
            times = "" if count == 1 else f" ({count} times)"
            action, _, reason = what.partition(": ")
            self._ctx.report(
                "converted" if action == "converted" else "dropped",
                f"{reason}{times}",
                turn_key=first,
                gravity="housekeeping" if action == "housekeeping" else None,
            )


def strip_foreign(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns without what only another issuer can read."""
    facts = ctx.facts(turns)
    if not facts.has_signatures and facts.kinds <= {Media}:
        return turns
    tally = _Tally(ctx)
    stripped = tuple(_strip_turn(turn, ctx, tally) for turn in turns)
    tally.report_all()
    return unless_same(stripped, turns)


def strip_opaque(turn: Turn, ctx: RenderContext) -> Turn:
    """A model's turn for a client of another protocol, without what only the model's provider can read."""
    for block in turn.blocks:
        if type(block) is Thinking or (isinstance(block, Text | ToolCall) and block.signature):
            break
    else:
        return turn
    tally = _Tally(ctx)
    blocks = unless_same(tuple([_readable_block(block, turn, tally) for block in turn.blocks]), turn.blocks)
    tally.report_all()
    return turn if blocks is turn.blocks else replace(turn, blocks=blocks)


def _readable_block(block: Block, turn: Turn, tally: _Tally) -> Block:
    readable = readable_block(block)
    if readable is not block:
        tally.add(_UNREADABLE, turn)
    return readable


def readable_block(block: Block) -> Block:
    """A block without what only the model's provider can read; the same block if it has nothing like that."""
    if isinstance(block, Text | ToolCall) and block.signature:
        return replace(block, signature=None)
    if isinstance(block, Thinking) and (block.signature or block.redacted):
        return replace(block, signature=None, redacted=None)
    return block


def is_from_destination(issuer: Issuer | None, ctx: RenderContext) -> bool:
    """Whether the target is the issuer, as far as both are known."""
    if issuer is None or resolve(issuer.provider) != ctx.profile.name:
        return False
    destination = ctx.destination or Issuer(ctx.profile.name)
    known = {
        "model": (lineage(issuer.model), lineage(ctx.profile.model)),
        "endpoint": (issuer.endpoint, destination.endpoint),
        "account": (issuer.account, destination.account),
    }
    bound = ctx.profile.reasoning.bound_to
    return not any(theirs and ours and theirs != ours for key, (theirs, ours) in known.items() if key in bound)


def lineage(model: str) -> str:
    """The model that a name means, without its release and its host."""
    way = _WAY.match(model)
    return _ISSUE.sub("", _VERSION.sub("", model[way.end() :] if way is not None else model))


def _strip_turn(turn: Turn, ctx: RenderContext, tally: _Tally) -> Turn:
    is_own = is_from_destination(turn.issuer, ctx)
    stripped = (_strip_block(block, turn, is_own, ctx, tally) for block in turn.blocks)
    blocks = unless_same(tuple(block for block in stripped if block is not None), turn.blocks)
    if blocks is turn.blocks:
        return turn
    has_lost_thinking = _count_thinking(blocks) < _count_thinking(turn.blocks)
    return replace(turn, blocks=forget_item_ids(blocks, ctx) if has_lost_thinking else blocks)


def _count_thinking(blocks: tuple[Block, ...]) -> int:
    return sum(isinstance(block, Thinking) for block in blocks)


def _strip_block(block: Block, turn: Turn, is_own: bool, ctx: RenderContext, tally: _Tally) -> Block | None:
    if isinstance(block, Text | Media | Compaction):
        return (
            _without_signature(block, turn, tally)
            if isinstance(block, Text) and block.signature and not is_own
            else block
        )
    if isinstance(block, ToolCall):
        return _without_signature(block, turn, tally) if block.signature and not is_own else block
    if isinstance(block, ToolResult):
        return _strip_result(block, turn, ctx, tally)
    if isinstance(block, Thinking):
        return block if is_own else _strip_thinking(block, turn, ctx, tally)
    if isinstance(block, ToolChange | ToolReference):
        return block
    if block.protocol == ctx.profile.protocol and (is_own or ctx.is_native or isinstance(block, Opaque)):
        return block
    return _text_of_foreign_block(block, turn, ctx, tally)


def _without_signature(block: Any, turn: Turn, tally: _Tally) -> Any:
    tally.add(_SIGNATURE, turn)
    return replace(block, signature=None)


def _strip_thinking(block: Thinking, turn: Turn, ctx: RenderContext, tally: _Tally) -> Thinking | None:
    report_lost_marker(block, ctx)
    if ctx.profile.reasoning.foreign == "text" and block.text:
        if block.signature is not None or block.redacted is not None:
            tally.add(_THINKING_SIGNATURE, turn)
        return Thinking(block.text)
    tally.add(f"dropped: {_refused_thinking(turn, ctx)}", turn)
    return None


def _refused_thinking(turn: Turn, ctx: RenderContext) -> str:
    """Why thinking is dropped. A client's history does not say whether the target itself wrote it."""
    source = ctx.source
    is_assumed = source is not None and turn.issuer == Issuer(source.name, model=source.model)
    if is_assumed and ctx.profile.reasoning.carrier == "none":
        return f"thinking is not sent to a model that takes none {ctx.rule('reasoning.carrier')}"
    what = "thinking that the target did not sign" if is_assumed else "thinking of another model"
    return f"{what} is refused {ctx.rule('reasoning.foreign')}"


def _strip_result(result: ToolResult, turn: Turn, ctx: RenderContext, tally: _Tally) -> ToolResult:
    if not isinstance(result.content, tuple):
        return result
    parts = unless_same(tuple(_strip_parts(result.content, turn, ctx, tally)), result.content)
    return result if parts is result.content else replace(result, content=parts)


def _strip_parts(parts: Iterable[ResultPart], turn: Turn, ctx: RenderContext, tally: _Tally) -> Iterable[ResultPart]:
    for part in parts:
        if isinstance(part, Opaque) and part.protocol != ctx.profile.protocol:
            text = _text_of_foreign_block(part, turn, ctx, tally)
            if text is not None:
                yield text
        else:
            yield part


def _text_of_foreign_block(block: Opaque | ServerTool, turn: Turn, ctx: RenderContext, tally: _Tally) -> Text | None:
    """The content of another provider's own block as text."""
    if isinstance(block, ServerTool):
        tally.add(f"converted: a block of a server tool of {block.protocol} became text", turn)
        block = _with_marker_outside(block, turn, ctx, tally)
        encoded = msgspec.json.encode(_without_ciphers(block.value)).decode()
        return _with_markers(Text(f"[{block.name or 'server tool'} {block.phase}] {encoded}"), block, ctx)
    text = "\n".join(_texts_in(block.value)) if block.text is None else block.text
    if text:
        tally.add(f"converted: a {block.kind or 'block'} of {block.protocol} became text", turn)
        return _with_markers(Text(text), block, ctx)
    if is_marker(block):
        tally.add(f"housekeeping: {why_no_markers(ctx.profile)}; {block.kind} was dropped", turn)
    else:
        tally.add(f"dropped: {block.kind or 'a block'} of {block.protocol} cannot be expressed for this target", turn)
    return None


def _with_marker_outside(block: ServerTool, turn: Turn, ctx: RenderContext, tally: _Tally) -> ServerTool:
    """A block of a server tool without the cache marker in it, which would be part of its text: carried, or dropped."""
    marking, value = marking_of(block.protocol), block.value
    if marking is None or not isinstance(value, dict) or marking.field not in value:
        return block
    block = replace(block, value={key: inner for key, inner in value.items() if key != marking.field})
    if value[marking.field] is None:
        return block
    if carries_markers(ctx):
        ctx.cache_markers += 1
        return with_field(block, value[marking.field], block.protocol)
    tally.add(f"housekeeping: {why_no_markers(ctx.profile)}; {marking.field} on a block was dropped", turn)
    return block


def _with_markers(text: Text, block: Opaque | ServerTool, ctx: RenderContext) -> Text:
    return with_markers_of(text, (block,)) if ctx.cache_markers else text


def _texts_in(value: Any) -> Iterable[str]:
    """The texts in a value, at any depth."""
    if isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                yield from _texts_in(inner)
            elif isinstance(inner, str) and inner and key in _TEXT_FIELDS:
                yield inner


def _without_ciphers(value: Any) -> Any:
    """A block without what only its issuer can read."""
    if isinstance(value, dict):
        return {key: _without_ciphers(inner) for key, inner in value.items() if key not in _ENCRYPTED}
    if isinstance(value, list):
        return [_without_ciphers(inner) for inner in value]
    return value

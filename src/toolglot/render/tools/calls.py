"""Calls and results of the history under the names and ids that the target accepts.

The last pass: it needs the names of all tools, and assigns ids only to calls that are still there.
Law 6: different calls get different ids, and a result has the id of its call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import RAW_ARGUMENTS, Block, ToolCall, ToolResult, Turn
from toolglot.conversation.ids import Projection
from toolglot.conversation.turn_memo import each_turn
from toolglot.errors import quote
from toolglot.jsontext import compact, duplicate_keys
from toolglot.render.context import RenderContext
from toolglot.render.fast_path import PlainTurns
from toolglot.render.tools.omitted_ids import OmittedIds
from toolglot.render.tools.tool_table import ToolTable

_CLASP_PREFIX: Final = "fc_"
_NAME: Final = attrgetter("name")
_IS_ERROR: Final = attrgetter("is_error")
MANY: Final = 4
"""From this many calls on, assigning ids all at once is faster than one by one."""

_HALF_PAIR: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
"""An escaped lone surrogate: providers refuse arguments that hold one (G4)."""


def projection_for(ctx: RenderContext, canonical_id: Callable[[str], str] | None, issuer: str) -> Projection:
    clasp = ctx.profile.ids.item_id_prefix and ctx.policy.responses_id_style == "clasp"
    prefix = _CLASP_PREFIX if clasp else None
    return Projection(ctx.profile, policy=ctx.policy.ids, prefix=prefix, canonical_id=canonical_id, issuer=issuer)


def emit_calls(
    turns: tuple[Turn, ...], table: ToolTable, projection: Projection, plain: PlainTurns | None, ctx: RenderContext
) -> Iterable[Turn]:
    """The turns as they are sent, made one by one on demand."""
    if plain is not None and table.is_plain and ctx.profile.ids.written:
        if _all_ids_stay(plain, projection, ctx):
            ctx.has_errors = any(map(_IS_ERROR, plain.results))
            return turns
        swapped = _swap_prefixes(plain, projection, ctx)
        if swapped is not None:
            ctx.has_new_ids = list(swapped) != list(swapped.values())
            ctx.has_errors = any(map(_IS_ERROR, plain.results))
            if not ctx.has_new_ids:
                return turns
            # A swapped id follows from the id and the new prefix.
            return each_turn(ctx.memo, ("ids", projection.prefix), turns, lambda turn: _swap_ids(turn, swapped))
    else:
        _assign_all(turns, projection)
    emitter = _Emitter(table, projection, OmittedIds(turns, ctx), ctx)
    return map(partial(_emit_turn, emitter.call, emitter.result), turns)


def _assign_all(turns: Iterable[Turn], projection: Projection) -> None:
    """Assign all ids at once, if they stay or only their prefixes change: the same ids as one by one."""
    calls = [block for turn in turns for block in turn.blocks if type(block) is ToolCall]
    if len(calls) < MANY or any(call.metadata is not None for call in calls):
        return
    ids = [call.id for call in calls]
    if not projection.adopt(ids):
        projection.swap(ids)


def _all_ids_stay(plain: PlainTurns, projection: Projection, ctx: RenderContext) -> bool:
    """Whether every name and every id of plain turns is sent unchanged."""
    rule = ctx.profile.results.name
    if rule == "required" and not all(map(_NAME, plain.results)):
        return False
    if rule == "refused" and any(map(_NAME, plain.results)):
        return False
    return projection.adopt(plain.call_ids)


def _swap_prefixes(plain: PlainTurns, projection: Projection, ctx: RenderContext) -> Mapping[str, str] | None:
    """The new ids of plain turns, if only their prefixes have to change; None if more has to."""
    if len(plain.calls) < MANY or ctx.is_native or ctx.profile.results.name in ("required", "wanted"):
        return None
    return None if any(map(_NAME, plain.results)) else projection.swap(plain.call_ids)


def _emit_turn(
    emitted_call: Callable[[ToolCall], ToolCall], emitted_result: Callable[[ToolResult], ToolResult], turn: Turn
) -> Turn:
    """A turn as it is sent. Calls come before their results, so they have their ids by then."""
    changed: list[Block] | None = None
    for index, block in enumerate(turn.blocks):
        if type(block) is ToolCall:
            new: Block = emitted_call(block)
        elif type(block) is ToolResult:
            new = emitted_result(block)
        else:
            continue
        if new is not block:
            changed = list(turn.blocks) if changed is None else changed
            changed[index] = new
    return turn if changed is None else replace(turn, blocks=tuple(changed))


def _swap_ids(turn: Turn, ids: Mapping[str, str]) -> Turn:
    """A plain turn whose calls and results have other ids; nothing else of it changes."""
    blocks: list[Block] = []
    has_ids = False
    for block in turn.blocks:
        if type(block) is ToolCall:
            has_ids = True
            blocks.append(replace(block, id=ids[block.id]))
        elif type(block) is ToolResult:
            has_ids = True
            blocks.append(replace(block, call_id=ids[block.call_id]))
        else:
            blocks.append(block)
    return replace(turn, blocks=tuple(blocks)) if has_ids else turn


class _Emitter:
    """Gives every call and result the name, the id and the arguments that the target accepts."""

    def __init__(self, table: ToolTable, projection: Projection, hidden: OmittedIds, ctx: RenderContext) -> None:
        self._table = table
        self._projection = projection
        self._hidden = hidden
        self._has_reported_refused = False
        self._ctx = ctx
        self._rule = ctx.profile.results.name
        self._names_results = self._rule == "required" or (self._rule == "wanted" and not ctx.is_native)
        self._calls: dict[str, ToolCall] = {}
        """The calls as the client wrote them."""
        self._types: set[str] = set()
        """The types of calls that became functions, as far as reported."""

    def call(self, block: ToolCall) -> ToolCall:
        emitted = self._table.emitted_call(block)
        self._calls[block.id] = block
        if emitted.type != block.type and block.type != "custom":
            if block.type not in self._types:
                self._types.add(block.type)
                reason = f"there are no calls of the type {block.type[:80]}; they became calls of a function"
                self._ctx.report("converted", reason, call_ids=(block.id,))
        elif emitted.type != block.type:
            reason = f"free-text calls are not supported {self._ctx.rule('tools.custom')}; the text became an argument"
            self._ctx.report("converted", reason, call_ids=(block.id,))
        id = self._projection.add(block, name=emitted.name)
        if self._ctx.is_native:
            self._report_id(block, id)
        elif not self._ctx.has_new_ids:
            native = block.metadata.raw_id if block.metadata is not None else block.id
            self._ctx.has_new_ids = bool(native) and id != native
        plain = emitted.arguments is not None and emitted.raw_input is None
        call = emitted if plain else self._with_argument_object(emitted)
        return self._hidden.call(call if call.id == id else replace(call, id=id), block.id)

    def result(self, block: ToolResult) -> ToolResult:
        name, id = "", self._projection[block.call_id]
        if self._names_results or (block.name != "" and self._rule != "refused"):
            name = self._table.emitted_call(self._calls[block.call_id]).name
        if block.is_error:
            self._ctx.has_errors = True
        if block.name and block.name != (called := self._calls[block.call_id].name):
            reason = f"a result of {called[:80]!r} was named {block.name[:80]!r}; the name of its call was used"
            self._ctx.report("replaced", reason, "canonical", call_ids=(block.call_id,))
        is_same = block.call_id == id and block.name == name
        return self._hidden.result(block if is_same else replace(block, call_id=id, name=name), block.call_id)

    def _report_id(self, call: ToolCall, id: str) -> None:
        """Report an id that could not stay, in a native request."""
        native = call.metadata.raw_id if call.metadata is not None else call.id
        if native and self._hidden.has_call(call.id):
            if not self._has_reported_refused:
                reason = f"ids of calls are refused {self._ctx.rule('ids.written')}; order and name pair their results"
                self._ctx.report("dropped", reason, "projection", gravity="housekeeping")
                self._has_reported_refused = True
        elif native and id != native:
            reason = f"the id {native[:80]!r} is refused or taken; changed to {id!r}"
            self._ctx.report("replaced", reason, "projection", call_ids=(call.id,), gravity="housekeeping")

    def _with_argument_object(self, call: ToolCall) -> ToolCall:
        """A call whose arguments are an object, even if the model wrote none."""
        if call.type != "function":
            return call
        if call.arguments is not None:
            return self._with_written_arguments(call)
        if not self._ctx.profile.calls.arguments_object_only:
            return call
        written = call.raw_input or ""
        if written.strip():
            reason = f"arguments that are not a JSON object are refused; they were put into {RAW_ARGUMENTS!r}"
            self._ctx.report("converted", reason, "canonical", call_ids=(call.id,))
        else:
            reason = "a call without arguments was sent with an empty object"
            self._ctx.report("converted", reason, "canonical", call_ids=(call.id,), gravity="housekeeping")
        return replace(call, arguments={RAW_ARGUMENTS: written} if written.strip() else {}, raw_input=None)

    def _with_written_arguments(self, call: ToolCall) -> ToolCall:
        """A call with an object as arguments. Its own provider gets the original text, unless it would refuse that."""
        if self._ctx.is_native:
            reason = self._refusal_of(call.raw_input or "")
            if not reason:
                return call
            self._ctx.report(
                "converted", f"{reason}; sent as the object that they mean", "canonical", call_ids=(call.id,)
            )
        elif call.raw_input is not None:
            self._report_text(call, call.raw_input)
        return replace(call, raw_input=None)

    def _report_text(self, call: ToolCall, text: str) -> None:
        """Report arguments whose text says more than the object that another provider gets."""
        if not text.strip():
            reason = "a call without arguments was sent with an empty object"
            self._ctx.report("converted", reason, "canonical", call_ids=(call.id,), gravity="housekeeping")
        elif not text.lstrip().startswith("{"):
            reason = "arguments were JSON in a string; sent as the object that they mean"
            self._ctx.report("converted", reason, "canonical", call_ids=(call.id,))
        elif _HALF_PAIR.search(text) is not None or text.count('"') != compact(call.arguments or {}).count('"'):
            reason = _lost_in_parsing(text)
            if reason:
                self._ctx.report("converted", reason, "canonical", call_ids=(call.id,), gravity="loss")

    def _refusal_of(self, text: str) -> str:
        """Why the text of arguments is refused although it means an object; empty if it is not refused."""
        if self._ctx.profile.calls.arguments_object_only and not text.lstrip().startswith("{"):
            return "arguments that are not a JSON object are refused"
        return "arguments with a lone surrogate are refused" if _HALF_PAIR.search(text) is not None else ""


def _lost_in_parsing(text: str) -> str:
    """What was lost when the text of arguments was parsed."""
    if _HALF_PAIR.search(text) is not None:
        return "a lone surrogate in arguments became U+FFFD"
    twice = duplicate_keys(text)
    return f"arguments have {quote(twice[0])} more than once; the last value was sent" if twice else ""

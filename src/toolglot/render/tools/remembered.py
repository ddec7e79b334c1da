"""Remembers what tools become for a target, because the same ones come with every request.

If there is a tool memory (`conversation/tool_memory.py`), the whole result is remembered; otherwise only, for native
requests, that the tools are accepted unchanged.

Law: only what depends on nothing but the tools, the target and the policies is remembered: no tool choice, no limit on
tools that depends on the history, no name that only the history has.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Conversation, ToolSpec
from toolglot.conversation.report import Entry
from toolglot.conversation.tool_memory import RememberedTools
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.context import RenderContext
from toolglot.render.fast_path import PlainTurns
from toolglot.render.tools.tool_form import NOTHING, output_cost, written_tools
from toolglot.render.tools.tool_table import Key, ToolTable


class FittedTools(Struct, frozen=True):
    """Tools as they are declared to the target, and the report entries for them."""

    of: tuple[Profile, Policy, Profile | None]
    """What the result depends on. It is referenced here, so that no other object can get its identity."""
    entries: tuple[Entry, ...]
    table: ToolTable
    emitted: RememberedTools | None
    """None if they are the original ones."""
    declared: frozenset[Key]


MAX_REMEMBERED: Final = 32
"""The number of lists of tools that are remembered as accepted unchanged."""
_accepted: Final[dict[object, frozenset[Key]]] = {}
"""The tools that each of these lists declares."""


def recall_fitted_tools(conversation: Conversation, plain: PlainTurns | None, ctx: RenderContext) -> FittedTools | None:
    """What the tools of a conversation became the last time; None if that is not known, or does not apply."""
    tools = conversation.tools
    if plain is None or not tools or _depends_on_more(conversation, ctx):
        return None
    if type(tools) is not RememberedTools:
        return _recall_accepted(tools, plain, ctx) if ctx.is_native else None
    known: FittedTools | None = tools.conversions.get(_key(ctx))
    if known is None or known.of[0] is not ctx.profile or known.of[1] is not ctx.policy:
        return None
    return known if known.of[2] is ctx.source and known.declared.issuperset(plain.called_tools()) else None


def _depends_on_more(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether what the tools become depends on other settings of the request."""
    options = conversation.options
    if ctx.loading is not None and not (ctx.is_native and "declared" in ctx.profile.tools.deferred):
        return True
    return options.tool_choice is not None or (
        options.output is not None and output_cost(options.output, ctx) != NOTHING
    )


def _recall_accepted(tools: tuple[ToolSpec, ...], plain: PlainTurns, ctx: RenderContext) -> FittedTools | None:
    declared = _accepted.get((written_tools(tools), ctx.profile, ctx.policy, ctx.source))
    used = plain.called_tools()
    if declared is None or not declared.issuperset(used):
        return None
    table = ToolTable(ctx.profile, tools, used, is_plain=True)
    return FittedTools((ctx.profile, ctx.policy, ctx.source), (), table, None, declared)


def remember_fitted_tools(
    conversation: Conversation,
    table: ToolTable,
    emitted: tuple[ToolSpec, ...],
    entries: list[Entry],
    ctx: RenderContext,
) -> tuple[ToolSpec, ...]:
    """Remember what tools became, if they may come again. Returns the tools that are sent."""
    tools, limit = conversation.tools, ctx.profile.tools.max_count
    if type(tools) is not RememberedTools and (emitted is not tools or not ctx.is_native):
        return emitted
    if _depends_on_more(conversation, ctx) or (limit is not None and len(tools) > limit):
        return emitted
    declared = frozenset([(tool.namespace, tool.name) for tool in tools])
    if not declared.issuperset(table.keys):
        return emitted
    if type(tools) is not RememberedTools:
        if tools and table.is_plain and not entries:
            _remember_accepted(tools, declared, ctx)
        return emitted
    kept = None if emitted is tools else RememberedTools(emitted)
    fitted = FittedTools((ctx.profile, ctx.policy, ctx.source), tuple(entries), table, kept, declared)
    tools.keep(_key(ctx), fitted)
    return emitted if kept is None else kept


def _remember_accepted(tools: tuple[ToolSpec, ...], declared: frozenset[Key], ctx: RenderContext) -> None:
    written = written_tools(tools)
    if written is None:
        return
    if len(_accepted) >= MAX_REMEMBERED:
        _accepted.clear()
    _accepted[written, ctx.profile, ctx.policy, ctx.source] = declared


def forget() -> None:
    """Forget which tools are accepted unchanged."""
    _accepted.clear()


def _key(ctx: RenderContext) -> Any:
    return id(ctx.profile), id(ctx.policy), id(ctx.source)

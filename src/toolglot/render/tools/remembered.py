"""What tools become for a target, where the same ones come with every request.

Where a memory of them is kept (`conversation/tool_memory.py`), all that came of them is remembered; otherwise of tools
of native requests only that they are accepted as they are.

Law: only what depends on the tools, the target and the policies alone is remembered: no choice of tools, no limit of
them that the history decides on, no name that only the history knows.
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
    """Tools as the target is told of them, and what is told of that."""

    of: tuple[Profile, Policy, Profile | None]
    """For whom; held, so that nobody else can have their place."""
    entries: tuple[Entry, ...]
    table: ToolTable
    emitted: RememberedTools | None
    """None: the very ones that were given."""
    declared: frozenset[Key]


MOST: Final = 32
"""Lists of tools of which it is remembered that they are taken as they are."""
_taken: Final[dict[object, frozenset[Key]]] = {}
"""The tools that each of them declares."""


def recall_fitted_tools(conversation: Conversation, plain: PlainTurns | None, ctx: RenderContext) -> FittedTools | None:
    """What the tools of a conversation became the last time; None: that is not known, or says nothing."""
    tools = conversation.tools
    if plain is None or not tools or _depends_on_more(conversation, ctx):
        return None
    if type(tools) is not RememberedTools:
        return _recall_taken(tools, plain, ctx) if ctx.is_native else None
    known: FittedTools | None = tools.made.get(_key(ctx))
    if known is None or known.of[0] is not ctx.profile or known.of[1] is not ctx.policy:
        return None
    return known if known.of[2] is ctx.source and known.declared.issuperset(plain.used()) else None


def _depends_on_more(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether what becomes of the tools depends on what is asked for beside them."""
    options = conversation.options
    return options.tool_choice is not None or (
        options.output is not None and output_cost(options.output, ctx) != NOTHING
    )


def _recall_taken(tools: tuple[ToolSpec, ...], plain: PlainTurns, ctx: RenderContext) -> FittedTools | None:
    declared = _taken.get((written_tools(tools), ctx.profile, ctx.policy, ctx.source))
    used = plain.used()
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
    """Remember what came of tools, where they will come again; what is sent of them."""
    tools, limit = conversation.tools, ctx.profile.tools.max_count
    if _depends_on_more(conversation, ctx) or (limit is not None and len(tools) > limit):
        return emitted
    declared = frozenset([(tool.namespace, tool.name) for tool in tools])
    if not declared.issuperset(table.keys):
        return emitted
    if type(tools) is not RememberedTools:
        if emitted is tools and tools and ctx.is_native and table.is_plain and not entries:
            _remember_taken(tools, declared, ctx)
        return emitted
    kept = None if emitted is tools else RememberedTools(emitted)
    fitted = FittedTools((ctx.profile, ctx.policy, ctx.source), tuple(entries), table, kept, declared)
    tools.keep(_key(ctx), fitted)
    return emitted if kept is None else kept


def _remember_taken(tools: tuple[ToolSpec, ...], declared: frozenset[Key], ctx: RenderContext) -> None:
    written = written_tools(tools)
    if written is None:
        return
    if len(_taken) >= MOST:
        _taken.clear()
    _taken[written, ctx.profile, ctx.policy, ctx.source] = declared


def forget() -> None:
    """Forget which tools are taken as they are."""
    _taken.clear()


def _key(ctx: RenderContext) -> Any:
    return id(ctx.profile), id(ctx.policy), id(ctx.source)

"""The tool choice for a target: the same, or the nearest that it accepts.

If the target refuses a forced tool (E9, E10), that tool is still the only one that is declared. The pass runs after the
tools are fitted, since it may drop some of them, and before names are assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import ChoiceMode, Conversation, ToolChange, ToolChoice, ToolReference, ToolResult, Turn
from toolglot.errors import quote
from toolglot.render.content.reasoning import is_thinking
from toolglot.render.context import RenderContext
from toolglot.render.tools.tool_table import EmittedTool

_NEAREST: Final[dict[ChoiceMode, tuple[ChoiceMode, ...]]] = {
    "named": ("required", "auto"),
    "required": ("auto",),
    "allowed": ("auto",),
    "none": (),
    "auto": (),
}
"""The nearest modes, best first. `named` and `allowed` leave only their tools."""


def fit_choice(
    conversation: Conversation, tools: Sequence[EmittedTool], ctx: RenderContext
) -> tuple[ToolChoice | None, Sequence[EmittedTool]]:
    """The choice that the target accepts, and the tools that are left with it."""
    choice = conversation.options.tool_choice
    if choice is None:
        return None, tools
    fitted, left = _fit(choice, conversation, tools, ctx)
    if choice.extra is not None and (fitted is None or fitted.extra is None):
        ctx.report_fields(choice.extra, None, "the target's tool choice")
    if choice.form is not None and (fitted is None or fitted.form is None):
        ctx.report_fields(None, choice.form, "the target's tool choice")
    return fitted, left


def _fit(
    choice: ToolChoice, conversation: Conversation, tools: Sequence[EmittedTool], ctx: RenderContext
) -> tuple[ToolChoice | None, Sequence[EmittedTool]]:
    _report_unknown(choice, ctx)
    known = {tool.original.name for tool in tools}
    if ctx.is_native and not (known and known.issuperset(choice.names)):
        known |= _names_in_turns(conversation.turns)
    choice = _drop_unknown_names(_fit_parallel(choice, ctx), known, ctx)
    if not known and (ctx.profile.choice.needs_tools or choice.names):
        is_moot = choice.mode in ("auto", "none")
        ctx.report(
            "dropped",
            f"there are no tools for tool choice {choice.mode!r}",
            path="$.tool_choice",
            gravity="housekeeping" if is_moot else "loss",
        )
        return None, tools
    rules = ctx.profile.choice
    accepted = rules.modes
    if is_thinking(conversation.options, ctx, only_on=True):
        accepted = tuple(mode for mode in rules.modes if mode in rules.while_thinking)
    if choice.mode in accepted and (choice.mode != "required" or not choice.names or "allowed" in rules.modes):
        return choice, tools
    if choice.mode == "none":
        return _forbid_tools(conversation, tools, ctx)
    return _nearest(choice, tools, accepted, ctx)


def _names_in_turns(turns: tuple[Turn, ...]) -> set[str]:
    """The tools that the turns define, where the target reads that: in the result of a search, not of a function."""
    found: set[str] = set()
    functions: set[str] = set()
    for turn in turns:
        functions.update([call.id for call in turn.calls if call.type == "function"])
        for block in turn.blocks:
            content = block.content if isinstance(block, ToolResult) and block.call_id not in functions else ()
            parts = block.added if isinstance(block, ToolChange) else content if isinstance(content, tuple) else ()
            found |= {part.name for part in parts if isinstance(part, ToolReference) and part.definition is not None}
    return found


def _drop_unknown_names(choice: ToolChoice, known: set[str], ctx: RenderContext) -> ToolChoice:
    """A choice among declared tools."""
    if not choice.names:
        return choice
    names = tuple(name for name in choice.names if name in known)
    if names == choice.names:
        return choice
    ctx.report("dropped", "the tool choice names a tool that is not declared", "canonical", path="$.tool_choice")
    if names or choice.mode == "required":
        return replace(choice, names=names) if names else _plain_choice(choice, choice.mode)
    return ToolChoice(parallel=choice.parallel)


def _report_unknown(choice: ToolChoice, ctx: RenderContext) -> None:
    """A choice that only its own protocol has a name for is `auto` elsewhere."""
    if choice.mode != "auto" or choice.opaque is None or choice.opaque.protocol == ctx.profile.protocol:
        return
    written = choice.opaque.value
    kind = written.get("type") if isinstance(written, dict) else written
    reason = f"the target has no tool choice {quote(kind)}; set to 'auto'"
    ctx.report("dropped", reason, path="$.tool_choice")


def _plain_choice(choice: ToolChoice, mode: ChoiceMode) -> ToolChoice:
    """A choice of a mode, without names and without what only its own protocol knows."""
    return ToolChoice(mode, parallel=choice.parallel)


def _fit_parallel(choice: ToolChoice, ctx: RenderContext) -> ToolChoice:
    rules = ctx.profile.choice
    if choice.parallel is None:
        return choice
    if choice.mode == "none" and rules.parallel_switch and not rules.parallel_with_none:
        reason = "the switch for parallel calls is refused with tool choice none"
        ctx.report(
            "dropped", f"{reason} {ctx.rule('choice.parallel_with_none')}", path="$.tool_choice", gravity="housekeeping"
        )
        return replace(choice, parallel=None)
    if rules.parallel_switch:
        return choice
    if (
        not choice.parallel or ctx.is_native
    ):  # parallel calls are the default, so only a native client's switch is reported
        reason = f"there is no switch for parallel calls {ctx.rule('choice.parallel_switch')}"
        ctx.report("dropped", reason, path="$.tool_choice", gravity="housekeeping" if choice.parallel else None)
    return replace(choice, parallel=None)


def _forbid_tools(
    conversation: Conversation, tools: Sequence[EmittedTool], ctx: RenderContext
) -> tuple[ToolChoice | None, Sequence[EmittedTool]]:
    """`none` for a target that has no such mode: no tools at all, unless the history needs them declared."""
    uses_tools = any(turn.calls or turn.results for turn in conversation.turns)
    if uses_tools and ctx.profile.tools.required_with_history:
        reason = f"tools that the history needs cannot be forbidden {ctx.rule('choice.modes')}"
        ctx.report("dropped", reason, path="$.tool_choice")
        return None, tools
    reason = f"there is no tool choice 'none' {ctx.rule('choice.modes')}; the tools were dropped"
    ctx.report("converted", reason, path="$.tool_choice")
    return None, ()


def _nearest(
    choice: ToolChoice, tools: Sequence[EmittedTool], accepted: Sequence[ChoiceMode], ctx: RenderContext
) -> tuple[ToolChoice | None, Sequence[EmittedTool]]:
    nearest = (choice.mode, *_NEAREST[choice.mode]) if choice.mode == "required" else _NEAREST[choice.mode]
    mode = next((other for other in nearest if other in accepted), None)
    if choice.names:
        wanted = frozenset(choice.names)
        # A deferred tool stays: earlier results may refer to it, and they must not change (law 5).
        if any(_is_named(tool, wanted) for tool in tools):
            tools = [tool for tool in tools if tool.emitted.deferred or _is_named(tool, wanted)]
    kept = ", with only the named tools" if choice.names else ""
    replacement = f"{mode!r}{kept}" if mode is not None else "nothing"
    rule = "choice.while_thinking" if choice.mode in ctx.profile.choice.modes else "choice.modes"
    is_kept = mode == "required" or choice.mode == "allowed"
    refused = repr(choice.mode) if choice.mode != "required" or not choice.names else "a call of one of several tools"
    rule = "choice.modes" if mode == choice.mode else rule
    ctx.report(
        "converted",
        f"tool choice {refused} is refused {ctx.rule(rule)}; set to {replacement}",
        path="$.tool_choice",
        gravity="change" if is_kept else "loss",
    )
    if mode is None:
        return None, tools
    return _plain_choice(choice, mode), tools


def _is_named(tool: EmittedTool, names: frozenset[str]) -> bool:
    return tool.original.name in names or tool.emitted.name in names

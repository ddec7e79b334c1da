"""Tool definitions for a target: which tools there are.

The steps, in order: tools that only another provider runs are refused or dropped, since nothing after this could carry
them; tools beyond the target's limit are dropped, so that no work is spent on them; then each gets its form
(`tool_form.py`). Names come last (`tool_table.py`), because they depend on all tools that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolglot.conversation import Conversation, Issuer, ToolChoice, ToolSpec
from toolglot.conversation.visible_tools import tool_key
from toolglot.errors import ServerToolError, ToolProtocolError
from toolglot.render.content.cache_markers import report_lost_marker
from toolglot.render.context import RenderContext
from toolglot.render.tools.loading import is_empty_namespace
from toolglot.render.tools.tool_form import fit_forms, output_cost
from toolglot.render.tools.tool_table import EmittedTool, Key
from toolglot.schema import choose_tools
from toolglot.schema.client_tools import as_function

STUB: Final = "A tool that was used earlier in this conversation. It is not available now."


def fit_tools(conversation: Conversation, ctx: RenderContext) -> list[EmittedTool]:
    """The tools that are declared to the target, each with its original."""
    if conversation.tools and ctx.profile.tools.protocol:
        raise ToolProtocolError(
            f"{ctx.profile.model or ctx.profile.title} does not support tools in this protocol "
            f"{ctx.rule('tools.protocol')}",
            path="$.tools",
            hint=f"send the request to the target {ctx.profile.tools.protocol!r}",
        )
    runnable = _runnable_tools(conversation.tools, conversation.options.tool_choice, ctx)
    tools = _drop_beyond_limit(_drop_repeated(runnable, ctx), conversation, ctx)
    tools = _add_stubs(tools, conversation, ctx)
    if ctx.profile.tools.namespaces:
        tools = _group_namespaces(tools)
    return fit_forms(tools, ctx, output_cost(conversation.options.output, ctx))


def _group_namespaces(tools: list[ToolSpec]) -> list[ToolSpec]:
    """The tools of one namespace together, at the position of its first one: a namespace is declared once."""
    first_positions: dict[object, int] = {}
    for position, tool in enumerate(tools):
        first_positions.setdefault(tool.namespace or position, position)
    keyed = [(first_positions[tool.namespace or position], position) for position, tool in enumerate(tools)]
    return [tools[position] for _, position in sorted(keyed)]


def _add_stubs(tools: list[ToolSpec], conversation: Conversation, ctx: RenderContext) -> list[ToolSpec]:
    """The tools, and if there are none, stubs for those that the history calls, for a target that requires them (E6).

    Tools that are loaded later come behind the stubs that were declared until then (law 5). A stub gives way to its
    tool: the model must see how to call it.
    """
    late = ctx.loading.late if ctx.loading is not None else frozenset()
    if not ctx.profile.tools.required_with_history or not late.issuperset(map(tool_key, tools)):
        return tools
    called = dict.fromkeys(tool_key(call) for turn in conversation.turns for call in turn.calls)
    if ctx.loading is not None and tools:
        called = {key: None for key in called if key in ctx.loading.called_first}
    loaded = {tool_key(tool): tool for tool in tools}
    if not called.keys() <= loaded.keys():
        reason = f"the history calls tools, so they must be declared {ctx.rule('tools.required_with_history')}"
        ctx.report("added", f"{reason}; stubs were added", path="$.tools")
    first = [loaded.get(key) or _stub(key) for key in called]
    return [*first, *(tool for key, tool in loaded.items() if key not in called)]


def _stub(key: Key) -> ToolSpec:
    return ToolSpec(key[1], STUB, {"type": "object", "properties": {}}, namespace=key[0])


def key_of(tool: ToolSpec) -> Key:
    return tool.namespace, tool.name


# --- which tools ------------------------------------------------------------------------------------


def _runnable_tools(tools: Sequence[ToolSpec], choice: ToolChoice | None, ctx: RenderContext) -> list[ToolSpec]:
    """The tools that this target or the client can run."""
    found: list[ToolSpec] = []
    for index, tool in enumerate(tools):
        if is_empty_namespace(tool, ctx):
            reason = f"there are no namespaces {ctx.rule('tools.namespaces')}, and {tool.name[:80]!r} is an empty one"
            ctx.report("dropped", reason, path=f"$.tools[{index}]", gravity="housekeeping")
        elif tool.issuer is None or _is_run_by(tool, ctx):
            found.append(tool)
        else:
            found += _fit_issued(tool, tool.issuer, f"$.tools[{index}]", tools, choice, ctx)
    return found


def _fit_issued(
    tool: ToolSpec, issuer: Issuer, path: str, tools: Sequence[ToolSpec], choice: ToolChoice | None, ctx: RenderContext
) -> list[ToolSpec]:
    """What a tool of another provider becomes: a function, if the client runs it, or nothing."""
    function = as_function(tool)
    if function is not None:
        reason = f"{tool.type} is run by the client; it became a function with its published parameters"
        ctx.report("converted", reason, path=path)
        return [function]
    if _may_drop(tool, tools, choice, ctx):
        ctx.report("dropped", f"only {issuer.provider} can run {tool.type}", "policy", path=path)
        report_lost_marker(tool, ctx)
        return []
    raise ServerToolError(
        f"{tool.type} is a tool that {issuer.provider} runs itself; {ctx.profile.title} cannot run it",
        path=path,
        hint=_hint_for(tool),
    )


def _hint_for(tool: ToolSpec) -> str:
    hint = 'remove the tool, or set the policy server_tools to "drop"'
    is_search = tool.type.lower().replace("_", "").startswith(("websearch", "webfetch", "googlesearch", "urlcontext"))
    return f"{hint}, or let the gateway search: [web_search] in its configuration" if is_search else hint


def _may_drop(tool: ToolSpec, tools: Sequence[ToolSpec], choice: ToolChoice | None, ctx: RenderContext) -> bool:
    """Whether a tool that cannot be run here is dropped; otherwise the request is refused."""
    if ctx.policy.server_tools != "spare":
        return ctx.policy.server_tools == "drop"
    is_asked_for = choice is not None and tool.name in choice.names
    return not is_asked_for and any(other.issuer is None for other in tools)


def _is_run_by(tool: ToolSpec, ctx: RenderContext) -> bool:
    """Whether the target runs a tool itself. In a native request, a type that is not listed is trusted."""
    if tool.issuer is None or tool.issuer.provider != ctx.profile.protocol:
        return False
    return ctx.is_native or any(tool.type.startswith(known.removesuffix("*")) for known in ctx.profile.tools.server)


def _drop_repeated(tools: list[ToolSpec], ctx: RenderContext) -> list[ToolSpec]:
    """The tools without those whose name another one has (E5)."""
    if not ctx.profile.names.unique or len(set(map(tool_key, tools))) == len(tools):
        return tools
    seen: set[Key] = set()
    kept: list[ToolSpec] = []
    again: dict[str, None] = {}
    for tool in tools:
        key = tool_key(tool)
        if tool.issuer is None and key in seen:
            again[tool.name] = None
            report_lost_marker(tool, ctx)
            continue
        seen.add(key)
        kept.append(tool)
    if not again:
        return tools
    reason = f"names of tools must be unique {ctx.rule('names.unique')}; only the first was kept of "
    reason += _list_names(tuple(again))
    ctx.report("dropped", reason, "canonical", path="$.tools")
    return kept


def _drop_beyond_limit(tools: list[ToolSpec], conversation: Conversation, ctx: RenderContext) -> list[ToolSpec]:
    limit = ctx.profile.tools.max_count
    if limit is None or len(tools) <= limit:
        return tools
    choice = conversation.options.tool_choice
    used = [*(choice.names if choice is not None else ())]
    used += [call.name for turn in reversed(conversation.turns) for call in turn.calls]
    chosen = choose_tools([tool.name for tool in tools], used, ctx.profile)
    kept = frozenset(chosen.kept)
    ctx.report(
        "dropped",
        f"the target accepts at most {limit} {'tool' if limit == 1 else 'tools'} {ctx.rule('tools.max_count')}; "
        f"dropped: {_list_names(chosen.dropped)}",
        path="$.tools",
    )
    for tool in tools:
        if tool.name not in kept:
            report_lost_marker(tool, ctx)
    return [tool for tool in tools if tool.name in kept][:limit]


MAX_SHOWN_NAME: Final = 40


def _list_names(names: Sequence[str], limit: int = 8) -> str:
    """Some names. Long ones are cut in the middle, unless that makes two of them look the same."""
    short = [_shorten(name) for name in names[:limit]]
    if len(set(short)) < len(short):
        short = [name[:200] for name in names[:limit]]
    shown = ", ".join(short)
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _shorten(name: str) -> str:
    """The beginning of a name, and more of its end: names of tools that come together begin alike."""
    return name if len(name) <= MAX_SHOWN_NAME else f"{name[:12]}…{name[-27:]}"

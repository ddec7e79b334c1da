"""The settings of a request, as the target accepts them.

Thinking, the form of the output and, with `sampling.py`, the rest: what the target refuses is dropped or becomes the
nearest setting, and is reported. Works on options alone, so it may run at any time before the tools.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Options, OutputFormat, Reasoning, ReasoningMode
from toolglot.render.context import RenderContext
from toolglot.render.sampling import fit_sampling, narrow_sampling
from toolglot.schema import lower
from toolglot.schema.strict import closed_form, strict_cost, strict_form

MIN_BUDGET: Final = 1024
"""The smallest budget that is added if the request has none."""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Every known effort, from lowest to highest."""

BUDGETS: Final = {
    "none": 0,
    "minimal": 1_024,
    "low": 4_096,
    "medium": 12_288,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 49_152,
}
"""About how many tokens of thinking an effort means, if one must become the other."""


_NEAREST_MODES: Final[dict[ReasoningMode, tuple[ReasoningMode, ...]]] = {
    "on": ("adaptive", "between_tools"),
    "adaptive": ("on", "between_tools"),
    "between_tools": ("adaptive", "on", "off"),
    "off": ("between_tools",),
}


def fit_options(options: Options, ctx: RenderContext, *, has_tools: bool) -> Options:
    """The options that the target accepts. Another pass fits the tool choice."""
    sampling = fit_sampling(options.sampling, ctx)
    if options.reasoning is None and options.output is None and options.user is None:
        sampling = narrow_sampling(sampling, None, ctx)
        return (
            options
            if sampling is options.sampling or sampling == options.sampling
            else replace(options, sampling=sampling)
        )
    reasoning = _fit_reasoning(options.reasoning, sampling.max_tokens, ctx)
    if reasoning is not None and reasoning.summary is not None and not ctx.profile.reasoning.summaries:
        is_hidden = ctx.profile.reasoning.carrier == "none"
        reason = (
            f"a summary of thinking cannot be requested; thinking is {'not shown' if is_hidden else 'shown in full'}"
        )
        ctx.report("dropped", reason, path="$.reasoning", gravity="loss" if is_hidden else "housekeeping")
    sampling = narrow_sampling(sampling, reasoning, ctx)
    output = _fit_output(options.output, ctx, has_tools=has_tools)
    if options.output is not None:
        _report_output(options.output, output, ctx)
    user = options.user
    if user is not None and not ctx.profile.request.user:
        ctx.report(
            "dropped",
            f"there is no field that names the user {ctx.rule('request.user')}",
            path="$.user",
            gravity="housekeeping",
        )
        user = None
    if (
        sampling is options.sampling
        and reasoning is options.reasoning
        and output is options.output
        and user is options.user
    ):
        return options
    fitted = replace(options, sampling=sampling, reasoning=reasoning, output=output, user=user)
    return options if fitted == options else fitted


# --- thinking ---------------------------------------------------------------------------------------


def _fit_reasoning(reasoning: Reasoning | None, max_tokens: int | None, ctx: RenderContext) -> Reasoning | None:
    if reasoning is None or _is_offered(reasoning, max_tokens, ctx):
        return reasoning
    if reasoning.effort == "none" or reasoning.budget_tokens == 0:
        return _keep_fields(_fit_no_thinking(reasoning, ctx), reasoning, ctx)
    mode = _fit_mode(reasoning, ctx)
    effort, budget = _fit_amount(reasoning, mode, ctx)
    budget = _fit_budget(budget, max_tokens, ctx)
    if budget is not None and mode is None and "on" in ctx.profile.reasoning.modes:
        mode = "on"
        if ctx.is_native:
            ctx.report("added", "a budget needs thinking to be on; it was switched on", path="$.reasoning")
    if budget is None and mode == "on" and ctx.profile.reasoning.budget_required:
        budget = _default_budget(effort, max_tokens)
        mode = mode if budget is not None else None
        outcome = f"set to {budget} tokens" if budget is not None else "max_tokens leaves no room for one, so it is off"
        reason = f"thinking needs a budget {ctx.rule('reasoning.budget_required')}; {outcome}"
        ctx.report("added" if budget is not None else "dropped", reason, "policy", path="$.reasoning")
    if ctx.profile.reasoning.one_setting and effort is not None and (mode is not None or budget is not None):
        kept = "effort" if mode != "off" else "mode"
        reason = f"effort, mode and budget of thinking exclude each other {ctx.rule('reasoning.one_setting')}"
        ctx.report("dropped", f"{reason}; the {kept} was kept", path="$.reasoning", gravity="change")
        mode, effort, budget = ("off", None, None) if mode == "off" else (None, effort, None)
    fitted = Reasoning(mode, effort, budget, reasoning.summary)
    return _keep_fields(fitted, reasoning, ctx)


def _keep_fields(fitted: Reasoning, reasoning: Reasoning, ctx: RenderContext) -> Reasoning | None:
    """The settings with the client's unknown fields, if any thinking settings are left."""
    kept = _drop_if_empty(fitted, ctx)
    if kept is None or (kept.mode == "off") != (reasoning.mode == "off"):
        ctx.report_fields(reasoning.extra, reasoning.form, "dropped settings of thinking")
        return kept
    ctx.report_fields(None, reasoning.form, "the target's settings of thinking")
    return replace(kept, extra=reasoning.extra, opaque=reasoning.opaque)


def _drop_if_empty(reasoning: Reasoning, ctx: RenderContext) -> Reasoning | None:
    """The settings, without a summary if the model does not think; None if nothing is left."""
    if reasoning.summary is not None and not _can_think(ctx):
        reason = f"a summary of thinking is not available {ctx.rule('reasoning.efforts')}"
        ctx.report("dropped", reason, path="$.reasoning", gravity="housekeeping")  # there is no thinking to summarise
        reasoning = replace(reasoning, summary=None)
    return None if reasoning == Reasoning() else reasoning


def _can_think(ctx: RenderContext) -> bool:
    rules = ctx.profile.reasoning
    return bool(rules.modes or rules.efforts or rules.budget) or rules.default != "off"


def _fit_no_thinking(reasoning: Reasoning, ctx: RenderContext) -> Reasoning:
    """Thinking that an effort or a budget switches off, as the target switches it off; dropped if it cannot."""
    rules = ctx.profile.reasoning
    effort = "none" if "none" in rules.efforts else None
    mode: ReasoningMode | None = None if effort is not None else _fit_mode(Reasoning("off"), ctx)
    replacement = f"effort {effort!r}" if effort is not None else "thinking 'off'" if mode == "off" else ""
    reason = (
        f"{_describe_amount(reasoning.effort, reasoning.budget_tokens)} is not available "
        f"{ctx.rule('reasoning.efforts')}"
    )
    if replacement:
        ctx.report("replaced", f"{reason}; set to {replacement}", path="$.reasoning")
    elif mode is None and rules.default == "off":
        ctx.report("dropped", f"{reason}; thinking is off by default", path="$.reasoning", gravity="change")
    return Reasoning(mode, effort, None, reasoning.summary)


def _fit_budget(budget: int | None, max_tokens: int | None, ctx: RenderContext) -> int | None:
    least = ctx.profile.reasoning.min_budget
    if budget is not None and budget < least:
        reason = f"a budget of {budget} tokens is below the minimum {ctx.rule('reasoning.min_budget')}"
        ctx.report("replaced", f"{reason}; set to {least}", path="$.reasoning")
        budget = least
    if budget is None or _has_room(budget, max_tokens, ctx):
        return budget
    reason = f"a budget of {budget} tokens leaves no room for the answer in max_tokens {max_tokens}"
    ctx.report("replaced", reason, "policy", path="$.reasoning")
    if max_tokens is None:
        return None
    return max_tokens - 1 if max_tokens > MIN_BUDGET else None


def _has_room(budget: int, max_tokens: int | None, ctx: RenderContext) -> bool:
    """Whether the token limit leaves room for the answer beside a thinking budget, if the target requires that."""
    return max_tokens is None or budget < max_tokens or not ctx.profile.reasoning.budget_below_limit


def _default_budget(effort: str | None, max_tokens: int | None) -> int | None:
    """A budget for thinking that has none; None if there is no room."""
    budget = BUDGETS.get(effort or "", BUDGETS["medium"])
    if max_tokens is None or budget < max_tokens:
        return max(budget, MIN_BUDGET)
    return max_tokens - 1 if max_tokens > MIN_BUDGET else None


def _is_offered(reasoning: Reasoning, max_tokens: int | None, ctx: RenderContext) -> bool:
    rules = ctx.profile.reasoning
    if reasoning.summary is not None and not _can_think(ctx):
        return False
    if rules.one_setting and reasoning.effort is not None and (reasoning.mode, reasoning.budget_tokens) != (None, None):
        return False
    if reasoning.mode is not None and reasoning.mode not in rules.modes:
        return False
    if reasoning.effort is not None and reasoning.effort not in rules.efforts:
        return False
    if reasoning.budget_tokens is None:
        return reasoning.mode != "on" or not rules.budget_required
    if reasoning.mode is None and "on" in rules.modes:
        return False
    fits = _has_room(reasoning.budget_tokens, max_tokens, ctx)
    return fits and rules.budget and reasoning.budget_tokens >= max(rules.min_budget, 1)  # 0 means off


def _fit_mode(reasoning: Reasoning, ctx: RenderContext) -> ReasoningMode | None:
    rules, wanted = ctx.profile.reasoning, reasoning.mode
    if wanted is None or wanted in rules.modes:
        return wanted
    mode = next((other for other in _NEAREST_MODES[wanted] if other in rules.modes), None)
    is_known = not ctx.profile.origin("reasoning.modes").id.startswith("default:")
    if mode is None and is_known and (wanted == "off") == (rules.default == "off"):
        reason = f"there is no setting for thinking {wanted!r} {ctx.rule('reasoning.modes')}; it is the default"
        ctx.report("dropped", reason, path="$.reasoning", gravity="housekeeping")
        return None
    effort = _effort_for(reasoning, rules.efforts)
    if mode is None and effort is not None and (wanted != "off" or effort == "none"):
        if wanted == "between_tools":
            reason = f"thinking {wanted!r} is not available {ctx.rule('reasoning.modes')}; an effort is sent instead"
            ctx.report("replaced", reason, path="$.reasoning")
        return None  # the effort switches it
    outcome = f"set to {mode!r}" if mode is not None else "there is no similar setting"
    reason = f"thinking {wanted!r} is not available {ctx.rule('reasoning.modes')}; {outcome}"
    ctx.report("replaced", reason, path="$.reasoning", gravity="loss" if mode is None else None)
    return mode


def _fit_amount(reasoning: Reasoning, mode: ReasoningMode | None, ctx: RenderContext) -> tuple[str | None, int | None]:
    """Effort and budget: each if it is accepted, otherwise one becomes the other."""
    rules = ctx.profile.reasoning
    effort, budget = reasoning.effort, reasoning.budget_tokens
    keeps_budget = rules.budget and mode not in ("off", "adaptive")
    is_kept = keeps_budget and effort is None and budget is not None
    new_effort = effort if effort in rules.efforts or is_kept else _effort_for(reasoning, rules.efforts)
    new_budget = None
    if keeps_budget:
        new_budget = budget if budget is not None or effort is None or new_effort is not None else BUDGETS.get(effort)
    if (effort, budget) != (new_effort, new_budget):
        wanted, replacement = _describe_amount(effort, budget), _describe_amount(new_effort, new_budget)
        reason = f"{wanted or 'an amount of thinking'} is not available {ctx.rule('reasoning.efforts')}"
        if replacement:
            ctx.report("replaced", f"{reason}; set to {replacement}", path="$.reasoning")
        else:
            ctx.report("dropped", reason, path="$.reasoning")
    return new_effort, new_budget


def _describe_amount(effort: str | None, budget: int | None) -> str:
    parts = [f"effort {effort[:20]!r}"] if effort is not None else []
    if budget is not None:
        parts.append(f"a budget of {budget} tokens")
    return " and ".join(parts)


def _effort_for(reasoning: Reasoning, offered: tuple[str, ...]) -> str | None:
    """The available effort that is nearest to the wanted one; None if none is."""
    ranked = [effort for effort in EFFORTS if effort in offered]
    wanted = _wanted_rank(reasoning)
    if not ranked or wanted is None:
        return None
    if wanted == 0 and "none" not in ranked:
        return None  # a low effort does not mean that thinking is off
    thinking = ranked if wanted == 0 else [effort for effort in ranked if effort != "none"]
    return min(thinking, key=lambda effort: (abs(EFFORTS.index(effort) - wanted), EFFORTS.index(effort)), default=None)


def _wanted_rank(reasoning: Reasoning) -> int | None:
    if reasoning.effort is not None:
        return EFFORTS.index(reasoning.effort) if reasoning.effort in EFFORTS else None
    if reasoning.budget_tokens is not None:
        budget = reasoning.budget_tokens
        return next((rank for rank, effort in enumerate(EFFORTS) if BUDGETS[effort] >= budget), len(EFFORTS) - 1)
    if reasoning.mode == "off":
        return 0
    return None


# --- output -----------------------------------------------------------------------------------------


def _fit_output(output: OutputFormat | None, ctx: RenderContext, *, has_tools: bool) -> OutputFormat | None:
    if output is None or output.kind == "text":
        return output
    rules = ctx.profile.request
    if has_tools and not rules.output_with_tools:
        reason = f"structured output cannot be combined with tools {ctx.rule('request.output_with_tools')}"
        ctx.report("dropped", reason, path="$.output")
        return None
    if output.kind in rules.output:
        return _fit_schema(_fit_description(output, ctx), ctx)
    if output.kind == "json_schema" and "json" in rules.output:
        reason = f"only JSON without a schema is accepted {ctx.rule('request.output')}; the schema was dropped"
        ctx.report("replaced", reason, path="$.output", gravity="loss")
        return OutputFormat("json")
    ctx.report("dropped", f"structured output is not accepted {ctx.rule('request.output')}", path="$.output")
    return None


def _report_output(original: OutputFormat, fitted: OutputFormat | None, ctx: RenderContext) -> None:
    """Report what is lost of the output format: an unknown kind, and unknown fields."""
    if fitted is None or fitted.extra is None:
        ctx.report_fields(original.extra, None, "the target's output format")
    if fitted is None or fitted.form is None:
        ctx.report_fields(None, original.form, "the target's output format")
    if original.description is not None and (fitted is None or fitted.kind != original.kind):
        reason = "the target's output format cannot carry description"
        ctx.report("dropped", reason, path="$.description", gravity="loss")
    if original.kind == "text" and original.opaque is not None and original.opaque.protocol != ctx.profile.protocol:
        ctx.report("dropped", "the target has no output format of this kind; set to text", path="$.output")


def _fit_description(output: OutputFormat, ctx: RenderContext) -> OutputFormat:
    """The format without the description of its schema, if the host may not know that field."""
    if output.description is None or ctx.profile.request.output_description:
        return output
    is_own = ctx.source is not None and ctx.source.protocol == ctx.profile.protocol
    if is_own or ctx.profile.request.unknown_fields != "refused":
        return output
    reason = "the target's output format cannot carry description"
    ctx.report("dropped", reason, path="$.description", gravity="loss")
    return replace(output, description=None)


def _fit_schema(output: OutputFormat, ctx: RenderContext) -> OutputFormat | None:
    """The form of the output with a schema that the target accepts."""
    if output.schema is None:
        return output
    if ctx.is_native:
        return _close_schema(output, ctx)
    lowered = lower(output.schema, ctx.profile, strict=bool(output.strict))
    for loss in lowered.losses:
        path = "$.output" + loss.path.removeprefix("$")
        ctx.report("lowered", f"{loss.keyword}: {loss.reason}", path=path, gravity=None if loss.described else "loss")
    strict = output.strict if lowered.strict or not output.strict else False
    if lowered.schema is output.schema and strict == output.strict:
        return _close_schema(output, ctx)
    return _close_schema(replace(output, schema=lowered.schema, strict=strict), ctx)


def _exceeds_strict_limits(schema: dict[str, Any], ctx: RenderContext) -> bool:
    rules = ctx.profile.schema
    if rules.strict_max_optional is None and rules.strict_max_unions is None:
        return False
    costs = zip(strict_cost(schema), (rules.strict_max_optional, rules.strict_max_unions), strict=True)
    return any(limit is not None and cost > limit for cost, limit in costs)


def _close_schema(output: OutputFormat, ctx: RenderContext) -> OutputFormat | None:
    """An output whose schema has closed objects, and all properties required as in strict tools, if the target wants
    that."""
    when, rule = ctx.profile.request.output_closed, ctx.rule("request.output_closed")
    if when == "no" or output.schema is None or (when == "strict" and not output.strict):
        return output
    if _exceeds_strict_limits(output.schema, ctx):
        rule = ctx.rule("schema.strict_max_optional")
        reason = f"the schema of the output exceeds the limits of strict schemas {rule}"
        ctx.report("dropped", reason, path="$.output")
        return None if when == "always" else replace(output, strict=False)
    closed = closed_form(output.schema)
    if closed is not None and ctx.profile.schema.strict_all_required and strict_cost(closed)[0]:
        closed = strict_form(output.schema, ctx.profile.schema)
    if closed is output.schema:
        return output
    if closed is not None:
        ctx.report(
            "lowered", f"objects of the output must be closed and complete {rule}; changed accordingly", path="$.output"
        )
        return replace(output, schema=closed)
    if when == "always":
        ctx.report("dropped", f"an output object with arbitrary keys is not accepted {rule}", path="$.output")
        return None
    ctx.report("dropped", f"the schema of the output cannot be strict without loss {rule}", path="$.output")
    return replace(output, strict=False)

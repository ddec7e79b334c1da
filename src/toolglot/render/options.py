"""What a request asks for besides its conversation, as far as the target can be asked.

Sampling, the length of an answer, thinking and the form of the output: what the target refuses is left out or
becomes the nearest thing, and is told. Works on options alone, so its place among the passes is free.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from msgspec.structs import asdict, replace

from toolglot.conversation import Options, OutputFormat, Reasoning, ReasoningMode, Sampling
from toolglot.render.job import Job
from toolglot.schema import lower

DEFAULT_MAX_TOKENS: Final = 8192
"""Asked for where a target demands a limit and the client named none."""

MIN_BUDGET: Final = 1024
"""The least that a budget may be, wherever there is one."""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Every known effort, from least to most."""

BUDGETS: Final = {
    "none": 0,
    "minimal": 1_024,
    "low": 4_096,
    "medium": 12_288,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 49_152,
}
"""About how many tokens of thinking an effort stands for, where one must become the other."""

_NEAREST_MODES: Final[dict[ReasoningMode, tuple[ReasoningMode, ...]]] = {
    "on": ("adaptive", "between_tools"),
    "adaptive": ("on", "between_tools"),
    "between_tools": ("adaptive", "on", "off"),
    "off": ("between_tools",),
}


def fit_options(options: Options, job: Job, *, has_tools: bool) -> Options:
    """The options that the target accepts. The tool choice is not this pass's."""
    sampling = _fit_sampling(options.sampling, job)
    if options.reasoning is None and options.output is None and options.user is None:
        return (
            options
            if sampling is options.sampling or sampling == options.sampling
            else replace(options, sampling=sampling)
        )
    reasoning = _fit_reasoning(options.reasoning, sampling.max_tokens, job)
    output = _fit_output(options.output, job, has_tools=has_tools)
    user = options.user
    if user is not None and not job.profile.request.user:
        job.tell("dropped", f"there is no field that names the user {job.rule('request.user')}", path="$.user")
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


_beside_limit: Final = attrgetter(*[name for name in Sampling.__struct_fields__ if name != "max_tokens"])
_UNSET: Final = _beside_limit(Sampling())


def _fit_sampling(sampling: Sampling, job: Job) -> Sampling:
    changes: dict[str, Any] = {}
    is_plain = _beside_limit(sampling) == _UNSET
    if is_plain and sampling.max_tokens is not None and sampling.max_tokens >= job.profile.request.min_max_tokens:
        return sampling  # as nearly all are
    for name, value in () if is_plain else asdict(sampling).items():
        if value in (None, ()) or name == "max_tokens" or name in job.profile.request.sampling:
            continue
        changes[name] = () if name == "stop" else None
        job.tell("dropped", f"{name} is not accepted {job.rule('request.sampling')}", path=f"$.{name}")
    changes.update(_fit_max_tokens(sampling.max_tokens, job))
    return replace(sampling, **changes) if changes else sampling


def _fit_max_tokens(asked: int | None, job: Job) -> dict[str, Any]:
    rules = job.profile.request
    if asked is None:
        if not rules.max_tokens_required:
            return {}
        reason = f"the target demands a limit {job.rule('request.max_tokens_required')}; set to {DEFAULT_MAX_TOKENS}"
        job.tell("added", reason, "policy", path="$.max_tokens")
        return {"max_tokens": DEFAULT_MAX_TOKENS}
    if asked >= rules.min_max_tokens:
        return {}
    reason = f"{asked} is below the least that is accepted {job.rule('request.min_max_tokens')}"
    job.tell("replaced", f"{reason}; set to {rules.min_max_tokens}", path="$.max_tokens")
    return {"max_tokens": rules.min_max_tokens}


# --- thinking ---------------------------------------------------------------------------------------


def _fit_reasoning(reasoning: Reasoning | None, max_tokens: int | None, job: Job) -> Reasoning | None:
    if reasoning is None or _is_offered(reasoning, max_tokens, job):
        return reasoning
    mode = _fit_mode(reasoning, job)
    effort, budget = _fit_amount(reasoning, mode, job)
    if budget is not None and max_tokens is not None and budget >= max_tokens:
        job.tell(
            "replaced", f"a budget of {budget} tokens leaves no room in {max_tokens}", "policy", path="$.reasoning"
        )
        budget = max_tokens - 1 if max_tokens > MIN_BUDGET else None
    if budget is not None and mode is None and "on" in job.profile.reasoning.modes:
        mode = "on"  # a budget is only heard where thinking is asked for
    if budget is None and mode == "on" and job.profile.reasoning.budget_required:
        budget = _default_budget(effort, max_tokens)
        mode = mode if budget is not None else None
        made = f"one of {budget} tokens was" if budget is not None else "there is no room for one, so that it was not"
        reason = f"thinking is asked for with a budget {job.rule('reasoning.budget_required')}; {made} asked for"
        job.tell("added" if budget is not None else "dropped", reason, "policy", path="$.reasoning")
    if job.profile.reasoning.one_setting and effort is not None and (mode is not None or budget is not None):
        kept = "effort" if mode != "off" else "mode"
        reason = f"effort, mode and budget of thinking exclude each other {job.rule('reasoning.one_setting')}"
        job.tell("dropped", f"{reason}; the {kept} was kept", path="$.reasoning")
        mode, effort, budget = ("off", None, None) if mode == "off" else (None, effort, None)
    fitted = Reasoning(mode, effort, budget, reasoning.summary)
    return None if fitted == Reasoning() else fitted


def _default_budget(effort: str | None, max_tokens: int | None) -> int | None:
    """A budget for thinking that is asked for without one; None where there is no room."""
    budget = BUDGETS.get(effort or "", BUDGETS["medium"])
    if max_tokens is None or budget < max_tokens:
        return max(budget, MIN_BUDGET)
    return max_tokens - 1 if max_tokens > MIN_BUDGET else None


def _is_offered(reasoning: Reasoning, max_tokens: int | None, job: Job) -> bool:
    rules = job.profile.reasoning
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
    fits = max_tokens is None or reasoning.budget_tokens < max_tokens
    return fits and rules.budget


def _fit_mode(reasoning: Reasoning, job: Job) -> ReasoningMode | None:
    rules, asked = job.profile.reasoning, reasoning.mode
    if asked is None or asked in rules.modes:
        return asked
    mode = next((other for other in _NEAREST_MODES[asked] if other in rules.modes), None)
    if mode is None and (asked == "off") == (rules.default == "off"):
        return None  # what holds anyway
    effort = _effort_for(reasoning, rules.efforts)
    if mode is None and effort is not None and (asked != "off" or effort == "none"):
        return None  # the effort says it
    said = f"asked for {mode!r}" if mode is not None else "nothing could be asked instead"
    job.tell("replaced", f"thinking {asked!r} is not offered {job.rule('reasoning.modes')}; {said}", path="$.reasoning")
    return mode


def _fit_amount(reasoning: Reasoning, mode: ReasoningMode | None, job: Job) -> tuple[str | None, int | None]:
    """Effort and budget: each where it is accepted, one for the other where only that is."""
    rules = job.profile.reasoning
    effort, budget = reasoning.effort, reasoning.budget_tokens
    keeps_budget = rules.budget and mode not in ("off", "adaptive")
    new_effort = effort if effort in rules.efforts else _effort_for(reasoning, rules.efforts)
    new_budget = None
    if keeps_budget:
        new_budget = budget if budget is not None or effort is None or new_effort is not None else BUDGETS.get(effort)
        if new_budget == 0 and "off" not in rules.modes:
            new_budget = None  # a model that cannot but think
    if (effort, budget) != (new_effort, new_budget):
        asked, given = _amount(effort, budget), _amount(new_effort, new_budget)
        reason = f"{asked or 'how much to think'} is not offered {job.rule('reasoning.efforts')}"
        if given:
            job.tell("replaced", f"{reason}; asked for {given}", path="$.reasoning")
        else:
            job.tell("dropped", reason, path="$.reasoning")
    return new_effort, new_budget


def _amount(effort: str | None, budget: int | None) -> str:
    said = [f"effort {effort[:20]!r}"] if effort is not None else []
    if budget is not None:
        said.append(f"a budget of {budget} tokens")
    return " and ".join(said)


def _effort_for(reasoning: Reasoning, offered: tuple[str, ...]) -> str | None:
    """The offered effort that is nearest to what was asked; None where none says it."""
    ranked = [effort for effort in EFFORTS if effort in offered]
    wanted = _wanted_rank(reasoning)
    if not ranked or wanted is None:
        return None
    if wanted == 0 and "none" not in ranked:
        return None  # not to think is nothing that a low effort says
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


def _fit_output(output: OutputFormat | None, job: Job, *, has_tools: bool) -> OutputFormat | None:
    if output is None or output.kind == "text":
        return output
    rules = job.profile.request
    if has_tools and not rules.output_with_tools:
        reason = f"structured output cannot be combined with tools {job.rule('request.output_with_tools')}"
        job.tell("dropped", reason, path="$.output")
        return None
    if output.kind in rules.output:
        return _with_schema(output, job)
    if output.kind == "json_schema" and "json" in rules.output:
        reason = f"only JSON as such can be asked for {job.rule('request.output')}; the schema was left out"
        job.tell("replaced", reason, path="$.output")
        return OutputFormat("json")
    job.tell("dropped", f"structured output is not accepted {job.rule('request.output')}", path="$.output")
    return None


def _with_schema(output: OutputFormat, job: Job) -> OutputFormat:
    """The form of the output with a schema that the target accepts."""
    if output.schema is None or job.goes_home:
        return output
    lowered = lower(output.schema, job.profile, strict=bool(output.strict))
    for loss in lowered.losses:
        job.tell("lowered", f"{loss.keyword}: {loss.reason}", path="$.output" + loss.path.removeprefix("$"))
    strict = output.strict if lowered.strict or not output.strict else False
    if lowered.schema is output.schema and strict == output.strict:
        return output
    return replace(output, schema=lowered.schema, strict=strict)

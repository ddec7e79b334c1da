"""The form of one tool definition for a target: free text, required names, `strict`, the schema.

Agents send the same tools with every request, and fitting a schema costs more than all the rest of a render, so
what came of a definition is remembered. Law: what is remembered is bytes and frozen values; nobody's later
change of a request can reach it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import ToolSpec
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.job import Job
from toolglot.render.tool_table import FREE_TEXT, EmittedTool
from toolglot.report import Entry
from toolglot.schema import Lowered, filter_required, lower

_FILTERED: Final = frozenset({("anthropic", "openai_chat"), ("anthropic", "openai_responses")})
"""Ways on which required names are filtered unless a policy says otherwise: seed 002."""

REMEMBERED: Final = 1024
LARGEST: Final = 65_536
"""A larger definition is fitted anew each time."""

_Schema = dict[str, Any]


class _Form(Struct, frozen=True):
    """What came of a definition. A schema that did not change is not kept: the caller has it."""

    entries: tuple[Entry, ...]
    is_same: bool
    emitted: bytes = b""
    keeps_parameters: bool = False
    checked_by: bytes | None = None


def fit_form(original: ToolSpec, tool: ToolSpec, job: Job) -> EmittedTool:
    """A tool as the target is to be told of it."""
    if tool.issuer is not None or (tool.type == "custom" and job.profile.tools.custom):
        return EmittedTool(original=original, emitted=tool)
    try:
        encoded = msgspec.json.encode(tool)
    except (TypeError, ValueError, RecursionError):
        encoded = b""
    if not 0 < len(encoded) <= LARGEST:
        emitted, checked_by = _fitted(tool, job)
        return EmittedTool(original=original, emitted=emitted, checked_by=checked_by)
    form = _remembered(encoded, job.profile, job.policy, job.source)
    job.entries += form.entries
    return EmittedTool(
        original=original,
        emitted=tool if form.is_same else _restored(form, tool),
        checked_by=tool.parameters if form.checked_by is None else msgspec.json.decode(form.checked_by),
    )


@lru_cache(maxsize=REMEMBERED)
def _remembered(encoded: bytes, profile: Profile, policy: Policy, source: Profile | None) -> _Form:
    job = Job(profile, policy, source)
    tool = msgspec.json.decode(encoded, type=ToolSpec)
    emitted, checked_by = _fitted(tool, job)
    keeps = emitted.parameters is tool.parameters
    return _Form(
        tuple(job.entries),
        emitted is tool,
        msgspec.json.encode(replace(emitted, parameters=None) if keeps else emitted),
        keeps,
        None if checked_by is tool.parameters else msgspec.json.encode(checked_by),
    )


def _restored(form: _Form, tool: ToolSpec) -> ToolSpec:
    emitted = msgspec.json.decode(form.emitted, type=ToolSpec)
    return replace(emitted, parameters=tool.parameters) if form.keeps_parameters else emitted


def _fitted(tool: ToolSpec, job: Job) -> tuple[ToolSpec, _Schema | None]:
    """The tool as the target is to be told of it, and what its arguments are checked against."""
    if tool.type == "custom":
        return _described(_lowered(_as_function(tool, job), job), job), None
    filtered, checked_by = _with_required_filtered(tool, job)
    return _described(_lowered(filtered, job), job), checked_by


def _as_function(tool: ToolSpec, job: Job) -> ToolSpec:
    """A free-text tool as a function of one string, with its grammar where the model can read it."""
    job.tell("converted", f"the free-text tool {tool.name[:80]} became a function of one string", path=_path(tool))
    form = tool.format or {}
    grammar = form.get("definition")
    about = "The whole input of the tool, as plain text: no JSON, no quotes around it."
    if isinstance(grammar, str):
        about += f"\nIt must match this grammar ({form.get('syntax', 'grammar')}):\n{grammar}"
    parameters = {
        "type": "object",
        "properties": {FREE_TEXT: {"type": "string", "description": about}},
        "required": [FREE_TEXT],
    }
    return replace(tool, type="function", format=None, parameters=parameters, extra=None)


def _path(tool: ToolSpec) -> str:
    return f"$.tools[{tool.name[:80]!r}]"


def _with_required_filtered(tool: ToolSpec, job: Job) -> tuple[ToolSpec, _Schema | None]:
    """The tool without needless required names, and the schema that arguments are checked against."""
    way = job.policy.required
    if way == "auto" and job.source is not None:
        way = "filter" if (job.source.protocol, job.profile.protocol) in _FILTERED else "keep"
    if tool.parameters is None or way not in ("filter", "aggressive"):
        return tool, tool.parameters
    filtered = filter_required(tool.parameters, aggressive=way == "aggressive")
    for removed in filtered.removed:
        reason = f"{removed.name[:80]} is no longer required: {removed.reason}"
        job.tell("filtered", reason, "policy", path=_path(tool) + removed.path.removeprefix("$"))
    return replace(tool, parameters=filtered.schema) if filtered.removed else tool, filtered.schema


def _lowered(tool: ToolSpec, job: Job) -> ToolSpec:
    lowered = lower(tool.parameters, job.profile, strict=bool(tool.strict))
    for loss in lowered.losses:
        where = "; the description says it" if loss.described else ""
        reason = f"{loss.keyword}: {loss.reason}{where}"
        job.tell("lowered", reason, path=_path(tool) + loss.path.removeprefix("$"))
    strict = _strict(tool, lowered, job)
    if lowered.schema is tool.parameters and strict == tool.strict:
        return tool
    return replace(tool, parameters=lowered.schema, strict=strict)


def _strict(tool: ToolSpec, lowered: Lowered, job: Job) -> bool | None:
    """The switch as the target wants it: refused, free, or false in so many words."""
    form = job.profile.tools.strict
    if tool.strict and not lowered.strict:
        job.tell("dropped", f"strict cannot be kept for {tool.name[:80]} without loss", path=_path(tool))
    if form == "omit":
        return None
    if lowered.strict:
        return True
    is_relayed = job.source is not None and (job.source.protocol, job.profile.protocol) in _FILTERED
    wants_saying = tool.strict is not None or form == "explicit_false" or is_relayed
    return False if wants_saying and not _was_unsaid_at_home(tool, job) else tool.strict


def _was_unsaid_at_home(tool: ToolSpec, job: Job) -> bool:
    """A client of the target itself that left the switch out meant what leaving it out means there."""
    return tool.strict is None and job.goes_home


def _described(tool: ToolSpec, job: Job) -> ToolSpec:
    """A tool with the description that the target demands, and without an empty one from elsewhere."""
    if tool.description or (tool.description is None and not job.profile.tools.description_required):
        return tool
    if job.profile.tools.description_required:
        return replace(tool, description=tool.name)
    return tool if job.goes_home else replace(tool, description=None)

"""The form of one tool definition for a target: free text, required names, `strict`, the schema.

Agents send the same tools with every request, and fitting a schema costs more than the rest of a render, so the result
is remembered. Law: what is remembered is bytes and frozen values; no later change of a request can affect it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import FREE_TEXT, OutputFormat, ToolSpec
from toolglot.conversation.forms import read_form
from toolglot.conversation.report import Entry, Gravity
from toolglot.errors import InputError
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.context import RenderContext
from toolglot.render.tools.tool_table import EmittedTool
from toolglot.schema import Lowered, filter_required, lower
from toolglot.schema.accepted import is_accepted
from toolglot.schema.client_tools import TYPED_CALLS
from toolglot.schema.keywords import OPEN_ENDED, SILENT
from toolglot.schema.lower import Loss
from toolglot.schema.strict import strict_cost

_FILTERED: Final = frozenset({("anthropic", "openai_chat"), ("anthropic", "openai_responses")})
"""Conversions in which required names are filtered unless a policy says otherwise."""

MAX_REMEMBERED: Final = 64
MAX_BYTES: Final = 262_144
"""A list of definitions with more bytes is fitted anew each time."""
HASHED: Final = 256

_PLAIN: Final = ("type", "description", "strict", "format", "extra", "form")
"""Fields of a definition that fitting may set, apart from its schema."""

_Schema = dict[str, Any]
_decode_tools: Final = msgspec.msgpack.Decoder(list[ToolSpec], dec_hook=read_form).decode


class _Form(Struct, frozen=True):
    """The result for a definition: the fields that changed. The caller has a schema that did not change."""

    entries: tuple[Entry, ...]
    changes: Mapping[str, Any] = MappingProxyType({})
    parameters: bytes | None = None
    checked_by: bytes | None = None


_AS_IT_IS: Final = _Form(())


class WrittenTools:
    """Definitions as bytes, hashed by their length and their end, since hashing all of them would take as long as
    writing them. Equality compares every byte."""

    __slots__ = ("_hash", "data")

    def __init__(self, data: bytes) -> None:
        self.data: bytes = data
        self._hash = hash((len(data), data[-HASHED:]))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrittenTools) and self.data == other.data


Cost = tuple[int, int]
"""How many optional properties a schema has, and how many with several types."""
NOTHING: Final[Cost] = (0, 0)


def output_cost(output: OutputFormat | None, ctx: RenderContext) -> Cost:
    """What the schema of the output uses of the limits that it shares with strict tools."""
    rules, when = ctx.profile.schema, ctx.profile.request.output_closed
    if output is None or output.schema is None or when == "no" or (when == "strict" and not output.strict):
        return NOTHING
    has_limits = rules.strict_max_optional is not None or rules.strict_max_unions is not None
    return strict_cost(output.schema) if has_limits else NOTHING


def fit_forms(tools: list[ToolSpec], ctx: RenderContext, spent: Cost = NOTHING) -> list[EmittedTool]:
    """Tools as they are declared to the target, each with its original; `spent` is what the output uses already."""
    fitted = []
    for tool, form in zip(tools, _forms(tools, ctx, spent), strict=True):
        if form is _AS_IT_IS:
            fitted.append(EmittedTool(tool, tool))
            continue
        ctx.entries += form.entries
        changes = form.changes
        if form.parameters is not None:
            changes = {**changes, "parameters": msgspec.json.decode(form.parameters)}
        emitted = replace(tool, **changes) if changes else tool
        fitted.append(EmittedTool(tool, emitted, form.checked_by))
    return fitted


def _forms(tools: list[ToolSpec], ctx: RenderContext, spent: Cost) -> tuple[_Form, ...]:
    written = written_tools(tools)
    if written is None:
        _refuse_unwritable(tools)
        return _make_forms(tools, ctx.profile, ctx.policy, ctx.source, spent)
    return _remembered_forms(written, ctx.profile, ctx.policy, ctx.source, spent)


def written_tools(tools: Sequence[ToolSpec]) -> WrittenTools | None:
    """The key of definitions; None if they are not worth remembering, or cannot be written as bytes."""
    try:
        encoded = msgspec.msgpack.encode(tools)  # takes half the time of JSON, and distinguishes 1, 1.0 and true
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return WrittenTools(encoded) if len(encoded) <= MAX_BYTES else None


def _refuse_unwritable(tools: list[ToolSpec]) -> None:
    """Raise for tools that no request could hold. What only MessagePack cannot write, as large numbers, may stay."""
    try:
        msgspec.json.encode(tools)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the tools cannot be written as JSON: {error}", path="$.tools") from None


@lru_cache(maxsize=MAX_REMEMBERED)
def _remembered_forms(
    tools: WrittenTools, profile: Profile, policy: Policy, source: Profile | None, spent: Cost
) -> tuple[_Form, ...]:
    return _make_forms(_decode_tools(tools.data), profile, policy, source, spent)


def _make_forms(
    tools: Sequence[ToolSpec], profile: Profile, policy: Policy, source: Profile | None, spent: Cost
) -> tuple[_Form, ...]:
    forms = tuple(_form(tool, RenderContext(profile, policy, source)) for tool in tools)
    if not any(tool.strict for tool in tools):
        return forms
    return _within_strict_limits(tools, forms, RenderContext(profile, policy, source), spent)


def _within_strict_limits(
    tools: Sequence[ToolSpec], forms: tuple[_Form, ...], ctx: RenderContext, spent: Cost
) -> tuple[_Form, ...]:
    """The forms with `strict` on no more tools, optional properties and unions than a request may have."""
    rules = ctx.profile.schema
    limits = {
        "schema.strict_max_tools": rules.strict_max_tools,
        "schema.strict_max_optional": rules.strict_max_optional,
        "schema.strict_max_unions": rules.strict_max_unions,
    }
    if all(limit is None for limit in limits.values()):
        return forms
    kept: list[_Form] = []
    used = dict(zip(limits, (0, *spent), strict=True))
    for tool, form in zip(tools, forms, strict=True):
        if not form.changes.get("strict", tool.strict) or tool.issuer is not None:
            kept.append(form)
            continue
        schema = tool.parameters if form.parameters is None else msgspec.json.decode(form.parameters)
        costs = dict(zip(limits, (1, *strict_cost(schema or {})), strict=True))
        over = next(
            (key for key, limit in limits.items() if limit is not None and used[key] + costs[key] > limit), None
        )
        if over is None:
            used = {key: used[key] + costs[key] for key in used}
            kept.append(form)
            continue
        reason = f"the limits of strict mode are exceeded {ctx.rule(over)}; {tool.name[:80]} was sent without strict"
        ctx.entries.clear()
        ctx.report("dropped", reason, path=_path(tool))
        changes = {**form.changes, "strict": False}
        kept.append(replace(form, entries=(*form.entries, *ctx.entries), changes=changes))
    return tuple(kept)


def _form(tool: ToolSpec, ctx: RenderContext) -> _Form:
    if tool.issuer is not None or (tool.type == "custom" and ctx.profile.tools.custom):
        return _AS_IT_IS
    emitted, checked_by = _fit_form(tool, ctx)
    if emitted is tool and checked_by is tool.parameters and not ctx.entries:
        return _AS_IT_IS
    changes = {field: getattr(emitted, field) for field in _PLAIN if getattr(emitted, field) != getattr(tool, field)}
    keeps = emitted.parameters is tool.parameters
    return _Form(
        tuple(ctx.entries),
        changes,
        None if keeps else msgspec.json.encode(emitted.parameters),
        None if checked_by is tool.parameters else msgspec.json.encode(checked_by),
    )


def _fit_form(tool: ToolSpec, ctx: RenderContext) -> tuple[ToolSpec, _Schema | None]:
    """The tool as it is declared to the target, and the schema that its arguments are checked against."""
    if tool.type == "custom":
        return _describe(_lower_schema(_as_function(tool, ctx), ctx), ctx), None
    if tool.type in TYPED_CALLS:
        tool = replace(tool, type="function")
    filtered, checked_by = _with_required_filtered(tool, ctx)
    return _describe(_lower_schema(filtered, ctx), ctx), checked_by


def _as_function(tool: ToolSpec, ctx: RenderContext) -> ToolSpec:
    """A free-text tool as a function of one string, with its grammar in the description."""
    ctx.report("converted", f"the free-text tool {tool.name[:80]} became a function of one string", path=_path(tool))
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
    return replace(tool, type="function", format=None, parameters=parameters, extra=None, form=None)


def _path(tool: ToolSpec) -> str:
    return f"$.tools[{tool.name[:80]!r}]"


def _with_required_filtered(tool: ToolSpec, ctx: RenderContext) -> tuple[ToolSpec, _Schema | None]:
    """The tool without unneeded required names, and the schema that arguments are checked against."""
    way = ctx.policy.required
    if way == "auto" and ctx.source is not None:
        way = "filter" if (ctx.source.protocol, ctx.profile.protocol) in _FILTERED else "keep"
    if tool.parameters is None or way not in ("filter", "aggressive"):
        return tool, tool.parameters
    filtered = filter_required(tool.parameters, aggressive=way == "aggressive")
    for removed in filtered.removed:
        reason = f"{removed.name[:80]} is no longer required: {removed.reason}"
        ctx.report("filtered", reason, "policy", path=_path(tool) + removed.path.removeprefix("$"))
    return replace(tool, parameters=filtered.schema) if filtered.removed else tool, filtered.schema


def _takes_any_schema(tool: ToolSpec, ctx: RenderContext) -> bool:
    """Whether the schema is in a field of the target's protocol that accepts any JSON Schema."""
    if tool.form is None or tool.form.protocol != ctx.profile.protocol:
        return False
    rules, field = ctx.profile.schema, tool.form.schema_field
    return field is not None and field == rules.free_field != rules.field


def _lower_schema(tool: ToolSpec, ctx: RenderContext) -> ToolSpec:
    if _takes_any_schema(tool, ctx):
        return tool
    if tool.strict and ctx.is_native and ctx.profile.takes_any_strict and ctx.profile.tools.strict != "omit":
        return replace(_lower_schema(replace(tool, strict=None), ctx), strict=True)
    wanted = {} if tool.parameters is None and tool.strict else tool.parameters
    if wanted == {} and not tool.strict and ctx.profile.tools.empty_schema:
        lowered = Lowered(wanted)
    else:
        lowered = lower(wanted, ctx.profile, strict=bool(tool.strict))
    is_changed = lowered.schema is not wanted or lowered.strict != bool(tool.strict)
    if is_changed and ctx.is_native and wanted and is_accepted(wanted, ctx.profile, strict=bool(tool.strict)):
        lowered = Lowered(wanted, strict=bool(tool.strict))
    for loss in lowered.losses:
        where = "; moved into the description" if loss.described else ""
        reason = f"{loss.keyword}: {loss.reason}{where}"
        path = _path(tool) + loss.path.removeprefix("$")
        ctx.report("lowered", reason, path=path, gravity=_gravity(loss))
    if (
        not lowered.losses
        and lowered.schema is not tool.parameters
        and not _says_the_same(lowered.schema, tool.parameters)
    ):
        reason = "the schema was rewritten with keywords that the target accepts; it means the same"
        ctx.report("lowered", reason, path=_path(tool), gravity="housekeeping")
    strict = _strict(tool, lowered, ctx)
    if lowered.schema is tool.parameters and strict == tool.strict:
        return tool
    return replace(tool, parameters=lowered.schema, strict=strict)


def _gravity(loss: Loss) -> Gravity:
    """How grave the loss of a keyword is. Arguments are checked against the client's schema anyway."""
    if loss.keyword in SILENT:
        return "housekeeping"
    return "change" if loss.described or loss.keyword in OPEN_ENDED else "loss"


def _says_the_same(new: _Schema | None, old: _Schema | None) -> bool:
    """Whether two schemas are equal, or differ only in how they express that there are no parameters."""
    if new == old:
        return True
    return not new and old is not None and not any(value for name, value in old.items() if name != "type")


def _strict(tool: ToolSpec, lowered: Lowered, ctx: RenderContext) -> bool | None:
    """The value of `strict` that the target wants: none, any, or an explicit false."""
    form = ctx.profile.tools.strict
    if form == "request":
        return tool.strict  # here the switch does not restrict schemas
    if tool.strict and not lowered.strict:
        ctx.report("dropped", f"{tool.name[:80]} cannot be strict without loss; sent without strict", path=_path(tool))
    if form == "omit":
        if tool.strict is False and ctx.is_native:
            reason = f"'strict' is refused {ctx.rule('tools.strict')}; false is the default"
            ctx.report("dropped", reason, path=_path(tool), gravity="housekeeping")
        return None
    if form == "only_false":
        return False if tool.strict is False and ctx.is_native else None
    if lowered.strict:
        return True
    is_relayed = ctx.source is not None and (ctx.source.protocol, ctx.profile.protocol) in _FILTERED
    wants_saying = tool.strict is not None or form == "explicit_false" or is_relayed
    return False if wants_saying and not _was_unset(tool, ctx) else tool.strict


def _was_unset(tool: ToolSpec, ctx: RenderContext) -> bool:
    """Whether a native client left the switch out, and so meant the target's default."""
    return tool.strict is None and ctx.is_native


def _describe(tool: ToolSpec, ctx: RenderContext) -> ToolSpec:
    """A tool with the description that the target requires, and without an empty one of a foreign request."""
    if tool.description or (tool.description is None and not ctx.profile.tools.description_required):
        return tool
    if ctx.profile.tools.description_required:
        return replace(tool, description=tool.name)
    return tool if ctx.profile.tools.empty_description else replace(tool, description=None)

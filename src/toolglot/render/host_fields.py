"""Removes fields that only another host of the same protocol knows.

Hosts extend a protocol, and many refuse fields that they do not have themselves. So a conversation that goes from one
host to another loses what only the first is known to accept: its additional fields, and its ways of writing things. A
host that extends the other, and one that ignores unknown fields, gets everything.

The source of the conversation says whose fields they are, and before that the issuer of a turn: a model's turn keeps
its fields only for its own host, since they may hold a signature (law 12).
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import (
    Block,
    Conversation,
    Extra,
    Form,
    Media,
    Opaque,
    OutputFormat,
    Reasoning,
    ServerTool,
    Text,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.conversation.cache_markers import marker_fields
from toolglot.conversation.field_gravity import gravity_of_field, unknown_fields
from toolglot.conversation.report import Gravity
from toolglot.profiles import Profile, resolve
from toolglot.render.context import RenderContext, unless_same

_Lost = dict[tuple[str, Gravity], int]
"""How often a field was dropped, and how grave that is."""

_GENERIC: Final = "openai_compatible"
"""The target of any compatible host: which host made a turn is not known."""
_UNKNOWN: Final = "unknown"
"""The provider of a turn whose provider is not known."""


def drop_foreign_fields(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without what only another host of the target's protocol accepts."""
    lost: _Lost = {}
    if ctx.profile.request.refused_fields and conversation.extra is not None:
        conversation = _drop_refused_fields(conversation, ctx)
    if _is_between_hosts(ctx):
        plain = _drop_all_fields(conversation, ctx, lost)
    else:
        plain = _drop_fields_of_other_issuers(_drop_absent_fields(conversation, ctx), ctx, lost)
        plain = _rename_seed(_rename_limit(plain, ctx), ctx)
    plain = _drop_empty_message_fields(plain, ctx)
    if ctx.source is not None and not ctx.is_native and ctx.source.protocol == ctx.profile.protocol:
        plain = _use_common_forms(plain, ctx)
    if ctx.profile.reasoning.signature_fields and _may_be_signed(plain, ctx):
        plain = _drop_signatures(plain, ctx)
    for (field, gravity), count in lost.items():
        times = "" if count == 1 else f" ({count} times)"
        reason = f"{field[:80]} is not known to be accepted here{times}"
        if field in (ctx.profile.request.fields or ()):
            reason = f"{field[:80]} has other values here {ctx.rule('request.fields')}{times}"
        ctx.report("dropped", reason, path=f"$.{field[:80]}", gravity=gravity)
    return plain


def _drop_absent_fields(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without fields of the protocol's own provider that this host does not have.

    An unknown field may be new, so it stays at its own provider.
    """
    profile, own = ctx.profile, (conversation.extra or {}).get(ctx.profile.protocol)
    known = profile.request.fields
    if not own or known is None or profile.request.unknown_fields != "refused" or own.keys() <= set(known):
        return conversation
    native = profiles.get(resolve(profile.protocol)).request.fields or ()
    absent = [field for field in own if field not in known and field in native]
    if not absent:
        return conversation
    for field in absent:
        reason = f"{field} is not a field of {profile.name} {ctx.rule('request.fields')}"
        ctx.report("dropped", reason, path=f"$.{field}", gravity=gravity_of_field(field, own[field]))
    kept = {field: value for field, value in own.items() if field not in absent}
    others = {protocol: fields for protocol, fields in (conversation.extra or {}).items() if fields is not own}
    return replace(conversation, extra=({**others, profile.protocol: kept} if kept else others) or None)


def _drop_empty_message_fields(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without fields of messages that this host does not have, where they say nothing.

    Agents send `"refusal": null` and the like with each message. A refusal itself becomes text.
    """
    known = ctx.profile.request.message_fields
    if known is None or ctx.profile.request.unknown_fields != "refused":
        return conversation
    plain = tuple([_drop_empty_fields(turn, known, ctx.profile.protocol) for turn in conversation.turns])
    turns = unless_same(plain, conversation.turns)
    return conversation if turns is conversation.turns else replace(conversation, turns=turns)


def _drop_empty_fields(turn: Turn, known: tuple[str, ...], protocol: str) -> Turn:
    if "refusal" not in known and any(type(block) is Text and block.is_refusal for block in turn.blocks):
        blocks = [
            replace(block, form=None) if type(block) is Text and block.is_refusal else block for block in turn.blocks
        ]
        turn = replace(turn, blocks=tuple(blocks))
    own = (turn.extra or {}).get(protocol)
    if not own:
        return turn
    kept = {field: value for field, value in own.items() if field in known or value not in (None, [], {})}
    if len(kept) == len(own):
        return turn
    others = {name: fields for name, fields in (turn.extra or {}).items() if name != protocol}
    return replace(turn, extra=({**others, protocol: kept} if kept else others) or None)


def _drop_refused_fields(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without fields that the target refuses although its protocol has them.

    A cache marker of the whole request stays here: it becomes one on the last block (`marker_carrying.py`).
    """
    protocol, refused = ctx.profile.protocol, frozenset(ctx.profile.request.refused_fields)
    if ctx.profile.cache.style == "markers":
        refused -= marker_fields()
    own = (conversation.extra or {}).get(protocol, {})
    kept = {field: value for field, value in own.items() if field not in refused or value in (None, False)}
    if len(kept) == len(own):
        return conversation
    for field in own.keys() - kept.keys():
        ctx.report("dropped", f"{field} is not accepted {ctx.rule('request.refused_fields')}", path=f"$.{field}")
    return replace(conversation, extra={**(conversation.extra or {}), protocol: kept})


def _may_be_signed(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether a model's turn has such a field. This runs for nearly every request, and hardly any has one."""
    for turn in conversation.turns:
        if turn.role != "assistant" or (turn.issuer is not None and _is_issued_by_target(turn, ctx)):
            continue
        if turn.extra is not None and _has_signature(turn.extra, ctx):
            return True
        for block in turn.blocks:
            if block.extra is not None and _has_signature(block.extra, ctx):
                return True
    return False


def _has_signature(extra: Extra, ctx: RenderContext) -> bool:
    own = extra.get(ctx.profile.protocol, {})
    return not own.keys().isdisjoint(ctx.profile.reasoning.signature_fields)


def _drop_signatures(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without the fields in which other hosts sent their own signatures (law 12)."""
    lost: _Lost = {}
    turns = tuple(
        [_drop_turn_signatures(turn, ctx, lost) if turn.role == "assistant" else turn for turn in conversation.turns]
    )
    turns = unless_same(turns, conversation.turns)
    for (field, gravity), count in lost.items():
        times = "" if count == 1 else f" ({count} times)"
        reason = f"{field} holds a signature of another issuer {ctx.rule('reasoning.signature_fields')}{times}"
        ctx.report("dropped", reason, gravity=gravity)
    return conversation if turns is conversation.turns else replace(conversation, turns=turns)


def _drop_turn_signatures(turn: Turn, ctx: RenderContext, lost: _Lost) -> Turn:
    if _is_issued_by_target(turn, ctx):
        return turn
    blocks = unless_same(tuple([_drop_block_signatures(block, ctx, lost) for block in turn.blocks]), turn.blocks)
    extra = _drop_signature_fields(turn.extra, ctx, lost)
    return turn if blocks is turn.blocks and extra is turn.extra else replace(turn, blocks=blocks, extra=extra)


def _drop_block_signatures(block: Block, ctx: RenderContext, lost: _Lost) -> Block:
    if isinstance(block, Opaque | ServerTool):
        return block
    extra = _drop_signature_fields(block.extra, ctx, lost)
    return block if extra is block.extra else replace(block, extra=extra)


def _drop_signature_fields(extra: Extra | None, ctx: RenderContext, lost: _Lost) -> Extra | None:
    own, named = extra.get(ctx.profile.protocol) if extra is not None else None, ctx.profile.reasoning.signature_fields
    if extra is None or not own or own.keys().isdisjoint(named):
        return extra
    for field in filter(own.__contains__, named):
        key = (field, gravity_of_field(field, own[field]))
        lost[key] = lost.get(key, 0) + 1
    kept = {field: value for field, value in own.items() if field not in named}
    others = {protocol: fields for protocol, fields in extra.items() if protocol != ctx.profile.protocol}
    return ({**others, ctx.profile.protocol: kept} if kept else others) or None


def _drop_all_fields(conversation: Conversation, ctx: RenderContext, lost: _Lost) -> Conversation:
    options = conversation.options
    choice = options.tool_choice
    protocol = ctx.profile.protocol
    if choice is not None and choice.mode == "auto" and _is_own(choice.opaque, protocol):
        key: tuple[str, Gravity] = ("tool_choice", "loss")  # of an unknown kind: `auto` is sent instead
        lost[key] = lost.get(key, 0) + 1
    output = options.output
    if output is not None and output.kind == "text" and _is_own(output.opaque, protocol):
        key = ("output", "loss")
        lost[key] = lost.get(key, 0) + 1
    keeps_description = ctx.profile.request.output_description
    if output is not None and output.description is not None and not keeps_description:
        key = ("description", "loss")
        lost[key] = lost.get(key, 0) + 1
    for kept in (choice, options.reasoning, options.output):
        if kept is not None:
            _common_fields(kept.extra, kept.form, ctx, lost)
    return Conversation(
        tuple(
            [
                turn if _is_issued_by_target(turn, ctx) else _drop_turn_fields(turn, ctx, lost)
                for turn in conversation.turns
            ]
        ),
        tuple([_drop_tool_fields(tool, ctx, lost) for tool in conversation.tools]),
        replace(
            options,
            tool_choice=_without_own(options.tool_choice),
            reasoning=_without_own(options.reasoning),
            output=_without_own(output if keeps_description or output is None else replace(output, description=None)),
        ),
        conversation.model,
        _common_fields(conversation.extra, conversation.form, ctx, lost, ctx.profile.request.common_fields),
    )


def _is_own(opaque: Opaque | None, protocol: str) -> bool:
    return opaque is not None and opaque.protocol == protocol


Setting = TypeVar("Setting", ToolChoice, Reasoning, OutputFormat)


def _without_own(setting: Setting | None) -> Setting | None:
    """A setting without what only its host accepts."""
    return replace(setting, extra=None, form=None, opaque=None) if setting is not None else None


def _use_common_forms(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without forms that only its own host is known to read."""
    turns = unless_same(tuple([_turn_in_common_form(turn, ctx) for turn in conversation.turns]), conversation.turns)
    output = conversation.options.output
    form = _common_form(output.form, ctx) if output is not None else None
    if output is not None and form is not output.form:
        options = replace(conversation.options, output=replace(output, form=form))
        return replace(conversation, turns=turns, options=options)
    return conversation if turns is conversation.turns else replace(conversation, turns=turns)


def _turn_in_common_form(turn: Turn, ctx: RenderContext) -> Turn:
    if not any(type(block) is Media and block.form is not None for block in turn.blocks):
        return turn  # as nearly always
    plain = [
        replace(block, form=_common_form(block.form, ctx)) if type(block) is Media else block for block in turn.blocks
    ]
    return replace(turn, blocks=tuple(plain))


def _common_form(form: Form | None, ctx: RenderContext) -> Form | None:
    return form.as_common() if form is not None and form.protocol == ctx.profile.protocol else form


def _drop_fields_of_other_issuers(conversation: Conversation, ctx: RenderContext, lost: _Lost) -> Conversation:
    """The conversation without the fields of turns that another host of the protocol issued."""
    for turn in conversation.turns:
        if turn.issuer is not None:
            break
    else:
        return conversation  # as nearly always for a client's request
    plain = tuple([_drop_foreign_turn_fields(turn, ctx, lost) for turn in conversation.turns])
    turns = unless_same(plain, conversation.turns)
    return conversation if turns is conversation.turns else replace(conversation, turns=turns)


def _drop_foreign_turn_fields(turn: Turn, ctx: RenderContext, lost: _Lost) -> Turn:
    """The turn with the fields that the target may get."""
    issuer, protocol = turn.issuer, ctx.profile.protocol
    if issuer is None or issuer.provider == ctx.profile.name or not _has_fields(turn, protocol):
        return turn
    name = resolve(issuer.provider)
    if name in (ctx.profile.name, _UNKNOWN):
        return turn
    known = profiles.get(name) if name in profiles.names() else None
    if known is not None and known.protocol != protocol:
        return turn
    is_related = known is not None and _is_related(known, ctx.profile) and _GENERIC not in (name, ctx.profile.name)
    is_welcome = turn.role != "assistant" and ctx.profile.request.unknown_fields != "refused"
    return turn if is_related or is_welcome else _drop_turn_fields(turn, ctx, lost)


def _has_fields(turn: Turn, protocol: str) -> bool:
    """Whether a turn or one of its blocks has fields or a form of its protocol."""
    return _has_own(turn, protocol) or any(_has_own(block, protocol) for block in turn.blocks)


def _has_own(value: Turn | Block, protocol: str) -> bool:
    if value.extra is not None and protocol in value.extra:
        return True
    return value.form is not None and value.form.protocol == protocol


def _is_issued_by_target(turn: Turn, ctx: RenderContext) -> bool:
    return turn.issuer is not None and resolve(turn.issuer.provider) == ctx.profile.name


def _rename_limit(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with the token limit under the name that the target knows, if the protocol has two.

    The old name is accepted like the new one, except by models with hidden thinking.
    """
    form, known, rules = conversation.form, ctx.profile.request.max_tokens_field, ctx.profile.reasoning
    if form is None or form.protocol != ctx.profile.protocol:
        return conversation
    used, is_hidden = form.limit_field, rules.carrier == "none" and rules.default != "off"
    if used is None or used == known or (used == ctx.profile.request.old_max_tokens_field and not is_hidden):
        return conversation
    if ctx.profile.request.unknown_fields != "refused":
        return conversation
    reason = f"{used} is not accepted {ctx.rule('request.max_tokens_field')}; sent as {known}"
    ctx.report("renamed", reason, path="$", gravity="housekeeping")
    return replace(conversation, form=form.without_limit_field())


def _rename_seed(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with the seed under the name that the target knows."""
    form, known = conversation.form, ctx.profile.request.seed_field
    if form is None or form.protocol != ctx.profile.protocol or form.seed_field in (None, known):
        return conversation
    if ctx.profile.request.unknown_fields != "refused":
        return conversation
    reason = f"{form.seed_field} is not accepted {ctx.rule('request.seed_field')}; sent as {known}"
    ctx.report("renamed", reason, path="$", gravity="housekeeping")
    return replace(conversation, form=form.without_seed_field())


def _is_between_hosts(ctx: RenderContext) -> bool:
    source, target = ctx.source, ctx.profile
    if source is None or ctx.is_native or source.protocol != target.protocol:
        return False
    return not _is_related(source, target) and target.request.unknown_fields == "refused"


def _is_related(source: Profile, target: Profile) -> bool:
    """Whether one of two hosts extends the other."""
    return source.name in target.layers or target.name in source.layers


def _drop_turn_fields(turn: Turn, ctx: RenderContext, lost: _Lost) -> Turn:
    blocks = tuple([_drop_block_fields(block, ctx, lost) for block in turn.blocks])
    return replace(turn, blocks=blocks, extra=_common_fields(turn.extra, turn.form, ctx, lost), form=None)


def _drop_tool_fields(tool: ToolSpec, ctx: RenderContext, lost: _Lost) -> ToolSpec:
    if tool.issuer is not None:
        return tool
    return replace(tool, extra=_common_fields(tool.extra, tool.form, ctx, lost), form=None)


def _drop_block_fields(block: Block, ctx: RenderContext, lost: _Lost) -> Block:
    if (block.extra is None and block.form is None) or isinstance(block, Media | Opaque | ServerTool):
        return block
    return replace(block, extra=_common_fields(block.extra, block.form, ctx, lost), form=None)


def _common_fields(
    extra: Extra | None, form: Form | None, ctx: RenderContext, lost: _Lost, common: tuple[str, ...] = ()
) -> Extra | None:
    """The unknown fields of the protocol that may stay; the others are counted. No form stays."""
    protocol = ctx.profile.protocol
    fields = (extra or {}).get(protocol)
    own_form = form if form is not None and form.protocol == protocol else None
    for field, value in unknown_fields({protocol: fields} if fields else None, own_form):
        if field not in common:
            key = (field, gravity_of_field(field, value))
            lost[key] = lost.get(key, 0) + 1
    if not fields:
        return extra
    kept = {field: value for field, value in fields.items() if field in common}
    return {ctx.profile.protocol: kept} if kept else None

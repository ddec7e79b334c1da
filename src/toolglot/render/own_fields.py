"""Fields of a host that another host of the same protocol does not know.

Hosts copy a protocol and add to it, and many refuse what they did not add themselves. So what goes from one to another
leaves behind what only the first is known to take: its further fields, and its ways of writing things. A host that
extends the other, and one that ignores what it does not know, gets everything.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Extra, Media, Opaque, ServerTool, ToolSpec, Turn
from toolglot.render.job import Job

_LIMIT: Final = "~limit"
"""The note by which field a request limits its answer."""
_OLD_LIMIT: Final = "max_tokens"
_COMMON: Final = frozenset({"stream_options", "n", "logprobs", "top_logprobs", "logit_bias"})
"""Fields of a request that hosts of a protocol have in common beyond what has a canonical place."""


def leave_behind(conversation: Conversation, job: Job) -> Conversation:
    """The conversation without what only another host of the target's protocol takes."""
    if not _is_between_hosts(job):
        return _with_known_limit(conversation, job)
    lost: dict[str, int] = {}
    options = conversation.options
    plain = Conversation(
        tuple([_plain_turn(turn, job, lost) for turn in conversation.turns]),
        tuple([_plain_tool(tool, job, lost) for tool in conversation.tools]),
        replace(
            options,
            tool_choice=replace(options.tool_choice, extra=None) if options.tool_choice is not None else None,
            reasoning=replace(options.reasoning, extra=None) if options.reasoning is not None else None,
            output=replace(options.output, extra=None) if options.output is not None else None,
        ),
        conversation.model,
        _kept(conversation.extra, job, lost, _COMMON),
    )
    for field, count in lost.items():
        times = "" if count == 1 else f" ({count} times)"
        job.tell("dropped", f"{field[:80]} is not known to be accepted here{times}", path=f"$.{field[:80]}")
    return plain


def _with_known_limit(conversation: Conversation, job: Job) -> Conversation:
    """The conversation with the limit of an answer under a name that the target knows, where it has two for it.

    The old one is understood beside the new one, save by models that think and show nothing of it.
    """
    own = (conversation.extra or {}).get(job.profile.protocol, {})
    used, known, rules = own.get(_LIMIT), job.profile.request.max_tokens_field, job.profile.reasoning
    is_hidden = rules.carrier == "none" and rules.default != "off"
    if used is None or used == known or (used == _OLD_LIMIT and not is_hidden):
        return conversation
    if job.profile.request.unknown_fields != "refused":
        return conversation
    job.tell("renamed", f"{used} is not accepted {job.rule('request.max_tokens_field')}; it is {known} here", path="$")
    kept = {field: value for field, value in own.items() if field != _LIMIT}
    return replace(conversation, extra={**(conversation.extra or {}), job.profile.protocol: kept})


def _is_between_hosts(job: Job) -> bool:
    source, target = job.source, job.profile
    if source is None or job.goes_home or source.protocol != target.protocol:
        return False
    is_related = source.name in target.layers or target.name in source.layers
    return not is_related and target.request.unknown_fields == "refused"


def _plain_turn(turn: Turn, job: Job, lost: dict[str, int]) -> Turn:
    blocks = tuple([_plain_block(block, job, lost) for block in turn.blocks])
    return replace(turn, blocks=blocks, extra=_kept(turn.extra, job, lost))


def _plain_tool(tool: ToolSpec, job: Job, lost: dict[str, int]) -> ToolSpec:
    return tool if tool.issuer is not None else replace(tool, extra=_kept(tool.extra, job, lost))


def _plain_block(block: Block, job: Job, lost: dict[str, int]) -> Block:
    if block.extra is None or isinstance(block, Media | Opaque | ServerTool):
        return block
    return replace(block, extra=_kept(block.extra, job, lost))


def _kept(extra: Extra | None, job: Job, lost: dict[str, int], common: frozenset[str] = frozenset()) -> Extra | None:
    """What may stay of the fields of the protocol; what had something to say is counted."""
    fields = (extra or {}).get(job.profile.protocol)
    if not fields:
        return extra
    for field, value in fields.items():
        if not field.startswith("~") and field not in common and value not in (None, "", [], {}):
            lost[field] = lost.get(field, 0) + 1
    kept = {field: value for field, value in fields.items() if field in common}
    return {job.profile.protocol: kept} if kept else None

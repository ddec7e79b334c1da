"""What tools become for a target, where the same ones come with every request (`tool_memory.py`).

Law: only what depends on the tools, the target and the policies alone is remembered: no choice of tools, no limit of
them that the history decides on, no name that only the history knows.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from toolglot.conversation import Conversation, ToolSpec
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render.job import Job
from toolglot.render.readiness import Ready
from toolglot.render.tool_table import Key, ToolTable
from toolglot.report import Entry
from toolglot.tool_memory import RememberedTools


class Fitted(Struct, frozen=True):
    """Tools as the target is told of them, and what is told of that."""

    of: tuple[Profile, Policy, Profile | None]
    """For whom; held, so that nobody else can have their place."""
    entries: tuple[Entry, ...]
    table: ToolTable
    emitted: RememberedTools | None
    """None: the very ones that were given."""
    declared: frozenset[Key]


def fitted_before(conversation: Conversation, ready: Ready | None, job: Job) -> Fitted | None:
    """What the tools of a conversation became the last time; None: that is not known, or says nothing."""
    tools = conversation.tools
    if type(tools) is not RememberedTools or ready is None or conversation.options.tool_choice is not None:
        return None
    known: Fitted | None = tools.made.get(_key(job))
    if known is None or known.of[0] is not job.profile or known.of[1] is not job.policy:
        return None
    return known if known.of[2] is job.source and known.declared.issuperset(ready.used()) else None


def remember_fitted(
    conversation: Conversation, table: ToolTable, emitted: tuple[ToolSpec, ...], entries: list[Entry], job: Job
) -> tuple[ToolSpec, ...]:
    """Remember what came of tools, where they will come again; what is sent of them."""
    tools, limit = conversation.tools, job.profile.tools.max_count
    if type(tools) is not RememberedTools or conversation.options.tool_choice is not None:
        return emitted
    if limit is not None and len(tools) > limit:
        return emitted
    declared = frozenset([(tool.namespace, tool.name) for tool in tools])
    if not declared.issuperset(table.keys):
        return emitted
    kept = None if emitted is tools else RememberedTools(emitted)
    fitted = Fitted((job.profile, job.policy, job.source), tuple(entries), table, kept, declared)
    tools.keep(_key(job), fitted)
    return emitted if kept is None else kept


def _key(job: Job) -> Any:
    return id(job.profile), id(job.policy), id(job.source)

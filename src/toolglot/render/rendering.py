"""The passes, in their order, and what comes of them.

1. `foreign`: what only another issuer can read goes before anything counts or places blocks.
2. `media`: what cannot stand where it is moves or becomes text, before anything counts turns.
3. `definitions`: which tools there are; every later pass speaks of them.
4. `choice`: may leave tools out.
5. `options`: independent of the rest, but for whether there are tools.
6. `tool_table`: names, once it is known which tools and calls are left.
7. `calls`: ids and names in the history, last of all.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, ToolSpec
from toolglot.ids import Projection
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Profile
from toolglot.render.calls import emit_calls, projection_for
from toolglot.render.choice import fit_choice
from toolglot.render.definitions import fit_tools, key_of
from toolglot.render.foreign import strip_foreign
from toolglot.render.job import Job
from toolglot.render.media import place_media
from toolglot.render.options import fit_options
from toolglot.render.tool_table import EmittedTool, ToolTable
from toolglot.report import Entry


class Rendered(Struct, frozen=True):
    """A conversation that the target accepts, what was changed for it, and the way back for the reply."""

    conversation: Conversation
    entries: tuple[Entry, ...]
    tools: ToolTable
    ids: Projection


def render(
    conversation: Conversation,
    profile: Profile,
    *,
    policy: Policy = DEFAULT_POLICY,
    source: Profile | None = None,
) -> Rendered:
    """A conversation whose ids are canonical, as the target is to get it."""
    job = Job(profile, policy, source)
    turns = place_media(strip_foreign(conversation.turns, job), job)
    conversation = replace(conversation, turns=turns) if turns is not conversation.turns else conversation
    tools = fit_tools(conversation, job)
    choice, chosen = fit_choice(conversation, tools, job)
    options = fit_options(conversation.options, job, has_tools=bool(chosen))
    used = [(call.namespace, call.name) for turn in turns for call in turn.calls]
    used += [(None, name) for name in (choice.names if choice is not None else ())]
    table = ToolTable(profile, chosen, used, wrap=not profile.tools.custom)
    for renamed in table.names.renamed:
        reason = f"{renamed.original[:80]!r} {renamed.reason}; it is {renamed.emitted!r} here"
        job.tell("renamed", reason, "projection", path="$.tools")
    if choice is not None and choice.names:
        choice = replace(choice, names=tuple(table.emitted_name((None, name)) for name in choice.names))
    projection = projection_for(job)
    emitted = [_emitted_tool(tool, table, profile) for tool in chosen]
    rendered = Conversation(
        emit_calls(turns, table, projection),
        tuple(emitted),
        replace(options, tool_choice=choice),
        conversation.model,
        conversation.extra,
    )
    return Rendered(rendered, tuple(job.entries), table, projection)


def _emitted_tool(tool: EmittedTool, table: ToolTable, profile: Profile) -> ToolSpec:
    if tool.emitted.issuer is not None:
        return tool.emitted
    namespace = tool.original.namespace if profile.tools.namespaces else None
    name = table.emitted_name(key_of(tool.original))
    if (name, namespace) == key_of(tool.emitted)[::-1]:
        return tool.emitted
    return replace(tool.emitted, name=name, namespace=namespace)

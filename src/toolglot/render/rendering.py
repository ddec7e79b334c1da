"""The passes, in their order, and what comes of them.

Before all, fields go that only another host of the protocol takes (`own_fields`), and marks for a cache that the target
refuses (`cache_markers`); then settings are fitted (`options`), since whether a model thinks decides what its turns
must hold. Turns:
1. `attribution`: who said what; everything else relies on it.
2. `foreign`: what only another issuer can read goes before anything counts or places blocks.
3. `exchanges`: every call with its result, which the passes below keep together.
4. `media`: what cannot stand in a result moves behind the results.
5. `reasoning`: thinking that may stay.
6. `serial`: exchanges of one call, where the target wants that.
7. `empties`: after everything that takes blocks out, so that it is known what a turn says and on what it ends;
   `apart`: calls without words beside them.
8. `roles`: joins and bridges whatever turns are left; then stand-ins for thinking that must be there.

Tools:
9. `definitions`: which tools there are, and their form; `choice` may leave some out.
10. `tool_table`: names, once it is known which tools and calls are left.
11. `calls`: ids and names in the history, last of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, Issuer, Options, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation.ids import Projection
from toolglot.conversation.report import Entry, Ids
from toolglot.errors import EmptyConversationError, LimitError, RenderError, quote
from toolglot.history.intake import Intake
from toolglot.history.well_formed import WellFormedTurns, well_formed_turns
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Profile
from toolglot.render.content.cache_markers import without_markers
from toolglot.render.content.empty_content import fill_empty_content
from toolglot.render.content.foreign import strip_foreign
from toolglot.render.content.media import fit_media
from toolglot.render.content.reasoning import add_required_thinking, drop_refused_thinking, drop_trailing_thinking
from toolglot.render.context import RenderContext, unless_same
from toolglot.render.fast_path import PlainTurns, plain_turns
from toolglot.render.host_fields import drop_foreign_fields
from toolglot.render.options import fit_options
from toolglot.render.pairing import pair_results
from toolglot.render.parallel_calls import split_parallel_calls
from toolglot.render.roles import fit_roles
from toolglot.render.speakers import assign_speakers
from toolglot.render.text_beside_calls import separate_text_and_calls
from toolglot.render.tools.calls import emit_calls, projection_for
from toolglot.render.tools.choice import fit_choice
from toolglot.render.tools.definitions import fit_tools, key_of
from toolglot.render.tools.remembered import fitted_before, remember_fitted
from toolglot.render.tools.tool_table import EmittedTool, Key, ToolTable
from toolglot.render.turn_facts import TurnFacts

_UNKNOWN: Final = "unknown"


class Rendered(Struct, frozen=True):
    """A conversation that the target accepts, what was changed for it, and the way back for the reply."""

    conversation: Conversation
    entries: tuple[Entry, ...]
    tools: ToolTable
    ids: Projection
    is_unchanged: bool
    """Every turn, tool and setting is the very one that was given."""
    names: WellFormedTurns | None = None
    """Tells canonical ids where the calls went by their native ones."""

    def seen_ids(self) -> Ids:
        """The ids of the calls and results that are sent."""
        try:
            return self._seen_ids()
        except RecursionError:
            raise LimitError("the conversation nests too deeply for its ids to be made", hint="flatten it") from None

    def _seen_ids(self) -> Ids:
        calls = [call.id for turn in self.conversation.turns for call in turn.calls]
        known = [self.ids.canonical_of(id) or id for id in calls]
        canonical = known if self.names is None else map(self.names.canonical_id, known)
        results = [result.call_id for turn in self.conversation.turns for result in turn.results]
        return Ids(tuple(canonical), tuple(calls), tuple(results), self.ids.format)


def render(
    conversation: Conversation,
    profile: Profile,
    *,
    policy: Policy = DEFAULT_POLICY,
    source: Profile | None = None,
    keeps_items: bool = False,
    destination: Issuer | None = None,
    is_continued: bool = False,
) -> Rendered:
    """A conversation as the target is to get it.

    `source` is the provider that it was written for; `home` says which endpoint and account it goes to; `keeps_items`
    that the provider has stored what it answered, `is_continued` that it has stored what was said before.
    """
    ctx = RenderContext(profile, policy, source, destination)
    profile = ctx.profile
    if not conversation.turns and not is_continued and (profile.turns.required or not ctx.is_native):
        raise EmptyConversationError("there is nothing to send", path="$.messages", hint="add a message")
    given = conversation
    conversation = without_markers(drop_foreign_fields(conversation, ctx), ctx)
    ctx.keeps_items, ctx.is_continued = ctx.is_native and keeps_items, is_continued
    # Who answered so far is the model that the source's client asked for, which need not be the one asked now (D3).
    issuer = Issuer(source.name, model=source.model) if source is not None else Issuer(_UNKNOWN)
    options = fit_options(conversation.options, ctx, has_tools=_has_tools(conversation, ctx))
    names: WellFormedTurns | None = None
    ready = plain_turns(conversation.turns, options, ctx)
    if ready is not None:
        names = WellFormedTurns(conversation.turns, issuer)
        turns = taken = conversation.turns
    else:
        facts = TurnFacts()
        names = well_formed_turns(conversation.turns, issuer, facts.take)
        if names is not None:
            taken = names.turns
            facts.extend(taken, ())
            ctx.use_facts(facts)
        else:
            taken = _taken_in(conversation.turns, issuer, ctx)
        turns = taken
        if taken or profile.turns.required:  # else it is meant to say nothing
            turns, options = _fit_turns(taken, options, ctx)
    if turns is not conversation.turns or options is not conversation.options:
        conversation = replace(conversation, turns=turns, options=options)
    table, emitted, options = _fitted_tools(conversation, ready, ctx)
    projection = projection_for(ctx, names.canonical_id if names is not None else None, issuer.provider)
    sent = emit_calls(turns, table, projection, ready, ctx)
    rendered = Conversation(
        unless_same(tuple(sent) if ready is not None else _hold_to_laws(sent, ctx), turns),
        emitted,
        options,
        conversation.model,
        conversation.extra,
    )
    is_unchanged = (
        rendered.turns is given.turns
        and rendered.tools is given.tools
        and rendered.options is given.options
        and rendered.extra is given.extra
    )
    if ctx.has_errors and not profile.results.error_flag and not ctx.is_native:
        reason = f"there is no field for a result that failed {ctx.rule('results.error_flag')}; its text says Error"
        ctx.report("converted", reason)
    if ctx.has_new_ids and source is not None:
        reason = f"call ids are written as {profile.name} writes them; report.ids has both forms"
        ctx.report("replaced", reason, "projection", gravity="housekeeping")
    entries: tuple[Entry, ...] = ()
    if ctx.entries:
        entries = tuple(ctx.entries)
        if any(entry.turn_key or entry.call_ids for entry in entries):
            places = _Places(names, taken)
            entries = tuple([places.named(entry) for entry in entries])
    return Rendered(rendered, entries, table, projection, is_unchanged, names)


def _fitted_tools(
    conversation: Conversation, ready: PlainTurns | None, ctx: RenderContext
) -> tuple[ToolTable, tuple[ToolSpec, ...], Options]:
    """The tools of a request, by name and as they are sent, and its settings with the tool choice that is left."""
    known = fitted_before(conversation, ready, ctx)
    if known is not None:
        ctx.entries += known.entries
        return known.table, conversation.tools if known.emitted is None else known.emitted, conversation.options
    before, options = len(ctx.entries), conversation.options
    choice, chosen = fit_choice(conversation, fit_tools(conversation, ctx), ctx)
    table = _table(conversation.turns, chosen, ready, ctx)
    if choice is not None and choice.names:
        choice = replace(choice, names=tuple(map(table.chosen_name, choice.names)))
    if choice is not options.tool_choice:
        options = replace(options, tool_choice=choice)
    emitted = tuple([tool.emitted for tool in chosen])
    if not table.is_plain:
        emitted = tuple([_emitted_tool(tool, table, ctx.profile) for tool in chosen])
    same = unless_same(emitted, conversation.tools)
    return table, remember_fitted(conversation, table, same, ctx.entries[before:], ctx), options


def _hold_to_laws(turns: Iterable[Turn], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns; a render whose calls and results do not agree is stopped, rather than sent (laws 1 and 6)."""
    held: list[Turn] = []
    waits: dict[str, bool] = {}
    """Whether a call has no result yet, by its id."""
    for turn in turns:
        held.append(turn)
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                if block.id in waits:
                    raise _broken(f"two calls have the id {quote(block.id)}", ctx)
                waits[block.id] = True
            elif isinstance(block, ToolResult):
                if not waits.get(block.call_id):
                    raise _broken(f"a result answers {quote(block.call_id)}, which is no open call", ctx)
                waits[block.call_id] = False
    unanswered = sum(waits.values())
    if unanswered:
        raise _broken(f"{unanswered} calls have no result", ctx)
    return tuple(held)


def _broken(what: str, ctx: RenderContext) -> RenderError:
    report = "\n".join(map(str, ctx.entries))
    return RenderError(f"a render for {ctx.profile.name} was stopped: {what}; please report it", report)


def _has_tools(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether the request will declare tools: its own, or stubs for those that its history calls."""
    if conversation.tools or not ctx.profile.tools.required_with_history:
        return bool(conversation.tools)
    return any(turn.calls for turn in conversation.turns)


def _taken_in(turns: tuple[Turn, ...], issuer: Issuer, ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with canonical ids, and each result with its call."""
    issued = [turn if turn.issuer is not None else replace(turn, issuer=issuer) for turn in turns]
    return Intake(ctx.entries).take_all(issued)


class _Places:
    """Where in the given conversation an entry of the report points."""

    def __init__(self, names: WellFormedTurns | None, taken: tuple[Turn, ...]) -> None:
        self._names = names
        self._numbers = {} if names is not None else {turn.key: number for number, turn in enumerate(taken)}
        calls = () if names is not None else (call for turn in taken for call in turn.calls)
        self._natives = {call.id: call.metadata.raw_id or "" for call in calls if call.metadata is not None}

    def named(self, entry: Entry) -> Entry:
        """An entry under the names that a history would have given, with those that the client knows."""
        if not entry.turn_key and not entry.call_ids:
            return entry
        key = entry.turn_key.partition("+")[0]
        if self._names is not None:
            return replace(
                entry,
                turn_key=self._names.key(entry.turn_key),
                turn=self._names.number(key),
                call_ids=tuple(map(self._names.canonical_id, entry.call_ids)),
                native_ids=entry.call_ids,
            )
        natives = tuple([self._natives[id] for id in entry.call_ids if self._natives.get(id)])
        return replace(entry, turn=self._numbers.get(key), native_ids=natives)


def _table(
    turns: tuple[Turn, ...], tools: Sequence[EmittedTool], ready: PlainTurns | None, ctx: RenderContext
) -> ToolTable:
    used: Iterable[Key] = ready.used() if ready is not None else []
    if ready is None:
        used = ctx.facts(turns).used
    table = ToolTable(ctx.profile, tools, used)
    for namespace in table.flattened:
        reason = f"there are no namespaces here {ctx.rule('tools.namespaces')}"
        ctx.report(
            "renamed", f"{reason}; {namespace[:80]!r} stands in the names of its tools", "projection", path="$.tools"
        )
    for renamed in table.names.renamed:
        reason = f"{renamed.original[:80]!r} {renamed.reason}; it is {renamed.emitted!r} here"
        ctx.report("renamed", reason, "projection", path="$.tools")
    return table


def _fit_turns(turns: tuple[Turn, ...], options: Options, ctx: RenderContext) -> tuple[tuple[Turn, ...], Options]:
    turns = assign_speakers(turns, ctx)
    turns = strip_foreign(turns, ctx)
    turns = pair_results(turns, ctx)
    turns = fit_media(turns, ctx)
    turns = drop_refused_thinking(turns, ctx)
    turns = fill_empty_content(split_parallel_calls(turns, ctx), ctx)
    turns = drop_trailing_thinking(separate_text_and_calls(turns, ctx), ctx)
    return add_required_thinking(fit_roles(turns, ctx), options, ctx)


def _emitted_tool(tool: EmittedTool, table: ToolTable, profile: Profile) -> ToolSpec:
    if tool.emitted.issuer is not None:
        return tool.emitted
    namespace = tool.original.namespace if profile.tools.namespaces else None
    name = table.emitted_name(key_of(tool.original))
    if (name, namespace) == key_of(tool.emitted)[::-1]:
        return tool.emitted
    return replace(tool.emitted, name=name, namespace=namespace)

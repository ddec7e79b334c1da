"""Runs the passes in their order.

First, fields that only another host of the protocol accepts (`host_fields`) and cache markers that the target refuses
(`cache_markers`) are removed. Then settings are fitted (`options`): whether the model thinks decides what its turns
must hold.

Turns, in `TURN_PASSES`:
0. `compaction`: leaves out what a summary stands for, so that no other pass sees it.
1. `speakers`: moves each block to the turn of its speaker. Every other pass relies on it.
2. `loading`: collects what the turns load, and writes it in the target's form, before foreign blocks are removed.
3. `foreign`: removes what only another issuer can read, before anything counts or moves blocks.
4. `pairing`: every call with its result. The passes below keep the pairs together.
5. `media`: moves what a result cannot hold behind the results.
6. `reasoning`: removes thinking that the target refuses.
7. `parallel_calls`: one call per turn, if the target wants that.
8. `empty_content`: after everything that removes blocks, when it is known what a turn still holds.
9. `text_beside_calls`: separates calls and text, if the target wants that.
10. `reasoning`: removes thinking at the end of a turn, now that the end of each turn is known.
11. `roles`: joins and bridges the turns that are left.
12. `reasoning`: adds the thinking that the target requires to the turns that are sent.

Tools:
13. `loading`: which tools are declared, if some are loaded later.
14. `definitions`: which tools there are, and their form. `choice` may leave some out.
15. `tool_table`: names, once it is known which tools and calls are left.
16. `calls`: ids and names in the history.

Cache markers, last of all, when it is known what is sent: `marker_carrying` before the passes puts those of the client
on the values that they are about, and afterwards fits them; `marker_placing` adds some for a client that has none.

Two shortcuts save most of this work for most requests. `fast_path` checks in one loop whether any pass has anything to
do, `history/well_formed` whether any result has to be matched with its call. With `shortcuts=False` neither is tried.
Law: the result is the same (`tests/render/test_shortcuts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, Issuer, Options, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation.ids import Projection
from toolglot.conversation.report import Entry, Ids, join_alike
from toolglot.conversation.turn_memo import TurnMemo
from toolglot.errors import EmptyConversationError, LimitError, ModelProtocolError, RenderError, quote
from toolglot.history.intake import Intake
from toolglot.history.well_formed import WellFormedTurns, well_formed_turns
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Profile
from toolglot.render.cache_key import shorten_cache_key
from toolglot.render.content.cache_markers import drop_refused_markers
from toolglot.render.content.compaction import write_summaries
from toolglot.render.content.empty_content import fill_empty_content
from toolglot.render.content.foreign import strip_foreign
from toolglot.render.content.marker_carrying import attach_markers, fit_markers
from toolglot.render.content.marker_placing import may_place, place_markers
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
from toolglot.render.tools.loading import (
    define_joined_tools,
    defines_tools,
    load_tools,
    start_loading,
    undefer_if_all_are,
    write_missing_references,
)
from toolglot.render.tools.remembered import recall_fitted_tools, remember_fitted_tools
from toolglot.render.tools.tool_table import EmittedTool, Key, ToolTable
from toolglot.render.turn_facts import TurnFacts

_UNKNOWN: Final = "unknown"


class Rendered(Struct, frozen=True):
    """A conversation that the target accepts, what was changed for it, and what restores names and ids in the reply."""

    conversation: Conversation
    entries: tuple[Entry, ...]
    tools: ToolTable
    ids: Projection
    is_unchanged: bool
    """Whether every turn, tool and setting is the original object."""
    names: WellFormedTurns | None = None
    """Maps native ids to canonical ones, if the passes used the native ones."""
    is_plain: bool = False
    """Whether no pass ran, since the target accepts the turns as they are."""
    has_placed_markers: bool = False
    """Whether cache markers were added that the client did not set."""

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
    shortcuts: bool = True,
    memo: TurnMemo | None = None,
) -> Rendered:
    """Render a conversation for a target.

    source: the provider for which it was written.
    keeps_items: whether the provider has stored its replies.
    destination: the endpoint and account that it goes to.
    is_continued: whether the provider has stored the turns before these.
    shortcuts: False runs every pass, even if none has anything to do.
    memo: what became of the turns in earlier requests of the same session.
    """
    ctx = RenderContext(profile, policy, source, destination)
    ctx.memo = memo
    profile = ctx.profile
    if not conversation.turns and not is_continued and (profile.turns.required or not ctx.is_native):
        raise EmptyConversationError("there is nothing to send", path="$.messages", hint="add a message")
    if profile.request.target:
        raise ModelProtocolError(
            f"{profile.model or profile.title} is served in another protocol only {ctx.rule('request.target')}",
            path="$.model",
            hint=f"send the request to the target {profile.request.target!r}",
        )
    original = conversation
    conversation = drop_refused_markers(drop_foreign_fields(conversation, ctx), ctx)
    conversation = shorten_cache_key(conversation, ctx)
    conversation = attach_markers(conversation, ctx)
    ctx.keeps_items, ctx.is_continued = ctx.is_native and keeps_items, is_continued
    # The replies so far are of the model that the client named, which need not be the model of this request (D3).
    issuer = Issuer(source.name, model=source.model) if source is not None else Issuer(_UNKNOWN)
    options = fit_options(conversation.options, ctx, has_tools=_has_tools(conversation, ctx))
    start_loading(conversation.tools, ctx)
    names: WellFormedTurns | None = None
    plain = plain_turns(conversation.turns, options, ctx) if shortcuts else None
    if plain is not None:
        names = WellFormedTurns(conversation.turns, issuer)
        turns = kept_turns = conversation.turns
    else:
        facts = TurnFacts()
        names = well_formed_turns(conversation.turns, issuer, facts.take) if shortcuts else None
        if names is not None:
            kept_turns = names.turns
            facts.extend(kept_turns, ())
            ctx.use_facts(facts)
        else:
            kept_turns = _canonicalise(conversation.turns, issuer, ctx)
        turns = kept_turns
        if kept_turns or profile.turns.required:  # otherwise it is empty on purpose
            turns, options = _fit_turns(kept_turns, options, ctx)
    if turns is not conversation.turns or options is not conversation.options:
        conversation = replace(conversation, turns=turns, options=options)
    table, emitted, options = _fit_tools_and_choice(conversation, plain, ctx)
    projection = projection_for(ctx, names.canonical_id if names is not None else None, issuer.provider)
    turns = define_joined_tools(write_missing_references(turns, emitted, ctx), ctx)
    sent = emit_calls(turns, table, projection, plain, ctx)
    rendered = Conversation(
        unless_same(tuple(sent) if plain is not None else _check_pairs(sent, ctx), turns),
        emitted,
        options,
        conversation.model,
        conversation.extra,
        conversation.form,
    )
    rendered = fit_markers(rendered, ctx)
    if may_place(ctx):
        rendered = place_markers(rendered, ctx)
    is_unchanged = (
        rendered.turns is original.turns
        and rendered.tools is original.tools
        and rendered.options is original.options
        and rendered.extra is original.extra
        and rendered.form is original.form
    )
    if ctx.has_errors and not profile.results.error_flag and not ctx.is_native:
        reason = f"there is no error flag on results {ctx.rule('results.error_flag')}; the text says Error instead"
        ctx.report("converted", reason)
    if ctx.has_new_ids and source is not None:
        reason = f"call ids were rewritten in the form that {profile.name} uses; report.ids has both forms"
        ctx.report("replaced", reason, "projection", gravity="housekeeping")
    entries: tuple[Entry, ...] = ()
    if ctx.entries:
        entries = tuple(ctx.entries)
        if any(entry.turn_key or entry.call_ids for entry in entries):
            locator = _EntryLocator(names, kept_turns)
            entries = tuple([locator.locate(entry) for entry in entries])
    return Rendered(
        rendered, entries, table, projection, is_unchanged, names, plain is not None, ctx.has_placed_markers
    )


def _fit_tools_and_choice(
    conversation: Conversation, plain: PlainTurns | None, ctx: RenderContext
) -> tuple[ToolTable, tuple[ToolSpec, ...], Options]:
    """The tools by name, the tools as they are sent, and the settings with the tool choice that is left."""
    loading = ctx.loading
    if loading is not None and plain is not None:
        for key in plain.called_tools():
            loading.call(key)
    known = recall_fitted_tools(conversation, plain, ctx)
    if known is not None:
        ctx.entries += known.entries
        return known.table, conversation.tools if known.emitted is None else known.emitted, conversation.options
    before, options = len(ctx.entries), conversation.options
    if loading is not None:
        tools = unless_same(tuple(loading.declared_tools()), conversation.tools)
        declared = conversation if tools is conversation.tools else replace(conversation, tools=tools)
    else:
        declared = conversation
    fitted = fit_tools(declared, ctx)
    ctx.entries[before:] = join_alike(ctx.entries[before:], "$.tools")
    choice, chosen = fit_choice(declared, fitted, ctx)
    if loading is not None:
        chosen = undefer_if_all_are(chosen, ctx)
    table = _tool_table(conversation.turns, chosen, plain, ctx)
    if choice is not None and choice.names:
        choice = replace(choice, names=tuple(map(table.chosen_name, choice.names)))
    if choice is not options.tool_choice:
        options = replace(options, tool_choice=choice)
    emitted = tuple([tool.emitted for tool in chosen])
    if not table.is_plain:
        emitted = tuple([_emitted_tool(tool, table, ctx.profile) for tool in chosen])
    if loading is not None:
        emitted = loading.take_joined([key_of(tool.original) for tool in chosen], emitted)
    same = unless_same(emitted, conversation.tools)
    return table, remember_fitted_tools(conversation, table, same, ctx.entries[before:], ctx), options


def _check_pairs(turns: Iterable[Turn], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns, if calls and results agree. A render that would break laws 1 and 6 is stopped, not sent."""
    checked: list[Turn] = []
    is_open: dict[str, bool] = {}
    """By the id of a call, whether its result has not come yet."""
    for turn in turns:
        checked.append(turn)
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                if block.id in is_open:
                    raise _render_error(f"two calls have the id {quote(block.id)}", ctx)
                is_open[block.id] = True
            elif isinstance(block, ToolResult):
                if not is_open.get(block.call_id):
                    raise _render_error(f"a result answers {quote(block.call_id)}, which is not an open call", ctx)
                is_open[block.call_id] = False
    unanswered = sum(is_open.values())
    if unanswered:
        raise _render_error(f"{unanswered} calls have no result", ctx)
    return tuple(checked)


def _render_error(what: str, ctx: RenderContext) -> RenderError:
    report = "\n".join(map(str, ctx.entries))
    return RenderError(f"a render for {ctx.profile.name} was stopped: {what}; please report it", report)


def _has_tools(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether tools will be declared: the own ones, those that turns define, or stubs for those that they call."""
    if conversation.tools:
        return True
    needs_stubs = ctx.profile.tools.required_with_history
    return any((needs_stubs and turn.calls) or defines_tools(turn) for turn in conversation.turns)


def _canonicalise(turns: tuple[Turn, ...], issuer: Issuer, ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with canonical ids, each result matched with its call."""
    issued = [turn if turn.issuer is not None else replace(turn, issuer=issuer) for turn in turns]
    return Intake(ctx.entries).take_all(issued)


class _EntryLocator:
    """Adds to entries of the report the turn of the original conversation, and the ids that the client knows."""

    def __init__(self, names: WellFormedTurns | None, kept_turns: tuple[Turn, ...]) -> None:
        self._names = names
        self._numbers = {} if names is not None else {turn.key: number for number, turn in enumerate(kept_turns)}
        calls = () if names is not None else (call for turn in kept_turns for call in turn.calls)
        self._natives = {call.id: call.metadata.raw_id or "" for call in calls if call.metadata is not None}

    def locate(self, entry: Entry) -> Entry:
        """The entry with canonical ids and keys, as a history assigns them, and with the native ids."""
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


def _tool_table(
    turns: tuple[Turn, ...], tools: Sequence[EmittedTool], plain: PlainTurns | None, ctx: RenderContext
) -> ToolTable:
    used: Iterable[Key] = plain.called_tools() if plain is not None else ctx.facts(turns).called_tools
    table = ToolTable(ctx.profile, tools, used)
    if table.is_plain:
        return table
    for namespace in table.flattened_namespaces:
        reason = f"namespaces of tools are not supported {ctx.rule('tools.namespaces')}"
        ctx.report(
            "renamed",
            f"{reason}; {namespace[:80]!r} became part of the names of its tools",
            "projection",
            path="$.tools",
        )
    for renamed in table.names.renamed:
        reason = f"{renamed.original[:80]!r} {renamed.reason}; renamed to {renamed.emitted!r}"
        ctx.report("renamed", reason, "projection", path="$.tools")
    return table


TURN_PASSES: Final[tuple[Callable[[tuple[Turn, ...], RenderContext], tuple[Turn, ...]], ...]] = (
    write_summaries,
    assign_speakers,
    load_tools,
    strip_foreign,
    pair_results,
    fit_media,
    drop_refused_thinking,
    split_parallel_calls,
    fill_empty_content,
    separate_text_and_calls,
    drop_trailing_thinking,
    fit_roles,
)
"""The passes over turns, in order. A pass that has nothing to change returns the tuple that it got."""


def _fit_turns(turns: tuple[Turn, ...], options: Options, ctx: RenderContext) -> tuple[tuple[Turn, ...], Options]:
    for fit in TURN_PASSES:
        turns = fit(turns, ctx)
    return add_required_thinking(turns, options, ctx)


def _emitted_tool(tool: EmittedTool, table: ToolTable, profile: Profile) -> ToolSpec:
    if tool.emitted.issuer is not None:
        return tool.emitted
    namespace = tool.original.namespace if profile.tools.namespaces else None
    name = table.emitted_name(key_of(tool.original))
    if (name, namespace) == key_of(tool.emitted)[::-1]:
        return tool.emitted
    return replace(tool.emitted, name=name, namespace=namespace)

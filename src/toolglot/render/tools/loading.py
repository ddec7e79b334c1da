"""Tools that are loaded later: which tools are declared, and what the turns say about those that were loaded.

A deferred tool is hidden from the model until a search finds it (`ToolReference`), a prompt adds it (`ToolChange`) or
the provider's own search loads it (`ServerTool.loaded`). A target that has these things keeps them (`tools.deferred`).
For any other target:

- a tool that is not loaded is not declared; one that is loaded is declared from then on, behind those that are there,
  in the order in which they were loaded, so that a longer history only adds tools at the end (law 5);
- where the turns may define tools (`defined`), it is defined behind the turn that loaded it instead, so that the list
  of tools, which the prompt begins with, stays as it is in the provider's cache;
- a reference, and a change of the tools, becomes text that names the tools as the model knows them;
- a tool that the history calls is declared too; a tool that was removed stays declared, because the history may call it
  and a shorter list would change the start of the request: the text says that it may not be called any more.

`Policy(deferred_tools="start")` declares all deferred tools from the start instead. So does a request that leaves the
search to a provider that the target cannot replace: nothing else would find the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Final, Literal

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Issuer,
    ResultPart,
    ServerTool,
    Text,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation.visible_tools import loaded_by, tool_key
from toolglot.render.context import RenderContext, unless_same
from toolglot.render.tools.tool_table import EmittedTool, Key, ToolTable
from toolglot.render.turn_facts import PROMPTS

FOUND: Final = "These tools were found. You can call them from now on:"
ADDED: Final = "You can call these tools from now on:"
REMOVED: Final = "You can no longer call these tools:"
MISSING: Final = "These tools are not available:"

PLACEHOLDERS: Final = frozenset({"DeferredToolPlaceholder"})
"""Deferred tools that only keep deferring active (Claude Code declares one). They are never offered elsewhere."""

SEARCH: Final = "tool_search"
"""The type of a provider's own search that replaces that of another provider."""

NAMESPACE: Final = "namespace"
"""The type of a namespace without tools. Those of others are tools of their own."""

_ABOUT: Final = 200
"""How many characters of a description the text about a tool has."""
_SHOWN_NAMES: Final = 8


_Way = Literal["declared", "referenced", "inline", "joined"]
"""A loaded tool is declared like any other, or it stays deferred and the turns refer to it, or the turns define it: in
the client's own words, or in a turn of their own (`joined`)."""


class ToolLoading:
    """The deferred tools of one request, and how each of them was loaded."""

    def __init__(self, tools: Sequence[ToolSpec], ctx: RenderContext) -> None:
        self._ctx = ctx
        self._forms = _usable_forms(tools, ctx)
        self._tools = tools
        self._joins = not ctx.is_native and "defined" in self._forms
        self._declared = {
            tool_key(tool): tool
            for tool in reversed(tools)
            if tool.issuer is None and not self._is_placeholder(tool) and not is_empty_namespace(tool, ctx)
        }
        may_defer = "declared" in self._forms
        self._keeps = may_defer and not all(tool.deferred for tool in tools)  # not all tools may be deferred
        self._is_start = self._lacks_search() or (
            not self._keeps and (may_defer or ctx.policy.deferred_tools == "start")
        )
        """Whether all tools are declared from the start."""
        self._redefined: set[Key] = set()
        """Tools that the turns define again in another way, as far as reported."""
        self._defined: dict[Key, ToolSpec] = {}
        """Tools that the turns define."""
        self._loaded: dict[Key, _Way] = {}
        """Loaded tools, in order, and how each of them reaches the target."""
        self._loaders: dict[Key, Block] = {}
        """The block that loaded a tool and so decides how it reaches the target: later ones change nothing (law 5)."""
        self._names: dict[Key, None] = dict.fromkeys(self._declared)
        """All tools of the conversation, declared, defined or called."""
        self._fresh: list[Key] = []
        """The tools that the last turn loaded."""
        self._definitions: dict[Key, ToolSpec] = {}
        """The tools that turns of their own define, as the target sees them."""
        self.late: frozenset[Key] = frozenset()
        """The tools that are declared because they were loaded, once that is known (`declared_tools`)."""
        self.called_first: dict[Key, None] = {}
        """Tools that are called before any tool is loaded, and are not deferred themselves."""

    def _is_placeholder(self, tool: ToolSpec) -> bool:
        return not self._ctx.is_native and tool.name in PLACEHOLDERS

    # --- what the turns load ------------------------------------------------------------------------

    def take_names(self, turns: Iterable[Turn]) -> None:
        """Collect the tools of all turns, so that each gets the name that it has in the request."""
        for turn in turns:
            for block in turn.blocks:
                if type(block) is ToolCall:
                    self._names[tool_key(block)] = None
                else:
                    defined = [reference for reference in loaded_by(block) if reference.definition is not None]
                    self._names.update(dict.fromkeys(map(tool_key, defined)))

    def _take(self, turn: Turn) -> None:
        """Add what a turn loads. What is said about it depends only on the turns so far (law 5)."""
        self._fresh = []
        for block in turn.blocks:
            if type(block) is ToolCall:
                self.call(tool_key(block))
            else:
                self._load(block)

    def call(self, key: Key) -> None:
        """A tool that the history calls is loaded, however that came about. In a native request, the target knows."""
        tool = self._declared.get(key)
        if tool is None or not tool.deferred:
            if not self._loaded:
                self.called_first[key] = None
        elif not (self._ctx.is_native and "declared" in self._forms):
            self._loaded.setdefault(key, "declared")

    def _load(self, block: Block) -> None:
        for reference in loaded_by(block):
            key = self._key(reference)
            if reference.definition is not None and not is_empty_namespace(reference.definition, self._ctx):
                self._define(key, replace(reference.definition, name=key[1], namespace=key[0]))
            if key not in self._loaded and (key in self._defined or key in self._declared):
                self._loaded[key] = "declared"
                self._loaders[key] = block
                self._fresh.append(key)

    def _define(self, key: Key, tool: ToolSpec) -> None:
        """Add a tool that the turns define. One that the model sees already stays as it is (law 5)."""
        seen = self._defined.get(key) or self._declared.get(key)
        if seen is None or (seen.deferred and key not in self._loaded and not self._is_start):
            self._defined[key] = tool
        elif key not in self._redefined and _differ(seen, tool):
            self._redefined.add(key)
            reason = f"{key[1][:80]} is defined again, in another way; the first definition was kept"
            self._ctx.report("dropped", reason, path="$.tools")

    def _key(self, reference: ToolReference) -> Key:
        """The tool that is meant. A reference without a namespace may mean a tool that has one."""
        key = tool_key(reference)
        if key in self._declared or key in self._defined or key[0] is not None:
            return key
        return self._by_name.get(reference.name, key)

    @cached_property
    def _by_name(self) -> dict[str, Key]:
        return {key[1]: key for key in self._declared}

    def _tool(self, key: Key) -> ToolSpec | None:
        return self._defined.get(key) or self._declared.get(key)

    def _is_known(self, reference: ToolReference) -> bool:
        return self._tool(self._key(reference)) is not None

    # --- what the turns say -------------------------------------------------------------------------

    def fit_turn(self, turn: Turn, *, is_leading: bool) -> Turn:
        """The turn with references and changes that the target has, and with text in place of the others."""
        self._take(turn)
        blocks: list[Block] = []
        for block in turn.blocks:
            if isinstance(block, ToolResult):
                blocks.append(self._fit_result(block, turn))
            elif isinstance(block, ToolChange):
                blocks += self._fit_change(block, turn, is_leading=is_leading)
            elif isinstance(block, ToolReference):
                blocks += self._fit_change(ToolChange((block,)), turn, is_leading=True)
            else:
                if isinstance(block, ServerTool) and block.loaded and self._is_own(block):
                    self._keep(block.loaded, block)
                blocks.append(block)
        kept = unless_same(tuple(blocks), turn.blocks)
        return turn if kept is turn.blocks else replace(turn, blocks=kept)

    def joined_turns(self, turn: Turn) -> tuple[Turn, ...]:
        """The turn behind one that was just fitted: it defines what that one loaded. Its definitions come later, once
        the tools have their form (`define_joined_tools`)."""
        if not self._joins:
            return ()
        joined = [key for key in self._fresh if self._loaded[key] == "declared" and self._is_late(key)]
        if not joined:
            return ()
        self._loaded.update(dict.fromkeys(joined, "joined"))
        change = ToolChange(tuple([ToolReference(name, namespace) for namespace, name in joined]))
        return (Turn("developer", (change,), key=f"{turn.key}+tools"),)

    def _is_late(self, key: Key) -> bool:
        """Whether a tool is not declared from the start."""
        declared = self._declared.get(key)
        return declared is None or (declared.deferred and not self._is_start)

    @property
    def has_joined(self) -> bool:
        """Whether turns of their own define tools."""
        return "joined" in self._loaded.values()

    def take_joined(self, keys: Sequence[Key], emitted: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools that are declared, without those that turns define."""
        joined = {key for key, way in self._loaded.items() if way == "joined"}
        if not joined:
            return emitted
        listed = list(zip(keys, emitted, strict=True))
        self._definitions = {key: tool for key, tool in listed if key in joined}
        return tuple([tool for key, tool in listed if key not in joined])

    def define(self, change: ToolChange) -> ToolChange:
        """A change with the definitions of its tools. One that was dropped after all is left out."""
        found = [self._definitions.get(tool_key(reference)) for reference in change.added]
        tools = [tool for tool in found if tool is not None]
        return replace(change, added=tuple([ToolReference(tool.name, tool.namespace, tool) for tool in tools]))

    def without_additions(self, turn: Turn) -> Turn | None:
        """A leading turn without the tools that it adds, which are declared with the others; None if that is all."""
        if self._ctx.is_native or not any(_only_adds(block) for block in turn.blocks):
            return turn
        self._take(turn)
        reason = "tools that are added before the first message are declared with the others"
        self._ctx.report("converted", reason, turn_key=turn.key, gravity="housekeeping")
        blocks = tuple([block for block in turn.blocks if not _only_adds(block)])
        return replace(turn, blocks=blocks) if blocks else None

    def _is_own(self, block: ServerTool) -> bool:
        return block.protocol == self._ctx.profile.protocol and self._ctx.is_native

    def _keep(self, references: Iterable[ToolReference], block: Block, *, defines: bool = False) -> None:
        """The target loads the tools of a block itself; `defines`: it reads their definitions too."""
        for reference in references:
            key = self._key(reference)
            if self._loaders.get(key) is block:
                self._loaded[key] = "inline" if defines and reference.definition is not None else "referenced"

    def _fit_result(self, result: ToolResult, turn: Turn) -> ToolResult:
        content = result.content
        if not isinstance(content, tuple) or not any(isinstance(part, ToolReference) for part in content):
            return result
        keeps = "referenced" in self._forms and (
            self._ctx.is_native or all(isinstance(part, ToolReference) and self._is_known(part) for part in content)
        )
        parts = unless_same(tuple(self._fit_parts(content, result, keeps=keeps)), content)
        if parts is content:
            return result
        if any(isinstance(part, Text) for part in parts):
            reason = f"the tools that a search found became text {self._ctx.rule('tools.deferred')}"
            self._ctx.report("converted", reason, turn_key=turn.key, call_ids=(result.call_id,))
        return replace(result, content=parts)

    def _fit_parts(self, parts: tuple[ResultPart, ...], result: ToolResult, *, keeps: bool) -> Iterator[ResultPart]:
        for is_reference, run in groupby(parts, lambda part: isinstance(part, ToolReference)):
            if not is_reference:
                yield from run
                continue
            kept: list[ToolReference] = []
            others: list[ToolReference] = []
            for part in run:
                if isinstance(part, ToolReference):
                    (kept if keeps and self._is_known(part) else others).append(part)
            self._keep(kept, result)
            yield from map(self._emitted_reference, kept)
            if others:
                yield Text(self._text(FOUND, others))

    def _emitted_reference(self, reference: ToolReference) -> ToolReference:
        """A reference by the name that the target knows."""
        name = self._emitted_name(reference)
        if name == reference.name and reference.namespace is None and reference.definition is None:
            return reference
        return replace(reference, name=name, namespace=None, definition=None)

    def _fit_change(self, change: ToolChange, turn: Turn, *, is_leading: bool) -> list[Block]:
        is_place = turn.role in PROMPTS and not is_leading
        tools = (*change.added, *change.removed)
        if not tools:
            return []
        if "added" in self._forms and is_place and all(map(self._is_known, tools)) and self._ctx.is_native:
            self._keep(change.added, change, defines=True)
            return [change]
        return [self.change_as_text(change, turn)]

    def change_as_text(self, change: ToolChange, turn: Turn) -> Text:
        """A change of the tools for a turn that cannot hold one. Its tools are declared like any others."""
        for reference in change.added:
            key = self._key(reference)
            if self._loaders.get(key) is change:
                self._loaded[key] = "declared"
        reason = f"a change of the tools became text {self._ctx.rule('tools.deferred')}"
        self._ctx.report("converted", reason, turn_key=turn.key)
        added = self._text(ADDED, change.added) if change.added else ""
        removed = ", ".join(map(self._emitted_name, change.removed))
        return Text("\n".join(part for part in (added, f"{REMOVED} {removed}" if removed else "") if part))

    def _text(self, head: str, references: Iterable[ToolReference]) -> str:
        known: list[str] = []
        missing: list[str] = []
        for reference in references:
            tool = self._tool(self._key(reference))
            if tool is None:
                missing.append(reference.name)
            else:
                known.append(f"- {self._emitted_name(reference)}: {_short(tool.description)}".rstrip(": "))
        lines = [head, *known] if known else []
        return "\n".join([*lines, f"{MISSING} {', '.join(missing)}"] if missing else lines)

    def _emitted_name(self, reference: ToolReference) -> str:
        """The name by which the model calls a tool; one that is not known yet is named as the client names it."""
        return self._table.emitted_name(self._key(reference)) if self._is_known(reference) else reference.name

    @cached_property
    def _table(self) -> ToolTable:
        return ToolTable(self._ctx.profile, (), self._names)

    # --- what is declared ---------------------------------------------------------------------------

    def declared_tools(self) -> list[ToolSpec]:
        """The tools that are declared, those that were loaded behind the others."""
        lacks_search = self._lacks_search()
        tools: list[ToolSpec] = []
        withheld: list[str] = []
        in_place: set[Key] = set()
        for tool in self._tools:
            key = tool_key(tool)
            if tool.is_search and tool.issuer is not None and not self._runs(tool):
                tools += self._own_search()
            elif not tool.deferred or tool.issuer is not None:
                tools.append(tool)
                in_place.add(key)
            elif self._is_placeholder(tool):
                withheld.append(tool.name)
            elif self._loaded.get(key) not in ("declared", "joined") and self._keeps and not lacks_search:
                tools.append(tool)
                in_place.add(key)
            elif self._is_start:
                tools.append(replace(tool, deferred=False))
                in_place.add(key)
            elif key not in self._loaded:
                withheld.append(tool.name)
        late = [key for key, way in self._loaded.items() if key not in in_place and way != "inline"]
        for key in late:
            tool = self._defined.get(key) or self._declared[key]
            tools.append(replace(tool, deferred=self._loaded[key] == "referenced" and self._keeps))
        self.late = frozenset(late)
        self._report(late, withheld)
        if self._is_start and not lacks_search and any(tool.deferred for tool in self._tools):
            reason = (
                f"not all tools may be deferred {self._ctx.rule('tools.deferred')}; they"
                if "declared" in self._forms
                else "deferred tools"
            )
            self._ctx.report("converted", f"{reason} are declared from the start", "policy", path="$.tools")
        return tools

    def _runs(self, search: ToolSpec) -> bool:
        return search.issuer is not None and search.issuer.provider == self._ctx.profile.protocol

    def _lacks_search(self) -> bool:
        """Whether only another provider could search for the deferred tools."""
        if {"searched", "declared"} <= self._forms:
            return False
        return any(tool.is_search and tool.issuer is not None and not self._runs(tool) for tool in self._tools)

    def _own_search(self) -> list[ToolSpec]:
        """The target's own search in place of that of another provider, if it has one."""
        ctx = self._ctx
        if self._lacks_search():
            reason = f"the target has no search for tools {ctx.rule('tools.deferred')}; all of them are declared"
            ctx.report("converted", reason, path="$.tools")
            return []
        ctx.report("converted", "the search for tools became that of the target", path="$.tools")
        return [ToolSpec("", type=SEARCH, issuer=Issuer(ctx.profile.protocol), is_search=True)]

    def _report(self, late: list[Key], withheld: list[str]) -> None:
        ctx = self._ctx
        if withheld:
            reason = f"tools that are not loaded are not declared {ctx.rule('tools.deferred')}: {_list(withheld)}"
            ctx.report("deferred", reason, "renderer", path="$.tools")
        joined = [key[1] for key in late if self._loaded[key] == "joined"]
        behind = [key[1] for key in late if self._loaded[key] != "joined"]
        if joined:
            reason = f"tools are defined where they were loaded {ctx.rule('tools.deferred')}: {_list(joined)}"
            ctx.report("converted", reason, "renderer", path="$.tools")
        if behind:
            reason = f"tools that were loaded later are declared behind the others: {_list(behind)}"
            ctx.report("converted", reason, "renderer", path="$.tools")


def _usable_forms(tools: Sequence[ToolSpec], ctx: RenderContext) -> frozenset[str]:
    """What the target has for tools that are loaded later. Where results cannot name the tools that they load, a tool
    may only be declared as deferred if the target searches for it itself."""
    forms = frozenset(ctx.profile.tools.deferred)
    if ctx.is_native or "referenced" in forms or any(tool.is_search for tool in tools):
        return forms
    return forms - {"declared"}


def is_empty_namespace(tool: ToolSpec, ctx: RenderContext) -> bool:
    """Whether it is no tool for the target, but a namespace that nothing is in."""
    return tool.type == NAMESPACE and not ctx.profile.tools.namespaces


def _differ(tool: ToolSpec, other: ToolSpec) -> bool:
    """Whether two definitions differ in what a model sees of them."""
    return (tool.description, tool.parameters, tool.format) != (other.description, other.parameters, other.format)


def _only_adds(block: Block) -> bool:
    return isinstance(block, ToolChange) and bool(block.added) and not block.removed


def _short(description: str | None) -> str:
    about = (description or "").strip().partition("\n")[0]
    return about if len(about) <= _ABOUT else f"{about[:_ABOUT].rstrip()} …"


def _list(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(name[:80] for name in listed[:_SHOWN_NAMES])
    return shown if len(listed) <= _SHOWN_NAMES else f"{shown} and {len(listed) - _SHOWN_NAMES} more"


def defines_tools(turn: Turn) -> bool:
    """Whether a turn defines tools that it loads."""
    return any(reference.definition is not None for block in turn.blocks for reference in loaded_by(block))


def start_loading(tools: tuple[ToolSpec, ...], ctx: RenderContext) -> None:
    """Note the tools of a request, and whether it depends on the turns which of them are declared."""
    ctx.tools = tools
    if any(tool.deferred or (tool.is_search and tool.issuer is not None) for tool in tools):
        ctx.loading = ToolLoading(tools, ctx)


def load_tools(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """A pass: the turns with what they load in the target's form."""
    kinds = ctx.facts(turns).kinds
    if ctx.loading is None and kinds.isdisjoint((ToolReference, ToolChange)):
        return turns
    if ctx.is_native and "defined" in ctx.profile.tools.deferred:
        return turns  # the turns define what they load, and the target reads that
    loading = ctx.loading = ctx.loading or ToolLoading(ctx.tools, ctx)
    loading.take_names(turns)
    head = next((number for number, turn in enumerate(turns) if turn.role not in PROMPTS and turn.blocks), len(turns))
    is_strict = ctx.profile.turns.system_inside != "anywhere"
    leading = [kept for turn in turns[:head] if (kept := loading.without_additions(turn)) is not None]
    fitted = [loading.fit_turn(turn, is_leading=is_strict) for turn in leading]
    for turn in turns[head:]:
        fitted.append(loading.fit_turn(turn, is_leading=False))
        fitted += loading.joined_turns(turn)
    return unless_same(tuple(fitted), turns)


def define_joined_tools(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with the definitions of the tools that join at them."""
    loading = ctx.loading
    if loading is None or not loading.has_joined:
        return turns
    defined = [_with_definitions(turn, loading) for turn in turns]
    return unless_same(tuple([turn for turn in defined if turn is not None]), turns)


def _with_definitions(turn: Turn, loading: ToolLoading) -> Turn | None:
    if not any(isinstance(block, ToolChange) for block in turn.blocks):
        return turn
    blocks = [loading.define(block) if isinstance(block, ToolChange) else block for block in turn.blocks]
    kept = tuple([block for block in blocks if not isinstance(block, ToolChange) or block.added])
    return replace(turn, blocks=kept) if kept else None


def undefer_if_all_are(tools: Sequence[EmittedTool], ctx: RenderContext) -> Sequence[EmittedTool]:
    """The tools, not all of them deferred: that is refused."""
    if not tools or not all(tool.emitted.deferred for tool in tools):
        return tools
    reason = f"not all tools may be deferred {ctx.rule('tools.deferred')}; they are declared from the start"
    ctx.report("converted", reason, path="$.tools")
    return [replace(tool, emitted=replace(tool.emitted, deferred=False)) for tool in tools]


def write_missing_references(
    turns: tuple[Turn, ...], tools: Sequence[ToolSpec], ctx: RenderContext
) -> tuple[Turn, ...]:
    """The turns without references to tools that are not declared after all, for example because there are too many."""
    if ctx.loading is None:
        return turns
    names = {tool.name for tool in tools}
    return unless_same(tuple([_without_missing(turn, names, ctx) for turn in turns]), turns)


def _without_missing(turn: Turn, names: set[str], ctx: RenderContext) -> Turn:
    blocks = tuple([_known_parts(block, names) if isinstance(block, ToolResult) else block for block in turn.blocks])
    kept = unless_same(blocks, turn.blocks)
    if kept is turn.blocks:
        return turn
    reason = f"a reference to a tool that is not declared became text {ctx.rule('tools.deferred')}"
    ctx.report("converted", reason, turn_key=turn.key)
    return replace(turn, blocks=kept)


def _known_part(part: ResultPart, names: set[str]) -> ResultPart:
    if not isinstance(part, ToolReference) or part.definition is not None or part.name in names:
        return part
    return Text(f"{MISSING} {part.name}")


def _known_parts(result: ToolResult, names: set[str]) -> ToolResult:
    if not isinstance(result.content, tuple):
        return result
    parts = tuple([_known_part(part, names) for part in result.content])
    kept = unless_same(parts, result.content)
    return result if kept is result.content else replace(result, content=kept)

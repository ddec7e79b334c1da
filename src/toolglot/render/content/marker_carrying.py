"""Carries cache markers to a target that has them, in its own form and within its limits.

A marker says that the prompt is cached up to the value that it is on. Two steps, since the passes between them move
and join values:
- `attach_markers`, before all passes: a block that is nothing but a marker becomes a field of the block before it.
- `fit_markers`, after all passes: the markers are collected, fitted and written anew.

Laws: as many markers as `cache.max_markers`, at `cache.positions`, for `cache.ttls`, those with the longer time first.
A marker that cannot stay where it was moves back to the nearest value that can be marked, never forward: what is
cached was to be cached. Whatever is dropped, moved or changed is reported. A request to its own provider, and one
without markers, is left alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Opaque, Text, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation.cache_markers import (
    is_marker,
    marked,
    marked_tool,
    marker_in,
    markers_in_block,
    markers_of,
    marking_of,
    may_have_markers,
    takes_marker,
    takes_tool_marker,
    with_field,
    with_markers_of,
    without_any_markers,
)
from toolglot.conversation.forms import CacheMarker, protocols
from toolglot.conversation.report import Action
from toolglot.conversation.tool_memory import RememberedTools
from toolglot.render.context import RenderContext, unless_same
from toolglot.render.turn_facts import PROMPTS

TOOLS: Final = -1
"""The index of a turn, for a tool."""


class Site(NamedTuple):
    """Where a marker may be: a block of a turn, or a tool."""

    turn: int
    at: int


class Marks:
    """The markers of a request, by where they are, in the order of the prompt."""

    def __init__(self) -> None:
        self.at: dict[Site, CacheMarker] = {}

    def add(self, site: Site, marker: CacheMarker) -> bool:
        """Add a marker; False if there is one that lasts as long. Of two, the longer time counts."""
        other = self.at.get(site)
        if other is not None and (marker.ttl is None or marker.ttl == other.ttl or other.ttl is not None):
            return False
        self.at[site] = marker
        return other is None


class MarkerReport:
    """What happens to markers, one entry for each reason, with how often."""

    def __init__(self, ctx: RenderContext) -> None:
        self._ctx = ctx
        self._found: dict[tuple[Action, str], tuple[int, str]] = {}

    def add(self, action: Action, reason: str, turn: Turn | None = None) -> None:
        count, first = self._found.get((action, reason), (0, turn.key if turn is not None else ""))
        self._found[action, reason] = (count + 1, first)

    def report_all(self) -> None:
        for (action, reason), (count, key) in self._found.items():
            times = "" if count == 1 else f" ({count} times)"
            path = "" if key else "$"
            self._ctx.report(action, f"{reason}{times}", path=path, turn_key=key, gravity="housekeeping")


def carries_markers(ctx: RenderContext) -> bool:
    """Whether markers are written anew: the target has them, and the request is not of its own client."""
    return ctx.profile.cache.style == "markers" and not ctx.is_native


# --- before the passes ------------------------------------------------------------------------------


def attach_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with every marker on a value, for a target that has markers. Counts them."""
    if not carries_markers(ctx):
        return conversation
    names = _protocols_with_markers(ctx)
    has_marks = any(may_have_markers(conversation.turns, conversation.tools, name) for name in names)
    if not has_marks and not (names and markers_of(conversation)):
        return conversation
    conversation = _attach(conversation, ctx)
    ctx.cache_markers = _count(conversation)
    return conversation


def _protocols_with_markers(ctx: RenderContext) -> tuple[str, ...]:
    """The protocols whose markers may be there: the client's, or if there is none, that of whoever made the turns."""
    names = protocols() if ctx.source is None else (ctx.source.protocol,)
    return tuple([name for name in names if marking_of(name) is not None])


def _attach(conversation: Conversation, ctx: RenderContext) -> Conversation:
    return _with_markers_on_values(conversation, ctx) if _has_other_markers(conversation.turns) else conversation


def _has_other_markers(turns: tuple[Turn, ...]) -> bool:
    """Whether there are markers that are blocks, or on whole turns."""
    for turn in turns:
        if turn.extra is not None and markers_of(turn):
            return True
        for block in turn.blocks:
            if type(block) is Opaque and is_marker(block):
                return True
            if type(block) is ToolResult and type(block.content) is tuple and any(map(_is_marker_part, block.content)):
                return True
    return False


def _is_marker_part(part: Any) -> bool:
    return type(part) is Opaque and is_marker(part)


def _with_markers_on_values(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with marker blocks as fields of what is before them, and those of turns on their last blocks."""
    turns: list[list[Block]] = []
    tools = list(conversation.tools)
    is_changed: list[bool] = []
    last: int | None = None  # the last turn so far that has anything but markers
    for turn in conversation.turns:
        blocks: list[Block] = []
        turns.append(blocks)
        is_changed.append(False)
        for block in turn.blocks:
            if isinstance(block, Opaque) and is_marker(block):
                is_changed[-1] = True
                if last is not None:
                    turns[last][-1] = with_field(turns[last][-1], marker_in(block), block.protocol)
                    is_changed[last] = True
                elif tools:
                    tools[-1] = with_field(tools[-1], marker_in(block), block.protocol)
                else:
                    reason = "a cache marker at the beginning of the prompt marks nothing; it was dropped"
                    ctx.report("dropped", reason, path="$", gravity="housekeeping")
            else:
                whole = _with_parts_marked(block)
                is_changed[-1] |= whole is not block
                blocks.append(whole)
                last = len(turns) - 1
        if blocks and turn.extra is not None and markers_of(turn):
            blocks[-1] = with_markers_of(blocks[-1], (turn,))
            is_changed[-1] = True
    rebuilt = [
        replace(without_any_markers(turn) if blocks else turn, blocks=tuple(blocks)) if changed else turn
        for turn, blocks, changed in zip(conversation.turns, turns, is_changed, strict=True)
    ]
    pairs = zip(rebuilt, conversation.turns, strict=True)
    kept = tuple([turn for turn, before in pairs if turn.blocks or not before.blocks])
    return replace(conversation, turns=kept, tools=unless_same(tuple(tools), conversation.tools))


def _with_parts_marked(block: Block) -> Block:
    """A result whose marker blocks are a field of it."""
    if type(block) is not ToolResult or type(block.content) is not tuple:
        return block
    points = [part for part in block.content if isinstance(part, Opaque) and is_marker(part)]
    if not points:
        return block
    rest = tuple([part for part in block.content if not _is_marker_part(part)])
    return with_field(replace(block, content=rest), marker_in(points[-1]), points[-1].protocol)


def _count(conversation: Conversation) -> int:
    count = len(markers_of(conversation)) + sum([len(markers_of(tool)) for tool in conversation.tools])
    for turn in conversation.turns:
        count += len(markers_of(turn))
        for block in turn.blocks:
            if block.extra is not None or block.form is not None:
                count += len(markers_of(block))
            if type(block) is ToolResult and type(block.content) is tuple:
                count += sum([len(markers_of(part)) for part in block.content if part.extra is not None])
    return count


# --- a request of the target's own client -----------------------------------------------------------


def _has_refused_markers(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether the target refuses markers of its own client: too many, malformed, at the wrong place, or for the
    wrong time."""
    rules, found = ctx.profile.cache, _native_markers(conversation, ctx.profile.protocol)
    if not found:
        return False
    if len(found) > rules.max_markers or _has_refused_field(conversation, ctx):
        return True
    refuses = ctx.profile.request.unknown_fields == "refused"
    longest = len(rules.ttls)
    for section, marker in found:
        if marker.is_malformed:
            return True
        is_result = section == "results" and "messages" in rules.positions  # which none is known to refuse
        if refuses and section not in rules.positions and not is_result:
            return True
        if rules.ttls:
            if marker.ttl is not None and marker.ttl not in rules.ttls:
                return True
            rank = 0 if marker.ttl is None else rules.ttls.index(marker.ttl)
            if rank > longest:
                return True
            longest = rank
    return False


def _has_refused_field(conversation: Conversation, ctx: RenderContext) -> bool:
    """Whether the request itself has a marker, where only blocks and tools may have one."""
    marking = marking_of(ctx.profile.protocol)
    is_refused = marking is not None and marking.field in ctx.profile.request.refused_fields
    return is_refused and bool(markers_of(conversation, ctx.profile.protocol))


def _native_markers(conversation: Conversation, protocol: str) -> list[tuple[str, CacheMarker]]:
    """The markers with the part of the prompt that they are in. Every native request comes here; calls cost."""
    tools = [tool for tool in conversation.tools if tool.extra is not None or tool.form is not None]
    found = [("tools", marker) for tool in tools for marker in _own_markers(tool, protocol)]
    for turn in conversation.turns:
        for block in turn.blocks:
            if block.extra is None:
                kind = type(block)
                if kind is Text or kind is ToolCall:
                    continue
                if type(block) is ToolResult and not _has_marked_part(block):
                    continue
            found += _markers_in_turn(turn, protocol)
            break
        if turn.extra is not None:
            section = "results" if turn.role == "tool" else section_of(turn, Text)
            found += [(section, marker) for marker in _own_markers(turn, protocol)]
    if conversation.extra is not None:
        found += [("messages", marker) for marker in _own_markers(conversation, protocol)]
    return found


def _has_marked_part(result: ToolResult) -> bool:
    content = result.content
    return type(content) is tuple and bool([1 for part in content if part.extra is not None])


def _markers_in_turn(turn: Turn, protocol: str) -> list[tuple[str, CacheMarker]]:
    """The markers on its blocks. A block that is nothing but a marker belongs to the one before it."""
    found: list[tuple[str, CacheMarker]] = []
    before: type = Text
    for block in turn.blocks:
        if isinstance(block, Opaque) and block.protocol == protocol and is_marker(block):
            found += [(section_of(turn, before), marker) for marker in markers_in_block(block)]
        elif block.extra is not None or type(block) is ToolResult:
            markers: list[CacheMarker] = []
            if type(block) is ToolResult and _has_marked_part(block) and isinstance(block.content, tuple):
                for part in block.content:
                    markers += _own_markers(part, protocol)
            if block.extra is not None:
                markers += _own_markers(block, protocol)
            found += [(section_of(turn, type(block)), marker) for marker in markers]
        before = type(block)
    return found


def _own_markers(value: Block | ToolSpec | Turn | Conversation, protocol: str) -> tuple[CacheMarker, ...]:
    """The markers on a value. Where markers are blocks, a field that is called like one is none."""
    marking, form = marking_of(protocol), value.form
    if marking is None or not marking.block:
        return markers_of(value, protocol)
    return form.cache_markers if form is not None and form.protocol == protocol else ()


def section_of(turn: Turn, kind: type) -> str:
    """The part of the prompt that a kind of block in a turn is in."""
    return "results" if kind is ToolResult else "system" if turn.role in PROMPTS else "messages"


# --- after the passes -------------------------------------------------------------------------------


def fit_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The rendered conversation with the markers that the target accepts; the same if it accepts those that it has."""
    if ctx.profile.cache.style != "markers":
        return conversation
    if not ctx.is_native:
        return _write_markers(conversation, ctx) if ctx.cache_markers else conversation
    if not _has_refused_markers(conversation, ctx):
        return conversation
    attached = _attach(conversation, ctx)
    ctx.cache_markers = _count(attached)
    return _write_markers(attached, ctx)


def _write_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with the markers that the target takes, as its protocol writes them."""
    report = MarkerReport(ctx)
    marks = _Collector(ctx, report).collect(conversation)
    _fit_times(marks, ctx, report)
    _fit_number(marks, conversation, ctx, report)
    report.report_all()
    return apply_marks(conversation, marks, ctx)


class _Collector:
    """Reads the markers of a rendered conversation, each at the site where the target takes it."""

    def __init__(self, ctx: RenderContext, report: MarkerReport) -> None:
        self._ctx = ctx
        self._report = report
        self._marks = Marks()
        self._seen = 0
        self._last: Site | None = None
        """The last site so far that can be marked."""

    def collect(self, conversation: Conversation) -> Marks:
        protocol, positions = self._ctx.profile.protocol, self._ctx.profile.cache.positions
        for index, tool in enumerate(conversation.tools):
            if "tools" in positions and takes_tool_marker(tool):
                self._last = Site(TOOLS, index)
            self._take(markers_of(tool), None, is_here=self._last == (TOOLS, index))
        for number, turn in enumerate(conversation.turns):
            for index, block in enumerate(turn.blocks):
                takes = section_of(turn, type(block)) in positions and takes_marker(block, protocol)
                if takes:
                    self._last = Site(number, index)
                if block.extra is not None or block.form is not None:
                    self._take(markers_of(block), turn, is_here=takes)
                if isinstance(block, ToolResult) and type(block.content) is tuple:
                    for at, part in enumerate(block.content, start=1):
                        if part.extra is not None:
                            self._take(markers_of(part), turn, is_here=takes and at == len(block.content))
            if turn.extra is not None or turn.form is not None:
                self._take(markers_of(turn), turn, is_here=self._last == (number, len(turn.blocks) - 1))
        last = (len(conversation.turns) - 1, len(conversation.turns[-1].blocks) - 1) if conversation.turns else None
        self._take(markers_of(conversation), None, is_here=self._last == last)
        if self._seen < self._ctx.cache_markers:
            self._report.add("dropped", "cache markers on dropped content were dropped with it")
        return self._marks

    def _take(self, markers: tuple[CacheMarker, ...], turn: Turn | None, *, is_here: bool) -> None:
        for marker in markers:
            self._seen += 1
            if marker.more:
                names = ", ".join(marker.more)[:80]
                self._report.add("dropped", f"fields of cache markers that are not known there were dropped: {names}")
            if marker.is_malformed:
                self._report.add("replaced", "a malformed cache marker was written as the target reads it", turn)
            if self._last is None:
                rule = self._ctx.rule("cache.positions")
                self._report.add("dropped", f"no cache marker can be there, nor before it {rule}; dropped", turn)
            elif not self._marks.add(self._last, CacheMarker(marker.ttl)):
                self._report.add("dropped", "a cache marker that would be where another one is was dropped", turn)
            elif not is_here:
                rule = self._ctx.rule("cache.positions")
                self._report.add("moved", f"a cache marker moved back to what can be marked {rule}", turn)


def _fit_times(marks: Marks, ctx: RenderContext, report: MarkerReport) -> None:
    """Give each marker a time to live that the target has, none longer than one before it."""
    ttls = ctx.profile.cache.ttls
    longest = len(ttls)
    for site, marker in marks.at.items():
        ttl = marker.ttl
        if ttl is not None and ttl not in ttls:
            rule = ctx.rule("cache.ttls")
            reason = f"a cache marker cannot ask for {ttl[:20]!r} {rule}; the usual time to live applies"
            report.add("replaced", reason)
            ttl = None
        rank = ttls.index(ttl) if ttl is not None else 0
        if rank > longest:
            ttl, rank = ttls[longest] if longest else None, longest
            reason = f"cache markers for a longer time come before those for a shorter one {ctx.rule('cache.ttls')}"
            report.add("replaced", f"{reason}; a later one got the shorter time")
        longest = rank
        marks.at[site] = CacheMarker(ttl)


def _fit_number(marks: Marks, conversation: Conversation, ctx: RenderContext, report: MarkerReport) -> None:
    """Leave the markers that pay most, as many as the target takes."""
    limit = ctx.profile.cache.max_markers
    for site in by_worth([*marks.at], conversation.turns)[limit:]:
        del marks.at[site]
        rule = ctx.rule("cache.max_markers")
        report.add("dropped", f"at most {limit} cache markers are accepted {rule}; one that saves less was dropped")


def by_worth(sites: list[Site], turns: tuple[Turn, ...]) -> list[Site]:
    """Sites by what a marker there saves, the best first: the last of the messages, of the system prompt and of the
    tools, and then the others, from the last on."""
    head = next((number for number, turn in enumerate(turns) if turn.role not in PROMPTS), len(turns))
    last: dict[str, Site] = {}
    for site in sites:
        last["tools" if site.turn == TOOLS else "system" if site.turn < head else "messages"] = site
    first = [last[section] for section in ("messages", "system", "tools") if section in last]
    return [*first, *[site for site in reversed(sites) if site not in first]]


# --- writing ----------------------------------------------------------------------------------------


def apply_marks(conversation: Conversation, marks: Marks, ctx: RenderContext) -> Conversation:
    """The conversation with these markers and no others. What is marked already as it should be is left as it is."""
    tools = _apply_to_tools(conversation.tools, marks, ctx)
    by_turn: dict[int, dict[int, CacheMarker]] = {}
    for site, marker in marks.at.items():
        by_turn.setdefault(site.turn, {})[site.at] = marker
    turns: list[Turn] | None = None
    has_others = ctx.cache_markers > 0
    for number in range(len(conversation.turns)) if has_others else by_turn:
        if number == TOOLS:
            continue
        turn = conversation.turns[number]
        fitted = _apply_to_turn(turn, by_turn.get(number, {}), ctx)
        if fitted is not turn:
            turns = turns if turns is not None else [*conversation.turns]
            turns[number] = fitted
    sent = conversation if turns is None else replace(conversation, turns=tuple(turns))
    if has_others:
        sent = without_any_markers(sent)
    return sent if tools is sent.tools else replace(sent, tools=tools)


def _apply_to_tools(tools: tuple[ToolSpec, ...], marks: Marks, ctx: RenderContext) -> tuple[ToolSpec, ...]:
    at = {site.at: marker for site, marker in marks.at.items() if site.turn == TOOLS}
    if not at and not ctx.cache_markers:
        return tools
    key = ("cache markers", ctx.profile.protocol, *at.items())
    if type(tools) is RememberedTools and key in tools.conversions:
        known: tuple[ToolSpec, ...] = tools.conversions[key]
        return known
    fitted, before = [*tools], len(ctx.entries)
    for index in range(len(tools)) if ctx.cache_markers else at:
        fitted[index] = _apply_to_tool(tools[index], at.get(index), ctx)
    if all(new is old for new, old in zip(fitted, tools, strict=True)):
        return tools
    if type(tools) is not RememberedTools or len(ctx.entries) > before:  # what is reported must be so each time
        return tuple(fitted)
    remembered = RememberedTools(fitted)
    tools.keep(key, remembered)
    return remembered


def _apply_to_tool(tool: ToolSpec, marker: CacheMarker | None, ctx: RenderContext) -> ToolSpec:
    protocol = ctx.profile.protocol
    if marker is not None and _is_marked_so(tool, marker, protocol):
        return tool
    plain = without_any_markers(tool)
    if marker is None:
        return plain
    fitted = marked_tool(plain, marker, protocol)
    if plain.form is not None and fitted.form is not plain.form and plain.form.protocol != protocol:
        ctx.report_fields(None, plain.form, "a tool", "")
    return fitted


def _apply_to_turn(turn: Turn, at: dict[int, CacheMarker], ctx: RenderContext) -> Turn:
    blocks: list[Block] = []
    for index, block in enumerate(turn.blocks):
        marker = at.get(index)
        if marker is not None and _is_marked_so(block, marker, ctx.profile.protocol):
            blocks.append(block)
            continue
        plain = _without_block_markers(block)
        blocks += (plain,) if marker is None else marked(plain, marker, ctx.profile.protocol)
    is_same = len(blocks) == len(turn.blocks) and all(new is old for new, old in zip(blocks, turn.blocks, strict=True))
    return without_any_markers(turn if is_same else replace(turn, blocks=tuple(blocks)))


def _is_marked_so(value: Block | ToolSpec, marker: CacheMarker, protocol: str) -> bool:
    """Whether a value has this marker, written as its protocol writes it, and no other."""
    if markers_of(value) != (marker,) or isinstance(value, ToolResult):
        return False
    again = without_any_markers(value)
    if isinstance(again, ToolSpec):
        return marked_tool(again, marker, protocol) == value
    return marked(again, marker, protocol) == (value,)


def _without_block_markers(block: Block) -> Block:
    plain = block if block.extra is None and block.form is None else without_any_markers(block)
    if type(plain) is not ToolResult or type(plain.content) is not tuple:
        return plain
    parts = tuple([without_any_markers(part) if part.extra is not None else part for part in plain.content])
    is_same = all(new is old for new, old in zip(parts, plain.content, strict=True))
    return plain if is_same else replace(plain, content=parts)

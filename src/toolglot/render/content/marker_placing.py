"""Places cache markers for clients whose protocol has none, on targets that cache nothing without them.

When: from the second request of a conversation on, which is one with a turn of the assistant in its history. A first
request may be the only one, and a write costs more than plain input. No state is needed for that: whether earlier
requests were sent through here does not matter, since the next one reads what this one writes.

Where: at the last tool and at the end of the system prompt, which other conversations share; at the end of the
messages, for the next request; and where the messages ended in the request before. That one finds the entry of the
request before also if the turns since have more blocks than the target looks back (`cache.lookback`), or if the client
changed its last message.

Laws: nothing before the minimum of the target (`cache.min_tokens`), by a lower bound of its tokens. None for a request
that has a marker, for a client of the provider, or for one whose protocol has markers: it decides itself. Bounded work:
no more words are counted than the minimum asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.conversation import Conversation, Text, ToolResult, Turn
from toolglot.conversation.cache_markers import marking_of, takes_marker, takes_tool_marker
from toolglot.conversation.forms import CacheMarker
from toolglot.conversation.token_estimates import CountedTokens
from toolglot.render.content.marker_carrying import TOOLS, Marks, Site, apply_marks, by_worth, section_of
from toolglot.render.context import RenderContext
from toolglot.render.turn_facts import PROMPTS

_PLAIN: Final = CacheMarker()


def may_place(ctx: RenderContext) -> bool:
    """Whether markers are placed for this client on this target."""
    rules = ctx.profile.cache
    if not rules.placing or rules.style != "markers" or ctx.policy.cache_markers != "place" or ctx.cache_markers:
        return False
    if ctx.source is None:
        return True
    marking = marking_of(ctx.source.protocol)
    return not ctx.is_native and ctx.source.cache.style != "markers" and (marking is None or marking.is_of_hosts)


def place_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The rendered conversation with markers where they pay; the same if they do not."""
    turns = conversation.turns
    reply = _last_reply(turns)
    if reply is None:
        return conversation
    start = next((at for at, turn in enumerate(turns) if turn.role not in PROMPTS), len(turns))
    wanted = [
        ("the tools", _last_tool(conversation, ctx)),
        ("the system prompt", _last_block(turns, start - 1, 0, ctx)),
        ("the messages of the request before", _last_block(turns, reply - 1, start, ctx)),
        ("the messages", _last_block(turns, len(turns) - 1, start, ctx)),
    ]
    names = {site: name for name, site in wanted if site is not None}
    first = _first_cached(conversation, ctx)
    sites = sorted(site for site in names if first is not None and site >= first)
    marks = Marks()
    kept = by_worth(sites, turns)[: ctx.profile.cache.max_markers]
    for site in sorted(kept):
        marks.add(site, _PLAIN)
    if not marks.at:
        return conversation
    ctx.has_placed_markers = True
    places, rule = ", ".join([names[site] for site in marks.at]), ctx.rule("cache.placing")
    reason = f"cache markers at the end of {places}, so that {ctx.profile.name} caches the prompt {rule}"
    ctx.report("added", reason, "policy", path="$", gravity="housekeeping")
    return apply_marks(conversation, marks, ctx)


def _last_reply(turns: Sequence[Turn]) -> int | None:
    """Where the last reply of the model begins; None: there is none yet. One reply may be several turns."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].role == "assistant":
            while at > 0 and turns[at - 1].role == "assistant":
                at -= 1  # noqa: PLW2901 - the loop ends here
            return at
    return None


def _last_tool(conversation: Conversation, ctx: RenderContext) -> Site | None:
    if "tools" not in ctx.profile.cache.positions:
        return None
    tools = conversation.tools
    found = next((at for at in range(len(tools) - 1, -1, -1) if takes_tool_marker(tools[at])), None)
    return None if found is None else Site(TOOLS, found)


def _last_block(turns: Sequence[Turn], end: int, start: int, ctx: RenderContext) -> Site | None:
    """The last block that can be marked in the turns from one to another."""
    positions, protocol = ctx.profile.cache.positions, ctx.profile.protocol
    for number in range(end, start - 1, -1):
        turn = turns[number]
        for at in range(len(turn.blocks) - 1, -1, -1):
            block = turn.blocks[at]
            if section_of(turn, type(block)) in positions and takes_marker(block, protocol):
                return Site(number, at)
    return None


def _first_cached(conversation: Conversation, ctx: RenderContext) -> Site | None:
    """The first site at which the prompt has the minimum of tokens for certain; None: none has."""
    counted = CountedTokens(ctx.profile.cache.min_tokens)
    for at, tool in enumerate(conversation.tools):
        if counted.add(tool.description or ""):
            return Site(TOOLS, at)
    for number, turn in enumerate(conversation.turns):
        for at, block in enumerate(turn.blocks):
            for text in _texts(block):
                if counted.add(text):
                    return Site(number, at)
    return None


def _texts(block: object) -> Iterator[str]:
    if isinstance(block, Text):
        yield block.text
    elif isinstance(block, ToolResult):
        if isinstance(block.content, str):
            yield block.content
        for part in block.content if isinstance(block.content, tuple) else ():
            if isinstance(part, Text):
                yield part.text

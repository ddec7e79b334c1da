"""A conversation as the turns that a session file may hold.

Agents send what is in their files as it is, so everything that rendering does for a request is done here once: calls
with their results, legal ids and names, nothing that only another issuer can read. What a request needs at its end,
and a session must not have, is taken off again: the user's turn that the agent itself will add.

Law 2: every call and every real result is in what comes out. Law 12: no signature or encrypted reasoning leaves its
issuer. Law 10: what is changed is in the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import (
    Block,
    Compaction,
    Conversation,
    Issuer,
    Opaque,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)
from toolglot.conversation.report import Entry
from toolglot.errors import EmptyConversationError
from toolglot.policy import Policy
from toolglot.protocols.base import codec
from toolglot.protocols.base import get as protocol_record
from toolglot.render import render

_NEXT_PROMPT: Final = "[the next prompt of the user]"
_POLICY: Final = Policy(server_tools="drop", ids="reversible")


class SessionTurns(Struct, frozen=True, kw_only=True):
    """The turns of a session file.

    summary: what was compacted before them; empty if nothing was.
    turns: those behind it.
    entries: what was changed.
    messages: the turns in the form of the protocol.
    """

    summary: str
    turns: tuple[Turn, ...]
    entries: tuple[Entry, ...]
    messages: list[dict[str, Any]]

    @property
    def calls(self) -> int:
        return sum(len(turn.calls) for turn in self.turns)

    @property
    def results(self) -> int:
        return sum(len(turn.results) for turn in self.turns)


def render_turns(conversation: Conversation, provider: str, *, model: str = "", keeps_thinking: bool) -> SessionTurns:
    """The turns that `provider` accepts, and its form of them.

    keeps_thinking: whether the file goes back to the agent that wrote it. Otherwise thinking is left out: its issuer
    cannot be asked, and another refuses it.
    """
    turns, summary, entries = _split_summary(conversation.turns)
    if not keeps_thinking:
        turns, left = _without_thinking(turns)
        entries += left
    turns = [_without_nameless(turn, entries) for turn in turns]
    bare = [turn for turn in turns if turn.role not in ("system", "developer")]
    if len(bare) != len(turns):
        reason = "system prompts were left out: the agent has its own"
        entries.append(Entry(action="dropped", reason=reason, fault="policy", gravity="change"))
    open_end = not bare or bare[-1].role == "assistant"
    head = [Turn("user", (Text(summary),))] if summary else []
    tail = [Turn("user", (Text(_NEXT_PROMPT),))] if open_end else []
    profile = profiles.get(provider, model)
    whole = Conversation((*head, *bare, *tail), model=model or conversation.model)
    rendered = render(whole, profile, policy=_POLICY)
    made = list(rendered.conversation.turns)
    if open_end:
        made = _without_text(made, _NEXT_PROMPT, last=True)
    if summary:
        made = _without_text(made, summary, last=False)
    kept = tuple(turn for turn in made if turn.blocks)
    entries += [entry for entry in rendered.entries if not _is_about_settings(entry)]
    protocol = profiles.get(provider).protocol
    body = codec(protocol).request.encode(Conversation(kept, model=whole.model), profile)
    field = protocol_record(protocol).turns
    messages = list(body.get(field) or [])
    if not messages and not summary:
        raise EmptyConversationError("the session has no messages", path="$.turns", hint="choose another session")
    return SessionTurns(summary=summary, turns=kept, entries=tuple(entries), messages=messages)


def _is_about_settings(entry: Entry) -> bool:
    """Whether an entry is about a setting of a request, which a session file does not have."""
    return entry.path in ("$.max_tokens", "model") or entry.path.startswith("$.tool_choice")


def _split_summary(turns: Sequence[Turn]) -> tuple[list[Turn], str, list[Entry]]:
    """The turns behind the last summary that can be read, and the summary."""
    entries: list[Entry] = []
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        found = [block for block in turn.blocks if isinstance(block, Compaction)]
        if not found:
            continue
        summary = "\n\n".join(block.summary for block in found if block.summary)
        rest: tuple[Block, ...] = tuple(block for block in turn.blocks if not isinstance(block, Compaction))
        if not summary:
            reason = "a summary that only its provider can read was left out; the messages before it are kept"
            entries.append(Entry(action="dropped", reason=reason, fault="loss", turn=index))
            return [*turns[:index], *([replace(turn, blocks=rest)] if rest else []), *turns[index + 1 :]], "", entries
        if index:
            reason = "the messages before the compaction are not part of the session; its summary stands for them"
            entries.append(Entry(action="compressed", reason=reason, fault="policy", turn=index, gravity="change"))
        return [*([replace(turn, blocks=rest)] if rest else []), *turns[index + 1 :]], summary, entries
    return list(turns), "", entries


def _without_thinking(turns: Sequence[Turn]) -> tuple[list[Turn], list[Entry]]:
    """Turns without thinking and signatures, which only their issuer can read."""
    kept: list[Turn] = []
    count = 0
    for turn in turns:
        blocks: list[Block] = []
        for block in turn.blocks:
            if isinstance(block, Thinking):
                count += 1
            elif isinstance(block, Text | ToolCall) and block.signature is not None:
                blocks.append(replace(block, signature=None))
            else:
                blocks.append(block)
        if blocks:
            kept.append(replace(turn, blocks=tuple(blocks)))
    if not count:
        return kept, []
    times = "" if count == 1 else f" ({count} times)"
    reason = f"thinking was left out{times}: only its issuer can read it"
    return kept, [Entry(action="dropped", reason=reason, fault="loss")]


def _without_nameless(turn: Turn, entries: list[Entry]) -> Turn:
    """A turn without unknown blocks that do not even say what they are: no agent reads them."""
    kept = tuple(block for block in turn.blocks if not isinstance(block, Opaque | ServerTool) or _has_type(block.value))
    if len(kept) == len(turn.blocks):
        return turn
    entries.append(Entry(action="dropped", reason="a block of no known type was left out", fault="canonical"))
    return replace(turn, blocks=kept)


def _has_type(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _without_text(turns: list[Turn], text: str, *, last: bool) -> list[Turn]:
    """The turns without a text that was added at one end."""
    order = range(len(turns) - 1, -1, -1) if last else range(len(turns))
    for index in order:
        blocks = list(turns[index].blocks)
        places = [at for at, block in enumerate(blocks) if isinstance(block, Text) and block.text == text]
        if places:
            del blocks[places[-1 if last else 0]]
            middle = [replace(turns[index], blocks=tuple(blocks))] if blocks else []
            return [*turns[:index], *middle, *turns[index + 1 :]]
        for at, block in enumerate(blocks):
            if isinstance(block, Text) and text in block.text:
                blocks[at] = replace(block, text=block.text.replace(text, "", 1).strip("\n"))
                return [*turns[:index], replace(turns[index], blocks=tuple(blocks)), *turns[index + 1 :]]
    return turns


def issuer_of(provider: str, model: str) -> Issuer:
    """Who made the turns of an agent's session."""
    return Issuer(provider, model=model)


def is_answered(turns: Sequence[Turn]) -> bool:
    """Whether every call has a result."""
    calls = [block.id for turn in turns for block in turn.blocks if isinstance(block, ToolCall)]
    results = {block.call_id for turn in turns for block in turn.blocks if isinstance(block, ToolResult)}
    return set(calls) <= results

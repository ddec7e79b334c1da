"""Removes turns from a conversation without separating a call from its result.

Pure functions over turns. The interactions of removed turns are written into the metadata of a turn that
stays, so that the ledger can be rebuilt from turns alone.

Law: whatever is removed, every interaction keeps its status, its arguments and its result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Interaction, Text, ToolCall, ToolResult, Turn
from toolglot.conversation.completion import completion_key

_NOTE: Final = "\n[… {} characters left out …]\n"


def is_cancel(block: Block) -> bool:
    """Whether a block is a cancel: it says that there is no result, and moves together with its call."""
    return isinstance(block, ToolResult) and block.status == "cancelled"


def safe_cut(turns: Sequence[Turn], wanted: int, pending: Collection[str]) -> int:
    """The last position up to `wanted` where the turns can be cut between calls and their results.

    A call that is still pending reaches to the end: it is never cut off.
    """
    reach: dict[str, list[int]] = {}
    for position, turn in enumerate(turns):
        for block in turn.blocks:
            if isinstance(block, (ToolCall, ToolResult)) and not is_cancel(block):
                call_id = block.id if isinstance(block, ToolCall) else block.call_id
                span = reach.setdefault(call_id, [position, position])
                span[1] = len(turns) if call_id in pending else position
    open_spans = [0] * (len(turns) + 2)
    for first, last in reach.values():
        open_spans[first + 1] += 1
        open_spans[last + 1] -= 1
    crossing, safe = 0, 0
    for cut in range(wanted + 1):
        crossing += open_spans[cut]
        if crossing == 0:
            safe = cut
    return safe


def without_cancels(turns: Iterable[Turn], call_ids: Collection[str]) -> list[Turn]:
    """The turns without the cancels of these removed calls. A turn that held nothing else is removed too."""
    kept = []
    for turn in turns:
        blocks = tuple(b for b in turn.blocks if not (is_cancel(b) and getattr(b, "call_id", "") in call_ids))
        if len(blocks) == len(turn.blocks):
            kept.append(turn)
        elif blocks or turn.metadata.removed:
            kept.append(replace(turn, blocks=blocks))
    return kept


def interactions_of(turns: Iterable[Turn], known: Mapping[str, Interaction]) -> dict[str, Interaction]:
    """The interactions whose calls or results these turns hold or carry."""
    found: dict[str, Interaction] = {}
    for turn in turns:
        for removed in turn.metadata.removed:
            found[removed.id] = known.get(removed.id, removed)
        for block in turn.blocks:
            if isinstance(block, (ToolCall, ToolResult)):
                call_id = block.id if isinstance(block, ToolCall) else block.call_id
                if call_id in known:
                    found[call_id] = known[call_id]
    return found


def cut_out(turns: Sequence[Turn], removed: Collection[int], known: Mapping[str, Interaction]) -> list[Turn]:
    """The turns without those at the removed positions; the turns that stay carry their interactions.

    The turn after a gap carries them, so that a rewind to before it forgets them; the last one does where
    the gap is at the end.
    """
    kept: list[Turn] = []
    gaps: dict[int, list[Turn]] = {}
    last = sum(position not in removed for position in range(len(turns))) - 1
    for position, turn in enumerate(turns):
        if position in removed:
            gaps.setdefault(min(len(kept), last), []).append(turn)
        else:
            kept.append(turn)
    loads: dict[int, dict[str, Interaction]] = {}
    cut: set[str] = set()
    for carrier, gap in gaps.items():
        load = {id: found for id, found in interactions_of(gap, known).items() if id not in cut}
        if load:
            loads[carrier] = load
            cut |= load.keys()
    kept = without_removed(kept, cut)
    for carrier, load in loads.items():
        kept[carrier] = with_removed(kept[carrier], load)
    return kept


def with_removed(turn: Turn, load: Mapping[str, Interaction]) -> Turn:
    """The turn, carrying these interactions besides those that it carries already."""
    return _with_carried(turn, (*turn.metadata.removed, *load.values()))


def without_removed(turns: Iterable[Turn], call_ids: Collection[str]) -> list[Turn]:
    """The turns without what they carry of these interactions: a newer state will be written."""
    return [
        _with_carried(turn, tuple(found for found in turn.metadata.removed if found.id not in call_ids))
        for turn in turns
    ]


def replace_removed(turn: Turn, newer: Mapping[str, Interaction]) -> Turn:
    """The turn, carrying the newer state of the interactions that it carries."""
    return _with_carried(turn, tuple(newer.get(found.id, found) for found in turn.metadata.removed))


def _with_carried(turn: Turn, removed: tuple[Interaction, ...]) -> Turn:
    if removed == turn.metadata.removed:
        return turn
    return replace(turn, metadata=replace(turn.metadata, removed=removed))


def shorten_interaction(interaction: Interaction, max_characters: int) -> Interaction:
    """The interaction with its results shortened, including those that were set aside."""
    result = interaction.result
    return replace(
        interaction,
        result=shorten_result(result, max_characters) if result is not None else None,
        set_aside=tuple(
            replace(aside, result=shorten_result(aside.result, max_characters)) for aside in interaction.set_aside
        ),
    )


def shorten_result(result: ToolResult, max_characters: int) -> ToolResult:
    """The result with each long text cut in the middle, and a note of how much was removed."""
    content = result.content
    if isinstance(content, str):
        content = shorten(content, max_characters)
    elif content is not None:
        content = tuple(
            replace(part, text=shorten(part.text, max_characters)) if isinstance(part, Text) else part
            for part in content
        )
    if content == result.content:
        return result
    return replace(result, content=content, shortened_from=completion_key(result))


def shorten(text: str, max_characters: int) -> str:
    """A text of at most this many characters. A longer one is cut in the middle, with a note of how much was removed.

    A text that the note would make longer stays as it is.
    """
    if len(text) <= max_characters:
        return text
    room = max(max_characters - len(_NOTE.format(len(text))), 0)
    note = _NOTE.format(len(text) - room)
    head = (room + 1) // 2
    tail = room - head
    short = text[:head] + note + (text[-tail:] if tail else "")
    return short if len(short) < len(text) else text

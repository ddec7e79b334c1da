"""Every call gets one result, directly behind the turn of the call, in order.

An exchange is an assistant turn with calls and the turns that answer it. One that the target accepts stays untouched,
whatever happens after it (law 5). Any other gets one turn of results directly behind its calls: the real ones from
wherever they are, and a synthetic one for a call without any (A1, A4). Nothing else is lost: a result without a call, a
late one and a second one become text at their position (A2, A5, A6).

Runs after `speakers`, on which it relies. Every later pass relies on the pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, ResultPart, Text, ToolCall, ToolReference, ToolResult, Turn
from toolglot.conversation.cache_markers import is_marker
from toolglot.conversation.completion import completion_key
from toolglot.conversation.report import Action
from toolglot.history.ledger import Ledger
from toolglot.render.context import RenderContext
from toolglot.render.turn_facts import Answers, TurnFacts

ORPHANED: Final = "[Result of a tool call that is not part of this conversation{name}]"
LATE: Final = "[Late result{name}: it came after the call was cancelled]"
SECOND: Final = "[Another result{name}]"

_ASIDE: Final = {"late": LATE, "conflict": SECOND, "superseded": SECOND}


def pair_results(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with every exchange complete and in order."""
    facts = ctx.facts(turns)
    if not facts.has_tool_blocks or (facts.is_paired and (_may_be_separate(facts, ctx) or _are_adjacent(turns, ctx))):
        return turns
    if facts.has_removed or not facts.is_paired:
        return tuple(_Pairing(turns, ctx).rebuild())
    pairing = _Pairing(turns, ctx, facts.answers)
    paired = tuple(pairing.rebuild())
    facts.extend(paired, pairing.added)
    return paired


# --- exchanges that the target accepts --------------------------------------------------------------


def _may_be_separate(facts: TurnFacts, ctx: RenderContext) -> bool:
    """Whether results may come anywhere behind their calls: the target's own client put them there."""
    rules = ctx.profile.results
    return ctx.is_native and not rules.adjacent and not rules.call_order and None not in facts.answers.values()


def _are_adjacent(turns: Sequence[Turn], ctx: RenderContext) -> bool:
    """Whether paired calls and results are in an order that the target accepts."""
    position = 0
    while position < len(turns):
        turn = turns[position]
        calls = turn.calls
        if not calls:
            if turn.results:
                return False
            position += 1
            continue
        length = _count_answering_turns([call.id for call in calls], turns, position + 1, ctx)
        if length == 0:
            return False
        position += 1 + length
    return True


def _count_answering_turns(ids: Sequence[str], turns: Sequence[Turn], start: int, ctx: RenderContext) -> int:
    """How many turns from here on answer these calls in a way that the target accepts; 0 if they do not."""
    rules = ctx.profile.results
    waiting = dict.fromkeys(ids)
    answered = 0
    position = start
    while waiting:
        if position == len(turns) or turns[position].role == "assistant":
            return 0
        turn = turns[position]
        results = turn.results
        if not results or any(isinstance(block, ToolCall) for block in turn.blocks):
            return 0
        for result in results:
            if result.call_id not in waiting or (rules.call_order and result.call_id != ids[answered]):
                return 0
            del waiting[result.call_id]
            answered += 1
        blocks = turn.blocks if len(results) == len(turn.blocks) else _without_markers(turn.blocks)
        if not _are_first(blocks, len(results), ctx) or (waiting and len(results) != len(blocks)):
            return 0
        position += 1
    length = position - start
    return 0 if rules.together and length > 1 else length


def _are_first(blocks: Sequence[Block], count: int, ctx: RenderContext) -> bool:
    """Whether the results come first among blocks, with nothing beside them that the target refuses there."""
    if count == len(blocks):
        return True
    are_first = all(isinstance(block, ToolResult) for block in blocks[:count])
    return are_first and ctx.profile.results.user_after and may_share(blocks[count:], ctx)


def may_share(blocks: Sequence[Block], ctx: RenderContext) -> bool:
    """Whether blocks may share a turn with results (C4). A cache marker always may."""
    rules = ctx.profile.results
    words = _without_markers(blocks)
    if rules.carrier != "block" or (blocks and not words):
        return True
    kinds = ("text" if isinstance(block, Text) else block.kind if isinstance(block, Media) else "" for block in words)
    return not rules.alone and all(kind in rules.colocated for kind in kinds)


def _without_markers(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks without cache points, which the model does not see."""
    return [block for block in blocks if not is_marker(block)]


# --- exchanges that have to change ------------------------------------------------------------------


class _Pairing:
    """Rebuilds turns, exchange by exchange.

    `answers` are the results of the calls if they are unambiguous; otherwise the ledger decides.
    """

    def __init__(self, turns: tuple[Turn, ...], ctx: RenderContext, answers: Answers | None = None) -> None:
        self._turns = turns
        self._ctx = ctx
        self._is_decided = answers is not None
        ledger = Ledger.of(turns if answers is None else ())
        self._aside = {id(aside.result): aside.reason for found in ledger for aside in found.set_aside}
        self._chosen: Answers = {found.id: found.result for found in ledger} if answers is None else answers
        self._called: set[str] = set()
        present = {call.id for turn in turns for call in turn.calls}
        self._taken_out = {found.id: found.call for found in ledger if found.id not in present}
        """Calls that were removed from the history and not restored so far, by id."""
        self._restored_call_ids: set[str] = set()
        """Calls that were restored, and whose results were not reached yet."""
        self.added: list[Turn] = []
        """The new turns of results."""

    def rebuild(self) -> Iterator[Turn]:
        position = 0
        while position < len(self._turns):
            turn = self._drop_repeated_calls(self._turns[position])
            position += 1
            ids = [call.id for call in turn.calls]
            if not ids:
                yield from self._without_moved_results(turn)
                continue
            yield turn
            length = self._count_adjacent_turns(ids, position)
            if length:
                yield from self._turns[position : position + length]
                position += length
            else:
                yield self._results_turn(turn, position)

    def _drop_repeated_calls(self, turn: Turn) -> Turn:
        """A second call with the same id is the same call again, or one that cannot be answered."""
        if self._is_decided:
            return turn
        calls = turn.calls
        again = [call for call in calls if call.id in self._called]
        self._called.update([call.id for call in calls])
        if not again:
            return turn
        for call in again:
            self._ctx.report_fields(call.extra, call.form, "a dropped call")
            self._ctx.report(
                "dropped", f"{call.name[:80]} was called twice with the same id", "canonical", call_ids=(call.id,)
            )
        kept = tuple(block for block in turn.blocks if not any(block is call for call in again))
        return replace(turn, blocks=kept)

    def _count_adjacent_turns(self, ids: Sequence[str], position: int) -> int:
        """How many turns answer these calls unchanged, if their results are the ones that count."""
        length = _count_answering_turns(ids, self._turns, position, self._ctx)
        if self._is_decided:
            return length
        results = (result for other in self._turns[position : position + length] for result in other.results)
        return length if all(self._chosen.get(result.call_id) is result for result in results) else 0

    def _results_turn(self, turn: Turn, position: int) -> Turn:
        results = []
        for call in turn.calls:
            result = self._chosen.get(call.id)
            if result is None:
                result = self._synthetic_result(call, turn.key)
            results.append(result)
        found = [result for call in turn.calls if (result := self._chosen.get(call.id)) is not None]
        # With none added, turns of results that become one turn are reported here.
        if not self._are_in_place(found, position, max_turns=1 if len(found) == len(turn.calls) else len(found)):
            moved = tuple(result.call_id for result in found)
            reason = "results were moved directly behind their calls, in order"
            self._ctx.report("moved", reason, "canonical", turn_key=turn.key, call_ids=moved)
        self.added.append(Turn("tool", tuple(results), key=f"{turn.key}+results"))
        return self.added[-1]

    def _are_in_place(self, results: Sequence[ToolResult], position: int, max_turns: int) -> bool:
        """Whether these results, in this order, are what follows the calls, in so many turns."""
        following = (block for turn in self._turns[position : position + max_turns] for block in turn.blocks)
        return all(next(following, None) is result for result in results)

    def _synthetic_result(self, call: ToolCall, turn_key: str) -> ToolResult:
        self._ctx.report(
            "added",
            f"{call.name[:80]} has no result; a synthetic one was added",
            "canonical",
            turn_key=turn_key,
            call_ids=(call.id,),
        )
        return ToolResult(
            call.id,
            self._ctx.policy.missing_result,
            is_error=True,
            name=call.name,
            is_complete=True,
            synthetic="no result in the conversation",
        )

    def _without_moved_results(self, turn: Turn) -> Iterator[Turn]:
        """A turn without calls, without the results that were moved."""
        if not turn.results:
            yield turn
            return
        yield from self._restore_calls(turn)
        blocks: list[Block] = []
        for block in turn.blocks:
            if isinstance(block, ToolResult):
                blocks += self._leftover_blocks(block)
            else:
                blocks.append(block)
        if blocks:
            spelled = {"extra": None, "form": None} if turn.role == "tool" else {}
            yield replace(turn, role="user", blocks=tuple(blocks), **spelled)

    def _restore_calls(self, turn: Turn) -> Iterator[Turn]:
        """The exchanges whose calls were removed while their results stayed: the calls as the ledger has them, and the
        results that count."""
        calls: dict[str, ToolCall] = {}
        results: list[ToolResult] = []
        for result in turn.results:
            chosen = self._chosen.get(result.call_id)
            if chosen is not None and result.call_id in self._taken_out:
                calls[result.call_id] = self._taken_out.pop(result.call_id)
                results.append(chosen)
        if not calls:
            return
        reason = "the call of a result had been removed; it was restored with its arguments"
        self._ctx.report("added", reason, "canonical", turn_key=turn.key, call_ids=tuple(calls))
        self._restored_call_ids |= calls.keys()
        issuers = {call.metadata.issuer for call in calls.values() if call.metadata is not None}
        issuer = issuers.pop() if len(issuers) == 1 else None
        yield Turn("assistant", tuple(calls.values()), key=f"{turn.key}+calls", issuer=issuer)
        yield Turn("tool", tuple(results), key=f"{turn.key}+results")

    def _leftover_blocks(self, result: ToolResult) -> Iterable[Block]:
        """What a result becomes in its original turn: nothing, or text."""
        chosen = self._chosen.get(result.call_id)
        if chosen is result:
            return ()
        if result.call_id in self._restored_call_ids and chosen is not None and _are_equal_results(result, chosen):
            self._restored_call_ids.discard(result.call_id)
            return ()  # it is with its call, which was restored
        if chosen is None:
            self._report(result, "converted", "a result has no call; its content was kept as text")
            return _result_as_text(ORPHANED, result)
        if result.synthetic is not None or _are_equal_results(result, chosen):
            self._report(result, "dropped", "the same result is already with its call")
            return ()
        reason = self._aside.get(id(result), "conflict")
        self._report(result, "converted", f"a call has only one result; this one ({reason}) was kept as text")
        return _result_as_text(_ASIDE[reason], result)

    def _report(self, result: ToolResult, action: Action, reason: str) -> None:
        self._ctx.report_fields(result.extra, result.form, "a result that became text or was dropped")
        if action == "converted" and _found_tools(result):
            self._ctx.report(action, "the tools that a search found became text", call_ids=(result.call_id,))
        # The content of the result is still there, with its call or as text.
        self._ctx.report(action, reason, "canonical", call_ids=(result.call_id,), gravity="change")


def _are_equal_results(result: ToolResult, other: ToolResult) -> bool:
    return completion_key(result) == completion_key(other)


def _result_as_text(mark: str, result: ToolResult) -> list[ResultPart]:
    """A result that cannot be sent as one, as text; its media stay."""
    name = f" of {result.name}" if result.name else ""
    head = mark.format(name=name)
    if result.is_error:
        head = f"{head} (error)"
    found = _found_tools(result)
    texts = (result.text or result.error or "", f"These tools were found: {', '.join(found)}." if found else "")
    result_text = "\n".join(filter(None, texts))
    media = [part for part in result.content if isinstance(part, Media)] if isinstance(result.content, tuple) else []
    return [Text(f"{head}: {result_text}" if result_text else head), *media]


def _found_tools(result: ToolResult) -> list[str]:
    """The tools that a search found, which only a result can load."""
    parts = result.content if isinstance(result.content, tuple) else ()
    return [part.name for part in parts if isinstance(part, ToolReference)]

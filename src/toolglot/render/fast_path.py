"""The fast path: recognises in one loop turns that the target accepts as they are.

Nearly every request without thinking has such turns, and then no pass runs. Law: the passes would not change them
(`tests/render/test_shortcuts.py`). Whatever this file does not know is left to the passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolglot.conversation import Block, Options, Text, ToolCall, ToolResult, Turn
from toolglot.conversation.ids import SMUGGLED_MARK
from toolglot.render.content.document_names import is_document
from toolglot.render.content.reasoning import is_thinking
from toolglot.render.context import RenderContext
from toolglot.render.turn_facts import was_message


def plain_turns(turns: Sequence[Turn], options: Options, ctx: RenderContext) -> PlainTurns | None:
    """The calls and results of turns that no pass would change; None if one might."""
    rules = ctx.profile.reasoning
    if (rules.placeholder is not None or rules.leading) and is_thinking(options, ctx):
        return None
    look = PlainTurns(ctx)
    return look if look.accepts(turns) and look.may_end() else None


_NOTHING_REMOVED: Final = Turn("user").metadata
"""The metadata of nearly every turn, as one shared object."""


class PlainTurns:
    """The state after some turns: who spoke last, and whether calls wait for their results.

    For each turn only the order of its blocks is checked. Their content is checked once, at the end, kind by kind,
    which takes half the time.
    """

    def __init__(self, ctx: RenderContext) -> None:
        profile = ctx.profile
        self._results = profile.results
        self._turns = profile.turns
        self._is_carried_by_user = profile.results.carrier == "block"
        self._is_parallel = profile.calls.parallel
        self._takes_words_beside = profile.calls.with_text
        self._takes_words_after = profile.calls.text_after
        self._names_documents = profile.turns.document_name is not None
        self._protocol = profile.protocol
        self.calls: list[ToolCall] = []
        self.call_ids: list[str] = []
        """Set once all turns were checked."""
        self.results: list[ToolResult] = []
        self._words: list[Block] = []
        """All other blocks."""
        self._last = ""
        """The last speaker."""

    def called_tools(self) -> Iterable[tuple[str | None, str]]:
        """The tools that are called, by namespace and name. Plain turns have no namespaces."""
        return [(None, name) for name in dict.fromkeys([call.name for call in self.calls])]

    def accepts(self, turns: Iterable[Turn]) -> bool:  # noqa: C901 - every turn of every request comes here; calls cost
        """Whether the target accepts turns in this order."""
        calls, results, words = self.calls, self.results, self._words
        by_user, takes_after, last = self._is_carried_by_user, self._takes_words_after, ""
        is_parallel, takes_beside = self._is_parallel, self._takes_words_beside
        waiting = count = 0  # calls without a result yet; results of the last turn that was not the model's
        for turn in turns:
            role, blocks, before = turn.role, turn.blocks, last
            if turn.metadata is not _NOTHING_REMOVED and turn.metadata.removed:
                return False
            if role == "assistant":
                if waiting or not blocks or (before != "user" and before != "tool"):
                    return False
                if turn.issuer is not None:  # the projection checks whose ids these are, turn by turn
                    return False
                for block in blocks:
                    if type(block) is ToolCall:
                        calls.append(block)
                        waiting += 1
                    elif waiting and not takes_after:
                        return False
                    else:
                        words.append(block)
                if (waiting > 1 and not is_parallel) or (waiting and not takes_beside and waiting < len(blocks)):
                    return False
                last = role
                continue
            if role == "system":
                words += blocks
                last = role
                if before or not blocks or self._is_misplaced(turn):
                    return False
                continue
            if role == "developer":
                return False
            has_words, followed, count = False, count, 0
            for block in blocks:
                if type(block) is not ToolResult:
                    words.append(block)
                    has_words = True
                elif has_words:
                    return False
                else:
                    results.append(block)
                    count += 1
            waiting -= count
            last = "user" if has_words or by_user else "tool"
            if count and not has_words and not waiting and before == "assistant":
                continue  # all results at once
            follows = followed > 0
            if waiting < 0 or not self._accepts_turn(before, count, follows, has_words, waiting > 0, role == "tool"):
                return False
        self._last = last
        return True

    def _is_misplaced(self, prompt: Turn) -> bool:
        """Whether a prompt is a message although it has to be in a field of its own."""
        rules = self._turns
        if rules.system != "field" or rules.system_inside == "anywhere":
            return False
        return was_message(prompt, self._protocol)

    def _accepts_turn(
        self, before: str, count: int, follows_results: bool, has_words: bool, is_waiting: bool, is_tools: bool
    ) -> bool:
        """Whether a turn of this many results, and maybe text, may follow the one before."""
        if not has_words:
            return count > 0 and before != "user" and not self._results.together
        if is_waiting:
            return False
        if count:
            return before == "assistant" and self._is_carried_by_user and not self._results.alone and not is_tools
        if is_tools or (follows_results and not self._results.user_after):
            return False
        if follows_results and self._results.alone and self._turns.alternate:
            return False
        return before != "user" or not self._turns.alternate

    def may_end(self) -> bool:
        return self._last in ("user", "tool") and self._are_pairs() and self._are_plain()

    def _are_pairs(self) -> bool:
        """Whether the results answer the calls one by one, each by a unique id without a hidden signature."""
        ids = self.call_ids = [call.id for call in self.calls]
        if [result.call_id for result in self.results] != ids or len(set(ids)) != len(ids):
            return False
        return all(map(str.strip, ids)) and SMUGGLED_MARK not in " ".join(ids)

    def _are_plain(self) -> bool:
        if self._names_documents and self._has_documents():
            return False
        return _are_plain_calls(self.calls) and _are_plain_results(self.results) and _are_plain_texts(self._words)

    def _has_documents(self) -> bool:
        """Whether a text is a document, whose name has to be checked."""
        parts = [part for result in self.results if isinstance(result.content, tuple) for part in result.content]
        return any(is_document(block, self._protocol) for block in (*self._words, *parts))


def _are_plain_calls(calls: list[ToolCall]) -> bool:
    for call in calls:
        if (
            call.arguments is None
            or call.raw_input is not None
            or call.type != "function"
            or call.namespace is not None
            or call.signature is not None
            or call.metadata is not None
            or call.id_omitted is not None
        ):
            return False
    return True


def _are_plain_results(results: list[ToolResult]) -> bool:
    parts: list[Block] = []
    for result in results:
        content = result.content
        if result.metadata is not None or result.synthetic is not None or result.status is not None or not content:
            return False
        if result.id_omitted is not None or result.written_id is not None:
            return False
        if not isinstance(content, str):
            parts += content
        elif content.isspace():
            return False
    return _are_plain_texts(parts)


def _are_plain_texts(blocks: list[Block]) -> bool:
    for block in blocks:
        if type(block) is not Text or block.signature is not None or not block.text or block.text.isspace():
            return False
    return True

"""Turns that the target takes as they are: one look that proves that no pass has anything to do.

Nearly every request is so, and then the passes are not run at all. Law: whatever is ready, the passes would leave as
it is; what this file does not know is not ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolglot.conversation import Block, Options, Text, ToolCall, ToolResult, Turn
from toolglot.ids import SMUGGLED_MARK
from toolglot.render.document_names import is_document
from toolglot.render.job import Job
from toolglot.render.reasoning import is_thinking


def look_at(turns: Sequence[Turn], options: Options, job: Job) -> Ready | None:
    """What the turns call and by which ids, if they can be sent as they are but for names and ids."""
    rules = job.profile.reasoning
    if (rules.placeholder is not None or rules.leading) and is_thinking(options, job):
        return None
    look = Ready(job)
    for turn in turns:
        role = turn.role
        if turn.metadata is not _NOTHING_REMOVED and turn.metadata.removed:
            return None
        if role == "assistant":
            if turn.issuer is not None:
                return None  # whose ids these are is for the projection to see, turn by turn
            is_taken = look.takes_answer(turn.blocks)
        elif role == "system":
            is_taken = look.takes_prompt(turn.blocks)
        else:
            is_taken = role != "developer" and look.takes_words(turn.blocks, role == "tool")
        if not is_taken:
            return None
    return look if look.may_end() else None


_NOTHING_REMOVED: Final = Turn("user").metadata
"""What nearly every turn has: one object for all."""


class Ready:
    """The turns up to here: who spoke last, and whether calls wait for their results.

    Turn by turn only the order of blocks is looked at. What the blocks say is looked at once, at the end, kind by
    kind, which takes half the time.
    """

    def __init__(self, job: Job) -> None:
        profile = job.profile
        self._results = profile.results
        self._turns = profile.turns
        self._is_carried_by_user = profile.results.carrier == "block"
        self._is_parallel = profile.calls.parallel
        self._takes_words_beside = profile.calls.with_text
        self._names_documents = profile.turns.document_name is not None
        self._protocol = profile.protocol
        self.calls: list[ToolCall] = []
        self.call_ids: list[str] = []
        """Once all turns were looked at."""
        self.results: list[ToolResult] = []
        self._words: list[Block] = []
        """Whatever is neither."""
        self._waiting = 0
        """How many calls have no result yet."""
        self._last = ""
        self._last_has_results = False

    def used(self) -> Iterable[tuple[str | None, str]]:
        """The tools that are called, by namespace and name. What is ready has no namespaces."""
        return [(None, name) for name in dict.fromkeys([call.name for call in self.calls])]

    def takes_prompt(self, blocks: tuple[Block, ...]) -> bool:
        before, self._last = self._last, "system"
        self._words += blocks
        return before == "" and bool(blocks)

    def takes_answer(self, blocks: tuple[Block, ...]) -> bool:
        if self._waiting or self._last not in ("user", "tool") or not blocks:
            return False
        calls, words = self.calls, self._words
        count = 0
        for block in blocks:
            if type(block) is ToolCall:
                calls.append(block)
                count += 1
            else:
                words.append(block)
        self._waiting = count
        self._last = "assistant"
        if count and count < len(blocks) and not self._takes_words_beside:
            return False
        return count < 2 or self._is_parallel

    def takes_words(self, blocks: tuple[Block, ...], is_tools: bool) -> bool:
        results, words = self.results, self._words
        count = 0
        has_words = False
        for block in blocks:
            if type(block) is not ToolResult:
                words.append(block)
                has_words = True
            elif has_words:
                return False
            else:
                results.append(block)
                count += 1
        self._waiting -= count
        return self._takes_turn(count, has_words, is_tools)

    def _takes_turn(self, count: int, has_words: bool, is_tools: bool) -> bool:
        """Whether a turn of so many results, and then words, may stand after the one before."""
        before, self._last = self._last, "user" if has_words or self._is_carried_by_user else "tool"
        follows_results, self._last_has_results = self._last_has_results, count > 0
        if count and not has_words and not self._waiting and before == "assistant":
            return True  # all that was asked for, at once
        if self._waiting < 0 or (self._waiting and has_words):
            return False
        if not has_words:
            return count > 0 and before != "user" and not self._results.together
        if count:
            return before == "assistant" and self._is_carried_by_user and not self._results.alone and not is_tools
        if is_tools or (follows_results and (self._results.alone or not self._results.user_after)):
            return False
        return before != "user" or not self._turns.alternate

    def may_end(self) -> bool:
        return self._last in ("user", "tool") and self._are_pairs() and self._are_plain()

    def _are_pairs(self) -> bool:
        """Whether the results answer the calls one by one, each by an id of its own that hides nothing."""
        ids = self.call_ids = [call.id for call in self.calls]
        if [result.call_id for result in self.results] != ids or len(set(ids)) != len(ids):
            return False
        return all(map(str.strip, ids)) and SMUGGLED_MARK not in " ".join(ids)

    def _are_plain(self) -> bool:
        if self._names_documents and self._has_documents():
            return False
        return _are_plain_calls(self.calls) and _are_plain_results(self.results) and _are_plain_texts(self._words)

    def _has_documents(self) -> bool:
        """Whether a text is a document, whose name has to be looked at."""
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
        ):
            return False
    return True


def _are_plain_results(results: list[ToolResult]) -> bool:
    parts: list[Block] = []
    for result in results:
        content = result.content
        if result.metadata is not None or result.synthetic is not None or result.status is not None or not content:
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

"""Turns that the target takes as they are: one look that proves that no pass has anything to do.

Nearly every request is so, and then the passes are not run at all. Law: whatever is ready, the passes would leave as
it is; what this file does not know is not ready.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolglot.conversation import Block, Options, Text, ToolCall, ToolResult, Turn
from toolglot.ids import SMUGGLED_MARK
from toolglot.render.job import Job
from toolglot.render.reasoning import is_thinking


def is_ready(turns: Sequence[Turn], options: Options, job: Job) -> bool:
    """Whether the turns can be sent as they are, but for names and ids."""
    rules = job.profile
    if rules.reasoning.placeholder is not None and is_thinking(options, job):
        return False
    if rules.reasoning.leading and is_thinking(options, job):
        return False
    look = _Look(job)
    return all(look.takes(turn) for turn in turns) and look.may_end()


class _Look:
    """The turns up to here: who spoke last, and which calls wait for their result."""

    def __init__(self, job: Job) -> None:
        profile = job.profile
        self._results = profile.results
        self._turns = profile.turns
        self._is_carried_by_user = profile.results.carrier == "block"
        self._is_parallel = profile.calls.parallel
        self._seen: set[str] = set()
        self._waiting: list[str] = []
        """Calls without a result, the next one last."""
        self._last = ""
        self._last_has_results = False

    def takes(self, turn: Turn) -> bool:
        if turn.metadata.removed or not turn.blocks:
            return False
        if turn.role == "assistant":
            return self._takes_answer(turn)
        if turn.role == "system":
            before, self._last = self._last, "system"
            return before == "" and all(map(_is_plain_text, turn.blocks))
        return turn.role in ("user", "tool") and self._takes_words(turn)

    def may_end(self) -> bool:
        return not self._waiting and self._last in ("user", "tool")

    def _takes_answer(self, turn: Turn) -> bool:
        if self._waiting or self._last not in ("user", "tool"):
            return False
        calls: list[str] = []
        for block in turn.blocks:
            if type(block) is ToolCall:
                if block.id in self._seen or not _is_plain_call(block):
                    return False
                self._seen.add(block.id)
                calls.append(block.id)
            elif not _is_plain_text(block):
                return False
        self._waiting = calls[::-1]
        self._last = "assistant"
        return len(calls) < 2 or self._is_parallel

    def _takes_words(self, turn: Turn) -> bool:
        count = 0
        for block in turn.blocks:
            if type(block) is ToolResult:
                if not self._waiting or self._waiting.pop() != block.call_id or not _is_plain_result(block):
                    return False
                if count == 0 and block is not turn.blocks[0]:
                    return False
                count += 1
            elif self._waiting or not _is_plain_text(block):
                return False
        return self._takes_turn(turn, count)

    def _takes_turn(self, turn: Turn, count: int) -> bool:
        """Whether a turn of so many results may stand after the one before."""
        is_alone = count == len(turn.blocks)
        speaker = "user" if self._is_carried_by_user or not is_alone else "tool"
        before, self._last = self._last, speaker
        follows_results, self._last_has_results = self._last_has_results, bool(count)
        if count and is_alone:
            return before == "assistant" and not self._waiting if self._results.together else before != "user"
        if count:
            return before == "assistant" and self._is_carried_by_user and not self._results.alone
        if turn.role == "tool" or (follows_results and (self._results.alone or not self._results.user_after)):
            return False
        return before != "user" or not self._turns.alternate


def _is_plain_text(block: Block) -> bool:
    return type(block) is Text and block.signature is None and block.text != "" and not block.text.isspace()


def _is_plain_call(call: ToolCall) -> bool:
    return (
        call.arguments is not None
        and call.signature is None
        and call.metadata is None
        and call.id != ""
        and not call.id.isspace()
        and SMUGGLED_MARK not in call.id
    )


def _is_plain_result(result: ToolResult) -> bool:
    if result.metadata is not None or result.synthetic is not None or result.status is not None:
        return False
    content = result.content
    if isinstance(content, str):
        return content != "" and not content.isspace()
    return content is not None and content != () and all(map(_is_plain_text, content))

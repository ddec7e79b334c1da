"""Turns that the target takes as they are: one look that proves that no pass has anything to do.

Nearly every request is so, and then the passes are not run at all. Law: whatever is ready, the passes would leave as
it is; what this file does not know is not ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolglot.conversation import Block, Options, Text, ToolCall, ToolResult, Turn, TurnMetadata
from toolglot.ids import SMUGGLED_MARK
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
            is_taken = look.takes_answer(turn.blocks)
        elif role == "system":
            is_taken = look.takes_prompt(turn.blocks)
        else:
            is_taken = role != "developer" and look.takes_words(turn.blocks, is_tools=role == "tool")
        if not is_taken:
            return None
    return look if look.may_end() else None


_NOTHING_REMOVED: Final = TurnMetadata()


class Ready:
    """The turns up to here: who spoke last, and which calls wait for their result."""

    def __init__(self, job: Job) -> None:
        profile = job.profile
        self._results = profile.results
        self._turns = profile.turns
        self._is_carried_by_user = profile.results.carrier == "block"
        self._is_parallel = profile.calls.parallel
        self._takes_words_beside = profile.calls.with_text
        self.used: dict[tuple[str | None, str], None] = {}
        """The tools that are called, by namespace and name."""
        self.calls: dict[str, ToolCall] = {}
        """The calls by their ids."""
        self.has_named_results = False
        self.has_unnamed_results = False
        self._waiting: list[str] = []
        """Calls without a result, the next one last."""
        self._last = ""
        self._last_has_results = False

    def takes_prompt(self, blocks: tuple[Block, ...]) -> bool:
        before, self._last = self._last, "system"
        return before == "" and bool(blocks) and all(map(_is_plain_text, blocks))

    def may_end(self) -> bool:
        return not self._waiting and self._last in ("user", "tool")

    def takes_answer(self, blocks: tuple[Block, ...]) -> bool:
        if self._waiting or self._last not in ("user", "tool") or not blocks:
            return False
        calls: list[str] = []
        known = self.calls
        for block in blocks:
            if type(block) is ToolCall:
                id = block.id
                if id in known or block.arguments is None or not _is_plain_call(block):
                    return False
                known[id] = block
                self.used[block.namespace, block.name] = None
                calls.append(id)
            elif type(block) is not Text or block.signature is not None or not block.text or block.text.isspace():
                return False
        self._waiting = calls[::-1]
        self._last = "assistant"
        if calls and len(calls) < len(blocks) and not self._takes_words_beside:
            return False
        return len(calls) < 2 or self._is_parallel

    def takes_words(self, blocks: tuple[Block, ...], *, is_tools: bool) -> bool:
        count = 0
        waiting = self._waiting
        for place, block in enumerate(blocks):
            if type(block) is ToolResult:
                if place != count or not waiting or waiting.pop() != block.call_id or not _is_plain_result(block):
                    return False
                if block.name:
                    self.has_named_results = True
                else:
                    self.has_unnamed_results = True
                count += 1
            elif (
                waiting
                or type(block) is not Text
                or block.signature is not None
                or not block.text
                or block.text.isspace()
            ):
                return False
        return bool(blocks) and self._takes_turn(count, len(blocks), is_tools=is_tools)

    def _takes_turn(self, count: int, length: int, *, is_tools: bool) -> bool:
        """Whether a turn of so many results, and so many blocks in all, may stand after the one before."""
        is_alone = count == length
        speaker = "user" if self._is_carried_by_user or not is_alone else "tool"
        before, self._last = self._last, speaker
        follows_results, self._last_has_results = self._last_has_results, bool(count)
        if count and is_alone:
            return before == "assistant" and not self._waiting if self._results.together else before != "user"
        if count:
            return before == "assistant" and self._is_carried_by_user and not self._results.alone
        if is_tools or (follows_results and (self._results.alone or not self._results.user_after)):
            return False
        return before != "user" or not self._turns.alternate


def _is_plain_text(block: Block) -> bool:
    return type(block) is Text and block.signature is None and bool(block.text) and not block.text.isspace()


def _is_plain_call(call: ToolCall) -> bool:
    return (
        call.raw_input is None
        and call.type == "function"
        and call.namespace is None
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

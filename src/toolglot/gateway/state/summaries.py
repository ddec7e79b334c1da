"""The summaries of compactions that the gateway made, for clients whose protocol cannot show them.

    mark = await summaries.keep(client, "The user wants …", id)    # what the client gets instead
    await summaries.restore(client, conversation)                  # the conversation with the summaries again

Laws: what one client key put in, no other gets out. The mark says nothing of the summary. A summary that is read is
renewed, so that a conversation in use does not lose it.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Compaction, Conversation, Turn
from toolglot.conversation.compactions import OWN_MARK, is_own
from toolglot.gateway.endpoints import response_errors
from toolglot.store import RowStore

KIND: Final = "summaries"
MAX_MARKS: Final = 100
"""Compactions of one request that are looked up. Only the last of them counts."""
_MARK: Final = re.compile(re.escape(OWN_MARK) + r"[A-Za-z0-9_-]{1,80}")
MAX_REMEMBERED: Final = 4 * 1024 * 1024
"""Characters of summaries that are kept in memory too."""


class Summaries:
    """Summaries for all clients; without a store, as long as the process runs."""

    def __init__(self, store: RowStore | None, *, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._recent: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()
        self._size = 0

    async def keep(self, client: str, summary: str, id: str) -> str:
        """Keep a summary under an id that no other has. Returns the mark that stands for it."""
        mark = self.mark_of(id)
        until = self._clock() + self._seconds
        self._remember(client, mark, summary, until)
        if self._store is not None:
            data = summary.encode("utf-8", "replace")
            await self._store.keep(KIND, client, {mark: data}, until=until)
        return mark

    def mark_of(self, id: str) -> str:
        """The mark that stands for the summary with this id."""
        return f"{OWN_MARK}{id}"

    async def restore(self, client: str, conversation: Conversation) -> Conversation:
        """The conversation with the summaries of its compactions. One that is not known is refused."""
        wanted = [
            block.data or ""
            for turn in conversation.turns
            for block in turn.blocks
            if type(block) is Compaction and _is_wanted(block)
        ]
        if not wanted:
            return conversation
        marks = [*dict.fromkeys(mark for mark in wanted if _MARK.fullmatch(mark))][-MAX_MARKS:]
        known = await self._find(client, marks)
        if wanted[-1] not in known:
            raise response_errors.missing_compaction(wanted[-1])
        return replace(conversation, turns=tuple([_with_summaries(turn, known) for turn in conversation.turns]))

    async def _find(self, client: str, marks: list[str]) -> dict[str, str]:
        now = self._clock()
        found: dict[str, str] = {}
        for mark in marks:
            summary, until = self._recent.get((client, mark), ("", 0.0))
            if until > now:
                found[mark] = summary
        missing = [mark for mark in marks if mark not in found]
        if self._store is not None and missing:
            rows = await self._store.find(KIND, client, missing)
            found |= {mark: data.decode("utf-8", "replace") for mark, data in rows.items()}
            if rows:  # read late: it is in use
                await self._store.keep(KIND, client, rows, until=now + self._seconds)
                for mark, data in rows.items():
                    self._remember(client, mark, data.decode("utf-8", "replace"), now + self._seconds / 2)
        return found

    def _remember(self, client: str, mark: str, summary: str, until: float) -> None:
        self._size += len(summary) - len(self._recent.pop((client, mark), ("", 0.0))[0])
        self._recent[client, mark] = (summary, until)
        while self._size > MAX_REMEMBERED:
            self._size -= len(self._recent.popitem(last=False)[1][0])


def _with_summaries(turn: Turn, known: Mapping[str, str]) -> Turn:
    if not any(type(block) is Compaction for block in turn.blocks):
        return turn
    blocks = [
        replace(block, summary=known.get(block.data or ""))
        if type(block) is Compaction and _is_wanted(block)
        else block
        for block in turn.blocks
    ]
    return replace(turn, blocks=tuple(blocks))


def _is_wanted(block: Compaction) -> bool:
    return block.summary is None and is_own(block)

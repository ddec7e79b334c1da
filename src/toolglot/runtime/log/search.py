"""Searches the sessions of an owner: titles, messages, calls and results.

Law: the time is proportional to what is read. There is no index: the log itself is searched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from toolglot.conversation import Text, ToolCall, ToolResult, Turn
from toolglot.errors import InputError
from toolglot.runtime.log.info import SessionInfo, one_line
from toolglot.runtime.log.rows import DEFAULT_LOG_LIMITS, LogLimits
from toolglot.runtime.log.sessions import all_infos, read_session
from toolglot.store import Store

MAX_TEXT: Final = 200
"""Characters of the search text."""
SNIPPET_MARGIN: Final = 60
"""Characters of a snippet on either side of the match."""

SearchProgress = Callable[[int, int], None]
"""Called with the number of sessions searched so far, and of all."""


class SearchHit(Struct, frozen=True):
    """The first match in a session."""

    session: SessionInfo
    snippet: str
    turn_key: str = ""
    """Empty if the title matches."""
    role: str = ""
    problem: str = ""
    """Why the session could not be searched; set only for a session that is listed because of it."""


async def search_sessions(
    store: Store,
    text: str,
    *,
    owner: str = "",
    limit: int = 20,
    progress: SearchProgress | None = None,
    limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> list[SearchHit]:
    """Find the sessions that contain a text, ignoring case, newest first; at most `limit`."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        raise InputError(f"expected a string of 1 to {MAX_TEXT} characters", path="$.text")
    if type(limit) is not int or limit < 1:
        raise InputError("expected a whole number from 1", path="$.limit")
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    infos, _ = await all_infos(store, owner=owner)
    infos.sort(key=lambda info: (-info.updated, info.id))
    found: list[SearchHit] = []
    for number, info in enumerate(infos):
        hit = _in_title(info, pattern) or await _in_turns(store, info, pattern, owner, limits)
        if hit is not None:
            found.append(hit)
        if progress is not None:
            progress(number + 1, len(infos))
        if len(found) == limit:
            break
    return found


def _in_title(info: SessionInfo, pattern: re.Pattern[str]) -> SearchHit | None:
    match = pattern.search(info.title)
    return SearchHit(info, one_line(info.title)) if match is not None else None


async def _in_turns(
    store: Store, info: SessionInfo, pattern: re.Pattern[str], owner: str, limits: LogLimits
) -> SearchHit | None:
    try:
        known, state = await read_session(store, info.id, owner=owner, limits=limits)
    except InputError as error:  # damaged, or removed meanwhile: listed, and the search continues
        return SearchHit(info, "", problem=str(error))
    for turn in state.turns:
        for text in _texts(turn):
            match = pattern.search(text)
            if match is not None:
                return SearchHit(known, snippet(text, match.start(), match.end()), turn.key, turn.role)
    return None


def _texts(turn: Turn) -> Iterator[str]:
    """The searchable strings of a turn."""
    for block in turn.blocks:
        if isinstance(block, Text | ToolResult):
            yield block.text
        elif isinstance(block, ToolCall):
            written = block.raw_input or msgspec.json.encode(block.arguments or {}).decode()
            yield f"{block.name} {written}"


def snippet(text: str, start: int, end: int) -> str:
    """The match with its surroundings, in one line."""
    head, tail = max(start - SNIPPET_MARGIN, 0), min(end + SNIPPET_MARGIN, len(text))
    line = one_line(text[head:tail])
    return f"{'…' if head else ''}{line}{'…' if tail < len(text) else ''}"

"""Finding a text in the sessions of an owner: in their titles, in what was said, in calls and results.

Law: time in proportion to what is read. Nothing is indexed: what is in the log is what is found.
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
from toolglot.runtime.log.replay import DEFAULT_LOG_LIMITS, LogLimits
from toolglot.runtime.log.sessions import all_infos, read_session
from toolglot.store import Store

MAX_TEXT: Final = 200
"""Characters of what is looked for."""
AROUND: Final = 60
"""Characters that a snippet shows on either side."""

Progress = Callable[[int, int], None]
"""Told how many of how many sessions were looked through."""


class SearchHit(Struct, frozen=True):
    """Where a text stands first in a session."""

    session: SessionInfo
    snippet: str
    turn_key: str = ""
    """Empty where it is the title."""
    role: str = ""
    problem: str = ""
    """Why the session could not be looked through to its end; it is listed for that alone then."""


async def search_sessions(
    store: Store,
    text: str,
    *,
    owner: str = "",
    limit: int = 20,
    progress: Progress | None = None,
    limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> list[SearchHit]:
    """The sessions that hold a text, upper or lower case, the newest first; at most so many."""
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
        known, standing = await read_session(store, info.id, owner=owner, limits=limits)
    except InputError as error:  # damaged, or removed meanwhile: told, and the search goes on
        return SearchHit(info, "", problem=str(error))
    for turn in standing.turns:
        for said in _texts(turn):
            match = pattern.search(said)
            if match is not None:
                return SearchHit(known, snippet(said, match.start(), match.end()), turn.key, turn.role)
    return None


def _texts(turn: Turn) -> Iterator[str]:
    """What can be read in a turn."""
    for block in turn.blocks:
        if isinstance(block, Text | ToolResult):
            yield block.text
        elif isinstance(block, ToolCall):
            written = block.raw_input or msgspec.json.encode(block.arguments or {}).decode()
            yield f"{block.name} {written}"


def snippet(text: str, start: int, end: int) -> str:
    """The place in one line, with what stands around it."""
    head, tail = max(start - AROUND, 0), min(end + AROUND, len(text))
    line = one_line(text[head:tail])
    return f"{'…' if head else ''}{line}{'…' if tail < len(text) else ''}"

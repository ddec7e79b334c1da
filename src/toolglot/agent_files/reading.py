"""What the readers share: a message of a protocol to turns, and entries for what could not be read.

Law: a message that cannot be decoded is left out and reported with its file and line. Nothing else is raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.agent_files.values import AgentSession, SessionRow
from toolglot.conversation import Compaction, Issuer, Media, Text, ToolCall, Turn
from toolglot.conversation.report import Action, Entry, Gravity
from toolglot.errors import InputError
from toolglot.policy import DEFAULT_POLICY
from toolglot.protocols.base import get
from toolglot.translate.request_reading import decode_request

MAX_ENTRIES: Final = 200
TITLE_CHARACTERS: Final = 80


class ReadingLog:
    """Collects what a reader could not carry, with the line of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self._count = 0

    def add(self, reason: str, line: int = 0, *, action: Action = "dropped", gravity: Gravity = "loss") -> None:
        self._count += 1
        if self._count <= MAX_ENTRIES:
            where = f"{self.path}:{line}" if line else str(self.path)
            self.entries.append(Entry(action=action, reason=reason, fault="canonical", path=where, gravity=gravity))

    def report(self) -> tuple[Entry, ...]:
        if self._count > MAX_ENTRIES:
            reason = f"{self._count - MAX_ENTRIES} more things of this file are not listed"
            return (*self.entries, Entry(action="dropped", reason=reason, fault="canonical", path=str(self.path)))
        return tuple(self.entries)


def decode_messages(
    messages: Sequence[tuple[int, dict[str, Any]]], provider: str, issuer: Issuer | None, log: ReadingLog
) -> list[Turn]:
    """The turns of messages in the form of a provider's protocol, each with the line that it is from.

    They are decoded together, because an item can belong to the one before it; one by one if that fails.
    """
    profile = profiles.get(provider)
    field = get(profile.protocol).turns
    try:
        conversation, _ = decode_request(_body(field, [message for _, message in messages]), profile, DEFAULT_POLICY)
        found: list[Turn] = list(conversation.turns)
    except (InputError, RecursionError):
        found = []
        for line, message in messages:
            try:
                conversation, _ = decode_request(_body(field, [message]), profile, DEFAULT_POLICY)
            except RecursionError:
                log.add("a message nests too deeply", line)
            except InputError as error:
                log.add(f"a message cannot be read: {error.message}", line)
            else:
                found += conversation.turns
    return [
        replace(turn, issuer=issuer) if turn.role == "assistant" and turn.issuer is None else turn for turn in found
    ]


def _body(field: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "unknown", "max_tokens": 1, field: messages}


def image_of(url: str, media_type: str = "", name: str = "") -> Media:
    """An image by its address, which may be a data URL."""
    head, mark, data = url.partition(";base64,")
    if mark and head.startswith("data:"):
        return Media("image", media_type or head.removeprefix("data:"), data=data, name=name or None)
    return Media("image", media_type, url=url, name=name or None)


def call_of(id: str, name: str, arguments: Any, *, signature: str = "") -> ToolCall:
    """A call; arguments that are not an object are kept as text."""
    if isinstance(arguments, dict):
        return ToolCall(id, name, arguments, signature=signature or None)
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id, name, None, raw_input=raw, signature=signature or None)


def row_of(session: AgentSession, size: int, updated: float) -> SessionRow:
    """The row of a session for a list, where it has to be read whole."""
    return SessionRow(
        agent=session.agent,
        id=session.id,
        path=session.path,
        title=session.title,
        directory=session.directory,
        model=session.model,
        turns=sum(turn.role == "user" and not turn.results for turn in session.conversation.turns),
        size=size,
        updated=updated,
    )


def title_from(text: str) -> str:
    """The beginning of a prompt, as a title."""
    words = " ".join(text[:1000].split())
    return words if len(words) <= TITLE_CHARACTERS else words[: TITLE_CHARACTERS - 1] + "…"


def summary_turn(summary: str) -> Turn:
    """The turn that stands for what was compacted."""
    return Turn("user", (Compaction(summary=summary),))


def first_prompt(turns: Sequence[Turn]) -> str:
    """The first text of the user, as a title."""
    for turn in turns:
        if turn.role == "user":
            text = "".join(block.text for block in turn.blocks if isinstance(block, Text))
            if text.strip():
                return title_from(text)
    return ""


def describe_with(read: Callable[[Path], AgentSession]) -> Callable[[Path], SessionRow]:
    """Makes rows for a list of the sessions that `read` reads whole."""

    def describe(path: Path) -> SessionRow:
        status = path.stat()
        return row_of(read(path), status.st_size, status.st_mtime)

    return describe

"""What the session file of each coding agent carries: a session with everything is written for it and read again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from toolglot import Compaction, Conversation, Issuer, Media, Text, Thinking, ToolCall, ToolResult, Turn, agent_files
from toolglot.agent_files import AgentHome, AgentSession
from toolglot.agent_files.base import AgentFormat, get, writers

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ISSUERS: Final = {"claude_code": "anthropic", "codex": "openai_responses", "gemini_cli": "gemini"}
"""Whose signed thinking an agent's file holds."""
MODELS: Final = {"anthropic": "claude-opus-5", "openai_responses": "gpt-5.5", "gemini": "gemini-3-pro"}


def full_session(agent: str) -> Conversation:
    provider = ISSUERS.get(agent, "anthropic")
    issuer = Issuer(provider, model=MODELS[provider])
    signed = Thinking("First I look.", signature="c2ln" * 12, redacted="c2ln" * 12 if agent == "codex" else None)
    calls = (ToolCall("call_1", "read", {"path": "a"}), ToolCall("call_2", "read", {"path": "b"}))
    results = (
        ToolResult("call_1", (Text("words"), Media("image", "image/png", data=PNG))),
        ToolResult("call_2", "no such file", is_error=True),
    )
    return Conversation(
        (
            Turn("user", (Compaction(summary="What was before."),)),
            Turn("user", (Text("Read both."), Media("image", "image/png", data=PNG))),
            Turn("assistant", (signed, Text("I read."), *calls), issuer=issuer),
            Turn("user", results),
            Turn("assistant", (Text("Done."),), issuer=issuer),
        )
    )


def _blocks(session: AgentSession, kind: type) -> list[object]:
    return [block for turn in session.conversation.turns for block in turn.blocks if isinstance(block, kind)]


def _results(session: AgentSession) -> list[ToolResult]:
    return [result for turn in session.conversation.turns for result in turn.results]


def _has_parallel_calls(session: AgentSession) -> bool:
    return any(len(turn.calls) > 1 for turn in session.conversation.turns)


def _error(session: AgentSession) -> str:
    if any(result.is_error for result in _results(session)):
        return "yes"
    return "as text" if any("Error" in result.text for result in _results(session)) else "no"


def _image_in_result(session: AgentSession) -> str:
    if any(isinstance(part, Media) for result in _results(session) for part in result.content or ()):
        return "yes"
    return "behind the results" if len(_blocks(session, Media)) > 1 else "no"


def _summary(session: AgentSession) -> str:
    if _blocks(session, Compaction):
        return "yes"
    return "as a message" if any("What was before." in turn.text for turn in session.conversation.turns) else "no"


def _yes(found: object) -> str:
    return "yes" if found else "no"


ROWS: Final[dict[str, Callable[[AgentSession], str]]] = {
    "text, calls, results, their order": lambda session: _yes(len(_results(session)) == 2),
    "parallel calls of one turn": lambda session: _yes(_has_parallel_calls(session)),
    "a failed result": _error,
    "an image of the user": lambda session: _yes(_blocks(session, Media)),
    "an image in a result": _image_in_result,
    "thinking, back to the same agent": lambda session: _yes(_blocks(session, Thinking)),
    "the summary of a compaction": _summary,
    "the title": lambda session: _yes(session.title == "A title"),
    "the working directory": lambda session: _yes(session.directory),
    "the git branch": lambda session: _yes(session.branch == "main"),
}


def carried() -> dict[str, list[str]]:
    """For each row, what holds for each agent."""
    sessions = [_round_trip(get(name)) for name in writers()]
    return {name: [check(session) for session in sessions] for name, check in ROWS.items()}


SHORT: Final = {
    "parallel calls of one turn": "parallel calls",
    "a failed result": "failures (they are text)",
    "an image of the user": "the user's image",
    "an image in a result": "images in results",
    "the summary of a compaction": "the summary (it is a message)",
    "the title": "title",
    "the working directory": "folder",
    "the git branch": "branch",
}
"""What each row is called in the table of losses. Thinking is left out everywhere but on the way back."""


def losses() -> Iterator[str]:
    """For each agent and each target, what of a full session does not arrive."""
    yield "| from, to | " + " | ".join(get(name).title for name in writers()) + " |"
    yield "|---" * (len(writers()) + 1) + "|"
    for source in writers():
        session = _round_trip(get(source))
        cells = [_lost(session, _handed_over(session, target)) for target in writers()]
        yield f"| {get(source).title} | " + " | ".join(cells) + " |"


def _handed_over(session: AgentSession, target: str) -> AgentSession:
    with tempfile.TemporaryDirectory() as folder:
        home = AgentHome(folder=Path(folder), environ={})
        written = agent_files.write(
            session.conversation,
            target,
            home=home,
            directory=session.directory or "/",
            title=session.title,
            branch=session.branch,
            source=session.agent,
        )
        return agent_files.read(written.path)


def _lost(before: AgentSession, after: AgentSession) -> str:
    found = [short for name, short in SHORT.items() if ROWS[name](before) != "no" and ROWS[name](after) == "no"]
    found += [
        short for name, short in SHORT.items() if ROWS[name](before) == "yes" and ROWS[name](after).startswith("as")
    ]
    had = len([turn for turn in before.conversation.turns if turn.calls])
    if had != len([turn for turn in after.conversation.turns if turn.calls]):
        found.append("calls")
    return ", ".join(found) or "nothing"


def _round_trip(record: AgentFormat) -> AgentSession:
    with tempfile.TemporaryDirectory() as folder:
        home = AgentHome(folder=Path(folder), environ={})
        written = agent_files.write(
            full_session(record.name),
            record.name,
            home=home,
            directory="/",
            title="A title",
            branch="main",
            source=record.name,
        )
        return agent_files.read(written.path)


def table() -> Iterator[str]:
    yield "| | " + " | ".join(get(name).title for name in writers()) + " |"
    yield "|---" * (len(writers()) + 1) + "|"
    for name, values in carried().items():
        yield f"| {name} | " + " | ".join(values) + " |"

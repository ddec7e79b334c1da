"""The values of this package: a session of a coding agent, a row of a list, a fault, and what was written.

Law: values only. What an agent's file holds besides the conversation has a typed field here; what could not be carried
is an entry of the report, which is the same as in the rest of toolglot.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from toolglot.conversation import Conversation
from toolglot.conversation.report import Entry


class OwnPrompt(Struct, frozen=True, kw_only=True):
    """A text that the agent itself put before the model: its system prompt, notes on the environment, reminders.

    kind: what it is, in the agent's word.
    text: what it says.
    line: the line of the file.
    """

    kind: str
    text: str
    line: int = 0


class AgentSession(Struct, frozen=True, kw_only=True):
    """A session as its agent would continue it.

    agent: the name of the agent.
    id: the id of the session.
    path: the file.
    title: what the agent's own list shows.
    directory: the working directory.
    branch: the git branch.
    model: the last model.
    version: the version of the agent.
    conversation: what the agent would send, without its own prompts.
    """

    agent: str
    id: str = ""
    path: str = ""
    title: str = ""
    directory: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    created: float = 0.0
    """In seconds since 1970; 0 if unknown."""
    updated: float = 0.0
    conversation: Conversation = Conversation()
    own_prompts: tuple[OwnPrompt, ...] = ()
    """What the agent told the model by itself. Another agent has prompts of its own."""
    compactions: int = 0
    """How often the session was compacted. The conversation begins behind the last time."""
    rewound: int = 0
    """Records that are on no path to the last one: rewinds, forks, broken chains."""
    subagents: tuple[str, ...] = ()
    """The files of its subagents, or their ids."""
    report: tuple[Entry, ...] = ()
    """What could not be read, or not carried."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session in a list.

    agent: the name of the agent.
    id: the id of the session.
    path: the file.
    title: what the agent's own list shows.
    directory: the working directory.
    model: the last model.
    turns: messages of the user.
    size: bytes of the file.
    updated: when it was last written, in seconds since 1970.
    faults: what `check` found; None if it was not checked.
    """

    agent: str
    id: str
    path: str
    title: str = ""
    directory: str = ""
    model: str = ""
    turns: int = 0
    size: int = 0
    updated: float = 0.0
    faults: int | None = None


class SessionFault(Struct, frozen=True, kw_only=True):
    """Something wrong in a session file.

    kind: a short name, the same for all agents.
    line: the line of the file, from 1; 0 if it is about the file.
    message: what is wrong, and what it leads to.
    fix: what would be done about it; empty if nothing can be.
    """

    kind: str
    message: str
    line: int = 0
    fix: str = ""
    only_if_asked: bool = False
    """It may be on purpose, so it is fixed only on request."""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message}"


class WrittenSession(Struct, frozen=True, kw_only=True):
    """A session that was written for an agent, or would be.

    agent: the name of the agent.
    id: the id of the new session.
    path: the file.
    command: continues the session.
    data: the content of the file.
    report: what was changed, or could not be carried.
    """

    agent: str
    id: str
    path: Path
    command: tuple[str, ...]
    data: bytes
    directory: str = ""
    """Where to run the command."""
    preparation: tuple[str, ...] = ()
    """A command to run first."""
    report: tuple[Entry, ...] = ()
    calls: int = 0
    results: int = 0

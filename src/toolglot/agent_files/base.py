"""What is true of an agent's session files, as one record, and the registry of the agents.

    get("claude").read(path)          # an AgentSession
    get("codex").write(request)       # a WrittenSession: the bytes, the place, the command that continues it

Law: everything outside an agent's own two files (`agents/NAME.py`, `checks/NAME.py`) uses its record; no table
elsewhere is keyed by names of agents. An agent's files are imported when they are first used.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolglot.agent_files.edits import Examination
from toolglot.agent_files.json_lines import FileLine, read_lines
from toolglot.agent_files.values import AgentSession, SessionRow, WrittenSession
from toolglot.conversation import Conversation
from toolglot.errors import InputError, unknown_name

_PACKAGE: Final = "toolglot.agent_files.agents"
_NAMES: Final = (
    *("claude_code", "codex", "gemini_cli", "qwen_code", "pi", "opencode", "copilot_cli"),
    *("cline", "continue_dev", "goose", "llxprt", "aider"),
)


class AgentHome(Struct, frozen=True, kw_only=True):
    """Where to look for agents: a home folder, and the variables that move what is in it."""

    folder: Path
    environ: Mapping[str, str]
    directory: Path | None = None
    """The folder that the user is in, for an agent that keeps its sessions in the project."""

    def root(self, variable: str, *default: str) -> Path:
        """The folder that a variable names, or the default below the home folder."""
        named = self.environ.get(variable, "")
        return Path(named).expanduser() if named else self.folder.joinpath(*default)


class WriteRequest(Struct, frozen=True, kw_only=True):
    """A session to write.

    conversation: its turns.
    home: where the agent's files are.
    directory: the working directory of the new session.
    id: the id of the new session.
    now: the time, in seconds since 1970.
    title: what the agent's list shows.
    branch: the git branch.
    is_native: whether the conversation is from the same agent.
    """

    conversation: Conversation
    home: AgentHome
    directory: str
    id: str
    now: float
    title: str = ""
    branch: str = ""
    model: str = ""
    is_native: bool = False


class AgentFormat(Struct, frozen=True, kw_only=True):
    """The session files of an agent.

    name: its name here.
    title: its name as users know it.
    aliases: other names of it.
    find: the files of its sessions.
    provider: whose protocol its messages are in, for a request of a session.
    recognises: whether a file is one of them, by its first lines.
    describe: a row for a list.
    read: the session.
    write: a new session; None if its files are only read.
    examine: what is wrong in the lines of a file, and the edits that fix it; None if that is not known.
    prompts: the lines on which the prompts of the user begin.
    lock: why a file must not be changed now; empty if nothing is known to use it.
    lines: the lines of a session; of one in a database, each message as a line.
    copy: the healed lines as a new session, for an agent whose sessions are not changed in their place.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    find: Callable[[AgentHome], Iterator[Path]]
    provider: str
    recognises: Callable[[Path, Sequence[FileLine]], bool]
    describe: Callable[[Path], SessionRow]
    read: Callable[[Path], AgentSession]
    write: Callable[[WriteRequest], WrittenSession] | None = None
    examine: Callable[[Path, Sequence[FileLine], bool], Examination] | None = None
    prompts: Callable[[Sequence[FileLine]], list[int]] | None = None
    lock: Callable[[Path], str] | None = None
    lines: Callable[[Path], Iterable[FileLine]] = read_lines
    copy: Callable[[Sequence[FileLine], AgentHome, float], WrittenSession] | None = None


def names() -> tuple[str, ...]:
    """The names of all agents."""
    return _NAMES


def writers() -> tuple[str, ...]:
    """The names of the agents that sessions can be written for."""
    return tuple(record.name for record in formats() if record.write is not None)


@cache
def _load(name: str) -> AgentFormat:
    record: AgentFormat = importlib.import_module(f"{_PACKAGE}.{name}").FORMAT
    return record


def formats() -> tuple[AgentFormat, ...]:
    """The records of all agents."""
    return tuple(_load(name) for name in _NAMES)


def get(name: str, *, path: str = "agent") -> AgentFormat:
    """The record of an agent, by its name or another name of it."""
    wanted = name.strip().lower().replace("-", "_").replace(" ", "_")
    for record in formats():
        if wanted == record.name or wanted in record.aliases:
            return record
    known = [record.aliases[0] for record in formats()]
    raise unknown_name("agent", name, known, path=path)


def home_of_user(environ: Mapping[str, str] | None = None) -> AgentHome:
    """The home folder of this user."""
    variables = os.environ if environ is None else environ
    named = variables.get("HOME") or variables.get("USERPROFILE") or ""
    if not named:
        raise InputError("there is no home folder", path="HOME", hint="set HOME")
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        here = None
    return AgentHome(folder=Path(named), environ=variables, directory=here)

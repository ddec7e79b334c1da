"""Session files of coding agents: read, write, hand over, check and heal.

    session = toolglot.agent_files.read("~/.claude/projects/-home-me-proj/1111.jsonl")
    session.conversation, session.report
    new = toolglot.agent_files.write(session.conversation, "codex", directory="/home/me/proj")
    new.path, new.command, new.report
    for fault in toolglot.agent_files.check(session.path): print(fault)

Laws: a file is data from outside; reading it raises only `InputError`, with the file. The source is never changed by
reading, and `write` never overwrites. What could not be carried is in the report.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from toolglot.agent_files import base
from toolglot.agent_files.base import AgentFormat, AgentHome, WriteRequest, home_of_user, names, writers
from toolglot.agent_files.healing import HealedFile, examine_file, heal, write_new
from toolglot.agent_files.json_lines import read_lines
from toolglot.agent_files.requests import request_of
from toolglot.agent_files.values import AgentSession, OwnPrompt, SessionFault, SessionRow, WrittenSession
from toolglot.agent_files.whole_files import database_of
from toolglot.conversation import Conversation
from toolglot.errors import InputError

__all__ = [
    "AgentFormat",
    "AgentHome",
    "AgentSession",
    "HealedFile",
    "OwnPrompt",
    "SessionFault",
    "SessionRow",
    "WrittenSession",
    "check",
    "detect",
    "find",
    "heal_file",
    "names",
    "read",
    "request_of",
    "write",
    "writers",
]

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
"""Ids become names of files."""
_HEAD: Final = 40
"""Lines that are looked at to find out whose file it is."""


def detect(path: str | os.PathLike[str]) -> AgentFormat:
    """Whose session file this is. Raises `InputError` for a file of no known agent.

    path: the file.
    """
    file = _file(path)
    lines = list(islice(read_lines(file), _HEAD)) if file.is_file() else []
    for record in base.formats():
        if record.recognises(file, lines):
            return record
    if file.is_file() and not file.stat().st_size:
        raise InputError("file is empty", path=str(file), hint="an agent writes at least a line")
    hint = f"known: {', '.join(record.title for record in base.formats())}"
    raise InputError("this is not a session file of a known agent", path=str(file), hint=hint)


def read(path: str | os.PathLike[str], *, agent: str = "") -> AgentSession:
    """A session as its agent would continue it.

    path: the file.
    agent: whose it is; found out by default.
    """
    file = _file(path)
    record = base.get(agent) if agent else detect(file)
    return record.read(file)


def check(path: str | os.PathLike[str], *, agent: str = "") -> tuple[SessionFault, ...]:
    """What is wrong in a session file, with line numbers. Never raises for what the file holds.

    path: the file.
    agent: whose it is; found out by default.
    """
    file = _file(path)
    return examine_file(base.get(agent) if agent else detect(file), file)


def heal_file(path: str | os.PathLike[str], *, agent: str = "", closes_holes: bool = False) -> HealedFile:
    """The healed lines of a session file. Nothing is written.

    path: the file.
    agent: whose it is; found out by default.
    closes_holes: also fix what may be on purpose, such as a rewind.
    """
    file = _file(path)
    return heal(base.get(agent) if agent else detect(file), file, includes_holes=closes_holes)


def find(
    agent: str = "all", *, home: AgentHome | None = None, on_file: Callable[[Path], object] = str
) -> Iterator[SessionRow]:
    """The sessions on this machine.

    agent: whose; `all` for those of all agents.
    home: where to look; the home folder by default.
    on_file: called with each file, for a progress bar.
    """
    place = home_of_user() if home is None else home
    for record in base.formats() if agent == "all" else (base.get(agent),):
        try:
            paths = list(record.find(place))
        except (InputError, OSError) as error:  # a database that cannot be read
            where = error.path if isinstance(error, InputError) else str(error.filename or "")
            yield SessionRow(agent=record.name, id="", path=where, title="(cannot be read)", faults=1)
            continue
        for path in paths:
            on_file(path)
            try:
                yield record.describe(path)
            except (InputError, OSError):
                yield SessionRow(agent=record.name, id=path.stem, path=str(path), title="(cannot be read)", faults=1)


def write(
    conversation: Conversation,
    agent: str,
    *,
    directory: str = "",
    home: AgentHome | None = None,
    id: str = "",
    now: float | None = None,
    title: str = "",
    branch: str = "",
    source: str = "",
    dry_run: bool = False,
) -> WrittenSession:
    """Write a new session that an agent can continue.

    conversation: what was said so far.
    agent: for whom.
    directory: the working directory; the present one by default.
    home: where the agent's files are; in the home folder by default.
    id: the id of the new session; a new one by default.
    now: the time, in seconds since 1970; the clock's by default.
    title: what the agent's list shows.
    branch: the git branch.
    source: the agent that the conversation is from. Signed thinking goes back only to the same one.
    dry_run: write nothing, and return what would be written.
    """
    record = base.get(agent)
    if record.write is None:
        known = ", ".join(base.get(name).aliases[0] for name in writers())
        raise InputError(f"sessions of {record.title} are only read", path="agent", hint=f"known: {known}")
    if id and not _ID.fullmatch(id):
        raise InputError("expected an id of letters, digits, '.', '_' and '-'", path="id", hint="leave it out")
    request = WriteRequest(
        conversation=conversation,
        home=home_of_user() if home is None else home,
        directory=directory or str(Path.cwd()),
        id=id or str(uuid.uuid4()),
        now=time.time() if now is None else now,
        title=title,
        branch=branch,
        is_native=bool(source) and base.get(source).name == record.name,
    )
    written = record.write(request)
    if not dry_run:
        write_new(written.path, written.data)
    return written


def _file(path: str | os.PathLike[str]) -> Path:
    file = Path(path).expanduser()
    database = database_of(file)
    if not (file.is_file() or (database is not None and database.is_file())):
        raise InputError(
            "no such file", path=str(file), hint="`toolglot sessions list --agent all` shows what is there"
        )
    return file

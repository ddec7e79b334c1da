"""Finds the session that the user names: a path, an id, the beginning of one, or `latest`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from toolglot import agent_files
from toolglot.agent_files import AgentFormat, SessionRow
from toolglot.agent_files.base import get, home_of_user
from toolglot.agent_files.whole_files import database_of
from toolglot.errors import InputError, quote

LATEST: Final = "latest"
SHOWN: Final = 5


class ChosenSession(NamedTuple):
    """A session file and the agent that it is of."""

    format: AgentFormat
    path: Path


def choose(name: str, agent: str) -> ChosenSession:
    """The session that `name` means.

    name: a path, an id or the beginning of one, or `latest`: of this folder, if it has any.
    agent: whose it is; empty: anyone's.
    """
    if name != LATEST and (os.sep in name or Path(name).suffix in (".jsonl", ".json", ".zst", ".db")):
        return _of_file(name, agent)
    rows = list(agent_files.find(agent or "all", home=home_of_user()))
    found = _latest(rows) if name == LATEST else [row for row in rows if name and row.id.startswith(name)]
    if not found and name != LATEST and name and os.path.lexists(Path(name).expanduser()):
        return _of_file(name, agent)
    if not found:
        what = "there are no sessions" if name == LATEST else f"there is no session {quote(name)}"
        raise InputError(what + (f" of {get(agent).title}" if agent else ""), path="", hint=_hint(agent))
    if len({(row.agent, row.id) for row in found}) == 1:
        # Gemini CLI begins another file with the same id when it resumes a session, and goes on with the last one.
        found = sorted(found, key=lambda row: row.updated)[-1:]
    if len(found) > 1:
        ids = ", ".join(row.id for row in found[:SHOWN])
        raise InputError(f"{len(found)} sessions begin with {quote(name)}: {ids}", path="", hint="write more of the id")
    return ChosenSession(get(found[0].agent), Path(found[0].path))


def _of_file(name: str, agent: str) -> ChosenSession:
    path = Path(name).expanduser()
    database = database_of(path)
    if path.is_dir():
        raise InputError("is a folder", path=name, hint="name one of the files in it")
    if not path.is_file() and (database is None or not database.is_file()):
        raise InputError("no such file", path=name, hint=_hint(agent))
    return ChosenSession(get(agent, path="--agent") if agent else agent_files.detect(path), path)


def is_session(path: Path) -> bool:
    """Whether it is the session file of a known agent."""
    try:
        agent_files.detect(path)
    except InputError:
        return False
    return True


def _latest(rows: list[SessionRow]) -> list[SessionRow]:
    here = [row for row in rows if row.directory == str(Path.cwd())]
    return sorted(here or rows, key=lambda row: row.updated)[-1:]


def _hint(agent: str) -> str:
    return f"`toolglot sessions list --agent {get(agent).aliases[0] if agent else 'all'}` lists them"

"""The session file of a coding agent as the request that continues it, for commands that read requests.

Law: a file that is no such session is left to the reader of requests; nothing is raised for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolglot.errors import InputError

if TYPE_CHECKING:
    from toolglot.agent_files import AgentSession

_MARKS: Final = (
    *(b'"sessionId"', b'"session_meta"', b'"parentId"', b'"parentUuid"', b'"projectID"'),
    *(b'"session_start"', b'"working_dir"', b'"workspaceDirectory"', b"# aider chat started at "),
)
"""What is in the first lines of such files, and seldom in requests."""
_ENDS: Final = (".zst", "api_conversation_history.json", ".messages.json")
_ROW: Final = "#"


class SessionRequest(NamedTuple):
    """A session, the body of the request, whose protocol it is in, and the agent's name."""

    session: AgentSession
    body: dict[str, Any]
    provider: str
    title: str


def in_database(name: str) -> bool:
    """Whether a name is that of a session in a database, as `toolglot sessions list` shows it."""
    path = Path(name)
    file, mark, _ = path.name.rpartition(_ROW)
    try:
        return bool(mark and file) and not path.exists() and path.with_name(file).is_file()
    except (OSError, ValueError):
        return False


def session_request(name: str, head: bytes, *, next_prompt: str = "") -> SessionRequest | None:
    """The request of a session file, or of a session in a database; None for any other file.

    head: its first bytes.
    next_prompt: what the user says after a last answer of the model.
    """
    if not name.endswith(_ENDS) and not in_database(name) and not any(mark in head for mark in _MARKS):
        return None
    from toolglot import agent_files  # noqa: PLC0415 - only for a file that looks like one

    try:
        found = agent_files.detect(name)
    except InputError:
        return None
    session = found.read(Path(name))
    body = agent_files.request_of(session, next_prompt=next_prompt)
    return SessionRequest(session, body, found.provider, found.title)

"""toolglot's own sessions, exported ones and plain requests as sessions to hand over, and the way back.

Law: what a file holds raises only `InputError`; a dry run writes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import toolglot
from toolglot import jsontext
from toolglot.agent_files import AgentSession, WrittenSession
from toolglot.agent_files.base import get
from toolglot.agent_files.reading import first_prompt
from toolglot.cli.files.documents import read_whole
from toolglot.cli.session.session_options import session_store
from toolglot.cli.store_access import with_store
from toolglot.cli.targets import detect_protocol
from toolglot.conversation import Conversation
from toolglot.errors import InputError, ToolglotError
from toolglot.store import Store, is_address

T = TypeVar("T")

OWN: Final = "toolglot"
REQUEST: Final = "request"
LATEST: Final = "latest"
MAX_BYTES: Final = 256 * 1024 * 1024
_EXPORTED: Final = ("toolglot.session", "toolglot.conversation")


def agent_title(agent: str) -> str:
    """How users call the source of a session, or its target."""
    return {OWN: "toolglot", REQUEST: "a request"}.get(agent) or get(agent).title


def read_own(name: str) -> AgentSession:
    """A session of `chat` or `run`, by its id, the beginning of one, or `latest`."""
    from toolglot.cli.session.session_host import full_id  # noqa: PLC0415 - it needs the runtime
    from toolglot.runtime.log.sessions import conversation_of, list_sessions, read_session  # noqa: PLC0415

    async def read(store: Store) -> AgentSession:
        if name == LATEST:
            page = await list_sessions(store, limit=1)
            if not page.sessions:
                raise InputError("there are no sessions of toolglot", path="", hint="`toolglot chat` creates one")
            id = page.sessions[0].id
        else:
            id = await full_id(store, name)
        info, state = await read_session(store, id)
        return AgentSession(
            agent=OWN,
            id=info.id,
            title=info.title,
            model=info.model,
            created=info.created,
            updated=info.updated,
            conversation=conversation_of(info, state),
            report=(),
        )

    location = session_store(None)
    if not is_address(location) and not Path(location).expanduser().exists():
        raise InputError("there are no sessions of toolglot", path=location, hint="`toolglot chat` creates one")
    return _in_store(location, read)


def read_file(path: Path) -> AgentSession:
    """A file that is of no agent: an exported session or conversation, or a request of any protocol."""
    data = read_whole(str(path), MAX_BYTES, hint="this is too large for a request")
    if not data.strip():
        raise InputError("file is empty", path=str(path), hint="a session or a request is a JSON object")
    value = jsontext.parse(data, path=str(path)).value
    if not isinstance(value, dict):
        raise InputError("neither a session of an agent nor a request", path=str(path), hint="check the file")
    if value.get("format") in _EXPORTED:
        from toolglot.runtime.log.documents import read_document  # noqa: PLC0415 - as above

        document = read_document(data)
        conversation, id, title = document.conversation, document.info.id, document.info.title
        agent = OWN
    else:
        source = detect_protocol(value, str(path), "--from").protocol or ""
        conversation, id, title = toolglot.read_request(data, source=source).conversation, path.stem, ""
        agent = REQUEST
    return AgentSession(
        agent=agent,
        id=id,
        path=str(path),
        title=title or first_prompt(conversation.turns),
        model=conversation.model,
        conversation=conversation,
    )


def write_own(session: AgentSession, *, dry_run: bool) -> WrittenSession:
    """The session as one of toolglot's own, which `toolglot chat` continues."""
    from toolglot.runtime.log.documents import import_session  # noqa: PLC0415 - as above

    turns = tuple(turn for turn in session.conversation.turns if turn.role not in ("system", "developer"))
    data = toolglot.dump(Conversation(turns))
    location = session_store(None)
    id = "" if dry_run else _in_store(location, lambda store: import_session(store, data)).id
    return WrittenSession(
        agent=OWN,
        id=id,
        path=Path(location),
        command=("toolglot", "chat", "--session", id),
        data=data if isinstance(data, bytes) else data.encode(),
        calls=sum(len(turn.calls) for turn in turns),
        results=sum(len(turn.results) for turn in turns),
    )


def _in_store(location: str, act: Callable[[Store], Awaitable[T]]) -> T:
    from toolglot.cli.session.session_host import as_input_error  # noqa: PLC0415 - as above

    try:
        return with_store(location, act)
    except InputError:
        raise
    except ToolglotError as error:
        raise as_input_error(error) from None

"""A session as one document, for export to another store.

    {"format": "toolglot.session", "version": 1, "info": {…}, "conversation": {…}, "runs": […], "report": […]}

`conversation` is the published form of a conversation (`docs/conversation.schema.json`). `runs` are the recorded runs
of calls that have no result yet, so that an imported session does not run them again.

Law: an import is validated as untrusted input: every field has its type, and the turns pass the checks of the history.
A newer version is refused.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.conversation import Conversation, canonical_json
from toolglot.conversation.forms import read_form
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.conversation.version_1 import upgrade
from toolglot.errors import InputError, VersionError
from toolglot.history.history import History
from toolglot.limits import Limits
from toolglot.runtime.log.entries import ToolRun
from toolglot.runtime.log.info import KIND, SessionInfo, check_id, title_from_turns, title_of
from toolglot.runtime.log.replay import SessionState
from toolglot.runtime.log.rows import DEFAULT_LOG_LIMITS, LogLimits
from toolglot.runtime.log.sessions import conversation_of, make_session, read_session, reset_of
from toolglot.store import Store

FORMAT: Final = "toolglot.session"
VERSION: Final = 2
MODEL_CHARACTERS: Final = 300
DOCUMENT_LIMITS: Final = Limits(max_bytes=256 * 1024**2, max_nodes=20_000_000)
"""The default limits of `export_session` and `import_session`."""


class SessionDocument(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The outermost object."""

    format: Literal["toolglot.session"]
    version: Literal[2]
    info: SessionInfo
    conversation: Conversation
    runs: tuple[ToolRun, ...] = ()
    report: tuple[ReportEntry, ...] = ()


async def export_session(
    store: Store,
    id: str,
    *,
    owner: str = "",
    limits: Limits = DOCUMENT_LIMITS,
    log_limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> bytes:
    """The current state of a session as one JSON document."""
    info, state = await read_session(store, id, owner=owner, limits=log_limits)
    document = SessionDocument(
        format=FORMAT,
        version=VERSION,
        info=info,
        conversation=conversation_of(info, state),
        runs=tuple(state.runs.values()),
        report=tuple(state.report),
    )
    data = msgspec.json.encode(document)
    jsontext.refuse_large(data, limits, "$")
    jsontext.refuse_many_values(data, limits, "$")
    return data


async def import_session(
    store: Store,
    data: bytes | str,
    *,
    owner: str = "",
    limits: Limits = DOCUMENT_LIMITS,
    log_limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> SessionInfo:
    """Create a session from what `export_session` or `toolglot.dump` wrote. It gets a new id if its own is taken."""
    document = read_document(data, limits=limits)
    history = History(document.conversation)
    state = SessionState()
    state.add_runs(document.runs)
    state.report = list(document.report)
    title = title_of(document.info.title) or title_from_turns(history.turns)
    like = SessionInfo(
        id=document.info.id, title=title, model=document.info.model[:MODEL_CHARACTERS], created=document.info.created
    )
    id = like.id if like.id and not await store.find(KIND, owner, [like.id]) else None
    return await make_session(store, like, reset_of(history, state), id=id, owner=owner, limits=log_limits)


def read_document(data: bytes | str, *, limits: Limits = DOCUMENT_LIMITS) -> SessionDocument:
    """Parse and validate a document."""
    value = jsontext.parse(data, limits=limits).value
    found = value.get("format") if isinstance(value, dict) else None
    if found == canonical_json.FORMAT:
        conversation = canonical_json.load(data, limits=limits)
        info = SessionInfo(id="", model=conversation.model)
        return SessionDocument(format=FORMAT, version=VERSION, info=info, conversation=conversation)
    if not isinstance(value, dict) or found != FORMAT:
        hint = "import_session() reads what export_session() wrote"
        raise InputError(f'expected an object with "format": "{FORMAT}"', hint=hint)
    version = value.get("version")
    is_old = type(version) is int and version == 1
    if isinstance(version, int) and version > VERSION:
        problem = f"written in version {version} of the form; this toolglot reads up to {VERSION}"
        raise VersionError(problem, path="$.version", hint="upgrade toolglot")
    try:
        document = msgspec.convert(
            {**value, "version": VERSION} if is_old else value, SessionDocument, dec_hook=read_form
        )
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        raise InputError(message, path=where.removesuffix("`") or "$") from None
    if is_old:
        document = upgrade(document)
    if document.info.id:
        check_id(document.info.id)
    return document

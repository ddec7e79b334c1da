"""A session as one document that another store can take in.

    {"format": "toolglot.session", "version": 1, "info": {…}, "conversation": {…}, "runs": […], "report": […]}

`conversation` is the published form of a conversation (`docs/conversation.schema.json`). `runs` are what is known of
calls that have no result yet, so that a session that is taken elsewhere does not run them again there.

Law: what is imported is checked as if a stranger had written it: every field has its type, and the turns go through
the history's own gate. A newer version is refused.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.conversation import Conversation, canonical_json
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.errors import InputError, VersionError
from toolglot.history.history import History
from toolglot.limits import Limits
from toolglot.runtime.log.entries import Run
from toolglot.runtime.log.info import KIND, SessionInfo, check_id, first_words, title_of
from toolglot.runtime.log.replay import DEFAULT_LOG_LIMITS, LogLimits, Standing
from toolglot.runtime.log.sessions import conversation_of, make_session, read_session, start_of
from toolglot.store import Store

FORMAT: Final = "toolglot.session"
VERSION: Final = 1
MODEL_CHARACTERS: Final = 300
DOCUMENT_LIMITS: Final = Limits(max_bytes=256 * 1024**2, max_nodes=20_000_000)
"""What `export_session` writes and `import_session` reads unless told otherwise."""


class SessionDocument(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The outermost object."""

    format: Literal["toolglot.session"]
    version: Literal[1]
    info: SessionInfo
    conversation: Conversation
    runs: tuple[Run, ...] = ()
    report: tuple[ReportEntry, ...] = ()


async def export_session(
    store: Store,
    id: str,
    *,
    owner: str = "",
    limits: Limits = DOCUMENT_LIMITS,
    log_limits: LogLimits = DEFAULT_LOG_LIMITS,
) -> bytes:
    """A session as it stands, as one JSON document."""
    info, standing = await read_session(store, id, owner=owner, limits=log_limits)
    document = SessionDocument(
        format=FORMAT,
        version=VERSION,
        info=info,
        conversation=conversation_of(info, standing),
        runs=tuple(standing.runs.values()),
        report=tuple(standing.told),
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
    """Take in what `export_session`, or `toolglot.dump`, wrote. It gets an id of its own where its id is taken."""
    document = read_document(data, limits=limits)
    history = History(document.conversation)
    standing = Standing()
    standing.runs_of(document.runs)
    standing.told = list(document.report)
    title = title_of(document.info.title) or first_words(history.turns)
    like = SessionInfo(
        id=document.info.id, title=title, model=document.info.model[:MODEL_CHARACTERS], created=document.info.created
    )
    id = like.id if like.id and not await store.find(KIND, owner, [like.id]) else None
    return await make_session(store, like, start_of(history, standing), id=id, owner=owner, limits=log_limits)


def read_document(data: bytes | str, *, limits: Limits = DOCUMENT_LIMITS) -> SessionDocument:
    """The document, with every field of its type."""
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
    if isinstance(version, int) and version > VERSION:
        problem = f"written in version {version} of the form; this toolglot reads up to {VERSION}"
        raise VersionError(problem, path="$.version", hint="upgrade toolglot")
    try:
        document = msgspec.convert(value, SessionDocument)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `")
        raise InputError(message, path=where.removesuffix("`") or "$") from None
    if document.info.id:
        check_id(document.info.id)
    return document

"""Conversations and sessions that toolglot stored: `toolglot.dump`, and `toolglot sessions export`.

{"format": "toolglot.conversation", "version": 2, "conversation": {…}}
{"format": "toolglot.session", "version": 2, "info": {…}, "conversation": {…}}
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.format import Format
from toolglot.conversation.canonical_json import DOCUMENT_LIMITS, FORMAT, dump, load
from toolglot.errors import InputError
from toolglot.jsontext import compact

_SESSION: Final = "toolglot.session"


def _detect(row: Row) -> float:
    return 1.0 if row.get("format") in (FORMAT, _SESSION) else 0.0


def _read(row: Row, _: Notes) -> Example:
    if row.get("format") not in (FORMAT, _SESSION):
        raise InputError(f'expected "format": "{FORMAT}" or "{_SESSION}"', path="$.format")
    document = {"format": FORMAT, "version": row.get("version"), "conversation": row.get("conversation")}
    conversation = load(compact(document), limits=DOCUMENT_LIMITS)
    info: Any = row.get("info")
    id = info.get("id") if isinstance(info, dict) else None
    name = id if isinstance(id, str) else ""
    return Example(conversation=conversation, id=name, session=name)


def _write(example: Example, _: Notes) -> Row:
    document: Row = msgspec.json.decode(dump(example.conversation))
    return document


FORMATS: Final = (
    Format(
        name="conversation",
        title="Conversations and sessions of toolglot",
        columns=frozenset({"format", "version", "conversation", "info", "runs", "report"}),
        detect=_detect,
        read=_read,
        write=_write,
        source="",
        takes_columns=False,
        json_columns=frozenset({"conversation"}),
    ),
)

"""Which protocol a whole reply is written in, by the fields that only its replies have.

Used where a reply cannot be read as what the caller says that it is. Law: nothing is raised, and the work is bounded by
the fields of the body.
"""

from __future__ import annotations

from toolglot.protocols.base import Protocol, records
from toolglot.protocols.fields.reading import Fields


def protocol_of_reply(body: Fields) -> str | None:
    """The protocol of a reply; None if that is not clear."""
    for protocol in sorted(records(), key=_rank):
        if any(isinstance(body.get(name), kind) for name, kind in protocol.reply_marks.items()):
            return protocol.name
    return None


def _rank(protocol: Protocol) -> int:
    return protocol.reply_rank

"""Shortens keys of conversations for the prompt cache that are longer than the target takes.

Clients make them of several ids. A key only has to be the same in every request of a conversation, so its hash serves
as well, and the client's own prompt cache is found again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from toolglot.conversation import Conversation, Extra
from toolglot.render.context import RenderContext

_DIGITS = 32


def shorten_cache_key(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation with the hash of a key that is too long, also of one that is carried from another protocol."""
    field, limit, extra = ctx.profile.cache.key_field, ctx.profile.cache.key_length, conversation.extra
    if not field or limit is None or not extra:
        return conversation
    shorter: Extra = {
        protocol: {**fields, field: _digest(fields[field], limit)} if _is_longer(fields.get(field), limit) else fields
        for protocol, fields in extra.items()
    }
    if shorter == extra:
        return conversation
    reason = f"{field} was longer than {limit} characters {ctx.rule('cache.key_length')}; a hash of it is sent"
    ctx.report("replaced", reason, path=f"$.{field}", gravity="housekeeping")
    return replace(conversation, extra=shorter)


def _is_longer(key: Any, limit: int) -> bool:
    return isinstance(key, str) and len(key) > limit


def _digest(key: str, limit: int) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[: min(limit, _DIGITS)]

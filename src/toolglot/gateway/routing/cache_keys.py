"""Keys of conversations, so that a provider or a replica finds the prompt cache of a conversation again.

    session = session_of(headers, conversation, source)     # what the client calls the conversation
    key = cache_key(session, client, upstream.key)          # what the upstream gets
    conversation, entries = with_cache_key(conversation, source, target, key)

Coding agents name their session: Claude Code in `metadata.user_id`, Codex in `prompt_cache_key`, opencode in headers.
The target's field or header for it is the rule `cache.key_field` or `cache.affinity_header`.

Laws: the upstream gets a keyed hash, so that nothing of the user is shown and one client key cannot name the
conversation of another. What a client sets for its own provider stays there; another provider gets a hash of it. A body
in the client's own protocol is not changed (law 3).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.conversation.report import Entry
from toolglot.profiles import Profile
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.load_balancing import first_message

SESSION_HEADERS: Final = (
    "x-session-affinity",
    "x-session-id",
    "x-opencode-session",
    "session-id",
    "x-claude-code-session-id",
)
"""Headers in which clients name their session: three of opencode's, Codex's, Claude Code's."""
_MAX_SESSION: Final = 2_000
"""Characters of a name that is read."""
_DIGITS: Final = 32
_OLD_SESSION: Final = re.compile(r"_session_([0-9a-f-]{8,64})$")
"""The end of a user id of older versions of Claude Code."""


def session_of(headers: Mapping[str, str], conversation: Conversation, source: Profile) -> str:
    """What the client calls the conversation; empty: it has no name.

    The id of a user who may have several conversations is joined with the first message.
    """
    own = _own_key(conversation, source)
    if own:
        return own[:_MAX_SESSION]
    if named := session_in_headers(headers):
        return named
    user = conversation.options.user
    if source.cache.key_field or not user or len(user) > _MAX_SESSION:
        return ""  # a protocol with a field for the key has it there; its user ids are people
    return _session_in(user) or f"{user}\0{first_message(conversation)}"


def session_in_headers(headers: Mapping[str, str]) -> str:
    """What the headers call the conversation; empty: nothing."""
    for name in SESSION_HEADERS:
        if headers.get(name):
            return headers[name][:_MAX_SESSION]
    return ""


def _own_key(conversation: Conversation, source: Profile) -> str:
    """The cache key in the client's own field for it."""
    fields = (conversation.extra or {}).get(source.protocol, {}) if source.cache.key_field else {}
    key = fields.get(source.cache.key_field)
    return key if isinstance(key, str) else ""


def _session_in(user: str) -> str:
    """The session in the user id that Claude Code sends: an object, or the end of a string."""
    if user.startswith("{"):
        try:
            session = msgspec.json.decode(user, type=dict[str, object]).get("session_id")
        except msgspec.DecodeError:
            return ""
        return session if isinstance(session, str) else ""
    found = _OLD_SESSION.search(user)
    return found[1] if found is not None else ""


def cache_key(session: str, client: str, secret: str) -> str:
    """The key that an upstream gets.

    client: the hash of the client key.
    secret: the gateway's own key for the upstream.
    """
    message = session.encode("utf-8", "surrogatepass")
    return hmac.new(f"{client}\0{secret}".encode(), message, hashlib.sha256).hexdigest()[:_DIGITS]


def with_cache_key(
    conversation: Conversation, source: Profile, target: Profile, key: str
) -> tuple[Conversation, list[Entry]]:
    """The conversation with its key in the target's field, if it is translated. A key that the client set for its own
    provider is a name of the session too."""
    field, extra = target.cache.key_field, conversation.extra or {}
    own = extra.get(target.protocol, {})
    if not field or source.protocol == target.protocol or field in own:
        return conversation, []
    if _own_key(conversation, source) and _are_of_one_provider(source.name, target.name):
        return conversation, []
    added = replace(conversation, extra={**extra, target.protocol: {**own, field: key}})
    return added, [_entry(target, "cache.key_field", f"$.{field}")]


def _are_of_one_provider(source: str, target: str) -> bool:
    """Whether a provider serves both profiles."""
    return any({source, target} <= {each.target, *each.also} for each in PROVIDERS.values() if each.also)


def affinity_headers(target: Profile, key: str) -> tuple[dict[str, str], list[Entry]]:
    """The target's header for the key, if it has one."""
    name = target.cache.affinity_header.lower()
    return ({name: key}, [_entry(target, "cache.affinity_header", "")]) if name else ({}, [])


def _entry(target: Profile, rule: str, path: str) -> Entry:
    name = target.cache.key_field if path else f"header {target.cache.affinity_header}"
    return Entry(
        action="added",
        reason=f"{name}: a hash of the client's session, so that {target.name} finds its prompt cache again "
        f"({target.origin(rule).id})",
        fault="policy",
        path=path,
        target=target.name,
        gravity="housekeeping",
    )

"""Fields of a request that cross from one protocol to another, and one that only a crossing needs."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Extra
from toolglot.profiles import Profile

_OPENAI: Final = frozenset(
    {"metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"}
)

SHARED: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("openai_chat", "openai_responses"): _OPENAI,
    ("openai_responses", "openai_chat"): _OPENAI,
}


def carried(extra: Extra | None, source: str, target: str) -> Extra | None:
    """The fields of a body, with those that the target's protocol shares under its name."""
    shared = SHARED.get((source, target))
    if extra is None or shared is None or source not in extra:
        return extra
    own = {key: value for key, value in extra[source].items() if key in shared}
    rest = {key: value for key, value in extra[source].items() if key not in shared}
    return {**extra, source: rest, target: {**own, **extra.get(target, {})}} if own else extra


def asking_usage(conversation: Conversation, target: Profile) -> Conversation:
    """A conversation that asks for what its reply costs, where a stream of the target tells that only who asks."""
    if target.protocol != "openai_chat" or target.stream.usage != "asked" or not conversation.options.stream:
        return conversation
    extra = conversation.extra or {}
    own = {"stream_options": {"include_usage": True}, **extra.get(target.protocol, {})}
    return replace(conversation, extra={**extra, target.protocol: own})

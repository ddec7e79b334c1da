"""Fields of a request that cross from one protocol to another, and one that only a crossing needs."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Extra
from toolglot.profiles import Profile

_OPENAI: Final = frozenset(
    {"metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"}
)

_TIERS: Final = frozenset({"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"})
"""The service tiers of OpenAI; Groq and others have words of their own for this field."""

_TEXT: Final = "~text"
"""The note of what is left over of `text` in a body of Responses."""

SHARED: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("openai_chat", "openai_responses"): _OPENAI,
    ("openai_responses", "openai_chat"): _OPENAI,
}


_WHO_KNOWS: Final = frozenset({"openai", "openai_responses"})
"""Whose fields these are. Many hosts that imitate them refuse what they did not take over."""


def carried(extra: Extra | None, source: str, to: Profile) -> Extra | None:
    """The fields of a body, with those that the target shares under the name of its protocol."""
    target = to.protocol
    shared = SHARED.get((source, target))
    if extra is None or shared is None or source not in extra:
        return extra
    if to.request.unknown_fields == "refused" and _WHO_KNOWS.isdisjoint(to.layers):
        return extra
    own = {key: value for key, value in extra[source].items() if key in shared and _is_known(key, value)}
    rest = {key: value for key, value in extra[source].items() if key not in own}
    _carry_verbosity(own, rest, source)
    return {**extra, source: rest, target: {**own, **extra.get(target, {})}} if own else extra


def _is_known(field: str, value: Any) -> bool:
    return field != "service_tier" or value is None or (isinstance(value, str) and value in _TIERS)


def _carry_verbosity(own: dict[str, Any], rest: dict[str, Any], source: str) -> None:
    """How much to say: a field of the body in the one protocol, of its `text` in the other."""
    if source == "openai_chat":
        if rest.get("verbosity") is not None:
            own[_TEXT] = {"verbosity": rest.pop("verbosity")}
        return
    text = rest.get(_TEXT)
    if isinstance(text, dict) and text.get("verbosity") is not None:
        own["verbosity"] = text["verbosity"]
        rest[_TEXT] = {key: value for key, value in text.items() if key != "verbosity"}


def asking_usage(conversation: Conversation, target: Profile) -> Conversation:
    """A conversation that asks for what its reply costs, where a stream of the target tells that only who asks."""
    if target.protocol != "openai_chat" or target.stream.usage != "asked" or not conversation.options.stream:
        return conversation
    extra = conversation.extra or {}
    own = {"stream_options": {"include_usage": True}, **extra.get(target.protocol, {})}
    return replace(conversation, extra={**extra, target.protocol: own})

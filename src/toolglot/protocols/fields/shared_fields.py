"""Fields of a request that cross from one protocol to another, and one that only a crossing needs."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.profiles import Profile
from toolglot.protocols.base import get

OPENAI_FIELDS: Final = frozenset(
    {"metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"}
)

_TIERS: Final = frozenset({"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"})
"""The service tiers of OpenAI; Groq and others have words of their own for this field."""

_VERBOSITY: Final = "verbosity"
_WHO_KNOWS: Final = frozenset({"openai", "openai_responses"})
"""Whose fields these are. Many hosts that imitate them refuse what they did not take over."""


def carry_shared_fields(conversation: Conversation, source: str, to: Profile) -> Conversation:
    """The conversation, with fields of its body that the target shares under the name of its protocol."""
    extra, form, target = conversation.extra or {}, conversation.form, to.protocol
    shared = get(source).shared_fields & get(target).shared_fields
    is_strange = to.request.unknown_fields == "refused" and _WHO_KNOWS.isdisjoint(to.layers)
    if is_strange:
        shared &= frozenset(to.request.common_fields)
    if source == target or not shared:
        return conversation
    fields = extra.get(source, {})
    own = {key: value for key, value in fields.items() if key in shared and _is_known(key, value)}
    rest = {key: value for key, value in fields.items() if key not in own}
    # How much to say: a field of the body in the one protocol, of its `text` in the other.
    if is_strange:
        pass  # it has no such field
    elif source == "openai_chat":
        if rest.get(_VERBOSITY) is not None:
            own["text"] = {_VERBOSITY: rest.pop(_VERBOSITY)}
    elif form is not None and form.protocol == source and form.verbosity is not None:
        own[_VERBOSITY] = form.verbosity
        form = form.without_verbosity()
    if not own:
        return conversation
    extra = {**extra, **({source: rest} if source in extra else {}), target: {**own, **extra.get(target, {})}}
    return replace(conversation, extra=extra, form=form)


def _is_known(field: str, value: Any) -> bool:
    return field != "service_tier" or value is None or (isinstance(value, str) and value in _TIERS)


def asking_usage(conversation: Conversation, target: Profile) -> Conversation:
    """The conversation with usage requested, if the target streams usage only on request."""
    switch = get(target.protocol).usage_switch
    if switch is None or target.stream.usage != "asked" or not conversation.options.stream:
        return conversation
    extra = conversation.extra or {}
    own = {switch[0]: {switch[1]: True}, **extra.get(target.protocol, {})}
    return replace(conversation, extra={**extra, target.protocol: own})

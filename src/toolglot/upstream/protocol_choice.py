"""Which of a provider's protocols a conversation is sent in, and what such a request needs.

Some providers serve several profiles under one address, and some of their models take tools in one of them only.
"""

from __future__ import annotations

import copy
from typing import Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import Conversation
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import get
from toolglot.upstream.upstream import Upstream

RESPONSES: Final = "openai_responses"
"""The protocol whose replies a provider stores, and the gateway for those that do not."""


def profile_for(
    upstream: Upstream, model: str, conversation: Conversation, *, overrides: Overrides | None = None
) -> Profile:
    """The profile that a conversation is rendered for: the provider's own, or the one that takes tools."""
    own = profiles.get(upstream.target, model, overrides=overrides)
    target = target_for(upstream, own, conversation)
    return own if target == upstream.target else profiles.get(target, model, overrides=overrides)


def target_for(upstream: Upstream, own: Profile, conversation: Conversation) -> str:
    """The name of that profile; `own` is the profile of the upstream's target for the model."""
    instead = own.tools.protocol
    if instead not in upstream.also:
        return upstream.target
    has_tools = conversation.tools or any(turn.calls for turn in conversation.turns)
    return instead if has_tools else upstream.target


def request_encrypted_reasoning(conversation: Conversation, profile: Profile) -> Conversation:
    """Request reasoning in a form that can be sent back, if the provider does not store it and the model thinks."""
    fields = get(profile.protocol).stateless_fields
    if not fields:
        return conversation
    if profile.reasoning.default == "off" and conversation.options.reasoning is None:
        return conversation
    extra = conversation.extra or {}
    own = {**copy.deepcopy(dict(fields)), **extra.get(profile.protocol, {})}
    return replace(conversation, extra={**extra, profile.protocol: own})

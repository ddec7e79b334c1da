"""Which of a provider's protocols a conversation is sent in, and what such a request needs.

Some providers serve several profiles under one address, and some of their models are served, or take tools, in one of
them only.
"""

from __future__ import annotations

import copy
from typing import Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import Conversation, ToolCall, ToolChange
from toolglot.conversation.report import Entry
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import get
from toolglot.translate.web_search import wants_search
from toolglot.upstream.upstream import Upstream

RESPONSES: Final = "openai_responses"
"""The protocol whose replies a provider stores, and the gateway for those that do not."""


def profile_for(
    upstream: Upstream, model: str, conversation: Conversation, *, overrides: Overrides | None = None
) -> Profile:
    """The profile that a conversation is rendered for: the provider's own, or the one that serves the model."""
    own = profiles.get(upstream.target, model, overrides=overrides)
    target = target_for(upstream, own, conversation)
    return own if target == upstream.target else profiles.get(target, model, overrides=overrides)


def target_for(upstream: Upstream, own: Profile, conversation: Conversation) -> str:
    """The name of that profile; `own` is the profile that the request would be for otherwise, for the model."""
    instead = own.request.target or _searching_target(upstream, own, conversation)
    if not instead and own.tools.protocol and _uses_tools(conversation):
        instead = own.tools.protocol
    return instead if instead == upstream.target or instead in upstream.also else own.name


def _uses_tools(conversation: Conversation) -> bool:
    """Whether a conversation declares tools, defines some on its way, or calls some."""
    if conversation.tools:
        return True
    return any(isinstance(block, ToolCall | ToolChange) for turn in conversation.turns for block in turn.blocks)


def report_target(source: Profile, own: Profile, target: str) -> Entry | None:
    """The report of a request that goes to another endpoint of the provider than that of the client's protocol."""
    if target == own.name or source.protocol != own.protocol:
        return None
    key, what = ("request.target", "is served") if own.request.target else ("tools.protocol", "takes tools")
    return Entry(
        action="converted",
        reason=f"{own.model[:80]} {what} in another protocol only ({own.origin(key).id}); sent as {target}",
        fault="projection",
        path="$.model",
        target=target,
        gravity="housekeeping",
    )


def _searching_target(upstream: Upstream, own: Profile, conversation: Conversation) -> str:
    """The profile that searches the web, if the client asks for that and the provider's first one cannot."""
    if own.tools.web_search or not any(tool.issuer is not None for tool in conversation.tools):
        return ""
    if not any(wants_search(conversation, tool.issuer.provider) for tool in conversation.tools if tool.issuer):
        return ""
    return next((name for name in upstream.also if profiles.get(name, own.model).tools.web_search), "")


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

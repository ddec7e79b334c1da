"""Reads a client's request, also one that is malformed or mixes the forms of several protocols."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.conversation.report import Entry
from toolglot.conversation.tool_memory import SplitBody
from toolglot.errors import InputError
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.protocols.base import codec
from toolglot.protocols.lenient.fixes import Fixes
from toolglot.protocols.lenient.malformed_bodies import fix_request
from toolglot.protocols.lenient.mixed_forms import has_mixed_forms, read_mixed
from toolglot.render.context import RenderContext

Fields = dict[str, Any]

MAX_FIXES: Final = 100
"""The maximal number of fixes of one body that are reported."""


def decode_request(fields: Fields, source: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """Decode a body; if it is malformed, as it is plainly meant."""
    fixes: Fixes = []
    try:
        conversation = codec(source.protocol).request.decode(fields)
        if has_mixed_forms(conversation, source.protocol):
            with contextlib.suppress(InputError):
                conversation, fixes = _decode_liberally(fields, source.protocol)
    except InputError as refused:
        try:
            conversation, fixes = _decode_liberally(fields, source.protocol)
        except InputError:
            raise refused from None
    if not fixes:
        return conversation, []
    ctx = RenderContext(source, policy, None)
    for path, reason in fixes[:MAX_FIXES]:
        ctx.report("converted", reason, "canonical", path=path)
    return conversation, ctx.entries


def _decode_liberally(fields: Fields, protocol: str) -> tuple[Conversation, Fixes]:
    """Decode a body that is malformed or mixes the forms of several protocols, and list what was fixed."""
    return read_mixed(fields, protocol, _fix_and_decode) or _fix_and_decode(protocol, fields)


def _fix_and_decode(protocol: str, body: Fields) -> tuple[Conversation, Fixes]:
    meant, fixes = fix_request(body, protocol)
    return codec(protocol).request.decode(meant), fixes


def decode_split_request(split: SplitBody, source: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """The same for a body whose tools are known, or will be the next time."""
    if split.tools is not None:
        try:
            conversation, fixes = decode_request(split.rest, source, policy)
        except InputError:
            return decode_request(split.fields, source, policy)
        if not fixes:
            return replace(conversation, tools=split.tools), fixes
    conversation, fixes = decode_request(split.fields, source, policy)
    if split.tools is None and conversation.tools and not fixes:
        conversation = replace(conversation, tools=split.remember(conversation.tools))
    return conversation, fixes


def modernise(
    requested: Conversation, source: Profile, target: Profile, policy: Policy
) -> tuple[Conversation, list[Entry]]:
    """A request without old forms of the client's protocol that the target does not accept, and what they became."""
    update = codec(source.protocol).leniency.modernise
    if update is None:
        return requested, []
    sent, fixes = update(requested, source, target)
    if not fixes:
        return requested, []
    ctx = RenderContext(source, policy, None)
    for reason in fixes:
        ctx.report("converted", reason, "canonical")
    return sent, ctx.entries

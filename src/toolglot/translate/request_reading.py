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
from toolglot.protocols.openai_chat.empty_messages import with_empty_texts
from toolglot.protocols.openai_chat.legacy_functions import with_text_arguments, with_tools_for_functions
from toolglot.protocols.openai_chat.tools import without_empty_tools
from toolglot.render.context import RenderContext

Fields = dict[str, Any]

_NO_CONTENT: Final = "null-content"
"""The end of the id of a fact: a message without content has at least an empty text."""
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
    mixed = read_mixed(fields, protocol, _fix_and_decode)
    if mixed is None:
        return _fix_and_decode(protocol, fields)
    conversation, fixes = mixed
    return conversation if protocol == "openai_chat" else with_tools_for_functions(conversation), fixes


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
    """A request of a Chat client without old forms that the target does not accept, and what they became."""
    fixes = []
    sent = requested
    is_native = source.name == target.name
    accepts = target.as_known() if is_native else target
    if not is_native or not accepts.turns.function_role:
        sent = with_tools_for_functions(requested)
        if sent is not requested:
            fixes.append("functions, their calls and their results were read as tools")
    if target.protocol == "openai_chat" and target.calls.arguments == "string":
        in_text = with_text_arguments(sent)
        if in_text is not sent:
            sent = in_text
            fixes.append("arguments that were not a string were written as one")
    if not is_native or any(fact.id.endswith(_NO_CONTENT) for fact in target.facts):
        filled = with_empty_texts(sent)
        if filled is not sent:
            sent = filled
            fixes.append("content that is missing, or has no parts, was read as empty")
    if not accepts.tools.allow_empty_list:
        without = without_empty_tools(sent)
        if without is not sent:
            sent = without
            fixes.append("an empty list of tools was left out")
    if not fixes:
        return requested, []
    ctx = RenderContext(source, policy, None)
    for reason in fixes:
        ctx.report("converted", reason, "canonical")
    return sent, ctx.entries

"""What a client's request says, however it is written: in order, damaged, or in the forms of several protocols."""

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
from toolglot.protocols.lenient.malformed_bodies import Told, mend
from toolglot.protocols.lenient.mixed_forms import has_mixed_forms, read_mixed
from toolglot.protocols.openai_chat.old_forms import with_text_arguments, with_tools_for_functions
from toolglot.protocols.openai_chat.silent import with_empty_texts
from toolglot.protocols.openai_chat.tools import without_empty_tools
from toolglot.render.context import RenderContext

Fields = dict[str, Any]

_NO_CONTENT: Final = "null-content"
"""The end of the id of a fact: a message that says nothing has at least an empty text."""
MOST_MENDED: Final = 100
"""How many places of one body are told that had to be mended to be read."""


def decoded(fields: Fields, source: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """What a body says. One that a strict reading refuses is read as it is plainly meant, if that is possible."""
    told: Told = []
    try:
        conversation = codec(source.protocol).request.decode(fields)
        if has_mixed_forms(conversation, source.protocol):
            with contextlib.suppress(InputError):
                conversation, told = _as_meant(fields, source.protocol)
    except InputError as refused:
        try:
            conversation, told = _as_meant(fields, source.protocol)
        except InputError:
            raise refused from None
    if not told:
        return conversation, []
    ctx = RenderContext(source, policy, None)
    for path, reason in told[:MOST_MENDED]:
        ctx.report("converted", reason, "canonical", path=path)
    return conversation, ctx.entries


def _as_meant(fields: Fields, protocol: str) -> tuple[Conversation, Told]:
    """What a body says that is damaged, or written in the forms of several protocols; and what was read as what."""
    mixed = read_mixed(fields, protocol, _mended)
    if mixed is None:
        return _mended(protocol, fields)
    conversation, told = mixed
    return conversation if protocol == "openai_chat" else with_tools_for_functions(conversation), told


def _mended(protocol: str, body: Fields) -> tuple[Conversation, Told]:
    meant, told = mend(body, protocol)
    return codec(protocol).request.decode(meant), told


def decoded_split(split: SplitBody, source: Profile, policy: Policy) -> tuple[Conversation, list[Entry]]:
    """The same for a body whose tools are known, or will be the next time."""
    if split.tools is not None:
        try:
            conversation, mended = decoded(split.rest, source, policy)
        except InputError:
            return decoded(split.fields, source, policy)
        if not mended:
            return replace(conversation, tools=split.tools), mended
    conversation, mended = decoded(split.fields, source, policy)
    if split.tools is None and conversation.tools and not mended:
        conversation = replace(conversation, tools=split.remember(conversation.tools))
    return conversation, mended


def in_new_forms(
    asked: Conversation, source: Profile, target: Profile, policy: Policy
) -> tuple[Conversation, list[Entry]]:
    """What a client of Chat asks, without forms that the target does not read, and what became of them."""
    told = []
    sent = asked
    is_home = source.name == target.name
    accepts = target.as_known() if is_home else target
    if not is_home or not accepts.turns.function_role:
        sent = with_tools_for_functions(asked)
        if sent is not asked:
            told.append("functions, their calls and their results were read as tools")
    if target.protocol == "openai_chat" and target.calls.arguments == "string":
        in_text = with_text_arguments(sent)
        if in_text is not sent:
            sent = in_text
            told.append("arguments that are no text were written as one")
    if not is_home or any(fact.id.endswith(_NO_CONTENT) for fact in target.facts):
        filled = with_empty_texts(sent)
        if filled is not sent:
            sent = filled
            told.append("content that is missing, or has no parts, was read as empty")
    if not accepts.tools.allow_empty_list:
        without = without_empty_tools(sent)
        if without is not sent:
            sent = without
            told.append("an empty list of tools was left out")
    if not told:
        return asked, []
    ctx = RenderContext(source, policy, None)
    for reason in told:
        ctx.report("converted", reason, "canonical")
    return sent, ctx.entries

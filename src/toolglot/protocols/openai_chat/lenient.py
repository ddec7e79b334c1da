"""Requests and replies that the codecs refuse although it is plain what they mean (`protocols/lenient`)."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Text, Turn
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.lenient.fixes import (
    Fixes,
    Leniency,
    ReplyCalls,
    fix_call,
    fix_content,
    fix_counts,
    fix_id,
    fix_list,
    fix_name,
    fix_reason,
    fix_result,
    fix_role,
    fix_text,
    listed_calls,
    objects_of,
    set_field,
)
from toolglot.protocols.openai_chat.form import MESSAGES, PROTOCOL, ChatMessage
from toolglot.protocols.openai_chat.legacy_functions import with_text_arguments, with_tools_for_functions
from toolglot.protocols.openai_chat.tools import without_empty_tools

_NO_CONTENT: Final = "null-content"
"""The end of the id of a fact: a message without content has at least an empty text."""


def _fix_request(body: Fields, fixes: Fixes) -> None:
    for path, message in objects_of(body.get("messages"), "$.messages"):
        if message.get("role") == "tool":
            fix_result(message, path, fixes)
            if message.get("tool_call_id") is not None:
                fix_id(message, "tool_call_id", path, fixes)
        else:
            _fix_message_content(message, path, fixes)
        for call_path, call in objects_of(message.get("tool_calls"), f"{path}.tool_calls"):
            fix_call(call, call_path, fixes)
            if call.get("id") is not None:
                fix_id(call, "id", call_path, fixes)
            function = call.get("function")
            if isinstance(function, dict):
                fix_name(function, f"{call_path}.function", fixes)
                if function.get("arguments") is not None and not isinstance(function["arguments"], dict):
                    fix_text(function, "arguments", f"{call_path}.function", fixes)
                if call.get("type") not in (None, "function"):
                    call["type"] = "function"
                    fixes.append((f"{call_path}.type", "a call of a function was read as one"))


def _fix_message_content(message: Fields, path: str, fixes: Fixes) -> None:
    """Content of a Chat message: a text, be it an empty one, unless an assistant says something beside it (C8)."""
    says_more = message.get("role") == "assistant" and any(message.get(key) for key in _SAID_BESIDE)
    if message.get("content") is not None or not says_more:
        fix_content(message, path, fixes)


_SAID_BESIDE: Final = frozenset(
    {"tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning", "reasoning_details"}
)
"""What an assistant may say beside the content of its message."""


def _fix_reply(body: Fields, fixes: Fixes) -> ReplyCalls:
    fix_counts(body, "usage", "$", fixes)
    for path, choice in objects_of(body.get("choices"), "$.choices"):
        fix_reason(choice, "finish_reason", path, fixes)
        message = choice.get("message")
        if not isinstance(message, dict):
            message = _message_meant(choice, path, fixes)
        if message is not None:
            fix_role(message, f"{path}.message", fixes)
            if isinstance(message.get("content"), dict):
                fix_list(message, "content", f"{path}.message", fixes)
            yield from listed_calls(message, f"{path}.message", fixes, needs_id=False)


def _message_meant(choice: Fields, path: str, fixes: Fixes) -> Fields | None:
    """The message of a choice that has the delta of a stream, or only a string, instead."""
    if isinstance(choice.get("delta"), dict):
        reason = "a delta instead of a message was read as the message"
        message: Fields = choice.pop("delta")
    elif isinstance(choice.get("text"), str):
        reason = "a text instead of a message was read as the message"
        message = {"role": "assistant", "content": choice.pop("text")}
    else:
        return None
    set_field(choice, "message", message, path, reason, fixes)
    return message


def _modernise(requested: Conversation, source: Profile, target: Profile) -> tuple[Conversation, list[str]]:
    """A request without old forms of Chat Completions that the target does not accept."""
    fixes: list[str] = []
    sent = requested
    is_native = source.name == target.name
    accepts = target.as_known() if is_native else target
    if not is_native or not accepts.turns.function_role:
        sent = with_tools_for_functions(requested)
        if sent is not requested:
            fixes.append("functions, their calls and their results were read as tools")
    if target.protocol == PROTOCOL and target.calls.arguments == "string":
        in_text = with_text_arguments(sent)
        if in_text is not sent:
            sent = in_text
            fixes.append("arguments that were not a string were written as one")
    if not is_native or any(fact.id.endswith(_NO_CONTENT) for fact in target.facts):
        filled = _with_empty_texts(sent)
        if filled is not sent:
            sent = filled
            fixes.append("content that is missing, or has no parts, was read as empty")
    if not accepts.tools.allow_empty_list:
        without = without_empty_tools(sent)
        if without is not sent:
            sent = without
            fixes.append("an empty list of tools was left out")
    return sent, fixes


# --- messages without content -----------------------------------------------------------------------

_OTHER_CONTENT: Final = ("audio", "reasoning_details")
"""Content of an assistant besides its blocks."""


def _lacks_content(turn: Turn) -> bool:
    """Whether a turn without blocks lacks required content. An empty list of parts and an empty assistant message are
    for the target to judge."""
    return turn.role != "assistant" and not _is_list(turn)


def _with_empty_texts(conversation: Conversation) -> Conversation:
    """The conversation with an empty text in each empty turn; the same object if there is none."""
    empty = [number for number, turn in enumerate(conversation.turns) if not turn.blocks and _is_empty(turn)]
    if not empty:
        return conversation
    turns = list(conversation.turns)
    for number in empty:
        turn = turns[number]
        form = replace(turn.form, content="text") if type(turn.form) is ChatMessage else MESSAGES["text"]
        turns[number] = replace(turn, blocks=(Text(""),), form=form)
    return replace(conversation, turns=tuple(turns))


def _is_empty(turn: Turn) -> bool:
    own = (turn.extra or {}).get(PROTOCOL, {})
    return _is_list(turn) or (turn.role == "assistant" and not any(own.get(key) for key in _OTHER_CONTENT))


def _is_list(turn: Turn) -> bool:
    return type(turn.form) is ChatMessage and turn.form.content == "parts"


LENIENCY: Final = Leniency(
    fix_request=_fix_request,
    fix_reply=_fix_reply,
    optional_reply_fields=(("id", "id"), ("created", "time"), ("model", "model")),
    lacks_content=_lacks_content,
    modernise=_modernise,
)

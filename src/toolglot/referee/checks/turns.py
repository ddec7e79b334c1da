"""Turns: who speaks when, and what a turn may hold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from toolglot.errors import quote
from toolglot.referee.checks.ids import compile_pattern
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, calls_of, messages_with_items, step
from toolglot.referee.view import OLD_FORMS, Message, PartView

_INSTRUCTING = ("system", "developer")
_MAX_DOCUMENT_NAME = 1000
"""Characters of a name that are checked; no legal one is as long."""


def _spoken_turns(case: RequestCase) -> list[Message]:
    return [message for message in case.view.messages if message.role not in _INSTRUCTING]


def first(case: RequestCase) -> Findings:
    spoken = _spoken_turns(case)
    if case.profile.turns.first == "user" and spoken and spoken[0].role != "user":
        yield RuleBreach(
            spoken[0].path, f"the first turn is the {spoken[0].role}'s", "begin with a user turn", spoken[0].role
        )


def _last_assistant(case: RequestCase) -> Message | None:
    spoken = _spoken_turns(case)
    return spoken[-1] if spoken and spoken[-1].role == "assistant" else None


def last(case: RequestCase) -> Findings:
    message = _last_assistant(case)
    if message is not None and case.profile.turns.last == "user_or_result" and calls_of(message):
        yield RuleBreach(message.path, "the request ends with calls", "end with their results")
    turns, messages = case.profile.turns, case.view.messages
    is_bound = turns.last == "user_or_result" and turns.system == "message" and turns.system_inside == "first_only"
    if is_bound and messages and not _spoken_turns(case):
        yield RuleBreach(messages[-1].path, f"the request ends with a {messages[-1].role} message", "add a user turn")


def prefill(case: RequestCase) -> Findings:
    message, turns = _last_assistant(case), case.profile.turns
    for other in case.view.messages[:-1] if turns.prefill == "flag" else ():
        if other.is_prefill:
            yield RuleBreach(
                other.path,
                "only the last turn may be marked as the start of the answer",
                "remove the mark",
                is_aside=True,
            )
    if message is None or turns.last == "any" or turns.prefill == "yes" or calls_of(message):
        return
    if case.has_fact("pause-turn") and any(item.kind == "server" for item in message.items):
        return  # a turn that was paused while a tool of the provider ran is sent again as it is
    if turns.prefill == "no" or not message.is_prefill:
        hint = "mark it as the start of the answer" if turns.prefill == "flag" else "end with a user turn or results"
        yield RuleBreach(message.path, "the request ends with an assistant turn", hint)


def alternate(case: RequestCase) -> Findings:
    spoken = _spoken_turns(case) if case.profile.turns.alternate else []
    for before, message in pairwise(spoken):
        if before.role == message.role and message.role in ("user", "assistant"):
            yield RuleBreach(message.path, f"two {message.role} turns in a row", "merge them", message.role)


def min_user(case: RequestCase) -> Findings:
    count, least = sum(message.role == "user" for message in case.view.messages), case.profile.turns.min_user
    if count < least:
        yield RuleBreach(case.view.messages_path, f"{count} user turns, at least {least} required", "add a user turn")


def required(case: RequestCase) -> Findings:
    """There is no input, and no stored turn replaces it. A missing list is a malformed request instead."""
    view = case.view
    is_missing = any(shape.path == view.messages_path for shape in view.shapes)
    if case.profile.turns.required and not view.messages and not view.is_continued and not is_missing:
        yield RuleBreach(view.messages_path, "there is no input", "add a message")


def max_count(case: RequestCase) -> Findings:
    count, limit = len(case.view.messages), case.profile.turns.max_count
    if limit is not None and count > limit:
        yield RuleBreach(case.view.messages_path, f"{count} messages, at most {limit} are accepted", "send fewer")


def system_message(case: RequestCase) -> Findings:
    if case.profile.turns.system == "message" and case.view.system is not None:
        yield RuleBreach(case.view.system.path, "the system prompt must be a message", "write it as a message")


def system_inside(case: RequestCase) -> Findings:
    rule, messages = case.profile.turns.system_inside, case.view.messages
    if rule == "anywhere":
        return
    is_late = False
    for index, message in enumerate(messages):
        if message.role not in _INSTRUCTING:
            is_late = True
        elif rule == "no":
            yield RuleBreach(message.path, "a system message is not accepted among the turns", "use the system field")
        elif rule == "first_only" and is_late:
            yield RuleBreach(message.path, "a system message is accepted at the beginning only", "move it there")
        elif rule == "before_assistant" and not is_late:
            yield RuleBreach(message.path, "a system message may not be the first message", "use the system field")
        elif rule == "before_assistant" and index + 1 < len(messages) and messages[index + 1].role != "assistant":
            yield RuleBreach(message.path, "a system message must precede an assistant turn, or be last", "move it")


def system_many(case: RequestCase) -> Findings:
    found = [message for message in case.view.messages if message.role in _INSTRUCTING]
    for message in found[1:] if not case.profile.turns.system_many else ():
        yield RuleBreach(message.path, "only one system message is accepted", "merge them")


def developer_role(case: RequestCase) -> Findings:
    for message in case.view.messages if not case.profile.turns.developer_role else ():
        if message.role == "developer":
            yield RuleBreach(step(message.path, "role"), "the role developer is not accepted", 'write "system"')


def function_role(case: RequestCase) -> Findings:
    for _, item in messages_with_items(case) if not case.profile.turns.function_role else ():
        if item.type in OLD_FORMS and item.kind == "other":
            message = "function calls and function messages are not accepted"
            yield RuleBreach(item.path, message, "write tool calls and tool messages", item.type)


def name_field(case: RequestCase) -> Findings:
    for message in case.view.messages if not case.profile.turns.name_field else ():
        if message.name is not None and message.role != "tool" and not case.ignores("turns.name_field"):
            yield RuleBreach(
                step(message.path, "name"), "the field name is not accepted", "leave it out", message.name[:80]
            )


def _texts(case: RequestCase) -> Iterator[PartView]:
    """Texts that are blocks. Other keys are about the empty text of a turn that only calls, and about an empty string
    that is all of a turn or of a result."""
    for message, item in messages_with_items(case):
        if item.kind == "text" and not message.is_empty_string:
            yield item
        elif item.kind == "result":
            yield from (part for part in item.content if part.kind == "text" and part.type)


def empty_text(case: RequestCase) -> Findings:
    for item in _texts(case) if not case.profile.turns.empty_text else ():
        if item.text == "":
            yield RuleBreach(item.path, "the text is empty", "leave it out")


def blank_text(case: RequestCase) -> Findings:
    for item in _texts(case) if not case.profile.turns.blank_text else ():
        if item.text and item.text.isspace():
            yield RuleBreach(item.path, "the text is only white space", "leave it out")


def _is_empty(message: Message) -> bool:
    """Whether a message has no content. A block of empty text is content."""
    if message.has_settings or any(item.kind != "text" or item.text for item in message.items):
        return False
    return message.is_empty_string or not any(item.kind == "text" for item in message.items)


def _started_answer(case: RequestCase) -> Message | None:
    """The last message, if it is the start of the answer to the one before."""
    messages = case.view.messages
    if len(messages) < 2 or messages[-2].role not in ("user", "tool") or messages[-1].role != "assistant":
        return None
    return messages[-1]


def empty_turn(case: RequestCase) -> Findings:
    started = _started_answer(case)
    for message in case.view.messages if not case.profile.turns.empty_turn else ():
        if message is not started and _is_empty(message):
            yield RuleBreach(message.path, "the message has no content", "leave it out", message.role)


def empty_prefill(case: RequestCase) -> Findings:
    started, turns = _started_answer(case), case.profile.turns
    if started is not None and not turns.empty_prefill and not turns.empty_turn and _is_empty(started):
        yield RuleBreach(started.path, "the start of the answer has no content", "leave it out", started.role)


def trailing_space(case: RequestCase) -> Findings:
    message, turns = _last_assistant(case), case.profile.turns
    if message is None or turns.trailing_space or turns.prefill == "no" or not message.items:
        return
    text = message.items[-1]
    if text.kind == "text" and text.text and text.text != text.text.rstrip():
        yield RuleBreach(text.path, "the start of the answer ends with white space", "remove it")


def _media(case: RequestCase, *roles: str) -> Iterator[PartView]:
    for message, item in messages_with_items(case):
        if item.kind == "media" and message.role in roles:
            yield item


def user_media(case: RequestCase) -> Findings:
    for item in _media(case, "user", "system", "developer"):
        if item.media not in case.profile.turns.media:
            yield RuleBreach(item.path, f"{item.media or 'this medium'} is not accepted", "leave it out", item.media)


def assistant_media(case: RequestCase) -> Findings:
    for item in _media(case, "assistant"):
        if item.media not in case.profile.turns.assistant_media:
            message = f"{item.media or 'this medium'} is not accepted in an assistant turn"
            yield RuleBreach(item.path, message, "send it in a user turn", item.media)


def media_sources(case: RequestCase) -> Findings:
    allowed = case.profile.turns.media_sources
    for item in _media(case, "user"):
        if item.source in ("data", "url") and item.source not in allowed:
            way = "by URL" if item.source == "url" else "as data"
            yield RuleBreach(item.path, f"media are not accepted {way}", f"send {' or '.join(allowed)}", item.source)


def _documents(case: RequestCase) -> Iterator[PartView]:
    for _, item in messages_with_items(case):
        yield from (part for part in (item, *item.content) if part.kind == "media" and part.media == "document")


def document_name(case: RequestCase) -> Findings:
    """A missing name is a malformed request instead."""
    pattern = case.profile.turns.document_name
    if pattern is None:
        return
    legal, seen = compile_pattern(pattern), set[str]()
    for item in _documents(case):
        name = item.name
        if name is None:
            continue
        if not legal.fullmatch(name[:_MAX_DOCUMENT_NAME]):
            yield RuleBreach(item.path, f"the name {quote(name)} does not match {pattern}", "rename it", name[:80])
        elif name in seen:
            message = f"two documents are called {quote(name)}"
            yield RuleBreach(item.path, message, "rename one of them", name[:80], is_aside=True)
        seen.add(name)


def document_part(case: RequestCase) -> Findings:
    """A document that the host takes in a part of another type. One by the id of a file is a `file` everywhere."""
    wanted = case.profile.turns.document_part
    for _, item in messages_with_items(case) if wanted is not None else ():
        if item.media == "document" and item.source in ("data", "url") and item.type != wanted:
            yield RuleBreach(item.path, f"{item.type} is not accepted", f"write {wanted}", item.type)


def extra_message_fields(case: RequestCase) -> Findings:
    """Shared with `request.unknown_fields`."""
    for message in case.view.messages:
        for name in message.extra_fields:
            yield RuleBreach(
                step(message.path, name), f"a message has no field {quote(name)}", "leave it out", name[:80]
            )
    for _, item in messages_with_items(case):
        for name in item.extra_fields:
            what = item.type or item.kind
            yield RuleBreach(step(item.path, name), f"{what} has no field {quote(name)}", "leave it out", name[:80])


def assistant_text_only(case: RequestCase) -> Findings:
    """By a fact of the profile: an assistant turn holds only text and thinking."""
    for item in _media(case, "assistant"):
        yield RuleBreach(
            item.path, "an assistant turn may hold only text and thinking", "send it in a user turn", item.media
        )


def no_text_at_all(case: RequestCase) -> Findings:
    """By a fact of the profile: a message without calls has at least an empty text."""
    for message in case.view.messages:
        if not message.items and not message.is_empty_string:
            yield RuleBreach(step(message.path, "content"), "the message has neither content nor calls", "leave it out")


FACTS: Checks = {
    "mistral-chunks": assistant_text_only,
    "null-content": no_text_at_all,
}
"""By the end of a fact's id; checked if the profile has such a fact."""

CHECKS: Checks = {
    "turns.document_name": document_name,
    "turns.document_part": document_part,
    "turns.first": first,
    "turns.last": last,
    "turns.prefill": prefill,
    "turns.alternate": alternate,
    "turns.min_user": min_user,
    "turns.required": required,
    "turns.max_count": max_count,
    "turns.system": system_message,
    "turns.system_inside": system_inside,
    "turns.system_many": system_many,
    "turns.developer_role": developer_role,
    "turns.function_role": function_role,
    "turns.name_field": name_field,
    "turns.empty_text": empty_text,
    "turns.blank_text": blank_text,
    "turns.empty_turn": empty_turn,
    "turns.empty_prefill": empty_prefill,
    "turns.trailing_space": trailing_space,
    "turns.media": user_media,
    "turns.media_sources": media_sources,
    "turns.assistant_media": assistant_media,
}

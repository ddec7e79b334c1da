"""Calls in the history: their arguments, their neighbours, and what precedes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, calls_of
from toolglot.referee.view import Message, PartView


def _turns_with_calls(case: RequestCase) -> Iterator[tuple[int, Message, list[PartView]]]:
    for index, message in enumerate(case.view.messages):
        calls = calls_of(message)
        if calls:
            yield index, message, calls


def _function_calls(case: RequestCase) -> Iterator[PartView]:
    return (call for _, _, calls in _turns_with_calls(case) for call in calls if not call.is_custom)


def arguments_form(case: RequestCase) -> Findings:
    form = case.profile.calls.arguments
    expected = str if form == "string" else dict
    for call in _function_calls(case):
        if not isinstance(call.arguments, expected):
            message = f"the arguments are not {'a string' if form == 'string' else 'an object'}"
            hint = 'write them as a JSON string, "{}" for none' if form == "string" else "write them as an object"
            yield RuleBreach(call.path, message, hint, call.id or "")


def is_json_object(arguments: Any) -> bool:
    """Whether arguments are an object, or its JSON."""
    if isinstance(arguments, str):
        try:
            return isinstance(msgspec.json.decode(arguments), dict)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return False
    return isinstance(arguments, dict)


def arguments_object(case: RequestCase) -> Findings:
    for call in _function_calls(case) if case.profile.calls.arguments_object_only else ():
        if not is_json_object(call.arguments):
            hint = 'send an object, "{}" for none' if case.profile.calls.arguments == "string" else "send an object"
            yield RuleBreach(call.path, "the arguments are not a JSON object", hint, call.id or "")


def parallel_calls(case: RequestCase) -> Findings:
    for _, _, calls in _turns_with_calls(case) if not case.profile.calls.parallel else ():
        if len(calls) > 1:
            yield RuleBreach(calls[1].path, "parallel calls are not accepted", "send one call per turn")


def text_beside_calls(case: RequestCase) -> Findings:
    for _, message, _ in _turns_with_calls(case) if not case.profile.calls.with_text else ():
        text = next((item for item in message.items if item.kind == "text" and item.text), None)
        if text is not None:
            yield RuleBreach(
                text.path, "text is not accepted next to calls", "send the text in a turn of its own, or leave it out"
            )


def text_after_calls(case: RequestCase) -> Findings:
    """Consecutive assistant turns count as one."""
    called: PartView | None = None
    for message in case.view.messages if not case.profile.calls.text_after else ():
        called = called if message.role == "assistant" else None
        for item in message.items if message.role == "assistant" else ():
            if item.kind == "call":
                called = item
            elif item.kind == "text" and item.text and called is not None:
                yield RuleBreach(
                    item.path, "text is not accepted after a call", "put the text before the calls", called.id or ""
                )
                break


def null_content(case: RequestCase) -> Findings:
    """Only the demand for an empty string can be broken: targets that accept null accept a string too."""
    for _, message, _ in _turns_with_calls(case) if case.profile.calls.empty_content == "empty" else ():
        if not message.has_content:
            yield RuleBreach(message.path, "the content of a turn that only calls is null", 'write "content": ""')


def call_after(case: RequestCase) -> Findings:
    messages = case.view.messages
    for index, message, _ in _turns_with_calls(case) if case.profile.calls.after == "user_or_result" else ():
        if index == 0 or messages[index - 1].role not in ("user", "tool"):
            yield RuleBreach(message.path, "calls must follow a user turn or a result", "move the call")


CHECKS: Checks = {
    "calls.arguments": arguments_form,
    "calls.arguments_object_only": arguments_object,
    "calls.parallel": parallel_calls,
    "calls.with_text": text_beside_calls,
    "calls.text_after": text_after_calls,
    "calls.empty_content": null_content,
    "calls.after": call_after,
}

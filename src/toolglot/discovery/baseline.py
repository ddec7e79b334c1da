"""How a request with tools, and one with calls in its history, must be written to be accepted at all.

Everything else is a change of these two, so they come first. The forms are tried from the most usual to the rarest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from toolglot.discovery.bodies import Body, RequestStyle, calls, result, says, user
from toolglot.discovery.heard import ParsedReply
from toolglot.discovery.line import Question
from toolglot.discovery.probe import Probe, ProbeCase, Steps, finding, is_accepted

_CHAT_FORMS: Final = (
    {"nothing": "empty"},
    {"nothing": "null"},
    {"nothing": "empty", "result_name": True},
    {"nothing": "empty", "thinking": "assistant"},
    {"nothing": "null", "thinking": "assistant"},
    {"nothing": "empty", "thinking": "assistant", "result_name": True},
    {"nothing": "null", "result_name": True},
    {"nothing": "empty", "ids": "ordinal"},
    {"nothing": "empty", "ids": "ordinal", "thinking": "assistant"},
    {"nothing": "omit"},
)
"""Forms of a history in Chat Completions."""


def forms(style: RequestStyle) -> Iterator[RequestStyle]:
    """Ways to write a history."""
    if style.is_chat:
        for form in _CHAT_FORMS:
            yield msgspec.structs.replace(style, **form)
    else:
        yield style
        if style.has("call_signatures"):
            yield msgspec.structs.replace(style, thinking="calls")


def _dialogue(case: ProbeCase) -> Steps:
    body = case.style.body(user("Hello"), says("Hello."), user("How are you?"), tools=None)
    heard = yield Question(body=body, about="a conversation without tools")
    if is_accepted(heard):
        case.found["dialogue"] = True
        return [finding("endpoint.dialogue", "", True, heard)]
    quirk = "a conversation with an answer of the assistant is refused"
    return [finding("endpoint.dialogue", "", False, heard, quirk=quirk)]


def history(style: RequestStyle) -> Body:
    return style.body(user(), calls(), result())


def _tools(case: ProbeCase) -> Steps:
    heard = yield Question(body=case.style.body(user()), about="a request with a tool")
    shown = [heard]
    if not is_accepted(heard) and case.style.has("strict_by_default"):
        style = msgspec.structs.replace(case.style, strict=False)
        heard = yield Question(body=style.body(user()), about="a request with a tool that says nothing of strict")
        shown.append(heard)
        case.style = style if is_accepted(heard) else case.style
    accepted = is_accepted(heard)
    case.found["tools"] = accepted
    quirk = "" if accepted else "requests with tools are refused"
    return [finding("endpoint.tools", "", accepted, *shown, quirk=quirk)]


def _history(case: ProbeCase) -> Steps:
    shown: list[ParsedReply] = []
    for style in forms(case.style):
        heard = yield Question(body=history(style), about="a history with a call and its result")
        shown.append(heard)
        if is_accepted(heard):
            case.style = style
            case.found["history"] = True
            return [finding("endpoint.history", "", True, *shown)]
    case.found["history"] = False
    quirk = "a history with calls is refused in every form that was tried"
    return [finding("endpoint.history", "", False, *shown, quirk=quirk)]


def _error(case: ProbeCase) -> Steps:
    heard = yield Question(body={"model": case.style.model, "toolglot": 1}, about="a request that is wrong on purpose")
    shape = shape_of(heard)
    quirk = "" if shape not in ("text", "none") else "errors are not JSON" if shape == "text" else ""
    if heard.accepted:
        quirk = "a request without messages is answered"
    status = f"status {heard.status}"
    return [
        finding(
            "endpoint.errors", "", shape, heard, quirk=quirk, note=f"{status}: {heard.words}" if heard.words else status
        )
    ]


def shape_of(heard: ParsedReply) -> str:
    """Whose errors an error looks like."""
    value = heard.value
    if heard.accepted or heard.status < 400:
        return "none"
    if not isinstance(value, dict):
        return "text" if heard.text else "none"
    inner = value.get("error")
    if value.get("type") == "error" and isinstance(inner, dict):
        return "anthropic"
    if isinstance(inner, dict):
        return "google" if "status" in inner else "openai"
    if isinstance(inner, str):
        return "plain error field"
    return "fastapi" if "detail" in value else "message" if "message" in value else "other"


def _control(case: ProbeCase) -> Steps:
    """What was accepted at first is asked once more: an endpoint that has changed its mind proves nothing."""
    body = history(case.style) if case.found.get("history") else case.style.body(user("Hello"), tools=None)
    heard = yield Question(body=body, about="what was accepted at first")
    if is_accepted(heard):
        return [finding("endpoint.control", "", True, heard)]
    quirk = "what was accepted at first is refused at the end: nothing that was refused in between is sure"
    return [finding("endpoint.control", "", False, heard, quirk=quirk)]


CONTROL: Final = Probe(
    name="endpoint.control",
    group="endpoint",
    question="whether what was accepted at first still is",
    steps=_control,
)
PROBES: Final = (
    Probe(
        name="endpoint.errors",
        group="endpoint",
        question="what its errors look like",
        steps=_error,
    ),
    Probe(
        name="endpoint.dialogue",
        group="endpoint",
        question="how a conversation is written",
        steps=_dialogue,
        most=2,
    ),
    Probe(name="endpoint.tools", group="endpoint", question="whether a request may have tools", steps=_tools, most=2),
    Probe(
        name="endpoint.history",
        group="endpoint",
        question="how a history with calls is written",
        steps=_history,
        most=len(_CHAT_FORMS),
        needs=("tools",),
    ),
)

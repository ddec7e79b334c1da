"""How a request with tools, and one with calls in its history, must be written to be accepted at all.

All other probes change one of these two, so they come first. Common forms are tried before rare ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from toolglot.discovery.bodies import Body, RequestStyle, assistant, calls, result, user
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import Probe, ProbeCase, Steps, finding, is_accepted

_CHAT_FORMS: Final = (
    {"empty_content": "empty"},
    {"empty_content": "null"},
    {"empty_content": "empty", "result_name": True},
    {"empty_content": "empty", "thinking": "assistant"},
    {"empty_content": "null", "thinking": "assistant"},
    {"empty_content": "empty", "thinking": "assistant", "result_name": True},
    {"empty_content": "null", "result_name": True},
    {"empty_content": "empty", "ids": "ordinal"},
    {"empty_content": "empty", "ids": "ordinal", "thinking": "assistant"},
    {"empty_content": "omit"},
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
    body = case.style.body(user("Hello"), assistant("Hello."), user("How are you?"), tools=None)
    response = yield ProbeRequest(body=body, about="a conversation without tools")
    if is_accepted(response):
        case.found["dialogue"] = True
        return [finding("endpoint.dialogue", "", True, response)]
    quirk = "a conversation with an assistant turn is refused"
    return [finding("endpoint.dialogue", "", False, response, quirk=quirk)]


def history(style: RequestStyle) -> Body:
    return style.body(user(), calls(), result())


def _tools(case: ProbeCase) -> Steps:
    response = yield ProbeRequest(body=case.style.body(user()), about="a request with a tool")
    shown = [response]
    if not is_accepted(response) and case.style.has("strict_by_default"):
        style = msgspec.structs.replace(case.style, strict=False)
        response = yield ProbeRequest(body=style.body(user()), about="a request with a tool without the field strict")
        shown.append(response)
        case.style = style if is_accepted(response) else case.style
    accepted = is_accepted(response)
    case.found["tools"] = accepted
    quirk = "" if accepted else "requests with tools are refused"
    return [finding("endpoint.tools", "", accepted, *shown, quirk=quirk)]


def _history(case: ProbeCase) -> Steps:
    shown: list[ParsedReply] = []
    for style in forms(case.style):
        response = yield ProbeRequest(body=history(style), about="a history with a call and its result")
        shown.append(response)
        if is_accepted(response):
            case.style = style
            case.found["history"] = True
            return [finding("endpoint.history", "", True, *shown)]
    case.found["history"] = False
    quirk = "a history with calls is refused in every form that was tried"
    return [finding("endpoint.history", "", False, *shown, quirk=quirk)]


def _error(case: ProbeCase) -> Steps:
    response = yield ProbeRequest(
        body={"model": case.style.model, "toolglot": 1}, about="a request that is wrong on purpose"
    )
    shape = shape_of(response)
    quirk = "" if shape not in ("text", "none") else "errors are not JSON" if shape == "text" else ""
    if response.accepted:
        quirk = "a request without messages gets a reply"
    status = f"status {response.status}"
    return [
        finding(
            "endpoint.errors",
            "",
            shape,
            response,
            quirk=quirk,
            note=f"{status}: {response.words}" if response.words else status,
        )
    ]


def shape_of(response: ParsedReply) -> str:
    """Which provider's errors an error looks like."""
    value = response.value
    if response.accepted or response.status < 400:
        return "none"
    if not isinstance(value, dict):
        return "text" if response.text else "none"
    inner = value.get("error")
    if value.get("type") == "error" and isinstance(inner, dict):
        return "anthropic"
    if isinstance(inner, dict):
        return "google" if "status" in inner else "openai"
    if isinstance(inner, str):
        return "plain error field"
    return "fastapi" if "detail" in value else "message" if "message" in value else "other"


def _control(case: ProbeCase) -> Steps:
    """Send what was accepted at first once more: if it is refused now, other refusals prove nothing."""
    body = history(case.style) if case.found.get("history") else case.style.body(user("Hello"), tools=None)
    response = yield ProbeRequest(body=body, about="what was accepted at first")
    if is_accepted(response):
        return [finding("endpoint.control", "", True, response)]
    quirk = "what was accepted at first is refused at the end: no refusal in between is certain"
    return [finding("endpoint.control", "", False, response, quirk=quirk)]


CONTROL: Final = Probe(
    name="endpoint.control",
    question="whether what was accepted at first still is",
    steps=_control,
)
PROBES: Final = (
    Probe(
        name="endpoint.errors",
        question="what its errors look like",
        steps=_error,
    ),
    Probe(
        name="endpoint.dialogue",
        question="how a conversation is written",
        steps=_dialogue,
        max_requests=2,
    ),
    Probe(
        name="endpoint.tools",
        question="whether a request may have tools",
        steps=_tools,
        max_requests=2,
    ),
    Probe(
        name="endpoint.history",
        question="how a history with calls is written",
        steps=_history,
        max_requests=len(_CHAT_FORMS),
        needs=("tools",),
    ),
)

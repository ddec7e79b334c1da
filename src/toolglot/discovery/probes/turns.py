"""Probes of turns: their order, and what a turn can have."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Text, Turn
from toolglot.discovery.bodies import (
    IMAGE,
    Body,
    RequestStyle,
    assistant,
    messages_of,
    raw_message,
    user,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.probe import (
    Probe,
    ProbeCase,
    Steps,
    finding,
    is_accepted,
    text_of,
    unless_ignored,
    yes_or_no,
)


def _ending(case: ProbeCase) -> Steps:
    """Whether a request may end with an assistant turn, and whether that is then continued."""
    start = "The capital of Italy is the city of Ro"
    body = case.style.body(user("What is the capital of Italy?"), assistant(start), tools=None)
    response = yield ProbeRequest(body=body, about="a request that ends with the start of the reply")
    if is_accepted(response):
        goes_on = text_of(response).lstrip().lower().startswith("me")
        found = [
            finding("turns.prefill", "turns.last", "any", response),
            finding("turns.prefill", "turns.prefill", "yes" if goes_on else "no", response, settles=goes_on),
        ]
        return found if not goes_on else found[1:]
    shown = [response]
    value = "no"
    for about, change in _FLAGS.items() if case.style.has("prefill_flags") else ():
        flagged = case.style.body(user("What is the capital of Italy?"), assistant(start), tools=None)
        change(flagged)
        response = yield ProbeRequest(body=flagged, about=f"the start of the reply, marked with {about}")
        shown.append(response)
        if is_accepted(response):
            value = "flag"
            break
    return [
        finding("turns.prefill", "turns.last", "user_or_result", *shown),
        finding("turns.prefill", "turns.prefill", value, *shown),
    ]


def _mark(name: str) -> Any:
    return lambda body: messages_of(body)[-1].update({name: True})


_FLAGS: Final = {"prefix": _mark("prefix"), "partial": _mark("partial")}


def _system_inside(case: ProbeCase) -> Steps:
    def request_for(about: str, *messages: Body | Turn) -> ProbeRequest:
        body = case.style.body(user("Hello"), assistant("Hello."), user("How are you?"), tools=None)
        turns = messages_of(body)
        for index, message in zip((2, 1, 0), messages, strict=False):
            if isinstance(message, dict):
                turns.insert(index, message)
        return ProbeRequest(body=body, about=about)

    note = raw_message(case.style, "system", "Be brief.")
    none = Turn("user")
    before_user = yield request_for("a system message before a user turn", note)
    if is_accepted(before_user):
        return [finding("turns.system_inside", "turns.system_inside", "anywhere", before_user)]
    before_answer = yield request_for("a system message before an assistant turn", none, note)
    if is_accepted(before_answer):
        found = finding("turns.system_inside", "turns.system_inside", "before_assistant", before_user, before_answer)
        return [found]
    shown = [before_user, before_answer]
    value = "first_only"
    if not case.style.has("result_messages"):
        first = yield request_for("a system message at the beginning", none, none, note)
        shown.append(first)
        value = "first_only" if is_accepted(first) else "no"
    quirk = "no system message among the turns" if value == "no" else "a system message can only be first"
    return [finding("turns.system_inside", "turns.system_inside", value, *shown, quirk=quirk)]


def _if_never_first(case: ProbeCase) -> str:
    is_late = case.found.get("turns.system_inside") in ("before_assistant", "no")
    return "a system message cannot be before a user turn" if is_late else ""


def _system_twice(style: RequestStyle) -> Body:
    body = style.body(user("Hello"), tools=None)
    messages_of(body)[0:0] = [raw_message(style, "system", text) for text in ("Be brief.", "Be polite.")]
    return body


def _developer(style: RequestStyle) -> Body:
    body = style.body(user("Hello"), tools=None)
    messages_of(body).insert(0, raw_message(style, "developer", "Be brief."))
    return body


def _speaker_name(style: RequestStyle) -> Body:
    body = style.body(user("Hello"), tools=None)
    messages_of(body)[-1]["name"] = "anna"
    return body


def _with_block(text: str) -> Any:
    return lambda style: style.body(Turn("user", (Text(text), Text("Hello"))), tools=None)


def _silent_turn(style: RequestStyle) -> Body:
    body = style.body(user("Hello"), assistant("?"), user("How are you?"), tools=None)
    turn = messages_of(body)[1]
    turn["parts" if "parts" in turn else "content"] = "" if style.has("system_messages") else []
    return body


def _image_turn(style: RequestStyle) -> Body:
    return style.body(Turn("user", (Text("What is this?"), IMAGE)), tools=None)


def _user_image(case: ProbeCase) -> Steps:
    response = yield ProbeRequest(body=_image_turn(case.style), about="an image in a user turn")
    value = ("image",) if is_accepted(response) else ()
    return [finding("turns.image", "turns.media", value, response, quirk="" if value else "no images from the user")]


PROBES: Final = (
    yes_or_no(
        "turns.alternate",
        "turns.alternate",
        "two user turns in a row",
        lambda style: style.body(user("Hello"), user("How are you?"), tools=None),
        yes=False,
        no=True,
        quirk="user and assistant must alternate",
    ),
    yes_or_no(
        "turns.first",
        "turns.first",
        "a conversation that the assistant begins",
        lambda style: style.body(assistant("Hello."), user("How are you?"), tools=None),
        needs=("dialogue",),
        yes="any",
        no="user",
    ),
    Probe(
        name="turns.prefill",
        question="whether a request may end with an assistant turn, and how",
        steps=_ending,
        keys=("turns.last", "turns.prefill"),
        needs=("dialogue",),
        max_requests=1 + len(_FLAGS),
    ),
    Probe(
        name="turns.system_inside",
        question="where a system message can be",
        steps=_system_inside,
        keys=("turns.system_inside",),
        needs=("dialogue",),
        max_requests=3,
    ),
    yes_or_no(
        "turns.system_many",
        "turns.system_many",
        "two system messages",
        _system_twice,
        why_not=_if_never_first,
        feature="system_messages",
    ),
    yes_or_no(
        "turns.developer",
        "turns.developer_role",
        "a developer message",
        _developer,
        why_not=_if_never_first,
        feature="developer_role",
    ),
    yes_or_no(
        "turns.name",
        "turns.name_field",
        "a user message with a name",
        _speaker_name,
        feature="named_speakers",
        why_not=unless_ignored,
    ),
    yes_or_no(
        "turns.empty_text",
        "turns.empty_text",
        "an empty text with another",
        _with_block(""),
        feature="text_parts",
    ),
    yes_or_no(
        "turns.blank_text",
        "turns.blank_text",
        "a text of white space with another",
        _with_block(" "),
        feature="text_parts",
    ),
    yes_or_no(
        "turns.empty_turn",
        "turns.empty_turn",
        "an assistant turn without content",
        _silent_turn,
        needs=("dialogue",),
        why_not=lambda case: "every assistant turn has thinking" if case.style.thinking == "assistant" else "",
        feature="empty_turns",
    ),
    Probe(
        name="turns.image",
        question="an image in a user turn",
        steps=_user_image,
        keys=("turns.media",),
    ),
)

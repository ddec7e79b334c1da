"""Probes of calls and results in the history: their content, their order, and what a turn can have besides."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolglot.conversation import Text, ToolResult, Turn
from toolglot.discovery.bodies import (
    ID,
    ID_2,
    IMAGE,
    PIXEL,
    TOOL,
    Body,
    RequestStyle,
    assistant,
    call,
    calls,
    messages_of,
    result,
    results,
    user,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import (
    Probe,
    ProbeCase,
    Steps,
    finding,
    is_accepted,
    unless_ignored,
    yes_or_no,
)
from toolglot.jsontext import compact

_HISTORY: Final = ("history",)
_MERGED: Final = "two turns of one role in a row are refused, which hides it"


# --- calls ------------------------------------------------------------------------------------------


def _odd_arguments(style: RequestStyle) -> Body:
    body = style.body(user(), calls(), result())
    _set_arguments(messages_of(body), '["Bonn"]' if style.has("arguments_as_text") else ["Bonn"])
    return body


def _set_arguments(value: Any, arguments: Any) -> None:
    """Replace the arguments of every call."""
    for item in value if isinstance(value, list) else value.values():
        if isinstance(item, dict):
            for field in ("arguments", "input", "args"):
                if field in item and ("name" in item):
                    item[field] = arguments
        if isinstance(item, dict | list):
            _set_arguments(item, arguments)


def _content(case: ProbeCase) -> Steps:
    """What the content of a turn with only calls can be."""
    shown: list[ParsedReply] = []
    accepted: dict[str, bool] = {case.style.empty_content: True}
    for empty_content in ("null", "empty"):
        if empty_content in accepted:
            continue
        style = msgspec.structs.replace(case.style, empty_content=empty_content)
        body = style.body(user(), calls(), result())
        response = yield ProbeRequest(body=body, about=f"a turn with only calls, its content {empty_content}")
        accepted[empty_content] = is_accepted(response)
        shown.append(response)
    value = next((empty_content for empty_content in ("null", "empty") if accepted.get(empty_content)), "omit")
    quirk = 'a turn with only calls needs content ""' if value == "empty" else ""
    return [finding("calls.content", "calls.empty_content", value, *shown, quirk=quirk)]


def _text_and_call(style: RequestStyle) -> Body:
    return style.body(user(), Turn("assistant", (Text("I look it up."), call())), result())


def _parallel_calls(style: RequestStyle) -> Body:
    return style.body(user(), calls(ID, ID_2), results(ID, ID_2))


def _call_after_text(style: RequestStyle) -> Body:
    return style.body(user(), assistant("One moment."), calls(), result())


# --- results ----------------------------------------------------------------------------------------


def _unanswered_call(style: RequestStyle) -> Body:
    return style.body(user(), calls(), user("Well?"))


def _orphan_result(style: RequestStyle) -> Body:
    return style.body(user("Hello"), assistant("Hello."), result())


def _two_results(style: RequestStyle) -> Body:
    return style.body(user(), calls(), results(ID, ID))


def _late_result(style: RequestStyle) -> Body:
    return style.body(user(), calls(), user("Well?"), assistant("One moment."), result())


def _split_results(style: RequestStyle) -> Body:
    return style.body(user(), calls(ID, ID_2), result(ID), result(ID_2))


def _after_text(style: RequestStyle) -> Body:
    return style.body(user(), calls(), Turn("user", (Text("Here it is:"), ToolResult(ID, "7 degrees", name=TOOL))))


def _before_text(style: RequestStyle) -> Body:
    return style.body(user(), calls(), Turn("user", (ToolResult(ID, "7 degrees", name=TOOL), Text("Go on."))))


def _reversed_results(style: RequestStyle) -> Body:
    return style.body(user(), calls(ID, ID_2), results(ID_2, ID))


def _with_image(style: RequestStyle) -> Body:
    content = (Text("The map:"), IMAGE)
    return style.body(user(), calls(), Turn("tool", (ToolResult(ID, content, name=TOOL),)))


def _then_user(style: RequestStyle) -> Body:
    return style.body(user(), calls(), result(), user("And tomorrow?"))


def _result_name(case: ProbeCase) -> Steps:
    style = msgspec.structs.replace(case.style, result_name=not case.style.result_name)
    response = yield ProbeRequest(
        body=style.body(user(), calls(), result()),
        about="a result that names its tool" if style.result_name else "a result that does not name its tool",
    )
    if style.result_name:
        value = "optional" if is_accepted(response) else "refused"
    else:
        value = "optional" if is_accepted(response) else "required"
    quirk = "a result must name its tool" if value == "required" else ""
    return [finding("results.name", "results.name", value, response, quirk=quirk)]


def _name_ignored(case: ProbeCase) -> str:
    return "" if case.style.result_name else unless_ignored(case)


def _result_image(case: ProbeCase) -> Steps:
    response = yield ProbeRequest(body=_with_image(case.style), about="an image in a result")
    value = ("image",) if is_accepted(response) else ()
    quirk = "" if value else "no images in results"
    return [finding("results.image", "results.media", value, response, quirk=quirk)]


def _says_image(case: ProbeCase) -> str:
    return "" if PIXEL in compact(_with_image(case.style)) else "the protocol cannot express it"


def _if_alternating(case: ProbeCase) -> str:
    return _MERGED if case.found.get("turns.alternate") else ""


def _if_apart(case: ProbeCase) -> str:
    """In Responses, a call right after text is in the same turn."""
    is_apart = case.found.get("calls.with_text") is False
    return _if_alternating(case) or ("a turn cannot have text and calls" if is_apart else "")


def _if_serial(case: ProbeCase) -> str:
    return "a turn can have one call only" if case.found.get("calls.parallel") is False else ""


def _if_split(case: ProbeCase) -> str:
    return _if_serial(case) or _if_alternating(case)


def _if_alone(case: ProbeCase) -> str:
    return "a turn with results can have nothing else" if case.found.get("results.alone") else ""


PROBES: Final = (
    Probe(
        name="calls.content",
        question="the content of a turn with only calls",
        steps=_content,
        keys=("calls.empty_content",),
        max_requests=2,
        needs=_HISTORY,
        feature="null_content",
    ),
    yes_or_no(
        "calls.arguments",
        "calls.arguments_object_only",
        "arguments that are not an object",
        _odd_arguments,
        yes=False,
        no=True,
        needs=_HISTORY,
        only_refusal_counts=True,
    ),
    yes_or_no(
        "calls.parallel",
        "calls.parallel",
        "two calls in a turn",
        _parallel_calls,
        needs=_HISTORY,
        quirk="one call in a turn",
    ),
    yes_or_no(
        "calls.with_text",
        "calls.with_text",
        "text with a call",
        _text_and_call,
        needs=_HISTORY,
        feature="text_with_calls",
        quirk="no text with calls",
    ),
    yes_or_no(
        "calls.after",
        "calls.after",
        "a turn with calls after one without",
        _call_after_text,
        yes="any",
        no="user_or_result",
        needs=(*_HISTORY, "dialogue"),
        why_not=_if_apart,
    ),
    yes_or_no(
        "results.complete",
        "results.complete",
        "a call without a result",
        _unanswered_call,
        yes=False,
        no=True,
        needs=_HISTORY,
        only_refusal_counts=True,
    ),
    yes_or_no(
        "results.paired",
        "results.paired",
        "a result without a call",
        _orphan_result,
        yes=False,
        no=True,
        needs=(*_HISTORY, "dialogue"),
        only_refusal_counts=True,
    ),
    yes_or_no(
        "results.single",
        "results.single",
        "two results of one call",
        _two_results,
        yes=False,
        no=True,
        needs=_HISTORY,
        only_refusal_counts=True,
    ),
    yes_or_no(
        "results.adjacent",
        "results.adjacent",
        "a result that comes later",
        _late_result,
        yes=False,
        no=True,
        needs=(*_HISTORY, "dialogue"),
    ),
    yes_or_no(
        "results.together",
        "results.together",
        "the results of one turn in two",
        _split_results,
        yes=False,
        no=True,
        needs=_HISTORY,
        lacks="result_messages",
        why_not=_if_split,
    ),
    yes_or_no(
        "results.alone",
        "results.alone",
        "text after results in one turn",
        _before_text,
        yes=False,
        no=True,
        needs=_HISTORY,
        lacks="result_messages",
    ),
    yes_or_no(
        "results.first",
        "results.first",
        "text before results in one turn",
        _after_text,
        yes=False,
        no=True,
        needs=_HISTORY,
        lacks="result_messages",
        why_not=_if_alone,
    ),
    yes_or_no(
        "results.order",
        "results.call_order",
        "results in another order than the calls",
        _reversed_results,
        yes=False,
        no=True,
        needs=_HISTORY,
        why_not=_if_serial,
    ),
    Probe(
        name="results.name",
        question="the tool's name on a result",
        steps=_result_name,
        keys=("results.name",),
        needs=_HISTORY,
        feature="named_results",
        why_not=_name_ignored,
    ),
    Probe(
        name="results.image",
        question="an image in a result",
        steps=_result_image,
        keys=("results.media",),
        needs=_HISTORY,
        why_not=_says_image,
    ),
    yes_or_no(
        "results.empty",
        "results.empty",
        "an empty result",
        lambda style: style.body(user(), calls(), result(text="")),
        needs=_HISTORY,
        feature="empty_results",
    ),
    yes_or_no(
        "results.error",
        "results.error_flag",
        "a result that is marked as failed",
        lambda style: style.body(user(), calls(), result(text="no such city", is_error=True)),
        needs=_HISTORY,
        feature="result_error_flag",
        why_not=unless_ignored,
    ),
    yes_or_no(
        "results.empty_error",
        "results.empty_error",
        "a failed result without content",
        lambda style: style.body(user(), calls(), result(text="", is_error=True)),
        needs=_HISTORY,
        feature="result_error_flag",
    ),
    yes_or_no(
        "results.user_after",
        "results.user_after",
        "a user turn after results",
        _then_user,
        needs=_HISTORY,
        feature="result_messages",
        quirk="no user turn directly after results",
    ),
)

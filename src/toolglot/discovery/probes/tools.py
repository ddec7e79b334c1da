"""Probes of tools: how they are described, and how one is chosen."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Thinking, ToolChoice, ToolSpec
from toolglot.discovery.bodies import (
    QUESTION,
    SCHEMA,
    TWO_CITIES,
    WEATHER,
    Body,
    RequestStyle,
    calls,
    first_tool,
    result,
    tool,
    user,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.findings import Finding
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import (
    Probe,
    ProbeCase,
    Steps,
    find_maximum,
    finding,
    is_accepted,
    unless_ignored,
    yes_or_no,
)
from toolglot.protocols.base import get

COUNT_LADDER: Final = (16, 32, 64, 128, 256)
_SCHEMA_FIELDS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_STRICT: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def _count(case: ProbeCase) -> Steps:
    def request_for(count: int) -> ProbeRequest:
        many = tuple(
            ToolSpec(f"weather_{index}", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
            for index in range(count)
        )
        return ProbeRequest(body=case.style.body(user(), tools=many), about=f"{count} tools")

    maximum, shown = yield from find_maximum(request_for, 1, COUNT_LADDER)
    if maximum == COUNT_LADDER[-1]:
        return [finding("tools.count", "tools.max_count", None, *shown, note=f"{maximum} are accepted")]
    return [finding("tools.count", "tools.max_count", maximum, *shown)]


def _empty_list(style: RequestStyle) -> Body:
    body = style.body(user())
    if "tools" not in body:
        body["toolConfig"] = {"tools": []}
    else:
        body["tools"] = []
        body.pop("toolConfig", None)
    return body


def _without_schema(style: RequestStyle) -> Body:
    body = style.body(user())
    for field in _SCHEMA_FIELDS:
        first_tool(body).pop(field, None)
    return body


def _without_description(style: RequestStyle) -> Body:
    body = style.body(user())
    first_tool(body).pop("description", None)
    return body


def _empty_description(style: RequestStyle) -> Body:
    body = style.body(user())
    first_tool(body)["description"] = ""
    return body


def _strict(style: RequestStyle) -> Body:
    body = style.body(user(), tools=(tool(schema=_STRICT),))
    first_tool(body)["strict"] = True
    return body


def _custom(style: RequestStyle) -> Body:
    body = style.body(user())
    inner = {"name": "note", "description": "Takes a note."}
    body["tools"].append({"type": "custom", "custom": inner} if style.is_chat else {"type": "custom", **inner})
    return body


def _namespace(style: RequestStyle) -> Body:
    body = style.body(user())
    body["tools"] = [{"type": "namespace", "name": "sky", "description": "The sky.", "tools": body["tools"]}]
    return body


# --- the choice -------------------------------------------------------------------------------------

CHOICE_TOKENS: Final = 96
CLOCK: Final = ToolSpec("get_time", "The time in a city.", SCHEMA)
MODES: Final = ("auto", "none", "required", "named", "allowed")


def _choice_body(style: RequestStyle, mode: Any, named: str) -> Body:
    """A request that shows whether a choice is obeyed: nothing else in it leads to the same."""
    question = QUESTION if mode == "none" else "Say hello."
    choice = ToolChoice(mode, (named,) if mode in ("named", "allowed") else ())
    return style.body(user(question), tools=(WEATHER, CLOCK), choice=choice, limit=CHOICE_TOKENS)


def _modes(case: ProbeCase) -> Steps:
    accepted: list[str] = []
    responses: list[tuple[str, ParsedReply]] = []
    disobeyed: list[str] = []
    unasked: set[str] = set()
    for mode in MODES:
        named = WEATHER.name if CLOCK.name in unasked else CLOCK.name
        body = _choice_body(case.style, mode, named)
        if mode in get(case.protocol).inexpressible.get("choice.modes", ()):
            continue
        response = yield ProbeRequest(body=body, about=f"tool choice {mode}", reply_tokens=CHOICE_TOKENS)
        responses.append((mode, response))
        if is_accepted(response):
            is_disobeyed = not case.found.get("calls.in_text") and _disobeys(mode, response, named)
            disobeyed += [mode] if is_disobeyed else []
            # If unknown fields are ignored, a choice without effect is not supported.
            is_unshown = mode == "allowed" and not (response.reply is not None and response.reply.turn.calls)
            accepted += [] if case.ignores_fields and (is_disobeyed or is_unshown) else [mode]
        if mode in ("auto", "required") and response.reply is not None:
            unasked |= {call.name for call in response.reply.turn.calls}
    return _choice_findings(case, accepted, responses, disobeyed)


def _disobeys(mode: str, response: ParsedReply, named: str) -> bool:
    """Whether a complete reply does not follow the choice."""
    if response.reply is None or response.reply.stop not in ("stop", "tool_calls"):
        return False
    called = {call.name for call in response.reply.turn.calls}
    if mode in ("named", "allowed"):
        return called != {named} if called or mode == "named" else False
    return {"required": not called, "none": bool(called)}.get(mode, False)


def _choice_findings(
    case: ProbeCase, accepted: list[str], responses: list[tuple[str, ParsedReply]], disobeyed: list[str]
) -> list[Finding]:
    if not responses:
        return []
    if "auto" not in {word for word, _ in responses}:
        accepted.insert(0, "auto")  # the default
    shown = [response for _, response in responses]
    quirk = f"tool choice {', '.join(disobeyed)} is accepted and not obeyed" if disobeyed else ""
    # If it thinks by default, a choice may be refused because of that.
    thinks = "reasoning.carrier" in case.found
    is_all = all(response.accepted for response in shown)
    found = [
        finding("choice.modes", "choice.modes", tuple(accepted), *shown, quirk=quirk, settles=is_all or not thinks)
    ]
    if thinks:
        is_known = _thinks_when_forced(responses) or not is_all
        found.append(finding("choice.modes", "choice.while_thinking", tuple(accepted), *shown, settles=is_known))
    return found


def _thinks_when_forced(responses: list[tuple[str, ParsedReply]]) -> bool:
    """Whether it thinks when a tool is forced. If not, the responses say nothing about choices while thinking."""
    forced = [
        response.reply for mode, response in responses if mode in ("required", "named") and response.reply is not None
    ]
    return any(isinstance(block, Thinking) for reply in forced for block in reply.turn.blocks)


def _no_tools(style: RequestStyle) -> Body:
    body = style.body(user("Say hello."), choice=ToolChoice("auto"))
    body.pop("tools", None)
    body.get("toolConfig", {}).pop("tools", None)
    return body


def _says_strict(case: ProbeCase) -> str:
    is_closed = "additionalProperties" not in (case.found.get("schema.refused") or ())
    return unless_ignored(case) if is_closed else "additionalProperties is refused, which a strict schema has"


def _if_never_empty(case: ProbeCase) -> str:
    """Whether objects need properties and tools need a schema: then an empty schema cannot be left out."""
    is_stuck = case.found.get("schema.properties_non_empty") and case.found.get("tools.parameters_required")
    return "every object needs properties" if is_stuck else ""


PROBES: Final = (
    yes_or_no(
        "tools.none_listed",
        "tools.allow_empty_list",
        "an empty list of tools",
        _empty_list,
        needs=("tools",),
    ),
    yes_or_no(
        "tools.undeclared",
        "tools.required_with_history",
        "calls in the history, but no tools declared",
        lambda style: style.body(user(), calls(), result(), tools=None),
        yes=False,
        no=True,
        needs=("history",),
        quirk="tools must be declared as long as the history has calls",
    ),
    yes_or_no(
        "tools.no_schema",
        "tools.parameters_required",
        "a tool without a schema",
        _without_schema,
        yes=False,
        no=True,
        needs=("tools",),
    ),
    yes_or_no(
        "tools.empty_schema",
        "tools.omit_empty_parameters",
        "a tool whose schema has no properties",
        lambda style: style.body(user(), tools=(tool(schema={"type": "object", "properties": {}}),)),
        yes=False,
        no=True,
        needs=("tools",),
        why_not=_if_never_empty,
        quirk="a tool without parameters must not have a schema",
    ),
    yes_or_no(
        "tools.no_description",
        "tools.description_required",
        "a tool without a description",
        _without_description,
        yes=False,
        no=True,
        needs=("tools",),
    ),
    yes_or_no(
        "tools.empty_description",
        "tools.empty_description",
        "a tool with an empty description",
        _empty_description,
        needs=("tools",),
        why_not=lambda case: "a tool must have a description" if case.found.get("tools.description_required") else "",
    ),
    yes_or_no(
        "tools.strict",
        "tools.strict",
        "a strict tool",
        _strict,
        yes="optional",
        no="omit",
        needs=("tools",),
        why_not=_says_strict,
        feature="strict_tools",
    ),
    yes_or_no(
        "tools.custom",
        "tools.custom",
        "a free-text tool",
        _custom,
        needs=("tools",),
        why_not=unless_ignored,
        feature="custom_tools",
    ),
    yes_or_no(
        "tools.namespaces",
        "tools.namespaces",
        "a namespace of tools",
        _namespace,
        needs=("tools",),
        why_not=unless_ignored,
        feature="namespaces",
    ),
    Probe(
        name="tools.count",
        question="how many tools a request may have",
        steps=_count,
        keys=("tools.max_count",),
        max_requests=14,
        needs=("tools",),
        request_tokens=6000,
    ),
    Probe(
        name="choice.modes",
        question="which tool choices are accepted",
        steps=_modes,
        keys=("choice.modes", "choice.while_thinking"),
        max_requests=len(MODES),
        reply_tokens=CHOICE_TOKENS,
        needs=("tools",),
    ),
    yes_or_no(
        "choice.no_tools",
        "choice.needs_tools",
        "a tool choice without tools",
        _no_tools,
        yes=False,
        no=True,
        needs=("tools",),
        feature="choice_field",
        why_not=unless_ignored,
    ),
    yes_or_no(
        "choice.serial",
        "choice.parallel_switch",
        "parallel calls turned off",
        lambda style: style.body(user(TWO_CITIES), choice=ToolChoice("auto", parallel=False), limit=64),
        needs=("tools",),
        why_not=unless_ignored,
        feature="parallel_switch",
    ),
)

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
from toolglot.discovery.findings import Finding
from toolglot.discovery.heard import ParsedReply
from toolglot.discovery.line import Question
from toolglot.discovery.probe import (
    Probe,
    ProbeCase,
    Steps,
    finding,
    highest,
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
    def ask(count: int) -> Question:
        many = tuple(
            ToolSpec(f"weather_{place}", "The weather.", {"type": "object", "properties": {"city": {"type": "string"}}})
            for place in range(count)
        )
        return Question(body=case.style.body(user(), tools=many), about=f"{count} tools")

    most, shown = yield from highest(ask, 1, COUNT_LADDER)
    if most == COUNT_LADDER[-1]:
        return [finding("tools.count", "tools.max_count", None, *shown, note=f"{most} are accepted")]
    return [finding("tools.count", "tools.max_count", most, *shown)]


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
    """A request that shows whether a choice is obeyed: nothing else in it asks for what is chosen."""
    question = QUESTION if mode == "none" else "Say hello."
    choice = ToolChoice(mode, (named,) if mode in ("named", "allowed") else ())
    return style.body(user(question), tools=(WEATHER, CLOCK), choice=choice, limit=CHOICE_TOKENS)


def _modes(case: ProbeCase) -> Steps:
    accepted: list[str] = []
    asked: list[tuple[str, ParsedReply]] = []
    disobeyed: list[str] = []
    unasked: set[str] = set()
    for mode in MODES:
        named = WEATHER.name if CLOCK.name in unasked else CLOCK.name
        body = _choice_body(case.style, mode, named)
        if mode in get(case.protocol).inexpressible.get("choice.modes", ()):
            continue
        heard = yield Question(body=body, about=f"tool choice {mode}", reply_tokens=CHOICE_TOKENS)
        asked.append((mode, heard))
        if is_accepted(heard):
            is_disobeyed = not case.found.get("calls.in_text") and _disobeys(mode, heard, named)
            disobeyed += [mode] if is_disobeyed else []
            # Where every field is accepted, one that does nothing is not understood.
            is_unshown = mode == "allowed" and not (heard.reply is not None and heard.reply.turn.calls)
            accepted += [] if case.ignores_fields and (is_disobeyed or is_unshown) else [mode]
        if mode in ("auto", "required") and heard.reply is not None:
            unasked |= {call.name for call in heard.reply.turn.calls}
    return _of_modes(case, accepted, asked, disobeyed)


def _disobeys(mode: str, heard: ParsedReply, named: str) -> bool:
    """Whether a whole reply does something else than was chosen."""
    if heard.reply is None or heard.reply.stop not in ("stop", "tool_calls"):
        return False
    called = {call.name for call in heard.reply.turn.calls}
    if mode in ("named", "allowed"):
        return called != {named} if called or mode == "named" else False
    return {"required": not called, "none": bool(called)}.get(mode, False)


def _of_modes(
    case: ProbeCase, accepted: list[str], asked: list[tuple[str, ParsedReply]], disobeyed: list[str]
) -> list[Finding]:
    if not asked:
        return []
    if "auto" not in {word for word, _ in asked}:
        accepted.insert(0, "auto")  # what holds where nothing is said
    shown = [heard for _, heard in asked]
    quirk = f"tool choice {', '.join(disobeyed)} is accepted and not obeyed" if disobeyed else ""
    # Where it thinks without being asked to, what is refused may be refused for that.
    thinks = "reasoning.carrier" in case.found
    is_all = all(heard.accepted for heard in shown)
    found = [
        finding("choice.modes", "choice.modes", tuple(accepted), *shown, quirk=quirk, settles=is_all or not thinks)
    ]
    if thinks:
        told = _thinks_when_forced(asked) or not is_all
        found.append(finding("choice.modes", "choice.while_thinking", tuple(accepted), *shown, settles=told))
    return found


def _thinks_when_forced(asked: list[tuple[str, ParsedReply]]) -> bool:
    """Some do not think where a tool is forced on them; then nothing was found out of a choice while thinking."""
    forced = [heard.reply for mode, heard in asked if mode in ("required", "named") and heard.reply is not None]
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
    """An object that must have properties, of a tool that must have a schema: leaving it out is no way."""
    is_stuck = case.found.get("schema.properties_non_empty") and case.found.get("tools.parameters_required")
    return "no object may be without properties" if is_stuck else ""


PROBES: Final = (
    yes_or_no(
        "tools.none_listed",
        "tools.allow_empty_list",
        "an empty list of tools",
        _empty_list,
        yes=True,
        no=False,
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
        yes=True,
        no=False,
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
        yes=True,
        no=False,
        needs=("tools",),
        why_not=unless_ignored,
        feature="custom_tools",
    ),
    yes_or_no(
        "tools.namespaces",
        "tools.namespaces",
        "a namespace of tools",
        _namespace,
        yes=True,
        no=False,
        needs=("tools",),
        why_not=unless_ignored,
        feature="namespaces",
    ),
    Probe(
        name="tools.count",
        group="tools",
        question="how many tools a request may have",
        steps=_count,
        keys=("tools.max_count",),
        most=14,
        needs=("tools",),
        request_tokens=6000,
    ),
    Probe(
        name="choice.modes",
        group="tools",
        question="which tool choices are accepted",
        steps=_modes,
        keys=("choice.modes", "choice.while_thinking"),
        most=len(MODES),
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
        "parallel calls switched off",
        lambda style: style.body(user(TWO_CITIES), choice=ToolChoice("auto", parallel=False), limit=64),
        yes=True,
        no=False,
        needs=("tools",),
        why_not=unless_ignored,
        feature="parallel_switch",
    ),
)

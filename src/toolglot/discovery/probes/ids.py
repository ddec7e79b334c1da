"""Probes of ids and names: their characters, their length, and whether they can be repeated."""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.discovery.bodies import (
    ID,
    Body,
    RequestStyle,
    assistant,
    calls,
    messages_of,
    result,
    tool,
    user,
    without_ids,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.findings import Finding
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import (
    Probe,
    ProbeCase,
    Steps,
    UnclearError,
    find_maximum,
    finding,
    is_accepted,
    yes_or_no,
)

ID_LADDER: Final = (40, 64, 128, 256, 512, 1024)
NAME_LADDER: Final = (32, 64, 128, 256)

MARKS: Final = {
    "_": "_",
    "-": "-",
    ".": ".",
    ":": ":",
    "other punctuation": "/",
    "letters of other alphabets": "é",
    "white space": " ",
}
"""A character of each class that hosts treat differently."""
_OTHER_LETTERS: Final = "letters of other alphabets"
_SPACE: Final = "white space"


def pattern_of(accepted: dict[str, bool], count: str = "+") -> str:
    """A regular expression for what was accepted, with this quantifier."""
    refused = [name for name, fits in accepted.items() if not fits]
    if not refused:
        return f"(?s:.{count})"
    if refused == [_SPACE]:
        return rf"\S{count}"
    if refused == [_OTHER_LETTERS, _SPACE]:
        return f"[!-~]{count}"
    marks = "".join(mark for mark in (".", ":", "_", "-") if accepted[mark])
    return f"[A-Za-z0-9{marks}]{count}"


# --- ids --------------------------------------------------------------------------------------------


def _with_id(style: RequestStyle, id: str) -> Body:
    return style.body(user(), calls(id), result(id))


def _characters(case: ProbeCase) -> Steps:
    if case.style.ids == "ordinal":
        return (yield from _ordinal(case))
    every = "A" + "".join(MARKS.values()) + "9"
    response = yield ProbeRequest(body=_with_id(case.style, every), about="an id with all kinds of characters")
    shown = [response]
    accepted = dict.fromkeys(MARKS, is_accepted(response))
    for name, mark in MARKS.items() if not is_accepted(response) else ():
        response = yield ProbeRequest(body=_with_id(case.style, f"Ab3d{mark}6gH9"), about=f"an id with {name} in it")
        accepted[name] = is_accepted(response)
        shown.append(response)
    refused = [name for name, fits in accepted.items() if not fits]
    note = f"refused in an id: {', '.join(refused)}" if refused else ""
    return [finding("ids.characters", "ids.pattern", pattern_of(accepted), *shown, note=note)]


def _ordinal(case: ProbeCase) -> Steps:
    """Only ids with the tool's name and a number were accepted: check once more that others are refused."""
    plain = msgspec.structs.replace(case.style, ids="plain")
    response = yield ProbeRequest(body=_with_id(plain, ID), about="an id of letters and digits")
    if is_accepted(response):
        raise UnclearError("ids of letters and digits are sometimes refused")
    quirk = "ids are functions.NAME:NUMBER"
    return [
        finding("ids.characters", "ids.style", "ordinal", response, quirk=quirk),
        finding("ids.characters", "ids.pattern", r"functions\.[A-Za-z0-9_-]+:[0-9]+", response),
    ]


def _if_ordinal(case: ProbeCase) -> str:
    return "ids are made of the tool's name and a number" if case.style.ids == "ordinal" else ""


def _id_length(case: ProbeCase) -> Steps:
    def request_for(length: int) -> ProbeRequest:
        id = (ID * (length // len(ID) + 1))[:length]
        return ProbeRequest(body=_with_id(case.style, id), about=f"an id of {length} characters")

    longer = yield request_for(len(ID) + 1)
    if not is_accepted(longer):
        shorter = yield request_for(len(ID) - 1)
        return _exact_length(longer, shorter)
    maximum, shown = yield from find_maximum(request_for, len(ID) + 1, ID_LADDER)
    quirk = f"ids have at most {maximum} characters" if maximum < ID_LADDER[0] else ""
    return [
        finding(
            "ids.length", "ids.max_length", maximum, longer, *shown, quirk=quirk, **_untried_note(maximum, ID_LADDER)
        )
    ]


def _exact_length(longer: ParsedReply, shorter: ParsedReply) -> list[Finding]:
    found = [finding("ids.length", "ids.max_length", len(ID), longer, shorter)]
    if not is_accepted(shorter):
        quirk = f"ids have exactly {len(ID)} characters"
        found.append(finding("ids.length", "ids.style", "fixed", longer, shorter, quirk=quirk))
        found.append(finding("ids.length", "ids.fixed_length", len(ID), longer, shorter))
    return found


def _untried_note(maximum: int, ladder: tuple[int, ...]) -> dict[str, str]:
    return {"note": "longer ones were not tried"} if maximum == ladder[-1] else {}


def _repeated_id(style: RequestStyle) -> Body:
    return style.body(user(), calls(ID), result(ID), assistant(), user(), calls(ID), result(ID))


def _no_ids(style: RequestStyle) -> Body:
    bare: Body = without_ids(style.body(user(), calls(ID), result(ID)))
    return bare


def _item_id(case: ProbeCase) -> Steps:
    def request_for(id: str) -> ProbeRequest:
        body = case.style.body(user(), calls(ID), result(ID))
        next(item for item in messages_of(body) if item.get("type") == "function_call")["id"] = id
        return ProbeRequest(body=body, about=f"a call item with the id {id}")

    foreign = yield request_for("item_0123456789abcdef")
    if is_accepted(foreign):
        return [finding("ids.item", "ids.item_id_prefix", "", foreign)]
    own = yield request_for("fc_0123456789abcdef")
    quirk = "the id of a call item begins with fc" if is_accepted(own) else ""
    return [finding("ids.item", "ids.item_id_prefix", "fc", foreign, own, quirk=quirk, settles=is_accepted(own))]


# --- names ------------------------------------------------------------------------------------------

FIRSTS: Final = {"digit": "9", "_": "_"}
"""Characters with which a name may not begin everywhere."""
NAME_MARKS: Final = ("-", ".", ":", "/")


def _named_tool(style: RequestStyle, name: str) -> Body:
    return style.body(user(), tools=(tool(name),))


def name_pattern(firsts: dict[str, bool], marks: dict[str, bool]) -> str:
    rest = "".join(mark for mark in (".", ":", "-") if marks[mark])
    if marks["/"]:
        return r"\S+"
    whole = f"A-Za-z0-9_{rest}"
    if all(firsts.values()):
        return f"[{whole}]+"
    first = "A-Za-z" + ("_" if firsts["_"] else "") + ("0-9" if firsts["digit"] else "")
    return f"[{first}][{whole}]*"


def _name_characters(case: ProbeCase) -> Steps:
    shown: list[ParsedReply] = []
    taken: dict[str, bool] = {}
    tries = {**{first: f"{mark}weather" for first, mark in FIRSTS.items()}, **{m: f"get{m}weather" for m in NAME_MARKS}}
    for what, name in tries.items():
        response = yield ProbeRequest(body=_named_tool(case.style, name), about=f"a tool called {name}")
        taken[what] = is_accepted(response)
        shown.append(response)
    firsts = {first: taken[first] for first in FIRSTS}
    value = name_pattern(firsts, {mark: taken[mark] for mark in NAME_MARKS})
    refused = [name for what, name in tries.items() if not taken[what]]
    note = f"refused as names: {', '.join(refused)}" if refused else ""
    return [finding("names.characters", "names.pattern", value, *shown, note=note)]


def _name_length(case: ProbeCase) -> Steps:
    def request_for(length: int) -> ProbeRequest:
        return ProbeRequest(
            body=_named_tool(case.style, "w" * length), about=f"a tool with a name of {length} characters"
        )

    maximum, shown = yield from find_maximum(request_for, len("get_weather"), NAME_LADDER)
    return [finding("names.length", "names.max_length", maximum, *shown, **_untried_note(maximum, NAME_LADDER))]


PROBES: Final = (
    Probe(
        name="ids.characters",
        question="which characters an id can have",
        steps=_characters,
        keys=("ids.pattern",),
        max_requests=1 + len(MARKS),
        needs=("history",),
    ),
    Probe(
        name="ids.length",
        question="how long an id can be",
        steps=_id_length,
        keys=("ids.max_length", "ids.style", "ids.fixed_length"),
        max_requests=14,
        needs=("history",),
        why_not=_if_ordinal,
    ),
    yes_or_no(
        "ids.twice",
        "ids.unique_in",
        "the same id on calls of two turns",
        _repeated_id,
        yes="turn",
        no="conversation",
        needs=("history", "dialogue"),
    ),
    yes_or_no(
        "ids.missing",
        "ids.required",
        "calls and results without ids",
        _no_ids,
        yes=False,
        no=True,
        needs=("history",),
        only_refusal_counts=True,
    ),
    Probe(
        name="ids.item",
        question="the id of a call item",
        steps=_item_id,
        keys=("ids.item_id_prefix",),
        max_requests=2,
        needs=("history",),
        feature="item_ids",
    ),
    Probe(
        name="names.characters",
        question="which characters a tool's name can have",
        steps=_name_characters,
        keys=("names.pattern",),
        max_requests=len(FIRSTS) + len(NAME_MARKS),
        needs=("tools",),
    ),
    Probe(
        name="names.length",
        question="how long a tool's name can be",
        steps=_name_length,
        keys=("names.max_length",),
        max_requests=12,
        needs=("tools",),
    ),
    yes_or_no(
        "names.twice",
        "names.unique",
        "two tools of one name",
        lambda style: style.body(user(), tools=(tool(), tool())),
        yes=False,
        no=True,
        needs=("tools",),
        only_refusal_counts=True,
    ),
)

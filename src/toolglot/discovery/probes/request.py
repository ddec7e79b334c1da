"""Probes of other fields of a request: limits, sampling, structured output, thinking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from toolglot.conversation import Options, OutputFormat, Reasoning, Sampling
from toolglot.discovery.bodies import (
    PLACEHOLDER,
    SIGNATURE,
    Body,
    RequestStyle,
    assistant,
    calls,
    messages_of,
    result,
    user,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import Probe, ProbeCase, Steps, finding, is_accepted, unless_ignored, yes_or_no

SAFE_LIMIT: Final = 16
"""A limit of the reply that every endpoint accepts."""
_HELLO: Final = "Say hello."
_SAMPLING: Final[dict[str, Any]] = {
    "temperature": 0.6,  # not 1: every endpoint accepts its default
    "top_p": 0.9,
    "top_k": 20,
    "stop": ("STOP",),
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
}
_OTHER_SEED: Final = "random_seed"
"""Mistral's name of the seed."""
EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_OBJECT: Final = {
    "type": "object",
    "properties": {"greeting": {"type": "string"}},
    "required": ["greeting"],
    "additionalProperties": False,
}


def _unknown_field(style: RequestStyle) -> Body:
    return {**style.body(user(_HELLO), tools=None), "x_toolglot_probe": True}


# --- the limit of the reply -------------------------------------------------------------------------


def _limit_field(case: ProbeCase) -> Steps:
    other = "max_completion_tokens" if case.style.limit_field == "max_tokens" else "max_tokens"
    style = msgspec.structs.replace(case.style, limit_field=other)
    response = yield ProbeRequest(body=style.body(user(_HELLO), tools=None), about=f"the limit as {other}")
    has_new = case.style.limit_field == "max_completion_tokens" or is_accepted(response)
    value = "max_completion_tokens" if has_new else "max_tokens"
    is_new_only = case.style.limit_field == "max_completion_tokens" and not is_accepted(response)
    quirk = "only max_completion_tokens limits a reply" if is_new_only else ""
    return [finding("request.limit_field", "request.max_tokens_field", value, response, quirk=quirk)]


def _unlimited_request(style: RequestStyle) -> Body:
    return style.with_limit(style.body(user("Answer with the one word: hello."), tools=None), None)


def _least_limit(case: ProbeCase) -> Steps:
    shown: list[ParsedReply] = []
    bad, good = 0, SAFE_LIMIT
    number = 1
    while good - bad > 1:
        response = yield ProbeRequest(
            body=case.style.body(user(_HELLO), tools=None, limit=number), about=f"a limit of {number}"
        )
        shown.append(response)
        bad, good = (bad, number) if is_accepted(response) else (number, good)
        number = (bad + good) // 2
    quirk = f"the limit of a reply is at least {good}" if good > 1 else ""
    return [finding("request.least_limit", "request.min_max_tokens", good, *shown, quirk=quirk)]


# --- settings ---------------------------------------------------------------------------------------


def _try_each(name: str, key: str, values: Iterator[tuple[str, Options]], about: str) -> Callable[[ProbeCase], Steps]:
    """Steps that try settings one by one and list those that are accepted.

    If unknown fields are ignored, only a refusal says something.
    """
    tries = list(values)

    def steps(case: ProbeCase) -> Steps:
        accepted: list[str] = []
        shown: list[ParsedReply] = []
        plain = case.style.body(user(_HELLO), tools=None)
        for word, options in tries:
            body = case.style.body(user(_HELLO), tools=None, options=options)
            if body == plain:
                continue  # the protocol cannot express it
            response = yield ProbeRequest(body=body, about=f"{about} {word}")
            shown.append(response)
            accepted += [word] if is_accepted(response) else []
        says_nothing = case.ignores_fields and len(accepted) == len(shown)
        return [finding(name, key, tuple(accepted), *shown)] if shown and not says_nothing else []

    return steps


def _sampling_options() -> Iterator[tuple[str, Options]]:
    for name, value in _SAMPLING.items():
        yield name, Options(sampling=Sampling(**{name: value}))


def _sampling(case: ProbeCase) -> Steps:
    """Try the settings one by one. A seed that is refused may have another name."""
    found = yield from _try_each("request.sampling", "request.sampling", _sampling_options(), "the setting")(case)
    body = case.style.body(user(_HELLO), tools=None, options=Options(sampling=Sampling(seed=_SAMPLING["seed"])))
    if not found or "seed" in found[0].value or "seed" not in body:
        return found
    renamed = {_OTHER_SEED if name == "seed" else name: value for name, value in body.items()}
    response = yield ProbeRequest(body=renamed, about=f"the seed as {_OTHER_SEED}")
    if not is_accepted(response) or case.ignores_fields:
        return found
    accepted = tuple(name for name in _SAMPLING if name == "seed" or name in found[0].value)
    quirk = f"the seed is {_OTHER_SEED}"
    return [
        msgspec.structs.replace(found[0], value=accepted),
        finding("request.sampling", "request.seed_field", _OTHER_SEED, response, quirk=quirk),
    ]


def _efforts() -> Iterator[tuple[str, Options]]:
    for effort in EFFORTS:
        yield effort, Options(reasoning=Reasoning(effort=effort))


_OUTPUTS: Final = {
    "json": OutputFormat("json"),
    "json_schema": OutputFormat("json_schema", "greeting", _OBJECT, strict=True),
}


def _outputs() -> Iterator[tuple[str, Options]]:
    for name, form in _OUTPUTS.items():
        yield name, Options(output=form)


def _output_and_tools(case: ProbeCase) -> Steps:
    kinds: tuple[str, ...] = case.found["request.output"]
    kind: str = tuple(kinds)[-1]
    body = case.style.body(user("Say hello, as JSON."), options=Options(output=_OUTPUTS[kind]))
    response = yield ProbeRequest(body=body, about=f"{kind} output together with tools")
    return [finding("request.output_tools", "request.output_with_tools", is_accepted(response), response)]


def _has_output(case: ProbeCase) -> str:
    return "" if case.found.get("request.output") else "no structured output was found"


def _cache_mark(style: RequestStyle) -> Body:
    body = style.body(user(_HELLO), tools=None)
    messages_of(body)[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return body


# --- thinking ---------------------------------------------------------------------------------------


def _back(case: ProbeCase) -> Steps:
    """Whether thinking must come back, and on which turns."""
    if not case.style.thinking:
        response = yield ProbeRequest(
            body=case.style.body(user(), calls(), result()), about="calls without their thinking"
        )
        if not is_accepted(response):
            return []
        # A model that did not think has no thinking that could come back.
        thinks = "reasoning.carrier" in case.found
        return [finding("reasoning.back", "reasoning.placeholder_on", "none", response, settles=thinks)]
    bare = msgspec.structs.replace(case.style, thinking="")
    refused = yield ProbeRequest(body=bare.body(user(), calls(), result()), about="calls without their thinking")
    if case.style.has("call_signatures"):
        quirk = "the first call of a step must carry its thought signature, or the placeholder"
        return [
            finding("reasoning.back", "reasoning.placeholder_on", "first_call", refused, quirk=quirk),
            finding("reasoning.back", "reasoning.placeholder", SIGNATURE, refused),
        ]
    only_calls = msgspec.structs.replace(case.style, thinking="calls")
    body = only_calls.body(user(), calls(), result(), assistant("Hello."), user("Hello"))
    response = yield ProbeRequest(body=body, about="a reply without its thinking, after calls with it")
    where = "calls" if is_accepted(response) else "assistant"
    case.style = msgspec.structs.replace(case.style, thinking=where)
    turns = "every assistant turn" if where == "assistant" else "a turn that calls"
    quirk = f"{case.style.thinking_field} must come back on {turns}"
    return [
        finding("reasoning.back", "reasoning.placeholder_on", where, refused, response, quirk=quirk),
        finding("reasoning.back", "reasoning.placeholder", PLACEHOLDER, refused, response),
        finding("reasoning.back", "reasoning.foreign", "text", refused, response, note="a placeholder is accepted"),
    ]


PROBES: Final = (
    yes_or_no(
        "request.unknown",
        "request.unknown_fields",
        "an unknown field",
        _unknown_field,
        yes="ignored",
        no="refused",
    ),
    Probe(
        name="request.limit_field",
        question="the field that limits a reply",
        steps=_limit_field,
        keys=("request.max_tokens_field",),
        feature="two_limit_fields",
        why_not=unless_ignored,
    ),
    yes_or_no(
        "request.unlimited",
        "request.max_tokens_required",
        "a request without a limit of the reply",
        _unlimited_request,
        yes=False,
        no=True,
        quirk="the limit of the reply is required",
    ),
    Probe(
        name="request.least_limit",
        question="the smallest limit of the reply",
        steps=_least_limit,
        keys=("request.min_max_tokens",),
        max_requests=5,
    ),
    Probe(
        name="request.sampling",
        question="which sampling settings are accepted",
        steps=_sampling,
        keys=("request.sampling", "request.seed_field"),
        max_requests=len(_SAMPLING) + 1,
    ),
    Probe(
        name="request.output",
        question="which structured output is accepted",
        steps=_try_each("request.output", "request.output", _outputs(), "output as"),
        keys=("request.output",),
        max_requests=len(_OUTPUTS),
        why_not=unless_ignored,
    ),
    Probe(
        name="request.output_tools",
        question="structured output together with tools",
        steps=_output_and_tools,
        keys=("request.output_with_tools",),
        needs=("tools",),
        why_not=_has_output,
    ),
    yes_or_no(
        "request.cache",
        "request.cache_markers",
        "a cache marker",
        _cache_mark,
        feature="cache_control",
        why_not=unless_ignored,
    ),
    Probe(
        name="reasoning.back",
        question="whether thinking must come back with calls",
        steps=_back,
        keys=("reasoning.placeholder_on", "reasoning.placeholder", "reasoning.foreign"),
        max_requests=2,
        needs=("history",),
    ),
    Probe(
        name="reasoning.efforts",
        question="which efforts are accepted",
        steps=_try_each("reasoning.efforts", "reasoning.efforts", _efforts(), "the effort"),
        keys=("reasoning.efforts",),
        max_requests=len(EFFORTS),
        feature="efforts",
        why_not=unless_ignored,
    ),
)

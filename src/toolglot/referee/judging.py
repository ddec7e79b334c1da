"""`lint`: a wire body and a target → what the target would refuse.

A reader draws the picture of the request, the checks of all groups look at it, and what they find is said in the
provider's own words where the profile has them. Laws: no body makes it raise (text that is not JSON does, as
everywhere); the answer depends on nothing but its arguments; time is linear in the body.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.errors import InputError, JSONError, LimitError, cut, quote
from toolglot.limits import DEEPEST, DEFAULT_LIMITS
from toolglot.profiles import Overrides, Profile
from toolglot.profiles.loader import Confidence
from toolglot.referee import (
    checks_calls,
    checks_ids,
    checks_reasoning,
    checks_request,
    checks_results,
    checks_schema,
    checks_tools,
    checks_turns,
)
from toolglot.referee.finding import Case, Check, Finding, open_case
from toolglot.referee.view import Shape, View
from toolglot.referee.wording import worded

MOST_VIOLATIONS: Final = 1_000
"""More are not told, of one rule and in all."""

CHECKS: Final[Mapping[str, Check]] = {
    **checks_ids.CHECKS,
    **checks_tools.CHECKS,
    **checks_calls.CHECKS,
    **checks_results.CHECKS,
    **checks_turns.CHECKS,
    **checks_reasoning.CHECKS,
    **checks_schema.CHECKS,
    **checks_request.CHECKS,
}
"""By profile key."""

FACTS: Final[Mapping[str, Check]] = checks_schema.FACTS

UNSEEN: Final[Mapping[str, str]] = {
    "ids.style": "how ids are made; what is legal is said by pattern and length",
    "ids.prefix": "a habit of the issuer: other prefixes are taken",
    "results.carrier": "the form of the protocol: no other can be written",
    "reasoning.foreign": "a request does not say who made its thinking",
    "reasoning.default": "what holds when nothing is asked",
    "reasoning.placeholder": "what to write; that something must stand is said by placeholder_on",
    "reasoning.bound_to": "a request does not say who made a signature, and with which prefix",
    "schema.field": "a name of the protocol: a wrong one is an unknown field",
    "request.count_tokens": "another request",
}
"""Keys that say nothing about what can be seen in a request, and why."""


class Violation(Struct, frozen=True, kw_only=True):
    """One thing that the target would refuse."""

    rule: str
    """The id of the rule, or `shape` where the body has not the form of the protocol."""
    path: str
    message: str
    hint: str = ""
    wording: Literal["provider", "ours"] = "ours"
    key: str = ""
    """The key of the profile, where one says it."""
    target: str = ""
    confidence: Confidence = "documented"
    """How sure the rule is; `default`: nobody described it, the conservative default is in force."""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.path}: {self.message}{hint} [{self.rule}]"


def lint(
    body: Mapping[str, Any] | bytes | str,
    target: str,
    model: str = "",
    overrides: Overrides | None = None,
    *,
    defaults: bool = True,
) -> tuple[Violation, ...]:
    """What a target would refuse of a request body, in the order of the body.

    The model is the body's own where none is named. `defaults=False` leaves out demands that nobody described for
    this target and that are only taken to hold.
    """
    value = _value(body)
    named = value.get("model") if isinstance(value, dict) and not model else model
    # A model that is longer than a profile is asked for is nobody's: the provider's rules hold.
    asked = named if isinstance(named, str) and (model or len(named) <= profiles.MAX_NAME) else ""
    profile = profiles.get(target, asked, overrides=overrides)
    found = list(_violations(value, profile))
    if not defaults:
        found = [violation for violation in found if violation.confidence != "default"]
    position = _positions(value)
    found.sort(key=lambda violation: (position(violation.path), violation.path, violation.rule))
    return tuple(found[:MOST_VIOLATIONS])


def _value(body: object) -> Any:
    if isinstance(body, bytes | bytearray | str):
        return _parsed(body)
    if isinstance(body, dict):
        return body
    if isinstance(body, Mapping):
        return dict(body)
    raise InputError(f"expected a request body, got {quote(body)}", path="body", hint="an object, or its JSON text")


def _parsed(text: bytes | bytearray | str) -> Any:
    if len(text) > DEFAULT_LIMITS.max_bytes:
        raise LimitError(f"larger than max_bytes ({DEFAULT_LIMITS.max_bytes})", path="body", hint="send a smaller body")
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise LimitError(f"nests deeper than max_depth ({DEEPEST})", path="body", hint="send a flatter body") from None
    except (msgspec.DecodeError, ValueError) as error:
        at = re.search(r"byte (\d+)", str(error))
        raise JSONError(f"not JSON: {error}", position=int(at[1]) if at else 0, hint="send valid JSON") from None


def _violations(value: Any, profile: Profile) -> Iterator[Violation]:
    if not isinstance(value, dict):
        yield _shaped(Shape("$", f"a request is an object, not {quote(value)}"), profile)
        return
    read: Callable[[dict[str, Any]], View] = importlib.import_module(f"toolglot.referee.read_{profile.protocol}").read
    view = read(value)
    for shape in view.shapes[:MOST_VIOLATIONS]:
        yield _shaped(shape, profile)
    case = open_case(view, profile)
    for key, check in CHECKS.items():
        yield from (_ruled(key, finding, profile) for finding in islice(check(case), MOST_VIOLATIONS))
    yield from _by_facts(case)


def _by_facts(case: Case) -> Iterator[Violation]:
    """Demands that the profile tells as facts, since no key fits them."""
    for ending, check in FACTS.items():
        if any(fact.id.endswith(ending) for fact in case.profile.facts):
            rule = next(fact.id for fact in case.profile.facts if fact.id.endswith(ending))
            for finding in islice(check(case), MOST_VIOLATIONS):
                yield _shaped(Shape(finding.path, finding.message, rule), case.profile, hint=finding.hint)


def _ruled(key: str, finding: Finding, profile: Profile) -> Violation:
    rule = profile.origin(key)
    return Violation(
        rule=rule.id,
        path=cut(finding.path),
        message=worded(rule.error, finding) if rule.error else cut(finding.message),
        hint=cut(finding.hint),
        wording="provider" if rule.error else "ours",
        key=key,
        target=profile.name,
        confidence=rule.confidence,
    )


def _shaped(shape: Shape, profile: Profile, *, hint: str = "") -> Violation:
    fact = next((fact for fact in profile.facts if fact.id == shape.rule), None)
    rule = next((rule for rule in profile.origins.values() if rule.id == shape.rule), fact)
    error = rule.error if rule is not None else ""
    return Violation(
        rule=shape.rule if rule is not None else "shape",
        path=cut(shape.path),
        message=worded(error, Finding(shape.path, shape.message)) if error else cut(shape.message),
        hint=hint or f"see the {profile.protocol} protocol",
        wording="provider" if error else "ours",
        target=profile.name,
        confidence=rule.confidence if rule is not None else "documented",
    )


_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['([^']*)'\]|\[(\d+)\]")


def _positions(body: Any) -> Callable[[str], tuple[int, ...]]:
    """Where a path stands in the body: the places of its steps. What the body does not have comes after what it has."""
    places: dict[int, dict[Any, int]] = {}

    def position(path: str) -> tuple[int, ...]:
        found, value = [], body
        for plain, quoted, index in _STEP.findall(path):
            name = plain or quoted
            if isinstance(value, dict) and name:
                if id(value) not in places:
                    places[id(value)] = {key: place for place, key in enumerate(value)}
                known = places[id(value)]
                found.append(known.get(name, len(value)))
                value = value.get(name)
            elif isinstance(value, list) and index and int(index[:9]) < len(value):
                found.append(int(index[:9]))
                value = value[int(index[:9])]
            else:
                break
        return tuple(found)

    return position

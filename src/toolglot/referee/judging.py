"""Judges a request body: the reader of the protocol, the checks, and the words for what they find.

A reader builds the view of the request, the checks look at it, and what they find is worded as the provider would, if
the profile has its words. Laws: no body makes it raise; the result depends only on its arguments; time is linear in the
body.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from toolglot.errors import InputError, cut, quote
from toolglot.profiles import Profile
from toolglot.referee.checks import CHECKS, FACTS
from toolglot.referee.finding import RequestCase, RuleBreach, open_case
from toolglot.referee.linting import Violation
from toolglot.referee.view import MalformedPart, View
from toolglot.referee.wording import provider_wording

MAX_VIOLATIONS: Final = 1_000
"""More are not listed, per rule and in all."""


def judge(value: Any, profile: Profile) -> tuple[Violation, ...]:
    """What a target would refuse of a JSON value, in the order of the body."""
    found = list(_violations(value, profile))
    position = _positions(value)
    found.sort(key=lambda violation: (position(violation.path), violation.path, violation.rule))
    return tuple(found[:MAX_VIOLATIONS])


def _violations(value: Any, profile: Profile) -> Iterator[Violation]:
    if not isinstance(value, dict):
        yield _shape_violation(MalformedPart("$", f"expected an object, got {quote(value)}"), profile)
        return
    path = f"toolglot.referee.readers.{profile.protocol}"
    if importlib.util.find_spec(path) is None:  # it was registered from outside
        raise InputError(f"the referee cannot read the protocol {quote(profile.protocol)}", path="target")
    reader = importlib.import_module(path)
    read: Callable[[dict[str, Any]], View] = reader.read
    view = read(value)
    for shape in view.shapes[:MAX_VIOLATIONS]:
        if shape.path != "$.model" or not profile.request.hosted_version:  # there the model is in the path
            yield _shape_violation(shape, profile)
    case = open_case(view, profile)
    for key, check in CHECKS.items():
        yield from (_rule_violation(key, finding, profile) for finding in islice(check(case), MAX_VIOLATIONS))
    yield from _fact_violations(case)


def _fact_violations(case: RequestCase) -> Iterator[Violation]:
    """Demands that are facts of the profile, since no key fits them."""
    for ending, check in FACTS.items():
        if case.has_fact(ending):
            rule = next(fact.id for fact in case.profile.facts if fact.id.endswith(ending))
            for finding in islice(check(case), MAX_VIOLATIONS):
                yield _shape_violation(
                    MalformedPart(finding.path, finding.message, rule), case.profile, hint=finding.hint
                )


def _rule_violation(key: str, finding: RuleBreach, profile: Profile) -> Violation:
    rule = profile.origin(key)
    is_quoted = bool(rule.error) and not finding.is_aside
    return Violation(
        rule=rule.id,
        path=cut(finding.path),
        message=provider_wording(rule.error, finding) if is_quoted else cut(finding.message),
        hint=cut(finding.hint),
        wording="provider" if is_quoted else "ours",
        key=key,
        target=profile.name,
        confidence=rule.confidence,
    )


def _shape_violation(shape: MalformedPart, profile: Profile, *, hint: str = "") -> Violation:
    fact = next((fact for fact in profile.facts if fact.id == shape.rule), None)
    rule = next((rule for rule in profile.origins.values() if rule.id == shape.rule), fact)
    error = rule.error if rule is not None else ""
    return Violation(
        rule=shape.rule if rule is not None else "shape",
        path=cut(shape.path),
        message=provider_wording(error, RuleBreach(shape.path, shape.message)) if error else cut(shape.message),
        hint=hint or f"see the {profile.protocol} protocol",
        wording="provider" if error else "ours",
        target=profile.name,
        confidence=rule.confidence if rule is not None else "documented",
    )


_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['([^']*)'\]|\[(\d+)\]")


def _positions(body: Any) -> Callable[[str], tuple[int, ...]]:
    """The position of a path in the body: the indices of its steps. Missing fields come after existing ones."""
    indices: dict[int, dict[Any, int]] = {}

    def position(path: str) -> tuple[int, ...]:
        found, value = [], body
        for plain, quoted, index in _STEP.findall(path):
            name = plain or quoted
            if isinstance(value, dict) and name:
                if id(value) not in indices:
                    indices[id(value)] = {key: index for index, key in enumerate(value)}
                known = indices[id(value)]
                found.append(known.get(name, len(value)))
                value = value.get(name)
            elif isinstance(value, list) and index and int(index[:9]) < len(value):
                found.append(int(index[:9]))
                value = value[int(index[:9])]
            else:
                break
        return tuple(found)

    return position

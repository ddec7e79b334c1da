"""Every demand of a profile is checked: a fault of each kind, planted into a good body, is found under its own rule."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from support.referee.good_bodies import TARGETS, Body, rich
from support.referee.planted_anthropic_faults import CLAUDE_PLANTS, CLAUDE_UNSEEN
from support.referee.planted_chat_faults import CHAT_PLANTS, CHAT_UNSEEN
from support.referee.planted_faults import FORCED, Plant
from toolglot import profiles
from toolglot.profiles import Overrides
from toolglot.referee import lint
from toolglot.referee.checks import CHECKS, UNSEEN

GROUPS = ("ids", "names", "tools", "choice", "calls", "results", "turns", "reasoning", "schema", "request", "cache")


class Fault(NamedTuple):
    target: str
    key: str
    body: Body
    overrides: Overrides | None


def plants(target: str) -> tuple[dict[str, Plant], dict[str, str]]:
    is_claude = profiles.get(target).protocol == "anthropic"
    return (CLAUDE_PLANTS, CLAUDE_UNSEEN) if is_claude else (CHAT_PLANTS, CHAT_UNSEEN)


def test_every_key_of_a_profile_is_checked_or_listed_as_unseen() -> None:
    keys = {key for key in profiles.KEYS if key.split(".")[0] in GROUPS}
    assert set(CHECKS) | set(UNSEEN) == keys
    assert not set(CHECKS) & set(UNSEEN)


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_every_check_has_a_fault_or_a_reason(target: str) -> None:
    table, unseen = plants(target)
    assert set(table) | set(unseen) == set(CHECKS)
    assert not set(table) & set(unseen)


@pytest.mark.parametrize("target", TARGETS)
def test_the_body_that_faults_are_planted_into_is_good(target: str) -> None:
    assert lint(rich(target), target, defaults=True) == ()


def planted(target: str, key: str) -> Fault | None:
    """The fault of a key in a target's good body; where the target does not make the demand, it is made to."""
    plant, body, overrides = plants(target)[0][key], rich(target), None
    broken = plant(body, profiles.get(target, body.get("model", "")))
    if broken is None and key in FORCED:
        overrides = Overrides(f"[profiles.{target}.rules]\n'{key}' = {FORCED[key]}\n")
        broken = plant(body, profiles.get(target, body.get("model", ""), overrides=overrides))
    return None if broken is None else Fault(target, key, broken, overrides)


PLANTED = [planted(target, key) for target in TARGETS for key in plants(target)[0]]
FAULTS = [fault for fault in PLANTED if fault is not None]


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.target}-{fault.key}" for fault in FAULTS])
def test_a_planted_fault_is_found_under_its_rule(fault: Fault) -> None:
    profile = profiles.get(fault.target, fault.body.get("model", ""), overrides=fault.overrides)
    rule = profile.origin(fault.key)
    found = lint(fault.body, fault.target, overrides=fault.overrides, defaults=True)
    first = next((violation for violation in found if violation.rule == rule.id), None)
    assert first is not None, [str(violation) for violation in found]
    assert (first.key, first.target) == (fault.key, fault.target)
    assert first.wording == ("provider" if rule.error else "ours")
    assert first.path.startswith("$")
    assert first.hint


def test_every_check_is_seen_to_find_a_fault() -> None:
    assert set(CHECKS) - {fault.key for fault in FAULTS} == {"ids.item_id_prefix", "turns.document_name"}
    assert len(FAULTS) > 800

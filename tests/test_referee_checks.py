"""Every demand of a profile is checked: a fault of each kind, planted into a good body, is found under its own rule."""

from __future__ import annotations

import pytest

from referee_good import TARGETS, rich
from referee_faults import CHAT_PLANTS, CHAT_UNSEEN, CLAUDE_PLANTS, CLAUDE_UNSEEN, FORCED, Plant
from toolglot import profiles
from toolglot.profiles import Overrides
from toolglot.referee import lint
from toolglot.referee.judging import CHECKS, UNSEEN

GROUPS = ("ids", "names", "tools", "choice", "calls", "results", "turns", "reasoning", "schema", "request")
ALSO: dict[str, str] = {}
"""What else must hold for a demand to be seen."""
PAIRS = [(target, key) for target in TARGETS for key in CHECKS]


def plants(target: str) -> tuple[dict[str, Plant], dict[str, str]]:
    return (CLAUDE_PLANTS, CLAUDE_UNSEEN) if target == "anthropic" else (CHAT_PLANTS, CHAT_UNSEEN)


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
    assert lint(rich(target), target) == ()


@pytest.mark.parametrize(("target", "key"), PAIRS, ids=[f"{target}-{key}" for target, key in PAIRS])
def test_a_planted_fault_is_found_under_its_rule(target: str, key: str) -> None:
    plant = plants(target)[0].get(key)
    body = rich(target)
    profile = profiles.get(target, body["model"])
    overrides = None
    broken = plant(body, profile) if plant else None
    if plant and broken is None and key in FORCED:
        overrides = Overrides(f"[profiles.{target}.rules]\n'{key}' = {FORCED[key]}\n{ALSO.get(key, '')}")
        profile = profiles.get(target, body["model"], overrides=overrides)
        broken = plant(body, profile)
    if broken is None:
        return
    profile = profiles.get(target, broken["model"], overrides=overrides)
    found = lint(broken, target, overrides=overrides)
    assert profile.origin(key).id in {violation.rule for violation in found}, [str(violation) for violation in found]
    assert key in {violation.key for violation in found}

"""The table of models: every value has a source, and names are found with dates, marks, regions and aliases."""

from __future__ import annotations

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import profiles
from toolglot.profiles import Overrides
from toolglot.profiles.loader import read_builtin
from toolglot.profiles.model_table import LAYER, context_rules, model_groups
from toolglot.profiles.name_patterns import matches

GROUPS = model_groups()


def test_every_group_names_its_source_the_day_and_hosts_that_exist() -> None:
    for name, group in GROUPS.items():
        assert group.source, name
        assert datetime.date.fromisoformat(group.read) <= datetime.date(2100, 1, 1)
        assert set(group.hosts) <= set(profiles.names()), name
        assert group.models, name


def test_the_numbers_of_a_model_agree_with_each_other() -> None:
    for group in GROUPS.values():
        for pattern, limits in group.models.items():
            assert limits.window is None or 4_000 <= limits.window <= 10_000_000, pattern
            assert limits.max_window is None or limits.window is not None, pattern
            assert limits.max_window is None or limits.max_window > (limits.window or 0), pattern
            assert pattern == pattern.lower(), pattern


def test_no_pattern_is_hidden_by_one_above_it() -> None:
    for group in GROUPS.values():
        patterns = list(group.models)
        for index, pattern in enumerate(patterns):
            name = re.sub(r"\[(.)[^\]]*\]", r"\1", pattern).replace("*", "")
            above = [other for other in patterns[:index] if matches(name, (other,))]
            assert above == [], f"{pattern} is never reached"


def test_the_table_is_the_only_place_of_its_values() -> None:
    for name in profiles.names():
        file = read_builtin(name)
        keys = {*file.rules, *(key for layer in file.models for key in layer.rules)}
        assert not [key for key in keys if key.startswith("context.")], name


@pytest.mark.parametrize(
    ("target", "model", "window", "max_window", "output"),
    [
        ("anthropic", "claude-opus-4-5", 200_000, None, 64_000),
        ("anthropic", "claude-opus-4-5-20251101", 200_000, None, 64_000),
        ("anthropic", "claude-sonnet-4-5-20250929[1m]", 200_000, 1_000_000, 64_000),
        ("anthropic", "Claude-Opus-5-5", 1_000_000, None, 128_000),
        ("bedrock", "us.anthropic.claude-sonnet-4-6-v1:0", 1_000_000, None, 128_000),
        ("bedrock", "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.amazon.nova-pro-v1:0", 300_000, None, 10_000),
        ("openai", "gpt-4o-2024-08-06", 128_000, None, 16_384),
        ("openai_responses", "gpt-5.1-codex-max", 272_000, 400_000, 128_000),
        ("azure", "gpt-5.5-2026-04-23", 922_000, 1_050_000, 128_000),
        ("vertex", "gemini-2.5-flash", 1_048_576, None, 65_536),
        ("minimax", "MiniMax-M3", 1_000_000, None, 128_000),
        ("groq", "openai/gpt-oss-120b", 131_072, None, 65_536),
        ("glm", "glm-4.6", 200_000, 204_800, 131_072),
        ("qwen", "qwen3-coder-plus-2025-09-23", 1_000_000, 1_048_576, 65_536),
        ("cohere", "command-a-03-2025", 256_000, None, 8_000),
        ("groq", "gpt-4o", None, None, None),
        ("openai_compatible", "claude-opus-5", None, None, None),
        ("vllm", "qwen3-coder-plus", None, None, None),
    ],
)
def test_a_model_is_found_by_the_names_that_its_host_uses(
    target: str, model: str, window: int | None, max_window: int | None, output: int | None
) -> None:
    context = profiles.get(target, model).context
    assert (context.window, context.max_window, context.output) == (window, max_window, output)


def test_a_value_of_the_table_has_its_origin() -> None:
    rule = profiles.get("anthropic", "claude-opus-5").origin("context.window")
    assert rule.layer == LAYER
    assert rule.id == "anthropic:claude-opus-5*"
    assert "platform.claude.com" in rule.source


def test_a_rule_of_the_user_replaces_a_value_of_the_table() -> None:
    overrides = Overrides('[profiles.anthropic.models.small]\nmatch = "opus"\nrules = { "context.window" = 50_000 }\n')
    profile = profiles.get("anthropic", "claude-opus-5", overrides=overrides)
    assert profile.context.window == 50_000
    assert profile.context.output == 128_000
    assert profile.largest_window == 50_000


@pytest.mark.parametrize(
    ("target", "model", "largest"),
    [
        ("anthropic", "claude-opus-4-5", 200_000),
        ("anthropic", "claude-sonnet-4-5", 1_000_000),
        ("openai_compatible", "x", None),
    ],
)
def test_the_largest_window_is_the_one_that_a_request_can_ask_for(target: str, model: str, largest: int | None) -> None:
    assert profiles.get(target, model).largest_window == largest


def test_a_window_that_is_a_guess_refuses_nothing() -> None:
    overrides = Overrides(
        '[profiles.box]\nextends = "openai_compatible"\n[profiles.box.rules."context.window"]\n'
        'id = "w"\nvalue = 8000\nsource = "nobody knows"\nconfidence = "guess"\n'
    )
    profile = profiles.get("box", "m", overrides=overrides)
    assert (profile.context.window, profile.largest_window) == (8_000, None)


@pytest.mark.law
@given(st.sampled_from(profiles.names()), st.text(max_size=80))
def test_any_name_is_looked_up_without_an_error(target: str, model: str) -> None:
    rules = context_rules((target,), model)
    assert all(key == rule.key and rule.source for key, rule in rules.items())

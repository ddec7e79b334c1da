"""Every simulated provider is found to be what its profile says, and takes what is rendered for the found profile."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.broken_conversations import conversations
from support.simulator.discoveries import ODDITIES, VARIANTS, Variant, found_out
from toolglot import Conversation, RefusedError, lint, profiles
from toolglot.discovery import COVERED, DiscoveryResult, departures, found_profile
from toolglot.discovery.comparison import agrees, value_of
from toolglot.profiles import KEYS, Profile
from toolglot.protocols.base import codec
from toolglot.render import render
from toolglot.simulator import PROVIDERS, Simulator

Named = tuple[str, str, str, str]
"""A provider of the simulator, its protocol, its target, a model."""

MODELS: Final = {
    "anthropic": ("claude-opus-5", "claude-sonnet-4-5", "claude-fable-5-1"),
    "openai": ("gpt-4.1", "o3", "gpt-5.5"),
    "openai_responses": ("gpt-4.1", "gpt-5.5"),
    "gemini": ("gemini-2.5-pro", "gemini-3-pro"),
    "mistral": ("mistral-large-latest",),
    "deepseek": ("deepseek-chat", "deepseek-reasoner"),
    "kimi": ("kimi-k2.5", "kimi-k3", "kimi-k2-0905"),
    "bedrock": ("anthropic.claude-opus-5-v1:0", "amazon.nova-pro-v1:0"),
    "xai": ("grok-4",),
    "glm": ("glm-4.6",),
    "qwen": ("qwen3-max",),
    "minimax": ("MiniMax-M2",),
}
NAMED: Final = [
    (name, protocol, target, model)
    for name, protocol, target in (
        *(
            (name, PROVIDERS[name].routes[0].protocol, name)
            for name in PROVIDERS
            if not profiles.get(name).request.path  # a cloud's own paths are not looked for
        ),
        ("openai", "openai_responses", "openai_responses"),
    )
    for model in MODELS.get(target, ("some-model",))
]
SIMULATED_OTHERWISE: Final = {
    "stream.usage": "the simulator sends the usage of a stream where the provider sends it on request",
    "stream.calls": "the simulator streams calls in pieces, but for Mistral's",
}
"""Entries about what a stream looks like, which the simulator has of its own and not from the profile."""
named = pytest.mark.parametrize("named", NAMED, ids=lambda named: f"{named[2]}-{named[3]}")


@cache
def found(named: Named) -> DiscoveryResult:
    provider, protocol, _, model = named
    return found_out(Simulator(), provider, protocol=protocol, model=model, name="box")


def real(named: Named) -> Profile:
    return profiles.get(named[2], named[3])


@named
def test_the_found_profile_is_the_real_one_in_every_probed_entry(named: Named) -> None:
    result, truth = found(named), real(named)
    assert result.complete, result.stopped
    wrong = {
        key: (value, value_of(truth, key))
        for key, value in result.entries.items()
        if key not in SIMULATED_OTHERWISE and not agrees(key, value, truth.as_known())
    }
    assert wrong == {}
    differences = [one.key for one in departures(result, truth) if one.key not in SIMULATED_OTHERWISE]
    assert differences == []
    assert len(result.entries) > (15 if named[1:] == ("openai_chat", "openai", "gpt-5.5") else 50)
    check_reasons(result)
    check_evidence(result)


def check_reasons(result: DiscoveryResult) -> None:
    """Nothing stays unclear, and what was not probed has a reason."""
    assert [probed for probed in result.probes if probed.outcome == "unclear"] == []
    assert all(probed.reason for probed in result.probes if probed.outcome == "skipped")


def check_evidence(result: DiscoveryResult) -> None:
    """Every finding names exchanges, and these are kept."""
    kept = {exchange.name for exchange in result.evidence}
    for one in result.findings:
        assert one.evidence, one
        assert kept.issuperset(one.evidence)
    assert result.spent.requests == len(result.evidence)


def test_every_entry_that_discovery_covers_exists_and_is_found_somewhere() -> None:
    assert set(COVERED) <= set(KEYS)
    shown = {key for one in NAMED if one[2:] in SHOWING for key in found(one).entries}
    shown |= {key for name in SHOWING_PLANTED for key in planted_result(name).entries}
    assert set(COVERED) == shown


SHOWING: Final = (
    ("deepseek", "deepseek-reasoner"),
    ("anthropic", "claude-opus-5"),
    ("mistral", "mistral-large-latest"),
    ("openai_responses", "gpt-4.1"),
    ("openai", "gpt-5.5"),
)
SHOWING_PLANTED: Final = (
    "a careless server that streams badly",
    "a server whose model writes its calls as text",
)
"""Discoveries that find all entries between them."""


@cache
def planted_result(name: str) -> DiscoveryResult:
    return variant_of(name).found_out()


def variant_of(name: str) -> Variant:
    return next(variant for variant in VARIANTS if variant.name == name)


# --- planted quirks ---------------------------------------------------------------------------------

variants = pytest.mark.parametrize("name", [variant.name for variant in VARIANTS])


@variants
def test_ten_planted_quirks_are_all_found_and_none_is_invented(name: str) -> None:
    variant, result = variant_of(name), planted_result(name)
    assert result.complete, result.stopped
    known = variant.known.as_known()
    planted = {key for key in variant.planted if not agrees(key, value_of(variant.real, key), known)}
    assert len(planted) + len(variant.quirks) >= 10
    assert planted == set(variant.planted)
    differences = {key for key, value in result.entries.items() if not agrees(key, value, known)}
    of_script = {"calls.in_text", "stream.index", "stream.finish_reason"}
    assert differences - set(SIMULATED_OTHERWISE) - of_script == planted - of_script
    truth = variant.real.as_known()
    for key in differences - set(SIMULATED_OTHERWISE) - of_script:
        assert agrees(key, result.entries[key], truth), (key, result.entries[key], value_of(truth, key))
    for words in variant.quirks:
        assert any(words in quirk for quirk in result.tooling.quirks), result.tooling.quirks


@st.composite
def hosts(draw: st.DrawFn) -> Variant:
    """A host of Chat Completions with any ten oddities."""
    keys = draw(st.lists(st.sampled_from(sorted(ODDITIES)), min_size=10, max_size=10, unique=True))
    planted = {key: draw(st.sampled_from(ODDITIES[key])) for key in keys}
    return Variant(name="any", provider=draw(st.sampled_from(["openai", "groq", "vllm"])), planted=planted)


@pytest.mark.law
@settings(max_examples=max(10, settings().max_examples // 40), suppress_health_check=[HealthCheck.too_slow])
@given(hosts())
def test_law_of_any_host_nothing_is_found_that_is_not_so(host: Variant) -> None:
    result, truth = host.found_out(), host.real.as_known()
    assert result.complete, result.stopped
    for key, value in result.entries.items():
        assert key in SIMULATED_OTHERWISE or agrees(key, value, truth), (key, value, value_of(truth, key))


def test_calls_that_are_written_as_text_are_found_with_their_dialect() -> None:
    tooling = planted_result("a server whose model writes its calls as text").tooling
    assert (tooling.native, tooling.dialect, tooling.parser, tooling.format) == (False, "hermes", "hermes", "xml")
    assert tooling.example.startswith("<tool_call>")


# --- what is rendered for the found profile ---------------------------------------------------------

FIRST: Final = [
    next(one for one in NAMED if one[2] == target)
    for target in (
        "anthropic",
        "openai_responses",
        "gemini",
        "mistral",
        "kimi",
        "bedrock",
        "cohere",
        "ollama",
        "llamacpp",
    )
]
"""A model of targets that differ much."""


UNASKED: Final = {"turns.media_sources"}
"""Whether an endpoint fetches a picture from an address is not probed, since there is none that it could fetch from:
the found profile has what the base supposes."""


@cache
def accepting(index: int) -> tuple[Profile, Profile, Any]:
    """A found profile, the real one, and what makes it so."""
    if index < len(FIRST):
        return found_profile(found(FIRST[index])), real(FIRST[index]), None
    variant = VARIANTS[index - len(FIRST)]
    return found_profile(planted_result(variant.name)), variant.real, variant.overrides


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(conversations, st.integers(0, len(FIRST) + len(VARIANTS) - 1))
def test_law_what_is_rendered_for_a_found_profile_the_endpoint_accepts(conversation: Conversation, index: int) -> None:
    profile, truth, overrides = accepting(index)
    try:
        made = render(replace(conversation, model=truth.model), profile, source=profiles.get("openai"))
    except RefusedError:
        return
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    found = lint(body, truth.name, truth.model, overrides)
    assert [str(one) for one in found if one.key not in UNASKED] == [], msgspec.json.encode(body)


def test_what_the_law_leaves_out_is_what_no_probe_asks_for() -> None:
    assert not UNASKED & set(COVERED)

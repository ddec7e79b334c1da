"""Sampling and the switch of thinking, at the edges of what targets accept: every change is reported.

Bodies are converted and repaired as a client would send them; what comes out has to pass the referee.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from toolglot import Conversation, Options, Reasoning, Sampling, Text, Turn, lint, profiles
from toolglot.protocols.base import codec
from toolglot.render import render

Body = dict[str, Any]

SONNET = "claude-sonnet-4-5"
BEDROCK_SONNET = "anthropic.claude-sonnet-4-5-20250929-v1:0"
WORDS = [{"role": "user", "content": "Hello"}]


def chat(**more: Any) -> Body:
    return {"model": "gpt-5.2", "messages": WORDS, **more}


def claude(**more: Any) -> Body:
    return {"model": SONNET, "max_tokens": 2000, "messages": WORDS, **more}


def convert_checked(body: Body, target: str, model: str, source: str = "openai") -> tuple[Body, list[str]]:
    """The converted body and the reasons of its report; a body that the referee refuses fails here."""
    outcome = toolglot.convert(body, source=source, target=target, model=model)
    assert not lint(outcome.body, target, model=model)
    return outcome.body, [entry.reason for entry in outcome.report.entries]


def broken_rules(body: Body, target: str, model: str) -> set[str]:
    return {violation.key for violation in lint(body, target, model=model)}


# --- not to think -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "field", "value"),
    [
        ("anthropic", SONNET, "thinking", {"type": "disabled"}),
        ("anthropic", "claude-opus-4-6", "thinking", {"type": "disabled"}),
        ("bedrock", BEDROCK_SONNET, "additionalModelRequestFields", {"thinking": {"type": "disabled"}}),
        ("qwen", "qwen3-max", "enable_thinking", False),
        ("cohere", "command-a-reasoning-08-2025", "thinking", {"type": "disabled"}),
        ("kimi", "kimi-k2.5", "thinking", {"type": "disabled"}),
        ("glm", "glm-4.6", "thinking", {"type": "disabled"}),
        ("ollama", "qwen3", "think", False),
        ("gemini", "gemini-2.5-flash", "generationConfig", {"thinkingConfig": {"thinkingBudget": 0}}),
        ("openai", "gpt-5.2", "reasoning_effort", "none"),
        ("openai_responses", "gpt-5.2", "reasoning", {"effort": "none"}),
        ("openrouter", "openai/gpt-5.2", "reasoning_effort", "none"),
    ],
)
def test_an_effort_of_none_is_thinking_that_is_off(target: str, model: str, field: str, value: Any) -> None:
    body, reasons = convert_checked(chat(reasoning_effort="none"), target, model)
    assert body[field] == value
    assert (value in ("none", {"effort": "none"})) != any(
        "effort 'none' is not available" in reason for reason in reasons
    )


@pytest.mark.parametrize(
    ("target", "model"),
    [("gemini", "gemini-2.5-pro"), ("gemini", "gemini-3-pro-preview"), ("minimax", "MiniMax-M2"), ("openai", "o3")],
)
def test_a_model_that_always_thinks_gets_no_switch_and_it_is_reported(target: str, model: str) -> None:
    body, reasons = convert_checked(chat(reasoning_effort="none"), target, model)
    assert not {"reasoning_effort", "thinking", "generationConfig"} & set(body)
    assert any("thinking 'off' is not available" in reason for reason in reasons)


def test_a_model_that_does_not_think_gets_no_switch() -> None:
    body, reasons = convert_checked(chat(reasoning_effort="none"), "mistral", "mistral-large-latest")
    assert "reasoning_effort" not in body
    assert any("thinking is off by default" in reason for reason in reasons)


def test_a_budget_of_nothing_is_thinking_that_is_off() -> None:
    original = {"model": "qwen3-max", "messages": WORDS, "enable_thinking": True, "thinking_budget": 0}
    body, reasons = convert_checked(original, "anthropic", SONNET, source="qwen")
    assert body["thinking"] == {"type": "disabled"}
    assert any("a budget of 0 tokens is not available" in reason for reason in reasons)
    body, _ = convert_checked(original, "openai", "gpt-5.2", source="qwen")
    assert body["reasoning_effort"] == "none"


EVERY = [(name, "") for name in profiles.names()] + [
    *(("anthropic", model) for model in (SONNET, "claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5-5")),
    *(("bedrock", model) for model in (BEDROCK_SONNET, "amazon.nova-pro-v1:0")),
    *(("gemini", model) for model in ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview")),
    *(("openai", model) for model in ("gpt-4.1", "gpt-5", "gpt-5.2", "o3")),
    *(("qwen", "qwen3-max"), ("kimi", "kimi-k2.5"), ("groq", "qwen/qwen3-32b"), ("xai", "grok-4.3")),
]
SAMPLINGS = st.builds(
    Sampling,
    max_tokens=st.none() | st.integers(1, 9000),
    temperature=st.none() | st.sampled_from([0, 0.2, 1, 1.0, 1.3, 1.7, 2, 3]),
    top_p=st.none() | st.sampled_from([0.1, 0.9, 0.95, 0.99, 1]),
    top_k=st.none() | st.integers(1, 50),
    stop=st.lists(st.sampled_from(["a", "END", "\n", " ", "b", "c", "d"]), max_size=8).map(tuple),
)
REASONINGS = st.none() | st.builds(
    Reasoning,
    mode=st.sampled_from([None, "off", "on", "adaptive"]),
    effort=st.sampled_from([None, "none", "minimal", "low", "high", "max"]),
    budget_tokens=st.none() | st.sampled_from([0, 1, 10, 1024, 5000]),
)


@pytest.mark.law
@given(st.sampled_from(EVERY), SAMPLINGS, REASONINGS, st.booleans())
def test_whatever_the_settings_the_target_accepts_the_request(
    where: tuple[str, str], sampling: Sampling, reasoning: Reasoning | None, is_native: bool
) -> None:
    profile = profiles.get(*where)
    original = Conversation((Turn("user", (Text("hi"),)),), (), Options(sampling, reasoning), model=where[1] or "m")
    made = render(original, profile, source=profile if is_native else profiles.get("openai_compatible"))
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    found = lint(body, where[0], model=where[1])
    keys = {violation.key for violation in found if violation.key.split(".")[0] in ("request", "reasoning")}
    assert not keys, [str(violation) for violation in found]
    fitted = made.conversation.options
    reasons = {entry.path for entry in made.entries}
    for name in ("temperature", "top_p", "top_k", "stop"):
        assert getattr(fitted.sampling, name) == getattr(sampling, name) or f"$.{name}" in reasons
    if reasoning is not None and (reasoning.effort == "none" or reasoning.budget_tokens == 0) and not is_native:
        assert fitted.reasoning is None or fitted.reasoning.mode not in ("on", "adaptive")


# --- temperature and top_p --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "is_refused"),
    [
        ("anthropic", "claude-opus-4-1-20250805", True),
        ("anthropic", SONNET, True),
        ("anthropic", "claude-haiku-4-5-20251001", True),
        ("anthropic", "claude-opus-4-6", True),
        ("anthropic", "claude-sonnet-4-20250514", False),
        ("anthropic", "claude-opus-4-0", False),
        ("anthropic", "claude-3-7-sonnet-latest", False),
        ("bedrock", BEDROCK_SONNET, True),
        ("bedrock", "us.anthropic.claude-opus-4-1-20250805-v1:0", True),
        ("bedrock", "anthropic.claude-sonnet-4-20250514-v1:0", False),
        ("bedrock", "amazon.nova-pro-v1:0", False),
        ("openai", "gpt-4.1", False),
    ],
)
def test_of_temperature_and_top_p_one_stays_where_they_exclude_each_other(
    target: str, model: str, is_refused: bool
) -> None:
    body, reasons = convert_checked(chat(temperature=0.5, top_p=0.9), target, model)
    sampling = body.get("inferenceConfig", body)
    assert sampling["temperature"] == 0.5
    assert ("top_p" in sampling or "topP" in sampling) != is_refused
    assert any("temperature and top_p exclude each other" in reason for reason in reasons) == is_refused


def test_top_p_alone_stays() -> None:
    assert convert_checked(chat(top_p=0.9), "anthropic", SONNET)[0]["top_p"] == 0.9


@pytest.mark.parametrize(
    ("target", "model", "maximum"),
    [
        ("anthropic", SONNET, 1),
        ("bedrock", "amazon.nova-pro-v1:0", 1),
        ("cohere", "command-a-03-2025", 1),
        ("mistral", "mistral-large-latest", 1.5),
        ("gemini", "gemini-2.5-flash", 2),
        ("openai", "gpt-4.1", 2),
        ("vllm", "any", 2.5),
    ],
)
def test_a_temperature_that_is_too_high_is_lowered(target: str, model: str, maximum: float) -> None:
    body, reasons = convert_checked(chat(temperature=2.5), target, model)
    value = {**body, **body.get("inferenceConfig", {}), **body.get("generationConfig", {})}["temperature"]
    assert (value, isinstance(value, int)) == (maximum, float(maximum).is_integer())
    assert any("above the maximum" in reason for reason in reasons) == (maximum < 2.5)


def test_what_is_too_high_is_lowered_in_a_native_request_too() -> None:
    outcome = toolglot.repair(claude(temperature=1.5), target="anthropic", model=SONNET)
    assert outcome.body["temperature"] == 1
    assert "anthropic-temperature-max" in str(outcome.report)


# --- beside thinking --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "thinking"),
    [(SONNET, {"type": "enabled", "budget_tokens": 1024}), ("claude-opus-4-6", {"type": "adaptive"})],
)
def test_while_claude_thinks_little_of_sampling_is_left(model: str, thinking: Body) -> None:
    original = claude(model=model, thinking=thinking, temperature=0.2, top_p=0.5, top_k=5)
    assert "reasoning.narrows_sampling" in broken_rules(original, "anthropic", model)
    outcome = toolglot.repair(original, target="anthropic", model=model)
    assert not {"temperature", "top_p", "top_k"} & set(outcome.body)
    assert [entry.path for entry in outcome.report.entries] == ["$.temperature", "$.top_p", "$.top_k"]


@pytest.mark.parametrize("more", [{"temperature": 1}, {"temperature": 1.0}, {"top_p": 0.95}, {"top_p": 1}])
def test_what_claude_takes_while_it_thinks_stays(more: Body) -> None:
    original = claude(thinking={"type": "enabled", "budget_tokens": 1024}, **more)
    outcome = toolglot.repair(original, target="anthropic", model=SONNET)
    assert (outcome.body, outcome.report.entries) == (original, ())


def test_sampling_stays_where_thinking_is_off() -> None:
    original = claude(thinking={"type": "disabled"}, temperature=0.2, top_k=5)
    assert toolglot.repair(original, target="anthropic", model=SONNET).body == original


def test_claude_on_bedrock_keeps_no_top_k_beside_thinking() -> None:
    own = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 5}
    words = [{"role": "user", "content": [{"text": "Hello"}]}]
    config = {"maxTokens": 2000, "temperature": 0.2}
    original = {"messages": words, "inferenceConfig": config, "additionalModelRequestFields": own}
    found = lint(original, "bedrock", model=BEDROCK_SONNET)
    assert {violation.path for violation in found} == {
        "$.inferenceConfig.temperature",
        "$.additionalModelRequestFields.top_k",
    }
    outcome = toolglot.repair(original, target="bedrock", model=BEDROCK_SONNET)
    assert outcome.body["inferenceConfig"] == {"maxTokens": 2000}
    assert outcome.body["additionalModelRequestFields"] == {"thinking": own["thinking"]}


@pytest.mark.parametrize(("limit", "budget"), [(2000, 1024), (1025, 1024), (1024, None), (100, None)])
def test_a_budget_below_the_minimum_is_raised_within_max_tokens(limit: int, budget: int | None) -> None:
    original = claude(max_tokens=limit, thinking={"type": "enabled", "budget_tokens": 10})
    assert "reasoning.min_budget" in broken_rules(original, "anthropic", SONNET)
    outcome = toolglot.repair(original, target="anthropic", model=SONNET)
    assert outcome.body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})
    assert "anthropic-thinking-budget-min" in str(outcome.report)


# --- stop sequences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "maximum"),
    [
        ("openai", "gpt-4.1", 4),
        ("azure", "gpt-4.1", 4),
        ("groq", "llama-3.3-70b-versatile", 4),
        ("gemini", "gemini-2.5-pro", 5),
        ("vertex", "gemini-2.5-pro", 5),
        ("cohere", "command-a-03-2025", 5),
        ("mistral", "mistral-large-latest", 7),
    ],
)
def test_the_first_stop_sequences_are_kept(target: str, model: str, maximum: int) -> None:
    body, reasons = convert_checked(claude(stop_sequences=list("abcdefg")), target, model, source="anthropic")
    flat = {**body, **body.get("generationConfig", {})}
    kept = next(flat[name] for name in ("stop", "stop_sequences", "stopSequences") if name in flat)
    assert kept == list("abcdefg")[:maximum]
    assert any(f"the first {maximum} were kept" in reason for reason in reasons) == (maximum < 7)


@pytest.mark.parametrize(("target", "model"), [("anthropic", SONNET), ("bedrock", BEDROCK_SONNET)])
def test_a_stop_sequence_of_white_space_is_dropped_where_it_is_refused(target: str, model: str) -> None:
    body, reasons = convert_checked(chat(stop=["\n", "END", " "]), target, model)
    sampling = body.get("inferenceConfig", body)
    assert sampling.get("stop_sequences", sampling.get("stopSequences")) == ["END"]
    assert any("2 of 3 stop sequences are only white space" in reason for reason in reasons)
    assert "stop_sequences" not in convert_checked(chat(stop="\n"), target, model)[0]
    assert convert_checked(chat(stop="\n"), "openai", "gpt-4.1")[0]["stop"] == "\n"


def test_the_referee_counts_stop_sequences_and_sees_blank_ones() -> None:
    assert broken_rules(chat(model="gpt-4.1", stop=list("abcde")), "openai", "gpt-4.1") == {"request.max_stop"}
    assert not broken_rules(chat(model="gpt-4.1", stop="abcde"), "openai", "gpt-4.1")
    found = lint(claude(stop_sequences=["END", " "]), "anthropic", model=SONNET)
    assert [(violation.path, violation.key) for violation in found] == [("$.stop_sequences[1]", "request.blank_stop")]


# --- models that do not think -----------------------------------------------------------------------

PLAIN = ("gpt-4.1", "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini-2024-07-18", "chatgpt-4o-latest", "gpt-3.5-turbo", "gpt-4")


@pytest.mark.parametrize("model", PLAIN)
@pytest.mark.parametrize("target", ["openai", "azure"])
def test_a_chat_model_that_does_not_think_gets_no_effort(target: str, model: str) -> None:
    original = chat(reasoning_effort="high")
    assert broken_rules(original, target, model) == {"reasoning.efforts"}
    body, reasons = convert_checked(original, target, model, source=target)
    assert "reasoning_effort" not in body
    assert any("effort 'high' is not available (openai-plain-efforts)" in reason for reason in reasons)


@pytest.mark.parametrize("model", PLAIN)
@pytest.mark.parametrize("reasoning", [{"effort": "high"}, {"summary": "auto"}, {"effort": "low", "summary": "auto"}])
def test_a_responses_model_that_does_not_think_gets_no_reasoning(model: str, reasoning: Body) -> None:
    original = {"model": "gpt-5.2", "input": "Hello", "reasoning": reasoning}
    assert broken_rules(original, "openai_responses", model) == {"reasoning.efforts"}
    body, reasons = convert_checked(original, "openai_responses", model, source="openai_responses")
    assert "reasoning" not in body
    assert len(reasons) == len(reasoning)


@pytest.mark.parametrize("model", ["gpt-5.2", "gpt-5", "o4-mini", "my-deployment"])
def test_other_models_keep_their_effort(model: str) -> None:
    assert convert_checked(chat(reasoning_effort="high"), "openai", model)[0]["reasoning_effort"] == "high"

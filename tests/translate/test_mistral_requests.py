"""Mistral speaks Chat Completions, but it is not OpenAI: what it does not have is left out, what it calls otherwise is
renamed, both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import convert, lint, profiles, repair
from toolglot.profiles import Overrides

USER = {"role": "user", "content": "hi"}
PDF = "data:application/pdf;base64,JVBERi0xLjQK"
OPENAI_FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}
MISTRAL_FILE = {"type": "document_url", "document_url": PDF, "document_name": "a.pdf"}


def sent(target: str, source: str = "openai", model: str = "", **fields: Any) -> tuple[dict[str, Any], str]:
    """The body that the target gets, and the report. The target accepts every body that comes of this."""
    body = {"model": "m", "messages": [USER], **fields}
    named = model or {"mistral": "mistral-large-latest", "openai": "gpt-4.1"}[target]
    out = convert(json.dumps(body).encode(), source=source, target=target, model=named)
    assert lint(out.body, target) == ()
    assert isinstance(out.body, dict)
    return out.body, str(out.report)


@pytest.mark.parametrize("source", ["openai", "openai_compatible", "mistral"])
def test_a_chat_clients_stream_options_are_not_sent_to_mistral(source: str) -> None:
    body, report = sent("mistral", source, stream=True, stream_options={"include_usage": True})
    assert body["stream"] is True
    assert "stream_options" not in body
    assert "stream_options" in report


@pytest.mark.parametrize("field", ["store", "logit_bias", "safety_identifier", "verbosity", "modalities"])
def test_fields_that_only_openai_has_are_not_sent_to_mistral(field: str) -> None:
    value: Any = {"logit_bias": {"1": 2}, "store": True, "modalities": ["text", "audio"]}.get(field, "low")
    for source in ("openai", "mistral"):
        body, report = sent("mistral", source, **{field: value})
        assert field not in body
        assert field in report


def test_a_field_that_no_host_is_known_to_have_stays_at_its_own_provider() -> None:
    body = {"model": "mistral-large-latest", "messages": [USER], "brand_new": 1}
    assert repair(body, target="mistral").body == body
    assert [found.key for found in lint(body, "mistral")] == ["request.unknown_fields"]


@pytest.mark.parametrize("field", ["prompt_cache_key", "metadata", "n"])
def test_fields_that_mistral_has_too_are_kept_and_nothing_else_is_reported(field: str) -> None:
    value: Any = {"metadata": {"a": "b"}, "n": 2}.get(field, "k")
    body, report = sent("mistral", **{field: value})
    assert body[field] == value
    assert f"$.{field}" not in report


def test_the_cache_key_of_a_responses_client_reaches_mistral() -> None:
    body = {"model": "gpt-5", "input": "hi", "prompt_cache_key": "k", "text": {"verbosity": "low"}}
    out = convert(body, source="openai_responses", target="mistral", model="mistral-large-latest")
    assert out.body["prompt_cache_key"] == "k"
    assert "prompt_cache_key" not in str(out.report)
    assert "verbosity" not in out.body
    assert lint(out.body, "mistral") == ()


def test_a_field_with_values_of_its_own_is_left_out_and_the_report_says_why() -> None:
    body, report = sent("mistral", service_tier="flex")
    assert "service_tier" not in body
    assert "service_tier has other values here (mistral-fields)" in report


def test_the_seed_has_the_name_of_each_host() -> None:
    for source in ("openai", "mistral"):
        body, _ = sent("mistral", source, seed=7)
        assert (body.get("random_seed"), body.get("seed")) == (7, None)
    for source in ("mistral", "openai"):
        body, _ = sent("openai", source, random_seed=7)
        assert (body.get("random_seed"), body.get("seed")) == (None, 7)


def test_a_seed_of_its_own_client_leaves_as_it_came() -> None:
    for target, model, field in (("mistral", "mistral-large-latest", "random_seed"), ("openai", "gpt-4.1", "seed")):
        raw = json.dumps({"model": model, "messages": [USER], field: 7}).encode()
        out = convert(raw, source=target, target=target)
        assert (out.data, str(out.report)) == (raw, "nothing was changed")


def test_a_second_seed_is_a_field_of_the_client() -> None:
    raw = json.dumps({"model": "m", "messages": [USER], "seed": 7, "random_seed": 8}).encode()
    assert convert(raw, source="vllm", target="vllm").data == raw


def test_limits_and_choices_are_those_of_mistral() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    body, _ = sent("mistral", max_completion_tokens=9, tools=tools, tool_choice="required", parallel_tool_calls=False)
    assert (body["max_tokens"], body.get("max_completion_tokens")) == (9, None)
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    body, _ = sent("openai", "mistral", tools=tools, tool_choice="any")
    assert body["tool_choice"] == "required"


def test_documents_are_chunks_of_mistral_and_files_of_openai() -> None:
    body, report = sent("mistral", messages=[{"role": "user", "content": [OPENAI_FILE]}])
    assert body["messages"][0]["content"] == [MISTRAL_FILE]
    body, _ = sent("openai", "mistral", messages=[{"role": "user", "content": [MISTRAL_FILE]}])
    assert body["messages"][0]["content"] == [OPENAI_FILE]
    assert "file" not in report


def test_a_document_of_another_protocol_is_a_chunk_of_mistral() -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
    content = [{"type": "document", "source": source, "title": "a.pdf"}]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    out = convert(body, source="anthropic", target="mistral", model="mistral-large-latest")
    assert out.body["messages"][0]["content"] == [MISTRAL_FILE]


@pytest.mark.parametrize("effort", ["low", "high"])
def test_an_effort_reaches_the_models_that_have_one(effort: str) -> None:
    body, _ = sent("mistral", model="mistral-small-latest", reasoning_effort=effort)
    assert body["reasoning_effort"] == "high"
    body, report = sent("mistral", model="mistral-large-latest", reasoning_effort=effort)
    assert "reasoning_effort" not in body
    assert "effort" in report


def test_the_description_of_an_output_schema_is_carried_to_mistral() -> None:
    schema = {"name": "x", "description": "The answer.", "schema": {"type": "object", "properties": {}}}
    body, report = sent("mistral", response_format={"type": "json_schema", "json_schema": schema})
    assert body["response_format"]["json_schema"]["description"] == "The answer."
    assert "description" not in report


@pytest.mark.parametrize("target", ["mistral", "groq", "cerebras", "openai"])
def test_common_fields_are_fields_and_sources_are_named(target: str) -> None:
    profile = profiles.get(target)
    known = profile.request.fields
    assert known is not None
    assert {*profile.request.common_fields} - {*profile.request.refused_fields} <= {*known}
    assert {profile.request.seed_field, profile.request.max_tokens_field, "stream", "tools", "model"} <= {*known}
    assert profile.origin("request.fields").source


@pytest.mark.parametrize(
    ("target", "field", "message"),
    [
        ("mistral", "store", "Extra inputs are not permitted"),
        ("mistral", "stream_options", "Extra inputs are not permitted"),
        ("cerebras", "store", "property 'store' is unsupported"),
        ("groq", "verbosity", "property 'verbosity' is unsupported"),
        ("openai", "safe_prompt", "Unrecognized request argument supplied: safe_prompt"),
    ],
)
def test_the_referee_knows_the_fields_of_each_host(target: str, field: str, message: str) -> None:
    body = {"model": "m", "messages": [USER], field: {"stream_options": {}, "verbosity": "low"}.get(field, False)}
    found = [violation for violation in lint(body, target) if violation.path == f"$.{field}"]
    assert [(violation.key, violation.message) for violation in found] == [("request.fields", message)]


@pytest.mark.parametrize("target", ["groq", "cerebras"])
def test_thinking_of_another_host_is_not_sent_in_a_field_that_the_host_refuses(target: str) -> None:
    messages = [USER, {"role": "assistant", "content": "ok", "reasoning_content": "Hm."}, USER]
    out = convert({"model": "m", "messages": messages}, source="deepseek", target=target, model="gpt-oss-120b")
    assert lint(out.body, target) == ()
    found = lint({"model": "gpt-oss-120b", "messages": messages}, target)
    assert "request.message_fields" in {violation.key for violation in found}


def test_a_user_can_add_a_field_to_a_host() -> None:
    known = [*(profiles.get("mistral").request.fields or ()), "brand_new"]
    overrides = Overrides(f"[profiles.mistral.rules]\n'request.fields' = {json.dumps(known)}\n")
    assert profiles.get("mistral", overrides=overrides).request.fields == tuple(known)

"""Forms that only some hosts of Chat Completions have: native ones stay, others are translated or reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import convert, lint

PDF = "JVBERi0xLjQK"
ADDRESS = "https://example.org/a.pdf"
SCHEMA = {"type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"]}

PARTS = [
    ("mistral", "mistral-large-latest", {"type": "document_url", "document_url": ADDRESS, "document_name": "a.pdf"}),
    ("glm", "glm-4.6", {"type": "file_url", "file_url": {"url": ADDRESS}}),
    ("openai_compatible", "sonar", {"type": "file_url", "file_url": {"url": PDF}}),
    ("openai_compatible", "sonar", {"type": "file_url", "file_url": {"url": f"data:application/pdf;base64,{PDF}"}}),
]
TARGETS = [
    ("openai", "gpt-4.1"),
    ("deepseek", "deepseek-chat"),
    ("openrouter", "openai/gpt-4.1"),
    ("vllm", "local"),
    ("anthropic", "claude-sonnet-4-5"),
    ("openai_responses", "gpt-5.2"),
    ("gemini", "gemini-2.5-pro"),
]


def _body(model: str, part: dict[str, Any]) -> bytes:
    content = [{"type": "text", "text": "see"}, part]
    return json.dumps({"model": model, "messages": [{"role": "user", "content": content}]}).encode()


@pytest.mark.parametrize(("source", "model", "part"), PARTS)
def test_a_native_part_of_a_host_is_forwarded(source: str, model: str, part: dict[str, Any]) -> None:
    data = _body(model, part)
    assert convert(data, source=source, target=source).data == data


@pytest.mark.parametrize("target", TARGETS, ids=[name for name, _ in TARGETS])
@pytest.mark.parametrize(("source", "model", "part"), PARTS)
def test_a_part_of_a_host_is_translated_or_reported_elsewhere(
    source: str, model: str, part: dict[str, Any], target: tuple[str, str]
) -> None:
    name, its_model = target
    out = convert(_body(model, part), source=source, target=name, model=its_model)
    written = out.data.decode()
    assert '"document_url"' not in written
    assert '"type":"file_url"' not in written.replace(" ", "")
    is_there = ADDRESS in written or PDF in written
    assert is_there or any(entry.action == "converted" for entry in out.report.entries), str(out.report)
    assert lint(out.body, name, model=its_model) == ()


def test_a_native_output_schema_stays_without_a_name_and_gets_one_elsewhere() -> None:
    body = {
        "model": "sonar",
        "messages": [{"role": "user", "content": "q"}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
    }
    data = json.dumps(body).encode()
    assert convert(data, source="openai_compatible", target="openai_compatible").data == data
    sent = convert(data, source="openai_compatible", target="openai", model="gpt-4.1").body["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}}
    claude = convert(data, source="openai_compatible", target="anthropic", model="claude-sonnet-4-6").body
    assert claude["output_config"]["format"]["schema"]["properties"] == SCHEMA["properties"]


def _object(names: str, count: int) -> dict[str, Any]:
    properties = {f"{names}{number}": {"type": "string"} for number in range(count)}
    return {"type": "object", "properties": properties, "required": [], "additionalProperties": False}


@pytest.mark.parametrize("count", [11, 12])
def test_the_schema_of_the_output_counts_among_anthropics_strict_limits(count: int) -> None:
    body = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "q"}],
        "tools": [{"name": "read", "description": "d", "input_schema": _object("a", 13), "strict": True}],
        "output_config": {"format": {"type": "json_schema", "schema": _object("b", count)}},
    }
    rules = [violation.rule for violation in lint(body, "anthropic")]
    out = convert(json.dumps(body).encode(), source="anthropic", target="anthropic")
    assert rules == (["anthropic-schema-strict-optional"] if count > 11 else [])
    assert out.body["tools"][0].get("strict") is (count <= 11)
    assert out.body["output_config"] == body["output_config"]
    assert lint(out.body, "anthropic") == ()


@pytest.mark.parametrize("field", [{"logprobs": True}, {"logit_bias": {"1": 2}}])
def test_what_groq_refuses_is_named_and_left_out(field: dict[str, Any]) -> None:
    body = {"model": "llama-3.3-70b-versatile", "messages": [{"role": "user", "content": "q"}], **field}
    assert [violation.rule for violation in lint(body, "groq")] == ["groq-refused-fields"]
    out = convert(json.dumps(body).encode(), source="groq", target="groq")
    assert not out.body.keys() & field.keys()
    assert any(entry.action == "dropped" for entry in out.report.entries)

"""What follows a model's name: what the model demands on any host, and whose model it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolglot
from toolglot import profiles
from toolglot.cli.main import main

HOSTS = ("openai_compatible", "together", "Fireworks", "nvidia", "vllm", "llamacpp", "openrouter", "groq")
"""Hosts that serve open models, with a profile or without."""
FIRST_PARTY = ("anthropic", "openai", "openai_responses", "gemini", "mistral", "cohere", "xai", "deepseek", "kimi")
OTHERS = sorted({*profiles.names()} - {*FIRST_PARTY})
OWN = {
    "anthropic": "claude-opus-4-6",
    "openai": "gpt-4.1",
    "openai_responses": "o3-mini",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "cohere": "command-a-03-2025",
    "xai": "grok-4",
    "deepseek": "deepseek-chat",
    "kimi": "kimi-k2.5",
}
SPARED = {"anthropic": {"deepseek", "kimi"}, "openai_responses": {"xai", "deepseek"}}
"""Whose models others serve under the same protocol, at an address of their own."""
BOX = profiles.Overrides('[profiles.box]\nextends = "openai_compatible"\n[profiles.like-openai]\nextends = "openai"\n')


def claude(model: str = "m") -> dict[str, object]:
    """A request with two calls."""
    used = [{"type": "tool_use", "id": f"toolu_{n}", "name": "read", "input": {}} for n in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "x"} for n in (1, 2)]
    messages = [
        {"role": "user", "content": "Read"},
        {"role": "assistant", "content": used},
        {"role": "user", "content": results},
    ]
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    tools = [{"name": "read", "description": "Reads", "input_schema": schema}]
    return {"model": model, "max_tokens": 64, "messages": messages, "tools": tools}


def ids_of(target: str, model: str, overrides: profiles.Overrides | None = None) -> tuple[str, ...]:
    out = toolglot.convert(claude(), source="anthropic", target=target, model=model, overrides=overrides)
    assert toolglot.lint(out.body, target, model=model, overrides=overrides) == ()
    return out.report.ids.calls


# --- what a model demands ---------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("model", ["moonshotai/Kimi-K2-Instruct-0905", "kimi-k2.5"])
def test_kimi_k2_gets_its_ids_on_any_host(host: str, model: str) -> None:
    assert ids_of(host, model) == ("functions.read:0", "functions.read:1")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("model", ["mistralai/Mistral-Small-3.2-24B-Instruct-2506", "devstral-small"])
def test_mistral_gets_nine_characters_on_any_host(host: str, model: str) -> None:
    for id in ids_of(host, model):
        assert len(id) == 9
        assert id.isalnum()


def test_a_profile_of_ones_own_gets_what_its_models_demand() -> None:
    assert ids_of("box", "kimi-k2", BOX) == ("functions.read:0", "functions.read:1")


@pytest.mark.parametrize("model", ["kimi-k3", "llama-3.3-70b", "qwen3-32b"])
def test_other_models_get_plain_ids_there(model: str) -> None:
    assert ids_of("openai_compatible", model) == ("call_1", "call_2")


def test_kimi_without_a_model_is_kimis_form() -> None:
    out = toolglot.convert(claude(""), source="anthropic", target="kimi")
    assert out.report.ids.calls == ("functions.read:0", "functions.read:1")
    assert out.report.ids.format == "functions.{name}:{n}"


@pytest.mark.parametrize("model", ["Qwen/Qwen3.5-9B", "deepseek-ai/DeepSeek-R1", "zai-org/GLM-4.6", "gpt-oss:120b"])
def test_the_thinking_of_open_models_has_its_field_on_any_host(model: str) -> None:
    body = {
        "model": model,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello", "reasoning_content": "A greeting."},
            {"role": "user", "content": "Go on"},
        ],
    }
    assert toolglot.lint(body, "openai_compatible") == ()
    out = toolglot.repair(body, target="openai_compatible")
    assert out.body == body
    assert len(out.report) == 0
    from_deepseek = toolglot.convert(body, source="deepseek", target="openai_compatible", model=model)
    assert from_deepseek.body["messages"][1]["reasoning_content"] == "A greeting."


# --- whose model it is ------------------------------------------------------------------------------


def foreign(target: str, model: str) -> list[toolglot.Violation]:
    found = toolglot.lint({}, target, model=model)
    return [violation for violation in found if violation.key == "request.foreign_models"]


@pytest.mark.parametrize("target", FIRST_PARTY)
def test_a_model_of_another_first_party_is_a_violation_in_the_providers_own_words(target: str) -> None:
    own = {target, "openai" if target == "openai_responses" else "", "openai_responses" if target == "openai" else ""}
    for owner in {*FIRST_PARTY} - own - SPARED.get(target, set()):
        (violation,) = foreign(target, OWN[owner])
        assert violation.path == "$.model"
        assert violation.wording == "provider"
        assert OWN[owner] in violation.message or target == "deepseek"
    assert foreign(target, OWN[target]) == []
    assert foreign(target, OWN[target].upper()) == []


@pytest.mark.parametrize("target", OTHERS)
def test_clouds_aggregators_and_servers_have_models_of_any_name(target: str) -> None:
    for model in OWN.values():
        assert foreign(target, model) == []


@pytest.mark.parametrize("target", FIRST_PARTY)
def test_names_that_could_be_anybodys_are_left_alone(target: str) -> None:
    for model in ("m", "my-gpt-4", "gpt-oss-120b", "my-model", "opus", "o3x", "llama-3.3-70b", "gemma-3-27b", ""):
        assert foreign(target, model) == []


def test_a_profile_that_extends_a_first_party_is_another_host() -> None:
    assert profiles.get("like-openai", overrides=BOX).request.foreign_models == ()
    assert toolglot.lint({"messages": []}, "like-openai", model="claude-opus-4-6", overrides=BOX) == toolglot.lint(
        {"messages": []}, "like-openai", overrides=BOX
    )


def test_the_library_reports_a_foreign_model_and_sends_it() -> None:
    out = toolglot.convert(claude("claude-opus-4-6"), source="anthropic", target="openai")
    (entry,) = [entry for entry in out.report if "another provider" in entry.reason]
    assert (entry.action, entry.path, entry.gravity) == ("mismatched", "model", "loss")
    assert "'claude-opus-4-6'" in entry.reason
    assert out.body["model"] == "claude-opus-4-6"
    named = toolglot.convert(claude("claude-opus-4-6"), source="anthropic", target="openai", model="gpt-4.1")
    assert not [entry for entry in named.report if "another provider" in entry.reason]


def test_at_its_own_provider_too_and_the_bytes_stay() -> None:
    data = json.dumps({**claude("gpt-4.1")}).encode()
    out = toolglot.repair(data, target="anthropic")
    assert out.data == data
    assert [entry.action for entry in out.report] == ["mismatched"]


def test_a_conversation_that_is_sent_on_reports_it_as_well() -> None:
    conversation = toolglot.Conversation((toolglot.Turn("user", (toolglot.Text("Hi"),)),))
    out = toolglot.request_for(conversation, target="mistral", model="gpt-4.1")
    assert [entry.action for entry in out.report] == ["mismatched"]


# --- the command line -------------------------------------------------------------------------------


def converted(folder: Path, body: object, *options: str, name: str = "request.json") -> int:
    file = folder / name
    file.write_text(json.dumps(body), encoding="utf-8")
    return main(["convert", str(file), *options])


GPT = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}], "frequency_penalty": 0}


def test_convert_asks_for_a_model_that_the_target_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = converted(tmp_path, GPT, "--from", "openai", "--to", "anthropic")
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert "anthropic does not have the model 'gpt-4.1', which belongs to another provider" in captured.err
    assert "--model NAME, or --to anthropic@NAME" in captured.err


@pytest.mark.parametrize(
    "options", [("--to", "anthropic", "--model", "claude-opus-4-6"), ("--to", "anthropic@claude-opus-4-6")]
)
def test_with_the_flag_it_goes_through(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert converted(tmp_path, GPT, "--from", "openai", *options) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "claude-opus-4-6"


def test_to_a_host_that_may_have_it_no_model_is_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert converted(tmp_path, GPT, "--from", "openai", "--to", "openrouter") == 0
    assert json.loads(capsys.readouterr().out)["model"] == "gpt-4.1"


def test_a_line_with_a_foreign_model_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps({**GPT, "model": model}) for model in ("gpt-4.1", "m")), encoding="utf-8")
    assert main(["convert", str(lines), "--from", "openai", "--to", "anthropic"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["model"] == "m"
    assert "--model" in captured.err


def test_lint_finds_it_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"model": "gpt-4.1", "max_tokens": 9, "messages": GPT["messages"]}), encoding="utf-8")
    assert main(["lint", str(file), "--for", "anthropic"]) == 1
    assert "model: gpt-4.1" in capsys.readouterr().out

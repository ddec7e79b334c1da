"""A configuration of another gateway is recognised, and the message shows its first model in our form."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.commands import command
from toolglot.gateway.config.file import ConfigError, ConfigText
from toolglot.gateway.config.foreign import recognise
from toolglot.gateway.config.settings import parse_config

SECRET = "sk-live-" + "0123456789abcdef" * 2


def litellm(model: str, *more: str, name: str = "smart") -> str:
    lines = [
        "# the proxy",
        "model_list:",
        f"  - model_name: {name}   # asked for",
        "    litellm_params:",
        f"      model: {model}",
    ]
    second = [
        "  - model_name: other",
        "    litellm_params:",
        "      model: cohere/command-a",
        "      api_base: https://b.example",
    ]
    return "\n".join(
        [*lines, *(f"      {line}" for line in more), *second, "general_settings:", f"  master_key: {SECRET}", ""]
    )


def router(name: str, url: str, *models: Any, key: str = SECRET) -> str:
    first = {"name": name, "api_base_url": url, "api_key": key, "models": list(models), "transformer": {"use": [name]}}
    return json.dumps(
        {"APIKEY": SECRET, "Providers": [first, {"name": "x"}], "Router": {"default": f"{name},m"}}, indent=2
    )


LITELLM = [
    (
        litellm("anthropic/claude-opus-5", "api_key: os.environ/ANTHROPIC_API_KEY"),
        "smart",
        "anthropic",
        "claude-opus-5",
        "",
    ),
    (litellm("gpt-5.5", f"api_key: {SECRET}"), "smart", "openai", "gpt-5.5", ""),
    (litellm("'claude-opus-5'"), "smart", "anthropic", "claude-opus-5", ""),
    *(
        (litellm(f"vertex_ai/{model}", "api_base: https://v.example/x"), "smart", name, model, "https://v.example/x")
        for name, model in (("vertex_claude", "claude-opus-5"), ("vertex", "gemini-2.5-pro"))
    ),
    (litellm('"openrouter/z-ai/glm-5"'), "smart", "openrouter", "z-ai/glm-5", ""),
    (
        litellm("hosted_vllm/llama", "api_base: http://10.0.0.7:8000/v1"),
        "smart",
        "vllm",
        "llama",
        "http://10.0.0.7:8000/v1",
    ),
    (litellm("ollama_chat/qwen3:8b", name='"local"'), "local", "ollama", "qwen3:8b", ""),
    (litellm("gemini/gemini-3-pro", "api_key: os.environ/MY_KEY"), "smart", "gemini", "gemini-3-pro", ""),
    (
        litellm("sambanova/m1", "api_base: https://api.sambanova.example/v1"),
        "smart",
        "sambanova",
        "m1",
        "https://api.sambanova.example/v1",
    ),
]
ROUTER = [
    (router("my.host", "https://h.example/v1/chat/completions", "m", key="$MY_KEY"), "m", "my.host", "m", ""),
    (router("openrouter", "https://openrouter.ai/api/v1/chat/completions", "a/b"), "a/b", "openrouter", "a/b", ""),
    (
        router("deepseek", "https://api.deepseek.com/chat/completions", "deepseek-chat", key="$DS_KEY"),
        "deepseek-chat",
        "deepseek",
        "deepseek-chat",
        "",
    ),
    (
        router("Volc Engine", "https://ark.example.com/api/v3/chat/completions", "d:1"),
        "d:1",
        "volc-engine",
        "d:1",
        "https://ark.example.com/api/v3",
    ),
]


@pytest.mark.parametrize(("text", "model", "upstream", "requested", "url"), [*LITELLM, *ROUTER])
def test_the_first_model_is_written_as_a_configuration_that_is_accepted(
    text: str, model: str, upstream: str, requested: str, url: str
) -> None:
    found = recognise(text)
    assert found is not None
    assert SECRET not in found.hint
    environ = {
        "HOME": "/home/u",
        **dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"), "k" * 20),
    }
    names = ["MY_KEY", "DS_KEY", "SAMBANOVA_API_KEY", "VOLC_ENGINE_API_KEY", "VLLM_API_KEY", "GEMINI_API_KEY"]
    names.append("GOOGLE_ACCESS_TOKEN")
    config = parse_config(ConfigText("t.toml", found.toml), {**environ, **dict.fromkeys(names, "k" * 20)})
    (settings,) = config.upstreams.values()
    assert settings.name == upstream
    if url:
        assert settings.url == url
    (entry,) = config.models
    assert entry.name == model
    assert [(end.upstream, end.model) for end in entry.destinations] == [(upstream, requested)]


@pytest.mark.parametrize(("text", "program"), [(LITELLM[0][0], "LiteLLM"), (ROUTER[0][0], "claude-code-router")])
def test_serve_says_whose_configuration_it_is_and_what_to_write(tmp_path: Path, text: str, program: str) -> None:
    (tmp_path / "config").write_text(text)
    ended = command("serve", "--config", str(tmp_path / "config"))
    found = recognise(text)
    assert found is not None
    assert ended.code == 2
    assert f"this is a configuration of {program}, not of toolglot" in ended.err
    assert textwrap.indent(found.toml, "        ", lambda line: bool(line.strip())) in ended.err
    assert SECRET not in ended.err


@pytest.mark.parametrize(
    "text",
    [
        "model_list: []\n",
        "model_list:\n  - litellm_params: {}\n",
        litellm("anthropic/a b"),
        router("openrouter", "", 7),
        router("", "", "a"),
        '{"Providers": []}',
        '{"Providers": [7], "Router": {}}',
        '{ // comments\n "Providers": [ {"name": "x"} ], "Router": {} }',
    ],
)
def test_a_file_without_a_readable_model_is_recognised_all_the_same(text: str) -> None:
    with pytest.raises(ConfigError, match="this is a configuration of") as raised:
        parse_config(ConfigText("config"), {}) if not text else ConfigText("config", text).tables()
    assert "toolglot init" in raised.value.hint


@pytest.mark.parametrize(
    "text", ["models:\n  - a", "[gateway", '{"a": 1}', "a: b", '{"Providers": {}}', '"Providers": [']
)
def test_other_text_is_not_toml_and_nothing_more(text: str) -> None:
    assert recognise(text) is None
    with pytest.raises(ConfigError, match="not TOML"):
        ConfigText("config", text).tables()


@given(st.text(alphabet="model_list:\n -apikeybs{}[]\"#'/Providers$", max_size=300))
def test_any_text_gives_an_answer(text: str) -> None:
    for head in ("", "model_list:\n", '{"Providers": [', '{"Providers": [{"name": "a", "models": ["b"]'):
        found = recognise(head + text)
        assert found is None or found.hint

"""Names of models: whom they lead to, with which key, and the error where that is not known."""

from __future__ import annotations

from typing import Any

import pytest

from toolglot import InputError
from toolglot.runtime.session.models import ProviderModels, UpstreamModels
from toolglot.simulator import Simulator
from toolglot.upstream import AsgiTransport, HttpTransport, Upstream

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-1", "OPENAI_API_KEY": "sk-2", "MISTRAL_API_KEY": "sk-3"}


def models(**environ: str) -> ProviderModels:
    return ProviderModels(environ or KEYS, AsgiTransport(Simulator()))


@pytest.mark.parametrize(
    ("name", "found", "model"),
    [
        ("anthropic/claude-opus-5", "anthropic/claude-opus-5", "claude-opus-5"),
        ("Anthropic/claude-opus-5", "anthropic/claude-opus-5", "claude-opus-5"),
        ("claude-opus-5", "anthropic/claude-opus-5", "claude-opus-5"),
        ("GPT-5.5", "openai/GPT-5.5", "GPT-5.5"),
        ("openai_chat/gpt-4.1", "openai/gpt-4.1", "gpt-4.1"),
        ("ollama/hf.co/someone/model", "ollama/hf.co/someone/model", "hf.co/someone/model"),
    ],
)
def test_a_name_leads_to_a_provider(name: str, found: str, model: str) -> None:
    choice = models().find(name)
    assert (choice.name, choice.model) == (found, model)
    assert choice.upstream.name == found.partition("/")[0]


def test_an_upstream_is_made_once_with_its_own_key_only() -> None:
    known = models()
    one, other = known.find("openai/gpt-4.1").upstream, known.find("openai/gpt-5.5").upstream
    assert one is other
    assert one.key == "sk-2"
    assert one.also == ("openai_responses",)
    assert "sk-2" not in repr(one)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("openai/gpt-4.1", "set the environment variable OPENAI_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("bedrock/anthropic.claude", "AWS_BEARER_TOKEN_BEDROCK"),
        ("nobody/knows", "write provider/model; providers: anthropic"),
        ("opneai/gpt-4.1", "did you mean 'openai/gpt-4.1'"),
        ("unheard-of", "unknown model 'unheard-of'"),
        ("openai/", "unknown model 'openai/'"),
        ("", "expected the name of a model"),
        (None, "expected the name of a model"),
        ("x" * 1000, "expected the name of a model"),
    ],
)
def test_what_is_missing_or_wrong_is_reported(name: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        models(HOME="/").find(name)


def test_a_provider_that_needs_no_key_and_one_with_credentials_are_found() -> None:
    assert models(HOME="/").find("ollama/qwen3").upstream.key == ""
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "eu-west-1"}
    found = models(**keys).find("bedrock/claude")
    assert found.upstream.aws is not None
    assert "eu-west-1" in found.upstream.url


async def test_a_transport_of_its_own_is_opened_when_it_is_needed_and_closed() -> None:
    known = ProviderModels(KEYS)
    await known.close()
    upstream = known.find("openai/gpt-4.1").upstream
    assert isinstance(upstream.transport, HttpTransport)
    assert known.find("anthropic/claude-opus-5").upstream.transport is upstream.transport
    await known.close()
    assert known.find("openai/gpt-4.1").upstream.transport is not upstream.transport
    await known.close()


async def test_a_transport_of_the_caller_is_not_closed() -> None:
    transport = AsgiTransport(Simulator())
    known = ProviderModels(KEYS, transport)
    known.find("openai/gpt-4.1")
    await known.close()
    answer = await known.find("openai/gpt-4.1").upstream.send("/models", method="GET")
    assert answer.status == 200
    await answer.close()
    await transport.close()


async def test_upstreams_of_ones_own_are_found_by_their_names_and_closed_once() -> None:
    class Counted(AsgiTransport):
        closed = 0

        async def close(self) -> None:
            Counted.closed += 1
            await super().close()

    transport = Counted(Simulator())
    box = Upstream(name="box", target="vllm", url="http://box/v1", transport=transport)
    other = Upstream(name="openai", target="openai", url="http://box/v1", transport=transport)
    known = UpstreamModels({"Box": box, "openai": other})
    assert known.find("box/llama").upstream is box
    assert known.find("openai_chat/gpt").upstream is other
    for name in ("box/", "llama", "nobody/llama"):
        with pytest.raises(InputError, match="unknown model"):
            known.find(name)
    await known.close()
    assert Counted.closed == 1

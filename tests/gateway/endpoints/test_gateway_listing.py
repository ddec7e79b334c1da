"""Lists of models, as the real SDKs of each provider read them, and as providers write them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from anthropic.pagination import SyncPage
from anthropic.types import ModelInfo
from cohere.types import GetModelResponse
from google import genai
from google.genai.types import HttpOptions
from google.genai.types import Model as GeminiModel
from hypothesis import given
from hypothesis import strategies as st
from mistralai.client.models import BaseModelCard
from ollama import ListResponse, ShowResponse
from openai.pagination import SyncPage as OpenAIPage
from openai.types import Model

from support.gateway.http_client import ask
from support.gateway.served_gateway import gateway
from toolglot import profiles
from toolglot.gateway.endpoints.model_lists import (
    MAX_READ,
    allowed_models,
    decode_models,
    describe_model,
    encode_model,
    encode_models,
)
from toolglot.protocols.base import ListedModel, get
from toolglot.protocols.errors.failures import ProviderError

ALIAS = ListedModel("opus", "openai", "gpt-5.5")
OWN = ListedModel("anthropic/claude-opus-5", "anthropic", "claude-opus-5")
PLAYED = ListedModel("simulated/gemini/gemini-3-pro", "gemini", "gemini-3-pro", True)
MODELS = (ALIAS, OWN, PLAYED)
NAMES = [model.name for model in MODELS]
MANY = [ListedModel(f"up/m{number}", "up", f"m{number}") for number in range(60)]


def names_of(body: dict[str, Any], key: str, field: str) -> list[str]:
    return [model[field] for model in body[key]]


# --- for clients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["openai", "openai_responses", "mistral", "openai_chat"])
def test_openais_sdk_reads_the_list(source: str) -> None:
    body = encode_models(source, MODELS, {})
    page = OpenAIPage[Model].model_validate(body)
    assert [Model.model_validate(model) for model in body["data"]] == page.data
    assert [model.id for model in page.data] == NAMES
    assert page.data[0].owned_by == "openai"
    assert encode_model(source, OWN) == body["data"][1]


def test_anthropics_sdk_reads_the_list() -> None:
    body = encode_models("anthropic", MODELS, {})
    page = SyncPage[ModelInfo].model_validate(body)
    assert [model.id for model in page.data] == NAMES
    assert page.data[0].display_name == "opus (openai/gpt-5.5)"
    assert page.data[1].display_name == "anthropic/claude-opus-5"
    assert "[simulated]" in page.data[2].display_name
    assert (page.has_more, page.first_id, page.last_id) == (False, NAMES[0], NAMES[-1])
    assert ModelInfo.model_validate(encode_model("anthropic", ALIAS)) == page.data[0]


def test_googles_sdk_reads_the_list() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/models"):
            return httpx.Response(200, json=encode_models("gemini", MODELS, dict(request.url.params)))
        return httpx.Response(200, json=encode_model("gemini", ALIAS))

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        client = genai.Client(api_key="k", vertexai=False, http_options=HttpOptions(httpx_client=http))
        read = list(client.models.list(config={"page_size": 2}))
        assert [model.name for model in read] == [f"models/{name}" for name in NAMES]
        assert "generateContent" in (read[0].supported_actions or [])
        assert client.models.get(model="opus") == read[0]


def test_ollamas_sdk_reads_the_list_a_model_and_the_version() -> None:
    read = ListResponse.model_validate(encode_models("ollama", MODELS, {}))
    assert [model.model for model in read.models] == NAMES
    record = get("ollama")
    assert record.models.details is not None
    details = ShowResponse.model_validate(record.models.details(ALIAS))
    assert "tools" in (details.capabilities or [])
    assert details.details is not None
    assert details.details.family == "openai"
    assert record.version.count(".") == 2


def test_the_other_shapes_are_read_by_the_reader_of_providers() -> None:
    for source in ("cohere", "bedrock", "openai", "anthropic", "gemini", "ollama"):
        assert list(decode_models(encode_models(source, MODELS, {}), profiles.get(source).protocol)) == NAMES


# --- what is known of a model -----------------------------------------------------------------------

CLAUDE = describe_model(OWN, profiles.get("anthropic", "claude-opus-5"), {})
GPT = describe_model(ALIAS, profiles.get("openai", "gpt-5.5"), {})
TEXT_ONLY = describe_model(
    ListedModel("fast", "groq", "llama-3.3-70b-versatile"), profiles.get("groq", "llama-3.3-70b-versatile"), {}
)
UNKNOWN = describe_model(ListedModel("box/m", "box", "m"), profiles.get("openai_compatible", "m"), {})


def test_anthropics_sdk_reads_the_limits_and_capabilities() -> None:
    claude, gpt, text_only, unknown = (
        ModelInfo.model_validate(encode_model("anthropic", model)) for model in (CLAUDE, GPT, TEXT_ONLY, UNKNOWN)
    )
    assert (claude.max_input_tokens, claude.max_tokens) == (1_000_000, 128_000)
    assert (gpt.max_input_tokens, gpt.max_tokens) == (922_000, 128_000)
    assert claude.capabilities is not None
    assert gpt.capabilities is not None
    assert text_only.capabilities is not None
    assert claude.capabilities.thinking.types.adaptive.supported
    assert claude.capabilities.context_management.supported
    assert gpt.capabilities.image_input.supported
    assert gpt.capabilities.effort.high.supported
    assert not gpt.capabilities.context_management.supported
    assert not text_only.capabilities.image_input.supported
    assert not text_only.capabilities.thinking.supported
    assert (unknown.max_input_tokens, unknown.max_tokens, unknown.capabilities) == (None, None, None)


def test_openais_clients_read_the_limits_where_routers_write_them() -> None:
    entry = encode_model("openai", GPT)
    assert Model.model_validate(entry).id == "opus"
    assert (entry["context_length"], entry["max_completion_tokens"]) == (922_000, 128_000)
    assert entry["architecture"]["input_modalities"] == ["text", "image", "file"]
    assert "reasoning" in entry["supported_parameters"]
    assert encode_model("openai", UNKNOWN).keys() == {"id", "object", "created", "owned_by"}


def test_googles_sdk_reads_the_limits() -> None:
    read = GeminiModel.model_validate(
        {**encode_model("gemini", GPT), "supported_actions": None}, by_alias=True, extra="ignore"
    )
    assert (read.input_token_limit, read.output_token_limit) == (922_000, 128_000)
    assert encode_model("gemini", GPT)["thinking"] is True
    assert "inputTokenLimit" not in encode_model("gemini", UNKNOWN)


def test_ollamas_sdk_reads_the_context_and_what_the_model_can_do() -> None:
    details = get("ollama").models.details
    assert details is not None
    gpt, text_only, unknown = (ShowResponse.model_validate(details(model)) for model in (GPT, TEXT_ONLY, UNKNOWN))
    assert gpt.modelinfo is not None
    assert gpt.modelinfo[f"{gpt.modelinfo['general.architecture']}.context_length"] == 922_000
    assert gpt.capabilities == ["completion", "tools", "thinking", "vision"]
    assert text_only.capabilities == ["completion", "tools"]
    assert unknown.capabilities == ["completion", "tools"]


def test_mistrals_sdk_reads_the_context_and_what_the_model_can_do() -> None:
    gpt, text_only = (BaseModelCard.model_validate(encode_model("mistral", model)) for model in (GPT, TEXT_ONLY))
    assert gpt.max_context_length == 922_000
    assert (gpt.capabilities.vision, gpt.capabilities.reasoning, gpt.capabilities.function_calling) == (
        True,
        True,
        True,
    )
    assert (text_only.capabilities.vision, text_only.capabilities.reasoning) == (False, False)


def test_coheres_sdk_reads_the_context_and_the_features() -> None:
    read = GetModelResponse.model_validate(encode_model("cohere", GPT))
    assert (read.context_length, read.features) == (922_000, ["tools", "vision", "reasoning"])
    assert GetModelResponse.model_validate(encode_model("cohere", UNKNOWN)).context_length is None


def test_bedrocks_list_names_the_modalities() -> None:
    assert encode_model("bedrock", GPT)["inputModalities"] == ["TEXT", "IMAGE"]
    assert encode_model("bedrock", TEXT_ONLY)["inputModalities"] == ["TEXT"]


@pytest.mark.parametrize("source", ["openai", "anthropic", "gemini", "mistral", "cohere"])
def test_limits_that_the_gateway_lists_are_read_by_another_gateway(source: str) -> None:
    listed = decode_models(encode_models(source, [GPT], {}), profiles.get(source).protocol)["opus"]
    assert listed["window"] == 922_000


@pytest.mark.parametrize(
    ("entry", "limits"),
    [
        ({"id": "m", "context_length": 262144}, {"window": 262_144}),
        ({"id": "m", "max_model_len": 32768}, {"window": 32_768}),
        ({"id": "m", "meta": {"n_ctx": 8192}}, {"window": 8_192}),
        ({"id": "m", "context_window": 131072, "max_completion_tokens": 32768}, {"window": 131_072, "output": 32_768}),
        (
            {
                "id": "m",
                "context_length": 1,
                "architecture": {"input_modalities": ["text", "image", "file"]},
                "top_provider": {"max_completion_tokens": 5},
            },
            {"window": 1, "output": 5, "media": ("image", "document")},
        ),
        (
            {
                "id": "m",
                "max_context_length": 9,
                "capabilities": {"vision": False, "reasoning": True, "function_calling": True},
            },
            {"window": 9, "media": (), "thinking": True, "tools": True},
        ),
        (
            {
                "id": "m",
                "max_input_tokens": 7,
                "max_tokens": 3,
                "capabilities": {"image_input": {"supported": True}, "thinking": {"supported": False}},
            },
            {"window": 7, "output": 3, "media": ("image",), "thinking": False},
        ),
        ({"id": "m", "context_length": 128000.0}, {"window": 128_000}),
        ({"id": "m", "context_length": "much", "capabilities": "all", "architecture": []}, {}),
        ({"id": "m", "context_length": True, "top_provider": 3}, {}),
    ],
)
def test_the_limits_of_a_provider_are_read_from_its_list(entry: dict[str, Any], limits: dict[str, Any]) -> None:
    assert decode_models({"data": [entry]}, "openai_chat")["m"] == limits


def test_the_list_of_a_provider_replaces_the_table_and_the_user_replaces_both() -> None:
    profile = profiles.get("groq", "llama-3.3-70b-versatile")
    assert describe_model(OWN, profile, {"window": 8_000}).limits.window == 8_000
    overrides = profiles.Overrides('[profiles.groq.rules]\n"context.window" = 4_000\n')
    own = profiles.get("groq", "llama-3.3-70b-versatile", overrides=overrides)
    assert describe_model(OWN, own, {"window": 8_000}).limits.window == 4_000


def test_a_name_is_listed_once_the_first_counts() -> None:
    body = encode_models("openai", [ALIAS, OWN, ListedModel("opus", "anthropic", "claude-opus-5")], {})
    assert [(model["id"], model["owned_by"]) for model in body["data"]] == [
        ("opus", "openai"),
        ("anthropic/claude-opus-5", "anthropic"),
    ]


def test_no_models_are_an_empty_list() -> None:
    assert encode_models("openai", [], {}) == {"object": "list", "data": []}
    assert encode_models("anthropic", [], {}) == {"data": [], "has_more": False, "first_id": None, "last_id": None}
    assert encode_models("gemini", [], {}) == {"models": []}


# --- pages ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 20, 60, 1000])
def test_anthropics_pages_hold_every_model_once_in_both_directions(limit: int) -> None:
    names = [model.name for model in MANY]
    seen: list[str] = []
    query = {"limit": str(limit)}
    while True:
        body = encode_models("anthropic", MANY, query)
        seen += names_of(body, "data", "id")
        if not body["has_more"]:
            break
        query = {"limit": str(limit), "after_id": body["last_id"]}
    assert seen == names
    back: list[str] = []
    query = {"limit": str(limit), "before_id": names[-1]}
    while True:
        body = encode_models("anthropic", MANY, query)
        back = names_of(body, "data", "id") + back
        if not body["has_more"]:
            break
        query = {"limit": str(limit), "before_id": body["first_id"]}
    assert back == names[:-1]


def test_anthropics_page_has_twenty_by_default() -> None:
    body = encode_models("anthropic", MANY, {})
    assert len(body["data"]) == 20
    assert body["has_more"]


@pytest.mark.parametrize("size", ["", "0", "7", "1000"])
def test_geminis_pages_hold_every_model_once(size: str) -> None:
    seen: list[str] = []
    query = {"pageSize": size}
    while True:
        body = encode_models("gemini", MANY, query)
        seen += names_of(body, "models", "name")
        if "nextPageToken" not in body:
            break
        query = {"pageSize": size, "pageToken": body["nextPageToken"]}
    assert seen == [f"models/{model.name}" for model in MANY]


@pytest.mark.parametrize(
    ("source", "query"),
    [
        ("anthropic", {"limit": "0"}),
        ("anthropic", {"limit": "1001"}),
        ("anthropic", {"limit": "-1"}),
        ("anthropic", {"limit": "٣"}),
        ("anthropic", {"after_id": "nobody"}),
        ("anthropic", {"before_id": "nobody"}),
        ("gemini", {"pageSize": "x"}),
        ("gemini", {"pageSize": "9" * 5_000}),
        ("gemini", {"pageToken": "nobody"}),
    ],
)
def test_a_page_that_cannot_be_is_refused_with_the_name_of_what_is_wrong(source: str, query: dict[str, str]) -> None:
    with pytest.raises(ProviderError) as caught:
        encode_models(source, MANY, query)
    assert caught.value.failure.kind == "bad_request"
    assert caught.value.failure.param == next(iter(query))


# --- from providers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "body", "names"),
    [
        ("openai_chat", {"object": "list", "data": [{"id": "gpt-5.5"}, {"id": "o3"}]}, ["gpt-5.5", "o3"]),
        ("openai_chat", [{"id": "together/a"}, "b"], ["together/a", "b"]),
        ("anthropic", {"data": [{"type": "model", "id": "claude-opus-5"}], "has_more": False}, ["claude-opus-5"]),
        (
            "gemini",
            {
                "models": [
                    {"name": "models/gemini-3-pro", "supportedGenerationMethods": ["generateContent"]},
                    {"name": "models/embedding-1", "supportedGenerationMethods": ["embedContent"]},
                    {"name": "models/gemma"},
                ]
            },
            ["gemini-3-pro", "gemma"],
        ),
        ("ollama", {"models": [{"name": "llama3:latest", "model": "llama3:8b"}]}, ["llama3:8b"]),
        (
            "cohere",
            {"models": [{"name": "command-a", "endpoints": ["chat"]}, {"name": "embed", "endpoints": ["embed"]}]},
            ["command-a"],
        ),
        ("bedrock", {"modelSummaries": [{"modelId": "anthropic.claude", "modelName": "C"}]}, ["anthropic.claude"]),
        ("bedrock", {"inferenceProfileSummaries": [{"inferenceProfileId": "eu.a"}]}, ["eu.a"]),
    ],
)
def test_a_providers_own_list_is_read(protocol: str, body: Any, names: list[str]) -> None:
    assert list(decode_models(body, protocol)) == names
    assert list(decode_models(json.dumps(body).encode(), protocol)) == names


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[" * 10_000, None, 7, "x", [], {}, {"data": None}, {"data": {"id": "x"}}, {"error": {}}],
)
def test_what_is_no_list_has_no_models(body: Any) -> None:
    assert decode_models(body, "openai_chat") == {}


def test_a_providers_list_is_read_within_bounds_and_without_what_cannot_be_a_name() -> None:
    entries: list[Any] = [{"id": "a"}, {"id": "a"}, {"id": ""}, {"id": "x" * 600}, {"id": "b\n"}, {"id": 7}, 7, None]
    assert list(decode_models({"data": entries}, "openai_chat")) == ["a"]
    assert len(decode_models([f"m{number}" for number in range(10_000)], "openai_chat")) == MAX_READ


@pytest.mark.law
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "models", "id", "name", "x"]), inner),
    ),
    st.sampled_from(["openai_chat", "anthropic", "gemini", "ollama", "cohere", "bedrock", "openai_responses"]),
)
def test_law_whatever_a_provider_answers_the_names_are_names(body: Any, protocol: str) -> None:
    names = decode_models(body, protocol)
    assert all(name and name.isprintable() for name in names)
    assert len(set(names)) == len(names)


# --- for a key that may not ask for everything ------------------------------------------------------


def test_a_model_is_listed_under_a_name_that_the_client_may_ask_for() -> None:
    def leads_to(name: str, upstream: str, model: str) -> bool:
        return (name, upstream, model) == ("claude-opus-5", "anthropic", "claude-opus-5")

    found = allowed_models(MODELS, lambda name: name in ("opus", "claude-opus-5", "gemini-3-pro"), leads_to)
    assert found == [ALIAS, ListedModel("claude-opus-5", "anthropic", "claude-opus-5")]
    assert allowed_models(MODELS, lambda _: True, leads_to) == list(MODELS)
    assert allowed_models(MODELS, lambda _: False, leads_to) == []
    assert allowed_models(MODELS, lambda name: name == "claude-opus-5", lambda *_: False) == []


LISTS = {
    "openai": ("/v1/models", {}, "data", "id"),
    "anthropic": ("/v1/models", {"anthropic-version": "2023-06-01"}, "data", "id"),
    "gemini": ("/v1beta/models?pageSize=1000", {}, "models", "name"),
    "ollama": ("/api/tags", {}, "models", "name"),
}
KEYED = """
[upstreams.openai]
url = "http://127.0.0.1:9/v1"
key_env = "UPSTREAM_KEY"
models = ["gpt-5.5", "gpt-4.1", "o3"]
[keys.some]
key = "env:SOME_KEY"
models = ["gpt-5*", "fast"]
[keys.all]
key = "env:ALL_KEY"
"""
SECRETS = {"SOME_KEY": "s" * 20, "ALL_KEY": "a" * 20, "UPSTREAM_KEY": "u"}


def test_a_client_sees_the_models_that_its_key_may_use_and_no_other_in_every_shape() -> None:
    models = {"fast": "openai/gpt-4.1", "slow": "openai/o3"}
    with gateway(None, upstreams=KEYED, models=models, environ=SECRETS) as served:

        def seen(source: str, key: str) -> list[str]:
            path, headers, field, name = LISTS[source]
            body = ask(served, path, key=SECRETS[key], headers=headers).body
            return [model[name].removeprefix("models/") for model in body[field]]

        for source in LISTS:
            assert seen(source, "SOME_KEY") == ["fast", "gpt-5.5"]
            assert seen(source, "ALL_KEY") == ["fast", "slow", "openai/gpt-5.5", "openai/gpt-4.1", "openai/o3"]


def test_a_client_learns_nothing_of_a_model_that_its_key_may_not_use() -> None:
    with gateway(
        None, upstreams=KEYED, models={"fast": "openai/gpt-4.1", "slow": "openai/o3"}, environ=SECRETS
    ) as served:
        for name, status in (("slow", 403), ("fast", 200), ("gpt-5.5", 200), ("nothing-at-all", 403)):
            for path in (f"/v1/models/{name}", f"/v1beta/models/{name}"):
                assert ask(served, path, key=SECRETS["SOME_KEY"]).status == status
            assert ask(served, "/api/show", {"model": name}, key=SECRETS["SOME_KEY"]).status == status

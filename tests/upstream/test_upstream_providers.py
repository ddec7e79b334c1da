"""What is known of the providers, and the addresses and headers that follow from it."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import InputError, profiles
from toolglot.simulator import PROVIDERS as SIMULATED
from toolglot.simulator import url_of as simulated_url
from toolglot.upstream import (
    PROVIDERS,
    auth_headers,
    aws_credentials,
    check_url,
    count_path,
    join_url,
    key_of,
    models_path,
    path_for,
    url_of,
)
from toolglot.upstream.addresses import protocol_headers
from toolglot.upstream.providers import read_providers


def test_every_profile_has_a_provider_and_every_provider_a_profile() -> None:
    assert {*PROVIDERS} == {*profiles.names()} - {"openai_responses", "openai_compatible"}
    served = {target for provider in PROVIDERS.values() for target in (provider.target, *provider.also)}
    assert served == {*profiles.names()} - {"openai_compatible"}, "which is any host, with an address of the user's"
    assert all(provider.name == name and provider.title and provider.source for name, provider in PROVIDERS.items())


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_has_an_address_or_the_form_of_one(name: str) -> None:
    provider = PROVIDERS[name]
    assert bool(provider.url) != bool(provider.url_form)
    if provider.url:
        assert url_of(provider) == provider.url
        assert provider.url.startswith("https://") or provider.auth == "none"
    assert provider.key_env
    assert all(pattern == pattern.lower() for pattern in provider.models)


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name in SIMULATED])
def test_base_addresses_end_as_those_of_the_simulator_do(name: str) -> None:
    ends_with_version = PROVIDERS[name].url.endswith(("/v1", "/v4"))
    assert ends_with_version == simulated_url("http://host", name).endswith("/v1")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-5", "anthropic"),
        ("gpt-5.5", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("gemini-3-pro", "gemini"),
        ("mistral-large-latest", "mistral"),
        ("command-a-03-2025", "cohere"),
        ("deepseek-chat", "deepseek"),
        ("kimi-k3", "kimi"),
        ("grok-5", "xai"),
        ("qwen3-max", "qwen"),
        ("glm-5", "glm"),
        ("minimax-m3", "minimax"),
        ("us.anthropic.claude-opus-5-v1:0", "bedrock"),
    ],
)
def test_a_model_name_is_naturally_of_one_provider(model: str, name: str) -> None:
    found = [
        provider.name
        for provider in PROVIDERS.values()
        if any(fnmatch.fnmatchcase(model, pattern) for pattern in provider.models)
    ]
    assert found == [name]


def test_a_form_is_filled_in_from_the_environment() -> None:
    assert url_of(PROVIDERS["bedrock"], environ={"AWS_DEFAULT_REGION": "eu-central-1"}) == (
        "https://bedrock-runtime.eu-central-1.amazonaws.com"
    )
    azure = url_of(PROVIDERS["azure"], environ={"AZURE_OPENAI_ENDPOINT": "https://work.openai.azure.com/\n"})
    assert azure == "https://work.openai.azure.com/openai/v1"
    environment = {"GOOGLE_CLOUD_PROJECT": "p-1", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    assert url_of(PROVIDERS["vertex"], environ=environment) == (
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/publishers/google"
    )
    claude = url_of(PROVIDERS["vertex_claude"], environ={**environment, "CLOUD_ML_REGION": "us-east5"})
    assert claude == (
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p-1/locations/us-east5/publishers/anthropic"
    )
    nowhere = url_of(PROVIDERS["vertex"], environ={**environment, "GOOGLE_CLOUD_LOCATION": "global"})
    assert nowhere == "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google"
    europe = url_of(PROVIDERS["vertex"], environ={**environment, "GOOGLE_CLOUD_LOCATION": "eu"})
    assert europe == "https://aiplatform.eu.rep.googleapis.com/v1/projects/p-1/locations/eu/publishers/google"


@pytest.mark.parametrize("name", ["azure", "bedrock", "vertex", "vertex_claude"])
def test_a_missing_address_of_an_account_is_an_error_with_its_setting(name: str) -> None:
    provider = PROVIDERS[name]
    with pytest.raises(InputError) as refused:
        url_of(provider)
    assert refused.value.path == f"{name}.url"
    assert provider.url_form in refused.value.hint
    assert next(iter(provider.url_env.values()))[0] in refused.value.hint
    assert url_of(provider, url="https://own.example/base/") == "https://own.example/base"


@pytest.mark.parametrize("region", ["us-east-1.evil.example/#", "../x", "a/b", "a@b", "-", "x" * 200])
def test_what_is_filled_in_cannot_lead_to_another_host(region: str) -> None:
    with pytest.raises(InputError):
        url_of(PROVIDERS["bedrock"], environ={"AWS_REGION": region})


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "api.example.com",
            "ftp://host",
            "http://",
            "https://:80",
            "https://host:port",
            "https://[::1",
            "https://h h",
        ),
        *(
            "https://user:secret-pass@host/v1",
            "https://host/#here",
            "https://hö.st",
            "https://h\n",
            "https://a/" + "x" * 3000,
        ),
        "https://ho$t/",
    ],
)
def test_what_is_no_base_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as refused:
        check_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("https://host/v1/", "https://host/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("https://h/openai/deployments/{model}?api-version=1", "https://h/openai/deployments/{model}?api-version=1"),
    ],
)
def test_a_base_address_is_taken_without_its_last_slash(url: str, checked: str) -> None:
    assert check_url(url) == checked


def test_keys_come_from_the_first_variable_that_has_one() -> None:
    gemini = PROVIDERS["gemini"]
    assert key_of(gemini, {"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": " a\n"}) == "a"
    assert key_of(gemini, {"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": " "}) == "b"
    assert key_of(gemini, {}) == ""


def test_credentials_of_aws_are_complete_or_none_and_do_not_show() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_SESSION_TOKEN": "t0ken"}
    found = aws_credentials({**environ, "AWS_REGION": "us-east-1"})
    assert found is not None
    assert [found.access_key, found.secret_key, found.session_token] == list(environ.values())
    assert found.region == "us-east-1"
    for shown in (repr(found), str(found), str(found.__rich_repr__())):
        assert "us-east-1" in shown
        assert not any(secret in shown for secret in environ.values())
    assert aws_credentials({"AWS_ACCESS_KEY_ID": "AKIAX"}) is None


def test_a_table_with_an_unknown_key_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="colour"):
        read_providers(b'[x]\ntitle = "X"\ncolour = "red"\n')


# --- paths ------------------------------------------------------------------------------------------

PATHS = {
    "anthropic": "/v1/messages",
    "mistral": "/v1/chat/completions",
    "openai_responses": "/responses",
    "cohere": "/v2/chat",
    "ollama": "/api/chat",
    "gemini": "/v1beta/models/m:generateContent",
    "vertex": "/models/m:generateContent",
    "vertex_claude": "/models/m:rawPredict",
    "bedrock": "/model/m/converse",
}


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_has_a_path_for_answers(name: str) -> None:
    assert path_for(profiles.get(name), "m", False) == PATHS.get(name, "/chat/completions")


def test_streams_have_a_path_of_their_own_where_the_path_says_so() -> None:
    assert path_for(profiles.get("gemini"), "m", True) == "/v1beta/models/m:streamGenerateContent?alt=sse"
    assert path_for(profiles.get("bedrock"), "m", True) == "/model/m/converse-stream"
    assert path_for(profiles.get("vertex_claude"), "m", True) == "/models/m:streamRawPredict"
    assert path_for(profiles.get("openai"), "m", True) == "/chat/completions"


def test_the_names_of_models_that_gemini_lists_are_taken_too() -> None:
    gemini = profiles.get("gemini")
    assert path_for(gemini, "models/gemini-3-pro", False) == "/v1beta/models/gemini-3-pro:generateContent"
    assert path_for(gemini, "tunedModels/mine", False) == "/v1beta/tunedModels/mine:generateContent"


@pytest.mark.law
@given(st.text(), st.sampled_from(["gemini", "vertex", "vertex_claude", "bedrock"]), st.booleans())
def test_a_model_name_stays_in_its_segment_of_the_path(model: str, name: str, stream: bool) -> None:
    model = model.encode("utf-8", "replace").decode()
    path = path_for(profiles.get(name), model, stream)
    url = join_url("https://host/base", path)
    plain = join_url("https://host/base", path_for(profiles.get(name), "m", stream))
    assert url.isascii()
    assert url.count("/") == plain.count("/")
    assert url.count("?") == plain.count("?")
    assert "#" not in url
    assert "/../" not in url
    assert "/./" not in url


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("anthropic", "/v1/messages/count_tokens"),
        ("gemini", "/v1beta/models/m:countTokens"),
        ("vertex", "/models/m:countTokens"),
        ("vertex_claude", "/models/count-tokens:rawPredict"),
        ("bedrock", "/model/m/count-tokens"),
        ("openai_responses", "/v1/responses/input_tokens"),
        ("openai", None),
        ("ollama", None),
    ],
)
def test_tokens_are_counted_where_the_profile_says(name: str, path: str | None) -> None:
    assert count_path(profiles.get(name), "m") == path


def test_counting_paths_meet_the_base_addresses() -> None:
    for name, target, address in (
        ("openai", "openai_responses", "https://api.openai.com/v1/responses/input_tokens"),
        ("kimi", "kimi", "https://api.moonshot.ai/v1/tokenizers/estimate-token-count"),
        ("vllm", "vllm", "http://127.0.0.1:8000/tokenize"),
        ("cohere", "cohere", "https://api.cohere.com/v1/tokenize"),
    ):
        path = count_path(profiles.get(target), "m")
        assert path is not None
        assert join_url(PROVIDERS[name].url, path) == address


@pytest.mark.parametrize("name", profiles.names())
def test_models_are_listed_under_the_base_address_where_there_is_a_list(name: str) -> None:
    path = models_path(profiles.get(name))
    assert (path is None) == (name in ("vertex", "vertex_claude", "bedrock"))
    if path is not None:
        provider = PROVIDERS.get(name.removesuffix("_responses"))
        base = (provider.url if provider is not None else "") or "https://host/v1"
        assert join_url(base, path).count("/v1/") <= 1


@pytest.mark.parametrize(
    ("base", "path", "address"),
    [
        ("https://h", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1/", "/v1/messages", "https://h/v1/messages"),
        ("https://h/v1", "/v1beta/models", "https://h/v1/v1beta/models"),
        ("https://h/v1beta", "/v1beta/models", "https://h/v1beta/models"),
        ("https://h/tools", "/tools/x", "https://h/tools/tools/x"),
        ("https://h/a?k=1", "/b?alt=sse", "https://h/a/b?k=1&alt=sse"),
        ("https://h/o/{model}?v=1", "/chat", "https://h/o/a%2Fb/chat?v=1"),
        ("http://h/v1", "/../tokenize", "http://h/tokenize"),
        ("http://h/x", "/../tokenize", "http://h/x/tokenize"),
    ],
)
def test_a_path_is_joined_to_a_base_address(base: str, path: str, address: str) -> None:
    assert join_url(base, path, model="a/b") == address


# --- headers ----------------------------------------------------------------------------------------


def test_keys_go_where_each_provider_looks_for_them() -> None:
    assert auth_headers("bearer", "k") == {"authorization": "Bearer k"}
    assert auth_headers("x-api-key", "k") == {"x-api-key": "k"}
    assert auth_headers("x-goog-api-key", "k") == {"x-goog-api-key": "k"}
    assert auth_headers("api-key", "k") == {"api-key": "k"}
    assert auth_headers("aws", "k") == auth_headers("none", "k") == {"authorization": "Bearer k"}
    assert auth_headers("bearer", "") == auth_headers("none", "") == {}


def test_streams_are_requested_without_compression() -> None:
    for name in profiles.names():
        assert protocol_headers(profiles.get(name), stream=True)["accept-encoding"] == "identity"
        assert "accept-encoding" not in protocol_headers(profiles.get(name), stream=False)
    assert protocol_headers(profiles.get("bedrock"), True)["accept"] == "application/vnd.amazon.eventstream"
    assert protocol_headers(profiles.get("anthropic"), False)["anthropic-version"] == "2023-06-01"

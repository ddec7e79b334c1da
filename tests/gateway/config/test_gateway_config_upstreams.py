"""`[upstreams]` and `[models]` of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from support.counted_work import no_hang
from support.gateway.config_files import ENV, KEY, config, wrong
from toolglot import profiles
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import ConfigError, config_from_environment, parse_config
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.secret import Secret


def upstream(body: str, **more: str) -> Any:
    return config(f"[upstreams.openai]\n{body}", **more).upstreams["openai"]


def wrong_upstream(body: str, name: str = "openai") -> ConfigError:
    return wrong(f"[upstreams.{name}]\n{body}")


# --- [upstreams] ----------------------------------------------------------------------------------


def test_an_upstream_has_the_defaults_of_its_provider() -> None:
    found = upstream("")
    assert (found.name, found.provider, found.target) == ("openai", "openai", "openai")
    assert (found.url, found.auth, found.key_env) == ("https://api.openai.com/v1", "bearer", "OPENAI_API_KEY")
    assert found.key.reveal() == KEY
    assert (found.connect_seconds, found.first_byte_seconds, found.idle_seconds) == (10, 600, 300)
    assert (found.headers, found.proxy, found.models, found.aws) == ({}, Secret(""), (), None)


def test_only_the_upstreams_of_the_file_count() -> None:
    assert list(config("[upstreams.openai]").upstreams) == ["openai"]


def test_an_upstream_can_have_another_name_key_profile_and_address() -> None:
    found = config(
        """
        [upstreams.work]
        provider = "Claude"
        key_env = "WORK"
        url = "http://localhost:1234/"
        target = "openai_chat"
        auth = "bearer"
        headers = { "X-Team" = "env:TEAM", "x-plain" = "as it is" }
        proxy = "http://proxy.example:3128"
        connect_seconds = 1
        models = ["a", "b-*"]
        """,
        WORK="other",
    ).upstreams["work"]
    assert (found.provider, found.target, found.url) == ("anthropic", "openai", "http://localhost:1234")
    assert (found.key.reveal(), found.auth, found.connect_seconds) == ("other", "bearer", 1.0)
    assert {name: value.reveal() for name, value in found.headers.items()} == {"x-team": "blue", "x-plain": "as it is"}
    assert found.proxy.reveal() == "http://proxy.example:3128"
    assert found.models == ("a", "b-*")


def test_a_server_of_ones_own_needs_an_address_only() -> None:
    text = '[upstreams.box]\nurl = "http://127.0.0.1:1/v1"\n'
    found = config(text).upstreams["box"]
    assert (found.provider, found.target, found.auth, bool(found.key)) == ("", "openai_compatible", "none", False)
    with_key = config(f'{text}key_env = "BOX"', BOX="k").upstreams["box"]
    assert (with_key.auth, with_key.key.reveal()) == ("bearer", "k")
    with_profile = config(f'{text}[profiles.box]\nextends = "vllm"').upstreams["box"]
    assert with_profile.target == "box"
    other = config(f'{text}target = "mine"\n[profiles.mine]\nextends = "vllm"').upstreams["box"]
    assert other.target == "mine"


def test_a_provider_that_needs_no_key_gets_the_one_that_is_there() -> None:
    text = "[upstreams.ollama]"
    assert not config(text).upstreams["ollama"].key
    assert config(text, OLLAMA_API_KEY="k").upstreams["ollama"].key.reveal() == "k"
    assert (
        not parse_config(ConfigText("t", '[upstreams.openai]\nauth = "none"'), {"HOME": "/h"}).upstreams["openai"].key
    )


@pytest.mark.parametrize(
    ("body", "key", "message", "hint"),
    [
        ('api_key = "x"', "api_key", "unknown setting", 'key_env = "NAME'),
        (
            f'key_env = "{KEY}"',
            "key_env",
            "expected the name of an environment variable",
            "must not contain a key itself",
        ),
        ('key_env = "NOPE"', "key_env", "'NOPE' is not set in the environment", 'auth = "none"'),
        ('key_env = "nopeNopeNope"', "key_env", "the variable that is named here is not set", ""),
        ("key_env = 1", "key_env", "expected the name of an environment variable, got a whole number", ""),
        ('key_env = "SPLIT"', "key_env", "'SPLIT' is not set", ""),
        ('provider = "opnai"', "provider", "unknown provider 'opnai'; did you mean 'openai'?", "known: anthropic"),
        ('target = "antropic"', "target", "unknown profile 'antropic'; did you mean 'anthropic'?", "known: anthropic"),
        ('target = "zzzz"', "target", "unknown profile 'zzzz'", "known: anthropic"),
        ('auth = "basic"', "auth", 'one of "bearer", "x-api-key"', ""),
        ('url = "ftp://a"', "url", "expected an address with http", ""),
        ('url = "https://u:p@a.example"', "url", "must not contain a user or a password", "key_env"),
        ('url = "https://a.example/v1?key=1"', "url", "must not have a query", ""),
        ('url = "https://a.example/v1#x"', "url", "must not contain #", ""),
        ('url = "https://a.example/v1#"', "url", "or a fragment", ""),
        ('url = "https://a b"', "url", "without spaces", ""),
        ('url = "http://api.example.com"', "url", "plain http to another machine", "insecure = true"),
        ('url = "http://127.0.0.1.example.com"', "url", "plain http to another machine", ""),
        ('url = "http://127.1"', "url", "plain http to another machine", ""),
        ('url = "http://0.0.0.0"', "url", "plain http to another machine", ""),
        ("headers = 1", "headers", "expected a table of strings, got a whole number", ""),
        ('headers = { "a b" = "x" }', "headers.'a b'", "not the name of a header", ""),
        ('headers = { "Host" = "x" }', "headers.Host", "the gateway sets this header itself", ""),
        ('headers = { "authorization" = "Bearer x" }', "headers.authorization", "looks like a key", "env:NAME"),
        (f'headers = {{ "x-a" = "{KEY}" }}', "headers.x-a", "looks like a key", "env:NAME"),
        ('headers = { "x-a" = "env:NOPE" }', "headers.x-a", "'NOPE' is not set", ""),
        ('headers = { "x-a" = "a\\r\\nb: c" }', "headers.x-a", "one line", ""),
        ('headers = { "x-a" = "1", "X-A" = "2" }', "headers.X-A", "may be set once", ""),
        ('proxy = "socks5://a"', "proxy", "not the address of an HTTP proxy", ""),
        ('proxy = "http://u:p@a"', "proxy", "the file must not contain a password", "env:NAME"),
        ('proxy = "env:NOPE"', "proxy", "'NOPE' is not set", ""),
        ("connect_seconds = 0", "connect_seconds", "a number of seconds above 0, at most 86400, got 0", ""),
        ('models = ["a b"]', "models", "not the name of a model", ""),
        ("models = [1]", "models", "a list of names, got a list", ""),
    ],
)
def test_a_mistake_in_an_upstream_is_reported(body: str, key: str, message: str, hint: str) -> None:
    error = wrong_upstream(body)
    assert error.path == f"toolglot.toml:2: upstreams.openai.{key}"
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("opnai", "", "unknown provider 'opnai'"),
        ("simulated", 'url = "https://a.example"', "not a name for an upstream"),
        ("Upper", 'url = "https://a.example"', "not a name for an upstream"),
        ('"a/b"', 'url = "https://a.example"', "not a name for an upstream"),
        ("mistral", "", "'MISTRAL_API_KEY' is not set in the environment"),
        ("gemini", "", "'GEMINI_API_KEY' and 'GOOGLE_API_KEY' are not set in the environment"),
        ("azure", "", "is unknown: the"),
        ("box", 'url = "https://a.example"\nauth = "bearer"', "no variable is named"),
        ("box", 'url = "http://a.example"', "plain http"),
        ("box", 'url = "ftp://a.example"', "expected an address with http"),
        ("bedrock", 'url = "https://bedrock-runtime.eu-west-1.amazonaws.com"', "neither a key nor AWS credentials"),
        ("box", 'url = "https://a.example"\nauth = "aws"', "neither a key nor AWS credentials"),
    ],
)
def test_an_upstream_that_cannot_work_is_reported_when_the_file_is_read(name: str, body: str, message: str) -> None:
    error = wrong_upstream(body, name)
    assert message in error.message
    assert error.path.startswith("toolglot.toml:")


def test_upstreams_that_are_no_tables_are_reported() -> None:
    assert "expected a table, got a string" in wrong('[upstreams]\nopenai = "x"').message
    assert "expected a table" in wrong("upstreams = 1").message


def test_a_key_that_cannot_be_sent_is_reported_and_not_shown() -> None:
    error = wrong("[upstreams.openai]", {**ENV, "OPENAI_API_KEY": f"{KEY}\r\n{KEY}"})
    assert error.message == "the value of 'OPENAI_API_KEY' cannot be sent as a key"


def test_signing_needs_a_region() -> None:
    aws = {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": "s"}
    text = '[upstreams.bedrock]\nurl = "https://bedrock.example"'
    assert "region" in wrong(text, {**ENV, **aws}).message
    assert config(text, **aws, AWS_REGION="eu-west-1").upstreams["bedrock"].aws is not None


def test_plain_http_is_allowed_where_the_settings_allow_it_and_on_this_machine() -> None:
    assert upstream('url = "http://a.example"\ninsecure = true').url == "http://a.example"
    for host in ("127.0.0.1:1", "[::1]:8000", "localhost"):
        assert upstream(f'url = "http://{host}/v1/"').url == f"http://{host}/v1"


def test_every_known_provider_can_be_configured_by_its_name_alone() -> None:
    environ = {"HOME": "/h"}
    for provider in PROVIDERS.values():
        environ[provider.key_env[0]] = "k"
        environ |= {names[0]: "eu-west-1" for names in provider.url_env.values()}
    environ["AZURE_OPENAI_ENDPOINT"] = "https://mine.openai.azure.com"
    text = "\n".join(f"[upstreams.{name}]" for name in PROVIDERS)
    found = parse_config(ConfigText("t", text), environ)
    assert list(found.upstreams) == list(PROVIDERS)
    assert list(config_from_environment(environ).upstreams) == list(PROVIDERS)
    assert all(profiles.get(each.target).name == each.target for each in found.upstreams.values())


# --- [models] -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "name", "message", "hint"),
    [
        ('a = "b"\nb = "c"\nc = "A"', "a", "lead to each other: 'a' → 'b' → 'c' → 'a'", "lead to an upstream"),
        ('a = "a"', "a", "lead to each other: 'a' → 'a'", ""),
        ('x = "b"\nb = "b"', "x", "lead to each other: 'b' → 'b'", ""),
        ('a = "opnai/gpt"', "a", "'opnai/gpt' names no upstream", "did you mean openai/…?"),
        ('a = "gpt-5.5"', "a", "'gpt-5.5' names no upstream", 'write "openai/gpt-5.5"'),
        ('a = "openai/"', "a", "'openai/' names no upstream", "upstreams of this file: openai"),
        ('a = "simulated/opnai/x"', "a", "names no upstream", 'written like "simulated/openai/gpt-5.5"'),
        ('a = "kimi/kimi-k3"', "a", "names no upstream", 'a simulated model is written "simulated/kimi/kimi-k3"'),
        ('a = "openai/gpt-*"', "a", "is a pattern, not a model", '"openai/*"'),
        ('a = ""', "a", "expected an upstream", ""),
        ("a = [7]", "a", "expected an upstream", ""),
        ('a = "openai/x"\nA = "openai/x"', "A", "duplicate name", ""),
        ('"a b" = "openai/x"', "'a b'", "not the name of a model", ""),
        ('"" = "openai/x"', "''", "not the name of a model", ""),
    ],
)
def test_a_name_that_leads_nowhere_is_reported_when_the_file_is_read(
    models: str, name: str, message: str, hint: str
) -> None:
    error = wrong(f'[upstreams.openai]\nmodels = ["gpt-5.5"]\n[models]\n{models}')
    assert error.path.endswith(f": models.{name}")
    assert message in error.message
    assert hint in error.hint


def test_a_name_leads_to_no_simulated_model_where_those_are_forbidden() -> None:
    error = wrong('[gateway]\nsimulate = false\n[models]\na = "simulated/openai/x"')
    assert "simulate = false in [gateway] forbids" in error.hint


def test_a_file_without_upstreams_says_so_where_a_name_leads_nowhere() -> None:
    assert "no [upstreams.NAME] yet" in wrong('[models]\na = "x/y"').hint


def test_too_many_names_are_refused() -> None:
    entries = "\n".join(f'm{number} = "openai/x"' for number in range(1001))
    assert "more than 1000 entries" in wrong(f"[upstreams.openai]\n[models]\n{entries}").message


def test_a_long_chain_of_names_is_followed_in_bounded_time() -> None:
    chain = "\n".join(f'm{number} = "m{number + 1}"' for number in range(999)) + '\nm999 = "openai/x"'
    with no_hang():
        found = config(f"[upstreams.openai]\n[models]\n{chain}")
    assert {entry.destination.model for entry in found.models} == {"x"}

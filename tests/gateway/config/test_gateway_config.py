"""The gateway's configuration: what a file may say, what it may not, and that no key is ever shown."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import pickle
import tempfile
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import no_hang
from toolglot import InputError, Policy, profiles
from toolglot.gateway.accounting.client_keys import KeyRing
from toolglot.gateway.config import file as config_file
from toolglot.gateway.config.file import ConfigText, line_of, read_text
from toolglot.gateway.config.settings import Config, ConfigError, discovered, parse_config, read_config
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.secret import Secret

KEY = "sk-live-0123456789abcdef"
ENV = {"HOME": "/home/user", "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": "sk-ant-0123456789", "TEAM": "blue"}
ROOT = Path(__file__).parents[3]


def config(text: str, **more: str) -> Config:
    return parse_config(ConfigText("toolglot.toml", text), {**ENV, **more})


def wrong(text: str, environ: Mapping[str, str] = ENV) -> ConfigError:
    """The error that a text gives, in which no key is."""
    with pytest.raises(ConfigError) as caught:
        parse_config(ConfigText("toolglot.toml", text), environ)
    assert KEY not in str(caught.value)
    return caught.value


def client_of(found: Config, key: str) -> str | None:
    """The client that a key is of; None: it is refused."""
    try:
        return asyncio.run(KeyRing(None, found.gateway.client_keys).admit(key))
    except ProviderError:
        return None


def upstream(body: str, **more: str) -> Any:
    return config(f"[upstreams.openai]\n{body}", **more).upstreams["openai"]


def wrong_upstream(body: str, name: str = "openai") -> ConfigError:
    return wrong(f"[upstreams.{name}]\n{body}")


# --- which file -------------------------------------------------------------------------------------


def test_the_file_that_is_named_comes_first_then_the_variable_then_the_folder_then_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_config(None, ENV).origin == ""
    for number, name in enumerate(("toolglot.toml", "variable.toml", "named.toml")):
        (tmp_path / name).write_text(f"[gateway]\nport = {number}\n")
    environ = {**ENV, "TOOLGLOT_CONFIG": "variable.toml"}
    assert read_config(None, ENV).gateway.port == 0
    assert read_config(None, environ).gateway.port == 1
    assert read_config(tmp_path / "named.toml", environ).gateway.port == 2


def test_a_file_that_is_named_and_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_config(tmp_path / "none.toml", ENV)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(None, {"TOOLGLOT_CONFIG": str(tmp_path)})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config("a\0b", ENV)


def test_an_empty_file_has_the_defaults_and_a_note() -> None:
    found = config("")
    settings = found.gateway
    assert (settings.host, settings.port, settings.client_keys) == ("127.0.0.1", 8400, ())
    assert (settings.retention_hours, settings.reports, settings.log) == (168, 500, "text")
    assert (settings.simulate, settings.middleware, found.policy) == (None, (), Policy(server_tools="spare"))
    assert (found.upstreams, found.models, found.overrides) == ({}, (), None)
    assert "names no upstream" in found.notes[0]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_bytes(b"\xef\xbb\xbf[gateway]\nport = 1\n")
    assert read_config(file, ENV).gateway.port == 1


# --- without a file ---------------------------------------------------------------------------------


def test_without_a_file_every_provider_with_a_key_is_an_upstream_and_nothing_else_is_simulated() -> None:
    found = discovered({**ENV, "MISTRAL_API_KEY": " key\n", "GROQ_API_KEY": "  "})
    assert list(found.upstreams) == ["anthropic", "openai", "mistral"]
    assert found.upstreams["mistral"].key.reveal() == "key"
    assert found.upstreams["anthropic"].url == "https://api.anthropic.com"
    assert not found.simulates_known
    assert found.allows_simulated
    assert found.notes == ()
    assert discovered({"HOME": "/h"}).upstreams == {}
    assert discovered({"HOME": "/h"}).simulates_known


def test_without_a_file_the_first_variable_of_a_provider_that_is_set_counts() -> None:
    first = discovered({"HOME": "/h", "GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}).upstreams["gemini"]
    second = discovered({"HOME": "/h", "GOOGLE_API_KEY": "b"}).upstreams["gemini"]
    assert (first.key_env, first.key.reveal()) == ("GEMINI_API_KEY", "a")
    assert (second.key_env, second.key.reveal()) == ("GOOGLE_API_KEY", "b")


def test_without_a_file_what_cannot_be_used_is_told_and_left_out() -> None:
    found = discovered({"HOME": "/h", "AZURE_OPENAI_API_KEY": "k", "OPENAI_API_KEY": f"{KEY}\n{KEY}"})
    assert found.upstreams == {}
    assert not found.simulates_known, "a key is there"
    assert [note.split(":")[0] for note in found.notes] == ["openai is left out", "azure is left out"]
    assert KEY not in str(found.notes)


def test_without_a_file_a_client_key_of_the_environment_is_demanded() -> None:
    found = discovered({"HOME": "/h", "TOOLGLOT_CLIENT_KEY": "c" * 20})
    assert client_of(found, "c" * 20)
    assert client_of(found, "other") is None
    assert found.listening_at("0.0.0.0").gateway.host == "0.0.0.0"  # noqa: S104


def test_credentials_of_aws_are_a_key_of_bedrock() -> None:
    aws = {"HOME": "/h", "AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": "secret-value"}
    found = discovered({**aws, "AWS_REGION": "eu-west-1"}).upstreams["bedrock"]
    assert found.url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert found.aws is not None
    assert not found.key
    assert "secret-value" not in repr(found)
    assert "region" in discovered(aws).notes[0]
    assert discovered({"HOME": "/h", "AWS_ACCESS_KEY_ID": "AKIA0123456789"}).upstreams == {}
    with_key = discovered({**aws, "AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "k"}).upstreams["bedrock"]
    assert (with_key.key.reveal(), with_key.aws) == ("k", None)


# --- [gateway] --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("[gatway]", "toolglot.toml:1: gatway", "no table", "did you mean gateway?"),
        (
            "zzz = 1",
            "toolglot.toml:1: zzz",
            "no table",
            "known: [gateway], [policy], [upstreams], [models], [keys], [prices], [profiles]",
        ),
        ("\n[gateway]\nprot = 1", "toolglot.toml:3: gateway.prot", "no setting", "did you mean port?"),
        ("gateway = 1", "toolglot.toml:1: gateway", "expected a table, got a whole number", "write [gateway]"),
        ('[gateway]\nport = "x"', "toolglot.toml:2: gateway.port", "from 0 to 65535, got 'x'", ""),
        ("[gateway]\nport = true", "toolglot.toml:2: gateway.port", "from 0 to 65535, got true", ""),
        ("[gateway]\nport = 65536", "toolglot.toml:2: gateway.port", "from 0 to 65535, got 65536", ""),
        ("[gateway]\nport = 1979-05-27", "toolglot.toml:2: gateway.port", "got a date or time", ""),
        ("gateway.port = 1.5", "toolglot.toml:1: gateway.port", "got 1.5", ""),
        ("[gateway]\nretention_hours = inf", "toolglot.toml:2: gateway.retention_hours", "got inf", ""),
        ("[gateway]\nretention_hours = nan", "toolglot.toml:2: gateway.retention_hours", "got nan", ""),
        ('[gateway]\nlog = "josn"', "toolglot.toml:2: gateway.log", 'one of "text", "json", "off", got \'josn\'', ""),
        ("[gateway]\nlog = []", "toolglot.toml:2: gateway.log", "got a list", ""),
        ("[gateway]\nreports = -1", "toolglot.toml:2: gateway.reports", "from 0 to 1000000, got -1", ""),
        (
            '[gateway]\nmiddleware = ["x"]',
            "toolglot.toml:2: gateway.middleware",
            "no middleware",
            "package.module:Name",
        ),
        ('[gateway]\nhost = "a b"', "toolglot.toml:2: gateway.host", "no address to listen on", "127.0.0.1"),
        ('[gateway]\nstore = "a\\u0000"', "toolglot.toml:2: gateway.store", "no name of a file", ""),
        ("[policy]\nrequird = 1", "toolglot.toml:2: policy.requird", "no setting", "did you mean required?"),
        ('[policy]\nrequired = "x"', "toolglot.toml:2: policy.required", "auto, keep, filter, aggressive", ""),
        ("[policy]\nbridge_user = {}", "toolglot.toml:2: policy.bridge_user", "expected a string", ""),
        ("policy = []", "toolglot.toml:1: policy", "expected a table, got a list", ""),
        ('[profiles.b.rules]\n"ids.x" = 1', "toolglot.toml:2: profiles.b.rules.'ids.x'", "unknown key", "ids."),
        ('[profiles.b]\nextends = "nope"', "toolglot.toml:1: profiles", "does not exist", "allowed"),
        ("[upstreams.openai]\n[models]\n\nx = 3", "toolglot.toml:4: models.x", "expected the upstream", "openai/gpt"),
    ],
)
def test_a_mistake_is_told_with_its_line_its_key_and_what_to_do(text: str, place: str, message: str, hint: str) -> None:
    error = wrong(text)
    assert error.path == place
    assert message in error.message
    assert hint in error.hint


def test_what_is_set_is_there() -> None:
    found = config(
        """
        [gateway]
        host = "::1"
        port = 0
        retention_hours = 0.5
        ping_seconds = 0
        max_body_bytes = 4096
        max_concurrent = 7
        log = "json"
        reports = 0
        simulate = true
        middleware = ["my.module:Name.Inner"]
        [policy]
        server_tools = "drop"
        [profiles.box]
        extends = "vllm"
        """
    )
    settings = found.gateway
    assert (settings.host, settings.port, settings.retention_hours, settings.ping_seconds) == ("::1", 0, 0.5, 0)
    assert (settings.max_body_bytes, settings.max_concurrent, settings.log) == (4096, 7, "json")
    assert (settings.reports, settings.simulate, settings.middleware) == (0, True, ("my.module:Name.Inner",))
    assert found.policy.server_tools == "drop"
    assert profiles.get("box", overrides=found.overrides).name == "box"
    assert found.notes == ()


def test_the_store_is_a_file_in_full_or_a_word() -> None:
    def store(value: str, **environ: str) -> str:
        return parse_config(ConfigText("/etc/toolglot.toml", f'[gateway]\nstore = "{value}"'), environ).gateway.store

    assert store("", HOME="/h") == "/h/.local/state/toolglot/gateway.db"
    assert store("", HOME="/h", XDG_STATE_HOME="/s") == "/s/toolglot/gateway.db"
    assert store("", HOME="/h", XDG_STATE_HOME="relative") == "/h/.local/state/toolglot/gateway.db"
    assert store("~/x.db", HOME="/h") == "/h/x.db"
    assert store("x.db") == "/etc/x.db"
    assert store("/x.db") == "/x.db"
    assert store(":memory:") == ":memory:"
    assert store("off") == "off"


def test_without_a_home_the_store_has_to_be_named() -> None:
    for environ in ({}, {"HOME": "relative"}):
        assert "no home directory" in wrong("", environ).message
    assert parse_config(ConfigText("t", '[gateway]\nstore = "off"'), {}).gateway.store == "off"
    with pytest.raises(ConfigError, match="set HOME"):
        discovered({})


# --- client keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "127.0.0.1.example.com"])  # noqa: S104
def test_any_address_but_loopback_demands_client_keys(host: str) -> None:
    error = wrong(f'[gateway]\nhost = "{host}"')
    assert "clients must have a key" in error.message
    assert "client_keys" in error.hint
    keys = 'client_keys = ["env:TOOLGLOT_CLIENT_KEY"]'
    found = config(f'[gateway]\nhost = "{host}"\n{keys}', TOOLGLOT_CLIENT_KEY="c" * 16)
    assert found.gateway.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_key(host: str) -> None:
    assert client_of(config(f'[gateway]\nhost = "{host}"'), "") is not None


def test_the_command_line_cannot_open_what_the_file_closed() -> None:
    found = config("")
    assert found.listening_at(None, 1).gateway.port == 1
    assert found.listening_at("::1").gateway.host == "::1"
    assert found.listening_at() == found
    with pytest.raises(ConfigError, match="clients must have a key") as caught:
        found.listening_at("0.0.0.0")  # noqa: S104
    assert caught.value.path == "--host"
    with pytest.raises(ConfigError, match="65535"):
        found.listening_at(None, 70_000)


def test_clients_are_known_by_the_hash_of_their_key() -> None:
    hashed = hashlib.sha256(b"second").hexdigest()
    found = config(f'[gateway]\nclient_keys = ["env:ONE", "sha256:{hashed.upper()}"]', ONE=" first-long-enough\n")
    assert client_of(found, "first-long-enough") == hashlib.sha256(b"first-long-enough").hexdigest()
    assert client_of(found, "second") == hashed
    assert client_of(found, "third") is None
    assert client_of(found, "") is None
    assert client_of(found, "\ud800é") is None
    assert "first" not in repr(found)


def test_without_client_keys_clients_are_still_told_apart() -> None:
    found = config("")
    assert client_of(found, "a") != client_of(found, "b")
    assert client_of(found, "") == client_of(found, "")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (KEY, "a key itself must not stand in the file"),
        (f"env:{KEY}", "a key itself must not stand in the file"),
        ("plain", "a key itself must not stand in the file"),
        ("env:", "a key itself must not stand in the file"),
        ("sha256:12", "64 hexadecimal digits"),
        ("env:NOT_SET", "'NOT_SET' is not set"),
        ("env:abcdefSecretOne", "the variable that is named here is not set"),
        ("env:TWO_LINES", "no client can send"),
    ],
)
def test_a_client_key_is_a_variable_or_a_hash(entry: str, message: str) -> None:
    error = wrong(f'[gateway]\nclient_keys = ["{entry}"]', {**ENV, "TWO_LINES": "a\nb"})
    assert message in error.message
    assert error.path == "toolglot.toml:2: gateway.client_keys"
    assert "abcdefSecretOne" not in str(error)


def test_the_keys_of_the_store_may_be_demanded_where_there_is_one() -> None:
    found = config('[gateway]\nhost = "0.0.0.0"\nclient_keys = ["store"]')
    assert found.gateway.client_keys == ("store",)
    assert client_of(found, "store") is None
    for store in (":memory:", "off"):
        error = wrong(f'[gateway]\nstore = "{store}"\nclient_keys = ["store"]')
        assert error.message == '"store" needs a store in a file'
        assert error.path == "toolglot.toml:3: gateway.client_keys"


def test_a_key_may_have_limits() -> None:
    found = config(
        '[gateway]\nhost = "0.0.0.0"\n[keys.ci]\nkey = "env:CI"\nmodels = ["gpt-*"]\nspend_per_day = 0.1\n'
        f'[keys."big team"]\nkey = "sha256:{"A" * 64}"\ntokens_total = 5',
        CI="first-long-enough",
    )
    assert list(found.keys) == ["ci", "big team"]
    assert found.gateway.client_keys == (hashlib.sha256(b"first-long-enough").hexdigest(), "a" * 64)
    assert found.keys["ci"].limits()["spend_per_day"] == Decimal("0.1")
    ring = KeyRing(None, found.gateway.client_keys, found.keys)
    key = ring.key_of("a" * 64)
    assert key is not None
    assert (key.name, key.tokens_total, key.is_limited) == ("big team", 5, True)
    assert "first-long-enough" not in f"{found} {found!r}"
    assert config('[keys.a]\nkey = "env:CI"', CI="short").notes[0].startswith("'CI' is shorter")


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("keys = 1", "keys", "expected a table, got a whole number"),
        ("[keys]\na = 1", "keys.a", "expected a table, got a whole number"),
        ('[keys.a]\nmodels = ["a"]', "keys.a", "it is not said which key this is"),
        (f'[keys.a]\nkey = "{KEY}"', "keys.a.key", "a key itself must not stand in the file"),
        ('[keys.a]\nkey = "store"', "keys.a.key", "a key itself must not stand in the file"),
        ('[keys.a]\nkey = "env:NOWHERE"', "keys.a.key", "'NOWHERE' is not set in the environment"),
        ("[keys.a]\nkey = 7", "keys.a.key", "expected a string, got a whole number"),
        ('[keys.a]\nkey = "env:TEAM"\nrpm = 7', "keys.a.rpm", "there is no setting of this name"),
        (
            '[keys.a]\nkey = "env:TEAM"\ntokens_total = 0',
            "keys.a.tokens_total",
            "expected a whole number from 1 to 1000000000000000, got 0",
        ),
        (
            '[keys.a]\nkey = "env:TEAM"\nspend_total = 0',
            "keys.a.spend_total",
            "expected a number above 0, at most 1000000, got 0",
        ),
        ('[keys.a]\nkey = "env:TEAM"\n[keys.b]\nkey = "env:TEAM"', "keys.b.key", "another name has the same key"),
        (f'[keys."{"a" * 65}"]\nkey = "env:TEAM"', f"keys.{'a' * 65}", "a name has 1 to 64 printable characters"),
    ],
)
def test_a_mistake_in_a_key_is_told(text: str, key: str, message: str) -> None:
    error = wrong(text)
    assert error.message == message
    assert error.path.endswith(f": {key}")


def test_too_many_keys_belong_into_the_store() -> None:
    lines = "".join(f'k{number} = {{ key = "env:TEAM" }}\n' for number in range(1001))
    assert "toolglot keys add" in wrong(f"[keys]\n{lines}").hint


def test_client_keys_that_are_no_list_are_not_quoted() -> None:
    assert wrong(f'[gateway]\nclient_keys = "{KEY}"').message == "expected a list of strings, got a string"


def test_a_short_client_key_is_told_of() -> None:
    (note, _) = config('[gateway]\nclient_keys = ["env:SHORT"]', SHORT="abc").notes
    assert "'SHORT' is shorter than 16 characters" in note
    assert "abc" not in note


# --- secrets ----------------------------------------------------------------------------------------


def test_a_secret_is_shown_by_nothing_but_reveal() -> None:
    secret = Secret(KEY)
    assert secret.reveal() == KEY
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", repr([secret]), repr({"a": secret})):
        assert KEY not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.deepcopy(secret)
    with pytest.raises(TypeError):
        msgspec.json.encode(secret)
    assert secret == Secret(KEY)
    assert secret != Secret("x")
    assert secret != KEY
    assert len({secret, Secret(KEY)}) == 1
    assert not Secret("")


def test_a_config_shows_no_key() -> None:
    found = config(
        '[gateway]\nclient_keys = ["env:CLIENT"]\n[upstreams.openai]\nheaders = { "x-a" = "env:HEADER" }\n'
        'proxy = "env:PROXY"',
        CLIENT="client-key-of-mine-1",
        HEADER="header-secret",
        PROXY="http://me:pass-word@proxy.example:3128",
    )
    shown = f"{found!r} {found}"
    assert not [word for word in (KEY, "client-key", "header-secret", "pass-word") if word in shown]
    assert found.upstreams["openai"].headers["x-a"].reveal() == "header-secret"
    assert found.upstreams["openai"].proxy.reveal() == "http://me:pass-word@proxy.example:3128"


def test_a_config_is_frozen() -> None:
    found = config("[upstreams.openai]")
    for value, field in ((found, "origin"), (found.gateway, "port"), (found.upstreams["openai"], "url")):
        with pytest.raises(AttributeError):
            setattr(value, field, "x")


# --- [upstreams] ------------------------------------------------------------------------------------


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
        ('api_key = "x"', "api_key", "no setting", 'key_env = "NAME'),
        (f'key_env = "{KEY}"', "key_env", "expected the name of an environment variable", "a key itself must not"),
        ('key_env = "NOPE"', "key_env", "'NOPE' is not set in the environment", 'auth = "none"'),
        ('key_env = "nopeNopeNope"', "key_env", "the variable that is named here is not set", ""),
        ("key_env = 1", "key_env", "expected the name of an environment variable, got a whole number", ""),
        ('key_env = "SPLIT"', "key_env", "'SPLIT' is not set", ""),
        ('provider = "opnai"', "provider", "unknown provider 'opnai'; did you mean 'openai'?", "known: anthropic"),
        ('target = "antropic"', "target", "unknown profile 'antropic'; did you mean 'anthropic'?", "known: anthropic"),
        ('target = "zzzz"', "target", "unknown profile 'zzzz'", "known: anthropic"),
        ('auth = "basic"', "auth", 'one of "bearer", "x-api-key"', ""),
        ('url = "ftp://a"', "url", "expected an address with http", ""),
        ('url = "https://u:p@a.example"', "url", "no name and no password", "key_env"),
        ('url = "https://a.example/v1?key=1"', "url", "no query", ""),
        ('url = "https://a.example/v1#x"', "url", "no part after #", ""),
        ('url = "https://a.example/v1#"', "url", "no fragment", ""),
        ('url = "https://a b"', "url", "without spaces", ""),
        ('url = "http://api.example.com"', "url", "plain http to another machine", "insecure = true"),
        ('url = "http://127.0.0.1.example.com"', "url", "plain http to another machine", ""),
        ('url = "http://127.1"', "url", "plain http to another machine", ""),
        ('url = "http://0.0.0.0"', "url", "plain http to another machine", ""),
        ("headers = 1", "headers", "expected a table of strings, got a whole number", ""),
        ('headers = { "a b" = "x" }', "headers.'a b'", "no name of a header", ""),
        ('headers = { "Host" = "x" }', "headers.Host", "written by the gateway itself", ""),
        ('headers = { "authorization" = "Bearer x" }', "headers.authorization", "looks like a key", "env:NAME"),
        (f'headers = {{ "x-a" = "{KEY}" }}', "headers.x-a", "looks like a key", "env:NAME"),
        ('headers = { "x-a" = "env:NOPE" }', "headers.x-a", "'NOPE' is not set", ""),
        ('headers = { "x-a" = "a\\r\\nb: c" }', "headers.x-a", "one line", ""),
        ('headers = { "x-a" = "1", "X-A" = "2" }', "headers.X-A", "there once", ""),
        ('proxy = "socks5://a"', "proxy", "no address of an http proxy", ""),
        ('proxy = "http://u:p@a"', "proxy", "a password must not stand in the file", "env:NAME"),
        ('proxy = "env:NOPE"', "proxy", "'NOPE' is not set", ""),
        ("connect_seconds = 0", "connect_seconds", "a number of seconds above 0, at most 86400, got 0", ""),
        ('models = ["a b"]', "models", "no name of a model", ""),
        ("models = [1]", "models", "a list of names, got a list", ""),
    ],
)
def test_a_mistake_in_an_upstream_is_told(body: str, key: str, message: str, hint: str) -> None:
    error = wrong_upstream(body)
    assert error.path == f"toolglot.toml:2: upstreams.openai.{key}"
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("opnai", "", "unknown provider 'opnai'"),
        ("simulated", 'url = "https://a.example"', "no name for an upstream"),
        ("Upper", 'url = "https://a.example"', "no name for an upstream"),
        ('"a/b"', 'url = "https://a.example"', "no name for an upstream"),
        ("mistral", "", "'MISTRAL_API_KEY' is not set in the environment"),
        ("gemini", "", "'GEMINI_API_KEY' and 'GOOGLE_API_KEY' are not set in the environment"),
        ("azure", "", "is unknown: the"),
        ("box", 'url = "https://a.example"\nauth = "bearer"', "no variable is named"),
        ("box", 'url = "http://a.example"', "plain http"),
        ("box", 'url = "ftp://a.example"', "expected an address with http"),
        ("bedrock", 'url = "https://bedrock-runtime.eu-west-1.amazonaws.com"', "neither a key nor the credentials"),
        ("box", 'url = "https://a.example"\nauth = "aws"', "neither a key nor the credentials"),
    ],
)
def test_an_upstream_that_cannot_work_is_told_when_the_file_is_read(name: str, body: str, message: str) -> None:
    error = wrong_upstream(body, name)
    assert message in error.message
    assert error.path.startswith("toolglot.toml:")


def test_upstreams_that_are_no_tables_are_told() -> None:
    assert "expected a table, got a string" in wrong('[upstreams]\nopenai = "x"').message
    assert "expected a table" in wrong("upstreams = 1").message


def test_a_key_that_cannot_be_sent_is_told_and_not_shown() -> None:
    error = wrong("[upstreams.openai]", {**ENV, "OPENAI_API_KEY": f"{KEY}\r\n{KEY}"})
    assert error.message == "'OPENAI_API_KEY' holds what cannot be sent as a key"


def test_signing_needs_a_region() -> None:
    aws = {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": "s"}
    text = '[upstreams.bedrock]\nurl = "https://bedrock.example"'
    assert "region" in wrong(text, {**ENV, **aws}).message
    assert config(text, **aws, AWS_REGION="eu-west-1").upstreams["bedrock"].aws is not None


def test_plain_http_is_allowed_where_that_is_said_and_on_this_machine() -> None:
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
    assert list(discovered(environ).upstreams) == list(PROVIDERS)
    assert all(profiles.get(each.target).name == each.target for each in found.upstreams.values())


# --- [models] ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "name", "message", "hint"),
    [
        ('a = "b"\nb = "c"\nc = "A"', "a", "stand for each other: 'a' → 'b' → 'c' → 'a'", "lead to an upstream"),
        ('a = "a"', "a", "stand for each other: 'a' → 'a'", ""),
        ('x = "b"\nb = "b"', "x", "stand for each other: 'b' → 'b'", ""),
        ('a = "opnai/gpt"', "a", "'opnai/gpt' names no upstream", "did you mean openai/…?"),
        ('a = "gpt-5.5"', "a", "'gpt-5.5' names no upstream", 'write "openai/gpt-5.5"'),
        ('a = "openai/"', "a", "'openai/' names no upstream", "upstreams of this file: openai"),
        ('a = "simulated/opnai/x"', "a", "names no upstream", 'written like "simulated/openai/gpt-5.5"'),
        ('a = "kimi/kimi-k3"', "a", "names no upstream", 'a simulated model is written "simulated/kimi/kimi-k3"'),
        ('a = "openai/gpt-*"', "a", "is a pattern and not a model", '"openai/*"'),
        ('a = ""', "a", "expected the upstream", ""),
        ("a = [7]", "a", "expected the upstream", ""),
        ('a = "openai/x"\nA = "openai/x"', "A", "twice", ""),
        ('"a b" = "openai/x"', "'a b'", "no name of a model", ""),
        ('"" = "openai/x"', "''", "no name of a model", ""),
    ],
)
def test_a_name_that_leads_nowhere_is_told_when_the_file_is_read(
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


# --- hostile text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"[gateway]\n\xe9 = 1", "not UTF-8 at byte 10"),
        (b"a" * (config_file.MAX_BYTES + 1), "larger than"),
        (b"a" * 5000, "the line has more than 4000 characters"),
        (b"[gateway", "not TOML"),
        (b"a = 1\na = 2", "not TOML"),
        (b"\0", "not TOML"),
        (b"a = " + b"[\n" * 5000 + b"]" * 3000, "not TOML: nested too deeply"),
        (b"a = " + b"9" * 5000, "more than 4000"),
        (b"a = 0x" + b"f" * 3990 + b"\n", "there is no table of this name"),
        (b"[a]\n" + b"a.a." * 900 + b"b = 1", "there is no table of this name"),
        (b"[profiles]\n" + b"a." * 900 + b"b = 1", "unknown field"),
        (b"[profiles.x.rules]\n" + b"a." * 1900 + b"b = 1", "unknown field"),
        (b'[profiles.x.rules."ids.pattern"]\nvalue.' + b"a." * 1900 + b"b = 1", "is not a value for ids.pattern"),
        (b"[gateway]\n" + b"host." * 700 + b"b = 1", "expected a string, got a table"),
        (b"[upstreams.openai]\nheaders." + b"a." * 900 + b"b = 1", "expected a table of strings, got a table"),
        (b"[policy]\nrequired." + b"a." * 900 + b"b = 1", "got a dict"),
    ],
)
def test_hostile_text_is_an_error(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        read_config(file, ENV)
    assert message in caught.value.message
    assert str(file) in caught.value.path


def test_the_slowest_text_that_is_read_takes_bounded_time() -> None:
    line = "a." * 1990
    text = "\n".join(f"{line}b{number} = 1" for number in range(config_file.MAX_BYTES // 4000))
    with no_hang():
        wrong(text)
        wrong("[gateway]\n" + "b=1\n" + "\n".join(f"b{number}=1" for number in range(25_000)))


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=12),
        st.sampled_from(
            ["env:TEAM", "env:", "openai/x", "openai", "https://a.example", "bearer", "off", "*", "sha256:"]
        ),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            *("gateway", "policy", "upstreams", "models", "profiles", "openai", "anthropic", "bedrock", "box", "opus"),
            *("host", "port", "client_keys", "store", "middleware", "simulate", "url", "key_env", "headers", "proxy"),
            *("to", "weights", "each", "force", "default", "policy", "system", "retries", "metrics_key", "temperature"),
            *(
                "required",
                "rules",
                "extends",
                "match",
                "*",
                "target",
                "auth",
                "provider",
                "prices",
                "input",
                "keys",
                "key",
            ),
        ]
    ),
)


TABLES = st.dictionaries(
    NAMES,
    st.dictionaries(NAMES, st.one_of(VALUES, st.dictionaries(NAMES, VALUES, max_size=4)), max_size=4),
    max_size=3,
)


def toml(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def outcome(text: str) -> Config | ConfigError:
    try:
        return parse_config(ConfigText("toolglot.toml", text), ENV)
    except ConfigError as error:
        return error


@pytest.mark.law
@given(TABLES)
def test_whatever_the_tables_say_they_are_read_or_refused_and_no_key_is_shown(document: dict[str, Any]) -> None:
    text = "\n".join(f"{toml(name)} = {toml(table)}" for name, table in document.items())
    assert tomllib.loads(text).keys() == document.keys()
    found = outcome(text)
    assert KEY not in f"{found} {found!r}"
    if isinstance(found, ConfigError):
        assert found.message
        assert found.path.startswith("toolglot.toml")


@pytest.mark.law
@given(st.text(max_size=200))
def test_whatever_the_text_is_it_is_read_or_refused(text: str) -> None:
    found = outcome(text)
    assert isinstance(found, Config) == _is_empty(text)


def _is_empty(text: str) -> bool:
    """Whether a text is TOML without tables: chance writes no setting that there is."""
    try:
        return tomllib.loads(text) == {}
    except ValueError:
        return False


@pytest.mark.law
@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_they_are_text_or_refused(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        try:
            text = read_text(file.name).text
        except ConfigError as error:
            text = error.message
    is_text = data.decode(errors="replace").removeprefix("\ufeff") == text
    assert is_text or text.startswith("not UTF-8 at byte")


# --- lines ------------------------------------------------------------------------------------------


def test_the_line_of_a_key_is_found_however_it_is_written() -> None:
    text = """\
[gateway]
port = 1
[ upstreams . "openai" ]
'url' = "x"
headers = { "x-a" = "1" }
[models]
"gpt-4o*" = "a/b"
upstreams.box.url = "y"
"""
    assert line_of(text, ("gateway",)) == 1
    assert line_of(text, ("gateway", "port")) == 2
    assert line_of(text, ("gateway", "missing")) == 1
    assert line_of(text, ("upstreams", "openai", "url")) == 4
    assert line_of(text, ("upstreams", "openai", "headers", "x-a")) == 5
    assert line_of(text, ("upstreams",)) == 3
    assert line_of(text, ("models", "gpt-4o*")) == 7
    assert line_of(text, ("none",)) == 0


def test_a_config_error_is_an_input_error_and_crosses_processes() -> None:
    error = wrong("[gatway]")
    assert isinstance(error, InputError)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(again), type(again)) == (str(error), ConfigError)


# --- the page ---------------------------------------------------------------------------------------


def test_the_toml_of_the_page_is_read() -> None:
    page = (ROOT / "docs" / "gateway-config.md").read_text("utf-8")
    blocks = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
    environ = {**ENV, "TEAM_MISTRAL_KEY": "k", "OPENAI_API_KEY_WORK": "k", "TEAM_CI_KEY": "k" * 20}
    found = [parse_config(ConfigText("page", block), environ) for block in blocks]
    assert [list(each.upstreams) for each in found] == [
        ["openai", "mistral", "box"],
        ["work"],
        ["anthropic", "openai"],
        [],
        [],
    ]
    assert [bool(each) for each in found[2].models[0].settings] == [True, True]
    assert list(found[3].keys) == ["ci"]
    assert list(found[-1].prices) == ["box/*", "gpt-5*"]
    error = wrong("\n" * 7 + '[upstreams.box]\nfirst_bite_seconds = 1\nurl = "https://a"')
    assert f"error: {error.path}: {error.message}" in page


def test_the_python_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "gateway-config.md").read_text("utf-8")
    (block,) = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    exec(compile(block, "gateway-config.md", "exec"), {})  # noqa: S102


def test_the_text_of_a_file_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("[gateway]\n")
    assert read_text(file) == ConfigText(str(file), "[gateway]\n")

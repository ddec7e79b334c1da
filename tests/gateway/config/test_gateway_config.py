"""The gateway's configuration: its file, the settings of the gateway and its client keys. No key is ever shown."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import pickle
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from support.gateway.config_files import ENV, KEY, config, wrong
from toolglot import Policy, profiles
from toolglot.gateway.accounting.client_keys import KeyRing
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import Config, ConfigError, config_from_environment, parse_config, read_config
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream.secret import Secret


def client_of(found: Config, key: str) -> str | None:
    """The client that a key is of; None: it is refused."""
    try:
        return asyncio.run(KeyRing(None, found.gateway.client_keys).admit(key))
    except ProviderError:
        return None


# --- which file -----------------------------------------------------------------------------------


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
    with pytest.raises(ConfigError, match="cannot read file: No such file"):
        read_config(tmp_path / "none.toml", ENV)
    with pytest.raises(ConfigError, match="cannot read file"):
        read_config(None, {"TOOLGLOT_CONFIG": str(tmp_path)})
    with pytest.raises(ConfigError, match="cannot read file"):
        read_config("a\0b", ENV)


def test_an_empty_file_has_the_defaults_and_a_note() -> None:
    found = config("")
    settings = found.gateway
    assert (settings.host, settings.port, settings.client_keys) == ("127.0.0.1", 8400, ())
    assert (settings.retention_hours, settings.reports, settings.log) == (168, 500, "text")
    assert (settings.simulate, settings.middleware, found.policy) == (None, (), Policy(server_tools="spare"))
    assert (found.upstreams, found.models, found.overrides) == ({}, (), None)
    assert "has no upstream" in found.notes[0]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_bytes(b"\xef\xbb\xbf[gateway]\nport = 1\n")
    assert read_config(file, ENV).gateway.port == 1


# --- without a file -------------------------------------------------------------------------------


def test_without_a_file_every_provider_with_a_key_is_an_upstream_and_nothing_else_is_simulated() -> None:
    found = config_from_environment({**ENV, "MISTRAL_API_KEY": " key\n", "GROQ_API_KEY": "  "})
    assert list(found.upstreams) == ["anthropic", "openai", "mistral"]
    assert found.upstreams["mistral"].key.reveal() == "key"
    assert found.upstreams["anthropic"].url == "https://api.anthropic.com"
    assert not found.simulates_known
    assert found.allows_simulated
    assert found.notes == ()
    assert config_from_environment({"HOME": "/h"}).upstreams == {}
    assert config_from_environment({"HOME": "/h"}).simulates_known


def test_without_a_file_the_first_variable_of_a_provider_that_is_set_counts() -> None:
    first = config_from_environment({"HOME": "/h", "GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}).upstreams["gemini"]
    second = config_from_environment({"HOME": "/h", "GOOGLE_API_KEY": "b"}).upstreams["gemini"]
    assert (first.key_env, first.key.reveal()) == ("GEMINI_API_KEY", "a")
    assert (second.key_env, second.key.reveal()) == ("GOOGLE_API_KEY", "b")


def test_without_a_file_what_cannot_be_used_is_reported_and_left_out() -> None:
    found = config_from_environment({"HOME": "/h", "AZURE_OPENAI_API_KEY": "k", "OPENAI_API_KEY": f"{KEY}\n{KEY}"})
    assert found.upstreams == {}
    assert not found.simulates_known, "a key is there"
    assert [note.split(":")[0] for note in found.notes] == ["openai is left out", "azure is left out"]
    assert KEY not in str(found.notes)


def test_without_a_file_a_client_key_of_the_environment_is_demanded() -> None:
    found = config_from_environment({"HOME": "/h", "TOOLGLOT_CLIENT_KEY": "c" * 20})
    assert client_of(found, "c" * 20)
    assert client_of(found, "other") is None
    assert found.listening_at("0.0.0.0").gateway.host == "0.0.0.0"  # noqa: S104


def test_credentials_of_aws_are_a_key_of_bedrock() -> None:
    aws = {"HOME": "/h", "AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": "secret-value"}
    found = config_from_environment({**aws, "AWS_REGION": "eu-west-1"}).upstreams["bedrock"]
    assert found.url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert found.aws is not None
    assert not found.key
    assert "secret-value" not in repr(found)
    assert "region" in config_from_environment(aws).notes[0]
    assert config_from_environment({"HOME": "/h", "AWS_ACCESS_KEY_ID": "AKIA0123456789"}).upstreams == {}
    with_key = config_from_environment({**aws, "AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "k"}).upstreams[
        "bedrock"
    ]
    assert (with_key.key.reveal(), with_key.aws) == ("k", None)


# --- [gateway] ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "message", "hint"),
    [
        ("[gatway]", "toolglot.toml:1: gatway", "unknown table", "did you mean gateway?"),
        (
            "zzz = 1",
            "toolglot.toml:1: zzz",
            "unknown table",
            "known: [gateway], [policy], [upstreams], [models], [keys], [prices], [profiles]",
        ),
        ("\n[gateway]\nprot = 1", "toolglot.toml:3: gateway.prot", "unknown setting", "did you mean port?"),
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
            "not the name of a middleware",
            "package.module:Name",
        ),
        ('[gateway]\nhost = "a b"', "toolglot.toml:2: gateway.host", "not an address to listen on", "127.0.0.1"),
        ('[gateway]\nstore = "a\\u0000"', "toolglot.toml:2: gateway.store", "not the name of a file", ""),
        ("[policy]\nrequird = 1", "toolglot.toml:2: policy.requird", "unknown setting", "did you mean required?"),
        ('[policy]\nrequired = "x"', "toolglot.toml:2: policy.required", "auto, keep, filter, aggressive", ""),
        ("[policy]\nbridge_user = {}", "toolglot.toml:2: policy.bridge_user", "expected a string", ""),
        ("policy = []", "toolglot.toml:1: policy", "expected a table, got a list", ""),
        ('[profiles.b.rules]\n"ids.x" = 1', "toolglot.toml:2: profiles.b.rules.'ids.x'", "unknown key", "ids."),
        ('[profiles.b]\nextends = "nope"', "toolglot.toml:1: profiles", "does not exist", "allowed"),
        ("[upstreams.openai]\n[models]\n\nx = 3", "toolglot.toml:4: models.x", "expected an upstream", "openai/gpt"),
    ],
)
def test_a_mistake_is_reported_with_its_line_its_key_and_what_to_do(
    text: str, path: str, message: str, hint: str
) -> None:
    error = wrong(text)
    assert error.path == path
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
        assert "home directory for the store is unknown" in wrong("", environ).message
    assert parse_config(ConfigText("t", '[gateway]\nstore = "off"'), {}).gateway.store == "off"
    with pytest.raises(ConfigError, match="set HOME"):
        config_from_environment({})


# --- client keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", "127.0.0.1.example.com"])  # noqa: S104
def test_any_address_but_loopback_demands_client_keys(host: str) -> None:
    error = wrong(f'[gateway]\nhost = "{host}"')
    assert "clients need a key" in error.message
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
    with pytest.raises(ConfigError, match="clients need a key") as caught:
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


def test_without_client_keys_clients_are_still_distinguished() -> None:
    found = config("")
    assert client_of(found, "a") != client_of(found, "b")
    assert client_of(found, "") == client_of(found, "")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (KEY, "the file must not contain a key itself"),
        (f"env:{KEY}", "the file must not contain a key itself"),
        ("plain", "the file must not contain a key itself"),
        ("env:", "the file must not contain a key itself"),
        ("sha256:12", "64 hexadecimal digits"),
        ("env:NOT_SET", "'NOT_SET' is not set"),
        ("env:abcdefSecretOne", "the variable that is named here is not set"),
        ("env:TWO_LINES", "cannot be sent in a header"),
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
        assert error.message == 'client_keys = ["store"] needs a store that lasts'
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
        ('[keys.a]\nmodels = ["a"]', "keys.a", "missing setting: key"),
        (f'[keys.a]\nkey = "{KEY}"', "keys.a.key", "the file must not contain a key itself"),
        ('[keys.a]\nkey = "store"', "keys.a.key", "the file must not contain a key itself"),
        ('[keys.a]\nkey = "env:NOWHERE"', "keys.a.key", "'NOWHERE' is not set in the environment"),
        ("[keys.a]\nkey = 7", "keys.a.key", "expected a string, got a whole number"),
        ('[keys.a]\nkey = "env:TEAM"\nrpm = 7', "keys.a.rpm", "unknown setting"),
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
        (
            f'[keys."{"a" * 65}"]\nkey = "env:TEAM"',
            f"keys.{'a' * 65}",
            "expected a name of 1 to 64 printable characters",
        ),
    ],
)
def test_a_mistake_in_a_key_is_reported(text: str, key: str, message: str) -> None:
    error = wrong(text)
    assert error.message == message
    assert error.path.endswith(f": {key}")


def test_too_many_keys_belong_into_the_store() -> None:
    lines = "".join(f'k{number} = {{ key = "env:TEAM" }}\n' for number in range(1001))
    assert "toolglot keys add" in wrong(f"[keys]\n{lines}").hint


def test_client_keys_that_are_no_list_are_not_quoted() -> None:
    assert wrong(f'[gateway]\nclient_keys = "{KEY}"').message == "expected a list of strings, got a string"


def test_a_short_client_key_is_reported() -> None:
    (note, _) = config('[gateway]\nclient_keys = ["env:SHORT"]', SHORT="abc").notes
    assert "'SHORT' is shorter than 16 characters" in note
    assert "abc" not in note


# --- secrets --------------------------------------------------------------------------------------


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

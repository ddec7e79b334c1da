"""`toolglot init`: a configuration to begin with, which is right as it is and with everything in it on."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from support.cli.commands import Cli, command
from toolglot import Policy
from toolglot.gateway.config.example import example_config
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.route_table import RouteTable
from toolglot.gateway.config.settings import Config, GatewaySettings, parse_config, read_config
from toolglot.gateway.config.upstream_table import UpstreamTable
from toolglot.gateway.inspector.settings import InspectorSettings
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.no_route import NoRouteError
from toolglot.upstream.routing.router import Router
from toolglot.upstream.settings import RequestSettings

BARE = {"HOME": "/h"}
KEYS = {
    **BARE,
    **{provider.key_env[0]: f"key-of-{provider.name}" for provider in PROVIDERS.values()},
    **{names[0]: "eu-west-1" for provider in PROVIDERS.values() for names in provider.url_env.values()},
    "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com",
    "TOOLGLOT_CLIENT_KEY": "c" * 20,
    "TOOLGLOT_CI_KEY": "d" * 20,
    "TOOLGLOT_METRICS_KEY": "e" * 20,
    "BOX_API_KEY": "key-of-box",
    "TEAM": "blue",
}


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Cli(tmp_path, monkeypatch, capsys)


def read(text: str, environ: dict[str, str]) -> Config:
    return parse_config(ConfigText("toolglot.toml", text), environ)


def uncommented(text: str) -> str:
    """The file with every setting on; remarks have a blank after their sign."""
    return re.sub(r"(?m)^#(?=[^\s#])", "", text)


# --- the text ---------------------------------------------------------------------------------------


def test_the_example_is_read_as_it_is_and_simulates_only_what_is_named_so() -> None:
    found = read(example_config(BARE), BARE)
    assert (found.upstreams, found.models) == ({}, ())
    (note,) = found.notes
    assert "has no upstream; only names that begin with simulated/ work" in note
    assert found.gateway == read("[gateway]", BARE).gateway
    assert Router(found).route("simulated/anthropic/claude-opus-5").simulated
    with pytest.raises(NoRouteError):
        Router(found).route("claude-opus-5")


@pytest.mark.parametrize("environ", [BARE, KEYS])
def test_the_example_is_read_with_everything_on(environ: dict[str, str]) -> None:
    found = read(uncommented(example_config(environ)), KEYS)
    assert list(found.upstreams) == ["box", *PROVIDERS]
    assert len(found.models) == 9
    assert found.overrides is not None
    assert found.notes == ()
    router = Router(found)
    assert router.route("claude-opus-5[1m]").model == "gpt-5.5"
    assert router.route("my-model").upstream_name == "box"
    assert router.route("unheard-of").upstream_name == "openrouter"
    careful = router.route("careful")
    assert [route.settings.force.reasoning_effort for route in (careful, *careful.others) if route.settings] == [
        "medium",
        "high",
    ]


def test_the_defaults_that_it_shows_are_the_defaults() -> None:
    on = uncommented(example_config(BARE))
    found = read(on, KEYS)
    same = msgspec.structs.replace(
        found.gateway, client_keys=(), allowed_origins=(), metrics_key="", middleware=(), simulate=None, store=""
    )
    assert same == GatewaySettings()
    assert found.policy == read("", KEYS).policy
    assert found.upstreams["openai"] == read("[upstreams.openai]", KEYS).upstreams["openai"]
    box = found.upstreams["box"]
    assert (box.connect_seconds, box.first_byte_seconds, box.idle_seconds) == (10, 600, 300)
    assert (box.retries, box.retry_seconds, box.max_concurrent) == (0, 8, 0)
    assert (box.breaker_failures, box.breaker_seconds) == (5, 20)


@pytest.mark.parametrize(
    "kind", [GatewaySettings, InspectorSettings, UpstreamTable, Policy, RouteTable, RequestSettings]
)
def test_every_setting_is_in_it(kind: type[msgspec.Struct]) -> None:
    text = uncommented(example_config(BARE))
    missing = [
        name for name in kind.__struct_fields__ if not re.search(rf"(?m)^({name} = |\[models\..*\.{name}\])", text)
    ]
    assert missing == ([] if kind is not UpstreamTable else ["provider"])


def test_what_the_environment_has_a_key_for_is_on_and_no_key_is_written() -> None:
    environ = {**BARE, "OPENAI_API_KEY": "sk-secret-123", "GOOGLE_API_KEY": "other-secret", "AZURE_OPENAI_API_KEY": "k"}
    text = example_config(environ)
    found = read(text, environ)
    assert {name: each.key_env for name, each in found.upstreams.items()} == {
        "openai": "OPENAI_API_KEY",
        "gemini": "GOOGLE_API_KEY",
    }
    assert not [secret for secret in ("sk-secret-123", "other-secret") if secret in text]


def test_it_is_on_with_credentials_of_aws_too() -> None:
    aws = {**BARE, "AWS_ACCESS_KEY_ID": "AKIAX", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-1"}
    assert list(read(example_config(aws), aws).upstreams) == ["bedrock"]


def test_lines_are_of_a_width_that_can_be_read() -> None:
    assert max(map(len, example_config(BARE).splitlines())) <= 120


# --- the command ------------------------------------------------------------------------------------


def test_it_writes_toolglot_toml(cli: Cli) -> None:
    ended = cli("init")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("wrote toolglot.toml\nenabled: none. Set the key of a provider in the environment")
    assert "simulated models answer only as simulated/PROVIDER/MODEL" in " ".join(ended.err.split())
    assert read_config(None, BARE).origin == "toolglot.toml"
    assert not read_config(None, BARE).simulates_known


def test_it_writes_to_the_named_path_and_reports_what_is_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123456")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-secret-123456")
    ended = cli("init", "mine.toml")
    assert ended.code == 0
    assert "wrote mine.toml\nenabled: openai\n" in ended.err
    assert "note: azure is not enabled" in ended.err
    assert "sk-secret" not in ended.err + (cli.folder / "mine.toml").read_text()
    assert not (cli.folder / "toolglot.toml").exists()
    assert cli("init", "quiet.toml", "--quiet").err == ""


def test_it_never_overwrites_without_force_and_keeps_what_was_there(cli: Cli) -> None:
    cli.write("toolglot.toml", "# mine\n")
    ended = cli("init")
    assert ended.code == 2
    assert "file already exists" in ended.err
    assert "--force" in ended.err
    assert (cli.folder / "toolglot.toml").read_text() == "# mine\n"
    ended = cli("init", "--force")
    assert ended.code == 0
    assert "the old file is toolglot.toml.bak" in ended.err
    assert (cli.folder / "toolglot.toml.bak").read_text() == "# mine\n"
    assert "[gateway]" in (cli.folder / "toolglot.toml").read_text()


def test_a_link_that_leads_nowhere_is_not_followed_without_force(cli: Cli) -> None:
    (cli.folder / "toolglot.toml").symlink_to("elsewhere.toml")
    assert cli("init").code == 2
    assert not (cli.folder / "elsewhere.toml").exists()
    assert cli("init", "--force").code == 0
    assert (cli.folder / "elsewhere.toml").exists()


def test_it_writes_to_stdout(cli: Cli) -> None:
    ended = cli("init", "-")
    assert ended.out == example_config(BARE)
    assert ended.err.startswith("enabled: none")
    assert list(cli.folder.iterdir()) == []


@pytest.mark.parametrize("path", [".", "no/such/folder.toml"])
def test_what_cannot_be_written_is_reported(cli: Cli, path: str) -> None:
    ended = cli("init", path, "--force")
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert list(cli.folder.iterdir()) == []


def test_it_is_a_real_command(tmp_path: Path) -> None:
    ended = command("init", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "")
    assert (tmp_path / "toolglot.toml").is_file()

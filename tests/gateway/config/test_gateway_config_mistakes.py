"""All mistakes of a configuration are shown at once, in the order of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli.commands import command
from support.counted_work import no_hang
from toolglot.gateway.config.file import ConfigError, ConfigText
from toolglot.gateway.config.settings import parse_config

FILE = """\
[gateway]
port = "eight"
hots = "127.0.0.1"

[upstreams.anthropic]
key_env = "UNSET_VARIABLE"
retries = 99

[upstreams.opnai]

[models]
good = "anthropic/claude-opus-5"
bad = "antropic/claude-opus-5"
worse = 7

[keys.ci]
key = "env:UNSET_KEY"

[prices."gpt-*"]
input = -1
output = 1

[polcy]
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        parse_config(ConfigText("t.toml", text), {"HOME": "/home/u"})
    return [error.path for error in raised.value.errors]


def test_every_mistake_is_there_with_its_line() -> None:
    assert mistakes(FILE) == [
        "t.toml:2: gateway.port",
        "t.toml:3: gateway.hots",
        "t.toml:7: upstreams.anthropic.retries",
        "t.toml:9: upstreams.opnai",
        "t.toml:14: models.worse",
        "t.toml:17: keys.ci.key",
        "t.toml:20: prices.'gpt-*'.input",
        "t.toml:23: polcy",
    ]


def test_a_mistake_causes_no_others() -> None:
    only_upstream = '[upstreams.box]\nurl = "nowhere"\n[models]\na = "box/m"\n'
    assert mistakes(only_upstream) == ["t.toml:2: upstreams.box.url"]
    only_gateway = '[gateway]\nport = -1\n[models]\na = "simulated/openai/gpt-5.5"\n'
    assert mistakes(only_gateway) == ["t.toml:2: gateway.port"]
    only_key = '[gateway]\nhost = "0.0.0.0"\n[keys.ci]\nkey = "env:UNSET"\n'
    assert mistakes(only_key) == ["t.toml:4: keys.ci.key"]
    only_profile = '[upstreams.box]\nurl = "https://b.example"\n[profiles.box]\nextends = "none"\nprotocol = "x"\n'
    assert len(mistakes(only_profile)) == 1


def test_models_are_followed_once_their_own_lines_are_right() -> None:
    text = '[upstreams.ollama]\n[models]\na = "b"\nb = "a"\nc = "olama/x"\nd = "ollama/x"\n'
    assert mistakes(text) == ["t.toml:3: models.a", "t.toml:4: models.b", "t.toml:5: models.c"]


def test_the_text_of_the_error_has_them_all() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(ConfigText("t.toml", FILE), {"HOME": "/home/u"})
    assert len(str(raised.value).splitlines()) == 8


@pytest.mark.parametrize("words", [("serve", "--config"), ("doctor", "--config")])
def test_commands_show_them_all(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "t.toml").write_text(FILE)
    ended = command(*words, "t.toml", cwd=tmp_path)
    shown = ended.out + ended.err
    assert ended.code != 0
    for location in (
        "t.toml:2",
        "t.toml:3",
        "t.toml:7",
        "t.toml:9",
        "t.toml:14",
        "t.toml:17",
        "t.toml:20",
        "t.toml:23",
    ):
        assert shown.count(f"{location}: ") == 1


@pytest.mark.parametrize(("written", "meant"), [("base_url", "url"), ("key-env", "key_env"), ("modls", "models")])
def test_a_setting_that_is_written_otherwise_is_answered_with_the_right_name(written: str, meant: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(
            ConfigText("t.toml", f'[upstreams.box]\nurl = "https://b.example"\n{written} = "x"\n'), {"HOME": "/home/u"}
        )
    assert f"did you mean {meant}?" in raised.value.hint


def test_a_file_without_upstreams_names_the_providers_whose_keys_are_set() -> None:
    environ = {"HOME": "/home/u", "OPENAI_API_KEY": "k" * 20}
    (note,) = parse_config(ConfigText("t.toml", "[gateway]\n"), environ).notes
    assert "write [upstreams.openai], whose key is set" in note


def test_doctor_shows_the_lines_of_a_hint_as_lines(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "model_list:\n  - model_name: a\n    litellm_params:\n      model: openai/gpt-5.5\n"
    )
    shown = command("doctor", "--no-network", "--config", "c.yaml", cwd=tmp_path).out
    assert "\\n" not in shown
    assert '"a" = "openai/gpt-5.5"' in [line.strip() for line in shown.splitlines()]


def test_a_file_of_nothing_but_mistakes_shows_twenty_and_costs_little() -> None:
    text = "[gateway]\n" + "".join(f"wrong{number} = 1\n" for number in range(10_000))
    with no_hang():
        assert len(mistakes(text)) == 20
    tables = "".join(f"[upstreams.u{number}]\n" for number in range(2_000))
    with no_hang():
        assert mistakes(tables) == [f"t.toml:{number + 1}: upstreams.u{number}" for number in range(20)]

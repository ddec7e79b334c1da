"""A configuration of any text: an error with its line, in bounded time; and the page of the settings."""

from __future__ import annotations

import pickle
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import no_hang
from support.gateway.config_files import ENV, KEY, wrong
from toolglot import InputError
from toolglot.gateway.config import file as config_file
from toolglot.gateway.config.file import ConfigText, line_of, read_text
from toolglot.gateway.config.settings import Config, ConfigError, parse_config, read_config

ROOT = Path(__file__).parents[3]


# --- hostile text ---------------------------------------------------------------------------------


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
        (b"a = 0x" + b"f" * 3990 + b"\n", "unknown table"),
        (b"[a]\n" + b"a.a." * 900 + b"b = 1", "unknown table"),
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


# --- lines ----------------------------------------------------------------------------------------


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


# --- the page -------------------------------------------------------------------------------------


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

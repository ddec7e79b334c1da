"""`toolglot keys`: what it makes, shows and takes back."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import pytest

from support.cli.commands import Cli, command
from toolglot.gateway.accounting.client_keys import ClientKey, KeyRing, saved_keys
from toolglot.gateway.accounting.metering import NANO, SPENT, period_of
from toolglot.gateway.config.key_table import digest
from toolglot.store import SqliteStore, Store

T = TypeVar("T")
SECRET = re.compile(r"tgk_[A-Za-z0-9_-]{43}")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("TOOLGLOT_CONFIG", raising=False)
    return Cli(tmp_path, monkeypatch, capsys)


def stored(file: Path, act: Callable[[Store], Awaitable[T]]) -> T:
    async def run() -> T:
        store = SqliteStore(file)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def keys(cli: Cli, name: str = "s.db") -> list[ClientKey]:
    return stored(cli.folder / name, saved_keys)


def test_a_key_is_shown_once_alone_on_stdout_and_works(cli: Cli) -> None:
    made = cli("keys", "add", "alice", "--store", "s.db")
    assert made.code == 0
    secret = made.out.strip()
    assert SECRET.fullmatch(secret)
    assert "created key alice" in made.err
    assert "limits: none" in made.err
    assert "shown only once" in made.err
    assert secret not in made.err
    listed = cli("keys", "list", "--store", "s.db")
    assert secret[:8] in listed.out
    assert secret[9:] not in listed.out + cli("keys", "list", "--format", "json", "--store", "s.db").out
    client = stored(cli.folder / "s.db", lambda store: KeyRing(store).admit(secret))
    assert client == digest(secret)


def test_every_limit_is_stored_as_it_was_written(cli: Cli) -> None:
    words = ["--models", "gpt-5*, claude-haiku-*", "--models", "opus", "--rpm", "60", "--tpm", "500k"]
    words += [
        "--tokens-per-day",
        "2M",
        "--tokens-per-month",
        "2_000_000",
        "--tokens",
        "1.5g",
        "--spend-per-day",
        "$1.50",
    ]
    words += ["--spend-per-month", "50", "--spend", "1,000", "--expires", "2099-01-31"]
    made = cli("keys", "add", "ci", *words, "--store", "s.db")
    assert made.code == 0
    (key,) = keys(cli)
    assert key.models == ("gpt-5*", "claude-haiku-*", "opus")
    assert (key.requests_per_minute, key.tokens_per_minute) == (60, 500_000)
    assert (key.tokens_per_day, key.tokens_per_month, key.tokens_total) == (2_000_000, 2_000_000, 1_500_000_000)
    assert (key.spend_per_day, key.spend_per_month, key.spend_total) == (Decimal("1.50"), Decimal(50), Decimal(1000))
    assert key.expires == datetime(2099, 1, 31, tzinfo=UTC).timestamp()
    printed = " ".join(made.err.split())
    for part in ("models gpt-5*, claude-haiku-*, opus", "60 requests per minute", "$1.50 per day", "until 2099-01-31"):
        assert part in printed


def test_a_length_of_time_is_from_now_on(cli: Cli) -> None:
    before = datetime.now(UTC).timestamp()
    assert cli("keys", "add", "a", "--expires", "12h", "--store", "s.db").code == 0
    (key,) = keys(cli)
    assert key.expires is not None
    assert 0 <= key.expires - before - 12 * 3600 < 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rpm", "0"], "expected a number such as 250"),
        (["--tpm", "1.5"], "expected a number such as 250"),
        (["--tokens", "many"], "expected a number such as 250"),
        (["--tokens", "9999999999g"], "expected a number such as 250"),
        (["--spend", "0"], "expected US dollars"),
        (["--spend", "nan"], "expected US dollars"),
        (["--spend", "-3"], "expected"),
        (["--spend", "a lot"], "expected US dollars"),
        (["--expires", "soon"], "invalid time 'soon'"),
        (["--expires", "2020-01-01"], "'2020-01-01' is in the past"),
        (["--models", " , "], "expected patterns of models"),
        (["--models", "a\x1bb"], "invalid model pattern"),
        (["--store", ":memory:"], "other processes cannot read"),
        (["--config", "nowhere.toml"], "cannot read file"),
    ],
)
def test_what_makes_no_sense_is_reported_and_makes_nothing(cli: Cli, words: list[str], message: str) -> None:
    ended = (
        cli("keys", "add", "a", "--store", "s.db", *words)
        if "--config" not in words
        else cli("keys", "add", "a", *words)
    )
    assert ended.code == 2
    assert message in ended.err
    assert ended.out == ""
    assert not (cli.folder / "s.db").exists()


def test_a_name_is_taken_as_long_as_its_key_is(cli: Cli) -> None:
    assert cli("keys", "add", "ci", "--store", "s.db").code == 0
    again = cli("keys", "add", "ci", "--store", "s.db")
    assert again.code == 2
    assert "a key 'ci' already exists" in again.err
    (key,) = keys(cli)
    assert f"keys revoke {key.id}" in again.err
    assert cli("keys", "add", "a\nb", "--store", "s.db").code == 2
    revoked = cli("keys", "revoke", "ci", "--store", "s.db")
    assert revoked.code == 0
    assert f"revoked ci ({key.id})" in revoked.err
    assert cli("keys", "add", "ci", "--store", "s.db", "--quiet").err == ""
    assert [each.revoked is None for each in keys(cli)] == [False, True]


def test_the_list_shows_limits_and_what_is_used_of_them(cli: Cli) -> None:
    cli("keys", "add", "plain", "--store", "s.db")
    cli("keys", "add", "ci", "--tokens-per-day", "2M", "--spend-per-month", "50", "--rpm", "5", "--store", "s.db")
    cli("keys", "add", "gone", "--expires", "1h", "--store", "s.db")
    cli("keys", "revoke", "gone", "--store", "s.db")
    key = next(key for key in keys(cli) if key.name == "ci")

    async def spend(store: Store) -> None:
        now = period_of(datetime.now(UTC).timestamp())
        amounts = {"tokens": 1234.0, "spend": 3.1 * NANO}
        for start in (now["day"], now["month"]):
            await store.add("spent", key.hashed, start, amounts, until=1e12)

    stored(cli.folder / "s.db", spend)
    listed = cli("keys", "list", "--store", "s.db")
    printed = " ".join(listed.out.split())
    assert "NAME ID KEY STATE CREATED LIMITS" in printed
    assert "active" in printed
    assert " none" in printed
    assert "5 requests per minute; 1,234 of 2,000,000 tokens per day; $3.10 of $50 per month" in printed
    assert "gone" not in printed
    assert "1 key revoked or expired" in listed.err
    everything = cli("keys", "list", "--all", "--store", "s.db")
    assert "revoked" in everything.out
    assert everything.err == ""
    listed_ci = next(
        each for each in cli("keys", "list", "--format", "json", "--store", "s.db").json if each["name"] == "ci"
    )
    assert listed_ci["used"] == {"tokens_per_day": 1234, "spend_per_month": 3.1}
    assert listed_ci["spend_per_month"] == 50
    assert listed_ci["state"] == "active"
    assert "hashed" not in listed_ci


def test_a_key_for_other_programs(cli: Cli) -> None:
    made = cli("keys", "add", "a", "--expires", "2099-01-31", "--format", "json", "--store", "s.db").json
    assert SECRET.fullmatch(made["key"])
    assert made["expires"] == "2099-01-31T00:00:00Z"


def test_to_look_into_a_store_that_is_not_there_makes_none(cli: Cli) -> None:
    listed = cli("keys", "list", "--store", "s.db")
    assert listed.code == 0
    assert "no keys in s.db" in listed.err
    assert cli("keys", "list", "--store", "s.db", "--format", "json").json == []
    revoked = cli("keys", "revoke", "a", "--store", "s.db")
    assert revoked.code == 2
    assert "no store at s.db" in revoked.err
    assert not (cli.folder / "s.db").exists()
    cli("keys", "add", "a", "--store", "s.db")
    assert cli("keys", "revoke", "b", "--store", "s.db").code == 2


def test_the_store_is_that_of_the_configuration(cli: Cli) -> None:
    cli.write("toolglot.toml", '[gateway]\nstore = "here.db"\nsimulate = true\n')
    assert cli("keys", "add", "a").code == 0
    assert [key.name for key in keys(cli, "here.db")] == ["a"]
    cli.write("off.toml", '[gateway]\nstore = "off"\nsimulate = true\n')
    off = cli("keys", "list", "--config", "off.toml")
    assert off.code == 2
    assert "set store in [gateway] to a file" in " ".join(off.err.split())


def test_a_file_that_is_no_store_is_reported(cli: Cli) -> None:
    cli.write("s.db", "not a database at all" * 50)
    ended = cli("keys", "list", "--store", "s.db")
    assert ended.code == 2
    assert "not an SQLite database" in ended.err


def test_an_action_is_needed(cli: Cli) -> None:
    ended = cli("keys")
    assert ended.code == 2
    assert "toolglot keys --help" in ended.err
    assert "did you mean revoke?" in cli("keys", "revok").err


def test_as_a_real_command(tmp_path: Path) -> None:
    made = command("keys", "add", "alice", "--rpm", "5", cwd=tmp_path, HOME=str(tmp_path), XDG_STATE_HOME="")
    assert made.code == 0, made.err
    assert SECRET.fullmatch(made.out.strip())
    assert (tmp_path / ".local/state/toolglot/gateway.db").stat().st_mode & 0o777 == 0o600


CONFIGURED = """\
[gateway]
store = "s.db"
client_keys = ["env:ALICE_KEY", "sha256:{hashed}", "store"]
[keys.ci]
key = "env:CI_KEY"
models = ["gpt-5*"]
spend_per_month = 50
[keys.build]
key = "env:BUILD_KEY"
"""


def configure(cli: Cli) -> None:
    cli.write("toolglot.toml", CONFIGURED.format(hashed=digest("some-other-key")))


def test_keys_of_the_configuration_are_listed_before_there_is_a_store(cli: Cli) -> None:
    configure(cli)
    cli.monkeypatch.setenv("CI_KEY", "the-key-of-the-ci-itself")
    listed = cli("keys", "list")
    assert listed.code == 0
    assert "the-key-of" not in listed.out
    rows = [line.split() for line in listed.out.splitlines()[1:]]
    other = digest("some-other-key")
    assert [row[:5] for row in rows] == [
        ["ci", digest("the-key-of-the-ci-itself")[:12], "$CI_KEY", "active", "configured"],
        ["build", "-", "$BUILD_KEY", "active", "configured"],
        ["-", "-", "$ALICE_KEY", "active", "configured"],
        ["-", other[:12], f"sha256:{other[:9]}…", "active", "configured"],
    ]
    assert "models gpt-5*; $50 per month" in listed.out
    assert not (cli.folder / "s.db").exists()


def test_keys_of_the_configuration_and_of_the_store_stand_in_one_list_with_what_they_used(cli: Cli) -> None:
    configure(cli)
    cli.monkeypatch.setenv("CI_KEY", "the-key-of-the-ci-itself")
    assert cli("keys", "add", "bob").code == 0
    month = period_of(datetime.now(UTC).timestamp())["month"]
    hashed = digest("the-key-of-the-ci-itself")
    stored(cli.folder / "s.db", lambda store: store.add(SPENT, hashed, month, {"spend": 3.5 * NANO}, until=math.inf))
    listed = cli("keys", "list", "--format", "json").json
    assert [(key["name"], key["source"]) for key in listed] == [
        *(("ci", "configuration"), ("build", "configuration"), ("", "configuration"), ("", "configuration")),
        ("bob", "store"),
    ]
    assert listed[0]["used"] == {"spend_per_month": 3.5}
    assert "$3.50 of $50 per month" in cli("keys", "list").out


@pytest.mark.parametrize("name", ["ci", "CI_KEY", "$CI_KEY", "ALICE_KEY"])
def test_to_revoke_a_key_of_the_configuration_says_where_it_stands(cli: Cli, name: str) -> None:
    configure(cli)
    ended = cli("keys", "revoke", name)
    assert ended.code == 2
    assert f"the key '{name}' is defined in the configuration" in ended.err
    assert f"remove it from toolglot.toml, {'client_keys' if 'ALICE' in name else '[keys.ci]'}" in ended.err


def test_names_of_the_configuration_are_taken(cli: Cli) -> None:
    configure(cli)
    ended = cli("keys", "add", "ci")
    assert ended.code == 2
    assert "a key 'ci' already exists in toolglot.toml" in ended.err
    assert cli("keys", "add", "ci", "--store", "s.db", "-q").code == 0
    ended = cli("keys", "revoke", "ci")
    assert ended.code == 0
    assert "toolglot.toml, [keys.ci] also defines a key of this name, which stays valid" in ended.err
    assert cli("keys", "revoke", "ci").code == 2

"""A number that is too large is refused with the largest one that is not: in files and on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Meta, Struct

from support.cli.commands import Cli
from toolglot.gateway.accounting.prices import PriceSettings
from toolglot.gateway.config.file import ConfigError, ConfigText, read_table
from toolglot.gateway.config.key_table import KeySettings
from toolglot.gateway.config.route_table import RouteTable
from toolglot.gateway.config.settings import GatewaySettings, parse_config
from toolglot.gateway.config.upstream_table import UpstreamTable
from toolglot.upstream.settings import RequestSettings

TABLES: tuple[type[Struct], ...] = (
    GatewaySettings,
    UpstreamTable,
    KeySettings,
    PriceSettings,
    RequestSettings,
    RouteTable,
)
HUGE = 10**30


def _parts(kind: Any) -> list[Any]:
    """What a type is made of, at every depth."""
    return [kind, *(each for part in get_args(kind) for each in _parts(part))]


def _numeric() -> list[tuple[type[Struct], str]]:
    fields = [(table, field) for table in TABLES for field in msgspec.structs.fields(table)]
    return [
        (table, field.name)
        for table, field in fields
        if {int, float} & {part for part in _parts(field.type) if isinstance(part, type)}
    ]


@pytest.mark.parametrize(("table", "name"), _numeric(), ids=lambda value: getattr(value, "__name__", value))
def test_a_setting_that_is_too_large_names_its_maximum(table: type[Struct], name: str) -> None:
    kind = next(field.type for field in msgspec.structs.fields(table) if field.name == name)
    [largest] = {meta.le for meta in _parts(kind) if isinstance(meta, Meta) and meta.le is not None}

    def refusal(value: float) -> str:
        with pytest.raises(ConfigError) as raised:
            read_table({name: value}, table, ConfigText("t.toml"), "table")
        return str(raised.value)

    for value in (largest * 2, HUGE, float(HUGE)):
        assert re.search(rf"(?: to|, at most) {largest}, got", refusal(value)), refusal(value)


def test_a_weight_that_is_too_large_names_its_maximum() -> None:
    text = 'even = { to = ["simulated/a", "simulated/b"], weights = [3, 1e30] }'
    with pytest.raises(ConfigError, match="at most 1000000"):
        parse_config(ConfigText("t.toml", f"[models]\n{text}\n"), {"HOME": "/home/u"})


def test_there_are_numbers_to_check() -> None:
    assert len(_numeric()) > 30


OPTIONS = [
    (("serve", "--port", str(HUGE)), "65535"),
    (("serve", "--workers", str(HUGE)), "256"),
    (("simulate", "--port", str(HUGE)), "65535"),
    (("simulate", "--chunk", str(HUGE)), "1000000"),
    (("simulate", "--bytes", str(HUGE)), "1000000"),
    (("simulate", "--pace", "1e30"), "60"),
    (("keys", "add", "ci", "--rpm", str(HUGE)), "1000000000000000"),
    (("keys", "add", "ci", "--tokens", str(HUGE)), "1000000000000000"),
    (("keys", "add", "ci", "--spend", str(HUGE)), "1000000"),
    (("run", "--max-turns", str(HUGE), "hi"), "999999"),
    (("run", "--max-cost", str(HUGE), "hi"), "1000000"),
    (("run", "--timeout", "1e30", "hi"), "604800"),
    (("probe", "http://127.0.0.1:9", "--model", "m", "--max-requests", str(HUGE)), "1000000000000"),
    (("probe", "http://127.0.0.1:9", "--model", "m", "--max-tokens", str(HUGE)), "1000000000000"),
    (("probe", "http://127.0.0.1:9", "--model", "m", "--timeout", "1e30"), "1000000"),
    (("probe", "http://127.0.0.1:9", "--model", "m", "--max-seconds", "1e30"), "1000000"),
    (("parse", "--stream", str(HUGE)), "1000000"),
]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Cli(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("words", "largest"), OPTIONS, ids=[" ".join(words)[:40] for words, _ in OPTIONS])
def test_an_option_that_is_too_large_names_its_maximum(cli: Cli, words: tuple[str, ...], largest: str) -> None:
    ended = cli(*words, stdin=b"")
    assert ended.code == 2
    assert re.search(rf"(?<![0-9]){largest}(?![0-9])", ended.err), ended.err


def test_a_limit_of_sessions_that_is_too_large_names_its_maximum(cli: Cli, tmp_path: Path) -> None:
    store = str(tmp_path / "sessions.db")
    assert cli("run", "--model", "simulated/anthropic/any", "--store", store, "hi", stdin=b"").code == 0
    ended = cli("sessions", "list", "--store", store, "--limit", str(HUGE))
    assert ended.code == 2
    assert "to 1000000" in ended.err

"""`toolglot usage`: sums by key, model, day and upstream, for people and for programs."""

from __future__ import annotations

import asyncio
import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.cli.commands import Cli
from toolglot.gateway.accounting.client_keys import new_key, save
from toolglot.gateway.accounting.metering import ANYONE, usage_key
from toolglot.store import SqliteStore

TODAY = datetime.now(UTC)


def day(ago: int) -> str:
    return f"{TODAY - timedelta(days=ago):%Y-%m-%d}"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Cli(tmp_path, monkeypatch, capsys)


@pytest.fixture
def filled(cli: Cli) -> Cli:
    async def fill() -> None:
        store = SqliteStore(cli.folder / "s.db")
        ci, _ = new_key("ci", now=1.0)
        await save(store, ci)
        rows = [
            (ci.hashed, day(0), "openai", "gpt-5.5", {"requests": 3, "input": 1000, "output": 500, "cost": 20_000_000}),
            (ci.hashed, day(0), "openai", "gpt-5.5", {"cache_lost": 5000, "cache_lost_cost": 30_000_000}),
            (ci.hashed, day(1), "openai", "gpt-5.5", {"requests": 1, "failed": 1}),
            (ci.hashed, day(40), "openai", "gpt-5.5", {"requests": 100, "input": 5}),
            (ANYONE, day(0), "box", "=tuned\x1b[2J", {"requests": 2, "input": 7, "unpriced": 2, "uncounted": 1}),
            ("f" * 64, day(2), "openai", "gpt-4o", {"requests": 1, "output": 9, "cache_read": 4, "cost": 10**9 * 200}),
        ]
        for client, when, upstream, model, amounts in rows:
            await store.add("usage", client, usage_key(when, upstream, model), amounts, until=1e12)
        await store.close()

    asyncio.run(fill())
    return cli


def test_the_table_sums_by_key_the_dearest_first(filled: Cli) -> None:
    ended = filled("usage", "--store", "s.db")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0] == ["KEY", "REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "COST"]
    assert lines[1] == ["ffffffffffff", "1", "0", "0", "9", "4", "$200.00"]
    assert lines[2] == ["ci", "4", "1", "1,000", "500", "0", "$0.0200"]
    assert lines[3] == ["(no", "key)", "2", "0", "7", "0", "0", "≥", "$0.0000"]
    assert lines[4] == ["total", "7", "1", "1,007", "509", "4", "≥", "$200.02"]
    printed = " ".join(ended.err.split())
    assert "2 requests without a known price, not included in the cost" in printed
    assert "1 request without token counts from the provider" in printed
    assert "5,000 tokens were cached and had to be read again, which cost about $0.0300 more" in printed
    assert filled("usage", "--store", "s.db", "--quiet").err == ""
    widths = {len(line) for line in ended.out.splitlines()}
    assert len(widths) == 1, "columns are aligned"


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("key", ["ffffffffffff", "ci", "(no key)"]),
        ("model", ["gpt-4o", "gpt-5.5", "=tuned\x1b[2J"]),
        ("day", [day(2), day(1), day(0)]),
        ("upstream", ["openai", "box"]),
    ],
)
def test_json_has_everything(filled: Cli, by: str, names: list[str]) -> None:
    report = filled("usage", "--by", by, "--format", "json", "--store", "s.db").json
    assert (report["since"], report["until"], report["by"]) == (day(30), day(0), by)
    assert [row[by] for row in report["rows"]] == names
    assert report["total"] == {
        "requests": 7,
        "failed": 1,
        "input": 1007,
        "output": 509,
        "cache_read": 4,
        "cache_write": 0,
        "unpriced": 2,
        "uncounted": 1,
        "cost_usd": 200.02,
        "cache_lost": 5000,
        "cache_lost_usd": 0.03,
    }


def test_csv_is_safe_in_a_spreadsheet_and_a_terminal(filled: Cli) -> None:
    ended = filled("usage", "--by", "model", "--format", "csv", "--store", "s.db")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [row["model"] for row in rows] == ["gpt-4o", "gpt-5.5", "'=tuned\\x1b[2J"]
    assert rows[0]["cost_usd"] == "200.0"
    assert "\x1b" not in ended.out + filled("usage", "--by", "model", "--store", "s.db").out


def test_a_part_of_the_time_and_one_key(filled: Cli) -> None:
    def requests(*words: str) -> int:
        ended = filled("usage", "--format", "json", "--store", "s.db", *words)
        assert ended.code == 0, ended.err
        count: int = ended.json["total"]["requests"]
        return count

    assert requests("--since", "today") == 5
    assert requests("--since", day(1)) == 6
    assert requests("--since", "50d") == 107
    assert requests("--since", "50d", "--until", day(1)) == 102
    assert requests("--since", "8w", "--key", "ci") == 104
    assert requests("--key", "ffffffffffff") == 1
    assert requests("--key", ANYONE) == 2
    assert requests("--since", day(0)[:7]) >= 5
    wrong = filled("usage", "--key", "nobody", "--store", "s.db")
    assert wrong.code == 2
    assert "no usage by a key 'nobody'" in wrong.err
    assert filled("usage", "--since", "soon", "--store", "s.db").code == 2


def test_two_keys_of_one_name_are_distinguished(cli: Cli) -> None:
    async def fill() -> list[str]:
        store = SqliteStore(cli.folder / "s.db")
        keys = [new_key("ci", now=float(number))[0] for number in range(2)]
        for key in keys:
            await save(store, key)
            await store.add("usage", key.hashed, usage_key(day(0), "u", "m"), {"requests": 1}, until=1e12)
        await store.close()
        return sorted(f"ci ({key.id})" for key in keys)

    names = asyncio.run(fill())
    report = cli("usage", "--format", "json", "--store", "s.db").json
    assert sorted(row["key"] for row in report["rows"]) == names


def test_a_key_of_the_configuration_has_its_name(cli: Cli) -> None:
    async def fill() -> None:
        store = SqliteStore(cli.folder / "s.db")
        await store.add("usage", "a" * 64, usage_key(day(0), "u", "m"), {"requests": 1}, until=1e12)
        await store.close()

    asyncio.run(fill())
    key = f'[keys.team]\nkey = "sha256:{"a" * 64}"\n'
    cli.write("toolglot.toml", f'[gateway]\nstore = "s.db"\nsimulate = true\n{key}')
    assert [row["key"] for row in cli("usage", "--format", "json").json["rows"]] == ["team"]
    assert cli("usage", "--key", "team", "--format", "json").json["total"]["requests"] == 1


def test_where_nothing_was_used_a_message_says_so_and_no_store_is_made(cli: Cli) -> None:
    ended = cli("usage", "--store", "s.db")
    assert ended.code == 0
    assert ended.out == ""
    assert f"no usage from {day(30)} to {day(0)}" in ended.err
    assert not (cli.folder / "s.db").exists()
    assert cli("usage", "--store", "s.db", "--format", "json").json["rows"] == []
    assert cli("usage", "--store", "s.db", "--format", "csv").out.startswith("key,requests,failed")

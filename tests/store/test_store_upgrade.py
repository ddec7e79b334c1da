"""A store of any version that there ever was becomes one of the newest, with all that it holds.

The files are made by the statements of their own time, which are written down here once more: what a released step did
can be read from nothing else.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from toolglot.simulator import serve
from toolglot.store import SqliteStore
from toolglot.store.schema import MIGRATIONS

LATER = 1e12
NEWEST = 4

KEPT_1 = """
PRAGMA application_id = 1953460076;
CREATE TABLE kept (
    kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, value BLOB NOT NULL
);
CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key);
"""
KEPT_2 = """
PRAGMA application_id = 1953460076;
CREATE TABLE kept (
    age INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL,
    until REAL NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key);
CREATE INDEX kept_by_until ON kept (until, size);
"""
COUNTED_3 = """
CREATE TABLE counted (
    kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, amounts TEXT NOT NULL,
    PRIMARY KEY (kind, client, key)
) WITHOUT ROWID;
CREATE INDEX counted_by_until ON counted (until);
"""
CLAIMED_4 = """
CREATE TABLE claimed (
    kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, holder TEXT NOT NULL,
    PRIMARY KEY (kind, client, key)
) WITHOUT ROWID;
CREATE INDEX claimed_by_until ON claimed (until);
"""
FILES = {1: KEPT_1, 2: KEPT_2, 3: KEPT_2 + COUNTED_3, 4: KEPT_2 + COUNTED_3 + CLAIMED_4}
RELEASED = ("35da8dd9f232253e", "bd8e81e9d74f92fd", "71c8c28a79c8d115", "be8ab893f6bf3323")
"""What the released steps hash to. A new step adds one; none ever changes."""

Rows = list[tuple[str, str, str, float, bytes]]
ROWS: Rows = [
    ("vault", "ä", f"key {number}", LATER + number, bytes([number]) * (number * 997 % 5000)) for number in range(200)
] + [("responses", "😀", "", LATER, b""), ("keys", "", "k", float("inf"), b"\x00\xff" * 50)]

OPENER = """
import asyncio, sys
from toolglot.store import SqliteStore
sys.stdin.readline()
store = SqliteStore(sys.argv[1])
found = asyncio.run(store.find("vault", "ä", [f"key {number}" for number in range(200)]))
asyncio.run(store.keep("vault", "ä", {sys.argv[2]: b"new"}, until=1e12))
asyncio.run(store.close())
print(len(found))
"""


def make(file: Path, version: int, rows: Rows = ROWS) -> None:
    """A file as that version made it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as made:
        made.executescript(f"BEGIN; {FILES[version]} COMMIT; PRAGMA user_version = {version};")
        for kind, client, key, until, value in rows:
            if version == 1:
                made.execute("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", (kind, client, key, until, value))
            else:
                size = len(f"{kind}{client}{key}".encode()) + len(value)
                row = (kind, client, key, until, size, value)
                made.execute("INSERT INTO kept (kind, client, key, until, size, value) VALUES (?, ?, ?, ?, ?, ?)", row)
        if version >= 3:
            made.execute("INSERT INTO counted VALUES ('usage', 'ä', 'day', 1e12, ?)", (json.dumps({"n": 7.0}),))
        if version >= 4:
            made.execute("INSERT INTO claimed VALUES ('turns', 'ä', 'me', 1e12, 'first')")


def wanted(file: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as looking:
        return looking.execute(statement).fetchall()


def test_released_steps_stay_as_they_were_and_each_version_is_tested() -> None:
    hashed = [sha256("\n".join(" ".join(line.split()) for line in step).encode()).hexdigest() for step in MIGRATIONS]
    assert tuple(text[:16] for text in hashed) == RELEASED
    assert [*FILES] == [*range(1, NEWEST + 1)]
    assert len(MIGRATIONS) == NEWEST


@pytest.mark.parametrize("version", FILES)
def test_every_row_and_total_of_every_version_is_there_in_the_newest(tmp_path: Path, version: int) -> None:
    file = tmp_path / "store.db"
    make(file, version)

    async def act() -> None:
        for times in range(2):  # and once more, with nothing left to do
            store = SqliteStore(file)
            for kind, client in {row[:2] for row in ROWS}:
                own = {key: value for *names, key, _, value in ROWS if names == [kind, client]}
                assert await store.find(kind, client, [*own]) == own
            total = await store.add("usage", "ä", "day", {"n": 1}, until=LATER)
            assert total == {"n": (7 if version >= 3 else 0) + times + 1}
            await store.close()

    asyncio.run(act())
    assert wanted(file, "PRAGMA user_version") == [(NEWEST,)]
    assert wanted(file, "PRAGMA integrity_check") == [("ok",)]
    kept = wanted(file, "SELECT kind, client, key, until, value FROM kept ORDER BY age")
    assert kept == ROWS, "in the order in which they were kept"
    assert wanted(file, "SELECT sum(size) FROM kept") == [
        (sum(len(f"{kind}{client}{key}".encode()) + len(value) for kind, client, key, _, value in ROWS),)
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_processes_that_upgrade_a_store_at_once_lose_nothing(tmp_path: Path, version: int) -> None:
    file = tmp_path / "store.db"
    make(file, version)
    words = [sys.executable, "-c", OPENER, str(file)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    openers = [subprocess.Popen([*words, f"by {number}"], **pipes) for number in range(3)]
    assert [opener.communicate("go\n", 60)[0] for opener in openers] == ["200\n"] * 3
    assert wanted(file, "SELECT count(*) FROM kept") == [(len(ROWS) + 3,)]
    assert wanted(file, "PRAGMA user_version") == [(NEWEST,)]


@pytest.mark.parametrize("version", FILES)
def test_a_conversation_goes_on_over_an_upgrade_with_its_thinking_and_its_stored_answers(
    tmp_path: Path, version: int
) -> None:
    script = {"rules": [{"reply": {"thinking": "I think.", "text": "I say."}}]}
    with serve(script) as simulated:
        with gateway(simulated, settings=f'store = "{tmp_path / "new.db"}"') as served:
            path, body = request_of("openai", "anthropic/claude-sonnet-4-5", reasoning_effort="high")
            message = ask(served, path, body).body["choices"][0]["message"]
            stored = ask(served, *request_of("openai_responses", "mistral/mistral-large-latest", "Hello")).body["id"]
        rows: Rows = wanted(tmp_path / "new.db", "SELECT kind, client, key, until, value FROM kept ORDER BY age")
        assert {row[0] for row in rows} >= {"vault", "responses"}
        make(tmp_path / "old.db", version, rows)
        with gateway(simulated, settings=f'store = "{tmp_path / "old.db"}"') as served:
            more = [*body["messages"], message, {"role": "user", "content": "And then?"}]
            assert ask(served, path, {**body, "messages": more}).status == 200
            assert json.dumps(simulated.requests[-1].body).count('"signature": ') == 1
            continued = {"model": "mistral/mistral-large-latest", "input": "And?", "previous_response_id": stored}
            assert ask(served, "/v1/responses", continued).status == 200
            assert ask(served, f"/v1/responses/{stored}").body["id"] == stored

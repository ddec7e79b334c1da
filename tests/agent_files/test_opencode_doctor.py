"""Sessions of opencode: every fault is found, healed in a copy, and then gone; the database is only read."""

from __future__ import annotations

import contextlib
import copy
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_files.opencode_database import opencode_database
from support.agent_files.opencode_faults import OPENCODE_FAULTS, OpencodeFault, exported
from support.agent_files.sessions import home_in, results_by_call
from toolglot import InputError, agent_files
from toolglot.agent_files import HealedFile, WrittenSession
from toolglot.agent_files.base import get
from toolglot.agent_files.json_lines import parse_line

NOW = 1_794_736_800.0


def copied(healed: HealedFile, folder: Path) -> WrittenSession:
    """The healed lines as a file for `opencode import`, with new ids."""
    make = get("opencode").copy
    assert make is not None
    lines = [parse_line(number, data) for number, data in enumerate(healed.after, 1)]
    written = make(lines, home_in(folder), NOW)
    written.path.parent.mkdir(parents=True, exist_ok=True)
    written.path.write_bytes(written.data)
    return written


def ids_in(value: Any) -> set[str]:
    """All strings that are ids of opencode."""
    if isinstance(value, dict):
        return {id for each in value.values() for id in ids_in(each)}
    if isinstance(value, list):
        return {id for each in value for id in ids_in(each)}
    return {value} if isinstance(value, str) and value.startswith(("ses_", "msg_", "prt_")) else set()


def test_a_sound_session_has_no_faults_in_its_file_and_in_the_database(tmp_path: Path) -> None:
    path = tmp_path / "exported.json"
    path.write_text(json.dumps(exported()), encoding="utf-8")
    opencode_database(tmp_path, exported())
    (row,) = agent_files.find("opencode", home=home_in(tmp_path))
    assert (row.turns, row.title, row.directory) == (2, "A title", "/home/me/proj")
    for each in (path, row.path):
        healed = agent_files.heal_file(each)
        assert (healed.faults, healed.is_changed) == ((), False)
        assert results_by_call(agent_files.read(each).conversation) == [
            ({"command": "ls"}, "a.txt"),
            ({"command": "pwd"}, "/x"),
        ]


@pytest.mark.parametrize("fault", OPENCODE_FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_found_healed_in_a_copy_and_gone(fault: OpencodeFault, tmp_path: Path) -> None:
    path = tmp_path / "exported.json"
    path.write_text(json.dumps(fault.make(exported())), encoding="utf-8")
    before = path.read_bytes()
    found = agent_files.check(path)
    assert fault.kind in {each.kind for each in found}, found
    written = copied(agent_files.heal_file(path), tmp_path)
    assert path.read_bytes() == before
    assert agent_files.check(written.path) == ()
    results = [text for _, text in results_by_call(agent_files.read(written.path).conversation)]
    assert results[:2] == ["a.txt", "/x"]
    assert not ids_in(json.loads(written.data)) & ids_in(exported())


def test_messages_whose_session_is_gone_are_found_in_the_database(tmp_path: Path) -> None:
    database = opencode_database(tmp_path, exported(), has_row=False)
    before = database.read_bytes()
    (row,) = agent_files.find("opencode", home=home_in(tmp_path))
    assert [fault.kind for fault in agent_files.check(row.path)] == ["no-header"]
    written = copied(agent_files.heal_file(row.path), tmp_path)
    assert written.directory == "/home/me/proj"
    assert [text for _, text in results_by_call(agent_files.read(written.path).conversation)] == ["a.txt", "/x"]
    assert database.read_bytes() == before


def test_broken_rows_are_found_and_left_out(tmp_path: Path) -> None:
    database = opencode_database(tmp_path, exported())
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE part SET data = '{\"type\": \"te' WHERE data LIKE '%Nothing more%'")
        connection.execute("UPDATE message SET data = x'ff00fe' WHERE id LIKE 'msg_000000000003%'")
        connection.execute("INSERT INTO session (id, time_updated) VALUES ('../../evil', 1), ('ses_/x', 2)")
        connection.commit()
    (row,) = agent_files.find("opencode", home=home_in(tmp_path))
    assert {fault.kind for fault in agent_files.check(row.path)} == {"broken-part", "broken-line", "dangling-parent"}
    assert agent_files.check(copied(agent_files.heal_file(row.path), tmp_path).path) == ()


@pytest.mark.parametrize("data", [b"", b"SQLite format 3\0" + b"\0" * 90, b"nonsense" * 200])
def test_a_database_that_cannot_be_read_is_a_named_error(data: bytes, tmp_path: Path) -> None:
    database = opencode_database(tmp_path, exported())
    database.write_bytes(data)
    with pytest.raises(InputError, match="database"):
        agent_files.read(f"{database}#ses_1")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a document."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for name, each in children for found in _paths(each, (*path, name)))]


PLACES = _paths(exported())[1:]
VALUES: list[Any] = [None, 7, -1, "", "x", "x y/ü", [], {}, [None], {"type": "text"}, True, {"created": "x"}]


@pytest.mark.law
@given(
    changes=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from([*VALUES, "delete"])), min_size=1, max_size=6)
)
@settings(max_examples=300)
def test_a_broken_session_is_read_checked_and_healed_without_an_error_and_stays_healed(
    changes: list[tuple[tuple[Any, ...], Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = copy.deepcopy(exported())
    for place, value in changes:
        at: Any = document
        with contextlib.suppress(KeyError, IndexError, TypeError):
            for step in place[:-1]:
                at = at[step]
            if value == "delete":
                del at[place[-1]]
            else:
                at[place[-1]] = copy.deepcopy(value)
    folder = tmp_path_factory.mktemp("home")
    path = folder / "exported.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    found = agent_files.check(path, agent="opencode")
    if not isinstance(document.get("info"), dict):
        assert [fault.kind for fault in found] == ["broken-file"]
        return
    had = {text for _, text in results_by_call(agent_files.read(path, agent="opencode").conversation)}
    healed = agent_files.heal_file(path, agent="opencode")
    if {fault.kind for fault in healed.left} == {"no-messages"}:
        return
    assert healed.left == ()
    written = copied(healed, folder)
    assert agent_files.check(written.path) == ()
    assert {text for _, text in results_by_call(agent_files.read(written.path).conversation)} >= had & {"a.txt", "/x"}

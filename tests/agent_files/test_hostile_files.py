"""Files that are made to hurt: deep, huge, of two agents, links and pipes, ids that are paths, writers at once."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_files.read_only import FORMS
from support.agent_files.sessions import IDS, full_conversation, home_in, minimal, place, results_by_call, write_file
from toolglot import InputError, agent_files
from toolglot.agent_files.healing import replace_file
from toolglot.agent_files.json_lines import MAX_LINE_BYTES

AGENTS = sorted({*IDS, *(agent for agent, _ in FORMS.values()), "opencode"})


WRONG: list[Callable[[], Any]] = [
    *(lambda: None, lambda: 7, lambda: -1.5, lambda: True, lambda: "", lambda: "x y", lambda: "1e999"),
    *(list, dict, lambda: [None], lambda: [[]], lambda: {"type": []}, lambda: [{"type": "text"}], lambda: {"a": {}}),
]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a list of objects."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for name, each in children for place in ((*path, name), *places_in(each, (*path, name)))]


def lines_of(agent: str) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in minimal(agent)]


def examined(path: Path, agent: str) -> None:
    """Everything that only reads: a session, or an error that names the file."""
    for action in (agent_files.read, agent_files.check, agent_files.heal_file):
        with contextlib.suppress(InputError):
            action(path, agent=agent)


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("agent", IDS)
def test_deep_json_is_a_broken_line_and_the_rest_is_read(agent: str, depth: int, tmp_path: Path) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    lines = lines_of(agent)
    path = write_file(place(agent, home_in(tmp_path)), [*lines, deep + b"\n"])
    session = agent_files.read(path, agent=agent)
    assert [text for _, text in results_by_call(session.conversation)] == ["a.txt", "/x"]
    assert "broken-line" in {fault.kind for fault in agent_files.check(path, agent=agent)}
    healed = agent_files.heal_file(path, agent=agent)
    assert b"".join(healed.after) == b"".join(lines)
    write_file(path, [line.replace(b'"command": "ls"', b'"command": ' + deep) for line in lines])
    examined(path, agent)


@pytest.mark.parametrize("agent", IDS)
@pytest.mark.parametrize(
    "line",
    [
        b"[" * 1_000_000,
        b"{" * 1_000_000,
        b"{}" * 100_000,
        b"\n" * 500_000,
        b"1" * 100_000,
        b"\xff\xfe" * 1_000,
    ],
)
def test_a_hostile_line_changes_nothing_of_the_others(agent: str, line: bytes, tmp_path: Path) -> None:
    path = write_file(place(agent, home_in(tmp_path)), [*lines_of(agent), line + b"\n"])
    examined(path, agent)
    found = [text for _, text in results_by_call(agent_files.read(path, agent=agent).conversation)]
    assert found == ["a.txt", "/x"]


@pytest.mark.parametrize("agent", IDS)
@pytest.mark.parametrize(
    "line",
    [
        b'{"type": [], "id": {}, "uuid": [], "message": 7, "payload": "x", "data": [], "parentId": 3}',
        b'{"type": "user", "message": {"role": [], "content": {}}, "uuid": "u", "parentUuid": {}}',
        b'{"$set": [], "$rewindTo": {}, "id": "x"}',
    ],
)
def test_a_line_with_fields_of_wrong_types_stops_nothing(agent: str, line: bytes, tmp_path: Path) -> None:
    lines = lines_of(agent)
    for index in range(len(lines) + 1):
        path = write_file(place(agent, home_in(tmp_path)), [*lines[:index], line + b"\n", *lines[index:]])
        agent_files.read(path, agent=agent)
        agent_files.check(path, agent=agent)
        agent_files.heal_file(path, agent=agent)


@pytest.mark.law
@pytest.mark.parametrize("agent", IDS)
@given(data=st.data())
@settings(max_examples=150)
def test_any_field_may_have_any_type(agent: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = minimal(agent)
    for _ in range(data.draw(st.integers(1, 3))):
        path_in = data.draw(st.sampled_from(places_in(lines)))
        at: Any = lines
        for step in path_in[:-1]:
            at = at[step]
        at[path_in[-1]] = data.draw(st.sampled_from(WRONG))()
    path = write_file(
        place(agent, home_in(tmp_path_factory.mktemp("home"))), [each for each in lines if isinstance(each, dict)]
    )
    agent_files.read(path, agent=agent)
    agent_files.check(path, agent=agent)
    for holes in (False, True):
        healed = agent_files.heal_file(path, agent=agent, closes_holes=holes)
        copy = path.with_name(f"copy-{path.name}") if agent != "copilot_cli" else path
        before = path.read_bytes()
        copy.write_bytes(b"".join(healed.after))
        assert not agent_files.heal_file(copy, agent=agent, closes_holes=holes).is_changed
        path.write_bytes(before)


@pytest.mark.parametrize("agent", IDS)
def test_a_line_that_is_too_long_is_left_out(agent: str, tmp_path: Path) -> None:
    path = write_file(place(agent, home_in(tmp_path)), lines_of(agent))
    with path.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        stream.write(b'{"x": "')
        stream.seek(MAX_LINE_BYTES, os.SEEK_CUR)  # a hole: it takes no room on the disk
        stream.write(b'"}\n')
    session = agent_files.read(path, agent=agent)
    assert [text for _, text in results_by_call(session.conversation)] == ["a.txt", "/x"]
    assert any("longer than" in str(entry) for entry in session.report)
    assert "broken-line" in {fault.kind for fault in agent_files.check(path, agent=agent)}
    with pytest.raises(InputError, match="cannot be kept"):
        agent_files.heal_file(path, agent=agent)


@pytest.mark.parametrize("agent", IDS)
@pytest.mark.parametrize("other", IDS)
def test_a_file_with_the_lines_of_two_agents_is_read_and_healed_without_an_error(
    agent: str, other: str, tmp_path: Path
) -> None:
    mixed = [line for pair in zip(lines_of(agent), lines_of(other), strict=False) for line in pair]
    path = write_file(place(agent, home_in(tmp_path)), mixed)
    examined(path, agent)
    path.write_bytes(b"".join(agent_files.heal_file(path, agent=agent).after))
    assert not agent_files.heal_file(path, agent=agent).is_changed


@pytest.mark.parametrize("agent", IDS)
def test_what_is_named_like_a_session_and_is_no_file_does_not_stop_the_list(agent: str, tmp_path: Path) -> None:
    home = home_in(tmp_path)
    path = place(agent, home)
    path.parent.mkdir(parents=True)
    makers: tuple[Callable[[], object], ...] = (
        path.mkdir,
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path.name),
        lambda: os.mkfifo(path),
    )
    for make in makers:
        make()
        assert [row.title for row in agent_files.find(agent, home=home)] in ([], ["(cannot be read)"])
        with pytest.raises(InputError):
            agent_files.read(path, agent=agent)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize("agent", agent_files.writers())
@pytest.mark.parametrize("id", ["../../evil", "a/b", "..", ".", "a\0b", "a\nb", "-x", "é"])
def test_an_id_that_is_no_name_of_a_file_is_refused(agent: str, id: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected an id"):
        agent_files.write(full_conversation(), agent, home=home_in(tmp_path), directory="/", id=id)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("agent", agent_files.writers())
@pytest.mark.parametrize("directory", ["/../../x", "/a\nb", "/" + "long/" * 200, "/ü/$(x)`y`"])
def test_no_directory_leads_out_of_the_agents_folder(agent: str, directory: str, tmp_path: Path) -> None:
    written = agent_files.write(full_conversation(), agent, home=home_in(tmp_path), directory=directory, dry_run=True)
    assert ".." not in written.path.parts
    assert written.path.resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize("agent", IDS)
def test_ids_in_a_file_are_not_taken_for_paths(agent: str, tmp_path: Path) -> None:
    text = json.dumps(minimal(agent)).replace(IDS[agent], "../../../evil")
    path = write_file(place(agent, home_in(tmp_path)), json.loads(text))
    session = agent_files.read(path, agent=agent)
    for target in agent_files.writers():
        written = agent_files.write(session.conversation, target, home=home_in(tmp_path), directory="/")
        assert "evil" not in str(written.path)


def test_a_folder_that_cannot_be_written_is_a_named_error_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_bytes(b"")  # a file where a folder should be: this stops root too
    with pytest.raises(InputError, match="cannot write"):
        agent_files.write(full_conversation(), "pi", home=home_in(folder), directory="/")
    path = write_file(place("pi", home_in(tmp_path)), minimal("pi"))
    before = path.read_bytes()
    with pytest.raises(InputError, match="cannot write"):
        replace_file(path, b"new", folder / "backups", "now")
    assert path.read_bytes() == before
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("agent", ["claude_code", "codex", "opencode"])
def test_of_writers_at_the_same_time_one_wins_and_the_others_say_so(agent: str, tmp_path: Path) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def write() -> None:
        start.wait()
        try:
            agent_files.write(
                full_conversation(), agent, home=home_in(tmp_path), directory="/", id=IDS["codex"], now=1794736800.0
            )
            outcomes.append("written")
        except InputError as error:
            outcomes.append(error.message)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["a session is there already"] * 7 + ["written"]
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(agent_files.read(path).conversation.turns) >= 6


def test_a_session_that_grows_while_it_is_read_is_a_session(tmp_path: Path) -> None:
    path = write_file(place("claude_code", home_in(tmp_path)), minimal("claude_code"))
    stop = threading.Event()

    def append() -> None:
        with path.open("ab") as stream:
            while not stop.wait(0.0005):
                stream.write(b'{"type": "assi')
                stream.flush()

    thread = threading.Thread(target=append)
    thread.start()
    try:
        for _ in range(30):
            session = agent_files.read(path)
            assert [text for _, text in results_by_call(session.conversation)] == ["a.txt", "/x"]
            agent_files.check(path)
    finally:
        stop.set()
        thread.join()

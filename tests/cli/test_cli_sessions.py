"""`toolglot sessions`: listed, searched, shown, moved, cut and removed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.cli.commands import Cli, Ended
from support.cli.session_folder import folder
from toolglot.cli.session.session_host import as_input_error
from toolglot.cli.store_access import with_store
from toolglot.errors import InputError
from toolglot.store import Store

PREFACE = "[simulated by toolglot"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TOOLGLOT_MODEL", "simulated/openai/gpt-4.1")
    return Cli(tmp_path, monkeypatch, capsys)


def session_of(cli: Cli, *prompts: str) -> str:
    """A session with these prompts; its id."""
    first, *more = prompts
    id: str = cli("run", first, "--json", "-q").json["session"]
    for prompt in more:
        assert cli("run", prompt, "--session", id, "-q").code == 0
    return id


def listed(cli: Cli, *words: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = cli("sessions", "list", "--format", "json", *words).json
    return found


def keys(cli: Cli, id: str) -> list[str]:
    shown = cli("sessions", "show", id, "--format", "json").json
    return [turn["key"] for turn in shown["conversation"]]


def test_without_a_store_there_is_nothing_and_none_is_made(cli: Cli) -> None:
    ended = cli("sessions", "list")
    assert (ended.code, ended.out) == (0, "")
    assert "no sessions yet" in ended.err
    assert cli("sessions", "list", "--format", "json").json == []
    assert cli("sessions", "list", "--store", "other.db").code == 2
    assert not (cli.folder / "state").exists()


def test_list_shows_the_newest_first_and_says_when_there_are_more(cli: Cli) -> None:
    first, second = session_of(cli, "one"), session_of(cli, "two")
    ended = cli("sessions", "list")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].split() == ["ID", "LAST", "USED", "TURNS", "MODEL", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == [second, first]
    assert "simulated/openai/gpt-4.1" in lines[1]
    ended = cli("sessions", "list", "--limit", "1")
    assert first not in ended.out
    assert "there are more" in ended.err
    assert [entry["title"] for entry in listed(cli)] == ["two", "one"]
    assert cli("sessions", "list", "--limit", "0").code == 2


def test_search_finds_a_text_and_ends_with_1_where_it_stands_nowhere(cli: Cli) -> None:
    id = session_of(cli, "hello", "the invoice 4711 is late")
    session_of(cli, "something else")
    ended = cli("sessions", "search", "INVOICE")
    assert ended.code == 0
    assert ended.out.splitlines()[1].startswith(id)
    (found,) = cli("sessions", "search", "4711", "--format", "json").json
    assert (found["id"], found["role"]) == (id, "user")
    ended = cli("sessions", "search", "nowhere")
    assert (ended.code, ended.out) == (1, "")


def test_show_prints_who_wrote_what_with_tools_and_keys(cli: Cli) -> None:
    cli.write("tools.py", 'def weather(city: str) -> str:\n    """W."""\n    return "```\\x1b[31m7 degrees"\n')
    id: str = cli("run", "weather in Bonn?", "--tools", "tools.py", "--system", "Be brief.", "--json", "-q").json[
        "session"
    ]
    ended = cli("sessions", "show", id[:15], "--keys")
    assert ended.code == 0
    for shown in ("# weather in Bonn?", "## System", "## User", "→ `weather`", "← `weather` complete", "````"):
        assert shown in ended.out
    assert "\x1b" not in ended.out
    assert all(f"[{key}]" in ended.out for key in keys(cli, id))
    assert cli("sessions", "show", id[-8:]).code == 0, "its last letters will do"


def test_a_session_that_is_not_there_or_not_one_is_reported(cli: Cli) -> None:
    one, two = session_of(cli, "one"), session_of(cli, "two")
    assert "no session 'nothing'" in cli("sessions", "show", "nothing").err
    assert "sessions list" in cli("sessions", "show", "nothing").err
    ended = cli("sessions", "show", one[:9])
    assert ended.code == 2
    assert "2 sessions begin or end with" in ended.err
    assert two in ended.err


def test_what_is_exported_can_be_imported_elsewhere(cli: Cli) -> None:
    id = session_of(cli, "remember me")
    assert cli("sessions", "export", id, "-o", "talk.json").code == 0
    assert cli("sessions", "export", id, "-o", "talk.json").code == 2, "nothing is overwritten"
    assert json.loads(cli("sessions", "export", id).out)["format"] == "toolglot.session"
    ended = cli("sessions", "import", "talk.json", "--store", "other.db")
    assert (ended.code, ended.out) == (0, f"{id}\n")
    assert "continues it" in ended.err
    again: Ended = cli(
        "sessions", "import", "-", "--store", "other.db", "-q", stdin=(cli.folder / "talk.json").read_bytes()
    )
    assert again.out.strip() not in ("", id), "an id that is taken is not taken again"
    assert [entry["title"] for entry in listed(cli, "--store", "other.db")] == ["remember me"] * 2
    for name, expected in (("none.json", "no such file"), ("wrong.json", "toolglot.session")):
        cli.write("wrong.json", {"format": "other"})
        ended = cli("sessions", "import", name)
        assert ended.code == 2
        assert expected in ended.err


def test_fork_copies_up_to_a_turn_and_rewind_cuts(cli: Cli) -> None:
    id = session_of(cli, "one", "two")
    turns = keys(cli, id)
    copy = cli("sessions", "fork", id, "--at", turns[1]).out.strip()
    assert keys(cli, copy) == turns[:2]
    assert keys(cli, id) == turns
    assert cli("sessions", "rewind", id, "--to", turns[0], "-q") == (0, f"{id}\n", "")
    assert keys(cli, id) == turns[:1]
    assert cli("sessions", "rewind", id, "--to", "start").code == 0
    assert keys(cli, id) == []
    assert cli("sessions", "rewind", copy, "--to", "no-such-turn").code == 2
    forked = [entry for entry in listed(cli) if entry["id"] == copy]
    assert forked[0]["forked_from"] == id


def test_remove_takes_a_session_away(cli: Cli) -> None:
    id = session_of(cli, "one")
    assert cli("sessions", "remove", id).code == 0
    assert listed(cli) == []
    assert "no sessions yet" in cli("sessions", "list").err
    assert cli("sessions", "remove", id).code == 2


@pytest.mark.parametrize("action", ["list", "search", "show", "export", "import", "fork", "rewind", "remove"])
def test_every_action_has_help(cli: Cli, action: str) -> None:
    ended = cli("sessions", action, "--help")
    assert ended.code == 0
    assert "--store" in ended.out


def test_a_corrupt_session_is_reported_and_the_others_are_shown(cli: Cli) -> None:
    good = session_of(cli, "a good one")
    bad = session_of(cli, "a bad one")

    async def damage(store: Store) -> None:
        await store.keep("turns", bad, {"000000000001": b"{"}, until=float("inf"))
        await store.keep("sessions", "", {"broken": b"{"}, until=float("inf"))

    with_store(str(cli.folder / "state" / "toolglot" / "sessions.db"), damage)
    ended = cli("sessions", "list")
    assert good in ended.out
    assert "broken is corrupt" in ended.err
    ended = cli("sessions", "search", "answered nowhere")
    assert f"{bad} could not be searched" in ended.err
    assert cli("sessions", "show", bad).code == 2


def test_errors_name_commands_and_no_functions(tmp_path: Path) -> None:
    with folder(tmp_path) as sessions_folder:
        id = sessions_folder.run("run", "hello", "--json").json["session"]
        for words, expected in (
            (("show", "abc"), "`toolglot sessions list`"),
            (("fork", id, "--at", "nothing"), "error: --at: no turn has the key"),
            (("rewind", id, "--to", "nothing"), "`toolglot sessions show ID --keys`"),
        ):
            ended = sessions_folder.run("sessions", *words)
            assert ended.code == 2
            assert expected in ended.err
            assert not re.search(r"\$\.|\w\(|turn\.key", ended.err)
        ended = sessions_folder.run("sessions", "search", "hello")
        assert "title" in ended.out
        key = sessions_folder.run("sessions", "show", id, "--format", "json").json["conversation"][0]["key"]
        assert "1 turn;" in sessions_folder.run("sessions", "fork", id, "--at", key).err


def test_what_a_damaged_store_advises_is_no_call_of_python() -> None:
    error = as_input_error(InputError("damaged", path="$.id", hint="recover_session(store, 'x') makes a session of it"))
    assert error.path == "session"
    assert "(" not in error.hint

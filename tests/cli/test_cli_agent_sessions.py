"""`toolglot handoff`, `sessions list --agent` and `doctor SESSION` on session files of coding agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.agent_files.opencode_database import opencode_database
from support.agent_files.opencode_faults import exported
from support.agent_files.read_only import FORMS, PROMPT
from support.agent_files.sessions import (
    IDS,
    full_conversation,
    home_in,
    minimal,
    place,
    results_by_call,
    write_file,
)
from support.cli.commands import Cli
from toolglot import agent_files
from toolglot.cli.screen.line_diff import line_diff

OLD = 1_700_000_000


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """With a home of its own."""
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "QWEN_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, monkeypatch, capsys)


def made(home: Path, agent: str, *, broken: bool = False, old: bool = True) -> Path:
    lines = minimal(agent)
    if broken and agent == "claude_code":
        lines[2]["message"]["content"].pop()
    path = write_file(place(agent, home_in(home)), lines)
    if old:
        os.utime(path, (OLD, OLD))
    return path


def files_in(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


# --- list -------------------------------------------------------------------------------------------


def test_the_sessions_of_all_agents_are_listed_with_their_health(cli: Cli, tmp_path: Path) -> None:
    for agent in IDS:
        made(tmp_path, agent, broken=True)
    ended = cli("sessions", "list", "--agent", "all", "--format", "json")
    rows = {row["agent"]: row for row in json.loads(ended.out)}
    assert ended.code == 0
    assert {*rows} == {*IDS}
    assert {agent for agent, row in rows.items() if not row["healthy"]} == {"claude_code"}
    assert rows["codex"]["title"] == "What is here?"
    shown = cli("sessions", "list", "--agent", "claude").out
    assert "1 fault" in shown
    assert "codex" not in shown
    unchecked = json.loads(cli("sessions", "list", "--agent", "codex", "--no-check", "--format", "json").out)
    assert unchecked[0]["healthy"] is None


def test_a_database_that_cannot_be_read_does_not_hide_the_others(cli: Cli, tmp_path: Path) -> None:
    made(tmp_path, "codex")
    database = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"nonsense" * 200)
    rows = json.loads(cli("sessions", "list", "--agent", "all", "--format", "json").out)
    assert {row["agent"]: row["healthy"] for row in rows} == {"codex": True, "opencode": False}
    assert cli("doctor", "--all").code == 1
    assert cli("handoff", "--from", "codex", "--to", "pi", "-q").code == 0


def test_a_directory_filters_the_list(cli: Cli, tmp_path: Path) -> None:
    made(tmp_path, "codex")
    listed = cli("sessions", "list", "--agent", "all", "--directory", "/home/me/proj", "--format", "json")
    assert len(json.loads(listed.out)) == 1
    assert json.loads(cli("sessions", "list", "--agent", "all", "--directory", "/", "--format", "json").out) == []


def test_an_unknown_agent_is_an_error_with_the_closest_name(cli: Cli) -> None:
    ended = cli("sessions", "list", "--agent", "claud")
    assert ended.code == 2
    assert "unknown agent 'claud'; did you mean 'claude'" in ended.err


# --- handoff ----------------------------------------------------------------------------------------


def test_the_latest_session_is_handed_over_and_the_source_is_not_changed(cli: Cli, tmp_path: Path) -> None:
    source = made(tmp_path, "claude_code")
    before = source.read_bytes()
    ended = cli("handoff", "--from", "claude", "--to", "codex")
    assert ended.code == 0
    (row,) = agent_files.find("codex", home=home_in(tmp_path))
    assert ended.out.strip() == f"cd /home/me/proj && codex resume {row.id}"
    assert "Claude Code to Codex: 6 turns, 2 calls and 2 results" in ended.err
    assert source.read_bytes() == before


def test_a_dry_run_writes_nothing_and_shows_the_report(cli: Cli, tmp_path: Path) -> None:
    agent_files.write(full_conversation(), "claude", home=home_in(tmp_path), directory="/")
    before = files_in(tmp_path)
    ended = cli("handoff", "--from", "claude", "--to", "gemini", "--dry-run", "--format", "json")
    report = json.loads(ended.out)
    assert (report["written"], report["calls"], report["results"]) == (False, 3, 3)
    assert files_in(tmp_path) == before
    text = cli("handoff", "--from", "claude", "--to", "gemini", "--dry-run")
    assert "would be written" in text.err
    assert text.out == ""


def test_a_session_is_found_by_its_path_and_by_the_beginning_of_its_id(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "codex")
    assert cli("handoff", "--to", "pi", str(path), "-q").code == 0
    assert cli("handoff", "--to", "opencode", "2222", "-q").out.startswith("cd /home/me/proj && opencode import ")
    missing = cli("handoff", "--to", "pi", "9999")
    assert (missing.code, "there is no session '9999'" in missing.err) == (2, True)
    assert cli("handoff", "--to", "pi").code == 2


def test_a_request_is_handed_over_to_an_agent(cli: Cli, tmp_path: Path) -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
    messages = [
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
    ]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": "gpt-4.1", "messages": messages}), encoding="utf-8")
    ended = cli("handoff", "--to", "codex", str(path))
    assert (ended.code, "a request to Codex: 3 turns, 1 call and 1 result" in ended.err) == (0, True), ended.err
    (row,) = agent_files.find("codex", home=home_in(tmp_path))
    assert results_by_call(agent_files.read(row.path).conversation) == [({}, "a.txt")]
    path.write_text("[1]", encoding="utf-8")
    assert cli("handoff", "--to", "codex", str(path)).code == 2


def test_a_session_of_an_agent_becomes_one_of_toolglot_and_goes_back(cli: Cli, tmp_path: Path) -> None:
    made(tmp_path, "claude_code")
    dry = cli("handoff", "--from", "claude", "--to", "toolglot", "--dry-run")
    assert (dry.code, list(tmp_path.rglob("sessions.db"))) == (0, [])
    assert cli("handoff", "--from", "toolglot", "--to", "pi").code == 2  # there are none yet
    ended = cli("handoff", "--from", "claude", "--to", "toolglot")
    assert (ended.code, ended.out.startswith("toolglot chat --session ")) == (0, True), ended.err
    id = ended.out.split()[-1]
    assert "What is here?" in cli("sessions", "show", id).out
    assert cli("handoff", "--from", "toolglot", "--to", "pi", id, "-q").code == 0
    exported = tmp_path / "talk.json"
    assert cli("sessions", "export", id, "-o", str(exported)).code == 0
    assert cli("handoff", "--to", "qwen", str(exported), "-q").code == 0
    for agent in ("pi", "qwen"):
        (row,) = agent_files.find(agent, home=home_in(tmp_path))
        assert [text for _, text in results_by_call(agent_files.read(row.path).conversation)] == ["a.txt", "/x"]


@pytest.mark.parametrize("form", FORMS)
def test_a_session_that_is_only_read_is_listed_handed_over_and_converted(cli: Cli, tmp_path: Path, form: str) -> None:
    agent, make = FORMS[form]
    path = make(tmp_path)
    rows = json.loads(cli("sessions", "list", "--agent", agent, "--format", "json").out)
    assert [row["healthy"] for row in rows] == ([] if form == "goose, an export" else [True])
    assert cli("handoff", "--to", "claude", str(path), "-q").code == 0
    ended = cli("convert", str(path), "--to", "anthropic@claude-opus-5", "-q")
    assert (ended.code, PROMPT in ended.out) == (0, True), ended.err
    assert cli("doctor", str(path)).code == 0
    assert cli("inspect", str(path), "--export", str(tmp_path / "page.html"), "--force", "-q").code == 0
    refused = cli("handoff", "--to", agent, str(path))
    assert (refused.code, "only read" in refused.err) == (2, True)


def test_of_two_files_of_a_session_the_last_one_is_meant(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "gemini_cli")
    later = path.with_name(path.name.replace("T10-", "T11-"))
    write_file(later, [*minimal("gemini_cli"), {"type": "user", "id": "m9", "timestamp": "", "content": "Later."}])
    assert cli("handoff", "--to", "claude", "3333", "-q").code == 0
    (row,) = agent_files.find("claude", home=home_in(tmp_path))
    assert agent_files.read(row.path).conversation.turns[-1].text == "Later."


# --- doctor -----------------------------------------------------------------------------------------


def test_doctor_says_what_is_wrong_and_changes_nothing_unless_asked(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True)
    before = files_in(tmp_path)
    ended = cli("doctor", "latest", "--agent", "claude")
    assert ended.code == 1
    assert "line 2: the call 'toolu_2' has no result" in ended.out
    assert files_in(tmp_path) == before
    assert cli("doctor", str(path), "--format", "json").code == 1


def test_fix_heals_the_file_keeps_the_old_one_elsewhere_and_shows_the_change(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True)
    before = path.read_bytes()
    ended = cli("doctor", "latest", "--agent", "claude", "--fix")
    assert ended.code == 0
    assert "+ 3: .message.content[1] = " in ended.out
    assert "tool_use_id" in ended.out
    (backup,) = (tmp_path / ".local/state/toolglot/backups/claude_code").iterdir()
    assert backup.read_bytes() == before
    assert path.read_bytes() != before
    assert cli("doctor", "latest", "--agent", "claude").code == 0
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_was_just_written_is_changed_only_by_force(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True, old=False)
    before = path.read_bytes()
    refused = cli("doctor", str(path), "--fix")
    assert (refused.code, "may be open" in refused.err) == (2, True)
    assert path.read_bytes() == before
    assert cli("doctor", str(path), "--fix", "--force").code == 0


def test_a_file_that_another_process_has_open_is_not_changed(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True)
    code = "import sys; f = open(sys.argv[1], 'ab'); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        refused = cli("doctor", str(path), "--fix")
        assert (refused.code, f"process {holder.pid} has the file open" in refused.err) == (2, True)
        assert holder.stdin is not None
        holder.stdin.close()
    assert cli("doctor", str(path), "--fix").code == 0


def test_a_thread_that_codex_has_locked_is_not_changed(cli: Cli, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = made(tmp_path, "codex")
    path.write_bytes(path.read_bytes()[:-20])
    os.utime(path, (OLD, OLD))
    lock = tmp_path / ".codex" / "thread-writer-locks" / f"{IDS['codex']}.lock"
    lock.parent.mkdir()
    with lock.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        refused = cli("doctor", str(path), "--fix")
    assert (refused.code, "Codex holds its lock" in refused.err) == (2, True)
    assert cli("doctor", str(path), "--fix").code == 0


def test_a_session_of_opencode_is_healed_as_a_copy(cli: Cli, tmp_path: Path) -> None:
    broken = exported()
    del broken["messages"][1]["parts"][2]["state"]["metadata"]
    database = opencode_database(tmp_path, broken)
    before = database.read_bytes()
    ended = cli("doctor", "latest", "--agent", "opencode")
    assert (ended.code, "is not complete" in ended.out) == (1, True), ended.out
    ended = cli("doctor", "latest", "--agent", "opencode", "--fix")
    assert (ended.code, "opencode import" in ended.out) == (0, True), ended.out + ended.err
    (copy,) = (tmp_path / ".local/state/toolglot/handoff").iterdir()
    assert [text for _, text in results_by_call(agent_files.read(copy).conversation)] == ["a.txt", "/x"]
    assert agent_files.check(copy) == ()
    assert agent_files.read(copy).id != broken["info"]["id"]
    assert database.read_bytes() == before
    assert cli("doctor", "latest", "--agent", "opencode", "--rewind", "1", "--format", "json").code == 0
    rewound = [path for path in copy.parent.iterdir() if path != copy]
    assert agent_files.read(rewound[0]).conversation.turns[-1].role == "user"
    assert cli("convert", f"{database}#{broken['info']['id']}", "--to", "anthropic@claude-opus-5", "-q").code == 0


def test_a_compressed_rollout_of_codex_is_healed_and_stays_compressed(cli: Cli, tmp_path: Path) -> None:
    zstd = pytest.importorskip("backports.zstd")
    path = made(tmp_path, "codex")
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if b'"call_2"' not in line]
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstd.compress(b"".join(lines) + b'{"type": "resp'))
    path.unlink()
    os.utime(packed, (OLD, OLD))
    assert cli("doctor", str(packed)).code == 1
    assert cli("doctor", str(packed), "--fix").code == 0
    assert zstd.decompress(packed.read_bytes()) == b"".join(lines)
    assert cli("doctor", "latest", "--agent", "codex").code == 0


def test_rewind_removes_the_last_prompts(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code")
    assert cli("doctor", str(path), "--rewind", "1").code == 0
    assert agent_files.read(path).conversation.turns[-1].text == "There is a.txt."
    refused = cli("doctor", str(path), "--rewind", "1", "--force")
    assert (refused.code, "at least one must stay" in refused.err) == (2, True)


def test_handoff_says_that_the_folder_of_the_session_does_not_exist(cli: Cli, tmp_path: Path) -> None:
    made(tmp_path, "claude_code")
    assert "the folder /home/me/proj does not exist here" in cli("handoff", "--from", "claude", "--to", "codex").err
    ended = cli("handoff", "--from", "claude", "--to", "codex", "--directory", str(tmp_path))
    assert (ended.code, "does not exist" in ended.err) == (0, False)
    assert "(1 times)" not in ended.err
    listed = cli("sessions", "list", "--agent", "all").out
    assert "PROMPTS" in listed.splitlines()[0]


def test_handoff_lists_names_as_its_options_take_them(cli: Cli) -> None:
    for name, message in (("cline", "sessions of Cline are only read"), ("claud", "did you mean 'claude'?")):
        ended = cli("handoff", "--from", "claude", "--to", name)
        assert (ended.code, "--to: " in ended.err, message in ended.err) == (2, True, True)
        assert "known: claude, codex, copilot, gemini, opencode, pi, qwen, toolglot" in ended.err
    assert "aider" in cli("handoff", "--from", "claud", "--to", "codex").err


def test_what_is_no_session_file_is_named_as_what_it_is(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, content in (("text.txt", "hi"), ("empty.jsonl", ""), ("empty.json", "")):
        (tmp_path / name).write_text(content)
    for words, message in (
        (("doctor", "text.txt"), "text.txt: this is not a session file"),
        (("doctor", "folder"), "folder: is a folder"),
        (("doctor", "./folder"), "folder: is a folder"),
        (("doctor", "nothing"), "there is no session 'nothing'"),
        (("doctor", "empty.jsonl"), "empty.jsonl: file is empty"),
        (("handoff", "--to", "codex", "empty.json"), "empty.json: file is empty"),
    ):
        ended = cli(*words)
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_all_sessions_are_checked(cli: Cli, tmp_path: Path) -> None:
    for agent in IDS:
        made(tmp_path, agent, broken=True)
    ended = cli("doctor", "--all")
    assert ended.code == 1
    assert "6 sessions checked, 1 with faults" in ended.out
    assert cli("doctor", "--all", "--fix").code == 0
    assert "0 with faults" in cli("doctor", "--all").out


def test_the_options_of_sessions_need_a_session(cli: Cli) -> None:
    ended = cli("doctor", "--fix")
    assert (ended.code, "no session is named" in ended.err) == (2, True)


KILLED_FIXES = """
import json, os, pathlib, signal, sys
import toolglot.cli.agents.session_doctor as doctor
from toolglot.agent_files import healing
from toolglot.cli.main import main

path = pathlib.Path(sys.argv[1])
before = path.read_bytes()
replace = healing.replace_file

def fix(left):
    def hook(event, arguments):
        nonlocal left
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.chmod"):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    def hooked(*words):
        sys.addaudithook(hook)
        return replace(*words)

    doctor.replace_file = hooked
    return main(["doctor", str(path), "--fix", "--force"])

for number in range(1, 40):
    path.write_bytes(before)
    pid = os.fork()
    if not pid:
        os._exit(fix(number))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.stderr.write(json.dumps([code, path.read_bytes().hex()]) + "\\n")
    if code >= 0:
        break
"""
"""Fixes a session in processes of its own, each killed one call later than the one before; writes what each left."""


def test_a_kill_during_the_fix_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """The process is killed at each of its system calls that change something, from outside of it, by a trace hook."""
    path = made(tmp_path, "claude_code", broken=True)
    before = path.read_bytes()
    after = b"".join(agent_files.heal_file(path).after)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED_FIXES, str(path)], env={**os.environ, "HOME": str(tmp_path)}, capture_output=True
    )
    *killed, last = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith(b"[")]
    assert len(killed) >= 5
    assert {code for code, _ in killed} == {-signal.SIGKILL}
    assert last == [0, after.hex()]
    assert {content for _, content in killed} <= {before.hex(), after.hex()}
    assert before.hex() in {content for _, content in killed}


def test_the_diff_of_long_lines_shows_where_they_differ() -> None:
    long = b"x" * 100_000
    (gone, come) = line_diff([b"a\n", long + b"1\n", b"c\n"], [b"a\n", long + b"2\n", b"c\n"])
    assert gone.startswith("- 2: …xxx")
    assert gone.endswith("1")
    assert come.endswith("2")
    assert len(gone) < 200
    assert list(line_diff([b"a\n"], [b"a\n"])) == []
    assert "too many" in next(iter(line_diff([b"%d\n" % n for n in range(9000)], [b"-%d\n" % n for n in range(9000)])))


def test_the_diff_of_lines_of_json_shows_the_fields_that_changed() -> None:
    long = "x" * 1_000

    def line(**fields: object) -> bytes:
        return json.dumps({"id": long, **fields, "end": long}).encode() + b"\n"

    old = [line(parent="a", results=[1, 2])]
    assert list(line_diff(old, [line(parent="b", results=[1, True, 3])])) == [
        '- 1: .parent = "a"',
        '+ 1: .parent = "b"',
        "- 1: .results[1] = 2",
        "+ 1: .results[1] = true",
        "+ 1: .results[2] = 3",
    ]
    added = b'{"result": "it was interrupted"}\n'
    assert list(line_diff(old, [added, line(parent="b", results=[1, 2])])) == [
        '+ 1: {"result": "it was interrupted"}',
        '- 1: .parent = "a"',
        '+ 2: .parent = "b"',
    ]


# --- as requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", IDS)
def test_a_session_file_is_shown_in_the_inspector(cli: Cli, tmp_path: Path, agent: str) -> None:
    page = tmp_path / "page.html"
    assert cli("inspect", str(made(tmp_path, agent)), "--export", str(page)).code == 0
    assert "What is here?" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("agent", IDS)
def test_a_session_file_is_converted_linted_and_compared_like_a_request(cli: Cli, tmp_path: Path, agent: str) -> None:
    path = str(made(tmp_path, agent))
    ended = cli("convert", path, "--to", "mistral@mistral-large-latest", "-q")
    assert ended.code == 0, ended.err
    messages = json.loads(ended.out)["messages"]
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["a.txt", "/x"]
    assert cli("switch-report", path, "--to", "anthropic@claude-opus-5").code == 0
    assert cli("lint", path, "--for", "anthropic" if agent == "claude_code" else "mistral").code in (0, 1)


def test_a_session_that_ends_with_an_answer_is_no_prefill(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code")
    assert agent_files.request_of(agent_files.read(path))["messages"][-1]["role"] == "assistant"
    ended = cli("lint", str(path), "--for", "anthropic@claude-opus-4-6")
    assert (ended.code, ended.out) == (0, "")


def test_what_is_wrong_in_a_session_has_no_line_of_the_file(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True)
    assert f"{path}: anthropic refuses" in cli("lint", str(path), "--for", "anthropic").out
    (found, *_) = cli("lint", str(path), "--for", "anthropic", "--format", "json").json["violations"]
    assert (found["line"], found["column"]) == (None, None)
    sarif = cli("lint", str(path), "--for", "anthropic", "--format", "sarif").json
    assert "region" not in sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]


def test_what_is_wrong_in_a_session_is_in_its_request(cli: Cli, tmp_path: Path) -> None:
    path = made(tmp_path, "claude_code", broken=True)
    assert "toolu_2" in cli("lint", str(path), "--for", "anthropic").out
    before = path.read_bytes()
    refused = cli("repair", str(path), "--for", "anthropic", "--in-place")
    assert (refused.code, "toolglot doctor" in refused.err) == (2, True)
    assert path.read_bytes() == before
    fixed = cli("repair", str(path), "--for", "anthropic", "-q")
    assert fixed.code == 0
    assert "toolu_2" in fixed.out

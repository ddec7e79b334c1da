"""`toolglot run`: one prompt, one answer, for scripts."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.serving import EVERY_KIND, over_http
from support.cli.commands import Cli
from support.cli.session_folder import Folder, folder
from support.cli.terminal import CTRL_C
from toolglot.cli.main import main

SERVER = f"{shlex.quote(sys.executable)} {shlex.quote(EVERY_KIND)}"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def test_the_answer_is_on_stdout_and_nothing_else(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        assert project.run("run", "hello") == (0, "Well said.\n", "")
        ended = project.run("run", "use weather", "--tools", "tools.py")
        assert (ended.code, ended.out) == (0, "That is done.\n")
        assert ended.err == "this is no answer\n", "what a tool prints is not the answer"


def test_the_prompt_may_come_from_stdin(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        assert project.run("run", "-", stdin="grüß dich\n".encode()).code == 0
        assert "grüß dich" in str(project.server.requests[-1].body)
        assert project.run("run", "-", stdin=b"  \n").code == 2
        ended = project.run("run", "-", stdin=b"\xff\xfe")
        assert ended.code == 2
        assert "error: stdin: not UTF-8" in ended.err


def test_json_has_the_answer_the_calls_and_what_they_cost(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        ended = project.run("run", "use weather", "--tools", "tools.py", "--json")
        assert ended.code == 0
        output = ended.json
        (session,) = project.sessions()
        assert output["answer"] == "That is done."
        assert output["stop"] == "stop"
        assert output["model"] == "anthropic/claude-sonnet-4-5"
        assert output["simulated"] is False
        assert output["session"] == session["id"]
        assert output["usage"]["input_tokens"] > 0
        assert output["cost_usd"] > 0
        assert output["failure"] is None
        (call,) = output["calls"]
        assert call["name"] == "weather"
        assert call["arguments"] == {"city": "Bonn"}
        assert (call["state"], call["result"], call["is_error"], call["attempts"]) == (
            "success",
            "7 degrees in Bonn",
            False,
            1,
        )
        assert all({"action", "reason", "fault"} <= set(entry) for entry in output["report"])


def test_stream_json_is_a_line_for_each_event(tmp_path: Path) -> None:
    with folder(tmp_path, chunk=5) as project:
        project.server.fault("reset,after=6")
        ended = project.run(
            "run", "use weather", "--tools", "tools.py", "--stream-json", "--system", "Be brief.", "--no-store"
        )
        events = [json.loads(line) for line in ended.out.splitlines()]
        kinds = [event["event"] for event in events]
        assert {"asking", "said", "call_seen", "call", "dropped", "kept", "told", "ended"} <= set(kinds)
        assert kinds.count("ended") == 1
        assert kinds[-1] == "ended"
        states = [event["state"] for event in events if event["event"] == "call"]
        assert states == ["validating", "scheduled", "executing", "success"]
        assert events[-1]["answer"] == "That is done."
        assert events[-1]["session"] is None
        assert len(events[-1]["dropped"]) == 1


def test_a_tool_that_needs_an_approval_is_denied_with_the_option_that_allows_it(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        words = ("run", "use delete", "--tools", "tools.py", "--json")
        ended = project.run(*words)
        assert ended.code == 0
        assert ended.json["calls"][0]["state"] == "error"
        assert "--allow delete" in ended.json["calls"][0]["result"]
        assert "delete was not run" in ended.err
        assert not (tmp_path / "deleted").exists()
        for allow in (["--allow", "del*"], ["--allow-all"]):
            ended = project.run(*words, *allow)
            assert ended.json["calls"][0]["result"] == "deleted a.txt"


def test_a_session_is_gone_on_with_by_another_model(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        first = project.run("run", "use weather", "--tools", "tools.py", "--json").json
        ended = project.run("run", "and now?", "--continue", "--model", "quick", "--json")
        assert ended.json["session"] == first["session"]
        assert ended.json["model"] == "openai/gpt-4.1"
        assert project.server.requests[-1].status == 200
        assert "7 degrees" in str(project.server.requests[-1].body)
        ended = project.run("run", "again", "--session", first["session"], "--json")
        assert ended.json["model"] == "openai/gpt-4.1", "the session knows whom it was switched to"
        assert project.run("run", "x", "--session", "nothing-like-it").code == 2


def test_another_model_answers_where_the_first_one_does_not(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        project.server.fault(401)
        ended = project.run("run", "hello", "--fallback", "quick", "--json")
        assert ended.code == 0
        assert ended.json["model"] == "openai/gpt-4.1"
        (switched,) = ended.json["switched"]
        assert switched["before"] == "anthropic/claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["hello"], 1, "error: anthropic/claude-sonnet-4-5: auth 401"),
        (["cut this"], 1, "truncated"),
        (["for ever", "--tools", "tools.py", "--max-turns", "2"], 1, "--max-turns"),
        (["use wait", "--tools", "tools.py", "--timeout", "0.3"], 1, "timeout of 0.3 s"),
        (["use weather", "--tools", "tools.py", "--max-cost", "0.000001"], 1, "--max-cost"),
    ],
    ids=["failed", "cut", "loop", "timeout", "budget"],
)
def test_what_is_no_whole_answer_ends_with_1(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    with folder(tmp_path) as project:
        if words == ["hello"]:
            project.server.fault(401)
        ended = project.run("run", *words)
        assert ended.code == code
        assert message in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x", "--model", "no such model at all", "--config", "none.toml"], "none.toml: cannot read file"),
        (["x", "--tools", "missing.py"], "missing.py: no such file"),
        (["x", "--tools", "."], "is a directory"),
        (["x", "--tools", "broken.py"], "broken.py:2: invalid Python"),
        (["x", "--tools", "empty.py"], "empty.py: defines no tools"),
        (["x", "--tools", "raises.py"], "raises.py:1: cannot load file: ZeroDivisionError"),
        (["x", "--tools", "exits.py"], "exits.py:1: cannot load file: SystemExit"),
        (["x", "--tools", "needs.py"], "needs.py:1: cannot load file: ModuleNotFoundError"),
        (["x", "--tools", "unfit.py"], "a generator cannot be a tool"),
        (["x", "--tools", "definition.py"], "nothing runs it"),
        (["x", "--tools", "tools.py:nothing"], "defines no nothing"),
        (["x", "--tools", "tools.py:__name__"], "expected a tool"),
        (["x", "--tools", "no.such.module"], "no such file or module"),
        (["x", "--tools", "data.bin"], "not a Python file"),
        (["x", "--tools", "tools.py", "--tools", "tools.py"], "there is a tool named 'weather' already"),
        (["x", "--mcp", "no-such-command-here"], "the MCP server 'no-such-command-here' failed"),
        (["x", "--mcp", "none.json"], "none.json"),
        (["x", "--mcp", "wrong.json"], "wrong.json: $.mcpServers.a"),
        (["x", "--mcp", "'"], "invalid command"),
        (["x", "--mcp", " "], "expected a server"),
        (["x", "--mcp", "http://"], "expected a URL"),
        (["x", "--system", "@none.txt"], "none.txt: cannot read file"),
        (["x", "--system", "@data.bin"], "data.bin: not UTF-8"),
        (["x", "--store", "env:NOT_SET_ANYWHERE"], "the environment variable NOT_SET_ANYWHERE is not set"),
        (["x", "--store", ""], "invalid store"),
        (["x", "--store", "."], "this is not a file"),
        (["x", "--store", "mysql://x"], "unknown kind of store"),
        (["x", "--max-turns", "0"], "expected a whole number from 1"),
        (["x", "--timeout", "soon"], "expected seconds"),
        (["x", "--continue", "--no-store"], "cannot be used with --session or --continue"),
        (["x", "--continue"], "no sessions yet"),
        (["x", "--session", "a"], "no session"),
        ([""], "the prompt is empty"),
    ],
)
def test_what_is_used_wrongly_ends_with_2_one_line_and_a_hint(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(cli.folder / "state"))
    for name, text in FILES.items():
        cli.write(name, text)
    ended = cli("run", *words)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert len([line for line in ended.err.splitlines() if line.startswith(("error: ", "toolglot run: "))]) == 1


FILES: dict[str, Any] = {
    "tools.py": 'def weather(city: str) -> str:\n    """The weather."""\n    return city\n',
    "broken.py": "x = 1\ndef f(:\n",
    "empty.py": "_hidden = 1\nfrom os.path import join\n",
    "raises.py": "1 / 0\n",
    "exits.py": "raise SystemExit(3)\n",
    "needs.py": "import surely_not_installed\n",
    "unfit.py": "def numbers():\n    yield 1\n",
    "definition.py": "from toolglot import ToolSpec\nfrom toolglot.runtime.tools.toolbox import Tool\n"
    "only = Tool(spec=ToolSpec('only'))\n",
    "data.bin": b"\xff\xfe\x00",
    "wrong.json": {"mcpServers": {"a": {"command": 3}}},
}


def test_public_functions_names_lists_and_modules_are_tools(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGLOT_MODEL", "simulated/openai/gpt-4.1")
    cli.write("beside.py", "WORD = 'here'\n")
    cli.write(
        "plain.py",
        "from beside import WORD\n\ndef look(x: str) -> str:\n    return WORD\n\ndef other() -> int:\n    return 1\n\n"
        "BOTH = [look, other]\n",
    )
    for option in ("plain.py", "plain.py:look,other", "plain.py:BOTH"):
        ended = cli("run", "look at 'it'", "--tools", option, "--json", "--no-store", "-q")
        assert ended.code == 0, ended.err
        assert [call["result"] for call in ended.json["calls"]] == ["here"], option
    assert cli("run", "x", "--tools", "textwrap:dedent", "--no-store").code == 0


def test_tools_of_mcp_servers_over_stdio_http_and_a_configuration(tmp_path: Path) -> None:
    script = {
        "rules": [
            {"when": {"results": 0}, "reply": {"calls": [{"name": "echo", "arguments": {"text": "aye"}}]}},
            {"reply": {"text": "Done."}},
        ]
    }
    with folder(tmp_path, **script) as project:
        config = {"mcpServers": {"kinds": {"command": sys.executable, "args": [EVERY_KIND]}}}
        project.write("servers.json", json.dumps(config))
        for option in (SERVER, "servers.json"):
            output = project.run("run", "go", "--mcp", option, "--allow", "echo", "--json").json
            assert output["calls"][0]["result"] == "aye"
        with over_http() as (address, _):
            output = project.run("run", "go", "--mcp", address, "--allow", "echo", "--json").json
            assert output["calls"][0]["result"] == "aye"
        output = project.run("run", "go", "--mcp", SERVER, "--json").json
        assert "--allow echo" in output["calls"][0]["result"], "a server's tools ask"
        project.server.script(
            rules=[
                {"when": {"results": 0}, "reply": {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}},
                {"reply": {"text": "Done."}},
            ]
        )
        output = project.run("run", "go", "--mcp", SERVER, "--json").json
        assert output["calls"][0]["state"] == "success", "unless they say that they only read"


def test_two_servers_of_one_program_are_distinguished(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        assert project.run("run", "hello", "--mcp", SERVER, "--mcp", SERVER, "--no-store").code == 0


# --- signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_in_order_and_keeps_the_session(tmp_path: Path, number: signal.Signals) -> None:
    with (
        folder(tmp_path) as project,
        project.started("run", "use wait", "--tools", "tools.py", "--stream-json") as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line).get("progress"):
                process.send_signal(number)
                break
        out, err = process.communicate(timeout=120)
        assert process.returncode == 128 + number
        ended = json.loads(out.splitlines()[-1])
        assert ended["stop"] == "cancelled"
        assert ended["calls"][0]["state"] == "cancelled"
        assert b"the session is stored" in err
        again = project.run("run", "hello", "--continue")
        assert (again.code, again.out) == (0, "Well said.\n")
        assert all(seen.status == 200 for seen in project.server.requests)


STUBBORN = """\
import sys
import time

from toolglot import ToolContext


def stubborn(context: ToolContext) -> None:
    print("begun", file=sys.stderr, flush=True)
    context.cancelled.wait(3600)
    print("stopped", file=sys.stderr, flush=True)
    time.sleep(60)
"""


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        project.write("stubborn.py", STUBBORN)
        words = ("run", "stubborn", "--tools", "stubborn.py", "-m", "simulated/openai/gpt-4.1", "-q", "--json")
        with project.started(*words) as process:
            assert process.stderr is not None
            for line in (b"begun\n", b"stopped\n"):
                assert process.stderr.readline() == line
                process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=120)
            assert (process.returncode, out) == (130, b"")
        shown = project.run("sessions", "show", project.sessions()[0]["id"], "--format", "json").json
        assert [turn["role"] for turn in shown["conversation"]] == ["user", "assistant"], "the message is kept"


def test_ctrl_c_before_anything_is_open_ends_with_130(tmp_path: Path) -> None:
    slow = f'{shlex.quote(sys.executable)} -c \'import sys; open("here", "w").close(); sys.stdin.read()\''
    with folder(tmp_path) as project:
        os.mkfifo(tmp_path / "here")
        with project.started("run", "x", "--mcp", slow) as process:
            (tmp_path / "here").read_text()  # the server is there, and says nothing
            process.send_signal(signal.SIGINT)
            written = process.communicate(timeout=120)
            assert process.returncode == 130, written


# --- at a terminal ----------------------------------------------------------------------------------


def test_progress_is_reported_on_a_terminal_and_approvals_are_requested_there(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("run", "use delete", "--tools", "tools.py") as screen:
        screen.expect("? delete wants to run")
        screen.expect("[e]dit: ")
        screen.say("e")
        screen.expect('now: {"path":"a.txt"}')
        screen.say('{"path": "b.txt"}')
        screen.expect("✓ delete")
        screen.expect("That is done.")
        screen.expect("session ")
        assert screen.ended() == 0
        assert (tmp_path / "deleted").read_text() == "b.txt"


def test_ctrl_c_at_a_terminal(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("run", "use wait", "--tools", "tools.py") as screen:
        screen.expect("still here")
        screen.press(CTRL_C, "⊘ wait")
        screen.expect("stopped: interrupted; the session is stored")
        assert screen.ended() == 130


def test_the_answer_is_harmless_on_a_terminal_and_as_it_is_in_a_pipe(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        assert project.run("run", "paint").out == "a \x1b[31mred\x1b[0m word\n"
        with project.terminal("run", "paint") as screen:
            screen.expect("a \\x1b[31mred\\x1b[0m word")
            assert screen.ended() == 0


# --- without a key, without extras ------------------------------------------------------------------


def test_without_a_key_a_simulated_model_answers_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith(("TOOLGLOT_", "AWS_")):
            monkeypatch.delenv(name)
    assert main(["run", "hello", "--no-store", "--json"]) == 0
    out, err = capsys.readouterr()
    output = json.loads(out)
    assert output["simulated"] is True
    assert output["cost_usd"] is None
    assert output["answer"].startswith("[simulated by toolglot")
    assert "no real model answers" in err


@pytest.mark.parametrize(
    ("package", "words", "hint"),
    [
        ("anyio", ["run", "x"], "pip install '.[runtime]' in a clone of toolglot"),
        ("anyio", ["chat"], "pip install '.[runtime]' in a clone of toolglot"),
        ("anyio", ["sessions", "list"], "pip install '.[runtime]' in a clone of toolglot"),
        ("mcp", ["run", "x", "--no-store", "--mcp", "cat"], "pip install '.[mcp]'"),
    ],
)
def test_a_missing_extra_is_reported_with_what_to_install(
    tmp_path: Path, package: str, words: list[str], hint: str
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None\nfrom toolglot.cli.main import main\nsys.exit(main({words!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_help_needs_no_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['anyio'] = None\nfrom toolglot.cli.main import main\nsys.exit(main(['run', '--help']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0
    assert "exit codes: 0 answered" in " ".join(done.stdout.split())


CAREFUL = """
[models.careful]
to = ["anthropic/claude-sonnet-4-5", { to = "openai/gpt-4.1", force = { temperature = 1 } }]
weights = [1, 1]
system = "Answer in English."
default = { max_tokens = 77 }
force = { temperature = 0.5, tool_choice = "required" }
headers = { x-team = "search" }
policy = { required = "keep" }

[models.pretend]
to = "simulated/openai/gpt-4.1"
default = { max_tokens = 77 }
"""


def with_names(project: Folder) -> Folder:
    project.write("toolglot.toml", (project.path / "toolglot.toml").read_text() + CAREFUL)
    return project


def test_what_a_name_of_models_sets_holds_and_the_rest_is_reported(tmp_path: Path) -> None:
    with folder(tmp_path) as made:
        project = with_names(made)
        ended = project.run("run", "hello", "--model", "careful", "--system", "Be brief.", "--tools", "tools.py")
        assert ended.code == 0
        sent = project.server.requests[-1]
        assert sent.body["max_tokens"] == 77
        assert sent.body["temperature"] == 0.5
        assert "tool_choice" not in sent.body
        assert "Answer in English.\\n\\nBe brief." in json.dumps(sent.body["system"])
        assert sent.headers["x-team"] == "search"
        output = " ".join(ended.err.split())
        for left_out in ("[models] careful: not applied here", "weights", "openai/gpt-4.1 alone", "tool_choice"):
            assert left_out in output
        project.server.fault(401)
        ended = project.run("run", "hello", "--model", "careful", "--json")
        assert ended.json["model"] == "openai/gpt-4.1", "those that its entry lists stand in"
        ended = project.run("run", "hello", "--model", "quick", "--fallback", "careful")
        assert "--fallback careful uses the settings of openai/gpt-4.1" in " ".join(ended.err.split())


def test_a_session_that_began_otherwise_reports_the_system_prompt_of_a_name(tmp_path: Path) -> None:
    with folder(tmp_path) as made:
        project = with_names(made)
        assert "careful" not in project.run("run", "hello").err
        ended = project.run("run", "hello", "--continue", "--model", "careful")
        assert "system: this session started without it" in " ".join(ended.err.split())
        assert project.server.requests[-1].body["max_tokens"] == 77


def test_a_name_that_leads_to_a_simulated_model_is_reported_as_one(tmp_path: Path) -> None:
    with folder(tmp_path) as made:
        ended = with_names(made).run("run", "hello", "--model", "pretend", "--json")
        assert ended.json["model"] == "pretend"
        assert (ended.json["simulated"], ended.json["cost_usd"]) == (True, None)
        assert "pretend is simulated" in ended.err


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("opnai/gpt-4.1", "did you mean 'openai/gpt-4.1'"),
        ("no/such", "unknown model 'no/such'"),
        ("gemini/gemini-3-pro", "set GEMINI_API_KEY or GOOGLE_API_KEY and write [upstreams.gemini] into toolglot.toml"),
        ("gemini-3-pro", "simulated/gemini/gemini-3-pro is a simulated model"),
    ],
)
def test_no_simulated_model_answers_for_a_model_that_was_meant(tmp_path: Path, model: str, message: str) -> None:
    with folder(tmp_path) as project:
        ended = project.run("run", "hello", "--model", model)
        assert (ended.code, ended.out) == (2, "")
        assert message in " ".join(ended.err.split())
        assert project.run("run", "hello", "--model", "simulated/gemini/gemini-3-pro").code == 0


def test_without_keys_and_configuration_no_model_is_simulated_that_was_named_otherwise(cli: Cli) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_KEY", "_TOKEN"))]:
        cli.monkeypatch.delenv(name)
    cli.monkeypatch.setenv("TOOLGLOT_MODEL", "")
    cli.monkeypatch.setenv("TOOLGLOT_CONFIG", "")
    for words in (("--model", "openai/gpt-5.5"), ("--model", "gpt-5.5"), ("--fallback", "openai/gpt-5.5")):
        ended = cli("run", "hello", "--no-store", *words)
        output = " ".join(ended.err.split())
        assert (ended.code, ended.out) == (2, "")
        assert "there is no key for OpenAI" in output
        assert "set the environment variable OPENAI_API_KEY" in output
        assert "simulated/openai/gpt-5.5 is a simulated model" in output
    cli.monkeypatch.setenv("TOOLGLOT_MODEL", "anthropic/claude-opus-5")
    assert cli("run", "hello", "--no-store").code == 2
    ended = cli("run", "hello", "--no-store", "--model", "opnai/gpt-5.5")
    assert ended.code == 2
    output = " ".join(ended.err.split())
    assert "did you mean 'simulated/openai/gpt-5.5'?" in output
    assert "set OPENAI_API_KEY for a real model; without one, only names that begin with simulated/" in output
    ended = cli("run", "hello", "--no-store", "--model", "simulated/openai/gpt-5.5", "--json")
    assert (ended.code, ended.json["model"], ended.json["simulated"]) == (0, "simulated/openai/gpt-5.5", True)
    cli.monkeypatch.setenv("TOOLGLOT_MODEL", "")
    ended = cli("run", "hello", "--no-store", "--json")
    assert (ended.code, ended.json["model"]) == (0, "simulated/anthropic/claude-opus-5")
    assert "is simulated: no real model answers" in ended.err


def test_with_a_file_that_names_no_upstream_run_simulates_only_by_name(cli: Cli) -> None:
    cli.monkeypatch.setenv("TOOLGLOT_MODEL", "")
    cli.write("toolglot.toml", "[gateway]\nsimulate = true\n")
    for words in ((), ("--model", "openai/gpt-5.5")):
        ended = cli("run", "hello", "--no-store", "--config", "toolglot.toml", *words)
        assert (ended.code, ended.out) == (2, "")
        assert "simulated/" in ended.err
    named = ("--config", "toolglot.toml", "--model", "simulated/openai/gpt-5.5")
    assert cli("run", "hello", "--no-store", *named).code == 0
    cli.write("toolglot.toml", "[gateway]\nsimulate = false\n")
    ended = cli("run", "hello", "--no-store", *named)
    assert ended.code == 2
    assert "forbidden" in ended.err


def test_a_denied_call_was_never_tried_and_an_unknown_leave_is_reported(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        ended = project.run("run", "use delete", "--tools", "tools.py", "--json", "--allow", "delte")
        (call,) = ended.json["calls"]
        assert (call["state"], call["attempts"]) == ("error", 0)
        assert "--allow delte: matches no tool; did you mean delete?" in ended.err
        ended = project.run("run", "hello", "--allow", "delte")
        assert "matches no tool; tools: none" in ended.err


def test_a_call_is_known_by_the_id_under_which_it_was_seen(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        ended = project.run("run", "use weather", "--tools", "tools.py", "--stream-json")
        events = [json.loads(line) for line in ended.out.splitlines()]
        (seen,) = (event["provider_id"] for event in events if event["event"] == "call_seen")
        assert {event["provider_id"] for event in events if event["event"] == "call"} == {seen}


def test_a_host_that_is_not_there_is_reported_as_that(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        project.write(
            "toolglot.toml", '[upstreams.openai]\nurl = "http://127.0.0.1:9/v1"\nkey_env = "STAGE_KEY"\nretries = 0\n'
        )
        ended = project.run("run", "hello", "--model", "openai/gpt-4.1")
        assert ended.code == 1
        assert "the host cannot be reached: the connection was refused" in " ".join(ended.err.split())
        assert "overloaded" not in ended.err

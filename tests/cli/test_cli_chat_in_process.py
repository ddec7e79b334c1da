"""`toolglot chat` and `toolglot run` in this process: what they say, do and refuse, with input that comes at once."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import Cli
from support.cli.session_folder import Folder, folder
from toolglot.cli.main import build_parser
from toolglot.cli.screen.foreground import Foreground
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.session.chat_session import ChatSessions
from toolglot.cli.session.run_once import RunOnce
from toolglot.cli.session.session_host import NewSession, SessionHost, StoredSession, as_input_error
from toolglot.cli.session.session_options import SessionSettings, session_settings
from toolglot.errors import InputError, LimitError, ToolglotError
from toolglot.runtime.log.session_log import SessionTakenError
from toolglot.store import StoreError

OTHER = "[upstreams.other]\nprovider = 'anthropic'"


STOP = """\
import os
import signal

from toolglot import ToolContext


def stop(context: ToolContext) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    context.cancelled.wait(120)
"""


class Typist:
    """A user who types these lines. One that is a signal's number is sent as one."""

    is_interactive = True

    def __init__(self, *lines: str | int | BaseException) -> None:
        self.lines = list(lines)

    def read(self, prompt: str, prefill: str = "") -> str:  # noqa: ARG002
        line = self.lines.pop(0) if self.lines else EOFError()
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, int):
            signal.raise_signal(line)
        return str(line)


class Talk:
    """What came of a talk."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    with folder(tmp_path, chunk=20) as made:
        monkeypatch.chdir(tmp_path)
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


def settings(command: str, *words: str) -> SessionSettings:
    return session_settings(build_parser([command]).parse_args([command, *words]))


def talk(*lines: str | int | BaseException, words: tuple[str, ...] = ("--tools", "tools.py"), **more: Any) -> Talk:
    out, err = io.StringIO(), io.StringIO()
    foreground = Foreground(more.get("reader") or Typist(*lines))
    hall = ChatSessions(settings("chat", *words), Terminal(out, err), foreground)
    code = foreground.run(hall.run)
    return Talk(code, out.getvalue(), err.getvalue())


def test_a_talk_with_every_command(project: Folder) -> None:
    result = talk(
        "hello",
        "",
        "/tools",
        "/model",
        "/model quick",
        "/cost",
        "/help",
        "/undo",
        "/undo",
        "use weather",
        "/go",
        "/compress",
        "/save talk.md",
        "/save talk.md",
        "/save talk.md --force",
        "/save talk.json",
        "/save",
        "/nonsense",
        "/resume",
        "/fork",
        "hello again",
        "/resume nothing-such",
        "/history",
        "/history 1",
        "/history none",
        "/quit",
    )
    assert result.code == 0
    for shown in (
        "> use weather\nI use weather.",
        "Well said.",
        "current: anthropic/claude-sonnet-4-5",
        "switched to openai/gpt-4.1",
        "/resume [ID]",
        "removed: hello",
        "nothing to undo",
        "✓ weather",
        "wrote talk.json",
        "is unchanged; continuing in",
    ):
        assert shown in result.out, shown
    for message in (
        "expected a number of turns",
        "file already exists",
        "expected a file",
        "unknown command",
        "no session",
    ):
        assert message in result.err, message
    assert (project.path / "talk.md").read_text().startswith("## User")
    assert len(project.sessions()) == 2


def test_a_talk_goes_on_where_it_was(project: Folder) -> None:
    talk("use weather")
    (first,) = project.sessions()
    result = talk(f"/resume {first['id']}", "hello", words=("--continue", "--model", "quick"))
    assert result.out.count(str(first["id"])) == 2
    assert project.sessions()[0]["model"] == "openai/gpt-4.1"
    result = talk("hello", words=("--session", str(first["id"])))
    assert result.out.startswith("openai/gpt-4.1")


def test_a_session_whose_model_is_gone_needs_another_one(project: Folder) -> None:
    talk("hello")
    text = (project.path / "toolglot.toml").read_text()
    project.write("toolglot.toml", text.replace("simulate = true", "").replace("[upstreams.anthropic]", OTHER))
    with pytest.raises(InputError, match="the session's model is not available"):
        talk("hello", words=("--continue",))
    assert talk("hello", words=("--continue", "--model", "quick")).code == 0


def test_approvals_are_requested_and_answered(project: Folder) -> None:
    result = talk("use delete", "n because", "use delete", "y")
    assert "Reason: because" in result.out
    assert "deleted a.txt" in result.out
    assert (project.path / "deleted").read_text() == "a.txt"
    assert "wants to run" not in talk("use delete", words=("--tools", "tools.py", "--allow", "delete")).out


def test_ctrl_c_at_an_approval_stops_the_turn(project: Folder) -> None:
    result = talk("use delete", signal.SIGINT, "hello", words=("--tools", "tools.py"))
    assert "⊘ delete" in result.out
    assert "stopped" in result.out
    assert "Well said." in result.out
    assert not (project.path / "deleted").exists()


def test_ctrl_c_twice_at_the_prompt_leaves(project: Folder) -> None:
    result = talk("hello", signal.SIGINT, "hello", signal.SIGINT, signal.SIGINT, "never said")
    assert result.code == 0
    assert result.out.count("press Ctrl-C again, or Ctrl-D, to leave") == 2
    assert len(project.server.requests) == 2


def test_ctrl_c_that_comes_too_late_stops_nothing(project: Folder) -> None:
    class Late(Typist):
        def read(self, prompt: str, prefill: str = "") -> str:
            line = super().read(prompt, prefill)
            foreground._is_reading = False  # as between two lines
            signal.raise_signal(signal.SIGINT)
            return line

    out = io.StringIO()
    foreground = Foreground(Late("/cost", "hello", "/cost"))
    hall = ChatSessions(settings("chat"), Terminal(out, io.StringIO()), foreground)
    assert foreground.run(hall.run) == 0
    assert out.getvalue().count("this session: ") == 2
    assert len(project.server.requests) <= 1


def test_sigterm_at_the_prompt_leaves(project: Folder) -> None:
    result = talk("hello", signal.SIGTERM, "never said")
    assert result.code == 128 + signal.SIGTERM
    assert len(project.server.requests) == 1


def test_sigterm_in_a_turn_stops_it_and_leaves(project: Folder) -> None:
    project.write("stop.py", STOP.replace("SIGINT", "SIGTERM"))
    result = talk("stop", "never said", words=("--tools", "stop.py", "-m", "simulated/openai/gpt-4.1"))
    assert result.code == 128 + signal.SIGTERM
    assert "⊘ stop" in result.out
    assert "never said" not in project.run("sessions", "search", "never said").out


def test_the_time_of_an_answer_is_bounded(project: Folder) -> None:
    result = talk("use wait", "hello", words=("--tools", "tools.py", "--timeout", "0.5"))
    assert "stopped: timeout" in result.out
    assert "Well said." in result.out


def test_a_provider_that_fails_is_reported_and_the_chat_goes_on(project: Folder) -> None:
    project.server.fault(401)
    result = talk("hello", "hello", "cut this")
    assert result.code == 0
    assert "auth 401" in result.err
    assert "truncated" in result.err
    assert "Well said." in result.out


def test_nothing_is_kept_without_a_store(project: Folder) -> None:
    result = talk("hello", "/fork", "/resume", "/save talk.json", words=("--no-store",))
    assert "not stored · 2 turns" in result.out
    assert "sessions are not stored" in result.err
    assert json.loads((project.path / "talk.json").read_text())["format"] == "toolglot.conversation"
    assert not (project.path / "state").exists()


def test_a_simulated_model_says_so(project: Folder) -> None:
    result = talk("hello", "/model simulated/gemini/gemini-2.5-pro", "/cost", words=("-m", "simulated/openai/gpt-4.1"))
    assert "simulated: no real model answers" in result.out
    assert "(simulated)" in result.out
    assert " · simulated" in result.out


def test_a_session_that_is_open_already_is_reported_with_what_to_do(project: Folder) -> None:
    async def open_twice() -> InputError:
        host = SessionHost(settings("chat"))
        async with host, host.open(NewSession()) as session:
            await session.run("hello")
            with pytest.raises(SessionTakenError) as refused:
                async with host.open(StoredSession(session.id)):
                    pass
            return as_input_error(refused.value)

    error = asyncio.run(open_twice())
    assert "is open in this process already" in error.message
    assert error.hint
    assert len(project.sessions()) == 1


def test_errors_that_are_no_input_are_reported_as_such() -> None:
    taken = as_input_error(SessionTakenError("session x is held: close it", session="x"))
    assert (taken.message, taken.path, taken.hint) == ("session x is held", "", "close it")
    assert as_input_error(StoreError("disk is full")).path == "store"
    assert as_input_error(ToolglotError("odd")).message == "odd"


# --- run --------------------------------------------------------------------------------------------


@pytest.fixture
def cli(project: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(project.path, monkeypatch, capsys)


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def ran(*words: str, prompt: str, output_format: str = "text", lines: tuple[str, ...] = ()) -> Talk:
    """A run at a terminal."""
    out, err = Tty(), Tty()
    foreground = Foreground(Typist(*lines))
    once = RunOnce(
        settings("run", prompt, *words), Terminal(out, err, color="never"), foreground, output_format=output_format
    )
    code = foreground.run(lambda: once.run(prompt))
    return Talk(code, out.getvalue(), err.getvalue())


def test_a_run_at_a_terminal_reports_what_happens(project: Folder) -> None:
    result = ran("--tools", "tools.py", prompt="use delete", lines=("y",))
    assert (result.code, result.out) == (0, "That is done.\n")
    for message in ("? delete wants to run", "✓ delete", "· session "):
        assert message in result.err
    assert project.server.requests


def test_a_run_in_every_form(cli: Cli) -> None:
    assert cli("run", "use weather", "--tools", "tools.py").out == "That is done.\n"
    ended = cli("run", "use delete", "--tools", "tools.py", "--json")
    assert ended.json["calls"][0]["state"] == "error"
    assert "delete was not run" in ended.err
    lines = cli("run", "hello", "--stream-json", "--no-store", "-m", "simulated/openai/gpt-4.1").out.splitlines()
    assert json.loads(lines[-1])["event"] == "ended"
    assert cli("run", "-", stdin=b"hello").out == "Well said.\n"
    late = cli("run", "use wait", "--tools", "tools.py", "--timeout", "0.3", "--json")
    assert (late.code, late.json["reason"]) == (1, "timeout of 0.3 s (--timeout)")
    assert cli("run", "cut this").code == 1
    assert cli("run", "-", stdin=b"x" * (16 * 1024 * 1024 + 1)).code == 2


def test_a_run_that_is_interrupted(cli: Cli) -> None:
    cli.write("stop.py", STOP)
    ended = cli("run", "stop", "--tools", "stop.py", "-m", "simulated/openai/gpt-4.1", "--json")
    assert ended.code == 130
    assert ended.json["stop"] == "cancelled"
    assert "stopped: interrupted; the session is stored" in ended.err


# --- as they are called -----------------------------------------------------------------------------


STEAL = """\
import asyncio
import os

from toolglot import ToolContext
from toolglot.store import open_store


async def steal(context: ToolContext) -> str:
    \"\"\"Writes to the log as another process would.\"\"\"
    store = open_store(os.environ["XDG_STATE_HOME"] + "/toolglot/sessions.db")
    rows = await store.scan("turns", client=context.session_id, limit=1000)
    last = max(int(row.key) for row in rows)
    more = {f"{number:012}": b"{}" for number in range(last + 1, last + 9)}
    await store.keep("turns", context.session_id, more, until=float("inf"))
    await store.close()
    return "stolen"
"""


def test_a_session_that_another_process_wrote_to_is_left_with_a_word(cli: Cli) -> None:
    cli.write("steal.py", STEAL)
    words = ("--tools", "steal.py", "-m", "simulated/openai/gpt-4.1")
    ended = cli("run", "steal it", *words)
    assert ended.code == 1
    assert "another process has written to it" in ended.err
    ended = cli("chat", *words, stdin=b"steal it\nnever said\n")
    assert ended.code == 2
    assert "another process has written to it" in ended.err


def test_chat_reads_lines_of_a_pipe(cli: Cli) -> None:
    ended = cli("chat", "--tools", "tools.py", stdin=b"one \\\ntwo\n/tools\nuse delete\n")
    assert ended.code == 0
    assert ended.out.startswith("Well said.\n")
    assert "anthropic/claude-sonnet-4-5 · session" in ended.err
    assert "delete was not run" in ended.err
    shown = cli("sessions", "show", "--format", "json", cli("sessions", "list", "--format", "json").json[0]["id"]).json
    assert shown["conversation"][0]["blocks"][0]["text"] == "one \ntwo"


def test_chat_ends_with_1_where_an_answer_failed_unseen(cli: Cli, project: Folder) -> None:
    project.server.fault(401)
    assert cli("chat", stdin=b"hello\n/nonsense\n").code == 1


def test_notes_on_the_configuration_are_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "abc")
    text = (cli.folder / "toolglot.toml").read_text()
    cli.write("toolglot.toml", text.replace("simulate = true", 'simulate = true\nclient_keys = ["env:SHORT"]'))
    assert "note: " in cli("run", "hello", "--no-store").err
    assert "note: " in cli("chat", "--no-store", stdin=b"hello\n").err


def test_a_line_that_cannot_be_read_is_reported_and_the_chat_goes_on(project: Folder) -> None:
    result = talk(LimitError("too long", path="stdin"), "/go", "hello")
    assert "too long" in result.err
    assert "there is no message yet" in result.err
    assert "Well said." in result.out
    assert len(project.server.requests) == 1


def test_what_a_name_sets_holds_from_the_switch_to_it_on(project: Folder) -> None:
    config = project.path / "toolglot.toml"
    config.write_text(config.read_text() + '[models.short]\nto = "openai/gpt-4.1"\ndefault = { max_tokens = 77 }\n')
    for words in ((), ("--no-store",)):
        result = talk(
            "/model short", "hello", "/model anthropic/claude-sonnet-4-5", "hello", "/model short", "x", words=words
        )
        assert result.code == 0
        limits = [
            seen.body.get("max_tokens", seen.body.get("max_completion_tokens")) for seen in project.server.requests
        ]
        assert limits[-3] == limits[-1] == 77
        assert limits[-2] != 77
        assert len(project.server.requests[-1].body["messages"]) == 5, "it is one conversation"


def test_a_system_prompt_stays_when_another_name_is_switched_to(project: Folder) -> None:
    config = project.path / "toolglot.toml"
    config.write_text(config.read_text() + '[models.english]\nto = "openai/gpt-4.1"\nsystem = "English."\n')
    result = talk("hello", "/model quick", "hello", words=("--model", "english"))
    assert "the session keeps its original system prompt" in result.out
    assert "English." in str(project.server.requests[-1].body)

"""`toolglot chat` around its session: what runs in the foreground, approvals, models, its other commands."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import termios
import threading
from pathlib import Path
from typing import Any

import pytest

from support.cli.chat_screen import CALL, Tty, changed
from toolglot import Entry, Failure, Shown, ToolCall, ToolResult, ToolSpec, Turn, Usage
from toolglot.cli.main import build_parser
from toolglot.cli.screen.answer_problem import problem_of
from toolglot.cli.screen.foreground import Foreground, InterruptedReadingError
from toolglot.cli.screen.line_input import (
    StderrLines,
    TypedLines,
    hide_control_echo,
    line_reader,
)
from toolglot.cli.screen.terminal import TerminalPage
from toolglot.cli.screen.transcript_text import markdown_of
from toolglot.cli.screen.transcript_view import TranscriptView
from toolglot.cli.session.approval import Approvals, PromptedApproval
from toolglot.cli.session.run_record import RunRecord, event_line
from toolglot.cli.session.session_models import ConfiguredModels
from toolglot.cli.session.session_options import session_settings, session_store, state_folder
from toolglot.cli.session.session_tools import load_tools, mcp_servers
from toolglot.conversation import Media, Opaque, Text, Thinking
from toolglot.errors import InputError
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import config_from_environment, parse_config
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Deny, Edit
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    CallReceived,
    ChangeReported,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
    RunFinished,
    RunResult,
    TextReceived,
    ThinkingReceived,
    TurnCommitted,
)
from toolglot.runtime.tools.toolbox import Tool, tool

# --- the foreground -------------------------------------------------------------------------------


class Lines:
    """A person who says this."""

    is_interactive = True

    def __init__(self, *lines: str | BaseException) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    def read(self, prompt: str, prefill: str = "") -> str:
        self.prompts.append(prompt + prefill)
        line = self.lines.pop(0) if self.lines else EOFError()
        if isinstance(line, BaseException):
            raise line
        return line


def test_the_loop_asks_the_main_thread_for_lines() -> None:
    foreground = Foreground(Lines("one", KeyboardInterrupt(), ValueError("broken"), EOFError()))

    async def work() -> int:
        assert await foreground.line("> ") == "one"
        for kind in (InterruptedReadingError, ValueError, EOFError):
            with pytest.raises(kind):
                await foreground.line("> ")
        return 7

    assert foreground.run(work) == 7


def test_what_the_work_raises_is_raised_and_an_interrupt_without_a_listener_cancels_it() -> None:
    async def fails() -> int:
        raise InputError("no")

    with pytest.raises(InputError):
        Foreground(Lines()).run(fails)
    foreground = Foreground(Lines())

    async def waits() -> int:
        foreground.interrupt()
        await asyncio.sleep(60)
        return 0

    assert foreground.run(waits) == 130


def test_a_signal_that_the_system_hands_to_another_thread_is_handled() -> None:
    foreground = Foreground(Lines())

    async def waits() -> int:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        await asyncio.sleep(120)
        return 0

    assert foreground.run(waits) == 130


# --- approvals ------------------------------------------------------------------------------------


def decisions_of(*lines: str | BaseException, rounds: int = 1, arguments: dict[str, Any] | None = None) -> list[Any]:
    foreground = Foreground(Lines(*lines))
    approval = PromptedApproval(foreground, TranscriptView(TerminalPage(io.StringIO(), "never")))
    needs = tool(lambda: None, name="look", approval=True)
    decisions: list[Any] = []

    async def work() -> int:
        decisions.extend([await approval(CALL, needs, arguments or {}) for _ in range(rounds)])
        return 0

    foreground.run(work)
    return decisions


def test_what_a_person_says_decides() -> None:
    assert decisions_of("y") == [Allow()]
    assert decisions_of("what?", "YES") == [Allow()]
    assert decisions_of("n") == [Deny("The user denied it.")]
    assert decisions_of("no  too dear ") == [Deny("too dear")]
    assert decisions_of("always", rounds=2) == [AllowAlways(), AllowAlways()], "and the question comes once"
    assert decisions_of("e", '{"at": 2}') == [Edit({"at": 2})]
    assert decisions_of("e", "[1]", "e", "{", "n") == [Deny("The user denied it.")]
    assert decisions_of(EOFError()) == [Deny("The user denied it.")]


def test_without_a_person_the_options_decide() -> None:
    needs = tool(lambda: None, name="git_push", approval=True)
    reads = Tool(spec=ToolSpec("read"), side_effects=False, approval=True)

    async def decide(approvals: Approvals, which: Tool) -> Any:
        return await approvals(CALL, which, {})

    assert asyncio.run(decide(Approvals(("git_*",)), needs)) == Allow()
    assert asyncio.run(decide(Approvals(), reads)) == Allow()
    denied = asyncio.run(decide(Approvals(("other",)), needs))
    assert isinstance(denied, Deny)
    assert "--allow git_push" in denied.reason


# --- models ---------------------------------------------------------------------------------------


def models(text: str, **environ: str) -> ConfiguredModels:
    return ConfiguredModels(parse_config(ConfigText("toolglot.toml", text), {"HOME": "/home/me", **environ}))


def test_names_of_the_configuration_lead_to_models_and_are_found_again() -> None:
    found = models(
        '[gateway]\nsimulate = true\n[upstreams.openai]\nkey_env = "K"\n[upstreams.groq]\nkey_env = "K"\n'
        '[models]\nbest = ["openai/gpt-5.5", "groq/llama"]\n',
        K="k",
    )
    assert found.find("best").name == "openai/gpt-5.5"
    assert found.find("openai/gpt-5.5") is found.find("openai/gpt-5.5")
    assert found.fallback("best") == ("groq/llama",)
    assert found.fallback("openai/gpt-5.5") == ()
    assert found.find("simulated/anthropic/claude-opus-5").name == "simulated/anthropic/claude-opus-5"
    assert found.find("simulated/anthropic/claude-opus-5").upstream.is_simulated
    assert found.first({}) == "best"
    assert found.first({"TOOLGLOT_MODEL": " x/y "}) == "x/y"


def test_a_provider_alone_is_its_default_model_or_says_which_key_is_missing() -> None:
    text = (
        '[upstreams.anthropic]\nkey_env = "K"\n'
        '[upstreams.box]\nprovider = "mistral"\nkey_env = "K"\nmodels = ["m-*", "m-1"]\n'
        '[upstreams.far]\nprovider = "openrouter"\nkey_env = "K"\n[models]\ngroq = "anthropic/claude-sonnet-4-5"\n'
    )
    models = ConfiguredModels(parse_config(ConfigText("toolglot.toml", text), {"K": "k", "HOME": "/nowhere"}))
    for name, found in (
        ("anthropic", "anthropic/claude-opus-5"),
        ("Anthropic", "anthropic/claude-opus-5"),
        ("claude", "anthropic/claude-opus-5"),
        ("box", "box/m-1"),
        ("mistral", "box/m-1"),
        ("groq", "anthropic/claude-sonnet-4-5"),
    ):
        assert models.find(name).name == found, name
        assert not models.is_simulated(name)
        assert models.settings(name) is None
    with pytest.raises(InputError, match="no default model") as wrong:
        models.find("far")
    assert "far/MODEL" in wrong.value.hint
    with pytest.raises(InputError, match="there is no key for OpenAI") as wrong:
        models.find("openai")
    assert "set OPENAI_API_KEY and write [upstreams.openai] into toolglot.toml" in wrong.value.hint
    assert "simulated/openai/gpt-4.1 is a simulated model" in wrong.value.hint


def test_without_any_configuration_a_provider_alone_is_not_simulated() -> None:
    models = ConfiguredModels(config_from_environment({"HOME": "/nowhere"}))
    with pytest.raises(InputError, match="there is no key for Mistral") as wrong:
        models.find("mistral")
    assert wrong.value.hint.startswith("set MISTRAL_API_KEY; simulated/mistral/")
    assert models.find("simulated/mistral/mistral-large-latest").upstream.is_simulated
    found = ConfiguredModels(config_from_environment({"MISTRAL_API_KEY": "k", "HOME": "/nowhere"})).find("mistral")
    assert (found.name, found.upstream.is_simulated) == ("mistral/mistral-large-latest", False)


def test_the_first_model_is_a_real_one_where_there_is_one() -> None:
    assert models('[upstreams.anthropic]\nkey_env = "K"\n', K="k").first({}).startswith("anthropic/claude")
    assert ConfiguredModels(config_from_environment({"HOME": "/h"})).first({}).startswith("simulated/")
    with pytest.raises(InputError, match="no model is named") as caught:
        models("[gateway]\nsimulate = true\n").first({})
    assert "--model simulated/anthropic/claude-opus-5" in caught.value.hint
    with pytest.raises(InputError, match="no model is named"):
        models('[upstreams.groq]\nkey_env = "K"\n', K="k").first({})
    with pytest.raises(InputError, match="unknown model"):
        models('[upstreams.groq]\nkey_env = "K"\n', K="k").find("nonsense")


# --- other words ----------------------------------------------------------------------------------


def test_why_there_is_no_answer_is_reported_with_what_to_do() -> None:
    failed = problem_of(RunResult(stop="failed", failure=Failure("rate_limit", "slow down", 429), model="a/b"))
    assert failed is not None
    assert (failed.message, failed.path) == ("rate_limit 429: slow down", "a/b")
    assert "--fallback" in failed.hint
    assert problem_of(RunResult()) is None
    assert problem_of(RunResult(stop="cancelled")) is None
    for stop in ("length", "filter", "loop_limit", "budget", "calls_open"):
        problem = problem_of(RunResult(stop=stop))
        assert problem is not None
        assert problem.hint


def test_a_transcript_shows_every_kind_of_block() -> None:
    blocks = (
        Text("said"),
        Thinking("thought\ntwice"),
        Thinking(redacted="x"),
        ToolCall("a", "look", None, raw_input="raw"),
        ToolResult("a", "x" * 30_000, name="look"),
        Media("image"),
        Opaque("openai", {}),
    )
    text = markdown_of([Turn("assistant", blocks)])
    for shown_ in ("said", "> thought\n> twice", "> (not shown)", "→ `look` raw", "\n…\n", "[image]", "[Opaque]"):
        assert shown_ in text


def test_events_become_lines_for_programs() -> None:
    media = ToolResult("id", (Text("x"), Media("image")), executed_arguments={"at": 1})
    line = event_line(changed("success", media, attempt=2))
    assert line is not None
    assert line["media"][0]["kind"] == "image"
    assert line["executed_arguments"] == {"at": 1}
    assert line["attempt"] == 2
    assert event_line(changed("executing", progress="half")) == {
        "event": "call",
        "id": "id",
        "provider_id": None,
        "name": "look",
        "state": "executing",
        "progress": "half",
    }
    assert event_line(RunFinished(RunResult(usage=Usage()))) is None
    kept = event_line(TurnCommitted(Turn("assistant", key="k")))
    assert kept == {"event": "kept", "role": "assistant", "key": "k"}
    note = event_line(ChangeReported(Entry(action="added", reason="a limit", fault="policy")))
    assert note is not None
    assert note["entry"]["reason"] == "a limit"
    for event in (RequestStarted("a/b", "anthropic"), TextReceived("x"), CallReceived(CALL), HistoryCompressed(3)):
        assert event_line(event) is not None
    assert event_line(ThinkingReceived("hm")) == {"event": "thought", "text": "hm"}


def test_where_sessions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert session_store(None) == "/home/me/.local/state/toolglot/sessions.db"
    monkeypatch.setenv("TEAM", "postgres://x")
    assert session_store("env:TEAM") == "postgres://x"
    monkeypatch.setenv("HOME", "")
    with pytest.raises(InputError, match="no home directory"):
        state_folder()


def test_a_record_has_what_was_dropped_and_who_was_switched_to() -> None:
    record = RunRecord(clock=lambda: 0.0)
    record.add(AttemptDiscarded(Shown(text="half"), "it broke", "a/b"))
    record.add(ModelSwitched("a/b", "c/d", "it broke"))
    record.add(changed("cancelled", ToolResult("id", "never")))
    document = record.document(
        RunResult(stop="failed", failure=Failure("server", "down", 500)), session=None, simulated=False
    )
    assert document["dropped"][0]["shown"]["text"] == "half"
    assert document["switched"][0]["after"] == "c/d"
    assert document["calls"][0]["seconds"] is None
    assert document["failure"] == {"kind": "server", "message": "down", "status": 500, "code": ""}


def test_without_readline_lines_are_typed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)
    monkeypatch.setattr(sys, "stdin", io.StringIO("typed\n"))
    lines = TypedLines()
    lines.remember("nothing")
    assert lines.read("> ", "prefilled") == "typed"
    assert lines._completion("x", 0) is None


def test_at_a_terminal_control_characters_are_not_echoed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = os.openpty()
    with os.fdopen(master), os.fdopen(slave, "r") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        before = termios.tcgetattr(slave)[3]
        with hide_control_echo():
            assert termios.tcgetattr(slave)[3] == before & ~termios.ECHOCTL
        assert termios.tcgetattr(slave)[3] == before
        monkeypatch.setattr(sys, "stdout", Tty())
        assert isinstance(line_reader(), TypedLines)


def test_without_a_terminal_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with hide_control_echo():
        pass
    monkeypatch.setitem(sys.modules, "termios", None)
    with hide_control_echo():
        pass
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(EOFError):
        line_reader().read("")
    with pytest.raises(EOFError):
        StderrLines(None, io.StringIO()).read("")


def test_a_system_prompt_may_be_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("brief.txt").write_text(" Be brief.\n")
    Path("long.txt").write_text("x" * 1_000_001)

    def system(option: str) -> str | None:
        return session_settings(build_parser(["run"]).parse_args(["run", "x", "--no-store", "--system", option])).system

    assert system("@brief.txt") == "Be brief."
    assert system("Be long.") == "Be long."
    assert system("") is None
    with pytest.raises(InputError, match="longer than"):
        system("@long.txt")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from toolglot import tool\n@tool\ndef f(x, /): ...\n", "positional-only"),
        ("import other_broken\n", "other_broken.py:1: invalid Python"),
        ("_x = 1\n", "defines no nothing"),
    ],
)
def test_what_a_file_does_when_it_is_loaded_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "other_broken.py").write_text("def (")
    made = tmp_path / "made.py"
    made.write_text(text)
    with pytest.raises(InputError) as refused:
        load_tools(f"{made}:nothing" if "_x" in text else str(made))
    assert expected in str(refused.value)


def test_servers_are_named_after_their_programs_and_apart() -> None:
    found = mcp_servers(["python3.11 a/git.py", "uvx git", "/usr/bin/git --x", "https://h/mcp", "https://h/other"])
    assert [server.name for server in found] == ["git", "git-2", "git-3", "h", "h-2"]


@pytest.mark.parametrize(("action", "word"), [("dropped", "lost"), ("lowered", "changed")])
def test_only_what_is_gone_is_called_lost(action: Any, word: str) -> None:
    stream = io.StringIO()
    view = TranscriptView(TerminalPage(stream, "never"))
    view.show(ChangeReported(Entry(action=action, reason="a keyword", fault="loss")))
    view.show(ChangeReported(Entry(action="added", reason="a limit", fault="policy")))
    assert stream.getvalue() == f"  {word}: a keyword\n"


def test_blocks_of_a_result_are_shown_apart() -> None:
    result = ToolResult("id", (Text("one"), Text("two")))
    stream = io.StringIO()
    TranscriptView(TerminalPage(stream, "never")).show(changed("success", result))
    assert "one\n" in stream.getvalue()
    assert "onetwo" not in markdown_of([Turn("tool", (result,))])
    line = event_line(changed("success", result))
    assert line is not None
    assert line["result"] == "one\ntwo"


def test_answers_are_apart_from_how_they_came_about() -> None:
    out, err = io.StringIO(), io.StringIO()
    view = TranscriptView(TerminalPage(err, "never"), TerminalPage(out, "never"))
    answer, calling = Turn("assistant", (Text("Done."),)), Turn("assistant", (Text("I look."), CALL))
    for event in (
        ThinkingReceived("hm"),
        TextReceived("I look."),
        TurnCommitted(calling),
        TextReceived("Do"),
        AttemptDiscarded(Shown(text="Do"), "x", "a/b"),
    ):
        view.show(event)
    view.show(RunFinished(RunResult(text="I look.", turn=calling, stop="loop_limit")))
    assert out.getvalue() == "", "what goes before calls is no answer"
    view.show(TextReceived("Done."))
    view.show(TurnCommitted(answer))
    view.show(RunFinished(RunResult(text="Done.", turn=answer)))
    assert out.getvalue() == "Done.\n"
    assert err.getvalue() == "hm\nI look.\n"


def test_at_the_prompt_the_hint_is_a_command() -> None:
    unreached = Failure("unreachable", "openai cannot be reached: its host is not known")
    for failure in (unreached, Failure("rate_limit", "slow down", 429), Failure("not_found", "", 404)):
        problem = problem_of(RunResult(stop="failed", failure=failure, model="a/b"), in_chat=True)
        assert problem is not None
        assert "/model NAME" in problem.hint
        assert "--" not in problem.hint

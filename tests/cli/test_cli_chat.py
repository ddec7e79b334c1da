"""`toolglot chat` in a real terminal."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from support.cli.commands import command
from support.cli.session_folder import Folder, folder
from support.cli.terminal import CTRL_C, CTRL_D, Screen, in_terminal

PROVIDERS = ("ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE")
NO_KEYS = {**dict.fromkeys((f"{name}_API_KEY" for name in PROVIDERS), ""), "TOOLGLOT_MODEL": "", "TOOLGLOT_CONFIG": ""}


def begun(screen: Screen) -> Screen:
    screen.expect("Ctrl-D leaves")
    screen.expect("> ")
    return screen


def leave(screen: Screen) -> None:
    screen.say("/quit")
    assert screen.ended() == 0


def roles(project: Folder) -> list[str]:
    (session,) = project.sessions()
    shown = project.run("sessions", "show", session["id"], "--format", "json").json
    return [turn["role"] for turn in shown["conversation"]]


def test_text_streams_and_the_session_is_kept(tmp_path: Path) -> None:
    with folder(tmp_path, chunk=5, pace=0.02) as project, project.terminal("chat") as screen:
        begun(screen).say("please stream")
        screen.expect("These words go on")
        before = len(screen.text)
        screen.expect(" out · ")
        assert len(screen.text) > before + 500, "the rest came later"
        screen.expect("> ")
        screen.send(CTRL_D)
        assert screen.ended() == 0
        assert roles(project) == ["user", "assistant"]
        (session,) = project.sessions()
        assert session["title"] == "please stream"
        assert session["model"] == "anthropic/claude-sonnet-4-5"


def test_a_tool_call_is_shown_while_it_runs_with_its_state_and_result(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use weather")
        screen.expect('→ weather {"city":"Bonn"}')
        screen.expect("✓ weather ")
        screen.expect("7 degrees in Bonn")
        screen.expect("That is done.")
        screen.expect("> ")
        leave(screen)
        assert roles(project) == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("line", "shown", "ran"),
    [
        ("y", "deleted a.txt", "a.txt"),
        ("n not that one", "Reason: not that one", ""),
        ("", "", ""),
    ],
)
def test_an_approval_is_requested(tmp_path: Path, line: str, shown: str, ran: str) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use delete")
        screen.expect("? delete wants to run")
        screen.expect('"path": "a.txt"')
        screen.expect("[e]dit: ")
        if not line:  # anything but an answer repeats the question, and the end of the input does not approve
            screen.say("perhaps")
            screen.expect("[e]dit: ")
            screen.send(CTRL_D)
        else:
            screen.say(line)
        screen.expect(shown)
        screen.expect("That is done.")
        found = tmp_path / "deleted"
        assert (found.read_text() if found.exists() else "") == ran


def test_an_approval_for_always_is_requested_once(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use delete")
        screen.expect("[e]dit: ")
        screen.say("a")
        screen.expect("That is done.")
        screen.expect("> ")
        screen.say("use delete")
        assert "wants to run" not in screen.expect("That is done.")


def test_arguments_are_edited_before_a_tool_runs(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use delete")
        screen.expect("[e]dit: ")
        screen.say("e")
        screen.expect('arguments: {"path":"a.txt"}')
        screen.send("\x15")  # the line is emptied
        screen.say("[1")
        screen.expect("invalid JSON")
        screen.expect("[e]dit: ")
        screen.say("e")
        screen.expect('arguments: {"path":"a.txt"}')
        screen.send('\x7f\x7f-2"}')
        screen.send("\r")
        screen.expect("deleted a.txt-2")
        screen.expect("That is done.")
        assert (tmp_path / "deleted").read_text() == "a.txt-2"


def test_ctrl_c_in_the_middle_of_a_stream_keeps_what_came_and_the_talk_goes_on(tmp_path: Path) -> None:
    with folder(tmp_path, chunk=5, pace=0.1) as project, project.terminal("chat") as screen:
        begun(screen).say("please stream")
        screen.expect("These words")
        screen.press(CTRL_C, "stopped; the reply so far is kept, marked as interrupted")
        screen.expect("> ")
        assert "discarded" not in screen.text
        project.server.script(rules=[{"reply": {"text": "Well said."}}], pace=0)
        screen.say("hello")
        screen.expect("Well said.")
        leave(screen)
        assert roles(project) == ["user", "assistant", "user", "assistant"]
        assert [seen.status for seen in project.server.requests] == [200, 200]
        assert "These words" in str(project.server.requests[-1].body)
        shown = project.run("sessions", "show", project.sessions()[0]["id"]).out
        assert "[interrupted: Cancelled by the user.]" in shown


def test_ctrl_c_in_the_middle_of_a_tool_cancels_it_and_the_talk_goes_on(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use wait")
        screen.expect("still here")
        screen.press(CTRL_C, "⊘ wait")
        screen.expect("stopped")
        screen.expect("> ")
        screen.say("hello")
        screen.expect("Well said.")
        leave(screen)
        assert roles(project) == ["user", "assistant", "tool", "user", "assistant"]


def test_ctrl_c_in_a_tool_that_does_not_end_says_at_once_what_happens_and_once_more_goes_on_without_it(
    tmp_path: Path,
) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use stuck")
        screen.expect("→ stuck")
        screen.press(CTRL_C, "cancelling stuck: press Ctrl-C again to continue without it")
        screen.press(CTRL_C, "did not stop when it was cancelled")
        screen.expect("stopped")
        screen.expect("> ")
        screen.say("hello")
        screen.expect("Well said.")
        (tmp_path / "free").touch()
        leave(screen)
        assert roles(project) == ["user", "assistant", "tool", "user", "assistant"]
        assert [seen.status for seen in project.server.requests] == [200, 200]


def test_what_is_waited_for_is_shown_and_nothing_of_it_stays(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use stuck")
        screen.expect("anthropic/claude-sonnet-4-5")
        screen.expect("→ stuck")
        screen.expect("stuck · 1 s")
        (tmp_path / "free").touch()
        screen.expect("✓ stuck")
        screen.expect("That is done.")
        screen.expect("> ")
        leave(screen)
        lines = visible_lines(screen.raw)
        assert not any(frame in line for line in lines for frame in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
        assert "I use stuck." in lines
        assert "That is done." in lines


@pytest.mark.parametrize("words", [[], ["--plain"]])
def test_nothing_is_drawn_and_erased_in_a_dumb_terminal_or_a_plain_chat(tmp_path: Path, words: list[str]) -> None:
    environment = {} if words else {"TERM": "dumb"}
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py", *words, **environment) as screen:
        begun(screen).say("use stuck")
        screen.expect("→ stuck")
        screen.press(CTRL_C, "cancelling stuck; press Ctrl-C again to continue without it")
        (tmp_path / "free").touch()
        screen.expect("stopped")
        screen.expect("> ")
        screen.say("markdown")
        screen.expect("**strong**")
        screen.expect("| a    | 1     |")
        leave(screen)
        assert "⠋" not in screen.raw


def test_markdown_is_rendered_while_it_comes(tmp_path: Path) -> None:
    with folder(tmp_path, chunk=7, pace=0.02) as project, project.terminal("chat") as screen:
        begun(screen).say("markdown")
        screen.expect("A title")
        screen.expect("The end.")
        screen.expect(" out · ")
        screen.expect("> ")
        leave(screen)
        assert "\x1b[1mstrong\x1b[0m" in screen.raw
        lines = visible_lines(screen.raw)
        start = lines.index("A title")
        assert lines[start : start + 15] == [
            *("A title", "", "Some slanted and strong words, code and a link (https://example.com/x).", ""),
            *(" • one", " • two", "", "  def f():", '      return "x"', "", " name  value", " ───────────"),
            *(" a     1", "", "The end."),
        ]
        assert [seen.status for seen in project.server.requests] == [200]


def visible_lines(raw: str) -> list[str]:
    """What is left on a terminal of what was written: lines that were erased are gone."""
    lines = []
    for line in raw.replace("\r\n", "\n").split("\n"):
        left = line.rpartition("\r\x1b[K")[2]
        lines.append(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", left).rstrip())
    return lines


def test_ctrl_c_at_an_approval_cancels_the_turn(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use delete")
        screen.expect("[e]dit: ")
        screen.press(CTRL_C, "stopped")
        screen.expect("> ")
        assert not (tmp_path / "deleted").exists()
        screen.say("hello")
        screen.expect("Well said.")


def test_ctrl_c_twice_at_the_prompt_leaves_and_once_only_clears_the_line(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat") as screen:
        begun(screen).send("half a line")
        screen.expect("half a line")
        screen.press(CTRL_C, "press Ctrl-C again, or Ctrl-D, to leave")
        screen.expect("> ")
        screen.say("hello")
        screen.expect("Well said.")
        screen.expect("> ")
        screen.press(CTRL_C, "to leave")
        screen.expect("> ")
        screen.send(CTRL_C)
        assert screen.ended() == 0
        assert "half a line" not in str(project.run("sessions", "show", project.sessions()[0]["id"]).out)


def test_sigterm_leaves_in_order_in_the_middle_of_a_tool_and_at_the_prompt(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        with project.terminal("chat", "--tools", "tools.py") as screen:
            begun(screen).say("use wait")
            screen.expect("still here")
            screen.process.send_signal(signal.SIGTERM)
            screen.expect("⊘ wait")
            assert screen.ended() == 128 + signal.SIGTERM
        with project.terminal("chat", "--continue") as screen:
            begun(screen)
            screen.process.send_signal(signal.SIGTERM)
            assert screen.ended() == 128 + signal.SIGTERM
        assert roles(project) == ["user", "assistant", "tool"]


def test_a_session_is_gone_on_with_and_shows_where_it_was(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        with project.terminal("chat") as screen:
            begun(screen).say("remember the number 4711")
            screen.expect("Well said.")
            leave(screen)
        (session,) = project.sessions()
        for words in (["--continue"], ["--session", session["id"][:-2]]):
            with project.terminal("chat", *words) as screen:
                screen.expect(session["id"])
                screen.expect("> remember the number 4711")
                screen.expect("Well said.")
                screen.expect("> ")
                screen.say("hello again")
                screen.expect("Well said.")
                leave(screen)
        assert "4711" in str(project.server.requests[-1].body)
        assert len(project.sessions()) == 1


def test_the_last_turns_are_shown_on_resume_and_all_of_them_by_history(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        with project.terminal("chat", "--tools", "tools.py") as screen:
            begun(screen)
            for line in ("first of all", "use weather", "markdown"):
                screen.say(line)
                screen.expect(" out · ")
                screen.expect("> ")
            leave(screen)
        with project.terminal("chat", "--continue") as screen:
            screen.expect("… 2 turns before this; /history shows them")
            screen.expect("> use weather")
            screen.expect("I use weather.")
            screen.expect('→ weather {"city":"Bonn"}')
            screen.expect("✓ weather: 7 degrees in Bonn")
            screen.expect("That is done.")
            screen.expect("> markdown")
            screen.expect("A title")
            screen.expect(" • two")
            screen.expect("The end.")
            screen.expect("> ")
            assert "first of all" not in screen.text
            assert "has not answered" not in screen.text
            screen.say("/history")
            screen.expect("> first of all")
            screen.expect("The end.")
            screen.expect("> ")
            screen.say("/history 1")
            assert "first of all" not in screen.expect("The end.")
            screen.say("/history x")
            screen.expect("expected a number of turns")
            screen.expect("> ")
            leave(screen)


def test_what_became_of_a_call_that_a_kill_interrupted_is_reported_on_resume(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        with project.terminal("chat", "--tools", "tools.py") as screen:
            begun(screen).say("use stuck")
            screen.expect("→ stuck")
            screen.expect("stuck · 1 s")
            screen.process.kill()
            screen.ended()
        with project.terminal("chat", "--tools", "tools.py", "--continue") as screen:
            screen.expect("> use stuck")
            screen.expect("→ stuck")
            screen.expect("✗ stuck")
            screen.expect("the model has not replied yet; /go continues")
            screen.expect("stuck was running when the last process ended")
            screen.expect("not run again")
            screen.expect("> ")
            screen.say("/go")
            screen.expect("That is done.")
            screen.expect("> ")
            leave(screen)
        assert "its outcome is unknown" in str(project.server.requests[-1].body)
        with project.terminal("chat", "--continue") as screen:
            begun(screen)
            leave(screen)
            assert "was running when" not in screen.text, "it is shown once"
        assert roles(project) == ["user", "assistant", "tool", "assistant"]


def test_a_session_that_another_process_holds_is_reported_with_its_holder(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat") as screen:
        begun(screen).say("hello")
        screen.expect("Well said.")
        screen.expect("> ")
        ended = project.run("run", "me too", "--continue")
        assert ended.code == 2
        assert f"is held by process {screen.process.pid} on " in ended.err
        assert "hint: close it there" in ended.err


def test_undo_takes_back_the_message_and_offers_it_for_editing(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat") as screen:
        begun(screen).say("one")
        screen.expect("Well said.")
        screen.expect("> ")
        screen.say("two")
        screen.expect("Well said.")
        screen.expect("> ")
        screen.say("/undo")
        screen.expect("removed: two")
        screen.expect("> two")
        screen.say(" and a half")
        screen.expect("Well said.")
        leave(screen)
        sent = str(project.server.requests[-1].body)
        assert "two and a half" in sent
        assert roles(project) == ["user", "assistant"] * 2


def test_model_switches_in_the_middle_of_a_talk(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("use weather")
        screen.expect("That is done.")
        screen.expect("> ")
        screen.say("/model")
        screen.expect("current: anthropic/claude-sonnet-4-5")
        screen.expect("quick")
        screen.say("/model qui\t")
        screen.expect("switched to openai/gpt-4.1")
        screen.say("hello")
        screen.expect("openai/gpt-4.1 · ")
        leave(screen)
        assert [seen.provider for seen in project.server.requests] == ["anthropic", "anthropic", "openai"]
        assert all(seen.status == 200 for seen in project.server.requests)
        assert project.sessions()[0]["model"] == "openai/gpt-4.1"


def test_what_a_broken_try_showed_is_taken_back(tmp_path: Path) -> None:
    with folder(tmp_path, chunk=5) as project, project.terminal("chat") as screen:
        project.server.fault("reset,after=8")
        begun(screen).say("please stream")
        screen.expect("discarded: the text above from “These")
        screen.expect("> ")
        leave(screen)
        assert roles(project) == ["user", "assistant"]


def test_control_sequences_of_models_and_tools_are_harmless(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("paint")
        screen.expect("a \\x1b[31mred\\x1b[0m word")
        screen.expect("> ")
        screen.say("use evil")
        screen.expect("a \\x1b]0;owned\\x07 b")
        assert "\x1b]0;owned" not in screen.raw
        assert "\x1b[31mred" not in screen.raw


def test_lines_are_continued_and_pasted_ones_are_one_message(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat") as screen:
        begun(screen).say("one \\")
        screen.expect(". ")
        screen.say("two")
        screen.expect("Well said.")
        screen.expect("> ")
        screen.send("\x1b[200~three\nfour\x1b[201~")
        screen.expect("four")
        screen.say("")
        screen.expect("Well said.")
        leave(screen)
        bodies = [str(seen.body) for seen in project.server.requests]
        assert len(bodies) == 2
        assert "one \\ntwo" in bodies[0]
        assert "three\\nfour" in bodies[1]


def test_what_was_typed_is_remembered_until_the_next_time(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        for _ in range(2):
            with project.terminal("chat") as screen:
                begun(screen)
                screen.send("\x1b[A\x1b[A" if project.server.requests else "first words")
                screen.expect("first words")
                screen.say("")
                screen.expect("Well said.")
                leave(screen)
        assert [str(seen.body).count("first words") for seen in project.server.requests] == [1, 1]
        memory = tmp_path / "state" / "toolglot" / "chat_input.jsonl"
        assert memory.stat().st_mode & 0o077 == 0


def test_fork_resume_save_and_the_other_commands(tmp_path: Path) -> None:
    with folder(tmp_path) as project, project.terminal("chat", "--tools", "tools.py") as screen:
        begun(screen).say("hello")
        screen.expect("Well said.")
        (first,) = project.sessions()
        for line, shown in [
            ("/help", "/resume [ID]"),
            ("/tools", "delete"),
            ("/cost", "this session: "),
            ("/compress", "nothing to summarise yet"),
            ("/nonsense", "unknown command '/nonsense'"),
            ("/modle", "did you mean /model?"),
            ("/model openai", "switched to openai/gpt-4.1"),
            ("/model mistral", "there is no key for Mistral"),
            ("/model no/such", "unknown model 'no/such'"),
            ("/model simulated/openai/gpt-4.1", "switched to simulated/openai/gpt-4.1 (simulated)"),
            ("/model anthropic/claude-opus-5", "switched to anthropic/claude-opus-5"),
            ("/save talk.md", "wrote talk.md"),
            ("/save talk.md", "file already exists"),
            ("/save talk.json", "wrote talk.json"),
            ("/save", "expected a file"),
            ("/fork", f"{first['id']} is unchanged"),
        ]:
            screen.say(line)
            screen.expect(shown)
            screen.expect("> ")
        assert "Well said." in (tmp_path / "talk.md").read_text()
        assert '"toolglot.session"' in (tmp_path / "talk.json").read_text()
        screen.say("only here")
        screen.expect("Well said.")
        screen.expect("> ")
        screen.say("/resume")
        screen.expect(first["id"])
        screen.expect("> ")
        screen.say(f"/resume {first['id']}")
        screen.expect(f"{first['id']} · 2 turns")
        screen.expect("> ")
        screen.say("/go")
        screen.expect("> ")
        screen.say("/quit")
        assert screen.ended() == 0
        assert sorted(session["turns"] for session in project.sessions()) in ([2, 4], [3, 4])


def test_without_a_key_a_simulated_model_answers_and_says_so(tmp_path: Path) -> None:
    with in_terminal("chat", cwd=tmp_path, HOME=str(tmp_path), XDG_STATE_HOME="", **NO_KEYS) as screen:
        screen.expect("simulated: no real model answers")
        begun(screen).say("hello")
        screen.expect("[simulated by toolglot")
        screen.expect("You said: hello")
        leave(screen)
    assert (tmp_path / ".local" / "state" / "toolglot" / "sessions.db").exists()


def test_a_chat_simulates_by_the_rule_of_the_gateway(tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "XDG_STATE_HOME": "", **NO_KEYS}
    words = ("chat", "--no-store", "--model")
    named = command(*words, "openai/gpt-5.5", stdin=b"hello\n", cwd=tmp_path, **own)
    assert named.code == 0
    assert named.out.startswith("[simulated by toolglot")
    assert "simulated/openai/gpt-5.5" in named.err
    assert command(*words, "opnai/gpt-5.5", stdin=b"hello\n", cwd=tmp_path, **own).code == 2
    keyed = command(*words, "openai/gpt-5.5", stdin=b"hello\n", cwd=tmp_path, **{**own, "ANTHROPIC_API_KEY": "k"})
    assert (keyed.code, keyed.out) == (2, "")
    assert "OPENAI_API_KEY" in keyed.err


def test_nothing_is_kept_where_nothing_was_sent_or_nothing_is_to_be_kept(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        with project.terminal("chat", "--no-store") as screen:
            screen.expect("not stored")
            begun(screen).say("hello")
            screen.expect("Well said.")
            screen.expect("> ")
            screen.say("/fork")
            screen.expect("2 turns")
            screen.expect("> ")
            screen.say("/resume")
            screen.expect("sessions are not stored")
            screen.expect("> ")
            screen.say("/save talk.json")
            screen.expect("wrote talk.json")
            leave(screen)
        assert not (tmp_path / "state").exists()
        with project.terminal("chat") as screen:
            begun(screen)
            leave(screen)
        assert project.sessions() == []


# --- without a terminal -----------------------------------------------------------------------------


def test_piped_lines_are_messages_and_the_answers_are_plain(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        ended = project.run(
            "chat", "--tools", "tools.py", stdin=b"hello\nuse weather\nuse delete\n\n/quit\nnever said\n"
        )
        assert ended.code == 0
        assert "\x1b" not in ended.out
        assert ended.out == "Well said.\nThat is done.\nThat is done.\n", "the answers, and nothing about them"
        assert "7 degrees in Bonn" in ended.err
        assert "I use weather." in ended.err, "what goes before a call is no answer"
        assert "delete was not run" in ended.err, "there is no user to ask"
        assert "--allow delete" in ended.err
        assert not (tmp_path / "deleted").exists()
        assert "never said" not in str([seen.body for seen in project.server.requests])
        assert "anthropic/claude-sonnet-4-5 · session" in ended.err


def test_piped_chat_ends_with_1_where_an_answer_failed(tmp_path: Path) -> None:
    with folder(tmp_path) as project:
        project.server.fault(401)
        ended = project.run("chat", stdin=b"hello\nhello\n")
        assert ended.code == 1
        assert "auth" in ended.err
        assert "Well said." in ended.out, "the talk goes on"


def test_no_words_of_python_are_shown_for_a_wrong_option(tmp_path: Path) -> None:
    ended = command("chat", "--no-store", "--continue", cwd=tmp_path)
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert "hint: remove one of them" in ended.err

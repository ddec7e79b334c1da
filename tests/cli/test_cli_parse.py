"""`toolglot parse`: what it prints, for people and for programs, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.cli.commands import Cli, command
from toolglot import dialects

CALL = '<tool_call>{"name": "ls", "arguments": {"p": "/"}}</tool_call>'
BARE = '{"name": "ls", "parameters": {"p": "/"}}'
ANSWER = f"Let me look.\n{CALL}"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def parsed(cli: Cli, text: str, *words: str) -> Any:
    return cli("parse", "-", "--format", "json", *words, stdin=text.encode()).json


# --- for people -------------------------------------------------------------------------------------


def test_calls_and_text_are_shown(cli: Cli) -> None:
    cli.write("answer.txt", f"<think>Hm.</think>{ANSWER}\n\nDone.")
    ended = cli("parse", "answer.txt", "--dialect", "hermes")
    shown = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert shown[0].startswith("call ls  call_")
    assert shown[1:] == [
        *("  {", '    "p": "/"', "  }"),
        *("thinking", "  Hm."),
        *("text", "  Let me look.", "", "", "  Done."),
        "dialect: hermes",
    ]


def test_a_call_without_arguments_and_one_whose_arguments_are_no_object_are_shown(cli: Cli) -> None:
    ended = cli("parse", "-", "--dialect", "hermes", stdin=b'<tool_call>{"name": "now"}</tool_call>')
    assert ended.out.splitlines()[1] == "  {}"
    odd = '<tool_call>{"name": "ls", "arguments": {"p" "/"}}</tool_call>'
    ended = cli("parse", "-", "--dialect", "hermes", stdin=odd.encode())
    assert ended.out.splitlines()[1] == '  (not a JSON object) {"p" "/"}'
    (call,) = parsed(cli, odd)["calls"]
    assert (call["arguments"], call["written"]) == (None, '{"p" "/"}')


def test_a_call_that_was_cut_is_shown_and_counts_as_none(cli: Cli) -> None:
    ended = cli("parse", "-", "--dialect", "hermes", stdin=b'<tool_call>{"name": "ls", "arguments": {"p": "/')
    assert ended.code == 1
    assert ended.out.splitlines() == ['cut  ls  {"p": "/', "dialect: hermes"]


@pytest.mark.parametrize(("text", "shown"), [("", []), ("Just text.", ["text", "  Just text."])])
def test_without_a_call_it_says_so_and_ends_with_1(cli: Cli, text: str, shown: list[str]) -> None:
    ended = cli("parse", "-", stdin=text.encode())
    assert ended.code == 1
    assert ended.out.splitlines() == [*shown, "no calls found"]


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        (BARE, [], "it looks like llama3_json: use --dialect llama3_json, or pass the tools with --tools"),
        (BARE, ["--tools", "tools.json"], "it looks like llama3_json, with a tool that is not in --tools"),
        (ANSWER, ["--dialect", "glm45"], "it looks like hermes: use --dialect hermes"),
        (json.dumps({"choices": [{"message": {"content": CALL}}]}), [], "this is a response body: pass the text"),
        (json.dumps({"message": {"content": CALL}}), [], "this is a response body: pass the text"),
    ],
)
def test_where_no_call_is_found_it_says_what_to_try(cli: Cli, text: str, words: list[str], hint: str) -> None:
    cli.write("tools.json", json.dumps(["pwd"]))
    ended = cli("parse", "-", *words, stdin=text.encode())
    assert ended.code == 1
    assert ended.out.splitlines()[-2:-1] == ["no calls found"]
    assert ended.out.splitlines()[-1].startswith(f"hint: {hint}")


@pytest.mark.parametrize("text", ['{"a": 1}', "{no JSON", "[1]", BARE + " " * (1 << 20)])
def test_where_nothing_looks_like_a_call_nothing_is_guessed(cli: Cli, text: str) -> None:
    cli.write("tools.json", json.dumps(["pwd"]))
    for words in ([], ["--tools", "tools.json"]):
        assert cli("parse", "-", *words, stdin=text.encode()).out.splitlines()[-1] == "no calls found"


def test_a_byte_order_mark_is_no_text(cli: Cli) -> None:
    assert parsed(cli, f"\ufeff{CALL}")["text"] == ""


def test_the_list_is_json_where_that_is_requested(cli: Cli) -> None:
    assert cli("parse", "--list", "--format", "json").json == [*dialects.names()]


def test_control_characters_and_keys_do_not_reach_the_terminal(cli: Cli) -> None:
    call = '<tool_call>{"name": "ls", "arguments": {"p": "\\u001b[0m"}}</tool_call>'
    text = f"\x1b[31mred {call}\rkey sk-abcdefghabcdefgh"
    ended = cli("parse", "-", stdin=text.encode())
    assert "\x1b" not in ended.out
    assert "\r" not in ended.out
    assert "sk-abcdefghabcdefgh" not in ended.out


def test_colours_are_for_those_who_ask(cli: Cli) -> None:
    cli.write("answer.txt", ANSWER)
    plain, painted = cli("parse", "answer.txt").out, cli("parse", "answer.txt", "--color", "always").out
    assert "\x1b[1mcall ls\x1b[0m" in painted
    assert painted.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain


def test_the_dialects_are_listed(cli: Cli) -> None:
    ended = cli("parse", "--list")
    assert (ended.code, tuple(ended.out.split())) == (0, dialects.names())


# --- for programs -----------------------------------------------------------------------------------


def test_json_has_calls_text_and_thinking(cli: Cli) -> None:
    found = parsed(cli, f"<think>Hm.</think>Köln \x1b {CALL}", "--dialect", "hermes")
    (call,) = found.pop("calls")
    assert (call["name"], call["arguments"]) == ("ls", {"p": "/"})
    assert call["id"]
    assert found == {"cut": [], "text": "Köln \x1b ", "thinking": "Hm.", "dialects": ["hermes"]}


def test_json_has_what_was_cut_as_it_was_written(cli: Cli) -> None:
    found = parsed(cli, '<tool_call>{"name": "ls", "arguments": {"p": "/')
    assert found["calls"] == []
    assert [(call["name"], call["written"]) for call in found["cut"]] == [("ls", '{"p": "/')]


@pytest.mark.parametrize("size", ["1", "3", "7", "1000000"])
def test_a_text_in_pieces_says_the_same(cli: Cli, size: str) -> None:
    text = f"a < b <think>x</think> {ANSWER} <tool_call> é {CALL}"
    assert parsed(cli, text, "--stream", size) == parsed(cli, text)


SCHEMA = {"type": "object", "properties": {"p": {"type": "string"}, "n": {"type": "integer"}}}
TOOLS: list[Any] = [
    {"name": "ls", "parameters": SCHEMA},
    {"tools": [{"type": "function", "function": {"name": "ls", "parameters": SCHEMA}}], "messages": []},
    {"tools": [{"name": "ls", "input_schema": SCHEMA}]},
    {"tools": [{"functionDeclarations": [{"name": "pwd"}, {"name": "ls", "parametersJsonSchema": SCHEMA}]}]},
    {"tools": [{"function_declarations": [{"name": "ls", "parameters": SCHEMA}]}]},
    {"toolConfig": {"tools": [{"toolSpec": {"name": "ls", "inputSchema": {"json": SCHEMA}}}]}},
    {"toolSpec": {"name": "ls", "inputSchema": {"json": SCHEMA}}},
]


@pytest.mark.parametrize("tools", TOOLS)
def test_tools_in_any_form_say_which_calls_are_meant_and_what_their_types_are(cli: Cli, tools: Any) -> None:
    cli.write("tools.json", tools)
    found = parsed(cli, '[ls(p="/")]', "--tools", "tools.json")
    assert [(call["name"], call["arguments"]) for call in found["calls"]] == [("ls", {"p": "/"})]
    text = "<tool_call><function=ls><parameter=p>5</parameter><parameter=n>5</parameter></function></tool_call>"
    found = parsed(cli, text, "--tools", "tools.json")
    assert [call["arguments"] for call in found["calls"]] == [{"p": "5", "n": 5}]


def test_tools_may_be_names_and_a_tool_without_a_schema(cli: Cli) -> None:
    cli.write("tools.json", json.dumps(["ls", {"toolSpec": {"name": "pwd"}}]))
    assert len(parsed(cli, '[ls(p="/")]', "--tools", "tools.json")["calls"]) == 1
    assert len(parsed(cli, "[pwd()]", "--tools", "tools.json")["calls"]) == 1
    assert parsed(cli, "[cd()]", "--tools", "tools.json")["calls"] == []


def test_a_model_says_which_dialect_is_tried_first_and_hides_none(cli: Cli) -> None:
    cli.write("tools.json", json.dumps(["ls"]))
    for model in ("qwen3-coder-30b", "llama-3.2-3b"):
        assert len(parsed(cli, '[ls(p="/")]', "--tools", "tools.json", "--model", model)["calls"]) == 1


def test_a_call_of_a_tool_that_was_not_offered_is_text_where_that_is_wanted(cli: Cli) -> None:
    cli.write("tools.json", json.dumps(["ls"]))
    text = '<tool_call>{"name": "zip", "arguments": {}}</tool_call>'
    assert len(parsed(cli, text, "--tools", "tools.json")["calls"]) == 1
    assert parsed(cli, text, "--tools", "tools.json", "--unoffered", "text")["calls"] == []


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "error: parse: expected a file\n  hint: toolglot parse FILE, or '-' for stdin\n"),
        (["missing.txt"], "error: missing.txt: no such file\n"),
        (["."], "error: .: is a directory\n"),
        (["binary"], "error: binary: byte 0 is not UTF-8\n"),
        (
            ["answer.txt", "--dialect", "hermse"],
            "unknown dialect 'hermse'; did you mean 'hermes'?\n  hint: `toolglot",
        ),
        (["answer.txt", "--dialect", "???"], "hint: `toolglot parse --list` lists them\n"),
        (["answer.txt", "--tools", "missing.json"], "error: missing.json: no such file\n"),
        (["answer.txt", "--tools", "answer.txt"], "error: answer.txt:1:1: not JSON"),
        (["answer.txt", "--tools", "number.json"], "error: number.json: tools[1]: expected a tool, got 5\n"),
        (["answer.txt", "--tools", "nameless.json"], "error: nameless.json: tools[0]: expected a tool with a name"),
        (["answer.txt", "--tools", "broken.json"], "error: broken.json:2:3: not JSON: "),
        (["answer.txt", "--tools", "odd.json"], "error: odd.json: tools[0].parameters: expected a schema, got 'x'\n"),
        (["-", "--tools", "-"], "error: --tools: stdin can be read only once\n"),
        (["answer.txt", "--stream", "0"], "expected a whole number from 1 to 1000000"),
        (["answer.txt", "--stream", "four"], "expected a whole number from 1 to 1000000"),
        (["answer.txt", "--format", "jsn"], "did you mean json?"),
    ],
)
def test_mistakes_are_named_and_end_with_2(cli: Cli, words: list[str], message: str) -> None:
    cli.write("answer.txt", ANSWER)
    cli.write("binary", b"\xff\xfe")
    cli.write("number.json", json.dumps(["ls", 5]))
    cli.write("nameless.json", {"model": "m"})
    cli.write("broken.json", b"\xef\xbb\xbf[\n  ls]")
    cli.write("odd.json", {"tools": [{"name": "ls", "parameters": "x"}]})
    ended = cli("parse", *words, stdin=b"")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_what_is_too_long_is_refused(cli: Cli) -> None:
    with (cli.folder / "long.txt").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    ended = cli("parse", "long.txt")
    assert ended.code == 2
    assert "larger than 67108864 bytes" in ended.err
    assert "hint: " in ended.err


class Failing(io.RawIOBase):
    def read(self, _size: int | None = -1, /) -> bytes:
        raise OSError(5, "Input/output error")


def test_input_that_fails_is_reported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Failing()))
    hint = "check the path and its permissions"
    assert cli("parse", "-") == (2, "", f"error: -: cannot read file: Input/output error\n  hint: {hint}\n")


# --- as a command -----------------------------------------------------------------------------------


def test_in_a_pipe_it_reads_stdin_and_writes_utf8(tmp_path: Path) -> None:
    ended = command("parse", "-", stdin=f"Köln {CALL}".encode(), cwd=tmp_path, NO_COLOR="1", PYTHONIOENCODING="utf-8")
    assert ended.code == 0
    assert "  Köln\n" in ended.out
    assert ended.err == ""


def test_without_tools_nothing_is_known_to_be_offered(cli: Cli) -> None:
    cli.write("answer.txt", "Hi")
    ended = cli("parse", "answer.txt", "--unoffered", "text")
    assert (ended.code, ended.out) == (2, "")
    assert "--unoffered: --unoffered text requires --tools" in ended.err

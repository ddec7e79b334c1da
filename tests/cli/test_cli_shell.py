"""The command line as a citizen of the shell: help, versions, colours, pipes, signals, completion."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.cli.commands import Cli, chat, claude, command
from toolglot import __version__
from toolglot.cli import main as main_module
from toolglot.cli.main import COMMANDS, build_parser, main
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.errors import InputError


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "command-line.md").read_text("utf-8")


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


# --- help and errors --------------------------------------------------------------------------------


def test_version_and_help_in_a_real_process() -> None:
    assert command("--version") == (0, f"toolglot {__version__}\n", "")
    ended = command("--help")
    assert ended.code == 0
    assert all(f"    {name} " in ended.out for name in COMMANDS)


def test_the_installed_command_is_this_one() -> None:
    import tomllib  # noqa: PLC0415

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, function = project["scripts"]["toolglot"].partition(":")
    assert module == main_module.__name__
    assert callable(getattr(main_module, function))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(cli: Cli, name: str) -> None:
    ended = cli(name, "--help")
    assert ended.code == 0
    assert "examples:" in ended.out
    assert f"toolglot {name}" in ended.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_in_the_docs(name: str) -> None:
    assert f"toolglot {name}" in DOCS
    parser = build_parser([name])
    (commands,) = (action.choices for action in parser._actions if action.dest == "command")
    assert isinstance(commands, dict)
    for option in commands[name]._option_string_actions:
        assert f"`{option}" in DOCS or option in ("-h", "--help"), option


def test_without_a_command_the_help_is_shown_and_the_code_is_2(cli: Cli) -> None:
    ended = cli()
    assert ended.code == 2
    assert "usage: toolglot" in ended.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lnt", "x"], "did you mean lint?"),
        (["lint", "x", "--fro", "y"], "did you mean --for?"),
        (["chat", "--resume"], "did you mean --continue, for the last session, or --session ID?"),
        (["run", "hello", "--resume", "s1"], "did you mean --continue, for the last session, or --session ID?"),
        (["lint", "x", "--resume"], "see 'toolglot --help'"),
        (["lint", "x", "--format", "jsn"], "did you mean json?"),
        (["lint"], "see 'toolglot lint --help'"),
        (["convert", "x"], "see 'toolglot convert --help'"),
        (["lint", "x", "--for", ","], "for example --for anthropic,mistral"),
    ],
)
def test_wrong_usage_ends_with_2_and_a_hint(cli: Cli, words: list[str], hint: str) -> None:
    ended = cli(*words)
    assert ended.code == 2
    assert f"hint: {hint}" in ended.err


def test_only_the_command_that_is_requested_is_imported() -> None:
    code = "import sys; from toolglot.cli.main import main; main(['--version']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    loaded = set(done.stdout.split())
    assert "toolglot.cli.main" in loaded
    assert not loaded & {f"toolglot.cli.{name.replace('-', '_')}" for name in COMMANDS}
    assert "rich" not in loaded


# --- colours ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("color", "environment", "has_color"),
    [
        ("auto", {}, True),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {}, False),
    ],
)
def test_colours_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, color: str, environment: dict[str, str], has_color: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert TerminalPage(Screen(), color).has_color is has_color
    assert TerminalPage(io.StringIO(), color).has_color is (color == "always")


def test_color_may_stand_before_or_after_the_command(cli: Cli) -> None:
    cli.write("request.json", chat())
    assert "\x1b[" in cli("--color", "always", "lint", "request.json", "--for", "mistral").out
    assert "\x1b[" in cli("lint", "request.json", "--for", "mistral", "--color", "always").out
    assert "\x1b[" not in cli("lint", "request.json", "--for", "mistral").out


def test_text_of_unknown_origin_is_made_safe() -> None:
    assert clean("a\x1b[31m\n\x9b\u202e\ud800b") == "a\\x1b[31m\\n\\x9b\\u202e\\ud800b"
    assert "abcdefgh" not in clean("key sk-" + "abcdefgh" * 2)


def test_an_error_says_what_where_and_what_to_do() -> None:
    err = Screen()
    terminal = Terminal(Screen(), err, color="never")
    terminal.error(InputError("wrong", path="$.messages[0]", hint="fix it"), where="a.json")
    terminal.error(InputError("wrong"))
    assert err.getvalue() == "error: a.json: wrong at $.messages[0]\n  hint: fix it\nerror: wrong\n"


# --- progress ---------------------------------------------------------------------------------------


def test_large_input_on_a_terminal_has_a_progress_bar_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    err = Screen()
    with Terminal(Screen(), err).progress(100_000_000, "lint x", quiet=False) as advance:
        advance(50_000_000)
        advance(1)
        advance(50_000_000)
    assert "lint x [###############---------------]  50 %" in err.getvalue()
    assert err.getvalue().count("%") == 2
    assert err.getvalue().endswith("\r\x1b[K")


def test_large_input_on_a_terminal_has_a_progress_bar_with_rich(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("rich")
    err = Screen()
    monkeypatch.setattr(sys, "stderr", err)
    with Terminal(Screen(), err).progress(100_000_000, "lint x", quiet=False) as advance:
        advance(100_000_000)
    assert "lint x" in err.getvalue()


@pytest.mark.parametrize("size", [0, 1_000])
def test_small_input_has_no_progress_bar(size: int) -> None:
    err = Screen()
    with Terminal(Screen(), err).progress(size, "lint x", quiet=False) as advance:
        advance(size)
    assert err.getvalue() == ""


def test_input_that_is_no_terminal_has_no_progress_bar() -> None:
    err = io.StringIO()
    with Terminal(io.StringIO(), err).progress(100_000_000, "lint x", quiet=False) as advance:
        advance(1)
    assert err.getvalue() == ""


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "lines.jsonl", "--to", "mistral", "-o", "out.jsonl"),
        ("repair", "lines.jsonl", "--for", "mistral", "-o", "out.jsonl"),
        ("lint", "lines.jsonl", "--for", "mistral"),
        ("switch-report", "lines.jsonl", "--to", "mistral"),
    ],
)
def test_quiet_commands_draw_no_progress_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    body = chat("abcdefghi")
    body["messages"][0]["content"] = "x" * 4_300_000
    Path("lines.jsonl").write_text((json.dumps(body) + "\n") * 2)
    shown, silent = Screen(), Screen()
    monkeypatch.setattr(sys, "stderr", shown)
    assert main(words) == 0
    assert "lines.jsonl" in shown.getvalue()
    monkeypatch.setattr(sys, "stderr", silent)
    Path("out.jsonl").unlink(missing_ok=True)
    assert main((*words, "-q")) == 0
    assert silent.getvalue() == ""


# --- pipes and signals ------------------------------------------------------------------------------


def test_a_reader_that_goes_away_ends_the_command_quietly(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text((json.dumps(chat()) + "\n") * 3_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "toolglot", "lint", "lines.jsonl", "--for", "mistral"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"lines.jsonl:1")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(120) == 141


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "toolglot", "convert", "-", "--from", "anthropic", "--to", "openai@gpt-4.1"],
        stdin=reader,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    os.close(reader)
    assert process.stdout is not None
    # The first of two lines comes back, so the command is at work and waits for more.
    line = json.dumps(claude()).encode() + b"\n"
    os.write(writer, line * 2)
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    os.close(writer)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_is_reported_by_the_exit_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main_module.main(["completion", "bash"]) == 141


class Failing(io.RawIOBase):
    """Input that ends in an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.lines = [json.dumps(claude()).encode() + b"\n"] * 2

    def readline(self, _size: int | None = -1, /) -> bytes:
        if not self.lines:
            raise self.error
        return self.lines.pop()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(KeyboardInterrupt(), 130, ""), (OSError(5, "Input/output error"), 2, "error: Input/output error\n")],
)
def test_input_that_fails_in_the_middle_ends_without_a_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Failing(error)))
    ended = cli("convert", "-", "--to", "openai@gpt-4.1")
    assert (ended.code, ended.err) == (code, message)
    assert ended.out.count("\n") == 2


def test_streams_that_were_closed_are_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main_module.main(["lint", "-"]) == 2
    sys.stdout.close()
    sys.stderr.close()


# --- completion -------------------------------------------------------------------------------------


def complete(script: str, *words: str) -> set[str]:
    """What bash offers for the last of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    test = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _toolglot; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run([bash, "-c", test], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_values(cli: Cli) -> None:
    script = cli("completion", "bash").out
    cli.write("request.json", claude())
    assert complete(script, "toolglot", "") == set(COMMANDS)
    assert complete(script, "toolglot", "sw") == {"switch-report"}
    assert complete(script, "toolglot", "--ver") == {"--version"}
    assert complete(script, "toolglot", "lint", "--fo") == {"--for", "--format"}
    assert complete(script, "toolglot", "lint", "--format", "") == {"text", "json", "sarif"}
    assert complete(script, "toolglot", "convert", "x", "--to", "mis") == {"mistral"}
    assert complete(script, "toolglot", "completion", "") == {"bash", "zsh", "fish"}
    assert complete(script, "toolglot", "repair", "req") == {"request.json"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command_and_option(cli: Cli, shell: str) -> None:
    script = cli("completion", shell).out
    for name in COMMANDS:
        assert name in script
    for option in ("in-place", "server-tools", "report", "for"):
        assert option in script
    assert "mistral" in script
    assert script.count("'") % 2 == 0


BARE = "import sys; sys.modules[sys.argv[1]] = None; from toolglot.cli.main import main; sys.exit(main(sys.argv[2:]))"


def without(missing: str, words: Iterable[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command line where a package is not installed."""
    argv = [sys.executable, "-c", BARE, missing, *words]
    environ = {**os.environ, **variables}
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "words", "code"),
    [
        ("aiohttp", ("serve",), 2),
        ("aiohttp", ("run", "hello"), 2),
        ("aiohttp", ("doctor",), 1),
        ("aiohttp", ("doctor", "--format", "json"), 1),
        ("uvicorn", ("serve", "--port", "0", "--store", "off"), 2),
    ],
)
def test_an_extra_that_is_not_installed_is_reported_in_a_line(
    tmp_path: Path, missing: str, words: tuple[str, ...], code: int
) -> None:
    ran = without(missing, words, tmp_path, ANTHROPIC_API_KEY="sk-ant-0123456789abcdef")
    assert ran.returncode == code
    assert f"needs {missing}, which is not installed" in ran.stdout + ran.stderr
    assert "pip install '.[gateway]' in a clone of toolglot" in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert "http://" not in ran.stdout, "no address is shown where no server will answer"


def test_a_simulated_model_needs_no_http_client(tmp_path: Path) -> None:
    ran = without("aiohttp", ("run", "hello", "--model", "simulated/anthropic/claude-opus-5"), tmp_path)
    assert (ran.returncode, "You said: hello" in ran.stdout) == (0, True), ran.stderr


def test_the_examples_begin_with_chat_run_and_serve(cli: Cli) -> None:
    printed = cli("--help").out
    assert all(f"  toolglot {name}" in printed for name in ("chat", "run", "serve"))

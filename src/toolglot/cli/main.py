"""`toolglot COMMAND …`: find the command, run it, and return its exit code.

Exit codes: 0 success; 1 something was found, or some requests failed; 2 wrong usage or unreadable input; 130
interrupted; 141 broken pipe. Only the module of the requested command is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from toolglot import __version__
from toolglot.cli.options import Formatter, Parser
from toolglot.cli.screen.terminal import COLOR_CHOICES, Terminal
from toolglot.errors import InputError

COMMANDS: Final = {
    "demo": "show what toolglot does, in half a minute, offline",
    "lint": "check a request: what would a provider reject, and where",
    "repair": "fix a request so that its provider accepts it",
    "convert": "convert a request from one protocol to another",
    "switch-report": "show what a switch to another provider would change or lose",
    "inspect": "look at requests in the browser: what is sent, what is changed, and why",
    "parse": "extract tool calls that a model wrote as text",
    "bulk": "convert, count and check many transcripts: datasets, captures, files for fine-tuning",
    "chat": "chat with a model that has tools, in the terminal",
    "run": "answer one prompt with tools, for scripts",
    "sessions": "list, search, show, export and fork sessions of chat and run; list those of coding agents",
    "handoff": "continue a session of one coding agent in another",
    "serve": "start the gateway: any client on any provider",
    "keys": "manage the keys of the gateway's clients, and their limits",
    "usage": "show what the gateway's clients used, and what it cost",
    "simulate": "start simulated providers that are as strict as the real ones",
    "probe": "find out how an unknown endpoint handles tools",
    "doctor": "check a gateway's setup, or a session of a coding agent, and say how to fix it",
    "init": "write a commented toolglot.toml for the gateway",
    "explain": "explain a rule: what it demands, who has it, and the source",
    "completion": "print a completion script for bash, zsh or fish",
}
"""Every command with its summary. The module of a command is its name with `_` for `-`."""

USAGE_ERROR: Final = 2
INTERRUPTED: Final = 130
PIPE_BROKEN: Final = 141

_EPILOG: Final = """\
examples:
  toolglot demo
  toolglot chat --tools weather.py
  toolglot run "Is it raining in Bonn?" --tools weather.py
  toolglot serve
  toolglot lint request.json --for mistral
  toolglot repair request.json --for anthropic --in-place
  toolglot convert request.json --to openai -o converted.json
  toolglot switch-report session.jsonl --to gemini
  toolglot explain mistral-id-nine

exit codes:
  0    success
  1    something was found, or some requests failed
  2    wrong usage, or unreadable input
  130  interrupted (Ctrl-C)

'toolglot COMMAND --help' describes a command in full.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    sys.stdout = _prepare_stream(sys.stdout)
    sys.stderr = _prepare_stream(sys.stderr)
    try:
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return PIPE_BROKEN
    except OSError as error:  # a disk that fails in the middle of a file
        Terminal(sys.stdout, sys.stderr).error(InputError(error.strerror or "I/O error", path=error.filename or ""))
        return USAGE_ERROR
    return code


def _run(words: list[str]) -> int:
    chosen = next((word for word in words if word in COMMANDS), "")
    try:
        arguments = build_parser([chosen]).parse_args(words)
    except SystemExit as ended:  # argparse has printed why
        return ended.code if isinstance(ended.code, int) else USAGE_ERROR
    except InputError as error:  # the command needs an extra that is not installed
        Terminal(sys.stdout, sys.stderr).error(error)
        return USAGE_ERROR
    terminal = Terminal(sys.stdout, sys.stderr, color=arguments.color)
    if arguments.command is None:
        build_parser(()).print_help(sys.stderr)
        return USAGE_ERROR
    try:
        code: int = load(arguments.command).run(arguments, terminal)
    except InputError as error:
        for mistake in error.errors:
            terminal.error(mistake)
        return USAGE_ERROR
    return code


def load(command: str) -> Any:
    """The module of a command."""
    return importlib.import_module(f"toolglot.cli.commands.{command.replace('-', '_')}")


def build_parser(configured: Sequence[str]) -> argparse.ArgumentParser:
    """The parser with all commands, and the options of the commands in `configured`."""
    parser = Parser(
        prog="toolglot",
        description="One conversation, any client, any model: tool calls that never break.",
        epilog=_EPILOG,
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action="version", version=f"toolglot {__version__}")
    _add_color(parser, "auto")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=Parser)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, formatter_class=Formatter)
        if name in configured:
            load(name).configure(command)
            _add_color(command, argparse.SUPPRESS)
    return parser


def _add_color(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--color",
        choices=COLOR_CHOICES,
        default=default,
        help="use colours: 'auto' (the default) uses them on a terminal unless NO_COLOR is set",
    )


def _prepare_stream(stream: Any) -> Any:
    """Escape characters that the encoding lacks instead of raising. A closed stream becomes `os.devnull`."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    with contextlib.suppress(AttributeError, ValueError, OSError):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _silence_stdout() -> None:
    """Discard the buffer after a broken pipe, so that Python prints no error when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

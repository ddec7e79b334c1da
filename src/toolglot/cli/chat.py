"""`toolglot chat`: talk to a model at the terminal, with tools."""

from __future__ import annotations

import argparse
from typing import Final

from toolglot.cli.session_options import add_session_options, settings_of
from toolglot.cli.terminal import Terminal

_DESCRIPTION: Final = """\
Talks to a model: what it says appears as it comes, tools are shown while they run, and those that need it ask first.
Everything that was said is kept as a session, which can be gone on with later, and with any other model.

Models come from toolglot.toml (see 'toolglot init'), else from the keys in the environment. Without any, a built-in
simulated model answers, and says so. Where stdin is no terminal, each line of it is a message."""

_EPILOG: Final = """\
examples:
  toolglot chat
  toolglot chat --model anthropic/claude-opus-5 --tools weather.py
  toolglot chat --mcp "uvx mcp-server-git" --mcp servers.json --allow 'git_log'
  toolglot chat --continue
  toolglot chat --session 20261115-1204 --model openai/gpt-5.5

commands, at the prompt:
  /model [NAME]    who is asked from now on, a model or a provider; without a name, who can be
  /tools           the tools that the model may call
  /undo            take back what was said last, with what came of it
  /go              let the model go on without saying anything
  /compress        put a summary in the place of older turns
  /fork            go on in a copy; this session stays as it is
  /resume [ID]     go on with another session; without an id, which there are
  /history [N]     what was said until now; with N, the last N turns
  /save FILE       write the conversation to FILE: .md as text, else JSON
  /cost            tokens and money
  /help, /quit

A backslash at the end of a line continues it; a paste of several lines is one message. Ctrl-C stops an answer and
keeps what came of it; once more goes on without a tool that does not end; twice at the prompt, or Ctrl-D, leaves.
Markdown is rendered where rich is installed (the extra cli). A tool that asks is answered with y (yes), n (no, and a
reason if you like), a (always) or e (edit its arguments).

Tools ask that are marked with approval=True, and those of MCP servers that do not say that they only read.

exit codes: 0 left; 1 an answer failed, and nobody was at the terminal to see it; 2 used wrongly; 143 SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_session_options(parser)
    parser.add_argument(
        "--plain",
        action="store_true",
        help="show answers as they are written: no Markdown, no line that says what is waited for",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.cli.chat_session import chat  # noqa: PLC0415 - what it needs is an extra

    return chat(settings_of(arguments), terminal)

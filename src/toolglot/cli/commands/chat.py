"""`toolglot chat`: chat with a model that has tools, in the terminal."""

from __future__ import annotations

import argparse
from typing import Final

from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.session.session_options import add_session_options, session_settings

_DESCRIPTION: Final = """\
Chat with a model. Replies appear as they stream in, running tools are shown, and tools that need approval ask first.
Everything is stored as a session, which you can continue later, also with another model.

Models come from toolglot.toml (see 'toolglot init'), otherwise from the keys in the environment. Without any key, a
built-in simulated model answers, and says so. If stdin is not a terminal, each line of it is a message."""

_EPILOG: Final = """\
examples:
  toolglot chat
  toolglot chat --model anthropic/claude-opus-5 --tools weather.py
  toolglot chat --mcp "uvx mcp-server-git" --mcp servers.json --allow 'git_log'
  toolglot chat --continue
  toolglot chat --session 20261115-1204 --model openai/gpt-5.5

commands, at the prompt:
  /model [NAME]    switch to a model or a provider; without a name, list them
  /tools           the tools that the model may call
  /undo            remove your last message and everything after it
  /go              let the model continue without a message
  /compress        replace older turns by a summary
  /fork            continue in a copy; this session stays as it is
  /resume [ID]     continue another session; without an id, list them
  /history [N]     show the conversation; with N, the last N turns
  /save FILE       write the conversation to FILE: .md as text, else JSON
  /cost            tokens and money
  /help, /quit

A backslash at the end of a line continues it; pasted lines are one message. Ctrl-C stops a reply and keeps what has
arrived; a second Ctrl-C stops waiting for a tool that does not end; twice at the prompt, or Ctrl-D, leaves. Markdown
is rendered if rich is installed (the extra cli).

Tools need approval if they are marked with approval=True, or if they come from an MCP server that does not declare
them read-only. Answer with y (yes), n (no, with an optional reason), a (always) or e (edit the arguments).

exit codes: 0 left; 1 a reply failed, and stdin is not a terminal; 2 wrong usage; 143 SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    add_session_options(parser)
    parser.add_argument(
        "--plain",
        action="store_true",
        help="show replies as they are written: no Markdown, no status line",
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.cli.session.chat_session import chat  # noqa: PLC0415 - it needs an extra

    return chat(session_settings(arguments), terminal)

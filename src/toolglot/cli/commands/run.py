"""`toolglot run`: answer one prompt with tools, for scripts."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from toolglot.cli.options import add_quiet
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.session.session_options import add_session_options, session_settings
from toolglot.errors import InputError

MAX_PROMPT_BYTES: Final = 16 * 1024 * 1024
STDIN: Final = "-"

_DESCRIPTION: Final = """\
Call a model, run the tools that it calls, and print its answer. On a terminal, stderr shows the progress.

Models come from toolglot.toml (see 'toolglot init'), otherwise from the keys in the environment. Without any key, a
built-in simulated model answers, and says so. The conversation is stored as a session; --continue continues it, also
with another model."""

_EPILOG: Final = """\
examples:
  toolglot run "What is the capital of Peru?"
  git diff | toolglot run - --system "Review this change."
  toolglot run "Is it raining in Bonn?" --tools weather.py --model anthropic/claude-opus-5
  toolglot run "What changed last week?" --mcp "uvx mcp-server-git" --allow 'git_*'
  toolglot run "And before that?" --continue --model openai/gpt-5.5 --json

Tools that are marked with approval=True, and tools of MCP servers that are not declared read-only, run only if they
are allowed: with --allow, or by you at the terminal. Otherwise they are denied, and the model learns why.

Ctrl-C and SIGTERM stop the run gracefully and keep the session; a second signal does not wait.

exit codes: 0 answered; 1 failed, refused, truncated, or stopped by a limit; 2 wrong usage; 130 Ctrl-C; 143 SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("prompt", metavar="PROMPT", help="the prompt; '-' reads it from stdin")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON document: the answer, calls, usage, session")
    form.add_argument("--stream-json", action="store_true", help="print each event as a line of JSON, as it happens")
    add_quiet(parser)
    add_session_options(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.cli.session.run_once import run_once  # noqa: PLC0415 - it needs an extra

    prompt = _prompt(arguments.prompt)
    output_format = "json" if arguments.json else "stream-json" if arguments.stream_json else "text"
    return run_once(session_settings(arguments), prompt, terminal, output_format=output_format, quiet=arguments.quiet)


def _prompt(argument: str) -> str:
    if argument != STDIN:
        prompt = argument
    else:
        data = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            raise InputError(f"longer than {MAX_PROMPT_BYTES} bytes", path="stdin", hint="send a shorter prompt")
        try:
            prompt = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 at byte {error.start}", path="stdin", hint="send UTF-8 text") from None
    if not prompt.strip():
        raise InputError("the prompt is empty", path="PROMPT" if argument != STDIN else "stdin", hint="write a prompt")
    return prompt

"""`toolglot init`: write a commented `toolglot.toml` to start from."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from toolglot.cli.files.output import STDOUT, back_up, open_output, refuse_existing
from toolglot.cli.options import add_quiet
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.gateway.config.example import example_config
from toolglot.gateway.config.settings import FILE
from toolglot.gateway.config.upstream_table import discovered_upstreams

_DESCRIPTION: Final = """\
Write a configuration for the gateway with every setting and every provider in it, commented out. The providers whose
keys are in the environment are enabled, so you can use it as it is.

It contains no keys: it names the environment variables that hold them."""

_EPILOG: Final = """\
examples:
  toolglot init                          (writes toolglot.toml)
  toolglot init ~/.config/toolglot.toml
  toolglot init --force                  (keeps the old file as toolglot.toml.bak)
  toolglot init -                        (to stdout)

exit codes: 0 written; 2 the file exists already, or cannot be written
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument(
        "path", nargs="?", default=FILE, metavar="PATH", help="where to write (default: %(default)s); '-' is stdout"
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file; the old one is kept as PATH.bak")
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    path = arguments.path
    text = example_config(os.environ)
    backup = ""
    if path != STDOUT:
        refuse_existing(path, force=arguments.force)
        backup = back_up(path, force=True) if Path(path).exists() else ""
    with open_output(path, terminal, force=arguments.force) as output:
        output.write(text.encode())
    if not arguments.quiet:
        _print_summary(path, backup, terminal)
    return 0


def _print_summary(path: str, backup: str, terminal: Terminal) -> None:
    found, skipped = discovered_upstreams(os.environ)
    if path != STDOUT:
        terminal.err.line(f"wrote {clean(path)}" + (f"; the old file is {clean(backup)}" if backup else ""))
    if found:
        terminal.err.line(f"enabled: {', '.join(found)}")
    else:
        terminal.err.line("enabled: none. Set the key of a provider in the environment, and uncomment its section")
        terminal.note(
            "with this file, simulated models answer only as simulated/PROVIDER/MODEL, such as "
            "simulated/openai/gpt-5.5; without a configuration they answer for all known names"
        )
    for name, reason in skipped.items():
        terminal.note(f"{name} is not enabled: {reason}")

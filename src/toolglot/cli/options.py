"""Options that several commands share, and the manner of all help texts."""

from __future__ import annotations

import argparse
import difflib
import shutil
import sys
import textwrap
from typing import Final, NoReturn

from toolglot.cli.screen.terminal import clean

WIDEST_HELP: Final = 100

_OTHER_NAMES: Final = {"--resume": ("--continue", "--continue, for the last session, or --session ID")}
"""Options as other programs call them: the option that must exist here, and what to say."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions at a width that reads well, examples as they were written."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, WIDEST_HELP) - 2
        super().__init__(prog, max_help_position=26, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs fill the width; examples and lists, which are indented, stay as they are."""
        parts = text.strip("\n").split("\n\n")
        return "\n\n".join(
            part if "\n " in part else textwrap.fill(part, width, initial_indent=indent) for part in parts
        )


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors say what to do."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """The message, a guess at what was meant, and where to read on."""
        guess = _guess(message, [*self._option_string_actions, *_choices(self)])
        hint = f"did you mean {guess}?" if guess else f"see '{self.prog} --help'"
        sys.stderr.write(f"{self.prog}: {clean(message)}\n  hint: {hint}\n")
        sys.exit(2)


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """Closed lists of words, and the options of the commands below, of which the uppermost parser complains."""
    words: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to tell what it knows
        words += action.choices or ()
        below = action.choices.values() if isinstance(action.choices, dict) else ()
        words += [name for command in below for name in command._option_string_actions]  # noqa: SLF001
    return words


def _guess(message: str, known: list[str]) -> str:
    """The known word that is nearest to one that the message complains of."""
    quoted = message.partition("invalid choice: '")[2].partition("'")[0]
    unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
    ours, advice = _OTHER_NAMES.get(unknown, ("", ""))
    if ours in known:
        return advice
    close = difflib.get_close_matches((quoted or unknown)[:80], known, n=1)
    return close[0] if close else ""


def add_profiles(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profiles",
        metavar="FILE",
        help="a TOML file with your own profiles, or changes to the built-in ones (see docs/profiles.md)",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors on stderr")


def add_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="also list housekeeping: changes that do not change the meaning"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="OUT", default="-", help="where to write; '-', which is the default, is stdout"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")

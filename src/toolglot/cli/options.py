"""Options that several commands share, parsers for their values, and the layout of help texts."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final, NoReturn

from toolglot.cli.screen.terminal import clean
from toolglot.errors import InputError, closest_names, quote

MAX_HELP_WIDTH: Final = 100
_AGO: Final = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_COUNT: Final = re.compile(r"([0-9][0-9_,]*)(\.[0-9]+)?([kKmMgG]?)")
_TIMES: Final = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}
MAX_TOKENS: Final = 10**15
MAX_DOLLARS: Final = 10**6

_OTHER_NAMES: Final = {"--resume": ("--continue", "--continue, for the last session, or --session ID")}
"""Options of other programs: the option that must exist here for the advice to apply, and the advice."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps descriptions at a readable width and leaves examples as they are."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, MAX_HELP_WIDTH) - 2
        super().__init__(prog, max_help_position=26, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap paragraphs. Examples and lists are indented, and stay as they are."""
        parts = text.strip("\n").split("\n\n")
        return "\n\n".join(
            part if "\n " in part else textwrap.fill(part, width, initial_indent=indent) for part in parts
        )


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors come with a hint."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Print the message with a suggestion, or with where to find help, and exit with 2."""
        guess = _closest(message, [*self._option_string_actions, *_choices(self)])
        hint = f"did you mean {guess}?" if guess else f"see '{self.prog} --help'"
        sys.stderr.write(f"error: {clean(message)}\n  hint: {hint}\n")
        sys.exit(2)


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """The choices of arguments, and the options of subcommands: the top-level parser reports mistakes in those too."""
    words: list[str] = []
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        words += action.choices or ()
        below = action.choices.values() if isinstance(action.choices, dict) else ()
        words += [name for command in below for name in command._option_string_actions]  # noqa: SLF001
    return words


def _closest(message: str, known: list[str]) -> str:
    """The known word that is closest to the one in the message."""
    quoted = message.partition("invalid choice: '")[2].partition("'")[0]
    unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0].partition("=")[0]
    ours, advice = _OTHER_NAMES.get(unknown, ("", ""))
    if ours in known:
        return advice
    close = closest_names(quoted or unknown, known)
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
        "-o", "--output", metavar="OUT", default="-", help="the output file (default: '-', which is stdout)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


# --- values of options ------------------------------------------------------------------------------


def parse_count(text: str) -> int:
    """`250`, `500k`, `2.5M`."""
    found = _COUNT.fullmatch(text.strip())
    number = Decimal(found[1].replace(",", "").replace("_", "") + (found[2] or "")) if found else Decimal(0)
    count = number * _TIMES[found[3].lower()] if found else number
    if count != int(count) or not 1 <= count <= MAX_TOKENS:
        raise argparse.ArgumentTypeError(
            f"expected a number such as 250, 500k or 2M, at most {MAX_TOKENS}, got {text[:40]!r}"
        )
    return int(count)


def parse_dollars(text: str) -> Decimal:
    """`50`, `$12.50`."""
    try:
        amount = Decimal(text.strip().removeprefix("$").replace(",", ""))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 < amount <= MAX_DOLLARS:
        raise argparse.ArgumentTypeError(
            f"expected US dollars such as 50 or 12.50, at most {MAX_DOLLARS}, got {text[:40]!r}"
        )
    return amount


def parse_time(text: str, *, now: datetime, option: str, ahead: bool = False) -> datetime:
    """`today`, `2026-11-15`, `2026-11`, or a duration such as `7d`: before now, or after now if `ahead`."""
    found = _AGO.fullmatch(text)
    if found:
        length = int(found[1]) * _UNITS[found[2]]
        return now + length if ahead else now - length
    if text == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        read = datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"[0-9]{4}-[0-9]{2}", text) else text)
    except ValueError:
        raise InputError(
            f"invalid time {quote(text)}", path=option, hint="use a day such as 2026-11-15, or a duration such as 30d"
        ) from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)

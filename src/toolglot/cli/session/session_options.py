"""The options of the commands that run sessions, and what they come to.

Law: what is wrong with an option is told before anything is opened, started or asked.
"""

from __future__ import annotations

import argparse
import os
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolglot.cli.options import dollars
from toolglot.errors import InputError

MOST_SYSTEM: Final = 1_000_000
"""Characters of a system prompt that is read from a file."""
LONGEST: Final = 7 * 24 * 3600


class SessionSettings(Struct, frozen=True, kw_only=True):
    """How a session is to be run."""

    model: str = ""
    """Empty: that of the session, else the first that there is."""
    fallback: tuple[str, ...] = ()
    system: str | None = None
    config: str | None = None
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    """Patterns of tools that run without being asked for."""
    session: str = ""
    go_on: bool = False
    """Go on with the session that was used last."""
    store: str = ""
    """Empty: nothing is kept."""
    max_turns: int | None = None
    max_cost: Decimal | None = None
    timeout: float | None = None
    plain: bool = False
    """Show answers as they are written, and nothing that is erased again."""


def add_session_options(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_tools(parser)
    _add_session(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-turns", type=_count, metavar="N", help="maximum number of model turns per reply (default: 50)"
    )
    limits.add_argument("--max-cost", type=dollars, metavar="USD", help="the maximum cost, in US dollars")
    limits.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="maximum time per reply")


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "-m",
        "--model",
        metavar="PROVIDER/NAME",
        default="",
        help="the model to call; also a name in [models] of the configuration, simulated/PROVIDER/NAME, or PROVIDER "
        "alone, for its default model "
        "(default: that of the session, else $TOOLGLOT_MODEL, else the first one with a key, else a simulated one)",
    )
    group.add_argument(
        "--fallback",
        metavar="MODEL",
        action="append",
        default=[],
        help="the model to call if that one fails; may be repeated",
    )
    group.add_argument(
        "--system", metavar="TEXT|@FILE", help="the system prompt of a new session; '@FILE' reads it from a file"
    )
    group.add_argument("--config", metavar="FILE", help="default: $TOOLGLOT_CONFIG, else ./toolglot.toml, else none")


def _add_tools(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tools")
    group.add_argument(
        "--tools",
        metavar="FILE.py[:NAME]",
        action="append",
        default=[],
        help="a Python file, or a module: what it marks with @toolglot.tool, else public functions; may be repeated",
    )
    group.add_argument(
        "--mcp",
        metavar="SERVER",
        action="append",
        default=[],
        help="an MCP server: a command, an address, or a JSON file with mcpServers; may be repeated",
    )
    group.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="run this tool without asking ('git_*' is possible); may be repeated",
    )
    group.add_argument("--allow-all", action="store_true", help="run every tool without asking")


def _add_session(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("session")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--session",
        metavar="ID",
        default="",
        help="continue this session, by its id in 'toolglot sessions list'; its first or last 4 characters are enough",
    )
    which.add_argument("--continue", dest="go_on", action="store_true", help="continue the session that was used last")
    where = group.add_mutually_exclusive_group()
    add_session_store(where)
    where.add_argument("--no-store", action="store_true", help="store nothing")


def add_session_store(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--store",
        metavar="FILE|URL",
        help="where sessions are kept: a file, postgres://…, redis://…, or env:NAME, the variable that holds it "
        "(default: toolglot/sessions.db in $XDG_STATE_HOME or ~/.local/state)",
    )


def settings_of(arguments: argparse.Namespace) -> SessionSettings:
    """What the options come to."""
    if arguments.no_store and (arguments.session or arguments.go_on):
        raise InputError(
            "a session that is gone on with is in a store",
            path="--no-store",
            hint="leave --no-store out, or --session and --continue",
        )
    return SessionSettings(
        model=arguments.model,
        fallback=tuple(arguments.fallback),
        system=_system(arguments.system),
        config=arguments.config,
        tools=tuple(arguments.tools),
        mcp=tuple(arguments.mcp),
        allow=("*",) if arguments.allow_all else tuple(arguments.allow),
        session=arguments.session,
        go_on=arguments.go_on,
        store="" if arguments.no_store else session_place(arguments.store),
        max_turns=arguments.max_turns,
        max_cost=arguments.max_cost,
        timeout=arguments.timeout,
        plain=getattr(arguments, "plain", False),
    )


def session_place(given: str | None) -> str:
    """Where sessions are kept."""
    if given is None:
        return str(state_folder() / "sessions.db")
    if given.startswith("env:"):
        found = os.environ.get(given[4:], "")
        if not found:
            raise InputError(f"the environment has no {given[4:]}", path="--store", hint="set it, or name a file")
        return found
    if not given or "\0" in given:
        raise InputError("this is no place for a store", path="--store", hint="name a file, or use --no-store")
    return given


def state_folder() -> Path:
    """Where this user's sessions are, and what was typed."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():  # a relative one counts as none
        return state / "toolglot"
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        hint = "set HOME, name a file with --store, or use --no-store"
        raise InputError("there is no home directory to keep sessions in", path="--store", hint=hint)
    return home / ".local" / "state" / "toolglot"


def _system(given: str | None) -> str | None:
    if given is None or not given.startswith("@"):
        return given or None
    try:
        with Path(given[1:]).open(encoding="utf-8-sig") as file:
            text = file.read(MOST_SYSTEM + 1)
    except UnicodeDecodeError:
        raise InputError("not UTF-8", path=given[1:], hint="save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", path=given[1:], hint="check the name after --system @") from None
    if len(text) > MOST_SYSTEM:
        raise InputError(f"longer than {MOST_SYSTEM} characters", path=given[1:], hint="this is no system prompt")
    return text.strip() or None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 6 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 999999, not {text[:40]!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = Decimal(text)
    except ArithmeticError:
        seconds = Decimal("NaN")
    if not seconds.is_finite() or not 0 < seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"expected seconds such as 30 or 2.5, at most {LONGEST}, not {text[:40]!r}")
    return float(seconds)

"""The options of the commands that run sessions.

Law: options are checked before anything is opened, started or called.
"""

from __future__ import annotations

import argparse
import os
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolglot.cli.options import parse_dollars
from toolglot.errors import InputError

MAX_SYSTEM: Final = 1_000_000
"""Characters of a system prompt from a file."""
MAX_TIMEOUT: Final = 7 * 24 * 3600


class SessionSettings(Struct, frozen=True, kw_only=True):
    """The settings of a session."""

    model: str = ""
    """Empty: that of the session, else the first available one."""
    fallback: tuple[str, ...] = ()
    system: str | None = None
    config: str | None = None
    tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    """Patterns of tools that run without approval."""
    session: str = ""
    continue_last: bool = False
    """Continue the session that was used last."""
    store: str = ""
    """Empty: the session is not stored."""
    max_turns: int | None = None
    max_cost: Decimal | None = None
    timeout: float | None = None
    plain: bool = False
    """Show replies as raw text, without a status line."""


def add_session_options(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_tools(parser)
    _add_session(parser)
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-turns", type=_count, metavar="N", help="maximum number of model turns per reply (default: 50)"
    )
    limits.add_argument("--max-cost", type=parse_dollars, metavar="USD", help="the maximum cost, in US dollars")
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
        help="a Python file or module: functions marked with @toolglot.tool, else all public ones; may be repeated",
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
    which.add_argument(
        "--continue", dest="continue_last", action="store_true", help="continue the session that was used last"
    )
    where = group.add_mutually_exclusive_group()
    add_session_store(where)
    where.add_argument("--no-store", action="store_true", help="store nothing")


def add_session_store(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--store",
        metavar="FILE|URL",
        help="where sessions are stored: a file, postgres://…, redis://…, or env:NAME for the value of a variable "
        "(default: toolglot/sessions.db in $XDG_STATE_HOME or ~/.local/state)",
    )


def session_settings(arguments: argparse.Namespace) -> SessionSettings:
    """The settings from the options."""
    if arguments.no_store and (arguments.session or arguments.continue_last):
        raise InputError(
            "cannot be used with --session or --continue",
            path="--no-store",
            hint="remove one of them: a session that is continued must be stored",
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
        continue_last=arguments.continue_last,
        store="" if arguments.no_store else session_store(arguments.store),
        max_turns=arguments.max_turns,
        max_cost=arguments.max_cost,
        timeout=arguments.timeout,
        plain=getattr(arguments, "plain", False),
    )


def session_store(location: str | None) -> str:
    """The path or URL of the store of sessions."""
    if location is None:
        return str(state_folder() / "sessions.db")
    if location.startswith("env:"):
        found = os.environ.get(location[4:], "")
        if not found:
            raise InputError(
                f"the environment variable {location[4:]} is not set", path="--store", hint="set it, or use a file"
            )
        return found
    if not location or "\0" in location:
        raise InputError("invalid store", path="--store", hint="use a file or a URL, or --no-store")
    return location


def state_folder() -> Path:
    """The folder of this user's sessions and input history."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():  # a relative path is ignored
        return state / "toolglot"
    home = Path(os.environ.get("HOME", ""))
    if not home.is_absolute():
        hint = "set HOME, or use --store FILE or --no-store"
        raise InputError("no home directory for the store of sessions", path="--store", hint=hint)
    return home / ".local" / "state" / "toolglot"


def _system(option: str | None) -> str | None:
    if option is None or not option.startswith("@"):
        return option or None
    try:
        with Path(option[1:]).open(encoding="utf-8-sig") as file:
            text = file.read(MAX_SYSTEM + 1)
    except UnicodeDecodeError:
        raise InputError("not UTF-8", path=option[1:], hint="save it as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot read file: {reason}", path=option[1:], hint="check the path after --system @"
        ) from None
    if len(text) > MAX_SYSTEM:
        raise InputError(f"longer than {MAX_SYSTEM} characters", path=option[1:], hint="use a shorter system prompt")
    return text.strip() or None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= len(text) <= 6 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 999999, got {text[:40]!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = Decimal(text)
    except ArithmeticError:
        seconds = Decimal("NaN")
    if not seconds.is_finite() or not 0 < seconds <= MAX_TIMEOUT:
        raise argparse.ArgumentTypeError(
            f"expected seconds such as 30 or 2.5, at most {MAX_TIMEOUT}, got {text[:40]!r}"
        )
    return float(seconds)

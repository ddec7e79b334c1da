"""`toolglot sessions`: what was said with `chat` and `run`, and what can be done with it without asking a model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from toolglot.cli.files.output import STDOUT, open_output
from toolglot.cli.options import Formatter, Parser, add_output, add_quiet
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.cli.session.session_options import add_session_store, session_place
from toolglot.cli.store_access import with_store
from toolglot.errors import InputError, ToolglotError
from toolglot.store import Store, is_address

if TYPE_CHECKING:
    from toolglot.conversation import Turn
    from toolglot.runtime.log.info import SessionInfo

T = TypeVar("T")
Act = Callable[[argparse.Namespace, Terminal], int]

NOTHING_FOUND: Final = 1
LARGEST: Final = 256 * 1024 * 1024
MAX_LISTED: Final = 1_000_000

_DESCRIPTION: Final = """\
List, search and show the sessions of 'toolglot chat' and 'toolglot run'; copy, cut, move or remove them. A session
that is in use can be read and copied; to change it, close it first."""

_EPILOG: Final = """\
examples:
  toolglot sessions list
  toolglot sessions search "invoice 4711"
  toolglot sessions show 20261115-1204
  toolglot sessions export 20261115-1204 -o talk.json
  toolglot sessions import talk.json --store postgres://localhost/team
  toolglot sessions fork 20261115-1204 --at KEY
  toolglot sessions rewind 20261115-1204 --to KEY
  toolglot sessions remove 20261115-1204

ID is the id of a session, or its first or last letters; KEY is that of a turn, as 'show --keys' tells it.

exit codes: 0 done; 1 nothing was found; 2 there is no such session, another process has it, or the store cannot be used
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    made = {
        name: actions.add_parser(name, help=told, formatter_class=Formatter) for name, (told, _) in _ACTIONS.items()
    }
    for name, each in made.items():
        each.description = f"{_ACTIONS[name][0][0].upper()}{_ACTIONS[name][0][1:]}."
        if name not in ("list", "search", "import"):
            each.add_argument("id", metavar="ID", help="which session")
        add_session_store(each)
    for name in ("list", "search"):
        made[name].add_argument(
            "--limit", type=int, default=20, metavar="N", help="the maximum number to show (default: 20)"
        )
        made[name].add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    made["search"].add_argument("text", metavar="TEXT", help="the string to look for; case-insensitive")
    made["show"].add_argument("--keys", action="store_true", help="with the key of each turn")
    made["show"].add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    made["import"].add_argument("file", metavar="FILE", help="what 'export' wrote; '-' is stdin")
    made["fork"].add_argument("--at", metavar="KEY", help="the last turn to copy (default: all)")
    made["rewind"].add_argument(
        "--to", metavar="KEY", required=True, help="the last turn that stays; 'start' forgets all of them"
    )
    add_output(made["export"])
    for name in ("import", "fork", "rewind", "remove"):
        add_quiet(made[name])


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    return _ACTIONS[arguments.action][1](arguments, terminal)


def _in_store(arguments: argparse.Namespace, act: Callable[[Store], Awaitable[T]], *, makes: bool = False) -> T:
    """Do something with the store of sessions. To look into one makes none."""
    from toolglot.cli.session.session_host import as_input_error  # noqa: PLC0415

    place = session_place(arguments.store)
    if not makes and not is_address(place) and not Path(place).expanduser().exists():
        hint = "`toolglot chat` and `toolglot run` make one; --store names another"
        raise InputError("there are no sessions yet", path=place, hint=hint)
    try:
        return with_store(place, act)
    except ToolglotError as error:
        raise as_input_error(error) from None


def _with_session(arguments: argparse.Namespace, act: Callable[[Store, str], Awaitable[T]]) -> T:
    from toolglot.cli.session.session_host import full_id  # noqa: PLC0415

    async def found(store: Store) -> T:
        return await act(store, await full_id(store, arguments.id))

    return _in_store(arguments, found)


# --- looking ----------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import list_sessions  # noqa: PLC0415

    page = _in_store(arguments, lambda store: list_sessions(store, limit=_limit(arguments)))
    if arguments.format == "json":
        terminal.out.line(_json([_told(info) for info in page.sessions]))
    elif page.sessions:
        rows = [_row(info) for info in page.sessions]
        terminal.out.table(rows, heading=("ID", "LAST USED", "TURNS", "MODEL", "TITLE"))
    if page.next:
        terminal.note("there are more: --limit N shows them")
    for id in page.damaged:
        terminal.note(f"{id} is damaged and cannot be listed")
    if not page.sessions:
        terminal.note("there are no sessions yet")
    return 0


def _search(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.search import search_sessions  # noqa: PLC0415

    found = _in_store(arguments, lambda store: search_sessions(store, arguments.text, limit=_limit(arguments)))
    if arguments.format == "json":
        told = [{**_told(hit.session), "snippet": hit.snippet, "turn": hit.turn_key, "role": hit.role} for hit in found]
        terminal.out.line(_json(told))
    elif found:
        rows = [
            (
                hit.session.id,
                _when(hit.session.updated),
                hit.role or ("-" if hit.problem else "title"),
                clean(hit.snippet),
            )
            for hit in found
        ]
        terminal.out.table(rows, heading=("ID", "LAST USED", "WHO", "WHERE"))
    for hit in found:
        if hit.problem:
            terminal.note(f"{hit.session.id} could not be searched to its end: {hit.problem}")
    if not found:
        terminal.note("nothing was found")
    return 0 if found else NOTHING_FOUND


def _show(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.cli.screen.transcript_text import markdown_of  # noqa: PLC0415
    from toolglot.cli.screen.transcript_view import safe_text  # noqa: PLC0415
    from toolglot.runtime.log.sessions import read_session  # noqa: PLC0415

    info, standing = _with_session(arguments, read_session)
    turns: list[Turn] = standing.turns
    if arguments.format == "json":
        told = [{"key": turn.key, "role": turn.role, "blocks": msgspec.to_builtins(turn.blocks)} for turn in turns]
        terminal.out.line(_json({**_told(info), "conversation": told}))
        return 0
    page = terminal.out
    page.line(page.paint(f"# {clean(info.title) or info.id}", "bold"))
    about = (info.id, clean(info.model), _turns(info), _when(info.updated))
    page.line(page.paint(" · ".join(part for part in about if part), "dim"))
    page.line()
    for line in safe_text(markdown_of(turns, keys=arguments.keys)).rstrip("\n").split("\n"):
        page.line(page.paint(line, "bold") if line.startswith("## ") else line)
    return 0


def _limit(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.limit <= MAX_LISTED:
        raise InputError(f"expected a whole number from 1 to {MAX_LISTED}", path="--limit")
    limit: int = arguments.limit
    return limit


def _row(info: SessionInfo) -> tuple[str, ...]:
    return info.id, _when(info.updated), str(info.turns), clean(info.model), clean(info.title)


def _turns(info: SessionInfo) -> str:
    return f"{info.turns} turn{'s' if info.turns != 1 else ''}"


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"


def _told(info: SessionInfo) -> dict[str, Any]:
    """A session for other programs."""
    times = {
        name: f"{datetime.fromtimestamp(getattr(info, name), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for name in ("created", "updated")
    }
    cost = float(info.cost) if info.cost is not None else None
    about = {name: getattr(info, name) for name in ("id", "title", "model", "turns", "forked_from", "tokens")}
    return {**about, **times, "cost_usd": cost}


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


# --- changing ---------------------------------------------------------------------------------------


def _export(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.documents import export_session  # noqa: PLC0415

    data = _with_session(arguments, export_session)
    with open_output(arguments.output, terminal, force=arguments.force) as output:
        output.write(data + b"\n")
    return 0


def _import(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.documents import import_session  # noqa: PLC0415

    data = _read(arguments.file)
    info = _in_store(arguments, lambda store: import_session(store, data), makes=True)
    return _done(arguments, terminal, info.id, f"{_turns(info)}; toolglot chat --session {info.id} goes on with it")


def _fork(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import fork_session  # noqa: PLC0415

    info = _with_session(arguments, lambda store, id: fork_session(store, id, at=arguments.at))
    return _done(arguments, terminal, info.id, f"a copy with {_turns(info)}; the other one stays as it is")


def _rewind(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import rewind_session  # noqa: PLC0415

    to = None if arguments.to == "start" else arguments.to
    info = _with_session(arguments, lambda store, id: rewind_session(store, id, to))
    return _done(arguments, terminal, info.id, f"what is left: {_turns(info)}; what tools did is done")


def _remove(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import remove_session  # noqa: PLC0415

    async def act(store: Store, id: str) -> str:
        await remove_session(store, id)
        return id

    return _done(arguments, terminal, _with_session(arguments, act), "removed, for good")


def _done(arguments: argparse.Namespace, terminal: Terminal, id: str, told: str) -> int:
    terminal.out.line(id)
    if not arguments.quiet:
        terminal.note(told)
    return 0


def _read(name: str) -> bytes:
    try:
        if name == STDOUT:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", path=name, hint="check the name") from None
    if len(data) > LARGEST:
        raise InputError(f"larger than {LARGEST} bytes", path=name, hint="this is no exported session")
    return data


_ACTIONS: Final[dict[str, tuple[str, Act]]] = {
    "list": ("list the sessions, the most recently used first", _list),
    "search": ("find sessions that contain a string", _search),
    "show": ("show the messages of a session", _show),
    "export": ("write a session as one JSON document", _export),
    "import": ("read what 'export' wrote", _import),
    "fork": ("copy a session, up to a turn", _fork),
    "rewind": ("remove everything after a turn", _rewind),
    "remove": ("remove a session permanently", _remove),
}

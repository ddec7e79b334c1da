"""`toolglot sessions`: list, search, show and change the sessions of `chat` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from toolglot.cli.files.documents import read_whole
from toolglot.cli.files.output import open_output
from toolglot.cli.options import Formatter, Parser, add_output, add_quiet
from toolglot.cli.screen.terminal import Terminal, clean, clean_lines, local_time, plural
from toolglot.cli.session.session_options import add_session_store, session_store
from toolglot.cli.store_access import with_store
from toolglot.errors import InputError, ToolglotError
from toolglot.store import Store, is_address

if TYPE_CHECKING:
    from toolglot.conversation import Turn
    from toolglot.runtime.log.info import SessionInfo

T = TypeVar("T")
Act = Callable[[argparse.Namespace, Terminal], int]

NOTHING_FOUND: Final = 1
MAX_IMPORT_BYTES: Final = 256 * 1024 * 1024
MAX_LISTED: Final = 1_000_000

_DESCRIPTION: Final = """\
List, search and show the sessions of 'toolglot chat' and 'toolglot run'; copy, cut, move or remove them. A session
that is in use can be read and copied; to change it, close it first. 'list --agent' lists the sessions of coding agents
on this machine, which 'toolglot handoff' continues in another agent and 'toolglot doctor' heals."""

_EPILOG: Final = """\
examples:
  toolglot sessions list
  toolglot sessions list --agent all
  toolglot sessions search "invoice 4711"
  toolglot sessions show 20261115-1204
  toolglot sessions export 20261115-1204 -o talk.json
  toolglot sessions import talk.json --store postgres://localhost/team
  toolglot sessions fork 20261115-1204 --at KEY
  toolglot sessions rewind 20261115-1204 --to KEY
  toolglot sessions remove 20261115-1204

ID is the id of a session, or its first or last characters. KEY is the key of a turn, as shown by 'show --keys'.

exit codes: 0 success; 1 nothing found; 2 no such session, it is in use, or the store is unavailable
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    actions = parser.add_subparsers(
        title="actions", dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    parsers = {
        name: actions.add_parser(name, help=help_text, formatter_class=Formatter)
        for name, (help_text, _) in _ACTIONS.items()
    }
    for name, each in parsers.items():
        each.description = f"{_ACTIONS[name][0][0].upper()}{_ACTIONS[name][0][1:]}."
        if name not in ("list", "search", "import"):
            each.add_argument("id", metavar="ID", help="the id of the session")
        add_session_store(each)
    for name in ("list", "search"):
        parsers[name].add_argument(
            "--limit", type=int, default=20, metavar="N", help="the maximum number to show (default: 20)"
        )
        parsers[name].add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    listing = parsers["list"]
    listing.add_argument("--agent", metavar="AGENT", help="list the sessions of a coding agent; 'all' for all of them")
    listing.add_argument("--directory", metavar="DIR", help="with --agent: only those of this working directory")
    listing.add_argument("--no-check", action="store_true", help="with --agent: do not check whether they are healthy")
    parsers["search"].add_argument("text", metavar="TEXT", help="the string to look for; case-insensitive")
    parsers["show"].add_argument("--keys", action="store_true", help="show the key of each turn")
    parsers["show"].add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parsers["import"].add_argument("file", metavar="FILE", help="an exported session; '-' is stdin")
    parsers["fork"].add_argument("--at", metavar="KEY", help="the last turn to copy (default: all)")
    parsers["rewind"].add_argument(
        "--to", metavar="KEY", required=True, help="the last turn to keep; 'start' removes all turns"
    )
    add_output(parsers["export"])
    for name in ("import", "fork", "rewind", "remove"):
        add_quiet(parsers[name])


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    return _ACTIONS[arguments.action][1](arguments, terminal)


def _in_store(arguments: argparse.Namespace, act: Callable[[Store], Awaitable[T]], *, makes: bool = False) -> T:
    """Run `act` with the store of sessions. Reading must not create one."""
    from toolglot.cli.session.session_host import as_input_error  # noqa: PLC0415

    location = session_store(arguments.store)
    if not makes and not is_address(location) and not Path(location).expanduser().exists():
        hint = "`toolglot chat` and `toolglot run` create one; --store selects another store"
        raise InputError("no sessions yet", path=location, hint=hint)
    try:
        return with_store(location, act)
    except ToolglotError as error:
        raise as_input_error(error) from None


def _with_session(arguments: argparse.Namespace, act: Callable[[Store, str], Awaitable[T]]) -> T:
    from toolglot.cli.session.session_host import full_id  # noqa: PLC0415

    async def act_on_session(store: Store) -> T:
        return await act(store, await full_id(store, arguments.id))

    return _in_store(arguments, act_on_session)


# --- reading ----------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.agent:
        from toolglot.cli.agents.session_list import list_agent_sessions  # noqa: PLC0415

        return list_agent_sessions(arguments, terminal, _limit(arguments))
    from toolglot.runtime.log.sessions import list_sessions  # noqa: PLC0415

    limit = _limit(arguments)
    location = session_store(arguments.store)
    if arguments.store is None and not is_address(location) and not Path(location).expanduser().exists():
        if arguments.format == "json":
            terminal.write_json([])
        terminal.note("no sessions yet; `toolglot chat` and `toolglot run` create one")
        return 0
    page = _in_store(arguments, lambda store: list_sessions(store, limit=limit))
    if arguments.format == "json":
        terminal.write_json([_session_json(info) for info in page.sessions])
    elif page.sessions:
        rows = [_row(info) for info in page.sessions]
        terminal.out.table(rows, heading=("ID", "LAST USED", "TURNS", "MODEL", "TITLE"))
    if page.next:
        terminal.note("there are more; use --limit N to show them")
    for id in page.damaged:
        terminal.note(f"{id} is corrupt and cannot be listed")
    if not page.sessions:
        terminal.note("no sessions yet")
    return 0


def _search(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.search import search_sessions  # noqa: PLC0415

    found = _in_store(arguments, lambda store: search_sessions(store, arguments.text, limit=_limit(arguments)))
    if arguments.format == "json":
        entries = [
            {**_session_json(hit.session), "snippet": hit.snippet, "turn": hit.turn_key, "role": hit.role}
            for hit in found
        ]
        terminal.write_json(entries)
    elif found:
        rows = [
            (
                hit.session.id,
                local_time(hit.session.updated),
                hit.role or ("-" if hit.problem else "title"),
                clean(hit.snippet),
            )
            for hit in found
        ]
        terminal.out.table(rows, heading=("ID", "LAST USED", "ROLE", "MATCH"))
    for hit in found:
        if hit.problem:
            terminal.note(f"{hit.session.id} could not be searched to its end: {hit.problem}")
    if not found:
        terminal.note("nothing found")
    return 0 if found else NOTHING_FOUND


def _show(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.cli.screen.transcript_text import markdown_of  # noqa: PLC0415
    from toolglot.runtime.log.sessions import read_session  # noqa: PLC0415

    info, state = _with_session(arguments, read_session)
    turns: list[Turn] = state.turns
    if arguments.format == "json":
        entries = [{"key": turn.key, "role": turn.role, "blocks": msgspec.to_builtins(turn.blocks)} for turn in turns]
        terminal.write_json({**_session_json(info), "conversation": entries})
        return 0
    page = terminal.out
    page.line(page.paint(f"# {clean(info.title) or info.id}", "bold"))
    about = (info.id, clean(info.model), plural(info.turns, "turn"), local_time(info.updated))
    page.line(page.paint(" · ".join(part for part in about if part), "dim"))
    page.line()
    for line in clean_lines(markdown_of(turns, keys=arguments.keys)).rstrip("\n").split("\n"):
        page.line(page.paint(line, "bold") if line.startswith("## ") else line)
    return 0


def _limit(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.limit <= MAX_LISTED:
        raise InputError(f"expected a whole number from 1 to {MAX_LISTED}", path="--limit")
    limit: int = arguments.limit
    return limit


def _row(info: SessionInfo) -> tuple[str, ...]:
    return info.id, local_time(info.updated), str(info.turns), clean(info.model), clean(info.title)


def _session_json(info: SessionInfo) -> dict[str, Any]:
    """A session as JSON."""
    times = {
        name: f"{datetime.fromtimestamp(getattr(info, name), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for name in ("created", "updated")
    }
    cost = float(info.cost) if info.cost is not None else None
    about = {name: getattr(info, name) for name in ("id", "title", "model", "turns", "forked_from", "tokens")}
    return {**about, **times, "cost_usd": cost}


# --- changing ---------------------------------------------------------------------------------------


def _export(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.documents import export_session  # noqa: PLC0415

    data = _with_session(arguments, export_session)
    with open_output(arguments.output, terminal, force=arguments.force) as output:
        output.write(data + b"\n")
    return 0


def _import(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.documents import import_session  # noqa: PLC0415

    data = read_whole(arguments.file, MAX_IMPORT_BYTES, hint="this is not an exported session")
    info = _in_store(arguments, lambda store: import_session(store, data), makes=True)
    return _print_done(
        arguments, terminal, info.id, f"{plural(info.turns, 'turn')}; toolglot chat --session {info.id} continues it"
    )


def _fork(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import fork_session  # noqa: PLC0415

    info = _with_session(arguments, lambda store, id: fork_session(store, id, at=arguments.at))
    return _print_done(
        arguments, terminal, info.id, f"a copy with {plural(info.turns, 'turn')}; the original is unchanged"
    )


def _rewind(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import rewind_session  # noqa: PLC0415

    to = None if arguments.to == "start" else arguments.to
    info = _with_session(arguments, lambda store, id: rewind_session(store, id, to))
    return _print_done(
        arguments, terminal, info.id, f"{plural(info.turns, 'turn')} left; effects of tools are not undone"
    )


def _remove(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from toolglot.runtime.log.sessions import remove_session  # noqa: PLC0415

    async def act(store: Store, id: str) -> str:
        await remove_session(store, id)
        return id

    return _print_done(arguments, terminal, _with_session(arguments, act), "removed permanently")


def _print_done(arguments: argparse.Namespace, terminal: Terminal, id: str, summary: str) -> int:
    terminal.out.line(id)
    if not arguments.quiet:
        terminal.note(summary)
    return 0


_ACTIONS: Final[dict[str, tuple[str, Act]]] = {
    "list": ("list the sessions, last used first", _list),
    "search": ("find sessions that contain a string", _search),
    "show": ("show the messages of a session", _show),
    "export": ("write a session as one JSON document", _export),
    "import": ("import an exported session", _import),
    "fork": ("copy a session, up to a turn", _fork),
    "rewind": ("remove everything after a turn", _rewind),
    "remove": ("remove a session permanently", _remove),
}

"""`toolglot handoff`: continue a session of one coding agent in another."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot import agent_files
from toolglot.agent_files import AgentSession, WrittenSession
from toolglot.agent_files.base import get, names, writers
from toolglot.cli.agents.chosen_session import LATEST, choose, is_session
from toolglot.cli.agents.own_sessions import OWN, agent_title, read_file, read_own, write_own
from toolglot.cli.options import add_all, add_quiet
from toolglot.cli.screen.terminal import Terminal, clean, plural
from toolglot.conversation.report import Entry, order_by_gravity, summarise
from toolglot.errors import InputError, UnknownNameError, unknown_name

MAX_LISTED: Final = 20

_DESCRIPTION: Final = """\
Continue a session of one coding agent in another. A new session is written for the other agent, with the tool calls
and results as real calls and results, and the command that continues it is printed. The source is not changed, and
nothing is overwritten.

What the other agent cannot have is listed: its own system prompt and notes, thinking and signatures that only the
issuer can read, subagents. Tools keep the names that they were called by."""

_EPILOG: Final = """\
SESSION is a path, an id or its first characters, or 'latest' (the default): the last one of this folder, or of all
folders if it has none. It may also be a file that 'toolglot sessions export' wrote, or a request of any protocol; with
'--from toolglot' it is a session of 'toolglot chat' or 'run'. 'toolglot convert' makes a request of a session.

examples:
  toolglot handoff --from claude --to codex
  toolglot handoff --from codex --to gemini 019a3c --dry-run
  toolglot handoff --to claude ~/.gemini/tmp/proj/chats/session-2026-11-15T10-00-33333333.jsonl

exit codes: 0 written; 2 no such session, or it cannot be read or written
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    known, targets = ", ".join(_spelled(names())), ", ".join(_spelled(writers()))
    parser.add_argument("session", nargs="?", default=LATEST, metavar="SESSION", help="the session (default: latest)")
    parser.add_argument("--from", dest="source", default="", metavar="AGENT", help=f"whose session it is: {known}")
    parser.add_argument("--to", dest="target", required=True, metavar="AGENT", help=f"who continues it: {targets}")
    parser.add_argument(
        "--directory", metavar="DIR", help="the working directory of the new session (default: that of the session)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the report, and write nothing")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_all(parser)
    add_quiet(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    target = _named(arguments.target, "--to", writers())
    session = _source(arguments)
    if target == OWN:
        written = write_own(session, dry_run=arguments.dry_run)
    else:
        directory = arguments.directory or session.directory or str(Path.cwd())
        written = agent_files.write(
            session.conversation,
            target,
            directory=str(Path(directory).expanduser().resolve()),
            title=session.title,
            branch=session.branch,
            source=session.agent if session.agent in names() else "",
            dry_run=arguments.dry_run,
        )
    written = replace(written, report=(*session.report, *_left_out(session), *written.report))
    if arguments.format == "json":
        terminal.write_json(_as_json(session, written, is_dry=arguments.dry_run))
    else:
        _show(session, written, arguments, terminal)
    return 0


def _spelled(agents: Iterable[str]) -> list[str]:
    """The names as the options take them."""
    return [OWN, *(get(name).aliases[0] for name in agents)]


def _named(name: str, option: str, agents: tuple[str, ...]) -> str:
    """The agent that an option names: one of these, or toolglot."""
    if name == OWN:
        return OWN
    try:
        record = get(name)
    except UnknownNameError:
        raise unknown_name("agent", name, _spelled(agents), path=option) from None
    if record.name not in agents:
        hint = f"known: {', '.join(sorted(_spelled(agents)))}"
        raise InputError(f"sessions of {record.title} are only read", path=option, hint=hint)
    return record.name


def _source(arguments: argparse.Namespace) -> AgentSession:
    """The session to hand over."""
    if arguments.source == OWN:
        return read_own(arguments.session)
    source = _named(arguments.source, "--from", names()) if arguments.source else ""
    if not source and arguments.session == LATEST:
        raise InputError("no agent is named", path="--from", hint="--from claude, or the path of a session")
    path = Path(arguments.session).expanduser()
    if not source and path.is_file() and not is_session(path):
        return read_file(path)
    chosen = choose(arguments.session, source)
    return chosen.format.read(chosen.path)


def _left_out(session: AgentSession) -> list[Entry]:
    """What of the session is not in its conversation."""
    entries: list[Entry] = []

    def add(reason: str, gravity: Any) -> None:
        entries.append(Entry(action="dropped", reason=reason, fault="policy", gravity=gravity))

    title = agent_title(session.agent)
    if session.own_prompts:
        add(f"{plural(len(session.own_prompts), 'note')} that {title} made for itself were left out", "change")
    if session.subagents:
        add(f"{plural(len(session.subagents), 'subagent')} with a session of its own were left out", "loss")
    return entries


def _as_json(session: AgentSession, written: WrittenSession, *, is_dry: bool) -> dict[str, Any]:
    return {
        "source": {"agent": session.agent, "id": session.id, "path": session.path},
        "target": {"agent": written.agent, "id": written.id, "path": str(written.path)},
        "written": not is_dry,
        "directory": written.directory,
        "preparation": list(written.preparation),
        "command": list(written.command),
        "calls": written.calls,
        "results": written.results,
        "report": [msgspec.to_builtins(entry) for entry in written.report],
    }


def _show(session: AgentSession, written: WrittenSession, arguments: argparse.Namespace, terminal: Terminal) -> None:
    page = terminal.err
    if not arguments.quiet:
        turns = plural(len(session.conversation.turns), "turn")
        calls = f"{plural(written.calls, 'call')} and {plural(written.results, 'result')}"
        names_ = f"{agent_title(session.agent)} to {agent_title(written.agent)}"
        page.line(page.paint(f"{names_}: {turns}, {calls}", "bold"))
        entries = [
            entry for entry in order_by_gravity(written.report) if arguments.all or entry.gravity != "housekeeping"
        ]
        for entry in entries[:MAX_LISTED]:
            page.paragraph(clean(f"{entry.gravity}: {entry}"), indent="    ", first="  ")
        if len(entries) > MAX_LISTED:
            page.line(f"  … and {len(entries) - MAX_LISTED} more; --format json lists all of them")
        page.line(f"  {summarise(written.report) or 'nothing was changed'}")
        page.line(f"  {'would be written' if arguments.dry_run else 'written'}: {clean(str(written.path))}")
        if written.directory and not Path(written.directory).is_dir():
            page.line(f"  the folder {clean(written.directory)} does not exist here; --directory DIR names another one")
    if arguments.dry_run:
        return
    commands = [shlex.join(command) for command in (written.preparation, written.command) if command]
    is_elsewhere = written.directory and written.directory != str(Path.cwd())
    place = f"cd {shlex.quote(written.directory)} && " if is_elsewhere else ""
    terminal.out.line(place + " && ".join(commands))

"""`toolglot sessions list --agent`: the sessions of coding agents on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot import agent_files
from toolglot.agent_files import SessionRow
from toolglot.agent_files.base import AgentFormat, AgentHome, formats, get, home_of_user
from toolglot.agent_files.healing import examine_file
from toolglot.cli.screen.terminal import Terminal, clean, local_time, plural
from toolglot.errors import InputError

_HEADING: Final = ("AGENT", "ID", "LAST USED", "PROMPTS", "SIZE", "STATE", "MODEL", "FOLDER", "TITLE")
_UNITS: Final = ("B", "kB", "MB", "GB")
ID_CHARACTERS: Final = 13


def list_agent_sessions(arguments: argparse.Namespace, terminal: Terminal, limit: int) -> int:
    """Write the sessions of the agents, the last used first."""
    home = home_of_user()
    chosen = formats() if arguments.agent == "all" else (get(arguments.agent, path="--agent"),)
    total = sum(_size_of_all(record, home) for record in chosen)
    with terminal.progress(total, "sessions", quiet=False) as advance:
        rows = _rows(arguments, home, lambda path: advance(_size(path)))
    rows.sort(key=lambda row: row.updated, reverse=True)
    shown = rows[:limit]
    if not arguments.no_check:
        with terminal.progress(sum(row.size for row in shown), "checks", quiet=False) as advance:
            shown = [_checked(row, advance) for row in shown]
    if arguments.format == "json":
        terminal.write_json([_row_json(row) for row in shown])
    elif shown:
        terminal.out.table([_row(row) for row in shown], heading=_HEADING)
    if not rows:
        terminal.note("no sessions found")
    elif len(rows) > limit:
        terminal.note(f"{plural(len(rows), 'session')} in all; --limit N shows more")
    broken = [row for row in shown if row.faults]
    if broken and arguments.format != "json":
        terminal.note(f"`toolglot doctor {broken[0].id[:ID_CHARACTERS]}` says what is wrong, and --fix heals it")
    return 0


def _rows(arguments: argparse.Namespace, home: AgentHome, on_file: Any) -> list[SessionRow]:
    folder = str(Path(arguments.directory).expanduser().resolve()) if arguments.directory else ""
    return [
        row
        for row in agent_files.find(arguments.agent, home=home, on_file=on_file)
        if not folder or row.directory == folder
    ]


def _size_of_all(record: AgentFormat, home: AgentHome) -> int:
    try:
        return sum(_size(path) for path in record.find(home))
    except InputError:  # it is a row of the list
        return 0


def _checked(row: SessionRow, advance: Callable[[int], object]) -> SessionRow:
    advance(row.size)
    if row.faults is not None:
        return row
    try:
        found = examine_file(get(row.agent), Path(row.path))
    except InputError:
        return replace(row, faults=1)
    return replace(row, faults=sum(not fault.only_if_asked for fault in found))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _row(row: SessionRow) -> tuple[str, ...]:
    state = "" if row.faults is None else "healthy" if not row.faults else plural(row.faults, "fault")
    return (
        get(row.agent).aliases[0],
        clean(row.id[:ID_CHARACTERS]),
        local_time(row.updated),
        str(row.turns),
        _size_text(row.size),
        state,
        clean(row.model[:24]) or "-",  # a session that was handed over has none until the agent goes on
        clean(row.directory[-32:]),
        clean(row.title),
    )


def _size_text(size: int) -> str:
    amount, unit = float(size), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}"


def _row_json(row: SessionRow) -> dict[str, Any]:
    updated = f"{datetime.fromtimestamp(row.updated, UTC):%Y-%m-%dT%H:%M:%SZ}"
    healthy = None if row.faults is None else not row.faults
    return {**msgspec.to_builtins(row), "updated": updated, "healthy": healthy}

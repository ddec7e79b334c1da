"""`toolglot doctor SESSION`: what is wrong in the session file of a coding agent, and its repair.

Law: the file is changed only with --fix or --rewind, never while the agent has it open unless forced, and in one step:
whenever the process ends, the file is the old one or the new one.
"""

from __future__ import annotations

import argparse
import shlex
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolglot import agent_files
from toolglot.agent_files.base import get, home_of_user
from toolglot.agent_files.healing import HealedFile, heal, replace_file, write_new
from toolglot.agent_files.in_use import reason_in_use
from toolglot.agent_files.json_lines import pack, parse_line
from toolglot.cli.agents.chosen_session import ChosenSession, choose
from toolglot.cli.screen.line_diff import line_diff, show_line_diff
from toolglot.cli.screen.terminal import Terminal, clean, plural
from toolglot.cli.session.session_options import state_folder
from toolglot.errors import InputError


def check_sessions(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Check the named session, or all; heal them if asked to."""
    if arguments.rewind and (arguments.all or arguments.rewind < 0):
        raise InputError("expected one session and a number from 1", path="--rewind", hint="doctor SESSION --rewind 1")
    if arguments.all:
        if arguments.session:
            raise InputError("a session and --all", path="--all", hint="remove one of them")
        rows = agent_files.find(arguments.agent or "all", home=home_of_user())
        chosen = [ChosenSession(get(row.agent), Path(row.path)) for row in rows]
    else:
        chosen = [choose(arguments.session, arguments.agent)]
    outcomes = [_check(each, arguments, terminal) for each in chosen]
    if arguments.format == "json":
        terminal.write_json([outcome for outcome, _ in outcomes])
    elif arguments.all:
        ill = sum(is_ill for _, is_ill in outcomes)
        page = terminal.out
        text = f"{plural(len(outcomes), 'session')} checked, {ill} with faults" if outcomes else "no sessions found"
        page.line(page.paint(text, "bold", "red" if ill else "green"))
    return int(any(is_ill for _, is_ill in outcomes))


def _check(chosen: ChosenSession, arguments: argparse.Namespace, terminal: Terminal) -> tuple[dict[str, Any], bool]:
    """The outcome as JSON, and whether the file still has faults that can be fixed."""
    is_json = arguments.format == "json"
    about = {"agent": chosen.format.name, "path": str(chosen.path)}
    try:
        healed = heal(chosen.format, chosen.path, includes_holes=arguments.close_holes, rewind=arguments.rewind or 0)
    except InputError as error:
        if not arguments.all:
            raise
        if not is_json:
            terminal.error(error)
        return {**about, "error": error.message}, True
    is_fixing = arguments.fix or bool(arguments.rewind)
    if not is_json and (healed.faults or not arguments.all):
        _show(chosen, healed, arguments, terminal)
    fixed = _fix(chosen, healed, arguments) if is_fixing and healed.is_changed else None
    if fixed is not None and not is_json:
        page = terminal.out
        page.line(page.paint("healed", "bold", "green") + f"; {clean(fixed.message)}")
    outcome: dict[str, Any] = {
        **about,
        "faults": [msgspec.to_builtins(fault) for fault in healed.faults],
        "left": [msgspec.to_builtins(fault) for fault in healed.left],
        "backup": str(fixed.backup) if fixed is not None and fixed.backup is not None else None,
        "copy": fixed.copy if fixed is not None else None,
    }
    if is_json and is_fixing:
        outcome["diff"] = list(line_diff(healed.before, healed.after))
    remaining = healed.left if fixed is not None else healed.faults
    return outcome, any(not fault.only_if_asked for fault in remaining)


class _Fixed(NamedTuple):
    """What became of a session: the old file is kept, or a healed copy is to be imported."""

    message: str
    backup: Path | None = None
    copy: dict[str, Any] | None = None


def _show(chosen: ChosenSession, healed: HealedFile, arguments: argparse.Namespace, terminal: Terminal) -> None:
    page = terminal.out
    page.line(page.paint(clean(str(chosen.path)), "bold") + f"  ({chosen.format.title})")
    for fault in healed.faults:
        page.paragraph(clean(str(fault)), indent="    ", first="  ")
        if fault.fix:
            asked = " (only with --close-holes)" if fault.only_if_asked and not arguments.close_holes else ""
            page.paragraph(clean(f"→ {fault.fix}{asked}"), indent="      ", first="    ")
    if not healed.faults:
        page.line(page.paint("  nothing is wrong", "green"))
    if (arguments.fix or arguments.rewind) and healed.is_changed:
        show_line_diff(healed.before, healed.after, page)
    elif healed.is_changed:
        page.line(page.paint("  --fix heals it, and keeps the old file", "dim"))


def _fix(chosen: ChosenSession, healed: HealedFile, arguments: argparse.Namespace) -> _Fixed:
    now = time.time()
    if chosen.format.copy is not None:
        lines = [parse_line(number, data) for number, data in enumerate(healed.after, 1)]
        written = chosen.format.copy(lines, home_of_user(), now)
        write_new(written.path, written.data)
        place = f"cd {shlex.quote(written.directory)} && " if written.directory else ""
        command = " && ".join(shlex.join(each) for each in (written.preparation, written.command) if each)
        about = {"id": written.id, "path": str(written.path), "preparation": written.preparation}
        return _Fixed(
            f"the session itself is not changed, its healed copy is continued by\n  {place}{command}",
            copy={**about, "command": written.command, "directory": written.directory},
        )
    reason = "" if arguments.force else reason_in_use(chosen.format, chosen.path, now)
    if reason:
        hint = f"end {chosen.format.title} first; --force changes the file all the same"
        raise InputError(f"the session may be open: {reason}", path=str(chosen.path), hint=hint)
    backups = state_folder() / "backups" / chosen.format.name
    stamp = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    backup = replace_file(chosen.path, pack(chosen.path, b"".join(healed.after)), backups, stamp)
    return _Fixed(f"the old file is {backup}", backup=backup)

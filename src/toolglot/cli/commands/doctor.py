"""`toolglot doctor`: check a gateway's setup, or the session of a coding agent, and say how to fix it."""

from __future__ import annotations

import argparse
import asyncio
import os
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean, plural
from toolglot.errors import InputError

MISSING_EXTRA: InputError | None = None
"""The error if an extra that the gateway needs is not installed."""
try:
    from toolglot.gateway.config.agent_limits import check_models
    from toolglot.gateway.config.installed_clients import check_clients
    from toolglot.gateway.config.settings import Config, read_config
    from toolglot.gateway.observability.checkup import (
        CheckResult,
        check_config_error,
        check_keys,
        check_packages,
        check_port,
        check_search,
        check_settings,
        check_store,
        check_upstreams,
        root_of,
    )
except InputError as missing:
    MISSING_EXTRA = missing

_DESCRIPTION: Final = """\
Check everything that a gateway needs: its configuration, the keys in the environment, the store, the port, every
upstream (by listing its models, which costs nothing), the clock, the installed packages, and the coding agents on
this machine. Say for each whether it works, and how to fix it if not. For the models of the configuration, print their
context windows and what to set in each coding agent, so that it compacts conversations in time.

It changes nothing, and shows no key.

With SESSION (a path, an id or its first characters, or 'latest') or --all, check session files of coding agents
instead: broken lines and chains, calls without results, results without calls, ids and thinking that providers refuse.
--fix heals the file: it changes only what is wrong, shows the changes, and keeps the old file among toolglot's own."""

_EPILOG: Final = """\
examples:
  toolglot doctor
  toolglot doctor --config toolglot.toml
  toolglot doctor --no-network --format json
  toolglot doctor latest --agent claude
  toolglot doctor 019a3c --fix
  toolglot doctor --all

exit codes: 0 nothing failed, though there may be warnings, or no session has faults (any more); 1 something did, or one
has; 2 no such session, or it is in use
"""

_COLORS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_INDENT: Final = " " * 8
_DEFAULT_ROOT: Final = "http://127.0.0.1:8400"
_AGENTS: Final = "the coding agents"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("--config", metavar="FILE", help="default: $TOOLGLOT_CONFIG, else ./toolglot.toml, else none")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--no-network", action="store_true", help="do not call any upstream")
    sessions = parser.add_argument_group("sessions of coding agents")
    sessions.add_argument("session", nargs="?", default="", metavar="SESSION", help="the session to check")
    sessions.add_argument("--all", action="store_true", help="check all sessions of coding agents")
    sessions.add_argument("--agent", default="", metavar="AGENT", help="whose session it is (default: any agent's)")
    sessions.add_argument("--fix", action="store_true", help="heal the file")
    sessions.add_argument("--close-holes", action="store_true", help="also fix what may be on purpose: a rewind")
    sessions.add_argument("--rewind", type=int, metavar="N", help="remove the last N prompts and what follows them")
    sessions.add_argument("--force", action="store_true", help="change the file although the agent may have it open")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.session or arguments.all or arguments.agent:
        from toolglot.cli.agents.session_doctor import check_sessions  # noqa: PLC0415

        return check_sessions(arguments, terminal)
    for option in ("fix", "close_holes", "rewind", "force"):
        if getattr(arguments, option):
            name = f"--{option.replace('_', '-')}"
            raise InputError("no session is named", path=name, hint=f"toolglot doctor SESSION {name}")
    is_json = arguments.format == "json"
    findings: Sequence[CheckResult | Missing]
    if MISSING_EXTRA is not None:
        findings = [Missing("packages", "fail", MISSING_EXTRA.message, MISSING_EXTRA.hint)]
    else:
        findings = asyncio.run(_run_checks(arguments, terminal if not is_json else None))
    failed = sum(finding.state == "fail" for finding in findings)
    if is_json:
        body = {"ok": not failed, "checks": [_finding_json(finding) for finding in findings]}
        terminal.write_json(body)
    else:
        _show(findings, terminal.out)
    return 1 if failed else 0


class Missing(NamedTuple):
    """A finding for when the gateway's own checks cannot be imported."""

    part: str
    state: str
    message: str
    todo: str
    details: tuple[str, ...] = ()


class _Progress:
    """Shows on a terminal which checks are still running."""

    def __init__(self, page: TerminalPage | None) -> None:
        self._page = page if page is not None and page.is_terminal else None
        self._waiting: list[str] = []

    def begin(self, *names: str) -> None:
        self._waiting += names
        self._show()

    def end(self, name: str) -> None:
        self._waiting.remove(name)
        self._show()

    def _show(self) -> None:
        if self._page is not None:
            text = clean(f"waiting for {', '.join(self._waiting)} …" if self._waiting else "")
            self._page.stream.write(f"\r\x1b[K{text[: self._page.width - 1]}")
            self._page.stream.flush()


async def _run_checks(arguments: argparse.Namespace, terminal: Terminal | None) -> list[CheckResult]:
    environ = os.environ
    progress = _Progress(terminal.err if terminal is not None else None)
    try:
        config = read_config(arguments.config, environ)
        findings = check_settings(config)
    except InputError as error:
        return [*check_config_error(error), *check_packages(), *await _clients(None, progress)]
    findings += check_keys(config)
    findings += await check_store(config)
    if not arguments.no_network:
        findings += await check_search(config)
    findings.append(await check_port(config))
    upstreams, clients = await asyncio.gather(_upstreams(config, arguments, progress), _clients(config, progress))
    return [*findings, *upstreams, *check_packages(), *clients, *check_models(config)]


async def _upstreams(config: Config, arguments: argparse.Namespace, progress: _Progress) -> list[CheckResult]:
    if config.upstreams and arguments.no_network:
        return [CheckResult("upstreams", "ok", "not checked (--no-network)")]
    progress.begin(*config.upstreams)
    return await check_upstreams(config, progress.end)


async def _clients(config: Config | None, progress: _Progress) -> list[CheckResult]:
    root, has_keys = (
        (root_of(config), bool(config.gateway.client_keys)) if config is not None else (_DEFAULT_ROOT, False)
    )
    progress.begin(_AGENTS)
    found = await check_clients(root, os.environ, has_keys=has_keys)
    progress.end(_AGENTS)
    return found


def _finding_json(finding: CheckResult | Missing) -> dict[str, Any]:
    fields: dict[str, Any] = {"part": finding.part, "state": finding.state, "said": clean(finding.message)}
    if finding.todo:
        fields["todo"] = clean(finding.todo)
    if finding.details:
        fields["details"] = [clean(line) for line in finding.details]
    return fields


def _show(findings: Sequence[CheckResult | Missing], page: TerminalPage) -> None:
    """Print the findings by part, and the totals."""
    for part, found in groupby(findings, key=lambda finding: finding.part):
        page.line(page.paint(part, "bold"))
        for finding in found:
            width = page.width - len(_INDENT)
            first, *more = textwrap.wrap(clean(finding.message), width, break_on_hyphens=False) or [""]
            page.line(f"  {page.paint(f'{finding.state:<4}', _COLORS[finding.state])}  {first}")
            for line in (*more, *map(clean, finding.details)):
                page.line(_INDENT + line)
            if finding.todo:
                page.hint(finding.todo, indent=f"{_INDENT}  ", first=f"{_INDENT}→ ")
    counts = {state: sum(finding.state == state for finding in findings) for state in _COLORS}
    page.line("")
    warned = plural(counts["warn"], "warning")
    failed = f"{counts['fail']} failed" if counts["fail"] else "nothing failed"
    page.line(page.paint(f"{failed}, {warned}, {counts['ok']} ok", "bold", "red" if counts["fail"] else "green"))

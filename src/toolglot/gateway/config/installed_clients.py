"""The coding agents on this machine: which are installed, which address they use, and how to point them here.

Laws: none of their files is changed, and only the base address in them is read. A program that is run for its version
has a time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.observability.checkup import CheckResult

VERSION_SECONDS: Final = 10.0
MAX_SETTINGS: Final = 256 * 1024
_VERSION: Final = re.compile(rb"\d+\.\d+[\w.+-]{0,30}")
_PART: Final = "clients"

Environ = Mapping[str, str]


class Client(Struct, frozen=True):
    """A coding agent."""

    program: str
    title: str
    points_at: Callable[[Environ], str]
    """The base address that it would use; empty: its provider's own."""
    line: str
    """The command or setting that points it here."""


def _home(environ: Environ) -> Path:
    return Path(environ.get("HOME") or "/nonexistent")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SETTINGS).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _json(path: Path) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(_text(path))
        return found if isinstance(found, dict) else {}
    return {}


def _table(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _claude(environ: Environ) -> str:
    settings = _json(_home(environ) / ".claude" / "settings.json")
    return str(environ.get("ANTHROPIC_BASE_URL") or _table(settings, "env").get("ANTHROPIC_BASE_URL") or "")


def _codex(environ: Environ) -> str:
    folder = Path(environ.get("CODEX_HOME") or _home(environ) / ".codex")
    try:
        config = tomllib.loads(_text(folder / "config.toml"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    named = str(config.get("model_provider") or "openai")
    own = _table(config, "model_providers", named).get("base_url")
    return str(own or (environ.get("OPENAI_BASE_URL") if named == "openai" else "") or "")


def _gemini(environ: Environ) -> str:
    if environ.get("GOOGLE_GEMINI_BASE_URL"):
        return environ["GOOGLE_GEMINI_BASE_URL"]
    lines = _text(_home(environ) / ".gemini" / ".env").splitlines()
    found = [line.partition("=")[2] for line in lines if line.strip().startswith("GOOGLE_GEMINI_BASE_URL=")]
    return found[-1].strip().strip("\"'") if found else ""


def _opencode(environ: Environ) -> str:
    folder = Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config") / "opencode"
    for name in ("opencode.json", "opencode.jsonc"):
        for provider in _table(_json(folder / name), "provider").values():
            if address := _table(provider, "options").get("baseURL"):
                return str(address)
    return ""


CLIENTS: Final = (
    Client("claude", "Claude Code", _claude, "ANTHROPIC_BASE_URL={root} ANTHROPIC_API_KEY={key} claude"),
    Client(
        "codex",
        "Codex",
        _codex,
        'in ~/.codex/config.toml: model_provider = "toolglot" and [model_providers.toolglot] with name = "toolglot", '
        'base_url = "{root}/v1", wire_api = "responses", env_key = "TOOLGLOT_KEY"; then TOOLGLOT_KEY={key} codex',
    ),
    Client("gemini", "Gemini CLI", _gemini, "GOOGLE_GEMINI_BASE_URL={root} GEMINI_API_KEY={key} gemini"),
    Client(
        "opencode",
        "opencode",
        _opencode,
        'in ~/.config/opencode/opencode.json: {{"provider": {{"openai": {{"options": {{"baseURL": "{root}/v1", '
        '"apiKey": "{key}"}}}}}}}}',
    ),
)


async def check_clients(root: str, environ: Environ, *, has_keys: bool) -> list[CheckResult]:
    """A result for each installed agent, and one for the others."""
    found = {client.title: shutil.which(client.program, path=environ.get("PATH")) for client in CLIENTS}
    checks = (_check_client(client, found[client.title] or "", root, environ, has_keys) for client in CLIENTS)
    results = [result for result in await asyncio.gather(*checks) if result is not None]
    if missing := [title for title, path in found.items() if not path]:
        results.append(CheckResult(_PART, "ok", f"not installed: {', '.join(missing)}"))
    return results


async def _check_client(client: Client, path: str, root: str, environ: Environ, has_keys: bool) -> CheckResult | None:
    if not path:
        return None
    number = await version_of(path, environ)
    address = client.points_at(environ)
    named = f"{client.title} {number}".rstrip()
    if is_same(address, root):
        return CheckResult(_PART, "ok", f"{named} is pointed here")
    line = client.line.format(root=root, key="YOUR_CLIENT_KEY" if has_keys else "any")
    where = f"is pointed at {urlsplit(address).netloc.rpartition('@')[2][:80]}" if address else "uses its own provider"
    return CheckResult(_PART, "warn", f"{named} {where}", f"to use this gateway: {line}")


def is_same(address: str, root: str) -> bool:
    """Whether an address leads to this gateway; all names of this machine are the same."""
    try:
        one, two = urlsplit(address), urlsplit(root)
        ports = (one.port or 80, two.port or 80)
    except ValueError:
        return False
    hosts = (one.hostname or "", two.hostname or "")
    is_here = hosts[0] == hosts[1] or all(map(is_loopback, hosts))
    return bool(one.hostname) and one.scheme == two.scheme and is_here and ports[0] == ports[1]


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a program, unless it has ended."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if os.name == "posix":
            # `process.kill()` first polls, and so takes the exit status from asyncio, which waits for it and warns.
            os.kill(process.pid, signal.SIGKILL)
        else:
            process.kill()


async def version_of(path: str, environ: Environ) -> str:
    """The version that a program prints; empty: it prints none."""
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            "--version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(VERSION_SECONDS):
            output = await process.stdout.read(4096) if process.stdout is not None else b""
    except TimeoutError:
        output = b""
    _end(process)
    await process.wait()
    found = _VERSION.search(output)
    return found[0].decode() if found else ""

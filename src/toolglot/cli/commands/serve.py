"""`toolglot serve`: start the gateway."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import time
from importlib.util import find_spec
from typing import Final, NamedTuple

import msgspec

from toolglot.cli.options import add_quiet
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.errors import InputError, how_to_install
from toolglot.gateway.accounting.client_keys import ClientKey, saved_keys
from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.settings import MEMORY, OFF, Config, read_config
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.http.workers import MAX_WORKERS, Supervisor, WorkerSettings, read_worker_settings
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator.serving import listen
from toolglot.store import StoreError, display_location, is_address, open_store

CHECK_SECONDS: Final = 5.0
"""How long a start looks whether the store can be used."""

_WRONG_LOGIN: Final = ("password", "wrongpass", "authentication")
"""What servers say of a wrong password or user: that does not become right by itself."""

MISSING_EXTRA: InputError | None = None
"""The error if an extra that the gateway needs is not installed. `--help` works without it."""
try:
    from toolglot.gateway.app import Gateway
    from toolglot.gateway.http.serving import run as run_gateway
except InputError as missing:
    MISSING_EXTRA = missing

_DESCRIPTION: Final = """\
Start the gateway. Clients of Anthropic, OpenAI (Chat Completions and Responses), Gemini and Ollama can then talk to
any provider, with tools. Set a client's base URL to the gateway's address; nothing else changes.

Providers come from toolglot.toml (see 'toolglot init'). Without a file, the gateway uses the providers whose keys are
in the environment. With neither, built-in simulated models answer, offline, and say so; otherwise only names that
begin with simulated/ are simulated, and an unknown name is an error. The gateway listens on this machine only; any
other address requires client keys."""

_EPILOG: Final = """\
examples:
  toolglot serve
  toolglot serve --port 9000 --log json
  toolglot serve --config toolglot.toml --workers 4
  ANTHROPIC_BASE_URL=http://127.0.0.1:8400 ANTHROPIC_API_KEY=any claude
  ANTHROPIC_BASE_URL=http://127.0.0.1:8400 ANTHROPIC_API_KEY=any claude --model openai/gpt-5.5

Each request is logged as a line on stderr: the client, the upstream, the changes. 'GET /toolglot/requests' lists recent
requests, 'GET /toolglot/requests/ID' shows one in full; the response header x-toolglot-request is its ID.

SIGTERM and Ctrl-C stop it gracefully: open responses get drain_seconds (30) to finish. A second signal does not wait.

exit codes: 0 stopped, as with Ctrl-C; 1 a worker could not be stopped gracefully; 2 the configuration is invalid, or
the port is in use
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("--config", metavar="FILE", help="default: $TOOLGLOT_CONFIG, else ./toolglot.toml, else none")
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=int, help="the port (default: 8400); 0 picks a free one")
    parser.add_argument(
        "--store",
        metavar="FILE|URL",
        help="where to store signed thinking and responses: a file, postgres://… or redis://…, ':memory:' or 'off'",
    )
    parser.add_argument("--log", choices=("text", "json", "off"), help="the format of the request log (default: text)")
    parser.add_argument(
        "--no-simulate", action="store_true", help="no simulated models, neither without a configuration nor by name"
    )
    parser.add_argument(
        "--workers",
        type=_workers,
        default=1,
        metavar="N",
        help="processes that share the port and the store (default: 1)",
    )
    add_quiet(parser)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:6]) <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MAX_WORKERS}, got {text[:40]!r}")
    return int(text)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if MISSING_EXTRA is not None:
        raise MISSING_EXTRA
    config = _config(arguments)
    worker = read_worker_settings(os.environ)
    if worker is not None:
        return _run_worker(arguments, config, worker)
    if arguments.workers > 1:
        _check_store_is_shared(config)
    store = _look_at_store(config.gateway.store)  # fail first if a file cannot be opened
    for warning in store.warnings:
        terminal.note(warning)
    if store.problem:
        terminal.note(f"the store cannot be used: {store.problem}; starting without it")
    _check_server()  # before printing an address that would never respond
    gateway = Gateway(config, reread=lambda: _config(arguments)) if arguments.workers == 1 else None
    with listen(config.gateway.port, config.gateway.host) as sock:
        root = f"http://{_url_host(config.gateway.host)}:{sock.getsockname()[1]}"
        if not arguments.quiet and config.gateway.log != "json":
            _print_banner(root, config, store, terminal)
        terminal.out.line(root)
        terminal.out.stream.flush()
        if gateway is None:
            return _supervise(arguments, config, sock)
        run_gateway(gateway, sock)
    return 0


def _check_server() -> None:
    if find_spec("uvicorn") is None:
        hint = how_to_install("gateway")
        raise InputError("serving needs uvicorn, which is not installed", path="", hint=hint)


class StoreState(NamedTuple):
    """What a look at the store has found."""

    warnings: tuple[str, ...] = ()
    keys: tuple[ClientKey, ...] = ()
    problem: str = ""
    """Why its server cannot be used now; empty: it can."""


def _look_at_store(location: str) -> StoreState:
    """Use the store once. A file must work; the gateway starts also while a server is down."""
    if location in (MEMORY, OFF):
        return StoreState()

    async def look() -> StoreState:
        store = open_store(location)
        try:
            async with asyncio.timeout(CHECK_SECONDS if is_address(location) else None):
                keys = await saved_keys(store)
            return StoreState(store.warnings, tuple(keys))
        except (StoreError, TimeoutError) as error:
            if not is_address(location) or any(word in str(error).lower() for word in _WRONG_LOGIN):
                raise InputError(str(error), path="store") from None
            silent = f"{display_location(location)}: no response within {CHECK_SECONDS:g} s"
            return StoreState(problem=str(error) or silent)
        finally:
            with contextlib.suppress(StoreError):
                await store.close()

    return asyncio.run(look())


def _run_worker(arguments: argparse.Namespace, config: Config, worker: WorkerSettings) -> int:
    """Run as one of several workers."""
    gateway = Gateway(config, reread=lambda: _config(arguments))
    gateway.request_log.worker = worker.number
    gateway.worker_links = WorkerLinks(worker.folder, worker.number) if worker.folder else None
    worker.end_with_supervisor()
    with worker.socket() as sock:
        run_gateway(gateway, sock)
    return 0


def _supervise(arguments: argparse.Namespace, config: Config, sock: socket.socket) -> int:
    """Run several workers."""
    words = ["serve"]
    for name in ("config", "host", "port", "store", "log"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name}={value}"]
    words += ["--no-simulate"] if arguments.no_simulate else []
    request_log = RequestLog(max_remembered=0, form=config.gateway.log)
    settings = config.gateway
    return Supervisor(
        words,
        arguments.workers,
        sock,
        drain_seconds=settings.drain_seconds,
        lame_duck_seconds=settings.lame_duck_seconds,
        notice=lambda text: request_log.notice(text, event="worker"),
    ).run()


def _check_store_is_shared(config: Config) -> None:
    """Several workers need a store that all of them can read."""
    if config.gateway.store in (MEMORY, OFF):
        raise InputError(
            f"several workers need a shared store, and the store is {config.gateway.store!r}",
            path="--workers",
            hint="set store in [gateway] to a file or a database, or use one worker",
        )


def _config(arguments: argparse.Namespace) -> Config:
    config = read_config(arguments.config, os.environ)
    if arguments.host is not None or arguments.port is not None:
        config = config.listening_at(arguments.host, arguments.port)
    if arguments.no_simulate:
        config = config.without_simulated()
    changed = {name: getattr(arguments, name) for name in ("store", "log") if getattr(arguments, name) is not None}
    return msgspec.structs.replace(config, gateway=msgspec.structs.replace(config.gateway, **changed))


def _url_host(host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - the address to reach it from this machine
    return f"[{shown}]" if ":" in shown and not shown.startswith("[") else shown


def _client_key_status(config: Config, store: StoreState) -> str:
    """The number of client keys in the configuration and the store; empty if no key is required."""
    if store.problem:
        return "not known yet: those of the store cannot be read"
    stored, now = store.keys, time.time()
    count = sum(key != STORED_KEYS for key in config.gateway.client_keys)
    count += sum(key.state(now) == "active" for key in stored)
    if not stored and not config.gateway.client_keys:
        return ""
    return str(count) if count else "required, but there is none yet: toolglot keys add NAME"


def _describe_simulated(config: Config) -> str:
    """Which models are simulated."""
    if config.simulates_known:
        return "all known models, because nothing is configured: no real model answers"
    return "only names that begin with simulated/" if config.allows_simulated else "none"


def _print_banner(root: str, config: Config, store: StoreState, terminal: Terminal) -> None:
    """Print the address, the upstreams, and how to point clients at the gateway."""
    page = terminal.err
    page.line(page.paint(f"toolglot gateway on {root}", "bold"))
    page.line(
        f"  configuration  {clean(config.origin) or 'none; keys from the environment (toolglot init writes a file)'}"
    )
    real = ", ".join(f"{name} ({upstream.target})" for name, upstream in config.upstreams.items())
    page.line(f"  upstreams      {clean(real) or 'none'}")
    page.line(f"  simulated      {_describe_simulated(config)}")
    page.line(f"  store          {clean(display_location(config.gateway.store))}")
    keys = _client_key_status(config, store)
    page.line(f"  client keys    {keys or 'none; any key is accepted'}")
    if config.inspector.keep != "off":
        page.line(f"  inspector      {root}/inspector shows its requests in the browser")
    if not is_loopback(config.gateway.host):
        page.line("  reachable from other machines")
    key = "…" if keys else "any"
    page.line("")
    page.line(f"  Claude Code    ANTHROPIC_BASE_URL={root} ANTHROPIC_API_KEY={key} claude")
    page.line(f'  Codex          base_url = "{root}/v1" and wire_api = "responses" in a model_provider')
    page.line(f"  Gemini CLI     GOOGLE_GEMINI_BASE_URL={root} GEMINI_API_KEY={key} gemini")
    page.line(f"  OpenAI SDKs    OPENAI_BASE_URL={root}/v1 OPENAI_API_KEY={key}")
    for note in config.notes:
        terminal.note(note)
    page.stream.flush()

"""`toolglot serve`: the gateway, between any client and any provider."""

from __future__ import annotations

import argparse
import os
import socket
import time
from importlib.util import find_spec
from typing import Final

import msgspec

from toolglot.cli.options import add_quiet
from toolglot.cli.screen.terminal import Terminal, clean
from toolglot.cli.store_access import is_there, with_store
from toolglot.errors import InputError, how_to_install
from toolglot.gateway.accounting.client_keys import saved_keys
from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.settings import MEMORY, OFF, Config, read_config
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.http.workers import MAX_WORKERS, Supervisor, WorkerSettings, place_in
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator.serving import listening
from toolglot.store import Store, shown

WHY_NOT: InputError | None = None
"""Why nothing can be served: an extra that a gateway needs is not installed. Help needs none."""
try:
    from toolglot.gateway.app import Gateway
    from toolglot.gateway.http.serving import run as run_gateway
except InputError as missing:
    WHY_NOT = missing

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
        metavar="PLACE",
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
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MAX_WORKERS}, not {text[:40]!r}")
    return int(text)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if WHY_NOT is not None:
        raise WHY_NOT
    config = _config(arguments)
    place = place_in(os.environ)
    if place is not None:
        return _work(arguments, config, place)
    if arguments.workers > 1:
        _check_shared(config)
    if config.gateway.store not in (MEMORY, OFF):
        for warning in with_store(config.gateway.store, _warnings):  # one that cannot be opened is told before all else
            terminal.note(warning)
    _check_server()  # before an address is told that would never answer
    gateway = Gateway(config, reread=lambda: _config(arguments)) if arguments.workers == 1 else None
    with listening(config.gateway.port, config.gateway.host) as sock:
        root = f"http://{_shown(config.gateway.host)}:{sock.getsockname()[1]}"
        if not arguments.quiet and config.gateway.log != "json":
            _tell(root, config, terminal)
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


async def _warnings(store: Store) -> tuple[str, ...]:
    """What a store does less well than others, which it knows once it has been used."""
    await saved_keys(store)
    return store.warnings


def _work(arguments: argparse.Namespace, config: Config, place: WorkerSettings) -> int:
    """Be one of several workers."""
    gateway = Gateway(config, reread=lambda: _config(arguments))
    gateway.request_log.worker = place.number
    gateway.worker_links = WorkerLinks(place.folder, place.number) if place.folder else None
    place.end_with_supervisor()
    with place.socket() as sock:
        run_gateway(gateway, sock)
    return 0


def _supervise(arguments: argparse.Namespace, config: Config, sock: socket.socket) -> int:
    """Look after several workers."""
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
        say=lambda text: request_log.say(text, event="worker"),
    ).run()


def _check_shared(config: Config) -> None:
    """What one worker keeps, the others must find."""
    if config.gateway.store in (MEMORY, OFF):
        raise InputError(
            f"several workers share what they keep, and the store is {config.gateway.store!r}",
            path="--workers",
            hint="set store in [gateway] to a file, or serve with one worker",
        )


def _config(arguments: argparse.Namespace) -> Config:
    config = read_config(arguments.config, os.environ)
    if arguments.host is not None or arguments.port is not None:
        config = config.listening_at(arguments.host, arguments.port)
    if arguments.no_simulate:
        config = config.without_simulated()
    changed = {name: getattr(arguments, name) for name in ("store", "log") if getattr(arguments, name) is not None}
    return msgspec.structs.replace(config, gateway=msgspec.structs.replace(config.gateway, **changed))


def _shown(host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - where it can be reached from here
    return f"[{shown}]" if ":" in shown and not shown.startswith("[") else shown


def _told_keys(config: Config) -> str:
    """The keys that clients may have, of the configuration and of the store; empty: none is demanded."""
    place, now = config.gateway.store, time.time()
    kept = with_store(place, saved_keys) if place not in (MEMORY, OFF) and is_there(place) else []
    count = sum(key != STORED_KEYS for key in config.gateway.client_keys)
    count += sum(key.state(now) == "active" for key in kept)
    if not kept and not config.gateway.client_keys:
        return ""
    return str(count) if count else "none yet, and one is demanded: toolglot keys add NAME"


def _simulated(config: Config) -> str:
    """Which models are simulated."""
    if config.simulates_known:
        return "all known models, since nothing is configured: no real model answers"
    return "only names that begin with simulated/" if config.allows_simulated else "none"


def _tell(root: str, config: Config, terminal: Terminal) -> None:
    """Where it listens, who answers, and how a client is pointed at it."""
    page = terminal.err
    page.line(page.paint(f"toolglot serves on {root}", "bold"))
    page.line(f"  configuration  {clean(config.origin) or 'none: keys in the environment (toolglot init writes one)'}")
    real = ", ".join(f"{name} ({upstream.target})" for name, upstream in config.upstreams.items())
    page.line(f"  upstreams      {clean(real) or 'none'}")
    page.line(f"  simulated      {_simulated(config)}")
    page.line(f"  kept in        {clean(shown(config.gateway.store))}")
    keys = _told_keys(config)
    page.line(f"  client keys    {keys or 'none: any key will do'}")
    if not is_loopback(config.gateway.host):
        page.line("  other machines can reach it")
    key = "…" if keys else "any"
    page.line("")
    page.line(f"  Claude Code    ANTHROPIC_BASE_URL={root} ANTHROPIC_API_KEY={key} claude")
    page.line(f'  Codex          base_url = "{root}/v1" and wire_api = "responses" in a model_provider')
    page.line(f"  Gemini CLI     GOOGLE_GEMINI_BASE_URL={root} GEMINI_API_KEY={key} gemini")
    page.line(f"  OpenAI SDKs    OPENAI_BASE_URL={root}/v1 OPENAI_API_KEY={key}")
    for note in config.notes:
        terminal.note(note)
    page.stream.flush()

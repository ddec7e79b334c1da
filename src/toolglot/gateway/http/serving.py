"""The gateway on a port: for the command line, for programs and for tests.

    toolglot.gateway.serve(config)                      # until SIGINT or SIGTERM
    with toolglot.gateway.running(Gateway(config)) as url: …   # in a thread

uvicorn serves, with uvloop and httptools where they are installed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from toolglot.errors import InputError, how_to_install
from toolglot.gateway.app import Gateway
from toolglot.gateway.config.settings import Config, read_config
from toolglot.gateway.http.connection_limit import raise_descriptor_limit
from toolglot.gateway.http.memory import return_memory_early
from toolglot.middleware import ToolMiddleware
from toolglot.simulator.serving import listen

KEEP_ALIVE: Final = 75
BACKLOG: Final = 2048
COLLECT_AFTER: Final = (20_000, 20, 50)
"""Thresholds of the garbage collector: a request makes some thousand objects for as long as it lasts, and Python's own
thresholds cost about a tenth of its time."""
LOOPBACK: Final = "127.0.0.1"


def server_of(gateway: Gateway, *, grace: float | None = None) -> Any:
    """A uvicorn server for a gateway, not yet listening. `grace`: seconds that open responses have at its end; None: as
    configured."""
    try:
        uvicorn = importlib.import_module("uvicorn")
    except ImportError:
        hint = how_to_install("gateway")
        raise InputError("serving needs uvicorn, which is not installed", path="", hint=hint) from None
    config = uvicorn.Config(
        gateway,
        lifespan="on",
        ws="none",
        loop="uvloop" if _is_installed("uvloop") else "asyncio",
        http=_bounded_protocol() if _is_installed("httptools") else "h11",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return importlib.import_module("toolglot.gateway.http.uvicorn_server").UvicornServer(config, gateway, grace)


def _bounded_protocol() -> Any:
    """The HTTP parser with limits; loaded only if httptools is installed."""
    return importlib.import_module("toolglot.gateway.http.connections").BoundedProtocol


def _is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def serve(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    app_middleware: Sequence[ToolMiddleware] = (),
) -> None:
    """Serve until SIGINT or SIGTERM. `config` may be the path of a file; None: as `read_config` finds it."""
    read = config if isinstance(config, Config) else read_config(config, os.environ)
    read = read.listening_at(host, port) if host is not None or port is not None else read
    gateway = Gateway(read, middleware=app_middleware)
    with listen(read.gateway.port, read.gateway.host) as sock:
        run(gateway, sock)


def run(gateway: Gateway, sock: socket.socket) -> None:
    """Serve on a socket until a signal. Raises what kept it from starting."""
    server = server_of(gateway)
    return_memory_early(os.environ)
    gateway.connection_limit.descriptors = raise_descriptor_limit()
    _tune_collector()
    if threading.current_thread() is threading.main_thread():
        # Before uvicorn handles it, and when uvicorn raises it again at the end.
        signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
        signal.signal(signal.SIGHUP, lambda *_: gateway.request_reload())
    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # it exits by itself if it could not start
        server.run(sockets=[sock])
    if gateway.why_not_started:
        raise InputError(gateway.why_not_started, path="gateway")


def _tune_collector() -> None:
    """Let the garbage collector run seldom, and not on what is loaded: objects of a request are freed without it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


@contextlib.contextmanager
def running(gateway: Gateway, *, port: int = 0) -> Iterator[str]:
    """A gateway on loopback, in a thread, as long as the block lasts; its address."""
    server = server_of(gateway, grace=1)
    with listen(port) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.005)
            if gateway.why_not_started:
                raise InputError(gateway.why_not_started, path="gateway")
            yield f"http://{LOOPBACK}:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()

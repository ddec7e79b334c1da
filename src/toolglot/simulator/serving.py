"""The simulator on a port of this machine, in a thread: for tests, and for the command line.

uvicorn serves it (the extra `simulator`); any other ASGI server can serve a `Simulator` as well.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

from toolglot import profiles
from toolglot.errors import InputError, how_to_install, quote, unknown_name
from toolglot.simulator.app import Recorded, Simulator
from toolglot.simulator.providers import PROVIDERS, url_of
from toolglot.simulator.replies.faults import Order
from toolglot.simulator.scripts.script_reading import ScriptSource

LOOPBACK: Final = "127.0.0.1"
_LARGEST_PORT: Final = 65_535
_GRACE: Final = 1
"""Seconds that open answers get when the server stops."""


class Server:
    """A simulator and where it listens."""

    def __init__(self, simulator: Simulator, root: str) -> None:
        self.simulator = simulator
        self.root = root
        """The address of all providers together."""

    def url(self, provider: str) -> str:
        """The base address that the SDK of a provider is given."""
        name = profiles.resolve(provider)
        if name not in PROVIDERS:
            raise unknown_name("provider", provider, PROVIDERS)
        return url_of(self.root, name)

    def script(self, script: ScriptSource | None = None, **fields: Any) -> None:
        """What is answered from now on; see `Simulator.use`."""
        self.simulator.use(script, **fields)

    def fault(self, order: Order, *, times: int = 1) -> None:
        """What goes wrong with the next requests; see `Simulator.fault`."""
        self.simulator.fault(order, times=times)

    def unused(self) -> list[str]:
        """What no request got so far; see `Simulator.unused`."""
        return self.simulator.unused()

    @property
    def requests(self) -> list[Recorded]:
        """The requests that came, the latest last."""
        return self.simulator.requests


def uvicorn_of() -> Any:
    """The server that serves; an error that says what to do where it is not installed."""
    try:
        return importlib.import_module("uvicorn")
    except ImportError:
        hint = how_to_install("simulator")
        raise InputError("serving needs uvicorn, which is not installed", path="", hint=hint) from None


def server_of(simulator: Simulator) -> Any:
    """A uvicorn server for a simulator, not yet listening."""
    uvicorn = uvicorn_of()
    config = uvicorn.Config(
        simulator,
        lifespan="off",
        ws="none",
        http="h11",
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
    )
    return uvicorn.Server(config)


def listening(port: int = 0, host: str = LOOPBACK) -> socket.socket:
    """A socket that takes connections; port 0 is a free one."""
    if type(port) is not int or not 0 <= port <= _LARGEST_PORT:
        raise InputError(f"there is no port {quote(port)}", path="port", hint=f"a number from 0 to {_LARGEST_PORT}")
    if not host:
        raise InputError("expected an address", path="host", hint=f"{LOOPBACK} is this machine, 0.0.0.0 all networks")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        return socket.create_server(found[0][4][:2], family=family)
    except (OSError, ValueError) as error:
        raise _not_listening(host, port, error) from None


def _not_listening(host: str, port: int, error: OSError | ValueError) -> InputError:
    """Whether it is the address or the port that is wrong."""
    reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
    if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EPERM):
        return InputError(f"cannot listen on {host}:{port}: {reason}", path="port", hint="0 is a free port")
    hint = f"an address of this machine, such as {LOOPBACK}"
    return InputError(f"cannot listen on {quote(host)}: {reason}", path="host", hint=hint)


@contextlib.contextmanager
def serve(simulator: Simulator | ScriptSource | None = None, *, port: int = 0) -> Iterator[Server]:
    """A simulator on loopback, in a thread, as long as the block lasts; it may be given as its script."""
    app = simulator if isinstance(simulator, Simulator) else Simulator(simulator)
    server = server_of(app)
    with listening(port) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield Server(app, f"http://{LOOPBACK}:{sock.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join()

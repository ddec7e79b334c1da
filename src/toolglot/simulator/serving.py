"""The simulator on a port of this machine, in a thread: for tests, and for the command line.

uvicorn serves it (`pip install 'toolglot[simulator]'`); any other ASGI server can serve a `Simulator` as well.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolglot.errors import InputError
from toolglot.simulator.app import Recorded, Simulator
from toolglot.simulator.providers import PROVIDERS, url_of
from toolglot.simulator.script import Script

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
        if provider not in PROVIDERS:
            raise InputError(f"there is no provider {provider!r}", path="provider", hint=", ".join(PROVIDERS))
        return url_of(self.root, provider)

    def script(self, script: Script | Mapping[str, Any] | None = None, **fields: Any) -> None:
        """What is answered from now on; see `Simulator.use`."""
        self.simulator.use(script, **fields)

    def fault(self, order: str, *, times: int = 1) -> None:
        """What goes wrong with the next requests; see `Simulator.fault`."""
        self.simulator.fault(order, times=times)

    @property
    def requests(self) -> list[Recorded]:
        """The requests that came, the latest last."""
        return self.simulator.requests


def uvicorn_of() -> Any:
    """The server that serves; an error that says what to do where it is not installed."""
    try:
        return importlib.import_module("uvicorn")
    except ImportError:
        hint = "pip install 'toolglot[simulator]'"
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
    if not 0 <= port <= _LARGEST_PORT:
        raise InputError(f"cannot listen on port {port}", path="--port", hint=f"a number from 0 to {_LARGEST_PORT}")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot listen on {host}:{port}: {reason}", path="--port", hint="0 is a free port") from None


@contextlib.contextmanager
def serve(simulator: Simulator | None = None, *, port: int = 0) -> Iterator[Server]:
    """A simulator on loopback, in a thread, as long as the block lasts."""
    app = simulator if simulator is not None else Simulator()
    server = server_of(app)
    with listening(port) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield Server(app, f"http://{LOOPBACK}:{sock.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join()

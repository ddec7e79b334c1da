"""The simulator on a local port, in a thread: for tests, and for the command line.

uvicorn serves it (the extra `simulator`); any other ASGI server can serve a `Simulator` as well.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from toolglot import profiles
from toolglot.errors import InputError, how_to_install, quote, unknown_name

if TYPE_CHECKING:
    from toolglot.simulator.app import RecordedRequest, Simulator
    from toolglot.simulator.replies.faults import FaultSpec
    from toolglot.simulator.scripts.script_reading import ScriptSource

LOOPBACK: Final = "127.0.0.1"
_MAX_PORT: Final = 65_535
_GRACE: Final = 1
"""Seconds for open replies when the server stops."""


class Server:
    """A simulator and its address."""

    def __init__(self, simulator: Simulator, root: str) -> None:
        self.simulator = simulator
        self.root = root
        """The address of all providers together."""

    def url(self, provider: str) -> str:
        """The base URL for the SDK of a provider."""
        from toolglot.simulator.providers import PROVIDERS, url_of  # noqa: PLC0415 - a gateway only listens

        name = profiles.resolve(provider)
        if name not in PROVIDERS:
            raise unknown_name("provider", provider, PROVIDERS)
        return url_of(self.root, name)

    def script(self, script: ScriptSource | None = None, **fields: Any) -> None:
        """Use another script; see `Simulator.use`."""
        self.simulator.use(script, **fields)

    def fault(self, spec: FaultSpec, *, times: int = 1) -> None:
        """Inject a fault into the next requests; see `Simulator.fault`."""
        self.simulator.fault(spec, times=times)

    def unused(self) -> list[str]:
        """What no request got so far; see `Simulator.unused`."""
        return self.simulator.unused()

    @property
    def requests(self) -> list[RecordedRequest]:
        """The last thousand requests, the latest last."""
        return self.simulator.requests


def import_uvicorn() -> Any:
    """The uvicorn module; an error that says how to install it if it is missing."""
    try:
        return importlib.import_module("uvicorn")
    except ImportError:
        hint = how_to_install("simulator")
        raise InputError("the server needs uvicorn, which is not installed", path="", hint=hint) from None


def server_of(simulator: Simulator) -> Any:
    """A uvicorn server for a simulator, not yet listening."""
    uvicorn = import_uvicorn()
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


def listen(port: int = 0, host: str = LOOPBACK) -> socket.socket:
    """A socket that listens; port 0 is a free one."""
    if type(port) is not int or not 0 <= port <= _MAX_PORT:
        raise InputError(f"invalid port {quote(port)}", path="port", hint=f"use a number from 0 to {_MAX_PORT}")
    if not host:
        raise InputError("expected an address", path="host", hint=f"{LOOPBACK} is this machine, 0.0.0.0 all networks")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
        return socket.create_server(found[0][4][:2], family=family)
    except (OSError, ValueError) as error:
        raise _not_listening(host, port, error) from None


def _not_listening(host: str, port: int, error: OSError | ValueError) -> InputError:
    """The error for a wrong address or a wrong port."""
    reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
    if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES, errno.EPERM):
        return InputError(f"cannot listen on {host}:{port}: {reason}", path="port", hint="0 is a free port")
    hint = f"an address of this machine, such as {LOOPBACK}"
    return InputError(f"cannot listen on {quote(host)}: {reason}", path="host", hint=hint)


@contextlib.contextmanager
def serve(simulator: Simulator | ScriptSource | None = None, *, port: int = 0) -> Iterator[Server]:
    """A simulator, or one with this script, on loopback in a thread, as long as the block lasts."""
    from toolglot.simulator.app import Simulator  # noqa: PLC0415 - as above

    app = simulator if isinstance(simulator, Simulator) else Simulator(simulator)
    server = server_of(app)
    with listen(port) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield Server(app, f"http://{LOOPBACK}:{sock.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join()

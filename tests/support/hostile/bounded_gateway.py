"""A gateway whose patience with its clients is short, so that a test of slow clients takes as long as that."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from support.gateway.served_gateway import Served
from support.waiting import wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.http.connections import BoundedProtocol
from toolglot.gateway.http.serving import server_of
from toolglot.gateway.http.socket_connection import SocketConnection
from toolglot.simulator.serving import listen


class Short(BoundedProtocol):
    head_seconds = 1.0
    linger_seconds = 1.0
    unread_seconds = 1.0


class ShortSocket(SocketConnection):
    unread_seconds = 1.0
    message_seconds = 0.2
    close_seconds = 0.5


class ShortSockets(BoundedProtocol):
    socket_type = ShortSocket


class ShortBody(BoundedProtocol):
    pause_seconds = 0.5
    upload_seconds = 1.0


@contextlib.contextmanager
def bounded(app: Gateway, limits: type[BoundedProtocol] = Short) -> Iterator[Served]:
    """The gateway on loopback, with connections whose limits are short."""
    server = server_of(app, grace=1)
    server.config.http = limits
    with listen(0) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield Served(f"http://127.0.0.1:{sock.getsockname()[1]}", app)
        finally:
            server.should_exit = True
            thread.join()

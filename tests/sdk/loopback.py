"""A provider on loopback: it keeps the body of each request and gives the answer that the test set."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from unittest import mock

EVENT_STREAM = "text/event-stream"


class Loopback:
    """One server on a free port. Law: one request at a time; the last one's body is in `body`."""

    def __init__(self) -> None:
        self.answer = b"{}"
        self.content_type = "application/json"
        self.body = b""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def give(self, answer: str | bytes, content_type: str = "application/json") -> None:
        """What the next requests are answered with."""
        self.answer = answer.encode() if isinstance(answer, str) else answer
        self.content_type = content_type

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            loopback.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.send_response(200)
            self.send_header("Content-Type", loopback.content_type)
            self.send_header("Content-Length", str(len(loopback.answer)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(loopback.answer)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return Handler


_FOREIGN: Final = ("ANTHROPIC_", "AWS_", "CO_", "COHERE_", "GEMINI_", "GOOGLE_", "MISTRAL_", "OLLAMA_", "OPENAI_")
"""How the environment speaks to the SDKs. Nothing of it may reach a recording."""


def _is_private(name: str) -> bool:
    return name.upper().startswith(_FOREIGN) or name.upper().endswith("_PROXY")


@contextlib.contextmanager
def serving() -> Iterator[Loopback]:
    """A provider, and an environment in which the SDKs know only what the test sets."""
    plain = {name: value for name, value in os.environ.items() if not _is_private(name)}
    with mock.patch.dict(os.environ, plain, clear=True):
        yield from _serving()


def _serving() -> Iterator[Loopback]:
    loopback = Loopback()
    loopback.start()
    try:
        yield loopback
    finally:
        loopback.stop()

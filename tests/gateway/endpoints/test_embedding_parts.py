"""Embeddings of a provider that takes one input at a time: several requests run at once, within a limit."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from support.waiting import HANG_SECONDS

MODEL: Final = "titan/amazon.titan-embed-text-v2:0"
AT_ONCE: Final = 4


class Titan:
    """A provider of vectors. The first input is answered after the fifth has come."""

    def __init__(self) -> None:
        self.running = self.max_running = 0
        self.texts: list[str] = []
        self._changed = threading.Condition()

    def embed(self, text: str) -> tuple[int, dict[str, object]]:
        with self._changed:
            self.running += 1
            self.max_running = max(self.running, self.max_running)
            self.texts.append(text)
            self._changed.notify_all()
            if text == "bad":
                self.running -= 1
                return 400, {"message": "bad input"}
            assert self._changed.wait_for(lambda: self.max_running >= AT_ONCE or "bad" in self.texts, HANG_SECONDS)
            if text == "0":
                assert self._changed.wait_for(lambda: len(self.texts) > AT_ONCE or "bad" in self.texts, HANG_SECONDS)
            self.running -= 1
        return 200, {"embedding": [float(text)], "inputTextTokenCount": 1}


@pytest.fixture
def titan() -> Titan:
    return Titan()


@pytest.fixture
def served(titan: Titan) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, reply = titan.embed(body["inputText"])
            data = json.dumps(reply).encode()
            with contextlib.suppress(OSError):  # the gateway ends the other calls of a request that failed
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    own = f'[upstreams.titan]\nprovider = "bedrock"\nurl = "http://127.0.0.1:{server.server_port}"\n'
    try:
        with gateway(None, upstreams=own + 'key_env = "SIMULATED_KEY"\nauth = "bearer"') as running:
            yield running
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_vectors_keep_the_order_of_their_inputs_and_four_requests_run_at_once(titan: Titan, served: Served) -> None:
    got = ask(served, "/v1/embeddings", {"model": MODEL, "input": [str(number) for number in range(12)]})
    assert got.status == 200, got.body
    assert [item["embedding"] for item in got.body["data"]] == [[float(number)] for number in range(12)]
    assert got.body["usage"]["prompt_tokens"] == 12
    assert titan.max_running == AT_ONCE


def test_one_failure_fails_all_and_ends_the_others(titan: Titan, served: Served) -> None:
    got = ask(served, "/v1/embeddings", {"model": MODEL, "input": ["0", "bad", *map(str, range(2, 200))]})
    assert got.status == 400
    assert "bad input" in got.body["error"]["message"]
    assert len(titan.texts) < 200

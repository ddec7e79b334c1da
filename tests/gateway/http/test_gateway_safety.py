"""Who may call, how much, and what is reported: keys, limits, disconnects, reports, secrets."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from backports import zstd

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.raw_sockets import connect, post
from support.waiting import HANG_SECONDS, wait_until
from toolglot.simulator import RecordedRequest, Simulator, serve
from toolglot.simulator.serving import Server

LONG = {"rules": [{"reply": {"text": "word " * 4000}}], "pace": 0.5}
"""Half an hour of words."""


SCRIPT = {"rules": [{"reply": {"text": "Hello."}}]}


# --- clients that go away ---------------------------------------------------------------------------


class Ended:
    """Whether the simulator was done with a request."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self, _: RecordedRequest, __: float) -> None:
        self._event.set()

    def wait(self) -> bool:
        return self._event.wait(HANG_SECONDS)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("protocol", ["anthropic", "openai", "gemini"])
def test_a_client_that_goes_away_ends_the_upstreams_answer_at_once(protocol: str, stream: bool) -> None:
    ended = Ended()
    script = LONG if stream else {"rules": [{"fault": "timeout"}]}
    with serve(Simulator(script, log=ended)) as simulated, gateway(simulated) as served:
        path, body = request_of(protocol, "mistral/mistral-large-latest", stream=stream)
        sock = _sent(served, path, body)
        if stream:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        else:
            wait_until(lambda: served.app.open == 1 and bool(simulated.requests))
        sock.close()
        assert ended.wait(), "the upstream went on"
        wait_until(lambda: bool(served.records))
        assert "disconnected" in served.records[-1].response.error
        assert served.app.open == 0


def _sent(served: Served, path: str, body: Any) -> socket.socket:
    sock = connect(served)
    sock.sendall(post(body, "authorization: Bearer k\r\n", path))
    return sock


def test_the_first_event_arrives_before_the_provider_is_done(simulated: Server) -> None:
    with serve(LONG) as slow, gateway(slow) as served:
        path, body = request_of("anthropic", "openai_chat/gpt-4.1", stream=True)
        sock = _sent(served, path, body)
        data = b""
        while b"text_delta" not in data:
            data += sock.recv(65536)  # which gives up long before the provider is done
        sock.close()


def test_a_silent_provider_does_not_cost_the_client_its_connection() -> None:
    with (
        serve({**LONG, "pace": 0.5}) as slow,
        gateway(slow, settings="ping_seconds = 0.05") as served,
    ):
        path, body = request_of("anthropic", "openai_chat/gpt-4.1", stream=True)
        sock = _sent(served, path, body)
        data = b""
        while b"event: ping" not in data:
            data += sock.recv(65536)
        sock.close()


# --- who may ask ------------------------------------------------------------------------------------

KEYED = 'client_keys = ["env:CLIENT_A", "env:CLIENT_B"]'
KEYS = {"CLIENT_A": "key-of-client-a-0123456789", "CLIENT_B": "key-of-client-b-0123456789"}


@pytest.fixture(scope="module")
def keyed(simulated: Server) -> Iterator[Served]:
    with gateway(simulated, settings=f'{KEYED}\n[inspector]\nkeep = "bodies"\n', environ=KEYS) as running:
        yield running


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "x-goog-api-key", "api-key"])
def test_a_client_key_is_taken_from_where_its_protocol_puts_it(keyed: Served, header: str) -> None:
    path, body = request_of("anthropic", "openai_chat/gpt-4.1")
    key = KEYS["CLIENT_A"]
    value = f"Bearer {key}" if header == "authorization" else key
    assert ask(keyed, path, body, key=None, headers={header: value}).status == 200
    assert ask(keyed, path, body, key=None, headers={header: value + "x"}).status == 401
    assert ask(keyed, f"{path}?key={key}", body, key=None).status == 200


@pytest.mark.parametrize("key", [None, "", "wrong", "key-of-client-a-012345678"])
def test_without_a_known_key_nothing_is_answered_and_nothing_is_sent(
    keyed: Served, simulated: Server, key: str | None
) -> None:
    count = len(simulated.requests)
    path, body = request_of("anthropic", "openai_chat/gpt-4.1")
    for each, payload in ((path, body), ("/v1/models", None), ("/toolglot/requests", None), ("/v1/embeddings", {})):
        got = ask(keyed, each, payload, key=key)
        assert got.status == 401
        assert "client key" in got.data.decode()
    assert len(simulated.requests) == count


def test_a_clients_key_never_goes_to_a_provider(keyed: Served, simulated: Server) -> None:
    path, body = request_of("anthropic", "anthropic/claude-sonnet-4-5")
    assert ask(keyed, path, body, key=KEYS["CLIENT_A"], headers={"x-api-key": KEYS["CLIENT_A"]}).status == 200
    assert KEYS["CLIENT_A"] not in json.dumps([request.headers for request in simulated.requests])


# --- how much ---------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused() -> None:
    with gateway(None, settings="max_body_bytes = 2000") as served:
        got = ask(served, "/v1/messages", b'{"model": "' + b"x" * 3000 + b'"}')
        assert got.status == 413
        packed = gzip.compress(b" " * 100_000_000, 1)
        small = ask(served, "/v1/messages", packed[:1999], headers={"content-encoding": "gzip"})
        assert small.status in (400, 413)


def test_a_compressed_body_is_read_and_a_bomb_is_not(served: Served) -> None:
    path, body = request_of("anthropic", "openai_chat/gpt-4.1")
    data = json.dumps(body).encode()
    assert ask(served, path, gzip.compress(data), headers={"content-encoding": "gzip"}).status == 200
    assert ask(served, path, zlib.compress(data), headers={"content-encoding": "deflate"}).status == 200
    assert ask(served, path, zstd.compress(data), headers={"content-encoding": "zstd"}).status == 200
    assert ask(served, path, data, headers={"content-encoding": "br"}).status == 415
    assert ask(served, path, data, headers={"content-encoding": "zstd"}).status == 400
    assert ask(served, path, data, headers={"content-encoding": "gzip"}).status == 400
    bomb = gzip.compress(b" " * (200 * 1024 * 1024), 9)
    assert ask(served, path, bomb, headers={"content-encoding": "gzip"}).status == 413
    bomb = zstd.compress(b" " * (200 * 1024 * 1024), 19)
    assert ask(served, path, bomb, headers={"content-encoding": "zstd"}).status == 413


def test_deep_and_wide_bodies_are_refused_in_time(served: Served) -> None:
    for data in (b"[" * 100_000, b'{"a":' * 100_000, b'{"messages":' + b"[" * 5000 + b"]" * 5000 + b"}"):
        assert ask(served, "/v1/messages", data).status in (400, 413)


def test_headers_that_are_too_long_are_refused(served: Served) -> None:
    got = ask(served, "/v1/models", headers={f"x-filler-{n}": "y" * 7000 for n in range(10)})
    assert got.status in (400, 431)


def test_more_requests_at_once_than_allowed_are_answered_with_a_retry_time() -> None:
    with serve(LONG) as slow, gateway(slow, settings="max_concurrent = 1") as served:
        path, body = request_of("anthropic", "openai_chat/gpt-4.1", stream=True)
        sock = _sent(served, path, body)
        assert sock.recv(100).startswith(b"HTTP/1.1 200")
        got = ask(served, path, body)
        assert got.status in (503, 529)
        assert got.headers["retry-after"] == "1"
        sock.close()
        wait_until(lambda: served.app.open == 0)


# --- what is reported -------------------------------------------------------------------------------


def test_the_report_of_a_request_is_there_for_its_client_only(keyed: Served) -> None:
    path, body = request_of("anthropic", "mistral/mistral-large-latest")
    body["tools"][0]["name"] = "files/read"
    body["system"] = "my key is sk-ant-api03-abcdefghijklmnop"
    got = ask(keyed, path, body, key=KEYS["CLIENT_A"])
    assert "1 change: renamed" in got.headers["x-toolglot-report"]
    where = f"/toolglot/requests/{got.headers['x-toolglot-request']}"
    page = ask(keyed, where, key=KEYS["CLIENT_A"])
    assert page.status == 200
    assert page.body["request"]["tools"][0]["name"] == "files/read"
    assert page.body["rendered"]["tools"][0]["function"]["name"].startswith("files_read_")
    assert page.body["report"][0]["action"] == "renamed"
    assert page.body["upstream"] == "mistral"
    assert b"abcdefghijklmnop" not in page.data
    assert KEYS["CLIENT_A"].encode() not in page.data
    assert ask(keyed, where, key=KEYS["CLIENT_B"]).status == 404
    listed = ask(keyed, "/toolglot/requests", key=KEYS["CLIENT_A"]).body["requests"]
    assert got.headers["x-toolglot-request"] in [expected["id"] for expected in listed]
    assert ask(keyed, "/toolglot/requests", key=KEYS["CLIENT_B"]).body["requests"] == []


def test_an_error_of_the_gateway_itself_says_nothing_of_its_inside(simulated: Server) -> None:
    class Broken:
        def process_request(self, request: Any) -> None:  # noqa: ARG002
            raise ZeroDivisionError("a secret of the inside")

        def process_response(self, response: Any) -> None: ...

    with gateway(simulated, middleware=[Broken()]) as served:
        path, body = request_of("anthropic", "openai_chat/gpt-4.1")
        got = ask(served, path, body)
    assert got.status == 500
    assert b"secret of the inside" not in got.data
    assert "middleware" in got.body["error"]["message"]


def test_two_requests_share_a_connection(served: Served) -> None:
    parts = urlsplit(served.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HANG_SECONDS)
    path, body = request_of("anthropic", "openai_chat/gpt-4.1")
    for _ in range(3):
        connection.request("POST", path, json.dumps(body), {"x-api-key": "k"})
        with connection.getresponse() as answer:
            assert answer.status == 200
            answer.read()
    connection.close()

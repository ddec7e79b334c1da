"""Addresses that are not the gateway's own, passed on to the one upstream that has them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.gateway.http_client import KEY, ask
from support.gateway.served_gateway import gateway


class Provider(ThreadingHTTPServer):
    """Notes each request, and answers with it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, body))
        data = json.dumps({"object": "list", "path": self.path}).encode()
        self.send_response(201)
        for name, value in (("content-type", "application/json"), ("x-request-id", "r1"), ("set-cookie", "a=b")):
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def passing(provider: Provider, *names: str, kind: str = "openai") -> Iterator[str]:
    tables = [
        f'[upstreams.{name}]\nprovider = "{kind}"\nurl = "{provider.url}/v1"\nkey_env = "PROVIDERS_KEY"\n'
        for name in names
    ]
    with gateway(None, upstreams="\n".join(tables), environ={"PROVIDERS_KEY": "the-providers-key"}) as served:
        yield served.url


def test_moderations_go_to_the_one_upstream_of_the_protocol_under_its_own_key(provider: Provider) -> None:
    with passing(provider, "openai") as url:
        body = {"model": "omni-moderation-latest", "input": "hello"}
        got = ask(url, "/v1/moderations?a=b", body, headers={"content-type": "application/json", "cookie": "c=d"})
    assert (got.status, got.body["path"]) == (201, "/v1/moderations?a=b")
    ((method, path, headers, data),) = provider.seen
    assert (method, path, json.loads(data)) == ("POST", "/v1/moderations?a=b", body)
    assert headers["authorization"] == "Bearer the-providers-key"
    assert KEY not in json.dumps(headers)
    assert "cookie" not in headers
    assert got.headers["x-request-id"] == "r1"
    assert "set-cookie" not in got.headers


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_files_are_read_and_deleted(provider: Provider, method: str) -> None:
    with passing(provider, "openai") as url:
        assert ask(url, "/v1/files/file-1", method=method).status == 201
    assert provider.seen[0][:2] == (method, "/v1/files/file-1")


def test_embeddings_of_an_unknown_model_go_to_an_upstream_that_serves_any_name(provider: Provider) -> None:
    with passing(provider, "local", kind="vllm") as url:
        ask(url, "/v1/embeddings", {"model": "nomic-embed", "input": "hello"})
    ((method, path, headers, data),) = provider.seen
    assert (method, path) == ("POST", "/v1/embeddings")
    assert json.loads(data) == {"model": "nomic-embed", "input": "hello"}
    assert headers["authorization"] == "Bearer the-providers-key"


def test_embeddings_of_an_unknown_model_do_not_go_to_a_provider_with_names_of_its_own(provider: Provider) -> None:
    with passing(provider, "openai") as url:
        got = ask(url, "/v1/embeddings", {"model": "embed-v4.0", "input": "hello"})
    assert got.status == 404
    assert "embed-v4.0" in got.body["error"]["message"]
    assert provider.seen == []


@pytest.mark.parametrize(
    ("path", "variable"),
    [
        ("/v1/files", "OPENAI_API_KEY"),
        ("/v1/batches", "OPENAI_API_KEY"),
        ("/v1/images/generations", "OPENAI_API_KEY"),
        ("/v1/audio/speech", "OPENAI_API_KEY"),
        ("/v1/messages/batches", "ANTHROPIC_API_KEY"),
    ],
)
def test_without_an_upstream_the_error_says_which_one_to_set(provider: Provider, path: str, variable: str) -> None:
    with passing(provider, "mine", kind="cohere") as url:
        got = ask(url, path, {"model": "m"})
    assert got.status == 404
    assert f"set {variable}" in got.body["error"]["message"]
    assert "[upstreams." in got.body["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/evals", "/v1/evals/eval_1/runs"])
def test_evals_are_passed_through_to_a_provider_without_client_keys(provider: Provider, path: str) -> None:
    with passing(provider, "openai") as url:
        assert ask(url, path, {"data_source_config": {}}).status == 201
    assert [seen[1] for seen in provider.seen] == [path]


def test_with_two_upstreams_that_could_have_it_neither_is_called(provider: Provider) -> None:
    with passing(provider, "one", "two") as url:
        got = ask(url, "/v1/moderations", {"model": "m"})
    assert got.status == 404
    assert "one, two" in got.body["error"]["message"]
    assert provider.seen == []


@pytest.mark.parametrize("path", ["/v1/../admin", "/admin", "/v1/%2e%2e/admin", "//evil.example/v1/x", "/v1/x/../../y"])
def test_a_path_that_leaves_the_protocols_own_is_not_passed_on(provider: Provider, path: str) -> None:
    with passing(provider, "openai") as url:
        assert ask(url, path, {}).status == 404
    assert provider.seen == []

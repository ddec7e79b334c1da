"""A web page in a browser of the same machine: it cannot use a gateway without keys, unless the owner named it.

The requests are those that browsers send: a simple cross-site POST, a form, an image, a preflight, a rebound name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.gateway.http_client import Got, ask, request_of
from support.gateway.served_gateway import Served, config_for, gateway
from toolglot.gateway.config.file import ConfigError
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

PATH, BODY = request_of("openai", "openai_chat/gpt-4.1")
DATA = json.dumps(BODY).encode()
EVIL = "https://evil.example"
CHAT = "https://chat.example"
KEYED = 'client_keys = ["env:CLIENT_A"]'
KEYS = {"CLIENT_A": "key-of-client-a-0123456789"}
ALLOWED = f'allowed_origins = ["{CHAT}", "vscode-webview://*", "null"]'


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as server:
        yield server


@pytest.fixture(scope="module")
def bare(simulated: Server) -> Iterator[Served]:
    with gateway(simulated) as running:
        yield running


@pytest.fixture(scope="module")
def opened(simulated: Server) -> Iterator[Served]:
    with gateway(simulated, settings=ALLOWED) as running:
        yield running


CROSS = {"sec-fetch-site": "cross-site"}
ATTEMPTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "fetch without preflight": (
        *("POST", PATH),
        {"origin": EVIL, "content-type": "text/plain", "sec-fetch-mode": "no-cors", **CROSS},
    ),
    "form": ("POST", PATH, {"origin": EVIL, "content-type": "text/plain", "sec-fetch-mode": "navigate", **CROSS}),
    "form of an old browser": ("POST", PATH, {"origin": EVIL, "content-type": "application/x-www-form-urlencoded"}),
    "frame in a sandbox": ("POST", PATH, {"origin": "null", "content-type": "text/plain", **CROSS}),
    "file": ("POST", PATH, {"origin": "file://", "content-type": "text/plain"}),
    "extension": ("POST", PATH, {"origin": "chrome-extension://abcdefghijklmnop", "content-type": "text/plain"}),
    "origin that begins like this machine": ("POST", PATH, {"origin": "http://127.0.0.1.evil.example"}),
    "origin that ends like this machine": ("POST", PATH, {"origin": "http://evil.example?localhost"}),
    "origin with a name before an at sign": ("POST", PATH, {"origin": "http://localhost@evil.example"}),
    "origin that is none": ("POST", PATH, {"origin": "http://[::1"}),
    "preflight": (
        *("OPTIONS", PATH),
        {"origin": EVIL, "access-control-request-method": "POST", "access-control-request-headers": "authorization"},
    ),
    "preflight for a private network": (
        *("OPTIONS", PATH),
        {"origin": EVIL, "access-control-request-method": "POST", "access-control-request-private-network": "true"},
    ),
    "image": ("GET", "/v1/files", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image", **CROSS}),
    "script": ("GET", "/v1/models", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script", **CROSS}),
    "link": ("GET", "/toolglot/requests", {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document", **CROSS}),
    "rebound name": ("POST", PATH, {"host": "rebound.evil.example:8400", "sec-fetch-site": "same-origin"}),
    "rebound name, seen as itself": ("GET", "/toolglot/requests", {"host": "rebound.evil.example"}),
    "rebound name of an address": ("GET", "/v1/models", {"host": "127.0.0.1.evil.example"}),
    "rebound address": ("GET", "/v1/models", {"host": "[::ffff:1.2.3.4]"}),
    "rebound name that looks like this machine": ("GET", "/v1/models", {"host": "localhost.evil.example"}),
}


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("has_other_pages", [False, True])
def test_a_foreign_page_reaches_no_upstream_and_reads_nothing(
    bare: Served, opened: Served, simulated: Server, name: str, has_other_pages: bool
) -> None:
    method, path, headers = ATTEMPTS[name]
    before = len(simulated.requests)
    if has_other_pages and headers.get("origin") == "null":
        return  # that gateway names it
    got = ask(
        opened if has_other_pages else bare, path, DATA if method == "POST" else None, method=method, headers=headers
    )
    assert got.status == 403
    assert not [header for header in got.headers if header.startswith("access-control-")]
    assert len(simulated.requests) == before


@pytest.mark.parametrize(
    "headers", [{}, {"origin": "http://localhost:3000"}, {"host": "[::1]:9"}, {"host": "localhost:9"}]
)
def test_programs_and_pages_of_this_machine_are_served(bare: Served, headers: dict[str, str]) -> None:
    got = ask(bare, PATH, DATA, headers=headers)
    assert got.status == 200
    assert "access-control-allow-origin" not in got.headers


def _preflight(served: Served, origin: str, **more: str) -> Got:
    headers = {"origin": origin, "access-control-request-method": "POST", **more}
    return ask(served, PATH, method="OPTIONS", key=None, headers=headers)


@pytest.mark.parametrize("origin", [CHAT, "vscode-webview://0a1b2c3d", "null"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_page_that_the_owner_named_is_served_and_may_read_the_answer(
    opened: Served, origin: str, stream: bool
) -> None:
    preflight = {"access-control-request-headers": "authorization,content-type,x-stainless-os"}
    got = _preflight(opened, origin, **preflight, **{"access-control-request-private-network": "true"})
    assert got.status == 200
    assert got.headers["access-control-allow-origin"] == origin
    assert got.headers["access-control-allow-headers"] == preflight["access-control-request-headers"]
    assert got.headers["access-control-allow-private-network"] == "true"
    assert "POST" in got.headers["access-control-allow-methods"]
    answer = ask(opened, PATH, {**BODY, "stream": stream}, headers={"origin": origin, **CROSS})
    assert answer.status == 200
    assert b"Hello." in answer.data or stream
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


def test_an_error_can_be_read_by_the_page_that_made_it(opened: Served) -> None:
    got = ask(opened, PATH, b"{", headers={"origin": CHAT})
    assert got.status == 400
    assert got.headers["access-control-allow-origin"] == CHAT


def test_names_of_headers_that_are_none_are_not_repeated(opened: Served) -> None:
    got = _preflight(opened, CHAT, **{"access-control-request-headers": "a;b<script>"})
    assert got.status == 200
    assert "access-control-allow-headers" not in got.headers


def test_with_keys_the_key_decides_and_only_named_pages_may_read(simulated: Server) -> None:
    key = KEYS["CLIENT_A"]
    with gateway(simulated, settings=f"{KEYED}\n{ALLOWED}", environ=KEYS) as served:
        assert _preflight(served, CHAT).headers["access-control-allow-origin"] == CHAT
        refused = ask(served, PATH, DATA, key=None, headers={"origin": CHAT})
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, CHAT)
        assert ask(served, PATH, DATA, key=key, headers={"origin": CHAT}).status == 200
        other = ask(served, PATH, DATA, key=key, headers={"origin": EVIL})
        assert other.status == 200
        assert "access-control-allow-origin" not in other.headers
        assert _preflight(served, EVIL).status == 401


@pytest.mark.parametrize(
    "origin",
    ["*", "http://*", "https://*:443", "chat.example", "https://chat.example/", "HTTPS://CHAT.example", "", "a b"],
)
def test_what_is_no_origin_is_a_mistake_of_the_configuration(origin: str) -> None:
    with pytest.raises(ConfigError, match="allowed_origins") as raised:
        config_for(None, settings=f"allowed_origins = {json.dumps([origin])}")
    assert "not the origin of a web page" in str(raised.value)

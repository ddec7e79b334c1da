"""A gateway starts while the server of its store is down, says so, and admits nobody whose key it cannot know."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateway.gateway_process import process
from support.gateway.http_client import ask, request_of
from support.hostile.store_faults import SERVERS, url_of
from support.hostile.store_proxy import StoreProxy
from support.waiting import wait_until
from toolglot import simulator
from toolglot.gateway.accounting.client_keys import new_key, save
from toolglot.simulator.serving import Server
from toolglot.store import open_store

MODEL = "openai_chat/gpt-4.1"
OWN = "a-key-of-the-configuration"


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with simulator.serve() as server:
        yield server


def stored_key(url: str) -> str:
    async def keep() -> str:
        store = open_store(url)
        key, secret = new_key("ci", now=0.0)
        await save(store, key)
        await store.close()
        return secret

    return asyncio.run(keep())


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("configured", [True, False])
def test_a_gateway_starts_while_its_store_is_down_and_uses_it_when_it_is_back(
    kind: str, configured: bool, simulated: Server, tmp_path: Path
) -> None:
    secret = stored_key(url_of(kind, tmp_path, SERVERS[kind]().port))
    settings = 'client_keys = ["env:OWN_KEY"]' if configured else ""
    with StoreProxy(SERVERS[kind]().port) as proxy:
        proxy.refuse = True
        url = url_of(kind, tmp_path, proxy.port)
        with process(tmp_path, simulated, settings=settings, store=url, environ={"OWN_KEY": OWN}) as gateway:
            log = " ".join("".join(gateway.log).split())
            assert "the store cannot be used: " in log
            assert "starting without it" in log
            assert "until it can, only keys of the configuration are admitted" in log
            assert "hunter2" not in log
            path, body = request_of("openai", MODEL)
            assert ask(gateway.url, "/health").status == 200
            assert ask(gateway.url, "/ready").status == 503
            assert ask(gateway.url, path, body, key=OWN).status == (200 if configured else 503)
            for key in (secret, "anything", ""):
                got = ask(gateway.url, path, body, key=key)
                assert got.status == 503, got.data
                assert b"cannot be read yet" in got.data
            proxy.refuse = False
            wait_until(lambda: ask(gateway.url, path, body, key=secret).status == 200)
            wait_until(lambda: ask(gateway.url, "/ready").status == 200)
            assert ask(gateway.url, path, body, key="anything").status == 401
            assert ask(gateway.url, path, body, key=OWN).status == (200 if configured else 401)

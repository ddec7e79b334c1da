"""A server of a store that says nothing stops no client, and its failures are counted and logged once.

Real servers behind a proxy. The limits on time are set so high that a request which waited for the store would not be
answered within a test.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, config_for
from support.hostile.store_faults import SERVERS, url_of
from support.hostile.store_proxy import StoreProxy
from support.waiting import wait_until
from toolglot import simulator
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.accounting.client_keys import FRESH_SECONDS, ClientKey, KeyRing, new_key, save
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.state.bounded_store import BoundedStore
from toolglot.gateway.state.store_watch import StoreWatch
from toolglot.simulator.serving import Server
from toolglot.store import open_store

PATIENT = 600.0
MODEL = "openai_chat/gpt-4.1"


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    SERVERS[name]()  # skips where there is none
    return name


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve() as server:
        yield server


def stored_key(url: str, **limits: int) -> tuple[ClientKey, str]:
    """A client key in the store at this address."""

    async def keep() -> tuple[ClientKey, str]:
        store = open_store(url)
        try:
            key, secret = new_key("ci", now=0.0, **limits)  # type: ignore[arg-type]
            await save(store, key)
            return key, secret
        finally:
            await store.close()

    return asyncio.run(keep())


def test_a_known_key_is_admitted_without_waiting_for_a_silent_server(kind: str, tmp_path: Path) -> None:
    async def run(proxy: StoreProxy) -> None:
        now, counted = [0.0], []
        opened = open_store(url_of(kind, tmp_path, proxy.port, patient=True))
        store = BoundedStore(opened, PATIENT)
        key, secret = new_key("ci", now=0.0)
        await save(opened, key)
        ring = KeyRing(store, monotonic=lambda: now[0], count=lambda: counted.append(1))
        await ring.start()
        proxy.hold()
        for _ in range(3):
            now[0] += FRESH_SECONDS
            assert await ring.admit(secret) == key.hashed
        proxy.cut()
        proxy.release()
        rereading = ring._rereading
        assert rereading is not None
        await rereading
        assert len(counted) <= 1, "one reading was in progress all the time"
        now[0] += FRESH_SECONDS
        assert await ring.admit(secret) == key.hashed
        await opened.close()

    with StoreProxy(SERVERS[kind]().port) as proxy:
        asyncio.run(run(proxy))


def test_a_check_of_a_silent_server_ends(kind: str, tmp_path: Path) -> None:
    async def run(proxy: StoreProxy) -> None:
        now = [0.0]
        opened = open_store(url_of(kind, tmp_path, proxy.port, patient=True))
        watch = StoreWatch(BoundedStore(opened, PATIENT), monotonic=lambda: now[0])
        assert await watch.problem() == ""
        proxy.hold()
        now[0] += 10
        assert await watch.problem() == "the store has not responded within 2 s"
        proxy.release()
        checking = watch._checking
        assert checking is not None
        await checking
        now[0] += 10
        assert await watch.problem() == ""
        await watch.close()
        await opened.close()

    with StoreProxy(SERVERS[kind]().port) as proxy:
        asyncio.run(run(proxy))


def test_a_gateway_says_that_it_is_not_ready_and_serves_known_keys(
    simulated: Server, kind: str, tmp_path: Path
) -> None:
    with StoreProxy(SERVERS[kind]().port) as proxy:
        url = url_of(kind, tmp_path, proxy.port, patient=True)
        _, secret = stored_key(url)
        config = config_for(simulated, settings=f'store = "{url}"\nstore_seconds = {PATIENT:g}')
        app = Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=10, form="off"))
        with running(app) as address:
            served = Served(address, app)
            path, body = request_of("openai", MODEL)
            assert ask(served, path, body, key=secret).status == 200
            assert ask(served, "/ready", key=secret).status == 200
            proxy.hold()
            wait_until(lambda: ask(served, "/ready", key=secret).status == 503)
            assert b"has not responded within 2 s" in ask(served, "/ready", key=secret).data
            for _ in range(3):
                assert ask(served, path, body, key=secret).status == 200
            proxy.release()
            wait_until(lambda: ask(served, "/ready", key=secret).status == 200)


def test_what_a_limited_key_may_use_is_unknown_during_an_outage_which_is_logged_once(
    simulated: Server, kind: str, tmp_path: Path
) -> None:
    log = io.StringIO()
    with StoreProxy(SERVERS[kind]().port) as proxy:
        url = url_of(kind, tmp_path, proxy.port)
        _, secret = stored_key(url, requests_per_minute=1000)
        config = config_for(simulated, settings=f'store = "{url}"\nstore_seconds = 1')
        app = Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=10, stream=log))
        with running(app) as address:
            served = Served(address, app)
            path, body = request_of("openai", MODEL)
            proxy.refuse = True
            proxy.cut()
            for _ in range(4):
                got = ask(served, path, body, key=secret)
                assert got.status in (429, 503), got.data
            assert log.getvalue().count("so the usage of this key is unknown; try again: ") == 1, "besides the requests"
            for _ in range(3):
                assert ask(served, "/v1/responses/resp_0123456789", key=secret).status == 503
            failures = [line for line in log.getvalue().splitlines() if "the store: " in line]
            assert len(failures) == len(set(failures)), "each failure is logged once"
            proxy.refuse = False
            wait_until(lambda: ask(served, path, body, key=secret).status == 200)
            metrics = ask(served, "/metrics", key=secret).data.decode()
            [line] = [line for line in metrics.splitlines() if line.startswith("toolglot_store_errors_total ")]
            assert float(line.split()[1]) >= 4

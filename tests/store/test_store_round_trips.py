"""How often a store on a server, and a request that is stored there, goes to the server and back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from support.hostile.store_faults import SERVERS, url_of
from support.hostile.store_proxy import StoreProxy
from toolglot import simulator
from toolglot.store import Store, open_store

LATER = 4e9
ROWS = {"a": b"1", "b": b"2"}


@pytest.mark.parametrize("kind", SERVERS)
def test_a_write_is_one_round_trip_and_so_is_a_read(kind: str, tmp_path: Path) -> None:
    async def run(proxy: StoreProxy) -> None:
        store: Store = open_store(url_of(kind, tmp_path, proxy.port))
        for _ in range(2):  # the driver prepares its statements
            await store.keep("k", "ann", ROWS, until=LATER)
            await store.find("k", "ann", ["a", "b", "c"])
        before = proxy.messages
        await store.keep("k", "ann", ROWS, until=LATER)
        assert proxy.messages == before + 1
        assert await store.find("k", "ann", ["a", "b", "c"]) == ROWS
        assert proxy.messages == before + 2
        await store.close()

    with StoreProxy(SERVERS[kind]().port) as proxy:
        asyncio.run(run(proxy))


@pytest.mark.parametrize("kind", SERVERS)
def test_a_turn_of_a_stored_conversation_is_three_round_trips(kind: str, tmp_path: Path) -> None:
    """The response that it continues, those before that one, and what is stored: the rest is in the background."""
    with (
        StoreProxy(SERVERS[kind]().port) as proxy,
        simulator.serve() as simulated,
        gateway(simulated, settings=f'store = "{url_of(kind, tmp_path, proxy.port)}"') as served,
    ):
        path, body = request_of("openai_responses", "openai_chat/gpt-4.1")
        previous, counts = None, []
        for _ in range(12):
            before = proxy.messages
            got = ask(served, path, {**body, "previous_response_id": previous})
            counts.append(proxy.messages - before)
            previous = got.body["id"]
        assert min(counts[3:]) == 3, counts

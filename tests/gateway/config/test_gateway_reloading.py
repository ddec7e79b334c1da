"""A configuration that changes while the gateway runs."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from support.gateway.http_client import ask, request_of
from support.waiting import wait_until
from toolglot.errors import InputError
from toolglot.gateway import Gateway, running
from toolglot.gateway.accounting.usage import read_usage
from toolglot.gateway.config.reloading import ConfigWatch, mark_of
from toolglot.gateway.config.settings import Config, read_config
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import open_store

ENV = {"KEY": "k", "HOME": "/nowhere"}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as server:
        yield server


def written(file: Path, simulated: Server, model: str, *more: str, store: str = ":memory:") -> None:
    """A file that leads `m` to a model; another mark than before, however fast it is written."""
    upstream, _, _ = model.partition("/")
    lines = [
        "[gateway]",
        f'store = "{store}"',
        *more,
        f"[upstreams.{upstream}]",
        f'url = "{simulated.url(upstream)}"',
        'key_env = "KEY"',
        "[models]",
        f'm = "{model}"',
    ]
    file.write_text("\n".join(lines))


class Reloaded:
    def __init__(self, url: str, log: io.StringIO) -> None:
        self.url = url
        self.log = log

    def until(self, happened: Callable[[], bool]) -> None:
        wait_until(happened)

    def answered_by(self) -> str:
        path, body = request_of("openai", "m")
        del body["tools"]
        got = ask(self.url, path, body)
        return got.headers.get("x-toolglot-upstream", f"{got.status} {got.data!r}")


@contextmanager
def watching(file: Path) -> Iterator[Reloaded]:
    log = io.StringIO()

    def reread() -> Config:
        return read_config(file, ENV)

    app = Gateway(reread(), request_log=RequestLog(max_remembered=10, form="text", stream=log), reread=reread)
    with running(app) as url:
        yield Reloaded(url, log)


def test_a_changed_file_comes_into_force_and_a_wrong_one_does_not(simulated: Server, tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    written(file, simulated, "mistral/mistral-large-latest")
    with watching(file) as served:
        assert served.answered_by() == "mistral/mistral-large-latest"
        written(file, simulated, "openai/gpt-4.1", "port = 9")
        served.until(lambda: "reloaded" in served.log.getvalue())
        assert served.answered_by() == "openai/gpt-4.1"
        assert "restart the gateway to change port" in served.log.getvalue()
        file.write_text("[gateway]\nprot = 1\n")
        served.until(lambda: "the old one stays" in served.log.getvalue())
        assert "prot" in served.log.getvalue()
        assert served.answered_by() == "openai/gpt-4.1"
        os.unlink(file)  # noqa: PTH108
        served.until(lambda: served.log.getvalue().count("the old one stays") == 2)
        assert served.answered_by() == "openai/gpt-4.1"


def test_an_answer_that_has_begun_is_ended_by_the_upstream_that_began_it(simulated: Server, tmp_path: Path) -> None:
    simulated.script(rules=[{"reply": {"text": "word " * 60}}], pace=0.05)
    file = tmp_path / "toolglot.toml"
    written(file, simulated, "mistral/mistral-large-latest")

    async def run() -> bytes:
        with watching(file) as served:
            path, body = request_of("anthropic", "m", stream=True)
            pending = asyncio.create_task(asyncio.to_thread(ask, served.url, path, body))
            await asyncio.to_thread(served.until, lambda: bool(simulated.requests))
            written(file, simulated, "openai/gpt-4.1")
            await asyncio.to_thread(served.until, lambda: "reloaded" in served.log.getvalue())
            return (await pending).data

    assert b"message_stop" in asyncio.run(run())


def test_usage_is_stored_at_the_end_also_what_was_counted_before_a_reload(simulated: Server, tmp_path: Path) -> None:
    file, store = tmp_path / "toolglot.toml", tmp_path / "store.db"
    written(file, simulated, "mistral/mistral-large-latest", store=str(store))
    config = read_config(file, ENV)

    async def run() -> float:
        app = Gateway(config, request_log=RequestLog(max_remembered=10, form="off"))
        path, body = request_of("openai", "m")
        async with app:
            for _ in range(2):
                async with AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as client:
                    assert (await client.post(path, json=body)).status_code == 200
                await app.reload(config)
        opened = open_store(str(store))
        try:
            return sum(row.amounts.requests for row in await read_usage(opened))
        finally:
            await opened.close()

    assert asyncio.run(run()) == 2


def test_a_watch_looks_only_when_the_file_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("a")
    seen: list[str] = []

    def read() -> Config:
        raise InputError("no", path="c.toml")

    async def take(_: Config) -> None:
        raise AssertionError

    async def run() -> None:
        watch = ConfigWatch(str(file), read, take, seen.append, seconds=0.005)
        task = asyncio.create_task(watch.run())
        await asyncio.sleep(0.05)
        assert seen == []
        file.write_text("ab")
        while not seen:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(run())
    assert len(seen) == 1
    assert mark_of(str(tmp_path / "nothing")) is None

"""Requests as they run: what is seen of them, by whom, and what it costs."""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.gateway.gateway_process import process
from support.inspector.inspected_gateway import API, KEYED, KEYS, gateway_of, request_body, send
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway import running
from toolglot.gateway.app import Gateway
from toolglot.gateway.http import worker_links
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.inspector import live_feed
from toolglot.gateway.inspector.capturing import CaptureBudget, CapturedReply
from toolglot.gateway.inspector.live_feed import LiveFeed, Watcher
from toolglot.gateway.inspector.rows import Row, row_of
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.simulator import serve


class Recorder(Watcher):
    """A watcher that notes each event at once."""

    def __init__(self, client: str | None = None) -> None:
        super().__init__(client, lambda _: "")
        self.seen: list[Row] = []
        self.dropped: list[str] = []

    def put(self, id: str, what: RequestRecord | Row) -> None:  # noqa: ARG002 - as its base
        self.seen.append(row_of(what) if isinstance(what, RequestRecord) else what)

    def drop(self, ids: Iterable[str]) -> None:
        self.dropped.extend(ids)


def recorded(body: dict[str, Any], *, inspector: str = "") -> tuple[list[Row], list[str]]:
    """What a watcher sees of a request that is then purged."""
    recorder = Recorder()

    async def run() -> None:
        async with gateway_of(inspector) as app:
            app.feed.watchers.append(recorder)
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                await send(client, body)
                await asyncio.gather(*app._placing)
                await client.delete("/toolglot/requests")

    asyncio.run(run())
    return recorder.seen, recorder.dropped


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_seen_as_it_begins_is_routed_replies_and_ends(stream: bool) -> None:
    seen, dropped = recorded(request_body(stream=stream))
    assert len({row["id"] for row in seen}) == 1
    assert [row["state"] for row in seen] == ["running"] * 3 + ["done"] * 2
    begun, routed, replied, ended, placed = seen
    assert (begun["upstream"], begun["model"]) == (None, None)
    assert (routed["upstream"], routed["sent_model"]) == ("openai", "gpt-5.5")
    assert replied["target"] == "openai"
    assert (ended["status"], ended["conversation"]) == (200, None)
    assert placed["conversation"].startswith("c_")
    assert (placed["title"], placed["turns"]) == ("hello", 1)
    assert dropped == [ended["id"]]


def test_a_request_that_fails_is_seen_to_fail() -> None:
    seen, _ = recorded(request_body(model="nothing/of-this-name"))
    assert seen[-1]["state"] == "failed"
    assert seen[-1]["status"] == 404
    assert seen[-1]["error"]


def test_what_is_not_kept_is_still_seen_as_it_runs() -> None:
    seen, dropped = recorded(request_body(), inspector='keep = "off"')
    assert seen[0]["state"] == "running"
    assert seen[-1]["state"] == "done"
    assert dropped == []


@pytest.mark.parametrize(("purged", "is_kept"), [("b", True), ("a", False), (None, False)])
def test_a_request_that_runs_during_a_purge_is_forgotten_when_it_ends(purged: str | None, is_kept: bool) -> None:
    recorder = Recorder()

    async def run() -> list[str]:
        async with gateway_of() as app:
            app.feed.watchers.append(recorder)
            record = record_of("tg_1")
            record.arrive(b"{}")
            app.shutdown.begin(record, None)
            app.request_log.purge(purged)
            app.shutdown.end(record)
            app.request_log.end(record)
            app.feed.end(record)
            await asyncio.gather(*app._placing)
            return [each.id for each in app.request_log.latest(None)]

    assert asyncio.run(run()) == (["tg_1"] if is_kept else [])
    assert recorder.dropped == ([] if is_kept else ["tg_1"])
    assert bool(recorder.seen) == is_kept


# --- what it costs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["off", "reports"])
def test_nothing_is_done_for_a_request_that_nobody_watches(keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    for owner, name in (
        (RequestRecord, "watch"),
        (LiveFeed, "publish"),
        (LiveFeed, "end"),
        (LiveFeed, "show"),
        (Gateway, "_place"),
    ):
        monkeypatch.setattr(owner, name, lambda *_, name=name: called.append(name))
    for name in ("row_of", "facts_of", "capture"):
        module = "live_feed" if name == "row_of" else "kept_requests"
        monkeypatch.setattr(f"toolglot.gateway.inspector.{module}.{name}", lambda *_, name=name: called.append(name))

    async def run() -> tuple[int, int]:
        async with gateway_of(f'keep = "{keep}"') as app:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                await send(client)
                kept = app.request_log.latest(None)
                assert not any(record.captured or record.request.body for record in kept)
                return len(kept), len(app.fleet.parts(1, None))

    assert asyncio.run(run()) == ((0, 0) if keep == "off" else (1, 1))
    assert called == []


def watcher_of(feed: LiveFeed, client: str | None = None) -> Watcher:
    watcher = feed.watch(client)
    assert watcher is not None
    return watcher


def record_of(id: str, client: str = "a") -> RequestRecord:
    return RequestRecord(id, "POST", "/v1/messages", action="generate", client=client)


def test_events_of_one_request_are_joined() -> None:
    feed = LiveFeed()
    watcher = watcher_of(feed)
    record = record_of("1")
    for _ in range(50):
        feed.publish(record)
    events = asyncio.run(watcher.events(0))
    assert events is not None
    assert len(events) == 1


def test_a_watcher_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "MAX_WAITING", 3)
    feed = LiveFeed()
    slow, quick = watcher_of(feed), watcher_of(feed)
    for number in range(5):
        feed.publish(record_of(str(number)))
        assert asyncio.run(quick.events(0)) != []
    assert asyncio.run(slow.events(0)) is None
    assert slow.is_cut
    assert not quick.is_cut
    assert not slow._waiting


def test_the_number_of_watchers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "MAX_WATCHERS", 2)
    feed = LiveFeed()
    first = watcher_of(feed)
    watcher_of(feed)
    assert feed.watch(None) is None
    feed.leave(first)
    assert feed.watch(None) is not None


def test_a_watcher_sees_its_own_client_only() -> None:
    feed = LiveFeed()
    own, other, all_ = watcher_of(feed, "a"), watcher_of(feed, "b"), watcher_of(feed)
    feed.publish(record_of("1", "a"))
    feed.drop(["2"], "b")
    names = [[name for name, _ in asyncio.run(each.events(0)) or ()] for each in (own, other, all_)]
    assert names == [["row"], ["drop"], ["row", "drop"]]


# --- between workers --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
def test_nothing_is_missed_once_the_workers_are_followed(count: int) -> None:
    """What begins at the very moment at which the page is told so is seen, in each of them."""

    async def run(folder: str) -> set[str]:
        feeds, workers = [LiveFeed() for _ in range(count)], [WorkerLinks(folder, number) for number in range(count)]
        for worker, feed in zip(workers, feeds, strict=True):
            worker.feed = feed
            await worker.start(RequestLog(max_remembered=1, form="off"), bytes)
        page, is_followed = watcher_of(feeds[0]), asyncio.Event()
        following = asyncio.create_task(workers[0].follow(None, page.take, is_followed))
        await is_followed.wait()
        for number, feed in enumerate(feeds):
            feed.publish(record_of(str(number)))
        seen: set[str] = set()
        async with asyncio.timeout(HANG_SECONDS):
            while len(seen) < count:
                seen |= {data["id"] for _, data in await page.events(HANG_SECONDS) or ()}
        following.cancel()
        for feed in feeds:
            feed.close()
        for worker in workers:
            await worker.close()
        return seen

    with tempfile.TemporaryDirectory() as folder:  # short: the path of a socket may have about 100 characters
        assert asyncio.run(run(folder)) == {str(number) for number in range(count)}


def test_a_worker_that_does_not_answer_does_not_hold_the_page_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_links, "WORKER_SECONDS", 0.01)

    async def run(folder: str) -> None:
        is_over = asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await is_over.wait()
            writer.close()

        server = await asyncio.start_unix_server(silent, Path(folder) / "1.sock")
        is_followed = asyncio.Event()
        following = asyncio.create_task(WorkerLinks(folder, 0).follow(None, lambda _: None, is_followed))
        async with asyncio.timeout(HANG_SECONDS):
            await is_followed.wait()
        following.cancel()
        is_over.set()
        server.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


# --- over a connection ------------------------------------------------------------------------------


class Page:
    """A page that reads the events."""

    def __init__(self, url: str, query: str = "", key: str = "any") -> None:
        self.rows: list[Row] = []
        self.pieces: list[dict[str, Any]] = []
        self.is_open = False
        self.is_over = False
        self._url = f"{url}{API}/events{query}"
        self._key = key
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        headers = {"authorization": f"Bearer {self._key}"}
        try:
            with httpx.stream("GET", self._url, headers=headers, timeout=HANG_SECONDS) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                name = ""
                for line in response.iter_lines():
                    self.is_open = True
                    if line.startswith("event: "):
                        name = line[7:]
                    elif line.startswith("data: "):
                        (self.rows if name == "row" else self.pieces).append(json.loads(line[6:]))
        except httpx.HTTPError:
            pass
        finally:
            self.is_over = True

    def wait(self) -> Page:
        wait_until(lambda: self.is_open)
        return self

    def done(self) -> set[str]:
        """The requests that it saw end, with their conversations."""
        return {row["id"] for row in self.rows if row["state"] == "done" and row["conversation"]}


def post(url: str, key: str = "any", **fields: Any) -> str:
    response = httpx.post(
        f"{url}/v1/messages", json=request_body(**fields), headers={"x-api-key": key}, timeout=HANG_SECONDS
    )
    return response.headers["x-toolglot-request"]


@pytest.fixture
def keyed() -> Iterator[str]:
    with running(gateway_of('keep = "bodies"', keys=KEYED)) as url:
        yield url


def test_each_page_gets_the_events_of_its_key(keyed: str) -> None:
    boss, bob = Page(keyed, key=KEYS["KEY_ADMIN"]).wait(), Page(keyed, key=KEYS["KEY_B"]).wait()
    of_alice, of_bob = post(keyed, KEYS["KEY_A"]), post(keyed, KEYS["KEY_B"])
    wait_until(lambda: boss.done() == {of_alice, of_bob} and bob.done() == {of_bob})
    assert {row["client"] for row in bob.rows} == {"bob"}


def test_the_end_of_the_gateway_ends_the_events() -> None:
    with running(gateway_of()) as url:
        page = Page(url).wait()
    wait_until(lambda: page.is_over)


def test_too_many_pages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "MAX_WATCHERS", 1)
    with running(gateway_of()) as url:
        Page(url).wait()
        assert httpx.get(f"{url}{API}/events").status_code == 503


def test_a_reply_can_be_watched_while_it_runs() -> None:
    async def run() -> list[Any]:
        async with gateway_of() as app:
            record = record_of("tg_1")
            record.captured = CapturedReply(CaptureBudget(lambda: 10_000), record.times.began)
            app.shutdown.begin(record, None)
            assert app._services is not None
            stream = app._inspector_of(app._services)._stream_events("tg_1", None)
            found = []
            for pieces in ((b"one ", "tw\u00f6 ".encode()), (), (b"three",)):
                for piece in pieces:
                    record.captured.send(piece)
                found.append(await anext(stream))
            record.times.end()
            return [*found, *[event async for event in stream]]

    events = [json.loads(event.split(b"data: ")[1]) if event else None for event in asyncio.run(run())]
    assert events == [
        {"id": "tg_1", "text": "one tw\u00f6 "},
        None,
        {"id": "tg_1", "text": "three"},
        {"id": "tg_1", "text": "", "end": True},
    ]


def test_the_end_of_a_watched_reply_is_shown() -> None:
    with running(gateway_of()) as url:
        id = post(url, stream=True)
        page = Page(url, f"?request={id}")
        wait_until(lambda: page.pieces == [{"id": id, "text": "", "end": True}])


def test_several_workers_show_one_list(tmp_path: Path) -> None:
    with serve() as simulated, process(tmp_path, simulated, "--workers", "2") as gateway:
        wait_until(lambda: len(gateway.events("start")) == 2)  # of a worker that starts later, a page misses a second
        page = Page(gateway.url).wait()

        def send_one() -> bool:
            post(gateway.url, model="anthropic/claude-opus-4-5")
            of_workers = {row["id"] for row in httpx.get(f"{gateway.url}{API}/requests").json()["rows"]}
            return len(page.done()) >= 4 and page.done() <= of_workers

        wait_until(send_one)
        listed = httpx.get(f"{gateway.url}{API}/requests?limit=3").json()
        more = httpx.get(f"{gateway.url}{API}/requests", params={"before": listed["next"]}).json()
        ids = [row["id"] for row in (*listed["rows"], *more["rows"])]
        assert len(ids) == len({*ids}) >= 4
        for id in ids:  # whichever worker has it
            assert httpx.get(f"{gateway.url}{API}/requests/{id}").json()["row"]["status"] == 200
            again = httpx.post(f"{gateway.url}{API}/requests/{id}/replay", json={"model": "openai_chat/gpt-4.1"})
            assert again.json()["id"] not in ids
        wait_until(lambda: len(page.done()) == 2 * len(ids))
        assert httpx.delete(f"{gateway.url}{API}/requests").json()["purged"] == 2 * len(ids)
        assert httpx.get(f"{gateway.url}{API}/requests").json()["rows"] == []

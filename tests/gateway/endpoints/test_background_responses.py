"""Responses that run in the background: polled, followed, cancelled, and never in progress for ever."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import openai
import pytest

from support.gateway.gateway_process import process
from support.gateway.http_client import KEY, Got, ask
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import END, EVENTS, chunk, delta, hostile
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway.state.background_store import LEASE_SECONDS, BackgroundStore
from toolglot.simulator import Server, serve
from toolglot.store import SqliteStore

PATH: Final = "/v1/responses"
CLAUDE: Final = "anthropic/claude-haiku-4-5"
OWN: Final = "openai_responses/gpt-5.5"
MODELS: Final = (CLAUDE, OWN, "openai_chat/gpt-4.1", "gemini/gemini-2.5-flash", "ollama/qwen3")
ENDED: Final = ("completed", "failed", "cancelled", "incomplete")
HELD: Final[dict[str, Any]] = {"model": "held/held", "input": "x", "background": True}


class Gates:
    """An upstream whose streams go on when a test says so."""

    def __init__(self) -> None:
        self.open = threading.Semaphore(0)
        self.begun = 0
        self.left = 0

    async def way(self, _: bytes) -> AsyncIterator[bytes]:
        self.begun += 1
        try:
            yield EVENTS + chunk(delta("One"))
            while not self.open.acquire(blocking=False):
                await asyncio.sleep(0.01)
                yield chunk(b": still here\n\n")
            yield chunk(delta(" two.")) + chunk(END) + b"0\r\n\r\n"
        finally:
            self.left += 1


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def served(simulated: Server, gates: Gates) -> Iterator[Served]:
    with held_gateway(simulated, gates) as running:
        yield running
        gates.open.release(1000)


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=served.url + "/v1", api_key=KEY) as own:
        yield own


@contextlib.contextmanager
def held_gateway(simulated: Server, gates: Gates, settings: str = "", **more: Any) -> Iterator[Served]:
    with hostile({"held": gates.way}) as provider:
        own = f'[upstreams.held]\nurl = "{provider.url}"'
        with gateway(simulated, settings=settings, upstreams=own, **more) as running:
            yield running


def polled(served: Served, id: str, **more: Any) -> dict[str, Any]:
    """The response once it is over."""
    found: list[dict[str, Any]] = []

    def is_over() -> bool:
        found.append(ask(served, f"{PATH}/{id}", **more).body)
        return found[-1]["status"] in ENDED

    wait_until(is_over)
    return found[-1]


@pytest.mark.parametrize("model", MODELS)
def test_a_response_is_polled_until_it_is_complete_and_continued(
    served: Served, client: openai.OpenAI, model: str
) -> None:
    first = client.responses.create(model=model, input="One.", background=True, metadata={"a": "b"})
    assert first.status in ("queued", "in_progress")
    assert first.background is True
    wait_until(lambda: client.responses.retrieve(first.id).status == "completed")
    done = client.responses.retrieve(first.id)
    assert (done.id, done.background, done.metadata) == (first.id, True, {"a": "b"})
    assert done.output_text == "You said: One."
    assert [item.type for item in client.responses.input_items.list(first.id)] == ["message"]
    second = client.responses.create(model=model, input="Two.", previous_response_id=first.id)
    assert second.output_text == "You said: Two."
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a completed response"):
        client.responses.cancel(first.id)
    assert {record.response.status for record in served.records} == {200, 400}


@pytest.mark.parametrize("model", MODELS)
def test_its_stream_is_followed_from_any_event_on_and_after_its_end(
    served: Served, client: openai.OpenAI, model: str
) -> None:
    events = list(client.responses.create(model=model, input="One.", background=True, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    id = events[-1].response.id
    polled(served, id)
    wait_until(lambda: len(list(client.responses.retrieve(id, stream=True))) == len(events))
    for after in (-1, 0, 3, len(events) - 2, len(events)):
        again = list(client.responses.retrieve(id, stream=True, starting_after=after))
        assert [event.to_dict() for event in again] == [event.to_dict() for event in events[after + 1 :]]


def test_a_client_that_disconnects_ends_nothing_and_comes_back(
    served: Served, client: openai.OpenAI, gates: Gates
) -> None:
    stream = client.responses.create(**HELD, stream=True)
    event = next(iter(stream))
    while event.type != "response.output_text.delta":
        event = next(iter(stream))
    stream.close()
    id = next(iter(served.app._services.background._runs))[1]  # type: ignore[union-attr]
    assert ask(served, f"{PATH}/{id}").body["status"] == "in_progress"
    follower = client.responses.retrieve(id, stream=True, starting_after=event.sequence_number)
    gates.open.release()
    rest = list(follower)
    assert rest[0].sequence_number == event.sequence_number + 1
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "One two."


def test_what_runs_is_in_progress_and_can_be_cancelled(served: Served, gates: Gates) -> None:
    created = ask(served, PATH, HELD).body
    assert (created["status"], created["output"], created["background"]) == ("queued", [], True)
    id = created["id"]
    wait_until(lambda: ask(served, f"{PATH}/{id}").body["status"] == "in_progress")
    assert ask(served, f"{PATH}/{id}/input_items").body["data"][0]["content"][0]["text"] == "x"
    assert ask(served, f"{PATH}/{id}/cancel", b"").body["status"] == "cancelled"
    wait_until(lambda: gates.left == 1)  # the upstream is not called any more
    for _ in range(2):  # again and again
        assert ask(served, f"{PATH}/{id}/cancel", b"").body["status"] == "cancelled"
        wait_until(lambda: served.app.open == 0)
    assert ask(served, f"{PATH}/{id}").body["status"] == "cancelled"
    follow = ask(served, f"{PATH}/{id}?stream=true")
    assert "response.completed" not in [event["type"] for event in follow.events]


def test_one_that_is_deleted_is_ended_and_gone(served: Served, gates: Gates) -> None:
    for is_over in (False, True):
        id = ask(served, PATH, HELD).body["id"]
        if is_over:
            gates.open.release()
            polled(served, id)
        assert ask(served, f"{PATH}/{id}", method="DELETE").body == {"id": id, "object": "response", "deleted": True}
        assert ask(served, f"{PATH}/{id}").status == 404
        assert ask(served, f"{PATH}/{id}?stream=true").status == 404


@pytest.mark.parametrize("model", [CLAUDE, OWN])
def test_a_request_that_fails_is_an_error_or_a_failed_response(served: Served, simulated: Server, model: str) -> None:
    simulated.fault(400)
    got = ask(served, PATH, {"model": model, "input": "x", "background": True})
    if got.status == 200:
        failed = polled(served, got.body["id"])
        assert failed["status"] == "failed"
        assert failed["error"]["message"]
        assert ask(served, f"{PATH}/{got.body['id']}?stream=true").events[-1]["type"] == "response.failed"
    else:
        assert (model, got.status) == (OWN, 400)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"model": "nobody/none"}, 404),
        ({"store": False}, 400),
        ({"input": 7}, 400),
        ({"previous_response_id": "resp_no"}, 400),
    ],
)
def test_what_is_wrong_is_refused_before_it_runs(served: Served, fields: dict[str, Any], status: int) -> None:
    got = ask(served, PATH, {**HELD, "model": CLAUDE, **fields})
    assert got.status == status
    assert got.body["error"]["message"]


def test_without_a_store_there_is_no_background(simulated: Server, gates: Gates) -> None:
    with held_gateway(simulated, gates, 'store = "off"') as served:
        got = ask(served, PATH, HELD)
        assert got.status == 400
        assert "store" in got.body["error"]["message"]


@pytest.mark.parametrize("path", ["resp_no", "resp_no?stream=true", "resp_no/input_items", "resp_no/cancel"])
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    got = ask(served, f"{PATH}/{path}", b"" if path.endswith("cancel") else None)
    assert got.status == 404


def test_a_response_that_did_not_run_in_the_background_has_no_stream(served: Served) -> None:
    id = ask(served, PATH, {"model": CLAUDE, "input": "x"}).body["id"]
    assert ask(served, f"{PATH}/{id}?stream=true").body["error"]["param"] == "stream"
    id = ask(served, PATH, {**HELD, "model": CLAUDE}).body["id"]
    polled(served, id)
    assert ask(served, f"{PATH}/{id}?stream=true&starting_after=x").body["error"]["param"] == "starting_after"


def test_a_key_finds_nothing_of_another(simulated: Server, gates: Gates) -> None:
    other = "another-key-of-some-length"
    settings = 'client_keys = ["env:ONE", "env:TWO"]'
    with held_gateway(simulated, gates, settings, environ={"ONE": KEY, "TWO": other}) as served:
        id = ask(served, PATH, HELD).body["id"]
        for wanted in (f"{PATH}/{id}", f"{PATH}/{id}?stream=true", f"{PATH}/{id}/input_items"):
            assert ask(served, wanted, key=other).status == 404
        assert ask(served, f"{PATH}/{id}/cancel", b"", key=other).status == 404
        assert ask(served, f"{PATH}/{id}", method="DELETE", key=other).status == 404
        gates.open.release()
        assert polled(served, id)["status"] == "completed"
        assert ask(served, f"{PATH}/{id}?stream=true", key=other).status == 404


def test_middleware_limits_and_the_log_see_it_once(served: Served) -> None:
    id = ask(served, PATH, {**HELD, "model": CLAUDE}).body["id"]
    polled(served, id)
    upstream = [record for record in served.records if record.calls.count]
    assert len(upstream) == 1
    assert upstream[0].reply.usage


# --- when its gateway is gone -----------------------------------------------------------------------


def test_one_whose_gateway_was_killed_is_failed_and_not_in_progress_for_ever(
    simulated: Server, gates: Gates, tmp_path: Path
) -> None:
    with hostile({"held": gates.way}) as provider:
        own = f'[upstreams.held]\nurl = "{provider.url}"'
        with process(tmp_path, simulated, settings=own) as first:
            id = ask(first.url, PATH, HELD).body["id"]
            wait_until(lambda: ask(first.url, f"{PATH}/{id}").body["status"] == "in_progress")
            first.popen.kill()
            first.popen.wait()
        with process(tmp_path, simulated, settings=own) as second:
            found = polled_at(second.url, id)
            assert found["status"] == "failed"
            assert "stopped" in found["error"]["message"]
            assert ask(second.url, f"{PATH}/{id}?stream=true").events[-1]["type"] == "response.failed"
        gates.open.release(10)


def test_one_that_the_gateway_does_not_wait_for_is_failed(simulated: Server, gates: Gates, tmp_path: Path) -> None:
    with hostile({"held": gates.way}) as provider:
        own = f'drain_seconds = 0\n[upstreams.held]\nurl = "{provider.url}"'
        with process(tmp_path, simulated, settings=own) as first:
            id = ask(first.url, PATH, HELD).body["id"]
            wait_until(lambda: ask(first.url, f"{PATH}/{id}").body["status"] == "in_progress")
        with process(tmp_path, simulated, settings=own) as second:
            assert ask(second.url, f"{PATH}/{id}").body["status"] == "failed"
        gates.open.release(10)


def test_one_that_another_gateway_runs_is_found_cancelled_and_followed(
    simulated: Server, gates: Gates, tmp_path: Path
) -> None:
    store = str(tmp_path / "shared.db")
    with hostile({"held": gates.way}) as provider, contextlib.ExitStack() as stack:
        own = f'[upstreams.held]\nurl = "{provider.url}"'
        folders = [tmp_path / name for name in ("a", "b")]
        for folder in folders:
            folder.mkdir()
        first, second = [
            stack.enter_context(process(folder, simulated, settings=own, store=store)) for folder in folders
        ]
        ids = [ask(first.url, PATH, HELD).body["id"] for _ in range(2)]
        assert ask(second.url, f"{PATH}/{ids[0]}").body["status"] in ("queued", "in_progress")
        assert ask(second.url, f"{PATH}/{ids[0]}/cancel", b"").body["status"] == "cancelled"
        wait_until(lambda: gates.left == 1)
        wait_until(lambda: ask(first.url, f"{PATH}/{ids[0]}").body["status"] == "cancelled")
        gates.open.release()
        events = ask(second.url, f"{PATH}/{ids[1]}?stream=true").events
        assert events[-1]["type"] == "response.completed"
        assert ask(second.url, f"{PATH}/{ids[1]}").body["status"] == "completed"


def polled_at(url: str, id: str) -> dict[str, Any]:
    found: list[Got] = []

    def is_over() -> bool:
        found.append(ask(url, f"{PATH}/{id}"))
        return found[-1].body["status"] in ENDED

    wait_until(is_over)
    body: dict[str, Any] = found[-1].body
    return body


def test_one_is_alive_as_long_as_its_gateway_says_so() -> None:
    now = 1000.0

    async def play() -> None:
        nonlocal now
        rows = BackgroundStore(SqliteStore(":memory:", clock=lambda: now), seconds=3600, clock=lambda: now)
        await rows.keep("me", {"id": "resp_1", "status": "in_progress"}, [])
        for _ in range(5):
            now += LEASE_SECONDS - 1
            found = await rows.find("me", "resp_1")
            assert found is not None
            assert found.body["status"] == "in_progress"
            await rows.keep("me", found.body, [])
        now += LEASE_SECONDS
        found = await rows.find("me", "resp_1")
        assert found is not None
        assert (found.body["status"], found.is_over) == ("failed", True)
        assert await rows.find("you", "resp_1") is None
        now += 3600
        assert await rows.find("me", "resp_1") is None

    asyncio.run(asyncio.wait_for(play(), HANG_SECONDS))


def test_half_of_a_surrogate_pair_is_stored_and_returned_as_legal_text(simulated: Server) -> None:
    async def write_half(_: bytes) -> AsyncIterator[bytes]:
        half = delta("Smile HALF.").replace(b"HALF", rb"\ud83d")
        yield EVENTS + chunk(half) + chunk(END) + b"0\r\n\r\n"

    with (
        hostile({"held": write_half}) as provider,
        gateway(simulated, upstreams=f'[upstreams.held]\nurl = "{provider.url}"') as served,
    ):
        done = polled(served, ask(served, PATH, HELD).body["id"])
        assert done["status"] == "completed"
        assert [part["text"] for item in done["output"] for part in item["content"]] == ["Smile \ufffd."]
        again = ask(
            served, PATH, {"model": "held/held", "input": "y", "stream": True, "previous_response_id": done["id"]}
        )
        assert again.status == 200, again.body

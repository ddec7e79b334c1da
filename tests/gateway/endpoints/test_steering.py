"""Steering over a WebSocket: user input for a response that runs reaches its successor, or comes back."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import openai
import pytest
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter

from support.gateway.http_client import KEY
from support.gateway.served_gateway import Served, gateway
from support.gateway.socket_client import SocketClient, socket_to
from support.hostile.hostile_upstream import END, EVENTS, chunk, delta, hostile, whole
from support.waiting import HANG_SECONDS
from toolglot.gateway.endpoints.steering import MAX_STEERS
from toolglot.simulator import Server, serve

IS_LEGAL: Final = TypeAdapter[Any](ResponsesServerEvent).validate_python
CALL: Final = {
    "choices": [
        {
            "index": 0,
            "delta": {
                "tool_calls": [
                    {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ]
            },
            "finish_reason": "tool_calls",
        }
    ]
}


class Gates:
    """An upstream whose streams end when a test says so, and what it was sent."""

    def __init__(self) -> None:
        self.open = threading.Semaphore(0)
        self.bodies: list[dict[str, Any]] = []

    async def _wait(self, head: bytes) -> None:
        self.bodies.append(json.loads(head.partition(b"\r\n\r\n")[2] or b"{}"))
        await asyncio.to_thread(self.open.acquire, True, HANG_SECONDS)

    async def text(self, head: bytes) -> AsyncIterator[bytes]:
        yield EVENTS + chunk(delta("One"))
        await self._wait(head)
        yield chunk(delta(" two.")) + chunk(END) + b"0\r\n\r\n"

    async def call(self, head: bytes) -> AsyncIterator[bytes]:
        yield EVENTS + chunk(delta("One"))
        await self._wait(head)
        yield chunk(b"data: " + json.dumps(CALL).encode() + b"\n\n") + chunk(END) + b"0\r\n\r\n"

    async def broken(self, head: bytes) -> AsyncIterator[bytes]:
        yield EVENTS + chunk(delta("One"))
        await self._wait(head)
        yield chunk(b'data: {"error": {"message": "It broke.", "type": "server_error"}}\n\n') + b"0\r\n\r\n"

    async def refused(self, head: bytes) -> AsyncIterator[bytes]:
        if b"now please" in head or len(self.bodies) > 0:
            yield whole(b'{"error": {"message": "No.", "type": "invalid_request_error"}}', 400)
            return
        async for data in self.text(head):
            yield data


@pytest.fixture
def gates() -> Iterator[Gates]:
    found = Gates()
    yield found
    found.open.release(1000)


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def served(simulated: Server, gates: Gates) -> Iterator[Served]:
    ways = {name: getattr(gates, name) for name in ("text", "call", "broken", "refused")}
    own = '[upstreams.held]\nurl = "{}"'
    with hostile(ways) as provider, gateway(simulated, upstreams=own.format(provider.url)) as running:
        yield running
        gates.open.release(1000)


def begun(client: SocketClient, model: str, **more: Any) -> str:
    """The id of a response that has begun."""
    client.create(model, "Go.", store=False, **more)
    id, event = "", client.event()
    while event["type"] != "response.output_text.delta":
        id = event["response"]["id"] if "response" in event else id
        event = client.event()
    return id


def steered(client: SocketClient, id: str, words: Any = "Now, please.", **more: Any) -> dict[str, Any]:
    client.send({"type": "response.steer", "previous_response_id": id, "input": words, **more})
    event = client.event()
    while not event["type"].startswith("response.steer"):
        event = client.event()
    assert IS_LEGAL(event)
    return event


def messages(served: Served) -> list[Any]:
    """What was sent upstream last."""
    records = [record for record in served.app.request_log.latest(None) if record.sent.body]
    sent: list[Any] = json.loads(records[0].sent.body)["messages"]
    return sent


@pytest.mark.parametrize("lane", [None, "main"])
@pytest.mark.parametrize(
    "words", ["Now, please.", [{"role": "user", "content": [{"type": "input_text", "text": "Now, please."}]}]]
)
def test_input_for_a_response_that_runs_comes_to_its_successor(
    served: Served, gates: Gates, lane: str | None, words: Any
) -> None:
    named = {"stream_id": lane} if lane else {}
    with socket_to(served) as client:
        id = begun(client, "held/text", **named)
        accepted = steered(client, id, words)
        assert accepted["type"] == "response.steer.accepted"
        assert accepted["steer"]["previous_response_id"] == id
        assert accepted.get("stream_id") == lane
        second = steered(client, id, "And quickly.")
        assert second["steer"]["id"] != accepted["steer"]["id"]
        gates.open.release()
        assert client.until_end(lane)[-1]["response"]["id"] == id
        events = client_events(client, lane, gates)
        assert events[0]["type"] == "response.created"
        assert events[-1]["type"] == "response.completed"
        assert events[-1]["response"]["id"] != id
    texts = [message["content"] for message in messages(served)]
    assert [json.dumps(text) for text in texts][-2:] == ['"Now, please."', '"And quickly."']
    assert json.dumps(texts).count("Now, please.") == 1


def client_events(client: SocketClient, lane: str | None, gates: Gates) -> list[dict[str, Any]]:
    gates.open.release()
    return client.until_end(lane)


def test_what_waits_for_results_keeps_the_input_until_they_come(served: Served, gates: Gates) -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    with socket_to(served) as client:
        id = begun(client, "held/call", tools=[tool])
        steer = steered(client, id)["steer"]
        gates.open.release()
        assert client.until_end()[-1]["type"] == "response.completed"
        pending = client.event()
        assert IS_LEGAL(pending)
        assert (pending["type"], pending["steer"]) == ("response.steer.pending", steer)
        [stub] = pending["required_input"]
        assert stub == {"type": "function_call_output", "call_id": stub["call_id"], "name": "look"}
        gates.open.release()
        client.create("held/text", [{**stub, "output": "a tree"}], store=False, previous_response_id=id, tools=[tool])
        assert client.until_end()[-1]["type"] == "response.completed"
    sent = json.dumps(messages(served))
    assert (sent.count("Now, please."), sent.count("a tree")) == (1, 1)


def test_a_lane_that_goes_on_without_it_gives_the_input_back(served: Served, gates: Gates) -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    with socket_to(served) as client:
        id = begun(client, "held/call", tools=[tool])
        steered(client, id)
        gates.open.release(2)
        client.until_end()
        assert client.event()["type"] == "response.steer.pending"
        client.create("held/text", "Something else.", store=False)
        failed = client.event()
        assert (failed["type"], failed["steer"]["input"]) == ("response.steer.failed", "Now, please.")
        assert client.until_end()[-1]["type"] == "response.completed"
    assert served.app.budget.used == 0


@pytest.mark.parametrize("model", ["held/broken", "held/refused"])
def test_a_response_that_fails_gives_the_input_back(served: Served, gates: Gates, model: str) -> None:
    with socket_to(served) as client:
        id = begun(client, model)
        steer = steered(client, id)["steer"]
        gates.open.release()
        client.until_end()
        event = client.event()
        while event["type"] != "response.steer.failed":
            event = client.event()
        assert IS_LEGAL(event)
        assert event["steer"] == {**steer, "input": "Now, please."}
        codes = {"held/broken": "response_not_active", "held/refused": "successor_creation_failed"}
        assert event["error"]["code"] == codes[model]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (7, {}),
        ([], {}),
        ([7], {}),
        ([{"role": "assistant", "content": "x"}], {}),
        ([{"role": "user", "content": []}], {}),
        ([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}], {}),
        ([{"role": "user", "content": "x", "name": "y"}], {}),
        ([{"type": "function_call_output", "call_id": "c", "output": "x"}], {}),
        ("x", {"stream_id": "main"}),
    ],
)
def test_input_that_is_wrong_comes_back_with_the_reason(served: Served, gates: Gates, words: Any, more: Any) -> None:
    with socket_to(served) as client:
        id = begun(client, "held/text")
        client.send({"type": "response.steer", "previous_response_id": id, "input": words, **more})
        event = client.event()
        assert event["type"] == "response.steer.failed"
        assert event["error"]["code"] == "invalid_input"
        assert event["steer"]["input"] == words
        gates.open.release()
        assert client.until_end()[-1]["type"] == "response.completed"


def test_what_does_not_run_cannot_be_steered_and_what_runs_not_without_end(served: Served, gates: Gates) -> None:
    with socket_to(served) as client, socket_to(served) as other:
        assert steered(client, "resp_no")["error"]["code"] == "response_not_found"
        id = begun(client, "held/text")
        assert steered(other, id)["error"]["code"] == "response_not_found"
        for _ in range(MAX_STEERS):
            assert steered(client, id, "x")["type"] == "response.steer.accepted"
        assert steered(client, id, "x")["error"]["code"] == "too_many_pending_steers"
        gates.open.release(2)
        client.until_end()
        client.until_end()
        assert steered(client, id)["error"]["code"] in ("response_not_found", "response_already_completed")


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # how the SDK uses its library
def test_the_python_sdk_steers(served: Served, gates: Gates) -> None:
    own = openai.OpenAI(base_url=served.url + "/v1", api_key=KEY)
    with own as client, client.responses.connect() as connection:
        connection.response.create(model="held/text", input="Go.", store=False)
        kinds: list[str] = []
        first = ""
        for event in connection:
            kinds.append(event.type)
            if event.type == "response.created":
                first = first or event.response.id
            elif event.type == "response.output_text.delta" and "response.steer.accepted" not in kinds:
                connection.response.steer(previous_response_id=first, input="Now, please.")
            elif event.type == "response.steer.accepted":
                gates.open.release(2)
            elif kinds.count("response.completed") == 2:
                break
    assert kinds.count("response.created") == 2

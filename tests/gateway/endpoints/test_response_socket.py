"""The Responses protocol over a WebSocket: the events of HTTP, lanes, and conversations that are kept in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import openai
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, ConnectionClosedOK, InvalidStatus

from support.gateway.gateway_process import process
from support.gateway.http_client import KEY, ask
from support.gateway.served_gateway import Served, config_for, gateway
from support.gateway.socket_client import PATH, SocketClient, socket_to, without_ids
from support.hostile.hostile_upstream import END, EVENTS, chunk, delta, endless, hostile
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.endpoints.response_socket import MAX_IN_FLIGHT
from toolglot.gateway.endpoints.socket_events import MAX_STREAM_IDS, CreateEvent, SocketError, read_event
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import Server, serve
from toolglot.simulator.serving import listen

TOOL: Final[Any] = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
SCRIPT: Final = {
    "rules": [
        {
            "when": {"contains": "Look", "results": 0},
            "reply": {
                "text": "I look: ü€.",
                "thinking": "Where?",
                "calls": [{"name": "look", "arguments": {"at": f"place {number}"}} for number in range(2)],
            },
        },
        {"reply": {"text": "You said it. " * 30}},
    ],
    "chunk": 7,
}
MODELS: Final = {
    "anthropic": "anthropic/claude-haiku-4-5",
    "chat": "openai_chat/gpt-4.1",
    "responses": "openai_responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-flash",
    "mistral": "mistral/mistral-large-latest",
    "bedrock": "bedrock/anthropic.claude-sonnet-4-5-v1:0",
    "cohere": "cohere/command-a-03-2025",
    "ollama": "ollama/qwen3",
}
CLAUDE: Final = MODELS["anthropic"]
OWN: Final = MODELS["responses"]
IS_LEGAL: Final = TypeAdapter[Any](ResponsesServerEvent).validate_python


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


@pytest.fixture
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated) as running:
        yield running


def words_of(simulated: Server) -> list[str]:
    """The last request of the upstream, as the texts in it."""
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if name == "text" or (name == "content" and isinstance(inner, str)):
                    found.append(str(inner))
                else:
                    collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    body = simulated.requests[-1].body
    assert isinstance(body, dict)
    collect(body.get("messages") or body.get("input") or body.get("contents"))
    return found


# --- events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("lane", [None, "main"])
def test_the_events_are_those_of_the_stream_over_http(served: Served, model: str, lane: str | None) -> None:
    named = {"stream_id": lane} if lane else {}
    for words in ("Look around.", "Tell me."):
        body = {"model": model, "input": words, "tools": [TOOL], "store": False}
        ask(served, PATH, {**body, "stream": True})  # so that both of the next ones read the same from the prompt cache
        over_http = ask(served, PATH, {**body, "stream": True}).events
        with socket_to(served) as client:
            client.send({"type": "response.create", **body, **named})
            events = client.until_end(lane)
        assert model == OWN or [IS_LEGAL(event) for event in events]  # its provider writes its events itself
        assert {event.pop("stream_id", None) for event in events} == {lane}
        assert without_ids(events) == without_ids(over_http)


@pytest.mark.parametrize("model", [CLAUDE, OWN])
def test_what_is_sent_upstream_is_what_http_sends(served: Served, simulated: Server, model: str) -> None:
    body = {"model": model, "input": [{"role": "user", "content": "Hi é"}], "store": False, "temperature": 1.0}
    ask(served, PATH, {**body, "stream": True})
    with socket_to(served, headers={"openai-beta": "responses_websockets=2026-02-06"}) as client:
        client.response(model, body["input"], store=False, temperature=1.0, generate=True, stream_id="a")
    first, second = simulated.requests
    assert second.body == first.body
    assert "openai-beta" not in second.headers


def test_each_response_has_its_own_record_and_the_handshake_has_one(served: Served) -> None:
    with socket_to(served) as client:
        assert client.response(CLAUDE)["type"] == "response.completed"
        assert client.response("nobody/has-this")["status"] == 404
    shown = [(record.request.method, record.response.status) for record in served.records]
    assert shown == [("GET", 101), ("POST", 200), ("POST", 404)]
    assert served.records[1].route.upstream == "anthropic"


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # how the SDK uses its library
def test_the_python_sdk_runs_a_tool_loop_over_one_socket(served: Served) -> None:
    with openai.OpenAI(base_url=served.url + "/v1", api_key=KEY) as client:
        for model in MODELS.values():
            with client.responses.connect() as connection:
                connection.response.create(model=model, input="Look.", tools=[TOOL], store=False, stream_id="main")
                first = next(event.response for event in connection if event.type == "response.completed")
                calls = [item for item in first.output if item.type == "function_call"]
                results: Any = [
                    {"type": "function_call_output", "call_id": call.call_id, "output": "a tree"} for call in calls
                ]
                connection.response.create(
                    model=model,
                    input=results,
                    tools=[TOOL],
                    store=False,
                    previous_response_id=first.id,
                    stream_id="main",
                )
                second = next(event.response for event in connection if event.type == "response.completed")
                assert len(calls) == 2, model
                assert second.output_text.startswith("You said it."), model
    assert {record.response.status for record in served.records} == {101, 200}


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ("not JSON", 400, "invalid_json"),
        ("[]", 400, "invalid_json"),
        ("[" * 100_000, 400, "invalid_json"),
        ('{"a":' * 100_000, 400, "invalid_json"),
        ({}, 400, "unknown_event"),
        ({"type": "session.update"}, 400, "unknown_event"),
        ({"type": {"x": []}}, 400, "unknown_event"),
        ({"type": "response.create", "stream_id": ""}, 400, "invalid_stream_id"),
        ({"type": "response.create", "stream_id": "a b"}, 400, "invalid_stream_id"),
        ({"type": "response.create", "stream_id": 7}, 400, "invalid_stream_id"),
        ({"type": "response.create", "stream_id": "x" * 257}, 400, "invalid_stream_id"),
        ({"type": "response.create", "background": True}, 400, "unsupported_parameter"),
        ({"type": "response.create", "previous_response_id": []}, 400, "invalid_type"),
        ({"type": "response.create", "model": CLAUDE, "input": "x", "previous_response_id": "resp_no"}, 400, None),
        ({"type": "response.create", "model": "nobody/none", "input": "x"}, 404, "model_not_found"),
        ({"type": "response.create", "model": CLAUDE, "input": 7}, 400, None),
        ({"type": "response.create", "input": "x"}, 404, None),
    ],
)
def test_an_event_that_cannot_be_served_gets_an_error_and_the_socket_goes_on(
    served: Served, sent: Any, status: int, code: str | None
) -> None:
    with socket_to(served) as client:
        client.send(sent)
        event = client.event()
        assert IS_LEGAL(event)
        assert (event["type"], event["status"]) == ("error", status)
        assert code is None or event["error"]["code"] == code
        assert event["error"]["message"]
        assert client.response(CLAUDE)["type"] == "response.completed"


def test_an_error_of_a_lane_names_it_and_carries_the_headers(served: Served, simulated: Server) -> None:
    simulated.fault({"kind": 429, "retry_after": 7})
    with socket_to(served) as client:
        event = client.response(CLAUDE, stream_id="a.b-c_9")
        assert (event["status"], event["stream_id"]) == (429, "a.b-c_9")
        assert event["headers"]["retry-after"] == "7"
        assert event["error"]["headers"] == event["headers"]
        assert event["error"]["code"] == "rate_limit_exceeded"


def test_a_confirmation_of_codex_needs_no_answer(served: Served) -> None:
    with socket_to(served) as client:
        client.send({"type": "response.processed", "response_id": "resp_1"})
        client.create(CLAUDE)
        assert client.event()["type"] == "response.created"


@pytest.mark.law
@given(st.text() | st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()).map(json.dumps))
def test_whatever_a_message_holds_it_is_an_event_or_an_error(text: str) -> None:
    with pytest.raises(SocketError) as error:
        read_event(text.encode("utf-8", "replace"))
    assert json.loads(error.value.event)["type"] == "error"


@pytest.mark.law
@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda name: name not in ("type", "stream_id", "generate", "stream", "background")),
        st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner, max_size=2)),
    )
)
def test_law_3_the_fields_of_a_request_are_passed_on_as_they_are(fields: dict[str, Any]) -> None:
    fields.pop("previous_response_id", None)
    event = read_event(json.dumps({"type": "response.create", **fields, "stream_id": "a"}).encode())
    assert isinstance(event, CreateEvent)
    assert json.loads(event.body(None)) == {**fields, "stream": True}


# --- conversations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CLAUDE, OWN])
def test_a_conversation_that_is_not_stored_is_continued_on_its_socket_only(
    served: Served, simulated: Server, model: str
) -> None:
    with socket_to(served) as client, socket_to(served) as other:
        first = client.response(model, "One.", store=False)["response"]
        second = client.response(model, "Two.", store=False, previous_response_id=first["id"])["response"]
        assert words_of(simulated)[::2] == ["One.", "Two."]
        third = client.response(model, [{"role": "user", "content": "Three."}], store=False, **after(second))
        assert third["type"] == "response.completed"
        assert words_of(simulated)[::2] == ["One.", "Two.", "Three."]
        assert not [request for request in simulated.requests if "previous_response_id" in (request.body or {})]
        missing = other.response(CLAUDE, "Four.", store=False, previous_response_id=third["response"]["id"])
        assert missing["error"]["code"] == "previous_response_not_found"
        assert missing["error"]["param"] == "previous_response_id"


def after(response: dict[str, Any]) -> dict[str, Any]:
    return {"previous_response_id": response["id"]}


def test_a_stored_conversation_is_continued_from_the_store_or_at_its_provider(
    served: Served, simulated: Server
) -> None:
    with socket_to(served) as client:
        first = client.response(CLAUDE, "One.")["response"]
        own = client.response(OWN, "One.")["response"]
    with socket_to(served) as client:
        client.response(CLAUDE, "Two.", **after(first))
        assert words_of(simulated)[::2] == ["One.", "Two."]
        client.response(OWN, "Two.", **after(own))
        body = simulated.requests[-1].body
        assert isinstance(body, dict)
        assert body["previous_response_id"] == own["id"]


def test_what_is_not_stored_may_continue_what_is(served: Served, simulated: Server) -> None:
    with socket_to(served) as client:
        first = client.response(CLAUDE, "One.")["response"]
        second = client.response(CLAUDE, "Two.", store=False, **after(first))["response"]
        client.response(CLAUDE, "Three.", store=False, **after(second))
        assert words_of(simulated)[::2] == ["One.", "Two.", "Three."]


@pytest.mark.parametrize("model", [CLAUDE, OWN])
def test_a_warm_up_calls_no_model_and_is_continued(served: Served, simulated: Server, model: str) -> None:
    with socket_to(served) as client:
        client.create(model, "One.", generate=False, store=False, tools=[TOOL])
        events = client.until_end()
        assert [event["type"] for event in events] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert [IS_LEGAL(event) for event in events]
        assert simulated.requests == []
        assert events[-1]["response"]["output"] == []
        client.response(model, "Two.", store=False, **after(events[-1]["response"]))
        assert words_of(simulated) == ["One.", "Two."]
        assert client.response("nobody/none", "One.", generate=False)["status"] == 404


def test_a_branch_on_another_lane_has_the_conversation_and_the_first_lane_goes_on(
    served: Served, simulated: Server
) -> None:
    with socket_to(served) as client:
        first = client.response(CLAUDE, "One.", store=False, stream_id="main")["response"]
        branch = client.response(CLAUDE, "Branch.", store=False, stream_id="critic", **after(first))
        assert branch["type"] == "response.completed"
        assert words_of(simulated)[::2] == ["One.", "Branch."]
        client.response(CLAUDE, "Two.", store=False, stream_id="main", **after(first))
        assert words_of(simulated)[::2] == ["One.", "Two."]
        late = client.response(CLAUDE, "Late.", store=False, stream_id="late", **after(first))
        assert late["error"]["code"] == "previous_response_not_found"  # only the latest of a lane is kept


def test_a_continuation_that_fails_ends_the_conversation_of_its_own_lane(served: Served, simulated: Server) -> None:
    with socket_to(served) as client:
        first = client.response(CLAUDE, "One.", store=False)["response"]
        simulated.fault(500)
        assert client.response(CLAUDE, "Two.", store=False, stream_id="b", **after(first))["type"] == "error"
        simulated.fault(500)
        assert client.response(CLAUDE, "Two.", store=False, **after(first))["type"] == "error"
        missing = client.response(CLAUDE, "Two.", store=False, **after(first))
        assert missing["error"]["code"] == "previous_response_not_found"


def test_what_is_remembered_is_bounded_and_the_oldest_is_forgotten(simulated: Server) -> None:
    with gateway(simulated, settings="websocket_memory_bytes = 5000") as served, socket_to(served) as client:
        first = client.response(CLAUDE, "One.", store=False, stream_id="a")["response"]
        for lane in "bcdefgh":
            last = client.response(CLAUDE, "x" * 500, store=False, stream_id=lane)["response"]
        missing = client.response(CLAUDE, "Two.", store=False, stream_id="a", **after(first))
        assert missing["error"]["code"] == "previous_response_not_found"
        again = client.response(CLAUDE, "Two.", store=False, stream_id="h", **after(last))
        assert again["type"] == "response.completed"


# --- lanes ------------------------------------------------------------------------------------------


class Gates:
    """An upstream whose streams end when a test says so."""

    def __init__(self) -> None:
        self.open = threading.Semaphore(0)
        self.begun = 0

    async def way(self, _: bytes) -> AsyncIterator[bytes]:
        self.begun += 1
        yield EVENTS + chunk(delta("One"))
        await asyncio.to_thread(self.open.acquire, True, HANG_SECONDS)
        yield chunk(delta(" two.")) + chunk(END) + b"0\r\n\r\n"


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def held(gates: Gates, simulated: Server) -> Iterator[Served]:
    with hostile({"held": gates.way}) as provider:
        own = f'[upstreams.held]\nurl = "{provider.url}"'
        with gateway(simulated, upstreams=own) as served:
            yield served
            gates.open.release(1000)


def test_a_lane_runs_one_response_after_the_other(held: Served, gates: Gates) -> None:
    with socket_to(held) as client:
        for number in range(3):
            client.create("held/held", f"{number}", store=False, stream_id="a")
        for number in range(1, 4):
            wait_until(lambda: gates.begun >= number)  # noqa: B023 - it is called at once
            assert client.event()["type"] == "response.created"
            assert gates.begun == number
            gates.open.release()
            events = client.until_end("a")
            assert "response.created" not in [event["type"] for event in events]


def test_lanes_run_at_the_same_time_and_no_more_than_allowed(held: Served, gates: Gates) -> None:
    with socket_to(held) as client:
        for number in range(MAX_IN_FLIGHT + 3):
            client.create("held/held", "x", store=False, stream_id=f"lane{number}")
        wait_until(lambda: gates.begun == MAX_IN_FLIGHT)
        gates.open.release()
        wait_until(lambda: gates.begun == MAX_IN_FLIGHT + 1)
        gates.open.release(100)
        ended = 0
        while ended < MAX_IN_FLIGHT + 3:
            ended += client.event()["type"] == "response.completed"
        assert gates.begun == MAX_IN_FLIGHT + 3


def test_a_socket_has_so_many_lanes_and_the_default_one(served: Served) -> None:
    with socket_to(served) as client:
        for number in range(MAX_STREAM_IDS):
            client.response(CLAUDE, stream_id=f"lane{number}", generate=False)
        refused = client.response(CLAUDE, stream_id="one-more")
        assert refused["error"]["code"] == "websocket_stream_limit_reached"
        assert refused["stream_id"] == "one-more"
        assert client.response(CLAUDE)["type"] == "response.completed"
        assert client.response(CLAUDE, stream_id="lane0")["type"] == "response.completed"


def test_a_client_that_sends_more_than_may_wait_is_served_all_the_same(held: Served, gates: Gates) -> None:
    gates.open.release(1000)
    with socket_to(held) as client:
        for number in range(150):
            client.create("held/held", "x", store=False, stream_id=f"lane{number % 20}")
        for _ in range(150):
            while client.event()["type"] != "response.completed":
                pass
    assert gates.begun == 150


# --- its end ----------------------------------------------------------------------------------------


def closed_with(client: SocketClient) -> int:
    """The code with which the gateway closes, after whatever it still sends."""
    with pytest.raises(ConnectionClosed) as closed:
        all(client.event() for _ in itertools.count())
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def test_a_client_that_is_gone_ends_what_was_begun_for_it(simulated: Server) -> None:
    way = endless(EVENTS + chunk(delta("One")), chunk(delta(" more")), 0.01)
    with hostile({"endless": way}) as provider:
        own = f'[upstreams.hostile]\nurl = "{provider.url}"'
        with gateway(simulated, upstreams=own) as served:
            with socket_to(served) as client:
                client.create("hostile/endless", stream_id="a")
                client.create("hostile/endless", stream_id="b")
                client.create("hostile/endless", stream_id="b")  # it waits
                while client.event().get("stream_id") != "b":
                    pass
            records = served.records
    assert [record.response.error for record in records[1:]] == ["the client disconnected"] * 2


def test_a_socket_ends_with_the_error_for_that_when_its_time_is_over(simulated: Server) -> None:
    with gateway(simulated, settings="websocket_minutes = 0.001") as served, socket_to(served) as client:
        event = client.event()
        assert IS_LEGAL(event)
        assert event["error"]["code"] == "websocket_connection_limit_reached"
        assert closed_with(client) == 1000


def test_a_response_that_runs_when_the_time_is_over_goes_on(gates: Gates, simulated: Server) -> None:
    with hostile({"held": gates.way}) as provider:
        own = f'[upstreams.held]\nurl = "{provider.url}"'
        limit = "websocket_minutes = 0.01"
        with gateway(simulated, settings=limit, upstreams=own) as served, socket_to(served) as client:
            client.create("held/held")
            refused: dict[str, Any] = {}
            while refused.get("type") != "error":  # once its time is over
                refused = client.response(CLAUDE, stream_id="late", generate=False)
            assert refused["error"]["code"] == "websocket_connection_limit_reached"
            assert refused["stream_id"] == "late"
            gates.open.release()
            assert client.until_end()[-1]["type"] == "response.completed"
            assert closed_with(client) == 1000


def test_without_websockets_clients_are_sent_to_http(simulated: Server) -> None:
    with gateway(simulated, settings="websocket_minutes = 0") as served:
        with pytest.raises(InvalidStatus) as refused, socket_to(served):
            pass
        assert refused.value.response.status_code == 426


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/chat/completions"])
def test_other_paths_have_no_websocket(served: Served, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused, socket_to(served, path=path):
        pass
    assert refused.value.response.status_code == 426


def test_a_socket_needs_the_key_and_so_does_each_response(simulated: Server) -> None:
    settings = 'client_keys = ["env:OWN_KEY"]'
    with gateway(simulated, settings=settings, environ={"OWN_KEY": KEY}) as served:
        for key, origin in (("another-key-of-some-length", ""), ("", "")):
            with pytest.raises(InvalidStatus) as refused, socket_to(served, key=key):
                pass
            assert refused.value.response.status_code == 401, origin
        with socket_to(served) as client:
            assert client.response(CLAUDE)["type"] == "response.completed"
    assert len({record.request.client for record in served.records if record.response.status == 200}) == 1


def test_a_page_of_another_origin_opens_no_socket(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused, socket_to(served, headers={"origin": "https://evil.example"}):
        pass
    assert refused.value.response.status_code == 403


def test_at_the_end_of_the_gateway_idle_sockets_close_and_what_runs_goes_on(
    gates: Gates, simulated: Server, tmp_path: Path
) -> None:
    with hostile({"held": gates.way}) as provider:
        own = f'drain_seconds = 3600\n[upstreams.held]\nurl = "{provider.url}"'
        running = process(tmp_path, simulated, settings=own)
        with running as stopped, socket_to(stopped) as idle, socket_to(stopped) as busy:
            busy.create("held/held", store=False)
            assert busy.event()["type"] == "response.created"
            stopped.signal(signal.SIGTERM)
            assert closed_with(idle) == 1001
            busy.create("held/held", stream_id="late")
            late = busy.until_end("late")[-1]
            assert late["status"] == 503, late
            gates.open.release()
            assert busy.until_end()[-1]["type"] == "response.completed"
            assert closed_with(busy) == 1001


def test_a_response_that_the_gateway_does_not_wait_for_ends_with_an_error(
    gates: Gates, simulated: Server, tmp_path: Path
) -> None:
    with hostile({"held": gates.way}) as provider:
        own = f'drain_seconds = 0\n[upstreams.held]\nurl = "{provider.url}"'
        with process(tmp_path, simulated, settings=own) as running, socket_to(running) as busy:
            busy.create("held/held", store=False)
            while busy.event()["type"] != "response.output_text.delta":
                pass
            running.signal(signal.SIGTERM)
            assert busy.until_end()[-1]["type"] == "response.failed"
            assert closed_with(busy) == 1001
        gates.open.release(10)


# --- an ASGI server ---------------------------------------------------------------------------------


@pytest.fixture
def by_asgi(simulated: Server) -> Iterator[Served]:
    """The gateway as an app of uvicorn's own connections."""
    config = config_for(simulated)
    app = Gateway(config, request_log=RequestLog(max_remembered=100, form="off"))
    own = uvicorn.Config(app, ws="websockets-sansio", http="h11", lifespan="on", log_config=None, log_level="critical")
    server = uvicorn.Server(own)
    with listen(0) as sock:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield Served(f"http://127.0.0.1:{sock.getsockname()[1]}", app)
        finally:
            server.should_exit = True
            thread.join()


def test_an_asgi_server_serves_the_same_socket(by_asgi: Served, simulated: Server) -> None:
    with socket_to(by_asgi) as client:
        client.create(CLAUDE, "Look.", tools=[TOOL], store=False)
        events = client.until_end()
        body = {"model": CLAUDE, "input": "Look.", "tools": [TOOL], "stream": True, "store": False}
        over_http = ask(by_asgi, PATH, body).events
        assert without_ids(events) == without_ids(over_http)
        first = client.response(CLAUDE, "One.", store=False)["response"]
        client.response(CLAUDE, "Two.", store=False, **after(first))
        assert words_of(simulated)[::2] == ["One.", "Two."]
        client.send(b"binary")
        with pytest.raises(ConnectionClosedError) as closed:
            client.event()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1003
    with pytest.raises(InvalidStatus) as refused, socket_to(by_asgi, path="/v1/realtime"):
        pass
    assert refused.value.response.status_code == 426


def test_a_client_that_closes_gets_its_close_back(served: Served) -> None:
    with socket_to(served) as client:
        client.response(CLAUDE)
        client.socket.close(1000, "bye")
        with pytest.raises(ConnectionClosedOK):
            client.event()


@pytest.mark.parametrize("compression", ["deflate", None])
def test_a_long_message_is_read_whole_compressed_or_not(
    served: Served, simulated: Server, compression: str | None
) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    words = " ".join(f"{chance.random()}" for _ in range(20_000))
    with socket_to(served, compression=compression) as client:
        assert client.response(CLAUDE, words, store=False)["type"] == "response.completed"
    assert words_of(simulated) == [words]


def test_an_event_that_is_not_utf_8_breaks_nothing(simulated: Server) -> None:
    async def way(_: bytes) -> AsyncIterator[bytes]:
        response = b'{"id":"resp_1","object":"response","status":"%b","model":"m","output":[]}'
        for kind, status in ((b"created", b"in_progress"), (b"\xff\xfe.custom", b"in_progress")):
            yield EVENTS * (kind == b"created") + chunk(
                b'data: {"type":"response.%b","sequence_number":0,"response":%b}\n\n' % (kind, response % status)
            )
        end = b'data: {"type":"response.completed","sequence_number":1,"response":%b}\n\n' % (response % b"completed")
        yield chunk(end) + b"0\r\n\r\n"

    with hostile({"odd": way}) as provider:
        own = f'[upstreams.odd]\nurl = "{provider.url}"\ntarget = "openai_responses"'
        with gateway(simulated, upstreams=own) as served, socket_to(served) as client:
            client.create("odd/odd", "x", store=False)
            # The first event may have been sent before the corrupt one comes, or not.
            assert client.until_end()[-1]["type"] in ("error", "response.failed")
            assert client.response(CLAUDE)["type"] == "response.completed"

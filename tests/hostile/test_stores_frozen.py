"""The server of a store is frozen, all of its processes: it takes connections and says nothing.

Real servers, stopped with a signal. Gateways serve known keys, say that they are not ready, and keep what they were
asked to store until the server goes on.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.gateway.http_client import Got, ask, request_of
from support.gateway.served_gateway import Served, config_for
from support.hostile.store_faults import SERVERS, url_of
from support.waiting import wait_until
from toolglot import simulator
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator.serving import Server

SCRIPT = {"rules": [{"reply": {"thinking": "hm", "text": "Hello."}}]}
MODEL = "anthropic/claude-sonnet-4-5"
NOT_YET = "the response was not stored yet"


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    SERVERS[name]()  # skips where there is none
    return name


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve(SCRIPT) as server:
        yield server


def served_by(stack: ExitStack, simulated: Server, url: str, log: io.StringIO) -> Served:
    config = config_for(simulated, settings=f'store = "{url}"\nstore_seconds = 1')
    app = Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=50, stream=log))
    return Served(stack.enter_context(running(app)), app)


def response_of(got: Got) -> Any:
    if got.data.startswith(b"{"):
        return got.body
    return next(event["response"] for event in got.events if event["type"] == "response.completed")


def respond(served: Served, *, stream: bool = False, **more: Any) -> tuple[str, Any, str]:
    """A stored response: its id, what it says of being stored, and what was reported."""
    got = ask(served, *request_of("openai_responses", MODEL, stream=stream, **more))
    assert got.status == 200, got.data
    page = ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}").body
    body = response_of(got)
    return body["id"], body.get("store", True), json.dumps(page["reply_report"])


def test_responses_of_an_outage_are_served_and_continued_by_their_gateway_and_stored_when_it_is_over(
    simulated: Server, kind: str, tmp_path: Path
) -> None:
    server, logs = SERVERS[kind](), [io.StringIO(), io.StringIO()]
    url = url_of(kind, tmp_path, server.port, patient=True)
    with ExitStack() as stack:
        one, other = (served_by(stack, simulated, url, log) for log in logs)
        first, is_stored, report = respond(one)
        assert is_stored is True
        assert NOT_YET not in report
        assert ask(other, f"/v1/responses/{first}").status == 200
        with server.halted():
            wait_until(lambda: ask(one, "/ready").status == 503)
            kept = []
            for stream in (False, True):
                id, is_stored, report = respond(one, stream=stream)
                assert is_stored is False
                assert NOT_YET in report
                assert ask(one, f"/v1/responses/{id}").status == 200
                again, _, _ = respond(one, stream=stream, previous_response_id=id)
                kept += [id, again]
            assert ask(other, f"/v1/responses/{kept[0]}").status == 503, "it is not known, not unknown"
            assert ask(one, f"/v1/responses/{first}").status == 503
            assert ask(one, *request_of("openai", MODEL)).status == 200
        for id in kept:
            wait_until(lambda id=id: ask(other, f"/v1/responses/{id}").status == 200)  # type: ignore[misc]
        assert respond(other, previous_response_id=kept[-1])[1] is True
        wait_until(lambda: ask(one, "/ready").status == 200)
        metrics = ask(one, "/metrics").data.decode()
        [line] = [line for line in metrics.splitlines() if line.startswith("toolglot_store_errors_total ")]
        assert float(line.split()[1]) >= 4
    for log in logs:
        lines = [line for line in log.getvalue().splitlines() if "the store: " in line]
        assert len(lines) == len(set(lines)), "each failure is logged once"
    assert "what could not be stored during the outage is stored now" in logs[0].getvalue()

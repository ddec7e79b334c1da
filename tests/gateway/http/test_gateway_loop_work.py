"""Nothing blocks the event loop: between two of its steps, work is bounded whatever a client or an upstream sends.

Work is counted, not timed: lines of toolglot and calls on the thread of the loop, from one step of the loop to the
next. 18,000 of them took a millisecond when `ON_LOOP` was chosen (`http/offloading.py`), so `BOUND` is about 25 ms.
Every fault is tried with as many of it as are still worked on by the loop, and with ten times as many; `make soak`
tries all faults.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import events
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from support.counted_work import SOURCE
from support.gateway.served_gateway import config_for
from support.hostile.hostile_upstream import Hostile, hostile, once, upstream_at, whole
from support.law_examples import IS_SOAK
from support.translate.many_faults import FAULTS
from toolglot.gateway import Gateway, Upstreams
from toolglot.gateway.config.settings import Config
from toolglot.gateway.http.offloading import ON_LOOP
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.jsontext import count_marks
from toolglot.simulator.serving import Server

BOUND = 450_000
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "openai_responses": "/v1/responses"}
UPSTREAMS = ("bedrock/anthropic.claude-sonnet-4-5", "openai_chat/gpt-4.1", "anthropic/claude-sonnet-4-5")
WORST = (
    "A6 outputs without a call id",
    "A5 results without calls in Chat",
    "C5 many turns of one speaker",
    "F1 arguments that are cut off",
)
TRIED = tuple(FAULTS) if IS_SOAK else WORST


class LoopWork:
    """Counts what is done on this thread between two steps of its event loop; `most`: the most so far."""

    def __init__(self) -> None:
        self.most = 0
        self._steps = 0

    def __enter__(self) -> LoopWork:
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        sys.settrace(None)
        self._new_step()

    def _new_step(self) -> None:
        self.most, self._steps = max(self.most, self._steps), 0

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is _STEP and event == "call":
            self._new_step()
        self._steps += 1
        return self._trace if frame.f_code.co_filename.startswith(SOURCE) else None

    def _profile(self, _: FrameType, event: str, __: Any) -> None:
        self._steps += event == "c_call"


_STEP = events.Handle._run.__code__


async def post(app: Gateway, path: str, data: bytes) -> int:
    """The status of an answer."""
    sent: list[Any] = []
    incoming = [{"type": "http.request", "body": data, "more_body": False}]
    goes = asyncio.Event()

    async def receive() -> Any:
        if incoming:
            return incoming.pop()
        await goes.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"x-api-key", b"k"), (b"host", b"127.0.0.1")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": headers}, receive, send)
    return int(sent[0]["status"])


def most_work(config: Config, path: str, first: bytes, data: bytes) -> tuple[int, int]:
    """The status of an answer, and the most that was done between two steps; `first` warms up."""
    app = Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=100, form="off"))

    async def run() -> tuple[int, int]:
        async with app:
            await post(app, path, first)
            with LoopWork() as work:
                status = await post(app, path, data)
            return status, work.most

    return asyncio.run(run())


SCRIPT = {"rules": [{"reply": {"text": "Hello."}}]}


def body_of(fault: str, count: int, model: str) -> bytes:
    return json.dumps({**FAULTS[fault][1](count), "model": model}).encode()


def count_on_loop(fault: str) -> int:
    """As many of a fault as are still worked on by the loop."""
    count = 1
    while count_marks(body_of(fault, count + 1 + count // 8, "m")) <= ON_LOOP:
        count += 1 + count // 8
    return count


@pytest.mark.law
@pytest.mark.parametrize("times", [1, 10])
@pytest.mark.parametrize("fault", [name for name in TRIED if FAULTS[name][0] in PATHS])
def test_a_request_full_of_faults_does_not_hold_the_loop(simulated: Server, fault: str, times: int) -> None:
    model = UPSTREAMS[list(FAULTS).index(fault) % len(UPSTREAMS)]
    data = body_of(fault, count_on_loop(fault) * times, model)
    status, most = most_work(config_for(simulated), PATHS[FAULTS[fault][0]], body_of(fault, 2, model), data)
    assert 200 <= status < 500
    assert 0 < most < BOUND


# --- upstreams ----------------------------------------------------------------------------------------


def calls(count: int) -> list[dict[str, Any]]:
    return [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": "f", "arguments": '{"a": 1'}}
        for n in range(count)
    ]


def reply(count: int) -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": calls(count)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def stream(count: int) -> bytes:
    """One event with all calls."""
    delta = {"role": "assistant", "tool_calls": calls(count)}
    first = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    last = {**first, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    data = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in (first, last)) + b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    return head + data


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    ways = {
        **{f"whole-{count}": once(whole(reply(count))) for count in (2, 10_000)},
        **{f"stream-{count}": once(stream(count)) for count in (2, 10_000)},
    }
    with hostile(ways) as running:
        yield running


@pytest.mark.law
@pytest.mark.parametrize("form", ["whole", "stream"])
def test_an_answer_of_ten_thousand_calls_does_not_hold_the_loop(provider: Hostile, form: str) -> None:
    config = config_for(None, upstreams=upstream_at(provider), environ={"HOSTILE_KEY": "k"})

    def asking(count: int) -> bytes:
        body = {"model": f"h/{form}-{count}", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        return json.dumps({**body, "stream": form == "stream"}).encode()

    status, most = most_work(config, "/v1/messages", asking(2), asking(10_000))
    assert status == 200
    assert 0 < most < BOUND

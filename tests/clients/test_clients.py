"""The gateway in the process of its client: streams piece by piece, ends, time-outs, threads, forks and mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import anthropic
import httpx2
import openai
import pytest

import toolglot
from support.gateway.sdk_script import SETTINGS
from support.gateway.served_gateway import config_for
from support.waiting import HANG_SECONDS, wait_until
from toolglot import InputError, Request, Response
from toolglot.clients.background import THREAD, BackgroundCall, BackgroundGateway, ThreadPool
from toolglot.gateway import Config, Gateway, Upstreams
from toolglot.gateway.config.settings import GatewaySettings
from toolglot.simulator import Simulator, serve
from toolglot.upstream import HttpRequest, TimeLimits

CONFIG: Final = Config(gateway=GatewaySettings(store=":memory:"))
MODEL: Final = "simulated/openai/gpt-4.1"
HELLO: Final[list[Any]] = [{"role": "user", "content": "Hello"}]
BOUND: Final = HANG_SECONDS
"""Seconds after which something that should happen has not happened."""


class Stage(Simulator):
    """A provider that answers as a test says, and tells what it sees. It lives in the gateway's thread."""

    def __init__(self, *, pieces: int = 1_000_000, is_silent: bool = False) -> None:
        super().__init__()
        self._pieces = pieces
        self._is_silent = is_silent
        self.sent = 0
        self.called = threading.Event()
        self.gone = threading.Event()
        """The client has disconnected."""

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        self.called.set()
        watching = asyncio.ensure_future(receive())
        try:
            await self._answer(send) if not self._is_silent else await watching
        except OSError:
            await watching
        finally:
            watching.cancel()
            self.gone.set()

    async def _answer(self, send: Any) -> None:
        kind = (b"content-type", b"text/event-stream")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        for number in range(self._pieces):
            choice = {"index": 0, "delta": {"role": "assistant", "content": f"{number} "}, "finish_reason": None}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            body = b"data: " + json.dumps(chunk).encode() + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
            self.sent += 1
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})


def on(simulator: Simulator) -> dict[str, Any]:
    """How a client is made that asks this one."""
    return {"config": CONFIG, "upstreams": Upstreams(CONFIG, simulator=simulator)}


def sdk(http_client: httpx2.Client, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="any", max_retries=0, http_client=http_client, **more)


def async_sdk(http_client: httpx2.AsyncClient, **more: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="any", max_retries=0, http_client=http_client, **more)


async def many_rounds() -> None:
    """As many rounds of the event loop as a provider that nothing holds back needs for thousands of pieces."""
    for _ in range(10_000):
        await asyncio.sleep(0)


def background(http_client: httpx2.Client | httpx2.AsyncClient) -> BackgroundGateway:
    transport: Any = http_client._transport
    gateway: BackgroundGateway = transport._gateway
    return gateway


def our_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("toolglot")}


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The SDKs know only what the test sets; after each test, no thread of ours is there."""
    for name in list(os.environ):
        if name.upper().startswith(SETTINGS) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    before = our_threads()
    yield
    if not our_threads() <= before:
        gc.collect()
    assert our_threads() <= before


# --- streams ----------------------------------------------------------------------------------------


def test_closing_a_stream_early_cancels_the_upstream_request_at_once() -> None:
    stage = Stage()
    with toolglot.client(**on(stage)) as http_client:
        stream = sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        assert next(stream).choices[0].delta.role == "assistant"
        assert not stage.gone.is_set()
        stream.close()
        assert stage.gone.wait(BOUND)


async def test_leaving_an_async_stream_early_cancels_the_upstream_request_at_once() -> None:
    stage = Stage()
    async with toolglot.async_client(**on(stage)) as http_client:
        client = async_sdk(http_client)
        async with await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True) as stream:
            assert (await anext(stream)).choices
            assert not stage.gone.is_set()
        assert await asyncio.to_thread(stage.gone.wait, BOUND)


@pytest.mark.parametrize("waits", ["in a thread", "in a loop"])
def test_closing_a_stream_early_breaks_off_the_connection_to_the_provider_at_once(waits: str) -> None:
    ended = threading.Event()
    words = {"rules": [{"reply": {"text": "word " * 4000}}], "pace": 0.5}  # half an hour of them

    async def in_a_loop(config: Config) -> None:
        async with toolglot.async_client(config) as http_client:
            pending = async_sdk(http_client).chat.completions.create(model="mistral/m", messages=HELLO, stream=True)
            async with await pending as stream:
                await anext(stream)
            assert await asyncio.to_thread(ended.wait, BOUND)

    with serve(Simulator(words, log=lambda *_: ended.set())) as provider:
        config = config_for(provider)
        if waits == "in a loop":
            asyncio.run(in_a_loop(config))
            return
        with toolglot.client(config) as http_client:
            stream = sdk(http_client).chat.completions.create(model="mistral/m", messages=HELLO, stream=True)
            next(stream)
            stream.close()
            assert ended.wait(BOUND)


def test_an_answer_that_is_not_read_does_not_run_ahead() -> None:
    stage = Stage()
    with toolglot.client(**on(stage)) as http_client:
        stream = sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        for _ in range(3):
            next(stream)
        background(http_client).run(many_rounds).result(BOUND)
        assert stage.sent < 20
        for _ in range(50):
            next(stream)
        assert stage.sent >= 50
        stream.close()


async def test_an_async_answer_that_is_not_read_does_not_run_ahead() -> None:
    stage = Stage()
    async with toolglot.async_client(**on(stage)) as http_client:
        pending = async_sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        async with await pending as stream:
            await anext(stream)
            await asyncio.wrap_future(background(http_client).run(many_rounds))
            assert stage.sent < 20


def test_a_stream_read_to_its_end_is_whole_and_leaves_the_client_usable() -> None:
    with toolglot.client(**on(Stage(pieces=200))) as http_client:
        for _ in range(2):
            stream = sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
            assert text.split() == [str(number) for number in range(200)]


def test_a_stream_that_is_dropped_ends() -> None:
    stage = Stage()
    with toolglot.client(**on(stage)) as http_client:
        response = http_client.send(
            http_client.build_request(
                "POST", "http://any/v1/chat/completions", json={"model": MODEL, "messages": HELLO, "stream": True}
            ),
            stream=True,
        )
        assert response.status_code == 200
        assert stage.called.is_set()
        del response
        gc.collect()
        assert stage.gone.wait(BOUND)


async def test_cancelling_the_task_that_asks_cancels_the_upstream_request() -> None:
    stage = Stage(is_silent=True)
    async with toolglot.async_client(**on(stage)) as http_client:
        asking = asyncio.ensure_future(async_sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO))
        assert await asyncio.to_thread(stage.called.wait, BOUND)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(stage.gone.wait, BOUND)


async def test_cancelling_the_task_that_reads_cancels_the_upstream_request() -> None:
    stage = Stage()

    first = asyncio.Event()

    async def read(stream: Any) -> None:
        async for _ in stream:
            first.set()

    async with toolglot.async_client(**on(stage)) as http_client:
        pending = async_sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        reading = asyncio.ensure_future(read(await pending))
        await first.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(stage.gone.wait, BOUND)


def test_a_key_press_ends_waiting_and_the_upstream_request() -> None:
    stage = Stage(is_silent=True)
    main = threading.main_thread()
    assert threading.current_thread() is main

    def press() -> None:
        assert stage.called.wait(BOUND)
        assert main.ident is not None
        signal.pthread_kill(main.ident, signal.SIGINT)

    with toolglot.client(**on(stage)) as http_client, ThreadPoolExecutor(1) as pool:
        client = sdk(http_client)
        pressed = pool.submit(press)
        with pytest.raises(KeyboardInterrupt):
            client.chat.completions.create(model=MODEL, messages=HELLO)
        assert stage.gone.wait(BOUND)
        pressed.result(BOUND)


def test_streams_that_were_closed_early_leave_no_task_and_no_word_behind(capfd: pytest.CaptureFixture[str]) -> None:
    async def tasks() -> int:
        return len(asyncio.all_tasks())

    with toolglot.client(**on(Stage())) as http_client:
        gateway = background(http_client)
        http_client.get("http://any/health")
        before = gateway.run(tasks).result(BOUND)
        client = sdk(http_client)
        for _ in range(30):
            stream = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
            next(stream)
            stream.close()
        wait_until(lambda: gateway.run(tasks).result(BOUND) <= before)
    assert capfd.readouterr().err == ""


# --- time-outs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_time_out_of_the_client_is_the_sdks_own_exception_and_ends_the_request(stream: bool) -> None:
    stage = Stage(is_silent=True)
    with toolglot.client(**on(stage)) as http_client:
        http_client.get("http://any/health")  # the gateway has started: nothing but the provider is waited for
        client = sdk(http_client, timeout=1.0)
        with pytest.raises(openai.APITimeoutError) as raised:
            client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)
        assert "toolglot (127.0.0.1) sent nothing within 1 s" in str(raised.value.__cause__)
        assert stage.gone.wait(BOUND)


async def test_the_time_out_of_an_async_client_too() -> None:
    stage = Stage(is_silent=True)
    async with toolglot.async_client(**on(stage)) as http_client:
        await http_client.get("http://any/health")
        client = anthropic.AsyncAnthropic(api_key="any", max_retries=0, timeout=1.0, http_client=http_client)
        with pytest.raises(anthropic.APITimeoutError):
            await client.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
        assert await asyncio.to_thread(stage.gone.wait, BOUND)


def test_the_sdks_own_time_out_counts_by_default() -> None:
    with toolglot.client(CONFIG) as http_client:
        ours, own = sdk(http_client), openai.OpenAI(api_key="any")
        assert ours.timeout == own.timeout
        own.close()


def test_a_client_may_wait_for_ever() -> None:
    with toolglot.client(**on(Stage(pieces=3))) as http_client:
        request = {"model": MODEL, "messages": HELLO, "stream": True}
        answer = http_client.post("http://any/v1/chat/completions", json=request, timeout=None)
        assert answer.text.endswith("data: [DONE]\n\n")


# --- threads, loops and processes -------------------------------------------------------------------


def test_twenty_threads_ask_one_client_at_once() -> None:
    simulator = Simulator()
    meet = threading.Barrier(20)
    with toolglot.client(**on(simulator)) as http_client, ThreadPoolExecutor(20) as pool:
        client = sdk(http_client)

        def ask(number: int) -> str:
            meet.wait(BOUND)
            words: Any = [{"role": "user", "content": f"I am {number}"}]
            if number % 2:
                return str(client.chat.completions.create(model=MODEL, messages=words).choices[0].message.content)
            stream = client.chat.completions.create(model=MODEL, messages=words, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

        assert list(pool.map(ask, range(20))) == [f"You said: I am {number}" for number in range(20)]
        assert len([thread for thread in our_threads() if thread.name == THREAD]) == 1
    assert len(simulator.requests) == 20


def test_many_tasks_and_several_event_loops_use_one_async_client() -> None:
    client = async_sdk(toolglot.async_client(**on(Simulator())))

    async def ask(number: int) -> str:
        words: Any = [{"role": "user", "content": f"I am {number}"}]
        answer = await client.chat.completions.create(model=MODEL, messages=words)
        return str(answer.choices[0].message.content)

    async def many() -> list[str]:
        return await asyncio.gather(*map(ask, range(10)))

    for _ in range(2):
        assert asyncio.run(many()) == [f"You said: I am {number}" for number in range(10)]
    asyncio.run(client.close())


@pytest.mark.parametrize("store", [":memory:", "file"])
def test_a_client_that_is_left_open_does_not_hold_the_interpreter_nor_complain(tmp_path: Path, store: str) -> None:
    code = (
        "import sys, toolglot, asyncio\n"
        "from toolglot.gateway import Config\n"
        "from toolglot.gateway.config.settings import GatewaySettings\n"
        "config = Config(gateway=GatewaySettings(store=sys.argv[1]))\n"
        "client, other = toolglot.client(config), toolglot.async_client(config)\n"
        "body = {'model': 'simulated/anthropic/claude-opus-5', 'messages': [{'role': 'user', 'content': 'x ' * 500}]}\n"
        "print(client.post('http://any/v1/chat/completions', json=body).status_code)\n"
        "ask = client.build_request('POST', 'http://any/v1/chat/completions', json={**body, 'stream': True})\n"
        "left = client.send(ask, stream=True)\n"
        "print(asyncio.run(other.get('http://any/health')).status_code)\n"
    )
    store_path = store if store == ":memory:" else str(tmp_path / "store.db")
    command = [sys.executable, "-W", "error", "-c", code, store_path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["200", "200"], "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_client_made_before_a_fork_works_in_the_child_unless_it_was_used_before() -> None:
    code = (
        "import os, toolglot\n"
        "from toolglot.gateway import Config\n"
        "from toolglot.gateway.config.settings import GatewaySettings\n"
        "client = toolglot.client(Config(gateway=GatewaySettings(store=':memory:')))\n"
        "def child():\n"
        "    try:\n"
        "        print(client.get('http://any/health').status_code, flush=True)\n"
        "    except Exception as error:\n"
        "        print(type(error).__name__, error, flush=True)\n"
        "    client.close()\n"
        "    os._exit(0)\n"
        "for _ in range(2):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        child()\n"
        "    os.waitpid(pid, 0)\n"
        "    print(client.get('http://any/health').status_code, flush=True)\n"
        "client.close()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=BOUND)
    first, used, second, still = ended.stdout.splitlines()
    assert (first, used, still) == ("200", "200", "200")
    assert second.startswith("ConnectError client: this client was used before this process was forked")
    assert ended.returncode == 0


def test_what_a_child_process_does_with_the_client_of_its_parent_is_reported_and_changes_nothing() -> None:
    with toolglot.client(CONFIG) as http_client, pytest.MonkeyPatch.context() as patch:
        gateway = background(http_client)
        assert http_client.get("http://any/health").is_success
        patch.setattr(os, "getpid", lambda: 1)
        with pytest.raises(httpx2.ConnectError, match="make one in each process"):
            http_client.get("http://any/health")
        gateway.stop()
        gateway.post(lambda: pytest.fail("this is not its loop"))
        patch.undo()
        assert http_client.get("http://any/health").is_success


# --- ends -------------------------------------------------------------------------------------------


def test_a_closed_client_has_no_thread_and_sends_nothing() -> None:
    http_client = toolglot.client(CONFIG)
    assert our_threads() == set()  # it is started by the first request
    client = sdk(http_client)
    client.chat.completions.create(model=MODEL, messages=HELLO)
    assert our_threads()
    client.close()
    assert our_threads() == set()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        http_client.get("http://any/health")


def test_a_client_that_was_never_used_is_closed_too() -> None:
    http_client = toolglot.client(CONFIG)
    http_client.close()
    asyncio.run(toolglot.async_client(CONFIG).aclose())
    assert http_client.is_closed


def test_a_client_that_is_dropped_ends_its_thread() -> None:
    http_client = toolglot.client(CONFIG)
    http_client.get("http://any/health")
    assert our_threads()
    del http_client
    gc.collect()
    wait_until(lambda: not our_threads())


@pytest.mark.parametrize("store", [":memory:", "off"])
def test_closing_a_client_ends_what_is_open_with_an_error_for_who_waits(store: str) -> None:
    stage = Stage(is_silent=True)
    config = Config(gateway=GatewaySettings(store=store))
    http_client = toolglot.client(config, upstreams=Upstreams(config, simulator=stage))
    client = sdk(http_client)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.chat.completions.create, model=MODEL, messages=HELLO)
        assert stage.called.wait(BOUND)
        client.close()
        error = waiting.exception(BOUND)
    assert isinstance(error, openai.APIConnectionError)
    assert "closed the connection without a response" in str(error.__cause__)
    assert stage.gone.is_set()


async def test_closing_an_async_client_ends_what_is_open_with_an_error_for_who_waits() -> None:
    stage = Stage()
    client = async_sdk(toolglot.async_client(**on(stage)))
    stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    await anext(stream)
    await client.close()
    assert stage.gone.is_set()
    with pytest.raises(openai.APIConnectionError):
        async for _ in stream:
            pass


def test_closing_a_client_while_it_is_starting_leaves_nothing_open(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    config = Config(gateway=GatewaySettings(store=str(file)))
    http_client = toolglot.client(config)
    holding = sqlite3.connect(file, isolation_level=None)
    holding.execute("BEGIN EXCLUSIVE")  # the store cannot be opened before this ends
    with contextlib.closing(holding), ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(http_client.get, "http://any/health", timeout=BOUND)
        wait_until(lambda: len(our_threads()) > 1)  # one of them waits for the store
        closing = pool.submit(http_client.close)
        wait_until(lambda: http_client.is_closed)
        assert not closing.done()
        holding.execute("ROLLBACK")
        closing.result(BOUND)
        with pytest.raises(httpx2.ConnectError, match="closed"):
            waiting.result(BOUND)


def test_a_call_that_was_ended_before_its_answer_began_takes_it_along() -> None:
    stage = Stage()
    gateway = BackgroundGateway(Gateway(CONFIG, upstreams=Upstreams(CONFIG, simulator=stage)))
    body = json.dumps({"model": MODEL, "messages": HELLO, "stream": True}).encode()
    call = BackgroundCall(gateway, HttpRequest(url="http://127.0.0.1/v1/chat/completions", body=body), TimeLimits())
    call.end()
    assert call.begin().result(BOUND).status == 200
    assert stage.gone.wait(BOUND)
    gateway.stop()
    with pytest.raises(InputError, match="closed"):
        call.piece()


def test_a_pool_that_has_ended_does_the_work_itself() -> None:
    pool = ThreadPool()
    assert pool.submit(threading.get_ident).result(BOUND) != threading.get_ident()
    pool.shutdown()
    assert pool.submit(threading.get_ident).result(BOUND) == threading.get_ident()


# --- what is configured -----------------------------------------------------------------------------


class Polite:
    """A step that changes the request, and notes the answer."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def process_request(self, request: Request) -> None:
        request.messages[-1]["content"] += ", please"

    def process_response(self, response: Response) -> None:
        self.seen.append(response.body["choices"][0]["message"]["content"])


def test_middleware_sees_requests_and_replies() -> None:
    step = Polite()
    with toolglot.client(**on(Simulator()), middleware=[step]) as http_client:
        sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO)
    assert step.seen == ["You said: Hello, please"]


def test_middleware_that_calls_its_own_gateway_gets_an_error_and_is_not_held_for_ever() -> None:
    class CallsItself(Polite):
        def process_request(self, request: Request) -> None:
            http_client.get(f"http://any/health?{request.model}")

    with toolglot.client(CONFIG, middleware=[CallsItself()]) as http_client:
        client = sdk(http_client)
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model=MODEL, messages=HELLO)


def test_a_mistake_in_the_configuration_is_raised_when_the_client_is_made(tmp_path: Path) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_text("[gateway]\nprot = 8400\n", encoding="utf-8")
    for make in (toolglot.client, toolglot.async_client):
        with pytest.raises(InputError, match="prot"):
            make(file)
        with pytest.raises(InputError, match="nowhere"):
            make(tmp_path / "nowhere.toml")
        with pytest.raises(InputError, match="httpx2 or httpx"):
            make(CONFIG, library="requests")  # type: ignore[call-overload]


def test_without_a_configuration_it_is_found_as_the_server_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[gateway]\nstore = "off"\n[models]\nmine = "simulated/mistral/m"\n', encoding="utf-8")
    monkeypatch.setenv("TOOLGLOT_CONFIG", str(file))
    for config in (None, file, str(file)):
        with toolglot.client(config) as http_client:
            reply = sdk(http_client).chat.completions.with_raw_response.create(model="mine", messages=HELLO)
            assert reply.headers["x-toolglot-upstream"] == "mistral/m (simulated)"


def test_a_store_that_cannot_be_opened_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    config = Config(gateway=GatewaySettings(store=str(tmp_path / "file" / "store.db")))
    with toolglot.client(config) as http_client, pytest.raises(httpx2.ConnectError, match="store"):
        http_client.get("http://any/health")


def test_client_keys_are_required_as_by_a_server() -> None:
    settings = 'client_keys = ["env:MINE"]'
    config = config_for(None, settings=settings, environ={"MINE": "a-key-of-some-length"})
    with toolglot.client(config) as http_client:
        with pytest.raises(openai.AuthenticationError):
            sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO)
        known = openai.OpenAI(api_key="a-key-of-some-length", http_client=http_client)
        assert known.chat.completions.create(model=MODEL, messages=HELLO).choices


def test_requests_are_logged_if_that_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    for log in ("off", "text"):
        with toolglot.client(CONFIG, log=log) as http_client:
            sdk(http_client).chat.completions.create(model=MODEL, messages=HELLO)
        assert ("200 POST /v1/chat/completions" in capfd.readouterr().err) is (log == "text")


def test_no_request_leaves_by_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with toolglot.client(CONFIG) as http_client:
        for root in ("http://toolglot", "https://api.openai.com", "http://name:password@[::1]:1", "https://10.0.0.1:9"):
            assert http_client.get(f"{root}/health").json() == {"status": "ok"}
            assert http_client.get(f"{root}/nothing?a=%2F").status_code == 404


@pytest.mark.parametrize("library", [None, "httpx"])
def test_a_missing_library_is_reported_with_what_to_do(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("httpx", "httpx2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as raised:
        toolglot.client(CONFIG, library=library)
    wanted = library or "httpx2 or httpx"
    message = f"library: this needs {wanted}, which is not installed (pip install '.[clients]' in a clone of toolglot)"
    assert str(raised.value) == message


def test_asking_whether_there_are_clients_loads_no_extra() -> None:
    code = "import sys, toolglot; assert toolglot.client and toolglot.async_client; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert "toolglot.clients" in loaded
    assert not {"httpx", "httpx2", "aiohttp", "toolglot.gateway"} & {*loaded}

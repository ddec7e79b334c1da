"""Several workers: one port, one store, one log; a worker that dies is replaced, and all end together."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.cli.commands import command
from support.gateway.gateway_process import SOON, Process, config_text, posted, process, read_all, read_until
from support.gateway.http_client import ask, request_of
from support.gateway.request_records import ended_request
from support.waiting import wait_until
from toolglot.errors import InputError
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.http.workers import (
    FIRST_PAUSE,
    MAX_PAUSE_SECONDS,
    YOUNG_SECONDS,
    Slot,
    Supervisor,
    WorkerSettings,
    read_worker_settings,
)
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

TWO = ("--workers", "2")
CLAUDE = "anthropic/claude-sonnet-4-5"
CALLS = [{"name": "read_file", "arguments": {"path": "a.txt"}}]
SCRIPT = {
    "rules": [
        {"when": {"contains": "a.txt", "results": 0}, "reply": {"thinking": "I read it.", "calls": CALLS}},
        {"reply": {"thinking": "Now I know.", "text": "It says hello. " * 8}},
    ]
}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


def pids(gateway: Process) -> dict[int, int]:
    """The processes of the workers, by their numbers."""
    return {event["worker"]: event["pid"] for event in gateway.events("start")}


@contextmanager
def only(gateway: Process, number: int, folder: Path) -> Iterator[None]:
    """All workers but one hold still, and none of these holds the store."""
    others = [pid for worker, pid in pids(gateway).items() if worker != number]

    def has_stopped_them() -> bool:
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        if is_free(folder / "store.db"):
            return True
        for pid in others:
            os.kill(pid, signal.SIGCONT)
        return False

    wait_until(has_stopped_them)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def is_free(store: Path) -> bool:
    """Whether no process is writing to a store."""
    with closing(sqlite3.connect(store, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        connection.execute("ROLLBACK")
    return True


def test_a_tool_loop_with_thinking_goes_on_at_another_worker_and_one_that_is_killed_is_replaced(
    simulated: Server, tmp_path: Path
) -> None:
    with process(tmp_path, simulated, *TWO) as gateway:
        wait_until(lambda: len(pids(gateway)) == 2)
        path, body = request_of("openai", CLAUDE, reasoning_effort="high")
        for number in (1, 2, 1, 2):  # each worker finds what the other one has kept
            with only(gateway, number, tmp_path):
                got = ask(gateway.url, path, body)
            assert got.status == 200, got.data
            message = got.body["choices"][0]["message"]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "hello"}
                for call in message.get("tool_calls", ())
            ]
            more: list[Any] = [message, *(results or [{"role": "user", "content": "And then?"}])]
            body = {**body, "messages": [*body["messages"], *more]}
        assert {request.status for request in simulated.requests} == {200}
        assert [json.dumps(request.body).count('"signature": ') for request in simulated.requests] == [0, 1, 2, 3]
        wait_until(lambda: len(gateway.events("request")) == 4)
        requests = sorted(gateway.events("request"), key=lambda event: float(event["time"]))
        assert [event["worker"] for event in requests] == [1, 2, 1, 2]

        # Each of them knows what all of them know.
        listed = ask(gateway.url, "/toolglot/requests").body["requests"]
        assert [summary["id"] for summary in listed] == [event["id"] for event in reversed(requests)]
        for summary in listed:
            for _ in range(3):  # whichever of the two is called
                assert ask(gateway.url, f"/toolglot/requests/{summary['id']}").body["id"] == summary["id"]
        assert ask(gateway.url, "/toolglot/requests/tg_unknown").status == 404
        text = ask(gateway.url, "/metrics").data.decode()
        counts = {
            (sample.labels["worker"], sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "toolglot_requests_total" and "anthropic" in sample.labels.values()
        }
        assert counts == {("1", 2.0), ("2", 2.0)}
        assert text.count("# TYPE toolglot_requests_total") == 1

        # One is killed: the other one serves at once, and there are two again.
        killed = pids(gateway)[1]
        os.kill(killed, signal.SIGKILL)
        assert ask(gateway.url, "/ready").status == 200
        wait_until(lambda: pids(gateway)[1] != killed)
        with only(gateway, 1, tmp_path):
            assert ask(gateway.url, "/ready").status == 200
        (worker_event,) = gateway.events("worker")
        assert worker_event["message"].startswith("worker 1 was killed by signal 9; restarting it")

        gateway.signal(signal.SIGTERM)
        assert gateway.ended() == 0
    assert sorted(event["worker"] for event in gateway.events("stop")) == [1, 2]


def test_all_workers_drain_and_the_supervisor_ends_with_the_last(tmp_path: Path) -> None:
    with serve({**SCRIPT, "chunk": 10, "pace": 0.1}) as slow, process(tmp_path, slow, *TWO) as gateway:
        wait_until(lambda: len(pids(gateway)) == 2)
        streams = []
        for number in (1, 2):
            with only(gateway, number, tmp_path):
                sock = gateway.connect()
                sock.sendall(posted(*request_of("anthropic", "openai_chat/gpt-4.1", "Hello", stream=True)))
                streams.append((sock, read_until(sock, b"text_delta")))
        gateway.signal(signal.SIGINT)  # as Ctrl-C is: workers do not get it from the terminal
        for sock, data in streams:
            assert b"event: message_stop" in read_all(sock, data)
        assert gateway.ended() == 0
        with pytest.raises(OSError, match="refused"):
            gateway.connect()
    assert [event["open"] for event in gateway.events("stop")] == [0, 0]


def test_workers_end_in_order_when_their_supervisor_is_killed(simulated: Server, tmp_path: Path) -> None:
    with process(tmp_path, simulated, *TWO) as gateway:
        wait_until(lambda: len(pids(gateway)) == 2)
        gateway.signal(signal.SIGKILL)
        gateway.ended()
        wait_until(lambda: len(gateway.events("stop")) == 2)


def test_several_workers_need_a_store_that_they_can_share(simulated: Server, tmp_path: Path) -> None:
    ended = command("serve", "--workers", "2", "--store", ":memory:", cwd=tmp_path)
    assert ended.code == 2
    assert "several workers need a shared store" in ended.err
    assert command("serve", "--workers", "0", cwd=tmp_path).code == 2


def test_a_configuration_that_no_worker_can_start_with_ends_all(simulated: Server, tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database at all, and quite long enough to be seen as none\n" * 20)
    (tmp_path / "own.toml").write_text(config_text(simulated, str(tmp_path / "store.db")))
    ended = command("serve", "--config", "own.toml", *TWO, cwd=tmp_path, SIMULATED_KEY="simulated-key")
    assert ended.code == 2
    assert "not an SQLite database" in ended.err


async def test_a_client_sees_its_own_requests_of_all_workers_and_a_silent_worker_is_left_out(tmp_path: Path) -> None:
    every = [WorkerLinks(str(tmp_path), number) for number in (1, 2, 3)]
    for number, sibling in enumerate(every, 1):
        request_log = RequestLog(max_remembered=10, form="off")
        for client in ("a", "b"):
            request_log.end(ended_request(id=f"{client}{number}", client=client, body=b"{}", started_at=float(number)))
        await sibling.start(request_log, f"# HELP up it is\n# TYPE up gauge\nup {number}\n".encode)
    first = every[0]
    assert [one["id"] for one in await first.requests("a")] == ["a3", "a2", "a1"]
    assert len(await first.requests(None)) == 6
    assert (await first.request("a3", "a"))["id"] == "a3"
    assert await first.request("a3", "b") is None
    assert (await first.request("a1", "a"))["id"] == "a1"
    series = 'up{worker="1"} 1\nup{worker="2"} 2\nup{worker="3"} 3\n'
    assert (await first.metrics()).decode() == f"# HELP up it is\n# TYPE up gauge\n{series}"
    nowhere = WorkerLinks(str(tmp_path / ("long" * 60)), 4)  # a name that no socket can have
    await nowhere.start(RequestLog(max_remembered=0, form="off"), bytes)
    await every[1].close()
    (tmp_path / "2.sock").write_text("no server listens here")
    assert [one["id"] for one in await first.requests("a")] == ["a3", "a1"]
    reader, writer = await asyncio.open_unix_connection(tmp_path / "3.sock")
    writer.write(b"no question\n")
    assert await reader.read() == b""
    writer.close()
    for sibling in every:
        await sibling.close()


# --- the supervisor by itself -----------------------------------------------------------------------


def test_workers_that_die_at_once_are_started_ever_more_slowly() -> None:
    slot = Slot(1)
    pauses = []
    for _ in range(14):
        slot.begun = slot.next_start
        pauses.append(slot.mark_dead(slot.begun + 0.5))
    assert pauses[0] == FIRST_PAUSE * 2
    assert pauses == sorted(pauses)
    assert pauses[-1] == MAX_PAUSE_SECONDS
    slot.begun = 1000.0
    assert slot.mark_dead(1000.0 + YOUNG_SECONDS) == 0, "one that had served is replaced at once"


def test_a_worker_index_is_read_once_and_nonsense_is_none() -> None:
    environ = {"TOOLGLOT_WORKER": "2,7,8 /tmp/a b"}
    assert read_worker_settings(environ) == WorkerSettings(2, 7, 8, "/tmp/a b")  # noqa: S108 - nothing is made there
    assert environ == {}
    for text in ("", "1", "a,b,c", "1,2,3,4"):
        assert read_worker_settings({"TOOLGLOT_WORKER": text}) is None


STUBBORN = """
import signal, sys, time
from toolglot.gateway.http import workers
from toolglot.simulator.serving import listen
workers.KILL_SECONDS = 0.2
sock = listen()
supervisor = workers.Supervisor([], 1, sock, drain_seconds=0, notice=lambda text: print(text, flush=True))
supervisor._words = [sys.executable, "-c", sys.argv[1]]
print("ready", flush=True)
sys.exit(supervisor.run())
"""


def supervised(worker: str) -> subprocess.Popen[str]:
    """A supervisor of a worker that is this program."""
    return subprocess.Popen([sys.executable, "-c", STUBBORN, worker], stdout=subprocess.PIPE, text=True)


def test_a_worker_that_does_not_end_is_killed() -> None:
    worker = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(3600)"
    with supervised(worker) as running:
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["ready\n", "deaf\n"]
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline() == "worker 1 did not end in time; killing it\n"
        assert running.wait(SOON) == 1


def test_a_worker_that_fails_is_reported_with_its_code_and_when_the_next_one_comes() -> None:
    with supervised("import sys; sys.exit(3)") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        assert running.stdout.readline() == "worker 1 ended with code 3; restarting it in 0.2 s\n"
        assert running.stdout.readline() == "worker 1 ended with code 3; restarting it in 0.4 s\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(SOON) == 0


def test_where_processes_cannot_share_a_socket_there_is_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with socket.socket() as sock, pytest.raises(InputError, match="several workers need"):
        Supervisor([], 2, sock, drain_seconds=0, notice=print)

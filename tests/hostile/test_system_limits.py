"""A system that gives no more descriptors or memory: the gateway answers what it can, survives, and recovers.

The limits of a running gateway are changed from outside (`prlimit`), as an administrator or a container would.
"""

from __future__ import annotations

import contextlib
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.gateway.gateway_process import Process, process
from support.gateway.http_client import ask, request_of
from support.hostile.raw_sockets import answers_in, connect, post, read_answer, read_to_end
from support.waiting import wait_until
from toolglot.simulator import serve

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process: Linux only")

PATH, BODY = request_of("openai", "openai_chat/gpt-4.1")
HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all tests: that without descriptors is the first, before anything was loaded for a request."""
    with (
        serve({"rules": [{"reply": {"text": "Hello."}}]}) as simulated,
        process(tmp_path_factory.mktemp("limits"), simulated, settings="max_body_bytes = 33554432") as gateway,
    ):
        yield gateway


def _descriptors(running: Process) -> int:
    return sum(1 for _ in Path(f"/proc/{running.popen.pid}/fd").iterdir())


def _memory(running: Process) -> int:
    """Of its address space, in bytes."""
    found = re.search(r"VmSize:\s+(\d+) kB", Path(f"/proc/{running.popen.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _is_served(running: Process) -> None:
    assert ask(running.url, PATH, BODY).status == 200
    assert ask(running.url, "/ready").status == 200
    assert "Traceback" not in "".join(running.log)
    assert running.popen.poll() is None


def test_without_descriptors_no_open_connection_is_lost_and_afterwards_every_client_is_served(running: Process) -> None:
    pid, limit = running.popen.pid, resource.RLIMIT_NOFILE
    held = running.connect()
    held.sendall(HEALTH + b"\r\n")
    assert read_answer(held)[0].startswith(b"HTTP/1.1 200")
    before = _descriptors(running)
    soft, hard = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (before, hard))
    waiting = [connect(running) for _ in range(30)]
    for sock in waiting:
        sock.sendall(HEALTH + b"connection: close\r\n\r\n")
    # Who is held is answered: also that there is no descriptor for an upstream.
    held.sendall(post(BODY))
    head, data = read_answer(held)
    assert head.split(b" ")[1] in (b"502", b"503", b"529")
    assert json.loads(data)["error"]["message"]
    resource.prlimit(pid, limit, (soft, hard))
    statuses = [[answer.status for answer in answers_in(read_to_end(sock), ["GET"])] for sock in waiting]
    assert all(
        found in ([], [200], [503]) for found in statuses
    )  # refused by the system, served late, or answered with an error
    held.sendall(HEALTH + b"\r\n")
    assert read_answer(held)[0].startswith(b"HTTP/1.1 200")
    _is_served(running)
    held.close()
    wait_until(lambda: _descriptors(running) <= before + 2)  # a connection to the upstream is kept


def test_with_few_descriptors_from_the_start_connections_are_answered_with_a_retry_time(tmp_path: Path) -> None:
    with (
        serve({"rules": [{"reply": {"text": "Hello."}}]}) as simulated,
        process(tmp_path, simulated, command=["prlimit", "--nofile=96:96"]) as running,
    ):
        crowd = [connect(running) for _ in range(200)]
        refusals = [sock.recv(12) for sock in crowd[100:]]
        assert set(refusals) <= {b"HTTP/1.1 503", b""}
        assert b"HTTP/1.1 503" in refusals
        for sock in crowd:
            sock.close()
        wait_until(lambda: _descriptors(running) < 60)
        _is_served(running)


def test_without_memory_for_large_bodies_they_are_refused_and_small_ones_served(running: Process) -> None:
    pid, limit = running.popen.pid, resource.RLIMIT_AS
    _is_served(running)
    words = "x" * (24 * 1024 * 1024)
    large = json.dumps(request_of("openai", "anthropic/claude-sonnet-4-5", words)[1]).encode()
    old = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (_memory(running) + 8 * 1024 * 1024, old[1]))

    def send(_: int) -> bytes:
        sock = connect(running)
        with contextlib.suppress(ConnectionError):
            sock.sendall(post(large, "connection: close\r\n"))
        return read_to_end(sock)

    with ThreadPoolExecutor(4) as clients:
        answers = [*clients.map(send, range(4))]
    assert {data[:12] for data in answers} <= {b"", b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert any(data.startswith(b"HTTP/1.1 503") for data in answers)
    assert ask(running.url, PATH, BODY).status == 200
    resource.prlimit(pid, limit, old)
    assert ask(running.url, PATH, large).status == 200
    _is_served(running)


NO_MEMORY = """
import re, resource, sys
from toolglot.jsontext import parse_plain
from toolglot.conversation.tool_memory import ToolMemory
data = b'{"tools": [{"type": "function"}], "a": "' + b"x" * (60 << 20) + b'"}'
read = parse_plain if sys.argv[1] == "parse" else lambda body: ToolMemory().split(body, "openai_chat")
read(b"{}")
used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20),) * 2)
try:
    read(data)
except MemoryError:
    print("refused")
"""


@pytest.mark.parametrize("reader", ["parse", "split"])
def test_a_string_for_which_there_is_no_memory_does_not_end_the_process(reader: str) -> None:
    """msgspec alone ends with a segmentation fault there."""
    done = subprocess.run([sys.executable, "-c", NO_MEMORY, reader], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr

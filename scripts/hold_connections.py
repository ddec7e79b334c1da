"""Holds idle connections to a gateway, and measures what they cost it and its other clients.

    python scripts/hold_connections.py                       10,000, to a gateway of its own, from three processes
    python scripts/hold_connections.py --connections 3000

Every third connection has sent nothing yet; the others have had one response and wait for the next request. While they
are held, another client sends requests to a model, each over a connection of its own. Exit code 1: a response took
longer than `SLOW`, a connection cost more than `MAX_BYTES`, or one was lost.

With `HOLD PORT COUNT` it is one of the processes that hold them, until its input ends.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

from soak_report import Part, write_part

SLOW: Final = 1.0
"""Seconds that the slowest of a hundred responses may take while they are held."""
MAX_BYTES: Final = 20_000
HOLDERS: Final = 3
REQUESTS: Final = 150
START_SECONDS: Final = 120.0
SPARE: Final = 1_500
"""Descriptors that a gateway keeps for requests and files (see docs/operations.md)."""

_PATIENT_GATEWAY: Final = """\
import sys
from toolglot.cli.main import main
from toolglot.gateway.http import connections, serving
connections.BoundedProtocol.head_seconds = 3600.0
serving.KEEP_ALIVE = 3600
sys.exit(main())
"""
"""Opening all of them may take longer, on a busy machine, than a gateway waits for the next request of a connection."""
_HELLO: Final = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"


# --- the holders ------------------------------------------------------------------------------------


def hold(port: int, count: int) -> None:
    """Open so many connections and keep them until the input ends; then print how many are still open."""
    held: list[socket.socket] = []
    for number in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
        if number % 3:
            connection.sendall(_HELLO)
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"connection {number} got no response")
        held.append(connection)
    print("held", flush=True)
    sys.stdin.read()
    print(sum(map(_is_open, held)), flush=True)


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


# --- the measurement --------------------------------------------------------------------------------


class Gateway:
    """A gateway in a process of its own."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        config = folder / "toolglot.toml"
        config.write_text(f'[gateway]\nstore = ":memory:"\nlog = "off"\n{settings}\n')
        command = [sys.executable, "-c", _PATIENT_GATEWAY, "serve", "--config", str(config), "--port", "0", "--quiet"]
        self._process = subprocess.Popen(  # noqa: S603 - a command of our own
            command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        self.port = int(_line(self._process.stdout).rsplit(b":", 1)[1])
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError):
                self.send("/health")
                break
            if time.monotonic() > end:
                raise RuntimeError("the gateway does not respond")
            time.sleep(0.02)

    def send(self, path: str, body: Any = None) -> tuple[int, bytes, float]:
        """Send one request over a connection of its own: status, body, seconds."""
        begun = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request("GET" if data is None else "POST", path, data, {"authorization": "Bearer k"})
            response = connection.getresponse()
            return response.status, response.read(), time.perf_counter() - begun
        finally:
            connection.close()

    def time_request(self) -> float:
        """Seconds that a reply of a simulated model took."""
        body = {"model": "simulated/openai/gpt-4.1", "messages": [{"role": "user", "content": "Hello"}]}
        status, data, seconds = self.send("/v1/chat/completions", body)
        if status != 200:
            raise RuntimeError(f"status {status}: {data[:200]!r}")
        return seconds

    @property
    def rss(self) -> int:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def end(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(START_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()


@contextlib.contextmanager
def serving(settings: str = "") -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(Path(folder), settings)
        try:
            yield gateway
        finally:
            gateway.end()


def _line(output: IO[bytes] | None) -> bytes:
    return output.readline() if output is not None else b""


class Holders:
    """Processes that hold connections."""

    def __init__(self, port: int, count: int, processes: int = HOLDERS) -> None:
        shares = [count // processes + (number < count % processes) for number in range(processes)]
        self._all = [
            subprocess.Popen(  # noqa: S603 - this very file
                [sys.executable, __file__, "HOLD", str(port), str(share)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for share in shares
        ]

    def wait(self) -> None:
        """Until all are held."""
        for each in self._all:
            if _line(each.stdout) != b"held\n":
                raise RuntimeError("the connections could not be opened")

    def end(self) -> int:
        """Close all; returns how many were still open."""
        return sum(int(each.communicate(timeout=START_SECONDS)[0] or 0) for each in self._all)

    def kill(self) -> None:
        for each in self._all:
            each.kill()
            each.communicate()


def measure(count: int) -> dict[str, Any]:
    """The cost of so many idle connections."""
    with serving() as gateway:
        alone = sorted(gateway.time_request() for _ in range(REQUESTS))
        before = gateway.rss
        begun = time.perf_counter()
        holders = Holders(gateway.port, count)
        try:
            holders.wait()
            opened = time.perf_counter() - begun
            held = gateway.rss
            beside = sorted(gateway.time_request() for _ in range(REQUESTS))
            left = holders.end()
        finally:
            holders.kill()
        after = gateway.time_request()
    return {
        "connections": count,
        "still_open": left,
        "seconds_to_open": round(opened, 2),
        "bytes_each": round((held - before) / count),
        "idle_mb": round(before / 1e6, 1),
        "held_mb": round(held / 1e6, 1),
        "ms_alone_p50": round(alone[len(alone) // 2] * 1000, 1),
        "answers_beside": len(beside),
        "ms_beside_p50": round(beside[len(beside) // 2] * 1000, 1),
        "ms_beside_p99": round(beside[len(beside) * 99 // 100] * 1000, 1),
        "ms_after": round(after * 1000, 1),
    }


def possible_count(wanted: int) -> int:
    """As many connections as the descriptors of a process here allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    available = max(soft, hard) if hard != resource.RLIM_INFINITY else wanted + SPARE
    return min(wanted, available - SPARE)


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["HOLD"]:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, hard), hard))
        hold(int(arguments[1]), int(arguments[2]))
        return 0
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--connections", type=int, default=10_000)
    wanted, begun = options.parse_args(arguments).connections, time.perf_counter()
    found = measure(possible_count(wanted))
    print("\n".join(f"{name:16} {value}" for name, value in found.items()))
    if found["connections"] < wanted:
        print(f"no more than {found['connections']}: the descriptors of a process are bounded here (ulimit -Hn)")
    wrong = found["ms_beside_p99"] > SLOW * 1000 or found["bytes_each"] > MAX_BYTES
    wrong = wrong or found["still_open"] != found["connections"]
    command = f"python scripts/hold_connections.py --connections {wanted}"
    requests = 2 * REQUESTS + found["connections"] * 2 // 3
    write_part(Part("idle connections", command, time.perf_counter() - begun, int(wrong), requests=requests))
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

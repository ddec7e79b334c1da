"""`toolglot serve` as a process of its own in front of the simulator: for tests of signals, workers and exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.hostile.raw_sockets import connect, post
from support.waiting import HANG_SECONDS, wait_until
from toolglot.simulator.serving import Server

SOON = HANG_SECONDS


class Process:
    """A gateway in another process."""

    def __init__(self, popen: subprocess.Popen[bytes], url: str) -> None:
        self.popen = popen
        self.url = url
        self.log: list[str] = []
        """What it wrote to stderr so far."""
        self.connections: list[socket.socket] = []

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of its log with this event."""
        found = [json.loads(line) for line in list(self.log) if line.startswith("{")]
        return [event for event in found if event["event"] == name]

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def ended(self, seconds: float = SOON) -> int:
        """Its exit code."""
        return self.popen.wait(seconds)

    def connect(self) -> socket.socket:
        """A connection that is closed with the process."""
        self.connections.append(connect(self))
        return self.connections[-1]


def config_text(simulated: Server, store: str, settings: str = "") -> str:
    """Upstreams `anthropic` and `openai_chat` in the simulator; the last of the settings may be upstreams too."""
    lines = ["[gateway]", "port = 0", f'store = "{store}"', 'log = "json"', settings]
    for name, provider, target in (("anthropic", "anthropic", ""), ("openai_chat", "openai", "openai")):
        lines += [f"[upstreams.{name}]", f'provider = "{provider}"', f'url = "{simulated.url(provider)}"']
        lines += ['key_env = "SIMULATED_KEY"', f'target = "{target}"' if target else ""]
    return "\n".join(lines)


@contextlib.contextmanager
def process(
    folder: Path,
    simulated: Server,
    *words: str,
    settings: str = "",
    store: str = "",
    environ: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
    config_lines: Sequence[str] = (),
) -> Iterator[Process]:
    """The gateway until the block ends, and no longer: then it stops in order, and its usage is in the store.

    Its store is in the folder, unless another file is named. `command` is what starts it, such as `prlimit`.
    `config_lines` are the sections of a configuration of one's own.
    """
    config = folder / "toolglot.toml"
    file = store or str(folder / "store.db")
    own = ["[gateway]", "port = 0", f'store = "{file}"', 'log = "json"', *config_lines]
    config.write_text("\n".join(own) if config_lines else config_text(simulated, file, settings))
    whole = [*command, sys.executable, "-m", "toolglot", "serve", "--config", str(config), "--quiet", *words]
    environment = {**os.environ, "SIMULATED_KEY": "simulated-key", **(environ or {})}
    popen = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert popen.stdout is not None
    assert popen.stderr is not None
    stderr = popen.stderr
    running = Process(popen, "")
    reader = threading.Thread(target=lambda: running.log.extend(line.decode() for line in stderr), daemon=True)
    try:
        running.url = popen.stdout.readline().decode().strip()
        reader.start()
        wait_until(lambda: bool(running.events("start")))
        yield running
    finally:
        for sock in running.connections:
            sock.close()
        if popen.poll() is None:
            # The second one waits for no response. A third one would kill it before it has stored its usage.
            for _ in range(2):
                popen.send_signal(signal.SIGTERM)
            try:
                popen.wait(SOON)
            finally:
                popen.kill()
        popen.wait()
        reader.join(SOON)
        popen.stdout.close()
        popen.stderr.close()


def posted(path: str, body: Any) -> bytes:
    """A request as bytes."""
    return post(body, "x-api-key: any\r\n", path)


def read_until(sock: socket.socket, mark: bytes, data: bytes = b"") -> bytes:
    """What comes up to and with a mark."""
    while mark not in data:
        piece = sock.recv(65536)
        assert piece, f"the connection ended before {mark!r}: {data[-300:]!r}"
        data += piece
    return data


def read_all(sock: socket.socket, data: bytes = b"") -> bytes:
    """What comes up to the end of the connection."""
    while piece := sock.recv(65536):
        data += piece
    return data

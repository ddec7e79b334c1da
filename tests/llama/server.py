"""The test engine as a provider on loopback: started as a process of its own, called, and ended.

Law: starting is bounded in time, and whatever happens the process ends with the context.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlsplit

NEEDED: Final = ("xllamacpp", "gguf", "numpy")
SEED: Final = 2
"""What the engine samples with when a request gives no seed. At temperature 1 it makes the model call `get_weather`
and then `send_mail`, if it is offered the tools of scripts/record_streams.py."""
_TESTS: Final = Path(__file__).parents[1]
_SECONDS_TO_START: Final = 120.0
_SECONDS_TO_ANSWER: Final = 120.0


@dataclass(frozen=True)
class Answer:
    """What came over HTTP; the body is as it came, with only the transfer encoding undone."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True)
class LlamaServer:
    """A running engine. `/v1/chat/completions`, `/v1/responses`, `/v1/messages` and `/v1/models` are under `url`."""

    url: str
    pid: int

    @property
    def openai_url(self) -> str:
        """The base address of OpenAI's SDK; that of Anthropic's is `url`."""
        return f"{self.url}/v1"

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        return self._ask("POST", path, json.dumps(body, ensure_ascii=False).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS_TO_ANSWER)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers.get_content_type(), answer.read())


class EngineError(RuntimeError):
    """The engine did not start."""


def missing(needed: tuple[str, ...] = NEEDED) -> list[str]:
    """The packages of the engine that are not installed."""
    return [name for name in needed if importlib.util.find_spec(name) is None]


@contextlib.contextmanager
def serving() -> Iterator[LlamaServer]:
    """The engine on a free port of loopback. Four requests are answered at once, more wait."""
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+b") as log:
        process = _start(Path(folder), log)
        with process:
            try:
                yield _ready(process, log)
            finally:
                process.kill()


def _start(folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "llama.engine", str(folder)],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
    )


def _ready(process: subprocess.Popen[bytes], log: IO[bytes]) -> LlamaServer:
    assert process.stdout is not None
    # A process that is killed says nothing more, so the line below is waited for no longer than this.
    late = threading.Timer(_SECONDS_TO_START, process.kill)
    late.start()
    try:
        server = LlamaServer(process.stdout.readline().decode().strip(), process.pid)
    finally:
        late.cancel()
    if not server.url or server.get("/health").status != http.HTTPStatus.OK:
        log.seek(0)
        raise EngineError(f"The engine did not start: {log.read()[-2000:].decode(errors='replace')}")
    return server

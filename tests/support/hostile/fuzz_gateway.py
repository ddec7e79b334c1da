"""A gateway process under the fuzz of types, from both sides: clients' requests, and providers' answers.

    with gateway_between(folder) as gateway:
        gateway.answers[7] = ANSWER                                # the upstream's bytes for a model called reply-7
        got = gateway.ask("POST", "/v1/messages", data)            # what the client gets
        wrong(got), gateway.complaints()                           # what is wrong with it, and with the log

Every profile is an upstream of the gateway, in front of one server of ours that answers in each protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from support.hostile.fuzz_bodies import PROTOCOLS, TARGETS, Body, replies
from support.hostile.fuzz_library import stream_documents, stream_text
from support.translate.reply_bodies import stream_of
from support.upstream.raw_server import Came, RawServer, listening
from support.waiting import HANG_SECONDS, wait_until
from toolglot import profiles
from toolglot.protocols.base import codec

ENDPOINTS: Final[dict[str, tuple[str, ...]]] = {
    "anthropic": ("/v1/messages", "/v1/messages/count_tokens"),
    "openai_chat": ("/v1/chat/completions",),
    "openai_responses": ("/v1/responses", "/v1/responses/input_tokens"),
    "gemini": (
        "/v1beta/models/MODEL:generateContent",
        "/v1beta/models/MODEL:streamGenerateContent",
        "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
        "/v1beta/models/MODEL:countTokens",
    ),
    "bedrock": ("/model/MODEL/converse", "/model/MODEL/converse-stream"),
    "cohere": ("/v2/chat",),
    "ollama": ("/api/chat", "/api/show"),
}
"""Where clients of each protocol send bodies; MODEL is where the address names the model."""

LOOKED_AT: Final = (
    *("/v1/models", "/v1beta/models", "/api/tags", "/api/version", "/health", "/ready", "/metrics", "/openapi.json"),
    *("/", "/toolglot/requests", "/toolglot/requests/WORD", "/v1/models/WORD", "/v1beta/models/WORD"),
    *("/v1/responses/WORD", "/v1/responses/WORD/input_items", "/v1/responses/WORD/input_items?limit=WORD&after=WORD"),
    *("/v1/responses/WORD?stream=WORD&include[]=WORD", "/v1/models?limit=WORD&after_id=WORD", "/v1/WORD/WORD"),
    *("/v1beta/models?pageSize=WORD&pageToken=WORD", "/toolglot/requests?limit=WORD&since=WORD"),
)
"""What is looked at; WORD is where an address holds a name or a value."""
WORDS: Final = (
    *("x", "0", "-1", "1e308", "9" * 400, "null", "true", "%00", "%ff%fe", "%ed%a0%80", "%2e%2e%2f", "[]", "{}"),
    *("resp_1", "a" * 1500, "%F0%9F%98%80", "anthropic%2Fm", "..", "%25", "m:generateContent"),
)
GENERATED: Final = {
    protocol: [path for path in paths if "count" not in path and "show" not in path and "input_tokens" not in path]
    for protocol, paths in ENDPOINTS.items()
}

REQUESTS: Final[dict[str, Body]] = {
    "anthropic": {"model": "MODEL", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "openai_chat": {"model": "MODEL", "messages": [{"role": "user", "content": "hi"}]},
    "openai_responses": {"model": "MODEL", "input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "bedrock": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "cohere": {"model": "MODEL", "messages": [{"role": "user", "content": "hi"}]},
    "ollama": {"model": "MODEL", "messages": [{"role": "user", "content": "hi"}]},
}
"""A small request in each protocol."""

OWN_FAILURE: Final = b"internal error of the gateway"
"""What the gateway says where it ran into something that it did not expect."""
_KEY: Final = "key-of-the-upstream-0123456789"
_CONTENT_TYPES: Final = {"bedrock": "application/vnd.amazon.eventstream", "ollama": "application/x-ndjson"}


# --- the upstream -----------------------------------------------------------------------------------


def whole_answer(data: bytes, status: int = 200, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def stream_answer(protocol: str, data: bytes) -> bytes:
    kind = _CONTENT_TYPES.get(protocol, "text/event-stream")
    head = f"HTTP/1.1 200 X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _good(protocol: str, *, streams: bool) -> bytes:
    body = replies(protocol)[0]
    return stream_answer(protocol, stream_of(protocol, body)) if streams else whole_answer(json.dumps(body).encode())


class Upstream:
    """Answers in the protocol that the first part of the path names; for a model `reply-N` with the answer N."""

    def __init__(self) -> None:
        self.answers: dict[int, bytes] = {}
        self._good = {
            (protocol, streams): _good(protocol, streams=streams) for protocol in PROTOCOLS for streams in (True, False)
        }

    async def handle(self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            came = await server.next_request(reader)
            server.requests.clear()
            answer = self._answer_to(came)
            writer.write(answer)
            await writer.drain()
            if answer.startswith(b"HTTP/1.1 1") or b"content-length" not in answer[:300]:
                return  # nothing that another answer could follow

    def _answer_to(self, came: Came) -> bytes:
        found = re.search(rb"reply-(\d+)", came.line.encode()) or re.search(rb"reply-(\d+)", came.body)
        if found is not None:
            return self.answers[int(found[1])]
        protocol = came.line.split("/")[1]
        return self._good[protocol, "stream" in came.line or _is_stream_request(came.body)]


def _is_stream_request(body: bytes) -> bool:
    """Whether the request itself says so: a fuzzed schema within it may hold the same words."""
    fields = json.loads(body) if b'"stream"' in body else None
    return isinstance(fields, dict) and fields.get("stream") is True


@contextlib.contextmanager
def _serving(upstream: Upstream) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = listening(upstream.handle)
    server = asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result(HANG_SECONDS)
    try:
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(running.__aexit__(None, None, None), loop).result(HANG_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# --- the gateway ------------------------------------------------------------------------------------


class Got(NamedTuple):
    status: int
    kind: str
    """The media type."""
    data: bytes


class FuzzedGateway:
    """A gateway, what it talks to, and who talks to it."""

    def __init__(self, url: str, upstream: Upstream, log: list[str], popen: subprocess.Popen[bytes]) -> None:
        self.url, self.answers, self.log, self.popen = url, upstream.answers, log, popen
        self.bytes_sent = 0
        self._local = threading.local()
        self._connections: list[http.client.HTTPConnection] = []

    def ask(self, method: str, path: str, data: bytes | None = None) -> Got:
        """One request, over the connection of this thread. A connection that the gateway closed is opened anew."""
        headers = {"x-api-key": "any", "content-type": "application/json", "host": "127.0.0.1"}
        self.bytes_sent += len(data or b"")
        for _ in range(2):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                parts = urlsplit(self.url)
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HANG_SECONDS)
                self._local.connection = connection
                self._connections.append(connection)
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                got = Got(answer.status, (answer.headers.get("content-type") or "").partition(";")[0], answer.read())
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                self._local.connection = None
                continue
            if answer.will_close:
                connection.close()
                self._local.connection = None
            return got
        return Got(0, "", b"the connection ended without an answer")

    def complaints(self) -> list[str]:
        """The lines of the log that say that the gateway itself failed."""
        return [line for line in list(self.log) if "Traceback" in line or '"event":"error"' in line.replace(" ", "")]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def wrong(got: Got, *, from_upstream: bool = False) -> str | None:
    """What an answer of the gateway must not be, if it is so. A provider that cannot be understood is a 500 in the
    words of some protocols, which is not the gateway's."""
    is_own = got.status == 500 and (not from_upstream or OWN_FAILURE in got.data)
    if is_own or not 200 <= got.status < 600:
        return f"{got.status}: {got.data[:300]!r}"
    if got.status >= 400:
        return None if from_upstream else _wrong_error(got)
    if got.kind == "application/json" and got.data:
        try:
            json.loads(got.data)
        except ValueError:
            return f"{got.status}: no JSON: {got.data[:300]!r}"
    return None


def _wrong_error(got: Got) -> str | None:
    """An error that a user sees says what is wrong, in our words."""
    text = got.data.decode("utf-8", "replace")
    if not re.search(r'"(message|error)"\s*:\s*("[^"]{8,}|\{)', text):
        return f"{got.status}: an error without words: {text[:300]}"
    if re.search(r"object has no attribute|NoneType|unhashable|Traceback|codec can't|is not iterable", text):
        return f"{got.status}: an error in Python's words: {text[:300]}"
    return None


def _config(url: str, folder: Path) -> str:
    lines = ["[gateway]", "port = 0", f'store = "{folder / "store.db"}"', 'log = "json"']
    for target in TARGETS:
        lines += [f"[upstreams.{target}]", f'target = "{target}"', f'url = "{url}/{profiles.get(target).protocol}"']
        lines += ['key_env = "FUZZ_KEY"', "retries = 0", "breaker_failures = 10000"]
        lines += ['auth = "bearer"'] if target == "bedrock" else []
    return "\n".join(lines)


@contextlib.contextmanager
def gateway_between(folder: Path) -> Iterator[FuzzedGateway]:
    """A gateway process in front of an upstream of ours, as long as the block lasts."""
    upstream = Upstream()
    with _serving(upstream) as url:
        config = folder / "toolglot.toml"
        config.write_text(_config(url, folder))
        command = [sys.executable, "-m", "toolglot", "serve", "--config", str(config), "--quiet"]
        popen = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "FUZZ_KEY": _KEY}
        )
        assert popen.stdout is not None and popen.stderr is not None  # noqa: PT018
        stderr, log = popen.stderr, list[str]()
        reader = threading.Thread(target=lambda: log.extend(line.decode() for line in stderr), daemon=True)
        reader.start()
        gateway = FuzzedGateway(popen.stdout.readline().decode().strip(), upstream, log, popen)
        try:
            wait_until(lambda: popen.poll() is not None or any('"start"' in line for line in list(log)))
            assert popen.poll() is None, "".join(log)
            yield gateway
        finally:
            gateway.close()
            if popen.poll() is None:
                popen.send_signal(signal.SIGTERM)
                popen.send_signal(signal.SIGTERM)
            try:
                popen.wait(HANG_SECONDS)
            finally:
                popen.kill()
            popen.wait()
            reader.join(HANG_SECONDS)
            popen.stdout.close()
            popen.stderr.close()


# --- cases ------------------------------------------------------------------------------------------


class FuzzedRequest(NamedTuple):
    """A request of a client."""

    method: str
    path: str
    data: bytes | None


def with_model(body: Any, model: str) -> Any:
    """A request for a model, where the body names it."""
    return {**body, "model": model} if isinstance(body, dict) and "model" in body else body


def request_case(protocol: str, data: bytes, target: str, number: int) -> FuzzedRequest:
    """A body of a client, at one of the addresses that its protocol has."""
    paths = ENDPOINTS[protocol]
    return FuzzedRequest("POST", paths[number % len(paths)].replace("MODEL", f"{target}%2Fm"), data)


def reply_case(client: str, target: str, reply: int, number: int, *, streams: bool) -> FuzzedRequest:
    """A small request whose answer is the reply of that number."""
    paths = GENERATED[client]
    wanted = [path for path in paths if ("stream" in path.lower()) == streams] or paths
    body = {**REQUESTS[client]}
    if "model" in body:
        body |= {"model": f"{target}/reply-{reply}", "stream": streams}
    path = wanted[number % len(wanted)].replace("MODEL", f"{target}%2Freply-{reply}")
    return FuzzedRequest("POST", path, json.dumps(body).encode())


def has_stream(protocol: str) -> bool:
    return bool(codec(protocol).stream)


__all__ = [
    "ENDPOINTS",
    "LOOKED_AT",
    "REQUESTS",
    "WORDS",
    "FuzzedGateway",
    "FuzzedRequest",
    "Got",
    "gateway_between",
    "reply_case",
    "request_case",
    "stream_answer",
    "stream_documents",
    "stream_text",
    "whole_answer",
    "with_model",
    "wrong",
]

"""A small proxy: clients of one protocol talk to a provider of another, with tools, streams and errors.

    python examples/stream_proxy.py --upstream https://api.openai.com/v1 --model gpt-5.2

It uses the standard library only, with one thread for each request; the provider's key is in UPSTREAM_KEY. Without
options it runs a check against the simulator. A production gateway adds limits, logs and retries; everything that
toolglot needs is here.
"""

import argparse
import http.client
import json
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, urlsplit

import toolglot
from toolglot.simulator import serve

MAX_BYTES = 32 * 1024 * 1024
SILENCE = 120.0
"""Seconds without data after which the provider has failed."""
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/chat/completions",
    "openai_responses": "/responses",
    "mistral": "/v1/chat/completions",
    "cohere": "/v2/chat",
    "ollama": "/api/chat",
}
"""The path after the base address that a provider's SDK takes."""


def path_for(target: str, out: toolglot.ConvertedRequest) -> str:
    """The path of a request. Some protocols have the model, and whether to stream, in the path."""
    model = quote(out.model, safe="")
    if target == "gemini":
        return f"/v1beta/models/{model}:" + ("streamGenerateContent?alt=sse" if out.stream else "generateContent")
    if target == "bedrock":
        return f"/model/{model}/" + ("converse-stream" if out.stream else "converse")
    return PATHS[target]


def headers_for(target: str, key: str) -> dict[str, str]:
    own = {
        "anthropic": {"x-api-key": key, "anthropic-version": "2023-06-01"},
        "gemini": {"x-goog-api-key": key},
    }
    return {"content-type": "application/json", **own.get(target, {"authorization": f"Bearer {key}"})}


class GoneError(Exception):
    """The client disconnected."""


class Proxy(ThreadingHTTPServer):
    """Listens for clients of `source`, and calls `model` of `target` at its base address."""

    daemon_threads = True

    def __init__(self, port: int, *, source: str, target: str, upstream: str, model: str, ping: float = 15.0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.source, self.target, self.model, self.ping = source, target, model, ping
        self.upstream = urlsplit(upstream)
        self.key = os.environ.get("UPSTREAM_KEY", "none")

    def connect(self) -> http.client.HTTPConnection:
        secure = self.upstream.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(self.upstream.hostname or "", self.upstream.port, timeout=SILENCE)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    timeout = SILENCE

    @property
    def proxy(self) -> Proxy:
        assert isinstance(self.server, Proxy)
        return self.server

    def do_POST(self) -> None:
        """One request. Errors reach the client in its own protocol, whether it or the provider is at fault."""
        try:
            try:
                self.forward(toolglot.convert(self.body(), **self.names(), model=self.proxy.model))
            except (
                toolglot.InputError,
                toolglot.ProviderError,
            ) as error:  # of the client, or of a provider that sent status 200
                self.send_failure(error)
            except (http.client.HTTPException, OSError):  # nothing was sent yet: a stream handles its own end
                self.send_failure(toolglot.Failure("overloaded", "the provider cannot be reached"))
        except GoneError:
            self.close_connection = True

    def names(self) -> dict[str, Any]:
        """For the request; the reply is converted from `target` to `source`."""
        return {"source": self.proxy.source, "target": self.proxy.target}

    def body(self) -> bytes:
        size = self.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > MAX_BYTES:
            raise toolglot.LimitError(f"expected a content-length of at most {MAX_BYTES}")
        try:
            return self.rfile.read(int(size))
        except OSError:
            raise GoneError from None

    def forward(self, out: toolglot.ConvertedRequest) -> None:
        proxy = self.proxy
        back: dict[str, Any] = {"source": proxy.target, "target": proxy.source}
        connection = proxy.connect()
        try:
            path = proxy.upstream.path.rstrip("/") + path_for(proxy.target, out)
            connection.request("POST", path, out.data, headers_for(proxy.target, proxy.key))
            with connection.getresponse() as response:
                if response.status >= 400:
                    error = toolglot.convert_error(
                        response.status, response.read(), headers=dict(response.headers), **back
                    )
                    self.send_whole(error.status, error.data, error.headers)
                elif out.stream:
                    self.stream(response, toolglot.StreamTranslator(**back, request=out))
                else:
                    self.send_whole(200, toolglot.convert_reply(response.read(), **back, request=out).data)
        finally:
            connection.close()

    def stream(self, response: http.client.HTTPResponse, translator: toolglot.StreamTranslator) -> None:
        """Send the provider's pieces as they come, pings while it is silent, and one end in every case."""
        try:
            self.start(200, {"content-type": translator.content_type, "transfer-encoding": "chunked"})
            with self.pings(translator) as lock:
                last = translator.finish
                try:
                    while piece := response.read1(65_536):
                        with lock:
                            self.send_piece(translator.feed(piece))
                except (http.client.HTTPException, OSError):  # the connection broke, or was silent for too long
                    last = translator.fail
                with lock:
                    self.send_piece(last())
            self.write(b"0\r\n\r\n")
        except GoneError:
            translator.close()
            raise

    @contextmanager
    def pings(self, translator: toolglot.StreamTranslator) -> Generator[threading.Lock]:
        """Keep the client's connection alive. The lock keeps pings out of the middle of an event."""
        lock, over = threading.Lock(), threading.Event()

        def run() -> None:
            while not over.wait(self.proxy.ping):
                with lock:
                    try:
                        self.send_piece(translator.ping())
                    except GoneError:
                        return  # the next piece finds out as well, and ends the request

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield lock
        finally:
            over.set()
            thread.join()

    # --- bytes for the client -----------------------------------------------------------------------

    def send_failure(self, failure: toolglot.Failure | toolglot.ProviderError | toolglot.InputError) -> None:
        error = toolglot.error_for(failure, target=self.proxy.source)
        self.send_whole(error.status, error.data, error.headers)

    def send_whole(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        sizes = {"content-type": "application/json", "content-length": str(len(data))}
        self.start(status, {**(headers or {}), **sizes})
        self.write(data)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("connection", "close")
        try:
            self.end_headers()
        except OSError:
            raise GoneError from None

    def send_piece(self, data: bytes) -> None:
        if data:  # an empty chunk would be the end
            self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            raise GoneError from None


@contextmanager
def running(proxy: Proxy) -> Generator[str]:
    """The proxy in a thread; its address."""
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


# --- the check --------------------------------------------------------------------------------------

TOOL = {"name": "files/read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 500,
    "tools": [TOOL],
    "messages": [{"role": "user", "content": "What is in a.txt?"}],
}


def post(address: str, body: Mapping[str, Any]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("POST", "/v1/messages", json.dumps(body))
        with connection.getresponse() as response:
            return response.status, response.read().decode()
    finally:
        connection.close()


def check() -> None:
    """A client of Anthropic's Messages, and the simulator as OpenAI's Chat Completions."""
    rules = [{"reply": {"text": "I look.", "calls": 1}}]
    with serve({"rules": rules}) as simulated:
        upstream = simulated.url("openai")
        proxy = Proxy(0, source="anthropic", target="openai", upstream=upstream, model="gpt-4.1", ping=0.02)
        with running(proxy) as address:
            status, text = post(address, REQUEST)
            print("whole:", status, json.loads(text)["content"][-1]["name"])
            assert simulated.requests[-1].provider == "openai"

            status, text = post(address, {**REQUEST, "stream": True})
            assert text.endswith('data: {"type":"message_stop"}\n\n')
            print("stream:", status, "tool_use" if '"stop_reason":"tool_use"' in text else text)

            simulated.fault("429,retry_after=2")
            status, text = post(address, REQUEST)
            print("busy:", status, json.loads(text)["error"]["type"])

            simulated.fault("reset,after=2")
            status, text = post(address, {**REQUEST, "stream": True})
            print("broken stream:", status, json.loads(text.split("data: ")[-1])["error"]["type"])

            status, text = post(address, {**REQUEST, "messages": "none"})
            print("wrong request:", status, json.loads(text)["error"]["type"])

            simulated.script(rules=rules, pace=0.1)
            status, text = post(address, {**REQUEST, "stream": True})
            print("slow stream:", status, "pings" if "event: ping" in text else text)
        assert simulated.unused() == []


def main() -> None:
    parser = argparse.ArgumentParser(description="A proxy from one protocol to another; without options, a check.")
    parser.add_argument("--source", default="anthropic", choices=PATHS, help="the protocol of the clients")
    parser.add_argument("--target", default="openai", choices=[*PATHS, "gemini", "bedrock"], help="the provider")
    parser.add_argument("--upstream", help="the provider's base address, as its SDK takes it")
    parser.add_argument("--model", default="", help="the model to call; default: the one that the client names")
    parser.add_argument("--port", type=int, default=8400)
    options = parser.parse_args()
    if options.upstream is None:
        check()
        return
    proxy = Proxy(
        options.port, source=options.source, target=options.target, upstream=options.upstream, model=options.model
    )
    print(f"http://127.0.0.1:{proxy.server_address[1]}")
    with proxy:
        proxy.serve_forever()


if __name__ == "__main__":
    main()

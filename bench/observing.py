"""What observability costs: a request through the gateway with metrics, a JSON log, spans and kept bodies, and without.

CPU time, in one process: an ASGI call with a 7 kB agent request, Messages to Chat, and an upstream that responds at
once from memory. There are no sockets, so the share of observability is larger here than in a gateway that serves.
Exits with 1 when a limit is broken.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from opentelemetry.sdk.trace import TracerProvider

import gateway_traffic
from timing import Row, in_turn, quiet_gc, spent, table
from toolglot.gateway import Gateway, Upstreams
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import parse_config
from toolglot.gateway.inspector.settings import Kept
from toolglot.gateway.observability.request_log import LogForm, RequestLog
from toolglot.gateway.observability.tracing import Tracing
from toolglot.upstream import HttpRequest, HttpResponse, TimeLimits, Upstream
from toolglot.upstream.routing.routes import Route

ROUNDS: Final = 401
CALLS: Final = 8
METRICS_LIMIT: Final = 1.03
BODIES_LIMIT: Final = 1.10
CONFIG: Final = """
[gateway]
store = "off"
metrics = "{}"
[upstreams.memory]
provider = "openai"
target = "openai"
key_env = "KEY"
[models]
"*" = "memory/gpt-4.1"
[inspector]
keep = "{}"
"""

WITHOUT: Final = "neither metrics, log nor spans"
METRICS: Final = "metrics"
LOG: Final = "a log in JSON"
SPANS: Final = "spans, without an exporter"
REPORTS: Final = "reports of past requests"
BODIES: Final = "bodies of past requests"
STREAMED: Final = "a stream, nothing kept"
STREAMED_BODIES: Final = "a stream, its bodies kept"

BODY: Final = gateway_traffic.request(stream=False)
STREAM_BODY: Final = gateway_traffic.request(stream=True)
REPLY: Final = gateway_traffic.reply()
EVENTS: Final = gateway_traffic.events()
STREAM_TYPE: Final = "text/event-stream"
SCOPE: Final = {
    "type": "http",
    "method": "POST",
    "path": "/v1/messages",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1"), (b"x-api-key", b"any"), (b"content-type", b"application/json")],
}


class CannedResponse:
    """The same response every time."""

    def __init__(self, content_type: str) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": content_type}
        self._pieces = EVENTS if content_type == STREAM_TYPE else [REPLY]

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def whole(self, max_bytes: int) -> bytes:
        assert len(REPLY) < max_bytes
        return REPLY

    async def close(self) -> None:
        """Nothing to close."""


class MemoryTransport:
    """A transport that responds from memory."""

    async def send(self, request: HttpRequest, limits: TimeLimits) -> HttpResponse:
        assert request.body
        assert limits.connect
        return CannedResponse(STREAM_TYPE if b'"stream":true' in request.body else "application/json")

    async def close(self) -> None:
        """Nothing to close."""


class MemoryUpstreams(Upstreams):
    def find(self, route: Route) -> Upstream:
        assert route.upstream_name == UPSTREAM.name
        return UPSTREAM


UPSTREAM: Final = Upstream(name="memory", target="openai", url="http://memory/v1", transport=MemoryTransport(), key="k")


def gateway(metrics: str = "off", form: LogForm = "off", tracing: Tracing | None = None, keep: Kept = "off") -> Gateway:
    text = ConfigText("bench.toml", CONFIG.format(metrics, keep))
    config = parse_config(text, {"KEY": "a key", "HOME": "/nowhere"})
    request_log = RequestLog(max_remembered=500, form=form, stream=io.StringIO())
    return Gateway(config, upstreams=MemoryUpstreams(config), request_log=request_log, tracing=tracing)


async def send_request(app: Gateway, body: bytes) -> None:
    never = asyncio.get_running_loop().create_future()
    incoming: list[dict[str, Any]] = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else await never

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    await app(dict(SCOPE), receive, send)


def round_of(app: Gateway, loop: asyncio.AbstractEventLoop, body: bytes = BODY) -> Callable[[], float]:
    """One round: `CALLS` requests, in one call into the loop."""
    loop.run_until_complete(app.start())

    async def send_all() -> None:
        for _ in range(CALLS):
            await send_request(app, body)

    return lambda: spent(lambda: loop.run_until_complete(send_all()), 1) / CALLS


def main() -> int:
    quiet_gc()
    loop = asyncio.new_event_loop()
    apps = {
        WITHOUT: gateway(),
        METRICS: gateway("keyed"),
        LOG: gateway(form="json"),
        SPANS: gateway(tracing=Tracing(TracerProvider())),
        REPORTS: gateway(keep="reports"),
        BODIES: gateway(keep="bodies"),
    }
    streams = {STREAMED: gateway(), STREAMED_BODIES: gateway(keep="bodies")}
    times = in_turn(ROUNDS, {name: round_of(app, loop) for name, app in apps.items()})
    stream_times = in_turn(ROUNDS, {name: round_of(app, loop, STREAM_BODY) for name, app in streams.items()})
    for app in (*apps.values(), *streams.values()):
        loop.run_until_complete(app.stop())
    loop.close()
    rows = [
        Row(WITHOUT, WITHOUT),
        Row(METRICS, WITHOUT, max_ratio=METRICS_LIMIT),
        Row(LOG, WITHOUT),
        Row(SPANS, WITHOUT),
        Row(REPORTS, WITHOUT),
        Row(BODIES, WITHOUT, max_ratio=BODIES_LIMIT),
    ]
    stream_rows = [Row(STREAMED, STREAMED), Row(STREAMED_BODIES, STREAMED)]
    is_kept = table(f"observability, {len(BODY):,} byte requests", "µs a request", 1000, rows, times)
    print()
    is_kept &= table(f"streams of {len(EVENTS)} events", "µs a stream", 1000, stream_rows, stream_times)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())

"""What observability costs: a request through the gateway with metrics, a JSON log and spans, and without.

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
from toolglot.gateway.observability.request_log import LogForm, RequestLog
from toolglot.gateway.observability.tracing import Tracing
from toolglot.upstream import HttpRequest, HttpResponse, TimeLimits, Upstream
from toolglot.upstream.routing.routes import Route

ROUNDS: Final = 401
CALLS: Final = 8
METRICS_LIMIT: Final = 1.03
CONFIG: Final = """
[gateway]
store = "off"
reports = 0
metrics = "{}"
[upstreams.memory]
provider = "openai"
target = "openai"
key_env = "KEY"
[models]
"*" = "memory/gpt-4.1"
"""

WITHOUT: Final = "neither metrics, log nor spans"
METRICS: Final = "metrics"
LOG: Final = "a log in JSON"
SPANS: Final = "spans, without an exporter"

BODY: Final = gateway_traffic.request(stream=False)
REPLY: Final = gateway_traffic.reply()
SCOPE: Final = {
    "type": "http",
    "method": "POST",
    "path": "/v1/messages",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1"), (b"x-api-key", b"any"), (b"content-type", b"application/json")],
}


class CannedResponse:
    """The same response every time."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": "application/json"}

    async def pieces(self) -> AsyncIterator[bytes]:
        yield REPLY

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
        return CannedResponse()

    async def close(self) -> None:
        """Nothing to close."""


class MemoryUpstreams(Upstreams):
    def find(self, route: Route) -> Upstream:
        assert route.upstream_name == UPSTREAM.name
        return UPSTREAM


UPSTREAM: Final = Upstream(name="memory", target="openai", url="http://memory/v1", transport=MemoryTransport(), key="k")


def gateway(metrics: str = "off", form: LogForm = "off", tracing: Tracing | None = None) -> Gateway:
    config = parse_config(ConfigText("bench.toml", CONFIG.format(metrics)), {"KEY": "a key", "HOME": "/nowhere"})
    request_log = RequestLog(max_remembered=0, form=form, stream=io.StringIO())
    return Gateway(config, upstreams=MemoryUpstreams(config), request_log=request_log, tracing=tracing)


async def send_request(app: Gateway) -> None:
    never = asyncio.get_running_loop().create_future()
    incoming: list[dict[str, Any]] = [{"type": "http.request", "body": BODY}]

    async def receive() -> dict[str, Any]:
        return incoming.pop() if incoming else await never

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    await app(dict(SCOPE), receive, send)


def round_of(app: Gateway, loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """One round: `CALLS` requests, in one call into the loop."""
    loop.run_until_complete(app.start())

    async def send_all() -> None:
        for _ in range(CALLS):
            await send_request(app)

    return lambda: spent(lambda: loop.run_until_complete(send_all()), 1) / CALLS


def main() -> int:
    quiet_gc()
    loop = asyncio.new_event_loop()
    apps = {
        WITHOUT: gateway(),
        METRICS: gateway("keyed"),
        LOG: gateway(form="json"),
        SPANS: gateway(tracing=Tracing(TracerProvider())),
    }
    times = in_turn(ROUNDS, {name: round_of(app, loop) for name, app in apps.items()})
    for app in apps.values():
        loop.run_until_complete(app.stop())
    loop.close()
    rows = [
        Row(WITHOUT, WITHOUT),
        Row(METRICS, WITHOUT, max_ratio=METRICS_LIMIT),
        Row(LOG, WITHOUT),
        Row(SPANS, WITHOUT),
    ]
    return 0 if table(f"observability, {len(BODY):,} byte requests", "µs a request", 1000, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())

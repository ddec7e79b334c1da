"""What seeing costs: a request through the gateway with metrics, a JSON log and spans, next to the same without.

CPU time, in one process: an ASGI call with a 7 kB agent request, Messages to Chat, and an upstream that answers at once
from memory. No sockets on either side, so that the share of what is looked at here is larger than in a gateway that
serves. Exits with 1 when a limit is broken.
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
SPANS: Final = "spans, kept by nobody"

BODY: Final = gateway_traffic.request(stream=False)
REPLY: Final = gateway_traffic.reply()
SCOPE: Final = {
    "type": "http",
    "method": "POST",
    "path": "/v1/messages",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1"), (b"x-api-key", b"any"), (b"content-type", b"application/json")],
}


class Remembered:
    """An answer that is there."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": "application/json"}

    async def pieces(self) -> AsyncIterator[bytes]:
        yield REPLY

    async def whole(self, most: int) -> bytes:
        assert len(REPLY) < most
        return REPLY

    async def close(self) -> None:
        """There is nothing to end."""


class Memory:
    """A way to a provider that is not far."""

    async def send(self, ask: HttpRequest, limits: TimeLimits) -> HttpResponse:
        assert ask.body
        assert limits.connect
        return Remembered()

    async def close(self) -> None:
        """There is nothing to end."""


class NearUpstreams(Upstreams):
    def of(self, route: Route) -> Upstream:
        assert route.upstream_name == UPSTREAM.name
        return UPSTREAM


UPSTREAM: Final = Upstream(name="memory", target="openai", url="http://memory/v1", transport=Memory(), key="k")


def gateway(metrics: str = "off", form: LogForm = "off", tracing: Tracing | None = None) -> Gateway:
    config = parse_config(ConfigText("bench.toml", CONFIG.format(metrics)), {"KEY": "a key", "HOME": "/nowhere"})
    request_log = RequestLog(max_remembered=0, form=form, stream=io.StringIO())
    return Gateway(config, upstreams=NearUpstreams(config), request_log=request_log, tracing=tracing)


async def ask(app: Gateway) -> None:
    waiting = asyncio.get_running_loop().create_future()
    come: list[dict[str, Any]] = [{"type": "http.request", "body": BODY}]

    async def receive() -> dict[str, Any]:
        return come.pop() if come else await waiting

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    await app(dict(SCOPE), receive, send)


def asked(app: Gateway, loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """What one round is: as many requests as it takes, in one call into the loop."""
    loop.run_until_complete(app.start())

    async def some() -> None:
        for _ in range(CALLS):
            await ask(app)

    return lambda: spent(lambda: loop.run_until_complete(some()), 1) / CALLS


def main() -> int:
    quiet_gc()
    loop = asyncio.new_event_loop()
    apps = {
        WITHOUT: gateway(),
        METRICS: gateway("keyed"),
        LOG: gateway(form="json"),
        SPANS: gateway(tracing=Tracing(TracerProvider())),
    }
    times = in_turn(ROUNDS, {name: asked(app, loop) for name, app in apps.items()})
    for app in apps.values():
        loop.run_until_complete(app.stop())
    loop.close()
    rows = [Row(WITHOUT, WITHOUT), Row(METRICS, WITHOUT, most=METRICS_LIMIT), Row(LOG, WITHOUT), Row(SPANS, WITHOUT)]
    return 0 if table(f"seeing, {len(BODY):,} byte requests", "µs a request", 1000, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())

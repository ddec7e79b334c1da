"""The inspector's endpoints: its page, and what the page shows.

Laws: the page itself holds nothing of any request, so everybody gets it. Everything else is for a client key, which
sees its own requests only, unless it is an admin key; and, whatever the key, for the inspector's own page only.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot import __version__
from toolglot.errors import InputError
from toolglot.gateway.accounting.prices import ConfiguredPrices
from toolglot.gateway.endpoints.table import Action, GatewayEndpoint
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal, refusal
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.inspector.access import refuse_other_pages
from toolglot.gateway.inspector.answers import (
    Answers,
    Captured,
    InspectorAnswer,
    json_answer,
    page_answer,
    whole_number,
)
from toolglot.gateway.inspector.fleet import MAX_HOURS, Amounts, Fleet, Part, joined, read_parts, series_of
from toolglot.gateway.inspector.kept_requests import KeptRequests, cursor_of, row_order
from toolglot.gateway.inspector.live_feed import LiveFeed, Watcher, sse
from toolglot.gateway.inspector.page_files import SAFETY
from toolglot.gateway.inspector.replaying import MAX_REPLAYS, ReplayChannel, read_wish, replay_request
from toolglot.gateway.inspector.rows import CLIENT_DIGITS, Row
from toolglot.gateway.inspector.settings import Kept
from toolglot.gateway.inspector.views.target_table import shown_targets
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.services import Services
from toolglot.upstream.routing.model_names import SIMULATED

MONEY: Final = ("spend_per_day", "spend_per_month", "spend_total")
"""Budgets of money; the first that a key has is shown."""
MAX_RATE_LIMITS: Final = 20
PING_SECONDS: Final = 15.0
STREAM_SECONDS: Final = 0.1
"""Between two looks at a stream that is shown while it runs."""
MAX_PIECE: Final = 64 * 1024
_EVENTS: Final = {
    **SAFETY,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}

_PAGES: Final = frozenset({"inspector", "inspector_file"})
"""Actions that serve the page itself."""

Run = Callable[[GatewayEndpoint, ClientRequest], Awaitable[InspectorAnswer]]


class GatewaySource:
    """The requests of this worker, and of the others, that a client may see."""

    def __init__(self, kept: KeptRequests, client: str | None, links: WorkerLinks | None = None) -> None:
        self._kept = kept
        self._client = client
        self._links = links

    async def rows(self, limit: int, before: str) -> tuple[list[Row], str | None]:
        rows = await self._kept.rows(self._client, limit + 1, before)
        others = await self._ask("rows", limit=str(limit + 1), before=before)
        if others:
            rows = sorted([*rows, *(row for found in others for row in found)], key=row_order, reverse=True)
        shown = rows[:limit]
        return shown, cursor_of(shown[-1]) if len(rows) > limit else None

    async def capture(self, id: str) -> Captured | None:
        own = await self._kept.capture(id, self._client)
        if own is not None:
            return own
        return next((found for found in await self._ask("capture", name=id) if found is not None), None)

    async def conversation(self, name: str) -> list[Captured]:
        own = await self._kept.conversation(name, self._client)
        others = [captured for found in await self._ask("conversation", name=name) for captured in found]
        return sorted([*own, *others], key=lambda captured: float(captured["time"])) if others else own

    async def original(self, id: str) -> RequestRecord | None:
        """A request as its client sent it, with all that is masked elsewhere; None: no worker has it."""
        own = self._kept.find(id, self._client)
        if own is not None:
            return own
        found = next((found for found in await self._ask("original", name=id) if found is not None), None)
        if found is None:
            return None
        record = RequestRecord(id, "POST", found[0])
        record.arrive(base64.b64decode(found[1]))
        return record

    async def _ask(self, topic: str, **fields: str) -> list[Any]:
        """What the other workers answer."""
        if self._links is None:
            return []
        return await self._links.inspect({"topic": topic, "client": self._client, **fields})


class InspectorParts(Struct, frozen=True):
    """What the inspector of a gateway keeps while its configuration changes."""

    kept: KeptRequests
    feed: LiveFeed
    fleet: Fleet
    keep: Callable[[], Kept]
    """How much is kept of requests now."""
    serve: Callable[[ClientRequest], Awaitable[None]]
    """Serves a request, as one that came over a connection."""
    replays: dict[str, asyncio.Task[None]] = {}
    """The replays in progress."""


class InspectorEndpoints:
    """Serves the inspector."""

    def __init__(
        self,
        services: Services,
        request_log: RequestLog,
        parts: InspectorParts,
        worker_links: WorkerLinks | None = None,
    ) -> None:
        self._services = services
        self._log = request_log
        self._parts = parts
        self._kept = parts.kept
        self._feed = parts.feed
        self._links = worker_links
        self._kept.name_of = self._feed.name_of = self._name_of
        self._runs: dict[Action, Run] = {
            "inspector": self._page,
            "inspector_file": self._page,
            "inspector_info": self._info,
            "inspector_requests": self._requests,
            "inspector_fleet": self._fleet,
            "inspector_replay": self._replay,
        }

    async def run(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> None:
        """Serve a request that is admitted."""
        try:
            await self._run(endpoint, request, record)
        except InputError as error:
            raise refusal("bad_request", str(error), 400, headers=SAFETY) from None
        except GatewayRefusal as error:
            error.headers = {**SAFETY, **error.headers}
            raise

    async def _run(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> None:
        if endpoint.action not in _PAGES:
            refuse_other_pages(request, self._services.config.gateway.allowed_origins)
        if endpoint.action == "inspector_events":
            await self._events(request, record)
            return
        run = self._runs.get(endpoint.action, self._shown)
        answer = await run(endpoint, request)
        record.response.complete(answer.status)
        is_page = endpoint.action in _PAGES
        data = answer.data if is_page else self._services.secrets.mask_bytes(answer.data)
        headers = {"x-toolglot-request": record.id, **answer.headers}
        await request.channel.respond(answer.status, headers, b"" if request.method == "HEAD" else data)

    # --- the page -----------------------------------------------------------------------------------

    async def _page(self, endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        return page_answer(endpoint, request)

    async def _info(self, _endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        config, ring = self._services.config, self._services.ring
        inspector, keep = config.inspector, self._parts.keep()
        limits = {"max_bytes": inspector.max_bytes, "max_hours": inspector.max_hours, "reports": config.gateway.reports}
        listed = [entry.name for entry in self._services.router.list_models()]
        if config.allows_simulated:
            known = config.simulated
            listed += [f"{SIMULATED}/{name}/{known.default_model(name)}" for name in known.models]
        names = [name for name in dict.fromkeys(listed) if ring.may_use(request.client, name)]
        return json_answer(
            {
                "version": __version__,
                "mode": "gateway",
                "needs_key": ring.is_demanded,
                "is_admin": ring.visible_client(request.client) is None,
                "keep": keep,
                "limits": limits,
                "targets": shown_targets(config.overrides),
                "upstreams": [*config.upstreams],
                "models": names,
                "can_replay": keep == "bodies",
                "simulated": config.simulates_known,
            }
        )

    # --- requests -----------------------------------------------------------------------------------

    def _answers(self, request: ClientRequest) -> Answers:
        source = GatewaySource(self._kept, self._services.ring.visible_client(request.client), self._links)
        config = self._services.config
        return Answers(source, overrides=config.overrides, prices=ConfiguredPrices(config.prices))

    async def _shown(self, endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        """What is shown of requests, of a gateway as of files."""
        answers = self._answers(request)
        return await answers.answer(endpoint.action, endpoint.name, endpoint.part, request.query)

    async def _requests(self, endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        if request.method != "DELETE":
            return await self._shown(endpoint, request)
        client = self._services.ring.visible_client(request.client)
        purged = self._log.purge(client) if self._links is None else await self._links.purge(client)
        return json_answer({"purged": purged})

    async def _replay(self, endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        """Send a request once more, with the key that asks for it."""
        ring, replays = self._services.ring, self._parts.replays
        model, stream = read_wish(request.body)
        source = GatewaySource(self._kept, ring.visible_client(request.client), self._links)
        record = await source.original(endpoint.name)
        if record is None:
            raise refusal("not_found", f"unknown request {endpoint.name[:60]!r}", 404)
        self._services.meter.check_model(request.client, model)
        if len(replays) >= MAX_REPLAYS:
            raise refusal("rate_limit", f"{MAX_REPLAYS} replays are in progress; wait for one of them", 429)
        again = replay_request(record, model, request.headers, stream=stream)
        task = asyncio.create_task(self._run_replay(again))
        replays[again.id] = task
        if isinstance(again.channel, ReplayChannel):
            again.channel.use(task)
        task.add_done_callback(lambda _: replays.pop(again.id, None))
        return json_answer({"id": again.id})

    async def _run_replay(self, request: ClientRequest) -> None:
        await self._parts.serve(request)

    # --- the fleet ----------------------------------------------------------------------------------

    async def _fleet(self, _endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        hours = min(max(1, whole_number(request.query, "hours", 1)), MAX_HOURS)
        client, fleet = self._services.ring.visible_client(request.client), self._parts.fleet
        times, parts = fleet.times(hours), fleet.parts(hours, client)
        if self._links is not None:
            query = {"topic": "fleet", "client": client, "hours": str(hours)}
            parts = joined([parts, *(read_parts(found) for found in await self._links.inspect(query))])
        series = series_of(times, parts, lambda each: self._name_of(each) or each[:CLIENT_DIGITS])
        keys = self._keys(client, parts)
        upstreams = self._upstreams() if client is None else []
        return json_answer({"buckets": times, "series": series, "upstreams": upstreams, "keys": keys})

    def _upstreams(self) -> list[dict[str, Any]]:
        """The state of each upstream."""
        pool, found = self._services.upstreams, []
        for upstream in pool.configured_upstreams():
            breaker = pool.breaker(upstream)
            found.append(
                {
                    "name": upstream.name,
                    "state": breaker.state.replace(" ", "_"),
                    "failures": breaker.failures,
                    "in_flight": breaker.running,
                    "rate_limits": rate_limits_in(pool.last_headers.get(upstream.name, {})),
                }
            )
        return found

    def _keys(self, client: str | None, parts: list[tuple[Part, dict[int, Amounts]]]) -> list[dict[str, Any]]:
        """What each key used, and its limits."""
        ring, found = self._services.ring, []
        if not ring.is_demanded:
            return []
        for each, key in ring.clients().items():
            if client not in (None, each):
                continue
            used = [amounts for part, buckets in parts if part[2] == each for amounts in buckets.values()]
            spent = self._services.meter.spent(each)
            budget = next((name for name in MONEY if key is not None and name in key.budgets), None)
            cost = sum(amounts.cost for amounts in used) / 1e9
            names = ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "tokens_per_month", "tokens_total")
            limits = {name: getattr(key, name, None) for name in names}
            found.append(
                {
                    "name": key.name if key is not None else each[:CLIENT_DIGITS],
                    "requests": sum(amounts.requests for amounts in used),
                    "tokens": sum(amounts.input + amounts.output for amounts in used),
                    "cost_usd": spent[budget] if budget is not None else cost,
                    "budget_usd": float(key.budgets[budget]) if budget is not None and key is not None else None,
                    "limits": {name: limit for name, limit in limits.items() if limit is not None},
                }
            )
        return found

    # --- events -------------------------------------------------------------------------------------

    async def _events(self, request: ClientRequest, record: RequestRecord) -> None:
        """Send what happens, until the client leaves, does not read, or the gateway stops."""
        client = self._services.ring.visible_client(request.client)
        watcher = self._feed.watch(client)
        if watcher is None:
            raise refusal("overloaded", "too many pages watch already; close one", 503)
        others: asyncio.Task[None] | None = None
        try:
            if self._links is not None:
                is_followed = asyncio.Event()
                others = asyncio.create_task(self._links.follow(client, watcher.take, is_followed))
                await is_followed.wait()  # what happens after the head of the response is seen, whichever worker has it
            record.response.begin(200)
            await request.channel.begin(200, {"x-toolglot-request": record.id, **_EVENTS})
            await request.channel.write(b": watching\n\n")
            shown = request.query.get("request", "")
            stream = self._stream_events(shown, client) if shown else None
            async for data in self._watched(watcher, stream):
                await request.channel.write(self._services.secrets.mask_bytes(data))
            record.response.complete()
            await request.channel.end()
        finally:
            if others is not None:
                others.cancel()
            self._feed.leave(watcher)

    async def _watched(self, watcher: Watcher, stream: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
        """Server-sent events, as bytes."""
        seconds = PING_SECONDS if stream is None else STREAM_SECONDS
        silent = 0.0
        while (events := await watcher.events(seconds)) is not None:
            data = b"".join([sse(event, msgspec.json.encode) for event in events])
            if stream is not None:
                data += await anext(stream, b"")
            silent = 0.0 if data else silent + seconds
            if data:
                yield data
            elif silent >= PING_SECONDS:
                silent = 0.0
                yield b": ping\n\n"

    async def _stream_events(self, id: str, client: str | None) -> AsyncIterator[bytes]:
        """The pieces of a reply while it runs, each time what came since the last one."""
        record = self._kept.find(id, client)
        index = 0
        while record is not None and record.captured is not None and not record.times.seconds:
            data = record.captured.sent_since(index)
            index += len(data)
            event = ("stream", {"id": id, "text": b"".join(data)[:MAX_PIECE].decode("utf-8", "replace")})
            yield sse(event, msgspec.json.encode) if data else b""
        if record is not None:
            yield sse(("stream", {"id": id, "text": "", "end": True}), msgspec.json.encode)

    def _name_of(self, client: str) -> str:
        key = self._services.ring.key_of(client)
        return key.name if key is not None else ""


def rate_limits_in(headers: Mapping[str, str]) -> dict[str, str]:
    """What the headers of a response say of rate limits."""
    found = {name.lower(): value for name, value in headers.items() if "ratelimit" in name.lower()}
    short = {name.replace("anthropic-", "").removeprefix("x-"): value[:100] for name, value in sorted(found.items())}
    return dict([*short.items()][:MAX_RATE_LIMITS])

"""The gateway: checks the client, finds the endpoint, and responds in the client's protocol whatever happens.

Requests come over its own connections (`http/connections.py`), or from any ASGI server.

Laws: no request is answered before its key is checked; every error has the form that its client reads; a client that
disconnects ends its call to the upstream; the number of open requests is bounded.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from toolglot import __version__
from toolglot.conversation import Failure
from toolglot.errors import InputError, UnknownNameError
from toolglot.gateway.accounting.cache_losses import CacheWatch
from toolglot.gateway.accounting.client_keys import KeyRing, saved_keys
from toolglot.gateway.accounting.metering import Meter
from toolglot.gateway.accounting.prices import ConfiguredPrices
from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.config.own_secrets import own_secrets
from toolglot.gateway.config.reloading import ConfigWatch, keep_fixed, watched_file
from toolglot.gateway.config.settings import Config
from toolglot.gateway.endpoints.background import BackgroundRuns
from toolglot.gateway.endpoints.embeddings import EmbeddingCall
from toolglot.gateway.endpoints.generate import ModelRequest
from toolglot.gateway.endpoints.information import InformationEndpoints
from toolglot.gateway.endpoints.openapi import OPEN
from toolglot.gateway.endpoints.pass_through import PassThrough
from toolglot.gateway.endpoints.response_socket import ResponseSockets
from toolglot.gateway.endpoints.table import DEFAULT_SOURCE, INSPECTOR, GatewayEndpoint, client_protocol, find
from toolglot.gateway.http import offloading
from toolglot.gateway.http.asgi_client import asgi_request, websocket_request
from toolglot.gateway.http.body_budget import VALUE_BYTES, BodyBudget
from toolglot.gateway.http.compressed_bodies import read_body
from toolglot.gateway.http.connection_limit import ConnectionLimit, overloaded_body
from toolglot.gateway.http.graceful_shutdown import CLOSE, STOPPING, GracefulShutdown, resume_if_cut
from toolglot.gateway.http.requests import (
    MAX_HEADER_BYTES,
    ClientRequest,
    GatewayRefusal,
    GoneError,
    Receive,
    Scope,
    Send,
    refusal,
)
from toolglot.gateway.http.web_pages import PageChannel, is_allowed, preflight_headers, refuse_pages
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.inspector.capturing import CaptureBudget, CapturedReply, CapturingChannel
from toolglot.gateway.inspector.fleet import Fleet
from toolglot.gateway.inspector.kept_requests import KeptRequests
from toolglot.gateway.inspector.live_feed import LiveFeed
from toolglot.gateway.inspector.settings import Kept
from toolglot.gateway.observability.metrics import CONTENT_TYPE, Metrics
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.observability.tracing import Tracing, open_tracing
from toolglot.gateway.routing.cache_keys import session_in_headers
from toolglot.gateway.routing.middleware_chain import GatewayMiddleware, MiddlewareError, load_steps
from toolglot.gateway.routing.search_tool import SearchTool
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.gateway.services import Services
from toolglot.gateway.state.background_store import BackgroundStore
from toolglot.gateway.state.bounded_store import BoundedStore
from toolglot.gateway.state.conversations import Conversations
from toolglot.gateway.state.late_store import LateStore
from toolglot.gateway.state.owned_objects import OwnedObjects
from toolglot.gateway.state.store_watch import StoreWatch
from toolglot.gateway.state.stored_responses import StoredResponses
from toolglot.gateway.state.summaries import Summaries
from toolglot.gateway.state.vault import Vault
from toolglot.limits import Limits
from toolglot.middleware import ToolMiddleware
from toolglot.protocols.base import get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import Store, StoreError, display_location, is_address, open_store
from toolglot.translate.request_memory import RequestMemory
from toolglot.translate.requests import ConvertedError, error_for
from toolglot.upstream.routing.load_balancing import Rotation
from toolglot.upstream.routing.no_route import NoRouteError
from toolglot.upstream.routing.router import Router

if TYPE_CHECKING:
    from toolglot.gateway.endpoints.inspector import InspectorEndpoints

INTERNAL: Final = Failure("server", "internal error of the gateway; its log has the reason", 500)
EXHAUSTED: Final = Failure(
    "overloaded", "the gateway has no memory or no file descriptor for this request now; try again", 503, retry_after=2
)
_EXHAUSTED_BODY: Final = overloaded_body(EXHAUSTED.message, "exhausted")
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
PRUNE_SECONDS: Final = 600.0
START_SECONDS: Final = 8.0
"""How long a start waits for a store on a server; after that, the gateway starts without it."""
STORE_ERROR_SECONDS: Final = 60.0
"""The same failure of the store is logged again after so long."""
MAX_STORE_ERRORS: Final = 20
STORE_UNAVAILABLE: Final = (
    "the gateway's store, which this request needs, cannot be used now; try again in a few seconds (the gateway's log "
    "has the reason)"
)
RETIRE_SECONDS: Final = 0.5
_KEYS: Final = frozenset({"auth", "billing"})
"""Failures that are about a key."""
_TRACED: Final = frozenset({"generate", "compact", "embed", "count", "pass"})
"""Actions that have spans."""


class Gateway:
    """All endpoints, and what serves them.

    gateway = Gateway(config)                      # an ASGI app
    async with gateway: …                          # or its lifespan, which servers run
    """

    def __init__(
        self,
        config: Config,
        *,
        upstreams: Upstreams | None = None,
        middleware: Sequence[ToolMiddleware] = (),
        request_log: RequestLog | None = None,
        tracing: Tracing | None = None,
        reread: Callable[[], Config] | None = None,
    ) -> None:
        """`reread` reads the configuration again; with it, a change of its file is applied without a restart."""
        self.config: Config = config
        self._reread = reread
        self._watch: ConfigWatch | None = None
        self._middleware = tuple(middleware)
        settings = config.gateway
        self.request_log: RequestLog = request_log or RequestLog(max_remembered=settings.reports, form=settings.log)
        self._captures = CaptureBudget(lambda: self.config.inspector.max_bytes)
        self.budget: BodyBudget = BodyBudget(lambda: self.config.gateway.max_bytes_in_flight)
        self._memory = RequestMemory(max_bytes=lambda: self.config.gateway.request_memory_bytes, clock=time.monotonic)
        self.metrics: Metrics = Metrics(
            overrides=lambda: self.config.overrides, budget=self.budget, memory=self._memory
        )
        self.tracing = tracing
        self.request_log.listeners[:0] = [self._count]
        self.upstreams: Upstreams = upstreams or Upstreams(config)
        self._steps = [*load_steps(settings.middleware, config.origin), *middleware]
        self._store: Store | None = None
        self._opened: Store | None = None
        """The store without a limit on time."""
        self._late: LateStore | None = None
        """Rows that the store did not take yet."""
        self._store_watch = StoreWatch(None)
        self._cache_watch = CacheWatch()
        self._store_errors: dict[str, float] = {}
        """Failures of the store that were logged, and when."""
        self._services: Services | None = None
        self._information: InformationEndpoints | None = None
        self._inspector: InspectorEndpoints | None = None
        self._secrets = own_secrets(config)
        self.request_log.mask_secrets = self._secrets.mask
        self._pass_through: PassThrough | None = None
        self._tasks: list[asyncio.Task[None]] = []
        """Background tasks."""
        self._metering: dict[Meter, asyncio.Task[None]] = {}
        """The meters whose usage may not be stored yet, and the tasks that store it."""
        self._retiring: list[Upstreams] = []
        """The upstreams of earlier configurations."""
        self._starting = asyncio.Lock()
        self.why_not_started: str = ""
        self.open: int = 0
        """The number of requests in progress."""
        self.shutdown: GracefulShutdown = GracefulShutdown()
        self.connection_limit: ConnectionLimit = ConnectionLimit(lambda: self.config.gateway, self.request_log.notice)
        self.worker_links: WorkerLinks | None = None
        """The other workers, if there are any."""
        self._sockets = ResponseSockets(lambda: self.config.gateway, self.budget)
        self.feed: LiveFeed = LiveFeed()
        """What happens to requests, for the inspector."""
        self.feed.on_end = self._place
        self.kept: KeptRequests = KeptRequests(
            self.request_log, self.shutdown.open_requests, lambda: self.config.overrides
        )
        """The requests that the inspector shows."""
        self.request_log.on_purge = self._forget
        self.fleet: Fleet = Fleet()
        """What all requests of the last days came to."""
        self._placing: set[asyncio.Task[None]] = set()

    # --- start and stop -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open what requests need. The first request does so if no server did."""
        if self._services is None:
            async with self._starting:
                if self._services is None:
                    await self._start()

    async def _start(self) -> None:
        settings = self.config.gateway
        if settings.store != "off":
            store = await asyncio.to_thread(open_store, settings.store)
            self._opened = store
            self._store = BoundedStore(store, settings.store_seconds, name=display_location(settings.store))
            self._late = LateStore(self._store, failed=self._store_failed, report=self.request_log.notice)
            is_file = not is_address(settings.store) and settings.store != ":memory:"
            self._store_watch = StoreWatch(
                self._store,
                file=settings.store if is_file else "",
                notice=self._note_store,
                count=self.metrics.store_failed,
            )
        services = await self._make_services(self.config, self.upstreams, self._steps, is_first=True)
        self._use_services(services)
        if settings.tracing and self.tracing is None:
            self.tracing = await asyncio.to_thread(open_tracing, self.request_log.notice)
        if self.worker_links is not None:
            self.worker_links.answer, self.worker_links.feed = self._answer_worker, self.feed
            await self.worker_links.start(self.request_log, self._metrics_text)
        own: dict[str, Any] = {"version": __version__, "pid": os.getpid(), "config": self.config.origin}
        if self.config.simulates_known:
            own["simulated"] = True
        self.request_log.event("start", **own, upstreams=[*self.config.upstreams])
        self._run_meter(services.meter)
        if self._store is not None:
            self._tasks.append(asyncio.create_task(self._prune(self._store)))
            self._tasks.append(asyncio.create_task(self._store_watch.run()))
        if self._late is not None:
            self._tasks.append(asyncio.create_task(self._late.run()))
        file = watched_file(self.config)
        if self._reread is not None and file is not None:
            watch = ConfigWatch(
                file, self._reread, self.reload, lambda text: self.request_log.notice(text, event="reload")
            )
            self._tasks.append(asyncio.create_task(watch.run()))
            self._watch = watch

    async def _make_services(
        self, config: Config, upstreams: Upstreams, steps: Sequence[ToolMiddleware], *, is_first: bool = False
    ) -> Services:
        """The services for a configuration. The first ones do without a server that is down."""
        settings = config.gateway
        seconds = settings.retention_hours * 3600
        ring = KeyRing(
            self._store,
            settings.client_keys,
            config.keys,
            metrics_key=settings.metrics_key,
            report=self.request_log.notice,
            count=self.metrics.store_failed,
        )
        await self._start_ring(ring, is_first=is_first)
        responses = StoredResponses(self._late, seconds=seconds)
        targets = {name: upstream.target for name, upstream in config.upstreams.items()}
        usage_seconds, prices = settings.usage_days * 86_400, ConfiguredPrices(config.prices, targets, config.overrides)
        return Services(
            config,
            Limits(max_bytes=settings.max_body_bytes),
            Limits(max_bytes=settings.max_answer_bytes),
            Router(config),
            upstreams,
            Rotation(),
            Vault(self._late, seconds=seconds),
            Summaries(self._late, seconds=seconds),
            responses,
            BackgroundRuns(
                BackgroundStore(self._store, seconds=seconds), responses, self.serve, self.request_log.notice
            ),
            Conversations(self._store, seconds=seconds, late=self._late),
            OwnedObjects(self._store, seconds=seconds),
            GatewayMiddleware(steps),
            own_secrets(config),
            ring,
            Meter(
                self._store,
                ring,
                prices,
                usage_seconds=usage_seconds,
                report=self.request_log.notice,
                store_seconds=settings.store_seconds,
                count=self.metrics.store_failed,
            ),
            self._store_watch,
            self._late,
            self._cache_watch,
            self._memory,
            SearchTool(config.web_search, os.environ) if config.web_search is not None else None,
        )

    async def _start_ring(self, ring: KeyRing, *, is_first: bool) -> None:
        """Read the client keys for the first time."""
        if self._opened is None or not is_first:
            await ring.start()
            return
        is_server = is_address(self.config.gateway.store)
        try:  # it may have to connect and to make the tables: longer than a request waits
            async with asyncio.timeout(START_SECONDS if is_server else None):
                await saved_keys(self._opened)
            await ring.start()
        except (StoreError, TimeoutError) as error:
            if not is_server:
                raise
            silent = f"{display_location(self.config.gateway.store)}: no response within {START_SECONDS:g} s"
            await ring.start_without(error if isinstance(error, StoreError) else StoreError(silent))

    def _use_services(self, services: Services) -> None:
        """Use these services from now on. Requests that have begun go on with the old ones."""
        self._services, self.config, self.upstreams = services, services.config, services.upstreams
        self._secrets = services.secrets
        self.request_log.inspector = services.config.inspector
        self.request_log.mask_secrets = self._secrets.mask
        self._information = InformationEndpoints(services, self.request_log, self.worker_links)
        self._inspector = None
        self._pass_through = PassThrough(services)

    async def reload(self, config: Config) -> None:
        """Apply another configuration while requests go on. If it is wrong, that is raised and nothing changes.

        Where it listens and its store stay as they are.
        """
        old = self._services
        if old is None:
            self.config = config
            return
        config, fixed = keep_fixed(config, self.config)
        steps = [*load_steps(config.gateway.middleware, config.origin), *self._middleware]
        services = await self._make_services(config, Upstreams(config), steps)
        services.meter.take_over(old.meter)
        self._use_services(replace(services, vault=old.vault, responses=old.responses, background=old.background))
        self._run_meter(services.meter)
        self._retiring.append(old.upstreams)
        self._tasks.append(asyncio.create_task(self._retire(old, self.shutdown.open_requests())))
        names = ", ".join(config.upstreams) or "none"
        rest = f"; restart the gateway to change {', '.join(fixed)}" if fixed else ""
        self.request_log.notice(f"reloaded {config.origin}: upstreams {names}{rest}", event="reload")

    async def announce_end(self, seconds: float) -> None:
        """Say that it is about to end, in `/ready` and in every response, and go on for that long."""
        self.shutdown.is_draining = True
        if seconds:
            self.request_log.event("lame_duck", open=self.open, seconds=seconds)
            await self.shutdown.wait(seconds)

    async def drain(self, seconds: float, cut_seconds: float = 2.0) -> None:
        """Let open requests go on for that long, and end the rest with an error."""
        self.shutdown.is_draining = True
        self._sockets.drain()
        self.feed.close()
        self.request_log.event("drain", open=self.open, seconds=seconds)
        if self.open:
            self.request_log.notice(
                f"stopping: {self.open} open responses have {seconds:g} s; a second signal ends them at once"
            )
        if left := await self.shutdown.wait_for_end(seconds):
            self.request_log.notice(f"stopping: {left} open responses are cut off")
            await self.shutdown.cut(cut_seconds)

    def request_reload(self) -> None:
        """Read the configuration again, changed or not; as on SIGHUP."""
        if self._watch is not None:
            self._watch.is_requested = True

    async def stop(self) -> None:
        for task in (*self._tasks, *self._placing):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._placing, return_exceptions=True)
        if self._services is not None:
            await self._services.background.close()
            if self._services.search is not None:
                await self._services.search.close()
        for upstreams in (*self._retiring, self.upstreams):
            await upstreams.close()
        if self.worker_links is not None:
            await self.worker_links.close()
        await asyncio.gather(*map(self._close_meter, [*self._metering]))
        await self._store_watch.close()
        if self._late is not None:
            await self._late.close()
        if self._store is not None:
            try:
                await self._store.close()
            except StoreError as error:
                self._store_failed(error)
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)
        if self._services is not None:
            self.request_log.event("stop", open=self.open)
        self.request_log.flush()
        self._services = self._store = self._opened = self._late = None
        self._tasks, self._retiring = [], []

    def _run_meter(self, meter: Meter) -> None:
        self._metering[meter] = asyncio.create_task(meter.run())

    async def _close_meter(self, meter: Meter) -> None:
        running = self._metering.pop(meter)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await meter.close()

    async def _retire(self, old: Services, begun: frozenset[RequestRecord]) -> None:
        """Close the old services when the requests that began with them are over and their usage is stored."""
        while begun & self.shutdown.open_requests() or old.upstreams.running or old.meter.is_waiting:
            await asyncio.sleep(RETIRE_SECONDS)
        self._metering.pop(old.meter).cancel()
        if old.search is not None:
            await old.search.close()
        await old.upstreams.close()
        self._retiring.remove(old.upstreams)

    async def __aenter__(self) -> Gateway:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _prune(self, store: Store) -> None:
        while True:
            try:
                await store.prune(time.time())
            except StoreError as error:
                self._store_failed(error)
            await asyncio.sleep(PRUNE_SECONDS)

    # --- ASGI ---------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
            return
        if scope["type"] == "websocket":
            await self.serve(await websocket_request(scope, receive, send))
            return
        if scope["type"] != "http":
            raise InputError(f"expected an HTTP request, got {scope['type']!r}", path="scope")
        await self.serve(asgi_request(scope, receive, send))

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        """The lifespan of an ASGI server."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except (InputError, StoreError) as error:
                    self.why_not_started = str(error)
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # --- requests -----------------------------------------------------------------------------------

    async def serve(self, request: ClientRequest) -> None:
        """Serve a request. If its client disconnects first, everything that was begun for it is cancelled."""
        if self._services is None:
            await self.start()
        origin = request.headers.get("origin")
        if origin is not None and is_allowed(origin, self.config.gateway.allowed_origins):
            request.channel = PageChannel(request.channel, origin)
        channel = request.channel
        share = request.share = self.budget.share()
        endpoint = find(request.method, request.path, request.query, request.headers)
        source, action = (
            (endpoint.source, endpoint.action)
            if endpoint is not None
            else (client_protocol(request.path, request.headers).provider, "pass")
        )
        record = RequestRecord(request.id, request.method, request.path, action=action, source=source)
        keep = self._observe(endpoint, request, record)
        channel = request.channel
        self.open += 1
        self.shutdown.begin(record, channel.task)
        if self.config.gateway.metrics != "off":
            self.metrics.begin(record)
        channel.watch(_watcher(record, channel.task))
        try:
            await self._respond(endpoint, request, record)
        except GoneError:
            record.response.disconnect()
        except asyncio.CancelledError:
            if resume_if_cut(record):
                await self._fail(ProviderError(STOPPING), request, record, endpoint)
            elif channel.is_gone:
                _uncancel()
                record.response.disconnect()
            else:
                raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets a response
            await self._fail(error, request, record, endpoint)
        finally:
            record.response.complete()
            channel.stop_watching()
            share.release()
            self.shutdown.end(record)
            try:
                self.request_log.end(record, keep)
                if self.feed.watchers:
                    self.feed.end(record)
            finally:
                self.open -= 1
        if request.socket is not None:
            await self._sockets.run(request.socket, request, self.serve)

    def _observe(self, endpoint: GatewayEndpoint | None, request: ClientRequest, record: RequestRecord) -> Kept:
        """Begin to note what is kept of a request, or watched. Returns how much is kept."""
        if record.request.action.startswith(INSPECTOR):
            return "off"
        if request.replay_of:
            record.request.repeat(request.replay_of)
        keep = self._kept()
        if keep != "off":
            record.request.identify(request.headers.get("user-agent", ""), session_in_headers(request.headers))
        if keep == "bodies" and endpoint is not None and request.method == "POST":
            record.captured = CapturedReply(self._captures, record.times.began)
            request.channel = CapturingChannel(request.channel, record.captured)
        if self.feed.watchers:
            record.watch(self.feed.publish)
        return keep

    def _kept(self) -> Kept:
        """What is kept of a request when it is over."""
        keep = self.config.inspector.keep
        if keep is not None:
            return keep
        is_open = self._services is not None and not self._services.ring.is_demanded
        return "bodies" if is_open and _is_loopback(self.config.gateway.host) else "reports"

    async def _respond(self, endpoint: GatewayEndpoint | None, request: ClientRequest, record: RequestRecord) -> None:
        if await _answers_preflight(request, record):
            return
        admit = self._key_check(endpoint, request)
        if admit is not None:
            request.client = await admit(request.key)
        record.request.admit(request.client)
        if self.feed.watchers:
            self.feed.publish(record)
        if self.tracing is not None and record.request.action in _TRACED:
            record.trace = self.tracing.begin(record, request.headers)
        self.shutdown.refuse_new(record, on_socket=request.is_on_socket)
        if self.open > self.config.gateway.max_concurrent:
            busy = "the gateway has reached its limit of concurrent requests (max_concurrent); try again"
            raise ProviderError(Failure("overloaded", busy, retry_after=1))
        if endpoint is not None and await self._sockets.open(endpoint, request, record):
            return
        _check_method(endpoint, request)
        await self._run(endpoint, request, record)

    async def _run(self, endpoint: GatewayEndpoint | None, request: ClientRequest, record: RequestRecord) -> None:
        """Run a request that is admitted."""
        assert self._services is not None and self._information is not None and self._pass_through is not None  # noqa: S101, PT018 - started
        settings = self.config.gateway
        if endpoint is None:
            await self._pass_through.run(request, record)
            return
        if request.method == "POST":
            request.body = await read_body(request, settings.max_body_bytes)
            request.values = await self._count_values(endpoint, request)
            request.hold(VALUE_BYTES * request.values)
            if not record.request.action.startswith(INSPECTOR):
                record.arrive(request.body)
        await self._serve_endpoint(endpoint, request, record)

    async def _count_values(self, endpoint: GatewayEndpoint, request: ClientRequest) -> int:
        """An upper bound for the JSON values in a body; those of a history that is known are not counted again."""
        body = request.body
        if endpoint.action != "generate":
            return await offloading.count_values(body)
        memory = request.memory = self._memory.of(request.client)
        count = memory.count_values(body, endpoint.protocol)
        return await offloading.count_values(body) if count is None else count

    async def _serve_endpoint(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> None:
        assert self._services is not None and self._information is not None  # noqa: S101, PT018 - started
        if endpoint.action in ("generate", "compact"):
            await ModelRequest(self._services, endpoint, request, record).run()
        elif endpoint.action == "embed":
            await EmbeddingCall(self._services, endpoint, request, record).run()
        elif endpoint.action == "metrics":
            await self._show_metrics(self._services.vault, request, record)
        elif endpoint.action.startswith(INSPECTOR):
            await self._inspector_of(self._services).run(endpoint, request, record)
        elif endpoint.action == "ready" and self.shutdown.is_draining:
            record.response.complete(503)
            await request.channel.respond(503, {"x-toolglot-request": record.id}, b'{"status":"draining"}')
        else:
            await self._information.run(endpoint, request, record)

    def _key_check(
        self, endpoint: GatewayEndpoint | None, request: ClientRequest
    ) -> Callable[[str], Awaitable[str]] | None:
        """The check of the client's key; None: no key is needed."""
        if request.header_bytes > MAX_HEADER_BYTES:
            raise refusal("too_large", f"the headers are longer than {MAX_HEADER_BYTES} bytes", 431)
        assert self._services is not None  # noqa: S101 - started
        ring, settings = self._services.ring, self.config.gateway
        if not ring.is_demanded and _is_loopback(settings.host):
            refuse_pages(request, settings.allowed_origins)
        is_open = settings.metrics == "open"
        if endpoint is not None and (endpoint.action in OPEN or (is_open and endpoint.action == "metrics")):
            return None
        is_sum = endpoint is not None and endpoint.action == "metrics" and settings.metrics == "keyed"
        return ring.admit_to_metrics if is_sum else ring.admit

    async def _answer_worker(self, query: Mapping[str, str | None]) -> Any:
        """What the inspector of another worker asks for."""
        if query.get("topic") == "fleet":
            return self.fleet.parts(float(query.get("hours") or 1), query.get("client"))
        return await self.kept.answer(query)

    def _forget(self, ids: list[str], client: str | None) -> None:
        """Requests were purged. Those in progress are forgotten as they end."""
        for record in self.shutdown.open_requests():
            if client in (None, record.request.client):
                record.is_purged = True
        self.kept.forget(ids)
        self.feed.drop(ids, client)
        self._memory.forget(client)

    def _inspector_of(self, services: Services) -> InspectorEndpoints:
        """The inspector, which is imported when somebody looks: it takes as long as half of the gateway."""
        if self._inspector is None:
            from toolglot.gateway.endpoints.inspector import InspectorEndpoints, InspectorParts  # noqa: PLC0415

            parts = InspectorParts(self.kept, self.feed, self.fleet, self._kept, self.serve)
            self._inspector = InspectorEndpoints(services, self.request_log, parts, self.worker_links)
        return self._inspector

    def _place(self, record: RequestRecord) -> None:
        """Find the conversation of a request that ended, for those who watch."""
        task = asyncio.create_task(self._show_placed(record))
        self._placing.add(task)
        task.add_done_callback(self._placing.discard)

    async def _show_placed(self, record: RequestRecord) -> None:
        """Show the row of a request that ended once more, with its conversation."""
        row = await asyncio.shield(self.kept.placed_row(record))
        self.feed.show(row, record.request.client)

    # --- metrics ------------------------------------------------------------------------------------

    def _count(self, record: RequestRecord) -> None:
        """A request is over."""
        self.metrics.end(record)
        if self.config.inspector.keep != "off":
            self.fleet.add(record)
        if record.trace is not None:
            record.trace.end(record)

    def _metrics_text(self) -> bytes:
        """The metrics of this process."""
        vault = self._services.vault if self._services is not None else None
        if self.metrics is None or vault is None:
            return b""
        return self.metrics.text(vault.hits, vault.misses)

    async def _show_metrics(self, vault: Vault, request: ClientRequest, record: RequestRecord) -> None:
        if self.config.gateway.metrics == "off":
            raise refusal("not_found", 'metrics are off (metrics = "off" in [gateway])', 404)
        record.response.complete(200)
        if self.worker_links is not None:
            text = await self.worker_links.metrics()
        else:
            text = self.metrics.text(vault.hits, vault.misses)
        await request.channel.respond(200, {"content-type": CONTENT_TYPE}, text)

    def _store_failed(self, error: StoreError) -> None:
        """Count a failure of the store, and log what it says, at most once a minute until the store works again."""
        self.metrics.store_failed()
        text, now = str(error), time.monotonic()
        logged_at = self._store_errors.get(text)
        if logged_at is not None and now - logged_at < STORE_ERROR_SECONDS:
            return
        if len(self._store_errors) >= MAX_STORE_ERRORS:
            self._store_errors.clear()
        self._store_errors[text] = now
        self.request_log.notice(f"the store: {text}", event="error")

    def _note_store(self, text: str) -> None:
        """Log that the store works again, or does not."""
        if not self._store_watch.reason:
            self._store_errors.clear()
        self.request_log.notice(text, event="store")

    # --- errors -------------------------------------------------------------------------------------

    async def _fail(
        self, error: Exception, request: ClientRequest, record: RequestRecord, endpoint: GatewayEndpoint | None
    ) -> None:
        failure = self._failure_of(error)
        if isinstance(failure, Failure) and failure.kind in _KEYS and failure.status is not None and record.calls.count:
            # Otherwise the client would take it for an error about its own key.
            message = f"the upstream {record.route.upstream!r} does not accept the gateway's key: {failure.message}"
            failure = replace(failure, message=message, extra=None)
        message = str(failure) if isinstance(failure, InputError) else f"{failure.kind}: {failure.message}"
        record.response.fail(self._secrets.mask(message))
        is_recorded = failure is STOPPING or len(record.calls.failures) >= record.calls.count
        is_own = isinstance(error, GatewayRefusal)
        if isinstance(error, ProviderError) and not is_recorded and not is_own:  # of a request that was passed through
            record.calls.fail(record.route.upstream, error.failure.kind)
        if record.response.status:  # the response has begun: only its end can still be sent
            return
        source = record.request.source
        if endpoint is not None and endpoint.error_protocol:
            source = get(endpoint.error_protocol).provider
        try:
            converted = self._error_for(failure, source)
        except (OSError, MemoryError):  # the codec of the client's protocol cannot be loaded
            record.response.begin(503)
            await request.channel.respond(503, {"retry-after": "2", "x-toolglot-request": record.id}, _EXHAUSTED_BODY)
            return
        if isinstance(failure, Failure) and converted.status < 400:
            # It was in a response with status 200, whose body is not an error with another status.
            failure = replace(failure, status=None, extra=None)
            converted = self._error_for(failure, source)
        status = converted.status
        if isinstance(error, GatewayRefusal) and converted.failure.status is not None:
            status = converted.failure.status
        is_upstreams = isinstance(failure, Failure) and failure.kind == "server" and failure.status is None
        # 500 is for errors of the gateway itself, and a status outside of 400 to 599 is not an error.
        if is_upstreams or not 400 <= status <= 599:
            status = 502
        record.response.begin(status)
        masked = {name: self._secrets.mask(value) for name, value in converted.headers.items()}
        data = self._secrets.mask_bytes(converted.data)
        own = error.headers if isinstance(error, GatewayRefusal) else {}
        if isinstance(error, ProviderError) and not isinstance(error, GatewayRefusal) and record.route.upstream:
            own = record.upstream_headers(record.route.model)
        named = {**masked, **own, "x-toolglot-request": record.id, **(CLOSE if self.shutdown.is_draining else {})}
        await request.channel.respond(status, named, data)

    def _error_for(self, failure: Failure | InputError, source: str) -> ConvertedError:
        try:
            return error_for(failure, target=source, overrides=self.config.overrides)
        except UnknownNameError:  # a protocol was registered, and the configuration has no profile for its clients
            return error_for(failure, target=DEFAULT_SOURCE, overrides=self.config.overrides)

    def _failure_of(self, error: Exception) -> Failure | InputError:
        if isinstance(error, ProviderError):
            return error.failure
        if isinstance(error, NoRouteError):
            return Failure("not_found", str(error), 404, "model_not_found")
        if isinstance(error, InputError):
            return error
        if isinstance(error, StoreError):
            self._store_failed(error)
            return Failure("overloaded", STORE_UNAVAILABLE, 503, retry_after=1)
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _NO_DESCRIPTOR):
            self.request_log.notice(f"no memory or no file descriptor for a request: {error!r}", event="error")
            return EXHAUSTED
        if isinstance(error, MiddlewareError):
            self.request_log.notice("".join(traceback.format_exception(error)), event="error")
            return Failure("server", str(error), 500)
        self.request_log.notice("".join(traceback.format_exception(error)), event="error")
        return INTERNAL


async def _answers_preflight(request: ClientRequest, record: RequestRecord) -> bool:
    """Respond to a preflight of a page that is allowed, which has no key. Returns whether the request is one."""
    if request.method != "OPTIONS" or not isinstance(request.channel, PageChannel):
        return False
    headers = preflight_headers(request.headers)
    if headers is None:
        return False
    record.response.complete(200)
    await request.channel.respond(200, headers, b"")
    return True


def _check_method(endpoint: GatewayEndpoint | None, request: ClientRequest) -> None:
    """Refuse a method that the endpoint does not have, and a WebSocket."""
    if endpoint is not None and request.method in endpoint.methods:
        return
    if "sec-websocket-key" in request.headers:  # Codex does not try again after this status, and goes on over HTTP
        message = f"{request.path[:200]} is not served over WebSocket; use HTTP"
        raise refusal("bad_request", message, 426, headers={"upgrade": "HTTP/1.1", "connection": "upgrade"})
    if endpoint is not None:
        allowed = ", ".join(endpoint.methods)
        message = f"{request.path[:200]} does not allow {request.method}; use {allowed}"
        raise refusal("bad_request", message, 405, headers={"allow": allowed})


def _watcher(record: RequestRecord, task: asyncio.Task[None] | None) -> Callable[[], None]:
    """A callback for when the client of a request disconnects."""

    def on_disconnect() -> None:
        if not record.response.is_complete and task is not None:
            record.response.disconnect()
            task.cancel()

    return on_disconnect


_is_loopback: Final = lru_cache(maxsize=16)(is_loopback)
"""For hosts of the configuration."""


def _uncancel() -> None:
    """Let the current task continue to its end: it was cancelled because its client disconnected."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()

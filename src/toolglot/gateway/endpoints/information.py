"""Endpoints besides those of models: counts, lists, stored responses, the gateway's own state and reports."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from toolglot import __version__, profiles
from toolglot.errors import InputError
from toolglot.gateway.endpoints.generate import ModelRequest
from toolglot.gateway.endpoints.model_lists import (
    Fields,
    allowed_models,
    decode_models,
    describe_model,
    encode_model,
    encode_models,
)
from toolglot.gateway.endpoints.openapi import document_bytes
from toolglot.gateway.endpoints.response_errors import invalid
from toolglot.gateway.endpoints.table import Action, GatewayEndpoint
from toolglot.gateway.endpoints.token_counts import decode_count, encode_count, estimate_async
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.http.worker_links import WorkerLinks
from toolglot.gateway.observability.record_text import capture, capture_lines, describe, summarize
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import SIMULATED_HEADER, RequestRecord
from toolglot.gateway.services import Services
from toolglot.gateway.state.stored_responses import KIND as STORED
from toolglot.jsontext import parse
from toolglot.protocols.base import ListedModel, get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.translate.requests import ConvertedRequest
from toolglot.upstream import Upstream
from toolglot.upstream.routing.routes import Route

MAX_LISTED: Final = 4 * 1024 * 1024
LISTING_SECONDS: Final = 300.0
"""How long the list of an upstream's models is cached."""
LISTING_TIMEOUT: Final = 5.0
"""Seconds that an upstream has to list its models."""

Run = Callable[[GatewayEndpoint, ClientRequest, RequestRecord], Awaitable[tuple[int, Any, Mapping[str, str]]]]


class InformationEndpoints:
    """Serves everything that is not a request to a model."""

    def __init__(self, services: Services, request_log: RequestLog, worker_links: WorkerLinks | None = None) -> None:
        self._services = services
        self._request_log = request_log
        self._worker_links = worker_links
        self._listed: dict[str, tuple[float, dict[str, Fields]]] = {}
        """The models that each upstream lists, with what it says of them, and until when that counts."""
        self._runs: dict[Action, Run] = {
            "count": self._count,
            "models": self._models,
            "model": self._model,
            "show": self._show,
            "version": self._version,
            "telemetry": self._telemetry,
            "response": self._response,
            "input_items": self._response,
            "cancel": self._response,
            "conversations": self._conversations,
            "conversation": self._conversations,
            "conversation_items": self._conversations,
            "conversation_item": self._conversations,
            "root": self._root,
            "health": self._health,
            "ready": self._ready,
            "requests": self._requests,
            "request": self._request,
            "openapi": self._openapi,
        }

    async def run(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> None:
        wants_stream = endpoint.action == "response" and request.query.get("stream", "").lower() == "true"
        if wants_stream and request.method == "GET":
            await self._stream_response(endpoint, request, record)
            return
        status, body, headers = await self._runs[endpoint.action](endpoint, request, record)
        record.response.complete(status)
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        simulated = SIMULATED_HEADER if record.route.is_simulated else {}
        await request.channel.respond(status, {"x-toolglot-request": record.id, **simulated, **headers}, data)

    # --- counts -------------------------------------------------------------------------------------

    async def _count(
        self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        """The upstream's own count if it has one; otherwise an estimate, which is marked."""
        request.body = _counted_request(request.body, get(endpoint.protocol).counts.envelope)
        exchange = ModelRequest(self._services, endpoint, request, record)
        out, upstream = await exchange.render()
        count = await _count_upstream(out, upstream)
        is_estimate = count is None
        if count is None:
            count = await estimate_async(out.rendered.conversation, model=out.model)
        reply = encode_count(endpoint.protocol, count, is_estimate)
        return 200, reply.body, reply.headers

    # --- models -------------------------------------------------------------------------------------

    async def _models(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        ring, client = self._services.ring, request.client
        models = allowed_models(
            await self._all_models(), lambda name: ring.may_use(client, name), self._services.router.leads_to
        )
        return 200, encode_models(endpoint.source, models, request.query, protocol=endpoint.protocol), {}

    async def _model(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        self._services.meter.check_model(request.client, endpoint.model)
        return (
            200,
            encode_model(endpoint.source, await self._find_model(endpoint.model), protocol=endpoint.protocol),
            {},
        )

    async def _show(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        try:
            body = msgspec.json.decode(request.body or b"{}")
        except (ValueError, RecursionError):
            raise InputError("the body is not JSON") from None
        named = (body.get("model") or body.get("name")) if isinstance(body, dict) else None
        if not isinstance(named, str):
            raise InputError("expected the name of a model", path="$.model")
        self._services.meter.check_model(request.client, named)
        details = get(endpoint.protocol).models.details
        model = await self._find_model(named)
        return 200, details(model) if details is not None else {}, {}

    async def _version(
        self, endpoint: GatewayEndpoint, _request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        return 200, {"version": get(endpoint.protocol).version}, {}

    async def _telemetry(
        self, _endpoint: GatewayEndpoint, _request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        return 204, b"", {}

    async def _find_model(self, name: str) -> ListedModel:
        """A model that clients can use, listed or not."""
        for model in await self._all_models():
            if model.name == name:
                return model
        route = self._services.router.route(name)
        return self._describe(ListedModel(name, route.upstream_name, route.model, route.simulated))

    async def _all_models(self) -> list[ListedModel]:
        router = self._services.router
        found = {entry.name: ListedModel(*entry) for entry in router.list_models()}
        upstreams = self._services.upstreams.configured_upstreams()
        for upstream, names in zip(upstreams, await asyncio.gather(*map(self._own_models, upstreams)), strict=True):
            for name in names:
                listed = ListedModel(f"{upstream.name}/{name}", upstream.name, name, False)
                found.setdefault(listed.name, listed)
        return [self._describe(model) for model in found.values()]

    def _describe(self, model: ListedModel) -> ListedModel:
        """A model with what is known of it."""
        route = Route(upstream_name=model.upstream, model=model.model, simulated=model.simulated)
        target = self._services.upstreams.find(route).target
        profile = profiles.get(target, model.model, overrides=self._services.config.overrides)
        _, own = self._listed.get("" if model.simulated else model.upstream, (0.0, {}))
        return describe_model(model, profile, own.get(model.model, {}))

    async def _own_models(self, upstream: Upstream) -> dict[str, Fields]:
        """The models that an upstream itself lists; empty if it does not respond in time."""
        known = self._listed.get(upstream.name)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        names: dict[str, Fields] = {}
        profile = profiles.get(upstream.target, overrides=self._services.config.overrides)
        try:
            async with asyncio.timeout(LISTING_TIMEOUT):
                response = await upstream.models(profile)
                if response is not None:
                    try:
                        data = await response.whole(MAX_LISTED)
                        names = decode_models(data, profile.protocol) if response.status == 200 else {}
                    finally:
                        await response.close()
        except (TimeoutError, ProviderError, InputError) as error:
            self._request_log.notice(f"cannot list the models of {upstream.name}: {type(error).__name__}")
        self._listed[upstream.name] = (time.monotonic() + LISTING_SECONDS, names)
        return names

    # --- stored responses ---------------------------------------------------------------------------

    async def _response(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        wanted = (request.client, endpoint.action, request.method, endpoint.name, request.query)
        late = self._services.late
        is_waiting = late is not None and late.is_waiting(STORED, request.client, f"link:{endpoint.name}")
        # What waits for the store is served without it.
        found = None if is_waiting and request.method == "GET" else await self._services.background.serve(*wanted)
        found = found or await self._services.responses.serve(*wanted)
        return 200, found, {}

    async def _stream_response(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> None:
        after = request.query.get("starting_after", "")
        if after and not re.fullmatch(r"-?\d{1,15}", after, re.ASCII):
            raise invalid("starting_after", "Invalid 'starting_after': expected a whole number.")
        await self._services.background.stream(
            request,
            record,
            endpoint.name,
            after=int(after or -1),
            ping_seconds=self._services.config.gateway.ping_seconds,
        )

    async def _conversations(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        body = parse(request.body, limits=self._services.limits).value if request.body else {}
        if type(body) is not dict:
            raise InputError("expected an object")
        client, query = request.client, request.query
        found = await self._services.conversations.serve(
            client, endpoint.action, request.method, endpoint.name, endpoint.part, body, query
        )
        return 200, found, {}

    # --- the gateway itself -------------------------------------------------------------------------

    async def _root(
        self, _endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        if "text/html" in request.headers.get("accept", ""):  # a browser
            return 302, b"", {"location": "/inspector", "content-type": "text/html"}
        return 200, {"name": "toolglot", "version": __version__, "docs": "docs/gateway.md"}, {}

    async def _health(
        self, _endpoint: GatewayEndpoint, _request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        state: dict[str, Any] = {"status": "ok"}
        if self._services.config.simulates_known:
            state["simulated"] = True
        if self._services.store_watch.reason:  # of the last check: this checks nothing
            state["store"] = "failing"
        return 200, state, {}

    async def _ready(
        self, _endpoint: GatewayEndpoint, _request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        reason = await self._services.store_watch.problem()
        if reason:
            return 503, {"status": "not ready", "reason": reason}, {}
        return 200, {"status": "ready"}, {}

    async def _openapi(
        self, _endpoint: GatewayEndpoint, _request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        return 200, document_bytes(is_demanded=self._services.ring.is_demanded), {}

    async def _requests(
        self, _endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        client, links, form = self._visible_client(request), self._worker_links, request.query.get("format", "json")
        if form not in ("json", "jsonl"):
            raise refusal("bad_request", f"unknown format {form[:60]!r}; expected json or jsonl", 400)
        if request.method == "DELETE":
            purged = self._request_log.purge(client) if links is None else await links.purge(client)
            return 200, {"purged": purged}, {}
        if form == "jsonl":
            log, mask = self._request_log, self._services.secrets.mask_bytes
            kept = log.latest(client, self._services.config.gateway.reports)[::-1] if links is None else []
            found = None if links is None else await links.captures(client)
            lines = await offloading.in_thread(
                lambda: mask(capture_lines(map(capture, kept) if found is None else found))
            )
            return 200, lines, {"content-type": "application/x-ndjson"}
        if links is not None:
            return 200, {"requests": await links.requests(client)}, {}
        return 200, {"requests": [summarize(record) for record in self._request_log.latest(client)]}, {}

    def _visible_client(self, request: ClientRequest) -> str | None:
        """The client whose requests may be seen: this one; None: all, if there are no keys, or with an admin key."""
        return self._services.ring.visible_client(request.client)

    async def _request(
        self, endpoint: GatewayEndpoint, request: ClientRequest, _record: RequestRecord
    ) -> tuple[int, Any, Mapping[str, str]]:
        record = self._request_log.find(endpoint.name, self._visible_client(request))
        page = describe(record) if record is not None else None
        if page is None and self._worker_links is not None:
            page = await self._worker_links.request(endpoint.name, self._visible_client(request))
        if page is None:
            raise refusal(
                "not_found",
                f"unknown request {endpoint.name[:60]!r}; only the last ones are kept (reports in [gateway])",
                404,
            )
        return 200, page, {}


def _counted_request(body: bytes, envelope: str) -> bytes:
    """The request to count, which may be in an envelope."""
    if not envelope or envelope.encode() not in body:
        return body
    try:
        fields = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body  # its reader reports the error
    inner = fields.get(envelope) if isinstance(fields, dict) else None
    return msgspec.json.encode(inner) if isinstance(inner, dict) else body


async def _count_upstream(out: ConvertedRequest, upstream: Upstream) -> int | None:
    """The provider's own count; None: it has none."""
    body = count_body(out)
    if body is None:
        return None
    try:
        response = await upstream.count(out.target, out.model, body)
        if response is None:
            return None
        try:
            data = await response.whole(MAX_LISTED)
        finally:
            await response.close()
    except ProviderError:
        return None
    return decode_count(out.target.protocol, data) if response.status == 200 else None


def count_body(out: ConvertedRequest) -> bytes | None:
    """A request in the form of the provider's count endpoint; None: it has none."""
    request = get(out.target.protocol).counts.request
    return msgspec.json.encode(request(out.body, out.model)) if request is not None else None

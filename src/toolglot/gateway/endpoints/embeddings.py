"""Embeddings: a client's request for any provider that has them.

    bytes → read → route → key and budget → convert → upstream → convert → bytes

A request to the client's own provider is forwarded as it is, except for the name of the model. There is no failover:
the vectors of another model mean something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from toolglot import profiles
from toolglot.conversation import Failure
from toolglot.errors import InputError
from toolglot.gateway.accounting.estimates import BYTES_PER_TOKEN
from toolglot.gateway.accounting.metering import Ticket
from toolglot.gateway.endpoints.body_fields import refuse_second_model
from toolglot.gateway.endpoints.pass_through import NOT_COUNTED, forwarded_query, upstreams_of
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.endpoints.upstream_body import read_upstream_body
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.gateway.observability.record_text import report_header
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RecordedRendering, RecordedRoute, RequestRecord
from toolglot.gateway.routing.foreign_objects import refuse_foreign_objects
from toolglot.gateway.services import Services
from toolglot.profiles import Profile
from toolglot.protocols.base import get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.translate.embeddings import (
    ReceivedEmbeddings,
    checked_tokens,
    read_embeddings,
    rename_model,
    reply_embeddings,
    request_embeddings,
)
from toolglot.upstream import PROVIDERS, HttpResponse, Upstream
from toolglot.upstream.addresses import embeddings_path, protocol_headers
from toolglot.upstream.failures import read_failure
from toolglot.upstream.retry import Retries
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.routing.no_route import NoRouteError

T = TypeVar("T")

_CONCURRENT: Final = 4
"""How many parts of a request are sent at the same time."""


class EmbeddingCall:
    """One request for embeddings."""

    def __init__(
        self, services: Services, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord
    ) -> None:
        self._services = services
        self._endpoint = endpoint
        self._request = request
        self._record = record
        self._source = profiles.get(endpoint.source, overrides=services.config.overrides)

    async def run(self) -> None:
        """Serve the request. An error is raised before the response has begun."""
        request, services, record = self._request, self._services, self._record
        received = await offloading.run(
            request.values,
            len(request.body),
            lambda: read_embeddings(request.body, self._source, model=self._endpoint.model, limits=services.limits),
        )
        refuse_second_model(request.body, received.fields, services.limits)
        name = received.request.model
        record.request.name_model(name, is_stream=False)
        upstream, model = self._find_upstream(name)
        record.take_route(RecordedRoute(upstream.name, model, upstream.is_simulated))
        meter, client = services.meter, request.client
        ticket = Ticket(client, None, 0)
        if services.ring.key_of(client) is not None:
            meter.check_model(client, name)
            ticket = await meter.admit(client, record, len(request.body), max_output=0)
            meter.check_price(client, record)
        try:
            await self._send(received, upstream, model)
        finally:
            meter.record(ticket, record)

    def _find_upstream(self, name: str) -> tuple[Upstream, str]:
        """The upstream of a model. A name without a route belongs to the only upstream of the client's protocol, if it
        serves models of any name: a provider with names of its own does not get what is meant for another."""
        services = self._services
        try:
            route = services.router.route(name)
        except NoRouteError:
            chosen, _ = upstreams_of(get(self._endpoint.protocol), services.upstreams)
            if len(chosen) != 1 or not self._serves_any_name(chosen[0]):
                raise
            return chosen[0], name
        return services.upstreams.find(route), route.model

    def _serves_any_name(self, upstream: Upstream) -> bool:
        provider = PROVIDERS.get(self._services.config.upstreams[upstream.name].provider)
        return provider is None or not provider.models

    async def _send(self, received: ReceivedEmbeddings, upstream: Upstream, model: str) -> None:
        target = profiles.get(upstream.target, model, overrides=self._services.config.overrides)
        if target.name == self._source.name:
            await self._forward(received, upstream, target)
        else:
            await self._convert(received, upstream, target)

    # --- the client's own provider --------------------------------------------------------------------

    async def _forward(self, received: ReceivedEmbeddings, upstream: Upstream, target: Profile) -> None:
        """Forward a request and its reply as they are, except for the name of the model."""
        body = self._request.body
        renamed = rename_model(received, self._source, target.model)
        if renamed is not received.fields:
            body = msgspec.json.encode(renamed)
        await refuse_foreign_objects(self._services, self._request.client, target.protocol, body, self._request.values)
        self._record.sent = RecordedRendering(target.name, body)
        path = embeddings_path(target, target.model, self._endpoint.provider_path) + forwarded_query(self._request)
        data, response = await self._call(upstream, target, path, body)
        tokens = await self._read_reply(upstream, len(data), lambda: checked_tokens(data, received.request, target))
        await self._respond(data, tokens, response, target.model)

    # --- another provider -----------------------------------------------------------------------------

    async def _convert(self, received: ReceivedEmbeddings, upstream: Upstream, target: Profile) -> None:
        request = msgspec.structs.replace(received.request, model=target.model)
        path = embeddings_path(target, target.model)
        out = await self._offload(lambda: request_embeddings(request, target, self._source))
        bodies = await self._offload(lambda: [msgspec.json.encode(body) for body in out.bodies])
        self._record.sent = RecordedRendering(target.name, bodies[0], count_entries(out.entries))
        exchanged = await self._call_each(upstream, target, path, bodies)
        replies, response = [data for data, _ in exchanged], exchanged[0][1]
        size = sum(map(len, replies))
        name = f"{SIMULATED}/{upstream.name}/{target.model}" if upstream.is_simulated else ""
        shown = msgspec.structs.replace(request, model=name or request.model)

        def convert() -> tuple[bytes, int | None]:
            id = self._record.id.removeprefix("tg_")
            body, reply = reply_embeddings(replies, shown, target, self._source, reply_id=id)
            return msgspec.json.encode(body), reply.input_tokens

        data, tokens = await self._read_reply(upstream, size, convert)
        await self._respond(data, tokens, response, target.model)

    async def _call_each(
        self, upstream: Upstream, target: Profile, path: str, bodies: list[bytes]
    ) -> list[tuple[bytes, HttpResponse]]:
        """The replies to all parts of a request. The first failure ends the others."""
        limit = asyncio.Semaphore(_CONCURRENT)

        async def call(body: bytes) -> tuple[bytes, HttpResponse]:
            async with limit:
                return await self._call(upstream, target, path, body)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(call(body)) for body in bodies]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    # --- both -----------------------------------------------------------------------------------------

    async def _offload(self, work: Callable[[], T]) -> T:
        return await offloading.run(self._request.values, len(self._request.body), work)

    async def _read_reply(self, upstream: Upstream, size: int, read: Callable[[], T]) -> T:
        try:
            return await offloading.run(0, size, read)
        except InputError as error:
            message = f"{upstream.name} sent a reply that cannot be read: {error.message}"
            raise ProviderError(Failure("bad_output", message)) from None

    async def _call(self, upstream: Upstream, target: Profile, path: str, body: bytes) -> tuple[bytes, HttpResponse]:
        """The reply to one body, with retries."""
        retries = Retries(upstream.retries, upstream.retry_seconds)
        while True:
            try:
                return await self._try(upstream, target, path, body)
            except GatewayRefusal:
                raise
            except ProviderError as error:
                failure = error.failure
                retries.add(failure, body)
                wait = retries.wait(failure)
                if wait is None:
                    raise
                await asyncio.sleep(wait)
                self._record.calls.retry(failure.message[:200])

    async def _try(self, upstream: Upstream, target: Profile, path: str, body: bytes) -> tuple[bytes, HttpResponse]:
        """One attempt."""
        breaker = self._services.upstreams.breaker(upstream)
        reason = breaker.refusal()
        if reason:
            message = f"{upstream.name} is not called: {reason}"
            raise ProviderError(Failure("overloaded", message, retry_after=breaker.wait or 1.0))
        breaker.begin()
        try:
            headers = protocol_headers(target, stream=False) | self._record.begin_call(upstream)
            response = await upstream.send(path, body, headers=headers, model=target.model)
            max_bytes = self._services.reply_limits.max_bytes
            try:
                if response.status >= 300:
                    raise ProviderError(await read_failure(response, target, self._source, max_bytes))
                data = await read_upstream_body(response, upstream.name, max_bytes, self._request.hold)
            finally:
                await response.close()
        except GatewayRefusal:  # the upstream did nothing wrong
            breaker.gave_up()
            raise
        except ProviderError as error:
            breaker.failed(error.failure)
            self._record.calls.fail(upstream.name, error.failure.kind)
            raise
        except BaseException:
            breaker.gave_up()
            raise
        else:
            breaker.succeeded()
            return data, response
        finally:
            breaker.end()

    async def _respond(self, data: bytes, tokens: int | None, response: HttpResponse, model: str) -> None:
        record = self._record
        record.times.receive_reply()
        if tokens is None:
            tokens = len(self._request.body) // BYTES_PER_TOKEN
            record.reply.add(NOT_COUNTED)
        record.reply.count({"input_tokens": tokens})
        is_same = record.sent.body is self._request.body
        headers = {
            "x-toolglot-request": record.id,
            "x-toolglot-report": report_header(record.sent.entries, record.reply.entries, is_same=is_same),
            **record.upstream_headers(model),
        }
        if self._source.protocol == profiles.get(record.sent.target).protocol:
            returned = get(self._source.protocol).returned_headers
            headers |= {name: value for name, value in response.headers.items() if name.startswith(returned)}
        request_id = response.headers.get("request-id") or response.headers.get("x-request-id") or record.id
        headers[get(self._source.protocol).client_request_id_header] = request_id
        mask = self._services.secrets.mask
        record.response.complete(200)
        record.times.send()
        await self._request.channel.respond(200, {name: mask(value) for name, value in headers.items()}, data)

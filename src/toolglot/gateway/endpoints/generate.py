"""One request of a client to a model: read it, send it to an upstream, and reply in the client's own protocol.

    bytes → read → middleware → route → recall → render → upstream → translate → keep → bytes

Laws: nothing is buffered that can be streamed. What the vault keeps is stored before the client sees the end of the
reply, so that its next request finds it. A client that disconnects ends the call to the upstream at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from toolglot.conversation import Failure, Reply
from toolglot.conversation.plausible_usage import COUNTS, IMPLAUSIBLE, plausible_usage, with_cached_input
from toolglot.conversation.report import Entry
from toolglot.errors import InputError, LimitError, RefusedError
from toolglot.gateway.accounting.estimates import BYTES_PER_TOKEN
from toolglot.gateway.accounting.metering import Ticket
from toolglot.gateway.endpoints.body_fields import refuse_second_model
from toolglot.gateway.endpoints.compacting import Compactor
from toolglot.gateway.endpoints.response_history import ResponseHistory
from toolglot.gateway.endpoints.searching import Searcher
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.endpoints.upstream_body import PendingBytes, read_upstream_body
from toolglot.gateway.endpoints.warm_up import send_warm_up
from toolglot.gateway.http import offloading
from toolglot.gateway.http.body_budget import VALUE_BYTES
from toolglot.gateway.http.graceful_shutdown import STOPPING, resume_if_cut
from toolglot.gateway.http.keep_alive import KeepAlive
from toolglot.gateway.http.offloading import VALUES_A_BLOCK, count_values_of
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.gateway.observability.record_text import report_header
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RecordedRoute, RequestRecord
from toolglot.gateway.routing.middleware_chain import GatewayMiddleware, MiddlewareError
from toolglot.gateway.routing.upstream_call import UpstreamCall, UpstreamReply, following_routes, in_step
from toolglot.gateway.services import Services
from toolglot.gateway.state.late_store import LateStore
from toolglot.gateway.state.response_items import unstored_events, wants_stored, with_request
from toolglot.gateway.state.stored_responses import KIND as STORED
from toolglot.gateway.state.vault import KIND as VAULT
from toolglot.jsontext import count_marks
from toolglot.middleware import Request
from toolglot.protocols.base import ArrayWriter, codec, get
from toolglot.protocols.errors.failures import ProviderError, from_reply_limit
from toolglot.protocols.framing.event_builder import FILLED
from toolglot.protocols.openai_responses.envelope import fill_missing, settings_of
from toolglot.store import StoreError
from toolglot.translate.converted import parse_body
from toolglot.translate.replies import ConvertedReply, convert_reply
from toolglot.translate.requests import ConvertedRequest, ReceivedRequest, read_continued, read_request
from toolglot.translate.streams import StreamTranslator
from toolglot.upstream import HttpResponse, Upstream
from toolglot.upstream.failover import failover_entry
from toolglot.upstream.http.transport import trailing_pieces
from toolglot.upstream.protocol_choice import RESPONSES
from toolglot.upstream.routing.load_balancing import order_by_key
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.routing.routes import Route

Fields = dict[str, Any]
T = TypeVar("T")

_counts_of: Final = attrgetter(*COUNTS)
_BYTES_A_KNOWN_VALUE: Final = 1024
"""The work on a known history counts as one value for so many of its bytes: it is rendered, but not read."""
_KNOWN_BLOCKS_A_VALUE: Final = 4
"""And for so many of its blocks, however short they are."""

_HEADER_WORD: Final = re.compile(r"[A-Za-z0-9._-]{1,200}")
_UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


_FILLED_ENTRY: Final = Entry(action="assumed", reason=FILLED, fault="canonical")
NOT_STORED: Final = Entry(
    action="dropped",
    reason="the response was not stored, and cannot be read or continued by its id: send the whole conversation",
    fault="loss",
    path="$.store",
)
NOT_STORED_YET: Final = Entry(
    action="dropped",
    reason="the response was not stored yet, because the gateway's store fails: until it is back, only this gateway "
    "can read and continue it",
    fault="loss",
    path="$.store",
)
NOT_KEPT_YET: Final = Entry(
    action="dropped",
    reason="signed thinking was not stored yet, because the gateway's store fails: until it is back, only this gateway "
    "has it",
    fault="loss",
)
NOT_KEPT: Final = Entry(
    action="dropped",
    reason="signed thinking was not stored, because the gateway's store failed: the next request is sent without it",
    fault="loss",
)


class ModelRequest:
    """One request to a model."""

    def __init__(
        self, services: Services, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord
    ) -> None:
        self._services = services
        self._config = services.config
        self._endpoint = endpoint
        self._request = request
        self._channel = request.channel
        self._record = record
        self._call = UpstreamCall(services, endpoint, request, record)
        self._compactor = Compactor(services, endpoint, request, record, self._call, self)
        self._searcher = Searcher(services, endpoint, request, record, self._call, self)
        self._memory = request.memory or services.memory.of(request.client)
        self._fields: Fields = {}
        """The request as the client sent it."""
        self._middleware_request: Request | None = None
        """The request as middleware left it."""
        self._ticket: Ticket | None = None
        self._route_taken: tuple[Route, Upstream] | None = None
        """The route that was taken last, and its upstream."""
        self._received: ReceivedRequest | None = None
        """What is rendered for the upstream; None: nothing more is."""
        self._has_key = False
        """The client has a key, which may have limits."""
        self._store_losses: list[Entry] = []
        """What the store did not take of the reply."""
        self._is_not_stored = False
        """The client wants a response that it can continue by its id, and it was not stored."""
        self._is_in_thread = False
        """A thread works on the stream."""
        self._history = ResponseHistory(services, request.client)
        self._is_background = False
        """The client wants it to run in the background."""

    async def run(self) -> None:
        """Serve the request. An error before the response has begun is raised."""
        try:
            received, routes = await self._prepare()
            if self._is_background:
                await self._begin_background(received, routes[0])
                return
            if self._request.is_warm_up:
                await send_warm_up(self._channel, self._endpoint, self._record, self.reply_id(), self._fields)
                return
            entries: list[Entry] = []
            while routes:
                try:
                    await self._call_route(received, routes[0], entries)
                except (ProviderError, RefusedError) as error:
                    following = following_routes(routes, error, self._window)
                    # No failover inside a turn: the client has seen a part of this reply.
                    if self._record.response.status or not following:
                        raise
                    entries.append(_failover_entry(routes[0], following[0], error))
                    self._record.restart()
                    routes = following
                else:
                    return
        finally:
            self._compactor.close()
            self._searcher.close()
            self._call.note_cache(is_sum=self._compactor.has_summarised)
            if self._ticket is not None:
                self._services.meter.record(self._ticket, self._record)

    def _window(self, route: Route) -> int | None:
        """The context of a route's model in tokens; None: not known."""
        return self._call.profile(self._services.upstreams.find(route).target, route.model).largest_window

    async def _call_route(self, received: ReceivedRequest, route: Route, entries: list[Entry]) -> None:
        """Call one upstream, and send its reply to the client."""
        upstream = self._take_route(route)
        await in_step(self._services.upstreams.breaker(upstream).running)
        if self._has_key:
            self._services.meter.check_price(self._request.client, self._record)
        if self._endpoint.source == RESPONSES:
            received = await self._expand(received, upstream)
        self._call.original = received.original
        if await self._compactor.serve(received, upstream, route.model, entries):
            return
        if await self._searcher.serve(received, upstream, route.model, entries):
            return
        self._received = received
        exchange = await self._call.call(received, upstream, route.model, entries)
        if exchange.out.rendered.is_plain:
            self._memory.note_plain()
        await self._call.use(exchange, self._send_stream if exchange.out.stream else self._send_reply)

    async def _begin_background(self, received: ReceivedRequest, route: Route) -> None:
        """Let it run in the background, and reply with the response as it is now."""
        upstream = self._take_route(route)
        await self._expand(received, upstream)  # for what it refers to and is not there
        await self._services.background.respond(
            self._request,
            self._record,
            self._fields,
            protocol=self._endpoint.protocol,
            is_native=self._call.target(upstream, received.conversation) == RESPONSES,
            ping_seconds=self._config.gateway.ping_seconds,
        )

    async def render(self) -> tuple[ConvertedRequest, Upstream]:
        """The request as it would be sent, and the upstream."""
        received, routes = await self._prepare(is_used=False)
        upstream = self._take_route(routes[0])
        received = await self._expand(received, upstream)
        self._call.original = received.original
        await self._compactor.restore()
        return await self._call.render(received, upstream, routes[0].model), upstream

    # --- to the upstream ----------------------------------------------------------------------------

    async def _prepare(self, *, is_used: bool = True) -> tuple[ReceivedRequest, Sequence[Route]]:
        """The request as it is to be sent, and the routes, in the order in which they are tried."""
        received = await self._read_continued()
        if received is None:
            received = await self._call.offload(self._read_body)
        body = b"" if received.has_unique_keys else self._request.body
        refuse_second_model(body, received.fields, self._services.limits)
        self._fields = received.fields
        if self._is_responses and self._request.is_background:
            self._fields = {**received.fields, "background": True}
        elif self._is_responses and received.fields.get("background") is True:
            self._is_background, is_used = True, False
        routes = self._choose_routes(received)
        meter, client = self._services.meter, self._request.client
        self._has_key = self._services.ring.key_of(client) is not None
        if self._has_key:
            meter.check_model(client, self._record.request.model)
        if is_used and self._has_key:
            most = received.conversation.options.sampling.max_tokens
            self._ticket = await meter.admit(client, self._record, len(self._request.body), max_output=most)
        elif is_used:
            self._ticket = Ticket(client, None, 0)
        if self._services.chain and not self._is_background:
            upstream = self._take_route(routes[0])
            received = await self._run_middleware(await self._expand(received, upstream), upstream)
            routes = self._choose_routes(received)
        return received, routes

    async def _read_continued(self) -> ReceivedRequest | None:
        """The request, if it continues one of the client's last ones: then only what is new is read."""
        body = self._request.body
        new = None if self._endpoint.is_hosted else self._memory.new_text(body, self._endpoint.protocol)
        if new is None:
            return None
        known = max(len(body) // _BYTES_A_KNOWN_VALUE, new.known_blocks // _KNOWN_BLOCKS_A_VALUE)
        values = count_marks(new.text) + known
        received = await offloading.run(values, len(new.text), lambda: self._continued(body))
        if received is not None and new.is_plain:
            self._call.values, self._call.size = values, len(new.text)
        return received

    def _continued(self, body: bytes) -> ReceivedRequest | None:
        received = read_continued(
            body,
            self._memory,
            source=self._endpoint.source,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
        )
        return None if received is None else self._addressed(received)

    def _read_body(self) -> ReceivedRequest:
        """The request as the client sent it; one for a cloud that hosts the protocol, as one for its own provider."""
        body = self._request.body
        return self._read(
            self._own_fields(parse_body(body, self._services.limits)) if self._endpoint.is_hosted else body
        )

    def _read(self, body: bytes | Fields) -> ReceivedRequest:
        received = read_request(
            body,
            source=self._endpoint.source,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
            memory=self._memory,
        )
        return self._addressed(received)

    def _addressed(self, received: ReceivedRequest) -> ReceivedRequest:
        """The request with the model and the kind of reply that its path names."""
        wants = self._endpoint.stream
        if wants is None and self._endpoint.streams_by_default and received.conversation.options.stream is None:
            wants = True
        received.address(model=self._endpoint.model, stream=wants)
        return received

    def _own_fields(self, hosted: Fields) -> Fields:
        """A body for a cloud that hosts the protocol as one for the protocol's own provider."""
        headers, record = self._request.headers, get(self._endpoint.protocol)
        for field, header in record.host_fields.items():
            value = hosted.get(field)
            listed = value if isinstance(value, list) else []
            names = [name for name in listed if isinstance(name, str) and _HEADER_WORD.fullmatch(name)]
            if header and names:
                headers[header] = ",".join([*headers.get(header, "").split(","), *names]).strip(",")
        fields = {name: value for name, value in hosted.items() if name not in record.host_fields}
        return {"model": self._endpoint.model, **fields, **({"stream": True} if self._endpoint.stream else {})}

    def _choose_routes(self, received: ReceivedRequest) -> list[Route]:
        conversation = received.conversation
        self._record.request.name_model(conversation.model, is_stream=bool(conversation.options.stream))
        route = self._services.router.route(conversation.model)
        if not route.others and not route.weights:
            routes = [route]
        elif route.others and route.each == "request":
            routes = self._services.rotation.order(route)
        else:
            routes = order_by_key(route, self._call.balancing_key(conversation) if route.weights else "")
        self._take_route(routes[0])
        return routes

    def _take_route(self, route: Route) -> Upstream:
        """Take a route: its upstream is recorded as the one that is called."""
        if self._route_taken is not None and self._route_taken[0] is route:
            return self._route_taken[1]
        upstream = self._services.upstreams.find(route)
        self._route_taken = (route, upstream)
        self._call.settings = route.settings
        self._record.take_route(RecordedRoute(upstream.name, route.model, upstream.is_simulated))
        return upstream

    async def _expand(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request with the earlier responses that it refers to."""
        if self._endpoint.source != RESPONSES:
            return received
        is_native = self._call.target(upstream, received.conversation) == RESPONSES
        expanded = await self._history.expand(
            received.fields, upstream.name if is_native else "", is_native=is_native, offload=self._call.offload
        )
        if expanded is None:
            return received
        self._call.values = max(self._call.values, count_values_of(expanded))
        return await self._call.offload(lambda: self._read(expanded))

    async def _run_middleware(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request as the user's middleware leaves it."""
        protocol, model = self._call.source.protocol, received.conversation.model
        self._middleware_request, is_changed = self._services.chain.before(
            received.fields, protocol=protocol, model=model, provider=upstream.target
        )
        if not is_changed:
            return received
        changed = GatewayMiddleware.change_fields(received.fields, self._middleware_request, protocol)
        self._call.values = max(self._call.values, count_values_of(changed))
        received = await self._call.offload(lambda: self._read(changed))
        received.address(model=self._middleware_request.model)
        return received

    # --- to the client ------------------------------------------------------------------------------

    async def _send_reply(self, exchange: UpstreamReply) -> Failure | None:
        """Send a reply that is not streamed."""
        out, response, upstream = exchange.out, exchange.response, exchange.upstream
        data, values = await self._read_reply(exchange)
        self._record.times.receive_reply()
        size = max(len(data), len(self._request.body))
        converted = await offloading.run(self._call.values + values, size, lambda: self._convert_reply(data, out))
        await in_step(exchange.breaker.running - 1)
        reply, body, written = converted
        if self._middleware_request is not None:
            original = body
            body = self._services.chain.after_reply(
                self._middleware_request, original, reply.reply, source=self._endpoint.source, provider=upstream.target
            )
            written = written if body == original else msgspec.json.encode(body)
        if (
            needs_vault := self._note_reply(out, reply.provider_reply, reply.reply)
        ) or self._endpoint.source == RESPONSES:
            await self._keep(needs_vault, out, reply.provider_reply, reply.reply, upstream, body)
        if self._store_losses:
            self._record.reply.add(*self._store_losses)
        if self._is_not_stored:
            body = {**body, "store": False}
            written = msgspec.json.encode(body)
        self._record.response.complete(200)
        self._call.note_cache(is_sum=self._compactor.has_summarised)
        self._record.times.send()
        await self._channel.respond(200, self.headers(out, response), written)
        return None

    async def _read_reply(self, exchange: UpstreamReply) -> tuple[bytes, int]:
        """A whole reply, which counts against the memory for bodies, and the number of its JSON values."""
        hold = self._request.hold
        max_bytes = self._services.reply_limits.max_bytes
        data = await read_upstream_body(exchange.response, exchange.upstream.name, max_bytes, hold)
        if self._record.captured is not None:
            self._record.captured.receive(data)
        values = await offloading.count_values(data)
        hold(VALUE_BYTES * values)
        return data, values

    def _convert_reply(self, data: bytes, out: ConvertedRequest) -> tuple[ConvertedReply, Fields, bytes]:
        """A whole reply for the client: converted, as an object and as bytes."""
        try:
            reply = convert_reply(
                data,
                source=out.target.name,
                target=self._endpoint.source,
                request=out,
                policy=self._call.policy,
                overrides=self._config.overrides,
                limits=self._services.reply_limits,
                reply_id=self.reply_id(),
                reply_model=self._reply_model(out),
            )
        except LimitError as error:  # not the client's mistake
            raise ProviderError(from_reply_limit(error)) from error
        body = self._with_date(reply.body, out)
        is_filled = body is not reply.body and out.source.protocol == out.target.protocol
        entries = (*reply.report.entries, _FILLED_ENTRY) if is_filled else reply.report.entries
        self._record.reply.report(count_entries(entries))
        return reply, body, reply.data if body is reply.body else msgspec.json.encode(body)

    async def _send_stream(self, exchange: UpstreamReply) -> Failure | None:
        """Send a stream. Returns how it failed, if it did. It begins for the client with its first event."""
        out, upstream = exchange.out, exchange.upstream
        translator = StreamTranslator(
            source=out.target.name,
            target=self._endpoint.source,
            request=out,
            policy=self._call.policy,
            overrides=self._config.overrides,
            limits=self._services.reply_limits,
            created=int(time.time()),
            reply_id=self.reply_id(),
            reply_model=self._reply_model(out),
            as_events=True,
            clock=lambda: int(time.time()),
            settings=self._fields if self._endpoint.source == RESPONSES else None,
        )
        forms = codec(self._endpoint.protocol).stream
        new_array = forms.array_writer if self._endpoint.is_array else None
        if self._endpoint.error_protocol:
            new_array = forms.host_writer
        array = new_array() if new_array is not None else None
        content_type = array.CONTENT_TYPE if array is not None else translator.content_type

        async def write(data: bytes) -> None:
            if not self._record.response.status:
                self._record.response.begin(200)
                kind = {"content-type": content_type, **_UNBUFFERED}
                await self._channel.begin(200, kind | self.headers(out, exchange.response))
                self._drop_bodies(out)
            await self._channel.write(data)

        pings = KeepAlive(
            lambda: translator.ping() if array is None and not self._is_in_thread else b"",
            write,
            self._config.gateway.ping_seconds,
        )
        is_kept = False
        try:
            async for data in self._translate(exchange.response, translator):
                if translator.is_over and not is_kept:
                    is_kept = True
                    await self._end_stream(out, translator, upstream)
                pings.reset()
                if not self._record.times.sent:
                    self._record.times.send()
                written = unstored_events(data) if self._is_not_stored else data
                await write(written if array is None else array.add(written))
            if not is_kept:  # some protocols have no event for the end
                await self._end_stream(out, translator, upstream)
            self._record.response.complete()
            await write(array.end() if array is not None else b"")
            await self._channel.end()
        except BaseException:
            if not translator.is_over and self._record.response.status and resume_if_cut(self._record):
                await self._cut_off(translator, write, array)
                return None
            translator.close()
            raise
        finally:
            pings.end()
            await self._note_stream(translator)
        return translator.failure

    def _drop_bodies(self, out: ConvertedRequest) -> None:
        """Forget what only a request to another upstream would need, now that the client has begun to get this one."""
        received, self._received = self._received, None
        if received is None or self._is_responses:
            return
        received.drop_body()
        out.drop_body()
        self._fields = {}
        self._request.drop_body()
        self._memory.drop_body()
        self._call.drop_sent()
        if self._config.inspector.keep == "off":
            self._record.drop_bodies()

    async def _cut_off(
        self, translator: StreamTranslator, write: Callable[[bytes], Awaitable[None]], array: ArrayWriter | None
    ) -> None:
        """End a stream with an error of its protocol, because the gateway stops."""
        data = translator.fail(STOPPING)
        self._record.response.complete()
        await write(data if array is None else array.add(data) + array.end())
        await self._channel.end()

    def reply_id(self) -> str:
        """An id that no other reply has: clients know replies by it, and not every provider sends one."""
        client = get(self._endpoint.protocol)
        prefix = client.reply_id_prefix if client.provider == self._endpoint.source else ""
        return prefix + self._record.id.removeprefix("tg_")

    def _reply_model(self, out: ConvertedRequest) -> str:
        """The model that a reply names: a simulated one does not pass for the real one."""
        record = self._record
        return f"{SIMULATED}/{record.route.upstream}/{out.model}" if record.route.is_simulated else ""

    def _with_date(self, body: Fields, out: ConvertedRequest) -> Fields:
        """A reply with what the core cannot know: the time, and the settings of the request."""
        if out.source.protocol == out.target.protocol:
            return fill_missing(settings_of(self._fields), body, int(time.time())) if self._is_responses else body
        dated = body
        undated = [name for name in ("created", "created_at", "completed_at") if body.get(name) == 0]
        if undated:
            dated = {**body, **dict.fromkeys(undated, int(time.time()))}
        return with_request(self._fields, dated) if self._endpoint.source == RESPONSES else dated

    async def _translate(self, response: HttpResponse, translator: StreamTranslator) -> AsyncIterator[bytes]:
        """The reply as the client reads it, piece by piece, with one end in every case."""
        pieces = response.pieces()
        size, max_bytes = 0, self._services.reply_limits.max_bytes
        pending = PendingBytes(self._request)
        feed = self._feed_of(translator)
        try:
            async for piece in pieces:
                if not self._record.times.sent:
                    self._record.times.receive_piece()
                data = await self._feed_in_thread(translator, piece) if pending.add(piece) else feed(piece)
                size += len(piece)
                if data:
                    pending.clear()
                    yield data if translator.failure is None else self._services.secrets.mask_bytes(data)
                if translator.is_over:
                    break
                if size > max_bytes:
                    yield translator.fail(from_reply_limit(LimitError(f"it is longer than max_bytes={max_bytes}")))
                    break
            if translator.is_over and translator.failure is None:
                async for data in trailing_pieces(pieces, feed):
                    yield data
        except ProviderError as error:
            data = self._fail_stream(translator, error)
        except Exception:
            yield translator.fail(Failure("server", "internal error of the gateway in the middle of the reply"))
            raise
        else:
            data = await self._feed_in_thread(translator, None) if pending.is_much else translator.finish()
        if data:
            yield data if translator.failure is None else self._services.secrets.mask_bytes(data)

    def _feed_of(self, translator: StreamTranslator) -> Callable[[bytes], bytes]:
        """What translates a piece, and captures it if replies are kept."""
        captured = self._record.captured
        return translator.feed if captured is None else captured.watch(translator.feed)

    def _fail_stream(self, translator: StreamTranslator, error: ProviderError) -> bytes:
        """The end of a stream that broke off. A refusal by the gateway itself is raised while that is possible."""
        if isinstance(error, GatewayRefusal) and not self._record.response.status:
            raise error
        return translator.fail(error)

    async def _feed_in_thread(self, translator: StreamTranslator, piece: bytes | None) -> bytes:
        """Translate a piece of a stream, or its end, in a thread. There are no pings meanwhile."""
        self._is_in_thread = True
        try:
            feed = self._feed_of(translator)
            return await offloading.in_thread(lambda: translator.finish() if piece is None else feed(piece))
        finally:
            self._is_in_thread = False

    async def _end_stream(self, out: ConvertedRequest, translator: StreamTranslator, upstream: Upstream) -> None:
        """The stream is over, and its end is not sent yet. One that failed before it began is raised as an error."""
        if translator.failure is not None:
            if not self._record.response.status:
                raise ProviderError(translator.failure)
            return
        body = translator.final_body if self._endpoint.source == RESPONSES else None
        if (needs_vault := self._note_reply(out, translator.provider_reply, translator.reply)) or body is not None:
            await self._keep(needs_vault, out, translator.provider_reply, translator.reply, upstream, body)
        if self._middleware_request is not None:
            self._show_middleware(self._middleware_request, translator.reply, upstream)

    def _show_middleware(self, shown: Request, reply: Reply, upstream: Upstream) -> None:
        """Show the stream to middleware. It is too late to change or refuse anything."""
        protocol = self._call.source.protocol
        try:
            self._services.chain.after_stream(
                shown, reply, protocol=protocol, source=self._endpoint.source, provider=upstream.target
            )
        except (InputError, MiddlewareError) as error:
            self._record.response.note(f"a middleware failed on a streamed reply: {error}")

    async def _note_stream(self, translator: StreamTranslator) -> None:
        """Record how a stream went. One of which the client got nothing is not a stream but an error."""
        values = VALUES_A_BLOCK * len(translator.reply.turn.blocks)
        self._record.reply.report(
            await offloading.run(values, 0, lambda: count_entries((*translator.report.entries, *self._store_losses)))
        )
        self._count(translator.reply)
        if translator.failure is not None and self._record.response.status:
            if translator.failure is not STOPPING:
                self._record.calls.fail(self._record.route.upstream, translator.failure.kind)
            error = f"{translator.failure.kind}: {translator.failure.message}"
            self._record.response.fail(self._services.secrets.mask(error))

    def _note_reply(self, out: ConvertedRequest, original: Reply, reply: Reply) -> bool:
        """Record a reply. Returns whether the vault may have to store something of it."""
        self._count(reply)
        self._record.reply.end(reply.stop or "", original.model)
        is_renamed = self._call.original.model != out.model
        return self._services.vault.is_needed(out.source, out.target, is_renamed=is_renamed)

    def _count(self, reply: Reply) -> None:
        """Record the tokens that the provider reports. Counts that cannot be true are estimated."""
        if reply.usage is None:
            self._record.reply.count(None)
            return
        usage = plausible_usage(self._compactor.total(reply.usage))
        whole = with_cached_input(usage or reply.usage)
        counts = {name: count for name, count in zip(COUNTS, _counts_of(whole), strict=True) if count is not None}
        if usage is not reply.usage:
            size = self._request.body_bytes or len(self._request.body)
            counts.setdefault("input_tokens", size // BYTES_PER_TOKEN)
            counts.setdefault("output_tokens", len(repr(reply.turn.blocks)) // BYTES_PER_TOKEN)
            entry = Entry(action="assumed", reason=f"{IMPLAUSIBLE}; they are estimated", fault="loss", path="$.usage")
            if entry not in self._record.reply.entries:
                self._record.reply.add(entry)
        self._record.reply.count(counts)

    async def _keep(
        self,
        needs_vault: bool,
        out: ConvertedRequest,
        original: Reply,
        reply: Reply,
        upstream: Upstream,
        body: Fields | None,
    ) -> None:
        """Store what the client cannot carry, and the response if its protocol says so. What the store did not take is
        reported."""
        fields = self._fields if body is not None and self._is_responses else None
        late, client = self._services.late, self._request.client
        try:
            is_stored = await self._store(needs_vault, out, original, reply, upstream, (fields, body))
        except StoreError as error:  # the client gets its reply all the same
            self._record.response.store_failed(f"nothing was stored: {error}")
            is_stored = False
            if needs_vault:
                self._store_losses.append(NOT_KEPT)
        else:
            if late is not None and late.size:
                is_late = is_stored and body is not None and late.is_waiting(STORED, client, f"link:{body.get('id')}")
                self._report_late(late, is_late=is_late, is_vault_late=needs_vault and late.is_waiting(VAULT, client))
        if fields is not None and not is_stored and wants_stored(fields):
            self._is_not_stored = True
            self._store_losses.append(NOT_STORED)

    def _report_late(self, late: LateStore, *, is_late: bool, is_vault_late: bool) -> None:
        """Report what waits for the store."""
        if is_vault_late:
            self._store_losses.append(NOT_KEPT_YET)
        if is_late:
            self._is_not_stored = True
            self._store_losses.append(NOT_STORED_YET)
        if is_late or is_vault_late:
            self._record.response.note(f"nothing was stored yet: {late.last_error}")

    async def store_reply(
        self, exchange: UpstreamReply, reply: Reply, body: Fields | None, *, is_stream: bool
    ) -> Fields | None:
        """Show a reply that the gateway made to middleware, and store it if its client wants that."""
        shown, upstream = self._middleware_request, exchange.upstream
        if shown is not None and is_stream:
            self._show_middleware(shown, reply, upstream)
        elif shown is not None and body is not None:
            body = self._services.chain.after_reply(
                shown, body, reply, source=self._endpoint.source, provider=upstream.target
            )
        await self._keep(False, exchange.out, reply, reply, upstream, body if self._is_responses else None)
        if self._store_losses:
            self._record.reply.add(*self._store_losses)
        return {**body, "store": False} if body is not None and self._is_not_stored else body

    async def _store(
        self,
        needs_vault: bool,
        out: ConvertedRequest,
        original: Reply,
        reply: Reply,
        upstream: Upstream,
        exchanged: tuple[Fields | None, Fields | None],
    ) -> bool:
        """Store a reply. Returns whether a response can be continued by its id, here or at its provider.

        exchanged: the request and the response.
        """
        client = self._request.client
        if needs_vault:
            issuer = upstream.issuer(out.model, out.target.name)
            await self._services.vault.keep(client, self._call.original, original, reply, issuer, self._call.offload)
        fields, body = exchanged
        if fields is None or body is None:
            return False
        stored_by = upstream.name if out.target.protocol == RESPONSES else ""
        return await self._history.keep(fields, body, stored_by)

    @property
    def _is_responses(self) -> bool:
        return self._endpoint.source == RESPONSES

    def headers(self, out: ConvertedRequest, response: HttpResponse) -> dict[str, str]:
        headers = {
            "x-toolglot-request": self._record.id,
            "x-toolglot-report": report_header(
                self._record.sent.entries, self._record.reply.entries, is_same=out.data is self._request.body
            ),
            **self._record.upstream_headers(out.model),
        }
        original = response.headers
        if out.source.protocol == out.target.protocol:
            returned = get(out.source.protocol).returned_headers
            headers.update({name: value for name, value in original.items() if name.startswith(returned)})
        request_id = original.get("request-id") or original.get("x-request-id") or self._record.id
        headers[get(out.source.protocol).client_request_id_header] = request_id
        mask, joined = self._services.secrets.mask, "\n".join(headers.values())
        if mask(joined) == joined:
            return headers
        return {name: mask(value) for name, value in headers.items()}


def _failover_entry(route: Route, other: Route, error: Exception) -> Entry:
    """The entry for an upstream that failed."""
    reason = error.failure.kind if isinstance(error, ProviderError) else type(error).__name__
    after = f"{other.upstream_name}/{other.model[:80]}"
    return failover_entry(route.upstream_name, after, reason, other.upstream_name)

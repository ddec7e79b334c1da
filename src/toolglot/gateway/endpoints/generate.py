"""One request of a client to a model: read, sent where it belongs, and answered in the client's own protocol.

    bytes → read → middleware → route → recall → render → upstream → translate → keep → bytes

Laws: nothing is buffered that can be streamed. What the vault keeps is safe before the client sees the end of the
answer, so that its next request finds it. A client that goes away ends the upstream's answer at once.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from toolglot.conversation import Failure, Reply
from toolglot.conversation.believed_usage import COUNTS, NOT_BELIEVED, believed
from toolglot.conversation.report import Entry
from toolglot.conversation.tool_memory import ToolMemory
from toolglot.errors import InputError, LimitError, RefusedError
from toolglot.gateway.accounting.metering import BYTES_PER_TOKEN, Ticket
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http import offloading
from toolglot.gateway.http.body_budget import VALUE_BYTES
from toolglot.gateway.http.graceful_shutdown import STOPPING, taken_back
from toolglot.gateway.http.keep_alive import KeepAlive
from toolglot.gateway.http.offloading import VALUES_A_BLOCK, count_values_of
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal, Hold, refusal
from toolglot.gateway.observability.record_text import report_header
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RecordedRoute, RequestRecord
from toolglot.gateway.routing.middleware_chain import GatewayMiddleware, MiddlewareError
from toolglot.gateway.routing.upstream_call import UpstreamCall, UpstreamReply, error_allows_failover, in_step
from toolglot.gateway.services import Services
from toolglot.gateway.state.response_items import unstored_events, wants_stored, with_request
from toolglot.middleware import Request
from toolglot.protocols.base import get
from toolglot.protocols.errors.failures import ANSWER_LIMIT, ProviderError, from_answer_limit
from toolglot.protocols.gemini.json_array import JsonArray
from toolglot.store import StoreError
from toolglot.translate.replies import ConvertedReply, convert_reply
from toolglot.translate.requests import ConvertedRequest, ReceivedRequest, read_request
from toolglot.translate.streams import StreamTranslator
from toolglot.upstream import HttpResponse, Upstream
from toolglot.upstream.failover import failover_entry
from toolglot.upstream.http.transport import trailing_pieces
from toolglot.upstream.protocol_choice import RESPONSES
from toolglot.upstream.routing.load_balancing import conversation_key, order_by_key
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.routing.routes import Route

MAX_FED: Final = 32 * 1024
"""Bytes of a stream that are read on the event loop at once."""

Fields = dict[str, Any]
T = TypeVar("T")

_counts_of: Final = attrgetter(*COUNTS)
_MEMORY: Final = ToolMemory()
"""Of the tools of all clients: nothing of one can be learned by another but that somebody has sent the same ones."""

_FEW_DIGITS: Final = 5
"""Of the announced length of an answer that is read at once."""
_UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


UNSTORED: Final = Entry(
    action="dropped",
    reason="the response was not stored, so that it cannot be read or continued by its id: send the whole conversation",
    fault="loss",
    path="$.store",
)
UNKEPT: Final = Entry(
    action="dropped",
    reason="what the provider signed was not kept, since the gateway's store failed: the next request goes without it",
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
        self._asking = UpstreamCall(services, endpoint, request, record)
        self._fields: Fields = {}
        """The request as the client sent it."""
        self._shown: Request | None = None
        """The request as middleware saw it."""
        self._ticket: Ticket | None = None
        self._way: tuple[Route, Upstream] | None = None
        """The route that was taken last, and who it leads to."""
        self._has_rules = False
        """Its client has a key that may have limits."""
        self._unkept: list[Entry] = []
        """What the store did not take of the answer."""
        self._is_unstored = False
        """The client asked for a response that it can continue by its id, and cannot."""
        self._is_apart = False
        """A thread works on the stream."""

    async def run(self) -> None:
        """Answer the request. What goes wrong before the answer begins is raised."""
        try:
            received, routes = await self._ready()
            entries: list[Entry] = []
            for place, route in enumerate(routes):
                try:
                    await self._answer(received, route, entries)
                except (ProviderError, RefusedError) as error:
                    # A switch never happens inside a turn: once the client has seen some of an answer, it is its own.
                    if self._record.response.status or place + 1 == len(routes) or not error_allows_failover(error):
                        raise
                    entries.append(_switched(route, routes[place + 1], error))
                    self._record.restart()
                else:
                    return
        finally:
            if self._ticket is not None:
                self._services.meter.record(self._ticket, self._record)

    async def _answer(self, received: ReceivedRequest, route: Route, entries: list[Entry]) -> None:
        """Answer by one upstream."""
        upstream = self._use(route)
        await in_step(self._services.upstreams.breaker(upstream).running)
        if self._has_rules:
            self._services.meter.afford(self._request.client, self._record)
        if self._endpoint.source == RESPONSES:
            received = await self._joined(received, upstream)
        self._asking.original = received.given
        asked = await self._asking.call(received, upstream, route.model, entries)
        try:
            failure = await (self._stream(asked) if asked.out.stream else self._whole(asked))
        except GatewayRefusal:  # the upstream did nothing wrong
            asked.breaker.gave_up()
            raise
        except ProviderError as error:
            asked.breaker.failed(error.failure)
            self._record.calls.fail(upstream.name, error.failure.kind)
            raise
        except BaseException:
            asked.breaker.gave_up()
            raise
        else:
            asked.breaker.failed(failure) if failure is not None else asked.breaker.succeeded()
        finally:
            asked.breaker.end()
            await asked.answer.close()

    async def rendered(self) -> tuple[ConvertedRequest, Upstream]:
        """What would be sent, and to whom."""
        received, routes = await self._ready(is_used=False)
        upstream = self._use(routes[0])
        received = await self._joined(received, upstream)
        self._asking.original = received.given
        return await self._asking.render(received, upstream, routes[0].model), upstream

    # --- the way there ------------------------------------------------------------------------------

    async def _ready(self, *, is_used: bool = True) -> tuple[ReceivedRequest, list[Route]]:
        """The request as it is to be sent, and who is asked, one after the other."""
        body = self._request.body
        received = await self._asking.apart(lambda: self._read(body))
        self._fields = received.fields
        routes = self._routed(received)
        meter, client = self._services.meter, self._request.client
        self._has_rules = self._services.ring.key_of(client) is not None
        if self._has_rules:
            meter.permit(client, self._record.request.model)
        if is_used and self._has_rules:
            self._ticket = await meter.admit(client, self._record, len(self._request.body))
        elif is_used:
            self._ticket = Ticket(client, None, 0)
        if self._services.chain:
            upstream = self._use(routes[0])
            received = await self._through_chain(await self._joined(received, upstream), upstream)
            routes = self._routed(received)
        return received, routes

    def _read(self, body: bytes | dict[str, Any]) -> ReceivedRequest:
        received = read_request(
            body,
            source=self._endpoint.source,
            policy=self._config.policy,
            overrides=self._config.overrides,
            limits=self._services.limits,
            memory=_MEMORY,
        )
        wants = self._endpoint.stream
        if wants is None and self._endpoint.streams_by_default and received.conversation.options.stream is None:
            wants = True
        received.address(model=self._endpoint.model, stream=wants)
        return received

    def _routed(self, received: ReceivedRequest) -> list[Route]:
        said = received.conversation
        self._record.request.name_model(said.model, is_stream=bool(said.options.stream))
        route = self._services.router.route(said.model)
        if not route.others and not route.weights:
            routes = [route]
        elif route.others and route.each == "request":
            routes = self._services.rotation.order(route)
        else:
            routes = order_by_key(route, conversation_key(self._request.client, said) if route.weights else "")
        self._use(routes[0])
        return routes

    def _use(self, route: Route) -> Upstream:
        """The upstream of a route, which is recorded as the one that is called."""
        if self._way is not None and self._way[0] is route:
            return self._way[1]
        upstream = self._services.upstreams.find(route)
        self._way = (route, upstream)
        self._asking.settings = route.settings
        self._record.route = RecordedRoute(upstream.name, route.model, upstream.is_simulated)
        return upstream

    async def _joined(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request with what it refers to of earlier answers."""
        if self._endpoint.source != RESPONSES:
            return received
        is_native = self._asking.target(upstream, received.conversation) == RESPONSES
        if received.fields.get("background") is True and not is_native:
            raise refusal("bad_request", "background responses are not served here: send background false", 400)
        # Where several clients share an upstream's account, what this one was not given here may be another's.
        is_alone = not self._services.ring.is_shared
        if not is_alone and received.fields.get("conversation") is not None:
            said = "a conversation at the provider is not kept apart by client keys: send previous_response_id"
            raise refusal("bad_request", said, 400)
        joined = await self._services.responses.expanded(
            self._request.client,
            received.fields,
            may_be_elsewhere=is_native and is_alone,
            home=upstream.name if is_native else "",
            apart=self._asking.apart,
        )
        if joined is None:
            return received
        self._asking.values = max(self._asking.values, count_values_of(joined))
        return await self._asking.apart(lambda: self._read(joined))

    async def _through_chain(self, received: ReceivedRequest, upstream: Upstream) -> ReceivedRequest:
        """The request as the user's middleware leaves it."""
        protocol, model = self._asking.source.protocol, received.conversation.model
        self._shown, is_changed = self._services.chain.before(
            received.fields, protocol=protocol, model=model, provider=upstream.target
        )
        if not is_changed:
            return received
        changed = GatewayMiddleware.changed(received.fields, self._shown, protocol)
        self._asking.values = max(self._asking.values, count_values_of(changed))
        received = await self._asking.apart(lambda: self._read(changed))
        received.address(model=self._shown.model)
        return received

    # --- the way back -------------------------------------------------------------------------------

    async def _whole(self, asked: UpstreamReply) -> Failure | None:
        out, answer, upstream = asked.out, asked.answer, asked.upstream
        data, values = await self._held_whole(asked)
        self._record.times.hear_whole()
        size = max(len(data), len(self._request.body))
        replied = await offloading.run(self._asking.values + values, size, lambda: self._reply(data, out))
        await in_step(asked.breaker.running - 1)
        reply, body, written = replied
        if self._shown is not None:
            given = body
            body = self._services.chain.after_reply(
                self._shown, given, reply.reply, source=self._endpoint.source, provider=upstream.target
            )
            written = written if body == given else msgspec.json.encode(body)
        if (serves := self._note_reply(out, reply.said, reply.reply)) or self._endpoint.source == RESPONSES:
            await self._keep(serves, out, reply.said, reply.reply, upstream, body)
        if self._unkept:
            self._record.reply.add(*self._unkept)
        if self._is_unstored:
            body = {**body, "store": False}
            written = msgspec.json.encode(body)
        self._record.response.complete(200)
        self._record.times.send()
        await self._channel.answer(200, self._headers(out, answer), written)
        return None

    async def _held_whole(self, asked: UpstreamReply) -> tuple[bytes, int]:
        """All of an answer, which is held as the body of the request is, and how many JSON values it has at most."""
        answer, hold, most = asked.answer, self._request.hold, self._services.answer_limits.max_bytes
        announced = answer.headers.get("content-length", "")
        if announced.isdecimal() and len(announced) <= _FEW_DIGITS and "content-encoding" not in answer.headers:
            data = await _all_of(answer, most)
            hold(len(data))
        else:
            data = await _counted(asked, most, hold)
        values = await offloading.count_values(data)
        hold(VALUE_BYTES * values)
        return data, values

    def _reply(self, data: bytes, out: ConvertedRequest) -> tuple[ConvertedReply, Fields, bytes]:
        """A whole answer, as the client gets it: read, as an object and as it is sent."""
        try:
            reply = convert_reply(
                data,
                source=out.target.name,
                target=self._endpoint.source,
                request=out,
                policy=self._asking.policy,
                overrides=self._config.overrides,
                limits=self._services.answer_limits,
                reply_id=self._reply_id(),
                reply_model=self._reply_model(out),
            )
        except LimitError as error:  # nothing that the client sent, or could send otherwise
            raise ProviderError(from_answer_limit(error)) from error
        body = self._dated(reply.body, out)
        self._record.reply.report(count_entries(reply.report.entries))
        return reply, body, reply.data if body is reply.body else msgspec.json.encode(body)

    async def _stream(self, asked: UpstreamReply) -> Failure | None:
        """Hand a stream on; how it failed, if it did. It begins for the client with its first event."""
        out, upstream = asked.out, asked.upstream
        translator = StreamTranslator(
            source=out.target.name,
            target=self._endpoint.source,
            request=out,
            policy=self._asking.policy,
            overrides=self._config.overrides,
            limits=self._services.answer_limits,
            created=int(time.time()),
            reply_id=self._reply_id(),
            reply_model=self._reply_model(out),
            as_events=True,
        )
        array = JsonArray() if self._endpoint.is_array else None
        content_type = JsonArray.CONTENT_TYPE if array is not None else translator.content_type

        async def give(data: bytes) -> None:
            if not self._record.response.status:
                self._record.response.begin(200)
                kind = {"content-type": content_type, **_UNBUFFERED}
                await self._channel.begin(200, kind | self._headers(out, asked.answer))
            await self._channel.give(data)

        pings = KeepAlive(
            lambda: translator.ping() if array is None and not self._is_apart else b"",
            give,
            self._config.gateway.ping_seconds,
        )
        is_kept = False
        try:
            async for data in self._translated(asked.answer, translator):
                if translator.is_over and not is_kept:
                    is_kept = True
                    await self._streamed(out, translator, upstream)
                pings.stirred()
                if not self._record.times.sent:
                    self._record.times.send()
                written = unstored_events(data) if self._is_unstored else data
                await give(written if array is None else array.add(written))
            if not is_kept:  # some protocols end with their bytes, and not with an event
                await self._streamed(out, translator, upstream)
            self._record.response.complete()
            await give(array.end() if array is not None else b"")
            await self._channel.end()
        except BaseException:
            if not translator.is_over and self._record.response.status and taken_back(self._record):
                await self._cut(translator, give, array)
                return None
            translator.close()
            raise
        finally:
            pings.end()
            await self._note_stream(translator)
        return translator.failure

    async def _cut(
        self, translator: StreamTranslator, give: Callable[[bytes], Awaitable[None]], array: JsonArray | None
    ) -> None:
        """The end of a stream for which there is no time: as an error of its protocol."""
        data = translator.fail(STOPPING)
        self._record.response.complete()
        await give(data if array is None else array.add(data) + array.end())
        await self._channel.end()

    def _reply_id(self) -> str:
        """An id that no other answer has, for clients that know answers by it: not every provider gives such a one."""
        client = get(self._endpoint.protocol)
        prefix = client.reply_id_prefix if client.provider == self._endpoint.source else ""
        return prefix + self._record.id.removeprefix("tg_")

    def _reply_model(self, out: ConvertedRequest) -> str:
        """What an answer names as its model: a simulated one does not pass for the real one."""
        record = self._record
        return f"{SIMULATED}/{record.route.upstream}/{out.model}" if record.route.is_simulated else ""

    def _dated(self, body: Fields, out: ConvertedRequest) -> Fields:
        """A reply with what the core cannot know: when it was made, and what the request asked for."""
        if out.source.protocol == out.target.protocol:
            return body
        dated = body
        if body.get("created") == 0 or body.get("created_at") == 0:
            dated = {**body, **{name: int(time.time()) for name in ("created", "created_at") if body.get(name) == 0}}
        return with_request(self._fields, dated) if self._endpoint.source == RESPONSES else dated

    async def _translated(self, answer: HttpResponse, translator: StreamTranslator) -> AsyncIterator[bytes]:
        """The answer as the client reads it, piece by piece, with one end whatever happens."""
        pieces = answer.pieces()
        size, most = 0, self._services.answer_limits.max_bytes
        waiting = _Waiting(self._request)
        try:
            async for piece in pieces:
                if not self._record.times.sent:
                    self._record.times.hear_piece()
                data = await self._fed_apart(translator, piece) if waiting.add(piece) else translator.feed(piece)
                size += len(piece)
                if data:
                    waiting.clear()
                    yield data if translator.failure is None else self._services.secrets.mask_bytes(data)
                if translator.is_over:
                    break
                if size > most:
                    yield translator.fail(from_answer_limit(LimitError(f"it is longer than max_bytes={most}")))
                    break
            if translator.is_over and translator.failure is None:
                async for data in trailing_pieces(pieces, translator.feed):
                    yield data
        except ProviderError as error:
            data = self._broken(translator, error)
        except Exception:
            yield translator.fail(Failure("server", "the gateway failed in the middle of the answer"))
            raise
        else:
            data = await self._fed_apart(translator, None) if waiting.is_much else translator.finish()
        if data:
            yield data if translator.failure is None else self._services.secrets.mask_bytes(data)

    def _broken(self, translator: StreamTranslator, error: ProviderError) -> bytes:
        """The end of a stream that broke off. What the gateway itself refuses is raised while that is possible."""
        if isinstance(error, GatewayRefusal) and not self._record.response.status:
            raise error
        return translator.fail(error)

    async def _fed_apart(self, translator: StreamTranslator, piece: bytes | None) -> bytes:
        """What the client gets for a piece of a stream, or for its end, made in a thread. No ping is made meanwhile."""
        self._is_apart = True
        try:
            return await offloading.in_thread(lambda: translator.finish() if piece is None else translator.feed(piece))
        finally:
            self._is_apart = False

    async def _streamed(self, out: ConvertedRequest, translator: StreamTranslator, upstream: Upstream) -> None:
        """The stream is over, and its end not yet sent. One that failed before it began is no stream, but an error."""
        if translator.failure is not None:
            if not self._record.response.status:
                raise ProviderError(translator.failure)
            return
        body = translator.final_body if self._endpoint.source == RESPONSES else None
        if (serves := self._note_reply(out, translator.said, translator.reply)) or body is not None:
            await self._keep(serves, out, translator.said, translator.reply, upstream, body)
        if self._shown is not None:
            self._show_stream(self._shown, translator.reply, upstream)

    def _show_stream(self, shown: Request, reply: Reply, upstream: Upstream) -> None:
        """Show middleware what was streamed. It is too late for it to change or refuse anything."""
        protocol = self._asking.source.protocol
        try:
            self._services.chain.after_stream(
                shown, reply, protocol=protocol, source=self._endpoint.source, provider=upstream.target
            )
        except (InputError, MiddlewareError) as error:
            self._record.response.note(f"a middleware failed on what was streamed: {error}")

    async def _note_stream(self, translator: StreamTranslator) -> None:
        """Record how a stream went. One of which the client got nothing is not a stream but an error."""
        values = VALUES_A_BLOCK * len(translator.reply.turn.blocks)
        self._record.reply.report(
            await offloading.run(values, 0, lambda: count_entries((*translator.report.entries, *self._unkept)))
        )
        self._count(translator.reply)
        if translator.failure is not None and self._record.response.status:
            if translator.failure is not STOPPING:
                self._record.calls.fail(self._record.route.upstream, translator.failure.kind)
            error = f"{translator.failure.kind}: {translator.failure.message}"
            self._record.response.fail(self._services.secrets.mask(error))

    def _note_reply(self, out: ConvertedRequest, original: Reply, reply: Reply) -> bool:
        """Record what came. Returns whether the vault may have to keep something of it."""
        self._count(reply)
        self._record.reply.end(reply.stop or "", original.model)
        is_renamed = self._asking.original.model != out.model
        return self._services.vault.serves(out.source, out.target, is_renamed=is_renamed)

    def _count(self, reply: Reply) -> None:
        """Note the tokens that its provider says an answer took; what cannot be true is estimated."""
        if reply.usage is None:
            self._record.reply.count(None)
            return
        usage = believed(reply.usage)
        counts = {name: count for name, count in zip(COUNTS, _counts_of(usage), strict=True) if count is not None}
        if usage is not reply.usage:
            counts.setdefault("input_tokens", len(self._request.body) // BYTES_PER_TOKEN)
            counts.setdefault("output_tokens", len(repr(reply.turn.blocks)) // BYTES_PER_TOKEN)
            entry = Entry(action="assumed", reason=f"{NOT_BELIEVED}; they are estimated", fault="loss", path="$.usage")
            if entry not in self._record.reply.entries:
                self._record.reply.add(entry)
        self._record.reply.count(counts)

    async def _keep(
        self,
        serves: bool,
        out: ConvertedRequest,
        original: Reply,
        reply: Reply,
        upstream: Upstream,
        body: Fields | None,
    ) -> None:
        """Keep what the client does not: for its own next request, or because its protocol says so. What the store did
        not take is reported with the answer."""
        asked = self._fields if body is not None and self._is_responses else None
        try:
            is_stored = await self._kept(serves, out, original, reply, upstream, (asked, body))
        except StoreError as error:  # the answer is there, and it is the client's
            self._record.response.store_failed(f"nothing was kept: {error}")
            is_stored = False
            if serves:
                self._unkept.append(UNKEPT)
        if asked is not None and not is_stored and wants_stored(asked):
            self._is_unstored = True
            self._unkept.append(UNSTORED)

    async def _kept(
        self,
        serves: bool,
        out: ConvertedRequest,
        original: Reply,
        reply: Reply,
        upstream: Upstream,
        exchanged: tuple[Fields | None, Fields | None],
    ) -> bool:
        """Whether a response can be continued by its id, here or at its provider. `exchanged`: the request and it."""
        client = self._request.client
        if serves:
            home = upstream.issuer(out.model, out.target.name)
            await self._services.vault.keep(client, self._asking.original, original, reply, home, self._asking.apart)
        asked, body = exchanged
        if asked is None or body is None:
            return False
        stored_by = upstream.name if out.target.protocol == RESPONSES else ""
        responses = self._services.responses
        return await responses.keep(client, asked, body, home=stored_by) or bool(stored_by and not responses.is_on)

    @property
    def _is_responses(self) -> bool:
        return self._endpoint.source == RESPONSES

    def _headers(self, out: ConvertedRequest, answer: HttpResponse) -> dict[str, str]:
        headers = {
            "x-toolglot-request": self._record.id,
            "x-toolglot-report": report_header(
                self._record.sent.entries, self._record.reply.entries, is_same=out.data is self._request.body
            ),
            **self._record.upstream_headers(out.model),
        }
        given = answer.headers
        if out.source.protocol == out.target.protocol:
            returned = get(out.source.protocol).returned_headers
            headers.update({name: value for name, value in given.items() if name.startswith(returned)})
        named = given.get("request-id") or given.get("x-request-id") or self._record.id
        headers[get(out.source.protocol).client_request_id_header] = named
        mask, joined = self._services.secrets.mask, "\n".join(headers.values())
        if mask(joined) == joined:
            return headers
        return {name: mask(value) for name, value in headers.items()}


async def _all_of(answer: HttpResponse, most: int) -> bytes:
    """A whole answer; one that is too long is its provider's failure, which names the setting."""
    try:
        return await answer.whole(most)
    except ProviderError as error:
        failure = error.failure
        if failure.code != ANSWER_LIMIT:
            raise
        message = f"{failure.message} (max_answer_bytes of the gateway)"
        raise ProviderError(msgspec.structs.replace(failure, message=message)) from None


async def _counted(asked: UpstreamReply, most: int, hold: Hold) -> bytes:
    """The same, each piece of which is held as it comes."""
    pieces: list[bytes] = []
    size = 0
    async for piece in asked.answer.pieces():
        size += len(piece)
        if size > most:
            message = (
                f"{asked.upstream.name} sent an answer of more than {most} bytes (max_answer_bytes of the gateway)"
            )
            raise ProviderError(Failure("server", message, code=ANSWER_LIMIT))
        hold(len(piece))
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class _Waiting:
    """What came of a stream since the client last got something of it: a piece of one event, or a whole answer."""

    __slots__ = ("_held", "_request", "_size")

    def __init__(self, request: ClientRequest) -> None:
        self._request = request
        self._size = 0
        self._held = 0

    @property
    def is_much(self) -> bool:
        return self._size > MAX_FED

    def add(self, piece: bytes) -> bool:
        """Whether so much has come that it is worked on in a thread; it is held like a body then."""
        self._size += len(piece)
        if self._size <= MAX_FED:
            return False
        more = self._size - self._held
        self._request.hold(more)
        self._held += more
        return True

    def clear(self) -> None:
        """The client gets something, so what came has been read, but for the beginning of another event."""
        if self._held and self._request.share is not None:
            self._request.share.release(self._held)
        self._size = self._held = 0


def _switched(route: Route, other: Route, error: Exception) -> Entry:
    """What the report says of an upstream that did not answer."""
    reason = error.failure.kind if isinstance(error, ProviderError) else type(error).__name__
    after = f"{other.upstream_name}/{other.model[:80]}"
    return failover_entry(route.upstream_name, after, reason, other.upstream_name)

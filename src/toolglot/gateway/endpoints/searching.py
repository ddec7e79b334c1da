"""Requests whose web search the gateway runs, because their upstream has none (`routing/search_work.py`).

    model → searches → model → … → one reply for the client

The client gets texts as they come, each search in the form of its protocol, and one end with the tokens of all calls.

Laws: every call of the model counts and is limited like every other. A client that disconnects ends the search too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Failure, Reply, Turn
from toolglot.conversation.events import Accumulator, Event, Failed
from toolglot.conversation.plausible_usage import COUNTS, plausible_usage
from toolglot.conversation.reply_events import of_reply
from toolglot.conversation.report import Entry
from toolglot.errors import LimitError
from toolglot.gateway.endpoints.compacting import Sender
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.endpoints.upstream_body import read_upstream_body
from toolglot.gateway.http.graceful_shutdown import STOPPING, resume_if_cut
from toolglot.gateway.http.keep_alive import KeepAlive
from toolglot.gateway.http.requests import ClientRequest
from toolglot.gateway.observability.report_counts import count_entries
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.routing.search_work import SearchWork, search_work
from toolglot.gateway.routing.upstream_call import UpstreamCall, UpstreamReply
from toolglot.gateway.services import Services
from toolglot.gateway.state.response_items import with_request
from toolglot.gateway.state.vault import with_opaque
from toolglot.protocols.base import ArrayWriter, codec, get
from toolglot.protocols.errors.failures import ProviderError, from_reply_limit
from toolglot.translate.replies import convert_reply, needs_usage
from toolglot.translate.requests import ReceivedRequest
from toolglot.translate.stream_reader import StreamReader
from toolglot.translate.streams import stream_options
from toolglot.upstream import Upstream
from toolglot.upstream.protocol_choice import RESPONSES

Fields = dict[str, Any]
_UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Searcher:
    """The web searches of one request."""

    def __init__(
        self,
        services: Services,
        endpoint: GatewayEndpoint,
        request: ClientRequest,
        record: RequestRecord,
        call: UpstreamCall,
        sender: Sender,
    ) -> None:
        self._services = services
        self._endpoint = endpoint
        self._request = request
        self._record = record
        self._call = call
        self._sender: Sender | None = sender
        self._fields: Fields = {}
        self._sent = Accumulator()
        """The reply that the client gets."""
        self._encoder: Any = None
        self._frames: ArrayWriter | None = None
        self._pings: KeepAlive | None = None
        self._exchange: UpstreamReply | None = None

    def close(self) -> None:
        """The request is over: it and its sender must not keep each other in memory."""
        self._sender = None

    async def serve(self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]) -> bool:
        """Search for a request whose upstream cannot. Returns whether the client has its reply."""
        call = self._call
        call.search = None
        if self._services.search is None:
            return False
        target = call.profile(call.target(upstream, call.original), model)
        work = search_work(call.original, call.source, target, self._services.search)
        if work is None:
            return False
        call.search, self._fields, self._sent = work, received.fields, Accumulator()
        self._encoder = self._frames = self._pings = None  # of an upstream that failed before the reply began
        try:
            await self._run(work, received, upstream, model, entries)
        except BaseException:
            if self._encoder is None or not self._record.response.status or not resume_if_cut(self._record):
                raise
            await self._fail_stream(STOPPING)
        finally:
            if self._pings is not None:
                self._pings.end()
        return True

    async def _run(
        self, work: SearchWork, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]
    ) -> None:
        is_stream = bool(received.conversation.options.stream)
        try:
            while True:
                work.begin_round()
                self._exchange = exchange = await self._call.call(received, upstream, model, entries)
                turns: list[Turn] = []

                async def read(exchange: UpstreamReply, turns: list[Turn] = turns) -> Failure | None:
                    turns.append(await (self._read_stream if is_stream else self._read_reply)(work, exchange))
                    return None

                await self._call.use(exchange, read)
                self._count(work)
                if work.has_calls:
                    await self._pass(await work.run_calls())
                if not work.goes_on or work.is_over:
                    break
                work.add_round(turns[0])
        except ProviderError as error:
            if not self._record.response.status:
                raise
            await self._fail_stream(error.failure)
            return
        self._record.reply.add(*work.entries)
        last = work.finish()
        if is_stream:
            await self._send_end(last)
        else:
            await self._send_reply(last)

    def _count(self, work: SearchWork) -> None:
        """Record the tokens so far, so that they count also if a later call fails."""
        usage = plausible_usage(work.usage)
        if usage is not None:
            self._record.reply.count({name: n for name in COUNTS if (n := getattr(usage, name)) is not None})

    # --- one reply of the model ---------------------------------------------------------------------

    async def _read_reply(self, work: SearchWork, exchange: UpstreamReply) -> Turn:
        out, limits = exchange.out, self._services.reply_limits
        data = await read_upstream_body(exchange.response, exchange.upstream.name, limits.max_bytes, self._request.hold)
        self._record.times.receive_reply()
        try:
            converted = convert_reply(
                data,
                source=out.target.name,
                target=self._endpoint.source,
                request=out,
                policy=self._call.policy,
                overrides=self._services.config.overrides,
                limits=limits,
                reply_id=self._reply_id,
            )
        except LimitError as error:
            raise ProviderError(from_reply_limit(error)) from error
        self._record.reply.add(*count_entries(converted.report.entries))
        await self._pass(work.pass_on(of_reply(converted.reply, piece=1 << 24)))
        return self._internal(exchange, converted.provider_reply, converted.reply)

    async def _read_stream(self, work: SearchWork, exchange: UpstreamReply) -> Turn:
        out, limits = exchange.out, self._services.reply_limits
        reader = StreamReader(
            source=out.target.name,
            target=self._endpoint.source,
            request=out,
            policy=self._call.policy,
            overrides=self._services.config.overrides,
            limits=limits,
            reply_id=self._reply_id,
        )
        reader.fills_usage = needs_usage(reader.source, reader.target, out)
        self._open_encoder(exchange, reader)
        size = 0
        try:
            async for piece in exchange.response.pieces():
                if not self._record.times.sent:
                    self._record.times.receive_piece()
                size += len(piece)
                if size > limits.max_bytes:
                    raise ProviderError(from_reply_limit(LimitError(f"it is longer than max_bytes={limits.max_bytes}")))
                await self._pass(work.pass_on(self._unless_failed(reader.feed(piece))))
                if reader.is_over:
                    break
            await self._pass(work.pass_on(self._unless_failed(reader.finish())))
        finally:
            reader.close()
            self._record.reply.add(*count_entries(reader.report.entries))
        return self._internal(exchange, reader.provider_reply, reader.reply)

    @staticmethod
    def _unless_failed(events: list[Event]) -> list[Event]:
        for event in events:
            if isinstance(event, Failed):
                raise ProviderError(event.failure)
        return events

    def _internal(self, exchange: UpstreamReply, original: Reply, reply: Reply) -> Turn:
        """The model's turn as its provider wants it back."""
        issuer = exchange.upstream.issuer(exchange.out.model, exchange.out.target.name)
        return with_opaque(original.turn, reply.turn, issuer)

    @property
    def _sending(self) -> Sender:
        assert self._sender is not None  # noqa: S101 - the request is not over
        return self._sender

    @property
    def _reply_id(self) -> str:
        return self._sending.reply_id()

    # --- to the client ------------------------------------------------------------------------------

    def _open_encoder(self, exchange: UpstreamReply, reader: StreamReader) -> None:
        if self._encoder is not None:
            return
        stream = codec(self._endpoint.protocol).stream
        options = stream_options(exchange.out, int(time.time()), reader.target)
        options = replace(options, clock=lambda: int(time.time()), settings=self._fields)
        self._encoder = stream.Encoder(options)
        new_frames = stream.array_writer if self._endpoint.is_array else None
        if self._endpoint.error_protocol:
            new_frames = stream.host_writer
        self._frames = new_frames() if new_frames is not None else None
        ping = self._encoder.ping if self._frames is None else bytes
        self._pings = KeepAlive(ping, self._write, self._services.config.gateway.ping_seconds)

    async def _pass(self, events: list[Event]) -> None:
        """Take events for the client, and write them if it reads a stream."""
        self._sent.add(events)
        if self._encoder is None:
            return
        data = self._encoder.write(events)
        if data:
            if self._pings is not None:
                self._pings.reset()
            if not self._record.times.sent:
                self._record.times.send()
            await self._write(data if self._frames is None else self._frames.add(data))

    async def _write(self, data: bytes) -> None:
        if not self._record.response.status:
            self._record.response.begin(200)
            own = get(self._endpoint.protocol).stream_type
            kind = {"content-type": own if self._frames is None else self._frames.CONTENT_TYPE, **_UNBUFFERED}
            await self._request.channel.begin(200, kind | self._headers)
        await self._request.channel.write(data)

    @property
    def _headers(self) -> dict[str, str]:
        exchange = self._exchange
        assert exchange is not None  # noqa: S101 - the reply came from it
        return self._sending.headers(exchange.out, exchange.response)

    async def _send_end(self, last: list[Event]) -> None:
        self._sent.add(last)
        data = self._encoder.write(last)
        await self._store(getattr(self._encoder, "final_body", None), is_stream=True)
        self._record.response.complete()
        await self._end(data)

    async def _fail_stream(self, failure: Failure) -> None:
        """End a stream that has begun with an error of its protocol."""
        secrets = self._services.secrets
        self._record.response.fail(secrets.mask(f"{failure.kind}: {failure.message}"))
        await self._end(secrets.mask_bytes(self._encoder.write([Failed(failure)])))

    async def _end(self, data: bytes) -> None:
        frames = self._frames
        await self._write(data if frames is None else frames.add(data) + frames.end())
        await self._request.channel.end()

    async def _send_reply(self, last: list[Event]) -> None:
        self._sent.add(last)
        body = codec(self._endpoint.protocol).reply.encode(self._sent.reply)
        now = int(time.time())
        body = {**body, **{name: now for name in ("created", "created_at", "completed_at") if body.get(name) == 0}}
        if self._endpoint.source == RESPONSES:
            body = with_request(self._fields, body)
        body = await self._store(body, is_stream=False) or body
        self._record.response.complete(200)
        self._record.times.send()
        await self._request.channel.respond(200, self._headers, msgspec.json.encode(body))

    async def _store(self, body: Fields | None, *, is_stream: bool) -> Fields | None:
        exchange, reply = self._exchange, self._sent.reply
        assert exchange is not None  # noqa: S101 - the reply came from it
        self._record.reply.end(reply.stop or "", exchange.out.model)
        return await self._sending.store_reply(exchange, reply, body, is_stream=is_stream)

"""Serves what a request wants to be done to its context: summaries by the model, and replies that are nothing else.

    compactor = Compactor(services, endpoint, request, record, call, sender)
    if await compactor.serve(received, upstream, model, entries): …   # the client has its reply
    … call the upstream as usual: `call.edit` does the rest

The path that does nothing but compact is served here too: by the provider if it has it, otherwise by the model.
Laws: what a summary costs is counted and limited like every other call. A summary is stored before the client gets it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from toolglot.conversation import Failure, Reply, Usage
from toolglot.conversation.context_requests import CompactionRequest, ContextRequest
from toolglot.conversation.events import Failed
from toolglot.conversation.plausible_usage import COUNTS, plausible_usage
from toolglot.conversation.reply_events import of_reply
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.endpoints.upstream_body import read_upstream_body
from toolglot.gateway.http.keep_alive import KeepAlive
from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.routing.compaction import ContextWork, context_work, is_native, summary_entry
from toolglot.gateway.routing.upstream_call import UpstreamCall, UpstreamReply
from toolglot.gateway.services import Services
from toolglot.gateway.state.response_items import with_request
from toolglot.protocols.base import ArrayWriter, StreamOptions, codec, get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.render.turn_facts import PROMPTS
from toolglot.store import StoreError
from toolglot.translate.replies import convert_reply
from toolglot.translate.requests import ConvertedRequest, ReceivedRequest
from toolglot.upstream import HttpResponse, Upstream
from toolglot.upstream.protocol_choice import RESPONSES

Fields = dict[str, Any]
_UNBUFFERED: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_NOW: Final = ContextRequest(CompactionRequest(stops_after=True))


class Sender(Protocol):
    """What the request to a model provides."""

    def reply_id(self) -> str: ...
    def headers(self, out: ConvertedRequest, response: HttpResponse) -> dict[str, str]: ...
    async def store_reply(
        self, exchange: UpstreamReply, reply: Reply, body: Fields | None, *, is_stream: bool
    ) -> Fields | None:
        """Show a reply to middleware, and store it if its client wants that. Returns it as the client gets it."""
        ...


class Compactor:
    """What one request wants to be done to its context."""

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
        self._form = codec(endpoint.protocol).context
        self._work: ContextWork | None = None
        self._exchange: UpstreamReply | None = None
        self._frames: ArrayWriter | None = None
        """Frames the events of a stream, for a client of a cloud that hosts the protocol."""

    def close(self) -> None:
        """The request is over: it and its sender must not keep each other in memory."""
        self._sender = None

    @property
    def _sending(self) -> Sender:
        assert self._sender is not None  # noqa: S101 - the request is not over
        return self._sender

    async def serve(self, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]) -> bool:
        """Do what the request wants, before its upstream is called. Returns whether the client has its reply."""
        call, self._call.edit, self._call.path = self._call, None, ""
        if self._form is None:
            return False
        await self.restore()
        conversation = call.original
        target = call.profile(call.target(upstream, conversation), model)
        if self._endpoint.action == "compact":
            await self._serve_compact(received, upstream, model, entries, is_native=is_native(call.source, target))
            return True
        before, self._work = self._work, context_work(conversation, call.source, target)
        work = self._work
        if work is None:
            return False
        if before is not None:
            work.take_over(before)
        if await work.is_due(conversation, model):
            if work.stops_after:
                await self._send_alone(work, received, upstream, model, entries)
                return True
            await self._summarise_if_possible(work, received, upstream, model, entries)
        call.edit = work.continuing
        return False

    async def restore(self) -> None:
        """Put the summaries back that the client cannot show."""
        if self._form is not None:
            restore = self._services.summaries.restore
            self._call.original = await restore(self._request.client, self._call.original)

    @property
    def has_summarised(self) -> bool:
        """Whether the model was called for a summary besides the reply."""
        return self._work is not None and self._work.block is not None

    def total(self, usage: Usage) -> Usage:
        """The tokens of all calls for this request, of which the last one took these."""
        work = self._work
        if work is None or work.block is None or work.counts_all:
            return usage
        counts = {name: _sum(getattr(usage, name), getattr(work.summarised, name)) for name in COUNTS}
        return replace(usage, **counts)

    # --- the summary --------------------------------------------------------------------------------

    async def _summarise_if_possible(
        self, work: ContextWork, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]
    ) -> None:
        """Summarise above a threshold. If the model writes no summary, the request goes on without one."""
        try:
            await self._summarise(work, received, upstream, model, entries)
        except ProviderError as error:
            if error.failure.kind != "bad_output":
                raise
            work.note_failure(error.failure.message)

    async def _summarise(
        self, work: ContextWork, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]
    ) -> None:
        if not any(turn.role not in PROMPTS for turn in self._call.original.turns):
            raise refusal("bad_request", "there is no message to summarise: send the conversation", 400)
        self._call.edit = work.summarising
        exchange = await self._call.call(received, upstream, model, entries)

        async def read(exchange: UpstreamReply) -> Failure | None:
            await self._read_summary(work, exchange)
            return None

        await self._call.use(exchange, read)
        self._exchange = exchange

    async def _read_summary(self, work: ContextWork, exchange: UpstreamReply) -> None:
        limits, out = self._services.reply_limits, exchange.out
        data = await self._read(exchange)
        reply = convert_reply(
            data,
            source=out.target.name,
            target=self._endpoint.source,
            request=out,
            policy=self._call.policy,
            overrides=self._services.config.overrides,
            limits=limits,
        ).reply
        self._record.times.receive_reply()
        usage = plausible_usage(reply.usage) or Usage()
        self._record.reply.count(_counts(usage))  # also if there is no summary in it
        summary = work.summary_of(reply, self._call.original)
        id = self._record.id.removeprefix("tg_")
        work.take(summary, await self._keep(summary, id), f"cmp_{id}", usage)

    async def _keep(self, summary: str, id: str) -> str:
        """Keep a summary for a client that cannot show it. Returns the mark that stands for it."""
        summaries = self._services.summaries
        if self._form is not None and self._form.shows_summary:
            return summaries.mark_of(id)
        try:
            return await summaries.keep(self._request.client, summary, id)
        except StoreError as error:  # it is in memory
            self._record.response.store_failed(f"a summary was not stored: {error}")
            return summaries.mark_of(id)

    async def _read(self, exchange: UpstreamReply) -> bytes:
        max_bytes = self._services.reply_limits.max_bytes
        return await read_upstream_body(exchange.response, exchange.upstream.name, max_bytes, self._request.hold)

    # --- a reply that is the summary ----------------------------------------------------------------

    async def _send_alone(
        self, work: ContextWork, received: ReceivedRequest, upstream: Upstream, model: str, entries: Sequence[Entry]
    ) -> None:
        if not received.conversation.options.stream:
            await self._summarise(work, received, upstream, model, entries)
            reply, exchange = self._reply(work)
            body = codec(self._endpoint.protocol).reply.encode(reply)
            undated = [name for name in ("created_at", "completed_at") if body.get(name) == 0]
            body = {**body, **dict.fromkeys(undated, int(time.time()))}
            if self._endpoint.source == RESPONSES:
                body = with_request(received.fields, body)
            sent = await self._sending.store_reply(exchange, reply, body, is_stream=False)
            await self._respond(sent or body, self._sending.headers(exchange.out, exchange.response))
            return
        stream = codec(self._endpoint.protocol).stream
        options = StreamOptions(
            created=int(time.time()),
            clock=lambda: int(time.time()),
            model=received.conversation.model,
            settings=received.fields,
        )
        encoder = stream.Encoder(options)
        if self._endpoint.error_protocol and stream.host_writer is not None:
            self._frames = stream.host_writer()
        ping = encoder.ping if self._frames is None else bytes
        pings = KeepAlive(ping, self._write, self._services.config.gateway.ping_seconds)
        try:
            await self._summarise(work, received, upstream, model, entries)
        except ProviderError as error:
            if not self._record.response.status:
                raise
            self._record.response.fail(self._services.secrets.mask(f"{error.failure.kind}: {error.failure.message}"))
            await self._end(self._services.secrets.mask_bytes(encoder.write([Failed(error.failure)])))
            return
        finally:
            pings.end()
        reply, exchange = self._reply(work)
        data = encoder.write([*of_reply(reply)])
        await self._sending.store_reply(exchange, reply, getattr(encoder, "final_body", None), is_stream=True)
        self._record.times.send()
        self._record.response.complete()
        await self._end(data, self._sending.headers(exchange.out, exchange.response))

    def _reply(self, work: ContextWork) -> tuple[Reply, UpstreamReply]:
        exchange = self._exchange
        assert exchange is not None  # noqa: S101 - the summary came from it
        reply = work.reply(self._sending.reply_id(), self._call.original.model)
        self._record.reply.end(reply.stop or "", exchange.out.model)
        self._record.reply.add(summary_entry(exchange.out.target.name, work.summarised))
        return reply, exchange

    async def _write(self, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        if not self._record.response.status:
            self._record.response.begin(200)
            own_type = get(self._endpoint.protocol).stream_type
            kind = {"content-type": own_type if self._frames is None else self._frames.CONTENT_TYPE, **_UNBUFFERED}
            own = headers or {"x-toolglot-request": self._record.id}
            await self._request.channel.begin(200, {**kind, **own})
        await self._request.channel.write(data)

    async def _end(self, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        frames = self._frames
        await self._write(data if frames is None else frames.add(data) + frames.end(), headers)
        await self._request.channel.end()

    async def _respond(self, body: Fields, headers: dict[str, str]) -> None:
        self._record.response.complete(200)
        self._record.times.send()
        await self._request.channel.respond(200, headers, msgspec.json.encode(body))

    # --- the path that does nothing else ------------------------------------------------------------

    async def _serve_compact(
        self,
        received: ReceivedRequest,
        upstream: Upstream,
        model: str,
        entries: Sequence[Entry],
        *,
        is_native: bool,
    ) -> None:
        form, call = self._form, self._call
        assert form is not None  # noqa: S101 - the caller has it
        if is_native:
            call.path = form.compact_path
            await call.use(await call.call(received, upstream, model, entries), self._forward)
            return
        target = call.profile(call.target(upstream, call.original), model)
        self._work = work = ContextWork(_NOW, form, call.source, target)
        await self._summarise(work, received, upstream, model, entries)
        reply, exchange = self._reply(work)
        usage = codec(self._endpoint.protocol).reply.encode(reply).get("usage") or {}
        make = form.compacted_body
        if make is None or work.block is None:
            raise InputError("this protocol has no path that only compacts", path="path")
        body = make(
            received.fields, work.block, usage, id=self._record.id.removeprefix("tg_"), created=int(time.time())
        )
        await self._respond(body, self._sending.headers(exchange.out, exchange.response))

    async def _forward(self, exchange: UpstreamReply) -> Failure | None:
        """The provider's own reply, as it came."""
        data = await self._read(exchange)
        self._record.times.receive_reply()
        try:
            body = msgspec.json.decode(data, type=Fields)
            found = codec(self._endpoint.protocol).reply.decode(
                {"id": "", "model": "", "output": [], **_usage_of(body)}
            )
        except (msgspec.MsgspecError, InputError, RecursionError):
            reason = "the provider's reply cannot be read: it is not a compacted conversation"
            raise ProviderError(Failure("bad_output", reason, in_band=True)) from None
        self._record.reply.count(_counts(plausible_usage(found.usage)))
        self._record.reply.end("stop", exchange.out.model)
        self._record.response.complete(200)
        self._record.times.send()
        await self._request.channel.respond(200, self._sending.headers(exchange.out, exchange.response), data)
        return None


def _usage_of(body: Fields) -> Fields:
    return {"usage": body["usage"]} if "usage" in body else {}


def _counts(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {name: count for name in COUNTS if (count := getattr(usage, name)) is not None}


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)

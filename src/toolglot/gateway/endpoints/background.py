"""Responses that run in the background (`background: true`), for every upstream.

    queued ── the upstream begins ──▶ in_progress ──▶ completed, incomplete, failed or cancelled

The request is run again as one of its own (`Gateway.serve`), whose client is a `BackgroundRun`: it collects the events
of the stream. Clients poll the response, or follow its stream from any event on, as often as they like.

Laws: a client that disconnects ends nothing. The response is in the store before its client gets its id, and its end is
there before it is forgotten here. Events that are held count against `max_bytes_in_flight`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from toolglot.conversation.events import Started
from toolglot.gateway.endpoints import response_errors
from toolglot.gateway.endpoints.background_run import BackgroundRun, NumberedEvent, read_number
from toolglot.gateway.endpoints.body_fields import replace_fields
from toolglot.gateway.endpoints.socket_response import whole_reply_events
from toolglot.gateway.http.requests import ClientRequest
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.state.background_store import BEAT_SECONDS, BackgroundStore, StoredRun
from toolglot.gateway.state.response_items import complete_response, page, with_listed_ids
from toolglot.gateway.state.stored_responses import StoredResponses
from toolglot.protocols.base import StreamOptions, codec
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.store import StoreError

Fields = dict[str, Any]
Serve = Callable[[ClientRequest], Awaitable[None]]

POLL_SECONDS: Final = 1.0
"""Between two looks at a response that another process runs."""
_PING: Final = b": ping\n\n"


class BackgroundRuns:
    """All responses that run in the background here, and those that ran."""

    def __init__(
        self, store: BackgroundStore, responses: StoredResponses, serve: Serve, notice: Callable[[str], None]
    ) -> None:
        self._store = store
        self._responses = responses
        self._serve = serve
        self._notice = notice
        self._runs: dict[tuple[str, str], BackgroundRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """End those that still run, and wait until the end of each is stored."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- beginning ----------------------------------------------------------------------------------

    async def respond(
        self,
        request: ClientRequest,
        record: RequestRecord,
        fields: Fields,
        *,
        protocol: str,
        is_native: bool,
        ping_seconds: float,
    ) -> None:
        """Begin a response, and reply with it as it is now, or with its stream."""
        run = await self._begin(request, fields, protocol, record.request.model, is_native=is_native)
        if run.error is not None and not run.is_accepted:
            status, headers, data = run.error
            record.response.complete(status)
            await request.channel.respond(status, {**headers, "x-toolglot-request": record.id}, data)
        elif fields.get("stream") is True:
            await self.stream(request, record, run.id, ping_seconds=ping_seconds)
        else:
            record.response.complete(200)
            await request.channel.respond(200, {"x-toolglot-request": record.id}, json_bytes(run.first))

    async def _begin(
        self, request: ClientRequest, fields: Fields, protocol: str, model: str, *, is_native: bool
    ) -> BackgroundRun:
        """Begin a response. An upstream of the same protocol makes its id, so its first event is waited for."""
        if fields.get("store") is False:
            raise response_errors.invalid("background", "Background mode requires store to be true.")
        if not self._store.is_on:
            message = "Background mode needs the gateway's store, which is off (store in [gateway])."
            raise response_errors.invalid("background", message)
        again = ClientRequest(
            request.channel,
            *(request.method, request.path, request.raw_path, request.raw_query),
            {name: value for name, value in request.headers.items() if name not in _BODY_HEADERS},
            request.header_bytes,
        )
        again.is_background = True
        id = f"resp_{again.id.removeprefix('tg_')}"
        # The upstream of the same protocol may do the same; others do not know it.
        body = replace_fields(request.body, {"stream": b"true", "background": b"true" if is_native else None})
        run = BackgroundRun(request.client, fields, first_response(protocol, id, model, fields), body)
        again.channel = run
        if not is_native:
            await self._keep(run)
        run.task = asyncio.create_task(self._run(run, again))
        self._tasks.add(run.task)
        run.task.add_done_callback(self._tasks.discard)
        if is_native:
            await run.has_begun()
            if run.events:
                await self._keep(run)
        return run

    async def _run(self, run: BackgroundRun, request: ClientRequest) -> None:
        beats: asyncio.Task[None] | None = None
        try:
            beats = asyncio.create_task(self._beat(run))
            await self._serve(request)
        finally:
            if beats is not None:
                beats.cancel()
            run.close()
            if run.is_accepted:
                await self._end(run)
            self._runs.pop((run.client, run.id), None)

    async def _end(self, run: BackgroundRun) -> None:
        try:
            await self._store.keep_events(run.client, run.id, [event.data for event in run.events])
            is_stored = await self._responses.find(run.client, run.id) is not None
            await self._store.keep(run.client, {**run.body, "output": []} if is_stored else run.body, run.items)
        except StoreError as error:
            self._notice(f"the end of a background response was not stored: {error}")

    async def _keep(self, run: BackgroundRun) -> None:
        """Let clients find it, here and in other processes."""
        await self._store.keep(run.client, run.body, run.items)
        run.is_accepted = True
        self._runs[run.client, run.id] = run

    async def _beat(self, run: BackgroundRun) -> None:
        """Say again and again that it is alive, and see whether it was cancelled elsewhere."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                if run.is_accepted:
                    if await self._store.is_stopped(run.client, run.id):
                        run.cancel()
                    await self._store.keep(run.client, run.body, run.items)
            except StoreError:  # the next one may work
                continue

    # --- endpoints ----------------------------------------------------------------------------------

    async def serve(self, client: str, action: str, method: str, id: str, query: Mapping[str, str]) -> Fields | None:
        """The body for an endpoint of a response; None: it is not one of a background response, or is stored as any."""
        live = self._runs.get((client, id))
        run = StoredRun(live.body, live.items) if live is not None else await self._store.find(client, id)
        if run is None:
            return None
        if action == "cancel":
            return await self._cancel(client, run, live)
        if method == "DELETE":
            return await self._delete(client, id, live)
        if await self._responses.find(client, id) is not None:
            return None
        if action == "input_items":
            return page(with_listed_ids(run.input, f"{id.removeprefix('resp_')}_in"), query)
        return run.body

    async def _cancel(self, client: str, run: StoredRun, live: BackgroundRun | None) -> Fields:
        if run.is_over:
            if run.body.get("status") == "cancelled":
                return run.body
            raise response_errors.not_cancelled(run.body)
        if live is not None:
            live.cancel()
            return live.body
        body = {**run.body, "status": "cancelled"}
        await self._store.stop(client, str(body["id"]))
        await self._store.keep(client, body, run.input)
        return body

    async def _delete(self, client: str, id: str, live: BackgroundRun | None) -> Fields:
        if live is not None:
            live.cancel()
            await live.wait()
        await self._store.remove(client, id)
        await self._responses.remove(client, id)
        return {"id": id, "object": "response", "deleted": True}

    # --- streams ------------------------------------------------------------------------------------

    async def stream(
        self, request: ClientRequest, record: RequestRecord, id: str, *, after: int = -1, ping_seconds: float = 0
    ) -> None:
        """Send the stream of a response, from behind an event on."""
        live = self._runs.get((request.client, id))
        if live is None and await self._store.find(request.client, id) is None:
            if await self._responses.find(request.client, id) is None:
                raise response_errors.missing_response(id)
            raise response_errors.not_streamed()
        channel = request.channel
        record.response.begin(200)
        kind = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
        await channel.begin(200, {**kind, "x-toolglot-request": record.id})
        pings = ping_seconds or None
        events = live.follow(pings) if live is not None else self._stored_events(request.client, id)
        async for event in events:
            if event is None:
                await channel.write(_PING)
            elif event.number > after:
                await channel.write(b"event: %b\ndata: %b\n\n" % (event.kind.encode(), event.data))
        record.response.complete()
        await channel.end()

    async def _stored_events(self, client: str, id: str) -> AsyncIterator[NumberedEvent | None]:
        """The events of a response that does not run here, once it is over."""
        while (run := await self._store.find(client, id)) is not None and not run.is_over:
            yield None
            await asyncio.sleep(POLL_SECONDS)
        events = await self._store.events(client, id)
        if not events and run is not None and run.body.get("status") != "cancelled":
            whole = await self._responses.find(client, id) or run.body
            events = [*whole_reply_events(json_bytes(whole))]
        for data in events:
            event = read_number(data)
            if event is not None:
                yield event


_BODY_HEADERS: Final = frozenset({"content-length", "content-encoding", "transfer-encoding", "expect"})


def first_response(protocol: str, id: str, model: str, fields: Fields) -> Fields:
    """A response of which nothing has come."""
    encoder = codec(protocol).stream.Encoder(StreamOptions(created=int(time.time()), model=model, settings=fields))
    text = encoder.write([Started(id, model)]).partition(b"data: ")[2].partition(b"\n")[0]
    response: Fields = msgspec.json.decode(text)["response"]
    return {**complete_response(fields, response), "status": "queued", "background": True}

"""The Responses protocol over a WebSocket, for every upstream: `GET /v1/responses` with an upgrade.

    lanes     each runs its responses one after the other; all lanes together at most MAX_IN_FLIGHT at once
    memory    the latest response of each lane, so that `previous_response_id` works with `store: false` too

Each `response.create` is served as the POST request that it is (`Gateway.serve`), with its own check of the key, its
own line in the log, its own report.

Laws: what waits is bounded in number and in bytes; then the client is not read. A client that is gone ends what was
begun for it. While the gateway stops, what runs goes on, nothing new begins, and the socket closes after the last
response. A socket lasts `websocket_minutes`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.gateway.config.settings import GatewaySettings
from toolglot.gateway.endpoints.socket_events import (
    DEFAULT_LANE,
    MAX_STREAM_IDS,
    CreateEvent,
    FinalResponse,
    SocketError,
    error_event,
    read_event,
    successor,
    too_many_lanes,
    too_old,
    with_steers,
)
from toolglot.gateway.endpoints.socket_response import SocketResponse
from toolglot.gateway.endpoints.steering import MAX_STEERS, SteerEvent, needs_input, new_steer_id
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http import offloading
from toolglot.gateway.http.body_budget import BodyBudget, BodyShare
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal
from toolglot.gateway.http.web_sockets import GOING_AWAY, NORMAL, WebSocket
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.state.socket_memory import ConnectionMemory, RememberedResponse, SocketMemory

MAX_IN_FLIGHT: Final = 16
"""Responses that run at the same time on one socket."""
MAX_WAITING: Final = 64
"""Requests that wait behind them."""
MAX_EVENT_BYTES: Final = 256 * 1024 * 1024
"""The stream writer has its own, lower limits."""
_HANDSHAKE_ONLY: Final = frozenset({"connection", "upgrade", "content-length", "transfer-encoding"})
_BETA: Final = "responses_websockets="


class ResponseSockets:
    """All WebSockets of a gateway."""

    def __init__(self, settings: Callable[[], GatewaySettings], budget: BodyBudget) -> None:
        self._settings = settings
        self._budget = budget
        self._memory = SocketMemory(lambda: settings().websocket_memory_bytes)
        self._open: set[ResponseSocket] = set()

    async def open(self, endpoint: GatewayEndpoint, request: ClientRequest, record: RequestRecord) -> bool:
        """Whether a request is a handshake that is accepted: then its socket is to be run when the request is over."""
        settings, accept = self._settings(), request.accept_socket
        if accept is None or not endpoint.has_socket or request.method != "GET" or not settings.websocket_minutes:
            return False
        request.socket = await accept({"x-toolglot-request": record.id}, settings.max_body_bytes)
        record.response.complete(101)
        return True

    async def run(
        self, socket: WebSocket, handshake: ClientRequest, serve: Callable[[ClientRequest], Awaitable[None]]
    ) -> None:
        """Serve a socket until either side closes it."""
        memory, minutes = self._memory.connection(), self._settings().websocket_minutes
        running = ResponseSocket(socket, handshake, serve, memory=memory, share=self._budget.share(), minutes=minutes)
        self._open.add(running)
        try:
            await running.run()
        finally:
            self._open.discard(running)

    def drain(self) -> None:
        """The gateway stops."""
        for socket in [*self._open]:
            socket.drain()


class _Lane:
    """The responses of one `stream_id`."""

    __slots__ = ("has_conversation", "name", "pending", "running", "task", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[CreateEvent] = deque()
        self.running: SocketResponse | None = None
        self.task: asyncio.Task[None] | None = None
        self.has_conversation = False
        """What runs is of a conversation."""
        self.pending: tuple[str, list[SteerEvent]] = ("", [])
        """What was steered into a response that waits for results, and its id."""

    def steers(self, id: str) -> bool:
        """Whether this response runs here."""
        return bool(id) and self.running is not None and self.running.id == id


class ResponseSocket:
    """One WebSocket."""

    def __init__(
        self,
        socket: WebSocket,
        handshake: ClientRequest,
        serve: Callable[[ClientRequest], Awaitable[None]],
        *,
        memory: ConnectionMemory,
        share: BodyShare,
        minutes: float,
    ) -> None:
        self._socket = socket
        self._handshake = handshake
        self._serve = serve
        self._memory = memory
        self._share = share
        self._minutes = minutes
        self._headers = _request_headers(handshake.headers)
        self._lanes: dict[str, _Lane] = {}
        self._in_flight = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._waiting = 0
        """Requests that wait or run."""
        self._has_room = asyncio.Event()
        self._is_over = False
        self._is_old = False
        self._is_draining = False
        self._closing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve the socket until either side closes it."""
        timer = asyncio.get_running_loop().call_later(self._minutes * 60, self._expire)
        try:
            while (data := await self._socket.receive()) is not None:
                await self._take(data)
                while self._waiting > MAX_IN_FLIGHT + MAX_WAITING:
                    self._has_room.clear()
                    await self._has_room.wait()
        finally:
            timer.cancel()
            self._is_over = True
            await self._end()

    async def _end(self) -> None:
        """The client is gone: nothing that was begun for it goes on."""
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for lane in self._lanes.values():
            lane.waiting.clear()
            if lane.running is not None:
                lane.running.lose()
            elif lane.task is not None:
                lane.task.cancel()
        if self._closing is not None:
            tasks.append(self._closing)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._memory.close()
        self._share.release()

    # --- its end ------------------------------------------------------------------------------------

    def drain(self) -> None:
        """The gateway stops."""
        self._is_draining = True
        self._close_if_idle()

    def _expire(self) -> None:
        self._is_old = True
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Close it once nothing runs, if it is to be closed."""
        if (self._is_draining or self._is_old) and not self._waiting and not self._is_over and self._closing is None:
            self._closing = asyncio.create_task(self._close())

    async def _close(self) -> None:
        if self._is_draining:
            await self._socket.close(GOING_AWAY, "the gateway is stopping")
            return
        await self._socket.send(too_old(self._minutes).event)
        await self._socket.close(NORMAL, "websocket_connection_limit_reached")

    # --- events of the client -----------------------------------------------------------------------

    async def _take(self, data: bytes) -> None:
        try:
            event = await offloading.run(0, len(data), lambda: read_event(data))
            if isinstance(event, SteerEvent):
                await self._steer(event)
            elif event is not None:
                self._enqueue(event)
        except SocketError as error:
            await self._socket.send(error.event)
        except GatewayRefusal as error:
            failure = error.failure
            shown = {"type": "server_error", "code": failure.code or None, "message": failure.message, "param": None}
            headers = {"retry-after": f"{failure.retry_after:g}"} if failure.retry_after else None
            await self._socket.send(error_event(failure.status or 503, shown, DEFAULT_LANE, headers))

    def _enqueue(self, event: CreateEvent) -> None:
        lane = self._lanes.get(event.lane)
        if self._is_old:
            raise too_old(self._minutes, event.lane)
        if lane is None:
            if event.lane != DEFAULT_LANE and len(self._lanes.keys() - {DEFAULT_LANE}) >= MAX_STREAM_IDS:
                raise too_many_lanes(event.lane)
            lane = self._lanes[event.lane] = _Lane(event.lane)
        self._share.hold(event.size)
        self._waiting += 1
        lane.waiting.append(event)
        if lane.task is None:
            lane.task = asyncio.create_task(self._run_lane(lane))

    # --- steering -----------------------------------------------------------------------------------

    async def _steer(self, event: SteerEvent) -> None:
        """Keep input for a response that runs, or send it back."""
        lane = next((lane for lane in self._lanes.values() if lane.steers(event.previous)), None)
        if event.problem:
            await self._socket.send(event.failed("invalid_input", event.problem))
        elif lane is None or lane.running is None:
            message = f"the response {event.previous[:100]!r} does not run on this WebSocket"
            await self._socket.send(event.failed("response_not_found", message))
        elif lane.running.final is not None:
            await self._socket.send(event.failed("response_already_completed", "the response is complete"))
        elif lane.has_conversation:
            message = "responses of a conversation cannot be steered"
            await self._socket.send(event.failed("steering_not_supported", message))
        elif len(lane.running.steers) >= MAX_STEERS:
            message = f"{MAX_STEERS} inputs wait for this response already"
            await self._socket.send(event.failed("too_many_pending_steers", message))
        else:
            self._share.hold(len(event.items))
            steer = replace(event, id=new_steer_id(), lane=lane.name)
            lane.running.steers.append(steer)
            await self._socket.send(steer.encode("accepted", lane.running.number))

    async def _pass_on_steers(self, lane: _Lane, event: CreateEvent, channel: SocketResponse) -> None:
        """Let what was steered into a response come to its successor, if it can have one."""
        steers, final = channel.steers, channel.final
        if final is None or final.status == "failed":
            self._release(steers)
            for steer in steers:
                await self._socket.send(steer.failed("response_not_active", "the response failed", channel.number))
        elif needs_input(final.items):
            lane.pending = (final.id, steers)
            for steer in steers:
                await self._socket.send(steer.pending(final.items, channel.number))
        else:
            lane.waiting.appendleft(successor(event, final.id, steers))
            self._waiting += 1

    async def _take_pending(self, lane: _Lane, event: CreateEvent) -> CreateEvent:
        """The request with what was steered into the response before it, which waited for results."""
        (id, steers), lane.pending = lane.pending, ("", [])
        self._release(steers)
        if steers and id == event.previous:
            return with_steers(event, steers)
        for steer in steers:
            await self._socket.send(steer.failed("response_not_active", "the lane went on without the response"))
        return event

    def _release(self, steers: Sequence[SteerEvent]) -> None:
        if not self._is_over:
            self._share.release(sum([len(steer.items) for steer in steers]))

    # --- responses ----------------------------------------------------------------------------------

    async def _run_lane(self, lane: _Lane) -> None:
        try:
            while lane.waiting and not self._is_over:
                async with self._in_flight:
                    if not lane.waiting:
                        break
                    try:
                        await self._respond(lane, lane.waiting.popleft())
                    finally:
                        lane.running = None
                        self._waiting -= 1
                        self._has_room.set()
        finally:
            lane.task = None
            self._close_if_idle()

    async def _respond(self, lane: _Lane, event: CreateEvent) -> None:
        """Serve one `response.create`."""
        event = await self._take_pending(lane, event)
        lane.has_conversation = event.has_conversation
        continued = self._memory.find(event.previous) if event.previous else None
        size = event.size

        def release() -> None:
            nonlocal size
            released, size = size, 0
            if not self._is_over:
                self._share.release(released)

        body = event.body(continued)
        channel = SocketResponse(self._socket, lane.name, body, max_event=MAX_EVENT_BYTES, on_read=release)
        del body
        lane.running = channel
        shook = self._handshake
        request = ClientRequest(
            channel, "POST", shook.path, shook.raw_path, shook.raw_query, dict(self._headers), shook.header_bytes
        )
        request.is_warm_up, request.is_on_socket = event.is_warm_up, True
        try:
            await self._serve(request)
        finally:
            release()
        if channel.error_status and continued is not None and continued.lane == lane.name:
            self._memory.forget(continued.id)  # as OpenAI does; a branch of another lane leaves it alone
        self._remember(lane, event, channel.final, continued)
        if channel.error_status:
            for steer in event.steers:
                await self._socket.send(steer.failed("successor_creation_failed", "the successor was refused"))
        if channel.steers and not self._is_over:
            await self._pass_on_steers(lane, event, channel)

    def _remember(
        self, lane: _Lane, event: CreateEvent, final: FinalResponse | None, continued: RememberedResponse | None
    ) -> None:
        """Remember a response that is stored nowhere else."""
        if final is None or final.status == "failed" or self._is_over:
            return
        if final.is_stored and event.wants_stored and not event.is_warm_up:
            self._memory.advance(lane.name)
        else:
            pieces = (event.items, final.items)
            self._memory.remember(lane.name, final.id, continued, pieces, stored_before=event.previous)


def _request_headers(handshake: dict[str, str]) -> dict[str, str]:
    """The headers of the requests of a socket: those of its handshake, without what is about the socket itself."""
    headers = {
        name: value
        for name, value in handshake.items()
        if name not in _HANDSHAKE_ONLY and not name.startswith("sec-websocket-")
    }
    if "openai-beta" in headers:
        words = [word.strip() for word in headers["openai-beta"].split(",")]
        headers["openai-beta"] = ", ".join([word for word in words if not word.startswith(_BETA)])
        if not headers["openai-beta"]:
            del headers["openai-beta"]
    return headers

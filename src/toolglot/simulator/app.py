"""The simulator as an ASGI app: bytes in, bytes out, at the pace that was ordered.

Law: bodies, waiting and what is remembered are bounded; a client that goes away ends its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct

from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS
from toolglot.masking import MASK, SECRET_HEADERS, mask
from toolglot.profiles import Overrides
from toolglot.simulator.answering import Responder, SimulatedOutcome, SimulatedRequest
from toolglot.simulator.providers import PROVIDERS
from toolglot.simulator.replies.faults import Order, read_fault, whole
from toolglot.simulator.scripts.script_reading import ScriptSource, notes_of, script_from

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_RECORDED: Final = 1_000
MOST_RECORDED_BYTES: Final = 64 * 1024 * 1024
MOST_FAULTS: Final = 10_000
LONGEST_UPLOAD: Final = 60.0
"""Seconds that a request may take to arrive."""


class Recorded(Struct, frozen=True, kw_only=True):
    """A request that came, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    """By names in small letters; keys are masked."""
    body: Any
    """The JSON value; None where there is none."""
    provider: str
    model: str
    status: int
    rule: str = ""
    """The id of the provider's rule for which it was refused."""
    error: str = ""
    """The words in which it was refused."""
    fault: str = ""
    """What went wrong on order."""
    answered_by: str = ""
    """Whose answer it got: `rules[1]` or `rules[1].replies[0]` of the script, `default script`; `order` or `x-simulate`
    where a fault on order left nothing of the answer; `refused`; `listing` and `count` for models and tokens."""


Log = Callable[[Recorded, float], None]
"""Told of each request when it is over, and of the seconds that it took."""


class Simulator:
    """All providers in one ASGI app. `overrides` make them other than they are: a variant that a test needs.

    simulator = Simulator({"rules": [{"reply": {"text": "Hello"}}]})     # or the name of a file
    simulator.fault("429,retry_after=2")        # the next request gets it
    simulator.requests[-1].body                 # what came
    simulator.unused()                          # rules and faults that nobody got
    """

    def __init__(
        self,
        script: ScriptSource | None = None,
        *,
        clock: Callable[[], float] = time.time,
        max_bytes: int = DEFAULT_LIMITS.max_bytes,
        log: Log | None = None,
        overrides: Overrides | None = None,
    ) -> None:
        self._clock = clock
        self._overrides = overrides
        self._max_bytes = max_bytes
        self._log = log
        self._first = script_from(script if script is not None else {})
        self._desk = Responder(self._first, clock, overrides)
        self._recorded: deque[tuple[Recorded, int]] = deque()
        self._size = 0

    def use(self, script: ScriptSource | None = None, **fields: Any) -> None:
        """Another script from now on: a value, the name of a file, or its fields by name.

        Faults on order stay on order; what was stored is forgotten.
        """
        if script is not None and fields:
            raise InputError("give a script or its fields, not both", path="script")
        desk = Responder(script_from(script if script is not None else fields), self._clock, self._overrides)
        desk.faults.extend(self._desk.faults)
        self._desk = desk

    def fault(self, order: Order, *, times: int = 1) -> None:
        """What goes wrong with the next requests: `429`, `"reset,after=2"` or `{"kind": "reset", "after": 2}`."""
        fault = read_fault(order)
        count = whole(times, "times", MOST_FAULTS - len(self._desk.faults), 1)
        self._desk.faults.extend([fault] * count)

    def unused(self) -> list[str]:
        """What no request got so far: rules of the script, their replies, faults on order."""
        return self._desk.unused()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is probably not meant so in the script: rules that are never reached."""
        return notes_of(self._desk.script)

    def reset(self) -> None:
        """Back to the first script; no faults, no requests."""
        self._desk = Responder(self._first, self._clock, self._overrides)
        self._recorded.clear()
        self._size = 0

    @property
    def requests(self) -> list[Recorded]:
        """The requests that came, the latest last. Only the last thousand are kept."""
        return [recorded for recorded, _ in self._recorded]

    # --- ASGI ---------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise InputError(f"expected an HTTP request, got {scope['type']!r}", path="scope")
        begun = time.monotonic()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["path"] == "/":
            await _send_whole(send, b"toolglot simulator: " + ", ".join(f"/{name}" for name in PROVIDERS).encode())
            self._tell(_root(scope["method"]), begun)
            return
        try:
            async with asyncio.timeout(LONGEST_UPLOAD):
                body = await _read(receive, self._max_bytes)
        except TimeoutError:
            return
        request = SimulatedRequest(
            method=scope["method"],
            path=scope["path"],
            headers=headers,
            query=dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))),
            body=body,
        )
        outcome = self._desk.answer(request)
        recorded = self._record(request, outcome)
        try:
            await _give(outcome, receive, send)
        finally:
            self._tell(recorded, begun)

    def _tell(self, recorded: Recorded, begun: float) -> None:
        if self._log is not None:
            self._log(recorded, time.monotonic() - begun)

    def _record(self, request: SimulatedRequest, outcome: SimulatedOutcome) -> Recorded:
        size = len(request.body or b"")
        headers = {name: MASK if name in SECRET_HEADERS else mask(value) for name, value in request.headers.items()}
        recorded = Recorded(
            method=request.method,
            path=request.path,
            headers=headers,
            body=outcome.value,
            provider=outcome.provider,
            model=outcome.model,
            status=outcome.status,
            rule=outcome.rule,
            error=outcome.error,
            fault=outcome.fault,
            answered_by=outcome.answered_by,
        )
        self._recorded.append((recorded, size))
        self._size += size
        while len(self._recorded) > MOST_RECORDED or (self._size > MOST_RECORDED_BYTES and len(self._recorded) > 1):
            self._size -= self._recorded.popleft()[1]
        return recorded


def _root(method: str) -> Recorded:
    """A look at the root, which is told but not kept: it is for no provider."""
    return Recorded(
        method=method, path="/", headers={}, body=None, provider="", model="", status=200, answered_by="listing"
    )


async def _read(receive: Receive, most: int) -> bytes | None:
    """The body of a request; None if it is larger than is taken. The rest of it is read and forgotten."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        piece = message.get("body", b"")
        size += len(piece)
        if size <= most:
            pieces.append(piece)
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return b"".join(pieces) if size <= most else None


async def _send_whole(send: Send, data: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})


async def _give(outcome: SimulatedOutcome, receive: Receive, send: Send) -> None:
    """Send an outcome, piece by piece."""
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        if outcome.waits and await _waited(gone, outcome.waits):
            return
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in outcome.headers.items()]
        if outcome.length is not None:
            headers.append((b"content-length", b"%d" % outcome.length))
        await send({"type": "http.response.start", "status": outcome.status, "headers": headers})
        for place, piece in enumerate(outcome.pieces):
            if place and outcome.pace and await _waited(gone, outcome.pace):
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if outcome.breaks:
            raise ConnectionResetError("the connection breaks on order")
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _waited(gone: asyncio.Future[None], seconds: float) -> bool:
    """Wait so long; whether the client went away meanwhile."""
    done, _ = await asyncio.wait({gone}, timeout=seconds)
    return bool(done)

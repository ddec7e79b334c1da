"""The simulator as an ASGI app: bytes in, bytes out, at the pace that the script sets.

Law: bodies, waits and recorded requests are bounded; when a client disconnects, its reply ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct

from toolglot.conversation import Usage
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS
from toolglot.masking import MASK, SECRET_HEADERS, mask
from toolglot.profiles import Overrides
from toolglot.simulator.prompt_cache import PromptCaches
from toolglot.simulator.providers import PROVIDERS
from toolglot.simulator.replies.faults import FaultSpec, integer, read_fault
from toolglot.simulator.responder import Responder, SimulatedOutcome, SimulatedRequest
from toolglot.simulator.scripts.script import Script
from toolglot.simulator.scripts.script_reading import ScriptSource, notes_of, script_from

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_RECORDED: Final = 1_000
MAX_RECORDED_BYTES: Final = 64 * 1024 * 1024
MAX_FAULTS: Final = 10_000
UPLOAD_TIMEOUT: Final = 60.0
"""Seconds that a request may take to arrive."""


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """A request, and how it was answered."""

    method: str
    path: str
    headers: dict[str, str]
    """By lowercase names; keys are masked."""
    body: Any
    """The JSON value; None if there is none."""
    provider: str
    model: str
    status: int
    rule: str = ""
    """The id of the provider's rule for which it was refused."""
    error: str = ""
    """The message of the refusal."""
    fault: str = ""
    """The fault that was injected."""
    answered_by: str = ""
    """Where the reply came from: `rules[1]` or `rules[1].replies[0]` of the script, `default script`; `injected`
    or `x-simulate` if an injected fault left nothing of the reply; `refused`; `listing`, `count` and `embeddings` for
    models, tokens and vectors."""
    usage: Usage | None = None
    """The tokens of the reply, with those that the prompt cache read and wrote; None: there was no reply."""


Log = Callable[[RecordedRequest, float], None]
"""Called with each request when it is over, and the seconds that it took."""


class Simulator:
    """All providers in one ASGI app. `overrides` change their profiles, for a variant that a test needs.

    simulator = Simulator({"rules": [{"reply": {"text": "Hello"}}]})     # or the name of a file
    simulator.fault("429,retry_after=2")        # the next request gets it
    simulator.requests[-1].body                 # the last request
    simulator.unused()                          # rules and faults that no request got
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
        self._caches = PromptCaches()
        self._responder = self._new_responder(self._first)
        self._recorded: deque[tuple[RecordedRequest, int]] = deque()
        self._size = 0

    def use(self, script: ScriptSource | None = None, **fields: Any) -> None:
        """Use another script from now on: a value, the name of a file, or its fields by name.

        Injected faults and prompt caches stay; stored replies are dropped.
        """
        if script is not None and fields:
            raise InputError("expected a script or its fields, not both", path="script")
        responder = self._new_responder(script_from(script if script is not None else fields))
        responder.faults.extend(self._responder.faults)
        self._responder = responder

    def fault(self, spec: FaultSpec, *, times: int = 1) -> None:
        """Inject a fault into the next requests: `429`, `"reset,after=2"` or `{"kind": "reset", "after": 2}`."""
        fault = read_fault(spec)
        count = integer(times, "times", MAX_FAULTS - len(self._responder.faults), 1)
        self._responder.faults.extend([fault] * count)

    def unused(self) -> list[str]:
        """What no request got so far: rules of the script, their replies, injected faults."""
        return self._responder.unused()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is probably a mistake in the script: rules that are never reached."""
        return notes_of(self._responder.script)

    def reset(self) -> None:
        """Go back to the first script, without faults, prompt caches and recorded requests."""
        self._caches = PromptCaches()
        self._responder = self._new_responder(self._first)
        self._recorded.clear()
        self._size = 0

    def _new_responder(self, script: Script) -> Responder:
        return Responder(script, self._clock, self._overrides, self._caches)

    @property
    def requests(self) -> list[RecordedRequest]:
        """The last thousand requests, the latest last."""
        return [recorded for recorded, _ in self._recorded]

    # --- ASGI ---------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise InputError(f"expected an HTTP request, got {scope['type']!r}", path="scope")
        started = time.monotonic()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["path"] == "/":
            await _send_whole(send, b"toolglot simulator: " + ", ".join(f"/{name}" for name in PROVIDERS).encode())
            self._report(_root(scope["method"]), started)
            return
        try:
            async with asyncio.timeout(UPLOAD_TIMEOUT):
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
        outcome = self._responder.answer(request)
        recorded = self._record(request, outcome)
        try:
            await _send_outcome(outcome, receive, send)
        finally:
            self._report(recorded, started)

    def _report(self, recorded: RecordedRequest, started: float) -> None:
        if self._log is not None:
            self._log(recorded, time.monotonic() - started)

    def _record(self, request: SimulatedRequest, outcome: SimulatedOutcome) -> RecordedRequest:
        size = len(request.body or b"")
        headers = {name: MASK if name in SECRET_HEADERS else mask(value) for name, value in request.headers.items()}
        recorded = RecordedRequest(
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
            usage=outcome.usage,
        )
        self._recorded.append((recorded, size))
        self._size += size
        while len(self._recorded) > MAX_RECORDED or (self._size > MAX_RECORDED_BYTES and len(self._recorded) > 1):
            self._size -= self._recorded.popleft()[1]
        return recorded


def _root(method: str) -> RecordedRequest:
    """A request for the root, which is logged but not recorded: it is for no provider."""
    return RecordedRequest(
        method=method, path="/", headers={}, body=None, provider="", model="", status=200, answered_by="listing"
    )


async def _read(receive: Receive, max_bytes: int) -> bytes | None:
    """The body of a request; None if it is larger than the limit. The rest of it is read and dropped."""
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        piece = message.get("body", b"")
        size += len(piece)
        if size <= max_bytes:
            pieces.append(piece)
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return b"".join(pieces) if size <= max_bytes else None


async def _send_whole(send: Send, data: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(data))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": data})


async def _send_outcome(outcome: SimulatedOutcome, receive: Receive, send: Send) -> None:
    """Send an outcome, piece by piece."""
    gone = asyncio.ensure_future(_until_disconnect(receive))
    try:
        if outcome.waits and await _wait(gone, outcome.waits):
            return
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in outcome.headers.items()]
        if outcome.length is not None:
            headers.append((b"content-length", b"%d" % outcome.length))
        await send({"type": "http.response.start", "status": outcome.status, "headers": headers})
        for index, piece in enumerate(outcome.pieces):
            if index and outcome.pace and await _wait(gone, outcome.pace):
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if outcome.breaks:
            raise ConnectionResetError("the connection breaks: an injected fault")
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        gone.cancel()


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait(gone: asyncio.Future[None], seconds: float) -> bool:
    """Wait; whether the client disconnected meanwhile."""
    done, _ = await asyncio.wait({gone}, timeout=seconds)
    return bool(done)

"""The record of one request, from which the log, the metrics, the traces and `/toolglot/requests` are made.

    record = RequestRecord(request.id, "POST", "/v1/messages")
    record.take_route(RecordedRoute("work", "gpt-5.5"))     # parts that are known at once are replaced
    headers = record.begin_call(upstream)                # the others have a method for each thing that happens
    record.response.complete(200)

    request    what the client sent                  Gateway, ModelRequest, EmbeddingCall, PassThrough
    route      the upstream that was chosen          ModelRequest, EmbeddingCall, PassThrough
    sent       what was sent to it, and the changes  UpstreamCall, EmbeddingCall, PassThrough
    calls      each attempt, and how it failed       UpstreamCall, EmbeddingCall, PassThrough, Gateway, ModelRequest
    reply      what the upstream replied             ModelRequest, EmbeddingCall, PassThrough, Meter
    response   what the client got                   Gateway, ModelRequest, EmbeddingCall, PassThrough,
                                                     InformationEndpoints
    times      when all this happened                this file
    captured   the bytes of the reply, both ways     CapturingChannel, ModelRequest; None: they are not kept

Law: a part is written by the classes beside it, and only through its methods. The readers write nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from toolglot.conversation.report import Entry

if TYPE_CHECKING:
    from toolglot.gateway.accounting.cache_losses import CacheLoss
    from toolglot.gateway.inspector.capturing import CapturedReply
    from toolglot.gateway.observability.tracing import Trace
    from toolglot.upstream import Upstream

ENTRY_BYTES: Final = 500
"""About what an entry of a report takes."""
_RECORD_BYTES: Final = 2_000
SIMULATED_HEADER: Final = {"x-toolglot-simulated": "true"}
"""No real model answered."""
DISCONNECTED: Final = "the client disconnected"

_clock: Final = time.perf_counter


class RecordedClientRequest:
    """What the client sent."""

    __slots__ = (
        *("action", "agent", "body", "client", "is_stream", "method", "model", "path", "replay_of", "session"),
        "source",
    )

    def __init__(self, method: str, path: str, *, action: str = "", source: str = "", client: str = "") -> None:
        self.method = method
        self.path = path
        self.action = action
        """What the path is for."""
        self.source = source
        """The target whose protocol the client speaks."""
        self.client = client
        """The client: a hash of its key."""
        self.body = b""
        self.model = ""
        """As the client names it."""
        self.is_stream = False
        self.agent = ""
        """The client program, as it names itself."""
        self.session = ""
        """What the client calls the conversation, if it says so in a header."""
        self.replay_of = ""
        """The request that this one repeats, by its id."""

    def identify(self, agent: str, session: str) -> None:
        """Note the client program, and its session."""
        self.agent, self.session = agent, session

    def repeat(self, id: str) -> None:
        """It repeats another request."""
        self.replay_of = id

    def admit(self, client: str) -> None:
        """The key was accepted."""
        self.client = client

    def name_model(self, model: str, *, is_stream: bool) -> None:
        """Note the model that the body names."""
        self.model, self.is_stream = model, is_stream


class RecordedRoute(Struct, frozen=True):
    """The upstream that was chosen, and the model there."""

    upstream: str = ""
    model: str = ""
    is_simulated: bool = False


class RecordedRendering(Struct, frozen=True):
    """What was sent to the upstream."""

    target: str = ""
    body: bytes = b""
    entries: tuple[Entry, ...] = ()
    """What was changed in the request."""


class RecordedAttempt:
    """One call of an upstream."""

    __slots__ = ("at", "failed_at", "kind", "retry_reason", "upstream")

    def __init__(self, upstream: str, at: float) -> None:
        self.upstream = upstream
        self.at = at
        """When it was called, by the clock of `RecordedTimes`."""
        self.failed_at = 0.0
        """0.0: it did not fail."""
        self.kind = ""
        """The kind of its failure."""
        self.retry_reason = ""
        """Why it was repeated."""


class RecordedCalls:
    """The attempts to get a reply."""

    __slots__ = ("attempts", "count", "failures", "first_at", "last_at", "repeated", "retry_reason")

    def __init__(self) -> None:
        self.attempts: list[RecordedAttempt] = []
        self.count = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.failures: list[tuple[str, str]] = []
        """The upstream and the kind of failure of each attempt that failed."""
        self.repeated: list[str] = []
        """The upstream of each attempt after the first."""
        self.retry_reason = ""
        """Why the last retry was made."""

    def begin(self, upstream: str) -> None:
        self.count += 1
        self.last_at = _clock()
        self.attempts.append(RecordedAttempt(upstream, self.last_at))
        if self.count == 1:
            self.first_at = self.last_at
        else:
            self.repeated.append(upstream)

    def fail(self, upstream: str, kind: str) -> None:
        self.failures.append((upstream, kind))
        if self.attempts and self.attempts[-1].upstream == upstream:
            self.attempts[-1].failed_at, self.attempts[-1].kind = _clock(), kind

    def retry(self, reason: str) -> None:
        self.retry_reason = reason
        if self.attempts:
            self.attempts[-1].retry_reason = reason

    @property
    def last_failure(self) -> str:
        """The kind of the last failure; empty: there was none."""
        return self.failures[-1][1] if self.failures else ""


class RecordedReply:
    """What the upstream replied."""

    __slots__ = ("cache_loss", "cost", "entries", "model", "stop", "usage")

    def __init__(self) -> None:
        self.entries: tuple[Entry, ...] = ()
        """What was changed in the reply."""
        self.usage: Mapping[str, int] | None = None
        """Tokens, by name; None: they are not known."""
        self.cost: int | None = None
        """In billionths of a dollar; None: it is not known."""
        self.cache_loss: CacheLoss | None = None
        """What was cached before, and was read again."""
        self.stop = ""
        """Why the reply ended."""
        self.model = ""
        """As the upstream names it."""

    def end(self, stop: str, model: str) -> None:
        self.stop, self.model = stop, model

    def report(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries

    def add(self, *entries: Entry) -> None:
        self.entries += entries

    def count(self, usage: Mapping[str, int] | None) -> None:
        self.usage = usage

    def price(self, cost: int | None) -> None:
        self.cost = cost

    def lose_cache(self, loss: CacheLoss) -> None:
        """Note and report that cached tokens were read again."""
        self.cache_loss = loss
        self.add(loss.entry)


class RecordedResponse:
    """What the client got: nothing → begun (it has a status) → complete, broken or cut."""

    __slots__ = ("error", "is_broken", "is_complete", "is_cut", "status", "store_errors")

    def __init__(self) -> None:
        self.status = 0
        """0: nothing so far."""
        self.is_complete = False
        """The last bytes are being sent: a client that leaves now has everything."""
        self.is_broken = False
        """It failed after it had begun."""
        self.is_cut = False
        """The gateway stops, and does not wait for its end."""
        self.error = ""
        self.store_errors = 0

    def begin(self, status: int) -> None:
        self.status = status

    def complete(self, status: int = 0) -> None:
        """The last bytes are sent now; with them the first ones, if there is a status."""
        self.status = status or self.status
        self.is_complete = True

    def fail(self, error: str) -> None:
        """Note what is wrong with it, after which there can only be an error."""
        self.error = error
        self.is_broken = bool(self.status)

    def note(self, error: str) -> None:
        """Note a failure that the client does not see."""
        self.error = error

    def store_failed(self, error: str) -> None:
        self.error = error
        self.store_errors += 1

    def disconnect(self) -> None:
        """The client disconnected."""
        self.error = DISCONNECTED

    @property
    def is_good(self) -> bool:
        """Whether a reply was begun, and nothing failed since."""
        return 200 <= self.status < 300 and not self.is_broken

    @property
    def is_gone(self) -> bool:
        return self.error == DISCONNECTED or not self.status

    def cut(self) -> None:
        self.is_cut = True

    def take_cut(self) -> bool:
        """Whether it was cut; once."""
        was_cut, self.is_cut = self.is_cut, False
        return was_cut

    def restart(self) -> None:
        """Another upstream is called, before the client got anything."""
        self.is_broken, self.error = False, ""


class RecordedTimes:
    """When it happened, by a monotonic clock; 0.0: not yet."""

    __slots__ = (
        *("_began", "arrived", "first_byte", "first_piece_at", "on_send", "received", "seconds", "sent"),
        "started_at",
    )

    def __init__(self) -> None:
        self.on_send: Callable[[], None] | None = None
        """Called when the client gets the first of the reply; None: nobody watches."""
        self.started_at: float = time.time()
        """The time of day."""
        self._began = _clock()
        self.seconds = 0.0
        """How long it took."""
        self.arrived = 0.0
        """All of the request was read."""
        self.first_byte: float | None = None
        """Seconds until the first piece of a stream came."""
        self.first_piece_at = 0.0
        """The first piece of a stream came."""
        self.received = 0.0
        """The part of the reply came that gave the client its first output: a piece of a stream, or a whole reply."""
        self.sent = 0.0
        """The first output was sent to the client."""

    def arrive(self) -> None:
        self.arrived = _clock()

    def receive_reply(self) -> None:
        """All of a reply came."""
        self.received = _clock()

    def receive_piece(self) -> None:
        """A piece of a stream came, and the client has nothing of it yet."""
        self.received = _clock()
        if self.first_byte is None:
            self.first_byte, self.first_piece_at = self.received - self._began, self.received

    def send(self) -> None:
        """The client gets the first of the reply now."""
        self.sent = _clock()
        if self.on_send is not None:
            self.on_send()

    def end(self) -> None:
        self.seconds = _clock() - self._began

    @property
    def so_far(self) -> float:
        """Seconds since it began."""
        return _clock() - self._began

    @property
    def began(self) -> float:
        """The request began, by the clock of all these times."""
        return self._began

    def restart(self) -> None:
        """Another upstream is called, before the client got anything."""
        self.first_byte, self.first_piece_at, self.received, self.sent = None, 0.0, 0.0, 0.0


_NO_ROUTE: Final = RecordedRoute()
_NOTHING_SENT: Final = RecordedRendering()


class RequestRecord:
    """One request, from its arrival to its end."""

    __slots__ = (
        *("__weakref__", "_on_change", "_was_unchanged", "calls", "captured", "id", "is_purged", "reply", "request"),
        *("response", "route", "sent", "times", "trace"),
    )

    def __init__(
        self, id: str, method: str, path: str, *, action: str = "", source: str = "", client: str = ""
    ) -> None:
        self.id = id
        self.request = RecordedClientRequest(method, path, action=action, source=source, client=client)
        self.route: RecordedRoute = _NO_ROUTE
        self.sent: RecordedRendering = _NOTHING_SENT
        self.calls = RecordedCalls()
        self.reply = RecordedReply()
        self.response = RecordedResponse()
        self.times = RecordedTimes()
        self.trace: Trace | None = None
        self.captured: CapturedReply | None = None
        """The bytes of the reply; None: they are not kept."""
        self.is_purged = False
        """What is kept was purged while it ran: it is not remembered either."""
        self._was_unchanged = False
        self._on_change: Callable[[RequestRecord], None] | None = None

    def watch(self, on_change: Callable[[RequestRecord], None]) -> None:
        """Call `on_change` when it is routed, and when the client gets the first of the reply."""
        self._on_change = on_change
        self.times.on_send = partial(on_change, self)

    def stop_watching(self) -> None:
        """Watch no more. Otherwise the record would refer to itself, and stay for the garbage collector."""
        self._on_change = self.times.on_send = None

    def take_route(self, route: RecordedRoute) -> None:
        """An upstream was chosen."""
        self.route = route
        if self._on_change is not None:
            self._on_change(self)

    def arrive(self, body: bytes) -> None:
        """All of the request was read."""
        self.request.body = body
        self.times.arrive()

    def begin_call(self, upstream: Upstream) -> dict[str, str]:
        """An upstream is called now. Returns the headers that carry the trace to it."""
        self.calls.begin(upstream.name)
        return self.trace.begin_call(self, upstream) if self.trace is not None else {}

    def restart(self) -> None:
        """The reply of an upstream failed before the client got anything of it, and another upstream is called: nothing
        of the first is reported of the second. The failures stay in `calls`."""
        self.reply = RecordedReply()
        self.response.restart()
        self.times.restart()
        if self.captured is not None:
            self.captured.restart()

    def upstream_headers(self, model: str) -> dict[str, str]:
        """Headers that name the upstream and the model."""
        name = f"{self.route.upstream}/{model}"
        if not self.route.is_simulated:
            return {"x-toolglot-upstream": name}
        return {"x-toolglot-upstream": f"{name} (simulated)", **SIMULATED_HEADER}

    @property
    def added_seconds(self) -> float | None:
        """The seconds that the gateway itself took before it called the upstream, and before the client got the first
        of the reply; None: it did not come so far."""
        times = self.times
        if not times.sent or not times.arrived:
            return None
        return self.calls.first_at - times.arrived + times.sent - times.received

    def drop_bodies(self) -> None:
        """Forget the bodies, and keep the reports."""
        self._was_unchanged = self.is_unchanged
        self.request.body, self.captured = b"", None
        self.sent = RecordedRendering(self.sent.target, b"", self.sent.entries)

    @property
    def is_unchanged(self) -> bool:
        """Whether the upstream was sent what the client sent."""
        return self._was_unchanged or (bool(self.sent.body) and self.sent.body == self.request.body)

    @property
    def size(self) -> int:
        """About the bytes that it takes to remember it."""
        body, sent = self.request.body, self.sent.body
        bodies = len(body) + (len(sent) if sent is not body else 0)
        if self.captured is not None:
            bodies += self.captured.size
        return bodies + ENTRY_BYTES * (len(self.sent.entries) + len(self.reply.entries)) + _RECORD_BYTES

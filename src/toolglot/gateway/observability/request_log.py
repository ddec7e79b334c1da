"""What the gateway tells of each request: a line in the log, a short header, and a page with everything.

Law 10 reaches the people who run it here. Laws: secrets are masked wherever text leaves; what is remembered is bounded
in number and in bytes; one client key sees its own requests only.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import msgspec

from toolglot.conversation.report import GRAVITIES, Entry, Gravity, count_gravities, describe_counts, order_by_gravity
from toolglot.gateway.observability.report_counts import MANY, SHOWN, tally_of
from toolglot.protocols.errors.masking import mask
from toolglot.upstream import Upstream

if TYPE_CHECKING:
    from toolglot.gateway.observability.tracing import Trace

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all bodies and reports that are remembered."""
ENTRY_BYTES: Final = 500
"""About what an entry of a report takes."""
LONGEST_HEADER: Final = 400
QUIET: Final = frozenset({"root", "health", "ready", "metrics"})
"""What is asked every few seconds, and told only where it fails."""
_LONGEST_REMEMBERED: Final = 1_000
_MOST_REMEMBERED: Final = 8

LINES_SECONDS: Final = 0.05
MOST_LINES: Final = 500
"""How long, and how many, lines of the log wait to be written together."""

SIMULATED_HEADER: Final = {"x-toolglot-simulated": "true"}
"""No real model answered."""
GONE: Final = "the client went away"

LogForm = Literal["text", "json", "off"]


class RequestRecord:
    """One request, from its arrival to its end."""

    # What nearly every request has is not written down for each.
    action: str = ""
    """What the address is for."""
    source: str = ""
    model: str = ""
    """As the client asked for it."""
    upstream: str = ""
    target: str = ""
    sent_model: str = ""
    is_simulated: bool = False
    is_stream: bool = False
    status: int = 0
    is_answered: bool = False
    """The last of the answer is being sent: a client that leaves now has everything."""
    seconds: float = 0.0
    first_byte: float | None = None
    arrived: float = 0.0
    """When all of the request was here. This and the next four are by a clock of their own; 0: not yet."""
    asked: float = 0.0
    """When the upstream was asked first."""
    first_heard: float = 0.0
    """When the first piece of a stream came."""
    heard: float = 0.0
    """When that part of its answer came which gave the client something: of a stream a piece, otherwise all."""
    sent: float = 0.0
    """When that was sent to the client."""
    tries: int = 0
    """How often an upstream was asked."""
    asked_last: float = 0.0
    """When the upstream was asked that answered, or was to."""
    is_broken: bool = False
    """It went wrong after the answer had begun."""
    is_cut: bool = False
    """The gateway ends, and does not wait for it."""
    store_errors: int = 0
    error: str = ""
    retried: str = ""
    """Why a second try was made."""
    entries: tuple[Entry, ...] = ()
    """What was changed on the way there."""
    reply_entries: tuple[Entry, ...] = ()
    """What was changed on the way back."""
    usage: Any = None
    stop: str = ""
    """Why the answer ended."""
    reply_model: str = ""
    """As the upstream calls it."""
    request: bytes = b""
    rendered: bytes = b""
    trace: Trace | None = None

    def __init__(self, id: str, client: str, method: str, path: str) -> None:
        self.id = id
        self.client = client
        self.method = method
        self.path = path
        self.begun: float = time.time()
        self._began = time.perf_counter()
        self.failures: list[tuple[str, str]] = []
        """Of each try that failed: the upstream, and the kind of failure."""
        self.repeated: list[str] = []
        """Of each try but the first: the upstream."""

    def asking(self, upstream: Upstream) -> dict[str, str]:
        """An upstream is asked now; headers that it gets for this."""
        self.tries += 1
        self.asked_last = time.perf_counter()
        if self.tries == 1:
            self.asked = self.asked_last
        else:
            self.repeated.append(upstream.name)
        return self.trace.asking(self, upstream) if self.trace is not None else {}

    def start_over(self) -> None:
        """The answer of an upstream failed before the client got anything of it, and another one is asked: nothing of
        the first is told of the second. Who failed stays in `failures`."""
        self.is_broken, self.error = False, ""
        self.reply_entries, self.usage, self.stop, self.reply_model = (), None, "", ""
        self.first_byte, self.first_heard, self.heard, self.sent = None, 0.0, 0.0, 0.0

    def answered_by(self, model: str) -> dict[str, str]:
        """Headers that say who answered."""
        named = f"{self.upstream}/{model}"
        if not self.is_simulated:
            return {"x-toolglot-upstream": named}
        return {"x-toolglot-upstream": f"{named} (simulated)", **SIMULATED_HEADER}

    def hears(self) -> None:
        """Something of the answer came, and the client has nothing of it yet."""
        self.heard = time.perf_counter()
        if self.first_byte is None:
            self.first_byte, self.first_heard = self.heard - self._began, self.heard

    def elapsed(self) -> float:
        """Seconds since it began, wherever the clock of the machine was set to meanwhile."""
        return time.perf_counter() - self._began

    def sends(self) -> None:
        """The client gets the first of the answer now."""
        self.sent = time.perf_counter()

    @property
    def added(self) -> float | None:
        """The seconds that the gateway itself took before the upstream was asked, and before the client got the first
        of what it answered; None: it did not come so far."""
        return self.asked - self.arrived + self.sent - self.heard if self.sent and self.arrived else None

    @property
    def size(self) -> int:
        bodies = len(self.request) + (len(self.rendered) if self.rendered is not self.request else 0)
        return bodies + ENTRY_BYTES * (len(self.entries) + len(self.reply_entries)) + 2_000

    def summary(self) -> dict[str, Any]:
        """What a line of the log says."""
        said = {
            "id": self.id,
            "time": round(self.begun, 3),
            "method": self.method,
            "path": _masked(self.path[:300]),
            "client": self.client[:12],
            "protocol": self.source,
            "model": _masked(self.model[:200]),
            "upstream": self.upstream,
            "target": self.target,
            "sent_model": _masked(self.sent_model[:200]),
            "simulated": self.is_simulated,
            "stream": self.is_stream,
            "status": self.status,
            "seconds": round(self.seconds, 4),
            "first_byte": None if self.first_byte is None else round(self.first_byte, 4),
            "added": None if self.added is None else round(self.added, 6),
            "tries": self.tries if self.tries > 1 else None,
            "stop": self.stop,
            "changes": _gravities(self.entries),
            "reply_changes": _gravities(self.reply_entries),
            "usage": self.usage,
            "retried": mask(self.retried),
            "error": mask(self.error),
            "trace": self.trace.id if self.trace is not None else "",
        }
        return {key: value for key, value in said.items() if value not in ("", None, False, {}) or key == "status"}

    def page(self) -> dict[str, Any]:
        """Everything."""
        return {
            **self.summary(),
            "report": [_told(entry) for entry in order_by_gravity(self.entries)],
            "reply_report": [_told(entry) for entry in order_by_gravity(self.reply_entries)],
            "request": _body(self.request),
            "rendered": _body(self.rendered),
            "unchanged": bool(self.rendered) and self.rendered == self.request,
        }


def _gravities(entries: tuple[Entry, ...]) -> dict[Gravity, int]:
    return tally_of(entries).gravities if len(entries) > MANY else count_gravities(entries)


def _summary(entries: tuple[Entry, ...], replied: tuple[Entry, ...]) -> str:
    """One line of what was changed on both ways."""
    there, back = _gravities(entries), _gravities(replied)
    return describe_counts({gravity: there.get(gravity, 0) + back.get(gravity, 0) for gravity in GRAVITIES})


@lru_cache(maxsize=512)
def _remembered(text: str) -> str:
    return mask(text)


def _masked(text: str) -> str:
    """A text without secrets, for texts that are the same in most requests of a client: looking costs more than all
    the rest that is told of one."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else mask(text)


def header_of(entries: tuple[Entry, ...], replied: tuple[Entry, ...] = (), *, is_same: bool = False) -> str:
    """The short form of a report: how many losses, changes and housekeeping entries, and the gravest in words.

    `replied` is what was done to the answer, as far as it is known when the header is sent.
    """
    if not entries and not replied:
        return "unchanged" if is_same else "translated, nothing was changed"
    is_short = len(entries) + len(replied) <= _MOST_REMEMBERED
    return _remembered_header(entries, replied) if is_short else _header_of(entries, replied)


def _header_of(entries: tuple[Entry, ...], replied: tuple[Entry, ...]) -> str:
    there, back = tally_of(entries), tally_of(replied)
    of_reply = {id(entry) for entry in back.gravest}
    told = order_by_gravity((*there.gravest, *back.gravest))[:SHOWN]
    words = "; ".join(f"in the answer: {entry}" if id(entry) in of_reply else str(entry) for entry in told)
    said = _masked(f"{_summary(entries, replied)}: {words}")
    return said if len(said) <= LONGEST_HEADER else said[: LONGEST_HEADER - 3] + "..."


_remembered_header: Final = lru_cache(maxsize=256)(_header_of)
"""The changes of an agent's requests are the same, one after the other."""


def _told(entry: Entry) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(entry)
    return {**plain, "reason": mask(entry.reason), "text": mask(str(entry))}


def _body(data: bytes) -> Any:
    """A body as JSON with its secrets masked; as text where it is none."""
    if not data:
        return None
    text = mask(data.decode("utf-8", "replace"))
    try:
        return msgspec.json.decode(text.encode())
    except (ValueError, RecursionError):
        return text


class RequestLog:
    """Remembers the last requests, and writes the log."""

    def __init__(self, *, most: int, form: LogForm = "text", stream: TextIO | None = None) -> None:
        self._most = most
        self._form = form
        self._stream = stream
        self._told: OrderedDict[str, RequestRecord] = OrderedDict()
        self._size = 0
        self._lines: list[str] = []
        """Of the log, that are not yet written."""
        self._writing: asyncio.TimerHandle | None = None
        self.worker = 0
        """The number of this process, where several write to one log."""
        self.listeners: list[Callable[[RequestRecord], None]] = []
        self.hide: Callable[[str], str] = str
        """Takes out of a line what the gateway itself knows to be a key."""

    def end(self, told: RequestRecord) -> None:
        """A request is over. One that had nothing to say is not remembered."""
        told.seconds = told.elapsed()
        if self._most and told.request:
            kept = self._told
            kept[told.id] = told
            self._size += told.size
            while len(kept) > self._most or (self._size > MOST_BYTES and len(kept) > 1):
                self._size -= kept.popitem(last=False)[1].size
        for listener in self.listeners:
            listener(told)
        self.log(told)

    def find(self, id: str, client: str | None) -> RequestRecord | None:
        """A request of a client; of any, where none is named."""
        told = self._told.get(id)
        return told if told is not None and client in (None, told.client) else None

    def latest(self, client: str | None, most: int = 100) -> list[RequestRecord]:
        """The requests of a client, the latest first; of all, where none is named."""
        own = [told for told in reversed(self._told.values()) if client in (None, told.client)]
        return own[:most]

    def log(self, told: RequestRecord) -> None:
        if self._form == "off" or (told.action in QUIET and told.status < 400):
            return
        self._write_soon(self._json("request", told.summary()) if self._form == "json" else line_of(told))

    def event(self, name: str, **fields: Any) -> None:
        """Tell programs that read the log of something that is not about one request: it started, it stopped."""
        if self._form == "json":
            masked = {key: mask(value) if isinstance(value, str) else value for key, value in fields.items()}
            self._write(self._json(name, {"time": round(time.time(), 3), **masked}))

    def say(self, text: str, *, event: str = "notice") -> None:
        """Tell who runs the gateway something that is not about one request."""
        if self._form == "json":
            self.event(event, message=text.rstrip())
        else:
            self._write(mask(text))

    def _json(self, event: str, fields: dict[str, Any]) -> str:
        own = {"worker": self.worker} if self.worker else {}
        return msgspec.json.encode({"event": event, **own, **fields}).decode()

    def _write_soon(self, line: str) -> None:
        """Write a line with those of the next moment: to write each for itself costs a tenth of a request."""
        self._lines.append(line)
        if self._writing is not None and len(self._lines) < MOST_LINES:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if self._writing is None:
            self._writing = loop.call_later(LINES_SECONDS, self.flush)
        else:
            self.flush()

    def _write(self, line: str) -> None:
        self._lines.append(line)
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        lines, self._lines = self._lines, []
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if lines:
            stream = self._stream if self._stream is not None else sys.stderr
            stream.write(self.hide("\n".join(lines)) + "\n")
            stream.flush()


def line_of(told: RequestRecord) -> str:
    """A request in one line, for people."""
    way = told.source
    if told.upstream:
        simulated = " (simulated)" if told.is_simulated else ""
        way = f"{told.source} {told.model} → {told.upstream}/{told.sent_model}{simulated}"
    said = f"{_shown(f'{told.status} {told.method} {told.path}  {way}')}  {told.seconds * 1000:.0f} ms"
    if told.entries or told.reply_entries:
        said += "  " + _summary(told.entries, told.reply_entries)
    if told.failures or told.retried or told.error:
        failed = ", ".join(f"{name} failed ({kind})" for name, kind in told.failures) if told.status < 400 else ""
        tail = "  ".join(filter(None, (failed, f"retried: {told.retried}" if told.retried else "", told.error)))
        said += f"  {mask(_printable(tail))}" if tail else ""
    said = said[:600]
    return f"{said}  {told.id}" if told.request else said


def _shown(text: str) -> str:
    """A text as a line may hold it."""
    return _remembered_line(text) if len(text) <= _LONGEST_REMEMBERED else mask(_printable(text))


@lru_cache(maxsize=512)
def _remembered_line(text: str) -> str:
    return mask(_printable(text))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join([char if char.isprintable() else "?" for char in text])

"""What the gateway tells of each request: a line in the log, a short header, and a page with everything.

Law 10 reaches the people who run it here. Laws: secrets are masked wherever text leaves; what is remembered is bounded
in number and in bytes; one client key sees its own requests only.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import msgspec

from toolglot.report import Entry
from toolglot.upstream import Upstream
from toolglot.wire.masking import mask

if TYPE_CHECKING:
    from toolglot.gateway.tracing import Trace

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all bodies that are remembered."""
LONGEST_HEADER: Final = 400
QUIET: Final = frozenset({"root", "health", "ready", "metrics"})
"""What is asked every few seconds, and told only where it fails."""
_LONGEST_REMEMBERED: Final = 1_000

GONE: Final = "the client went away"

LogForm = Literal["text", "json", "off"]


class Told:
    """One request, from its arrival to its end."""

    def __init__(self, id: str, client: str, method: str, path: str) -> None:
        self.id = id
        self.client = client
        self.method = method
        self.path = path
        self.begun = time.time()
        self.action = ""
        """What the address is for."""
        self.source = ""
        self.model = ""
        """As the client asked for it."""
        self.upstream = ""
        self.target = ""
        self.sent_model = ""
        self.is_simulated = False
        self.is_stream = False
        self.status = 0
        self.is_answered = False
        """The last of the answer is being sent: a client that leaves now has everything."""
        self.seconds = 0.0
        self.first_byte: float | None = None
        self.arrived = 0.0
        """When all of the request was here. This and the next four are by a clock of their own; 0: not yet."""
        self.asked = 0.0
        """When the upstream was asked first."""
        self.first_heard = 0.0
        """When the first piece of a stream came."""
        self.heard = 0.0
        """When that part of its answer came which gave the client something: of a stream a piece, otherwise all."""
        self.sent = 0.0
        """When that was sent to the client."""
        self.tries = 0
        """How often an upstream was asked."""
        self.failures: list[tuple[str, str]] = []
        """Of each try that failed: the upstream, and the kind of failure."""
        self.is_broken = False
        """It went wrong after the answer had begun."""
        self.is_cut = False
        """The gateway ends, and does not wait for it."""
        self.store_errors = 0
        self.error = ""
        self.retried = ""
        """Why a second try was made."""
        self.entries: tuple[Entry, ...] = ()
        """What was changed on the way there."""
        self.reply_entries: tuple[Entry, ...] = ()
        """What was changed on the way back."""
        self.usage: Any = None
        self.stop = ""
        """Why the answer ended."""
        self.reply_model = ""
        """As the upstream calls it."""
        self.request = b""
        self.rendered = b""
        self.trace: Trace | None = None

    def asking(self, upstream: Upstream) -> dict[str, str]:
        """An upstream is asked now; headers that it gets for this."""
        self.tries += 1
        if self.tries == 1:
            self.asked = time.perf_counter()
        return self.trace.asking(self, upstream) if self.trace is not None else {}

    def hears(self) -> None:
        """Something of the answer came, and the client has nothing of it yet."""
        self.heard = time.perf_counter()
        if self.first_byte is None:
            self.first_byte, self.first_heard = time.time() - self.begun, self.heard

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
        return len(self.request) + (len(self.rendered) if self.rendered is not self.request else 0) + 2_000

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
            "changes": counts(self.entries),
            "reply_changes": counts(self.reply_entries),
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
            "report": [_told(entry) for entry in self.entries],
            "reply_report": [_told(entry) for entry in self.reply_entries],
            "request": _body(self.request),
            "rendered": _body(self.rendered),
            "unchanged": bool(self.rendered) and self.rendered == self.request,
        }


@lru_cache(maxsize=512)
def _remembered(text: str) -> str:
    return mask(text)


def _masked(text: str) -> str:
    """A text without secrets, for texts that are the same in most requests of a client: looking costs more than all
    the rest that is told of one."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else mask(text)


def counts(entries: tuple[Entry, ...]) -> dict[str, int]:
    """How many changes of which kind."""
    found: dict[str, int] = {}
    for entry in entries:
        found[entry.action] = found.get(entry.action, 0) + 1
    return found


def header_of(entries: tuple[Entry, ...], *, is_same: bool = False) -> str:
    """The short form of a report: how many changes, and the first ones in words."""
    if not entries:
        return "unchanged" if is_same else "translated, nothing was changed"
    tally = ", ".join(f"{count} {action}" for action, count in counts(entries).items())
    words = "; ".join(str(entry) for entry in entries[:3])
    said = _masked(f"{tally}: {words}")
    return said if len(said) <= LONGEST_HEADER else said[: LONGEST_HEADER - 3] + "..."


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


class Teller:
    """Remembers the last requests, and writes the log."""

    def __init__(self, *, most: int, form: LogForm = "text", stream: TextIO | None = None) -> None:
        self._most = most
        self._form = form
        self._stream = stream
        self._told: OrderedDict[str, Told] = OrderedDict()
        self._size = 0
        self.worker = 0
        """The number of this process, where several write to one log."""
        self.listeners: list[Callable[[Told], None]] = []
        self.hide: Callable[[str], str] = str
        """Takes out of a line what the gateway itself knows to be a key."""

    def end(self, told: Told) -> None:
        """A request is over. One that had nothing to say is not remembered."""
        told.seconds = time.time() - told.begun
        if self._most and told.request:
            self._told[told.id] = told
            self._size += told.size
            while len(self._told) > self._most or (self._size > MOST_BYTES and len(self._told) > 1):
                self._size -= self._told.popitem(last=False)[1].size
        for listener in self.listeners:
            listener(told)
        self.log(told)

    def find(self, id: str, client: str | None) -> Told | None:
        """A request of a client; of any, where none is named."""
        told = self._told.get(id)
        return told if told is not None and client in (None, told.client) else None

    def latest(self, client: str | None, most: int = 100) -> list[Told]:
        """The requests of a client, the latest first; of all, where none is named."""
        own = [told for told in reversed(self._told.values()) if client in (None, told.client)]
        return own[:most]

    def log(self, told: Told) -> None:
        if self._form == "off" or (told.action in QUIET and told.status < 400):
            return
        self._write(self._json("request", told.summary()) if self._form == "json" else line_of(told))

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

    def _write(self, line: str) -> None:
        stream = self._stream if self._stream is not None else sys.stderr
        stream.write(self.hide(line) + "\n")
        stream.flush()


def line_of(told: Told) -> str:
    """A request in one line, for people."""
    way = told.source
    if told.upstream:
        simulated = " (simulated)" if told.is_simulated else ""
        way = f"{told.source} {told.model} → {told.upstream}/{told.sent_model}{simulated}"
    changes = ", ".join(f"{count} {action}" for action, count in counts(told.entries + told.reply_entries).items())
    head = _masked(_printable(f"{told.status} {told.method} {told.path}  {way}"))
    failed = ", ".join(f"{name} failed ({kind})" for name, kind in told.failures) if told.status < 400 else ""
    tail = "  ".join(filter(None, (failed, f"retried: {told.retried}" if told.retried else "", told.error)))
    parts = (head, f"{told.seconds * 1000:.0f} ms", changes, mask(_printable(tail)) if tail else "")
    said = "  ".join(filter(None, parts))[:600]
    return f"{said}  {told.id}" if told.request else said


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join([char if char.isprintable() else "?" for char in text])

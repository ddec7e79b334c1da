"""The log of the gateway, and the last requests that it remembers.

It shows operators every change of a request or reply (law 10). Laws: secrets are masked in all text; what is remembered
is limited in number and in bytes; a client key sees its own requests only.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Literal, TextIO

import msgspec

from toolglot.gateway.observability.record_text import log_line, summarize
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask

MAX_BYTES: Final = 16 * 1024 * 1024
"""The bytes of all bodies and reports that are remembered."""
QUIET: Final = frozenset({"root", "health", "ready", "metrics"})
"""Actions that are called every few seconds, and logged only if they fail."""
LINES_SECONDS: Final = 0.05
MAX_LINES: Final = 500
"""How long, and how many, lines of the log wait to be written together."""

LogForm = Literal["text", "json", "off"]


class RequestLog:
    """Remembers the last requests, and writes the log."""

    def __init__(self, *, max_remembered: int, form: LogForm = "text", stream: TextIO | None = None) -> None:
        self._max_remembered = max_remembered
        self._form = form
        self._stream = stream
        self._remembered: OrderedDict[str, RequestRecord] = OrderedDict()
        self._size = 0
        self._lines: list[str] = []
        """Lines that are not written yet."""
        self._writing: asyncio.TimerHandle | None = None
        self.worker = 0
        """The number of this process, if several write to one log."""
        self.listeners: list[Callable[[RequestRecord], None]] = []
        self.mask_secrets: Callable[[str], str] = str
        """Masks the keys that the gateway itself knows."""

    def end(self, record: RequestRecord) -> None:
        """A request is over. One without a body is not remembered."""
        record.times.end()
        if self._max_remembered and record.request.body:
            remembered = self._remembered
            remembered[record.id] = record
            self._size += record.size
            while len(remembered) > self._max_remembered or (self._size > MAX_BYTES and len(remembered) > 1):
                self._size -= remembered.popitem(last=False)[1].size
        for listener in self.listeners:
            listener(record)
        self.log(record)

    def find(self, id: str, client: str | None) -> RequestRecord | None:
        """A request of a client, or of any client."""
        record = self._remembered.get(id)
        return record if record is not None and client in (None, record.request.client) else None

    def latest(self, client: str | None, limit: int = 100) -> list[RequestRecord]:
        """The requests of a client, or of all clients, the latest first."""
        own = [record for record in reversed(self._remembered.values()) if client in (None, record.request.client)]
        return own[:limit]

    def log(self, record: RequestRecord) -> None:
        if self._form == "off" or (record.request.action in QUIET and record.response.status < 400):
            return
        self._write_soon(self._json("request", summarize(record)) if self._form == "json" else log_line(record))

    def event(self, name: str, **fields: Any) -> None:
        """Log an event that is not about one request, such as a start or a stop, for programs that read the log."""
        if self._form == "json":
            masked = {key: mask(value) if isinstance(value, str) else value for key, value in fields.items()}
            self._write(self._json(name, {"time": round(time.time(), 3), **masked}))

    def notice(self, text: str, *, event: str = "notice") -> None:
        """Log a message for the operator that is not about one request."""
        if self._form == "json":
            self.event(event, message=text.rstrip())
        else:
            self._write(mask(text))

    def _json(self, event: str, fields: dict[str, Any]) -> str:
        own = {"worker": self.worker} if self.worker else {}
        return msgspec.json.encode({"event": event, **own, **fields}).decode()

    def _write_soon(self, line: str) -> None:
        """Write a line together with those of the next moment: writing each alone costs a tenth of a request."""
        self._lines.append(line)
        if self._writing is not None and len(self._lines) < MAX_LINES:
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
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if lines:
            stream = self._stream if self._stream is not None else sys.stderr
            stream.write(self.mask_secrets("\n".join(lines)) + "\n")
            stream.flush()

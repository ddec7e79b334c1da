"""The log of the gateway, and the last requests that it remembers.

It shows operators every change of a request or reply (law 10). Laws: secrets are masked in all text; what is remembered
is limited in number, in bytes and in age, also for each client; a client key sees its own requests only.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, Literal, TextIO

import msgspec
from msgspec import Struct

from toolglot.gateway.inspector.settings import InspectorSettings, Kept
from toolglot.gateway.observability.record_text import log_line, summarize
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask

QUIET: Final = frozenset({"root", "health", "ready", "metrics"})
"""Actions that are called every few seconds, and logged only if they fail; those of the inspector are too."""
LINES_SECONDS: Final = 0.05
MAX_LINES: Final = 500
"""How long, and how many, lines of the log wait to be written together."""

LogForm = Literal["text", "json", "off"]


class _Remembered(Struct, frozen=True):
    """A request that is over."""

    record: RequestRecord
    size: int
    ended: float


class RequestLog:
    """Remembers the last requests, and writes the log."""

    def __init__(
        self,
        *,
        max_remembered: int,
        form: LogForm = "text",
        stream: TextIO | None = None,
        inspector: InspectorSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_remembered = max_remembered
        self.inspector: InspectorSettings = inspector or InspectorSettings()
        """How much is remembered."""
        self._clock = clock
        self._form = form
        self._stream = stream
        self._remembered: OrderedDict[str, _Remembered] = OrderedDict()
        """By id, the oldest first."""
        self._size = 0
        self._of_client: dict[str, OrderedDict[str, int]] = {}
        """The ids and sizes of the requests of each client, the oldest first."""
        self._client_sizes: dict[str, int] = {}
        self._lines: list[str] = []
        """Lines that are not written yet."""
        self._writing: asyncio.TimerHandle | None = None
        self.worker = 0
        """The number of this process, if several write to one log."""
        self.listeners: list[Callable[[RequestRecord], None]] = []
        self.on_purge: Callable[[list[str], str | None], None] = lambda _ids, _client: None
        """Called with the requests that were purged, and whose they are; None: of all."""
        self.mask_secrets: Callable[[str], str] = str
        """Masks the keys that the gateway itself knows."""

    def end(self, record: RequestRecord, keep: Kept = "bodies") -> None:
        """A request is over. One without a body is not remembered.

        keep: what is remembered of it.
        """
        record.times.end()
        is_remembered = self._max_remembered and record.request.body and keep != "off" and not record.is_purged
        for listener in self.listeners:
            listener(record)
        self.log(record)
        if record.captured is not None:
            record.captured.end()
        if is_remembered:
            self._remember(record, keep)

    # --- past requests ------------------------------------------------------------------------------

    def _remember(self, record: RequestRecord, keep: Kept) -> None:
        if keep == "reports":
            record.drop_bodies()
        self._drop_old()
        client, size = record.request.client, record.size
        self._forget(record.id)
        self._remembered[record.id] = _Remembered(record, size, self._clock())
        own = self._of_client.setdefault(client, OrderedDict())
        own[record.id] = size
        self._size += size
        self._client_sizes[client] = self._client_sizes.get(client, 0) + size
        max_number, max_bytes = self._max_remembered, self.inspector.max_bytes
        while len(self._of_client) > 1 and len(own) > 1:  # a busy client does not displace the others
            if 2 * len(own) <= max_number and 2 * self._client_sizes[client] <= max_bytes:
                break
            self._forget(next(iter(own)))
        while len(self._remembered) > max_number or (self._size > max_bytes and len(self._remembered) > 1):
            self._forget(next(iter(self._remembered)))

    def _forget(self, id: str) -> None:
        found = self._remembered.pop(id, None)
        if found is None:
            return
        client = found.record.request.client
        own = self._of_client[client]
        del own[id]
        self._size -= found.size
        self._client_sizes[client] -= found.size
        if not own:
            del self._of_client[client], self._client_sizes[client]

    def _drop_old(self) -> None:
        """Forget requests that ended too long ago."""
        since = self._clock() - self.inspector.max_hours * 3600
        while self._remembered:
            id, oldest = next(iter(self._remembered.items()))
            if oldest.ended >= since:
                return
            self._forget(id)

    def purge(self, client: str | None) -> int:
        """Forget the requests of a client, or of all clients. Returns how many there were."""
        ids = [*self._remembered] if client is None else [*self._of_client.get(client, ())]
        for id in ids:
            self._forget(id)
        self.on_purge(ids, client)
        return len(ids)

    def find(self, id: str, client: str | None) -> RequestRecord | None:
        """A request of a client, or of any client."""
        self._drop_old()
        found = self._remembered.get(id)
        return found.record if found is not None and client in (None, found.record.request.client) else None

    def latest(self, client: str | None, limit: int = 100) -> list[RequestRecord]:
        """The requests of a client, or of all clients, the latest first."""
        self._drop_old()
        ids = reversed(self._remembered) if client is None else reversed(self._of_client.get(client, OrderedDict()))
        return [self._remembered[id].record for id in islice(ids, limit)]

    # --- lines --------------------------------------------------------------------------------------

    def log(self, record: RequestRecord) -> None:
        action = record.request.action
        is_quiet = action in QUIET or action.startswith("inspector")
        if self._form == "off" or (is_quiet and record.response.status < 400):
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

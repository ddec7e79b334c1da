"""Responses that run in the background, as the store has them.

    runs:<response>   the response as it is now, and until when its gateway is alive
    evts:<response>   the events of its stream, once it is over
    stop:<response>   another gateway wants it to be cancelled

Laws: a client finds nothing of another client. A response whose gateway died is failed, not in progress for ever: its
gateway says every BEAT_SECONDS that it is alive, and counts as dead after LEASE_SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.errors import LimitError
from toolglot.gateway.state.stored_responses import KIND, is_id, read_row
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.store import Store

BEAT_SECONDS: Final = 3.0
LEASE_SECONDS: Final = 10.0
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the events of one response that are stored."""
ENDED: Final = frozenset({"completed", "failed", "incomplete", "cancelled"})
_DIED: Final = "the gateway stopped before the response was complete; send the request again"


class StoredRun(Struct, frozen=True):
    """A response that runs, or ran, in the background."""

    body: dict[str, Any]
    input: list[Any]

    @property
    def is_over(self) -> bool:
        return self.body.get("status") in ENDED


class BackgroundStore:
    """The responses of all clients."""

    def __init__(self, store: Store | None, *, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock

    @property
    def is_on(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    async def keep(self, client: str, body: Mapping[str, Any], items: Sequence[Any]) -> None:
        """Keep a response as it is now; one that is not over is alive for some more seconds."""
        alive = self._clock() + LEASE_SECONDS
        await self._keep(client, {f"runs:{body['id']}": json_bytes({"alive": alive, "body": body, "input": items})})

    async def keep_events(self, client: str, id: str, events: Sequence[bytes]) -> None:
        """Keep the events of a stream, if they are not too many."""
        if sum(map(len, events)) <= MAX_EVENT_BYTES:
            try:
                await self._keep(client, {f"evts:{id}": b"\n".join(events)})
            except LimitError:  # the whole response is there all the same
                return

    async def find(self, client: str, id: str) -> StoredRun | None:
        rows = await self._find(client, f"runs:{id}")
        if not rows:
            return None
        fields = read_row(rows[0])
        run = StoredRun(fields["body"], fields["input"])
        if run.is_over or fields["alive"] > self._clock():
            return run
        error = {"code": "server_error", "message": _DIED}
        return StoredRun({**run.body, "status": "failed", "error": error}, run.input)

    async def events(self, client: str, id: str) -> list[bytes]:
        rows = await self._find(client, f"evts:{id}")
        return rows[0].split(b"\n") if rows and rows[0] else []

    async def stop(self, client: str, id: str) -> None:
        """Let the gateway that runs a response cancel it."""
        await self._keep(client, {f"stop:{id}": b"{}"})

    async def is_stopped(self, client: str, id: str) -> bool:
        return bool(await self._find(client, f"stop:{id}"))

    async def remove(self, client: str, id: str) -> bool:
        if self._store is None or not is_id(id):
            return False
        return await self._store.remove(KIND, client, [f"runs:{id}", f"evts:{id}"]) > 0

    async def _find(self, client: str, key: str) -> list[bytes]:
        if self._store is None or not is_id(key[5:]):
            return []
        return [*(await self._store.find(KIND, client, [key])).values()]

    async def _keep(self, client: str, rows: Mapping[str, bytes]) -> None:
        if self._store is not None:
            await self._store.keep(KIND, client, rows, until=self._clock() + self._seconds)

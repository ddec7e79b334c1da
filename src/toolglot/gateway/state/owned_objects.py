"""Which client key created which object at a provider: files, batches, videos and the like.

    await owned.claim({"file-1": OwnedObject(client)})             # the first key that creates an object owns it
    await owned.find(["file-1", "file-2"])                         # the known ones

All client keys share the provider's account, so the gateway separates what it stores. Laws: an object has one owner,
also if several processes claim it at once. An object that is used is renewed, one that is not used is not known
any more after `seconds`. The tokens of a batch are counted once, in whatever process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from toolglot.store import Store, StoreConflictError

KIND: Final = "objects"
COUNTED: Final = "counted_batches"
NO_CLIENT: Final = ""
"""The client of the rows: the owner is in the row, so that one look-up finds it for any client."""
MAX_ID_LENGTH: Final = 300
MAX_IDS: Final = 10_000
"""Ids that are looked up at once."""
MAX_MODELS: Final = 20
"""Models of a file that are remembered."""
COUNTED_SECONDS: Final = 400 * 86_400.0
"""For how long it is known that a batch was counted."""
RENEW_SHARE: Final = 0.5
"""A row is written again when it is used after this share of its time."""


class OwnedObject(Struct, frozen=True, omit_defaults=True):
    """What is known of an object."""

    owner: str
    until: float = 0.0
    models: tuple[str, ...] | None = None
    """The models that the requests in a file, or of a batch, name; None: not known."""
    tokens: int = 0
    """An estimate of the tokens of these requests."""


class OwnedObjects:
    """The objects of all client keys."""

    def __init__(self, store: Store | None, *, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock

    @property
    def is_stored(self) -> bool:
        return self._store is not None

    async def claim(self, objects: Mapping[str, OwnedObject]) -> None:
        """Remember new objects, unless they are known."""
        if self._store is None:
            return
        until = self._clock() + self._seconds
        for id, value in objects.items():
            if not is_id(id):
                continue
            row = msgspec.json.encode(msgspec.structs.replace(value, until=until))
            try:
                await self._store.keep(KIND, NO_CLIENT, {id: row}, until=until, unless=(id,))
            except StoreConflictError:  # it has an owner
                continue

    async def find(self, ids: Iterable[str]) -> dict[str, OwnedObject]:
        """The objects that are known, by id."""
        keys = [*dict.fromkeys(id for id in ids if is_id(id))]
        if self._store is None or not keys:
            return {}
        found: dict[str, OwnedObject] = {}
        for start in range(0, len(keys), MAX_IDS):
            rows = await self._store.find(KIND, NO_CLIENT, keys[start : start + MAX_IDS])
            found |= {id: msgspec.json.decode(data, type=OwnedObject) for id, data in rows.items()}
        return found

    async def renew(self, objects: Mapping[str, OwnedObject]) -> None:
        """Keep objects that are used for longer."""
        now = self._clock()
        late = now + self._seconds * RENEW_SHARE
        until = now + self._seconds
        rows = {
            id: msgspec.json.encode(msgspec.structs.replace(value, until=until))
            for id, value in objects.items()
            if value.until < late
        }
        if self._store is not None and rows:
            await self._store.keep(KIND, NO_CLIENT, rows, until=until)

    async def forget(self, id: str) -> None:
        """An object was deleted."""
        if self._store is not None and is_id(id):
            await self._store.remove(KIND, NO_CLIENT, [id])

    async def count_once(self, id: str) -> bool:
        """Whether the tokens of a batch are not counted yet; they are from now on."""
        if self._store is None or not is_id(id):
            return False
        try:
            await self._store.keep(COUNTED, NO_CLIENT, {id: b""}, until=self._clock() + COUNTED_SECONDS, unless=(id,))
        except StoreConflictError:
            return False
        return True


def is_id(value: object) -> bool:
    """Whether a value can be the id of an object."""
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_LENGTH and value.isascii() and value.isprintable()

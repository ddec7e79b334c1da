"""The interface of a store, its limits and its errors. `tests/store/test_store.py` tests every store against it.

Laws of a store:

- `keep` returns when its rows are committed, all of them or none; they replace rows with the same keys. With `unless`,
  it stores nothing and raises a `StoreConflictError` if a row of the same kind and client has one of these keys and has
  not expired. Of two writers of the same key with `unless`, in any processes, one gets the conflict.
- `find` and `remove` see only the rows of one kind and one client that have not expired.
- `add` is atomic, also between processes: no addition is lost, and each caller gets a total that includes its own. An
  expired total starts at zero again. Totals have a namespace of their own: `find` and `remove` do not see them. With
  `once`, an addition that its writer repeats counts once.
- `claim` is atomic, also between processes: a name has one holder at a time, until the claim expires. Clocks that
  differ make a claim longer or shorter by that much: for what must never be written twice, use `unless` too. Claims
  have a namespace of their own.
- `hold` replaces what a holder holds of a kind and client, and returns what all of them hold, in one step, also between
  processes: of two holders, the later one sees the earlier. What has expired counts as nothing. Repeating it is
  harmless. Holds have a namespace of their own.
- `scan` returns rows and totals in the order of their clients and keys, by code points; pass the `cursor` of the last
  one to continue. Rows that are stored meanwhile may or may not be included.
- `prune` removes expired rows and then, above `max_bytes`, the oldest ones; never a total, nor a row without an expiry,
  and nothing if those alone exceed the limit.
- Cancelling a `keep` does not undo it: it may still be committed.
- `close` returns when all earlier calls are done; later calls raise a `StoreError`.
- Strings are Unicode without NUL, which Postgres cannot store. A store protects no secrets: hash a client's key before
  you use it as `client`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from toolglot.errors import InputError, LimitError, ToolglotError, cut, quote


class StoreError(ToolglotError, RuntimeError):
    """The store is unavailable: closed, locked by others, a full or failing disk, a corrupt file."""

    def __init__(self, message: str) -> None:
        super().__init__(cut(message))


class StoreConflictError(StoreError):
    """A row with one of the keys in `unless` exists. Nothing was stored."""


class Row(Struct, frozen=True):
    """What a scan finds under one name: bytes, totals, or both."""

    client: str
    key: str
    value: bytes | None = None
    amounts: dict[str, float] = {}

    @property
    def cursor(self) -> str:
        """Where a scan continues after this row. Names have no NUL, so it is unique."""
        return f"{self.client}\0{self.key}"


class RowStore(Protocol):
    """The part of a store that holds rows of bytes."""

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        """Store all rows until then (seconds since 1970), unless one of the keys in `unless` exists; returns when they
        are committed."""
        ...

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        """The rows with these keys, in the order of the keys."""
        ...

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        """Remove the rows with these keys; returns how many there were."""
        ...


class Store(RowStore, Protocol):
    """Rows of bytes, each with a kind ("vault", "responses", …), a client, a key and an expiry; totals and claims."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its operator should know about it; complete once the store has been used."""
        ...

    async def add(
        self,
        kind: str,
        client: str,
        key: str,
        amounts: Mapping[str, float],
        *,
        until: float,
        once: tuple[str, str] | None = None,
    ) -> dict[str, float]:
        """Add to the totals of a key, by name; returns all totals of the key. The later expiry counts.

        once: the names of the writer and of this addition. If it was this writer's last addition to the key, within a
        day, it is not made again, so that a writer can repeat an addition whose outcome it does not know.
        """
        ...

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str:
        """Claim a name if it is free, expired or held by the same holder; returns the holder now, "" if there is
        none. An `until` in the past releases it."""
        ...

    async def hold(
        self, kind: str, client: str, holder: str, amounts: Mapping[str, float], *, until: float
    ) -> dict[str, float]:
        """Hold these amounts, by name, until then; returns the sums of what all holders hold. None releases it."""
        ...

    async def scan(
        self, kind: str, *, client: str | None = None, prefix: str = "", after: str = "", limit: int
    ) -> list[Row]:
        """The rows of a kind, of one client or of all, whose keys have this prefix: the first ones after a `cursor`."""
        ...

    async def prune(self, now: float) -> int:
        """Remove expired rows, and the oldest above the limit; returns how many."""
        ...

    async def close(self) -> None:
        """Close the store when all earlier calls are done."""
        ...


ONCE_SECONDS: Final = 86_400.0
"""Seconds for which the last addition of a writer is remembered."""


class StoreLimits(Struct, frozen=True, kw_only=True):
    """The limits of a store; each refusal names its limit."""

    max_bytes: int = 4 * 1024**3
    """Of all rows together, with their keys; checked by `prune` only."""

    max_value_bytes: int = 64 * 1024**2
    """Of one value."""

    max_name_bytes: int = 512
    """Of a kind, a client or a key, in UTF-8."""

    max_rows: int = 10_000
    """Rows or keys in one call."""

    max_call_bytes: int = 256 * 1024**2
    """Of all values that one call stores or finds."""

    max_waiting_bytes: int = 512 * 1024**2
    """Of pending writes: more are refused until some are done."""

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if type(limit) is not int or limit < 1:
                raise InputError("expected a whole number from 1", path=field.name)


DEFAULT_STORE_LIMITS: Final = StoreLimits()
MAX_AMOUNT: Final = 1e15
"""Of one addition. Whole numbers are exact up to 2**53, some nine times that."""


def name_bytes(name: str, path: str, limits: StoreLimits) -> int:
    """The length of a kind, client or key, which is checked. Errors do not quote it: it may be a secret."""
    if not isinstance(name, str):
        raise InputError(f"expected a string, not {quote(name)}", path=path)
    if len(name) > limits.max_name_bytes:
        raise LimitError(f"longer than max_name_bytes={limits.max_name_bytes}", path=path, hint="hash it")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InputError("expected Unicode text, got half of a surrogate pair", path=path) from None
    if size > limits.max_name_bytes:
        raise LimitError(f"longer than max_name_bytes={limits.max_name_bytes}", path=path, hint="hash it")
    if "\0" in name:
        raise InputError("expected a string without NUL", path=path)
    return size


def row_bytes(kind: str, client: str, rows: Mapping[str, bytes], limits: StoreLimits) -> list[int]:
    """The bytes that each row counts, after all of them are checked."""
    names = name_bytes(kind, "$.kind", limits) + name_bytes(client, "$.client", limits)
    check_count(len(rows), "$.rows", limits)
    sizes = []
    total = 0
    for number, (key, value) in enumerate(rows.items()):
        path = f"$.rows[{number}]"
        size = name_bytes(key, path, limits)
        if not isinstance(value, bytes):
            raise InputError(f"expected bytes, not {quote(value)}", path=path)
        if len(value) > limits.max_value_bytes:
            raise LimitError(f"{len(value)} bytes are more than max_value_bytes={limits.max_value_bytes}", path=path)
        sizes.append(names + size + len(value))
        total += len(value)
    check_call_bytes(total, limits)
    return sizes


def check_amounts(
    kind: str, client: str, key: str, amounts: Mapping[str, float], limits: StoreLimits
) -> dict[str, float]:
    """The amounts to add, after they are checked."""
    name_bytes(kind, "$.kind", limits)
    name_bytes(client, "$.client", limits)
    name_bytes(key, "$.key", limits)
    check_count(len(amounts), "$.amounts", limits)
    found = {}
    for number, (name, amount) in enumerate(amounts.items()):
        path = f"$.amounts[{number}]"
        name_bytes(name, path, limits)
        is_number = type(amount) in (int, float) and abs(amount) <= MAX_AMOUNT
        if not is_number:
            raise InputError(f"expected a number of at most {MAX_AMOUNT:.0e}, not {quote(amount)}", path=path)
        found[name] = float(amount)
    return found


class Mark(NamedTuple):
    """The last addition of a writer to a total: a claim under a name of its own."""

    kind: str
    client: str
    key: str
    addition: str
    until: float


def mark_of(
    kind: str, client: str, key: str, once: tuple[str, str] | None, now: float, limits: StoreLimits
) -> Mark | None:
    """The mark that prevents a second, equal addition; None: `once` is not set."""
    if once is None:
        return None
    writer, addition = once
    for value, path in ((writer, "$.once[0]"), (addition, "$.once[1]")):
        if not name_bytes(value, path, limits):
            raise InputError("expected a name, got an empty string", path=path)
    return Mark(f"added {kind}", client, f"{writer} {key}", addition, now + ONCE_SECONDS)


def held_kind(kind: str) -> str:
    """The kind of the claims that holds are: each is named by its holder, and has the amounts in the holder's place."""
    return f"held {kind}"


def sum_of(holds: Iterable[str | bytes]) -> dict[str, float]:
    """What several holders hold together."""
    sums: dict[str, float] = {}
    for amounts in holds:
        for name, amount in msgspec.json.decode(amounts, type=dict[str, float]).items():
            sums[name] = sums.get(name, 0.0) + amount
    return sums


def check_unless(unless: Sequence[str], limits: StoreLimits) -> tuple[str, ...]:
    """The keys of `unless`, after they are checked."""
    _check_names(unless, "$.unless", limits)
    return tuple(dict.fromkeys(unless))


def check_claim(kind: str, client: str, key: str, holder: str, limits: StoreLimits) -> None:
    """Check the arguments of a claim."""
    for value, path in ((kind, "$.kind"), (client, "$.client"), (key, "$.key")):
        name_bytes(value, path, limits)
    if not name_bytes(holder, "$.holder", limits):
        raise InputError("expected the name of the holder", path="$.holder")


def conflict(key: str) -> StoreConflictError:
    return StoreConflictError(f"a row with the key {quote(key)} already exists; nothing was stored")


def check_scan(kind: str, client: str | None, prefix: str, after: str, limit: int, limits: StoreLimits) -> None:
    """Check the arguments of a scan."""
    name_bytes(kind, "$.kind", limits)
    name_bytes(client or "", "$.client", limits)
    name_bytes(prefix, "$.prefix", limits)
    if not isinstance(after, str) or after.count("\0") != bool(after):
        raise InputError("expected the cursor of a row", path="$.after")
    for part in after.split("\0"):
        name_bytes(part, "$.after", limits)
    if type(limit) is not int or limit < 1:
        raise InputError("expected a whole number from 1", path="$.limit")
    check_count(limit, "$.limit", limits)


def check_keys(kind: str, client: str, keys: Sequence[str], limits: StoreLimits) -> None:
    """Check the names of rows."""
    name_bytes(kind, "$.kind", limits)
    name_bytes(client, "$.client", limits)
    _check_names(keys, "$.keys", limits)


def _check_names(keys: Sequence[str], path: str, limits: StoreLimits) -> None:
    if isinstance(keys, str):
        raise InputError("expected a list of keys, not one", path=path)
    check_count(len(keys), path, limits)
    for number, key in enumerate(keys):
        name_bytes(key, f"{path}[{number}]", limits)


def check_count(count: int, path: str, limits: StoreLimits) -> None:
    if count > limits.max_rows:
        raise LimitError(f"{count} are more than max_rows={limits.max_rows}", path=path, hint="use several calls")


def check_call_bytes(total: int, limits: StoreLimits) -> None:
    if total > limits.max_call_bytes:
        hint = "use several calls"
        raise LimitError(f"the values are more than max_call_bytes={limits.max_call_bytes}", path="$.rows", hint=hint)


def check_time(value: float, path: str) -> float:
    """A time in seconds since 1970; infinity: never."""
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds) or isinstance(value, str):
        raise InputError(f"expected seconds since 1970, not {quote(value)}", path=path)
    return seconds


def merge_pages(
    kept: Iterable[tuple[str, str, bytes]], counted: Iterable[tuple[str, str, str]], limit: int, limits: StoreLimits
) -> list[Row]:
    """The first rows of two ordered lists; bytes and totals of one name are one row."""
    found: dict[tuple[str, str], Row] = {}
    total = 0
    for client, key, value in kept:
        total += len(value)
        check_call_bytes(total, limits)
        found[client, key] = Row(client, key, value)
    for client, key, amounts in counted:
        row = found.get((client, key)) or Row(client, key)
        found[client, key] = replace(row, amounts=msgspec.json.decode(amounts, type=dict[str, float]))
    return [found[name] for name in sorted(found)[:limit]]

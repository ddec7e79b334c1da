"""What all requests of the last days came to: numbers in buckets of time, by model, upstream and client.

    fleet.add(record)                         # a request is over
    fleet.series(hours=1, client=None)        # {"buckets": […], "series": […]}

A request is added to the bucket of its minute. When a minute is over, it is added to the buckets of ten minutes and of
an hour, so that a week takes no more than some hundred buckets.

Laws: a request costs the same however many there were; what is kept is bounded, in time and in the number of
combinations of model, upstream and client. A client sees its own part only.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.gateway.inspector.rows import SHOWN
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask

MAX_PARTS: Final = 40
"""Combinations of model, upstream and client in one bucket; what is more is `OTHERS`."""
OTHERS: Final = "others"
MAX_KINDS: Final = 12
MAX_NAME: Final = 120
MAX_HOURS: Final = 168
_BINS: Final = 40
"""Bins of latencies: each is half as wide again as the one before."""
_FIRST: Final = 0.005
_GROWTH: Final = 1.5
_LIMITS: Final = [_FIRST * _GROWTH**index for index in range(_BINS - 1)]
"""The longest time of each bin but the last one."""

Part = tuple[str, str, str]
"""Model, upstream and client."""
Fields = dict[str, Any]


class Resolution(Struct, frozen=True):
    """Buckets of one length."""

    seconds: int
    count: int


RESOLUTIONS: Final = (Resolution(60, 120), Resolution(600, 145), Resolution(3600, MAX_HOURS + 1))
"""Up to two hours, a day, and a week."""


class Amounts(Struct):
    """What the requests of one part came to in one bucket."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: int = 0
    """In billionths of a dollar."""
    errors: dict[str, int] = {}
    """By kind."""
    bins: list[int] = []
    """How many took how long."""

    def add(self, other: Amounts) -> None:
        """Add those of another bucket."""
        self.requests += other.requests
        self.input += other.input
        self.output += other.output
        self.cached += other.cached
        self.cost += other.cost
        for kind, count in other.errors.items():
            self.errors[kind] = self.errors.get(kind, 0) + count
        self.bins = [one + two for one, two in zip(self.bins, other.bins, strict=True)]

    def quantile(self, share: float) -> float | None:
        """About how long that share of the requests took at most."""
        total = sum(self.bins)
        if not total:
            return None
        left = share * total
        for index, count in enumerate(self.bins):
            left -= count
            if left <= 0:
                return round(_FIRST * _GROWTH**index, 4)
        return None


Bucket = dict[Part, Amounts]


def _new_amounts() -> Amounts:
    return Amounts(errors={}, bins=[0] * _BINS)


class Fleet:
    """The numbers of all requests."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._buckets: tuple[dict[int, Bucket], ...] = tuple({} for _ in RESOLUTIONS)
        """By resolution, and by the number of the bucket since 1970."""
        self._minute = 0
        self._current: Bucket = {}
        """The bucket of this minute."""

    def add(self, record: RequestRecord) -> None:
        """A request is over."""
        if record.request.action not in SHOWN:
            return
        route, usage = record.route, record.reply.usage or {}
        amounts = self._amounts((route.model or record.request.model, route.upstream, record.request.client))
        amounts.requests += 1
        amounts.input += usage.get("input_tokens", 0)
        amounts.output += usage.get("output_tokens", 0)
        amounts.cached += usage.get("cache_read_tokens", 0)
        amounts.cost += record.reply.cost or 0
        amounts.bins[_bin(record.times.seconds)] += 1
        kind = _kind(record)
        if kind:
            kind = kind if kind in amounts.errors or len(amounts.errors) < MAX_KINDS else OTHERS
            amounts.errors[kind] = amounts.errors.get(kind, 0) + 1

    def _amounts(self, part: Part) -> Amounts:
        minute = int(self._clock()) // 60
        if minute != self._minute:
            self._close_minute(minute)
            self._current = self._buckets[0].setdefault(minute, {})
        found = self._current.get(part)
        return found if found is not None else _part_of(self._current, part)

    def _close_minute(self, minute: int) -> None:
        """Another minute has begun: the last one goes into the longer buckets, and old ones are dropped."""
        over = self._buckets[0].get(self._minute)
        for resolution, buckets in zip(RESOLUTIONS[1:], self._buckets[1:], strict=True):
            if over is not None:
                _merge(buckets.setdefault(self._minute * 60 // resolution.seconds, {}), over)
        self._minute = minute
        for resolution, buckets in zip(RESOLUTIONS, self._buckets, strict=True):
            oldest = minute * 60 // resolution.seconds - resolution.count
            for number in [number for number in buckets if number <= oldest]:
                del buckets[number]

    # --- reading ------------------------------------------------------------------------------------

    def parts(self, hours: float, client: str | None) -> list[tuple[Part, dict[int, Amounts]]]:
        """What each part came to in the last hours, by the time of the bucket."""
        resolution, buckets = self._chosen(hours)
        current = int(self._clock() // resolution.seconds)
        first = current - int(hours * 3600 // resolution.seconds) + 1
        found: dict[Part, dict[int, Amounts]] = {}
        for number, bucket in sorted(buckets.items()):
            for part, amounts in bucket.items() if first <= number <= current else ():
                if client in (None, part[2]):
                    found.setdefault(part, {})[number * resolution.seconds] = amounts
        return [*found.items()]

    def times(self, hours: float) -> list[int]:
        """The times of all buckets of the last hours."""
        resolution, _ = self._chosen(hours)
        current = int(self._clock() // resolution.seconds)
        first = current - int(hours * 3600 // resolution.seconds) + 1
        return [number * resolution.seconds for number in range(first, current + 1)]

    def _chosen(self, hours: float) -> tuple[Resolution, dict[int, Bucket]]:
        """The shortest buckets that go back so far, with the minute in progress."""
        index = next(
            (
                index
                for index, each in enumerate(RESOLUTIONS)
                if each.seconds * (each.count if not index else each.count - 1) >= hours * 3600
            ),
            len(RESOLUTIONS) - 1,
        )
        resolution, buckets = RESOLUTIONS[index], self._buckets[index]
        running = self._buckets[0].get(self._minute) if index else None
        if running is None:
            return resolution, buckets
        number = self._minute * 60 // resolution.seconds
        whole: Bucket = {}
        _merge(whole, buckets.get(number, {}))
        _merge(whole, running)
        return resolution, {**buckets, number: whole}


Parts = list[tuple[Part, dict[int, Amounts]]]
"""What each part came to, by the time of the bucket."""


def read_parts(value: Any) -> Parts:
    """The parts of another worker, as they came."""
    return msgspec.convert(value, Parts, strict=False)


def joined(of_workers: Iterable[Parts]) -> Parts:
    """The parts of all workers."""
    found: dict[Part, dict[int, Amounts]] = {}
    for parts in of_workers:
        for part, buckets in parts:
            own = found.setdefault(part, {})
            for at, amounts in buckets.items():
                if at not in own:
                    own[at] = _new_amounts()
                own[at].add(amounts)
    return [*found.items()]


def series_of(
    times: list[int],
    parts: Iterable[tuple[Part, dict[int, Amounts]]],
    name_of: Callable[[str], str],
) -> list[Fields]:
    """The series of a chart: one for each number and part."""
    series: list[Fields] = []
    for (model, upstream, client), found in parts:
        by = {"model": mask(model) or "unknown", "upstream": upstream or "none", "client": name_of(client)}
        rows = [found.get(at) for at in times]
        for name, read in _COUNTED.items():
            series.append({"name": name, "by": by, "values": [0 if each is None else read(each) for each in rows]})
        for name, measure in _MEASURED.items():
            values = [None if each is None else measure(each) for each in rows]
            series.append({"name": name, "by": by, "values": values})
        for kind in sorted({kind for each in rows if each is not None for kind in each.errors}):
            values = [0 if each is None else each.errors.get(kind, 0) for each in rows]
            series.append({"name": "errors", "by": {**by, "kind": kind}, "values": values})
    return series


_COUNTED: Final[dict[str, Callable[[Amounts], float]]] = {
    "requests": lambda each: each.requests,
    "input_tokens": lambda each: each.input,
    "output_tokens": lambda each: each.output,
    "cost_usd": lambda each: each.cost / 1e9,
}
_MEASURED: Final[dict[str, Callable[[Amounts], float | None]]] = {
    "cached_share": lambda each: round(each.cached / each.input, 4) if each.input else None,
    "p50": lambda each: each.quantile(0.5),
    "p95": lambda each: each.quantile(0.95),
}


def _part_of(bucket: Bucket, part: Part) -> Amounts:
    found = bucket.get(part)
    if found is None:
        model, upstream, client = part
        if len(bucket) >= MAX_PARTS:
            model, upstream = OTHERS, OTHERS
        if len(bucket) >= 2 * MAX_PARTS:
            client = OTHERS
        part = (model[:MAX_NAME], upstream, client)
        found = bucket.get(part)
        if found is None:
            found = bucket[part] = _new_amounts()
    return found


def _merge(bucket: Bucket, other: Bucket) -> None:
    for part, amounts in other.items():
        _part_of(bucket, part).add(amounts)


def _bin(seconds: float) -> int:
    return bisect_left(_LIMITS, seconds)


def _kind(record: RequestRecord) -> str:
    """The kind of error of a request; empty: it has none."""
    response = record.response
    if response.status < 400 and not response.is_broken and response.status:
        return ""
    if not response.status:
        return "disconnected"
    return record.calls.last_failure or f"status {response.status}"

"""The metrics of the gateway, in the format of Prometheus at `GET /metrics`.

    metrics = Metrics()
    metrics.begin(record)       # a request has come
    metrics.end(record)         # it is over: a listener of the `RequestLog`
    metrics.text(vault.hits, vault.misses)

Laws: a request costs a few additions, however many there were. Names that a client can choose do not make it grow
without limit: only models that an upstream has served are shown, a limited number of them, and the rest are `other`. It
contains nothing of a conversation, and no key.
"""

from __future__ import annotations

import os
import platform
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final, Literal, NamedTuple

from toolglot import __version__, profiles
from toolglot.conversation.report import Entry
from toolglot.errors import InputError
from toolglot.gateway.http.body_budget import BodyBudget
from toolglot.gateway.observability.report_counts import MANY, entry_counts, rules_in
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.translate.request_memory import RequestMemory

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES: Final = 2_000
"""Sets of labels of one metric."""
MAX_UPSTREAMS: Final = 100
MAX_MODELS: Final = 50
"""Models of one upstream that are shown by name."""
MAX_NAME_LENGTH: Final = 100
MAX_REASON: Final = 200
"""Characters of a reason whose count is remembered."""
OTHER: Final = "other"

Labels = tuple[str, ...]


class Family(NamedTuple):
    """One metric."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()


_MOMENTS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)

REQUESTS: Final = Family(
    "toolglot_requests_total",
    "counter",
    "Completed requests. status: the class of the HTTP status; `broken`: it failed after the "
    "response had begun; `gone`: it ended before its response did, for example because the client"
    " disconnected.",
    ("action", "protocol", "upstream", "model", "status"),
)
TOKENS: Final = Family(
    "toolglot_tokens_total",
    "counter",
    "Tokens as the upstreams count them. kind: `input` includes cached tokens, `output` includes "
    "thinking; `cache_read` and `cache_write` are parts of the input, `cache_write_1h` is the part of "
    "`cache_write` that is kept for an hour, `reasoning` is a part of the output.",
    ("upstream", "model", "kind"),
)
CACHE_LOST: Final = Family(
    "toolglot_cache_lost_tokens_total",
    "counter",
    "Tokens that were cached for the request before of the same conversation, and were read again. cause: `upstream` "
    "or `model` (another one, by failover, balancing or a switch), `repair`, `expired`, or `other`. upstream and "
    "model: those that read them again.",
    ("upstream", "model", "cause"),
)
CACHE_LOST_DOLLARS: Final = Family(
    "toolglot_cache_lost_dollars_total",
    "counter",
    "What that cost more than reading from the cache, in US dollars, as far as the prices are known.",
    ("upstream", "model", "cause"),
)
REPAIRS: Final = Family(
    "toolglot_repairs_total",
    "counter",
    "Changes in requests. rule: the rule that requires it, or the action if there is none. "
    "gravity: loss, change or housekeeping.",
    ("rule", "action", "gravity"),
)
REPLY_CHANGES: Final = Family("toolglot_reply_changes_total", "counter", "Changes in replies.", ("action", "gravity"))
ERRORS: Final = Family(
    "toolglot_upstream_errors_total",
    "counter",
    "Calls of an upstream that failed or broke off. kind: the kind of failure.",
    ("upstream", "kind"),
)
RETRIES: Final = Family(
    "toolglot_retries_total",
    "counter",
    "Calls of an upstream after an earlier attempt for the same request had failed.",
    ("upstream",),
)
REFUSALS: Final = Family(
    "toolglot_refusals_total",
    "counter",
    "Requests that the gateway itself refused, or failed on, before it called an upstream.",
    ("action", "status"),
)
ADDED: Final = Family(
    "toolglot_added_seconds",
    "histogram",
    "Latency that the gateway adds: from the end of the request to the call of the upstream, and "
    "from the upstream's response (for a stream the piece that produces output, otherwise all of "
    "it) to the first write to the client.",
    ("stream",),
)
FIRST_BYTE: Final = Family(
    "toolglot_first_byte_seconds",
    "histogram",
    "From the end of the request to the first byte of the response.",
    ("upstream", "stream"),
)
DURATION: Final = Family(
    "toolglot_request_duration_seconds",
    "histogram",
    "From the beginning of a request to the end of its response, if an upstream was called.",
    ("upstream", "stream"),
)
OPEN: Final = Family("toolglot_open_requests", "gauge", "Open requests.")
STREAMS: Final = Family("toolglot_open_streams", "gauge", "Open requests whose stream has begun.")
VAULT: Final = Family(
    "toolglot_vault_lookups_total",
    "counter",
    "Lookups of a model's turn in the vault. result: `hit`: something was stored for it; `miss`: "
    "nothing was, for example because there was nothing to store.",
    ("result",),
)
STORE: Final = Family(
    "toolglot_store_errors_total", "counter", "Failures of the store, and writes of a reply that took too long."
)
BODY_BYTES: Final = Family(
    "toolglot_body_bytes_in_flight",
    "gauge",
    "Current size of request and response bodies in memory, limited by `max_bytes_in_flight`.",
)
BODY_REFUSALS: Final = Family(
    "toolglot_body_refusals_total",
    "counter",
    "Requests that got a 503 because bodies had reached `max_bytes_in_flight`.",
)
READ: Final = Family(
    "toolglot_request_bytes_total",
    "counter",
    "Bytes of requests. how: `known`, the same client sent them before, and they were not read again; `new`, they "
    "were read.",
    ("how",),
)
MEMORY: Final = Family(
    "toolglot_request_memory_bytes",
    "gauge",
    "Estimated size of the last requests in memory, limited by `request_memory_bytes`.",
)
BUILD: Final = Family("toolglot_build_info", "gauge", "Always 1.", ("version", "python"))
UPTIME: Final = Family("toolglot_uptime_seconds", "gauge", "Time since the gateway started.")
CPU: Final = Family("process_cpu_seconds_total", "counter", "CPU time of the process, user and system.")
RESIDENT: Final = Family("process_resident_memory_bytes", "gauge", "Resident memory of the process.")
VIRTUAL: Final = Family("process_virtual_memory_bytes", "gauge", "Virtual memory of the process.")
OPEN_FDS: Final = Family("process_open_fds", "gauge", "Open file descriptors.")
MAX_FDS: Final = Family("process_max_fds", "gauge", "Maximum number of open file descriptors.")
STARTED: Final = Family("process_start_time_seconds", "gauge", "When the gateway started, in seconds since 1970.")

FAMILIES: Final = (
    *(REQUESTS, REFUSALS, TOKENS, CACHE_LOST, CACHE_LOST_DOLLARS, REPAIRS, REPLY_CHANGES, ERRORS, RETRIES),
    *(ADDED, FIRST_BYTE, DURATION, OPEN, STREAMS),
    *(
        VAULT,
        STORE,
        BODY_BYTES,
        BODY_REFUSALS,
        READ,
        MEMORY,
        BUILD,
        UPTIME,
        CPU,
        RESIDENT,
        VIRTUAL,
        OPEN_FDS,
        MAX_FDS,
        STARTED,
    ),
)
"""All, in the order in which they are written."""

_TOKEN_KINDS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "cache_write_1h_tokens": "cache_write_1h",
    "reasoning_tokens": "reasoning",
}
_DEFAULT: Final = "default:"
_DATED: Final = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest))+$")
_STREAM: Final = ("false", "true")
_CLASSES: Final = tuple(f"{first}xx" for first in range(10))


@lru_cache(maxsize=1024)
def family_of(model: str) -> str:
    """A model without the date of its version."""
    return _DATED.sub("", mask(model[:MAX_NAME_LENGTH]).lower()) or OTHER


# --- counters and histograms ------------------------------------------------------------------------


class Counter:
    """Numbers by labels. Beyond the limit, new sets of labels are counted as one."""

    def __init__(self, family: Family, *, limit: int = MAX_SERIES) -> None:
        self.family = family
        self._limit = limit
        self._counts: dict[Labels, list[float]] = {}
        self._rest = (OTHER,) * len(family.labels)

    def of(self, labels: Labels) -> list[float]:
        """The count for these labels, as a list of one number."""
        count = self._counts.get(labels)
        if count is None:
            if len(self._counts) >= self._limit:
                labels = self._rest
            count = self._counts.setdefault(labels, [0])
        return count

    def add(self, labels: Labels, amount: float = 1) -> None:
        self.of(labels)[0] += amount

    def lines(self) -> Iterator[str]:
        for labels, (count,) in self._counts.items():
            yield _line(self.family.name, self.family.labels, labels, count)


class Buckets:
    """The counts of one histogram, by upper bound, and the sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds: tuple[float, ...] = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.sum: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        if seconds > 0:  # a clock that was set back gives a negative time
            self.sum += seconds


class Histogram:
    """Buckets by labels."""

    def __init__(self, family: Family, bounds: tuple[float, ...], *, limit: int = MAX_SERIES // 10) -> None:
        self.family = family
        self.bounds = bounds
        self._limit = limit
        self._buckets: dict[Labels, Buckets] = {}
        self._rest = (OTHER,) * len(family.labels)

    def of(self, labels: Labels) -> Buckets:
        found = self._buckets.get(labels)
        if found is None:
            if len(self._buckets) >= self._limit:
                labels = self._rest
            found = self._buckets.setdefault(labels, Buckets(self.bounds))
        return found

    def lines(self) -> Iterator[str]:
        name, names = self.family.name, self.family.labels
        for labels, buckets in self._buckets.items():
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), accumulate(buckets.counts), strict=True):
                yield _line(f"{name}_bucket", (*names, "le"), (*labels, bound), count)
            yield _line(f"{name}_sum", names, labels, buckets.sum)
            yield _line(f"{name}_count", names, labels, sum(buckets.counts))


class Names:
    """The names that are shown; all others are `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[str, None] = {}

    def of(self, name: str, *, may_be_new: bool = True) -> str:
        if name in self._known:
            return name
        if not may_be_new or len(self._known) >= self._limit:
            return OTHER
        self._known[name] = None
        return name


# --- what is counted --------------------------------------------------------------------------------


class RequestCounters:
    """The counters of requests with the same labels, looked up once."""

    __slots__ = ("buckets", "labels", "requests", "tokens")

    def __init__(self, labels: Labels, requests: list[float]) -> None:
        self.labels: Labels = labels
        self.requests: list[float] = requests
        self.tokens: dict[str, list[float]] = {}
        self.buckets: tuple[Buckets, Buckets, Buckets] | None = None


class Metrics:
    """Counts requests. One for each gateway, that is for each process that serves."""

    def __init__(
        self,
        *,
        overrides: Callable[[], Overrides | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        budget: BodyBudget | None = None,
        memory: RequestMemory | None = None,
    ) -> None:
        self._budget = budget
        self._memory = memory
        self._overrides = overrides
        self._clock = clock
        self._began = clock()
        self._started = time.time()
        self._open: set[RequestRecord] = set()
        self._upstreams = Names(MAX_UPSTREAMS)
        self._models: dict[str, Names] = {}
        self._rules: dict[str, None] = {}
        self._counters: dict[tuple[str, str, str, bool, str, bool, str], RequestCounters] = {}
        self._requests, self._refusals = Counter(REQUESTS), Counter(REFUSALS)
        self._tokens = Counter(TOKENS)
        self._cache_lost, self._cache_lost_dollars = Counter(CACHE_LOST), Counter(CACHE_LOST_DOLLARS)
        self._repairs, self._reply_changes = Counter(REPAIRS), Counter(REPLY_CHANGES)
        self._repair_counts: dict[tuple[str, str, str], list[float]] = {}
        """The counts of changes by action, gravity and reason: agents send the same kind of request again and again."""
        self._errors, self._retries = Counter(ERRORS), Counter(RETRIES)
        self._added = Histogram(ADDED, _MOMENTS)
        self._first_byte, self._duration = Histogram(FIRST_BYTE, _SECONDS), Histogram(DURATION, _SECONDS)
        self._store_errors = Counter(STORE)
        self._store_errors.add((), 0)

    def begin(self, record: RequestRecord) -> None:
        self._open.add(record)

    def store_failed(self, count: int = 1) -> None:
        self._store_errors.add((), count)

    def end(self, record: RequestRecord) -> None:
        """A request is over. One that came while nothing was counted is not counted either."""
        try:
            self._open.remove(record)
        except KeyError:
            return
        counters = self._counters_of(record)
        counters.requests[0] += 1
        if record.calls.count:
            self._count_calls(record, counters)
        elif record.response.status >= 400:
            self._refusals.add((record.request.action, _status(record)))
        if record.response.store_errors:
            self.store_failed(record.response.store_errors)

    def _counters_of(self, record: RequestRecord) -> RequestCounters:
        request, route, status = record.request, record.route, _status(record)
        key = (
            *(request.action, request.source, route.upstream, route.is_simulated),
            *(route.model, request.is_stream, status),
        )
        found = self._counters.get(key)
        if found is None:
            upstream = self._upstream(record)
            model = self._model(upstream, record) if upstream else ""
            labels = (request.action, request.source, upstream, model, status)
            found = RequestCounters(labels, self._requests.of(labels))
            if model != OTHER and len(self._counters) < MAX_SERIES:  # `other` may be shown by its name later
                self._counters[key] = found
        return found

    def _count_calls(self, record: RequestRecord, counters: RequestCounters) -> None:
        if record.sent.entries:
            self._count_repairs(record.sent.entries, record)
        if record.reply.entries:
            for (action, gravity, _), count in entry_counts(record.reply.entries).kinds.items():
                self._reply_changes.add((action, gravity), count)
        for name in record.calls.repeated:
            self._retries.add((self._upstreams.of(name) if name != record.route.upstream else counters.labels[2],))
        for name, kind in record.calls.failures:
            self._errors.add((self._upstreams.of(name) if name != record.route.upstream else counters.labels[2], kind))
        if record.reply.usage:
            self._count_tokens(record.reply.usage, counters)
        loss = record.reply.cache_loss
        if loss is not None:
            labels = (*counters.labels[2:4], loss.cause)
            self._cache_lost.add(labels, loss.tokens)
            self._cache_lost_dollars.add(labels, loss.extra / 1e9)
        if counters.buckets is None:
            labels = (counters.labels[2], _STREAM[record.request.is_stream])
            counters.buckets = (self._duration.of(labels), self._added.of(labels[1:]), self._first_byte.of(labels))
        duration, added, first_byte = counters.buckets
        duration.add(record.times.seconds)
        seconds = record.added_seconds
        if seconds is not None:
            added.add(seconds)
            first_byte.add(record.times.sent - record.times.arrived)

    def _count_repairs(self, entries: tuple[Entry, ...], record: RequestRecord) -> None:
        if len(entries) > MANY:
            for (action, gravity, named), count in entry_counts(entries).kinds.items():
                self._repairs.add((self._rule(named, record) or action, action, gravity), count)
            return
        known = self._repair_counts
        for entry in entries:
            repairs = known.get((entry.action, entry.gravity, entry.reason))
            if repairs is None:
                repairs = self._repairs_like(entry, record)
            repairs[0] += 1

    def _repairs_like(self, entry: Entry, record: RequestRecord) -> list[float]:
        """The count of a change, which is remembered unless a rule may still turn out to be the reason."""
        named = rules_in(entry.reason)
        rule = self._rule(named, record)
        repairs = self._repairs.of((rule or entry.action, entry.action, entry.gravity))
        if (rule or not named) and len(entry.reason) <= MAX_REASON and len(self._repair_counts) < MAX_SERIES:
            self._repair_counts[entry.action, entry.gravity, entry.reason] = repairs
        return repairs

    def _count_tokens(self, usage: Mapping[str, int], counters: RequestCounters) -> None:
        for name, count in usage.items():
            if count and name in _TOKEN_KINDS:
                tokens = counters.tokens.get(name)
                if tokens is None:
                    tokens = counters.tokens[name] = self._tokens.of((*counters.labels[2:4], _TOKEN_KINDS[name]))
                tokens[0] += count

    def _upstream(self, record: RequestRecord) -> str:
        """The name of the upstream. Simulated ones have their own, so that they are not taken for a provider."""
        if not record.route.upstream:
            return ""
        return self._upstreams.of(
            f"{record.route.upstream} (simulated)" if record.route.is_simulated else record.route.upstream
        )

    def _model(self, upstream: str, record: RequestRecord) -> str:
        if not record.route.model:
            return ""
        names = self._models.get(upstream)
        if names is None:
            names = self._models[upstream] = Names(MAX_MODELS)
        return names.of(family_of(record.route.model[:MAX_NAME_LENGTH]), may_be_new=200 <= record.response.status < 300)

    def _rule(self, names: tuple[str, ...], record: RequestRecord) -> str:
        """The rule among the names in the reason of a change; empty: none of them is a rule."""
        for name in names:
            if name in self._rules:
                return name
            if len(self._rules) < MAX_SERIES and _is_rule(name, record, self._overrides()):
                self._rules[name] = None
                return name
        return ""

    # --- output ---------------------------------------------------------------------------------------

    def text(self, vault_hits: int = 0, vault_misses: int = 0) -> bytes:
        """All metrics, in the format of Prometheus."""
        written = {metric.family.name: [*metric.lines()] for metric in self._counted()}
        single = {**self._gauges(), **process(self._started)}
        written |= {name: [_line(name, (), (), number)] for name, number in single.items()}
        memory = self._memory
        if memory is not None:
            read = {"known": memory.known_bytes, "new": memory.new_bytes}
            written[READ.name] = [_line(READ.name, READ.labels, (how,), count) for how, count in read.items()]
        found = {"hit": vault_hits, "miss": vault_misses}
        written[VAULT.name] = [_line(VAULT.name, VAULT.labels, (name,), count) for name, count in found.items()]
        written[BUILD.name] = [_line(BUILD.name, BUILD.labels, (__version__, platform.python_version()), 1)]
        lines: list[str] = []
        for family in FAMILIES:
            if family.name in written:  # some are not available on every system
                lines += [f"# HELP {family.name} {_help(family.help)}", f"# TYPE {family.name} {family.kind}"]
                lines += written[family.name]
        return ("\n".join(lines) + "\n").encode()

    def _counted(self) -> tuple[Counter | Histogram, ...]:
        return (
            *(self._requests, self._refusals, self._tokens, self._repairs, self._reply_changes),
            *(self._cache_lost, self._cache_lost_dollars),
            *(self._errors, self._retries, self._added, self._first_byte, self._duration, self._store_errors),
        )

    def _gauges(self) -> dict[str, float]:
        streams = sum(record.request.is_stream and record.response.status > 0 for record in self._open)
        return {
            OPEN.name: len(self._open),
            STREAMS.name: streams,
            UPTIME.name: round(self._clock() - self._began, 3),
            BODY_BYTES.name: self._budget.used if self._budget is not None else 0,
            BODY_REFUSALS.name: self._budget.refused if self._budget is not None else 0,
            MEMORY.name: self._memory.size if self._memory is not None else 0,
        }


def _status(record: RequestRecord) -> str:
    if record.response.is_gone:
        return "gone"
    return "broken" if record.response.is_broken else _CLASSES[record.response.status // 100]


def _is_rule(named: str, record: RequestRecord, overrides: Overrides | None) -> bool:
    if named.startswith(_DEFAULT):
        return named.removeprefix(_DEFAULT) in profiles.KEYS
    try:
        profile = profiles.get(record.sent.target, record.route.model, overrides=overrides)
    except InputError:
        return False
    return any(rule.id == named for rule in profile.origins.values())


# --- the process ------------------------------------------------------------------------------------

_PROC: Final = Path("/proc/self")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def process(started: float, proc: Path = _PROC) -> dict[str, float]:
    """Figures of this process, as far as the system has them."""
    found: dict[str, float] = {CPU.name: time.process_time(), STARTED.name: round(started, 3)}
    try:
        virtual, resident = (proc / "statm").read_text().split()[:2]
        found[VIRTUAL.name], found[RESIDENT.name] = int(virtual) * _PAGE, int(resident) * _PAGE
        found[OPEN_FDS.name] = sum(1 for _ in (proc / "fd").iterdir())
        limits = re.search(r"Max open files +(\d+)", (proc / "limits").read_text())
        if limits is not None:
            found[MAX_FDS.name] = int(limits[1])
    except (OSError, ValueError):
        pass  # another system
    return found


# --- the text format --------------------------------------------------------------------------------


def _line(name: str, names: Labels, values: Labels, number: float) -> str:
    if not names:
        return f"{name} {_number(number)}"
    labels = ",".join([f'{label}="{_escape(value)}"' for label, value in zip(names, values, strict=True)])
    return f"{name}{{{labels}}} {_number(number)}"


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))


def _escape(value: str) -> str:
    plain = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return plain.encode("utf-8", "replace").decode()


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")

"""The record of a request as text: a line of the log, the short header, and the JSON of `/toolglot/requests`.

Law: secrets are masked in everything that is made here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from toolglot.conversation import captures
from toolglot.conversation.report import GRAVITIES, Entry, Gravity, count_gravities, describe_counts, order_by_gravity
from toolglot.gateway.observability.report_counts import MANY, SHOWN, entry_counts
from toolglot.gateway.observability.request_record import RecordedAttempt, RequestRecord
from toolglot.masking import mask

MAX_HEADER: Final = 400
MAX_LINE: Final = 600
_MAX_PATH: Final = 300
_MAX_MODEL: Final = 200
_MAX_CACHED: Final = 1_000
"""Characters of a string whose masked form is cached."""
_MAX_CACHED_ENTRIES: Final = 8


def summarize(record: RequestRecord) -> dict[str, Any]:
    """The fields of a line of the log."""
    request, route, response, times = record.request, record.route, record.response, record.times
    added = record.added_seconds
    fields = {
        "id": record.id,
        "time": round(times.started_at, 3),
        "method": request.method,
        "path": _mask_cached(request.path[:_MAX_PATH]),
        "client": request.client[:12],
        "protocol": request.source,
        "model": _mask_cached(request.model[:_MAX_MODEL]),
        "upstream": route.upstream,
        "target": record.sent.target,
        "sent_model": _mask_cached(route.model[:_MAX_MODEL]),
        "simulated": route.is_simulated,
        "stream": request.is_stream,
        "status": response.status,
        "seconds": round(times.seconds, 4),
        "first_byte": None if times.first_byte is None else round(times.first_byte, 4),
        "added": None if added is None else round(added, 6),
        "tries": record.calls.count if record.calls.count > 1 else None,
        "stop": record.reply.stop,
        "changes": _gravities(record.sent.entries),
        "reply_changes": _gravities(record.reply.entries),
        "usage": record.reply.usage,
        "cache_lost": _cache_loss(record),
        "retried": mask(record.calls.retry_reason),
        "error": mask(response.error),
        "trace": record.trace.id if record.trace is not None else "",
    }
    return {key: value for key, value in fields.items() if value not in ("", None, False, {}) or key == "status"}


def describe(record: RequestRecord) -> dict[str, Any]:
    """Everything: the summary, both reports, and the bodies, if they were kept."""
    return {
        **_describe_reports(record),
        "request": _body(record.request.body),
        "rendered": _body(record.sent.body),
        "unchanged": record.is_unchanged,
    }


def capture(record: RequestRecord) -> dict[str, Any]:
    """A line of a capture: everything, with bodies as they were sent, as strings."""
    captured, request = record.captured, record.request
    fields: dict[str, Any] = {
        captures.FIELD: captures.VERSION,
        **_describe_reports(record),
        "agent": mask(request.agent),
        "session": mask(request.session),
        "replay_of": request.replay_of or None,
        "attempts": [_attempt_fields(attempt, record.times.began) for attempt in record.calls.attempts],
        "unchanged": record.is_unchanged,
        "request": _text(request.body),
        "rendered": _text(record.sent.body),
    }
    if captured is None:
        return fields
    return {
        **fields,
        "reply": _text(captured.data("received")),
        "response": _text(captured.data("sent")),
        "pieces": [[round(piece.at, 6), piece.direction, piece.size] for piece in captured.pieces()],
        "cut": captured.is_cut,
    }


def capture_lines(captured: Iterable[dict[str, Any]]) -> bytes:
    """Captures as JSONL."""
    return b"".join([msgspec.json.encode(each) + b"\n" for each in captured])


def _describe_reports(record: RequestRecord) -> dict[str, Any]:
    return {
        **summarize(record),
        "cost_usd": None if record.reply.cost is None else record.reply.cost / 1e9,
        "report": [_entry_fields(entry) for entry in order_by_gravity(record.sent.entries)],
        "reply_report": [_entry_fields(entry) for entry in order_by_gravity(record.reply.entries)],
    }


def _cache_loss(record: RequestRecord) -> dict[str, Any] | None:
    """What was cached before, and was read again."""
    loss = record.reply.cache_loss
    return None if loss is None else {"tokens": loss.tokens, "cause": loss.cause, "cost_usd": loss.extra / 1e9}


def _attempt_fields(attempt: RecordedAttempt, began: float) -> dict[str, Any]:
    """A call of an upstream, with times in seconds since the request began."""
    fields = {
        "upstream": attempt.upstream,
        "at": round(attempt.at - began, 6),
        "failed_at": round(attempt.failed_at - began, 6) if attempt.failed_at else None,
        "failure": attempt.kind,
        "retried": mask(attempt.retry_reason),
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _text(data: bytes) -> str | None:
    """Bytes as a string with its secrets masked; None: there are none."""
    return mask(data.decode("utf-8", "replace")) if data else None


def _entry_fields(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(entry)
    return {**fields, "reason": mask(entry.reason), "text": mask(str(entry))}


def _body(data: bytes) -> Any:
    """A body as JSON with its secrets masked; as a string if it is not JSON."""
    if not data:
        return None
    text = _text(data) or ""
    try:
        return msgspec.json.decode(text.encode())
    except (ValueError, RecursionError):
        return text


def _gravities(entries: tuple[Entry, ...]) -> dict[Gravity, int]:
    return entry_counts(entries).gravities if len(entries) > MANY else count_gravities(entries)


def _count_changes(entries: tuple[Entry, ...], reply_entries: tuple[Entry, ...]) -> str:
    """How much was changed in the request and in the reply, in one line."""
    sent, replied = _gravities(entries), _gravities(reply_entries)
    return describe_counts({gravity: sent.get(gravity, 0) + replied.get(gravity, 0) for gravity in GRAVITIES})


# --- the header -------------------------------------------------------------------------------------


def report_header(entries: tuple[Entry, ...], reply_entries: tuple[Entry, ...] = (), *, is_same: bool = False) -> str:
    """The short form of a report: how many losses, changes and housekeeping entries, and the reasons of the gravest.

    `reply_entries` is what was changed in the reply, as far as it is known when the header is sent.
    """
    if not entries and not reply_entries:
        return "unchanged" if is_same else "translated, nothing was changed"
    is_short = len(entries) + len(reply_entries) <= _MAX_CACHED_ENTRIES
    return _cached_header(entries, reply_entries) if is_short else _report_header(entries, reply_entries)


def _report_header(entries: tuple[Entry, ...], reply_entries: tuple[Entry, ...]) -> str:
    sent, replied = entry_counts(entries), entry_counts(reply_entries)
    of_reply = {id(entry) for entry in replied.gravest}
    gravest = order_by_gravity((*sent.gravest, *replied.gravest))[:SHOWN]
    reasons = "; ".join(f"in the reply: {entry}" if id(entry) in of_reply else str(entry) for entry in gravest)
    header = _mask_cached(f"{_count_changes(entries, reply_entries)}: {reasons}")
    return header if len(header) <= MAX_HEADER else header[: MAX_HEADER - 3] + "..."


_cached_header: Final = lru_cache(maxsize=256)(_report_header)
"""The changes of an agent's requests are the same, one after the other."""


# --- the line of the log ----------------------------------------------------------------------------


def log_line(record: RequestRecord) -> str:
    """A request in one line, for people."""
    request, route, response, calls = record.request, record.route, record.response, record.calls
    way = request.source
    if route.upstream:
        simulated = " (simulated)" if route.is_simulated else ""
        way = f"{request.source} {request.model} → {route.upstream}/{route.model}{simulated}"
    line = f"{_printable_masked(f'{response.status} {request.method} {request.path}  {way}')}"
    line += f"  {record.times.seconds * 1000:.0f} ms"
    if record.sent.entries or record.reply.entries:
        line += "  " + _count_changes(record.sent.entries, record.reply.entries)
    if calls.failures or calls.retry_reason or response.error:
        failed = ", ".join(f"{name} failed ({kind})" for name, kind in calls.failures) if response.status < 400 else ""
        retried = f"retried: {calls.retry_reason}" if calls.retry_reason else ""
        tail = "  ".join(filter(None, (failed, retried, response.error)))
        line += f"  {mask(_printable(tail))}" if tail else ""
    line = line[:MAX_LINE]
    return f"{line}  {record.id}" if record.times.arrived else line


# --- masking ----------------------------------------------------------------------------------------
# Paths and models are the same in most requests of a client, and masking them costs more than all the rest.


@lru_cache(maxsize=512)
def _masked(text: str) -> str:
    return mask(text)


def _mask_cached(text: str) -> str:
    return _masked(text) if len(text) <= _MAX_CACHED else mask(text)


@lru_cache(maxsize=512)
def _masked_line(text: str) -> str:
    return mask(_printable(text))


def _printable_masked(text: str) -> str:
    return _masked_line(text) if len(text) <= _MAX_CACHED else mask(_printable(text))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join([char if char.isprintable() else "?" for char in text])

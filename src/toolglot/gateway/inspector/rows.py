"""A row of the inspector's list: one request in short, from its record or from a capture.

    row = row_of(record)
    row = row_of_capture({"toolglot_capture": 1, …})

Laws: secrets are masked. What is not known is null. `conversation`, `parent`, `turns`, `title` and `latest` need the
body: they are filled in by `conversation_index.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolglot.conversation.report import GRAVITIES, count_gravities
from toolglot.gateway.observability.report_counts import MANY, entry_counts
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask

Row = dict[str, Any]

SHOWN: Final = frozenset({"generate", "compact", "embed", "pass"})
"""Actions of requests that are shown."""
MAX_TEXT: Final = 300
CLIENT_DIGITS: Final = 12
_PLURALS: Final = {"loss": "losses", "change": "changes", "housekeeping": "housekeeping"}
_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_AGENT: Final = re.compile(r"[\w.+-]{1,60}(?:/[\w.+-]{1,40})?")
UNGROUPED: Final[Mapping[str, Any]] = dict.fromkeys(("conversation", "parent", "turns", "title", "latest"))


def agent_of(user_agent: str) -> str:
    """A client program in short: the first product of its user-agent."""
    found = _AGENT.match(user_agent)
    return found[0] if found is not None else ""


def row_of(record: RequestRecord, name_of: Callable[[str], str] = str) -> Row:
    """A request that runs or is over. `name_of`: the name of a client's key."""
    request, route, response, times = record.request, record.route, record.response, record.times
    is_over = times.seconds > 0
    usage = record.reply.usage or {}
    is_failed = bool(is_over and (response.status >= 400 or response.status == 0 or response.is_broken))
    return {
        "id": record.id,
        "time": round(times.started_at, 3),
        "client": name_of(request.client) or request.client[:CLIENT_DIGITS],
        "agent": _short(request.agent),
        "protocol": request.source,
        "path": _short(request.path),
        "model": _short(request.model),
        "upstream": route.upstream or None,
        "sent_model": _short(route.model),
        "target": record.sent.target or None,
        "status": response.status or None,
        "state": ("failed" if is_failed else "done") if is_over else "running",
        "stream": request.is_stream,
        "seconds": round(times.seconds, 4) if is_over else None,
        "first_byte": None if times.first_byte is None else round(times.first_byte, 4),
        **{name: usage.get(name) for name in _COUNTS},
        "cost_usd": None if record.reply.cost is None else record.reply.cost / 1e9,
        **_gravities(record),
        "stop": record.reply.stop or None,
        "error": _short(response.error),
        **UNGROUPED,
        "replay_of": request.replay_of or None,
        "simulated": route.is_simulated,
        "bodies": bool(request.body),
    }


def row_of_capture(capture: Mapping[str, Any]) -> Row:
    """A request of a capture. Fields of a wrong type are unknown."""
    usage = _of(capture, "usage", dict) or {}
    status, error = _of(capture, "status", int), _of(capture, "error", str)
    counts = dict.fromkeys(GRAVITIES, 0)
    for name in ("changes", "reply_changes"):
        for gravity, count in (_of(capture, name, dict) or {}).items():
            if gravity in counts and isinstance(count, int):
                counts[gravity] += count
    return {
        "id": _of(capture, "id", str),
        "time": _number(capture.get("time")),
        "client": _of(capture, "client", str),
        "agent": _of(capture, "agent", str),
        "protocol": _of(capture, "protocol", str),
        "path": _of(capture, "path", str),
        "model": _of(capture, "model", str),
        "upstream": _of(capture, "upstream", str),
        "sent_model": _of(capture, "sent_model", str),
        "target": _of(capture, "target", str),
        "status": status,
        "state": "failed" if error or (status is not None and status >= 400) else _state_without_error(capture),
        "stream": capture.get("stream") is True,
        "seconds": _number(capture.get("seconds")),
        "first_byte": _number(capture.get("first_byte")),
        **{name: _of(usage, name, int) for name in _COUNTS},
        "cost_usd": _number(capture.get("cost_usd")),
        **{_PLURALS[gravity]: count for gravity, count in counts.items()},
        "stop": _of(capture, "stop", str),
        "error": error,
        **UNGROUPED,
        "replay_of": _of(capture, "replay_of", str),
        "simulated": capture.get("simulated") is True,
        "bodies": bool(capture.get("request")),
    }


def _state_without_error(capture: Mapping[str, Any]) -> str:
    return "unsent" if capture.get("sent") is False else "done"


def _gravities(record: RequestRecord) -> dict[str, int]:
    counts = dict.fromkeys(_PLURALS.values(), 0)
    for entries in (record.sent.entries, record.reply.entries):
        found = entry_counts(entries).gravities if len(entries) > MANY else count_gravities(entries)
        for gravity, count in found.items():
            counts[_PLURALS[gravity]] += count
    return counts


def _short(text: str) -> str | None:
    return mask(text[:MAX_TEXT]) if text else None


def _of(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    return value if type(value) is kind else None


def _number(value: Any) -> float | int | None:
    return value if type(value) in (int, float) else None

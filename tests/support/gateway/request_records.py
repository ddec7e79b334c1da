"""Records of requests that are over, as the gateway would have written them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolglot.conversation.report import Entry
from toolglot.gateway.observability.request_record import RecordedRendering, RecordedRoute, RequestRecord


def ended_request(
    model: str = "gpt-5.5",
    upstream: str = "openai",
    status: int = 200,
    *,
    id: str = "tg_1",
    client: str = "client",
    requested_model: str = "",
    is_stream: bool = False,
    is_simulated: bool = False,
    target: str = "openai",
    entries: tuple[Entry, ...] = (),
    reply_entries: tuple[Entry, ...] = (),
    usage: Mapping[str, int] | None = None,
    stop: str = "",
    tries: int = 1,
    failures: Sequence[tuple[str, str]] = (),
    retry_reason: str = "",
    error: str = "",
    store_errors: int = 0,
    body: bytes = b"",
    started_at: float | None = None,
    arrived: float = 0.0,
    sent: float = 0.0,
    first_byte: float | None = None,
) -> RequestRecord:
    record = RequestRecord(id, "POST", "/v1/chat/completions", action="generate", source="openai", client=client)
    record.request.name_model(requested_model, is_stream=is_stream)
    record.request.body = body
    record.route = RecordedRoute(upstream, model, is_simulated)
    record.sent = RecordedRendering(target, b"", entries)
    record.reply.report(reply_entries)
    record.reply.count(usage)
    record.reply.end(stop, "")
    calls, response, times = record.calls, record.response, record.times
    calls.count, calls.failures, calls.retry_reason = tries, [*failures], retry_reason
    response.status, response.error, response.store_errors = status, error, store_errors
    times.seconds, times.arrived, times.sent, times.first_byte = 0.5, arrived, sent, first_byte
    times.started_at = times.started_at if started_at is None else started_at
    return record

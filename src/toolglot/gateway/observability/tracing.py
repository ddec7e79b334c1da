"""Spans of OpenTelemetry for requests to models, with the names of its conventions for generative AI.

    tracing = open_tracing(report)                  # None: the packages are not there, which is reported
    record.trace = tracing.begin(record, headers)   # a span of the request, below the client's own
    record.begin_call(upstream)           # a span for each call of an upstream; headers that carry it on
    record.trace.end(record)

Laws: a span contains nothing of a conversation, and no key. The trace of a client continues at the upstream; its
baggage is not forwarded. Without `tracing = true`, nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from toolglot import __version__
from toolglot.errors import how_to_install
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.masking import mask
from toolglot.upstream import Upstream

SCOPE: Final = "toolglot.gateway"
SERVICE: Final = "toolglot"
PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "kimi": "moonshot_ai",
    "mistral": "mistral_ai",
    "openai_responses": "openai",
    "vertex": "gcp.vertex_ai",
    "vertex_claude": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The names of targets in `gen_ai.provider.name`, if they differ from their own."""
USAGE: Final = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_STOPS: Final = {"filter": "content_filter"}
_GOOGLES: Final = ("gemini", "vertex")
_PORTS: Final = {"https": 443, "http": 80}
_MAX_LENGTH: Final = 200


class Tracing:
    """Makes spans with a tracer of OpenTelemetry."""

    def __init__(self, provider: Any, *, is_own: bool = False) -> None:
        self._api = importlib.import_module("opentelemetry.trace")
        propagation = importlib.import_module("opentelemetry.trace.propagation.tracecontext")
        self._provider = provider
        self._is_own = is_own
        self._tracer = provider.get_tracer(SCOPE, __version__)
        self._carrier = propagation.TraceContextTextMapPropagator()
        self._nothing = importlib.import_module("opentelemetry.context").Context()

    def begin(self, record: RequestRecord, headers: Mapping[str, str]) -> Trace:
        """The span of a request, which continues the trace that its headers name."""
        carried = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        parent = self._carrier.extract(carried, context=self._nothing)
        attributes = {"http.request.method": record.request.method, "url.path": mask(record.request.path[:_MAX_LENGTH])}
        attributes["toolglot.request.id"] = record.id
        span = self._tracer.start_span(
            f"{record.request.method} {record.request.action}",
            context=parent,
            kind=self._api.SpanKind.SERVER,
            attributes=attributes,
        )
        return Trace(self, span)

    def begin_call(self, span: Any, name: str, attributes: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        """A span below another one, and the headers that carry it on."""
        call_span = self._tracer.start_span(
            name,
            context=self._api.set_span_in_context(span, self._nothing),
            kind=self._api.SpanKind.CLIENT,
            attributes=attributes,
        )
        headers: dict[str, str] = {}
        self._carrier.inject(headers, context=self._api.set_span_in_context(call_span, self._nothing))
        return call_span, headers

    def fail(self, span: Any, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._api.StatusCode.ERROR)

    def close(self) -> None:
        """Send the remaining spans."""
        if self._is_own:
            self._provider.shutdown()


class Trace:
    """The spans of one request."""

    def __init__(self, tracing: Tracing, span: Any) -> None:
        self._tracing = tracing
        self._span = span
        self._call_span: Any = None
        self.id: str = f"{span.get_span_context().trace_id:032x}"

    def begin_call(self, record: RequestRecord, upstream: Upstream) -> dict[str, str]:
        """An upstream is called. An earlier call has failed."""
        if self._call_span is not None:
            self._tracing.fail(self._call_span, record.calls.last_failure or "other")
            self._call_span.end()
        model = mask(record.route.model[:_MAX_LENGTH])
        operation = "generate_content" if record.sent.target in _GOOGLES else "chat"
        name, port = _server(upstream.url)
        attributes = {"server.address": name, "server.port": port, "toolglot.upstream": upstream.name}
        if model:
            attributes |= {
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": PROVIDERS.get(record.sent.target, record.sent.target),
                "gen_ai.request.model": model,
                "gen_ai.request.stream": record.request.is_stream,
                "toolglot.simulated": upstream.is_simulated,
            }
        self._call_span, headers = self._tracing.begin_call(
            self._span, f"{operation} {model}" if model else record.request.method, attributes
        )
        return headers

    def end(self, record: RequestRecord) -> None:
        """The request is over."""
        kind = error_type(record)
        if self._call_span is not None:
            self._call_span.set_attributes(_reply_attributes(record))
            if kind:
                self._tracing.fail(self._call_span, kind)
            self._call_span.end()
        self._span.set_attributes(_request_attributes(record))
        if kind and (
            record.response.status >= 500 or record.response.is_broken or not record.response.status
        ):  # a client error is not one of the server
            self._tracing.fail(self._span, kind)
        self._span.end()


def error_type(record: RequestRecord) -> str:
    """The kind of what went wrong; empty: nothing did."""
    if record.response.is_gone:
        return "cancelled"
    if record.response.is_broken or record.response.status >= 400:
        return record.calls.last_failure or str(record.response.status)
    return ""


def _reply_attributes(record: RequestRecord) -> dict[str, Any]:
    """The attributes of a reply."""
    usage = record.reply.usage or {}
    known: dict[str, Any] = {USAGE[name]: count for name, count in usage.items() if name in USAGE}
    if record.reply.stop:
        known["gen_ai.response.finish_reasons"] = [_STOPS.get(record.reply.stop, record.reply.stop)]
    if record.reply.model:
        known["gen_ai.response.model"] = mask(record.reply.model[:_MAX_LENGTH])
    if record.times.first_piece_at:
        known["gen_ai.response.time_to_first_chunk"] = record.times.first_piece_at - record.calls.last_at
    return known


def _request_attributes(record: RequestRecord) -> dict[str, Any]:
    known: dict[str, Any] = {"toolglot.protocol": record.request.source, "toolglot.changes": len(record.sent.entries)}
    if record.response.status:
        known["http.response.status_code"] = record.response.status
    if record.added_seconds is not None:
        known["toolglot.added_seconds"] = record.added_seconds
    if record.calls.count > 1:
        known["http.request.resend_count"] = record.calls.count - 1
    return known


@lru_cache(maxsize=256)
def _server(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)


# --- set-up -----------------------------------------------------------------------------------------


def open_tracing(report: Callable[[str], None]) -> Tracing | None:
    """Tracing with the provider that the program has set up, or else with the exporter that the environment names
    (`OTEL_EXPORTER_OTLP_ENDPOINT`)."""
    try:
        api = importlib.import_module("opentelemetry.trace")
    except ImportError:
        report(f"tracing = true needs OpenTelemetry, so there are no spans: {how_to_install('otel')}")
        return None
    provider = api.get_tracer_provider()
    if not isinstance(provider, api.ProxyTracerProvider):
        return Tracing(provider)
    try:
        return Tracing(_exporting_provider(), is_own=True)
    except ImportError:
        report(f"no exporter for spans: {how_to_install('otel')}, or set up a tracer provider")
        return None


def _exporting_provider() -> Any:
    """A provider that sends spans by OTLP, configured by the environment variables of OpenTelemetry."""
    sdk = importlib.import_module("opentelemetry.sdk.trace")
    export = importlib.import_module("opentelemetry.sdk.trace.export")
    resources = importlib.import_module("opentelemetry.sdk.resources")
    otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    named = {"service.version": __version__}
    detected = resources.Resource.create()
    if detected.attributes.get("service.name", "unknown_service").startswith("unknown_service"):
        named["service.name"] = SERVICE
    provider = sdk.TracerProvider(resource=resources.Resource.create(named))
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    return provider

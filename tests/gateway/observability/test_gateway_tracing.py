"""Spans: under the names of OpenTelemetry's conventions, in the client's trace, and without any content."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from support.gateway.http_client import KEY, ask, request_of
from support.gateway.mixed_traffic import SCRIPT, make_traffic, say
from support.gateway.served_gateway import Served, config_for, gateway
from support.waiting import wait_until
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.observability.record_text import summarize
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import DISCONNECTED, RequestRecord
from toolglot.gateway.observability.tracing import PROVIDERS, USAGE, Tracing, error_type, open_tracing
from toolglot.profiles import names
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = PARENT.removesuffix("01") + "00"
TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
CONVENTIONAL = {
    *("anthropic", "aws.bedrock", "azure.ai.openai", "cohere", "deepseek", "gcp.gemini", "gcp.vertex_ai", "groq"),
    *("mistral_ai", "moonshot_ai", "openai", "x_ai"),
}
"""Well-known values of `gen_ai.provider.name` that have a target here."""


class Traced:
    """A gateway whose spans are kept."""

    def __init__(self, served: Served, exporter: InMemorySpanExporter) -> None:
        self.served = served
        self._exporter = exporter

    def wait_for_server_span(self) -> None:
        """The end of a stream reaches its client before the span of the request ends."""
        wait_until(lambda: any(span.kind is SpanKind.SERVER for span in self._exporter.get_finished_spans()))

    def spans(self) -> Sequence[ReadableSpan]:
        """Those since the last look, in the order of their ends."""
        found = self._exporter.get_finished_spans()
        self._exporter.clear()
        return found


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


@pytest.fixture
def traced(simulated: Server) -> Iterator[Traced]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    config = config_for(simulated, settings="tracing = true")
    request_log = RequestLog(max_remembered=10, form="off")
    app = Gateway(config, upstreams=Upstreams(config), request_log=request_log, tracing=Tracing(provider))
    with running(app) as url:
        yield Traced(Served(url, app), exporter)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def of(span: ReadableSpan) -> tuple[int, int, int]:
    """The trace of a span, its own id, and that of its parent."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id, span.parent.span_id if span.parent is not None else 0


def test_a_request_to_a_model_is_a_span_of_the_conventions_below_one_of_the_gateways(traced: Traced) -> None:
    assert say(traced.served, "Hello", protocol="anthropic", model="openai/gpt-5.5", stream=True).status == 200
    traced.wait_for_server_span()
    client_span, served = traced.spans()
    assert (client_span.name, client_span.kind) == ("chat gpt-5.5", SpanKind.CLIENT)
    fields = attributes(client_span)
    assert fields.pop("gen_ai.response.time_to_first_chunk") > 0
    assert fields.pop("gen_ai.usage.input_tokens") > 0
    assert fields.pop("gen_ai.usage.output_tokens") > 0
    assert fields.pop("server.port") > 0
    assert {name: value for name, value in fields.items() if name not in USAGE.values()} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.5",
        "gen_ai.request.stream": True,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": "gpt-5.5",
        "server.address": "127.0.0.1",
        "toolglot.simulated": False,
        "toolglot.upstream": "openai",
    }
    assert (served.name, served.kind) == ("POST generate", SpanKind.SERVER)
    fields = attributes(served)
    assert fields["http.response.status_code"] == 200
    assert fields["url.path"] == "/v1/messages"
    assert fields["toolglot.added_seconds"] > 0
    assert fields["toolglot.request.id"] == traced.served.records[-1].id
    assert of(client_span)[2] == of(served)[1]
    assert of(served)[2] == 0
    assert client_span.status.status_code == served.status.status_code == StatusCode.UNSET


def test_gemini_has_an_operation_of_its_own(traced: Traced) -> None:
    assert say(traced.served, "Hello", model="gemini/gemini-3-pro-preview").status == 200
    client_span, _ = traced.spans()
    assert client_span.name == "generate_content gemini-3-pro-preview"
    assert attributes(client_span)["gen_ai.provider.name"] == "gcp.gemini"


def test_the_trace_of_a_client_goes_on_to_the_upstream(traced: Traced, simulated: Server) -> None:
    path, body = request_of("openai", "mistral/mistral-large-latest")
    headers = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "user=ada"}
    assert ask(traced.served, path, body, headers=headers).status == 200
    client_span, served = traced.spans()
    assert of(served)[0] == of(client_span)[0] == TRACE_ID
    assert of(served)[2] == 0xB7AD6B7169203331
    sent = simulated.requests[-1].headers
    assert sent["traceparent"] == f"00-{TRACE_ID:032x}-{of(client_span)[1]:016x}-01"
    assert sent["tracestate"] == "vendor=1"
    assert "baggage" not in sent
    assert summarize(traced.served.records[-1])["trace"] == f"{TRACE_ID:032x}"


def test_a_client_that_is_not_sampled_is_not_traced_and_its_trace_goes_on(traced: Traced, simulated: Server) -> None:
    path, body = request_of("openai", "mistral/mistral-large-latest")
    assert ask(traced.served, path, body, headers={"traceparent": UNSAMPLED}).status == 200
    assert traced.spans() == ()
    assert simulated.requests[-1].headers["traceparent"].startswith(f"00-{TRACE_ID:032x}-")
    assert simulated.requests[-1].headers["traceparent"].endswith("-00")


def test_nothing_of_what_was_sent_and_no_key_is_in_a_span(traced: Traced) -> None:
    path, body = request_of("openai", "mistral/mistral-large-latest", "the secret words")
    ask(traced.served, f"{path}?key={KEY}", body)
    make_traffic(traced.served)
    text = "".join(span.to_json() for span in traced.spans())
    for secret in ("secret words", "Hello.", "simulated-key", KEY, "read_file", "Let me see", "It says"):
        assert secret not in text


def test_what_goes_wrong_is_reported_by_its_kind(traced: Traced) -> None:
    assert say(traced.served, "Be overloaded").status == 503
    client_span, served = traced.spans()
    assert attributes(client_span)["error.type"] == attributes(served)["error.type"] == "overloaded"
    assert client_span.status.status_code == served.status.status_code == StatusCode.ERROR
    assert say(traced.served, "Be broken", stream=True).status == 200
    traced.wait_for_server_span()
    client_span, served = traced.spans()
    assert attributes(client_span)["error.type"] == attributes(served)["error.type"] == "server"
    assert ask(traced.served, "/v1/chat/completions", b"{").status == 400
    (served,) = traced.spans()
    assert "error.type" not in attributes(served)  # it is the client's own
    assert attributes(served)["http.response.status_code"] == 400


def test_a_second_try_is_a_span_of_its_own(traced: Traced, simulated: Server) -> None:
    make_traffic(traced.served)
    refused, client_span, served = traced.spans()[-3:]
    assert attributes(refused)["error.type"] == "bad_request"
    assert "error.type" not in attributes(client_span)
    assert of(refused)[2] == of(client_span)[2] == of(served)[1]
    assert attributes(served)["http.request.resend_count"] == 1
    first, second = [request.headers["traceparent"] for request in simulated.requests[-2:]]
    assert first != second


def test_counts_are_traced_and_what_is_not_for_a_model_is_not(traced: Traced) -> None:
    _, body = request_of("anthropic", "mistral/mistral-large-latest")
    assert ask(traced.served, "/v1/messages/count_tokens", body).status == 200
    assert [span.name for span in traced.spans()] == ["POST count"]
    for path in ("/health", "/metrics", "/v1/models", "/toolglot/requests"):
        assert ask(traced.served, path).status == 200
    assert traced.spans() == ()


def test_what_is_passed_on_is_traced_without_a_model(simulated: Server) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing(provider)
    record = RequestRecord("tg_1", "POST", "/v1/embeddings")
    record.request.action = "pass"
    record.trace = tracing.begin(record, {})
    config = config_for(simulated)
    upstream = next(each for each in Upstreams(config).configured_upstreams() if each.name == "openai")
    assert "traceparent" in record.begin_call(upstream)
    record.response.status = 200
    record.trace.end(record)
    client_span, _ = exporter.get_finished_spans()
    assert client_span.name == "POST"
    assert "gen_ai.operation.name" not in attributes(client_span)


def test_without_keys_there_is_no_span_for_who_has_none(simulated: Server) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    config = config_for(simulated, settings='client_keys = ["env:K"]', environ={"K": KEY})
    app = Gateway(config, request_log=RequestLog(max_remembered=10, form="off"), tracing=Tracing(provider))
    with running(app) as url:
        path, body = request_of("openai", "mistral/mistral-large-latest")
        assert ask(url, path, body, key="another", headers={"traceparent": PARENT}).status == 401
        assert exporter.get_finished_spans() == ()


def test_providers_have_the_names_of_the_conventions() -> None:
    assert set(PROVIDERS) <= set(names())
    assert {PROVIDERS.get(name, name) for name in names()} >= CONVENTIONAL


def test_names_are_those_of_the_installed_conventions() -> None:
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for value in vars(conventions).values() if isinstance(value, str)}
    used = {*USAGE.values(), "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}
    used |= {"gen_ai.request.stream", "gen_ai.response.finish_reasons", "gen_ai.response.model"}
    assert used | {"gen_ai.response.time_to_first_chunk"} <= known


@pytest.mark.parametrize(
    ("status", "error", "is_broken", "kind"),
    [
        (200, "", False, ""),
        (0, "", False, "cancelled"),
        (200, DISCONNECTED, False, "cancelled"),
        (404, "x", False, "404"),
        (200, "x", True, "200"),
    ],
)
def test_the_kind_of_an_error(status: int, error: str, is_broken: bool, kind: str) -> None:
    record = RequestRecord("tg_1", "POST", "/")
    record.response.status, record.response.error, record.response.is_broken = status, error, is_broken
    assert error_type(record) == kind


# --- what is installed ------------------------------------------------------------------------------


def test_without_tracing_nothing_of_opentelemetry_is_used(simulated: Server) -> None:
    with gateway(simulated) as served:
        assert say(served, "Hello").status == 200
        assert served.app.tracing is None
        assert "traceparent" not in simulated.requests[-1].headers


def test_where_opentelemetry_is_missing_that_is_reported_and_requests_are_answered(
    simulated: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    logged: list[str] = []
    assert open_tracing(logged.append) is None
    assert "pip install '.[otel]' in a clone of toolglot" in logged[0]
    with gateway(simulated, settings="tracing = true") as served:
        assert say(served, "Hello").status == 200


def test_without_an_exporter_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    logged: list[str] = []
    assert open_tracing(logged.append) is None
    assert "no exporter for spans" in logged[0]


def test_a_provider_that_the_program_has_set_up_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    tracing = open_tracing(lambda _: None)
    assert tracing is not None
    tracing.close()  # the program's own goes on
    record = RequestRecord("tg_1", "POST", "/")
    record.response.status = 200
    tracing.begin(record, {}).end(record)
    assert len(exporter.get_finished_spans()) == 1


class FakeExporter(InMemorySpanExporter):
    """Stands for the exporter over HTTP, which is not installed for tests."""

    made: ClassVar[list[FakeExporter]] = []

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        FakeExporter.made.append(self)

    def shutdown(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(("environ", "service"), [("", "toolglot"), ("gateway-eu", "gateway-eu")])
def test_without_one_spans_go_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, environ: str, service: str
) -> None:
    module = type(builtins)("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    module.OTLPSpanExporter = FakeExporter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("OTEL_SERVICE_NAME", environ)
    tracing = open_tracing(lambda _: None)
    assert tracing is not None
    record = RequestRecord("tg_1", "POST", "/")
    record.response.status = 200
    tracing.begin(record, {}).end(record)
    tracing.close()
    exporter = FakeExporter.made[-1]
    (span,) = exporter.get_finished_spans()
    assert span.resource.attributes["service.name"] == service
    assert exporter.is_closed

"""What stays of an upstream that failed, once another one has answered: that it failed, and nothing else.

Every way to fail in which the client has seen nothing yet, on a gateway that runs as a process: its log, its metrics
and its usage tell of the answer that the client got. Only the count of the upstream's errors tells of the other one.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from support.gateway.gateway_process import Process, process
from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, config_for
from support.hostile.hostile_upstream import END, EVENTS, GOOD, Hostile, Way, chunk, delta, hostile, once, whole
from support.waiting import wait_until
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.accounting.usage import Amounts, read_usage
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.tracing import Tracing
from toolglot.simulator import serve
from toolglot.store import open_store

USED = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
FALSE = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000, "total_tokens": 2_000_000}
"""What the ones that fail say that they have used."""
ERROR = {"error": {"message": "it broke", "type": "server_error", "code": None}}


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def used(usage: dict[str, int]) -> bytes:
    return event({"choices": [], "usage": usage})


DEEP = b"[" * 300 + b'"\\ud800"' + b"]" * 300
WHOLE: dict[str, Way] = {
    "closed": once(b""),
    "refused": once(whole(json.dumps({**ERROR, "usage": FALSE}).encode(), 500)),
    "half": once(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + json.dumps({"usage": FALSE}).encode()),
    "not-json": once(whole(b"<html>")),
    "in-band": once(whole(json.dumps({**ERROR, "usage": FALSE}).encode())),
    "limit": once(whole(json.dumps({**GOOD, "usage": FALSE}).encode().replace(b'"hi"', DEEP))),
}
STREAMED: dict[str, Way] = {
    "closed": once(b""),
    "refused": once(whole(json.dumps(ERROR).encode(), 503)),
    "head": once(EVENTS),
    "comment": once(EVENTS + chunk(b": one moment\n\n")),
    "usage": once(EVENTS + chunk(used(FALSE))),
    "error": once(EVENTS + chunk(event({**ERROR, "usage": FALSE})) + b"0\r\n\r\n"),
    "words-and-error": once(EVENTS + chunk(delta("half of a") + used(FALSE) + event(ERROR)) + b"0\r\n\r\n"),
    "limit": once(EVENTS + chunk(used(FALSE) + delta("D").replace(b'"D"', DEEP)) + b"0\r\n\r\n"),
}
WAYS: dict[str, Way] = {
    **{f"{name}-whole": way for name, way in WHOLE.items()},
    **{f"{name}-stream": way for name, way in STREAMED.items()},
    "good": once(whole(json.dumps({**GOOD, "usage": USED}).encode())),
    "good-stream": once(EVENTS + chunk(delta("hi")) + chunk(used(USED) + END) + b"0\r\n\r\n"),
}
CASES = [name for name in WAYS if not name.startswith("good")]


def config_of(provider: Hostile) -> tuple[str, dict[str, str]]:
    """Upstreams, and a chain for each case: the one that fails, before the one that answers."""
    upstreams = "".join(
        f'[upstreams.{name}]\nurl = "{provider.url}"\nbreaker_failures = 10000\n' for name in ("bad", "well")
    )
    goods = {case: "good-stream" if case.endswith("-stream") else "good" for case in CASES}
    return upstreams, {f"chain-{case}": f'["bad/{case}", "well/{good}"]' for case, good in goods.items()}


def request(case: str) -> tuple[str, dict[str, Any]]:
    return request_of("anthropic", f"chain-{case}", stream=case.endswith("-stream"))


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    with hostile(WAYS) as running_provider:
        yield running_provider


def samples(text: str, name: str) -> dict[str, float]:
    """The numbers of one metric, by their labels as they are written."""
    found = re.findall(rf"^{name}\{{(.*)\}} (\S+)$", text, re.MULTILINE)
    return {labels: float(number) for labels, number in found}


def lines_of(served: Process) -> list[dict[str, Any]]:
    return [line for line in served.events("request") if line["path"] == "/v1/messages"]


def line_of(served: Process, number: int) -> dict[str, Any]:
    """The line of the log for the request of this number, from 1, when it is written."""
    wait_until(lambda: len(lines_of(served)) == number)
    return lines_of(served)[-1]


def test_nothing_of_the_one_that_failed_is_in_the_report_of_the_answer(provider: Hostile, tmp_path: Path) -> None:
    upstreams, models = config_of(provider)
    named = "".join(f'"{name}" = {goal}\n' for name, goal in models.items())
    settings = f'metrics = "open"\n{upstreams}[models]\n{named}'
    with serve({"rules": []}) as simulated, process(tmp_path, simulated, settings=settings) as served:
        for number, case in enumerate(CASES, 1):
            got = ask(served.url, *request(case))
            assert (got.status, got.headers["x-toolglot-upstream"].partition("/")[0]) == (200, "well"), case
            assert b"hi" in got.data, case
            assert b"half of a" not in got.data, case
            assert "bad did not answer" in got.headers["x-toolglot-report"], case
            line = line_of(served, number)
            assert (line["status"], line["upstream"], line["tries"]) == (200, "well", 2), case
            assert "error" not in line, case
            assert line["usage"] == {"input_tokens": 7, "output_tokens": 3}, case
            assert line["stop"] == "stop", case
        text = ask(served.url, "/metrics").data.decode()
    total = len(CASES)
    requests = samples(text, "toolglot_requests_total")
    assert sum(number for labels, number in requests.items() if 'upstream="well"' in labels) == total
    assert not [labels for labels in requests if "broken" in labels or 'upstream="bad"' in labels]
    assert sum(samples(text, "toolglot_upstream_errors_total").values()) == total, "each failure is counted once"
    assert all('upstream="bad"' in labels for labels in samples(text, "toolglot_upstream_errors_total"))
    assert samples(text, "toolglot_retries_total") == {'upstream="well"': total}
    tokens = samples(text, "toolglot_tokens_total")
    assert sum(tokens.values()) == total * 10, "the tokens of the answers, and no others"
    assert all('upstream="well"' in labels for labels in tokens)
    rows = asyncio.run(usage_in(tmp_path / "store.db"))
    amounts = sum((row.amounts for row in rows), Amounts())
    assert {row.upstream for row in rows} == {"well"}
    assert (amounts.requests, amounts.failed, amounts.uncounted) == (total, 0, 0)
    assert (amounts.input, amounts.output) == (7 * total, 3 * total)


async def usage_in(file: Path) -> Any:
    store = open_store(str(file))
    try:
        return await read_usage(store)
    finally:
        await store.close()


@pytest.mark.parametrize("case", CASES)
def test_the_spans_say_who_failed_and_that_the_request_did_not(provider: Hostile, case: str) -> None:
    exporter = InMemorySpanExporter()
    spans = TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    upstreams, models = config_of(provider)
    config = config_for(None, models=models, settings="tracing = true", upstreams=upstreams)
    app = Gateway(
        config,
        upstreams=Upstreams(config),
        request_log=RequestLog(max_remembered=10, form="off"),
        tracing=Tracing(spans),
    )
    with running(app) as url:
        served = Served(url, app)
        assert ask(served, *request(case)).status == 200
        record = served.records[-1]
    bad, well, whole_request = exporter.get_finished_spans()
    assert [span.status.status_code for span in (bad, well, whole_request)] == [
        StatusCode.ERROR,
        StatusCode.UNSET,
        StatusCode.UNSET,
    ]
    assert dict(well.attributes or {})["gen_ai.usage.input_tokens"] == 7
    assert "gen_ai.usage.input_tokens" not in dict(bad.attributes or {})
    assert (record.response.is_broken, record.response.error, len(record.calls.failures)) == (False, "", 1)
    assert record.times.first_byte is None or record.times.first_byte >= 0


@pytest.mark.parametrize("case", CASES)
def test_the_breaker_of_the_one_that_failed_counts_and_that_of_the_other_does_not(provider: Hostile, case: str) -> None:
    upstreams, models = config_of(provider)
    upstreams = upstreams.replace("breaker_failures = 10000", "breaker_failures = 1")
    config = config_for(None, models=models, upstreams=upstreams)
    with running(
        Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=10, form="off"))
    ) as url:
        assert ask(url, *request(case)).status == 200
        calls_before = len(provider.heads)
        again = ask(url, *request(case))
        assert again.status == 200
        is_trouble = case != "not-json-whole"  # a model that writes nonsense says nothing of its server
        assert len(provider.heads) - calls_before == (1 if is_trouble else 2), "one that is in trouble is left alone"


@pytest.mark.parametrize("stream", ["whole", "stream"])
def test_where_the_next_one_fails_too_its_own_failure_is_reported(provider: Hostile, stream: str) -> None:
    upstreams, _ = config_of(provider)
    last = '[upstreams.last]\nurl = "http://127.0.0.1:9/v1"\n'
    models = {"all": f'["bad/limit-{stream}", "last/m"]'}
    config = config_for(None, models=models, upstreams=upstreams + last)
    app = Gateway(config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=10, form="off"))
    with running(app) as url:
        served = Served(url, app)
        got = ask(served, *request_of("anthropic", "all", stream=stream == "stream"))
        record = served.records[-1]
    assert got.status == 502
    assert "last (127.0.0.1:9) cannot be reached" in got.body["error"]["message"]
    assert "limit" not in got.body["error"]["message"]
    assert record.calls.failures == [("bad", "server"), ("last", "unreachable")]
    assert (record.reply.usage, record.response.is_broken) == (None, False)

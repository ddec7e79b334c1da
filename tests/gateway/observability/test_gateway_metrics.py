"""What `/metrics` says: read by Prometheus' own parser, true, bounded, and shown to whom it is for."""

from __future__ import annotations

import io
import json
import math
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

import toolglot.gateway
from support.gateway.http_client import ask, request_of
from support.gateway.mixed_traffic import SCRIPT, lose_cache, make_traffic, number, samples, samples_of, say
from support.gateway.request_records import ended_request
from support.gateway.served_gateway import Served, config_for, gateway
from support.hostile.raw_sockets import connect, post
from support.waiting import wait_until
from toolglot import profiles
from toolglot.conversation.report import Entry
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.observability.metrics import (
    CONTENT_TYPE,
    FAMILIES,
    MAX_MODELS,
    MAX_SERIES,
    MAX_UPSTREAMS,
    OTHER,
    Counter,
    Family,
    Histogram,
    Metrics,
    family_of,
    process,
)
from toolglot.gateway.observability.record_text import summarize
from toolglot.gateway.observability.request_log import LogForm, RequestLog
from toolglot.gateway.observability.request_record import DISCONNECTED, RequestRecord
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import StoreError

KEYS = 'client_keys = ["env:CLIENT_KEY"]'
ENVIRON = {"CLIENT_KEY": "a-client-key-of-some-length"}


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


@pytest.fixture(scope="module")
def seen(simulated: Server) -> Iterator[list[Sample]]:
    with gateway(simulated) as served:
        make_traffic(served)
        yield samples(served)


# --- over the wire ----------------------------------------------------------------------------------


def test_every_metric_is_there_under_its_name_and_kind_as_prometheus_reads_it(simulated: Server) -> None:
    with gateway(simulated) as served:
        make_traffic(served)
        lose_cache(served)
        got = ask(served, "/metrics")
        assert got.headers["content-type"] == CONTENT_TYPE
        read = {family.name: family for family in text_string_to_metric_families(got.data.decode())}
        for family in FAMILIES:
            found = read[family.name.removesuffix("_total")]
            assert found.type == family.kind
            assert found.documentation == family.help
            assert found.samples, f"{family.name} says nothing after traffic of every kind"
            assert {key for sample in found.samples for key in sample.labels} - {"le"} == set(family.labels)
        assert len(read) == len(FAMILIES)
        assert ask(served, "/metrics", method="HEAD").data == b""
        assert ask(served, "/metrics", b"").status == 405


def test_requests_are_counted_by_protocol_upstream_model_and_status(seen: list[Sample]) -> None:
    at = {"action": "generate", "upstream": "mistral", "model": "mistral-large"}
    for protocol in ("anthropic", "openai", "gemini"):
        assert number(seen, "toolglot_requests_total", protocol=protocol, status="2xx", **at) == 2
    assert number(seen, "toolglot_requests_total", status="5xx", **at) == 1
    assert number(seen, "toolglot_requests_total", status="broken", **at) == 1
    assert number(seen, "toolglot_requests_total", status="4xx", upstream="", model="") == 1
    assert number(seen, "toolglot_refusals_total", action="generate", status="4xx") == 1


def test_tokens_repairs_errors_retries_and_the_vault_are_counted(seen: list[Sample]) -> None:
    openai = {"upstream": "openai", "model": "gpt-5.5"}
    assert number(seen, "toolglot_tokens_total", kind="input", **openai) > 0
    assert number(seen, "toolglot_tokens_total", kind="reasoning", **openai) > 0
    assert number(seen, "toolglot_repairs_total", rule="openai-responses-name-charset", action="renamed") == 1
    assert number(seen, "toolglot_repairs_total", rule="orphaned", action="orphaned") == 1
    assert number(seen, "toolglot_reply_changes_total", action="dropped") > 0
    assert number(seen, "toolglot_upstream_errors_total", upstream="mistral", kind="overloaded") == 1
    assert number(seen, "toolglot_upstream_errors_total", upstream="mistral", kind="server") == 1
    assert number(seen, "toolglot_upstream_errors_total", upstream="anthropic", kind="bad_request") == 1
    assert number(seen, "toolglot_retries_total") == number(seen, "toolglot_retries_total", upstream="anthropic") == 1
    assert number(seen, "toolglot_vault_lookups_total", result="hit") == 1
    assert number(seen, "toolglot_store_errors_total") == 0


def test_what_the_gateway_adds_is_less_than_what_the_client_waits(seen: list[Sample]) -> None:
    added = number(seen, "toolglot_added_seconds_sum")
    waited = number(seen, "toolglot_first_byte_seconds_sum")
    lasted = number(seen, "toolglot_request_duration_seconds_sum")
    assert 0 < added < waited < lasted
    for stream in ("true", "false"):
        count = number(seen, "toolglot_added_seconds_count", stream=stream)
        assert count == number(seen, "toolglot_first_byte_seconds_count", stream=stream) > 0


def test_what_an_upstream_takes_is_not_added_by_the_gateway() -> None:
    slow = {"rules": [{"reply": {"text": "Hello."}}], "pace": 0.2}
    with serve(slow) as simulated, gateway(simulated) as served:
        assert say(served, "Hello").status == 200  # what is loaded the first time
        before = samples(served)
        assert say(served, "Hello", stream=True).status == 200
        record, found = served.records[-1], samples(served)
        assert record.added_seconds is not None
        assert record.times.seconds - record.added_seconds >= 0.2, "the upstream waits so long at least once"
        assert number(found, "toolglot_added_seconds_sum", stream="true") == pytest.approx(record.added_seconds)
        assert number(before, "toolglot_added_seconds_sum", stream="true") == 0


def test_the_process_is_seen(seen: list[Sample]) -> None:
    assert number(seen, "process_resident_memory_bytes") > 10_000_000
    assert number(seen, "process_virtual_memory_bytes") > number(seen, "process_resident_memory_bytes")
    assert number(seen, "process_cpu_seconds_total") > 0
    assert 3 < number(seen, "process_open_fds") < number(seen, "process_max_fds")
    assert number(seen, "toolglot_build_info") == 1
    assert abs(number(seen, "process_start_time_seconds") + number(seen, "toolglot_uptime_seconds") - time.time()) < 600


def test_streams_are_open_until_they_end() -> None:
    script = {"rules": [{"reply": {"text": "word " * 4000}}], "pace": 0.02}
    with serve(script) as simulated, gateway(simulated) as served:
        path, body = request_of("openai", "mistral/mistral-large-latest", stream=True)
        with _sent(served, path, json.dumps(body).encode()) as sock:
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
            found = samples(served)
            assert number(found, "toolglot_open_requests") == 2  # and the one that asks
            assert number(found, "toolglot_open_streams") == 1
        wait_until(lambda: served.records[-1].response.error == DISCONNECTED)
        found = samples(served)
        assert number(found, "toolglot_open_streams") == 0
        assert number(found, "toolglot_requests_total", status="gone") == 1
        assert number(found, "toolglot_upstream_errors_total") == 0


def test_simulated_models_are_not_taken_for_those_of_providers() -> None:
    with gateway(None) as served:
        assert say(served, "Hello", model="simulated/openai/gpt-5.5").status == 200
        assert number(samples(served), "toolglot_requests_total", upstream="openai (simulated)", model="gpt-5.5") == 1


def test_an_upstream_that_breaks_off_is_counted_once_for_each_try(simulated: Server) -> None:
    with gateway(simulated) as served:
        assert say(served, "Be broken").status >= 500
        record = served.records[-1]
        found = samples(served)
        assert number(found, "toolglot_upstream_errors_total") == len(record.calls.failures) == record.calls.count
        assert number(found, "toolglot_upstream_errors_total", upstream="mistral", kind="server") == record.calls.count


def test_what_is_passed_on_is_counted_with_its_upstream() -> None:
    nowhere = '[upstreams.nowhere]\nprovider = "openai"\nurl = "http://127.0.0.1:9/v1"\nkey_env = "CLIENT_KEY"'
    with gateway(None, upstreams=nowhere, environ=ENVIRON) as served:
        assert ask(served, "/v1/moderations", {"model": "m", "input": "x"}).status == 502
        found = samples(served)
        assert number(found, "toolglot_requests_total", action="pass", upstream="nowhere", status="5xx") == 1
        assert number(found, "toolglot_upstream_errors_total", upstream="nowhere", kind="unreachable") == 1
        assert number(found, "toolglot_refusals_total") == 0


# --- who may read it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "key", "status"),
    [
        ("", None, 200),
        (KEYS, None, 401),
        (KEYS, "another key", 401),
        (KEYS, "a-client-key-of-some-length", 200),
        (KEYS + '\nmetrics = "open"', None, 200),
        ('metrics = "off"', None, 404),
        (KEYS + '\nmetrics = "off"', None, 401),
    ],
)
def test_metrics_need_a_key_by_default(settings: str, key: str | None, status: int) -> None:
    with gateway(None, settings=settings, environ=ENVIRON) as served:
        got = ask(served, "/metrics", key=key)
        assert got.status == status, got.data
        assert ask(served, "/v1/models", key=None).status == (401 if KEYS in settings else 200)


SHARED = 'client_keys = ["env:CLIENT_KEY", "env:OTHER_KEY"]'
OWN = SHARED + '\nmetrics_key = "env:METRICS_KEY"'
SECRETS = {"CLIENT_KEY": "a" * 20, "OTHER_KEY": "b" * 20, "METRICS_KEY": "m" * 20}


@pytest.mark.parametrize(
    ("settings", "statuses"),
    [
        (SHARED, {"CLIENT_KEY": 403, "OTHER_KEY": 403, "METRICS_KEY": 401, "": 401}),
        (OWN, {"CLIENT_KEY": 401, "OTHER_KEY": 401, "METRICS_KEY": 200, "": 401}),
        (OWN + '\nmetrics = "open"', {"CLIENT_KEY": 200, "": 200}),
        (SHARED + '\nmetrics = "off"', {"CLIENT_KEY": 404, "": 401}),
        ('metrics_key = "env:METRICS_KEY"', {"CLIENT_KEY": 401, "METRICS_KEY": 200, "": 401}),
    ],
)
def test_where_several_clients_share_a_gateway_the_sums_over_all_of_them_have_a_key_of_their_own(
    settings: str, statuses: dict[str, int]
) -> None:
    with gateway(None, settings=settings, environ=SECRETS) as served:
        found = {name: ask(served, "/metrics", key=SECRETS.get(name)).status for name in statuses}
        assert found == statuses
        if "client_keys" in settings:
            assert ask(served, "/v1/models", key=SECRETS["METRICS_KEY"]).status == 401
            answer = ask(served, "/metrics", key=SECRETS["CLIENT_KEY"])
            assert answer.status == 200 or b"metrics" in answer.data


def test_a_web_page_cannot_read_the_metrics_of_a_gateway_without_keys() -> None:
    with gateway(None, settings='metrics = "open"') as served:
        assert ask(served, "/metrics", headers={"host": "evil.example"}).status == 403


def test_nothing_of_what_was_sent_and_no_key_is_in_the_metrics(simulated: Server) -> None:
    with gateway(simulated) as served:
        say(served, "the secret words", model="mistral/sk-proj-0123456789abcdefghijklmnop")
        text = ask(served, "/metrics").data
        assert b"secret words" not in text
        assert b"0123456789abcdef" not in text
        assert b"a-client-key" not in text


# --- bounds -----------------------------------------------------------------------------------------


def count(metrics: Metrics, record: RequestRecord) -> None:
    metrics.begin(record)
    metrics.end(record)


def test_a_client_that_asks_for_ever_new_models_does_not_make_the_metrics_grow() -> None:
    metrics = Metrics()
    usage = {"input_tokens": 3}
    for i in range(20_000):
        count(metrics, ended_request(f"model-{i}", usage=usage))
    found = samples_of(metrics.text())
    assert len({sample.labels["model"] for sample in found if "model" in sample.labels}) == MAX_MODELS + 1
    assert number(found, "toolglot_requests_total") == 20_000
    assert number(found, "toolglot_tokens_total", kind="input") == 60_000
    assert number(found, "toolglot_requests_total", model=OTHER) == 20_000 - MAX_MODELS


def test_names_that_no_upstream_answered_to_do_not_replace_those_that_one_did() -> None:
    metrics = Metrics()
    for i in range(1_000):
        count(metrics, ended_request(f"model-{i}", status=404))
    count(metrics, ended_request("gpt-5.5"))
    count(metrics, ended_request("gpt-5.5", status=500))
    found = samples_of(metrics.text())
    assert number(found, "toolglot_requests_total", model=OTHER, status="4xx") == 1_000
    assert number(found, "toolglot_requests_total", model="gpt-5.5") == 2


def test_upstreams_and_sets_of_labels_are_bounded_too() -> None:
    metrics = Metrics()
    for i in range(MAX_UPSTREAMS * 2):
        count(
            metrics,
            ended_request(upstream=f"upstream-{i}", failures=[(f"upstream-{i}", "server")], arrived=1.0, sent=2.0),
        )
    found = samples_of(metrics.text())
    assert len({sample.labels["upstream"] for sample in found if "upstream" in sample.labels}) == MAX_UPSTREAMS + 1
    assert number(found, "toolglot_upstream_errors_total") == MAX_UPSTREAMS * 2
    counter = Counter(Family("a_total", "counter", "", ("x", "y")), limit=10)
    histogram = Histogram(Family("b", "histogram", "", ("x",)), (1.0,), limit=10)
    for i in range(1_000):
        counter.add((str(i), "y"))
        histogram.of((str(i),)).add(0.5)
    assert len([*counter.lines()]) == 11
    assert 'a_total{x="other",y="other"} 990' in [*counter.lines()]
    assert len([*histogram.lines()]) == 11 * 4
    assert 'b_count{x="other"} 990' in [*histogram.lines()]


def test_a_rule_is_one_of_the_target_and_not_what_a_client_calls_its_tools() -> None:
    metrics = Metrics()
    known = profiles.get("openai").origins["names.pattern"].id
    reasons = [f"'(evil-rule)' does not match x ({known}); renamed to 'y'", "(evil-rule)", "(default:names.pattern)"]
    reasons += ["(default:nothing.such)", *(f"(rule-{i})" for i in range(MAX_SERIES))]
    entries = tuple(Entry(action="renamed", reason=reason, fault="renderer") for reason in reasons)
    count(metrics, ended_request(entries=entries))
    count(metrics, ended_request(entries=entries[:1]))
    count(metrics, ended_request(entries=entries[1:2], target="no such target"))
    found = samples_of(metrics.text())
    repairs = {s.labels["rule"]: s.value for s in found if s.name == "toolglot_repairs_total"}
    assert repairs == {known: 2, "default:names.pattern": 1, "renamed": MAX_SERIES + 3}


REASONS = ("shortened", "(no-such-rule)", "(default:names.pattern)", f"{'long ' * 60}(default:names.pattern)")


@pytest.mark.law
@given(
    st.lists(
        st.lists(
            st.builds(
                Entry,
                action=st.sampled_from(["renamed", "dropped"]),
                reason=st.sampled_from(REASONS),
                fault=st.just("loss"),
            ),
            max_size=4,
        ),
        max_size=6,
    )
)
def test_law_15_repairs_that_come_again_are_counted_as_those_that_come_first(requests: list[list[Entry]]) -> None:
    together, apart = Metrics(), dict[tuple[str, ...], float]()
    for entries in requests:
        count(together, ended_request(entries=tuple(entries)))
        once = Metrics()
        count(once, ended_request(entries=tuple(entries)))
        for labels, repairs in _repairs(once).items():
            apart[labels] = apart.get(labels, 0) + repairs
    assert _repairs(together) == apart


def _repairs(metrics: Metrics) -> dict[tuple[str, ...], float]:
    found = [sample for sample in samples_of(metrics.text()) if sample.name == "toolglot_repairs_total"]
    return {tuple(sample.labels[name] for name in ("rule", "action", "gravity")): sample.value for sample in found}


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("gpt-5.5-2026-03-01", "gpt-5.5"),
        ("Mistral-Large-latest", "mistral-large"),
        ("anthropic/claude-x@20250101", "anthropic/claude-x"),
        ("qwen3:8b", "qwen3:8b"),
        ("-latest", OTHER),
        ("x" * 1000, "x" * 100),
    ],
)
def test_editions_of_a_model_are_one(model: str, family: str) -> None:
    assert family_of(model) == family


# --- the text ---------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.dictionaries(st.text(max_size=20), st.integers(0, 10**15), max_size=8))
def test_any_label_is_read_back_as_it_was(counts: dict[str, int]) -> None:
    counter = Counter(Family("a_total", "counter", "", ("x", "y")))
    for name, count in counts.items():
        counter.add((name, "y"), count)
    text = "# HELP a_total h\n# TYPE a_total counter\n" + "".join(f"{line}\n" for line in counter.lines())
    read = {sample.labels["x"]: sample.value for sample in samples_of(text.encode())}
    assert read == {name.encode("utf-8", "replace").decode(): float(count) for name, count in counts.items()}


def test_half_of_a_surrogate_pair_does_not_stop_prometheus_from_reading() -> None:
    metrics = Metrics()
    count(metrics, ended_request("gpt-\ud800"))
    assert number(samples_of(metrics.text()), "toolglot_requests_total", model="gpt-?") == 1


@pytest.mark.law
@given(st.lists(st.floats(-1, 100), max_size=50))
def test_a_histogram_is_cumulative_and_adds_up(seconds: list[float]) -> None:
    bounds = (0.1, 1.0, 10.0)
    histogram = Histogram(Family("a", "histogram", ""), bounds)
    histogram.of(()).add(0.0)
    for each in seconds:
        histogram.of(()).add(each)
    every = [0.0, *seconds]
    text = "# TYPE a histogram\n" + "\n".join(histogram.lines()) + "\n"
    found = samples_of(text.encode())
    for bound in (*bounds, math.inf):
        le = next(s for s in found if s.name == "a_bucket" and float(s.labels["le"]) == bound)
        assert le.value == sum(each <= bound for each in every)
    assert number(found, "a_count") == len(every)
    assert number(found, "a_sum") == pytest.approx(sum(max(each, 0.0) for each in every))


def test_a_system_without_proc_says_what_it_can(tmp_path: Path) -> None:
    assert set(process(1.0, tmp_path)) == {"process_cpu_seconds_total", "process_start_time_seconds"}
    (tmp_path / "statm").write_text("100 50 0")
    (tmp_path / "fd").mkdir()
    (tmp_path / "limits").write_text("Max open files            unlimited")
    assert "process_max_fds" not in process(1.0, tmp_path)
    assert process(1.0, tmp_path)["process_open_fds"] == 0


def test_what_came_while_nothing_was_counted_is_not_counted() -> None:
    metrics = Metrics()
    metrics.end(ended_request())
    assert number(samples_of(metrics.text()), "toolglot_requests_total") == 0


def test_metrics_can_be_switched_off_and_on_while_the_gateway_runs(simulated: Server) -> None:
    with gateway(simulated) as served:
        assert say(served, "Hello").status == 200
        on = served.app.config
        served.app.config = msgspec.structs.replace(on, gateway=msgspec.structs.replace(on.gateway, metrics="off"))
        assert say(served, "Hello").status == 200
        assert ask(served, "/metrics").status == 404
        served.app.config = on
        found = samples(served)
        assert number(found, "toolglot_requests_total", action="generate") == 1
        assert number(found, "toolglot_open_requests") == 1


def test_a_store_that_fails_is_counted() -> None:
    metrics = Metrics()
    count(metrics, ended_request(store_errors=2))
    metrics.store_failed()
    assert number(samples_of(metrics.text()), "toolglot_store_errors_total") == 3


# --- the log ----------------------------------------------------------------------------------------


def test_the_log_is_one_object_a_line_from_start_to_stop(simulated: Server) -> None:
    stream = io.StringIO()
    config = config_for(simulated)
    app = Gateway(
        config, upstreams=Upstreams(config), request_log=RequestLog(max_remembered=10, form="json", stream=stream)
    )
    with running(app) as url:
        served = Served(url, app)
        assert say(served, "Hello", stream=True).status == 200
        assert say(served, "Be overloaded").status == 503
        app.request_log.notice("a note with sk-ant-api03-0123456789abcdefghijklmnop\n")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    start, first, second, note, stop = [line for line in lines if line["event"] != "drain"]
    events = [line["event"] for line in (start, first, second, note, stop)]
    assert events == ["start", "request", "request", "notice", "stop"]
    assert set(start) == {"event", "time", "version", "config", "upstreams", "pid"}
    assert first["status"] == 200
    assert first["stop"] == "stop"
    assert 0 < first["added"] < first["seconds"]
    assert second["error"].startswith("overloaded")
    assert "0123456789" not in note["message"]
    assert stop["open"] == 0


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("text", ["200 POST /v1/chat/completions  openai m?m → openai/gpt-5.5  500 ms  retried: busy  oh", "a note"]),
        ("off", ["a note"]),
    ],
)
def test_the_log_for_people_has_no_events_but_what_they_should_know(form: LogForm, lines: list[str]) -> None:
    stream = io.StringIO()
    request_log = RequestLog(max_remembered=0, form=form, stream=stream)
    request_log.event("start", version="1")
    request_log.log(ended_request(retry_reason="busy", error="oh", requested_model="m\nm"))
    request_log.notice("a note")
    assert stream.getvalue().splitlines() == lines


@pytest.mark.parametrize("keep", ["off", "reports", "bodies"])
def test_the_log_for_people_names_streams_by_their_id_as_other_requests(simulated: Server, keep: str) -> None:
    stream = io.StringIO()
    config = config_for(simulated, upstreams=f'[inspector]\nkeep = "{keep}"')
    log = RequestLog(max_remembered=10, form="text", stream=stream)
    app = Gateway(config, upstreams=Upstreams(config), request_log=log)
    with running(app) as url:
        served = Served(url, app)
        ids = [say(served, "Hello", stream=is_stream).headers["x-toolglot-request"] for is_stream in (True, False)]
        assert len(served.records) == 2
    lines = [line for line in stream.getvalue().splitlines() if "/v1/" in line]
    assert [line.rpartition("  ")[2] for line in lines] == ids


def test_the_docs_have_every_field_of_the_log() -> None:
    page = (Path(__file__).parents[3] / "docs/observability.md").read_text().partition("## The log")[2]
    entry = Entry(action="renamed", reason="r", fault="renderer")
    changed: dict[str, Any] = {
        "entries": (entry,),
        "reply_entries": (entry,),
        "usage": {"input_tokens": 1},
        "tries": 2,
        "first_byte": 1.0,
    }
    record = ended_request(
        requested_model="m",
        arrived=1.0,
        sent=2.0,
        stop="stop",
        retry_reason="r",
        error="e",
        is_stream=True,
        is_simulated=True,
        **changed,
    )
    fields = summarize(record)
    assert {"added", "tries", "stop"} <= set(fields)
    code = "".join(file.read_text() for file in Path(toolglot.gateway.__file__).parent.rglob("*.py"))
    events = re.findall(r'(?:\.event\(|event=|_json\()"(\w+)"', code)
    assert {"start", "stop", "request", "error"} <= set(events)
    for name in (*fields, "trace", "event", "notice", *events):
        assert f"`{name}`" in page, name


def test_a_store_that_fails_and_unexpected_errors_are_events() -> None:
    stream = io.StringIO()
    config = config_for(None)
    app = Gateway(config, request_log=RequestLog(max_remembered=10, form="json", stream=stream))
    app._store_failed(StoreError("the disk is full"))
    assert app._failure_of(RuntimeError("oh")).kind == "server"  # type: ignore[union-attr]
    full, oh = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert (full["event"], full["message"]) == ("error", "the store: the disk is full")
    assert oh["event"] == "error"
    assert oh["message"].endswith("RuntimeError: oh")
    assert number(samples_of(app.metrics.text()), "toolglot_store_errors_total") == 1


def _sent(served: Served, path: str, data: bytes) -> socket.socket:
    sock = connect(served)
    sock.sendall(post(data, path=path))
    return sock

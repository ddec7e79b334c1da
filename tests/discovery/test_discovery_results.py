"""The parts of discovery by themselves: searches, probes, patterns, secrets, what a reply means. Nothing is called."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.simulator.discoveries import KEY
from support.simulator.discovery_results import GOOD, NO, YES, words
from toolglot.discovery import (
    PROBES,
    Discovery,
    Endpoint,
)
from toolglot.discovery.baseline import shape_of
from toolglot.discovery.bodies import RequestStyle, user
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply, parse_response
from toolglot.discovery.probe import GROUPS, ProbeCase, Steps, UnclearError, find_maximum, is_accepted, protocol_order
from toolglot.discovery.probes.ids import MARKS, name_pattern, pattern_of
from toolglot.discovery.probes.schema import TRIED, find_refused
from toolglot.discovery.protocol_detection import auths_for, base_of, bases_for, known_provider, models_in, pick_model
from toolglot.discovery.remedies import REMEDIES
from toolglot.discovery.run import select_probes
from toolglot.discovery.secret_masking import Secrets, masked_url, one_line, secret_values, visible
from toolglot.discovery.summary import name_of
from toolglot.errors import InputError
from toolglot.profiles import KEYS
from toolglot.simulator import Simulator
from toolglot.upstream import PROVIDERS, AsgiTransport

UNCLEAR = ParsedReply(name="r3", verdict="unclear", problem="silence")


def answered(steps: Generator[ProbeRequest, ParsedReply, Any], fits: Any, max_requests: int = 200) -> tuple[Any, int]:
    """What steps come to, where requests are accepted that fit; and how many there were."""
    count = 0
    try:
        question = next(steps)
        while count < max_requests:
            count += 1
            question = steps.send(YES if fits(question) else NO)
    except StopIteration as ended:
        return ended.value, count
    raise AssertionError("it does not end")


def number(value: int) -> ProbeRequest:
    return ProbeRequest(body={"n": value}, about="")


# --- searches -------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.integers(10, 2000))
def test_law_the_highest_number_is_found_in_few_requests(limit: int) -> None:
    (max_requests, shown), count = answered(
        find_maximum(number, 10, (40, 64, 128, 256, 512, 1024)), lambda q: q.body["n"] <= limit
    )
    assert max_requests == min(limit, 1024)
    assert count == len(shown) <= 14


@pytest.mark.law
@given(st.sets(st.sampled_from(TRIED)))
def test_law_what_is_refused_is_found_by_halves(refused: set[str]) -> None:
    fits = refused.isdisjoint
    (found, _), count = answered(find_refused(words, TRIED), lambda question: fits(question.body["names"]))
    assert set(found) == refused
    assert len(found) == len(refused)
    assert count <= 2 * len(TRIED)
    if len(refused) == 1:
        assert count <= 13


def test_what_is_refused_together_only_is_unclear() -> None:
    with pytest.raises(UnclearError, match="refused together and accepted one by one"):
        answered(find_refused(words, ("a", "b")), lambda question: len(question.body["names"]) < 2)


def test_nothing_is_concluded_from_silence() -> None:
    with pytest.raises(UnclearError, match="silence"):
        is_accepted(UNCLEAR)
    assert not is_accepted(ParsedReply(verdict="absent"))


# --- every probe ----------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [YES, NO, UNCLEAR], ids=["yes", "no", "silence"])
@pytest.mark.parametrize("protocol", protocol_order())
def test_whatever_is_answered_a_probe_ends_within_its_bound_and_changes_no_sample(
    protocol: str, answer: ParsedReply
) -> None:
    target = "openai_compatible" if protocol == "openai_chat" else protocol
    before = RequestStyle(protocol=protocol, target=target, model="m").body(user())
    for probe in PROBES:
        if not probe.is_for(protocol):
            continue
        case = ProbeCase(
            style=RequestStyle(protocol=protocol, target=target, model="m"), found={"request.output": ("json",)}
        )
        steps: Steps = probe.steps(case)
        count = 0
        try:
            question = next(steps)
            while True:
                count += 1
                assert count <= probe.max_requests, probe.name
                assert json.dumps(question.body)
                question = steps.send(replace(answer, name=f"r{count}"))
        except (StopIteration, UnclearError) as ended:
            for found in ended.value if isinstance(ended, StopIteration) else ():
                assert not found.key or found.key in probe.keys, (probe.name, found.key)
    assert RequestStyle(protocol=protocol, target=target, model="m").body(user()) == before


def test_probes_have_names_of_their_own_and_known_groups_and_keys() -> None:
    names = [probe.name for probe in PROBES]
    assert len(names) == len(set(names))
    assert {probe.group for probe in PROBES} == set(GROUPS)
    assert {key for probe in PROBES for key in probe.keys} <= set(KEYS)
    assert set(REMEDIES) <= set(KEYS)


def test_some_probes_can_be_chosen_and_what_they_build_on_comes_with_them() -> None:
    some = {probe.name for probe in select_probes(["ids.length"])}
    assert some == {
        *("endpoint.errors", "endpoint.dialogue", "endpoint.tools", "endpoint.history", "request.unknown"),
        *("ids.length", "endpoint.control"),
    }
    assert {probe.group for probe in select_probes(["schema"])} == {"endpoint", "request", "schema"}
    with pytest.raises(InputError, match="unknown probe 'x'"):
        select_probes(["x"])


def test_a_protocol_that_there_is_not_is_refused() -> None:
    endpoint = Endpoint(url="http://a", transport=AsgiTransport(Simulator()), key=KEY)
    assert KEY not in repr(endpoint)
    with pytest.raises(InputError, match="unknown protocol 'soap'"):
        Discovery(endpoint, protocol="soap")


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "pattern"),
    [
        ((), "(?s:.+)"),
        (("white space",), r"\S+"),
        (("letters of other alphabets", "white space"), "[!-~]+"),
        (("_", "-", ".", ":", "other punctuation", "letters of other alphabets", "white space"), "[A-Za-z0-9]+"),
        ((".", "other punctuation", "letters of other alphabets", "white space"), "[A-Za-z0-9:_-]+"),
    ],
)
def test_a_pattern_says_what_was_accepted(refused: tuple[str, ...], pattern: str) -> None:
    assert pattern_of({name: name not in refused for name in MARKS}) == pattern


def test_a_pattern_of_names_says_what_was_accepted() -> None:
    none = dict.fromkeys(("-", ".", ":", "/"), False)
    assert name_pattern({"digit": True, "_": True}, none) == "[A-Za-z0-9_]+"
    assert name_pattern({"digit": False, "_": True}, {**none, "-": True}) == "[A-Za-z_][A-Za-z0-9_-]*"
    assert name_pattern({"digit": True, "_": False}, {**none, ".": True}) == "[A-Za-z0-9][A-Za-z0-9_.]*"
    assert name_pattern({"digit": True, "_": True}, dict.fromkeys(none, True)) == r"\S+"


# --- secrets --------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.text(min_size=8, max_size=40), st.text(max_size=20), st.sampled_from(["plain", "escaped", "reversed"]))
def test_law_no_secret_is_left_in_what_was_cleaned(secret: str, around: str, way: str) -> None:
    spelled = {"plain": secret, "escaped": secret, "reversed": secret[::-1]}[way]
    value = {"a": [f"{around}{spelled}{around}"], f"{around}{spelled}": 1}
    clean = Secrets([secret]).clean(value)
    left = clean["a"][0] + "".join(clean)
    assert spelled not in left or spelled in around * 3 + "***" * 3


def test_headers_whose_names_say_so_are_secret_and_short_words_are_not() -> None:
    headers = {"authorization": "Bearer abcdefgh1", "x-api-key": "another-one", "x-team": "content-type"}
    assert secret_values(headers) == ["Bearer abcdefgh1", "abcdefgh1", "another-one", "another-one"]
    secrets = Secrets([*secret_values(headers), "model", "none"])
    assert secrets.clean({"model": "none abcdefgh1 content-type"}) == {"model": "none *** content-type"}


def test_what_is_too_deep_too_long_or_too_many_is_left_out() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    secrets = Secrets()
    assert "…" in json.dumps(secrets.clean(deep), ensure_ascii=False)
    assert len(secrets.clean("x" * 50_000)) < 20_100
    assert len(secrets.clean(list(range(60_000)))) <= 20_000
    assert len(secrets.clean({str(n): n for n in range(60_000)})) <= 20_000


def test_what_a_terminal_would_act_upon_is_written_out() -> None:
    assert visible("a\x1b[2J\x07\u202e") == "a\\x1b[2J\\x07\\u202e"
    assert one_line("a\n\n b\tc") == "a b c"
    assert one_line("x" * 300, 10) == "xxxxxxxxxx…"
    assert visible("\ud800") == "\\ud800"


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert masked_url("http://me:secret@box:8/v1?key=abc&x=1") == "http://box:8/v1?key=***&x=***"
    assert masked_url("http://box/v1beta/models/m:streamGenerateContent?alt=sse").endswith("?alt=sse")


# --- what an answer means -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "value", "verdict"),
    [
        (200, GOOD, "accepted"),
        (200, {"error": {"message": "no", "code": 400}}, "refused"),
        (200, {}, "unclear"),
        (400, {"error": {"message": "bad"}}, "refused"),
        (404, {"error": {"message": "Not Found"}}, "absent"),
        (404, {"error": {"message": "The model `x` does not exist"}}, "refused"),
        (422, {"detail": "no"}, "refused"),
        (401, {"error": {"message": "key"}}, "denied"),
        (403, {"error": {"message": "key"}}, "denied"),
        (429, {"error": {"message": "slow down"}}, "busy"),
        (500, {"error": {"message": "oops"}}, "broke"),
        (
            400,
            {"error": {"message": "This model's maximum context length is 10", "code": "context_length_exceeded"}},
            "unclear",
        ),
        (400, {"error": {"message": "x", "code": "content_filter"}}, "unclear"),
        (400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}, "unclear"),
        (503, {"error": {"message": "later"}}, "busy"),
    ],
)
def test_a_verdict_follows_from_status_and_error(status: int, value: Any, verdict: str) -> None:
    response = parse_response(
        "openai_chat", status, {"Content-Type": "application/json"}, json.dumps(value).encode(), Secrets()
    )
    assert response.verdict == verdict


@pytest.mark.law
@given(
    st.sampled_from(protocol_order()),
    st.integers(100, 599),
    st.binary(max_size=200) | st.sampled_from([b"data: {}\n\n", b"[1]", b'{"choices":[1]}', b'{"error":[]}']),
    st.booleans(),
)
def test_law_whatever_comes_there_is_a_verdict(protocol: str, status: int, data: bytes, stream: bool) -> None:
    response = parse_response(protocol, status, {"content-type": "text/event-stream"}, data, Secrets(), stream=stream)
    assert response.verdict
    assert "\x1b" not in response.words
    assert shape_of(response)


def test_a_stream_that_is_no_stream_is_reported() -> None:
    empty = parse_response("openai_chat", 200, {"content-type": "text/event-stream"}, b"", Secrets(), stream=True)
    assert (empty.verdict, "no events" in empty.problem) == ("unclear", True)
    whole = parse_response(
        "openai_chat", 200, {"content-type": "application/json"}, json.dumps(GOOD).encode(), Secrets(), stream=True
    )
    assert (whole.verdict, whole.frames) == ("accepted", ())


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({"type": "error", "error": {"type": "x"}}, "anthropic"),
        ({"error": {"message": "x"}}, "openai"),
        ({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}, "google"),
        ({"error": "x"}, "plain error field"),
        ({"detail": []}, "fastapi"),
        ({"message": "x"}, "message"),
        ({"x": 1}, "other"),
        (None, "text"),
    ],
)
def test_errors_are_distinguished_by_their_shape(value: Any, shape: str) -> None:
    assert shape_of(ParsedReply(status=400, value=value, text="" if value else "oops", verdict="refused")) == shape
    assert shape_of(ParsedReply(status=400)) == "none"


# --- the way in -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://box:8/v1/chat/completions", "http://box:8/v1"),
        ("http://box/v1/messages", "http://box/v1"),
        ("http://box/api/chat", "http://box"),
        ("http://box/v1/models", "http://box/v1"),
        ("http://box/", "http://box"),
        ("http://box/deep/v1?x=1", "http://box/deep/v1?x=1"),
    ],
)
def test_the_address_of_a_call_is_brought_to_its_base(url: str, base: str) -> None:
    assert base_of(url) == base


def test_bases_and_keys_are_tried_as_a_protocol_has_them() -> None:
    assert bases_for("openai_chat", "http://box") == ["http://box", "http://box/v1"]
    assert bases_for("openai_chat", "http://box/v1") == ["http://box/v1"]
    assert bases_for("ollama", "http://box/v1") == ["http://box"]
    assert bases_for("anthropic", "http://box/v1") == ["http://box/v1"]
    assert auths_for("anthropic", "k", None) == ["x-api-key", "bearer"]
    assert auths_for("openai_chat", "k", None) == ["bearer"]
    assert auths_for("gemini", "", None) == ["none"]
    mistral = known_provider("https://api.mistral.ai/v1")
    assert mistral is not None
    assert mistral.name == "mistral"
    assert auths_for("openai_chat", "k", PROVIDERS["anthropic"]) == ["x-api-key", "bearer"]
    assert known_provider("http://box") is None
    assert (name_of("https://api.mistral.ai"), name_of("http://127.0.0.1:8"), name_of("http://Big.Box")) == (
        *("mistral", "at_127_0_0_1", "big_box"),
    )


def test_models_are_read_from_any_form_of_list() -> None:
    listed = models_in({"data": [{"id": "a", "max_model_len": 4096}, {"id": 7}, {"id": "x" * 300}, "b"]})
    assert [(model.name, model.context) for model in listed] == [("a", 4096), ("b", None)]
    assert models_in({"models": [{"name": "models/g", "inputTokenLimit": 10}]})[0].name == "g"
    assert models_in([{"id": "c", "meta": {"n_ctx": 512}}])[0].context == 512
    assert models_in({"data": [{"id": "d", "meta": 7, "context_length": True}]})[0].context is None
    assert models_in("nothing") == models_in({"data": "x"}) == ()
    assert pick_model(models_in({"data": ["text-embedding-3", "tts-1", "chatty"]})) == "chatty"
    assert pick_model(()) == ""

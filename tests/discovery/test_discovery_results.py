"""The parts of discovery by themselves: searches, comparisons, secrets, results as data. No endpoint is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.simulator.discoveries import KEY, VARIANTS, found_out, no_sleep
from toolglot import dialects, profiles
from toolglot.conversation import Failure, Reply, Text, Thinking, ToolCall, Turn
from toolglot.discovery import (
    PROBES,
    Budget,
    Departure,
    Discovery,
    DiscoveryResult,
    Endpoint,
    Finding,
    Opinion,
    ProbeOutcome,
    ProviderInfo,
    SdkInfo,
    ToolingInfo,
    departures,
    found_profile,
    overrides_of,
    plan,
    profile_toml,
    report,
)
from toolglot.discovery.baseline import shape_of
from toolglot.discovery.bodies import RequestStyle, first_tool, messages_of, user, without_ids
from toolglot.discovery.comparison import agrees
from toolglot.discovery.endpoint_client import EndpointClient, ProbeRequest, StoppedError
from toolglot.discovery.findings import Exchange
from toolglot.discovery.markdown_report import code, value_text
from toolglot.discovery.model_opinion import MAX_EVIDENCE, prompt, read_opinion, records
from toolglot.discovery.parsed_reply import ParsedReply, no_response, parse_response
from toolglot.discovery.probe import GROUPS, ProbeCase, Steps, UnclearError, find_maximum, is_accepted, protocol_order
from toolglot.discovery.probes.ids import MARKS, name_pattern, pattern_of
from toolglot.discovery.probes.replies import carrier_of, mistyped_arguments
from toolglot.discovery.probes.schema import TRIED, find_refused
from toolglot.discovery.protocol_detection import auths_for, base_of, bases_for, known_provider, models_in, pick_model
from toolglot.discovery.remedies import REMEDIES, remedy
from toolglot.discovery.run import select_probes
from toolglot.discovery.secret_masking import Secrets, masked_url, one_line, secret_values, visible
from toolglot.discovery.summary import name_of
from toolglot.errors import InputError
from toolglot.profiles import KEYS, Overrides
from toolglot.simulator import Simulator
from toolglot.upstream import PROVIDERS, AsgiTransport

YES, NO = ParsedReply(name="r1", status=200, verdict="accepted"), ParsedReply(name="r2", status=400, verdict="refused")
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


def words(names: Sequence[str]) -> ProbeRequest:
    return ProbeRequest(body={"names": list(names)}, about="")


# --- searches ---------------------------------------------------------------------------------------


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


# --- every probe ------------------------------------------------------------------------------------


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


# --- patterns ---------------------------------------------------------------------------------------


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


# --- secrets ----------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.text(min_size=8, max_size=40), st.text(max_size=20), st.sampled_from(["plain", "escaped", "reversed"]))
def test_law_no_secret_is_left_in_what_was_cleaned(secret: str, around: str, way: str) -> None:
    said = {"plain": secret, "escaped": secret, "reversed": secret[::-1]}[way]
    value = {"a": [f"{around}{said}{around}"], f"{around}{said}": 1}
    clean = Secrets([secret]).clean(value)
    left = clean["a"][0] + "".join(clean)
    assert said not in left or said in around * 3 + "***" * 3


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


# --- what an answer means ---------------------------------------------------------------------------

GOOD = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


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


def test_a_stream_that_is_no_stream_is_told() -> None:
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
def test_errors_are_told_apart_by_their_shape(value: Any, shape: str) -> None:
    assert shape_of(ParsedReply(status=400, value=value, text="" if value else "oops", verdict="refused")) == shape
    assert shape_of(ParsedReply(status=400)) == "none"


# --- the way in -------------------------------------------------------------------------------------


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


# --- bodies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", protocol_order())
def test_requests_can_be_changed_by_hand_in_every_protocol(protocol: str) -> None:
    target = "openai_compatible" if protocol == "openai_chat" else protocol
    style = RequestStyle(protocol=protocol, target=target, model="m")
    body = style.body(user(), limit=16)
    assert messages_of(body)
    assert first_tool(body)["name"] == "get_weather"
    limited = json.dumps(style.with_limit(body, 7))
    assert ": 7" in limited
    assert "16" not in json.dumps(style.with_limit(json.loads(limited), None))
    assert messages_of({}) == []
    assert without_ids(3) == 3


# --- replies ----------------------------------------------------------------------------------------


def test_arguments_of_other_types_are_found() -> None:
    good = {"city": "Bonn", "days": 3, "metric": True, "hours": [9]}
    assert mistyped_arguments(good) == []
    assert mistyped_arguments({**good, "days": "3", "metric": 1}) == ["days (str)", "metric (int)"]
    assert mistyped_arguments({}) == ["city (missing)", "days (missing)", "metric (missing)", "hours (missing)"]


@pytest.mark.parametrize(
    ("message", "carrier"),
    [
        ({"content": "x", "reasoning_content": "y"}, "reasoning_content"),
        ({"content": "x", "reasoning_details": [{}]}, "reasoning_details"),
        ({"content": "x", "reasoning": "y"}, "reasoning"),
        ({"content": "<think>y</think>x"}, "think_tags"),
        ({"content": [{"type": "thinking"}]}, "thinking_chunks"),
        ({"content": [{"type": "text"}]}, ""),
        ({"content": "x"}, ""),
        ({"content": None}, ""),
        (None, ""),
    ],
)
def test_where_thinking_stands_is_seen(message: Any, carrier: str) -> None:
    assert carrier_of("openai_chat", {"choices": [{"message": message}]}, Reply(Turn("assistant"))) == carrier


def test_thinking_of_other_protocols_is_a_block() -> None:
    assert carrier_of("anthropic", {}, Reply(Turn("assistant", (Thinking("x"), Text("y"))))) == "thinking_blocks"
    assert carrier_of("gemini", {}, Reply(Turn("assistant", (Text("y"),)))) == ""
    assert carrier_of("openai_chat", [], Reply(Turn("assistant"))) == ""


def steps_of(name: str, *answers: ParsedReply, protocol: str = "openai_chat", **found: Any) -> list[Finding]:
    probe = next(probe for probe in PROBES if probe.name == name)
    target = "openai_compatible" if protocol == "openai_chat" else protocol
    steps = probe.steps(ProbeCase(style=RequestStyle(protocol=protocol, target=target, model="m"), found=found))
    said = iter(answers)
    try:
        next(steps)
        while True:
            steps.send(next(said))
    except StopIteration as ended:
        result: list[Finding] = ended.value
        return result


def replied(*blocks: Any, stop: Any = "stop", value: Any = None) -> ParsedReply:
    return ParsedReply(
        name="r", status=200, verdict="accepted", reply=Reply(Turn("assistant", blocks), stop=stop), value=value
    )


def quirks(found: list[Finding]) -> list[str]:
    return [one.quirk for one in found if one.quirk]


def test_a_model_that_calls_only_when_it_must_is_told() -> None:
    call = ToolCall("", "get_weather", {"city": "Bonn"})
    found = steps_of("replies.native", replied(Text("Hm.")), replied(call, stop="tool_calls"))
    assert quirks(found) == ["calls come without an id", "it calls only when a tool was required"]
    none = steps_of("replies.native", replied(Text("Hm.")), NO)
    assert (none[0].value, none[0].confidence) == (None, "weak")


def test_calls_that_share_an_id_and_arguments_that_are_objects_are_told() -> None:
    call = ToolCall("x", "get_weather", {"city": "Bonn"})
    written = {"function": {"name": "get_weather", "arguments": {"city": "Bonn"}}}
    value = {"choices": [{"message": {"tool_calls": [written]}}]}
    found = steps_of("replies.native", replied(call, call, stop="tool_calls", value=value))
    assert quirks(found) == ["calls of one turn share an id", "arguments are an object, not a string"]
    pair = steps_of("replies.parallel", replied(call, replace(call, id="y"), stop="tool_calls"))
    assert (pair[0].value, quirks(pair)) == (True, [])


def test_tools_in_the_prompt_are_tried_where_none_are_accepted_as_such() -> None:
    written = dialects.write_calls((ToolCall("x", "get_weather", {"city": "Bonn"}),), "hermes")
    (seen,) = steps_of("replies.by_prompt", replied(Text(written)))
    assert (seen.key, seen.value, seen.confidence) == ("tools.by_prompt", "hermes", "observed")
    (unseen,) = steps_of("replies.by_prompt", replied(Text("No idea.")))
    assert (unseen.value, unseen.confidence) == ("hermes", "weak")


def test_a_prefill_that_is_continued_is_found() -> None:
    (found,) = steps_of("turns.prefill", replied(Text("me.")))
    assert (found.key, found.value, found.settles) == ("turns.prefill", "yes", True)


def stream(*chunks: Any, done: bool = True) -> ParsedReply:
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    data += b"data: [DONE]\n\n" if done else b""
    return replace(
        parse_response("openai_chat", 200, {"content-type": "text/event-stream"}, data, Secrets(), stream=True),
        name="r",
    )


def piece(index: Any, id: str, name: str, arguments: Any, reason: str | None = None) -> dict[str, Any]:
    call: dict[str, Any] = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    if index is not None:
        call["index"] = index
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": reason}]}


def test_streams_that_are_written_badly_are_found_out() -> None:
    bad = stream(piece(None, "", "get_weather", {"city": "Bonn"}, "stop"), done=False)
    told = {(one.key, one.value) for one in steps_of("streams.calls", bad, NO) if one.key}
    assert told >= {
        ("stream.index", "missing"),
        ("stream.finish_reason", False),
        ("stream.ends_with", ""),
        ("stream.usage", "never"),
    }
    assert {"streamed calls come without an id", "a stream ends without [DONE]"} <= set(
        quirks(steps_of("streams.calls", bad, NO))
    )
    silent = stream(piece(0, "a", "get_weather", '{"city":"Bonn"}'))
    assert "a stream with calls has no finish_reason" in quirks(steps_of("streams.calls", silent, silent))
    words = stream(
        {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    )
    assert {one.key for one in steps_of("streams.calls", words)} == {"", "stream.usage", "stream.ends_with"}


def test_what_does_not_stream_is_told() -> None:
    assert quirks(steps_of("streams.calls", NO)) == ["it does not stream"]
    assert quirks(steps_of("streams.calls", replied(Text("x")))) == ["a request for a stream gets a whole reply"]
    assert steps_of("streams.calls", replace(YES, cut=True))[0].quirk == "a stream does not end"
    other = replace(stream({"type": "x"}), reply=Reply(Turn("assistant", (Text("x"),))), verdict="accepted")
    assert "a stream ends without message_stop" in quirks(steps_of("streams.calls", other, protocol="anthropic"))


# --- comparing --------------------------------------------------------------------------------------


def result_of(*findings: Finding, **more: Any) -> DiscoveryResult:
    told: dict[str, Any] = {
        "provider": ProviderInfo(name="box", url="http://box/v1", protocols=("openai_chat",), model="m"),
        "sdk": SdkInfo(protocol="openai_chat", base_url="http://box/v1", auth="bearer", package="openai"),
        "tooling": ToolingInfo(format="json"),
        "findings": findings,
        "base": "openai_compatible",
    }
    return DiscoveryResult(**{**told, **more})


def one_of(key: str, value: Any, **more: Any) -> Finding:
    return Finding(probe=key, key=key, value=value, evidence=("r1",), **more)


def test_what_a_profile_does_not_say_is_a_departure_only_if_less_is_taken_than_by_default() -> None:
    bare = profiles.get("bare", overrides=Overrides('[profiles.bare]\ntitle = "Says nothing"\n'))
    assert bare.origins == {}
    more = (
        *(one_of("turns.name_field", True), one_of("turns.empty_text", False), one_of("tools.max_count", None)),
        *(one_of("ids.max_length", 200), one_of("request.min_max_tokens", 1), one_of("schema.refused", ("not",))),
        *(one_of("choice.modes", ("auto", "none", "required")), one_of("tools.max_count", 200)),
    )
    assert departures(result_of(*more), bare) == ()
    less = (one_of("calls.with_text", False), one_of("ids.max_length", 20), one_of("choice.modes", ("auto",)))
    differences = departures(result_of(*less), bare)
    assert [(one.key, one.expected, one.stated) for one in differences] == [
        ("calls.with_text", True, False),
        ("ids.max_length", 40, False),
        ("choice.modes", ("auto", "none"), False),
    ]


def test_what_does_not_settle_an_entry_is_no_departure() -> None:
    assert departures(result_of(one_of("ids.required", False, settles=False)), profiles.get("openai")) == ()


def test_an_endpoint_without_a_profile_departs_from_what_is_said_of_any_host() -> None:
    host = profiles.get("openai_compatible")
    assert [one.key for one in departures(result_of(one_of("ids.max_length", 30)), host)] == ["ids.max_length"]


@pytest.mark.parametrize(
    ("key", "found", "target", "same"),
    [
        ("ids.pattern", "[A-Za-z0-9_-]+", "openai", True),
        ("ids.pattern", r"\S+", "openai", False),
        ("names.pattern", "[A-Za-z0-9_-]+", "openai", True),
        ("tools.max_count", 128, "openai", True),
        ("tools.max_count", None, "anthropic", True),
        ("tools.strict", "optional", "openai_responses", True),
        ("tools.by_prompt", "hermes", "openai", False),
        ("results.alone", True, "bedrock", True),
        ("schema.refs", True, "ollama", True),
        ("results.name", "optional", "mistral", True),
        ("results.name", "refused", "mistral", False),
        ("turns.last", "any", "llamacpp", True),
        ("turns.prefill", "yes", "llamacpp", True),
        ("schema.refused", (), "openai", True),
        ("schema.formats", ("date-time",), "gemini", False),
        ("reasoning.efforts", (), "openai", False),
    ],
)
def test_entries_are_compared_by_what_they_mean(key: str, found: Any, target: str, same: bool) -> None:
    assert agrees(key, found, profiles.get(target).as_known()) is same


# --- the profile as a file --------------------------------------------------------------------------


def test_a_found_profile_is_read_back_as_it_was_found() -> None:
    nasty = 'its message: "quotes" \\ and # and \u007f é'
    result = result_of(
        one_of("ids.pattern", "[A-Za-z0-9.]+", note=nasty),
        one_of("ids.max_length", 24, confidence="weak"),
        one_of("tools.max_count", None),
        one_of("turns.media", ("image",)),
        one_of("results.media", ()),
        one_of("schema.refs", False),
        one_of("schema.refused", ("const",)),
        one_of("context.window", 4096, confidence="told", note="as its list of models says"),
        one_of("results.complete", False, settles=False),
        Finding(probe="replies.native", value=True, evidence=("r1",)),
    )
    profile = found_profile(result)
    assert (profile.ids.pattern, profile.ids.max_length, profile.ids.prefix) == ("[A-Za-z0-9.]+", 24, "call")
    assert profile.origin("ids.pattern").error == nasty.removeprefix("its message: ")
    assert [profile.origin(key).confidence for key in ("ids.pattern", "ids.max_length", "context.window")] == [
        *("observed", "guess", "documented"),
    ]
    assert profile.tools.max_count is None
    assert "image" in profile.turns.media
    assert profile.results.media == ()
    assert profile.schema.refused == ("const", "$ref", "$defs")
    assert profile.results.complete is True
    assert overrides_of(result).names == ("box",)
    assert "insecure = true" in profile_toml(result, key_env="K", day="2026-11-15")
    assert 'key_env = "K"' in profile_toml(result, key_env="K")
    assert "2026-11-15" in profile_toml(result, day="2026-11-15")


def test_an_odd_name_is_quoted() -> None:
    provider = ProviderInfo(name="my box", url="http://127.0.0.1", protocols=(), model="")
    written = profile_toml(result_of(provider=provider))
    assert '[profiles."my box"]' in written
    assert "models = []" in written


# --- the report -------------------------------------------------------------------------------------


def test_a_report_tells_all_and_acts_on_nothing() -> None:
    exchange = Exchange(
        name="r1", probe="p", about="x | y", method="POST", url="u", status=400, reply={"a": "`"}, verdict="refused"
    )
    result = result_of(
        one_of("ids.max_length", 9, note="its message: <b>`|</b>"),
        one_of("turns.first", "any"),
        one_of("stream.index", "reliable", settles=False, note="one stream"),
        Finding(probe="replies.parallel", value=None, evidence=("r1",), confidence="weak"),
        Finding(probe="streams.names", value=True, evidence=("r1",), quirk="names are repeated"),
        tooling=ToolingInfo(format="json", example="```\nx", quirks=("names are repeated",)),
        probes=(
            ProbeOutcome(probe="a", group="ids", question="?", outcome="skipped", reason="because"),
            ProbeOutcome(probe="b", group="ids", question="?", outcome="skipped", reason="not for x"),
        ),
        evidence=(exchange,),
        complete=False,
        stopped="the budget",
        opinion=Opinion(by="a/b", format="xml", schema_requirements=("s",), quirks=("q",), disagrees=("d",)),
    )
    differences = Departure(key="ids.max_length", found=9, expected=40, stated=True, rule="r", evidence=("r1",))
    text = report(result, differences=(differences,), against="openai", day="2026-11-15")
    for words in (
        "**Not complete:** `the budget`",
        "names are repeated",
        "`skipped: because`: a",
        "against the evidence",
    ):
        assert words in text
    assert "`<b>'/</b>`" in text
    assert "x / y" in text
    assert "not for x" not in text
    assert "No difference from its profile was found" in report(result_of(), against="openai")
    assert "gave none: `oops`" in report(result_of(opinion=Opinion(by="a/b", problem="oops")))


def test_values_are_told_in_words() -> None:
    assert [value_text(value) for value in (None, True, False, 1, 0, "", (), ("a", "b"), "x")] == [
        *("no limit found", "yes", "no", "1", "0", "none", "none", "a, b", "x"),
    ]
    assert code("") == ""
    assert remedy(one_of("ids.max_length", 9))
    assert not remedy(one_of("ids.max_length", 900))
    assert not remedy(one_of("ids.max_length", 9, settles=False))
    assert not remedy(Finding(probe="x", value=1))


# --- the plan ---------------------------------------------------------------------------------------


def test_a_plan_is_an_estimate_from_above() -> None:
    whole = plan()
    assert whole.requests == sum(one.requests for one in whole.probes)
    for variant in VARIANTS[:1]:
        spent = variant.found_out().spent
        planned = plan(variant.protocol)
        assert spent.requests <= planned.requests
        assert spent.input_tokens + spent.output_tokens <= planned.input_tokens + planned.output_tokens
    assert plan("gemini", ["ids"]).requests < plan("gemini").requests


# --- budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(requests=20), "20 requests"),
        (Budget(tokens=900), "900 tokens"),
        (Budget(seconds=0.2, timeout=5), "the time of 0.2 s is over"),
    ],
)
def test_a_budget_is_kept(budget: Budget, words: str) -> None:
    ticks = iter(range(10_000_000))
    clock = (lambda: next(ticks) / 1000) if "time" in words else None
    told: dict[str, Any] = {"clock": clock} if clock is not None else {}
    result = found_out(Simulator(), "openai", protocol="openai_chat", model="gpt-4.1", budget=budget, **told)
    assert not result.complete
    assert words in result.stopped
    assert result.spent.requests <= budget.requests
    assert result.spent.input_tokens + result.spent.output_tokens <= budget.tokens


@pytest.mark.parametrize("wrong", [{"requests": 0}, {"tokens": 0}, {"seconds": 0}, {"timeout": -1.0}])
def test_a_budget_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="expected"):
        Budget(**wrong)


def test_a_busy_endpoint_is_not_waited_for_beyond_the_time_there_is() -> None:
    async def ask() -> None:
        line = EndpointClient(
            Endpoint(url="http://a", transport=AsgiTransport(Simulator())), Budget(seconds=1), sleep=no_sleep
        )
        await line._wait(ParsedReply(verdict="busy", failure=Failure("rate_limit", "", retry_after=15.0)), 1)

    with pytest.raises(StoppedError, match="no time left"):
        asyncio.run(ask())
    assert no_response("x", "rate_limit").verdict == "busy"


def test_a_discovery_tells_what_it_knows_at_any_time() -> None:
    endpoint = Endpoint(url="http://box/v1", transport=AsgiTransport(Simulator()), key=KEY)
    early = Discovery(endpoint).result()
    assert (early.complete, early.stopped, early.sdk.protocol, early.entries) == (False, "it is still running", "", {})
    assert early.entry("ids.style") is None
    assert Discovery(endpoint).result("interrupted").stopped == "interrupted"


def test_tools_that_one_protocol_refuses_are_tried_over_the_next() -> None:
    result = found_out(Simulator(), "openai", model="gpt-5.5", only=["replies"])
    assert result.sdk.protocol == "openai_responses"
    assert result.provider.protocols == ("openai_responses", "openai_chat")
    assert "requests with tools are refused over openai_chat" in result.tooling.quirks
    assert result.tooling.native


def test_the_context_that_a_list_tells_is_an_entry() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        listed = {"data": [{"id": "m", "context_length": 8192}]}
        body = listed if scope["path"].endswith("/models") else GOOD
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    result = found_out(app, "openai", protocol="openai_chat", only=["endpoint"])
    assert result.provider.context_tokens == 8192
    found = result.entry("context.window")
    assert found is not None
    assert (found.value, found.confidence, found.evidence) == (8192, "told", ("r1",))


# --- opinions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no JSON", "the expected form"),
        ('{"format": 7}', "the expected form"),
        ('{"format": "soap"}', "unknown format in its reply: soap"),
        ('{"format": "json"}', ""),
    ],
)
def test_an_opinion_must_be_of_the_form_that_was_asked_for(text: str, problem: str) -> None:
    opinion = read_opinion(text, "a/b", result_of())
    assert problem in opinion.problem
    assert bool(opinion.problem) == bool(problem)
    assert opinion.disagrees == ()


def test_the_evidence_in_a_prompt_is_bounded_and_the_four_questions_are_asked() -> None:
    exchanges = tuple(
        Exchange(
            name=f"r{n}",
            probe="replies.native" if n == 50 else "x",
            about=f"n{n}",
            method="POST",
            url="u",
            reply="y" * 4000,
        )
        for n in range(100)
    )
    result = result_of(evidence=exchanges)
    assert len(records(result)) < MAX_EVIDENCE + 5_000
    assert json.loads(records(result))["records"][0]["about"] == "n50"
    system = prompt(result, "m")["messages"][0]["content"]
    for question in ("1. Format type", "2. Example tool call syntax", "3. Schema requirements", "4. Any quirks"):
        assert question in system

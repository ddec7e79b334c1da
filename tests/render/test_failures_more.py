"""Failures of class L, of retries and fallbacks (K) as far as they concern a request, and several classes at once."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from support.protocols.scripted_requests import PROTOCOLS, A, R, Step, U, call, exchange, request_body
from support.translate.conversion_checks import Fields, Target, assert_reported, convert_checked, every_target, parts_of
from toolglot import Policy, profiles

MISSING = Policy().missing_result


def messages_of(body: Fields) -> list[bytes]:
    found: Any = next(body[key] for key in ("messages", "contents", "input") if key in body)
    return [msgspec.json.encode(message) for message in found]


def batch(count: int) -> list[Step]:
    return [U("go"), *exchange(count), A(text="so"), U("on"), *exchange(1, 50), U("more")]


# --- L1 -----------------------------------------------------------------------------------------------


@every_target
@pytest.mark.parametrize("count", [1, 2, 6])
def test_L1_a_rejected_call_that_is_resumed_later_is_answered_once(target: Target, count: int) -> None:
    calls = A(*(call(f"c{number}", arguments={"n": number}) for number in range(count)))
    for source in PROTOCOLS:
        rejected = [R(f"c{number}", "The user rejected this call.", failed=True) for number in range(count)]
        resumed = [U("go"), calls, *rejected, U("do it after all"), *exchange(count, 20), U("so?")]
        parts = parts_of(convert_checked(request_body(source, *resumed), source, target), target)
        assert all("rejected" in parts.answers()[number] for number in range(count))
        assert all(f"printed c{number}" in parts.answers()[number] for number in range(20, 20 + count))
        interrupted = [U("go"), calls, U("never mind")]
        parts = parts_of(convert_checked(request_body(source, *interrupted), source, target), target)
        assert all(MISSING in text for text in parts.answers().values())
        assert "never mind" in parts.everything


# --- L2 -----------------------------------------------------------------------------------------------


@every_target
def test_L2_a_batch_of_six_cut_at_every_point_from_the_front_is_valid_and_keeps_every_result(target: Target) -> None:
    for source in ("openai_chat", "openai_responses"):
        steps = batch(6)
        for cut in range(1, len(steps)):
            kept = [U("[summary of what was before]"), *steps[cut:]]
            out = convert_checked(request_body(source, *kept), source, target)
            everything = parts_of(out, target).everything
            for step in kept:
                assert (step.text or "") in everything


@every_target
def test_L2_a_batch_of_six_cut_at_every_point_from_the_back_is_valid_and_answers_every_call(target: Target) -> None:
    for source in PROTOCOLS:
        steps = batch(6)
        for cut in range(1, len(steps)):
            parts = parts_of(convert_checked(request_body(source, *steps[:cut]), source, target), target)
            results = {step.text for step in steps[:cut] if step.who == "result"}
            assert all(any(text in result.text for result in parts.results) for text in results if text)


@every_target
def test_L2_a_batch_that_lost_any_one_message_is_valid(target: Target) -> None:
    for source in ("openai_chat", "openai_responses"):
        steps = batch(6)
        for gone in range(len(steps)):
            convert_checked(request_body(source, *steps[:gone], *steps[gone + 1 :]), source, target)


PLACEHOLDER = "skip_thought_signature_validator"


def with_placeholder_in_the_open_step(messages: list[bytes]) -> list[bytes]:
    """Gemini contents with the one repair of the tail: where calls since the user's last words are unsigned, the first
    of each content has the placeholder that Gemini takes for a signature. It goes with the user's next words."""
    contents = [msgspec.json.decode(message) for message in messages]
    last = max(
        at for at, content in enumerate(contents) if content["role"] == "user" and "text" in content["parts"][-1]
    )
    for content in contents[last:]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls:
            calls[0]["thoughtSignature"] = PLACEHOLDER
    return [msgspec.json.encode(content) for content in contents]


# --- L3 -----------------------------------------------------------------------------------------------


@every_target
@pytest.mark.parametrize("source", PROTOCOLS)
def test_L3_law_5_a_longer_history_begins_with_what_was_sent_before(target: Target, source: str) -> None:
    steps = [U("one"), *exchange(2), U("two"), *exchange(6, 10), A(text="so"), U("three"), *exchange(1, 20), U("four")]
    ends = [number for number, step in enumerate(steps, 1) if step.who in ("user", "result")]
    whole = messages_of(convert_checked(request_body(source, *steps), source, target).body)
    for end in ends:
        if end < len(steps) and steps[end].who != "assistant":
            continue
        out = convert_checked(request_body(source, *steps[:end]), source, target)
        prefix, expected = messages_of(out.body), whole[: len(messages_of(out.body))]
        if (source, *target) == ("gemini", "gemini", "gemini-3-pro") and steps[end - 1].who == "result":
            expected = with_placeholder_in_the_open_step(expected)
            assert [entry.action for entry in out.report if "gemini-g3-placeholder" in entry.reason] == ["added"]
        assert prefix == expected


@every_target
def test_L3_repairs_in_the_past_stay_as_they_were(target: Target) -> None:
    broken = [U("one"), A(call("c1"), call("c2")), R("c1", "real"), R("gone", "orphan"), A(text="so")]
    for source in PROTOCOLS:
        shorter = messages_of(convert_checked(request_body(source, *broken, U("two")), source, target).body)
        longer = messages_of(
            convert_checked(request_body(source, *broken, U("two"), *exchange(3, 10), U("three")), source, target).body
        )
        assert longer[: len(shorter)] == shorter


# --- K ------------------------------------------------------------------------------------------------


@every_target
def test_K1_an_attempt_that_was_kept_beside_its_retry_is_an_exchange_of_its_own(target: Target) -> None:
    for source in PROTOCOLS:
        failed, again = (A(call("call_0", arguments={"n": 0})) for _ in range(2))
        out = convert_checked(
            request_body(source, U("go"), failed, again, R("call_0", "printed 0"), U("on")), source, target
        )
        parts = parts_of(out, target)
        assert [text for text in (result.text for result in parts.results) if "printed 0" in text]
        assert len(parts.results) == len(parts.calls)


@every_target
def test_K3_a_fallback_carries_completed_calls_and_results_over(target: Target) -> None:
    for source in PROTOCOLS:
        parts = parts_of(convert_checked(request_body(source, U("go"), *exchange(3)), source, target), target)
        assert {n: f"printed c{n}" in text for n, text in parts.answers().items()} == {0: True, 1: True, 2: True}


# --- several at once ----------------------------------------------------------------------------------

FAULTS: dict[str, list[Step]] = {
    "A1": [A(call("a1")), U("stopped")],
    "A2": [R("gone", "orphan")],
    "A3": [A(call("a3")), R("a3", "ok"), R("a3", "again", failed=True)],
    "A4": [A(call("a4")), U("wedged"), R("a4", "late")],
    "B6": [A(call("call_0"), call("call_0", "write")), R("call_0", "one"), R("call_0", "two")],
    "B7": [A(call(""), call(" ")), R("", "one"), R(" ", "two")],
    "C1": [A(call("c1")), R("c1"), U("two"), U("three")],
    "C6": [A(call("p")), A(call("q", "write")), R("q", "inner"), R("p", "outer")],
    "C7": [A(text=""), U(""), A(call("c7"), text=""), R("c7", "")],
    "F3": [A(call("f3", "read", {})), R("f3")],
    "six": exchange(6, 30),
}


@every_target
def test_every_pair_of_faults_in_one_history_is_healed(target: Target) -> None:
    for first, second in itertools.permutations(FAULTS, 2):
        source = PROTOCOLS[(len(first) + len(second) + ord(second[1])) % len(PROTOCOLS)]
        steps = [U("start"), *FAULTS[first], A(text="between"), U("go"), *FAULTS[second]]
        out = convert_checked(request_body(source, *steps), source, target)
        everything = parts_of(out, target).everything
        for step in steps:
            assert (step.text or "").strip() in everything, (first, second, source)


@every_target
@pytest.mark.parametrize("source", PROTOCOLS)
def test_all_faults_in_one_history_are_fixed_and_reported(target: Target, source: str) -> None:
    steps = [U("start"), *(step for fault in FAULTS.values() for step in (*fault, A(text="so"), U("on")))]
    out = convert_checked(request_body(source, *steps), source, target)
    everything = parts_of(out, target).everything
    for text in (
        "orphan",
        "wedged",
        "late",
        "inner",
        "outer",
        "again",
        "one",
        "two",
        *(f"printed c{n}" for n in range(30, 36)),
    ):
        assert text in everything
    assert_reported(out, "has no result", fault="canonical")
    assert_reported(out, "has no call", fault="canonical")
    assert_reported(out, "a call has only one result", fault="canonical")
    assert_reported(out, "behind their calls", fault="canonical")
    assert {entry.target for entry in out.report} <= {"", profiles.resolve(target[0])}

"""Failures of class A: calls and results that do not pair, as clients send them, for every target.

Each test builds what its class's reports describe, and asserts what must come of it: real results with their own
calls, made-up ones where there is none, everything else as text, and an entry of the report for each change.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from support.protocols.scripted_requests import PROTOCOLS, A, R, S, Step, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GEMINI,
    GPT,
    MISTRAL,
    NOVA,
    RESPONSES,
    Fields,
    Target,
    assert_forwarded,
    assert_reported,
    convert_checked,
    entries_about,
    every_target,
    parts_of,
)
from toolglot import Policy, lint, profiles, repair
from toolglot.render.content.empty_content import EMPTY_MESSAGE
from toolglot.render.pairing import ORPHANED, SECOND

MISSING = Policy().missing_result
ORPHAN = ORPHANED.partition("{")[0]
ANOTHER = SECOND.partition("{")[0]

BEFORE = [U("hello"), *exchange(1, 90), A(text="fine"), U("then")]
AFTER = [A(text="well"), U("next")]


def at_position(position: str, steps: list[Step]) -> list[Step]:
    """The steps at the first, a middle or the last turn of a conversation."""
    if position == "first":
        return [U("go"), *steps, *AFTER]
    return [*BEFORE, *steps, *(AFTER if position == "middle" else ())]


def batch(count: int, *, answered: tuple[int, ...]) -> list[Step]:
    calls = A(*(call(f"c{number}", arguments={"n": number}) for number in range(count)))
    return [calls, *(R(f"c{number}", f"printed {number}") for number in answered)]


WHERE = ("first", "middle", "last")
SUBSETS = [(1, ()), (2, ()), (2, (0,)), (2, (1,)), (6, (2,)), (6, (5, 3, 0))]


# --- calls without a result ---------------------------------------------------------------------------


@every_target
def test_A1_A4_A7_A8_A10_A11_calls_without_a_result_get_one_that_states_it(target: Target) -> None:
    for source in PROTOCOLS:
        for position in WHERE:
            for count, answered in SUBSETS:
                body = request_body(source, *at_position(position, batch(count, answered=answered)))
                out = convert_checked(body, source, target)
                parts = parts_of(out, target)
                answers = {number: text for number, text in parts.answers().items() if number < count}
                assert list(answers) == list(range(count)), "no call was deleted, and their order stays"
                for number, text in answers.items():
                    assert (f"printed {number}" in text) == (number in answered)
                    assert (MISSING in text) == (number not in answered)
                added = entries_about(out, "has no result", action="added", fault="canonical")
                assert len(added) == count - len(answered)
                assert all(entry.call_ids[0] in out.report.ids.canonical for entry in added)


@pytest.mark.parametrize("tail", [[U("u2")], [], [U("Summarise the conversation.")]])
def test_A1_an_orphan_call_is_answered_first_in_the_next_user_turn_of_anthropic(tail: list[Step]) -> None:
    for calls, results in ((("c1", "c2"), ("c1",)), (("c1",), ())):
        steps = [U(), A(*map(call, calls)), *(R(id, "real") for id in results), *tail]
        body = request_body("anthropic", *steps, model=CLAUDE[1])
        assert any(
            "without `tool_result` blocks" in str(found) or "tool_use" in str(found) for found in lint(body, *CLAUDE)
        )
        out = convert_checked(body, "anthropic", CLAUDE)
        answer = out.body["messages"][2]
        assert answer["role"] == "user"
        blocks = answer["content"]
        assert [block.get("tool_use_id") for block in blocks[: len(calls)]] == list(calls)
        missing = blocks[len(calls) - 1]
        assert missing["is_error"] is True
        assert missing["content"] == MISSING or missing["content"] == [{"type": "text", "text": MISSING}]
        parts = parts_of(out, CLAUDE)
        assert [one.text for one in parts[1 + 2 * len(calls) :]] == [step.text for step in tail]
        assert_reported(out, "has no result", action="added", fault="canonical")


@pytest.mark.parametrize(("results", "actions"), [(("c1",), ["added"]), (("c2", "c1"), ["moved"])])
def test_A1_only_results_that_were_elsewhere_are_reported_as_moved(
    results: tuple[str, ...], actions: list[str]
) -> None:
    steps = [U(), A(call("c1"), call("c2")), U("wait"), *(R(id, "real") for id in results), U("go on")]
    steps = steps if actions == ["moved"] else [*steps[:2], *steps[3:]]
    body = request_body("anthropic", *steps, model=CLAUDE[1])
    assert [entry.action for entry in repair(body, target="anthropic").report] == actions


def test_A1_a_compaction_request_without_tools_is_fixed_too() -> None:
    body = request_body("anthropic", U(), A(call("c1")), U("Summarise."), model=CLAUDE[1], tools=())
    parts = parts_of(convert_checked(body, "anthropic", CLAUDE), CLAUDE)
    assert parts.shape == ["U", "C", "R", "U"]


@pytest.mark.parametrize("count", [1, 2, 6])
def test_A1_a_valid_native_exchange_is_forwarded_byte_for_byte(count: int) -> None:
    for source, target in (
        ("anthropic", CLAUDE),
        ("openai_chat", GPT),
        ("openai_responses", RESPONSES),
        ("gemini", GEMINI),
        ("bedrock", ("bedrock", "anthropic.claude-sonnet-4-5")),
    ):
        body = request_body(
            source, S(), U(), *exchange(count), A(text="done"), U("more"), *exchange(count, 10), model=target[1]
        )
        assert_forwarded(body, target)


# --- results without a call ---------------------------------------------------------------------------


@every_target
def test_A2_A5_A6_A9_a_result_without_a_call_is_text_and_never_a_result(target: Target) -> None:
    for source in PROTOCOLS:
        for steps in (
            [R("gone", "forty-two"), U("go")],
            [U("go"), R("gone", "forty-two"), U("so?")],
            [U("go"), A(text="hm"), R("gone", "forty-two")],
            [U("go"), *exchange(2), R("gone", "forty-two"), U("so?")],
        ):
            out = convert_checked(request_body(source, *steps), source, target)
            parts = parts_of(out, target)
            assert "forty-two" in parts.everything
            assert not any("forty-two" in result.text for result in parts.results)
            (text,) = [one for one in parts if "forty-two" in one.text]
            assert text.kind == "text"
            assert text.speaker == "user"
            assert ORPHAN in text.text
            assert_reported(out, "has no call", action="converted", fault="canonical")


@every_target
def test_A2_a_result_goes_back_to_its_call_wherever_it_is(target: Target) -> None:
    for source in PROTOCOLS:
        later = [U("go"), A(call("c1", arguments={"n": 1})), U("wait"), R("c1", "printed 1"), U("so?")]
        second_previous = [
            U("go"),
            A(call("c1", arguments={"n": 1})),
            A(call("c2", arguments={"n": 2})),
            R("c2", "printed 2"),
            R("c1", "printed 1"),
            U("so?"),
        ]
        for steps in (later, second_previous):
            out = convert_checked(request_body(source, *steps), source, target)
            parts = parts_of(out, target)
            assert all(f"printed {number}" in text for number, text in parts.answers().items())
            assert ORPHAN not in parts.everything
            assert MISSING not in parts.everything
            stays = source == target[0] and not profiles.get(*target).results.adjacent
            if not stays and (source, steps) != ("openai_responses", second_previous):  # one turn
                assert_reported(out, "directly behind their calls", action="moved", fault="canonical")


@every_target
def test_A2_a_result_that_is_repeated_later_is_one_result(target: Target) -> None:
    for source in PROTOCOLS:
        for again in ("printed 1", "printed otherwise"):
            steps = [
                U("go"),
                A(call("c1", arguments={"n": 1})),
                R("c1", "printed 1"),
                U("so?"),
                R("c1", again),
                U("and?"),
            ]
            parts = parts_of(convert_checked(request_body(source, *steps), source, target), target)
            assert len(parts.results) == 1
            assert "printed 1" in parts.results[0].text
            assert parts.everything.count("printed otherwise") == (again != "printed 1")
            if again != "printed 1":
                assert ANOTHER in parts.everything


# --- more than one result -----------------------------------------------------------------------------


@every_target
@pytest.mark.parametrize("order", [("ok", "Interrupted"), ("Interrupted", "ok"), ("ok", "ok")])
def test_A3_a_call_keeps_one_result_the_first_and_another_is_text(target: Target, order: tuple[str, str]) -> None:
    for source in PROTOCOLS:
        results = [R("x", text, failed=text == "Interrupted") for text in order]
        out = convert_checked(request_body(source, U(), A(call("x")), *results, U("so?")), source, target)
        parts = parts_of(out, target)
        (result,) = parts.results
        assert order[0] in result.text
        if order[0] == order[1]:
            assert parts.everything.count("ok") == 1
            assert_reported(out, "the same result", action="dropped", fault="canonical")
        else:
            assert order[1] in parts.everything
            assert_reported(out, "a call has only one result", action="converted", fault="canonical")


def test_A3_the_fixture_two_blocks_for_one_call_of_anthropic() -> None:
    body = request_body(
        "anthropic", U(), A(call("x")), R("x", "ok"), R("x", "Interrupted", failed=True), model=CLAUDE[1]
    )
    out = convert_checked(body, "anthropic", CLAUDE)
    (block,) = out.body["messages"][2]["content"]
    assert block == {"type": "tool_result", "tool_use_id": "x", "content": "ok"}
    assert "Interrupted" in parts_of(out, CLAUDE)[-1].text


# --- order --------------------------------------------------------------------------------------------


@every_target
def test_A4_words_between_calls_and_results_come_after_them(target: Target) -> None:
    for source in PROTOCOLS:
        wedged = [U("go"), A(call("c0", arguments={"n": 0}), call("c1", arguments={"n": 1}))]
        for steps in (
            [*wedged, U("wedged"), R("c0", "printed 0"), R("c1", "printed 1"), U("so?")],
            [*wedged, R("c0", "printed 0"), U("wedged"), R("c1", "printed 1"), U("so?")],
            [*wedged, R("c1", "printed 1"), U("wedged"), R("c0", "printed 0")],
        ):
            body = request_body(source, *steps)
            out = convert_checked(body, source, target)
            if source == target[0] and not profiles.get(*target).results.adjacent:
                assert out.body["input"] == body["input"]
                continue
            parts = parts_of(out, target)
            kinds = [one.kind for one in parts]
            last_result = max(number for number, kind in enumerate(kinds) if kind == "result")
            (wedge,) = [number for number, one in enumerate(parts) if "wedged" in one.text]
            assert wedge > last_result
            assert parts.answers() == {0: parts.results[0].text, 1: parts.results[1].text}
            assert "printed 0" in parts.results[0].text
            assert_reported(out, "directly behind their calls", action="moved", fault="canonical")


def test_A4_results_and_text_of_one_anthropic_turn_are_tool_messages_and_then_a_user() -> None:
    body = request_body("anthropic", U(), A(call("c1")), R("c1", "real"), U("also this"), model=CLAUDE[1])
    out = convert_checked(body, "anthropic", GPT)
    assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "tool", "user"]
    text_first = request_body("anthropic", U(), A(call("c1")), model=CLAUDE[1])
    blocks = [
        {"type": "text", "text": "also this"},
        {"type": "tool_result", "tool_use_id": "c1", "content": "real"},
    ]
    text_first["messages"].append({"role": "user", "content": blocks})
    out = convert_checked(text_first, "anthropic", GPT)
    assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "tool", "user"]


def test_A5_the_fixture_of_chat_has_no_tool_message_and_its_text_survives() -> None:
    body = request_body("openai_chat", U(), R("x", "42"), U("so?"), model=GPT[1])
    assert lint(body, *GPT)
    out = convert_checked(body, "openai_chat", GPT)
    assert [message["role"] for message in out.body["messages"]] == ["user", "user", "user"]
    assert "42" in out.body["messages"][1]["content"]
    assert_reported(out, "has no call", fault="canonical")


@pytest.mark.parametrize("call_id", ["", " ", "call_unknown"])
@every_target
def test_A6_an_output_without_a_call_id_or_with_an_unknown_one_is_text(target: Target, call_id: str) -> None:
    body = request_body("openai_responses", U("go"), R(call_id, "forty-two"), U("so?"), model=RESPONSES[1])
    out = convert_checked(body, "openai_responses", target)
    parts = parts_of(out, target)
    assert parts.results == []
    assert "forty-two" in parts.everything
    assert_reported(out, "has no call", fault="canonical")


@every_target
@pytest.mark.parametrize("between", ["", "I look."])
def test_A7_a_message_between_a_call_and_its_output_does_not_part_them(target: Target, between: str) -> None:
    steps = [U("go"), A(call("c1")), A(text=between), R("c1", "printed 1"), U("so?")]
    out = convert_checked(request_body("openai_responses", *steps, model=RESPONSES[1]), "openai_responses", target)
    parts = parts_of(out, target)
    assert len(parts.calls) == 1
    assert "printed 1" in parts.results[0].text
    assert not [one for one in parts if one.kind == "text" and not one.text.strip() and one.speaker != "assistant"]
    assert parts.everything.count("I look.") == bool(between)


def test_A7_calls_of_one_turn_are_one_chat_message() -> None:
    steps = [U("go"), A(call("c1"), call("c2")), R("c1"), R("c2"), U("so?")]
    out = convert_checked(request_body("openai_responses", *steps, model=RESPONSES[1]), "openai_responses", GPT)
    assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert len(out.body["messages"][1]["tool_calls"]) == 2


# --- Gemini, Bedrock, Mistral -------------------------------------------------------------------------


def gemini_body(*answers: list[Fields]) -> Fields:
    calls = [{"functionCall": {"name": "read", "args": {"n": number}}} for number in range(3)]
    contents: list[Fields] = [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": calls}]
    contents += [{"role": "user", "parts": parts} for parts in answers]
    return {"contents": contents}


def response(number: Any, name: str = "read") -> Fields:
    return {"functionResponse": {"name": name, "response": {"output": f"printed {number}"}}}


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro"])
@pytest.mark.parametrize(
    "answers",
    [
        [[response(0), response(1)]],
        [[response(0), response(1), response(2), response(3)]],
        [[response(0)], [response(1), response(2)]],
        [[response(0), {"text": "by the way"}, response(1), response(2)]],
        [[{"text": "by the way"}, response(0), response(1), response(2)]],
        [],
    ],
)
def test_A8_gemini_gets_exactly_as_many_responses_in_one_turn_in_order(model: str, answers: list[list[Fields]]) -> None:
    target = ("gemini", model)
    body = gemini_body(*answers)
    assert lint(body, *target)
    out = convert_checked(body, "gemini", target)
    contents = out.body["contents"]
    assert [content["role"] for content in contents[:3]] == ["user", "model", "user"]
    parts = contents[2]["parts"]
    assert ["functionResponse" in part for part in parts] == [True] * 3
    originals = [
        part["functionResponse"]["response"]["output"] for turn in answers for part in turn if "text" not in part
    ]
    expected = [*originals[:3], *[None] * (3 - len(originals))]
    for part, text in zip(parts, expected, strict=False):
        found = part["functionResponse"]["response"]
        assert found == {"output": text} if text else MISSING in str(found)
    everything = str(contents)
    assert all(text in everything for text in originals)
    assert ("by the way" in everything) == any("text" in part for turn in answers for part in turn)
    assert out.report.entries


@pytest.mark.parametrize("target", [GEMINI, ("gemini", "gemini-3-pro"), ("vertex", "gemini-3-pro")])
def test_A9_a_gemini_call_follows_a_user_turn_or_responses(target: Target) -> None:
    for steps in (
        [S(), A(call("c1")), R("c1"), U("so?")],
        [A(call("c1")), R("c1")],
        [U(""), A(call("c1")), R("c1")],
        [U("go"), A(call("c1")), R("c1"), R("gone", "orphan"), A(text="hm"), U("so?")],
        [U("go"), A(text="I look."), A(call("c1")), R("c1")],
    ):
        for source in ("openai_chat", "anthropic", "gemini"):
            body = request_body(source, *steps)
            out = convert_checked(body, source, target)
            contents = out.body["contents"]
            assert contents[0]["role"] == "user"
            for before, after in itertools.pairwise(contents):
                if any("functionCall" in part for part in after["parts"]):
                    assert before["role"] == "user"
                if any("functionResponse" in part for part in after["parts"]):
                    assert any("functionCall" in part for part in before["parts"])
            assert out.report.entries or out.body == body


def test_A9_an_empty_user_turn_keeps_its_position() -> None:
    out = convert_checked(request_body("openai_chat", U(""), A(call("c1")), R("c1")), "openai_chat", GEMINI)
    assert out.body["contents"][0]["parts"] == [{"text": EMPTY_MESSAGE}]
    assert_reported(out, "a placeholder was added", action="replaced")
    body = request_body("gemini", U(""), A(call("c1")), R("c1"))
    assert convert_checked(body, "gemini", GEMINI).body == body


@every_target
@pytest.mark.parametrize("count", [2, 6])
def test_A10_a_user_turn_for_each_result_becomes_what_the_target_wants(target: Target, count: int) -> None:
    body = request_body(
        "bedrock", U("go"), A(*(call(f"c{number}", arguments={"n": number}) for number in range(count)))
    )
    for number in range(count):
        block = {"toolResult": {"toolUseId": f"c{number}", "content": [{"text": f"printed {number}"}]}}
        body["messages"].append({"role": "user", "content": [block]})
    out = convert_checked(body, "bedrock", target)
    parts = parts_of(out, target)
    assert parts.answers() == {number: parts.results[number].text for number in range(count)}
    assert all(f"printed {number}" in result.text for number, result in enumerate(parts.results))


@pytest.mark.parametrize("model", [NOVA[1], "anthropic.claude-sonnet-4-5", "meta.llama3-1-70b-instruct"])
def test_A10_bedrock_results_are_merged_into_one_message_and_reported(model: str) -> None:
    body = request_body("bedrock", U("go"), A(call("c1"), call("c2")), model=model)
    for id in ("c1", "c2"):
        block = {"toolResult": {"toolUseId": id, "content": [{"text": id}]}}
        body["messages"].append({"role": "user", "content": [block]})
    target = ("bedrock", model)
    assert lint(body, *target)
    out = convert_checked(body, "bedrock", target)
    assert [len(message["content"]) for message in out.body["messages"]] == [1, 2, 2]
    assert_reported(out, "behind their calls", action="moved", fault="canonical")


def test_A10_more_results_than_calls_are_text_on_bedrock() -> None:
    body = request_body("bedrock", U("go"), A(call("c1")), R("c1", "real"), R("c9", "surplus"), model=NOVA[1])
    assert lint(body, *NOVA)
    out = convert_checked(body, "bedrock", NOVA)
    parts = parts_of(out, NOVA)
    assert [result.text for result in parts.results] == ["real"]
    assert "surplus" in parts.everything


@pytest.mark.parametrize("answered", [(), (1,), (0, 2, 1)])
def test_A11_mistral_gets_as_many_results_as_calls(answered: tuple[int, ...]) -> None:
    ids = ("abcdefgh0", "abcdefgh1", "abcdefgh2")
    calls = A(*(call(id, arguments={"n": number}) for number, id in enumerate(ids)))
    body = request_body(
        "openai_chat", U("go"), calls, *(R(ids[number], f"printed {number}") for number in answered), model=MISTRAL[1]
    )
    out = repair(body, target="mistral")
    parts = parts_of(out, MISTRAL)
    assert lint(out.body, *MISTRAL) == ()
    assert [message["role"] for message in out.body["messages"]] == ["user", "assistant", "tool", "tool", "tool"]
    assert sorted(result.id for result in parts.results) == list(ids)
    assert all((f"printed {n}" in text) == (n in answered) for n, text in parts.answers().items())

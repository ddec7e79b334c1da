"""Failures of class C: the order of roles and what their messages may contain, as clients send it, for every target."""

from __future__ import annotations

import itertools

import pytest

from support.conversations.broken_conversations import TARGETS
from support.protocols.scripted_requests import PIXEL, PROTOCOLS, A, R, Step, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GPT,
    MISTRAL,
    NOVA,
    Fields,
    Target,
    assert_forwarded,
    assert_reported,
    convert_checked,
    entries_about,
    every_target,
    parts_of,
    protocol_of,
)
from toolglot import Policy, convert, lint, profiles, repair

BRIDGE = Policy().bridge_assistant
CONTINUE = Policy().bridge_user
OLD_MISTRAL = ("openai_compatible", "mistral-small-3-2-24b-instruct")
LLAMA = ("bedrock", "meta.llama3-1-70b-instruct")
OLD_CLAUDE = ("anthropic", "claude-sonnet-4-5")
IMAGE: Fields = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def roles(body: Fields) -> list[str]:
    return [message["role"] for message in body["messages"]]


# --- C1 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("source", PROTOCOLS)
def test_C1_old_templates_of_mistral_get_a_constant_bridge_between_results_and_a_user(source: str, count: int) -> None:
    first = request_body(source, U(), *exchange(count), U("two"))
    out = convert_checked(first, source, OLD_MISTRAL)
    messages = out.body["messages"]
    assert roles(out.body) == ["user", "assistant", *["tool"] * count, "assistant", "user"]
    assert messages[-2] == {"role": "assistant", "content": BRIDGE}
    assert_reported(out, "a user turn may not follow results", action="added", fault="loss")
    longer = convert_checked(
        request_body(source, U(), *exchange(count), U("two"), *exchange(count, 10), U("three")), source, OLD_MISTRAL
    )
    assert longer.body["messages"][: len(messages)] == messages


@pytest.mark.parametrize("source", PROTOCOLS)
def test_C1_mistral_itself_takes_a_user_after_results(source: str) -> None:
    out = convert_checked(request_body(source, U(), *exchange(2), U("two")), source, MISTRAL)
    assert roles(out.body) == ["user", "assistant", "tool", "tool", "user"]


def test_C1_a_tool_message_after_a_user_is_text_on_mistral() -> None:
    body = request_body("openai_chat", U(), A(call("abcdefgh1")), U("stop"), R("abcdefgh1", "real"), model=MISTRAL[1])
    assert lint(body, *MISTRAL)
    out = convert_checked(body, "openai_chat", MISTRAL)
    assert roles(out.body) == ["user", "assistant", "tool", "user"]
    assert out.body["messages"][2]["content"] == "real"


def test_C1_a_valid_order_is_forwarded() -> None:
    body = request_body(
        "openai_chat", U(), A(call("abcdefgh1")), R("abcdefgh1"), A(text="so"), U("on"), model=MISTRAL[1]
    )
    body["messages"][1]["content"] = ""
    assert_forwarded(body, MISTRAL)


# --- C2 -----------------------------------------------------------------------------------------------


def rules_for(source: str, target: Target) -> profiles.Profile:
    """What a request is held to: what was written for the target, to what it was seen to take."""
    profile = profiles.get(*target)
    return profile.as_known() if profiles.resolve(source) == profile.name else profile


@every_target
def test_C2_a_history_that_ends_with_the_assistant_ends_as_the_target_wants(target: Target) -> None:
    for source in PROTOCOLS:
        for steps in ([U(), A(text="done")], [U(), *exchange(2), A(text="done")], [U(), A(text="one"), A(text="done")]):
            out = convert_checked(request_body(source, *steps), source, target)
            parts = parts_of(out, target)
            rules = rules_for(source, target).turns
            assert "done" in parts.everything
            assert "onedone" not in parts.everything or source == "openai_responses"
            if rules.last == "user_or_result" and rules.prefill != "yes":
                assert parts[-1].speaker == "user"
                assert parts[-1].text == CONTINUE
                assert_reported(out, "the user must speak last", action="added", fault="loss")
            else:
                assert parts[-1].text.endswith("done")


@every_target
def test_C2_a_dangling_call_at_the_end_is_answered_and_gets_no_user(target: Target) -> None:
    for source in PROTOCOLS:
        out = convert_checked(request_body(source, U(), A(call("c1"))), source, target)
        assert parts_of(out, target).shape[:3] == ["U", "C", "R"] or "K" in parts_of(out, target).shape
        assert CONTINUE not in parts_of(out, target).everything
        assert_reported(out, "has no result", action="added")


@every_target
def test_C2_a_last_turn_of_thinking_alone_is_not_sent_as_such(target: Target) -> None:
    body = request_body("anthropic", U(), model=CLAUDE[1])
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    body["messages"].append({"role": "assistant", "content": [thinking]})
    parts = parts_of(convert_checked(body, "anthropic", target), target)
    assert parts[-1].kind == "text" or profiles.get(*target).turns.last == "any"


def test_C2_a_prefill_is_forwarded_where_the_model_accepts_one() -> None:
    assert_forwarded(request_body("anthropic", U(), A(text="The answer is"), model=OLD_CLAUDE[1]), OLD_CLAUDE)
    body = request_body("anthropic", U(), A(text="The answer is"), model=CLAUDE[1])
    assert any("prefill" in str(found) for found in lint(body, *CLAUDE))
    assert roles(repair(body, target="anthropic").body) == ["user", "assistant", "user"]


# --- C3, C4 -------------------------------------------------------------------------------------------


def mixed_body() -> Fields:
    """Text and an image among the results of one Anthropic turn."""
    body = request_body(
        "anthropic", U(), A(call("x", arguments={"n": 0}), call("y", arguments={"n": 1})), model=CLAUDE[1]
    )
    x, y = ({"type": "tool_result", "tool_use_id": id, "content": f"printed {id}"} for id in ("x", "y"))
    body["messages"].append({"role": "user", "content": [{"type": "text", "text": "also"}, x, IMAGE, y]})
    return body


def test_C3_the_fixture_results_first_then_the_rest() -> None:
    body = mixed_body()
    assert lint(body, *CLAUDE)
    out = convert_checked(body, "anthropic", CLAUDE)
    parts = parts_of(out, CLAUDE)
    assert parts.shape[:5] == ["U", "C", "C", "R", "R"]
    assert sorted(parts.shape[5:]) == ["M", "U"]
    assert [result.id for result in parts.results] == ["x", "y"]
    assert_reported(out, "behind their calls", action="moved", fault="canonical")


@every_target
def test_C3_nothing_comes_between_the_results_of_any_target(target: Target) -> None:
    parts = parts_of(convert_checked(mixed_body(), "anthropic", target), target)
    indexes = [number for number, one in enumerate(parts) if one.kind == "result"]
    if profiles.get(*target).calls.parallel:
        assert indexes[1] == indexes[0] + 1
    assert parts.answers()[0].endswith("printed x")
    assert "also" in parts.everything


@pytest.mark.parametrize("target", [LLAMA, ("bedrock", "mistral.mistral-large-2407-v1:0")])
def test_C4_words_and_results_are_turns_of_their_own_on_other_models_of_bedrock(target: Target) -> None:
    body = request_body("bedrock", U(), A(call("c1")), R("c1", "real"), U("also this"), model=target[1])
    out = convert_checked(body, "bedrock", target)
    parts = parts_of(out, target)
    messages = out.body["messages"]
    assert all(a["role"] != b["role"] for a, b in itertools.pairwise(messages))
    if lint(body, *target):
        assert parts.shape == ["U", "C", "R", "T", "U"]
        assert parts[3].text == BRIDGE
        assert_reported(out, "a bridge turn", action="added", fault="loss")
    else:
        assert out.body["messages"] == body["messages"]


@pytest.mark.parametrize("target", [NOVA, ("bedrock", "anthropic.claude-sonnet-4-5")])
def test_C4_claude_and_nova_on_bedrock_take_both_in_one_turn(target: Target) -> None:
    body = request_body("bedrock", U(), A(call("c1")), R("c1", "real"), U("also this"), model=target[1])
    assert_forwarded(body, target)


# --- C5, C6 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [t for t in TARGETS if profiles.get(*t).turns.alternate])
def test_C5_users_side_by_side_are_one_where_a_template_wants_it(target: Target) -> None:
    for source in PROTOCOLS:
        body = request_body(source, U("one"), U("two"), A(text="hm"), U("three"), U("four"))
        out = convert_checked(body, source, target)
        if not rules_for(source, target).turns.alternate:
            assert out.body["messages"] == body["messages"]
            continue
        assert roles(out.body) == ["user", "assistant", "user"]
        assert_reported(out, "consecutive turns of one speaker", action="converted", fault="loss")
        assert all(word in parts_of(out, target).everything for word in ("one", "two", "three", "four"))


@every_target
def test_C6_a_subagents_exchange_between_a_call_and_its_result_is_regrouped(target: Target) -> None:
    for source in PROTOCOLS:
        steps = [
            U(),
            A(call("c1", arguments={"n": 1})),
            A(call("d1", arguments={"n": 2})),
            R("d1", "printed 2"),
            R("c1", "printed 1"),
            A(text="so"),
            U("on"),
        ]
        parts = parts_of(convert_checked(request_body(source, *steps), source, target), target)
        assert {n: f"printed {n}" in text for n, text in parts.answers().items()} == {1: True, 2: True}


# --- C7, C8, C9 ---------------------------------------------------------------------------------------


@every_target
@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_C7_a_turn_that_only_calls_has_no_empty_text(target: Target, text: str) -> None:
    for source in PROTOCOLS:
        out = convert_checked(request_body(source, U(), A(call("c1"), text=text), R("c1"), U("on")), source, target)
        rules = profiles.get(*target).turns
        for one in parts_of(out, target).of("text"):
            assert one.text or rules.empty_text or one.speaker == "assistant"


@every_target
def test_C7_an_empty_assistant_turn_is_not_sent(target: Target) -> None:
    for source in PROTOCOLS:
        out = convert_checked(
            request_body(source, U("one"), A(text=""), U("two"), A(text="x"), U("three")), source, target
        )
        if source != protocol_of(target):
            assert [one.text for one in parts_of(out, target) if one.speaker == "assistant" and one.kind == "text"] == [
                "x"
            ]


def test_C7_the_fixtures_of_anthropic() -> None:
    body = request_body("anthropic", U(), A(call("c1"), text=""), R("c1"), model=CLAUDE[1])
    assert any("non-empty" in str(found) for found in lint(body, *CLAUDE))
    out = convert_checked(body, "anthropic", CLAUDE)
    assert [block["type"] for block in out.body["messages"][1]["content"]] == ["tool_use"]
    assert_reported(out, "empty text is refused", action="dropped")
    empty = request_body("anthropic", U(), A(text="x"), U("on"), model=CLAUDE[1])
    empty["messages"][1]["content"] = [{"type": "thinking", "thinking": "", "signature": ""}]
    out = convert_checked(empty, "anthropic", CLAUDE)
    assert all(message["content"] for message in out.body["messages"])
    assert "thinking" not in str(out.body)


def test_C7_kimi_never_gets_an_empty_assistant() -> None:
    target = ("kimi", "kimi-k2.5")
    body = request_body("openai_chat", U(), A(text=""), U("on"), model=target[1])
    body["messages"][1]["reasoning_content"] = ""
    out = convert_checked(body, "openai_chat", target)
    assert roles(out.body) == ["user", "user"]
    assert entries_about(out, "without content")


WORDS_OF_CONTENT = {"null": None, "empty": "", "omit": "absent"}


@pytest.mark.parametrize("target", [t for t in TARGETS if protocol_of(t) in ("openai_chat", "ollama", "cohere")])
def test_C8_the_missing_text_of_a_call_is_what_the_target_wants(target: Target) -> None:
    for source in PROTOCOLS:
        out = convert_checked(request_body(source, U(), *exchange(2), U("on")), source, target)
        wanted = WORDS_OF_CONTENT[profiles.get(*target).calls.empty_content]
        message = next(message for message in out.body["messages"] if message.get("tool_calls"))
        assert message.get("content", "absent") == wanted or source == protocol_of(target)


@every_target
def test_C8_a_result_of_null_is_a_text(target: Target) -> None:
    for source in ("openai_chat", "anthropic"):
        if source == protocol_of(target) == "anthropic":
            continue  # there the content of a result may be left out
        out = convert_checked(request_body(source, U(), A(call("c1")), R("c1", None), U("on")), source, target)
        assert isinstance(parts_of(out, target).results[0].text, str)


@pytest.mark.parametrize("target", [target for target in TARGETS if target != GPT])
def test_C8_an_assistant_turn_of_null_without_calls_is_not_sent(target: Target) -> None:
    out = convert_checked(request_body("openai_chat", U(), A(), U("on")), "openai_chat", target)
    assert not [one for one in parts_of(out, target) if one.speaker == "assistant"]
    assert_reported(out, "without content", action="dropped")


def test_C9_only_the_last_assistant_text_is_trimmed() -> None:
    body = request_body("anthropic", U(), A(text="x \n"), U("on"), A(text="| a |\n"), model=OLD_CLAUDE[1])
    assert any("trailing whitespace" in str(found) for found in lint(body, *OLD_CLAUDE))
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    parts = parts_of(out, OLD_CLAUDE)
    assert [one.text for one in parts if one.speaker == "assistant"] == ["x \n", "| a |"]
    assert_reported(out, "white space", action="replaced")


# --- C10 ----------------------------------------------------------------------------------------------

ONE_CALL = profiles.Overrides("[profiles.llamacpp.rules]\ncalls.parallel = false\n")


@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("source", PROTOCOLS)
@pytest.mark.parametrize("answered", ["all", "none", "last"])
def test_C10_parallel_calls_become_sequential_where_only_one_is_accepted(
    source: str, count: int, answered: str
) -> None:
    steps: list[Step] = exchange(count)
    kept = steps if answered == "all" else [steps[0], *(steps[-1:] if answered == "last" else ())]
    target = ("llamacpp", "local")
    out = convert_checked(request_body(source, U(), *kept, U("on")), source, target, overrides=ONE_CALL)
    parts = parts_of(out, target)
    assert parts.shape == ["U", *["C", "R"] * count, "U"]
    assert [call.value["n"] for call in parts.calls] == list(range(count))
    assert_reported(out, "one call per turn", action="converted", fault="loss")


@pytest.mark.parametrize("source", ["mistral", "openai", "anthropic"])
@pytest.mark.parametrize("words", ["", "I look."])
def test_law_7_an_empty_text_beside_calls_is_not_split_off(source: str, words: str) -> None:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Fields] = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": words, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "f", "content": "r"},
    ]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    body: Fields = {"model": "open-mistral-7b", "messages": messages, "tools": tools}
    if source == "anthropic":
        body = convert(body, source="openai", target="anthropic", model="claude-sonnet-4-5").body
    out = convert(body, source=source, target="mistral", model="open-mistral-7b")
    assert lint(out.body, "mistral") == ()
    again = repair(out.body, target="mistral")
    assert again.body == out.body
    assert len(again.report) == 0
    assert len(out.body["messages"]) == (5 if words else 3)

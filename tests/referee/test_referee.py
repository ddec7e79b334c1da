"""The referee as a whole: what it takes and gives, in which order and words, and that no body can harm it."""

from __future__ import annotations

import copy
import json
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from support.referee.good_bodies import (
    ONE,
    TARGETS,
    chat_call,
    claude_call,
    claude_result,
    claude_rich,
    claude_turns,
    good,
    rich,
)
from toolglot import InputError, JSONError, LimitError, Violation, lint, profiles
from toolglot.referee.checks import UNSEEN
from toolglot.referee.checks.ids import item_id_prefix
from toolglot.referee.checks.reasoning import grouped, may_end_turn, placeholder
from toolglot.referee.finding import RuleBreach, open_case
from toolglot.referee.judging import MAX_VIOLATIONS
from toolglot.referee.view import Message, PartView, View
from toolglot.referee.wording import provider_wording

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}, *messages], **more}


# --- What it takes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_good_bodies_have_no_violations(target: str) -> None:
    bodies = good(target)
    assert len(bodies) >= 15
    assert [(str(found), body) for body in bodies for found in lint(body, target, defaults=True)] == []


@pytest.mark.parametrize("target", ["openai", "anthropic"])
def test_a_body_may_be_an_object_or_its_json_text(target: str) -> None:
    body = rich(target) | {"no_such_field": 1}
    text = json.dumps(body)
    expected = lint(body, target)
    assert len(expected) == 1
    assert all(lint(form, target) == expected for form in (text, text.encode(), bytearray(text.encode())))


def test_a_body_may_be_any_mapping() -> None:
    class Frozen(dict[str, Any]):
        pass

    assert lint(Frozen(rich("openai")), "openai") == lint(MappingProxyType(rich("openai")), "openai") == ()


@pytest.mark.parametrize(
    ("body", "error"),
    [("{", JSONError), (b"\xff", JSONError), ('"\ud800"', JSONError), ("[" * 100_000, LimitError), (7, InputError)],
    ids=["cut", "not utf-8", "half a pair", "deep", "a number"],
)
def test_what_is_no_json_object_is_an_input_error(body: Any, error: type[InputError]) -> None:
    with pytest.raises(error) as caught:
        lint(body, "openai")
    assert caught.value.hint


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(LimitError):
        lint(" " * (64 * 1024 * 1024 + 1), "openai")


def test_json_that_is_no_object_is_a_violation_of_shape() -> None:
    (found,) = lint("[]", "openai")
    assert (found.rule, found.path) == ("shape", "$")


def test_a_target_is_held_to_the_conservative_defaults_only_on_request() -> None:
    body = chat({"role": "system", "content": "Late"})
    bare = profiles.Overrides('[profiles.bare]\ntitle = "Says nothing"')
    assert lint(body, "bare", overrides=bare) == ()
    found = lint(body, "bare", overrides=bare, defaults=True)
    assert "default:turns.system_inside" in {violation.rule for violation in found}


def test_the_model_of_the_body_refines_the_profile_unless_one_is_named() -> None:
    body = chat(temperature=0.5) | {"model": "gpt-5"}
    assert {found.key for found in lint(body, "openai")} == {"reasoning.refused_sampling"}
    assert lint(body, "openai", "gpt-4.1") == ()
    assert lint(body | {"model": "x" * 1000}, "openai") == ()


def test_overrides_change_the_judgement() -> None:
    body = chat()
    strict = profiles.Overrides("[profiles.openai.rules]\n'turns.min_user' = 2")
    (found,) = lint(body, "openai", overrides=strict)
    assert (found.rule, found.confidence) == ("user:turns.min_user", "user")


def test_a_described_target_is_held_to_what_is_known_unless_the_defaults_are_wanted() -> None:
    body = chat({"role": "assistant", "content": "Hm"}, {"role": "user", "content": " "})
    assert lint(body, "openai") == ()
    (found,) = lint(body, "openai", defaults=True)
    assert (found.key, found.rule, found.confidence) == ("turns.blank_text", "default:turns.blank_text", "default")


# --- What it gives ----------------------------------------------------------------------------------


def test_a_violation_has_its_rule_path_message_and_hint() -> None:
    body = chat(
        {"role": "assistant", "content": None, "tool_calls": [chat_call(ONE)]}, {"role": "user", "content": "?"}
    )
    (found,) = lint(body, "openai")
    assert found == Violation(
        rule="openai-result-complete",
        path="$.messages[1].tool_calls[0]",
        message="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: abcdef001",
        hint="add a result; if there is none, one that says it was cancelled",
        wording="provider",
        key="results.complete",
        target="openai",
        confidence="observed",
    )
    assert str(found).startswith("$.messages[1].tool_calls[0]: An assistant message")
    assert str(found).endswith(
        "(add a result; if there is none, one that says it was cancelled) [openai-result-complete]"
    )
    assert str(Violation(rule="shape", path="$", message="no")) == "$: no [shape]"


def test_violations_come_in_the_order_of_the_body() -> None:
    body = {
        "tools": [],
        "messages": [
            {"role": "user", "content": ""},
            {"role": "assistant", "content": "a", "tool_calls": [chat_call("a b")]},
        ],
        "~odd": 1,
        "model": "m",
    }
    paths = [found.path for found in lint(body, "groq", defaults=True)]
    assert paths == sorted(paths, key=lambda path: ("tools" not in path, "messages" not in path, path))
    assert paths[0] == "$.tools"
    assert paths[-1] == "$['~odd']"


def test_the_number_of_violations_is_bounded() -> None:
    body = chat(*({"role": "user", "content": ""} for _ in range(3 * MAX_VIOLATIONS)))
    assert len(lint(body, "openai", defaults=True)) == MAX_VIOLATIONS


def test_a_fact_without_a_key_is_checked_and_cited() -> None:
    open_object = {"type": "object", "properties": {}}
    tool = {"type": "function", "function": {"name": "f", "parameters": open_object, "strict": True}}
    (found,) = lint(chat(tools=[tool]), "openai")
    assert (found.rule, found.wording) == ("openai-strict-objects", "provider")
    assert "'additionalProperties' is required to be supplied and to be false" in found.message
    assert lint(chat(tools=[tool]), "openai", "gpt-4.1")


def test_the_rule_of_a_shape_is_named_where_a_profile_has_one() -> None:
    body = claude_rich()
    body["messages"][2]["content"][0]["content"] = []
    assert [found.rule for found in lint(body, "anthropic")] == ["anthropic-result-empty-list"]


def test_every_unseen_key_has_a_reason() -> None:
    assert all(reason for reason in UNSEEN.values())


@pytest.mark.parametrize(
    ("error", "finding", "words"),
    [
        ("messages.N.content.M: bad", RuleBreach("$.messages[4].content[2]", ""), "messages.4.content.2: bad"),
        (
            "Invalid 'messages[3].tool_calls[0].id'",
            RuleBreach("$.messages[7].tool_calls[1]", ""),
            "Invalid 'messages[7].tool_calls[1].id'",
        ),
        ("missing at index N", RuleBreach("$.messages[2]", ""), "missing at index 2"),
        ("at position 4 with", RuleBreach("$.messages[2]", ""), "at position 2 with"),
        ("did not: message[532].role", RuleBreach("$.messages[2]", ""), "did not: message[2].role"),
        ("Duplicate tool call id …", RuleBreach("$", "", shown="abc"), "Duplicate tool call id abc"),
        ("Tool call id was X but", RuleBreach("$", "", shown="a-b"), "Tool call id was a-b but"),
        ("array with length N instead", RuleBreach("$", "", shown="130"), "array with length 130 instead"),
        ("too long … maximum … got", RuleBreach("$", "", shown="x"), "too long … maximum … got"),
        ("roles must alternate…", RuleBreach("$", "", shown="x"), "roles must alternate…"),
        ("messages.N: bad", RuleBreach("$.tools[0]", ""), "messages.N: bad"),
        ("messages.5.content.0.a: no", RuleBreach("$.tools[1].b", "", shown="b"), "tools.1.b: no"),
        ("property 'reasoning' is", RuleBreach("$.messages[1].mood", "", shown="mood"), "property 'mood' is"),
        ("unknown variant 'namespace', expected", RuleBreach("$", "", shown="web"), "unknown variant 'web', expected"),
    ],
)
def test_the_gaps_in_the_providers_words_are_filled(error: str, finding: RuleBreach, words: str) -> None:
    assert provider_wording(error, finding) == words


# --- Pairing ----------------------------------------------------------------------------------------


def test_results_pair_by_name_and_order_where_calls_have_no_ids() -> None:
    def call(name: str) -> PartView:
        return PartView(kind="call", path="$", name=name)

    def result(name: str | None) -> PartView:
        return PartView(kind="result", path="$", name=name)

    turns = (
        Message(role="user", path="$"),
        Message(role="assistant", path="$", items=(call("a"), call("b"), call("a"))),
        Message(role="tool", path="$", items=(result("b"),)),
        Message(role="tool", path="$", items=(result("a"),)),
        Message(role="tool", path="$", items=(result(None),)),
        Message(role="tool", path="$", items=(result(None),)),
    )
    pairing = open_case(View(messages=turns), profiles.get("ollama")).pairing
    assert [answer.order for answer in pairing.rounds[0].near] == [1, 0, 2]
    assert len(pairing.orphans) == 1


def test_a_result_with_an_id_pairs_by_name_where_calls_have_none() -> None:
    turns = (
        Message(role="assistant", path="$", items=(PartView(kind="call", path="$", name="a"),)),
        Message(role="tool", path="$", items=(PartView(kind="result", path="$", id="x", name="a"),)),
        Message(role="user", path="$"),
        Message(role="tool", path="$", items=(PartView(kind="result", path="$", name="a"),)),
    )
    pairing = open_case(View(messages=turns), profiles.get("ollama")).pairing
    assert len(pairing.rounds[0].near) == 1
    assert len(pairing.orphans) == 1


def test_a_repeated_id_belongs_to_the_nearest_call_before_it() -> None:
    body = claude_rich() | {"messages": claude_turns("Hi", [claude_call(ONE)], [claude_result(ONE)], "a", "b")}
    body["messages"] += claude_turns("c", [claude_call(ONE)], [claude_result(ONE)])[1:]
    assert {found.key for found in lint(body, "anthropic")} == {"ids.unique_in"}


# --- Demands of other protocols ---------------------------------------------------------------------


def responses(*messages: Message) -> Any:
    return open_case(View(messages=messages), profiles.get("openai_responses"))


def test_the_id_of_a_call_item_has_its_prefix() -> None:
    bad = PartView(kind="call", path="$.input[0]", id="call_1", item_id="item_1", arguments="{}")
    fine = PartView(kind="call", path="$.input[1]", id="call_2", item_id="fc_2", arguments="{}")
    free = PartView(kind="call", path="$.input[2]", id="call_3", item_id="ctc_3", arguments="a", is_custom=True)
    mixed = PartView(kind="call", path="$.input[3]", id="call_4", item_id="fc_4", arguments="a", is_custom=True)
    case = responses(Message(role="assistant", path="$", items=(bad, fine, free, mixed)))
    assert [found.path for found in item_id_prefix(case)] == ["$.input[0].id", "$.input[3].id"]


def test_a_thinking_item_needs_a_follower() -> None:
    thought = PartView(kind="thinking", path="$.input[0]", item_id="rs_1")
    text = PartView(kind="text", path="$", text="a")
    lonely = responses(
        Message(role="assistant", path="$", items=(thought,)), Message(role="user", path="$", items=(text,))
    )
    followed = responses(
        Message(role="assistant", path="$", items=(thought,)), Message(role="assistant", path="$", items=(text,))
    )
    assert [found.path for found in may_end_turn(lonely)] == ["$.input[0]"]
    assert list(grouped(lonely)) == []  # one finding is enough
    assert list(grouped(followed)) == []


def test_the_first_call_of_each_step_since_the_prompt_needs_a_signature() -> None:
    def call(signature: str | None) -> PartView:
        return PartView(kind="call", path="$", name="f", arguments={}, signature=signature)

    prompt = Message(role="user", path="$", items=(PartView(kind="text", path="$", text="Hi"),))
    result = Message(role="user", path="$", items=(PartView(kind="result", path="$", name="f"),))
    old = Message(role="assistant", path="$", items=(call(None),))
    signed = Message(role="assistant", path="$", items=(call("s"), call(None)))
    model = "gemini-3-pro"
    view = View(messages=(prompt, old, result, prompt, signed, result, old))
    assert len(list(placeholder(open_case(view, profiles.get("gemini", model))))) == 1


# --- No harm ----------------------------------------------------------------------------------------


@pytest.mark.law
@given(JSON, st.sampled_from(TARGETS))
def test_law_no_json_makes_the_referee_raise(value: Any, target: str) -> None:
    text = json.dumps(value)
    try:
        found = lint(text, target)
    except JSONError:  # half a surrogate pair, or an integer that no parser takes
        return
    assert all(isinstance(violation, Violation) for violation in found)


@pytest.mark.law
@given(st.data(), st.sampled_from(TARGETS))
def test_law_no_malformed_body_makes_the_referee_raise(data: st.DataObject, target: str) -> None:
    body = copy.deepcopy(data.draw(st.sampled_from(good(target))))
    for _ in range(data.draw(st.integers(1, 4))):
        node: Any = body
        while True:
            if not node or not isinstance(node, dict | list):
                break
            key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
            if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
                node[key] = data.draw(JSON)
                break
            node = node[key]
    assert lint(body, target) == lint(copy.deepcopy(body), target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_schema_that_holds_itself_is_judged_to_a_bounded_depth(target: str) -> None:
    body = rich(target)
    loop: dict[str, Any] = {"type": "object", "properties": {}}
    loop["properties"]["again"] = loop
    tool = body["tools"][0]
    tool.get("function", tool).update(parameters=loop, input_schema=loop)
    assert isinstance(lint(body, target), tuple)


def test_keys_that_are_no_strings_are_passed_over() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}, 7: {}}}}
    assert lint(chat(tools=[tool]), "openai") == ()


def test_a_schema_that_is_used_many_times_is_judged_to_a_bounded_size() -> None:
    schema: dict[str, Any] = {"type": "string", "format": "odd"}
    for _ in range(30):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    overrides = profiles.Overrides("[profiles.openai.rules]\n'schema.formats' = []")
    found = lint(chat(tools=[tool]), "openai", overrides=overrides)
    assert {violation.key for violation in found} == {"schema.formats"}


def test_violations_can_be_written_as_json() -> None:
    found = lint(chat(no_such_field=1), "openai")
    assert msgspec.json.decode(msgspec.json.encode(found))[0]["rule"] == found[0].rule


def test_the_referee_is_part_of_the_public_surface() -> None:
    assert {"lint", "Violation"} <= set(toolglot.__all__)

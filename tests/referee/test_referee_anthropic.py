"""The referee on Anthropic Messages bodies: recordings, the SDK's definitions as a judge, and single demands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.referee.good_bodies import (
    CLAUDE,
    ONE,
    TWO,
    claude_call,
    claude_result,
    claude_rich,
    claude_text,
    claude_tool,
    claude_turns,
    good,
)
from support.referee.typed_judges import mutants, overlaid, sdk_refuses, shape_faults
from toolglot import lint
from toolglot.profiles import Overrides

RECORDINGS = Path(__file__).parents[1] / "recordings" / "anthropic"
RECORDED = {file.name.removesuffix(".request.json"): file for file in sorted(RECORDINGS.glob("*.request.json"))}

ILLEGAL: dict[str, dict[str, str]] = {
    "anthropic_history": {
        "reasoning.modes": "Opus 5 refuses manual thinking",
        "reasoning.budget": "Opus 5 refuses a budget",
    },
    "anthropic_results_with_media": {"tools.deferred": "the tool that is referred to is not declared"},
    "anthropic_sampling": {
        "turns.prefill": "Opus 5 refuses a prefill",
        "request.sampling": "Opus 5 refuses temperature, top_p and top_k",
        "request.blank_stop": "one stop sequence is nothing but white space",
    },
    "anthropic_thinking_between_tools": {"reasoning.modes": "only Sonnet 5.5 has it"},
    "anthropic_tools_of_every_kind": {"schema.strict_refused": "strict, with minimum and maximum"},
    "anthropic_unknown_fields": {"request.unknown_fields": "the fields are unknown on purpose"},
}
"""Recordings that the API would refuse: the keys, and why."""


def keys(body: dict[str, Any], model: str = "") -> set[str]:
    return {found.key or found.rule for found in lint(body, "anthropic", model)}


def claude_with(*contents: Any, **more: Any) -> dict[str, Any]:
    return {**CLAUDE, "messages": claude_turns(*contents), **more}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_is_legal_or_explained(name: str) -> None:
    found = lint(RECORDED[name].read_bytes(), "anthropic")
    assert {violation.key for violation in found} == set(ILLEGAL.get(name, {})), [str(violation) for violation in found]


INSIDE = "only the type of the provider's own tools, results and documents is looked at"
DIFFERENCES = {
    r"(delete|type) messages\[\*\]\.content\[\*\]\.content(\.|\[\*\])": INSIDE,
    r"type messages\[\*\]\.content\[\*\]\.content$": INSIDE,
    r"(delete|type) messages\[\*\]\.content\[\*\]\.source\.content\[\*\]": INSIDE,
    r"(delete|type) output_config\.format\.schema": "the schema is the caller's own",
    r"(delete|type) tools\[\*\]\.(user_location|allowed_|citations|max_|input_examples)": INSIDE,
    r"type (temperature|top_k|top_p|stream)": "the definition no longer has them, or has them in its subclasses",
}
"""Where the SDK's definition and the reader differ: what was done to the body, and why."""

BASE = good("anthropic") + [
    json.loads(file.read_text(encoding="utf-8"))
    for name, file in RECORDED.items()
    if name not in ("anthropic_unknown_fields", "anthropic_beta_fields")
]


def test_good_bodies_have_the_shape_of_the_definition() -> None:
    bodies = overlaid(BASE, 300)
    assert len(bodies) >= 300
    assert [body for body in bodies if sdk_refuses("anthropic", body)] == []
    assert [str(found) for body in bodies for found in shape_faults("anthropic", body)] == []


def test_wrong_shapes_are_refused_where_the_definition_refuses_them() -> None:
    bodies = mutants(BASE, 1500)
    differing = [m.what for m in bodies if sdk_refuses("anthropic", m.body) != bool(shape_faults("anthropic", m.body))]
    unexplained = [what for what in differing if not any(re.match(pattern, what) for pattern in DIFFERENCES)]
    assert len(bodies) >= 300
    assert unexplained == []
    assert [pattern for pattern in DIFFERENCES if not any(re.match(pattern, what) for what in differing)] == []
    assert len(differing) <= 0.05 * len(bodies)


# --- Single demands ---------------------------------------------------------------------------------


def test_the_message_is_the_providers_with_the_paths_of_this_body() -> None:
    body = claude_rich()
    body["messages"][2]["content"].pop()
    (found,) = lint(body, "anthropic")
    assert found.message == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: abcdef002 Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def test_text_in_a_message_before_the_results_is_a_result_that_is_not_first() -> None:
    body = claude_with("Hi", [claude_call(ONE)])
    body["messages"] += [{"role": "user", "content": "Wait"}, {"role": "user", "content": [claude_result(ONE)]}]
    assert keys(body) == {"results.first"}


def test_results_after_another_turn_are_not_adjacent() -> None:
    assert keys(claude_with("Hi", [claude_call(ONE)], "Wait", "I wait", [claude_result(ONE)])) == {"results.adjacent"}


def test_manual_thinking_wants_the_open_loop_to_start_with_thinking() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    loop = ["Hi", [claude_call(ONE)], [claude_result(ONE)]]
    assert keys(claude_with(*loop, thinking=thinking, max_tokens=4096), "claude-sonnet-4-5") == {"reasoning.leading"}
    loop[1] = [thought, claude_call(ONE)]
    assert keys(claude_with(*loop, thinking=thinking, max_tokens=4096), "claude-sonnet-4-5") == set()
    assert (
        keys(
            claude_with(
                "Hi", [claude_call(ONE)], [claude_result(ONE)], "Cold", "?", thinking=thinking, max_tokens=4096
            ),
            "claude-sonnet-4-5",
        )
        == set()
    )


@pytest.mark.parametrize(
    ("model", "thinking", "is_fine"),
    [
        ("claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 2000}, True),
        ("claude-sonnet-4-5", {"type": "adaptive"}, False),
        ("claude-opus-5", {"type": "adaptive"}, True),
        ("claude-opus-5", {"type": "enabled", "budget_tokens": 2000}, False),
        ("claude-sonnet-5-5", {"type": "between_tools"}, True),
        ("claude-opus-5-5", {"type": "disabled"}, False),
    ],
)
def test_thinking_modes_depend_on_the_model(model: str, thinking: dict[str, Any], is_fine: bool) -> None:
    assert ("reasoning.modes" not in keys(claude_with("Hi", thinking=thinking), model)) == is_fine


def test_newest_models_take_no_forced_choice() -> None:
    body = claude_with("Hi", tools=[claude_tool()], tool_choice={"type": "any"})
    assert keys(body, "claude-opus-5") == set()
    assert keys(body, "claude-opus-5-5") == {"choice.modes"}


def test_a_system_message_may_only_precede_an_assistant_turn() -> None:
    system = {"role": "system", "content": "Be brief."}
    user, answer = claude_turns("Hi", "Hello")
    fine, bad = [user, system, answer, user], [user, system, user]
    assert keys({**CLAUDE, "messages": fine}) == keys({**CLAUDE, "messages": [user, system]}) == set()
    assert keys({**CLAUDE, "messages": bad}) == {"turns.system_inside"}
    assert keys({**CLAUDE, "messages": fine}, "claude-sonnet-4-5") == {"turns.system_inside"}
    first = [{"role": "system", "content": "Hm."}, {"role": "assistant", "content": "Yes?"}, *fine[:1]]
    assert keys({**CLAUDE, "messages": first}) == {"turns.system_inside"}


def test_only_a_system_message_changes_the_effort_in_the_middle() -> None:
    config = {"output_config": {"effort": "high"}}
    user, answer = claude_turns("Hi", "Hello")
    system = {"role": "system", "content": [], **config}
    assert keys({**CLAUDE, "messages": [user, system]}) == keys({**CLAUDE, "messages": [user, system, answer, user]})
    assert keys({**CLAUDE, "messages": [user, system]}) == set()
    assert "shape" in keys({**CLAUDE, "messages": [{**user, **config}]})
    assert "shape" in keys({**CLAUDE, "messages": [user, {**system, "output_config": {"format": {}}}]})


def test_a_prefill_may_not_end_in_white_space_where_there_is_one() -> None:
    assert keys(claude_with("Hi", "It is"), "claude-sonnet-4-5") == set()
    (found,) = lint(claude_with("Hi", "It is "), "anthropic", "claude-sonnet-4-5")
    assert found.message == "final assistant content cannot end with trailing whitespace"


def test_blocks_are_in_messages_of_their_role() -> None:
    assert "shape" in keys(claude_with([claude_call(ONE)]))
    assert "shape" in keys(claude_with("Hi", [claude_result(ONE)], "?"))


def test_thinking_takes_no_cache_marker() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln", "cache_control": {"type": "ephemeral"}}
    (found,) = lint(claude_with("Hi", [thought, claude_text("Hello")], "?"), "anthropic")
    assert found.message == "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"


def test_an_empty_text_within_a_result_is_one_like_any_other() -> None:
    result = claude_result(ONE, content=[claude_text("")])
    assert keys(claude_with("Hi", [claude_call(ONE)], [result])) == {"turns.empty_text"}


def test_unknown_blocks_tools_and_fields() -> None:
    assert keys(claude_with([{"type": "odd"}])) == {"shape"}
    assert keys(claude_with("Hi", tools=[{"type": "web_search_20250305"}])) == {"shape"}
    assert keys(claude_with("Hi", tools=[{"type": 7}])) >= {"shape"}
    assert keys(claude_with("Hi", tools=[claude_tool(mood="good")])) == {"request.unknown_fields"}
    assert keys(claude_with([claude_text("a") | {"mood": "good"}])) == {"request.unknown_fields"}
    assert keys({**CLAUDE, "messages": [{"role": "user", "content": "a", "mood": "good"}]}) == {
        "request.unknown_fields"
    }


def test_server_tools_and_their_blocks_go_by_unharmed() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    toolset = {"type": "mcp_toolset", "mcp_server_name": "a"}
    assert keys(claude_with("Hi", [search, found, claude_text("Cold.")], "?", tools=[toolset])) == set()


def test_cache_markers_are_seen_everywhere() -> None:
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    body = claude_with([claude_text("a") | mark], system=[claude_text("b") | mark], tools=[claude_tool(**mark)], **mark)
    assert keys(body) == set()
    overrides = Overrides("[profiles.anthropic.rules]\n'request.cache_markers' = false")
    assert {found.path for found in lint(body, "anthropic", overrides=overrides)} == {
        "$.cache_control",
        "$.tools[0].cache_control",
        "$.system[0].cache_control",
        "$.messages[0].content[0].cache_control",
    }


def test_structured_output_in_its_older_field() -> None:
    assert keys(claude_with("Hi", output_format={"type": "json_schema", "schema": {}})) == set()
    assert keys(claude_with("Hi", output_format={"type": "odd"})) == {"request.output"}


def test_parallel_results_may_come_in_any_order() -> None:
    assert (
        keys(claude_with("Hi", [claude_call(ONE), claude_call(TWO)], [claude_result(TWO), claude_result(ONE)])) == set()
    )


def test_there_must_be_messages_and_schemas_of_objects() -> None:
    assert keys({**CLAUDE, "messages": []}) == {"turns.required", "turns.min_user"}
    assert keys(claude_with("Hi", tools=[claude_tool(input_schema={"type": "array", "items": {}})])) == {"shape"}

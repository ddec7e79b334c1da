"""The seeds' prefix functions, literally: R-000-*, R-002-10 and R-002-11."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import InputError
from toolglot.conversation import ids

SUFFIXES = st.text(max_size=30)
Function = Callable[[str], str]
ALL: tuple[Function, ...] = (ids.to_openai, ids.to_history, ids.to_anthropic, ids.to_responses)


@given(SUFFIXES)
def test_R_000_1_to_openai_leaves_call_ids_unchanged(suffix: str) -> None:
    assert ids.to_openai("call_" + suffix) == "call_" + suffix


@given(SUFFIXES)
def test_R_000_2_to_openai_swaps_hist_tool(suffix: str) -> None:
    assert ids.to_openai("hist_tool_" + suffix) == "call_" + suffix


@given(SUFFIXES)
def test_R_000_3_to_openai_swaps_toolu(suffix: str) -> None:
    assert ids.to_openai("toolu_" + suffix) == "call_" + suffix


@given(SUFFIXES.filter(lambda s: not s.startswith(("call_", "hist_tool_", "toolu_"))))
def test_R_000_4_to_openai_prefixes_any_other_id(id: str) -> None:
    assert ids.to_openai(id) == "call_" + id


@given(SUFFIXES)
def test_R_000_5_to_history_leaves_hist_tool_ids_unchanged(suffix: str) -> None:
    assert ids.to_history("hist_tool_" + suffix) == "hist_tool_" + suffix


@given(SUFFIXES)
def test_R_000_6_to_history_swaps_call(suffix: str) -> None:
    assert ids.to_history("call_" + suffix) == "hist_tool_" + suffix


@given(SUFFIXES)
def test_R_000_7_to_history_swaps_toolu(suffix: str) -> None:
    assert ids.to_history("toolu_" + suffix) == "hist_tool_" + suffix


@given(SUFFIXES.filter(lambda s: not s.startswith(("call_", "hist_tool_", "toolu_"))))
def test_R_000_8_to_history_prefixes_any_other_id(id: str) -> None:
    assert ids.to_history(id) == "hist_tool_" + id


@pytest.mark.law
@given(st.text(st.characters(), max_size=40))
def test_R_000_9_prefix_functions_are_pure_and_never_raise(id: str) -> None:
    for function in ALL:
        assert function(id) == function(id)
        assert function(id).endswith(id[len("hist_tool_") :] if id.startswith("hist_tool_") else id[6:])


def test_R_000_9_prefix_functions_are_synchronous_and_use_no_regular_expression() -> None:
    functions: list[Callable[..., str]] = [*ALL, ids._swap]
    for function in functions:
        assert not inspect.iscoroutinefunction(function)
        assert "re." not in inspect.getsource(function)


@pytest.mark.law
@given(SUFFIXES)
def test_R_000_10_round_trip_of_every_history_id(suffix: str) -> None:
    assert ids.to_history(ids.to_openai("hist_tool_" + suffix)) == "hist_tool_" + suffix


@pytest.mark.law
@given(SUFFIXES)
def test_R_000_11_round_trip_of_every_call_id(suffix: str) -> None:
    assert ids.to_openai(ids.to_history("call_" + suffix)) == "call_" + suffix


def test_R_000_12_an_empty_id_becomes_the_bare_prefix() -> None:
    assert (ids.to_openai(""), ids.to_history("")) == ("call_", "hist_tool_")


def test_R_000_13_a_bare_prefix_becomes_the_other_bare_prefix() -> None:
    assert (ids.to_openai("hist_tool_"), ids.to_history("call_")) == ("call_", "hist_tool_")


def test_R_000_14_underscores_are_kept() -> None:
    assert ids.to_openai("hist_tool_abc_123_def") == "call_abc_123_def"
    assert ids.to_history("call_abc_123_def") == "hist_tool_abc_123_def"


def test_R_000_T3_only_one_prefix_is_taken_off() -> None:
    assert ids.to_history("call_toolu_x") == "hist_tool_toolu_x"


def test_R_000_T4_ids_of_other_systems_are_only_prefixed() -> None:
    assert ids.to_openai("fc_x") == "call_fc_x"
    assert ids.to_openai("functions.x:0") == "call_functions.x:0"


@pytest.mark.parametrize(
    ("id", "to", "expected"),
    [
        ("toolu_xyz", "call_", "call_xyz"),
        ("toolu_xyz", "fc_", "fc_xyz"),
        ("call_xyz", "toolu_", "toolu_xyz"),
        ("call_xyz", "fc_", "fc_xyz"),
        ("fc_xyz", "toolu_", "toolu_xyz"),
    ],
)
def test_R_002_10_the_table_of_id_translations(id: str, to: str, expected: str) -> None:
    assert ids.translate(id, to=to) == expected


def test_R_002_10_the_rows_of_the_table_hold_for_the_literal_functions() -> None:
    assert ids.to_anthropic("call_xyz") == ids.to_anthropic("fc_xyz") == "toolu_xyz"
    assert ids.to_responses("toolu_xyz") == ids.to_responses("call_xyz") == "fc_xyz"
    assert ids.to_openai("toolu_xyz") == "call_xyz"


@pytest.mark.parametrize(
    ("id", "expected"),
    [("call_a", "fc_a"), ("toolu_a", "fc_a"), ("fc_a", "fc_a"), ("a", "fc_a"), ("", "fc_")],
)
def test_R_002_11_the_branches_of_translate_tool_call_id(id: str, expected: str) -> None:
    assert ids.to_responses(id) == expected


def test_R_002_11_a_history_id_is_no_known_prefix_there() -> None:
    assert ids.to_responses("hist_tool_a") == "fc_hist_tool_a"


@pytest.mark.parametrize("to", ids.PREFIXES)
@pytest.mark.parametrize("of", ids.PREFIXES)
def test_R_002_T5_translate_is_the_full_matrix_and_round_trips(of: str, to: str) -> None:
    assert ids.translate(of + "abc", to=to) == to + "abc"
    assert ids.translate(ids.translate(of + "abc", to=to), to=of) == of + "abc"


@pytest.mark.parametrize(
    ("to", "prefix"),
    [("history", "hist_tool_"), ("openai_chat", "call_"), ("claude", "toolu_"), ("responses", "fc_")],
)
def test_translate_takes_a_target_in_any_spelling(to: str, prefix: str) -> None:
    assert ids.translate("x", to=to) == prefix + "x"


def test_translate_names_what_it_does_not_know() -> None:
    with pytest.raises(InputError, match=r"to: unknown id form 'mistral'.*hist_tool_"):
        ids.translate("call_a", to="mistral")

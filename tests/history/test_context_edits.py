"""Edits of the context: what is cleared, and that pairs stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import Conversation, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.context_requests import ClearResults, ClearThinking
from toolglot.history.context_edits import CLEARED, edit_context

KIND = "clear_tool_uses_20250919"


def count(conversation: Conversation) -> int:
    """Characters of texts and results, as tokens."""
    texts = [block.text for turn in conversation.turns for block in turn.blocks if isinstance(block, Text)]
    return sum(map(len, texts)) + sum(len(result.text) for turn in conversation.turns for result in turn.results)


def history(*lengths: int, tool: str = "read") -> Conversation:
    """A call and its result for each length, with thinking before it."""
    turns = [Turn("user", (Text("Go"),))]
    for number, length in enumerate(lengths):
        call = ToolCall(f"call_{number}", tool if number else "first", {"path": "x"})
        turns += [
            Turn("assistant", (Thinking(f"thought {number}"), call)),
            Turn("tool", (ToolResult(f"call_{number}", "r" * length),)),
        ]
    return Conversation(tuple(turns))


def cleared(conversation: Conversation) -> list[bool]:
    return [result.content == CLEARED for turn in conversation.turns for result in turn.results]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (ClearResults(KIND, keep=1), [True, True, True, False]),
        (ClearResults(KIND, keep=0), [True, True, True, True]),
        (ClearResults(KIND, keep=9), [False] * 4),
        (ClearResults(KIND, keep=1, trigger_tokens=1_000), [True, True, True, False]),
        (ClearResults(KIND, keep=1, trigger_tokens=2_000), [False] * 4),
        (ClearResults(KIND, keep=1, trigger_calls=3), [True, True, True, False]),
        (ClearResults(KIND, keep=1, trigger_calls=4), [False] * 4),
        (ClearResults(KIND, keep=1, excluded=frozenset({"read"})), [True, False, False, False]),
        (ClearResults(KIND, keep=1, at_least=500), [True, True, False, False]),
        (ClearResults(KIND, keep=1, at_least=5_000), [False] * 4),
    ],
)
def test_old_results_are_cleared_as_the_edit_says(edit: ClearResults, expected: list[bool]) -> None:
    edited, applied = edit_context(history(300, 300, 300, 300), [edit], count)
    assert cleared(edited) == expected
    assert [(each.kind, each.cleared) for each in applied] == [(KIND, sum(expected))] * any(expected)


def test_arguments_are_cleared_of_all_tools_or_of_some() -> None:
    for inputs, expected in (
        (True, [{}, {}, {"path": "x"}]),
        (frozenset({"read"}), [{"path": "x"}, {}, {"path": "x"}]),
    ):
        edited, _ = edit_context(history(1, 1, 1), [ClearResults(KIND, keep=1, inputs=inputs)], count)
        assert [call.arguments for turn in edited.turns for call in turn.calls] == expected


def test_old_thinking_is_left_out_and_no_turn_becomes_empty() -> None:
    conversation = history(1, 1, 1)
    edited, (applied,) = edit_context(conversation, [ClearThinking("clear_thinking_20251015", 1)], count)
    left = [block.text for turn in edited.turns for block in turn.blocks if isinstance(block, Thinking)]
    assert left == ["thought 2"]
    assert (applied.cleared, applied.is_thinking) == (2, True)
    assert edit_context(conversation, [ClearThinking("clear_thinking_20251015", None)], count) == (conversation, ())
    alone = Conversation((Turn("assistant", (Thinking("a"),)), Turn("assistant", (Thinking("b"),))))
    assert len(edit_context(alone, [ClearThinking("c", 1)], count)[0].turns) == 1


EDITS = st.builds(
    ClearResults,
    st.just(KIND),
    st.none() | st.integers(0, 500),
    st.none() | st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 300),
    st.frozensets(st.sampled_from(["first", "read"])),
    st.booleans(),
)


@pytest.mark.law
@given(st.lists(st.integers(1, 200), max_size=8), EDITS)
def test_law_2_pairs_stay_whole_and_what_was_cleared_stays_cleared(lengths: list[int], edit: ClearResults) -> None:
    conversation = history(*lengths)
    edited, _ = edit_context(conversation, [edit], count)
    before, after = (
        [(call.id, call.name) for turn in some.turns for call in turn.calls] for some in (conversation, edited)
    )
    assert (
        before == after == [(result.call_id, name) for (_, name), result in zip(before, _results(edited), strict=True)]
    )
    last = _results(conversation)[len(lengths) - edit.keep :] if edit.keep < len(lengths) else _results(conversation)
    assert _results(edited)[len(lengths) - len(last) :] == last
    again, _ = edit_context(edited, [edit], count)
    assert _is_cleared_further(edited, again)


def _results(conversation: Conversation) -> list[ToolResult]:
    return [result for turn in conversation.turns for result in turn.results]


def _is_cleared_further(first: Conversation, second: Conversation) -> bool:
    """What was cleared stays cleared."""
    return all(later or not earlier for earlier, later in zip(cleared(first), cleared(second), strict=True))

"""Turns that need no matching: what they are called is what a history would have called them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.broken_conversations import conversations
from toolglot import Conversation, Issuer, Text, ToolCall, ToolResult, Turn, profiles
from toolglot.conversation.report import Entry
from toolglot.history.intake import Intake
from toolglot.history.well_formed import well_formed_turns
from toolglot.render import render

ISSUER = Issuer("anthropic")


def user_turn(text: str = "go on") -> Turn:
    return Turn("user", (Text(text),))


def call_turn(*ids: str, name: str = "look") -> Turn:
    return Turn("assistant", tuple(ToolCall(id, name, {}) for id in ids))


def result_turn(*ids: str) -> Turn:
    return Turn("user", tuple(ToolResult(id, "seen", is_complete=True) for id in ids))


def take_in(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], list[Entry]]:
    entries: list[Entry] = []
    issued = [turn if turn.issuer is not None else replace(turn, issuer=ISSUER) for turn in turns]
    return Intake(entries).take_all(issued), entries


def assert_ids_and_keys_of_a_history(turns: tuple[Turn, ...], order: list[int]) -> None:
    names = well_formed_turns(turns, ISSUER)
    assert names is not None
    taken, entries = take_in(turns)
    assert entries == []
    for number in order:
        assert names.key(f"#{number}") == taken[number].key
        assert names.key(f"#{number}+results") == f"{taken[number].key}+results"
        ids = [names.canonical_id(call.id) for call in turns[number].calls]
        assert ids == [call.id for call in taken[number].calls]


@pytest.mark.law
@given(conversations, st.randoms(use_true_random=False))
def test_turns_that_need_no_matching_have_the_ids_and_keys_that_a_history_gives(
    conversation: Conversation, random: Random
) -> None:
    turns = conversation.turns
    if well_formed_turns(turns, ISSUER) is not None:
        order = list(range(len(turns)))
        random.shuffle(order)
        assert_ids_and_keys_of_a_history(turns, order)


@pytest.mark.law
@given(
    st.lists(st.sampled_from(["user", "answered", "half answered", "unanswered", "twice"]), max_size=8), st.booleans()
)
def test_calls_without_a_result_need_no_matching(exchanges: list[str], has_keys: bool) -> None:
    turns: list[Turn] = []
    for number, kind in enumerate(exchanges):
        first, second = f"toolu_{number}a", f"toolu_{number}b"
        if kind != "user":
            turns.append(call_turn(first, second))
        if kind == "answered":
            turns.append(result_turn(second, first))
        if kind == "half answered":
            turns.append(result_turn(second))
        turns += [user_turn(), user_turn()] if kind == "twice" else [user_turn()]
    if has_keys and turns:
        turns[-1] = replace(turns[-1], key="mine")
    assert_ids_and_keys_of_a_history(tuple(turns), list(reversed(range(len(turns)))))


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param((call_turn("toolu_1"), user_turn(), call_turn("toolu_2"), result_turn("toolu_1")), id="late"),
        pytest.param((call_turn("toolu_1"), result_turn("toolu_2")), id="of no call"),
        pytest.param((call_turn("toolu_1"), result_turn("toolu_1", "toolu_1")), id="twice"),
        pytest.param((result_turn("toolu_1"), call_turn("toolu_1")), id="early"),
        pytest.param((call_turn("toolu_1"), call_turn("toolu_1"), result_turn("toolu_1")), id="of two calls"),
        pytest.param((call_turn(""), result_turn("")), id="without an id"),
    ],
)
def test_an_ambiguous_result_needs_matching(turns: tuple[Turn, ...]) -> None:
    assert well_formed_turns(turns, ISSUER) is None


def test_texts_that_begin_alike_are_distinguished_and_equal_ones_are_counted() -> None:
    long = "x" * 100
    turns = (
        user_turn(f"{long}1"),
        call_turn("toolu_1"),
        user_turn(f"{long}2"),
        call_turn("toolu_2"),
        user_turn(f"{long}1"),
    )
    assert_ids_and_keys_of_a_history(turns, [4, 2, 0, 3, 1])


def test_an_id_that_no_call_has_stays_as_it_is() -> None:
    names = well_formed_turns((call_turn("toolu_1"), result_turn("toolu_1")), ISSUER)
    assert names is not None
    assert names.canonical_id("toolu_2") == "toolu_2"
    assert names.key("mine") == "mine"


def test_law_5_ids_of_another_issuers_turns_do_not_depend_on_what_follows() -> None:
    call, result = ToolCall("call_01", "read", {"n": 1}), ToolResult("call_01", "hello", is_complete=True)
    begun = (
        Turn("user", (Text("go"),)),
        Turn("assistant", (call,), issuer=Issuer("openai")),
        Turn("tool", (result,)),
    )
    more = (
        Turn("assistant", (ToolCall("call_02", "read", {"n": 2}),), issuer=Issuer("anthropic")),
        Turn("tool", (ToolResult("call_02", None, is_complete=True),)),
    )
    native = profiles.get("anthropic", "claude-sonnet-4-5")
    sent = [
        [
            made.id
            for turn in render(Conversation(turns), native, source=native).conversation.turns
            for made in turn.calls
        ]
        for turns in (begun, begun + more)
    ]
    assert sent == [["toolu_01"], ["toolu_01", "call_02"]]

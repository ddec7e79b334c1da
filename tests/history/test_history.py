"""The write boundary: ids, keys, matching and binding (R-001-4 to -7, -15, -17; R-004-1, -8, -11)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.short_turns import answers, assistant, history_of, results, user
from support.conversations.strategies import conversations, transcripts
from toolglot import (
    Conversation,
    History,
    HistoryError,
    InputError,
    Issuer,
    Ledger,
    Text,
    Thinking,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Turn,
    dump,
    load,
)
from toolglot.conversation import Block, Opaque, ids
from toolglot.history.turn_keys import identity

# --- ids --------------------------------------------------------------------------------------------


def test_R_001_5_only_canonical_ids_are_kept_and_the_raw_id_and_issuer_are_metadata() -> None:
    history = history_of(assistant("call_abc"), results(("call_abc", "ok")))
    (call,), (result,) = history.turns[0].calls, history.turns[1].results
    assert ids.is_canonical(call.id)
    assert result.call_id == call.id
    assert call.metadata == ToolMetadata(raw_id="call_abc", issuer=Issuer("openai"), ordinal=0)
    assert result.metadata is not None
    assert (result.metadata.raw_id, result.metadata.matched_by) == ("call_abc", "id")


def test_R_001_1_a_history_uses_the_formula_with_the_turn_key() -> None:
    history = History(provider="openai")
    kept = history.append(Turn("assistant", (ToolCall("call_abc123", "read_file", {}),)), key="turn-1")
    assert kept.calls[0].id == "hist_tool_CwGJ-4bjB1AzwiitK9edpV3i"


@pytest.mark.law
@given(transcripts)
def test_R_001_5_every_id_of_every_history_is_canonical_and_every_call_distinct(turns: list[Turn]) -> None:
    history = History()
    history.extend(turns)
    calls = [call.id for turn in history.turns for call in turn.calls]
    assert len(set(calls)) == len(calls) == len(history.ledger)
    assert all(ids.is_canonical(id) for id in calls)
    assert all(ids.is_canonical(result.call_id) for turn in history.turns for result in turn.results)


@pytest.mark.parametrize("raw", ["call_0", "functions.read:0", "hist_tool_x"])
def test_B6_ids_that_a_provider_uses_again_in_a_later_turn_are_different_calls(raw: str) -> None:
    history = history_of(assistant(raw), results((raw, "first")), user(), assistant(raw), results((raw, "second")))
    assert answers(history) == [(raw, "first"), (raw, "second")]


def test_B6_the_same_id_twice_in_one_turn_is_two_calls_answered_in_order() -> None:
    history = history_of(assistant("x", "x"), results(("x", "first"), ("x", "second")))
    assert answers(history) == [("x", "first"), ("x", "second")]


def test_R_001_16_a_canonical_id_is_kept_and_a_second_call_with_it_gets_its_own() -> None:
    history = history_of(assistant("hist_tool_abc"), results(("hist_tool_abc", "1")), assistant("hist_tool_abc"))
    first, second = (found.id for found in history.ledger)
    assert first == "hist_tool_abc"
    assert second != first
    assert [entry.action for entry in history.report] == ["canonicalised"]


def test_R_001_17_a_legacy_id_is_canonicalised_once_and_its_results_find_it() -> None:
    legacy = "hist_tool_functions.read:0"
    history = history_of(assistant(legacy), results((legacy, "ok")))
    assert answers(history) == [(legacy, "ok")]
    assert history.turns[1].results[0].call_id == history.turns[0].calls[0].id != legacy


def test_B9_a_signature_hidden_in_an_id_is_separated_and_reported() -> None:
    history = history_of(assistant("call_a__thought__c2ln"))
    metadata = history.turns[0].calls[0].metadata
    assert metadata is not None
    assert metadata.thought_signature == "c2ln"
    assert "hidden in the id" in str(history.report)


def test_B7_a_number_as_an_id_becomes_a_string_and_is_reported() -> None:
    seven: Any = 7
    history = history_of(Turn("assistant", (ToolCall(seven, "read"),)), Turn("tool", (ToolResult(seven, "ok"),)))
    assert answers(history) == [("7", "ok")]
    assert [entry.path for entry in history.report] == ["$[0].blocks[0].id", "$[1].blocks[0].call_id"]


def test_the_issuer_is_the_one_that_made_the_turn_however_the_history_goes_on() -> None:
    history = history_of(assistant("a"), provider="google")
    history.switch("anthropic")
    history.append(assistant("a"))
    issuers = [call.metadata.issuer for turn in history.turns for call in turn.calls if call.metadata]
    assert issuers == [Issuer("gemini"), Issuer("anthropic")]


# --- turn keys --------------------------------------------------------------------------------------


def test_R_001_4_turn_keys_come_from_content_not_from_position() -> None:
    alone = history_of(assistant("a"))
    after = history_of(user(), user("b"), assistant("a"))
    assert alone.turns[0].key == after.turns[2].key
    assert alone.turns[0].calls[0].id == after.turns[2].calls[0].id


def test_R_001_4_equal_turns_are_numbered() -> None:
    history = history_of(user(), user(), assistant("a"), assistant("a"))
    stems = [turn.key.rpartition(".") for turn in history.turns]
    assert stems[0][0] == stems[1][0]
    assert [stem[2] for stem in stems] == ["0", "1", "0", "1"]


def test_R_001_4_what_moves_between_requests_does_not_change_a_key() -> None:
    marked = Turn("user", (Text("hi", extra={"anthropic": {"cache_control": {"type": "ephemeral"}}}),))
    assert history_of(marked).turns[0].key == history_of(user("hi")).turns[0].key


def test_R_001_4_cache_markers_do_not_change_a_key_wherever_they_are() -> None:
    """A client moves them with every request: as a field, a block of their own, in a result, in a provider's block."""
    mark = {"cache_control": {"type": "ephemeral"}}
    point = Opaque("bedrock", {"cachePoint": {"type": "default"}}, "cachePoint")
    pairs: list[tuple[Block, ...]] = [
        (Text("a"), Text("a", extra={"anthropic": mark})),
        (ToolResult("c", (Text("a"),)), ToolResult("c", (Text("a"), point))),
        (Opaque("anthropic", {"type": "new", "x": 1}), Opaque("anthropic", {"type": "new", "x": 1, **mark})),
        (
            Opaque("anthropic", {"type": "new", "content": [{"type": "text", "text": "a"}, 1]}),
            Opaque("anthropic", {"type": "new", "content": [{"type": "text", "text": "a", **mark}, 1]}),
        ),
    ]
    for plain, marked in pairs:
        assert identity(Turn("user", (plain,))) == identity(Turn("user", (marked,)))
        assert identity(Turn("user", (plain,))) == identity(Turn("user", (marked, point)))
    assert identity(Turn("user", (Text("a"),))) != identity(Turn("user", (Text("b"), point)))


def test_R_001_4_the_callers_key_is_kept_and_survives() -> None:
    history = History(provider="openai")
    history.append(assistant("a"), key="mine")
    again = History(load(dump(history.conversation)))
    assert again.turns == history.turns
    assert again.turn("mine").calls[0].id == history.turn("mine").calls[0].id


def test_a_turn_that_is_here_already_is_not_taken_twice() -> None:
    history = history_of(user(), assistant("a"), results(("a", "1")))
    before = history.turns
    history.extend(before)
    history.append(assistant("a"), key=before[1].key)
    assert history.turns == before
    assert {entry.action for entry in history.report} == {"ignored"}


def test_a_key_that_a_different_turn_has_is_refused_and_nothing_is_written() -> None:
    history = History()
    history.append(user("a"), key="k")
    with pytest.raises(InputError, match=r"\$\[1\]\.key: a different turn has the key 'k'"):
        history.extend([user("b"), Turn("user", (Text("c"),), key="k")])
    with pytest.raises(InputError, match="a different turn"):
        history.extend([Turn("user", (Text("c"),), key="n"), Turn("user", (Text("d"),), key="n")])
    assert [turn.text for turn in history.turns] == ["a"]


@pytest.mark.parametrize("key", ["", 3])
def test_a_key_is_a_text_that_is_not_empty(key: Any) -> None:
    with pytest.raises(InputError, match="key: expected a string"):
        History().append(user(), key=key)


def test_a_made_key_never_meets_a_callers_key() -> None:
    made = history_of(user()).turns[0].key
    history = History()
    history.extend([user(), Turn("user", (Text("other"),), key=made)])
    assert len({turn.key for turn in history.turns}) == 2


# --- matching ---------------------------------------------------------------------------------------


def test_a_result_belongs_to_the_nearest_turn_with_an_unanswered_call() -> None:
    history = history_of(assistant("x"), assistant("x"), results(("x", "near")), results(("x", "far")))
    assert answers(history) == [("x", "far"), ("x", "near")]


def test_C6_results_of_a_subagent_between_a_call_and_its_result() -> None:
    history = history_of(assistant("c1"), assistant("d1"), results(("d1", "child")), results(("c1", "parent")))
    assert answers(history) == [("c1", "parent"), ("d1", "child")]


def test_a_result_that_stands_before_its_call_finds_it() -> None:
    history = history_of(results(("x", "early")), assistant("x"))
    assert answers(history) == [("x", "early")]
    assert [entry.action for entry in history.report] == ["orphaned", "rematched"]


def test_a_result_after_its_call_wins_over_one_that_an_earlier_call_left_behind() -> None:
    history = history_of(results(("call_0", "stale")), user(), assistant("call_0"), results(("call_0", "fresh")))
    assert answers(history) == [("call_0", "fresh")]
    (aside,) = next(iter(history.ledger)).set_aside
    assert (aside.result.text, aside.reason) == ("stale", "superseded")


def test_A3_a_repeated_id_on_an_answered_call_is_a_duplicate() -> None:
    history = history_of(assistant("x"), results(("x", "ok"), ("x", "ok")))
    assert answers(history) == [("x", "ok")]
    assert [entry.reason for entry in history.report] == ["a duplicate: the call already has a result"]


def test_A3_a_repeated_result_does_not_answer_an_older_call_of_another_exchange() -> None:
    history = history_of(
        *(assistant("call_0"), user(), assistant("call_0"), results(("call_0", "B")), results(("call_0", "B")))
    )
    assert answers(history) == [("call_0", None), ("call_0", "B")]
    assert [entry.reason for entry in history.report] == ["a duplicate: the call already has a result"]
    late = history_of(*(assistant("call_0"), user(), assistant("call_0"), results(("call_0", "B"), ("call_0", "A"))))
    assert answers(late) == [("call_0", "A"), ("call_0", "B")]


@pytest.mark.parametrize(
    "between",
    [
        (),
        (user(),),
        (results(("other", "o")),),
        (results(("other", "o")), user()),
    ],
)
def test_R_004_5_R_004_11_a_repeated_result_under_a_reused_id_never_lands_on_an_older_call(
    between: tuple[Turn, ...],
) -> None:
    history = history_of(
        assistant("call_0", "other"),
        *between,
        *(assistant("call_0"), results(("call_0", "B")), results(("call_0", "B")), results(("call_0", "B"))),
    )
    found = [content for raw_id, content in answers(history) if raw_id == "call_0"]
    assert found == [None, "B"]
    assert "a duplicate: the call already has a result" in {entry.reason for entry in history.report}
    assert History(history.conversation).ledger == history.ledger


def test_R_004_5_a_result_that_an_earlier_call_had_under_the_same_id_is_a_duplicate_too() -> None:
    history = history_of(
        *(assistant("call_0"), user(), assistant("call_0"), results(("call_0", "B"))),
        *(user(), assistant("call_0"), results(("call_0", "C")), results(("call_0", "B"))),
    )
    assert [content for _, content in answers(history)] == [None, "B", "C"]


def test_R_001_5_ids_that_differ_in_half_a_surrogate_are_two_ids() -> None:
    history = history_of(assistant("c\ud800", "c\udc01"), results(("c\udc01", "two"), ("c\ud800", "one")))
    assert [content for _, content in answers(history)] == ["one", "two"]
    raw_ids = [found.call.metadata.raw_id for found in history.ledger if found.call.metadata is not None]
    assert raw_ids == ["c\ufffdd800", "c\ufffddc01"]


def test_R_004_5_equal_results_of_two_calls_of_one_turn_answer_both() -> None:
    history = history_of(assistant("call_0", "call_0"), results(("call_0", "ok"), ("call_0", "ok")))
    assert [content for _, content in answers(history)] == ["ok", "ok"]


def test_several_results_before_their_call_are_the_first_and_its_duplicates() -> None:
    history = history_of(results(("x", "1"), ("x", "2")), assistant("x"))
    assert answers(history) == [("x", "1")]
    assert len(next(iter(history.ledger)).set_aside) == 1


@pytest.mark.parametrize("missing", ["", " ", "\n"])
def test_R_001_15_results_without_an_id_are_matched_by_position(missing: str) -> None:
    history = history_of(assistant("", " "), results((missing, "first")), results((missing, "second")))
    assert [content for _, content in answers(history)] == ["first", "second"]
    assert {entry.action for entry in history.report} == {"matched"}


def test_R_001_15_a_name_decides_before_position() -> None:
    turn = Turn("assistant", (ToolCall("", "a"), ToolCall("", "b"), ToolCall("", "a")))
    tool_turn = Turn(
        "tool", tuple(ToolResult("", text, name=name) for name, text in (("b", "1"), ("a", "2"), ("a", "3")))
    )
    assert [text for _, text in answers(history_of(turn, tool_turn))] == ["2", "1", "3"]


def test_a_name_that_no_open_call_has_is_not_overruled_by_position() -> None:
    history = history_of(assistant("c1"), results(("", "who?"), name="write"))
    assert answers(history) == [("c1", None)]
    assert [result.text for result in history.ledger.orphans] == ["who?"]


def test_a_named_result_may_answer_a_call_that_has_no_name() -> None:
    history = history_of(assistant("", name=""), results(("", "ok"), name="read"))
    assert answers(history) == [(None, "ok")]


def test_an_unknown_id_is_matched_by_position_but_not_past_a_user_turn() -> None:
    assert answers(history_of(assistant("c1"), results(("mangled", "ok")))) == [("c1", "ok")]
    stale = history_of(assistant("c1"), user(), results(("mangled", "ok")))
    assert answers(stale) == [("c1", None)]
    assert [entry.action for entry in stale.report] == ["orphaned"]


def test_a_result_without_any_id_is_matched_past_a_user_turn() -> None:
    assert answers(history_of(assistant("c1"), user(), results(("", "ok")))) == [("c1", "ok")]


def test_a_guess_gives_way_to_the_result_with_the_right_id() -> None:
    history = history_of(assistant("a", "b"), results(("", "of b")), results(("a", "of a")))
    assert answers(history) == [("a", "of a"), ("b", "of b")]


def test_a_guess_gives_way_within_one_turn_without_being_made() -> None:
    history = history_of(assistant("a", "b"), results(("", "of b"), ("a", "of a")))
    assert answers(history) == [("a", "of a"), ("b", "of b")]
    assert [entry.action for entry in history.report] == ["matched"]


def test_a_guess_gives_way_to_the_call_with_the_right_id() -> None:
    history = history_of(assistant("c1"), results(("zzz", "of zzz")), assistant("zzz"), results(("c1", "of c1")))
    assert answers(history) == [("c1", "of c1"), ("zzz", "of zzz")]


def test_a_call_whose_guess_was_taken_back_can_be_answered_by_guess_again() -> None:
    history = history_of(assistant("c1"), results(("zzz", "of zzz")), assistant("zzz"), results(("", "of c1")))
    assert answers(history) == [("c1", "of c1"), ("zzz", "of zzz")]


def test_a_guess_that_finds_no_other_call_becomes_an_orphan() -> None:
    history = history_of(assistant("a"), results(("", "guessed")), results(("a", "sure")))
    assert answers(history) == [("a", "sure")]
    assert [result.text for result in history.ledger.orphans] == ["guessed"]


def test_calls_in_a_tool_turn_and_results_in_an_assistant_turn_are_matched_too() -> None:
    turn = Turn("assistant", (ToolCall("x", "read"), ToolResult("x", "ok")))
    assert answers(history_of(turn)) == [("x", "ok")]
    in_tool_turn = Turn("tool", (ToolCall("y", "read"),))
    assert answers(history_of(in_tool_turn, results(("y", "ok")))) == [("y", "ok")]


def test_ids_of_another_kind_of_blank_never_pair_with_each_other_by_id() -> None:
    history = history_of(assistant(" "), user(), assistant(""), results((" ", "near")))
    assert [content for _, content in answers(history)] == [None, "near"]


@pytest.mark.law
@given(transcripts)
def test_law_2_every_result_of_a_known_id_is_with_a_call_of_that_id(turns: list[Turn]) -> None:
    history = History()
    history.extend(turns)
    raw_of = {c.id: c.metadata.raw_id for t in history.turns for c in t.calls if c.metadata}
    known = {*raw_of.values(), *raw_of}
    for turn in history.turns:
        for result in turn.results:
            assert result.metadata is not None
            if result.metadata.raw_id is not None and result.metadata.raw_id in known:
                assert result.metadata.matched_by == "id"
                assert result.metadata.raw_id in (raw_of[result.call_id], result.call_id)
            elif result.metadata.matched_by == "orphan":
                assert result.call_id not in raw_of


@pytest.mark.law
@given(transcripts)
def test_law_2_nothing_that_came_in_is_lost(turns: list[Turn]) -> None:
    history = History()
    history.extend(turns)
    assert len(history) == len(turns)
    for came, kept in zip(turns, history.turns, strict=True):
        assert [type(block) for block in came.blocks] == [type(block) for block in kept.blocks]
        assert came.text == kept.text
        assert [c.arguments for c in came.calls] == [c.arguments for c in kept.calls]
        assert [r.content for r in came.results] == [r.content for r in kept.results]


# --- equal however it was written -------------------------------------------------------------------


@pytest.mark.law
@given(transcripts, st.randoms(use_true_random=False))
def test_law_4_turn_by_turn_and_at_once_and_reloaded_are_the_same(turns: list[Turn], rng: random.Random) -> None:
    whole = History()
    whole.extend(turns)
    stepwise = History()
    for turn in turns:
        stepwise.append(turn)
        if rng.random() < 0.5:
            assert stepwise.ledger == Ledger.of(stepwise.turns)
        if rng.random() < 0.3:
            stepwise = History(stepwise.conversation)
    assert stepwise.turns == whole.turns
    assert stepwise.ledger == whole.ledger == Ledger.of(whole.turns)


@pytest.mark.law
@given(conversations)
def test_a_conversation_goes_through_a_history_a_dump_and_a_history_unchanged(
    conversation: Conversation,
) -> None:
    once = History(conversation).conversation
    assert History(load(dump(once))).conversation == once


# --- recording and cancelling -----------------------------------------------------------------------


def test_record_takes_canonical_ids_and_ignores_raw_ids() -> None:
    history = history_of(assistant("hist_tool_x"), assistant("hist_tool_x"))
    first, second = (found.id for found in history.ledger)
    history.record(ToolResult(first, "1"), ToolResult(second, "2"))
    assert [content for _, content in answers(history)] == ["1", "2"]
    history.record(ToolResult(first, "again"))
    assert [content for _, content in answers(history)] == ["1", "2"]


def test_record_replaces_a_guess() -> None:
    history = history_of(assistant("a"), results(("", "guess")))
    history.record(ToolResult(next(iter(history.ledger)).id, "sure"))
    assert answers(history) == [("a", "sure")]


def test_record_refuses_what_no_call_has() -> None:
    history = history_of(assistant("call_a"))
    with pytest.raises(InputError, match=r"results\[0\].call_id: no call has the canonical id 'call_a'.*append"):
        history.record(ToolResult("call_a", "x"))
    with pytest.raises(InputError, match="no call has the canonical id 'what'"):
        history.record("what")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one"):
        history.record()
    assert len(history) == 1


def test_R_004_9_cancel_is_terminal_and_carries_the_partial_output_of_the_tool() -> None:
    history = history_of(assistant("a", "b"))
    first, second = (found.id for found in history.ledger)
    history.cancel(first, reason="Stopped.", output="half")
    assert [found.status for found in history.ledger] == ["cancelled", "pending"]
    assert answers(history) == [("a", "Stopped.\nhalf"), ("b", None)]
    history.record(ToolResult(second, "ok"))
    history.cancel(second)
    assert history.ledger[second].status == "complete"
    assert "the call was complete already when it was cancelled" in str(history.report)
    with pytest.raises(InputError, match=r"call_ids\[0\]"):
        history.cancel("nobody")


# --- the turn in flight -----------------------------------------------------------------------------


def test_R_004_1_a_switch_waits_for_the_turn_in_flight() -> None:
    history = History()
    open_turn = history.begin_turn("anthropic")
    history.switch("openai")
    assert history.target == open_turn.target == "anthropic"
    kept = open_turn.append(assistant("toolu_1"))
    assert kept.issuer == Issuer("anthropic")
    history.append(results(("toolu_1", "ok")))
    assert history.target == "anthropic"
    open_turn.finish()
    assert open_turn.is_over
    assert history.target == "openai"
    assert "waits for the turn in flight" in str(history.report)
    with history.begin_turn() as following:
        assert following.append(Turn("assistant", (Text("hi"),))).issuer == Issuer("openai")


def test_R_004_1_no_other_provider_adds_to_a_turn_in_flight() -> None:
    history = History()
    open_turn = history.begin_turn("anthropic")
    with pytest.raises(HistoryError, match="bound to anthropic; a turn of openai must wait"):
        history.append(assistant("a"), provider="openai")
    with pytest.raises(HistoryError, match="cannot begin a turn while a turn is in flight on anthropic"):
        history.begin_turn("openai")
    for cut in (
        lambda: history.rewind(None),
        history.prune,
        lambda: history.compress(summary="s"),
        lambda: history.shorten_results(max_characters=1),
    ):
        with pytest.raises(HistoryError, match="in flight"):
            cut()
    assert history.in_flight is open_turn
    assert len(history) == 0


def test_a_turn_ends_only_when_its_calls_are_answered() -> None:
    history = history_of(assistant("old"))
    open_turn = history.begin_turn()
    open_turn.append(assistant("a", "b"))
    history.append(results(("a", "1")))
    (waiting,) = open_turn.pending
    with pytest.raises(HistoryError, match=f"calls without a result: {waiting.id};"):
        open_turn.finish()
    assert not open_turn.is_over
    open_turn.cancel("Stopped.")
    assert open_turn.is_over
    assert [found.status for found in history.ledger] == ["pending", "complete", "cancelled"]
    for late in (open_turn.finish, open_turn.cancel, lambda: open_turn.append(user())):
        with pytest.raises(HistoryError, match="already over"):
            late()


def test_an_exception_inside_a_turn_cancels_what_it_left_open() -> None:
    history = History()

    def run() -> None:
        with history.begin_turn("openai") as open_turn:
            open_turn.append(assistant("a"))
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run()
    (found,) = history.ledger
    assert (found.status, found.result.text if found.result else "") == (
        "cancelled",
        "Interrupted by TimeoutError.",
    )
    assert history.in_flight is None
    with history.begin_turn() as open_turn:
        open_turn.cancel()
    assert history.in_flight is None


def test_a_turn_needs_a_provider() -> None:
    with pytest.raises(InputError, match="target: expected the name of a provider"):
        History().begin_turn()
    with pytest.raises(InputError, match="target: expected"):
        History().switch(" ")
    with pytest.raises(InputError, match=r"\$\.issuer: a turn with tool calls needs the provider"):
        History().append(assistant("a"))
    with pytest.raises(InputError, match=r"\$\.issuer\.provider: expected the name"):
        History().append(Turn("assistant", issuer=Issuer("")))
    assert History().append(Turn("assistant", (Text("hi"),))).issuer is None
    assert History().append(user(), provider="openai").issuer == Issuer("openai")


# --- isolation --------------------------------------------------------------------------------------


def test_what_a_caller_does_to_its_objects_later_is_not_a_write() -> None:
    arguments = {"a": {"b": [1]}}
    history = history_of(Turn("assistant", (ToolCall("x", "f", arguments),)))
    arguments["a"]["b"].append(2)
    assert history.turns[0].calls[0].arguments == {"a": {"b": [1]}}


def test_circular_and_unserialisable_arguments_are_cloned_and_reported() -> None:
    circular: dict[str, Any] = {"ok": 1}
    circular["self"] = circular
    circular["odd"] = object()
    history = history_of(Turn("assistant", (Thinking("t"), ToolCall("x", "f", circular))))
    assert history.turns[0].calls[0].arguments == {
        "ok": 1,
        "self": "[circular]",
        "odd": "[not serialisable: object]",
    }
    assert [entry.path for entry in history.report] == [
        "$[0].blocks[1].arguments.self",
        "$[0].blocks[1].arguments.odd",
    ]
    assert {entry.action for entry in history.report} == {"cloned"}
    assert load(dump(history.conversation)) == history.conversation


def test_histories_and_ledgers_show_what_they_hold() -> None:
    history = history_of(assistant("a", "b"), results(("a", "1"), ("zzz", "2"), ("yyy", "3")))
    assert repr(history) == "<History: 2 turns, 2 calls, 0 pending>"
    assert repr(history.ledger) == "<Ledger: 2 calls, 0 pending, 1 orphans>"
    with pytest.raises(KeyError, match="no call has the canonical id 'a'"):
        history.ledger["a"]


@pytest.mark.parametrize("turns", [user(), 5])
def test_several_turns_are_several(turns: Any) -> None:
    with pytest.raises(InputError, match=r"expected several turns.*append\(\) takes one"):
        History().extend(turns)


def test_limits_are_limits() -> None:
    with pytest.raises(InputError, match="limits: expected Limits, got None"):
        History(limits=None)  # type: ignore[arg-type]


def test_a_fork_goes_its_own_way() -> None:
    history = history_of(user(), assistant("a"), results(("a", "1")))
    branch = history.fork(at=history.turns[1].key)
    branch.append(results(("a", "other")))
    assert answers(history) == [("a", "1")]
    assert answers(branch) == [("a", "other")]
    whole = history.fork()
    assert whole.turns == history.turns
    assert whole.target == history.target


def test_a_rewind_forgets_and_a_replay_gives_the_same_ids() -> None:
    history = history_of(user(), assistant("a"), results(("a", "1")), assistant("a"))
    before = history.turns
    history.rewind(before[0].key)
    assert history.turns == before[:1]
    history.extend([assistant("a"), results(("a", "1")), assistant("a")])
    assert history.turns == before
    history.rewind(None)
    assert len(history) == 0
    with pytest.raises(InputError, match="no turn has the key 'k'"):
        history.rewind("k")


def test_a_rewind_sets_free_a_result_whose_call_is_gone() -> None:
    history = history_of(results(("x", "early")), user(), assistant("x"))
    history.rewind(history.turns[1].key)
    assert [result.text for result in history.ledger.orphans] == ["early"]
    history.append(assistant("x"))
    assert answers(history) == [("x", "early")]


def test_the_five_scenarios_keep_every_pair_through_changes_of_provider() -> None:
    history = History()
    for n, provider in enumerate(["openai", "anthropic", "gemini", "kimi", "mistral", "openai"]):
        history.append(user(f"step {n}"))
        with history.begin_turn(provider) as open_turn:
            open_turn.append(assistant("call_0", "call_1"))
            history.append(results(("call_0", f"{n}.0"), ("call_1", f"{n}.1")))
    assert [content for _, content in answers(history)] == [f"{n}.{k}" for n in range(6) for k in range(2)]

"""Cutting turns out: R-004-17, L2, and the ledger that survives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import transcripts
from toolglot import (
    Conversation,
    History,
    HistoryError,
    InputError,
    Interaction,
    Ledger,
    Media,
    Text,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Turn,
    TurnMetadata,
    dump,
    load,
    profiles,
)
from toolglot.conversation import ids
from toolglot.history.compression import shorten


def six_call_batch(*, one_turn_each: bool) -> History:
    """A user turn, six parallel calls, their results, an answer, one more call and its result."""
    history = History(provider="openai")
    history.append(Turn("system", (Text("be brief"),)))
    history.append(Turn("user", (Text("go"),)))
    history.append(Turn("assistant", tuple(ToolCall(f"call_{n}", "read", {"n": n}) for n in range(6))))
    results = [ToolResult(f"call_{n}", f"printed {n}") for n in range(6)]
    history.extend([Turn("tool", (each,)) for each in results] if one_turn_each else [Turn("tool", tuple(results))])
    history.append(Turn("assistant", (Text("done"), ToolCall("call_0", "read", {"n": 6}))))
    history.append(Turn("tool", (ToolResult("call_0", "printed 6"),)))
    return history


def statuses(history: History) -> dict[str, tuple[str, str | None]]:
    return {found.id: (found.status, found.result.text if found.result else None) for found in history.ledger}


@pytest.mark.parametrize("one_turn_each", [True, False])
def test_L2_R_004_17_cutting_at_every_point_of_a_six_call_batch_leaves_a_whole_ledger(*, one_turn_each: bool) -> None:
    whole = six_call_batch(one_turn_each=one_turn_each)
    for turn in whole.turns:
        cut = whole.fork()
        summary = cut.compress(before=turn.key, summary="earlier: read six files")
        assert statuses(cut) == statuses(whole)
        assert cut.ledger == Ledger.of(cut.turns) == History(load(dump(cut.conversation))).ledger
        calls = {call.id for kept in cut.turns for call in kept.calls}
        results = {result.call_id for kept in cut.turns for result in kept.results}
        assert calls == results
        assert cut.turns[0].role == "system"
        assert summary is None or summary in cut.turns


@pytest.mark.parametrize("one_turn_each", [True, False])
def test_R_004_17_pruning_any_turn_of_a_six_call_batch_leaves_a_whole_ledger(*, one_turn_each: bool) -> None:
    whole = six_call_batch(one_turn_each=one_turn_each)
    for turn in whole.turns:
        pruned = whole.fork()
        pruned.prune(turn.key)
        assert len(pruned) == len(whole) - 1
        assert statuses(pruned) == statuses(whole)
        assert pruned.ledger == Ledger.of(pruned.turns) == History(load(dump(pruned.conversation))).ledger


@pytest.mark.law
@given(transcripts, st.data())
def test_R_004_17_any_sequence_of_cuts_keeps_every_interaction(turns: list[Turn], data: st.DataObject) -> None:
    history = History()
    history.extend(turns)
    before = statuses(history)
    ordinals = {f.id: f.call.metadata.ordinal for f in history.ledger if f.call.metadata}
    for _ in range(data.draw(st.integers(1, 4))):
        if not len(history):
            break
        key = data.draw(st.sampled_from([turn.key for turn in history.turns]))
        if data.draw(st.booleans()):
            history.compress(before=key, summary="what happened")
        else:
            calls = {call.id for call in history.turn(key).calls}
            if not calls & {found.id for found in history.ledger.pending} and len(history) > 1:
                history.prune(key)
        assert history.ledger == Ledger.of(history.turns)
        assert History(load(dump(history.conversation))).ledger == history.ledger
    assert statuses(history) == before
    assert {f.id: f.call.metadata.ordinal for f in history.ledger if f.call.metadata} == ordinals


def test_a_pending_call_is_never_cut_off() -> None:
    history = History(provider="openai")
    history.extend([Turn("user", (Text("a"),)), Turn("assistant", (ToolCall("x", "f"),)), Turn("user", (Text("b"),))])
    history.compress(summary="s")
    assert [turn.role for turn in history.turns] == ["user", "assistant", "user"]
    assert history.turns[0].text == "s"
    assert "only 1 of 3 turns could be compressed: a call is pending" in str(history.report)
    assert history.compress(before=history.turns[0].key, summary="s") is None
    with pytest.raises(HistoryError, match="is pending: record its result or cancel it first"):
        history.prune(history.turns[1].key)


def test_system_turns_stay_wherever_they_are() -> None:
    history = History()
    history.extend([Turn(role, (Text(role),)) for role in ("system", "user", "developer", "user")])
    history.compress(summary="s")
    assert [(turn.role, turn.text) for turn in history.turns] == [
        ("system", "system"),
        ("developer", "developer"),
        ("user", "s"),
    ]


def test_a_result_that_comes_after_its_call_was_compressed_still_finds_it() -> None:
    history = six_call_batch(one_turn_each=False)
    history.compress(summary="s")
    history.append(Turn("tool", (ToolResult("call_3", "again"),)))
    (aside,) = next(found for found in history.ledger if found.call.arguments == {"n": 3}).set_aside
    assert aside.result.text == "again"


def test_B4_ordinals_and_ids_survive_compression_and_go_on_counting() -> None:
    history = six_call_batch(one_turn_each=True)
    before = {found.id: found.call.metadata for found in history.ledger}
    history.compress(before=history.turns[-2].key, summary="s")
    history.append(Turn("assistant", (ToolCall("call_0", "read"),)))
    last = history.turns[-1].calls[0]
    assert last.metadata is not None
    assert last.metadata.ordinal == 7
    assert last.id not in before
    projection = ids.Projection(profiles.get("kimi", "kimi-k2"))
    assert [projection.add(call) for turn in history.turns for call in turn.calls] == [
        "functions.read:6",
        "functions.read:7",
    ]


def test_an_equal_turn_after_compression_is_a_different_turn() -> None:
    history = History(provider="openai")
    turn = Turn("assistant", (ToolCall("call_0", "read"),))
    history.extend([turn, Turn("tool", (ToolResult("call_0", "1"),))])
    history.compress(summary="s")
    history.extend([turn, Turn("tool", (ToolResult("call_0", "2"),))])
    assert [found.result.text for found in history.ledger if found.result] == ["1", "2"]


def test_compression_can_shorten_the_results_it_takes_out() -> None:
    history = History(provider="openai")
    long = (Text("y" * 100), Media("image", data="aGk="), Text("z"))
    turns = [
        Turn("assistant", (ToolCall("a", "f"), ToolCall("b", "f"), ToolCall("c", "f"))),
        Turn("tool", (ToolResult("a", "x" * 100), ToolResult("b", long), ToolResult("c", status="cancelled"))),
    ]
    history.extend(turns)
    history.compress(summary="s", max_result_characters=50)
    texts = [found.result.text for found in history.ledger if found.result]
    assert texts == [
        "xxxxxxxxxx\n[… 81 characters left out …]\nxxxxxxxxx",
        "yyyyyyyyyy\n[… 81 characters left out …]\nyyyyyyyyyz",
        "",
    ]
    assert [found.status for found in history.ledger] == ["complete", "complete", "cancelled"]


def test_results_that_stay_can_be_shortened_and_pairs_keep_their_ids() -> None:
    history = History(provider="openai")
    for n in range(3):
        history.append(Turn("assistant", (ToolCall("call_0", "f"),)))
        history.append(Turn("tool", (ToolResult("call_0", str(n) * 100),)))
    before = history.turns
    assert history.shorten_results(max_characters=40, before=before[4].key) == 2
    assert [turn.key for turn in history.turns] == [turn.key for turn in before]
    assert len(history.turns[1].results[0].text) == 39
    assert history.turns[4:] == before[4:]
    assert history.shorten_results(max_characters=100) == 0
    assert "results were cut to 40 characters" in str(history.report)


def test_shortening_what_an_earlier_turn_carries_makes_no_conflict() -> None:
    history = History(provider="openai")
    history.extend([Turn("user", (Text("a"),)), Turn("assistant", (ToolCall("x", "f"),))])
    history.extend([Turn("tool", (ToolResult("x", "y" * 100),)), Turn("tool", (ToolResult("x", "y" * 100),))])
    history.prune(history.turns[3].key)
    assert history.shorten_results(max_characters=50) == 1
    (found,) = history.ledger
    assert found.set_aside == ()
    assert found.result is not None
    assert len(found.result.text) == 49


@pytest.mark.law
@given(st.text(max_size=200), st.integers(0, 200))
def test_shortening_never_makes_a_text_longer_and_counts_what_is_left_out(text: str, max_characters: int) -> None:
    short = shorten(text, max_characters)
    if short != text:
        assert len(short) < len(text)
        assert len(short) <= max(max_characters, len("\n[… 200 characters left out …]\n"))
        head, tail = short.split("\n[… ")[0], short.split(" …]\n")[-1]
        gone = int(short.split("\n[… ")[-1].split(" ")[0])
        assert len(head) + len(tail) + gone == len(text)
        assert text.startswith(head)
        assert text.endswith(tail)


@pytest.mark.parametrize("max_characters", [-1, 1.5, "a", True, None])
def test_a_length_is_a_whole_number_from_0(max_characters: Any) -> None:
    with pytest.raises(InputError, match="max_characters: expected a whole number from 0, got"):
        History().shorten_results(max_characters=max_characters)
    if max_characters is not None:
        with pytest.raises(InputError, match="max_result_characters: expected a whole number"):
            History().compress(summary="s", max_result_characters=max_characters)


def test_a_cancelled_call_does_not_block_compression() -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("old", "f"),)))
    for n in range(5):
        history.append(Turn("assistant", (ToolCall("call_0", "f"),)))
        history.append(Turn("tool", (ToolResult("call_0", str(n)),)))
    before = history.turns[-2].key
    assert history.compressible(before=before) == ()
    assert history.compress(summary="s", before=before) is None
    (pending,) = history.ledger.pending
    (moved,) = history.report
    assert (moved.action, moved.call_ids) == ("moved", (pending.id,))
    history.cancel(pending.id)
    assert len(history.compressible(before=before)) == 9
    history.compress(summary="s", before=before)
    assert [turn.role for turn in history.turns] == ["user", "assistant", "tool"]
    assert history.ledger[pending.id].status == "cancelled"
    assert len(history.ledger) == 6


def test_a_cancel_beside_other_blocks_leaves_them_where_they_are() -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("a", "f"), ToolCall("b", "f"))))
    history.append(Turn("user", (Text("stop"),)))
    history.append(Turn("user", (ToolResult("a", status="cancelled"), ToolResult("b", status="cancelled"), Text("on"))))
    history.compress(summary="s", before=history.turns[1].key)
    assert [turn.text for turn in history.turns] == ["s", "stop", "on"]
    assert [found.status for found in history.ledger] == ["cancelled", "cancelled"]


def test_what_compress_takes_out_can_be_seen_before() -> None:
    history = six_call_batch(one_turn_each=True)
    for turn in history.turns:
        cut = history.fork()
        taken = cut.compressible(before=turn.key)
        cut.compress(before=turn.key, summary="s")
        assert {kept.key for kept in cut.turns} & {gone.key for gone in taken} == set()
        assert len(cut) == len(history) - len(taken) + bool(taken)


def test_a_summary_is_a_string_that_is_not_blank() -> None:
    for summary in ("", " ", 3):
        with pytest.raises(InputError, match="summary: expected a string that is not blank"):
            History().compress(summary=summary)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no turn has the key 'nope'"):
        History().compress(summary="s", before="nope")


def test_one_turn_must_stay_to_carry_the_interactions() -> None:
    history = History(provider="openai")
    history.extend([Turn("assistant", (ToolCall("a", "f"),)), Turn("tool", (ToolResult("a", "1"),))])
    with pytest.raises(HistoryError, match="no turn would be left"):
        history.prune(*(turn.key for turn in history.turns))
    assert len(history) == 2
    talk = History()
    talk.append(Turn("user", (Text("a"),)))
    talk.prune(talk.turns[0].key)
    assert len(talk) == 0


def test_compressing_twice_carries_everything_on() -> None:
    history = six_call_batch(one_turn_each=True)
    before = statuses(history)
    history.compress(before=history.turns[-2].key, summary="first")
    history.compress(summary="second")
    assert [turn.text for turn in history.turns] == ["be brief", "second"]
    assert statuses(history) == before
    assert len(history.conversation.interactions_removed) == 7


def test_a_call_whose_interaction_an_earlier_turn_carries_is_the_same_call() -> None:
    history = History(provider="openai")
    history.extend([Turn("user", (Text("a"),)), Turn("tool", (ToolResult("x", "early"),))])
    history.append(Turn("assistant", (ToolCall("x", "f"),)))
    (before,) = history.ledger
    history.prune(history.turns[1].key)
    assert list(history.ledger) == [before]
    assert History(load(dump(history.conversation))).turns == history.turns


CARRIED = Interaction(ToolCall("hist_tool_a", "f", {"n": 1}), "somewhere", 0)
FORGED = {
    "an id that is not canonical": Interaction(ToolCall("not canonical", "f"), "k", 0),
    "a status that the result does not say": Interaction(ToolCall("hist_tool_b", "f"), "k", 0, status="complete"),
    "another call's id": Interaction(ToolCall("hist_tool_a", "rm", {"evil": 1}), "k", 0),
}


def test_an_interaction_that_is_still_open_can_be_carried_and_answered() -> None:
    turn = Turn("user", (Text("a"),), metadata=TurnMetadata(removed=(CARRIED, CARRIED)))
    history = History(Conversation((turn,)))
    assert list(history.ledger) == [CARRIED]
    history.append(Turn("tool", (ToolResult("hist_tool_a", "ok"),)))
    assert [found.status for found in history.ledger] == ["complete"]


@pytest.mark.parametrize("name", FORGED)
def test_an_interaction_that_cannot_be_is_refused(name: str) -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("hist_tool_a", "f", {"n": 1}),)))
    before = (history.turns, history.ledger)
    with pytest.raises(InputError, match=r"\$\.metadata\.removed\[0\]: .*only compress\(\) writes these"):
        history.append(Turn("user", metadata=TurnMetadata(removed=(FORGED[name],))))
    assert (history.turns, history.ledger) == before


def test_a_different_call_under_a_carried_id_is_a_call_of_its_own() -> None:
    history = History(Conversation((Turn("user", (Text("a"),), metadata=TurnMetadata(removed=(CARRIED,))),)))
    other = ToolCall("hist_tool_a", "rm", {"evil": 1}, metadata=ToolMetadata())
    history.append(Turn("assistant", (other,)), provider="openai")
    assert len(history.ledger) == 2
    assert [found.name for found in history.ledger] == ["f", "rm"]


def test_a_match_with_a_call_that_is_nowhere_is_made_anew() -> None:
    lost = ToolResult("hist_tool_gone", "printed", metadata=ToolMetadata(raw_id="x", matched_by="id"))
    history = History(Conversation((Turn("tool", (lost,)),)))
    assert [orphan.metadata.matched_by for orphan in history.ledger.orphans if orphan.metadata] == ["orphan"]
    history.append(Turn("assistant", (ToolCall("x", "f"),)), provider="openai")
    assert [found.status for found in history.ledger] == ["complete"]


def test_a_result_taken_from_another_history_finds_a_call_that_is_known_here() -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("hist_tool_a", "f"),)))
    history.append(Turn("tool", (ToolResult("hist_tool_a", "ok", metadata=ToolMetadata("a", matched_by="id")),)))
    assert [found.status for found in history.ledger] == ["complete"]


def test_a_shortened_result_is_still_the_same_completion() -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("a", "f"),)))
    history.append(Turn("tool", (ToolResult("a", "y" * 100),)))
    key = history.append(Turn("user", (Text("go on"),))).key
    history.append(Turn("tool", (ToolResult("a", "y" * 100),)))
    history.shorten_results(max_characters=50, before=key)
    history.append(Turn("tool", (ToolResult("a", "y" * 100),)))
    assert [len(found.set_aside) for found in history.ledger] == [0]
    history.append(Turn("tool", (ToolResult("a", "y" * 50 + "z" + "y" * 49),)))
    assert [len(found.set_aside) for found in history.ledger] == [1]
    history.shorten_results(max_characters=40)
    assert [len(found.set_aside) for found in history.ledger] == [1]


def test_an_entry_of_the_report_lists_what_this_compression_took() -> None:
    history = six_call_batch(one_turn_each=True)
    history.compress(before=history.turns[-2].key, summary="1")
    history.compress(summary="2")
    taken = [len(entry.call_ids) for entry in history.report if entry.action == "compressed"]
    assert taken == [6, 1]

"""Lifecycle of tool interactions: R-004-2, -3, -5, -9 to -12, -17 and the resolutions T1 to T6."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.strategies import transcripts
from toolglot import History, Interaction, Ledger, Media, Text, ToolCall, ToolResult, Turn, TurnMetadata
from toolglot.conversation.completion import completion_key, status_of

CALL = Turn("assistant", (ToolCall("hist_tool_1", "read", {"path": "a"}),), key="t1")


def interaction_after(*results: ToolResult) -> Interaction:
    """What becomes of one call that gets these results, each in a turn of its own."""
    ledger = Ledger.of([CALL, *(Turn("tool", (result,), key=f"r{n}") for n, result in enumerate(results))])
    return ledger["hist_tool_1"]


def result(content: str | None = None, **fields: Any) -> ToolResult:
    return ToolResult("hist_tool_1", content, **fields)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "pending"),
        ({"is_complete": False}, "pending"),
        ({"is_complete": True}, "complete"),
        ({"result": 1}, "complete"),
        ({"result": 1, "is_complete": False}, "complete"),
        ({"result": ""}, "complete"),
        ({"result": 0}, "complete"),
        ({"result": False}, "complete"),
        ({"content": ""}, "complete"),
        ({"content": ()}, "complete"),
        ({"error": "boom"}, "error"),
        ({"error": ""}, "error"),
        ({"error": "boom", "is_complete": True, "result": 1}, "error"),
        ({"is_error": True}, "error"),
        ({"status": "error"}, "error"),
        ({"status": "complete"}, "complete"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "cancelled", "error": "boom", "is_complete": True}, "cancelled"),
        ({"status": "pending", "result": 1}, "complete"),
    ],
)
def test_R_004_10_status_comes_from_all_fields_together(fields: dict[str, Any], status: str) -> None:
    assert status_of(ToolResult("c", **fields)) == status
    assert interaction_after(result(**fields)).status == status


def test_R_004_9_an_interaction_has_the_fields_of_the_contract() -> None:
    found = interaction_after(result("ok", executed_arguments={"path": "b"}))
    assert (found.id, found.name, found.call.arguments) == ("hist_tool_1", "read", {"path": "a"})
    assert (found.turn_key, found.index, found.status) == ("t1", 0, "complete")
    assert found.result is not None
    assert found.result.text == "ok"


def test_law_11_what_was_executed_is_recorded_beside_what_the_model_wrote() -> None:
    found = interaction_after(result("ok", executed_arguments={"path": "b"}))
    assert found.call.arguments == {"path": "a"}
    assert found.executed_arguments == {"path": "b"}
    assert interaction_after(result("ok")).executed_arguments == {"path": "a"}
    assert interaction_after().executed_arguments == {"path": "a"}


def test_R_004_11_identical_repeated_completions_change_nothing() -> None:
    once = interaction_after(result("ok"))
    assert interaction_after(result("ok"), result("ok"), result("ok")) == once
    assert interaction_after(result("ok"), replace(result("ok"), name="read")).set_aside == ()


def test_R_004_11_text_as_a_string_and_as_blocks_is_the_same_completion() -> None:
    blocks = ToolResult("c", (Text("o"), Text("k", extra={"anthropic": {"cache_control": {}}})))
    assert completion_key(blocks) == completion_key(ToolResult("c", "ok"))
    image = ToolResult("c", (Text("ok"), Media("image", data="aGk=")))
    assert completion_key(image) != completion_key(ToolResult("c", "ok"))
    assert completion_key(image) == completion_key(ToolResult("c", (Text("ok"), Media("image", data="aGk=", extra={}))))


def test_R_004_T2_the_first_of_two_real_completions_stays() -> None:
    found = interaction_after(result("first"), result("second"), result("second"))
    assert found.result is not None
    assert found.result.text == "first"
    assert [(aside.result.text, aside.reason) for aside in found.set_aside] == [("second", "conflict")]


def test_R_004_T2_an_error_that_came_first_stays() -> None:
    assert interaction_after(result("boom", is_error=True), result("fine")).status == "error"


@pytest.mark.parametrize("order", [0, 1])
def test_R_004_T2_A3_a_real_result_wins_over_a_synthetic_one_in_either_order(order: int) -> None:
    real, synthetic = result("real"), result("made up", is_error=True, synthetic="interrupted")
    found = interaction_after(*((real, synthetic) if order else (synthetic, real)))
    assert found.status == "complete"
    assert found.result == real
    assert [aside.result for aside in found.set_aside] == [synthetic]
    assert found.set_aside[0].reason == ("conflict" if order else "superseded")


@pytest.mark.parametrize("order", [0, 1])
def test_R_004_T2_a_complete_result_wins_over_a_partial_one(order: int) -> None:
    whole, part = result("whole"), result("who", is_complete=False)
    assert interaction_after(*((whole, part) if order else (part, whole))).result == whole


def test_R_004_T3_a_late_result_after_an_explicit_cancel_is_kept_and_does_not_win() -> None:
    cancel = result("Cancelled.", status="cancelled")
    found = interaction_after(cancel, result("late"), result("later"))
    assert found.status == "cancelled"
    assert found.result == cancel
    assert [(aside.result.text, aside.reason) for aside in found.set_aside] == [
        ("late", "late"),
        ("later", "late"),
    ]


def test_only_an_explicit_cancel_is_final() -> None:
    made_up = result("Interrupted.", status="cancelled", synthetic="interrupted")
    assert interaction_after(made_up).status == "cancelled"
    assert interaction_after(made_up, result("real")).status == "complete"


def test_a_terminal_state_does_not_go_back_to_pending() -> None:
    assert interaction_after(result("ok"), result()).set_aside == ()
    assert interaction_after(result("ok"), result()).status == "complete"
    assert interaction_after(result(), result(), result("ok")).status == "complete"


@pytest.mark.law
@given(st.lists(st.sampled_from(["real", "synthetic", "partial", "cancel", "error", "nothing"]), max_size=6))
def test_terminal_states_change_only_as_stated(kinds: list[str]) -> None:
    made = {
        "real": result("r"),
        "synthetic": result("s", synthetic="x"),
        "partial": result("p", is_complete=False),
        "cancel": result("c", status="cancelled"),
        "error": result("e", is_error=True),
        "nothing": result(),
    }
    before = interaction_after()
    for n in range(len(kinds)):
        after = interaction_after(*(made[kind] for kind in kinds[: n + 1]))
        if before.status != "pending" and before.result is not None:
            won = after.result
            assert won is not None
            if before.result == made["cancel"]:
                assert won == before.result
            elif won != before.result:
                rank = {"synthetic": 0, "partial": 1}
                order = [rank.get(next(k for k in made if made[k] == seen), 2) for seen in (before.result, won)]
                assert order[0] < order[1]
        assert len(after.set_aside) >= len(before.set_aside)
        before = after


def test_R_004_2_a_result_without_a_call_is_an_orphan() -> None:
    ledger = Ledger.of([Turn("tool", (result("lost"),))])
    assert len(ledger) == 0
    assert [orphan.text for orphan in ledger.orphans] == ["lost"]
    assert ledger.get("hist_tool_1") is None
    assert "hist_tool_1" not in ledger


def test_a_result_that_stands_before_its_call_gives_way_to_one_after_it() -> None:
    early = Ledger.of([Turn("tool", (result("early"),)), CALL])["hist_tool_1"]
    assert (early.status, early.early) == ("complete", True)
    both = Ledger.of([Turn("tool", (result("early"),)), CALL, Turn("tool", (result("after"),))])["hist_tool_1"]
    assert both.result is not None
    assert (both.result.text, both.early, both.set_aside[0].reason) == ("after", False, "superseded")


def test_R_004_12_pending_calls_are_listed() -> None:
    six = Turn("assistant", tuple(ToolCall(f"hist_tool_{n}", "f") for n in range(6)), key="t")
    ledger = Ledger.of([six, Turn("tool", (ToolResult("hist_tool_3", "real"),))])
    assert [found.id for found in ledger.pending] == [f"hist_tool_{n}" for n in (0, 1, 2, 4, 5)]


def test_a_second_call_with_a_taken_id_is_ignored_and_reported() -> None:
    ledger = Ledger.of([CALL, CALL])
    assert len(ledger) == 1
    assert [entry.action for entry in ledger.entries] == ["ignored"]


def test_an_interaction_that_was_cut_out_is_taken_up_whole_or_completes_its_call() -> None:
    removed = interaction_after(result("ok"), result("other"))
    whole = Ledger.of([Turn("user", metadata=TurnMetadata(removed=(removed,)))])
    assert whole["hist_tool_1"] == removed
    completed = Ledger.of([replace(CALL, metadata=TurnMetadata(removed=(removed,)))])
    assert completed["hist_tool_1"] == removed
    pending = Ledger.of([replace(CALL, metadata=TurnMetadata(removed=(interaction_after(),)))])
    assert pending["hist_tool_1"].status == "pending"


def test_ledgers_compare_by_content() -> None:
    assert Ledger.of([CALL]) == Ledger.of([CALL])
    assert Ledger.of([CALL]) != Ledger.of([])
    assert Ledger.of([CALL]) != "a ledger"


@pytest.mark.law
@given(transcripts)
def test_R_004_3_R_004_5_every_call_has_one_state_and_at_most_one_completion(turns: list[Turn]) -> None:
    history = History()
    history.extend(turns)
    for found in history.ledger:
        assert (found.status == "pending") == (found.result is None or status_of(found.result) == "pending")
        keys = [completion_key(aside.result) for aside in found.set_aside]
        assert len(set(keys)) == len(keys)
        assert found.result is None or completion_key(found.result) not in keys


@pytest.mark.law
@given(transcripts)
def test_law_2_every_result_is_a_completion_a_repetition_set_aside_or_an_orphan(turns: list[Turn]) -> None:
    history = History()
    history.extend(turns)
    ledger = history.ledger
    orphans = [completion_key(orphan) for orphan in ledger.orphans]
    for turn in history.turns:
        for block in turn.results:
            found = ledger.get(block.call_id)
            if found is None:
                assert completion_key(block) in orphans
            elif status_of(block) != "pending":
                kept = [found.result, *(aside.result for aside in found.set_aside)]
                assert completion_key(block) in [completion_key(each) for each in kept if each is not None]

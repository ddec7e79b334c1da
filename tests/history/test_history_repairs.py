"""Faults that a history once had: each test is the sequence that showed it."""

from __future__ import annotations

import pytest

from support.conversations.short_turns import answers, assistant, history_of, results, user
from toolglot import (
    History,
    InputError,
    Interaction,
    Issuer,
    Ledger,
    Limits,
    ServerTool,
    Text,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Turn,
    TurnMetadata,
    dump,
    lint,
    load,
    request_for,
)
from toolglot.history.intake import Intake


def test_a_rewind_gives_no_call_a_strangers_result() -> None:
    history = history_of(assistant("a"), results(("z", "of z")), results(("a", "of a")), assistant("z"))
    assert answers(history) == [("a", "of a"), ("z", "of z")]
    key = history.turns[2].key
    assert answers(history.fork(at=key)) == [("a", "of a")]
    history.rewind(key)
    assert answers(history) == [("a", "of a")]
    history.append(assistant("z"))
    assert answers(history) == [("a", "of a"), ("z", "of z")]


def test_a_rewind_keeps_an_explicit_cancel() -> None:
    history = history_of(assistant("a"), results(("z", "of z")))
    history.append(Turn("tool", (ToolResult("a", "stopped", status="cancelled"),)))
    key = history.append(user()).key
    history.append(assistant("z"))
    history.rewind(key)
    assert [found.status for found in history.ledger] == ["cancelled"]


def test_two_guesses_never_share_a_call() -> None:
    history = history_of(assistant("a"), results(("y", "1")), results(("z", "2")), assistant("y"))
    assert answers(history) == [("a", None), ("y", "1")]
    history.rewind(history.turns[2].key)
    held = [result.call_id for turn in history.turns for result in turn.results]
    assert len(set(held)) == 2


def test_a_guess_gives_way_after_its_call_was_pruned() -> None:
    def pruned() -> History:
        history = history_of(user(), assistant("a"), results(("zzz", "of zzz"), name="read"))
        history.prune(history.turns[1].key)
        return history

    moved = pruned()
    moved.append(assistant("zzz"))
    assert answers(moved) == [("a", None), ("zzz", "of zzz")]
    assert moved.ledger == Ledger.of(moved.turns) == History(load(dump(moved.conversation))).ledger
    sure = pruned()
    sure.append(results(("a", "of a")))
    assert answers(sure) == [("a", "of a")]


def test_a_guess_that_was_compressed_gives_way_to_the_result_with_the_right_id() -> None:
    history = history_of(assistant("a"), results(("zzz", "guessed"), name="read"))
    history.compress(summary="s")
    history.append(results(("a", "of a")))
    assert answers(history) == [("a", "of a")]


def test_the_id_of_an_orphan_is_no_calls_id() -> None:
    stray = ToolResult("", "stray", name="read", status="cancelled")
    history = history_of(Turn("assistant", (stray, ToolCall("", "read"))))
    history.record(ToolResult(history.turns[0].calls[0].id, "real", name="read"))
    assert answers(history) == [(None, "real")]
    assert [orphan.text for orphan in history.ledger.orphans] == ["stray"]


def test_a_callers_key_that_looks_made_loses_no_turn() -> None:
    stem = history_of(assistant("c")).turns[0].key.partition(".")[0]
    for number in ("999999999999999", "999999999999999999", "1"):
        history = History(provider="openai")
        history.append(assistant("c"), key=f"{stem}.{number}")
        for n in range(4):
            history.append(results(("c", str(n))))
            history.append(assistant("c"))
        again = History(load(dump(history.conversation)))
        assert len({turn.key for turn in history.turns}) == len(history) == len(again)
        assert again.turns == history.turns


def test_metadata_without_a_raw_id_does_not_hide_the_id() -> None:
    origin = ToolMetadata(issuer=Issuer("anthropic"), thought_signature="SIG")
    calls = tuple(ToolCall(f"toolu_{n}", "f", {"n": n}, metadata=origin) for n in (1, 2))
    history = history_of(Turn("assistant", calls), results(("toolu_2", "second"), ("toolu_1", "first")))
    assert answers(history) == [("toolu_1", "first"), ("toolu_2", "second")]
    kept = history.turns[0].calls[0].metadata
    assert kept == ToolMetadata("toolu_1", Issuer("anthropic"), 0, thought_signature="SIG")


def test_a_forged_match_is_made_anew() -> None:
    by_id = ToolResult("call_0", "r", metadata=ToolMetadata(raw_id="call_0", matched_by="id"))
    history = history_of(assistant("call_0"), Turn("tool", (by_id,)))
    assert answers(history) == [("call_0", "r")]
    assert History(load(dump(history.conversation))).ledger == history.ledger
    live = history.turns[0].calls[0].id
    orphan = ToolResult(live, "x", metadata=ToolMetadata(raw_id="call_0", matched_by="orphan"))
    history.append(Turn("tool", (orphan,)))
    assert answers(history) == [("call_0", "r")]
    assert History(load(dump(history.conversation))).ledger == history.ledger


def test_a_forged_guess_neither_crashes_nor_leaves_half_a_write() -> None:
    forged = ToolResult("hist_tool_A", "r", metadata=ToolMetadata(raw_id="x", matched_by="position"))
    named = ToolCall("hist_tool_A", "f", {}, metadata=ToolMetadata(raw_id="q"))
    history = history_of(user(), Turn("tool", (forged,)), assistant("x"), Turn("assistant", (named,)))
    assert len(history) == 4
    assert history.ledger == Ledger.of(history.turns) == History(load(dump(history.conversation))).ledger


def test_a_write_that_fails_half_way_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_of(assistant("c1"), results(("zzz", "of zzz")))
    before = (history.turns, history.ledger, len(history.report))

    def fail(*_: object) -> None:
        raise MemoryError

    original = Intake._take_removed
    monkeypatch.setattr(Intake, "_take_removed", fail)
    removed = Interaction(ToolCall("hist_tool_q", "f"), "k", 0)
    with pytest.raises(MemoryError):
        history.extend([assistant("zzz"), Turn("user", metadata=TurnMetadata(removed=(removed,)))])
    monkeypatch.setattr(Intake, "_take_removed", original)
    assert (history.turns, history.ledger, len(history.report)) == before
    history.append(assistant("zzz"))
    assert answers(history) == [("c1", None), ("zzz", "of zzz")]


def test_a_result_without_content_leaves_its_call_open() -> None:
    nothing = Turn("tool", (ToolResult("call_0"),))
    history = history_of(assistant("call_0"), nothing, assistant("call_0"), results(("call_0", "b"), ("call_0", "a")))
    assert answers(history) == [("call_0", "a"), ("call_0", "b")]
    history.record(ToolResult(next(iter(history.ledger)).id))
    blank = history_of(assistant("x"), Turn("tool", (ToolResult(""),)), results(("", "printed")))
    assert answers(blank) == [("x", "printed")]
    assert History(blank.conversation).turns == blank.turns


def test_the_first_word_on_a_pending_call_stays_through_pruning() -> None:
    history = history_of(assistant("a"), user())
    for n in (1, 2):
        history.append(Turn("tool", (ToolResult("a", executed_arguments={"p": n}),)))
    before = list(history.ledger)
    history.prune(history.turns[3].key)
    assert list(history.ledger) == before


def test_a_rewind_forgets_what_was_pruned_after_it() -> None:
    history = history_of(user(), assistant("a"), results(("a", "later")), user("end"))
    history.prune(history.turns[1].key)
    history.rewind(history.turns[0].key)
    assert len(history.ledger) == 0


def test_a_cancel_of_several_is_whole_or_not_at_all() -> None:
    history = history_of(assistant("a"), results(("a", "1")))
    done = next(iter(history.ledger)).id
    with pytest.raises(InputError):
        history.cancel(done, "nobody")
    assert len(history.report) == 0


def test_an_exception_in_a_turn_is_not_hidden_by_a_limit() -> None:
    history = History(provider="openai", limits=Limits(max_bytes=1_000))

    def run() -> None:
        with history.begin_turn() as open_turn:
            open_turn.append(Turn("assistant", tuple(ToolCall("", "") for _ in range(50))))
            raise TimeoutError

    with pytest.raises(TimeoutError):
        run()
    assert history.in_flight is None


def test_turns_with_different_content_are_never_the_same_turn() -> None:
    history = History(provider="openai")
    history.append(Turn("assistant", (ServerTool("anthropic", "call", {}, "search"),)), key="k")
    with pytest.raises(InputError, match="a different turn has the key"):
        history.append(Turn("assistant", (ServerTool("anthropic", "result", {}, "search"),)), key="k")
    history.append(Turn("assistant", (ToolCall("a", "f", {"x": 1, "y": 2}),)), key="c")
    assert history.append(Turn("assistant", (ToolCall("a", "f", {"y": 2, "x": 1}),)), key="c").key == "c"


def test_a_kept_turn_without_an_issuer_gets_none_when_it_is_loaded() -> None:
    history = History()
    history.append(Turn("assistant", (Text("hi"),)))
    assert History(history.conversation, provider="openai").turns == history.turns


def test_what_an_earlier_turn_carries_takes_the_results_with_its_id() -> None:
    early = history_of(results(("x", "early")), user())
    removed = Interaction(ToolCall("hist_tool_c", "read", metadata=ToolMetadata(raw_id="x")), "gone", 0)
    early.append(Turn("user", (Text("on"),), metadata=TurnMetadata(removed=(removed,))))
    assert answers(early) == [("x", "early")]
    assert early.ledger == Ledger.of(early.turns) == History(load(dump(early.conversation))).ledger


def test_a_guess_beside_a_sure_result_is_made_anew() -> None:
    history = history_of(assistant("a", "b"), results(("a", "of a")))
    call_id = history.turns[0].calls[0].id
    forged = ToolResult(call_id, "who?", metadata=ToolMetadata(raw_id="zzz", matched_by="position"))
    history.append(Turn("tool", (forged,)))
    assert answers(history) == [("a", "of a"), ("b", "who?")]


@pytest.mark.parametrize(
    "target", ["anthropic", "openai", "openai_responses", "gemini", "mistral", "bedrock", "cohere"]
)
@pytest.mark.parametrize("is_reloaded", [False, True])
def test_R_004_17_R_004_T4_a_result_whose_call_was_pruned_stays_a_result_and_the_call_is_written_again(
    target: str, is_reloaded: bool
) -> None:
    history = History(provider="openai")
    history.append(Turn("user", (Text("What is in a.txt?"),)))
    history.append(Turn("assistant", (ToolCall("call_0", "read", {"path": "a.txt"}),)))
    history.append(Turn("tool", (ToolResult("call_0", "the words of a.txt"),)))
    history.append(Turn("user", (Text("And now?"),)))
    history.prune(history.turns[1].key)
    assert [(entry.action, len(entry.call_ids)) for entry in history.report] == [("compressed", 1)]
    if is_reloaded:
        history = History(load(dump(history.conversation)), provider="openai")
    assert [found.status for found in history.ledger] == ["complete"]
    out = request_for(history, target=target, model="m")
    assert out.data.count(b"the words of a.txt") == 1
    assert out.report.ids is not None
    assert len(out.report.ids.calls) == len(out.report.ids.results) == 1
    assert out.data.count(b"a.txt") == 3  # the question, the arguments that the ledger has, the result
    (entry,) = [entry for entry in out.report if entry.call_ids]
    assert entry.action == "added"
    assert "restored with its arguments" in entry.reason
    assert lint(out.data, target) == ()

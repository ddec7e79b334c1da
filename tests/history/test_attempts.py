"""Attempts are transactions: only one that was committed reaches the history."""

from __future__ import annotations

import pytest

from toolglot import Attempt, Failure, History, HistoryError, Reply, Text, ToolCall, Turn, request_for
from toolglot.conversation.events import BlockEnded, BlockStarted, Failed, Finished, InputDelta, Started, TextDelta
from toolglot.conversation.reply_events import of_block, of_reply

CALL = ToolCall("call_1", "run", {"command": "ls"})
GOOD = Reply(Turn("assistant", (Text("I look."), CALL)), "tool_calls", id="r", model="m")


def history() -> History:
    made = History(provider="openai")
    made.append(Turn("user", (Text("hi"),)))
    return made


def test_K1_a_failed_try_leaves_nothing_and_the_second_is_the_only_turn() -> None:
    kept = history()
    first = Attempt(kept, provider="openai")
    first.add([Started("r0"), *of_block(Text("Half")), *of_block(CALL), Failed(Failure("rate_limit", "slow down"))])
    with pytest.raises(HistoryError, match="slow down"):
        first.commit()
    entry = first.discard()
    second = Attempt(kept, provider="openai")
    second.add(of_reply(GOOD))
    second.commit()
    assert len(kept) == 2
    assert len(kept.ledger) == 1
    assert "slow down" in entry.reason
    assert "4 characters of text, 1 calls (run)" in entry.reason
    assert entry in kept.report.entries


def test_what_a_try_showed_is_known_while_it_is_under_way() -> None:
    attempt = Attempt(history(), provider="openai")
    assert not attempt.shown
    assert str(attempt.shown) == "nothing"
    attempt.add([Started(), BlockStarted(Text("")), TextDelta("Hal")])
    assert attempt.shown.text == "Hal"
    assert attempt.reply.stop is None
    with pytest.raises(HistoryError, match="not complete"):
        attempt.commit()


def test_a_try_is_committed_or_discarded_once() -> None:
    attempt = Attempt(history(), provider="openai")
    attempt.add_reply(GOOD)
    attempt.commit()
    for again in (attempt.commit, attempt.discard, lambda: attempt.add([])):
        with pytest.raises(HistoryError, match="committed already"):
            again()


def test_leaving_a_try_open_discards_it() -> None:
    kept = history()
    with Attempt(kept, provider="openai"):
        pass
    with pytest.raises(KeyError), Attempt(kept, provider="openai"):
        raise KeyError
    assert len(kept) == 1
    assert [entry.action for entry in kept.report] == ["dropped", "dropped"]
    assert "KeyError" in kept.report.entries[-1].reason


def test_F1_a_call_that_was_cut_is_in_the_history_as_never_run() -> None:
    kept = history()
    attempt = Attempt(kept, provider="openai")
    cut = ToolCall("call_9", "run", raw_input='{"comm')
    attempt.add([Started("r"), BlockStarted(ToolCall("call_9", "run")), InputDelta('{"comm')])
    attempt.add([BlockEnded(cut, True), Finished("length")])
    attempt.commit()
    (interaction,) = kept.ledger
    assert interaction.status == "cancelled"
    assert interaction.result is not None
    assert "cut off" in interaction.result.text
    assert not kept.ledger.pending


def test_the_issuer_is_the_one_who_answered() -> None:
    kept = history()
    attempt = Attempt(kept, provider="anthropic", model="claude-x")
    attempt.add_reply(GOOD)
    turn = attempt.commit(key="k")
    assert turn.issuer is not None
    assert (turn.issuer.provider, turn.issuer.model, turn.key) == ("anthropic", "claude-x", "k")


def test_K2_the_attempt_after_an_interrupted_one_sends_the_same_request() -> None:
    kept = history()
    before = request_for(kept, target="anthropic", model="claude-opus-5").data
    attempt = Attempt(kept, provider="anthropic")
    attempt.add([Started("r"), BlockStarted(Text("")), TextDelta("I will"), Failed(Failure("overloaded", "busy"))])
    attempt.discard()
    assert request_for(kept, target="anthropic", model="claude-opus-5").data == before
    assert request_for(kept, target="openai", model="gpt-4.1").body["messages"] == [{"role": "user", "content": "hi"}]

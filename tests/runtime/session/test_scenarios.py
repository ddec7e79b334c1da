"""The five scenarios of seed 004, each through History, render, encode and referee, for every target.

Manual switch after a tool turn; round-robin over providers each turn; failover after a 429; cancel, then switch;
compress, then switch. None may end in a request that the next provider refuses, and no message is lost.
"""

from __future__ import annotations

import pytest

from support.conversations.broken_conversations import TARGETS
from support.conversations.provider_histories import answering, calling, raw_id, request_of, user
from support.translate.conversion_checks import Target, every_target
from toolglot import History, Policy, Text, ToolResult, Turn, convert_error, profiles

MISSING = Policy().missing_result
SOURCES = ["anthropic", "openai", "openai_responses", "gemini", "kimi", "mistral", "bedrock", "deepseek", "ollama"]
MODELS = dict(reversed(TARGETS))
every_source = pytest.mark.parametrize("source", SOURCES)


def play(history: History, provider: str, numbers: tuple[int, ...], *, text: str = "") -> None:
    """A turn of a provider's, bound to it until its tools are done."""
    flight = history.begin_turn(provider)
    flight.append(calling(profiles.resolve(provider), *numbers, text=text))
    pending_calls = [(found.id, found.call.arguments or {}) for found in flight.pending]
    history.record(*(ToolResult(id, f"printed {arguments['n']}.") for id, arguments in pending_calls))
    flight.finish()


def assert_answered(history: History, target: Target, count: int) -> None:
    parts = request_of(history, target).parts
    assert {n: f"printed {n}." in text for n, text in parts.answers().items()} == dict.fromkeys(range(count), True)
    assert MISSING not in parts.everything


@every_target
@every_source
@pytest.mark.parametrize("count", [1, 2, 6])
def test_scenario_a_manual_switch_after_a_tool_turn(target: Target, source: str, count: int) -> None:
    history = History(provider=source)
    history.append(user("go"))
    play(history, source, tuple(range(count)), text="I look.")
    history.switch(target[0])
    assert_answered(history, target, count)
    history.append(Turn("assistant", (Text("Done."),), issuer=None), provider=target[0])
    history.append(user("thanks"))
    assert_answered(history, target, count)
    assert "I look." in request_of(history, target).parts.everything


def test_scenario_round_robin_over_every_provider_each_turn() -> None:
    history = History()
    number = 0
    for round_ in range(2):
        for target in TARGETS:
            history.append(user(f"question {round_} {target[0]}"))
            history.switch(target[0])
            request = request_of(history, target)
            assert {n: f"printed {n}." in text for n, text in request.parts.answers().items()} == dict.fromkeys(
                range(number), True
            )
            size = (1, 2, 6)[number % 3]
            play(history, target[0], tuple(range(number, number + size)))
            number += size
            assert_answered(history, target, number)
    assert not history.ledger.pending


@every_target
@every_source
def test_scenario_failover_to_another_family_after_a_429(target: Target, source: str) -> None:
    history = History(provider=source)
    history.append(user("go"))
    play(history, source, (0, 1))
    before = request_of(history, (source, MODELS[source]))
    failure = convert_error(429, {"error": {"message": "Rate limit", "code": 429}}, source=source, target=target[0])
    assert failure.failure.retryable
    length = len(history)
    history.switch(target[0])
    assert_answered(history, target, 2)
    assert len(history) == length
    assert request_of(history, (source, MODELS[source])).data == before.data
    play(history, target[0], (2,))
    assert_answered(history, target, 3)


@every_target
@every_source
@pytest.mark.parametrize("answered", [0, 1, 5])
def test_scenario_cancel_then_switch_then_a_late_result(target: Target, source: str, answered: int) -> None:
    history = History(provider=source)
    history.append(user("go"))
    flight = history.begin_turn(source)
    flight.append(calling(source, *range(6)))
    made = flight.pending
    if answered:
        history.record(*(ToolResult(found.id, f"printed {n}.") for n, found in enumerate(made[:answered])))
    history.switch(target[0])
    flight.cancel("Stopped by the user.")
    assert history.target == profiles.resolve(target[0])
    history.append(user("something else"))
    request = request_of(history, target)
    for number, text in request.parts.answers().items():
        assert ("printed" in text) == (number < answered)
        assert ("Stopped by the user." in text) == (number >= answered)
    history.record(ToolResult(made[5].id, "printed too late."))
    history.append(user("and?"))
    request = request_of(history, target)
    assert "Stopped by the user." in request.parts.answers()[5]
    (late,) = [one for one in request.parts if "printed too late." in one.text]
    assert late.kind == "text"
    assert history.ledger[made[5].id].status == "cancelled"


@every_target
@every_source
def test_scenario_compress_then_switch(target: Target, source: str) -> None:
    history = History(provider=source)
    for number in range(0, 6, 2):
        history.append(user(f"question {number}"))
        play(history, source, (number, number + 1))
        history.append(Turn("assistant", (Text(f"answer {number}"),)), provider=source)
    history.append(user("and now?"))
    whole = request_of(history, target)
    for turn in history.turns[1:]:
        cut = history.fork()
        cut.compress(summary="Earlier: files were read.", before=turn.key)
        cut.switch(target[0])
        request = request_of(cut, target)
        assert {n: f"printed {n}." in text for n, text in request.parts.answers().items()} == dict.fromkeys(
            request.parts.answers(), True
        )
        assert MISSING not in request.parts.everything
        assert "Earlier: files were read." in request.parts.everything
        kept = [call.id for call in request.parts.calls if not call.id.startswith("#")]
        assert kept == [call.id for call in whole.parts.calls][len(whole.parts.calls) - len(kept) :]
        assert len(cut.ledger) == len(history.ledger)


@every_target
def test_scenario_compress_while_a_call_is_pending_then_switch_then_its_result(target: Target) -> None:
    history = History(provider="openai")
    history.append(user("one"))
    play(history, "openai", (0, 1))
    history.append(user("two"))
    history.append(calling("openai", 2, 3))
    history.record(ToolResult(history.ledger.pending[0].id, "printed 2."))
    history.compress(summary="Earlier: one.")
    request = request_of(history, target)
    assert "printed 2." in request.parts.answers()[2]
    assert MISSING in request.parts.answers()[3]
    history.record(ToolResult(history.ledger.pending[0].id, "printed 3."))
    assert "printed 3." in request_of(history, target).parts.answers()[3]


@every_target
def test_scenario_a_crash_then_a_restart_elsewhere(target: Target) -> None:
    history = History(provider="kimi")
    history.append(user("go"))
    history.append(calling("kimi", 0, 1))
    history.append(answering("kimi", 0))
    restarted = History(history.conversation, provider=target[0])
    request = request_of(restarted, target)
    assert "printed 0." in request.parts.answers()[0]
    assert MISSING in request.parts.answers()[1]
    restarted.append(Turn("tool", (ToolResult(raw_id("kimi", 1), "printed 1."),)))
    assert_answered(restarted, target, 2)

"""Seeds 001 and 004: canonical ids at the edge of every provider, and a transcript that is valid whatever happened."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from support.conversations.provider_histories import answering, calling, raw_id, request_of, user
from support.translate.conversion_checks import CLAUDE, GPT, KIMI, MISTRAL, RESPONSES, Target, every_target
from toolglot import (
    History,
    Issuer,
    Ledger,
    Options,
    Policy,
    Reasoning,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    dump,
    load,
    profiles,
)
from toolglot.protocols.base import codec
from toolglot.render import render

MISSING = Policy().missing_result


def plain(*, ids: tuple[str, ...] = ("call_a", "call_b"), provider: str = "openai") -> History:
    history = History(provider=provider)
    history.append(user("go"))
    history.append(Turn("assistant", tuple(ToolCall(id, "read", {"n": n}) for n, id in enumerate(ids))))
    history.append(Turn("tool", tuple(ToolResult(id, f"printed {n}.") for n, id in enumerate(ids))))
    return history


def suffixes(history: History) -> list[str]:
    return [found.id.removeprefix("hist_tool_") for found in history.ledger]


# --- seed 001 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "prefix"),
    [(GPT, "call_"), (RESPONSES, "call_"), (CLAUDE, "toolu_")],
    ids=["R_001_8", "R_001_9", "R_001_10"],
)
def test_R_001_8_R_001_9_R_001_10_the_canonical_suffix_under_the_prefix_of_the_target(
    target: Target, prefix: str
) -> None:
    history = plain(provider="kimi", ids=("functions.read:0", "functions.read:1"))
    parts = request_of(history, target).parts
    assert [call.id for call in parts.calls] == [prefix + suffix for suffix in suffixes(history)]
    assert [result.id for result in parts.results] == [call.id for call in parts.calls]


def test_R_001_9_call_id_of_call_and_output_are_equal_and_no_item_has_an_id() -> None:
    items = request_of(plain(provider="anthropic"), RESPONSES).body["input"]
    assert [item["call_id"] for item in items[1:3]] == [item["call_id"] for item in items[3:]]
    assert not any("id" in item for item in items)


def test_R_001_11_R_004_13_kimi_ids_follow_the_order_of_the_calls_and_survive_compression() -> None:
    history = plain()
    history.append(calling("anthropic", 7, 8, name="write"))
    history.append(answering("anthropic", 7, 8))
    before = [call.id for call in request_of(history, KIMI).parts.calls]
    assert before == ["functions.read:0", "functions.read:1", "functions.write:2", "functions.write:3"]
    history.compress(summary="Two files were read.", before=history.turns[3].key)
    assert [call.id for call in request_of(history, KIMI).parts.calls] == before[2:]
    history.append(calling("openai", 9))
    history.append(answering("openai", 9))
    assert [call.id for call in request_of(history, KIMI).parts.calls] == [*before[2:], "functions.read:4"]


def test_R_001_12_R_004_14_mistral_ids_are_nine_alphanumerics_distinct_and_stable() -> None:
    history = History(provider="openai")
    for number in range(300):
        history.extend([user(f"{number}"), calling("openai", number, thinking=""), answering("openai", number)])
    ids = [call.id for call in request_of(history, MISTRAL).parts.calls]
    assert len(set(ids)) == 300
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in ids)
    history.extend([user("more"), calling("openai", 300, thinking=""), answering("openai", 300)])
    assert [call.id for call in request_of(history, MISTRAL).parts.calls][:300] == ids
    again = History(load(dump(history.conversation)))
    assert [call.id for call in request_of(again, MISTRAL).parts.calls][:300] == ids


@every_target
def test_R_001_16_what_was_canonical_stays_and_renders_the_same(target: Target) -> None:
    history = plain()
    again = History(history.conversation)
    assert [found.id for found in again.ledger] == [found.id for found in history.ledger]
    assert request_of(again, target).data == request_of(history, target).data


@every_target
def test_R_001_17_legacy_ids_are_paired_in_their_turn_on_every_target(target: Target) -> None:
    history = plain(ids=("hist_tool_functions.read:0", "hist_tool_", "hist_tool_a b"))
    parts = request_of(history, target).parts
    assert parts.answers() == {n: parts.results[n].text for n in range(3)}
    assert all(f"printed {n}." in parts.results[n].text for n in range(3))


@every_target
def test_R_001_18_R_004_15_missing_ids_are_made_without_clock_or_randomness(target: Target) -> None:
    first, second = (request_of(plain(ids=("", "", "")), target) for _ in range(2))
    assert first.data == second.data
    assert len({call.id for call in first.parts.calls}) == 3


@every_target
@pytest.mark.parametrize("provider", ["kimi", "anthropic", "openai", "mistral", "gemini", "bedrock"])
def test_R_001_19_a_switch_from_any_provider_gives_safe_ids(target: Target, provider: str) -> None:
    history = History(provider=provider)
    for number in range(0, 6, 2):
        history.extend([user("go"), calling(provider, number, number + 1), answering(provider, number, number + 1)])
    for policy in ("reversible", "canonical"):
        request = request_of(history, target, policy=Policy(ids=policy))
        rules = profiles.get(*target).ids
        assert all(re.fullmatch(rules.pattern, call.id) for call in request.parts.calls if not call.id.startswith("#"))
        assert {n: f"printed {n}." in text for n, text in request.parts.answers().items()} == dict.fromkeys(
            range(6), True
        )


def test_R_001_19_kimi_to_anthropic_and_back() -> None:
    history = History(provider="kimi")
    history.extend([user("go"), calling("kimi", 0, 1), answering("kimi", 0, 1)])
    assert all(re.fullmatch(r"toolu_[A-Za-z0-9_-]{24}", call.id) for call in request_of(history, CLAUDE).parts.calls)
    assert [call.id for call in request_of(history, KIMI).parts.calls] == ["functions.read:0", "functions.read:1"]


@every_target
def test_R_001_4_R_001_7_ids_do_not_depend_on_the_position_of_a_turn(target: Target) -> None:
    history = plain()
    history.extend([user("and"), calling("openai", 5, thinking=""), answering("openai", 5), user("so?")])
    last = request_of(history, target).parts.calls[-1].id
    history.prune(history.turns[0].key)
    assert request_of(history, target).parts.calls[-1].id == last


# --- seed 004: the worked example ---------------------------------------------------------------------


def worked_example(provider: str = "openai") -> History:
    """Thinking, one call and its result; thinking, five calls and one result; thinking, text."""
    history = History(provider=provider)
    history.append(user("go"))
    history.append(calling(provider, 1, thinking="first"))
    history.append(answering(provider, 1))
    history.append(calling(provider, 2, 3, 4, 5, 6, thinking="second"))
    history.append(
        answering(provider, 3)
        if raw_id(provider, 3)
        else Turn("tool", (ToolResult(canonical(history, 2), "printed 3."),))
    )
    history.append(Turn("assistant", (Thinking("third"), Text("Done."))))
    history.append(user("thanks"))
    return history


def canonical(history: History, index: int) -> str:
    return [found.id for found in history.ledger][index]


@every_target
@pytest.mark.parametrize("provider", ["openai", "anthropic", "kimi", "mistral", "gemini", "deepseek"])
def test_R_004_16_R_004_12_the_worked_example_is_whole_on_every_target(target: Target, provider: str) -> None:
    history = worked_example(provider)
    request = request_of(history, target)
    answers = request.parts.answers()
    assert list(answers) == [1, 2, 3, 4, 5, 6]
    assert {n for n, text in answers.items() if MISSING in text} == {2, 4, 5, 6}
    assert "printed 1." in answers[1]
    assert "printed 3." in answers[3]
    assert [call.id for call in request.parts.calls] == [result.id for result in request.parts.results]
    assert "Done." in request.parts.everything
    added = [entry for entry in request.made.entries if entry.action == "added" and "no result" in entry.reason]
    assert [entry.call_ids for entry in added] == [(canonical(history, index),) for index in (1, 3, 4, 5)]
    assert {entry.fault for entry in added} == {"canonical"}


@pytest.mark.parametrize(
    ("target", "pattern"),
    [
        (GPT, r"call_[A-Za-z0-9_-]{24}"),
        (CLAUDE, r"toolu_[A-Za-z0-9_-]{24}"),
        (KIMI, r"functions\.read:[0-5]"),
        (MISTRAL, r"[A-Za-z0-9]{9}"),
    ],
)
def test_R_004_16_the_projection_example_of_the_seed(target: Target, pattern: str) -> None:
    parts = request_of(worked_example("deepseek"), target).parts
    assert all(re.fullmatch(pattern, call.id) for call in parts.calls)
    assert len({call.id for call in parts.calls}) == 6


@every_target
def test_R_004_16_synthetics_of_a_render_never_enter_the_ledger(target: Target) -> None:
    history = worked_example()
    before = dump(history.conversation)
    request_of(history, target)
    assert [found.status for found in history.ledger] == ["complete", "pending", "complete", *["pending"] * 3]
    assert dump(history.conversation) == before
    history.append(answering("openai", 2))
    assert "printed 2." in request_of(history, target).parts.answers()[2]


# --- seed 004: invariants -----------------------------------------------------------------------------


@every_target
def test_R_004_1_a_switch_in_flight_applies_to_the_next_assembly_only(target: Target) -> None:
    history = History(provider="openai")
    history.append(user("go"))
    open_turn = history.begin_turn("openai")
    open_turn.append(calling("openai", 0))
    history.switch(target[0])
    assert history.target == "openai"
    open_turn.append(answering("openai", 0))
    open_turn.finish()
    assert history.target == profiles.resolve(target[0])
    assert request_of(history, target).parts.answers()[0].endswith("printed 0.")


@every_target
def test_R_004_2_R_004_3_R_004_4_R_004_5_results_refer_to_calls_once_and_are_next_to_them(target: Target) -> None:
    history = History(provider="openai")
    history.append(user("go"))
    history.append(calling("openai", 0, 1, 2))
    history.append(user("hurry"))
    history.append(answering("openai", 2, 0))
    history.append(answering("openai", 2))
    history.append(Turn("tool", (ToolResult("never_called", "orphan"),)))
    history.append(user("so?"))
    request = request_of(history, target)
    assert {n: MISSING in text for n, text in request.parts.answers().items()} == {0: False, 1: True, 2: False}
    assert "orphan" in request.parts.everything
    assert not any("orphan" in result.text for result in request.parts.results)


@every_target
def test_R_004_7_R_004_21_thinking_may_be_kept_dropped_or_switched_without_a_change_of_pairs(target: Target) -> None:
    history = worked_example("anthropic")
    profile = profiles.get(*target)
    pairs = []
    for options in (
        Options(),
        Options(reasoning=Reasoning("on", budget_tokens=2048)),
        Options(reasoning=Reasoning("off")),
    ):
        made = render(replace(history.conversation, options=options, model=target[1]), profile)
        pairs.append([result.call_id for turn in made.conversation.turns for result in turn.results])
    assert pairs[0] == pairs[1] == pairs[2]


def test_R_004_8_a_codec_infers_nothing_a_broken_conversation_is_written_as_it_is() -> None:
    turns = (user("go"), Turn("assistant", (ToolCall("call_1", "read", {}),)), user("so?"))
    body = codec("openai_chat").request.encode(replace(History().conversation, turns=turns), profiles.get(*GPT))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


@every_target
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ToolResult("call_0", "x", error="boom", is_complete=True), "x"),
        (ToolResult("call_0", None, error="boom"), "boom"),
        (ToolResult("call_0", None, is_complete=True), ""),
        (ToolResult("call_0", None, result={"a": 1}), ""),
        (ToolResult("call_0", ""), ""),
        (ToolResult("call_0", "partly", is_complete=False), "partly"),
    ],
)
def test_R_004_10_whatever_is_known_of_a_completion_is_rendered_as_one_result(
    target: Target, result: ToolResult, expected: str
) -> None:
    history = History(provider="openai")
    history.extend([user("go"), calling("openai", 0), Turn("tool", (result,)), user("so?")])
    (answer,) = request_of(history, target).parts.results
    assert expected in answer.text
    assert MISSING not in answer.text or history.ledger.pending


@every_target
def test_R_004_11_a_completion_that_is_written_again_changes_nothing(target: Target) -> None:
    history = plain()
    before = request_of(history, target)
    history.append(Turn("tool", (ToolResult("call_a", "printed 0."), ToolResult("call_b", "printed 1."))))
    assert request_of(history, target).parts.results == before.parts.results


@every_target
def test_R_004_T2_a_real_completion_replaces_a_synthetic_one(target: Target) -> None:
    history = History(provider="openai")
    history.extend([user("go"), calling("openai", 0)])
    history.append(Turn("tool", (ToolResult("call_0", "made up", is_error=True, synthetic="crash"),)))
    history.append(Turn("tool", (ToolResult("call_0", "real"),)))
    request = request_of(history, target)
    assert "real" in request.parts.results[0].text
    assert "made up" not in request.parts.everything


@every_target
def test_R_004_T3_a_late_result_after_a_cancel_is_text_and_the_cancel_stays(target: Target) -> None:
    history = History(provider="openai")
    history.extend([user("go"), calling("openai", 0, 1)])
    history.cancel(*(found.id for found in history.ledger.pending), reason="Cancelled.")
    history.append(user("something else"))
    history.append(answering("openai", 0))
    history.append(user("so?"))
    request = request_of(history, target)
    assert all("Cancelled." in result.text for result in request.parts.results)
    (late,) = [one for one in request.parts if "printed 0." in one.text]
    assert late.kind == "text"
    assert "Late result" in late.text
    assert "late" in request.reasons
    assert [found.status for found in history.ledger] == ["cancelled", "cancelled"]


@every_target
def test_R_004_17_a_pair_of_which_one_side_was_cut_is_whole_or_gone(target: Target) -> None:
    whole = plain()
    whole.extend([user("and"), calling("openai", 5, 6, thinking=""), answering("openai", 5, 6), user("so?")])
    for turn in whole.turns:
        if turn.role == "user" and turn is whole.turns[-1]:
            continue
        cut = whole.fork()
        cut.prune(turn.key)
        request = request_of(cut, target)
        known = {found.call.arguments["n"] for found in cut.ledger if found.call.arguments}
        assert set(request.parts.answers()) <= known
        assert all(MISSING not in text for text in request.parts.answers().values())


@every_target
def test_R_004_19_diagnostics_list_ids_decisions_reasons_and_the_format(target: Target) -> None:
    history = worked_example("kimi")
    request = request_of(history, target)
    ids = request.made.seen_ids()
    assert list(ids.canonical) == [found.id for found in history.ledger]
    assert len(ids.calls) == len(ids.results) == 6
    assert ids.format
    assert {"added"} <= {entry.action for entry in request.made.entries}
    assert all(entry.reason and entry.target == request.made.entries[0].target for entry in request.made.entries)


def test_R_004_19_the_three_faults_are_distinguished() -> None:
    history = History(provider="openai")
    history.append(user("go"))
    history.append(Turn("assistant", (Thinking("hm", "signed"), ToolCall("call_0", "files/read", {}))))
    faults = {entry.fault for entry in request_of(history, CLAUDE).made.entries}
    assert {"canonical", "projection", "loss"} <= faults


@every_target
def test_R_004_20_calls_in_a_tool_turn_are_the_assistants_and_reported(target: Target) -> None:
    history = History(provider="gemini")
    history.append(user("go"))
    mixed = (ToolCall("c0", "read", {"n": 0}), ToolResult("c0", "printed 0."), ToolCall("c1", "read", {"n": 1}))
    history.append(Turn("tool", mixed, issuer=Issuer("gemini")))
    history.append(Turn("tool", (ToolResult("c1", "printed 1."),), issuer=Issuer("gemini")))
    request = request_of(history, target)
    assert {n: f"printed {n}." in text for n, text in request.parts.answers().items()} == {0: True, 1: True}
    assert all(call.speaker == "assistant" for call in request.parts.calls)
    assert "blocks of another speaker" in request.reasons


@every_target
def test_R_004_20_circular_arguments_are_cut_and_reported(target: Target) -> None:
    circle: dict[str, Any] = {"n": 0}
    circle["self"] = circle
    history = History(provider="openai")
    history.append(user("go"))
    history.append(Turn("assistant", (ToolCall("call_0", "read", circle),)))
    history.append(answering("openai", 0))
    request = request_of(history, target)
    assert request.parts.calls[0].value["n"] == 0
    assert any(entry.action == "cloned" for entry in history.report)


@every_target
def test_R_004_21_unchanged_state_renders_the_same_and_the_ledger_comes_from_the_transcript(
    target: Target,
) -> None:
    history = worked_example("mistral")
    again = History(load(dump(history.conversation)))
    assert request_of(history, target).data == request_of(again, target).data == request_of(history, target).data
    assert Ledger.of(again.turns) == history.ledger


@every_target
def test_R_004_6_two_calls_with_one_raw_id_in_two_turns_have_two_ids(target: Target) -> None:
    history = History(provider="openai")
    for number in range(3):
        history.append(user("go"))
        history.append(Turn("assistant", (ToolCall("call_0", "read", {"n": number}),)))
        history.append(Turn("tool", (ToolResult("call_0", f"printed {number}."),)))
    parts = request_of(history, target).parts
    assert {n: f"printed {n}." in text for n, text in parts.answers().items()} == dict.fromkeys(range(3), True)

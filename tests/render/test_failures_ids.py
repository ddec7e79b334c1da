"""Failures of class B: ids of calls that another provider made, as clients send them back, for every target.

Whatever an id looks like, each call comes out with a unique one that the target accepts, its result with
the same one, and the same again at the next request.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from support.conversations.broken_conversations import TARGETS
from support.protocols.scripted_requests import PROTOCOLS, A, R, Step, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GPT,
    KIMI,
    MISTRAL,
    RESPONSES,
    Fields,
    Target,
    assert_forwarded,
    assert_reported,
    convert_checked,
    every_target,
    parts_of,
    protocol_of,
)
from toolglot import profiles, repair

LONG = "call_" + "x" * 444 + "|"
KINDS: dict[str, list[str]] = {
    "kimi": ["functions.Bash:0", "functions.Bash:1", "functions.read:2"],
    "compound": ["call_abc|fc_abc", "call_abc|fc_abd", "call_abc"],
    "alike": ["a:b", "a.b", "a-b", "a_b", "ab"],
    "long": [LONG + "1", LONG + "2", "x" * 41, "x" * 65],
    "prefixes": ["toolu_a", "call_a", "fc_a", "hist_tool_a", "a"],
    "smuggled": ["call_1__thought__c2ln", "call_2__thought__c2ln", "call_1"],
    "odd": ["é", "你好", "a b", "\n", "null", "0"],
}


def numbered(ids: list[str]) -> list[Step]:
    """A call for each id, in one turn, answered in the opposite order; then each again in a turn of its own."""
    calls = A(*(call(id, arguments={"n": number}) for number, id in enumerate(ids)))
    return [
        U("go"),
        calls,
        *reversed([R(id, f"printed {number}.") for number, id in enumerate(ids)]),
        A(text="so"),
        U("on"),
    ]


def assert_legal(ids: list[str], target: Target) -> None:
    rules = profiles.get(*target).as_known().ids
    assert len(set(ids)) == len(ids)
    for id in ids:
        assert re.fullmatch(rules.pattern, id), id
        assert len(id) <= rules.max_length


@every_target
@pytest.mark.parametrize("kind", KINDS)
def test_B1_B2_B3_B9_foreign_ids_come_out_legal_distinct_and_paired(target: Target, kind: str) -> None:
    ids = KINDS[kind]
    for source in PROTOCOLS:
        out = convert_checked(request_body(source, *numbered(ids)), source, target)
        parts = parts_of(out, target)
        assert {number: f"printed {number}." in text for number, text in parts.answers().items()} == dict.fromkeys(
            range(len(ids)), True
        )
        assert_legal([made.id for made in parts.calls], target)
        is_native = source == protocol_of(target)  # a legal id of the same protocol stays, whatever it looks like
        assert is_native or "__thought__" not in out.data.decode()


@every_target
def test_B1_ids_stay_when_the_history_grows_and_in_a_compaction_request(target: Target) -> None:
    ids = [id for kind in KINDS.values() for id in kind]
    turns = [step for number, id in enumerate(dict.fromkeys(ids)) for step in (U(f"{number}"), A(call(id)), R(id, id))]
    short, long = turns[: len(turns) // 2 // 3 * 3], [*turns, U("Summarise.")]
    before = parts_of(convert_checked(request_body("openai_chat", *short), "openai_chat", target), target)
    after = parts_of(convert_checked(request_body("openai_chat", *long, tools=()), "openai_chat", target), target)
    assert [made.id for made in before.calls] == [made.id for made in after.calls][: len(before.calls)]


def test_B1_a_kimi_history_is_safe_for_anthropic_and_its_own_ids_are_forwarded() -> None:
    body = request_body("openai_chat", U(), A(call("functions.Bash:0", "Bash")), R("functions.Bash:0"), model=KIMI[1])
    out = convert_checked(body, "openai_chat", CLAUDE)
    (made,) = parts_of(out, CLAUDE).calls
    assert re.fullmatch(r"toolu_[A-Za-z0-9_-]+", made.id)
    assert_forwarded(request_body("anthropic", U(), A(call("toolu_01A")), R("toolu_01A"), model=CLAUDE[1]), CLAUDE)


def test_B2_two_ids_that_differ_at_character_449_stay_two_on_openai() -> None:
    ids = [LONG + "1", LONG + "2"]
    assert all(len(id) == 451 for id in ids)
    parts = parts_of(
        convert_checked(request_body("openai_chat", *numbered(ids), model=GPT[1]), "openai_chat", GPT), GPT
    )
    assert all(len(made.id) <= 40 for made in parts.calls)
    assert len({made.id for made in parts.calls}) == 2
    assert parts.answers() == {0: "printed 0.", 1: "printed 1."}


@pytest.mark.parametrize("prefix", ["call_abcd", "chatcmpl-", "toolu_01_"])
def test_B3_R_001_12_a_thousand_ids_of_one_prefix_stay_a_thousand_on_mistral(prefix: str) -> None:
    ids = [f"{prefix}{number:04}" for number in range(1000)]
    steps = [step for id in ids for step in (U("go"), A(call(id)), R(id, f"printed {id}"))]
    body = request_body("openai_chat", *steps)
    first, again = (convert_checked(body, "openai_chat", MISTRAL) for _ in range(2))
    parts = parts_of(first, MISTRAL)
    emitted = [made.id for made in parts.calls]
    assert len(set(emitted)) == 1000
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in emitted)
    assert [parts.result_of(made).text for made in parts.calls] == [f"printed {id}" for id in ids]
    assert first.data == again.data
    shorter = parts_of(convert_checked(request_body("openai_chat", *steps[:300]), "openai_chat", MISTRAL), MISTRAL)
    assert [made.id for made in shorter.calls] == emitted[:100]


def test_B3_native_ids_of_mistral_are_kept() -> None:
    steps = [U(), A(call("D681PevKs")), R("D681PevKs"), A(text="so"), U("on")]
    body = request_body("openai_chat", *steps, model=MISTRAL[1])
    body["messages"][1]["content"] = ""
    assert_forwarded(body, MISTRAL)


@pytest.mark.parametrize("source", PROTOCOLS)
def test_B4_R_004_13_kimi_k2_ids_count_over_the_whole_conversation(source: str) -> None:
    steps: list[Step] = []
    for number, names in enumerate((["bash"], ["read", "bash"], ["search"])):
        calls = [call(f"call_{number}_{index}", name) for index, name in enumerate(names)]
        steps += [U("go"), A(*calls), *(R(made.id, f"printed {made.id}", name=made.name) for made in calls)]
    out = convert_checked(request_body(source, *steps), source, KIMI)
    parts = parts_of(out, KIMI)
    expected = ["functions.bash:0", "functions.read:1", "functions.bash:2", "functions.search:3"]
    assert [made.id for made in parts.calls] == expected
    assert [result.id for result in parts.results] == expected
    assert [result.name for result in parts.results] == ["bash", "read", "bash", "search"]
    assert out.report.ids.format == "functions.{name}:{n}"


@pytest.mark.parametrize("source", PROTOCOLS)
def test_B5_a_function_call_made_elsewhere_has_no_item_id(source: str) -> None:
    out = convert_checked(
        request_body(source, U(), A(call("call_abc"), call("call_def")), R("call_abc"), R("call_def")),
        source,
        RESPONSES,
    )
    items = [item for item in out.body["input"] if item.get("type", "").startswith("function_call")]
    assert len(items) == 4
    assert not any("id" in item for item in items)
    assert [item["call_id"] for item in items[:2]] == [item["call_id"] for item in items[2:]]
    if source in ("openai_chat", "openai_responses"):
        assert [item["call_id"] for item in items[:2]] == ["call_abc", "call_def"]


@every_target
@pytest.mark.parametrize("count", [1, 2, 6])
def test_B6_reused_ids_are_separate_calls(target: Target, count: int) -> None:
    for source in PROTOCOLS:
        steps: list[Step] = []
        for turn in range(3):
            made = [call(f"call_{index}", arguments={"n": 10 * turn + index}) for index in range(count)]
            results = [R(one.id, f"printed {one.arguments['n']}.") for one in made]
            steps += [U("go"), A(*made), *results]
        parts = parts_of(convert_checked(request_body(source, *steps), source, target), target)
        assert all(f"printed {number}." in text for number, text in parts.answers().items())
        assert len(parts.calls) == 3 * count


@every_target
def test_B6_one_id_twice_in_one_turn_is_two_calls_answered_in_order(target: Target) -> None:
    for source in PROTOCOLS:
        twice = A(call("call_0", arguments={"n": 0}), call("call_0", arguments={"n": 1}))
        out = convert_checked(
            request_body(source, U(), twice, R("call_0", "printed 0."), R("call_0", "printed 1."), U("on")),
            source,
            target,
        )
        parts = parts_of(out, target)
        assert {n: f"printed {n}." in text for n, text in parts.answers().items()} == {0: True, 1: True}


def hybrid() -> Fields:
    """A Chat message that has its call twice: as a block of Anthropic's and as a tool call."""
    body = request_body("openai_chat", U(), A(call("toolu_1", arguments={"n": 1})), R("toolu_1", "printed 1"), U("on"))
    block = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"n": 1}}
    body["messages"][1]["content"] = [{"type": "text", "text": "I look."}, block]
    return body


@every_target
def test_B6_a_hybrid_message_has_its_call_once(target: Target) -> None:
    out = convert_checked(hybrid(), "openai_chat", target)
    parts = parts_of(out, target)
    assert len(parts.calls) == 1
    assert "printed 1" in parts.results[0].text
    assert "I look." in parts.everything


@every_target
@pytest.mark.parametrize("id", ["", " "])
@pytest.mark.parametrize("count", [1, 2, 6])
def test_B7_R_004_15_calls_without_an_id_are_paired_by_position(target: Target, id: str, count: int) -> None:
    for source in PROTOCOLS:
        calls = A(*(call(id, arguments={"n": number}) for number in range(count)))
        steps = [U(), calls, *(R(id, f"printed {number}.") for number in range(count)), U("on")]
        out = convert_checked(request_body(source, *steps), source, target)
        parts = parts_of(out, target)
        assert {n: f"printed {n}." in text for n, text in parts.answers().items()} == dict.fromkeys(range(count), True)
        assert_legal([made.id for made in parts.calls], target)
        assert out.data == convert_checked(request_body(source, *steps), source, target).data
        assert_reported(out, "no id says which call the result answers", action="matched")


@pytest.mark.parametrize("missing", ["null", "absent"])
def test_B7_a_chat_call_whose_id_is_null_or_absent_is_paired_by_position(missing: str) -> None:
    body = request_body(
        "openai_chat", U(), A(call(None), call(None, "write")), R(None, "printed 0"), R(None, "printed 1"), U("on")
    )
    if missing == "absent":
        for made in body["messages"][1]["tool_calls"]:
            del made["id"]
        for message in body["messages"][2:4]:
            del message["tool_call_id"]
    parts = parts_of(convert_checked(body, "openai_chat", KIMI), KIMI)
    assert [made.id for made in parts.calls] == ["functions.read:0", "functions.write:1"]
    assert [parts.result_of(made).text for made in parts.calls] == ["printed 0", "printed 1"]


def reasoning_body(*, ciphertext: bool) -> Fields:
    secret = {"encrypted_content": "gAAAsecret"} if ciphertext else {}
    return {
        "model": RESPONSES[1],
        "store": False,
        "input": [
            {"role": "user", "content": "go"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], **secret},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "printed 1"},
        ],
        "tools": [
            {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
        ],
    }


def test_B8_a_stateless_replay_drops_reasoning_that_is_not_stored_and_its_ids() -> None:
    out = repair(reasoning_body(ciphertext=False), target=RESPONSES[0])
    data = msgspec.json.encode(out.body["input"]).decode()
    assert '"rs_1"' not in data
    assert '"fc_1"' not in data
    assert [item.get("type") for item in out.body["input"]] == [None, "function_call", "function_call_output"]
    assert out.report.entries


def test_B8_reasoning_with_its_ciphertext_is_forwarded_verbatim() -> None:
    assert_forwarded(reasoning_body(ciphertext=True), RESPONSES)


@pytest.mark.parametrize("target", [target for target in TARGETS if target != GPT])
def test_B9_state_in_an_id_stays_out_of_ids(target: Target) -> None:
    id = "call_abc__thought__c2lnbmF0dXJl"
    out = convert_checked(
        request_body("openai_chat", U(), A(call(id)), R(id, "printed"), U("on")), "openai_chat", target
    )
    assert "c2lnbmF0dXJl" not in "".join(made.id for made in parts_of(out, target).calls)
    assert_reported(out, "signature", fault="canonical")


def test_eighteen_hundred_calls_keep_ids_of_their_own() -> None:
    steps = exchange(6)
    for number in range(1, 300):
        steps += [U("on"), *exchange(6, 6 * number)]
    out = convert_checked(request_body("anthropic", U(), *steps), "anthropic", MISTRAL)
    assert len({made.id for made in parts_of(out, MISTRAL).calls}) == 1800


def test_law_4_the_same_ids_in_every_source_order_of_results() -> None:
    ids = ["call_1", "call_2", "call_3"]
    calls = A(*map(call, ids))
    made: list[Any] = []
    for order in (ids, ids[::-1]):
        out = convert_checked(
            request_body("openai_chat", U(), calls, *(R(id, id) for id in order), U("on")), "openai_chat", CLAUDE
        )
        made.append([one.id for one in parts_of(out, CLAUDE).calls])
    assert made[0] == made[1]

"""Failures of class D: thinking, its signatures and what must come back of it, for every target.

A signature goes back to its issuer, byte for byte and in its position, or nowhere. Where a target demands thinking that
is lost, it gets a placeholder that it accepts, or thinking is off for this request, and that is reported.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from support.conversations.broken_conversations import TARGETS
from support.protocols.scripted_requests import PROTOCOLS, A, R, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GEMINI_3,
    GPT,
    KIMI,
    RESPONSES,
    Fields,
    Target,
    assert_forwarded,
    assert_reported,
    convert_checked,
    entries_about,
    every_target,
    parts_of,
    protocol_of,
)
from toolglot import (
    History,
    Issuer,
    Options,
    Reasoning,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    lint,
    profiles,
    repair,
)
from toolglot.protocols.base import codec
from toolglot.render import render

OLD_CLAUDE = ("anthropic", "claude-sonnet-4-5")
SENTINEL = "skip_thought_signature_validator"
ON: Fields = {"type": "enabled", "budget_tokens": 2048}
SECRET = base64.b64encode(b"a signature that only its issuer reads").decode()


def thought(text: str = "hm", signature: str = SECRET) -> Fields:
    return {"type": "thinking", "thinking": text, "signature": signature}


def use(id: str) -> Fields:
    return {"type": "tool_use", "id": id, "name": "read", "input": {"n": 1}}


def answer(id: str) -> Fields:
    return {"type": "tool_result", "tool_use_id": id, "content": f"printed {id}"}


def claude_body(*contents: list[Fields], model: str = OLD_CLAUDE[1], **fields: Any) -> Fields:
    """An Anthropic request: the assistant's contents, each with the results of its calls or a word of the user's."""
    body = request_body("anthropic", U("go"), model=model, **fields)
    body["max_tokens"] = 8000
    for content in contents:
        ids = [block["id"] for block in content if block["type"] == "tool_use"]
        body["messages"].append({"role": "assistant", "content": content})
        content_after: Any = list(map(answer, ids)) or [{"type": "text", "text": "on"}]
        body["messages"].append({"role": "user", "content": content_after})
    return body


# --- D1, D2 -------------------------------------------------------------------------------------------


def test_D1_an_open_tool_loop_without_its_thinking_continues_without_thinking_and_is_reported() -> None:
    body = claude_body([use("toolu_1")], thinking=ON)
    assert any("thinking" in str(found) for found in lint(body, *OLD_CLAUDE))
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert out.body.get("thinking", {"type": "disabled"}) == {"type": "disabled"}
    assert_reported(out, "thinking is off for this request", action="replaced", fault="loss")


@pytest.mark.parametrize("source", ["openai_chat", "openai_responses", "gemini"])
def test_D1_a_foreign_tool_loop_that_requests_thinking_is_accepted_by_claude(source: str) -> None:
    ways: dict[str, Fields] = {
        "openai_chat": {"reasoning_effort": "high"},
        "openai_responses": {"reasoning": {"effort": "high"}},
        "gemini": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 4096}}},
    }
    fields = ways[source]
    out = convert_checked(request_body(source, U(), *exchange(2), **fields), source, OLD_CLAUDE)
    assert out.body.get("thinking", {}).get("type") != "enabled"
    assert out.report.entries


def test_D1_a_closed_loop_may_think() -> None:
    body = claude_body([use("toolu_1")], [{"type": "text", "text": "so"}], thinking=ON)
    assert_forwarded(body, OLD_CLAUDE)


def test_D2_native_interleaved_thinking_is_forwarded_byte_for_byte_and_in_order() -> None:
    interleaved = [thought("one"), use("toolu_1"), thought("two", SECRET[::-1]), use("toolu_2")]
    redacted = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    body = claude_body(interleaved, [redacted, thought("three"), use("toolu_3")], thinking=ON)
    assert_forwarded(body, OLD_CLAUDE)


def test_D2_a_repair_elsewhere_leaves_the_thinking_of_the_latest_turn_as_it_is() -> None:
    body = claude_body([thought("one"), use("toolu_1")], [thought("two"), use("toolu_2")], thinking=ON)
    del body["messages"][2]
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert out.body["messages"][-2] == body["messages"][-2]
    assert out.body["messages"][1] == body["messages"][1]
    assert_reported(out, "has no result", action="added")


# --- D3 -----------------------------------------------------------------------------------------------

OTHERS = [target for target in TARGETS if target[0] != "anthropic"]


@pytest.mark.parametrize("target", OTHERS, ids=["/".join(target) for target in OTHERS])
@pytest.mark.parametrize("position", ["older", "latest", "both"])
@pytest.mark.parametrize("loop", ["open", "closed"])
def test_D3_law_12_a_signature_never_reaches_another_provider(target: Target, position: str, loop: str) -> None:
    first = [thought(), use("toolu_1")] if position != "latest" else [use("toolu_1")]
    second = [thought(), use("toolu_2")] if position != "older" else [use("toolu_2")]
    contents = [first, [{"type": "text", "text": "so"}], second]
    body = claude_body(*contents, *([[{"type": "text", "text": "done"}]] if loop == "closed" else []))
    out = convert_checked(body, "anthropic", target)
    assert SECRET not in out.data.decode()
    assert entries_about(out, "thinking") or entries_about(out, "signature")
    assert len(parts_of(out, target).calls) == 2


@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-opus-4-1"])
@pytest.mark.parametrize("loop", ["open", "closed"])
def test_D3_a_signature_of_another_claude_is_left_out_where_signatures_are_bound_to_the_model(
    model: str, loop: str
) -> None:
    contents = [[thought(), use("toolu_1")], *([[{"type": "text", "text": "done"}]] if loop == "closed" else [])]
    body = claude_body(*contents, model=model, thinking=ON)
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert "model" in profiles.get(*OLD_CLAUDE).reasoning.bound_to
    assert SECRET not in out.data.decode()
    assert msgspec.json.encode(body) != out.data
    assert entries_about(out, "thinking")


def mixed_history(*issuers: Issuer) -> History:
    """A turn of thinking and a call by each issuer, each answered."""
    history = History()
    history.append(Turn("user", (Text("go"),)))
    for number, issuer in enumerate(issuers):
        thinking = Thinking(f"thought {number}", SECRET)
        made = ToolCall(f"call_{number}", "read", {"n": number})
        history.append(Turn("assistant", (thinking, made), issuer=issuer))
        history.append(Turn("tool", (ToolResult(f"call_{number}", f"printed {number}"),)))
    return history


def rendered_body(history: History, target: Target, options: Options = Options()) -> Fields:  # noqa: B008 - immutable
    profile = profiles.get(*target)
    conversation = msgspec.structs.replace(history.conversation, model=target[1], options=options)
    made = render(conversation, profile)
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    assert [str(found) for found in lint(body, *target)] == []
    return body


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("thinks", [True, False])
def test_D3_only_thinking_of_the_same_provider_and_model_is_kept_at_every_position(
    position: int, *, thinks: bool
) -> None:
    own = Issuer("anthropic", model=OLD_CLAUDE[1])
    others = [Issuer("anthropic", model="claude-opus-4-5"), Issuer("minimax", model="MiniMax-M2")]
    issuers = [*others[:position], own, *others[position:]]
    options = Options(reasoning=Reasoning("on", budget_tokens=2048)) if thinks else Options()
    body = rendered_body(mixed_history(*issuers), OLD_CLAUDE, options)
    kept = [one["thinking"] for message in body["messages"] for one in message["content"] if one["type"] == "thinking"]
    assert kept == [f"thought {position}"]
    assert (body.get("thinking", {}).get("type") == "enabled") == (thinks and position == 2)


@pytest.mark.parametrize("signature", ["reasoning_content", '{"id":"rs_1","type":"reasoning"}', ""])
def test_D3_what_others_write_as_a_signature_is_not_sent_to_claude(signature: str) -> None:
    body = claude_body([thought("hm", signature), use("toolu_1")], model="MiniMax-M2")
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert "thinking" not in [block["type"] for block in out.body["messages"][1]["content"]]
    assert out.report.entries


# --- D4, D5, D6 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [{"thinking": {"type": "disabled"}}, {}])
def test_D4_thinking_that_is_off_takes_no_thinking_in_the_final_answer(off: Fields) -> None:
    body = claude_body(**off)
    body["messages"].append({"role": "assistant", "content": [thought(), {"type": "text", "text": "It is"}]})
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert [block["type"] for block in out.body["messages"][-1]["content"]] == ["text"]
    assert out.report.entries


@pytest.mark.parametrize("target", [GEMINI_3, ("vertex", "gemini-3-pro")])
@pytest.mark.parametrize("count", [1, 2, 6])
@pytest.mark.parametrize("source", [source for source in PROTOCOLS if source != "gemini"])
def test_D5_foreign_calls_get_the_sentinel_beside_the_first_call_of_each_turn(
    source: str, count: int, target: Target
) -> None:
    out = convert_checked(request_body(source, U(), *exchange(count), U("on"), *exchange(count, 10)), source, target)
    turns = [content["parts"] for content in out.body["contents"] if content["role"] == "model"]
    for parts in turns:
        calls = [part for part in parts if "functionCall" in part]
        if not calls:
            continue  # a bridge between results and a user
        assert calls[0]["thoughtSignature"] == SENTINEL
        assert all("thoughtSignature" not in part["functionCall"] for part in calls)
        assert all(part.get("thoughtSignature", SENTINEL) == SENTINEL for part in calls)
    assert_reported(out, "placeholder for a lost signature", action="added", fault="loss")


def test_D5_gemini_2_needs_no_sentinel() -> None:
    target = ("gemini", "gemini-2.5-pro")
    assert (
        SENTINEL not in convert_checked(request_body("anthropic", U(), *exchange(2)), "anthropic", target).data.decode()
    )


def gemini_signed(signature: str, second: str | None = None) -> Fields:
    body = request_body("gemini", U(), A(call("c0"), call("c1")), R("c0"), R("c1"))
    body["contents"][1]["parts"][0]["thoughtSignature"] = signature
    if second is not None:
        body["contents"][1]["parts"][1]["thoughtSignature"] = second
    return body


def test_D5_an_issuers_own_signatures_are_untouched() -> None:
    assert_forwarded(gemini_signed(SECRET), GEMINI_3)
    assert_forwarded(gemini_signed(SECRET, SECRET[::-1].replace("=", "")), GEMINI_3)


@every_target
def test_D6_a_signature_of_gemini_goes_nowhere_else(target: Target) -> None:
    if target[0] in ("gemini", "vertex"):
        return
    assert SECRET not in convert_checked(gemini_signed(SECRET), "gemini", target).data.decode()


@pytest.mark.parametrize("target", [GEMINI_3, ("gemini", "gemini-2.5-pro"), ("vertex", "gemini-3-pro")])
def test_D6_what_is_no_signature_is_not_emitted_to_gemini(target: Target) -> None:
    item = json.dumps({"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA"})
    out = convert_checked(claude_body([thought("hm", item), use("toolu_1")]), "anthropic", target)
    assert "rs_1" not in out.data.decode()


# --- D7, D8 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", PROTOCOLS)
@pytest.mark.parametrize("count", [1, 2, 6])
def test_D7_deepseek_gets_reasoning_content_on_every_assistant_message_while_it_thinks(source: str, count: int) -> None:
    target = ("deepseek", "deepseek-reasoner")
    steps = [U(), *exchange(count), A(text="so"), U("on"), *exchange(count, 10)]
    out = convert_checked(request_body(source, *steps), source, target)
    assistants = [message for message in out.body["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in assistants] == [" "] * len(assistants)
    assert_reported(out, "placeholder for lost thinking", action="added", fault="loss")


def test_D7_text_of_foreign_thinking_is_replayed_to_deepseek() -> None:
    target = ("deepseek", "deepseek-reasoner")
    out = convert_checked(claude_body([thought("the plan"), use("toolu_1")]), "anthropic", target)
    (message,) = [message for message in out.body["messages"] if message["role"] == "assistant"]
    assert message["reasoning_content"] == "the plan"


@pytest.mark.parametrize("model", ["deepseek-reasoner", "deepseek-chat"])
def test_D7_native_reasoning_of_deepseek_is_forwarded(model: str) -> None:
    body = request_body("openai_chat", U(), *exchange(2), model=model)
    body["messages"][1]["reasoning_content"] = "the plan"
    assert_forwarded(body, ("deepseek", model))


@pytest.mark.parametrize("source", PROTOCOLS)
def test_D8_a_thinking_kimi_gets_reasoning_content_on_turns_with_calls(source: str) -> None:
    target = ("kimi", "kimi-k2.5")
    out = convert_checked(request_body(source, U(), *exchange(2), A(text="so"), U("on")), source, target)
    calling = [message for message in out.body["messages"] if message.get("tool_calls")]
    assert all(message["reasoning_content"] == " " for message in calling)
    assert_reported(out, "placeholder for lost thinking", action="added")


@pytest.mark.parametrize("model", ["kimi-k2.5", "kimi-k2-0905-preview", "kimi-k2-thinking"])
def test_D8_kimi_gets_one_field_for_thinking(model: str) -> None:
    body = request_body("openai_chat", U(), model=model, thinking={"type": "enabled"}, reasoning_effort="high")
    out = convert_checked(body, "openai_chat", ("kimi", model))
    assert len({"thinking", "reasoning_effort"} & out.body.keys()) <= 1
    assert out.report.entries


# --- D9, D10 ------------------------------------------------------------------------------------------


def reasoning_item(number: int, *, secret: bool = True) -> Fields:
    item: Fields = {"type": "reasoning", "id": f"rs_{number}", "summary": [{"type": "summary_text", "text": "hm"}]}
    return {**item, "encrypted_content": SECRET} if secret else item


def function_item(number: int) -> Fields:
    made = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read"}
    return {**made, "arguments": '{"n":1}'}


def output_item(number: int) -> Fields:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": f"printed {number}"}


def responses_body(*items: Fields, **fields: Any) -> Fields:
    body = request_body("openai_responses", U("go"), model=RESPONSES[1], store=False, **fields)
    body["input"] += items
    return body


def test_D9_a_native_pair_of_reasoning_and_call_is_forwarded() -> None:
    assert_forwarded(responses_body(reasoning_item(1), function_item(1), output_item(1)), RESPONSES)


def test_D9_a_call_that_lost_its_reasoning_loses_its_item_id() -> None:
    items = [reasoning_item(1, secret=False), function_item(1), output_item(1)]
    out = convert_checked(responses_body(*items), "openai_responses", RESPONSES)
    assert [item.get("type") for item in out.body["input"]] == [None, "function_call", "function_call_output"]
    assert "id" not in out.body["input"][1]
    assert_reported(out, "thinking without its signature", action="dropped")


def test_D9_reasoning_that_lost_its_call_goes_too() -> None:
    body = responses_body(reasoning_item(1), {"role": "user", "content": "on"})
    assert lint(body, *RESPONSES)
    out = convert_checked(body, "openai_responses", RESPONSES)
    assert "rs_1" not in out.data.decode()
    assert out.report.entries


def test_D9_D10_another_model_gets_neither_ciphertext_nor_item_ids() -> None:
    items = [reasoning_item(1), function_item(1), output_item(1)]
    body = responses_body(*items)
    out = convert_checked(body, "openai_responses", ("openai_responses", "gpt-5.1"))
    if "model" in profiles.get("openai_responses", "gpt-5.1").reasoning.bound_to:
        assert SECRET not in out.data.decode()
    data = out.data.decode()
    assert ("rs_1" in data) == ("fc_1" in data) == (SECRET in data)


@pytest.mark.parametrize("what", ["account", "endpoint"])
def test_D10_encrypted_reasoning_of_one_account_does_not_reach_another(what: str) -> None:
    issuers = [Issuer("openai_responses", **{what: name, "model": RESPONSES[1]}) for name in ("mine", "yours")]
    history = History()
    history.append(Turn("user", (Text("go"),)))
    profile = profiles.get(*RESPONSES)
    for number, issuer in enumerate(issuers):
        item = {**reasoning_item(number), "encrypted_content": SECRET + str(number)}
        body = responses_body(item, function_item(number), output_item(number))
        call_turn, result_turn = codec(profile.protocol).request.decode(body).turns[-2:]
        history.append(msgspec.structs.replace(call_turn, issuer=issuer))
        history.append(result_turn)
    for number, issuer in enumerate(issuers):
        made = render(history.conversation, profile, destination=issuer)
        body = codec(profile.protocol).request.encode(made.conversation, profile)
        data = msgspec.json.encode(body).decode()
        assert SECRET + str(number) in data
        assert f'"rs_{number}"' in data
        assert SECRET + str(1 - number) not in data
        assert f'"rs_{1 - number}"' not in data
        assert f'"fc_{1 - number}"' not in data
        assert lint(body, *RESPONSES) == ()
        assert any("thinking" in entry.reason for entry in made.entries)


# --- D11, D12, D13 ------------------------------------------------------------------------------------

MARK: Fields = {"cache_control": {"type": "ephemeral"}}


def test_D11_cache_markers_stay_where_anthropic_takes_them() -> None:
    body = claude_body([use("toolu_1")])
    body["messages"][2]["content"][0].update(MARK)
    body["tools"][0].update(MARK)
    assert_forwarded(body, OLD_CLAUDE)


def test_D11_a_cache_marker_on_thinking_is_left_out() -> None:
    body = claude_body([{**thought(), **MARK}, use("toolu_1")], thinking=ON)
    assert any("cache_control" in str(found) or "Extra inputs" in str(found) for found in lint(body, *OLD_CLAUDE))
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert out.body["messages"][1]["content"][0] == thought()
    assert out.report.entries


NO_MARKS = [t for t in TARGETS if protocol_of(t) != "anthropic" and not profiles.get(*t).request.cache_markers]


@pytest.mark.parametrize("target", NO_MARKS, ids=["/".join(target) for target in NO_MARKS])
def test_D11_cache_markers_do_not_reach_targets_without_them(target: Target) -> None:
    body = claude_body([{**thought(), **MARK}, {**use("toolu_1"), **MARK}])
    body["messages"][2]["content"][0].update(MARK)
    body["tools"][0].update(MARK)
    out = convert_checked(body, "anthropic", target)
    assert "cache_control" not in out.data.decode()
    assert_reported(out, "cache_control")


def test_D12_a_forced_tool_while_claude_thinks_is_the_only_one_and_the_choice_is_auto() -> None:
    body = claude_body(thinking=ON, tool_choice={"type": "tool", "name": "write"})
    assert any(
        "tool_choice forces" in str(found) or "Thinking may not" in str(found) for found in lint(body, *OLD_CLAUDE)
    )
    out = convert_checked(body, "anthropic", OLD_CLAUDE)
    assert out.body["tool_choice"] == {"type": "auto"}
    assert [tool["name"] for tool in out.body["tools"]] == ["write"]
    assert_reported(out, "is refused", action="converted")


@every_target
@pytest.mark.parametrize("mode", ["required", "named"])
def test_D12_a_forced_choice_with_thinking_is_fitted_for_every_target(target: Target, mode: str) -> None:
    choice = {"type": "any"} if mode == "required" else {"type": "tool", "name": "write"}
    out = convert_checked(claude_body(thinking=ON, tool_choice=choice), "anthropic", target)
    assert "write" in out.data.decode()


def test_D13_native_reasoning_details_of_openrouter_keep_their_signature() -> None:
    target = ("openrouter", "anthropic/claude-sonnet-4.5")
    body = request_body("openai_chat", U(), *exchange(1), model=target[1])
    detail = {"type": "reasoning.text", "text": "hm", "signature": SECRET, "format": "anthropic-claude-v1", "index": 0}
    body["messages"][1]["reasoning_details"] = [detail]
    data = msgspec.json.encode(body)
    assert repair(data, target=target[0]).data is data
    assert SECRET not in convert_checked(body, "openrouter", GPT).data.decode()


@every_target
@pytest.mark.parametrize("count", [1, 2, 6])
def test_R_004_7_pairing_does_not_depend_on_what_becomes_of_thinking(target: Target, count: int) -> None:
    uses = [{**use(f"toolu_{number}"), "input": {"n": number}} for number in range(count)]
    for thinking in ([], [thought()], [thought(""), thought("two")], [{"type": "redacted_thinking", "data": "b3Bh"}]):
        for where in ("before", "between"):
            content = [*thinking, *uses] if where == "before" else [uses[0], *thinking, *uses[1:]]
            body = claude_body(content, [{"type": "text", "text": "so"}])
            parts = parts_of(convert_checked(body, "anthropic", target), target)
            assert {n: f"printed toolu_{n}" in text for n, text in parts.answers().items()} == dict.fromkeys(
                range(count), True
            )


def test_thinking_of_kimi_becomes_text_only_where_the_target_accepts_that() -> None:
    body = request_body("openai_chat", U(), *exchange(1), model=KIMI[1])
    body["messages"][1]["reasoning_content"] = "the plan"
    assert "the plan" in convert_checked(body, "openai_chat", ("deepseek", "deepseek-reasoner")).data.decode()
    assert "the plan" not in convert_checked(body, "kimi", CLAUDE).data.decode()

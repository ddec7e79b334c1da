"""Signatures: what the simulator issued comes back and is accepted; forged, edited, moved or lost, it is refused."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.simulator.asgi_client import Answered, ask
from toolglot.simulator import Simulator, stored_responses
from toolglot.simulator.replies.signatures import Signer, digest

Body = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLAUDE_TOOLS = [{"name": "get_weather", "input_schema": SCHEMA}]
EDITED = "blocks in the latest assistant message cannot be modified"
INVALID = "Invalid `signature` in `thinking` block"
BOUND = "The block is bound to a different conversation"


def words(answered: Answered) -> str:
    body = answered.json
    return str(body["error"]["message"] if "error" in body else body["message"])


# --- Anthropic --------------------------------------------------------------------------------------


def claude(model: str = "claude-opus-5", **more: Any) -> Body:
    return {
        "model": model,
        "max_tokens": 4000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Weather?"}],
        "tools": CLAUDE_TOOLS,
        **more,
    }


def continued(body: Body, answered: Answered) -> Body:
    """The next request of the loop."""
    assert answered.status == 200, answered.data
    content = answered.json["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "7"}
        for block in content
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": results or "Thanks. And now?"}]
    return {**body, "messages": [*body["messages"], *turns]}


def thought(body: Body, turn: int = 1) -> Body:
    found: Body = body["messages"][turn]["content"][0]
    assert found["type"] == "thinking"
    return found


def test_thinking_that_comes_back_is_accepted() -> None:
    simulator = Simulator()
    body = claude()
    for _ in range(4):
        body = continued(body, ask(simulator, "anthropic", body))
    assert len(body["messages"]) == 9


def test_another_process_accepts_it_too_and_another_seed_does_not() -> None:
    body = continued(claude(), ask(Simulator(), "anthropic", claude()))
    assert ask(Simulator(), "anthropic", body).status == 200
    refused = ask(Simulator({"seed": 1}), "anthropic", body)
    assert (refused.status, INVALID in words(refused)) == (400, True)


def test_a_forged_signature_is_refused() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    for forged in ("c2lnbmVk", "not base64!", thought(body)["signature"][:-4] + "AAA=", "A" * 76):
        thought(body)["signature"] = forged
        refused = ask(simulator, "anthropic", body)
        assert refused.status == 400
        assert words(refused) == f"messages.1.content.0: {INVALID}"


def test_edited_thinking_is_refused_in_the_latest_turn_and_in_earlier_ones() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    later = continued(body, ask(simulator, "anthropic", body))
    thought(body)["thinking"] += " Hm."
    assert EDITED in words(ask(simulator, "anthropic", body))
    assert words(ask(simulator, "anthropic", later)) == f"messages.1.content.0: {INVALID}"


def test_thinking_that_is_repeated_in_its_turn_is_not_as_it_was() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    content = body["messages"][1]["content"]
    content.insert(1, copy.deepcopy(content[0]))
    assert EDITED in words(ask(simulator, "anthropic", body))


def test_thinking_may_be_left_out_where_it_is_adaptive() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    body["messages"][1]["content"].pop(0)
    assert ask(simulator, "anthropic", body).status == 200


def test_redacted_thinking_of_unknown_make_is_refused() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    body["messages"][1]["content"][0] = {"type": "redacted_thinking", "data": "eHh4"}
    assert "Invalid `data` in `redacted_thinking` block" in words(ask(simulator, "anthropic", body))
    sealed = Signer(0).sign("redacted", model="claude-opus-5", content="")
    body["messages"][1]["content"][0] = {"type": "redacted_thinking", "data": sealed}
    assert ask(simulator, "anthropic", body).status == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.update(system="Be brief!"),
        lambda body: body["tools"][0].update(description="New"),
        lambda body: body["messages"][0].update(content="Weather??"),
        lambda body: body["messages"].insert(0, {"role": "user", "content": "Hello"}),
    ],
    ids=["system", "tools", "message", "moved"],
)
def test_preserved_thinking_is_bound_to_its_prefix(change: Any) -> None:
    simulator = Simulator()
    request = claude("claude-fable-5-1", tools=copy.deepcopy(CLAUDE_TOOLS))
    body = continued(request, ask(simulator, "anthropic", request))
    assert ask(simulator, "anthropic", body).status == 200
    change(body)
    refused = ask(simulator, "anthropic", body)
    assert refused.status == 400
    assert BOUND in words(refused)


def test_older_models_do_not_bind_thinking_to_its_prefix() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    assert ask(simulator, "anthropic", {**body, "system": "Other."}).status == 200


def test_cache_marks_and_the_form_of_content_do_not_change_a_prefix() -> None:
    simulator = Simulator()
    request = claude("claude-fable-5-1")
    body = continued(request, ask(simulator, "anthropic", request))
    marked = {"type": "text", "text": "Weather?", "cache_control": {"type": "ephemeral"}}
    body["messages"][0]["content"] = [marked]
    assert ask(simulator, "anthropic", body).status == 200


def test_what_another_model_thought_is_not_read_and_not_refused() -> None:
    simulator = Simulator()
    body = continued(claude(), ask(simulator, "anthropic", claude()))
    switched = {**body, "model": "claude-fable-5-1", "system": "Other."}
    assert ask(simulator, "anthropic", switched).status == 200


def test_bound_blocks_can_be_dropped_on_request_under_the_beta() -> None:
    simulator = Simulator()
    request = claude("claude-fable-5-1")
    body = continued(request, ask(simulator, "anthropic", request))
    control = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    changed = {**body, "system": "Other.", "thinking": control}
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    answered = ask(simulator, "anthropic", changed, **beta)
    without = ask(simulator, "anthropic", changed)
    assert without.status == 400
    assert "Extra inputs are not permitted" in words(without)
    assert answered.status == 200, answered.data


def test_no_thinking_where_it_is_off_or_a_tool_is_forced() -> None:
    simulator = Simulator()
    settings: list[Body] = [{"thinking": {"type": "disabled"}}, {"tool_choice": {"type": "any"}}]
    for more in settings:
        kinds = [block["type"] for block in ask(simulator, "anthropic", claude(**more)).json["content"]]
        assert kinds == ["tool_use"]


# --- Bedrock ----------------------------------------------------------------------------------------


def bedrock_loop(simulator: Simulator, model: str) -> Body:
    spec = {"toolSpec": {"name": "get_weather", "inputSchema": {"json": SCHEMA}}}
    body: Body = {
        "messages": [{"role": "user", "content": [{"text": "Weather?"}]}],
        "toolConfig": {"tools": [spec]},
    }
    content = ask(simulator, "bedrock", body, model=model).json["output"]["message"]["content"]
    result = {"toolResult": {"toolUseId": content[-1]["toolUse"]["toolUseId"], "content": [{"text": "7"}]}}
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    return body


def test_bedrock_binds_preserved_thinking_to_its_prefix() -> None:
    simulator, model = Simulator(), "anthropic.claude-fable-5-1-v1:0"
    body = bedrock_loop(simulator, model)
    assert ask(simulator, "bedrock", body, model=model).status == 200
    refused = ask(simulator, "bedrock", {**body, "system": [{"text": "Other."}]}, model=model)
    assert refused.status == 400
    assert BOUND in words(refused)


def test_bedrock_checks_the_signature_of_reasoning() -> None:
    simulator, model = Simulator(), "anthropic.claude-opus-5-v1:0"
    body = bedrock_loop(simulator, model)
    assert ask(simulator, "bedrock", body, model=model).status == 200
    assert ask(simulator, "bedrock", {**body, "system": [{"text": "Other."}]}, model=model).status == 200
    for change in ({"text": "Other."}, {"signature": "c2lnbmVk"}):
        edited = copy.deepcopy(body)
        edited["messages"][1]["content"][0]["reasoningContent"]["reasoningText"].update(change)
        refused = ask(simulator, "bedrock", edited, model=model)
        assert refused.status == 400
        assert INVALID in words(refused)


# --- Gemini -----------------------------------------------------------------------------------------

GEMINI = "gemini-3-pro"


def gemini_loop(simulator: Simulator, model: str = GEMINI, calls: int = 1) -> Body:
    declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in ("get_weather", "get_time")]
    body: Body = {
        "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
        "tools": [{"functionDeclarations": declared}],
    }
    answered = ask(simulator, "gemini", body, model=model, order=f"calls={calls}")
    content = answered.json["candidates"][0]["content"]
    results = [
        {"functionResponse": {"name": part["functionCall"]["name"], "response": {"output": "7"}}}
        for part in content["parts"]
    ]
    body["contents"] += [content, {"role": "user", "parts": results}]
    return body


def test_a_thought_signature_stands_on_the_first_call_and_comes_back() -> None:
    simulator = Simulator()
    body = gemini_loop(simulator, calls=2)
    parts = body["contents"][1]["parts"]
    assert ["thoughtSignature" in part for part in parts] == [True, False]
    assert ask(simulator, "gemini", body, model=GEMINI).status == 200


def test_a_missing_thought_signature_is_refused_with_its_call_and_position() -> None:
    simulator = Simulator()
    body = gemini_loop(simulator)
    del body["contents"][1]["parts"][0]["thoughtSignature"]
    refused = ask(simulator, "gemini", body, model=GEMINI)
    assert refused.status == 400
    assert words(refused).endswith("function call `default_api:get_weather` , position 2.")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("c2lnbmVk", "Corrupted thought signature."),
        ("???", "Invalid value at 'contents[1].parts[0].thoughtSignature' (TYPE_BYTES)"),
        (Signer(0).sign("thought", model=GEMINI, content=["get_time", {"city": "Bonn"}]), "Invalid thought signature."),
        (Signer(0).sign("thought", model="x", content=["get_weather", {"city": "Bonn"}]), "Invalid thought signature."),
    ],
    ids=["forged", "not base64", "moved", "of another model"],
)
def test_a_wrong_thought_signature_is_refused(signature: str, message: str) -> None:
    simulator = Simulator()
    body = gemini_loop(simulator)
    body["contents"][1]["parts"][0]["thoughtSignature"] = signature
    assert words(ask(simulator, "gemini", body, model=GEMINI)) == message


@pytest.mark.parametrize("as_bytes", [False, True])
def test_the_documented_placeholder_is_accepted(as_bytes: bool) -> None:
    simulator = Simulator()
    body = gemini_loop(simulator)
    placeholder = "skip_thought_signature_validator"
    written = base64.b64encode(placeholder.encode()).decode() if as_bytes else placeholder
    body["contents"][1]["parts"][0]["thoughtSignature"] = written
    assert ask(simulator, "gemini", body, model=GEMINI).status == 200


def test_signatures_before_the_current_turn_are_not_looked_at() -> None:
    simulator = Simulator()
    body = gemini_loop(simulator)
    answer = ask(simulator, "gemini", body, model=GEMINI).json["candidates"][0]["content"]
    body["contents"] += [answer, {"role": "user", "parts": [{"text": "And tomorrow?"}]}]
    body["contents"][1]["parts"][0]["thoughtSignature"] = "c2lnbmVk"
    assert ask(simulator, "gemini", body, model=GEMINI).status == 200


def test_thoughts_are_shown_to_those_who_ask() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    shown = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    simulator = Simulator()
    assert len(ask(simulator, "gemini", body, model=GEMINI).json["candidates"][0]["content"]["parts"]) == 1
    parts = ask(simulator, "gemini", {**body, **shown}, model=GEMINI).json["candidates"][0]["content"]["parts"]
    assert [part.get("thought", False) for part in parts] == [True, False]


# --- Responses --------------------------------------------------------------------------------------

RESPONSES: Body = {
    "model": "gpt-5.5",
    "input": [{"role": "user", "content": "Weather?"}],
    "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}],
}


def responses_loop(simulator: Simulator, **more: Any) -> Body:
    body: Body = copy.deepcopy({**RESPONSES, **more})
    items = ask(simulator, "openai_responses", body).json["output"]
    assert [item["type"] for item in items] == ["reasoning", "function_call"]
    result = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": "7"}
    return {**body, "input": [*body["input"], *items, result]}


def test_reasoning_comes_back_encrypted_or_by_its_id() -> None:
    simulator = Simulator()
    assert ask(simulator, "openai_responses", responses_loop(simulator, store=False)).status == 200
    stored = responses_loop(simulator)
    del stored["input"][1]["encrypted_content"]
    assert ask(simulator, "openai_responses", stored).status == 200


def test_forged_encrypted_content_is_refused() -> None:
    simulator = Simulator()
    body = responses_loop(simulator, store=False)
    moved = {**body["input"][1], "id": "rs_other"}
    for item in ({**body["input"][1], "encrypted_content": "gAAAAABforged"}, moved, {"encrypted_content": "x"}):
        body["input"][1] = {"type": "reasoning", "summary": [], **item}
        refused = ask(simulator, "openai_responses", body)
        assert refused.status == 400
        assert refused.json["error"]["code"] == "invalid_encrypted_content"
        assert "could not be verified" in words(refused)


def test_encrypted_content_of_another_account_is_refused() -> None:
    simulator = Simulator()
    body = responses_loop(simulator, store=False)
    refused = ask(simulator, "openai_responses", body, authorization="Bearer other")
    assert refused.json["error"]["code"] == "invalid_encrypted_content"
    assert words(refused).endswith("organization_id did not match the target organization.")


def test_stored_answers_are_forgotten_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MAX_RESPONSES", 2)
    simulator = Simulator()
    requests = [{"model": "gpt-5.5", "input": text} for text in ("One", "Two", "Three")]
    ids = [ask(simulator, "openai_responses", body).json["id"] for body in requests]
    found = [
        ask(simulator, "openai_responses", {"model": "gpt-5.5", "input": "And?", "previous_response_id": id}).status
        for id in ids[::-1]
    ]
    assert found[0] == 200
    assert found[-1] == 400


def test_a_call_needs_the_reasoning_that_it_came_with() -> None:
    simulator = Simulator()
    body = responses_loop(simulator, store=False)
    lost = {**body, "input": [item for item in body["input"] if item.get("type") != "reasoning"]}
    refused = ask(simulator, "openai_responses", lost)
    assert "was provided without its required 'reasoning' item: 'rs_" in words(refused)
    lost["input"][1].pop("id")
    assert ask(simulator, "openai_responses", lost).status == 200


def test_reasoning_needs_what_it_led_to() -> None:
    simulator = Simulator()
    body = responses_loop(simulator, store=False)
    body["input"] = body["input"][:2]
    refused = ask(simulator, "openai_responses", body)
    assert "of type 'reasoning' was provided without its required following item." in words(refused)


def test_items_that_are_not_stored_are_not_found() -> None:
    simulator = Simulator()
    body = responses_loop(simulator)
    del body["input"][1]["encrypted_content"]
    refused = ask(Simulator(), "openai_responses", body)
    assert words(refused) == f"Item with id '{body['input'][1]['id']}' not found."
    reference = {"type": "item_reference", "id": "msg_1"}
    refused = ask(simulator, "openai_responses", {**RESPONSES, "input": [*RESPONSES["input"], reference]})
    assert words(refused) == "Item with id 'msg_1' not found."


def test_a_previous_response_is_continued() -> None:
    simulator = Simulator()
    first = ask(simulator, "openai_responses", {**RESPONSES, "input": "Weather?"}).json
    result = {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "7 degrees"}
    body = {**RESPONSES, "previous_response_id": first["id"], "input": [result]}
    second = ask(simulator, "openai_responses", body)
    assert second.status == 200
    assert "7 degrees" in second.json["output"][-1]["content"][0]["text"]
    assert second.json["previous_response_id"] == first["id"]
    unanswered = ask(simulator, "openai_responses", {**body, "input": "And?"})
    assert words(unanswered) == f"No tool output found for function call {first['output'][1]['call_id']}."
    twice = ask(simulator, "openai_responses", {**body, "input": [first["output"][1], result]})
    assert "Duplicate item found with id fc_" in words(twice)
    unknown = ask(simulator, "openai_responses", {**body, "previous_response_id": "resp_0"})
    assert unknown.json["error"]["code"] == "previous_response_not_found"
    reference = {"type": "item_reference", "id": second.json["output"][-1]["id"]}
    again = ask(
        simulator, "openai_responses", {**RESPONSES, "input": [*RESPONSES["input"], reference, *RESPONSES["input"]]}
    )
    assert again.status == 200


# --- seals ------------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.text(), st.text(), st.integers(0, 300), st.integers(0, 3))
def test_law_a_seal_says_what_it_was_made_for(model: str, content: str, index: int, seed: int) -> None:
    signer = Signer(seed)
    signature = signer.sign("thinking", model=model, content=content, prefix=[content], position=index)
    seal = signer.read("thinking", signature)
    assert seal is not None
    assert (seal.model, seal.content, seal.prefix, seal.position) == (
        digest(model),
        digest(content),
        digest([content]),
        index % 256,
    )
    assert signer.read("thought", signature) is None
    assert Signer(seed + 1).read("thinking", signature) is None


@pytest.mark.law
@given(st.data(), st.text())
def test_law_a_seal_with_any_byte_changed_is_none(data: st.DataObject, content: str) -> None:
    signer = Signer(0)
    raw = bytearray(base64.b64decode(signer.sign("thinking", model="m", content=content)))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    assert signer.read("thinking", base64.b64encode(raw).decode()) is None


@pytest.mark.law
@given(st.text())
def test_law_no_text_makes_reading_a_seal_raise(text: str) -> None:
    assert Signer(0).read("thinking", text) is None

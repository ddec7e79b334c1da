"""System prompts where not every provider has them: as the first message, and in the middle."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import toolglot
from toolglot.profiles import Overrides

MODELS = ["claude-sonnet-4-5", "claude-opus-5-5", "claude-sonnet-5"]
PROMPT = {"role": "system", "content": "Be brief."}
USER_MESSAGE = {"role": "user", "content": "hi"}


def repaired(model: str, *messages: dict[str, Any], **fields: Any) -> toolglot.ConvertedRequest:
    body = {"model": model, "max_tokens": 10, "messages": list(messages), **fields}
    out = toolglot.repair(msgspec.json.encode(body), target="anthropic")
    assert not toolglot.lint(out.body, "anthropic", model=model)
    assert toolglot.repair(out.data, target="anthropic").data == out.data
    return out


@pytest.mark.parametrize("model", MODELS)
def test_a_prompt_that_is_the_first_message_goes_into_its_field(model: str) -> None:
    out = repaired(model, PROMPT, USER_MESSAGE)
    assert out.body["system"] == "Be brief."
    assert out.body["messages"] == [USER_MESSAGE]
    (entry,) = out.report
    assert (entry.action, entry.turn) == ("moved", 0)


@pytest.mark.parametrize("model", MODELS)
def test_it_stands_behind_the_one_that_is_there(model: str) -> None:
    marked = {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}
    out = repaired(model, {"role": "system", "content": [marked]}, PROMPT, USER_MESSAGE, system="You help.")
    assert out.body["system"] == [{"type": "text", "text": "You help."}, marked, {"type": "text", "text": "Be brief."}]
    assert [entry.action for entry in out.report] == ["moved", "moved"]


@pytest.mark.parametrize("model", MODELS)
def test_a_prompt_alone_leaves_a_message_to_answer(model: str) -> None:
    out = repaired(model, PROMPT)
    assert out.body["system"] == "Be brief."
    assert [message["role"] for message in out.body["messages"]] == ["user"]


def test_a_prompt_in_the_middle_stays_there() -> None:
    out = repaired("claude-opus-5-5", USER_MESSAGE, PROMPT, {"role": "assistant", "content": "hm"}, USER_MESSAGE)
    assert out.body["messages"][1] == PROMPT
    assert not list(out.report)


def test_a_provider_that_takes_prompts_as_messages_gets_them_so() -> None:
    body = {"model": "gpt-5.2", "input": [{"role": "system", "content": "Be brief."}, USER_MESSAGE]}
    data = msgspec.json.encode(body)
    assert toolglot.repair(data, target="openai_responses").data == data


ALTERNATING = Overrides(
    b"""
[profiles.host]
extends = "openai_compatible"
title = "A host whose users and assistants alternate, and that takes prompts anywhere"
[profiles.host.rules]
"turns.alternate" = true
"turns.system_inside" = "anywhere"
"""
)
ANSWERED = {"role": "assistant", "content": "hm"}
TAGGED = "<system>\nBe brief.\n</system>"


def sent_to_an_alternating_host(*messages: dict[str, Any]) -> toolglot.ConvertedRequest:
    body = {"model": "m", "messages": list(messages)}
    out = toolglot.convert(body, source="openai", target="host", model="m", overrides=ALTERNATING)
    assert not toolglot.lint(out.body, "host", model="m", overrides=ALTERNATING)
    return out


def test_a_prompt_between_two_turns_of_the_user_is_joined_with_them_where_users_and_assistants_alternate() -> None:
    out = sent_to_an_alternating_host(USER_MESSAGE, PROMPT, PROMPT, USER_MESSAGE)
    (message,) = out.body["messages"]
    assert "".join(part["text"] for part in message["content"]) == f"hi\n\n{TAGGED}\n\n{TAGGED}\n\nhi"
    assert {entry.action for entry in out.report} == {"converted"}
    assert any("turns.alternate" in entry.reason for entry in out.report)


def test_a_prompt_between_two_turns_of_the_assistant_parts_them_where_users_and_assistants_alternate() -> None:
    out = sent_to_an_alternating_host(USER_MESSAGE, ANSWERED, PROMPT, ANSWERED, USER_MESSAGE)
    assert out.body["messages"] == [USER_MESSAGE, ANSWERED, {"role": "user", "content": TAGGED}, ANSWERED, USER_MESSAGE]


def test_a_prompt_between_two_speakers_stays_where_users_and_assistants_alternate() -> None:
    out = sent_to_an_alternating_host(USER_MESSAGE, PROMPT, ANSWERED, PROMPT, USER_MESSAGE)
    assert out.body["messages"] == [USER_MESSAGE, PROMPT, ANSWERED, PROMPT, USER_MESSAGE]
    assert not list(out.report)


# --- prompts alone, to their own provider -----------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "model", "body", "field"),
    [
        ("bedrock", "anthropic.claude-sonnet-4-5", {"system": [{"text": "Be brief."}], "messages": []}, "messages"),
        ("openai_responses", "gpt-5.2", {"model": "gpt-5.2", "instructions": "Be brief.", "input": []}, "input"),
    ],
)
def test_instructions_without_a_message_get_one_where_the_provider_demands_it(
    target: str, model: str, body: dict[str, Any], field: str
) -> None:
    assert toolglot.lint(body, target, model=model)
    out = toolglot.repair(body, target=target, model=model)
    assert [message["role"] for message in out.body[field]] == ["user"]
    assert not toolglot.lint(out.body, target, model=model)
    assert [entry.action for entry in out.report] == ["added"]


def test_a_prompt_that_is_an_item_of_the_input_is_a_message_already() -> None:
    data = msgspec.json.encode({"model": "gpt-5.2", "input": [PROMPT]})
    assert toolglot.repair(data, target="openai_responses").data == data

"""mistral-common, the provider's own validator, as an outside judge of `lint(…, target="mistral")`.

Conversations are made from a seed, then broken in every way that either judge looks at. Where the two differ, the
difference is in a table with its reason.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import (
    MistralRequestValidator,
    MistralRequestValidatorV3,
    MistralRequestValidatorV11,
    ValidationMode,
)
from pydantic import ValidationError

from support.referee.good_bodies import PIXEL, Body, chat_tool
from toolglot.referee import lint

Messages = list[Body]
Mutation = Callable[[Messages, Random], Messages | None]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
NEW = MistralRequestValidatorV11(ValidationMode.serving)
OLD = MistralRequestValidatorV3(ValidationMode.serving)


def refuses(body: Body, validator: MistralRequestValidator[Any, Any, Any, Any] = NEW) -> bool:
    try:
        validator.validate_request(ChatCompletionRequest.model_validate(copy.deepcopy(body)))
    except (MistralCommonException, ValidationError, ValueError):
        return True
    return False


# --- Conversations ----------------------------------------------------------------------------------


def identifier(random: Random) -> str:
    return "".join(random.choice(LETTERS) for _ in range(9))


def conversation(random: Random, *, calls: int = 0) -> Messages:
    """A legal one: system prompts, then turns, each of which may call; the end is a user's turn, results or a start."""
    messages: Messages = [{"role": "system", "content": "Be brief."} for _ in range(random.randrange(3))]
    for _ in range(random.randrange(1, 4)):
        parts = [{"type": "text", "text": "Look:"}, IMAGE]
        messages.append({"role": "user", "content": random.choice(["Well?", "The weather in Köln?", parts])})
        for _ in range(max(calls, random.randrange(3))):
            messages += calling(random)
        messages.append({"role": "assistant", "content": "It is cold."})
    if random.random() < 0.2:
        messages[-1]["prefix"] = True
        return messages
    messages.append({"role": "user", "content": "And now?"})
    return [*messages, *calling(random)] if random.random() < 0.5 else messages


def calling(random: Random) -> Messages:
    ids = [identifier(random) for _ in range(random.randrange(1, 4))]
    calls = [
        {"id": id_, "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bonn"}'}}
        for id_ in ids
    ]
    named = {"name": "get_weather"} if random.random() < 0.5 else {}
    content = random.choice(["7", [{"type": "text", "text": "8"}]])
    results: Messages = [{"role": "tool", "tool_call_id": id_, "content": content, **named} for id_ in ids]
    return [{"role": "assistant", "content": random.choice(["", "I look."]), "tool_calls": calls}, *results]


def good_body(seed: int) -> Body:
    random = Random(seed)  # noqa: S311 - the same bodies in every run
    body: Body = {"model": "mistral-large-latest", "messages": conversation(random)}
    body |= {"tools": [chat_tool(), chat_tool("get_time")]} if random.random() < 0.7 else {}
    if "tools" in body and random.random() < 0.5:
        named = {"type": "function", "function": {"name": "get_time"}}
        body["tool_choice"] = random.choice(["auto", "none", "any", "required", named])
        body["parallel_tool_calls"] = random.random() < 0.5
    body |= {"temperature": 0.3, "top_p": 0.9, "max_tokens": 100} if random.random() < 0.3 else {}
    return body


# --- Faults -----------------------------------------------------------------------------------------


def indexes_of(messages: Messages, role: str) -> list[int]:
    return [index for index, message in enumerate(messages) if message["role"] == role]


def on(role: str, change: Callable[[Body], Any], *, last: bool = False) -> Mutation:
    """A change of one message of a role."""

    def mutate(messages: Messages, random: Random) -> Messages:
        found = indexes_of(messages, role)
        change(messages[found[-1] if last else random.choice(found)])
        return messages

    return mutate


def on_calling(change: Callable[[Messages, int], Any]) -> Mutation:
    """A change at the first message that calls."""

    def mutate(messages: Messages, _: Random) -> Messages:
        index = next(index for index, message in enumerate(messages) if message.get("tool_calls"))
        change(messages, index)
        return messages

    return mutate


def renamed(id_: str) -> Mutation:
    """Another id on the first call and its result."""

    def change(messages: Messages, index: int) -> None:
        messages[index]["tool_calls"][0]["id"] = messages[index + 1]["tool_call_id"] = id_

    return on_calling(change)


def inserted(offset: int, message: Body) -> Mutation:
    return on_calling(lambda messages, index: messages.insert(index + offset, copy.deepcopy(message)))


def doubled_call(messages: Messages, index: int) -> None:
    messages[index]["tool_calls"].append(copy.deepcopy(messages[index]["tool_calls"][0]))
    messages.insert(index + 1, copy.deepcopy(messages[index + 1]))


def first_call(change: Callable[[Body], Any]) -> Mutation:
    return on_calling(lambda messages, index: change(messages[index]["tool_calls"][0]))


def ending(*more: Body) -> Mutation:
    return lambda messages, _: [*messages, *copy.deepcopy(list(more))]


def only(*messages: Body) -> Mutation:
    return lambda _, __: copy.deepcopy(list(messages))


def result(id_: str) -> Body:
    return {"role": "tool", "tool_call_id": id_, "content": "7"}


USER = {"role": "user", "content": "Wait."}
MUTATIONS: dict[str, Mutation] = {
    "an id of eight": renamed("abcdefgh"),
    "an id of ten": renamed("abcdefghij"),
    "an id with a dash": renamed("call_abcd"),
    "the id null": renamed("null"),
    "an empty id": renamed(""),
    "a result with an id of its own": on_calling(lambda m, index: m[index + 1].update(tool_call_id="zzzzzzzz9")),
    "a result without an id": on_calling(lambda m, index: m[index + 1].pop("tool_call_id")),
    "a call without a result": on_calling(lambda m, index: m.pop(index + 1)),
    "a second result": on_calling(lambda m, index: m.insert(index + 1, copy.deepcopy(m[index + 1]))),
    "a result without a call": on_calling(lambda m, index: m.insert(index + 1, result("zzzzzzzz9"))),
    "two calls of one id": on_calling(doubled_call),
    "a user turn before the result": inserted(1, USER),
    "an assistant turn before the result": inserted(1, {"role": "assistant", "content": "I wait."}),
    "a system message before the result": inserted(1, {"role": "system", "content": "Hm."}),
    "a result after a user turn": lambda m, random: [*m[: indexes_of(m, "user")[0] + 1], result(identifier(random))],
    "calls at the end": on_calling(lambda m, index: m.__delitem__(slice(index + 1, None))),
    "a bare assistant turn at the end": ending(USER, {"role": "assistant", "content": "It is"}),
    "a start of the answer inside": on_calling(lambda m, index: m[index].update(content="I", prefix=True)),
    "a system message after the model": ending(
        {"role": "assistant", "content": "A"}, {"role": "system", "content": "B"}, USER
    ),
    "a name with a space": first_call(lambda call: call["function"].update(name="get weather")),
    "a name of 65": first_call(lambda call: call["function"].update(name="a" * 65)),
    "an empty name": first_call(lambda call: call["function"].update(name="")),
    "an image in a result": on_calling(lambda m, index: m[index + 1].update(content=[IMAGE])),
    "an image in an assistant turn": on_calling(lambda m, index: m[index].update(content=[IMAGE])),
    "no messages": only(),
    "a result alone": only(result("abcdefgh1")),
    "an unknown role": ending({"role": "critic", "content": "Bad."}),
    "a number for content": on("user", lambda message: message.update(content=7)),
    "an unknown part": on("user", lambda message: message.update(content=[{"type": "odd"}])),
    "an unknown field": on("user", lambda message: message.update(mood="good")),
    "a message without a role": on("user", lambda message: message.pop("role"), last=True),
    "a call without a function": first_call(lambda call: call.pop("function")),
    "a call without arguments": first_call(lambda call: call["function"].pop("arguments")),
    "arguments that are a number": first_call(lambda call: call["function"].update(arguments=7)),
}

DIFFERENCES: dict[str, tuple[Mutation, str]] = {
    "a result at the start": (
        only(result("abcdefgh1"), USER),
        "the validator does not look at the pairing of the first message",
    ),
    "an assistant turn of nothing": (
        only(USER, {"role": "assistant", "content": ""}, USER),
        "mistral-turn-empty: the validators of old tokenizers refuse it, this one takes an empty text",
    ),
    "arguments that are an object": (
        first_call(lambda call: call["function"].update(arguments={"city": "Bonn"})),
        "mistral-call-string says how they are written; its note, that an object is taken too, is no value of the key",
    ),
    "null beside calls": (
        on_calling(lambda m, index: m[index].update(content=None)),
        "mistral-call-no-text says what the API itself writes; null is taken by the validator",
    ),
    "a system message after a user turn": (
        lambda m, _: [m[0], {"role": "user", "content": "Hi"}, {"role": "system", "content": "B"}, USER],
        "mistral-turn-system-inside: the stricter of the hosted and the published validator",
    ),
    "the assistant first": (
        only({"role": "assistant", "content": "Hello"}, USER),
        "mistral-turn-first: a guess, the form that every target takes",
    ),
    "an empty user text": (
        on("user", lambda message: message.update(content="")),
        "mistral-turn-empty, of any turn",
    ),
}
"""What the validator accepts and the profile does not."""

TOOLS: dict[str, Any] = {
    "a tool with a bad name": chat_tool("get weather"),
    "a tool with a long name": chat_tool("a" * 65),
    "a tool without a name": {"type": "function", "function": {"description": "d", "parameters": {}}},
    "a schema of no type": chat_tool(parameters={"type": "odd", "properties": {}}),
    "a schema of bad properties": chat_tool(parameters={"type": "object", "properties": [1]}),
    "a schema of bad requirements": chat_tool(parameters={"type": "object", "properties": {}, "required": "city"}),
    "a schema that is a list": chat_tool(parameters=[]),
    "a schema of bad items": chat_tool(
        parameters={"type": "object", "properties": {"a": {"type": "array", "items": 7}}}
    ),
    "a custom tool": {"type": "custom", "custom": {"name": "free"}},
    "a tool without a schema": {"type": "function", "function": {"name": "get_time"}},
}


def mutated(seed: int, mutation: Mutation) -> Body:
    random = Random(seed)  # noqa: S311 - the same bodies in every run
    messages = mutation(conversation(random, calls=1), random)
    return {"model": "mistral-large-latest", "messages": messages, "tools": [chat_tool()]}


def test_good_bodies_pass_both_judges() -> None:
    bodies = [good_body(seed) for seed in range(400)]
    assert len({str(body) for body in bodies}) > 300
    assert [seed for seed, body in enumerate(bodies) if refuses(body)] == []
    assert [str(found) for body in bodies for found in lint(body, "mistral")] == []


@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_fault_is_refused_by_both_judges(fault: str) -> None:
    bodies = [mutated(seed, MUTATIONS[fault]) for seed in range(10)]
    assert all(refuses(body) for body in bodies)
    assert all(lint(body, "mistral") for body in bodies)


def test_agreement_on_faults_of_messages_and_tools_is_at_least_98_percent() -> None:
    bodies = [mutated(seed, mutation) for mutation in MUTATIONS.values() for seed in range(10, 20)]
    bodies += [good_body(seed) | {"tools": [tool]} for tool in TOOLS.values() for seed in range(5)]
    for body in bodies[-50:]:
        body.pop("tool_choice", None)
    agreed = sum(refuses(body) == bool(lint(body, "mistral")) for body in bodies)
    assert len(bodies) >= 300
    assert agreed >= 0.98 * len(bodies)


@pytest.mark.parametrize("fault", TOOLS)
def test_a_fault_of_a_tool_is_refused_by_both_judges(fault: str) -> None:
    body = {"model": "m", "messages": [USER], "tools": [TOOLS[fault]]}
    assert refuses(body)
    assert lint(body, "mistral")


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_where_the_profile_is_stricter_than_the_validator(difference: str) -> None:
    """What the hosted API was seen to take is held against what comes from elsewhere only."""
    mutation, reason = DIFFERENCES[difference]
    bodies = [mutated(seed, mutation) for seed in range(5)]
    assert not any(refuses(body) for body in bodies), reason
    assert all(lint(body, "mistral", defaults=True) for body in bodies), reason


def test_both_judges_take_a_user_turn_after_results() -> None:
    bodies = [
        mutated(seed, lambda m, random: [*m[: indexes_of(m, "user")[0] + 1], *calling(random), USER])
        for seed in range(5)
    ]
    assert not any(refuses(body) for body in bodies)
    assert not any(lint(body, "mistral", defaults=True) for body in bodies)


@pytest.mark.parametrize("text", ["", "I look."])
def test_old_tokenizers_take_text_or_calls_but_not_both(text: str) -> None:
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = {"role": "assistant", "content": text, "tool_calls": [call]}
    body = {"model": "open-mixtral-8x7b", "messages": [USER, turn, result("abcdefgh1")]}
    assert refuses(body, OLD) == bool(lint(body, "mistral")) == bool(text)


def test_the_violation_speaks_in_the_validators_words() -> None:
    (found, *_) = lint(mutated(0, renamed("call_abcd")), "mistral")
    assert found.wording == "provider"
    assert found.message == "Tool call id was call_abcd but must be a-z, A-Z, 0-9, with a length of 9."


def test_a_breach_that_the_providers_words_do_not_fit_has_our_message() -> None:
    messages = [USER, {"role": "assistant", "content": "I", "prefix": True}, USER]
    (found,) = lint({"model": "m", "messages": messages}, "mistral")
    assert (found.key, found.wording) == ("turns.prefill", "ours")
    assert found.message == "only the last turn may be marked as the start of the answer"

"""Canonical values and the seeds' shapes: R-003-1, R-003-2, R-003-5, and their serialised form."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from support.conversations.strategies import conversations, json_objects
from toolglot import (
    Conversation,
    History,
    InputError,
    LimitError,
    Limits,
    Media,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    VersionError,
    convert,
    dump,
    load,
)
from toolglot.conversation import canonical_json

DOCUMENT: dict[str, Any] = {"format": "toolglot.conversation", "version": 1, "conversation": {"turns": []}}


def test_R_003_1_a_tool_call_has_the_seeds_fields() -> None:
    call = ToolCall(id="1", name="bash", arguments={"command": "ls"}, type="bash", raw_input="<tool>ls</tool>")
    assert (call.id, call.name, call.arguments, call.type, call.raw_input) == (
        "1",
        "bash",
        {"command": "ls"},
        "bash",
        "<tool>ls</tool>",
    )
    seed = b'{"id": "1", "name": "f", "arguments": {"x": 5}, "type": "function"}'
    assert msgspec.json.decode(seed, type=ToolCall) == ToolCall("1", "f", {"x": 5})


def test_R_003_2_a_tool_result_has_the_seeds_fields() -> None:
    result = ToolResult(call_id="1", content="boom", is_error=True)
    assert (result.call_id, result.content, result.is_error, result.text) == ("1", "boom", True, "boom")
    assert msgspec.json.decode(b'{"call_id": "1", "content": "boom", "is_error": true}', type=ToolResult) == result
    assert ToolResult("1", (Text("a"), Text("b"))).text == "ab"
    assert ToolResult("1").text == ""


def test_R_003_5_the_seeds_three_shapes() -> None:
    call = ToolCall("1", "test", {"x": 5})
    assert call.to_anthropic() == {"type": "tool_use", "id": "1", "name": "test", "input": {"x": 5}}
    assert call.to_openai() == {
        "id": "1",
        "type": "function",
        "function": {"name": "test", "arguments": '{"x":5}'},
    }
    assert call.to_generic() == {"tool_call_id": "1", "tool_name": "test", "parameters": {"x": 5}}


def test_R_003_5_a_result_has_the_same_three_shapes_as_its_call() -> None:
    result = ToolResult("1", "72°F")
    assert result.to_anthropic() == {"type": "tool_result", "tool_use_id": "1", "content": "72°F"}
    assert result.to_openai() == {"role": "tool", "tool_call_id": "1", "content": "72°F"}
    assert result.to_generic() == {"tool_call_id": "1", "content": "72°F", "is_error": False}


@pytest.mark.parametrize(
    "failed",
    [
        ToolResult("1", "boom", is_error=True),
        ToolResult("1", error="boom"),
        ToolResult("1", (Text("boom"),), status="error"),
        ToolResult("1", "boom", status="cancelled"),
    ],
)
def test_R_003_5_a_failed_result_is_marked_in_every_shape(failed: ToolResult) -> None:
    assert failed.to_anthropic() == {"type": "tool_result", "tool_use_id": "1", "content": "boom", "is_error": True}
    assert failed.to_openai() == {"role": "tool", "tool_call_id": "1", "content": "Error: boom"}
    assert failed.to_generic() == {"tool_call_id": "1", "content": "boom", "is_error": True}


def test_R_003_5_a_result_of_blocks_or_of_a_value_is_written_as_text() -> None:
    image = Media("image", "image/png", data="aGk=")
    assert ToolResult("1", (Text("a"), image, Text("b"))).to_openai()["content"] == "a\n[image: image/png]\nb"
    assert ToolResult("1", result={"n": 1}).to_openai()["content"] == '{"n":1}'
    assert ToolResult("1", result="plain").to_generic()["content"] == "plain"
    assert ToolResult("1").to_anthropic()["content"] == ""


def test_R_003_5_the_shapes_of_call_and_result_are_read_as_a_pair() -> None:
    call, result = ToolCall("toolu_1", "test", {"x": 5}), ToolResult("toolu_1", "boom", is_error=True)
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call.to_anthropic()]},
        {"role": "user", "content": [result.to_anthropic()]},
    ]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}
    chat = convert(body, source="anthropic", target="openai", model="gpt-4.1").body["messages"]
    assert chat[1]["tool_calls"] == [replace(call, id="call_1").to_openai()]
    assert chat[2] == replace(result, call_id="call_1").to_openai()


def test_R_003_T5_missing_arguments_become_an_empty_object() -> None:
    call = ToolCall("1", "test")
    assert call.to_anthropic()["input"] == {}
    assert call.to_openai()["function"]["arguments"] == "{}"
    assert call.to_generic()["parameters"] == {}


@given(json_objects)
def test_R_003_5_openai_arguments_are_the_json_of_the_arguments(arguments: dict[str, Any]) -> None:
    written = ToolCall("1", "f", arguments).to_openai()["function"]["arguments"]
    assert json.loads(written) == arguments


def test_values_cannot_be_changed() -> None:
    for value in (Text("a"), ToolCall("1", "f"), Turn("user"), Conversation()):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, "extra", {})  # noqa: B010 - the type checker knows that it cannot be set
        assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value  # noqa: S301


# --- the serialised form ----------------------------------------------------------------------------


@pytest.mark.law
@given(conversations)
def test_dump_and_load_give_back_an_equal_conversation(conversation: Conversation) -> None:
    assert load(dump(conversation)) == conversation
    assert load(dump(conversation).decode()) == conversation
    assert dump(load(dump(conversation))) == dump(conversation)


SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "conversation.schema.json"


@pytest.mark.law
@given(conversations)
def test_what_is_written_fits_the_published_schema(conversation: Conversation) -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA_FILE.read_bytes()), offline=True)
    assert validator.is_valid(json.loads(dump(conversation)))
    assert validator.is_valid(json.loads(dump(History(conversation).conversation)))


def test_the_published_schema_is_that_of_the_code() -> None:
    assert json.loads(SCHEMA_FILE.read_bytes()) == json.loads(msgspec.json.encode(canonical_json.schema()))


def test_the_published_schema_refuses_what_load_refuses() -> None:
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA_FILE.read_bytes()), offline=True)
    for turn in ({"role": "robot"}, {"role": "user", "blocks": [{"block": "smell"}]}, {"role": "user", "x": 1}):
        document = {**DOCUMENT, "conversation": {"turns": [turn]}}
        assert not validator.is_valid(document)
        with pytest.raises(InputError, match=r"\$\.conversation\.turns\[0\]"):
            load(json.dumps(document))


def test_a_newer_version_is_refused_with_the_way_out() -> None:
    with pytest.raises(VersionError, match=r"\$\.version: written in version 3 .*reads up to 2 \(upgrade toolglot\)"):
        load(json.dumps({**DOCUMENT, "version": 3, "conversation": {"unheard": "of"}}))


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5])
def test_a_version_that_never_was_is_refused(version: object) -> None:
    with pytest.raises(InputError, match=r"\$\.version"):
        load(json.dumps({**DOCUMENT, "version": version}))


@pytest.mark.parametrize("body", [b"[]", b"3", b'{"messages": []}', b'{"format": "other", "version": 1}'])
def test_another_document_is_refused_with_what_was_expected(body: bytes) -> None:
    with pytest.raises(InputError, match=r'expected an object with "format": "toolglot.conversation"'):
        load(body)


def test_what_is_not_json_is_refused_when_written() -> None:
    circular: dict[str, Any] = {}
    circular["me"] = circular
    with pytest.raises(InputError, match=r"\$\.turns\[0\]\.blocks\[0\]\.arguments\.me: cannot be written as JSON"):
        dump(Conversation((Turn("assistant", (ToolCall("1", "f", circular),)),)))
    with pytest.raises(InputError, match="cannot be written"):
        dump(Conversation((Turn("assistant", (ToolCall("1", "f", {"x": float("nan")}),)),)))


def test_loading_is_bounded() -> None:
    with pytest.raises(LimitError, match="max_bytes"):
        load(json.dumps(DOCUMENT), limits=Limits(max_bytes=10))


def test_limits_are_within_what_can_be_encoded() -> None:
    with pytest.raises(InputError, match="max_depth: expected a depth from 1 to 200"):
        Limits(max_depth=10_000)
    wrongs: list[dict[str, Any]] = [{"max_depth": 0}, {"max_bytes": -1}, {"max_nodes": "a"}, {"max_bytes": True}]
    for wrong in wrongs:
        with pytest.raises(InputError, match=f"{next(iter(wrong))}: expected a whole number from 1"):
            Limits(**wrong)


def test_free_fields_are_those_whose_type_is_free() -> None:
    """A field that is added to a value with a free type must be listed, or circles would pass."""
    free = set()
    seen: set[type] = set()
    stack: list[type] = [Conversation]
    while stack:
        kind = stack.pop()
        if kind in seen:
            continue
        seen.add(kind)
        for field in msgspec.structs.fields(kind):
            stack += [found for found in _structs_of(field.type) if found not in seen]
            if "Any" in str(field.type):
                free.add(field.name)
    assert free == canonical_json.FREE_FIELDS


def _structs_of(annotation: Any) -> list[type]:
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _structs_of(part)]

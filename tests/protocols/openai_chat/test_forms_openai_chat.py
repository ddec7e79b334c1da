"""Forms of Chat Completions by host: Mistral's chunks, forms that a profile sets, tools of other protocols."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from support.protocols.body_laws import same_json
from support.protocols.messages_openai_chat import BASE, blocks_of, messages_of
from support.protocols.strategies.wire_objects import Fields
from toolglot import Opaque, Text, Thinking, ToolResult, Turn, profiles
from toolglot.conversation import Block, Conversation, Options, Role, Sampling, ToolSpec
from toolglot.protocols.openai_chat import request
from toolglot.protocols.openai_chat.form import ChatThinking

# --- Mistral's chunks -------------------------------------------------------------------------------

CHUNK: Fields = {"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "reference"}], "closed": True}


def test_M3_a_chunk_of_thinking_is_thinking_and_keeps_its_position() -> None:
    content = [{"type": "text", "text": "x"}, {**CHUNK, "signature": "s"}, {"type": "text", "text": "y"}]
    message = {"role": "assistant", "content": content}
    blocks = blocks_of(message)
    assert [(type(block), block.text) for block in blocks] == [(Text, "x"), (Thinking, "a"), (Text, "y")]
    assert blocks[1].signature == "s"
    assert messages_of(*request.decode({"messages": [message]}).turns) == [message]


def test_a_chunk_of_thinking_that_was_changed_is_written_as_it_is_now() -> None:
    (thought,) = blocks_of({"role": "assistant", "content": [CHUNK]})
    changed = Turn("assistant", (replace(thought, text="b"),))
    assert messages_of(changed) == [
        {"role": "assistant", "content": [{**CHUNK, "thinking": [{"type": "text", "text": "b"}]}]}
    ]


@pytest.mark.parametrize("change", [{"thinking": "a"}, {"signature": 3}])
def test_a_chunk_of_another_shape_is_carried(change: Fields) -> None:
    chunk = {**CHUNK, **change}
    assert blocks_of({"role": "assistant", "content": [chunk]}) == (Opaque("openai_chat", chunk, "thinking"),)


# --- forms that a target's profile sets -------------------------------------------------------------


def written_for(target: str, *blocks: Block, role: Role = "assistant", model: str = "") -> Fields:
    made = Conversation((Turn(role, blocks),), options=Options(Sampling(9)))
    return request.encode(made, profiles.get(target, model))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("deepseek", {"reasoning_content": "hm", "content": "x"}),
        ("vllm", {"reasoning": "hm", "content": "x"}),
        ("openrouter", {"reasoning": "hm", "content": "x"}),
        ("openai", {"reasoning_content": "hm", "content": "x"}),
        ("minimax", {"content": "<think>hm</think>x"}),
        (
            "mistral",
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "x"},
                ]
            },
        ),
    ],
)
def test_thinking_from_elsewhere_goes_where_the_target_keeps_it(target: str, message: Fields) -> None:
    assert written_for(target, Thinking("hm"), Text("x"))["messages"] == [{"role": "assistant", **message}]


def test_thinking_with_a_known_field_stays_in_it() -> None:
    thought = Thinking("hm", form=ChatThinking("reasoning"))
    (message,) = written_for("deepseek", thought)["messages"]
    assert message["reasoning"] == "hm"


@pytest.mark.parametrize(
    ("target", "model", "role"),
    [
        ("openai", "gpt-5.1", "developer"),
        ("openai", "gpt-4o", "developer"),  # recorded: older models take it too
        ("mistral", "mistral-large-latest", "system"),
    ],
)
def test_a_developers_turn_has_a_role_that_the_target_knows(target: str, model: str, role: str) -> None:
    assert written_for(target, Text("x"), role="developer", model=model)["messages"] == [{"role": role, "content": "x"}]


@pytest.mark.parametrize(("target", "field"), [("openai", "max_completion_tokens"), ("mistral", "max_tokens")])
def test_a_limit_from_elsewhere_has_the_name_that_the_target_knows(target: str, field: str) -> None:
    assert written_for(target)[field] == 9
    own = request.decode({**BASE, "max_tokens": 5})
    assert request.encode(own, profiles.get(target))["max_tokens"] == 5


# --- tools from elsewhere ---------------------------------------------------------------------------


def test_S2_a_tool_without_parameters_gets_an_empty_schema_unless_it_came_without() -> None:
    (written,) = request.encode(Conversation(tools=(ToolSpec("ping"),)))["tools"]
    assert written["function"] == {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    body = {**BASE, "tools": [{"type": "function", "function": {"name": "ping"}}]}
    assert same_json(request.encode(request.decode(body)), body)


FLAT: Fields = {"type": "grammar", "syntax": "lark", "definition": "start: A"}
NESTED: Fields = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}


@pytest.mark.parametrize(
    ("written", "format"),
    [
        (NESTED, FLAT),
        (FLAT, FLAT),
        ({"type": "text"}, {"type": "text"}),
        ({**NESTED, "x": 1}, {**NESTED, "x": 1}),
        ({"type": "grammar", "grammar": {"type": "x"}}, {"type": "grammar", "grammar": {"type": "x"}}),
    ],
)
def test_S4_the_grammar_of_a_tool_has_one_canonical_form_and_returns_as_it_was(written: Fields, format: Fields) -> None:
    body = {**BASE, "tools": [{"type": "custom", "custom": {"name": "p", "format": written}}]}
    found = request.decode(body)
    assert found.tools[0].format == format
    assert same_json(request.encode(found), body)


def test_S3_a_grammar_from_elsewhere_is_nested() -> None:
    (written,) = request.encode(Conversation(tools=(ToolSpec("p", type="custom", format=FLAT),)))["tools"]
    assert written["custom"]["format"] == NESTED


def test_J1_a_result_that_is_a_value_is_written_as_json() -> None:
    (message,) = messages_of(Turn("tool", (ToolResult("a", result={"a": 1, "b": [1.0]}),)))
    assert message["content"] == '{"a":1,"b":[1.0]}'

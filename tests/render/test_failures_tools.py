"""Failures of classes E and F: tool definitions and arguments as clients send them, for every target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.conversations.broken_conversations import TARGETS
from support.protocols.scripted_requests import PROTOCOLS, A, R, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GEMINI,
    GEMINI_3,
    GPT,
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
from toolglot import Policy, ServerToolError, ToolCall, convert, convert_reply, lint, profiles
from toolglot.conversation import RAW_ARGUMENTS

MISSING = Policy().missing_result


def tool_body(schema: Fields | None, name: str = "t", *, strict: bool | None = None, model: str = GPT[1]) -> Fields:
    function: Fields = {"name": name, "description": "A tool."}
    function |= {"parameters": schema} if schema is not None else {}
    function |= {"strict": strict} if strict is not None else {}
    return {
        "model": model,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": function}],
    }


def declared(body: Fields, protocol: str) -> list[tuple[str, Any]]:
    """The names and schemas of the tools of a body."""
    if protocol == "gemini":
        found = [tool for group in body.get("tools", ()) for tool in group["functionDeclarations"]]
        return [(tool["name"], tool.get("parameters") or tool.get("parametersJsonSchema")) for tool in found]
    if protocol == "bedrock":
        specs = [tool["toolSpec"] for tool in (body.get("toolConfig") or {"tools": []})["tools"]]
        return [(spec["name"], spec["inputSchema"]["json"]) for spec in specs]
    found = [tool.get("function", tool) for tool in body.get("tools", ())]
    return [(tool["name"], tool.get("parameters", tool.get("input_schema"))) for tool in found]


def keys_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield key
            yield from (
                (inner for name in value for inner in keys_of(value[name])) if key == "properties" else keys_of(value)
            )
    elif isinstance(schema, list):
        for value in schema:
            yield from keys_of(value)


# --- E1, E2, E3 ---------------------------------------------------------------------------------------

FREE_FORM: Fields = {"type": "object", "properties": {"m": {"type": "object"}}}
OPTIONAL: Fields = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}


@every_target
@pytest.mark.parametrize("schema", [FREE_FORM, {}, OPTIONAL, None])
def test_E1_strict_only_where_it_keeps_the_schema_and_no_tool_is_uncallable(target: Target, schema: Fields) -> None:
    for strict in (None, True, False):
        out = convert_checked(tool_body(schema, strict=strict), "openai_chat", target)
        ((_, emitted),) = declared(out.body, protocol_of(target))
        tool = out.body["tools"][0] if isinstance(out.body.get("tools"), list) else {}
        is_strict = tool.get("strict") or tool.get("function", {}).get("strict") or False
        map_of = ((emitted or {}).get("properties") or {}).get("m")
        if schema == FREE_FORM and target != GPT:  # a native schema stays
            assert not is_strict
            assert map_of is None or map_of.get("additionalProperties") is not False


def test_E1_a_strict_free_form_map_is_refused_by_openai_and_fixed() -> None:
    body = tool_body(FREE_FORM, strict=True)
    assert any("additionalProperties" in str(found) for found in lint(body, *GPT))
    out = convert_checked(body, "anthropic" if "input_schema" in body else "openai_chat", RESPONSES)
    assert out.body["tools"][0]["strict"] is False
    assert out.report.entries


GEMINI_TROUBLE: Fields = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kind": {"const": "fixed"},
        "maybe": {"type": ["string", "null"]},
        "node": {"$ref": "#/$defs/node"},
        "size": {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 0},
                {"type": "array", "items": {"type": "number", "exclusiveMinimum": 1}},
            ]
        },
        "map": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
    },
    "required": ["kind"],
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "string"}}}},
}


@pytest.mark.parametrize("target", [GEMINI, GEMINI_3, ("vertex", "gemini-3-pro")])
def test_E2_gemini_gets_known_keywords_only_and_the_rest_in_descriptions(target: Target) -> None:
    body = tool_body(GEMINI_TROUBLE)
    out = convert_checked(body, "openai_chat", target)
    ((_, schema),) = declared(out.body, "gemini")
    refused = {"$schema", "$defs", "$ref", "const", "exclusiveMinimum", "propertyNames", "additionalProperties"}
    assert not refused & set(keys_of(schema))
    assert schema["properties"]["kind"]["enum"] == ["fixed"]
    assert schema["properties"]["maybe"].get("nullable") is True
    assert schema["properties"]["maybe"]["type"] in ("string", "STRING")
    assert "[a-z]+" in json.dumps(schema)
    assert_reported(out, action="lowered")


@every_target
def test_E2_E3_every_target_takes_every_hard_schema(target: Target) -> None:
    unions = [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]
    unions.append({"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]})
    conditional = {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["a"]}}
    for schema in (GEMINI_TROUBLE, {"oneOf": unions}, {"anyOf": unions}, {"allOf": [*unions, conditional]}):
        convert_checked(tool_body(schema), "openai_chat", target)


@pytest.mark.parametrize("key", ["oneOf", "anyOf", "allOf"])
def test_E3_a_union_at_the_root_is_an_object_with_both_branches(key: str) -> None:
    branches = [{"type": "object", "properties": {name: {"type": "string"}}, "required": [name]} for name in ("a", "b")]
    body: Fields = {"model": CLAUDE[1], "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    body["tools"] = [{"name": "t", "input_schema": {key: branches, "type": "object"}}]
    assert any("at the top level" in str(found) for found in lint(body, *CLAUDE))
    out = convert_checked(body, "anthropic", CLAUDE)
    schema = out.body["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert set(schema["properties"]) == {"a", "b"}
    assert key not in schema
    assert set(schema.get("required", ())) == ({"a", "b"} if key == "allOf" else set())
    assert_reported(out, action="lowered")


# --- E4, E5, E6, E7 -----------------------------------------------------------------------------------

NASTY = ["a.b/c", "x" * 65, "x" * 130, "smile_🙂", "3d_print", "a b", "ok_name"]


@every_target
def test_E4_names_are_legal_in_tools_choice_and_history_and_come_back_in_the_reply(target: Target) -> None:
    rules = profiles.get(*target).as_known().names
    for source in ("openai_chat", "anthropic", "openai_responses"):
        steps = [
            U(),
            A(*(call(f"c{n}", name) for n, name in enumerate(NASTY))),
            *(R(f"c{n}") for n in range(len(NASTY))),
        ]
        out = convert_checked(request_body(source, *steps, tools=NASTY), source, target)
        names = [name for name, _ in declared(out.body, protocol_of(target))]
        assert len(set(names)) == len(NASTY)
        assert all(len(name) <= rules.max_length for name in names)
        assert [made.name for made in parts_of(out, target).calls] == names
        back = [out.rendered.tools.original_call(ToolCall("x", name, {})).name for name in names]
        assert back == NASTY
        if source != protocol_of(target) and names != NASTY:
            assert_reported(out, action="renamed", fault="projection")


def test_E4_a_reply_calls_the_tool_by_the_clients_name() -> None:
    request = convert(
        request_body("openai_chat", U(), tools=["a.b/c"], model="x"),
        source="openai_chat",
        target="anthropic",
        model=CLAUDE[1],
    )
    ((emitted, _),) = declared(request.body, "anthropic")
    assert emitted != "a.b/c"
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE[1],
        "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": emitted, "input": {"n": 1}}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    back = convert_reply(reply, source="anthropic", target="openai_chat", request=request)
    assert back.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "a.b/c"


@every_target
@pytest.mark.parametrize("names", [["foo/bar", "foo_bar", "foo_bar_2"], ["foo_bar_2", "foo_bar", "foo/bar"]])
def test_E5_sanitised_names_do_not_collide_and_valid_ones_stay(target: Target, names: list[str]) -> None:
    out = convert_checked(request_body("openai_chat", U(), tools=names), "openai_chat", target)
    emitted = [name for name, _ in declared(out.body, protocol_of(target))]
    assert len(set(emitted)) == 3
    assert {"foo_bar", "foo_bar_2"} <= set(emitted)


@every_target
def test_E5_a_tool_that_is_declared_twice_is_sent_once(target: Target) -> None:
    body = request_body("openai_chat", U(), tools=["read", "write", "read"])
    out = convert_checked(body, "openai_chat", target)
    names = [name for name, _ in declared(out.body, protocol_of(target))]
    if profiles.get(*target).as_known().names.unique:
        assert names == ["read", "write"]


@every_target
@pytest.mark.parametrize("source", PROTOCOLS)
def test_E6_a_history_of_calls_without_tools_is_valid(target: Target, source: str) -> None:
    out = convert_checked(
        request_body(source, U(), *exchange(2), A(text="so"), U("Summarise."), tools=()), source, target
    )
    names = declared(out.body, protocol_of(target))
    if profiles.get(*target).tools.required_with_history:
        assert [name for name, _ in names] == ["read"]
        assert "not available" in out.data.decode()
        assert_reported(out, "stubs were added", action="added")
    else:
        assert names == []


@every_target
def test_E7_of_142_tools_the_used_one_stays_and_the_order_too(target: Target) -> None:
    names = [f"tool_{number:03}" for number in range(142)]
    out = convert_checked(
        request_body("anthropic", U(), A(call("c1", names[140])), R("c1"), U("on"), tools=names), "anthropic", target
    )
    emitted = [name for name, _ in declared(out.body, protocol_of(target))]
    limit = profiles.get(*target).tools.max_count or 142
    assert len(emitted) == min(limit, 142)
    assert names[140] in emitted
    assert emitted == sorted(emitted)
    if limit < 142:
        assert_reported(out, "dropped: ", action="dropped")


# --- E8, E9 -------------------------------------------------------------------------------------------

FREE_TEXT = '*** Begin Patch\n-a "quoted" \\ back\n+é 🙂\t{"json": true}\n*** End'


@every_target
def test_E8_a_free_text_tool_and_its_calls_reach_every_target_as_they_are(target: Target) -> None:
    body = request_body("openai_responses", U("go"), model=RESPONSES[1], tools=())
    body["tools"] = [{"type": "custom", "name": "apply_patch", "description": "Patches."}]
    made = {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": FREE_TEXT}
    body["input"] += [made, {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}]
    out = convert_checked(body, "openai_responses", target)
    (seen,) = parts_of(out, target).calls
    assert seen.value in (FREE_TEXT, {"input": FREE_TEXT})
    assert parts_of(out, target).results[0].text.endswith("done")


@every_target
def test_E9_a_hosted_tool_is_refused_or_left_out_and_reported(target: Target) -> None:
    body = request_body("openai_responses", U("go"), model=RESPONSES[1])
    body["tools"].append({"type": "code_interpreter", "container": {"type": "auto"}})
    if protocol_of(target) == "openai_responses":
        assert "code_interpreter" in convert_checked(body, "openai_responses", target).data.decode()
        return
    with pytest.raises(ServerToolError, match=r"tools\[3\]"):
        convert_checked(body, "openai_responses", target)
    out = convert_checked(body, "openai_responses", target, policy=Policy(server_tools="drop"))
    assert "code_interpreter" not in out.data.decode()
    assert_reported(out, "code_interpreter", action="dropped", fault="policy")


@every_target
def test_E9_a_web_search_is_the_targets_own_or_refused(target: Target) -> None:
    body = request_body("openai_responses", U("go"), model=RESPONSES[1])
    body["tools"].append({"type": "web_search"})
    own = profiles.get(*target).tools
    if own.web_search and own.search_with_functions:
        assert own.web_search in convert_checked(body, "openai_responses", target).data.decode()
        return
    with pytest.raises(ServerToolError, match=r"tools\[3\]"):
        convert_checked(body, "openai_responses", target)


@pytest.mark.parametrize("target", [t for t in TARGETS if protocol_of(t) != "openai_responses"])
def test_E9_a_namespace_is_flattened_for_targets_without_them(target: Target) -> None:
    body = request_body("openai_responses", U("go"), model=RESPONSES[1], tools=("read",))
    inner = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
    body["tools"].append({"type": "namespace", "name": "files", "description": "Files.", "tools": [inner]})
    out = convert_checked(body, "openai_responses", target)
    names = [name for name, _ in declared(out.body, protocol_of(target))]
    assert len(set(names)) == 2
    assert "read" in names


# --- F ------------------------------------------------------------------------------------------------

CUT = '{"command": ["ls", "pwd"]}'


@every_target
def test_F1_arguments_cut_at_any_byte_never_break_the_request_nor_become_a_call(target: Target) -> None:
    for length in range(1, len(CUT)):
        for answered in (True, False):
            steps = [U(), A(call("c1", "read", CUT[:length])), *([R("c1", "printed 1")] if answered else []), U("on")]
            out = convert_checked(request_body("openai_chat", *steps), "openai_chat", target)
            answer = "printed 1" if answered else MISSING
            if target == GPT:  # native arguments stay as the model wrote them
                assert out.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == CUT[:length]
                assert answer in out.body["messages"][2]["content"]
                continue
            (made,) = parts_of(out, target).calls
            assert isinstance(made.value, dict)
            assert "command" not in made.value
            assert answer in parts_of(out, target).results[0].text


def test_F1_truncated_arguments_are_reported() -> None:
    out = convert_checked(
        request_body("openai_chat", U(), A(call("c1", "read", '{"a": ')), U("on")), "openai_chat", CLAUDE
    )
    (made,) = parts_of(out, CLAUDE).calls
    assert made.value == {RAW_ARGUMENTS: '{"a": '}
    assert_reported(out, "not a JSON object", action="converted", fault="canonical")


@every_target
def test_F2_a_doubly_encoded_object_is_unwrapped_and_a_nested_one_is_left_alone(target: Target) -> None:
    whole, nested = json.dumps('{"a":1}'), {"todos": "[1]", "s": "{oops}"}
    steps = [U(), A(call("c1", "read", whole), call("c2", "read", nested)), R("c1"), R("c2"), U("on")]
    parts = parts_of(convert_checked(request_body("openai_chat", *steps), "openai_chat", target), target)
    assert parts.calls[1].value == nested
    if target != GPT:
        assert parts.calls[0].value == {"a": 1}


@every_target
@pytest.mark.parametrize("written_as", ["", "null", "{}", "[]", '"x"', "7"])
def test_F3_arguments_are_an_object_on_the_wire_and_nothing_else_becomes_an_empty_one(
    target: Target, written_as: str
) -> None:
    out = convert_checked(
        request_body("openai_chat", U(), A(call("c1", "read", written_as)), R("c1"), U("on")), "openai_chat", target
    )
    if target == GPT:  # which takes any text from its own clients
        assert out.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == written_as
        return
    (made,) = parts_of(out, target).calls
    assert isinstance(made.value, dict)
    assert (made.value == {}) == (written_as in ("", "null", "{}"))
    if made.value:
        assert made.value == {RAW_ARGUMENTS: written_as}
        assert_reported(out, "not a JSON object", action="converted")


@every_target
def test_F4_arguments_are_written_as_the_target_wants_them(target: Target) -> None:
    out = convert_checked(request_body("anthropic", U(), *exchange(1)), "anthropic", target)
    if protocol_of(target) in ("openai_chat", "cohere", "ollama"):
        (made,) = next(message["tool_calls"] for message in out.body["messages"] if message.get("tool_calls"))
        expected = dict if profiles.get(*target).calls.arguments == "object" else str
        assert isinstance(made["function"]["arguments"], expected)


@every_target
@pytest.mark.parametrize("text", ["a}{b", '{"x":"}{"}', "]}[{", "{'single': 1}", "\\\\n"])
def test_F5_valid_strings_are_never_reshaped(target: Target, text: str) -> None:
    arguments = {"code": text, "nested": {"deep": [text]}}
    for source in PROTOCOLS:
        out = convert_checked(
            request_body(source, U(), A(call("c1", "read", arguments)), R("c1", text), U("on")), source, target
        )
        parts = parts_of(out, target)
        assert parts.calls[0].value == arguments
        assert text in parts.results[0].text or text in json.loads(json.dumps(parts.results[0].text))


def test_F_valid_native_calls_keep_the_exact_text_of_their_arguments() -> None:
    body = request_body("openai_chat", U(), A(call("c1", "read", '{ "n" : 1.0 }')), R("c1"), model=GPT[1])
    assert_forwarded(body, GPT)
    assert not entries_about(convert_checked(body, "openai_chat", GPT))

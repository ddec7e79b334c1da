"""Namespaces of the OpenAI Responses protocol: each tool on its own here, and the same document when encoded again."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from support.protocols.body_laws import same_json
from toolglot import InputError, Issuer, ToolCall, ToolSpec, Turn
from toolglot.conversation import Conversation
from toolglot.protocols.openai_responses import request


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "strict": False, **more}


def namespace(name: str, *tools: Any, **more: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": list(tools), **more}


def tools_of(*tools: dict[str, Any]) -> tuple[ToolSpec, ...]:
    """The tools of a body, which must come back as they were."""
    body = {"model": "m", "input": "", "tools": list(tools)}
    found = request.decode(body)
    assert same_json(request.encode(found), body)
    return found.tools


def test_each_tool_of_a_namespace_is_a_tool_of_its_own() -> None:
    patch = {"type": "custom", "name": "patch", "format": {"type": "text"}}
    found = tools_of(
        function("alone"),
        namespace("crm", function("find", description="d", parameters={"type": "object"}), patch, description="n"),
        {"type": "web_search"},
    )
    assert [(tool.namespace, tool.name, tool.type) for tool in found] == [
        (None, "alone", "function"),
        ("crm", "find", "function"),
        ("crm", "patch", "custom"),
        (None, "", "web_search"),
    ]
    assert (found[1].description, found[1].parameters, found[1].strict) == ("d", {"type": "object"}, False)
    assert found[2].format == {"type": "text"}


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ([namespace("a", function("f")), namespace("a", function("g"))], ["a", "a"]),
        (
            [namespace("a", function("f"), description="x"), function("g"), namespace("a", function("h"))],
            ["a", None, "a"],
        ),
        ([namespace("a", function("f")), namespace("a"), namespace("a", function("g"))], ["a", None, "a"]),
        ([namespace("a", {"type": "later", "name": "x", "y": [1]}, function("g"))], ["a", "a"]),
        ([namespace("a", namespace("b", function("f"), description="n"), description=None)], ["a"]),
        ([namespace("", function("f"), description=None, later={"~x": None})], [""]),
        ([namespace("a", function("f", description=None, defer_loading=True), **{"~y": 1})], ["a"]),
        ([{"type": "namespace", "name": "a"}, {"type": "namespace", "name": "a", "tools": None}], [None, None]),
    ],
)
def test_law_3_namespaces_come_back_as_they_were(tools: list[dict[str, Any]], names: list[str | None]) -> None:
    assert [tool.namespace for tool in tools_of(*tools)] == names


SCHEMA = {"type": "object"}
OTHERS = ["anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat"]


def written_by(protocol: str, *tools: ToolSpec) -> list[Any]:
    """What another protocol writes of these tools, each entry of a list apart."""
    body = importlib.import_module(f"toolglot.protocols.{protocol}.request").encode(Conversation(tools=tools))
    found = body.get("toolConfig", body).get("tools", [])
    declared: list[Any] = found[0]["functionDeclarations"] if protocol == "gemini" and found else found
    return declared


@pytest.mark.parametrize("protocol", OTHERS)
def test_an_empty_namespace_is_carried_and_goes_nowhere_else(protocol: str) -> None:
    (found,) = tools_of(namespace("a", description="n"))
    assert (found.type, found.name, found.description, found.issuer) == ("namespace", "a", "n", None)
    assert written_by(protocol, found) == []


def test_tools_of_a_namespace_made_elsewhere_are_written_in_it() -> None:
    made = (
        ToolSpec("f", parameters=SCHEMA, namespace="a"),
        ToolSpec("w", type="web_search_20250305", namespace="a", issuer=Issuer("anthropic")),
        ToolSpec("g", type="custom", namespace="a"),
        ToolSpec("h", parameters=SCHEMA, namespace="b"),
        ToolSpec("i", parameters=SCHEMA),
        ToolSpec("j", parameters=SCHEMA, namespace="b"),
    )
    assert request.encode(Conversation(tools=made))["tools"] == [
        namespace("a", function("f", parameters=SCHEMA), {"type": "custom", "name": "g"}, description="a"),
        namespace("b", function("h", parameters=SCHEMA), description="b"),
        function("i", parameters=SCHEMA),
        namespace("b", function("j", parameters=SCHEMA), description="b"),
    ]


@pytest.mark.parametrize("protocol", OTHERS)
def test_other_protocols_write_the_tools_of_a_namespace_as_any_other(protocol: str) -> None:
    tools = tools_of(namespace("a", function("f"), function("g"), description="n"))
    alone = tools_of(function("f"), function("g"))
    assert written_by(protocol, *tools) == written_by(protocol, *alone)
    assert len(written_by(protocol, *tools)) == 2


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        (namespace("a", 1), r"\.tools\[0\]\.tools\[0\]: expected an object"),
        (namespace("a", function("f"), {"name": "g"}), r"\.tools\[0\]\.tools\[1\]\.type: "),
        ({"type": "namespace", "tools": [function("f")]}, r"\.tools\[0\]\.name: "),
        ({"type": "namespace", "name": "a", "tools": {}}, r"\.tools\[0\]\.tools: "),
    ],
)
def test_a_namespace_of_the_wrong_shape_is_refused(tool: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError, match=r"\$" + path):
        request.decode({"model": "m", "input": "", "tools": [tool]})


def test_a_call_has_the_namespace_of_its_tool() -> None:
    items = [
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}", "namespace": "crm"},
        {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "x", "namespace": "crm"},
        {"type": "function_call", "call_id": "d", "name": "f", "arguments": "{}", "namespace": None},
    ]
    body = {"model": "m", "input": items}
    found = request.decode(body)
    assert [made.namespace for made in found.turns[0].calls] == ["crm", "crm", None]
    assert same_json(request.encode(found), body)
    made = Turn("assistant", (ToolCall("c", "f", {}, namespace="a"),))
    assert request.encode(Conversation((made,)))["input"] == [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "a"}
    ]

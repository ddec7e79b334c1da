"""Definitions of tools, and the box that holds them."""

from __future__ import annotations

import datetime
import subprocess
import sys
import threading
from typing import Any

import pytest

from support.sessions.typed_tools import (
    Counter,
    Extra,
    Level,
    Mixed,
    ModelNode,
    Node,
    Place,
    Point,
    Window,
    run,
)
from toolglot import InputError, ToolSpec, lint, request_for
from toolglot.conversation import Conversation, Text, Turn
from toolglot.runtime.tools.toolbox import Output, ToolBox, ToolContext, define, tool

# --- definitions ----------------------------------------------------------------------------------


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "description": "The weather.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "definition",
    [
        ToolSpec("weather", "The weather.", SCHEMA),
        {"type": "function", "function": FUNCTION},
        {"function": FUNCTION},
        {"type": "function", **FUNCTION},
        FUNCTION,
        {"name": "weather", "description": "The weather.", "input_schema": SCHEMA},
        {"type": "custom", "name": "weather", "description": "The weather.", "input_schema": SCHEMA},
        {"functionDeclarations": [FUNCTION]},
        {"function_declarations": [FUNCTION]},
        {"name": "weather", "description": "The weather.", "parametersJsonSchema": SCHEMA},
        {"toolSpec": {"name": "weather", "description": "The weather.", "inputSchema": {"json": SCHEMA}}},
        {"name": "weather", "description": "The weather.", "inputSchema": SCHEMA, "annotations": {}},
    ],
)
def test_a_definition_of_any_protocol_is_the_same_tool(definition: Any) -> None:
    made = define(definition)
    assert (made.spec.name, made.spec.description, made.spec.parameters) == ("weather", "The weather.", SCHEMA)
    assert made.run is None
    assert made.spec.issuer is None
    assert ToolBox([definition]).find("weather") == made


def test_geminis_own_types_and_tools_that_a_provider_types_are_read() -> None:
    shouted = {"name": "weather", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}
    assert define(shouted).name == "weather"
    bash = define({"type": "bash_20250124", "name": "bash"}, lambda arguments: arguments["command"])
    assert bash.name == "bash"
    assert run(bash, command="ls") == "ls"
    assert define({"type": "custom", "name": "patch"}).spec.type == "custom"


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("weather", "expected a tool definition, got 'weather'"),
        ({}, "expected"),
        ({"type": "function", "function": {}}, "name"),
        ({"toolSpec": {"name": 1}}, "name"),
        ({"inputSchema": {}}, r"\$\.name: expected a string"),
        ({"name": "x", "inputSchema": 1}, r"\$\.inputSchema: expected a JSON schema"),
        ({"name": "x", "inputSchema": {}, "description": 1}, r"\$\.description: expected a string"),
        ({"functionDeclarations": []}, "expected a tool with a name"),
        ({"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, "expected one tool, got 2"),
        ({"type": "web_search"}, "expected a tool with a name"),
    ],
)
def test_a_definition_that_is_none_is_refused(definition: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        define(definition)


def test_a_handler_gets_the_arguments_and_the_context_if_it_takes_it() -> None:
    async def asynchronous(arguments: dict[str, Any], context: ToolContext) -> Any:
        return [arguments, context.call_id]

    def plain(arguments: dict[str, Any]) -> Any:
        return [arguments, threading.current_thread() is threading.main_thread()]

    context = ToolContext(call_id="id")
    assert run(define(FUNCTION, asynchronous), context, city="Oslo") == [{"city": "Oslo"}, "id"]
    assert run(define(FUNCTION, plain), context, city="Oslo") == [{"city": "Oslo"}, False]
    assert run(define(FUNCTION, dict), city="Oslo") == {"city": "Oslo"}
    with pytest.raises(InputError, match="expected a function"):
        define(FUNCTION, "run")  # type: ignore[arg-type]


def test_marks_of_a_definition_are_kept() -> None:
    made = define(FUNCTION, dict, side_effects=False, idempotent=True, timeout=1, on_timeout="error", approval=True)
    assert (made.side_effects, made.idempotent, made.timeout) == (False, True, 1)
    assert (made.on_timeout, made.approval, made.resources) == ("error", True, None)


# --- the box --------------------------------------------------------------------------------------


def test_a_box_keeps_its_order_and_its_names() -> None:
    def first() -> None: ...

    box = ToolBox([first, FUNCTION, {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}])
    assert [spec.name for spec in box.specs] == ["first", "weather", "a", "b"]
    (added,) = box.add(tool(first, name="last"))
    assert box.find("last") is added
    new = tool(first, name="weather")
    box.replace(new)
    assert [held.name for held in box] == ["first", "weather", "a", "b", "last"]
    assert box.find("weather") is new
    assert box.remove("a").name == "a"
    assert box.find("a") is None
    assert "a" not in box
    assert len(box) == 4
    assert repr(box) == "ToolBox(['first', 'weather', 'b', 'last'])"


def test_a_name_is_one_tool_and_a_refused_batch_changes_nothing() -> None:
    box = ToolBox([FUNCTION])
    with pytest.raises(InputError, match="there is a tool named 'weather' already"):
        box.add(ToolSpec("new"), FUNCTION)
    with pytest.raises(InputError, match="there is a tool named 'new' already"):
        box.add(ToolSpec("new"), ToolSpec("new"))
    assert [held.name for held in box] == ["weather"]
    for change in (lambda: box.remove("none"), lambda: box.replace(define(ToolSpec("none")))):
        with pytest.raises(InputError, match="there is no tool named 'none'"):
            change()


@pytest.mark.parametrize("value", ["weather", FUNCTION, ToolSpec("x"), 3, [3], [["x"]]])
def test_what_is_no_list_of_tools_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        ToolBox(value)


def test_no_package_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, toolglot; assert not {'anyio', 'mcp', 'docstring_parser'} & {*sys.modules}\n"
        "import toolglot.runtime.mcp.config; assert not {'mcp', 'pydantic', 'httpx2'} & {*sys.modules}"
    )
    answered = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answered.returncode == 0, answered.stderr


def test_an_output_and_an_error_are_what_they_say() -> None:
    assert Output("text") == Output("text", is_error=False, result=None)
    context = ToolContext()
    context.progress("no listener")
    assert not context.cancelled.is_set()


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-4.1"),
        ("openai_responses", "gpt-5.5"),
        ("gemini", "gemini-3-pro"),
        ("mistral", "mistral-large-latest"),
    ],
)
def test_every_provider_accepts_the_tools(target: str, model: str) -> None:
    @tool(strict=True)
    def take(
        place: Place,
        window: Window,
        extra: Extra,
        point: Point,
        mixed: Mixed,
        when: datetime.datetime,
        tree: Node,
        model: ModelNode,
        either: list[int] | list[str] | Place,
        level: Level = Level.LOW,
        any_thing: Any = None,
        **rest: int,
    ) -> None:
        """Takes all there is."""

    box = ToolBox([take, Counter().add, FUNCTION])
    conversation = Conversation((Turn("user", (Text("?"),)),), box.specs)
    assert lint(request_for(conversation, target=target, model=model).body, target=target) == ()

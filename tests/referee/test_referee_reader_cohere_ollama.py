"""The referee's readers of the protocols of Cohere and Ollama."""

from __future__ import annotations

from typing import Any

import pytest

from support.referee.reader_views import read, shapes, summarise_messages, summarise_tools
from toolglot.referee.view import ToolView

# --- Cohere and Ollama ------------------------------------------------------------------------------


def test_cohere_messages_tools_and_settings() -> None:
    view = read(
        "cohere",
        {
            "model": "command-a",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Go", "q": 1},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                        {"type": "image_url", "image_url": {"url": "https://e/a.png", "z": 1}},
                    ],
                },
                {
                    "role": "assistant",
                    "tool_plan": "Plan",
                    "content": [{"type": "thinking", "thinking": "Hm"}],
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "a", "content": ""},
                {
                    "role": "tool",
                    "tool_call_id": "b",
                    "content": [{"type": "document", "document": {"data": {}}, "w": 1}],
                },
                {"role": "user", "content": "", "name": "ana"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}, "y": 1}],
            "tool_choice": "REQUIRED",
            "max_tokens": 5,
            "p": 0.5,
            "k": 3,
            "seed": None,
            "thinking": {"type": "enabled", "token_budget": 9},
            "response_format": {"type": "json_object"},
        },
    )
    assert view.shapes == ()
    assert summarise_messages(view) == [
        ("system", "$.messages[0]", ["text - $.messages[0].content Be brief."]),
        (
            "user",
            "$.messages[1]",
            [
                "text text $.messages[1].content[0] Go",
                "media image_url $.messages[1].content[1] image data",
                "media image_url $.messages[1].content[2] image url",
            ],
        ),
        (
            "assistant",
            "$.messages[2]",
            [
                "thinking thinking $.messages[2].content[0] Hm",
                "other tool_plan $.messages[2].tool_plan Plan",
                "call function $.messages[2].tool_calls[0] a f",
            ],
        ),
        ("tool", "$.messages[3]", ["result tool $.messages[3] a < text - $.messages[3].content >"]),
        ("tool", "$.messages[4]", ["result tool $.messages[4] b < other document $.messages[4].content[0] >"]),
        ("user", "$.messages[5]", []),
    ]
    assert view.messages[5].is_empty_string
    assert view.messages[5].extra_fields == ("name",)
    assert view.messages[1].items[0].extra_fields == ("q",)
    assert view.extra_paths == ("$.messages[1].content[2].image_url.z", "$.messages[4].content[0].w")
    assert view.tools == (
        ToolView(
            path="$.tools[0]",
            name="f",
            type="function",
            description="d",
            schema={},
            schema_path="$.tools[0].function.parameters",
            schema_field="parameters",
            extra_fields=("y",),
        ),
    )
    assert view.choice is not None
    assert view.choice.mode == "required"
    assert {name: setting.path for name, setting in view.sampling.items()} == {"top_p": "$.p", "top_k": "$.k"}
    found = (view.max_tokens, view.thinking_mode, view.budget, view.output)
    assert [setting and (setting.path, setting.value) for setting in found] == [
        ("$.max_tokens", 5),
        ("$.thinking.type", "on"),
        ("$.thinking.token_budget", 9),
        ("$.response_format", "json"),
    ]
    schema = {"messages": [], "response_format": {"type": "json_object", "json_schema": {}}}
    assert (read("cohere", schema).output or view.output).value == "json_schema"  # type: ignore[union-attr]


def test_cohere_shapes() -> None:
    body = {
        "messages": [
            {"role": "developer", "content": "x"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "content": 7},
            {"role": "user", "content": [{"type": "file"}]},
            "x",
        ],
        "tools": [{"type": "web_search", "function": {"name": "f"}}],
        "tool_choice": {"name": "f"},
        "thinking": {"type": 7},
        "k": 0.5,
    }
    assert shapes("cohere", body) == [
        ("$.model", ""),
        ("$.messages[0].role", ""),
        ("$.messages[1].tool_calls[0].id", "cohere-id-required"),
        ("$.messages[1].tool_calls[0].function.arguments", ""),
        ("$.messages[2].tool_call_id", "cohere-id-required"),
        ("$.messages[2].content", ""),
        ("$.messages[3].content[0].type", ""),
        ("$.messages[4]", ""),
        ("$.tools[0].type", "cohere-tools-server"),
        ("$.tools[0].function.parameters", "cohere-tools-schema-required"),
        ("$.tool_choice", "cohere-choice-modes"),
        ("$.thinking.type", ""),
        ("$.k", ""),
    ]
    view = read("cohere", body)
    assert [message.path for message in view.messages] == ["$.messages[1]", "$.messages[2]", "$.messages[3]"]
    assert view.choice is None


def test_ollama_messages_tools_and_settings() -> None:
    view = read(
        "ollama",
        {
            "model": "qwen3",
            "messages": [
                {"role": "System", "content": "Be brief."},
                {"role": "user", "content": "Go", "images": ["AA==", 7], "q": 1},
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "Hm",
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}, "z": 1}],
                },
                {"role": "tool", "content": "done", "tool_name": "f", "tool_call_id": "a", "images": ["AA=="]},
                {"role": "narrator", "content": "So"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}, "strict": True}}
            ],
            "options": {"num_predict": 5, "temperature": 0, "stop": ["a"], "new": 1},
            "format": {"type": "object"},
            "think": True,
        },
    )
    assert [shape.path for shape in view.shapes] == ["$.messages[1].images[1]"]
    assert summarise_messages(view) == [
        ("system", "$.messages[0]", ["text - $.messages[0].content Be brief."]),
        (
            "user",
            "$.messages[1]",
            ["text - $.messages[1].content Go", "media images $.messages[1].images[0] image data"],
        ),
        (
            "assistant",
            "$.messages[2]",
            ["thinking thinking $.messages[2].thinking Hm", "call function $.messages[2].tool_calls[0] a f"],
        ),
        (
            "tool",
            "$.messages[3]",
            [
                (
                    "result tool $.messages[3] a f < text - $.messages[3].content done >"
                    " < media images $.messages[3].images[0] image data >"
                )
            ],
        ),
        ("user", "$.messages[4]", ["text - $.messages[4].content So"]),
    ]
    assert view.messages[2].is_empty_string
    assert view.messages[2].items[1].arguments == {"x": 1}
    assert (view.messages[1].extra_fields, view.messages[2].items[1].extra_fields) == (("q",), ("z",))
    assert view.extra_paths == ("$.options.new",)
    assert summarise_tools(view) == [("function", "$.tools[0]", "f", "$.tools[0].function.parameters")]
    assert view.tools is not None
    assert view.tools[0].strict is True
    assert list(view.sampling) == ["temperature", "stop"]
    found = (view.max_tokens, view.thinking_mode, view.effort, view.output)
    assert [setting and (setting.path, setting.value) for setting in found] == [
        ("$.options.num_predict", 5),
        ("$.think", "on"),
        None,
        ("$.format", "json_schema"),
    ]


@pytest.mark.parametrize(
    ("think", "mode", "effort"), [(False, "off", None), ("high", None, "high"), (None, None, None)]
)
def test_ollama_think_is_a_switch_or_a_level(think: Any, mode: str | None, effort: str | None) -> None:
    view = read("ollama", {"model": "m", "think": think, "format": "json", "options": {"num_predict": -1}})
    assert (view.thinking_mode and view.thinking_mode.value) == mode
    assert (view.effort and view.effort.value) == effort
    assert view.output is not None
    assert view.output.value == "json"
    assert view.max_tokens is None, "a negative number is no limit"
    assert view.shapes == ()


def test_ollama_shapes() -> None:
    body = {
        "model": "",
        "messages": [{"content": "x"}, {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}, {}]}],
        "options": {"temperature": "hot", "seed": 1.5},
        "format": "xml",
        "keep_alive": [],
        "think": 7,
    }
    assert shapes("ollama", body) == [
        ("$.model", ""),
        ("$.messages[0].role", ""),
        ("$.messages[1].tool_calls[0].function.name", ""),
        ("$.messages[1].tool_calls[0].function.arguments", ""),
        ("$.messages[1].tool_calls[1].function", ""),
        ("$.options.temperature", ""),
        ("$.options.seed", ""),
        ("$.format", ""),
        ("$.keep_alive", ""),
        ("$.think", ""),
    ]

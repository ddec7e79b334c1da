"""The referee's reader of the OpenAI Responses protocol."""

from __future__ import annotations

from typing import Any

import pytest

from support.referee.mutated_bodies import Body
from support.referee.reader_views import read, shapes, summarise_messages, summarise_tools
from toolglot.referee.view import Message, PartView

# --- Responses --------------------------------------------------------------------------------------


def test_responses_runs_of_the_models_items_and_of_results_are_one_message_each() -> None:
    view = read(
        "openai_responses",
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": "Go on."},
                {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}], "content": []},
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
                {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "p", "input": "x"},
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
                {"type": "function_call_output", "call_id": "a", "output": "", "name": "f"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "ok"}]},
                {"type": "shell_call_output", "call_id": "c", "output": []},
                {"role": "assistant", "content": "Done"},
                {"id": "msg_1"},
                {"role": "user", "content": ""},
                {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            ],
        },
    )
    assert view.system == Message(
        role="system", path="$.instructions", items=(PartView(kind="text", path="$.instructions", text="Be brief."),)
    )
    assert summarise_messages(view) == [
        ("developer", "$.input[0]", ["text - $.input[0].content Go on."]),
        ("user", "$.input[1]", ["text input_text $.input[1].content[0] Look"]),
        (
            "assistant",
            "$.input[2]",
            [
                "thinking reasoning $.input[2] rs_1 Hm",
                "other refusal $.input[3].content[0] No",
                "call function_call $.input[4] a fc_1 f",
                "call custom_tool_call $.input[5] b p custom",
                "server web_search_call $.input[6] ws_1",
            ],
        ),
        (
            "tool",
            "$.input[7]",
            [
                "result function_call_output $.input[7] a f < text - $.input[7].output >",
                "result custom_tool_call_output $.input[8] b custom < text input_text $.input[8].output[0] ok >",
                "result shell_call_output $.input[9] c custom",
            ],
        ),
        ("assistant", "$.input[10]", ["text - $.input[10].content Done", "other item_reference $.input[11] msg_1"]),
        ("user", "$.input[12]", []),
        ("user", "$.input[13]", ["other mcp_approval_response $.input[13]"]),
        ("assistant", "$.input[14]", ["thinking reasoning $.input[14] gAAA"]),
    ]
    assert [message.is_empty_string for message in view.messages] == [False] * 5 + [True, False, False]
    assert view.messages_path == "$.input"
    assert view.messages[2].items[2].arguments == "{}"
    assert view.messages[2].items[3].arguments == "x"
    assert view.is_continued, "the item reference stands for what the server holds"
    assert view.shapes == ()


def test_responses_a_text_is_a_user_message_and_other_fields_are_settings() -> None:
    view = read(
        "openai_responses",
        {
            "model": "gpt-5.5",
            "input": "Go",
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "parameters": {"type": "object"},
                    "strict": False,
                    "description": "d",
                },
                {"type": "custom", "name": "c"},
                {
                    "type": "namespace",
                    "name": "n",
                    "description": "d",
                    "tools": [{"type": "function", "name": "g", "x": 1}, {"type": "mcp"}],
                },
                {"type": "web_search", "y": 1},
            ],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}, {}]},
            "parallel_tool_calls": False,
            "max_output_tokens": 64,
            "temperature": 1,
            "top_p": None,
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
            "user": "ana",
            "stop": ["x"],
        },
    )
    assert summarise_messages(view) == [("user", "$.input", ["text - $.input Go"])]
    assert summarise_tools(view) == [
        ("function", "$.tools[0]", "f", "$.tools[0].parameters"),
        ("custom", "$.tools[1]", "c", ""),
        ("namespace", "$.tools[2]", "n", ""),
        ("server", "$.tools[3]", None, ""),
    ]
    assert view.tools is not None
    assert view.tools[0].strict is False
    assert [member.path for member in view.tools[2].members] == ["$.tools[2].tools[0]"]
    assert view.tools[3].extra_fields == ("y",)
    assert view.extra_paths == ("$.tools[2].tools[0].x",)
    assert view.extra_fields == ("stop",)
    assert view.choice is not None
    assert (view.choice.mode, view.choice.names) == ("allowed", ("f",))
    assert view.parallel is not None
    assert view.parallel.value is False
    assert view.max_tokens is not None
    assert (view.max_tokens.path, view.max_tokens.value, view.max_tokens_field) == (
        "$.max_output_tokens",
        64,
        "max_output_tokens",
    )
    assert [(name, setting.path) for name, setting in view.sampling.items()] == [("temperature", "$.temperature")]
    assert view.effort is not None
    assert (view.effort.path, view.effort.value) == ("$.reasoning.effort", "low")
    assert view.output is not None
    assert (view.output.path, view.output.value) == ("$.text.format", "json_schema")
    assert view.user is not None
    assert not view.is_continued
    assert shapes(
        "openai_responses", {"input": "Go", "tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}
    ) == [
        ("$.tools[0].name", ""),
        ("$.tools[0].description", ""),
        ("$.tools[0].tools[0].type", ""),
    ]


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ("required", "required", ()),
        ({"type": "function", "name": "f"}, "named", ("f",)),
        ({"type": "custom", "name": "c"}, "named", ("c",)),
        ({"type": "web_search_preview"}, "named", ()),
        ({"type": "mcp", "server_label": "s", "name": "read"}, "named", ()),
    ],
)
def test_responses_choice(choice: Any, mode: str, names: tuple[str, ...]) -> None:
    view = read("openai_responses", {"input": "Go", "tool_choice": choice})
    assert view.choice is not None
    assert (view.choice.mode, view.choice.names, view.shapes) == (mode, names, ())


def test_responses_media() -> None:
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_file", "file_url": "https://example.com/A.PDF"},
        {"type": "input_file", "filename": "a.zip", "file_data": "AA=="},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "input_image"},
    ]
    view = read("openai_responses", {"input": [{"role": "user", "content": parts}]})
    assert [(item.media, item.source) for item in view.messages[0].items] == [
        ("image", "data"),
        ("image", "url"),
        ("image", "file"),
        ("document", "data"),
        ("document", "url"),
        ("file", "data"),
        ("file", "file"),
        ("image", ""),
    ]


def test_responses_unknown_fields_are_listed_with_their_paths() -> None:
    items: list[Body] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a", "q": 1}], "name": "ana"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "z": 1},
        {"role": "assistant", "content": "b", "w": 1},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "a", "v": 1}]},
    ]
    view = read("openai_responses", {"input": items})
    assert view.messages[0].extra_fields == ("name",)
    assert view.messages[0].items[0].extra_fields == ("q",)
    assert view.messages[1].items[0].extra_fields == ("z",)
    assert view.extra_paths == ("$.input[2].w", "$.input[3].output[0].v")
    assert view.shapes == ()


def test_responses_shapes() -> None:
    items: list[Any] = [
        7,
        {"type": "no_such_item"},
        {"type": "function_call", "name": 7, "arguments": {}},
        {"role": "bot", "content": "x"},
        {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "a"}, "b"]},
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": "x"},
        {"role": "user"},
    ]
    assert shapes("openai_responses", {"input": items, "tools": {}, "tool_choice": ["f"]}) == [
        ("$.input[0]", ""),
        ("$.input[1].type", ""),
        ("$.input[2].call_id", "openai-responses-id-required"),
        ("$.input[2].name", ""),
        ("$.input[2].arguments", ""),
        ("$.input[3].role", ""),
        ("$.input[4].content[0].type", "openai-responses-role-content"),
        ("$.input[5].content[0].type", "openai-responses-role-content"),
        ("$.input[5].content[1]", ""),
        ("$.input[6].id", ""),
        ("$.input[7].role", ""),
        ("$.input[8].content", ""),
        ("$.tools", ""),
        ("$.tool_choice", ""),
    ]

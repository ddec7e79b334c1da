"""Requests of the OpenAI SDK, Responses."""

from __future__ import annotations

from typing import Final

from openai import OpenAI
from openai.types.responses import FunctionToolParam, ResponseInputItemParam

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, BIG, HARD_TEXT, NESTED, PDF, PNG, WEATHER

MODEL: Final = "gpt-5.5"
TOOL: Final[FunctionToolParam] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather",
    "parameters": WEATHER,
    "strict": False,
}
HISTORY: Final[list[ResponseInputItemParam]] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "What is the weather in Köln?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Two cities."}],
        "encrypted_content": "gAAAAenc",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_A",
        "name": "get_weather",
        "arguments": '{"city": "K\\u00f6ln"}',
        "status": "completed",
    },
    {"type": "function_call", "call_id": "call_B", "name": "get_weather", "arguments": '{"days":1.0}'},
    {"type": "function_call_output", "call_id": "call_A", "output": "7 °C"},
    {"type": "function_call_output", "id": "fco_1", "call_id": "call_B", "output": "", "status": "incomplete"},
]


def plain(client: OpenAI) -> object:
    return client.responses.create(model=MODEL, input="What is the weather in Köln?")


def instructions(client: OpenAI) -> object:
    return client.responses.create(model=MODEL, instructions=HARD_TEXT, input=[{"role": "user", "content": HARD_TEXT}])


def media(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input=[
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Compare."},
                    {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"},
                    {"type": "input_image", "detail": "low", "image_url": "https://example.com/a.png"},
                    {"type": "input_image", "detail": "high", "file_id": "file-1"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                    {"type": "input_file", "file_id": "file-2"},
                ],
            }
        ],
    )


def tools_of_every_kind(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        tools=[
            {**TOOL, "strict": True},
            {"type": "function", "name": "query", "parameters": NESTED, "strict": None, "defer_loading": True},
            {"type": "custom", "name": "free", "format": {"type": "text"}},
            {
                "type": "custom",
                "name": "apply_patch",
                "description": "A patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+'},
            },
            {
                "type": "namespace",
                "name": "files",
                "description": "Files",
                "tools": [{"type": "function", "name": "read", "parameters": WEATHER, "strict": False}],
            },
            {"type": "tool_search", "execution": "server"},
            {"type": "web_search", "filters": {"allowed_domains": ["example.com"]}, "search_context_size": "low"},
            {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "image_generation", "size": "1024x1024"},
            {"type": "local_shell"},
            {"type": "shell"},
            {"type": "apply_patch"},
            {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "browser"},
            {
                "type": "mcp",
                "server_label": "files",
                "server_url": "https://mcp.example.com",
                "require_approval": "never",
                "allowed_tools": ["read"],
                "headers": {"x-a": "b"},
            },
        ],
        parallel_tool_calls=True,
    )


def choice_required(client: OpenAI) -> object:
    return client.responses.create(model=MODEL, input="Go", tools=[TOOL], tool_choice="required")


def choice_none(client: OpenAI) -> object:
    return client.responses.create(model=MODEL, input="Go", tools=[TOOL], tool_choice="none", parallel_tool_calls=False)


def choice_named(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL, input="Go", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"}
    )


def choice_custom(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        tools=[{"type": "custom", "name": "patch"}],
        tool_choice={"type": "custom", "name": "patch"},
    )


def choice_hosted(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        tools=[{"type": "web_search_preview"}],
        tool_choice={"type": "web_search_preview"},
    )


def choice_mcp(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL, input="Go", tool_choice={"type": "mcp", "server_label": "files", "name": "read"}
    )


def choice_allowed(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        tools=[TOOL],
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "get_weather"}, {"type": "image_generation"}],
        },
    )


def history(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input=HISTORY,
        tools=[TOOL],
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
    )


def history_of_other_tools(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input=[
            {"role": "user", "content": "Go"},
            {"type": "custom_tool_call", "call_id": "call_C", "name": "apply_patch", "input": "*** Begin\n+ä"},
            {"type": "custom_tool_call_output", "call_id": "call_C", "output": "done"},
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "Köln", "queries": ["Köln"]},
            },
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "server_label": "files",
                "name": "read",
                "arguments": "{}",
                "output": "text",
                "error": None,
            },
            {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "f", "name": "rm", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "no"},
            {"type": "item_reference", "id": "msg_9"},
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "call_S",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            },
            {"type": "local_shell_call_output", "id": "lsh_2", "output": '{"stdout":""}'},
            {"type": "compaction", "encrypted_content": "gAAAAcomp"},
            {"role": "user", "content": "And now?"},
        ],
    )


def results_with_media(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input=[
            {"role": "user", "content": "Show it"},
            {"type": "function_call", "call_id": "call_A", "name": "map", "arguments": "{}", "namespace": "geo"},
            {
                "type": "function_call_output",
                "call_id": "call_A",
                "output": [
                    {"type": "input_text", "text": "the map"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
                ],
            },
        ],
    )


def refusal_replayed(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "Do it"}]},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "refusal", "refusal": "I cannot."},
                    {
                        "type": "output_text",
                        "text": "See [1]",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "start_index": 0,
                                "end_index": 3,
                                "title": "t",
                                "url": "https://example.com",
                            }
                        ],
                        "logprobs": [],
                    },
                ],
            },
            {"role": "assistant", "content": "Anything else?"},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "No"},
        ],
    )


def reasoning(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        reasoning={"effort": "high", "summary": "auto"},
        max_output_tokens=64,
        service_tier="priority",
        truncation="auto",
    )


def structured(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        text={
            "format": {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True, "description": "d"},
            "verbosity": "low",
        },
    )


def json_mode(client: OpenAI) -> object:
    return client.responses.create(model=MODEL, input="Go", text={"format": {"type": "json_object"}})


def sampling(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        temperature=1.0,
        top_p=1e-7,
        top_logprobs=3,
        include=["message.output_text.logprobs"],
        max_tool_calls=2,
        metadata={"trace": "t1"},
        user="ana",
    )


def continued(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        previous_response_id="resp_1",
        input=[{"type": "function_call_output", "call_id": "call_A", "output": "7 °C"}],
        instructions=None,
    )


def stored_prompt(client: OpenAI) -> object:
    return client.responses.create(
        prompt={"id": "pmpt_1", "version": "2", "variables": {"city": "Köln"}}, conversation="conv_1"
    )


def unknown_fields(client: OpenAI) -> object:
    return client.responses.create(
        model=MODEL,
        input="Go",
        temperature=None,
        extra_body={"new_field": [1, 1.0, None, {"a": BIG}], "~odd": True},
    )


def stream(client: OpenAI) -> None:
    client.responses.create(
        model=MODEL, input=HISTORY, tools=[TOOL], stream=True, stream_options={"include_obfuscation": False}
    ).close()


SDK: Final = Sdk(
    "responses",
    "openai_responses",
    "openai",
    lambda url: OpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0),
    named(
        *(plain, instructions, media, tools_of_every_kind, choice_required, choice_none, choice_named, choice_custom),
        *(choice_hosted, choice_mcp, choice_allowed, history, history_of_other_tools, results_with_media),
        *(refusal_replayed, reasoning, structured, json_mode, sampling, continued, stored_prompt, unknown_fields),
        stream,
    ),
)

"""Generated bodies of the OpenAI Responses protocol, with unknown fields."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, counts, numbers, wire_object

statuses = st.sampled_from(["in_progress", "completed", "incomplete"])
ids = st.sampled_from(["call_1", "call_2", "fc_1", ""])


def typed(kind: str, always: dict[str, Any], sometimes: dict[str, Any] | None = None) -> st.SearchStrategy[Fields]:
    return wire_object({"type": st.just(kind), **always}, sometimes or {})


# --- parts ------------------------------------------------------------------------------------------

addresses = st.sampled_from(
    [
        "https://example.invalid/a.png",
        "data:image/png;base64,aGk=",
        "data:;base64,",
        "data:text/plain,hi",
        "data:a;b;base64,x",
    ]
) | texts.map("data:image/png;base64,".__add__)
files = st.sampled_from(["data:application/pdf;base64,aGk=", "data:text/plain;base64,aGk=", "aGk=", ""])
text_parts = st.one_of(
    typed("input_text", {"text": texts}),
    typed("output_text", {"text": texts}, {"annotations": st.lists(json_objects, max_size=1), "logprobs": json_values}),
)
parts = st.one_of(
    text_parts,
    typed("input_image", {}, {"image_url": addresses, "file_id": texts, "detail": st.just("auto")}),
    typed("input_file", {}, {"file_data": files, "file_url": texts, "file_id": texts, "filename": texts}),
    typed(
        "input_audio",
        {"input_audio": wire_object({}, {"data": texts, "format": st.sampled_from(["mp3", "wav", "later"])})},
    ),
    typed(
        "input_audio",
        {"input_audio": st.fixed_dictionaries({"data": texts, "format": st.sampled_from(["mp3", "wav"])})},
    ),
    typed("refusal", {"refusal": texts}),
    typed("later", {}),
)
contents = texts | st.lists(parts, max_size=3)

# --- items ------------------------------------------------------------------------------------------

argument_texts = st.one_of(
    texts,
    json_values.map(json.dumps),
    json_objects.map(json.dumps),
    json_objects.map(lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)),
    st.sampled_from(['{"a":1}', '{"a": 1}', '{"a":1,"a":2}', '{"a":1.50}', '{"a":1e400}', "", "[]", "null", '{"a":']),
)
messages = st.one_of(
    wire_object(
        {"role": st.sampled_from(["user", "assistant", "assistant", "system", "developer"]), "content": contents},
        {"type": st.just("message"), "id": texts, "status": statuses, "phase": texts},
    ),
    typed("message", {"role": st.just("assistant"), "content": contents}),
)
reasoning_items = typed(
    "reasoning",
    {},
    {
        "id": texts,
        "summary": st.lists(typed("summary_text", {"text": texts}), max_size=2),
        "content": st.lists(typed("reasoning_text", {"text": texts}), max_size=2),
        "encrypted_content": texts,
        "status": statuses,
    },
)
call_fields = {"id": texts, "status": statuses, "namespace": texts, "caller": json_objects}
call_items = st.one_of(
    typed("function_call", {"call_id": ids, "name": texts, "arguments": argument_texts}, call_fields),
    typed("function_call", {"id": ids, "name": texts, "arguments": argument_texts}, {"call_id": texts}),
    typed("custom_tool_call", {"call_id": ids, "name": texts, "input": texts}, call_fields),
)
output_items = wire_object(
    {"type": st.sampled_from(["function_call_output", "custom_tool_call_output"]), "call_id": ids},
    {"output": contents, "id": texts, "status": statuses},
)
actions = wire_object(
    {"type": st.sampled_from(["exec", "exec", "later"])}, {"command": st.lists(texts, max_size=2), "env": json_objects}
)
operations = wire_object(
    {"type": st.sampled_from(["create_file", "update_file", "delete_file"]), "path": texts}, {"diff": texts}
)
environments = st.sampled_from([{"type": "local"}, {"type": "container_reference", "container_id": "c"}])
client_call_fields = {"id": texts, "status": statuses, "caller": json_objects}
client_calls = st.one_of(
    typed("local_shell_call", {"call_id": ids, "action": actions}, client_call_fields),
    typed(
        "shell_call",
        {"call_id": ids, "action": wire_object({"commands": st.lists(texts, max_size=2)}, {"timeout_ms": counts})},
        {**client_call_fields, "environment": environments},
    ),
    typed("apply_patch_call", {"call_id": ids, "operation": operations}, client_call_fields),
    typed(
        "tool_search_call",
        {"execution": st.sampled_from(["client", "server"]), "arguments": json_values | json_objects},
        {**client_call_fields, "call_id": ids},
    ),
)
outcomes = st.one_of(st.just({"type": "timeout"}), wire_object({"type": st.just("exit"), "exit_code": counts}, {}))
client_outputs = st.one_of(
    typed("local_shell_call_output", {"output": texts}, {"id": ids, "call_id": ids, "status": statuses}),
    typed(
        "shell_call_output",
        {
            "call_id": ids,
            "output": st.lists(wire_object({"stdout": texts, "stderr": texts, "outcome": outcomes}, {}), max_size=2),
        },
        {"max_output_length": counts, "id": texts},
    ),
    typed(
        "apply_patch_call_output",
        {"call_id": ids, "status": st.sampled_from(["completed", "failed", "later"])},
        {"output": texts | st.none(), "id": texts},
    ),
)
agent_messages = typed(
    "agent_message",
    {
        "content": st.lists(
            st.one_of(typed("input_text", {"text": texts}), typed("encrypted_content", {"encrypted_content": texts})),
            max_size=2,
        )
    },
    {"author": texts, "recipient": texts, "id": texts},
)
server_items = wire_object(
    {
        "type": st.sampled_from(
            [
                *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"),
                *("tool_search_call", "tool_search_output", "local_shell_call", "local_shell_call_output"),
                *("apply_patch_call", "apply_patch_call_output", "computer_call", "computer_call_output"),
                *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "additional_tools"),
                *("item_reference", "compaction", "later"),
            ]
        )
    },
    {
        "id": texts,
        "call_id": texts,
        "action": json_objects,
        "output": json_values,
        "execution": st.sampled_from(["client", "server"]),
        "role": st.sampled_from(["developer", "assistant", "later"]),
    },
)

# --- tools ------------------------------------------------------------------------------------------

plain_tools = st.one_of(
    typed(
        "function",
        {"name": texts},
        {"description": texts, "parameters": json_objects, "strict": st.booleans(), "defer_loading": st.booleans()},
    ),
    typed("custom", {"name": texts}, {"description": texts, "format": json_objects, "defer_loading": st.booleans()}),
    wire_object({"type": st.sampled_from(["web_search", "mcp", "tool_search", "later"])}, {"name": texts}),
    wire_object(
        {"type": st.sampled_from(["tool_search", "local_shell", "shell", "apply_patch"])},
        {
            "execution": st.sampled_from(["client", "server"]),
            "description": texts,
            "parameters": json_objects,
            "environment": environments,
        },
    ),
)
namespaces = st.one_of(
    typed(
        "namespace",
        {"name": st.sampled_from(["a", "b", ""]), "tools": st.lists(plain_tools, max_size=3)},
        {"description": texts},
    ),
    typed("namespace", {"name": texts}, {"description": texts, "tools": st.just([])}),
)
tools = plain_tools | namespaces
tool_lists = st.lists(tools, max_size=3) | st.lists(namespaces, max_size=4)
loaded_tools = st.one_of(
    typed("additional_tools", {"tools": tool_lists}, {"role": st.sampled_from(["developer", "later"]), "id": texts}),
    typed(
        "tool_search_output",
        {"tools": tool_lists, "execution": st.sampled_from(["client", "server"])},
        {"call_id": ids, "id": texts, "status": statuses},
    ),
)

items = st.one_of(
    *(messages, reasoning_items, call_items, output_items, server_items, st.fixed_dictionaries({"id": texts})),
    *(client_calls, client_outputs, agent_messages, loaded_tools),
)

# --- requests ---------------------------------------------------------------------------------------
choices = st.one_of(
    st.sampled_from(["auto", "none", "required", "later"]),
    wire_object({"type": st.sampled_from(["function", "custom"]), "name": texts}, {}),
    typed(
        "allowed_tools",
        {"tools": st.lists(wire_object({"type": st.sampled_from(["function", "mcp"])}, {"name": texts}), max_size=2)},
        {"mode": st.sampled_from(["auto", "required", "later", "absent", ""])},
    ),
    wire_object({"type": st.sampled_from(["web_search_preview", "mcp", "apply_patch"])}, {"name": texts}),
)
formats = st.one_of(
    wire_object({"type": st.sampled_from(["text", "json_object", "later"])}, {}),
    typed("json_schema", {"name": texts, "schema": json_objects}, {"strict": st.booleans(), "description": texts}),
    typed("json_schema", {}, {"name": texts, "schema": json_objects}),
)
openai_responses_requests = wire_object(
    {"model": texts},
    {
        "instructions": texts,
        "tools": tool_lists,
        "tool_choice": choices,
        "parallel_tool_calls": st.booleans(),
        "max_output_tokens": counts,
        "temperature": numbers,
        "top_p": numbers,
        "reasoning": wire_object({}, {"effort": texts, "summary": texts, "context": texts}),
        "text": wire_object({}, {"format": formats, "verbosity": texts}),
        "stream": st.booleans(),
        "user": texts,
        "store": st.booleans(),
        "include": st.lists(texts, max_size=1),
        "previous_response_id": texts,
        "prompt_cache_key": texts,
        "safety_identifier": texts,
        "metadata": json_objects,
    },
).flatmap(
    lambda body: st.one_of(
        st.lists(items, max_size=5).map(lambda found: {**body, "input": found}),
        st.lists(items, min_size=2, max_size=5).map(lambda found: {**body, "input": found}),
        texts.map(lambda found: {**body, "input": found}),
        st.sampled_from([body, {**body, "input": None}]),
    )
)

# --- replies ----------------------------------------------------------------------------------------

openai_responses_replies = wire_object(
    {"id": texts, "model": texts, "output": st.lists(items, max_size=4)},
    {
        "object": st.just("response"),
        "status": st.sampled_from(["completed", "incomplete", "failed", "in_progress", "queued", "later"]),
        "incomplete_details": wire_object({}, {"reason": st.sampled_from(["max_output_tokens", "content_filter"])}),
        "usage": wire_object(
            {},
            {
                "input_tokens": counts,
                "output_tokens": counts,
                "total_tokens": counts,
                "input_tokens_details": wire_object(
                    {}, {"cached_tokens": counts, "cache_write_tokens": counts, "audio_tokens": counts}
                ),
                "output_tokens_details": wire_object({}, {"reasoning_tokens": counts}),
            },
        ),
        "created_at": numbers,
        "error": json_objects,
        "tools": st.lists(tools, max_size=1),
        "parallel_tool_calls": st.booleans(),
        "instructions": texts,
    },
)

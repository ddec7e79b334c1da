"""Generated Chat Completions bodies: what OpenAI documents, and what compatible hosts add and leave out."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, cache_marks, counts, numbers, wire_object

# --- content ----------------------------------------------------------------------------------------


def part(kind: str, always: dict[str, Any], sometimes: dict[str, Any] | None = None) -> st.SearchStrategy[Fields]:
    return wire_object({"type": st.just(kind), **always}, {"cache_control": cache_marks, **(sometimes or {})})


addresses = st.sampled_from(
    [
        "https://example.invalid/a.png",
        "data:image/png;base64,aGk=",
        "data:image/png;charset=utf-8;base64,aGk=",
        "data:image/png;base64,a;base64,b",
        "data:;base64,aGk=",
        "data:text/plain,hi;base64,aGk=",
        "data:image/svg+xml,%3Csvg/%3E",
        "DATA:image/png;base64,aGk=",
        "image/png;base64,aGk=",
        "aGk=",
        "",
    ]
)
text_parts = part("text", {"text": texts}, {"annotations": json_values})
chat_parts = st.one_of(
    text_parts,
    part("image_url", {"image_url": wire_object({"url": addresses}, {"detail": st.just("low")})}),
    part("image_url", {"image_url": addresses}),
    part("video_url", {"video_url": wire_object({"url": addresses}, {})}),
    part(
        "input_audio",
        {
            "input_audio": wire_object(
                {
                    "data": st.sampled_from(["aGk=", "https://example.invalid/a.mp3", ""]),
                    "format": st.sampled_from(["wav", "mp3", "mpeg", "x-wav", "audio/mpeg", "audio/wav", ""]),
                },
                {},
            )
        },
    ),
    part("file", {"file": wire_object({}, {"file_id": texts, "file_data": addresses | texts, "filename": texts})}),
    part("refusal", {"refusal": texts}),
    part("input_audio", {"input_audio": st.sampled_from(["aGk=", "https://example.invalid/a.mp3", ""])}),
    part("file", {"file_id": texts}, {"file": st.none()}),
    part("document_url", {"document_url": addresses}, {"document_name": texts}),
    part("thinking", {"thinking": st.lists(json_objects | text_parts, max_size=2)}, {"signature": texts}),
    part("later", {}),
)
contents = texts | st.lists(chat_parts, max_size=3)

# --- tool calls -------------------------------------------------------------------------------------

argument_texts = st.one_of(
    json_objects.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))),
    json_objects.map(json.dumps),
    json_objects.map(json.dumps).map(json.dumps),
    json_values.map(json.dumps),
    texts,
    st.sampled_from(
        [
            "",
            " ",
            "{}",
            "null",
            "{",
            '{"a":1',
            '{"a":1}',
            '{"a":1.0}',
            '{"a":1e2}',
            '{"a":1,"a":2}',
            '{"a":NaN}',
            '{"a":1e999}',
            '{"a":"\\ud800"}',
            '{"a":' * 190 + "1" + "}" * 190,
            "<a>1</a>",
        ]
    ),
)
function_calls = wire_object(
    {"function": wire_object({"name": texts}, {"arguments": argument_texts | argument_texts | json_objects})},
    {"id": texts, "type": st.just("function"), "index": counts, "extra_content": json_objects},
)
whole_calls = wire_object(
    {
        "id": texts,
        "type": st.just("function"),
        "function": wire_object({"name": texts, "arguments": argument_texts}, {}),
    },
    {},
)
custom_calls = wire_object(
    {"type": st.just("custom"), "custom": wire_object({"name": texts, "input": argument_texts}, {})}, {"id": texts}
)
chat_calls = st.one_of(whole_calls, function_calls, custom_calls, wire_object({"type": st.just("later")}, {}))

# --- messages ---------------------------------------------------------------------------------------

plain_messages = wire_object(
    {"role": st.sampled_from(["system", "developer", "user"])},
    {"content": contents, "name": texts, "tool_calls": json_values, "reasoning": texts, "refusal": json_values},
)
assistant_fields: dict[str, st.SearchStrategy[Any]] = {
    "content": contents,
    "tool_calls": st.lists(chat_calls, max_size=3),
    "refusal": texts,
    "reasoning_content": texts,
    "reasoning": texts | json_objects,
    "reasoning_details": st.lists(json_objects, max_size=1),
    "function_call": wire_object({"name": texts, "arguments": texts}, {}),
    "annotations": json_values,
    "audio": json_objects,
    "name": texts,
}
assistant_messages = wire_object({"role": st.just("assistant")}, assistant_fields)
tool_messages = wire_object({"role": st.just("tool")}, {"tool_call_id": texts, "content": contents, "name": texts})
chat_messages = st.one_of(
    plain_messages,
    assistant_messages,
    tool_messages,
    wire_object({"role": st.just("function"), "name": texts}, {"content": texts}),
)

# --- requests ---------------------------------------------------------------------------------------

grammars = wire_object({}, {"syntax": texts, "definition": texts})
formats = st.one_of(
    json_objects,
    wire_object({"type": st.just("grammar"), "grammar": grammars}, {}),
    wire_object({"type": st.just("grammar")}, {"syntax": texts, "definition": texts}),
)
chat_tools = st.one_of(
    wire_object(
        {
            "function": wire_object(
                {"name": texts}, {"description": texts, "parameters": json_objects, "strict": st.booleans()}
            )
        },
        {"type": st.just("function"), "cache_control": cache_marks},
    ),
    wire_object(
        {
            "type": st.just("custom"),
            "custom": wire_object({"name": texts}, {"description": texts, "format": formats}),
        },
        {},
    ),
    wire_object(
        {"type": st.sampled_from(["builtin_function", "web_search"])}, {"name": texts, "function": json_values}
    ),
)


def named(kind: str) -> st.SearchStrategy[Fields]:
    return wire_object({"type": st.just(kind), kind: wire_object({"name": texts}, {})}, {})


allowed_tools = wire_object(
    {
        "mode": st.sampled_from(["auto", "required"]),
        "tools": st.lists(named("function") | named("custom") | wire_object({"type": st.just("mcp")}, {}), max_size=2),
    },
    {},
)
chat_requests = wire_object(
    {"messages": st.lists(chat_messages, max_size=4)},
    {
        "model": texts,
        "tools": st.lists(chat_tools, max_size=2),
        "tool_choice": st.one_of(
            st.sampled_from(["auto", "none", "required", "any", "later"]),
            named("function"),
            named("custom"),
            wire_object({"type": st.just("allowed_tools"), "allowed_tools": allowed_tools}, {}),
            wire_object({"type": st.just("later")}, {}),
        ),
        "parallel_tool_calls": st.booleans(),
        "max_tokens": counts,
        "max_completion_tokens": counts,
        "temperature": numbers,
        "top_p": numbers,
        "top_k": counts,
        "seed": counts,
        "presence_penalty": numbers,
        "frequency_penalty": numbers,
        "stop": texts | st.lists(texts, max_size=2),
        "reasoning_effort": st.sampled_from(["none", "low", "high"]),
        "reasoning": json_objects,
        "response_format": st.one_of(
            wire_object({"type": st.sampled_from(["text", "json_object", "later"])}, {"json_schema": json_values}),
            wire_object(
                {
                    "type": st.just("json_schema"),
                    "json_schema": wire_object(
                        {}, {"name": texts, "schema": json_objects, "strict": st.booleans(), "description": texts}
                    ),
                },
                {},
            ),
            wire_object({}, {"type": texts}),
        ),
        "stream": st.booleans(),
        "stream_options": json_objects,
        "user": texts,
        "metadata": json_objects,
        "functions": st.lists(json_objects, max_size=1),
        "n": counts,
    },
)

# --- replies ----------------------------------------------------------------------------------------

chat_choices = wire_object(
    {"message": assistant_messages},
    {
        "index": counts,
        "logprobs": json_objects,
        "finish_reason": st.sampled_from(
            ["stop", "tool_calls", "function_call", "length", "content_filter", "sensitive", "error", "later", ""]
        ),
        "usage": json_objects,
    },
)
chat_replies = wire_object(
    {"choices": st.lists(chat_choices, min_size=1, max_size=2)},
    {
        "id": texts,
        "object": st.just("chat.completion"),
        "created": counts,
        "model": texts,
        "system_fingerprint": texts,
        "usage": wire_object(
            {},
            {
                "prompt_tokens": counts,
                "completion_tokens": counts,
                "total_tokens": counts,
                "prompt_tokens_details": wire_object(
                    {}, {"cached_tokens": counts, "cache_write_tokens": counts, "audio_tokens": counts}
                ),
                "completion_tokens_details": wire_object({}, {"reasoning_tokens": counts, "audio_tokens": counts}),
                "prompt_cache_hit_tokens": counts,
            },
        ),
    },
)

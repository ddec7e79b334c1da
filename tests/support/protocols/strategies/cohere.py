"""Generated bodies of Cohere's chat protocol."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, counts, numbers, wire_object


def part(kind: str, always: dict[str, Any], sometimes: dict[str, Any] | None = None) -> st.SearchStrategy[Fields]:
    return wire_object({"type": st.just(kind), **always}, sometimes or {})


addresses = texts | st.sampled_from(["data:image/png;base64,aGk=", "data:;base64,aGk=", "https://example.invalid/a"])
text_parts = part("text", {"text": texts})
document_parts = part(
    "document", {"document": wire_object({}, {"data": texts | json_objects | json_values, "id": texts})}
)
image_parts = part("image_url", {"image_url": wire_object({"url": addresses}, {"detail": texts})})
other_parts = part("thinking", {"thinking": texts}) | part("later", {}, {"text": json_values})
contents = texts | st.lists(text_parts | document_parts | image_parts | other_parts, max_size=3)
written_arguments = st.one_of(
    texts,
    json_values.map(json.dumps),
    json_objects.map(json.dumps).map(json.dumps),
    json_objects.map(json.dumps),
    json_objects.map(lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False)),
)
cohere_calls = wire_object(
    {"id": texts, "function": wire_object({"name": texts}, {"arguments": written_arguments})},
    {"type": st.sampled_from(["function", "later", ""])},
)
message_fields = {
    "content": contents,
    "tool_calls": st.lists(cohere_calls, max_size=2),
    "tool_plan": texts,
    "citations": st.lists(json_objects, max_size=1),
}
cohere_messages = st.one_of(
    wire_object({"role": st.sampled_from(["system", "user", "assistant"])}, message_fields),
    wire_object({"role": st.just("tool"), "tool_call_id": texts}, {"content": contents}),
)
cohere_tools = st.one_of(
    wire_object(
        {"function": wire_object({"name": texts}, {"description": texts, "parameters": json_objects})},
        {"type": st.just("function")},
    ),
    wire_object({"type": st.just("later")}, {"function": json_values}),
)
cohere_requests = wire_object(
    {"messages": st.lists(cohere_messages, max_size=4)},
    {
        "model": texts,
        "tools": st.lists(cohere_tools, max_size=2),
        "tool_choice": st.sampled_from(["REQUIRED", "NONE", "LATER", ""]),
        "strict_tools": st.booleans(),
        "stream": st.booleans(),
        "max_tokens": counts,
        "temperature": numbers,
        "p": numbers,
        "k": counts,
        "seed": counts,
        "stop_sequences": st.lists(texts, max_size=2),
        "presence_penalty": numbers,
        "frequency_penalty": numbers,
        "response_format": wire_object(
            {"type": st.sampled_from(["text", "json_object", "later"])},
            {"json_schema": json_objects, "schema": json_objects},
        ),
        "thinking": wire_object({"type": st.sampled_from(["enabled", "disabled", "later"])}, {"token_budget": counts}),
        "documents": st.lists(texts | json_objects, max_size=1),
        "safety_mode": texts,
    },
)
cohere_replies = wire_object(
    {"id": texts, "message": wire_object({"role": st.just("assistant")}, message_fields)},
    {
        "finish_reason": st.sampled_from(["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "LATER"]),
        "usage": wire_object(
            {},
            {
                "tokens": wire_object(
                    {}, {"input_tokens": counts | st.floats(0, 9), "output_tokens": counts | st.just(5.0)}
                ),
                "billed_units": json_objects,
                "cached_tokens": counts | st.just(7.0),
            },
        ),
    },
)

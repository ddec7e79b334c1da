"""Generated bodies of Anthropic's Messages protocol."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, cache_marks, counts, numbers, wire_object


def block(kind: str, always: dict[str, Any], sometimes: dict[str, Any] | None = None) -> st.SearchStrategy[Fields]:
    return wire_object({"type": st.just(kind), **always}, {"cache_control": cache_marks, **(sometimes or {})})


sources = st.one_of(
    st.fixed_dictionaries({"type": st.just("base64"), "media_type": st.just("image/png"), "data": st.just("aGk=")}),
    st.fixed_dictionaries({"type": st.just("url"), "url": st.just("https://example.invalid/a.png")}),
    st.fixed_dictionaries({"type": st.just("file"), "file_id": texts}),
    st.fixed_dictionaries({"type": st.just("content"), "content": texts}),
    wire_object({"type": st.just("text"), "data": texts}, {"media_type": texts}),
    wire_object(
        {"type": st.just("content"), "content": st.lists(wire_object({"type": st.just("text")}, {"text": texts}))}, {}
    ),
    wire_object({"type": st.just("url"), "url": texts}, {}),
)
anthropic_text = block("text", {"text": texts}, {"citations": st.lists(json_objects, max_size=1)})
anthropic_image = block("image", {"source": sources})
anthropic_document = block("document", {"source": sources}, {"title": texts, "context": texts})
anthropic_result = block(
    "tool_result",
    {"tool_use_id": texts},
    {
        "content": texts
        | st.lists(anthropic_text | anthropic_image | block("tool_reference", {"tool_name": texts}), max_size=2),
        "is_error": st.booleans(),
    },
)
changed_tools = st.one_of(
    wire_object({"type": st.just("tool_reference"), "name": texts}, {}),
    wire_object({"type": st.just("mcp_tool_reference"), "name": texts, "server_name": texts}, {}),
    wire_object(
        {
            "type": st.just("tool_definition"),
            "definition": wire_object(
                {"name": texts, "input_schema": json_objects}, {"description": texts, "defer_loading": st.booleans()}
            ),
        },
        {},
    ),
    json_values,
)
anthropic_blocks = st.one_of(
    anthropic_text,
    anthropic_image,
    anthropic_document,
    anthropic_result,
    block("tool_use", {"id": texts, "name": texts, "input": json_objects}, {"caller": json_objects}),
    block("thinking", {"thinking": texts}, {"signature": texts}),
    block("redacted_thinking", {"data": texts}),
    block("server_tool_use", {"id": texts, "name": texts, "input": json_objects}),
    block("web_search_tool_result", {"tool_use_id": texts, "content": json_values}),
    block("compaction", {"content": texts}),
    block("tool_addition", {"tool": changed_tools}, {"cache_control": cache_marks}),
    block("tool_removal", {"tool": changed_tools}),
    block("tool_search_tool_result", {"tool_use_id": texts, "content": json_values}),
    block("search_result", {"source": texts, "title": texts, "content": st.lists(anthropic_text, max_size=2)}),
)
anthropic_messages = wire_object(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": texts | st.lists(anthropic_blocks, max_size=3),
    },
    {},
)
anthropic_tools = st.one_of(
    wire_object(
        {"name": texts, "input_schema": json_objects},
        {
            "description": texts,
            "type": st.just("custom"),
            "strict": st.booleans(),
            "defer_loading": st.booleans(),
            "cache_control": cache_marks,
        },
    ),
    wire_object({"type": st.just("tool_search_tool_bm25_20251119")}, {"name": texts}),
    wire_object({"type": st.just("web_search_20250305")}, {"name": texts, "max_uses": counts}),
)
anthropic_requests = wire_object(
    {"model": texts.filter(bool), "messages": st.lists(anthropic_messages, max_size=4)},
    {
        "max_tokens": counts,
        "system": texts | st.lists(anthropic_text, max_size=2),
        "tools": st.lists(anthropic_tools, max_size=2),
        "tool_choice": st.one_of(
            wire_object(
                {"type": st.sampled_from(["auto", "any", "none", "later"])},
                {"disable_parallel_tool_use": st.booleans()},
            ),
            wire_object({"type": st.just("tool"), "name": texts}, {"disable_parallel_tool_use": st.booleans()}),
        ),
        "temperature": numbers,
        "top_p": numbers,
        "top_k": counts,
        "stop_sequences": st.lists(texts, max_size=2),
        "stream": st.booleans(),
        "thinking": wire_object(
            {"type": st.sampled_from(["enabled", "disabled", "adaptive", "between_tools", "later"])},
            {"budget_tokens": counts, "display": texts},
        ),
        "output_config": wire_object(
            {},
            {
                "effort": st.sampled_from(["low", "high"]),
                "format": st.one_of(
                    wire_object({"type": st.just("json_schema"), "schema": json_objects}, {}),
                    wire_object({"type": st.just("later")}, {}),
                ),
            },
        ),
        "metadata": wire_object({}, {"user_id": texts}),
        "service_tier": texts,
    },
)
anthropic_replies = wire_object(
    {
        "id": texts,
        "type": st.just("message"),
        "role": st.just("assistant"),
        "model": texts,
        "content": st.lists(anthropic_blocks, max_size=3),
    },
    {
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "later"]),
        "stop_sequence": texts,
        "usage": wire_object(
            {"input_tokens": counts, "output_tokens": counts},
            {
                "cache_read_input_tokens": counts,
                "cache_creation_input_tokens": counts,
                "output_tokens_details": wire_object({}, {"thinking_tokens": counts}),
                "service_tier": texts,
            },
        ),
    },
)
